//! The state of the host at the time of an event.

use crate::argument::Argument;
use crate::{SLOWSTART_MOST_WINDOW, SLOWSTART_UNKNOWN, known, unknown};
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Facts, HostQueue};

/// State of the host at the time of an event. Sizes are bytes, times nanoseconds since any fixed moment.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct slowstart_facts {
    /// The bytes of this structure, sizeof, by which its version is known.
    pub size: u64,
    /// The time. It never decreases.
    pub now_ns: u64,
    /// Payload of a full packet: from 1 to 2^20.
    pub mss: u64,
    /// The initial window of the host, in bytes: from 1 to SLOWSTART_MOST_WINDOW.
    pub iw: u64,
    /// The least window: one segment in TCP, two packets in QUIC; 0 means mss.
    pub min_window: u64,
    /// Sent, and neither acknowledged nor lost.
    pub inflight: u64,
    /// Delivered since the connection began.
    pub delivered: u64,
    /// Marked lost since the connection began.
    pub lost: u64,
    /// Delivered in packets with a CE mark; unknown if the host does not count them.
    pub marked: u64,
    /// The newest packet sent, in the order of sending: SND.NXT in TCP, the packet number in QUIC.
    pub next: u64,
    /// SND.NXT - SND.UNA; unknown without a cumulative acknowledgement.
    pub unacked: u64,
    /// Smoothed round-trip time, or unknown.
    pub srtt_ns: u64,
    /// Minimum round-trip time, or unknown.
    pub min_rtt_ns: u64,
    /// The peer's receive window; unknown means unlimited.
    pub rwnd: u64,
    /// The rate at which the host paces, bit/s, or unknown.
    pub pacing_rate_bps: u64,
    /// What the application has queued and that has not been sent, or unknown.
    pub unsent: u64,
    /// Bytes in the host's interface queue, or unknown.
    pub host_queue_used: u64,
    /// The bytes that the interface's queue can hold, or unknown.
    pub host_queue_limit: u64,
    /// The rate of the interface, bit/s, or unknown.
    pub nic_rate_bps: u64,
    /// 1 if the host can pace as the state asks, otherwise 0.
    pub supports_pacing: u32,
    /// 1 if the host paces at present.
    pub pacing_on: u32,
    /// 1 between start and end of a loss episode.
    pub in_recovery: u32,
    /// Not used; set it to 0.
    pub reserved: u32,
    /// The largest burst that the host passes to its interface at once; 0 if it sends packet by packet.
    pub gso_max: u64,
}

const U: u64 = SLOWSTART_UNKNOWN;

impl Argument for slowstart_facts {
    const ABSENT: Self = Self {
        size: 0,
        now_ns: 0,
        mss: 0,
        iw: 0,
        min_window: 0,
        inflight: 0,
        delivered: 0,
        lost: 0,
        marked: U,
        next: 0,
        unacked: U,
        srtt_ns: U,
        min_rtt_ns: U,
        rwnd: U,
        pacing_rate_bps: U,
        unsent: U,
        host_queue_used: U,
        host_queue_limit: U,
        nic_rate_bps: U,
        supports_pacing: 0,
        pacing_on: 0,
        in_recovery: 0,
        reserved: 0,
        gso_max: 0,
    };
}

impl slowstart_facts {
    /// Returns the facts; `None` without a segment size that a packet can have, or with an initial or least
    /// window that a connection cannot have.
    pub fn to_facts(&self) -> Option<Facts> {
        let windows =
            (1..=SLOWSTART_MOST_WINDOW).contains(&self.iw) && self.min_window <= SLOWSTART_MOST_WINDOW;
        if self.mss == 0 || self.mss > 1 << 20 || !windows {
            return None;
        }
        let mut to = Facts::new(Bytes(self.mss), Bytes(self.iw));
        to.now = Instant(self.now_ns);
        to.min_window = Bytes(if self.min_window == 0 { self.mss } else { self.min_window });
        (to.inflight, to.delivered, to.lost) =
            (Bytes(self.inflight), Bytes(self.delivered), Bytes(self.lost));
        (to.marked, to.next) = (known(self.marked).map(Bytes), SendOrder::new(self.next));
        (to.unacked, to.unsent) = (known(self.unacked).map(Bytes), known(self.unsent).map(Bytes));
        (to.srtt, to.min_rtt) = (known(self.srtt_ns).map(Span), known(self.min_rtt_ns).map(Span));
        (to.rwnd, to.gso_max) = (Bytes(self.rwnd), Bytes(self.gso_max));
        (to.pacing_rate, to.nic_rate) =
            (known(self.pacing_rate_bps).map(Rate), known(self.nic_rate_bps).map(Rate));
        to.host_queue = known(self.host_queue_used)
            .zip(known(self.host_queue_limit))
            .map(|(used, limit)| HostQueue { used: Bytes(used), limit: Bytes(limit) });
        (to.supports_pacing, to.pacing_on) = (self.supports_pacing != 0, self.pacing_on != 0);
        to.in_recovery = self.in_recovery != 0;
        Some(to)
    }

    /// Returns the structure for C.
    pub fn of(f: &Facts) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            now_ns: f.now.0,
            mss: f.mss.0,
            iw: f.iw.0,
            min_window: f.min_window.0,
            inflight: f.inflight.0,
            delivered: f.delivered.0,
            lost: f.lost.0,
            marked: unknown(f.marked.map(|b| b.0)),
            next: f.next.position(),
            unacked: unknown(f.unacked.map(|b| b.0)),
            srtt_ns: unknown(f.srtt.map(|t| t.0)),
            min_rtt_ns: unknown(f.min_rtt.map(|t| t.0)),
            rwnd: f.rwnd.0,
            pacing_rate_bps: unknown(f.pacing_rate.map(|r| r.0)),
            unsent: unknown(f.unsent.map(|b| b.0)),
            host_queue_used: unknown(f.host_queue.map(|q| q.used.0)),
            host_queue_limit: unknown(f.host_queue.map(|q| q.limit.0)),
            nic_rate_bps: unknown(f.nic_rate.map(|r| r.0)),
            supports_pacing: u32::from(f.supports_pacing),
            pacing_on: u32::from(f.pacing_on),
            in_recovery: u32::from(f.in_recovery),
            reserved: 0,
            gso_max: f.gso_max.0,
        }
    }
}
