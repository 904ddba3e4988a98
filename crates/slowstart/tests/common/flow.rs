//! A flow defined as a function of time, without packets and queues, for rules that compare delivery rates.

#![allow(dead_code, reason = "each test uses its own part of the flow")]

use crate::common::{facts, startup};
use slowstart::startup::{AnyStartup, Startup};
use slowstart::step::Exit;
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Ack, Facts, Sent, View};

/// One round trip.
const RTT: Span = Span::millis(100);

pub(crate) struct Flow {
    startup: AnyStartup,
    facts: Facts,
    /// Time between ACKs, in round trips.
    pub(crate) step: f64,
    delivered: u64,
    sent: u64,
    /// Time of the newest ACK, in round trips.
    now: f64,
    /// Reason and time of the exit, in round trips.
    pub(crate) exit: Option<(Exit, f64)>,
}

impl Flow {
    pub(crate) fn new(text: &str) -> Self {
        let step = 0.0005;
        let mut flow = Self {
            startup: startup(text),
            facts: facts(1000, 10),
            step,
            delivered: 0,
            sent: 0,
            now: 0.0,
            exit: None,
        };
        // The first RTT sample defines the bins: they begin at time zero.
        flow.ack(0.0, 0.0, 1.0);
        flow
    }

    /// Returns the kilobytes delivered until `t` at a rate of `g`^x until `capacity`, and constant from there
    /// on.
    pub(crate) fn ramp(g: f64, t: f64, capacity: f64) -> f64 {
        let x = t.min(capacity);
        1000.0 * ((g.powf(x) - 1.0) / g.ln() + (t - x) * g.powf(capacity))
    }

    /// Sends ACKs until `end`, where `total` is what was delivered by a time; `g` times that is sent.
    pub(crate) fn run(&mut self, end: f64, total: impl Fn(f64) -> f64, g: f64) {
        while self.now + self.step <= end && self.exit.is_none() {
            let t = self.now + self.step;
            self.ack(t, total(t), g);
        }
    }

    /// Sends one ACK after a pause.
    pub(crate) fn ack_after(&mut self, silence: f64) {
        let t = self.now + silence;
        self.ack(t, self.delivered as f64 / 1000.0 + 1.0, 2.0);
    }

    fn ack(&mut self, t: f64, total: f64, g: f64) {
        let to = |total: f64| (total * 1000.0).round() as u64;
        let bytes = Bytes(to(total) - self.delivered);
        self.now = t;
        self.delivered = to(total);
        self.facts.now = Instant((t * RTT.0 as f64).round() as u64);
        self.facts.delivered = Bytes(self.delivered);
        let mut ack = Ack::new(Sent::default(), bytes, Bytes::ZERO);
        (ack.upto, ack.rtt) = (SendOrder::new(self.delivered), Some(RTT));
        let v = View { facts: &self.facts, cwnd: Bytes(100_000), ssthresh: None };
        let step = self.startup.on_ack(&v, &ack);
        self.exit = step.exit.map(|why| (why, t));
        let sent = Bytes(to(g * total) - self.sent);
        self.sent += sent.0;
        self.startup.on_sent(&v, &Sent { bytes: sent, ..Sent::default() });
    }

    pub(crate) fn internal_value(&self, name: &str) -> f64 {
        let mut found = None;
        self.startup.internal_values(&mut |key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found.unwrap_or_else(|| panic!("no internal_value {name}"))
    }

    pub(crate) fn shortfall(&self) -> f64 {
        self.internal_value("shortfall")
    }
}
