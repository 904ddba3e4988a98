//! A check, in debug builds, that a host calls its controller as [`Controller`] states.

use super::{Change, Controller, State};
#[cfg(debug_assertions)]
use crate::units::{Bytes, Instant, SendOrder};
use crate::units::{Rate, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent};

/// A controller whose host is checked: in a build with debug assertions, a call against the
/// [order of calls](Controller#the-order-of-calls) panics and names the rule. In other builds it is the
/// controller and nothing else.
///
/// A host keeps it in place of its controller. The simulator and the QUIC host of this project do.
#[derive(Clone, Debug)]
pub struct Checked<C> {
    control: C,
    #[cfg(debug_assertions)]
    seen: Seen,
}

/// What the calls so far have stated.
#[cfg(debug_assertions)]
#[derive(Clone, Debug, Default)]
struct Seen {
    established: bool,
    now: Instant,
    delivered: Bytes,
    lost: Bytes,
    marked: Option<Bytes>,
    next: Option<SendOrder>,
    upto: Option<SendOrder>,
    /// Whether the newest episode is over; `None` before the first.
    episode_over: Option<bool>,
}

#[cfg(debug_assertions)]
impl Seen {
    /// Checks what every call of an established connection states.
    fn facts(&mut self, call: &str, f: &Facts) {
        assert!(self.established, "{call} before on_established");
        assert!(f.now >= self.now, "{call}: the time went back from {:?} to {:?}", self.now, f.now);
        assert!(
            f.mss > Bytes::ZERO && f.min_window > Bytes::ZERO,
            "{call}: no segment size or no least window"
        );
        assert!(f.delivered >= self.delivered, "{call}: the bytes delivered decreased");
        assert!(f.lost >= self.lost, "{call}: the bytes lost decreased");
        assert!(f.marked >= self.marked, "{call}: the bytes marked decreased or became unknown");
        assert!(self.next.is_none_or(|n| f.next >= n), "{call}: the newest mark sent decreased");
        (self.now, self.delivered, self.lost, self.marked) = (f.now, f.delivered, f.lost, f.marked);
        self.next = Some(f.next);
    }
}

impl<C> Checked<C> {
    /// Returns the controller of a new connection, checked from its first call.
    pub fn new(control: C) -> Self {
        Self {
            control,
            #[cfg(debug_assertions)]
            seen: Seen::default(),
        }
    }

    /// Returns a controller that takes over in the middle of a connection: it has been established, and a
    /// loss episode may last.
    pub fn mid_connection(control: C) -> Self {
        Self {
            control,
            #[cfg(debug_assertions)]
            seen: Seen { established: true, episode_over: Some(false), ..Seen::default() },
        }
    }

    /// Returns the controller whose calls are checked.
    pub fn get(&self) -> &C {
        &self.control
    }
}

impl<C: Controller> Controller for Checked<C> {
    fn requested_rate(&self) -> Option<Rate> {
        self.control.requested_rate()
    }

    fn on_established(&mut self, f: &Facts, hs: &Handshake) -> Change {
        #[cfg(debug_assertions)]
        {
            assert!(!self.seen.established, "on_established for the second time");
            self.seen.established = true;
            self.seen.facts("on_established", f);
        }
        self.control.on_established(f, hs)
    }

    fn on_sent(&mut self, f: &Facts, s: &Sent) {
        #[cfg(debug_assertions)]
        {
            self.seen.facts("on_sent", f);
            assert!(s.at == f.now, "on_sent: the packet was sent at {:?} and not now, {:?}", s.at, f.now);
        }
        self.control.on_sent(f, s);
    }

    fn needs_on_sent(&self) -> bool {
        self.control.needs_on_sent()
    }

    fn needs_delivery_state(&self) -> bool {
        self.control.needs_delivery_state()
    }

    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change {
        #[cfg(debug_assertions)]
        {
            self.seen.facts("on_ack", f);
            assert!(a.delivered <= f.delivered, "on_ack: the facts do not contain what the ACK delivered");
            assert!(a.newest.at <= f.now, "on_ack: a packet is acknowledged before it was sent");
            assert!(self.seen.upto.is_none_or(|u| a.upto >= u), "on_ack: acknowledgements went back");
            self.seen.upto = Some(a.upto);
        }
        self.control.on_ack(f, a)
    }

    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change {
        #[cfg(debug_assertions)]
        {
            self.seen.facts("on_congestion", f);
            assert!(c.lost <= f.lost, "on_congestion: the facts do not contain what was marked lost");
            assert!(
                c.first || self.seen.episode_over.is_some(),
                "on_congestion: a further signal before a first"
            );
            if c.first {
                self.seen.episode_over = Some(false);
            }
        }
        self.control.on_congestion(f, c)
    }

    fn on_recovered(&mut self, f: &Facts, r: &Recovery) -> Change {
        #[cfg(debug_assertions)]
        {
            self.seen.facts("on_recovered", f);
            assert!(!f.in_recovery, "on_recovered while the facts say that the episode lasts");
            let open = self.seen.episode_over.is_some_and(|over| r.undone || !over);
            assert!(open, "on_recovered without an episode that lasts");
            self.seen.episode_over = Some(true);
        }
        self.control.on_recovered(f, r)
    }

    fn on_timer(&mut self, f: &Facts) -> Change {
        #[cfg(debug_assertions)]
        {
            self.seen.facts("on_timer", f);
            let wake = self.control.state().wake;
            assert!(wake.is_some_and(|t| t <= f.now), "on_timer at {:?}, asked for {wake:?}", f.now);
        }
        self.control.on_timer(f)
    }

    fn on_idle(&mut self, f: &Facts, idle: Span, restart: Option<Span>) -> Change {
        #[cfg(debug_assertions)]
        {
            self.seen.facts("on_idle", f);
            assert!(f.inflight == Bytes::ZERO, "on_idle with {:?} in flight", f.inflight);
            assert!(idle > Span::ZERO, "on_idle after no time");
        }
        self.control.on_idle(f, idle, restart)
    }

    fn state(&self) -> &State {
        self.control.state()
    }

    fn owns_recovery(&self) -> bool {
        self.control.owns_recovery()
    }

    fn is_l4s(&self) -> bool {
        self.control.is_l4s()
    }

    fn needs_each_mark(&self) -> bool {
        self.control.needs_each_mark()
    }

    fn grows_between_marks(&self) -> bool {
        self.control.grows_between_marks()
    }

    fn phase(&self) -> &'static str {
        self.control.phase()
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.control.internal_values(put);
    }
}
