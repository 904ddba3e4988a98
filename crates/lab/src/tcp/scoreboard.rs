//! Every segment in flight, and what is known of it.
//!
//! Segments are numbered in the order they were first sent and stand in a ring; counters are kept as flags change, so
//! that nothing walks the window. The cost of an acknowledgement is that of the segments it newly covers.

mod record;

pub use record::Record;

use super::ranges::Ranges;
use crate::ring::Ring;
use record::{APP_LIMITED, DeliveryState, EVER_RETRANS, LOST, RETRANS, SACKED};
use slowstart::units::{Bytes, Instant};
use slowstart::view::Sent;
use std::collections::VecDeque;

/// What is counted of a set of segments.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Segments.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, r: &Record) {
        self.packets += 1;
        self.bytes += r.span();
    }
    fn sub(&mut self, r: &Record) {
        self.packets -= 1;
        self.bytes -= r.span();
    }
}

/// What an acknowledgement newly delivered.
#[derive(Copy, Clone, Debug)]
pub struct Delivered {
    /// Bytes, cumulatively or selectively.
    pub bytes: u64,
    /// Segments.
    pub packets: u32,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// When the newest of them left, and its end.
    newest: (Instant, u64),
    /// Where it stands in the ring, until something is acknowledged.
    newest_index: usize,
    /// When the oldest and the newest of those sent only once left: round-trip samples.
    sent_once: (Instant, Instant),
    /// How far the peer held data before this acknowledgement.
    highest_held: u64,
    /// Where the lowest begins that was sent only once and arrived after something sent later: the path reorders.
    pub reordered: Option<u64>,
    /// Something newly selectively acknowledged.
    pub sacked: bool,
    /// Something sent more than once was newly covered.
    pub resent: bool,
}

impl Delivered {
    /// Nothing yet, by a peer that holds data up to `highest_held`.
    pub fn new(highest_held: u64) -> Self {
        Self {
            bytes: 0,
            packets: 0,
            acked: 0,
            newest: (Instant::ZERO, 0),
            newest_index: 0,
            sent_once: (Instant::NEVER, Instant::ZERO),
            highest_held,
            reordered: None,
            sacked: false,
            resent: false,
        }
    }

    /// When the oldest and the newest of those sent only once left, if there are any.
    pub fn sent_once(&self) -> Option<(Instant, Instant)> {
        (self.sent_once.0 <= self.sent_once.1).then_some(self.sent_once)
    }
}

/// Segments sent once and acknowledged in order.
pub(super) struct InOrder {
    /// Their number.
    pub(super) packets: u32,
    /// Their bytes.
    pub(super) bytes: u64,
    /// When the first left.
    pub(super) first: Instant,
    /// The last.
    pub(super) last: Record,
}

/// The segments in flight. What every acknowledgement needs comes first, in lines of the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Scoreboard {
    una: u64,
    /// The number of the first in the ring.
    base: u64,
    ring: Ring<Record>,
    mss: u32,
    measures: bool,
    /// All in flight or not yet acknowledged.
    pub out: Count,
    /// Of these, selectively acknowledged.
    pub sacked: Count,
    /// Held for lost.
    pub lost: Count,
    /// Sent again.
    pub resent: Count,
    /// Bytes delivered since the connection began.
    pub delivered: u64,
    /// When that was last raised.
    pub delivered_at: Instant,
    /// When the first packet of the flight being measured left.
    pub first_sent_at: Instant,
    /// Bytes sent, retransmissions included.
    pub sent_total: u64,
    /// Bytes ever marked lost, and segments.
    pub lost_total: u64,
    /// The packet sent last among those that the last acknowledgement of news delivered.
    newest: Record,
    /// Segments held for lost that may await resending, by number.
    resend: VecDeque<u64>,
    /// Segments ever marked lost.
    pub lost_packets: u64,
    /// What the peer holds beyond `una`.
    pub(super) sacked_ranges: Ranges,
    /// Beside each in the ring, how delivery stood, if that is measured.
    delivery_states: Ring<DeliveryState>,
    newest_delivery: DeliveryState,
}

impl Scoreboard {
    /// Nothing is in flight; the first byte has offset `una`. `measures` keeps with each segment how delivery stood when it
    /// left.
    pub fn new(una: u64, mss: u32, measures: bool) -> Self {
        Self { una, mss, measures, ..Self::default() }
    }

