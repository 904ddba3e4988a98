//! The bare loop: the least that a packet, its ACK included, costs with what every simulator of TCP must do:
//! a queue, two delay lines, a receiver with delayed ACKs and SACK blocks, a scoreboard, CUBIC, RACK, and a
//! timeout. No handshake, pacing, tail loss probe, PRR, undo, right-sizing, or measures. `main.rs` beside it
//! prints the engine's cost beside it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const MS: u64 = 1_000_000;
const HEADERS_AND_PAYLOAD: u64 = 1500;

/// What a loop simulates.
#[derive(Copy, Clone)]
pub(crate) struct Setup {
    /// Of the link, bit/s.
    pub(crate) rate: u64,
    /// Without queue, nanoseconds.
    pub(crate) rtt: u64,
    /// Of the queue, packets.
    pub(crate) queue: u64,
    /// Number of flows; flow i begins after i ms.
    pub(crate) flows: usize,
    /// Seconds that are simulated.
    pub(crate) seconds: u64,
}

#[derive(Copy, Clone, Default)]
struct Record {
    sent: u64,
    sacked: bool,
    lost: bool,
    again: bool,
    /// It has been sent more than once.
    ever: bool,
}

#[derive(Copy, Clone, Default)]
struct Ack {
    upto: u64,
    blocks: [(u64, u64); 3],
}

/// A delay line: items arrive in the order in which they were pushed.
struct Line<T>(VecDeque<(u64, T)>);

#[derive(Copy, Clone)]
enum Due {
    Data,
    Ack,
    Timer,
}

/// Pending events: one for each line that is not empty, one timer a flow.
#[derive(Default)]
struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, u32, u8)>>,
    order: u64,
}

impl Events {
    fn push(&mut self, at: u64, flow: usize, due: Due) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, flow as u32, due as u8)));
    }
}

/// The link with its queue.
struct Link {
    free: u64,
    service: u64,
    most: u64,
    packets: u64,
}

impl Link {
    /// When a packet has left; `None` if it is dropped.
    fn send(&mut self, now: u64) -> Option<u64> {
        self.packets += 1;
        if self.free > now + self.most {
            return None;
        }
        self.free = self.free.max(now) + self.service;
        Some(self.free)
    }
}

struct Flow {
    data: Line<u64>,
    acks: Line<Ack>,
    // Sender, in packets.
    una: u64,
    records: VecDeque<Record>,
    order: VecDeque<(u64, u64)>,
    resend: VecDeque<u64>,
    /// The blocks of the last ACK.
    known: [(u64, u64); 3],
    sacked: u64,
    lost: u64,
    again: u64,
    cwnd: f64,
    threshold: f64,
    recover: Option<u64>,
    least: u64,
    smooth: u64,
    newest: (u64, u64),
    newest_rtt: u64,
    plateau: f64,
    epoch: u64,
    deadline: u64,
    pending: bool,
    // Receiver.
    next: u64,
    /// The packets from `next` on that have arrived, and the newest blocks of them.
    arrived: VecDeque<bool>,
    held: Vec<(u64, u64)>,
    unacked: u32,
}

impl Flow {
    fn new() -> Self {
        Self {
            data: Line(VecDeque::new()),
            acks: Line(VecDeque::new()),
            una: 0,
            records: VecDeque::new(),
            order: VecDeque::new(),
            resend: VecDeque::new(),
            known: [(0, 0); 3],
            sacked: 0,
            lost: 0,
            again: 0,
            cwnd: 10.0,
            threshold: f64::MAX,
            recover: None,
            least: u64::MAX,
            smooth: 0,
            newest: (0, 0),
            newest_rtt: 0,
            plateau: 0.0,
            epoch: 0,
            deadline: 0,
            pending: false,
            next: 0,
            arrived: VecDeque::new(),
            held: Vec::new(),
            unacked: 0,
        }
    }

    fn inflight(&self) -> u64 {
        self.records.len() as u64 + self.again - self.sacked - self.lost
    }

    /// A packet beyond a hole extends one of the newest blocks, or is one.
    fn hold(&mut self, number: u64) {
        let mut block = (number, number + 1);
        self.held.retain(|b| {
            let joins = b.1 == block.0 || b.0 == block.1;
            if joins {
                block = (block.0.min(b.0), block.1.max(b.1));
            }
            !joins
        });
        self.held.insert(0, block);
        self.held.truncate(4);
    }

