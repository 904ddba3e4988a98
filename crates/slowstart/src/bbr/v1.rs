//! BBR version 1: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, *BBR: congestion-based congestion control*, ACM
//! Queue 2016, as in Linux `tcp_bbr.c`.
//!
//! *Startup* paces at 2/ln 2 times the bandwidth, which doubles the rate each round trip, until the bandwidth
//! has grown by less than 25 % in three rounds. *Drain* paces at the inverse gain until the data in flight is
//! at most the BDP. *`ProbeBW`* cycles through eight round trips: one at 1.25 times the bandwidth, one at
//! 0.75 and six at 1. *`ProbeRTT`* limits the window to four segments for 200 ms if the minimum RTT has not
//! been measured again for ten seconds.
//!
//! Departs from Linux:
//! - The long-term bandwidth sampling for policers (`lt_bw`) is omitted.
//! - All data in flight counts as in the network. Linux subtracts what its pacer has scheduled for later
//!   (`bbr_packets_in_net_at_edt`).
//! - The window is in bytes. Targets are rounded up to whole segments, as in Linux.
//! - The recorded exit from startup is at the end of Drain, and its detection at the beginning of Drain.

use super::filter::{TwoPeriods, WindowedMax};
use super::random::Random;
use super::rate::{Rates, Sample};
use super::shared::{
    FULL_ROUNDS, MIN_RTT_AGE, MIN_SEGMENTS, Pacing, ProbeRttTimer, SavedWindow, grow, nominal_rate, paced,
    quantum, report_exit,
};
use crate::control::{Change, Controller, State};
use crate::param::params;
use crate::step::{Detected, Exit};
use crate::units::{Bytes, Fixed, Gain, Instant, Rate, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent, Signal};

/// 2/ln 2 = 2.885, as `bbr_high_gain` (units of 1/256).
const HIGH: Gain = Gain(739 * 4);
/// The inverse of `HIGH` (`bbr_drain_gain`).
const DRAIN: Gain = Gain(88 * 4);
/// The window in `ProbeBW`, in BDPs; leaves room for delayed and stretched ACKs (`bbr_cwnd_gain`).
const WINDOW: Gain = Gain(2 * 1024);
/// The pacing gains of the `ProbeBW` cycle (`bbr_pacing_gain`).
const CYCLE: [Gain; 8] =
    [Gain(1280), Gain(768), Gain::UNIT, Gain::UNIT, Gain::UNIT, Gain::UNIT, Gain::UNIT, Gain::UNIT];
/// Rounds in the window of the bandwidth filter (`bbr_bw_rtts`).
const BANDWIDTH_ROUNDS: u64 = 10;
/// Rounds in each of the two periods of the aggregation filter (`bbr_extra_acked_win_rtts`).
const AGGREGATION_ROUNDS: u8 = 5;
/// The largest allowance for aggregation, in time at the bandwidth (`bbr_extra_acked_max_us`).
const AGGREGATION_MOST: Span = Span::millis(100);
/// Below this rate bursts are one segment (`bbr_min_tso_rate`).
const LOW_RATE: Rate = Rate(1_200_000);
/// Segments after which the aggregation count is reset (`bbr_ack_epoch_acked_reset_thresh`).
const AGGREGATION_RESET: u64 = 1 << 20;

