//! Loading a startup into the kernel, holding it, pinning it, replacing it, listing what there is and removing it.
//!
//! A control that is held is there as long as the process that holds it (its link, on 6.4 and newer, goes with the last
//! file descriptor); one that is pinned, until it is unloaded or the machine restarts. In both cases connections that
//! use it when it goes keep it until they close: the kernel counts them.

use crate::bpf_log::{keep_log, take_log};
use crate::check::Check;
use crate::clock::clock;
use crate::error::KernelError;
use crate::facts::{Counts, Facts, Numbers};
use crate::open::Open;
use crate::table::{Control, TABLE};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, RingBuffer, RingBufferBuilder,
};
use slowstart::startup::AnyStartup;
use slowstart::units::Span;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

/// Where pinned controls stand, each in a folder of its name.
pub(crate) const PINS: &str = "/sys/fs/bpf/slowstart";
/// The maps pinned beside a link.
const MAPS: [(&str, &str); 4] =
    [(".data.counts", "counts"), (".data.watching", "watching"), ("events", "events"), ("conns", "conns")];

/// How long an object goes on telling one who asks no more.
const PATIENCE: Span = Span::secs(3);

/// What is to be loaded.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The startup's name in the registry.
    pub startup: String,
    /// With its parameters.
    pub algorithm: AnyStartup,
    /// Which of them somebody wrote.
    pub given: Vec<String>,
    /// Reno in place of CUBIC after it.
    pub reno: bool,
}

impl Spec {
    /// Reads `name:key=value,...` and the name of an avoidance.
    pub fn read(startup: &str, avoidance: &str) -> Result<Self, KernelError> {
        let (name, algorithm) = slowstart_lab::scenario::startup("startup", startup)
            .map_err(|e| KernelError::refused(startup, e.to_string()))?;
        let params = startup.split_once(':').map_or("", |(_, p)| p);
        let given = params.split(',').filter_map(|p| p.split_once('=')).map(|(k, _)| k.to_string()).collect();
        let reno = match avoidance {
            "cubic" => false,
            "reno" => true,
            _ => return Err(KernelError::refused(avoidance, "the kernel's avoidances are cubic and reno")),
        };
        if reno && name == "hystart" {
            return Err(KernelError::refused(
                "hystart with reno",
                "the kernel's HyStart is a part of its CUBIC",
            ));
        }
        Ok(Self { startup: name, algorithm, given, reno })
    }

    /// Its name in the kernel.
    pub fn name(&self) -> Result<String, KernelError> {
        Ok(Control::of(&self.startup)?.name(self.reno))
    }
}

/// A control that this process holds.
pub struct Held {
    /// Its name in the kernel.
    pub name: String,
    /// Dropped before the object: without a link of the kernel's own (before 6.4) it takes the registration back through
    /// the object's map.
    link: Option<Link>,
    object: Object,
    open: Open,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("name", &self.name).finish_non_exhaustive()
    }
}

fn lookup(map: &impl MapCore) -> Option<Vec<u8>> {
    map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten()
}

/// Says what an object is to tell, and until when (in nanoseconds of the monotonic clock).
fn listen(map: &impl MapCore, level: u64, until: u64) -> libbpf_rs::Result<()> {
    let value = [level.to_ne_bytes(), until.to_ne_bytes()].concat();
    map.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY)
}

/// Whether somebody is being told.
fn listens(map: &impl MapCore) -> bool {
    let value = lookup(map).unwrap_or_default();
    let n = &mut Numbers(&value);
    let (level, until) = (n.u64().unwrap_or(0), n.u64().unwrap_or(0));
    level > 0 && until > clock().0
}

impl Held {
    fn map(&self, name: &str) -> Option<impl MapCore> {
        self.object.maps().find(|m| m.name() == name)
    }

    /// What it counted.
    pub fn counts(&self) -> Option<Counts> {
        Counts::read(&lookup(&self.map(".data.counts")?)?, self.open.count()?)
    }

    /// From now on tell of nothing (0), of events (1), or of each ACK too (2).
    pub fn watch(&self, level: u32) -> Result<(), KernelError> {
        let what = || format!("{}: watching", self.name);
        let map = self.map(".data.watching").ok_or_else(|| KernelError::refused(what(), "no such map"))?;
        listen(&map, level.into(), u64::MAX).map_err(KernelError::bpf(what()))
    }

