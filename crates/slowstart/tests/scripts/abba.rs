//! ABBA, draft-kazuho-ccwg-abba, September 2026: with a linear model (`abba`) and before
//! (`abba-recalibrate`).

use crate::common::{Host, avoidance, facts, startup};
use slowstart::control::{Controller, Exited};
use slowstart::step::Exit;
use slowstart::units::Span;
use slowstart::view::{Limit, Signal};

const MS: Span = Span::millis(1);

/// A connection with this window, after one ACK with this RTT.
fn host(by: &str, follows: &str, iw: u64, rtt: Span) -> Host {
    let mut host = Host::new(startup(by), avoidance(follows), facts(1000, iw));
    host.fill();
    host.limit = Limit::Application;
    let _ = host.ack(1000, Some(rtt));
    host.limit = Limit::Window;
    host.fill();
    host
}

/// Loses one packet; the old flight is acknowledged in recovery with this RTT.
fn lose(host: &mut Host, rtt: Span) -> Option<Exited> {
    let exited = host.lose(1).exited;
    finish(host, rtt);
    exited
}

fn finish(host: &mut Host, rtt: Span) {
    for _ in 0..host.out() {
        let _ = host.ack(1000, Some(rtt));
    }
    let _ = host.recovered(false);
    host.fill();
}

/// An ACK of one segment at the pace of the window; returns the growth in segments.
fn ack(host: &mut Host, rtt: Span) -> f64 {
    let before = host.cwnd();
    host.wait(rtt / (before as u64));
    let _ = host.ack(1000, Some(rtt));
    host.fill();
    host.cwnd() - before
}

/// Acknowledges this number of segments; the growth and the sum of what `gain` says for the windows, both in
/// segments.
fn grows(host: &mut Host, acks: u32, rtt: Span, gain: impl Fn(f64) -> f64) -> (f64, f64) {
    let (from, mut due) = (host.cwnd(), 0.0);
    for _ in 0..acks {
        due += gain(host.cwnd());
        ack(host, rtt);
    }
    (host.cwnd() - from, due)
}

/// The RTT of the recovery is that of the window before: 150 ms at 100 segments. From 120 ms at 70 on, the
/// line rises by two thirds of 30 ms in 30 segments, and an ACK adds 2/3 (1 - `w_ref` / w). Beyond 130 segments
/// it is the line from the origin through what it said there.
#[test]
fn growth_follows_from_the_line() {
    for follows in ["abba", "abba:over=cuback"] {
        growth_follows(follows);
    }
}

fn growth_follows(follows: &str) {
    let mut host = host("standard", follows, 100, MS * 100);
    lose(&mut host, MS * 150);
    assert_eq!(host.cwnd(), 70.0);
    ack(&mut host, MS * 150);
    let low = host.cwnd();
    ack(&mut host, MS * 120);
    let (a, rtt) = (2.0 / 3.0 * 30.0 / (100.0 - low), 120.0);
    let b = rtt - a * low;
    while host.cwnd() < 83.0 {
        ack(&mut host, MS * 120);
    }
    let gain = |w: f64| 2.0 / 3.0 * (1.0 - (rtt - b) / a / w);
    let (grown, due) = grows(&mut host, 100, MS * 120, gain);
    assert!(due > 10.0 && (grown - due).abs() < 1.0, "{grown}, not {due}");
    while host.cwnd() <= 130.0 {
        ack(&mut host, MS * 120);
    }
    // The line is drawn at the first ACK beyond.
    let at = host.cwnd();
    let from_origin = (a * at + b) / at;
    let gain = |w: f64| 2.0 / 3.0 * (1.0 - rtt / from_origin / w);
    let (grown, due) = grows(&mut host, 200, MS * 120, gain);
    assert!(due > 30.0 && (grown - due).abs() < 1.0, "{grown}, not {due}");
}

/// ABBA, and what it makes faster.
const PAIRS: [[&str; 2]; 2] = [["abba", "cubic"], ["abba:over=cuback", "cuback"]];

/// Without 5 ms between both points there is no slope, and an RTT on the line or above adds nothing: the
/// window is `cubic`'s, or `cuback`'s.
#[test]
fn a_flat_line_leaves_cubic_alone() {
    for (full, rtts) in [(150, [150, 146]), (150, [120, 160]), (104, [100, 100])] {
        let run = |follows| {
            let mut host = host("standard", follows, 1000, MS * 100);
            lose(&mut host, MS * full);
            (0..40).map(|n| ack(&mut host, MS * rtts[usize::from(n > 0)])).sum::<f64>()
        };
        for [abba, alone] in PAIRS {
            assert_eq!(run(abba), run(alone), "{abba}: {full} {rtts:?}");
        }
    }
}

/// A mark reduces by `beta_ecn`, but not one that ends the startup.
#[test]
fn a_mark_reduces_by_its_own_factor() {
    for [abba, _] in PAIRS {
        let colon = if abba.contains(':') { ',' } else { ':' };
        let mut host = host("standard", &format!("{abba}{colon}beta_ecn=0.85"), 100, MS * 100);
        for due in [70.0, 0.85 * 70.0] {
            let _ = host.signal(Signal::Ecn);
            assert!((host.cwnd() - due).abs() <= 1.0, "{abba}: {}, not {due}", host.cwnd());
            let _ = host.recovered(false);
        }
    }
}

