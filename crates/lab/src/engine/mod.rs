//! Flows over a path: what happens to each, what their applications do, and what is recorded of it.

mod flow;
mod net;

pub use flow::{BIN, Control, Direction, Flow, FlowSpec, MILESTONES, Truth, Witness};

use crate::app::Kind as AppKind;
use crate::path::{Dropped, Path};
use crate::record::{CapturedPacket, Cost, EventRow, Sample, Trace};
use crate::tcp::endpoint::{CLOCKS, Endpoint, State};
use crate::tcp::segment::Segment;
use crate::tcp::sender::Event;
use flow::{CLIENT, SERVER};
use net::{APPLICATION, Arrival, Net};
use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant, Span};
use std::collections::BTreeMap;

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

/// Flows over a path.
#[derive(Clone, Debug)]
pub struct Engine {
    net: Net,
    /// What arrived last. It stays here: to copy what was just written waits for it.
    arrived: Segment,
    /// The flows, in the order they were given.
    pub flows: Vec<Flow>,
    /// Places of flows that have left, and how many have come.
    left: Vec<usize>,
    entered: usize,
    sampling: Sampling,
    next_sample: Instant,
    gauges: bool,
    /// What was recorded.
    pub trace: Trace,
    /// What it took.
    pub cost: Cost,
    /// Data packets that the path has dropped.
    pub dropped: u64,
}

impl Engine {
    /// Nothing has happened yet. `gauges` records what startups think with each sample.
    pub fn new(path: Path, specs: Vec<FlowSpec>, seed: u64, sampling: Sampling, gauges: bool) -> Self {
        let net = Net::new(path, specs.iter().map(|s| s.extra_delay).collect(), seed);
        let mut engine = Self::over(net, sampling, gauges);
        for (i, spec) in specs.into_iter().enumerate() {
            let (start, lines) = (spec.start, engine.net.lines_of(spec.extra_delay));
            let mut flow = Flow::new(i, spec, lines, seed);
            engine.net.arm(i, &mut flow, APPLICATION, start);
            engine.flows.push(flow);
        }
        engine
    }

    fn over(net: Net, sampling: Sampling, gauges: bool) -> Self {
        Self {
            net,
            arrived: Segment::default(),
            flows: Vec::new(),
            left: Vec::new(),
            entered: 0,
            sampling,
            next_sample: if matches!(sampling, Sampling::Every(_)) { Instant::ZERO } else { Instant::NEVER },
            gauges,
            trace: Trace::default(),
            cost: Cost::default(),
            dropped: 0,
        }
    }

    /// An engine whose flows [come](Self::enter) and go, at most so many at a time.
    pub fn open(path: Path, places: usize, seed: u64) -> Self {
        Self::over(Net::open(path, places, seed), Sampling::Off, false)
    }

    /// A flow comes, now or later: to a place that another has left, or to one of its own. Answers which; none if all are
    /// taken. Nobody asks of such a flow when the path was full: it is one of many.
    pub fn enter(&mut self, spec: FlowSpec, seed: u64) -> Option<usize> {
        let place =
            self.left.pop().or_else(|| (self.flows.len() < self.net.places()).then_some(self.flows.len()))?;
        self.net.set_extra(place, spec.extra_delay);
        let start = spec.start;
        let lines = [2 * place as u32, 2 * place as u32 + 1];
        let mut flow = Flow::new(self.entered, spec, lines, seed);
        self.entered += 1;
        flow.truth.capacity = Some(start);
        self.net.arm(place, &mut flow, APPLICATION, start);
        match self.flows.get_mut(place) {
            Some(old) => *old = flow,
            None => self.flows.push(flow),
        }
        Some(place)
    }

    /// Whether nothing will happen to a flow any more.
    pub fn is_over(&self, place: usize) -> bool {
        let f = &self.flows[place];
        let still = |end: &Endpoint<Control>| end.deadlines().into_iter().all(|d| d == Instant::NEVER);
        f.ends.iter().all(still) && f.armed[APPLICATION] == Instant::NEVER && self.net.is_empty(f.lines)
    }

    /// The place of a flow that [is over](Self::is_over) may be taken.
    pub fn leave(&mut self, place: usize) {
        self.left.push(place);
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.net.now
    }

    /// Keeps the packets of recorded flows from now on.
    pub fn capture(&mut self) {
        self.net.capture = Some(Vec::new());
    }

    /// The packets kept so far, in order of time.
    pub fn captured(&mut self) -> Vec<CapturedPacket> {
        let mut packets = self.net.capture.take().unwrap_or_default();
        packets.sort_by_key(|p| p.at);
        packets
    }

    /// The path as it stands.
    pub fn path(&self) -> &Path {
        &self.net.path
    }

