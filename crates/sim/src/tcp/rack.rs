//! Loss detection by time: RFC 8985 as in Linux `tcp_recovery.c`. A segment is lost if one sent later has
//! been delivered and the segment is overdue by more than the reordering window.
//!
//! First transmissions are in the scoreboard in order of time; retransmissions are appended to a queue.
//! Detection compares the two fronts, takes the older, and stops at the first segment that is not overdue.
//! Lost retransmissions are found in the same way.

use super::scoreboard::{Record, Scoreboard};
use slowstart::units::{Instant, Span};
use std::collections::VecDeque;

/// Segments newly marked lost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Payload bytes of these segments.
    pub bytes: u64,
    /// Number of contiguous ranges.
    pub ranges: u32,
    last: Option<u64>,
}

impl Lost {
    /// Adds segment `n` of `bytes` bytes; 0 bytes if it was marked before.
    pub fn add(&mut self, n: u64, bytes: u64) {
        if bytes > 0 {
            self.bytes += bytes;
            self.ranges += u32::from(self.last.is_none_or(|l| l + 1 != n));
            self.last = Some(n);
        }
    }
}

/// The state of RACK.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Rack {
    /// Number and time of each retransmission not yet checked, oldest first. An entry is stale once its
    /// segment has been retransmitted again.
    retransmissions: VecDeque<(u64, Instant)>,
    /// The transmission sent last among those delivered: its send time and end offset (`rack.xmit_ts`,
    /// `rack.end_seq`).
    newest: (Instant, u64),
    /// The RTT of that transmission (`rack.rtt`).
    rtt: Span,
    /// How often reordering was observed (`tcpi_reord_seen`).
    pub reorderings: u32,
    /// The largest reordering observed, in segments, at least three (`tp->reordering`).
    pub degree: u32,
    /// The first segment whose first transmission has not been checked.
    first: u64,
    /// The reordering window, in quarters of the minimum RTT.
    steps: u32,
    /// Number of recoveries for which a widened window stays.
    persist: u32,
    /// The offset up to which must be acknowledged before a duplicate widens the window again.
    widen_after: u64,
}

/// Number of recoveries for which a widened window stays (RFC 8985 §6.2).
const PERSIST: u32 = 16;
/// Upper limit of the observed reordering, segments (`tcp_max_reordering`).
const MAX_DEGREE: u64 = 300;
/// Number of duplicates that indicate a loss (RFC 5681).
pub const DUPLICATES: u32 = 3;

impl Default for Rack {
    fn default() -> Self {
        Self {
            first: 0,
            retransmissions: VecDeque::new(),
            newest: (Instant::ZERO, 0),
            rtt: Span::ZERO,
            reorderings: 0,
            degree: DUPLICATES,
            steps: 1,
            persist: 0,
            widen_after: 0,
        }
    }
}

impl Rack {
    /// Takes the retransmission of segment `n`.
    pub fn resent(&mut self, n: u64, at: Instant) {
        self.retransmissions.push_back((n, at));
    }

    /// True if no retransmission waits to be checked.
    pub(super) fn has_no_retransmissions(&self) -> bool {
        self.retransmissions.is_empty()
    }

    /// Takes a delivered segment (`tcp_rack_advance`).
    pub fn delivered(&mut self, now: Instant, r: &Record, min_rtt: Option<Span>) {
        let rtt = now.since(r.at);
        // An RTT below the minimum cannot be that of the retransmission: the original was delivered.
        if r.ever_resent() && min_rtt.is_some_and(|m| rtt < m) {
            return;
        }
        self.rtt = rtt;
        self.newest = self.newest.max((r.at, r.end()));
    }

    /// Takes a reordering of `bytes` bytes (`tcp_check_sack_reordering`).
    #[cold]
    pub fn reordering(&mut self, bytes: u64, mss: u64) {
        self.reorderings += 1;
        let degree = bytes.div_ceil(mss).min(MAX_DEGREE) as u32;
        self.degree = self.degree.max(degree);
    }

    /// Takes the report of a duplicate on a path that reorders: widens the window, once per RTT (RFC 8985
    /// §6.2 step 4, `tcp_rack_update_reo_wnd`).
    pub fn duplicate(&mut self, una: u64, next: u64) {
        if una >= self.widen_after {
            self.steps = (self.steps + 1).min(255);
            self.persist = PERSIST;
            self.widen_after = next;
        }
    }

