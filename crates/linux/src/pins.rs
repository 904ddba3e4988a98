//! The pins of controls and selections in bpffs.

use crate::error::KernelError;
use crate::lock::own_directory;
use slowstart_files::create_folder;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The directory of all pins; each control has a directory of its name in it.
pub(crate) const PINS: &str = "/sys/fs/bpf/slowstart";
/// The maps pinned beside a link: name in the object, name of the pin. Only objects with path memory have the
/// last two.
pub(crate) const MAPS: [(&str, &str); 6] = [
    (".data.counts", "counts"),
    (".data.watching", "watching"),
    ("events", "events"),
    ("conns", "conns"),
    ("memory", "memory"),
    (".rodata.memory", "memory_config"),
];

/// Returns the directory of a control's pins.
pub(crate) fn pin_dir(name: &str) -> PathBuf {
    Path::new(PINS).join(name)
}

/// Refuses a directory of all pins that is a link, or that others than this user can write to: a bpffs that is mounted
/// by hand is open to all, who may have put links there. It is no error if there is none.
pub(crate) fn must_be_ours() -> Result<(), KernelError> {
    let dir = Path::new(PINS);
    if fs::symlink_metadata(dir).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
        return Ok(());
    }
    own_directory(dir).map_err(KernelError::path("open", dir))
}

/// Makes a directory of pins.
pub(crate) fn make_pins(dir: &Path) -> Result<(), KernelError> {
    let all = Path::new(PINS);
    own_directory(all).map_err(KernelError::path("open", all))?;
    create_folder(dir).map_err(KernelError::path("create", dir))
}

/// Removes a directory of pins; it is no error if there is none.
pub(crate) fn remove_pins(dir: &Path) -> Result<(), KernelError> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(KernelError::path("read", dir))?,
    };
    for entry in entries.flatten() {
        let path = entry.path();
        fs::remove_file(&path).map_err(KernelError::path("remove", &path))?;
    }
    fs::remove_dir(dir).map_err(KernelError::path("remove", dir))
}
