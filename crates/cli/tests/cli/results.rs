//! The folder of `--out`: what it refuses, what it keeps, how it is continued.

use crate::common::{folder, slowstart, text};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const STUDY: [&str; 8] = [
    "compare",
    "rate=20Mbit rtt=20ms queue=1bdp jitter=1ms",
    "--size",
    "300kB",
    "--startup",
    "standard,search,limited",
    "--runs",
    "4",
];

/// Runs the study into a folder.
fn study(out: &Path, more: &[&str]) -> Output {
    slowstart(&[&STUDY[..], &["--out", out.to_str().expect("text")], more].concat())
}

fn rows(out: &Path) -> String {
    fs::read_to_string(out.join("results.jsonl")).expect("rows")
}

/// The temporary files of a folder.
fn leftovers(out: &Path) -> usize {
    fs::read_dir(out)
        .expect("a folder")
        .flatten()
        .filter(|f| f.file_name().to_string_lossy().starts_with('.'))
        .count()
}

#[test]
fn a_folder_that_is_not_ours_is_refused() {
    let dir = folder("results-foreign");
    fs::write(dir.join("results.jsonl"), "precious\n").expect("a file");
    let out = study(&dir, &[]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("slowstart did not write it"), "{}", text(&out.stderr));
    assert_eq!(rows(&dir), "precious\n");
    assert!(study(&dir, &["--force"]).status.success());
    assert_eq!(rows(&dir).lines().count(), 12);
}

