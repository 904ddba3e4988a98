//! Reno, RFC 5681 §3.1: one segment per window acknowledged, half the window on loss. A host that counts ACKs counts
//! them here too, and grows by half a segment a round trip with delayed ACKs (`tcp_cong_avoid` before Linux 3.18,
//! ns-2, `TcpNewReno` of ns-3). With `reno-abe`, less for a mark in congestion avoidance (RFC 8511).
//!
//! Departs from the RFC:
//! - the reduction applies to cwnd, not to the flight size, as in Linux: an application-limited flow keeps
//!   its window.

use super::{Adjust, Avoidance};
use crate::param::params;
use crate::step::Exit;
use crate::units::{Bytes, Fixed};
use crate::view::{Ack, Congestion, Growth, Signal, View};

params! {
    /// The parameters of Reno, with their defaults.
    pub struct Params {
        /// Factor applied to the window on congestion (RFC 5681: 0.5).
        beta: Fixed = Fixed::milli(500), "a share above 0 and up to 1, such as 0.5", |v| 0 < v.0 && v.0 <= Fixed::ONE;
        /// The factor for a mark in congestion avoidance (RFC 8511 §3.1: 0.8; without it as for a loss).
        beta_ecn: Fixed = Fixed::milli(500), "a share above 0 and up to 1, such as 0.8", |v| 0 < v.0 && v.0 <= Fixed::ONE;
    }
}

impl Params {
    /// Those of RFC 8511.
    pub fn abe() -> Self {
        Self { beta_ecn: Fixed::milli(800), ..Self::default() }
    }
}

/// Reno's congestion avoidance, one instance a connection.
#[derive(Clone, Debug)]
pub struct Reno {
    pub(crate) params: Params,
    /// The startup has not ended yet.
    fresh: bool,
    /// Bytes acknowledged since the last increase.
    credit: Bytes,
}

impl Reno {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, fresh: true, credit: Bytes::ZERO }
    }
}

impl Avoidance for Reno {
    fn enter(&mut self, _: &View, _: Exit) {
        self.fresh = false;
        self.credit = Bytes::ZERO;
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust {
        self.credit += if v.growth == Growth::PerAck { v.slow_start_growth(ack) } else { ack.bytes };
        let segments = self.credit.units(v.cwnd);
        self.credit -= v.cwnd * segments;
        if segments == 0 { Adjust::Keep } else { Adjust::Grow(v.mss * segments) }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        let marked = c.signal == Signal::Ecn && !self.fresh;
        let beta = if marked { self.params.beta_ecn } else { self.params.beta };
        v.cwnd.scale(beta.0 as u64, Fixed::ONE as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SendOrder;
    use crate::view::{Facts, Sent};

    #[test]
    fn a_host_that_counts_acks_grows_by_one_for_a_window_of_acks() {
        let mss = Bytes(1000);
        // ACKs of two segments each.
        let grown = |growth, acks| {
            let facts = Facts { growth, ..Facts::new(mss, mss * 10) };
            let mut reno = Reno::new(Params::default());
            let ack = Ack::new(Sent { mark: SendOrder::new(0), ..Sent::default() }, mss * 2, mss * 10);
            let v = View { facts: &facts, cwnd: mss * 10, ssthresh: Some(mss * 10) };
            (0..acks).filter(|_| reno.on_ack(&v, &ack) == Adjust::Grow(mss)).count()
        };
        assert_eq!((grown(Growth::Bytes, 10), grown(Growth::PerAck, 10)), (2, 1));
        assert_eq!(grown(Growth::PerAck, 9), 0);
    }
}
