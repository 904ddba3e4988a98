//! `slowstart emulate` and `slowstart compare --engine kernel`: signals, exit statuses and clean-up. Needs
//! root, TUN devices and iproute2, and is skipped otherwise.
#![cfg(feature = "kernel")]
#![allow(clippy::disallowed_methods, reason = "the test measures real time")]

mod jumping_clock;
mod wait;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use slowstart_linux::emulate::possible;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use wait::wait_until;

const PATH: &str = "rate=100Mbit rtt=4ms queue=1bdp";

/// Serialises the tests: each path has a real-time thread, and a machine may have only one or two processors.
static ONE: Mutex<()> = Mutex::new(());

fn able(test: &str) -> Option<MutexGuard<'static, ()>> {
    if let Err(why) = possible() {
        println!("skipped: emulator test {test} ({why})");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn has(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|p| std::env::split_paths(&p).any(|d| d.join(program).exists()))
}

fn slowstart() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn emulate(options: &[&str], program: &[&str]) -> Command {
    let mut command = slowstart();
    command.args(["emulate", PATH]).args(options).arg("--").args(program);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The namespaces of a process, by their names.
fn namespaces(pid: u32) -> Vec<String> {
    let prefix = format!("slowstart-{pid}-");
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    names.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|n| n.starts_with(&prefix)).collect()
}

/// Process ids in a namespace.
fn pids(namespace: &str) -> Vec<i32> {
    let out = Command::new("ip").args(["netns", "pids", namespace]).output().expect("iproute2");
    text(&out.stdout).split_whitespace().filter_map(|p| p.parse().ok()).collect()
}

/// Waits until a program of this name runs at the client's end of the path of `child`, and returns the
/// namespace.
fn wait_for_program(child: &Child, program: &str) -> String {
    let named = |pid: &i32| running(*pid, program);
    let mut client = String::new();
    wait_until("a program in the client's namespace", || {
        let name = namespaces(child.id()).into_iter().find(|n| n.ends_with("client"));
        client = name.unwrap_or_default();
        !client.is_empty() && pids(&client).iter().any(named)
    });
    client
}

fn running(pid: i32, program: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim_end() == program)
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
}

/// The status of a command that ended, 2 where the path was late and the program ended well.
fn assert_status(what: &str, out: &Output, status: i32) {
    let said = text(&out.stderr);
    let late = said.contains("over 1 ms late");
    let expected = if late && status == 0 { 2 } else { status };
    assert_eq!(out.status.code(), Some(expected), "{what}: {said}");
}

#[test]
fn programs_receive_signals() {
    let Some(_one) = able("programs_receive_signals") else { return };
    // Each would take 60 s with SIGTERM, SIGINT or SIGCHLD blocked.
    for (program, status) in [
        (&["timeout", "1", "sleep", "60"][..], 124),
        (&["timeout", "-s", "INT", "1", "sleep", "60"], 124),
        (&["bash", "-c", "sleep 60 & sleep 0.2; kill %1; wait"], 0),
    ] {
        let before = Instant::now();
        let out = emulate(&[], program).output().expect("it runs");
        assert_status(&format!("{program:?}"), &out, status);
        assert!(before.elapsed() < Duration::from_secs(30), "{program:?}: {:?}", before.elapsed());
    }
}

#[test]
fn the_status_is_that_of_the_program() {
    let Some(_one) = able("the_status_is_that_of_the_program") else { return };
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)] {
        let out = emulate(&[], &["sh", "-c", script]).output().expect("it runs");
        assert_status(script, &out, status);
    }
    let out = emulate(&[], &["no-such-program"]).output().expect("it runs");
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("no-such-program: No such file"), "{}", text(&out.stderr));
}

/// A path that stood still while a packet waited says so, and its run is invalid, though no packet was released late.
#[test]
fn a_path_that_is_stopped_makes_the_run_invalid() {
    let Some(_one) = able("a_path_that_is_stopped_makes_the_run_invalid") else { return };
    let sends = "import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(200):
    s.sendto(b'x', ('10.77.0.1', 9))
    time.sleep(0.02)
    if i == 20:
        open(sys.argv[1], 'w').close()";
    let began = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulate-began");
    let _ = fs::remove_file(&began);
    let file = began.to_str().expect("UTF-8");
    let child = emulate(&[], &["python3", "-c", sends, file]).spawn().expect("it runs");
    wait_until("packets", || began.exists());
    signal(&child, Signal::SIGSTOP);
    thread::sleep(Duration::from_secs(1));
    signal(&child, Signal::SIGCONT);
    let out = child.wait_with_output().expect("it ends");
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    let seconds =
        said.split("the path stood still for ").nth(1).and_then(|t| t.split(' ').next()?.parse::<f64>().ok());
    // The packets of a second come at the end of the sleep in which it was stopped.
    assert!(seconds.is_some_and(|s| (0.7..5.0).contains(&s)), "{said}");
}

