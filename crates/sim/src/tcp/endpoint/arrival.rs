//! Segments in: to the receiving half with their data, to the sending half with their acknowledgement.

use super::{CHALLENGE_INTERVAL, Endpoint, State};
use crate::tcp::accecn::LATEST;
use crate::tcp::ecn::{Feedback, Prompt};
use crate::tcp::receiver::AckDecision;
use crate::tcp::segment::{self, ACK, FIN, Numbers, PSH, RST, SYN, Segment, Wire};
use crate::tcp::sender::Incoming;
use slowstart::control::Controller;
use slowstart::units::Instant;

impl<C: Controller + Clone> Endpoint<C> {
    /// True if segments with these flags may be processed by [`Endpoint::on_numbers`].
    #[inline]
    pub(crate) fn is_plain(&self, flags: u8) -> bool {
        self.header.plain && flags & (RST | SYN | FIN | ACK) == ACK
    }

    /// Processes a segment. Returns false if it did not reach the sending half, whose state then is
    /// unchanged.
    #[inline]
    pub fn on_segment(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
        if self.is_plain(s.flags) {
            return self.on_data(now, s.numbers(), Some(s), true, out);
        }
        self.on_special_segment(now, s, out)
    }

    /// Does the same for a segment of which these numbers are all, if [it may](Endpoint::is_plain). Without it
    /// cubic-1g-100ms takes 1,308 instructions a packet in place of 994.
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    pub(crate) fn on_numbers(&mut self, now: Instant, s: Numbers, out: &mut impl Wire) -> bool {
        self.on_data(now, s, None, true, out)
    }

    /// True if segments like this one that follow it bring nothing but their data, to be taken by
    /// [`Endpoint::take_data`].
    pub(crate) fn takes_data_alone(&self, s: Numbers) -> bool {
        let sent = segment::wrap(self.tx.next(), self.header.isn);
        self.is_plain(s.flags) && self.tx.idle() && s.ack.wrapping_sub(sent).cast_signed() <= 0
    }

    /// Takes `len` bytes of data, where [that is all](Endpoint::takes_data_alone) a segment brings.
    #[allow(clippy::inline_always, reason = "each packet of data passes here")]
    #[inline(always)]
    pub(crate) fn take_data(
        &mut self,
        now: Instant,
        seq: u32,
        len: u32,
        push: bool,
        stamp: u32,
    ) -> AckDecision {
        match segment::unwrap(seq, self.header.peer_isn, self.rx.next()) {
            Some(from) => self.rx.on_data(now, from, from + u64::from(len), (false, push), Some(stamp)),
            None => AckDecision::Later,
        }
    }

    /// Processes a segment of an endpoint that is not plain, or with flags that few segments have. It is a
    /// function of its own so that the code for all others stays short (docs/dev/engine.md, "Inlining").
    #[inline(never)]
    pub(crate) fn on_special_segment(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
        if self.state == State::Established {
            if let Some(backlog) = &mut self.backlog {
                backlog.arrive(s);
                self.work(now, out);
                return true;
            }
            if self.gro.is_some() {
                self.merge(now, s, out);
                return true;
            }
        }
        self.process(now, s, out)
    }

    /// Processes the segments for which the CPU has time. Those with SACK blocks take it for each packet of
    /// the write queue.
    #[inline(never)]
    pub(super) fn work(&mut self, now: Instant, out: &mut impl Wire) {
        while let Some(s) = self.backlog.as_mut().and_then(|b| b.take(now)) {
            let packets = if s.sacks > 0 { self.tx.board().out.packets } else { 0 };
            self.process(now, &s, out);
            if let Some(backlog) = &mut self.backlog {
                backlog.look_at(now, u64::from(packets));
            }
        }
    }

    /// Holds a segment to be merged with those that follow, or processes it. What is complete is processed.
    #[inline(never)]
    fn merge(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) {
        let Some(gro) = &mut self.gro else { return };
        if !gro.merge(now, s) {
            let held = gro.take();
            let holds = gro.merge(now, s);
            if let Some(held) = held {
                self.process(now, &held, out);
            }
            if !holds {
                self.process(now, s, out);
            }
        }
        self.process_merged(now, out);
    }

    /// Processes the merged segments whose time is over.
    pub(super) fn process_merged(&mut self, now: Instant, out: &mut impl Wire) {
        let due = self.gro.as_mut().filter(|g| g.due() <= now).and_then(|g| g.take());
        if let Some(held) = due {
            self.process(now, &held, out);
        }
    }

    /// Processes a segment, or several merged into one.
    #[inline(never)]
    fn process(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
        let connected = self.state == State::Established && s.flags & (RST | SYN) == 0;
        let reached_sender = (connected || self.on_control(now, s, out))
            && self.on_data(now, s.numbers(), Some(s), false, out);
        reached_sender || !connected
    }

    /// Drops a segment that acknowledges data never sent, and sends a challenge ACK (RFC 9293 §3.10.7.4).
    #[cold]
    fn on_ack_of_unsent(&mut self, now: Instant, out: &mut impl Wire) {
        if now >= self.next_challenge_ack {
            self.next_challenge_ack = now + CHALLENGE_INTERVAL;
            self.acknowledge(now, out);
        }
    }

