//! The recorded result of one run, from which measures are computed and charts are drawn.

use crate::bins::Ack;
use crate::web::WebResult;
use serde::Deserialize;
use slowstart_study::record::{EventRow, Row, Sample};
use std::sync::Arc;

/// A quantity that a page draws over time, one line for each startup.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// Bytes in flight, over time.
    Inflight,
    /// Bytes delivered, over time.
    Delivered,
    /// Samples of the round-trip time, over time.
    Rtt,
    /// The congestion window, over time.
    Window,
    /// The slow-start threshold, once it has a value.
    Threshold,
    /// The length of HyStart's ACK train.
    Train,
    /// Bytes in the queue of the bottleneck.
    Queue,
    /// The number of packets that the sender's interface refused and that the sender took as a congestion
    /// signal.
    Stalls,
}

/// The result of one run of one startup.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The name of the study that it is of.
    pub study: String,
    /// The startup as the experiment's file writes it.
    pub label: String,
    /// The number of the run, from 0.
    pub run: u32,
    /// One row for each flow; the first is the flow studied.
    pub rows: Vec<Row>,
    /// Bytes that arrived in each 10 ms since the flow's start, for each flow.
    pub bins: Vec<Vec<u32>>,
    /// Start of each flow, in seconds since the start of the run.
    pub starts: Vec<f64>,
    /// Start of the flow studied, in seconds since the start of the run.
    pub start_s: f64,
    /// Payload of a full segment, bytes.
    pub mss: f64,
    /// A full segment on the wire, bytes.
    pub packet: f64,
    /// Number of packets of the flow studied that the sender's interface refused.
    pub stalls: u64,
    /// Samples of the flow studied, one copy for the run and the startups that are evaluated offline over it.
    pub samples: Arc<Vec<Sample>>,
    /// Samples of each flow beside it that charts draw too: those that the study names, in the same
    /// direction.
    pub beside: Vec<Vec<Sample>>,
    /// Events of the flow studied.
    pub events: Vec<EventRow>,
    /// ACKs of the flow studied before its first loss was detected; empty unless the study keeps them.
    pub acks: Vec<Ack>,
    /// Charts to draw of this run.
    pub charts: Vec<ChartKind>,
    /// The result of a run of web clients. If present, the fields above are empty.
    pub web: Option<WebResult>,
}

impl RunResult {
    /// Payload that a flow delivered between two times of the run (seconds), bytes.
    pub fn delivered(&self, flow: usize, from: f64, to: f64) -> f64 {
        let (Some(bins), Some(start)) = (self.bins.get(flow), self.starts.get(flow)) else { return 0.0 };
        let within = |i: usize| (from..to).contains(&(start + i as f64 * 0.01));
        bins.iter().enumerate().filter(|(i, _)| within(*i)).map(|(_, b)| f64::from(*b)).sum()
    }

    /// Payload that all flows delivered between two times of the run (seconds), divided by what the link can
    /// carry.
    pub fn utilisation(&self, from: f64, to: f64) -> f64 {
        let bytes: f64 = (0..self.bins.len()).map(|i| self.delivered(i, from, to)).sum();
        bytes * 8.0 / (self.rows[0].rate_bps as f64 * (to - from))
    }
}
