//! Cost of every algorithm: nanoseconds and instructions per ACK, bytes of state; one JSON line each, of one
//! run.
//!
//! `cargo bench -p slowstart --bench cost [-- NAME]`. The flow is a slow start without an end: a window that
//! doubles each round trip from 10 to 40,960 segments, with an ACK for every second packet, so that the
//! startup is measured and not the avoidance (`exit` states whether a rule ended it nevertheless). Each ACK
//! releases four packets, which are reported to startups that need them. The cost of the same flow without a
//! startup is subtracted. Instructions are counted by valgrind's callgrind, if installed, as the difference
//! between two lengths of the same work, so that setup and process start do not count.

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

use slowstart::avoidance;
use slowstart::control::Controller;
use slowstart::registry;
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Ack, Facts, Handshake, Sent};
use std::hint::black_box;
use std::process::Command;

const MSS: u64 = 1448;
const RTT: Span = Span::millis(100);
const ROUNDS: u32 = 12;
/// The ACKs of each round arrive within this time, so that no train is as long as the path.
const BURST: Span = Span::millis(30);
/// Number of ACKs in the flow.
const ACKS: f64 = (5 * ((1 << ROUNDS) - 1)) as f64;
/// The name that stands for no startup.
const NOTHING: &str = "nothing";

/// The host of the flow, whose facts, ACK and packet are updated in place, as an endpoint does it.
struct Host {
    facts: Facts,
    ack: Ack,
    sent: Sent,
    sent_total: Bytes,
}

impl Host {
    fn new() -> Self {
        let sent = Sent { bytes: Bytes(MSS), ..Sent::default() };
        let mut facts = Facts::new(Bytes(MSS), Bytes(10 * MSS));
        (facts.srtt, facts.min_rtt) = (Some(RTT), Some(RTT));
        (facts.pacing_rate, facts.pacing_on) = (Rate::new(Bytes(1 << 24), RTT), true);
        (facts.gso_max, facts.supports_pacing) = (Bytes(65_536), true);
        let mut ack = Ack::new(sent, Bytes(2 * MSS), Bytes::ZERO);
        ack.rtt = Some(RTT);
        Self { facts, ack, sent, sent_total: Bytes::ZERO }
    }

    /// An ACK of two packets, the later of which was sent one RTT ago, when half as much was delivered as
    /// now.
    fn acknowledge(&mut self, now: Instant) {
        let delivered = self.facts.delivered + Bytes(2 * MSS);
        self.ack.prior_inflight = self.facts.inflight;
        self.ack.upto = SendOrder::new(delivered.0);
        let newest = &mut self.ack.newest;
        (newest.mark, newest.at) = (SendOrder::new(delivered.0), Instant(now.0 - RTT.0));
        (newest.delivered, newest.delivered_at, newest.first_sent_at) = (delivered / 2, newest.at, newest.at);
        (newest.inflight, newest.cwnd) = (delivered / 2, delivered / 2);
        self.facts.now = now;
        self.facts.delivered = delivered;
        self.facts.inflight -= Bytes(2 * MSS);
    }

    /// Sends the next packet.
    fn send(&mut self) {
        let f = &mut self.facts;
        self.sent_total += Bytes(MSS);
        f.next = SendOrder::new(self.sent_total.0);
        f.inflight += Bytes(MSS);
        let s = &mut self.sent;
        (s.mark, s.at, s.sent_total, s.inflight) = (f.next, f.now, self.sent_total, f.inflight);
        (s.delivered, s.delivered_at, s.first_sent_at, s.cwnd) = (f.delivered, f.now, f.now, f.inflight);
    }
}

/// What a pass runs: a controller, or nothing to measure the cost of the host.
type Driven<'a> = Option<&'a registry::AlgorithmEntry>;

/// Runs the flow through a new controller. Returns the reason of its exit, if it ended.
fn pass(driven: Driven) -> Option<&'static str> {
    let mut control =
        driven.map(|e| e.algorithm.controller(&(avoidance::REGISTRY[0].make)(), Bytes(10 * MSS), 1));
    let mut host = Host::new();
    let mut exit = None;
    if let Some(c) = &mut control {
        let hs = Handshake::new(Some(RTT));
        exit = c.on_established(&host.facts, &hs).exited;
    }
    for _ in 0..10 {
        host.send();
    }
    for round in 0..ROUNDS {
        let acks = 5 << round;
        for i in 0..acks {
            host.acknowledge(Instant::ZERO + RTT * u64::from(round + 1) + BURST / acks * i);
            let (facts, ack) = (black_box(&host.facts), black_box(&host.ack));
            if let Some(c) = &mut control {
                exit = exit.or(c.on_ack(facts, ack).exited);
            }
            let watches = control.as_ref().is_some_and(Controller::needs_on_sent);
            for _ in 0..4 {
                host.send();
                let (facts, sent) = (black_box(&host.facts), black_box(&host.sent));
                if let (true, Some(c)) = (watches, &mut control) {
                    c.on_sent(facts, sent);
                }
            }
        }
    }
    black_box((control.map(|c| c.state().cwnd), host.facts.inflight));
    exit.map(|e| e.why.name())
}

/// Returns the user and system time of this process, in seconds.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks(11) + ticks(12)) / 100.0
}

/// Returns the instructions of this program per ACK; `None` without valgrind.
fn instructions(name: &str) -> Option<f64> {
    let me = std::env::current_exe().ok()?;
    let all = |passes: &str| -> Option<f64> {
        let out = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&me)
            .args(["--passes", passes, name])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        let line = text.lines().find(|l| l.contains("Collected"))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    Some((all("3")? - all("1")?) / (2.0 * ACKS))
}

/// Returns the nanoseconds of this program per ACK.
fn nanoseconds(driven: Driven) -> f64 {
    let before = cpu_s();
    let mut passes = 0;
    // CPU time has a coarse resolution: repeat until it is a few percent of the total at most.
    while cpu_s() - before < 0.3 {
        pass(driven);
        passes += 1;
    }
    (cpu_s() - before) * 1e9 / (f64::from(passes) * ACKS)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, passes, name] = &args[..]
        && flag == "--passes"
    {
        let entry = registry::named(name);
        for _ in 0..passes.parse().expect("a number") {
            pass(entry.as_ref());
        }
        return;
    }
    let driving = instructions(NOTHING);
    for entry in registry::all().filter(|e| args.is_empty() || args.iter().any(|a| a == e.name)) {
        // Less the cost of the host alone; the minimum of three, because the machine has other work.
        let ns = (0..3).map(|_| nanoseconds(Some(&entry)) - nanoseconds(None)).fold(f64::INFINITY, f64::min);
        let counted = instructions(entry.name).zip(driving);
        println!(
            "{{\"startup\":\"{}\",\"ns_per_ack\":{ns:.1},\"instructions_per_ack\":{},\"state_bytes\":{},\"exit\":{}}}",
            entry.name,
            counted.map_or("null".into(), |(all, driving)| format!("{:.1}", all - driving)),
            entry.algorithm.state_bytes(),
            pass(Some(&entry)).map_or("null".into(), |why| format!("\"{why}\""))
        );
    }
}
