//! The live connections of a capture: found for each packet, and removed when they are over.
//!
//! With thousands of interleaved connections, the state of a packet's connection is not in the CPU cache.
//! Packets are therefore collected in batches, and each connection processes all of its packets of a batch in
//! a row. Connections share no state, and the order of packets within each is kept.

use crate::capture::Packet;
use crate::connection::{Config, Connection, End, SILENCE, mix};
use hashbrown::HashTable;
use slowstart::units::Span;
use slowstart_sim::tcp::segment::{ACK, SYN};

/// Silence after FIN or RST that ends a connection; without them it is [`SILENCE`].
const LINGER: Span = Span::secs(60);
/// Packets between two searches for connections that are over.
const SWEEP: u64 = 1 << 16;
/// Packets in a batch (3 MB).
const BATCH: usize = 1 << 14;
/// End of a chain.
const LAST: u32 = u32::MAX;

/// Identity of a connection: its ends in a fixed order, and the interface.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Key {
    ends: [End; 2],
    interface: u32,
}

impl Key {
    /// A hash that is the same on every machine and in every run.
    fn hash(&self) -> u64 {
        let [(a, p), (b, q)] = self.ends;
        let ports = u64::from(p) << 48 | u64::from(q) << 32 | u64::from(self.interface);
        [a as u64, (a >> 64) as u64, b as u64, (b >> 64) as u64, ports].into_iter().fold(0, mix)
    }
}

/// A packet of the current batch, with the index of the next packet of its connection.
#[derive(Debug)]
struct QueuedPacket {
    packet: Packet,
    /// The end that sent it: 0 or 1.
    from: usize,
    next: u32,
}

/// The packets of one connection in the current batch: a linked list.
#[derive(Copy, Clone, Debug)]
struct Chain {
    first: u32,
    last: u32,
}

/// A slot for a connection.
#[derive(Debug)]
struct Slot {
    key: Key,
    waiting: Option<Chain>,
    connection: Option<Box<Connection>>,
}

/// Ends a connection; what remains of it only recognises its late packets.
fn finish(c: &mut Connection, config: &Config, done: &mut impl FnMut(&mut Connection)) {
    c.close(config);
    done(c);
    c.finished = true;
}

/// The live connections of a capture.
#[derive(Debug)]
pub struct Table<'a> {
    config: Config<'a>,
    /// Indices into `slots`, by key; never iterated over.
    index: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Key and slot of the packet before.
    current: Option<(Key, u32)>,
    batch: Vec<QueuedPacket>,
    /// Slots with packets in the current batch.
    active: Vec<u32>,
    numbered: u64,
    packets: u64,
}

impl<'a> Table<'a> {
    /// Makes a table without connections.
    pub fn new(config: Config<'a>) -> Self {
        Self {
            config,
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            current: None,
            batch: Vec::with_capacity(BATCH),
            active: Vec::new(),
            numbered: 0,
            packets: 0,
        }
    }

    /// Number of connections so far.
    pub fn connections(&self) -> u64 {
        self.numbered
    }

    /// Processes a packet. `done` gets each connection once: when the FINs of both ends are
    /// acknowledged, or when it is removed.
    pub fn on_packet(&mut self, p: &Packet, mut done: impl FnMut(&mut Connection)) {
        let s = &p.segment;
        let (a, b) = ((s.addresses[0], s.ports[0]), (s.addresses[1], s.ports[1]));
        let from = usize::from(a > b);
        let key = Key { ends: if from == 0 { [a, b] } else { [b, a] }, interface: p.interface };
        self.packets += 1;
        if self.packets.is_multiple_of(SWEEP) {
            self.sweep(p.at, &mut done);
        }
        let mut known = self.find(&key);
        // A SYN with another sequence number on the same ports begins another connection.
        if s.has(SYN)
            && !s.has(ACK)
            && let Some(i) = known
        {
            self.process(&mut done);
            let old = self.slots[i as usize].connection.as_ref();
            if old.is_some_and(|c| c.is_other(from, s.seq)) {
                self.end(i, &mut done);
                known = None;
            }
        }
        let i = known.unwrap_or_else(|| self.begin(key, p));
        self.current = Some((key, i));
        let n = self.batch.len() as u32;
        match &mut self.slots[i as usize].waiting {
            Some(chain) => {
                self.batch[chain.last as usize].next = n;
                chain.last = n;
            }
            none => {
                *none = Some(Chain { first: n, last: n });
                self.active.push(i);
            }
        }
        self.batch.push(QueuedPacket { packet: *p, from, next: LAST });
        if self.batch.len() == BATCH {
            self.process(&mut done);
        }
    }

