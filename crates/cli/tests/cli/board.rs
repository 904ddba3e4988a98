//! `slowstart suite board` and `audit`: entrants side by side, and those that cheat.

use crate::common::{folder, refuses, slowstart, text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Builds a C file of this crate or of the C interface as a library; false without a C compiler.
fn build(source: &str, library: &Path, define: Option<&str>) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-I"]).arg(root.join("../ffi/include"));
    cc.args(define.map(|d| format!("-D{d}"))).arg(root.join(source));
    let Ok(out) = cc.arg("-o").arg(library).output() else {
        println!("skipped: entrants in C (no C compiler)");
        return false;
    };
    assert!(out.status.success(), "{}", text(&out.stderr));
    true
}

#[test]
fn an_entrant_that_reads_the_path_or_ignores_losses_is_found() {
    let dir = folder("board-cheats");
    let of = |define: Option<&str>| {
        let library = dir.join(format!("{}.so", define.unwrap_or("honest")));
        build("tests/plugins/cheat.c", &library, define).then(|| format!("plugin:{}", library.display()))
    };
    let Some(honest) = of(None) else { return };
    let [reads, ignores] = ["READS", "IGNORES"].map(|d| of(Some(d)).expect("it was built before"));
    let audit = |startup: &str| {
        let out = slowstart(&[
            "suite",
            "audit",
            "--startup",
            startup,
            "--scenario",
            "short-1MB",
            "--scenario",
            "wifi",
        ]);
        (out.status.code(), text(&out.stdout) + &text(&out.stderr))
    };
    let (status, told) = audit(&honest);
    assert!(status == Some(0) && told.contains("The same 8 values"), "{status:?} {told}");
    let (status, told) = audit(&reads);
    assert!(
        status == Some(1) && told.contains("READS.so, short-1MB: completion_s") && !told.contains("wifi"),
        "{status:?} {told}"
    );
    // Whoever ignores losses has read nothing: the criteria find it.
    assert_eq!(audit(&ignores).0, Some(0));
    let judged = |startup: &str| {
        let run = ["suite", "run", "--scenario", "collapse-30-percent", "--scenario", "overshoot-shallow"];
        slowstart(&[&run[..], &["--runs", "6", "--startup", startup]].concat()).status.code()
    };
    assert_eq!((judged(&honest), judged(&ignores)), (Some(0), Some(1)));
}

#[test]
fn a_board_has_a_row_for_each_entrant_with_its_hash() {
    let dir = folder("board");
    let library = dir.join("newreno.so");
    if !build("../ffi/examples/newreno.c", &library, None) {
        return;
    }
    let plugin = format!("plugin:{}", library.display());
    let run = |name: &str, startup: &str, more: &[&str]| {
        let file = dir.join(name);
        let file = file.to_str().expect("UTF-8").to_string();
        let base = ["suite", "run", "--startup", startup, "--scenario", "short-1MB", "--json", &file];
        let out = slowstart(&[&base[..], more].concat());
        assert!(matches!(out.status.code(), Some(0 | 1)), "{}", text(&out.stderr));
        file
    };
    let mine = run("mine.json", &plugin, &["--scenario", "overshoot-shallow"]);
    let ours = run("ours.json", "hystart,vegas", &[]);
    let page = dir.join("board.html");
    let out = slowstart(&["suite", "board", &mine, &ours, "--html", page.to_str().expect("UTF-8")]);
    let board = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let hash = slowstart_suite::entrant::sha256_of(&library).expect("a file");
    let rows: Vec<&str> = board.lines().filter(|l| l.starts_with("| ") && !l.contains("Entrant")).collect();
    assert_eq!(rows.len(), 6, "{board}");
    assert!(board.contains("Meets, of 2 that all have"), "{board}");
    // Vegas is late with 1 MB: it is last.
    assert!(rows[2].starts_with("| vegas | sim (linux-6.18), cubic | 1 | 1 | 0 |"), "{board}");
    assert!(rows[3..].iter().any(|r| r.contains("newreno.so") && r.contains(&hash)), "{board}");
    assert!(rows[3..].iter().any(|r| r.starts_with("| hystart | in slowstart ")), "{board}");
    let page = fs::read_to_string(page).expect("written");
    assert!(page.contains(&hash) && page.contains("Who meets what"), "{page}");

    // What is not of the suite, or does not follow from its runs, is refused.
    let stored = fs::read_to_string(&ours).expect("written");
    let change = |from: &str, to: &str| {
        assert!(stored.contains(from), "{from}");
        fs::write(&ours, stored.replacen(from, to, 1)).expect("writable");
    };
    change("\"suite_sha256\": \"", "\"suite_sha256\": \"0");
    refuses(&["suite", "board", &ours], &["ours.json: the suite: found startup-1 with SHA-256 0"]);
    let again = slowstart(&[
        "suite",
        "run",
        "--startup",
        "hystart",
        "--scenario",
        "short-1MB",
        "--against-baseline",
        &ours,
    ]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stdout));
    assert!(
        text(&again.stderr).contains("startup-1: found the suite with SHA-256 0"),
        "{}",
        text(&again.stderr)
    );
    change("\"verdict\": \"does-not-meet\"", "\"verdict\": \"meets\"");
    refuses(
        &["suite", "board", &ours],
        &["vegas, short-1MB", "found \"meets\", expected \"does not meet\" by its runs"],
    );
}
