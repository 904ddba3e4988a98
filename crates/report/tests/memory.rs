//! Many studies in one process, as notebooks and services run them: memory does not grow with their number.
#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
#![cfg(target_os = "linux")]

use slowstart_report::study::{Drawn, middle, page, sampling};
use slowstart_study::decision::Terms;
use slowstart_study::record::Row;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};
use std::convert::Infallible;
use std::fs;

/// Kilobytes of memory that this process uses now.
fn resident_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("there");
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("of Linux");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A study of six runs on all processors, with its page: what `slowstart compare --out` does.
fn compare(seed: u64) -> usize {
    let text = StudyText {
        path: format!("rate={}Mbit rtt=40ms queue=1bdp jitter=1ms", 5 + seed % 20),
        startups: ["standard", "search", "hystart++"].map(str::to_string).to_vec(),
        size: Some("200kB".to_string()),
        runs: Some(2),
        seed: Some(seed),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).expect("valid");
    let mut rows: Vec<Row> = Vec::new();
    let Ok(()) = study.run_all(|outcome| {
        rows.push(outcome.row);
        Ok::<(), Infallible>(())
    });
    let row = middle(&rows[..2]);
    let trace = study.run(Job { contender: 0, run: row.run }, sampling(row), true).trace;
    page(
        &study,
        &rows,
        &[Drawn { label: "standard", row, trace: &trace }],
        Vec::new(),
        "",
        "",
        &Terms::default(),
    )
    .len()
}

/// 400 studies; with `SLOWSTART_LONG=1` a thousand.
#[test]
fn many_studies_need_the_memory_of_a_hundred() {
    let mut after = Vec::new();
    for n in 1..=if std::env::var_os("SLOWSTART_LONG").is_some() { 1000 } else { 400 } {
        assert!(compare(n) > 10_000);
        if n % 100 == 0 {
            after.push(resident_kb());
        }
    }
    println!("resident after each hundred studies (kB): {after:?}");
    // What allocators keep for threads varies by some megabytes; 300 studies that keep a page each would need
    // more.
    assert!(after[after.len() - 1] < after[0] + 4096, "{after:?}");
}
