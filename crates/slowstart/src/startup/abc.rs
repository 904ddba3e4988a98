//! Appropriate byte counting, RFC 3465: the window grows by the bytes acknowledged, at most L segments per
//! ACK.
//!
//! Departs from the RFC: L is one whenever slow start continues up to a threshold, also after an idle period
//! of a connection that has lost packets, where the RFC permits two.

use super::Startup;
use crate::param::params;
use crate::step::{Resume, Step};
use crate::view::{Ack, Growth, Restart, View};

params! {
    /// Parameters of appropriate byte counting.
    pub struct Params {
        /// Maximum growth per ACK, in segments: L (RFC 3465 §2.2: 1 or 2).
        limit: u32 = 2, "1 or 2", |v| (1..=2).contains(&v);
    }
}

/// Appropriate byte counting, one instance a connection.
#[derive(Clone, Debug)]
pub struct Abc {
    pub(crate) params: Params,
}

impl Abc {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params }
    }
}

impl Startup for Abc {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        // §2.3: L is one in the slow start that follows a timeout. A threshold exists only after a loss.
        let limit = if v.ssthresh.is_some() { 1 } else { self.params.limit as u8 };
        Step::grow(ack.slow_start_growth(Growth::Abc { limit }, v.mss))
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        Resume::FromStart
    }
}
