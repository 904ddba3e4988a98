//! Measures the startups in the running kernel: one JSON line per figure.
//!
//! `cargo bench -p slowstart-linux --bench kernel [-- CASE]`, as root. Other load on the machine disturbs the
//! figures.

#![allow(clippy::disallowed_methods, reason = "the benchmark measures real time")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Cgroup, Net, ip, transfer};
use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use serde_json::{Value, json};
use slowstart::units::Span;
use slowstart_linux::emulate::INVALID;
use slowstart_linux::{Held, Kernel, RunningTrial, Spec, TABLE, TrialSpec, Watch, load_as, select};
use slowstart_study::engines::{Engine, Watched};
use slowstart_study::record::Row;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::stats::{median, quantile};
use slowstart_trial::Plan;
use slowstart_trial::plan::Arm;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

type Case = (&'static str, fn(&str));

fn study(startups: &[&str], path: &str, size: Option<&str>, duration: Option<&str>) -> Study {
    let text = StudyText {
        path: path.to_string(),
        startups: startups.iter().map(ToString::to_string).collect(),
        size: size.map(str::to_string),
        duration: duration.map(str::to_string),
        ..StudyText::default()
    };
    Kernel::default().study(&text, None).expect("a study")
}

/// Runs each startup `times` times, in turns, with the same seeds. An invalid run is repeated up to five
/// times.
fn runs(study: &Study, times: u32) -> Vec<Vec<Row>> {
    // An engine for each, so that every control stays loaded.
    let engines: Vec<Kernel> = study.contenders.iter().map(|_| Kernel::default()).collect();
    let mut rows = vec![Vec::new(); engines.len()];
    for n in 0..times {
        for (contender, kernel) in engines.iter().enumerate() {
            let job = Job { contender, run: n };
            let once = || kernel.run(study, job, &Watched::ROW).expect("root").row;
            let valid = |r: &Row| !r.caveats.iter().any(|c| c == INVALID);
            let mut row = once();
            for _ in 0..5 {
                if valid(&row) {
                    break;
                }
                row = once();
            }
            rows[contender].push(row);
        }
    }
    rows
}

/// cwnd at the end of each startup, in segments.
fn windows(rows: &[Row]) -> Vec<f64> {
    rows.iter().filter_map(|r| Some((r.exit.as_ref()?.detected_cwnd_bytes / 1448) as f64)).collect()
}

fn exits(rows: &[Row]) -> Vec<Value> {
    let one = |r: &Row| {
        let x = r.exit.as_ref();
        json!({ "reason": x.map(|x| &x.reason), "time_s": x.map(|x| x.time_s), "cwnd": x.map(|x| x.detected_cwnd_bytes / 1448), "class": r.class, "caveats": r.caveats })
    };
    rows.iter().map(one).collect()
}

/// Returns the two-sided p-value of the exact Mann-Whitney test, with mid-ranks for ties.
fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_by(f64::total_cmp);
    // Twice the rank, so that mid-ranks are integers.
    let rank = |x: f64| all.iter().filter(|y| **y < x).count() + all.iter().filter(|y| **y <= x).count() + 1;
    let ranks: Vec<usize> = all.iter().map(|x| rank(*x)).collect();
    let (middle, sum) = (a.len() * (all.len() + 1), a.iter().map(|x| rank(*x)).sum::<usize>());
    // ways[n][s]: the number of ways to choose n observations with rank sum s.
    let mut ways = vec![vec![0.0_f64; ranks.iter().sum::<usize>() + 1]; a.len() + 1];
    ways[0][0] = 1.0;
    for r in &ranks {
        for n in (1..=a.len()).rev() {
            for s in (*r..ways[0].len()).rev() {
                ways[n][s] += ways[n - 1][s - r];
            }
        }
    }
    let counts = ways[a.len()].iter().enumerate();
    let far = counts.filter(|(s, _)| s.abs_diff(middle) >= sum.abs_diff(middle)).map(|(_, n)| n);
    far.sum::<f64>() / ways[a.len()].iter().sum::<f64>()
}

/// Compares the kernel's CUBIC with `hystart`, an object that calls it and replaces nothing.
fn wrapped(case: &str, path: &str, duration: &str, times: u32) {
    let rows = runs(&study(&["cubic", "hystart"], path, None, Some(duration)), times);
    let (a, b) = (windows(&rows[0]), windows(&rows[1]));
    let middle = |w: &[f64]| median(w).map(|m| m.mid);
    println!(
        "{}",
        json!({
            "case": case, "path": path, "cubic": exits(&rows[0]), "ss_hystart": exits(&rows[1]),
            "median_cwnd": [middle(&a), middle(&b)], "mann_whitney_p": mann_whitney(&a, &b),
        })
    );
}

