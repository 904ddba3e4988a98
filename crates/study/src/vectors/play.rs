//! Plays a case: a sender, a bottleneck and a receiver of a few lines each, and a note of every call.

use super::case::Case;
use super::line;
use serde_json::{Map, Value, json};
use slowstart::control::{Change, Checked, Controller};
use slowstart::registry::AnyController;
use slowstart::step::Pace;
use slowstart::units::{Bytes, Gain, Instant, Rate, SendOrder, Span};
use slowstart::view::{
    Ack, Congestion, Facts, Handshake, HostQueue, Limit, PathMemory, Recovery, Sent, Signal,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A packet in flight.
struct Packet {
    sent: Sent,
    limit: Limit,
    /// When its ACK could arrive; `None` if it was dropped.
    arrival: Option<Instant>,
    marked: bool,
}

pub(super) struct Play<'a> {
    case: Case<'a>,
    control: Checked<AnyController>,
    f: Facts,
    /// The newest mark sent.
    next: u64,
    before: Map<String, Value>,
    /// By order of sending, from 1.
    flight: BTreeMap<u64, Packet>,
    order: u64,
    /// Of what was not dropped, by the time at which its ACK could arrive.
    arrivals: BTreeSet<(Instant, u64)>,
    /// Data to be sent again, by mark and size.
    again: VecDeque<(SendOrder, Bytes)>,
    /// The most in flight since the window was last reduced; at first the initial window.
    largest_flight: Bytes,
    /// When the bottleneck, the interface and the pacer are free.
    free: Instant,
    nic_free: Instant,
    paced: Instant,
    total: Bytes,
    /// In TCP: the cumulative acknowledgement, and what arrived beyond it, by begin.
    upto: u64,
    beyond: BTreeMap<u64, u64>,
    delivered_at: Instant,
    first_sent_at: Instant,
    newest: (u64, Sent),
    /// The last order of sending of the loss episode that lasts.
    episode: Option<u64>,
    retransmitted: Bytes,
    acks: u32,
    /// The ACK at which the episode proves spurious.
    undo: Option<u32>,
    /// ACKs that the case goes on for after slow start ended.
    tail: u32,
    /// The ACK after which the case ends.
    end: u32,
    lines: Vec<Value>,
}

