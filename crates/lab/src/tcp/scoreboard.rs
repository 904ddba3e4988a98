//! Every segment in flight, and what is known of it.
//!
//! Segments are numbered in the order they were first sent and stand in a ring; counters are kept as flags change, so
//! that nothing walks the window. The cost of an acknowledgement is that of the segments it newly covers.

use super::ranges::Ranges;
use slowstart::units::{Bytes, Instant, Mark};
use slowstart::view::Sent;
use std::collections::VecDeque;

/// Selectively acknowledged.
const SACKED: u8 = 1;
/// Held for lost.
const LOST: u8 = 2;
/// Sent again, and not known to be lost again.
const RETRANS: u8 = 4;
/// Sent more than once.
const EVER_RETRANS: u8 = 8;
/// The application had nothing more when it left.
const APP_LIMITED: u8 = 16;

/// A segment in flight.
#[derive(Copy, Clone, Debug)]
pub struct Record {
    /// Offset of its first byte.
    pub start: u64,
    /// Bytes of sequence space.
    pub len: u32,
    flags: u8,
    /// When it was last sent.
    pub at: Instant,
    inflight: u32,
    cwnd: u32,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    sent_total: u64,
    lost_total: u64,
}

impl Record {
    /// Offset after its last byte.
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
    /// Held for lost, and not sent again since.
    pub fn awaits_resending(&self) -> bool {
        self.flags & (LOST | RETRANS | SACKED) == LOST
    }
    /// Selectively acknowledged.
    pub fn sacked(&self) -> bool {
        self.flags & SACKED != 0
    }
    /// Held for lost.
    pub fn lost(&self) -> bool {
        self.flags & LOST != 0
    }
    /// Sent again, and that not known to be lost.
    pub fn resent(&self) -> bool {
        self.flags & RETRANS != 0
    }
    /// Sent more than once.
    pub fn ever_resent(&self) -> bool {
        self.flags & EVER_RETRANS != 0
    }

    /// As the algorithms see it.
    pub fn sent(&self) -> Sent {
        Sent {
            mark: Mark(self.end()),
            at: self.at,
            bytes: Bytes(u64::from(self.len)),
            sent_total: Bytes(self.sent_total),
            retransmission: self.ever_resent(),
            inflight: Bytes(u64::from(self.inflight)),
            delivered: Bytes(self.delivered),
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: Bytes(self.lost_total),
            app_limited: self.flags & APP_LIMITED != 0,
            cwnd: Bytes(u64::from(self.cwnd)),
        }
    }
}

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
        self.bytes += u64::from(r.len);
    }
    fn sub(&mut self, r: &Record) {
        self.packets -= 1;
        self.bytes -= u64::from(r.len);
    }
}

/// What an acknowledgement newly delivered.
#[derive(Copy, Clone, Debug, Default)]
pub struct Delivered {
    /// Bytes, cumulatively or selectively.
    pub bytes: u64,
    /// Segments.
    pub packets: u32,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// The newest of them.
    pub newest: Option<Record>,
    /// When the oldest and the newest of those sent only once left: round-trip samples.
    pub once: Option<(Instant, Instant)>,
    /// How far the peer held data before this acknowledgement: to be set by who asks.
    pub held_to: u64,
    /// Something sent only once arrived after something sent later: the path reorders.
    pub reordered: bool,
    /// Something newly selectively acknowledged.
    pub sacked: bool,
    /// Something sent more than once was newly covered.
    pub resent: bool,
}

/// The segments in flight.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    ring: VecDeque<Record>,
    /// The number of the first in the ring.
    base: u64,
    una: u64,
    mss: u64,
    /// What the peer holds beyond `una`.
    pub(super) sacked_ranges: Ranges,
    /// Segments held for lost that may await resending, by number.
    resend: VecDeque<u64>,
    /// All in flight or not yet acknowledged.
    pub out: Count,
    /// Of these, selectively acknowledged.
    pub sacked: Count,
    /// Held for lost.
    pub lost: Count,
    /// Sent again.
    pub resent: Count,
    /// Bytes ever marked lost, and segments.
    pub lost_total: u64,
    /// Segments ever marked lost.
    pub lost_packets: u64,
    /// Bytes delivered since the connection began.
    pub delivered: u64,
    /// When that was last raised.
    pub delivered_at: Instant,
    /// When the first packet of the flight being measured left.
    pub first_sent_at: Instant,
    /// Bytes sent, retransmissions included.
    pub sent_total: u64,
}

impl Scoreboard {
    /// Nothing is in flight; the first byte has offset `una`.
    pub fn new(una: u64, mss: u32) -> Self {
        Self { una, mss: u64::from(mss), ..Self::default() }
    }