    fn find(&self, key: &Key) -> Option<u32> {
        let known = self.current.filter(|(k, _)| k == key).map(|(_, i)| i);
        known.or_else(|| self.index.find(key.hash(), |i| self.slots[*i as usize].key == *key).copied())
    }

    /// Adds a connection.
    fn begin(&mut self, key: Key, p: &Packet) -> u32 {
        self.numbered += 1;
        let connection = Some(Box::new(Connection::new(self.numbered, p, key.ends)));
        let slot = Slot { key, waiting: None, connection };
        let i = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(i as usize) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        self.index.insert_unique(key.hash(), i, |i| self.slots[*i as usize].key.hash());
        i
    }

    /// Processes the packets of the current batch.
    fn process(&mut self, done: &mut impl FnMut(&mut Connection)) {
        for i in self.active.drain(..) {
            let slot = &mut self.slots[i as usize];
            let (Some(chain), Some(c)) = (slot.waiting.take(), &mut slot.connection) else { continue };
            let mut at = chain.first;
            while let Some(g) = self.batch.get(at as usize) {
                // Touches the next packet, to overlap its cache miss.
                std::hint::black_box(self.batch.get(g.next as usize).map(|g| g.packet.at));
                c.on_packet(&g.packet, g.from, &self.config);
                at = g.next;
            }
            if c.is_complete() && !c.finished {
                finish(c, &self.config, done);
            }
        }
        self.batch.clear();
    }

    /// Removes a connection that has no packets in the current batch.
    fn end(&mut self, i: u32, done: &mut impl FnMut(&mut Connection)) {
        let slot = &mut self.slots[i as usize];
        let Some(mut c) = slot.connection.take() else { return };
        if let Ok(entry) = self.index.find_entry(slot.key.hash(), |at| *at == i) {
            entry.remove();
        }
        self.free.push(i);
        if !c.finished {
            finish(&mut c, &self.config, done);
        }
    }

    /// Removes connections that were silent for long.
    fn sweep(&mut self, now: u64, done: &mut impl FnMut(&mut Connection)) {
        self.process(done);
        self.current = None;
        for i in 0..self.slots.len() {
            let over = self.slots[i].connection.as_ref().is_some_and(|c| {
                let silence = if c.is_closing() { LINGER } else { SILENCE };
                now.saturating_sub(c.last()) > silence.0
            });
            if over {
                self.end(i as u32, done);
            }
        }
    }

    /// Removes all connections, at the end of the capture.
    pub fn finish(mut self, mut done: impl FnMut(&mut Connection)) {
        self.process(&mut done);
        let mut all: Vec<_> = self.slots.into_iter().filter_map(|s| s.connection).collect();
        all.sort_by_key(|c| c.number);
        for mut c in all {
            if !c.finished {
                finish(&mut c, &self.config, &mut done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::frame::TcpSegment;

    #[test]
    fn a_reused_port_is_another_connection_and_finished_ones_are_removed() {
        let config = Config { candidates: &[].into(), keep: crate::analysis::Keep::default() };
        let mut table = Table::new(config);
        let mut over = Vec::new();
        let packet = |at, seq, flags, port| Packet {
            at,
            interface: 0,
            segment: TcpSegment { addresses: [1, 2], ports: [port, 80], seq, flags, ..TcpSegment::default() },
        };
        let all = [
            packet(0, 100, SYN, 5),
            packet(1, 200, SYN, 6),
            packet(2, 100, SYN, 5),
            packet(3, 101, ACK, 5),
            packet(4, 900, SYN, 5),
            packet(700_000_000_000, 300, SYN, 7),
        ];
        for p in &all {
            table.on_packet(p, |c| over.push(c.number));
        }
        assert_eq!(over, [1]);
        table.sweep(700_000_000_000, &mut |c| over.push(c.number));
        assert_eq!((over.clone(), table.index.len()), (vec![1, 3, 2], 1));
        table.finish(|c| over.push(c.number));
        assert_eq!(over, [1, 3, 2, 4]);
    }
}
