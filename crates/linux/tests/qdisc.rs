//! Elements of the running kernel on a veth: CoDel and FQ-CoDel, called as the kernel called them, decide the
//! same in the simulator; RED marks and drops as often there, and netem loses and duplicates as often. Needs
//! root, kprobes and the modules of the disciplines, and is skipped without them; `ci/kernels.sh` runs it on
//! Debian's kernels.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

mod common;

use common::{Net, ip};
use nix::cmsg_space;
use nix::sys::socket::sockopt::{IpRecvTos, Ipv4Tos, RcvBufForce, SndBufForce};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use slowstart::units::Instant;
use slowstart_sim::path::Ecn;
use slowstart_sim::path::queue::{Discipline, Packet};
use slowstart_sim::random::Stream;
use std::collections::BTreeMap;
use std::fs;
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Where the kernel's tracer is mounted.
const TRACING: &str = "/sys/kernel/tracing";
/// The rate of the class above the discipline, in bytes a second.
const RATE: f64 = 250_000.0;
/// The least packets of a comparison.
const PACKETS: usize = 4000;
/// Seeds of the model's distribution for random disciplines.
const SEEDS: u64 = 400;

/// A discipline in words of `tc`, which the model reads as well, and the kernel's functions.
struct Case {
    words: &'static str,
    enqueue: &'static str,
    dequeue: &'static str,
    /// How the names of the functions begin that read the clock for it.
    readers: &'static [&'static str],
    /// Nothing is random: the model must decide each call as the kernel did, from this major version of it
    /// on.
    exact: Option<u32>,
}

const CASES: &[Case] = &[
    Case {
        words: "red limit 400000 min 10000 max 40000 avpkt 1000 burst 20 probability 0.1 bandwidth 2Mbit ecn",
        enqueue: "red_enqueue",
        dequeue: "red_dequeue",
        readers: &["red_enqueue", "red_dequeue"],
        exact: None,
    },
    Case {
        words: "codel limit 200 target 5ms interval 30ms",
        enqueue: "codel_qdisc_enqueue",
        dequeue: "codel_qdisc_dequeue",
        readers: CODEL,
        exact: Some(6),
    },
    Case {
        words: "codel limit 200 target 5ms interval 30ms ecn",
        enqueue: "codel_qdisc_enqueue",
        dequeue: "codel_qdisc_dequeue",
        readers: CODEL,
        exact: Some(6),
    },
    // So many queues that no two of the four flows share one.
    Case {
        words: "fq_codel limit 400 flows 65536 quantum 1514 target 5ms interval 30ms",
        enqueue: "fq_codel_enqueue",
        dequeue: "fq_codel_dequeue",
        readers: CODEL,
        // In 6.1 a flow that is empty still knows since when its delay was above the target
        // (docs/reference/disciplines.md).
        exact: Some(7),
    },
];

/// The compiler names parts of `codel_dequeue`, which both disciplines have, as it likes.
const CODEL: &[&str] = &["codel_", "__codel_", "fq_codel_", "__fq_codel_"];

/// A packet that was sent.
#[derive(Copy, Clone)]
struct Sent {
    bytes: u32,
    flow: u32,
    ecn: Ecn,
}

/// A call of the discipline by the kernel.
struct Call {
    /// The packet that entered or left; 0 if there was none.
    skb: u64,
    enters: bool,
    /// When the discipline read its clock, if it did.
    at: Option<u64>,
}

fn tc(ns: &str, line: &str) -> bool {
    let done =
        Command::new("tc").args(["-n", ns]).args(line.split(' ')).output().expect("iproute2 is installed");
    if !done.status.success() {
        println!("tc {line}: {}", String::from_utf8_lossy(&done.stderr));
    }
    done.status.success()
}

fn trace(file: &str, text: &str) -> bool {
    let done = fs::write(format!("{TRACING}/{file}"), text);
    if let Err(e) = &done {
        println!("{file}: {e}: {text}");
    }
    done.is_ok()
}

/// Records the calls of a discipline. Stops on drop.
struct Tracer;

impl Tracer {
    fn start(case: &Case) -> Option<Self> {
        let _ = fs::write(format!("{TRACING}/events/ss/enable"), "0");
        let (enqueue, dequeue) = (case.enqueue, case.dequeue);
        let probes = format!(
            "p:ss/enters {enqueue} skb=%di:x64\np:ss/asked {dequeue}\nr32:ss/left {dequeue} skb=$retval:x64\nr64:ss/now ktime_get t=$retval:x64\n"
        );
        let ready = trace("kprobe_events", &probes)
            && trace("trace_clock", "counter")
            && trace("buffer_size_kb", "16384")
            && trace("events/ss/now/filter", &within(case.readers)?)
            && trace("trace", "")
            && trace("events/ss/enable", "1");
        ready.then_some(Self)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = fs::write(format!("{TRACING}/events/ss/enable"), "0");
        let _ = fs::write(format!("{TRACING}/kprobe_events"), "");
    }
}

