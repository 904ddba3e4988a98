//! All that an algorithm may know: filled in afresh by the host for every event.

use crate::units::{Bytes, Instant, Mark, Rate, Span};
use core::ops::Deref;

/// What an acknowledgement earns in slow start. It changes results more than most algorithms do.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// One segment for each ACK of new data, however much it covers (Jacobson 1988; Linux before 3.18).
    PerAck,
    /// The bytes acknowledged, at most one segment an ACK (RFC 5681 §3.1).
    Segment,
    /// The bytes acknowledged, at most `limit` segments an ACK (RFC 3465 §2.2).
    Abc {
        /// L of the RFC; 2 is its default.
        limit: u8,
    },
    /// The bytes acknowledged (RFC 9002 §7.3.1; Linux since 3.18).
    #[default]
    Bytes,
}

/// The sender's own interface queue, where the host can see it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct HostQueue {
    /// Bytes waiting.
    pub used: Bytes,
    /// Bytes it can hold.
    pub limit: Bytes,
}

/// What the endpoint knows at the moment of an event.
#[derive(Copy, Clone, Debug)]
pub struct Facts {
    /// The time of the event.
    pub now: Instant,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// The initial window of this connection.
    pub iw: Bytes,
    /// Bytes sent and neither acknowledged, selectively acknowledged nor held for lost.
    pub inflight: Bytes,
    /// Bytes delivered since the connection began, selectively acknowledged ones included.
    pub delivered: Bytes,
    /// Bytes marked lost since the connection began.
    pub lost: Bytes,
    /// The mark the next new packet will carry (SND.NXT, or the next packet number).
    pub next: Mark,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt: Option<Span>,
    /// Least round-trip time seen.
    pub min_rtt: Option<Span>,
    /// The window the peer offers.
    pub rwnd: Bytes,
    /// The rate the host paces at, or would pace at if it paced.
    pub pacing_rate: Option<Rate>,
    /// Whether it paces now.
    pub pacing_on: bool,
    /// The largest burst the host hands to its interface at once; zero where it sends packet by packet.
    pub gso_max: Bytes,
    /// Data the application has queued and that is not yet sent, where the host can tell.
    pub unsent: Option<Bytes>,
    /// The host's interface queue, where the host can see one.
    pub host_queue: Option<HostQueue>,
    /// The rate of the host's interface, where it is known.
    pub nic_rate: Option<Rate>,
    /// Whether this host honours [`crate::step::Pace`] (quinn 0.11 does not).
    pub supports_pacing: bool,
    /// What an ACK earns on this host.
    pub growth: Growth,
    /// Between entry and end of a loss episode, when the endpoint's own recovery bounds what is sent.
    pub in_recovery: bool,
}

/// The facts, with the window as it stands.
#[derive(Copy, Clone, Debug)]
pub struct View<'a> {
    /// What the endpoint knows.
    pub facts: &'a Facts,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while it is arbitrarily high.
    pub ssthresh: Option<Bytes>,
}

impl Deref for View<'_> {
    type Target = Facts;
    fn deref(&self) -> &Facts {
        self.facts
    }
}

impl View<'_> {
    /// What this ACK earns in slow start under the host's growth rule.
    pub fn slow_start_growth(&self, ack: &Ack) -> Bytes {
        ack.slow_start_growth(self.growth, self.mss)
    }
}

/// A packet that left, and how things stood then. The endpoint keeps one for each packet in flight; what follows
/// `retransmission` is zero where the controller does not [measure
/// delivery](crate::control::Controller::needs_delivery_state).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The place of its last byte in the order of sending.
    pub mark: Mark,
    /// When it left.
    pub at: Instant,
    /// Its payload.
    pub bytes: Bytes,
    /// Whether it has been sent before.
    pub retransmission: bool,
    /// All bytes sent so far, this packet and retransmissions included.
    pub sent_total: Bytes,
    /// Bytes in flight with it.
    pub inflight: Bytes,
    /// [`Facts::delivered`] when it left.
    pub delivered: Bytes,
    /// When that figure was last raised.
    pub delivered_at: Instant,
    /// When the first packet of the flight it is measured in left (delivery-rate draft, `P.first_sent_time`).
    pub first_sent_at: Instant,
    /// [`Facts::lost`] when it left.
    pub lost: Bytes,
    /// Whether the application, not the window, held the sender back.
    pub app_limited: bool,
    /// The window when it left.
    pub cwnd: Bytes,
}

