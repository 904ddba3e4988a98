#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In order of dependence:
//!
//! - [`units`]: types for bytes, times and rates that permit only meaningful arithmetic
//! - [`view`]: the input of an algorithm
//! - [`step`]: the output of an algorithm
//! - [`param`]: documented, typed parameters, read from `name:key=value`
//! - [`round`]: measurements that several algorithms share
//! - [`startup`]: the startups, one per file, and their registry
//! - [`avoidance`]: congestion avoidance, which follows a startup
//! - [`control`]: a startup joined with an avoidance; the only code that writes a congestion window
//! - [`bbr`]: BBR, a complete controller
//! - [`registry`]: every algorithm by name
//!
//! The crate uses no std, no heap, no dependencies, no clock and no random numbers of its own: the time is an
//! argument. Decisions are computed in integers.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod avoidance;
pub mod bbr;
pub mod control;
pub mod param;
pub mod registry;
pub mod round;
pub mod startup;
pub mod step;
pub mod units;
pub mod view;
