//! Chooses the congestion control of every new connection of a cgroup, so of a service, without changing its
//! program.
//!
//! A selection belongs to one cgroup. A service manager that restarts a service may remove its cgroup and
//! make another of the same path, to which the selection does not apply. [`Selection::follow`] attaches it
//! again; a pinned selection is listed as [`SelectionState::CgroupReplaced`], and [`select`] for the same
//! path repairs it.

use crate::attach::{Attached, absolute, existing};
use crate::bpf_log::keep_log;
use crate::check::{Check, Verb};
use crate::error::KernelError;
use crate::list::{Holder, available, list, lookup, processes_with_maps};
use crate::lock::StateLock;
use crate::pins::{PINS, make_pins, must_be_ours, remove_pins};
use crate::privileges::must_be_privileged;
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapHandle, Object, ObjectBuilder};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/select.bpf.o"));
/// The program, by which others see it (`bpftool prog`).
pub(crate) const PROGRAM: &str = "ss_select";
/// The map with what is selected.
const CHOICE: &str = ".rodata.choice";
/// Sizes of the two fields of `struct choice` in `select.bpf.c`, in bytes.
const CONTROL: usize = 16;
const PATH: usize = 4096;

/// Whether a pinned selection applies to new connections.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SelectionState {
    /// It applies to new connections of its cgroup.
    Active,
    /// The cgroup was removed and made again: the new one has no selection.
    CgroupReplaced,
    /// The cgroup does not exist.
    CgroupGone,
}

/// A selection that is in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedSelection {
    /// Path of the cgroup.
    pub cgroup: PathBuf,
    /// The congestion control chosen.
    pub control: String,
    /// Whether it applies to new connections, or why not.
    pub state: SelectionState,
    /// The process that holds it; `None` if it is pinned, and stays when the command has ended.
    pub held_by: Option<u32>,
}

/// A selection that this process made.
pub struct Selection {
    /// The congestion control chosen.
    pub control: String,
    /// The pinned selection that this one replaced.
    pub replaced: Option<PinnedSelection>,
    object: Object,
    attached: Attached,
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection").field("control", &self.control).finish_non_exhaustive()
    }
}

impl Selection {
    /// Attaches the selection again if the cgroup was removed and made again since; returns true if so. Needs
    /// `CAP_BPF` and `CAP_NET_ADMIN`.
    pub fn follow(&mut self) -> Result<bool, KernelError> {
        self.attached.follow(&self.object)
    }
}

/// Returns the directory of the pins for a cgroup. A name in bpffs may not contain dots, so it is a hash of
/// the path (FNV-1a, 64 bits); the path itself is in the pinned map.
fn pin_dir(cgroup: &Path) -> PathBuf {
    let hash = cgroup
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    Path::new(PINS).join(format!("cgroup-{hash:016x}"))
}

fn text(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().take_while(|b| *b != 0).collect()
}

/// The control and the cgroup of a map with what is selected.
fn chosen(map: &impl MapCore) -> Option<(String, PathBuf)> {
    let value = lookup(map)?;
    let (control, path) = (value.get(..CONTROL)?, value.get(CONTROL..CONTROL + PATH)?);
    let control = String::from_utf8_lossy(&text(control)).into_owned();
    Some((control, PathBuf::from(std::ffi::OsString::from_vec(text(path)))))
}

/// The selections that other processes hold. Each process follows the path of its cgroup itself.
fn held() -> Vec<PinnedSelection> {
    let of = |process: Holder| {
        let maps = process.maps.iter().filter_map(|id| MapHandle::from_map_id(*id).ok());
        let (control, cgroup) = maps.filter(|m| m.name() == CHOICE).find_map(|m| chosen(&m))?;
        let state = if cgroup.exists() { SelectionState::Active } else { SelectionState::CgroupGone };
        Some(PinnedSelection { cgroup, control, state, held_by: Some(process.pid) })
    };
    processes_with_maps().filter_map(of).collect()
}

/// Reads the pins of one directory; `None` if they are not a selection of this version.
fn read_pins(dir: &Path) -> Option<PinnedSelection> {
    let (control, cgroup) = chosen(&MapHandle::from_pinned_path(dir.join("choice")).ok()?)?;
    let LinkTypeInfo::Cgroup(info) = Link::open(dir.join("link")).ok()?.info().ok()?.info else {
        return None;
    };
    let state = match fs::metadata(&cgroup) {
        Err(_) => SelectionState::CgroupGone,
        Ok(meta) if meta.ino() == info.cgroup_id => SelectionState::Active,
        Ok(_) => SelectionState::CgroupReplaced,
    };
    Some(PinnedSelection { cgroup, control, state, held_by: None })
}

/// Returns the selections, pinned and held by other processes, in the order of their cgroups' paths.
pub fn list_selections() -> Vec<PinnedSelection> {
    let dirs = fs::read_dir(PINS).into_iter().flatten().flatten();
    let ours = |name: &str| name.starts_with("cgroup-") && !name.ends_with("-next");
    let mut all: Vec<_> = dirs
        .filter(|d| d.file_name().to_str().is_some_and(ours))
        .filter_map(|d| read_pins(&d.path()))
        .collect();
    all.extend(held());
    all.sort_by(|a, b| (&a.cgroup, a.held_by).cmp(&(&b.cgroup, b.held_by)));
    all
}

