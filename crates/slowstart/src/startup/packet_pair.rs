//! Packet-pair slow start, Hoe 1996: the spacing of the first ACKs gives the rate of the bottleneck. That
//! rate times the minimum RTT is the threshold, at which slow start ends.
//!
//! Reconstructed because the paper was not available:
//! - the rate is the highest among pairs of the first ACKs, where the paper fits a line; without filtering,
//!   ACK compression on the return path leads to an overestimate.

use super::Startup;
use crate::param::params;
use crate::round::Dispersion;
use crate::step::{Exit, Step};
use crate::units::Rate;
use crate::view::{Ack, View};

params! {
    /// Parameters of packet-pair slow start.
    pub struct Params {
        /// Pairs of ACKs used for the estimate (Hoe: the first three or four ACKs).
        pairs: u32 = 3, "a whole number from 1", |v| v > 0;
    }
}

/// Packet-pair slow start, one instance a connection.
#[derive(Clone, Debug)]
pub struct PacketPair {
    pub(crate) params: Params,
    pairs: Dispersion,
    /// The estimate, once it is complete.
    rate: Option<Rate>,
}

impl PacketPair {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, pairs: Dispersion::default(), rate: None }
    }
}

impl Startup for PacketPair {
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let grow = Step::grow(v.slow_start_growth(ack));
        if self.rate.is_some() {
            // The threshold is the estimate: nothing else sets one before an exit.
            return if v.ssthresh.is_some_and(|t| v.cwnd >= t) { Step::exit(Exit::Estimate) } else { grow };
        }
        self.pairs.add(v.now, ack);
        if self.pairs.pairs < self.params.pairs {
            return grow;
        }
        self.rate = self.pairs.rate;
        match (self.rate, v.min_rtt) {
            (Some(rate), Some(rtt)) => {
                let bdp = rate.over(rtt);
                if v.cwnd >= bdp { Step::exit(Exit::Estimate).ssthresh(bdp) } else { grow.ssthresh(bdp) }
            }
            _ => grow,
        }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("capacity_bps", self.pairs.rate.map_or(f64::NAN, |r| r.0 as f64));
    }
}
