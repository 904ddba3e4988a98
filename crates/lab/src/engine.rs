//! Flows over a path: events as plain data, in a total order.
//!
//! Every direction of the path is first in, first out, so the arrival of a packet is known when it enters, and one
//! pending event stands for all that travel one way: the cost of an event does not grow with the window. Timers are
//! lazy: a deadline that moves away, as a retransmission timeout does with each acknowledgement, leaves its event where
//! it is, to be set again when it comes up.

use crate::app::{App, Exchange, Kind as AppKind};
use crate::path::{Dropped, Kind, Line, Parcel, Path};
use crate::random::{self, Stream};
use crate::record::{Cost, Happened, Sample, Trace};
use crate::tcp::endpoint::{CLOCKS, Endpoint, State};
use crate::tcp::profile::Profile;
use crate::tcp::segment::{ACK, FIN, SYN, Segment};
use crate::tcp::sender::Event;
use slowstart::avoidance::AnyAvoidance;
use slowstart::control::{Composed, Controller, Exited};
use slowstart::startup::AnyStartup;
use slowstart::units::{Bytes, Instant, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What an endpoint of the laboratory drives.
pub type Control = Composed<AnyStartup, AnyAvoidance>;

/// Which way a flow's data goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server, which listens, along [`Path::forward`].
    Download,
    /// From the client, which connects, along [`Path::back`].
    Upload,
}

/// A flow to be.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// When its client connects.
    pub start: Instant,
    /// Which way its data goes.
    pub direction: Direction,
    /// What its application does.
    pub app: AppKind,
    /// Its startup.
    pub startup: AnyStartup,
    /// What follows that.
    pub avoidance: AnyAvoidance,
    /// Both ends' stack.
    pub profile: Profile,
    /// Propagation of its own, each way, beyond the path's.
    pub extra_delay: Span,
    /// Whether its samples are recorded.
    pub recorded: bool,
    /// From when on it witnesses what another flow does to it.
    pub witness_from: Option<Instant>,
}

/// How much to record.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Nothing but what rows need.
    Off,
    /// At this interval.
    Every(Span),
    /// After each acknowledgement of a recorded flow.
    EachAck,
}

/// Bytes at which the time is noted.
pub const MILESTONES: [u64; 3] = [100_000, 1_000_000, 10_000_000];
/// Width of the bins in which throughput is kept for the heuristics.
pub const BIN: Span = Span::millis(10);

/// What the engine knows of a flow beyond its endpoints: the truth that a row is judged by.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// The end of the startup.
    pub exit: Option<Exited>,
    /// When data in flight first reached what the path then held.
    pub capacity: Option<Instant>,
    /// The network's first drop of its data.
    pub first_drop: Option<Instant>,
    /// The sender's first knowledge of a loss.
    pub first_loss: Option<Instant>,
    /// Data packets dropped.
    pub dropped: u64,
    /// Of those sent before the startup ended.
    pub dropped_in_startup: u64,
    /// The longest wait at the bottleneck.
    pub peak_queue_delay: Span,
    /// When the receiver had everything.
    pub completed: Option<Instant>,
    /// When it had each of [`MILESTONES`].
    pub milestones: [Option<Instant>; MILESTONES.len()],
    /// The thesis' capacity point: when the one-way delay last rose above half the least round trip before it exceeded
    /// two.
    pub capacity_by_delay: Option<Instant>,
    /// Bytes that arrived in each 10 ms since the flow began.
    pub bins: Vec<u32>,
    /// The newest round-trip sample when the startup ended.
    pub exit_rtt: Option<Span>,
    /// What the flow suffers from a time on, if it is asked to witness.
    pub witness: Option<Box<Witness>>,
}

/// What a flow suffers from a time on: drops, and one-way delays above the least in classes of an eighth of an octave
/// from 1 us.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Nothing before this counts.
    pub from: Instant,
    /// Data packets dropped.
    pub dropped: u64,
    counts: [u64; 256],
}

impl Witness {
    fn new(from: Instant) -> Self {
        Self { from, dropped: 0, counts: [0; 256] }
    }

