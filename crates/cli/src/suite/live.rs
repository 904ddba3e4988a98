//! A whole stack in real time: its commands at the two ends of an emulated path.
#![allow(clippy::disallowed_methods, reason = "a stack runs in real time")]

use super::folder::Folder;
use super::inside::{Inside, inside, newest};
use super::interop::{Endpoint, SIMULATOR_PORT, UNPREPARED, UNSUPPORTED};
use super::stack::Commands;
use crate::emulate::{end_server, wait_for_listener};
use crate::interrupt::{Interrupt, Interrupted};
use crate::output::tell;
use anyhow::Result;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use slowstart::units::{Bytes, Span};
use slowstart_files::read_kernel;
use slowstart_linux::emulate::{Emulation, INVALID, SERVER, Seen, enter_user_namespace, seen};
use slowstart_linux::{Beside, Check, KERNEL_CONTROLS, KernelError};
use slowstart_sim::app;
use slowstart_sim::engine::Direction;
use slowstart_study::engines::{EngineError, Refusal};
use slowstart_study::measures::Measure;
use slowstart_study::scenario::{CompetingFlow, Study};
use slowstart_study::stats::median;
use slowstart_suite::measure::Observed;
use slowstart_suite::run::{Settings, Stack, run_stack};
use slowstart_suite::scenario::Reference;
use slowstart_suite::{Report, Suite, SuiteError};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

/// Time between two checks of the fetch.
const POLL: Duration = Duration::from_millis(5);
/// Flows beside the stack last this much longer than a transfer may.
const AFTER: Span = Span::secs(10);
/// Where the kernel has the congestion control of a socket that names none.
const CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Bytes of a command's output that an error repeats.
const OUTPUT: usize = 600;

/// Bytes of a full IP packet on the emulated path: the unit in which losses are counted.
const FULL: f64 = 1500.0;
/// IP packets of a reference: at least those of a QUIC datagram of 1,200 bytes.
const LEAST_PACKET: u32 = 1228;
/// Bytes of the headers of IPv4 and TCP with timestamps.
const HEADERS: u64 = 52;

/// Judges a stack.
pub(super) fn run(suite: &Suite, commands: &Commands, seed: u64, runs: Option<u32>) -> Result<Report> {
    let in_user_namespace = enter_user_namespace()?;
    if in_user_namespace {
        commands.endpoint.as_ref().map_or(Ok(()), Endpoint::check_owner)?;
    }
    let name = commands.name.clone().unwrap_or_else(|| program(&commands.serve));
    let settings = Settings { startups: vec![name], avoidance: "cubic".into(), seed, runs };
    let mut live = Live {
        commands,
        interrupt: Interrupt::record()?,
        folder: Folder::create("suite")?,
        notes: Vec::new(),
        before: Vec::new(),
        like: None,
        default_control: None,
        logged_control: None,
        paced_by_stamps: None,
        unsupported: None,
    };
    let report = run_stack(suite, &settings, &mut live, |s| tell(&s.name));
    let mut report = report.map_err(|e| ended(e, live.interrupt.signal()))?;
    let mut notes = vec![
        commands.endpoint.as_ref().map_or_else(
            || format!("A whole stack on the real clock: `{}`, fetched by `{}`.", commands.serve, commands.fetch),
            |e| {
                format!(
                    "A whole stack on the real clock: server and client of {}, by the contract of the QUIC interop runner, test case {}.",
                    e.name, e.testcase
                )
            },
        ),
        "Limits are what the kernel's Reno (`standard`: slow start of RFC 5681) and its CUBIC (`hystart`) do in the same place, run \
         by run, with packets of the stack's size and the bytes that the stack's packets carried, up to 3 % and 2 kB more than the \
         file; what the link does not see of them is the simulator's."
            .into(),
        "Completion is from the first large packet after the handshake to the last. Lost packets are the lost bytes of IP packets, in \
         packets of 1,500 bytes."
            .into(),
    ];
    if let Some(control) = &live.default_control {
        notes.push(format!("The server's sockets of TCP that name no congestion control have {control}."));
    }
    if live.paced_by_stamps == Some(false) {
        notes.push(
            "This kernel has no fq (sch_fq): pacing by SO_TXTIME does not act, and packets leave when they are handed over.".into(),
        );
    }
    if in_user_namespace {
        notes.push("Both ends ran without root, in a user namespace.".into());
    }
    if commands.warm_up {
        notes.push("Each run followed a fetch at the server's own address.".into());
    }
    notes.append(&mut report.notes);
    report.notes = notes;
    report.stack_version.clone_from(&commands.version);
    report.congestion_control = commands.control.clone().or(live.logged_control);
    Ok(report)
}

