//! The speed of the simulator: prints one JSON line per case, with figures of this run on this machine.
//!
//! `cargo bench -p slowstart-sim --bench speed [-- CASE]`. CPU time is that of the process, which other load
//! disturbs less than wall-clock time; peak memory is that of the process so far. For docs/dev/engine.md.

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
}

const CASES: [Case; 7] = [
    Case {
        name: "cubic-1g-100ms",
        path: "rate=1Gbit rtt=100ms queue=1bdp",
        startup: "hystart",
        flows: 1,
        seconds: 60,
    },
    Case {
        name: "geo",
        path: "rate=144Mbit rtt=600ms queue=36MB",
        startup: "hystart",
        flows: 1,
        seconds: 60,
    },
    Case {
        name: "100-flows",
        path: "rate=1Gbit rtt=50ms queue=1bdp",
        startup: "hystart",
        flows: 100,
        seconds: 30,
    },
    Case {
        name: "100-flows-fq-codel",
        path: "rate=1Gbit rtt=50ms queue=fq_codel",
        startup: "hystart",
        flows: 100,
        seconds: 30,
    },
    Case {
        name: "overshoot-geo",
        path: "rate=144Mbit rtt=600ms queue=36MB",
        startup: "standard",
        flows: 1,
        seconds: 60,
    },
    // The cost per packet must not grow with the window: 100 packets in flight, then 30,000.
    Case {
        name: "window-100",
        path: "rate=1Gbit rtt=1ms queue=20packets",
        startup: "hystart",
        flows: 1,
        seconds: 10,
    },
    Case {
        name: "window-30000",
        path: "rate=1Gbit rtt=300ms queue=5000packets",
        startup: "standard",
        flows: 1,
        seconds: 60,
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
        recorded: i == 0,
        remembered: None,
        impact_from: None,
    }
}

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    for case in CASES.iter().filter(|c| only.is_empty() || only.iter().any(|o| o == c.name)) {
        let spec = PathSpec::load(case.path, None).expect("a path");
        let flows = (0..case.flows).map(|i| flow(case, i)).collect();
        let before = cpu_s();
        let mut repeats = 0;
        let mut packets = 0;
        let mut events = 0;
        // Ticks are coarse: repeat until CPU time is at least one second.
        let flows: Vec<FlowSpec> = flows;
        while cpu_s() - before < 1.0 {
            let mut engine =
                Engine::new(spec.build(1), flows.clone(), 1, Sampling::Every(Span::millis(10)), false);
            engine.run(Instant(case.seconds * 1_000_000_000));
            packets += engine.cost.packets;
            events += engine.cost.events;
            repeats += 1;
        }
        let cpu = cpu_s() - before;
        let line = json!({
            "case": case.name,
            "packets": packets / repeats,
            "events": events / repeats,
            "repeats": repeats,
            "cpu_s": cpu / repeats as f64,
            "ns_per_packet": cpu * 1e9 / packets as f64,
            "packets_per_s": packets as f64 / cpu,
            "peak_rss_bytes": peak_rss_bytes(),
        });
        println!("{line}");
    }
}
