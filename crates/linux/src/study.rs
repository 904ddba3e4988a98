//! A study over the running kernel: the same path, on the real clock, with the kernel's own endpoints; the same row.
//!
//! The path knows its own part: what was dropped, and how long each packet was under way. The kernel tells the sender's
//! (`watch.bpf.c`, for every control alike), and an object of ours the reason its startup was left for.

use crate::clock::clock;
use crate::emulate::{Emulation, Report, SERVER};
use crate::error::KernelError;
use crate::facts::{ExitReason, Facts, Kind};
use crate::flows::{Flow, Watch};
use crate::load::{Held, Spec, load_as};
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use slowstart::units::{Bytes, Instant, Rate, Span};
use slowstart_lab::engine::MILESTONES;
use slowstart_lab::eval::{self, Ended};
use slowstart_lab::path::Kind as PacketKind;
use slowstart_lab::record::{Cost, ExitRow, Param, Row, SCHEMA, Sample, Trace};
use slowstart_lab::run::{Job, Outcome};
use slowstart_lab::scenario::{self, Study};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Controls that the kernel has of itself, by their names in it.
pub const KERNEL_CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
/// Samples a run keeps.
const SAMPLES: usize = 4000;
/// Numbers what this process loads.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// What runs: a startup of ours around the kernel's avoidance, or a control the kernel has of itself.
pub struct LoadedControl {
    /// As written.
    pub label: String,
    /// The row's name for it.
    name: String,
    params: BTreeMap<String, Param>,
    avoidance: Option<String>,
    /// Its name in the kernel.
    control: String,
    held: Option<Held>,
}

impl LoadedControl {
    /// Loads it under a name of this process, beside whatever is loaded.
    pub fn load(written: &str, avoidance: &str) -> Result<Self, KernelError> {
        let label = written.to_string();
        if KERNEL_CONTROLS.contains(&written) {
            let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
            let there = fs::read_to_string(file).unwrap_or_default();
            if !there.split_whitespace().any(|c| c == written) {
                let why = format!("this kernel has {}: modprobe tcp_{written}", there.trim());
                return Err(KernelError::refused(written, why));
            }
            return Ok(Self {
                name: label.clone(),
                control: label.clone(),
                label,
                params: BTreeMap::new(),
                avoidance: None,
                held: None,
            });
        }
        let spec = Spec::read(written, avoidance)?;
        let (name, algorithm) = scenario::algorithm("startup", written)
            .map_err(|e| KernelError::refused(written, e.to_string()))?;
        let n = NEXT.fetch_add(1, Ordering::SeqCst);
        let held = load_as(&spec, format!("ss_{:x}_{n:x}", std::process::id()))?;
        held.watch(2)?;
        Ok(Self {
            name,
            control: held.name.clone(),
            label,
            params: scenario::params(&algorithm),
            avoidance: Some(avoidance.to_string()),
            held: Some(held),
        })
    }
}

/// What the two ends saw of one transfer.
#[derive(Default)]
struct Seen {
    began: Instant,
    arrived: u64,
    milestones: [Option<Instant>; MILESTONES.len()],
    completed: Option<Instant>,
    ended: Instant,
    flows: Vec<Flow>,
    facts: Vec<Facts>,
}

/// What the client takes, until it has all or time is over.
fn receive(mut client: TcpStream, size: Option<u64>, until: Instant, seen: &mut Seen) {
    let mut buffer = vec![0; 1 << 18];
    while clock() < until {
        match client.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                seen.arrived += n as u64;
                let now = clock();
                for (at, bytes) in seen.milestones.iter_mut().zip(MILESTONES) {
                    if seen.arrived >= bytes {
                        at.get_or_insert(now);
                    }
                }
                if size.is_some_and(|s| seen.arrived >= s) {
                    seen.completed.get_or_insert(now);
                }
            }
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    seen.ended = clock();
}

/// What the server sends.
fn send(listener: &TcpListener, size: Option<u64>, patience: Duration) {
    let Ok((mut server, _)) = listener.accept() else { return };
    let _ = server.set_write_timeout(Some(patience));
    let data = vec![7; 1 << 18];
    let mut left = size.unwrap_or(u64::MAX);
    while left > 0 {
        let n = left.min(data.len() as u64) as usize;
        match server.write(&data[..n]) {
            Ok(n) => left -= n as u64,
            Err(_) => break,
        }
    }
    let _ = server.shutdown(Shutdown::Write);
    let _ = server.set_read_timeout(Some(patience));
    let _ = server.read(&mut [0]);
    // Nothing is to linger on when the path is gone.
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = setsockopt(&server, nix::sys::socket::sockopt::Linger, &now);
}

