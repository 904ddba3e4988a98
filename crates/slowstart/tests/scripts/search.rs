//! SEARCH 2.0 to 4.0, through the whole algorithm.

use crate::common::{Host, avoidance, facts, startup};
use crate::flow::Flow;
use slowstart::control::{Change, Controller, Exited};
use slowstart::step::Exit;
use slowstart::units::{Instant, Span};
use slowstart::view::Limit;

/// The shortfall r round trips after capacity, by window. It is the same for both
/// rules, because the sender of the model sends twice what is delivered.
#[test]
fn the_table_of_section_1_4() {
    let r = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0];
    let table = [
        ("2", [0.064, 0.205, 0.329, 0.419, 0.480, 0.500, 0.500, 0.500]),
        ("3.5", [0.052, 0.168, 0.267, 0.330, 0.376, 0.416, 0.489, 0.500]),
        ("5", [0.049, 0.158, 0.251, 0.307, 0.345, 0.374, 0.422, 0.500]),
    ];
    for (window, row) in table {
        // Between bins the look-back is interpolated; 3.5 round trips are not whole bins.
        let within = if window == "3.5" { 0.006 } else { 0.0015 };
        for name in ["search-2.0", "search"] {
            for (r, want) in r.into_iter().zip(row) {
                let bin = window.parse::<f64>().unwrap() / 10.0;
                // A bin ends exactly r after capacity.
                let end = (16.0 / bin).ceil() * bin;
                let mut flow = Flow::new(&format!("{name}:window={window},threshold=1,drain=off"));
                flow.run(end + 1.5 * flow.step, |t| Flow::ramp(2.0, t, end - r), 2.0);
                let got = flow.shortfall();
                assert!((got - want).abs() <= within, "{name}, window {window}, r {r}: {got}, wanted {want}");
            }
        }
    }
}

/// The threshold is exceeded at these times after capacity, and detected at the end of that bin.
#[test]
fn thresholds_are_crossed_when_the_closed_form_says() {
    for (name, threshold, crossings) in
        [("search-2.0", "0.35", [1.61, 2.20, 2.58]), ("search", "0.26", [1.19, 1.45, 1.57])]
    {
        for (window, crossing) in ["2", "3.5", "5"].into_iter().zip(crossings) {
            let bin = window.parse::<f64>().unwrap() / 10.0;
            for phase in 0..10 {
                let capacity = 12.0 + f64::from(phase) * bin / 10.0;
                let mut flow = Flow::new(&format!("{name}:window={window},threshold={threshold},drain=off"));
                flow.run(20.0, |t| Flow::ramp(2.0, t, capacity), 2.0);
                let (why, at) = flow.exit.expect("it leaves");
                assert_eq!(why, Exit::RateFlat);
                let r = at - capacity;
                assert!(
                    (crossing - 0.04..=crossing + bin + 0.04).contains(&r),
                    "{name}, window {window}: {r}, wanted {crossing} and at most a bin of {bin}"
                );
            }
        }
    }
}

/// Section 1.4, §4.5.2 of the thesis: 1, 2, 4, 8, 16, 16 a round trip with a window of four: (60 - 44) / 60,
/// and on the plateau (128 - 64) / 128.
#[test]
fn the_worked_example() {
    let rates = [1.0, 2.0, 4.0, 8.0, 16.0];
    let total = |t: f64| (0..=t as usize).map(|i| rates[i.min(4)] * (t - i as f64).min(1.0)).sum::<f64>();
    let at = |t: f64| {
        let mut flow = Flow::new("search-2.0:window=4,threshold=1");
        flow.run(t + 1.5 * flow.step, total, 2.0);
        flow.shortfall()
    };
    // The earlier window ends in the middle of a bin in which the rate changes: 29.9 instead of 30.
    assert!((at(6.0) - (59.8 - 44.0) / 59.8).abs() < 0.001, "{}", at(6.0));
    assert!((at(6.0) - 16.0 / 60.0).abs() < 0.005);
    assert!((at(10.0) - 0.5).abs() < 0.0001, "{}", at(10.0));
}

