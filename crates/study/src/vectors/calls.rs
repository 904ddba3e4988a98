//! Calls that are drawn: no connection, but whatever [`Controller`] permits a host to say. They reach what a
//! modelled path seldom shows: values at the limits of rules, signals at any time, samples that contradict.

use super::line;
use super::random_cases::Draw;
use serde_json::{Map, Value, json};
use slowstart::control::{Change, Checked, Controller};
use slowstart::registry::AnyController;
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{
    Ack, Congestion, Facts, Handshake, HostQueue, Limit, PathMemory, Recovery, Sent, Signal,
};
use std::collections::VecDeque;

/// Events that a case goes on for after slow start ended.
const TAIL: u32 = 40;

/// Lines after which a case ends.
const LINES: usize = 600;

/// What the calls of a case have in common.
#[derive(Clone)]
pub(super) struct Calls {
    draw: Draw,
    pub(super) name: String,
    pub(super) avoidance: &'static str,
    pub(super) mss: u64,
    /// The initial window, in packets.
    pub(super) iw: u64,
    tcp: bool,
    rtt: Span,
    /// By how much samples exceed it.
    queues: [Span; 4],
    /// The times between calls.
    steps: [Span; 4],
    /// Packets that one ACK covers, and that are sent between two.
    covers: [usize; 3],
    sends: [u64; 3],
    limits: [Limit; 4],
    signals: [Signal; 3],
    /// One call in `lossy` is a signal; `marks` sixteenths of the bytes are marked.
    lossy: u64,
    marks: u64,
    /// One episode in `spurious` is spurious; one call in `idle` ends an idle time.
    spurious: u64,
    idle: u64,
    events: u32,
    /// ACKs for which the RTT keeps the queue that it has; none: each has another.
    keeps: u32,
}

/// The first seed of hosts that go on after slow start, with RTTs that step.
const LASTING: u64 = 10_000;

impl Calls {
    pub(super) fn new(seed: u64) -> Self {
        let mut d = Draw::new(seed);
        let us = Span::micros;
        let base = d.of(&[500, 1000, 2000, 10_000, 20_000, 40_000, 60_000, 80_000, 200_000, 400_000]);
        // A clock may be too coarse for a short path.
        let tiny = d.once_in(12).then(|| Span(d.of(&[0, 3, 15, 900])));
        let queue = |d: &mut Draw| {
            let part = d.of(&[0, 0, base / 16, base / 8, base / 5, base / 4, base / 2, base, base * 4]);
            let fixed = d.of(&[0, 1, 500, 1000, 3999, 4000, 4001, 8000, 16_000, 25_000]);
            us(if d.once_in(2) { part } else { fixed })
        };
        let step = |d: &mut Draw| {
            us(d.of(&[0, 0, 1, 8, 100, 999, 1000, 1001, 2000, 2001, base / 32, base / 8, base / 2, base]))
        };
        let limit = |d: &mut Draw| {
            d.of(&[Limit::Window, Limit::Window, Limit::Pacer, Limit::Application, Limit::Peer])
        };
        let kind = d.of(&[None, None, None, Some(Signal::Ecn), Some(Signal::Loss)]);
        let signal = |d: &mut Draw| {
            let any = d.of(&[
                Signal::Loss,
                Signal::Loss,
                Signal::Loss,
                Signal::Ecn,
                Signal::Timeout,
                Signal::LocalStall,
            ]);
            kind.unwrap_or(any)
        };
        let steady = d.once_in(3);
        let mut calls = Self {
            name: format!("calls-{seed}"),
            avoidance: if d.once_in(6) { "cubic" } else { "reno" },
            mss: d.of(&[1, 500, 1000, 1000, 1448, 9000]),
            iw: if d.once_in(20) { 5000 } else { d.of(&[1, 2, 4, 10, 10, 20]) },
            tcp: d.once_in(2),
            rtt: tiny.unwrap_or(us(base)),
            queues: if steady || tiny.is_some() {
                [Span::ZERO, Span::ZERO, Span::ZERO, Span(d.within(0, 1))]
            } else {
                [queue(&mut d), queue(&mut d), queue(&mut d), Span::ZERO]
            },
            steps: [step(&mut d), step(&mut d), step(&mut d), step(&mut d)],
            covers: [1, d.of(&[1, 2, 4]), d.of(&[1, 1, 8, 32])],
            sends: [d.of(&[1, 2, 4, 32]), d.of(&[0, 1, 2, 4, 32]), d.of(&[0, 2, 2, 16])],
            limits: [limit(&mut d), limit(&mut d), Limit::Window, Limit::Window],
            signals: [signal(&mut d), signal(&mut d), kind.unwrap_or(Signal::Loss)],
            lossy: d.of(&[4, 10, 30, 30, 90, 1000]),
            marks: d.of(&[0, 0, 1, 2, 3, 4, 8, 15, 16]),
            spurious: d.of(&[1, 2, 3, 1000]),
            idle: d.of(&[15, 60, 1000, 1000]),
            events: d.within(60, 200) as u32,
            keeps: 0,
            draw: d,
        };
        if seed >= LASTING {
            calls.last();
        }
        calls
    }

