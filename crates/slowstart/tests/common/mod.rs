//! A scripted host: calls a controller as a TCP sender does, with consistent accounting.

#![allow(dead_code, reason = "each test uses its own part of the host")]

use slowstart::avoidance::{self, AnyAvoidance};
use slowstart::control::{Change, Composed, Controller, State};
use slowstart::registry::AnyController;
use slowstart::startup::{self, AnyStartup};
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Recovery, Sent, Signal};
use std::collections::VecDeque;

/// The facts of a connection on which nothing has happened yet.
pub(crate) fn facts(mss: u64, iw: u64) -> Facts {
    let mut f = Facts::new(Bytes(mss), Bytes(mss * iw));
    f.supports_pacing = true;
    f.unacked = Some(Bytes::ZERO);
    f
}

/// A startup from `name:key=value,key=value`.
pub(crate) fn startup(text: &str) -> AnyStartup {
    let (name, params) = text.split_once(':').unwrap_or((text, ""));
    let mut made = (startup::StartupEntry::named(name).unwrap_or_else(|| panic!("no startup {name}")).make)();
    for (key, value) in pairs(params) {
        made.set(key, value).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    }
    made
}

/// An avoidance from the same notation.
pub(crate) fn avoidance(text: &str) -> AnyAvoidance {
    let (name, params) = text.split_once(':').unwrap_or((text, ""));
    let entry = avoidance::REGISTRY.iter().find(|e| e.name == name);
    let mut made = (entry.unwrap_or_else(|| panic!("no avoidance {name}")).make)();
    for (key, value) in pairs(params) {
        made.set(key, value).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    }
    made
}

fn pairs(params: &str) -> impl Iterator<Item = (&str, &str)> {
    params.split(',').filter(|p| !p.is_empty()).map(|p| p.split_once('=').expect("key=value"))
}

/// A packet that was sent and is not yet acknowledged cumulatively.
struct Packet {
    sent: Sent,
    /// Bytes of it that are not yet acknowledged.
    left: u64,
    /// In flight; otherwise marked lost.
    out: bool,
}

pub(crate) struct Host {
    pub(crate) control: AnyController,
    pub(crate) facts: Facts,
    pub(crate) limit: Limit,
    /// The mark before the first byte.
    pub(crate) origin: u64,
    /// Bytes acknowledged cumulatively, and bytes sent, without retransmissions.
    pub(crate) una: u64,
    pub(crate) next: u64,
    pub(crate) sent_total: Bytes,
    packets: VecDeque<Packet>,
    /// Number of packets marked lost, and an index before which none is.
    held: usize,
    held_from: usize,
    delivered_at: Instant,
    /// The most recently sent packet known to have arrived.
    newest: Sent,
}

impl Host {
    pub(crate) fn new(startup: AnyStartup, avoidance: AnyAvoidance, facts: Facts) -> Self {
        Self::after(startup, avoidance, facts, &Handshake::default()).0
    }

    /// A host after this handshake, which may have ended the startup.
    pub(crate) fn after(
        startup: AnyStartup,
        avoidance: AnyAvoidance,
        facts: Facts,
        hs: &Handshake,
    ) -> (Self, Change) {
        Self::of(AnyController::Composed(Composed::new(startup, avoidance, facts.iw)), facts, hs)
    }

    /// A host of any controller, after this handshake.
    pub(crate) fn of(mut control: AnyController, facts: Facts, hs: &Handshake) -> (Self, Change) {
        let change = control.on_established(&facts, hs);
        let host = Self {
            control,
            limit: Limit::Window,
            origin: 0,
            una: 0,
            next: 0,
            sent_total: Bytes::ZERO,
            packets: VecDeque::new(),
            held: 0,
            held_from: 0,
            delivered_at: facts.now,
            newest: Sent::default(),
            facts,
        };
        (host, change)
    }

    pub(crate) fn state(&self) -> State {
        *self.control.state()
    }

    /// Returns the window in segments.
    pub(crate) fn cwnd(&self) -> f64 {
        self.state().cwnd.0 as f64 / self.facts.mss.0 as f64
    }

    pub(crate) fn ssthresh(&self) -> Option<f64> {
        self.state().ssthresh.map(|t| t.0 as f64 / self.facts.mss.0 as f64)
    }

