//! What the host asks of a guest and what the guest answers: two files in a folder that both see.

use serde::{Deserialize, Serialize};
use slowstart_sim::trace::MILESTONES;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The file of an [`Order`].
pub(crate) const ORDER: &str = "order";
/// The file of an [`Answer`].
pub(crate) const ANSWER: &str = "answer";

/// What a guest is to do before it powers off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Say what the kernel is.
    Describe {
        /// Modules to load first.
        modules: Vec<PathBuf>,
    },
    /// Run a transfer.
    Transfer(Transfer),
}

/// A transfer over a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    /// The path as written, and the folder of the files that it names.
    pub path: String,
    pub folder: PathBuf,
    pub seed: u64,
    /// Modules to load, as absolute paths.
    pub modules: Vec<PathBuf>,
    /// The congestion control of the sender.
    pub control: String,
    /// Parameters of its module.
    pub parameters: BTreeMap<String, String>,
    /// What the application does, as `slowstart_study::scenario::application` reads it.
    pub app: String,
    /// Bytes of a bulk transfer; `None`: until the time is over.
    pub size: Option<u64>,
    /// How long to run, in nanoseconds from the SYN.
    pub duration: u64,
    /// The value of `tcp_ecn` at both ends; `None`: the kernel's own.
    pub ecn: Option<u32>,
    /// How long after data can be read the receiver reads it, in nanoseconds.
    pub read: u64,
    /// `tcp_rmem[1]`, in bytes.
    pub rmem_first: u64,
    /// `tcp_rmem[2]`, in bytes; `None`: that of the simulator, which decides the scale of the window.
    pub rmem: Option<u64>,
    /// True if the headers of all packets are kept.
    pub capture: bool,
}

/// What a guest says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Described(Description),
    Ran(Box<Recording>),
    /// It could not do what it was asked.
    Failed(String),
}

/// What the kernel of a guest is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Description {
    /// As `uname -r` prints it.
    pub release: String,
    /// Its congestion controls, each with the parameters of its module.
    pub controls: BTreeMap<String, Vec<String>>,
    /// True if it has the accurate feedback of ECN (`tcp_ecn` 3).
    pub accecn: bool,
}

/// The sender after an acknowledgement, as `TCP_INFO` has it. An array in the file, which has one for each acknowledgement.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Nanoseconds since the SYN.
    pub at: u64,
    /// Segments.
    pub cwnd: u32,
    /// Segments; `u32::MAX` until one is set.
    pub ssthresh: u32,
    /// Segments sent that are neither acknowledged nor deemed lost.
    pub inflight: u32,
    /// Smoothed and least round-trip time in microseconds; 0 until there is a sample.
    pub srtt: u32,
    pub min_rtt: u32,
    /// Open, disorder, CWR, recovery, loss (`tcp_ca_state`).
    pub state: u32,
    /// Segments sent again since the connection began.
    pub retransmitted: u32,
    /// Bytes that the receiver has read.
    pub received: u64,
    /// Bytes that the kernel holds and has not sent, or that the application still has.
    pub unsent: u64,
    /// Bytes in the queue of the path, on the wire.
    pub queue: u64,
    /// Bytes per second.
    pub pacing: u64,
    /// The phase of bbr (`crate::exits::Phase`); 0 with other controls.
    pub phase: u32,
}

impl Serialize for Seen {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self {
            at,
            cwnd,
            ssthresh,
            inflight,
            srtt,
            min_rtt,
            state,
            retransmitted,
            received,
            unsent,
            queue,
            pacing,
            phase,
        } = *self;
        let of_sender = (at, cwnd, ssthresh, inflight, srtt, min_rtt, state, retransmitted);
        (of_sender, received, unsent, queue, pacing, phase).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (of_sender, received, unsent, queue, pacing, phase) = Deserialize::deserialize(from)?;
        let (at, cwnd, ssthresh, inflight, srtt, min_rtt, state, retransmitted) = of_sender;
        Ok(Self {
            at,
            cwnd,
            ssthresh,
            inflight,
            srtt,
            min_rtt,
            state,
            retransmitted,
            received,
            unsent,
            queue,
            pacing,
            phase,
        })
    }
}

/// HyStart's own counters (`TcpExt`) when the threshold was set.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HyStart {
    pub train: u64,
    pub delay: u64,
}

/// What a run recorded. Times are nanoseconds since the SYN.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recording {
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Segments of the initial window.
    pub initial_window: u32,
    pub seen: Vec<Seen>,
    pub hystart: HyStart,
    /// Bytes that the client read.
    pub received: u64,
    pub milestones: [Option<u64>; MILESTONES.len()],
    pub completed: Option<u64>,
    pub ended: u64,
    /// When each object was asked for before the end, and when it came.
    pub objects: Vec<(u64, Option<u64>)>,
    /// How long the sender had data out, was limited by the peer's window, and by its send buffer, in microseconds.
    pub chrono: Option<[u64; 3]>,
    /// Why the connection was not made, or ended.
    pub failed: Option<String>,
    /// Data packets that entered the path.
    pub data: u64,
    /// When the path dropped each data packet that it dropped, and why, as the place of the cause among all.
    pub drops: Vec<(u64, u8)>,
    /// When each SYN and each SYN-ACK left its sender.
    pub syns: [Vec<u64>; 2],
    /// When the path dropped one of each.
    pub lost_syns: [Vec<u64>; 2],
    /// Data packets that the path marked.
    pub marked: u64,
    /// Each wait at the bottleneck that was longer than those before it: when the data packet came, and how long it waited.
    pub waits: Vec<(u64, u64)>,
    /// Packets that the path released over 1 ms late, of how many.
    pub late: u64,
    pub released: u64,
    /// Acknowledgements that reached the sender, and the data packets that reached the receiver.
    pub acks: u64,
    pub arrived: u64,
    /// In order of time, if they were asked for.
    pub packets: Vec<Captured>,
}

/// A packet as it left or reached an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Captured {
    pub at: u64,
    /// The server is 0, the client 1.
    pub end: u8,
    pub leaves: bool,
    /// Bytes of the IP packet.
    pub length: u32,
    /// Its headers, and what follows of the first bytes, in hexadecimal digits.
    pub headers: String,
}
