//! Counts the open connections of a control: those that have storage in its map.
//!
//! An iterator over that map finds them all. Where the kernel refuses it, a walk over the TCP sockets of this
//! thread's network namespace finds some of them and so never too many; starts minus ends are never too few,
//! because the kernel does not report every end (`docs/evidence/kernel.md`, "A thousand connections at a
//! time"). If both are equal, they are the number; otherwise it is unknown.

use crate::bpf_log::{keep_log, take_log};
use crate::error::KernelError;
use crate::facts::Counts;
use crate::list::lookup;
use libbpf_rs::{Iter, Link, MapCore, ObjectBuilder};
use slowstart_files::MOST_REPORT;
use std::collections::BTreeSet;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/open.bpf.o"));

/// For tests: refuses the iterator over the map if it is set, and the walk too if it is `all`.
const REFUSE: &str = "SLOWSTART_REFUSE_ITERATOR";

/// How often the walk is compared with starts minus ends, which change while it runs.
const ATTEMPTS: usize = 3;

/// How the connections of a control are found.
pub(crate) enum Open {
    /// The iterator over its map.
    Map(Link),
    /// The walk over the sockets of a network namespace.
    Walk(Link),
    /// The kernel refuses both.
    Unknown,
}

impl Open {
    /// Takes the best way that the kernel permits.
    pub(crate) fn of(conns: &impl MapCore) -> Self {
        let open = Self::iterate(conns).map(Self::Map).or_else(|_| Self::walk(conns).map(Self::Walk));
        // What the kernel said of one that it refused belongs to no later error.
        take_log();
        open.unwrap_or(Self::Unknown)
    }

    /// Attaches the iterator over a map of connections.
    pub(crate) fn iterate(conns: &impl MapCore) -> Result<Link, KernelError> {
        if std::env::var_os(REFUSE).is_some() {
            return Err(KernelError::refused("iter/bpf_sk_storage_map", format!("refused by {REFUSE}")));
        }
        attach(conns, "each")
    }

    /// Attaches the walk over the sockets of a network namespace.
    pub(crate) fn walk(conns: &impl MapCore) -> Result<Link, KernelError> {
        if std::env::var_os(REFUSE).is_some_and(|v| v == "all") {
            return Err(KernelError::refused("iter/tcp", format!("refused by {REFUSE}=all")));
        }
        attach(conns, "walk")
    }

    /// Returns the number of open connections, given what reads starts minus ends.
    fn count(&self, at_most: impl Fn() -> Option<u64>) -> Option<u64> {
        if let Self::Map(link) = self {
            return found(link);
        }
        (0..ATTEMPTS).find_map(|_| {
            let before = at_most()?;
            let seen = if let Self::Walk(link) = self { found(link)? } else { 0 };
            (seen == before && at_most()? == before).then_some(seen)
        })
    }
}

/// Loads one of the two programs and attaches it.
fn attach(conns: &impl MapCore, program: &str) -> Result<Link, KernelError> {
    let what = "count connections";
    keep_log();
    let mut object = ObjectBuilder::default().open_memory(OBJECT).map_err(KernelError::bpf(what))?;
    for mut other in object.progs_mut().filter(|p| p.name() != program) {
        other.set_autoload(false);
    }
    for mut map in object.maps_mut() {
        map.reuse_fd(conns.as_fd()).map_err(KernelError::bpf(what))?;
    }
    let object = object.load().map_err(KernelError::bpf(what))?;
    let program = object.progs_mut().find(|p| p.name() == program);
    let program = program.ok_or_else(|| KernelError::refused(what, "the object has no such program"))?;
    let link = if program.name() == "each" { program.attach_iter(conns.as_fd()) } else { program.attach() };
    link.map_err(KernelError::bpf(what))
}

/// Returns the number of sockets that an iterator finds; it may find one twice.
fn found(iterator: &Link) -> Option<u64> {
    let addresses = slowstart_files::read_from(Iter::new(iterator).ok()?, MOST_REPORT).ok()?;
    Some(addresses.chunks_exact(8).collect::<BTreeSet<_>>().len() as u64)
}

/// Reads the counters of a control, given their map.
pub(crate) fn counts(map: &impl MapCore, open: &Open) -> Option<Counts> {
    let read = || Counts::read(&lookup(map)?);
    // First the open ones, so that they are among those that began.
    let open = open.count(|| Some(read()?.at_most_open()));
    Some(Counts { open, ..read()? })
}