#[test]
fn an_interrupted_program_ends_and_the_status_says_so() {
    let Some(_one) = able("an_interrupted_program_ends_and_the_status_says_so") else { return };
    // The second program handles SIGINT and exits with status 0, the third one ignores it.
    for (script, sent, status) in [
        ("exec sleep 60", Signal::SIGINT, 130),
        ("trap 'exit 0' INT; while :; do sleep 0.1; done", Signal::SIGINT, 130),
        ("trap '' INT; exec sleep 60", Signal::SIGINT, 130),
        ("exec sleep 60", Signal::SIGTERM, 143),
    ] {
        let child = emulate(&[], &["sh", "-c", script]).spawn().expect("it runs");
        wait_for_program(&child, if script.contains("exec") { "sleep" } else { "sh" });
        let pid = child.id();
        signal(&child, sent);
        let out = child.wait_with_output().expect("it ends");
        assert_status(script, &out, status);
        assert!(text(&out.stderr).contains("packets"), "{script}: no statistics in {}", text(&out.stderr));
        assert_eq!(namespaces(pid), [""; 0]);
    }
}

#[test]
fn the_examples_of_the_help_run() {
    let Some(_one) = able("the_examples_of_the_help_run") else { return };
    let help = text(&slowstart().args(["emulate", "--help"]).output().expect("it runs").stdout);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("examples");
    fs::create_dir_all(&folder).expect("a folder");
    let bin = Path::new(env!("CARGO_BIN_EXE_slowstart")).parent().expect("a folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let examples: Vec<&str> =
        help.lines().map(str::trim).filter(|l| l.starts_with("slowstart emulate ")).collect();
    assert!(examples.len() >= 2, "{help}");
    for example in examples {
        let needed = ["ping", "curl", "python3", "iperf3"].into_iter().filter(|p| example.contains(p));
        if let Some(missing) = needed.into_iter().find(|p| !has(p)) {
            println!("skipped: the example {example} (no {missing})");
            continue;
        }
        let out = Command::new("sh").args(["-c", example]).current_dir(&folder).env("PATH", &path).output();
        let out = out.expect("it runs");
        // A machine that is busy may release packets too late, which is status 2 and says so.
        let err = text(&out.stderr);
        assert!(out.status.success() || err.contains("Run invalid"), "{example}: {}: {err}", out.status);
    }
}

/// The server ends with the program; its failure is an error; it may go to the background.
#[test]
fn a_server_runs_as_long_as_the_program() {
    let Some(_one) = able("a_server_runs_as_long_as_the_program") else { return };
    if !has("python3") || !has("curl") {
        println!("skipped: emulator test a_server_runs_as_long_as_the_program (needs python3 and curl)");
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("served");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("page"), "served over the path\n").expect("a file");
    let url = ["curl", "-sS", "http://10.77.0.1:8000/page"];
    for server in ["exec python3 -m http.server 8000", "python3 -m http.server 8000 & echo started; exit 0"] {
        let child = emulate(&["--serve", server], &url).current_dir(&folder).spawn().expect("it runs");
        let pid = child.id();
        let out = child.wait_with_output().expect("it ends");
        assert_eq!(text(&out.stdout), "served over the path\n", "{server}: {}", text(&out.stderr));
        assert_eq!(namespaces(pid), [""; 0]);
    }
    let out = emulate(&["--serve", "exit 3"], &url).output().expect("it runs");
    assert_eq!(out.status.code(), Some(2));
    let err = text(&out.stderr);
    assert!(err.contains("--serve \"exit 3\"") && err.contains("exit status: 3"), "{err}");
    // Nothing listens: curl's status 7.
    let out = emulate(&[], &url).output().expect("it runs");
    assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr));
}

