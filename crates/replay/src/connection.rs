//! Connections: assigns the packets of a capture to the two directions of a connection and drives a
//! [`Sender`] for each direction with data.
//!
//! **Vantage point.** Handshake, first data and first ACK show which end is near the capture point; packets
//! wait until this is known. At the sender, events are taken as they are. At the receiver, data is seen half
//! an RTT late and losses are not seen, but the timestamp echo of each data packet shows which ACK the sender
//! had received when it sent it. ACKs are therefore held back until an echo shows their arrival, which
//! restores the sender's order of events on the receiver's clock. The delay of the return path cancels out of
//! every RTT if it is constant. Without timestamps the handshake RTT stands for all, and delays cannot be
//! measured.

mod direction;

pub use direction::Direction;
use direction::{MOST_HELD, PendingAck, data};

use crate::analysis::{Analysis, Keep, Setup, facts};
use crate::capture::Packet;
use crate::capture::frame::TcpSegment;
use crate::infer::NoExit;
use crate::observer::Candidate;
use crate::sender::{AckInfo, DataInfo, Sender, before};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::Handshake;
use slowstart_sim::tcp::segment::{ACK, FIN, RST, SYN, unwrap};
use std::sync::Arc;

/// Maximum number of ACKs held back at the receiver.
const MOST_PENDING: usize = 1 << 16;
/// Silence after which a connection is over.
pub const SILENCE: Span = Span::secs(600);
/// Flags of RFC 3168 §6.1: CWR by the sender of data, ECE by its receiver.
const CWR: u8 = 0x80;
const ECE: u8 = 0x40;
/// Maximum number of packets that wait until the vantage point is known.
const UNDECIDED: usize = 512;
/// Ratio of the distances to the two ends from which on the capture is at the nearer end.
const NEAR: u64 = 3;
/// Maximum time for a host to answer a SYN.
const HOST: Span = Span::micros(800);
/// A tick of timestamps, as most systems have it (Linux, Windows, macOS).
const TICK: u64 = 1_000_000;
/// Ticks of the timestamps from which the least RTT that they give is one of the path.
const FEW_TICKS: u64 = 4;
/// Number of packets in which a second capture of a packet is looked for by its whole header.
const RECENT: usize = 16;
/// A SYN that comes again sooner was captured twice: its sender waits for a second (RFC 6298 §2).
const SYN_AGAIN: u64 = 200_000_000;
/// If one of so many packets is a second capture, a pure ACK that is equal to an earlier one is, too, and no
/// duplicate ACK.
const COPIED: u64 = 4;
/// Packets with times further back than this were captured by a clock that has stepped, or are displaced.
/// Closer ones come from several processors or queues.
pub(crate) const BACK: u64 = 1_000_000;
/// So many of them in a row: the clock has stepped.
const STEPPED: u32 = 8;
/// Payload of a full segment if the SYNs do not state it (RFC 9293 §3.7.1 with timestamps).
const MSS: u64 = 1448;

/// Where a capture was made, relative to the sender of the data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Vantage {
    /// The capture was made at the sender.
    Sender,
    /// The capture was made at the receiver.
    Receiver,
    /// The capture was made between the two ends.
    Middle,
    /// Not known: the handshake is missing.
    Unknown,
}

impl Vantage {
    /// True if the sender is away from the capture: its order of events must be restored.
    const fn is_away(self) -> bool {
        matches!(self, Self::Receiver | Self::Middle)
    }

    /// The name used in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Middle => "middle",
            Self::Unknown => "unknown",
        }
    }
}

/// The vantage point, given the shortest round trip from the capture to the sender and to the receiver.
fn vantage(to_sender: u64, to_receiver: u64) -> Vantage {
    if to_sender <= to_receiver / NEAR {
        Vantage::Sender
    } else if to_receiver <= to_sender / NEAR {
        Vantage::Receiver
    } else {
        Vantage::Middle
    }
}

/// An end of a connection: address and port.
pub type End = (u128, u16);