    pub(crate) fn internal_value(&self, name: &str) -> Option<f64> {
        let mut found = None;
        self.control.internal_values(&mut |key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found
    }

    pub(crate) fn wait(&mut self, time: Span) {
        self.facts.now = self.facts.now + time;
    }

    /// Returns the number of segments in flight.
    pub(crate) fn out(&self) -> usize {
        self.packets.len() - self.held
    }

    /// Returns the oldest packet that is not yet acknowledged.
    pub(crate) fn oldest(&self) -> Sent {
        self.packets.front().expect("something is in flight").sent
    }

    /// Sends while the window permits, first what is marked lost.
    pub(crate) fn fill(&mut self) {
        self.fill_up_to(Bytes::MAX);
    }

    /// Sends while the window and a receive window of `most` permit.
    pub(crate) fn fill_up_to(&mut self, most: Bytes) {
        while self.facts.inflight + self.facts.mss <= self.state().cwnd.min(most) {
            if self.held == 0 {
                if self.facts.unsent == Some(Bytes::ZERO) {
                    break;
                }
                self.send_new();
            } else {
                while self.packets[self.held_from].out {
                    self.held_from += 1;
                }
                self.resend(self.held_from);
            }
        }
    }

    fn send_new(&mut self) {
        let bytes = self.facts.mss;
        self.facts.unsent = self.facts.unsent.map(|u| u - bytes);
        self.next += bytes.0;
        let mark = SendOrder::new(self.origin + self.next);
        let sent = self.sent(mark, bytes, false);
        self.packets.push_back(Packet { sent, left: bytes.0, out: true });
        self.control.on_sent(&self.facts, &sent);
        self.facts.next = mark;
        self.facts.unacked = Some(Bytes(self.next - self.una));
    }

    fn resend(&mut self, i: usize) {
        let (mark, left) = (self.packets[i].sent.mark, self.packets[i].left);
        let sent = self.sent(mark, Bytes(left), true);
        self.packets[i] = Packet { sent, left, out: true };
        self.held -= 1;
        self.control.on_sent(&self.facts, &sent);
    }

    fn sent(&mut self, mark: SendOrder, bytes: Bytes, retransmission: bool) -> Sent {
        self.facts.inflight += bytes;
        self.sent_total += bytes;
        let first_sent_at =
            self.packets.iter().find(|p| p.out).map_or(self.facts.now, |p| p.sent.first_sent_at);
        Sent {
            mark,
            at: self.facts.now,
            bytes,
            sent_total: self.sent_total,
            retransmission,
            inflight: self.facts.inflight,
            delivered: self.facts.delivered,
            delivered_at: self.delivered_at,
            first_sent_at,
            lost: self.facts.lost,
            app_limited: self.limit == Limit::Application,
            cwnd: self.state().cwnd,
        }
    }

    /// Returns the ACK of this number of further bytes and updates the accounting, without calling the
    /// controller.
    pub(crate) fn acknowledge(&mut self, bytes: u64, rtt: Option<Span>) -> Ack {
        let prior_inflight = self.facts.inflight;
        let mut newest = None;
        let mut todo = bytes;
        while todo > 0 {
            let p = self.packets.front_mut().expect("acknowledges more than was sent");
            let part = todo.min(p.left);
            p.left -= part;
            todo -= part;
            newest = Some(p.sent);
            if p.out {
                self.facts.inflight -= Bytes(part);
            }
            if p.left == 0 {
                self.held -= usize::from(!p.out);
                self.held_from = self.held_from.saturating_sub(1);
                self.packets.pop_front();
            }
        }
        self.newest = newest.unwrap_or(self.newest);
        self.una += bytes;
        self.facts.unacked = Some(Bytes(self.next - self.una));
        self.facts.delivered += Bytes(bytes);
        if bytes > 0 {
            self.delivered_at = self.facts.now;
        }
        if let Some(rtt) = rtt {
            self.facts.min_rtt = Some(self.facts.min_rtt.map_or(rtt, |m| m.min(rtt)));
            self.facts.srtt = Some(self.facts.srtt.map_or(rtt, |s| s.scale(7, 8) + rtt / 8));
        }
        let mut ack = Ack::new(newest.unwrap_or_default(), Bytes(bytes), prior_inflight);
        ack.upto = SendOrder::new(self.origin + self.una);
        ack.rtt = rtt;
        ack.limit = self.limit;
        ack
    }

    pub(crate) fn ack(&mut self, bytes: u64, rtt: Option<Span>) -> Change {
        let ack = self.acknowledge(bytes, rtt);
        self.control.on_ack(&self.facts, &ack)
    }

    /// Acknowledges everything in flight, `each` segments at a time, spread over `over`.
    pub(crate) fn round(&mut self, each: usize, over: Span, rtt: Span) -> Vec<Change> {
        let mut left = self.out();
        let acks = left.div_ceil(each).max(1);
        let mut changes = Vec::new();
        while left > 0 {
            let n = each.min(left);
            left -= n;
            self.wait(over / acks as u64);
            changes.push(self.ack(self.facts.mss.0 * n as u64, Some(rtt)));
            self.fill();
        }
        changes
    }

    fn congestion(&mut self, signal: Signal, lost: Bytes) -> Change {
        let newest = self.newest;
        let first = !self.facts.in_recovery;
        let c = Congestion::new(signal, first, newest).losing(lost, u32::from(lost.0 > 0));
        self.control.on_congestion(&self.facts, &c)
    }

    /// Marks the first `n` packets lost and retransmits them at once (fast retransmit).
    pub(crate) fn lose(&mut self, n: usize) -> Change {
        let hit: Vec<usize> =
            self.packets.iter().enumerate().filter(|(_, p)| p.out).map(|(i, _)| i).take(n).collect();
        let bytes: Bytes = hit.iter().map(|i| Bytes(self.packets[*i].left)).sum();
        self.hold(&hit, bytes);
        let change = self.congestion(Signal::Loss, bytes);
        self.facts.in_recovery = true;
        for i in hit {
            self.resend(i);
        }
        change
    }

    fn hold(&mut self, hit: &[usize], bytes: Bytes) {
        self.facts.inflight -= bytes;
        self.facts.lost += bytes;
        self.held += hit.len();
        self.held_from = hit.first().map_or(self.held_from, |first| self.held_from.min(*first));
        for i in hit {
            self.packets[*i].out = false;
        }
    }

    /// A congestion signal without loss: a mark, or a stall of the host's own queue.
    pub(crate) fn signal(&mut self, signal: Signal) -> Change {
        let change = self.congestion(signal, Bytes::ZERO);
        self.facts.in_recovery = true;
        change
    }

    /// Marks everything in flight lost; slow start begins again.
    pub(crate) fn timeout(&mut self) -> Change {
        let hit: Vec<usize> = (0..self.packets.len()).filter(|i| self.packets[*i].out).collect();
        let bytes = self.facts.inflight;
        self.hold(&hit, bytes);
        let change = self.congestion(Signal::Timeout, bytes);
        self.facts.in_recovery = false;
        change
    }

    /// The timer that the controller set expires.
    pub(crate) fn timer(&mut self) -> Change {
        self.facts.now = self.state().wake.expect("a time asked for").max(self.facts.now);
        self.control.on_timer(&self.facts)
    }

    pub(crate) fn recovered(&mut self, undone: bool) -> Change {
        self.facts.in_recovery = false;
        self.control.on_recovered(&self.facts, &Recovery::new(self.facts.mss, undone))
    }

    /// The application pauses: everything in flight is acknowledged without growth, and nothing is sent for
    /// this time.
    pub(crate) fn idle(&mut self, idle: Span, restart: Option<Span>) -> Change {
        let _ = self.drain();
        self.pause(idle, restart)
    }

    /// Everything in flight is acknowledged without growth.
    pub(crate) fn drain(&mut self) -> Change {
        let limit = std::mem::replace(&mut self.limit, Limit::Application);
        let left = self.packets.iter().map(|p| p.left).sum();
        let change = self.ack(left, None);
        self.limit = limit;
        change
    }

    /// Nothing is sent for this time.
    pub(crate) fn pause(&mut self, idle: Span, restart: Option<Span>) -> Change {
        self.wait(idle);
        self.control.on_idle(&self.facts, idle, restart)
    }

    pub(crate) fn pace(&mut self, rate: Rate) {
        self.facts.pacing_on = true;
        self.facts.pacing_rate = Some(rate);
    }
}
