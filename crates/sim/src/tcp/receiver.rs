//! The receiving half: when and what to acknowledge, and the receive window (Linux `tcp_data_queue`,
//! `__tcp_ack_snd_check` and `tcp_rcv_space_adjust`).

use super::ecn::{EcnReceiver, Prompt};
use super::profile::{AckRule, Profile, RightSize};
use super::rack::DUPLICATES;
use super::ranges::Ranges;
use super::reader::Reader;
use super::segment::{TIMESTAMP_OPTION, milliseconds};
use slowstart::units::{Bytes, Instant, Span};

/// Number of SACK blocks kept, newest first (`tp->selective_acks`).
const BLOCKS: usize = 4;
/// An ACK has room for at least this many of them (`TCP_SACK_BLOCKS_EXPECTED`).
const REPORTED: usize = 2;
/// Limits of ACK compression: number of duplicate ACKs held back, and their delay (`tcp_comp_sack_nr`,
/// `tcp_comp_sack_delay_ns`).
const COMPRESSED: u8 = 44;
const COMPRESSED_FOR: Span = Span::millis(1);
/// How late that timer may be, and is where no other fires before (`tcp_comp_sack_slack_ns`).
const SLACK: Span = Span::micros(100);
/// Memory of a packet of Ethernet in the receive buffer, bytes: half a page, and what describes it (`skb->truesize`).
const MEMORY: u32 = 2304;
/// The size of a segment that a receiver expects before data has arrived (`TCP_MSS_DEFAULT`), and the share of the
/// buffer that is window then, of 256 (`TCP_DEFAULT_SCALING_RATIO`).
const EXPECTED: u32 = 536;
const HALF: u64 = 128;

/// How much older than the timestamp to echo that of a segment may be (`TCP_PAWS_WINDOW`), milliseconds.
const PAWS_WINDOW: i32 = 1;

/// When arrived data is to be acknowledged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AckDecision {
    /// With the next ACK, at the latest when the delay is over.
    Later,
    /// An acknowledgement is due now.
    Now,
}

/// The receiving half of a connection. Fields are in order of use: what an ACK contains, then what each data
/// segment needs (docs/dev/engine.md, "Memory layout").
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Receiver {
    /// The next offset expected.
    next: u64,
    /// The acknowledgement number of the last ACK, as an offset.
    acked: u64,
    /// The end of the window that was advertised: the right edge, which never moves left.
    window_edge: u64,
    /// The highest offset for which the application has space: the right edge of the window never exceeds it.
    limit: u64,
    window: u64,
    /// The window to offer: `window`, at most `room`, rounded up to what the header can tell.
    offer: u64,
    /// What data beyond a hole leaves of `clamp`: with `autotune` it takes its place in the buffer, and the window is no
    /// larger than the rest (`__tcp_select_window`).
    room: u64,
    max: Bytes,
    /// When a delayed ACK is due; [`Instant::NEVER`] if none is.
    delayed_until: Instant,
    /// The timestamp to echo: that of the last segment that advanced the acknowledgement (RFC 7323 §4.3).
    echo: u32,
    /// Number of quick ACKs left: those sent at once.
    quick: u32,
    last_echo: u32,
    /// Number of duplicate ACKs held back, and of those sent at once since `next` advanced.
    compressed: u8,
    duplicates: u8,
    /// Number of valid entries of `blocks`.
    block_count: u8,
    /// True if `dsack` has yet to be reported.
    dsack_pending: bool,
    rule: AckRule,
    autotune: bool,
    right_size: RightSize,
    /// True if `out_of_order` is not empty, or `room` still is what it was when its last hole was filled.
    has_holes: bool,
    /// Data that pushes is acknowledged at once, as the application reads all of it.
    acks_pushed: bool,
    /// The largest segment that has arrived (`rcv_mss`), at most `mss`.
    largest: u32,
    mss: u32,
    clamp: u64,
    delay: Span,
    // The state of tcp_rcv_space_adjust.
    rtt: Option<Span>,
    /// The offset that ends the current RTT measurement of the receiver, and when it began.
    rtt_round: (u64, Instant),
    measured_from: (Instant, u64),
    /// When the next RTT since then is over; [`Instant::NEVER`] while none is known.
    measured_until: Instant,
    /// The offset of the peer's FIN; [`u64::MAX`] before it has arrived.
    fin_at: u64,
    /// What arrived marked, and what ACKs say of it.
    pub ecn: EcnReceiver,
    /// The application, if it reads slowly.
    reader: Option<Box<Reader>>,
    out_of_order: Ranges,
    dsack: (u64, u64),
    space: u64,
    blocks: [(u64, u64); BLOCKS],
    /// Number of quick ACKs at the start of a connection.
    quick_initial: u32,
    compresses: bool,
    /// What the header cannot tell of a window: the units of its scale, less one.
    rounding: u64,
    /// The RTT of the handshake, which is this end's own while it sends no data; [`Span::MAX`] if it is not known.
    handshake: Span,
}

