//! ESS, Enhanced Slow-Start: the train of ACKs that a flight makes gives the rate of the bottleneck; jump to that rate
//! times the round trip, and stop there.
//!
//! A cycle is the round trip of a selected packet: the first one sent after the ACK that ended the cycle before (first:
//! after the first ACK). At its end the rate is that of the ACKs in its active part, and the target is the rate times
//! the selected packet's RTT.
//!
//! Reconstructed because the paper leaves it open (sections 3.2 to 3.5):
//! - t1 and d2 of equation (2), its garbled part: t1 is the silence before the cycle's last ACK and d2 what that ACK
//!   covers, so that the rate is that of the train between the first ACK (not counted) and the last of the burst. Only
//!   this reading jumps; the other two that the print allows are `estimate=cycle` and `estimate=first-rtt`;
//! - the window is left at or above the target (3.4), not only above it (3.5), the RTT is judged before it is used, and
//!   the window that is compared has grown by this cycle's ACKs: held against that of its beginning, a full path would
//!   never end it;
//! - "k >= 0.5" in 3.4 must be below: k is the least RTT over the selected packet's, which may not exceed twice the least;
//! - ssthresh, which the paper does not use, is the window it leaves with.
//!
//! Departs from the paper, which is silent on it:
//! - a train of one ACK or of no length says nothing, and the cycle is passed over;
//! - so is a cycle in which neither the window nor its own rate held the sender back, or whose last ACK brings no RTT;
//! - the jump may be paced at the rate found, instead of leaving in a burst.

use super::Startup;
use crate::param::{choice, params};
use crate::step::{Exit, Pace, Step};
use crate::units::{Bytes, Fixed, Instant, Mark, Rate, Span};
use crate::view::{Ack, View};

choice! {
    /// How equation (2) is read.
    pub enum Estimate {
        /// The train: what was acknowledged between a cycle's first ACK and the last before the silence, over that time.
        Train = "train",
        /// The whole cycle: t1 and d2 are nothing. The window at most doubles.
        Cycle = "cycle",
        /// The part of the cycle that is longer than its first packet's round trip.
        FirstRtt = "first-rtt",
    }
}

choice! {
    /// How the jump leaves.
    pub enum Jump {
        /// At once.
        Burst = "burst",
        /// At the rate found.
        Paced = "paced",
    }
}

params! {
    /// Parameters of ESS.
    pub struct Params {
        /// The selected packet's RTT that ends it, in least RTTs.
        guard: Fixed = Fixed::milli(2000), "a number from 1, such as 2", |v| v.0 >= Fixed::ONE;
        /// How equation (2) is read.
        estimate: Estimate = Estimate::Train, "one of train, cycle, first-rtt", |_v| true;
        /// How the jump leaves.
        jump: Jump = Jump::Burst, "one of burst, paced", |_v| true;
    }
}

/// ACKs that make a train.
const TRAIN: u32 = 2;

/// ESS.
#[derive(Clone, Debug)]
pub struct Ess {
    pub(crate) params: Params,
    acked: Bytes,
    cycle: Option<Cycle>,
    /// The target when it was last computed.
    target: Option<Bytes>,
    /// It has jumped at a rate.
    paced: bool,
}

#[derive(Clone, Debug)]
struct Cycle {
    /// Whatever is beyond it acknowledges the selected packet.
    selected: Mark,
    /// When it began, with which RTT, and what had been acknowledged.
    begin: Instant,
    first_rtt: Option<Span>,
    base: Bytes,
    /// The newest ACK of the active part, and what had been acknowledged then.
    last: Instant,
    acked: Bytes,
    acks: u32,
    /// The window has held the sender back throughout.
    full: bool,
}

impl Ess {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, acked: Bytes::ZERO, cycle: None, target: None, paced: false }
    }

    /// Equation (2): the rate of the path, if the cycle tells of it.
    fn rate(&self, c: &Cycle, rtt: Span) -> Option<Rate> {
        let active = c.acked - c.base;
        match self.params.estimate {
            Estimate::Train if c.acks < TRAIN => None,
            Estimate::Train => Rate::new(active, c.last.since(c.begin)),
            Estimate::Cycle => Rate::new(self.acked - c.base, rtt),
            Estimate::FirstRtt => Rate::new(active, Span(rtt.0.saturating_sub(c.first_rtt?.0))),
        }
    }

    /// The end of a cycle: leave, jump, or go on as before.
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
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        self.acked += ack.delivered;
        let grown = v.slow_start_growth(ack);
        // A rate of its own holds the sender back as the window does, if there is something to send.
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
            begin: v.now,
            first_rtt: ack.rtt,
            base: self.acked,
            last: v.now,
            acked: self.acked,
            acks: 0,
            full,
        };
        let ended = self.cycle.replace(begun);
        let told = ended.filter(|c| c.full && full).zip(ack.rtt);
        told.and_then(|(c, rtt)| self.judge(v, &c, rtt, grown)).unwrap_or(Step::grow(grown))
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("target_bytes", self.target.map_or(f64::NAN, |t| t.0 as f64));
    }
}
