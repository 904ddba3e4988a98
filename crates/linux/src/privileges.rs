//! Capabilities of this thread: required, and given up once they are no longer needed.

use crate::error::KernelError;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// A capability that a command may keep.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `CAP_NET_ADMIN`: restores the default congestion control, attaches to a cgroup.
    NetAdmin,
    /// `CAP_BPF`: attaches a program.
    Bpf,
}

/// Gives up every capability of this thread, and of threads it starts later, except those to keep. What is
/// loaded stays loaded, readable and bound to this process: the kernel checks only the open files for that.
pub fn drop_privileges(keep: &[Capability]) -> Result<(), KernelError> {
    let failed = |e: rustix::io::Errno| KernelError::io("drop privileges")(e.into());
    let wanted = keep.iter().fold(CapabilitySet::empty(), |all, c| {
        all | match c {
            Capability::NetAdmin => CapabilitySet::NET_ADMIN,
            Capability::Bpf => CapabilitySet::BPF,
        }
    });
    let kept = wanted & capabilities(None).map_err(failed)?.effective;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(failed)
}

/// True in the initial user namespace. In others a process holds capabilities over what they own only: over
/// networks, and not over BPF.
pub(crate) fn is_initial_user_namespace() -> bool {
    // Without the file the kernel has no user namespaces.
    let map = slowstart_files::read_kernel("/proc/self/uid_map");
    map.map_or(true, |m| m.split_whitespace().eq(["0", "0", "4294967295"]))
}

/// Fails unless this thread may change what is loaded.
pub(crate) fn must_be_privileged(what: &str) -> Result<(), KernelError> {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |c| c.effective);
    let has = |c: CapabilitySet| held.intersects(c | CapabilitySet::SYS_ADMIN);
    if has(CapabilitySet::BPF) && has(CapabilitySet::NET_ADMIN) {
        return Ok(());
    }
    Err(KernelError::refused(what, "not permitted: it needs CAP_BPF and CAP_NET_ADMIN, so run it as root"))
}
