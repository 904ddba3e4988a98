//! A library that makes a clock jump for the program that it is preloaded to.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the library with the C compiler; `None` if there is none.
pub(crate) fn built() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join(concat!("jumping_clock-", env!("CARGO_CRATE_NAME"), ".so"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/jumping_clock/clock.c");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().ok()?;
    assert!(built.success(), "{source}");
    Some(library)
}
