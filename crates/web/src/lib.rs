//! The simulator and the analysis of captures for a browser.
//!
//! Everything goes in and out as JSON text, so that the same functions are tested without a browser:
//!
//! - [`request`]: what a page asks for, and how it is written as a study file and as a command line
//! - [`study`]: the runs of a study, one after another, and their verdict and tables
//! - [`packets`]: the packets of one run on the path
//! - [`capture`]: the analysis of a capture or log
//! - [`catalogue`]: the names that a request may use
//!
//! `bindings` makes them functions of JavaScript; it exists for the target `wasm32-unknown-unknown` only.

#[cfg(target_arch = "wasm32")]
mod bindings;
pub mod capture;
pub mod catalogue;
pub mod packets;
pub mod request;
pub mod study;