impl Receiver {
    /// A receiver before the handshake.
    pub fn new(p: &Profile) -> Self {
        let fixed = p.max_window();
        // tcp_select_initial_window: half of the initial buffer, in whole segments.
        let half = p.rmem_first.0 / 2;
        let whole = half - half % u64::from(p.mss + if p.timestamps { TIMESTAMP_OPTION } else { 0 });
        let max = if p.autotune { fixed / 2 } else { fixed };
        let (first, clamp) = if p.autotune { (whole.min(max), half.min(max)) } else { (fixed, fixed) };
        let quick = if p.ack == AckRule::QuickThenDelayed { p.quick } else { 0 };
        Self {
            rule: p.ack,
            delay: p.delack,
            mss: p.mss,
            largest: EXPECTED.min(p.mss),
            max: Bytes(max),
            autotune: p.autotune,
            right_size: p.right_size,
            next: 1,
            out_of_order: Ranges::default(),
            has_holes: false,
            acks_pushed: p.ack_pushed && p.read_rate.is_none(),
            blocks: [(0, 0); BLOCKS],
            block_count: 0,
            dsack_pending: false,
            dsack: (0, 0),
            fin_at: u64::MAX,
            ecn: EcnReceiver::default(),
            reader: p.read_rate.map(|rate| Box::new(Reader::new(rate))),
            acked: 1,
            window_edge: 1 + first,
            limit: u64::MAX,
            offer: first,
            rounding: 0,
            quick,
            quick_initial: quick,
            compresses: p.compress_acks && p.sack,
            handshake: Span::MAX,
            duplicates: 0,
            compressed: 0,
            delayed_until: Instant::NEVER,
            echo: 0,
            window: first,
            room: clamp,
            clamp,
            space: 10 * u64::from(p.mss),
            measured_from: (Instant::ZERO, 1),
            measured_until: Instant::NEVER,
            rtt: None,
            last_echo: 0,
            rtt_round: (if p.autotune { 0 } else { u64::MAX }, Instant::ZERO),
        }
    }

    /// Sets the payload bytes of a full segment, from the handshake.
    pub(super) fn set_mss(&mut self, mss: u32) {
        (self.mss, self.largest) = (mss, self.largest.min(mss));
    }

    /// The connection is established, with this RTT of the handshake and scale of the window: what is delivered counts from now on
    /// (`tcp_init_buffer_space`).
    pub(super) fn begin(&mut self, now: Instant, rtt: Option<Span>, scale: u8) {
        self.measured_from.0 = now;
        self.rounding = (1 << scale) - 1;
        self.set_offer();
        self.handshake = rtt.unwrap_or(Span::MAX);
    }

    /// The next offset expected: the acknowledgement number.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes delivered to the application, in order.
    pub fn delivered(&self) -> u64 {
        self.next - 1 - u64::from(self.finished())
    }

    /// True once the peer's FIN has arrived, and all data before it.
    pub fn finished(&self) -> bool {
        self.next > self.fin_at
    }

    /// When [`Receiver::on_timer`] is to be called; [`Instant::NEVER`] for never.
    pub fn ack_deadline(&self) -> Instant {
        self.delayed_until
    }

    /// The timestamp to echo.
    pub fn echo(&self) -> u32 {
        self.echo
    }