    /// A packet arrives; returns the ACK to send.
    fn receive(&mut self, number: u64) -> Option<Ack> {
        self.unacked += 1;
        let mut at_once = true;
        if number == self.next {
            at_once = !self.arrived.is_empty();
            self.arrived.pop_front();
            self.next += 1;
            while self.arrived.pop_front_if(|arrived| *arrived).is_some() {
                self.next += 1;
            }
            let next = self.next;
            self.held.retain(|b| b.1 > next);
        } else if number > self.next {
            let i = (number - self.next) as usize;
            self.arrived.resize(self.arrived.len().max(i + 1), false);
            if !std::mem::replace(&mut self.arrived[i], true) {
                self.hold(number);
            }
        }
        if !at_once && self.unacked < 2 {
            return None;
        }
        self.unacked = 0;
        let mut ack = Ack { upto: self.next, ..Ack::default() };
        for (block, held) in ack.blocks.iter_mut().zip(&self.held) {
            *block = *held;
        }
        Some(ack)
    }

    fn deliver(&mut self, now: u64, number: u64, r: Record) {
        let rtt = now - r.sent;
        if !r.ever {
            self.least = self.least.min(rtt);
            self.smooth = if self.smooth == 0 { rtt } else { self.smooth - self.smooth / 8 + rtt / 8 };
        }
        // A shorter time than any cannot be that of the copy.
        if (!r.ever || rtt >= self.least) && (r.sent, number) > self.newest {
            (self.newest, self.newest_rtt) = ((r.sent, number), rtt);
        }
        self.lost -= u64::from(r.lost);
        self.again -= u64::from(r.again);
    }

    fn on_ack(&mut self, now: u64, ack: &Ack) {
        let before = self.una + self.sacked;
        while self.una < ack.upto {
            let Some(r) = self.records.pop_front() else { break };
            if r.sacked {
                self.sacked -= 1;
            } else {
                self.deliver(now, self.una, r);
            }
            self.una += 1;
        }
        for (from, to) in ack.blocks {
            let mut number = from.max(self.una);
            while number < to {
                if let Some(known) = self.known.iter().find(|b| b.0 <= number && number < b.1) {
                    number = known.1;
                    continue;
                }
                let i = (number - self.una) as usize;
                let r = self.records[i];
                if !r.sacked {
                    self.deliver(now, number, r);
                    self.records[i] = Record { sent: r.sent, sacked: true, ..Record::default() };
                    self.sacked += 1;
                }
                number += 1;
            }
        }
        self.known = ack.blocks;
        let news = self.una + self.sacked - before;
        self.recover = self.recover.filter(|upto| self.una < *upto);
        if self.find_lost(now) && self.recover.is_none() {
            self.reduce(now);
        } else if self.recover.is_none() {
            self.grow(now, news);
        }
        self.deadline = now + 2 * self.smooth + 200 * MS;
    }

    /// RACK: what was sent before the newest delivered, and is overdue, is lost.
    fn find_lost(&mut self, now: u64) -> bool {
        let window = if self.sacked >= 3 { 0 } else { self.least / 4 };
        let mut found = false;
        while let Some(&(number, sent)) = self.order.front() {
            let i = number.wrapping_sub(self.una) as usize;
            let live = number >= self.una && self.records[i].sent == sent && !self.records[i].sacked;
            if live {
                if (sent, number) >= self.newest || sent + self.newest_rtt + window > now {
                    break;
                }
                let r = &mut self.records[i];
                self.again -= u64::from(r.again);
                self.lost += u64::from(!r.lost);
                (r.again, r.lost) = (false, true);
                self.resend.push_back(number);
                found = true;
            }
            self.order.pop_front();
        }
        found
    }

    fn grow(&mut self, now: u64, news: u64) {
        let news = news as f64;
        if self.cwnd < self.threshold {
            self.cwnd += news;
            return;
        }
        let k = ((self.plateau * 0.3) / 0.4).cbrt();
        let t = (now - self.epoch + self.least) as f64 * 1e-9 - k;
        let target = self.plateau + 0.4 * t * t * t;
        self.cwnd += news * ((target - self.cwnd) / self.cwnd).clamp(0.01 / self.cwnd, 0.5);
    }

