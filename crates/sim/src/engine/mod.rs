//! The engine: runs flows over a path, event by event, and records what happens.

mod capacity;
mod flow;
mod id;
mod net;
mod packet;
mod proxy;
mod queued;
mod record;
mod run;
mod truth;

pub use crate::ends::{End, PerEnd};
pub use flow::{Control, Direction, Flow, FlowSpec};
pub use id::FlowId;
pub use proxy::Proxied;
pub use truth::{BIN, Impact, Truth};

use crate::app::{Action, Kind as AppKind, Socket};
use crate::path::Path;
use crate::tcp::endpoint::{Endpoint, State};
use crate::tcp::segment::{Numbers, Segment};
use crate::tcp::sender::Event;
use crate::trace::{CapturedPacket, Cost, Trace};
use id::{ClockId, Due, LineId};
use net::{Arrival, Net};
use packet::Packet;
use slowstart::control::Checked;
use slowstart::registry::AnyController;
use slowstart::units::{Instant, Span};

/// When recorded flows are sampled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Never; events are not recorded either.
    Off,
    /// A sample at this interval.
    Every(Span),
    /// A sample after each acknowledgement.
    EachAck,
}

/// Flows over a path.
#[derive(Clone, Debug)]
pub struct Engine {
    net: Net,
    /// The flows, by [`FlowId`].
    pub flows: Vec<Flow>,
    /// Free slots, where flows [come](Self::add_flow) and go.
    free: Vec<FlowId>,
    /// Number of flows added so far.
    added: usize,
    sampling: Sampling,
    next_sample: Instant,
    gauges: bool,
    /// Recorded samples, events and packets.
    pub trace: Trace,
    /// Number of events and of data packets so far.
    pub cost: Cost,
    /// Number of data packets dropped by the path.
    pub dropped: u64,
}

impl Engine {
    /// An engine at time zero. All random numbers follow from `seed`; `gauges` adds the controllers' internal
    /// values to each sample.
    pub fn new(path: Path, specs: Vec<FlowSpec>, seed: u64, sampling: Sampling, gauges: bool) -> Self {
        let net = Net::new(path, specs.iter().map(|s| (s.extra_delay, s.links)).collect(), seed);
        let mut engine = Self::over(net, sampling, gauges);
        for (i, spec) in specs.into_iter().enumerate() {
            let (start, lines) = (spec.start, engine.net.lines_of(spec.extra_delay, spec.links));
            let id = FlowId(i as u32);
            let mut flow = Flow::new(i, id, spec, lines, seed, false);
            engine.net.arm(id, &mut flow, ClockId::APPLICATION, start);
            engine.flows.push(flow);
        }
        engine
    }

    fn over(net: Net, sampling: Sampling, gauges: bool) -> Self {
        Self {
            net,
            flows: Vec::new(),
            free: Vec::new(),
            added: 0,
            sampling,
            next_sample: if matches!(sampling, Sampling::Every(_)) { Instant::ZERO } else { Instant::NEVER },
            gauges,
            trace: Trace::default(),
            cost: Cost::default(),
            dropped: 0,
        }
    }

    /// An engine without flows, for flows that [come](Self::add_flow) and go, at most `slots` at a time. It
    /// samples nothing.
    pub fn with_slots(path: Path, slots: usize, seed: u64) -> Self {
        Self::over(Net::with_slots(path, slots, seed), Sampling::Off, false)
    }

    /// Adds a flow to an engine [with slots](Self::with_slots), to begin now or later; it crosses all links. Returns
    /// its slot, or `None` if all are taken. [`Truth::capacity`] of such a flow is its start: it is not measured.
    pub fn add_flow(&mut self, spec: FlowSpec, seed: u64) -> Option<FlowId> {
        let unused = FlowId(self.flows.len() as u32);
        let slot = self.free.pop().or_else(|| (unused.index() < self.net.slots()).then_some(unused))?;
        let start = spec.start;
        let lines = self.net.set_slot(slot.index(), spec.extra_delay);
        let captures = self.net.capture.is_some();
        let mut flow = Flow::new(self.added, slot, spec, lines, seed, captures);
        self.added += 1;
        (flow.truth.capacity, flow.truth.capacity_rtt) = (Some(start), Span::MAX);
        match self.flows.get_mut(slot.index()) {
            Some(old) => old.replace(flow),
            None => self.flows.push(flow),
        }
        self.net.arm(slot, &mut self.flows[slot.index()], ClockId::APPLICATION, start);
        Some(slot)
    }

