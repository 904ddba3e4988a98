//! What a test runs and ends again: a cgroup, a trial, and a small file system.

use super::slowstart;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A cgroup, removed on drop.
pub(crate) struct Cgroup(pub(crate) PathBuf);

impl Cgroup {
    pub(crate) fn new(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mut mounts = mounts.lines().map(|l| l.split(' ').collect::<Vec<_>>());
        let root = mounts.find(|m| m.get(2) == Some(&"cgroup2"))?;
        let dir = Path::new(root[1]).join(format!("slowstart-{}-{name}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        Some(Self(dir))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The congestion controls that the kernel has.
pub(crate) fn controls() -> Vec<String> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = fs::read_to_string(file).expect("Linux");
    text.split_whitespace().map(ToString::to_string).collect()
}

/// True if the controls that this process loaded for the arms of a trial become present, or absent, within
/// ten seconds.
pub(crate) fn arms_become(present: bool, pid: u32) -> bool {
    let begin = Instant::now();
    loop {
        let name = format!("ss_{pid:x}_t");
        if controls().iter().any(|c| c.starts_with(&name)) == present {
            return true;
        }
        if begin.elapsed() > Duration::from_secs(10) {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A running trial, killed on drop.
pub(crate) struct Trial {
    pub(crate) child: Child,
    pub(crate) err: BufReader<ChildStderr>,
}

impl Trial {
    /// Starts a trial and waits until it assigns connections.
    pub(crate) fn start(cgroup: &Cgroup, args: &[&str]) -> Self {
        Self::start_by(slowstart(&[]), cgroup, args)
    }

    /// Starts a trial by a command that ends with this program.
    pub(crate) fn start_by(command: Command, cgroup: &Cgroup, args: &[&str]) -> Self {
        let mut trial = Self::spawn(command, cgroup, args);
        trial.wait_for("new connections are assigned to");
        trial
    }

    /// Starts a trial and waits for nothing.
    pub(crate) fn spawn(mut command: Command, cgroup: &Cgroup, args: &[&str]) -> Self {
        let group = cgroup.0.to_str().expect("text");
        let mut child = command
            .args([&["kernel", "trial", "--cgroup", group], args].concat())
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        let err = BufReader::new(child.stderr.take().expect("piped"));
        Self { child, err }
    }

    /// Reads its messages up to one that contains this, and returns it.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let n = self.err.read_line(&mut line).expect("text");
            assert!(n > 0, "no {words:?} in {said}");
            if line.contains(words) {
                return line;
            }
            said += &line;
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("it runs");
    }

    /// Sends a signal, waits for its end and returns the status and the rest of its messages.
    pub(crate) fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        self.signal(signal);
        let mut said = String::new();
        self.err.read_to_string(&mut said).expect("text");
        (self.child.wait().expect("it ends").code(), said)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process in a mount namespace with a small file system, ended on drop.
pub(crate) struct SmallDisk {
    pub(crate) holder: Child,
    pub(crate) dir: PathBuf,
}

impl SmallDisk {
    /// A file system of 2 MB at a folder that only the holder and programs started with [`Self::command`]
    /// see.
    pub(crate) fn new(dir: PathBuf) -> Self {
        fs::create_dir_all(&dir).expect("writable");
        let script = "mount -t tmpfs -o size=2m none \"$0\" && echo mounted && exec sleep 600";
        let mut holder = Command::new("unshare");
        holder.args(["--mount", "sh", "-c", script]).arg(&dir).stdout(Stdio::piped());
        let mut holder = holder.spawn().expect("util-linux is installed");
        let mut line = String::new();
        BufReader::new(holder.stdout.take().expect("piped")).read_line(&mut line).expect("text");
        assert_eq!(line, "mounted\n");
        Self { holder, dir }
    }

    /// The program, where it sees the file system.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.holder.id()));
        command.arg(env!("CARGO_BIN_EXE_slowstart"));
        command.env("NO_COLOR", "1").stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// A file in it, as this process sees it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}/{name}", self.holder.id(), self.dir.display()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
