//! A program attached to a cgroup, which follows the cgroup's path: a service manager that restarts a service
//! may remove its cgroup and make another of the same path.

use crate::error::KernelError;
use libbpf_rs::{Link, Object};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A program attached to a cgroup. Dropping it detaches it.
pub(crate) struct Attached {
    cgroup: PathBuf,
    /// Its name in the object.
    program: &'static str,
    /// Inode of the cgroup that it is attached to.
    inode: u64,
    pub(crate) link: Link,
}

impl Attached {
    /// Attaches a program of an object.
    pub(crate) fn new(object: &Object, program: &'static str, cgroup: &Path) -> Result<Self, KernelError> {
        let what = format!("attach to {}", cgroup.display());
        let dir = File::open(cgroup).map_err(KernelError::path("open", cgroup))?;
        let inode = dir.metadata().map_err(KernelError::path("read", cgroup))?.ino();
        let found = object.progs_mut().find(|p| p.name() == program);
        let found = found.ok_or_else(|| KernelError::refused(&*what, "the object has no such program"))?;
        let link = found.attach_cgroup(dir.as_raw_fd()).map_err(KernelError::bpf(what))?;
        Ok(Self { cgroup: cgroup.to_path_buf(), program, inode, link })
    }

    /// Attaches it again if the cgroup was removed and made again since; returns true if so. Needs `CAP_BPF`
    /// and `CAP_NET_ADMIN`.
    pub(crate) fn follow(&mut self, object: &Object) -> Result<bool, KernelError> {
        let Ok(meta) = fs::metadata(&self.cgroup) else { return Ok(false) };
        if meta.ino() == self.inode {
            return Ok(false);
        }
        match Self::new(object, self.program, &self.cgroup) {
            Ok(attached) => {
                *self = attached;
                Ok(true)
            }
            // It was removed meanwhile; the next call tries again.
            Err(_) if fs::metadata(&self.cgroup).map_or(true, |now| now.ino() != meta.ino()) => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// Returns the absolute path of a cgroup, which need not exist.
pub(crate) fn absolute(cgroup: &Path) -> Result<PathBuf, KernelError> {
    fs::canonicalize(cgroup)
        .or_else(|_| std::path::absolute(cgroup))
        .map_err(KernelError::path("resolve", cgroup))
}

/// Returns the absolute path of a cgroup that exists.
pub(crate) fn existing(what: &str, cgroup: &Path) -> Result<PathBuf, KernelError> {
    if !cgroup.join("cgroup.procs").exists() || cgroup.join("tasks").exists() {
        let why = format!("{} is not a directory of cgroup v2", cgroup.display());
        return Err(KernelError::refused(what, why));
    }
    absolute(cgroup)
}
