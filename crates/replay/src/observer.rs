//! Passive observers: a startup sees the real events of a connection made by another sender and saves a
//! window of its own.
//!
//! Each ACK is judged before it grows the window and before it allows anything to be sent (in Linux,
//! `pkts_acked` runs before `cong_avoid`), so the window at an exit does not include the ACK that caused it.
//! At a loss, the startup's response is recorded, and its own rule continues, so that the row can state what
//! the rule alone would have done.

use crate::own::OwnFacts;
use serde::{Deserialize, Serialize};
use slowstart::control::State;
use slowstart::startup::{AnyStartup, Startup};
use slowstart::step::{Exit, Step, Wake, Window};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Recovery, Sent, View};

/// Maximum number of phase changes kept.
const CHANGES: usize = 32;

/// A startup to observe with.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Name and parameters, as given by the user.
    pub label: String,
    /// The startup in its initial state.
    pub startup: AnyStartup,
}

/// A phase change or exit, with the startup's window at that time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The phase entered, or the exit reason.
    pub what: &'static str,
    /// When it happened, on the connection's clock.
    pub at: Instant,
    /// The startup's window at that time.
    pub cwnd: Bytes,
}

/// A phase change or exit, as a row has it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedEvent {
    /// The exit reason, or the phase that was entered.
    pub what: String,
    /// Seconds since the connection's first packet.
    pub time_s: f64,
    /// The startup's window at that time.
    pub cwnd_bytes: u64,
}

/// State of a startup at a moment until which it would have sent what was sent.
#[derive(Clone, Debug)]
pub struct SavedState {
    /// The startup as it was then.
    pub startup: AnyStartup,
    /// Its window, threshold and timer, on its own clock.
    pub state: State,
    /// When the state was saved.
    pub at: Instant,
    /// Its exit by its own rule, if it has left.
    pub left: Option<(Exit, Moment)>,
}

/// What a startup would have done.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Its window at the last event it saw.
    pub cwnd: Bytes,
    /// Its phase changes: the first 32.
    pub changes: Vec<Moment>,
    /// Its exit by its own rule, regardless of losses.
    pub rule: Option<(Exit, Moment)>,
    /// Its exit at the connection's first loss, if it was still in startup and leaves on loss.
    pub loss: Option<Moment>,
    /// From when on it would have sent something else than was sent. `None`: to the end.
    pub valid_until: Option<Instant>,
    /// The state to continue from with `--fork`, if requested: at its exit, or at the begin of the last round
    /// trip in which it would have sent what was sent.
    pub saved: Option<Box<SavedState>>,
}

impl Prediction {
    /// Moves its times to a clock that is zero at `epoch`; the saved state saves its own clock.
    pub fn since(&mut self, epoch: Span) {
        let rule = self.rule.as_mut().map(|r| &mut r.1);
        for m in self.changes.iter_mut().chain(rule).chain(&mut self.loss) {
            m.at = m.at - epoch;
        }
    }

    /// Its exit by its own rule or by loss, whichever came first; `None` if that was after the prediction's
    /// validity ended.
    pub fn exit(&self) -> Option<Moment> {
        let rule = self.rule.map(|(_, m)| m);
        let first = [rule, self.loss].into_iter().flatten().min_by_key(|m| m.at)?;
        self.valid_until.is_none_or(|v| first.at <= v).then_some(first)
    }
}

/// A startup that sees the events of another sender and sends nothing itself.
#[derive(Clone, Debug)]
pub struct Observer {
    startup: AnyStartup,
    ceiling: Option<Bytes>,
    wake: Option<Instant>,
    phase: &'static str,
    /// Its window when the current round trip began.
    round_cwnd: Bytes,
    /// The prediction so far.
    pub prediction: Prediction,
    /// Round trips since the prediction's validity ended.
    since: u32,
    stopped: bool,
    /// True to save the state for `--fork`.
    saves: bool,
}

