//! Congestion controls in a library, as startups of the simulator.
//!
//! [`load`] opens a library that has the functions of [`slowstart_abi::plugin::slowstart_plugin`], and
//! returns a class of controllers for [`slowstart::registry::Algorithm`]. After each call the state that the
//! plugin wrote is checked; one that breaks a rule is not asked again, and its fault says which call, when,
//! what was found and what was expected.
//!
//! The plugin runs in this process, so some things cannot be guarded: a crash ends the process by its signal,
//! and memory that the plugin overwrites may be anyone's. On Linux a call that does not return ends the process
//! after 10 s of CPU time.
//!
//! - `library`: a library and its functions
//! - `connection`: one connection of it
//! - `rules`: what a state must keep to
//! - `watch`: ends the process where a call does not return

#![allow(unsafe_code, reason = "calls functions of a library; each place states what the library promises")]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod connection;
mod library;
mod rules;
#[cfg(target_os = "linux")]
mod watch;

pub use library::{PluginError, load};
