//! The packets that a direction holds, for engines that carry packets of their own: the emulator's bytes,
//! QUIC datagrams.

use super::queue::Departure;
use super::wire::acknowledges_more;
use super::{Direction, Ecn, PacketInfo};
use slowstart::units::{Instant, Span};
use std::collections::VecDeque;

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

/// The IP packets on their way to a receiver, in the order in which they arrive.
#[derive(Debug)]
pub struct Transit<T> {
    line: VecDeque<(Instant, T)>,
}

impl<T> Default for Transit<T> {
    fn default() -> Self {
        Self { line: VecDeque::new() }
    }
}

impl<T: Clone> Transit<T> {
    /// Adds a packet that left `direction` and arrives at `due`, as often as the path makes copies of it. `bytes` are those
    /// of a packet, at least its headers. Returns the older ACK that it replaces, if the path filters ACKs.
    pub fn add(
        &mut self,
        direction: &mut Direction,
        due: Instant,
        packet: T,
        bytes: impl Fn(&T) -> &[u8],
    ) -> Option<T> {
        // Mostly the last to arrive, or near it.
        let later = self.line.iter().rev().take_while(|(other, _)| *other > due).count();
        let place = self.line.len() - later;
        if direction.filters_acks()
            && let Some((at, last)) = place.checked_sub(1).and_then(|i| self.line.get_mut(i))
            && *at == due
            && acknowledges_more(bytes(&packet), bytes(last))
        {
            return Some(std::mem::replace(last, packet));
        }
        for _ in 0..u32::from(direction.draws_copy()) {
            self.line.insert(place, (due, packet.clone()));
        }
        self.line.insert(place, (due, packet));
        None
    }

    /// When the next packet arrives.
    pub fn next(&self) -> Option<Instant> {
        self.line.front().map(|(due, _)| *due)
    }

    /// Takes the next packet, with the time at which it was due, if that is not after `now`.
    pub fn take(&mut self, now: Instant) -> Option<(Instant, T)> {
        self.line.pop_front_if(|(due, _)| *due <= now)
    }

    /// Number of packets on their way.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// True if no packet is on its way.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Kind, PathSpec};

    /// The header of an ACK of TCP.
    fn ack(port: u8, number: u32) -> Vec<u8> {
        let mut p = vec![0; 40];
        (p[0], p[3], p[9], p[21], p[32], p[33]) = (0x45, 40, 6, port, 0x50, 16);
        p[28..32].copy_from_slice(&number.to_be_bytes());
        p
    }

    /// Of the ACKs of one release the newest is kept; those of another release, another connection, or that acknowledge
    /// no more stay.
    #[test]
    fn the_newest_ack_of_a_release_replaces_the_others() {
        let line = "rate=10Mbit rtt=20ms queue=1bdp ack_aggregate=10ms";
        for (filter, expected) in [("on", vec![(1, 7), (1, 7), (2, 8), (1, 9)]), ("off", vec![])] {
            let spec = PathSpec::load(&format!("{line} ack_filter={filter}"), None).expect("a path");
            let mut way = spec.build(1).back;
            let mut transit = Transit::default();
            let sent = [(10, 1, 5), (10, 1, 7), (10, 1, 7), (10, 2, 6), (10, 2, 8), (20, 1, 8), (20, 1, 9)];
            for (at, port, number) in sent {
                transit.add(&mut way, Instant(at), ack(port, number), |p| p);
            }
            let mut got = Vec::new();
            while let Some((_, p)) = transit.take(Instant(20)) {
                got.push((p[21], u32::from(p[31])));
            }
            let all: Vec<_> = sent.iter().map(|(_, port, number)| (*port, *number)).collect();
            assert_eq!(got, if expected.is_empty() { all } else { expected }, "{filter}");
        }
    }

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
