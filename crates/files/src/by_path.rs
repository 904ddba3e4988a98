//! What is done in a folder by the paths of its files, where there is no call that takes a descriptor.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Dir(PathBuf);

#[derive(Copy, Clone, Debug)]
pub(crate) enum How {
    Read,
    Append,
    New,
    Private,
}

impl Dir {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        fs::read_dir(path)?;
        Ok(Self(path.to_path_buf()))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.clone()))
    }

    pub(crate) fn file(&self, name: &OsStr, how: How) -> io::Result<File> {
        let mut options = OpenOptions::new();
        match how {
            How::Read => options.read(true),
            How::Append => options.read(true).append(true).create(true),
            How::New => options.write(true).create_new(true),
            How::Private => options.read(true).write(true).create(true).truncate(false),
        };
        options.open(self.0.join(name))
    }

    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    pub(crate) fn rename(&self, name: &OsStr, to: &Self, target: &OsStr, new: bool) -> io::Result<()> {
        if new && to.has(target) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(self.0.join(name), to.0.join(target))
    }

    pub(crate) fn has(&self, name: &OsStr) -> bool {
        fs::symlink_metadata(self.0.join(name)).is_ok()
    }

    pub(crate) fn is(&self, name: &OsStr, _: &File) -> bool {
        self.has(name)
    }

    pub(crate) fn is_own_folder(&self) -> bool {
        true
    }

    pub(crate) fn is_own(_: &File) -> bool {
        true
    }
}
