//! Paths of several links: a parking lot, cross traffic at one of two links, flows of different round-trip times.

mod common;

use common::{flow, named};
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::{Direction, Engine, FlowSpec, Sampling};
use slowstart_sim::path::{Cause, Links, PathSpec};
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

fn bulk(avoidance: &str) -> FlowSpec {
    let avoidance = named::avoidance(avoidance);
    FlowSpec { avoidance, recorded: false, ..flow("hystart", Profile::LINUX_6_18) }
}

fn across(links: &str, spec: FlowSpec) -> FlowSpec {
    FlowSpec { links: Links::parse(links).expect("links"), ..spec }
}

/// Mbit/s on the wire from `from` to `to`, in seconds.
fn rate(e: &Engine, flow: usize, from: usize, to: usize) -> f64 {
    let bins = e.flows[flow].truth.bins();
    let bytes: u64 = bins.iter().skip(from * 100).take((to - from) * 100).map(|b| u64::from(*b)).sum();
    bytes as f64 * 8e-6 / (to - from) as f64 * 1500.0 / 1448.0
}

/// Links that hold nothing back change nothing but the round-trip time: packets arrive no later than two packet times
/// of the fast link after those of the slow link alone.
#[test]
fn the_slower_of_two_links_decides_wherever_it_lies() {
    let alone = "rate=20Mbit rtt=60ms queue=1bdp ack_jitter=0";
    let pairs = [
        "rate=1Gbit rtt=25ms queue=infinite ack_jitter=0 then=\"rate=20Mbit rtt=35ms queue=1bdp\"",
        "rate=20Mbit rtt=25ms queue=1bdp ack_jitter=0 then=\"rate=1Gbit rtt=35ms queue=infinite\"",
        "rate=1Gbit rtt=20ms ack_jitter=0 then=\"rate=20Mbit rtt=20ms\" then=\"rate=1Gbit rtt=20ms\"",
    ];
    for startup in ["standard", "hystart", "search"] {
        let of = |line: &str| {
            let spec = FlowSpec { recorded: false, ..common::sized(startup, Profile::LINUX_6_18, 5_000_000) };
            let mut e = start(line, vec![spec], 1);
            e.complete(Instant::ZERO + Span::secs(60));
            let f = &e.flows[0];
            let exit = f.truth.exit.expect("an exit");
            let counters = f.ends[f.sender()].tx.counters;
            let took = f.truth.completed.expect("complete").since(Instant::ZERO);
            (f.truth.dropped, exit.detected_cwnd.0, counters.peak_inflight, f.truth.capacity, took)
        };
        let (dropped, cwnd, inflight, capacity, took) = of(alone);
        for pair in pairs {
            let two = of(pair);
            assert!(two.0.abs_diff(dropped) <= 1, "{startup} over {pair}: {} and {dropped} dropped", two.0);
            assert!(
                two.1.abs_diff(cwnd) <= 1448 && two.2.abs_diff(inflight) <= 1448,
                "{startup} over {pair}"
            );
            let later = two.4.0.abs_diff(took.0);
            assert!(later < 3_000_000, "{startup} over {pair}: {later} ns");
            let at = |c: Option<Instant>| c.expect("full").0;
            assert!(at(two.3).abs_diff(at(capacity)) < 2_000_000, "{startup} over {pair}");
        }
    }
}

/// The parking lot: a flow over both links, and one over each. Reno's throughput is proportional to 1 / (RTT sqrt(p))
/// with a loss rate of p (Mathis et al., 1997). With the same p at each link, the long flow should get 1 / sqrt(2) of
/// the goodput of the others if all have one RTT, and half of that if its RTT is twice theirs. It gets less, since full
/// queues do not drop at random; how much less differs by a factor of two between runs, so the mean of eight counts.
#[test]
fn in_a_parking_lot_the_long_flow_gets_less_and_both_links_are_full() {
    let path = "rate=20Mbit rtt=20ms queue=1bdp then=\"rate=20Mbit rtt=20ms queue=1bdp\"";
    // With a delay of their own the flows over one link have the round-trip time of the long one.
    let (none, same) = (Span::ZERO, Span::millis(10));
    for (avoidance, extra, least, most) in [
        ("reno", none, 0.2, 0.36),
        ("reno", same, 0.45, 0.71),
        ("cubic", none, 0.3, 0.5),
        ("cubic", same, 0.5, 0.71),
    ] {
        let shares = (1..=8).map(|seed| {
            let cross = |links| FlowSpec { extra_delay: extra, ..across(links, bulk(avoidance)) };
            let mut e = start(path, vec![bulk(avoidance), cross("1"), cross("2")], seed);
            e.run(Instant::ZERO + Span::secs(110));
            let [long, first, second] = [0, 1, 2].map(|f| rate(&e, f, 20, 110));
            for (link, cross) in [(1, first), (2, second)] {
                let used = (long + cross) / 20.0;
                assert!((0.97..1.001).contains(&used), "{avoidance}: link {link} {used}");
            }
            2.0 * long / (first + second)
        });
        let shares: Vec<f64> = shares.collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        println!("{avoidance}, {extra:?} more: {mean:.2} of a short one's goodput, runs {shares:.2?}");
        assert!((least..most).contains(&mean), "{avoidance}, {extra:?} more: {shares:?}");
    }
}

