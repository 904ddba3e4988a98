//! The input of an algorithm: what the host fills in for every event.

use crate::units::{Bytes, Instant, Rate, SendOrder, Span};
use core::ops::Deref;

/// How much slow start grows for an ACK. This choice changes results more than most algorithms do.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Growth {
    /// One segment for each ACK of new data, however much it covers (Jacobson 1988; Linux before 3.18).
    PerAck,
    /// The bytes acknowledged, at most one segment per ACK (RFC 5681 §3.1).
    Segment,
    /// The bytes acknowledged, at most `limit` segments per ACK (RFC 3465 §2.2).
    Abc {
        /// L of RFC 3465, in segments; its default is 2.
        limit: u8,
    },
    /// The bytes acknowledged (RFC 9002 §7.3.1; Linux since 3.18).
    #[default]
    Bytes,
}

/// The sender's own interface queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct HostQueue {
    /// Bytes in the queue.
    pub used: Bytes,
    /// Capacity of the queue, in bytes.
    pub limit: Bytes,
}

/// State of the endpoint at the time of an event. Made by [`Facts::new`]; a host then sets what it knows
/// besides.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct Facts {
    /// Time of the event.
    pub now: Instant,
    /// Payload of a full-sized segment, in bytes.
    pub mss: Bytes,
    /// Initial window of this connection, in bytes.
    pub iw: Bytes,
    /// The least congestion window, in bytes: one segment in TCP (the loss window of RFC 5681 §3.1), two
    /// packets in QUIC (RFC 9002 §7.2). A controller applies it to each window that it sets. A host whose
    /// packets become larger changes it with [`Facts::mss`], and applies it itself until the next event.
    pub min_window: Bytes,
    /// Bytes in flight: sent, and neither acknowledged, selectively acknowledged nor marked lost.
    pub inflight: Bytes,
    /// Bytes delivered since the connection began, including those selectively acknowledged.
    pub delivered: Bytes,
    /// Bytes marked lost since the connection began.
    pub lost: Bytes,
    /// Bytes delivered since the connection began in packets that the network marked (CE): with the feedback
    /// of RFC 3168, all of the ACKs that echo a mark; where a peer reports packets, their number in
    /// full-sized segments. `None` if the host does not count marks; then an avoidance that
    /// [needs each](crate::control::Controller::needs_each_mark) must not be used.
    pub marked: Option<Bytes>,
    /// How far new data has been sent: SND.NXT in TCP, the newest packet number in QUIC. No packet sent so
    /// far is later in this order, and each new one will be.
    pub next: SendOrder,
    /// Bytes between the cumulative acknowledgement and the end of the data sent (SND.NXT - SND.UNA in TCP);
    /// `None` in a transport without cumulative acknowledgement.
    pub unacked: Option<Bytes>,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt: Option<Span>,
    /// Minimum round-trip time of the connection.
    pub min_rtt: Option<Span>,
    /// The receive window of the peer, in bytes.
    pub rwnd: Bytes,
    /// The rate at which the host paces, or would pace if it did.
    pub pacing_rate: Option<Rate>,
    /// True if the host paces at present.
    pub pacing_on: bool,
    /// The largest burst that the host passes to its interface at once, in bytes; zero if it sends packet by
    /// packet.
    pub gso_max: Bytes,
    /// Bytes that the application has queued and that have not been sent; `None` if the host does not know.
    pub unsent: Option<Bytes>,
    /// The host's interface queue; `None` if the host does not know it.
    pub host_queue: Option<HostQueue>,
    /// The rate of the host's interface; `None` if the host does not know it.
    pub nic_rate: Option<Rate>,
    /// True if the host supports [`crate::step::Pace`] (quinn 0.11 does not).
    pub supports_pacing: bool,
    /// How much slow start grows for an ACK on this host. One that counts ACKs counts them in avoidance too.
    pub growth: Growth,
    /// True between start and end of a loss episode, while the host's recovery limits what is sent.
    pub in_recovery: bool,
}

