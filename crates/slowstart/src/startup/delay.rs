//! Delay-based slow start, as described by Ha & Rhee 2008 (their reference 9): doubles until the RTT exceeds
//! its minimum by a threshold, then grows as limited slow start from that window on.
//!
//! Reconstructed because the description is one paragraph:
//! - `max_ssthresh` of limited slow start is the window at which the RTT exceeded the threshold;
//! - the description gives no threshold; 10 ms is our choice.

use super::{Startup, limited};
use crate::param::params;
use crate::step::{Resume, Step};
use crate::units::{Bytes, Span};
use crate::view::{Ack, Restart, View};

params! {
    /// Parameters of delay-based slow start.
    pub struct Params {
        /// Rise above the minimum RTT that ends doubling.
        tau: Span = Span::millis(10), "a time such as 10ms", |_v| true;
    }
}

/// Delay-based slow start, one instance a connection.
#[derive(Clone, Debug)]
pub struct Delay {
    pub(crate) params: Params,
    /// The window at which the RTT exceeded the threshold, in bytes.
    max: Option<Bytes>,
}

impl Delay {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, max: None }
    }
}

impl Startup for Delay {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        if let (None, Some(rtt), Some(min)) = (self.max, ack.rtt, v.min_rtt)
            && rtt > min + self.params.tau
        {
            self.max = Some(v.cwnd);
        }
        Step::grow(self.max.map_or_else(|| v.slow_start_growth(ack), |max| limited::growth(v, ack, max)))
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        Resume::FromStart
    }

    fn phase(&self) -> &'static str {
        if self.max.is_some() { "limited" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("max_ssthresh_bytes", self.max.map_or(f64::NAN, |m| m.0 as f64));
    }
}
