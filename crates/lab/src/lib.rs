//! The laboratory: startups of transport connections over modelled paths, deterministic to the byte.
//!
//! The rooms, each leaning only on those above it:
//!
//! - [`random`]: named streams of chance
//! - [`path`]: links, queues, delays and losses, in chains
//! - [`tcp`]: an endpoint that behaves like today's Linux
//! - [`app`]: what applications send
//! - [`record`]: the schema of rows, samples and events
//! - [`engine`]: flows over a path
//! - [`eval`]: what a run says of a startup
//! - [`stats`]: medians, intervals, differences
//! - [`scenario`]: studies, read and checked
//! - [`run`]: a study's runs, in parallel and in order
//! - [`report`]: one self-contained page
//! - [`packetdrill`]: scripts of packets and calls against one endpoint

pub mod app;
pub mod engine;
pub mod eval;
mod fifo;
pub mod packetdrill;
pub mod path;
pub mod random;
pub mod record;
pub mod report;
mod ring;
pub mod run;
pub mod scenario;
pub mod split;
pub mod stats;
mod suggest;
pub mod tcp;
pub mod validate;
