//! The `HyStart` of picoquic, `cc_common.c` and `cubic.c` of August 2026 (#1831): of samples at least a
//! millisecond apart, the least of the last seven is compared with the lowest that the greatest of seven has
//! been. When it exceeds that by a quarter in seven samples, slow start ends with half the window, because
//! packets sent since the measurement have doubled it; over a minimum RTT of 100 ms with more of it. Losses
//! of the packets sent before do not reduce the window again.
//!
//! A loss ends it only if losses are more than 15 % of what was sent lately (at about the third in a row).
//! The window is at least half of the highest delivery rate times the smoothed RTT.
//!
//! Departs from picoquic:
//! - for a round trip after the detection the window stays as it is, and then the startup has ended; CUBIC
//!   would begin its growth at once, which is less than a segment in the first second;
//! - picoquic's window is an eighth less until the next ACK, which is left out;
//! - the time that a packet takes is that of the host's pacing rate, or of a window per smoothed RTT;
//! - a loss or mark that ends it leaves the reduction to the avoidance (picoquic's CUBIC: 7/8);
//! - growth up to half the rate times the RTT is withheld too while the application limits the sender;
//! - round-trip times are used, not one-way delays.

use super::Startup;
use crate::param::params;
use crate::round::{LossShare, PeakRate};
use crate::step::{Detected, Exit, Step};
use crate::units::{Bytes, Instant, SendOrder, Rate, Span};
use crate::view::{Ack, Congestion, Signal, View};

params! {
    /// Parameters of picoquic's `HyStart`.
    pub struct Params {
        /// Divisor of the filtered minimum RTT for the rise that counts.
        rtt_divisor: u32 = 4, "a whole number from 1", |v| v > 0;
        /// Samples above it that end slow start.
        samples: u32 = 7, "a whole number from 1", |v| v > 0;
        /// The share of packets lost above which a loss ends it, in percent.
        loss_percent: u32 = 15, "a percentage from 0 to 100", |v| v <= 100;
    }
}

/// Samples in the filter (`PICOQUIC_MIN_MAX_RTT_SCOPE`).
const SCOPE: usize = 7;
/// The least time between samples.
const APART: Span = Span::millis(1);
/// Up to this minimum RTT the window is halved (`PICOQUIC_TARGET_RENO_RTT`).
const RENO_RTT: Span = Span::millis(100);
/// The longest RTT that is taken for a path's (`PICOQUIC_TARGET_SATELLITE_RTT`).
const SATELLITE_RTT: Span = Span::millis(610);

/// The `HyStart` of picoquic, one instance a connection.
#[derive(Clone, Debug)]
pub struct HyStartPicoquic {
    pub(crate) params: Params,
    samples: [Span; SCOPE],
    /// Number of samples, and when the last was taken.
    taken: u32,
    last: Option<Instant>,
    /// The lowest that the greatest of seven samples has been.
    floor: Span,
    excess: u32,
    losses: LossShare,
    peak: PeakRate,
    /// What was detected, and the last packet sent by then.
    found: Option<(Detected, SendOrder)>,
}

impl HyStartPicoquic {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            samples: [Span::ZERO; SCOPE],
            taken: 0,
            last: None,
            floor: Span::MAX,
            excess: 0,
            losses: LossShare::default(),
            peak: PeakRate::default(),
            found: None,
        }
    }

    /// Takes a sample; returns true if the RTT has risen.
    fn rises(&mut self, v: &View, rtt: Span) -> bool {
        if self.last.is_some_and(|last| v.now <= last + APART) {
            return false;
        }
        self.last = Some(v.now);
        self.samples[self.taken as usize % SCOPE] = rtt;
        // After the first seven only the position in the ring matters.
        self.taken = if self.taken as usize + 1 == 2 * SCOPE { SCOPE as u32 } else { self.taken + 1 };
        if (self.taken as usize) < SCOPE {
            return false;
        }
        let least = self.samples.into_iter().min().unwrap_or(rtt);
        let most = self.samples.into_iter().max().unwrap_or(rtt);
        self.floor = self.floor.min(most);
        let rate = v.pacing_rate.filter(|r| r.0 > 0).or_else(|| Rate::new(v.cwnd, v.srtt?));
        let packet = rate.map_or(Span::ZERO, |r| r.time_for(v.mss));
        let rise = (self.floor / u64::from(self.params.rtt_divisor)).max(packet);
        if least > self.floor + rise {
            self.excess += 1;
        } else if least <= self.floor {
            self.excess = 0;
        }
        self.excess >= self.params.samples
    }

    /// The window after an exit.
    fn landing(&self, cwnd: Bytes) -> Bytes {
        if self.floor <= RENO_RTT {
            return cwnd / 2;
        }
        let target = if self.floor > SATELLITE_RTT { SATELLITE_RTT } else { RENO_RTT };
        let base = cwnd.scale(target.0, self.floor.0);
        cwnd - (cwnd - base) / 2
    }
}

impl Startup for HyStartPicoquic {
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        if let Some((seen, end)) = self.found {
            let over = ack.newest.mark > end;
            return if over { Step::exit(Exit::Delay).detected(seen) } else { Step::HOLD };
        }
        self.peak.add(v, ack);
        if let Some(rtt) = ack.rtt
            && v.ssthresh.is_none()
            && self.rises(v, rtt)
        {
            self.found = Some((Detected { at: v.now, cwnd: v.cwnd }, v.next));
            let cwnd = self.landing(v.cwnd);
            return Step::set(cwnd).ssthresh(cwnd);
        }
        let half = v.srtt.map_or(Bytes::ZERO, |srtt| self.peak.rate.over(srtt) / 2);
        Step::raise(v.cwnd, half.max(v.cwnd) + v.slow_start_growth(ack))
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        match (c.signal, self.found) {
            (Signal::Loss | Signal::Ecn, Some(_)) => Step::HOLD,
            (_, Some((seen, _))) => Step::exit(Exit::Delay).detected(seen),
            (Signal::Loss, None) if self.losses.add(v, c) <= self.params.loss_percent * 10 => Step::HOLD,
            (signal, None) => Step::exit(signal.into()),
        }
    }

    fn looks_for(&self, v: &View) -> Option<Bytes> {
        self.found.map(|_| v.cwnd)
    }

    fn phase(&self) -> &'static str {
        if self.found.is_some() { "recovery" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let floor = (self.floor < Span::MAX).then_some(self.floor);
        put("rtt_floor_s", floor.map_or(f64::NAN, Span::as_secs_f64));
        put("rtt_excess", f64::from(self.excess));
    }
}
