//! Packets on their way between the ends, clocks, and the order of events.
//!
//! The elements of a direction compute a packet's arrival when it enters, and packets on their way are kept
//! in the order in which they arrive. So one pending event stands for all packets of a line, and the cost of
//! an event does not grow with the window. Timers are lazy: see docs/dev/engine.md, "Events and timers".

use super::flow::{Control, Flow, Origin};
use super::id::{ClockId, Destination, Due, FlowId, LineId, Source};
use super::packet::{LineQueue, Packet, kind};
use super::queued::{Fate, Queued, Waiting, What};
use super::run::{self, Run};
use crate::ends::{End, PerEnd};
use crate::path::{self, Ecn, Kind, Links, PacketInfo, Path};
use crate::random;
use crate::tcp::endpoint::{DELAYED_ACK_CLOCK, Endpoint};
use crate::tcp::segment::{PSH, Segment, Wire};
use crate::trace::CapturedPacket;
use slowstart::units::{Instant, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A pending event: its time, a tie-breaker and its [`Source`], packed so that one comparison orders two of
/// them.
type Pending = u128;

/// No event is pending.
const IDLE: Pending = Pending::MAX;

/// Where an end of a flow puts the packets it sends during one event: each enters the path at once.
pub(super) struct PacketSink<'a> {
    net: &'a mut Net,
    from: &'a Origin,
    /// Number of data packets sent by a flow's sender so far.
    pub(super) data: u64,
}

impl Wire for PacketSink<'_> {
    #[allow(
        clippy::inline_always,
        reason = "else the segment is written to memory and read back (docs/dev/engine.md)"
    )]
    #[inline(always)]
    fn put_train(&mut self, s: &Segment, n: u32) {
        let Origin { line, flow, end, is_sender, captured } = *self.from;
        let kind = kind(s.len, s.flags);
        let is_data = is_sender && kind == Kind::Data;
        self.data += if is_data { u64::from(n) } else { 0 };
        let info = PacketInfo { bytes: s.wire(), flow: flow.0, kind, ecn: s.ecn };
        let now = self.net.now;
        let mut packet = Packet::new(now, Destination::new(flow, end.other()), s);
        if captured {
            self.net.capture_departure(flow, end, *s, n);
        }
        let direction = leaving(&mut self.net.path, end);
        if !direction.is_simple() || s.ecn.is_capable() {
            let queued = Queued { packet, line, is_data };
            return self.put_special_train(queued, *s, n);
        }
        let pushes = s.has(PSH);
        let is_run = n >= run::LEAST && !packet.has_segment();
        if is_run && self.net.put_run(line, packet, info.bytes, (n, s.len, pushes)) {
            return;
        }
        let direction = leaving(&mut self.net.path, end);
        let queue = &mut self.net.lines[line.index()];
        let extra = self.net.extra[line.index()];
        let idle = queue.line.is_empty();
        for left in (0..n).rev() {
            packet.set_push(pushes && left == 0);
            match direction.pass_simple(now, &info) {
                Ok(at) => {
                    if packet.has_segment() && !packet.set_bare(s) {
                        queue.store_segment(&Segment {
                            seq: packet.seq,
                            flags: packet.flags(),
                            rate_request: direction.grant(s.rate_request),
                            ..*s
                        });
                    }
                    queue.line.push(at + extra, packet);
                }
                Err(d) => self.net.fates.push(Fate { flow, is_data, what: What::Dropped(d, kind) }),
            }
            packet.seq = packet.seq.wrapping_add(s.len);
        }
        if idle && let Some(at) = queue.line.next() {
            self.net.schedule_line(line, at);
        }
    }
}

