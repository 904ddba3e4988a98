//! The state of every segment in flight.
//!
//! Segments are numbered in the order of their first transmission and kept in a ring. Counters are updated as
//! flags change, so that nothing scans the window: the cost of an ACK is that of the segments it newly
//! covers.

mod record;

pub use record::Record;

use super::ranges::Ranges;
use crate::ring::Ring;
use record::{APP_LIMITED, DeliveryState, EVER_RETRANS, LOST, RETRANS, SACKED};
use slowstart::units::{Bytes, Instant};
use slowstart::view::Sent;
use std::collections::VecDeque;

/// Size of a set of segments.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of segments in the set.
    pub packets: u32,
    /// The payload bytes of these segments.
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

/// What an ACK newly delivered.
#[derive(Copy, Clone, Debug)]
pub struct Delivered {
    /// Bytes, acknowledged cumulatively or by SACK.
    pub bytes: u64,
    /// Number of segments, acknowledged cumulatively or by SACK.
    pub packets: u32,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Send time and end of the segment sent last.
    newest: (Instant, u64),
    /// The index of that segment in the ring, before acknowledged segments are removed.
    newest_index: usize,
    /// Send times of the first and the last of the segments sent only once: RTT samples.
    sent_once: (Instant, Instant),
    /// The highest offset that the peer held before this ACK.
    highest_held: u64,
    /// The start of the lowest segment that was sent once and delivered after one sent later: a sign of
    /// reordering.
    pub reordered: Option<u64>,
    /// The least end of a segment that was never sent again and is newly delivered; [`u64::MAX`] if there is
    /// none.
    pub first_original: u64,
    /// True if a segment was newly SACKed.
    pub sacked: bool,
    /// True if a segment that was retransmitted was newly delivered.
    pub resent: bool,
}

impl Delivered {
    /// Nothing delivered yet, by a peer that holds data up to `highest_held`.
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
            first_original: u64::MAX,
            sacked: false,
            resent: false,
        }
    }

    /// Send times of the first and the last of the segments sent only once; `None` if there are none.
    pub fn sent_once(&self) -> Option<(Instant, Instant)> {
        (self.sent_once.0 <= self.sent_once.1).then_some(self.sent_once)
    }
}

/// Segments sent once and acknowledged in order.
pub(super) struct InOrder {
    /// Number of segments.
    pub(super) packets: u32,
    /// Their bytes.
    pub(super) bytes: u64,
    /// When the first left.
    pub(super) first: Instant,
    /// The last segment.
    pub(super) last: Record,
}

/// The segments in flight. Fields that every ACK needs come first (docs/dev/engine.md, "Memory layout").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Scoreboard {
    una: u64,
    /// The number of the first segment in the ring.
    base: u64,
    ring: Ring<Record>,
    mss: u32,
    measures: bool,
    /// Segments sent and not yet acknowledged cumulatively (`packets_out`).
    pub out: Count,
    /// Of these, those SACKed (`sacked_out`).
    pub sacked: Count,
    /// Of these, those marked lost (`lost_out`).
    pub lost: Count,
    /// Of these, those retransmitted and not marked lost again (`retrans_out`).
    pub resent: Count,
    /// Bytes delivered since the connection began.
    pub delivered: u64,
    /// When `delivered` last rose.
    pub delivered_at: Instant,
    /// Send time of the first packet of the current delivery-rate sample.
    pub first_sent_at: Instant,
    /// Bytes sent, retransmissions included.
    pub sent_total: u64,
    /// Bytes ever marked lost.
    pub lost_total: u64,
    /// The segment sent last among those that the last ACK delivered.
    newest: Record,
    /// Numbers of segments marked lost that may await retransmission, in order.
    resend: VecDeque<u64>,
    /// Number of segments ever marked lost.
    pub lost_packets: u64,
    /// Ranges beyond `una` that the peer has SACKed.
    pub(super) sacked_ranges: Ranges,
    /// The delivery state of each segment in the ring when it left, if `measures`.
    delivery_states: Ring<DeliveryState>,
    newest_delivery: DeliveryState,
}

