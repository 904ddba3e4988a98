//! The simulator: flows of TCP over modelled paths, with the same bytes for the same input and seed.
//!
//! - [`random`]: named streams of random numbers
//! - [`path`]: links, queues, delays and losses; ensembles of paths
//! - [`tcp`]: a TCP endpoint that behaves like today's Linux
//! - [`ends`]: the two ends of a flow
//! - [`app`]: what applications send
//! - [`engine`]: flows over a path
//! - [`trace`]: what a run records
//! - [`suggest`]: the known name nearest to one that is not known

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod app;
pub mod ends;
pub mod engine;
mod fifo;
pub mod path;
mod ring;
pub mod suggest;
pub mod tcp;
pub mod trace;

pub use slowstart_stats::random;
