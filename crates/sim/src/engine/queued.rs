//! Packets that wait in a queue discipline: they enter their line when they leave the queue.

use super::End;
use super::id::{FlowId, LineId};
use super::net::{Net, leaving};
use super::packet::Packet;
use crate::ends::PerEnd;
use crate::path::queue::Departure;
use crate::path::{Dropped, Kind, PacketInfo};
use crate::tcp::segment::{PSH, Segment};
use slowstart::units::{Bytes, Instant, Span};
use std::collections::VecDeque;

/// What the path did to a packet.
#[derive(Copy, Clone, Debug)]
pub(super) struct Fate {
    /// Its flow.
    pub(super) flow: FlowId,
    /// True if it is data of the flow's sender.
    pub(super) is_data: bool,
    pub(super) what: What,
}

/// What the path may do to a packet, apart from delaying it.
#[derive(Copy, Clone, Debug)]
pub(super) enum What {
    Dropped(Dropped, Kind),
    /// It waited longer than any packet of its flow before.
    Waited(Span),
}

/// A packet in a queue discipline.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Queued {
    pub(super) packet: Packet,
    /// The line that it will enter.
    pub(super) line: LineId,
    pub(super) is_data: bool,
}

/// All packets in queue disciplines, by the number that the discipline has for each.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    packets: Vec<Queued>,
    /// The segments of those with [`Packet::has_segment`], at the same places.
    segments: Vec<Segment>,
    free: Vec<u32>,
    /// When the next departure of each end's direction is pending; [`Instant::NEVER`] if none.
    pub(super) pending: PerEnd<Instant>,
    /// The longest wait of data of each flow.
    longest: Vec<Span>,
    departures: Vec<Departure>,
    /// Bytes of each flow in the queue of its sender's own interface.
    held: Vec<Bytes>,
    /// The flows of which packets left that, since the engine looked last.
    released: VecDeque<FlowId>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            packets: Vec::new(),
            segments: Vec::new(),
            free: Vec::new(),
            pending: PerEnd::new(Instant::NEVER, Instant::NEVER),
            longest: Vec::new(),
            departures: Vec::new(),
            held: Vec::new(),
            released: VecDeque::new(),
        }
    }
}

impl Waiting {
    /// Adds a packet; its segment is to be [stored](Waiting::store_segment) if it has one.
    #[inline]
    fn insert(&mut self, queued: Queued) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Queued::default());
            self.packets.len() as u32 - 1
        });
        self.packets[id as usize] = queued;
        id
    }

    #[inline(never)]
    fn store_segment(&mut self, id: u32, segment: Segment) {
        let places = self.packets.len().max(self.segments.len());
        self.segments.resize(places, Segment::default());
        self.segments[id as usize] = segment;
    }

    /// Forgets the longest wait of a flow, whose place another one takes.
    pub(super) fn forget_waits(&mut self, flow: FlowId) {
        if let Some(longest) = self.longest.get_mut(flow.index()) {
            *longest = Span::ZERO;
        }
    }

    /// What a flow has in the queue of its sender's own interface.
    pub(super) fn held(&self, flow: FlowId) -> Bytes {
        self.held.get(flow.index()).copied().unwrap_or_default()
    }

    /// Takes a flow of which packets have left the queue of its sender's own interface.
    #[inline]
    pub(super) fn take_released(&mut self) -> Option<FlowId> {
        self.released.pop_front()
    }

    /// Counts a packet that enters the queue of its sender's own interface.
    #[cold]
    fn hold(&mut self, flow: FlowId, bytes: u32) {
        if self.held.len() <= flow.index() {
            self.held.resize(flow.index() + 1, Bytes::ZERO);
        }
        self.held[flow.index()] += Bytes(u64::from(bytes));
    }

    /// Counts a packet that left it.
    #[cold]
    fn release(&mut self, flow: FlowId, bytes: u32) {
        self.held[flow.index()] = self.held[flow.index()] - Bytes(u64::from(bytes));
        if self.released.back() != Some(&flow) {
            self.released.push_back(flow);
        }
    }

    /// True if no packet of the flow waited as long before.
    fn is_longest(&mut self, flow: FlowId, waited: Span) -> bool {
        if self.longest.len() <= flow.index() {
            self.longest.resize(flow.index() + 1, Span::ZERO);
        }
        let longest = &mut self.longest[flow.index()];
        let is_longer = waited > *longest;
        *longest = waited.max(*longest);
        is_longer
    }
}

