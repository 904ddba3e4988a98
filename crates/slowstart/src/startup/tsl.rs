//! TSL, TCP SYN loss startup: chooses window and threshold after a handshake whose SYN or SYN-ACK was
//! retransmitted.
//!
//! The paper writes `TSL i,s` for an initial window of i segments and a threshold of s. Its variants are
//! (1,2), which is RFC 5681 §3.1, and (1,16), (1,1000), (3,2), (3,16), (3,1000). The default is (3,16), which
//! the paper finds best over all loads.
//!
//! Departs from the paper:
//! - with `spurious=undo`, a connection whose first SYN or SYN-ACK arrived late but was not lost begins with
//!   the standard window (as Linux does when timestamps prove it). The paper does not distinguish the two,
//!   nor does the default.
//!
//! Reconstructed because the paper's list of instructions is an image: window and threshold are set when the
//! connection is established, and nothing else changes. The host sets its timeout to 3 s (RFC 6298 §5.7).

use super::Startup;
use crate::param::{choice, params};
use crate::step::{Exit, Step};
use crate::view::{Ack, Handshake, View};

choice! {
    /// How to treat a retransmission of the handshake that proved unnecessary.
    pub enum Spurious {
        /// It counts as a loss.
        Alike = "alike",
        /// It counts as no loss.
        Undo = "undo",
    }
}

params! {
    /// The parameters of TSL, with their defaults.
    pub struct Params {
        /// Initial window after a loss, in segments: i.
        iw: u32 = 3, "a number of segments from 1", |v| v >= 1;
        /// Threshold after a loss, in segments: s. 1000 is the largest receive window in the paper, so it has
        /// no effect there.
        ssthresh: u32 = 16, "a number of segments from 2", |v| v >= 2;
        /// How to treat a retransmission of the handshake that proved unnecessary.
        spurious: Spurious = Spurious::Alike, "one of alike, undo", |_v| true;
    }
}

/// The startup TSL, one instance a connection.
#[derive(Clone, Debug)]
pub struct Tsl {
    pub(crate) params: Params,
}

impl Tsl {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params }
    }
}

impl Startup for Tsl {
    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        let p = &self.params;
        if hs.syn_losses == 0 || (hs.spurious && p.spurious == Spurious::Undo) {
            return Step::HOLD;
        }
        let step = Step::set(v.mss * u64::from(p.iw)).ssthresh(v.mss * u64::from(p.ssthresh));
        // RFC 5681 §3.1: above the threshold is congestion avoidance; (3,2) begins in it.
        if p.iw > p.ssthresh { step.and_exit(Exit::Ssthresh) } else { step }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match v.ssthresh {
            Some(t) if v.cwnd >= t => Step::exit(Exit::Ssthresh).ssthresh(t),
            _ => Step::grow(v.slow_start_growth(ack)),
        }
    }
}
