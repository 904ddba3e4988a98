//! A simulated run, written as a capture and as qlog, gives the results that the run itself has.

use crate::common::run;
use slowstart::units::{Instant, Span};
use slowstart_replay::open::{self, Kind};
use slowstart_replay::replay::{Options, read};
use slowstart_replay::transfer::{LimitPeriod, Transfer};
use slowstart_replay::{qlog, wire};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::segment::SYN;
use slowstart_study::record::{Class, Sample, Trace};
use slowstart_study::run::Outcome;
use slowstart_study::stats;
use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};
use std::path::PathBuf;
use std::process::Command;

/// The transfer in the capture at one end.
fn replay(trace: &Trace, end: u8) -> Transfer {
    let mut file = Vec::new();
    wire::write(&mut file, &trace.packets, end).expect("a Vec takes everything");
    let report =
        read(Kind::Capture, Box::new(Cursor::new(file)), &Options::default(), |_| {}).expect("a capture");
    assert_eq!(report.summary.incomplete, None);
    report.transfers.into_iter().map(|t| t.row).max_by_key(|t| t.bytes).expect("a transfer")
}

/// The newest RTT sample of the run before `at`.
fn rtt(trace: &Trace, at: f64) -> f64 {
    let before = trace.samples.iter().take_while(|s| s.time_s <= at).filter_map(|s| s.rtt_s);
    before.last().unwrap_or(0.0)
}

/// Checks the captures of one run; returns whether class and exit are those of the run.
fn check_run(path: &str, startup: &str) -> (Verdict, String) {
    let o = run(path, startup, None);
    let row = &o.row;
    let at_server = replay(&o.trace, 0);
    let at_client = replay(&o.trace, 1);
    assert_eq!(
        (at_server.vantage.as_str(), at_client.vantage.as_str()),
        ("sender", "receiver"),
        "{path} {startup}"
    );
    // The number of retransmissions is exact: everything lost after the server's interface is retransmitted.
    // A tail loss probe may carry new or old data.
    assert_eq!(at_server.retransmitted_packets, Some(old(&o.trace).count() as u64), "{path} {startup}");
    // The minimum RTT is that of the sender's own samples, to the nanosecond.
    let samples = || o.trace.samples.iter().filter_map(|s| s.rtt_s);
    let least = samples().reduce(f64::min).expect("samples");
    let seen = at_server.min_rtt_s.expect("samples");
    // (Samples of retransmitted data come from timestamps, with a tick of a millisecond, and do not count
    // here.)
    let ticks = |rtt: &f64| (rtt * 1e3 - (rtt * 1e3).round()).abs() < 1e-9;
    let counted = samples().filter(|r| !ticks(r)).fold(f64::INFINITY, f64::min);
    assert!(
        (seen - least).abs() < 1e-9 || (seen - counted).abs() < 1e-9,
        "{path} {startup}: {seen} against {least}"
    );
    // At the receiver the minimum RTT is known to the tick of the timestamps, a millisecond. Its handshake
    // measures an empty path, while a sender that jumps has filled it before its first sample.
    let at_server_s = seen;
    let path_s = row.base_rtt_s;
    match at_client.min_rtt_s {
        Some(seen) => assert!(
            seen < at_server_s + 2e-3 && seen > path_s - 1e-3,
            "{path} {startup}: {seen} at the client, {at_server_s} at the server, {path_s} the path's"
        ),
        None => assert!(path_s < 2e-3, "{path} {startup}: unknown at the client of a path of {path_s} s"),
    }
    check_qlog_exit(&o, &format!("{path} {startup}"));
    check_capacity_at_client(&o, &at_client, &format!("{path} {startup}"));
    // The period that hides an exit is reported.
    let peer = |h: &LimitPeriod| h.what == "receive window";
    assert!(
        at_server.unclear.as_deref() != Some("limited by the receive window")
            || at_server.limits.iter().flatten().any(peer)
    );
    // Times in the server's capture count from the arrival of the SYN.
    let begin = o.trace.packets.iter().find(|p| p.end == 0).expect("packets").at;
    let begin = Span(begin.0).as_secs_f64();
    // The first loss is detected when the sender detected it, and the path was full when the sender's own RTT
    // samples show it, to the nanosecond.
    let same = |seen: Option<f64>, own: Option<f64>| match (seen.map(|t| t + begin), own) {
        (Some(seen), Some(own)) => (seen - own).abs() < 1e-8,
        (seen, own) => seen == own,
    };
    // (If the pacer delays the retransmission, the capture shows the loss by SACK blocks or by the
    // retransmission itself. Halfback also sends data again before any loss.)
    let known = same(at_server.first_loss_time_s, row.first_loss_time_s);
    let repaired = old(&o.trace)
        .map(|at| Span(at.0).as_secs_f64() + 1e-8)
        .find(|at| row.first_loss_time_s.is_none_or(|loss| *at >= loss));
    let seen = at_server.first_loss_time_s.map(|t| t + begin);
    assert!(
        known || (row.first_loss_time_s < seen && seen <= repaired),
        "{path} {startup}: {:?} {:?} {repaired:?}",
        at_server.first_loss_time_s,
        row.first_loss_time_s
    );
    assert!(
        [false, true].iter().any(|echoed| same(at_server.capacity_by_latency_s, full(&o.trace, *echoed))),
        "{path} {startup}: {:?} {:?}",
        at_server.capacity_by_latency_s,
        full(&o.trace, true)
    );
    let seen = at_server.exit.as_ref().map(|e| e.time_s + begin);
    let said = |what: &str| at_server.exit.as_ref().is_some_and(|e| e.evidence == what);
    let (truth, class) = left(&o);
    let outcome = match (truth, seen) {
        // Within one RTT, as long as it was at that time, and a millisecond for the scheduler's bursts.
        (Some(left), Some(at)) => {
            let near = (at - left).abs() <= rtt(&o.trace, left.max(at)) + 1e-3;
            if near && at_server.class == class.into() { Verdict::Right } else { Verdict::Wrong }
        }
        (None, None) => Verdict::Right,
        // The exit left no trace in what was sent; the row reports no exit, and why.
        (Some(left), None) if hidden(&o, left) => Verdict::Untraced,
        _ => Verdict::Wrong,
    };
    let text = format!(
        "{path} {startup}: {outcome:?}: {:?} {:?} seen {:?} {seen:?} {} {:?}",
        class,
        row.exit.as_ref().map(|e| (e.reason.clone(), e.time_s, truth)),
        at_server.class,
        said("loss"),
        at_server.unclear
    );
    (outcome, text)
}

