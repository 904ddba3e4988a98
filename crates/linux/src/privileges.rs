//! Giving up privileges once what needed them is in the kernel.

use crate::error::KernelError;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Gives up every capability of this thread and of those it starts from now on, but `CAP_NET_ADMIN` where it is still
/// needed: to make another congestion control the default. What is loaded and held goes on, is read, and goes with its
/// holder as before: for that the kernel looks at the open files alone.
pub fn drop_privileges(keep_net_admin: bool) -> Result<(), KernelError> {
    let failed = |e: rustix::io::Errno| KernelError::io("drop privileges")(e.into());
    let wanted = if keep_net_admin { CapabilitySet::NET_ADMIN } else { CapabilitySet::empty() };
    let kept = wanted & capabilities(None).map_err(failed)?.effective;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(failed)
}
