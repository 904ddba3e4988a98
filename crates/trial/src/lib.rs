//! The analysis of a controlled experiment among the connections of one server: which startup serves its
//! users best.
//!
//! - [`plan`]: arms with their shares, and which arm a connection belongs to
//! - [`outcome`]: what is measured of a connection, the measures that arms are compared by, strata
//! - [`estimate`]: the effect of one arm against another, with such an interval
//! - [`balance`]: whether the arms received the shares that were planned
//! - [`quantile`]: quantiles with bootstrap intervals, valid at the end of a trial only
//! - [`guard`]: limits whose crossing ends an arm
//! - [`analysis`]: all of it for one trial
//! - [`statistics`]: what one server tells a fleet; [`mod@pool`]: the trials of several servers together
//! - [`kept`]: what a trial keeps in its folder to go on there after a restart
//! - [`output`]: the rows and the result of a trial as JSON
//!
//! Nothing here reads a clock, a socket or the kernel: `crates/linux` assigns connections and measures
//! outcomes. The same functions run on simulated populations whose truth is known (`tests/populations.rs`),
//! which checks the method.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod analysis;
pub mod balance;
pub mod estimate;
pub mod guard;
pub mod kept;
mod lacking;
pub mod outcome;
pub mod output;
pub mod plan;
pub mod pool;
pub mod quantile;
pub mod statistics;

pub use analysis::{Analysis, ArmSummary, Comparison, Trial};
pub use guard::Guard;
pub use outcome::{Exit, Measure, Outcome, RttClass, Stratify};
pub use output::{ConnectionRow, Gap, TrialCounts, TrialResult, TrialServer};
pub use plan::{Arm, Plan, PlanError, Share};
pub use pool::{Pooled, Server, pool};
pub use statistics::Statistics;
