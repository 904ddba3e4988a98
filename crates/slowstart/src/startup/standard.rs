//! Standard slow start, RFC 5681 §3.1 and RFC 9002 §7.3.1: what is acknowledged is earned, until packets are lost.

use super::Startup;
use crate::param::{choice, params};
use crate::step::Step;
use crate::view::{Ack, Growth, View};

choice! {
    /// What an ACK earns.
    pub enum Rule {
        /// As the host counts.
        Host = "host",
        /// One segment an ACK (Jacobson 1988).
        PerAck = "ack",
        /// At most one segment an ACK (RFC 5681).
        Segment = "rfc5681",
        /// At most two segments an ACK (RFC 3465, L = 2).
        Abc = "abc",
        /// All bytes acknowledged (RFC 9002).
        Bytes = "bytes",
    }
}

params! {
    /// Parameters of standard slow start.
    pub struct Params {
        /// What an ACK earns.
        growth: Rule = Rule::Host, "one of host, ack, rfc5681, abc, bytes", |_v| true;
    }
}

/// Standard slow start.
#[derive(Clone, Debug)]
pub struct Standard {
    pub(crate) params: Params,
}

impl Standard {
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self { params }
    }
}

impl Startup for Standard {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let rule = match self.params.growth {
            Rule::Host => v.growth,
            Rule::PerAck => Growth::PerAck,
            Rule::Segment => Growth::Segment,
            Rule::Abc => Growth::Abc { limit: 2 },
            Rule::Bytes => Growth::Bytes,
        };
        Step::grow(ack.slow_start_growth(rule, v.mss))
    }
}
