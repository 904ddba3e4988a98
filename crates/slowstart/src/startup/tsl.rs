//! TSL, TCP SYN loss startup: which window and threshold follow a handshake whose SYN or SYN-ACK had to be sent again.
//!
//! The paper writes `TSL i,s`: an initial window of i segments and a threshold of s. Its six variants are (1,2), which
//! is RFC 5681 §3.1, and (1,16), (1,1000), (3,2), (3,16), (3,1000). The default is (3,16), the one it finds best over
//! all loads.
//!
//! Departs from the paper:
//! - `spurious=undo` lets a connection whose first SYN or SYN-ACK did arrive, only late, begin as if nothing had
//!   happened (Linux does so where timestamps tell it); the paper treats both alike, as does the default.
//!
//! Reconstructed because the paper's list of instructions is an image: the window and the threshold are set when the
//! connection is established, and nothing else changes. The host makes its timeout 3 s (RFC 6298 §5.7).

use super::Startup;
use crate::param::{choice, params};
use crate::step::{Exit, Step};
use crate::view::{Ack, Handshake, View};

choice! {
    /// A handshake that only seemed to lose a packet.
    pub enum Spurious {
        /// Counts as one that lost it.
        Alike = "alike",
        /// Counts as one that lost nothing.
        Undo = "undo",
    }
}

params! {
    /// Parameters of TSL.
    pub struct Params {
        /// The initial window after a loss, in segments: i.
        iw: u32 = 3, "a number of segments from 1", |v| v >= 1;
        /// The threshold after a loss, in segments: s. 1000 is the paper's largest receive window: none.
        ssthresh: u32 = 16, "a number of segments from 2", |v| v >= 2;
        /// What a round trip beyond the timeout counts for.
        spurious: Spurious = Spurious::Alike, "one of alike, undo", |_v| true;
    }
}

/// TSL.
#[derive(Clone, Debug)]
pub struct Tsl {
    pub(crate) params: Params,
}

impl Tsl {
    /// With these parameters.
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
        // RFC 5681 §3.1: above the threshold is congestion avoidance, and (3,2) begins in it.
        if p.iw > p.ssthresh { step.and_exit(Exit::Ssthresh) } else { step }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        match v.ssthresh {
            Some(t) if v.cwnd >= t => Step::exit(Exit::Ssthresh).ssthresh(t),
            _ => Step::grow(v.slow_start_growth(ack)),
        }
    }
}
