//! BBR, version 3: draft-ietf-ccwg-bbr (August 2026).
//!
//! *Startup* paces at 4 ln 2 of the bandwidth within a window of twice the product of bandwidth and round trip, until
//! three rounds bring no 25 % more, or a round loses more than 2 % in six places; *Drain* paces at half, until what is
//! in flight fits the path or three rounds have passed; *`ProbeBW`* goes down to leave room, cruises, refills and goes up
//! every two to three seconds, or as often as Reno would be back; *`ProbeRTT`* halves what is in flight for 200 ms every
//! five seconds in which no lower round trip was seen.
//!
//! What a probe learns of loss bounds what is in flight for long (`inflight_longterm`), what is lost in between bounds
//! it and the rate until the next probe (`inflight_shortterm`, `bw_shortterm`): `bounds`. The cycle is in `cycle`.
//!
//! Departs from the draft:
//! - The host tells how much is lost, not which packets: the flight in which losses crossed the threshold is that of the
//!   newest packet delivered when they were seen (§5.5.10.2 would rather have that of the lost packet).
//! - Selective acknowledgements are taken for granted; the rules for connections without them are left out.
//! - Where table (§5.6.1) and pseudocode differ, the pseudocode counts: in Drain only `inflight_shortterm` bounds.
//! - The startup is left when the drain ends; its reason was seen when the drain began.

mod bounds;
mod cycle;

use super::chance::Chance;
use super::filter::{TwoPeriods, WindowedMax};
use super::rate::{Rates, Sample};
use super::{MIN_SEGMENTS, PROBE_RTT, exited, nominal_rate, paced, quantum};
use crate::control::{Change, Controller, State};
use crate::step::{Detected, Exit, Pace};
use crate::units::{Bytes, Gain, Instant, Rate, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent, Signal};
use bounds::Bounds;
use cycle::{Cycle, Feedback};

/// 4 ln 2 = 2.7726: the least that doubles what is sent each round trip.
const STARTUP: Gain = Gain(2839);
/// Drains a queue as long as the path in a round trip.
const DRAIN: Gain = Gain(512);
/// The window, where nothing else is said.
const WINDOW: Gain = Gain(2 * 1024);
/// The window while probing upwards, so that it is not in the way of the pace.
const WINDOW_UP: Gain = Gain(2304);
/// Pacing while probing upwards.
const UP: Gain = Gain(1280);
/// Pacing that lets the flight shrink.
const DOWN: Gain = Gain(922);
/// The window of `ProbeRTT`, of the product of bandwidth and round trip.
const PROBE_RTT_WINDOW: Gain = Gain(512);
/// Rounds without growth that say the path is full.
const FULL_ROUNDS: u8 = 3;
/// Separate ranges lost in a round that end Startup, if the share lost does (`BBRStartupFullLossCnt`).
const FULL_LOSSES: u32 = 6;
/// Rounds that Drain lasts at most.
const DRAIN_ROUNDS: u64 = 3;
/// How long a least round trip is believed (`MinRTTFilterLen`), and how often a lower one is looked for.
const MIN_RTT_AGE: Span = Span::secs(10);
const PROBE_RTT_INTERVAL: Span = Span::secs(5);
/// Rounds over which aggregation is the greatest seen, once Startup is over.
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

/// Whether the path is full: three rounds in which what is delivered grew by less than a quarter (§5.3.1.2).
#[derive(Clone, Debug, Default)]
struct Full {
    base: Rate,
    rounds: u8,
    now: bool,
}

/// BBR, version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: State,
    mode: Mode,
    pacing_rate: Rate,
    seen_rtt: bool,
    rates: Rates,
    max_bandwidth: TwoPeriods,
    /// What the path is taken to carry: the maximum, or what losses allow of it.
    bandwidth: Rate,
    full: Full,
    /// Startup is over: why, and when that was seen.
    filled: Option<(Exit, Detected)>,
    left: bool,
    drain_began: u64,
    bounds: Bounds,
    cycle: Cycle,
    chance: Chance,
    // Round trips.
    min_rtt: Option<Span>,
    min_rtt_at: Instant,
    recent_rtt: Option<Span>,
    recent_rtt_at: Instant,
    rtt_expired: bool,
    probe_done_at: Option<Instant>,
    probe_round_done: bool,
    // Aggregation.
    clump_since: Instant,
    clump: Bytes,
    extra_acked: WindowedMax,
    // Recovery.
    recovering: bool,
    prior_window: Bytes,
    restarts: bool,
}

