//! The controllers of slowstart for programs in C: `include/slowstart.h` declares what these files and
//! `slowstart-abi` define.
//!
//! A stack creates a controller for each connection, tells it of every event, and reads the congestion
//! window, the threshold, the pacing and the timer from its state. The order of calls is that of
//! [`slowstart::control::Controller`]. There are no globals. Only `slowstart_create` and `slowstart_free`
//! touch the heap. Calls for one controller must not overlap; a controller may move from thread to thread
//! between calls, and different controllers may be used by different threads at the same time.
//!
//! - [`controller`]: a controller begins and ends
//! - [`call`]: the events of a connection
//! - [`state`]: what the host takes from it

#![allow(unsafe_code, reason = "the functions take pointers of C; each states what it requires of them")]
#![allow(clippy::missing_safety_doc, reason = "`# Safety` of each function is its contract in the header")]

pub mod call;
pub mod controller;
mod names;
pub mod state;

use std::ffi::c_int;

/// A call was made.
const OK: c_int = 0;
/// A pointer was null, or a structure smaller than the least that has meaning.
const BAD_ARGUMENT: c_int = -1;
