//! Packets under way: a FIFO of arrivals.

use crate::fifo::Fifo;
use slowstart::units::Instant;

/// Things that arrive in the order in which they were sent.
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
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what arrives at `at`, not before the last one pushed.
    #[inline]
    pub fn push(&mut self, at: Instant, item: T) {
        debug_assert!(self.last().is_none_or(|(last, _)| last <= at), "a line keeps its order");
        self.queue.push((at, item));
    }

    /// When [`ArrivalQueue::pop`] will next yield.
    pub fn next(&self) -> Option<Instant> {
        self.queue.front().map(|(at, _)| *at)
    }

    /// The first in line, if it has arrived by `now`.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        let &(at, item) = self.queue.front()?;
        if at > now {
            return None;
        }
        self.queue.skip();
        Some(item)
    }

    /// Takes the first in line away.
    pub fn skip(&mut self) {
        self.queue.skip();
    }

    /// The first in line, arrived or not, and when it does.
    pub fn first(&self) -> Option<(Instant, &T)> {
        self.queue.front().map(|(at, item)| (*at, item))
    }

    /// The last in line and when it arrives.
    pub fn last(&mut self) -> Option<(Instant, &mut T)> {
        self.queue.back_mut().map(|(at, item)| (*at, item))
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