impl PacketSink<'_> {
    /// Sends a train whose packets may be marked, or over a direction with an element that few paths have. It
    /// is a function of its own so that the code of all other trains stays short (docs/dev/engine.md,
    /// "Inlining").
    #[inline(never)]
    fn put_special_train(&mut self, queued: Queued, s: Segment, n: u32) {
        let Origin { flow, end, .. } = *self.from;
        let info = PacketInfo { bytes: s.wire(), flow: flow.0, kind: kind(s.len, s.flags), ecn: s.ecn };
        let direction = leaving(&mut self.net.path, end);
        if direction.has_discipline() {
            return self.net.enqueue_train(end, &info, queued, s, n);
        }
        let Queued { mut packet, line, is_data } = queued;
        let (now, kind) = (self.net.now, info.kind);
        let queue = &mut self.net.lines[line.index()];
        let extra = self.net.extra[line.index()];
        let idle = queue.line.is_empty();
        let disorders = direction.disorders();
        let first = if disorders { queue.line.next() } else { None };
        for left in (0..n).rev() {
            packet.set_push(s.has(PSH) && left == 0);
            match direction.pass(now, &info) {
                Ok(at) => {
                    let at = at + extra;
                    if info.ecn.is_capable() {
                        packet.set_ecn(if direction.marked() { Ecn::Ce } else { info.ecn });
                    }
                    let numbers_only = kind == Kind::Ack && s.sacks == 0;
                    if numbers_only && direction.filters_acks() && queue.replace_older_ack(at, &packet) {
                        continue;
                    }
                    if disorders {
                        let granted = direction.grant(s.rate_request);
                        let segment = Segment {
                            seq: packet.seq,
                            flags: packet.flags(),
                            ecn: packet.ecn(),
                            rate_request: granted,
                            ..s
                        };
                        for _ in 0..=u32::from(direction.draws_copy()) {
                            queue.insert(at, packet, &segment);
                        }
                        packet.seq = packet.seq.wrapping_add(s.len);
                        continue;
                    }
                    if packet.has_segment() {
                        queue.store_segment(&Segment {
                            seq: packet.seq,
                            flags: packet.flags(),
                            ecn: packet.ecn(),
                            rate_request: direction.grant(s.rate_request),
                            ..s
                        });
                    }
                    queue.line.push(at, packet);
                }
                Err(d) => self.net.fates.push(Fate { flow, is_data, what: What::Dropped(d, kind) }),
            }
            packet.seq = packet.seq.wrapping_add(s.len);
        }
        // A packet that overtook the first of the line arrives before the event that is pending.
        if (idle || disorders)
            && let Some(at) = queue.line.next().filter(|at| Some(*at) != first)
        {
            self.net.schedule_line(line, at);
        }
    }
}

/// The path, the packets on their way, and all pending events.
#[derive(Clone, Debug)]
pub(super) struct Net {
    pub(super) path: Path,
    /// The time of the current event.
    pub(super) now: Instant,
    /// The time of the last event at each end: one end may be ahead of the other (docs/dev/engine.md,
    /// "Look-ahead").
    reached: PerEnd<Instant>,
    seed: u64,
    /// The lines, by [`LineId`].
    pub(super) lines: Vec<LineQueue>,
    /// The extra delay of each line, by [`LineId`].
    pub(super) extra: Vec<Span>,
    /// The delay of their own and the links of the flows of each pair of lines; none where each slot has a pair.
    routes: Vec<(Span, Links)>,
    /// When the first packet of each line arrives, by pair and sender; [`Instant::NEVER`] if the line is
    /// empty. Used for at most [`FEW`] pairs, since a heap would be sifted with every packet; with more,
    /// arrivals are pending in `clocks`.
    heads: Vec<PerEnd<Instant>>,
    /// The pending events of each end.
    clocks: PerEnd<BinaryHeap<Reverse<Pending>>>,
    /// What the path did to packets during the current event, apart from delaying them.
    pub(super) fates: Vec<Fate>,
    /// Packets that wait in queue disciplines.
    pub(super) waiting: Waiting,
    /// Packets of recorded flows at both ends; `None` if they are not captured.
    pub(super) capture: Option<Vec<CapturedPacket>>,
}

