//! Tells from a file whether it is a kernel that this engine can start.

use crate::error::GuestError;
use std::fs::File;
use std::path::Path;

/// What a kernel has that was linked with `ci/uml/random.c`.
const REPEATS: &[u8] = b"slowstart: random numbers of this kernel repeat";

/// The most bytes of a kernel; with what a debugger reads it has 400 MB.
const MOST: u64 = 1 << 30;

/// What a file says of the kernel in it.
pub(crate) struct Kernel {
    /// True if its random numbers are the same in every run.
    pub repeats: bool,
    /// A digest of its bytes.
    pub digest: u64,
}

/// A digest of the bytes of a kernel's module.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn module_digest(module: &Path) -> Result<u64, GuestError> {
    let bytes = slowstart_files::read(module, MOST).map_err(GuestError::io("read a module"))?;
    Ok(digest(&bytes))
}

/// FNV-1a.
fn digest(bytes: &[u8]) -> u64 {
    let add = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Checks a kernel.
///
/// # Errors
/// What it is instead, or lacks.
pub(crate) fn check(kernel: &Path) -> Result<Kernel, GuestError> {
    let no = |why: &str| GuestError::NoKernel { kernel: kernel.to_path_buf(), why: why.to_string() };
    if kernel.is_dir() {
        return Err(no("found a folder"));
    }
    let mut file = File::open(kernel).map_err(|e| no(&e.to_string()))?;
    let mut bytes = slowstart_files::head(&mut file, 4).map_err(|e| no(&e.to_string()))?;
    if !bytes.starts_with(b"\x7fELF") {
        return Err(no("found a file that is no program"));
    }
    bytes.append(&mut slowstart_files::read_from(file, MOST).map_err(|e| no(&e.to_string()))?);
    let has = |what: &[u8]| contains(&bytes, what);
    // A program that starts such kernels has their options, but no banner.
    if !has(b"rootfstype") || !has(b"uml_dir") || !has_banner(&bytes) {
        return Err(no("found a program that is no User-Mode Linux"));
    }
    if !has(b"time-travel") {
        return Err(no("it has no virtual time (CONFIG_UML_TIME_TRAVEL_SUPPORT)"));
    }
    Ok(Kernel { repeats: has(REPEATS), digest: digest(&bytes) })
}

/// What follows each `what` in `bytes`.
fn after<'a>(bytes: &'a [u8], what: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            let at = rest.iter().position(|b| *b == what[0])?;
            let here = &rest[at..];
            rest = &here[1..];
            if let Some(next) = here.strip_prefix(what) {
                return Some(next);
            }
        }
    })
}

/// True if `what` is somewhere in `bytes`.
fn contains(bytes: &[u8], what: &[u8]) -> bool {
    after(bytes, what).next().is_some()
}

/// True if a kernel says its release here.
fn has_banner(bytes: &[u8]) -> bool {
    after(bytes, b"Linux version ").any(|next| next.first().is_some_and(u8::is_ascii_digit))
}
