//! Folders that others may write to, and single files of them.

use crate::at::{Dir, How};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

/// A folder that others may write to.
#[derive(Debug)]
pub struct Folder {
    pub(crate) dir: Dir,
}

impl Folder {
    /// Opens a folder. A link at the end of its path is followed if it is this user's or root's.
    ///
    /// # Errors
    /// If there is none, or it is a link of another user.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { dir: Dir::open(path)? })
    }

    /// Opens a folder, and makes it, with those above it, if it is missing.
    ///
    /// # Errors
    /// If it cannot be made or opened.
    pub fn create(path: &Path) -> io::Result<Self> {
        create_folder(path)?;
        Self::open(path)
    }
}

/// Makes a folder, and those above it if `above`, that nobody else may write to, whatever the umask.
pub(crate) fn make(path: &Path, above: bool) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.recursive(above).create(path)
}

/// Makes a folder, with those above it, that nobody else may write to, whatever the umask. One that is there stays
/// as it is.
///
/// # Errors
/// If it cannot be made.
pub fn create_folder(path: &Path) -> io::Result<()> {
    make(path, true)
}

/// The folder and the name of a path.
pub(crate) fn split(path: &Path) -> io::Result<(Dir, &OsStr)> {
    let name =
        path.file_name().ok_or_else(|| io::Error::other("found a folder, expected the name of a file"))?;
    Ok((Dir::open(path.parent().unwrap_or(Path::new("")))?, name))
}

/// Opens a file to read it.
///
/// # Errors
/// If it is no regular file, or its folder is a link of another user.
pub fn open(path: &Path) -> io::Result<File> {
    let (dir, name) = split(path)?;
    dir.file(name, How::Read)
}

/// Opens a file to read it and to append to it, and makes it if it is missing.
///
/// # Errors
/// If it cannot be made, is no regular file, or its folder is a link of another user.
pub fn append(path: &Path) -> io::Result<File> {
    let (dir, name) = split(path)?;
    dir.file(name, How::Append)
}

/// Makes a file to write to it.
///
/// # Errors
/// If there is anything of this name, or its folder is a link of another user.
pub fn create_new(path: &Path) -> io::Result<File> {
    let (dir, name) = split(path)?;
    dir.file(name, How::New)
}
