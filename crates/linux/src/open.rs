//! Counts the open connections of a control: those that have storage in its map. A difference of starts and ends would be
//! wrong, because the kernel does not report every end (`docs/kernel.md`, "A thousand connections at a time").

use crate::bpf_log::keep_log;
use crate::error::KernelError;
use libbpf_rs::{Iter, Link, MapCore, ObjectBuilder};
use std::io;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/open.bpf.o"));

/// An iterator program attached to one map of connections.
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

    /// Returns the number of connections that have storage now.
    pub(crate) fn count(&self) -> Option<u64> {
        io::copy(&mut Iter::new(&self.0).ok()?, &mut io::sink()).ok()
    }
}
