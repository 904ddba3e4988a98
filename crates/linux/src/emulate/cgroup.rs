//! A cgroup of the server, which `kernel trial` and `kernel select` can be pointed at.

use super::unprivileged::in_child;
use crate::error::KernelError;
use slowstart_files::read_kernel;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::thread;
use std::time::Duration;

/// The names of these cgroups, with the process that made them.
const PREFIX: &str = "slowstart-emulate-";
/// Attempts to remove a cgroup whose processes were killed: 2 s.
const ATTEMPTS: u32 = 200;

/// A cgroup of version 2 below that of this process, removed on drop.
#[derive(Debug)]
pub struct Cgroup(PathBuf);

/// The cgroup of version 2 that this process is in; `None` if it cannot be found.
fn own() -> Option<PathBuf> {
    let mounts = read_kernel("/proc/self/mounts").ok()?;
    let mount =
        mounts.lines().map(|l| l.split(' ').collect::<Vec<_>>()).find(|m| m.get(2) == Some(&"cgroup2"))?;
    let groups = read_kernel("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|l| l.strip_prefix("0::/"))?;
    Some(Path::new(mount[1]).join(group))
}

/// Removes cgroups of processes that no longer exist.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|n| n.parse::<u32>().ok());
        if pid.is_some_and(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Cgroup {
    /// Makes it; `None` where this process may not, or without cgroups of version 2.
    pub fn create() -> Option<Self> {
        let parent = own()?;
        remove_stale(&parent);
        let dir = parent.join(format!("{PREFIX}{}", process::id()));
        fs::create_dir(&dir).ok()?;
        Some(Self(dir))
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Lets a program start in it, so that all that it starts are in it too.
    ///
    /// # Errors
    /// If this process may move none there.
    pub fn hold(&self, command: &mut Command) -> Result<(), KernelError> {
        let file = self.0.join("cgroup.procs");
        let opened = OpenOptions::new().write(true).open(&file);
        let mut processes = opened.map_err(KernelError::io(format!("open {}", file.display())))?;
        // 0 is who writes.
        in_child(command, move || processes.write_all(b"0"));
        Ok(())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..ATTEMPTS {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
