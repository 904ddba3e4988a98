//! A queue in a ring whose size is a power of two, any place of which can be asked for: the segments in flight.
//!
//! `std::collections::VecDeque` may have any size and so pays for its wrap with branches; here a mask does. A ring wanders
//! through all of its memory, and if that was once enough for a larger window, the cache has forgotten the place by the
//! time it comes round: so when it does, it takes less if less will do. A run in its steady state allocates nothing.

/// A queue of plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring<T> {
    /// A power of two of places, or none.
    places: Vec<T>,
    /// The place of the first, before the mask; it only ever rises.
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
        let mut at = self.place(self.len);
        if self.len == self.places.len() || at == 0 {
            self.fit();
            at = self.place(self.len);
        }
        self.places[at] = item;
        self.len += 1;
    }

    /// Takes room for half as many again as there are, if none is left, or if it has come round and that is less.
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

    /// The `i`th from the front.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Option<&T> {
        if i < self.len { self.places.get(self.place(i)) } else { None }
    }

    /// The `i`th from the front, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, i: usize) -> Option<&mut T> {
        let at = self.place(i);
        if i < self.len { self.places.get_mut(at) } else { None }
    }

    /// The first.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The last.
    #[inline]
    pub(crate) fn back(&self) -> Option<&T> {
        self.len.checked_sub(1).and_then(|i| self.get(i))
    }

    /// Forgets the first `n`, or all if there are fewer.
    #[inline]
    pub(crate) fn skip(&mut self, n: usize) {
        let n = n.min(self.len);
        self.head = self.head.wrapping_add(n);
        self.len -= n;
    }

    /// All, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).filter_map(|i| self.get(i))
    }

    /// Changes each, in order.
    pub(crate) fn for_each(&mut self, mut change: impl FnMut(&mut T)) {
        for i in 0..self.len {
            let at = self.place(i);
            change(&mut self.places[at]);
        }
    }

    /// The first place at which `before` no longer holds, where it holds for a beginning only.
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
                    0 | 1 => for k in 0..n {
                        ours.push((i, k));
                        theirs.push_back((i, k));
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
            // It comes round twice at least.
            for i in 0..4 * most.max(16) {
                ring.push(i);
                ring.skip(1);
            }
            let room = ring.places.len();
            prop_assert!(room <= (2 * most.min(then) + 2).next_power_of_two().max(16), "room for {room}");
        }
    }
}
