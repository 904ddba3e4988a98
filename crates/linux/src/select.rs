//! Choosing the startup of every connection of a cgroup, so of a service, without touching its program.

use crate::bpf_log::keep_log;
use crate::check::Check;
use crate::error::KernelError;
use crate::load::{PINS, list, remove};
use libbpf_rs::{Link, ObjectBuilder};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/select.bpf.o"));

/// A selection that this process holds; with it goes the choice for new connections.
pub struct Selection {
    /// The congestion control chosen.
    pub control: String,
    _link: Link,
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection").field("control", &self.control).finish_non_exhaustive()
    }
}

fn pin_of(cgroup: &Path) -> Result<PathBuf, KernelError> {
    let meta = fs::metadata(cgroup).map_err(KernelError::path("read", cgroup))?;
    Ok(Path::new(PINS).join(format!("cgroup-{}", meta.ino())))
}

/// From now on each new connection of the cgroup, of either side, uses this control: a startup that is loaded, or any
/// control the kernel has. With `pinned` the choice outlives this process.
pub fn select(cgroup: &Path, control: &str, pinned: bool) -> Result<Selection, KernelError> {
    let what = format!("select {control} for {}", cgroup.display());
    let check = Check::new();
    if pinned { check.must_pin(&what) } else { check.must_load(&what) }?;
    let available =
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let ours = list()?.into_iter().find(|r| r.startup == Some(control)).map(|r| r.name);
    let name = ours.unwrap_or_else(|| control.to_string());
    if !available.split_whitespace().any(|a| a == name) {
        let why = format!("not loaded: the kernel has {}", available.trim());
        return Err(KernelError::refused(what, why));
    }
    let dir = File::open(cgroup).map_err(KernelError::path("open", cgroup))?;
    if !cgroup.join("cgroup.procs").exists() {
        return Err(KernelError::refused(what, "not a folder of cgroup v2"));
    }
    let pin = pin_of(cgroup)?;
    if pin.join("link").exists() {
        return Err(KernelError::refused(what, "it has a choice already: `kernel unselect` it first"));
    }
    keep_log();
    let mut object = ObjectBuilder::default().open_memory(OBJECT).map_err(KernelError::bpf(&*what))?;
    for mut map in object.maps_mut() {
        if map.name() == ".rodata.control" {
            let value = map.initial_value_mut().unwrap_or_default();
            value[..name.len()].copy_from_slice(name.as_bytes());
        }
    }
    let object = object.load().map_err(KernelError::bpf(&*what))?;
    let program = object.progs_mut().next();
    let program = program.ok_or_else(|| KernelError::refused(&*what, "the object holds no program"))?;
    let mut link = program.attach_cgroup(dir.as_raw_fd()).map_err(KernelError::bpf(&*what))?;
    if pinned {
        fs::create_dir_all(&pin).map_err(KernelError::path("create", &pin))?;
        if let Err(e) = link.pin(pin.join("link")) {
            remove(&pin);
            return Err(KernelError::bpf(what)(e));
        }
    }
    Ok(Selection { control: name, _link: link })
}

/// Takes a pinned choice back; connections keep what they have.
pub fn unselect(cgroup: &Path) -> Result<(), KernelError> {
    let pin = pin_of(cgroup)?;
    if !pin.join("link").exists() {
        return Err(KernelError::refused(
            format!("unselect {}", cgroup.display()),
            "nothing is pinned for it",
        ));
    }
    // Removing the pin ends the choice too, but at a time of the kernel's choosing.
    let what = format!("unselect {}", cgroup.display());
    let link = Link::open(pin.join("link")).map_err(KernelError::bpf(&*what))?;
    link.detach().map_err(KernelError::bpf(what))?;
    remove(&pin);
    Ok(())
}
