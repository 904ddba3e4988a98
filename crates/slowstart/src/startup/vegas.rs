//! Vegas' slow start, Brakmo & Peterson 1995 (in the arithmetic of ns-2 `tcp-vegas.cc`), and that of Linux
//! `tcp_vegas.c`: once per round trip, compares what was sent with what the minimum RTT would permit. When the
//! difference, an estimate of the queue, exceeds `gamma` segments, slow start ends.
//!
//! Departs from Linux (`rules=linux`):
//! - the difference is cwnd - cwnd * base / rtt, as in the paper and in Linux up to 2.6.25. Later kernels divide by the
//!   base RTT, which matters only if the difference is many segments.
//!
//! Departs from both: the avoidance is not Vegas'.

use super::Startup;
use crate::param::{choice, params};
use crate::round::Round;
use crate::step::{Exit, Resume, Step};
use crate::units::{Bytes, Span};
use crate::view::{Ack, Restart, Sent, View};

choice! {
    /// Whose rules to follow.
    pub enum Rules {
        /// Growth every other round trip. The exit reduces the window by an eighth.
        Original = "original",
        /// Growth every round trip. The exit sets the window to the estimated BDP and one segment.
        Linux = "linux",
    }
}

params! {
    /// Parameters of Vegas' slow start.
    pub struct Params {
        /// Whose rules to follow.
        rules: Rules = Rules::Original, "one of original, linux", |_v| true;
        /// Permitted queue, in segments.
        gamma: u32 = 1, "a number of segments", |_v| true;
    }
}

impl Params {
    /// Returns the parameters of Linux.
    pub fn linux() -> Self {
        Self { rules: Rules::Linux, ..Self::default() }
    }
}

/// Minimum samples per round for Linux; fewer may all be of delayed ACKs.
const MIN_SAMPLES: u64 = 3;

/// Vegas' slow start.
#[derive(Clone, Debug)]
pub struct Vegas {
    pub(crate) params: Params,
    round: Round,
    /// Minimum RTT of the connection.
    base: Span,
    /// The window does not grow in this round.
    hold: bool,
    // In this round: bytes sent, number of RTT samples, their sum and their minimum.
    sent: Bytes,
    samples: u64,
    sum: Span,
    least: Span,
    /// The last estimate of the queue, in bytes.
    queued: Option<Bytes>,
}

impl Vegas {
    /// Returns an instance with these parameters.
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

    /// Called at the end of a round.
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
            // Compared in rounds without growth, before the next growth; rounded to whole segments.
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
            // Linux: Reno after a timeout. After an idle period both start a new measurement.
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
