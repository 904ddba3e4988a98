//! `--fork` against real runs: a run of one startup is captured and continued with another startup, and the
//! result is compared with a run of that other startup over the same path.

use crate::common::run;
use slowstart_replay::analysis::Keep;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open::Kind;
use slowstart_replay::replay::{AnalysedTransfer, Options, read};
use slowstart_replay::{fit, fork, wire};
use slowstart_sim::random::Stream;
use std::io::Cursor;

fn replay(o: &slowstart_study::run::Outcome, candidates: &[Candidate]) -> AnalysedTransfer {
    let mut file = Vec::new();
    wire::write(&mut file, &o.trace.packets, 0).expect("a Vec takes everything");
    let candidates = candidates.to_vec().into();
    let options = Options {
        candidates,
        keep: Keep { packets: true, fork_states: true, ..Keep::default() },
        ..Options::default()
    };
    let report = read(Kind::Capture, Box::new(Cursor::new(file)), &options, |_| {}).expect("a capture");
    report.transfers.into_iter().max_by_key(|t| t.row.bytes).expect("a transfer")
}

fn candidates() -> Vec<Candidate> {
    let of = |name: &str| {
        let (_, startup) = slowstart_study::scenario::startup("startup", name).expect("of the registry");
        Candidate { label: name.to_string(), startup }
    };
    ["standard", "hystart", "hystart++", "search", "limited", "vegas", "ess"].map(of).to_vec()
}

/// By how much the continuations of runs over a path miss the time of real ones, as a share.
fn misses(path: &str) -> Vec<f64> {
    let (candidates, mut off) = (candidates(), Vec::new());
    for seen in ["vegas", "hystart", "standard"] {
        let t = replay(&run(path, seen, Some("10MB")), &candidates);
        let findings = t.findings.as_ref().expect("asked for");
        let fitted = fit::fit(findings).expect("a path");
        let all = fork::run(findings, &fitted, &candidates).expect("a path that can be built");
        assert_eq!((all.len(), fitted.rate_changes), (candidates.len(), path.starts_with("schedule")));
        for f in &all {
            let real = replay(&run(path, &f.startup, Some("10MB")), &[]);
            let (done, really) = (f.done_s.expect("it ends"), real.row.duration_s);
            println!(
                "{path}: {} after {seen}, from {:.3} s: {:?} done {done:.2} s, really {:?} {really:.2} s",
                f.startup, f.from_s, f.class, real.row.class
            );
            // Without a loss, the capture does not show the size of the queue.
            if fitted.queue_was_full() {
                off.push((done / really - 1.0).abs());
            }
            assert!(f.from_s <= really && done >= f.from_s);
        }
    }
    off
}

/// The median, what 99 of 100 do not exceed, and the greatest.
fn middle(mut off: Vec<f64>) -> (f64, f64, f64) {
    off.sort_by(f64::total_cmp);
    let (median, nearly, most) = (off[off.len() / 2], off[off.len() * 99 / 100], off[off.len() - 1]);
    println!(
        "{} forks: off by {median:.3} in the median, {nearly:.3} in 99 of 100, {most:.3} at most",
        off.len()
    );
    (median, nearly, most)
}

/// The capture stands for the other startup until they differ by more than a tenth and two segments, so a
/// sender that was up to a round trip slower until then is not corrected for that. A run's capture ends when
/// the receiver has everything, half a round trip before the sender knows.
#[test]
fn a_continued_transfer_takes_as_long_as_a_real_one() {
    let paths = ["rate=40Mbit rtt=80ms queue=1bdp", "rate=15Mbit rtt=150ms queue=2bdp"];
    let (median, _, most) = middle(paths.iter().flat_map(|p| misses(p)).collect());
    assert!(median < 0.02 && most < 0.1);
}

/// Paths whose rate is drawn anew after 0.3 to 1.5 s, from 5 to 50 Mbit/s.
#[test]
fn a_transfer_is_continued_at_the_rates_that_it_met() {
    let path = |seed: u64| {
        let mut of = Stream::named(seed, "fork.paths");
        let mut within = |low: f64, high: f64| low + (high - low) * of.unit();
        let (rtt, queue) = (within(30.0, 150.0), within(200.0, 800.0));
        let (mut at, mut steps) = (0.0, Vec::new());
        while at < 20_000.0 {
            steps.push(format!("{at:.0}ms:{:.0}kbit", 5000.0 * libm::pow(10.0, within(0.0, 1.0))));
            at += within(300.0, 1500.0);
        }
        format!("schedule={} rtt={rtt:.0}ms queue={queue:.0}kB", steps.join(","))
    };
    let (median, nearly, most) = middle((1..=12).flat_map(|seed| misses(&path(seed))).collect());
    assert!(median < 0.05 && nearly < 0.35 && most < 0.5);
}