/// The name of the program that the last command of a shell's line runs.
fn program(line: &str) -> String {
    let line = line.trim_end_matches([' ', '\n', ';', '&']);
    let last = line.rsplit("&&").next().and_then(|l| l.rsplit([';', '\n']).next()).unwrap_or(line);
    let before = |word: &&str| ["exec", "env"].contains(word) || word.contains('=');
    let word = last.split_whitespace().find(|w| !before(w)).unwrap_or("stack");
    Path::new(word).file_name().map_or(word.into(), |n| n.to_string_lossy().into_owned())
}

struct Live<'a> {
    commands: &'a Commands,
    interrupt: Interrupt,
    folder: Folder,
    /// What a reader should know of the scenario, and of how many of its runs.
    notes: Vec<(String, u32)>,
    /// Seconds until the first large packet, in each run of the scenario.
    before: Vec<f64>,
    /// What the references are to send, by the run of the stack.
    like: Option<Like>,
    default_control: Option<String>,
    logged_control: Option<String>,
    /// Whether the server's device releases packets by their stamps.
    paced_by_stamps: Option<bool>,
    /// Why the image runs no scenario.
    unsupported: Option<String>,
}

/// What a stack sent for a file.
#[derive(Copy, Clone)]
struct Like {
    /// Bytes of its full IP packets.
    packet: u32,
    /// Bytes of payload that TCP has in as many packets.
    bytes: u64,
}

impl Like {
    fn of(s: &Seen, size: u64) -> Self {
        let packet = s.largest.clamp(LEAST_PACKET, FULL as u32);
        let carried = s.bulk * (u64::from(packet) - HEADERS) / u64::from(packet);
        // Headers of a protocol scale with the file; a stack that sends more than that is not excused.
        Self { packet, bytes: carried.clamp(size, size + size * 3 / 100 + 2000) }
    }
}

fn failed(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> EngineError {
    EngineError::Failed(why.into())
}

/// The kernel's control that a flow of a suite stands for.
fn control(f: &CompetingFlow) -> Option<&'static str> {
    if f.direction != Direction::Download || f.drawn || !matches!(f.app, app::Kind::Bulk { .. }) {
        return None;
    }
    match (&f.contender.startup_name[..], f.contender.avoidance_name.as_deref()) {
        ("hystart", Some("cubic")) => Some("cubic"),
        ("standard", Some("reno")) => Some("reno"),
        ("bbr", _) => Some("bbr"),
        _ => None,
    }
}

/// True if the running kernel has it.
fn has(control: &str) -> bool {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = read_kernel(file).unwrap_or_default();
    KERNEL_CONTROLS.contains(&control) && available.split_whitespace().any(|c| c == control)
}