    /// Takes the timestamp of a segment that begins at `from`: it is echoed unless the segment begins beyond
    /// the last acknowledgement (RFC 7323 §4.3).
    pub fn update_echo(&mut self, from: u64, stamp: Option<u32>) {
        if from <= self.acked
            && let Some(stamp) = stamp
        {
            self.echo = stamp;
        }
    }

    /// Number of packets of a segment of `len` bytes, several merged into one included.
    pub(super) fn packets(&self, len: u32) -> u8 {
        len.div_ceil(self.mss).min(u32::from(u8::MAX)) as u8
    }

    /// True if an ACK is delayed.
    pub(super) fn delays_ack(&self) -> bool {
        self.delayed_until < Instant::NEVER
    }

    /// Sends this many ACKs at once if a codepoint demands it; returns true if one is due now.
    pub(super) fn prompt(&mut self, prompt: Prompt) -> bool {
        if let Prompt::Quick(n) = prompt
            && self.rule == AckRule::QuickThenDelayed
        {
            self.quick = self.quick.max(n);
        }
        matches!(prompt, Prompt::Now | Prompt::Both)
    }

    /// True if the application reads slowly: [`Receiver::read_slowly`] then is to be called before data is
    /// processed.
    pub(super) fn reads_slowly(&self) -> bool {
        self.reader.is_some()
    }

    /// Lets an application that reads slowly read until now.
    pub(super) fn read_slowly(&mut self, now: Instant) {
        if let Some(reader) = &mut self.reader {
            reader.read_until(now, self.next);
        }
    }

    /// Processes data `from..to` (a FIN counts as one) with timestamp `stamp`; `push` if it pushes (PSH).
    #[allow(clippy::inline_always, reason = "each packet of data passes here")]
    #[inline(always)]
    pub fn on_data(
        &mut self,
        now: Instant,
        from: u64,
        to: u64,
        (fin, push): (bool, bool),
        stamp: Option<u32>,
    ) -> AckDecision {
        if self.is_old(stamp) {
            return self.discard(from, to);
        }
        if fin {
            self.fin_at = to - 1;
        }
        if to <= self.next {
            // A duplicate: report it at once (RFC 2883). What ends before the last acknowledgement is not in the
            // window, and its timestamp does not count (`tcp_sequence`).
            if to >= self.acked {
                self.update_echo(from, stamp);
            }
            (self.dsack_pending, self.dsack) = (true, (from, to));
            self.quick = self.quick.max(self.quick_initial);
            return AckDecision::Now;
        }
        self.update_echo(from, stamp);
        if from > self.next {
            self.grow_window(to - from);
            self.on_out_of_order(from, to);
            return self.ack_decision_for_hole(now);
        }
        self.next = to;
        self.duplicates = 0;
        if to - from > u64::from(self.largest) {
            self.on_larger_segment(to - from);
        }
        self.measure_round(now);
        if self.has_holes && self.fills_hole(now, to - from) {
            return AckDecision::Now;
        }
        self.grow_window(to - from);
        let decision = if fin { AckDecision::Now } else { self.ack_decision_in_order(now, push) };
        // The application reads after that (`tcp_data_ready`).
        if now >= self.measured_until {
            self.right_size(now);
        }
        decision
    }

    /// A segment whose timestamp is older than that of data that came in order is discarded (PAWS, RFC 7323 §5.3;
    /// `tcp_send_dupack`): so is what was only late, if something that was sent after it filled a hole before it.
    #[cold]
    fn discard(&mut self, from: u64, to: u64) -> AckDecision {
        if from < self.next {
            (self.dsack_pending, self.dsack) = (true, (from, to.min(self.next)));
            self.quick = self.quick.max(self.quick_initial);
        }
        AckDecision::Now
    }

