//! Vegas' slow start, Brakmo & Peterson 1995 (the arithmetic of ns-2 `tcp-vegas.cc`), and that of Linux `tcp_vegas.c`:
//! once a round trip, compare what was sent with what the least round-trip time would have let through; more than
//! `gamma` segments of difference wait in a queue, and slow start ends.
//!
//! Departs from Linux (`rules=linux`):
//! - the difference is cwnd - cwnd * base / rtt, as in the paper and in Linux to 2.6.25; later kernels divide by the base
//!   round trip, which only matters where the difference is many segments.
//!
//! Departs from both: congestion avoidance is not Vegas' but the one it is joined with.

use super::Startup;
use crate::param::{choice, params};
use crate::round::Round;
use crate::step::{Exit, Resume, Step};
use crate::units::{Bytes, Span};
use crate::view::{Ack, Restart, Sent, View};

choice! {
    /// Whose rules.
    pub enum Rules {
        /// Growth every other round trip; on leaving an eighth of the window is given up.
        Original = "original",
        /// Growth every round trip; on leaving the window is what the path held, and one segment.
        Linux = "linux",
    }
}

params! {
    /// Parameters of Vegas' slow start.
    pub struct Params {
        /// Whose rules.
        rules: Rules = Rules::Original, "one of original, linux", |_v| true;
        /// Segments that may wait in the queue.
        gamma: u32 = 1, "a number of segments", |_v| true;
    }
}

impl Params {
    /// As Linux has it.
    pub fn linux() -> Self {
        Self { rules: Rules::Linux, ..Self::default() }
    }
}

/// Samples of a round from which Linux judges: fewer may all be of delayed ACKs.
const MIN_SAMPLES: u64 = 3;

/// Vegas' slow start.
#[derive(Clone, Debug)]
pub struct Vegas {
    pub(crate) params: Params,
    round: Round,
    /// Least RTT of the connection.
    base: Span,
    /// No growth in this round.
    hold: bool,
    // Of the round: bytes sent, RTT samples, their sum and their least.
    sent: Bytes,
    samples: u64,
    sum: Span,
    least: Span,
    /// Bytes in the queue when last judged.
    queued: Option<Bytes>,
}

impl Vegas {
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            round: Round::default(),
            base: Span::MAX,
            hold: false,
            sent: Bytes::ZERO,
            samples: 0,
            sum: Span::ZERO,
            least: Span::MAX,
            queued: None,
        }
    }

    /// The round is over.
    fn judge(&mut self, v: &View) -> Option<Step> {
        let base = self.base;
        let gamma = v.mss * u64::from(self.params.gamma);
        if self.params.rules == Rules::Linux {
            if self.samples < MIN_SAMPLES {
                return None;
            }
            let target = v.cwnd.scale(base.0, self.least.0);
            let queued = v.cwnd - target;
            self.queued = Some(queued);
            return (queued > gamma).then(|| Step::set((target + v.mss).min(v.cwnd)).and_exit(Exit::Delay));
        }
        if self.samples > 0 {
            // (expected - actual) * base, with expected = inflight / base and actual = sent / rtt.
            let queued = v.inflight - self.sent.scale(base.0, (self.sum / self.samples).0);
            self.queued = Some(queued);
            // The comparison is made where it would else grow; to whole segments.
            if self.hold && (queued + v.mss / 2).units(v.mss) > u64::from(self.params.gamma) {
                let kept = (v.cwnd - v.cwnd / 8).max(v.mss * 2);
                return Some(Step::set(kept).ssthresh(v.mss * 2).and_exit(Exit::Delay));
            }
        }
        self.hold = !self.hold;
        None
    }
}

impl Startup for Vegas {
    fn needs_on_sent(&self) -> bool {
        true
    }

    fn on_sent(&mut self, _: &View, s: &Sent) {
        self.sent += s.bytes;
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        if let Some(rtt) = ack.rtt {
            self.samples += 1;
            self.sum += rtt;
            self.least = self.least.min(rtt);
            self.base = self.base.min(rtt);
        }
        if self.round.ends_round(ack.upto, v.next) {
            let judged = self.judge(v);
            (self.sent, self.samples, self.sum, self.least) = (Bytes::ZERO, 0, Span::ZERO, Span::MAX);
            if let Some(step) = judged {
                return step;
            }
        }
        if self.hold { Step::HOLD } else { Step::grow(v.slow_start_growth(ack)) }
    }

    fn on_restart(&mut self, _: &View, why: Restart) -> Resume {
        match why {
            // Linux: Reno while recovering. After an idle spell both begin to measure anew.
            Restart::Timeout => Resume::Standard,
            Restart::Idle => Resume::FromStart,
        }
    }

    fn phase(&self) -> &'static str {
        if self.hold { "hold" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("queued_bytes", self.queued.map_or(f64::NAN, |q| q.0 as f64));
    }
}