impl Stack for Live<'_> {
    fn engine(&self) -> String {
        format!("emulated path, Linux {}", Check::new().release)
    }

    fn unable(&self, study: &Study) -> Option<String> {
        if self.unsupported.is_some() {
            return self.unsupported.clone();
        }
        let knobs = study.profile_label.split(',').skip(1).find(|k| !k.starts_with("ecn="));
        if study.path.proxy().is_some() {
            return Some("the emulated path has no proxy".into());
        }
        if !study.is_one_bulk() || study.size.is_none() {
            return Some("the stack fetches one file".into());
        }
        if let Some(knob) = knobs {
            return Some(format!("{knob}: the stack has its own settings"));
        }
        study.against.iter().find_map(|f| {
            let label = &f.contender.label;
            match control(f) {
                None => Some(format!("{label}: beside a stack only the kernel's CUBIC, Reno and BBR run")),
                Some(c) => (!has(c)).then(|| format!("{c}: this kernel has none (modprobe tcp_{c})")),
            }
        })
    }

    fn run(&mut self, study: &Study, run: u32) -> Result<Observed, EngineError> {
        let size = study.size.unwrap_or_default();
        self.like = None;
        self.folder.file(size).map_err(failed)?;
        let began = SystemTime::now();
        let emulation = self.emulation(study, run)?;
        let ended = self.transfer(study, &emulation, size)?;
        let control = Emulation::in_namespace(emulation.server(), || Ok(read_kernel(CONTROL)))?;
        self.default_control = Some(control.map_err(failed)?.trim().to_string());
        let report = emulation.stop()?;
        let s = seen(&report, &ended.beside);
        let bytes = s.as_ref().map_or(0, |s| s.bytes);
        // A path that was late counts its bytes all the same.
        if ended.fetch == Fetch::Done && bytes < size {
            return Err(failed(format!(
                "--fetch {:?}: ended well, but found {bytes} bytes on the path, expected at least the {size} of the file",
                self.commands.fetch
            )));
        }
        if !report.valid() {
            self.note(INVALID);
            return Ok(Observed::late());
        }
        // A program that failed shows nothing of its startup.
        if ended.fetch == Fetch::Failed {
            return Ok(Observed::default());
        }
        let Some(s) = s else {
            self.note("no file was sent in the time of the scenario.");
            return Ok(Observed::default());
        };
        // Headers and repetitions count too, so that these bytes do not show that the file was whole.
        if ended.fetch == Fetch::Unfinished && bytes >= size {
            self.note(format!(
                "the fetch did not end, and whether it had the whole file is not known: at least the file's {size} bytes arrived."
            ));
            return Ok(Observed::default());
        }
        self.like = Some(Like::of(&s, size));
        self.before.push(s.before.as_secs_f64());
        let qlog = self.commands.qlog.as_deref().and_then(|dir| newest(dir, began));
        let inside = match qlog.map(|file| inside(&file)).transpose() {
            // Nobody asked for the log that an image writes.
            Err(_) if self.commands.endpoint.as_ref().is_some_and(Endpoint::has_own_qlog) => {
                self.note("the server wrote a qlog that cannot be read.");
                Inside::default()
            }
            inside => inside?.unwrap_or_default(),
        };
        if let Some((at, window)) = inside.exit.filter(|_| run == 0) {
            self.note(format!(
                "by its qlog it left slow start after {at:.3} s with a window of {window} bytes."
            ));
        }
        if inside.exit.is_some() && !inside.certain {
            self.note("the exit by its qlog is not certain.");
        }
        if let Some(why) = inside.withheld {
            self.note(why);
        }
        self.logged_control = inside.control.clone().or(self.logged_control.take());
        Ok(observed(study, &s, ended.fetch == Fetch::Done, size, &inside))
    }

    fn reference(&mut self, r: Reference, study: &Study, run: u32) -> Result<Observed, EngineError> {
        // Both are in every kernel, so that the limits do not depend on what a machine can load.
        let control = match r {
            Reference::HyStart => "cubic",
            Reference::Standard => "reno",
        };
        if !has(control) {
            self.note(format!(
                "this kernel has no {control}: limits that refer to {} are unknown.",
                r.name()
            ));
            return Ok(Observed::default());
        }
        let size = study.size.unwrap_or_default();
        let (packet, bytes) = self.like.map_or((None, size), |l| (Some(l.packet), l.bytes));
        let emulation = self.emulation(study, run)?;
        let beside = self.beside(study, &emulation)?;
        let interrupted = || self.interrupt.signal().is_some();
        let flow = Beside::start(
            &emulation,
            control,
            Span::ZERO,
            study.duration,
            Some(bytes),
            packet,
            &interrupted,
        )?;
        while !flow.is_over() {
            self.sleep(Span::millis(5))?;
        }
        let done = flow.received() >= bytes;
        let flows: Vec<[u32; 2]> = beside.iter().map(|b| b.flows).collect();
        drop((flow, beside));
        let report = emulation.stop()?;
        if !report.valid() {
            self.note(format!("{}: {INVALID}", r.name()));
            return Ok(Observed::late());
        }
        Ok(seen(&report, &flows)
            .map_or_else(Observed::default, |s| observed(study, &s, done, size, &Inside::default())))
    }

    fn notes(&mut self, runs: u32) -> Vec<String> {
        let told = std::mem::take(&mut self.notes).into_iter();
        let mut all: Vec<String> = told.map(|(note, n)| format!("{n} of {runs} runs: {note}")).collect();
        let before = std::mem::take(&mut self.before);
        if let Some(m) = median(&before) {
            all.push(format!(
                "{} of {runs} runs: the server's first large packet after the handshake left {:.3} s after the connection's first \
                 packet (median), which is no part of completion.",
                before.len(),
                m.mid
            ));
        }
        all
    }
}

