//! The version with the commit that was built, for `slowstart --version`: `0.1.0 (1a2b3c4d5e6f, modified)`.
//! Without git, or from an archive, it is the version alone.

use std::process::Command;

/// What git prints; `None` if it fails or prints nothing.
fn git(arguments: &[&str]) -> Option<String> {
    let out = Command::new("git").args(arguments).output().ok().filter(|out| out.status.success())?;
    let text = String::from_utf8(out.stdout).ok()?.trim().to_string();
    (!text.is_empty()).then_some(text)
}

fn commit() -> Option<String> {
    // An archive that was unpacked within another repository is not of that.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no", ".."]).is_some();
    Some(if changed { commit + ", modified" } else { commit })
}

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    let commit = commit();
    if commit.is_some() {
        // All crates: a change of one makes the commit another source.
        println!("cargo::rerun-if-changed=..");
        for file in ["HEAD", "logs/HEAD"] {
            if let Some(path) = git(&["rev-parse", "--git-path", file]) {
                println!("cargo::rerun-if-changed={path}");
            }
        }
    } else {
        println!("cargo::rerun-if-changed=build.rs");
    }
    if let Some(commit) = &commit {
        println!("cargo::rustc-env=SLOWSTART_COMMIT={commit}");
    }
    let text = commit.map_or(version.to_string(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=SLOWSTART_VERSION={text}");
}