params! {
    /// Parameters of BBR version 1.
    pub struct Params {
        /// The growth of the bandwidth without which a round counts to the three that end Startup
        /// (`bbr_full_bw_thresh`). xquic has 1.1 (`xqc_bbr_fullbw_thresh`, #896).
        growth: Fixed = Fixed::milli(1250), "a number from 1 to 2", |v| (Fixed::ONE..=2 * Fixed::ONE).contains(&v.0);
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The state of loss recovery (`icsk_ca_state`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Episode {
    None,
    Recovery,
    Timeout,
}

/// ACK aggregation: data delivered beyond what the bandwidth accounts for.
#[derive(Clone, Debug)]
struct Aggregation {
    since: Instant,
    acked: Bytes,
    most: TwoPeriods,
    rounds: u8,
}

/// BBR version 1, startup and avoidance in one; one instance a connection.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: Params,
    state: State,
    mode: Mode,
    pacing: Pacing,
    pacing_gain: Gain,
    window_gain: Gain,
    rates: Rates,
    bandwidth: WindowedMax,
    min_rtt: Option<Span>,
    min_rtt_at: Instant,
    // Startup: the last bandwidth that was 25 % higher, and the rounds since.
    full: Rate,
    flat_rounds: u8,
    filled: Option<Detected>,
    left: bool,
    // ProbeBW.
    cycle: u8,
    cycle_at: Instant,
    random: Random,
    probe_rtt: ProbeRttTimer,
    // Recovery.
    episode: Episode,
    episode_before: Episode,
    conserves: bool,
    saved_window: SavedWindow,
    restarts: bool,
    aggregation: Aggregation,
}

impl Bbr {
    /// Returns a new controller with the initial window `iw` in bytes. `seed` determines the initial phases
    /// of the cycles.
    pub fn new(iw: Bytes, seed: u64) -> Self {
        Self::with(iw, seed, Params::default())
    }

    /// Returns the same with these parameters.
    pub fn with(iw: Bytes, seed: u64, params: Params) -> Self {
        Self {
            params,
            state: State { cwnd: iw, ssthresh: None, pace: None, wake: None },
            mode: Mode::Startup,
            pacing: Pacing::default(),
            pacing_gain: HIGH,
            window_gain: HIGH,
            rates: Rates::default(),
            bandwidth: WindowedMax::default(),
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            full: Rate(0),
            flat_rounds: 0,
            filled: None,
            left: false,
            cycle: 0,
            cycle_at: Instant::ZERO,
            random: Random::new(seed),
            probe_rtt: ProbeRttTimer::default(),
            episode: Episode::None,
            episode_before: Episode::None,
            conserves: false,
            saved_window: SavedWindow::default(),
            restarts: false,
            aggregation: Aggregation {
                since: Instant::ZERO,
                acked: Bytes::ZERO,
                most: TwoPeriods::default(),
                rounds: 0,
            },
        }
    }

    fn bandwidth(&self) -> Rate {
        Rate(self.bandwidth.get())
    }

    // Amounts of data in flight.

    /// Returns `gain` times the BDP, rounded up to whole segments, or the initial window before the first RTT
    /// (`bbr_bdp`).
    fn product(&self, f: &Facts, gain: Gain) -> Bytes {
        let Some(rtt) = self.min_rtt else { return f.iw };
        let bytes = self.bandwidth().over(rtt) * gain;
        f.mss * bytes.0.div_ceil(f.mss.0.max(1))
    }

    /// Returns the window increased by what the hosts hold: three bursts, rounded to an even number of
    /// segments, and two more segments while probing for bandwidth (`bbr_quantization_budget`).
    fn budget(&self, f: &Facts, window: Bytes) -> Bytes {
        let least = if self.pacing.rate < LOW_RATE { f.mss } else { f.mss * 2 };
        let window = window + quantum(f, self.pacing.rate, least) * 3;
        let even = f.mss * (window.0.div_ceil(f.mss.0.max(1)).next_multiple_of(2));
        if self.mode == Mode::ProbeBw && self.cycle == 0 { even + f.mss * 2 } else { even }
    }

    fn inflight(&self, f: &Facts, gain: Gain) -> Bytes {
        self.budget(f, self.product(f, gain))
    }

    // The model of the path.

    fn update_bandwidth(&mut self, sample: Option<&Sample>) {
        if self.rates.round_start {
            self.conserves = false;
        }
        // An application-limited sample counts only if it exceeds the maximum.
        if let Some(s) = sample.filter(|s| !s.app_limited || s.rate >= self.bandwidth()) {
            self.bandwidth.raise(BANDWIDTH_ROUNDS, self.rates.rounds, s.rate.0);
        }
    }

    /// `bbr_update_ack_aggregation`
    fn update_aggregation(&mut self, f: &Facts, a: &Ack) {
        let bandwidth = self.bandwidth();
        let g = &mut self.aggregation;
        if self.rates.round_start {
            g.rounds += 1;
            if g.rounds >= AGGREGATION_ROUNDS {
                g.rounds = 0;
                g.most.advance();
            }
        }
        let mut expected = bandwidth.over(f.now.since(g.since));
        if g.acked <= expected || g.acked + a.delivered >= f.mss * AGGREGATION_RESET {
            g.acked = Bytes::ZERO;
            g.since = f.now;
            expected = Bytes::ZERO;
        }
        g.acked += a.delivered;
        g.most.raise((g.acked - expected).min(self.state.cwnd).0);
    }

    /// `bbr_is_next_cycle_phase`
    fn update_cycle(&mut self, f: &Facts, a: &Ack) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let whole = self.min_rtt.is_some_and(|rtt| f.now.since(self.cycle_at) > rtt);
        let over = match self.pacing_gain {
            Gain::UNIT => whole,
            // With small buffers the data in flight may not reach the target.
            up if up > Gain::UNIT => {
                whole && (a.newly_lost.0 > 0 || a.prior_inflight >= self.inflight(f, up))
            }
            _ => whole || a.prior_inflight <= self.inflight(f, Gain::UNIT),
        };
        if over {
            self.advance_cycle(f);
        }
    }

    fn advance_cycle(&mut self, f: &Facts) {
        self.cycle = (self.cycle + 1) % CYCLE.len() as u8;
        self.cycle_at = f.now;
    }

    /// `bbr_check_full_bw_reached`
    fn check_full(&mut self, f: &Facts, sample: Option<&Sample>) {
        if self.filled.is_some() || !self.rates.round_start || sample.is_some_and(|s| s.app_limited) {
            return;
        }
        let growth = self.params.growth.0.unsigned_abs();
        if self.bandwidth() >= self.full.scale(growth, Fixed::ONE.unsigned_abs()) {
            self.full = self.bandwidth();
            self.flat_rounds = 0;
            return;
        }
        self.flat_rounds += 1;
        if self.flat_rounds >= FULL_ROUNDS {
            self.filled = Some(Detected { at: f.now, cwnd: self.state.cwnd });
        }
    }

    /// `bbr_check_drain`
    fn check_drain(&mut self, f: &Facts) {
        let fits = self.inflight(f, Gain::UNIT);
        if self.mode == Mode::Startup && self.filled.is_some() {
            self.mode = Mode::Drain;
            self.state.ssthresh = Some(fits.max(f.mss * 2));
        }
        if self.mode == Mode::Drain && f.inflight <= fits {
            self.begin_cycle(f);
        }
    }

    /// Enters `ProbeBW` in a random phase other than the draining one (`bbr_reset_probe_bw_mode`).
    fn begin_cycle(&mut self, f: &Facts) {
        self.mode = Mode::ProbeBw;
        self.cycle = 7 - self.random.below(7) as u8;
        self.advance_cycle(f);
    }

    /// `bbr_update_min_rtt`
    fn update_min_rtt(&mut self, f: &Facts, a: &Ack) {
        let expired = f.now > self.min_rtt_at + MIN_RTT_AGE;
        // The ACK of less than a segment may have been delayed.
        let prompt = a.delivered >= f.mss;
        if let Some(rtt) = a.rtt.filter(|r| self.min_rtt.is_none_or(|m| *r <= m) || (expired && prompt)) {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = f.now;
        }
        let enters = expired && !self.restarts && self.mode != Mode::ProbeRtt;
        if enters {
            self.mode = Mode::ProbeRtt;
            self.save_window();
        }
        if self.mode == Mode::ProbeRtt
            && self.probe_rtt.on_ack(f, &mut self.rates, f.mss * MIN_SEGMENTS, enters)
        {
            self.check_probe_rtt_done(f);
        }
        if a.delivered.0 > 0 {
            self.restarts = false;
        }
    }

    fn check_probe_rtt_done(&mut self, f: &Facts) {
        if !self.probe_rtt.expired(f.now) {
            return;
        }
        self.min_rtt_at = f.now;
        self.state.cwnd = self.saved_window.restore(self.state.cwnd);
        if self.filled.is_some() {
            self.begin_cycle(f);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH, HIGH),
            Mode::Drain => (DRAIN, HIGH),
            Mode::ProbeBw => (CYCLE[usize::from(self.cycle)], WINDOW),
            Mode::ProbeRtt => (Gain::UNIT, Gain::UNIT),
        };
    }

    // Window and pacing.

    fn set_pace(&mut self, f: &Facts, gain: Gain) {
        let window = self.state.cwnd;
        let rate = paced(self.bandwidth(), gain);
        let initial = || paced(nominal_rate(f, window), HIGH);
        self.pacing.update(f, rate, self.filled.is_some(), initial, &mut self.state);
    }

    fn save_window(&mut self) {
        let reduced = self.episode_before != Episode::None || self.mode == Mode::ProbeRtt;
        self.saved_window.save(self.state.cwnd, reduced);
    }

    /// Returns the window during and after recovery: reduced by losses; in the first round of recovery one
    /// packet is sent for each delivered; afterwards the saved window is restored
    /// (`bbr_set_cwnd_to_recover_or_restore`).
    fn recover(&mut self, f: &Facts, a: &Ack) -> Bytes {
        let mut window = self.state.cwnd;
        if a.newly_lost.0 > 0 {
            window = (window - a.newly_lost).max(f.min_window);
        }
        if self.episode == Episode::Recovery && self.episode_before != Episode::Recovery {
            self.conserves = true;
            self.rates.begin_round(f);
            window = f.inflight + a.delivered;
        } else if self.episode == Episode::None && self.episode_before != Episode::None {
            self.conserves = false;
            window = self.saved_window.restore(window);
        }
        self.episode_before = self.episode;
        if self.conserves { window.max(f.inflight + a.delivered) } else { window }
    }

    /// `bbr_set_cwnd`
    fn set_window(&mut self, f: &Facts, a: &Ack) {
        if a.delivered.0 > 0 {
            let mut window = self.recover(f, a);
            if !self.conserves {
                let mut target = self.product(f, self.window_gain);
                if self.filled.is_some() {
                    let most = self.bandwidth().over(AGGREGATION_MOST);
                    target += Bytes(self.aggregation.most.get()).min(most);
                }
                target = self.budget(f, target);
                window = grow(f, window, a.delivered, target, self.filled.is_some());
            }
            self.state.cwnd = window;
        }
        if self.mode == Mode::ProbeRtt {
            self.state.cwnd = self.state.cwnd.min(f.mss * MIN_SEGMENTS);
        }
        self.state.cwnd = self.state.cwnd.max(f.min_window);
    }

    fn report_exit(&mut self, f: &Facts) -> Change {
        let over = self.filled.filter(|_| self.mode == Mode::ProbeBw).map(|d| (Exit::RateFlat, d));
        report_exit(f, over, &mut self.left, self.state.cwnd)
    }
}

