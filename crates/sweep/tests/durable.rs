//! A process may be killed at any moment: what a sweep or a replay has done is on the disk before the next run
//! or file begins, so that a kill loses only what has begun.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use slowstart_replay::replay::Options;
use slowstart_sweep::captures::{self, Captures};
use slowstart_sweep::plan::Plan;
use slowstart_sweep::run::{Shard, run};
use slowstart_sweep::store::Store;

/// Counts the lines of the journals for which `is_one` holds; a finished part counts as `of_part` lines.
fn on_disk(store: &Path, is_one: impl Fn(&str) -> bool, of_part: usize) -> usize {
    let list = |sub: &str| fs::read_dir(store.join(sub)).expect("a folder").flatten().map(|e| e.path());
    let parts: Vec<_> = list("parts").map(|p| p.file_stem().map(ToOwned::to_owned)).collect();
    let journals = list("journal").filter(|j| !parts.contains(&j.file_stem().map(ToOwned::to_owned)));
    let lines = |file: &Path| {
        let text = slowstart_files::read_text(file, 1 << 24).expect("text");
        text.lines().filter(|l| is_one(l)).count()
    };
    parts.len() * of_part + journals.map(|j| lines(&j)).sum::<usize>()
}

#[test]
fn a_run_is_on_the_disk_before_the_next_begins() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = "path = \"rate=5Mbit rtt=20ms queue=1bdp\"\nstartups = [\"standard\", \"hystart\"]\nsize = \"100kB\"\nruns = 1\n\
                [axes]\nrate = \"5..25Mbit/12\"\n";
    let plan = Plan::read(text, None, None).expect("valid");
    let store = Store::create(dir.path()).expect("a store");
    // 24 runs in chunks of eight.
    assert_eq!((plan.len(), plan.chunks()), (24, 3));
    let done = AtomicUsize::new(0);
    let each = |n: usize, computed: bool| {
        let done =
            if computed { done.fetch_add(n, Ordering::Relaxed) + n } else { done.load(Ordering::Relaxed) };
        assert_eq!(on_disk(dir.path(), |_| true, 8), done, "runs on the disk");
        true
    };
    let report = run(&plan, &store, Shard::ALL, 1, &each).expect("it can be written");
    assert_eq!((report.computed, done.into_inner()), (24, 24));
}

#[test]
fn a_file_is_on_the_disk_before_the_next_begins() {
    let dir = tempfile::tempdir().expect("a folder");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/captures/download.pcapng.gz");
    let files: Vec<_> = (0..6).map(|i| dir.path().join(format!("{i}.pcapng.gz"))).collect();
    for file in &files {
        fs::copy(&sample, file).expect("a file");
    }
    let out = dir.path().join("store");
    let store = captures::create(&out).expect("a store");
    let options = Options::default();
    let done = AtomicUsize::new(0);
    let each = |n: usize, read: bool| {
        let done = if read { done.fetch_add(n, Ordering::Relaxed) + n } else { done.load(Ordering::Relaxed) };
        assert_eq!(on_disk(&out, |l| l.starts_with("{\"read\":"), 1), done, "files on the disk");
        true
    };
    let report =
        Captures::new(&files, &[], &options).run(&store, &options, 1, &each).expect("it can be written");
    assert_eq!((report.read, done.into_inner()), (6, 6));
}
