//! Folders for temporary files. A process that is killed leaves its own; the next one removes it.

use crate::Folder;
use crate::folder::make;
use crate::lock::Lock;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the name of each begins with, before its purpose.
const PREFIX: &str = "slowstart-";
/// What a process holds as long as it uses its folder.
const LOCK: &str = ".lock";
/// The most names that are tried.
const NAMES: u32 = 100;

/// A folder in that of temporary files, removed when this is dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    // Released after the folder is removed.
    _lock: Lock,
}

impl TemporaryFolder {
    /// Makes a folder for a purpose, and removes those of this user and purpose that no process uses any more.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(purpose: &str) -> io::Result<Self> {
        Self::within(&std::env::temp_dir(), purpose)
    }

    fn within(all: &Path, purpose: &str) -> io::Result<Self> {
        remove_unused(all, &format!("{PREFIX}{purpose}-"));
        // The folder is everybody's: what has the name already may be a link of another user.
        for n in 0..NAMES {
            let path = all.join(format!("{PREFIX}{purpose}-{}-{n}", std::process::id()));
            match make(&path, false) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Another process may take it for unused, and remove it before it is locked.
            if let Ok(folder) = Folder::open(&path)
                && let Ok(lock) = folder.lock(LOCK, Duration::ZERO)
            {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("found {NAMES} folders of this process")))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of this user whose names begin so and that no process has locked.
fn remove_unused(all: &Path, prefix: &str) {
    let of = |name: &OsStr| name.to_str().is_some_and(|n| n.starts_with(prefix));
    for entry in fs::read_dir(all).into_iter().flatten().flatten().filter(|e| of(&e.file_name())) {
        let path = entry.path();
        // Not if it is a link.
        if !entry.file_type().is_ok_and(|t| t.is_dir()) {
            continue;
        }
        if let Ok(folder) = Folder::open(&path)
            && folder.dir.is_own_folder()
            && let Ok(_lock) = folder.lock(LOCK, Duration::ZERO)
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_no_process_uses_is_removed_by_the_next_one() {
        let all = std::env::temp_dir().join(format!("slowstart-unused-{}", std::process::id()));
        let _ = fs::remove_dir_all(&all);
        fs::create_dir_all(all.join("slowstart-a-1-0/sub")).expect("a folder");
        fs::create_dir_all(all.join("slowstart-b-1-0")).expect("of another purpose");
        fs::write(all.join("slowstart-a-1-0/.lock"), "1").expect("of a process that ended");
        let first = TemporaryFolder::within(&all, "a").expect("a folder");
        let second = TemporaryFolder::within(&all, "a").expect("another");
        assert!(first.path().is_dir() && second.path().is_dir(), "what is used stays");
        assert!(!all.join("slowstart-a-1-0").exists() && all.join("slowstart-b-1-0").exists());
        let paths = [first.path().to_path_buf(), second.path().to_path_buf()];
        drop((first, second));
        assert!(paths.iter().all(|p| !p.exists()));
        fs::remove_dir_all(&all).expect("ours");
    }
}
