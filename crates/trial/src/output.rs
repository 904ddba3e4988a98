//! What a trial writes: a row for each connection, and its result. The schemas are in `schema/`.

use crate::analysis::Analysis;
use crate::outcome::Outcome;
use serde::{Deserialize, Serialize};

/// The JSON Schema of [`ConnectionRow`].
pub const CONNECTION_SCHEMA: &str = include_str!("../schema/connection.json");
/// The JSON Schema of [`TrialResult`].
pub const RESULT_SCHEMA: &str = include_str!("../schema/result.json");
/// The JSON Schema of [`crate::Pooled`].
pub const POOLED_SCHEMA: &str = include_str!("../schema/pooled.json");

/// Connections that were established in the trial's cgroup, by what became of them.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialCounts {
    /// Assigned to each arm.
    pub assigned: Vec<u64>,
    /// In no arm, because the shares are less than 100 %, or in one that was ended.
    pub outside: u64,
    /// Whose program, or another selection, chose the congestion control, before the connection was assigned
    /// or later.
    pub own_choice: u64,
    /// For which the kernel did not set the congestion control.
    pub refused: u64,
    /// For which there was no memory.
    pub without_storage: u64,
    /// Records that were lost because the ring was full.
    pub lost_records: u64,
}

/// A time in which a trial did not run, between two starts with one folder. Connections that were established in
/// it are in no arm, and those that were open at its begin were not followed further.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// When the trial was last known to run, in seconds since 1970: its end, or its last look (`--every`).
    pub from_unix_s: u64,
    /// When it went on, in seconds since 1970.
    pub to_unix_s: u64,
    /// True if it was ended and wrote its result; false if it was killed, or the machine went down.
    pub ended: bool,
    /// Connections of each arm that had not been closed when it was last known to run. Those that reached a
    /// milestone have a row if it was ended; they have no time to the last byte.
    pub open: Vec<u64>,
    /// Bytes of rows whose write was cut, and that were removed.
    pub cut_bytes: u64,
    /// The release of the kernel before it; null if it is the same.
    pub kernel_before: Option<String>,
}

/// The server of a trial, and when it began: with them a result can be filed, and joined with what else happened.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrialServer {
    /// Its host name; null if it is not known.
    pub host: Option<String>,
    /// The release of its kernel; null if it is not known.
    pub kernel: Option<String>,
    /// The congestion control of new connections whose program asks for none, outside the trial; null if it is not
    /// known.
    pub default_control: Option<String>,
    /// When the trial began, in seconds since 1970.
    pub began_unix_s: u64,
}

/// A connection of a trial, as `connections.jsonl` has it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionRow<'a> {
    /// The name of its arm.
    pub arm: &'a str,
    /// When its record was read, in seconds since 1970: some tenths of a second after its end, if it was closed.
    pub read_unix_s: f64,
    /// The unit of assignment: the connection, or the client's prefix, hashed; 16 hexadecimal digits.
    pub unit: String,
    /// The client's prefix, hashed; 16 hexadecimal digits.
    pub prefix: String,
    /// True if it was established during the A/A phase.
    pub a_a: bool,
    /// True if it was closed; its row is then the last of it.
    pub closed: bool,
    /// What was measured.
    #[serde(flatten)]
    pub outcome: &'a Outcome,
}

impl<'a> ConnectionRow<'a> {
    /// Returns the row of a connection whose arm has this name, read at this time.
    pub fn new(arm: &'a str, outcome: &'a Outcome, read_unix_s: f64, a_a: bool, closed: bool) -> Self {
        let hexadecimal = |n: u64| format!("{n:016x}");
        Self {
            arm,
            read_unix_s,
            unit: hexadecimal(outcome.unit),
            prefix: hexadecimal(outcome.prefix),
            a_a,
            closed,
            outcome,
        }
    }
}

/// The result of a trial, at its end or at a look.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct TrialResult<'a> {
    /// The seed of the assignment.
    pub seed: u64,
    /// The server, and when the trial began.
    pub server: &'a TrialServer,
    /// Seconds that the trial has run, without its gaps.
    pub seconds: f64,
    /// The times in which it did not run.
    pub gaps: &'a [Gap],
    /// What became of the connections.
    pub counts: &'a TrialCounts,
    /// Rows that could not be written; absent where no folder is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_missing: Option<u64>,
    /// What it shows.
    #[serde(flatten)]
    pub analysis: &'a Analysis,
}