/// Hashes words, with the same result on every machine: the upper and lower half of the product with an odd
/// constant (from the golden ratio).
pub(crate) fn mix(sum: u64, word: u64) -> u64 {
    let wide = u128::from(sum.rotate_left(25) ^ word) * 0x9e37_79b9_7f4a_7c15;
    (wide >> 64) as u64 ^ wide as u64
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// What to compute for each connection.
#[derive(Copy, Clone, Debug)]
pub struct Config<'a> {
    /// The startups whose behaviour is predicted.
    pub candidates: &'a Arc<[Candidate]>,
    /// What is kept besides the row.
    pub keep: Keep,
}

/// A connection of a capture, in both directions.
#[derive(Debug)]
pub struct Connection {
    /// Its number in the file, from 1.
    pub number: u64,
    /// The two ends; data of direction 0 comes from end 0.
    pub ends: [End; 2],
    /// Index of the capture interface.
    pub interface: u32,
    /// Time of the first packet, nanoseconds since 1970.
    pub start: u64,
    /// Time of the last packet.
    last: u64,
    /// The end that sent the first SYN.
    caller: Option<usize>,
    answered: Option<u64>,
    /// RTT of the handshake.
    pub handshake: Option<Span>,
    established: bool,
    /// Shortest round trip from the capture point to each end.
    distance: [u64; 2],
    closing: bool,
    /// True if its rows were made and its senders are released; later packets are ignored.
    pub finished: bool,
    /// Its two directions: first that of the end that called.
    pub directions: [Direction; 2],
    /// True if the connection was silent for longer than [`SILENCE`] or a time is damaged; later packets are
    /// ignored.
    pub silent: bool,
    /// Packets that were captured twice.
    pub duplicates: u64,
    /// All packets of the connection.
    packets: u64,
    /// Packets with a time before that of an earlier packet.
    pub backwards: u64,
    /// Those of them that are so far back and come one after the other.
    behind: u32,
    /// True if the clock of the capture has stepped back; later packets are ignored.
    pub stepped: bool,
    /// Greatest common divisor of the times of all packets, nanoseconds: a multiple of the tick of the
    /// capture clock.
    pub tick: u64,
    /// True if timestamps are in use.
    pub timestamps: bool,
    /// What of ECN was negotiated.
    pub ecn: Ecn,
    asked: Ecn,
}

/// Feedback of congestion by the network.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// None, or the handshake was not captured.
    No,
    /// An echo until it is answered (RFC 3168 §6.1.1).
    Classic,
    /// A count of marked packets in each ACK (RFC 9768).
    Accurate,
}

/// What a count of marks begins with (RFC 9768 §3.2.1).
const FIRST_COUNT: u8 = 5;

/// The three flags in which a packet has its count of marks.
fn count(s: &TcpSegment) -> u8 {
    u8::from(s.accurate) << 2 | u8::from(s.has(CWR)) << 1 | u8::from(s.has(ECE))
}

impl Connection {
    /// A new connection, from its first packet, which is then also passed to [`Self::on_packet`].
    pub fn new(number: u64, p: &Packet, ends: [End; 2]) -> Self {
        Self {
            number,
            ends,
            interface: p.interface,
            start: p.at,
            last: p.at,
            caller: None,
            answered: None,
            handshake: None,
            established: false,
            distance: [u64::MAX; 2],
            closing: false,
            finished: false,
            directions: [Direction::new(), Direction::new()],
            silent: false,
            duplicates: 0,
            packets: 0,
            backwards: 0,
            behind: 0,
            stepped: false,
            tick: 0,
            timestamps: false,
            ecn: Ecn::No,
            asked: Ecn::No,
        }
    }

    /// The end that sent the first SYN, if the handshake was captured.
    pub fn caller(&self) -> Option<usize> {
        self.caller
    }

    /// Time of the last packet, nanoseconds since 1970.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// True if an end has sent FIN or RST.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// True if the FINs of both ends are acknowledged: all data has arrived.
    pub fn is_complete(&self) -> bool {
        self.directions.iter().all(|d| d.fin_acked)
    }

    /// True if a SYN of end `from` with this sequence number begins another connection.
    pub fn is_other(&self, from: usize, seq: u32) -> bool {
        self.directions[from].first.is_some_and(|f| f != seq.wrapping_add(1))
    }