#[test]
fn a_user_other_than_root() {
    let Some(_one) = able("a_user_other_than_root") else { return };
    let ids = "id -u; id -g; id -G";
    let root = emulate(&[], &["sh", "-c", ids]).output().expect("it runs");
    assert!(text(&root.stdout).starts_with("0\n0\n"), "{}", text(&root.stdout));
    assert!(text(&root.stderr).contains("runs as root"), "{}", text(&root.stderr));
    let nobody = emulate(&["--user", "nobody"], &["sh", "-c", ids]).output().expect("it runs");
    let entry = text(&Command::new("id").args(["-u", "nobody"]).output().expect("coreutils").stdout);
    assert!(text(&nobody.stdout).starts_with(&entry) && entry != "0\n", "{}", text(&nobody.stdout));
    assert!(!text(&nobody.stdout).lines().any(|l| l.split(' ').any(|g| g == "0")), "a group of root remains");
    assert!(!text(&nobody.stderr).contains("runs as root"), "{}", text(&nobody.stderr));
    let unknown = emulate(&["--user", "no-such-user"], &["true"]).output().expect("it runs");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("no-such-user: no such user"), "{}", text(&unknown.stderr));
}

#[test]
fn a_deleted_device_ends_the_program_with_status_2() {
    let Some(_one) = able("a_deleted_device_ends_the_program_with_status_2") else { return };
    let child = emulate(&[], &["sleep", "60"]).spawn().expect("it runs");
    let (pid, client) = (child.id(), wait_for_program(&child, "sleep"));
    let deleted = Command::new("ip").args(["-n", &client, "link", "del", "path0"]).status();
    assert!(deleted.is_ok_and(|s| s.success()));
    let out = child.wait_with_output().expect("it ends");
    let err = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{err}");
    assert!(err.contains("TUN device path0") && err.contains(&client), "{err}");
    assert_eq!(namespaces(pid), [""; 0]);
}

/// What a killed process leaves, namespaces and programs, the next one removes.
#[test]
fn the_next_run_removes_what_a_killed_one_left() {
    let Some(_one) = able("the_next_run_removes_what_a_killed_one_left") else { return };
    let mut child = emulate(&[], &["sleep", "600"]).spawn().expect("it runs");
    let client = wait_for_program(&child, "sleep");
    signal(&child, Signal::SIGKILL);
    child.wait().expect("it ends");
    let (left, programs) = (namespaces(child.id()), pids(&client));
    assert!(left.len() == 2 && !programs.is_empty(), "{left:?}, {programs:?}");
    let next = emulate(&[], &["true"]).output().expect("it runs");
    assert!(next.status.code().is_some(), "{}", text(&next.stderr));
    assert_eq!(namespaces(child.id()), [""; 0]);
    wait_until("the end of the programs left", || !programs.iter().any(|p| running(*p, "sleep")));
}

#[test]
fn an_interrupted_comparison_shows_what_is_finished() {
    let Some(_one) = able("an_interrupted_comparison_shows_what_is_finished") else { return };
    let compare = ["compare", PATH, "--engine", "kernel", "--startup", "reno", "--duration", "1s"];
    let compare = [&compare[..], &["--runs", "50", "--json"]].concat();
    let validate = vec!["validate", "kernel", "--cell", "100M-10ms-1 cubic"];
    // Here no connection opens.
    let closed = vec!["compare", "rate=1Mbit rtt=4ms loss=100%", "--engine", "kernel", "--startup", "reno"];
    for (after, arguments) in [(0, &compare), (1, &compare), (0, &validate), (0, &closed)] {
        let child = slowstart().args(arguments).spawn().expect("it runs");
        let pid = child.id();
        // The number of a path is a part of its name, so one with a later number means that some runs are
        // finished.
        wait_until("a path", || {
            namespaces(pid).iter().any(|n| n.ends_with(&format!("-{after}-client")) && exists(n))
        });
        thread::sleep(Duration::from_millis(500));
        signal(&child, Signal::SIGINT);
        let out = child.wait_with_output().expect("it ends");
        let err = text(&out.stderr);
        if err.contains("watch connections") {
            println!("skipped: emulator test an_interrupted_comparison_shows_what_is_finished (no BPF)");
            return;
        }
        assert_eq!(out.status.code(), Some(130), "{err}");
        let rows = text(&out.stdout).lines().count();
        assert!(rows >= after && err.contains(&format!("interrupted, {rows} of ")), "{rows}: {err}");
        assert_eq!(namespaces(pid), [""; 0]);
    }
}

