//! Files that slowstart writes and reads.
//!
//! - [`open`], [`append`], [`create_new`]: a file of a folder that others may write to, where no link is followed
//! - [`WholeFile`]: a file that appears whole or not at all
//! - [`TemporaryFolder`]: one that is removed, also after a process that was killed
//! - [`create_folder`]: one that nobody else may write to, whatever the umask
//! - [`Folder`]: such a folder, and the locks in it, which nobody can hold who may not write there
//! - [`read()`], [`read_text`], [`line()`]: a file, a text or a line up to a limit
//!
//! On Unix a folder is opened once, and its files by that descriptor. Elsewhere they are opened by their whole
//! path, and links are followed.
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[cfg(unix)]
mod at;
#[cfg(not(unix))]
#[path = "by_path.rs"]
mod at;
mod atomic;
mod folder;
mod lock;
mod read;
mod temporary;

pub use atomic::WholeFile;
pub use folder::{Folder, append, create_folder, create_new, open};
pub use lock::{Lock, LockError};
pub use read::{MOST_REPORT, MOST_TEXT, head, line, read, read_from, read_kernel, read_text};
pub use temporary::TemporaryFolder;
