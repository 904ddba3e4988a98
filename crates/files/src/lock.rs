//! Locks that another user cannot hold: their files have the mode 0600, and belong to who takes them.

use crate::at::{Dir, How};
use crate::read_from;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Seek, Write};
use std::time::Duration;

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// The most bytes of a process number.
const NUMBER: u64 = 20;

/// A lock of a folder, released and removed when this is dropped, released when the process ends in any way.
#[derive(Debug)]
pub struct Lock {
    dir: Dir,
    name: OsString,
    file: File,
}

/// Why there is no lock.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it, this one if it said so.
    Held(Option<u32>),
    /// The folder or its file system permits none.
    Io(io::Error),
}

impl std::fmt::Display for LockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Held(Some(process)) => write!(f, "process {process} holds it"),
            Self::Held(None) => write!(f, "another process holds it"),
            Self::Io(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for LockError {}

fn attempt(dir: &Dir, name: &OsStr) -> Result<Option<File>, LockError> {
    let mut file = dir.file(name, How::Private).map_err(LockError::Io)?;
    if !Dir::is_own(&file) {
        // Only root can open it. Somebody who may write to the folder put it there.
        return dir.remove(name).map(|()| None).map_err(LockError::Io);
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let text = read_from(&file, NUMBER).unwrap_or_default();
            return Err(LockError::Held(String::from_utf8(text).ok().and_then(|t| t.trim().parse().ok())));
        }
        Err(TryLockError::Error(e)) => return Err(LockError::Io(e)),
        Ok(()) => {}
    }
    // The process that had it may have removed it meanwhile.
    if !dir.is(name, &file) {
        return Ok(None);
    }
    let said =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
    said.map_err(LockError::Io)?;
    Ok(Some(file))
}

impl crate::Folder {
    /// Takes a lock, and waits for it so long.
    ///
    /// # Errors
    /// If another process holds it, or the folder permits none.
    pub fn lock(&self, name: &str, wait: Duration) -> Result<Lock, LockError> {
        let mut left = wait;
        loop {
            match attempt(&self.dir, name.as_ref()) {
                Ok(Some(file)) => {
                    let dir = self.dir.try_clone().map_err(LockError::Io)?;
                    return Ok(Lock { dir, name: name.into(), file });
                }
                Ok(None) => {}
                Err(LockError::Held(_)) if !left.is_zero() => {
                    std::thread::sleep(PAUSE);
                    left = left.saturating_sub(PAUSE);
                }
                Err(e) => return Err(e),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.dir.remove(&self.name);
        let _ = self.file.unlock();
    }
}