/// The slope is at most that of the line through the origin and the low point, so that two thirds of it leave
/// a third of the RTT as intercept.
#[test]
fn the_slope_is_at_most_that_through_the_origin() {
    let mut host = host("standard", "abba", 100, MS * 10);
    lose(&mut host, MS * 200);
    ack(&mut host, MS * 200);
    let low = host.cwnd();
    ack(&mut host, MS * 50);
    while host.cwnd() < 83.0 {
        ack(&mut host, MS * 50);
    }
    // (200 - 50) / 30 is more than 50 / 70.
    let (a, b) = (2.0 / 3.0 * 50.0 / low, 50.0 / 3.0);
    let (grown, due) = grows(&mut host, 100, MS * 50, |w| 2.0 / 3.0 * (1.0 - (50.0 - b) / a / w));
    assert!(due > 10.0 && (grown - due).abs() < 1.0, "{grown}, not {due}");
}

/// After a loss the least RTT of the recovery counts, after a mark that of the round trip before it.
#[test]
fn the_high_point_depends_on_the_signal() {
    let faster = |signal: Option<Signal>, recovery: u64| {
        let run = |follows| {
            let mut host = host("standard", follows, 100, MS * 100);
            host.round(1, MS * 150, MS * 150);
            host.round(1, MS * 150, MS * 150);
            let _ = match signal {
                Some(signal) => host.signal(signal),
                None => host.lose(1),
            };
            finish(&mut host, MS * recovery);
            (0..600).map(|_| ack(&mut host, MS * 120)).sum::<f64>()
        };
        run("abba") > run("cubic")
    };
    assert!(faster(None, 150));
    assert!(!faster(None, 120));
    assert!(faster(Some(Signal::Ecn), 120));
}

/// Before the first loss, and from a timeout to the next loss, there is no line.
#[test]
fn a_timeout_ends_the_line() {
    let run = |follows, timeouts, in_recovery: bool| {
        let mut host = host("standard", follows, 100, MS * 100);
        lose(&mut host, MS * 150);
        ack(&mut host, MS * 150);
        if in_recovery {
            let _ = host.lose(1);
        }
        for _ in 0..timeouts {
            let _ = host.timeout();
        }
        host.fill();
        (0..2000).map(|_| ack(&mut host, MS * 110)).sum::<f64>()
    };
    for (timeouts, in_recovery) in [(1, false), (2, false), (1, true)] {
        for pair in PAIRS {
            let [abba, alone] = pair.map(|follows| run(follows, timeouts, in_recovery));
            assert_eq!(abba, alone, "{pair:?}: {timeouts} timeouts, in recovery {in_recovery}");
        }
    }
}

/// The state of `abba-recalibrate` after slow start: a floor of `base` ms, and a queue that made it `full` ms at
/// the end of the recovery. Returns the smoothed RTT before the first ACK afterwards, in seconds.
fn calibrated(follows: &str, by: &str, iw: u64, base: u64, full: u64) -> (Host, f64) {
    let mut host = host(by, follows, iw, MS * base);
    lose(&mut host, MS * full);
    let srtt = host.facts.srtt.unwrap().as_secs_f64();
    (host, srtt)
}

/// With a drained queue an ACK adds max(2 ms / threshold, 1/40) of what it acknowledges, at most half of what
/// reverses a reduction; the threshold is the floor and 2 ms.
#[test]
fn a_drained_queue_makes_it_faster() {
    for (base, rate) in [(100, 1.0 / 40.0), (20, 2.0 / 22.0), (5, (1.0 / 0.7 - 1.0) / 2.0)] {
        let (mut host, _) = calibrated("abba-recalibrate", "standard", 1000, base, base + 60);
        let (grown, due) = grows(&mut host, 700, MS * base, |_| rate);
        assert!((grown - due).abs() < 2.0, "{base} ms: {grown}, not {due}");
    }
}

/// An RTT 2 ms above the floor, or a queue of less than 10 ms when it was full, leaves the growth to `cubic`.
#[test]
fn an_occupied_or_shallow_queue_does_not() {
    for (full, rtt) in [(160, 102), (109, 100), (103, 100)] {
        let run = |follows| {
            let (mut host, _) = calibrated(follows, "standard", 1000, 100, full);
            (0..3000).map(|_| ack(&mut host, MS * rtt)).sum::<f64>()
        };
        assert_eq!(run("abba-recalibrate"), run("cubic"), "{full} {rtt}");
    }
}

