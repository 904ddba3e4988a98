//! Dumbbell topologies for ns-3 and the simulator: the same cases, simulated with ns-3's rules (profile
//! `ns3`, `hystart-ns3`).
//!
//! Both are compared up to two round trips after the startup ended, and not after the first loss that a
//! sender has detected, because ns-3's recovery is not a reference: it starts with a burst that proportional
//! rate reduction does not send, and a large loss nearly always leads to a timeout where Linux recovers
//! without one.

use serde::{Deserialize, Serialize};
use slowstart::avoidance;
use slowstart::startup::StartupEntry;
use slowstart::units::{Instant, Span};
use slowstart::view::Growth;
use slowstart_sim::app::Kind;
use slowstart_sim::engine::{Direction, Engine, Flow, FlowSpec, Sampling};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::stats::median;

/// One dumbbell topology, and the flows over it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Case {
    /// The name of the case.
    #[serde(rename = "case")]
    pub(crate) name: String,
    /// The class of ns-3.
    pub(crate) congestion_control: &'static str,
    /// The startup of the simulator that does the same.
    pub(crate) startup: &'static str,
    /// The rate of the bottleneck's device.
    pub(crate) rate_bps: u64,
    /// The propagation delay, round trip.
    pub(crate) rtt_s: f64,
    /// The queue limit of the bottleneck.
    pub(crate) queue_bytes: u64,
    /// The payload of a segment.
    pub(crate) mss_bytes: u32,
    /// The number of senders; each starts one millisecond after the previous one.
    pub(crate) flows: u32,
    /// The end of the run.
    pub(crate) duration_s: f64,
}

/// The result of a case in ns-3 or in the simulator.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Seen {
    /// Packets dropped by the bottleneck's queue.
    pub(crate) drops: u64,
    /// Data delivered to the applications.
    pub(crate) delivered_bytes: u64,
    /// Data packets offered to the bottleneck.
    pub(crate) packets: u64,
    /// What was seen of each flow.
    pub(crate) flows: Vec<SeenFlow>,
}

/// The result of a flow.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SeenFlow {
    /// The time at which ssthresh was first set: the end of the startup. Negative if it was not set.
    pub(crate) exit_s: f64,
    /// The window at that time, in segments.
    pub(crate) exit_packets: f64,
}

impl Seen {
    /// The medians over the flows whose startup ended: the time, and the window.
    pub(crate) fn exit(&self) -> Option<(f64, f64)> {
        let of = |what: fn(&SeenFlow) -> f64| {
            let left: Vec<f64> = self.flows.iter().filter(|f| f.exit_s >= 0.0).map(what).collect();
            median(&left).map(|m| m.mid)
        };
        Some((of(|f| f.exit_s)?, of(|f| f.exit_packets)?))
    }
}

/// Bytes that PPP adds to an IP packet.
const PPP: u64 = 2;
/// Header bytes of a packet: IP, TCP and timestamps.
const HEADERS: u64 = 52;

impl Case {
    /// A case of one flow, without an end.
    fn new(
        case: &str,
        congestion_control: &'static str,
        rate_bps: u64,
        rtt_s: f64,
        queue_bytes: u64,
    ) -> Self {
        Self {
            name: case.into(),
            congestion_control,
            startup: if congestion_control == "TcpCubic" { "hystart-ns3" } else { "standard" },
            rate_bps,
            rtt_s,
            queue_bytes,
            mss_bytes: 1448,
            flows: 1,
            duration_s: 60.0,
        }
    }