#[test]
fn cross_traffic_at_the_second_link_drops_there() {
    let path = "rate=100Mbit rtt=20ms queue=1bdp then=\"rate=50Mbit rtt=30ms queue=100packets\"";
    let e = run(path, vec![bulk("cubic"), across("2", bulk("cubic"))], 20);
    let seen = [0, 1].map(|flow| e.path().forward.at_links(flow));
    for (flow, seen) in seen.iter().enumerate() {
        let truth = &e.flows[flow].truth;
        assert!(truth.dropped > 0 && seen[0].dropped_by.iter().sum::<u64>() == 0, "flow {flow}: {seen:?}");
        assert_eq!(seen[1].dropped_by, truth.dropped_by);
        assert_eq!(truth.dropped_by[Cause::QueueFull as usize], truth.dropped);
        assert!(seen[1].peak_queue_delay > Span::millis(20), "flow {flow}: {seen:?}");
    }
    assert_eq!(seen[1][0].peak_queue_delay, Span::ZERO, "it never was there");
}

/// The least RTT is that of the links that a flow crosses, and of its own delay.
#[test]
fn each_flow_has_the_round_trip_time_of_its_links() {
    let path =
        "rate=100Mbit rtt=20ms ack_jitter=0 then=\"rate=50Mbit rtt=30ms\" then=\"rate=80Mbit rtt=40ms\"";
    let late = |i: u64, spec: FlowSpec| FlowSpec {
        start: Instant::ZERO + Span::secs(i),
        app: slowstart_sim::app::Kind::Bulk { size: Some(20_000) },
        ..spec
    };
    let longer = |spec| FlowSpec { extra_delay: Span::millis(15), ..spec };
    let flows = ["1", "2", "3", "1-2", "2-3", "1-3"].map(|links| across(links, bulk("cubic")));
    let mut all: Vec<FlowSpec> =
        flows.into_iter().chain([longer(across("2", bulk("cubic"))), bulk("cubic")]).collect();
    for (i, spec) in all.iter_mut().enumerate() {
        *spec = late(i as u64, spec.clone());
    }
    let e = run(path, all, 20);
    let min =
        |f: &slowstart_sim::engine::Flow| f.ends[f.sender()].tx.rtt().min().expect("samples").0 / 1_000_000;
    assert_eq!(e.flows.iter().map(min).collect::<Vec<_>>(), [20, 30, 40, 50, 70, 90, 60, 90]);
}

/// Two flows at one link: of Reno the one of half the RTT gets about twice as much or more.
#[test]
fn flows_of_different_round_trip_times_share_a_link() {
    let path = "rate=20Mbit rtt=20ms queue=20packets";
    let longer = FlowSpec { extra_delay: Span::millis(20), ..bulk("reno") };
    let e = run(path, vec![bulk("reno"), longer], 200);
    let [short, long] = [0, 1].map(|f| rate(&e, f, 20, 200));
    println!("{short:.2} at 20 ms, {long:.2} Mbit/s at 60 ms");
    assert!(short > 1.5 * long && short + long > 18.0, "{short} and {long}");
}

/// One end is ahead of the other while an engine runs, and nothing shows it.
#[test]
fn the_order_of_time_does_not_depend_on_batches() {
    for (first, second) in [
        ("queue=50packets", "queue=40packets"),
        ("queue=fq_codel", "queue=50packets"),
        ("queue=50packets", "queue=pie loss=0.1%"),
        ("queue=60packets reorder=25%,50%,gap=3,delay=4ms", "queue=codel jitter=2ms"),
        ("netem=delay 5ms 2ms", "second_route=10%,3ms"),
        ("outage=at=1s,for=100ms,every=2s,queue=flushed", "schedule=0s:30Mbit,1s:10Mbit,3s:40Mbit"),
    ] {
        let supply = if second.contains("schedule") { "" } else { "rate=25Mbit" };
        let line = format!(
            "rate=30Mbit rtt=20ms {first} ack_rate=3Mbit then=\"{supply} rtt=1us {second}\" then=\"rate=29Mbit rtt=9ms\""
        );
        let flows = || {
            let later = |spec| FlowSpec { start: Instant(700_000_000), extra_delay: Span::millis(7), ..spec };
            let up = FlowSpec { direction: Direction::Upload, ..bulk("cubic") };
            vec![
                bulk("cubic"),
                across("2", later(bulk("reno"))),
                across("1", bulk("cubic")),
                across("2-3", bulk("cubic")),
                across("3", later(bulk("cubic"))),
                up,
            ]
        };
        let end = Instant::ZERO + Span::secs(4);
        let (mut batched, mut ordered) = (start(&line, flows(), 3), start(&line, flows(), 3));
        batched.run(end);
        ordered.run_until(end, |_| false);
        for (i, (a, b)) in batched.flows.iter().zip(&ordered.flows).enumerate() {
            assert!(a.delivered() > 20_000, "{line}: flow {i}");
            assert_eq!((a.truth.bins(), a.truth.dropped), (b.truth.bins(), b.truth.dropped), "{line}");
        }
        assert_eq!(batched.cost.events, ordered.cost.events);
    }
}
