//! What is done in a folder by its descriptor.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, openat, renameat, statat, unlinkat};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many links a path may have at its end.
const LINKS: usize = 8;

#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

/// How a file is opened.
#[derive(Copy, Clone, Debug)]
pub(crate) enum How {
    Read,
    /// To read and to append; made if it is missing.
    Append,
    /// To write; there must be nothing of this name.
    New,
    /// To read and write for its owner alone; made if it is missing.
    Private,
}

fn other(why: impl Into<String>) -> io::Error {
    io::Error::other(why.into())
}

impl Dir {
    /// Opens a folder. A link at the end of its path is followed if it is this user's or root's.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_path_buf() };
        for _ in 0..LINKS {
            // A slash at the end would have the link followed.
            let name: PathBuf = path.components().collect();
            let e = match openat(CWD, &name, flags, Mode::empty()) {
                Ok(fd) => return Ok(Self(fd)),
                Err(e) => e,
            };
            let Some(meta) = fs::symlink_metadata(&name).ok().filter(fs::Metadata::is_symlink) else {
                return Err(e.into());
            };
            if meta.uid() != 0 && meta.uid() != rustix::process::geteuid().as_raw() {
                return Err(other(format!(
                    "found a symbolic link of user {}, which is not followed",
                    meta.uid()
                )));
            }
            path = name.parent().unwrap_or(Path::new("")).join(fs::read_link(&name)?);
        }
        Err(other("found a chain of symbolic links"))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Opens a regular file with one name: no link, and nothing that waits for another process.
    pub(crate) fn file(&self, name: &OsStr, how: How) -> io::Result<File> {
        let flags = match how {
            How::Read => OFlags::RDONLY,
            How::Append => OFlags::RDWR | OFlags::APPEND | OFlags::CREATE,
            How::New => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
            How::Private => OFlags::RDWR | OFlags::CREATE,
        };
        let mode = Mode::from_raw_mode(if matches!(how, How::Private) { 0o600 } else { 0o644 });
        let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.0, name, flags | always, mode) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::LOOP) => {
                return Err(other("found a symbolic link, which is not followed"));
            }
            Err(rustix::io::Errno::NXIO) => {
                return Err(other("found a special file, expected a regular one"));
            }
            Err(e) => return Err(e.into()),
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(other("found a special file, expected a regular one"));
        }
        // Another name may be that of somebody else's file.
        if meta.nlink() > 1 && !matches!(how, How::Read) {
            return Err(other(format!("found a file with {} names, expected one", meta.nlink())));
        }
        Ok(file)
    }

    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Renames a file into a folder. What has the name is replaced or, with `new` or if it is a device, an error: the
    /// whole system may write to `/dev/null`.
    pub(crate) fn rename(&self, name: &OsStr, to: &Self, target: &OsStr, new: bool) -> io::Result<()> {
        if new {
            #[cfg(target_os = "linux")]
            match rustix::fs::renameat_with(&self.0, name, &to.0, target, RenameFlags::NOREPLACE) {
                // A file system that has no such call.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
                done => return Ok(done?),
            }
            if to.has(target) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
        }
        let kind =
            statat(&to.0, target, AtFlags::SYMLINK_NOFOLLOW).map(|s| FileType::from_raw_mode(s.st_mode));
        if kind.is_ok_and(|k| k.is_char_device() || k.is_block_device()) {
            return Err(other("found a device, expected a file"));
        }
        Ok(renameat(&self.0, name, &to.0, target)?)
    }

    /// True if there is anything of this name.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// True if this name is of this file.
    pub(crate) fn is(&self, name: &OsStr, file: &File) -> bool {
        let (Ok(here), Ok(it)) = (statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW), rustix::fs::fstat(file))
        else {
            return false;
        };
        (here.st_dev, here.st_ino) == (it.st_dev, it.st_ino)
    }

    /// True if this folder is of this user.
    pub(crate) fn is_own_folder(&self) -> bool {
        rustix::fs::fstat(&self.0).is_ok_and(|s| s.st_uid == rustix::process::geteuid().as_raw())
    }

    /// True if the file is of this user.
    pub(crate) fn is_own(file: &File) -> bool {
        file.metadata().is_ok_and(|m| m.uid() == rustix::process::geteuid().as_raw())
    }
}