fn transfer(e: &Emulation, c: &LoadedControl, study: &Study) -> Result<Seen, KernelError> {
    let mut seen = Seen::default();
    let file = format!("/run/netns/{}", e.server());
    let inode = fs::metadata(&file).map_err(KernelError::io(format!("read {file}")))?.ino();
    let watch = Watch::start(inode, Span::ZERO)?;
    let flows = RefCell::new(Vec::new());
    let facts = RefCell::new(Vec::new());
    let records = watch.records(|f| flows.borrow_mut().push(f))?;
    let events = c.held.as_ref().map(|h| h.events(|f| facts.borrow_mut().push(f))).transpose()?;
    let listener = Emulation::in_namespace(e.server(), || {
        TcpListener::bind((SERVER, 0)).map_err(KernelError::io(format!("listen at {SERVER}")))
    })?;
    setsockopt(&listener, TcpCongestion, &OsString::from(&c.control))
        .map_err(|e| KernelError::io(format!("use {}", c.control))(e.into()))?;
    let address = listener.local_addr().map_err(KernelError::io("listen"))?;
    let patience = Duration::from_nanos(study.duration.0);
    seen.began = clock();
    let until = seen.began + study.duration;
    let client = Emulation::in_namespace(e.client(), || {
        TcpStream::connect_timeout(&address, patience).map_err(KernelError::io("connect over the path"))
    })?;
    client.set_read_timeout(Some(Duration::from_millis(100))).map_err(KernelError::io("a timeout"))?;
    let poll = || -> Result<(), KernelError> {
        records.consume().map_err(KernelError::bpf("read events"))?;
        events
            .as_ref()
            .map_or(Ok(()), libbpf_rs::RingBuffer::consume)
            .map_err(KernelError::bpf("read events"))
    };
    thread::scope(|s| -> Result<(), KernelError> {
        s.spawn(|| send(&listener, study.size, patience));
        let seen = &mut seen;
        let receiver = s.spawn(move || receive(client, study.size, until, seen));
        let mut result = Ok(());
        while !receiver.is_finished() {
            thread::sleep(Duration::from_millis(5));
            result = result.and_then(|()| poll());
        }
        result
    })?;
    poll()?;
    drop((records, events));
    (seen.flows, seen.facts) = (flows.into_inner(), facts.into_inner());
    Ok(seen)
}

/// How the startup of this run ended. An object of ours says so itself; of others, what the kernel shows is read.
fn exit(seen: &Seen) -> Option<(ExitReason, ExitRow)> {
    let since = |ns: u64| Instant(ns).since(seen.began).as_secs_f64();
    if seen.facts.is_empty() {
        let f = seen.flows.iter().rev().find(|f| f.exit_ns > 0)?;
        let (cwnd, at) = (u64::from(f.exit_cwnd) * u64::from(f.mss), since(f.exit_ns));
        let row = ExitRow {
            reason: f.why?.name().to_string(),
            time_s: at,
            left_s: at,
            detected_cwnd_bytes: cwnd,
            cwnd_bytes: cwnd,
            inflight_bytes: u64::from(f.inflight) * u64::from(f.mss),
        };
        return Some((f.why?, row));
    }
    let left = seen.facts.iter().rposition(|f| f.why != ExitReason::None)?;
    let f = &seen.facts[left];
    // A drain begins with an ACK that earns nothing; what sets windows after it drains, and a loss may end it.
    let mut at = left;
    while f.why == ExitReason::RateFlat
        && at > 0
        && (seen.facts[at].set > 0 || seen.facts[at].kind != Kind::Ack)
        && seen.facts[at - 1].kind == Kind::Ack
        && (seen.facts[at - 1].set > 0 || seen.facts[at - 1].earned == 0)
    {
        at -= 1;
    }
    let detected = &seen.facts[at];
    let bytes = |n: u32| u64::from(n) * u64::from(f.mss);
    let row = ExitRow {
        reason: f.why.name().to_string(),
        time_s: since(detected.now_ns),
        left_s: since(f.now_ns),
        detected_cwnd_bytes: bytes(detected.cwnd),
        cwnd_bytes: bytes(f.cwnd_after),
        inflight_bytes: bytes(f.inflight),
    };
    Some((f.why, row))
}

/// Runs one job and keeps its samples.
pub fn run_transfer(study: &Study, c: &LoadedControl, job: Job) -> Result<Outcome, KernelError> {
    let seed = study.run_seed(job.run);
    let e = Emulation::start(&study.path, seed, true)?;
    let mut caveats = e.caveats.clone();
    let seen = transfer(&e, c, study)?;
    let report = e.stop()?;
    if !report.valid() {
        caveats.push("INVALID: more than one packet in a hundred was over a millisecond late".to_string());
    }
    Ok(outcome(study, c, job, seed, &seen, &report, caveats))
}

