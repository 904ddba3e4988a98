//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is written under a temporary name beside its own, and gets its own when it is complete.
/// Neither name is followed if it is a symbolic link: a link is replaced. What is not completed is removed.
#[derive(Debug)]
pub struct WholeFile {
    target: PathBuf,
    temporary: PathBuf,
    out: File,
}

impl WholeFile {
    /// Begins the file `target` under the name `temporary`, on the same file system. What has that name is
    /// replaced.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(target: &Path, temporary: PathBuf) -> io::Result<Self> {
        match fs::remove_file(&temporary) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let out = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        Ok(Self { target: target.to_path_buf(), temporary, out })
    }

    /// Begins a file whose temporary name, beside its own, has the number of this process.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        Self::create(target, target.with_file_name(format!(".slowstart-{}-{name}", std::process::id())))
    }

    /// Gives the file its name, once its bytes are on the disk.
    ///
    /// # Errors
    /// If it cannot be written or renamed.
    pub fn finish(self) -> io::Result<()> {
        self.out.sync_all()?;
        fs::rename(&self.temporary, &self.target)
    }
}

impl Write for WholeFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.out.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for WholeFile {
    /// Removes what was not completed; after a rename there is nothing of that name.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}
