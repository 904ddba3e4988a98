//! Careful Resume, draft-ietf-tsvwg-careful-resume-24: once the initial window has arrived over what seems to be the
//! path of an earlier connection, jump to half of that connection's window, paced over a round trip; keep of it what
//! proves to be there, and retreat below that if packets are lost.
//!
//! Departs from the draft:
//! - the endpoint's address, the lifetime of what is remembered, its deletion after a retreat and that one connection
//!   at a time uses it are the host's business; there is no `max_jump` besides the share;
//! - whether the path is the same is judged until the jump, not after it;
//! - what was in flight when the jump began counts in `PipeSize` at once and again when it is acknowledged: so the rules
//!   of the draft (§3.3) and its implementations have it, while the retreat of its appendix counts it once;
//! - a retreat is paid out as the host's recovery has it (PRR, which §4.5 advises against);
//! - after a retreat the window grows by slow start to its threshold before avoidance takes over, which is what the
//!   threshold of the draft implies.
//!
//! With nothing remembered, or without a pacer, it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Detected, Exit, Pace, Step, Wake};
use crate::units::{Bytes, Fixed, Mark, Rate};
use crate::view::{Ack, Congestion, Handshake, PathMemory, Recovery, Signal, View};

params! {
    /// Parameters of Careful Resume.
    pub struct Params {
        /// The share of the remembered window to jump to, at most a half.
        jump: Fixed = Fixed::milli(500), "a share from 0 to 0.5", |v| (0..=Fixed::ONE / 2).contains(&v.0);
        /// The threshold after a retreat, as a share of what got through: beta.
        beta: Fixed = Fixed::milli(500), "a share from 0 to 1", |v| (0..=Fixed::ONE).contains(&v.0);
    }
}

/// A window remembered is worth a jump from so many initial windows on.
const WORTH: u64 = 4;
/// The same path has a round trip above half and up to ten times the remembered one.
const LONGER: u64 = 10;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The initial window is on its way: it ends at the mark.
    Reconnaissance(PathMemory, Mark),
    /// More than is known to be safe is leaving: it begins after the mark.
    Unvalidated(Mark),
    /// It has left, up to the mark, and is on its way.
    Validating(Mark),
    /// Some of it was lost or marked, as was then seen; it ended at the mark.
    Retreat(Mark, Exit, Detected),
    /// The retreat is over; slow start to the threshold.
    Regrow(Exit, Detected),
    /// No more than ordinary slow start.
    Normal,
}

/// Careful Resume.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    pub(crate) params: Params,
    phase: Phase,
    /// What the path has been seen to hold: the draft's `PipeSize`.
    pipe: Bytes,
}

impl CarefulResume {
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, phase: Phase::Normal, pipe: Bytes::ZERO }
    }

    fn share(of: Bytes, share: Fixed) -> Bytes {
        of.scale(share.0.unsigned_abs(), Fixed::ONE.unsigned_abs())
    }

    /// The initial window has arrived, if this ACK says so: jump, or let it be.
    fn confirm(&mut self, v: &View, ack: &Ack, memory: PathMemory, end: Mark) -> Step {
        let ordinary = Step::grow(v.slow_start_growth(ack));
        if let Some(rtt) = ack.rtt
            && (rtt <= memory.rtt / 2 || rtt > memory.rtt * LONGER)
        {
            // Another path.
            self.phase = Phase::Normal;
            return ordinary;
        }
        if ack.upto < end || !ack.limit.allows_growth() || v.in_recovery {
            return ordinary;
        }
        self.phase = Phase::Normal;
        let jump = Self::share(memory.cwnd, self.params.jump);
        let Some((rtt, rate)) = ack.rtt.or(v.srtt).and_then(|rtt| Some((rtt, Rate::new(jump, rtt)?))) else {
            return ordinary;
        };
        if jump <= v.cwnd {
            return ordinary;
        }
        self.phase = Phase::Unvalidated(v.next);
        self.pipe = v.inflight;
        Step::set(jump).pace(Pace::Rate(rate)).wake(v.now + rtt)
    }

    /// No more of the jump will leave: keep what is in flight, if that is more than the path has been seen to hold.
    fn weigh(&mut self, v: &View) -> Step {
        let kept = if v.inflight < v.iw || v.inflight <= self.pipe {
            // The jump was hardly used, or all of it is known to fit.
            self.phase = Phase::Normal;
            self.pipe.max(v.iw)
        } else {
            self.phase = Phase::Validating(v.next);
            v.inflight
        };
        Step { wake: Wake::Cancel, ..Step::set(v.cwnd.min(kept)).pace(Pace::Host) }
    }
}

