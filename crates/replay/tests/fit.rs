//! A path fitted to the capture of a simulated run is the path of that run, within stated bounds.

use crate::common::{run, run_with};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::Sent;
use slowstart_replay::analysis::{Findings, Keep};
use slowstart_replay::fit::rate_over_time::{course, traces};
use slowstart_replay::fit::{Estimate, FittedPath, fit};
use slowstart_replay::open::Kind;
use slowstart_replay::packets::PacketLog;
use slowstart_replay::replay::{Options, read};
use slowstart_replay::wire;
use slowstart_sim::path::PathSpec;
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Study, StudyText};
use std::io::Cursor;

/// What the capture of a run at its server shows.
fn findings(o: &Outcome) -> Findings {
    let mut file = Vec::new();
    wire::write(&mut file, &o.trace.packets, 0).expect("a Vec takes everything");
    let options = Options { keep: Keep { packets: true, ..Keep::default() }, ..Options::default() };
    let report = read(Kind::Capture, Box::new(Cursor::new(file)), &options, |_| {}).expect("a capture");
    let t = report.transfers.into_iter().max_by_key(|t| t.row.bytes).expect("a transfer");
    t.findings.expect("asked for")
}

/// The path fitted to it.
fn fitted(o: &Outcome) -> FittedPath {
    fit(&findings(o)).expect("a path")
}

#[test]
fn a_rate_that_changes_is_followed() {
    let path = "schedule=0s:4Mbit,2s:20Mbit,4s:8Mbit rtt=40ms queue=400kB ack_jitter=0";
    let f = findings(&run(path, "standard", Some("8MB")));
    let c = course(&f, fit(&f).expect("a path").base_rtt_s.value).expect("a busy link");
    assert!(c.known() > 0.8, "{c:?}");
    // The first data leaves a round trip after the run begins. A step that holds a change has a rate between
    // both.
    for (from, to, rate) in [(0.4, 1.8, 4e6), (2.2, 3.8, 20e6), (4.2, 5.0, 8e6)] {
        let (mut start, mut seen) = (0.0, 0);
        for s in &c.steps {
            if start > from && s.until < to {
                assert!((s.low * 8.0 / rate - 1.0).abs() < 0.1 && s.high <= s.low * 1.001, "{rate}: {s:?}");
                seen += 1;
            }
            start = s.until;
        }
        assert!(seen > 5, "{rate}: {c:?}");
    }
    let again = traces(&[&c], 1);
    let bytes = again[0][0].lines().count() as f64 * 1500.0;
    assert!((bytes / 8e6 - 1.0).abs() < 0.15, "{bytes}: what the link carried, and the handshake");
}

/// More packets than are kept, with an ACK for every second one: after the last that is kept none are in flight.
#[test]
fn a_fit_of_a_long_transfer_ends_with_the_packets_that_are_kept() {
    let mut f = findings(&run("rate=1Gbit rtt=40ms queue=1bdp ack_jitter=0", "standard", Some("200kB")));
    let mut log = PacketLog::default();
    // The link is full, and its queue stands from the third round trip on.
    let rtt = |at: u64| Span(50_000_000 + 25_000_000 * at.min(150_000_000) / 150_000_000);
    for n in 1..=1_200_000_u64 {
        let at = Instant(n * 12_000);
        log.sent(&Sent { at, bytes: Bytes(1448), ..Sent::default() }, n * 1448);
        if n % 2 == 0 {
            log.acked(at + rtt(at.0), Bytes(n * 1448), Some(rtt(at.0)));
        }
    }
    (f.mss, f.packets, f.first_loss) = (Bytes(1448), log, None);
    let path = fit(&f).expect("a path");
    assert_eq!(path.notes, ["the fit is of the first million packets, 12.5 s"]);
    assert!((path.base_rtt_s.value / 0.05 - 1.0).abs() < 0.01, "{:?}", path.base_rtt_s);
}

#[test]
fn a_link_that_was_never_busy_has_no_rate_over_time() {
    let f = findings(&run("rate=1Gbit rtt=40ms queue=1bdp ack_jitter=0", "standard", Some("200kB")));
    let why = course(&f, 0.04).expect_err("nothing waited");
    assert!(why.contains("found no packet that waited"), "{why}");
}

