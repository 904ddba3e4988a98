//! FQ-CoDel (RFC 8290), as Linux has it (`net/sched/sch_fq_codel.c`, 6.18).
//!
//! Flows are hashed into queues by a hash drawn from the seed (Linux: `skb_get_hash` with a random key). A
//! full discipline drops from the head of the queue with most bytes: up to `drop_batch` packets or half of
//! it.

use slowstart::units::Instant;

use super::codel::{Control, Feed, Law};
use super::store::{List, Pool};
use super::flow_lists::Turns;
use super::tc_syntax::{Grammar, MTU};
use super::{Departure, FULL, FULL_MEMORY, Kind, Packet, Queueing, Settings};
use crate::path::Cause;
use crate::random::{self, Stream};

/// The parameters of `fq_codel`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    pub(super) control: Control,
    /// The most packets.
    pub(super) limit: usize,
    /// Number of queues.
    pub(super) flows: u32,
    /// Bytes that a queue may send in its turn.
    pub(super) quantum: i32,
    /// The most memory of packets, in bytes as the kernel counts them.
    pub(super) memory_limit: u64,
    /// The most packets dropped at once where there is no room.
    pub(super) drop_batch: usize,
}

/// Its words.
pub(super) const GRAMMARS: &[Grammar] = &[Grammar {
    name: "fq_codel",
    values: &[
        "limit",
        "flows",
        "quantum",
        "target",
        "interval",
        "ce_threshold",
        "memory_limit",
        "drop_batch",
    ],
    flags: &["ecn"],
    ignored: (&[], &[]),
    read: |w, _| {
        Ok(Kind::FqCodel(Params {
            control: Control::read(w, true)?,
            limit: w.packets("limit", 10_240)?,
            flows: w.number("flows", 1..=65_536)?.unwrap_or(1024) as u32,
            quantum: w.size("quantum")?.unwrap_or(MTU).max(256) as i32,
            memory_limit: u64::from(w.size("memory_limit")?.unwrap_or(32 << 20)),
            drop_batch: w.packets("drop_batch", 64)?,
        }))
    },
}];

/// One queue.
#[derive(Clone, Debug, Default)]
struct Flow {
    list: List,
    deficit: i32,
    /// True if it is among the new or the old flows.
    is_listed: bool,
    law: Law,
}

/// The discipline.
#[derive(Clone, Debug)]
pub(super) struct FqCodel {
    params: Params,
    /// Decides which flows share a queue.
    key: u64,
    pool: Pool,
    flows: Vec<Flow>,
    turns: Turns,
    total: Total,
}

/// What waits in all queues.
#[derive(Copy, Clone, Debug, Default)]
struct Total {
    packets: usize,
    bytes: u32,
    memory: u64,
}

impl Total {
    fn remove(&mut self, p: &Packet) {
        self.packets -= 1;
        self.bytes -= p.frame();
        self.memory -= p.memory();
    }
}

/// A queue with the totals, as [`Law`] needs it.
struct Head<'a> {
    pool: &'a mut Pool,
    list: &'a mut List,
    total: &'a mut Total,
}

impl Feed for Head<'_> {
    fn take(&mut self) -> Option<Packet> {
        let p = self.list.pop(self.pool)?;
        self.total.remove(&p);
        Some(p)
    }

    fn backlog(&self) -> u32 {
        self.total.bytes
    }
}

impl FqCodel {
    pub(super) fn new(params: Params, key: u64) -> Self {
        Self {
            params,
            key,
            pool: Pool::default(),
            flows: vec![Flow::default(); params.flows as usize],
            turns: Turns::default(),
            total: Total::default(),
        }
    }

    /// Drops from the head of the longest queue, the first of equals.
    #[cold]
    fn drop_from_longest(&mut self, now: Instant, out: &mut Vec<Departure>) {
        let mut longest = 0;
        for (i, flow) in self.flows.iter().enumerate() {
            if flow.list.bytes() > self.flows[longest].list.bytes() {
                longest = i;
            }
        }
        let flow = &mut self.flows[longest];
        let half = flow.list.bytes() / 2;
        let (mut packets, mut bytes) = (0, 0);
        while let Some(p) = flow.list.pop(&mut self.pool) {
            self.total.remove(&p);
            out.push(Departure::dropped(&p, now, Cause::QueueFull));
            packets += 1;
            bytes += p.frame();
            if packets >= self.params.drop_batch || bytes >= half {
                break;
            }
        }
        flow.law.count = flow.law.count.wrapping_add(packets as u32);
    }
}

impl Settings for Params {
    type Queue = FqCodel;

    fn build(self, mut stream: Stream) -> FqCodel {
        FqCodel::new(self, stream.any())
    }

    fn most_bytes(&self) -> u64 {
        (self.limit as u64).min(self.memory_limit / FULL_MEMORY) * FULL
    }
}