    /// The first offset not acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// How far the peer holds data.
    pub fn held_to(&self) -> u64 {
        self.sacked_ranges.end().unwrap_or(self.una)
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

    /// The number of the segment that holds `offset`.
    fn number_of(&self, offset: u64) -> Option<u64> {
        let first = self.ring.front()?.start;
        // Segments are full but at the edges of what an application wrote, so the first guess is nearly always right.
        let guess = (offset.checked_sub(first)? / self.mss) as usize;
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

    fn stamp(&mut self, now: Instant, len: u32, cwnd: Bytes, app_limited: bool) -> Record {
        if self.out.packets == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        self.sent_total += u64::from(len);
        Record {
            start: 0,
            len,
            flags: if app_limited { APP_LIMITED } else { 0 },
            at: now,
            inflight: u32::try_from(self.inflight().0 + u64::from(len)).unwrap_or(u32::MAX),
            cwnd: u32::try_from(cwnd.0).unwrap_or(u32::MAX),
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            sent_total: self.sent_total,
            lost_total: self.lost_total,
        }
    }

    /// New data leaves; answers its number.
    pub fn send(&mut self, now: Instant, start: u64, len: u32, cwnd: Bytes, app_limited: bool) -> u64 {
        let r = Record { start, ..self.stamp(now, len, cwnd, app_limited) };
        self.out.add(&r);
        self.ring.push_back(r);
        self.base + self.ring.len() as u64 - 1
    }

    /// A segment leaves again.
    pub fn resend(&mut self, now: Instant, n: u64, cwnd: Bytes) -> Record {
        let i = (n - self.base) as usize;
        let old = self.ring[i];
        let stamp = self.stamp(now, old.len, cwnd, false);
        let r = &mut self.ring[i];
        let counted = r.flags & RETRANS != 0;
        *r = Record {
            start: old.start,
            flags: (old.flags & (LOST | SACKED)) | RETRANS | EVER_RETRANS,
            ..stamp
        };
        let r = *r;
        if !counted {
            self.resent.add(&r);
        }
        r
    }

    /// The next segment to send again, in order of sequence.
    pub fn next_to_resend(&mut self) -> Option<u64> {
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
            let r = *r;
            self.resent.sub(&r);
        } else if r.flags & LOST != 0 {
            return 0;
        }
        let fresh = r.flags & LOST == 0;
        r.flags |= LOST;
        let r = *r;
        if fresh {
            self.lost.add(&r);
        }
        self.lost_total += u64::from(r.len);
        self.lost_packets += 1;
        // In order of sequence: what is marked now mostly follows what was marked before.
        let at = self.resend.partition_point(|m| *m < n);
        if self.resend.get(at) != Some(&n) {
            self.resend.insert(at, n);
        }
        u64::from(r.len)
    }

    /// Takes every mark back (the loss was none).
    pub fn unmark_all(&mut self) {
        for r in &mut self.ring {
            if r.flags & LOST != 0 {
                r.flags &= !LOST;
            }
        }
        self.lost = Count::default();
        self.resend.clear();
    }

    /// The peer has thrown away what it held (RFC 2018 §8): nothing counts as selectively acknowledged any more.
    pub fn renege(&mut self) {
        for r in &mut self.ring {
            r.flags &= !SACKED;
        }
        self.sacked = Count::default();
        self.sacked_ranges.clear();
    }

    fn cover(&mut self, now: Instant, i: usize, d: &mut Delivered) {
        let r = &mut self.ring[i];
        let flags = r.flags;
        r.flags = (flags & !(LOST | RETRANS)) | SACKED;
        let r = *r;
        if flags & LOST != 0 {
            self.lost.sub(&r);
        }
        if flags & RETRANS != 0 {
            self.resent.sub(&r);
        }
        self.sacked.add(&r);
        d.bytes += u64::from(r.len);
        d.packets += 1;
        self.delivered += u64::from(r.len);
        self.delivered_at = now;
        if flags & EVER_RETRANS == 0 {
            let (first, last) = d.once.unwrap_or((r.at, r.at));
            d.once = Some((first.min(r.at), last.max(r.at)));
            d.reordered |= r.end() < d.held_to;
        } else {
            d.resent = true;
        }
        if d.newest.is_none_or(|n| (n.at, n.end()) < (r.at, r.end())) {
            d.newest = Some(Record { flags, ..r });
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
        let mut ranges = std::mem::take(&mut self.sacked_ranges);
        ranges.add(start, stop_at, |a, b| {
            let Some(mut i) = self.number_of(a).map(|n| (n - self.base) as usize) else { return };
            while self.ring.get(i).is_some_and(|r| r.start < b) {
                if !self.ring[i].sacked() {
                    self.cover(now, i, d);
                    d.sacked = true;
                    let r = self.ring[i];
                    each(&r);
                }
                i += 1;
            }
        });
        self.sacked_ranges = ranges;
    }

    /// Everything before `una` has arrived. `each` sees what is newly delivered.
    pub fn acknowledge(&mut self, now: Instant, una: u64, d: &mut Delivered, mut each: impl FnMut(&Record)) {
        if una <= self.una {
            return;
        }
        d.acked += una - self.una;
        while let Some(r) = self.ring.front().filter(|r| r.start < una) {
            if r.end() > una {
                // Part of a segment: what is left of it stays as it is.
                let (cut, flags) = ((una - r.start) as u32, r.flags);
                for (flag, count) in [
                    (0, &mut self.out),
                    (SACKED, &mut self.sacked),
                    (LOST, &mut self.lost),
                    (RETRANS, &mut self.resent),
                ] {
                    if flags & flag == flag {
                        count.bytes -= u64::from(cut);
                    }
                }
                if flags & SACKED == 0 {
                    d.bytes += u64::from(cut);
                    self.delivered += u64::from(cut);
                    self.delivered_at = now;
                }
                if let Some(r) = self.ring.front_mut() {
                    r.start = una;
                    r.len -= cut;
                }
                break;
            }
            if !r.sacked() {
                self.cover(now, 0, d);
                each(&self.ring[0]);
            }
            if let Some(r) = self.ring.pop_front() {
                self.sacked.sub(&r);
                self.out.sub(&r);
                // A probe may have sent again what the peer already held.
                if r.resent() {
                    self.resent.sub(&r);
                }
                self.base += 1;
            }
        }
        self.una = una;
        self.sacked_ranges.forget_below(una);
    }

    /// How many segments above `n` are selectively acknowledged is at least `k` (RFC 6675 `IsLost`), for the first
    /// segments: calls `lost` with each not yet held for lost. Walks from the front only as far as that holds.
    pub fn behind(&self, k: u32, mut lost: impl FnMut(u64)) {
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
        for r in &self.ring {
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
