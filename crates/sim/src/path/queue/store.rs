//! Packets that wait: first in, first out lists over one pool, so that a queue of many flows allocates for
//! none of them.

use super::Packet;

/// No place.
const NONE: u32 = u32::MAX;

/// A pool of places for packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    places: Vec<(Packet, u32)>,
    /// The first free place; the others follow it.
    free: Option<u32>,
}

/// A list of packets in a [`Pool`].
#[derive(Clone, Debug)]
pub(super) struct List {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, packets: 0, bytes: 0 }
    }
}

impl List {
    /// Number of packets.
    pub(super) fn packets(&self) -> usize {
        self.packets as usize
    }

    /// Bytes of their frames.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Appends a packet.
    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, p: Packet) {
        let place = if let Some(place) = pool.free {
            let next = pool.places[place as usize].1;
            pool.free = (next != NONE).then_some(next);
            pool.places[place as usize] = (p, NONE);
            place
        } else {
            pool.places.push((p, NONE));
            pool.places.len() as u32 - 1
        };
        if self.packets == 0 {
            self.head = place;
        } else {
            pool.places[self.tail as usize].1 = place;
        }
        self.tail = place;
        self.packets += 1;
        self.bytes += p.frame();
    }

    /// Removes the first packet.
    #[inline]
    pub(super) fn pop(&mut self, pool: &mut Pool) -> Option<Packet> {
        if self.packets == 0 {
            return None;
        }
        let place = self.head;
        let (p, next) = pool.places[place as usize];
        pool.places[place as usize].1 = pool.free.unwrap_or(NONE);
        pool.free = Some(place);
        self.head = next;
        self.packets -= 1;
        self.bytes -= p.frame();
        Some(p)
    }

    /// The first packet.
    pub(super) fn first<'a>(&self, pool: &'a Pool) -> Option<&'a Packet> {
        (self.packets > 0).then(|| &pool.places[self.head as usize].0)
    }
}

/// One list with a pool of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    pool: Pool,
    list: List,
}

impl Fifo {
    pub(super) fn push(&mut self, p: Packet) {
        self.list.push(&mut self.pool, p);
    }

    pub(super) fn pop(&mut self) -> Option<Packet> {
        self.list.pop(&mut self.pool)
    }

    pub(super) fn first(&self) -> Option<&Packet> {
        self.list.first(&self.pool)
    }

    /// Number of packets.
    pub(super) fn packets(&self) -> usize {
        self.list.packets()
    }

    /// Bytes of their frames.
    pub(super) fn bytes(&self) -> u32 {
        self.list.bytes()
    }
}
