//! Packets in transit: a FIFO ordered by arrival time.

use crate::fifo::Fifo;
use slowstart::units::Instant;

/// Items that arrive in the order in which they were pushed.
///
/// Law: `next() == Some(t)` implies `pop(t).is_some()`.
#[derive(Clone, Debug)]
pub struct ArrivalQueue<T> {
    queue: Fifo<(Instant, T)>,
}

impl<T> Default for ArrivalQueue<T> {
    fn default() -> Self {
        Self { queue: Fifo::default() }
    }
}

impl<T: Copy + Default> ArrivalQueue<T> {
    /// Returns an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what arrives at `at`, not before the last one pushed.
    #[inline]
    pub fn push(&mut self, at: Instant, item: T) {
        debug_assert!(self.last().is_none_or(|(last, _)| last <= at), "arrivals are pushed in order");
        self.queue.push((at, item));
    }

    /// Adds what arrives at `at`, which may be before others in the queue, but after those of the same time.
    /// Calls `each` for each item that it overtakes.
    pub fn insert(&mut self, at: Instant, item: T, mut each: impl FnMut(&T)) {
        self.queue.push((at, item));
        self.queue.advance_last(|(other, item)| {
            let overtakes = at < *other;
            if overtakes {
                each(item);
            }
            overtakes
        });
    }

    /// Lets the queue, if it is empty, use the memory again that it used last.
    #[inline]
    pub fn rewind(&mut self) {
        self.queue.rewind();
    }

    /// Returns the time from which [`ArrivalQueue::pop`] returns an item.
    pub fn next(&self) -> Option<Instant> {
        self.queue.front().map(|(at, _)| *at)
    }

    /// Removes and returns the first item, if it has arrived by `now`.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        let &(at, item) = self.queue.front()?;
        if at > now {
            return None;
        }
        self.queue.skip();
        Some(item)
    }

    /// Removes the first item.
    pub fn skip(&mut self) {
        self.queue.skip();
    }

    /// Returns the arrival time of the first item, and the item.
    pub fn first(&self) -> Option<(Instant, &T)> {
        self.queue.front().map(|(at, item)| (*at, item))
    }

    /// Returns the arrival time of the first item and the item, both mutable: for one that stands for several.
    #[inline]
    pub fn first_mut(&mut self) -> Option<&mut (Instant, T)> {
        self.queue.front_mut()
    }

    /// Returns the arrival time of the last item, and the item.
    pub fn last(&mut self) -> Option<(Instant, &mut T)> {
        self.queue.back_mut().map(|(at, item)| (*at, item))
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if there are no items.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_early_arrival_overtakes_and_ties_keep_their_order() {
        let mut line = ArrivalQueue::new();
        let mut overtaken = Vec::new();
        for (i, at) in [5, 9, 9, 5, 9, 1].into_iter().enumerate() {
            line.insert(Instant(at), i, |j| overtaken.push((i, *j)));
        }
        let got: Vec<usize> = std::iter::from_fn(|| line.pop(Instant::NEVER)).collect();
        assert_eq!(got, [5, 0, 3, 1, 2, 4]);
        assert_eq!(overtaken, [(3, 2), (3, 1), (5, 4), (5, 2), (5, 1), (5, 3), (5, 0)]);
    }

    proptest! {
        #[test]
        fn what_is_announced_arrives(gaps in prop::collection::vec(0_u64..5, 0..50)) {
            let mut line = ArrivalQueue::new();
            let mut at = Instant::ZERO;
            for (i, gap) in gaps.iter().enumerate() {
                at.0 += gap;
                line.push(at, i);
            }
            let mut got = Vec::new();
            while let Some(t) = line.next() {
                if t > Instant::ZERO {
                    prop_assert_eq!(line.pop(Instant(t.0 - 1)), None);
                }
                got.push(line.pop(t).expect("next() announced it"));
            }
            prop_assert!(got.iter().copied().eq(0..gaps.len()));
            prop_assert!(line.is_empty() && line.pop(Instant::NEVER).is_none());
        }
    }
}