    /// Hands each event to `each`, when the ring is polled.
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

/// Opens the object of a startup, fits it to this kernel and writes its parameters; loads it, and registers nothing yet.
fn prepare(spec: &Spec, check: &Check, name: &str) -> Result<Object, KernelError> {
    let control = Control::of(&spec.startup)?;
    let what = format!("load {name}");
    check.must_load(&what)?;
    let constants = control.constants(&spec.algorithm, &spec.given)?;
    keep_log();
    let mut object =
        ObjectBuilder::default().open_memory(control.object).map_err(KernelError::bpf(&*what))?;
    let ours = if check.tx_start { "ops_v7" } else { "ops" };
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
        }
    }
    let other: &[&str] = if check.tx_start { &["ss_event"] } else { &["ss_event_v7", "ss_tx_start"] };
    for mut prog in object.progs_mut() {
        if other.iter().any(|o| prog.name() == *o) {
            prog.set_autoload(false);
        }
    }
    object.load().map_err(KernelError::bpf(what))
}

/// Puts a name in place of the one compiled in. Nothing else in the operations is text.
fn rename(value: &mut [u8], from: &str, to: &str) {
    let from = [from.as_bytes(), &[0]].concat();
    if let Some(at) = value.windows(from.len()).position(|w| w == from) {
        let end = value.len().min(at + 16);
        value[at..end].fill(0);
        value[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
}

fn available() -> Result<Vec<String>, KernelError> {
    let file = Path::new("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let text = fs::read_to_string(file).map_err(KernelError::path("read", file))?;
    Ok(text.split_whitespace().map(str::to_string).collect())
}

/// Loads a startup and registers it, for as long as the answer lives.
pub fn load(spec: &Spec) -> Result<Held, KernelError> {
    load_as(spec, spec.name()?)
}

/// The same under a name of one's own, of at most 15 characters: a study neither meets nor disturbs what is loaded.
pub fn load_as(spec: &Spec, name: String) -> Result<Held, KernelError> {
    if name.len() > 15 {
        return Err(KernelError::refused(name, "longer than the 15 characters that the kernel takes"));
    }
    let check = Check::new();
    check.must_load(&format!("load {name}"))?;
    if available()?.contains(&name) {
        let why = "already loaded: unload it first, or replace it with --pin if it is pinned";
        return Err(KernelError::refused(name, why));
    }
    let object = prepare(spec, &check, &name)?;
    register(object, name)
}

fn register(mut object: Object, name: String) -> Result<Held, KernelError> {
    let conns = object.maps().find(|m| m.name() == "conns");
    let open =
        Open::of(&conns.ok_or_else(|| KernelError::refused(&*name, "the object keeps no connections"))?)?;
    let attached = object
        .maps_mut()
        .find(|m| m.map_type() == MapType::StructOps && m.autocreate())
        .map(|mut m| m.attach_struct_ops());
    match attached {
        Some(Ok(link)) => Ok(Held { name, object, open, link: Some(link) }),
        Some(Err(e)) => Err(KernelError::bpf(format!("register {name}"))(e)),
        None => Err(KernelError::refused(name, "the object holds no control for this kernel")),
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(PINS).join(name)
}

/// Removes a folder of pins; what was not there is no error.
pub(crate) fn remove(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let _ = fs::remove_file(entry.path());
    }
    let _ = fs::remove_dir(dir);
}

fn pin_maps(object: &mut Object, dir: &Path) -> Result<(), KernelError> {
    fs::create_dir_all(dir).map_err(KernelError::path("create", dir))?;
    for mut map in object.maps_mut() {
        let file = MAPS.iter().find(|(name, _)| map.name() == *name).map(|(_, file)| dir.join(file));
        if let Some(file) = file {
            map.pin(&file).map_err(KernelError::bpf(format!("pin {}", file.display())))?;
        }
    }
    Ok(())
}

/// Loads a startup and pins it, so that it outlives this process. Where a control of that name is pinned already, it is
/// replaced: connections keep what they began with, new ones take the new. Answers whether one was replaced.
pub fn load_pinned(spec: &Spec) -> Result<(String, bool), KernelError> {
    let check = Check::new();
    let name = spec.name()?;
    check.must_pin(&format!("pin {name}"))?;
    let (dir, next) = (folder(&name), folder(&format!("{name}-next")));
    remove(&next);
    let swaps = dir.join("link").exists();
    let done = if swaps { swap(spec, &check, &name, &dir, &next) } else { pin(spec, &dir) };
    if done.is_err() {
        remove(&next);
        if !swaps {
            remove(&dir);
        }
    }
    done.map(|()| (name, swaps))
}

fn pin(spec: &Spec, dir: &Path) -> Result<(), KernelError> {
    let mut held = load(spec)?;
    remove(dir);
    pin_maps(&mut held.object, dir)?;
    let link = held.link.as_mut().ok_or_else(|| KernelError::refused("pin", "no link"))?;
    link.pin(dir.join("link")).map_err(KernelError::bpf(format!("pin {}", dir.display())))
}

fn swap(spec: &Spec, check: &Check, name: &str, dir: &Path, next: &Path) -> Result<(), KernelError> {
    let what = || format!("replace {name}");
    let link = Link::open(dir.join("link")).map_err(KernelError::bpf(what()))?;
    let mut object = prepare(spec, check, name)?;
    pin_maps(&mut object, next)?;
    let mut map = object
        .maps_mut()
        .find(|m| m.map_type() == MapType::StructOps && m.autocreate())
        .ok_or_else(|| KernelError::refused(what(), "the object holds no control for this kernel"))?;
    // libbpf writes the operations into their map on the way to a link of their own, which the kernel then refuses, as the
    // name is taken. The map is ready all the same, and the link that is there takes it.
    if map.attach_struct_ops().is_ok() {
        return Err(KernelError::refused(what(), "it was unloaded by somebody else meanwhile"));
    }
    take_log();
    let (link, map) = (link.as_fd().as_raw_fd(), map.as_fd().as_raw_fd());
    #[allow(
        unsafe_code,
        reason = "libbpf-rs has no safe call; both descriptors are open, and no options are passed"
    )]
    let result = unsafe { libbpf_rs::libbpf_sys::bpf_link_update(link, map, std::ptr::null()) };
    if result != 0 {
        return Err(KernelError::io(what())(std::io::Error::from_raw_os_error(-result)));
    }
    for (_, file) in MAPS {
        let _ = fs::remove_file(dir.join(file));
        fs::rename(next.join(file), dir.join(file)).map_err(KernelError::path("replace", &dir.join(file)))?;
    }
    remove(next);
    Ok(())
}

/// A control that is registered.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its name in the kernel.
    pub name: String,
    /// The startup it is, in the registry's words, if it is one of ours.
    pub startup: Option<&'static str>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// The processes that hold it.
    pub held_by: Vec<(u32, String)>,
    /// What it counted; since the last replacement, where it was replaced.
    pub counts: Option<Counts>,
}

