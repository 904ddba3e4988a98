//! Another control in place of the sender's: it gets the sender's ACKs and losses, and its window is compared with
//! what was in flight, round trip by round trip.
//!
//! A sender that its window limits has the window in flight at the end of a round trip. So the right control is off
//! by nothing but a few segments, from the initial window through the exit from slow start and into avoidance; one
//! that leaves a round trip too late is off by half.

use crate::filled::Seen;
use crate::own::OwnFacts;
use slowstart::control::Controller;
use slowstart::registry::AnyController;
use slowstart::step::Pace;
use slowstart::units::{Bytes, Instant, Rate};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Recovery, Sent};

/// Round trips after an exit that are compared.
const AFTER: u32 = 16;
/// Round trips after which a connection is not compared any longer.
const MOST: u32 = 256;
/// Segments by which a flight may be below a window that grows: packets are still paced out when the round trip ends.
const BEHIND: u64 = 10;
/// Shares of the window, in percent, that may be missing: while it grows or is paced, and else.
const MISSING: u64 = 10;
const MISSING_AFTER: u64 = 3;
/// The least gain of a control that probes in percent of its greatest: it may be in another phase than the sender.
const CYCLE: u64 = 60;
/// A round trip in which nothing fits counts as this many permille.
const WORST: u64 = 500;
/// A control that reduces its window at a loss has at most this percentage of it in flight afterwards.
const REDUCED: u64 = 90;
/// Round trips after a loss that show whether it does.
pub(crate) const LEAST_AFTER_LOSS: u32 = 3;
/// What a control that does something else in avoidance counts, in permille: it is none.
const NONE: u64 = 1500;
/// Round trips after a loss in which a control that reduced its window grows by more than a segment.
const GROWS: u32 = 10;
/// Segments in flight from which that shows.
const LARGE: u64 = 30;

/// What a flight may be off the window at the end of a round trip, as a right control's mostly is: segments and the share
/// of it, in percent, that count as one. A window that grows is passed, by packets that wait for their turn, by more.
const SCALE: (u64, u64) = (2, 2);
const PASSED: u64 = 3;
/// What a round trip counts at most, in hundredths.
const CAP: u64 = 800;

/// Round trips in a row in which only a window of avoidance rises.
const CLIMBS: u32 = 4;

/// How far a control is from what the sender did.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Distance {
    /// The sum over the round trips, in permille of what was in flight.
    pub(crate) permille: u64,
    /// Round trips that were compared.
    pub(crate) rounds: u32,
    /// Those of them after the control had left its startup, and after a loss.
    pub(crate) after: u32,
    pub(crate) after_loss: u32,
    /// How far its window is from what was in flight, in hundredths of what is usual for the right control: the sum over
    /// the round trips before a loss, that over those of them after it had left, and the most.
    pub(crate) off: u64,
    pub(crate) off_after: u64,
    pub(crate) off_most: u64,
    /// True if it paces, so that not its window alone says what is in flight: `off` does not judge it.
    pub(crate) paces: bool,
}

/// What the comparison of a control with the sender shows.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    /// `None` once a loss proved spurious: the sender's window may have been restored at another time than the
    /// control's.
    pub(crate) distance: Option<Distance>,
    /// The end of its startup by its own rule: when, and its window.
    pub(crate) left: Option<(Instant, Bytes)>,
    /// The largest window of the round trip in which it left: no more was in flight if it is the sender's.
    pub(crate) reached: Bytes,
    /// When congestion began, and the most in flight until then.
    pub(crate) disturbed: Option<Instant>,
    pub(crate) before: Bytes,
    /// True if something other than the window limited the sender before the control left.
    pub(crate) limited: bool,
    /// The least and the most in flight at the ends of the round trips after the control left.
    pub(crate) after: Option<(Bytes, Bytes)>,
}

/// A control in place of the sender's.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    controller: AnyController,
    /// Whether the host paces; `None`: as it seems.
    pacing: Option<bool>,
    /// The bounds of its window in this round trip, and its rate when it began.
    least: Bytes,
    most: Bytes,
    rate: Option<Rate>,
    /// When its timer expires, and whether it asks for the packets sent.
    wake: Option<Instant>,
    needs_sent: bool,
    recovering: bool,
    /// The least in flight after the first loss.
    low: Option<Bytes>,
    /// The flight of the newest round trip after the exit, and in how many it rose and fell.
    newest: Bytes,
    rose: u32,
    fell: u32,
    distance: Distance,
    /// What is shown so far, but for the distance.
    shown: Compared,
    over: bool,
}

