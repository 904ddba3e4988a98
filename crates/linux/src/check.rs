//! What this kernel and this process can do, what is missing, the command that provides it, and which
//! commands work.

use crate::bpf_log::{keep_log, take_log};
use crate::error::KernelError;
use crate::load::{Spec, load_as};
use crate::open::Open;
use crate::privileges::is_initial_user_namespace;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Struct};
use libbpf_rs::{MapCore, Object, ObjectBuilder, ReferencesType};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use rustix::thread::{CapabilitySet, capabilities};
use slowstart_files::read_kernel;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/check.bpf.o"));

/// A command of `slowstart kernel`, or one of its options.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `kernel load`: attaches a startup until the system restarts or it is unloaded.
    Load,
    /// `load --pin`, and replacement.
    Pin,
    /// `kernel list`: what is loaded, and how many connections use it.
    List,
    /// `kernel select`: a startup for the connections of a cgroup, while the command runs.
    Select,
    /// `kernel select --pin`: the same, kept after the command ends.
    SelectPin,
    /// `kernel watch`: the connections of a running kernel.
    Watch,
    /// `kernel trial`: arms among the connections of a service.
    Trial,
    /// `kernel memory`: what startups remember of their peers.
    Memory,
}

use Verb::{List, Load, Memory, Pin, Select, SelectPin, Trial, Watch};

impl Verb {
    /// All verbs, in the order of the help.
    pub const ALL: [Self; 8] = [Load, Pin, List, Select, SelectPin, Watch, Trial, Memory];

    /// Returns it as it is written after `slowstart kernel`.
    pub const fn name(self) -> &'static str {
        match self {
            Load => "load",
            Pin => "load --pin",
            List => "list",
            Select => "select",
            SelectPin => "select --pin",
            Watch => "watch",
            Trial => "trial",
            Memory => "memory",
        }
    }
}

/// Whether a command works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works on this system.
    Works,
    /// It works but for this.
    Lacks(Vec<&'static str>),
    /// It does not work, because of each of these.
    Fails(Vec<String>),
}

/// One property of this kernel or process.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Name of the property.
    pub what: &'static str,
    /// True if it is present.
    pub present: bool,
    /// What was found, or what is missing: of what was tried, the kernel's error.
    pub detail: String,
    /// The command or change that provides it; empty if it is present, or if none is known.
    pub mend: &'static str,
    /// Commands that do not work without it.
    needed_by: &'static [Verb],
    /// Commands that work without it, each with what it lacks then.
    lacking: &'static [(Verb, &'static str)],
}

impl Finding {
    fn new(what: &'static str, present: bool, yes: &str, no: &str, mend: &'static str) -> Self {
        let (detail, mend) = if present { (yes, "") } else { (no, mend) };
        Self { what, present, detail: detail.to_string(), mend, needed_by: &[], lacking: &[] }
    }

    /// What came of a try.
    fn tried<T>(what: &'static str, result: &Result<T, KernelError>) -> Self {
        let detail = match result {
            Ok(_) => String::new(),
            Err(KernelError::Bpf { cause, .. }) => format!("{cause:#}"),
            Err(KernelError::Refused { why, .. }) => why.clone(),
            Err(e) => e.to_string(),
        };
        Self::new(what, result.is_ok(), "loads", &detail, "")
    }

    fn needed_by(self, needed_by: &'static [Verb]) -> Self {
        Self { needed_by, ..self }
    }

    fn lacking(self, lacking: &'static [(Verb, &'static str)]) -> Self {
        Self { lacking, ..self }
    }

    /// Returns why a command that needs it does not work.
    fn reason(&self) -> String {
        format!("{} ({})", self.what, self.detail)
    }
}

