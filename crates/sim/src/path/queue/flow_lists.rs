//! The flows that wait for their turn, as `fq_codel` and `fq` have them (RFC 8290 §4.2; Linux
//! `struct list_head new_flows`, `old_flows`): new flows go before old ones, each list in order.

use std::collections::VecDeque;

/// Two lists of flows, by their place in a table of the caller's.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
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
        self.new.push_back(flow);
    }

    /// Adds a flow behind the old ones.
    pub(super) fn add_old(&mut self, flow: u32) {
        self.old.push_back(flow);
    }

    /// The flow whose turn it is. It stays listed until [`Self::end`].
    pub(super) fn first(&self) -> Option<Turn> {
        let new = self.new.front().map(|flow| Turn { flow: *flow, is_new: true });
        new.or_else(|| self.old.front().map(|flow| Turn { flow: *flow, is_new: false }))
    }

    /// Takes the flow off its list whose turn it is.
    pub(super) fn end(&mut self, turn: Turn) {
        let list = if turn.is_new { &mut self.new } else { &mut self.old };
        list.pop_front();
    }

    /// True if an old flow waits.
    pub(super) fn has_old(&self) -> bool {
        !self.old.is_empty()
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
}
