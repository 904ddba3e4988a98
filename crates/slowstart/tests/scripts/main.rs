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

mod abc;
mod adaptive;
mod avoidance;
mod bbr;
mod bbr3;
mod capstart;
mod careful_resume;
mod composed;
mod delay;
mod ess;
mod feed;
mod halfback;
mod hybla;
mod hystart;
mod hystart_pp;
mod jump_start;
mod language;
mod limited;
mod packet_pair;
mod quick_start;
mod rapid_start;
mod restricted;
mod search;
mod smooth;
mod standard;
mod stateful;
mod stopeg;
mod suss;
mod tsl;
mod vegas;
