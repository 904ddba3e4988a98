//! Events and counters of an object: the records of `facts.h` in Rust.

use slowstart::step::Exit;
use std::net::{IpAddr, Ipv6Addr};

/// Kind of an event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The connection was established, or switched to this control.
    Begin,
    /// An acknowledgement that the startup was called for.
    Ack,
    /// A loss episode began.
    Loss,
    /// The retransmission timer fired.
    Timeout,
    /// cwnd was restarted after an idle time.
    Idle,
    /// A cwnd reduction was undone because the loss was spurious.
    Undo,
    /// The connection closed, or switched to another control.
    End,
    /// A loss episode ended, for startups that use this.
    Recovered,
    /// The sender is about to send: before the first ACK, or in a loss episode whose window the startup sets,
    /// for startups that use this.
    Send,
}

impl Kind {
    /// Returns the name in JSON output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Ack => "ack",
            Self::Loss => "loss",
            Self::Timeout => "timeout",
            Self::Idle => "idle",
            Self::Undo => "undo",
            Self::End => "end",
            Self::Recovered => "recovered",
            Self::Send => "send",
        }
    }
}

/// What a reason of the kernel's objects is.
#[derive(Copy, Clone)]
enum Meaning {
    /// A reason of the registry's startups.
    Exit(Exit),
    /// One that only the kernel has, with its name in results, and whether it is congestion.
    Kernel(&'static str, bool),
}

/// The list of reasons, in the order of `enum why` in `facts.h`, each with what it is.
macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident: $meaning:expr;)*) => {
        /// Reason for the end of a startup.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ExitReason {
            $($(#[$doc])* $variant,)*
        }

        impl ExitReason {
            /// All reasons, in the order of `facts.h`.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            const fn meaning(self) -> Meaning {
                match self {
                    $(Self::$variant => $meaning,)*
                }
            }
        }
    };
}

reasons! {
    /// It has not ended.
    None: Meaning::Kernel("none", false);
    /// cwnd reached an ssthresh that the startup did not set: by the kernel's `HyStart`, for instance.
    Ssthresh: Meaning::Exit(Exit::Ssthresh);
    /// Packets were lost.
    Loss: Meaning::Exit(Exit::Loss);
    /// The retransmission timer fired.
    Timeout: Meaning::Exit(Exit::Timeout);
    /// The network marked packets (ECN), or the host's own queue refused one: the kernel does not tell them
    /// apart.
    Cwr: Meaning::Kernel("cwr", true);
    /// Conservative slow start lasted its number of rounds (`HyStart++`).
    CssRounds: Meaning::Exit(Exit::CssRounds);
    /// The delivery rate no longer grows with the sending rate (SEARCH).
    RateFlat: Meaning::Exit(Exit::RateFlat);
    /// The RTT rose.
    Delay: Meaning::Exit(Exit::Delay);
    /// cwnd reached an estimate of capacity.
    Estimate: Meaning::Exit(Exit::Estimate);
    /// The ACKs of a round took as long as the path (the published `HyStart`).
    AckTrain: Meaning::Exit(Exit::AckTrain);
}

impl ExitReason {
    /// Returns true for an end by congestion, and false for one by a rule of the startup.
    pub const fn by_congestion(self) -> bool {
        match self.meaning() {
            Meaning::Exit(exit) => exit.by_congestion(),
            Meaning::Kernel(_, by_congestion) => by_congestion,
        }
    }

    /// Returns the name in results: that of `slowstart::step::Exit`, or of the kernel's own.
    pub const fn name(self) -> &'static str {
        match self.meaning() {
            Meaning::Exit(exit) => exit.name(),
            Meaning::Kernel(name, _) => name,
        }
    }
}

const KINDS: [Kind; 9] = [
    Kind::Begin,
    Kind::Ack,
    Kind::Loss,
    Kind::Timeout,
    Kind::Idle,
    Kind::Undo,
    Kind::End,
    Kind::Recovered,
    Kind::Send,
];

/// Reads consecutive numbers in native byte order.
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

