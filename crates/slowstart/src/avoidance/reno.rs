//! Reno, RFC 5681 §3.1: one segment per window acknowledged, half the window on loss. With `reno-abe`, less
//! for a mark in congestion avoidance (RFC 8511).
//!
//! Departs from the RFC:
//! - the reduction applies to cwnd, not to the flight size, as in Linux: an application-limited flow keeps
//!   its window.

use super::{Adjust, Avoidance};
use crate::param::params;
use crate::step::Exit;
use crate::units::{Bytes, Fixed};
use crate::view::{Ack, Congestion, Signal, View};

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
        self.credit += ack.bytes;
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
