//! A startup joined with an avoidance: the only code that writes a congestion window.

use crate::avoidance::{Adjust, Avoidance};
use crate::startup::Startup;
use crate::step::{Exit, Pace, Resume, Step, Wake, Window};
use crate::units::{Bytes, Instant, Rate, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Restart, Sent, Signal, View};

mod checked;
#[cfg(feature = "foreign")]
pub mod foreign;

pub use checked::Checked;

/// The congestion control of one connection, as an endpoint drives it: [`Composed`], or a standalone
/// controller such as BBR.
///
/// During a loss episode the endpoint's proportional rate reduction limits what is sent, on the way to
/// [`State::cwnd`], unless the controller [owns recovery](Controller::owns_recovery).
///
/// # The order of calls
///
/// A host keeps these rules; [`Checked`] tests them in debug builds.
///
/// 1. [`on_established`](Self::on_established) comes first and once. Nothing has been sent before that
///    counts: packets of the handshake are not reported.
/// 2. [`Facts::now`] never decreases from call to call; nor do [`Facts::delivered`], [`Facts::lost`],
///    [`Facts::marked`] and [`Facts::next`]. The facts of a call contain its event: what an ACK delivers is
///    in `delivered`, what is marked lost is in `lost`, and neither is in `inflight`.
/// 3. A packet is reported by [`on_sent`](Self::on_sent) when it is sent, before its ACK. `inflight` contains
///    it.
/// 4. [`Ack::upto`] never decreases.
/// 5. An ACK that shows a loss or reports marks causes two calls, [`on_congestion`](Self::on_congestion) and
///    [`on_ack`](Self::on_ack), in either order: a TCP host detects losses before, most QUIC stacks after.
///    The first signal of an episode has `first` set. Further losses of packets that were sent before the
///    episode began belong to it and do not.
/// 6. [`on_recovered`](Self::on_recovered) ends an episode, before the ACK that ends it is reported;
///    `in_recovery` is false then. If the episode proves spurious, it is called with `undone` set, also if
///    the episode had ended before.
/// 7. [`on_timer`](Self::on_timer) is called at [`State::wake`] or later, and only if that is set.
/// 8. [`on_idle`](Self::on_idle) is called before the first packet after an idle time, when nothing is in
///    flight.
///
/// **Change of path.** A controller belongs to one path. When a connection moves to another (RFC 9000 §9.4),
/// its host makes a new controller, whose life begins with `on_established`, and reports to it only packets
/// that were sent on the new path. If only the peer's port changed, as behind a NAT, the controller may stay.
///
/// A call takes time that does not depend on the window, allocates nothing, and does not fail. A controller
/// may move to another thread between calls; calls for one connection do not overlap, since each takes
/// `&mut self`.
pub trait Controller {
    /// Returns the rate to request from the routers of the path during the handshake (RFC 4782), or `None`.
    fn requested_rate(&self) -> Option<Rate> {
        None
    }
    /// Called once, when the connection is established and the application has queued its first data, of
    /// which nothing has been sent.
    fn on_established(&mut self, f: &Facts, hs: &Handshake) -> Change;
    /// Called for each packet sent, if [`Controller::needs_on_sent`] returns true at that time.
    fn on_sent(&mut self, f: &Facts, s: &Sent);
    /// Returns true if [`Controller::on_sent`] has an effect at present. If false, the host need not call it.
    fn needs_on_sent(&self) -> bool {
        true
    }
    /// Returns true if the controller reads the delivery state in [`Sent`] (the fields after
    /// `retransmission`). If false, the host need not record it.
    fn needs_delivery_state(&self) -> bool {
        true
    }
    /// Called for each ACK, cumulative or selective.
    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change;
    /// Called on a loss, an ECN mark, a timeout or a local stall.
    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change;
    /// Called at the end of a loss episode.
    fn on_recovered(&mut self, f: &Facts, r: &Recovery) -> Change;
    /// Called at the time in [`State::wake`].
    fn on_timer(&mut self, f: &Facts) -> Change;
    /// Called when sending begins after nothing was in flight for `idle`. `restart` is the retransmission
    /// timeout if the host's rules require a restart window (RFC 5681 §4.1), otherwise `None`.
    fn on_idle(&mut self, f: &Facts, idle: Span, restart: Option<Span>) -> Change;
    /// Returns the current state.
    fn state(&self) -> &State;
    /// Returns true if the controller limits sending during recovery itself.
    fn owns_recovery(&self) -> bool {
        false
    }
    /// Returns true if the controller sends for the L4S service: its packets carry ECT(1) (RFC 9331 §4.1).
    fn is_l4s(&self) -> bool {
        false
    }
    /// Returns true if the controller responds to the share of marked packets and not to a mark as such: all
    /// its data is ECN-capable, retransmissions included (`TCP_CONG_NEEDS_ECN`).
    fn needs_each_mark(&self) -> bool {
        false
    }
    /// Returns true if the window may grow in the round trip after a reduction because of a mark, without the
    /// host's rate reduction.
    fn grows_between_marks(&self) -> bool {
        false
    }
    /// Returns the name of the current phase, for traces.
    fn phase(&self) -> &'static str;
    /// Internal values, for traces. Calls `put` with name and value of each.
    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64));
}