/// Maps of congestion controls in the kernel, with the names they register.
fn registered() -> Vec<(u32, String)> {
    let named = |map: &MapHandle| {
        let value = lookup(map)?;
        let name = value.windows(3).position(|w| w == b"ss_").map(|at| &value[at..])?;
        let end = name.iter().position(|b| *b == 0)?;
        Some(String::from_utf8_lossy(&name[..end]).into_owned())
    };
    MapInfoIter::default()
        .filter(|m| m.ty == MapType::StructOps)
        .filter_map(|m| Some((m.id, named(&MapHandle::from_map_id(m.id).ok()?)?)))
        .collect()
}

/// Processes with this map open, and the maps each has open.
fn holders(id: u32) -> Vec<(u32, String, Vec<u32>)> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let maps: Vec<u32> = fs::read_dir(process.path().join("fdinfo"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|fd| fs::read_to_string(fd.path()).ok())
            .filter_map(|text| text.lines().find_map(|l| l.strip_prefix("map_id:")?.trim().parse().ok()))
            .collect();
        if pid != std::process::id() && maps.contains(&id) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push((pid, name.trim().to_string(), maps));
        }
    }
    found
}

/// One of a control's maps: where it is pinned, or among those that its holders have open.
fn map_of(control: &str, held: &[u32], map: &str) -> Option<MapHandle> {
    let (_, file) = MAPS.iter().find(|(name, _)| *name == map)?;
    MapHandle::from_pinned_path(folder(control).join(file)).ok().or_else(|| {
        held.iter().filter_map(|id| MapHandle::from_map_id(*id).ok()).find(|m| m.name() == OsStr::new(map))
    })
}

/// Every control of ours that is registered, whoever loaded it.
pub fn list() -> Result<Vec<Running>, KernelError> {
    let maps = registered();
    let of = |name: String| {
        let pinned = folder(&name).join("link").exists();
        let ids = maps.iter().filter(|(_, n)| *n == name).map(|(id, _)| *id);
        let holders: Vec<_> = ids.flat_map(holders).collect();
        let held: Vec<u32> = holders.iter().flat_map(|(_, _, maps)| maps).copied().collect();
        let counts = map_of(&name, &held, ".data.counts")
            .zip(map_of(&name, &held, "conns"))
            .and_then(|(counts, conns)| Counts::read(&lookup(&counts)?, Open::of(&conns).ok()?.count()?));
        let startup = TABLE.iter().find(|c| [c.name(false), c.name(true)].contains(&name)).map(|c| c.startup);
        let held_by = holders.into_iter().map(|(pid, comm, _)| (pid, comm)).collect();
        Running { name, startup, pinned, held_by, counts }
    };
    Ok(available()?.into_iter().filter(|n| n.starts_with("ss_")).map(of).collect())
}