    /// Number of retransmitted SYNs and SYN-ACKs.
    pub fn syn_losses(&self) -> u64 {
        self.directions.iter().map(|w| u64::from(w.syns.saturating_sub(1))).sum()
    }

    /// Processes a packet of end `from`.
    pub fn on_packet(&mut self, p: &Packet, from: usize, config: &Config) {
        let s = &p.segment;
        if p.at.saturating_sub(self.last) > SILENCE.0 {
            self.silent = true;
        }
        if self.silent || self.stepped {
            return;
        }
        if p.at < self.last {
            self.backwards += 1;
        }
        if p.at.saturating_add(BACK) < self.last {
            // Its true time is not known.
            self.behind += 1;
            self.stepped = self.behind >= STEPPED;
            return;
        }
        self.behind = 0;
        self.last = self.last.max(p.at);
        // One microsecond is as good as no tick.
        if self.tick == 0 || self.tick > 1000 {
            self.tick = gcd(self.tick, p.at - self.start.min(p.at));
        }
        if self.finished {
            return;
        }
        let at = Instant(self.last - self.start);
        self.packets += 1;
        if self.is_copy(s, from, p.at) {
            self.duplicates += 1;
            return;
        }
        if !s.has(SYN) {
            self.timestamps |= s.timestamp.is_some();
        }
        if s.has(SYN) {
            self.on_syn(s, from, p.at);
        } else if s.has(ACK) && !self.established {
            self.on_handshake_ack(from);
        }
        self.closing |= s.has(RST) || s.has(FIN);
        if s.has(FIN) {
            self.directions[from].fin = Some(s.seq.wrapping_add(s.len).wrapping_add(1));
        }
        if s.has(ACK) {
            let other = &mut self.directions[1 - from];
            other.fin_acked |= other.fin.is_some_and(|fin| s.ack.wrapping_sub(fin).cast_signed() >= 0);
        }
        if s.len > 0 && !s.has(RST) {
            self.process(from, true, at, s, config);
        }
        if s.has(ACK) && !s.has(RST) {
            self.process(1 - from, false, at, s, config);
        }
    }

    /// True if a packet was captured before: by a mirror port, before and after a router, or on a bridge and
    /// on its port. Second captures of data are left to the [`Sender`], which knows what it has sent.
    fn is_copy(&mut self, s: &TcpSegment, from: usize, at: u64) -> bool {
        let words = [
            u64::from(s.id) << 32 | u64::from(s.len),
            u64::from(s.seq) << 32 | u64::from(s.ack),
            u64::from(s.window.unwrap_or(0)) << 32 | u64::from(s.flags) << 8 | u64::from(s.sacks),
            s.timestamp.map_or(0, |(value, echo)| u64::from(value) << 32 | u64::from(echo)),
            u64::from(s.sack[0].0) << 32 | u64::from(s.sack[0].1),
        ];
        let name = words.into_iter().fold(0, mix);
        if let Some(i) = self.directions[from].recent.iter().position(|r| *r == name) {
            let copies = self.duplicates + self.copies_of_data();
            let w = &mut self.directions[from];
            // Another packet has another identification, if it has one at all. Of ACKs without one, which are
            // equal if they are duplicate ACKs, each was captured as often as the SYN.
            let acknowledges = s.len == 0 && !s.has(SYN) && !s.has(FIN);
            let copied = acknowledges && copies * COPIED > self.packets;
            if s.id != 0 || (copied && w.taken[i] < w.syn_copies.max(1)) {
                w.taken[i] = w.taken[i].saturating_add(1);
                return true;
            }
        }
        // A SYN that came since the last SYN-ACK is answered, within a tick of the timestamps as well.
        let answers = s.has(ACK) && self.directions[1 - from].syn_at > self.answered;
        let w = &mut self.directions[from];
        w.newest = (w.newest + 1) % RECENT;
        (w.recent[w.newest], w.taken[w.newest]) = (name, 0);
        let again = s.has(SYN)
            && w.syn_seen
            && !answers
            && w.first == Some(s.seq.wrapping_add(1))
            && match (w.syn_stamp, s.timestamp) {
                (Some(stamp), Some((value, _))) => stamp == value,
                _ => w.syn_at.is_some_and(|first| at.saturating_sub(first) < SYN_AGAIN),
            };
        w.syn_copies = w.syn_copies.saturating_add(u8::from(again));
        again
    }