impl Facts {
    /// Returns the facts of a connection on which nothing has happened yet, with segments of `mss` bytes and
    /// an initial window of `iw` bytes. What a host may not know is absent: no RTT, an unlimited receive
    /// window, no pacing, no cumulative acknowledgement, no count of marks, no knowledge of queued data or of
    /// its interface. The least window is one segment. Slow start grows by the bytes acknowledged.
    pub const fn new(mss: Bytes, iw: Bytes) -> Self {
        Self {
            now: Instant::ZERO,
            mss,
            iw,
            min_window: mss,
            inflight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            marked: None,
            next: SendOrder::new(0),
            unacked: None,
            srtt: None,
            min_rtt: None,
            rwnd: Bytes::MAX,
            pacing_rate: None,
            pacing_on: false,
            gso_max: Bytes::ZERO,
            unsent: None,
            host_queue: None,
            nic_rate: None,
            supports_pacing: false,
            growth: Growth::Bytes,
            in_recovery: false,
        }
    }

    /// Returns the least slow-start threshold, in bytes: two segments (RFC 5681 §3.1), or the least window if
    /// that is larger.
    pub fn min_ssthresh(&self) -> Bytes {
        (self.mss * 2).max(self.min_window)
    }
}

/// The state of the endpoint, with the controller's window and threshold.
#[derive(Copy, Clone, Debug)]
pub struct View<'a> {
    /// State of the endpoint.
    pub facts: &'a Facts,
    /// Congestion window, in bytes.
    pub cwnd: Bytes,
    /// Slow-start threshold, in bytes; `None` while it is arbitrarily high.
    pub ssthresh: Option<Bytes>,
}

impl Deref for View<'_> {
    type Target = Facts;
    fn deref(&self) -> &Facts {
        self.facts
    }
}

impl View<'_> {
    /// Returns the growth, in bytes, of standard slow start for this ACK under the host's rule.
    pub fn slow_start_growth(&self, ack: &Ack) -> Bytes {
        ack.slow_start_growth(self.growth, self.mss)
    }
}

/// A packet that was sent, with the state of the connection at that time. The endpoint keeps one for each
/// packet in flight. The fields after `retransmission` are zero if the controller does not
/// [need them](crate::control::Controller::needs_delivery_state).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Its position in the order of sending: in TCP the end of its data, in QUIC its packet number.
    pub mark: SendOrder,
    /// When it was sent.
    pub at: Instant,
    /// Its payload, in bytes.
    pub bytes: Bytes,
    /// True if its data had been sent before.
    pub retransmission: bool,
    /// Bytes sent since the connection began, including this packet and retransmissions.
    pub sent_total: Bytes,
    /// Bytes in flight, including this packet.
    pub inflight: Bytes,
    /// [`Facts::delivered`] when it was sent.
    pub delivered: Bytes,
    /// When [`Facts::delivered`] had last increased.
    pub delivered_at: Instant,
    /// When the first packet of its delivery-rate sample was sent (`P.first_sent_time` of draft-ietf-ccwg-bbr
    /// §4.1.2).
    pub first_sent_at: Instant,
    /// [`Facts::lost`] when it was sent.
    pub lost: Bytes,
    /// True if the application, not the window, limited the sender.
    pub app_limited: bool,
    /// The congestion window when it was sent, in bytes.
    pub cwnd: Bytes,
}

/// Startups of the registry whose windows are the same with [`Ack::counted`] as with a record of each packet, as
/// long as nothing is lost. Others read packets as they are sent, their delivery state, or when each left.
pub const COUNTED: &[&str] = &[
    "standard",
    "limited",
    "hystart",
    "hystart-paper",
    "hystart-ns3",
    "hystart-picoquic",
    "hystart++",
    "search-2.0",
    "search-3.0",
    "search-3.1",
    "search-3.1-shipped",
    "search-3.2",
    "restricted",
    "tsl",
    "jump-start",
    "quick-start",
    "halfback",
    "stateful",
    "abc",
    "adaptive",
    "capstart",
    "delay",
    "hybla",
    "packet-pair",
    "rapid-start",
    "rapid-start-00",
    "rate-bound",
    "smooth",
    "vegas-linux",
];