fn delay_variation(case: &str) {
    for path in
        ["rate=144Mbit rtt=600ms queue=36MB", "rate=144Mbit rtt=600ms queue=36MB vary=30ms vary_period=2s"]
    {
        for (name, rows) in
            ["cubic", "search"].iter().zip(runs(&study(&["cubic", "search"], path, None, Some("14s")), 5))
        {
            println!("{}", json!({ "case": case, "path": path, "startup": name, "runs": exits(&rows) }));
        }
    }
}

fn lost_syn_ack(case: &str) {
    let all = ["cubic", "tsl:iw=3,ssthresh=16", "tsl:iw=1,ssthresh=2"];
    let s = study(&all, "rate=100Mbit rtt=100ms queue=1bdp drop_synack=1", Some("50kB"), None);
    for (name, rows) in all.iter().zip(runs(&s, 5)) {
        let took: Vec<_> = rows.iter().map(|r| r.completion_s).collect();
        println!("{}", json!({ "case": case, "startup": name, "completion_s": took }));
    }
}

/// Compares the throughput of each startup with the kernel's CUBIC, in ten pairs. Each pair takes several
/// transfers in turns, since the speed of a shared machine changes within a second. Each transfer is long, so
/// that the cost per ACK matters more than the end of the startup.
fn throughput(case: &str) {
    const TURNS: usize = 4;
    let net = Net::veth("bench");
    // A connection that begins under bbr remains paced under another control.
    Net::within(&net.sender, || {
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno").expect("root may");
    });
    let bytes = 1 << 29;
    let took = |control: &str| {
        let mut pair = transfer(&net, Some(control));
        let began = Instant::now();
        pair.send(bytes);
        began.elapsed().as_secs_f64()
    };
    let gbit = |seconds: f64| (TURNS * bytes) as f64 * 8.0 / seconds / 1e9;
    for control in TABLE {
        let spec = Spec::read(control.written(), "cubic").expect("in the table");
        let held = load_as(&spec, format!("ss_{:x}", std::process::id())).expect("root");
        let pair = || {
            let mut sums = [0.0, 0.0];
            for turn in 0..TURNS {
                // The order alternates.
                for i in [turn % 2, 1 - turn % 2] {
                    sums[i] += took(["cubic", &held.name][i]);
                }
            }
            sums
        };
        let pairs: Vec<[f64; 2]> = (0..10).map(|_| pair()).collect();
        let middle = |v: &[f64]| median(v).map(|m| m.mid);
        let ratios: Vec<f64> = pairs.iter().map(|[cubic, ours]| cubic / ours).collect();
        let of = |i: usize| middle(&pairs.iter().map(|p| gbit(p[i])).collect::<Vec<_>>());
        println!(
            "{}",
            json!({
                "case": case, "startup": control.written(), "ratio": middle(&ratios), "ratios": ratios,
                "cubic_gbit": of(0), "gbit": of(1), "exits": ended(&held),
            })
        );
    }
}

/// Counts the exits of a control by reason.
fn ended(held: &Held) -> Value {
    held.counts().expect("counts").exits.iter().map(|(why, n)| (why.name().to_string(), json!(n))).collect()
}

/// Returns name, total time in nanoseconds and number of calls of each program with a larger id than `since`,
/// from the kernel's statistics. Ids increase in the order of loading.
fn programs(since: u32) -> Vec<(String, u64, u64)> {
    let all = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default()).filter(|p| p.id > since);
    all.map(|p| (p.name.to_string_lossy().into_owned(), p.run_time_ns, p.run_cnt)).collect()
}

/// The kernel collects statistics of programs as long as the descriptor is open.
#[allow(unsafe_code, reason = "libbpf-rs has no call for it; the returned descriptor is owned here")]
fn statistics() -> OwnedFd {
    // SAFETY: it takes a number and has no pointers.
    let counting = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    assert!(counting >= 0, "root may");
    // SAFETY: it is open, and of nobody else.
    unsafe { OwnedFd::from_raw_fd(counting) }
}

/// Returns the largest id of the programs that are loaded.
fn newest_program() -> u32 {
    ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default()).map(|p| p.id).max().unwrap_or(0)
}

