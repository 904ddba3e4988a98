//! ACK scripts: the arithmetic of the sources, in a form that can be checked against them by hand.
//!
//! A script begins with the connection (`startup`, `avoidance`, `mss`, `iw`, `growth`, `pacing`, `gso`). Each
//! further line is a wait, an event and the expected state after it. The host sends whatever the window
//! permits, so most events are ACKs:
//!
//! ```text
//! +1ms ack 2 x8 rtt 100ms -> cwnd 26, ssthresh -    # eight ACKs of two segments, 1 ms before each
//! round 2 -> exit delay                              # all in flight is acknowledged, two segments per ACK
//! ```
//!
//! What the host offers comes first: `unsent 100`, `queue 50 100` (used, limit), `handshake 100ms`,
//! `syn lost 1`, `syn late`, `granted RATE`, `remembered CWND RTT RATE`. `established` then checks the
//! result.
//!
//! Windows are in segments. An exit or a resumption that a line does not state is a failure.

#![allow(clippy::float_cmp, reason = "a window in segments is exact: whole bytes over a whole segment")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/flow.rs"]
mod flow;

// One file for each startup of the registry.
slowstart::declare_startup_modules!();

mod abba;
mod avoidance;
mod bbr;
mod bbr2_quiche;
mod bbr3;
mod composed;
mod feed;
mod language;
mod neqo;