impl Scoreboard {
    /// An empty scoreboard whose first byte has offset `una`. With `measures` it keeps the delivery state of
    /// each segment when it left.
    pub fn new(una: u64, mss: u32, measures: bool) -> Self {
        Self { una, mss, measures, ..Self::default() }
    }

    /// Takes the memory of the segments in flight, for [`Scoreboard::use_memory`].
    pub(super) fn take_memory(&mut self) -> Ring<Record> {
        std::mem::take(&mut self.ring)
    }

    /// Uses the memory of a connection that is over, before anything is sent.
    pub(super) fn use_memory(&mut self, mut ring: Ring<Record>) {
        ring.clear();
        self.ring = ring;
    }

    /// The first offset not acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The highest offset that the peer holds.
    pub fn highest_held(&self) -> u64 {
        self.sacked_ranges.end().unwrap_or(self.una)
    }

    /// Number of segments not yet acknowledged.
    #[cfg(debug_assertions)]
    pub(super) fn len(&self) -> usize {
        self.ring.len()
    }

    /// True if all segments are acknowledged.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes in flight: sent, and neither delivered nor marked lost.
    pub fn inflight(&self) -> Bytes {
        Bytes((self.out.bytes + self.resent.bytes).saturating_sub(self.sacked.bytes + self.lost.bytes))
    }

    /// Number of segments in flight (`tcp_packets_in_flight`).
    pub fn packets_inflight(&self) -> u32 {
        (self.out.packets + self.resent.packets).saturating_sub(self.sacked.packets + self.lost.packets)
    }

    /// Segment `n`; `None` if it is acknowledged or not sent yet.
    pub fn get(&self, n: u64) -> Option<&Record> {
        self.ring.get(usize::try_from(n.checked_sub(self.base)?).ok()?)
    }

    /// The packet sent last among those that the last ACK delivered, as controllers see it.
    pub fn newest(&self) -> Sent {
        let delivery = if self.measures { self.newest_delivery } else { DeliveryState::default() };
        self.newest.sent(&delivery)
    }

    /// Segment `n` as controllers see it; `None` if it is acknowledged or not sent yet.
    pub fn sent(&self, n: u64) -> Option<Sent> {
        self.get(n).map(|r| r.sent(&self.delivery_of(n)))
    }

    fn delivery_of(&self, n: u64) -> DeliveryState {
        self.delivery_states.get((n - self.base) as usize).copied().unwrap_or_default()
    }

