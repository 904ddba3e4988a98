//! The packets that a direction holds, for engines that carry packets of their own: the emulator's bytes,
//! QUIC datagrams.

use slowstart::units::{Instant, Span};

use super::queue::Departure;
use super::{Direction, Ecn, PacketInfo};

/// What waits in the queue discipline of a direction, by the number that the discipline has for each.
#[derive(Debug)]
pub struct Held<T> {
    waiting: Vec<Option<T>>,
    free: Vec<u32>,
    departures: Vec<Departure>,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { waiting: Vec::new(), free: Vec::new(), departures: Vec::new() }
    }
}

impl<T: Clone> Held<T> {
    /// Sends a packet at `now` into `direction`. Adds to `out` what leaves its queue by then: without a
    /// discipline, that is this packet.
    pub fn send(
        &mut self,
        direction: &mut Direction,
        now: Instant,
        info: &PacketInfo,
        packet: T,
        out: &mut Vec<(T, Departure)>,
    ) {
        if !direction.has_discipline() {
            let outcome = direction.pass(now, info);
            let is_marked = info.ecn.is_capable() && direction.marked();
            let ecn = if is_marked { Ecn::Ce } else { info.ecn };
            let departure =
                Departure { id: 0, bytes: info.bytes, ecn, waited: Span::ZERO, outcome, stays: false };
            out.push((packet, departure));
            return;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() as u32 - 1
        });
        self.waiting[id as usize] = Some(packet);
        direction.enqueue(now, info, id, &mut self.departures);
        self.hand_over(out);
    }

    /// Adds to `out` what leaves the queue of `direction` by `now`.
    pub fn serve(&mut self, direction: &mut Direction, now: Instant, out: &mut Vec<(T, Departure)>) {
        direction.serve(now, &mut self.departures);
        self.hand_over(out);
    }

    fn hand_over(&mut self, out: &mut Vec<(T, Departure)>) {
        for d in self.departures.drain(..) {
            let waiting = &mut self.waiting[d.id as usize];
            if d.stays {
                out.extend(waiting.clone().map(|packet| (packet, d)));
                continue;
            }
            out.extend(waiting.take().map(|packet| (packet, d)));
            self.free.push(d.id);
        }
    }

    /// Number of packets that wait.
    pub fn len(&self) -> usize {
        self.waiting.len() - self.free.len()
    }

    /// True if no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Kind, PathSpec};

    /// A packet that netem doubles is handed over twice, and its place is free afterwards.
    #[test]
    fn a_copy_is_handed_over_twice() {
        let line = "rate=10Mbit queue=infinite netem=delay 5ms 2ms duplicate 100%";
        let mut way = PathSpec::load(line, None).expect("a path").build(1).forward;
        let (mut held, mut out) = (Held::default(), Vec::new());
        for i in 0..20 {
            let info = PacketInfo { bytes: 1500, flow: 0, kind: Kind::Data, ecn: Ecn::NotEct };
            held.send(&mut way, Instant(i * 1_000_000), &info, i, &mut out);
        }
        while let Some(at) = way.next() {
            held.serve(&mut way, at, &mut out);
        }
        let mut arrived: Vec<u64> =
            out.iter().filter(|(_, d)| d.outcome.is_ok()).map(|(packet, _)| *packet).collect();
        arrived.sort_unstable();
        assert!(arrived.iter().copied().eq((0..20).flat_map(|i| [i, i])), "{arrived:?}");
        assert!(held.is_empty());
    }
}