impl Bbr3 {
    /// A connection's controller, with its initial window. The seed decides how long it waits between probes.
    pub fn new(iw: Bytes, seed: u64) -> Self {
        Self {
            state: State { cwnd: iw, ssthresh: None, pace: None, wake: None },
            mode: Mode::Startup,
            pacing_rate: Rate(0),
            seen_rtt: false,
            rates: Rates::default(),
            max_bandwidth: TwoPeriods::default(),
            bandwidth: Rate(0),
            full: Full::default(),
            filled: None,
            left: false,
            drain_began: 0,
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            chance: Chance::new(seed),
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            recent_rtt: None,
            recent_rtt_at: Instant::ZERO,
            rtt_expired: false,
            probe_done_at: None,
            probe_round_done: false,
            clump_since: Instant::ZERO,
            clump: Bytes::ZERO,
            extra_acked: WindowedMax::default(),
            recovering: false,
            prior_window: Bytes::ZERO,
            restarts: false,
        }
    }

    // What the path holds (§5.6.4.2).

    fn product(&self, f: &Facts, bandwidth: Rate, gain: Gain) -> Bytes {
        self.min_rtt.map_or(f.iw, |rtt| bandwidth.over(rtt) * gain)
    }

    /// With room for what the ends of the path hold on to: a burst in each of three places.
    fn budget(&self, f: &Facts, window: Bytes) -> Bytes {
        let least = quantum(f, self.pacing_rate, f.mss * 2) * 3;
        let window = window.max(least).max(f.mss * MIN_SEGMENTS);
        if self.mode == Mode::Up { window + f.mss * 2 } else { window }
    }

    fn inflight(&self, f: &Facts, bandwidth: Rate, gain: Gain) -> Bytes {
        self.budget(f, self.product(f, bandwidth, gain))
    }

    /// What is wanted in flight: what the path holds, unless congestion cut the window.
    fn target_inflight(&self, f: &Facts) -> Bytes {
        self.product(f, self.bandwidth, Gain::UNIT).min(self.state.cwnd)
    }

    // The model of the path.

    fn max_bandwidth(&self) -> Rate {
        Rate(self.max_bandwidth.get())
    }

    /// A sample that the application held down counts only if it shows more than was known (§5.5.5).
    fn update_max_bandwidth(&mut self, s: &Sample) {
        if self.rates.round_start {
            self.cycle.rounds += 1;
        }
        if !s.app_limited || s.rate >= self.max_bandwidth() {
            self.max_bandwidth.raise(s.rate.0);
        }
    }

    /// More delivered than the bandwidth explains (§5.5.9).
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

    fn check_full(&mut self, f: &Facts, s: &Sample) {
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

    /// Losses end Startup if a round of recovery lost more than the threshold in several places (§5.3.1.3).
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
        self.check_startup_loss(f, a);
        if self.mode == Mode::Startup && self.filled.is_some() {
            self.mode = Mode::Drain;
            self.drain_began = self.rates.rounds;
            // Nothing here depends on it; it tells the host that this is no slow start any more, as in Linux.
            self.state.ssthresh = Some(self.inflight(f, self.bandwidth, Gain::UNIT));
        }
    }

    fn check_drain_done(&mut self, f: &Facts) {
        let fits = f.inflight <= self.inflight(f, self.bandwidth, Gain::UNIT);
        if self.mode == Mode::Drain && (fits || self.rates.rounds > self.drain_began + DRAIN_ROUNDS) {
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
            self.probe_done_at = None;
            self.cycle.feedback = Feedback::Stopping;
            self.rates.begin_round(f);
        }
        if self.mode == Mode::ProbeRtt {
            self.rates.hold(f, enters);
            if self.probe_done_at.is_some() {
                self.probe_round_done |= self.rates.round_start;
                if self.probe_round_done {
                    self.check_probe_rtt_done(f);
                }
            } else if f.inflight <= self.probe_rtt_window(f) {
                self.probe_done_at = Some(f.now + PROBE_RTT);
                self.probe_round_done = false;
                self.rates.begin_round(f);
            }
        }
        if a.delivered.0 > 0 {
            self.restarts = false;
        }
    }

