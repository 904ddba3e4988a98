//! Loads a startup into the kernel as a congestion control, holds it, pins it, replaces it and removes it.
//!
//! A control that is held is registered as long as the process that holds it lives (from Linux 6.4 on its
//! link closes with the last file descriptor). One that is pinned is registered until it is unloaded or the
//! machine restarts. In both cases connections that use it when it is removed keep it until they close: the
//! kernel counts references.

use crate::bpf_log::{keep_log, take_log};
use crate::check::{Check, Verb};
use crate::control_events::set_level;
use crate::default::{RestoredDefault, restore_defaults_of};
use crate::error::KernelError;
use crate::facts::{Counts, Facts};
use crate::list::{available, control_names, list, registered};
use crate::lock::StateLock;
use crate::memory::{Memory, MemoryConfig};
use crate::open::{Open, counts};
use crate::pins::{MAPS, make_pins, must_be_ours, pin_dir, remove_pins};
use crate::privileges::must_be_privileged;
use crate::table::Control;
use libbpf_rs::{Link, MapCore, MapHandle, MapType, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};
use slowstart::registry::Algorithm;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// A startup with its parameters and the avoidance after it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The startup's name in the registry.
    pub startup: String,
    /// The startup with its parameters.
    pub algorithm: Algorithm,
    /// Names of the parameters that were written.
    pub given: Vec<String>,
    /// True for Reno after the startup, false for CUBIC.
    pub reno: bool,
    /// How path memory is kept, for startups that use it.
    pub memory: MemoryConfig,
}

impl Spec {
    /// Parses `name:key=value,...` and the name of an avoidance, `cubic` or `reno`.
    pub fn read(startup: &str, avoidance: &str) -> Result<Self, KernelError> {
        let (name, algorithm) = slowstart_study::scenario::algorithm("startup", startup)
            .map_err(|e| KernelError::refused(startup, e.to_string()))?;
        let params = startup.split_once(':').map_or("", |(_, p)| p);
        let given: Vec<String> =
            params.split(',').filter_map(|p| p.split_once('=')).map(|(k, _)| k.to_string()).collect();
        let reno = match avoidance {
            "cubic" => false,
            "reno" => true,
            _ => return Err(KernelError::refused(avoidance, "not an avoidance of the kernel: cubic, reno")),
        };
        if let Some(why) = Control::of(&name, &given)?.no_reno().filter(|_| reno) {
            return Err(KernelError::refused(format!("{name} with reno"), why));
        }
        Ok(Self { startup: name, algorithm, given, reno, memory: MemoryConfig::default() })
    }

    /// Returns its name in the kernel.
    pub fn name(&self) -> Result<String, KernelError> {
        Ok(Control::of(&self.startup, &self.given)?.name(self.reno))
    }
}

/// A control that this process holds.
pub struct Held {
    /// Its name in the kernel.
    pub name: String,
    /// Dropped before the object: without links (before 6.4) it unregisters the control through the object's
    /// map.
    link: Option<Link>,
    object: Object,
    open: Open,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Held {
    fn map(&self, name: &str) -> Option<impl MapCore> {
        self.object.maps().find(|m| m.name() == name)
    }

    /// Returns its path memory, if its startup uses one.
    pub fn memory(&self) -> Option<Memory> {
        Memory::of(&self.name, &self.map("memory")?, &self.map(".rodata.memory")?)
    }

    /// Returns its counters; `None` if they cannot be read.
    pub fn counts(&self) -> Option<Counts> {
        counts(&self.map(".data.counts")?, &self.open)
    }

    /// Sets which events it writes from now on: none (0), all but ACKs (1), all (2).
    pub fn watch(&self, level: u32) -> Result<(), KernelError> {
        let what = || format!("{}: watching", self.name);
        let map = self.map(".data.watching").ok_or_else(|| KernelError::refused(what(), "no such map"))?;
        set_level(&map, level.into(), u64::MAX).map_err(KernelError::bpf(what()))
    }

    /// Returns the ring of its events; polling the ring calls `each` for each of them.
    pub fn events<'a>(&self, mut each: impl FnMut(Facts) + 'a) -> Result<RingBuffer<'a>, KernelError> {
        let what = || format!("{}: events", self.name);
        let map = self.map("events").ok_or_else(|| KernelError::refused(what(), "no such map"))?;
        let mut ring = RingBufferBuilder::new();
        ring.add(&map, move |record| {
            if let Some(f) = Facts::read(record) {
                each(f);
            }
            0
        })
        .map_err(KernelError::bpf(what()))?;
        ring.build().map_err(KernelError::bpf(what()))
    }
}