/// One event of one connection: the kernel's fields before the decision, and the decision.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Identifier of the connection, unique while it exists.
    pub sk: u64,
    /// Time, in nanoseconds of `CLOCK_MONOTONIC` (a multiple of 1,000).
    pub now_ns: u64,
    /// Bytes acknowledged cumulatively since the connection began (`tp->bytes_acked`).
    pub acked_bytes: u64,
    /// Bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// The value of `acked_bytes` once everything sent so far is acknowledged.
    pub next: u64,
    /// Pacing rate, in bytes per second.
    pub pacing_rate: u64,
    /// Backlog of the interface's queue in bytes, for startups that read it; otherwise 0.
    pub queue_used: u64,
    /// Limit of that queue in bytes; 0 if unknown.
    pub queue_limit: u64,
    /// Bytes queued by the application and not sent. For [`Kind::Send`] all that is not acknowledged, in
    /// whole segments.
    pub unsent: u64,
    /// When the newest packet that this ACK delivered was sent, in microseconds.
    pub newest_us: u64,
    /// Bytes sent since the last ACK for which the startup was called.
    pub sent_since: u64,
    /// Bytes acknowledged since then.
    pub acked_since: u64,
    /// Window that an earlier connection left, in bytes, at [`Kind::Begin`]; 0 if none.
    pub memory_cwnd: u64,
    /// Rate that it left, in bits per second.
    pub memory_rate: u64,
    /// Minimum RTT that it left, in microseconds.
    pub memory_rtt_us: u32,
    /// Receive window of the peer, in bytes.
    pub rwnd: u32,
    /// Segments that are marked lost at the event.
    pub lost: u32,
    /// Segments in flight before this ACK.
    pub prior: u32,
    /// Kind of the event.
    pub kind: Kind,
    /// Payload of a full segment (MSS), in bytes.
    pub mss: u32,
    /// cwnd before the event, in segments.
    pub cwnd: u32,
    /// ssthresh before the event, in segments.
    pub ssthresh: u32,
    /// Segments in flight at the event.
    pub inflight: u32,
    /// Segments that this ACK delivered.
    pub acked: u32,
    /// RTT sample of this ACK, in microseconds; 0 if none.
    pub rtt_us: u32,
    /// Smoothed round-trip time, in microseconds; 0 if there is no sample yet.
    pub srtt_us: u32,
    /// Minimum RTT, in microseconds; 0 if there is no sample yet.
    pub min_rtt_us: u32,
    /// Initial cwnd, in segments.
    pub iw: u32,
    /// Segments delivered since the connection began.
    pub delivered: u32,
    /// Segments sent again since the connection began.
    pub retransmitted: u32,
    /// Largest GSO packet, in bytes.
    pub gso_max: u32,
    /// Address of the peer.
    pub peer: IpAddr,
    /// The port of this host.
    pub sport: u16,
    /// Port of the peer.
    pub dport: u16,
    /// True if the kernel paces this connection.
    pub paced: bool,
    /// True if the startup was still in control before the event.
    pub asked: bool,
    /// True if cwnd limited the sender, so that cwnd may grow.
    pub limited: bool,
    /// True if no data has been sent.
    pub no_data_sent: bool,
    /// True while the kernel has an undo marker: the retransmissions have not been shown to be spurious.
    pub undo_marker: bool,
    /// True if this event reduced cwnd; with BBR, if it began a loss episode.
    pub cut: bool,
    /// Segments that had been delivered when the newest packet delivered was sent. This and the next four are
    /// 0 unless the control is BBR.
    pub newest_delivered: u32,
    /// Segments in flight then, an estimate.
    pub newest_inflight: u32,
    /// Segments marked lost then, an estimate.
    pub newest_lost: u32,
    /// True if the application limited the sender then.
    pub newest_limited: bool,
    /// Interval of the delivery-rate sample of this ACK, in microseconds; 0 if it has none.
    pub interval_us: u32,
    /// Reason for the end of the startup at this event, if it ended.
    pub why: ExitReason,
    /// cwnd set by the startup, in segments; 0 if it set none.
    pub set: u32,
    /// ssthresh set by the startup, in segments; 0 if it set none.
    pub threshold: u32,
    /// cwnd after the event, including what the avoidance did, in segments.
    pub cwnd_after: u32,
    /// ssthresh after the event, in segments.
    pub ssthresh_after: u32,
    /// Bytes that cwnd may grow by; they count only if cwnd limited the sender.
    pub earned: u64,
    /// Cap of the pacing rate set by the startup, in bits per second; 0 if it set none, `u64::MAX` if it
    /// removed it. With BBR the pacing rate.
    pub pace: u64,
}

impl Facts {
    /// Parses a record of the ring; `None` if it is malformed.
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
            unsent: n.u64()?,
            newest_us: n.u64()?,
            sent_since: n.u64()?,
            acked_since: n.u64()?,
            memory_cwnd: n.u64()?,
            memory_rate: n.u64()?,
            memory_rtt_us: n.u32()?,
            rwnd: n.u32()?,
            lost: n.u32()?,
            prior: n.u32()?,
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
            newest_delivered: n.u32()?,
            newest_inflight: n.u32()?,
            newest_lost: n.u32()?,
            newest_limited: n.u32()? != 0,
            interval_us: n.u32()?,
            why: *ExitReason::ALL.get(n.u32()? as usize)?,
            set: n.u32()?,
            threshold: n.u32()?,
            cwnd_after: n.u32()?,
            ssthresh_after: n.u32()?,
            earned: n.u64()?,
            pace: n.u64()?,
        })
    }
}