    /// Second captures of data in both directions.
    pub fn copies_of_data(&self) -> u64 {
        self.directions.iter().filter_map(|w| w.sender.as_ref()).map(|s| s.counters.copies).sum()
    }

    fn on_syn(&mut self, s: &TcpSegment, from: usize, at: u64) {
        let w = &mut self.directions[from];
        w.syns += 1;
        w.syn_seen = true;
        w.first = Some(s.seq.wrapping_add(1));
        (w.mss, w.scale, w.syn_cut) = (s.mss, s.scale, s.cut);
        (w.syn_at, w.syn_stamp) = (Some(at), s.timestamp.map(|t| t.0));
        self.timestamps = s.timestamp.is_some();
        if s.has(ACK) {
            self.ecn = match (self.asked, count(s)) {
                (Ecn::Accurate, 0b010 | 0b011 | 0b100 | 0b110) => Ecn::Accurate,
                (Ecn::Classic | Ecn::Accurate, 0b001 | 0b101) => Ecn::Classic,
                _ => Ecn::No,
            };
            self.answered = Some(at);
            self.caller = self.caller.or(Some(1 - from));
        } else {
            self.caller = Some(from);
            self.asked = match count(s) {
                0b111 => Ecn::Accurate,
                0b011 => Ecn::Classic,
                _ => Ecn::No,
            };
        }
        for d in 0..2 {
            self.directions[d].shift = self.shift(d);
        }
    }

    /// By how many bits the windows of end `from` are shifted (RFC 7323 §2.2): both SYNs must say it. `None` if
    /// one was not captured, or was cut.
    fn shift(&self, from: usize) -> Option<u8> {
        let stated = |d: usize| {
            let w = &self.directions[d];
            (w.syn_seen && (w.scale.is_some() || !w.syn_cut)).then_some(w.scale)
        };
        match (stated(from), stated(1 - from)) {
            (Some(None), _) | (_, Some(None)) => Some(0),
            (Some(own), Some(_)) => own,
            _ => None,
        }
    }

    /// Completes the handshake with the caller's first ACK.
    fn on_handshake_ack(&mut self, from: usize) {
        self.established = true;
        let (Some(caller), Some(answered)) = (self.caller.filter(|c| *c == from), self.answered) else {
            return;
        };
        let Some(called) = self.directions[caller].syn_at.filter(|c| *c <= answered) else { return };
        // Round trip from the capture point to the called end, and to the caller.
        let (to_called, to_caller) = (answered - called, self.last - answered);
        self.handshake = Some(Span(to_called + to_caller));
        self.distance[1 - caller] = to_called;
        self.distance[caller] = to_caller;
    }

    /// Processes data of end `d`, or an ACK for it.
    fn process(&mut self, d: usize, data: bool, at: Instant, s: &TcpSegment, config: &Config) {
        let w = &mut self.directions[d];
        if w.decided {
            return if data { self.on_data(s, d, at, config) } else { self.on_ack(s, 1 - d, at) };
        }
        if !data && w.undecided.is_empty() {
            return;
        }
        w.undecided.push((data, at, *s));
        // True if the data was sent after this ACK had reached its sender: the timestamp echo shows it.
        // Without timestamps, a response looks the same as data already under way; only the handshake
        // decides.
        let answers = |ack: &TcpSegment, s: &TcpSegment| {
            let (Some((value, _)), Some((_, echo))) = (ack.timestamp, s.timestamp) else { return false };
            echo.wrapping_sub(value).cast_signed() >= 0
        };
        if !data {
            w.acked.get_or_insert(w.undecided.len() - 1);
        }
        let acked = w.acked.map(|i| &w.undecided[i]);
        let guess = acked.is_some() && s.timestamp.is_none();
        if let Some((_, ack, _)) = acked.filter(|a| data && answers(&a.2, s)) {
            let (to_receiver, to_sender) = (ack.since(w.undecided[0].1).0, at.since(*ack).0);
            self.distance[1 - d] = self.distance[1 - d].min(to_receiver);
            self.distance[d] = self.distance[d].min(to_sender);
            self.decide(d, config);
        } else if guess || w.undecided.len() >= UNDECIDED {
            self.decide(d, config);
        }
    }

