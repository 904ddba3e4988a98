//! An application that writes a little at a time.

use slowstart::control::Exited;
use slowstart::units::{Bytes, Instant, Span};
use slowstart_quic::host::Counters;
use std::collections::VecDeque;

/// A connection without traffic for so long is closed: neqo's default idle timeout.
pub(super) const IDLE: Span = Span::secs(30);

/// What an application writes at once.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// How long it waits before, once the peer has all that was written until then.
    pub wait: Span,
    /// Bytes, above 0.
    pub bytes: u64,
}

/// What a connection was like at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The window that it began with.
    pub initial_window: Bytes,
    /// The window at the end.
    pub window: Bytes,
    /// The end of its startup.
    pub exit: Option<Exited>,
    /// What was sent and lost.
    pub counters: Counters,
    /// For each write that the peer has whole: how long that took. The first includes the handshake.
    pub took: Vec<Span>,
    /// When the data in flight first filled the path, by the definition of rows.
    pub capacity: Option<Instant>,
    /// Why an end closed the connection before.
    pub closed: Option<String>,
}

impl Session {
    /// True if the application limited it to the end: the window is not larger than at the beginning.
    pub fn is_limited(&self) -> bool {
        self.window <= self.initial_window
    }
}

/// The writes of a connection that are still to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    writes: VecDeque<Write>,
    /// When the next write comes; `None` while the peer waits for what was written.
    due: Option<Instant>,
    /// Bytes written so far, and when the last of them were.
    written: u64,
    written_at: Instant,
    pub(super) took: Vec<Span>,
}

impl Script {
    /// These writes, from time zero on.
    pub(super) fn new(writes: &[Write]) -> Self {
        let due = writes.first().map(|w| Instant::ZERO + w.wait);
        Self { writes: writes.iter().copied().collect(), due, ..Self::default() }
    }

    /// True if nothing is to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// When [`Script::write`] has something.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the bytes to write now.
    pub(super) fn write(&mut self, now: Instant) -> u64 {
        if self.due.is_none_or(|at| at > now) {
            return 0;
        }
        self.due = None;
        let bytes = self.writes.pop_front().map_or(0, |w| w.bytes);
        self.written += bytes;
        self.written_at = now;
        bytes
    }

    /// The peer has `received` bytes.
    pub(super) fn received(&mut self, now: Instant, received: u64) {
        if self.due.is_none() && received == self.written {
            self.took.push(now.since(self.written_at));
            self.due = self.writes.front().map(|w| now + w.wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_waits_until_the_peer_has_the_one_before() {
        let at = |ms| Instant::ZERO + Span::millis(ms);
        let write = |wait, bytes| Write { wait: Span::millis(wait), bytes };
        let mut script = Script::new(&[write(5, 100), write(20, 7)]);
        assert_eq!((script.due(), script.write(at(4))), (Some(at(5)), 0));
        assert_eq!((script.write(at(5)), script.due()), (100, None));
        script.received(at(40), 99);
        assert_eq!((script.due(), script.took.len()), (None, 0));
        script.received(at(45), 100);
        assert_eq!((script.due(), script.took.clone()), (Some(at(65)), vec![Span::millis(40)]));
        assert_eq!((script.write(at(65)), script.is_empty()), (7, true));
        script.received(at(70), 107);
        assert_eq!((script.due(), script.took.len()), (None, 2));
    }
}