fn outcome(
    study: &Study,
    c: &LoadedControl,
    job: Job,
    seed: u64,
    seen: &Seen,
    report: &Report,
    mut caveats: Vec<String>,
) -> Outcome {
    let path = study.path.build(seed);
    let facts = path.facts;
    let since = |at: Instant| at.since(seen.began).as_secs_f64();
    let on_path = |at: Instant| (report.start + Span(at.0)).since(seen.began).as_secs_f64();
    let packet = |f: &Flow| u64::from(f.mss) + 52;
    let exit = exit(seen);
    // What is in flight first fills the path, as the laboratory judges it.
    let link = path.forward;
    let fills = |f: &&Flow| {
        let at = Instant(Instant(f.now_ns).since(report.start).0);
        let holds = if facts.variable {
            link.capacity(at, at + facts.base_rtt)
        } else {
            facts.rate.over(facts.base_rtt)
        };
        u64::from(f.inflight) * packet(f) >= holds.0
    };
    let capacity = seen.flows.iter().find(fills).map(|f| since(Instant(f.now_ns)));
    let first_loss =
        seen.flows.iter().find(|f| f.state >= 3 || f.retransmitted > 0).map(|f| since(Instant(f.now_ns)));
    let data = || report.forward.records.iter().filter(|f| f.packet.kind == PacketKind::Data);
    let dropped = || data().filter(|f| f.outcome.is_err());
    let left = exit.as_ref().map_or(f64::INFINITY, |(_, x)| x.time_s);
    let class = eval::class(
        exit.as_ref().map(|(why, x)| Ended { at: x.time_s, by_congestion: why.by_congestion() }),
        capacity,
        first_loss,
    );
    let exit = exit.map(|(_, row)| row);
    let took = |f: &crate::emulate::PacketRecord| f.outcome.ok().map(|due| due.since(f.at));
    let least = data().filter_map(took).min().unwrap_or(Span::ZERO);
    let most = data().filter_map(took).max().unwrap_or(Span::ZERO);
    let last = seen.flows.iter().max_by_key(|f| f.sent_bytes);
    let mss = last.map_or(u64::from(study.profile.mss), |f| u64::from(f.mss));
    let inflight = |f: &Flow| u64::from(f.inflight) * u64::from(f.mss);
    if study.size.is_some() && seen.completed.is_none() {
        caveats.push("the transfer did not complete within the time given".to_string());
    }
    if exit.is_none() && seen.completed.is_some() && c.name != "bbr" {
        caveats.push("the transfer ended before the startup did".to_string());
    }
    if c.name == "bbr" {
        caveats.push("the kernel does not show when its startup ends".to_string());
    }
    let ended = seen.completed.unwrap_or(seen.ended);
    let milestones = MILESTONES.iter().zip(seen.milestones);
    let row = Row {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_string(),
        engine: "kernel".to_string(),
        path: study.path.name.clone(),
        profile: crate::check::Check::new().release,
        startup: c.name.clone(),
        params: c.params.clone(),
        avoidance: c.avoidance.clone(),
        flow: 0,
        run: job.run,
        seed,
        iw_bytes: 10 * mss,
        size_bytes: study.size,
        duration_s: since(seen.ended),
        rate_bps: facts.rate.0,
        base_rtt_s: facts.base_rtt.as_secs_f64(),
        bdp_bytes: facts.rate.over(facts.base_rtt).scale(mss, mss + 52).0,
        buffer_bytes: facts.buffer.map(|b| b.0),
        drawn: path.drawn,
        exit,
        class,
        class_by_heuristic: None,
        capacity_time_s: capacity,
        capacity_time_by_heuristic_s: None,
        first_drop_time_s: dropped().next().map(|f| on_path(f.at)),
        first_loss_time_s: first_loss,
        peak_inflight_bytes: seen.flows.iter().map(inflight).max().unwrap_or(0),
        peak_queue_delay_s: Span(most.0.saturating_sub(least.0)).as_secs_f64(),
        startup_lost_packets: dropped().filter(|f| on_path(f.at) < left).count() as u64,
        lost_packets: dropped().count() as u64,
        retransmitted_packets: last.map_or(0, |f| u64::from(f.retransmitted)),
        timeouts: last.map_or(0, |f| u64::from(f.timeouts)),
        goodput_bps: Rate::new(Bytes(seen.arrived), ended.since(seen.began)).map_or(0, |r| r.0),
        completion_s: seen.completed.map(since),
        time_to_bytes_s: milestones.map(|(b, at)| (b.to_string(), at.map(since))).collect(),
        others: None,
        cost: Cost { packets: data().count() as u64, events: seen.flows.len() as u64 },
        caveats,
    };
    let every = seen.flows.len().div_ceil(SAMPLES).max(1);
    let samples = seen.flows.iter().step_by(every).map(|f| Sample {
        time_s: since(Instant(f.now_ns)),
        flow: 0,
        cwnd_bytes: u64::from(f.cwnd) * u64::from(f.mss),
        ssthresh_bytes: (f.ssthresh < 0x7fff_ffff).then(|| u64::from(f.ssthresh) * u64::from(f.mss)),
        inflight_bytes: inflight(f),
        rtt_s: (f.srtt_us > 0).then(|| f64::from(f.srtt_us) / 1e6),
        delivered_bytes: f.acked_bytes,
        queue_bytes: 0,
        pacing_bps: Some(f.pacing_rate.saturating_mul(8)),
        phase: if f.why == Some(ExitReason::None) { "slow-start" } else { "avoidance" },
        gauges: BTreeMap::new(),
    });
    let trace = Trace { samples: samples.collect(), ..Trace::default() };
    Outcome { job, row, trace }
}