    /// The number of the segment that contains `offset`.
    pub(super) fn number_of(&self, offset: u64) -> Option<u64> {
        let first = self.ring.front()?.start;
        // All segments but the last of a write are full, so this guess is mostly right.
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

    /// Returns the record of a segment that leaves now.
    #[inline]
    fn new_record(&mut self, now: Instant, start: u64, len: u16, flags: u16) -> Record {
        if self.out.packets == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        self.sent_total += u64::from(len);
        Record { start, at: now, len, flags }
    }

    /// The delivery state for a segment of `len` bytes, before it counts as in flight.
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

    /// Adds a segment of new data; returns its number.
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

    /// Adds `n` segments of new data, each of `len` bytes.
    #[inline]
    pub fn send_train(&mut self, now: Instant, start: u64, len: u16, n: u32, cwnd: Bytes, app_limited: bool) {
        if self.measures {
            for i in 0..u64::from(n) {
                self.send(now, start + i * u64::from(len), len, cwnd, app_limited);
            }
            return;
        }
        let r = self.new_record(now, start, len, if app_limited { APP_LIMITED } else { 0 });
        self.ring.push_train(n as usize, r, |r| r.start += u64::from(len));
        let bytes = u64::from(n) * u64::from(len);
        self.sent_total += bytes - u64::from(len);
        self.out.packets += n;
        self.out.bytes += bytes;
    }

    /// Takes the retransmission of segment `n`; returns its first offset and its length.
    ///
    /// # Panics If the segment is not in flight.
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

    /// The next segment to retransmit, in order of sequence.
    pub fn next_to_resend(&mut self) -> Option<u64> {
        // All segments in the queue have been delivered since.
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

    /// Marks a segment lost; returns its bytes, or 0 if it was already marked, or is delivered.
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
        // In order of sequence. Mostly at the end.
        let at = self.resend.partition_point(|m| *m < n);
        if self.resend.get(at) != Some(&n) {
            self.resend.insert(at, n);
        }
        len
    }

    /// Removes the lost mark of every segment (the loss was spurious).
    pub fn unmark_all(&mut self) {
        self.ring.for_each(|r| r.flags &= !LOST);
        self.lost = Count::default();
        self.resend.clear();
    }

    /// Removes the SACKed mark of every segment: the peer has discarded the data (RFC 2018 §8).
    pub fn renege(&mut self) {
        self.ring.for_each(|r| r.flags &= !SACKED);
        self.sacked = Count::default();
        self.sacked_ranges.clear();
    }

    /// Takes the delivery of segment `i` of the ring, cumulatively or by SACK.
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
            d.first_original = d.first_original.min(r.end());
            if r.end() < d.highest_held {
                d.reordered = Some(d.reordered.map_or(r.start, |low| low.min(r.start)));
            }
        }
        if (r.at, r.end()) > d.newest {
            d.newest = (r.at, r.end());
            d.newest_index = i;
        }
    }

    /// Stores the segment sent last among those delivered, while `newest_index` is valid.
    fn save_newest(&mut self, before: (Instant, u64), d: &Delivered) {
        if let Some(r) = self.ring.get(d.newest_index).filter(|_| d.newest > before) {
            self.newest = *r;
            if let Some(delivery) = self.delivery_states.get(d.newest_index) {
                self.newest_delivery = *delivery;
            }
            self.first_sent_at = r.at;
        }
    }

    /// Takes a SACK block `from..to`. Segments covered only in part count as not delivered. Calls `each` for
    /// every newly delivered segment.
    pub fn sack(
        &mut self,
        now: Instant,
        from: u64,
        to: u64,
        d: &mut Delivered,
        mut each: impl FnMut(&Record),
    ) {
        let from = from.max(self.una);
        // Most blocks are reported several times.
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
        // Only whole segments enter the set, so that its edges are those of segments.
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

    /// Number of segments from the first on that end at or before `una`, were sent once, and are neither
    /// SACKed nor marked lost.
    #[inline]
    fn count_in_order(&self, una: u64) -> usize {
        let mut n = 0;
        while self.ring.get(n).is_some_and(|r| r.end() <= una && r.flags & !APP_LIMITED == 0) {
            n += 1;
        }
        n
    }

    /// Takes the delivery of the first `n` segments, as [counted](Scoreboard::count_in_order): they left in
    /// order, so that the first and the last determine all samples.
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
        d.first_original = d.first_original.min(first.end());
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

    /// True if no segment is SACKed, marked lost or retransmitted.
    pub(super) fn has_no_holes(&self) -> bool {
        self.sacked.packets | self.lost.packets | self.resent.packets == 0
    }

    /// Takes the acknowledgement of everything before `una`, where the scoreboard
    /// [has no holes](Scoreboard::has_no_holes). Returns `None` and changes nothing if `una` is within a
    /// segment, or a segment before it was retransmitted.
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

    /// Takes the acknowledgement of everything before `una`. Calls `each` for every newly delivered segment,
    /// but for only the last of those sent once and in order.
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
                // A probe may have retransmitted a segment that the peer already held.
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

    /// Takes the partial acknowledgement of segment `i`; the rest of it keeps its state.
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

    /// Calls `lost` for each segment not marked lost that has at least `k` SACKed segments above it (RFC 6675
    /// `IsLost`). Scans from the front only as far as that holds.
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

    /// Numbers of all segments not SACKed.
    pub fn unsacked(&self) -> impl Iterator<Item = u64> + '_ {
        self.ring.iter().enumerate().filter(|(_, r)| !r.sacked()).map(|(i, _)| self.base + i as u64)
    }

    /// Recounts everything by a scan and asserts that the counters agree.
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
