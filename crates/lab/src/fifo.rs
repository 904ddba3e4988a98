//! A first-in, first-out queue of what is under way: each packet passes through several.
//!
//! A ring wanders through all of its memory, and by the time it comes round the cache has forgotten the place. Here memory
//! is in chunks, and what was read last is written next: it is still at hand, and what waits takes no more room than it
//! needs. Nothing is ever given back, so that a run in its steady state allocates nothing.

/// Places of a chunk.
const CHUNK: usize = 64;

/// A queue of plain data.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    /// The chunks, one after the other.
    places: Vec<T>,
    /// The place of the first, and the one behind the last: at the beginning of a chunk there is none to write to yet.
    head: usize,
    tail: usize,
    len: usize,
    /// Of each chunk that is full, which follows it.
    next: Vec<usize>,
    /// Chunks with nothing in them; the last was read last.
    free: Vec<usize>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { places: Vec::new(), head: 0, tail: 0, len: 0, next: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy + Default> Fifo<T> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds at the end.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        if self.tail.is_multiple_of(CHUNK) {
            self.begin_chunk();
        }
        self.places[self.tail] = item;
        self.tail += 1;
        self.len += 1;
    }

    #[inline(never)]
    fn begin_chunk(&mut self) {
        let chunk = self.free.pop().unwrap_or_else(|| {
            self.places.resize(self.places.len() + CHUNK, T::default());
            self.next.push(0);
            self.next.len() - 1
        });
        let begin = chunk * CHUNK;
        if self.len == 0 {
            self.head = begin;
        } else {
            self.next[(self.tail - 1) / CHUNK] = chunk;
        }
        self.tail = begin;
    }

    /// The first.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.len > 0 { self.places.get(self.head) } else { None }
    }

    /// The last, to be changed.
    #[inline]
    pub(crate) fn back_mut(&mut self) -> Option<&mut T> {
        if self.len > 0 { self.places.get_mut(self.tail - 1) } else { None }
    }

    /// Forgets the first, if there is one.
    #[inline]
    pub(crate) fn skip(&mut self) {
        if self.len > 0 {
            self.head += 1;
            self.len -= 1;
            if self.head.is_multiple_of(CHUNK) {
                self.end_chunk();
            }
        }
    }

    #[inline(never)]
    fn end_chunk(&mut self) {
        let chunk = self.head / CHUNK - 1;
        self.free.push(chunk);
        if self.len > 0 {
            self.head = self.next[chunk] * CHUNK;
        } else {
            self.tail = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_std(steps in prop::collection::vec((0_usize..4, 0_usize..3 * CHUNK), 0..100)) {
            let (mut ours, mut theirs) = (Fifo::default(), VecDeque::new());
            let mut most = 0;
            for (i, (what, n)) in steps.into_iter().enumerate() {
                for k in 0..n {
                    if what < 2 {
                        ours.push((i, k));
                        theirs.push_back((i, k));
                    } else {
                        prop_assert_eq!(ours.front().copied(), theirs.pop_front());
                        ours.skip();
                    }
                }
                most = most.max(theirs.len());
                prop_assert_eq!((ours.len(), ours.is_empty()), (theirs.len(), theirs.is_empty()));
                prop_assert_eq!(ours.front(), theirs.front());
                prop_assert_eq!(ours.back_mut(), theirs.back_mut());
            }
            prop_assert!(ours.places.len() < most + 3 * CHUNK, "no more room than it needs");
        }
    }
}
