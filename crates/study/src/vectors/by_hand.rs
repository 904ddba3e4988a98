//! Calls that are written by hand, each for a rule that no modelled or drawn case shows: a comparison at exactly
//! its value, an acknowledgement that is selective, a host that knows less.

mod scripts;

pub(super) use scripts::{SCRIPTS, Script};

use super::line;
use serde_json::{Map, Value, json};
use slowstart::control::{Change, Checked, Controller};
use slowstart::registry::AnyController;
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent, Signal};
use std::collections::VecDeque;

/// A host whose calls a script makes. Marks are positions in the data, as in TCP.
pub(super) struct Hand {
    /// What it knows: a script changes what no call does.
    pub(super) f: Facts,
    pub(super) control: Checked<AnyController>,
    /// Each packet is told, also to a startup that does not need it: one that is wrong may.
    pub(super) shows_sent: bool,
    /// When the connection began.
    begun: Instant,
    next: u64,
    upto: u64,
    total: Bytes,
    /// When something was last delivered, and when the newest packet delivered had been sent.
    times: (Instant, Instant),
    flight: VecDeque<Sent>,
    newest: Sent,
    before: Map<String, Value>,
    lines: Vec<Value>,
}

impl Hand {
    pub(super) fn new(control: AnyController, mss: u64, iw: u64) -> Self {
        let mut f = Facts::new(Bytes(mss), Bytes(mss * iw));
        f.supports_pacing = true;
        Self {
            f,
            control: Checked::new(control),
            shows_sent: false,
            begun: Instant::ZERO,
            next: 0,
            upto: 0,
            total: Bytes::ZERO,
            times: (Instant::ZERO, Instant::ZERO),
            flight: VecDeque::new(),
            newest: Sent::default(),
            before: Map::new(),
            lines: Vec::new(),
        }
    }

    pub(super) fn lines(self) -> Vec<Value> {
        self.lines
    }

    /// Goes to this time since the begin of the connection.
    pub(super) fn at(&mut self, t: Span) -> &mut Self {
        self.f.now = self.begun + t;
        self
    }

    /// Goes on by this time.
    pub(super) fn after(&mut self, t: Span) -> &mut Self {
        self.f.now = self.f.now + t;
        self
    }

    fn note(&mut self, event: &str, key: &str, argument: Value, change: Change) {
        let changed = line::changed_facts(&self.f, self.next, &mut self.before);
        self.lines.push(line::of(event, &changed, key, argument, &self.control, &change));
    }

    /// The connection is established, with a sample of the handshake.
    pub(super) fn begin(&mut self, rtt: Span) {
        (self.f.srtt, self.f.min_rtt) = (Some(rtt), Some(rtt));
        self.begin_with(&Handshake::new(Some(rtt)));
    }

    pub(super) fn begin_with(&mut self, hs: &Handshake) {
        self.begun = self.f.now;
        self.times = (self.f.now, self.f.now);
        let change = self.control.on_established(&self.f, hs);
        self.note("established", "handshake", line::handshake(hs), change);
    }

    /// Sends `n` full-sized packets.
    pub(super) fn send(&mut self, n: u64) -> &mut Self {
        (0..n).for_each(|_| self.packet(self.f.mss));
        self
    }

    /// Sends a packet of this size.
    pub(super) fn packet(&mut self, size: Bytes) {
        self.next += size.0;
        self.f.next = SendOrder::new(self.next);
        self.put(size, self.f.next, false);
    }

    /// Sends the newest packet again, as a probe.
    pub(super) fn probe(&mut self) {
        let newest = self.flight.back().copied().unwrap_or(self.newest);
        self.put(newest.bytes, newest.mark, true);
    }

    fn put(&mut self, size: Bytes, mark: SendOrder, retransmission: bool) {
        if self.f.inflight == Bytes::ZERO {
            self.times = (self.f.now, self.f.now);
        }
        self.f.inflight += size;
        self.total += size;
        let sent = Sent {
            mark,
            at: self.f.now,
            bytes: size,
            retransmission,
            sent_total: self.total,
            inflight: self.f.inflight,
            delivered: self.f.delivered,
            delivered_at: self.times.0,
            first_sent_at: self.times.1,
            lost: self.f.lost,
            app_limited: false,
            cwnd: self.control.state().cwnd,
        };
        self.flight.push_back(sent);
        if self.control.needs_on_sent() || self.shows_sent {
            self.control.on_sent(&self.f, &sent);
            self.note("sent", "sent", line::sent(&sent), Change::default());
        }
    }

