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

use crate::analysis::{Analysis, Keep, Setup, facts};
use crate::capture::Packet;
use crate::capture::frame::TcpSegment;
use crate::observer::Candidate;
use crate::sender::{AckInfo, DataInfo, Sender};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::Handshake;
use slowstart_sim::tcp::segment::{ACK, FIN, RST, SYN, unwrap};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of data packets with the same timestamp echo that are held.
const MOST_HELD: usize = 512;
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
/// Number of packets in which a duplicate capture of a packet is looked for.
const RECENT: usize = 16;
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

/// An ACK that has passed the capture point but has not reached the sender of the data.
#[derive(Copy, Clone, Debug)]
struct PendingAck {
    timestamp: Option<u32>,
    report: AckInfo,
}

/// One direction of data.
#[derive(Debug)]
pub struct Direction {
    /// Sequence number of the first data byte, once known.
    first: Option<u32>,
    syn_seen: bool,
    /// Maximum segment size offered on the SYN.
    mss: Option<u16>,
    scale: Option<u8>,
    scaling: bool,
    syns: u32,
    /// Sequence number after the FIN, once it was sent.
    fin: Option<u32>,
    fin_acked: bool,
    syn_at: Option<u64>,
    /// Timestamp value of the SYN.
    syn_stamp: Option<u32>,
    /// Where the capture was made relative to this direction's sender.
    pub vantage: Vantage,
    /// Time of the first data since the connection's first packet.
    pub began: Option<Instant>,
    /// Packets that wait until the vantage point is known: true for data, arrival time, segment.
    undecided: Vec<(bool, Instant, TcpSegment)>,
    /// Index of the first ACK in `undecided`.
    acked: Option<usize>,
    decided: bool,
    pending: VecDeque<PendingAck>,
    /// At the receiver without timestamps: arrival of the newest data, time of the first ACK for data, and
    /// the RTT between that ACK and the first data after a silence, which may differ from the handshake's.
    newest_data: Instant,
    first_ack: Option<Instant>,
    data_rtt: Option<Span>,
    /// The newest ACK that was passed on to the sender.
    released: Option<PendingAck>,
    /// Away from the sender: data with the same timestamp echo, which waits until data with another echo
    /// comes.
    held: Vec<DataInfo>,
    held_echo: u32,
    /// Round trip to the sender before the first ACK.
    away: Span,
    /// The sender, once it has sent data.
    pub sender: Option<Box<Sender>>,
    /// Hashes of the newest packets, to find duplicate captures.
    recent: [u64; RECENT],
    newest: usize,
}

/// The data of a segment, sent and captured at these times.
fn data(s: &TcpSegment, offset: u64, sent: Instant, captured: Instant) -> DataInfo {
    DataInfo {
        at: sent,
        captured,
        from: offset,
        upto: offset + u64::from(s.len),
        timestamp: s.timestamp.map(|t| t.0),
        marked: s.marked,
    }
}

impl Direction {
    /// Passes the held data to the sender, and before it the ACKs that the sender had received by then. All
    /// ACKs with a timestamp value before the echo had arrived; of those with the echo's own value the first,
    /// before the first data, and all of them before the last: the others are spread evenly over the data, as
    /// a sender sends that its window limits.
    fn release_held(&mut self) {
        let Some(sender) = &mut self.sender else { return };
        let echo = self.held_echo;
        let upto = |value: u32| echo.wrapping_sub(value).cast_signed();
        let same = self.pending.iter().skip_while(|a| a.timestamp.is_some_and(|t| upto(t) > 0));
        let same = same.take_while(|a| a.timestamp == Some(echo)).count();
        let (all, mut released) = (self.held.len(), 0);
        for (i, d) in self.held.iter_mut().enumerate() {
            while let Some(next) = self.pending.front() {
                let Some(value) = next.timestamp else { break };
                let due = upto(value) > 0 || (value == echo && released * all < same * (i + 1));
                if !due {
                    break;
                }
                released += usize::from(value == echo);
                sender.on_ack(&next.report);
                self.released = self.pending.pop_front();
            }
            let by_echo = self.released.filter(|r| r.timestamp.is_some());
            d.at = by_echo.map_or(Instant(d.captured.0.saturating_sub(self.away.0)), |r| r.report.at);
            sender.on_data(d);
        }
        self.held.clear();
    }

