//! A segment in flight, and what is known of it.

use slowstart::units::{Bytes, Instant, Mark};
use slowstart::view::Sent;

/// Selectively acknowledged.
pub(super) const SACKED: u16 = 1;
/// Held for lost.
pub(super) const LOST: u16 = 2;
/// Sent again, and not known to be lost again.
pub(super) const RETRANS: u16 = 4;
/// Sent more than once.
pub(super) const EVER_RETRANS: u16 = 8;
/// The application had nothing more when it left.
pub(super) const APP_LIMITED: u16 = 16;

/// A segment in flight. Tens of thousands may be, so it holds what every sender needs and no more.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Offset of its first byte.
    pub start: u64,
    /// When it was last sent.
    pub at: Instant,
    pub(super) len: u16,
    pub(super) flags: u16,
}

/// How delivery stood when a segment left, for those who measure it (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeliveryState {
    pub(super) sent_total: u64,
    pub(super) inflight: Bytes,
    pub(super) delivered: u64,
    pub(super) delivered_at: Instant,
    pub(super) first_sent_at: Instant,
    pub(super) lost_total: u64,
    pub(super) cwnd: Bytes,
}

impl Record {
    /// Bytes of sequence space.
    pub fn span(&self) -> u64 {
        u64::from(self.len)
    }
    /// Offset after its last byte.
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
    /// Held for lost, and not sent again since.
    pub fn awaits_resending(&self) -> bool {
        self.flags & (LOST | RETRANS | SACKED) == LOST
    }
    /// Selectively acknowledged.
    pub fn sacked(&self) -> bool {
        self.flags & SACKED != 0
    }
    /// Held for lost.
    pub fn lost(&self) -> bool {
        self.flags & LOST != 0
    }
    /// Sent again, and that not known to be lost.
    pub fn resent(&self) -> bool {
        self.flags & RETRANS != 0
    }
    /// Sent more than once.
    pub fn ever_resent(&self) -> bool {
        self.flags & EVER_RETRANS != 0
    }

    /// As the algorithms see it.
    pub(super) fn sent(&self, s: &DeliveryState) -> Sent {
        Sent {
            mark: Mark(self.end()),
            at: self.at,
            bytes: Bytes(self.span()),
            retransmission: self.ever_resent(),
            sent_total: Bytes(s.sent_total),
            inflight: s.inflight,
            delivered: Bytes(s.delivered),
            delivered_at: s.delivered_at,
            first_sent_at: s.first_sent_at,
            lost: Bytes(s.lost_total),
            app_limited: self.flags & APP_LIMITED != 0,
            cwnd: s.cwnd,
        }
    }
}
