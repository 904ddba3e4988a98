//! `slowstart kernel trial` on real connections: a server in a cgroup of its own and a client, joined by an
//! emulated path. Needs root, a kernel that can load startups, a writable cgroup v2, TUN devices and
//! iproute2, and is skipped otherwise.
#![cfg(feature = "kernel")]
#![allow(clippy::disallowed_methods, reason = "the test measures real time")]

mod conform;
#[path = "kernel_trial/downloads.rs"]
mod downloads;
mod jumping_clock;
#[path = "kernel_trial/running.rs"]
mod running;
mod wait;
mod works;

use conform::conform;
use downloads::{Download, by_control, download, role};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use running::{Cgroup, SmallDisk, Trial, arms_become, controls};
use serde_json::Value;
use slowstart_linux::Verb;
use slowstart_trial::output::{CONNECTION_SCHEMA, RESULT_SCHEMA};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use wait::wait_until;
use works::works;

/// One test at a time: each path has a real-time thread, and a machine may have only one or two processors.
static ONE: Mutex<()> = Mutex::new(());

fn slowstart(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    command
        .args(args)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the lock and a cgroup, or `None` if this machine cannot run the test.
fn able(test: &str) -> Option<(MutexGuard<'static, ()>, Cgroup)> {
    let skip = |why: &str| println!("skipped: kernel tests that need {why}");
    if !works(&[Verb::Load, Verb::Trial]) {
        return None;
    }
    if !Path::new("/dev/net/tun").exists() || Command::new("ip").arg("-V").output().is_err() {
        skip("/dev/net/tun and iproute2");
        return None;
    }
    let Some(cgroup) = Cgroup::new(test) else {
        skip("a writable cgroup v2");
        return None;
    };
    Some((ONE.lock().unwrap_or_else(PoisonError::into_inner), cgroup))
}

/// The least difference between values of the same rank.
fn nearest(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let differ = a.iter().zip(&b).map(|(a, b)| a - b);
    differ.min_by(|a, b| a.abs().total_cmp(&b.abs())).expect("a pair")
}

fn rows(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("connections.jsonl")).expect("written");
    text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
}

/// An empty folder's name.
fn folder(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("trial-{name}"));
    let _ = fs::remove_dir_all(&dir);
    dir
}