    /// Every finite flow is complete.
    pub fn done(&self) -> bool {
        self.flows.iter().all(|f| f.truth.completed.is_some())
    }

    /// Runs until `end`.
    pub fn run(&mut self, end: Instant) {
        self.advance(end, true, |_| false);
    }

    /// Runs until `end`, or until the first flow is complete.
    pub fn complete(&mut self, end: Instant) {
        self.advance(end, true, |e| e.flows[0].truth.completed.is_some());
    }

    /// Runs until `end`, or until `stop` says so after an event. In contrast to the others it sees the events in the order
    /// of time whatever their end, which costs.
    pub fn run_until(&mut self, end: Instant, stop: impl FnMut(&Self) -> bool) {
        self.advance(end, false, stop);
    }

    /// What one end does the other cannot know before a packet has travelled. So all that happens at the first flow's
    /// receiver goes `ahead` of its sender, as far as nothing can reach it that has not left yet; then the sender follows.
    /// Each finds its code and its branches as it left them. Nothing can tell: neither end reads what the other has become
    /// since, and what is recorded of both waits for both.
    fn advance(&mut self, end: Instant, ahead: bool, mut stop: impl FnMut(&Self) -> bool) {
        let receiver = self.flows.first().map_or(CLIENT, |f| 1 - f.sender());
        // After an ACK what both ends know is recorded.
        let ahead = ahead && self.sampling != Sampling::EachAck;
        let ahead = if ahead { self.net.least_delay(1 - receiver) } else { Span::ZERO };
        let mut stopped = None;
        loop {
            let first = self.net.first();
            while self.next_sample <= first.min(end) {
                self.sample_all();
            }
            if first > end || first == Instant::NEVER {
                break;
            }
            // Nothing that leaves at `first` or later arrives before `first + ahead`; a sample sees nothing of its time.
            let mut until = ((first + ahead).min(self.next_sample) - Span(1)).max(first).min(end);
            for side in [receiver, 1 - receiver] {
                let late = until + Span(1);
                while let Some((at, source, other)) = self.net.next(side, until) {
                    let at = match self.net.clock(side, source) {
                        // Said twice, so that each has code of its own.
                        None if side == SERVER => self.follow(SERVER, at, source, other.min(late), &mut stop),
                        None => self.follow(CLIENT, at, source, other.min(late), &mut stop),
                        Some((flow, clock)) => {
                            self.cost.events += 1;
                            self.expire(flow, clock);
                            stop(self).then_some(at)
                        }
                    };
                    if let Some(at) = at.filter(|_| stopped.is_none()) {
                        stopped = Some(at);
                        until = at - Span(1);
                        break;
                    }
                }
            }
            if stopped.is_some() {
                break;
            }
        }
        self.net.now = stopped.unwrap_or(self.net.now.max(end));
        self.trace.events.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    }

    /// Packets arrive over a line, one after the other while no other source of their end is due, before `until`. Answers
    /// when to stop, if `stop` says so after one.
    #[allow(clippy::inline_always, reason = "for each end with what is known of it")]
    #[inline(always)]
    fn follow(
        &mut self,
        end: usize,
        mut at: Instant,
        line: usize,
        until: Instant,
        stop: &mut impl FnMut(&Self) -> bool,
    ) -> Option<Instant> {
        while let Some(arrival) = self.net.arrival(line, &mut self.arrived) {
            self.cost.events += 1;
            self.arrive(end, at, &arrival);
            let stops = stop(self);
            if stops || !self.net.goes_on(line, arrival.next, until) {
                self.net.expect(line, arrival.next);
                return stops.then_some(at);
            }
            at = arrival.next;
        }
        None
    }

    /// A packet arrives.
    #[allow(clippy::inline_always, reason = "from one place")]
    #[inline(always)]
    fn arrive(&mut self, end: usize, at: Instant, &Arrival { to, sent, .. }: &Arrival) {
        let arrived = &self.arrived;
        let flow = to as usize / 2;
        let f = &mut self.flows[flow];
        let len = arrived.len;
        if len > 0 && end != f.sender() {
            f.observe(at, sent, len);
        }
        if f.recorded
            && let Some(packets) = &mut self.net.capture
        {
            let (flow, end, segment) = (flow as u32, end as u8, *arrived);
            packets.push(CapturedPacket { at, flow, end, leaves: false, segment });
        }
        let mut road = self.net.road(flow, f, end);
        let sender_told = f.ends[end].on_segment(at, arrived, &mut road);
        if sender_told {
            self.cost.packets += road.told(f);
        }
        if !self.net.losses.is_empty() || !f.is_quiet(end) {
            self.after(flow, end);
        } else if sender_told {
            self.net.arm_end(flow, f, end);
        } else {
            self.net.arm_answer(flow, f, end);
        }
        if self.sampling == Sampling::EachAck && end == self.flows[flow].sender() {
            self.sample(flow, at);
        }
    }