    fn check_probe_rtt_done(&mut self, f: &Facts) {
        if self.probe_done_at.is_none_or(|t| f.now <= t) {
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

    // What it asks for (§5.6).

    fn set_pace(&mut self, f: &Facts, gain: Gain) {
        if !self.seen_rtt && f.srtt.is_some() {
            self.seen_rtt = true;
            self.pacing_rate = nominal_rate(f, self.state.cwnd) * STARTUP;
        }
        let rate = paced(self.bandwidth, gain);
        if self.filled.is_some() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
        self.state.pace = Some(Pace::Rate(self.pacing_rate));
    }

    fn save_window(&mut self) {
        let good = !self.recovering && self.mode != Mode::ProbeRtt;
        let window = self.state.cwnd;
        self.prior_window = if good { window } else { self.prior_window.max(window) };
    }

    fn restore_window(&mut self) {
        self.state.cwnd = self.state.cwnd.max(self.prior_window);
    }

    fn set_window(&mut self, f: &Facts, a: &Ack) {
        let most = self.product(f, self.bandwidth, self.mode.window_gain()) + Bytes(self.extra_acked.get());
        let most = self.budget(f, most);
        let mut window = self.state.cwnd;
        if self.filled.is_some() {
            window = (window + a.delivered).min(most);
        } else if window < most || f.delivered < f.iw {
            window += a.delivered;
        }
        window = window.max(f.mss * MIN_SEGMENTS);
        if self.mode == Mode::ProbeRtt {
            window = window.min(self.probe_rtt_window(f));
        }
        self.state.cwnd = window.min(self.bounds.window(f, self.mode));
    }

    /// Records that the startup is over, once.
    fn leave(&mut self, f: &Facts) -> Change {
        let over = self.filled.filter(|_| !self.left && self.mode.in_probe_bw());
        self.left |= over.is_some();
        Change { exited: over.map(|(why, seen)| exited(f, why, seen, self.state.cwnd)), ..Change::NONE }
    }
}

impl Controller for Bbr3 {
    fn on_established(&mut self, f: &Facts, _: &Handshake) -> Change {
        self.min_rtt = f.srtt;
        self.min_rtt_at = f.now;
        self.recent_rtt_at = f.now;
        self.clump_since = f.now;
        self.seen_rtt = f.srtt.is_some();
        self.pacing_rate = nominal_rate(f, self.state.cwnd) * STARTUP;
        self.state.pace = Some(Pace::Rate(self.pacing_rate));
        Change::default()
    }

    fn on_sent(&mut self, _: &Facts, _: &Sent) {}

    fn needs_on_sent(&self) -> bool {
        false
    }

    /// `UpdateOnACK` (§5.2.3), in its order.
    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change {
        let sample = self.rates.take(f, a);
        if let Some(s) = &sample {
            self.bounds.note_delivery(f, a, s);
            self.update_max_bandwidth(s);
            let probes = self.mode.probes_bandwidth();
            self.bounds.end_loss_round(probes, self.max_bandwidth(), self.state.cwnd);
            self.update_aggregation(f, a);
            self.check_full(f, s);
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
        self.set_pace(f, self.mode.pacing_gain());
        self.set_window(f, a);
        self.leave(f)
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
        self.on_lost(f, &c.newest);
        if c.signal == Signal::Timeout {
            self.state.cwnd = f.inflight + f.mss;
        }
        self.leave(f)
    }

    fn on_recovered(&mut self, f: &Facts, r: &Recovery) -> Change {
        self.recovering = false;
        self.restore_window();
        if !r.undone {
            return Change::default();
        }
        // Nothing was lost: bounds are no lower than before, and a probe that losses ended begins again (§5.5.11.2).
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

    /// §5.4: the window stays, and pacing at the bandwidth keeps the burst away.
    fn on_idle(&mut self, f: &Facts, _: Span, _: Option<Span>) -> Change {
        self.restarts = true;
        self.clump_since = f.now;
        if self.mode.in_probe_bw() {
            self.set_pace(f, Gain::UNIT);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(f);
        }
        self.leave(f)
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
        put("pacing_gain", f64::from(self.mode.pacing_gain().0) / 1024.0);
        put("window_gain", f64::from(self.mode.window_gain().0) / 1024.0);
        put("flat_rounds", f64::from(self.full.rounds));
        put("rounds", self.rates.rounds as f64);
        put("inflight_longterm_bytes", bytes(self.bounds.inflight_longterm));
        put("inflight_shortterm_bytes", bytes(self.bounds.inflight_shortterm));
        put("extra_acked_bytes", self.extra_acked.get() as f64);
    }
}
