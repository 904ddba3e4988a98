//! A startup joined with an avoidance: the only writer of a congestion window.

use crate::avoidance::Avoidance;
use crate::startup::Startup;
use crate::step::{Exit, Pace, Resume, Step, Wake, Window};
use crate::units::{Bytes, Instant, Mark, Rate, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Restart, Sent, Signal, View};

/// What an endpoint drives: [`Composed`], or a whole of its own such as BBR.
///
/// Between entry and end of a loss episode the endpoint's proportional rate reduction bounds what is sent, on its way
/// to [`State::cwnd`], unless the controller [owns recovery](Controller::owns_recovery).
pub trait Controller {
    /// The rate to ask the routers of the path for, in the handshake (RFC 4782).
    fn requested_rate(&self) -> Option<Rate> {
        None
    }
    /// The connection is established and the application has written its first data; none of it has been sent.
    fn on_established(&mut self, f: &Facts, hs: &Handshake) -> Change;
    /// A packet left.
    fn on_sent(&mut self, f: &Facts, s: &Sent);
    /// Whether [`Controller::on_sent`] does anything at present: a host may spare itself the facts otherwise.
    fn needs_on_sent(&self) -> bool {
        true
    }
    /// Whether it reads how delivery stood when a packet left (the second half of [`Sent`]): a host may spare itself the
    /// record of that otherwise.
    fn needs_delivery_state(&self) -> bool {
        true
    }
    /// New data was acknowledged, cumulatively or selectively.
    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change;
    /// Loss, mark, timeout or stall.
    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change;
    /// The loss episode is over.
    fn on_recovered(&mut self, f: &Facts, r: &Recovery) -> Change;
    /// The time asked for in [`State::wake`] has come.
    fn on_timer(&mut self, f: &Facts) -> Change;
    /// Sending begins after nothing was in flight for `idle`; `restart` is set where the host's rules call for a
    /// restarted window (RFC 5681 §4.1) and then is the retransmission timeout.
    fn on_idle(&mut self, f: &Facts, idle: Span, restart: Option<Span>) -> Change;
    /// As things stand.
    fn state(&self) -> &State;
    /// Whether it bounds sending during recovery itself.
    fn owns_recovery(&self) -> bool {
        false
    }
    /// The phase it is in, for traces.
    fn phase(&self) -> &'static str;
    /// What it thinks, for traces and tests.
    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64));
}

/// What an endpoint needs to know to send.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while it is arbitrarily high.
    pub ssthresh: Option<Bytes>,
    /// Pacing; `None` leaves it to the host's own rule.
    pub pace: Option<Pace>,
    /// When to call [`Controller::on_timer`].
    pub wake: Option<Instant>,
}

/// The end of a startup.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Exited {
    /// Why.
    pub why: Exit,
    /// When it left.
    pub at: Instant,
    /// When it saw the reason: the same, unless it drained first.
    pub detected_at: Instant,
    /// The window when it saw the reason.
    pub detected_cwnd: Bytes,
    /// The window it left with.
    pub exit_cwnd: Bytes,
    /// Bytes in flight when it left.
    pub inflight: Bytes,
}

/// What an event changed that a record wants to know.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The startup was left, for the first time (or again after a spurious loss took that back).
    pub exited: Option<Exited>,
    /// The loss that ended the startup proved spurious: the startup goes on, and the exit does not count.
    pub resumed: bool,
    /// The packet that ends at this mark is to be sent again, unless it has arrived or is held for lost.
    pub resend: Option<Mark>,
}

impl Change {
    pub(crate) const NONE: Self = Self { exited: None, resumed: false, resend: None };
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Mode {
    /// The startup is asked, for the first time.
    Startup,
    /// The startup has been left by congestion, and brings the window down itself until the episode is over.
    Leaving(Exit),
    /// Slow start again after a restart, up to the threshold: by the startup if `again`, else by the host's growth rule.
    Regrow { again: bool },
    /// The avoidance is asked.
    Avoidance,
}

/// What a spurious loss gives back. Linux restores window and threshold and lets the algorithms' state be.
#[derive(Copy, Clone, Debug)]
struct Before {
    mode: Mode,
    cwnd: Bytes,
    ssthresh: Option<Bytes>,
}

/// A startup with what follows it. What each acknowledgement needs comes first: a startup may be large.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Composed<S, A> {
    state: State,
    mode: Mode,
    avoidance: A,
    startup: S,
    before: Option<Before>,
    fresh: S,
}

