//! BBR: a congestion controller that includes its own startup. It models the path by its bandwidth and its
//! minimum RTT, paces at the bandwidth and limits the data in flight to a multiple of their product.
//!
//! - [`v1`]: as in Linux `tcp_bbr.c`
//! - [`v3`]: as in draft-ietf-ccwg-bbr
//!
//! What both versions share: `shared`, the parts of the model and of its control that are the same; `rate`,
//! delivery-rate samples and the rounds counted by them; `filter`, maxima over a window; `random`, a seeded
//! generator.

mod filter;
mod random;
mod rate;
mod shared;
pub mod v1;
pub mod v3;
