//! An application that reads slowly: what it has not read takes space of the receive buffer, and the window
//! that is offered shrinks (Linux `__tcp_select_window`, `tcp_cleanup_rbuf`).
//!
//! Departs from Linux: the application reads without a pause, not in calls of a size; memory overhead is not
//! counted.

use slowstart::units::{Bytes, Instant, Rate, Span};

/// An application that reads at a constant rate.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    rate: Rate,
    /// What it had read at `since`, as an offset. While something waits, it reads from there on at its rate.
    from: u64,
    since: Instant,
    read: u64,
    /// When an ACK is to tell of a larger window; [`Instant::NEVER`] if none is.
    update: Instant,
}

impl Reader {
    /// An application that has read nothing.
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, from: 1, since: Instant::ZERO, read: 1, update: Instant::NEVER }
    }

    /// The offset up to which it has read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// When an ACK is to tell of a larger window; [`Instant::NEVER`] if none is.
    pub(super) fn update(&self) -> Instant {
        self.update
    }

    /// Reads until `now` of what is in order up to `next`.
    pub(super) fn read_until(&mut self, now: Instant, next: u64) {
        self.read = next.min(self.from + self.rate.over(now.since(self.since)).0);
        if self.read == next {
            (self.from, self.since) = (next, now);
        }
    }

    /// The window to offer, of a buffer of `space` bytes, with the data in order up to `next`: none if less
    /// than a sixteenth of the buffer or a segment is free. `edge` is the end of the window offered so far,
    /// which stays.
    pub(super) fn window(&mut self, now: Instant, space: u64, mss: u64, next: u64, edge: u64) -> u64 {
        self.read_until(now, next);
        let least = mss.max(space / 16);
        let free = space.saturating_sub(next - self.read);
        let window = if free < least { 0 } else { free }.max(edge.saturating_sub(next));
        // tcp_cleanup_rbuf: an ACK goes when the window has doubled, if it was at most half of the buffer.
        self.update = Instant::NEVER;
        if 2 * window <= space {
            let wanted = (2 * window).max(least);
            let read = (next + wanted).saturating_sub(space);
            let at = self.since + self.rate.time_for(Bytes(read.saturating_sub(self.from)));
            // That time is rounded down, so that a byte may be missing then, and nothing is free for want of
            // it.
            self.update = at.max(now + Span(1));
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer that is full is read, whatever the rate: each ACK that tells of it is later than the one
    /// before.
    #[test]
    fn time_passes_between_two_updates_of_the_window() {
        const SPACE: u64 = 65_536;
        for kbit in 20..5000 {
            let mut r = Reader::new(Rate(kbit * 1000));
            let (mut now, mut updates) = (Instant::ZERO, 0);
            let mut window = r.window(now, SPACE, 1448, 1 + SPACE, 1 + SPACE);
            assert_eq!(window, 0);
            while r.update() < Instant::NEVER {
                assert!(r.update() > now && updates < 20, "{kbit} kbit/s, {updates} updates, at {now:?}");
                now = r.update();
                window = r.window(now, SPACE, 1448, 1 + SPACE, 1 + SPACE);
                updates += 1;
            }
            assert!(window > SPACE / 2, "{kbit} kbit/s: {window}");
        }
    }
}
