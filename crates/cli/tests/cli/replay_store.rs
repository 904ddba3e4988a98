//! `slowstart replay --out STORE`: kills, changed files, mixed formats, two processes, bad input.

use crate::common::text;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/captures/download.pcapng.gz")
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    c.args(["replay", "--startup", "hystart,search"]).args(args).env("NO_COLOR", "1").current_dir(dir);
    c
}

fn replay(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().expect("it runs")
}

fn folder(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("replay-store-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("captures/older")).expect("a folder");
    dir
}

/// A qlog of a sender that leaves slow start, with this many packets a round at first.
fn qlog(packets: u64) -> String {
    let (mut events, mut next) = (Vec::new(), 0);
    for round in 0..6_u64 {
        let (at, window) = (round * 50, packets << round.min(3));
        let first = next;
        for _ in 0..window {
            events.push(format!(
                r#"{{"time":{at},"name":"transport:packet_sent","data":{{"header":{{"packet_type":"1RTT","packet_number":{next}}},"raw":{{"length":1200}}}}}}"#
            ));
            next += 1;
        }
        events.push(format!(
            r#"{{"time":{},"name":"transport:packet_received","data":{{"header":{{"packet_type":"1RTT","packet_number":{round}}},"frames":[{{"frame_type":"ack","acked_ranges":[[{first},{}]]}}]}}}}"#,
            at + 50,
            next - 1
        ));
    }
    let events = events.join(",");
    format!(
        r#"{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"type":"server"}},"events":[{events}]}}]}}"#
    )
}

/// Files of several formats in a folder and one within it.
fn captures(dir: &Path, n: u64) {
    let ss = |cwnd: u64| {
        format!(
            "{cwnd}.5\nESTAB 0 0 10.0.0.1:443 10.0.0.2:5000\n\t cubic rtt:40/2 mss:1448 cwnd:{cwnd} retrans:0/1\n"
        )
    };
    for i in 0..n {
        let file = |name: &str| dir.join("captures").join(format!("{i:03}-{name}"));
        match i % 4 {
            0 => fs::copy(sample(), file("a.pcapng.gz")).map(drop).expect("a file"),
            1 => fs::write(file("b.qlog"), qlog(i + 1)).expect("a file"),
            2 => fs::write(file("c.txt"), format!("{}{}{}", ss(10), ss(20 + i), ss(40 + i))).expect("a file"),
            _ => fs::write(dir.join("captures/older").join(format!("{i:03}.qlog")), qlog(i)).expect("a file"),
        }
    }
}

/// The bytes of each file of a store.
fn contents(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for sub in ["", "parts", "files", "journal"] {
        for entry in fs::read_dir(store.join(sub)).expect("a folder").map(|e| e.expect("an entry")) {
            if entry.path().is_file() {
                let name = format!("{sub}/{}", entry.file_name().to_string_lossy());
                all.insert(name, fs::read(entry.path()).expect("a file"));
            }
        }
    }
    all
}

/// Rows of a store as JSON.
fn rows(dir: &Path, store: &str) -> Vec<serde_json::Value> {
    let mut c = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    let out = c.args(["sweep", "query", store, "--json"]).current_dir(dir).output().expect("it runs");
    assert!(out.status.success(), "{}", text(&out.stderr));
    text(&out.stdout).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
}

/// The files that a call read, as it says.
fn read(stderr: &[u8]) -> u64 {
    let text = text(stderr);
    let line = text.lines().find(|l| l.contains(" files read in ")).expect("it says so");
    let before = line.split_once(" of ").expect("of all").0;
    before.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number")
}

/// The files that a store has recorded: of so few, each is a part.
fn recorded(store: &Path) -> u64 {
    let list = |sub: &str| fs::read_dir(store.join(sub)).into_iter().flatten().flatten().map(|e| e.path());
    let stem = |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned());
    let parts: Vec<_> = list("parts").filter(|p| p.extension().is_some_and(|e| e == "parquet")).collect();
    let finished = |p: &Path| parts.iter().any(|part| stem(part) == stem(p));
    let whole =
        |p: &Path| fs::read_to_string(p).unwrap_or_default().lines().any(|l| l.starts_with("{\"read\":"));
    (parts.len() + list("journal").filter(|p| !finished(p) && whole(p)).count()) as u64
}