/// What held the sender back while the acknowledged data left.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// The congestion window: growth is earned.
    #[default]
    Window,
    /// The pacer, with window to spare: growth is earned all the same.
    Pacer,
    /// The application had nothing to send.
    Application,
    /// The peer's receive window.
    Peer,
}

impl Limit {
    /// Whether growth was earned.
    pub const fn allows_growth(self) -> bool {
        matches!(self, Self::Window | Self::Pacer)
    }
}

/// An acknowledgement.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Everything before this mark has arrived.
    pub upto: Mark,
    /// Bytes this ACK earns growth for: those it newly delivers, if it advances the cumulative acknowledgement; else
    /// none. (Linux `acked_sacked`: what was selectively acknowledged before is not earned twice.)
    pub bytes: Bytes,
    /// Bytes newly delivered, selectively acknowledged ones included.
    pub delivered: Bytes,
    /// Bytes this ACK marked lost.
    pub newly_lost: Bytes,
    /// Bytes in flight before it.
    pub prior_inflight: Bytes,
    /// The round-trip sample it brings, if it brings one.
    pub rtt: Option<Span>,
    /// The packet sent last among those it newly delivers.
    pub newest: Sent,
    /// What held the sender back.
    pub limit: Limit,
}

impl Ack {
    /// What this ACK earns under a growth rule.
    pub fn slow_start_growth(&self, rule: Growth, mss: Bytes) -> Bytes {
        match rule {
            Growth::PerAck if self.bytes.0 > 0 => mss,
            Growth::PerAck => Bytes::ZERO,
            Growth::Segment => self.bytes.min(mss),
            Growth::Abc { limit } => self.bytes.min(mss * u64::from(limit)),
            Growth::Bytes => self.bytes,
        }
    }
}

/// What told of congestion.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Packets held for lost.
    Loss,
    /// A mark by the network (RFC 3168).
    Ecn,
    /// The retransmission timer.
    Timeout,
    /// The host's own interface queue refused a packet (Linux 2.4).
    LocalStall,
}

/// A sign of congestion.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// Which.
    pub signal: Signal,
    /// The first of its episode; later ones report further losses in it.
    pub first: bool,
    /// Bytes newly held for lost.
    pub lost: Bytes,
    /// In how many separate ranges (`BBRv3` counts them).
    pub lost_ranges: u32,
    /// The newest packet known to be delivered.
    pub newest: Sent,
}

/// The end of a loss episode.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Bytes sent again in it.
    pub retransmitted: Bytes,
    /// Every retransmission proved to have been unnecessary.
    pub undone: bool,
}

/// How the connection was established.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// How often a SYN or SYN-ACK of ours had to be sent again.
    pub syn_losses: u8,
    /// That proved unnecessary: the path is slow, nothing was lost.
    pub spurious: bool,
    /// The round-trip time of the handshake, where it is unambiguous.
    pub rtt: Option<Span>,
    /// The rate that every router of the path granted to [`crate::startup::Startup::requested_rate`].
    pub granted: Option<Rate>,
    /// What an earlier connection to this peer found. A host hands over nothing that has expired.
    pub remembered: Option<PathMemory>,
}

/// What a connection leaves for the next one on its path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathMemory {
    /// The window it ended with, no more than it used.
    pub cwnd: Bytes,
    /// The least round-trip time it saw.
    pub rtt: Span,
    /// The rate it ended with: that window in its last smoothed round-trip time.
    pub rate: Rate,
}

/// Why a connection starts again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The retransmission timer fired.
    Timeout,
    /// Nothing was sent for longer than the retransmission timeout.
    Idle,
}
