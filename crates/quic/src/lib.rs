//! The startups of slowstart in QUIC: a host that any stack can drive, an adapter for `noq-proto`, and a simulation of
//! the whole stack at virtual time, with real TLS 1.3, frames and ACK ranges.

pub mod host;
pub mod noq;
pub mod sim;
