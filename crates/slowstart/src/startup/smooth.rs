//! Smooth start, Wang et al. 2000, as described by Ha & Rhee 2008: on the second half of the way to the
//! threshold growth is halved, then halved again on half of the remaining way, and so on, so that slow start
//! does not end in a burst.
//!
//! Reconstructed because the paper was not available:
//! - each step begins when half of the previous remainder is left; after `steps` steps growth is constant;
//! - the first threshold is 65,535 bytes, the default of the time (RFC 2001), because the algorithm needs
//!   one.

use super::Startup;
use crate::param::params;
use crate::step::{Exit, Resume, Step};
use crate::units::Bytes;
use crate::view::{Ack, Handshake, Restart, View};

params! {
    /// Parameters of smooth start.
    pub struct Params {
        /// First threshold, in bytes (RFC 2001 §1: 65,535).
        ssthresh: u32 = 65_535, "a number of bytes from 1", |v| v > 0;
        /// Number of times that growth is halved: to one segment per 2, 4, 8, ... acknowledged.
        steps: u32 = 3, "a whole number from 1 to 16", |v| (1..=16).contains(&v);
    }
}

/// Smooth start, one instance a connection.
#[derive(Clone, Debug)]
pub struct Smooth {
    pub(crate) params: Params,
    /// Number of steps taken.
    step: u32,
}

impl Smooth {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, step: 0 }
    }
}

impl Startup for Smooth {
    fn on_established(&mut self, _: &View, _: &Handshake) -> Step {
        Step::HOLD.ssthresh(Bytes(u64::from(self.params.ssthresh)))
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let Some(threshold) = v.ssthresh else { return Step::grow(v.slow_start_growth(ack)) };
        if v.cwnd >= threshold {
            return Step::exit(Exit::Ssthresh);
        }
        let left = threshold - v.cwnd;
        self.step = (1..=self.params.steps).take_while(|n| left <= threshold / (1 << n)).count() as u32;
        // At least one byte, so that the threshold is reached even with segments of a few bytes.
        let earned = v.slow_start_growth(ack);
        Step::grow((earned / (1 << self.step)).max(earned.min(Bytes(1))))
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        // Applies to every slow start, including the one after a timeout.
        Resume::FromStart
    }

    fn phase(&self) -> &'static str {
        if self.step > 0 { "smooth" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("step", f64::from(self.step));
    }
}
