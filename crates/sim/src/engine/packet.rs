//! Packets on their way, and the queue of a line.

use super::id::Destination;
use super::run::Run;
use crate::path::{ArrivalQueue, Ecn, Kind};
use crate::tcp::segment::{ACK, FIN, Numbers, PSH, SYN, Segment, milliseconds};
use slowstart::units::Instant;
use std::collections::VecDeque;

/// The kind of packet that the path distinguishes, by its payload and flags.
pub(super) fn kind(len: u32, flags: u8) -> Kind {
    if len > 0 {
        return Kind::Data;
    }
    match (flags & SYN != 0, flags & ACK != 0, flags & FIN != 0) {
        (true, false, _) => Kind::Syn,
        (true, true, _) => Kind::SynAck,
        (_, _, true) => Kind::Fin,
        _ => Kind::Ack,
    }
}

/// A packet on its way, in 32 bytes: a segment of 64 bytes is kept only if these cannot express it. Small
/// fields share words, so that a packet is written and read in few instructions (docs/dev/engine.md, "Memory
/// layout").
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Packet {
    pub(super) sent: Instant,
    pub(super) to: Destination,
    pub(super) seq: u32,
    /// Acknowledgement number and echo, 32 bits each.
    answer: u64,
    /// From the lowest bit on: window and length, 16 bits each, flags and ECN codepoint, 8 bits each, and one
    /// bit each for [`SEGMENT`] and [`RUN`].
    rest: u64,
}

/// Set if the segment of a packet is in [`LineQueue::segments`].
const SEGMENT: u64 = 1 << 48;
/// Set if a packet is the first of a [`Run`].
const RUN: u64 = 1 << 49;
/// Set beside [`SEGMENT`] if the packet lacks only the timestamp that others have: its segment is not stored.
const BARE: u64 = 1 << 50;

impl Packet {
    #[allow(
        clippy::inline_always,
        reason = "else the segment is written to memory and read back (docs/dev/engine.md)"
    )]
    #[inline(always)]
    pub(super) fn new(sent: Instant, to: Destination, s: &Segment) -> Self {
        let (stamp, echo) = s.timestamp.unwrap_or((0, 0));
        let has_segment = s.sacks > 0
            || s.has(SYN)
            || s.rate_response > 0
            || s.has_ecn_option()
            || s.timestamp.is_none()
            || stamp != milliseconds(sent)
            || s.len > u32::from(u16::MAX);
        let answer = u64::from(s.ack) | u64::from(echo) << 32;
        let bits = u64::from(s.window) | u64::from(s.len as u16) << 16 | u64::from(s.flags) << 32;
        let rest = bits | u64::from(s.ecn as u8) << 40 | if has_segment { SEGMENT } else { 0 };
        Self { sent, to, seq: s.seq, answer, rest }
    }

    pub(super) fn len(&self) -> u32 {
        u32::from((self.rest >> 16) as u16)
    }

    pub(super) fn flags(&self) -> u8 {
        (self.rest >> 32) as u8
    }

    pub(super) fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.rest >> 40) as u8)
    }

    /// What the path takes it for.
    pub(super) fn kind(&self) -> Kind {
        kind(self.len(), self.flags())
    }

    /// Sets or clears PSH.
    #[inline]
    pub(super) fn set_push(&mut self, push: bool) {
        const BIT: u64 = (PSH as u64) << 32;
        self.rest = self.rest & !BIT | if push { BIT } else { 0 };
    }

    pub(super) fn set_ecn(&mut self, ecn: Ecn) {
        self.rest = self.rest & !(0xff << 40) | u64::from(ecn as u8) << 40;
    }

    /// True if its segment is in [`LineQueue::segments`].
    pub(super) fn has_segment(&self) -> bool {
        self.rest & SEGMENT != 0
    }

    /// Says of a packet with [`Packet::has_segment`] that its segment is not stored, if these fields express that of
    /// `s`: a stack without timestamps sends many of them. Returns whether they do.
    #[inline]
    pub(super) fn set_bare(&mut self, s: &Segment) -> bool {
        let bare = s.timestamp.is_none()
            && s.sacks == 0
            && !s.has(SYN)
            && s.rate_response == 0
            && s.rate_request == 0
            && !s.has_ecn_option()
            && u16::try_from(s.len).is_ok();
        self.rest |= if bare { BARE } else { 0 };
        bare
    }

    /// True if the segment of a packet with [`Packet::has_segment`] is not stored.
    #[inline]
    pub(super) fn is_bare(&self) -> bool {
        self.rest & BARE != 0
    }

    /// True if others follow it in its [`Run`].
    #[inline]
    pub(super) fn has_followers(&self) -> bool {
        self.rest & RUN != 0
    }

    /// The timestamp of a packet without [`Packet::has_segment`].
    #[inline]
    pub(super) fn stamp(&self) -> u32 {
        milliseconds(self.sent)
    }

    /// True for an acknowledgement alone, without SACK blocks.
    pub(super) fn is_plain_ack(&self) -> bool {
        self.flags() == ACK && self.len() == 0 && !self.has_segment()
    }

    /// What the segment of a packet without [`Packet::has_segment`] says.
    #[inline]
    pub(super) fn numbers(&self) -> Numbers {
        Numbers { timestamp: Some((self.stamp(), (self.answer >> 32) as u32)), ..self.bare_numbers() }
    }

    /// What the segment of a packet that [is bare](Packet::is_bare) says.
    #[inline]
    pub(super) fn bare_numbers(&self) -> Numbers {
        let (ack, window) = (self.answer as u32, self.rest as u16);
        Numbers { seq: self.seq, ack, len: self.len(), window, flags: self.flags(), timestamp: None }
    }

    /// The segment that says this, of a packet whose segment is not stored.
    #[inline(never)]
    pub(super) fn unpack(&self, says: Numbers) -> Segment {
        let Numbers { seq, ack, len, window, flags, timestamp } = says;
        Segment { seq, ack, len, window, flags, timestamp, ecn: self.ecn(), ..Segment::default() }
    }
}

