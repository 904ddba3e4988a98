//! Starts a guest, waits for its end and reads its answer.

use crate::error::GuestError;
use crate::order::{ANSWER, Answer, ORDER, Order};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process_group, pidfd_open, prlimit,
    set_parent_process_death_signal,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use slowstart_files::{MOST_REPORT, TemporaryFolder, read_kernel};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

/// The date in every guest, in nanoseconds since 1970.
const DATE: &str = "1700000000000000000";
/// How often the wish to stop is asked for.
const ASKED: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// A guest that used no processor time for so many of these never will: two minutes.
const PATIENCE: u32 = 600;
/// Lines of the console that an error shows.
const SHOWN: usize = 6;

/// How guests are started.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// The kernel.
    pub kernel: PathBuf,
    /// The program that is the first process of a guest: this one.
    pub program: PathBuf,
    /// Processor time that each process of a guest may use, in seconds.
    pub cpu_s: u64,
}

impl Host {
    /// Runs a guest with `memory` MiB. `stop` is asked while it runs.
    ///
    /// # Errors
    /// If it cannot be started, does not answer, uses too much processor time, or `stop` returned true.
    pub(crate) fn run(
        &self,
        order: &Order,
        memory: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Answer, GuestError> {
        let folder = TemporaryFolder::create("guest")
            .map_err(GuestError::io(format!("make a folder in {}", std::env::temp_dir().display())))?;
        let at = folder.path();
        let what = || format!("write to {}", at.display());
        let text = serde_json::to_vec(order).map_err(GuestError::io(what()))?;
        fs::write(at.join(ORDER), text).map_err(GuestError::io(what()))?;
        // A kernel seeds its random numbers with its command line, so that this has no name of a folder: a guest finds it as the
        // working directory of its own process on the host.
        symlink(&self.program, at.join("init")).map_err(GuestError::io(what()))?;
        let console = at.join("console");
        let out = File::create(&console).map_err(GuestError::io(what()))?;
        let err = out.try_clone().map_err(GuestError::io(what()))?;
        let mut command = Command::new(&self.kernel);
        command
            .args([
                "rootfstype=hostfs",
                "ro",
                "time-travel=inf-cpu",
                "con=null",
                "con0=null,fd:1",
                "quiet",
                "panic=-1",
            ])
            .arg(format!("time-travel-start={DATE}"))
            .arg(format!("mem={memory}M"))
            .args(["uml_dir=./", "umid=guest", "init=/proc/self/cwd/init", "--", "guest"])
            .current_dir(at)
            .env_clear()
            // Without it the kernel panics. It has its own files there.
            .env("HOME", at)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            // All its processes end together.
            .process_group(0);
        end_with_this_process(&mut command);
        let mut child =
            command.spawn().map_err(GuestError::io(format!("start {}", self.kernel.display())))?;
        let slot = Slot::take();
        let ended = self.wait(&mut child, &slot, stop);
        // What it started and did not end.
        if let Some(pid) = Pid::from_raw(child.id() as i32) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let why = match (ended, child.wait()) {
            (Err(e), _) => return Err(e),
            (Ok(Some(why)), _) => why,
            (Ok(None), Ok(status)) => self.how(status),
            (Ok(None), Err(e)) => return Err(GuestError::io("wait for the guest")(e)),
        };
        let answer = slowstart_files::read(&at.join(ANSWER), MOST_REPORT).unwrap_or_default();
        match answer.ends_with(b"\n").then(|| serde_json::from_slice(&answer)) {
            Some(Ok(Answer::Failed(why))) => Err(GuestError::Refused(why)),
            Some(Ok(answer)) => Ok(answer),
            _ => Err(GuestError::Ended { why, console: last_lines(&console) }),
        }
    }

    /// Waits until the guest ends. Returns why it was not waited for longer.
    fn wait(
        &self,
        child: &mut Child,
        slot: &Slot,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<String>, GuestError> {
        let failed = || GuestError::io("wait for the guest");
        let pid = Pid::from_child(child);
        // Its processes inherit both.
        let limit = Rlimit { current: Some(self.cpu_s), maximum: Some(self.cpu_s) };
        prlimit(Some(pid), Resource::Cpu, limit).map_err(failed())?;
        if let Some(cpu) = slot.cpu {
            let mut set = CpuSet::new();
            set.set(cpu);
            // Elsewhere it takes longer, and does the same.
            let _ = sched_setaffinity(Some(pid), &set);
        }
        let fd = pidfd_open(pid, PidfdFlags::empty()).map_err(failed())?;
        let (mut used, mut unchanged) = (None, 0);
        loop {
            match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&ASKED)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(None),
                Err(e) => return Err(failed()(e)),
            }
            if stop() {
                return Err(GuestError::Stopped);
            }
            let now = cpu_of_group(pid);
            unchanged = if now == used { unchanged + 1 } else { 0 };
            used = now;
            if unchanged > PATIENCE {
                return Ok(Some("it hangs, and used no processor time for two minutes".to_string()));
            }
        }
    }

    /// In words, how the process of a guest ended.
    fn how(&self, status: ExitStatus) -> String {
        use std::os::unix::process::ExitStatusExt;
        match status.signal() {
            Some(9 | 24) => {
                format!("it used {} s of processor time, the most it may (the setting cpu)", self.cpu_s)
            }
            _ => status.to_string(),
        }
    }
}

/// A guest ends when the thread that waits for it does, also if this process is killed.
#[allow(unsafe_code, reason = "what runs between fork and exec is unsafe; this is one system call")]
fn end_with_this_process(command: &mut Command) {
    let ends = || set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into);
    // SAFETY: the closure makes one system call; it neither allocates nor locks.
    unsafe { command.pre_exec(ends) };
}

/// Processor time of the processes of a guest, in ticks, as text that changes when they run.
fn cpu_of_group(pid: Pid) -> Option<String> {
    let stat = read_kernel(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // After the name: utime, stime, cutime, cstime are fields 14 to 17 of all.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11).take(4).collect();
    Some(fields.join(" "))
}

/// The last lines that a guest printed, or the first of its panic.
fn last_lines(console: &Path) -> String {
    let read = || {
        let mut file = File::open(console)?;
        file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(4096)))?;
        slowstart_files::head(file, 4096)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let printable = |line: &str| line.chars().filter(|c| !c.is_control()).take(160).collect::<String>();
    let lines: Vec<String> = text.lines().map(printable).filter(|l| !l.trim().is_empty()).collect();
    // A kernel that panics says why first, and then where it was.
    let panic = lines.iter().rposition(|l| l.contains("Kernel panic"));
    let from = panic.unwrap_or(lines.len().saturating_sub(SHOWN));
    lines[from..].iter().take(SHOWN).flat_map(|l| ["\n  ", l.trim()]).collect()
}

/// A processor for one guest: system calls of a guest are switches between its processes, which cost a third on one processor
/// of what they cost on two.
struct Slot {
    cpu: Option<usize>,
}

/// How many guests of this process are on each processor.
static TAKEN: Mutex<Vec<(usize, u32)>> = Mutex::new(Vec::new());

impl Slot {
    fn take() -> Self {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.is_empty() {
            let allowed = sched_getaffinity(None).unwrap_or_default();
            taken.extend((0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).map(|cpu| (cpu, 0)));
        }
        let least = taken.iter_mut().min_by_key(|(_, n)| *n);
        Self {
            cpu: least.map(|(cpu, n)| {
                *n += 1;
                *cpu
            }),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, n)) = taken.iter_mut().find(|(cpu, _)| Some(*cpu) == self.cpu) {
            *n -= 1;
        }
    }
}