/// How a fetch ended.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Fetch {
    /// With status 0.
    Done,
    /// With another status.
    Failed,
    /// Not in the time of the scenario.
    Unfinished,
}

/// How a transfer ended.
struct Ended {
    fetch: Fetch,
    /// The packets of flows beside it.
    beside: Vec<[u32; 2]>,
}

impl Live<'_> {
    /// Notes a sentence on a run.
    fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        match self.notes.iter_mut().find(|n| n.0 == text) {
            Some(n) => n.1 += 1,
            None => self.notes.push((text, 1)),
        }
    }

    /// The path of a run.
    fn emulation(&mut self, study: &Study, run: u32) -> Result<Emulation, EngineError> {
        let emulation = Emulation::start(&study.path, study.run_seed(run), true)?;
        emulation.set_ecn(study.profile.ecn)?;
        self.paced_by_stamps = Some(emulation.releases_by_stamps());
        Ok(emulation)
    }

    fn command(&self, text: &str, emulation: &Emulation, size: u64, log: &Path) -> std::io::Result<Command> {
        let log = File::create(log)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", text])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .env("SLOWSTART_SERVER", SERVER)
            .env("SLOWSTART_SERVER_NS", emulation.server())
            .env("SLOWSTART_FILES", self.folder.path())
            .env("SLOWSTART_SIZE", size.to_string());
        Ok(command)
    }

    fn transfer(&mut self, study: &Study, emulation: &Emulation, size: u64) -> Result<Ended, EngineError> {
        let logs = ["serve.log", "fetch.log"].map(|n| self.folder.path().join(n));
        let mut serve = self.command(&self.commands.serve, emulation, size, &logs[0]).map_err(failed)?;
        let mut server = Emulation::spawn(emulation.server(), &mut serve)?;
        if let Err(why) = wait_for_listener(&self.commands.serve, &mut server, emulation, &self.interrupt) {
            let status = server.try_wait().map_err(failed)?.and_then(|s| s.code());
            self.refused("server", status, &logs[0])?;
            return Err(failed(format!("{why:#}: {}", end_of(&logs[0]))));
        }
        if self.commands.warm_up {
            // At the server's end its address is local: nothing of this passes the path.
            let mut fetch = self.command(&self.commands.fetch, emulation, size, &logs[1]).map_err(failed)?;
            let _simulator = self.simulator(emulation.server())?;
            let mut client = Emulation::spawn(emulation.server(), &mut fetch)?;
            let status = self.wait(&mut client, study.duration, emulation)?;
            self.refused("client", status.and_then(|s| s.code()), &logs[1])?;
            if !status.is_some_and(|s| s.success()) {
                let ended = status.map_or("did not end".into(), |s| format!("ended with {s}"));
                let why = end_of(&logs[1]);
                return Err(failed(format!("--warm-up: {:?} {ended}: {why}", self.commands.fetch)));
            }
        }
        let beside = self.beside(study, emulation)?;
        let mut fetch = self.command(&self.commands.fetch, emulation, size, &logs[1]).map_err(failed)?;
        let _simulator = self.simulator(emulation.client())?;
        let mut client = Emulation::spawn(emulation.client(), &mut fetch)?;
        let status = self.wait(&mut client, study.duration, emulation)?;
        let flows = beside.iter().map(|b| b.flows).collect();
        drop(beside);
        end_server(&mut server).map_err(|e| failed(e.to_string()))?;
        self.refused("client", status.and_then(|s| s.code()), &logs[1])?;
        match status.map(|s| (s, s.code())) {
            Some((_, Some(126 | 127))) => {
                Err(failed(format!("--fetch {:?}: cannot run: {}", self.commands.fetch, end_of(&logs[1]))))
            }
            Some((s, _)) if !s.success() => {
                self.note(format!("the fetch ended with {s}: {}", end_of(&logs[1])));
                Ok(Ended { fetch: Fetch::Failed, beside: flows })
            }
            Some(_) => Ok(Ended { fetch: Fetch::Done, beside: flows }),
            None => Ok(Ended { fetch: Fetch::Unfinished, beside: flows }),
        }
    }

    /// Where the clients of images wait for the runner's simulator, they find one in this namespace.
    fn simulator(&self, ns: &str) -> Result<Option<TcpListener>, EngineError> {
        if self.commands.endpoint.is_none() {
            return Ok(None);
        }
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, SIMULATOR_PORT));
        let listener = Emulation::in_namespace(ns, || Ok(listen()))?;
        listener.map(Some).map_err(failed)
    }

    /// What the status of an end of an image means besides success and failure.
    fn refused(&mut self, end: &str, status: Option<i32>, log: &Path) -> Result<(), EngineError> {
        let Some(endpoint) = &self.commands.endpoint else { return Ok(()) };
        match status {
            Some(UNPREPARED) => Err(failed(format!(
                "--interop: the root of {} cannot be prepared: {}",
                endpoint.name,
                end_of(log)
            ))),
            Some(UNSUPPORTED) => {
                let why = format!(
                    "unsupported: the {end} of {} does not have the test case {} (status {UNSUPPORTED})",
                    endpoint.name, endpoint.testcase
                );
                self.unsupported = Some(why.clone());
                let (key, instead) = ("testcase", "sim".into());
                Err(Refusal { key, engine: endpoint.name.clone(), why, instead }.into())
            }
            _ => Ok(()),
        }
    }

    /// Starts the flows beside, and waits until those are there that come before.
    fn beside(&self, study: &Study, emulation: &Emulation) -> Result<Vec<Beside>, EngineError> {
        let interrupted = || self.interrupt.signal().is_some();
        let before = study.against.iter().map(|f| f.before).max().unwrap_or(Span::ZERO);
        let most = before + study.duration + AFTER;
        let start = |f: &CompetingFlow| {
            let delay = before - f.before + f.after;
            Beside::start(emulation, control(f).unwrap_or("cubic"), delay, most, None, None, &interrupted)
        };
        let flows = study.against.iter().map(start).collect::<Result<Vec<Beside>, KernelError>>()?;
        self.sleep(before)?;
        Ok(flows)
    }

    /// Sleeps so long, unless a signal comes.
    fn sleep(&self, time: Span) -> Result<(), EngineError> {
        let end = std::time::Instant::now() + Duration::from_nanos(time.0);
        while std::time::Instant::now() < end {
            if self.interrupt.signal().is_some() {
                return Err(EngineError::Stopped);
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits for the fetch; ends it when its time is over, and then returns `None`.
    fn wait(
        &self,
        client: &mut Child,
        most: Span,
        emulation: &Emulation,
    ) -> Result<Option<ExitStatus>, EngineError> {
        let end = std::time::Instant::now() + Duration::from_nanos(most.0);
        loop {
            if let Some(status) = client.try_wait().map_err(failed)? {
                return Ok(Some(status));
            }
            let stopped = self.interrupt.signal().is_some();
            if stopped || !emulation.is_running() || std::time::Instant::now() > end {
                let _ = killpg(Pid::from_raw(client.id().cast_signed()), Signal::SIGKILL);
                let _ = client.wait();
                return if stopped { Err(EngineError::Stopped) } else { Ok(None) };
            }
            thread::sleep(POLL);
        }
    }
}

/// The end of a command's output, which may be of any length, in one line.
fn end_of(log: &Path) -> String {
    const MOST: u64 = 64 * OUTPUT as u64;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(MOST)))?;
        slowstart_files::head(file, MOST)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let from = line.char_indices().rev().nth(OUTPUT).map_or(0, |(i, _)| i);
    if line.is_empty() { "it printed nothing".into() } else { line[from..].to_string() }
}