/// Measures the time per ACK in each object: alone, and with events and a watch.
fn cost(case: &str) {
    let _counting = statistics();
    let net = Net::veth("bench");
    for control in TABLE {
        for level in [0, 2] {
            let spec = Spec::read(control.written(), "cubic").expect("in the table");
            let before = newest_program();
            let held = load_as(&spec, format!("ss_{:x}", std::process::id())).expect("root");
            held.watch(level).expect("live");
            let ring = held.events(|_| {}).expect("a ring");
            let watch = (level > 0).then(|| Watch::start(0, Span::millis(100)).expect("root"));
            for _ in 0..20 {
                transfer(&net, Some(&held.name)).send(40_000_000);
                ring.consume().expect("readable");
            }
            let each: Vec<Value> = programs(before)
                .into_iter()
                .filter(|(_, _, n)| *n > 0)
                .map(|(name, ns, n)| json!({ "program": name, "calls": n, "ns": ns / n }))
                .collect();
            println!(
                "{}",
                json!({ "case": case, "startup": control.written(), "told_and_watched": level > 0, "programs": each })
            );
            drop(watch);
        }
    }
}

/// Receives on connections whose sockets are outside the cgroup of this process, since the listener was made
/// before.
struct Receiver {
    listener: TcpListener,
    address: SocketAddr,
}

impl Receiver {
    fn new(net: &Net) -> Self {
        let listener = Net::within(&net.receiver, || TcpListener::bind("10.99.0.2:0")).expect("a port");
        let address = listener.local_addr().expect("bound");
        Self { listener, address }
    }

    /// Opens a connection.
    fn connect(&self, net: &Net) -> [TcpStream; 2] {
        let sender = Net::within(&net.sender, || TcpStream::connect(self.address)).expect("connects");
        [sender, self.listener.accept().expect("connected").0]
    }

    /// Sends bytes over a new connection and returns the seconds that it took.
    fn send(&self, net: &Net, bytes: usize) -> f64 {
        let [mut sender, mut receiver] = self.connect(net);
        let began = Instant::now();
        thread::scope(|s| {
            s.spawn(move || {
                let chunk = vec![7; 1 << 16];
                for _ in 0..bytes.div_ceil(chunk.len()) {
                    sender.write_all(&chunk).expect("the connection lives");
                }
            });
            let mut chunk = vec![0; 1 << 16];
            while receiver.read(&mut chunk).expect("the connection lives") > 0 {}
        });
        began.elapsed().as_secs_f64()
    }
}

/// Starts a trial in which this share of the cgroup's connections uses CUBIC, as they do without a trial.
fn cubic_trial(cgroup: &Cgroup, share: &str) -> RunningTrial {
    let arms =
        [format!("cubic:{share}"), "reno:0.0001%".to_string()].map(|a| Arm::parse(&a).expect("an arm"));
    let plan = Plan::new(arms.to_vec(), 1).expect("a plan");
    let spec =
        TrialSpec { cgroup: &cgroup.0, plan: &plan, sticky: false, a_a: false, dry: false, salt: None };
    RunningTrial::start(&spec).expect("root")
}

/// Returns the bytes that are in use of the kernel's caches for objects without a cache of their own, to
/// which the storage of sockets belongs and the sockets do not.
fn kernel_memory() -> f64 {
    let text = fs::read_to_string("/proc/slabinfo").expect("root may");
    let of = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[1].parse::<f64>().expect("objects in use") * fields[3].parse::<f64>().expect("their size")
    };
    text.lines().filter(|l| l.starts_with("kmalloc-")).map(of).sum()
}

/// Calls this with two namespaces, a receiver and a cgroup that the process is in.
fn in_a_cgroup(what: impl FnOnce(&Net, &Receiver, &Cgroup)) {
    let net = Net::veth("bench");
    let receiver = Receiver::new(&net);
    let cgroup = Cgroup::new("bench").expect("cgroup v2");
    let own = fs::read_to_string("/proc/self/cgroup").expect("Linux");
    let own = own.lines().find_map(|l| l.strip_prefix("0::/")).expect("cgroup v2");
    let enter = |dir: &Path| {
        fs::write(dir.join("cgroup.procs"), std::process::id().to_string()).expect("root may");
    };
    enter(&cgroup.0);
    what(&net, &receiver, &cgroup);
    enter(&cgroup.0.parent().expect("below the root").join(own));
}

