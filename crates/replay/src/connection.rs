//! Connections: packets of a capture told apart, each direction's data given to a sender that it must have come from.
//!
//! **Point of view.** A packet of the near end is answered late and follows what it answers at once. Handshake, first
//! data and first ACK tell which end is near, and wait until they do. At the sender's, events are as they are. At the receiver's,
//! data is seen half a round trip late and losses not at all, but each packet's timestamp echo tells which ACK the
//! sender had when it sent it: ACKs are held back until then, and the sender's order of events is restored, in the
//! receiver's time. The way back cancels out of every round trip, if it does not vary. Without timestamps the
//! handshake's round trip must do, and delays cannot be measured.

use crate::analysis::{Analysis, Setup, facts};
use crate::capture::Packet;
use crate::capture::frame::TcpSegment;
use crate::observer::Candidate;
use crate::sender::{AckInfo, DataInfo, Sender};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::Handshake;
use slowstart_lab::tcp::segment::{ACK, FIN, RST, SYN, unwrap};
use std::collections::VecDeque;
use std::sync::Arc;

/// ACKs held back at most, at the receiver's side.
const HELD: usize = 1 << 16;
/// A connection that was silent for so long is over.
pub const SILENCE: Span = Span::secs(600);
/// Flags of RFC 3168 §6.1: the sender answered a mark, the receiver tells of one.
const CWR: u8 = 0x80;
const ECE: u8 = 0x40;
/// Packets that wait for the point of view to become clear.
const UNDECIDED: usize = 512;
/// What is so many times nearer than the other is at the one end.
const NEAR: u64 = 3;
/// What a host takes to answer a SYN.
const HOST: Span = Span::micros(800);
/// Packets among which the same one is looked for again.
const RECENT: usize = 16;
/// A segment where nobody said (RFC 9293 §3.7.1 with timestamps, and what paths carry).
const MSS: u64 = 1448;

/// Where a capture was made, as seen from the data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Vantage {
    /// At the sender.
    Sender,
    /// At the receiver.
    Receiver,
    /// Between the two.
    Middle,
    /// The handshake is missing.
    Unknown,
}

impl Vantage {
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Middle => "middle",
            Self::Unknown => "unknown",
        }
    }
}

/// Where it is seen from, given the shortest way to the sender and back, and to the receiver and back.
fn vantage(to_sender: u64, to_receiver: u64) -> Vantage {
    if to_sender <= to_receiver / NEAR {
        Vantage::Sender
    } else if to_receiver <= to_sender / NEAR {
        Vantage::Receiver
    } else {
        Vantage::Middle
    }
}

/// An end: address and port.
pub type End = (u128, u16);

/// A hash of words that is the same on every machine: the halves of a product with an odd constant of which half the
/// bits are set (the golden ratio's).
pub(crate) fn mix(sum: u64, word: u64) -> u64 {
    let wide = u128::from(sum.rotate_left(25) ^ word) * 0x9e37_79b9_7f4a_7c15;
    (wide >> 64) as u64 ^ wide as u64
}

/// What to do with connections.
#[derive(Copy, Clone, Debug)]
pub struct Config<'a> {
    /// Which startups to ask.
    pub candidates: &'a Arc<[Candidate]>,
    /// Whether to keep samples.
    pub snapshots: bool,
    /// Whether somebody wants to go on from where startups differ from what was seen.
    pub fork_states: bool,
}

/// An ACK that its sender of data has not seen yet.
#[derive(Copy, Clone, Debug)]
struct PendingAck {
    timestamp: Option<u32>,
    report: AckInfo,
}

/// Data one way.
#[derive(Debug)]
pub struct Direction {
    /// The number of the first byte, once it is known.
    first: Option<u32>,
    syn_seen: bool,
    /// Offered on the SYN.
    mss: Option<u16>,
    scale: Option<u8>,
    scaling: bool,
    syns: u32,
    syn_at: Option<u64>,
    /// The SYN's timestamp.
    syn_stamp: Option<u32>,
    /// Where it is seen from.
    pub vantage: Vantage,
    /// When it was first seen, nanoseconds since the connection's first packet.
    pub began: Option<Instant>,
    /// What came before it was known where it is seen from: whether it is data, when it came, and what it says.
    undecided: Vec<(bool, Instant, TcpSegment)>,
    /// The first ACK among those.
    acked: Option<usize>,
    decided: bool,
    held: VecDeque<PendingAck>,
    /// The newest ACK released, by time.
    released: Option<PendingAck>,
    /// Its sender, once it has sent.
    pub sender: Option<Box<Sender>>,
    /// The newest packets, by a hash of what tells them apart.
    recent: [u64; RECENT],
    newest: usize,
}

impl Direction {
    fn new() -> Self {
        Self {
            first: None,
            syn_seen: false,
            mss: None,
            scale: None,
            scaling: false,
            syns: 0,
            syn_at: None,
            syn_stamp: None,
            vantage: Vantage::Unknown,
            began: None,
            undecided: Vec::new(),
            acked: None,
            decided: false,
            held: VecDeque::new(),
            released: None,
            sender: None,
            recent: [0; RECENT],
            newest: 0,
        }
    }

