//! The crate needs no std: `no_std_probe`, which has its own panic handler, links it and runs without std.

#[path = "no_std_probe/src/windows.rs"]
#[allow(unreachable_pub, reason = "public in the probe")]
mod windows;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command to its end. Returns its output, or `None` if there is no such program.
fn output(command: &mut Command) -> Option<String> {
    let out = match command.output() {
        Ok(out) => out,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        Err(e) => panic!("{command:?}: {e}"),
    };
    assert!(out.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn probe() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/no_std_probe"))
}

/// Builds the probe and returns its archive.
fn archive() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_std_probe");
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.args(["build", "--release", "--offline", "--quiet", "--manifest-path"]);
    cargo.arg(probe().join("Cargo.toml")).arg("--target-dir").arg(&target);
    // The flags of the outer build (coverage, sanitizers) need a runtime that is not available here.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("CARGO_BUILD_TARGET");
    output(&mut cargo).expect("cargo");
    target.join("release/libno_std_probe.a")
}

#[test]
fn the_crate_links_and_runs_without_std() {
    let archive = archive();
    match output(Command::new("nm").arg(&archive)) {
        None => println!("not looked for symbols of std: there is no nm"),
        Some(symbols) => {
            assert!(symbols.contains(" T slowstart_probe"));
            // Mangled paths begin with the length of the crate's name: std and alloc have 3 and 5 letters.
            for line in symbols.lines() {
                let found = ["3std", "5alloc", "__rust_alloc", "malloc"].iter().find(|s| line.contains(**s));
                assert!(found.is_none(), "{found:?} in {line}");
            }
        }
    }
    let program = archive.with_file_name("no_std_probe");
    let mut cc = Command::new("cc");
    if output(cc.arg(probe().join("main.c")).arg(&archive).arg("-o").arg(&program)).is_none() {
        println!("not run: there is no cc");
        return;
    }
    let all = output(&mut Command::new(program)).expect("the program");
    // With the arguments of main.c.
    let here = windows::windows(1_000_000_000, 1000, 100_000_000);
    assert_eq!(all.trim(), here.to_string(), "the same windows as with std");
}
