//! A whole stack in real time: its commands at the two ends of an emulated path.
#![allow(clippy::disallowed_methods, reason = "a stack runs in real time")]

use super::stack::Commands;
use crate::emulate::{end_server, wait_for_listener};
use crate::interrupt::{Interrupt, Interrupted};
use crate::output::tell;
use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use slowstart::units::{Bytes, Span};
use slowstart_linux::emulate::{Emulation, INVALID, SERVER, Seen, seen};
use slowstart_linux::{Beside, Check, Held, KERNEL_CONTROLS, KernelError, Spec, load_as};
use slowstart_replay::analysis::Keep;
use slowstart_replay::open::open;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_replay::transfer::ExitClass;
use slowstart_sim::app;
use slowstart_sim::engine::Direction;
use slowstart_study::engines::EngineError;
use slowstart_study::scenario::{CompetingFlow, Study};
use slowstart_suite::measure::{Measure, Observed};
use slowstart_suite::run::{Settings, Stack, run_stack};
use slowstart_suite::scenario::Reference;
use slowstart_suite::{Report, Suite, SuiteError};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
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

/// Judges a stack.
pub(super) fn run(suite: &Suite, commands: &Commands, seed: u64, runs: Option<u32>) -> Result<Report> {
    let settings =
        Settings { startups: vec![program(&commands.serve)], avoidance: "cubic".into(), seed, runs };
    let mut live = Live {
        commands,
        interrupt: Interrupt::record()?,
        folder: Folder::create()?,
        standard: standard(),
        notes: Vec::new(),
    };
    let report = run_stack(suite, &settings, &mut live, |s| tell(&s.name));
    let mut report = report.map_err(|e| ended(e, live.interrupt.signal()))?;
    report.notes = vec![
        format!("A whole stack on the real clock: `{}`, fetched by `{}`.", commands.serve, commands.fetch),
        "Limits are what the kernel's standard slow start and its CUBIC do in the same place, run by run; what the link does not see \
         of them is the simulator's."
            .into(),
        "Completion is when the last large packet arrived, since the first packet of the connection.".into(),
    ];
    live.notes.dedup();
    report.notes.append(&mut live.notes);
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

/// Loads standard slow start into the kernel, if that is possible here.
fn standard() -> Option<Held> {
    let spec = Spec::read("standard", "cubic").ok()?;
    load_as(&spec, format!("ss_suite_{:x}", std::process::id())).ok()
}

/// A folder for the files that are served, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self> {
        // The folder of temporary files is everybody's: what has the name already may be a link of another
        // user.
        let mut n = 0;
        loop {
            let name = format!("slowstart-suite-{}-{n}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            match fs::create_dir(&dir) {
                Ok(()) => return Ok(Self(dir)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists && n < 100 => n += 1,
                Err(e) => return Err(e).context(dir.display().to_string()),
            }
        }
    }

    /// Makes the file of this size, of zeros; its name is its size.
    fn file(&self, bytes: u64) -> std::io::Result<()> {
        File::create(self.0.join(bytes.to_string()))?.set_len(bytes)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Live<'a> {
    commands: &'a Commands,
    interrupt: Interrupt,
    folder: Folder,
    /// Standard slow start in the kernel, where it can be loaded.
    standard: Option<Held>,
    notes: Vec<String>,
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
    let available = fs::read_to_string(file).unwrap_or_default();
    KERNEL_CONTROLS.contains(&control) && available.split_whitespace().any(|c| c == control)
}

impl Stack for Live<'_> {
    fn engine(&self) -> String {
        format!("emulated path, Linux {}", Check::new().release)
    }

    fn unable(&self, study: &Study) -> Option<String> {
        let knobs = study.profile_label.split(',').skip(1).find(|k| !k.starts_with("ecn="));
        if study.path.proxy().is_some() {
            return Some("the emulated path has no proxy".into());
        }
        if !matches!(study.app, app::Kind::Bulk { .. }) || study.size.is_none() {
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
        self.folder.file(size).map_err(failed)?;
        let began = SystemTime::now();
        let emulation = Emulation::start(&study.path, study.run_seed(run), true)?;
        emulation.set_ecn(study.profile.ecn)?;
        let ended = self.transfer(study, &emulation, size)?;
        let default = Emulation::in_namespace(emulation.server(), || Ok(fs::read_to_string(CONTROL)))?
            .map_err(failed)?;
        let note =
            format!("The server's sockets of TCP that name no congestion control have {}.", default.trim());
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        let report = emulation.stop()?;
        if !report.valid() {
            self.notes.push(format!("{}: {INVALID}", study.path.name));
        }
        let s = seen(&report, &ended.beside);
        let fetched = s.as_ref().is_some_and(|s| s.bytes >= size);
        if ended.done && !fetched {
            let bytes = s.as_ref().map_or(0, |s| s.bytes);
            return Err(failed(format!(
                "--fetch {:?}: ended well, but found {bytes} bytes on the path, expected at least the {size} of the file",
                self.commands.fetch
            )));
        }
        let qlog = self.commands.qlog.as_deref().and_then(|dir| newest(dir, began));
        let inside = qlog.map(|file| inside(&file)).transpose()?.unwrap_or_default();
        if let Some((at, Some(window))) = inside.exit.filter(|_| run == 0) {
            self.notes.push(format!(
                "{}, first run: by its qlog it left slow start after {at:.3} s with a window of {window} bytes.",
                study.path.name
            ));
        }
        Ok(observed(study, s.as_ref(), ended.done, size, inside))
    }

    fn reference(&mut self, r: Reference, study: &Study, run: u32) -> Result<Observed, EngineError> {
        let control = match (r, &self.standard) {
            (Reference::HyStart, _) => "cubic".to_string(),
            (Reference::Standard, Some(held)) => held.name.clone(),
            (Reference::Standard, None) => {
                self.notes.push(
                    "The kernel cannot load standard slow start; its limits are the simulator's.".into(),
                );
                return Ok(Observed::default());
            }
        };
        let size = study.size.unwrap_or_default();
        let emulation = Emulation::start(&study.path, study.run_seed(run), true)?;
        emulation.set_ecn(study.profile.ecn)?;
        let beside = self.beside(study, &emulation)?;
        let interrupted = || self.interrupt.signal().is_some();
        let flow = Beside::start(&emulation, &control, Span::ZERO, study.duration, Some(size), &interrupted)?;
        while !flow.is_over() {
            self.sleep(Span::millis(5))?;
        }
        let done = flow.received() >= size;
        let flows: Vec<[u32; 2]> = beside.iter().map(|b| b.flows).collect();
        drop((flow, beside));
        let report = emulation.stop()?;
        if !report.valid() {
            self.notes.push(format!("{}: {INVALID}", study.path.name));
        }
        Ok(observed(study, seen(&report, &flows).as_ref(), done, size, Inside::default()))
    }
}

/// How a transfer ended.
struct Ended {
    /// The fetch ended with status 0.
    done: bool,
    /// The packets of flows beside it.
    beside: Vec<[u32; 2]>,
}

impl Live<'_> {
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
            .env("SLOWSTART_FILES", &self.folder.0)
            .env("SLOWSTART_SIZE", size.to_string());
        Ok(command)
    }

    fn transfer(&mut self, study: &Study, emulation: &Emulation, size: u64) -> Result<Ended, EngineError> {
        let logs = ["serve.log", "fetch.log"].map(|n| self.folder.0.join(n));
        let mut serve = self.command(&self.commands.serve, emulation, size, &logs[0]).map_err(failed)?;
        let mut server = Emulation::spawn(emulation.server(), &mut serve)?;
        wait_for_listener(&self.commands.serve, &mut server, emulation, &self.interrupt)
            .map_err(|e| failed(format!("{e:#}: {}", end_of(&logs[0]))))?;
        let beside = self.beside(study, emulation)?;
        let mut fetch = self.command(&self.commands.fetch, emulation, size, &logs[1]).map_err(failed)?;
        let mut client = Emulation::spawn(emulation.client(), &mut fetch)?;
        let status = self.wait(&mut client, study.duration, emulation)?;
        let flows = beside.iter().map(|b| b.flows).collect();
        drop(beside);
        end_server(&mut server).map_err(|e| failed(e.to_string()))?;
        match status.map(|s| (s, s.code())) {
            Some((_, Some(126 | 127))) => {
                Err(failed(format!("--fetch {:?}: cannot run: {}", self.commands.fetch, end_of(&logs[1]))))
            }
            Some((s, _)) if !s.success() => {
                self.notes.push(format!(
                    "{}: the fetch ended with {s}: {}",
                    study.path.name,
                    end_of(&logs[1])
                ));
                Ok(Ended { done: false, beside: flows })
            }
            status => Ok(Ended { done: status.is_some(), beside: flows }),
        }
    }

    /// Starts the flows beside, and waits until those are there that come before.
    fn beside(&self, study: &Study, emulation: &Emulation) -> Result<Vec<Beside>, EngineError> {
        let interrupted = || self.interrupt.signal().is_some();
        let before = study.against.iter().map(|f| f.before).max().unwrap_or(Span::ZERO);
        let most = before + study.duration + AFTER;
        let start = |f: &CompetingFlow| {
            let delay = before - f.before + f.after;
            Beside::start(emulation, control(f).unwrap_or("cubic"), delay, most, None, &interrupted)
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

/// The end of a command's output, in one line.
fn end_of(log: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let from = line.char_indices().rev().nth(OUTPUT).map_or(0, |(i, _)| i);
    if line.is_empty() { "it printed nothing".into() } else { line[from..].to_string() }
}

/// The newest file of a folder that was written since.
fn newest(dir: &Path, since: SystemTime) -> Option<PathBuf> {
    let written = |p: &PathBuf| p.metadata().and_then(|m| m.modified()).ok().filter(|at| *at >= since);
    let all = fs::read_dir(dir).ok()?.flatten().map(|e| e.path()).filter(|p| p.is_file());
    all.filter(|p| written(p).is_some()).max_by_key(written)
}

/// What the link does not see of a transfer, and a qlog may tell.
#[derive(Copy, Clone, Default)]
struct Inside {
    /// When the startup ended, in seconds since the log's first packet, and with which window; infinite if it
    /// did not end.
    exit: Option<(f64, Option<u64>)>,
    /// The most in flight.
    peak_inflight: Option<Bytes>,
}

/// What a qlog tells of its largest transfer.
fn inside(file: &Path) -> Result<Inside, EngineError> {
    let named = |e: &dyn std::fmt::Display| failed(format!("--qlog {}: {e}", file.display()));
    let (kind, input) = open(file).map_err(|e| named(&e))?;
    let mut largest: Option<AnalysedTransfer> = None;
    let mut each = |t: AnalysedTransfer| {
        if largest.as_ref().is_none_or(|l| t.row.bytes > l.row.bytes) {
            largest = Some(t);
        }
    };
    // With snapshots, findings are kept.
    let options = Options { keep: Keep { snapshots: true, ..Keep::default() }, ..Options::default() };
    stream(kind, input, &options, &mut each, &mut |_| ()).map_err(|e| named(&e))?;
    let Some(AnalysedTransfer { row, findings, .. }) = largest else { return Ok(Inside::default()) };
    let none = (row.class == ExitClass::None).then_some((f64::INFINITY, None));
    Ok(Inside {
        exit: row.exit.map(|e| (e.time_s, Some(e.cwnd_bytes))).or(none),
        peak_inflight: findings.map(|f| f.peak_inflight),
    })
}

fn observed(study: &Study, s: Option<&Seen>, done: bool, size: u64, inside: Inside) -> Observed {
    let mut all = Observed::default();
    let completion = s.filter(|_| done).map_or(f64::INFINITY, |s| s.last.as_secs_f64());
    all.set(Measure::Completion, Some(completion));
    let goodput = if completion.is_finite() { size as f64 * 8e-6 / completion } else { 0.0 };
    all.set(Measure::Goodput, Some(goodput));
    let facts = study.path.facts();
    let in_bdp = |flight: Bytes| flight.0 as f64 / facts.bdp.0.max(1) as f64;
    all.set(Measure::PeakFlight, inside.peak_inflight.map(in_bdp));
    let Some(s) = s else { return all };
    all.set(Measure::Lost, Some(s.drops.len() as f64));
    all.set(Measure::QueueDelay, Some(s.queue_delay.as_secs_f64()));
    let in_startup = |exit: f64| s.drops.iter().filter(|at| at.as_secs_f64() < exit).count() as f64;
    // A log of the server begins when the client's first packet arrives.
    let exit = inside.exit.map(|(at, _)| at + facts.base_rtt.as_secs_f64() / 2.0);
    all.set(Measure::StartupLost, exit.map(in_startup));
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
