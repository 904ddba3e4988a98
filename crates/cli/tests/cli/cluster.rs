//! The job of `contrib/kubernetes` computes a sweep.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const JOB: &str = include_str!("../../../../contrib/kubernetes/sweep-job.yaml");

fn after(key: &str) -> &'static str {
    JOB.split_once(key).map(|(_, rest)| rest).expect(key)
}

/// The parts of a store with their bytes.
fn parts(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(store.join("parts")).expect("a folder").flatten();
    files
        .map(|f| (f.file_name().to_string_lossy().into_owned(), fs::read(f.path()).expect("a file")))
        .collect()
}

/// Runs the command of every pod at once. The store that they fill has the parts, to the byte, that one process writes.
#[test]
fn the_pods_of_a_job_compute_one_sweep() {
    let shards = after("\n  completions: ").lines().next().expect("a number");
    assert_eq!(after("\n  parallelism: ").lines().next(), Some(shards));
    assert_eq!(after("{name: SHARDS, value: \"").split('"').next(), Some(shards));
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cluster-kubernetes");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a folder");
    let study = after("study.toml: |\n").lines().map_while(|l| l.strip_prefix("    "));
    // The study as it is takes too long in a debug build.
    let study: Vec<&str> = study.map(|l| if l.starts_with("size") { "size = \"10kB\"" } else { l }).collect();
    fs::write(dir.join("study.toml"), study.join("\n")).expect("a study");
    let command = env!("CARGO_BIN_EXE_slowstart");
    let line = after("args: ['").split('\'').next().expect("a command of the shell");
    let line = line.replace("/store/", "store/").replace("/study/", "").replace("/slowstart", command);
    let pod = |index: usize| {
        let mut c = Command::new("sh");
        c.args(["-c", &line]).current_dir(&dir).env("SHARDS", shards);
        c.env("JOB_COMPLETION_INDEX", index.to_string()).spawn().expect("a shell")
    };
    fs::create_dir(dir.join("store")).expect("a folder");
    let pods: Vec<Child> = (0..shards.parse().expect("a number")).map(pod).collect();
    for mut pod in pods {
        assert!(pod.wait().expect("a child").success());
    }
    let whole = Command::new(command)
        .args(["--quiet", "sweep", "study.toml", "--out", "whole"])
        .current_dir(&dir)
        .status();
    assert!(whole.expect("it runs").success());
    let whole = parts(&dir.join("whole"));
    assert!(whole.len() > 1);
    assert_eq!(parts(&dir.join("store/sweep")), whole);
}
