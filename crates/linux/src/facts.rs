//! `facts.h` in Rust: what an object says of an event, and what it counts.

use std::net::{IpAddr, Ipv6Addr};

/// What happened.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The connection is established, or took this control.
    Begin,
    /// An acknowledgement, of which the startup was asked.
    Ack,
    /// An episode of loss begins.
    Loss,
    /// The retransmission timer fired.
    Timeout,
    /// The window was restarted after silence.
    Idle,
    /// The loss proved spurious.
    Undo,
    /// The connection closed, or took another control.
    End,
}

impl Kind {
    /// The name in what is written for others to read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Ack => "ack",
            Self::Loss => "loss",
            Self::Timeout => "timeout",
            Self::Idle => "idle",
            Self::Undo => "undo",
            Self::End => "end",
        }
    }
}

/// Why a startup was left.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitReason {
    /// It was not.
    None,
    /// The window reached a threshold that somebody else set: the kernel's `HyStart`, for instance.
    Ssthresh,
    /// Packets were lost.
    Loss,
    /// The retransmission timer fired.
    Timeout,
    /// The network marked packets, or the host's own queue refused one.
    Cwr,
    /// Conservative slow start lasted its rounds (`HyStart++`).
    CssRounds,
    /// Delivery no longer keeps pace with sending (SEARCH).
    RateFlat,
    /// The round trip rose.
    Delay,
    /// The window reached an estimate of capacity.
    Estimate,
}

impl ExitReason {
    /// All, in the order of `facts.h`.
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::Ssthresh,
        Self::Loss,
        Self::Timeout,
        Self::Cwr,
        Self::CssRounds,
        Self::RateFlat,
        Self::Delay,
        Self::Estimate,
    ];

    /// True for an end by congestion, as against one by a rule of the startup.
    pub const fn by_congestion(self) -> bool {
        matches!(self, Self::Loss | Self::Timeout | Self::Cwr)
    }

    /// The stable name in results, as `slowstart::step::Exit` has them.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ssthresh => "ssthresh",
            Self::Loss => "loss",
            Self::Timeout => "timeout",
            Self::Cwr => "cwr",
            Self::CssRounds => "css-rounds",
            Self::RateFlat => "rate-flat",
            Self::Delay => "delay",
            Self::Estimate => "estimate",
        }
    }
}

const KINDS: [Kind; 7] =
    [Kind::Begin, Kind::Ack, Kind::Loss, Kind::Timeout, Kind::Idle, Kind::Undo, Kind::End];

/// Reads numbers one after the other, in the byte order of this machine: the kernel is on it.
pub(crate) struct Numbers<'a>(pub(crate) &'a [u8]);

impl Numbers<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }
}

/// One event of one connection: what the kernel knew before, and what the startup decided.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which connection, while it lives.
    pub sk: u64,
    /// When, in nanoseconds of the kernel's monotonic clock (whole microseconds).
    pub now_ns: u64,
    /// Bytes acknowledged cumulatively since the connection began.
    pub acked_bytes: u64,
    /// Bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// What `acked_bytes` will be when all that is sent is acknowledged.
    pub next: u64,
    /// Bytes a second.
    pub pacing_rate: u64,
    /// Bytes in the queue of the host's interface, where the startup asks for it.
    pub queue_used: u64,
    /// What that queue holds; 0: not known.
    pub queue_limit: u64,
    /// What happened.
    pub kind: Kind,
    /// Payload of a full segment, in bytes.
    pub mss: u32,
    /// The window before, in segments.
    pub cwnd: u32,
    /// The threshold before, in segments.
    pub ssthresh: u32,
    /// In flight, in segments.
    pub inflight: u32,
    /// What this ACK delivered, in segments.
    pub acked: u32,
    /// The round trip it brought, in microseconds; 0: none.
    pub rtt_us: u32,
    /// Smoothed round trip, in microseconds.
    pub srtt_us: u32,
    /// Least round trip, in microseconds; 0: none yet.
    pub min_rtt_us: u32,
    /// The window it began with, in segments.
    pub iw: u32,
    /// Segments delivered.
    pub delivered: u32,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Bytes the kernel hands to the interface at once.
    pub gso_max: u32,
    /// The peer.
    pub peer: IpAddr,
    /// This end's port.
    pub sport: u16,
    /// The peer's port.
    pub dport: u16,
    /// Whether the kernel paces this connection.
    pub paced: bool,
    /// Whether the startup was still asked, before.
    pub asked: bool,
    /// The window held the sender back: growth is earned.
    pub limited: bool,
    /// No data has been sent.
    pub no_data_sent: bool,
    /// What was sent again may have been lost: nothing has proved it spurious.
    pub undo_marker: bool,
    /// The window was cut with this event.
    pub cut: bool,
    /// It left, for this reason.
    pub why: ExitReason,
    /// The window it asked for, in segments; 0: it left it alone.
    pub set: u32,
    /// The threshold it asked for, in segments; 0: it left it alone.
    pub threshold: u32,
    /// The window after, the avoidance's part included, in segments.
    pub cwnd_after: u32,
    /// The threshold after, in segments.
    pub ssthresh_after: u32,
    /// Bytes the window may grow by, before the kernel's own gating.
    pub earned: u64,
}

