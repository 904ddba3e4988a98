//! The controls of this project that are registered in the kernel, whoever loaded them.

use crate::error::KernelError;
use crate::facts::Counts;
use crate::open::{Open, counts};
use crate::pins::{MAPS, pin_dir};
use crate::table::{Control, TABLE};
use crate::trial::is_arm_name;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, ProgramType};
use slowstart_files::read_kernel;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// A control that is registered.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its name in the kernel.
    pub name: String,
    /// The name of its startup in the registry, if that is in the table.
    pub startup: Option<&'static str>,
    /// True if it is pinned.
    pub pinned: bool,
    /// Process identifier and name of each process that holds it.
    pub held_by: Vec<(u32, String)>,
    /// Its counters, since it was loaded or last replaced; `None` if they cannot be read.
    pub counts: Option<Counts>,
}

/// A process that has maps of a control open.
pub(crate) struct Holder {
    pub(crate) pid: u32,
    pub(crate) comm: String,
    /// Identifiers of all its maps.
    pub(crate) maps: Vec<u32>,
}

/// Returns the value of the only entry of a map.
pub(crate) fn lookup(map: &impl MapCore) -> Option<Vec<u8>> {
    map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten()
}

/// Returns the names of all congestion controls that the kernel has.
pub(crate) fn available() -> Result<Vec<String>, KernelError> {
    let file = Path::new("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let text = read_kernel(file).map_err(KernelError::path("read", file))?;
    Ok(text.split_whitespace().map(str::to_string).collect())
}

/// Returns the names in the kernel that a name stands for: itself, or those of the startup of that name.
pub(crate) fn control_names(name: &str) -> Vec<String> {
    let all: Vec<String> = Control::all_of(name).flat_map(|c| [c.name(false), c.name(true)]).collect();
    if all.is_empty() { vec![name.to_string()] } else { all }
}

/// Returns identifier and registered name of each congestion-control map in the kernel.
pub(crate) fn registered() -> Vec<(u32, String)> {
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

/// The maps of controls that are registered, and the other processes that have maps open, at one time.
/// Finding them reads the names of all descriptors of the machine.
pub(crate) struct Holders {
    registered: Vec<(u32, String)>,
    processes: Vec<Holder>,
    /// Identifier and maps of each program of a congestion control.
    programs: Vec<(u32, Vec<u32>)>,
}

impl Holders {
    pub(crate) fn find() -> Self {
        let programs = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true))
            .filter(|p| p.ty == ProgramType::StructOps)
            .map(|p| (p.id, p.map_ids))
            .collect();
        Self { registered: registered(), processes: processes_with_maps().collect(), programs }
    }

    /// Returns the processes that hold a control.
    pub(crate) fn of(&self, control: &str) -> Vec<&Holder> {
        let maps = self.registered.iter().filter(|(_, name)| name == control);
        maps.flat_map(|(id, _)| self.processes.iter().filter(|p| p.maps.contains(id))).collect()
    }

    /// Opens one of a control's maps: the pinned one, or one that a holder has open. A holder may have several
    /// controls, as a trial has, and each has a map of this name: that of a control is used by its programs.
    pub(crate) fn map_of(&self, control: &str, map: &str) -> Option<MapHandle> {
        let (_, file) = MAPS.iter().find(|(name, _)| *name == map)?;
        MapHandle::from_pinned_path(pin_dir(control).join(file)).ok().or_else(|| {
            let used = self.maps_used_by(control);
            let held = self.of(control).into_iter().flat_map(|h| &h.maps).filter(|id| used.contains(id));
            held.filter_map(|id| MapHandle::from_map_id(*id).ok()).find(|m| m.name() == OsStr::new(map))
        })
    }

    /// Returns the identifiers of the maps that the programs of a control use.
    fn maps_used_by(&self, control: &str) -> Vec<u32> {
        let maps = self.registered.iter().filter(|(_, name)| name == control);
        let values = maps.filter_map(|(id, _)| lookup(&MapHandle::from_map_id(*id).ok()?));
        // There a function is the identifier of its program, as a word.
        let words: Vec<[u8; 8]> = values.flat_map(|v| v.as_chunks().0.to_vec()).collect();
        let its = |id: u32| words.contains(&u64::from(id).to_ne_bytes());
        self.programs.iter().filter(|(id, _)| its(*id)).flat_map(|(_, maps)| maps.clone()).collect()
    }
}

/// The other processes that have maps open.
pub(crate) fn processes_with_maps() -> impl Iterator<Item = Holder> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|p| holder(&p.path()))
}

/// Returns another process that has maps open, given its directory in `/proc`. The names of descriptors tell
/// which are maps: a server may have many thousand others.
fn holder(process: &Path) -> Option<Holder> {
    let pid: u32 = process.file_name()?.to_str()?.parse().ok()?;
    let is_map =
        |fd: &fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|to| to == Path::new("anon_inode:bpf-map"));
    let id_of = |fd: fs::DirEntry| {
        let text = read_kernel(process.join("fdinfo").join(fd.file_name())).ok()?;
        text.lines().find_map(|l| l.strip_prefix("map_id:")?.trim().parse().ok())
    };
    let fds = fs::read_dir(process.join("fd")).ok()?.flatten();
    let maps: Vec<u32> = fds.filter(is_map).filter_map(id_of).collect();
    if pid == std::process::id() || maps.is_empty() {
        return None;
    }
    let comm = read_kernel(process.join("comm")).unwrap_or_default();
    Some(Holder { pid, comm: comm.trim().to_string(), maps })
}

impl Running {
    /// Returns true if it is an arm of a trial, of any process.
    pub fn is_arm(&self) -> bool {
        is_arm_name(&self.name)
    }
}

/// Returns every control of this project that is registered, whoever loaded it.
pub fn list() -> Result<Vec<Running>, KernelError> {
    let all = Holders::find();
    let of = |name: String| {
        let pinned = pin_dir(&name).join("link").exists();
        let holders = all.of(&name);
        let maps = all.map_of(&name, ".data.counts").zip(all.map_of(&name, "conns"));
        let counts = maps.and_then(|(map, conns)| counts(&map, &Open::of(&conns)));
        let startup = TABLE.iter().find(|c| [c.name(false), c.name(true)].contains(&name)).map(|c| c.startup);
        let held_by = holders.into_iter().map(|h| (h.pid, h.comm.clone())).collect();
        Running { name, startup, pinned, held_by, counts }
    };
    Ok(available()?.into_iter().filter(|n| n.starts_with("ss_")).map(of).collect())
}
