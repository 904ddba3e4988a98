//! A queue in a ring buffer with random access: the segments in flight.
//!
//! Its size is a power of two, so that an index wraps by a mask; `std::collections::VecDeque` wraps by a
//! branch. The buffer shrinks when the ring wraps around and half the memory is enough, so that a small
//! window after a large one stays in the cache (docs/dev/engine.md, "Rings and chunks"). In its steady state
//! it allocates nothing.

/// A queue of plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring<T> {
    /// The buffer; its length is a power of two, or zero.
    places: Vec<T>,
    /// The index of the first item before masking; it only increases.
    head: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { places: Vec::new(), head: 0, len: 0 }
    }
}

impl<T: Copy + Default> Ring<T> {
    fn place(&self, i: usize) -> usize {
        self.head.wrapping_add(i) & (self.places.len().wrapping_sub(1))
    }

    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// True if there are no items.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all items, and keeps the buffer.
    pub(crate) fn clear(&mut self) {
        (self.head, self.len) = (0, 0);
    }

    /// Appends an item.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        let mut at = self.place(self.len);
        if self.len == self.places.len() || at == 0 {
            self.fit();
            at = self.place(self.len);
        }
        self.places[at] = item;
        self.len += 1;
    }

    /// Appends `n` items: `item`, and then each time what `next` makes of the one before.
    #[inline]
    pub(crate) fn push_train(&mut self, n: usize, mut item: T, next: impl Fn(&mut T)) {
        let at = self.place(self.len);
        // Mostly the items are next to each other, and the buffer needs no check for each.
        let fits = at > 0 && self.len + n <= self.places.len();
        if let Some(places) = self.places.get_mut(at..at + n).filter(|_| fits) {
            for place in places {
                *place = item;
                next(&mut item);
            }
            self.len += n;
            return;
        }
        for _ in 0..n {
            self.push(item);
            next(&mut item);
        }
    }

    /// Resizes the buffer to one and a half times the items it holds, rounded up to a power of two: if it is
    /// full, or if it wraps around and the new size is smaller.
    #[cold]
    #[inline(never)]
    fn fit(&mut self) {
        let size = (self.len + self.len / 2 + 1).next_power_of_two().max(16);
        if self.len < self.places.len() && size >= self.places.len() {
            return;
        }
        let mut places = Vec::with_capacity(size);
        places.extend(self.iter().copied());
        places.resize(size, T::default());
        self.places = places;
        self.head = 0;
    }

    /// The `i`th item from the front.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Option<&T> {
        if i < self.len { self.places.get(self.place(i)) } else { None }
    }

    /// The `i`th item from the front, mutable.
    #[inline]
    pub(crate) fn get_mut(&mut self, i: usize) -> Option<&mut T> {
        let at = self.place(i);
        if i < self.len { self.places.get_mut(at) } else { None }
    }

    /// The first item.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The last item.
    #[inline]
    pub(crate) fn back(&self) -> Option<&T> {
        self.len.checked_sub(1).and_then(|i| self.get(i))
    }

    /// Removes the first `n` items, or all if there are fewer.
    #[inline]
    pub(crate) fn skip(&mut self, n: usize) {
        let n = n.min(self.len);
        self.head = self.head.wrapping_add(n);
        self.len -= n;
    }

    /// All items, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).filter_map(|i| self.get(i))
    }

    /// Calls `change` on each item, in order.
    pub(crate) fn for_each(&mut self, mut change: impl FnMut(&mut T)) {
        for i in 0..self.len {
            let at = self.place(i);
            change(&mut self.places[at]);
        }
    }

    /// Returns the first index at which `before` is false; `before` must be true for a prefix only.
    pub(crate) fn partition_point(&self, before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.get(middle).is_some_and(&before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_std(steps in prop::collection::vec((0_usize..4, 0_usize..40), 0..300)) {
            let (mut ours, mut theirs) = (Ring::default(), VecDeque::new());
            for (i, (what, n)) in steps.into_iter().enumerate() {
                match what {
                    0 => for k in 0..n {
                        ours.push((i, k));
                        theirs.push_back((i, k));
                    },
                    1 => {
                        ours.push_train(n, (i, 0), |x| x.1 += 1);
                        theirs.extend((0..n).map(|k| (i, k)));
                    },
                    2 => for _ in 0..n {
                        prop_assert_eq!(ours.front().copied(), theirs.pop_front());
                        ours.skip(1);
                    },
                    _ => {
                        ours.skip(n);
                        theirs.drain(..n.min(theirs.len()));
                        ours.for_each(|x| x.1 += 1);
                        for x in &mut theirs { x.1 += 1; }
                    }
                }
                prop_assert_eq!((ours.len(), ours.is_empty()), (theirs.len(), theirs.is_empty()));
                prop_assert_eq!((ours.front(), ours.back(), ours.get(n)), (theirs.front(), theirs.back(), theirs.get(n)));
                prop_assert!(ours.iter().eq(&theirs));
                prop_assert_eq!(ours.get_mut(n), theirs.get_mut(n));
                prop_assert_eq!(ours.partition_point(|x| x.0 < i / 2), theirs.partition_point(|x| x.0 < i / 2));
            }
        }

        #[test]
        fn takes_no_more_room_than_it_needs(most in 1_usize..5000, then in 1_usize..200) {
            let mut ring = Ring::default();
            for i in 0..most {
                ring.push(i);
            }
            ring.skip(most - most.min(then));
            // The ring wraps around at least twice.
            for i in 0..4 * most.max(16) {
                ring.push(i);
                ring.skip(1);
            }
            let room = ring.places.len();
            prop_assert!(room <= (2 * most.min(then) + 2).next_power_of_two().max(16), "room for {room}");
        }
    }
}
