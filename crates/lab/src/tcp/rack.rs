//! Loss detection by time, RFC 8985 as Linux `tcp_recovery.c` has it: what was sent before something that has arrived,
//! and is overdue by more than the path reorders, is lost.
//!
//! Every transmission is appended to one queue, which is therefore in order of time; detection looks at its front and
//! stops at the first that is not overdue. A lost retransmission is found as any other.

use super::scoreboard::{Record, Scoreboard};
use slowstart::units::{Instant, Span};
use std::collections::VecDeque;

/// What was newly marked lost.
#[derive(Copy, Clone, Debug, Default)]
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
#[derive(Clone, Debug)]
pub struct Rack {
    /// Number and time of each transmission, oldest first; entries go stale when the segment is sent again.
    sent: VecDeque<(u64, Instant)>,
    /// The newest transmission known to have arrived: its time and end.
    newest: (Instant, u64),
    /// The round trip of that.
    rtt: Span,
    /// The path has been seen to reorder.
    reordered: bool,
    /// The reordering window, in quarters of the least round trip.
    steps: u32,
    /// Recoveries for which a widened window is kept.
    persist: u32,
    /// The offset to be acknowledged before duplicates widen the window again.
    widen_after: u64,
}

/// Recoveries a widened window lasts.
const PERSIST: u32 = 16;
/// Duplicates that make reordering unlikely.
pub const DUPLICATES: u32 = 3;

impl Default for Rack {
    fn default() -> Self {
        Self {
            sent: VecDeque::new(),
            newest: (Instant::ZERO, 0),
            rtt: Span::ZERO,
            reordered: false,
            steps: 1,
            persist: 0,
            widen_after: 0,
        }
    }
}

impl Rack {
    /// A segment left.
    pub fn sent(&mut self, n: u64, at: Instant) {
        self.sent.push_back((n, at));
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

    /// The path reorders.
    pub fn reordering(&mut self) {
        self.reordered = true;
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
        if !self.reordered && (recovering || board.sacked.packets >= DUPLICATES) {
            return Span::ZERO;
        }
        let window = min.unwrap_or_default() / 4 * u64::from(self.steps);
        window.min(srtt.unwrap_or_default())
    }

    /// Marks what is lost; answers what that was, and when to look again.
    pub fn detect(
        &mut self,
        board: &mut Scoreboard,
        now: Instant,
        recovering: bool,
        min: Option<Span>,
        srtt: Option<Span>,
    ) -> (Lost, Option<Instant>) {
        let patience = self.rtt + self.reordering_window(board, recovering, min, srtt);
        let mut lost = Lost::default();
        // What is acknowledged goes without a look at it.
        let first = board.first().unwrap_or(u64::MAX);
        while self.sent.pop_front_if(|e| e.0 < first).is_some() {}
        while let Some(&(n, at)) = self.sent.front() {
            // Acknowledged, selectively acknowledged, waiting to be resent, or sent again since.
            let Some(r) = board.get(n).filter(|r| r.at == at && !r.sacked() && !r.awaits_resending()) else {
                self.sent.pop_front();
                continue;
            };
            if (at, r.end()) >= self.newest {
                break;
            }
            let overdue = at + patience;
            if overdue > now {
                return (lost, Some(overdue));
            }
            lost.add(n, board.mark_lost(n));
            self.sent.pop_front();
        }
        (lost, None)
    }

    /// Whether a segment is so young that a timeout should not count it lost (`tcp_rack_skb_timeout`).
    pub fn is_young(&self, r: &Record, now: Instant) -> bool {
        self.rtt > Span::ZERO && r.at + self.rtt > now
    }
}
