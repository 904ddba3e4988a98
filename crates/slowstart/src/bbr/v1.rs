//! BBR, version 1: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, *BBR: congestion-based congestion control*, ACM Queue
//! 2016, as Linux `tcp_bbr.c` has it.
//!
//! *Startup* paces at 2/ln 2 of the bandwidth, which doubles it each round trip, until three rounds bring no 25 % more;
//! *Drain* paces at the inverse until what is in flight fits the path; *`ProbeBW`* cycles through eight round trips, one at
//! 1.25 of the bandwidth, one at 0.75 and six at it; *`ProbeRTT`* holds four segments for 200 ms every ten seconds in
//! which no lower round trip was seen.
//!
//! Departs from Linux:
//! - The long-term bandwidth sampling against policers (`lt_bw`) is left out.
//! - What is in flight is in the network: Linux corrects for what its pacer has dated ahead (`bbr_packets_in_net_at_edt`).
//! - The window is in bytes; targets are rounded up to segments as there.
//! - The startup is left when the drain ends; its reason was seen when the drain began.

use super::chance::Chance;
use super::filter::{TwoPeriods, WindowedMax};
use super::rate::{Rates, Sample};
use super::{MIN_SEGMENTS, PROBE_RTT, exited, nominal_rate, paced, quantum};
use crate::control::{Change, Controller, State};
use crate::step::{Detected, Exit, Pace};
use crate::units::{Bytes, Gain, Instant, Rate, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent, Signal};

/// 2/ln 2 = 2.885, in the 256ths of `bbr_high_gain`.
const HIGH: Gain = Gain(739 * 4);
/// Its inverse (`bbr_drain_gain`).
const DRAIN: Gain = Gain(88 * 4);
/// The window in steady state, which lets delayed and stretched acknowledgements be (`bbr_cwnd_gain`).
const WINDOW: Gain = Gain(2 * 1024);
/// The cycle of `ProbeBW` (`bbr_pacing_gain`).
const CYCLE: [Gain; 8] =
    [Gain(1280), Gain(768), Gain::UNIT, Gain::UNIT, Gain::UNIT, Gain::UNIT, Gain::UNIT, Gain::UNIT];
/// Rounds over which the bandwidth is the greatest seen (`bbr_bw_rtts`).
const BANDWIDTH_ROUNDS: u64 = 10;
/// How long a least round trip is believed (`bbr_min_rtt_win_sec`).
const MIN_RTT_AGE: Span = Span::secs(10);
/// Rounds without growth that end Startup (`bbr_full_bw_cnt`).
const FULL_ROUNDS: u8 = 3;
/// Rounds of each of the two periods over which aggregation is the greatest seen (`bbr_extra_acked_win_rtts`).
const AGGREGATION_ROUNDS: u8 = 5;
/// Aggregation is allowed for up to this long (`bbr_extra_acked_max_us`).
const AGGREGATION_MOST: Span = Span::millis(100);
/// Below this rate packets leave one by one (`bbr_min_tso_rate`).
const LOW_RATE: Rate = Rate(1_200_000);
/// Segments after which its count begins anew (`bbr_ack_epoch_acked_reset_thresh`).
const AGGREGATION_RESET: u64 = 1 << 20;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// How far into a loss episode the host is (`icsk_ca_state`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Episode {
    None,
    Recovery,
    Timeout,
}

/// More delivered than the bandwidth explains: ACKs or data that come in clumps.
#[derive(Clone, Debug)]
struct Aggregation {
    since: Instant,
    acked: Bytes,
    most: TwoPeriods,
    rounds: u8,
}

