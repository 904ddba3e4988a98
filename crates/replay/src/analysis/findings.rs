//! What the analysis of a connection finds.

use super::{Period, Snapshot};
use crate::infer::{ExitEstimate, NoExit};
use crate::naming::Named;
use crate::observer::{Moment, Prediction};
use crate::packets::PacketLog;
use crate::transfer::ExitClass;
use slowstart::units::{Bytes, Instant, Span};
use slowstart_study::record::Class;
use slowstart_study::stats;

/// What a startup would have done, with its exit class.
#[derive(Clone, Debug)]
pub struct StartupResult {
    /// Name and parameters, as given by the user.
    pub label: String,
    /// Class of its exit.
    pub class: Class,
    /// Its exit; `None` if it did not exit while the prediction was valid.
    pub exit: Option<Moment>,
    /// The prediction in full.
    pub prediction: Prediction,
}

/// Result of the analysis of one connection in one direction. Times count from the connection's first packet.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Payload of a full segment.
    pub mss: Bytes,
    /// The initial window, in bytes: the most in flight before the first acknowledgement.
    pub iw: Bytes,
    /// The observed end of slow start, or why none is reported.
    pub observed: Result<ExitEstimate, NoExit>,
    /// True if that answer is certain: growth was seen until the exit, and congestion avoidance after it, or the
    /// file states the exit; and so is its class, if it has one.
    pub certain: bool,
    /// Class of that exit; unknown if no rate and no round trips show whether the path was full.
    pub class: ExitClass,
    /// The heuristic that gives `capacity`: `latency` or `throughput`.
    pub heuristic: &'static str,
    /// When the path was full, by that heuristic; `None` if it was not seen full.
    pub capacity: Option<Instant>,
    /// When the path was full, by delay.
    pub by_latency: Option<Instant>,
    /// When the path was full, by throughput: the first interval that reached the median.
    pub by_throughput: Option<Instant>,
    /// Median throughput, bits per second.
    pub median_bps: Option<f64>,
    /// Throughput in intervals of one minimum RTT: begin of the interval and bytes per second.
    pub rates: Vec<(Instant, f64)>,
    /// When the first loss was detected.
    pub first_loss: Option<Instant>,
    /// The least RTT sample; `None` if there is no sample.
    pub min_rtt: Option<Span>,
    /// The greatest RTT sample; `None` if there is no sample.
    pub max_rtt: Option<Span>,
    /// Maximum RTT before the first loss was detected.
    pub rtt_before_loss: Option<Span>,
    /// What each startup would have done, in the order of the candidates.
    pub startups: Vec<StartupResult>,
    /// Which startup the sender used; `None` if too little is seen to compare any.
    pub named: Option<Named>,
    /// Periods in which something other than cwnd limited the sender: the first 256.
    pub periods: Vec<Period>,
    /// What was sent and acknowledged, if requested.
    pub packets: PacketLog,
    /// Snapshots for charts, if requested.
    pub snapshots: Vec<Snapshot>,
    /// Time of the last event.
    pub last: Instant,
    /// Payload bytes delivered in all.
    pub delivered: Bytes,
    /// When the window that the file states first fell; `None` if it never did, or if the file states none.
    pub window_fell: Option<Instant>,
    /// The most bytes that were in flight; `None` if the file has no sent packets.
    pub peak_inflight: Option<Bytes>,
    /// Why its round-trip times are not those of the path; no path can then be fitted.
    pub no_path: Option<NoExit>,
}

impl Findings {
    /// The least that an early exit cost, in seconds: the time that the path at the rate that it had when it was full
    /// would have saved on what was delivered between the exit and then. `None` if the exit was not early, or if the
    /// path was not seen full after it: what it carries is then not known.
    pub fn cost_s(&self) -> Option<f64> {
        let exit = self.observed.ok().filter(|_| self.class == ExitClass::Early)?;
        let full = self.capacity.filter(|c| *c > exit.at)?;
        let width = self.rates.get(1).map(|r| r.0.since(self.rates[0].0))?.as_secs_f64();
        let carried: Vec<f64> = self.rates.iter().filter(|r| r.0 >= full).map(|r| r.1).collect();
        let rate = stats::quantile(&carried, 0.5).filter(|r| *r > 0.0)?;
        let before = self.rates.iter().filter(|r| r.0 >= exit.at && r.0 < full);
        let cost: f64 = before.map(|r| width * (1.0 - r.1 / rate)).sum();
        (cost > 0.0).then_some(cost)
    }
}
