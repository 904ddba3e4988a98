//! What this kernel and this process can do, what is missing, and the command that provides it.

use crate::error::KernelError;
use libbpf_rs::ReferencesType;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Struct};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs;

/// What a finding is needed for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Loading a startup.
    Load,
    /// `load --pin`, `select --pin` and replacement; loading works without it.
    Pin,
    /// `select`; loading works without it.
    Select,
}

/// One property of this kernel or process.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Name of the property.
    pub what: &'static str,
    /// What it is needed for.
    pub need: Need,
    /// True if it is present.
    pub present: bool,
    /// What was found, or what is missing.
    pub detail: String,
    /// The command or change that provides it; empty if it is present.
    pub mend: &'static str,
}

/// Everything that was looked at.
#[derive(Clone, Debug)]
pub struct Check {
    /// Release of the kernel, as `uname -r` prints it.
    pub release: String,
    /// The properties, those that loading needs first.
    pub findings: Vec<Finding>,
    /// True if a startup can be loaded.
    pub can_load: bool,
    /// True if the kernel has links for congestion controls (6.4): they can be pinned and replaced.
    pub links: bool,
    /// True if bpffs is mounted at `/sys/fs/bpf`.
    pub bpffs: bool,
    /// True if the start of transmission is an operation of its own (7.x).
    pub tx_start: bool,
    /// Number of arguments of the operation `cong_control`: 2 before 6.10, else 4; 0 if it is not known.
    pub control_arguments: usize,
}

/// What loading needs: programs (BPF), a congestion control (`NET_ADMIN`), reading the fields of a socket (PERFMON).
const CAPABILITIES: [(&str, CapabilitySet); 3] = [
    ("CAP_BPF", CapabilitySet::BPF),
    ("CAP_NET_ADMIN", CapabilitySet::NET_ADMIN),
    ("CAP_PERFMON", CapabilitySet::PERFMON),
];

const MOUNT_BPFFS: &str = "mount -t bpf bpf /sys/fs/bpf";

/// Major and minor of a release such as `6.18.44-fc`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl Check {
    /// Inspects the running kernel and this thread.
    pub fn new() -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
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
        let (bpffs, cgroup) = (is_bpffs(), mounted("cgroup2"));
        let recent = version(&release).is_some_and(|v| v >= (6, 1));
        let found = |what, need, present, yes: &str, no: &str, mend| Finding {
            what,
            need,
            present,
            detail: if present { yes } else { no }.to_string(),
            mend: if present { "" } else { mend },
        };
        let mut findings = vec![
            found(
                "kernel",
                Need::Load,
                recent,
                &release,
                "older than 6.1: its BPF congestion controls cannot call CUBIC",
                "run Linux 6.1 or newer",
            ),
            found(
                "BTF",
                Need::Load,
                btf.is_some(),
                "/sys/kernel/btf/vmlinux",
                "no /sys/kernel/btf/vmlinux",
                "run a kernel built with CONFIG_DEBUG_INFO_BTF=y",
            ),
            found(
                "CUBIC",
                Need::Load,
                function("cubictcp_cong_avoid"),
                "built in",
                "not built in, so its functions cannot be called",
                "run a kernel built with CONFIG_TCP_CONG_CUBIC=y",
            ),
        ];
        findings.extend(CAPABILITIES.map(|(name, cap)| {
            let present = held.intersects(cap | CapabilitySet::SYS_ADMIN);
            found(name, Need::Load, present, "held", "not held by this process", "run it as root (sudo)")
        }));
        let can_load = findings.iter().all(|f| f.present);
        findings.extend([
            found(
                "links",
                Need::Pin,
                links,
                "congestion controls can be pinned and replaced",
                "needs Linux 6.4: a control is loaded only as long as its loader runs",
                "run Linux 6.4 or newer",
            ),
            found("bpffs", Need::Pin, bpffs, "/sys/fs/bpf", "not mounted at /sys/fs/bpf", MOUNT_BPFFS),
            found(
                "cgroup v2",
                Need::Select,
                cgroup.is_some(),
                cgroup.as_deref().unwrap_or_default(),
                "not mounted",
                "mount -t cgroup2 none /sys/fs/cgroup",
            ),
        ]);
        Self { release, findings, can_load, links, bpffs, tx_start, control_arguments }
    }

    /// Returns the absent findings that `needed` applies to, each with what provides it.
    fn missing(&self, needed: impl Fn(Need) -> bool) -> String {
        let absent = self.findings.iter().filter(|f| !f.present && needed(f.need));
        let lines: Vec<String> =
            absent.map(|f| format!("{} is missing ({}): {}", f.what, f.detail, f.mend)).collect();
        lines.join("; ")
    }

    /// Fails with everything that is missing for loading.
    pub(crate) fn must_load(&self, what: &str) -> Result<(), KernelError> {
        if self.can_load {
            return Ok(());
        }
        Err(KernelError::refused(what, self.missing(|n| n == Need::Load)))
    }

    /// Fails with everything that is missing for pinning.
    pub(crate) fn must_pin(&self, what: &str) -> Result<(), KernelError> {
        if self.can_load && self.links && self.bpffs {
            return Ok(());
        }
        let missing = self.missing(|n| n != Need::Select);
        let alternative = if self.can_load { ". Without --pin it works here" } else { "" };
        Err(KernelError::refused(what, missing + alternative))
    }
}

impl Default for Check {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns where a filesystem of this type is mounted first.
fn mounted(kind: &str) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
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
