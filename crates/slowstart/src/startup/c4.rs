//! C4, the initial state of draft-huitema-ccwg-c4-spec (July 2026) and of picoquic's `c4.c` (August 2026):
//! the window is at least twice what the highest delivery rate fills in the first RTT, and grows by what is
//! acknowledged. It ends after three rounds in which that rate grew by less than a quarter; by delay only if
//! two such rounds have passed; by loss only after twenty packets, if more is lost than its sensitivity
//! permits. It leaves with a little more than half of the window. With `resume=on` and a remembered path it
//! keeps that path's window and rate for two rounds instead.
//!
//! | | |
//! |---|---|
//! | rate | the most that was delivered since a packet was sent, over the longer of the times that sending and delivering it took |
//! | growth without a faster rate | an eighth of what is acknowledged, then a 64th |
//! | sensitivity | 0 below 50 kB/s, 0.94 at 1 MB/s, 1 above 10 MB/s; losses of 2 % + 50 % (1 - sensitivity) count |
//! | excess delay | an RTT above the first by 1/16 and 1/5 (1 - sensitivity) of it, at most 25 ms |
//! | window at the end | 15/16 of the rate times (half a window per rate + a quarter of that time, at most 15 ms) |
//!
//! Only the initial and the resuming state: what follows in C4 (recovery, cruising, pushing) is a congestion
//! control of its own, of which an avoidance takes the place. So the window at the end is that of C4's
//! recovery, and no later state returns here.
//!
//! Departs from its sources:
//! - a timeout ends it, which picoquic ignores;
//! - pacing begins with the first rate sample, at twice the rate and at least 1 Mbit/s; before, the host's
//!   rule holds;
//! - the peak rate that picoquic keeps beside it is not used: it never exceeds twice the rate here;
//! - losses are placed in the order of sending as in `hystart-picoquic`; the share of marks is of bytes, 0
//!   until the first, and 1 on a host that does not count them;
//! - where draft and code differ, the code is used: it adds up to a quarter to the window at the end, and
//!   lowers growth in rounds without a faster rate.

use super::Startup;
use crate::param::params;
use crate::round::LossShare;
use crate::step::{Exit, Pace, Resume, Step};
use crate::units::{Bytes, Fixed, SendOrder, Rate, Span};
use crate::view::{Ack, Congestion, Handshake, Restart, Sent, Signal, View};

params! {
    /// The parameters of C4, with their defaults.
    pub struct Params {
        /// Rounds without growth of the rate after which it ends.
        flat_rounds: u32 = 3, "a whole number from 1 to 20", |v| (1..=20).contains(&v);
        /// Rounds without growth from which on delay ends it.
        delay_rounds: u32 = 2, "a number of rounds", |_v| true;
        /// Packets before losses count.
        packets: u32 = 20, "a number of packets", |_v| true;
        /// Growth of the rate in a round that counts.
        growth: Fixed = Fixed::milli(1250), "a number from 1 to 2", |v| (Fixed::ONE..=2 * Fixed::ONE).contains(&v.0);
        /// Begin with window and rate of an earlier connection on the path.
        resume: bool = false, "on or off", |_v| true;
    }
}

/// The least pacing rate (`C4_INITIAL_PACING`, 0x20000 bytes per second).
const LEAST_PACE: Rate = Rate(1_048_576);
/// The least estimate of a round-trip time (`C4_MAX_RTT_MIN`).
const LEAST_RTT: Span = Span::millis(1);
/// The most that a delay may be to count as none (`C4_DELAY_THRESHOLD_MAX`).
const MOST_DELAY: Span = Span::millis(25);
/// The most that is added to the RTT for the window at the end (`C4_RTT_MARGIN_DELAY`).
const MARGIN: Span = Span::millis(15);
/// Intervals up to this give no rate (`PICOQUIC_BANDWIDTH_TIME_INTERVAL_MIN`).
const LEAST_INTERVAL: Span = Span::millis(1);
/// The most that congestion takes from rate and RTT while resuming, in 1024ths (`C4_BETA_LOSS_1024`).
const BETA_1024: u64 = 256;

/// The startup of C4, one instance a connection.
#[derive(Clone, Debug)]
pub struct C4 {
    pub(crate) params: Params,
    /// The highest delivery rate (`nominal_rate`); zero until there is one.
    rate: Rate,
    /// The RTT without a queue: the first sample (`nominal_max_rtt`).
    rtt: Option<Span>,
    /// By how much the last sample exceeded it and its threshold (`recent_delay_excess`).
    excess: Span,
    /// The round ends with the first ACK beyond this.
    end: Option<SendOrder>,
    /// The rate when it began (`push_rate_old`), and whether the path and not the application limited it.
    before: Rate,
    full: bool,
    /// Rounds in a row without growth (`nb_eras_no_increase`).
    flat: u32,
    /// ACKs and reports of losses (`nb_packets_in_startup`).
    packets: u32,
    losses: LossShare,
    marks: Marks,
    resuming: Option<Resuming>,
}

