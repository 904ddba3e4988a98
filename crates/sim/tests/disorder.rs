//! Transfers over paths that lose in bursts, pause, reorder and duplicate.

mod common;

use common::sized;
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::{Engine, FlowSpec, Sampling};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::profile::Profile;

const PATHS: &[&str] = &[
    "rate=20Mbit rtt=40ms gemodel=0.5%,30%,80% ack_gemodel=2%,50%",
    "rate=20Mbit rtt=40ms handover=1s handover_step=20ms handover_loss=50%,for=30ms",
    "rate=20Mbit rtt=40ms fade=30%,for=100ms,every=700ms",
    "rate=20Mbit rtt=40ms outage=at=500ms,for=300ms,every=2s,queue=kept",
    "rate=20Mbit rtt=40ms outage=for=300ms,every=2s,queue=flushed",
    "rate=20Mbit rtt=40ms reorder=10%,25%,gap=3,delay=4ms ack_reorder=20%,delay=2ms",
    "rate=20Mbit rtt=40ms second_route=20%,5ms ack_second_route=30%,3ms",
    "rate=20Mbit rtt=40ms duplicate=2% ack_duplicate=2%",
    "rate=20Mbit rtt=40ms duplicate=50% reorder=50%,delay=15ms second_route=30%,40ms gemodel=1%,50%",
];

fn engine(path: &str, flows: Vec<FlowSpec>, seed: u64) -> Engine {
    let spec = PathSpec::load(path, None).unwrap_or_else(|e| panic!("{path}: {e}"));
    Engine::new(spec.build(seed), flows, seed, Sampling::Off, false)
}

/// What can be seen of a run.
fn result(e: &Engine) -> String {
    let each = e.flows.iter().map(|f| {
        let t = &f.truth;
        let sender = &f.ends[f.sender()].tx;
        format!(
            "{:?} {:?} {:?} {} {:?}",
            t.completed,
            t.first_drop,
            t.milestones,
            f.delivered(),
            sender.counters
        )
    });
    format!("{} {}", e.dropped, each.collect::<Vec<_>>().join("; "))
}

#[test]
fn every_byte_arrives_and_a_seed_is_a_run() {
    for path in PATHS {
        let run = |seed| {
            let mut e = engine(path, vec![sized("hystart", Profile::LINUX_6_18, 5_000_000)], seed);
            e.complete(Instant::ZERO + Span::secs(600));
            assert!(e.done() && e.flows[0].delivered() == 5_000_000, "{path}: {}", result(&e));
            result(&e)
        };
        assert_eq!(run(1), run(1), "{path}");
        assert_ne!(run(1), run(2), "{path}");
    }
}

#[test]
fn a_look_ahead_changes_nothing_where_packets_overtake() {
    for path in PATHS {
        // More than four delays of their own: arrivals are then pending in a heap, and the event of a packet
        // that was overtaken stays there.
        for extra in [1, 6] {
            let flows: Vec<FlowSpec> = (0..extra)
                .map(|i| FlowSpec {
                    extra_delay: Span::millis(3 * i),
                    ..sized("hystart", Profile::LINUX_6_18, 1_000_000)
                })
                .collect();
            let end = Instant::ZERO + Span::secs(60);
            let (mut ahead, mut in_order) = (engine(path, flows.clone(), 7), engine(path, flows, 7));
            ahead.run(end);
            in_order.run_until(end, |_| false);
            assert_eq!(result(&ahead), result(&in_order), "{path}, {extra} flows");
            assert!(ahead.done(), "{path}");
        }
    }
}

#[test]
fn a_kept_queue_loses_nothing_in_an_outage_and_a_flushed_one_does() {
    let drops = |queue: &str| {
        let path = format!("rate=20Mbit rtt=40ms queue=infinite outage=at=1s,for=100ms,queue={queue}");
        let mut e = engine(&path, vec![sized("hystart", Profile::LINUX_6_18, 5_000_000)], 1);
        e.run(Instant::ZERO + Span::secs(10));
        assert!(e.done(), "{queue}");
        (e.dropped, e.flows[0].truth.first_drop)
    };
    let (kept, flushed) = (drops("kept"), drops("flushed"));
    assert_eq!(kept.0, 0);
    assert!(flushed.0 > 0, "{flushed:?}");
    let at = flushed.1.map(|at| at.0 / 1_000_000);
    assert!(at.is_some_and(|ms| (1000..1100).contains(&ms)), "{flushed:?}");
}