/// Everything that was looked at.
#[derive(Clone, Debug)]
pub struct Check {
    /// Release of the kernel, as `uname -r` prints it.
    pub release: String,
    /// Properties of the kernel and of this process, those that loading needs first.
    pub findings: Vec<Finding>,
    /// Types of programs and maps, each loaded once; empty unless they were tried ([`Self::tried`]).
    pub tries: Vec<Finding>,
    /// True if the kernel has links for congestion controls (6.4): they can be pinned and replaced.
    pub links: bool,
    /// True if the start of transmission is an operation of its own (7.x).
    pub tx_start: bool,
    /// Number of arguments of the operation `cong_control`: 2 before 6.10, else 4; 0 if it is not known.
    pub control_arguments: usize,
}

/// Arms of a trial that need `load`.
const STARTUP_ARMS: (Verb, &str) = (Trial, "arms that are startups of this project");

/// For root alone, as systemd mounts it: without the mode every user can make directories there.
const MOUNT_BPFFS: &str = "mount -t bpf -o mode=0700 bpf /sys/fs/bpf";

/// Major and minor of a release such as `6.18.44-fc`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl Check {
    /// Inspects the running kernel and this thread.
    pub fn new() -> Self {
        let release = read_kernel("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
        let held = capabilities(None).map_or(CapabilitySet::empty(), |c| c.effective);
        let btf = Btf::from_vmlinux().ok();
        let function = |name| btf.as_ref().is_some_and(|b| b.type_by_name::<Func<'_>>(name).is_some());
        let ops = btf.as_ref().and_then(|b| b.type_by_name::<Struct<'_>>("tcp_congestion_ops"));
        let tx_start = ops
            .as_ref()
            .is_some_and(|s| s.iter().any(|m| m.name.is_some_and(|n| n == "cwnd_event_tx_start")));
        let control_arguments = ops
            .as_ref()
            .and_then(|s| s.iter().find(|m| m.name.is_some_and(|n| n == "cong_control")).map(|m| m.ty))
            .and_then(|ty| btf.as_ref()?.type_by_id::<Ptr<'_>>(ty))
            .and_then(|p| FuncProto::try_from(p.referenced_type()).ok())
            .map_or(0, |f| f.iter().count());
        let links =
            btf.as_ref().is_some_and(|b| b.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some());
        let cgroup = mounted("cgroup2");
        let initial = is_initial_user_namespace();
        let capability = |name, cap: CapabilitySet| {
            let held = held.intersects(cap | CapabilitySet::SYS_ADMIN);
            let no = if held { "held in a user namespace only" } else { "not held by this process" };
            Finding::new(name, held && initial, "held", no, "run it as root (sudo)")
        };
        let recent = version(&release).is_some_and(|v| v >= (6, 1));
        let findings = vec![
            Finding::new(
                "kernel",
                recent,
                &release,
                "older than 6.1: its BPF congestion controls cannot call CUBIC",
                "run Linux 6.1 or newer",
            )
            .needed_by(&[Load, Pin, Select, SelectPin, Watch, Trial]),
            Finding::new(
                "BTF",
                btf.is_some(),
                "/sys/kernel/btf/vmlinux",
                "no /sys/kernel/btf/vmlinux",
                "run a kernel built with CONFIG_DEBUG_INFO_BTF=y",
            )
            .needed_by(&[Load, Pin, Watch, Trial]),
            Finding::new(
                "CUBIC",
                function("cubictcp_cong_avoid"),
                "built in",
                "not built in, so its functions cannot be called",
                "run a kernel built with CONFIG_TCP_CONG_CUBIC=y",
            )
            .needed_by(&[Load, Pin])
            .lacking(&[STARTUP_ARMS]),
            capability("CAP_BPF", CapabilitySet::BPF)
                .needed_by(&[Load, Pin, Select, SelectPin, Watch, Trial, Memory])
                .lacking(&[(List, "counts and selections")]),
            capability("CAP_NET_ADMIN", CapabilitySet::NET_ADMIN)
                .needed_by(&[Load, Pin, Select, SelectPin, Trial]),
            capability("CAP_PERFMON", CapabilitySet::PERFMON)
                .needed_by(&[Load, Pin, Watch, Trial])
                .lacking(&[(List, "the number of open connections above 0")]),
            capability("CAP_SYS_ADMIN", CapabilitySet::SYS_ADMIN).lacking(&[
                (List, "counts of controls that are not pinned"),
                (Memory, "controls that are not pinned"),
            ]),
            Finding::new(
                "links",
                links,
                "congestion controls can be pinned and replaced",
                "needs Linux 6.4: a control is loaded only as long as its loader runs",
                "run Linux 6.4 or newer",
            )
            .needed_by(&[Pin])
            .lacking(&[(Load, "removal when it is killed: `unload` removes the control")]),
            Finding::new("bpffs", is_bpffs(), "/sys/fs/bpf", "not mounted at /sys/fs/bpf", MOUNT_BPFFS)
                .needed_by(&[Pin, SelectPin]),
            Finding::new(
                "cgroup v2",
                cgroup.is_some(),
                cgroup.as_deref().unwrap_or_default(),
                "not mounted",
                "mount -t cgroup2 none /sys/fs/cgroup",
            )
            .needed_by(&[Select, SelectPin, Trial]),
        ];
        Self { release, findings, tries: Vec::new(), links, tx_start, control_arguments }
    }

    /// Finds what the machine has, and loads a program and a map of each type that a command needs, to find out which of
    /// them the kernel refuses. Nothing stays loaded. For a moment a congestion control is registered, which
    /// nothing uses.
    pub fn tried() -> Self {
        let name = format!("ss_{:x}_check", std::process::id());
        let control = Spec::read("standard", "cubic").and_then(|spec| load_as(&spec, name));
        let storage = try_map("sk_storage");
        let iterator = |of: fn(&libbpf_rs::Map<'_>) -> Result<libbpf_rs::Link, KernelError>| {
            let object =
                storage.as_ref().map_err(|e| KernelError::refused("map sk_storage", e.to_string()))?;
            let map = object.maps().find(|m| m.name() == "sk_storage");
            map.map_or_else(|| Err(KernelError::refused("map sk_storage", "not in the object")), |m| of(&m))
        };
        let over_map = Finding::tried("iter/bpf_sk_storage_map", &iterator(|m| Open::iterate(m)));
        let over_sockets = Finding::tried("iter/tcp", &iterator(|m| Open::walk(m)));
        let (over_map, over_sockets) = match (over_map.present, over_sockets.present) {
            (true, _) => (over_map, over_sockets),
            (false, true) => (over_map.lacking(&ONE_NAMESPACE), over_sockets),
            (false, false) => (over_map.lacking(&NUMBER_OPEN), over_sockets),
        };
        let tries = vec![
            Finding::tried("struct_ops", &control).needed_by(&[Load, Pin]).lacking(&[STARTUP_ARMS]),
            Finding::tried("map ringbuf", &try_map("ringbuf")).needed_by(&[Load, Pin, Watch, Trial]),
            Finding::tried("map lru_hash", &try_map("lru_hash"))
                .needed_by(&[Memory])
                .lacking(&[(Load, "stateful and careful-resume, which have path memory")]),
            Finding::tried("tp_btf", &try_program("tp_btf", "try_tp_btf")).needed_by(&[Watch]),
            Finding::tried("sockops", &try_program("sockops", "try_sockops"))
                .needed_by(&[Select, SelectPin, Trial]),
            Finding::tried("cgroup_skb", &try_program("cgroup_skb", "try_cgroup_skb")).needed_by(&[Trial]),
            Finding::tried("cgroup/setsockopt", &try_program("cgroup/setsockopt", "try_setsockopt"))
                .lacking(&[(Trial, "programs that set the control which their connection has")]),
            over_map,
            over_sockets,
            Finding::tried("map sk_storage", &storage).needed_by(&[Load, Pin, Watch, Trial]),
        ];
        Self { tries, ..Self::new() }
    }

    /// Returns whether a command works, as far as was looked at.
    pub fn verdict(&self, verb: Verb) -> Verdict {
        let absent = || self.findings.iter().chain(&self.tries).filter(|f| !f.present);
        let why: Vec<String> =
            absent().filter(|f| f.needed_by.contains(&verb)).map(Finding::reason).collect();
        if !why.is_empty() {
            return Verdict::Fails(why);
        }
        let mut lacks: Vec<&str> =
            absent().flat_map(|f| f.lacking).filter(|(v, _)| *v == verb).map(|(_, what)| *what).collect();
        lacks.dedup();
        if lacks.is_empty() { Verdict::Works } else { Verdict::Lacks(lacks) }
    }

    /// Fails with everything that is missing for a command, each with what provides it.
    pub(crate) fn must(&self, verb: Verb, what: &str) -> Result<(), KernelError> {
        let absent = |verb: Verb| {
            let all = self.findings.iter().filter(move |f| !f.present && f.needed_by.contains(&verb));
            all.map(|f| format!("{} is missing ({}): {}", f.what, f.detail, f.mend)).collect::<Vec<_>>()
        };
        let missing = absent(verb).join("; ");
        if missing.is_empty() {
            return Ok(());
        }
        let unpinned = match verb {
            Pin => absent(Load).is_empty(),
            SelectPin => absent(Select).is_empty(),
            _ => false,
        };
        let alternative = if unpinned { ". Without --pin it works here" } else { "" };
        Err(KernelError::refused(what, missing + alternative))
    }
}

const NUMBER_OPEN: [(Verb, &str); 2] =
    [(Load, "the number of open connections above 0"), (List, "the number of open connections above 0")];
const ONE_NAMESPACE: [(Verb, &str); 2] = [
    (Load, "the number of open connections, unless all are in its network namespace"),
    (List, "the number of open connections, unless all are in its network namespace"),
];

fn open_object() -> Result<libbpf_rs::OpenObject, KernelError> {
    keep_log();
    ObjectBuilder::default().open_memory(OBJECT).map_err(KernelError::bpf("check"))
}

/// Makes one map.
fn try_map(name: &'static str) -> Result<Object, KernelError> {
    let mut object = open_object()?;
    for mut program in object.progs_mut() {
        program.set_autoload(false);
    }
    for mut map in object.maps_mut().filter(|m| m.name() != name) {
        map.set_autocreate(false).map_err(KernelError::bpf("check"))?;
    }
    let made = object.load().map_err(KernelError::bpf(name));
    take_log();
    made
}

/// True if the kernel loads the program that sees which control a program sets.
pub(crate) fn sees_choices() -> bool {
    let loads = try_program("cgroup/setsockopt", "try_setsockopt").is_ok();
    take_log();
    loads
}

/// Loads one program, and attaches it if that affects nothing else.
fn try_program(name: &'static str, function: &str) -> Result<(), KernelError> {
    let mut object = open_object()?;
    for mut map in object.maps_mut() {
        map.set_autocreate(false).map_err(KernelError::bpf("check"))?;
    }
    for mut program in object.progs_mut().filter(|p| p.name() != function) {
        program.set_autoload(false);
    }
    let object = object.load().map_err(KernelError::bpf(name))?;
    // A program of a tracepoint that does nothing.
    if let Some(program) = object.progs_mut().find(|p| p.name() == function && name == "tp_btf") {
        drop(program.attach().map_err(KernelError::bpf(name))?);
    }
    Ok(())
}

impl Default for Check {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns where a filesystem of this type is mounted first.
fn mounted(kind: &str) -> Option<String> {
    let mounts = read_kernel("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|l| {
        let mut parts = l.split(' ');
        let (place, found) = (parts.nth(1)?, parts.next()?);
        (found == kind).then(|| place.to_string())
    })
}

fn is_bpffs() -> bool {
    statfs("/sys/fs/bpf").is_ok_and(|s| s.filesystem_type() == BPF_FS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-fc"), Some((6, 18)));
        assert_eq!(version("6.1.0-40-amd64"), Some((6, 1)));
        assert_eq!(version("5.10"), Some((5, 10)));
        assert_eq!(version("next"), None);
        assert!(version("6.18.1") > version("6.4.9"));
    }
}