impl Controller for Bbr {
    fn on_established(&mut self, f: &Facts, hs: &Handshake) -> Change {
        // The handshake may have negotiated smaller segments.
        self.state.cwnd = f.iw.max(f.min_window);
        self.min_rtt = hs.rtt;
        self.min_rtt_at = f.now;
        self.aggregation.since = f.now;
        let rate = paced(nominal_rate(f, self.state.cwnd), HIGH);
        self.pacing.start(f, rate, &mut self.state);
        Change::default()
    }

    fn on_sent(&mut self, _: &Facts, _: &Sent) {}

    fn needs_on_sent(&self) -> bool {
        false
    }

    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change {
        let sample = self.rates.take(f, a);
        self.update_bandwidth(sample.as_ref());
        if sample.is_some() {
            self.update_aggregation(f, a);
        }
        self.update_cycle(f, a);
        self.check_full(f, sample.as_ref());
        self.check_drain(f);
        self.update_min_rtt(f, a);
        self.update_gains();
        self.set_pace(f, self.pacing_gain);
        self.set_window(f, a);
        self.report_exit(f)
    }

    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change {
        if c.first {
            self.save_window();
        }
        match c.signal {
            Signal::Loss if c.first => self.episode = Episode::Recovery,
            Signal::Timeout => {
                // tcp_enter_loss, then bbr_set_state.
                self.state.cwnd = (f.inflight + f.mss).max(f.min_window);
                self.episode = Episode::Timeout;
                self.episode_before = Episode::Timeout;
                self.full = Rate(0);
            }
            Signal::Loss | Signal::Ecn | Signal::LocalStall => {}
        }
        Change::default()
    }

