//! What a run records: samples over time, events, and packets at the ends.

use crate::tcp::segment::Segment;
use slowstart::units::Instant;
use std::collections::BTreeMap;

/// Delivered bytes at which the time is recorded.
pub const MILESTONES: [u64; 3] = [100_000, 1_000_000, 10_000_000];

/// The work of a run.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Data packets of all flows.
    pub packets: u64,
    /// Events of the engine.
    pub events: u64,
}

/// A flow at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Seconds since the run began.
    pub time_s: f64,
    /// Which flow of the run, from 0.
    pub flow: u32,
    /// Congestion window, in bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold; absent until one is set.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes sent that are neither acknowledged nor deemed lost.
    pub inflight_bytes: u64,
    /// The newest round-trip sample.
    pub rtt_s: Option<f64>,
    /// Bytes the receiver's application has.
    pub delivered_bytes: u64,
    /// Bytes waiting at the bottleneck, on the wire, of all flows.
    pub queue_bytes: u64,
    /// The pacing rate, in force or not.
    pub pacing_bps: Option<u64>,
    /// The phase of the controller, such as `slow-start`.
    pub phase: &'static str,
    /// What keeps the sender from sending more ([`LimitedBy::name`](crate::tcp::sender::LimitedBy::name)).
    pub limited_by: &'static str,
    /// Internal values of the startup.
    pub gauges: BTreeMap<&'static str, f64>,
}

/// An event of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEvent {
    /// When.
    pub at: Instant,
    /// Which flow of the run, from 0.
    pub flow: u32,
    /// What: `exit`, `resumed`, `restart`, `loss`, `recovered`, `undone`, `timeout`, `probe`, `mark`, `drop`
    /// of data, `ack-drop` of any other packet, `handshake`.
    pub what: &'static str,
    /// The reason of an exit, the cause of a drop, what happened to a SYN or SYN-ACK.
    pub why: Option<String>,
    /// Which link of the path dropped the data, from 1; `None` on a path of one link, and of other events.
    pub link: Option<u8>,
}

/// A packet at the interface of one end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When it left or reached that end.
    pub at: Instant,
    /// Which flow of the run, from 0.
    pub flow: u32,
    /// At which end: 0 is the server, which listens; 1 the client, which calls.
    pub end: u8,
    /// True if it leaves that end.
    pub leaves: bool,
    /// The segment that it carries.
    pub segment: Segment,
}

/// Samples and events of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Samples, in order of time.
    pub samples: Vec<Sample>,
    /// Events, in order of time.
    pub events: Vec<FlowEvent>,
}
