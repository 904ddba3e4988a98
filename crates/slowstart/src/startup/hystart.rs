//! `HyStart`, Ha & Rhee 2011, as Linux `tcp_cubic.c` has it: leave when the train of closely spaced ACKs has grown as
//! long as the path, or when the round's least RTT rises by an eighth.
//!
//! Departs from the paper, as Linux does:
//! - delay is compared with the least RTT of the connection, not of the round before, and its threshold is an eighth,
//!   at least 4 ms and at most 16 ms;
//! - a paced sender's train is compared with the whole least RTT, plus a cushion for bursts of a GSO packet's size;
//! - nothing is detected below `low_window`.

use super::Startup;
use crate::param::{choice, params};
use crate::step::{Exit, Resume, Step};
use crate::units::{Bytes, Instant, Mark, Span};
use crate::view::{Ack, Restart, View};

choice! {
    /// Which detector may end it.
    pub enum Detect {
        /// Both.
        Both = "both",
        /// The ACK train.
        Train = "train",
        /// The rise in delay.
        Delay = "delay",
    }
}

choice! {
    /// Whose rules for the beginning of a round.
    pub enum Rules {
        /// Since January 2025 (25c1a9ca53db): whatever the window is.
        V613 = "6.13",
        /// From November 2021 (4e1fddc98d25): only once the window has reached `low_window`.
        V516 = "5.16",
    }
}

params! {
    /// Parameters of `HyStart` (Linux: the module parameters of `tcp_cubic`).
    pub struct Params {
        /// Whose rules for the beginning of a round.
        rules: Rules = Rules::V613, "one of 6.13, 5.16", |_v| true;
        /// Which detector may end it.
        detect: Detect = Detect::Both, "one of both, train, delay", |_v| true;
        /// The window in segments below which nothing is detected.
        low_window: u32 = 16, "a number of segments", |_v| true;
        /// ACKs no further apart than this belong to one train.
        ack_delta: Span = Span::millis(2), "a time such as 2ms", |_v| true;
    }
}

/// Samples a round needs before its delay is judged.
const MIN_SAMPLES: u32 = 8;
/// Bounds of the delay threshold.
const DELAY_MIN: Span = Span::millis(4);
const DELAY_MAX: Span = Span::millis(16);

/// `HyStart` as deployed.
#[derive(Clone, Debug)]
pub struct HyStart {
    pub(crate) params: Params,
    /// Least RTT of the connection.
    delay_min: Option<Span>,
    round: Option<Round>,
}

#[derive(Clone, Debug)]
struct Round {
    start: Instant,
    /// The newest ACK of the train.
    last_ack: Instant,
    end: Mark,
    least: Option<Span>,
    samples: u32,
}

impl Round {
    fn new(now: Instant, end: Mark) -> Self {
        Self { start: now, last_ack: now, end, least: None, samples: 0 }
    }
}

impl HyStart {
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, delay_min: None, round: None }
    }

    /// A cushion for the bursts that segmentation offload and receive aggregation make (`hystart_ack_delay`).
    fn cushion(v: &View) -> Span {
        let burst = v.gso_max * 4;
        v.pacing_rate.filter(|r| r.0 > 0).map_or(Span::ZERO, |r| r.time_for(burst).min(Span::millis(1)))
    }

    fn found(&mut self, v: &View, delay_min: Span, rtt: Span) -> Option<Exit> {
        let p = &self.params;
        let r = self.round.as_mut()?;
        if p.detect != Detect::Delay && v.now.since(r.last_ack) <= p.ack_delta {
            r.last_ack = v.now;
            let whole = delay_min + Self::cushion(v);
            let threshold = if v.pacing_on { whole } else { whole / 2 };
            if v.now.since(r.start) > threshold {
                return Some(Exit::AckTrain);
            }
        }
        if p.detect != Detect::Train {
            let least = r.least.map_or(rtt, |l| l.min(rtt));
            r.least = Some(least);
            if r.samples < MIN_SAMPLES {
                r.samples += 1;
            } else if least > delay_min + (delay_min / 8).clamp(DELAY_MIN, DELAY_MAX) {
                return Some(Exit::Delay);
            }
        }
        None
    }
}

impl Startup for HyStart {
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let grow = Step::grow(v.earned(ack));
        let Some(rtt) = ack.rtt else { return grow };
        let rtt = rtt.max(Span::micros(1));
        let delay_min = self.delay_min.map_or(rtt, |d| d.min(rtt));
        self.delay_min = Some(delay_min);
        // A startup that has reached its threshold no longer looks (`tcp_in_slow_start`).
        if v.ssthresh.is_some_and(|t| v.cwnd >= t) {
            return grow;
        }
        let low = v.cwnd < v.mss * u64::from(self.params.low_window);
        if low && self.params.rules == Rules::V516 {
            return grow;
        }
        // `after(snd_una, end_seq)`: strictly.
        if self.round.as_ref().is_none_or(|r| ack.upto > r.end) {
            self.round = Some(Round::new(v.now, v.next));
        }
        if low {
            return grow;
        }
        match self.found(v, delay_min, rtt) {
            Some(why) => Step::exit(why),
            None => grow,
        }
    }

    fn on_restart(&mut self, _: &View, why: Restart) -> Resume {
        // CA_Loss resets it; the restart of an idle window does not.
        match why {
            Restart::Timeout => Resume::AsBorn,
            Restart::Idle => Resume::Standard,
        }
    }

    fn gauges(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let span = |s: Option<Span>| s.map_or(f64::NAN, Span::as_secs_f64);
        put("delay_min_s", span(self.delay_min));
        put("round_least_s", span(self.round.as_ref().and_then(|r| r.least)));
        put("train_s", span(self.round.as_ref().map(|r| r.last_ack.since(r.start))));
    }
}

/// Nothing is kept for each packet.
const _: () = assert!(size_of::<HyStart>() <= 144 && size_of::<Bytes>() == 8);