impl Facts {
    /// Reads a record of the ring; `None` if it is none of ours.
    pub fn read(record: &[u8]) -> Option<Self> {
        let n = &mut Numbers(record);
        Some(Self {
            sk: n.u64()?,
            now_ns: n.u64()?,
            acked_bytes: n.u64()?,
            sent_bytes: n.u64()?,
            next: n.u64()?,
            pacing_rate: n.u64()?,
            queue_used: n.u64()?,
            queue_limit: n.u64()?,
            kind: *KINDS.get(n.u32()? as usize)?,
            mss: n.u32()?,
            cwnd: n.u32()?,
            ssthresh: n.u32()?,
            inflight: n.u32()?,
            acked: n.u32()?,
            rtt_us: n.u32()?,
            srtt_us: n.u32()?,
            min_rtt_us: n.u32()?,
            iw: n.u32()?,
            delivered: n.u32()?,
            retransmitted: n.u32()?,
            gso_max: n.u32()?,
            peer: Ipv6Addr::from(n.take::<16>()?).to_canonical(),
            sport: n.u16()?,
            dport: n.u16()?,
            paced: n.u32()? != 0,
            asked: n.u32()? != 0,
            limited: n.u32()? != 0,
            no_data_sent: n.u32()? != 0,
            undo_marker: n.u32()? != 0,
            cut: n.u32()? != 0,
            why: *ExitReason::ALL.get(n.u32()? as usize)?,
            set: n.u32()?,
            threshold: n.u32()?,
            cwnd_after: n.u32()?,
            ssthresh_after: n.u32()?,
            earned: n.u32().and_then(|_| n.u64())?,
        })
    }
}

/// What an object counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Connections now under this control.
    pub open: u64,
    /// Connections ever.
    pub started: u64,
    /// Events for which the ring had no room.
    pub dropped_events: u64,
    /// Connections for which there was no memory: they run the avoidance alone.
    pub without_storage: u64,
    /// Ends of startups by reason; connections that closed in startup stand under [`ExitReason::None`].
    pub exits: Vec<(ExitReason, u64)>,
}

impl Counts {
    /// From what the object counted; how many are open it leaves to the kernel.
    pub(crate) fn read(value: &[u8], open: u64) -> Option<Self> {
        let n = &mut Numbers(value);
        let (started, dropped_events, without_storage) = (n.u64()?, n.u64()?, n.u64()?);
        let exits = ExitReason::ALL.iter().map(|w| Some((*w, n.u64()?))).collect::<Option<_>>()?;
        // One loaded by another version of this program may count something else.
        n.0.is_empty().then_some(Self { open, started, dropped_events, without_storage, exits })
    }

    /// How many left for this reason.
    pub fn exits(&self, why: ExitReason) -> u64 {
        self.exits.iter().find(|(w, _)| *w == why).map_or(0, |(_, n)| *n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_in_order_and_a_short_one_is_none() {
        let mut bytes = Vec::new();
        for n in 1..=8_u64 {
            bytes.extend(n.to_ne_bytes());
        }
        bytes.extend(1_u32.to_ne_bytes());
        for n in 101..=112_u32 {
            bytes.extend(n.to_ne_bytes());
        }
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 7]);
        bytes.extend(443_u16.to_ne_bytes());
        bytes.extend(5000_u16.to_ne_bytes());
        for n in [1, 0, 1, 0, 0, 1, 6, 9, 8, 11, 12, 0_u32] {
            bytes.extend(n.to_ne_bytes());
        }
        bytes.extend(77_u64.to_ne_bytes());
        let f = Facts::read(&bytes).expect("complete");
        assert_eq!((f.sk, f.pacing_rate, f.kind, f.mss, f.gso_max), (1, 6, Kind::Ack, 101, 112));
        assert_eq!(f.peer, IpAddr::from([192, 0, 2, 7]));
        assert_eq!((f.sport, f.dport, f.paced, f.asked), (443, 5000, true, false));
        assert_eq!((f.limited, f.no_data_sent, f.undo_marker, f.cut), (true, false, false, true));
        assert_eq!((f.why, f.set, f.threshold, f.earned), (ExitReason::RateFlat, 9, 8, 77));
        assert_eq!((f.cwnd_after, f.ssthresh_after), (11, 12));
        assert_eq!(Facts::read(&bytes[..bytes.len() - 1]), None);
    }
}