    /// Data in order may fill the first hole; false if there is none.
    #[cold]
    fn fills_hole(&mut self, now: Instant, len: u64) -> bool {
        self.hold();
        if self.out_of_order.is_empty() {
            self.has_holes = false;
            return false;
        }
        self.grow_window(len);
        if let Some((_, end)) = self.out_of_order.holding(self.next) {
            self.next = self.next.max(end);
        }
        self.out_of_order.forget_below(self.next);
        let next = self.next;
        self.forget_blocks(|b| b.1 <= next);
        // The acknowledgement of a segment before another hole is the first of the three that are sent at once.
        let alone = self.quick == 0 && next - self.acked <= u64::from(self.largest);
        self.duplicates = u8::from(alone && !self.out_of_order.is_empty());
        // The acknowledgement leaves before the application has read what waited behind the hole. Another follows at
        // once if that doubles the window (`tcp_cleanup_rbuf`): then this one says so.
        let (unread, before) = (self.window(), self.room);
        if now >= self.measured_until {
            self.right_size(now);
        }
        self.hold();
        if self.window() < 2 * unread {
            self.room = before;
            self.set_offer();
        }
        true
    }

    fn ack_decision_in_order(&mut self, now: Instant, push: bool) -> AckDecision {
        let due = match self.rule {
            AckRule::Each => true,
            AckRule::QuickThenDelayed | AckRule::Delayed => {
                self.quick > 0
                    || self.next - self.acked > u64::from(self.largest)
                    || (push && self.acks_pushed)
            }
        };
        if due {
            return AckDecision::Now;
        }
        self.delayed_until = self.delayed_until.min(now + self.delay);
        AckDecision::Later
    }

    #[cold]
    fn on_out_of_order(&mut self, from: u64, to: u64) {
        let mut fresh = false;
        let block = self.out_of_order.add(from, to, |_, _| fresh = true);
        self.has_holes = true;
        if !fresh {
            (self.dsack_pending, self.dsack) = (true, (from, to));
        }
        if self.autotune && self.right_size == RightSize::V618 {
            self.grow_buffer(self.space);
        }
        // tcp_sack_new_ofo_skb: the block that was extended becomes the first.
        self.forget_blocks(|b| block.0 <= b.0 && b.1 <= block.1);
        self.blocks.copy_within(0..BLOCKS - 1, 1);
        self.blocks[0] = block;
        self.block_count = (self.block_count + 1).min(BLOCKS as u8);
    }

    /// Data beyond a hole: the first three duplicate ACKs are sent at once, further ones held back for a
    /// twentieth of an RTT, at most 1 ms, and the slack of the timer (`tcp_comp_sack_delay_ns`).
    fn ack_decision_for_hole(&mut self, now: Instant) -> AckDecision {
        let rtt = self.rtt.unwrap_or_default().min(self.handshake);
        if !self.compresses || self.quick > 0 || self.compressed >= COMPRESSED {
            return AckDecision::Now;
        }
        if u32::from(self.duplicates) < DUPLICATES {
            self.duplicates += 1;
            return AckDecision::Now;
        }
        self.compressed += 1;
        self.delayed_until = self.delayed_until.min(now + (rtt / 20).min(COMPRESSED_FOR) + SLACK);
        AckDecision::Later
    }

    /// True if ACKs of data beyond a hole are held back.
    #[inline]
    pub(super) fn holds_acks(&self) -> bool {
        self.compressed > 0
    }

    /// While ACKs are held back: true if data `from..to` beyond a hole would push a block that no ACK has reported to a place
    /// that the next ACK may lack room for. An ACK is then due before the data is taken (`tcp_sack_new_ofo_skb`).
    pub(super) fn owes_blocks(&self, from: u64, to: u64, stamp: Option<u32>) -> bool {
        from > self.next && !self.is_old(stamp) && {
            let blocks = &self.blocks[..usize::from(self.block_count)];
            blocks.iter().take(REPORTED).all(|b| to < b.0 || b.1 < from) && blocks.len() >= REPORTED
        }
    }

    /// True if a segment with this timestamp is to be discarded (PAWS, RFC 7323 §5).
    #[inline]
    fn is_old(&self, stamp: Option<u32>) -> bool {
        stamp.is_some_and(|s| self.echo.wrapping_sub(s).cast_signed() > PAWS_WINDOW)
    }

    fn forget_blocks(&mut self, gone: impl Fn((u64, u64)) -> bool) {
        let mut kept = 0;
        for i in 0..usize::from(self.block_count) {
            if !gone(self.blocks[i]) {
                self.blocks[kept] = self.blocks[i];
                kept += 1;
            }
        }
        self.block_count = kept as u8;
    }

    /// True if a delayed ACK, or one that tells of a larger window, is due.
    pub fn on_timer(&mut self, now: Instant) -> bool {
        self.delayed_until <= now
    }

