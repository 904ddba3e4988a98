//! BBR version 3: draft-ietf-ccwg-bbr-06. The head of August 2026 (commit 4ce5e87) changes no step of it.
//!
//! *Startup* paces at 4 ln 2 times the bandwidth within a window of two BDPs, until the bandwidth has grown
//! by less than 25 % in three rounds, or until a round loses more than 2 % in at least six ranges. *Drain*
//! paces at half the bandwidth until the data in flight is at most the BDP, at most three rounds. *`ProbeBW`*
//! cycles through down (leave room for other flows), cruise, refill and up, every two to three seconds or as
//! often as Reno would return to its window. *`ProbeRTT`* halves the data in flight for 200 ms if the minimum
//! RTT has not been measured again for five seconds.
//!
//! Loss during a probe limits the data in flight until it is probed again (`inflight_longterm`). Loss between
//! probes limits data in flight and rate until the next probe (`inflight_shortterm`, `bw_shortterm`). Both
//! are in `bounds`, the cycle in `cycle`.
//!
//! [`Bbr3::quiche`] has the Startup and Drain of quiche's `BBRv2` (`quiche`), and everything else of the
//! draft.
//!
//! Departs from the draft:
//! - The host reports how much is lost, not which packets. The data in flight at which losses exceeded the
//!   threshold is taken from the most recently sent packet delivered at that time (§5.5.10.2 uses that of the
//!   lost packet).
//! - Selective acknowledgements are assumed; the rules for connections without them are omitted.
//! - Where the table (§5.6.1) and the pseudocode differ, the pseudocode is used: in Drain only
//!   `inflight_shortterm` limits.
//! - The recorded exit from startup is at the end of Drain, and its detection at the beginning of Drain.

mod bounds;
mod cycle;
pub mod quiche;

use super::filter::{TwoPeriods, WindowedMax};
use super::random::Random;
use super::rate::{Rates, Sample};
use super::shared::{
    FULL_ROUNDS, MIN_RTT_AGE, MIN_SEGMENTS, Pacing, ProbeRttTimer, SavedWindow, grow, nominal_rate, paced,
    quantum, report_exit,
};
use crate::control::{Change, Controller, State};
use crate::step::{Detected, Exit};
use crate::units::{Bytes, Gain, Instant, Rate, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent, Signal};
use bounds::Bounds;
use cycle::{Cycle, Feedback};
use quiche::Quiche;

/// 4 ln 2 = 2.7726: the smallest gain that doubles the rate each round trip.
const STARTUP: Gain = Gain(2839);
/// Drains a queue of one BDP in one round trip.
const DRAIN: Gain = Gain(512);
/// The window in all other modes, in BDPs.
const WINDOW: Gain = Gain(2 * 1024);
/// The window while probing upwards, so that it does not limit the paced rate.
const WINDOW_UP: Gain = Gain(2304);
/// The pacing gain while probing upwards.
const UP: Gain = Gain(1280);
/// The pacing gain while reducing the data in flight.
const DOWN: Gain = Gain(922);
/// The window of `ProbeRTT`, in BDPs.
const PROBE_RTT_WINDOW: Gain = Gain(512);
/// Ranges lost in a round that end Startup if the share lost does too (`BBRStartupFullLossCnt`).
const FULL_LOSSES: u32 = 6;
/// Maximum duration of Drain, in rounds.
const DRAIN_ROUNDS: u64 = 3;
/// How often `ProbeRTT` looks for a lower RTT (`ProbeRTTInterval`).
const PROBE_RTT_INTERVAL: Span = Span::secs(5);
/// Rounds in the window of the aggregation filter after Startup.
const AGGREGATION_ROUNDS: u64 = 10;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Mode {
    const fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
    const fn in_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
    const fn pacing_gain(self) -> Gain {
        match self {
            Self::Startup => STARTUP,
            Self::Drain => DRAIN,
            Self::Down => DOWN,
            Self::Up => UP,
            Self::Cruise | Self::Refill | Self::ProbeRtt => Gain::UNIT,
        }
    }
    const fn window_gain(self) -> Gain {
        match self {
            Self::Up => WINDOW_UP,
            Self::ProbeRtt => PROBE_RTT_WINDOW,
            _ => WINDOW,
        }
    }
}

