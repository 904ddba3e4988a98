//! One run of a study on the running kernel: the same path on the real clock, the kernel's own endpoints, the
//! same row.
//!
//! The path counts drops and measures how long each packet took. The kernel reports the state of the sender
//! (`watch.bpf.c`, for every control alike), and the controls of this project the reason why a startup ended.

use crate::bulk::{SLICE, connect_client, send, timed_out, waited};
use crate::clock::clock;
use crate::emulate::{Emulation, INVALID, PacketRecord, Report, SERVER};
use crate::error::KernelError;
use crate::exits::Exits;
use crate::facts::{ExitReason, Facts, Kind};
use crate::flows::{Flow, Watch};
use crate::load::{Held, Spec, load_as};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use slowstart::units::{Bytes, Instant, Span};
use slowstart_files::read_kernel;
use slowstart_sim::path::Kind as PacketKind;
use slowstart_sim::tcp::ecn::EcnRule;
use slowstart_sim::trace::MILESTONES;
use slowstart_study::limits::{Chrono, State};
use slowstart_study::measured::{self, CWR, Identity, Measured, MeasuredExit, PacketSize};
use slowstart_study::record::{Cost, EventRow, Limits, LinkRow, LostBy, Marks, Row, Sample, Trace};
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::Study;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Congestion controls of the kernel itself that a study can run.
pub const KERNEL_CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
/// Bytes of IPv4 and TCP headers, with timestamps.
const HEADERS: u64 = 52;
/// Samples kept of a run.
const SAMPLES: usize = 4000;
/// The number of the next control that this process loads, a part of its name.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A congestion control that runs can use: a startup of this project with the kernel's avoidance, or a
/// control of the kernel itself. Dropping it unloads it.
pub(crate) struct LoadedControl {
    /// The startup as the user wrote it.
    name: String,
    /// Its name in the kernel.
    control: String,
    held: Option<Held>,
}

impl LoadedControl {
    /// Loads a startup under a name of this process, so that it does not replace one that is already loaded.
    pub(crate) fn load(written: &str, avoidance: &str) -> Result<Self, KernelError> {
        let name = written.to_string();
        if KERNEL_CONTROLS.contains(&written) {
            let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
            let available = read_kernel(file).unwrap_or_default();
            if !available.split_whitespace().any(|c| c == written) {
                let why = format!("not available, found {}; try modprobe tcp_{written}", available.trim());
                return Err(KernelError::refused(written, why));
            }
            return Ok(Self { control: name.clone(), name, held: None });
        }
        let spec = Spec::read(written, avoidance)?;
        let n = NEXT.fetch_add(1, Ordering::SeqCst);
        let held = load_as(&spec, format!("ss_{:x}_{n:x}", std::process::id()))?;
        held.watch(2)?;
        Ok(Self { name, control: held.name.clone(), held: Some(held) })
    }
}

/// The share of a run that either end may wait for a processor. Of 27 runs of three cells beside 2, 4 and 8 busy
/// loops those below 8 % have the times and rates of an idle machine; those from 12 % on need up to 29 % longer for
/// 1 MB.
const MOST_WAITED: f64 = 0.1;

/// What was recorded of one transfer. Times are those of the kernel's monotonic clock.
#[derive(Default)]
struct Recording {
    began: Instant,
    /// Bytes that the client received.
    received: u64,
    milestones: [Option<Instant>; MILESTONES.len()],
    completed: Option<Instant>,
    ended: Instant,
    /// For how long the server and the client waited for a processor.
    waited: [Option<Span>; 2],
    /// What the kernel of the sender counted.
    chrono: Option<Chrono>,
    flows: Vec<Flow>,
    facts: Vec<Facts>,
}

impl Recording {
    /// True if an end waited for a processor for so long that its window or its writes were limited by that.
    fn is_starved(&self) -> bool {
        let took = self.ended.since(self.began).as_secs_f64();
        self.waited.iter().flatten().any(|w| w.as_secs_f64() > MOST_WAITED * took)
    }
}