    /// Sets the vantage point of direction `d` and processes the waiting packets.
    fn decide(&mut self, d: usize, config: &Config) {
        // Within a tick of the timestamps an echo does not tell which of two ACKs data answers.
        let known = self.distance.iter().all(|a| *a < u64::MAX)
            && (self.handshake.is_some() || self.distance.iter().any(|a| *a > TICK));
        let w = &mut self.directions[d];
        w.decided = true;
        if known {
            w.vantage = vantage(self.distance[d], self.distance[1 - d]);
            // An end that is slow to answer the handshake looks distant; only a host itself answers within
            // `HOST`.
            if w.vantage == Vantage::Receiver && !self.timestamps && self.distance[1 - d] > HOST.0 {
                w.vantage = Vantage::Middle;
            }
        }
        for (data, at, s) in std::mem::take(&mut w.undecided) {
            if data { self.on_data(&s, d, at, config) } else { self.on_ack(&s, 1 - d, at) }
        }
    }

    /// Payload of a full segment sent by `from`.
    fn mss(&self, from: usize) -> Bytes {
        let offered = [self.directions[from].mss, self.directions[1 - from].mss].into_iter().flatten().min();
        let options = if self.timestamps { 12 } else { 0 };
        Bytes(offered.map_or(MSS, |m| u64::from(m).saturating_sub(options)).max(88))
    }

    /// Round trip from the capture point to an end: at the receiver, that of the handshake.
    fn to_sender(&self, from: usize) -> Span {
        let whole = self.handshake.unwrap_or(Span::ZERO);
        let middle = self.directions[from].vantage == Vantage::Middle && self.distance[from] < u64::MAX;
        if middle { Span(self.distance[from]) } else { whole }
    }

    fn on_data(&mut self, s: &TcpSegment, from: usize, at: Instant, config: &Config) {
        if self.directions[from].sender.is_none() {
            let mss = self.mss(from);
            let clear = self.directions.iter().all(|w| w.syns == 1);
            let handshake = Handshake::new(self.handshake.filter(|_| clear));
            let none: Arc<[Candidate]> = Arc::new([]);
            let candidates = if self.directions[from].syn_seen { config.candidates } else { &none };
            let setup = Setup { mss, iw: None, gated: true, handshake, keep: config.keep };
            let mut analysis = Analysis::new(setup, candidates);
            let receiver = self.directions[from].vantage == Vantage::Receiver;
            if receiver {
                let w = &self.directions[from];
                let syn = w.syn_at.map(|at| Instant(at.saturating_sub(self.start)));
                analysis.at_receiver(syn.zip(w.syn_stamp));
            }
            let mut f = facts(mss);
            let early = if self.directions[from].vantage.is_away() { self.to_sender(from).0 } else { 0 };
            (f.now, f.srtt) = (Instant(at.0.saturating_sub(early)), self.handshake);
            let w = &mut self.directions[from];
            (w.began, w.away) = (Some(at), Span(early));
            w.sender = Some(Box::new(Sender::new(f, receiver, analysis)));
        }
        let rtt = self.to_sender(from);
        let w = &mut self.directions[from];
        let Some(sender) = &w.sender else { return };
        let start = if s.has(SYN) { s.seq.wrapping_add(1) } else { s.seq };
        let first = *w.first.get_or_insert(start);
        let Some(offset) = unwrap(start, first, sender.max()) else { return };
        let mut sent = at;
        if w.vantage.is_away() {
            if let (Some(ack), None, None) = (w.first_ack, w.data_rtt, s.timestamp)
                && at.since(w.newest_data) > rtt / 2
            {
                let found = at.since(ack);
                w.data_rtt = Some(if (rtt / 2..rtt * 2).contains(&found) { found } else { rtt });
            }
            w.newest_data = at;
            let rtt = w.data_rtt.unwrap_or(rtt);
            if let Some((value, echo)) = s.timestamp {
                let d = DataInfo { timestamp: Some(value), ..data(s, offset, at, at) };
                w.take_stamp(at, value);
                if w.held_echo != echo || w.held.len() >= MOST_HELD {
                    let stale = w.stale_from(value, echo).map(|from| w.held.split_off(from));
                    w.release_held();
                    if let Some(stale) = stale {
                        w.held = stale;
                    }
                }
                w.held_echo = echo;
                w.held.push(d);
                return;
            }
            w.release_held();
            let Some(sender) = &mut w.sender else { return };
            while w.pending.front().is_some_and(|a| a.report.at + rtt <= at) {
                w.released = w.pending.pop_front();
                if let Some(r) = &w.released {
                    sender.on_ack(&r.report);
                }
            }
            sent = Instant(at.0.saturating_sub(rtt.0));
        }
        let Some(sender) = &mut w.sender else { return };
        sender.on_data(&data(s, offset, sent, at));
    }

