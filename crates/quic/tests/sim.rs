//! Whole downloads over QUIC at virtual time.

use slowstart_lab::engine::Sampling;
use slowstart_lab::record::Row;
use slowstart_lab::run::{Job, Outcome};
use slowstart_lab::scenario::{Study, StudyText};
use slowstart_quic::sim;

fn study(path: &str, startup: &str, size: &str) -> Study {
    let text = StudyText {
        path: path.into(),
        startups: vec![startup.into()],
        size: Some(size.into()),
        runs: Some(1),
        ..StudyText::default()
    };
    Study::check(&text, None).unwrap()
}

fn run(path: &str, startup: &str, size: &str) -> Outcome {
    sim::run(&study(path, startup, size), Job { contender: 0, run: 0 }, Sampling::EachAck, true).unwrap()
}

fn row(path: &str, startup: &str, size: &str) -> Row {
    run(path, startup, size).row
}

#[test]
fn standard_slow_start_doubles_until_the_queue_overflows() {
    // 50 Mbit/s and 50 ms: 260 packets of 1228 bytes fill the path, and with a queue of one BDP it overflows at 520.
    let o = run("rate=50Mbit rtt=50ms queue=1bdp ack_jitter=0", "standard", "20MB");
    let exit = o.row.exit.expect("it leaves by loss");
    assert_eq!(exit.reason, "loss");
    assert_eq!(o.row.class.name(), "late");
    let packets = exit.detected_cwnd_bytes / 1200;
    assert!((520..1100).contains(&packets), "{packets}");
    assert!(o.row.completion_s.is_some_and(|s| s < 6.0), "{:?}", o.row.completion_s);
    assert!(o.row.retransmitted_packets >= o.row.lost_packets, "every drop is repaired");
    // The window doubles each round trip: 10 packets grow to at least 500 within six.
    let at = |t: f64| o.trace.samples.iter().rfind(|s| s.time_s <= t).map_or(0, |s| s.cwnd_bytes / 1200);
    assert!(at(0.13) <= 20 && at(0.42) >= 300, "{} {}", at(0.13), at(0.42));
}

#[test]
fn hystart_leaves_at_the_choke_point() {
    let row = row("rate=50Mbit rtt=50ms queue=2bdp ack_jitter=0", "hystart", "10MB");
    assert_ne!(row.exit.expect("a train or a delay").reason, "loss");
    assert_eq!(row.class.name(), "choke-point");
    assert_eq!(row.startup_lost_packets, 0);
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let text = StudyText {
        path: "rate=20Mbit rtt=40ms queue=1bdp jitter=2ms loss=0.1%".into(),
        startups: vec!["search".into(), "bbr".into(), "careful-resume".into()],
        size: Some("3MB".into()),
        runs: Some(2),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).unwrap();
    let all = || -> Vec<String> {
        study
            .jobs()
            .into_iter()
            .map(|j| serde_json::to_string(&sim::run(&study, j, Sampling::Off, false).unwrap().row).unwrap())
            .collect()
    };
    assert_eq!(all(), all());
}

#[test]
fn every_startup_that_quic_carries_completes() {
    for entry in slowstart::registry::all() {
        if sim::NOT_CARRIED.iter().any(|(name, _)| *name == entry.name) {
            continue;
        }
        let row = row("rate=20Mbit rtt=40ms queue=1bdp", entry.name, "2MB");
        assert!(row.completion_s.is_some(), "{}", entry.name);
        assert!(row.peak_inflight_bytes >= 12_000, "{}", entry.name);
    }
}

#[test]
fn a_remembered_path_is_used() {
    let first = row("rate=50Mbit rtt=100ms queue=1bdp", "standard", "5MB").completion_s.unwrap();
    let second = row("rate=50Mbit rtt=100ms queue=1bdp", "careful-resume", "5MB").completion_s.unwrap();
    assert!(second < first - 0.1, "{second} {first}");
}

#[test]
fn what_quic_cannot_carry_is_refused() {
    let error = |startup: &str| sim::check(&study("lte", startup, "1MB")).unwrap_err().to_string();
    assert_eq!(
        error("quick-start"),
        "startup: quick-start cannot run over QUIC: it needs routers that grant a rate in the handshake"
    );
    let text = StudyText { path: "lte".into(), against: vec!["cubic@-1s".into()], ..StudyText::default() };
    let beside = Study::check(&text, None).unwrap();
    assert!(sim::check(&beside).unwrap_err().to_string().starts_with("against: "));
}

#[test]
fn the_stack_of_the_rows_is_the_one_that_is_built() {
    let lock = include_str!("../../../Cargo.lock");
    let version = sim::STACK.split(' ').nth(1).unwrap();
    assert!(lock.contains(&format!("name = \"noq-proto\"\nversion = \"{version}\"")));
}