impl Track {
    /// At the begin of a connection.
    pub(crate) fn new(
        mut controller: AnyController,
        pacing: Option<bool>,
        f: &Facts,
        handshake: &Handshake,
    ) -> Self {
        let _ = controller.on_established(f, handshake);
        let state = *controller.state();
        Self {
            pacing,
            least: state.cwnd,
            most: state.cwnd,
            rate: paced(state.pace),
            wake: state.wake,
            needs_sent: controller.needs_on_sent(),
            recovering: false,
            low: None,
            newest: Bytes::ZERO,
            rose: 0,
            fell: 0,
            distance: Distance::default(),
            shown: Compared {
                distance: None,
                left: None,
                reached: Bytes::ZERO,
                disturbed: None,
                before: Bytes::ZERO,
                limited: false,
                after: None,
            },
            over: false,
            controller,
        }
    }

    /// True once nothing more can be compared.
    pub(crate) const fn over(&self) -> bool {
        self.over
    }

    /// What the comparison shows, up to now.
    pub(crate) fn compared(&self) -> Compared {
        Compared { distance: Some(self.distance), ..self.shown }
    }

    fn facts<'a>(&self, own: &'a mut OwnFacts) -> &'a Facts {
        own.of(self.controller.state().cwnd, self.pacing)
    }

    /// True for a control that goes on at a loss as before.
    fn goes_on(&self) -> bool {
        matches!(self.controller, AnyController::Bbr(_) | AnyController::Bbr3(_))
    }

    fn changed(&mut self, now: Instant, change: slowstart::control::Change) {
        let state = self.controller.state();
        self.wake = state.wake;
        self.least = self.least.min(state.cwnd);
        self.most = self.most.max(state.cwnd);
        self.needs_sent = self.controller.needs_on_sent();
        if change.resumed {
            self.shown.left = None;
        } else if let Some(e) = change.exited
            && self.shown.left.is_none()
        {
            self.shown.left = Some((now, e.detected_cwnd));
            self.shown.reached = self.most.max(e.detected_cwnd);
        }
    }

    fn timers(&mut self, own: &mut OwnFacts) {
        if let Some(at) = self.wake.filter(|at| *at <= own.now()) {
            let mut then = *self.facts(own);
            then.now = at;
            let change = self.controller.on_timer(&then);
            self.changed(at, change);
        }
    }

    pub(crate) fn on_sent(&mut self, own: &mut OwnFacts, s: &Sent) {
        self.timers(own);
        if self.needs_sent {
            let s = Sent { cwnd: self.controller.state().cwnd, ..*s };
            self.controller.on_sent(self.facts(own), &s);
            self.needs_sent = self.controller.needs_on_sent();
        }
    }

    /// An ACK arrived. The window grows only if at least half of it was used: `used` is the recent maximum in flight
    /// (`tcp_is_cwnd_limited` in slow start).
    pub(crate) fn on_ack(&mut self, own: &mut OwnFacts, ack: &mut Ack, used: Bytes) {
        self.timers(own);
        let f = self.facts(own);
        if self.recovering && !f.in_recovery {
            self.recovering = false;
            let change = self.controller.on_recovered(f, &Recovery::new(Bytes::ZERO, false));
            self.changed(f.now, change);
        }
        let stated = ack.limit;
        if self.controller.state().cwnd >= used * 2 && stated.allows_growth() {
            ack.limit = Limit::Application;
        }
        let change = self.controller.on_ack(f, ack);
        ack.limit = stated;
        self.changed(f.now, change);
    }

    pub(crate) fn on_congestion(&mut self, own: &mut OwnFacts, c: &Congestion) {
        let f = self.facts(own);
        let left = self.shown.left;
        self.recovering = f.in_recovery;
        self.shown.disturbed = self.shown.disturbed.or(Some(f.now));
        let change = self.controller.on_congestion(f, c);
        self.changed(f.now, change);
        if !self.goes_on() {
            // A loss is no rule of its own.
            self.shown.left = left;
        }
    }

    /// A round trip ended.
    pub(crate) fn on_round(&mut self, round: &Seen, mss: Bytes) {
        let state = *self.controller.state();
        let now = paced(state.pace);
        let took = round.end.since(round.start);
        let rates = self.rate.zip(now).map(|(a, b)| (a.min(b).over(took), a.max(b).over(took)));
        if let Some(at) = self.shown.disturbed.filter(|_| !self.goes_on()) {
            self.reduced(round, at, mss);
        } else {
            self.shown.before = self.shown.before.max(round.flight);
            if round.usable {
                self.compare(round.flight, rates, mss);
            } else {
                self.shown.limited |= self.shown.disturbed.is_none() && self.shown.left.is_none();
            }
        }
        (self.least, self.most, self.rate) = (state.cwnd, state.cwnd, now);
        let d = &self.distance;
        self.over |= d.after >= AFTER || d.rounds >= MOST || d.permille >= NONE;
    }

    fn compare(&mut self, flight: Bytes, rates: Option<(Bytes, Bytes)>, mss: Bytes) {
        let growing = self.shown.left.is_none();
        let behind = |window: Bytes| window - mss * BEHIND;
        let (low, high) = match rates {
            Some((_, most)) if growing => (behind(most.min(self.most)), self.most),
            Some((least, most)) => {
                (least.scale(CYCLE, 100).min(self.least), most.scale(10_000 / CYCLE, 100).min(self.most))
            }
            None if growing => (behind(self.most), self.most),
            None => (self.least.min(behind(self.most)), self.most),
        };
        let grows = self.most > self.least.scale(100 + MISSING, 100);
        let missing = if grows || rates.is_some() && !growing { MISSING } else { MISSING_AFTER };
        let off = (flight - high - mss) + (low.scale(100 - missing, 100) - flight - mss);
        let d = &mut self.distance;
        d.permille += (off.0 * 1000 / flight.0.max(1)).min(WORST);
        d.rounds += 1;
        d.after += u32::from(!growing);
        let apart = if growing {
            (flight - self.most - mss) + (self.most.scale(100 - SCALE.1, 100) - flight - mss * PASSED)
        } else {
            (flight - self.most) + (self.most - flight)
        };
        let usual = mss * SCALE.0 + flight.max(self.most).scale(SCALE.1, 100);
        let apart = (apart.0 * 100 / usual.0.max(1)).min(CAP);
        d.paces |= rates.is_some();
        d.off += apart;
        d.off_most = d.off_most.max(apart);
        d.off_after += if growing { 0 } else { apart };
        if !growing {
            let (low, high) = self.shown.after.unwrap_or((flight, flight));
            self.shown.after = Some((low.min(flight), high.max(flight)));
        }
        if !growing && self.goes_on() {
            self.rose += u32::from(flight >= self.newest + mss && self.newest > Bytes::ZERO);
            self.fell += u32::from(flight + mss <= self.newest);
            self.newest = flight;
            // It probes for more, and takes that back.
            if self.rose == CLIMBS && self.fell == 0 {
                self.distance.permille += NONE;
            }
        }
    }

    /// After the first loss: the window is less than before, and then grows.
    fn reduced(&mut self, round: &Seen, at: Instant, mss: Bytes) {
        let Some(low) = self.low.map(|low| low.min(round.flight)) else {
            if round.start > at && round.usable {
                self.low = Some(round.flight);
                self.distance.after_loss = 1;
            } else {
                self.shown.before = self.shown.before.max(round.flight);
            }
            return;
        };
        if !round.usable {
            self.over = true;
            return;
        }
        self.low = Some(low);
        let d = &mut self.distance;
        d.after_loss += 1;
        if d.after_loss == LEAST_AFTER_LOSS && low > self.shown.before.scale(REDUCED, 100) + mss {
            d.permille += NONE;
        }
        if d.after_loss == GROWS && low > mss * LARGE && round.flight <= low + mss {
            d.permille += NONE;
        }
        self.over = d.after_loss >= AFTER;
    }
}

/// The rate of a control that sets one.
fn paced(pace: Option<Pace>) -> Option<Rate> {
    match pace {
        Some(Pace::Rate(r)) => Some(r),
        _ => None,
    }
}