/// The client: receives until it has everything, the time is over or `over` is set.
fn receive(
    mut client: TcpStream,
    size: Option<u64>,
    until: Instant,
    over: &AtomicBool,
    recording: &mut Recording,
) {
    let mut buffer = vec![0; 1 << 18];
    while clock() < until && !over.load(Ordering::Relaxed) {
        match client.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                recording.received += n as u64;
                let now = clock();
                for (at, bytes) in recording.milestones.iter_mut().zip(MILESTONES) {
                    if recording.received >= bytes {
                        at.get_or_insert(now);
                    }
                }
                if size.is_some_and(|s| recording.received >= s) {
                    recording.completed.get_or_insert(now);
                    break;
                }
            }
            Err(e) if timed_out(&e) => {}
            Err(_) => break,
        }
    }
    recording.ended = clock();
    recording.waited[1] = waited();
}

fn transfer(
    e: &Emulation,
    c: &LoadedControl,
    study: &Study,
    interrupted: &dyn Fn() -> bool,
) -> Result<Recording, KernelError> {
    let mut recording = Recording::default();
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
    let SocketAddr::V4(address) = listener.local_addr().map_err(KernelError::io("listen"))? else {
        return Err(KernelError::refused("listen", "the address is not an IPv4 address"));
    };
    recording.began = clock();
    let until = recording.began + study.duration;
    let client = connect_client(e, address, until, interrupted)?;
    client.set_read_timeout(Some(SLICE)).map_err(KernelError::io("set a timeout"))?;
    let poll = || -> Result<(), KernelError> {
        records.consume().map_err(KernelError::bpf("read events"))?;
        events
            .as_ref()
            .map_or(Ok(()), libbpf_rs::RingBuffer::consume)
            .map_err(KernelError::bpf("read events"))
    };
    let over = AtomicBool::new(false);
    (recording.chrono, recording.waited[0]) = thread::scope(|s| -> Result<_, KernelError> {
        let over = &over;
        let server = s.spawn(|| {
            let counted = send(&listener, study.size, until, over);
            (counted, waited())
        });
        let recording = &mut recording;
        let receiver = s.spawn(move || receive(client, study.size, until, over, recording));
        let mut result = Ok(());
        while !receiver.is_finished() {
            thread::sleep(Duration::from_millis(5));
            if interrupted() {
                result = Err(KernelError::Interrupted);
            }
            result = result.and_then(|()| poll());
            if result.is_err() || !e.is_running() {
                over.store(true, Ordering::Relaxed);
            }
        }
        result.map(|()| server.join().expect("it does not panic"))
    })?;
    poll()?;
    drop((records, events));
    (recording.flows, recording.facts) = (flows.into_inner(), facts.into_inner());
    Ok(recording)
}

/// Returns how the startup ended: as reported by a control of this project, otherwise as the tracepoints show
/// it.
fn exit(recording: &Recording) -> Option<MeasuredExit> {
    let since = |ns: u64| Instant(ns).since(recording.began);
    let bytes = |segments: u32, mss: u32| Bytes(u64::from(segments) * u64::from(mss));
    if recording.facts.is_empty() {
        // A later record has none where the loss that ended it proved spurious.
        let ended = recording.flows.last().filter(|f| f.exit_ns > 0)?.exit_ns;
        // The record of the moment: later ones have the window of their own time.
        let f = recording.flows.iter().find(|f| f.exit_ns == ended)?;
        let why = f.why?;
        let at = since(ended);
        let window = bytes(f.exit_cwnd, f.mss);
        return Some(MeasuredExit {
            reason: why.name(),
            by_congestion: why.by_congestion(),
            detected: at,
            left: at,
            detected_cwnd: window,
            before: Some(window),
            after: match why {
                ExitReason::Loss | ExitReason::Cwr => bytes(f.ssthresh, f.mss).min(window),
                ExitReason::Timeout => bytes(f.cwnd, f.mss).min(window),
                _ => window,
            },
            inflight: bytes(f.inflight, f.mss),
        });
    }
    let mut exits = Exits::default();
    for (i, f) in recording.facts.iter().enumerate() {
        exits.see(f, || i);
    }
    let &left = exits.iter().next_back()?;
    let f = &recording.facts[left];
    // The exit was detected where the drain began: at the ACK after which the window no longer grew. ACKs
    // that set a window after it belong to the drain, and a loss may end the drain.
    let mut at = left;
    while f.why == ExitReason::RateFlat
        && at > 0
        && (recording.facts[at].set > 0 || recording.facts[at].kind != Kind::Ack)
        && recording.facts[at - 1].kind == Kind::Ack
        && (recording.facts[at - 1].set > 0 || recording.facts[at - 1].earned == 0)
    {
        at -= 1;
    }
    let detected = &recording.facts[at];
    Some(MeasuredExit {
        reason: f.why.name(),
        by_congestion: f.why.by_congestion(),
        detected: since(detected.now_ns),
        left: since(f.now_ns),
        detected_cwnd: bytes(detected.cwnd, f.mss),
        before: Some(bytes(f.cwnd, f.mss)),
        // The kernel lowers cwnd to the threshold over the next round trip (PRR), also after a loss that ended a
        // drain.
        after: match (f.why, f.kind) {
            (ExitReason::Loss | ExitReason::Cwr, _) | (_, Kind::Loss) => {
                bytes(f.ssthresh_after.min(f.cwnd_after), f.mss)
            }
            _ => bytes(f.cwnd_after, f.mss),
        },
        inflight: bytes(f.inflight, f.mss),
    })
}

