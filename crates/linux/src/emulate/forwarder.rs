//! The forwarding thread: reads packets from the devices, passes them to the path and writes each one when it is due.

use super::tun::Tun;
use super::{DirectionStats, PacketRecord, Report, packet};
use crate::clock::clock;
use crate::error::KernelError;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use slowstart::units::{Instant, Span};
use slowstart_lab::path::{Direction, Path};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long before a packet is due the thread stops sleeping and polls the clock, since waking up takes about this long.
/// Less than the time between two packets at 100 Mbit/s (120 us): otherwise the thread never sleeps at that rate, and
/// the kernel stops a real-time thread that never sleeps for 50 ms of each second.
const WAKEUP: Span = Span::micros(30);
/// Longest sleep, after which the thread checks whether it must stop.
const IDLE: Span = Span::millis(50);
/// Packets read or written before the other direction is served.
const BATCH: usize = 64;
/// Packet buffers kept for reuse.
const SPARE: usize = 4096;

/// The state of one direction.
struct Lane<'a> {
    direction: Direction,
    from: &'a Tun,
    to: &'a Tun,
    /// Packets in transit with the time each is due, in order of that time.
    in_transit: VecDeque<(Instant, Vec<u8>)>,
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
            from,
            to,
            in_transit: VecDeque::new(),
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
            let packet = packet::packet_info(bytes);
            let outcome = self.direction.pass(at, &packet);
            self.stats.entered += 1;
            if self.record {
                self.stats.records.push(PacketRecord { at, packet, outcome });
            }
            if let Ok(due) = outcome {
                // Mostly the last to arrive, or near it.
                let later = self.in_transit.iter().rev().take_while(|(other, _)| *other > due).count();
                for _ in 0..=u32::from(self.direction.draws_copy()) {
                    let mut buffer = self.spare.pop().unwrap_or_default();
                    buffer.clear();
                    buffer.extend_from_slice(bytes);
                    self.in_transit.insert(self.in_transit.len() - later, (due, buffer));
                }
            } else {
                self.stats.dropped += 1;
            }
        }
        Ok(any)
    }

    /// Writes the packets that are due to the receiving device. Returns true if there were any.
    fn release(&mut self, start: Instant) -> bool {
        let mut any = false;
        for _ in 0..BATCH {
            let now = Instant(clock().since(start).0);
            let Some((due, buffer)) = self.in_transit.pop_front_if(|(due, _)| *due <= now) else { break };
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
        self.stats.in_transit = self.in_transit.len() as u64;
        self.stats
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
    let start = clock();
    while !stop.load(Ordering::Relaxed) {
        let mut busy = forward.release(start);
        busy |= back.release(start);
        busy |= forward.receive(start)?;
        busy |= back.receive(start)?;
        if busy {
            continue;
        }
        let now = Instant(clock().since(start).0);
        let next = [&forward.in_transit, &back.in_transit].into_iter().filter_map(VecDeque::front);
        let wait = next.map(|(due, _)| due.since(now)).min().unwrap_or(IDLE).min(IDLE);
        if wait <= WAKEUP {
            continue;
        }
        let wait = wait - WAKEUP;
        let timeout = TimeSpec::new((wait.0 / 1_000_000_000) as i64, (wait.0 % 1_000_000_000) as i64);
        let mut ready = [
            PollFd::new(server.file.as_fd(), PollFlags::POLLIN),
            PollFd::new(client.file.as_fd(), PollFlags::POLLIN),
        ];
        // An interrupted sleep needs no handling: the loop checks everything again.
        let _ = ppoll(&mut ready, Some(timeout), None);
    }
    Ok(Report { start, forward: forward.finish(), back: back.finish() })
}
