//! Jump Start: all that the application has queued and the peer has room for leaves in the first round trip, paced over
//! the handshake's (Liu, Allman, Jin & Wang, `PFLDnet` 2007).
//!
//! Reconstructed from descriptions by others: the paper itself was not read. So are:
//! - what fits into the initial window leaves as ever, unpaced;
//! - the first ACK ends pacing, and the window is then what has been sent; ACKs clock the rest;
//! - where the first flight lost packets the window is halved as ever, and after recovery (D - R) / 2: R of the D bytes
//!   of the flight were sent again.
//!
//! Without a round trip of the handshake, a pacer or knowledge of what is queued it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Detected, Exit, Pace, Step};
use crate::units::{Bytes, Mark, Rate};
use crate::view::{Ack, Congestion, Handshake, Recovery, Signal, View};

params! {
    /// Jump Start has no parameters.
    pub struct Params {}
}

/// The first flight.
#[derive(Copy, Clone, Debug)]
struct Flight {
    /// Its bytes: D.
    size: Bytes,
    /// Where it begins.
    from: Mark,
    /// Pacing lasts.
    paced: bool,
    /// When it was found to have lost packets.
    lost: Option<Detected>,
}

impl Flight {
    fn holds(&self, mark: Mark) -> bool {
        mark.0 <= self.from.0.saturating_add(self.size.0)
    }
}

/// Jump Start.
#[derive(Clone, Debug)]
pub struct JumpStart {
    pub(crate) params: Params,
    flight: Option<Flight>,
}

impl JumpStart {
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, flight: None }
    }
}

impl Startup for JumpStart {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        let (Some(rtt), Some(queued), true) = (hs.rtt, v.unsent, v.supports_pacing) else {
            return Step::HOLD;
        };
        let size = queued.min(v.rwnd);
        let Some(rate) = Rate::new(size, rtt).filter(|_| size > v.iw) else { return Step::HOLD };
        self.flight = Some(Flight { size, from: v.next, paced: true, lost: None });
        Step::set(size).pace(Pace::Rate(rate))
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match &mut self.flight {
            Some(f) if f.paced => {
                f.paced = false;
                f.size = f.size.min(ack.prior_inflight);
                Step::set(v.cwnd.min(ack.prior_inflight.max(v.iw))).pace(Pace::Host)
            }
            Some(f) if f.lost.is_some() => Step::HOLD,
            _ => Step::grow(v.slow_start_growth(ack)),
        }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        match &mut self.flight {
            Some(Flight { lost: Some(_), .. }) if c.signal == Signal::Loss => Step::HOLD,
            Some(f) if c.signal == Signal::Loss && f.holds(c.newest.mark) => {
                f.paced = false;
                f.size = f.size.min(v.next.since(f.from));
                f.lost = Some(Detected { at: v.now, cwnd: v.cwnd });
                Step::set(v.cwnd / 2).ssthresh(v.cwnd / 2).pace(Pace::Host)
            }
            _ => {
                self.flight = None;
                Step::exit(c.signal.into())
            }
        }
    }

    fn on_recovered(&mut self, v: &View, r: &Recovery) -> Step {
        let Some((f, seen)) = self.flight.take().and_then(|f| Some((f, f.lost?))) else { return Step::HOLD };
        if r.undone {
            return Step::HOLD;
        }
        let window = ((f.size - r.retransmitted) / 2).max(v.mss * 2);
        Step::set(window).ssthresh(window).and_exit(Exit::Loss).detected(seen)
    }

    fn phase(&self) -> &'static str {
        match self.flight {
            Some(Flight { paced: true, .. }) => "jump",
            Some(Flight { lost: Some(_), .. }) => "jump-recovery",
            _ => "slow-start",
        }
    }
}