    /// The flow with this identifier.
    pub fn flow(&self, id: FlowId) -> &Flow {
        &self.flows[id.index()]
    }

    /// True if nothing more will happen to a flow: no packet is on its way and no clock is set.
    pub fn is_finished(&self, id: FlowId) -> bool {
        let f = self.flow(id);
        let idle = |end: &Endpoint<Control>| end.deadlines().into_iter().all(|d| d == Instant::NEVER);
        let app = f.armed[ClockId::APPLICATION.index()];
        f.ends.iter().all(idle) && app == Instant::NEVER && self.net.is_empty(f.lines())
    }

    /// Frees the slot of a flow that [is finished](Self::is_finished).
    pub fn free_slot(&mut self, id: FlowId) {
        self.free.push(id);
    }

    /// Returns the current time, since the run began.
    pub fn now(&self) -> Instant {
        self.net.now
    }

    /// Captures the packets of recorded flows at both ends, from now on.
    pub fn start_capture(&mut self) {
        self.net.capture = Some(Vec::new());
        for f in &mut self.flows {
            f.set_captured(f.spec.recorded);
        }
    }

    /// Stops capturing; returns the captured packets in order of time.
    pub fn take_capture(&mut self) -> Vec<CapturedPacket> {
        let mut packets = self.net.capture.take().unwrap_or_default();
        for f in &mut self.flows {
            f.set_captured(false);
        }
        packets.sort_by_key(|p| p.at);
        packets
    }

    /// The path in its current state.
    pub fn path(&self) -> &Path {
        &self.net.path
    }

    /// True if every flow has completed its transfer.
    pub fn done(&self) -> bool {
        self.flows.iter().all(|f| f.truth.completed.is_some())
    }

    /// Runs all events until `end`.
    pub fn run(&mut self, end: Instant) {
        self.advance(end, true, |_| false);
        self.sort_events();
    }

    /// Runs until `end`, until the first flow has completed its transfer, or until its controller, of a host,
    /// is broken.
    pub fn complete(&mut self, end: Instant) {
        // Only a library's can be.
        let foreign = self.flows[0].spec.startup.is_foreign_controller();
        self.advance(end, true, |e| {
            e.flows[0].truth.completed.is_some() || foreign && e.flows[0].is_broken()
        });
        self.sort_events();
    }

    /// Runs on, without samples and events, until the first flow has every object that it has requested so far, or
    /// until `end`.
    pub fn complete_objects(&mut self, end: Instant) {
        let asked = self.now();
        let waits = move |e: &Self| e.flows[0].app.waits_for_object(asked) && !e.flows[0].is_broken();
        if waits(self) {
            (self.sampling, self.next_sample) = (Sampling::Off, Instant::NEVER);
            self.advance(end, true, |e| !waits(e));
        }
    }

    /// Runs until `end`, or until `stop` returns true after an event. Unlike the others it processes all
    /// events in order of time, which is slower (docs/dev/engine.md, "Look-ahead").
    pub fn run_until(&mut self, end: Instant, stop: impl FnMut(&Self) -> bool) {
        self.advance(end, false, stop);
        self.sort_events();
    }

    /// Processes all events up to `end` and sets the time to it; leaves recorded events unsorted.
    fn step_to(&mut self, end: Instant) {
        self.advance(end, false, |_| false);
    }

