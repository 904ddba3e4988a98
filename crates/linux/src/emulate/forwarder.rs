//! The forwarding thread: reads packets from the devices, passes them to the path and writes each one when it
//! is due.

use super::tun::Tun;
use super::{DirectionStats, PacketRecord, Report};
use crate::clock::clock;
use crate::error::KernelError;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use slowstart::units::{Instant, Span};
use slowstart_sim::path::queue::Departure;
use slowstart_sim::path::wire;
use slowstart_sim::path::{Direction, Ecn, Held, Path, Transit};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long before a packet is due the thread stops sleeping and polls the clock, since waking up takes about
/// this long. Less than the time between two packets at 100 Mbit/s (120 us): otherwise the thread never
/// sleeps at that rate, and the kernel stops a real-time thread that never sleeps for 50 ms of each second.
const WAKEUP: Span = Span::micros(30);
/// Longest sleep, after which the thread checks whether it must stop.
const IDLE: Span = Span::millis(50);
/// A thread that comes back this much later than it meant to stood still: more than a round of its work takes. Packets
/// that came meanwhile waited in the devices, how long is not known.
const STOOD_STILL: Span = Span::millis(10);
/// Packets read or written before the other direction is served.
const BATCH: usize = 64;
/// Packet buffers kept for reuse.
const SPARE: usize = 4096;

/// A packet on the path: its bytes, its place in the record, and its codepoint when it came.
#[derive(Clone)]
struct Carried {
    bytes: Vec<u8>,
    record: Option<usize>,
    ecn: Ecn,
}

/// The state of one direction.
struct Lane<'a> {
    direction: Direction,
    /// Packets in the queue discipline of the direction.
    held: Held<Carried>,
    /// What left it and is not in transit yet.
    left: Vec<(Carried, Departure)>,
    from: &'a Tun,
    to: &'a Tun,
    in_transit: Transit<Vec<u8>>,
    /// Buffers of released packets, for reuse.
    spare: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    record: bool,
    stats: DirectionStats,
}

impl<'a> Lane<'a> {
    fn new(direction: Direction, from: &'a Tun, to: &'a Tun, record: bool) -> Self {
        Self {
            direction,
            held: Held::default(),
            left: Vec::new(),
            from,
            to,
            in_transit: Transit::default(),
            spare: Vec::new(),
            scratch: vec![0; 1 << 16],
            record,
            stats: DirectionStats::default(),
        }
    }

    /// Reads packets from the sending device. Returns true if there were any.
    fn receive(&mut self, start: Instant) -> Result<bool, KernelError> {
        let mut any = false;
        for _ in 0..BATCH {
            let n = match (&self.from.file).read(&mut self.scratch) {
                Ok(n) => n,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                Err(e) => return Err(self.from.lost(e)),
            };
            any = true;
            let bytes = &self.scratch[..n];
            let at = Instant(clock().since(start).0);
            let packet = wire::packet_info(bytes);
            let mut buffer = self.spare.pop().unwrap_or_default();
            buffer.clear();
            buffer.extend_from_slice(bytes);
            self.stats.entered += 1;
            if self.record {
                // Its outcome follows when it leaves the queue.
                let handshake = wire::is_handshake(bytes);
                self.stats.records.push(PacketRecord { at, packet, handshake, outcome: Ok(Instant::NEVER) });
            }
            let record = self.stats.records.len().checked_sub(1).filter(|_| self.record);
            let carried = Carried { bytes: buffer, record, ecn: packet.ecn };
            self.held.send(&mut self.direction, at, &packet, carried, &mut self.left);
            self.put_in_transit();
        }
        Ok(any)
    }

    /// Dequeues what may be sent by now. Returns true if that was anything.
    fn serve(&mut self, start: Instant) -> bool {
        let now = Instant(clock().since(start).0);
        if self.direction.next().is_none_or(|at| at > now) {
            return false;
        }
        self.held.serve(&mut self.direction, now, &mut self.left);
        self.put_in_transit();
        true
    }