impl Net {
    /// Puts `n` packets that an end sends into the queue discipline of its direction.
    #[inline]
    pub(super) fn enqueue_train(
        &mut self,
        end: End,
        info: &PacketInfo,
        mut queued: Queued,
        s: Segment,
        n: u32,
    ) {
        let mut departures = std::mem::take(&mut self.waiting.departures);
        let direction = leaving(&mut self.path, end);
        let is_host = direction.has_host_queue();
        self.lines[queued.line.index()].queued += n as usize;
        for left in (0..n).rev() {
            queued.packet.set_push(s.has(PSH) && left == 0);
            let id = self.waiting.insert(queued);
            if queued.packet.has_segment() {
                let (seq, flags) = (queued.packet.seq, queued.packet.flags());
                let rate_request = direction.grant(s.rate_request);
                self.waiting.store_segment(id, Segment { seq, flags, rate_request, ..s });
            }
            if is_host {
                self.waiting.hold(queued.packet.to.flow(), info.bytes);
            }
            direction.enqueue(self.now, info, id, &mut departures);
            queued.packet.seq = queued.packet.seq.wrapping_add(s.len);
        }
        self.forward(end, departures);
    }

    /// Dequeues what may leave an end's direction now, and at later times before `until` and before
    /// any clock of the end. Returns at how many times something could; the time is the last of them. A drop ends
    /// that, and what leaves the sender's own interface, since both may cause more at their time.
    pub(super) fn serve_queue(&mut self, end: End, until: Instant) -> u64 {
        let mut departures = std::mem::take(&mut self.waiting.departures);
        let limit = self.first_clock(end).min(until);
        let direction = leaving(&mut self.path, end);
        let limit = if direction.has_host_queue() { self.now } else { limit };
        let (last, times) = direction.serve_until(self.now, limit, &mut departures);
        self.advance_to(end, last);
        self.forward(end, departures);
        times
    }

    /// Puts departures into their lines, records what happened to them, and notes when the next one is due.
    #[inline]
    fn forward(&mut self, end: End, mut departures: Vec<Departure>) {
        // Mostly none leaves when a packet comes.
        if !departures.is_empty() {
            self.forward_all(end, &departures);
            departures.clear();
        }
        self.waiting.departures = departures;
        self.waiting.pending[end] = leaving(&mut self.path, end).next().unwrap_or(Instant::NEVER);
    }

    #[inline(never)]
    fn forward_all(&mut self, end: End, departures: &[Departure]) {
        let is_host = leaving(&mut self.path, end).has_host_queue();
        for d in departures {
            let Queued { mut packet, line, is_data } = self.waiting.packets[d.id as usize];
            let flow = packet.to.flow();
            if is_host {
                self.waiting.release(flow, d.bytes);
            }
            let mut record = |what| self.fates.push(Fate { flow, is_data, what });
            if is_data && self.waiting.is_longest(flow, d.waited) {
                record(What::Waited(d.waited));
            }
            packet.set_ecn(d.ecn);
            match d.outcome {
                Ok(at) => self.enter_line(line, at, packet, d.id),
                Err(dropped) => record(What::Dropped(dropped, packet.kind())),
            }
            if !d.stays {
                self.lines[line.index()].queued -= 1;
                self.waiting.free.push(d.id);
            }
        }
    }

    fn enter_line(&mut self, line: LineId, at: Instant, packet: Packet, id: u32) {
        let direction = leaving(&mut self.path, line.sender());
        let queue = &mut self.lines[line.index()];
        let at = at + self.extra[line.index()];
        if direction.filters_acks() && packet.is_plain_ack() && queue.replace_older_ack(at, &packet) {
            return;
        }
        if direction.disorders() {
            let first = queue.line.next();
            let segment = self.waiting.segments.get(id as usize).copied().unwrap_or_default();
            let segment = Segment { ecn: packet.ecn(), ..segment };
            for _ in 0..=u32::from(direction.draws_copy()) {
                queue.insert(at, packet, &segment);
            }
            if let Some(at) = queue.line.next().filter(|at| Some(*at) != first) {
                self.schedule_line(line, at);
            }
            return;
        }
        if packet.has_segment() {
            let segment = Segment { ecn: packet.ecn(), ..self.waiting.segments[id as usize] };
            queue.store_segment(&segment);
        }
        let idle = queue.line.is_empty();
        queue.line.push(at, packet);
        if idle {
            self.schedule_line(line, at);
        }
    }
}
