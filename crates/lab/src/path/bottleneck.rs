//! A link whose queue decides late: at dequeue, by flow, or by rate. What it does with a packet is known only when the packet
//! leaves the queue, so that it needs an event of its own: [`Bottleneck::next`].

use slowstart::units::{Bytes, Instant, Span};

use super::PacketInfo;
use super::carrier::Carrier;
use super::link::Service;
use super::queue::{Departure, Packet, Queue};

/// A link with a queue discipline.
#[derive(Clone, Debug)]
pub(super) struct Bottleneck {
    service: Service,
    queue: Queue,
    carrier: Option<Carrier>,
    /// When the link takes the next packet; [`Instant::NEVER`] if none waits.
    next: Instant,
    /// When the link will have sent the last packet and find the queue empty, which disciplines notice.
    idle: Instant,
}

impl Bottleneck {
    pub(super) fn new(service: Service, queue: Queue, carrier: Option<Carrier>) -> Self {
        Self { service, queue, carrier, next: Instant::NEVER, idle: Instant::NEVER }
    }

    /// When [`Self::serve`] has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        (self.next < Instant::NEVER).then_some(self.next)
    }

    /// Puts a packet into the queue at `now`, after the packets served by then.
    pub(super) fn enqueue(&mut self, now: Instant, p: &PacketInfo, id: u32, out: &mut Vec<Departure>) {
        self.serve(now, out);
        if self.idle <= now {
            self.queue.dequeue(self.idle, out);
        }
        self.idle = Instant::NEVER;
        let packet = Packet { id, flow: p.flow, bytes: p.bytes, ecn: p.ecn, at: now };
        self.queue.enqueue(packet, out);
        if let Some(carrier) = &mut self.carrier {
            carrier.on_backlog(now, self.queue.bytes());
        }
        self.look(now);
        self.serve(now, out);
    }

    fn look(&mut self, now: Instant) {
        self.next = if self.queue.packets() > 0 { self.service.free(now) } else { Instant::NEVER };
    }

    /// Sends what may leave the queue up to `now`: each with the time at which its last bit leaves, or its drop.
    pub(super) fn serve(&mut self, now: Instant, out: &mut Vec<Departure>) {
        while self.next <= now {
            let at = self.next;
            if let Some(p) = self.queue.dequeue(at, out) {
                let bytes = self.carrier.as_mut().map_or(p.bytes, |c| c.cost(at, p.bytes));
                let sent = self.service.send(at, bytes);
                let waited = at.since(p.at);
                out.push(Departure { id: p.id, bytes: p.bytes, ecn: p.ecn, waited, outcome: Ok(sent) });
            }
            self.look(at);
            if self.next == Instant::NEVER {
                self.idle = self.service.free(at);
            }
        }
    }

    /// True if its queue is meant to mark packets.
    pub(super) fn marks(&self) -> bool {
        self.queue.marks()
    }

    /// Bytes that wait.
    pub(super) fn backlog(&self) -> Bytes {
        Bytes(self.queue.bytes())
    }

    /// How long the packets that wait need in all, by what the link carries in the next second; an estimate.
    pub(super) fn wait(&self, now: Instant) -> Span {
        let second = self.service.capacity(now, now + Span::secs(1)).0.max(1);
        self.service.free(now).since(now) + Span::secs(1).scale(self.queue.bytes(), second)
    }

    pub(super) fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        self.service.capacity(from, to)
    }
}