impl<S: Startup + Clone, A: Avoidance> Composed<S, A> {
    /// A connection's controller, with its initial window.
    pub fn new(startup: S, avoidance: A, iw: Bytes) -> Self {
        Self {
            fresh: startup.clone(),
            startup,
            avoidance,
            mode: Mode::Startup,
            before: None,
            state: State { cwnd: iw, ssthresh: None, pace: None, wake: None },
        }
    }

    /// A controller in the midst of a connection, with its startup as it stands and as it was born.
    pub fn mid_connection(startup: S, fresh: S, avoidance: A, state: State) -> Self {
        Self { startup, fresh, avoidance, mode: Mode::Startup, before: None, state }
    }

    /// The startup is over, with the window and threshold as they stand, whatever it says itself.
    pub fn exit_startup(&mut self, f: &Facts, why: Exit) {
        self.enter_avoidance(f, why);
    }

    /// The startup, for those who know its type.
    pub fn startup(&self) -> &S {
        &self.startup
    }

    fn view<'a>(&self, f: &'a Facts) -> View<'a> {
        View { facts: f, cwnd: self.state.cwnd, ssthresh: self.state.ssthresh }
    }

    /// Whether the startup is asked for growth.
    fn asks_startup(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::Leaving(_) | Mode::Regrow { again: true })
    }

    /// Raises the window up to the threshold; answers what is left over (as `tcp_slow_start` does).
    fn grow(&mut self, by: Bytes) -> Bytes {
        let room = self.state.ssthresh.map_or(Bytes::MAX, |t| t - self.state.cwnd);
        let taken = by.min(room);
        self.state.cwnd += taken;
        by - taken
    }

    /// The one place where a startup's wish becomes a window. `earned` is the ACK that pays for growth, if one does.
    fn apply(&mut self, f: &Facts, step: Step, earned: Option<&Ack>) -> Change {
        // What almost every ACK brings: growth, no threshold in its way, and nothing else.
        if let (Window::Grow(by), Some(_), None) = (step.window, earned, self.state.ssthresh)
            && step == Step::grow(by)
        {
            self.state.cwnd += by;
            return Change::NONE;
        }
        let detected = step.detected.map_or((f.now, self.state.cwnd), |d| (d.at, d.cwnd));
        if let Some(t) = step.ssthresh {
            self.state.ssthresh = Some(t.max(f.mss * 2));
        }
        if let Some(p) = step.pace {
            self.state.pace = (p != Pace::Host).then_some(p);
        }
        match step.wake {
            Wake::Keep => {}
            Wake::At(t) => self.state.wake = Some(t),
            Wake::Cancel => self.state.wake = None,
        }
        // What of the ACK the avoidance may still use: all of it on an exit that asks for no growth.
        let mut rest = Bytes::ZERO;
        match step.window {
            Window::Keep if step.exit.is_some() => rest = earned.map_or(Bytes::ZERO, |a| a.bytes),
            Window::Grow(by) if earned.is_some() => rest = self.grow(by),
            Window::Set(b) => self.state.cwnd = b.max(f.mss),
            Window::Keep | Window::Grow(_) => {}
        }
        let mut change = Change { resend: step.resend, ..Change::NONE };
        if let Some(why) = step.exit {
            if step.ssthresh.is_none() {
                self.state.ssthresh = Some(self.state.cwnd.max(f.mss * 2));
            }
            if self.mode == Mode::Startup {
                change.exited = Some(Exited {
                    why,
                    at: f.now,
                    detected_at: detected.0,
                    detected_cwnd: detected.1,
                    exit_cwnd: self.state.cwnd,
                    inflight: f.inflight,
                });
            }
            if self.mode == Mode::Startup
                && matches!(why, Exit::Loss | Exit::Ecn)
                && self.startup.owns_recovery()
            {
                self.mode = Mode::Leaving(why);
            } else {
                self.enter_avoidance(f, why);
            }
        }
        if let (Some(ack), true) = (earned, rest.0 > 0) {
            if let Mode::Regrow { .. } = self.mode {
                self.enter_avoidance(f, Exit::Ssthresh);
            }
            self.avoid(f, &Ack { bytes: rest.min(ack.bytes), ..*ack });
        }
        change
    }

    fn enter_avoidance(&mut self, f: &Facts, why: Exit) {
        self.mode = Mode::Avoidance;
        self.state.pace = None;
        self.state.wake = None;
        let v = View { facts: f, cwnd: self.state.cwnd, ssthresh: self.state.ssthresh };
        self.avoidance.enter(&v, why);
    }

    fn avoid(&mut self, f: &Facts, ack: &Ack) {
        let v = View { facts: f, cwnd: self.state.cwnd, ssthresh: self.state.ssthresh };
        match self.avoidance.on_ack(&v, ack) {
            Window::Keep => {}
            Window::Grow(b) => self.state.cwnd += b,
            Window::Set(b) => self.state.cwnd = b.max(f.mss),
        }
    }

    fn timeout(&mut self, f: &Facts, c: &Congestion) -> Change {
        let v = self.view(f);
        let detected = self.state.cwnd;
        let asked = (self.mode == Mode::Startup).then(|| self.startup.on_congestion(&v, c));
        // A timeout within an episode that has made its cut makes no second one (tcp_enter_loss).
        let kept = v.ssthresh.filter(|_| !c.first);
        let threshold = kept.unwrap_or_else(|| self.avoidance.on_congestion(&v, c)).max(f.mss * 2);
        let resume = self.startup.on_restart(&v, Restart::Timeout);
        let left = self.mode == Mode::Startup;
        self.avoidance.enter(&v, Exit::Timeout);
        self.state.ssthresh = Some(asked.and_then(|s| s.ssthresh).unwrap_or(threshold).max(f.mss * 2));
        // RFC 5681 §3.1: the loss window is one segment.
        self.state.cwnd = f.mss;
        self.state.pace = None;
        self.state.wake = None;
        let again = resume == Resume::FromStart;
        if again {
            self.startup = self.fresh.clone();
        }
        self.mode = Mode::Regrow { again };
        let exited = left.then(|| {
            let d = asked.and_then(|s| s.detected);
            Exited {
                why: asked.and_then(|s| s.exit).unwrap_or(Exit::Timeout),
                at: f.now,
                detected_at: d.map_or(f.now, |d| d.at),
                detected_cwnd: d.map_or(detected, |d| d.cwnd),
                exit_cwnd: f.mss,
                inflight: f.inflight,
            }
        });
        Change { exited, ..Change::NONE }
    }
}