    /// Takes a recovery that was undone because all its retransmissions were duplicates: the window stays for
    /// one recovery more (`tcp_try_undo_dsack`).
    pub fn undone(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// Takes the end of a recovery that was not undone (`tcp_try_undo_recovery`).
    pub fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// The reordering window (`tcp_rack_reo_wnd`).
    fn reordering_window(
        &self,
        board: &Scoreboard,
        recovering: bool,
        min: Option<Span>,
        srtt: Option<Span>,
    ) -> Span {
        if self.reorderings == 0 && (recovering || board.sacked.packets >= DUPLICATES) {
            return Span::ZERO;
        }
        let window = min.unwrap_or_default() / 4 * u64::from(self.steps);
        window.min(srtt.unwrap_or_default())
    }

    /// Marks overdue segments lost. Returns these, and when to check again if segments are not overdue yet.
    #[inline]
    pub fn detect(
        &mut self,
        board: &mut Scoreboard,
        now: Instant,
        recovering: bool,
        min: Option<Span>,
        srtt: Option<Span>,
    ) -> (Lost, Option<Instant>) {
        // Without SACKed segments and retransmissions, nothing in flight was sent before a delivered segment.
        if board.sacked.packets == 0 && self.retransmissions.is_empty() {
            return (Lost::default(), None);
        }
        self.search(board, now, recovering, min, srtt)
    }

    fn search(
        &mut self,
        board: &mut Scoreboard,
        now: Instant,
        recovering: bool,
        min: Option<Span>,
        srtt: Option<Span>,
    ) -> (Lost, Option<Instant>) {
        let mut lost = Lost::default();
        let mut timeout = None;
        while let Some((n, at, again)) = self.oldest(board) {
            // Skips segments that are acknowledged, SACKed, marked lost, or retransmitted since.
            let live = board.get(n).filter(|r| r.at == at && !r.sacked() && !r.awaits_resending());
            if let Some(r) = live {
                if (at, r.end()) >= self.newest {
                    break;
                }
                // Computed only if needed: mostly nothing in flight is older than the newest delivered
                // segment.
                let overdue = at
                    + *timeout.get_or_insert_with(|| {
                        self.rtt + self.reordering_window(board, recovering, min, srtt)
                    });
                if overdue > now {
                    return (lost, Some(overdue));
                }
                lost.add(n, board.mark_lost(n));
            }
            if again {
                self.retransmissions.pop_front();
            } else {
                self.first += 1;
            }
        }
        (lost, None)
    }

    /// When the last of the segments sent before the newest delivered one is overdue; `None` if there is none. Only
    /// then does the timer mark those lost that are (`tcp_rack_detect_loss`, `reo_timeout`).
    pub fn last_overdue(
        &self,
        board: &Scoreboard,
        recovering: bool,
        min: Option<Span>,
        srtt: Option<Span>,
    ) -> Option<Instant> {
        let waits = board.unsacked().filter_map(|n| board.get(n)).filter(|r| !r.awaits_resending());
        let sent = waits.filter(|r| (r.at, r.end()) < self.newest).map(|r| r.at).max()?;
        Some(sent + self.rtt + self.reordering_window(board, recovering, min, srtt))
    }

    /// Returns the oldest transmission not yet checked: its segment, when it left, and whether it was a
    /// retransmission.
    #[inline]
    fn oldest(&mut self, board: &Scoreboard) -> Option<(u64, Instant, bool)> {
        let base = board.first()?;
        self.first = self.first.max(base);
        while board.get(self.first).is_some_and(Record::ever_resent) {
            self.first += 1;
        }
        while self.retransmissions.front().is_some_and(|e| e.0 < base) {
            self.retransmissions.pop_front();
        }
        let original = board.get(self.first).map(|r| (self.first, r.at, false));
        match (original, self.retransmissions.front()) {
            (Some((_, sent, _)), Some(&(n, at))) if at <= sent => Some((n, at, true)),
            (None, Some(&(n, at))) => Some((n, at, true)),
            (original, _) => original,
        }
    }

    /// True if a segment was sent so recently that a timeout does not mark it lost (`tcp_rack_skb_timeout`).
    pub fn is_young(&self, r: &Record, now: Instant) -> bool {
        self.rtt > Span::ZERO && r.at + self.rtt > now
    }
}

#[cfg(test)]
mod tests {
    use super::super::scoreboard::Delivered;
    use super::*;
    use slowstart::units::Bytes;

    /// Of five segments, sent a millisecond apart on a path that reorders, the last arrives: the first is overdue a
    /// quarter of the RTT later, and the fourth 3 ms after that.
    #[test]
    fn the_timer_waits_for_the_last_segment() {
        let ms = |n: u64| Instant(n * 1_000_000);
        let (mut board, mut rack) = (Scoreboard::new(1, 1000, false), Rack::default());
        for n in 0..5 {
            board.send(ms(n), 1 + 1000 * n, 1000, Bytes(10_000), false);
        }
        rack.reordering(1000, 1000);
        let (now, min) = (ms(100), Some(Span::millis(96)));
        board.sack(now, 4001, 5001, &mut Delivered::new(1), |r| rack.delivered(now, r, min));
        let (lost, first) = rack.detect(&mut board, now, false, min, min);
        assert_eq!((lost.bytes, first), (0, Some(ms(120))));
        assert_eq!(rack.last_overdue(&board, false, min, min), Some(ms(123)));
        // Nothing else is in flight that left before the newest that has arrived.
        board.sack(now, 1, 4001, &mut Delivered::new(1), |r| rack.delivered(now, r, min));
        assert_eq!(rack.last_overdue(&board, false, min, min), None);
    }
}
