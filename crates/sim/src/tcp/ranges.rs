//! A set of sequence ranges: disjoint and in order.
//!
//! The receiver uses one for out-of-order data, the sender for SACKed data. After a large overshoot it holds
//! tens of thousands of ranges, but updates are at its ends: new data at the last range, retransmissions at
//! the first. A deque moves the shorter side, so the cost does not grow with the window.

use std::collections::VecDeque;

/// Disjoint half-open ranges, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ranges {
    covered: u64,
    all: VecDeque<(u64, u64)>,
}

impl Ranges {
    /// Number of sequence numbers covered.
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// True if nothing is covered.
    pub fn is_empty(&self) -> bool {
        self.covered == 0
    }

    /// The end of the last range.
    pub fn end(&self) -> Option<u64> {
        self.all.back().map(|r| r.1)
    }

    /// Number of gaps below the last range, of sequence numbers from 0.
    pub fn gaps(&self) -> u64 {
        let first = self.all.front().is_some_and(|r| r.0 == 0);
        self.all.len() as u64 - u64::from(first)
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.all.iter().copied()
    }

    /// The range that contains `at`.
    pub fn holding(&self, at: u64) -> Option<(u64, u64)> {
        let i = self.all.partition_point(|r| r.1 <= at);
        self.all.get(i).copied().filter(|r| r.0 <= at)
    }

    /// True if one of the last four ranges covers all of `from..to`.
    pub fn holds_late(&self, from: u64, to: u64) -> bool {
        self.all.iter().rev().take(4).any(|r| r.0 <= from && to <= r.1)
    }

    /// Adds a range; calls `fresh` for each part that was not covered, in order. Returns the range that now
    /// contains it.
    pub fn add(&mut self, from: u64, to: u64, mut fresh: impl FnMut(u64, u64)) -> (u64, u64) {
        debug_assert!(from < to, "an empty range {from}..{to}");
        // Mostly the last range is extended, or the new one comes after it.
        let first = match self.all.back() {
            Some(last) if from > last.1 => self.all.len(),
            Some(last) if from >= last.0 => self.all.len() - 1,
            _ => self.all.partition_point(|r| r.1 < from),
        };
        let (mut lo, mut hi, mut at, mut last) = (from, to, from, first);
        while let Some(&(s, e)) = self.all.get(last).filter(|r| r.0 <= to) {
            if at < s {
                fresh(at, s);
                self.covered += s - at;
            }
            at = at.max(e);
            lo = lo.min(s);
            hi = hi.max(e);
            last += 1;
        }
        if at < to {
            fresh(at, to);
            self.covered += to - at;
        }
        if first == last {
            self.all.insert(first, (lo, hi));
        } else {
            self.all[first] = (lo, hi);
            if last - first > 1 {
                self.all.drain(first + 1..last);
            }
        }
        (lo, hi)
    }

    /// Removes everything below `at`.
    pub fn forget_below(&mut self, at: u64) {
        while let Some(r) = self.all.front_mut().filter(|r| r.0 < at) {
            if r.1 > at {
                self.covered -= at - r.0;
                r.0 = at;
                return;
            }
            self.covered -= r.1 - r.0;
            self.all.pop_front();
        }
    }

    /// Removes every range, and keeps the memory.
    pub fn clear(&mut self) {
        self.all.clear();
        self.covered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn gaps_count_from_zero() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.gaps(), 0);
        ranges.add(5, 9, |_, _| {});
        ranges.add(12, 13, |_, _| {});
        assert_eq!(ranges.gaps(), 2);
        ranges.add(0, 5, |_, _| {});
        assert_eq!(ranges.gaps(), 1);
    }

    #[test]
    fn agrees_with_a_plain_set() {
        let mut x = 1_u64;
        let mut draw = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for _ in 0..2000 {
            let (mut ours, mut plain) = (Ranges::default(), BTreeSet::new());
            for _ in 0..30 {
                let from = draw(60);
                let to = from + 1 + draw(9);
                let mut fresh = Vec::new();
                let whole = ours.add(from, to, |a, b| fresh.extend(a..b));
                let want: Vec<u64> = (from..to).filter(|s| plain.insert(*s)).collect();
                assert_eq!(fresh, want);
                assert!(whole.0 <= from && to <= whole.1);
                if draw(10) == 0 {
                    let at = draw(70);
                    ours.forget_below(at);
                    plain.retain(|s| *s >= at);
                }
                assert_eq!(
                    ours.iter().flat_map(|(a, b)| a..b).collect::<Vec<_>>(),
                    Vec::from_iter(plain.clone())
                );
                assert_eq!(ours.covered(), plain.len() as u64);
                assert!(ours.all.iter().zip(ours.all.iter().skip(1)).all(|(a, b)| a.1 < b.0), "not apart");
            }
        }
    }
}
