//! How many connections a control has. The kernel is asked which have storage, since a count of ends would be wrong by
//! each end that the kernel does not tell a control of (`docs/kernel.md`, "A thousand connections at a time").

use crate::bpf_log::keep_log;
use crate::error::KernelError;
use libbpf_rs::{Iter, Link, MapCore, ObjectBuilder};
use std::io;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/open.bpf.o"));

/// The connections that have storage in one map.
pub(crate) struct Open(Link);

impl Open {
    pub(crate) fn of(conns: &impl MapCore) -> Result<Self, KernelError> {
        let what = "count connections";
        keep_log();
        let object = ObjectBuilder::default().open_memory(OBJECT).map_err(KernelError::bpf(what))?;
        let object = object.load().map_err(KernelError::bpf(what))?;
        let each = object.progs_mut().next().ok_or_else(|| KernelError::refused(what, "no such program"))?;
        each.attach_iter(conns.as_fd()).map(Self).map_err(KernelError::bpf(what))
    }

    /// How many there are now.
    pub(crate) fn count(&self) -> Option<u64> {
        io::copy(&mut Iter::new(&self.0).ok()?, &mut io::sink()).ok()
    }
}
