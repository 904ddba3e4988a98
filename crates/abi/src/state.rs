//! What a host takes from a controller after each call.

use crate::argument::Argument;
use crate::{SLOWSTART_UNKNOWN, known, unknown};
use slowstart::control::{Exited, State};
use slowstart::step::Pace;
use slowstart::units::{Bytes, Gain, Instant, Rate};
use std::ffi::{CStr, c_char};
use std::ptr;

/// Pacing by the host's own rule.
pub const SLOWSTART_PACE_HOST: u64 = 0;
/// Packets are not paced: they leave as soon as the window allows.
pub const SLOWSTART_PACE_OFF: u64 = 1;
/// At pace 1024ths of cwnd / SRTT.
pub const SLOWSTART_PACE_GAIN: u64 = 2;
/// Packets leave at the rate in pace, in bits per second.
pub const SLOWSTART_PACE_RATE: u64 = 3;

/// What the host takes from the controller after each call.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct slowstart_state {
    /// The bytes of this structure, sizeof, by which its version is known.
    pub size: u64,
    /// The congestion window, in bytes.
    pub cwnd: u64,
    /// The slow-start threshold; unknown while it is arbitrarily high.
    pub ssthresh: u64,
    /// When to call the timer's function; unknown means never.
    pub wake_ns: u64,
    /// How to pace, such as SLOWSTART_PACE_HOST.
    pub pace_kind: u64,
    /// The gain or the rate that pace_kind names; 0 where it names none.
    pub pace: u64,
    /// The packet to retransmit now ends this many bytes before the end of the data sent; unknown if none is
    /// asked for. It is that of the newest call alone.
    pub resend: u64,
    /// When the startup detected its reason to end; unknown while it lasts.
    pub exit_detected_ns: u64,
    /// The window at that time.
    pub exit_detected_cwnd: u64,
    /// The window when it left.
    pub exit_cwnd: u64,
    /// Why, or null: "ssthresh", "loss", "ecn", "timeout", "local-stall", "ack-train", "delay", "css-rounds",
    /// "rate-flat", "estimate", or "other". A plugin may set a static string of its own; results say "other".
    pub exit_why: *const c_char,
}

impl Argument for slowstart_state {
    const ABSENT: Self = Self {
        size: 0,
        cwnd: 0,
        ssthresh: SLOWSTART_UNKNOWN,
        wake_ns: SLOWSTART_UNKNOWN,
        pace_kind: SLOWSTART_PACE_HOST,
        pace: 0,
        resend: SLOWSTART_UNKNOWN,
        exit_detected_ns: SLOWSTART_UNKNOWN,
        exit_detected_cwnd: 0,
        exit_cwnd: 0,
        exit_why: ptr::null(),
    };
}

impl slowstart_state {
    /// Returns the structure for C. The exit is that of the startup, and `resend` what the newest call asked
    /// for.
    pub fn of(s: &State, exited: Option<&Exited>, resend: Option<Bytes>) -> Self {
        let (pace_kind, pace) = match s.pace {
            Some(Pace::Off) => (SLOWSTART_PACE_OFF, 0),
            Some(Pace::Gain(gain)) => (SLOWSTART_PACE_GAIN, u64::from(gain.0)),
            Some(Pace::Rate(rate)) => (SLOWSTART_PACE_RATE, rate.0),
            _ => (SLOWSTART_PACE_HOST, 0),
        };
        Self {
            size: size_of::<Self>() as u64,
            cwnd: s.cwnd.0,
            ssthresh: unknown(s.ssthresh.map(|t| t.0)),
            wake_ns: unknown(s.wake.map(|t| t.0)),
            pace_kind,
            pace,
            resend: unknown(resend.map(|b| b.0)),
            exit_detected_ns: unknown(exited.map(|e| e.detected_at.0)),
            exit_detected_cwnd: exited.map_or(0, |e| e.detected_cwnd.0),
            exit_cwnd: exited.map_or(0, |e| e.exit_cwnd.0),
            exit_why: exited.map_or(ptr::null(), |e| e.why.c_name().as_ptr()),
        }
    }

    /// Returns window, threshold, timer and pacing; `None` if `pace_kind` is none of those above, or the gain
    /// is above 2^32.
    pub fn to_state(&self) -> Option<State> {
        let pace = match self.pace_kind {
            SLOWSTART_PACE_HOST => None,
            SLOWSTART_PACE_OFF => Some(Pace::Off),
            SLOWSTART_PACE_GAIN => Some(Pace::Gain(Gain(u32::try_from(self.pace).ok()?))),
            SLOWSTART_PACE_RATE => Some(Pace::Rate(Rate(self.pace))),
            _ => return None,
        };
        Some(State {
            cwnd: Bytes(self.cwnd),
            ssthresh: known(self.ssthresh).map(Bytes),
            pace,
            wake: known(self.wake_ns).map(Instant),
        })
    }

    /// Returns the packet to retransmit.
    pub fn to_resend(&self) -> Option<Bytes> {
        known(self.resend).map(Bytes)
    }

    /// Returns the name of the reason to leave; `None` if there is none.
    ///
    /// # Safety
    /// `exit_why` is null or a string that ends with a zero.
    pub unsafe fn why(&self) -> Option<&CStr> {
        // SAFETY: as the caller promises.
        (!self.exit_why.is_null()).then(|| unsafe { CStr::from_ptr(self.exit_why) })
    }
}
