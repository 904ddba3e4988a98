//! Careful Resume, RFC 9959: when the initial window has arrived over what appears to be the path of an
//! earlier connection, jump to half of that connection's window, paced over one round trip. Keep what the
//! path proves to hold, and retreat below it if packets are lost.
//!
//! Departs from the RFC:
//! - the address of the endpoint, the lifetime of the saved parameters, their deletion after a retreat and
//!   their use by one connection at a time are left to the host; the jump is limited only by its share, not
//!   by a `max_jump`;
//! - the path is checked until the jump, not after it;
//! - data in flight when the jump begins is added to `PipeSize` at once, and again when it is acknowledged:
//!   so the rules (§3.3) and existing implementations do, while the retreat in the appendix adds it once;
//! - in a retreat the host's recovery (PRR) determines when packets are sent, which §4.5 advises against;
//! - after a retreat slow start continues to the threshold before the avoidance takes over, as the threshold
//!   implies.
//!
//! Without saved parameters or a pacer it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Detected, Exit, Pace, Step, Wake};
use crate::units::{Bytes, Fixed, SendOrder, Rate};
use crate::view::{Ack, Congestion, Handshake, PathMemory, Recovery, Sent, Signal, View};

params! {
    /// Parameters of Careful Resume.
    pub struct Params {
        /// Share of the saved window to jump to, at most a half.
        jump: Fixed = Fixed::milli(500), "a share from 0 to 0.5", |v| (0..=Fixed::ONE / 2).contains(&v.0);
        /// Threshold after a retreat, as a share of what was delivered: beta.
        beta: Fixed = Fixed::milli(500), "a share from 0 to 1", |v| (0..=Fixed::ONE).contains(&v.0);
    }
}

/// The minimum saved window for a jump, in initial windows.
const WORTH: u64 = 4;
/// On the same path the RTT is above half and at most ten times the saved RTT.
const LONGER: u64 = 10;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The initial window is being sent or in flight.
    Reconnaissance(PathMemory, FirstFlight),
    /// The jump is being sent, after the mark.
    Unvalidated(SendOrder),
    /// The jump has been sent, up to the mark, and is in flight.
    Validating(SendOrder),
    /// Packets of the jump, which ended at the mark, were lost or marked; with the reason and its detection.
    Retreat(SendOrder, Exit, Detected),
    /// After the retreat: slow start to the threshold.
    Regrow(Exit, Detected),
    /// Ordinary slow start: nothing is remembered, or it is used no longer.
    Normal,
}

/// How much of the initial window has been sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum FirstFlight {
    /// All but this many bytes.
    Without(Bytes),
    /// All of it, up to this mark.
    Complete(SendOrder),
}

/// Careful Resume, one instance a connection.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    pub(crate) params: Params,
    phase: Phase,
    /// The data that the path has been seen to hold, in bytes (`PipeSize`).
    pipe: Bytes,
}

impl CarefulResume {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, phase: Phase::Normal, pipe: Bytes::ZERO }
    }

    fn share(of: Bytes, share: Fixed) -> Bytes {
        of.scale(share.0.unsigned_abs(), Fixed::ONE.unsigned_abs())
    }

    /// On the ACK of the initial window, jumps if the path is the same.
    fn confirm(&mut self, v: &View, ack: &Ack, memory: PathMemory, first: FirstFlight) -> Step {
        let ordinary = Step::grow(v.slow_start_growth(ack));
        if let Some(rtt) = ack.rtt
            && (rtt <= memory.rtt / 2 || rtt > memory.rtt * LONGER)
        {
            // A different path.
            self.phase = Phase::Normal;
            return ordinary;
        }
        let FirstFlight::Complete(end) = first else { return ordinary };
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

    /// Called when no more of the jump will be sent. Keeps the data in flight, if it exceeds `PipeSize`.
    fn weigh(&mut self, v: &View) -> Step {
        let kept = if v.inflight < v.iw || v.inflight <= self.pipe {
            // The jump was hardly used, or all of it has been delivered.
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
            self.phase = Phase::Reconnaissance(memory, FirstFlight::Without(v.iw));
        }
        Step::HOLD
    }

    fn needs_on_sent(&self) -> bool {
        matches!(self.phase, Phase::Reconnaissance(_, FirstFlight::Without(_)))
    }

    fn on_sent(&mut self, _: &View, s: &Sent) {
        if let Phase::Reconnaissance(_, first) = &mut self.phase
            && let FirstFlight::Without(rest) = *first
            && !s.retransmission
        {
            let rest = rest - s.bytes;
            *first = if rest.0 == 0 { FirstFlight::Complete(s.mark) } else { FirstFlight::Without(rest) };
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match self.phase {
            Phase::Reconnaissance(memory, first) => self.confirm(v, ack, memory, first),
            Phase::Unvalidated(from) => {
                self.pipe += ack.delivered;
                // Until the first packet of the jump is acknowledged, or all of it has been sent.
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

    /// One round trip after the jump began.
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
            // Further losses in the same flight.
            Phase::Retreat(..) if c.signal == Signal::Loss && !c.first => Step::HOLD,
            Phase::Retreat(_, _, seen) | Phase::Regrow(_, seen) => Step::exit(c.signal.into()).detected(seen),
            _ => Step::exit(c.signal.into()),
        }
    }

    fn on_recovered(&mut self, _v: &View, r: &Recovery) -> Step {
        if r.undone && matches!(self.phase, Phase::Retreat(..) | Phase::Regrow(..)) {
            // Nothing was lost: window and threshold are restored.
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
