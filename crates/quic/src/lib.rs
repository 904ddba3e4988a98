//! The startups of slowstart in QUIC: a host that any stack can drive.
//!
//! - [`host`]: what a congestion controller keeps of a connection
//! - [`factory`]: what makes a controller for each connection of an endpoint
//! - [`peers`]: what connections leave to later ones
//!
//! Adapters are crates of their own, one for each stack, so that a new version of a stack concerns its users
//! alone: slowstart-quinn, slowstart-noq and slowstart-s2n.

#![warn(clippy::print_stdout, clippy::print_stderr)]

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod factory;
pub mod host;
pub mod peers;
