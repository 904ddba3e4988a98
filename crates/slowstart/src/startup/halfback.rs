//! Halfback, Li, Dong & Godfrey, `CoNEXT` 2015: a short flow is paced over the first round trip. Then its
//! packets are retransmitted proactively, the last packet first, one per ACK, until the retransmissions meet
//! the cumulative ACK.
//!
//! Reconstructed from descriptions by others, because the paper was not available:
//! - of a flow larger than `limit`, that much is paced and retransmitted, and the rest follows in slow start;
//! - while packets are retransmitted, each ACK sends one retransmission and the window does not grow;
//! - a packet that was selectively acknowledged is not retransmitted, and no other packet takes its place.
//!
//! Without an RTT sample of the handshake, a pacer, a cumulative acknowledgement or knowledge of the queued
//! data it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Pace, Step};
use crate::units::{Bytes, Rate};
use crate::view::{Ack, Handshake, Sent, View};

params! {
    /// The parameters of Halfback, with their defaults.
    pub struct Params {
        /// Maximum bytes to pace: the paper's flow-control window of 141 kB.
        limit: u32 = 141_000, "a number of bytes from 1", |v| v > 0;
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The flow is paced; this many bytes are still to be sent.
    Paced(Bytes),
    /// Packets are retransmitted. The next one ends this many bytes before the end of the data sent.
    Reverse(Bytes),
    /// Standard slow start, without a paced flight or after one.
    Ordinary,
}

/// The startup Halfback, one instance a connection.
#[derive(Clone, Debug)]
pub struct Halfback {
    pub(crate) params: Params,
    phase: Phase,
    /// The length of the last packet of the paced flight, until that is retransmitted.
    last: Option<Bytes>,
}

impl Halfback {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, phase: Phase::Ordinary, last: None }
    }

    /// Retransmits the packet that ends `back` bytes before the end of the data sent, unless the cumulative
    /// ACK has reached it.
    fn reverse(&mut self, v: &View, ack: &Ack, back: Bytes) -> Step {
        if v.unacked.is_none_or(|unacked| unacked <= back) {
            self.phase = Phase::Ordinary;
            return Step::grow(v.slow_start_growth(ack));
        }
        // Only the last packet of the flow may be shorter than a segment.
        let len = self.last.take().unwrap_or(v.mss);
        self.phase = Phase::Reverse(back + len);
        Step::HOLD.resend(back)
    }
}

impl Startup for Halfback {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        let (Some(rtt), Some(queued), Some(_), true) = (hs.rtt, v.unsent, v.unacked, v.supports_pacing)
        else {
            return Step::HOLD;
        };
        let most = Bytes(u64::from(self.params.limit));
        let size = queued.min(v.rwnd).min(most.max(v.iw));
        let Some(rate) = Rate::new(size, rtt).filter(|_| size.0 > 0) else { return Step::HOLD };
        self.phase = Phase::Paced(size);
        // Rounded up to whole segments, because the last packet may be short.
        Step::set(v.mss * size.0.div_ceil(v.mss.0.max(1))).pace(Pace::Rate(rate))
    }

    fn needs_on_sent(&self) -> bool {
        true
    }

    fn on_sent(&mut self, _v: &View, s: &Sent) {
        match &mut self.phase {
            Phase::Paced(rest) if !s.retransmission => {
                *rest -= s.bytes;
                self.last = Some(s.bytes);
            }
            Phase::Reverse(back) if !s.retransmission => *back += s.bytes,
            _ => {}
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match self.phase {
            // ACKs before all of it has been sent change nothing.
            Phase::Paced(rest) if rest.0 > 0 && v.unsent.is_some_and(|u| u.0 > 0) => Step::HOLD,
            Phase::Paced(_) => self.reverse(v, ack, Bytes::ZERO).pace(Pace::Host),
            Phase::Reverse(back) => self.reverse(v, ack, back),
            Phase::Ordinary => Step::grow(v.slow_start_growth(ack)),
        }
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Paced(_) => "paced",
            Phase::Reverse(_) => "reverse",
            Phase::Ordinary => "slow-start",
        }
    }
}