/// The record with which the sender first knew of a loss.
fn first_loss(flows: &[Flow]) -> Option<&Flow> {
    measured::first_loss(flows, |f| (f.state, f.ssthresh, f.retransmitted))
}

/// Runs one job of a study on the running kernel. `interrupted` is polled; once it returns true the run ends
/// with [`KernelError::Interrupted`].
pub(crate) fn run_transfer(
    study: &Study,
    control: &LoadedControl,
    job: Job,
    interrupted: &dyn Fn() -> bool,
) -> Result<Outcome, KernelError> {
    let seed = study.run_seed(job.run);
    let e = Emulation::start(&study.path, seed, true)?;
    let mut caveats = e.caveats.clone();
    e.set_ecn(study.profile.ecn)?;
    let result = transfer(&e, control, study, interrupted);
    let running = e.is_running();
    let report = e.stop();
    // Where the path failed, its error is the cause of an error of the transfer.
    let (report, recording) = if running { (report, result?) } else { (Ok(report?), result?) };
    let report = report?;
    if !report.valid() || recording.is_starved() {
        caveats.push(INVALID.to_string());
    }
    Ok(outcome(study, control, job, seed, &recording, &report, caveats))
}

/// What each link of a path of several dropped; none on a path of one.
fn links(study: &Study, report: &Report) -> Vec<LinkRow> {
    let all = study.path.links();
    let data = || report.forward.records.iter().filter(|f| f.packet.kind == PacketKind::Data);
    let drops = |i: usize| data().filter_map(|f| f.outcome.err()).filter(move |d| usize::from(d.link) == i);
    let row = |(i, link)| LinkRow::new(link, None, LostBy::count(drops(i).map(|d| d.cause)));
    let several = all.len() > 1;
    all.into_iter().enumerate().filter(|_| several).map(row).collect()
}

/// What the path did to packets, in order of time: drops of data, and handshake packets that were lost or sent again.
fn events(report: &Report, has_links: bool, on_path: impl Fn(Instant) -> Span) -> Vec<EventRow> {
    let event = |at: Instant, what: &'static str, why: String, link| {
        let time_s = on_path(at).as_secs_f64();
        EventRow { time_s, flow: 0, what: what.into(), why: Some(why), link }
    };
    let mut all = Vec::new();
    for (way, kind, name) in
        [(&report.back, PacketKind::Syn, "SYN"), (&report.forward, PacketKind::SynAck, "SYN-ACK")]
    {
        for (i, packet) in way.records.iter().filter(|f| f.packet.kind == kind).enumerate() {
            all.extend((i > 0).then(|| event(packet.at, "handshake", format!("{name} sent again"), None)));
            let lost = packet.outcome.err();
            all.extend(lost.map(|lost| event(lost.at, "handshake", format!("{name} lost"), None)));
        }
    }
    for packet in report.forward.records.iter().filter(|f| f.packet.kind == PacketKind::Data) {
        all.extend(
            packet.outcome.err().map(|lost| {
                event(lost.at, "drop", lost.cause.to_string(), has_links.then_some(lost.link + 1))
            }),
        );
    }
    all.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    all
}