/// Number of distinct extra delays up to which every line is checked for the next arrival.
const FEW: usize = 4;

/// A packet that has arrived.
pub(super) struct Arrival {
    /// The packet.
    pub(super) packet: Packet,
    /// When the next packet of the line arrives; [`Instant::NEVER`] if there is none.
    pub(super) next: Instant,
}

impl Net {
    /// A net for flows with these delays of their own, over these links.
    pub(super) fn new(mut path: Path, flows: Vec<(Span, Links)>, seed: u64) -> Self {
        let links: Vec<Links> = flows.iter().map(|f| f.1).collect();
        let longer = path.cross(&links);
        let mut routes: Vec<_> = flows.into_iter().zip(longer).collect();
        routes.sort_unstable();
        routes.dedup();
        let extra = routes.iter().flat_map(|((delay, _), longer)| [*delay, *delay + *longer]).collect();
        let routes: Vec<_> = routes.into_iter().map(|(route, _)| route).collect();
        let few = routes.len() <= FEW;
        Self {
            path,
            now: Instant::ZERO,
            reached: PerEnd::new(Instant::ZERO, Instant::ZERO),
            seed,
            lines: vec![LineQueue::default(); 2 * routes.len()],
            heads: if few {
                vec![PerEnd::new(Instant::NEVER, Instant::NEVER); routes.len()]
            } else {
                Vec::new()
            },
            extra,
            routes,
            clocks: PerEnd::default(),
            fates: Vec::new(),
            waiting: Waiting::default(),
            capture: None,
        }
    }

    /// A net for flows that come and go, at most `slots` at a time. Each slot has lines of its own.
    pub(super) fn with_slots(path: Path, slots: usize, seed: u64) -> Self {
        let mut net = Self::new(path, Vec::new(), seed);
        net.lines.resize(2 * slots, LineQueue::default());
        net.extra.resize(2 * slots, Span::ZERO);
        net
    }

    /// Number of slots of a net [with slots](Net::with_slots).
    pub(super) fn slots(&self) -> usize {
        self.extra.len() / 2
    }

    /// Sets the extra delay of a slot; returns the slot's lines.
    pub(super) fn set_slot(&mut self, slot: usize, extra: Span) -> PerEnd<LineId> {
        self.extra[2 * slot..2 * slot + 2].fill(extra);
        self.waiting.forget_waits(FlowId(slot as u32));
        Self::pair(slot)
    }

    /// The lines into which the server and the client of a flow with this delay of its own send, which crosses
    /// these links.
    pub(super) fn lines_of(&self, extra: Span, links: Links) -> PerEnd<LineId> {
        Self::pair(self.routes.partition_point(|route| *route < (extra, links)))
    }

    fn pair(i: usize) -> PerEnd<LineId> {
        PerEnd::new(LineId::new(i, End::Server), LineId::new(i, End::Client))
    }

    /// True if no packet is on its way over these lines.
    pub(super) fn is_empty(&self, lines: PerEnd<LineId>) -> bool {
        lines.iter().all(|l| {
            let queue = &self.lines[l.index()];
            queue.line.is_empty() && queue.queued == 0
        })
    }

    /// When the first event of either end is due; [`Instant::NEVER`] if there is none.
    pub(super) fn first(&self) -> Instant {
        // A loop: a chain of iterators is not unrolled.
        let of = |at: Instant, ends: &PerEnd<Instant>| at.min(ends[End::Server]).min(ends[End::Client]);
        let clocks = self.first_clock(End::Server).min(self.first_clock(End::Client));
        self.heads.iter().fold(of(clocks, &self.waiting.pending), of)
    }

    /// The least time that any packet takes from `end` to its peer.
    pub(super) fn least_delay(&mut self, end: End) -> Span {
        leaving(&mut self.path, end).least_delay()
    }

