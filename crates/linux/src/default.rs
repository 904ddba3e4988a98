//! The default congestion control of a network namespace: sets it, records what it replaced, and restores
//! that.
//!
//! The record is a file of [`STATE`] named after the inode of the namespace, so it survives a killed process.
//! A default has one owner at a time: a process, or a pinned control.

use crate::error::KernelError;
use crate::list::{available, control_names};
use crate::lock::{STATE, StateLock};
use nix::sched::{CloneFlags, setns};
use slowstart_files::{WholeFile, read_kernel};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fmt, process, thread};

const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Who ends a default.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A process that holds the control. The default is restored when it ends, or by the next command if it
    /// was killed.
    Process {
        /// Its process identifier.
        pid: u32,
        /// Its start time in clock ticks since boot, which tells it from a later process with the same
        /// identifier.
        start: u64,
    },
    /// A pinned control. The default is restored when the control is unloaded.
    Pinned,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, .. } => write!(f, "process {pid}"),
            Self::Pinned => f.write_str("the pinned control"),
        }
    }
}

/// A default that this program set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultRecord {
    /// Inode of the network namespace.
    pub namespace: u64,
    /// The control that was made the default.
    pub control: String,
    /// The name of the control that was the system's default before.
    pub previous: String,
    /// Who takes the default back.
    pub owner: Owner,
}

/// What [`set_default`] found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultChange {
    /// The control is the default; `previous` will be restored.
    Set {
        /// The default before.
        previous: String,
    },
    /// The control was the default already, set by other means, so nothing was recorded and nothing will be
    /// restored.
    AlreadySet,
}

/// What became of a default when it was to be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredDefault {
    /// The record, which no longer exists.
    pub record: DefaultRecord,
    /// Whether the default before is in force again, or why not.
    pub outcome: RestoreOutcome,
}

/// What happened to a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The previous default is the default again.
    Restored,
    /// Somebody has since made this other control the default, which stays.
    ChangedSince(String),
    /// The network namespace no longer exists.
    NamespaceGone,
}

impl fmt::Display for RestoredDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DefaultRecord { namespace, control, previous, .. } = &self.record;
        match &self.outcome {
            RestoreOutcome::Restored => {
                write!(f, "default of network namespace {namespace} restored from {control} to {previous}")
            }
            RestoreOutcome::ChangedSince(now) => {
                write!(f, "default of network namespace {namespace} is {now}, not {control}: left as it is")
            }
            RestoreOutcome::NamespaceGone => {
                write!(f, "network namespace {namespace}, where {control} was the default, no longer exists")
            }
        }
    }
}

impl DefaultRecord {
    fn path(namespace: u64) -> PathBuf {
        Path::new(STATE).join(format!("default-{namespace}"))
    }

    fn text(&self) -> String {
        let owner = match self.owner {
            Owner::Process { pid, start } => format!("process {pid} {start}"),
            Owner::Pinned => "pinned".to_string(),
        };
        format!("control {}\nprevious {}\nowner {owner}\n", self.control, self.previous)
    }

