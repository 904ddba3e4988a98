//! Vegas' slow start, Brakmo & Peterson 1995 (in the arithmetic of ns-2 `tcp-vegas.cc`), and that of Linux
//! `tcp_vegas.c`: once per round trip, compares what was sent with what the minimum RTT would permit. When
//! the difference, an estimate of the queue, exceeds `gamma` segments, slow start ends.
//!
//! Departs from Linux (`rules=linux`):
//! - the difference is cwnd - cwnd * base / rtt, as in the paper and in Linux up to 2.6.25. Later kernels
//!   divide by the base RTT, which matters only if the difference is many segments.
//!
//! Departs from both: the avoidance is not Vegas'; and a new measurement begins after a restart only, where Linux
//! begins one after each pause, with a new base RTT.

use super::Startup;
use crate::param::{choice, params};
use crate::round::{Floor, Round, RoundMin};
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
const MIN_SAMPLES: u32 = 3;

/// The slow start of Vegas, one instance a connection.
#[derive(Clone, Debug)]
pub struct Vegas {
    pub(crate) params: Params,
    round: Round,
    base: Floor,
    /// The window does not grow in this round.
    hold: bool,
    // In this round: bytes sent, minimum and number of the RTT samples, and their sum.
    sent: Bytes,
    least: RoundMin,
    sum: Span,
    /// The last estimate of the queue, in bytes.
    queued: Option<Bytes>,
}

impl Vegas {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            round: Round::default(),
            base: Floor::default(),
            hold: false,
            sent: Bytes::ZERO,
            least: RoundMin::default(),
            sum: Span::ZERO,
            queued: None,
        }
    }

    /// Called at the end of a round.
    fn judge(&mut self, v: &View) -> Option<Step> {
        let measured = self.base.0.zip(self.least.least);
        let gamma = v.mss * u64::from(self.params.gamma);
        if self.params.rules == Rules::Linux {
            let (base, least) = measured.filter(|_| self.least.samples >= MIN_SAMPLES)?;
            let target = v.cwnd.scale(base.0, least.0);
            let queued = v.cwnd - target;
            self.queued = Some(queued);
            return (queued > gamma).then(|| Step::set((target + v.mss).min(v.cwnd)).and_exit(Exit::Delay));
        }
        if let Some((base, _)) = measured {
            // (expected - actual) * base, with expected = inflight / base and actual = sent / rtt.
            let queued = v.inflight - self.sent.scale(base.0, (self.sum / u64::from(self.least.samples)).0);
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
            self.sum += rtt;
            self.least.add(rtt);
            self.base.add(rtt);
        }
        if self.round.ends_round(ack.upto, v.next) {
            let judged = self.judge(v);
            (self.sent, self.sum, self.least) = (Bytes::ZERO, Span::ZERO, RoundMin::default());
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
            Restart::Idle | Restart::Avoidance => Resume::FromStart,
        }
    }

    fn phase(&self) -> &'static str {
        if self.hold { "hold" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("queued_bytes", self.queued.map_or(f64::NAN, |q| q.0 as f64));
    }
}
