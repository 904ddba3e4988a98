//! Duplicates that the peer reports (RFC 2883, RFC 3708; Linux `tcp_check_dsack`, `tcp_dsack_seen`).

use super::{Phase, Sender, Undo};
use slowstart::control::Controller;
use slowstart::units::Instant;

impl<C: Controller + Clone> Sender<C> {
    /// Takes the report of a duplicate; `prior_una` is the acknowledged offset before it.
    #[cold]
    pub(super) fn on_duplicate(&mut self, now: Instant, (from, to): (u64, u64), prior_una: u64) {
        let mss = u64::from(self.profile.mss);
        let len = to.saturating_sub(from);
        // Longer than any window: a broken peer.
        if len == 0 || len > self.profile.max_window().max(mss) {
            return;
        }
        let segments = len.div_ceil(mss) as u32;
        self.duplicated += u64::from(segments);
        // More duplicates than retransmissions: the network made some of them, and which is unknown.
        if self.duplicated > self.counters.retransmitted {
            return;
        }
        // A probe whose segment arrived twice repaired no loss, and was sent because of no reordering.
        let probed = len <= mss && self.probe.as_ref().is_some_and(|p| p.retransmission && p.high == to);
        if probed {
            self.probe = None;
        } else if self.rack.reorderings > 0 {
            self.rack.duplicate(self.board.una(), self.next);
        }
        // Only retransmissions of this recovery count.
        if let Some(Undo { open: Some(n), since, .. }) = &mut self.undo
            && *since < to
            && to <= prior_una
        {
            *n = n.saturating_sub(segments);
        }
        // Recovery may have ended before its duplicates were reported (tcp_try_undo_dsack). Other segments
        // marked lost stay so.
        if self.phase != Phase::Loss && self.resent_in_vain() {
            self.rack.undone();
            self.end_episode(now, true);
        }
    }
}
