//! How what the application writes is cut into the buffers of the send queue (Linux `tcp_sendmsg_locked` and
//! `tcp_xmit_size_goal`).
//!
//! A burst that is not full waits for the next ACK, but not if it ends a buffer that gets no more data
//! (`tcp_tso_should_defer`): where buffers end decides which segments leave together.
//!
//! Departs from Linux: the application hands over a megabyte at a time, not what the send buffer takes.

/// The most bytes that the application has written and that are not sent yet. It writes again when half of them
/// are sent.
const AHEAD: u64 = 1 << 20;
/// The largest buffer, bytes (`sk_gso_max_size`: 64 kB less the space for headers).
const LARGEST: u64 = 65_215;

/// The buffers that are not all sent.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    /// The end of the first, and the size of those after it.
    end: u64,
    size: u64,
    /// Where those of the last write begin, and their size.
    last: (u64, u64),
    /// The end of what the application has handed over.
    written: u64,
    /// The next offset to send from which on it writes again.
    writes_at: u64,
    /// The largest window that the peer offered at a write (`max_window`).
    window: u64,
}

impl Default for Buffers {
    fn default() -> Self {
        Self { end: 1, size: LARGEST, last: (1, LARGEST), written: 1, writes_at: 1, window: 0 }
    }
}

impl Buffers {
    /// True if the application writes again once all before `next` is sent.
    #[inline]
    pub(super) fn writes(&self, next: u64) -> bool {
        next >= self.writes_at
    }

    /// The application writes what it has up to `end`, after all before `next` is sent. A buffer is no larger than
    /// half of the largest window (`tcp_bound_to_half_wnd`). The last one of before takes what it has room for.
    #[cold]
    pub(super) fn write(&mut self, next: u64, end: u64, mss: u64, window: u64) {
        self.window = self.window.max(window);
        let size = (LARGEST.min(self.window / 2) / mss).max(1) * mss;
        let in_last = next >= self.written || self.at(next).1;
        let from = if in_last { next } else { self.last_begins() };
        if in_last {
            (self.end, self.size) = (next + size, size);
        }
        self.last = (from, size);
        // One more is begun while less than that is not sent.
        let full = from + (next + AHEAD - from).div_ceil(size) * size;
        self.written = full.min(end);
        self.writes_at = if full <= end { full - AHEAD / 2 } else { end };
    }

    /// The end of the buffer that holds `next`, and whether it gets what the application writes next.
    #[inline]
    pub(super) fn at(&mut self, next: u64) -> (u64, bool) {
        while next >= self.end {
            if self.end >= self.last.0 {
                self.size = self.last.1;
            }
            self.end += self.size;
        }
        (self.end, self.end >= self.written)
    }

    /// The size of a buffer after the first, bytes: a burst that is no longer touches two buffers at most.
    #[inline]
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The most segments of a burst: those of the first buffer and of the next, of which it takes what it needs
    /// (`tcp_grow_skb`).
    pub(super) fn most(&mut self, next: u64, mss: u32) -> u32 {
        let (end, _) = self.at(next);
        let after = if end >= self.last.0 { self.last.1 } else { self.size };
        u32::try_from((end + after - next).div_ceil(u64::from(mss))).unwrap_or(u32::MAX)
    }

    fn last_begins(&self) -> u64 {
        let (from, size) = self.last;
        from + (self.written - from).saturating_sub(1) / size * size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    /// Bulk data after a handshake with a window of 64 kB: the kernel sends ten segments while it takes the
    /// first buffer of 22, and fills up what is left of it.
    #[test]
    fn buffers_have_half_of_the_window_of_the_handshake_and_later_64_kb() {
        let mut b = Buffers::default();
        let end = |b: &mut Buffers, segments: u64| {
            let (end, last) = b.at(1 + segments * MSS);
            ((end - 1) / MSS, last)
        };
        assert!(b.writes(1 + 10 * MSS));
        b.write(1 + 10 * MSS, 10_000_000, MSS, 65_536);
        assert_eq!(end(&mut b, 10), (32, false));
        assert_eq!(end(&mut b, 31), (32, false));
        assert_eq!(end(&mut b, 32), (54, false));
        // 33 buffers of 31,856 bytes are a megabyte. 402 segments are half of it, and more than 736 - 363.
        assert!(!b.writes(1 + 373 * MSS) && b.writes(1 + 374 * MSS));
        assert_eq!(end(&mut b, 380), (384, false));
        b.write(1 + 380 * MSS, 10_000_000, MSS, 400_000);
        // A burst takes what is left of the buffer, and the next.
        assert_eq!(b.size(), 22 * MSS);
        assert_eq!((b.most(1 + 663 * MSS, MSS as u32), b.most(1 + 692 * MSS, MSS as u32)), (29, 67));
        // Those of before keep their size, but the last is filled.
        assert_eq!(end(&mut b, 713), (714, false));
        assert_eq!(end(&mut b, 714), (759, false));
        assert_eq!(end(&mut b, 759), (804, false));
    }

    #[test]
    fn the_last_buffer_takes_more() {
        let mut b = Buffers::default();
        b.write(1, 1 + 3 * MSS, MSS, 65_536);
        assert_eq!(b.at(1), (1 + 22 * MSS, true));
        // All is sent, and something is written later.
        assert!(!b.writes(1 + 2 * MSS) && b.writes(1 + 3 * MSS));
        b.write(1 + 3 * MSS, 1 + 5 * MSS, MSS, 65_536);
        assert_eq!(b.at(1 + 4 * MSS), (1 + 25 * MSS, true));
    }
}
