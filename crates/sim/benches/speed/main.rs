//! The speed of the simulator: prints one JSON line per case, with figures of this run on this machine.
//!
//! `cargo bench -p slowstart-sim --bench speed [-- CASE]`. CPU time is that of the process, which other load
//! disturbs less than wall-clock time; peak memory is that of the process so far. A case with a twin is
//! measured in turns with the [bare loop](bare), and `ratio` is the median of the ratios of time a packet.
//! With `--once` each case runs once, with `--bare` its twin does, for a count of instructions
//! (`ci/instructions.sh`).

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

mod bare;

use serde_json::json;
use slowstart::avoidance;
use slowstart::registry;
use slowstart::units::{Instant, Span};
use slowstart_sim::app::Kind;
use slowstart_sim::engine::{Direction, Engine, FlowSpec, Sampling};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::profile::Profile;

struct Case {
    name: &'static str,
    path: &'static str,
    startup: &'static str,
    flows: u64,
    seconds: u64,
    twin: Option<bare::Setup>,
}

/// The twin of a path of this rate in Mbit/s, round-trip time in ms and queue in packets.
const fn twin(mbit: u64, ms: u64, queue: u64, flows: usize, seconds: u64) -> bare::Setup {
    bare::Setup { rate: mbit * 1_000_000, rtt: ms * 1_000_000, queue, flows, seconds }
}

const CASES: [Case; 10] = [
    Case {
        name: "cubic-1g-100ms",
        path: "rate=1Gbit rtt=100ms queue=1bdp",
        startup: "hystart",
        flows: 1,
        seconds: 60,
        twin: Some(twin(1000, 100, 8333, 1, 60)),
    },
    Case {
        name: "geo",
        path: "rate=144Mbit rtt=600ms queue=36MB",
        startup: "hystart",
        flows: 1,
        seconds: 60,
        twin: Some(twin(144, 600, 24_000, 1, 60)),
    },
    // With drops of a gateway, a delay that varies, jitter and slots of the ACKs.
    Case { name: "geo-built-in", path: "geo", startup: "hystart", flows: 1, seconds: 60, twin: None },
    Case {
        name: "100-flows",
        path: "rate=1Gbit rtt=50ms queue=1bdp",
        startup: "hystart",
        flows: 100,
        seconds: 30,
        twin: Some(twin(1000, 50, 4166, 100, 30)),
    },
    Case {
        name: "100-flows-fq-codel",
        path: "rate=1Gbit rtt=50ms queue=fq_codel",
        startup: "hystart",
        flows: 100,
        seconds: 30,
        twin: None,
    },
    Case {
        name: "overshoot-geo",
        path: "rate=144Mbit rtt=600ms queue=36MB",
        startup: "standard",
        flows: 1,
        seconds: 60,
        twin: None,
    },
    // The cost per packet must not grow with the window: 10 packets in flight, 100, 30,000, and 100,000.
    Case {
        name: "window-10",
        path: "rate=60Mbit rtt=1ms queue=5packets",
        startup: "hystart",
        flows: 1,
        seconds: 30,
        twin: Some(twin(60, 1, 5, 1, 30)),
    },
    Case {
        name: "window-100",
        path: "rate=1Gbit rtt=1ms queue=20packets",
        startup: "hystart",
        flows: 1,
        seconds: 10,
        twin: Some(twin(1000, 1, 20, 1, 10)),
    },
    Case {
        name: "window-30000",
        path: "rate=1Gbit rtt=300ms queue=5000packets",
        startup: "standard",
        flows: 1,
        seconds: 60,
        twin: Some(twin(1000, 300, 5000, 1, 60)),
    },
    Case {
        name: "window-100000",
        path: "rate=10Gbit rtt=100ms queue=16000packets",
        startup: "standard",
        flows: 1,
        seconds: 10,
        twin: Some(twin(10_000, 100, 16_000, 1, 10)),
    },
];

/// User and system time of this process, seconds (`/proc/self/stat`, in ticks of 10 ms).
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks(11) + ticks(12)) / 100.0
}

/// Peak resident memory of this process, bytes.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}

fn flow(case: &Case, i: u64) -> FlowSpec {
    FlowSpec {
        start: Instant(i * 1_000_000),
        direction: Direction::Download,
        app: Kind::Bulk { size: None },
        startup: registry::named(case.startup).map(|e| e.algorithm).expect("a startup"),
        avoidance: (avoidance::REGISTRY[0].make)(),
        profile: Profile::LINUX_6_18_FQ,
        extra_delay: Span::ZERO,
        links: slowstart_sim::path::Links::ALL,
        recorded: i == 0,
        remembered: None,
        impact_from: None,
    }
}

/// Simulates a case once; returns the number of packets and of events.
fn simulate(case: &Case, spec: &PathSpec) -> (u64, u64) {
    let flows = (0..case.flows).map(|i| flow(case, i)).collect();
    let mut engine = Engine::new(spec.build(1), flows, 1, Sampling::Every(Span::millis(10)), false);
    engine.run(Instant(case.seconds * 1_000_000_000));
    (engine.cost.packets, engine.cost.events)
}

/// Nanoseconds of CPU time a packet, over repetitions of at least half a second: ticks are coarse.
fn ns_per_packet(mut simulate: impl FnMut() -> u64) -> f64 {
    let (before, mut packets) = (cpu_s(), 0);
    while cpu_s() - before < 0.5 {
        packets += simulate();
    }
    (cpu_s() - before) * 1e9 / packets as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Number of measurements of a case, each beside one of its twin.
const PAIRS: usize = 5;

fn main() {
    let (options, only): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let has = |name: &str| options.iter().any(|o| o == name);
    for case in CASES.iter().filter(|c| only.is_empty() || only.iter().any(|o| o == c.name)) {
        let spec = PathSpec::load(case.path, None).expect("a path");
        if has("--once") {
            println!("{}", json!({ "case": case.name, "packets": simulate(case, &spec).0 }));
            continue;
        }
        if has("--bare") {
            if let Some(setup) = case.twin {
                println!("{}", json!({ "case": case.name, "packets": bare::run(&setup).0 }));
            }
            continue;
        }
        let (packets, events) = simulate(case, &spec);
        let (mut times, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            let ns = ns_per_packet(|| simulate(case, &spec).0);
            times.push(ns);
            ratios.extend(case.twin.map(|setup| ns / ns_per_packet(|| bare::run(&setup).0)));
        }
        let ns = median(times);
        let line = json!({
            "case": case.name,
            "packets": packets,
            "events": events,
            "ns_per_packet": ns,
            "packets_per_s": 1e9 / ns,
            "ratio": case.twin.map(|_| median(ratios)),
            "peak_rss_bytes": peak_rss_bytes(),
        });
        println!("{line}");
    }
}
