//! Paths with queue disciplines, shapers and policers: rates, waits, shares between flows, and the order of
//! events.

mod common;

use common::flow;
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::{Engine, FlowSpec, Sampling};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::profile::Profile;

fn start(line: &str, flows: Vec<FlowSpec>, seed: u64) -> Engine {
    let spec = PathSpec::load(line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
    Engine::new(spec.build(seed), flows, seed, Sampling::Off, false)
}

fn run(line: &str, flows: Vec<FlowSpec>, secs: u64) -> Engine {
    let mut engine = start(line, flows, 1);
    engine.run(Instant::ZERO + Span::secs(secs));
    engine
}

fn bulk() -> FlowSpec {
    flow("hystart", Profile::LINUX_6_18)
}

/// Mbit/s of payload from `from` to `to`, in seconds.
fn rate(e: &Engine, flow: usize, from: usize, to: usize) -> f64 {
    let bins = e.flows[flow].truth.bins();
    let bytes: u64 = bins.iter().skip(from * 100).take((to - from) * 100).map(|b| u64::from(*b)).sum();
    bytes as f64 * 8e-6 / (to - from) as f64
}

#[test]
fn each_discipline_keeps_the_link_busy_with_a_short_queue() {
    for (queue, most_ms) in [
        ("1000packets", 260),
        ("codel", 40),
        ("fq_codel", 40),
        ("pie", 80),
        ("dualpi2", 40),
        ("fq", 25),
        ("\"red limit=1MB min=50kB max=150kB\"", 40),
    ] {
        let e = run(&format!("rate=50Mbit rtt=40ms queue={queue}"), vec![bulk()], 20);
        let (rate, truth) = (rate(&e, 0, 1, 20), &e.flows[0].truth);
        assert!((43.0..48.3).contains(&rate), "{queue}: {rate} Mbit/s");
        assert!(truth.peak_queue_delay < Span::millis(most_ms), "{queue}: {:?}", truth.peak_queue_delay);
        assert!(truth.dropped > 0, "{queue}");
    }
}

#[test]
fn one_flow_has_the_same_codel_with_and_without_its_own_queue() {
    let delivered =
        |queue| run(&format!("rate=50Mbit rtt=40ms queue={queue}"), vec![bulk()], 10).flows[0].delivered();
    assert_eq!(delivered("\"codel ecn limit=10240p\""), delivered("fq_codel"));
}

#[test]
fn fq_codel_gives_a_late_flow_its_share_at_once() {
    let late = || FlowSpec { start: Instant::ZERO + Span::secs(5), ..bulk() };
    let e = run("rate=50Mbit rtt=40ms queue=fq_codel", vec![bulk(), bulk(), late()], 20);
    for (flow, from) in [(0, 8), (1, 8), (2, 3)] {
        let rate = rate(&e, flow, from, from + 12);
        assert!((14.5..16.8).contains(&rate), "flow {flow}: {rate}");
    }
    // The late one never waits behind the others.
    assert!(e.flows[2].truth.peak_queue_delay < e.flows[0].truth.peak_queue_delay);
}

#[test]
fn a_policer_lets_a_burst_pass_and_then_drops_without_delay() {
    let e =
        run("rate=100Mbit rtt=30ms queue=200packets policer=\"rate=20Mbit burst=500kB\"", vec![bulk()], 20);
    let (first, later, truth) = (rate(&e, 0, 0, 1), rate(&e, 0, 5, 20), &e.flows[0].truth);
    assert!(first > 14.0 && (12.0..19.5).contains(&later), "{first} then {later} Mbit/s");
    assert!(truth.dropped > 20 && truth.peak_queue_delay < Span::millis(20), "{}", truth.dropped);
}

#[test]
fn a_shaper_sends_its_burst_at_the_rate_of_the_link() {
    let path = "rate=200Mbit rtt=20ms queue=1000packets shaper=\"rate=50Mbit burst=20MB\"";
    let e = run(path, vec![bulk()], 10);
    // 20 MB gained on at 50 Mbit/s and spent at 200: 1.07 s.
    let (first, later) = (rate(&e, 0, 0, 1), rate(&e, 0, 5, 10));
    assert!(first > 150.0 && (46.0..48.4).contains(&later), "{first} then {later} Mbit/s");
    let e = run(&path.replace("20MB", "20MB peak=100Mbit"), vec![bulk()], 10);
    assert!((80.0..97.0).contains(&rate(&e, 0, 0, 1)), "{}", rate(&e, 0, 0, 1));
}

#[test]
fn a_second_carrier_comes_with_the_backlog() {
    let path = "rate=100Mbit rtt=40ms queue=300packets";
    let e = run(path, vec![bulk()], 4);
    let aggregated = run(&format!("{path} second_carrier=\"share=80% backlog=40kB\""), vec![bulk()], 4);
    assert!(rate(&aggregated, 0, 0, 1) < rate(&e, 0, 0, 1));
    assert!(rate(&aggregated, 0, 2, 4) > 60.0, "{}", rate(&aggregated, 0, 2, 4));
}

#[test]
fn the_order_of_time_does_not_depend_on_batches() {
    for queue in ["fq_codel", "\"dualpi2 target=5ms\"", "\"red limit=1MB min=50kB max=150kB\""] {
        let line = format!(
            "rate=30Mbit rtt=20ms queue={queue} ack_rate=1Mbit ack_queue=\"codel target=2ms\" loss=0.1%"
        );
        let flows =
            || vec![bulk(), FlowSpec { start: Instant(700_000_000), extra_delay: Span::millis(7), ..bulk() }];
        let end = Instant::ZERO + Span::secs(4);
        let (mut batched, mut ordered) = (start(&line, flows(), 3), start(&line, flows(), 3));
        batched.run(end);
        ordered.run_until(end, |_| false);
        for (a, b) in batched.flows.iter().zip(&ordered.flows) {
            assert!(a.truth.dropped > 0, "{queue}");
            assert_eq!((a.truth.bins(), a.truth.dropped), (b.truth.bins(), b.truth.dropped), "{queue}");
        }
        assert_eq!(batched.cost.events, ordered.cost.events);
    }
}

#[test]
fn another_seed_hashes_and_draws_otherwise() {
    for queue in ["pie", "\"red limit=1MB min=50kB max=150kB\"", "\"fq_codel flows=2\""] {
        let line = format!("rate=30Mbit rtt=20ms ack_jitter=0 queue={queue}");
        let bins = |seed| {
            let flows = vec![bulk(), bulk(), bulk()];
            let mut e = start(&line, flows, seed);
            e.run(Instant::ZERO + Span::secs(3));
            e.flows.iter().map(|f| f.truth.bins()).collect::<Vec<_>>()
        };
        assert_eq!(bins(1), bins(1));
        assert!((2..6).any(|seed| bins(seed) != bins(1)), "{queue}");
    }
}