    fn add(&mut self, delay: Span) {
        let us = (delay.0 / 1000).max(1);
        let octave = us.ilog2();
        let eighth = ((us << 3) >> octave) & 7;
        self.counts[(octave as usize * 8 + eighth as usize).min(255)] += 1;
    }

    /// The `permille`-th quantile of delay: the upper edge of its class, within an eighth of the value.
    pub fn quantile(&self, permille: u64) -> Option<Span> {
        let total: u64 = self.counts.iter().sum();
        let rank = total * permille / 1000;
        let mut seen = 0;
        let i = self.counts.iter().position(|c| {
            seen += c;
            seen > rank
        })?;
        let (octave, eighth) = (i as u64 / 8, i as u64 % 8);
        Some(Span::micros(((8 + eighth + 1) << octave) >> 3))
    }
}

/// The least one-way delay and what the delay heuristic has seen (thesis 5.2.1).
#[derive(Clone, Debug)]
struct OneWay {
    least: Span,
    last_below: Instant,
    done: bool,
}

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// As it was asked for.
    pub spec: FlowSpec,
    /// Server and client.
    pub ends: [Endpoint<Control>; 2],
    app: App,
    /// The exchange under way, and the offsets at which its request and answer are complete.
    exchange: Option<(Exchange, Option<u64>, Option<u64>)>,
    written: [u64; 2],
    closed: [bool; 2],
    one_way: OneWay,
    /// What the engine knows of it.
    pub truth: Truth,
}

const SERVER: usize = 0;
const CLIENT: usize = 1;

impl Flow {
    /// The end that sends data.
    pub fn sender(&self) -> usize {
        if self.spec.direction == Direction::Download { SERVER } else { CLIENT }
    }

    /// Bytes the receiving application has.
    pub fn delivered(&self) -> u64 {
        self.ends[1 - self.sender()].rx.delivered()
    }

    /// Bytes in flight, as packets on the wire.
    fn inflight_wire(&self) -> Bytes {
        let p = &self.spec.profile;
        self.ends[self.sender()].tx.board().inflight().scale(u64::from(p.packet()), u64::from(p.mss))
    }
}

/// A packet on its way.
#[derive(Clone, Debug)]
struct Packet {
    flow: u32,
    /// The end it goes to.
    to: u8,
    sent: Instant,
    segment: Segment,
}

/// What a pending event stands for. Lines come first in numbering, then the clocks of each endpoint, then applications.
const SOURCES: usize = 2 * CLOCKS + 1;

/// A pending event: time, tie and source, packed so that one comparison orders them.
type Pending = Reverse<u128>;

fn kind(s: &Segment) -> Kind {
    if s.len > 0 {
        return Kind::Data;
    }
    match (s.has(SYN), s.has(ACK), s.has(FIN)) {
        (true, false, _) => Kind::Syn,
        (true, true, _) => Kind::SynAck,
        (_, _, true) => Kind::Fin,
        _ => Kind::Ack,
    }
}

/// Flows over a path.
#[derive(Clone, Debug)]
pub struct Engine {
    path: Path,
    /// The flows, in the order they were given.
    pub flows: Vec<Flow>,
    seed: u64,
    now: Instant,
    /// Each direction, each extra delay.
    lines: Vec<Line<Packet>>,
    line_of: Vec<[u32; 2]>,
    extra: Vec<Span>,
    heap: BinaryHeap<Pending>,
    /// For each flow, the pending time of each clock of each end, and of the application.
    armed: Vec<[Instant; SOURCES]>,
    outbox: Vec<Segment>,
    sampling: Sampling,
    next_sample: Instant,
    gauges: bool,
    /// What was recorded.
    pub trace: Trace,
    /// What it took.
    pub cost: Cost,
}