/// Measures what a trial costs: the time of its programs for each ACK, and the throughput beside that without
/// a trial, in turns.
fn trial(case: &str, net: &Net, receiver: &Receiver, cgroup: &Cgroup) {
    let _counting = statistics();
    for segments in [65_535, 1] {
        // One segment: each packet is sent by itself, and every second one acknowledged.
        ip(&format!("-n {} link set v0 gso_max_segs {segments}", net.sender));
        let bytes = if segments == 1 { 100_000_000 } else { 1_000_000_000 };
        // Outside the trial a packet costs a look-up, and what the statistics themselves cost.
        for share in ["0.0001%", "99.9999%"] {
            let before = newest_program();
            let running = cubic_trial(cgroup, share);
            let (mut each, mut last) = (Vec::new(), programs(before));
            for _ in 0..20 {
                let took = receiver.send(net, bytes);
                let now = programs(before);
                for (old, new) in last.iter().zip(&now).filter(|(o, n)| n.2 > o.2 + 10) {
                    each.push((new.0.clone(), (new.1 - old.1) as f64, (new.2 - old.2) as f64, took));
                }
                last = now;
            }
            drop(running);
            for name in ["on_packet", "trial"] {
                let of = |f: fn(&(String, f64, f64, f64)) -> f64| {
                    median(&each.iter().filter(|e| e.0 == name).map(f).collect::<Vec<_>>())
                };
                let ns = of(|e| e.1 / e.2);
                println!(
                    "{}",
                    json!({
                        "case": case, "segments": segments, "in_the_trial": share, "program": name,
                        "ns": ns.map(|m| [m.low, m.mid, m.high]), "calls_per_s": of(|e| e.2 / e.3).map(|m| m.mid),
                        "share_of_a_cpu": of(|e| e.1 / e.3 / 1e9).map(|m| m.mid),
                    })
                );
            }
        }
        let mut ratios = Vec::new();
        for n in 0..60 {
            let mut seconds = [0.0; 2];
            for with in [n % 2, 1 - n % 2] {
                seconds[with] = if with == 1 {
                    let _running = cubic_trial(cgroup, "99.9999%");
                    receiver.send(net, 3 * bytes)
                } else {
                    let _selected = select(&cgroup.0, "cubic", false).expect("root");
                    receiver.send(net, 3 * bytes)
                };
            }
            ratios.push(seconds[0] / seconds[1]);
        }
        println!(
            "{}",
            json!({
                "case": case, "segments": segments, "throughput_ratio": median(&ratios).map(|m| m.mid),
                "quartiles": [quantile(&ratios, 0.25), quantile(&ratios, 0.75)], "pairs": ratios.len(),
            })
        );
    }
}

/// Measures the kernel's memory for each open connection, without a trial and in one.
fn trial_memory(case: &str, net: &Net, receiver: &Receiver, cgroup: &Cgroup) {
    const CONNECTIONS: usize = 1000;
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, 4096, 4096).expect("root may");
    let mut bytes = [Vec::new(), Vec::new()];
    for turn in 0..10 {
        for with in [turn % 2, 1 - turn % 2] {
            let _running = (with == 1).then(|| cubic_trial(cgroup, "99.9999%"));
            // The kernel frees what was before after a grace period.
            thread::sleep(Duration::from_secs(1));
            let before = kernel_memory();
            let pairs: Vec<_> = (0..CONNECTIONS).map(|_| receiver.connect(net)).collect();
            bytes[with].push((kernel_memory() - before) / CONNECTIONS as f64);
            drop(pairs);
        }
    }
    let [without, with] = bytes.map(|b| median(&b).map(|m| [m.low, m.mid, m.high]));
    println!(
        "{}",
        json!({ "case": case, "kernel_bytes_per_connection": { "without": without, "with": with } })
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let cases: [Case; 8] = [
        ("wrapped", |n| wrapped(n, "rate=100Mbit rtt=50ms queue=2bdp", "3s", 10)),
        ("wrapped-geo", |n| wrapped(n, "rate=144Mbit rtt=600ms queue=36MB", "11s", 10)),
        ("delay-variation", delay_variation),
        ("lost-syn-ack", lost_syn_ack),
        ("throughput", throughput),
        ("cost", cost),
        ("trial", |n| in_a_cgroup(|net, receiver, cgroup| trial(n, net, receiver, cgroup))),
        ("trial-memory", |n| in_a_cgroup(|net, receiver, cgroup| trial_memory(n, net, receiver, cgroup))),
    ];
    for (name, case) in cases {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            case(name);
        }
    }
}
