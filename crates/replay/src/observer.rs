//! A startup that looks on: it sees the true events of a connection that another one made, and its window is its own
//! prediction.
//!
//! A row or packet is judged before its ACK grows the window and before it lets anything be sent (in Linux,
//! `pkts_acked` runs before `cong_avoid`), so the window at an exit has no part of the ACK that ended it. Losses are
//! overlaid: where the connection lost, it is noted what the startup would have done about it, and its own rule goes
//! on looking, for who wants to know what the rule alone says.

use serde::{Deserialize, Serialize};
use slowstart::control::State;
use slowstart::startup::{AnyStartup, Startup};
use slowstart::step::{Exit, Step, Wake, Window};
use slowstart::units::{Bytes, Gain, Instant, Rate, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Recovery, Sent, View};

/// Changes of phase that are kept.
const CHANGES: usize = 32;

/// A startup to ask.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// As a person wrote it.
    pub label: String,
    /// With its parameters.
    pub startup: AnyStartup,
}

/// A moment of a startup, with its window then.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// A phase or a reason.
    pub what: &'static str,
    /// When.
    pub at: Instant,
    /// The window.
    pub cwnd: Bytes,
}

/// A [`Moment`] as a row has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedEvent {
    /// The exit reason, or the phase that was entered.
    pub what: String,
    /// Seconds since the connection's first packet.
    pub time_s: f64,
    /// The startup's window at that time.
    pub cwnd_bytes: u64,
}

/// A startup as it stood at a moment up to which it would have sent what was sent.
#[derive(Clone, Debug)]
pub struct SavedState {
    /// Itself.
    pub startup: AnyStartup,
    /// Its window and threshold, and when it wants to be called, by its own clock.
    pub state: State,
    /// When.
    pub at: Instant,
    /// It had left by its own rule, at this moment.
    pub left: Option<(Exit, Moment)>,
}

/// What a startup would have done: what remains of it when it has nothing more to say.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Its window, when it was last asked.
    pub cwnd: Bytes,
    /// Changes of phase, the first 32 of them.
    pub changes: Vec<Moment>,
    /// The exit by its own rule, whatever was lost.
    pub rule: Option<(Exit, Moment)>,
    /// Its answer to the connection's first loss, if it was still in startup: it leaves.
    pub loss: Option<Moment>,
    /// From when on its window would have sent something else than was sent.
    pub valid_until: Option<Instant>,
    /// Where it can be gone on from, if that was asked for: as it stood when its rule ended it, or when the last round
    /// trip began in which it would have sent what was sent.
    pub saved: Option<Box<SavedState>>,
}

impl Prediction {
    /// Its moments, by a clock that is zero at this time of its own. How it stands keeps the time that it knows.
    pub fn since(&mut self, epoch: Span) {
        let rule = self.rule.as_mut().map(|r| &mut r.1);
        for m in self.changes.iter_mut().chain(rule).chain(&mut self.loss) {
            m.at = m.at - epoch;
        }
    }

    /// What it would have done, as far as that can be said: its own rule's exit or the one by loss, whichever came
    /// first, if its prediction was still worth something then.
    pub fn exit(&self) -> Option<Moment> {
        let rule = self.rule.map(|(_, m)| m);
        let first = [rule, self.loss].into_iter().flatten().min_by_key(|m| m.at)?;
        self.valid_until.is_none_or(|v| first.at <= v).then_some(first)
    }
}

/// A startup that looks on.
#[derive(Clone, Debug)]
pub struct Observer {
    startup: AnyStartup,
    ceiling: Option<Bytes>,
    wake: Option<Instant>,
    phase: &'static str,
    /// Its window when the round trip under way began.
    round_cwnd: Bytes,
    /// What it thinks so far.
    pub prediction: Prediction,
    /// Round trips since that was last worth something.
    since: u32,
    stopped: bool,
    /// Whether to keep where it can be gone on from.
    keeps: bool,
}

impl Observer {
    /// At the begin of a connection with this initial window.
    /// `keeps` says whether somebody wants to go on from where its prediction ends.
    pub fn new(candidate: &Candidate, f: &Facts, handshake: &Handshake, keeps: bool) -> Self {
        let mut w = Self {
            startup: candidate.startup.clone(),
            ceiling: None,
            wake: None,
            phase: candidate.startup.phase(),
            round_cwnd: f.iw,
            prediction: Prediction {
                cwnd: f.iw,
                changes: Vec::new(),
                rule: None,
                loss: None,
                valid_until: None,
                saved: None,
            },
            since: 0,
            stopped: false,
            keeps,
        };
        let step = w.startup.on_established(&w.view(f), handshake);
        w.apply(f, step, true);
        w.keep(f);
        w
    }

    /// Keeps how it stands, while it would have sent what was sent.
    fn keep(&mut self, f: &Facts) {
        if !self.keeps || self.prediction.valid_until.is_some() {
            return;
        }
        self.prediction.saved = Some(Box::new(SavedState {
            startup: self.startup.clone(),
            state: State { cwnd: self.prediction.cwnd, ssthresh: self.ceiling, pace: None, wake: self.wake },
            at: f.now,
            left: self.prediction.rule,
        }));
    }

    /// Whether it has left by its own rule, or its prediction ended long ago: it has nothing more to say.
    pub fn done(&self) -> bool {
        self.prediction.rule.is_some() || self.stopped
    }

    /// A round trip is over; so many after its prediction has ended, it is asked no more.
    pub fn stop_after(&mut self, rounds: u32) {
        self.since = if self.prediction.valid_until.is_some() { self.since + 1 } else { 0 };
        self.stopped = self.since > rounds;
    }

