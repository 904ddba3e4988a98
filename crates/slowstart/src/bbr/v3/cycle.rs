//! The cycle of `ProbeBW`: down, cruise, refill, up (draft-ietf-ccwg-bbr §5.3.3).

use super::bounds::{KEPT_TENTHS, too_high};
use super::{Bbr3, Full, Mode, Sample};
use crate::units::{Bytes, Gain, Instant, Span};
use crate::view::{Ack, Facts, Limit, Sent};

/// The maximum number of rounds between probes, after which Reno would have regained its window.
const RENO_ROUNDS: u64 = 63;
/// The minimum time between probes, and the range of the random time added.
const WAIT: Span = Span::secs(2);
const WAIT_SPREAD: Span = Span::secs(1);

/// Which packets of a probe are being acknowledged (`ack_phase`).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Feedback {
    /// None of a probe.
    #[default]
    None,
    /// Packets sent while refilling.
    Refilling,
    /// Packets sent before the probe; it has begun.
    Starting,
    /// Packets sent during the probe.
    Arriving,
    /// The last packets of a probe that is over.
    Stopping,
}

/// State of the cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    pub(super) feedback: Feedback,
    /// Packets of a probe are being acknowledged, and there was no reaction to a loss among them yet.
    samples: bool,
    /// Round trips since the last probe, its end, and the time until the next.
    pub(super) rounds: u64,
    began: Instant,
    wait: Span,
    /// For raising `inflight_longterm`: bytes delivered since the last increase, bytes per segment of
    /// increase, and rounds.
    acked: Bytes,
    per_segment: Bytes,
    raised_rounds: u32,
    /// The last probe lost too much; and this probe stopped at the limit of the one before.
    too_high: bool,
    cautious: bool,
}

impl Bbr3 {
    pub(super) fn start_down(&mut self, f: &Facts) {
        self.bounds.forget_round();
        self.cycle.per_segment = Bytes::MAX;
        self.cycle.rounds = self.random.below(2);
        self.cycle.wait = WAIT + Span(self.random.below(WAIT_SPREAD.0));
        self.cycle.began = f.now;
        self.cycle.feedback = Feedback::Stopping;
        self.rates.begin_round(f);
        self.mode = Mode::Down;
    }

    pub(super) fn start_refill(&mut self, f: &Facts) {
        self.bounds.forget_short_term();
        self.cycle.raised_rounds = 0;
        self.cycle.acked = Bytes::ZERO;
        self.cycle.cautious = false;
        self.cycle.feedback = Feedback::Refilling;
        self.rates.begin_round(f);
        self.mode = Mode::Refill;
    }

    fn start_up(&mut self, f: &Facts, s: Option<&Sample>) {
        self.cycle.samples = true;
        self.cycle.feedback = Feedback::Starting;
        self.rates.begin_round(f);
        self.reset_full(s);
        self.mode = Mode::Up;
        self.raise_slope(f);
    }

    fn reset_full(&mut self, s: Option<&Sample>) {
        self.full = Full { base: s.map_or(self.full.base, |s| s.rate), ..Full::default() };
    }

