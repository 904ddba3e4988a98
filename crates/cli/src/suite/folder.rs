//! A folder of temporary files.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A folder that is removed on drop.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes a folder for this purpose.
    pub(super) fn create(purpose: &str) -> Result<Self> {
        // The folder of temporary files is everybody's: what has the name already may be a link of another
        // user.
        let mut n = 0;
        loop {
            let name = format!("slowstart-{purpose}-{}-{n}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            match fs::create_dir(&dir) {
                Ok(()) => return Ok(Self(dir)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists && n < 100 => n += 1,
                Err(e) => return Err(e).context(dir.display().to_string()),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the file of this size, of zeros; its name is its size.
    pub(super) fn file(&self, bytes: u64) -> io::Result<()> {
        File::create(self.0.join(bytes.to_string()))?.set_len(bytes)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
