//! Scripts in packetdrill's language, run against the simulated endpoint on a virtual clock.
//!
//! The language is that of Google's tool of that name: packets in and out, socket calls, assertions over `tcp_info`.
//!
//! - [`parse`]: a script as events
//! - [`expr`]: what stands between `%{` and `}%`
//! - [`host`]: the machine it runs on, and its sysctls
//! - [`socket`]: the calls a script makes, and what they mean to an endpoint
//! - [`queue`]: what a send buffer holds
//! - [`run`]: the clock, and expected against seen

pub mod expr;
pub mod host;
pub mod parse;
pub mod queue;
pub mod run;
pub mod socket;

/// Where a script cannot be read or does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {what}")]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// What was expected, what was found.
    pub what: String,
}

impl Fault {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}