    /// The first offset not acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// How far the peer holds data.
    pub fn highest_held(&self) -> u64 {
        self.sacked_ranges.end().unwrap_or(self.una)
    }

    /// Number of segments not yet acknowledged.
    #[cfg(debug_assertions)]
    pub(super) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Nothing awaits acknowledgement.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes in flight: sent and neither delivered nor held for lost.
    pub fn inflight(&self) -> Bytes {
        Bytes((self.out.bytes + self.resent.bytes).saturating_sub(self.sacked.bytes + self.lost.bytes))
    }

    /// Segments in flight (`tcp_packets_in_flight`).
    pub fn packets_inflight(&self) -> u32 {
        (self.out.packets + self.resent.packets).saturating_sub(self.sacked.packets + self.lost.packets)
    }

    /// The segment of this number, while it is unacknowledged.
    pub fn get(&self, n: u64) -> Option<&Record> {
        self.ring.get(usize::try_from(n.checked_sub(self.base)?).ok()?)
    }

    /// The packet sent last among those that the last acknowledgement of news delivered, as the algorithms see it.
    pub fn newest(&self) -> Sent {
        let delivery = if self.measures { self.newest_delivery } else { DeliveryState::default() };
        self.newest.sent(&delivery)
    }

    /// Segment `n` as the algorithms see it, while it is unacknowledged.
    pub fn sent(&self, n: u64) -> Option<Sent> {
        self.get(n).map(|r| r.sent(&self.delivery_of(n)))
    }

    fn delivery_of(&self, n: u64) -> DeliveryState {
        self.delivery_states.get((n - self.base) as usize).copied().unwrap_or_default()
    }

    /// The number of the segment that holds `offset`.
    pub(super) fn number_of(&self, offset: u64) -> Option<u64> {
        let first = self.ring.front()?.start;
        // Segments are full but at the edges of what an application wrote, so the first guess is nearly always right.
        let guess = (offset.checked_sub(first)? / u64::from(self.mss)) as usize;
        let hit = |i: usize| self.ring.get(i).is_some_and(|r| r.start <= offset && offset < r.end());
        let i = if hit(guess) { guess } else { self.ring.partition_point(|r| r.end() <= offset) };
        hit(i).then_some(self.base + i as u64)
    }

    /// The number of the first segment not acknowledged.
    pub fn first(&self) -> Option<u64> {
        (!self.ring.is_empty()).then_some(self.base)
    }

    /// The number of the last segment sent.
    pub fn last(&self) -> Option<u64> {
        (!self.ring.is_empty()).then(|| self.base + self.ring.len() as u64 - 1)
    }

    /// A segment as it leaves now.
    #[inline]
    fn new_record(&mut self, now: Instant, start: u64, len: u16, flags: u16) -> Record {
        if self.out.packets == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        self.sent_total += u64::from(len);
        Record { start, at: now, len, flags }
    }

    /// How delivery stands as a segment of `len` bytes leaves, before it counts as in flight.
    fn delivery_state(&self, len: u16, cwnd: Bytes) -> DeliveryState {
        DeliveryState {
            sent_total: self.sent_total,
            inflight: self.inflight() + Bytes(u64::from(len)),
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost_total: self.lost_total,
            cwnd,
        }
    }

    /// New data leaves; answers its number.
    #[inline]
    pub fn send(&mut self, now: Instant, start: u64, len: u16, cwnd: Bytes, app_limited: bool) -> u64 {
        let r = self.new_record(now, start, len, if app_limited { APP_LIMITED } else { 0 });
        if self.measures {
            self.delivery_states.push(self.delivery_state(len, cwnd));
        }
        self.out.add(&r);
        self.ring.push(r);
        self.base + self.ring.len() as u64 - 1
    }

    /// `n` segments of new data leave, each of `len` bytes.
    #[inline]
    pub fn send_train(&mut self, now: Instant, start: u64, len: u16, n: u32, cwnd: Bytes, app_limited: bool) {
        if self.measures {
            for i in 0..u64::from(n) {
                self.send(now, start + i * u64::from(len), len, cwnd, app_limited);
            }
            return;
        }
        let mut r = self.new_record(now, start, len, if app_limited { APP_LIMITED } else { 0 });
        for _ in 0..n {
            self.ring.push(r);
            r.start += u64::from(len);
        }
        let bytes = r.start - start;
        self.sent_total += bytes - u64::from(len);
        self.out.packets += n;
        self.out.bytes += bytes;
    }

