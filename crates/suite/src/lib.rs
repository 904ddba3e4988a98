//! The suite: scenarios by the sections of RFC 9743, each with criteria that a startup meets, does not meet,
//! or about which the runs leave doubt.
//!
//! - [`scenario`]: what a suite file says
//! - [`measure`]: what is measured in a run
//! - [`judge`]: the verdict of a criterion from runs
//! - [`run`]: runs a suite and collects the verdicts
//! - [`baseline`]: what became worse since an earlier report
//! - [`entrant`]: the hash of what was judged
//! - [`report`]: the page, the Markdown table and the JSON

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod baseline;
pub mod entrant;
pub mod judge;
pub mod measure;
pub mod report;
pub mod run;
pub mod scenario;

pub use judge::Verdict;
pub use run::{Report, Settings};
pub use scenario::{Suite, SuiteError};