impl Observer {
    /// An observer at the begin of a connection. `saves` is true to save its state for `--fork`.
    pub fn new(candidate: &Candidate, f: &Facts, handshake: &Handshake, saves: bool) -> Self {
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
            saves,
        };
        let step = w.startup.on_established(&w.view(f), handshake);
        w.apply(f, step, true);
        w.save(f);
        w
    }

    /// Saves the state while the prediction is valid.
    fn save(&mut self, f: &Facts) {
        if !self.saves || self.prediction.valid_until.is_some() {
            return;
        }
        self.prediction.saved = Some(Box::new(SavedState {
            startup: self.startup.clone(),
            state: State { cwnd: self.prediction.cwnd, ssthresh: self.ceiling, pace: None, wake: self.wake },
            at: f.now,
            left: self.prediction.rule,
        }));
    }

    /// True if it has left by its own rule, or its validity ended some round trips ago: it needs no more
    /// events.
    pub fn done(&self) -> bool {
        self.prediction.rule.is_some() || self.stopped
    }

    /// A round trip ended; observation stops `rounds` round trips after the prediction's validity ended.
    pub fn stop_after(&mut self, rounds: u32) {
        self.since = if self.prediction.valid_until.is_some() { self.since + 1 } else { 0 };
        self.stopped = self.since > rounds;
    }

    fn view<'a>(&self, f: &'a Facts) -> View<'a> {
        View { facts: f, cwnd: self.prediction.cwnd, ssthresh: self.ceiling }
    }

    fn facts<'a>(&self, own: &'a mut OwnFacts) -> &'a Facts {
        own.of(self.prediction.cwnd, None)
    }

    fn apply(&mut self, f: &Facts, step: Step, earned: bool) {
        let moment = |what, cwnd| Moment { what, at: f.now, cwnd };
        if self.startup.phase() != self.phase {
            self.phase = self.startup.phase();
            if self.prediction.changes.len() < CHANGES {
                self.prediction.changes.push(moment(self.phase, self.prediction.cwnd));
            }
        }
        match step.wake {
            Wake::At(t) => self.wake = Some(t),
            Wake::Cancel => self.wake = None,
            _ => {}
        }
        if let Some(t) = step.ssthresh {
            self.ceiling = Some(t.max(f.min_ssthresh()));
        }
        if let Some(why) = step.exit {
            let at_exit = step.detected.map_or(moment(why.name(), self.prediction.cwnd), |d| Moment {
                what: why.name(),
                at: d.at,
                cwnd: d.cwnd,
            });
            self.prediction.rule = Some((why, at_exit));
        }
        match step.window {
            Window::Grow(by) if earned => {
                let room = self.ceiling.map_or(Bytes::MAX, |c| c - self.prediction.cwnd);
                self.prediction.cwnd += by.min(room);
            }
            Window::Set(to) => self.prediction.cwnd = to.max(f.min_window),
            _ => {}
        }
        if step.exit.is_some() {
            // An exit without a threshold sets it to the window (as in `slowstart::control`).
            self.ceiling = self.ceiling.filter(|_| step.ssthresh.is_some()).or(Some(self.prediction.cwnd));
            self.save(f);
        }
    }

    fn timers(&mut self, own: &mut OwnFacts) {
        while let Some(at) = self.wake.filter(|at| *at <= own.now() && !self.done()) {
            self.wake = None;
            let mut then = *self.facts(own);
            then.now = at;
            let step = self.startup.on_timer(&self.view(&then));
            self.apply(&then, step, true);
        }
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, own: &mut OwnFacts, s: &Sent) {
        if !self.done() {
            self.timers(own);
            if self.startup.needs_on_sent() {
                let s = Sent { cwnd: self.prediction.cwnd, ..*s };
                self.startup.on_sent(&self.view(self.facts(own)), &s);
            }
        }
    }

    /// An ACK arrived. With `used`, the recent maximum in flight, the window grows only if at least half of
    /// it was used (`tcp_is_cwnd_limited` in slow start).
    pub fn on_ack(&mut self, own: &mut OwnFacts, ack: &mut Ack, used: Option<Bytes>) {
        if self.done() {
            return;
        }
        self.timers(own);
        if self.done() {
            return;
        }
        let f = self.facts(own);
        let idle = used.is_some_and(|used| self.prediction.cwnd >= used * 2);
        let stated = ack.limit;
        let limit = if idle && stated.allows_growth() { Limit::Application } else { stated };
        ack.limit = limit;
        let v = View { facts: f, cwnd: self.prediction.cwnd, ssthresh: self.ceiling };
        let step = self.startup.on_ack(&v, ack);
        ack.limit = stated;
        self.apply(f, step, limit.allows_growth() && !f.in_recovery);
    }

    /// The connection detected a loss or an ECN mark.
    pub fn on_congestion(&mut self, own: &mut OwnFacts, c: &Congestion) {
        if self.done() || self.prediction.loss.is_some() {
            return;
        }
        let mut response = self.startup.clone();
        let f = self.facts(own);
        let step = response.on_congestion(&self.view(f), c);
        if let Some(why) = step.exit {
            let d = step.detected.map_or((f.now, self.prediction.cwnd), |d| (d.at, d.cwnd));
            self.prediction.loss = Some(Moment { what: why.name(), at: d.0, cwnd: d.1 });
        } else {
            // It remains in startup, so it must process the event.
            self.startup = response;
            self.apply(f, step, false);
        }
    }

    /// The loss was spurious.
    pub fn on_undone(&mut self, f: &Facts, r: &Recovery) {
        self.prediction.loss = None;
        if !self.done() {
            let step = self.startup.on_recovered(&self.view(f), r);
            self.apply(f, step, false);
        }
    }

    /// A round trip that began at `start` ended; at most `peak` bytes were in flight. If this differs from
    /// the startup's own window by more than 10 % and two segments, the prediction is valid only until
    /// `start`.
    pub fn on_round(&mut self, f: &Facts, start: Instant, peak: Bytes, window_limited: bool) {
        let apart = peak / 10 + f.mss * 2;
        // The bounds of its window while the round trip was sent. After an exit the prediction is complete.
        let (least, most) = (self.round_cwnd, self.prediction.cwnd);
        let differs = least > peak + apart || most + apart < peak;
        if self.prediction.valid_until.is_none() && window_limited && !self.done() && differs {
            self.prediction.valid_until = Some(start);
        }
        self.round_cwnd = self.prediction.cwnd;
        if !self.done() {
            self.save(f);
        }
    }
}
