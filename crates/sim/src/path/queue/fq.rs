//! `fq` as a bottleneck: flows in turn, as Linux serves them (`net/sched/sch_fq.c`, 7.3) where none is paced.
//!
//! Departs from Linux: each flow has a queue of its own, where Linux tells those of forwarded packets apart
//! by ten bits of their hash, and forgets a flow some time after it was idle for 3 s; pacing and its horizon
//! are not there. All packets have the priority 0, whose band is the second; yet Linux puts a flow that it
//! has not seen before into the first for its first turn.

use std::collections::BTreeMap;

use slowstart::units::{Instant, Span};

use super::store::{List, Pool};
use super::flow_lists::Turns;
use super::tc_syntax::{Grammar, MTU};
use super::{Departure, FULL, Kind, Packet, Queueing, Settings};
use crate::path::Cause;
use crate::random::Stream;

/// The parameters of `fq`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// The most packets.
    pub(super) limit: usize,
    /// The most packets of a flow.
    pub(super) flow_limit: usize,
    /// Bytes that a flow may send in its turn, and in its first.
    pub(super) quantum: i32,
    pub(super) initial_quantum: i32,
}

/// Its words.
pub(super) const GRAMMARS: &[Grammar] = &[Grammar {
    name: "fq",
    values: &["limit", "flow_limit", "quantum", "initial_quantum"],
    flags: &[],
    ignored: (
        &[
            "buckets",
            "orphan_mask",
            "bands",
            "priomap",
            "weights",
            "low_rate_threshold",
            "refill_delay",
            "timer_slack",
            "horizon",
        ],
        &["horizon_drop", "horizon_cap", "nopacing"],
    ),
    read: |w, _| {
        Ok(Kind::Fq(Params {
            limit: w.packets("limit", 10_000)?,
            flow_limit: w.packets("flow_limit", 100)?,
            quantum: w.size("quantum")?.unwrap_or(2 * MTU) as i32,
            initial_quantum: w.size("initial_quantum")?.unwrap_or(10 * MTU) as i32,
        }))
    },
}];

/// How many packets may wait in the list that is served before all flows, while no flow has a packet
/// (`fq_fastpath_check`).
const FAST: usize = 8;
/// The idle time after which a flow has the credit of a turn again (`flow_refill_delay`).
const REFILL: Span = Span::millis(40);

/// Bytes that each band may send before the next has its turn (`fq_init`), and the band of all flows but
/// unknown ones.
const BANDS: [i32; 3] = [589_824, 196_608, 65_536];
const BAND: usize = 1;

/// The flows of one band.
#[derive(Clone, Debug, Default)]
struct Band {
    turns: Turns,
    credit: i32,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    list: List,
    credit: i32,
    is_listed: bool,
    /// When it was taken off the lists.
    left: Instant,
}

/// The discipline.
#[derive(Clone, Debug)]
pub(super) struct Fq {
    params: Params,
    pool: Pool,
    /// The place of each flow in `flows`.
    places: BTreeMap<u32, u32>,
    flows: Vec<Flow>,
    bands: [Band; 3],
    /// The band that is served.
    turn: usize,
    /// Packets that came when no flow had one: they are of any flow and take no credit.
    fast: List,
    packets: usize,
    bytes: u32,
}

impl Fq {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            pool: Pool::default(),
            places: BTreeMap::new(),
            flows: Vec::new(),
            bands: Default::default(),
            turn: 0,
            fast: List::default(),
            packets: 0,
            bytes: 0,
        }
    }

    fn take_from_flow(&mut self, now: Instant) -> Option<Packet> {
        loop {
            let band = &mut self.bands[self.turn];
            let Some(turn) = band.turns.first().filter(|_| band.credit > 0) else {
                self.turn = (self.turn + 1) % BANDS.len();
                let next = &mut self.bands[self.turn];
                next.credit = (next.credit + BANDS[self.turn]).min(BANDS[self.turn]);
                continue;
            };
            let flow = &mut self.flows[turn.flow as usize];
            if flow.credit <= 0 {
                flow.credit += self.params.quantum;
            } else if let Some(p) = flow.list.pop(&mut self.pool) {
                flow.credit -= p.frame() as i32;
                band.credit -= p.frame() as i32;
                return Some(p);
            } else if !turn.is_new {
                (flow.is_listed, flow.left) = (false, now);
                band.turns.end(turn);
                continue;
            }
            band.turns.end(turn);
            self.bands[BAND].turns.add_old(turn.flow);
        }
    }
}