/// A killed command loses the run in flight: the next start of the same one continues, and one more changes
/// nothing.
#[test]
fn a_killed_command_on_the_kernel_continues() {
    let Some(_one) = able("a_killed_command_on_the_kernel_continues") else { return };
    let compare = ["compare", PATH, "--engine", "kernel", "--startup", "reno,cubic", "--duration", "1s"];
    let compare = [&compare[..], &["--runs", "2"]].concat();
    let validate = vec!["validate", "kernel", "--cell", "200M-20ms-1"];
    for (arguments, page, all) in [(compare, "report.html", 4), (validate, "validation.html", 10)] {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("continued-{all}"));
        let _ = fs::remove_dir_all(&dir);
        let start = || {
            let mut command = slowstart();
            command.args(&arguments).arg("--out").arg(&dir);
            command
        };
        let rows = || fs::read_to_string(dir.join("results.jsonl")).unwrap_or_default();
        let mut child = start().spawn().expect("it runs");
        wait_until("a row or the end", || !rows().is_empty() || child.try_wait().is_ok_and(|s| s.is_some()));
        signal(&child, Signal::SIGKILL);
        let out = child.wait_with_output().expect("it ends");
        if text(&out.stderr).contains("watch connections") {
            println!("skipped: emulator test a_killed_command_on_the_kernel_continues (no BPF)");
            return;
        }
        let before = rows();
        assert!(!before.is_empty(), "{}", text(&out.stderr));

        let out = start().output().expect("it runs");
        let said = text(&out.stderr);
        let finished = before.lines().count();
        assert!(said.contains(&format!("{finished} of {all} runs are there")), "{said}");
        let after = rows();
        assert!(after.starts_with(&before), "{before}{after}");
        assert_eq!(after.lines().count(), all, "{after}");
        let drawn = fs::read(dir.join(page)).expect("a page");

        let again = start().output().expect("it runs");
        assert_eq!((again.status, text(&again.stdout)), (out.status, text(&out.stdout)), "the same result");
        assert_eq!(rows(), after);
        assert!(fs::read(dir.join(page)).expect("a page") == drawn, "the same page");
        fs::remove_dir_all(&dir).expect("it is removed");
    }
}

fn exists(namespace: &str) -> bool {
    Path::new("/run/netns").join(namespace).exists()
}

#[test]
fn the_kernel_engine_says_how_long_it_takes() {
    let Some(_one) = able("the_kernel_engine_says_how_long_it_takes") else { return };
    let out = slowstart()
        .args(["compare", PATH, "--engine", "kernel", "--startup", "reno", "--size", "20kB", "--runs", "1"])
        .output()
        .expect("it runs");
    let err = text(&out.stderr);
    assert!(
        err.contains("startups: 1, runs of each: 1, on the real clock: about 0.5 s, at most 61 s"),
        "{err}"
    );
    assert!(err.contains("a transfer of 20 kB may end before its startup does"), "{err}");
}

/// Runs the emulator with a clock that jumps with every second call, by an hour more each time. Returns the
/// largest lateness in microseconds.
fn lateness_with_jumping_clock(library: &Path, clock: &str) -> f64 {
    // The datagrams go to a closed port, so that the server's kernel answers each with an ICMP message.
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do echo x >/dev/udp/10.77.0.1/9; sleep 0.02; done";
    let program = ["env", "-u", "LD_PRELOAD", "bash", "-c", script];
    let out = emulate(&[], &program).env("LD_PRELOAD", library).env("JUMPING_CLOCK", clock).output();
    let err = text(&out.expect("it runs").stderr);
    let back = err.lines().find(|l| l.contains(" back: 10 packets")).unwrap_or_else(|| panic!("{err}"));
    let most = back.split("at most ").nth(1).and_then(|l| l.split(' ').next()?.parse().ok());
    most.unwrap_or_else(|| panic!("no lateness in {back}"))
}

/// The wall clock may jump; the emulator uses the monotonic clock.
#[test]
fn a_jump_of_the_wall_clock_changes_nothing() {
    let Some(_one) = able("a_jump_of_the_wall_clock_changes_nothing") else { return };
    let Some(library) = jumping_clock::built().filter(|_| has("bash")) else {
        println!("skipped: emulator test a_jump_of_the_wall_clock_changes_nothing (needs cc and bash)");
        return;
    };
    let hour = 3.6e9;
    let realtime = lateness_with_jumping_clock(&library, "realtime");
    assert!(realtime < hour / 60.0, "{realtime} us late");
    // The same measurement detects a jump of the clock that the emulator uses.
    let monotonic = lateness_with_jumping_clock(&library, "monotonic");
    assert!(monotonic > hour / 2.0, "{monotonic} us late");
}
