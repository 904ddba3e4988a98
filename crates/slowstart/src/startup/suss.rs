//! SUSS, Arghavani et al., SIGCOMM 2024, as in its authors' patch for Linux 6.8: in a round that it considers
//! safe the window quadruples. Packets released by the ACKs of the first half of a round ("blue") are sent at
//! once; the added packets ("red") are paced over the rest of the round trip. A modified `HyStart` ends it.
//!
//! Departs from the patch:
//! - on loss the avoidance reduces the window, which the patch first lowers to the data in flight;
//! - the patch is for hosts that do not pace; here SUSS turns the host's pacing off. On a host that cannot
//!   pace it is only `HyStart`;
//! - it does not increase the peer's window, as the patch does.

use super::Startup;
use crate::param::params;
use crate::round::RoundMin;
use crate::step::{Exit, Pace, Step, Wake};
use crate::units::{Bytes, Instant, SendOrder, Rate, Span};
use crate::view::{Ack, Handshake, Sent, View};

params! {
    /// The parameters of SUSS, with their defaults.
    pub struct Params {
        /// Maximum number of rounds that quadruple (`suss_max`).
        rounds: u32 = 3, "a whole number from 0 to 8", |v| v <= 8;
        /// Window below which `HyStart` detects nothing, in segments.
        low_window: u32 = 16, "a number of segments", |_v| true;
        /// Maximum time between ACKs of one train.
        ack_delta: Span = Span::millis(2), "a time such as 2ms", |_v| true;
    }
}

/// Minimum RTT for quadrupling.
const MIN_RTT: Span = Span::millis(10);
/// Samples required per round before its delay is judged, and the limits of the permitted rise.
const MIN_SAMPLES: u32 = 8;
const DELAY_MIN: Span = Span::millis(4);
const DELAY_MAX: Span = Span::millis(16);

/// The startup SUSS, one instance a connection.
#[derive(Clone, Debug)]
pub struct Suss {
    pub(crate) params: Params,
    /// The current round; in round 1 the initial window is sent.
    round: u32,
    /// The mark at which it ends, when it began, and the bytes sent in it.
    head: Option<SendOrder>,
    began: Instant,
    sent: Bytes,
    /// The end of the blue part of what is being sent, and of what is being acknowledged (`None` after that).
    next_tail: SendOrder,
    tail: Option<SendOrder>,
    /// Blue bytes acknowledged in this round.
    blue: Bytes,
    /// The growth factor may still exceed two.
    fast: bool,
    /// Duration of the blue ACKs in the previous round (normalised).
    last_train: Span,
    /// The minimum RTT, and the round in which it was measured.
    min: Option<(Span, u32)>,
    jumps: u32,
    plan: Option<Plan>,
    // The modified HyStart.
    last_ack: Instant,
    least: RoundMin,
    cap: Option<Bytes>,
}

/// What is paced in the rest of the round.
#[derive(Clone, Debug)]
struct Plan {
    limit: Bytes,
    rate: Rate,
}

