//! What a gate says of a startup that stalls in some runs, or breaks a rule: `compare`, `diff`, the suite and its
//! baseline, the league and its baseline.

use crate::common::{folder, slowstart, text};
use std::path::Path;
use std::process::Command;

const PATH: &str = "rate=20Mbit rtt=50ms queue=1bdp";

/// Runs it, and returns its status with what it printed and said.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let out = slowstart(arguments);
    (out.status.code(), text(&out.stdout) + &text(&out.stderr))
}

/// The text without the breaks of its lines.
fn flat(told: &str) -> String {
    told.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Builds the startup of the tests as this file, as it is or with a fault; false without a C compiler.
fn build(library: &Path, fault: Option<&str>) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-I"]).arg(root.join("../ffi/include"));
    cc.args(fault.map(|f| format!("-D{f}"))).arg(root.join("tests/plugins/judged.c"));
    let Ok(out) = cc.arg("-o").arg(library).output() else {
        println!("skipped: startups with faults (no C compiler)");
        return false;
    };
    assert!(out.status.success(), "{}", text(&out.stderr));
    true
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_startup_that_stalls_is_worse_at_every_gate() {
    let dir = folder("gates-stalls");
    let library = dir.join("mine.so");
    if !build(&library, None) {
        return;
    }
    let plugin = format!("plugin:{}", library.display());
    let both = format!("standard,{plugin}");
    let rows = |name: &str| {
        let (_, printed) =
            run(&["compare", PATH, "--size", "1MB", "--runs", "12", "--startup", &both, "--json", "--quiet"]);
        let file = dir.join(name);
        std::fs::write(&file, printed).expect("writable");
        file
    };
    let suite = ["suite", "run", "--scenario", "short-1MB", "--runs", "12", "--startup", &plugin];
    let league = ["league", &plugin, "--population", "lte", "--runs", "12"];
    let (report, games) = (dir.join("suite.json"), dir.join("league.jsonl"));
    let good = rows("good.jsonl");
    let (status, told) = run(&[&suite[..], &["--json", utf8(&report)]].concat());
    assert!(matches!(status, Some(0 | 1)), "{told}");
    let (status, printed) = run(&[&league[..], &["--json", "--quiet"]].concat());
    assert_eq!(status, Some(0));
    std::fs::write(&games, printed).expect("writable");
    let against_suite = [&suite[..], &["--against-baseline", utf8(&report)]].concat();
    let against_league = [&league[..], &["--against-baseline", utf8(&games)]].concat();
    let (status, told) = run(&against_suite);
    assert!(status == Some(0) && told.contains("0 of 2 criteria became worse"), "{told}");
    let (status, told) = run(&against_league);
    assert!(status == Some(0) && told.contains("0 of 1 startups became worse"), "{told}");
    assert_eq!(run(&["diff", utf8(&good), utf8(&good)]).0, Some(0));

    // The same startup, a night later.
    assert!(build(&library, Some("STALL")));
    let bad = rows("bad.jsonl");
    let never = |line: &str| line.contains("\"completion_s\":null");
    let stalled = std::fs::read_to_string(&bad).expect("rows").lines().filter(|l| never(l)).count();
    assert!((1..12).contains(&stalled), "some runs stall: {stalled}");
    let (status, told) = run(&["diff", utf8(&good), utf8(&bad)]);
    assert_eq!(status, Some(1), "{told}");
    assert!(
        flat(&told).contains(&format!("does not complete in {stalled} of 12 runs in which A does")),
        "{told}"
    );
    assert!(told.contains("1 of 2 startups and paths are worse in B."), "{told}");
    let (status, told) = run(&["diff", "--json", utf8(&good), utf8(&bad)]);
    let lines: Vec<serde_json::Value> =
        told.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let is: Vec<&str> = lines.iter().filter_map(|l| l["b_is"].as_str()).collect();
    assert_eq!((status, is), (Some(1), vec!["same", "worse"]), "{told}");
    assert_eq!(lines[1]["b"]["unfinished"], stalled);
    // The way back is better: nothing is worse, and something differs.
    assert_eq!(run(&["diff", utf8(&bad), utf8(&good)]).0, Some(0));
    assert_eq!(run(&["diff", "--any", utf8(&bad), utf8(&good)]).0, Some(1));

    let (status, told) = run(&against_suite);
    assert!(
        status == Some(1)
            && told.contains("never completes in ")
            && told.contains(" of 12 runs that had one"),
        "{told}"
    );
    let (status, told) = run(&against_league);
    assert!(status == Some(1) && told.contains("it never delivers 10 MB in "), "{told}");
    let (_, told) = run(&[&["league", "standard", &plugin, "--baseline", "standard"], &league[2..]].concat());
    let line = told.lines().find(|l| l.contains("mine.so")).expect("a line");
    assert!(line.contains(", never in ") && !line.contains('*'), "{told}");
    let (_, told) = run(&["compare", PATH, "--size", "1MB", "--runs", "12", "--startup", &both]);
    assert!(
        flat(&told).contains(&format!("does not complete in {stalled} of 12 runs"))
            && !told.contains("* plugin"),
        "{told}"
    );

    // What a baseline does not have cannot be compared.
    let (status, told) = run(&[
        "suite",
        "run",
        "--scenario",
        "short-1MB",
        "--runs",
        "6",
        "--startup",
        "search",
        "--against-baseline",
        utf8(&report),
    ]);
    assert!(status == Some(2) && told.contains("expected search among them"), "{told}");
    let (status, told) = run(&["league", &plugin, "--population", "leo", "--against-baseline", utf8(&games)]);
    assert!(status == Some(2) && told.contains("found no case of population leo"), "{told}");
    let (status, told) = run(&[&league[..], &["--seed", "9", "--against-baseline", utf8(&games)]].concat());
    assert!(status == Some(2) && told.contains("found no case that"), "{told}");
}

#[test]
fn a_startup_that_breaks_a_rule_has_no_star_and_no_rank() {
    let dir = folder("gates-breaks");
    let library = dir.join("breaks.so");
    if !build(&library, Some("BREAK")) {
        return;
    }
    let plugin = format!("plugin:{}", library.display());
    let both = format!("standard,{plugin}");
    let (status, told) =
        run(&["compare", PATH, "--size", "1MB", "--runs", "6", "--startup", &both, "--columns", "rank,1mb"]);
    assert!(status == Some(0) && flat(&told).contains("broke a rule and has no place"), "{told}");
    assert!(!told.contains("* plugin"), "{told}");
    let (status, told) = run(&["league", &both, "--population", "lte", "--runs", "6"]);
    let line = told.lines().find(|l| l.contains("breaks.so")).expect("a line");
    assert!(status == Some(0) && line.contains("broke a rule"), "{told}");
    let (status, told) =
        run(&["suite", "run", "--scenario", "short-1MB", "--runs", "6", "--startup", &plugin]);
    assert!(status == Some(1) && told.contains("in 1 scenario it breaks a rule"), "{told}");
    assert!(told.contains("breaks a rule in 6 of 6 runs") && told.contains("cwnd: found 0"), "{told}");
}