/// What the path marked, and how often the sender entered the state CWR for it.
fn marks(recording: &Recording, report: &Report, since: impl Fn(Instant) -> Span) -> Marks {
    let states = recording.flows.iter().map(|f| f.state);
    let entered = states.clone().zip(states.skip(1)).filter(|(a, b)| *a != CWR && *b == CWR);
    let first = recording.flows.iter().find(|f| f.state == CWR);
    Marks {
        first_time_s: first.map(|f| since(Instant(f.now_ns)).as_secs_f64()),
        packets: report.forward.marked,
        responses: entered.count() as u64,
    }
}

/// What limited the sender, as far as its kernel tells.
fn limits(study: &Study, recording: &Recording) -> Limits {
    let state = |f: &Flow| State {
        at: Instant(f.now_ns).since(recording.began),
        repairs: f.state > CWR,
        has_sent_all: study.size.is_some_and(|size| {
            f.acked_bytes.saturating_add(u64::from(f.inflight) * u64::from(f.mss)) >= size
        }),
    };
    let states: Vec<State> = recording.flows.iter().map(state).collect();
    Limits::of_kernel(&states, recording.chrono, recording.ended.since(recording.began))
}

fn outcome(
    study: &Study,
    c: &LoadedControl,
    job: Job,
    seed: u64,
    recording: &Recording,
    report: &Report,
    caveats: Vec<String>,
) -> Outcome {
    let path = study.path.build(seed);
    let facts = path.facts;
    let since = |at: Instant| at.since(recording.began);
    let on_path = |at: Instant| since(report.start + Span(at.0));
    let packet = |f: &Flow| u64::from(f.mss) + HEADERS;
    let exit = exit(recording);
    // The first time that the data in flight fills the path, by the definition of the simulator; unless its delay
    // has risen since, so that the most that was in flight no longer did at the exit.
    let rtt_at = |at: Span| path.rtt_at(Instant((recording.began + at).since(report.start).0));
    let fills = |f: &Flow, at: Span, inflight: u64| {
        let on_path = Instant((recording.began + at).since(report.start).0);
        inflight * packet(f) >= path.bytes_per_rtt(on_path, path.rtt_at(on_path)).0
    };
    let at = |f: &Flow| since(Instant(f.now_ns));
    let fills_now = |f: &&Flow| fills(f, at(f), u64::from(f.inflight));
    let mut capacity = recording.flows.iter().find(fills_now).map(at);
    if let (Some(found), Some(exit)) = (capacity, &exit)
        && found <= exit.detected
        && rtt_at(exit.detected) > rtt_at(found)
    {
        let before = recording.flows.iter().filter(|f| at(f) <= exit.detected);
        let most = before.max_by_key(|f| f.inflight);
        if most.is_some_and(|f| !fills(f, exit.detected, u64::from(f.inflight))) {
            capacity = recording.flows.iter().filter(|f| at(f) > exit.detected).find(fills_now).map(at);
        }
    }
    let first_loss = first_loss(&recording.flows).map(at);
    let data = || report.forward.records.iter().filter(|f| f.packet.kind == PacketKind::Data);
    // A discipline drops a packet when its turn comes, long after it arrived.
    let dropped = || data().filter_map(|f| f.outcome.err().map(|dropped| on_path(dropped.at)));
    let left = exit.map_or(Span(u64::MAX), |x| x.left);
    // What was still in a queue at the end never arrived.
    let arrived = |f: &PacketRecord| f.outcome.ok().filter(|due| *due != Instant::NEVER);
    let took = |f: &PacketRecord| arrived(f).map(|due| due.since(f.at));
    let least = data().filter_map(took).min().unwrap_or(Span::ZERO);
    let most = data().filter_map(took).max().unwrap_or(Span::ZERO);
    let last = recording.flows.iter().max_by_key(|f| f.sent_bytes);
    let mss = last.map_or(u64::from(study.profile.mss), |f| u64::from(f.mss));
    let inflight = |f: &Flow| u64::from(f.inflight) * u64::from(f.mss);
    let measured = Measured {
        packet: PacketSize { payload: mss, wire: mss + HEADERS },
        // The window before the first ACK; the SYN counts as one byte.
        iw_bytes: recording
            .flows
            .first()
            .filter(|f| f.acked_bytes <= 1)
            .map(|f| u64::from(f.cwnd) * u64::from(f.mss)),
        facts,
        base_rtt: facts.base_rtt,
        drawn: path.drawn,
        lasted: since(recording.ended),
        exit,
        exit_unknown: (c.name == "bbr").then_some("the kernel does not report when the startup of bbr ends"),
        capacity,
        class_by_heuristic: None,
        capacity_by_heuristic: None,
        first_drop: dropped().min(),
        first_loss,
        marks: (study.profile.ecn != EcnRule::Off).then(|| marks(recording, report, since)),
        peak_inflight: recording.flows.iter().map(inflight).max(),
        peak_queue_delay: Some(Span(most.0.saturating_sub(least.0))),
        startup_queue_delay: None,
        startup_lost: Some(dropped().filter(|at| *at < left).count() as u64),
        lost: Some(dropped().count() as u64),
        lost_by: Some(LostBy::count(data().filter_map(|f| f.outcome.err().map(|d| d.cause)))),
        links: links(study, report),
        retransmitted: last.map(|f| u64::from(f.retransmitted)),
        timeouts: last.map(|f| u64::from(f.timeouts)),
        limits: Some(limits(study, recording)),
        delivered: recording.received,
        completed: recording.completed.map(since),
        milestones: recording.milestones.map(|at| at.map(since)),
        objects: None,
        connections: Vec::new(),
        others: None,
        cost: Cost { packets: data().count() as u64, events: recording.flows.len() as u64 },
        closed: None,
        broken: None,
        caveats,
    };
    let contender = &study.contenders[job.contender];
    let row = Row::new(Identity::new("kernel", study, contender, job.run, seed), &measured);
    let every = recording.flows.len().div_ceil(SAMPLES).max(1);
    let samples = recording.flows.iter().step_by(every).map(|f| Sample {
        time_s: since(Instant(f.now_ns)).as_secs_f64(),
        flow: 0,
        cwnd_bytes: u64::from(f.cwnd) * u64::from(f.mss),
        ssthresh_bytes: (f.ssthresh < 0x7fff_ffff).then(|| u64::from(f.ssthresh) * u64::from(f.mss)),
        inflight_bytes: inflight(f),
        rtt_s: (f.srtt_us > 0).then(|| f64::from(f.srtt_us) / 1e6),
        delivered_bytes: f.acked_bytes,
        queue_bytes: None,
        pacing_bps: Some(f.pacing_rate.saturating_mul(8)),
        phase: f
            .why
            .filter(|_| c.name != "bbr")
            .map(|why| if why == ExitReason::None { "slow-start" } else { "avoidance" }.into()),
        limited_by: None,
        gauges: BTreeMap::new(),
    });
    let events = events(report, study.path.links().len() > 1, on_path);
    let trace = Trace { samples: samples.collect(), events, ..Trace::default() };
    Outcome { job, row, trace, measured }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow((now_ns, state, ssthresh, retransmitted): (u64, u32, u32, u32)) -> Flow {
        let zeros = Flow::read(&[0; 256]).expect("a record");
        Flow { now_ns, ssthresh, retransmitted, state, ..zeros }
    }

    fn first(records: &[(u64, u32, u32, u32)]) -> Option<u64> {
        let flows: Vec<Flow> = records.iter().copied().map(flow).collect();
        first_loss(&flows).map(|f| f.now_ns)
    }

    const NONE: u32 = u32::MAX;

    #[test]
    fn a_recovery_that_was_undone_is_no_loss() {
        assert_eq!(first(&[(1, 0, NONE, 0), (2, 3, 7, 1), (3, 0, NONE, 1), (4, 1, NONE, 1)]), None);
        assert_eq!(
            first(&[(1, 0, NONE, 0), (2, 3, 7, 1), (3, 0, NONE, 1), (4, 3, 9, 2), (5, 0, 9, 2)]),
            Some(4)
        );
        assert_eq!(first(&[(1, 0, NONE, 0), (2, 4, 7, 1), (3, 0, 7, 1)]), Some(2));
        // Not over at the end.
        assert_eq!(first(&[(1, 0, NONE, 0), (2, 3, 7, 1)]), Some(2));
    }

    #[test]
    fn a_probe_is_no_loss_unless_it_repaired_one() {
        assert_eq!(first(&[(1, 0, NONE, 0), (2, 0, NONE, 1), (3, 0, NONE, 1)]), None);
        assert_eq!(first(&[(1, 0, NONE, 0), (2, 2, 7, 1), (3, 0, 7, 1)]), Some(2));
    }
}
