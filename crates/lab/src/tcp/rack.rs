//! Loss detection by time, RFC 8985 as Linux `tcp_recovery.c` has it: what was sent before something that has arrived,
//! and is overdue by more than the path reorders, is lost.
//!
//! What is sent for the first time stands in the scoreboard in order of time, and every retransmission is appended to a
//! queue; detection looks at the older of the two fronts and stops at the first that is not overdue. A lost
//! retransmission is found as any other.

use super::scoreboard::{Record, Scoreboard};
use slowstart::units::{Instant, Span};
use std::collections::VecDeque;

/// What was newly marked lost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Bytes.
    pub bytes: u64,
    /// Separate ranges of them.
    pub ranges: u32,
    last: Option<u64>,
}

impl Lost {
    /// Counts segment `n`, if it was newly marked.
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
    /// Number and time of each retransmission not yet judged, oldest first; entries go stale when the segment is sent
    /// once more.
    retransmissions: VecDeque<(u64, Instant)>,
    /// The newest transmission known to have arrived: its time and end.
    newest: (Instant, u64),
    /// The round trip of that.
    rtt: Span,
    /// How often the path has been seen to reorder (`tcpi_reord_seen`).
    pub reorderings: u32,
    /// By how many segments at most, three until more were seen (`tp->reordering`).
    pub degree: u32,
    /// The first segment whose first transmission has not been judged.
    first: u64,
    /// The reordering window, in quarters of the least round trip.
    steps: u32,
    /// Recoveries for which a widened window is kept.
    persist: u32,
    /// The offset to be acknowledged before duplicates widen the window again.
    widen_after: u64,
}

/// Recoveries a widened window lasts.
const PERSIST: u32 = 16;
/// The most segments a path is taken to reorder by (`tcp_max_reordering`).
const MAX_DEGREE: u64 = 300;
/// Duplicates that make reordering unlikely.
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
    /// A segment left again.
    pub fn resent(&mut self, n: u64, at: Instant) {
        self.retransmissions.push_back((n, at));
    }

    /// No retransmission waits to be judged.
    pub(super) fn has_no_retransmissions(&self) -> bool {
        self.retransmissions.is_empty()
    }

    /// A segment was delivered (`tcp_rack_advance`).
    pub fn delivered(&mut self, now: Instant, r: &Record, min_rtt: Option<Span>) {
        let rtt = now.since(r.at);
        // A retransmission cannot have been answered faster than the path allows: the original was.
        if r.ever_resent() && min_rtt.is_some_and(|m| rtt < m) {
            return;
        }
        self.rtt = rtt;
        self.newest = self.newest.max((r.at, r.end()));
    }

    /// The path reorders, by `bytes` (`tcp_check_sack_reordering`).
    #[cold]
    pub fn reordering(&mut self, bytes: u64, mss: u64) {
        self.reorderings += 1;
        let degree = bytes.div_ceil(mss).min(MAX_DEGREE) as u32;
        self.degree = self.degree.max(degree);
    }

    /// A duplicate was reported: the window was too narrow (RFC 8985 §6.2 step 4).
    pub fn duplicate(&mut self, una: u64, next: u64) {
        if una >= self.widen_after {
            self.steps = (self.steps + 1).min(255);
            self.persist = PERSIST;
            self.widen_after = next;
        }
    }

    /// A recovery is over.
    pub fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// How long reordering is waited for (`tcp_rack_reo_wnd`).
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

    /// Marks what is lost; answers what that was, and when to look again.
    #[inline]
    pub fn detect(
        &mut self,
        board: &mut Scoreboard,
        now: Instant,
        recovering: bool,
        min: Option<Span>,
        srtt: Option<Span>,
    ) -> (Lost, Option<Instant>) {
        // Without holes, all that is out was sent after what arrived.
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
            // Acknowledged, selectively acknowledged, waiting to be resent, or sent again since.
            let live = board.get(n).filter(|r| r.at == at && !r.sacked() && !r.awaits_resending());
            if let Some(r) = live {
                if (at, r.end()) >= self.newest {
                    break;
                }
                // Mostly nothing older than the newest arrival is out, and this is not asked.
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

    /// The oldest transmission not yet judged: its number, when it left, and whether it was a retransmission.
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

    /// Whether a segment is so young that a timeout should not count it lost (`tcp_rack_skb_timeout`).
    pub fn is_young(&self, r: &Record, now: Instant) -> bool {
        self.rtt > Span::ZERO && r.at + self.rtt > now
    }
}
