//! A first-in, first-out queue for packets on their way. The last item may be moved forward, past others.
//!
//! Its memory is in chunks, and the chunk that was read last is the next to be written: it is still in the
//! cache, and the queue takes no more memory than its content needs (docs/dev/engine.md, "Rings and chunks").
//! Chunks are never freed, so that in its steady state it allocates nothing.

/// Items of a chunk.
const CHUNK: usize = 64;

/// A queue of plain data.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    /// The chunks, one after the other.
    places: Vec<T>,
    /// Indices of the first item and of the next one to be pushed; equal if there are no items. A chunk is
    /// taken as soon as the one before it is full, so that both are always within a chunk.
    head: usize,
    tail: usize,
    /// Number of chunks from that of `head` to that of `tail`, without the last. Items are not counted one by
    /// one, which would cost every push and every removal an update.
    full: usize,
    /// For each full chunk, the chunk that follows it; and for each chunk but the first, the one before it.
    next: Vec<usize>,
    previous: Vec<usize>,
    /// Empty chunks; the last one was read last.
    free: Vec<usize>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            head: 0,
            tail: 0,
            full: 0,
            next: Vec::new(),
            previous: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Copy + Default> Fifo<T> {
    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.full * CHUNK + self.tail % CHUNK - self.head % CHUNK
    }

    /// True if there are no items.
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Appends an item.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        let at = self.tail;
        let place = match self.places.get_mut(at) {
            Some(place) => place,
            None => self.first_place(),
        };
        *place = item;
        self.tail = at + 1;
        if self.tail.is_multiple_of(CHUNK) {
            self.begin_chunk();
        }
    }

    /// Adds the first chunk; returns its first place.
    #[cold]
    #[inline(never)]
    fn first_place(&mut self) -> &mut T {
        let chunk = self.add_chunk();
        &mut self.places[chunk * CHUNK]
    }

    /// Adds memory for a chunk; returns its number.
    fn add_chunk(&mut self) -> usize {
        self.places.resize(self.places.len() + CHUNK, T::default());
        self.next.push(0);
        self.previous.push(0);
        self.next.len() - 1
    }

    /// Takes a chunk for the next item; the one before it is full.
    #[inline(never)]
    fn begin_chunk(&mut self) {
        let chunk = self.free.pop().unwrap_or_else(|| self.add_chunk());
        let last = self.tail / CHUNK - 1;
        self.next[last] = chunk;
        self.previous[chunk] = last;
        self.full += 1;
        self.tail = chunk * CHUNK;
    }

    /// The first item.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.head == self.tail { None } else { self.places.get(self.head) }
    }

    /// The first item, mutable.
    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        if self.head == self.tail { None } else { self.places.get_mut(self.head) }
    }

    /// The index before `at` in order.
    fn before(&self, at: usize) -> usize {
        if at.is_multiple_of(CHUNK) { self.previous[at / CHUNK] * CHUNK + CHUNK - 1 } else { at - 1 }
    }

    /// The last item, mutable.
    #[inline]
    pub(crate) fn back_mut(&mut self) -> Option<&mut T> {
        if self.is_empty() {
            return None;
        }
        let last = self.before(self.tail);
        self.places.get_mut(last)
    }

    /// Moves the last item before the items before it for as long as it `overtakes` them, the last of them
    /// first.
    pub(crate) fn advance_last(&mut self, mut overtakes: impl FnMut(&T) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut at = self.before(self.tail);
        while at != self.head {
            let before = self.before(at);
            if !overtakes(&self.places[before]) {
                break;
            }
            self.places.swap(before, at);
            at = before;
        }
    }

    /// Removes the first item, if there is one.
    #[inline]
    pub(crate) fn skip(&mut self) {
        if self.head != self.tail {
            self.head += 1;
            if self.head.is_multiple_of(CHUNK) {
                self.end_chunk();
            }
        }
    }

    /// Lets the queue, if it is empty, begin again with the first place of its chunk: one that often is empty then
    /// stays in few lines of the cache.
    #[inline]
    pub(crate) fn rewind(&mut self) {
        if self.is_empty() {
            self.head -= self.head % CHUNK;
            self.tail = self.head;
        }
    }

    #[inline(never)]
    fn end_chunk(&mut self) {
        let chunk = self.head / CHUNK - 1;
        self.free.push(chunk);
        self.full -= 1;
        self.head = self.next[chunk] * CHUNK;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_std(steps in prop::collection::vec((0_usize..5, 0_usize..3 * CHUNK), 0..100)) {
            let (mut ours, mut theirs) = (Fifo::default(), VecDeque::new());
            let mut most = 0;
            for (i, (what, n)) in steps.into_iter().enumerate() {
                for k in 0..n {
                    if what < 2 {
                        ours.push((i, k));
                        theirs.push_back((i, k));
                    } else if what == 4 {
                        // Past up to k others, over the borders of chunks.
                        let (mut left, place) = (k, theirs.len().saturating_sub(k));
                        ours.push((i, k));
                        ours.advance_last(|_| {
                            left = left.wrapping_sub(1);
                            left != usize::MAX
                        });
                        theirs.insert(place, (i, k));
                    } else {
                        prop_assert_eq!(ours.front().copied(), theirs.pop_front());
                        ours.skip();
                    }
                }
                most = most.max(theirs.len());
                ours.rewind();
                prop_assert_eq!((ours.len(), ours.is_empty()), (theirs.len(), theirs.is_empty()));
                prop_assert_eq!(ours.front(), theirs.front());
                prop_assert_eq!(ours.back_mut(), theirs.back_mut());
            }
            prop_assert!(ours.places.len() < most + 3 * CHUNK, "no more room than it needs");
        }
    }
}
