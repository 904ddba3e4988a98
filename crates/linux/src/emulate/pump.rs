//! The thread that is the path: reads what was sent, asks the elements when it arrives, and lets it go then.

use super::{Lateness, Report, packet};
use crate::clock::clock;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use slowstart::units::{Instant, Span};
use slowstart_lab::path::{Direction, Dropped, PacketInfo, Path};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Waking up takes this long, or longer: it stops sleeping so much before a packet is due, and then looks at the clock.
/// Less than the time between two packets at 100 Mbit/s (120 us), or it would never sleep there, and a real-time thread
/// that never sleeps is stopped by the kernel for 50 ms of each second.
const EARLY: Span = Span::micros(30);
/// How often it looks whether to stop, when there is nothing to do.
const IDLE: Span = Span::millis(50);
/// Packets taken or let go before the other way has its turn.
const BATCH: usize = 64;

/// What became of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When it entered, from the start of the path on.
    pub at: Instant,
    /// What it was.
    pub packet: PacketInfo,
    /// When it was to arrive, or where it ended.
    pub outcome: Result<Instant, Dropped>,
}

/// What became of the packets of one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionStats {
    /// Packets that entered.
    pub entered: u64,
    /// Packets that the path dropped.
    pub dropped: u64,
    /// Packets that were under way when the path was taken down.
    pub in_transit: u64,
    /// Packets that the other end's device would not take: its queue was full, or it is gone.
    pub refused: u64,
    /// Bytes of IP packets let go.
    pub bytes: u64,
    /// When the first was let go, and the last.
    pub span: Option<(Instant, Instant)>,
    /// How late.
    pub lateness: Lateness,
    /// Each packet's fate, if that was asked for.
    pub records: Vec<PacketRecord>,
}

struct One<'a> {
    direction: Direction,
    from: &'a File,
    to: &'a File,
    /// Under way: arrivals keep the order of sending.
    line: VecDeque<(Instant, Vec<u8>)>,
    /// Buffers of packets let go, to be used again.
    spare: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    record: bool,
    way: DirectionStats,
}

impl One<'_> {
    /// Takes what was sent.
    fn take(&mut self, start: Instant) -> bool {
        let mut any = false;
        for _ in 0..BATCH {
            let Ok(n @ 1..) = self.from.read(&mut self.scratch) else { break };
            any = true;
            let bytes = &self.scratch[..n];
            let at = Instant(clock().since(start).0);
            let packet = packet::packet_info(bytes);
            let outcome = self.direction.pass(at, &packet);
            self.way.entered += 1;
            if self.record {
                self.way.records.push(PacketRecord { at, packet, outcome });
            }
            if let Ok(due) = outcome {
                let mut buffer = self.spare.pop().unwrap_or_default();
                buffer.clear();
                buffer.extend_from_slice(bytes);
                self.line.push_back((due, buffer));
            } else {
                self.way.dropped += 1;
            }
        }
        any
    }

    /// Lets go what is due.
    fn give(&mut self, start: Instant) -> bool {
        let mut any = false;
        for _ in 0..BATCH {
            let now = Instant(clock().since(start).0);
            let Some((due, buffer)) = self.line.pop_front_if(|(due, _)| *due <= now) else { break };
            any = true;
            self.way.lateness.add(now.since(due));
            if self.to.write(&buffer).is_ok() {
                self.way.bytes += buffer.len() as u64;
                self.way.span = Some((self.way.span.map_or(now, |s| s.0), now));
            } else {
                self.way.refused += 1;
            }
            if self.spare.len() < 4096 {
                self.spare.push(buffer);
            }
        }
        any
    }
}

/// Runs until told to stop.
pub(super) fn pump(path: Path, server: &File, client: &File, stop: &AtomicBool, record: bool) -> Report {
    let one = |direction, from, to| One {
        direction,
        from,
        to,
        line: VecDeque::new(),
        spare: Vec::new(),
        scratch: vec![0; 1 << 16],
        record,
        way: DirectionStats::default(),
    };
    let mut forward = one(path.forward, server, client);
    let mut back = one(path.back, client, server);
    let start = clock();
    while !stop.load(Ordering::Relaxed) {
        let mut busy = forward.give(start);
        busy |= back.give(start);
        busy |= forward.take(start);
        busy |= back.take(start);
        if busy {
            continue;
        }
        let now = Instant(clock().since(start).0);
        let due =
            [&forward.line, &back.line].into_iter().filter_map(|l| l.front()).map(|(due, _)| *due).min();
        let wait = due.map_or(IDLE, |d| d.since(now)).min(IDLE);
        if wait <= EARLY {
            continue;
        }
        let wait = wait - EARLY;
        let timeout = TimeSpec::new((wait.0 / 1_000_000_000) as i64, (wait.0 % 1_000_000_000) as i64);
        let mut ready =
            [PollFd::new(server.as_fd(), PollFlags::POLLIN), PollFd::new(client.as_fd(), PollFlags::POLLIN)];
        // What interrupts it is another reason to look again.
        let _ = ppoll(&mut ready, Some(timeout), None);
    }
    for one in [&mut forward, &mut back] {
        one.way.in_transit = one.line.len() as u64;
    }
    Report { start, forward: forward.way, back: back.way }
}
