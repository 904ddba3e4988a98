//! A controller that a host defines at run time, for example in a library that is loaded.
//!
//! It is in no registry and has no parameters. This crate has no heap, so the state of each connection is the
//! host's, known by a number. Only with the feature `foreign`; hosts that do not need it pay nothing. A
//! startup alone, which an avoidance of this crate follows, is a [`crate::startup::foreign::Foreign`].

use super::{Change, Controller, State};
use crate::units::{Bytes, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent};
use core::fmt;

/// An event of a connection, as [`Controller`] has it.
#[derive(Copy, Clone, Debug)]
pub enum Event<'a> {
    /// The connection is established: [`Controller::on_established`].
    Established(&'a Handshake),
    /// A packet was sent: [`Controller::on_sent`].
    Sent(&'a Sent),
    /// An acknowledgement arrived: [`Controller::on_ack`].
    Ack(&'a Ack),
    /// Congestion was seen: [`Controller::on_congestion`].
    Congestion(&'a Congestion),
    /// A loss episode ended: [`Controller::on_recovered`].
    Recovered(&'a Recovery),
    /// The timer that was asked for fired: [`Controller::on_timer`].
    Timer,
    /// See [`Controller::on_idle`]: the idle time, and the timeout if the host restarts its window.
    Idle(Span, Option<Span>),
}

/// What a controller of a host answers an event.
#[derive(Copy, Clone, Debug)]
pub struct Answer {
    /// Its state after the event.
    pub state: State,
    /// What changed besides the window.
    pub change: Change,
    /// True if it broke the rules of a controller, now or before. Its state is then the last that kept them.
    pub broken: bool,
}

/// What a host's controller asks of the endpoint, for as long as it lives.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// True if it wants each packet sent: [`Controller::needs_on_sent`].
    pub sent: bool,
    /// True if it reads the delivery state: [`Controller::needs_delivery_state`].
    pub delivery_state: bool,
    /// True if it sets the window in recovery: [`Controller::owns_recovery`].
    pub owns_recovery: bool,
}

/// Where the controller of a connection is computed.
pub trait Host: Sync {
    /// Begins a connection of the class, with the initial window `iw`; returns the number of its state.
    fn begin(&self, class: u64, iw: Bytes, seed: u64) -> u64;
    /// What the class needs.
    fn needs(&self, class: u64) -> Needs;
    /// Answers an event of a connection, which had this state before.
    fn event(&self, connection: u64, f: &Facts, state: &State, event: Event) -> Answer;
    /// One more value stands for the connection.
    fn share(&self, connection: u64);
    /// One value less stands for it. After the last the number is not used again.
    fn end(&self, connection: u64);
    /// Passes to `put` what the connection did wrong, if it is broken.
    fn fault(&self, connection: u64, put: &mut dyn FnMut(&str));
}

/// A controller of a host, of no connection yet.
#[derive(Copy, Clone)]
pub struct Class {
    /// The program that computes its answers.
    pub host: &'static dyn Host,
    /// Which controller of the host.
    pub number: u64,
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Class({})", self.number)
    }
}

impl Class {
    /// The controller of a new connection, with the initial window `iw`.
    pub fn begin(&self, iw: Bytes, seed: u64) -> Foreign {
        Foreign {
            host: self.host,
            connection: self.host.begin(self.number, iw, seed),
            needs: self.host.needs(self.number),
            state: State { cwnd: iw, ssthresh: None, pace: None, wake: None },
            exited: false,
            broken: false,
        }
    }
}

/// The controller of a connection that a host computes. A copy stands for the same connection.
pub struct Foreign {
    host: &'static dyn Host,
    connection: u64,
    needs: Needs,
    state: State,
    exited: bool,
    broken: bool,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign")
            .field("connection", &self.connection)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Clone for Foreign {
    fn clone(&self) -> Self {
        self.host.share(self.connection);
        Self { ..*self }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.host.end(self.connection);
    }
}

impl Foreign {
    /// True once it broke the rules of a controller: it then keeps its window, whatever happens.
    pub const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Passes to `put` what it did wrong, if it is broken.
    pub fn fault(&self, put: &mut dyn FnMut(&str)) {
        self.host.fault(self.connection, put);
    }

    fn tell(&mut self, f: &Facts, event: Event) -> Change {
        if self.broken {
            return Change::NONE;
        }
        let answer = self.host.event(self.connection, f, &self.state, event);
        (self.state, self.broken) = (answer.state, answer.broken);
        self.exited = (self.exited && !answer.change.resumed) || answer.change.exited.is_some();
        answer.change
    }
}

impl Controller for Foreign {
    fn on_established(&mut self, f: &Facts, hs: &Handshake) -> Change {
        // The handshake may have negotiated smaller segments.
        self.state.cwnd = f.iw.max(f.min_window);
        self.tell(f, Event::Established(hs))
    }
    fn on_sent(&mut self, f: &Facts, s: &Sent) {
        let _ = self.tell(f, Event::Sent(s));
    }
    fn needs_on_sent(&self) -> bool {
        self.needs.sent
    }
    fn needs_delivery_state(&self) -> bool {
        self.needs.delivery_state
    }
    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change {
        self.tell(f, Event::Ack(a))
    }
    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change {
        self.tell(f, Event::Congestion(c))
    }
    fn on_recovered(&mut self, f: &Facts, r: &Recovery) -> Change {
        self.tell(f, Event::Recovered(r))
    }
    fn on_timer(&mut self, f: &Facts) -> Change {
        self.state.wake = None;
        self.tell(f, Event::Timer)
    }
    fn on_idle(&mut self, f: &Facts, idle: Span, restart: Option<Span>) -> Change {
        self.tell(f, Event::Idle(idle, restart))
    }
    fn state(&self) -> &State {
        &self.state
    }
    fn owns_recovery(&self) -> bool {
        self.needs.owns_recovery
    }
    fn phase(&self) -> &'static str {
        if self.exited { "avoidance" } else { "slow-start" }
    }
    fn internal_values(&self, _: &mut dyn FnMut(&'static str, f64)) {}
}