/// Hears what the controls that are loaded tell of their connections; told of nothing more when it goes.
pub struct ControlEvents<'a> {
    watching: Vec<MapHandle>,
    level: u64,
    ring: Option<RingBuffer<'a>>,
}

impl std::fmt::Debug for ControlEvents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlEvents").field("controls", &self.watching.len()).finish_non_exhaustive()
    }
}

impl ControlEvents<'_> {
    /// Hands over what has been told. An object tells nothing more to one who has not asked for a few seconds.
    pub fn poll(&self) -> Result<(), KernelError> {
        for map in &self.watching {
            listen(map, self.level, (clock() + PATIENCE).0).map_err(KernelError::bpf("watch controls"))?;
        }
        self.ring.as_ref().map_or(Ok(()), RingBuffer::consume).map_err(KernelError::bpf("read events"))
    }
}

impl Drop for ControlEvents<'_> {
    fn drop(&mut self) {
        for map in &self.watching {
            let _ = listen(map, 0, 0);
        }
    }
}

/// Asks every control of ours that is loaded now, whoever loaded it, to tell of its connections' beginnings, losses and
/// ends, or of each ACK too; `each` is told the control's name with them.
pub fn watch_controls<'a>(
    acks: bool,
    each: impl FnMut(&str, Facts) + 'a,
) -> Result<ControlEvents<'a>, KernelError> {
    let what = "watch controls";
    let names: Vec<String> = available()?.into_iter().filter(|n| n.starts_with("ss_")).collect();
    let maps = registered();
    let each = std::rc::Rc::new(std::cell::RefCell::new(each));
    let mut ring = RingBufferBuilder::new();
    let (mut watching, mut events) = (Vec::new(), Vec::new());
    for name in names {
        let ids: Vec<u32> = maps.iter().filter(|(_, n)| *n == name).map(|(id, _)| *id).collect();
        let held: Vec<u32> = ids.into_iter().flat_map(holders).flat_map(|(_, _, maps)| maps).collect();
        let both = map_of(&name, &held, ".data.watching").zip(map_of(&name, &held, "events"));
        // One loaded by another version of this program, or told to somebody else (a study), is read as a control of the
        // kernel's own: a record has one reader.
        if let Some((level, told)) = both.filter(|(level, _)| level.value_size() == 16 && !listens(level)) {
            watching.push(level);
            events.push((name, told));
        }
    }
    for (name, map) in &events {
        let (name, each) = (name.clone(), std::rc::Rc::clone(&each));
        ring.add(map, move |record| {
            if let Some(f) = Facts::read(record) {
                (each.borrow_mut())(&name, f);
            }
            0
        })
        .map_err(KernelError::bpf(what))?;
    }
    let ring = if watching.is_empty() { None } else { Some(ring.build().map_err(KernelError::bpf(what))?) };
    let exits = ControlEvents { watching, level: if acks { 2 } else { 1 }, ring };
    exits.poll()?;
    Ok(exits)
}

/// Removes a control, by its name in the kernel or in the registry. Connections that use it keep it until they close.
pub fn unload(name: &str) -> Result<String, KernelError> {
    let running = list()?;
    let wanted = |r: &&Running| r.name == name || r.startup == Some(name);
    let Some(found) = running.iter().find(wanted) else {
        let names: Vec<&str> = running.iter().map(|r| r.name.as_str()).collect();
        let all =
            if names.is_empty() { "nothing is".to_string() } else { format!("{} are", names.join(", ")) };
        return Err(KernelError::refused(name, format!("not loaded: {all}")));
    };
    if found.pinned {
        remove(&folder(&found.name));
        // The kernel lets go of a link a moment after its last name is gone.
        for _ in 0..100 {
            if !available()?.contains(&found.name) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    } else if let Some((pid, comm)) = found.held_by.first() {
        let why = format!("held by process {pid} ({comm}): stop that, and it goes");
        return Err(KernelError::refused(name, why));
    } else {
        // Registered without a link (before 6.4, or by bpftool): it stays until somebody deletes it.
        for (id, _) in registered().iter().filter(|(_, n)| *n == found.name) {
            let map = MapHandle::from_map_id(*id).map_err(KernelError::bpf(format!("unload {name}")))?;
            map.delete(&0_u32.to_ne_bytes()).map_err(KernelError::bpf(format!("unload {name}")))?;
        }
    }
    Ok(found.name.clone())
}