/// Bins without an ACK are filled. More of them than the limit of the version reset it; the thesis' versions
/// never reset.
#[test]
fn bins_without_acks_are_filled_or_reset_it() {
    for (name, silent, bins) in [
        ("search", 9.5, Some(29)),
        ("search", 10.5, Some(0)),
        ("search-2.0", 9.5, Some(29)),
        ("search-2.0", 20.5, Some(40)),
        ("search-3.0", 1.5, Some(21)),
        ("search-3.0", 2.5, Some(0)),
        ("search-3.1", 3.5, Some(23)),
        ("search-3.1", 4.5, Some(0)),
        ("search-3.1-shipped", 20.5, Some(40)),
        ("search-3.2", 20.5, Some(40)),
        ("search-4.0", 20.5, Some(40)),
        ("search-neqo", 9.5, Some(29)),
        ("search-neqo", 10.5, Some(0)),
    ] {
        let mut flow = Flow::new(&format!("{name}:window=10,threshold=1,drain=off"));
        flow.run(19.5, |t| 1000.0 * t, 2.0);
        assert_eq!(flow.internal_value("bin"), 19.0);
        flow.ack_after(silent);
        let got = Some(flow.internal_value("bin")).filter(|b| !b.is_nan());
        assert_eq!(got, bins.map(f64::from), "{name} after {silent} silent bins");
    }
}

/// Products beyond 32 bits, and totals beyond 16 and 32.
#[test]
fn large_flows_do_not_overflow() {
    for scale in [1.0, 1e3, 1e6, 1e9] {
        let mut flow = Flow::new("search-2.0:window=2,threshold=1");
        flow.run(20.0 + 1.5 * flow.step, |t| scale * Flow::ramp(2.0, t, 10.0), 2.0);
        assert!((flow.shortfall() - 0.5).abs() < 1e-4, "{scale}: {}", flow.shortfall());
    }
}

/// A path of 100 segments in 100 ms with an unlimited queue, until the shortfall is detected.
fn to_the_drain() -> (Host, Vec<Change>) {
    let mut host = Host::new(startup("search"), avoidance("cubic"), facts(1000, 10));
    host.fill();
    let mut changes = Vec::new();
    while host.control.phase() == "slow-start" {
        assert!(host.facts.now < Instant::ZERO + Span::secs(20), "no drain");
        changes.push(arrive(&mut host));
        host.fill();
    }
    (host, changes)
}

/// The next ACK of that path: 100 ms after its packet was sent, or 1 ms after the last ACK.
fn arrive(host: &mut Host) -> Change {
    let left = host.oldest().at;
    let at = (left + Span::millis(100)).max(host.facts.now + Span::millis(1));
    host.facts.now = at;
    host.ack(1000, Some(at.since(left)))
}

fn exits(changes: &[Change]) -> Vec<Exited> {
    changes.iter().filter_map(|c| c.exited).collect()
}

/// Draft-09: one packet for three acknowledged, down to what was delivered in the last first round-trip time.
#[test]
fn it_drains_before_it_leaves() {
    let (mut host, changes) = to_the_drain();
    assert!(exits(&changes).is_empty());
    let (seen_at, seen) = (host.facts.now, host.cwnd());
    assert!(seen > 200.0, "{seen}");
    let (sent, mut acks) = (host.sent_total, 0);
    let exited = loop {
        let change = arrive(&mut host);
        acks += 1;
        host.fill();
        assert_eq!((host.sent_total - sent).0 / 1000, acks / 3, "after {acks} ACKs");
        if let Some(exited) = change.exited {
            break exited;
        }
        assert_eq!(host.control.phase(), "drain");
        assert_eq!(host.ssthresh(), None);
    };
    // Three bins are 1.05 of the first round trip: 105 ms at a segment a millisecond, give or take the ends
    // of bins.
    assert!((104.0..=106.0).contains(&host.cwnd()), "{}", host.cwnd());
    assert_eq!(host.ssthresh(), Some(host.cwnd()));
    assert_eq!(exited.why, Exit::RateFlat);
    assert_eq!((exited.detected_at, exited.detected_cwnd.0), (seen_at, (seen * 1000.0) as u64));
    assert!(exited.at > seen_at);
    assert_eq!(exited.exit_cwnd.0 as f64, host.cwnd() * 1000.0);
    assert_eq!(host.control.phase(), "avoidance");
}

