//! `slowstart trial pool` on folders of trials that never ran: their statistics are made here.

use crate::common::text;
use crate::conform::conform;
use serde_json::Value;
use slowstart_sim::random::Stream;
use slowstart_trial::output::POOLED_SCHEMA;
use slowstart_trial::{Arm, Guard, Measure, Outcome, Plan, Stratify, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory that is removed on drop.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("slowstart-pool-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("writable");
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the folder of a server: 2,000 connections, those of the second arm `factor` times as slow and with
/// `retrans` times the retransmissions.
fn server(dir: &Path, name: &str, seed: u64, factor: f64, retrans: u64) {
    let arms = ["cubic:50%", "search:50%"].map(|a| Arm::parse(a).expect("an arm")).to_vec();
    let plan = Plan::new(arms, seed).expect("a plan");
    let guards = vec![Guard::parse("retrans=+20%").expect("a guard")];
    let mut trial = Trial::new(plan.clone(), Measure::TimeLast, Stratify::default(), guards, false);
    let mut r = Stream::named(seed, name);
    for key in 0..2000 {
        let arm = plan.assign(key).expect("all are in the trial");
        let time = 0.5 + r.below(1000) as f64 / 1000.0;
        let outcome = Outcome {
            arm,
            unit: key,
            prefix: key,
            handshake_rtt_s: Some(0.05),
            milestones_s: [None; 3],
            last_s: Some(if arm == 1 { time * factor } else { time }),
            delivered_bytes: 1_000_000,
            sent_bytes: 1_000_000,
            retransmitted_bytes: r.below(20_000) * if arm == 1 { retrans } else { 1 },
            rtt_mean: None,
            rtt_peak: None,
            app_limited: None,
            exit: None,
        };
        trial.put(key, outcome, true);
    }
    let statistics = trial.statistics(&format!("{seed:016x}"), "6.18.0", 60.0, 0);
    let folder = dir.join(name);
    fs::create_dir_all(&folder).expect("writable");
    fs::write(folder.join("statistics.json"), serde_json::to_string(&statistics).expect("plain"))
        .expect("writable");
}

fn pool(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slowstart"))
        .current_dir(dir)
        .args(["trial", "pool"])
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs")
}

#[test]
fn servers_that_agree_give_one_answer_on_screen_page_and_as_json() {
    let dir = Dir::new("agree");
    for (name, seed) in [("a", 1), ("b", 2), ("c", 3)] {
        server(&dir.0, name, seed, 0.7, 1);
    }
    let done = pool(&dir.0, &["a", "b", "c", "--report", "fleet.html"]);
    let screen = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{screen}{}", text(&done.stderr));
    assert!(screen.contains("search has less time-last than every other arm"), "{screen}");
    assert!(screen.lines().all(|l| l.chars().count() <= 100), "{screen}");
    let page = fs::read_to_string(dir.0.join("fleet.html")).expect("written");
    assert!(page.contains("search has less time-last") && page.matches("<svg").count() >= 4);
    let again = pool(&dir.0, &["a", "b", "c", "--report", "fleet.html"]);
    assert_eq!(again.status.code(), Some(2), "a page is not overwritten");

    let one = pool(&dir.0, &["a", "b", "c", "--json"]);
    let value: Value = serde_json::from_slice(&one.stdout).expect("JSON");
    conform(&value.to_string(), POOLED_SCHEMA);
    let estimate = value["comparisons"][0]["effect"]["estimate"].as_f64().expect("a number");
    assert!((estimate + 0.3).abs() < 0.02, "{estimate}");
    let other = pool(&dir.0, &["c", "a", "b", "--json"]);
    let other: Value = serde_json::from_slice(&other.stdout).expect("JSON");
    let turned = other["comparisons"][0]["effect"]["estimate"].as_f64().expect("a number");
    assert!((estimate - turned).abs() < 1e-12, "the order of folders changes nothing");
}

#[test]
fn a_crossed_guardrail_writes_the_stop_file_and_has_status_1() {
    let dir = Dir::new("harm");
    server(&dir.0, "a", 1, 1.0, 3);
    server(&dir.0, "b", 2, 1.0, 3);
    let done = pool(&dir.0, &["a", "b", "--stop-file", "stop"]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stdout));
    assert_eq!(fs::read_to_string(dir.0.join("stop")).expect("written"), "search\n");
    // A stop file is replaced, what a person has is not, and no link is followed.
    let again = pool(&dir.0, &["a", "b", "--stop-file", "stop"]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    fs::write(dir.0.join("mine"), "mine\n").expect("writable");
    std::os::unix::fs::symlink(dir.0.join("mine"), dir.0.join("link")).expect("writable");
    for name in ["mine", "link"] {
        let refused = pool(&dir.0, &["a", "b", "--stop-file", name]);
        assert_eq!(refused.status.code(), Some(2), "{name}");
        assert!(text(&refused.stderr).contains("does not replace it"), "{}", text(&refused.stderr));
    }
    std::os::unix::fs::symlink(dir.0.join("mine"), dir.0.join("stop.part")).expect("writable");
    pool(&dir.0, &["a", "b", "--stop-file", "stop"]);
    assert_eq!(fs::read_to_string(dir.0.join("mine")).expect("readable"), "mine\n");
    server(&dir.0, "c", 3, 1.0, 1);
    let done = pool(&dir.0, &["c", "--stop-file", "none"]);
    assert_eq!((done.status.code(), dir.0.join("none").exists()), (Some(0), false));
}

#[test]
fn bad_input_is_named_with_what_was_found_and_expected() {
    let dir = Dir::new("bad");
    server(&dir.0, "a", 1, 1.0, 1);
    server(&dir.0, "b", 2, 1.0, 1);
    let refused = |args: &[&str], words: &[&str]| {
        let done = pool(&dir.0, args);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{args:?}: {said}");
        }
    };
    refused(&["a", "a"], &["hold the same trial"]);
    refused(&["a", "absent"], &["absent"]);
    let file = dir.0.join("b/statistics.json");
    let good = fs::read_to_string(&file).expect("written");
    for (bad, words) in [
        (good.replacen("\"version\":2", "\"version\":9", 1), ["version: found 9", "expected 1 to 2"]),
        (good[..good.len() / 2].to_string(), ["b/statistics.json", "line 1"]),
        (good.replacen("500000", "250000", 1), ["b: arms: found cubic:25%", "expected cubic:50%"]),
        (
            good.replacen("\"measure\":\"time-last\"", "\"measure\":\"speed\"", 1),
            ["plan.measure: found \"speed\"", "time-1mb"],
        ),
        (" ".repeat((1 << 20) + 1), ["more than 1048576 bytes", "statistics of a trial"]),
    ] {
        fs::write(&file, bad).expect("writable");
        refused(&["a", "b"], &words);
    }
}
