//! A segment in flight and its state.

use slowstart::units::{Bytes, Instant, SendOrder};
use slowstart::view::Sent;

/// SACKed.
pub(super) const SACKED: u16 = 1;
/// Marked lost.
pub(super) const LOST: u16 = 2;
/// Retransmitted, and not marked lost since.
pub(super) const RETRANS: u16 = 4;
/// Sent more than once.
pub(super) const EVER_RETRANS: u16 = 8;
/// The application had no more data when it was sent.
pub(super) const APP_LIMITED: u16 = 16;

/// A segment in flight, in 24 bytes: there may be tens of thousands.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Offset of its first byte.
    pub start: u64,
    /// When it was last sent.
    pub at: Instant,
    pub(super) len: u16,
    pub(super) flags: u16,
}

/// The state of delivery when a segment was sent, for controllers that measure it (draft-ietf-ccwg-bbr,
/// section 4.1).
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
    /// True if it is marked lost and was not retransmitted since.
    pub fn awaits_resending(&self) -> bool {
        self.flags & (LOST | RETRANS | SACKED) == LOST
    }
    /// True if it is SACKed.
    pub fn sacked(&self) -> bool {
        self.flags & SACKED != 0
    }
    /// True if it is marked lost.
    pub fn lost(&self) -> bool {
        self.flags & LOST != 0
    }
    /// True if it was retransmitted and not marked lost since.
    pub fn resent(&self) -> bool {
        self.flags & RETRANS != 0
    }
    /// True if it was sent more than once.
    pub fn ever_resent(&self) -> bool {
        self.flags & EVER_RETRANS != 0
    }

    /// The segment as controllers see it.
    pub(super) fn sent(&self, s: &DeliveryState) -> Sent {
        Sent {
            mark: SendOrder::new(self.end()),
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
