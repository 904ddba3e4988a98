//! ESS, Enhanced Slow-Start: estimates the rate of the bottleneck from a train of ACKs, jumps to that rate
//! times the RTT, and exits there.
//!
//! A cycle is the round trip of a selected packet, the first one sent after the ACK that ended the previous
//! cycle (at first: after the first ACK). It ends with the first ACK that covers that packet. The RTT of the
//! cycle is the time of this ACK less the time when the selected packet was sent (section 3.2), whatever
//! sample the ACK has: with timestamps and delayed ACKs that is the sample of an earlier packet. The target
//! is the rate of the ACKs in the active part of the cycle times this RTT.
//!
//! Reconstructed because the paper leaves it open (sections 3.2 to 3.5):
//! - t1 and d2 of equation (2), which is garbled in print: t1 is the pause before the last ACK of the cycle
//!   and d2 the bytes that this ACK covers, so that the rate is that of the train between the first ACK (not
//!   counted) and the last of the burst. Only this reading jumps; the other two possible readings are
//!   `estimate=cycle` and `estimate=first-rtt`;
//! - a window equal to the target is enough for an exit (3.4), it need not be larger (3.5). The RTT is
//!   checked first. The window that is compared includes the growth in this cycle; the window at its
//!   beginning would never reach the target;
//! - "k >= 0.5" in 3.4 must be k < 0.5: k is the minimum RTT divided by the RTT of the cycle;
//! - ssthresh, which the paper does not use, becomes the window at the exit.
//!
//! Departs from the paper, which does not mention these cases:
//! - a train of a single ACK or of zero length gives no estimate, and the cycle is ignored;
//! - a cycle in which neither the window nor the startup's own pacing rate limited the sender is ignored, as
//!   is one in which the sending time of the selected packet is unknown;
//! - the jump can be paced at the estimated rate instead of being sent as a burst.

use super::Startup;
use crate::param::{choice, params};
use crate::step::{Exit, Pace, Step};
use crate::units::{Bytes, Fixed, Instant, SendOrder, Rate, Span};
use crate::view::{Ack, Sent, View};

choice! {
    /// Readings of equation (2).
    pub enum Estimate {
        /// The train: bytes acknowledged between the first ACK of a cycle and the last before the pause, over
        /// that time.
        Train = "train",
        /// The whole cycle: t1 and d2 are zero. The window at most doubles.
        Cycle = "cycle",
        /// The bytes of the train over the time by which the cycle is longer than the RTT of its first
        /// packet.
        FirstRtt = "first-rtt",
    }
}

choice! {
    /// How a jump is sent.
    pub enum Jump {
        /// All at once, as a burst.
        Burst = "burst",
        /// Paced at the estimated rate.
        Paced = "paced",
    }
}

params! {
    /// The parameters of ESS, with their defaults.
    pub struct Params {
        /// RTT of a cycle above which the startup ends, in minimum RTTs.
        guard: Fixed = Fixed::milli(2000), "a number from 1, such as 2", |v| v.0 >= Fixed::ONE;
        /// Reading of equation (2).
        estimate: Estimate = Estimate::Train, "one of train, cycle, first-rtt", |_v| true;
        /// How a jump is sent.
        jump: Jump = Jump::Burst, "one of burst, paced", |_v| true;
    }
}

/// Minimum number of ACKs in a train.
const MIN_TRAIN: u32 = 2;

/// The startup ESS, one instance a connection.
#[derive(Clone, Debug)]
pub struct Ess {
    pub(crate) params: Params,
    /// Bytes delivered.
    acked: Bytes,
    cycle: Option<Cycle>,
    /// The last target, in bytes.
    target: Option<Bytes>,
    /// A jump has set a pacing rate.
    paced: bool,
}

#[derive(Clone, Debug)]
struct Cycle {
    /// The next mark to be sent when the cycle began: the first packet beyond it is the selected one.
    selected: SendOrder,
    /// When the selected packet was sent.
    sent_at: Option<Instant>,
    /// When the cycle began, the RTT sample of the ACK that began it, and the bytes delivered then.
    begin: Instant,
    first_rtt: Option<Span>,
    base: Bytes,
    /// Time of the last ACK of the active part, the bytes delivered then, and the number of its ACKs.
    last: Instant,
    acked: Bytes,
    acks: u32,
    /// The window limited the sender throughout.
    full: bool,
}

impl Ess {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, acked: Bytes::ZERO, cycle: None, target: None, paced: false }
    }

    /// Returns the rate of the path by equation (2), or `None` if the cycle gives no estimate.
    fn rate(&self, c: &Cycle, rtt: Span) -> Option<Rate> {
        let active = c.acked - c.base;
        match self.params.estimate {
            Estimate::Train if c.acks < MIN_TRAIN => None,
            Estimate::Train => Rate::new(active, c.last.since(c.begin)),
            Estimate::Cycle => Rate::new(self.acked - c.base, rtt),
            Estimate::FirstRtt => Rate::new(active, Span(rtt.0.saturating_sub(c.first_rtt?.0))),
        }
    }

    /// Called at the end of a cycle with its RTT. Returns an exit or a jump, or `None` if the cycle is
    /// ignored.
    fn judge(&mut self, v: &View, c: &Cycle, rtt: Span, grown: Bytes) -> Option<Step> {
        let least = v.min_rtt.map_or(rtt, |m| m.min(rtt));
        if rtt > least.scale(self.params.guard.0.unsigned_abs(), Fixed::ONE.unsigned_abs()) {
            return Some(Step::grow(grown).and_exit(Exit::Delay));
        }
        let rate = self.rate(c, rtt)?;
        let target = rate.over(rtt);
        self.target = Some(target);
        if target <= v.cwnd + grown {
            return Some(Step::grow(grown).and_exit(Exit::Estimate));
        }
        let jump = Step::set(target);
        self.paced = self.params.jump == Jump::Paced;
        Some(if self.paced { jump.pace(Pace::Rate(rate)) } else { jump })
    }
}

impl Startup for Ess {
    fn needs_on_sent(&self) -> bool {
        self.cycle.as_ref().is_some_and(|c| c.sent_at.is_none())
    }

    fn on_sent(&mut self, _: &View, s: &Sent) {
        if let Some(c) = &mut self.cycle
            && c.sent_at.is_none()
            && s.mark > c.selected
        {
            c.sent_at = Some(s.at);
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        self.acked += ack.delivered;
        let grown = v.slow_start_growth(ack);
        // The startup's own pacing rate also counts as a limit, if there is data to send.
        let paced = self.paced && v.unsent.is_some_and(|u| u > Bytes::ZERO);
        let full = (ack.limit.allows_growth() || paced) && !v.in_recovery;
        match &mut self.cycle {
            Some(c) if ack.upto <= c.selected => {
                (c.last, c.acked) = (v.now, self.acked);
                c.acks += u32::from(ack.delivered.0 > 0);
                c.full &= full;
                return Step::grow(grown);
            }
            _ => {}
        }
        let begun = Cycle {
            selected: v.next,
            sent_at: None,
            begin: v.now,
            first_rtt: ack.rtt,
            base: self.acked,
            last: v.now,
            acked: self.acked,
            acks: 0,
            full,
        };
        let ended = self.cycle.replace(begun);
        ended
            .filter(|c| c.full && full)
            .and_then(|c| self.judge(v, &c, v.now.since(c.sent_at?), grown))
            .unwrap_or(Step::grow(grown))
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("target_bytes", self.target.map_or(f64::NAN, |t| t.0 as f64));
    }
}
