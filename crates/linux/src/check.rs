//! What this kernel and this process can do.

use crate::error::KernelError;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, Struct};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs;

/// One thing looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// Whether it is there.
    pub present: bool,
    /// What was found, or what is lost without it.
    pub detail: String,
}

/// What was found of this kernel.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its release, as `uname -r` has it.
    pub release: String,
    /// Everything looked at, in words.
    pub findings: Vec<Finding>,
    /// The loader can load.
    pub can_load: bool,
    /// Links: a control can be pinned and swapped (6.4).
    pub links: bool,
    /// A filesystem for pins is mounted.
    pub bpffs: bool,
    /// The beginning of sending is an operation of its own (7.x).
    pub tx_start: bool,
}

/// What loading needs: programs, a congestion control, and a look at the fields of a socket.
const CAPABILITIES: [(&str, CapabilitySet); 3] = [
    ("CAP_BPF", CapabilitySet::BPF),
    ("CAP_NET_ADMIN", CapabilitySet::NET_ADMIN),
    ("CAP_PERFMON", CapabilitySet::PERFMON),
];

/// Major and minor of a release such as `6.18.44-fc`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl Check {
    /// Looks.
    pub fn new() -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
        let held = capabilities(None).map_or(CapabilitySet::empty(), |c| c.effective);
        let btf = Btf::from_vmlinux().ok();
        let function = |name| btf.as_ref().is_some_and(|b| b.type_by_name::<Func<'_>>(name).is_some());
        let ops = btf.as_ref().and_then(|b| b.type_by_name::<Struct<'_>>("tcp_congestion_ops"));
        let tx_start =
            ops.is_some_and(|s| s.iter().any(|m| m.name.is_some_and(|n| n == "cwnd_event_tx_start")));
        let links =
            btf.as_ref().is_some_and(|b| b.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some());
        let bpffs = is_bpffs();
        let recent = version(&release).is_some_and(|v| v >= (6, 1));
        let mut findings = Vec::new();
        let mut find = |what, present: bool, yes: String, no: &str| {
            findings.push(Finding { what, present, detail: if present { yes } else { no.to_string() } });
            present
        };
        let mut can_load = find(
            "kernel",
            recent,
            release.clone(),
            "older than 6.1: its congestion controls cannot call CUBIC",
        );
        can_load &= find(
            "BTF",
            btf.is_some(),
            "/sys/kernel/btf/vmlinux".into(),
            "absent: the kernel was built without CONFIG_DEBUG_INFO_BTF",
        );
        can_load &= find(
            "CUBIC to build on",
            function("cubictcp_cong_avoid"),
            "cubictcp_* can be called".into(),
            "not built in: tcp_cubic must be part of the kernel (CONFIG_TCP_CONG_CUBIC=y)",
        );
        for (name, cap) in CAPABILITIES {
            can_load &= find(
                name,
                held.intersects(cap | CapabilitySet::SYS_ADMIN),
                "held".into(),
                "missing: run as root, or grant it (setcap, or AmbientCapabilities= of systemd)",
            );
        }
        find(
            "pinning and swapping",
            links,
            "yes".into(),
            "needs Linux 6.4: a control lives as long as its loader, and is not replaced while it does",
        );
        find(
            "bpffs",
            bpffs,
            "/sys/fs/bpf".into(),
            "not mounted, so nothing can be pinned: mount -t bpf bpf /sys/fs/bpf",
        );
        find(
            "cgroup v2",
            cgroup2().is_some(),
            cgroup2().unwrap_or_default(),
            "not mounted, so no service can be selected: mount -t cgroup2 none /sys/fs/cgroup",
        );
        Self { release, findings, can_load, links, bpffs, tx_start }
    }

    /// An error that names what is missing for loading.
    pub(crate) fn must_load(&self, what: &str) -> Result<(), KernelError> {
        if self.can_load {
            return Ok(());
        }
        let missing: Vec<String> = self
            .findings
            .iter()
            .take(3 + CAPABILITIES.len())
            .filter(|f| !f.present)
            .map(|f| format!("{} {}", f.what, f.detail))
            .collect();
        Err(KernelError::refused(what, missing.join("; ")))
    }

    /// An error that names what is missing for pinning.
    pub(crate) fn must_pin(&self, what: &str) -> Result<(), KernelError> {
        self.must_load(what)?;
        if !self.links {
            let why = format!("pinning needs Linux 6.4 (this is {}): do it without --pin", self.release);
            return Err(KernelError::refused(what, why));
        }
        if !self.bpffs {
            return Err(KernelError::refused(what, "no place for pins: mount -t bpf bpf /sys/fs/bpf"));
        }
        Ok(())
    }
}

impl Default for Check {
    fn default() -> Self {
        Self::new()
    }
}

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

fn cgroup2() -> Option<String> {
    mounted("cgroup2")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_and_not_text() {
        assert_eq!(version("6.18.44-fc"), Some((6, 18)));
        assert_eq!(version("6.1.0-40-amd64"), Some((6, 1)));
        assert_eq!(version("5.10"), Some((5, 10)));
        assert_eq!(version("next"), None);
        assert!(version("6.18.1") > version("6.4.9"));
    }
}