impl<S: Startup + Clone, A: Avoidance> Controller for Composed<S, A> {
    fn requested_rate(&self) -> Option<Rate> {
        self.startup.requested_rate()
    }

    fn on_established(&mut self, f: &Facts, hs: &Handshake) -> Change {
        // The handshake may have agreed on smaller segments.
        self.state.cwnd = f.iw;
        let step = self.startup.on_established(&self.view(f), hs);
        self.apply(f, step, None)
    }

    fn on_sent(&mut self, f: &Facts, s: &Sent) {
        if self.asks_startup() {
            let v = View { facts: f, cwnd: self.state.cwnd, ssthresh: self.state.ssthresh };
            self.startup.on_sent(&v, s);
        }
    }

    fn needs_on_sent(&self) -> bool {
        self.asks_startup() && self.startup.needs_on_sent()
    }

    /// No startup does: they count what arrives.
    fn needs_delivery_state(&self) -> bool {
        false
    }

    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change {
        // Evidence is never withheld, growth is: when the sender did not need the window, and while the endpoint's
        // recovery bounds it.
        let earned = (a.limit.allows_growth() && !f.in_recovery).then_some(a);
        match self.mode {
            Mode::Startup | Mode::Leaving(_) | Mode::Regrow { again: true } => {
                let step = self.startup.on_ack(&self.view(f), a);
                self.apply(f, step, earned)
            }
            Mode::Regrow { again: false } => {
                let step = Step::grow(self.view(f).slow_start_growth(a));
                self.apply(f, step, earned)
            }
            Mode::Avoidance => {
                if let Some(a) = earned {
                    self.avoid(f, a);
                }
                Change::NONE
            }
        }
    }

    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change {
        if c.first {
            self.before =
                Some(Before { mode: self.mode, cwnd: self.state.cwnd, ssthresh: self.state.ssthresh });
        }
        if c.signal == Signal::Timeout {
            return self.timeout(f, c);
        }
        let v = self.view(f);
        if matches!(self.mode, Mode::Startup | Mode::Leaving(_)) {
            let step = self.startup.on_congestion(&v, c);
            if step.exit.is_none() || step.window != Window::Keep {
                return self.apply(f, step, None);
            }
            // The startup leaves and has no opinion on the cut: the avoidance makes it.
            let cut = self.avoidance.on_congestion(&v, c).max(f.mss * 2);
            let detected =
                step.detected.unwrap_or(crate::step::Detected { at: f.now, cwnd: self.state.cwnd });
            let ssthresh = Some(step.ssthresh.unwrap_or(cut));
            return self.apply(
                f,
                Step { window: Window::Set(cut), ssthresh, detected: Some(detected), ..step },
                None,
            );
        }
        if c.first {
            let cut = self.avoidance.on_congestion(&v, c).max(f.mss * 2);
            self.state.cwnd = cut;
            self.state.ssthresh = Some(cut);
            self.enter_avoidance(f, c.signal.into());
        }
        Change::NONE
    }

