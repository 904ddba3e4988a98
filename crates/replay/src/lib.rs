//! What every startup would have done on a connection that somebody else made.
//!
//! The rooms, each leaning only on those above it:
//!
//! - [`error`]: what was found where, and what was expected
//! - [`open`]: what a file is, compressed or not
//! - [`capture`]: pcap and pcapng, as a stream of TCP packets
//! - [`observer`]: a startup that looks on
//! - [`infer`]: where slow start ended, seen from outside
//! - [`analysis`]: a sender's events, and what they say
//! - [`sender`]: the sender as it must have been
//! - [`connection`]: packets told apart, from either side
//! - [`table`]: the connections of a capture
//! - [`kernlog`]: logs of a kernel, an ACK a line
//! - [`events`]: events of startups in a running kernel
//! - [`samples`]: windows seen from time to time: `ss`, NDT7, flent, our rows
//! - [`qlog`]: QUIC's logs, and ours of simulated runs
//! - [`wire`]: simulated runs as captures
//! - [`transfer`]: the row of one connection, one way
//! - [`fit`]: a path fitted to a capture
//! - [`fork`]: each startup from where its prediction ended, over that path
//! - [`page`]: a transfer as a page
//! - [`replay`]: a file, whatever it is

pub mod analysis;
pub mod capacity;
pub mod capture;
pub mod connection;
pub mod error;
pub mod events;
pub mod fit;
pub mod fork;
pub mod infer;
pub mod kernlog;
pub mod observer;
pub mod open;
pub mod page;
pub mod qlog;
pub mod replay;
pub mod samples;
pub mod sender;
pub mod table;
pub mod transfer;

pub mod wire;