    fn parse(namespace: u64, text: &str) -> Option<Self> {
        let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' '));
        let words: Vec<&str> = value("owner")?.split(' ').collect();
        let owner = match words[..] {
            ["pinned"] => Owner::Pinned,
            ["process", pid, start] => Owner::Process { pid: pid.parse().ok()?, start: start.parse().ok()? },
            _ => return None,
        };
        let name = |key| Some(value(key)?.to_string()).filter(|n| !n.is_empty());
        Some(Self { namespace, control: name("control")?, previous: name("previous")?, owner })
    }

    fn read(path: &Path) -> Result<Option<Self>, KernelError> {
        let Some(namespace) =
            path.file_name().and_then(|n| n.to_str()?.strip_prefix("default-")?.parse().ok())
        else {
            return Ok(None);
        };
        match read_kernel(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(KernelError::path("read", path)(e)),
            Ok(text) => Self::parse(namespace, &text).map(Some).ok_or_else(|| {
                KernelError::refused(
                    path.display().to_string(),
                    "not a record of a default: set the default by hand (sysctl net.ipv4.tcp_congestion_control) and \
                     delete the file",
                )
            }),
        }
    }

    /// Writes the record; a process that is killed meanwhile leaves the old record or the new one.
    fn write(&self) -> Result<(), KernelError> {
        let path = Self::path(self.namespace);
        let write = || {
            let mut file = WholeFile::create(&path, &Path::new(STATE).join("new-default"))?;
            file.write_all(self.text().as_bytes())?;
            file.finish()
        };
        write().map_err(KernelError::path("write", &path))
    }

    fn remove(&self) -> Result<(), KernelError> {
        let path = Self::path(self.namespace);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(KernelError::path("remove", &path)(e)),
            _ => Ok(()),
        }
    }

    /// True if the owner no longer exists, so that nobody will restore the default.
    pub fn is_stale(&self) -> bool {
        match self.owner {
            Owner::Process { pid, start } => start_time(pid) != Some(start),
            Owner::Pinned => available().is_ok_and(|all| !all.contains(&self.control)),
        }
    }

    fn restore(self) -> Result<RestoredDefault, KernelError> {
        let outcome = in_namespace(self.namespace, || {
            let now = current()?;
            if now != self.control {
                return Ok(RestoreOutcome::ChangedSince(now));
            }
            set(&self.previous)?;
            Ok(RestoreOutcome::Restored)
        })?;
        self.remove()?;
        Ok(RestoredDefault { record: self, outcome: outcome.unwrap_or(RestoreOutcome::NamespaceGone) })
    }
}

fn current() -> Result<String, KernelError> {
    let path = Path::new(SYSCTL);
    Ok(read_kernel(path).map_err(KernelError::path("read", path))?.trim().to_string())
}

fn set(control: &str) -> Result<(), KernelError> {
    fs::write(SYSCTL, control)
        .map_err(KernelError::io(format!("set the default congestion control to {control} ({SYSCTL})")))
}