/// What was recorded.
fn recorded_calls() -> Vec<Call> {
    trace("events/ss/enable", "0");
    let text = fs::read_to_string(format!("{TRACING}/trace")).expect("the trace");
    let mut calls: Vec<Call> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        // The types of the fields are given, since newer kernels print a return value in the type that BTF
        // says.
        let value = || {
            let hex = line.rsplit_once("=0x").unwrap_or_else(|| panic!("{line}: expected a value")).1;
            u64::from_str_radix(hex.trim(), 16).unwrap_or_else(|e| panic!("{line}: {e}"))
        };
        if line.contains(": enters: (") {
            calls.push(Call { skb: value(), enters: true, at: None });
        } else if line.contains(": asked: (") {
            calls.push(Call { skb: 0, enters: false, at: None });
        } else if let Some(last) = calls.last_mut() {
            if line.contains(": now: (") {
                last.at.get_or_insert(value());
            } else if line.contains(": left: (") {
                last.skb = value();
            }
        }
    }
    calls
}

/// A filter for what returns into a function whose name begins with one of these.
fn within(names: &[&str]) -> Option<String> {
    let text = fs::read_to_string("/proc/kallsyms").ok()?;
    let mut symbols: Vec<(u64, &str)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let at = u64::from_str_radix(words.next()?, 16).ok()?;
            words.next().filter(|kind| kind.eq_ignore_ascii_case("t"))?;
            Some((at, words.next()?))
        })
        .collect();
    symbols.sort_unstable();
    let ranges: Vec<String> = symbols
        .iter()
        .enumerate()
        .filter(|(_, (_, symbol))| names.iter().any(|name| symbol.starts_with(name)))
        .map(|(i, (at, _))| {
            // Symbols may share an address.
            let end = symbols[i..].iter().map(|s| s.0).find(|a| a > at).unwrap_or(u64::MAX);
            format!("(__probe_ret_ip >= {at:#x} && __probe_ret_ip < {end:#x})")
        })
        .collect();
    (!ranges.is_empty()).then(|| ranges.join(" || "))
}

/// Two namespaces between which only what a test sends passes.
fn quiet_net(name: &str) -> Net {
    let net = Net::veth(name);
    for (ns, n, other) in [(&net.sender, 1, 2), (&net.receiver, 2, 1)] {
        Net::within(ns, || {
            let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
        });
        ip(&format!("-n {ns} link set v0 down"));
        ip(&format!("-n {ns} link set v0 address 02:00:00:00:00:0{n}"));
        ip(&format!("-n {ns} link set v0 up"));
        ip(&format!(
            "-n {ns} neigh replace 10.99.0.{other} lladdr 02:00:00:00:00:0{other} dev v0 nud permanent"
        ));
    }
    net
}

/// Sends packets of four flows for some seconds, faster and slower than the rate in turn; returns what was
/// sent, and the codepoint of each when it arrived, twice if it arrived twice.
fn drive(net: &Net, load: impl Fn(f64) -> f64, packets: usize) -> (Vec<Sent>, BTreeMap<u32, Vec<Ecn>>) {
    let sinks: Vec<UdpSocket> = (0..4)
        .map(|i| Net::within(&net.receiver, || UdpSocket::bind(("10.99.0.2", 7000 + i))).expect("a port"))
        .collect();
    for sink in &sinks {
        sink.set_read_timeout(Some(Duration::from_secs(3))).expect("a timeout");
        setsockopt(sink, RcvBufForce, &(64 << 20)).expect("root may");
        setsockopt(sink, IpRecvTos, &true).expect("every kernel has it");
    }
    let sources: Vec<UdpSocket> = (0..4)
        .map(|i| {
            let s = Net::within(&net.sender, || UdpSocket::bind(("10.99.0.1", 8000 + i))).expect("a port");
            setsockopt(&s, SndBufForce, &(64 << 20)).expect("root may");
            s.connect(("10.99.0.2", 7000 + i)).expect("connects");
            s
        })
        .collect();
    let mut draws = Stream::named(1, "packets");
    thread::scope(|scope| {
        let receivers: Vec<_> = sinks.iter().map(|sink| scope.spawn(|| receive(sink))).collect();
        let (mut sent, mut bytes) = (Vec::new(), 0.0);
        let (begun, mut before, mut allowed) = (monotonic_ns(), 0.0, 0.0);
        while sent.len() < packets {
            thread::sleep(Duration::from_millis(4));
            let now = (monotonic_ns() - begun) as f64 / 1e9;
            allowed += RATE * load(now) * (now - before);
            before = now;
            while bytes < allowed && sent.len() < packets {
                let payload = [26, 562, 1472, 1472][draws.below(4) as usize];
                let flow = if draws.below(2) == 0 { 0 } else { draws.below(4) as u32 };
                let ecn = Ecn::from_bits(draws.below(3) as u8);
                let mut packet = vec![0; payload];
                packet[..4].copy_from_slice(&(sent.len() as u32).to_le_bytes());
                let socket = &sources[flow as usize];
                setsockopt(socket, Ipv4Tos, &i32::from(ecn as u8)).expect("a codepoint");
                socket.send(&packet).expect("the socket takes the packet");
                sent.push(Sent { bytes: payload as u32 + 28, flow, ecn });
                bytes += payload as f64 + 42.0;
            }
        }
        let mut arrived: BTreeMap<u32, Vec<Ecn>> = BTreeMap::new();
        for (id, ecn) in receivers.into_iter().flat_map(|r| r.join().expect("no panic")) {
            arrived.entry(id).or_default().push(ecn);
        }
        (sent, arrived)
    })
}