fn observed(study: &Study, s: &Seen, done: bool, size: u64, inside: &Inside) -> Observed {
    let mut all = Observed::default();
    let completion = if done { s.last.as_secs_f64() } else { f64::INFINITY };
    all.set(Measure::Completion, Some(completion));
    let goodput = if completion.is_finite() { size as f64 * 8e-6 / completion } else { 0.0 };
    all.set(Measure::Goodput, Some(goodput));
    let facts = study.path.facts();
    let in_bdp = |flight: Bytes| flight.0 as f64 / facts.bdp.0.max(1) as f64;
    all.set(Measure::PeakInflight, inside.peak_inflight.map(in_bdp));
    let lost = |until: f64| {
        let those = s.drops.iter().filter(|(at, _)| at.as_secs_f64() < until);
        // A sum of floats that has no terms is -0.
        those.map(|(_, bytes)| u64::from(*bytes)).sum::<u64>() as f64 / FULL
    };
    all.set(Measure::Lost, Some(lost(f64::INFINITY)));
    all.set(Measure::QueueDelay, Some(s.queue_delay.as_secs_f64()));
    // A log of the server begins when the client's first packet arrives, and the link's times with the first large one.
    let offset = facts.base_rtt.as_secs_f64() / 2.0 - s.before.as_secs_f64();
    all.set(Measure::StartupLost, inside.exit.map(|(at, _)| lost(at + offset)));
    let others = s.others.as_ref().filter(|_| !study.against.is_empty());
    all.set(Measure::OthersLost, others.map(|o| o.lost_packets as f64));
    all.set(Measure::OthersDip, others.and_then(|o| o.goodput_dip));
    all.set(Measure::OthersDelay, others.and_then(|o| o.delay_p99_s));
    all
}