    /// Puts in transit what left the queue, with its marks.
    fn put_in_transit(&mut self) {
        for (mut carried, departure) in self.left.drain(..) {
            if let Some(i) = carried.record {
                self.stats.records[i].outcome = departure.outcome;
            }
            let Ok(due) = departure.outcome else {
                self.stats.dropped += 1;
                self.spare.push(carried.bytes);
                continue;
            };
            if departure.ecn != carried.ecn {
                wire::set_ce(&mut carried.bytes);
                self.stats.marked += 1;
            }
            if let Some(older) = self.in_transit.add(&mut self.direction, due, carried.bytes, |b| b) {
                self.stats.filtered += 1;
                self.spare.push(older);
            }
        }
    }

    /// When the lane next has something to do.
    fn next(&self) -> Option<Instant> {
        self.in_transit.next().into_iter().chain(self.direction.next()).min()
    }

    /// Writes the packets that are due to the receiving device. Returns true if there were any.
    fn release(&mut self, start: Instant) -> bool {
        let mut any = false;
        for _ in 0..BATCH {
            let now = Instant(clock().since(start).0);
            let Some((due, buffer)) = self.in_transit.take(now) else { break };
            any = true;
            self.stats.lateness.add(now.since(due));
            if (&self.to.file).write(&buffer).is_ok() {
                self.stats.bytes += buffer.len() as u64;
                self.stats.span = Some((self.stats.span.map_or(now, |s| s.0), now));
            } else {
                self.stats.refused += 1;
            }
            if self.spare.len() < SPARE {
                self.spare.push(buffer);
            }
        }
        any
    }

    fn finish(mut self) -> DirectionStats {
        self.stats.in_transit = (self.in_transit.len() + self.held.len()) as u64;
        self.stats
    }
}

/// Waits until a device has a packet to send, or until `stop` is set: the time of the path begins with its
/// first packet, as in the simulator, so that outages and the timers of disciplines come at the same time of
/// a connection.
fn wait_for_packet(server: &Tun, client: &Tun, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let mut ready = [server, client].map(|tun| PollFd::new(tun.file.as_fd(), PollFlags::POLLIN));
        let timeout = TimeSpec::new(0, IDLE.0 as i64);
        if matches!(ppoll(&mut ready, Some(timeout), None), Ok(1..)) {
            return;
        }
    }
}

/// Forwards packets until `stop` is set, or until a device is gone.
pub(super) fn forward(
    path: Path,
    server: &Tun,
    client: &Tun,
    stop: &AtomicBool,
    record: bool,
) -> Result<Report, KernelError> {
    let mut forward = Lane::new(path.forward, server, client, record);
    let mut back = Lane::new(path.back, client, server, record);
    wait_for_packet(server, client, stop);
    let start = clock();
    let (mut stood_still, mut meant) = (Span(0), Instant::ZERO);
    let time = || Instant(clock().since(start).0);
    while !stop.load(Ordering::Relaxed) {
        let mut busy = forward.serve(start);
        busy |= back.serve(start);
        busy |= forward.release(start);
        busy |= back.release(start);
        let before = time();
        let came = forward.receive(start)? | back.receive(start)?;
        // Packets that came now may have waited since the last read began, wherever the thread was stopped meanwhile.
        let now = time();
        let late = now.since(meant);
        let waited = came && late > STOOD_STILL;
        if waited {
            stood_still += late;
        }
        meant = if waited { now } else { before };
        busy |= came;
        if busy {
            continue;
        }
        let next = [forward.next(), back.next()].into_iter().flatten();
        let wait = next.map(|due| due.since(now)).min().unwrap_or(IDLE).min(IDLE);
        if wait <= WAKEUP {
            continue;
        }
        let wait = wait - WAKEUP;
        meant = meant + wait;
        let timeout = TimeSpec::new((wait.0 / 1_000_000_000) as i64, (wait.0 % 1_000_000_000) as i64);
        let mut ready = [
            PollFd::new(server.file.as_fd(), PollFlags::POLLIN),
            PollFd::new(client.file.as_fd(), PollFlags::POLLIN),
        ];
        // An interrupted sleep needs no handling: the loop checks everything again.
        let _ = ppoll(&mut ready, Some(timeout), None);
    }
    let ran = clock().since(start);
    Ok(Report { start, ran, stood_still, forward: forward.finish(), back: back.finish() })
}