    /// The oldest packets in flight arrive.
    pub(super) fn ack(&mut self, n: usize) {
        self.ack_as(n, |_| {});
    }

    /// The oldest packets in flight arrive, and the script changes what the ACK says.
    pub(super) fn ack_as(&mut self, n: usize, change: impl FnOnce(&mut Ack)) {
        let taken: Vec<Sent> = self.flight.drain(..n.min(self.flight.len())).collect();
        self.arrive(&taken, true, change);
    }

    /// The newest packets in flight arrive, and one before them is missing.
    pub(super) fn sack(&mut self, n: usize) {
        let taken: Vec<Sent> = self.flight.drain(self.flight.len() - n..).collect();
        self.arrive(&taken, false, |_| {});
    }

    fn arrive(&mut self, taken: &[Sent], cumulative: bool, change: impl FnOnce(&mut Ack)) {
        let prior = self.f.inflight;
        let delivered = taken.iter().fold(Bytes::ZERO, |all, p| all + p.bytes);
        let newest = taken.last().copied().unwrap_or(self.newest);
        self.f.inflight -= delivered;
        self.f.delivered += delivered;
        if cumulative {
            self.upto = self.upto.max(newest.mark.position());
        }
        let mut ack = Ack::new(newest, delivered, prior);
        ack.upto = SendOrder::new(self.upto);
        if !cumulative {
            ack.bytes = Bytes::ZERO;
        }
        ack.rtt = Some(self.f.now.since(newest.at)).filter(|_| !newest.retransmission);
        change(&mut ack);
        if let Some(rtt) = ack.rtt {
            self.f.min_rtt = Some(self.f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            self.f.srtt = Some(self.f.srtt.map_or(rtt, |s| s.scale(7, 8) + rtt / 8));
        }
        if delivered > Bytes::ZERO {
            (self.times, self.newest) = ((self.f.now, newest.at), newest);
        }
        let change = self.control.on_ack(&self.f, &ack);
        self.note("ack", "ack", line::ack(&ack), change);
    }

    /// The oldest packets in flight are lost.
    pub(super) fn lose(&mut self, n: usize, first: bool) {
        let taken = self.flight.drain(..n.min(self.flight.len()));
        let lost = taken.fold(Bytes::ZERO, |all, p| all + p.bytes);
        self.f.inflight -= lost;
        self.f.lost += lost;
        self.f.in_recovery = true;
        self.tell(Congestion::new(Signal::Loss, first, self.newest).losing(lost, 1));
    }

    /// A signal without losses.
    pub(super) fn signal(&mut self, signal: Signal, first: bool) {
        self.tell(Congestion::new(signal, first, self.newest));
    }

    /// The timer expires: all in flight is lost.
    pub(super) fn time_out(&mut self) {
        let lost = std::mem::take(&mut self.f.inflight);
        self.flight.clear();
        self.f.lost += lost;
        self.tell(Congestion::new(Signal::Timeout, true, self.newest).losing(lost, 1));
    }

    fn tell(&mut self, c: Congestion) {
        let change = self.control.on_congestion(&self.f, &c);
        self.note("congestion", "congestion", line::congestion(&c), change);
    }

    pub(super) fn recover(&mut self, retransmitted: Bytes, undone: bool) {
        self.f.in_recovery = false;
        let change = self.control.on_recovered(&self.f, &Recovery::new(retransmitted, undone));
        let argument = json!({"retransmitted": retransmitted.0, "undone": undone});
        self.note("recovered", "recovery", argument, change);
    }

    pub(super) fn timer(&mut self) {
        let change = self.control.on_timer(&self.f);
        self.note("timer", "timer", Value::Null, change);
    }

    /// Nothing was in flight for this time, which the host restarts its window for.
    pub(super) fn idle(&mut self, idle: Span) {
        let restart = Some(Span::millis(300));
        self.after(idle);
        let change = self.control.on_idle(&self.f, idle, restart);
        let argument = json!({"idle_ns": idle.0, "restart_ns": restart.map(|t| t.0)});
        self.note("idle", "idle", argument, change);
    }
}