/// When the path was full by the run's own RTT samples (SEARCH thesis, 5.2.1), with or without samples that
/// come from timestamps, in milliseconds.
fn full(trace: &Trace, echoed: bool) -> Option<f64> {
    let (mut least, mut below) = (u64::MAX, 0.0);
    for s in &trace.samples {
        let Some(rtt) = s.rtt_s.map(|rtt| (rtt * 1e9).round() as u64) else { continue };
        if !echoed && rtt.is_multiple_of(1_000_000) {
            continue;
        }
        least = least.min(rtt);
        if rtt - least < least / 2 {
            below = s.time_s;
        } else if rtt - least > least * 2 {
            return Some(below);
        }
    }
    None
}

/// The capacity time at the receiver is that of the laboratory's heuristic: by throughput to the bin; by
/// one-way delay to the tick of the timestamps, a millisecond.
fn check_capacity_at_client(o: &Outcome, seen: &Transfer, what: &str) {
    let own = o.row.capacity_time_by_heuristic_s;
    // Below the tick the receiver knows no RTT, and no round trips.
    if seen.min_rtt_s.is_none() {
        assert_eq!((seen.capacity_by_throughput_s, seen.capacity_by_latency_s), (None, None), "{what}");
        return;
    }
    if o.row.base_rtt_s < 0.025 {
        assert_eq!(seen.capacity_by_throughput_s, own, "{what}");
        return;
    }
    // The receiver's own least RTT may be less than that of the handshake at the sender.
    for (at, least) in [(seen.capacity_by_latency_s, seen.min_rtt_s), (own, None)] {
        let bounds = [(-1e-3, least), (1e-3, None)].map(|(tick, least)| by_offset(&o.trace, tick, least));
        let (first, last) = (bounds[0].0, bounds[1]);
        match at {
            Some(at) => assert!(
                first.is_some_and(|f| at >= f - 1e-9) && at <= last.0.unwrap_or(last.1) + 1e-9,
                "{what}: {at} {bounds:?}"
            ),
            None => assert_eq!(last.0, None, "{what}: {bounds:?}"),
        }
    }
}

