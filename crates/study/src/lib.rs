//! Studies: which startups run over which paths, what was observed, and what it says.
//!
//! - [`scenario`]: studies, read from TOML and checked
//! - [`axis`]: several values of one key
//! - [`engines`]: what runs a study: the interface of an engine
//! - [`simulator`]: the simulator as an engine
//! - [`run`]: the runs of a study, in parallel and in order
//! - [`measured`]: what a run observed of a flow, and the row that follows from it
//! - [`measures`]: the catalogue of measures, each with its unit, its margin and how it follows from a row
//! - [`record`]: the types of rows, samples and events
//! - [`columns`]: flat columns of rows, from their JSON Schema
//! - `sample`: made-up rows for tests (feature `sample`)
//! - `schema`: JSON Schemas from types, for tests (feature `schema`)
//! - [`stats`]: medians and intervals
//! - [`summary`]: rows, and a summary of each startup
//! - [`decision`]: differences from a baseline, their order, and the startups that nothing beats
//! - [`figures`]: intervals and differences as rows
//! - [`diff`]: two results beside each other
//! - [`explain`]: one run in sentences
//! - [`limits`]: what limited a sender, and what dropped its packets
//! - [`price`]: what a startup costs, as a share of runs
//! - [`verdict`]: what a decision says, in three sentences
//! - [`harm`]: what a startup does to another flow
//! - [`split`]: which drawn quantity decides a startup's class
//! - [`order`]: partial orders
//! - [`words`]: numbers and units as text
//! - [`cells`]: comparison of two engines over named cells
//! - [`vectors`]: events and windows of every startup, to check ports with

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod axis;
pub mod cells;
pub mod chosen;
pub mod columns;
mod connections;
pub mod decision;
pub mod diff;
pub mod difference;
pub mod engines;
pub mod explain;
pub mod field;
pub mod figures;
pub mod harm;
#[cfg(test)]
mod law;
pub mod limits;
pub mod measured;
pub mod measures;
pub mod order;
pub mod price;
pub mod record;
pub mod run;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod scenario;
#[cfg(feature = "schema")]
pub mod schema;
pub mod simulator;
pub mod split;
pub mod summary;
pub mod vectors;
pub mod verdict;
pub mod words;

pub use slowstart_stats as stats;