/// The part of a controller's state that an endpoint needs for sending.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Congestion window, in bytes.
    pub cwnd: Bytes,
    /// Slow-start threshold, in bytes; `None` while it is arbitrarily high.
    pub ssthresh: Option<Bytes>,
    /// How packets are spaced; `None` means by the host's own rule.
    pub pace: Option<Pace>,
    /// When to call [`Controller::on_timer`]; `None` means never.
    pub wake: Option<Instant>,
}

/// The end of a startup.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Exited {
    /// The reason that ended the startup.
    pub why: Exit,
    /// When the startup ended.
    pub at: Instant,
    /// When it detected the reason. Equal to `at` unless it drained first.
    pub detected_at: Instant,
    /// The window when it detected the reason, in bytes.
    pub detected_cwnd: Bytes,
    /// The window when it ended, in bytes.
    pub exit_cwnd: Bytes,
    /// Bytes in flight when it ended.
    pub inflight: Bytes,
}

/// What an event changed besides the state.
#[must_use]
#[non_exhaustive]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Slow start ended: for the first time, or again after `resumed` or `restarted`.
    pub exited: Option<Exited>,
    /// The loss that ended the startup proved spurious. The startup continues, and its recorded exit is void.
    pub resumed: bool,
    /// The avoidance returned to slow start, with the window as it is and no threshold. Its end is reported by
    /// `exited` again.
    pub restarted: bool,
    /// Retransmit now the packet whose data ends this many bytes before the end of the data sent so far,
    /// unless it has arrived or is already marked lost.
    pub resend: Option<Bytes>,
}

impl Change {
    /// The startup ended, `resumed` is true if it goes on after all, and a packet is to be sent again.
    #[cfg(feature = "foreign")]
    pub const fn of(exited: Option<Exited>, resumed: bool, resend: Option<Bytes>) -> Self {
        Self { exited, resumed, restarted: false, resend }
    }

    pub(crate) const NONE: Self = Self { exited: None, resumed: false, restarted: false, resend: None };
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Mode {
    /// The startup decides, for the first time, or a new instance of it after a restart by the avoidance.
    Startup,
    /// Congestion ended the startup, which reduces the window itself until the end of the episode.
    Leaving(Exit),
    /// Slow start after a restart, up to the threshold: by the startup if `again` is true, else by the host's
    /// growth rule.
    Regrow { again: bool },
    /// The startup is over, and the avoidance decides.
    Avoidance,
}

/// What is restored after a spurious loss. Linux restores window and threshold, but not the state of the
/// algorithms. A startup that goes on paces again as it did.
#[derive(Copy, Clone, Debug)]
struct Before {
    mode: Mode,
    counts: bool,
    state: State,
}

/// A startup and the avoidance that follows it. The fields that every ACK reads come first, because a startup
/// may be large.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Composed<S, A> {
    state: State,
    mode: Mode,
    avoidance: A,
    startup: S,
    before: Option<Before>,
    fresh: S,
    /// In a slow start by the host's growth rule that the avoidance began, whose end is recorded as that of a
    /// startup.
    counts: bool,
}

