//! Standard slow start, RFC 5681 §3.1 and RFC 9002 §7.3.1: the window grows by what is acknowledged, until
//! congestion.

use super::Startup;
use crate::param::{choice, params};
use crate::step::Step;
use crate::view::{Ack, Growth, View};

choice! {
    /// How much the window grows per ACK.
    pub enum Rule {
        /// By the host's rule ([`Facts::growth`](crate::view::Facts::growth)).
        Host = "host",
        /// One segment per ACK (Jacobson 1988).
        PerAck = "ack",
        /// At most one segment per ACK (RFC 5681).
        Segment = "rfc5681",
        /// At most two segments per ACK (RFC 3465, L = 2).
        Abc = "abc",
        /// All bytes acknowledged (RFC 9002).
        Bytes = "bytes",
    }
}

params! {
    /// Parameters of standard slow start.
    pub struct Params {
        /// How much the window grows per ACK.
        growth: Rule = Rule::Host, "one of host, ack, rfc5681, abc, bytes", |_v| true;
    }
}

/// Standard slow start, one instance a connection.
#[derive(Clone, Debug)]
pub struct Standard {
    pub(crate) params: Params,
}

impl Standard {
    /// Returns an instance with these parameters.
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
