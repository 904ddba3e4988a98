//! Packets that were sent, and their acknowledgement.

use crate::argument::Argument;
use crate::{SLOWSTART_UNKNOWN, known, unknown};
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Ack, Limit, Sent};

/// A packet that was sent, with the state at that time. The fields after bytes are read only by a controller
/// that needs the delivery state, and may be 0 otherwise.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
pub struct slowstart_sent {
    /// The bytes of this structure, sizeof, by which its version is known.
    pub size: u64,
    /// Its place in the order of sending: in TCP the end of its data, in QUIC its number.
    pub mark: u64,
    /// When it was sent.
    pub at_ns: u64,
    /// The bytes of its payload, as they count in the window.
    pub bytes: u64,
    /// Bytes sent so far, it included.
    pub sent_total: u64,
    /// Bytes in flight, it included.
    pub inflight: u64,
    /// delivered of the facts at that time.
    pub delivered: u64,
    /// When that had last increased.
    pub delivered_at_ns: u64,
    /// When the first packet of its delivery-rate sample was sent.
    pub first_sent_at_ns: u64,
    /// lost of the facts at that time.
    pub lost: u64,
    /// The window at that time.
    pub cwnd: u64,
    /// 1 if its data had been sent before.
    pub retransmission: u32,
    /// 1 if the application, not the window, limited the sender.
    pub app_limited: u32,
}

const NO_PACKET: slowstart_sent = slowstart_sent {
    size: 0,
    mark: 0,
    at_ns: 0,
    bytes: 0,
    sent_total: 0,
    inflight: 0,
    delivered: 0,
    delivered_at_ns: 0,
    first_sent_at_ns: 0,
    lost: 0,
    cwnd: 0,
    retransmission: 0,
    app_limited: 0,
};

impl Argument for slowstart_sent {
    const ABSENT: Self = NO_PACKET;
}

impl slowstart_sent {
    /// Returns the packet as the controllers take it.
    pub fn to_sent(&self) -> Sent {
        Sent {
            mark: SendOrder::new(self.mark),
            at: Instant(self.at_ns),
            bytes: Bytes(self.bytes),
            retransmission: self.retransmission != 0,
            sent_total: Bytes(self.sent_total),
            inflight: Bytes(self.inflight),
            delivered: Bytes(self.delivered),
            delivered_at: Instant(self.delivered_at_ns),
            first_sent_at: Instant(self.first_sent_at_ns),
            lost: Bytes(self.lost),
            app_limited: self.app_limited != 0,
            cwnd: Bytes(self.cwnd),
        }
    }

    /// Returns the structure for C.
    pub fn of(s: &Sent) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            mark: s.mark.position(),
            at_ns: s.at.0,
            bytes: s.bytes.0,
            sent_total: s.sent_total.0,
            inflight: s.inflight.0,
            delivered: s.delivered.0,
            delivered_at_ns: s.delivered_at.0,
            first_sent_at_ns: s.first_sent_at.0,
            lost: s.lost.0,
            cwnd: s.cwnd.0,
            retransmission: u32::from(s.retransmission),
            app_limited: u32::from(s.app_limited),
        }
    }
}

/// What limited the sender: the window.
pub const SLOWSTART_BY_WINDOW: u64 = 0;
/// The pacer limited the sender when the packet was sent.
pub const SLOWSTART_BY_PACER: u64 = 1;
/// The application, which had nothing to send.
pub const SLOWSTART_BY_APPLICATION: u64 = 2;
/// The peer's receive window.
pub const SLOWSTART_BY_PEER: u64 = 3;

/// An acknowledgement, with what it says of the packets that it covers.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
pub struct slowstart_ack {
    /// The bytes of this structure, sizeof, by which its version is known.
    pub size: u64,
    /// How far acknowledgements have advanced in the order of sending: SND.UNA in TCP, the newest packet
    /// acknowledged in QUIC. It never decreases.
    pub upto: u64,
    /// Bytes for which the window may grow.
    pub bytes: u64,
    /// The bytes that this acknowledgement delivered and none before it.
    pub delivered: u64,
    /// Bytes newly marked lost.
    pub newly_lost: u64,
    /// Bytes in flight before it.
    pub prior_inflight: u64,
    /// Its round-trip sample, or unknown.
    pub rtt_ns: u64,
    /// What limited the sender of that data, such as SLOWSTART_BY_WINDOW. The window may grow if it was the
    /// window or the pacer.
    pub limit: u64,
    /// The most recently sent packet that it delivers; its size is set too.
    pub newest: slowstart_sent,
}

impl Argument for slowstart_ack {
    const ABSENT: Self = Self {
        size: 0,
        upto: 0,
        bytes: 0,
        delivered: 0,
        newly_lost: 0,
        prior_inflight: 0,
        rtt_ns: SLOWSTART_UNKNOWN,
        limit: SLOWSTART_BY_WINDOW,
        newest: NO_PACKET,
    };
}

impl slowstart_ack {
    /// Returns the ACK; `None` if the limit is none.
    pub fn to_ack(&self) -> Option<Ack> {
        let mut ack = Ack::new(self.newest.to_sent(), Bytes(self.delivered), Bytes(self.prior_inflight));
        (ack.upto, ack.bytes) = (SendOrder::new(self.upto), Bytes(self.bytes));
        (ack.newly_lost, ack.rtt) = (Bytes(self.newly_lost), known(self.rtt_ns).map(Span));
        ack.limit = match self.limit {
            SLOWSTART_BY_WINDOW => Limit::Window,
            SLOWSTART_BY_PACER => Limit::Pacer,
            SLOWSTART_BY_APPLICATION => Limit::Application,
            SLOWSTART_BY_PEER => Limit::Peer,
            _ => return None,
        };
        Some(ack)
    }

    /// Returns the structure for C.
    pub fn of(a: &Ack) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            upto: a.upto.position(),
            bytes: a.bytes.0,
            delivered: a.delivered.0,
            newly_lost: a.newly_lost.0,
            prior_inflight: a.prior_inflight.0,
            rtt_ns: unknown(a.rtt.map(|t| t.0)),
            limit: match a.limit {
                Limit::Pacer => SLOWSTART_BY_PACER,
                Limit::Application => SLOWSTART_BY_APPLICATION,
                Limit::Peer => SLOWSTART_BY_PEER,
                _ => SLOWSTART_BY_WINDOW,
            },
            newest: slowstart_sent::of(&a.newest),
        }
    }
}