/// True if `k` of `n` could be chosen with probability `p`: less than five standard deviations from the mean,
/// which by chance is exceeded less than once in a million times.
fn plausible(k: usize, n: usize, p: f64) -> bool {
    let (k, n) = (k as f64, n as f64);
    (k - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt()
}

#[test]
fn a_disk_that_fills_costs_rows_and_nothing_else() {
    let Some((_one, cgroup)) = able("a_disk_that_fills_costs_rows_and_nothing_else") else { return };
    let disk = SmallDisk::new(folder("disk"));
    let (out, inside) = (disk.file("out"), disk.dir.join("out"));
    let args = ["--arm", "cubic:50%", "--arm", "reno:50%", "--out", inside.to_str().expect("text")];
    let mut trial = Trial::start_by(disk.command(), &cgroup, &args);
    let path = "rate=100Mbit rtt=4ms queue=1bdp";
    download(&cgroup, path, 4, 2, 10_000);
    thread::sleep(Duration::from_millis(300));
    let filler = disk.file("filler");
    let append = |bytes: usize| {
        let file = fs::OpenOptions::new().append(true).create(true).open(&filler);
        file.and_then(|mut f| f.write_all(&vec![7; bytes]))
    };
    for bytes in [4096, 1] {
        while append(bytes).is_ok() {}
    }
    download(&cgroup, path, 20, 2, 10_000);
    trial.wait_for("the trial goes on");
    fs::remove_file(&filler).expect("it is there");
    download(&cgroup, path, 4, 2, 10_000);
    let (status, said) = trial.end(Signal::SIGTERM);
    assert!(status == Some(2) && said.contains("rows are missing"), "{status:?} {said}");
    let result: Value =
        serde_json::from_str(&fs::read_to_string(out.join("result.json")).expect("written")).expect("JSON");
    let (rows, missing) = (rows(&out).len() as u64, result["rows_missing"].as_u64().expect("a number"));
    assert!(rows >= 8 && missing > 0 && rows + missing == 28, "{rows} rows, {missing} missing");
    let counted: u64 =
        result["arms"].as_array().expect("arms").iter().filter_map(|a| a["connections"].as_u64()).sum();
    assert_eq!(counted, 28, "the result counts all");
    assert!(out.join("report.html").exists());
}

/// Nobody reads its results and messages any more, its stop file is a pipe that nobody writes to, and the terminal
/// goes: the trial goes on, and what it found is written.
#[test]
fn a_trial_outlives_the_readers_of_its_outputs() {
    let Some((_one, cgroup)) = able("a_trial_outlives_the_readers_of_its_outputs") else { return };
    let (out, stop) = (folder("unread"), folder("unread-stop").join("fifo"));
    let _ = fs::remove_dir_all(stop.parent().expect("a folder"));
    fs::create_dir_all(stop.parent().expect("a folder")).expect("writable");
    assert!(Command::new("mkfifo").arg(&stop).status().expect("coreutils are installed").success());
    // Under nohup, which ignores SIGHUP, it would go on, as the whole test may be.
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP").arg(env!("CARGO_BIN_EXE_slowstart"));
    command.args(["kernel", "trial", "--cgroup", cgroup.0.to_str().expect("text")]);
    let mut child = command
        .args(["--arm", "cubic:50%", "--arm", "reno:50%", "--every", "1s"])
        .args([OsStr::new("--out"), out.as_os_str(), OsStr::new("--stop-file"), stop.as_os_str()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(lines.next().expect("a line").expect("text").starts_with("after "));
    drop((lines, child.stderr.take()));
    download(&cgroup, "rate=100Mbit rtt=4ms queue=1bdp", 4, 2, 10_000);
    thread::sleep(Duration::from_secs(3));
    assert_eq!(child.try_wait().expect("a child"), None, "the trial goes on");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGHUP).expect("it runs");
    // A trial that hangs is ended after two minutes.
    let mut ended = None;
    for _ in 0..1200 {
        ended = child.try_wait().expect("a child");
        if ended.is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    assert_eq!(ended.map(|s| (s.code(), s.signal())), Some((Some(0), None)));
    let result: Value =
        serde_json::from_str(&fs::read_to_string(out.join("result.json")).expect("written")).expect("JSON");
    let counted: u64 =
        result["arms"].as_array().expect("arms").iter().filter_map(|a| a["connections"].as_u64()).sum();
    let rows = rows(&out);
    assert_eq!((counted, rows.len()), (4, 4));
    // With these a result can be filed, and rows be joined with an incident.
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("readable");
    assert_eq!(result["server"]["kernel"], release.trim());
    let began = result["server"]["began_unix_s"].as_f64().expect("a time");
    assert!(rows.iter().all(|r| r["read_unix_s"].as_f64().expect("a time") >= began), "{rows:?}");
}

/// Connections come faster than a result is written: the last that is printed is the one in the folder.
#[test]
fn the_result_that_is_printed_at_the_end_is_the_one_that_is_written() {
    let test = "the_result_that_is_printed_at_the_end_is_the_one_that_is_written";
    let Some((_one, cgroup)) = able(test) else { return };
    let (out, printed) = (folder("end"), folder("end-printed"));
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" >\"$PRINTED\"", env!("CARGO_BIN_EXE_slowstart")]);
    command.env("PRINTED", &printed).stdin(Stdio::null()).stderr(Stdio::piped());
    let args = ["--arm", "cubic:50%", "--arm", "reno:50%", "--json", "--out", out.to_str().expect("text")];
    let trial = Trial::start_by(command, &cgroup, &args);
    thread::scope(|scope| {
        scope.spawn(|| download(&cgroup, "rate=1Gbit rtt=2ms queue=1bdp", 2000, 40, 1000));
        while fs::read_to_string(out.join("connections.jsonl")).expect("there").lines().count() < 100 {
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(trial.end(Signal::SIGTERM).0, Some(0));
    });
    let printed = fs::read_to_string(printed).expect("printed");
    let mut last: Value = serde_json::from_str(printed.lines().last().expect("a result")).expect("JSON");
    let written = fs::read_to_string(out.join("result.json")).expect("written");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    // Only what is written knows of rows that could not be written.
    last["rows_missing"] = written["rows_missing"].clone();
    assert_eq!(last, written);
}

/// What another user puts into the folder while the trial runs is replaced, and not followed.
#[test]
fn links_put_into_the_folder_of_a_trial_are_not_followed() {
    let Some((_one, cgroup)) = able("links_put_into_the_folder_of_a_trial_are_not_followed") else { return };
    let (out, mine) = (folder("links"), folder("mine"));
    fs::write(&mine, "mine").expect("a file");
    let args = ["--arm", "cubic:50%", "--arm", "reno:50%", "--out", out.to_str().expect("text")];
    let trial = Trial::start(&cgroup, &args);
    let temporary = |name| format!(".slowstart-{}-{name}", trial.child.id());
    let names = ["result.json", "report.html", "statistics.json"];
    for name in names.map(String::from).into_iter().chain(names.map(temporary)) {
        symlink(&mine, out.join(name)).expect("a link");
    }
    assert_eq!(trial.end(Signal::SIGTERM).0, Some(0));
    assert_eq!(fs::read_to_string(&mine).expect("a file"), "mine");
    for name in names {
        assert!(fs::symlink_metadata(out.join(name)).expect("written").is_file(), "{name}");
    }
}

/// 40 downloads at an RTT of 200 ms: 100 kB take three round trips and a part of one, 1.2 MB fill the path.
#[test]
fn each_connection_is_assigned_measured_and_counted_once() {
    let Some((_one, cgroup)) = able("each_connection_is_assigned_measured_and_counted_once") else { return };
    let out = folder("measured");
    let args = ["--arm", "cubic:50%", "--arm", "search:50%", "--out", out.to_str().expect("text")];
    let trial = Trial::start(&cgroup, &args);
    let all = download(&cgroup, "rate=20Mbit rtt=200ms queue=1bdp", 40, 6, 1_200_000);
    let pid = trial.child.id();
    let (status, said) = trial.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");

    // What the server saw is what was counted.
    let used = by_control(&all);
    let search = *used.keys().find(|c| c.starts_with("ss_")).expect("an arm");
    assert_eq!(used.keys().collect::<Vec<_>>(), [&"cubic", &search]);
    assert!(plausible(used[search], 40, 0.5), "{used:?}");
    let rows = rows(&out);
    let of = |arm: &str| rows.iter().filter(|r| r["arm"] == arm).count();
    let found = (rows.len(), of("cubic"), of("search"));
    let told = || fs::read_to_string(out.join("result.json")).unwrap_or_default() + &said;
    assert_eq!(found, (40, used["cubic"], used[search]), "{}", told());
    conform(&fs::read_to_string(out.join("connections.jsonl")).expect("written"), CONNECTION_SCHEMA);
    let result: Value =
        serde_json::from_str(&fs::read_to_string(out.join("result.json")).expect("written")).expect("JSON");
    conform(&result.to_string(), RESULT_SCHEMA);
    let zero = ["outside", "own_choice", "refused", "without_storage", "lost_records"];
    assert!(zero.iter().all(|k| result["counts"][k] == 0), "{}", result["counts"]);
    assert_eq!(result["counts"]["assigned"], serde_json::json!([used["cubic"], used[search]]));

    // Outcomes.
    for r in &rows {
        assert!(r["closed"] == true && r["a_a"] == false && r["delivered_bytes"] == 1_200_000, "{r}");
        assert!(r["sent_bytes"].as_u64() >= Some(1_200_000) && r["milestones_s"][2].is_null(), "{r}");
        let number = |key: &str| r[key].as_f64().unwrap_or_else(|| panic!("no {key} in {r}"));
        assert!(number("handshake_rtt_s") >= 0.2, "{r}");
        assert!(number("rtt_peak") >= number("rtt_mean") && number("rtt_mean") >= 1.0, "{r}");
    }

    // Times are those of the client: the request reaches the server as long after it was sent as an ACK after
    // the data. Taken from another event all of them are off by at least half a round trip. A busy machine
    // delays some, by any time, so that the nearest pair counts, the shortest with the shortest and so on.
    let (t100, last) = (|r: &Value| r["milestones_s"][0].as_f64(), |r: &Value| r["last_s"].as_f64());
    let kernel = |of: &dyn Fn(&Value) -> Option<f64>| rows.iter().map(|r| of(r).expect("a time")).collect();
    let client = |of: &dyn Fn(&Download) -> f64| all.iter().map(of).collect();
    let differ = [
        nearest(kernel(&t100), client(&|d| d.time_100kb_s)),
        nearest(kernel(&last), client(&|d| d.time_last_s)),
    ];
    println!("measured: the kernel's times differ from the client's by {differ:?} s in the nearest pairs");
    assert!(differ.iter().all(|d| d.abs() < 0.05), "{differ:?}: a quarter of a round trip is 0.05 s");

    // Startups of this project tell how they ended; a connection that has resent more than a probe has left
    // its startup. If the others have filled the queue it leaves with its first window of ten packets, which is smaller if
    // its SYN-ACK was lost.
    let known = ["rate-flat", "loss", "timeout", "cwr", "ssthresh"];
    let (mut ended, mut largest) = (0, None);
    for r in rows.iter().filter(|r| r["arm"] == "search") {
        let exit = &r["exit"];
        assert!(!exit.is_null() || r["retransmitted_bytes"].as_u64() < Some(5_000), "{r}");
        if !exit.is_null() {
            ended += 1;
            let cwnd = exit["cwnd"].as_u64();
            assert!(known.iter().any(|k| exit["reason"] == *k) && cwnd >= Some(1), "{r}");
            largest = largest.max(cwnd);
            assert!(exit["time_s"].as_f64() > Some(0.1) && exit["time_s"].as_f64() <= last(r), "{r}");
        }
    }
    println!(
        "measured: {ended} of {} startups of search ended, with {largest:?} packets at most",
        used[search]
    );
    assert!(ended > 0 && largest > Some(10));

    // Nothing is left.
    assert!(arms_become(false, pid), "{:?}", controls());
    let after = download(&cgroup, "rate=100Mbit rtt=2ms queue=1bdp", 4, 2, 10_000);
    assert!(!by_control(&after).contains_key(search), "{after:?}");
    assert!(out.join("report.html").exists());
}

/// `emulate` gives its server a cgroup, which a trial takes.
#[test]
fn a_trial_among_the_connections_of_an_emulated_server() {
    let Some((_one, _)) = able("a_trial_among_the_connections_of_an_emulated_server") else { return };
    let out = folder("emulated");
    let go = out.with_extension("go");
    let _ = fs::remove_file(&go);
    let client = format!("while [ ! -e {} ]; do sleep 0.05; done; {}", go.display(), role("downloads"));
    let mut emulate =
        slowstart(&["emulate", "rate=100Mbit rtt=4ms queue=1bdp", "--serve", &role("serves"), "--"])
            .args(["sh", "-c", &client])
            .env("SLOWSTART_SERVE_IN", "")
            .env("SLOWSTART_DOWNLOAD", "6 2 10000")
            .spawn()
            .expect("it runs");
    let mut err = BufReader::new(emulate.stderr.take().expect("piped"));
    let mut line = String::new();
    let group = loop {
        line.clear();
        assert!(err.read_line(&mut line).expect("text") > 0, "no cgroup was named");
        if let Some((_, dir)) = line.trim_end().split_once("the server's cgroup: ") {
            break Cgroup(PathBuf::from(dir));
        }
    };
    let trial = Trial::start(
        &group,
        &["--arm", "cubic:50%", "--arm", "reno:50%", "--out", out.to_str().expect("text")],
    );
    fs::write(&go, "").expect("writable");
    let mut said = String::new();
    err.read_to_string(&mut said).expect("text");
    assert!(emulate.wait().expect("it ends").code().is_some(), "{said}");
    thread::sleep(Duration::from_millis(300));
    let (status, words) = trial.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{words}");
    assert_eq!(rows(&out).len(), 6, "{said}");
    assert!(!group.0.exists(), "the cgroup is removed");
}

/// A trial that is killed, one that is ended, and a start between them with another plan: one folder, one result.
#[test]
fn a_trial_goes_on_in_its_folder_after_a_restart() {
    let Some((_one, cgroup)) = able("a_trial_goes_on_in_its_folder_after_a_restart") else { return };
    let out = folder("goes-on");
    let shown = out.to_str().expect("text");
    let with =
        |second: &'static str| ["--arm", "cubic:50%", "--arm", second, "--every", "1s", "--out", shown];
    let path = "rate=100Mbit rtt=4ms queue=1bdp";
    let mut trial = Trial::start(&cgroup, &with("reno:50%"));
    download(&cgroup, path, 6, 2, 10_000);
    let written = || fs::read_to_string(out.join("connections.jsonl")).unwrap_or_default();
    wait_until("six rows", || written().matches('\n').count() == 6);
    trial.child.kill().expect("it runs");
    trial.child.wait().expect("it ends");
    drop(trial);
    assert!(!out.join("result.json").exists() && rows(&out).len() == 6);
    let mut torn = fs::OpenOptions::new().append(true).open(out.join("connections.jsonl")).expect("there");
    let half = "{\"arm\":\"cubic\",\"read_u";
    torn.write_all(half.as_bytes()).expect("writable");
    drop(torn);

    let group = cgroup.0.to_str().expect("text");
    let args = [&["kernel", "trial", "--cgroup", group], &with("bbr:50%")[..]].concat();
    let other = slowstart(&args).output().expect("it runs");
    let said = text(&other.stderr);
    assert_eq!(other.status.code(), Some(2), "{said}");
    assert!(said.contains("arms: there cubic:50% reno:50%, now cubic:50% bbr:50%"), "{said}");

    let mut trial = Trial::spawn(slowstart(&[]), &cgroup, &with("reno:50%"));
    let goes_on = trial.wait_for("the trial goes on with 6 connections from before");
    assert!(
        goes_on.contains(&format!("{} bytes of a row", half.len()))
            && goes_on.contains("0 of cubic, 0 of reno"),
        "{goes_on}"
    );
    trial.wait_for("new connections are assigned to");
    download(&cgroup, path, 4, 2, 10_000);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(trial.end(Signal::SIGTERM).0, Some(0));
    let trial = Trial::start(&cgroup, &with("reno:50%"));
    download(&cgroup, path, 2, 1, 10_000);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(trial.end(Signal::SIGINT).0, Some(0));

    assert_eq!(rows(&out).len(), 12);
    let result = fs::read_to_string(out.join("result.json")).expect("written");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    conform(&result.to_string(), RESULT_SCHEMA);
    let gaps = result["gaps"].as_array().expect("an array");
    assert_eq!((gaps.len(), &gaps[0]["ended"], &gaps[1]["ended"]), (2, &false.into(), &true.into()));
    assert_eq!((&gaps[0]["cut_bytes"], &gaps[1]["cut_bytes"]), (&half.len().into(), &0.into()));
    let sum = |of: &dyn Fn(&Value) -> u64, all: &Value| {
        all.as_array().expect("an array").iter().map(of).sum::<u64>()
    };
    let connections = sum(&|a| a["connections"].as_u64().expect("a number"), &result["arms"]);
    let assigned = sum(&|n| n.as_u64().expect("a number"), &result["counts"]["assigned"]);
    assert_eq!((connections, assigned), (12, 12), "{result}");
    let page = fs::read_to_string(out.join("report.html")).expect("written");
    assert_eq!(page.matches("gap: the trial").count(), 2);
}

#[test]
fn kill_9_leaves_nothing_behind() {
    let Some((_one, cgroup)) = able("kill_9_leaves_nothing_behind") else { return };
    let path = "rate=100Mbit rtt=2ms queue=1bdp";
    let before = by_control(&download(&cgroup, path, 2, 1, 10_000)).keys().map(ToString::to_string).next();
    let args = ["--arm", "search:50%", "--arm", "ess:50%"];
    let trial = Trial::start(&cgroup, &args);
    let all = download(&cgroup, path, 20, 4, 10_000);
    assert!(all.iter().all(|d| d.control.starts_with("ss_")), "{all:?}");
    let pid = trial.child.id();
    trial.end(Signal::SIGKILL);
    assert!(arms_become(false, pid), "{:?}", controls());
    let after = download(&cgroup, path, 10, 2, 10_000);
    assert!(after.iter().all(|d| Some(&d.control) == before.as_ref()), "{before:?} {after:?}");
    // The cgroup can be used again at once.
    drop(Trial::start(&cgroup, &args));
}

/// Runs a trial whose clock of this name jumps by an hour more with every second call, in a time namespace
/// whose monotonic clock is a day ahead, and stops it with `SIGSTOP` during eight of twelve downloads.
/// Returns its rows and its result.
fn disturbed(cgroup: &Cgroup, library: &Path, clock: &str) -> (Vec<Value>, Value) {
    let out = folder(clock);
    let mut command = Command::new("unshare");
    command.args(["--time", "--monotonic", "86400", "--boottime", "86400", "env"]);
    command.arg(format!("LD_PRELOAD={}", library.display())).arg(format!("JUMPING_CLOCK={clock}"));
    command.arg(env!("CARGO_BIN_EXE_slowstart")).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let args =
        ["--arm", "search:50%", "--arm", "ess:50%", "--every", "1s", "--out", out.to_str().expect("text")];
    let trial = Trial::start_by(command, cgroup, &args);
    let path = "rate=20Mbit rtt=20ms queue=1bdp";
    download(cgroup, path, 4, 2, 300_000);
    trial.signal(Signal::SIGSTOP);
    download(cgroup, path, 8, 2, 300_000);
    thread::sleep(Duration::from_secs(1));
    trial.signal(Signal::SIGCONT);
    let (status, said) = trial.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    let result = fs::read_to_string(out.join("result.json")).expect("written");
    (rows(&out), serde_json::from_str(&result).expect("JSON"))
}

/// Times are the kernel's, and the trial's own are of the monotonic clock, which nobody sets. That the
/// library moves the clocks of this program is shown by `a_jump_of_the_wall_clock_changes_nothing`.
#[test]
fn a_clock_that_is_set_and_a_program_that_is_stopped_change_no_row() {
    let test = "a_clock_that_is_set_and_a_program_that_is_stopped_change_no_row";
    let Some((_one, cgroup)) = able(test) else { return };
    let namespaces = Command::new("unshare").args(["--time", "true"]).output();
    let Some(library) = jumping_clock::built().filter(|_| namespaces.is_ok_and(|o| o.status.success()))
    else {
        println!("skipped: kernel tests that need cc and time namespaces");
        return;
    };
    let begin = Instant::now();
    let (all, result) = disturbed(&cgroup, &library, "realtime");
    let took = begin.elapsed().as_secs_f64();
    assert_eq!(all.len(), 12);
    for r in &all {
        assert!(r["closed"] == true && r["delivered_bytes"] == 300_000, "{r}");
        let (last, exit) = (r["last_s"].as_f64(), r["exit"]["time_s"].as_f64());
        assert!(last.is_some_and(|s| (0.1..10.0).contains(&s)) && exit <= last, "{r}");
    }
    assert!(all.iter().any(|r| !r["exit"].is_null()), "how a startup ended is known: {all:?}");
    let counted = |result: &Value| {
        result["counts"]["assigned"].as_array().map(|a| a.iter().filter_map(Value::as_u64).sum())
    };
    assert_eq!((counted(&result), result["counts"]["lost_records"].as_u64()), (Some(12), Some(0)));
    let seconds = result["seconds"].as_f64().expect("a number");
    assert!(seconds > 1.0 && seconds < took, "{seconds} of {took} s");
    // Nor do rows have a jump of the clock that the trial itself uses.
    let (all, _) = disturbed(&cgroup, &library, "monotonic");
    assert!(all.len() == 12 && all.iter().all(|r| r["last_s"].as_f64() < Some(10.0)), "{all:?}");
}

/// Reads those counters for Prometheus that are whole numbers.
fn scrape(port: u16) -> BTreeMap<String, u64> {
    let mut s = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    s.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    s.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let values = answer.lines().filter_map(|l| l.rsplit_once(' '));
    values.filter_map(|(k, v)| Some((k.to_string(), v.parse().ok()?))).collect()
}

/// The harmful arm grows by five segments in each round trip: 200 kB take it six round trips, and four with
/// the others.
#[test]
fn a_harmful_arm_is_ended_and_nobody_receives_its_share() {
    let Some((_one, cgroup)) = able("a_harmful_arm_is_ended_and_nobody_receives_its_share") else { return };
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let out = folder("harm");
    let limited = "limited:max_ssthresh=10";
    let args = [
        ["--arm", "cubic:40%", "--arm", &format!("{limited}:40%"), "--arm", "reno:20%"],
        ["--stop-on-harm", "time-last=+20%", "--every", "1s", "--out", out.to_str().expect("text")],
    ];
    let address = format!("127.0.0.1:{port}");
    let mut trial = Trial::start(&cgroup, &[&args.concat()[..], &["--prometheus", &address]].concat());
    let path = "rate=200Mbit rtt=60ms queue=1bdp";
    let all = download(&cgroup, path, 200, 10, 200_000);
    let used = by_control(&all);
    let harmful = used.iter().find(|(c, _)| c.starts_with("ss_")).map(|(_, n)| *n);
    assert!(harmful > Some(49) && used["cubic"] > 49, "too few by chance: {used:?}");
    let said = trial.wait_for("has crossed a guardrail");
    assert!(said.contains("limited"), "{said}");
    let arms = [limited, "cubic", "reno"];
    let mut metrics = scrape(port);
    let of = |metrics: &BTreeMap<String, u64>, name: &str, arm: &str| {
        metrics[&format!("slowstart_trial_{name}{{arm=\"{arm}\"}}")]
    };
    wait_until("metrics that count each connection", || {
        metrics = scrape(port);
        let assigned: u64 = arms.map(|a| of(&metrics, "assigned_total", a)).iter().sum();
        assigned + metrics["slowstart_trial_not_assigned_total{why=\"outside\"}"] == 200
    });
    assert_eq!(arms.map(|a| of(&metrics, "ended", a)), [1, 0, 0]);
    let before = metrics["slowstart_trial_not_assigned_total{why=\"outside\"}"];

    // None uses it any more, and those of its share keep the control that they had: the kernel's default.
    let after = download(&cgroup, "rate=200Mbit rtt=2ms queue=1bdp", 100, 4, 10_000);
    assert!(after.iter().all(|d| !d.control.starts_with("ss_")), "{:?}", by_control(&after));
    let (status, said) = trial.end(Signal::SIGINT);
    assert_eq!(status, Some(0), "{said}");
    let result = fs::read_to_string(out.join("result.json")).expect("written");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!(result["arms"][1]["ended"]["guard"], "time-last=+20%", "{}", result["arms"]);
    let outside = result["counts"]["outside"].as_u64().expect("a number");
    assert!(plausible((outside - before) as usize, 100, 0.4), "{outside} outside, {before} before");
}

/// One process holds the controls of all arms.
#[test]
fn each_arm_has_its_own_counters_in_the_list() {
    let Some((_one, cgroup)) = able("each_arm_has_its_own_counters_in_the_list") else { return };
    let trial = Trial::start(&cgroup, &["--arm", "search:30%", "--arm", "hystart++:70%"]);
    let all = download(&cgroup, "rate=200Mbit rtt=2ms queue=1bdp", 60, 4, 10_000);
    let used = by_control(&all);
    let list = slowstart(&["kernel", "list", "--json"]).output().expect("it runs");
    let list: Value = serde_json::from_slice(&list.stdout).expect("JSON");
    let held = list["controls"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|c| used.contains_key(c["name"].as_str().expect("text")));
    let counted: BTreeMap<_, _> =
        held.map(|c| (c["name"].as_str().expect("text"), c["connections"].as_u64())).collect();
    let expected: BTreeMap<_, _> = used.iter().map(|(name, n)| (*name, Some(*n as u64))).collect();
    assert!(counted.len() == 2 && counted == expected, "{counted:?} of {used:?}");
    trial.end(Signal::SIGINT);
}

/// Else no alarm is raised: the metrics end with the command.
#[test]
fn a_trial_that_only_the_control_is_left_of_ends_once_its_metrics_were_read() {
    let name = "a_trial_that_only_the_control_is_left_of_ends_once_its_metrics_were_read";
    let Some((_one, cgroup)) = able(name) else { return };
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let limited = "limited:max_ssthresh=10";
    let address = format!("127.0.0.1:{port}");
    let arm = format!("{limited}:50%");
    let args =
        ["--arm", "cubic:50%", "--arm", &arm, "--stop-on-harm", "time-last=+20%", "--prometheus", &address];
    let mut trial = Trial::start(&cgroup, &args);
    download(&cgroup, "rate=200Mbit rtt=60ms queue=1bdp", 200, 10, 200_000);
    trial.wait_for("the metrics are served until they are read once more");
    // Its share is nobody's any more, the control's too.
    let after = download(&cgroup, "rate=200Mbit rtt=2ms queue=1bdp", 10, 4, 10_000);
    let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("a file");
    assert!(after.iter().all(|d| d.control == default.trim()), "{:?}", by_control(&after));
    assert!(trial.child.try_wait().expect("a child").is_none(), "it waits");
    assert_eq!(scrape(port)[&format!("slowstart_trial_ended{{arm=\"{limited}\"}}")], 1);
    let mut said = String::new();
    trial.err.read_to_string(&mut said).expect("text");
    assert_eq!(trial.child.wait().expect("it ends").code(), Some(0), "{said}");
}

#[test]
fn an_a_a_phase_uses_the_control_of_the_first_arm() {
    let Some((_one, cgroup)) = able("an_a_a_phase_uses_the_control_of_the_first_arm") else { return };
    let out = folder("a-a");
    let args =
        ["--arm", "reno:50%", "--arm", "search:50%", "--aa", "12s", "--out", out.to_str().expect("text")];
    let mut trial = Trial::start(&cgroup, &args);
    let path = "rate=100Mbit rtt=10ms queue=1bdp";
    let first = download(&cgroup, path, 20, 4, 50_000);
    assert_eq!(by_control(&first), BTreeMap::from([("reno", 20)]));
    let said = trial.wait_for("the trial begins");
    let second = download(&cgroup, path, 40, 4, 50_000);
    let used = by_control(&second);
    let search = 40 - used["reno"];
    assert!(plausible(search, 40, 0.5) && used.len() == 2, "{used:?} {said}");
    assert_eq!(trial.end(Signal::SIGTERM).0, Some(0));
    let rows = rows(&out);
    let count = |a_a: bool| rows.iter().filter(|r| r["a_a"] == a_a).count();
    assert_eq!((count(true), count(false)), (20, 40), "{said}");
}

#[test]
fn a_dry_run_changes_nothing_and_one_cgroup_has_one_trial() {
    let Some((_one, cgroup)) = able("a_dry_run_changes_nothing_and_one_cgroup_has_one_trial") else { return };
    let group = cgroup.0.to_str().expect("text");
    let path = "rate=100Mbit rtt=10ms queue=1bdp";
    let trial = ["kernel", "trial", "--cgroup", group, "--arm"];
    let arms = ["search:50%", "--arm", "ess:30%"];
    let dry =
        slowstart(&[&trial[..], &arms, &["--dry-run", "--for", "15s"]].concat()).spawn().expect("it runs");
    let pid = dry.id();
    assert!(arms_become(true, pid), "it does not start");
    thread::sleep(Duration::from_millis(500));
    // A second one is refused.
    let refused = |args: &[&str], says: &str| {
        let done = slowstart(args).output().expect("it runs");
        let said = text(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(says), "{args:?}: {said}");
    };
    refused(&[&trial[..], &arms].concat(), "another trial runs on this cgroup");
    let all = download(&cgroup, path, 30, 4, 10_000);
    assert!(all.iter().all(|d| !d.control.starts_with("ss_")), "{:?}", by_control(&all));
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGINT).expect("it runs");
    let done = dry.wait_with_output().expect("it ends");
    let said = text(&done.stdout);
    assert!(
        done.status.success() && said.contains("dry run, nothing was changed: 30 new connections"),
        "{said}"
    );
    // Neither arm is what the connections have today.
    let today = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("readable");
    let told = format!("sockets that name no congestion control have {}, which is no arm", today.trim());
    assert!(text(&done.stderr).contains(&told), "{}", text(&done.stderr));
    // What is not there is refused before anything is attached.
    refused(&[&trial[..], &["cubic:50%", "--arm", "nothing:50%"]].concat(), "nothing");
    for missing in ["cubic", "reno", "bbr"].into_iter().filter(|c| !controls().iter().any(|a| a == c)) {
        let args = ["search:50%", "--arm", &format!("{missing}:50%")];
        refused(&[&trial[..], &args].concat(), &format!("modprobe tcp_{missing}"));
    }
    assert!(arms_become(false, pid), "{:?}", controls());
}

/// The client has one address, so one arm has all its connections.
#[test]
fn sticky_arms_keep_the_connections_of_a_prefix_together() {
    let Some((_one, cgroup)) = able("sticky_arms_keep_the_connections_of_a_prefix_together") else { return };
    let out = folder("sticky");
    let args = ["--sticky", "prefix", "--arm", "cubic:50%", "--arm", "search:50%", "--out"];
    let trial = Trial::start(&cgroup, &[&args[..], &[out.to_str().expect("text")]].concat());
    let all = download(&cgroup, "rate=100Mbit rtt=10ms queue=1bdp", 20, 4, 10_000);
    assert_eq!(by_control(&all).len(), 1, "{all:?}");
    assert_eq!(trial.end(Signal::SIGTERM).0, Some(0));
    let rows = rows(&out);
    assert!(rows.len() == 20 && rows.iter().all(|r| r["unit"] == r["prefix"]), "{rows:?}");
}