    /// Processes events until `end`, or until `stop` returns true. With `ahead` it processes all events of
    /// the first flow's receiving end within the least delay of the path in one batch, then those of the
    /// sending end: neither end reads the state that the other has reached since, so that the result is the
    /// same (docs/dev/engine.md, "Look-ahead").
    fn advance(&mut self, end: Instant, ahead: bool, mut stop: impl FnMut(&Self) -> bool) {
        let receiver = self.flows.first().map_or(End::Client, |f| f.sender().other());
        // A sample after an acknowledgement records the state of both ends at that time.
        let ahead = ahead && self.sampling != Sampling::EachAck;
        let ahead = if ahead { self.net.least_delay(receiver.other()) } else { Span::ZERO };
        let mut stopped = None;
        loop {
            let first = self.net.first();
            while self.next_sample <= first.min(end) {
                self.sample_all();
            }
            if first > end || first == Instant::NEVER {
                break;
            }
            // No packet that leaves at `first` or later arrives before `first + ahead`. A sample is taken
            // before the events of its time.
            let mut until = ((first + ahead).min(self.next_sample) - Span(1)).max(first).min(end);
            for side in [receiver, receiver.other()] {
                let late = until + Span(1);
                while self.net.may_be_due(side, until)
                    && let Some((at, source, other)) = self.net.next(side, until)
                {
                    let at = match self.net.take_clock(side, source) {
                        // A call for each end, so that each is compiled for its end.
                        Due::Line(line) if side == End::Server => {
                            self.drain_line(End::Server, at, line, other.min(late), &mut stop)
                        }
                        Due::Line(line) => self.drain_line(End::Client, at, line, other.min(late), &mut stop),
                        Due::Clock(flow, clock) => {
                            self.cost.events += 1;
                            self.on_clock(flow, clock);
                            stop(self).then_some(at)
                        }
                        Due::Queue => self.drain_queue(side, other.min(late), &mut stop),
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
    }

    /// Puts the recorded events in order of time. They are not where one end ran ahead of the other, and
    /// drops are recorded when the packet enters the path.
    fn sort_events(&mut self) {
        self.trace.events.sort_by_key(|e| e.at);
    }

    /// Processes the arrivals of a line one after the other, as long as no other source of their end has an
    /// event, before `until`. Returns the time at which `stop` returned true, if it did.
    #[allow(clippy::inline_always, reason = "compiled for each end (docs/dev/engine.md)")]
    #[inline(always)]
    fn drain_line(
        &mut self,
        end: End,
        mut at: Instant,
        line: LineId,
        until: Instant,
        stop: &mut impl FnMut(&Self) -> bool,
    ) -> Option<Instant> {
        while let Some(Arrival { packet, mut next }) = self.net.take_arrival(line) {
            self.cost.events += 1;
            if !packet.has_segment() {
                self.on_arrival(end, at, &packet, packet.numbers(), None);
            } else if packet.is_bare() {
                self.on_bare_arrival(end, at, &packet);
            } else {
                self.on_stored_arrival(end, at, line, &packet);
            }
            let mut stops = stop(self);
            if packet.has_followers() && !stops {
                let first = at;
                (at, next) = self.receive_run(end, first, line, until, &packet);
                stops = at > first && stop(self);
            }
            if stops || !self.net.continue_line(line, next, until) {
                self.net.schedule_line(line, next);
                return stops.then_some(at);
            }
            at = next;
        }
        None
    }

    /// Processes the departures from the queue that an end sends into in the same way.
    #[inline(never)]
    fn drain_queue(
        &mut self,
        end: End,
        until: Instant,
        stop: &mut impl FnMut(&Self) -> bool,
    ) -> Option<Instant> {
        loop {
            self.cost.events += self.net.serve_queue(end, until);
            if !self.net.fates.is_empty() {
                self.record_fates();
            }
            self.resume_throttled(end);
            if stop(self) {
                return Some(self.net.now);
            }
            if !self.net.continue_queue(end, until) {
                return None;
            }
        }
    }

    /// Processes the arrival of a packet with [`Packet::has_segment`] at an end.
    #[inline(never)]
    fn on_stored_arrival(&mut self, end: End, at: Instant, line: LineId, packet: &Packet) {
        let segment = self.net.lines[line.index()].take_segment();
        let flow = packet.to.flow();
        let resent = self.flow(flow).ends[end].syn_losses();
        self.on_arrival(end, at, packet, segment.numbers(), Some(&segment));
        self.record_handshake(flow, end, resent);
    }

    /// Processes the arrival of a packet that [is bare](Packet::is_bare) at an end.
    #[inline(never)]
    fn on_bare_arrival(&mut self, end: End, at: Instant, packet: &Packet) {
        self.on_arrival(end, at, packet, packet.bare_numbers(), None);
    }

    /// Processes the arrival of a packet with these numbers at an end, with its segment if that is stored.
    #[allow(clippy::inline_always, reason = "each packet passes here, and what most lack is known")]
    #[inline(always)]
    fn on_arrival(
        &mut self,
        end: End,
        at: Instant,
        packet: &Packet,
        numbers: Numbers,
        stored: Option<&Segment>,
    ) {
        let flow = packet.to.flow();
        let f = &mut self.flows[flow.index()];
        let len = numbers.len;
        if len > 0 && end != f.sender() {
            f.record_arrival(at, packet.sent, len);
        }
        if f.origins[end].captured {
            self.net.capture_arrival(flow, end, stored.copied().unwrap_or_else(|| packet.unpack(numbers)));
        }
        self.net.prepare(f, end);
        let mut sink = self.net.sink(&f.origins[end]);
        let endpoint = &mut f.ends[end];
        let reached_sender = match stored {
            Some(segment) => endpoint.on_segment(at, segment, &mut sink),
            None if endpoint.is_plain(numbers.flags) => endpoint.on_numbers(at, numbers, &mut sink),
            None => endpoint.on_special_segment(at, &packet.unpack(numbers), &mut sink),
        };
        if reached_sender {
            let data = sink.data;
            self.net.finish(f, end, data);
            self.cost.packets += data;
        }
        if !self.net.fates.is_empty() || !f.is_quiet(end) {
            self.finish_event(flow, end);
        } else if reached_sender {
            self.net.arm_end(flow, f, end);
        } else {
            self.net.arm_delayed_ack(flow, f, end);
        }
        let f = self.flow(flow);
        if self.sampling == Sampling::EachAck
            && end == f.sender()
            && f.ends[end].state() == State::Established
        {
            self.sample(flow, at);
        }
    }

    /// Wakes senders that are blocked on the queue of their own interface (`tcp_tsq_handler`).
    fn resume_throttled(&mut self, end: End) {
        while let Some(flow) = self.net.waiting.take_released() {
            if self.flow(flow).ends[end].tx.is_throttled() {
                self.send(flow, end);
                self.finish_event(flow, end);
            }
        }
    }

    /// Processes a clock event. It may be stale: the clock was set to another time since, or its deadline has
    /// moved.
    #[inline(never)]
    fn on_clock(&mut self, flow: FlowId, clock: ClockId) {
        let (f, now) = (&mut self.flows[flow.index()], self.net.now);
        if f.armed[clock.index()] != now {
            return;
        }
        f.armed[clock.index()] = Instant::NEVER;
        if clock == ClockId::APPLICATION {
            self.on_application_clock(flow);
            return;
        }
        let (end, i) = clock.deadline();
        let due = f.ends[end].deadlines()[i];
        if due <= now {
            let resent = f.ends[end].syn_losses();
            self.cost.packets += self.net.call(f, end, |end, now, sink| end.on_timer(now, sink));
            self.record_handshake(flow, end, resent);
            self.finish_event(flow, end);
        } else if due < Instant::NEVER {
            self.net.arm(flow, f, clock, due);
        }
    }

    /// Completes an event of an end: records drops and the sender's events, lets the application act, and
    /// sets the clocks.
    #[inline(never)]
    fn finish_event(&mut self, flow: FlowId, end: End) {
        if !self.net.fates.is_empty() {
            self.record_fates();
        }
        if !self.flow(flow).is_quiet(end) {
            self.handle_events(flow, end);
        }
        self.net.arm_end(flow, &mut self.flows[flow.index()], end);
    }

    #[inline(never)]
    fn handle_events(&mut self, flow: FlowId, end: End) {
        let f = self.flow(flow);
        if end == f.sender() {
            let tx = &f.ends[end].tx;
            let checks_capacity = f.truth.capacity.is_none() && !tx.board().is_empty();
            if !tx.events.is_empty() {
                self.take_sender_events(flow, end);
            }
            if checks_capacity {
                self.check_capacity(flow);
            }
        }
        let f = self.flow(flow);
        let rx = &f.ends[end].rx;
        if rx.delivered() >= f.due[end] || (rx.finished() && !f.closed[end]) {
            self.run_application(flow, end);
        }
    }

    fn take_sender_events(&mut self, flow: FlowId, end: End) {
        let tx = &mut self.flows[flow.index()].ends[end].tx;
        let mut events = std::mem::take(&mut tx.events);
        let rtt = tx.last_rtt();
        for (at, event) in events.drain(..) {
            let t = &mut self.flows[flow.index()].truth;
            let (what, why) = match event {
                Event::Exited(e) => {
                    if !t.restarted {
                        t.exit = Some(e);
                        t.exit_rtt = rtt;
                        t.exit_queue_delay = t.peak_queue_delay;
                        self.recheck_capacity(flow, e.detected_at);
                    }
                    ("exit", Some(e.why.name()))
                }
                Event::Resumed => {
                    if !t.restarted {
                        t.exit = None;
                        t.dropped_in_startup = t.dropped;
                    }
                    ("resumed", None)
                }
                Event::Restarted => {
                    t.restarted = true;
                    ("restart", None)
                }
                Event::Mark => {
                    t.first_mark = t.first_mark.or(Some(at));
                    ("mark", None)
                }
                Event::Loss => {
                    t.learn_of_loss(at);
                    ("loss", None)
                }
                Event::Timeout => {
                    t.learn_of_loss(at);
                    ("timeout", None)
                }
                Event::Recovered { undone } => {
                    t.end_episode(undone);
                    (if undone { "undone" } else { "recovered" }, None)
                }
                Event::Probe => ("probe", None),
                Event::Stall => ("stall", None),
            };
            self.record_event(flow, what, at, || why.map(str::to_string));
        }
    }

    // Applications.

    /// The flow begins, or its next request or write is due.
    fn on_application_clock(&mut self, flow: FlowId) {
        let mut end = End::Client;
        let f = &mut self.flows[flow.index()];
        if f.ends[end].state() == State::Closed {
            self.cost.packets += self.net.call(f, end, |end, now, sink| end.connect(now, sink));
        } else if let Some(action) = f.app.write(self.net.now, f.sender(), f.feedback()) {
            end = f.sender();
            self.act(flow, end, action);
        } else if let Some(bytes) = f.app.request() {
            f.ends[end].tx.write(bytes);
            self.send(flow, end);
        }
        self.finish_event(flow, end);
    }

    /// Lets the application of one end act on what has been delivered to it.
    fn run_application(&mut self, flow: FlowId, end: End) {
        let now = self.net.now;
        let f = &mut self.flows[flow.index()];
        if f.ends[end].state() != State::Established {
            return;
        }
        let rx = &f.ends[end].rx;
        let socket = Socket {
            end,
            is_sender: end == f.sender(),
            delivered: rx.delivered(),
            peer_closed: rx.finished(),
            closed: f.closed[end],
        };
        if !socket.is_sender {
            f.truth.reach_milestones(now, socket.delivered);
        }
        let action = f.app.on_event(now, &socket);
        f.due[end] = action.due.min(Truth::next_milestone(socket.delivered));
        self.act(flow, end, action);
    }

    /// Does what the application of an end decided.
    fn act(&mut self, flow: FlowId, end: End, action: Action) {
        let now = self.net.now;
        let f = &mut self.flows[flow.index()];
        if action.complete && f.truth.completed.is_none() {
            f.truth.completed = Some(now);
        }
        if let Some(at) = action.acts_at {
            self.net.arm_at(end, flow, f, ClockId::APPLICATION, at);
        }
        if action.sends() {
            f.ends[end].tx.write(action.write);
            if action.close {
                f.closed[end] = true;
                f.ends[end].tx.close();
            }
            self.send(flow, end);
            self.record_fates();
        }
    }

    /// Sends what an end may send now, after its application wrote or closed.
    fn send(&mut self, flow: FlowId, end: End) {
        let f = &mut self.flows[flow.index()];
        self.cost.packets += self.net.call(f, end, |end, now, sink| end.send(now, sink));
    }

    // Control by the caller.

    /// Writes `bytes` at the sender of a flow with application [`AppKind::External`], now.
    pub fn write(&mut self, id: FlowId, bytes: u64) {
        let f = &mut self.flows[id.index()];
        debug_assert!(matches!(f.spec.app, AppKind::External { .. }), "its application writes by itself");
        let end = f.sender();
        f.ends[end].tx.write(bytes);
        self.send(id, end);
        self.record_fates();
        self.finish_event(id, end);
    }

    /// Limits the receive window of a flow so that its sender can send the first `bytes` bytes of the
    /// transfer. The limit never decreases.
    fn limit_window(&mut self, id: FlowId, bytes: u64) {
        let f = &mut self.flows[id.index()];
        let end = f.sender().other();
        if f.ends[end].rx.limit_window(1 + bytes) {
            self.cost.packets += self.net.call(f, end, |end, now, sink| end.send_window(now, sink));
            self.finish_event(id, end);
        }
    }

    /// Replaces the controller of a flow's sender; the connection stays as it is.
    pub fn replace_controller(&mut self, id: FlowId, control: AnyController) {
        let f = &mut self.flows[id.index()];
        let end = f.sender();
        f.ends[end].tx.replace_controller(Checked::mid_connection(control));
        self.finish_event(id, end);
    }
}