    /// False if no event of an end is due by `until`: where all events are in the heap, as with slots, that is told
    /// without [`Net::next`].
    #[inline]
    pub(super) fn may_be_due(&self, end: End, until: Instant) -> bool {
        !self.heads.is_empty() || self.first_clock(end).min(self.waiting.pending[end]) <= until
    }

    /// Sets the time to the next event of an end, if it is due by `until`. Returns its time and source, and
    /// when the next event of any other source of that end is due. The event is to be taken by
    /// [`Net::take_clock`] and then, if it is not a clock's, by [`Net::take_arrival`].
    pub(super) fn next(&mut self, end: End, until: Instant) -> Option<(Instant, Source, Instant)> {
        let clock = self.clocks[end].peek().map_or(IDLE, |p| p.0);
        let (mut at, mut source) = (time(clock), source_of(clock));
        let queue = self.waiting.pending[end];
        let mut other = queue.max(at);
        (at, source) = if queue < at { (queue, Source::QUEUE) } else { (at, source) };
        for (i, heads) in self.heads.iter().enumerate() {
            let (head, line) = (heads[end.other()], Source::line(LineId::new(i, end.other())));
            other = other.min(head.max(at));
            (at, source) = if head < at { (head, line) } else { (at, source) };
        }
        if at > until || at == Instant::NEVER {
            return None;
        }
        if other == at {
            source = self.break_tie(end, at, clock);
        }
        self.advance_to(end, at);
        Some((at, source, other))
    }

    /// When the next clock of an end is due; [`Instant::NEVER`] if none is.
    #[inline]
    pub(super) fn first_clock(&self, end: End) -> Instant {
        self.clocks[end].peek().map_or(Instant::NEVER, |p| time(p.0))
    }

    /// Sets the time to `at`, the time of an event of `end`.
    #[inline]
    pub(super) fn advance_to(&mut self, end: End, at: Instant) {
        debug_assert!(at >= self.reached[end], "an event before {}", self.reached[end].0);
        (self.now, self.reached[end]) = (at, at);
    }

    /// Returns which of several sources of an end with events at the same time comes first.
    #[inline(never)]
    fn break_tie(&self, end: End, at: Instant, clock: Pending) -> Source {
        let lines = self.heads.iter().enumerate().filter(|(_, heads)| heads[end.other()] == at);
        let lines = lines.map(|(i, _)| Source::line(LineId::new(i, end.other())));
        let queue = (self.waiting.pending[end] == at).then_some(Source::QUEUE);
        let keys = lines.chain(queue).map(|source| key(self.seed, at, source));
        source_of(keys.fold(clock, Pending::min))
    }

    /// Takes the event that [`Net::next`] returned, if it is in the heap of clocks.
    pub(super) fn take_clock(&mut self, end: End, source: Source) -> Due {
        let due = source.split(self.lines.len());
        let is_in_heap = match due {
            Due::Clock(..) => true,
            Due::Line(_) => self.heads.is_empty(),
            Due::Queue => false,
        };
        if is_in_heap {
            self.clocks[end].pop();
        }
        due
    }

    /// Takes the first packet of a line. The segment of one with [`Packet::has_segment`] is then to be taken
    /// by [`LineQueue::take_segment`].
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    pub(super) fn take_arrival(&mut self, line: LineId) -> Option<Arrival> {
        let queue = &mut self.lines[line.index()];
        // Where packets overtake, the event of one that was overtaken is pending twice.
        let (at, &packet) = queue.line.first().filter(|(at, _)| *at <= self.now)?;
        debug_assert_eq!(at, self.now, "an arrival that is late");
        if packet.has_followers() {
            queue.step_run();
        } else {
            queue.line.skip();
        }
        Some(Arrival { packet, next: queue.line.next().unwrap_or(Instant::NEVER) })
    }

    /// Sets the time to `at`, the arrival of a line's next packet, if no other source of the receiving end
    /// has an event by then (`other` is when the next is due, what was set since excluded). Returns whether
    /// it did.
    #[inline]
    pub(super) fn continue_line(&mut self, line: LineId, at: Instant, other: Instant) -> bool {
        let end = line.sender().other();
        at < self.waiting.pending[end] && self.continue_end(end, at, other)
    }