/// The thesis heuristic (5.2.1) from the times at which each packet left one end and arrived at the other,
/// with bounds widened by `slack`; and when the delay was last low. The least RTT is at most `known`.
fn by_offset(trace: &Trace, slack: f64, known: Option<f64>) -> (Option<f64>, f64) {
    let mut sent: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    let mut samples = trace.samples.iter().peekable();
    // The handshake RTT at the server.
    let mut at_server = trace.packets.iter().filter(|c| c.end == 0);
    let answered = at_server.clone().find(|c| !c.leaves && !c.segment.has(SYN)).expect("a handshake").at;
    let syn = at_server.rfind(|c| c.leaves && c.at < answered).expect("a handshake").at;
    let mut least_rtt = answered.since(syn).as_secs_f64().min(known.unwrap_or(f64::INFINITY));
    let (mut least, mut below) = (f64::INFINITY, 0.0);
    for c in trace.packets.iter().filter(|c| c.segment.len > 0) {
        let now = Span(c.at.0).as_secs_f64();
        let key = (c.segment.seq, c.segment.len, c.segment.timestamp);
        if c.end == 0 && c.leaves {
            sent.entry(key).or_default().push(now);
        }
        if c.end == 0 || c.leaves {
            continue;
        }
        while let Some(s) = samples.next_if(|s| s.time_s <= now) {
            least_rtt = s.rtt_s.map_or(least_rtt, |r| r.min(least_rtt));
        }
        let Some(left) = sent.get_mut(&key).filter(|l| !l.is_empty()).map(|l| l.remove(0)) else { continue };
        least = least.min(now - left);
        let above = now - left - least;
        if above < least_rtt / 2.0 + 2.0 * slack {
            below = now;
        } else if above > least_rtt * 2.0 + 2.0 * slack {
            return (Some(below), below);
        }
    }
    (None, below)
}

/// When the run left slow start, and the class of that exit. Slow start is below the threshold (RFC 5681
/// §3.1): adaptive start continues at its own threshold, where the window grows as in congestion avoidance,
/// and its exit is the loss that ends it. What a capture can show is when the window reached the threshold
/// for good.
fn left(o: &Outcome) -> (Option<f64>, Class) {
    let exit = o.row.exit.as_ref().map(|e| e.time_s);
    let before = o.trace.samples.iter().take_while(|s| exit.is_none_or(|e| s.time_s < e));
    let mut reached = None;
    for s in before {
        let below = s.ssthresh_bytes.is_none_or(|t| s.cwnd_bytes < t);
        reached = if below { None } else { reached.or(Some(s.time_s)) };
    }
    match reached {
        None => (exit, o.row.class),
        Some(at) if o.row.capacity_time_s.is_some_and(|c| at >= c) => (reached, Class::LinkFull),
        Some(_) => (reached, Class::Early),
    }
}

/// True if the run itself shows that its exit leaves no trace: in one of the round trips around it, less than
/// the window was in flight, or less than four round trips were left.
fn hidden(o: &Outcome, left: f64) -> bool {
    let rtt = rtt(&o.trace, left).max(o.row.base_rtt_s);
    let unused = |from: f64| {
        let during = |s: &&Sample| (from..from + rtt).contains(&s.time_s);
        let of = |s: &Sample| s.inflight_bytes as f64 / s.cwnd_bytes as f64;
        let used: Vec<f64> = o.trace.samples.iter().filter(during).map(of).collect();
        stats::quantile(&used, 0.5).is_none_or(|median| median < 0.97)
    };
    let end = o.row.completion_s.unwrap_or(o.row.duration_s);
    (-2..=0).any(|n| unused(left + f64::from(n) * rtt)) || end < left + 4.0 * rtt
}

/// Rating of a capture's result.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// The exit within a round trip, with its class; or rightly none.
    Right,
    /// The run left slow start, and the capture shows no trace of it and says so.
    Untraced,
    /// Another exit or class than the run's.
    Wrong,
}

