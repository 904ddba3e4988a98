//! Generic receive offload: segments that arrive close together are handed to TCP as one (Linux `tcp_gro_receive` and
//! `napi_complete_done`, 6.18).
//!
//! A segment joins the one that is held if it continues it, with the same acknowledgement number, window, flags,
//! codepoint and timestamps. What is held goes to TCP when it reaches its largest size, when a segment comes that does not join or is
//! not full, or when the time since its first segment is over.
//!
//! Departs from Linux:
//! - PSH does not end a merge: here each data segment carries it, in Linux the last one that was written;
//! - the time runs from the first segment (as with `napi_defer_hard_irqs`, or as an interrupt is delayed); the end of a
//!   poll for another reason does not end a merge;
//! - segments without data are handed over at once, after what is held.

use super::segment::{FIN, PSH, RST, SYN, Segment};
use slowstart::units::{Instant, Span};

/// The segments that wait to be handed over, as one.
#[derive(Clone, Debug)]
pub(super) struct Gro {
    /// The largest size, bytes of payload.
    most: u32,
    /// How long the first segment may wait.
    wait: Span,
    /// Payload of a full segment, bytes: a shorter one ends a merge.
    full: u32,
    held: Option<Segment>,
    /// When what is held goes; [`Instant::NEVER`] if nothing is.
    due: Instant,
}

impl Gro {
    /// Nothing is held yet.
    pub(super) fn new(most: u32, wait: Span) -> Self {
        Self { most, wait, full: 0, held: None, due: Instant::NEVER }
    }

    /// When [`Gro::take`] is to be called; [`Instant::NEVER`] if nothing is held.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Takes what is held.
    pub(super) fn take(&mut self) -> Option<Segment> {
        self.due = Instant::NEVER;
        self.held.take()
    }

    /// Merges `s`, which arrived at `now`, into what is held, or holds it. Returns false if that is impossible: then what
    /// is held is to be handed over first, and `s` offered again. A segment that is refused while nothing is held is to be
    /// handed over as it is.
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
            && (held.ack, held.window, held.timestamp) == (s.ack, s.window, s.timestamp);
        if joins {
            held.len += s.len;
            if s.len < self.full || held.len + self.full > self.most {
                self.due = now;
            }
        }
        joins
    }
}
