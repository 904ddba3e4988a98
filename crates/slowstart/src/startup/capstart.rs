//! `CapStart`, Cavendish et al. 2009: limited slow start if the bottleneck is inside the path. If the
//! sender's own interface is the bottleneck, standard slow start, because no queue in the network can
//! overflow.
//!
//! Reconstructed because the paper was not available:
//! - the capacity is the highest rate of a pair of ACKs so far; growth is standard until `pairs` have been
//!   measured;
//! - `max_ssthresh` has the value of RFC 3742;
//! - the rate of the interface is `nic` if the host does not know it.

use super::{Startup, limited};
use crate::param::params;
use crate::round::Dispersion;
use crate::step::Step;
use crate::units::Rate;
use crate::view::{Ack, View};

params! {
    /// The parameters of `CapStart`, with their defaults.
    pub struct Params {
        /// Window above which growth is limited, in segments (RFC 3742 §2 recommends 100).
        max_ssthresh: u32 = 100, "a number of segments from 2", |v| v >= 2;
        /// Pairs of ACKs to measure before the capacity is used.
        pairs: u32 = 3, "a whole number from 1", |v| v > 0;
        /// Rate of the interface if the host does not know it, in Mbit/s.
        nic: u32 = 1000, "a rate in Mbit/s from 1", |v| v > 0;
    }
}

/// The startup `CapStart`, one instance a connection.
#[derive(Clone, Debug)]
pub struct CapStart {
    pub(crate) params: Params,
    pairs: Dispersion,
    /// The bottleneck is inside the path.
    inside: bool,
}

impl CapStart {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, pairs: Dispersion::default(), inside: false }
    }
}

impl Startup for CapStart {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let p = self.params;
        self.pairs.add(v.now, ack);
        let nic = v.nic_rate.unwrap_or(Rate(u64::from(p.nic) * 1_000_000));
        self.inside = self.pairs.pairs >= p.pairs && self.pairs.rate.is_some_and(|r| r < nic);
        let max = v.mss * u64::from(p.max_ssthresh);
        Step::grow(if self.inside { limited::growth(v, ack, max) } else { v.slow_start_growth(ack) })
    }

    fn phase(&self) -> &'static str {
        if self.inside { "limited" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("capacity_bps", self.pairs.rate.map_or(f64::NAN, |r| r.0 as f64));
    }
}