#[test]
fn another_study_is_refused_and_the_same_one_continues() {
    let dir = folder("results-continued");
    assert!(study(&dir, &[]).status.success());
    let whole = rows(&dir);
    let other = study(&dir, &["--seed", "2"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("--force"), "{}", text(&other.stderr));
    assert_eq!(rows(&dir), whole);
    // As a process that was killed leaves it: some rows, the last of them cut.
    let five: usize = whole.lines().take(5).map(|l| l.len() + 1).sum();
    fs::write(dir.join("results.jsonl"), &whole[..five + 100]).expect("a file");
    fs::remove_file(dir.join("report.html")).expect("it was there");
    let again = study(&dir, &["--timing"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("5 of 12 runs are there"), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("7 runs in "), "{}", text(&again.stderr));
    assert_eq!(rows(&dir), whole);
    assert!(dir.join("report.html").is_file());
    // Rows of another study in its place are not continued.
    fs::write(dir.join("results.jsonl"), &whole[five..]).expect("a file");
    let mixed = study(&dir, &[]);
    assert_eq!(mixed.status.code(), Some(2), "{}", text(&mixed.stderr));
    assert!(study(&dir, &["--seed", "2", "--force"]).status.success());
    assert_ne!(rows(&dir), whole);
}

#[test]
fn links_are_not_followed() {
    let dir = folder("results-links");
    let precious = dir.join("precious");
    fs::write(&precious, "precious\n").expect("a file");
    let out = dir.join("out");
    assert!(study(&out, &[]).status.success());
    for name in ["report.html", "samples.jsonl", "results.jsonl"] {
        fs::remove_file(out.join(name)).expect("it was there");
        symlink(&precious, out.join(name)).expect("a link");
        let _ = study(&out, &[]);
        let _ = study(&out, &["--force"]);
        assert_eq!(fs::read_to_string(&precious).expect("there"), "precious\n", "{name}");
    }
    assert_eq!(leftovers(&out), 0);
}

#[test]
fn names_of_studies_give_folders_of_their_own() {
    let dir = folder("results-names");
    let text_of = "path = \"rate=20Mbit rtt=20ms\"\nstartups = [\"standard\"]\nsize = \"100kB\"\nruns = 1\n";
    for sub in ["a", "b"] {
        fs::create_dir(dir.join(sub)).expect("a folder");
        fs::write(dir.join(sub).join("x.toml"), text_of).expect("a file");
    }
    fs::write(dir.join("...toml"), text_of).expect("a file");
    let file = |name: &str| dir.join(name).display().to_string();
    let out = dir.join("out").join("deep");
    let run = |files: &[&str]| {
        let files: Vec<String> = files.iter().map(|f| file(f)).collect();
        let mut args = vec!["run", "--out", out.to_str().expect("text")];
        args.extend(files.iter().map(String::as_str));
        slowstart(&args)
    };
    let same = run(&["a/x.toml", "b/x.toml"]);
    assert_eq!(same.status.code(), Some(2));
    assert!(text(&same.stderr).contains("would both write"), "{}", text(&same.stderr));
    let dots = run(&["a/x.toml", "...toml"]);
    assert_eq!(dots.status.code(), Some(2), "{}", text(&dots.stderr));
    assert!(!dir.join("out/results.jsonl").exists());
}

/// The number of cases that a test runs: `short`, or `long` if `SLOWSTART_LONG` is set.
fn cases(short: u64, long: u64) -> u64 {
    if std::env::var_os("SLOWSTART_LONG").is_some() { long } else { short }
}

/// A limit on the size of files stands for a full disk: writes fail in the middle.
#[test]
fn a_full_disk_leaves_whole_lines() {
    let places = cases(6, 50);
    for blocks in (0..places).map(|i| 1 + i * 41 / places) {
        let dir = folder("results-full");
        let program = env!("CARGO_BIN_EXE_slowstart");
        let args: Vec<String> = STUDY.iter().map(|a| format!("'{a}'")).collect();
        let line = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec {program} {} --out {}",
            args.join(" "),
            dir.display()
        );
        let out = Command::new("bash").args(["-c", &line]).output().expect("bash");
        assert_eq!(out.status.code(), Some(2), "{blocks}: {}", text(&out.stderr));
        let kept = rows(&dir);
        assert!(kept.is_empty() || kept.ends_with('\n'), "{blocks}: half a line");
        assert!(kept.lines().all(|l| serde_json::from_str::<slowstart_study::record::Row>(l).is_ok()));
        assert_eq!(leftovers(&dir), 0, "{blocks}");
        // With room, it goes on.
        assert!(study(&dir, &[]).status.success(), "{blocks}");
        assert_eq!(rows(&dir).lines().count(), 12, "{blocks}");
    }
}

/// Arguments for a study of `runs` runs of each startup into a folder.
fn long_study(out: &Path, runs: u64) -> Vec<String> {
    let runs = runs.to_string();
    let more = ["--runs", &runs, "--out", out.to_str().expect("text")];
    [&STUDY[..6], &more].concat().into_iter().map(str::to_string).collect()
}

/// Continues a study to its end, and compares it with one that was not disturbed.
fn equals_an_undisturbed_one(dir: &Path, runs: u64) {
    let undisturbed = folder(&format!("results-undisturbed-{runs}"));
    for out in [dir, &undisturbed] {
        let last = Command::new(env!("CARGO_BIN_EXE_slowstart")).args(long_study(out, runs)).output();
        let last = last.expect("it runs");
        assert!(last.status.success(), "{}", text(&last.stderr));
    }
    assert_eq!(rows(dir), rows(&undisturbed));
    assert_eq!(
        fs::read(dir.join("samples.jsonl")).expect("there"),
        fs::read(undisturbed.join("samples.jsonl")).expect("there")
    );
}

/// Killed at random moments and started again, a study has the rows of one that was not.
#[test]
fn a_killed_study_is_continued_to_the_same_bytes() {
    let dir = folder("results-killed");
    let (kills, runs) = (cases(8, 200), cases(40, 167));
    // Moments from 3 ms to 150 ms after the start, by a multiplicative sequence.
    let mut moment = 1_u64;
    for _ in 0..kills {
        moment = moment * 48_271 % 2_147_483_647;
        let mut child = Command::new(env!("CARGO_BIN_EXE_slowstart"))
            .args(long_study(&dir, runs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        std::thread::sleep(std::time::Duration::from_millis(3 + moment % 148));
        let _ = child.kill();
        child.wait().expect("it ends");
    }
    equals_an_undisturbed_one(&dir, runs);
}

/// Out of memory at any point, a study ends by itself, and what it wrote is continued.
#[test]
#[cfg(target_os = "linux")]
fn a_study_without_memory_is_continued_to_the_same_bytes() {
    let dir = folder("results-memory");
    let runs = 30;
    let (limits, mut failed) = (cases(6, 40), 0);
    for i in 0..limits {
        // From what the loader needs, to what one run needs.
        let bytes = 16_000_000 + i * 24_000_000 / limits;
        let out = Command::new("prlimit")
            .args([&format!("--as={bytes}"), "--core=0", env!("CARGO_BIN_EXE_slowstart")])
            .args(long_study(&dir, runs))
            .env("RAYON_NUM_THREADS", "2")
            // With it Rust's handler of a failed allocation allocates, and may wait for its own lock.
            .env_remove("RUST_BACKTRACE")
            .output()
            .expect("prlimit");
        failed += u32::from(!out.status.success());
        let kept = fs::read_to_string(dir.join("results.jsonl")).unwrap_or_default();
        let whole = kept.lines().filter(|l| serde_json::from_str::<slowstart_study::record::Row>(l).is_ok());
        // A process that is aborted may leave its last line cut; the next one removes it.
        assert!(whole.count() + 1 >= kept.lines().count(), "{bytes} bytes");
    }
    assert!(failed > 0, "no limit was reached");
    equals_an_undisturbed_one(&dir, runs);
}

/// Another user of the machine neither changes results nor keeps their owner from writing.
#[test]
#[cfg(target_os = "linux")]
fn another_user_cannot_disturb_results() {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
    let able = Command::new("setpriv").arg("--version").output().is_ok_and(|o| o.status.success());
    if !root || !able {
        println!("skipped: another_user_cannot_disturb_results (needs root and setpriv)");
        return;
    }
    // A folder that every user reaches, as /tmp is.
    let dir = std::env::temp_dir().join(format!("slowstart-two-users-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a folder");
    let program = dir.join("slowstart");
    fs::copy(env!("CARGO_BIN_EXE_slowstart"), &program).expect("a copy");
    let out = dir.join("out");
    assert!(study(&out, &[]).status.success());
    let whole = rows(&out);
    let other = |more: &[&str]| {
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args([&STUDY[..], &["--out", out.to_str().expect("text")], more].concat())
            .output()
            .expect("setpriv")
    };
    for more in [&["--seed", "2", "--force"][..], &["--force"]] {
        let refused = other(more);
        assert_eq!(refused.status.code(), Some(2), "{more:?}: {}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains("ermission denied"), "{}", text(&refused.stderr));
        assert_eq!(rows(&out), whole, "{more:?}");
    }
    assert!(study(&out, &["--force"]).status.success(), "its owner may still write");
    fs::remove_dir_all(&dir).expect("it was made here");
}

#[test]
fn two_at_once_do_not_mix() {
    let dir = folder("results-twice");
    let args = [&STUDY[..6], &["--runs", "2000", "--json", "--out", dir.to_str().expect("text")]].concat();
    let mut child = Command::new(env!("CARGO_BIN_EXE_slowstart"))
        .args(&args)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    lines.next().expect("a row").expect("a row");
    for more in [None, Some("--force")] {
        let second = slowstart(&args.iter().copied().chain(more).collect::<Vec<_>>());
        assert_eq!(second.status.code(), Some(2), "{}", text(&second.stderr));
        assert!(
            text(&second.stderr).contains("another slowstart is writing there"),
            "{}",
            text(&second.stderr)
        );
        assert!(rows(&dir).starts_with('{'), "the first one's rows are gone");
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

/// What a verb writes outside a folder of its own replaces nothing and follows no link.
#[test]
fn files_that_are_there_are_refused() {
    let dir = folder("results-refused");
    let (mine, there, link) = (dir.join("mine"), dir.join("there"), dir.join("link"));
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/download.pcapng.gz");
    let name = |p: &Path| p.to_str().expect("text").to_string();
    let refused = |args: &[&str], says: &str| {
        let out = slowstart(args);
        let err = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.contains(says), "{args:?}: {err}");
        assert_eq!(fs::read(&mine).expect("a file"), b"mine", "{args:?}");
    };
    let plant = |file: &Path| {
        let _ = fs::remove_file(file);
        fs::write(&mine, "mine").expect("a file");
        symlink(&mine, file).expect("a link");
    };
    let toml = dir.join("path.toml");
    for file in [&toml, &there.with_extension("toml")] {
        plant(&toml);
        fs::write(there.with_extension("toml"), "mine").expect("a file");
        refused(&["fit", capture, "--out", &name(file)], "is not replaced");
        assert_eq!(fs::read(file).expect("a file"), b"mine");
    }
    plant(&link);
    // A build without Parquet says that it has none, and writes nothing either.
    refused(
        &[&STUDY[..], &["--parquet", &name(&link)]].concat(),
        if cfg!(feature = "sweep") { "is not replaced" } else { "" },
    );
    plant(&link);
    refused(&[&STUDY[..], &["--picture", &name(&link)]].concat(), "is not replaced");
    for option in ["--html", "--json"] {
        refused(&["suite", "run", "--startup", "search", option, &name(&link)], "is not replaced");
    }
    // A page of claims, where a person has a README.
    fs::create_dir_all(&there).expect("a folder");
    let readme = there.join("README.md");
    plant(&readme);
    refused(&["reproduce", "hystart/fig1", "--out", &name(&there)], "found README.md without claims.jsonl");
    assert!(fs::symlink_metadata(&readme).expect("it is there").is_symlink());
    // A page for `man`.
    let man = dir.join("man1");
    fs::create_dir_all(&man).expect("a folder");
    plant(&man.join("slowstart-run.1"));
    refused(&["man", &name(&man)], "symbolic link");
    // The folder of a replay is its own, so that a link in it is replaced.
    let out = dir.join("replayed");
    let replay = ["replay", capture, "--out", &name(&out)];
    assert!(slowstart(&replay).status.success());
    let samples = fs::read(out.join("samples.jsonl")).expect("samples");
    plant(&out.join("samples.jsonl"));
    assert!(slowstart(&replay).status.success());
    assert_eq!(fs::read(&mine).expect("a file"), b"mine");
    assert_eq!(fs::read(out.join("samples.jsonl")).expect("samples"), samples);
}
