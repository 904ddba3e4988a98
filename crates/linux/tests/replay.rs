//! Compares replay's account of a connection with the counters of the kernel: tcpdump at both ends of an
//! emulated path, `cubic` over it. Needs root, TUN devices and tcpdump, and prints `skipped` otherwise.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

mod common;

use common::Net;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use nix::unistd::Pid;
use slowstart_linux::emulate::{Emulation, SERVER, possible};
use slowstart_replay::observer::Candidate;
use slowstart_replay::replay::{Options, replay};
use slowstart_replay::transfer::Transfer;
use slowstart_sim::path::PathSpec;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Starts tcpdump in a namespace and waits until it listens.
fn tcpdump(ns: &str, file: &Path) -> Child {
    let mut child = Command::new("ip")
        .args([
            "netns",
            "exec",
            ns,
            "tcpdump",
            "-Z",
            "root",
            "-i",
            "path0",
            "-s",
            "128",
            "-B",
            "65536",
            "--immediate-mode",
            "-w",
        ])
        .arg(file)
        .arg("tcp")
        .stderr(Stdio::piped())
        .spawn()
        .expect("ip is there");
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    while !said.contains("listening on") {
        let n = stderr.read_line(&mut said).expect("text");
        assert!(n > 0, "tcpdump ended: {said}");
    }
    child
}

