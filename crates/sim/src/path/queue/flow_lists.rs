//! The flows that wait for their turn, as `fq_codel` and `fq` have them (RFC 8290 §4.2; Linux
//! `struct list_head new_flows`, `old_flows`): new flows go before old ones, each list in order.

/// No flow.
const NONE: u32 = u32::MAX;

/// Two lists of flows, by their place in a table of the caller's. A flow is in one of them at most.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// The flow after each in its list; the first one after the last.
    after: Vec<u32>,
    /// The last flow of each list; [`NONE`] if it is empty.
    new: u32,
    old: u32,
}

impl Default for Turns {
    fn default() -> Self {
        Self { after: Vec::new(), new: NONE, old: NONE }
    }
}

/// A flow whose turn it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Its place.
    pub(super) flow: u32,
    /// True if it is among the new flows.
    pub(super) is_new: bool,
}

impl Turns {
    /// Adds a flow behind the new ones.
    pub(super) fn add_new(&mut self, flow: u32) {
        self.new = self.add_behind(self.new, flow);
    }

    /// Adds a flow behind the old ones.
    pub(super) fn add_old(&mut self, flow: u32) {
        self.old = self.add_behind(self.old, flow);
    }

    /// Adds a flow to the list that ends with `last`; returns the new end.
    fn add_behind(&mut self, last: u32, flow: u32) -> u32 {
        let places = self.after.len().max(flow as usize + 1);
        self.after.resize(places, NONE);
        let first = if last == NONE { flow } else { std::mem::replace(&mut self.after[last as usize], flow) };
        self.after[flow as usize] = first;
        flow
    }

    /// The flow whose turn it is. It stays listed until [`Self::end`].
    #[inline]
    pub(super) fn first(&self) -> Option<Turn> {
        let is_new = self.new != NONE;
        let last = if is_new { self.new } else { self.old };
        self.after.get(last as usize).map(|first| Turn { flow: *first, is_new })
    }

    /// Takes the flow off its list whose turn it is.
    pub(super) fn end(&mut self, turn: Turn) {
        let last = if turn.is_new { &mut self.new } else { &mut self.old };
        if *last == turn.flow {
            *last = NONE;
        } else {
            self.after[*last as usize] = self.after[turn.flow as usize];
        }
    }

    /// Puts the flow behind the old ones whose turn it is.
    #[inline]
    pub(super) fn postpone(&mut self, turn: Turn) {
        if turn.is_new {
            self.end(turn);
            self.add_old(turn.flow);
        } else {
            // The first becomes the last.
            self.old = turn.flow;
        }
    }

    /// True if an old flow waits.
    pub(super) fn has_old(&self) -> bool {
        self.old != NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_flows_go_before_old_ones() {
        let mut turns = Turns::default();
        turns.add_old(1);
        turns.add_new(2);
        turns.add_new(3);
        let order: Vec<(u32, bool)> = std::iter::from_fn(|| {
            let turn = turns.first()?;
            turns.end(turn);
            Some((turn.flow, turn.is_new))
        })
        .collect();
        assert_eq!(order, [(2, true), (3, true), (1, false)]);
        assert!(!turns.has_old());
    }

    #[test]
    fn a_flow_that_is_postponed_goes_behind_the_old_ones() {
        let mut turns = Turns::default();
        turns.add_old(1);
        turns.add_old(4);
        turns.add_new(2);
        turns.add_new(0);
        let order: Vec<u32> = (0..9)
            .map_while(|_| {
                let turn = turns.first()?;
                turns.postpone(turn);
                Some(turn.flow)
            })
            .collect();
        assert_eq!(order, [2, 0, 1, 4, 2, 0, 1, 4, 2]);
    }
}