/// What limited the sender when the acknowledged data was sent.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The congestion window. Growth is permitted.
    #[default]
    Window,
    /// The pacer, while the window had room. Growth is permitted.
    Pacer,
    /// The application, which had no data to send.
    Application,
    /// The peer's receive window.
    Peer,
}

impl Limit {
    /// Returns true if the window may grow.
    pub const fn allows_growth(self) -> bool {
        matches!(self, Self::Window | Self::Pacer)
    }
}

/// An ACK. Made by [`Ack::new`]; a host then sets what it knows besides.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ack {
    /// How far acknowledgements have advanced in the order of sending, which ends rounds: the cumulative
    /// acknowledgement in TCP (SND.UNA), the newest packet acknowledged in QUIC, where earlier packets may be
    /// missing. It never decreases.
    pub upto: SendOrder,
    /// Bytes for which the window may grow. In TCP those newly delivered if the cumulative acknowledgement
    /// advances, otherwise zero; data that was selectively acknowledged before is not counted again (Linux
    /// `acked_sacked`). In QUIC all that are newly acknowledged (RFC 9002 §7.3.1).
    pub bytes: Bytes,
    /// Bytes newly delivered, including those selectively acknowledged.
    pub delivered: Bytes,
    /// Bytes newly marked lost by this ACK.
    pub newly_lost: Bytes,
    /// Bytes in flight before this ACK.
    pub prior_inflight: Bytes,
    /// The RTT sample of this ACK, if it has one.
    pub rtt: Option<Span>,
    /// The most recently sent packet among those newly delivered.
    pub newest: Sent,
    /// What limited the sender when that packet was sent.
    pub limit: Limit,
    /// The window beyond which it must not grow for this ACK, in bytes, where the host bounds a sender that
    /// does not use its window by what it had in flight (draft-ietf-ccwg-ratelimited-increase); `None`: no
    /// bound. A controller applies it to all growth, and lowers no window for it.
    pub most: Option<Bytes>,
}

impl Ack {
    /// Returns an ACK by which `delivered` bytes are known to have arrived, the newest of them in the packet
    /// `newest`, when `prior_inflight` bytes had been in flight. By default acknowledgements have advanced to
    /// that packet, all bytes earn growth, nothing was marked lost, there is no RTT sample, and the window
    /// limited the sender.
    pub const fn new(newest: Sent, delivered: Bytes, prior_inflight: Bytes) -> Self {
        Self {
            upto: newest.mark,
            bytes: delivered,
            delivered,
            newly_lost: Bytes::ZERO,
            prior_inflight,
            rtt: None,
            newest,
            limit: Limit::Window,
            most: None,
        }
    }

