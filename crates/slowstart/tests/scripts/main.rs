//! ACK scripts: the sources' arithmetic, line by line, for a person to check against them.
//!
//! A script begins with what the connection is (`startup`, `avoidance`, `mss`, `iw`, `growth`, `pacing`, `gso`); then
//! each line is a wait, an event and what must be seen after it. The host sends whatever the window allows, so an
//! event is mostly an ACK:
//!
//! ```text
//! +1ms ack 2 x8 rtt 100ms -> cwnd 26, ssthresh -    # eight ACKs of two segments, 1 ms before each
//! round 2 -> exit delay                              # all in flight is acknowledged, two segments an ACK
//! ```
//!
//! What the host offers comes first: `unsent 100`, `queue 50 100` (used, limit), `handshake 100ms`, `syn lost 1`,
//! `syn late`, `granted RATE`, `remembered CWND RTT RATE`; `established` then checks what it makes of them.
//!
//! Windows are in segments. An exit or a resumption that a line does not state fails it.

#![allow(clippy::float_cmp, reason = "a window in segments is exact: whole bytes over a whole segment")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/flow.rs"]
mod flow;

// One file for each startup of the registry.
slowstart::declare_startup_modules!();

mod avoidance;
mod bbr;
mod bbr3;
mod composed;
mod feed;
mod language;
