//! The simulator: startups of transport connections over modelled paths, with the same bytes for the same
//! input and seed.
//!
//! - [`random`]: named streams of random numbers
//! - [`path`]: links, queues, delays and losses; ensembles of paths
//! - [`tcp`]: a TCP endpoint that behaves like today's Linux
//! - [`ends`]: the two ends of a flow
//! - [`app`]: what applications send
//! - [`engine`]: flows over a path
//! - [`engines`]: what runs a study: the interface, and the simulator as one engine
//! - [`record`]: the types of rows, samples and events
//! - [`axis`]: several values of one key
//! - [`columns`]: flat columns of rows, from their JSON Schema
//! - [`measured`]: what a run observed of a flow, and the row that follows from it
//! - [`eval`]: what the simulator observed of a flow: exit, class, losses, times
//! - [`harm`]: what a startup does to another flow
//! - `schema`: JSON Schemas from types, for tests (feature `schema`)
//! - [`scenario`]: studies, read from TOML and checked
//! - [`run`]: the runs of a study, in parallel and in order
//! - [`stats`]: medians, intervals and paired differences
//! - [`split`]: which drawn quantity decides a startup's class
//! - [`report`]: one self-contained page of a study
//! - [`validate`]: comparison with the live kernel and with ns-3
//! - [`vectors`]: events and windows of every startup, to check ports with
//! - [`whole`]: files that appear whole or not at all

pub mod app;
pub mod axis;
pub mod columns;
pub mod ends;
pub mod engine;
pub mod engines;
pub mod eval;
mod fifo;
pub mod harm;
pub mod measured;
pub mod path;
pub mod random;
pub mod record;
pub mod report;
mod ring;
pub mod run;
pub mod scenario;
#[cfg(feature = "schema")]
pub mod schema;
pub mod split;
pub mod stats;
pub mod suggest;
pub mod tcp;
pub mod validate;
pub mod vectors;
pub mod whole;