    /// Takes an ACK that is about to be sent; returns true if it is to carry
    /// [SACK blocks](Receiver::sack_blocks) or an `AccECN` option. `plain` says that ECN is not in use.
    #[inline]
    pub(super) fn acknowledge(&mut self, plain: bool) -> bool {
        let news = self.dsack_pending || self.block_count > 0;
        // An ACK that acknowledges nothing new does not use up a quick ACK (tcp_dec_quickack_mode).
        if self.next > self.acked || news {
            self.quick = self.quick.saturating_sub(1);
        }
        self.acked = self.next;
        self.compressed = 0;
        self.delayed_until = Instant::NEVER;
        if plain {
            return news;
        }
        self.ecn.acknowledged();
        news || self.ecn.arrived.is_sent
    }

    /// The blocks to report: first a duplicate (RFC 2883), which is reported once, then the data held beyond
    /// a hole.
    pub fn sack_blocks(&mut self) -> impl Iterator<Item = (u64, u64)> {
        let duplicate = std::mem::take(&mut self.dsack_pending).then_some(self.dsack);
        duplicate.into_iter().chain(self.blocks[..usize::from(self.block_count)].iter().copied())
    }

    /// Returns the window to advertise, bytes beyond the acknowledgement. The right edge never moves left.
    pub fn advertise_window(&mut self, now: Instant) -> u64 {
        if self.reader.is_some() { self.advertise_to_reader(now) } else { self.advertise_at_once() }
    }

    /// [`Self::advertise_window`] for an application that reads at once.
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    pub(super) fn advertise_at_once(&mut self) -> u64 {
        let end = self.next + self.offer;
        if self.window_edge <= end && end <= self.limit {
            self.window_edge = end;
            return self.offer;
        }
        self.advertise_up_to_a_limit()
    }

    /// [`Self::advertise_at_once`] where more was offered before, or the application has space for less.
    #[inline(never)]
    fn advertise_up_to_a_limit(&mut self) -> u64 {
        let window = self.window();
        self.window_edge = self.window_edge.max(self.next + window);
        window
    }

    /// [`Self::advertise_window`] for an application that reads slowly.
    #[cold]
    #[inline(never)]
    fn advertise_to_reader(&mut self, now: Instant) -> u64 {
        let Some(reader) = &mut self.reader else { return 0 };
        let space = self.window.min(self.room);
        let free = reader.window(now, space, u64::from(self.mss), self.next, self.window_edge);
        let window = free.min(self.limit.saturating_sub(self.next));
        self.window_edge = self.window_edge.max(self.next + window);
        // An ACK goes by then, for this or for data.
        self.delayed_until = self.delayed_until.min(reader.update());
        window
    }

    #[inline]
    fn window(&self) -> u64 {
        let known = self.window_edge.saturating_sub(self.next);
        let window = if known > self.offer { self.whole(known) } else { self.offer };
        window.min(self.limit.saturating_sub(self.next))
    }

    /// A window rounded up, so that it is not scaled away.
    fn whole(&self, window: u64) -> u64 {
        (window + self.rounding) & !self.rounding
    }

    /// Says what to offer, after `window` or `room` changed.
    fn set_offer(&mut self) {
        self.offer = self.whole(self.window.min(self.room));
    }

    /// Sets the highest offset for which the application has space; it never decreases. Returns true if a
    /// window update must be sent: if the window is at least twice the one that the peer knows, and at least
    /// a segment (`tcp_cleanup_rbuf`).
    pub(crate) fn limit_window(&mut self, end: u64) -> bool {
        if self.limit == u64::MAX {
            // From the beginning: nothing beyond has been offered.
            self.window_edge = self.window_edge.min(end);
        }
        self.limit = end;
        let known = self.window_edge.saturating_sub(self.next);
        let window = self.window();
        window >= 2 * known && window >= u64::from(self.mss)
    }

    /// Measures an RTT as the time in which one window of data arrives (`tcp_rcv_rtt_measure`).
    fn measure_round(&mut self, now: Instant) {
        if self.next < self.rtt_round.0 {
            return;
        }
        if self.rtt_round.0 > 0 {
            let took = now.since(self.rtt_round.1);
            self.set_rtt(self.rtt.map_or(took, |r| r.min(took)));
        }
        self.rtt_round = (self.next + self.window, now);
    }

