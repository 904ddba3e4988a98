//! The startups of slowstart in QUIC: a host that any stack can drive, adapters, and a simulation of whole
//! stacks at virtual time, with real TLS 1.3, frames and ACK ranges.
//!
//! Each stack is a feature, so that a program builds one only: `noq` (noq-proto 1.4), `quinn` (quinn-proto
//! 0.11) and `s2n` (s2n-quic 1.91). The feature `sim` adds the simulation, with the first two.

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(any(feature = "noq", feature = "quinn", feature = "s2n"))]
pub mod factory;
pub mod host;
#[cfg(feature = "noq")]
pub mod noq;
pub mod peers;
#[cfg(feature = "quinn")]
pub mod quinn;
#[cfg(feature = "s2n")]
pub mod s2n;
#[cfg(feature = "sim")]
pub mod sim;
