//! Tests of the objects in the running kernel. Each names the commands that it needs and prints `skipped`
//! with the kernel's reason where one of them does not work. They run in network namespaces that they create;
//! the default congestion control of the machine is not changed.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

#[path = "../common/mod.rs"]
mod common;
mod defaults;
mod degraded;
mod full;
mod kinds;
mod lifetime;
mod objects;
mod privileges;
mod selections;
mod trial;

use slowstart_linux::{Running, Spec, Verb, list};
use std::io::BufRead;
use std::sync::{Mutex, MutexGuard};

/// Names of controls are global in the kernel, so the tests run one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Returns the lock, or `None` if a command that the test needs does not work here.
fn able(needs: &[Verb]) -> Option<MutexGuard<'static, ()>> {
    common::works(needs).then(|| ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn spec(startup: &str) -> Spec {
    Spec::read(startup, "cubic").expect("in the table")
}

/// The registered controls that have a name of the table; a study at the same time has names of its own.
fn running() -> Vec<Running> {
    list().expect("readable").into_iter().filter(|r| r.startup.is_some()).collect()
}

fn names() -> Vec<String> {
    running().into_iter().map(|r| r.name).collect()
}

/// A child that is killed when the test ends, also if it fails.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this test program again to run one test, with an instruction for it in the environment.
fn child(test: &str, variable: &str, value: &str) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", test, "--nocapture"])
        .env(variable, value)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("starts")
}

/// Returns what a child printed until it ended.
fn output_of(child: std::process::Child) -> String {
    String::from_utf8_lossy(&child.wait_with_output().expect("ends").stdout).into_owned()
}

/// Waits until a child prints a line that contains this.
fn wait_for_line(child: &mut std::process::Child, text: &str) {
    let out = std::io::BufReader::new(child.stdout.take().expect("piped"));
    assert!(out.lines().map_while(Result::ok).any(|l| l.contains(text)), "no line with {text}");
}