    /// Whether its begin was seen.
    pub fn syn_seen(&self) -> bool {
        self.syn_seen
    }
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Its number in the file, from 1.
    pub number: u64,
    /// Its ends; data of direction 0 comes from end 0.
    pub ends: [End; 2],
    /// Which interface it was captured on.
    pub interface: u32,
    /// Its first packet, nanoseconds since 1970.
    pub start: u64,
    /// Its last.
    last: u64,
    /// Which end called.
    caller: Option<usize>,
    answered: Option<u64>,
    /// The handshake's round trip.
    pub handshake: Option<Span>,
    established: bool,
    /// The shortest way from where it is captured to each end and back.
    away: [u64; 2],
    closing: bool,
    /// Data each way.
    pub directions: [Direction; 2],
    /// It was silent for longer than [`SILENCE`], or a time is damaged: what came after is left out.
    pub silent: bool,
    /// Packets that the capture had twice.
    pub doubled: u64,
    /// Packets whose time ran backwards.
    pub backwards: u64,
    /// Whether timestamps are in use.
    pub timestamps: bool,
    /// Whether marks are (RFC 3168 §6.1.1): asked for, and agreed to.
    pub ecn: bool,
    asked_ecn: bool,
}

impl Connection {
    /// With its first packet, of which it is yet to be told.
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
            away: [u64::MAX; 2],
            closing: false,
            directions: [Direction::new(), Direction::new()],
            silent: false,
            doubled: 0,
            backwards: 0,
            timestamps: false,
            ecn: false,
            asked_ecn: false,
        }
    }

    /// When its last packet came, nanoseconds since 1970.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether an end has said that it is over.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether a SYN of end `from` with this number would begin another connection.
    pub fn is_other(&self, from: usize, seq: u32) -> bool {
        self.directions[from].first.is_some_and(|f| f != seq.wrapping_add(1))
    }

    /// How often SYN and SYN-ACK had to be sent again.
    pub fn syn_losses(&self) -> u64 {
        self.directions.iter().map(|w| u64::from(w.syns.saturating_sub(1))).sum()
    }

    /// A packet of end `from`.
    pub fn on_packet(&mut self, p: &Packet, from: usize, config: &Config) {
        let s = &p.seen;
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
        let at = Instant(self.last - self.start);
        // The same packet again, as mirrors and routers show it: not even its identification differs.
        let name =
            mix(mix(0, u64::from(s.id) << 32 | u64::from(s.len)), u64::from(s.seq) << 32 | u64::from(s.ack));
        let way = &mut self.directions[from];
        if s.id != 0 && way.recent.contains(&name) {
            self.doubled += 1;
            return;
        }
        way.newest = (way.newest + 1) % RECENT;
        way.recent[way.newest] = name;
        if s.has(SYN) {
            self.on_syn(s, from, p.at);
        } else if s.has(ACK) && !self.established {
            self.on_third(from);
        }
        self.closing |= s.has(RST) || s.has(FIN);
        if s.len > 0 && !s.has(RST) {
            self.take(from, true, at, s, config);
        }
        if s.has(ACK) && !s.has(RST) {
            self.take(1 - from, false, at, s, config);
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

    /// The caller's first ACK completes the handshake.
    fn on_third(&mut self, from: usize) {
        self.established = true;
        let (Some(caller), Some(answered)) = (self.caller.filter(|c| *c == from), self.answered) else {
            return;
        };
        let Some(called) = self.directions[caller].syn_at.filter(|c| *c <= answered) else { return };
        // To the one who answers and back; to the one who called and back.
        let (there, here) = (answered - called, self.last - answered);
        self.handshake = Some(Span(there + here));
        self.away[1 - caller] = there;
        self.away[caller] = here;
    }

    /// Data of end `d`, or an ACK for it.
    fn take(&mut self, d: usize, data: bool, at: Instant, s: &TcpSegment, config: &Config) {
        let w = &mut self.directions[d];
        if w.decided {
            return if data { self.on_data(s, d, at, config) } else { self.on_ack(s, 1 - d, at) };
        }
        if !data && w.undecided.is_empty() {
            return;
        }
        w.undecided.push((data, at, *s));
        // An ACK, and data that its sender sent when it had it: the echo says so. Without timestamps nothing tells an
        // answer from what was under way, and the handshake must do.
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
            let (there, back) = (ack.since(w.undecided[0].1).0, at.since(*ack).0);
            self.away[1 - d] = self.away[1 - d].min(there);
            self.away[d] = self.away[d].min(back);
            self.decide(d, config);
        } else if guess || w.undecided.len() >= UNDECIDED {
            self.decide(d, config);
        }
    }

    /// Where data of end `d` is seen from is as clear as it will be.
    fn decide(&mut self, d: usize, config: &Config) {
        let known = self.away.iter().all(|a| *a < u64::MAX);
        let w = &mut self.directions[d];
        w.decided = true;
        if known {
            w.vantage = vantage(self.away[d], self.away[1 - d]);
            // An end that answers its handshake late looks far away. Only a host is as near as this.
            if w.vantage == Vantage::Receiver && !self.timestamps && self.away[1 - d] > HOST.0 {
                w.vantage = Vantage::Middle;
            }
        }
        for (data, at, s) in std::mem::take(&mut w.undecided) {
            if data { self.on_data(&s, d, at, config) } else { self.on_ack(&s, 1 - d, at) }
        }
    }

    /// Payload of a full segment that `from` sends.
    fn mss(&self, from: usize) -> Bytes {
        let offered = [self.directions[from].mss, self.directions[1 - from].mss].into_iter().flatten().min();
        let options = if self.timestamps { 12 } else { 0 };
        Bytes(offered.map_or(MSS, |m| u64::from(m).saturating_sub(options)).max(88))
    }

    fn on_data(&mut self, s: &TcpSegment, from: usize, at: Instant, config: &Config) {
        if self.directions[from].sender.is_none() {
            let mss = self.mss(from);
            let handshake = Handshake {
                rtt: self.handshake.filter(|_| self.directions.iter().all(|w| w.syns == 1)),
                ..Handshake::default()
            };
            let none: Arc<[Candidate]> = Arc::new([]);
            let candidates = if self.directions[from].syn_seen { config.candidates } else { &none };
            let setup = Setup {
                mss,
                iw: None,
                gated: true,
                handshake,
                snapshots: config.snapshots,
                fork_states: config.fork_states,
            };
            let mut analysis = Analysis::new(setup, candidates);
            let receiver = self.directions[from].vantage == Vantage::Receiver;
            if receiver {
                let w = &self.directions[from];
                let syn = w.syn_at.map(|at| Instant(at.saturating_sub(self.start)));
                analysis.at_receiver(syn.zip(w.syn_stamp));
            }
            let mut f = facts(mss);
            let early = if receiver { self.handshake.unwrap_or(Span::ZERO).0 } else { 0 };
            (f.now, f.srtt) = (Instant(at.0.saturating_sub(early)), self.handshake);
            let w = &mut self.directions[from];
            w.began = Some(at);
            w.sender = Some(Box::new(Sender::new(f, receiver, analysis)));
        }
        let rtt = self.handshake.unwrap_or(Span::ZERO);
        let w = &mut self.directions[from];
        let Some(sender) = &mut w.sender else { return };
        let start = if s.has(SYN) { s.seq.wrapping_add(1) } else { s.seq };
        let first = *w.first.get_or_insert(start);
        let Some(offset) = unwrap(start, first, sender.max()) else { return };
        let mut sent = at;
        if w.vantage == Vantage::Receiver {
            let echo = s.timestamp.map(|t| t.1);
            let seen = |held: &PendingAck, released: Option<&PendingAck>| match (held.timestamp, echo) {
                (Some(t), Some(echo)) => {
                    // Of several ACKs in one tick of the clock, the first is certain to have been there.
                    t.wrapping_sub(echo).cast_signed() < 0
                        || (t == echo && released.and_then(|r| r.timestamp) != Some(echo))
                }
                _ => held.report.at + rtt <= at,
            };
            while w.held.front().is_some_and(|h| seen(h, w.released.as_ref())) {
                w.released = w.held.pop_front();
                if let Some(r) = &w.released {
                    sender.on_ack(&r.report);
                }
            }
            let by_echo = w.released.filter(|r| echo.is_some() && r.timestamp.is_some()).map(|r| r.report.at);
            sent = by_echo.unwrap_or(Instant(at.0.saturating_sub(rtt.0)));
        }
        sender.on_data(&DataInfo {
            at: sent,
            seen: at,
            from: offset,
            upto: offset + u64::from(s.len),
            timestamp: s.timestamp.map(|t| t.0),
            marked: s.marked,
        });
    }

    fn on_ack(&mut self, s: &TcpSegment, from: usize, at: Instant) {
        let scale = if self.directions[from].scaling && !s.has(SYN) {
            self.directions[from].scale.unwrap_or(0)
        } else {
            0
        };
        // A window whose scale is not known says nothing.
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
        if w.vantage == Vantage::Receiver {
            w.held.push_back(PendingAck { timestamp: s.timestamp.map(|t| t.0), report });
            if w.held.len() > HELD {
                w.released = w.held.pop_front();
                sender.on_ack(&w.released.expect("more than none").report);
            }
        } else {
            sender.on_ack(&report);
        }
    }

    /// Nothing more will come.
    pub fn close(&mut self, config: &Config) {
        for d in 0..2 {
            if !self.directions[d].decided {
                self.decide(d, config);
            }
        }
        for w in &mut self.directions {
            for held in std::mem::take(&mut w.held) {
                if let Some(sender) = &mut w.sender {
                    sender.on_ack(&held.report);
                }
            }
        }
    }
}