/// The remembered window, and the rounds that have passed with it.
#[derive(Copy, Clone, Debug)]
struct Resuming {
    window: Bytes,
    rounds: u32,
}

/// The smoothed share of marked bytes, in 1024ths (`ecn_alpha`).
#[derive(Copy, Clone, Debug, Default)]
struct Marks {
    share: u64,
    /// Bytes delivered, and delivered marked, at the last update.
    seen: (Bytes, Bytes),
}

impl Marks {
    fn update(&mut self, v: &View) {
        let Some(total) = v.marked else { return };
        let (delivered, marked) = (v.delivered - self.seen.0, total - self.seen.1);
        self.seen = (v.delivered, total);
        if delivered.0 == 0 {
            return;
        }
        let part = marked.min(delivered).scale(1024, delivered.0).0;
        self.share = if part > self.share && part >= 512 { part } else { (self.share * 15 + part) >> 4 };
    }
}

impl C4 {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            rate: Rate(0),
            rtt: None,
            excess: Span::ZERO,
            end: None,
            before: Rate(0),
            full: false,
            flat: 0,
            packets: 0,
            losses: LossShare::default(),
            marks: Marks::default(),
            resuming: None,
        }
    }

    /// How sensitive a flow of this rate is to congestion, in 1024ths (`c4_sensitivity_1024`).
    fn sensitivity(&self) -> u64 {
        match self.rate.0 / 8 {
            0..50_000 => 0,
            bytes @ 50_000..1_000_000 => (bytes - 50_000) * 963 / 950_000,
            bytes @ 1_000_000..=10_000_000 => 963 + (bytes - 1_000_000) * 61 / 9_000_000,
            _ => 1024,
        }
    }

    /// The delay above the RTT that counts as none (`c4_delay_threshold`).
    fn threshold(&self, rtt: Span) -> Span {
        let part = 64 + (((1024 - self.sensitivity()) * 196) >> 10);
        rtt.scale(part, 1024).min(MOST_DELAY)
    }

    /// The share of lost packets above which losses count, in thousandths (`c4_loss_threshold`).
    fn loss_threshold(&self) -> u32 {
        20 + (500 * (1024 - self.sensitivity()) / 1024) as u32
    }

    fn note_rtt(&mut self, rtt: Span) {
        let first = *self.rtt.get_or_insert(rtt.max(LEAST_RTT));
        self.excess = Span(rtt.0.saturating_sub((first + self.threshold(first)).0));
    }

    /// Updates the rate with what has been delivered since the newest packet was sent.
    fn note_rate(&mut self, v: &View, ack: &Ack) {
        let Sent { delivered, delivered_at, first_sent_at, at, .. } = ack.newest;
        let bytes = v.delivered - delivered;
        let took = v.now.since(delivered_at);
        if ack.delivered.0 == 0 || took <= LEAST_INTERVAL {
            return;
        }
        let rate = Rate::new(bytes, took.max(at.since(first_sent_at))).unwrap_or_default();
        if rate > self.rate {
            self.rate = rate;
            self.full = true;
        } else if v.min_rtt.is_some_and(|rtt| bytes > self.rate.over(rtt)) {
            self.full = true;
        }
    }

    /// The window of C4's recovery, for this rate and RTT.
    fn window(rate: Rate, rtt: Span) -> Bytes {
        let paced = rate.scale(15, 16);
        let margin = if rtt < MARGIN * 4 { rtt / 4 } else { MARGIN };
        paced.over(rtt) + paced.over(margin)
    }

    /// Ends the initial state, if there is a rate (`c4_exit_initial`).
    fn leave(&self, v: &View, why: Exit) -> Option<Step> {
        let rtt = self.rate.time_for(v.cwnd / 2).max(LEAST_RTT);
        (self.rate.0 > 0).then(|| Step::set(Self::window(self.rate, rtt).min(v.cwnd)).and_exit(why))
    }

    fn is_slowed_by_delay(&self) -> bool {
        self.excess > Span::ZERO && self.flat >= self.params.delay_rounds && self.before >= self.rate
    }

    /// Ends a round: counts it if the rate has not grown, and begins the next.
    fn end_round(&mut self, v: &View) {
        let wanted = self.before.scale(self.params.growth.0.unsigned_abs(), Fixed::ONE.unsigned_abs());
        if self.rate >= wanted {
            self.flat = 0;
        } else if self.full && self.rate.0 > 0 {
            self.flat += 1;
        }
        self.begin_round(v);
    }

    fn begin_round(&mut self, v: &View) {
        self.end = Some(v.next);
        (self.before, self.full) = (self.rate, false);
        self.marks.update(v);
    }

    fn ends_round(&self, ack: &Ack) -> bool {
        self.end.is_none_or(|end| ack.upto > end)
    }

    /// Ends the resuming state; congestion takes `beta` 1024ths of the rate, and of the RTT if packets were
    /// lost.
    fn leave_resuming(&self, v: &View, why: Exit, beta: u64) -> Step {
        let rtt = self.rtt.or(v.srtt).unwrap_or(LEAST_RTT);
        let rtt = if why == Exit::Loss { rtt - rtt.scale(beta, 1024) } else { rtt };
        let rate = Rate(self.rate.0 - self.rate.scale(beta, 1024).0);
        Step::set(Self::window(rate, rtt.max(LEAST_RTT)).min(v.cwnd)).and_exit(why)
    }

    fn resume(&mut self, v: &View, ack: &Ack, mut r: Resuming) -> Step {
        if self.excess > Span::ZERO {
            let threshold = self.rtt.map_or(LEAST_RTT, |rtt| self.threshold(rtt)).max(Span(1));
            let beta = self.excess.scale(1024, threshold.0).0.min(BETA_1024);
            return self.leave_resuming(v, Exit::Delay, beta);
        }
        if ack.prior_inflight + ack.prior_inflight / 16 < r.window {
            self.end = Some(v.next);
        } else if self.ends_round(ack) {
            r.rounds += 1;
            self.resuming = Some(r);
            if r.rounds >= 2 {
                return self.leave_resuming(v, Exit::Estimate, 0);
            }
            self.begin_round(v);
        }
        Step::HOLD
    }
}