    /// [`Self::continue_line`] for the next departure from the queue that an end sends into.
    pub(super) fn continue_queue(&mut self, end: End, other: Instant) -> bool {
        self.continue_end(end, self.waiting.pending[end], other)
    }

    #[inline]
    fn continue_end(&mut self, end: End, at: Instant, other: Instant) -> bool {
        let first = at < self.first_clock(end).min(other);
        if first {
            self.advance_to(end, at);
        }
        first
    }

    /// Makes the arrival of a line's first packet at `at` a pending event; [`Instant::NEVER`] if the line is
    /// empty.
    #[inline]
    pub(super) fn schedule_line(&mut self, line: LineId, at: Instant) {
        match self.heads.get_mut(line.pair()) {
            Some(heads) => heads[line.sender()] = at,
            None if at == Instant::NEVER => self.lines[line.index()].line.rewind(),
            None => {
                let key = key(self.seed, at, Source::line(line));
                self.clocks[line.sender().other()].push(Reverse(key));
            }
        }
    }

    /// Puts `n` packets of `bytes` bytes, `len` of them payload, into a line as one [`Run`], if its direction
    /// can take them so. Returns whether it did.
    #[inline(never)]
    fn put_run(
        &mut self,
        line: LineId,
        packet: Packet,
        bytes: u32,
        (n, len, pushes): (u32, u32, bool),
    ) -> bool {
        let direction = leaving(&mut self.path, line.sender());
        let Some((at, spacing)) = direction.pass_run(self.now, bytes, n) else { return false };
        let at = at + self.extra[line.index()];
        let queue = &mut self.lines[line.index()];
        let idle = queue.line.is_empty();
        queue.push_run(at, packet, Run { left: n - 1, len, pushes, spacing });
        if idle {
            self.schedule_line(line, at);
        }
        true
    }

    /// Captures `n` packets that leave an end of a flow. Takes the segment by value: a reference would force
    /// it into memory for all callers.
    #[cold]
    fn capture_departure(&mut self, flow: FlowId, end: End, s: Segment, n: u32) {
        let (at, flow, end) = (self.now, flow.0, end as u8);
        if let Some(packets) = &mut self.capture {
            packets.extend(s.train(n).map(|segment| CapturedPacket { at, flow, end, leaves: true, segment }));
        }
    }

    /// Captures a segment that arrives at an end of a flow.
    #[cold]
    pub(super) fn capture_arrival(&mut self, flow: FlowId, end: End, segment: Segment) {
        let (at, flow, end) = (self.now, flow.0, end as u8);
        if let Some(packets) = &mut self.capture {
            packets.push(CapturedPacket { at, flow, end, leaves: false, segment });
        }
    }

    /// Sets a clock of a flow to `at`.
    #[inline(never)]
    pub(super) fn arm(&mut self, i: FlowId, flow: &mut Flow, clock: ClockId, at: Instant) {
        self.arm_at(clock.end(), i, flow, clock, at);
    }

    /// Sets the application's clock, which fires at the end where the application acts next.
    #[inline]
    pub(super) fn arm_at(&mut self, end: End, i: FlowId, flow: &mut Flow, clock: ClockId, at: Instant) {
        flow.armed[clock.index()] = at;
        let source = Source::clock(self.lines.len(), i, clock);
        self.clocks[end].push(Reverse(key(self.seed, at, source)));
    }

    /// Sets all clocks of an end to its deadlines.
    #[inline]
    pub(super) fn arm_end(&mut self, i: FlowId, flow: &mut Flow, end: End) {
        for (c, at) in flow.ends[end].deadlines().into_iter().enumerate() {
            self.arm_if_earlier(i, flow, ClockId::of(end, c), at);
        }
    }