    fn reduce(&mut self, now: u64) {
        self.recover = Some(self.una + self.records.len() as u64);
        self.plateau = self.cwnd;
        self.cwnd = (self.cwnd * 0.7).max(2.0);
        (self.threshold, self.epoch) = (self.cwnd, now);
    }

    /// The next packet to send, if the window has room: its number.
    fn next_to_send(&mut self, now: u64) -> Option<u64> {
        if self.inflight() as f64 >= self.cwnd {
            return None;
        }
        while let Some(number) = self.resend.pop_front() {
            let Some(i) = number.checked_sub(self.una) else { continue };
            let r = &mut self.records[i as usize];
            if r.lost && !r.again {
                (r.again, r.ever, r.sent) = (true, true, now);
                self.again += 1;
                self.order.push_back((number, now));
                return Some(number);
            }
        }
        let number = self.una + self.records.len() as u64;
        self.records.push_back(Record { sent: now, ..Record::default() });
        self.order.push_back((number, now));
        Some(number)
    }

    fn time_out(&mut self, now: u64) {
        self.reduce(now);
        self.cwnd = 1.0;
        self.resend.clear();
        (self.lost, self.again) = (0, 0);
        for (i, r) in self.records.iter_mut().enumerate().filter(|(_, r)| !r.sacked) {
            (r.lost, r.again) = (true, false);
            self.lost += 1;
            self.resend.push_back(self.una + i as u64);
        }
        self.deadline = now + 2 * self.smooth + 1000 * MS;
    }
}

/// Adds an item to a line; the first is a pending event.
fn push<T>(line: &mut Line<T>, events: &mut Events, at: u64, item: T, flow: usize, due: Due) {
    if line.0.is_empty() {
        events.push(at, flow, due);
    }
    line.0.push_back((at, item));
}

/// Takes the first item of a line, whose event the next item takes over.
fn pop<T>(line: &mut Line<T>, events: &mut Events) -> Option<T> {
    let (_, item) = line.0.pop_front()?;
    events.order += 1;
    let order = events.order;
    match line.0.front() {
        Some((at, _)) => {
            if let Some(mut first) = events.heap.peek_mut() {
                (first.0.0, first.0.1) = (*at, order);
            }
        }
        None => {
            events.heap.pop();
        }
    }
    Some(item)
}

/// Simulates; returns the number of data packets sent, and of bytes delivered.
pub(crate) fn run(setup: &Setup) -> (u64, u64) {
    let service = HEADERS_AND_PAYLOAD * 8 * 1_000_000_000 / setup.rate;
    let mut link = Link { free: 0, service, most: setup.queue * service, packets: 0 };
    let mut flows: Vec<Flow> = (0..setup.flows).map(|_| Flow::new()).collect();
    let mut events = Events::default();
    for (i, flow) in flows.iter_mut().enumerate() {
        // Its first window leaves when its timer fires for the first time.
        flow.pending = true;
        events.push(i as u64 * MS, i, Due::Timer);
    }
    let end = setup.seconds * 1000 * MS;
    while let Some(&Reverse((now, _, i, due))) = events.heap.peek().filter(|e| e.0.0 <= end) {
        let i = i as usize;
        let flow = &mut flows[i];
        if due == Due::Data as u8 {
            if let Some(ack) = pop(&mut flow.data, &mut events).and_then(|number| flow.receive(number)) {
                push(&mut flow.acks, &mut events, now + setup.rtt / 2, ack, i, Due::Ack);
            }
            continue;
        }
        if due == Due::Ack as u8 {
            if let Some(ack) = pop(&mut flow.acks, &mut events) {
                flow.on_ack(now, &ack);
            }
        } else {
            events.heap.pop();
            flow.pending = false;
            if now >= flow.deadline && !flow.records.is_empty() {
                flow.time_out(now);
            }
        }
        while let Some(number) = flow.next_to_send(now) {
            if let Some(left) = link.send(now) {
                push(&mut flow.data, &mut events, left + setup.rtt / 2, number, i, Due::Data);
            }
        }
        if !flow.pending {
            flow.pending = true;
            flow.deadline = flow.deadline.max(now + 1000 * MS);
            events.push(flow.deadline, i, Due::Timer);
        }
    }
    (link.packets, flows.iter().map(|f| f.next * 1448).sum())
}