impl Suss {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            round: 1,
            head: None,
            began: Instant::ZERO,
            sent: Bytes::ZERO,
            next_tail: SendOrder::new(0),
            tail: None,
            blue: Bytes::ZERO,
            fast: params.rounds > 0,
            last_train: Span::ZERO,
            min: None,
            jumps: 0,
            plan: None,
            last_ack: Instant::ZERO,
            least: RoundMin::default(),
            cap: None,
        }
    }

    /// Returns the size of the blue part of this round in bytes: the initial window, doubled each round.
    fn blue_size(&self, v: &View) -> Bytes {
        v.iw * (1 << (self.round - 1).min(31))
    }

    /// Returns true if the window may quadruple, where the blue ACKs took `train`.
    fn safe(&self, train: Span, min: Span, found: u32) -> bool {
        let r = self.round;
        if r == 2 {
            return min > MIN_RTT && train < min / 4;
        }
        // Condition 1: with the growth of the train in this round, the train of the next round fits into the
        // minimum RTT.
        let dt = train * (1 << (r - 2));
        let before = self.last_train * (1 << (r - 3));
        let ahead = dt.scale(dt.0, before.0.max(1));
        // Condition 2: extrapolated with its rise so far, the delay stays within an eighth of the minimum
        // RTT.
        let k = u64::from(r - found);
        let now = self.least.least.unwrap_or(min);
        ahead <= min && r < self.params.rounds + 2 && now * (k + 1) <= min * (k + 1) + min * k / 8
    }

    /// On the last blue ACK of a round, returns what to send in addition, and from when.
    fn plan(&mut self, v: &View, ack: &Ack) -> Option<(Plan, Instant)> {
        let (min, found) = self.min?;
        let r = self.round;
        let size = self.blue_size(v);
        let train = v.now.since(self.began).scale((size / 2).0, self.blue.0);
        self.fast &= v.supports_pacing && r < 31 && self.safe(train, min, found);
        if !self.fast {
            return None;
        }
        self.last_train = train;
        let red = size * ((1 << (r - 1)) - 1);
        let red_acks = size / 2 * ((1 << (r - 2)) - 1);
        let limit = v.cwnd + ack.bytes + red - red_acks;
        let guarded = min / (1 << (r - 1));
        let rate = Rate::new(red, min - guarded)?;
        (guarded > train).then(|| (Plan { limit, rate }, v.now + (guarded - train) / 2))
    }

    /// A train that, scaled by the growth so far, exceeds half the minimum RTT sets a limit. A window above
    /// it, or a rise of the delay, ends the startup.
    fn found(&mut self, v: &View, rtt: Span, was_blue: bool) -> Option<Exit> {
        let (min, _) = self.min?;
        if v.cwnd < v.mss * u64::from(self.params.low_window) {
            return None;
        }
        if self.cap.is_some_and(|cap| v.cwnd > cap) {
            return Some(Exit::AckTrain);
        }
        // In a round without quadrupling, every ACK belongs to the train.
        let counts = was_blue || self.jumps == 0;
        if self.cap.is_none() && counts && v.now.since(self.last_ack) <= self.params.ack_delta {
            self.last_ack = v.now;
            let jumps = self.jumps.min(31);
            if v.now.since(self.began) * (1 << jumps) > min / 2 {
                self.cap = Some(v.cwnd + self.blue * ((1 << jumps) - 1));
            }
        }
        self.least.add(rtt);
        let least = self.least.least?;
        (self.least.samples > MIN_SAMPLES && least > min + (min / 8).clamp(DELAY_MIN, DELAY_MAX))
            .then_some(Exit::Delay)
    }
}

impl Startup for Suss {
    fn on_established(&mut self, _: &View, _: &Handshake) -> Step {
        Step::HOLD.pace(Pace::Off)
    }

    fn needs_on_sent(&self) -> bool {
        true
    }

    fn on_sent(&mut self, v: &View, s: &Sent) {
        if !s.retransmission && self.sent < self.blue_size(v) {
            self.sent += s.bytes;
            self.next_tail = s.mark;
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let mut step = Step::grow(v.slow_start_growth(ack));
        if let Some(rtt) = ack.rtt
            && self.min.is_none_or(|(min, _)| rtt < min)
        {
            self.min = Some((rtt.max(Span(1)), self.round));
        }
        if self.head.is_none_or(|h| ack.upto > h) {
            self.round += 1;
            self.tail = Some(self.next_tail);
            (self.head, self.began, self.last_ack) = (Some(v.next), v.now, v.now);
            (self.sent, self.blue, self.plan) = (Bytes::ZERO, Bytes::ZERO, None);
            self.least = RoundMin::default();
            step = step.pace(Pace::Off);
            step.wake = Wake::Cancel;
        }
        let was_blue = self.tail.is_some();
        if self.tail.is_some_and(|t| ack.upto >= t) {
            self.tail = None;
            if self.cap.is_none()
                && let Some((plan, at)) = self.plan(v, ack)
            {
                self.jumps += 1;
                self.plan = Some(plan);
                step = step.wake(at);
            }
        } else if !was_blue && self.plan.is_some() {
            // The plan already includes the growth by red ACKs.
            step = Step::HOLD;
        }
        let found = ack.rtt.and_then(|rtt| self.found(v, rtt, was_blue));
        if was_blue {
            self.blue += ack.bytes;
        }
        match found {
            // After more than one quadrupled round, part of the window is not used yet.
            Some(why) if self.jumps > 1 => Step::set(v.inflight.min(v.cwnd)).and_exit(why),
            Some(why) => Step::exit(why),
            None => step,
        }
    }

    fn on_timer(&mut self, v: &View) -> Step {
        match &self.plan {
            Some(p) if !v.in_recovery => Step::set(p.limit.max(v.cwnd)).pace(Pace::Rate(p.rate)),
            _ => Step::HOLD,
        }
    }

    fn phase(&self) -> &'static str {
        if self.plan.is_some() { "red" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("jumps", f64::from(self.jumps));
        put("round", f64::from(self.round));
        put("train_s", self.last_train.as_secs_f64());
    }
}