impl Settings for Params {
    type Queue = Fq;

    fn build(self, _: Stream) -> Fq {
        Fq::new(self)
    }

    fn most_bytes(&self) -> u64 {
        self.limit as u64 * FULL
    }
}

impl Queueing for Fq {
    fn enqueue(&mut self, p: Packet, out: &mut Vec<Departure>) {
        let in_flows = self.packets - self.fast.packets();
        if in_flows >= self.params.limit {
            out.push(Departure::dropped(&p, p.at, Cause::QueueFull));
            return;
        }
        if in_flows == 0 && self.fast.packets() < FAST {
            self.fast.push(&mut self.pool, p);
        } else {
            let mut band = BAND;
            let place = *self.places.entry(p.flow).or_insert_with(|| {
                band = 0;
                self.flows.push(Flow { credit: self.params.initial_quantum, left: p.at, ..Flow::default() });
                self.flows.len() as u32 - 1
            });
            let flow = &mut self.flows[place as usize];
            if flow.list.packets() >= self.params.flow_limit {
                out.push(Departure::dropped(&p, p.at, Cause::QueueFull));
                return;
            }
            flow.list.push(&mut self.pool, p);
            if !flow.is_listed {
                flow.is_listed = true;
                self.bands[band].turns.add_new(place);
                // As in Linux, which compares without signs, only a credit that is not negative is raised.
                if p.at.since(flow.left) > REFILL && flow.credit >= 0 {
                    flow.credit = flow.credit.max(self.params.quantum);
                }
            }
        }
        self.packets += 1;
        self.bytes += p.frame();
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<Departure>) -> Option<Packet> {
        if self.packets == 0 {
            return None;
        }
        let p = match self.fast.pop(&mut self.pool) {
            Some(p) => p,
            None => self.take_from_flow(now)?,
        };
        self.packets -= 1;
        self.bytes -= p.frame();
        Some(p)
    }

    fn packets(&self) -> usize {
        self.packets
    }

    fn frame_bytes(&self) -> u32 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(q: &mut Fq) -> Vec<(u32, usize)> {
        let order: Vec<u32> =
            std::iter::from_fn(|| q.dequeue(Instant::ZERO, &mut Vec::new())).map(|p| p.flow).collect();
        order.chunk_by(|a, b| a == b).map(|c| (c[0], c.len())).collect()
    }

    #[test]
    fn eight_packets_go_first_and_then_flows_take_turns_of_two_after_a_first_of_ten() {
        let params = Params { limit: 10_000, flow_limit: 100, quantum: 3028, initial_quantum: 15_140 };
        let mut q = Fq::new(params);
        let mut out = Vec::new();
        for (flow, packets) in [(5, 8), (7, 14), (9, 14)] {
            for _ in 0..packets {
                q.enqueue(Packet { flow, bytes: 1500, ..Packet::default() }, &mut out);
            }
        }
        assert_eq!(turns(&mut q), [(5, 8), (7, 10), (9, 10), (7, 2), (9, 2), (7, 2), (9, 2)]);
        for i in 0..110 {
            q.enqueue(Packet { flow: 7, id: i, bytes: 1500, ..Packet::default() }, &mut out);
        }
        assert_eq!(out.iter().map(|d| d.id).collect::<Vec<_>>(), [108, 109]);
    }
}
