//! A link whose queue decides late: at dequeue, by flow, or by rate. What it does with a packet is known only
//! when the packet leaves the queue, so that it needs an event of its own: [`Bottleneck::next`].

use slowstart::units::{Bytes, Instant, Span};

use super::carrier::Carrier;
use super::link::{RandomDrop, Service};
use super::outage::Outage;
use super::queue::{Departure, Packet, Queue};
use super::{Cause, Dropped, Ecn, PacketInfo};

/// What may stand beside a discipline.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// Drops of a gateway before the queue.
    pub(super) random_drop: Option<RandomDrop>,
    /// ECN-capable packets that waited longer than this are marked.
    pub(super) mark_above: Option<Span>,
    pub(super) outage: Option<Outage>,
}

/// A link with a queue discipline.
#[derive(Clone, Debug)]
pub(super) struct Bottleneck {
    service: Service,
    queue: Queue,
    carrier: Option<Carrier>,
    /// When the link takes the next packet, or an outage begins that flushes the queue; [`Instant::NEVER`] if
    /// no packet waits.
    next: Instant,
    /// When the link will have sent the last packet and find the queue empty, which disciplines notice.
    idle: Instant,
    beside: Beside,
    /// The queue as it was built: a flushed one begins anew.
    empty: Option<Box<Queue>>,
}

impl Bottleneck {
    pub(super) fn new(service: Service, queue: Queue, carrier: Option<Carrier>) -> Self {
        let never = Instant::NEVER;
        let beside = Beside::default();
        Self { service, queue, carrier, next: never, idle: never, beside, empty: None }
    }

    /// Adds other elements to it.
    pub(super) fn with(self, beside: Beside) -> Self {
        Self { beside, ..self }
    }

    /// Adds outages.
    pub(super) fn with_outage(mut self, outage: Outage) -> Self {
        self.empty = Some(Box::new(self.queue.clone()));
        self.beside.outage = Some(outage);
        self
    }

    /// When [`Self::serve`] has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        (self.next < Instant::NEVER).then_some(self.next)
    }

    /// Puts a packet into the queue at `now`, after the packets served by then.
    pub(super) fn enqueue(&mut self, now: Instant, p: &PacketInfo, id: u32, out: &mut Vec<Departure>) {
        if self.next <= now {
            self.serve_at_once(now, out);
        }
        let packet = Packet { id, flow: p.flow, bytes: p.bytes, ecn: p.ecn, at: now };
        if let Some(cause) = self.refuses(now) {
            out.push(Departure::dropped(&packet, now, cause));
            return;
        }
        if self.idle <= now {
            self.queue.dequeue(self.idle, out);
        }
        self.idle = Instant::NEVER;
        self.queue.enqueue(packet, out);
        if let Some(carrier) = &mut self.carrier {
            carrier.on_backlog(now, self.queue.bytes());
        }
        // What is due later stays so while anything waits.
        if self.next == Instant::NEVER || self.queue.packets() == 0 {
            self.look(now);
            if self.next <= now {
                self.serve_at_once(now, out);
            }
        }
    }

    /// Why a packet that comes now does not reach the queue.
    #[inline]
    fn refuses(&mut self, now: Instant) -> Option<Cause> {
        if self.beside.outage.as_ref().is_some_and(|o| o.refuses(now)) {
            return Some(Cause::Outage);
        }
        let gateway = self.beside.random_drop.as_mut()?;
        if Bytes(self.queue.bytes()) <= gateway.above {
            return None;
        }
        gateway.stream.chance(gateway.share).then_some(Cause::Aqm)
    }

    /// When the link has sent the packets before.
    #[inline]
    fn free(&self, now: Instant) -> Instant {
        match &self.beside.outage {
            None => self.service.free(now),
            Some(outage) => outage.after(now, |t| self.service.free(t)),
        }
    }

    #[inline]
    fn look(&mut self, now: Instant) {
        self.next = Instant::NEVER;
        if self.queue.packets() > 0 {
            let flushed = self.beside.outage.as_ref().map_or(Instant::NEVER, |o| o.next_flush(now));
            self.next = self.free(now).min(flushed);
        }
    }

    /// Sends a packet at `at`; when its last bit leaves, or its loss.
    #[inline]
    fn send(&mut self, at: Instant, bytes: u32) -> Result<Instant, Dropped> {
        match &self.beside.outage {
            None => Ok(self.service.send(at, bytes)),
            Some(outage) => Self::send_despite(outage, &mut self.service, at, bytes),
        }
    }

    #[cold]
    fn send_despite(
        outage: &Outage,
        service: &mut Service,
        at: Instant,
        bytes: u32,
    ) -> Result<Instant, Dropped> {
        let left = outage.leaves(at, |t| service.send(t, bytes));
        let flush = outage.next_flush(at);
        if left > flush {
            service.abandon(outage.link_time(flush));
            return Err(Dropped::new(flush, Cause::Outage));
        }
        Ok(left)
    }

    /// Empties the queue, whose outage begins.
    #[cold]
    fn flush(&mut self, at: Instant, out: &mut Vec<Departure>) {
        let first = out.len();
        while self.queue.packets() > 0 {
            if let Some(p) = self.queue.dequeue(at, out) {
                out.push(Departure::dropped(&p, at, Cause::Outage));
            }
        }
        for d in &mut out[first..] {
            d.outcome = Err(Dropped::new(at, Cause::Outage));
        }
        if let Some(empty) = &self.empty {
            self.queue = Queue::clone(empty);
        }
        if let Some(outage) = &self.beside.outage {
            self.service.abandon(outage.link_time(at));
        }
    }

    /// [`Self::serve`] when a packet comes: mostly others wait, and none leaves then.
    #[inline(never)]
    fn serve_at_once(&mut self, now: Instant, out: &mut Vec<Departure>) {
        self.serve(now, out);
    }

    /// Sends what may leave the queue up to `now`: each with the time at which its last bit leaves, or its
    /// drop.
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    pub(super) fn serve(&mut self, now: Instant, out: &mut Vec<Departure>) {
        while self.next <= now {
            let at = self.next;
            if self.beside.outage.as_ref().is_some_and(|o| o.refuses(at)) {
                self.flush(at, out);
            } else if let Some(p) = self.queue.dequeue(at, out) {
                let bytes = self.carrier.as_mut().map_or(p.bytes, |c| c.cost(at, p.bytes));
                let outcome = self.send(at, bytes);
                let waited = at.since(p.at);
                let marked = p.ecn.is_capable() && self.beside.mark_above.is_some_and(|above| waited > above);
                let ecn = if marked { Ecn::Ce } else { p.ecn };
                out.push(Departure { id: p.id, bytes: p.bytes, ecn, waited, outcome, stays: false });
            }
            self.look(at);
            if self.next == Instant::NEVER {
                self.idle = self.free(at);
            }
        }
    }

    /// True if its queue is meant to mark packets.
    pub(super) fn marks(&self) -> bool {
        self.queue.marks() || self.beside.mark_above.is_some()
    }

    /// Bytes that wait.
    pub(super) fn backlog(&self) -> Bytes {
        Bytes(self.queue.bytes())
    }

    /// How long the packets that wait need in all, by what the link carries in the next second; an estimate.
    pub(super) fn wait(&self, now: Instant) -> Span {
        let second = self.service.capacity(now, now + Span::secs(1)).0.max(1);
        self.free(now).since(now) + Span::secs(1).scale(self.queue.bytes(), second)
    }

    pub(super) fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        let at = |t| self.beside.outage.as_ref().map_or(t, |outage| outage.link_time(t));
        self.service.capacity(at(from), at(to))
    }
}
