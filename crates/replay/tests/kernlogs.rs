//! Kernel logs with known exits: the exit of each startup by its own rule.

use slowstart_replay::analysis::Keep;
use slowstart_replay::kernlog;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open::{self, Kind};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

fn candidate(label: &str) -> Candidate {
    let (_, startup) = slowstart_study::scenario::startup("startup", label).expect("of the registry");
    Candidate { label: label.to_string(), startup }
}

fn read(file: &Path, label: &str) -> String {
    let (kind, input) = open::open(file).expect("a file");
    assert_eq!(kind, Kind::KernelLog);
    let log = kernlog::replay(input, &[candidate(label)].into(), Keep::default()).expect("a log");
    let w = &log.findings.startups[0].prediction;
    let mut text = String::new();
    let rule = w.rule.map(|(_, m)| m);
    for m in w.changes.iter().filter(|m| rule.is_none_or(|r| m.at < r.at)).chain(&rule) {
        write!(text, "{} {} ({}) ", m.what, m.at.0 / 1000, m.cwnd.units(log.mss)).expect("a String");
    }
    text.trim_end().to_string()
}

/// File, startup, and its phase changes: microseconds since the first ACK, window in packets.
#[test]
fn startups_exit_where_the_kernel_or_the_authors_code_did() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kernlogs");
    let mut wrong = Vec::new();
    for (name, label, want) in [
        ("geo-search-in1.csv.gz", "search-2.0", "rate-flat 10906998"),
        ("geo-search-in1.csv.gz", "search-3.0", "rate-flat 10906998"),
        ("geo-search-in1.csv.gz", "search-3.1", "rate-flat 10906998"),
        ("geo-search-in1.csv.gz", "hystart:rules=5.10", "delay 1079104 (29)"),
        ("geo-search-in2.csv.gz", "search-2.0", "rate-flat 8028593"),
        ("geo-search-in2.csv.gz", "search-3.0", "rate-flat 8028593"),
        ("geo-search-in2.csv.gz", "search-3.1", "rate-flat 8028593"),
        ("geo-search-in2.csv.gz", "hystart:rules=5.10", "delay 2281385 (90)"),
        ("geo-hystart613-in2.csv.gz", "search-3.0", "rate-flat 8359721"),
        ("geo-hystart613-in2.csv.gz", "search-3.1", "rate-flat 4279962"),
        ("geo-hystart613-in2.csv.gz", "hystart:rules=6.13", "delay 1799552 (48)"),
        ("geo-hystart613-in2.csv.gz", "hystart:rules=5.10", "delay 1039887 (29)"),
        (
            "geo-hystart613-in2.csv.gz",
            "hystart++",
            "css 1759966 (47) slow-start 3440328 (66) css 3839936 (79) css-rounds 8839470 (172)",
        ),
        ("geo-allOff-in3.csv.gz", "search-2.0", "rate-flat 6519917"),
        ("geo-allOff-in3.csv.gz", "search-3.0", "rate-flat 6519917"),
        ("geo-allOff-in3.csv.gz", "search-3.1", "rate-flat 6519917"),
        ("geo-allOff-in3.csv.gz", "hystart:rules=6.13", "delay 1800674 (48)"),
        ("geo-allOff-in3.csv.gz", "hystart:rules=5.10", "delay 1042036 (29)"),
        ("geo-allOff-in3.csv.gz", "hystart++", "css 1760363 (47) css-rounds 24600074 (355)"),
        ("4g-allOff-in1.csv", "search-3.0", "rate-flat 2848041"),
        ("4g-allOff-in1.csv", "search-3.1", "rate-flat 342783"),
        ("4g-allOff-in1.csv", "hystart:rules=6.13", "delay 145705 (124)"),
        ("4g-allOff-in1.csv", "hystart:rules=5.10", "delay 89555 (49)"),
        ("4g-allOff-in1.csv", "hystart++", "css 145700 (123) slow-start 146558 (132) css 191672 (189)"),
        ("4g-allOff-in2.csv", "search-3.0", "rate-flat 3929817"),
        ("4g-allOff-in2.csv", "search-3.1", "rate-flat 3929817"),
        ("4g-allOff-in2.csv", "hystart:rules=6.13", "delay 120048 (75)"),
        ("4g-allOff-in2.csv", "hystart:rules=5.10", "delay 120071 (76)"),
        ("4g-allOff-in2.csv", "hystart++", "css 120024 (74) slow-start 166299 (90)"),
        ("4g-allOff-in3.csv", "search-3.0", "rate-flat 448069"),
        ("4g-allOff-in3.csv", "search-3.1", "rate-flat 359966"),
        ("4g-allOff-in3.csv", "hystart:rules=6.13", "delay 70275 (28)"),
        ("4g-allOff-in3.csv", "hystart:rules=5.10", "delay 70310 (29)"),
        // Linux resumes at 110077, because it requires nine samples and RFC 9406 eight; its window is a
        // packet smaller from there on.
        ("4g-allOff-in3.csv", "hystart++", "css 70240 (27) slow-start 110030 (32) css 150252 (61)"),
    ] {
        let file = dir.join(name);
        if !file.exists() {
            // Written directly, because the test harness captures println.
            std::io::stderr().write_all(format!("skipped: {name} absent\n").as_bytes()).expect("stderr");
            continue;
        }
        let found = read(&file, label);
        println!("{name} {label}: {found}");
        if !found.starts_with(want) {
            wrong.push(format!("{name} {label}: found {found}, expected {want}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The log by formula of `crates/slowstart/tests`; the arithmetic is explained there.
#[test]
fn a_log_by_formula_exits_where_the_formula_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../slowstart/tests/data/kernlog-by-formula.csv");
    assert_eq!(read(&file, "hystart"), "delay 1840000 (88)");
    assert_eq!(read(&file, "hystart++"), "");
}

#[test]
fn errors_name_the_line() {
    let header = "now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate\n";
    let error = |text: &str| {
        kernlog::replay(text.as_bytes(), &[].into(), Keep::default()).expect_err("refused").to_string()
    };
    assert!(error("now_us,mss\n").contains("line 1: ") && error("now_us,mss\n").contains("bytes_acked"));
    assert!(error(&format!("{header}0,1,x,4,5,6\n")).contains("line 2: mss: found \"x\""));
    assert!(error(&format!("{header}0,1,0,4,5,6\n")).contains("line 2: mss"));
    assert!(error(&format!("{header}0,1,1400,4\n")).contains("line 2: snd_nxt: found \"\""));
    assert!(error(header).contains("found no row"));
}
