//! Dumbbells for ns-3 and for us: the same cases, ours run with ns-3's own rules (profile `ns3`, `hystart-ns3`).
//!
//! Compared up to two round trips after the startup ended, and not past the first loss that a sender knows of: what
//! ns-3's recovery makes of one is no reference. It begins with a burst that our proportional rate reduction does not
//! send, and a timeout follows a large loss nearly always, where Linux repairs.

use crate::app::Kind;
use crate::engine::{Direction, Engine, Flow, FlowSpec, Sampling};
use crate::path::PathSpec;
use crate::stats::median;
use crate::tcp::profile::Profile;
use serde::{Deserialize, Serialize};
use slowstart::avoidance;
use slowstart::startup::StartupEntry;
use slowstart::units::{Instant, Span};
use slowstart::view::Growth;

/// One dumbbell.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Its name.
    pub case: String,
    /// The class of ns-3 ...
    pub congestion_control: &'static str,
    /// ... and the startup of ours that does the same.
    pub startup: &'static str,
    /// Of the bottleneck's device.
    pub rate_bps: u64,
    /// Propagation, both ways.
    pub rtt_s: f64,
    /// What may wait at the bottleneck.
    pub queue_bytes: u64,
    /// Payload of a segment.
    pub mss_bytes: u32,
    /// Senders; each begins a millisecond after the one before.
    pub flows: u32,
    /// When the run ends.
    pub duration_s: f64,
}

/// What one side saw of a case.
#[derive(Clone, Debug, Deserialize)]
pub struct Seen {
    /// Packets the bottleneck's queue refused.
    pub drops: u64,
    /// Data delivered to the applications.
    pub delivered_bytes: u64,
    /// Data packets offered to the bottleneck.
    pub packets: u64,
    /// Each flow.
    pub flows: Vec<SeenFlow>,
}

/// What one side saw of a flow.
#[derive(Clone, Debug, Deserialize)]
pub struct SeenFlow {
    /// When the threshold was first set: the end of the startup. Negative if it was not.
    pub exit_s: f64,
    /// The window then, in segments.
    pub exit_packets: f64,
}

impl Seen {
    /// The median over the flows whose startup ended: when, and at which window.
    pub fn exit(&self) -> Option<(f64, f64)> {
        let of = |what: fn(&SeenFlow) -> f64| {
            let left: Vec<f64> = self.flows.iter().filter(|f| f.exit_s >= 0.0).map(what).collect();
            median(&left).map(|m| m.mid)
        };
        Some((of(|f| f.exit_s)?, of(|f| f.exit_packets)?))
    }
}

/// Bytes that PPP adds to an IP packet.
const PPP: u64 = 2;
/// What a packet has beyond its payload: IP, TCP and timestamps.
const HEADERS: u64 = 52;

impl Case {
    /// Of one flow, without an end.
    fn new(
        case: &str,
        congestion_control: &'static str,
        rate_bps: u64,
        rtt_s: f64,
        queue_bytes: u64,
    ) -> Self {
        Self {
            case: case.into(),
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

    /// Every case, each with its end.
    ///
    pub fn all() -> Vec<Self> {
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

    /// Two round trips after the startup ended, but before the first loss is known; just after it, where that loss is
    /// what ended it.
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

    /// Four packets at the bottleneck: the trains in which a window doubles.
    pub fn train_s(&self) -> f64 {
        4.0 * 8.0 * (u64::from(self.mss_bytes) + HEADERS) as f64 / self.rate_bps as f64
    }

    /// The bottleneck in our words. The sender connects, as in ns-3, so its data takes the way back.
    fn path(&self) -> String {
        let wire = u64::from(self.mss_bytes) + HEADERS;
        // What PPP adds takes its share of rate and queue. A queue is stopped when another packet of the largest size
        // (the device's MTU, 1500 bytes) would not fit.
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
            recorded: false,
            impact_from: None,
            remembered: None,
        }
    }

    /// What our simulator sees of it.
    ///
    /// # Panics
    /// Never: the path is well formed.
    pub fn ours(&self) -> Seen {
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