/// Returns a counter of `TcpExt` in a namespace (as `nstat` prints it).
fn counter(ns: &str, name: &str) -> u64 {
    let text =
        Net::within(ns, || fs::read_to_string("/proc/thread-self/net/netstat").expect("the kernel has it"));
    let mut lines = text.lines().filter_map(|l| l.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let at = names.split(' ').position(|n| n == name);
    at.and_then(|i| values.split(' ').nth(i)?.parse().ok()).unwrap_or(0)
}

/// The files and counters of a run.
struct Made {
    captures: [PathBuf; 2],
    samples: PathBuf,
    /// `HyStart`'s exits by ACK train and by delay, and cwnd then, in segments.
    train: u64,
    delay: u64,
    cwnd: u64,
}

/// Runs a download under the kernel's cubic, captures both ends and runs `ss` every 10 ms.
fn make(name: &str, line: &str, bytes: usize) -> Made {
    let spec = PathSpec::load(line, None).expect("a path");
    let e = Emulation::start(&spec, 1, false).expect("root");
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let captures = ["server", "client"].map(|end| dir.join(format!("{name}-{end}.pcap")));
    let mut dumps = [tcpdump(e.server(), &captures[0]), tcpdump(e.client(), &captures[1])];
    let listener = Net::within(e.server(), || TcpListener::bind((SERVER, 0))).expect("a port");
    setsockopt(&listener, TcpCongestion, &"cubic".into()).expect("the kernel's own");
    let address = listener.local_addr().expect("bound");
    let over = AtomicBool::new(false);
    let mut text = String::new();
    std::thread::scope(|s| {
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let now = Command::new("date").arg("+%s.%N").output().expect("coreutils").stdout;
                let ss = Command::new("ss").args(["-N", e.server(), "-tin", "state", "established"]).output();
                text.push_str(&String::from_utf8_lossy(&now));
                text.push_str(&String::from_utf8_lossy(&ss.expect("iproute2").stdout));
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        s.spawn(|| {
            let mut server = listener.accept().expect("a client").0;
            server.write_all(&vec![1; bytes]).expect("it reads");
            // Keeps the socket open until the client has closed, for the last sample.
            let _ = server.read(&mut [0]);
        });
        let mut client = Net::within(e.client(), || TcpStream::connect(address)).expect("connects");
        let mut all = vec![0; bytes];
        client.read_exact(&mut all).expect("a stream");
        over.store(true, Ordering::Relaxed);
    });
    std::thread::sleep(Duration::from_secs(1));
    for dump in &mut dumps {
        kill(Pid::from_raw(dump.id().cast_signed()), Signal::SIGINT).expect("it runs");
        dump.wait().expect("it ends");
    }
    let samples = dir.join(format!("{name}.ss"));
    fs::write(&samples, text).expect("a file");
    let count = |name: &str| counter(e.server(), name);
    let made = Made {
        captures,
        samples,
        train: count("TCPHystartTrainDetect"),
        delay: count("TCPHystartDelayDetect"),
        cwnd: count("TCPHystartTrainCwnd") + count("TCPHystartDelayCwnd"),
    };
    let report = e.stop().expect("it ran");
    println!("{name}: forward {}; back {}", report.forward.lateness, report.back.lateness);
    made
}

/// Runs until one shows its exit, at most.
const RUNS: usize = 4;

fn read(file: &Path) -> Transfer {
    let all = slowstart::startup::REGISTRY.iter();
    let candidates = all.map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect();
    let report = replay(file, &Options { candidates, ..Options::default() }, |_| {}).expect("a file");
    assert_eq!(report.summary.incomplete, None);
    report.transfers.into_iter().map(|t| t.row).max_by_key(|t| t.bytes).expect("a download")
}

#[test]
fn the_exit_of_the_kernel_is_found_from_either_end() {
    let tool = |name: &str| Command::new(name).arg("--version").output().is_ok();
    if let Err(why) = possible() {
        return println!("skipped: the kernel's round trip ({why})");
    }
    if !tool("tcpdump") || !tool("ss") {
        return println!("skipped: the kernel's round trip (needs tcpdump and ss)");
    }
    for (name, line, bytes) in [
        ("delay", "rate=50Mbit rtt=60ms queue=2bdp", 12_000_000),
        ("long", "rate=20Mbit rtt=150ms queue=2bdp", 12_000_000),
    ] {
        // On a busy machine the receiver's window, which follows its reading, may hold the sender: then nothing can
        // be said, and is not.
        let mut runs = (0..RUNS).map(|_| {
            let made = make(name, line, bytes);
            let [server, client] = made.captures.each_ref().map(|f| read(f));
            let samples = read(&made.samples);
            let say = |t: &Transfer| format!("{} {:?} {:?}", t.vantage, t.exit, t.unclear);
            println!(
                "{name}: HyStart by train {}, by delay {}, at {} segments\n  {}\n  {}\n  ss: {:?} {:?}",
                made.train,
                made.delay,
                made.cwnd,
                say(&server),
                say(&client),
                samples.exit,
                samples.caveats
            );
            assert_eq!((server.vantage.as_str(), client.vantage.as_str()), ("sender", "receiver"));
            assert!(server.exit.is_some() || server.unclear.is_some(), "an exit, or why there is none");
            (made, server, samples)
        });
        let said = runs.find(|(_, server, _)| server.exit.is_some());
        let (made, server, samples) = said.expect("one of the runs shows its exit");
        // On a busy machine tcpdump may miss some.
        assert!(server.bytes >= Some(bytes as u64 * 95 / 100), "{:?} of {bytes} bytes", server.bytes);
        let exit = server.exit.as_ref().expect("it left slow start");
        if made.train + made.delay > 0 {
            assert_eq!(exit.evidence, "growth stopped without loss", "{name}");
            // Inflight at the exit, and up to one more round of growth.
            let window = made.cwnd * server.mss_bytes;
            let near = (window * 2 / 3..=window * 3 / 2).contains(&exit.cwnd_bytes);
            assert!(near, "{name}: {} bytes, the kernel {window}", exit.cwnd_bytes);
        } else {
            assert_eq!(exit.evidence, "loss", "{name}");
        }
        // The kernel set ssthresh between two samples, which on a busy machine are far apart, within about one RTT of the exit
        // that replay sees.
        let set = samples.exit.as_ref().expect("a threshold").time_s;
        let between = |c: &String| {
            let times = c.strip_prefix("from samples: slow start ended between ")?.strip_suffix(" s")?;
            let (from, to) = times.split_once(" and ")?;
            Some((from.parse::<f64>().ok()?, to.parse::<f64>().ok()?))
        };
        let (from, to) = samples.caveats.iter().find_map(between).unwrap_or((set, set));
        let rtt = server.min_rtt_s.unwrap_or(0.0) + server.peak_delay_s.unwrap_or(0.0);
        let slack = 2.0 * rtt + 0.05;
        let near = (from - slack..to + slack).contains(&exit.time_s);
        assert!(near, "{name}: {} s, ss {from} to {to} s", exit.time_s);
    }
}
