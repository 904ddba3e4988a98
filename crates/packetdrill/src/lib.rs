//! Tests of the laboratory: scripts in packetdrill's language against its endpoint, on a virtual clock.
//!
//! The language is that of Google's tool of that name: packets in and out, socket calls, assertions over
//! `tcp_info`.
//!
//! - [`parse`]: a script as events
//! - [`expr`]: the code between `%{` and `}%`
//! - [`host`]: the simulated host and its sysctls
//! - [`socket`]: the socket calls of a script
//! - [`queue`]: the send buffer
//! - [`run`]: the clock, and the comparison of expected and sent packets

pub mod expr;
pub mod host;
pub mod parse;
pub mod queue;
pub mod run;
pub mod socket;

/// An error of a script: its line and its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {what}")]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// What was expected and what was found.
    pub what: String,
}

impl Fault {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}
