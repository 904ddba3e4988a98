//! Halfback, Li, Dong & Godfrey, `CoNEXT` 2015: a short flow is paced over the first round trip. Then its packets are
//! retransmitted proactively, the last packet first, one per ACK, until the retransmissions meet the cumulative ACK.
//!
//! Reconstructed from descriptions by others, because the paper was not available:
//! - of a flow larger than `limit`, that much is paced and retransmitted, and the rest follows in slow start;
//! - while packets are retransmitted, each ACK sends one retransmission and the window does not grow;
//! - a packet that was selectively acknowledged is not retransmitted, and no other packet takes its place.
//!
//! Without an RTT sample of the handshake, a pacer or knowledge of the queued data it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Pace, Step};
use crate::units::{Bytes, Mark, Rate};
use crate::view::{Ack, Handshake, Sent, View};

params! {
    /// Parameters of Halfback.
    pub struct Params {
        /// Maximum bytes to pace: the paper's flow-control window of 141 kB.
        limit: u32 = 141_000, "a number of bytes from 1", |v| v > 0;
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The flow is paced, up to this mark.
    Paced(Mark),
    /// Packets are retransmitted; the next one ends at this mark.
    Reverse(Mark),
    /// Standard slow start.
    Ordinary,
}

/// Halfback.
#[derive(Clone, Debug)]
pub struct Halfback {
    pub(crate) params: Params,
    phase: Phase,
    /// The mark of the last packet of the paced flight, and its length.
    last: (Mark, Bytes),
}

impl Halfback {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, phase: Phase::Ordinary, last: (Mark(0), Bytes::ZERO) }
    }

    /// Retransmits the packet that ends at `at`, unless the cumulative ACK has reached it.
    fn reverse(&mut self, v: &View, ack: &Ack, at: Mark) -> Step {
        if ack.upto >= at {
            self.phase = Phase::Ordinary;
            return Step::grow(v.slow_start_growth(ack));
        }
        // Only the last packet of the flow may be shorter than a segment.
        let len = if at == self.last.0 { self.last.1 } else { v.mss };
        self.phase = Phase::Reverse(Mark(at.0.saturating_sub(len.0)));
        Step::HOLD.resend(at)
    }
}

impl Startup for Halfback {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        let (Some(rtt), Some(queued), true) = (hs.rtt, v.unsent, v.supports_pacing) else {
            return Step::HOLD;
        };
        let most = Bytes(u64::from(self.params.limit));
        let size = queued.min(v.rwnd).min(most.max(v.iw));
        let Some(rate) = Rate::new(size, rtt).filter(|_| size.0 > 0) else { return Step::HOLD };
        self.phase = Phase::Paced(Mark(v.next.0.saturating_add(size.0)));
        // Rounded up to whole segments, because the last packet may be short.
        Step::set(v.mss * size.0.div_ceil(v.mss.0.max(1))).pace(Pace::Rate(rate))
    }

    fn needs_on_sent(&self) -> bool {
        true
    }

    fn on_sent(&mut self, _v: &View, s: &Sent) {
        if matches!(self.phase, Phase::Paced(_)) && !s.retransmission {
            self.last = (s.mark, s.bytes);
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match self.phase {
            // ACKs before all of it has been sent change nothing.
            Phase::Paced(end) if v.next < end && v.unsent.is_some_and(|u| u.0 > 0) => Step::HOLD,
            Phase::Paced(_) => self.reverse(v, ack, self.last.0).pace(Pace::Host),
            Phase::Reverse(at) => self.reverse(v, ack, at),
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