    /// A segment leaves again; answers its first offset and its length.
    ///
    /// # Panics
    /// If it is not in flight.
    pub fn resend(&mut self, now: Instant, n: u64, cwnd: Bytes) -> (u64, u16) {
        let i = (n - self.base) as usize;
        let Some(&Record { start, len, flags, .. }) = self.ring.get(i) else {
            panic!("{n} is not in flight")
        };
        let again = flags & (LOST | SACKED) | RETRANS | EVER_RETRANS;
        let r = self.new_record(now, start, len, again);
        let delivery = self.delivery_state(len, cwnd);
        if flags & RETRANS == 0 {
            self.resent.add(&r);
        }
        if let Some(place) = self.ring.get_mut(i) {
            *place = r;
        }
        if let Some(place) = self.delivery_states.get_mut(i) {
            *place = delivery;
        }
        (start, len)
    }

    /// The next segment to send again, in order of sequence.
    pub fn next_to_resend(&mut self) -> Option<u64> {
        // What stands in the queue has been delivered since.
        if self.lost.packets == 0 {
            return None;
        }
        while let Some(&n) = self.resend.front() {
            if self.get(n).is_some_and(Record::awaits_resending) {
                return Some(n);
            }
            self.resend.pop_front();
        }
        None
    }

    /// Holds a segment for lost; answers its bytes, or zero if there is nothing new in that.
    pub fn mark_lost(&mut self, n: u64) -> u64 {
        let Some(i) = n.checked_sub(self.base).map(|i| i as usize) else { return 0 };
        let Some(r) = self.ring.get_mut(i).filter(|r| r.flags & SACKED == 0) else { return 0 };
        if r.flags & RETRANS != 0 {
            r.flags &= !RETRANS;
            self.resent.sub(r);
        } else if r.flags & LOST != 0 {
            return 0;
        }
        let fresh = r.flags & LOST == 0;
        r.flags |= LOST;
        let len = r.span();
        if fresh {
            self.lost.add(r);
        }
        self.lost_total += len;
        self.lost_packets += 1;
        // In order of sequence: what is marked now mostly follows what was marked before.
        let at = self.resend.partition_point(|m| *m < n);
        if self.resend.get(at) != Some(&n) {
            self.resend.insert(at, n);
        }
        len
    }

    /// Takes every mark back (the loss was none).
    pub fn unmark_all(&mut self) {
        self.ring.for_each(|r| r.flags &= !LOST);
        self.lost = Count::default();
        self.resend.clear();
    }

    /// The peer has thrown away what it held (RFC 2018 §8): nothing counts as selectively acknowledged any more.
    pub fn renege(&mut self) {
        self.ring.for_each(|r| r.flags &= !SACKED);
        self.sacked = Count::default();
        self.sacked_ranges.clear();
    }

    /// Segment `i` of the ring, in flight until now, was delivered, cumulatively or selectively.
    #[inline]
    fn deliver(&mut self, now: Instant, i: usize, d: &mut Delivered) {
        let Some(r) = self.ring.get(i) else { return };
        if r.flags & LOST != 0 {
            self.lost.sub(r);
        }
        if r.flags & RETRANS != 0 {
            self.resent.sub(r);
        }
        d.bytes += r.span();
        d.packets += 1;
        self.delivered += r.span();
        self.delivered_at = now;
        if r.ever_resent() {
            d.resent = true;
        } else {
            d.sent_once = (d.sent_once.0.min(r.at), d.sent_once.1.max(r.at));
            if r.end() < d.highest_held {
                d.reordered = Some(d.reordered.map_or(r.start, |low| low.min(r.start)));
            }
        }
        if (r.at, r.end()) > d.newest {
            d.newest = (r.at, r.end());
            d.newest_index = i;
        }
    }

    /// Keeps the newest of what was delivered, while its place is what it was.
    fn save_newest(&mut self, before: (Instant, u64), d: &Delivered) {
        if let Some(r) = self.ring.get(d.newest_index).filter(|_| d.newest > before) {
            self.newest = *r;
            if let Some(delivery) = self.delivery_states.get(d.newest_index) {
                self.newest_delivery = *delivery;
            }
            self.first_sent_at = r.at;
        }
    }