/// Detects a full path: the delivery rate has grown by less than a quarter in three rounds (§5.3.1.2).
#[derive(Clone, Debug, Default)]
struct Full {
    base: Rate,
    rounds: u8,
    now: bool,
}

/// BBR version 3, startup and avoidance in one; one instance a connection.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: State,
    mode: Mode,
    pacing: Pacing,
    rates: Rates,
    max_bandwidth: TwoPeriods,
    /// The bandwidth estimate: the maximum, or less because of losses.
    bandwidth: Rate,
    full: Full,
    /// Why and when Startup found the path full.
    filled: Option<(Exit, Detected)>,
    left: bool,
    /// Startup and Drain as in quiche.
    quiche: Option<Quiche>,
    drain_began: u64,
    bounds: Bounds,
    cycle: Cycle,
    random: Random,
    // Round-trip times.
    min_rtt: Option<Span>,
    min_rtt_at: Instant,
    recent_rtt: Option<Span>,
    recent_rtt_at: Instant,
    rtt_expired: bool,
    probe_rtt: ProbeRttTimer,
    // Aggregation.
    clump_since: Instant,
    clump: Bytes,
    extra_acked: WindowedMax,
    // Recovery.
    recovering: bool,
    saved_window: SavedWindow,
    restarts: bool,
}

impl Bbr3 {
    /// Returns a new controller with the initial window `iw` in bytes. `seed` determines the times between
    /// probes.
    pub fn new(iw: Bytes, seed: u64) -> Self {
        Self {
            state: State { cwnd: iw, ssthresh: None, pace: None, wake: None },
            mode: Mode::Startup,
            pacing: Pacing::default(),
            rates: Rates::default(),
            max_bandwidth: TwoPeriods::default(),
            bandwidth: Rate(0),
            full: Full::default(),
            filled: None,
            left: false,
            quiche: None,
            drain_began: 0,
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            random: Random::new(seed),
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            recent_rtt: None,
            recent_rtt_at: Instant::ZERO,
            rtt_expired: false,
            probe_rtt: ProbeRttTimer::default(),
            clump_since: Instant::ZERO,
            clump: Bytes::ZERO,
            extra_acked: WindowedMax::default(),
            recovering: false,
            saved_window: SavedWindow::default(),
            restarts: false,
        }
    }

    /// Returns the same with the Startup and Drain of quiche's `BBRv2`.
    pub fn quiche(iw: Bytes, seed: u64, params: quiche::Params) -> Self {
        Self { quiche: Some(Quiche::new(params)), ..Self::new(iw, seed) }
    }

    // Amounts of data in flight (§5.6.4.2).

    fn product(&self, f: &Facts, bandwidth: Rate, gain: Gain) -> Bytes {
        self.min_rtt.map_or(f.iw, |rtt| bandwidth.over(rtt) * gain)
    }

    /// Returns the window increased by what the hosts hold: at least three bursts.
    fn budget(&self, f: &Facts, window: Bytes) -> Bytes {
        let least = quantum(f, self.pacing.rate, f.mss * 2) * 3;
        let window = window.max(least).max(f.mss * MIN_SEGMENTS);
        if self.mode == Mode::Up { window + f.mss * 2 } else { window }
    }

    fn inflight(&self, f: &Facts, bandwidth: Rate, gain: Gain) -> Bytes {
        self.budget(f, self.product(f, bandwidth, gain))
    }

    /// Returns the desired data in flight: one BDP, or the window if that is smaller.
    fn target_inflight(&self, f: &Facts) -> Bytes {
        self.product(f, self.bandwidth, Gain::UNIT).min(self.state.cwnd)
    }

    // The model of the path.

    fn max_bandwidth(&self) -> Rate {
        Rate(self.max_bandwidth.get())
    }

    /// An application-limited sample counts only if it exceeds the maximum (§5.5.5).
    fn update_max_bandwidth(&mut self, s: &Sample) {
        if self.rates.round_start {
            self.cycle.rounds += 1;
        }
        if !s.app_limited || s.rate >= self.max_bandwidth() {
            self.max_bandwidth.raise(s.rate.0);
        }
    }