/// Opens the object of a startup, adapts it to this kernel, writes its parameters and loads it, without
/// registering it. If it has path memory, it continues to use the map that is pinned as `kept_memory`.
fn prepare(
    spec: &Spec,
    check: &Check,
    name: &str,
    kept_memory: Option<&Path>,
) -> Result<Object, KernelError> {
    let control = Control::of(&spec.startup, &spec.given)?;
    let what = format!("load {name}");
    check.must(Verb::Load, &what)?;
    let constants = control.constants(&spec.algorithm, &spec.given)?;
    keep_log();
    let mut object =
        ObjectBuilder::default().open_memory(control.object).map_err(KernelError::bpf(&*what))?;
    let has_v1 = object.maps_mut().any(|m| m.name() == "ops_v1");
    let ours = match (check.tx_start, check.control_arguments) {
        (true, _) => "ops_v7",
        (false, 2) if has_v1 => "ops_v1",
        _ => "ops",
    };
    for mut map in object.maps_mut() {
        if map.map_type() == MapType::StructOps {
            let wanted = map.name() == ours;
            map.set_autocreate(wanted).map_err(KernelError::bpf(&*what))?;
            if !check.links {
                map.set_map_flags(0).map_err(KernelError::bpf(&*what))?;
            }
            if let Some(value) = map.initial_value_mut().filter(|_| wanted) {
                rename(value, control.compiled, name);
            }
        } else if map.name() == ".rodata.config" {
            let value = map.initial_value_mut().unwrap_or_default();
            let all = std::iter::once(u64::from(spec.reno)).chain(constants.iter().copied());
            for (slot, n) in value.chunks_exact_mut(8).zip(all) {
                slot.copy_from_slice(&n.to_ne_bytes());
            }
        } else if map.name() == ".rodata.memory" {
            let bytes = spec.memory.to_bytes();
            map.initial_value_mut().unwrap_or_default()[..bytes.len()].copy_from_slice(&bytes);
        } else if map.name() == "memory" && kept_memory.is_some_and(Path::exists) {
            let file = kept_memory.unwrap_or(Path::new(""));
            map.reuse_pinned_map(file).map_err(KernelError::bpf(&*what))?;
        }
    }
    let other: &[&str] = if check.tx_start { &["ss_event"] } else { &["ss_event_v7", "ss_tx_start"] };
    let other_control = if check.control_arguments == 2 { "ss_control" } else { "ss_control_v1" };
    for mut prog in object.progs_mut() {
        if other.iter().any(|o| prog.name() == *o) || prog.name() == other_control {
            prog.set_autoload(false);
        }
    }
    object.load().map_err(KernelError::bpf(what))
}