impl Engine {
    /// Nothing has happened yet. `gauges` records what startups think with each sample.
    pub fn new(path: Path, specs: Vec<FlowSpec>, seed: u64, sampling: Sampling, gauges: bool) -> Self {
        let mut extra: Vec<Span> = specs.iter().map(|s| s.extra_delay).collect();
        extra.sort_unstable();
        extra.dedup();
        let line_of = specs
            .iter()
            .map(|s| {
                let i = extra.partition_point(|e| *e < s.extra_delay) as u32;
                [2 * i, 2 * i + 1]
            })
            .collect();
        let mut engine = Self {
            path,
            seed,
            now: Instant::ZERO,
            lines: (0..2 * extra.len()).map(|_| Line::new()).collect(),
            line_of,
            extra,
            heap: BinaryHeap::new(),
            armed: vec![[Instant::NEVER; SOURCES]; specs.len()],
            outbox: Vec::new(),
            sampling,
            next_sample: if matches!(sampling, Sampling::Every(_)) { Instant::ZERO } else { Instant::NEVER },
            gauges,
            trace: Trace::default(),
            cost: Cost::default(),
            flows: Vec::with_capacity(specs.len()),
        };
        for (i, spec) in specs.into_iter().enumerate() {
            let p = &spec.profile;
            let iw = Bytes(u64::from(p.iw) * u64::from(p.mss));
            let control = || Composed::new(spec.startup.clone(), spec.avoidance.clone(), iw);
            let isn = |end: &str| random::Stream::named(seed, &format!("flow{i}.{end}.isn")).any() as u32;
            let ends = [
                Endpoint::listening(p, control(), isn("server")),
                Endpoint::connecting(p, control(), isn("client")),
            ];
            let app = App::new(spec.app, Stream::named(seed, &format!("flow{i}.app")));
            let start = spec.start;
            engine.flows.push(Flow {
                ends,
                app,
                exchange: None,
                written: [0; 2],
                closed: [false; 2],
                one_way: OneWay { least: Span::MAX, last_below: start, done: false },
                truth: Truth {
                    witness: spec.witness_from.map(|t| Box::new(Witness::new(t))),
                    ..Truth::default()
                },
                spec,
            });
            engine.arm(i, SOURCES - 1, start);
        }
        engine
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The path as it stands.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every finite flow is complete.
    pub fn done(&self) -> bool {
        self.flows.iter().all(|f| f.truth.completed.is_some())
    }

    /// Runs until `end`, or until `stop` says so after an event.
    pub fn run(&mut self, end: Instant, mut stop: impl FnMut(&Self) -> bool) {
        while let Some(&Reverse(pending)) = self.heap.peek() {
            let at = Instant((pending >> 64) as u64);
            let source = pending as u32;
            if at > end {
                break;
            }
            while self.next_sample <= at {
                self.sample_all();
            }
            self.now = at;
            self.cost.events += 1;
            let source = source as usize;
            if source < self.lines.len() {
                self.arrive(source);
            } else {
                self.heap.pop();
                let i = source - self.lines.len();
                self.expire(i / SOURCES, i % SOURCES);
            }
            if stop(self) {
                return;
            }
        }
        while self.next_sample <= end {
            self.sample_all();
        }
        self.now = self.now.max(end);
    }

    /// Ties are broken by chance of the seed's own, so that no flow is always first (and one line keeps its order).
    fn key(&self, at: Instant, source: usize) -> Pending {
        let tie = random::at(self.seed ^ at.0, source as u64) as u32;
        Reverse(u128::from(at.0) << 64 | u128::from(tie) << 32 | source as u128)
    }

    fn arm(&mut self, flow: usize, clock: usize, at: Instant) {
        self.armed[flow][clock] = at;
        let key = self.key(at, self.lines.len() + flow * SOURCES + clock);
        self.heap.push(key);
    }

    fn arm_end(&mut self, flow: usize, end: usize) {
        let due = self.flows[flow].ends[end].deadlines();
        for (c, at) in due.into_iter().enumerate() {
            let clock = end * CLOCKS + c;
            // Earlier than what is pending: another event; the old one is then stale. Later: the pending one will see.
            if at < self.armed[flow][clock] {
                self.arm(flow, clock, at);
            }
        }
    }

    fn expire(&mut self, flow: usize, clock: usize) {
        if self.armed[flow][clock] != self.now {
            return;
        }
        self.armed[flow][clock] = Instant::NEVER;
        if clock == SOURCES - 1 {
            self.ask(flow);
            return;
        }
        let (end, c) = (clock / CLOCKS, clock % CLOCKS);
        let due = self.flows[flow].ends[end].deadlines()[c];
        if due <= self.now {
            let mut out = std::mem::take(&mut self.outbox);
            self.flows[flow].ends[end].on_timer(self.now, &mut out);
            self.emit(flow, end, out);
            self.after(flow, end);
        } else if due < Instant::NEVER {
            self.arm(flow, clock, due);
        }
    }

    fn arrive(&mut self, line: usize) {
        let Some(packet) = self.lines[line].pop(self.now) else { return };
        // The line's next packet takes the place of the one that arrived, without a second sift.
        let next = self.lines[line].next().map(|at| self.key(at, line));
        if let Some(mut top) = self.heap.peek_mut() {
            match next {
                Some(key) => *top = key,
                None => {
                    std::collections::binary_heap::PeekMut::pop(top);
                }
            }
        }
        let (flow, to) = (packet.flow as usize, usize::from(packet.to));
        if packet.segment.len > 0 && to != self.flows[flow].sender() {
            self.observe(flow, &packet);
        }
        let mut out = std::mem::take(&mut self.outbox);
        self.flows[flow].ends[to].on_segment(self.now, &packet.segment, &mut out);
        self.emit(flow, to, out);
        self.after(flow, to);
        if self.sampling == Sampling::EachAck && to == self.flows[flow].sender() {
            self.sample(flow, self.now);
        }
    }

    /// What the receiver's side shows of the path.
    fn observe(&mut self, flow: usize, packet: &Packet) {
        let f = &mut self.flows[flow];
        let delay = self.now.since(packet.sent);
        f.one_way.least = f.one_way.least.min(delay);
        let above = delay - f.one_way.least;
        if !f.one_way.done
            && let Some(min) = f.ends[f.sender()].tx.rtt().min()
        {
            if above < min / 2 {
                f.one_way.last_below = self.now;
            } else if above > min * 2 {
                f.one_way.done = true;
                f.truth.capacity_by_delay = Some(f.one_way.last_below);
            }
        }
        if let Some(w) = f.truth.witness.as_mut().filter(|w| self.now >= w.from) {
            w.add(above);
        }
        let bin = (self.now.since(f.spec.start).0 / BIN.0) as usize;
        if f.truth.bins.len() <= bin {
            f.truth.bins.resize(bin + 1, 0);
        }
        f.truth.bins[bin] += packet.segment.len;
    }

    /// Puts what an end sends on its way.
    fn emit(&mut self, flow: usize, end: usize, mut out: Vec<Segment>) {
        if out.is_empty() {
            self.outbox = out;
            return;
        }
        let sends = end == self.flows[flow].sender();
        let line = self.line_of[flow][end] as usize;
        let extra = self.extra[line / 2];
        let mut data = 0;
        for &segment in &out {
            let kind = kind(&segment);
            let parcel = Parcel { bytes: segment.wire(), flow: flow as u32, kind };
            let carries = sends && kind == Kind::Data;
            data += u64::from(carries);
            let direction = if end == SERVER { &mut self.path.forward } else { &mut self.path.back };
            match direction.pass(self.now, &parcel) {
                Ok(at) => {
                    let at = at + extra;
                    if self.lines[line].is_empty() {
                        let key = self.key(at, line);
                        self.heap.push(key);
                    }
                    let packet = Packet { flow: flow as u32, to: (1 - end) as u8, sent: self.now, segment };
                    self.lines[line].push(at, packet);
                }
                Err(d) => self.dropped(flow, carries, &d),
            }
        }
        out.clear();
        self.outbox = out;
        if data > 0 {
            self.cost.packets += data;
            // The last of a burst waits longest; what a packet after it would wait is that and its own transmission.
            let direction = if end == SERVER { &self.path.forward } else { &self.path.back };
            let wait = direction.queue_delay(self.now);
            let t = &mut self.flows[flow].truth;
            t.peak_queue_delay = t.peak_queue_delay.max(wait);
        }
    }

    fn dropped(&mut self, flow: usize, data: bool, d: &Dropped) {
        let f = &mut self.flows[flow];
        if data {
            f.truth.first_drop = f.truth.first_drop.or(Some(d.at));
            f.truth.dropped += 1;
            f.truth.dropped_in_startup += u64::from(f.truth.exit.is_none());
            if let Some(w) = f.truth.witness.as_mut().filter(|w| self.now >= w.from) {
                w.dropped += 1;
            }
        }
        if f.spec.recorded && self.sampling != Sampling::Off {
            self.happened(flow, "drop", d.at, Some(d.cause.to_string()));
        }
    }

    fn happened(&mut self, flow: usize, what: &'static str, at: Instant, why: Option<String>) {
        let time_s = Span(at.0).as_secs_f64();
        self.trace.events.push(Happened { time_s, flow: flow as u32, what, why });
    }

    /// After an end was told something: what happened, what the application makes of it, what to wait for.
    fn after(&mut self, flow: usize, end: usize) {
        let f = &mut self.flows[flow];
        let sender = f.sender();
        if end == sender {
            if !f.ends[end].tx.events.is_empty() {
                self.take_events(flow, end);
            }
            let f = &self.flows[flow];
            if f.truth.capacity.is_none() && !f.ends[end].tx.board().is_empty() {
                self.judge_capacity(flow);
            }
        } else {
            let got = f.delivered();
            for (at, bytes) in f.truth.milestones.iter_mut().zip(MILESTONES) {
                if at.is_none() && got >= bytes {
                    *at = Some(self.now);
                }
            }
        }
        self.serve(flow, end);
        self.arm_end(flow, end);
    }

    fn take_events(&mut self, flow: usize, end: usize) {
        let events = std::mem::take(&mut self.flows[flow].ends[end].tx.events);
        let rtt = self.flows[flow].ends[end].tx.last_rtt();
        for (at, event) in &events {
            let t = &mut self.flows[flow].truth;
            let (what, why) = match event {
                Event::Exited(e) => {
                    t.exit = Some(*e);
                    t.exit_rtt = rtt;
                    ("exit", Some(e.why.name().to_string()))
                }
                Event::Resumed => {
                    t.exit = None;
                    ("resumed", None)
                }
                Event::Loss => {
                    t.first_loss = t.first_loss.or(Some(*at));
                    ("loss", None)
                }
                Event::Timeout => {
                    t.first_loss = t.first_loss.or(Some(*at));
                    ("timeout", None)
                }
                Event::Recovered { undone: false } => ("recovered", None),
                Event::Recovered { undone: true } => ("undone", None),
                Event::Probe => ("probe", None),
            };
            if self.flows[flow].spec.recorded && self.sampling != Sampling::Off {
                self.happened(flow, what, *at, why);
            }
        }
    }

    /// Whether what all flows of a direction have in flight fills it: what its link carries in one base round trip.
    fn judge_capacity(&mut self, flow: usize) {
        let direction = self.flows[flow].spec.direction;
        let link = if direction == Direction::Download { &self.path.forward } else { &self.path.back };
        let rtt = self.path.facts.base_rtt + self.flows[flow].spec.extra_delay * 2;
        let holds = if self.path.facts.variable || direction == Direction::Upload {
            link.capacity(self.now, self.now + rtt)
        } else {
            self.path.facts.rate.over(rtt)
        };
        let same = |f: &&Flow| f.spec.direction == direction;
        let inflight: Bytes = self.flows.iter().filter(same).map(Flow::inflight_wire).sum();
        if inflight >= holds {
            self.flows[flow].truth.capacity = Some(self.now);
        }
    }

    // Applications.

    /// The flow begins, or its next request is due.
    fn ask(&mut self, flow: usize) {
        let mut out = std::mem::take(&mut self.outbox);
        let f = &mut self.flows[flow];
        let client = &mut f.ends[CLIENT];
        if client.state() == State::Closed {
            client.connect(self.now, &mut out);
        } else if let Some((e, request, _)) = &mut f.exchange {
            f.written[CLIENT] += e.request;
            *request = Some(f.written[CLIENT]);
            client.tx.write(e.request);
            client.send(self.now, &mut out);
        }
        self.emit(flow, CLIENT, out);
        self.after(flow, CLIENT);
    }

    /// What the application of one end does about what has arrived there.
    fn serve(&mut self, flow: usize, end: usize) {
        let f = &mut self.flows[flow];
        if f.ends[end].state() != State::Established {
            return;
        }
        let sender = f.sender();
        let mut sends = false;
        match f.app.kind() {
            AppKind::Bulk { size } => {
                if end == sender && f.written[end] == 0 {
                    let bytes = size.unwrap_or(u64::MAX >> 2);
                    f.written[end] = bytes;
                    f.ends[end].tx.write(bytes);
                    if size.is_some() {
                        f.ends[end].tx.close();
                        f.closed[end] = true;
                    }
                    sends = true;
                }
                if end != sender && f.truth.completed.is_none() && size.is_some_and(|s| f.delivered() >= s) {
                    f.truth.completed = Some(self.now);
                }
            }
            AppKind::Web | AppKind::Video { .. } => {
                let got = f.ends[end].rx.delivered();
                if end == CLIENT {
                    let next = match f.exchange {
                        None => f.app.begin(self.now),
                        Some((_, _, Some(whole))) if got >= whole => f.app.next(self.now),
                        Some(_) => return,
                    };
                    if let Some(e) = next {
                        f.exchange = Some((e, None, None));
                        self.arm(flow, SOURCES - 1, e.at);
                    }
                    return;
                }
                if let Some((e, Some(asked), answer @ None)) = &mut f.exchange
                    && got >= *asked
                {
                    f.written[SERVER] += e.response;
                    *answer = Some(f.written[SERVER]);
                    let bytes = e.response;
                    f.ends[SERVER].tx.write(bytes);
                    sends = true;
                }
            }
        }
        // Who has been told that the other is done, is done.
        if f.ends[end].rx.finished() && !f.closed[end] {
            f.closed[end] = true;
            f.ends[end].tx.close();
            sends = true;
        }
        if sends {
            let mut out = std::mem::take(&mut self.outbox);
            self.flows[flow].ends[end].send(self.now, &mut out);
            self.emit(flow, end, out);
        }
    }

    // Records.

    fn sample_all(&mut self) {
        let at = self.next_sample;
        for flow in 0..self.flows.len() {
            if self.flows[flow].spec.recorded && self.flows[flow].spec.start <= at {
                self.sample(flow, at);
            }
        }
        if let Sampling::Every(interval) = self.sampling {
            self.next_sample = at + interval;
        }
    }

    fn sample(&mut self, flow: usize, at: Instant) {
        let f = &self.flows[flow];
        if !f.spec.recorded {
            return;
        }
        let tx = &f.ends[f.sender()].tx;
        let s = tx.control().state();
        let link = if f.spec.direction == Direction::Download {
            &mut self.path.forward
        } else {
            &mut self.path.back
        };
        let mut gauges = BTreeMap::new();
        if self.gauges {
            tx.control().gauges(&mut |k, v| {
                if v.is_finite() {
                    gauges.insert(k, v);
                }
            });
        }
        self.trace.samples.push(Sample {
            time_s: Span(at.0).as_secs_f64(),
            flow: flow as u32,
            cwnd_bytes: s.cwnd.0,
            ssthresh_bytes: s.ssthresh.map(|t| t.0),
            inflight_bytes: tx.board().inflight().0,
            rtt_s: tx.last_rtt().map(Span::as_secs_f64),
            delivered_bytes: f.delivered(),
            queue_bytes: link.backlog(at).0,
            pacing_bps: tx.pacer().rate().map(|r| r.0),
            phase: tx.control().phase(),
            gauges,
        });
    }
}