    /// The peer holds `from..to`, beyond what it acknowledged. Segments it holds only in part count as not held.
    /// `each` sees what is newly held.
    pub fn sack(
        &mut self,
        now: Instant,
        from: u64,
        to: u64,
        d: &mut Delivered,
        mut each: impl FnMut(&Record),
    ) {
        let from = from.max(self.una);
        // Most blocks are told of several times.
        if self.sacked_ranges.holds_late(from, to) {
            return;
        }
        let end = self.ring.back().map_or(self.una, Record::end);
        let (Some(mut n), true) = (self.number_of(from), from < to && to <= end) else { return };
        if self.get(n).is_some_and(|r| r.start < from) {
            n += 1;
        }
        let Some(start) = self.get(n).map(|r| r.start) else { return };
        let mut stop = n;
        // Only whole segments enter the set, so that its edges are theirs.
        let last = if to == end { self.last().map(|l| l + 1) } else { self.number_of(to) };
        let Some(stop_at) = last.and_then(|l| {
            stop = stop.max(l);
            if l > n { Some(self.get(l - 1)?.end()) } else { None }
        }) else {
            return;
        };
        let before = d.newest;
        let mut ranges = std::mem::take(&mut self.sacked_ranges);
        ranges.add(start, stop_at, |a, b| {
            let first = if a == start { Some(n) } else { self.number_of(a) };
            let Some(mut i) = first.map(|n| (n - self.base) as usize) else { return };
            while self.ring.get(i).is_some_and(|r| r.start < b) {
                if self.ring.get(i).is_some_and(|r| !r.sacked()) {
                    self.deliver(now, i, d);
                    d.sacked = true;
                    if let Some(r) = self.ring.get_mut(i) {
                        each(r);
                        r.flags = (r.flags & !(LOST | RETRANS)) | SACKED;
                        self.sacked.add(r);
                    }
                }
                i += 1;
            }
        });
        self.sacked_ranges = ranges;
        self.save_newest(before, d);
    }

    /// How many of the first segments, all before `una`, were sent once and neither held nor missed.
    #[inline]
    fn count_in_order(&self, una: u64) -> usize {
        let mut n = 0;
        while self.ring.get(n).is_some_and(|r| r.end() <= una && r.flags & !APP_LIMITED == 0) {
            n += 1;
        }
        n
    }

    /// The first `n` segments, [plain](Scoreboard::count_in_order) ones, were delivered: they left in order, so that the first and
    /// the last tell of all.
    #[inline]
    fn deliver_in_order(
        &mut self,
        now: Instant,
        n: usize,
        d: &mut Delivered,
        each: &mut impl FnMut(&Record),
    ) {
        let (Some(first), Some(last)) = (self.ring.front(), n.checked_sub(1).and_then(|i| self.ring.get(i)))
        else {
            return;
        };
        let bytes = last.end() - first.start;
        d.sent_once = (d.sent_once.0.min(first.at), d.sent_once.1.max(last.at));
        if first.end() < d.highest_held {
            d.reordered = Some(d.reordered.map_or(first.start, |low| low.min(first.start)));
        }
        each(last);
        if (last.at, last.end()) > d.newest {
            d.newest = (last.at, last.end());
            d.newest_index = n - 1;
        }
        d.bytes += bytes;
        d.packets += n as u32;
        self.delivered += bytes;
        self.delivered_at = now;
        self.out.packets -= n as u32;
        self.out.bytes -= bytes;
    }

    /// Nothing is held, missed or under way again.
    pub(super) fn has_no_holes(&self) -> bool {
        self.sacked.packets | self.lost.packets | self.resent.packets == 0
    }