/// Replaces the compiled name. Nothing else in the operations is text.
fn rename(value: &mut [u8], from: &str, to: &str) {
    let from = [from.as_bytes(), &[0]].concat();
    if let Some(at) = value.windows(from.len()).position(|w| w == from) {
        let end = value.len().min(at + 16);
        value[at..end].fill(0);
        value[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
}

const ALREADY: &str = "already loaded: unload it first; one that is pinned is replaced with --pin";

/// Loads a startup and registers it until the returned value is dropped or this process ends.
pub fn load(spec: &Spec) -> Result<Held, KernelError> {
    load_as(spec, spec.name()?)
}

/// Loads a startup under another name, of at most 15 bytes, so that a study is independent of what is loaded.
pub fn load_as(spec: &Spec, name: String) -> Result<Held, KernelError> {
    if name.len() > 15 {
        return Err(KernelError::refused(name, "longer than 15 bytes, the kernel's limit for a name"));
    }
    let check = Check::new();
    check.must(Verb::Load, &format!("load {name}"))?;
    if available()?.contains(&name) {
        return Err(KernelError::refused(name, ALREADY));
    }
    let object = prepare(spec, &check, &name, None)?;
    register(object, name)
}

fn register(mut object: Object, name: String) -> Result<Held, KernelError> {
    let conns = object.maps().find(|m| m.name() == "conns");
    let conns = conns.ok_or_else(|| KernelError::refused(&*name, "the object has no map of connections"))?;
    let open = Open::of(&conns);
    let attached = object
        .maps_mut()
        .find(|m| m.map_type() == MapType::StructOps && m.autocreate())
        .map(|mut m| m.attach_struct_ops());
    match attached {
        Some(Ok(link)) => Ok(Held { name, object, open, link: Some(link) }),
        // Another process was faster.
        Some(Err(e)) if e.kind() == libbpf_rs::ErrorKind::AlreadyExists => {
            take_log();
            Err(KernelError::refused(name, ALREADY))
        }
        Some(Err(e)) => Err(KernelError::bpf(format!("register {name}"))(e)),
        None => Err(KernelError::refused(name, "the object has no control for this kernel")),
    }
}

fn pin_maps(object: &mut Object, dir: &Path) -> Result<(), KernelError> {
    make_pins(dir)?;
    for mut map in object.maps_mut() {
        let file = MAPS.iter().find(|(name, _)| map.name() == *name).map(|(_, file)| dir.join(file));
        if let Some(file) = file {
            map.pin(&file).map_err(KernelError::bpf(format!("pin {}", file.display())))?;
        }
    }
    Ok(())
}

/// Loads a startup and pins it. A control of that name that is pinned already is replaced: open connections
/// keep the old one, new connections use the new one. Returns the name in the kernel, and true if one was
/// replaced. Of several processes that do this at once, each finishes before the next begins.
pub fn load_pinned(spec: &Spec) -> Result<(String, bool), KernelError> {
    let check = Check::new();
    let name = spec.name()?;
    let what = format!("pin {name}");
    check.must(Verb::Pin, &what)?;
    let _lock = StateLock::acquire(&what)?;
    must_be_ours()?;
    let (dir, next) = (pin_dir(&name), pin_dir(&format!("{name}-next")));
    // A process that was killed may have left it.
    remove_pins(&next)?;
    let replaces = dir.join("link").exists();
    let result = if replaces { replace(spec, &check, &name, &dir, &next) } else { pin(spec, &dir) };
    if result.is_err() {
        // The first error is the one to report.
        let _ = remove_pins(&next);
        if !replaces {
            let _ = remove_pins(&dir);
        }
    }
    result.map(|()| (name, replaces))
}

fn pin(spec: &Spec, dir: &Path) -> Result<(), KernelError> {
    let mut held = load(spec)?;
    remove_pins(dir)?;
    pin_maps(&mut held.object, dir)?;
    let link = held.link.as_mut().ok_or_else(|| KernelError::refused("pin", "no link"))?;
    link.pin(dir.join("link")).map_err(KernelError::bpf(format!("pin {}", dir.display())))
}

fn replace(spec: &Spec, check: &Check, name: &str, dir: &Path, next: &Path) -> Result<(), KernelError> {
    let what = || format!("replace {name}");
    let link = Link::open(dir.join("link")).map_err(KernelError::bpf(what()))?;
    let mut object = prepare(spec, check, name, Some(&dir.join("memory")))?;
    pin_maps(&mut object, next)?;
    let mut map = object
        .maps_mut()
        .find(|m| m.map_type() == MapType::StructOps && m.autocreate())
        .ok_or_else(|| KernelError::refused(what(), "the object has no control for this kernel"))?;
    // libbpf has no call that only writes the operations into their map. Attaching does that first, and then
    // fails because the name is registered; the map is complete, and the existing link accepts it.
    if map.attach_struct_ops().is_ok() {
        return Err(KernelError::refused(what(), "the control was unloaded by another program meanwhile"));
    }
    take_log();
    let (link, map) = (link.as_fd().as_raw_fd(), map.as_fd().as_raw_fd());
    #[allow(
        unsafe_code,
        reason = "libbpf-rs has no safe call; both descriptors are open, and no options are passed"
    )]
    // SAFETY: both descriptors are open, and the pointer may be null.
    let result = unsafe { libbpf_rs::libbpf_sys::bpf_link_update(link, map, std::ptr::null()) };
    if result != 0 {
        return Err(KernelError::io(what())(std::io::Error::from_raw_os_error(-result)));
    }
    for file in MAPS.iter().map(|(_, file)| file).filter(|file| next.join(file).exists()) {
        fs::rename(next.join(file), dir.join(file)).map_err(KernelError::path("replace", &dir.join(file)))?;
    }
    remove_pins(next)
}