    /// `UpdateProbeBWCyclePhase`
    pub(super) fn update_cycle(&mut self, f: &Facts, a: &Ack, s: Option<&Sample>) {
        if self.filled.is_none() || self.adapt_long_term(f, a, s) {
            return;
        }
        let mode = self.mode;
        match mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(f) => self.start_refill(f),
            Mode::Down if self.is_time_to_cruise(f) => self.mode = Mode::Cruise,
            Mode::Refill if self.rates.round_start => self.start_up(f, s),
            Mode::Up if self.is_time_to_go_down(f, a, s) => {
                self.cycle.too_high = false;
                self.start_down(f);
            }
            _ => {}
        }
    }

    /// After the chosen time, or when Reno would have regained its window.
    fn is_time_to_probe(&self, f: &Facts) -> bool {
        let reno = self.target_inflight(f).units(f.mss).min(RENO_ROUNDS);
        f.now > self.cycle.began + self.cycle.wait || self.cycle.rounds >= reno
    }

    /// There is room for other flows, and no queue.
    fn is_time_to_cruise(&self, f: &Facts) -> bool {
        self.bounds.with_headroom(f).is_none_or(|b| f.inflight <= b)
            && f.inflight <= self.inflight(f, self.max_bandwidth(), Gain::UNIT)
    }

    /// The window limits the sender, and `inflight_longterm` limits the window.
    fn is_held_by_bound(&self, a: &Ack) -> bool {
        a.limit == Limit::Window && self.bounds.inflight_longterm.is_some_and(|b| self.state.cwnd >= b)
    }

    fn is_time_to_go_down(&mut self, f: &Facts, a: &Ack, s: Option<&Sample>) -> bool {
        if self.cycle.too_high && self.bounds.inflight_longterm.is_some_and(|b| f.inflight >= b) {
            // Stop where the last probe lost too much, until that amount has been seen to cause no loss
            // (§5.3.3.6).
            self.cycle.cautious = true;
            return true;
        }
        if self.is_held_by_bound(a) {
            self.reset_full(s);
            return false;
        }
        self.full.now
    }

    /// `AdaptLongTermModel`. Returns true if it chose the next mode.
    fn adapt_long_term(&mut self, f: &Facts, a: &Ack, s: Option<&Sample>) -> bool {
        if self.rates.round_start {
            match self.cycle.feedback {
                Feedback::Starting => self.cycle.feedback = Feedback::Arriving,
                Feedback::Stopping => {
                    self.cycle.samples = false;
                    self.cycle.feedback = Feedback::None;
                    if self.mode.in_probe_bw() {
                        if s.is_some_and(|s| !s.app_limited) {
                            self.max_bandwidth.advance();
                        }
                        if self.cycle.cautious && !self.cycle.too_high {
                            self.start_refill(f);
                            return true;
                        }
                    }
                }
                Feedback::None | Feedback::Refilling | Feedback::Arriving => {}
            }
        }
        if let Some(bound) = self.bounds.inflight_longterm.filter(|_| !too_high(f, &a.newest)) {
            self.bounds.inflight_longterm = Some(bound.max(a.newest.inflight));
            if self.mode == Mode::Up {
                self.probe_upward(f, a);
            }
        }
        false
    }

    /// Raises `inflight_longterm` by 1, 2, 4, 8, ... segments per round trip.
    fn probe_upward(&mut self, f: &Facts, a: &Ack) {
        if !self.is_held_by_bound(a) {
            return;
        }
        self.cycle.acked += a.delivered;
        let segments = self.cycle.acked.units(self.cycle.per_segment);
        self.cycle.acked -= self.cycle.per_segment * segments;
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.map(|b| b + f.mss * segments);
        if self.rates.round_start {
            self.raise_slope(f);
        }
    }

    fn raise_slope(&mut self, f: &Facts) {
        let segments = 1 << self.cycle.raised_rounds;
        self.cycle.raised_rounds = (self.cycle.raised_rounds + 1).min(30);
        self.cycle.per_segment = (self.state.cwnd / segments).max(f.mss);
    }

    /// Called on loss with the most recently sent packet delivered (`HandleLostPacket`). A probe that lost
    /// too much sets `inflight_longterm` once, and ends.
    pub(super) fn on_lost(&mut self, f: &Facts, newest: &Sent) {
        if !self.cycle.samples || !too_high(f, newest) {
            return;
        }
        self.cycle.too_high = true;
        self.cycle.samples = false;
        if !newest.app_limited {
            let least = self.target_inflight(f).scale(KEPT_TENTHS, 10);
            self.bounds.inflight_longterm = Some(newest.inflight.max(least));
        }
        if self.mode == Mode::Up {
            self.bounds.undo_mode = Some(Mode::Up);
            self.start_down(f);
        }
    }
}