/// The rows in the store are those that the command prints, with names; a second call reads nothing; a file
/// that is added or changed is the only one read.
#[test]
fn rows_are_those_of_the_files_and_only_missing_files_are_read() {
    let dir = folder("rows");
    captures(&dir, 12);
    let run = |out: &str| {
        let out = replay(&dir, &["captures", "--out", out]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        (read(&out.stderr), text(&out.stdout))
    };
    let (read, report) = run("store");
    assert_eq!(read, 12);
    assert!(report.starts_with("12 transfers of ") && report.contains("\nexits: too early "), "{report}");
    assert!(report.contains("hystart") && report.contains("limited for most of the time"), "{report}");
    assert_eq!(run("store"), (0, report));
    let stored = rows(&dir, "store");
    let printed = text(&replay(&dir, &["captures", "--json"]).stdout);
    let printed: Vec<serde_json::Value> =
        printed.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!((stored.len(), printed.len()), (12, 12));
    for (a, b) in stored.iter().zip(&printed) {
        for key in ["file", "source", "class", "bytes", "min_rtt_s", "certain", "connection"] {
            assert_eq!(a[key], b[key], "{key}: {a} {b}");
        }
    }
    let sources: std::collections::BTreeSet<_> = stored.iter().map(|r| r["source"].to_string()).collect();
    assert_eq!(sources.len(), 3, "{sources:?}");
    fs::write(dir.join("captures/new.qlog"), qlog(9)).expect("a file");
    assert_eq!((run("store").0, rows(&dir, "store").len()), (1, 13));
    fs::write(dir.join("captures/new.qlog"), qlog(17)).expect("a file");
    let (read, report) = run("store");
    // The rows of the file before its change stay in the store, and are not in the report.
    assert!(read == 1 && report.starts_with("13 transfers of "), "{read} {report}");
}

/// Killed again and again, and with two processes at a time, it has the same bytes in the end; no file that
/// was recorded is read again.
#[test]
fn killed_again_and_again_it_gives_the_same_bytes() {
    let dir = folder("kill");
    let files = 60;
    captures(&dir, files);
    let whole = replay(&dir, &["captures", "--out", "whole"]);
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    let start = || {
        command(&dir, &["captures", "--out", "killed"])
            .env("RAYON_NUM_THREADS", "2")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs")
    };
    let recorded = || recorded(&dir.join("killed"));
    let mut kills = 0;
    for n in 0..200_u64 {
        let mut child = start();
        // Killed a moment after a few more files are recorded: by progress, so that it does not depend on the machine.
        let before = recorded();
        while recorded() < before + n % 4 && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros(n * 7919 % 5000));
        let ended = child.try_wait().expect("a child").is_some();
        child.kill().expect("a child");
        child.wait().expect("a child");
        assert!(recorded() >= before, "{} files are recorded, {before} before a kill", recorded());
        if ended || recorded() + 10 > files {
            break;
        }
        kills += 1;
    }
    let before = recorded();
    let both = [start(), start()].map(|c| c.wait_with_output().expect("a child"));
    assert!(both.iter().all(|c| c.status.success()));
    let read: u64 = both.iter().map(|c| read(&c.stderr)).sum();
    assert_eq!((before + read, recorded()), (files, files), "a file is read twice");
    let (whole, killed) = (contents(&dir.join("whole")), contents(&dir.join("killed")));
    assert!(whole.keys().eq(killed.keys()), "{:?} {:?}", whole.keys(), killed.keys());
    let differ: Vec<_> = whole.iter().filter(|(name, bytes)| killed[*name] != **bytes).map(|w| w.0).collect();
    assert!(differ.is_empty() && whole.len() > 60 && kills > 0, "{differ:?} {kills}");
}

/// A file that cannot be read is named, and is not read again; the status is 2. Another program's folder, a
/// store of sweeps and one of another version are refused, and nothing in them changes.
#[test]
fn what_cannot_be_read_or_written_is_named() {
    let dir = folder("bad");
    captures(&dir, 4);
    fs::write(dir.join("captures/torn.pcap"), [0xd4, 0xc3, 0xb2, 0xa1]).expect("a file");
    fs::write(dir.join("captures/notes"), "nothing\n").expect("a file");
    for _ in 0..2 {
        let out = replay(&dir, &["captures", "--out", "captures/store"]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("captures/torn.pcap: offset 0: "), "{said}");
        assert!(said.contains("captures/notes: offset 0: found an unknown format"), "{said}");
        assert!(said.contains("2 of 6 files could not be read"), "{said}");
        assert!(text(&out.stdout).starts_with("4 transfers of "), "{}", text(&out.stdout));
    }
    let refuses = |args: &[&str], says: &str| {
        let out = replay(&dir, args);
        let said = text(&out.stderr);
        assert!(out.status.code() == Some(2) && said.contains(says), "{args:?}: {said}");
    };
    fs::create_dir_all(dir.join("other")).expect("a folder");
    fs::write(dir.join("other/thesis.tex"), "x").expect("a file");
    refuses(&["captures", "--out", "other"], "the folder is of another program");
    let marker = dir.join("captures/store/slowstart-store.json");
    let text_of = fs::read_to_string(&marker).expect("a marker");
    fs::write(&marker, text_of.replace("\"captures\"", "\"sweeps\"")).expect("a file");
    refuses(&["captures", "--out", "captures/store"], "found a store of sweeps, expected one of captures");
    fs::write(&marker, text_of.replace("\"format\": 1", "\"format\": 7")).expect("a file");
    refuses(&["captures", "--out", "captures/store"], "found a store of format 7");
    assert!(fs::read_to_string(&marker).expect("a marker").contains("\"format\": 7"));
    refuses(&["captures", "--out", "s", "--json"], "expected one of them");
    refuses(&["captures", "--out", "s", "--fork"], "--fork");
    refuses(&["-", "captures", "--out", "s"], "found standard input");
}