/// What arrives at a socket until nothing has come for three seconds.
fn receive(socket: &UdpSocket) -> Vec<(u32, Ecn)> {
    let mut all = Vec::new();
    let mut buffer = [0_u8; 2048];
    let mut control = cmsg_space!(u8);
    loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let Ok(message) =
            recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())
        else {
            return all;
        };
        let tos = message.cmsgs().ok().into_iter().flatten().find_map(|c| match c {
            ControlMessageOwned::Ipv4Tos(tos) => Some(tos),
            _ => None,
        });
        let ecn = Ecn::from_bits(tos.unwrap_or(0));
        all.push((u32::from_le_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]), ecn));
    }
}

/// What the model does when it is called as the kernel was: the fate of each packet, and how many calls gave
/// another packet than the kernel's.
fn replay(case: &Case, calls: &[Call], sent: &[Sent], start: u64, seed: u64) -> (Vec<Fate>, usize) {
    let text = case.words;
    let discipline: Discipline = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut queue = discipline.build(Stream::named(seed, "queue"));
    // What is still in the queue at the end was not dropped.
    let mut fates = vec![Fate::Sent; sent.len()];
    let (mut at, mut id, mut out) = (Instant::ZERO, 0_u32, Vec::new());
    // The packet that is at an address now.
    let (mut ids, mut others) = (BTreeMap::<u64, u32>::new(), 0);
    for call in calls {
        at = call.at.map_or(at, |ns| at.max(Instant(ns.saturating_sub(start))));
        if call.enters {
            let Sent { bytes, flow, ecn } = sent[id as usize];
            queue.enqueue(Packet { id, flow, bytes, ecn, at }, &mut out);
            ids.insert(call.skb, id);
            id += 1;
        } else {
            let ours = queue.dequeue(at, &mut out);
            if let Some(p) = ours {
                fates[p.id as usize] = Fate::of(p.ecn);
            }
            let theirs = (call.skb != 0).then(|| ids[&call.skb]);
            others += usize::from(ours.map(|p| p.id) != theirs);
        }
        for dropped in out.drain(..).filter(|d| d.outcome.is_err()) {
            fates[dropped.id as usize] = Fate::Dropped;
        }
    }
    (fates, others)
}

/// What became of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Fate {
    Sent,
    Marked,
    Dropped,
}

impl Fate {
    fn of(ecn: Ecn) -> Self {
        if ecn == Ecn::Ce { Self::Marked } else { Self::Sent }
    }
}

fn count(fates: &[Fate], fate: Fate) -> usize {
    fates.iter().filter(|f| **f == fate).count()
}

fn monotonic_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("every kernel has it");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The major version of the running kernel.
fn major_version() -> u32 {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("every kernel has it");
    release.split('.').next().and_then(|n| n.parse().ok()).expect("a number")
}

fn able(test: &str) -> bool {
    let _ = Command::new("mount").args(["-t", "tracefs", "tracefs", TRACING]).output();
    let able =
        nix::unistd::geteuid().is_root() && fs::exists(format!("{TRACING}/kprobe_events")).unwrap_or(false);
    if !able {
        println!("skipped: kernel test {test} (needs root and kprobes)");
    }
    able
}

