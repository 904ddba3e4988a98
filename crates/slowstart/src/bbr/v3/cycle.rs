//! The cycle of `ProbeBW`: down, cruise, refill, up (draft-ietf-ccwg-bbr §5.3.3).

use super::bounds::{KEPT_TENTHS, too_high};
use super::{Bbr3, Full, Mode, Sample};
use crate::units::{Bytes, Gain, Instant, Span};
use crate::view::{Ack, Facts, Limit, Sent};

/// Rounds after which Reno would be back where a probe found it, at most.
const RENO_ROUNDS: u64 = 63;
/// The least and the spread of the time between probes.
const WAIT: Span = Span::secs(2);
const WAIT_SPREAD: Span = Span::secs(1);

/// What acknowledgements tell of a probe.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Feedback {
    /// Nothing.
    #[default]
    None,
    /// What fills the path is on its way.
    Refilling,
    /// What probes is on its way.
    Starting,
    /// What probes is arriving.
    Arriving,
    /// The probe is over, the last of it is arriving.
    Stopping,
}

/// Where the cycle stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    pub(super) feedback: Feedback,
    /// What was sent in a probe is being acknowledged, and no loss of it has been answered yet.
    samples: bool,
    /// Round trips since the last probe, and when it ended; how long to wait for the next.
    pub(super) rounds: u64,
    began: Instant,
    wait: Span,
    /// How `inflight_longterm` is raised: delivered since it was, delivered for a segment more, and for how many rounds.
    acked: Bytes,
    per_segment: Bytes,
    raised_rounds: u32,
    /// The last probe lost too much; it stopped where the one before had.
    too_high: bool,
    cautious: bool,
}

impl Bbr3 {
    pub(super) fn start_down(&mut self, f: &Facts) {
        self.bounds.forget_round();
        self.cycle.per_segment = Bytes::MAX;
        self.cycle.rounds = self.chance.below(2);
        self.cycle.wait = WAIT + Span(self.chance.below(WAIT_SPREAD.0));
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

    /// After the time chosen, or when Reno would have come back to where it was.
    fn is_time_to_probe(&self, f: &Facts) -> bool {
        let reno = self.target_inflight(f).units(f.mss).min(RENO_ROUNDS);
        f.now > self.cycle.began + self.cycle.wait || self.cycle.rounds >= reno
    }

    /// There is room for others, and no queue.
    fn is_time_to_cruise(&self, f: &Facts) -> bool {
        self.bounds.with_headroom(f).is_none_or(|b| f.inflight <= b)
            && f.inflight <= self.inflight(f, self.max_bandwidth(), Gain::UNIT)
    }

    /// The window is what holds sending back, and `inflight_longterm` what holds the window.
    fn is_held_by_bound(&self, a: &Ack) -> bool {
        a.limit == Limit::Window && self.bounds.inflight_longterm.is_some_and(|b| self.state.cwnd >= b)
    }

    fn is_time_to_go_down(&mut self, f: &Facts, a: &Ack, s: Option<&Sample>) -> bool {
        if self.cycle.too_high && self.bounds.inflight_longterm.is_some_and(|b| f.inflight >= b) {
            // No further than where the last probe went wrong, until that has been seen to do no harm (§5.3.3.6).
            self.cycle.cautious = true;
            return true;
        }
        if self.is_held_by_bound(a) {
            self.reset_full(s);
            return false;
        }
        self.full.now
    }

    /// `AdaptLongTermModel`: true if it decided on a phase.
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

    /// Raises `inflight_longterm` by 1, 2, 4, 8, ... segments a round trip.
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

    /// Packets were lost while this was the newest to have arrived (`HandleLostPacket`): a probe that cost too much
    /// sets `inflight_longterm`, once, and is over.
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
