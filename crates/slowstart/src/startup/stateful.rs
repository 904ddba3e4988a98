//! Stateful-TCP, Guo & Lee, IEEE Access 2020: the first window is the rate of the last connection on this
//! path times the RTT of the handshake. It is paced over that RTT, then congestion avoidance follows.
//!
//! Reconstructed from descriptions by others, because the paper was not available: the bandwidth estimate is
//! the final window of the last connection divided by its smoothed RTT, and the first ACK ends the startup.
//!
//! Without saved state, an RTT sample of the handshake or a pacer it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::{Exit, Pace, Step};
use crate::view::{Ack, Handshake, View};

params! {
    /// Stateful-TCP has no parameters.
    pub struct Params {}
}

/// The startup of Stateful-TCP, one instance a connection.
#[derive(Clone, Debug)]
pub struct Stateful {
    pub(crate) params: Params,
    paced: bool,
}

impl Stateful {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, paced: false }
    }
}

impl Startup for Stateful {
    fn uses_path_memory(&self) -> bool {
        true
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        let (Some(memory), Some(rtt), true) = (hs.remembered, hs.rtt, v.supports_pacing) else {
            return Step::HOLD;
        };
        self.paced = true;
        Step::set(memory.rate.over(rtt).max(v.mss * 2)).pace(Pace::Rate(memory.rate))
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        if self.paced {
            return Step::exit(Exit::Estimate);
        }
        Step::grow(v.slow_start_growth(ack))
    }

    fn phase(&self) -> &'static str {
        if self.paced { "paced" } else { "slow-start" }
    }
}