    /// Returns the ACK of a host that keeps no record of its packets, as smoltcp: at `now` it acknowledges `len`
    /// new bytes, of which `inflight` remain, and has an RTT sample or none. Brings the facts up to date: time,
    /// bytes in flight and delivered, the newest mark, and the round-trip times (RFC 6298 §2 for the smoothed
    /// one). A host that marks data lost sets [`Facts::lost`] and `inflight` itself, before.
    ///
    /// Marks are positions in the data: what was delivered, and beyond it what is in flight. The newest packet
    /// delivered is taken to be of `len` bytes and to have left an RTT sample ago. [`COUNTED`] lists the startups
    /// for which that is enough.
    pub fn counted(f: &mut Facts, now: Instant, len: Bytes, inflight: Bytes, rtt: Option<Span>) -> Self {
        let prior_inflight = inflight + len;
        (f.now, f.inflight, f.delivered) = (now, inflight, f.delivered + len);
        f.next = f.next.max(SendOrder::new(f.delivered.0 + inflight.0));
        if let Some(rtt) = rtt {
            f.min_rtt = Some(f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            f.srtt = Some(f.srtt.map_or(rtt, |s| s.scale(7, 8) + rtt / 8));
        }
        let at = Instant(now.0.saturating_sub(rtt.map_or(0, |r| r.0)));
        let newest = Sent { mark: SendOrder::new(f.delivered.0), at, bytes: len, ..Sent::default() };
        Self { rtt, ..Self::new(newest, len, prior_inflight) }
    }

    /// Returns `growth` as far as a window of `cwnd` bytes may grow by this ACK.
    pub fn bounded(&self, growth: Bytes, cwnd: Bytes) -> Bytes {
        self.most.map_or(growth, |most| growth.min(most - cwnd))
    }

    /// Returns the growth, in bytes, of standard slow start for this ACK under `rule`, with segments of `mss`
    /// bytes.
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

/// The kind of a congestion signal.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// Packets were marked lost.
    Loss,
    /// The network marked packets (RFC 3168).
    Ecn,
    /// The retransmission timer expired.
    Timeout,
    /// The host's own interface queue refused a packet (Linux 2.4).
    LocalStall,
}

/// A congestion signal. Made by [`Congestion::new`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Congestion {
    /// What the host took for congestion.
    pub signal: Signal,
    /// True for the first signal of its episode; later ones report further losses.
    pub first: bool,
    /// Bytes newly marked lost.
    pub lost: Bytes,
    /// Number of separate ranges of lost data (used by BBR v3).
    pub lost_ranges: u32,
    /// The most recently sent packet known to be delivered.
    pub newest: Sent,
}

impl Congestion {
    /// Returns a signal by which nothing was marked lost. `first` is true if it begins an episode, and
    /// `newest` is the most recently sent packet known to be delivered.
    pub const fn new(signal: Signal, first: bool, newest: Sent) -> Self {
        Self { signal, first, lost: Bytes::ZERO, lost_ranges: 0, newest }
    }

    /// Adds that `lost` bytes were newly marked lost, in this number of separate ranges.
    #[must_use]
    pub const fn losing(mut self, lost: Bytes, ranges: u32) -> Self {
        self.lost = lost;
        self.lost_ranges = ranges;
        self
    }
}

/// The end of a loss episode. Made by [`Recovery::new`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Bytes retransmitted in it.
    pub retransmitted: Bytes,
    /// True if every retransmission proved unnecessary.
    pub undone: bool,
}

impl Recovery {
    /// Returns the end of an episode in which `retransmitted` bytes were sent again; `undone` is true if all
    /// of them proved unnecessary.
    pub const fn new(retransmitted: Bytes, undone: bool) -> Self {
        Self { retransmitted, undone }
    }
}

/// How the connection was established. Made by [`Handshake::new`]; a host then sets what it knows besides.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handshake {
    /// How many times our SYN or SYN-ACK was retransmitted.
    pub syn_losses: u8,
    /// True if those retransmissions proved unnecessary: nothing was lost, and the round-trip time exceeds
    /// the timeout.
    pub spurious: bool,
    /// The round-trip time of the handshake, if unambiguous.
    pub rtt: Option<Span>,
    /// The rate that every router of the path granted for [`crate::startup::Startup::requested_rate`].
    pub granted: Option<Rate>,
    /// State of an earlier connection to this peer. The host passes only what has not expired.
    pub remembered: Option<PathMemory>,
}

impl Handshake {
    /// Returns a handshake in which nothing was lost, with this round-trip time.
    pub const fn new(rtt: Option<Span>) -> Self {
        Self { syn_losses: 0, spurious: false, rtt, granted: None, remembered: None }
    }
}

/// What a connection stores for the next one on its path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathMemory {
    /// The window at its end, at most what it used, in bytes.
    pub cwnd: Bytes,
    /// Its minimum round-trip time.
    pub rtt: Span,
    /// The rate at its end: `cwnd` per smoothed round-trip time.
    pub rate: Rate,
}

/// Why slow start begins again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restart {
    /// The retransmission timer expired.
    Timeout,
    /// Nothing was sent for longer than the retransmission timeout.
    Idle,
    /// The avoidance asks for it.
    Avoidance,
}

impl Restart {
    /// Returns the name used in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Idle => "idle",
            Self::Avoidance => "avoidance",
        }
    }
}
