//! A netem at the beginning of a direction, as on the interface of the end that sends: what leaves it enters
//! the link, or the queue discipline of that.

use slowstart::units::{Bytes, Instant, Rate, Span};

use super::super::link::Link;
use super::super::queue::{Departure, Packet};
use super::super::{Cause, Direction, Dropped, Ecn, Kind, PacketInfo};
use super::{Held, Netem, Spec};
use crate::random::Stream;

/// A netem, and what is known of the packets that have left it.
#[derive(Clone, Debug)]
pub(in crate::path) struct Stage {
    netem: Netem,
    rate: Option<Rate>,
    /// Of packets in the discipline behind it, by their number there: how long each waited here, and whether
    /// it is corrupt.
    behind: Vec<(Span, bool)>,
    /// Of each number that its owner has for a packet: how many copies are under way.
    copies: Vec<u8>,
}

/// The number of a packet or of its copy behind netem.
const fn number(id: u32, is_copy: bool) -> u32 {
    id << 1 | is_copy as u32
}

impl Stage {
    pub(in crate::path) fn new(spec: &Spec, stream: Stream) -> Self {
        let rate = spec.rate();
        Self { netem: Netem::new(spec.clone(), stream), rate, behind: Vec::new(), copies: Vec::new() }
    }

    pub(in crate::path) fn next(&self) -> Option<Instant> {
        self.netem.next()
    }

    /// The constant part of its delay.
    pub(in crate::path) fn delay(&self) -> Span {
        self.netem.spec.delay()
    }

    /// How long a packet that comes now would wait for its rate.
    pub(in crate::path) fn wait(&self, now: Instant) -> Span {
        self.netem.wait(now)
    }

    /// Bytes that wait for its rate.
    pub(in crate::path) fn backlog(&self, now: Instant) -> Bytes {
        self.rate.map_or(Bytes::ZERO, |rate| rate.over(self.wait(now)))
    }

    /// What its rate lets through.
    pub(in crate::path) fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        self.rate.map_or(Bytes::MAX, |rate| rate.over(to.since(from)))
    }

    /// True if it marks packets.
    pub(in crate::path) fn marks(&self) -> bool {
        self.netem.spec.ecn
    }

    fn enter(&mut self, packet: Packet) -> Result<(), Cause> {
        let copied = self.netem.enqueue(packet)?;
        let id = packet.id as usize;
        if self.copies.len() <= id {
            self.copies.resize(id + 1, 0);
        }
        self.copies[id] = 1 + u8::from(copied);
        Ok(())
    }

    fn note(&mut self, number: u32, waited: Span, corrupt: bool) {
        let number = number as usize;
        if self.behind.len() <= number {
            self.behind.resize(number + 1, (Span::ZERO, false));
        }
        self.behind[number] = (waited, corrupt);
    }

    /// Gives a departure the number that its owner knows.
    fn restore(&mut self, d: &mut Departure, corrupt: bool) {
        if let (true, Ok(at)) = (corrupt, d.outcome) {
            d.outcome = Err(Dropped::new(at, Cause::Random));
        }
        d.id >>= 1;
        let copies = &mut self.copies[d.id as usize];
        *copies -= 1;
        d.stays = *copies > 0;
    }
}

impl Direction {
    /// Sends a packet at `now` into netem.
    #[cold]
    pub(in crate::path) fn enter_netem(
        &mut self,
        now: Instant,
        p: &PacketInfo,
        id: u32,
        out: &mut Vec<Departure>,
    ) {
        self.serve_netem(now, out);
        let packet = Packet { id, flow: p.flow, bytes: p.bytes, ecn: p.ecn, at: now };
        let Some(stage) = &mut self.netem else { return };
        if let Err(cause) = stage.enter(packet) {
            out.push(Departure::dropped(&packet, now, cause));
        }
        self.serve_netem(now, out);
    }

    /// Lets leave netem, and the queue behind it, what may by `now`.
    #[cold]
    pub(in crate::path) fn serve_netem(&mut self, now: Instant, out: &mut Vec<Departure>) {
        while let Some(at) = self.netem.as_ref().and_then(|stage| stage.next()).filter(|at| *at <= now) {
            while let Some(held) = self.netem.as_mut().and_then(|stage| stage.netem.dequeue(at)) {
                self.leave_netem(at, &held, out);
            }
        }
        let first = out.len();
        if let Some(bottleneck) = &mut self.bottleneck {
            bottleneck.serve(now, out);
        }
        self.carry_from_queue(out, first);
    }

    /// Takes a packet that leaves netem at `now` through policer and link, or into the queue discipline.
    fn leave_netem(&mut self, now: Instant, held: &Held, out: &mut Vec<Departure>) {
        let Packet { id, flow, bytes, ecn, .. } = held.packet;
        let id = number(id, held.is_copy);
        let info = PacketInfo { bytes, flow, kind: Kind::Data, ecn };
        let admitted = self.police(now, &info);
        let first = out.len();
        if let (Ok(()), Some(bottleneck), Some(stage)) = (admitted, &mut self.bottleneck, &mut self.netem) {
            stage.note(id, held.waited, held.corrupt);
            bottleneck.enqueue(now, &info, id, out);
            return self.carry_from_queue(out, first);
        }
        let waited = held.waited + self.link_wait(now);
        let mut d = Departure { id, bytes, ecn, waited, outcome: Ok(now), stays: false };
        d.outcome = admitted.and_then(|()| {
            let at = match &mut self.outage {
                Some(outage) => outage.pass(self.link.as_mut(), now, &info)?,
                None => self.link.as_mut().map_or(Ok(now), |link| link.pass(now, &info))?,
            };
            self.beyond.iter_mut().try_fold(at + self.propagation, |t, e| e.pass(t, &info))
        });
        if ecn.is_capable() && self.link.as_ref().is_some_and(Link::marked) {
            d.ecn = Ecn::Ce;
        }
        if let Some(stage) = &mut self.netem {
            stage.restore(&mut d, held.corrupt);
        }
        out.push(d);
        drop_losses_of_copies(out, first);
    }

    /// Takes what left the queue behind netem through the rest of the direction.
    fn carry_from_queue(&mut self, out: &mut Vec<Departure>, first: usize) {
        self.carry(&mut out[first..]);
        let Some(stage) = &mut self.netem else { return };
        for d in &mut out[first..] {
            let (waited, corrupt) = stage.behind[d.id as usize];
            d.waited += waited;
            stage.restore(d, corrupt);
        }
        drop_losses_of_copies(out, first);
    }
}

/// Removes the drops of packets of which another copy is under way: they are not lost.
fn drop_losses_of_copies(out: &mut Vec<Departure>, first: usize) {
    let mut i = first;
    while i < out.len() {
        if out[i].stays && out[i].outcome.is_err() {
            out.remove(i);
        } else {
            i += 1;
        }
    }
}