    fn new() -> Self {
        Self {
            first: None,
            syn_seen: false,
            mss: None,
            scale: None,
            scaling: false,
            syns: 0,
            fin: None,
            fin_acked: false,
            syn_at: None,
            syn_stamp: None,
            vantage: Vantage::Unknown,
            began: None,
            undecided: Vec::new(),
            acked: None,
            decided: false,
            pending: VecDeque::new(),
            newest_data: Instant::ZERO,
            first_ack: None,
            data_rtt: None,
            released: None,
            held: Vec::new(),
            held_echo: 0,
            away: Span::ZERO,
            sender: None,
            recent: [0; RECENT],
            newest: 0,
        }
    }

    /// True if the SYN of this direction was captured.
    pub fn syn_seen(&self) -> bool {
        self.syn_seen
    }
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
    /// Packets with a time before that of an earlier packet.
    pub backwards: u64,
    /// Greatest common divisor of the times of all packets, nanoseconds: a multiple of the tick of the
    /// capture clock.
    pub tick: u64,
    /// True if timestamps are in use.
    pub timestamps: bool,
    /// True if ECN was negotiated (RFC 3168 §6.1.1).
    pub ecn: bool,
    asked_ecn: bool,
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
            backwards: 0,
            tick: 0,
            timestamps: false,
            ecn: false,
            asked_ecn: false,
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
        if self.silent {
            return;
        }
        if p.at < self.last {
            self.backwards += 1;
        }
        self.last = self.last.max(p.at);
        // One microsecond is as good as no tick.
        if self.tick == 0 || self.tick > 1000 {
            self.tick = gcd(self.tick, p.at - self.start.min(p.at));
        }
        if self.finished {
            return;
        }
        let at = Instant(self.last - self.start);
        // A duplicate capture (mirror port, router): even the IP identification is the same.
        let name =
            mix(mix(0, u64::from(s.id) << 32 | u64::from(s.len)), u64::from(s.seq) << 32 | u64::from(s.ack));
        let direction = &mut self.directions[from];
        if s.id != 0 && direction.recent.contains(&name) {
            self.duplicates += 1;
            return;
        }
        direction.newest = (direction.newest + 1) % RECENT;
        direction.recent[direction.newest] = name;
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

    fn on_syn(&mut self, s: &TcpSegment, from: usize, at: u64) {
        let w = &mut self.directions[from];
        w.syns += 1;
        w.syn_seen = true;
        w.first = Some(s.seq.wrapping_add(1));
        (w.mss, w.scale) = (s.mss, s.scale);
        (w.syn_at, w.syn_stamp) = (Some(at), s.timestamp.map(|t| t.0));
        self.timestamps = s.timestamp.is_some();
        if s.has(ACK) {
            self.ecn = self.asked_ecn && s.has(ECE) && !s.has(CWR);
            self.answered = Some(at);
            self.caller = self.caller.or(Some(1 - from));
        } else {
            self.caller = Some(from);
            self.asked_ecn = s.has(ECE | CWR);
        }
        let both = self.directions.iter().all(|w| w.scale.is_some());
        for w in &mut self.directions {
            w.scaling = both;
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
        // Without timestamps, a response cannot be told from data already under way; only the handshake
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
        let known = self.distance.iter().all(|a| *a < u64::MAX);
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
                if !w.held.is_empty() && (w.held_echo != echo || w.held.len() >= MOST_HELD) {
                    w.release_held();
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
        let scale = if self.directions[from].scaling && !s.has(SYN) {
            self.directions[from].scale.unwrap_or(0)
        } else {
            0
        };
        // Without the SYN the window scale is unknown, and so is the window.
        let window = if self.directions[from].syn_seen { u64::from(s.window) << scale } else { u64::MAX };
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
        let pure = s.len == 0 && s.flags & (SYN | FIN) == 0;
        let marks = self.ecn && s.has(ECE) && !s.has(SYN);
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
