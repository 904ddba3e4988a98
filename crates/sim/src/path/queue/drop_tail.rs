//! A queue without active management, as `pfifo`, `bfifo` and `pfifo_fast` are: what exceeds its limit is dropped.

use slowstart::units::Instant;

use super::store::Fifo;
use super::tc_syntax::Grammar;
use super::{Departure, FULL, HEADER, Kind, Packet, Queueing, Settings};
use crate::path::Cause;
use crate::random::Stream;

/// No limit in bytes.
const NO_BYTES: u32 = u32::MAX / 2;

/// The limits, of which the nearer one holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// The most packets.
    pub(super) packets: usize,
    /// The most bytes of IP packets.
    pub(super) bytes: u32,
}

/// Their words.
pub(super) const GRAMMARS: &[Grammar] = &[
    Grammar {
        name: "pfifo_fast",
        values: &[],
        flags: &[],
        ignored: (&["bands", "priomap"], &[]),
        // The default length of an interface's queue (txqueuelen); one of three bands, since all packets are
        // alike.
        read: |_, _| Ok(Kind::DropTail(Params { packets: 1000, bytes: NO_BYTES })),
    },
    Grammar {
        name: "pfifo",
        values: &["limit"],
        flags: &[],
        ignored: (&[], &[]),
        read: |w, _| Ok(Kind::DropTail(Params { packets: w.packets("limit", 1000)?, bytes: NO_BYTES })),
    },
    Grammar {
        name: "bfifo",
        values: &["limit"],
        flags: &[],
        ignored: (&[], &[]),
        // Its limit is of frames, here of the IP packets in as many full ones.
        read: |w, _| {
            let full = FULL as u32 + HEADER;
            let frames = w.size("limit")?.unwrap_or(1000 * full);
            let bytes = u64::from(frames) * FULL / u64::from(full);
            Ok(Kind::DropTail(Params { packets: usize::MAX, bytes: (bytes as u32).max(FULL as u32) }))
        },
    },
];

/// The queue.
#[derive(Clone, Debug)]
pub(super) struct DropTail {
    params: Params,
    queue: Fifo,
}

impl Settings for Params {
    type Queue = DropTail;

    fn build(self, _: Stream) -> DropTail {
        DropTail { params: self, queue: Fifo::default() }
    }

    fn most_bytes(&self) -> u64 {
        (self.packets as u64).saturating_mul(FULL).min(u64::from(self.bytes))
    }
}

impl Queueing for DropTail {
    fn enqueue(&mut self, p: Packet, out: &mut Vec<Departure>) {
        let (packets, frames) = (self.queue.packets(), self.queue.bytes());
        if packets >= self.params.packets || frames - HEADER * packets as u32 + p.bytes > self.params.bytes {
            out.push(Departure::dropped(&p, p.at, Cause::QueueFull));
        } else {
            self.queue.push(p);
        }
    }

    fn dequeue(&mut self, _: Instant, _: &mut Vec<Departure>) -> Option<Packet> {
        self.queue.pop()
    }

    fn packets(&self) -> usize {
        self.queue.packets()
    }

    fn frame_bytes(&self) -> u32 {
        self.queue.bytes()
    }
}
