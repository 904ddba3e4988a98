//! The directory of this program's state files, and the lock that serialises every change of pins and
//! defaults.

use crate::error::KernelError;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// Holds the lock file and one file for each default that was set. `/run` is empty after a restart of the
/// machine, as the kernel's state is.
pub(crate) const STATE: &str = "/run/slowstart";

/// Attempts to take the lock, one each [`PAUSE`]: 30 s.
const ATTEMPTS: u32 = 1500;
const PAUSE: Duration = Duration::from_millis(20);

/// The lock, released when this is dropped or the process ends in any way. A function that takes it must not
/// call another that does.
pub(crate) struct StateLock(#[allow(dead_code, reason = "held, not read")] Flock<File>);

impl StateLock {
    /// Waits for the lock, up to 30 s. `what` begins the error message.
    pub(crate) fn acquire(what: &str) -> Result<Self, KernelError> {
        let dir = Path::new(STATE);
        match DirBuilder::new().mode(0o755).create(dir) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => {
                return Err(KernelError::path("create", dir)(e));
            }
            _ => {}
        }
        let meta = fs::symlink_metadata(dir).map_err(KernelError::path("read", dir))?;
        let ours = meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0;
        if !ours {
            let why = format!("{STATE} is not a directory that this user alone can write to");
            return Err(KernelError::refused(what, why));
        }
        let path = dir.join("lock");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(KernelError::path("open", &path))?;
        for _ in 0..ATTEMPTS {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Self(lock)),
                Err((f, Errno::EWOULDBLOCK)) => file = f,
                Err((_, e)) => return Err(KernelError::path("lock", &path)(e.into())),
            }
            std::thread::sleep(PAUSE);
        }
        Err(KernelError::refused(what, format!("another process has held {} for 30 s", path.display())))
    }
}