    /// Sets the clock of an end's delayed ACK: enough after an event that did not reach its sending half.
    #[inline]
    pub(super) fn arm_delayed_ack(&mut self, i: FlowId, flow: &mut Flow, end: End) {
        let at = flow.ends[end].receiver_deadline();
        self.arm_if_earlier(i, flow, ClockId::of(end, DELAYED_ACK_CLOCK), at);
    }

    /// Sets a clock to `at` if it is not pending for an earlier time. A clock pending for an earlier time is
    /// set again when it fires; one pending for a later time fires in vain.
    #[inline]
    fn arm_if_earlier(&mut self, i: FlowId, flow: &mut Flow, clock: ClockId, at: Instant) {
        if at < flow.armed[clock.index()] {
            self.arm(i, flow, clock, at);
        }
    }

    /// Gives an end the state of the interface into which it sends.
    #[cold]
    fn update_interface(&mut self, flow: &mut Flow, end: End) {
        let mut interface = leaving(&mut self.path, end).interface(self.now, flow.spec.profile.packet());
        if let Some(held) = interface.as_mut().and_then(|i| i.held.as_mut()) {
            *held = self.waiting.held(flow.origins[end].flow);
        }
        flow.ends[end].tx.interface = interface;
    }

    /// Returns the sink for the packets that an end sends during one event.
    #[inline]
    pub(super) fn sink<'a>(&'a mut self, from: &'a Origin) -> PacketSink<'a> {
        PacketSink { net: self, from, data: 0 }
    }

    /// Gives an end the state of the interface into which it sends, if the path begins with one: before each
    /// call of an endpoint.
    #[inline]
    pub(super) fn prepare(&mut self, flow: &mut Flow, end: End) {
        if leaving(&mut self.path, end).is_interface() {
            self.update_interface(flow, end);
        }
    }

    /// Updates the flow after an end has sent `data` data packets during the event.
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    pub(super) fn finish(&mut self, flow: &mut Flow, end: End, data: u64) {
        let now = self.now;
        if flow.origins[end].is_sender {
            let min_rtt = flow.ends[end].tx.rtt().min().unwrap_or(Span::MAX);
            flow.one_way.record_min_rtt(now, min_rtt);
        }
        let direction = leaving(&mut self.path, end);
        if data > 0 && !direction.has_discipline() {
            // The last packet of a burst waits longest: as long as a packet sent now would, its own
            // transmission included.
            let wait = direction.queue_delay(now);
            flow.truth.peak_queue_delay = flow.truth.peak_queue_delay.max(wait);
        }
    }

    /// Calls an endpoint with the time and a sink for its packets; returns the number of data packets that
    /// the flow's sender sent.
    pub(super) fn call(
        &mut self,
        flow: &mut Flow,
        end: End,
        call: impl FnOnce(&mut Endpoint<Control>, Instant, &mut PacketSink),
    ) -> u64 {
        self.prepare(flow, end);
        let mut sink = self.sink(&flow.origins[end]);
        call(&mut flow.ends[end], sink.net.now, &mut sink);
        let data = sink.data;
        self.finish(flow, end, data);
        data
    }
}

/// The direction of the path that packets from an end take.
pub(super) fn leaving(path: &mut Path, end: End) -> &mut path::Direction {
    match end {
        End::Server => &mut path.forward,
        End::Client => &mut path.back,
    }
}

/// The time of a pending event; [`Instant::NEVER`] for [`IDLE`].
fn time(p: Pending) -> Instant {
    Instant((p >> 64) as u64)
}

/// The source of a pending event.
fn source_of(p: Pending) -> Source {
    Source(p as u32)
}

/// Packs a pending event. A hash of seed, time and source breaks ties, so that no flow always comes first;
/// packets of one line keep their order.
fn key(seed: u64, at: Instant, source: Source) -> Pending {
    let tie = random::at(seed ^ at.0, u64::from(source.0)) as u32;
    u128::from(at.0) << 64 | u128::from(tie) << 32 | u128::from(source.0)
}
