//! BBR: a controller of its own, with its startup inside. It models the path by its bandwidth and its least round trip,
//! and paces at the one what the product of both holds.
//!
//! - [`v1`]: as Linux `tcp_bbr.c` has it
//! - [`v3`]: as draft-ietf-ccwg-bbr has it
//!
//! What they share is here: `rate`, delivery-rate samples and the rounds they count; `filter`, maxima over a window.

mod chance;
mod filter;
mod rate;
pub mod v1;
pub mod v3;

use crate::control::Exited;
use crate::step::{Detected, Exit};
use crate::units::{Bytes, Gain, Rate, Span};
use crate::view::Facts;

/// Four segments keep a path with delayed acknowledgements going: one to arrive first, one to be acknowledged with it,
/// and two on their way (`bbr_cwnd_min_target`, `BBR.MinPipeCwnd`).
const MIN_SEGMENTS: u64 = 4;
/// How long the window is held at its least to see the round trip without a queue.
const PROBE_RTT: Span = Span::millis(200);
/// The round trip of a connection that has not seen one, for its first pacing rate.
const NOMINAL_RTT: Span = Span::millis(1);

/// `gain` times `rate`, less a hundredth, so that on average a little less is sent than arrives and queues drain
/// (`bbr_pacing_margin_percent`, `BBR.PacingMarginPercent`).
fn paced(rate: Rate, gain: Gain) -> Rate {
    rate.scale(u64::from(gain.0) * 99, 1024 * 100)
}

/// The bandwidth before any sample of it: the window in a round trip.
fn nominal_rate(f: &Facts, window: Bytes) -> Rate {
    let rtt = f.srtt.unwrap_or(NOMINAL_RTT).max(Span::micros(1));
    Rate::new(window, rtt).unwrap_or_default()
}

/// What the host hands to its interface at once at this rate: a millisecond's worth, but not less than `least`
/// (`bbr_tso_segs_goal`, `SetSendQuantum`); a segment where it sends packet by packet.
fn quantum(f: &Facts, rate: Rate, least: Bytes) -> Bytes {
    // A shift for a division: 1024ths of a second of bits.
    if f.gso_max.0 == 0 { f.mss } else { Bytes(rate.0 >> 13).min(f.gso_max).max(least) }
}

/// The end of a startup that saw its reason when its drain began.
fn exited(f: &Facts, why: Exit, seen: Detected, window: Bytes) -> Exited {
    Exited {
        why,
        at: f.now,
        detected_at: seen.at,
        detected_cwnd: seen.cwnd,
        exit_cwnd: window,
        inflight: f.inflight,
    }
}