#[test]
fn paths_without_and_with_jitter_are_fitted_again() {
    for (rate, rtt, queue, jitter) in [
        (20e6, 0.040, 100e3, 0.0),
        (100e6, 0.025, 300e3, 0.0),
        (5e6, 0.1, 60e3, 0.0),
        (20e6, 0.040, 100e3, 2.0),
        (100e6, 0.025, 500e3, 1.0),
        (5e6, 0.1, 90e3, 8.0),
        (2e6, 0.05, 60e3, 2.0),
    ] {
        let noise = if jitter > 0.0 { format!(" jitter={jitter}ms") } else { " ack_jitter=0".into() };
        let path = format!("rate={rate}bit rtt={}ms queue={queue}B{noise}", rtt * 1e3);
        let f = fitted(&run(&path, "standard", Some("12MB")));
        println!("{path}: {}", f.inline());
        assert!((f.rate_bps.value / rate - 1.0).abs() < 0.02, "{path}: {f:?}");
        assert!((f.base_rtt_s.value - rtt).abs() < 1e-3, "{path}: {f:?}");
        assert!((f.queue_bytes.value / queue - 1.0).abs() < 0.1 && f.queue_was_full(), "{path}: {f:?}");
        let found = f.jitter_s.as_ref().map_or(0.0, |j| j.value) * 1e3;
        assert!((found - jitter).abs() <= (jitter / 3.0).max(0.01), "{path}: {f:?}");
        assert_eq!(
            (&f.ack_aggregate_s, &f.rate_vary, &f.wave, &f.loss),
            (&None, &None, &None, &None),
            "{path}"
        );
    }
}

/// What a path is, where it can be known.
struct Truth {
    rate: f64,
    rtt: f64,
    queue: f64,
    slot: Option<f64>,
}

/// The captured run of slow start alone over a path, and what its path is. `size` is large enough for a full
/// link to be seen.
fn captured(path: &str, size: Option<&str>, number: u32) -> (Outcome, Truth) {
    let text = StudyText {
        path: path.to_string(),
        startups: vec!["standard".to_string()],
        runs: Some(number + 1),
        size: size.map(String::from),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).expect("a study");
    let job = Job { contender: 0, run: number };
    let o = study.capture(job);
    let spec = PathSpec::load(path, None).expect("a path");
    let facts = spec.draw(o.row.seed).facts();
    let slot = spec_slot(path);
    let truth = Truth {
        rate: facts.rate.0 as f64,
        rtt: facts.base_rtt.as_secs_f64(),
        queue: facts.buffer.expect("a limit").0 as f64,
        slot,
    };
    (o, truth)
}

/// The ACK slot that a path's file states.
fn spec_slot(path: &str) -> Option<f64> {
    let text = PathSpec::builtins().iter().find(|b| b.name == path)?.text;
    let line = text.lines().find_map(|l| l.strip_prefix("ack_aggregate = \""))?;
    Some(line.trim_end_matches("ms\"").parse::<f64>().expect("milliseconds") / 1e3)
}

fn within(e: &Estimate, truth: f64) -> bool {
    e.low <= truth && e.high.is_none_or(|h| truth <= h)
}

/// Rate within 3 %, base RTT within 1 ms or 2 %, the queue within 15 % where it overflowed, an ACK slot
/// within 1 ms.
#[test]
fn fixed_builtin_paths_are_fitted_again() {
    let fixed =
        ["fiber", "dsl", "cable", "transatlantic", "datacenter", "interface", "lost-synack", "granted"];
    for path in fixed {
        let (o, truth) = captured(path, None, 0);
        let f = fitted(&o);
        println!("{path}: {}", f.inline());
        assert!((f.rate_bps.value / truth.rate - 1.0).abs() < 0.03 && f.link_was_full(), "{path}: {f:?}");
        let off = (f.base_rtt_s.value - truth.rtt).abs();
        assert!(off < 1e-3 || off < 0.02 * truth.rtt, "{path}: {f:?}");
        assert_eq!(
            f.queue_was_full(),
            o.row.lost_packets > Some(0),
            "{path}: a queue is full if it dropped something"
        );
        assert!(
            !f.queue_was_full() || (f.queue_bytes.value / truth.queue - 1.0).abs() < 0.15,
            "{path}: {f:?}"
        );
        assert_eq!(f.ack_aggregate_s.is_some(), truth.slot.is_some(), "{path}: {f:?}");
        if let (Some(found), Some(slot)) = (&f.ack_aggregate_s, truth.slot) {
            assert!((found.value - slot).abs() < 1e-3, "{path}: {f:?}");
        }
        assert_eq!((&f.rate_vary, &f.wave, &f.random_drop, &f.loss), (&None, &None, &None, &None), "{path}");
    }
}

