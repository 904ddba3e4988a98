//! Files that appear whole or not at all.

use crate::at::{Dir, How};
use crate::folder::split;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// A file that is written under a temporary name, and gets its own when it is complete. Neither name is
/// followed if it is a symbolic link: a link is replaced. What is not completed is removed.
#[derive(Debug)]
pub struct WholeFile {
    from: Dir,
    temporary: OsString,
    to: Dir,
    target: OsString,
    out: File,
}

impl WholeFile {
    pub(crate) fn begin(from: Dir, temporary: OsString, to: Dir, target: OsString) -> io::Result<Self> {
        match from.remove(&temporary) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let out = from.file(&temporary, How::New)?;
        Ok(Self { from, temporary, to, target, out })
    }

    /// Begins the file `target` under the name `temporary`, on the same file system. What has that name is
    /// replaced.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(target: &Path, temporary: &Path) -> io::Result<Self> {
        let ((to, target), (from, temporary)) = (split(target)?, split(temporary)?);
        Self::begin(from, temporary.to_os_string(), to, target.to_os_string())
    }

    /// Begins a file whose temporary name, beside its own, has the number of this process.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let (to, name) = split(target)?;
        let mut temporary = OsString::from(format!(".slowstart-{}-", std::process::id()));
        temporary.push(name);
        Self::begin(to.try_clone()?, temporary, to, name.to_os_string())
    }

    /// Gives the file its name, once its bytes are on the disk.
    ///
    /// # Errors
    /// If it cannot be written or renamed.
    pub fn finish(self) -> io::Result<()> {
        self.named(false)
    }

    /// Gives the file its name, unless there is anything of that name.
    ///
    /// # Errors
    /// If it cannot be written, or there is.
    pub fn finish_new(self) -> io::Result<()> {
        self.named(true)
    }

    fn named(self, new: bool) -> io::Result<()> {
        self.out.sync_all()?;
        self.from.rename(&self.temporary, &self.to, &self.target, new)
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
        let _ = self.from.remove(&self.temporary);
    }
}
