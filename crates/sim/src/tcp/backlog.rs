//! A sender whose CPU takes time for acknowledgements with SACK blocks: segments wait until it is free, and
//! are dropped when too many wait.
//!
//! Linux until 2.6.24 looked for the packets of a SACK block from the head of its write queue on
//! (`tcp_sacktag_write_queue`), so that an ACK of a large window with new blocks took as long as the queue
//! was long. The `HyStart` paper names that cost as a cause of its Figures 1 and 5.

use super::segment::Segment;
use slowstart::units::{Instant, Span};
use std::collections::VecDeque;

/// The most segments that wait (`net.core.netdev_max_backlog` of Linux 2.6).
const MOST: usize = 1000;

/// The segments that wait for the CPU.
#[derive(Clone, Debug)]
pub(super) struct Backlog {
    /// CPU time for each packet of the write queue.
    cost: Span,
    free_at: Instant,
    waiting: VecDeque<Segment>,
}

impl Backlog {
    /// An idle CPU that takes `cost` for each packet of the write queue.
    pub(super) fn new(cost: Span) -> Self {
        Self { cost, free_at: Instant::ZERO, waiting: VecDeque::new() }
    }

    /// Takes a segment that arrived; drops it if too many wait.
    pub(super) fn arrive(&mut self, s: &Segment) {
        if self.waiting.len() < MOST {
            self.waiting.push_back(*s);
        }
    }

    /// The next segment, if the CPU is free.
    pub(super) fn take(&mut self, now: Instant) -> Option<Segment> {
        if self.free_at <= now { self.waiting.pop_front() } else { None }
    }

    /// The CPU looks at this many packets.
    pub(super) fn look_at(&mut self, now: Instant, packets: u64) {
        self.free_at = now + self.cost * packets;
    }

    /// When the next segment is processed; [`Instant::NEVER`] if none waits.
    pub(super) fn due(&self) -> Instant {
        if self.waiting.is_empty() { Instant::NEVER } else { self.free_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_wait_until_the_cpu_is_free_and_a_thousand_at_most() {
        let mut b = Backlog::new(Span::micros(1));
        let at = |us: u64| Instant(us * 1000);
        assert_eq!(b.due(), Instant::NEVER);
        for ack in 0..1200 {
            b.arrive(&Segment { ack, ..Segment::default() });
        }
        assert_eq!(b.take(at(5)).map(|s| s.ack), Some(0));
        b.look_at(at(5), 30);
        assert_eq!((b.take(at(34)).map(|s| s.ack), b.due()), (None, at(35)));
        let rest: Vec<u32> = std::iter::from_fn(|| b.take(at(35))).map(|s| s.ack).collect();
        assert_eq!((rest.len(), rest[998], b.due()), (999, 999, Instant::NEVER));
    }
}