#[test]
fn disciplines_on_a_device_decide_as_the_model() {
    if !able("disciplines_on_a_device_decide_as_the_model") {
        return;
    }
    let mut failed = Vec::new();
    for case in CASES {
        let name = case.words.split(' ').next().unwrap_or_default();
        let net = quiet_net(name);
        let class =
            "class add dev v0 parent 1: classid 1:1 htb rate 2mbit burst 1600 cburst 1600 quantum 1600";
        let ready = tc(&net.sender, "qdisc add dev v0 root handle 1: htb default 1")
            && tc(&net.sender, class)
            && tc(&net.sender, &format!("qdisc add dev v0 parent 1:1 handle 10: {}", case.words));
        // A multiple of the units in which disciplines count time.
        let start = monotonic_ns() & !0xffff;
        let Some(tracer) = ready.then(|| Tracer::start(case)).flatten() else {
            println!("skipped: {name} on a device (the kernel lacks it, or htb, or its probes)");
            continue;
        };
        let load = |now: f64| if now % 3.0 < 1.5 { 1.5 } else { 0.5 };
        let (sent, arrived) = drive(&net, load, PACKETS);
        let calls = recorded_calls();
        drop(tracer);
        let entered = calls.iter().filter(|c| c.enters).count();
        assert_eq!(entered, sent.len(), "{name}: a call for each packet");
        let fate = |id| arrived.get(&id).map_or(Fate::Dropped, |all| Fate::of(all[0]));
        let kernel: Vec<Fate> = (0..sent.len() as u32).map(fate).collect();
        let theirs = [Fate::Dropped, Fate::Marked].map(|l| count(&kernel, l));
        let timed = calls.iter().filter(|c| c.at.is_some()).count();
        let untimed = calls.iter().filter(|c| c.skb != 0 && !c.enters && c.at.is_none()).count();
        let total =
            format!("{} packets, {} dropped, {} marked, {timed} times", kernel.len(), theirs[0], theirs[1]);
        if let Some(since) = case.exact {
            let (fates, others) = replay(case, &calls, &sent, start, 0);
            let differ = fates.iter().zip(&kernel).filter(|(a, b)| a != b).count();
            println!(
                "{}: {total}; {} calls, of which {untimed} have no time; {others} give another packet, and the fate of \
                 {differ} packets differs from the model",
                case.words,
                calls.len()
            );
            let judged = major_version() >= since;
            if judged && untimed + others + differ > 0 || theirs[0] + theirs[1] < kernel.len() / 200 {
                failed.push(case.words);
            }
            continue;
        }
        let mut all = [Vec::new(), Vec::new()];
        for seed in 0..SEEDS {
            let (fates, _) = replay(case, &calls, &sent, start, seed);
            all[0].push(count(&fates, Fate::Dropped));
            all[1].push(count(&fates, Fate::Marked));
        }
        for counts in &mut all {
            counts.sort_unstable();
        }
        let within =
            all.iter().zip(theirs).all(|(all, theirs)| (all[0]..=all[all.len() - 1]).contains(&theirs));
        let range = |all: &[usize]| format!("{} to {}", all[0], all[all.len() - 1]);
        println!(
            "{name}: {total}; the model {} dropped, {} marked over {SEEDS} seeds",
            range(&all[0]),
            range(&all[1])
        );
        if !within || theirs[0] + theirs[1] < kernel.len() / 200 {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn netem_on_a_device_loses_as_the_model() {
    if !able("netem_on_a_device_loses_as_the_model") {
        return;
    }
    let net = quiet_net("netem");
    if !tc(&net.sender, "qdisc add dev v0 root netem limit 100000 loss gemodel 5% 25%") {
        println!("skipped: netem on a device (the kernel lacks it)");
        return;
    }
    let n = 20_000;
    let (_, arrived) = drive(&net, |_| 6.0, n);
    let lost: Vec<bool> = (0..n as u32).map(|id| !arrived.contains_key(&id)).collect();
    // Runs of losses are geometric with mean 1/r, runs between with mean 1/p: five standard errors of the
    // means.
    for (state, change) in [(true, 0.25_f64), (false, 0.05)] {
        let runs: Vec<f64> =
            lost.chunk_by(|a, b| a == b).filter(|c| c[0] == state).map(|c| c.len() as f64).collect();
        let found = runs.iter().sum::<f64>() / runs.len() as f64;
        let error = (1.0 - change).sqrt() / change / (runs.len() as f64).sqrt();
        println!(
            "netem: {} runs of {state} with mean {found}; the model 1/{change} within {}",
            runs.len(),
            5.0 * error
        );
        assert!((found - 1.0 / change).abs() < 5.0 * error, "{state}: {found}");
    }
    assert!(tc(&net.sender, "qdisc replace dev v0 root netem limit 100000 duplicate 10%"));
    let n = 5000;
    let (_, arrived) = drive(&net, |_| 6.0, n);
    let twice = arrived.values().filter(|all| all.len() == 2).count();
    println!("netem: {twice} of {n} arrived twice");
    // Five standard deviations of a binomial (5000, 10 %): 106.
    assert!(arrived.len() == n && twice.abs_diff(500) < 106, "{} {twice}", arrived.len());
}