impl Queueing for FqCodel {
    fn enqueue(&mut self, p: Packet, out: &mut Vec<Departure>) {
        let place = random::scale(random::at(self.key, u64::from(p.flow)), u64::from(self.params.flows));
        let flow = &mut self.flows[place as usize];
        flow.list.push(&mut self.pool, p);
        self.total.packets += 1;
        self.total.bytes += p.frame();
        self.total.memory += p.memory();
        if !flow.is_listed {
            flow.is_listed = true;
            flow.deficit = self.params.quantum;
            self.turns.add_new(place as u32);
        }
        if self.total.packets > self.params.limit || self.total.memory > self.params.memory_limit {
            self.drop_from_longest(p.at, out);
        }
    }

    fn dequeue(&mut self, now: Instant, out: &mut Vec<Departure>) -> Option<Packet> {
        loop {
            let turn = self.turns.first()?;
            let flow = &mut self.flows[turn.flow as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.params.quantum;
                self.turns.postpone(turn);
                continue;
            }
            let mut head = Head { pool: &mut self.pool, list: &mut flow.list, total: &mut self.total };
            if let Some(p) = flow.law.dequeue(&self.params.control, now, &mut head, out) {
                flow.deficit -= p.frame() as i32;
                return Some(p);
            }
            // A new flow that is empty waits behind the old ones, so that it cannot starve them by coming
            // again.
            flow.is_listed = turn.is_new && self.turns.has_old();
            if flow.is_listed {
                self.turns.postpone(turn);
            } else {
                self.turns.end(turn);
            }
        }
    }

    fn packets(&self) -> usize {
        self.total.packets
    }

    fn frame_bytes(&self) -> u32 {
        self.total.bytes
    }

    fn marks(&self) -> bool {
        self.params.control.ce_threshold.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::units::Span;

    fn params() -> Params {
        let control = Control {
            target: Span::millis(5),
            interval: Span::millis(100),
            ce_threshold: None,
            ecn: true,
            mtu: 1514,
        };
        Params { control, limit: 10_240, flows: 1024, quantum: 1514, memory_limit: 32 << 20, drop_batch: 64 }
    }

    fn packet(flow: u32, bytes: u32) -> Packet {
        Packet { flow, bytes, ..Packet::default() }
    }

    fn order(q: &mut FqCodel) -> Vec<u32> {
        std::iter::from_fn(|| q.dequeue(Instant::ZERO, &mut Vec::new())).map(|p| p.flow).collect()
    }

    #[test]
    fn flows_take_turns_and_a_new_one_goes_first() {
        let mut q = FqCodel::new(params(), 1);
        let mut out = Vec::new();
        for flow in [1, 1, 1, 2, 2, 2] {
            q.enqueue(packet(flow, 1500), &mut out);
        }
        // A quantum is one full packet, so each sends one in its turn.
        assert_eq!(q.dequeue(Instant::ZERO, &mut out).map(|p| p.flow), Some(1));
        assert_eq!(q.dequeue(Instant::ZERO, &mut out).map(|p| p.flow), Some(2));
        q.enqueue(packet(3, 40), &mut out);
        assert_eq!(order(&mut q), [3, 1, 2, 1, 2]);
        assert!(out.is_empty() && q.packets() == 0 && q.frame_bytes() == 0 && q.total.memory == 0);
    }

    #[test]
    fn a_quantum_counts_bytes() {
        let mut q = FqCodel::new(params(), 1);
        for _ in 0..2 {
            q.enqueue(packet(1, 1500), &mut Vec::new());
        }
        for _ in 0..6 {
            q.enqueue(packet(2, 600), &mut Vec::new());
        }
        // 614 bytes a frame: three make the deficit of 1514 negative.
        assert_eq!(order(&mut q), [1, 2, 2, 2, 1, 2, 2, 2]);
    }

    #[test]
    fn without_room_half_of_the_longest_queue_goes_from_its_head() {
        let mut q = FqCodel::new(Params { limit: 10, ..params() }, 1);
        let mut out = Vec::new();
        for i in 0..8 {
            q.enqueue(Packet { id: i, ..packet(1, 1500) }, &mut out);
        }
        for i in 8..11 {
            q.enqueue(Packet { id: i, ..packet(2, 1500) }, &mut out);
        }
        assert_eq!(out.iter().map(|d| d.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(q.packets(), 7);
        let batch = Params { limit: 10, drop_batch: 1, ..params() };
        let mut q = FqCodel::new(batch, 1);
        out.clear();
        for i in 0..11 {
            q.enqueue(Packet { id: i, ..packet(1, 1500) }, &mut out);
        }
        assert_eq!(out.iter().map(|d| d.id).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn the_hash_is_drawn_from_the_seed() {
        let shares = |key| {
            let mut q = FqCodel::new(Params { flows: 16, ..params() }, key);
            for flow in 0..8 {
                q.enqueue(packet(flow, 1500), &mut Vec::new());
            }
            std::iter::from_fn(|| {
                let turn = q.turns.first()?;
                q.turns.end(turn);
                Some(turn.flow)
            })
            .collect::<Vec<_>>()
        };
        assert!(shares(1) == shares(1) && shares(1) != shares(2));
    }
}
