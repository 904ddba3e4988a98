//! Tells from a file whether it is a kernel that this engine can start.

use crate::error::GuestError;
use std::fs;
use std::path::Path;

/// What a kernel has that was linked with `ci/uml/random.c`.
const REPEATS: &[u8] = b"slowstart: random numbers of this kernel repeat";

/// Checks a kernel. Returns true if its random numbers are the same in every run.
///
/// # Errors
/// What it is instead, or lacks.
pub(crate) fn check(kernel: &Path) -> Result<bool, GuestError> {
    let no = |why: &str| GuestError::NoKernel { kernel: kernel.to_path_buf(), why: why.to_string() };
    if kernel.is_dir() {
        return Err(no("found a folder"));
    }
    let bytes = fs::read(kernel).map_err(|e| no(&e.to_string()))?;
    let has = |what: &[u8]| contains(&bytes, what);
    if !bytes.starts_with(b"\x7fELF") {
        return Err(no("found a file that is no program"));
    }
    if !has(b"rootfstype") || !has(b"uml_dir") {
        return Err(no("found a program that is no User-Mode Linux"));
    }
    if !has(b"time-travel") {
        return Err(no("it has no virtual time (CONFIG_UML_TIME_TRAVEL_SUPPORT)"));
    }
    Ok(has(REPEATS))
}

/// True if `what` is somewhere in `bytes`.
fn contains(bytes: &[u8], what: &[u8]) -> bool {
    let first = what[0];
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|b| *b == first) {
        if rest[at..].starts_with(what) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}