    #[inline(never)]
    fn expire(&mut self, flow: usize, clock: usize) {
        let (f, now) = (&mut self.flows[flow], self.net.now);
        if f.armed[clock] != now {
            return;
        }
        f.armed[clock] = Instant::NEVER;
        if clock == APPLICATION {
            self.ask(flow);
            return;
        }
        let (end, c) = (clock / CLOCKS, clock % CLOCKS);
        let due = f.ends[end].deadlines()[c];
        if due <= now {
            self.cost.packets += self.net.tell(flow, f, end, |end, now, road| end.on_timer(now, road));
            self.after(flow, end);
        } else if due < Instant::NEVER {
            self.net.arm(flow, f, clock, due);
        }
    }

    /// What the path dropped of what was just sent.
    #[cold]
    fn take_losses(&mut self, flow: usize) {
        let mut losses = std::mem::take(&mut self.net.losses);
        for (watched, d) in losses.drain(..) {
            self.dropped(flow, watched, &d);
        }
        self.net.losses = losses;
    }

    fn dropped(&mut self, flow: usize, data: bool, d: &Dropped) {
        let f = &mut self.flows[flow];
        if data {
            self.dropped += 1;
            f.truth.first_drop = f.truth.first_drop.or(Some(d.at));
            f.truth.dropped += 1;
            f.truth.dropped_in_startup += u64::from(f.truth.exit.is_none());
            if let Some(w) = f.truth.witness.as_mut().filter(|w| self.net.now >= w.from) {
                w.dropped += 1;
            }
        }
        if f.recorded && self.sampling != Sampling::Off {
            self.happened(flow, "drop", d.at, Some(d.cause.to_string()));
        }
    }

    fn happened(&mut self, flow: usize, what: &'static str, at: Instant, why: Option<String>) {
        let time_s = Span(at.0).as_secs_f64();
        self.trace.events.push(EventRow { time_s, flow: flow as u32, what, why });
    }

    /// After an end was told something: what happened, what the application makes of it, what to wait for.
    #[inline(never)]
    fn after(&mut self, flow: usize, end: usize) {
        if !self.net.losses.is_empty() {
            self.take_losses(flow);
        }
        if !self.flows[flow].is_quiet(end) {
            self.attend(flow, end);
        }
        self.net.arm_end(flow, &mut self.flows[flow], end);
    }