/// Send times of data packets that begin below the highest offset sent.
fn old(trace: &Trace) -> impl Iterator<Item = Instant> + '_ {
    let mut next: Option<u32> = None;
    let data = trace.packets.iter().filter(|c| c.end == 0 && c.leaves && c.segment.len > 0);
    data.filter_map(move |c| {
        let s = &c.segment;
        let end = s.seq.wrapping_add(s.len);
        let old = next.is_some_and(|n| s.seq.wrapping_sub(n).cast_signed() < 0);
        next = Some(if old { next.unwrap_or(end) } else { end });
        old.then_some(c.at)
    })
}

/// Every startup on every built-in path (`SLOWSTART_LONG=1`), or every third of them, others on each path: in
/// at least 95 % of the runs the exit is found within a round trip, with its class, or rightly reported to
/// have left no trace.
#[test]
fn captures_give_the_exits_of_the_runs() {
    let mut all = Vec::new();
    let step = if std::env::var_os("SLOWSTART_LONG").is_some() { 1 } else { 3 };
    for (n, path) in PathSpec::builtins().iter().enumerate() {
        // Ensembles differ from run to run; each has a fixed path among the others.
        if PathSpec::load(path.name, None).expect("a built-in path").is_ensemble() {
            continue;
        }
        // The paths with windows of tens of thousands of segments are tested in release builds only.
        if cfg!(debug_assertions) && matches!(path.name, "geo-144" | "transatlantic" | "fiber") {
            continue;
        }
        for e in slowstart::startup::REGISTRY.iter().skip(n % step).step_by(step) {
            let (verdict, text) = check_run(path.name, e.name);
            if verdict != Verdict::Right {
                println!("{text}");
            }
            all.push(verdict);
        }
    }
    let [right, untraced, wrong] =
        [Verdict::Right, Verdict::Untraced, Verdict::Wrong].map(|w| all.iter().filter(|a| **a == w).count());
    println!("{} runs: {right} right, {untraced} said to leave no trace, {wrong} wrong", all.len());
    assert!(wrong * 20 <= all.len(), "{wrong} of {}", all.len());
    // Few runs may be reported to have left no trace.
    assert!(untraced * 6 <= all.len(), "{untraced} of {}", all.len());
}

/// The qlog of a run gives its exact exit, without inference.
fn check_qlog_exit(o: &Outcome, what: &str) {
    let mut file = Vec::new();
    qlog::write(&mut file, what, &o.trace.samples, &o.trace.events).expect("a Vec takes everything");
    let (kind, input) = open::detect(Box::new(Cursor::new(file))).expect("known");
    assert_eq!(kind, Kind::Qlog);
    let report = read(kind, input, &Options::default(), |_| {}).expect("a log");
    let (seen, run) = (&report.transfers[0].row.exit, &o.row.exit);
    assert_eq!(seen.is_some(), run.is_some(), "{what}");
    if let (Some(seen), Some(run)) = (seen, run) {
        assert!((seen.time_s - run.left_s).abs() < 1e-9, "{what}: {seen:?} against {run:?}");
        assert_eq!(seen.evidence, "stated in the file");
    }
}

/// tshark, if installed, finds no error and the same number of retransmissions.
#[test]
fn tshark_reads_our_captures() {
    if Command::new("tshark").arg("--version").output().is_err() {
        std::io::stderr().write_all(b"skipped: tshark absent\n").expect("stderr");
        return;
    }
    let o = run("rate=20Mbit rtt=40ms queue=1bdp", "standard", Some("2MB"));
    for end in 0..2 {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("end{end}.pcapng"));
        let mut bytes = Vec::new();
        wire::write(&mut bytes, &o.trace.packets, end).expect("a Vec takes everything");
        std::fs::write(&file, bytes).expect("a file");
        let tshark = |filter: &str| {
            let out = Command::new("tshark")
                .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", filter, "-r"])
                .arg(&file)
                .output()
                .expect("it runs");
            assert!(out.status.success() && out.stderr.iter().all(u8::is_ascii), "{filter}");
            String::from_utf8_lossy(&out.stdout).lines().count() as u64
        };
        assert_eq!(tshark("tcp"), o.trace.packets.iter().filter(|p| p.end == end).count() as u64);
        assert_eq!(
            tshark("_ws.malformed || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\""),
            0
        );
        if end == 0 {
            let again = "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || tcp.analysis.out_of_order";
            assert_eq!(tshark(again), old(&o.trace).count() as u64);
        }
    }
}