/// What [`unload`] removed, and what still uses it.
#[derive(Clone, Debug)]
pub struct Unloaded {
    /// The name that the control had in the kernel; `None` if it was not loaded and only a default was left
    /// of it.
    pub control: Option<String>,
    /// Defaults that were restored because they named this control.
    pub defaults: Vec<RestoredDefault>,
}

/// Removes a pinned control, given its name in the kernel or in the registry, and restores the default where
/// it was the default. Connections that use it keep it until they close. Fails if a process holds it, and if
/// it is still registered afterwards.
pub fn unload(name: &str) -> Result<Unloaded, KernelError> {
    let what = format!("unload {name}");
    must_be_privileged(&what)?;
    let lock = StateLock::acquire(&what)?;
    must_be_ours()?;
    let running = list()?;
    let Some(found) = running.iter().find(|r| r.name == name || r.startup == Some(name)) else {
        let defaults = restore_defaults_of(&lock, name)?;
        if !defaults.is_empty() {
            return Ok(Unloaded { control: None, defaults });
        }
        let names: Vec<&str> = running.iter().map(|r| r.name.as_str()).collect();
        let loaded = if names.is_empty() { "nothing".to_string() } else { names.join(", ") };
        let known = control_names(name).join(" or ");
        return Err(KernelError::refused(what, format!("{known} is not loaded; loaded: {loaded}")));
    };
    if let Some((pid, comm)) = found.held_by.first().filter(|_| !found.pinned) {
        let why = format!("process {pid} ({comm}) holds it: stop that process, which removes it");
        return Err(KernelError::refused(what, why));
    }
    let defaults = restore_defaults_of(&lock, &found.name)?;
    if found.pinned {
        remove_pins(&pin_dir(&found.name))?;
    } else {
        // Registered without a link (before 6.4, or by bpftool): it stays until the map's entry is deleted.
        for (id, _) in registered().iter().filter(|(_, n)| *n == found.name) {
            let map = MapHandle::from_map_id(*id).map_err(KernelError::bpf(&*what))?;
            map.delete(&0_u32.to_ne_bytes()).map_err(KernelError::bpf(&*what))?;
        }
    }
    // The kernel unregisters a moment after the last reference to the link is gone.
    for _ in 0..100 {
        if !available()?.contains(&found.name) {
            return Ok(Unloaded { control: Some(found.name.clone()), defaults });
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let why = match found.held_by.first() {
        Some((pid, comm)) => format!("unpinned, but process {pid} ({comm}) still holds it"),
        None => "unpinned, but it is still registered".to_string(),
    };
    Err(KernelError::refused(what, why))
}