    #[inline(never)]
    fn attend(&mut self, flow: usize, end: usize) {
        let f = &self.flows[flow];
        if end == f.sender() {
            let tx = &f.ends[end].tx;
            let judges = f.truth.capacity.is_none() && !tx.board().is_empty();
            if !tx.events.is_empty() {
                self.take_events(flow, end);
            }
            if judges {
                self.judge_capacity(flow);
            }
        }
        let f = &self.flows[flow];
        let rx = &f.ends[end].rx;
        if rx.delivered() >= f.due[end] || (rx.finished() && !f.closed[end]) {
            self.serve(flow, end);
        }
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
                Event::Stall => ("stall", None),
            };
            if self.flows[flow].recorded && self.sampling != Sampling::Off {
                self.happened(flow, what, *at, why);
            }
        }
    }

    /// Whether what all flows of a direction have in flight fills it: what its link carries in one base round trip.
    fn judge_capacity(&mut self, flow: usize) {
        let direction = self.flows[flow].spec.direction;
        let link =
            if direction == Direction::Download { &self.net.path.forward } else { &self.net.path.back };
        let rtt = self.net.path.facts.base_rtt + self.flows[flow].spec.extra_delay * 2;
        let holds = if self.net.path.facts.variable || direction == Direction::Upload {
            link.capacity(self.net.now, self.net.now + rtt)
        } else {
            self.net.path.facts.rate.over(rtt)
        };
        let sender = self.flows[flow].sender();
        let same = |f: &&Flow| f.sender() == sender;
        let inflight: Bytes = self.flows.iter().filter(same).map(Flow::inflight_wire).sum();
        if inflight >= holds {
            self.flows[flow].truth.capacity = Some(self.net.now);
        }
    }

    // Applications.

    /// The flow begins, or its next request is due.
    fn ask(&mut self, flow: usize) {
        let f = &mut self.flows[flow];
        if f.ends[CLIENT].state() == State::Closed {
            self.cost.packets += self.net.tell(flow, f, CLIENT, |end, now, road| end.connect(now, road));
        } else if let Some((e, request, _)) = &mut f.exchange {
            f.written[CLIENT] += e.request;
            *request = Some(f.written[CLIENT]);
            f.ends[CLIENT].tx.write(e.request);
            self.cost.packets += self.net.tell(flow, f, CLIENT, |end, now, road| end.send(now, road));
        }
        self.after(flow, CLIENT);
    }

    /// What the application of one end does about what has arrived there.
    fn serve(&mut self, flow: usize, end: usize) {
        let f = &mut self.flows[flow];
        if f.ends[end].state() != State::Established {
            return;
        }
        let sender = f.sender();
        if end != sender {
            let got = f.delivered();
            for (at, bytes) in f.truth.milestones.iter_mut().zip(MILESTONES) {
                if at.is_none() && got >= bytes {
                    *at = Some(self.net.now);
                }
            }
        }
        let mut sends = false;
        match f.app.kind() {
            kind @ (AppKind::Bulk { .. } | AppKind::Told { .. }) => {
                let (size, told) = match kind {
                    AppKind::Told { size } => (Some(size), true),
                    AppKind::Bulk { size } => (size, false),
                    AppKind::Request { .. } | AppKind::Web | AppKind::Video { .. } => (None, true),
                };
                if end == sender && f.written[end] == 0 && !told {
                    let bytes = size.unwrap_or(u64::MAX >> 2);
                    f.written[end] = bytes;
                    f.ends[end].tx.write(bytes);
                    if size.is_some() {
                        f.ends[end].tx.close();
                        f.closed[end] = true;
                    }
                    sends = true;
                }
                let got = f.ends[end].rx.delivered();
                if end != sender && f.truth.completed.is_none() && size.is_some_and(|s| got >= s) {
                    f.truth.completed = Some(self.net.now);
                }
                f.due[end] =
                    MILESTONES.into_iter().chain(size).filter(|b| *b > got).min().unwrap_or(u64::MAX);
            }
            AppKind::Request { .. } | AppKind::Web | AppKind::Video { .. } => {
                let got = f.ends[end].rx.delivered();
                if end == CLIENT {
                    let one = matches!(f.app.kind(), AppKind::Request { .. });
                    let whole = f.exchange.and_then(|(_, _, whole)| whole);
                    if one && f.truth.completed.is_none() && whole.is_some_and(|w| got >= w) {
                        f.truth.completed = Some(self.net.now);
                    }
                    let next = match f.exchange {
                        None => f.app.begin(self.net.now),
                        Some((_, _, Some(whole))) if got >= whole => f.app.next(self.net.now),
                        Some(_) => return,
                    };
                    if let Some(e) = next {
                        f.exchange = Some((e, None, None));
                        self.net.arm(flow, f, APPLICATION, e.at);
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
                    if let AppKind::Request { .. } = f.app.kind() {
                        f.ends[SERVER].tx.close();
                        f.closed[SERVER] = true;
                    }
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
            let f = &mut self.flows[flow];
            self.cost.packets += self.net.tell(flow, f, end, |end, now, road| end.send(now, road));
            self.take_losses(flow);
        }
    }

    // Driven from outside.

    /// The sender of a flow whose application is told so ([`AppKind::Told`]) writes, now.
    pub fn write(&mut self, flow: usize, bytes: u64) {
        let f = &mut self.flows[flow];
        let end = f.sender();
        f.written[end] += bytes;
        f.ends[end].tx.write(bytes);
        self.cost.packets += self.net.tell(flow, f, end, |end, now, road| end.send(now, road));
        self.take_losses(flow);
        self.after(flow, end);
    }

    /// From now on another controller drives the sender of a flow: the connection goes on as it stands.
    pub fn take_over(&mut self, flow: usize, control: Control) {
        let f = &mut self.flows[flow];
        let end = f.sender();
        f.ends[end].tx.take_over(control);
        self.after(flow, end);
    }

    // Records.

    #[cold]
    fn sample_all(&mut self) {
        let at = self.next_sample;
        for flow in 0..self.flows.len() {
            if self.flows[flow].recorded && self.flows[flow].spec.start <= at {
                self.sample(flow, at);
            }
        }
        if let Sampling::Every(interval) = self.sampling {
            self.next_sample = at + interval;
        }
    }

    #[cold]
    fn sample(&mut self, flow: usize, at: Instant) {
        let f = &self.flows[flow];
        if !f.recorded {
            return;
        }
        let tx = &f.ends[f.sender()].tx;
        let s = tx.control().state();
        let link = if f.spec.direction == Direction::Download {
            &mut self.net.path.forward
        } else {
            &mut self.net.path.back
        };
        let mut gauges = BTreeMap::new();
        if self.gauges {
            tx.control().internal_values(&mut |k, v| {
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