impl<'a> Play<'a> {
    pub(super) fn new(case: &Case<'a>, control: AnyController, tail: u32) -> Self {
        let mss = Bytes(case.mss);
        let mut f = Facts::new(mss, mss * case.iw);
        f.supports_pacing = case.can_pace;
        f.marked = (!case.unmarked).then_some(Bytes::ZERO);
        f.unsent = case.unsent.map(|n| mss * n);
        f.gso_max = Bytes(case.paces.unwrap_or(0));
        f.nic_rate = case.nic.map(|(rate, _)| rate);
        f.host_queue = case.nic.map(|(_, n)| HostQueue { used: Bytes::ZERO, limit: mss * n });
        if !case.tcp {
            f.min_window = mss * 2;
        }
        f.unacked = case.tcp.then_some(Bytes::ZERO);
        if let Some(n) = case.peer {
            f.rwnd = mss * n;
        }
        Self {
            case: *case,
            control: Checked::new(control),
            f,
            next: 0,
            before: Map::new(),
            flight: BTreeMap::new(),
            order: 0,
            arrivals: BTreeSet::new(),
            again: VecDeque::new(),
            largest_flight: mss * case.iw,
            free: Instant::ZERO,
            nic_free: Instant::ZERO,
            paced: Instant::ZERO,
            total: Bytes::ZERO,
            upto: 0,
            beyond: BTreeMap::new(),
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            newest: (0, Sent::default()),
            episode: None,
            retransmitted: Bytes::ZERO,
            acks: 0,
            undo: None,
            tail,
            end: case.acks,
            lines: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Vec<Value> {
        self.establish();
        while self.acks < self.end {
            let paced = self.send();
            let wake = self.control.state().wake;
            let ack = self.next_ack();
            let others =
                ack.as_ref().map_or(Instant::NEVER, |(at, _)| *at).min(paced.unwrap_or(Instant::NEVER));
            if let Some(at) = wake.filter(|at| *at <= others) {
                self.advance(at);
                let change = self.control.on_timer(&self.f);
                self.note("timer", "timer", Value::Null, change);
            } else if let Some(at) = paced.filter(|at| *at <= others) {
                self.f.now = self.f.now.max(at);
            } else if let Some((at, which)) = ack {
                self.acknowledge(at, &which);
                self.special();
            } else if self.flight.is_empty() {
                break;
            } else {
                self.time_out();
            }
        }
        self.lines
    }

    /// Moves the time, and with it what the host knows of its interface and its pacer.
    fn advance(&mut self, to: Instant) {
        self.f.now = self.f.now.max(to);
        if let (Some((rate, _)), Some(q)) = (self.case.nic, &mut self.f.host_queue) {
            q.used = rate.over(self.nic_free.since(self.f.now)).min(q.limit);
        }
        self.f.unacked = self.f.unacked.map(|_| Bytes(self.next) - Bytes(self.upto));
        self.f.pacing_rate = self.pace();
        self.f.pacing_on = self.f.pacing_rate.is_some();
    }

    /// The rate at which the host paces.
    fn pace(&self) -> Option<Rate> {
        let state = self.control.state();
        let by = |gain: Gain| Some(Rate::new(state.cwnd, self.f.srtt?)? * gain);
        match state.pace.filter(|_| self.case.can_pace) {
            Some(Pace::Rate(rate)) => Some(rate),
            Some(Pace::Gain(gain)) => by(gain),
            Some(_) => None,
            None => self.case.paces.and_then(|_| by(Gain(2048))),
        }
    }

    fn note(&mut self, event: &str, key: &str, argument: Value, change: Change) {
        let changed = line::changed_facts(&self.f, self.next, &mut self.before);
        self.lines.push(line::of(event, &changed, key, argument, &self.control, &change));
        if change.exited.is_some() {
            self.end = self.end.min(self.last_special().max(self.acks).saturating_add(self.tail));
        }
        if change.resumed || change.restarted {
            self.end = self.case.acks;
        }
        if let Some(back) = change.resend {
            let mark = SendOrder::new(self.next.saturating_sub(back.0));
            let known = self.flight.values().find(|p| p.sent.mark == mark && !p.sent.retransmission);
            if let (true, Some(p)) = (self.case.tcp, known) {
                self.again.push_back((mark, p.sent.bytes));
            }
        }
    }

    /// The ACK of the last thing that goes wrong.
    fn last_special(&self) -> u32 {
        let c = &self.case;
        let all = [c.pause.map(|p| p.0), c.timeout, c.stall, c.grown.map(|g| g.0)];
        all.into_iter().flatten().max().unwrap_or(0)
    }

    fn establish(&mut self) {
        let c = &self.case;
        let mut hs = Handshake::new((c.syns.0 == 0 || c.syns.1).then_some(c.rtt));
        (hs.syn_losses, hs.spurious) = c.syns;
        hs.granted = c.granted;
        hs.remembered = c.remembered.map(|(n, rtt, rate)| PathMemory { cwnd: Bytes(c.mss) * n, rtt, rate });
        let change = self.control.on_established(&self.f, &hs);
        self.note("established", "handshake", line::handshake(&hs), change);
    }

    /// What bounds the window beside the controller's.
    fn bound(&self) -> (Bytes, Limit) {
        let cwnd = self.control.state().cwnd;
        let little = self.case.little.iter().find(|l| (l.0..l.1).contains(&self.acks));
        let app = little.map_or(Bytes::MAX, |l| self.f.mss * l.2);
        if app < cwnd.min(self.f.rwnd) {
            (app, Limit::Application)
        } else if self.f.rwnd < cwnd {
            (self.f.rwnd, Limit::Peer)
        } else {
            (cwnd, Limit::Window)
        }
    }

    /// True if the application has no more before everything is acknowledged.
    fn has_sent_its_turn(&self) -> bool {
        let mut due = 0;
        // The turn that lasts is the first whose end was not sent, or was sent and is in flight.
        for n in self.case.turns {
            due += n;
            if self.order < due || self.f.inflight > Bytes::ZERO && self.order == due {
                return self.order == due;
            }
        }
        !self.case.turns.is_empty()
    }

    /// Sends what window, application and pacer permit. Returns when the pacer permits the next packet.
    fn send(&mut self) -> Option<Instant> {
        loop {
            self.advance(self.f.now);
            let (window, mut limit) = self.bound();
            let short = self.case.short.filter(|_| (self.order + 1).is_multiple_of(3));
            let size = short.map_or(self.f.mss, Bytes).min(self.f.unsent.unwrap_or(Bytes::MAX));
            let (again, size) = self.again.front().map_or((None, size), |(m, b)| (Some(*m), *b));
            if size == Bytes::ZERO || self.f.inflight + size > window || self.has_sent_its_turn() {
                return None;
            }
            if let Some(rate) = self.f.pacing_rate {
                if self.paced > self.f.now + rate.time_for(self.f.gso_max) {
                    return Some(self.paced - rate.time_for(self.f.gso_max));
                }
                self.paced = self.paced.max(self.f.now) + rate.time_for(size);
                if limit == Limit::Window && self.f.inflight + size * 2 <= window {
                    limit = Limit::Pacer;
                }
            }
            self.again.pop_front();
            self.send_packet(size, again, limit);
        }
    }

    fn send_packet(&mut self, size: Bytes, again: Option<SendOrder>, limit: Limit) {
        self.order += 1;
        if again.is_none() {
            self.next = if self.case.tcp { self.next + size.0 } else { self.order };
            self.f.next = SendOrder::new(self.next);
            self.f.unsent = self.f.unsent.map(|u| u - size);
        } else {
            self.retransmitted += size;
        }
        if self.f.inflight == Bytes::ZERO {
            (self.delivered_at, self.first_sent_at) = (self.f.now, self.f.now);
        }
        self.f.inflight += size;
        self.largest_flight = self.largest_flight.max(self.f.inflight);
        self.total += size;
        self.f.unacked = self.f.unacked.map(|_| Bytes(self.next) - Bytes(self.upto));
        let packet = Sent {
            mark: again.unwrap_or(self.f.next),
            at: self.f.now,
            bytes: size,
            retransmission: again.is_some(),
            ..Sent::default()
        };
        let state = Sent {
            sent_total: self.total,
            inflight: self.f.inflight,
            delivered: self.f.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.f.lost,
            app_limited: limit == Limit::Application,
            cwnd: self.control.state().cwnd,
            ..packet
        };
        let sent = if self.control.needs_delivery_state() { state } else { packet };
        let (arrival, marked) = self.cross(size);
        if let Some(at) = arrival {
            self.arrivals.insert((at, self.order));
        }
        self.flight.insert(self.order, Packet { sent, limit, arrival, marked });
        if self.control.needs_on_sent() {
            self.control.on_sent(&self.f, &sent);
            self.note("sent", "sent", line::sent(&sent), Change::default());
        }
    }

    /// Takes a packet over the interface and the bottleneck. Returns when its ACK could arrive, unless it is
    /// dropped, and whether it is marked.
    fn cross(&mut self, size: Bytes) -> (Option<Instant>, bool) {
        let c = &self.case;
        let mut at = self.f.now;
        if let Some((rate, _)) = c.nic {
            self.nic_free = self.nic_free.max(at) + rate.time_for(size);
            at = self.nic_free;
        }
        let mut waiting = 0;
        let since = self.f.now.since(Instant::ZERO);
        let other = c.rates.iter().rev().find(|(from, _)| since >= *from).map(|r| r.1);
        if let Some(rate) = other.or(c.rate) {
            let begins = self.free.max(at);
            waiting = rate.over(begins.since(at)).units(Bytes(c.mss));
            at = begins + rate.time_for(size);
        }
        let marked = c.marks.is_some_and(|m| waiting > m);
        if waiting >= c.queue || c.drops.contains(&self.order) {
            return (None, marked);
        }
        self.free = at;
        let delay = c.delays.iter().rev().find(|(from, _)| since >= *from).map_or(Span::ZERO, |d| d.1);
        let late = c.late.filter(|(n, _)| self.order.is_multiple_of(*n)).map_or(Span::ZERO, |l| l.1);
        (Some(at + c.rtt + delay + late), marked)
    }

    /// The next ACK: when it arrives, and the packets that it covers.
    fn next_ack(&self) -> Option<(Instant, Vec<u64>)> {
        let slot = |at: Instant| self.case.slot.map_or(at, |s| Instant(at.0.div_ceil(s.0) * s.0));
        let (first, _) = *self.arrivals.first()?;
        if self.case.merged {
            let whole = self.arrivals.iter().take_while(|(at, _)| slot(*at) == slot(first));
            return Some((slot(first), whole.map(|(_, n)| *n).collect()));
        }
        let until = first + Span::millis(25);
        let few = self.arrivals.iter().take(self.case.every).take_while(|(at, _)| *at <= until);
        let few: Vec<(Instant, u64)> = few.copied().collect();
        let whole = few.len() == self.case.every;
        let at = few.last().filter(|_| whole).map_or(until, |(at, _)| *at);
        Some((slot(at), few.into_iter().map(|(_, n)| n).collect()))
    }

    /// An ACK for these packets arrives.
    fn acknowledge(&mut self, at: Instant, which: &[u64]) {
        self.acks += 1;
        let prior = self.f.inflight;
        self.f.now = self.f.now.max(at);
        let mut delivered = Bytes::ZERO;
        let mut newest: Option<(u64, Packet)> = None;
        let mut marks = Bytes::ZERO;
        for n in which {
            let Some(p) = self.flight.remove(n) else { continue };
            self.arrivals.remove(&(p.arrival.unwrap_or(Instant::NEVER), *n));
            delivered += p.sent.bytes;
            marks += if p.marked { p.sent.bytes } else { Bytes::ZERO };
            self.beyond.insert(
                p.sent.mark.position() - p.sent.bytes.0.min(p.sent.mark.position()),
                p.sent.mark.position(),
            );
            if newest.as_ref().is_none_or(|(m, _)| n > m) {
                newest = Some((*n, p));
            }
        }
        let Some((order, p)) = newest else { return };
        self.f.inflight -= delivered;
        self.f.delivered += delivered;
        (self.delivered_at, self.first_sent_at) = (self.f.now, p.sent.at);
        if order > self.newest.0 {
            self.newest = (order, p.sent);
        }
        let rtt = (!p.sent.retransmission).then(|| self.f.now.since(p.sent.at));
        if let Some(rtt) = rtt {
            self.f.min_rtt = Some(self.f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            self.f.srtt = Some(self.f.srtt.map_or(rtt, |s| s.scale(7, 8) + rtt / 8));
        }
        self.f.marked = self.f.marked.map(|m| m + marks);
        let advanced = self.advance_upto(order);
        if self.episode.is_some_and(|end| order > end) {
            self.recovered(false);
        }
        let (lost, ranges) = self.find_lost();
        self.advance(self.f.now);
        if lost > Bytes::ZERO {
            self.congestion(Signal::Loss, lost, ranges);
            self.undo = self.undo.or(self.case.spurious.then_some(self.acks + 5));
        } else if marks > Bytes::ZERO && self.episode.is_none() {
            self.congestion(Signal::Ecn, Bytes::ZERO, 0);
        }
        let mut ack = Ack::new(p.sent, delivered, prior);
        (ack.newly_lost, ack.rtt, ack.limit) = (lost, rtt, p.limit);
        ack.upto = SendOrder::new(self.upto);
        if self.case.rate_limited {
            let may_grow = self.control.state().cwnd < self.largest_flight * 2;
            ack.limit = if may_grow { Limit::Window } else { Limit::Application };
        }
        if !advanced {
            ack.bytes = Bytes::ZERO;
        }
        let change = self.control.on_ack(&self.f, &ack);
        self.note("ack", "ack", line::ack(&ack), change);
    }

    /// How far acknowledgements have advanced. Returns whether the ACK earns growth.
    fn advance_upto(&mut self, order: u64) -> bool {
        if !self.case.tcp {
            self.upto = self.upto.max(order);
            return true;
        }
        let before = self.upto;
        while let Some(end) = self.beyond.remove(&self.upto) {
            self.upto = self.upto.max(end);
        }
        self.upto > before
    }

    /// Packets are lost when three that were sent later have arrived (RFC 9002 §6.1.1). Returns their bytes, and
    /// how many ranges of packets sent one after another they are.
    fn find_lost(&mut self) -> (Bytes, u32) {
        let newest = self.newest.0;
        let (mut bytes, mut ranges, mut last) = (Bytes::ZERO, 0, None);
        while let Some(first) = self.flight.first_entry().filter(|e| e.key() + 3 <= newest) {
            let (n, p) = (*first.key(), first.remove());
            self.arrivals.remove(&(p.arrival.unwrap_or(Instant::NEVER), n));
            bytes += p.sent.bytes;
            ranges += u32::from(last.is_none_or(|l| n > l + 1));
            last = Some(n);
            if self.case.tcp {
                self.again.push_back((p.sent.mark, p.sent.bytes));
            }
        }
        self.f.inflight -= bytes;
        self.f.lost += bytes;
        (bytes, ranges)
    }

    fn congestion(&mut self, signal: Signal, lost: Bytes, ranges: u32) {
        let first = self.episode.is_none();
        if first {
            self.retransmitted = Bytes::ZERO;
        }
        self.episode.get_or_insert(self.order);
        self.f.in_recovery = signal != Signal::Timeout;
        let c = Congestion::new(signal, first, self.newest.1).losing(lost, ranges);
        let change = self.control.on_congestion(&self.f, &c);
        self.note("congestion", "congestion", line::congestion(&c), change);
    }

    fn recovered(&mut self, undone: bool) {
        self.episode = None;
        self.f.in_recovery = false;
        let r = Recovery::new(self.retransmitted, undone);
        let change = self.control.on_recovered(&self.f, &r);
        let argument = json!({"retransmitted": r.retransmitted.0, "undone": undone});
        self.note("recovered", "recovery", argument, change);
    }

    /// What the case has after this ACK.
    fn special(&mut self) {
        let (c, n) = (self.case, self.acks);
        if self.undo.is_some_and(|at| n >= at) {
            self.undo = None;
            self.recovered(true);
        }
        if let Some((_, size)) = c.grown.filter(|g| g.0 == n) {
            self.f.mss = Bytes(size);
            self.f.min_window = self.f.mss * if c.tcp { 1 } else { 2 };
        }
        if c.timeout == Some(n) {
            self.time_out();
        }
        if c.stall == Some(n) {
            self.congestion(Signal::LocalStall, Bytes::ZERO, 0);
        }
        if let Some((_, idle, restart)) = c.pause.filter(|p| p.0 == n) {
            self.pause(idle, restart);
        }
    }

    /// All in flight is lost, and the retransmission timer expires.
    fn time_out(&mut self) {
        let lost = std::mem::take(&mut self.f.inflight);
        let flight = std::mem::take(&mut self.flight);
        if self.case.tcp {
            self.again.extend(flight.values().map(|p| (p.sent.mark, p.sent.bytes)));
        }
        self.arrivals.clear();
        self.f.lost += lost;
        let at = self.f.now + Span::millis(300);
        (self.free, self.paced) = (at, at);
        self.advance(at);
        self.congestion(Signal::Timeout, lost, u32::from(lost.0 > 0));
    }

    /// All in flight is acknowledged, the application pauses, and begins again.
    fn pause(&mut self, idle: Span, restart: bool) {
        while let Some((at, which)) = self.next_ack() {
            self.acknowledge(at, &which);
        }
        if self.f.inflight > Bytes::ZERO {
            return;
        }
        self.advance(self.f.now + idle);
        let restart = restart.then_some(Span::millis(300));
        let change = self.control.on_idle(&self.f, idle, restart);
        let argument = json!({"idle_ns": idle.0, "restart_ns": restart.map(|t| t.0)});
        self.note("idle", "idle", argument, change);
    }
}