    fn on_recovered(&mut self, _: &Facts, r: &Recovery) -> Change {
        self.episode = Episode::None;
        if r.undone {
            // bbr_undo_cwnd: the bandwidth search starts again. The next ACK restores the window.
            self.full = Rate(0);
            self.flat_rounds = 0;
        }
        Change::default()
    }

    fn on_timer(&mut self, _: &Facts) -> Change {
        self.state.wake = None;
        Change::default()
    }

    fn on_idle(&mut self, f: &Facts, _: Span, _: Option<Span>) -> Change {
        // CA_EVENT_TX_START, if the application or ProbeRTT limited sending. The window is not restarted,
        // because pacing prevents a burst.
        if !self.rates.starved && self.mode != Mode::ProbeRtt {
            return Change::default();
        }
        self.restarts = true;
        self.aggregation.since = f.now;
        self.aggregation.acked = Bytes::ZERO;
        match self.mode {
            Mode::ProbeBw => self.set_pace(f, Gain::UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(f),
            Mode::Startup | Mode::Drain => {}
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
            Mode::ProbeBw => "probe-bw",
            Mode::ProbeRtt => "probe-rtt",
        }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("bandwidth_bps", self.bandwidth().0 as f64);
        put("min_rtt_s", self.min_rtt.map_or(f64::NAN, Span::as_secs_f64));
        put("pacing_gain", f64::from(self.pacing_gain.0) / 1024.0);
        put("window_gain", f64::from(self.window_gain.0) / 1024.0);
        put("flat_rounds", f64::from(self.flat_rounds));
        put("rounds", self.rates.rounds as f64);
    }
}
