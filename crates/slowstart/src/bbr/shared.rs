//! The parts of BBR that versions 1 and 3 have in common.

use super::rate::Rates;
use crate::control::{Change, Exited, State};
use crate::step::{Detected, Exit, Pace};
use crate::units::{Bytes, Gain, Instant, Rate, Span};
use crate::view::Facts;

/// The minimum window, in segments. Four keep a path with delayed ACKs in use (`bbr_cwnd_min_target`,
/// `BBR.MinPipeCwnd`).
pub(super) const MIN_SEGMENTS: u64 = 4;
/// Rounds without growth of the bandwidth by a quarter after which Startup ends (`bbr_full_bw_cnt`).
pub(super) const FULL_ROUNDS: u8 = 3;
/// How long a minimum RTT is valid (`bbr_min_rtt_win_sec`, `MinRTTFilterLen`).
pub(super) const MIN_RTT_AGE: Span = Span::secs(10);
/// How long `ProbeRTT` keeps the window at its minimum, to measure the RTT without a queue.
const PROBE_RTT: Span = Span::millis(200);
/// The RTT assumed for the first pacing rate of a connection without an RTT sample.
const NOMINAL_RTT: Span = Span::millis(1);

/// Returns `gain` times `rate`, less 1 %, so that on average a little less is sent than is delivered and
/// queues drain (`bbr_pacing_margin_percent`, `BBR.PacingMarginPercent`).
pub(super) fn paced(rate: Rate, gain: Gain) -> Rate {
    rate.scale(u64::from(gain.0) * 99, 1024 * 100)
}

/// Returns the bandwidth assumed before the first sample: `window` per smoothed RTT.
pub(super) fn nominal_rate(f: &Facts, window: Bytes) -> Rate {
    let rtt = f.srtt.unwrap_or(NOMINAL_RTT).max(Span::micros(1));
    Rate::new(window, rtt).unwrap_or_default()
}

/// Returns the size of the bursts that the host passes to its interface at this rate: about 1 ms of data, at
/// least `least` and at most [`Facts::gso_max`] (`bbr_tso_segs_goal`, `SetSendQuantum`); one segment if the
/// host sends packet by packet.
pub(super) fn quantum(f: &Facts, rate: Rate, least: Bytes) -> Bytes {
    // A shift instead of a division: bytes in 1/1024 s.
    if f.gso_max.0 == 0 { f.mss } else { Bytes(rate.0 >> 13).min(f.gso_max).max(least) }
}

/// Returns the change that reports the end of the startup, once: when `over` is set and `reported` is not.
pub(super) fn report_exit(
    f: &Facts,
    over: Option<(Exit, Detected)>,
    reported: &mut bool,
    window: Bytes,
) -> Change {
    let over = over.filter(|_| !*reported);
    *reported |= over.is_some();
    let exited = over.map(|(why, detected)| Exited {
        why,
        at: f.now,
        detected_at: detected.at,
        detected_cwnd: detected.cwnd,
        exit_cwnd: window,
        inflight: f.inflight,
    });
    Change { exited, ..Change::NONE }
}

/// Returns the window after an ACK, before limits by loss: up to `target` once the path is full; before that
/// it grows by what is delivered while it is below the target or while less than the initial window has been
/// delivered. At least [`MIN_SEGMENTS`] (`bbr_set_cwnd`; draft §5.6.4.6).
pub(super) fn grow(f: &Facts, window: Bytes, delivered: Bytes, target: Bytes, full: bool) -> Bytes {
    let grown = if full {
        (window + delivered).min(target)
    } else if window < target || f.delivered < f.iw {
        window + delivered
    } else {
        window
    };
    grown.max(f.mss * MIN_SEGMENTS)
}

/// The pacing rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacing {
    pub(super) rate: Rate,
    /// An RTT sample existed when the rate was set from the window.
    has_rtt: bool,
}

impl Pacing {
    /// Sets the rate before there is a bandwidth sample.
    pub(super) fn start(&mut self, f: &Facts, rate: Rate, state: &mut State) {
        self.has_rtt = f.srtt.is_some();
        self.rate = rate;
        state.pace = Some(Pace::Rate(rate));
    }

    /// Sets the rate to `rate`. Until the path is full it never falls, so that early samples do not slow
    /// Startup down. `initial` is the rate before there is a bandwidth sample; it is set again with the first
    /// RTT sample.
    pub(super) fn update(
        &mut self,
        f: &Facts,
        rate: Rate,
        full: bool,
        initial: impl Fn() -> Rate,
        state: &mut State,
    ) {
        if !self.has_rtt && f.srtt.is_some() {
            self.has_rtt = true;
            self.rate = initial();
        }
        if full || rate > self.rate {
            self.rate = rate;
        }
        state.pace = Some(Pace::Rate(self.rate));
    }
}

/// The duration of a visit to `ProbeRTT`: at least 200 ms and one round trip, from the time when the data in
/// flight has fallen to the window of the phase.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeRttTimer {
    done_at: Option<Instant>,
    round_done: bool,
}

impl ProbeRttTimer {
    /// Called for each ACK in `ProbeRTT`, with `enters` set for the first. Returns true if a round trip has
    /// passed since the data in flight fell to `window`; the caller then checks [`ProbeRttTimer::expired`].
    pub(super) fn on_ack(&mut self, f: &Facts, rates: &mut Rates, window: Bytes, enters: bool) -> bool {
        if enters {
            self.done_at = None;
        }
        rates.limit_samples(f, enters);
        if self.done_at.is_some() {
            self.round_done |= rates.round_start;
            return self.round_done;
        }
        if f.inflight <= window {
            self.done_at = Some(f.now + PROBE_RTT);
            self.round_done = false;
            rates.begin_round(f);
        }
        false
    }

    /// Returns true if the 200 ms are over.
    pub(super) fn expired(&self, now: Instant) -> bool {
        self.done_at.is_some_and(|t| now > t)
    }
}

/// The last window that neither recovery nor `ProbeRTT` had reduced (`bbr_save_cwnd`, `BBRSaveCwnd`).
#[derive(Clone, Debug, Default)]
pub(super) struct SavedWindow(Bytes);

impl SavedWindow {
    /// Saves `window`. If it is already reduced, the saved window does not fall.
    pub(super) fn save(&mut self, window: Bytes, reduced: bool) {
        self.0 = if reduced { self.0.max(window) } else { window };
    }

    /// Returns the saved window, or `window` if that is larger.
    pub(super) fn restore(&self, window: Bytes) -> Bytes {
        window.max(self.0)
    }
}