    /// Makes the connection last: RTTs step and stay, and slow start begins again after idle times.
    fn last(&mut self) {
        let (d, ms) = (&mut self.draw, Span::millis);
        let rtt = Span::micros(d.of(&[300, 1000, 3000, 10_000, 20_000, 33_000, 50_000, 120_000, 1_200_000]));
        let mut queue = || {
            let part = d.of(&[rtt / 16, rtt / 8, rtt / 4, rtt / 2, rtt]);
            let fixed = d.of(&[ms(1), ms(2), ms(3), ms(4), ms(8), ms(16), ms(1000)]);
            let exact = if d.once_in(2) { part } else { fixed };
            Span((exact.0 + d.of(&[0, 0, 1, 500_000])).saturating_sub(d.of(&[0, 0, 1])))
        };
        self.queues = [Span::ZERO, queue(), queue(), queue()];
        self.rtt = rtt;
        self.keeps = d.of(&[8, 12, 30, 60]);
        self.idle = d.of(&[20, 60, 1000]);
        self.lossy = d.of(&[20, 60, 200, 1000]);
        self.events = 250;
    }

    /// Plays the calls. Events come `times` as often as else; `remembers` is true for a startup with a path memory.
    pub(super) fn play(&self, control: AnyController, times: u32, remembers: bool) -> Vec<Value> {
        let mut d = self.draw.clone();
        let (mss, iw) = (Bytes(self.mss), Bytes(self.mss) * self.iw);
        let mut f = Facts::new(mss, iw);
        f.supports_pacing = !d.once_in(10);
        f.marked = (!d.once_in(8)).then_some(Bytes::ZERO);
        f.unsent = d.once_in(2).then(|| mss * d.of(&[0, 1, self.iw, self.iw + 1, 30, 100, 5000]));
        f.gso_max = mss * d.of(&[0, 0, 2, 40]);
        f.min_window = mss * d.of(&[1, 2]);
        f.unacked = self.tcp.then_some(Bytes::ZERO);
        if d.once_in(5) {
            f.rwnd = mss * d.of(&[2, self.iw, 30, 64]);
        }
        if d.once_in(2) {
            f.nic_rate = Some(Rate(d.of(&[0, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000])));
            f.host_queue =
                Some(HostQueue { used: Bytes::ZERO, limit: mss * d.of(&[0, 1, 10, 100, 1000, 10_000_000]) });
        }
        Host {
            of: self,
            paces: d.once_in(2),
            d,
            // One that uses a memory which it should not needs them.
            shows_sent: self.keeps > 0 && remembers,
            control: Checked::new(control),
            f,
            next: 0,
            order: 0,
            upto: 0,
            total: Bytes::ZERO,
            times: (Instant::ZERO, Instant::ZERO),
            flight: VecDeque::new(),
            newest: Sent::default(),
            episode: None,
            left: self.events * times,
            tail: if times > 1 || self.keeps > 0 { u32::MAX } else { TAIL },
            queue: (Span::ZERO, 0),
            newly_lost: Bytes::ZERO,
            before: Map::new(),
            lines: Vec::new(),
        }
        .run()
    }
}

struct Host<'a> {
    of: &'a Calls,
    d: Draw,
    paces: bool,
    /// Each packet is told, also to a startup that does not need it.
    shows_sent: bool,
    control: Checked<AnyController>,
    f: Facts,
    next: u64,
    order: u64,
    upto: u64,
    total: Bytes,
    /// When the newest packet was delivered, and when that had been sent.
    times: (Instant, Instant),
    flight: VecDeque<Sent>,
    newest: Sent,
    /// Whether the episode that lasts is spurious.
    episode: Option<bool>,
    /// What is lost since the last ACK.
    newly_lost: Bytes,
    /// The queue that RTTs show now, and for how many more ACKs.
    queue: (Span, u32),
    left: u32,
    tail: u32,
    before: Map<String, Value>,
    lines: Vec<Value>,
}