/// Waits until slow start begins again; returns the time since the first ACK after the recovery, in seconds.
fn until_restart(host: &mut Host, rtt: Span) -> f64 {
    let _ = host.ack(1000, Some(rtt));
    host.fill();
    let from = host.facts.now;
    // The window must have gained a quarter of what a reduction takes.
    for _ in 0..12 {
        host.round(1, rtt, rtt);
    }
    for _ in 0..20_000 {
        let before = host.state();
        host.wait(MS * 10);
        let change = host.ack(1000, Some(rtt));
        host.fill();
        if change.restarted {
            assert!(host.state().cwnd >= before.cwnd && host.ssthresh().is_none());
            return host.facts.now.since(from).as_secs_f64();
        }
    }
    panic!("slow start does not begin again");
}

/// The time in which a flow would refill the queue: min(K, Reno's) cbrt(full / floor), for a reduction from
/// 1000 to 700 segments.
fn refills(full: f64, floor: f64) -> f64 {
    let k = (300.0_f64 / 0.4).cbrt();
    let reno = 300.0 / (3.0 * 0.3 / 1.7) * full;
    k.min(reno) * (full / floor).cbrt()
}

/// Slow start begins again after twice that time, if the acceleration gained, or eight times, if the queue is
/// too shallow to be seen.
#[test]
fn a_queue_that_does_not_return_is_looked_for() {
    for (base, full, times) in [(100, 160, 2.0), (100, 109, 8.0), (5, 65, 2.0)] {
        let (mut host, srtt) = calibrated("abba-recalibrate", "standard", 1000, base, full);
        let took = until_restart(&mut host, MS * base);
        let due = times * refills(srtt, base as f64 / 1e3);
        assert!((took / due - 1.0).abs() < 0.005, "{base} {full}: {took} s, not {due}");
        assert_eq!(host.control.phase(), "slow-start");
    }
}

/// A smoothed RTT 10 ms above the floor, as well as a mark, is a sight of the queue.
#[test]
fn a_queue_that_returns_is_not() {
    let (mut host, srtt) = calibrated("abba-recalibrate", "standard", 1000, 100, 160);
    let due = 2.0 * refills(srtt, 0.1);
    for _ in 0..12 {
        host.round(1, MS * 100, MS * 100);
    }
    host.wait(Span((due * 0.9e9) as u64));
    for _ in 0..30 {
        assert!(!host.ack(1000, Some(MS * 130)).restarted);
        host.fill();
    }
    let seen = host.facts.now;
    let restarted = |host: &mut Host| {
        host.wait(MS * 10);
        let change = host.ack(1000, Some(MS * 100));
        host.fill();
        change.restarted
    };
    assert!((0..20_000).any(|_| restarted(&mut host)), "slow start does not begin again");
    let took = host.facts.now.since(seen).as_secs_f64();
    // Some ACKs pass until the smoothed RTT is low.
    assert!((took / due - 1.0).abs() < 0.05, "{took} s, not {due}");
}

/// The end of that slow start is recorded as the first: by congestion with 1 / (2 (2 - beta)) of the window, by
/// a timeout, and by a rule where the startup is for every slow start.
#[test]
fn each_slow_start_has_an_end_of_its_own() {
    for by in ["standard", "hystart:detect=delay", "hystart++"] {
        let (mut host, _) = calibrated("abba-recalibrate", by, 1000, 100, 160);
        until_restart(&mut host, MS * 100);
        let before = host.cwnd();
        host.round(1, MS * 100, MS * 100);
        assert!(host.cwnd() >= 1.9 * before, "{by}");
        let window = host.cwnd();
        let exited = lose(&mut host, MS * 160).expect("it left");
        assert_eq!(exited.why, Exit::Loss);
        assert!((exited.exit_cwnd.0 as f64 / 1e3 - window / 2.6).abs() < 1.0, "{by}: {exited:?}");
        assert_eq!(host.control.phase(), "avoidance");
        // The loss after that reduces as usual.
        let window = host.cwnd();
        assert_eq!(host.lose(1).exited, None);
        assert!((host.cwnd() / window - 0.7).abs() < 0.01, "{by}");

        let (mut host, _) = calibrated("abba-recalibrate", by, 1000, 100, 160);
        until_restart(&mut host, MS * 100);
        assert_eq!(host.timeout().exited.map(|e| e.why), Some(Exit::Timeout), "{by}");
    }
    let (mut host, _) = calibrated("abba-recalibrate", "hystart:detect=delay", 1000, 100, 160);
    until_restart(&mut host, MS * 100);
    host.round(1, MS * 100, MS * 100);
    let changes = host.round(1, MS * 100, MS * 200);
    assert_eq!(changes.iter().find_map(|c| c.exited).map(|e| e.why), Some(Exit::Delay));
}

/// A spurious loss in that slow start does not end it.
#[test]
fn a_spurious_loss_resumes_it() {
    for by in ["standard", "hystart++"] {
        let (mut host, _) = calibrated("abba-recalibrate", by, 1000, 100, 160);
        until_restart(&mut host, MS * 100);
        let before = host.cwnd();
        assert!(host.lose(1).exited.is_some());
        assert!(host.recovered(true).resumed);
        assert_eq!((host.cwnd(), host.ssthresh(), host.control.phase()), (before, None, "slow-start"));
        assert!(host.lose(1).exited.is_some(), "{by}");
    }
}