/// From now on each new connection of the cgroup, incoming or outgoing, uses this control: a startup that is
/// loaded, or any control of the kernel. With `pinned` the selection outlives this process and replaces one
/// that is pinned for the same path. Open connections keep their control.
pub fn select(cgroup: &Path, control: &str, pinned: bool) -> Result<Selection, KernelError> {
    let what = format!("select {control} for {}", cgroup.display());
    let check = Check::new();
    check.must(if pinned { Verb::SelectPin } else { Verb::Select }, &what)?;
    let available = available()?;
    let ours = list()?.into_iter().find(|r| r.startup == Some(control)).map(|r| r.name);
    let name = ours.unwrap_or_else(|| control.to_string());
    if name.len() >= CONTROL || !available.contains(&name) {
        let why = format!("{control} is not loaded; the kernel has {}", available.join(", "));
        return Err(KernelError::refused(what, why));
    }
    let cgroup = existing(&what, cgroup)?;
    let path = cgroup.as_os_str().as_bytes();
    if path.len() >= PATH {
        return Err(KernelError::refused(what, "the path is longer than 4,095 bytes"));
    }
    keep_log();
    let mut object = ObjectBuilder::default().open_memory(OBJECT).map_err(KernelError::bpf(&*what))?;
    for mut map in object.maps_mut() {
        if map.name() == CHOICE {
            let value = map.initial_value_mut().unwrap_or_default();
            value[..name.len()].copy_from_slice(name.as_bytes());
            value[CONTROL..CONTROL + path.len()].copy_from_slice(path);
        }
    }
    let mut object = object.load().map_err(KernelError::bpf(&*what))?;
    if !pinned {
        let attached = Attached::new(&object, PROGRAM, &cgroup)?;
        return Ok(Selection { control: name, replaced: None, object, attached });
    }
    let _lock = StateLock::acquire(&what)?;
    must_be_ours()?;
    let dir = pin_dir(&cgroup);
    let next = PathBuf::from(format!("{}-next", dir.display()));
    // A process that was killed may have left it.
    remove_pins(&next)?;
    let replaced = read_pins(&dir);
    let result = pin(&mut object, &cgroup, &dir, &next);
    if result.is_err() {
        // The first error is the one to report.
        let _ = remove_pins(&next);
    }
    Ok(Selection { control: name, replaced, attached: result?, object })
}

/// Attaches and pins a selection, then removes the one it replaces, so that at each moment one of them
/// applies.
fn pin(object: &mut Object, cgroup: &Path, dir: &Path, next: &Path) -> Result<Attached, KernelError> {
    let what = format!("pin {}", dir.display());
    make_pins(next)?;
    make_pins(dir)?;
    let mut attached = Attached::new(object, PROGRAM, cgroup)?;
    for mut map in object.maps_mut() {
        if map.name() == CHOICE {
            map.pin(next.join("choice")).map_err(KernelError::bpf(&*what))?;
        }
    }
    attached.link.pin(next.join("link")).map_err(KernelError::bpf(&*what))?;
    let old = Link::open(dir.join("link")).ok();
    for file in ["choice", "link"] {
        fs::rename(next.join(file), dir.join(file)).map_err(KernelError::path("replace", &dir.join(file)))?;
    }
    if let Some(old) = old {
        // It is already detached if its cgroup is gone.
        let _ = old.detach();
    }
    remove_pins(next)?;
    Ok(attached)
}

/// Removes a selection, whether or not its cgroup still exists, and returns what it was: the pinned one, else that of
/// another process, which ends by SIGTERM. Open connections keep their control.
pub fn unselect(cgroup: &Path) -> Result<PinnedSelection, KernelError> {
    let what = format!("unselect {}", cgroup.display());
    must_be_privileged(&what)?;
    let _lock = StateLock::acquire(&what)?;
    must_be_ours()?;
    let cgroup = absolute(cgroup)?;
    let dir = pin_dir(&cgroup);
    let Some(found) = read_pins(&dir) else {
        if let Some(found) = held().into_iter().find(|s| s.cgroup == cgroup)
            && let Some(pid) = found.held_by
        {
            return match kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM) {
                // It may have ended meanwhile.
                Ok(()) | Err(Errno::ESRCH) => Ok(found),
                Err(e) => Err(KernelError::refused(what, format!("process {pid}, which holds it: {e}"))),
            };
        }
        let all: Vec<String> = list_selections().iter().map(|s| s.cgroup.display().to_string()).collect();
        let selected = if all.is_empty() { "nothing".to_string() } else { all.join(", ") };
        return Err(KernelError::refused(
            what,
            format!("there is no selection for it; selected: {selected}"),
        ));
    };
    // Removing the pin ends the selection too, but some time later.
    if found.state == SelectionState::Active {
        let link = Link::open(dir.join("link")).map_err(KernelError::bpf(&*what))?;
        link.detach().map_err(KernelError::bpf(what))?;
    }
    remove_pins(&dir)?;
    Ok(found)
}