    fn on_recovered(&mut self, f: &Facts, r: &Recovery) -> Change {
        let mut change = if self.asks_startup() {
            let step = self.startup.on_recovered(&self.view(f), r);
            self.apply(f, step, None)
        } else {
            Change::NONE
        };
        if let (Mode::Leaving(why), false) = (self.mode, r.undone) {
            self.enter_avoidance(f, why);
        }
        // A duplicate may tell of it even after the episode has ended, so what was is kept until the next.
        if let (true, Some(b)) = (r.undone, self.before) {
            self.before = None;
            self.state.cwnd = self.state.cwnd.max(b.cwnd);
            self.state.ssthresh = b.ssthresh;
            change.resumed = b.mode == Mode::Startup && self.mode != Mode::Startup;
            self.mode = b.mode;
        }
        change
    }

    fn on_timer(&mut self, f: &Facts) -> Change {
        self.state.wake = None;
        if !self.asks_startup() {
            return Change::NONE;
        }
        let step = self.startup.on_timer(&self.view(f));
        self.apply(f, step, None)
    }

    fn on_idle(&mut self, f: &Facts, idle: Span, restart: Option<Span>) -> Change {
        self.avoidance.on_idle(idle);
        let Some(rto) = restart else { return Change::NONE };
        // RFC 2861 as Linux has it (tcp_cwnd_restart): remember where it was, halve for each RTO of silence, but not
        // below the restart window.
        let floor = f.iw.min(self.state.cwnd);
        let remembered = self.state.cwnd.scale(3, 4);
        let mut idle = idle;
        while idle > rto && self.state.cwnd > floor {
            idle -= rto;
            self.state.cwnd = self.state.cwnd / 2;
        }
        self.state.cwnd = self.state.cwnd.max(floor);
        if let Some(t) = self.state.ssthresh {
            self.state.ssthresh = Some(t.max(remembered));
        }
        let resume = self.startup.on_restart(&self.view(f), Restart::Idle);
        let again = resume == Resume::FromStart;
        if again {
            self.startup = self.fresh.clone();
        }
        if self.mode != Mode::Startup && self.state.ssthresh.is_some_and(|t| self.state.cwnd < t) {
            self.mode = Mode::Regrow { again };
        }
        Change::NONE
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn owns_recovery(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::Leaving(_)) && self.startup.owns_recovery()
    }

    fn phase(&self) -> &'static str {
        match self.mode {
            Mode::Startup | Mode::Leaving(_) | Mode::Regrow { again: true } => self.startup.phase(),
            Mode::Regrow { again: false } => "slow-start",
            Mode::Avoidance => "avoidance",
        }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        if self.asks_startup() {
            self.startup.internal_values(put);
        }
    }
}