/// neqo has the rule of draft-09 and no drain: it exits at the ACK at which `search` begins to drain, with
/// that window.
#[test]
fn neqo_exits_where_the_drain_would_begin() {
    let (drains, _) = to_the_drain();
    let mut host = Host::new(startup("search-neqo"), avoidance("cubic"), facts(1000, 10));
    host.fill();
    let exited = loop {
        if let Some(e) = arrive(&mut host).exited {
            break e;
        }
        host.fill();
    };
    assert_eq!(
        (exited.why, exited.at, exited.detected_at),
        (Exit::RateFlat, drains.facts.now, drains.facts.now)
    );
    assert_eq!((exited.exit_cwnd, exited.detected_cwnd), (drains.state().cwnd, drains.state().cwnd));
}

/// The extra bins limit the look-back: the scaled versions need two more than the RTT has bins, here one.
#[test]
fn extra_bins_limit_the_look_back() {
    let exits = |name: &str| {
        let mut flow = Flow::new(name);
        // A window of ten round trips: one bin per round trip.
        flow.run(40.0, |t| Flow::ramp(2.0, t, 20.0), 2.0);
        flow.exit.is_some()
    };
    for (extra, sees) in [(2, false), (3, true), (40, true)] {
        let name = format!("search-4.0:extra={extra},window=10");
        assert_eq!(exits(&name), sees, "{name}");
    }
}

/// A loss in the drain is of packets sent before the detection: reason, time and window of the detection
/// remain.
#[test]
fn a_loss_while_draining_keeps_the_reason() {
    let (mut host, _) = to_the_drain();
    let (seen_at, seen) = (host.facts.now, host.state().cwnd);
    for _ in 0..30 {
        assert_eq!(arrive(&mut host).exited, None);
        host.fill();
    }
    let before = host.cwnd();
    let exited = host.lose(1).exited.expect("it leaves");
    assert_eq!((exited.why, exited.detected_at, exited.detected_cwnd), (Exit::RateFlat, seen_at, seen));
    assert!(exited.at > seen_at);
    assert_eq!(host.cwnd(), (before * 0.7).floor());
    // The same for a timeout.
    let (mut host, _) = to_the_drain();
    let _ = arrive(&mut host);
    assert_eq!(host.timeout().exited.map(|e| e.why), Some(Exit::RateFlat));
}

/// A drain never increases the window, nor reduces it below IW.
#[test]
fn a_drain_stays_between_iw_and_the_window() {
    let mut host = Host::new(startup("search"), avoidance("cubic"), facts(1000, 150));
    host.fill();
    let mut last = host.cwnd();
    let mut draining = false;
    for _ in 0..5000 {
        let change = arrive(&mut host);
        host.fill();
        assert!(!draining || host.cwnd() <= last, "{last} to {}", host.cwnd());
        assert!(host.cwnd() >= 150.0);
        (last, draining) = (host.cwnd(), host.control.phase() == "drain");
        if let Some(e) = change.exited {
            assert_eq!((e.why, host.cwnd()), (Exit::RateFlat, 150.0));
            return;
        }
    }
    panic!("no exit");
}

/// A loss before the detection is an exit by loss.
#[test]
fn a_loss_before_the_detection_is_an_exit_by_loss() {
    let mut host = Host::new(startup("search"), avoidance("cubic"), facts(1000, 10));
    host.fill();
    for _ in 0..50 {
        let _ = arrive(&mut host);
        host.fill();
    }
    assert_eq!(host.lose(1).exited.map(|e| e.why), Some(Exit::Loss));
    assert_eq!(host.control.phase(), "avoidance");
}

/// 1.0 compares with what was sent, with the threshold of 2.0: the plateau 1 - 1/g must exceed it.
#[test]
fn search_1_0_leaves_where_growth_is_fast_enough() {
    for (g, leaves) in [(1.5, false), (1.6, true), (2.0, true)] {
        let mut flow = Flow::new("search-1.0");
        flow.run(24.0, |t| Flow::ramp(g, t, 12.0), g);
        assert_eq!(flow.exit.is_some(), leaves, "g {g}");
        assert!(flow.exit.is_none_or(|(why, at)| why == Exit::RateFlat && at > 12.0));
    }
}

