//! What the tests of the command have in common.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The command with these arguments, at the root of the repository and without colours.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    command.args(args).env("NO_COLOR", "1").current_dir(root());
    command
}

/// Runs it.
pub(crate) fn slowstart(args: &[&str]) -> Output {
    command(args).output().expect("it runs")
}

/// Standard output of a command that succeeds.
pub(crate) fn succeeds(args: &[&str]) -> String {
    let out = slowstart(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Status 2, nothing on standard output, and one message that says all of these.
pub(crate) fn refuses(args: &[&str], says: &[&str]) {
    let out = slowstart(args);
    let err = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{args:?}: {err}");
    assert!(out.stdout.is_empty(), "{args:?} printed {}", text(&out.stdout));
    for s in says {
        assert!(err.contains(s), "{args:?}: {err:?} does not say {s:?}");
    }
}

/// What a program wrote.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// An empty folder of this name.
pub(crate) fn folder(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a folder");
    dir
}
