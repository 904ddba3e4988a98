//! The send buffer, and what limited the sender: Linux `tcp_sendmsg_locked`, `sk_stream_write_space` and
//! `tcp_chrono_set`, as far as an application can observe them.

use slowstart::units::{Instant, Span};
use std::collections::VecDeque;

/// Memory of a buffer beside its data (`sk_wmem_queued` of one segment on a 64-bit kernel 6.18, less the
/// segment).
const OVERHEAD: u64 = 832;
/// Memory that is assumed for a segment when a buffer is sized: head, shared info and the structure itself
/// (`tcp_sndbuf_expand`).
const HEAD: u64 = 320 + 320;
const STRUCTURE: u64 = 256;
/// The smallest `SO_SNDBUF` (`SOCK_MIN_SNDBUF`).
const LEAST: u64 = 4608;
/// The largest `SO_SNDBUF` that can be requested (`net.core.wmem_max`), before it is doubled.
const MOST: u64 = 212_992;
/// The largest buffer for segmentation offload (`sk_gso_max_size`, less its header).
const LARGEST: u64 = 65_536 - 321;

/// A send buffer: a sequence of socket buffers, split where part of one was sent.
#[derive(Clone, Debug)]
pub struct Queue {
    /// The offset at which each socket buffer starts. The first is at or before the first unacknowledged
    /// byte.
    pieces: VecDeque<u64>,
    /// Its limit, bytes (`sk_sndbuf`).
    limit: u64,
    /// The limit of automatic growth (`tcp_wmem[2]`); none if the application set the size.
    most: Option<u64>,
    /// A write found no space (`SOCK_NOSPACE`).
    pub full: bool,
}

/// The byte offsets of a buffer: acknowledged up to `una`, sent up to `next`, written up to `end`.
#[derive(Copy, Clone, Debug)]
pub struct Extent {
    /// The first unacknowledged byte.
    pub una: u64,
    /// The first unsent byte.
    pub next: u64,
    /// The end of the written data.
    pub end: u64,
}

impl Queue {
    /// Makes an empty buffer that grows from `limit` to `most` bytes.
    pub fn new(limit: u64, most: u64) -> Self {
        Self { pieces: VecDeque::new(), limit, most: Some(most), full: false }
    }

    /// Sets `SO_SNDBUF`: doubled, as the kernel does for its overhead.
    pub fn set(&mut self, bytes: u64) {
        self.limit = (2 * bytes.min(MOST)).max(LEAST);
        self.most = None;
    }

    /// Returns the bytes that it can hold now.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Grows the limit to twice the window (`tcp_sndbuf_expand`).
    pub fn expand(&mut self, cwnd: u64, degree: u64, mss: u64) {
        let Some(most) = self.most else { return };
        let segment = (mss + HEAD).next_power_of_two() + STRUCTURE;
        let wanted = 2 * cwnd.max(10).max(degree + 1) * segment;
        self.limit = self.limit.max(wanted.min(most));
    }

    /// Frees acknowledged socket buffers, and splits one of which a part was sent.
    fn settle(&mut self, x: Extent) {
        while self.pieces.get(1).is_some_and(|p| *p <= x.una) {
            self.pieces.pop_front();
        }
        if x.una == x.end {
            self.pieces.clear();
        } else if x.next < x.end {
            let at = self.pieces.partition_point(|p| *p < x.next);
            if self.pieces.get(at) != Some(&x.next) {
                self.pieces.insert(at, x.next);
            }
        }
    }

    /// Memory in use, bytes, with overhead (`sk_wmem_queued`).
    fn held(&mut self, x: Extent) -> u64 {
        self.settle(x);
        x.end - x.una + OVERHEAD * self.pieces.len() as u64
    }

    /// How many of `bytes` can be written before a push: the free space of the last socket buffer, or a new
    /// one of `goal` bytes. 0 if a new one must not be allocated, because the buffer is full or `lowat` bytes
    /// are unsent.
    pub fn room(&mut self, x: Extent, goal: u64, lowat: u64) -> u64 {
        let held = self.held(x);
        let waits = self.pieces.back().map_or(0, |p| if x.next < x.end { x.end - p } else { 0 });
        if waits > 0 && waits < goal {
            goal - waits
        } else if held < self.limit && x.end - x.next < lowat {
            self.pieces.push_back(x.end);
            goal
        } else {
            0
        }
    }

    /// The application may be woken: a third is free, and fewer unsent bytes than half of `lowat` are queued
    /// (`__sk_stream_is_writeable`).
    pub fn writeable(&mut self, x: Extent, lowat: u64) -> bool {
        let held = self.held(x);
        self.limit.saturating_sub(held) >= held / 2 && 2 * (x.end - x.next) < lowat
    }
}

/// The size of a socket buffer, bytes (`tcp_xmit_size_goal`): whole segments, and no more than half the
/// largest window seen.
pub fn goal(mss: u64, largest_window: u64) -> u64 {
    let half = if largest_window > 536 { largest_window / 2 } else { largest_window };
    (LARGEST.min(half) / mss * mss).max(mss)
}

/// What limits a sender (`enum tcp_chrono`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The application has nothing to send.
    Idle,
    /// The congestion window or the network.
    Busy,
    /// The peer's receive window.
    Peer,
    /// The send buffer is full.
    Buffer,
}

/// Time spent limited, by cause.
#[derive(Clone, Debug)]
pub struct Chrono {
    now: Wait,
    since: Instant,
    busy: Span,
    peer: Span,
    buffer: Span,
}

impl Default for Chrono {
    fn default() -> Self {
        let zero = Span::ZERO;
        Self { now: Wait::Idle, since: Instant::ZERO, busy: zero, peer: zero, buffer: zero }
    }
}

impl Chrono {
    /// Sets the limit from `now` on.
    pub fn set(&mut self, now: Instant, wait: Wait) {
        let spent = now.since(self.since);
        match self.now {
            Wait::Idle => {}
            Wait::Busy => self.busy += spent,
            Wait::Peer => self.peer += spent,
            Wait::Buffer => self.buffer += spent,
        }
        (self.now, self.since) = (wait, now);
    }

    /// Returns what limits the sender now.
    pub fn wait(&self) -> Wait {
        self.now
    }

    /// `tcpi_busy_time`, `tcpi_rwnd_limited` and `tcpi_sndbuf_limited` at `now`.
    pub fn spent(&self, now: Instant) -> (Span, Span, Span) {
        let mut c = self.clone();
        c.set(now, Wait::Idle);
        (c.busy + c.peer + c.buffer, c.peer, c.buffer)
    }
}