    fn view<'a>(&self, f: &'a Facts) -> View<'a> {
        View { facts: f, cwnd: self.prediction.cwnd, ssthresh: self.ceiling }
    }

    /// The rate a host with its window would pace at, where the file does not say (`tcp_update_pacing_rate`).
    fn facts(&self, f: &Facts) -> Facts {
        let rate = || {
            Some(Rate::new(self.prediction.cwnd, f.srtt.filter(|s| *s > Span::ZERO)?)? * Gain::percent(200))
        };
        Facts { pacing_rate: f.pacing_rate.or_else(rate), ..*f }
    }

    fn apply(&mut self, f: &Facts, step: Step, earned: bool) {
        let here = |what, cwnd| Moment { what, at: f.now, cwnd };
        if self.startup.phase() != self.phase {
            self.phase = self.startup.phase();
            if self.prediction.changes.len() < CHANGES {
                self.prediction.changes.push(here(self.phase, self.prediction.cwnd));
            }
        }
        match step.wake {
            Wake::Keep => {}
            Wake::At(t) => self.wake = Some(t),
            Wake::Cancel => self.wake = None,
        }
        if let Some(t) = step.ssthresh {
            self.ceiling = Some(t.max(f.mss * 2));
        }
        if let Some(why) = step.exit {
            let seen = step.detected.map_or(here(why.name(), self.prediction.cwnd), |d| Moment {
                what: why.name(),
                at: d.at,
                cwnd: d.cwnd,
            });
            self.prediction.rule = Some((why, seen));
        }
        match step.window {
            Window::Grow(by) if earned => {
                let room = self.ceiling.map_or(Bytes::MAX, |c| c - self.prediction.cwnd);
                self.prediction.cwnd += by.min(room);
            }
            Window::Set(to) => self.prediction.cwnd = to.max(f.mss),
            Window::Keep | Window::Grow(_) => {}
        }
        if step.exit.is_some() {
            // The window it has is its threshold, where it named none (as in `slowstart::control`).
            self.ceiling = self.ceiling.filter(|_| step.ssthresh.is_some()).or(Some(self.prediction.cwnd));
            self.keep(f);
        }
    }

    fn timers(&mut self, f: &Facts) {
        while let Some(at) = self.wake.filter(|at| *at <= f.now && !self.done()) {
            self.wake = None;
            let then = Facts { now: at, ..*f };
            let step = self.startup.on_timer(&self.view(&then));
            self.apply(&then, step, true);
        }
    }

    /// A packet left.
    pub fn on_sent(&mut self, f: &Facts, s: &Sent) {
        if !self.done() {
            self.timers(f);
            let f = self.facts(f);
            let s = Sent { cwnd: self.prediction.cwnd, ..*s };
            let v = View { facts: &f, cwnd: self.prediction.cwnd, ssthresh: self.ceiling };
            self.startup.on_sent(&v, &s);
        }
    }

    /// An ACK arrived. With `used`, the most that was in flight lately, the window grows only if at least half of it
    /// was used (`tcp_is_cwnd_limited` in slow start).
    pub fn on_ack(&mut self, f: &Facts, ack: &Ack, used: Option<Bytes>) {
        if self.done() {
            return;
        }
        self.timers(f);
        if self.done() {
            return;
        }
        let f = self.facts(f);
        let idle = used.is_some_and(|used| self.prediction.cwnd >= used * 2);
        let limit = if idle && ack.limit.allows_growth() { Limit::Application } else { ack.limit };
        let ack = Ack { limit, ..*ack };
        let v = View { facts: &f, cwnd: self.prediction.cwnd, ssthresh: self.ceiling };
        let step = self.startup.on_ack(&v, &ack);
        self.apply(&f, step, limit.allows_growth() && !f.in_recovery);
    }

    /// The connection lost something. `now` is also when the startup's prediction ends, if it would leave.
    pub fn on_congestion(&mut self, f: &Facts, c: &Congestion) {
        if self.done() || self.prediction.loss.is_some() {
            return;
        }
        let mut asked = self.startup.clone();
        let facts = self.facts(f);
        let step = asked
            .on_congestion(&View { facts: &facts, cwnd: self.prediction.cwnd, ssthresh: self.ceiling }, c);
        if let Some(why) = step.exit {
            let d = step.detected.map_or((f.now, self.prediction.cwnd), |d| (d.at, d.cwnd));
            self.prediction.loss = Some(Moment { what: why.name(), at: d.0, cwnd: d.1 });
        } else {
            // It stays in startup, and must know.
            self.startup = asked;
            self.apply(&facts, step, false);
        }
    }

    /// The loss was none.
    pub fn on_undone(&mut self, f: &Facts, r: &Recovery) {
        self.prediction.loss = None;
        if !self.done() {
            let step = self.startup.on_recovered(&self.view(f), r);
            self.apply(f, step, false);
        }
    }

    /// A round trip began at `start` and is over; in it, `peak` bytes were in flight at most. What the window held back
    /// then is held against this startup's own: once they differ by more than a tenth and two segments, what follows
    /// is not what it would have seen.
    pub fn on_round(&mut self, f: &Facts, start: Instant, peak: Bytes, window_limited: bool) {
        let apart = peak / 10 + f.mss * 2;
        // Its window was between these while the round was sent; after an exit the question is answered.
        let (least, most) = (self.round_cwnd, self.prediction.cwnd);
        let differs = least > peak + apart || most + apart < peak;
        if self.prediction.valid_until.is_none() && window_limited && !self.done() && differs {
            self.prediction.valid_until = Some(start);
        }
        self.round_cwnd = self.prediction.cwnd;
        if !self.done() {
            self.keep(f);
        }
    }
}
