//! `--fork` against real runs: a run of one startup is captured and continued with another startup, and the
//! result is compared with a run of that other startup over the same path.

use crate::common::run;
use slowstart_replay::analysis::Keep;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open::Kind;
use slowstart_replay::replay::{AnalysedTransfer, Options, read};
use slowstart_replay::{fit, fork, wire};
use std::io::Cursor;

fn replay(o: &slowstart_lab::run::Outcome, candidates: &[Candidate]) -> AnalysedTransfer {
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

#[test]
fn a_continued_transfer_takes_as_long_as_a_real_one() {
    let candidates: Vec<Candidate> =
        ["standard", "hystart", "hystart++", "search", "limited", "vegas", "ess"]
            .map(|name| {
                let (_, startup) =
                    slowstart_lab::scenario::startup("startup", name).expect("of the registry");
                Candidate { label: name.to_string(), startup }
            })
            .to_vec();
    let mut off = Vec::new();
    for path in ["rate=40Mbit rtt=80ms queue=1bdp", "rate=15Mbit rtt=150ms queue=2bdp"] {
        for seen in ["vegas", "hystart", "standard"] {
            let t = replay(&run(path, seen, Some("10MB")), &candidates);
            let findings = t.findings.as_ref().expect("asked for");
            let fitted = fit::fit(findings).expect("a path");
            let all = fork::run(findings, &fitted, &candidates).expect("a path that can be built");
            assert_eq!(all.len(), candidates.len());
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
    }
    // The capture stands for the other startup until they differ by more than a tenth and two segments, so a
    // sender that was up to a round trip slower until then is not corrected for that. A run's capture ends
    // when the receiver has everything, half a round trip before the sender knows.
    off.sort_by(f64::total_cmp);
    let (median, most) = (off[off.len() / 2], off[off.len() - 1]);
    println!("{} forks: off by {median:.3} in the median, {most:.3} at most", off.len());
    assert!(median < 0.1 && most < 0.2, "{off:?}");
}
