//! A startup that a host defines at run time, for example in another language.
//!
//! It is in no registry and has no parameters. This crate has no heap, so the state of each connection is the
//! host's, known by a number. Only with the feature `foreign`; hosts that do not need it pay nothing.

use super::Startup;
use crate::step::{Resume, Step};
use crate::view::{Ack, Congestion, Handshake, Recovery, Restart, Sent, View};
use core::fmt;

/// An event of a connection.
#[derive(Copy, Clone, Debug)]
pub enum Event<'a> {
    /// The connection is established: [`Startup::on_established`].
    Established(&'a Handshake),
    /// An acknowledgement arrived: [`Startup::on_ack`].
    Ack(&'a Ack),
    /// Congestion was seen: [`Startup::on_congestion`].
    Congestion(&'a Congestion),
    /// A loss episode ended: [`Startup::on_recovered`].
    Recovered(&'a Recovery),
    /// The timer that was asked for fired: [`Startup::on_timer`].
    Timer,
    /// See [`Startup::on_restart`]. The answer is not used: growth is then standard.
    Restart(Restart),
}

/// Where the startup of a connection is computed.
pub trait Host: Sync {
    /// Begins a connection with the startup `class`; returns the number of its state.
    fn begin(&self, class: u64) -> u64;
    /// Answers an event of a connection.
    fn event(&self, connection: u64, view: &View, event: Event) -> Step;
}

/// A startup of a host.
#[derive(Copy, Clone)]
pub struct Foreign {
    /// The program that computes its steps.
    pub host: &'static dyn Host,
    /// Which startup of the host.
    pub class: u64,
    /// The number of the connection's state.
    connection: u64,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its number differs from process to process.
        f.write_str("Foreign")
    }
}

impl Foreign {
    /// The startup `class` of a host, of no connection yet.
    pub const fn new(host: &'static dyn Host, class: u64) -> Self {
        Self { host, class, connection: 0 }
    }

    /// The startup of a new connection.
    #[must_use]
    pub fn begin(&self) -> Self {
        Self { connection: self.host.begin(self.class), ..*self }
    }
}

impl Startup for Foreign {
    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        self.host.event(self.connection, v, Event::Established(hs))
    }
    fn on_sent(&mut self, _: &View, _: &Sent) {}
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        self.host.event(self.connection, v, Event::Ack(ack))
    }
    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        self.host.event(self.connection, v, Event::Congestion(c))
    }
    fn on_recovered(&mut self, v: &View, r: &Recovery) -> Step {
        self.host.event(self.connection, v, Event::Recovered(r))
    }
    fn on_timer(&mut self, v: &View) -> Step {
        self.host.event(self.connection, v, Event::Timer)
    }
    fn on_restart(&mut self, v: &View, why: Restart) -> Resume {
        let _ = self.host.event(self.connection, v, Event::Restart(why));
        Resume::Standard
    }
}