/// The path with waves and a gateway that drops at random above 18 MB.
#[test]
fn waves_and_random_drops_are_told_from_rate_and_queue() {
    let (o, truth) = captured("geo-144", Some("700MB"), 0);
    let f = fitted(&o);
    println!("{}", f.inline());
    assert!((f.rate_bps.value / truth.rate - 1.0).abs() < 0.03, "{f:?}");
    assert!((f.base_rtt_s.value / truth.rtt - 1.0).abs() < 0.02, "{f:?}");
    let wave = f.wave.as_ref().expect("waves of 60 ms every 2 s");
    assert!((wave.amplitude_s.value / 0.06 - 1.0).abs() < 0.2, "{f:?}");
    assert!((wave.period_s.value / 2.0 - 1.0).abs() < 0.02, "{f:?}");
    let drop = f.random_drop.as_ref().expect("25 % above 18 MB");
    assert!((drop.share.value / 0.25 - 1.0).abs() < 0.2, "{f:?}");
    assert!((drop.above_bytes.value / 18e6 - 1.0).abs() < 0.15, "{f:?}");
    assert!(
        f.queue_bytes.value <= truth.queue && !f.queue_was_full(),
        "its limit of 36 MB was not reached: {f:?}"
    );
}

/// Random loss is distinguished from an overflow.
#[test]
fn random_loss_is_found_again() {
    let f = fitted(&run("rate=20Mbit rtt=30ms queue=2bdp loss=0.5%", "standard", Some("30MB")));
    println!("{}", f.inline());
    let loss = f.loss.as_ref().expect("loss of 0.5 %");
    assert!(within(loss, 0.005) && (loss.value / 0.005 - 1.0).abs() < 0.4, "{f:?}");
}

/// A sender limited by its application or by the receive window shows lower bounds.
#[test]
fn without_a_queue_rate_and_queue_are_lower_bounds() {
    let text = StudyText {
        path: "rate=100Mbit rtt=50ms queue=1bdp".to_string(),
        startups: vec!["standard".to_string()],
        runs: Some(1),
        size: Some("10MB".into()),
        set: [("rmem".to_string(), "200000".to_string())].into(),
        ..StudyText::default()
    };
    let o = Study::check(&text, None).expect("a study").capture(Job { contender: 0, run: 0 });
    let f = fitted(&o);
    println!("{} {:?}", f.inline(), f.notes);
    assert!(!f.link_was_full() && !f.queue_was_full(), "{f:?}");
    assert!(f.rate_bps.low < 100e6 && within(&f.base_rtt_s, 0.05), "{f:?}");
    assert!(f.notes.iter().any(|n| n.contains("lower bounds: the receive window limited")), "{:?}", f.notes);
}

/// Paths with a rate that varies, slots, waves, jitter and hand-overs, fixed and drawn: how many estimates
/// are within the bounds of fixed paths, and how many intervals contain the truth.
#[test]
fn drawn_paths_are_fitted_again_or_the_interval_says_how_badly() {
    let (mut near, mut covered, mut all) = ([0; 4], [0; 4], [0; 4]);
    // Where a queue drops from the front, `fit` is wrong about its length (docs/reference/replay.md).
    let paths = [
        ("geo", "100MB", 4),
        ("leo-droptail", "60MB", 4),
        ("lte", "60MB", 4),
        ("wifi-strong", "60MB", 4),
        ("wifi-weak", "60MB", 4),
        ("leo-100-droptail", "60MB", 1),
        ("lte-75", "100MB", 1),
        ("wifi-strong-200", "60MB", 1),
        ("wifi-weak-80", "60MB", 1),
    ];
    for (path, size, draws) in paths {
        for number in 0..draws {
            let (o, truth) = captured(path, Some(size), number);
            let f = fitted(&o);
            println!(
                "{path} {number}: rate {:.2} Mbit/s, RTT {:.2} ms, queue {:.0} kB: {} {:?}",
                truth.rate / 1e6,
                truth.rtt * 1e3,
                truth.queue / 1e3,
                f.inline(),
                f.notes
            );
            let mut count = |i: usize, is_near: bool, is_covered: bool| {
                all[i] += 1;
                near[i] += i32::from(is_near);
                covered[i] += i32::from(is_covered);
                println!("    {i} near {is_near} covered {is_covered}");
            };
            let rate = &f.rate_bps;
            count(0, (rate.value / truth.rate - 1.0).abs() < 0.03, within(rate, truth.rate));
            // A hand-over adds up to 10 ms for 15 s, which looks the same as distance.
            let handover = if path.starts_with("leo") { 10e-3 } else { 0.0 };
            let off = f.base_rtt_s.value - truth.rtt;
            let bound = 1e-3_f64.max(0.02 * truth.rtt);
            let wide = (f.base_rtt_s.low - handover..=f.base_rtt_s.high.unwrap_or(f64::INFINITY))
                .contains(&truth.rtt);
            count(1, (-bound..=bound + handover).contains(&off), wide);
            let limit = f.random_drop.as_ref().map_or(&f.queue_bytes, |d| &d.above_bytes);
            if f.queue_was_full() || f.random_drop.is_some() {
                let queue = if path == "geo" { 18e6 } else { truth.queue };
                count(2, (limit.value / queue - 1.0).abs() < 0.15, within(limit, queue));
            }
            if let Some(slot) = truth.slot {
                let found = f.ack_aggregate_s.as_ref().map_or(0.0, |s| s.value);
                count(3, (found - slot).abs() < 1e-3, true);
            }
        }
    }
    println!("rate, base RTT, queue, slot: within the bounds {near:?}, covered {covered:?}, of {all:?}");
    // A rate that varies is known as well as the mean of as many draws as the transfer saw. ACK jitter of up
    // to 300 ms hides the base RTT of geo.
    for (i, least) in [0.6, 0.6, 0.9, 0.9].into_iter().enumerate() {
        assert!(f64::from(near[i]) >= least * f64::from(all[i]), "{near:?} of {all:?}");
        // Two dozen draws of an interval of 80 % may hold the truth in fewer.
        assert!(f64::from(covered[i]) >= 0.7 * f64::from(all[i]), "{covered:?} of {all:?}");
    }
    let (covered, all): (i32, i32) = (covered.iter().sum(), all.iter().sum());
    assert!(f64::from(covered) >= 0.9 * f64::from(all), "{covered} of {all}");
}

