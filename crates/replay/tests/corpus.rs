//! Connections of the running kernel, captured at both ends (`research/corpus`, seed 1), with
//! the kernel's own account of each: a few small ones. `research/score` judges a whole corpus
//! in the same way.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

#[path = "../../../research/score/truth.rs"]
mod truth;

use flate2::read::GzDecoder;
use serde_json::Value;
use slowstart_replay::replay::{Options, replay};
use slowstart_replay::transfer::ExitClass;
use std::fs;
use std::io::Read;
use std::path::Path;
use truth::{Answer, Verdict, judge, read, same_window};

#[test]
fn answers_agree_with_the_kernel_s_account() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let index = fs::read_to_string(dir.join("index.jsonl")).expect("in the tree");
    let (mut traced, mut right, mut windows, mut invented, mut certain, mut certain_right) =
        (0, 0, 0, 0, 0, 0);
    for line in index.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let n = case["case"].as_u64().expect("a number");
        let plain = case["settings"].to_string().contains("tcp_timestamps=0");
        let mss = if plain { 1460 } else { 1448 };
        let packed = fs::read(dir.join(format!("{n:04}.probes.csv.gz"))).expect("in the tree");
        let mut probes = String::new();
        GzDecoder::new(&*packed).read_to_string(&mut probes).expect("gzip");
        let bytes = case["received"].as_u64().expect("a number");
        let kernel = read(&probes, mss, bytes, case["control"] == "search").expect("complete");
        for (end, late) in [("sender", 0.0), ("receiver", 0.5)] {
            let file = dir.join(format!("{n:04}-{end}.pcap.gz"));
            let report = replay(&file, &Options::default(), |_| {}).expect("a capture");
            let t = report.transfers.into_iter().map(|t| t.row).max_by_key(|t| t.bytes).expect("a transfer");
            let answer = match (&t.exit, t.class) {
                (Some(e), _) => Answer::Exit(t.start_s + e.time_s, e.cwnd_bytes),
                (None, ExitClass::None) => Answer::None,
                (None, _) => Answer::Unknown,
            };
            let verdict = judge(kernel.as_ref(), answer, late);
            println!("{n} {end} {}: {verdict:?}, certain {}", case["kind"], t.certain);
            invented += u32::from(verdict == Verdict::Invented);
            if t.certain {
                certain += 1;
                certain_right += u32::from(verdict == Verdict::Right);
            }
            if let Some(kernel) = kernel.filter(|k| k.traced) {
                traced += 1;
                if let (Verdict::Right, Answer::Exit(_, window)) = (verdict, answer) {
                    right += 1;
                    windows += u32::from(same_window(&kernel, window, mss));
                }
            }
        }
    }
    println!(
        "{right} of {traced} with a trace, {windows} windows, {invented} invented, {certain_right} of {certain} certain"
    );
    assert!(
        traced >= 10 && right * 10 >= traced * 9 && windows * 10 >= right * 8,
        "{right} of {traced}, {windows}"
    );
    assert!(invented <= 2 && certain_right * 10 >= certain * 9, "{invented}, {certain_right} of {certain}");
}
