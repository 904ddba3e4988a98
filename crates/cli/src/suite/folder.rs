//! A folder of temporary files.

use anyhow::{Context, Result};
use slowstart_files::TemporaryFolder;
use std::fs::File;
use std::io;
use std::path::Path;

/// A folder that is removed on drop, or by the next suite if this process is killed.
#[derive(Debug)]
pub(super) struct Folder(TemporaryFolder);

impl Folder {
    /// Makes a folder for this purpose.
    pub(super) fn create(purpose: &str) -> Result<Self> {
        let made = TemporaryFolder::create(purpose);
        Ok(Self(made.with_context(|| std::env::temp_dir().display().to_string())?))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes the file of this size, of zeros; its name is its size.
    pub(super) fn file(&self, bytes: u64) -> io::Result<()> {
        File::create(self.path().join(bytes.to_string()))?.set_len(bytes)
    }
}
