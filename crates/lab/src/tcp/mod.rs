//! A TCP endpoint that behaves like today's Linux, sequence-accurate: segments in, segments out, time an argument.
//!
//! It drives one [`slowstart::control::Controller`] and knows no algorithm. Sequence numbers are 64-bit offsets inside
//! (the SYN is 0, the first byte of data 1) and 32-bit on the wire.
//!
//! - [`segment`]: what travels
//! - [`profile`]: the knobs, and the stacks they describe
//! - [`ranges`]: sets of sequence ranges, for both ends' out-of-order data
//! - [`rtt`]: round-trip estimation and the retransmission timeout
//! - [`scoreboard`]: every segment in flight, and what is known of it
//! - [`rack`]: loss detection by time
//! - [`pacer`]: when the next burst may leave, and how large it is
//! - [`sender`]: what to send, and what an acknowledgement means
//! - [`receiver`]: what to acknowledge, and when
//! - [`endpoint`]: both halves, with handshake and close

pub mod endpoint;
pub mod pacer;
pub mod profile;
pub mod rack;
pub mod ranges;
pub mod receiver;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
pub mod sender;