impl Startup for C4 {
    fn uses_path_memory(&self) -> bool {
        self.params.resume
    }

    fn needs_delivery_state(&self) -> bool {
        true
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        let memory = hs.remembered.filter(|m| self.params.resume && v.supports_pacing && m.cwnd > v.iw);
        let Some((window, rtt)) = memory.and_then(|m| Some((m.cwnd, hs.rtt?))) else { return Step::HOLD };
        let Some(rate) = Rate::new(window, rtt) else { return Step::HOLD };
        self.rtt = Some(rtt.max(LEAST_RTT));
        self.resuming = Some(Resuming { window, rounds: 0 });
        self.end = Some(v.next);
        Step::set(window).pace(Pace::Rate(rate))
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        if let Some(rtt) = ack.rtt {
            self.note_rtt(rtt);
        }
        let slower = self.rate;
        if self.resuming.is_none()
            && self.is_slowed_by_delay()
            && let Some(step) = self.leave(v, Exit::Delay)
        {
            return step;
        }
        self.note_rate(v, ack);
        if let Some(r) = self.resuming {
            return self.resume(v, ack, r);
        }
        self.packets += 1;
        let grown = Bytes(v.slow_start_growth(ack).0.checked_shr(3 * self.flat).unwrap_or(0));
        if self.ends_round(ack) {
            self.end_round(v);
            if self.flat >= self.params.flat_rounds
                && let Some(step) = self.leave(v, Exit::RateFlat)
            {
                return step;
            }
        }
        let twice = self.rtt.map_or(Bytes::ZERO, |rtt| self.rate.scale(2, 1).over(rtt));
        let step = Step::raise(v.cwnd, (v.cwnd + grown).max(twice));
        if self.rate > slower {
            step.pace(Pace::Rate(self.rate.scale(2, 1).max(LEAST_PACE)))
        } else {
            step
        }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        match c.signal {
            Signal::Loss => {
                if self.losses.add(v, c) <= self.loss_threshold() {
                    return Step::HOLD;
                }
                if self.resuming.is_some() {
                    let beta = BETA_1024.midpoint((self.sensitivity() * BETA_1024) >> 10);
                    return self.leave_resuming(v, Exit::Loss, beta);
                }
                self.packets += 1;
                let counts = self.packets > self.params.packets;
                self.leave(v, Exit::Loss).filter(|_| counts).unwrap_or(Step::HOLD)
            }
            Signal::Ecn => {
                self.marks.update(v);
                if v.marked.is_none() {
                    self.marks.share = 1024;
                }
                let most = 192 - ((self.sensitivity() * 96) >> 10);
                if self.marks.share <= most {
                    return Step::HOLD;
                }
                if self.resuming.is_some() {
                    let beta = ((self.marks.share - most) * 1024 / most).min(BETA_1024);
                    return self.leave_resuming(v, Exit::Ecn, beta);
                }
                let slowed = self.is_slowed_by_delay();
                self.leave(v, Exit::Ecn).filter(|_| slowed).unwrap_or(Step::HOLD)
            }
            Signal::Timeout | Signal::LocalStall => Step::exit(c.signal.into()),
        }
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        // Rounds that span an idle period have no rate.
        (self.end, self.full) = (None, false);
        Resume::Standard
    }

    fn phase(&self) -> &'static str {
        if self.resuming.is_some() { "resuming" } else { "initial" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("nominal_rate_bps", self.rate.0 as f64);
        put("nominal_max_rtt_s", self.rtt.map_or(f64::NAN, Span::as_secs_f64));
        put("flat_rounds", f64::from(self.flat));
    }
}
