//! Network namespaces that go with whoever made them, or at the latest when the next is made.

use crate::error::KernelError;
use std::fs;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "slowstart-";
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs a program and wants it to succeed.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<(), KernelError> {
    let what = || format!("{program} {}", args.join(" "));
    let done = Command::new(program).args(args).output().map_err(KernelError::io(what()))?;
    if done.status.success() {
        return Ok(());
    }
    Err(KernelError::refused(what(), String::from_utf8_lossy(&done.stderr).trim()))
}

#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) server: String,
    pub(crate) client: String,
}

impl Namespaces {
    pub(crate) fn new() -> Result<Self, KernelError> {
        let id = format!("{PREFIX}{}-{}", process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        // Built before they exist: what fails half-way is removed as it is dropped.
        let names = Self { server: format!("{id}-server"), client: format!("{id}-client") };
        run("ip", &["netns", "add", &names.server])?;
        run("ip", &["netns", "add", &names.client])?;
        Ok(names)
    }
}

/// Ends what still runs in a namespace, and removes it.
fn delete(name: &str) {
    let pids = Command::new("ip").args(["netns", "pids", name]).output();
    for pid in pids.iter().flat_map(|p| std::str::from_utf8(&p.stdout)).flat_map(str::split_whitespace) {
        let pid = pid.parse().ok().filter(|p| *p > 1 && *p != process::id().cast_signed());
        if let Some(pid) = pid {
            let _ =
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }
    let _ = run("ip", &["netns", "del", name]);
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        delete(&self.server);
        delete(&self.client);
    }
}

/// Removes namespaces whose makers are gone (killed, say), with what still runs in them. Answers how many.
pub fn remove_stale_namespaces() -> usize {
    let mut swept = 0;
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|n| n.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true)) {
            delete(&name);
            swept += 1;
        }
    }
    swept
}
