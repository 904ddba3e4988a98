//! The structures of slowstart's interface for C, and their conversion to and from the types of `slowstart`.
//!
//! Each structure begins with its size, so that a later version can add fields at its end: fields that a
//! caller does not have are unknown. `slowstart.h` (in `slowstart-ffi`) declares them for C; it is generated
//! from these files.
//!
//! - [`argument`]: reading a structure that may be older
//! - [`facts`]: the state of the host
//! - [`packet`]: a packet that was sent, an ACK
//! - [`event`]: handshake, congestion
//! - [`state`]: what the host takes from a controller
//! - [`plugin`]: the functions of a controller in a library

#![allow(
    unsafe_code,
    reason = "reads structures through pointers of C; each function states what it requires of them"
)]
#![allow(clippy::doc_markdown, reason = "the documentation is also that of the header")]
#![allow(non_camel_case_types, reason = "the names are those in C")]

pub mod argument;
pub mod event;
pub mod facts;
pub mod packet;
pub mod plugin;
pub mod state;

/// The version of this interface. A larger one adds functions and fields at the end of structures.
pub const SLOWSTART_VERSION: u32 = 1;
/// Stands for a number that is not known.
pub const SLOWSTART_UNKNOWN: u64 = u64::MAX;
/// The largest window, in bytes: 2^40.
pub const SLOWSTART_MOST_WINDOW: u64 = 1_099_511_627_776;

fn known(v: u64) -> Option<u64> {
    (v != SLOWSTART_UNKNOWN).then_some(v)
}

fn unknown(v: Option<u64>) -> u64 {
    v.unwrap_or(SLOWSTART_UNKNOWN)
}
