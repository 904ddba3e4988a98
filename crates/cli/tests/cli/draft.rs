//! `slowstart suite report`: a stored result as Markdown and as an Internet-Draft. Apart from the tests of whole stacks, whose
//! packets would be late beside it.

use crate::common::{slowstart, text};
use std::process::Command;

/// What the appendix of a draft says: the same commands again give the same bytes, and one scenario alone the same numbers.
#[test]
fn an_outsider_repeats_a_draft_to_the_byte() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite-draft");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("writable");
    let made = |name: &str, scenarios: &[&str], threads: &str| {
        let file = dir.join(name);
        let file = file.to_str().expect("UTF-8");
        let out = Command::new(env!("CARGO_BIN_EXE_slowstart"))
            .args(["suite", "run", "--startup", "search,hystart++"])
            .args(scenarios.iter().flat_map(|s| ["--scenario", s]))
            .args(["--json", file])
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .expect("it runs");
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        let draft = slowstart(&["suite", "report", file, "--draft", "--date", "2026-11-28"]);
        assert_eq!(draft.status.code(), Some(0), "{}", text(&draft.stderr));
        let stored = std::fs::read_to_string(file).expect("written");
        (serde_json::from_str::<serde_json::Value>(&stored).expect("JSON"), text(&draft.stdout))
    };
    let both = ["short-1MB", "jitter"];
    let (report, draft) = made("first.json", &both, "1");
    assert_eq!((&report, &draft), (&made("again.json", &both, "2").0, &made("third.json", &both, "2").1));
    let of = |r: &serde_json::Value, s: &str| -> Vec<serde_json::Value> {
        r["entries"].as_array().expect("entries").iter().filter(|e| e["scenario"] == s).cloned().collect()
    };
    for scenario in both {
        let alone = made(&format!("{scenario}.json"), &[scenario], "2").0;
        assert_eq!(of(&report, scenario), of(&alone, scenario), "{scenario}");
        assert_eq!(alone["entries"].as_array().map(Vec::len), Some(of(&report, scenario).len()));
        // The command below its table, in one line.
        let unfolded = draft.replace(" \\\n ", "");
        let command = format!(
            "slowstart suite run --startup search --startup hystart++ --avoidance cubic --seed 1 --scenario {scenario}\n"
        );
        assert!(unfolded.contains(&command), "{unfolded}");
    }
}

#[test]
fn a_stored_report_is_printed_again_or_refused() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite-stored");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("writable");
    let file = dir.join("result.json");
    let file = file.to_str().expect("UTF-8");
    let run =
        slowstart(&["suite", "run", "--startup", "standard", "--scenario", "short-1MB", "--json", file]);
    let again = slowstart(&["suite", "report", file]);
    assert_eq!(text(&run.stdout), text(&again.stdout));
    let why = |arguments: &[&str]| {
        let out = slowstart(&[&["suite", "report"], arguments].concat());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stdout));
        text(&out.stderr)
    };
    assert!(why(&[file, "--draft"]).contains("--date"));
    assert!(why(&[file, "--draft", "--date", "2026-02-30"]).contains("expected a day such as 2026-11-28"));
    assert!(
        why(&[file, "--draft", "--date", "2026-11-28", "--name", "Mine"]).contains("--name: found \"Mine\"")
    );
    let stored = std::fs::read_to_string(file).expect("written");
    std::fs::write(file, stored.replace("\"suite_sha256\": \"", "\"suite_sha256\": \"0")).expect("writable");
    let other = why(&[file, "--draft", "--date", "2026-11-28"]);
    assert!(other.contains("result.json: the suite: found startup-1 with SHA-256"), "{other}");
    let edited = stored.replacen("\"verdict\": \"meets\"", "\"verdict\": \"undecided\"", 1);
    std::fs::write(file, edited).expect("writable");
    assert!(why(&[file]).contains("found \"undecided\", expected \"meets\" by its runs"));
    std::fs::write(file, "{}").expect("writable");
    assert!(why(&[file]).contains("result.json: no report of a suite"));
}