impl Host<'_> {
    fn run(mut self) -> Vec<Value> {
        self.establish();
        if self.of.keeps > 0 && self.d.once_in(5) {
            self.idle();
        }
        while self.left > 0 && self.lines.len() < LINES {
            self.left -= 1;
            self.f.now = self.f.now + self.d.of(&self.of.steps);
            if self.d.once_in(150) {
                self.f.mss += Bytes(100);
            }
            self.look();
            if self.control.state().wake.is_some_and(|t| t <= self.f.now) && self.d.once_in(2) {
                let change = self.control.on_timer(&self.f);
                self.note("timer", "timer", Value::Null, change);
            }
            self.send();
            self.look();
            if self.d.once_in(self.of.idle) {
                self.idle();
            } else if self.d.once_in(self.of.lossy) {
                self.signal();
            } else {
                if self.episode.is_some() && self.d.once_in(6) {
                    self.recover();
                }
                self.acknowledge();
            }
        }
        self.lines
    }

    fn establish(&mut self) {
        let (d, c) = (&mut self.d, self.of);
        if c.keeps > 0 {
            // The host's clock is older than the connection, and the handshake of QUIC is data.
            self.f.now = Instant::ZERO + Span::millis(d.of(&[0, 3_500, 77_777]));
            let counts = !c.tcp && d.once_in(2);
            self.f.delivered = Bytes(if counts { d.within(1, 9000) } else { 0 });
            self.f.lost = Bytes(if counts && d.once_in(2) { d.within(1, 3000) } else { 0 });
            self.times = (self.f.now, self.f.now);
        }
        let near = |d: &mut Draw| c.rtt * d.of(&[1, 2, 2, 10, 11]) / d.of(&[1, 1, 2, 10, 20]);
        let mut hs = Handshake::new((!d.once_in(8)).then_some(c.rtt));
        if d.once_in(5) {
            (hs.syn_losses, hs.spurious) = (d.within(1, 3) as u8, d.once_in(2));
        }
        let rate = |d: &mut Draw| Rate(d.of(&[0, 1_000_000, 5_000_000, 20_000_000, 100_000_000]));
        hs.granted = d.once_in(2).then(|| rate(d));
        hs.remembered = d.once_in(2).then(|| {
            let cwnd = Bytes(c.mss) * d.of(&[1, c.iw, c.iw + 1, c.iw * 4, c.iw * 8, 100, 1000]);
            PathMemory { cwnd, rtt: near(d), rate: rate(d) }
        });
        if let Some(rtt) = hs.rtt.filter(|_| d.once_in(2)) {
            // An SRTT may be of an earlier connection.
            let seen = c.keeps == 0 || !d.once_in(3);
            (self.f.srtt, self.f.min_rtt) = (Some(rtt), seen.then_some(rtt));
        }
        let change = self.control.on_established(&self.f, &hs);
        self.note("established", "handshake", line::handshake(&hs), change);
    }

    /// What the host sees of itself.
    fn look(&mut self) {
        let state = *self.control.state();
        self.f.pacing_rate =
            self.f.srtt.filter(|_| self.paces).and_then(|rtt| Rate::new(state.cwnd * 2, rtt));
        self.f.pacing_on = self.f.pacing_rate.is_some();
        if let Some(q) = &mut self.f.host_queue {
            q.used = q.limit.scale(self.d.of(&[0, 0, 1, 5, 8, 9, 10]), 10);
        }
        self.f.unacked = self.f.unacked.map(|_| Bytes(self.next) - Bytes(self.upto));
    }

    fn note(&mut self, event: &str, key: &str, argument: Value, change: Change) {
        let changed = line::changed_facts(&self.f, self.next, &mut self.before);
        self.lines.push(line::of(event, &changed, key, argument, &self.control, &change));
        if change.restarted || change.resumed {
            self.left = self.left.max(TAIL);
        } else if change.exited.is_some() {
            self.left = self.left.min(self.tail);
        }
    }

    fn send(&mut self) {
        for _ in 0..self.d.of(&self.of.sends) {
            let full = self.f.mss;
            let size = if self.d.once_in(12) { Bytes(self.d.within(1, full.0)) } else { full };
            let size = size.min(self.f.unsent.unwrap_or(Bytes::MAX));
            let window = self.control.state().cwnd.min(self.f.rwnd);
            if size == Bytes::ZERO || self.f.inflight + size > window {
                return;
            }
            let again = self.episode.is_some() && self.d.once_in(3);
            self.order += 1;
            if !again {
                self.next = if self.of.tcp { self.next + size.0 } else { self.order };
                self.f.next = SendOrder::new(self.next);
                self.f.unsent = self.f.unsent.map(|u| u - size);
            }
            if self.f.inflight == Bytes::ZERO {
                self.times = (self.f.now, self.f.now);
            }
            self.f.inflight += size;
            self.total += size;
            self.look();
            let state = Sent {
                mark: if again { self.newest.mark } else { self.f.next },
                at: self.f.now,
                bytes: size,
                retransmission: again,
                sent_total: self.total,
                inflight: self.f.inflight,
                delivered: self.f.delivered,
                delivered_at: self.times.0,
                first_sent_at: self.times.1,
                lost: self.f.lost,
                app_limited: self.d.once_in(10),
                cwnd: self.control.state().cwnd,
            };
            self.flight.push_back(state);
            if self.control.needs_on_sent() || self.shows_sent {
                self.control.on_sent(&self.f, &state);
                self.note("sent", "sent", line::sent(&state), Change::default());
            }
        }
    }

    /// Takes packets out of the flight. Returns their bytes and the newest.
    fn take(&mut self, n: usize) -> (Bytes, Option<Sent>) {
        let taken: Vec<Sent> = self.flight.drain(..n.min(self.flight.len())).collect();
        let bytes: Bytes = taken.iter().fold(Bytes::ZERO, |all, p| all + p.bytes);
        self.f.inflight -= bytes;
        (bytes, taken.last().copied())
    }

    fn acknowledge(&mut self) {
        let prior = self.f.inflight;
        let n = if self.d.once_in(25) { 0 } else { self.d.of(&self.of.covers) };
        let (delivered, newest) = self.take(n);
        let newest = newest.unwrap_or(self.newest);
        self.f.delivered += delivered;
        let share = self.d.of(&[0, self.of.marks, self.of.marks, 16 * u64::from(self.of.marks > 0)]);
        self.f.marked = self.f.marked.map(|m| m + delivered.scale(share, 16));
        self.times = (self.f.now, newest.at);
        if newest.mark >= self.newest.mark {
            self.newest = newest;
        }
        let rtt = (!newest.retransmission && !self.d.once_in(15)).then(|| self.of.rtt + self.queue());
        if let Some(rtt) = rtt {
            self.f.min_rtt = Some(self.f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            self.f.srtt = Some(self.f.srtt.map_or(rtt, |s| s.scale(7, 8) + rtt / 8));
        }
        let held = self.of.tcp && self.episode.is_some() && self.d.once_in(2);
        if !held {
            self.upto = self.upto.max(self.newest.mark.position());
        }
        let mut ack = Ack::new(newest, delivered, prior);
        ack.newly_lost = std::mem::take(&mut self.newly_lost);
        (ack.rtt, ack.limit, ack.upto) = (rtt, self.d.of(&self.of.limits), SendOrder::new(self.upto));
        if held || self.d.once_in(15) {
            ack.bytes = Bytes::ZERO;
        }
        self.look();
        let change = self.control.on_ack(&self.f, &ack);
        self.note("ack", "ack", line::ack(&ack), change);
    }

    /// By how much the next sample exceeds the RTT.
    fn queue(&mut self) -> Span {
        if self.queue.1 == 0 {
            self.queue = (self.d.of(&self.of.queues), self.of.keeps.max(1));
        }
        self.queue.1 -= 1;
        self.queue.0
    }

    fn signal(&mut self) {
        let signal = self.d.of(&self.of.signals);
        let n = match signal {
            Signal::Loss => self.d.of(&[1, 1, 2, 3, 20]),
            Signal::Timeout => usize::MAX,
            _ => 0,
        };
        let (lost, _) = self.take(n);
        self.f.lost += lost;
        if self.of.keeps > 0 {
            self.newly_lost += lost;
        }
        let first = self.episode.is_none() || signal == Signal::Timeout;
        if first {
            self.episode = Some(self.d.once_in(self.of.spurious));
        }
        self.f.in_recovery = signal != Signal::Timeout;
        let ranges = if lost > Bytes::ZERO { self.d.of(&[1, 1, 2, 6, 8]) } else { 0 };
        let c = Congestion::new(signal, first, self.newest).losing(lost, ranges);
        let change = self.control.on_congestion(&self.f, &c);
        self.note("congestion", "congestion", line::congestion(&c), change);
    }

    fn recover(&mut self) {
        let undone = self.episode.take() == Some(true);
        self.f.in_recovery = false;
        let r = Recovery::new(self.f.mss * self.d.of(&[0, 1, 2, 5, 30]), undone);
        let change = self.control.on_recovered(&self.f, &r);
        let argument = json!({"retransmitted": r.retransmitted.0, "undone": undone});
        self.note("recovered", "recovery", argument, change);
    }

    fn idle(&mut self) {
        let (delivered, newest) = self.take(usize::MAX);
        self.f.delivered += delivered;
        self.newest = newest.unwrap_or(self.newest);
        let idle = (self.of.rtt * self.d.of(&[1, 2, 10, 100])).max(Span(1));
        let long = self.of.keeps > 0 && self.d.once_in(4);
        let idle = if long { Span::secs(11) } else { idle };
        self.f.now = self.f.now + idle;
        let restart = self.d.once_in(2).then_some(Span::millis(300));
        self.look();
        let change = self.control.on_idle(&self.f, idle, restart);
        let argument = json!({"idle_ns": idle.0, "restart_ns": restart.map(|t| t.0)});
        self.note("idle", "idle", argument, change);
    }
}
