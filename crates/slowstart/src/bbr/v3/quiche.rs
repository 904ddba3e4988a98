//! Startup and Drain of quiche's `BBRv2` (Cloudflare, `gcongestion/bbr2`, August 2026, from Chromium's).
//!
//! | | draft | quiche |
//! |---|---|---|
//! | growth of a round | its sample, by a quarter | the maximum, by a quarter; in application-limited rounds too |
//! | three rounds without | application-limited ones are left out | the same |
//! | loss | more than 2 % of the flight in six ranges, in recovery | more than 1.5 % in eight events of a round without growth that the application did not limit |
//! | queue | nothing | with `queue_rounds`: so many rounds without growth in which never less than 1.75 BDP was in flight |
//! | first pace | 2.77 windows a round trip | 2.885; from the first ACK on one initial window per minimum RTT, until the bandwidth demands more |
//! | window | grows while less than the initial window is delivered | grows up to twice the initial window; never below it |
//! | Drain | at half the bandwidth, three rounds at most | at 1/2.885, until no more than a BDP is in flight |

use super::{Bbr3, Full, Mode, Sample};
use crate::bbr::shared::FULL_ROUNDS;
use crate::param::params;
use crate::step::{Exit, Pace};
use crate::units::{Bytes, Gain, Rate};
use crate::view::{Ack, Congestion, Facts};

params! {
    /// Parameters of quiche's `BBRv2`.
    pub struct Params {
        /// Rounds with a queue that end Startup (`max_startup_queue_rounds`); 0: none do, its default.
        queue_rounds: u32 = 0, "a number of rounds", |_v| true;
        /// Events with losses in a round from which on they end Startup (`startup_full_loss_count`).
        loss_events: u32 = 8, "a number of events", |_v| true;
    }
}

/// The first pacing rate, in initial windows per smoothed RTT: 2.885.
pub(super) const FIRST_PACE: Gain = Gain(2954);
/// The pacing gain of Drain: 1/2.885.
pub(super) const DRAIN: Gain = Gain(355);
/// A queue: never less in flight than this many BDPs.
const QUEUE: Gain = Gain(1792);
/// The share of the flight that may be lost, in thousandths (`loss_threshold`).
const LOSS_PER_MILLE: u64 = 15;

/// What is measured in a round of Startup.
#[derive(Clone, Debug)]
pub(super) struct Quiche {
    pub(super) params: Params,
    /// Events with losses, and bytes lost.
    events: u32,
    lost: Bytes,
    /// The least in flight, and the most delivered in a round trip.
    least: Bytes,
    most: Bytes,
    /// Rounds in a row with a queue.
    queued: u32,
    /// The first ACK has come. (What a host counts as delivered may include the handshake.)
    acked: bool,
}

impl Quiche {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            events: 0,
            lost: Bytes::ZERO,
            least: Bytes::MAX,
            most: Bytes::ZERO,
            queued: 0,
            acked: false,
        }
    }

    pub(super) fn note_loss(&mut self, c: &Congestion) {
        self.events += 1;
        self.lost += c.lost;
    }
}

impl Bbr3 {
    /// `Startup::on_congestion_event` and `has_bandwidth_growth`, at each ACK of Startup.
    pub(super) fn check_full_quiche(&mut self, f: &Facts, a: &Ack, s: &Sample) {
        let (bdp, max) = (self.product(f, self.max_bandwidth(), Gain::UNIT), self.max_bandwidth());
        let queue = self.product(f, max, QUEUE).max(bdp + f.mss * 2);
        let Some(q) = &mut self.quiche else { return };
        q.least = q.least.min(f.inflight);
        q.most = q.most.max(s.delivered);
        if !self.rates.round_start {
            return;
        }
        let fresh = Quiche { queued: q.queued, acked: q.acked, ..Quiche::new(q.params) };
        let round = core::mem::replace(q, fresh);
        let mut why = None;
        if max >= self.full.base.scale(5, 4) {
            self.full = Full { base: max, ..Full::default() };
            return;
        }
        if !s.app_limited {
            self.full.rounds += 1;
            if self.full.rounds >= FULL_ROUNDS {
                self.full.now = true;
                why = Some(Exit::RateFlat);
            }
        }
        q.queued = if round.least < queue { 0 } else { q.queued + 1 };
        if q.params.queue_rounds > 0 && q.queued >= q.params.queue_rounds {
            why = why.or(Some(Exit::Estimate));
        }
        let lossy = round.events >= q.params.loss_events
            && round.lost > a.newest.inflight.scale(LOSS_PER_MILLE, 1000)
            && a.newest.inflight.0 > 0;
        if why.is_none() && !s.app_limited && lossy {
            self.bounds.inflight_longterm = Some(bdp.max(round.most));
            self.bounds.undo_mode = Some(Mode::Startup);
            why = Some(Exit::Loss);
        }
        if let Some(why) = why {
            self.fill(f, why);
        }
    }

    /// With the first ACK the rate is that of the initial window per RTT.
    pub(super) fn slow_first_pace(&mut self, a: &Ack) {
        let Some(q) = self.quiche.as_mut().filter(|q| !q.acked) else { return };
        q.acked = a.delivered.0 > 0;
        if let Some(rate) = self.min_rtt.and_then(|rtt| Rate::new(self.state.cwnd, rtt)) {
            self.pacing.rate = rate;
            self.state.pace = Some(Pace::Rate(rate));
        }
    }
}