    /// Processes data and acknowledgement of a segment, which is `whole` unless `s` is all of it. `plain`
    /// says, at compile time, that the endpoint is plain and that of RST, SYN, FIN and ACK only ACK is set.
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    fn on_data(
        &mut self,
        now: Instant,
        s: Numbers,
        whole: Option<&Segment>,
        plain: bool,
        out: &mut impl Wire,
    ) -> bool {
        let sent = segment::wrap(self.tx.next(), self.header.isn);
        let acknowledges = plain || s.flags & ACK != 0;
        if s.ack.wrapping_sub(sent).cast_signed() > 0 && acknowledges {
            self.on_ack_of_unsent(now, out);
            return false;
        }
        let marks = !plain && self.header.feedback != Feedback::None;
        let prompted = marks && whole.is_some_and(|s| self.on_codepoint(now, s, out));
        if self.rx.holds_acks() {
            self.tell_blocks(now, s, out);
        }
        if self.receive(now, s, plain) == AckDecision::Now || prompted {
            self.acknowledge(now, out);
        }
        // For an end with nothing in flight and nothing to send, the acknowledgement in a data segment brings
        // no news. One without data may report a duplicate or another window.
        let has_news = acknowledges && (s.len == 0 || !self.tx.idle());
        if has_news {
            match whole.filter(|s| s.sacks > 0 || s.has_ecn_option()) {
                Some(whole) => self.on_ack_with_options(now, whole, out),
                None => self.on_ack(now, s.ack, s.window, s.timestamp.map(|t| t.1), s.flags, out),
            }
        }
        has_news
    }

    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    fn receive(&mut self, now: Instant, s: Numbers, plain: bool) -> AckDecision {
        let fin = !plain && s.flags & FIN != 0;
        let span = u64::from(s.len) + u64::from(fin);
        let mut answer = AckDecision::Later;
        let Some(from) = segment::unwrap(s.seq, self.header.peer_isn, self.rx.next()) else { return answer };
        let stamp = s.timestamp.map(|t| t.0);
        if span > 0 {
            if !plain {
                self.rx.read_slowly(now);
            }
            if let Some((_, echo)) = s.timestamp.filter(|t| t.1 > 0) {
                self.rx.sample_rtt(now, echo, s.len);
            }
            answer = self.rx.on_data(now, from, from + span, (fin, s.flags & PSH != 0), stamp);
            if fin {
                self.peer_closed_first |= self.rx.finished() && !self.tx.closing();
            }
        } else {
            self.rx.update_echo(from, stamp);
            if from < self.rx.next() {
                // A window probe.
                answer = AckDecision::Now;
            }
        }
        answer
    }

    /// Sends the ACK that is held back, if this segment would push a block that it reports out of the next one.
    #[cold]
    fn tell_blocks(&mut self, now: Instant, s: Numbers, out: &mut impl Wire) {
        let Some(from) = segment::unwrap(s.seq, self.header.peer_isn, self.rx.next()) else { return };
        if s.len > 0 && self.rx.owes_blocks(from, from + u64::from(s.len), s.timestamp.map(|t| t.0)) {
            self.acknowledge(now, out);
        }
    }

    /// Takes the codepoint of a segment; returns true if it is to be acknowledged now.
    #[inline(never)]
    fn on_codepoint(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
        let packets = self.rx.packets(s.len);
        let arrived = &mut self.rx.ecn.arrived;
        arrived.count(s.ecn, s.len);
        if s.has_ecn_option() && self.tx.next() < LATEST {
            self.rx.ecn.arrived.is_sent = self.counts_bytes();
        }
        let prompt = self.rx.ecn.on_segment(s.ecn, s.flags, packets, self.rx.delays_ack());
        if prompt == Prompt::Both {
            self.acknowledge(now, out);
        }
        if self.header.feedback == Feedback::EchoEach && matches!(prompt, Prompt::Now | Prompt::Both) {
            self.rx.ecn.change_echo();
        }
        self.rx.prompt(prompt)
    }

    /// What an acknowledgement says apart from its options; `None` if it is for nothing.
    #[inline]
    fn incoming(&self, ack: u32, window: u16, echo: Option<u32>, flags: u8) -> Option<Incoming> {
        let ack = segment::unwrap(ack, self.header.isn, self.tx.board().una())?;
        let window_end = ack + (u64::from(window) << self.header.peer_scale);
        Some(Incoming { ack, window_end, echo, flags, ..Incoming::default() })
    }

    /// Processes an acknowledgement without SACK blocks and `AccECN` option. Takes its numbers one by one so
    /// that they stay in registers.
    #[inline(never)]
    fn on_ack(
        &mut self,
        now: Instant,
        ack: u32,
        window: u16,
        echo: Option<u32>,
        flags: u8,
        out: &mut impl Wire,
    ) {
        let Some(a) = self.incoming(ack, window, echo, flags) else { return };
        let Self { tx, rx, header, .. } = self;
        tx.on_ack(now, &a, &mut header.packetizer(now, rx, out));
    }

    /// Processes an acknowledgement with SACK blocks or an `AccECN` option.
    #[inline(never)]
    fn on_ack_with_options(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) {
        let echo = s.timestamp.map(|t| t.1);
        let Some(mut a) = self.incoming(s.ack, s.window, echo, s.flags) else { return };
        if s.has_ecn_option() {
            a.option = s.ecn_option();
        }
        for &(from, to) in s.blocks() {
            if let (Some(from), Some(to)) =
                (segment::unwrap(from, self.header.isn, a.ack), segment::unwrap(to, self.header.isn, a.ack))
                && from < to
            {
                a.blocks[a.sacks] = (from, to);
                a.sacks += 1;
            }
        }
        let Self { tx, rx, header, .. } = self;
        tx.on_ack_with_options(now, &a, &mut header.packetizer(now, rx, out));
    }
}