/// BBR, version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    state: State,
    mode: Mode,
    pacing_rate: Rate,
    pacing_gain: Gain,
    window_gain: Gain,
    rates: Rates,
    bandwidth: WindowedMax,
    min_rtt: Option<Span>,
    min_rtt_at: Instant,
    seen_rtt: bool,
    // Startup: the bandwidth it grew to, and for how many rounds it has not.
    full: Rate,
    flat_rounds: u8,
    filled: Option<Detected>,
    left: bool,
    // ProbeBW.
    cycle: u8,
    cycle_at: Instant,
    chance: Chance,
    // ProbeRTT: when it has been long enough, and whether a round of it has passed.
    done_at: Option<Instant>,
    round_done: bool,
    // Recovery.
    episode: Episode,
    episode_before: Episode,
    conserves: bool,
    prior_window: Bytes,
    restarts: bool,
    aggregation: Aggregation,
}

impl Bbr {
    /// A connection's controller, with its initial window. The seed decides where cycles begin.
    pub fn new(iw: Bytes, seed: u64) -> Self {
        Self {
            state: State { cwnd: iw, ssthresh: None, pace: None, wake: None },
            mode: Mode::Startup,
            pacing_rate: Rate(0),
            pacing_gain: HIGH,
            window_gain: HIGH,
            rates: Rates::default(),
            bandwidth: WindowedMax::default(),
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            seen_rtt: false,
            full: Rate(0),
            flat_rounds: 0,
            filled: None,
            left: false,
            cycle: 0,
            cycle_at: Instant::ZERO,
            chance: Chance::new(seed),
            done_at: None,
            round_done: false,
            episode: Episode::None,
            episode_before: Episode::None,
            conserves: false,
            prior_window: Bytes::ZERO,
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

    // What the path holds.

    /// `gain` times the product of bandwidth and least round trip, in whole segments; the initial window while no round
    /// trip is known (`bbr_bdp`).
    fn product(&self, f: &Facts, gain: Gain) -> Bytes {
        let Some(rtt) = self.min_rtt else { return f.iw };
        let bytes = self.bandwidth().over(rtt) * gain;
        f.mss * bytes.0.div_ceil(f.mss.0.max(1))
    }

    /// Room for what the ends of the path hold on to: a burst in each of three places, an even number of segments, and
    /// two more where the queue is to be found (`bbr_quantization_budget`).
    fn budget(&self, f: &Facts, window: Bytes) -> Bytes {
        let least = if self.pacing_rate < LOW_RATE { f.mss } else { f.mss * 2 };
        let window = window + quantum(f, self.pacing_rate, least) * 3;
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
        // A sample that the application held down counts only if it shows more than was known.
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
            // A path with small buffers may not hold more.
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
        if self.bandwidth() >= self.full.scale(5, 4) {
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

    /// Into `ProbeBW`, at any phase but the one that drains (`bbr_reset_probe_bw_mode`).
    fn begin_cycle(&mut self, f: &Facts) {
        self.mode = Mode::ProbeBw;
        self.cycle = 7 - self.chance.below(7) as u8;
        self.advance_cycle(f);
    }

    /// `bbr_update_min_rtt`
    fn update_min_rtt(&mut self, f: &Facts, a: &Ack) {
        let expired = f.now > self.min_rtt_at + MIN_RTT_AGE;
        // An acknowledgement of less than a segment may have been delayed.
        let prompt = a.delivered >= f.mss;
        if let Some(rtt) = a.rtt.filter(|r| self.min_rtt.is_none_or(|m| *r <= m) || (expired && prompt)) {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = f.now;
        }
        let enters = expired && !self.restarts && self.mode != Mode::ProbeRtt;
        if enters {
            self.mode = Mode::ProbeRtt;
            self.save_window();
            self.done_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.rates.hold(f, enters);
            if self.done_at.is_some() {
                self.round_done |= self.rates.round_start;
                if self.round_done {
                    self.check_probe_rtt_done(f);
                }
            } else if f.inflight <= f.mss * MIN_SEGMENTS {
                self.done_at = Some(f.now + PROBE_RTT);
                self.round_done = false;
                self.rates.begin_round(f);
            }
        }
        if a.delivered.0 > 0 {
            self.restarts = false;
        }
    }

    fn check_probe_rtt_done(&mut self, f: &Facts) {
        if self.done_at.is_none_or(|t| f.now <= t) {
            return;
        }
        self.min_rtt_at = f.now;
        self.state.cwnd = self.state.cwnd.max(self.prior_window);
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

    // What it asks for.

    fn set_pace(&mut self, f: &Facts, gain: Gain) {
        if !self.seen_rtt && f.srtt.is_some() {
            self.seen_rtt = true;
            self.pacing_rate = paced(nominal_rate(f, self.state.cwnd), HIGH);
        }
        let rate = paced(self.bandwidth(), gain);
        // Not lowered by the first samples of a path that is not full yet.
        if self.filled.is_some() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
        self.state.pace = Some(Pace::Rate(self.pacing_rate));
    }

    /// The last window that no loss and no probe had cut (`bbr_save_cwnd`).
    fn save_window(&mut self) {
        let good = self.episode_before == Episode::None && self.mode != Mode::ProbeRtt;
        let window = self.state.cwnd;
        self.prior_window = if good { window } else { self.prior_window.max(window) };
    }

    /// The window during and right after recovery: what is lost is taken off it; in the first round a packet leaves for
    /// one delivered; after it, what was before comes back (`bbr_set_cwnd_to_recover_or_restore`).
    fn recover(&mut self, f: &Facts, a: &Ack) -> Bytes {
        let mut window = self.state.cwnd;
        if a.newly_lost.0 > 0 {
            window = (window - a.newly_lost).max(f.mss);
        }
        if self.episode == Episode::Recovery && self.episode_before != Episode::Recovery {
            self.conserves = true;
            self.rates.begin_round(f);
            window = f.inflight + a.delivered;
        } else if self.episode == Episode::None && self.episode_before != Episode::None {
            self.conserves = false;
            window = window.max(self.prior_window);
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
                if self.filled.is_some() {
                    window = (window + a.delivered).min(target);
                } else if window < target || f.delivered < f.iw {
                    window += a.delivered;
                }
                window = window.max(f.mss * MIN_SEGMENTS);
            }
            self.state.cwnd = window;
        }
        if self.mode == Mode::ProbeRtt {
            self.state.cwnd = self.state.cwnd.min(f.mss * MIN_SEGMENTS);
        }
        self.state.cwnd = self.state.cwnd.max(f.mss);
    }

    /// Records that the startup is over, once.
    fn leave(&mut self, f: &Facts) -> Change {
        let seen = self.filled.filter(|_| !self.left && self.mode == Mode::ProbeBw);
        self.left |= seen.is_some();
        Change { exited: seen.map(|d| exited(f, Exit::RateFlat, d, self.state.cwnd)), ..Change::NONE }
    }
}

impl Controller for Bbr {
    fn on_established(&mut self, f: &Facts, hs: &Handshake) -> Change {
        self.min_rtt = hs.rtt;
        self.min_rtt_at = f.now;
        self.aggregation.since = f.now;
        self.seen_rtt = f.srtt.is_some();
        self.pacing_rate = paced(nominal_rate(f, self.state.cwnd), HIGH);
        self.state.pace = Some(Pace::Rate(self.pacing_rate));
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
        self.leave(f)
    }

    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change {
        if c.first {
            self.save_window();
        }
        match c.signal {
            Signal::Loss if c.first => self.episode = Episode::Recovery,
            Signal::Timeout => {
                // tcp_enter_loss, and bbr_set_state after it.
                self.state.cwnd = f.inflight + f.mss;
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
            // The slowness was not the path's (bbr_undo_cwnd); the next acknowledgement restores the window.
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
        // CA_EVENT_TX_START. The window is not restarted: pacing keeps the burst away.
        self.restarts = true;
        self.aggregation.since = f.now;
        self.aggregation.acked = Bytes::ZERO;
        match self.mode {
            Mode::ProbeBw => self.set_pace(f, Gain::UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(f),
            Mode::Startup | Mode::Drain => {}
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
