//! Limited slow start, RFC 3742: above `max_ssthresh` the window grows by at most half of that a round trip.

use super::Startup;
use crate::param::params;
use crate::step::Step;
use crate::view::{Ack, View};

params! {
    /// Parameters of limited slow start.
    pub struct Params {
        /// Where the limit begins, in segments (RFC 3742 §2 recommends 100).
        max_ssthresh: u32 = 100, "a number of segments from 2", |v| v >= 2;
    }
}

/// Limited slow start.
#[derive(Clone, Debug)]
pub struct Limited {
    pub(crate) params: Params,
}

impl Limited {
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self { params }
    }
}

impl Startup for Limited {
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let max = v.mss * u64::from(self.params.max_ssthresh);
        let earned = v.earned(ack);
        // §2: K = int(cwnd / (0.5 max_ssthresh)); cwnd += int(MSS / K)
        if v.cwnd <= max { Step::grow(earned) } else { Step::grow(earned / (v.cwnd * 2).units(max)) }
    }
}