    fn on_ack(&mut self, s: &TcpSegment, from: usize, at: Instant) {
        let acks = &mut self.directions[from];
        let stale = acks.is_stale(at, s.timestamp.map(|t| t.0));
        let window = match (s.window, acks.shift) {
            (Some(0), _) => Some(0),
            (Some(w), _) if s.has(SYN) => Some(u64::from(w)),
            (w, shift) => w.zip(shift).map(|(w, shift)| u64::from(w) << shift),
        };
        // A count in an older ACK is an older one.
        let late = stale || acks.ack.is_some_and(|newest| before(s.ack, newest));
        let marks = match self.ecn {
            Ecn::No => false,
            Ecn::Classic => s.has(ECE) && !s.has(SYN),
            Ecn::Accurate if late || s.has(SYN) => false,
            Ecn::Accurate => acks.ace.replace(count(s)).unwrap_or(FIRST_COUNT) != count(s),
        };
        if !late {
            acks.ack = Some(s.ack);
        }
        let w = &mut self.directions[1 - from];
        let (Some(sender), Some(first)) = (&mut w.sender, w.first) else { return };
        let Some(upto) = unwrap(s.ack, first, sender.max()) else { return };
        let mut sack = [(0, 0); 4];
        let mut sacks = 0;
        for &(a, b) in s.blocks() {
            if let (Some(a), Some(b)) = (unwrap(a, first, sender.max()), unwrap(b, first, sender.max())) {
                sack[sacks] = (a, b);
                sacks += 1;
            }
        }
        let echo = s.timestamp.map(|t| t.1);
        let pure = s.len == 0 && s.flags & (SYN | FIN) == 0 && !stale;
        let report = AckInfo { at, upto, sack, sacks, window, echo, marks, pure };
        if w.vantage.is_away() {
            if upto > 0 {
                w.first_ack.get_or_insert(at);
            }
            w.pending.push_back(PendingAck { timestamp: s.timestamp.map(|t| t.0), report });
            if w.pending.len() > MOST_PENDING {
                w.released = w.pending.pop_front();
                sender.on_ack(&w.released.expect("more than none").report);
            }
        } else {
            sender.on_ack(&report);
        }
    }

    /// Why the RTTs of the sender `from` are not those of its path, the least being `rtt`.
    pub fn no_path(&self, from: usize, rtt: Option<Span>) -> Option<NoExit> {
        let rtt = rtt?;
        let w = &self.directions[from];
        // The time that a receiver's host takes to answer, if it was captured there.
        let host = w.vantage == Vantage::Unknown && rtt <= HOST;
        let tick = self.directions[1 - from].tick();
        // Samples are off by a tick, and the least of many by more. A handshake tells the RTT without timestamps.
        let few = if self.handshake.is_some() { 1 } else { FEW_TICKS };
        let below = w.vantage.is_away() && tick.is_some_and(|tick| rtt < tick * few);
        host.then_some(NoExit::NoVantage).or(below.then_some(NoExit::BelowTick))
    }

    /// Processes what is waiting; the connection is over.
    pub fn close(&mut self, config: &Config) {
        for d in 0..2 {
            if !self.directions[d].decided {
                self.decide(d, config);
            }
        }
        for w in &mut self.directions {
            w.release_held();
            for ack in std::mem::take(&mut w.pending) {
                if let Some(sender) = &mut w.sender {
                    sender.on_ack(&ack.report);
                }
            }
        }
    }
}
