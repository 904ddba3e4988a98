//! Jump Start, Liu, Allman, Jin & Wang, `PFLDnet` 2007: everything that the application has queued and the
//! receive window permits is sent in the first round trip, paced over the RTT of the handshake.
//!
//! Reconstructed from descriptions by others, because the paper was not available:
//! - data that fits into the initial window is sent unpaced as usual;
//! - the first ACK ends pacing; the window is then the data sent, and ACKs clock the rest;
//! - if the first flight lost packets, the window is halved as usual, and after recovery set to (D - R) / 2,
//!   where R of the D bytes of the flight were retransmitted.
//!
//! Without an RTT sample of the handshake, a pacer or knowledge of the queued data it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Detected, Exit, Pace, Step};
use crate::units::{Bytes, SendOrder, Rate};
use crate::view::{Ack, Congestion, Handshake, Recovery, Sent, Signal, View};

params! {
    /// Jump Start has no parameters.
    pub struct Params {}
}

/// The first flight.
#[derive(Copy, Clone, Debug)]
struct Flight {
    /// Its size in bytes: D.
    size: Bytes,
    /// How much of it has been sent, in bytes.
    sent: Bytes,
    /// Its last packet; `None` while it is paced.
    end: Option<SendOrder>,
    /// When a loss in it was detected.
    lost: Option<Detected>,
}

impl Flight {
    fn holds(&self, mark: SendOrder) -> bool {
        self.end.is_none_or(|end| mark <= end)
    }

    /// Ends pacing: what has been sent is the flight.
    fn close(&mut self, v: &View) {
        self.end = Some(v.next);
        self.size = self.size.min(self.sent);
    }
}

/// Jump Start, one instance a connection.
#[derive(Clone, Debug)]
pub struct JumpStart {
    pub(crate) params: Params,
    flight: Option<Flight>,
}

impl JumpStart {
    /// Returns an instance with these parameters.
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
        self.flight = Some(Flight { size, sent: Bytes::ZERO, end: None, lost: None });
        Step::set(size).pace(Pace::Rate(rate))
    }

    fn needs_on_sent(&self) -> bool {
        matches!(self.flight, Some(Flight { end: None, .. }))
    }

    fn on_sent(&mut self, _: &View, s: &Sent) {
        if let Some(f) = self.flight.as_mut().filter(|f| f.end.is_none() && !s.retransmission) {
            f.sent += s.bytes;
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match &mut self.flight {
            Some(f) if f.end.is_none() => {
                f.close(v);
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
                if f.end.is_none() {
                    f.close(v);
                }
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
            Some(Flight { end: None, .. }) => "jump",
            Some(Flight { lost: Some(_), .. }) => "jump-recovery",
            _ => "slow-start",
        }
    }
}
