//! Network namespaces of the emulator: creation, removal, and running code and programs in them.

use crate::error::KernelError;
use crate::privileges::is_initial_user_namespace;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use slowstart_files::read_kernel;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Namespaces are named `slowstart-PID-N-server` and `slowstart-PID-N-client`, with the process that created
/// them.
const PREFIX: &str = "slowstart-";
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs a program to its end; an exit status other than 0 is an error with the program's message.
pub(super) fn run(program: &str, args: &[&str]) -> Result<(), KernelError> {
    let what = || format!("{program} {}", args.join(" "));
    let done = command(program).args(args).output().map_err(KernelError::io(what()))?;
    if done.status.success() {
        return Ok(());
    }
    Err(KernelError::refused(what(), String::from_utf8_lossy(&done.stderr).trim()))
}

/// A command in a process group of its own, so that Ctrl-C does not interrupt setting up and cleaning up.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.process_group(0);
    command
}

/// The two namespaces of one path, removed on drop.
#[derive(Debug)]
pub(super) struct Namespaces {
    pub(super) server: String,
    pub(super) client: String,
}

impl Namespaces {
    pub(super) fn create() -> Result<Self, KernelError> {
        let id = format!("{PREFIX}{}-{}", process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        // The value exists before the namespaces do, so that an error in between removes the first of them.
        let names = Self { server: format!("{id}-server"), client: format!("{id}-client") };
        run("ip", &["netns", "add", &names.server])?;
        run("ip", &["netns", "add", &names.client])?;
        Ok(names)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        remove(&self.server);
        remove(&self.client);
    }
}

/// Kills the processes in a namespace and removes it.
fn remove(name: &str) {
    let pids = command("ip").args(["netns", "pids", name]).output();
    for pid in pids.iter().flat_map(|p| std::str::from_utf8(&p.stdout)).flat_map(str::split_whitespace) {
        let pid = pid.parse().ok().filter(|p| *p > 1 && *p != process::id().cast_signed());
        if let Some(pid) = pid {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    let _ = run("ip", &["netns", "del", name]);
}

/// Removes the namespaces of processes that no longer exist, for example because they were killed, and kills
/// the processes that still run in them. Returns the number of namespaces removed.
pub fn remove_stale_namespaces() -> usize {
    let mut removed = 0;
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|n| n.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true)) {
            remove(&name);
            removed += 1;
        }
    }
    removed
}

/// Runs a closure in a network namespace, on a thread that then ends.
pub(super) fn in_namespace<T: Send>(
    ns: &str,
    what: impl FnOnce() -> Result<T, KernelError> + Send,
) -> Result<T, KernelError> {
    let enter = || {
        let file = format!("/run/netns/{ns}");
        let handle = File::open(&file).map_err(KernelError::io(format!("open {file}")))?;
        setns(handle, CloneFlags::CLONE_NEWNET)
            .map_err(|e| KernelError::io(format!("enter network namespace {ns}"))(e.into()))?;
        what()
    };
    thread::scope(|s| s.spawn(enter).join())
        .unwrap_or_else(|_| Err(KernelError::refused(ns, "the thread in this namespace panicked")))
}

/// Starts a program in a network namespace. As with `ip netns exec`, it gets a mount namespace in which
/// `/sys` shows the devices of the network namespace.
pub(super) fn spawn(ns: &str, command: &mut Command) -> Result<Child, KernelError> {
    in_namespace(ns, || {
        mount_sysfs().map_err(|e| KernelError::io(format!("mount /sys for {ns}"))(e.into()))?;
        let program = command.get_program().to_string_lossy().into_owned();
        command.spawn().map_err(KernelError::io(format!("run {program}")))
    })
}

/// Gives this thread and its children a mount namespace with a `/sys` of this thread's network namespace.
fn mount_sysfs() -> nix::Result<()> {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
    match umount2("/sys", MntFlags::MNT_DETACH) {
        // In a user namespace that of its parent stays below.
        Err(Errno::EINVAL) => {}
        done => done?,
    }
    match mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none) {
        // A container covers parts of /sys: a user namespace in it may not show all of it.
        Err(Errno::EPERM) if !is_initial_user_namespace() => Ok(()),
        done => done,
    }
}

/// Returns true if a TCP socket listens or a UDP socket is bound in a network namespace.
pub(super) fn has_listener(ns: &str) -> Result<bool, KernelError> {
    /// `TCP_LISTEN` and, for UDP, `TCP_CLOSE`, as `/proc/net` writes them in the fourth column.
    const STATES: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
    in_namespace(ns, || {
        for (protocol, state) in STATES {
            let file = format!("/proc/thread-self/net/{protocol}");
            let text = match read_kernel(&file) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                text => text.map_err(KernelError::io(format!("read {file}")))?,
            };
            if text.lines().skip(1).any(|l| l.split_whitespace().nth(3) == Some(state)) {
                return Ok(true);
            }
        }
        Ok(false)
    })
}
