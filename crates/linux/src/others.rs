//! Programs that others have attached to a cgroup, to one above it or to one below: they see the same connections.

use crate::error::KernelError;
use crate::select;
use libbpf_rs::libbpf_sys::{BPF_CGROUP_SOCK_OPS, bpf_prog_query};
use libbpf_rs::query::ProgInfoIter;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The most programs of a cgroup that are read: the kernel permits 64.
const MOST: usize = 64;
/// The most cgroups below one that are looked at.
const BELOW: usize = 10_000;

/// A program of the type that may set a connection's control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherProgram {
    /// The cgroup that it is attached to.
    pub cgroup: PathBuf,
    /// Its number in the kernel.
    pub id: u32,
    /// Its name; `None` without `CAP_SYS_ADMIN`.
    pub name: Option<String>,
}

impl std::fmt::Display for OtherProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name.as_deref().unwrap_or("of unknown name");
        write!(f, "the eBPF program {name} (number {}) on {}", self.id, self.cgroup.display())
    }
}

/// The numbers of the programs that are attached to one cgroup.
#[allow(unsafe_code, reason = "libbpf-rs has no call for it")]
fn attached(cgroup: &Path) -> Vec<u32> {
    let Ok(dir) = File::open(cgroup) else { return Vec::new() };
    let (mut ids, mut count, mut flags) = ([0_u32; MOST], MOST as u32, 0_u32);
    // SAFETY: the kernel writes at most `count` numbers, for which the array has room.
    let done = unsafe {
        bpf_prog_query(
            dir.as_raw_fd(),
            BPF_CGROUP_SOCK_OPS,
            0,
            &raw mut flags,
            ids.as_mut_ptr(),
            &raw mut count,
        )
    };
    if done == 0 { ids[..(count as usize).min(MOST)].to_vec() } else { Vec::new() }
}

/// The cgroups that this one is in, itself, and those in it.
fn related(cgroup: &Path) -> Vec<PathBuf> {
    let above = cgroup.ancestors().filter(|c| c.join("cgroup.procs").exists());
    let mut all: Vec<PathBuf> = above.map(Path::to_path_buf).collect();
    let mut open = vec![cgroup.to_path_buf()];
    while let Some(dir) = open.pop()
        && all.len() < BELOW
    {
        let within = fs::read_dir(dir).into_iter().flatten().flatten();
        for dir in within.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            all.push(dir.path());
            open.push(dir.path());
        }
    }
    all
}

/// Returns the programs of others that see connections of this cgroup.
///
/// # Errors
/// If one of them is a selection or a trial of this project: it would decide about the same connections.
pub(crate) fn find(what: &str, cgroup: &Path) -> Result<Vec<OtherProgram>, KernelError> {
    let mut all = Vec::new();
    for cgroup in related(cgroup) {
        let ids = attached(&cgroup);
        all.extend(ids.into_iter().map(|id| OtherProgram { cgroup: cgroup.clone(), id, name: None }));
    }
    if all.is_empty() {
        return Ok(all);
    }
    for program in ProgInfoIter::default() {
        for other in all.iter_mut().filter(|o| o.id == program.id) {
            other.name = Some(program.name.to_string_lossy().into_owned());
        }
    }
    for other in &all {
        let ours = match other.name.as_deref() {
            // `choose` is that of versions before 28 November 2026.
            Some(select::PROGRAM | "choose") => "a selection (`slowstart kernel select`) applies to",
            Some("trial") => "another trial runs on",
            _ => continue,
        };
        let why = format!("{ours} {}, and so to the same connections: end it first", other.cgroup.display());
        return Err(KernelError::refused(what, why));
    }
    Ok(all)
}