    /// Measures data delivered beyond what the bandwidth accounts for (§5.5.9).
    fn update_aggregation(&mut self, f: &Facts, a: &Ack) {
        let mut expected = self.bandwidth.over(f.now.since(self.clump_since));
        if self.clump <= expected {
            self.clump = Bytes::ZERO;
            self.clump_since = f.now;
            expected = Bytes::ZERO;
        }
        self.clump += a.delivered;
        let extra = (self.clump - expected).min(self.state.cwnd);
        let window = if self.filled.is_some() { AGGREGATION_ROUNDS } else { 1 };
        self.extra_acked.raise(window, self.rates.rounds, extra.0);
    }

    fn check_full(&mut self, f: &Facts, a: &Ack, s: &Sample) {
        if self.quiche.is_some() && self.mode == Mode::Startup {
            self.check_full_quiche(f, a, s);
            return;
        }
        if self.full.now || !self.rates.round_start || s.app_limited {
            return;
        }
        if s.rate >= self.full.base.scale(5, 4) {
            self.full = Full { base: s.rate, ..Full::default() };
            return;
        }
        self.full.rounds += 1;
        self.full.now = self.full.rounds >= FULL_ROUNDS;
        if self.full.now {
            self.fill(f, Exit::RateFlat);
        }
    }

    fn fill(&mut self, f: &Facts, why: Exit) {
        self.filled = self.filled.or(Some((why, Detected { at: f.now, cwnd: self.state.cwnd })));
    }

    // Startup and Drain (§5.3.1, §5.3.2).

    /// Ends Startup if a round in recovery lost more than the threshold in at least `FULL_LOSSES` ranges
    /// (§5.3.1.3).
    fn check_startup_loss(&mut self, f: &Facts, a: &Ack) {
        if !self.bounds.round_start {
            return;
        }
        let ranges = core::mem::take(&mut self.bounds.ranges);
        let high = self.recovering && ranges >= FULL_LOSSES && bounds::too_high(f, &a.newest);
        if high && self.mode == Mode::Startup {
            self.bounds.undo_mode = Some(Mode::Startup);
            self.fill(f, Exit::Loss);
            let safe = self.product(f, self.bandwidth, Gain::UNIT).max(self.bounds.inflight_latest);
            self.bounds.inflight_longterm = Some(safe);
        }
    }

    fn check_startup_done(&mut self, f: &Facts, a: &Ack) {
        if self.quiche.is_none() {
            self.check_startup_loss(f, a);
        }
        if self.mode == Mode::Startup && self.filled.is_some() {
            self.mode = Mode::Drain;
            self.drain_began = self.rates.rounds;
            // Not used here. Tells the host that slow start is over, as in Linux.
            self.state.ssthresh = Some(self.inflight(f, self.bandwidth, Gain::UNIT));
        }
    }

    fn check_drain_done(&mut self, f: &Facts) {
        if self.mode != Mode::Drain {
            return;
        }
        let done = if self.quiche.is_some() {
            f.inflight <= self.product(f, self.max_bandwidth(), Gain::UNIT)
        } else {
            f.inflight <= self.inflight(f, self.bandwidth, Gain::UNIT)
                || self.rates.rounds > self.drain_began + DRAIN_ROUNDS
        };
        if done {
            self.start_down(f);
        }
    }

    // ProbeRTT (§5.3.4).

    fn update_min_rtt(&mut self, f: &Facts, a: &Ack) {
        self.rtt_expired = f.now > self.recent_rtt_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = a.rtt.filter(|r| self.rtt_expired || self.recent_rtt.is_none_or(|m| *r < m)) {
            self.recent_rtt = Some(rtt);
            self.recent_rtt_at = f.now;
        }
        let expired = f.now > self.min_rtt_at + MIN_RTT_AGE;
        if let Some(recent) = self.recent_rtt.filter(|r| expired || self.min_rtt.is_none_or(|m| *r < m)) {
            self.min_rtt = Some(recent);
            self.min_rtt_at = self.recent_rtt_at;
        }
    }

