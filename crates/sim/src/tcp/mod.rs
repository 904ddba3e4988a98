//! A TCP endpoint that behaves like Linux 6.18. It takes and returns segments with full sequence numbers;
//! time is an argument.
//!
//! An endpoint drives one [`slowstart::control::Controller`] and depends on no algorithm. Sequence numbers
//! are 64-bit offsets internally (the SYN is 0, the first byte of data 1) and 32-bit in segments.
//!
//! - [`segment`]: TCP segments
//! - [`profile`]: parameters of a TCP stack, and named profiles
//! - [`ranges`]: sets of sequence ranges, for the out-of-order data of both ends
//! - [`rtt`]: RTT estimation and the retransmission timeout
//! - [`scoreboard`]: the state of every segment in flight
//! - [`rack`]: loss detection by time
//! - [`pacer`]: send time and size of bursts
//! - [`sender`]: the sending half: ACK processing, recovery, timers, transmission
//! - [`receiver`]: the receiving half: when and what to acknowledge
//! - [`ecn`]: explicit congestion notification
//! - `gro`: segments merged before the receiving half sees them
//! - `reader`: an application that reads slowly
//! - [`endpoint`]: both halves with handshake and close

pub mod accecn;
mod backlog;
pub mod ecn;
pub mod endpoint;
mod gro;
pub mod pacer;
pub mod profile;
pub mod rack;
pub mod ranges;
mod reader;
pub mod receiver;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
pub mod sender;
