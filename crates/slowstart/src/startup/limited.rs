//! Limited slow start, RFC 3742: above `max_ssthresh` the window grows by at most half of that per round
//! trip.
//!
//! Departs from the RFC: the growth under the host's rule is divided, where the RFC divides one segment per
//! ACK. With byte counting, growth then does not depend on how the receiver acknowledges. And a slow start after an
//! idle period or a timeout has standard growth, where the RFC limits each above `max_ssthresh`.

use super::Startup;
use crate::param::params;
use crate::step::Step;
use crate::units::Bytes;
use crate::view::{Ack, View};

params! {
    /// Parameters of limited slow start.
    pub struct Params {
        /// Window above which growth is limited, in segments (RFC 3742 §2 recommends 100).
        max_ssthresh: u32 = 100, "a number of segments from 2", |v| v >= 2;
    }
}

/// Limited slow start, one instance a connection.
#[derive(Clone, Debug)]
pub struct Limited {
    pub(crate) params: Params,
}

impl Limited {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params }
    }
}

/// §2: standard growth up to `max`; above, K = int(cwnd / (0.5 `max_ssthresh`)) and cwnd += int(MSS / K).
pub(super) fn growth(v: &View, ack: &Ack, max: Bytes) -> Bytes {
    let earned = v.slow_start_growth(ack);
    if v.cwnd <= max { earned } else { earned / (v.cwnd * 2).units(max) }
}

impl Startup for Limited {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        Step::grow(growth(v, ack, v.mss * u64::from(self.params.max_ssthresh)))
    }
}
