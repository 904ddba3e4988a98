//! Quick-Start, RFC 4782: the handshake asks the routers of the path for a rate; if all of them grant one, the first
//! window is what that rate carries in a round trip, and leaves at that rate.
//!
//! Departs from the RFC:
//! - a request is made in the handshake only, not in the midst of a connection or after an idle period, and always
//!   for the same rate, whatever there is to be sent;
//! - TTL difference and nonce are the host's business: it hands over only a rate that every router has granted. No
//!   report of the approved rate goes back to them, and acknowledgements on the way back are not thinned;
//! - what was sent when Quick-Start mode ends, to which §4.4 cuts the window, counts as no less than the initial window.
//!
//! Without a grant it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Detected, Exit, Pace, Step};
use crate::units::{Bytes, Mark, Rate};
use crate::view::{Ack, Congestion, Handshake, Recovery, Signal, View};

params! {
    /// Parameters of Quick-Start.
    pub struct Params {
        /// The rate asked for, as the option codes it: 40 kbit/s * 2^N. 15 is 1.3 Gbit/s.
        request: u32 = 15, "a number from 1 to 15", |v| (1..=15).contains(&v);
    }
}

/// The bytes of a header that a granted rate carries with each segment: H of §4.4.
const HEADER: Bytes = Bytes(40);

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was granted, or all of the window has arrived.
    Ordinary,
    /// The window leaves; it begins after this mark.
    Granted(Mark),
    /// It began after this mark and has left up to the other, and not all of it has arrived.
    Validating(Mark, Mark),
    /// Some of it was lost or marked, as was then seen: slow start to the threshold.
    Regrow(Exit, Detected),
}

/// Quick-Start.
#[derive(Clone, Debug)]
pub struct QuickStart {
    pub(crate) params: Params,
    phase: Phase,
}

impl QuickStart {
    /// With these parameters.
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
        self.phase = Phase::Granted(v.next);
        // The grant is of packets, the pacer of payload.
        Step::set(window).pace(Pace::Rate(rate.scale(v.mss.0, (v.mss + HEADER).0)))
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match self.phase {
            Phase::Granted(from) => {
                self.phase = Phase::Validating(from, v.next);
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
        let from = match self.phase {
            Phase::Granted(from) => from,
            // A hole is where not everything has arrived; a mark is on what has.
            Phase::Validating(from, to) if c.signal != Signal::Ecn || c.newest.mark <= to => from,
            Phase::Regrow(..) if c.signal == Signal::Loss && !c.first => return Step::HOLD,
            Phase::Regrow(_, seen) => return Step::exit(c.signal.into()).detected(seen),
            Phase::Ordinary | Phase::Validating(..) => return Step::exit(c.signal.into()),
        };
        // §4.6: as if nothing had been granted, by slow start from the default initial window; the threshold at most
        // half of what got through.
        let through = v.next.since(from) - v.inflight - c.lost;
        let half = (through / 2).max(v.mss * 2);
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
            // Nothing was lost: the window of before comes back, and with it its threshold.
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
