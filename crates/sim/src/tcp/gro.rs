//! Generic receive offload: segments that arrive close together are handed to TCP as one (Linux
//! `tcp_gro_receive` and `napi_complete_done`, 6.18).
//!
//! A segment is merged into the held segment if it continues its data, with the same acknowledgement number,
//! window, flags, codepoint and timestamps. The held segment is passed to TCP when it reaches the maximum
//! size, when a segment arrives that cannot be merged or is not full, or when the maximum time since its
//! first segment has passed.
//!
//! Departs from Linux:
//! - PSH does not end a merge;
//! - the time runs from the first segment (as with `napi_defer_hard_irqs`, or as an interrupt is delayed);
//!   the end of a poll for another reason does not end a merge;
//! - a segment without data is passed to TCP at once, after the held segment.

use super::segment::{FIN, PSH, RST, SYN, Segment};
use slowstart::units::{Instant, Span};

/// The merge of one connection.
#[derive(Clone, Debug)]
pub(super) struct Gro {
    /// The largest size, bytes of payload.
    most: u32,
    /// How long the first segment may wait.
    wait: Span,
    /// Payload of a full segment, bytes: a shorter one ends a merge.
    full: u32,
    /// The merged segment that has not been passed to TCP yet.
    held: Option<Segment>,
    /// The time at which it is passed to TCP; [`Instant::NEVER`] if there is none.
    due: Instant,
}

impl Gro {
    /// Returns an empty merge.
    pub(super) fn new(most: u32, wait: Span) -> Self {
        Self { most, wait, full: 0, held: None, due: Instant::NEVER }
    }

    /// Returns the time at which [`Gro::take`] must be called; [`Instant::NEVER`] if no segment is held.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Removes and returns the held segment.
    pub(super) fn take(&mut self) -> Option<Segment> {
        self.due = Instant::NEVER;
        self.held.take()
    }

    /// Merges `s`, which arrived at `now`, into the held segment, or holds it if there is none. Returns false
    /// if it cannot: the caller then passes the held segment to TCP and calls again. If `s` is refused while
    /// no segment is held, the caller passes `s` to TCP unchanged.
    pub(super) fn merge(&mut self, now: Instant, s: &Segment) -> bool {
        if s.len == 0 || s.has(SYN) || s.has(FIN) || s.has(RST) || s.sacks > 0 || s.rate_response > 0 {
            return false;
        }
        let Some(held) = &mut self.held else {
            self.full = s.len;
            self.held = Some(*s);
            self.due = now + self.wait;
            return true;
        };
        let joins = held.seq.wrapping_add(held.len) == s.seq
            && held.len + s.len <= self.most
            && s.len <= self.full
            && (held.flags | PSH, held.ecn) == (s.flags | PSH, s.ecn)
            && (held.ack, held.window, held.timestamp) == (s.ack, s.window, s.timestamp)
            && held.ecn_option() == s.ecn_option();
        if joins {
            held.len += s.len;
            held.flags |= s.flags & PSH;
            if s.len < self.full || held.len + self.full > self.most {
                self.due = now;
            }
        }
        joins
    }
}