/// What a link carried while a queue stood is not its rate if it carried more at another time.
#[test]
fn a_link_that_became_faster_has_no_one_rate() {
    for (path, size) in [
        ("schedule=0s:20Mbit,3s:60Mbit rtt=60ms queue=400kB", "40MB"),
        ("schedule=0s:10Mbit,2s:30Mbit,4s:90Mbit rtt=40ms queue=300kB", "40MB"),
    ] {
        let f = fitted(&run(path, "standard", Some(size)));
        let wide = f.rate_bps.high.is_none_or(|high| high > 1.2 * f.rate_bps.low);
        assert!(wide || f.rate_vary.is_some(), "{path}: {:?}", f.rate_bps);
    }
}

/// A sender that the receive window limits sends it at once: no ACK waits for a slot.
#[test]
fn bursts_of_a_receive_window_are_no_slots() {
    for (path, rmem) in [
        ("rate=1Gbit rtt=50ms queue=1bdp", "242000"),
        ("rate=1Gbit rtt=20ms queue=1bdp", "120000"),
        ("rate=1Gbit rtt=100ms queue=1bdp", "400000"),
    ] {
        let f = fitted(&run_with(path, "hystart", Some("4MB"), &[("rmem", rmem)]));
        let rtt =
            path.split(' ').nth(1).and_then(|r| r.strip_prefix("rtt=")?.strip_suffix("ms")?.parse().ok());
        let rtt: f64 = rtt.expect("an RTT");
        let base = &f.base_rtt_s;
        assert!(f.ack_aggregate_s.is_none(), "{path}: {:?}", f.ack_aggregate_s);
        assert!((base.value * 1e3 / rtt - 1.0).abs() < 0.03, "{path}: {base:?}");
    }
}

/// A policer drops what its bucket does not hold, and that is no random loss.
#[test]
fn losses_of_a_policer_are_not_random() {
    for (path, rate, startup, size) in [
        ("rate=300Mbit rtt=30ms queue=1bdp policer=\"rate=50Mbit burst=500kB\"", 50e6, "standard", "40MB"),
        ("rate=1Gbit rtt=40ms queue=1bdp policer=\"rate=40Mbit burst=50kB\"", 40e6, "hystart", "10MB"),
        ("rate=1Gbit rtt=120ms queue=1bdp policer=\"rate=15Mbit burst=100kB\"", 15e6, "standard", "10MB"),
        ("rate=1Gbit rtt=20ms queue=1bdp policer=\"rate=100Mbit burst=250kB\"", 100e6, "hystart", "40MB"),
        ("rate=100Mbit rtt=60ms queue=1bdp policer=\"rate=20Mbit burst=200kB\"", 20e6, "standard", "20MB"),
    ] {
        let f = fitted(&run(path, startup, Some(size)));
        println!("{path}: {:?} {:?} {:?}", f.policer, f.loss, f.rate_bps);
        assert!(f.loss.is_none(), "{path}: {:?}", f.loss);
        let found = f.policer.as_ref().map(|p| p.rate_bps.value);
        assert!(found.is_none_or(|r| (r / rate - 1.0).abs() < 0.05), "{path}: {found:?}");
    }
}
