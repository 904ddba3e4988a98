//! `fq` as a bottleneck: flows in turn, as Linux serves them (`net/sched/sch_fq.c`, 6.18) where none is paced.
//!
//! Departs from Linux: each flow has a queue of its own, where Linux shares `buckets` only to find them; the bands of
//! priorities, pacing and its horizon are not there, and a flow keeps its credit however long it was idle (Linux refills it
//! after 40 ms).

use std::collections::{BTreeMap, VecDeque};

use slowstart::units::Instant;

use super::store::{List, Pool};
use super::{Departure, Packet};
use crate::path::Cause;

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

#[derive(Clone, Debug, Default)]
struct Flow {
    list: List,
    credit: i32,
    is_listed: bool,
}

/// The discipline.
#[derive(Clone, Debug)]
pub(super) struct Fq {
    params: Params,
    pool: Pool,
    /// The place of each flow in `flows`.
    places: BTreeMap<u32, u32>,
    flows: Vec<Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
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
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(super) fn enqueue(&mut self, p: Packet, out: &mut Vec<Departure>) {
        let place = *self.places.entry(p.flow).or_insert_with(|| {
            self.flows.push(Flow { credit: self.params.initial_quantum, ..Flow::default() });
            self.flows.len() as u32 - 1
        });
        let flow = &mut self.flows[place as usize];
        if self.packets >= self.params.limit || flow.list.packets() >= self.params.flow_limit {
            out.push(Departure::dropped(&p, p.at, Cause::QueueFull));
            return;
        }
        flow.list.push(&mut self.pool, p);
        self.packets += 1;
        self.bytes += p.frame();
        if !flow.is_listed {
            flow.is_listed = true;
            self.new.push_back(place);
        }
    }

    pub(super) fn dequeue(&mut self, _now: Instant) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let place = *if is_new { self.new.front() } else { self.old.front() }?;
            let flow = &mut self.flows[place as usize];
            if flow.credit <= 0 {
                flow.credit += self.params.quantum;
                self.next_turn(is_new);
                self.old.push_back(place);
                continue;
            }
            if let Some(p) = flow.list.pop(&mut self.pool) {
                flow.credit -= p.frame() as i32;
                self.packets -= 1;
                self.bytes -= p.frame();
                return Some(p);
            }
            flow.is_listed = is_new && !self.old.is_empty();
            let stays = flow.is_listed;
            self.next_turn(is_new);
            if stays {
                self.old.push_back(place);
            }
        }
    }

    /// Ends the turn of the flow that has it.
    fn next_turn(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_take_turns_of_two_packets_after_a_first_of_ten() {
        let params = Params { limit: 10_000, flow_limit: 100, quantum: 3028, initial_quantum: 15_140 };
        let mut q = Fq::new(params);
        let mut out = Vec::new();
        for flow in [7, 9] {
            for _ in 0..14 {
                q.enqueue(Packet { flow, bytes: 1500, ..Packet::default() }, &mut out);
            }
        }
        let order: Vec<u32> = std::iter::from_fn(|| q.dequeue(Instant::ZERO)).map(|p| p.flow).collect();
        let turns: Vec<(u32, usize)> = order.chunk_by(|a, b| a == b).map(|c| (c[0], c.len())).collect();
        assert_eq!(turns, [(7, 10), (9, 10), (7, 2), (9, 2), (7, 2), (9, 2)]);
        for i in 0..102 {
            q.enqueue(Packet { flow: 7, id: i, bytes: 1500, ..Packet::default() }, &mut out);
        }
        assert_eq!(out.iter().map(|d| d.id).collect::<Vec<_>>(), [100, 101]);
    }
}