/// The start time of a process in clock ticks since boot; `None` if there is no such process.
fn start_time(pid: u32) -> Option<u64> {
    let stat = read_kernel(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses, which may contain anything; the start time is the 22nd.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

fn own_namespace() -> Result<u64, KernelError> {
    let path = Path::new(OWN_NAMESPACE);
    Ok(fs::metadata(path).map_err(KernelError::path("read", path))?.ino())
}

/// The file of a network namespace that has a name or a process.
fn find_namespace(inode: u64) -> Option<File> {
    let named = fs::read_dir("/run/netns").into_iter().flatten().flatten().map(|e| e.path());
    let of_processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|e| e.path().join("ns/net"));
    let path = named.chain(of_processes).find(|p| fs::metadata(p).is_ok_and(|m| m.ino() == inode))?;
    File::open(path).ok()
}

/// Calls `f` inside a network namespace; `None` if it no longer exists.
fn in_namespace<T: Send>(
    inode: u64,
    f: impl FnOnce() -> Result<T, KernelError> + Send,
) -> Result<Option<T>, KernelError> {
    if own_namespace()? == inode {
        return f().map(Some);
    }
    let Some(file) = find_namespace(inode) else { return Ok(None) };
    let what = format!("enter network namespace {inode}");
    thread::scope(|s| {
        let inside = s.spawn(|| {
            setns(file, CloneFlags::CLONE_NEWNET).map_err(|e| KernelError::io(&*what)(e.into()))?;
            f().map(Some)
        });
        inside.join().unwrap_or_else(|_| Err(KernelError::refused(&*what, "the thread failed")))
    })
}

/// Returns the defaults that this program set and that nobody has restored, in all network namespaces.
pub fn list_defaults() -> Result<Vec<DefaultRecord>, KernelError> {
    let dir = Path::new(STATE);
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(KernelError::path("read", dir))?,
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    paths.iter().filter_map(|p| DefaultRecord::read(p).transpose()).collect()
}

/// Fails if somebody else owns the default of this network namespace: another process that lives, or another
/// pinned control.
fn check_owner(record: &DefaultRecord, control: &str) -> Result<(), KernelError> {
    if record.owner == Owner::Pinned && record.control == control {
        return Ok(());
    }
    let mend = match record.owner {
        Owner::Process { pid, .. } => format!("stop process {pid} first"),
        Owner::Pinned => format!("`slowstart kernel unload {}` first", record.control),
    };
    let why = format!("the default is {}, set by {}: {mend}", record.control, record.owner);
    Err(KernelError::refused(format!("make {control} the default"), why))
}

/// Fails if [`set_default`] would, because the default of this network namespace has another owner.
pub fn check_default_is_free(control: &str) -> Result<(), KernelError> {
    match DefaultRecord::read(&DefaultRecord::path(own_namespace()?))? {
        Some(record) if !record.is_stale() => check_owner(&record, control),
        _ => Ok(()),
    }
}

/// Makes a control the default of this network namespace and records what it replaces. With `pinned`, the
/// default ends when the control is unloaded, otherwise with this process ([`restore_default`]). A pinned
/// control that was replaced keeps what it recorded first. Defaults whose owner has ended are restored
/// before.
pub fn set_default(control: &str, pinned: bool) -> Result<DefaultChange, KernelError> {
    let lock = StateLock::acquire(&format!("make {control} the default"))?;
    restore_stale(&lock)?;
    let namespace = own_namespace()?;
    let now = current()?;
    let previous = match DefaultRecord::read(&DefaultRecord::path(namespace))? {
        Some(record) if now == record.control => {
            check_owner(&record, control)?;
            record.previous
        }
        // Somebody changed the default by hand since.
        _ if now == control => return Ok(DefaultChange::AlreadySet),
        _ => now,
    };
    let pid = process::id();
    let start =
        start_time(pid).ok_or_else(|| KernelError::refused(format!("/proc/{pid}/stat"), "not readable"))?;
    let owner = if pinned { Owner::Pinned } else { Owner::Process { pid, start } };
    let record = DefaultRecord { namespace, control: control.to_string(), previous, owner };
    record.write()?;
    if let Err(e) = set(control) {
        record.remove()?;
        return Err(e);
    }
    Ok(DefaultChange::Set { previous: record.previous })
}

/// Restores the default of this network namespace if this process set it; `None` if it did not.
pub fn restore_default(control: &str) -> Result<Option<RestoredDefault>, KernelError> {
    let _lock = StateLock::acquire("restore the default")?;
    let record = DefaultRecord::read(&DefaultRecord::path(own_namespace()?))?;
    let own = |o| matches!(o, Owner::Process { pid, .. } if pid == process::id());
    record.filter(|r| r.control == control && own(r.owner)).map(DefaultRecord::restore).transpose()
}

fn restore_stale(_: &StateLock) -> Result<Vec<RestoredDefault>, KernelError> {
    list_defaults()?.into_iter().filter(DefaultRecord::is_stale).map(DefaultRecord::restore).collect()
}

/// Restores every default whose owner no longer exists: a process that was killed, a pin that was removed by
/// hand.
pub fn restore_stale_defaults() -> Result<Vec<RestoredDefault>, KernelError> {
    if list_defaults()?.iter().any(DefaultRecord::is_stale) {
        restore_stale(&StateLock::acquire("restore the default")?)
    } else {
        Ok(Vec::new())
    }
}

/// Restores the defaults that a control has, given its name in the kernel or in the registry, in all network
/// namespaces.
pub(crate) fn restore_defaults_of(_: &StateLock, name: &str) -> Result<Vec<RestoredDefault>, KernelError> {
    let names = control_names(name);
    let all = list_defaults()?.into_iter().filter(|r| names.contains(&r.control));
    all.map(DefaultRecord::restore).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for owner in [Owner::Pinned, Owner::Process { pid: 12, start: 345 }] {
            let record =
                DefaultRecord { namespace: 7, control: "ss_search".into(), previous: "cubic".into(), owner };
            assert_eq!(DefaultRecord::parse(7, &record.text()), Some(record));
        }
        assert_eq!(DefaultRecord::parse(7, "control ss_search\nowner pinned\n"), None);
        assert_eq!(DefaultRecord::parse(7, "control a\nprevious b\nowner process 12\n"), None);
    }

    #[test]
    fn a_process_is_known_by_its_start_time() {
        let record = |start| DefaultRecord {
            namespace: 0,
            control: "x".into(),
            previous: "y".into(),
            owner: Owner::Process { pid: process::id(), start },
        };
        let start = start_time(process::id()).expect("this process exists");
        assert!(!record(start).is_stale() && record(start + 1).is_stale());
    }
}