impl<S: Startup + Clone, A: Avoidance> Composed<S, A> {
    /// Returns a new controller, with the initial window `iw` in bytes.
    pub fn new(startup: S, avoidance: A, iw: Bytes) -> Self {
        Self {
            fresh: startup.clone(),
            startup,
            avoidance,
            mode: Mode::Startup,
            before: None,
            state: State { cwnd: iw, ssthresh: None, pace: None, wake: None },
            counts: false,
        }
    }

    /// Returns a controller that begins in the middle of a connection. `startup` is its current state, and
    /// `fresh` a new instance with the same parameters, for restarts.
    pub fn mid_connection(startup: S, fresh: S, avoidance: A, state: State) -> Self {
        Self { startup, fresh, avoidance, mode: Mode::Startup, before: None, state, counts: false }
    }

    /// Ends the startup now, with the window and threshold unchanged, and enters the avoidance.
    pub fn exit_startup(&mut self, f: &Facts, why: Exit) {
        self.enter_avoidance(f, why);
    }

    /// Returns the startup, also after it has ended.
    pub fn startup(&self) -> &S {
        &self.startup
    }

    fn view<'a>(&self, f: &'a Facts) -> View<'a> {
        View { facts: f, cwnd: self.state.cwnd, ssthresh: self.state.ssthresh }
    }

    /// Returns true if the startup determines growth.
    fn asks_startup(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::Leaving(_) | Mode::Regrow { again: true })
    }

    /// Tells the RTT sample of an ACK to a startup that has ended.
    fn observe(&mut self, a: &Ack) {
        if let Some(rtt) = a.rtt {
            self.startup.observe(rtt);
        }
    }

    /// Raises the window, at most up to the threshold. Returns the rest of `by` (as `tcp_slow_start` does).
    fn grow(&mut self, by: Bytes) -> Bytes {
        let room = self.state.ssthresh.map_or(Bytes::MAX, |t| t - self.state.cwnd);
        let taken = by.min(room);
        self.state.cwnd += taken;
        by - taken
    }

    /// Applies a startup's request; the only function that does. `earned` is the ACK that permits growth, if
    /// any.
    fn apply(&mut self, f: &Facts, step: Step, earned: Option<&Ack>) -> Change {
        // The common case: growth without a threshold.
        if let (Window::Grow(by), Some(Ack { most: None, .. }), None) =
            (step.window, earned, self.state.ssthresh)
            && step == Step::grow(by)
        {
            self.state.cwnd += by;
            return Change::NONE;
        }
        let detected = step.detected.map_or((f.now, self.state.cwnd), |d| (d.at, d.cwnd));
        if let Some(t) = step.ssthresh {
            self.state.ssthresh = Some(t.max(f.min_ssthresh()));
        }
        if let Some(p) = step.pace {
            self.state.pace = (p != Pace::Host).then_some(p);
        }
        match step.wake {
            Wake::Keep => {}
            Wake::At(t) => self.state.wake = Some(t),
            Wake::Cancel => self.state.wake = None,
        }
        // The bytes of the ACK that remain for the avoidance: all of them on an exit without growth.
        let mut rest = Bytes::ZERO;
        match step.window {
            Window::Keep if step.exit.is_some() => rest = earned.map_or(Bytes::ZERO, |a| a.bytes),
            Window::Grow(by) => {
                if let Some(a) = earned {
                    rest = self.grow(a.bounded(by, self.state.cwnd));
                }
            }
            Window::Set(b) => self.state.cwnd = b.max(f.min_window),
            Window::Keep => {}
        }
        let mut change = Change { resend: step.resend, ..Change::NONE };
        if let Some(why) = step.exit {
            if step.ssthresh.is_none() {
                self.state.ssthresh = Some(self.state.cwnd.max(f.min_ssthresh()));
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
            change.restarted = self.avoid(f, &Ack { bytes: rest.min(ack.bytes), ..*ack });
        }
        change
    }

    /// Returns to slow start without a threshold, as the avoidance asks.
    #[cold]
    #[inline(never)]
    fn restart(&mut self, f: &Facts) {
        self.mode = match self.startup.on_restart(&self.view(f), Restart::Avoidance) {
            Resume::FromStart => {
                self.startup = self.fresh.clone();
                Mode::Startup
            }
            Resume::Unchanged => Mode::Startup,
            Resume::Standard => Mode::Regrow { again: false },
        };
        self.counts = self.mode != Mode::Startup;
        self.state.ssthresh = None;
        // An earlier episode that proves spurious now changes nothing.
        self.before = None;
    }

    fn enter_avoidance(&mut self, f: &Facts, why: Exit) {
        let first = matches!(self.mode, Mode::Startup | Mode::Leaving(_));
        self.mode = Mode::Avoidance;
        self.counts = false;
        self.state.pace = None;
        self.state.wake = None;
        let v = View { facts: f, cwnd: self.state.cwnd, ssthresh: self.state.ssthresh };
        self.avoidance.enter(&v, why);
        if first && let Some(window) = self.startup.looks_for(&v) {
            self.avoidance.look_for(&v, window);
        }
    }

    /// The avoidance decides about an ACK. Returns true if slow start, which had ended, begins again.
    fn avoid(&mut self, f: &Facts, ack: &Ack) -> bool {
        let v = View { facts: f, cwnd: self.state.cwnd, ssthresh: self.state.ssthresh };
        match self.avoidance.on_ack(&v, ack) {
            Adjust::Keep => {}
            Adjust::Grow(b) => self.state.cwnd += ack.bounded(b, self.state.cwnd),
            Adjust::Restart => {
                // The avoidance may grow the window of a startup that has not ended.
                let ended = self.mode != Mode::Startup;
                self.restart(f);
                return ended;
            }
        }
        false
    }

    fn timeout(&mut self, f: &Facts, c: &Congestion) -> Change {
        let v = self.view(f);
        let detected = self.state.cwnd;
        let asked = (self.mode == Mode::Startup).then(|| self.startup.on_congestion(&v, c));
        // After the reduction of an episode, a timeout in the same episode makes no second one
        // (tcp_enter_loss).
        let kept = v.ssthresh.filter(|_| !c.first);
        let threshold = kept.unwrap_or_else(|| self.avoidance.on_congestion(&v, c)).max(f.min_ssthresh());
        let resume = self.startup.on_restart(&v, Restart::Timeout);
        let left = self.mode == Mode::Startup || core::mem::take(&mut self.counts);
        self.avoidance.enter(&v, Exit::Timeout);
        self.state.ssthresh = Some(asked.and_then(|s| s.ssthresh).unwrap_or(threshold).max(f.min_ssthresh()));
        // RFC 5681 §3.1: the loss window is one segment. RFC 9002 §7.6.2: the least window.
        self.state.cwnd = f.min_window;
        self.state.pace = None;
        self.state.wake = None;
        if resume == Resume::FromStart {
            self.startup = self.fresh.clone();
        }
        self.mode = Mode::Regrow { again: resume != Resume::Standard };
        let exited = left.then(|| {
            let d = asked.and_then(|s| s.detected);
            Exited {
                why: asked.and_then(|s| s.exit).unwrap_or(Exit::Timeout),
                at: f.now,
                detected_at: d.map_or(f.now, |d| d.at),
                detected_cwnd: d.map_or(detected, |d| d.cwnd),
                exit_cwnd: f.min_window,
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
        // The handshake may have negotiated smaller segments.
        self.state.cwnd = f.iw.max(f.min_window);
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

    fn needs_delivery_state(&self) -> bool {
        self.startup.needs_delivery_state()
    }

    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change {
        self.avoidance.observe(&self.view(f), a);
        // The startup receives every ACK, but the window grows only if the sender used it and outside of
        // recovery.
        let earned = (a.limit.allows_growth() && !f.in_recovery).then_some(a);
        match self.mode {
            Mode::Startup | Mode::Leaving(_) | Mode::Regrow { again: true } => {
                let step = self.startup.on_ack(&self.view(f), a);
                self.apply(f, step, earned)
            }
            Mode::Regrow { again: false } => {
                self.observe(a);
                let step = Step::grow(self.view(f).slow_start_growth(a));
                self.apply(f, step, earned)
            }
            Mode::Avoidance => {
                self.observe(a);
                let restarted = earned.is_some_and(|a| self.avoid(f, a));
                Change { restarted, ..Change::NONE }
            }
        }
    }

    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change {
        if c.first {
            self.before = Some(Before { mode: self.mode, counts: self.counts, state: self.state });
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
            // The startup ends without a window of its own: the avoidance reduces it.
            let cut = self.avoidance.on_congestion(&v, c).max(f.min_ssthresh());
            let detected =
                step.detected.unwrap_or(crate::step::Detected { at: f.now, cwnd: self.state.cwnd });
            let ssthresh = Some(step.ssthresh.unwrap_or(cut));
            return self.apply(
                f,
                Step { window: Window::Set(cut), ssthresh, detected: Some(detected), ..step },
                None,
            );
        }
        let mut change = Change::NONE;
        if c.first {
            let cut = self.avoidance.on_congestion(&v, c).max(f.min_ssthresh());
            if self.counts {
                change.exited = Some(Exited {
                    why: c.signal.into(),
                    at: f.now,
                    detected_at: f.now,
                    detected_cwnd: self.state.cwnd,
                    exit_cwnd: cut,
                    inflight: f.inflight,
                });
            }
            self.state.cwnd = cut;
            self.state.ssthresh = Some(cut);
            self.enter_avoidance(f, c.signal.into());
        }
        change
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
        // A duplicate may arrive after the end of the episode, so the saved state is kept until the next
        // episode.
        if let (true, Some(b)) = (r.undone, self.before) {
            self.before = None;
            self.state.cwnd = self.state.cwnd.max(b.state.cwnd);
            self.state.ssthresh = b.state.ssthresh;
            let left = b.mode == Mode::Startup && self.mode != Mode::Startup;
            if left && !self.asks_startup() {
                (self.state.pace, self.state.wake) = (b.state.pace, b.state.wake);
            }
            change.resumed = left || (b.counts && !self.counts);
            (self.mode, self.counts) = (b.mode, b.counts);
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
        self.avoidance.on_idle(f.now, idle);
        let Some(rto) = restart else { return Change::NONE };
        // RFC 2861 as in Linux (tcp_cwnd_restart): remember three quarters of the window in the threshold,
        // and halve the window for each RTO of idle time, at least to the restart window.
        let floor = f.iw.max(f.min_window).min(self.state.cwnd);
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
        if resume == Resume::FromStart {
            self.startup = self.fresh.clone();
        }
        if self.mode != Mode::Startup && self.state.ssthresh.is_some_and(|t| self.state.cwnd < t) {
            self.mode = Mode::Regrow { again: resume != Resume::Standard };
        }
        Change::NONE
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn is_l4s(&self) -> bool {
        self.avoidance.is_l4s()
    }

    fn needs_each_mark(&self) -> bool {
        self.avoidance.needs_each_mark()
    }

    fn grows_between_marks(&self) -> bool {
        self.avoidance.grows_between_marks()
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
