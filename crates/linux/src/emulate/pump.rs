//! The thread that is the path: reads what was sent, asks the elements when it arrives, and lets it go then.

use super::{Lateness, Report, packet};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
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
pub struct Fate {
    /// When it entered, from the start of the path on.
    pub at: Instant,
    /// What it was.
    pub parcel: PacketInfo,
    /// When it was to arrive, or where it ended.
    pub fate: Result<Instant, Dropped>,
}

/// What became of the packets of one direction.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Packets that entered.
    pub entered: u64,
    /// Packets that the path dropped.
    pub dropped: u64,
    /// Packets that were under way when the path was taken down.
    pub under_way: u64,
    /// Packets that the other end's device would not take: its queue was full, or it is gone.
    pub refused: u64,
    /// Bytes of IP packets let go.
    pub bytes: u64,
    /// When the first was let go, and the last.
    pub span: Option<(Instant, Instant)>,
    /// How late.
    pub lateness: Lateness,
    /// Each packet's fate, if that was asked for.
    pub fates: Vec<Fate>,
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
    way: Way,
}

pub(crate) fn clock() -> Instant {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or_else(|_| TimeSpec::new(0, 0));
    Instant(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

impl One<'_> {
    /// Takes what was sent.
    fn take(&mut self, start: Instant) -> bool {
        let mut any = false;
        for _ in 0..BATCH {
            let Ok(n @ 1..) = self.from.read(&mut self.scratch) else { break };
            any = true;
            let packet = &self.scratch[..n];
            let at = Instant(clock().since(start).0);
            let parcel = packet::parcel(packet);
            let fate = self.direction.pass(at, &parcel);
            self.way.entered += 1;
            if self.record {
                self.way.fates.push(Fate { at, parcel, fate });
            }
            if let Ok(due) = fate {
                let mut buffer = self.spare.pop().unwrap_or_default();
                buffer.clear();
                buffer.extend_from_slice(packet);
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
        way: Way::default(),
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
        one.way.under_way = one.line.len() as u64;
    }
    Report { start, forward: forward.way, back: back.way }
}