/// The error of a suite that did not finish; a signal is the cause of a run that it stopped.
fn ended(e: SuiteError, signal: Option<u8>) -> anyhow::Error {
    match (&e, signal) {
        (SuiteError::Study { why, .. }, Some(signal)) if matches!(**why, EngineError::Stopped) => {
            Interrupted { signal, finished: None }.into()
        }
        _ => e.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::scenario::StudyText;

    #[test]
    fn a_reference_sends_what_the_stack_s_packets_carried() {
        let seen = |largest: u32, bulk: u64| Seen {
            before: Span::ZERO,
            last: Span::ZERO,
            bytes: bulk,
            bulk,
            largest,
            drops: Vec::new(),
            queue_delay: Span::ZERO,
            others: None,
        };
        // 86 QUIC packets of 1,200 bytes: as many of TCP, with 1,176 bytes each.
        let quic = Like::of(&seen(1228, 86 * 1228), 100_000);
        assert_eq!((quic.packet, quic.bytes), (1228, 86 * 1176));
        // A stack that sends everything twice is held to the file, and small packets to QUIC's least.
        let twice = Like::of(&seen(700, 200_000), 100_000);
        assert_eq!((twice.packet, twice.bytes), (1228, 105_000));
        assert_eq!(Like::of(&seen(1500, 50_000), 100_000).bytes, 100_000);
    }

    /// A log begins half a round trip before the link sees the client's first packet arrive, and the link's times
    /// with the first large packet.
    #[test]
    fn losses_of_the_startup_are_those_before_the_exit_of_the_log() {
        let text = StudyText {
            path: "rate=20Mbit rtt=40ms queue=1bdp".into(),
            startups: vec!["standard".into()],
            ..StudyText::default()
        };
        let study = Study::check(&text, None).expect("a study");
        let at = |ms: u64| (Span::millis(ms), 1500);
        let s = Seen {
            before: Span::millis(60),
            last: Span::millis(900),
            bytes: 1_100_000,
            bulk: 1_100_000,
            largest: 1500,
            drops: vec![at(100), at(200), at(300)],
            queue_delay: Span::ZERO,
            others: None,
        };
        let lost = |exit: Option<(f64, u64)>| {
            let inside = Inside { exit, ..Inside::default() };
            observed(&study, &s, true, 1_000_000, &inside).get(Measure::StartupLost)
        };
        // 0.245 s of the log are 0.205 s of the link.
        assert_eq!(lost(Some((0.245, 90_000))), Some(2.0));
        assert_eq!(lost(Some((0.235, 90_000))), Some(1.0));
        assert_eq!(lost(None), None, "an exit that is withheld says nothing of losses");
    }

    #[test]
    fn a_stack_is_named_after_its_program() {
        for (line, name) in [
            ("python3 -m http.server 80 -d \"$SLOWSTART_FILES\"", "python3"),
            ("QLOGDIR=/tmp/qlog exec /opt/go/example -bind 0.0.0.0:443", "example"),
            ("cd \"$SLOWSTART_FILES\" && /opt/server ./", "server"),
            ("/opt/server ./ >/dev/null 2>&1 &", "server"),
            ("A=1", "stack"),
        ] {
            assert_eq!(program(line), name, "{line}");
        }
    }
}