    /// Everything before `una` has arrived, while the board [is whole](Scoreboard::has_no_holes); `None`, and nothing has
    /// changed, if that ends within a segment or something of it was sent more than once.
    #[inline]
    pub(super) fn acknowledge_in_order(&mut self, now: Instant, una: u64) -> Option<InOrder> {
        let n = self.count_in_order(una);
        let (first, last) = (*self.ring.front()?, *self.ring.get(n.checked_sub(1)?)?);
        if last.end() != una {
            return None;
        }
        let bytes = una - self.una;
        self.delivered += bytes;
        self.delivered_at = now;
        self.first_sent_at = last.at;
        self.newest = last;
        if self.measures {
            self.newest_delivery = self.delivery_states.get(n - 1).copied().unwrap_or_default();
            self.delivery_states.skip(n);
        }
        self.out.packets -= n as u32;
        self.out.bytes -= bytes;
        self.ring.skip(n);
        self.base += n as u64;
        self.una = una;
        Some(InOrder { packets: n as u32, bytes, first: first.at, last })
    }

    /// Everything before `una` has arrived. `each` sees what is newly delivered, but of segments sent once and in order
    /// only the last.
    pub fn acknowledge(&mut self, now: Instant, una: u64, d: &mut Delivered, mut each: impl FnMut(&Record)) {
        if una <= self.una {
            return;
        }
        d.acked += una - self.una;
        let before = d.newest;
        let mut gone = self.count_in_order(una);
        self.deliver_in_order(now, gone, d, &mut each);
        while let Some(r) = self.ring.get(gone).filter(|r| r.start < una) {
            if r.end() > una {
                self.trim(now, gone, una, d);
                break;
            }
            self.out.sub(r);
            if r.sacked() {
                self.sacked.sub(r);
                // A probe may have sent again what the peer already held.
                if r.resent() {
                    self.resent.sub(r);
                }
            } else {
                each(r);
                self.deliver(now, gone, d);
            }
            gone += 1;
        }
        self.save_newest(before, d);
        self.ring.skip(gone);
        self.delivery_states.skip(gone);
        self.base += gone as u64;
        self.una = una;
        self.sacked_ranges.forget_below(una);
    }

    /// Segment `i` was acknowledged in part: what is left of it stays as it is.
    #[cold]
    fn trim(&mut self, now: Instant, i: usize, una: u64, d: &mut Delivered) {
        let Some(r) = self.ring.get_mut(i) else { return };
        let (cut, flags) = (una - r.start, r.flags);
        r.start = una;
        r.len -= cut as u16;
        for (flag, count) in [
            (0, &mut self.out),
            (SACKED, &mut self.sacked),
            (LOST, &mut self.lost),
            (RETRANS, &mut self.resent),
        ] {
            if flags & flag == flag {
                count.bytes -= cut;
            }
        }
        if flags & SACKED == 0 {
            d.bytes += cut;
            self.delivered += cut;
            self.delivered_at = now;
        }
    }

    /// How many segments above `n` are selectively acknowledged is at least `k` (RFC 6675 `IsLost`), for the first
    /// segments: calls `lost` with each not yet held for lost. Walks from the front only as far as that holds.
    pub fn lost_by_duplicates(&self, k: u32, mut lost: impl FnMut(u64)) {
        let mut above = self.sacked.packets;
        for (i, r) in self.ring.iter().enumerate() {
            if above < k {
                return;
            }
            if r.sacked() {
                above -= 1;
            } else if !r.lost() {
                lost(self.base + i as u64);
            }
        }
    }

    /// Numbers of all segments not selectively acknowledged.
    pub fn unsacked(&self) -> impl Iterator<Item = u64> + '_ {
        self.ring.iter().enumerate().filter(|(_, r)| !r.sacked()).map(|(i, _)| self.base + i as u64)
    }

    /// Recounts everything by walking, for tests and debug builds.
    #[cfg(any(test, debug_assertions))]
    pub fn check(&self) {
        let (mut out, mut sacked, mut lost, mut resent) =
            (Count::default(), Count::default(), Count::default(), Count::default());
        for r in self.ring.iter() {
            out.add(r);
            for (flag, c) in [(SACKED, &mut sacked), (LOST, &mut lost), (RETRANS, &mut resent)] {
                if r.flags & flag != 0 {
                    c.add(r);
                }
            }
            assert_eq!(r.sacked(), self.sacked_ranges.holding(r.start).is_some(), "{r:?}");
        }
        assert_eq!((out, sacked, lost, resent), (self.out, self.sacked, self.lost, self.resent));
        assert!(self.ring.iter().zip(self.ring.iter().skip(1)).all(|(a, b)| a.end() == b.start));
    }
}