impl Startup for CarefulResume {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn uses_path_memory(&self) -> bool {
        true
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        if let Some(memory) = hs.remembered.filter(|m| m.cwnd >= v.iw * WORTH && v.supports_pacing) {
            self.phase = Phase::Reconnaissance(memory, Mark(v.next.0.saturating_add(v.iw.0)));
        }
        Step::HOLD
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match self.phase {
            Phase::Reconnaissance(memory, end) => self.confirm(v, ack, memory, end),
            Phase::Unvalidated(from) => {
                self.pipe += ack.delivered;
                // Until the first of it is acknowledged, or all of it had left before.
                if ack.newest.mark > from || ack.prior_inflight + v.mss > v.cwnd {
                    return self.weigh(v);
                }
                Step::HOLD
            }
            Phase::Validating(end) => {
                self.pipe += ack.delivered;
                if ack.upto >= end {
                    self.phase = Phase::Normal;
                }
                Step::grow(v.slow_start_growth(ack))
            }
            Phase::Retreat(end, why, seen) => {
                self.pipe += ack.delivered;
                if ack.upto < end {
                    return Step::HOLD;
                }
                self.phase = Phase::Regrow(why, seen);
                Step::HOLD.ssthresh(Self::share(self.pipe, self.params.beta))
            }
            Phase::Regrow(why, seen) => match v.ssthresh {
                Some(t) if v.cwnd < t => Step::grow(v.slow_start_growth(ack)),
                _ => Step::exit(why).detected(seen),
            },
            Phase::Normal => Step::grow(v.slow_start_growth(ack)),
        }
    }

    /// A round trip after the jump began.
    fn on_timer(&mut self, v: &View) -> Step {
        if let Phase::Unvalidated(_) = self.phase { self.weigh(v) } else { Step::HOLD }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        let seen = Detected { at: v.now, cwnd: v.cwnd };
        match self.phase {
            Phase::Unvalidated(_) | Phase::Validating(_) if c.signal != Signal::Timeout => {
                let end = if let Phase::Validating(end) = self.phase { end } else { v.next };
                self.phase = Phase::Retreat(end, c.signal.into(), seen);
                Step { wake: Wake::Cancel, ..Step::set((self.pipe / 2).min(v.cwnd)).pace(Pace::Host) }
            }
            // Further losses of what is being retreated from.
            Phase::Retreat(..) if c.signal == Signal::Loss && !c.first => Step::HOLD,
            Phase::Retreat(_, _, seen) | Phase::Regrow(_, seen) => Step::exit(c.signal.into()).detected(seen),
            _ => Step::exit(c.signal.into()),
        }
    }

    fn on_recovered(&mut self, _v: &View, r: &Recovery) -> Step {
        if r.undone && matches!(self.phase, Phase::Retreat(..) | Phase::Regrow(..)) {
            // Nothing was lost: the window of before comes back, and with it its threshold.
            self.phase = Phase::Normal;
        }
        Step::HOLD
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Reconnaissance(..) => "reconnaissance",
            Phase::Unvalidated(_) => "unvalidated",
            Phase::Validating(_) => "validating",
            Phase::Retreat(..) => "safe-retreat",
            Phase::Regrow(..) | Phase::Normal => "slow-start",
        }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("pipe_bytes", self.pipe.0 as f64);
    }
}
