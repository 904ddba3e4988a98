//! A queue that drops from its front (`pfifo_head_drop`, Linux `pfifo_tail_enqueue`): what comes to a full queue
//! takes the place of the packet that has waited longest, so that the sender learns of it sooner.

use slowstart::units::Instant;

use super::store::Fifo;
use super::tc_syntax::Grammar;
use super::{Departure, FULL, Kind, Packet, Queueing, Settings};
use crate::path::Cause;
use crate::random::Stream;

/// The limit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// The most packets.
    packets: usize,
}

/// Its words.
pub(super) const GRAMMARS: &[Grammar] = &[Grammar {
    name: "pfifo_head_drop",
    values: &["limit"],
    flags: &[],
    ignored: (&[], &[]),
    read: |w, _| Ok(Kind::HeadDrop(Params { packets: w.packets("limit", 1000)? })),
}];

/// The queue.
#[derive(Clone, Debug)]
pub(super) struct HeadDrop {
    params: Params,
    queue: Fifo,
}

impl Settings for Params {
    type Queue = HeadDrop;

    fn build(self, _: Stream) -> HeadDrop {
        HeadDrop { params: self, queue: Fifo::default() }
    }

    fn most_bytes(&self) -> u64 {
        (self.packets as u64).saturating_mul(FULL)
    }
}

impl Queueing for HeadDrop {
    fn enqueue(&mut self, p: Packet, out: &mut Vec<Departure>) {
        if self.queue.packets() >= self.params.packets
            && let Some(oldest) = self.queue.pop()
        {
            out.push(Departure::dropped(&oldest, p.at, Cause::QueueFull));
        }
        self.queue.push(p);
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