/// 3.1 resets when the application limits the sender, and keeps the width of its bins; so does `search` with
/// that parameter.
#[test]
fn a_limited_application_resets_3_1() {
    for (name, restarts) in [
        ("search-3.1", true),
        ("search-3.1-shipped", true),
        ("search-3.0", false),
        ("search-4.0", false),
        ("search:app_limited=on", true),
    ] {
        let mut host = Host::new(startup(name), avoidance("cubic"), facts(1000, 10));
        host.fill();
        // A bin is 35 ms.
        for _ in 0..30 {
            let _ = arrive(&mut host);
            host.fill();
        }
        let before = host.internal_value("bin").expect("bins");
        assert!(before > 2.0);
        host.limit = Limit::Application;
        host.wait(Span::millis(40));
        let _ = host.ack(1000, Some(Span::millis(500)));
        let after = host.internal_value("bin").expect("bins");
        assert_eq!(after < 1.0, restarts, "{name}: {before}, {after}");
        if restarts {
            // By the RTT of this ACK it would be 175 ms.
            host.limit = Limit::Window;
            host.wait(Span::millis(36));
            let _ = host.ack(1000, Some(Span::millis(500)));
            assert_eq!(host.internal_value("bin"), Some(1.0), "{name}");
        }
    }
}

/// After up to one window without an ACK 3.1 keeps the width of its bins; 3.0 measures it again.
#[test]
fn a_short_silence_keeps_the_bins_of_3_1() {
    for (name, silent, kept) in [
        ("search-3.1", 250, true),
        ("search-3.1", 400, false),
        ("search-3.0", 120, false),
        ("search-3.0:keep_width=on", 120, true),
    ] {
        let mut host = Host::new(startup(name), avoidance("cubic"), facts(1000, 10));
        host.fill();
        let _ = arrive(&mut host);
        host.wait(Span::millis(silent));
        let _ = host.ack(1000, Some(Span::millis(500)));
        assert_eq!(host.internal_value("bin"), Some(0.0), "{name}");
        host.wait(Span::millis(36));
        let _ = host.ack(1000, Some(Span::millis(500)));
        assert_eq!(
            host.internal_value("bin"),
            Some(if kept { 1.0 } else { 0.0 }),
            "{name} after {silent} ms"
        );
    }
}

/// The roll-back of 3.x subtracts what was delivered in the last two first RTTs, which are five whole bins:
/// 175 ms at one segment per millisecond. The result is at least IW.
#[test]
fn a_roll_back_takes_off_what_was_delivered_in_two_round_trips() {
    let leave = |name: &str, iw| {
        let mut host = Host::new(startup(name), avoidance("cubic"), facts(1000, iw));
        host.fill();
        loop {
            assert!(host.facts.now < Instant::ZERO + Span::secs(20), "no exit");
            if let Some(e) = arrive(&mut host).exited {
                return e;
            }
            host.fill();
            if iw == 250 {
                host.limit = if host.limit == Limit::Window { Limit::Application } else { Limit::Window };
            }
        }
    };
    let plain = leave("search-3.0", 10);
    assert_eq!(plain.detected_cwnd, plain.exit_cwnd);
    for name in ["search-3.0:rollback=on", "search-3.1:rollback=on", "search-2.0:rollback=on"] {
        let e = leave(name, 10);
        assert_eq!(e.why, Exit::RateFlat);
        assert_eq!((e.detected_at, e.at), (e.at, e.at));
        let off = (e.detected_cwnd.0 - e.exit_cwnd.0) / 1000;
        // Scaled totals are exact to 2^4 bytes here; the ends of bins are exact to one ACK.
        assert!((174..=176).contains(&off), "{name}: {off} of {:?}", e.detected_cwnd);
    }
    // With growth on every second ACK only, 20 bins of 10 ms detect at a window of 350 of 250 segments, less
    // 200.
    let e = leave("search-2.0:rollback=on,window=1,look_back=initial", 250);
    assert!(e.detected_cwnd.0 < 450_000, "{e:?}");
    assert_eq!(e.exit_cwnd.0, 250_000);
}
