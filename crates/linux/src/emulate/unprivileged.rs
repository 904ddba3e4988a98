//! The emulator without root: in a user namespace, a process holds every capability over the network
//! namespaces, devices and queue disciplines that it makes itself.

use crate::error::KernelError;
use crate::privileges::is_initial_user_namespace;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where `ip netns` keeps its names.
const NAMES: &str = "/run/netns";

/// True if this process may make namespaces, devices and queue disciplines.
fn is_privileged() -> bool {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |c| c.effective);
    held.contains(CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN) && is_initial_user_namespace()
}

/// The texts of `/proc/self/uid_map` and `gid_map` in which this user is root.
fn maps() -> [String; 2] {
    [format!("0 {} 1", getuid()), format!("0 {} 1", getgid())]
}

/// Moves this process into a user namespace in which it is root, a mount namespace in which it may name network
/// namespaces, and a network namespace to which `ip netns` may return.
fn enter(maps: &[String; 2]) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)?;
    // Without it the kernel permits no map of groups.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", &maps[0])?;
    fs::write("/proc/self/gid_map", &maps[1])?;
    let none: Option<&str> = None;
    if Path::new(NAMES).is_dir() {
        return Ok(mount(Some("tmpfs"), NAMES, Some("tmpfs"), MsFlags::empty(), none)?);
    }
    // What is in /run stays visible.
    let before = fs::File::open("/run")?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none)?;
    for entry in fs::read_dir(format!("/proc/self/fd/{}", before.as_raw_fd()))?.flatten() {
        let to = Path::new("/run").join(entry.file_name());
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            fs::create_dir(&to)?;
            let _ = mount(Some(&entry.path()), &to, none, MsFlags::MS_BIND | MsFlags::MS_REC, none);
        }
    }
    fs::create_dir(NAMES)
}

fn refused(e: &io::Error) -> KernelError {
    let why = match e.raw_os_error() {
        Some(libc::EINVAL) => {
            "a process with several threads cannot make a user namespace: leave out --jobs".to_string()
        }
        _ => format!(
            "not permitted: it needs CAP_NET_ADMIN and CAP_SYS_ADMIN, and this system permits no user namespace in which it \
             has them ({e}): run it as root"
        ),
    };
    KernelError::refused("emulator", why)
}

/// Without the capabilities that the emulator needs, moves this process into a user namespace where it has them.
/// Programs that it starts are root there: over networks that they make, and over files as the user that started
/// it. Returns true if that was needed. Call it before any thread is started.
///
/// # Errors
/// If the capabilities are missing and the system permits no such namespace.
pub fn enter_user_namespace() -> Result<bool, KernelError> {
    if is_privileged() {
        return Ok(false);
    }
    enter(&maps()).map_err(|e| refused(&e))?;
    Ok(true)
}

/// How the emulator works here.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// With the capabilities of this process.
    Privileged,
    /// In a user namespace.
    UserNamespace,
}

/// Tries whether the emulator works, in a process that makes namespaces and a device, and ends.
///
/// # Errors
/// With what is missing.
pub fn way() -> Result<Way, KernelError> {
    if is_privileged() {
        return super::possible().map(|()| Way::Privileged);
    }
    super::has_tools()?;
    let maps = maps();
    let mut probe = Command::new("ip");
    probe.args(["tuntap", "add", "dev", "probe0", "mode", "tun"]).stdin(Stdio::null());
    in_child(&mut probe, move || enter(&maps));
    let done = probe.output().map_err(|e| refused(&e))?;
    if done.status.success() {
        return Ok(Way::UserNamespace);
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_string();
    Err(refused(&io::Error::other(format!("ip tuntap add: {said}"))))
}

/// Lets the process that a command starts do this before its program begins: system calls and short texts only.
#[allow(
    unsafe_code,
    reason = "the standard library marks it so; the closures make system calls and short texts"
)]
pub(super) fn in_child(command: &mut Command, what: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: it takes no lock but that of the allocator, which fork() leaves usable.
    unsafe { command.pre_exec(what) };
}