    fn check_probe_rtt(&mut self, f: &Facts, a: &Ack) {
        let enters = self.mode != Mode::ProbeRtt && self.rtt_expired && !self.restarts;
        if enters {
            self.mode = Mode::ProbeRtt;
            self.save_window();
            self.cycle.feedback = Feedback::Stopping;
            self.rates.begin_round(f);
        }
        if self.mode == Mode::ProbeRtt {
            let window = self.probe_rtt_window(f);
            if self.probe_rtt.on_ack(f, &mut self.rates, window, enters) {
                self.check_probe_rtt_done(f);
            }
        }
        if a.delivered.0 > 0 {
            self.restarts = false;
        }
    }

    fn check_probe_rtt_done(&mut self, f: &Facts) {
        if !self.probe_rtt.expired(f.now) {
            return;
        }
        self.recent_rtt_at = f.now;
        self.restore_window();
        self.bounds.forget_short_term();
        if self.filled.is_some() {
            self.start_down(f);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn probe_rtt_window(&self, f: &Facts) -> Bytes {
        self.product(f, self.bandwidth, PROBE_RTT_WINDOW).max(f.mss * MIN_SEGMENTS)
    }

    // Window and pacing (§5.6).

    fn set_pace(&mut self, f: &Facts, gain: Gain) {
        let window = self.state.cwnd;
        let rate = paced(self.bandwidth, gain);
        let first = self.first_pace();
        let initial = || nominal_rate(f, window) * first;
        self.pacing.update(f, rate, self.filled.is_some(), initial, &mut self.state);
    }

    /// The first pacing rate, in windows a round trip.
    fn first_pace(&self) -> Gain {
        if self.quiche.is_some() { quiche::FIRST_PACE } else { STARTUP }
    }

    fn pacing_gain(&self) -> Gain {
        if self.quiche.is_some() && self.mode == Mode::Drain {
            quiche::DRAIN
        } else {
            self.mode.pacing_gain()
        }
    }

    fn save_window(&mut self) {
        let reduced = self.recovering || self.mode == Mode::ProbeRtt;
        self.saved_window.save(self.state.cwnd, reduced);
    }

    fn restore_window(&mut self) {
        self.state.cwnd = self.saved_window.restore(self.state.cwnd);
    }

    fn set_window(&mut self, f: &Facts, a: &Ack) {
        let most = self.product(f, self.bandwidth, self.mode.window_gain()) + Bytes(self.extra_acked.get());
        let most = self.budget(f, most);
        let mut window = grow(f, self.state.cwnd, a.delivered, most, self.filled.is_some());
        if self.quiche.is_some() {
            if self.filled.is_none() && self.state.cwnd < f.iw * 2 {
                window = window.max(self.state.cwnd + a.delivered);
            }
            window = window.max(f.iw);
        }
        if self.mode == Mode::ProbeRtt {
            window = window.min(self.probe_rtt_window(f));
        }
        self.state.cwnd = window.min(self.bounds.window(f, self.mode));
    }

    fn report_exit(&mut self, f: &Facts) -> Change {
        let over = self.filled.filter(|_| self.mode.in_probe_bw());
        report_exit(f, over, &mut self.left, self.state.cwnd)
    }
}

impl Controller for Bbr3 {
    fn on_established(&mut self, f: &Facts, _: &Handshake) -> Change {
        // The handshake may have negotiated smaller segments.
        self.state.cwnd = f.iw.max(f.min_window);
        self.min_rtt = f.srtt;
        self.min_rtt_at = f.now;
        self.recent_rtt_at = f.now;
        self.clump_since = f.now;
        let rate = nominal_rate(f, self.state.cwnd) * self.first_pace();
        self.pacing.start(f, rate, &mut self.state);
        Change::default()
    }

    fn on_sent(&mut self, _: &Facts, _: &Sent) {}

    fn needs_on_sent(&self) -> bool {
        false
    }

    /// `UpdateOnACK` (§5.2.3), in the order of the draft.
    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change {
        let sample = self.rates.take(f, a);
        if let Some(s) = &sample {
            self.bounds.note_delivery(f, a, s);
            self.update_max_bandwidth(s);
            let probes = self.mode.probes_bandwidth();
            self.bounds.end_loss_round(probes, self.max_bandwidth(), self.state.cwnd);
            self.update_aggregation(f, a);
            self.check_full(f, a, s);
            self.check_startup_done(f, a);
        }
        self.check_drain_done(f);
        self.update_cycle(f, a, sample.as_ref());
        self.update_min_rtt(f, a);
        self.check_probe_rtt(f, a);
        if let Some(s) = &sample {
            self.bounds.begin_delivery_round(s);
        }
        self.bandwidth = self.max_bandwidth().min(self.bounds.bandwidth_shortterm.unwrap_or(Rate(u64::MAX)));
        self.set_pace(f, self.pacing_gain());
        self.slow_first_pace(a);
        self.set_window(f, a);
        self.report_exit(f)
    }

    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change {
        if c.lost.0 == 0 || !matches!(c.signal, Signal::Loss | Signal::Timeout) {
            return Change::default();
        }
        if c.first || !self.bounds.lossy {
            self.save_window();
            self.bounds.save();
        }
        self.recovering = true;
        self.bounds.note_loss(f, c);
        if let Some(q) = &mut self.quiche {
            q.note_loss(c);
        }
        self.on_lost(f, &c.newest);
        if c.signal == Signal::Timeout {
            self.state.cwnd = (f.inflight + f.mss).max(f.min_window);
        }
        self.report_exit(f)
    }

    fn on_recovered(&mut self, f: &Facts, r: &Recovery) -> Change {
        self.recovering = false;
        self.restore_window();
        if !r.undone {
            return Change::default();
        }
        // Nothing was lost: raise the bounds to their saved values and repeat a probe that losses ended
        // (§5.5.11.2).
        self.full = Full::default();
        let ended = self.bounds.undo();
        let mut change = Change::default();
        match ended {
            Some(Mode::Startup) if self.mode != Mode::Startup => {
                self.filled = None;
                change.resumed = core::mem::take(&mut self.left);
                if self.mode != Mode::ProbeRtt {
                    self.mode = Mode::Startup;
                    self.state.ssthresh = None;
                }
            }
            Some(Mode::Up) if !matches!(self.mode, Mode::Up | Mode::ProbeRtt) => self.start_refill(f),
            _ => {}
        }
        change
    }

    fn on_timer(&mut self, _: &Facts) -> Change {
        self.state.wake = None;
        Change::default()
    }

    /// §5.4, if the application or `ProbeRTT` limited sending (`C.app_limited`): the window is kept, and pacing
    /// at the bandwidth prevents a burst.
    fn on_idle(&mut self, f: &Facts, _: Span, _: Option<Span>) -> Change {
        if !self.rates.starved && self.mode != Mode::ProbeRtt {
            return Change::default();
        }
        self.restarts = true;
        self.clump_since = f.now;
        if self.mode.in_probe_bw() {
            self.set_pace(f, Gain::UNIT);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(f);
        }
        self.report_exit(f)
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn phase(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::Down => "probe-bw-down",
            Mode::Cruise => "probe-bw-cruise",
            Mode::Refill => "probe-bw-refill",
            Mode::Up => "probe-bw-up",
            Mode::ProbeRtt => "probe-rtt",
        }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let bytes = |b: Option<Bytes>| b.map_or(f64::NAN, |b| b.0 as f64);
        put("bandwidth_bps", self.bandwidth.0 as f64);
        put("max_bandwidth_bps", self.max_bandwidth().0 as f64);
        put("min_rtt_s", self.min_rtt.map_or(f64::NAN, Span::as_secs_f64));
        put("pacing_gain", f64::from(self.pacing_gain().0) / 1024.0);
        put("window_gain", f64::from(self.mode.window_gain().0) / 1024.0);
        put("flat_rounds", f64::from(self.full.rounds));
        put("rounds", self.rates.rounds as f64);
        put("inflight_longterm_bytes", bytes(self.bounds.inflight_longterm));
        put("inflight_shortterm_bytes", bytes(self.bounds.inflight_shortterm));
        put("extra_acked_bytes", self.extra_acked.get() as f64);
    }
}