/// The packets on their way over one line.
#[derive(Clone, Debug, Default)]
pub(super) struct LineQueue {
    pub(super) line: ArrivalQueue<Packet>,
    /// The segments of those with [`Packet::has_segment`], in order.
    segments: VecDeque<Segment>,
    /// The run whose packets arrive now, and those that follow it, one for each later packet with [`RUN`].
    run: Run,
    runs: VecDeque<Run>,
    /// Number of packets that wait in a queue discipline before they enter the line.
    pub(super) queued: usize,
}

impl LineQueue {
    /// Stores the segment of a packet with [`Packet::has_segment`].
    #[inline(never)]
    pub(super) fn store_segment(&mut self, s: &Segment) {
        self.segments.push_back(*s);
    }

    /// Takes the first stored segment: that of a packet with [`Packet::has_segment`] that is not bare.
    #[inline(never)]
    pub(super) fn take_segment(&mut self) -> Segment {
        self.segments.pop_front().unwrap_or_default()
    }

    /// Adds a run whose first packet arrives at `at`.
    #[inline]
    pub(super) fn push_run(&mut self, at: Instant, mut packet: Packet, run: Run) {
        packet.set_push(false);
        packet.rest |= RUN;
        self.line.push(at, packet);
        self.runs.push_back(run);
    }

    /// Puts the next packet of its run in the place of the first packet.
    #[inline(never)]
    pub(super) fn step_run(&mut self) {
        let Some((at, packet)) = self.line.first_mut() else { return };
        if self.run.left == 0 {
            self.run = self.runs.pop_front().unwrap_or_default();
        }
        self.run.step(at, &mut packet.seq);
        if self.run.left == 0 {
            packet.rest &= !RUN;
            packet.set_push(self.run.pushes);
        }
    }

    /// When the first packet arrives, its sequence number, and those that follow it in the run of which some
    /// packets have arrived.
    pub(super) fn rest_of_run(&self) -> Option<(Instant, u32, Run)> {
        self.line.first().map(|(at, packet)| (at, packet.seq, self.run))
    }

    /// Puts this packet of the run, and those that follow it, in the place of the first packet; nothing if the run
    /// `is_over`. Returns when the first packet arrives then; [`Instant::NEVER`] if there is none.
    pub(super) fn keep_rest_of_run(
        &mut self,
        next: Instant,
        number: u32,
        run: Run,
        is_over: bool,
    ) -> Instant {
        self.run = run;
        if is_over {
            self.line.skip();
        } else if let Some((at, packet)) = self.line.first_mut() {
            (*at, packet.seq) = (next, number);
            if run.left == 0 {
                packet.rest &= !RUN;
                packet.set_push(run.pushes);
            }
        }
        self.line.next().unwrap_or(Instant::NEVER)
    }

    /// Adds a packet that may arrive before others.
    #[cold]
    pub(super) fn insert(&mut self, at: Instant, packet: Packet, segment: &Segment) {
        let mut place = self.segments.len();
        self.line.insert(at, packet, |overtaken| place -= usize::from(overtaken.has_segment()));
        if packet.has_segment() {
            self.segments.insert(place, *segment);
        }
    }

    /// Lets an ACK replace the one before it, if that waits for the same release and acknowledges less of the
    /// same flow; returns whether it did. A modem replaces only numbers, so ACKs with SACK blocks stay (US
    /// 2004/0213278).
    pub(super) fn replace_older_ack(&mut self, at: Instant, p: &Packet) -> bool {
        if let Some((release, old)) = self.line.last()
            && (release, old.to, old.flags(), old.len(), old.has_segment()) == (at, p.to, p.flags(), 0, false)
            && (p.answer as u32).wrapping_sub(old.answer as u32).cast_signed() > 0
        {
            // Of the rest only the window.
            let rest = old.rest & !0xffff | p.rest & 0xffff;
            *old = Packet { sent: p.sent, answer: p.answer, rest, ..*old };
            return true;
        }
        false
    }
}
