//! Quick-Start, RFC 4782: the handshake asks the routers of the path for a rate; if all of them grant one, the first
//! window is what that rate carries in a round trip, and leaves at that rate.
//!
//! Departs from the RFC:
//! - a request is made in the handshake only, not after an idle period (§4.2);
//! - an ACK of the window that moves is read as the end of Quick-Start mode even if part of the window was not sent:
//!   the window then is what was sent, as §4.4 has it.
//!
//! Without a grant it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Pace, Step};
use crate::units::{Bytes, Mark, Rate};
use crate::view::{Ack, Congestion, Handshake, Signal, View};

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
    /// It has left up to this mark, beginning after the other, and not all of it has arrived.
    Validating(Mark, Mark),
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
    fn request(&self) -> Option<Rate> {
        Some(Rate(40_000 << self.params.request))
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        let (Some(rate), Some(rtt), true) = (hs.granted, hs.rtt, v.paces) else { return Step::HOLD };
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
                Step::grow(v.earned(ack))
            }
            Phase::Ordinary => Step::grow(v.earned(ack)),
        }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        let (from, granted) = match self.phase {
            Phase::Granted(from) => (from, true),
            Phase::Validating(from, to) => (from, c.newest.mark <= to),
            Phase::Ordinary => (Mark(0), false),
        };
        self.phase = Phase::Ordinary;
        if granted && matches!(c.signal, Signal::Loss | Signal::Ecn) {
            // §4.6.1: as if nothing had been granted, from the default initial window; the threshold at most half of
            // what got through.
            let through = v.next.since(from) - v.inflight - c.lost;
            return Step::set(v.iw).ssthresh((through / 2).max(v.mss * 2)).pace(Pace::Host).and_exit(c.signal.into());
        }
        Step::exit(c.signal.into())
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Ordinary => "slow-start",
            Phase::Granted(_) => "granted",
            Phase::Validating(..) => "validating",
        }
    }
}