    /// All cases, each with its end.
    ///
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![
            Self::new("100 Mb/s, 100 ms, CUBIC", "TcpCubic", 100_000_000, 0.1, 1_250_000),
            Self::new("100 Mb/s, 100 ms, Reno", "TcpLinuxReno", 100_000_000, 0.1, 1_250_000),
            Self::new("100 Mb/s, 100 ms, NewReno", "TcpNewReno", 100_000_000, 0.1, 1_250_000),
            Self::new("1 Gb/s, 100 ms, CUBIC", "TcpCubic", 1_000_000_000, 0.1, 12_500_000),
            Self::new("GEO 144 Mb/s, 600 ms, CUBIC", "TcpCubic", 144_000_000, 0.6, 36_000_000),
            Self {
                flows: 100,
                ..Self::new("100 flows, 1 Gb/s, 50 ms, CUBIC", "TcpCubic", 1_000_000_000, 0.05, 6_250_000)
            },
        ];
        // The networks of the ESS paper, Table 1: packets of 400 bytes, a queue of one BDP.
        for (rtt_ms, mbit) in [(12, 10), (22, 5), (22, 10), (22, 20), (22, 50), (42, 10), (42, 20), (102, 10)]
        {
            for (name, class) in [("CUBIC", "TcpCubic"), ("NewReno", "TcpNewReno")] {
                let bdp = rtt_ms * mbit * 125;
                let case = format!("ESS {mbit} Mb/s, {rtt_ms} ms, {name}");
                let (rate, rtt) = (mbit * 1_000_000, rtt_ms as f64 / 1000.0);
                all.push(Self { mss_bytes: 340, ..Self::new(&case, class, rate, rtt, bdp) });
            }
        }
        for case in &mut all {
            case.duration_s = case.end();
        }
        all
    }

    /// The end of the comparison: two round trips after the startup ended, but before the first detected
    /// loss; just after that loss if it ended the startup.
    fn end(&self) -> f64 {
        let engine =
            self.run_until(self.duration_s, |e| e.flows.iter().all(|f| f.truth.first_loss.is_some()));
        let Some((exit_s, _)) = self.seen(&engine).exit() else { return self.duration_s };
        let margin = self.rtt_s / 100.0;
        let lost = engine.flows.iter().filter_map(|f| f.truth.first_loss).min();
        match lost.map(|t| Span(t.0).as_secs_f64() - margin) {
            Some(lost_s) if lost_s > exit_s => lost_s.min(exit_s + 2.0 * self.rtt_s),
            Some(_) => exit_s + margin + self.train_s(),
            None => exit_s + 2.0 * self.rtt_s,
        }
    }

    /// The transmission time of four packets at the bottleneck: a train of a doubling window.
    pub(crate) fn train_s(&self) -> f64 {
        4.0 * 8.0 * (u64::from(self.mss_bytes) + HEADERS) as f64 / self.rate_bps as f64
    }

    /// The bottleneck as a path of the simulator. As in ns-3 the sender connects, so its data takes the
    /// return direction.
    fn path(&self) -> String {
        let wire = u64::from(self.mss_bytes) + HEADERS;
        // The bytes that PPP adds count in rate and queue. The queue is stopped when another packet of the
        // largest size (the device's MTU, 1500 bytes) would not fit.
        let rate = self.rate_bps * wire / (wire + PPP);
        let packets = (self.queue_bytes.saturating_sub(1500)) / (wire + PPP) + 1;
        let rtt_us = (self.rtt_s * 1e6).round();
        format!(
            "rate=10Gbit rtt={rtt_us}us queue=infinite ack_rate={rate}bit ack_queue={packets}packets ack_jitter=0"
        )
    }

    fn flow(&self, i: u32) -> FlowSpec {
        let avoidance = if self.congestion_control == "TcpCubic" { "cubic" } else { "reno" };
        let growth = if self.congestion_control == "TcpNewReno" { Growth::PerAck } else { Growth::Bytes };
        let entry = StartupEntry::named(self.startup).map(|e| (e.make)());
        let avoidance = avoidance::REGISTRY.iter().find(|e| e.name == avoidance).map(|e| (e.make)());
        let (Some(startup), Some(avoidance)) = (entry, avoidance) else { unreachable!("in the registries") };
        FlowSpec {
            start: Instant(u64::from(i) * 1_000_000),
            direction: Direction::Upload,
            app: Kind::Bulk { size: None },
            startup: startup.into(),
            avoidance,
            profile: Profile { mss: self.mss_bytes, growth, ..Profile::NS3 },
            extra_delay: Span::ZERO,
            links: slowstart_sim::path::Links::ALL,
            recorded: false,
            impact_from: None,
            remembered: None,
        }
    }

    /// The simulator's result of the case.
    ///
    /// # Panics
    /// Never: the path is well formed.
    pub(crate) fn ours(&self) -> Seen {
        self.seen(&self.run_until(self.duration_s, |_| false))
    }

    fn run_until(&self, until_s: f64, stop: impl FnMut(&Engine) -> bool) -> Engine {
        let path = PathSpec::load(&self.path(), None).unwrap_or_else(|e| panic!("{e}"));
        let flows = (0..self.flows).map(|i| self.flow(i)).collect();
        let mut engine = Engine::new(path.build(1), flows, 1, Sampling::Off, false);
        engine.run_until(Instant((until_s * 1e9) as u64), stop);
        engine
    }

    fn seen(&self, engine: &Engine) -> Seen {
        let flow = |f: &Flow| {
            let exit = f.truth.exit;
            SeenFlow {
                exit_s: exit.map_or(-1.0, |e| Span(e.detected_at.0).as_secs_f64()),
                exit_packets: exit.map_or(0.0, |e| e.detected_cwnd.0 as f64 / f64::from(self.mss_bytes)),
            }
        };
        Seen {
            drops: engine.flows.iter().map(|f| f.truth.dropped).sum(),
            delivered_bytes: engine.flows.iter().map(Flow::delivered).sum(),
            packets: engine.cost.packets,
            flows: engine.flows.iter().map(flow).collect(),
        }
    }
}