/// Counters of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Connections that use the control now; `None` if that is not known.
    pub open: Option<u64>,
    /// Connections that ever used it.
    pub started: u64,
    /// Those of them whose end the kernel has reported: nearly all (docs/evidence/kernel.md).
    pub ended: u64,
    /// Events dropped because the ring was full.
    pub dropped_events: u64,
    /// Connections without storage, for lack of memory: they run the avoidance only.
    pub without_storage: u64,
    /// Ends of startups by reason; connections that closed during startup count under [`ExitReason::None`].
    pub exits: Vec<(ExitReason, u64)>,
}

impl Counts {
    /// Parses the counters; the number of open connections is not among them.
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let n = &mut Numbers(value);
        let (started, ended, dropped_events, without_storage) = (n.u64()?, n.u64()?, n.u64()?, n.u64()?);
        let exits = ExitReason::ALL.iter().map(|w| Some((*w, n.u64()?))).collect::<Option<_>>()?;
        // A control loaded by another version of this program may have other counters.
        n.0.is_empty().then_some(Self { open: None, started, ended, dropped_events, without_storage, exits })
    }

    /// Returns the largest possible number of open connections: starts minus ends.
    pub fn at_most_open(&self) -> u64 {
        self.started.saturating_sub(self.ended)
    }

    /// Returns the number of startups that ended for this reason.
    pub fn exits(&self, why: ExitReason) -> u64 {
        self.exits.iter().find(|(w, _)| *w == why).map_or(0, |(_, n)| *n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of an enumeration of `facts.h`, in lower case and without their prefix.
    fn names(enumeration: &str) -> Vec<String> {
        let header = include_str!("bpf/facts.h");
        let prefix = format!("{}_", enumeration.to_uppercase());
        let begin = format!("enum {enumeration} {{\n");
        let (_, rest) = header.split_once(&begin).expect("the enumeration is there");
        let (body, _) = rest.split_once("};").expect("it ends");
        let name = |line: &str| {
            let name = line.trim().split(',').next().and_then(|n| n.strip_prefix(&prefix)).expect("a name");
            name.to_lowercase().replace('_', "-")
        };
        body.lines().map(name).collect()
    }

    #[test]
    fn the_enumerations_are_those_of_the_header() {
        let reasons = ExitReason::ALL.iter().map(|r| r.name().to_string());
        assert_eq!(reasons.chain(["max".to_string()]).collect::<Vec<_>>(), names("why"));
        assert_eq!(KINDS.map(|k| k.name().to_string()).to_vec(), names("kind"));
    }

    #[test]
    fn a_record_is_parsed_in_order_and_a_short_one_is_none() {
        let mut bytes = Vec::new();
        for n in 1..=14_u64 {
            bytes.extend(n.to_ne_bytes());
        }
        for n in [91, 92, 93, 94, 1_u32] {
            bytes.extend(n.to_ne_bytes());
        }
        for n in 101..=112_u32 {
            bytes.extend(n.to_ne_bytes());
        }
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 7]);
        bytes.extend(443_u16.to_ne_bytes());
        bytes.extend(5000_u16.to_ne_bytes());
        for n in [1, 0, 1, 0, 0, 1, 21, 22, 23, 1, 24, 6, 9, 8, 11, 12_u32] {
            bytes.extend(n.to_ne_bytes());
        }
        bytes.extend(77_u64.to_ne_bytes());
        bytes.extend(78_u64.to_ne_bytes());
        let f = Facts::read(&bytes).expect("complete");
        assert_eq!((f.sk, f.pacing_rate, f.kind, f.mss, f.gso_max), (1, 6, Kind::Ack, 101, 112));
        assert_eq!((f.unsent, f.newest_us, f.memory_rate, f.prior, f.pace), (9, 10, 14, 94, 78));
        assert_eq!(f.peer, IpAddr::from([192, 0, 2, 7]));
        assert_eq!((f.sport, f.dport, f.paced, f.asked), (443, 5000, true, false));
        assert_eq!((f.limited, f.no_data_sent, f.undo_marker, f.cut), (true, false, false, true));
        assert_eq!((f.newest_delivered, f.newest_inflight, f.newest_lost), (21, 22, 23));
        assert_eq!((f.newest_limited, f.interval_us), (true, 24));
        assert_eq!((f.why, f.set, f.threshold, f.earned), (ExitReason::RateFlat, 9, 8, 77));
        assert_eq!((f.cwnd_after, f.ssthresh_after), (11, 12));
        assert_eq!(Facts::read(&bytes[..bytes.len() - 1]), None);
    }
}
