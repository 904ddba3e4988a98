//! The directory of this program's state files, and the lock that serialises every change of pins and
//! defaults.

use crate::error::KernelError;
use nix::unistd::geteuid;
use slowstart_files::{Folder, Lock, LockError};
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

/// Holds the locks and one file for each default that was set. `/run` is empty after a restart of the
/// machine, as the kernel's state is.
pub(crate) const STATE: &str = "/run/slowstart";

/// How long another process may hold the lock.
const WAIT: Duration = Duration::from_secs(30);

/// Makes a directory if it is missing.
///
/// # Errors
/// If it is a link, or others than this user can write there.
pub(crate) fn own_directory(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(dir) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let meta = fs::symlink_metadata(dir)?;
    if !meta.is_dir() || meta.uid() != geteuid().as_raw() || meta.mode() & 0o022 != 0 {
        return Err(io::Error::other("not a directory that this user alone can write to"));
    }
    Ok(())
}

/// Opens the directory of the state, and makes it if it is missing.
///
/// # Errors
/// If others than this user can write there.
pub(crate) fn state_folder() -> io::Result<Folder> {
    let dir = Path::new(STATE);
    own_directory(dir)?;
    Folder::open(dir)
}

/// The lock, released when this is dropped or the process ends in any way. A function that takes it must not
/// call another that does.
pub(crate) struct StateLock(#[allow(dead_code, reason = "held, not read")] Lock);

impl StateLock {
    /// Waits for the lock, up to 30 s. `what` begins the error message.
    pub(crate) fn acquire(what: &str) -> Result<Self, KernelError> {
        let folder = state_folder().map_err(KernelError::path("open", Path::new(STATE)))?;
        folder.lock("lock", WAIT).map(Self).map_err(|e| match e {
            LockError::Io(e) => KernelError::path("lock", &Path::new(STATE).join("lock"))(e),
            LockError::Held(_) => {
                KernelError::refused(what, format!("{STATE}/lock: {e}, for {} s now", WAIT.as_secs()))
            }
        })
    }
}
