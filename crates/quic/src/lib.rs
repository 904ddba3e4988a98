//! The startups of slowstart in QUIC: a host that any stack can drive.
//!
//! - [`host`]: what a congestion controller keeps of a connection
//! - [`factory`]: what makes a controller for each connection of an endpoint
//! - [`peers`]: what connections leave to later ones
//!
//! Adapters are crates of their own, one for each stack, so that a new version of a stack concerns its users
//! alone: slowstart-quinn, slowstart-noq and slowstart-s2n. A stack of your own tells a host of its packets, and asks
//! it for the window:
//!
//! ```
//! use slowstart::avoidance::cubic::Cubic;
//! use slowstart::control::Composed;
//! use slowstart::startup::hystart_pp::HyStartPp;
//! use slowstart::units::{Bytes, Instant, Span};
//! use slowstart_quic::host::{Host, INITIAL_PACKETS};
//!
//! let (mss, rtt) = (Bytes(1200), Span::millis(50));
//! let control = Composed::new(HyStartPp::default(), Cubic::default(), mss * INITIAL_PACKETS);
//! let mut host = Host::new(control, Instant::ZERO, mss);
//! host.on_packet_sent(Instant::ZERO, mss, 0);
//! assert_eq!(host.inflight(), mss);
//! host.on_packet_acked(Instant::ZERO + rtt, Instant::ZERO, 0, false);
//! host.on_ack_end(Instant::ZERO + rtt, Some(0));
//! assert_eq!((host.inflight(), host.window()), (Bytes::ZERO, mss * INITIAL_PACKETS));
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod factory;
pub mod host;
pub mod peers;
