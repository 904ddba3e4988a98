//! The connections of a capture: found for each packet, ended when they are over, each told of its packets in turn.
//!
//! Of thousands of connections that take turns packet by packet, none is in the cache when its packet comes. So packets
//! are gathered, some thousands at a time, and each connection is told of all of its own at once: connections share
//! nothing, and the order within each is what counts.

use crate::capture::Packet;
use crate::connection::{Config, Connection, End, SILENCE, mix};
use hashbrown::HashTable;
use slowstart::units::Span;
use slowstart_lab::tcp::segment::{ACK, SYN};

/// A connection is over that was silent for [`SILENCE`], or for so long if an end had said that it was.
const LINGER: Span = Span::secs(60);
/// How often to look for those, in packets.
const SWEEP: u64 = 1 << 16;
/// Packets gathered: three megabytes.
const GATHERED: usize = 1 << 14;
/// No further packet.
const LAST: u32 = u32::MAX;

/// Who talks with whom, in a fixed order, where.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Key {
    ends: [End; 2],
    interface: u32,
}

impl Key {
    /// The same on every machine, in every run.
    fn hash(&self) -> u64 {
        let [(a, p), (b, q)] = self.ends;
        let ports = u64::from(p) << 48 | u64::from(q) << 32 | u64::from(self.interface);
        [a as u64, (a >> 64) as u64, b as u64, (b >> 64) as u64, ports].into_iter().fold(0, mix)
    }
}

/// A packet that waits, with the next of its connection.
#[derive(Debug)]
struct QueuedPacket {
    packet: Packet,
    /// Which end sent it.
    from: usize,
    next: u32,
}

/// The packets that wait for one connection: a chain.
#[derive(Copy, Clone, Debug)]
struct Chain {
    first: u32,
    last: u32,
}

/// A place for a connection.
#[derive(Debug)]
struct Slot {
    key: Key,
    waiting: Option<Chain>,
    connection: Option<Box<Connection>>,
}

/// The connections of a capture that are not over.
#[derive(Debug)]
pub struct Table<'a> {
    config: Config<'a>,
    /// Places in `slots`, found by key; never iterated over.
    index: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The one of the packet before: captures come in runs.
    current: Option<(Key, u32)>,
    gathered: Vec<QueuedPacket>,
    /// Whose packets they are.
    told: Vec<u32>,
    numbered: u64,
    packets: u64,
}

impl<'a> Table<'a> {
    /// No connections.
    pub fn new(config: Config<'a>) -> Self {
        Self {
            config,
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            current: None,
            gathered: Vec::with_capacity(GATHERED),
            told: Vec::new(),
            numbered: 0,
            packets: 0,
        }
    }

    /// How many connections there were so far.
    pub fn connections(&self) -> u64 {
        self.numbered
    }

    /// A packet. `done` gets connections that are over.
    pub fn on_packet(&mut self, p: &Packet, mut done: impl FnMut(Box<Connection>)) {
        let s = &p.seen;
        let (a, b) = ((s.addresses[0], s.ports[0]), (s.addresses[1], s.ports[1]));
        let from = usize::from(a > b);
        let key = Key { ends: if from == 0 { [a, b] } else { [b, a] }, interface: p.interface };
        self.packets += 1;
        if self.packets.is_multiple_of(SWEEP) {
            self.sweep(p.at, &mut done);
        }
        let mut known = self.find(&key);
        // A call with another number where a connection was: another connection.
        if s.has(SYN)
            && !s.has(ACK)
            && let Some(i) = known
        {
            self.tell();
            let old = self.slots[i as usize].connection.as_ref();
            if old.is_some_and(|c| c.is_other(from, s.seq)) {
                self.end(i, &mut done);
                known = None;
            }
        }
        let i = known.unwrap_or_else(|| self.begin(key, p));
        self.current = Some((key, i));
        let n = self.gathered.len() as u32;
        match &mut self.slots[i as usize].waiting {
            Some(chain) => {
                self.gathered[chain.last as usize].next = n;
                chain.last = n;
            }
            none => {
                *none = Some(Chain { first: n, last: n });
                self.told.push(i);
            }
        }
        self.gathered.push(QueuedPacket { packet: *p, from, next: LAST });
        if self.gathered.len() == GATHERED {
            self.tell();
        }
    }

    fn find(&self, key: &Key) -> Option<u32> {
        let known = self.current.filter(|(k, _)| k == key).map(|(_, i)| i);
        known.or_else(|| self.index.find(key.hash(), |i| self.slots[*i as usize].key == *key).copied())
    }

    /// A connection that was not there.
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

    /// Tells each connection of its packets.
    fn tell(&mut self) {
        for i in self.told.drain(..) {
            let slot = &mut self.slots[i as usize];
            let (Some(chain), Some(c)) = (slot.waiting.take(), &mut slot.connection) else { continue };
            let mut at = chain.first;
            while let Some(g) = self.gathered.get(at as usize) {
                // To look at the next one now hides the wait for it.
                std::hint::black_box(self.gathered.get(g.next as usize).map(|g| g.packet.at));
                c.on_packet(&g.packet, g.from, &self.config);
                at = g.next;
            }
        }
        self.gathered.clear();
    }

    /// The connection in this place is over; none of its packets waits.
    fn end(&mut self, i: u32, done: &mut impl FnMut(Box<Connection>)) {
        let slot = &mut self.slots[i as usize];
        let Some(mut c) = slot.connection.take() else { return };
        if let Ok(entry) = self.index.find_entry(slot.key.hash(), |at| *at == i) {
            entry.remove();
        }
        self.free.push(i);
        c.close(&self.config);
        done(c);
    }

    /// Ends what was silent for long.
    fn sweep(&mut self, now: u64, done: &mut impl FnMut(Box<Connection>)) {
        self.tell();
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

    /// The capture is over.
    pub fn finish(mut self, mut done: impl FnMut(Box<Connection>)) {
        self.tell();
        let mut all: Vec<_> = self.slots.into_iter().filter_map(|s| s.connection).collect();
        all.sort_by_key(|c| c.number);
        for mut c in all {
            c.close(&self.config);
            done(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::frame::TcpSegment;

    #[test]
    fn a_port_used_again_is_another_connection_and_the_table_forgets_the_first() {
        let config = Config { candidates: &[].into(), snapshots: false, fork_states: false };
        let mut table = Table::new(config);
        let mut over = Vec::new();
        let packet = |at, seq, flags, port| Packet {
            at,
            interface: 0,
            seen: TcpSegment { addresses: [1, 2], ports: [port, 80], seq, flags, ..TcpSegment::default() },
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