    fn set_rtt(&mut self, rtt: Span) {
        self.rtt = Some(rtt);
        self.measured_until = self.measured_from.0 + rtt;
    }

    /// Takes an RTT sample from the timestamp that a segment of `len` bytes echoes (`tcp_rcv_rtt_measure_ts`). A shorter one
    /// is the estimate at once, longer ones are smoothed, so that it follows the queue; a timestamp gives one sample, a
    /// small segment and less than a millisecond none.
    pub fn sample_rtt(&mut self, now: Instant, echo: u32, len: u32) {
        if echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let ms = milliseconds(now).wrapping_sub(echo);
        if !self.autotune || ms == 0 || len < self.largest {
            return;
        }
        let rtt = Span::millis(u64::from(ms));
        self.set_rtt(self.rtt.map_or(rtt, |r| (r - r / 8 + rtt / 8).min(rtt)));
    }

    /// A segment of `len` bytes (several merged into one included) is larger than those before: it tells how much of
    /// the buffer can be window, as each takes the same memory, of which the payload is a share (`tcp_measure_rcv_mss`).
    #[cold]
    fn on_larger_segment(&mut self, len: u64) {
        if self.largest >= self.mss {
            return;
        }
        let before = if self.largest <= EXPECTED { HALF } else { share(self.largest, self.mss) };
        self.largest = u64::from(self.mss).min(len) as u32;
        if self.autotune {
            let now = share(self.largest, self.mss);
            let scaled = |window: u64| window * now / before;
            (self.clamp, self.max) = (scaled(self.clamp), Bytes(scaled(self.max.0)));
            self.hold();
        }
    }

    /// Grows the window by two segments for each that arrives, or by twice the `len` bytes of several merged
    /// into one, up to the limit of right-sizing less the space that they take themselves (`tcp_grow_window`).
    /// While it grows, data is acknowledged at once.
    #[inline]
    fn grow_window(&mut self, len: u64) {
        if self.window + len < self.room {
            self.window = (self.window + 2 * len.max(u64::from(self.mss))).min(self.room - len);
            self.set_offer();
            if self.rule == AckRule::QuickThenDelayed {
                self.quick |= 1;
            }
        }
    }

    /// Dynamic right-sizing (`tcp_rcv_space_adjust`): once in an RTT it looks at the bytes delivered in it. Without
    /// `autotune` no RTT is measured.
    #[cold]
    fn right_size(&mut self, now: Instant) {
        let taken = self.reader.as_ref().map_or(self.next, |r| r.read());
        let copied = taken - self.measured_from.1;
        self.measured_from = (now, taken);
        self.measured_until = now + self.rtt.unwrap_or(Span::MAX);
        if copied > self.space {
            self.grow_buffer(copied);
        }
    }

    /// Raises the limit of the window after `copied` bytes were read in an RTT ([`RightSize`]).
    fn grow_buffer(&mut self, copied: u64) {
        let beyond = || self.out_of_order.end().map_or(0, |end| end.saturating_sub(self.next));
        let (twice, beyond) = match self.right_size {
            RightSize::V612 => (2 * copied + 16 * u64::from(self.mss), 0),
            RightSize::V618 => (2 * copied, beyond()),
        };
        let growth = (2 * twice * (copied - self.space)).checked_div(self.space).unwrap_or(0);
        self.clamp = (twice + growth + beyond).clamp(self.clamp, self.max.0.max(self.clamp));
        self.space = copied;
        self.hold();
    }

    /// Says what data beyond a hole leaves of the buffer.
    fn hold(&mut self) {
        self.room = self.clamp - if self.autotune { self.out_of_order.covered().min(self.clamp) } else { 0 };
        self.set_offer();
    }
}

/// How much of the buffer is window, of 256, where the largest of segments of at most `mss` bytes has `len`.
fn share(len: u32, mss: u32) -> u64 {
    u64::from(len) * 256 / u64::from(MEMORY.max(mss / 5 * 8))
}

#[cfg(test)]
mod tests;
