//! One direction of the path between two TUN devices of a guest.
//!
//! Payloads are zeros at both ends, so that the path keeps the headers of a packet and its length.

use super::net::{HEADERS, Tun};
use crate::error::GuestError;
use crate::order::Captured;
use slowstart::units::{Instant, Span};
use slowstart_sim::path::queue::Departure;
use slowstart_sim::path::wire::{packet_info, set_ce};
use slowstart_sim::path::{Direction, Ecn, Held, Kind, PacketInfo, Transit};

/// A packet that leaves the path later than this was not carried as the path says.
pub(super) const LATE: Span = Span::millis(1);

/// A packet on the path.
#[derive(Copy, Clone)]
struct Carried {
    headers: [u8; HEADERS],
    length: u32,
    at: Instant,
    /// How long it waits in a queue without a discipline.
    wait: Span,
    kind: Kind,
    ecn: Ecn,
}

impl Carried {
    fn header(&self) -> &[u8] {
        &self.headers[..HEADERS.min(self.length as usize)]
    }
}

/// What a direction did with data packets.
#[derive(Default)]
pub(super) struct Counts {
    pub data: u64,
    /// See [`crate::order::Recording::drops`].
    pub drops: Vec<(u64, u8)>,
    /// When a SYN or SYN-ACK entered the path.
    pub syns: Vec<u64>,
    /// When the path dropped one.
    pub lost_syns: Vec<u64>,
    pub marked: u64,
    /// See [`crate::order::Recording::waits`].
    pub waits: Vec<(u64, u64)>,
    /// Packets that came out of the path more than [`LATE`] after they were due, of how many.
    pub late: u64,
    pub released: u64,
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(n.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

fn is_syn(kind: Kind) -> bool {
    matches!(kind, Kind::Syn | Kind::SynAck)
}

/// A direction, with the packets on it.
pub(super) struct Lane {
    direction: Direction,
    held: Held<Carried>,
    left: Vec<(Carried, Departure)>,
    in_transit: Transit<Carried>,
    pub counts: Counts,
    /// The end that sends, and the packets at both, if they are kept.
    from: u8,
    pub packets: Option<Vec<Captured>>,
}

impl Lane {
    /// `from`: the end that sends. `capture`: all packets are kept.
    pub(super) fn new(direction: Direction, from: u8, capture: bool) -> Self {
        Self {
            direction,
            held: Held::default(),
            left: Vec::new(),
            in_transit: Transit::default(),
            counts: Counts::default(),
            from,
            packets: capture.then(Vec::new),
        }
    }

    fn record(&mut self, now: Instant, leaves: bool, packet: &Carried) {
        let Some(packets) = &mut self.packets else { return };
        packets.push(Captured {
            at: now.0,
            end: if leaves { self.from } else { 1 - self.from },
            leaves,
            length: packet.length,
            headers: hex(packet.header()),
        });
    }

    /// Takes in what a device has to send. Returns the number of packets.
    pub(super) fn receive(&mut self, now: Instant, from: &mut Tun) -> Result<u64, GuestError> {
        let mut n = 0;
        while let Some((headers, length)) = from.read()? {
            n += 1;
            let info = PacketInfo { bytes: length, ..packet_info(&headers[..HEADERS.min(length as usize)]) };
            self.counts.data += u64::from(info.kind == Kind::Data);
            if is_syn(info.kind) {
                self.counts.syns.push(now.0);
            }
            let wait = self.direction.queue_delay(now);
            let carried = Carried { headers, length, at: now, wait, kind: info.kind, ecn: info.ecn };
            self.record(now, true, &carried);
            self.held.send(&mut self.direction, now, &info, carried, &mut self.left);
            self.put_in_transit();
        }
        Ok(n)
    }

    /// Dequeues what may be sent by now.
    pub(super) fn serve(&mut self, now: Instant) {
        if self.direction.next().is_some_and(|at| at <= now) {
            self.held.serve(&mut self.direction, now, &mut self.left);
            self.put_in_transit();
        }
    }

    fn put_in_transit(&mut self) {
        for (mut carried, departure) in self.left.drain(..) {
            let is_data = carried.kind == Kind::Data;
            let due = match departure.outcome {
                Ok(due) => due,
                Err(dropped) => {
                    if is_data {
                        self.counts.drops.push((dropped.at.0, dropped.cause as u8));
                    } else if is_syn(carried.kind) {
                        self.counts.lost_syns.push(dropped.at.0);
                    }
                    continue;
                }
            };
            if departure.ecn != carried.ecn {
                set_ce(&mut carried.headers);
                self.counts.marked += u64::from(is_data);
            }
            if is_data {
                let wait = if self.direction.has_discipline() { departure.waited } else { carried.wait };
                if self.counts.waits.last().map_or(wait > Span::ZERO, |longest| wait.0 > longest.1) {
                    self.counts.waits.push((carried.at.0, wait.0));
                }
            }
            self.in_transit.add(&mut self.direction, due, carried, Carried::header);
        }
    }

    /// Bytes that wait at the bottleneck, on the wire.
    pub(super) fn backlog(&mut self, now: Instant) -> u64 {
        self.direction.backlog(now).0
    }

    /// When the direction next has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        self.in_transit.next().into_iter().chain(self.direction.next()).min()
    }

    /// Writes the next packet that is due to a device. Returns false if none is.
    pub(super) fn release_one(&mut self, now: Instant, to: &mut Tun) -> bool {
        let Some((due, carried)) = self.in_transit.take(now) else { return false };
        self.counts.late += u64::from(now.since(due) > LATE);
        self.counts.released += 1;
        self.record(now, false, &carried);
        to.write(&carried.headers, carried.length);
        true
    }

    /// True if nothing is on the way.
    pub(super) fn is_empty(&self) -> bool {
        self.in_transit.is_empty() && self.held.is_empty()
    }
}
