//! Quick-Start, RFC 4782: the handshake requests a rate from the routers of the path. If all of them grant
//! one, the first window is the product of that rate and the RTT, paced at that rate.
//!
//! Departs from the RFC:
//! - the request is made only in the handshake, not later in a connection, and always for the same rate,
//!   independent of the data to be sent;
//! - the TTL difference and the nonce are left to the host, which passes only a rate that every router has
//!   granted. No report of the approved rate is sent, and ACKs are not thinned;
//! - the window to which §4.4 reduces at the end of Quick-Start mode is at least the initial window.
//!
//! Without a grant it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Detected, Exit, Pace, Step};
use crate::units::{Bytes, SendOrder, Rate};
use crate::view::{Ack, Congestion, Handshake, Recovery, Signal, View};

params! {
    /// The parameters of Quick-Start, with their defaults.
    pub struct Params {
        /// The rate to request, as encoded in the option: 40 kbit/s * 2^N. 15 is 1.3 Gbit/s.
        request: u32 = 15, "a number from 1 to 15", |v| (1..=15).contains(&v);
    }
}

/// Header bytes per segment that count towards the granted rate: H of §4.4.
const HEADER: Bytes = Bytes(40);

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was granted, or the whole window has arrived.
    Ordinary,
    /// The window is being sent. What had been delivered before it, in bytes.
    Granted(Bytes),
    /// All of the window has been sent, up to the mark, and not all has arrived. What had been delivered
    /// before it.
    Validating(Bytes, SendOrder),
    /// Packets of it were lost or marked, with the reason and its detection: slow start to the threshold.
    Regrow(Exit, Detected),
}

/// The startup Quick-Start, one instance a connection.
#[derive(Clone, Debug)]
pub struct QuickStart {
    pub(crate) params: Params,
    phase: Phase,
}

impl QuickStart {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, phase: Phase::Ordinary }
    }
}

impl Startup for QuickStart {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn requested_rate(&self) -> Option<Rate> {
        Some(Rate(40_000 << self.params.request))
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        let (Some(rate), Some(rtt), true) = (hs.granted, hs.rtt, v.supports_pacing) else {
            return Step::HOLD;
        };
        let window = v.mss * rate.over(rtt).units(v.mss + HEADER);
        if window <= v.cwnd {
            return Step::HOLD;
        }
        self.phase = Phase::Granted(v.delivered);
        // The grant includes headers; the pacer counts payload.
        Step::set(window).pace(Pace::Rate(rate.scale(v.mss.0, (v.mss + HEADER).0)))
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match self.phase {
            Phase::Granted(before) => {
                self.phase = Phase::Validating(before, v.next);
                Step::set(v.cwnd.min(ack.prior_inflight.max(v.iw))).pace(Pace::Host)
            }
            Phase::Validating(_, to) => {
                if ack.upto >= to {
                    self.phase = Phase::Ordinary;
                }
                Step::grow(v.slow_start_growth(ack))
            }
            Phase::Ordinary => Step::grow(v.slow_start_growth(ack)),
            Phase::Regrow(why, seen) => match v.ssthresh {
                Some(t) if v.cwnd < t => Step::grow(v.slow_start_growth(ack)),
                _ => Step::exit(why).detected(seen),
            },
        }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        let before = match self.phase {
            Phase::Granted(before) => before,
            // A loss is in what has not arrived; a mark is on a packet that has.
            Phase::Validating(before, to) if c.signal != Signal::Ecn || c.newest.mark <= to => before,
            Phase::Regrow(..) if c.signal == Signal::Loss && !c.first => return Step::HOLD,
            Phase::Regrow(_, seen) => return Step::exit(c.signal.into()).detected(seen),
            Phase::Ordinary | Phase::Validating(..) => return Step::exit(c.signal.into()),
        };
        // §4.6: continue as without a grant, with slow start from the default initial window; the threshold
        // is at most half of what was delivered.
        let half = ((v.delivered - before) / 2).max(v.mss * 2);
        match c.signal {
            Signal::Loss | Signal::Ecn => {
                self.phase = Phase::Regrow(c.signal.into(), Detected { at: v.now, cwnd: v.cwnd });
                Step::set(v.iw).ssthresh(half).pace(Pace::Host)
            }
            Signal::Timeout => Step::exit(Exit::Timeout).ssthresh(half),
            Signal::LocalStall => Step::exit(Exit::LocalStall),
        }
    }

    fn on_recovered(&mut self, _v: &View, r: &Recovery) -> Step {
        if r.undone && matches!(self.phase, Phase::Regrow(..)) {
            // Nothing was lost: window and threshold are restored.
            self.phase = Phase::Ordinary;
        }
        Step::HOLD
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Ordinary | Phase::Regrow(..) => "slow-start",
            Phase::Granted(_) => "granted",
            Phase::Validating(..) => "validating",
        }
    }
}
