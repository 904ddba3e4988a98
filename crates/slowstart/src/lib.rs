//! Startups of transport connections: how a sender finds the capacity of a path it knows nothing about.
//!
//! The rooms, each leaning only on those above it:
//!
//! - [`units`]: bytes, times, rates; only sensible arithmetic compiles
//! - [`view`]: all that an algorithm may know
//! - [`step`]: all that it may ask
//! - [`param`]: documented, typed parameters, read from `name:key=value`
//! - [`round`]: measuring parts that two algorithms share
//! - [`startup`]: one algorithm a file, and the registry that lists them
//! - [`avoidance`]: what follows a startup
//! - [`control`]: the two joined; the only writer of a window
//! - [`bbr`]: a controller of its own
//! - [`registry`]: all of these by name
//!
//! No std, no heap, no dependencies, no floating point in a decision, no clock and no chance: time is an argument.

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
