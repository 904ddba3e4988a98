//! The emulator without root: `emulate` and `suite run --serve` as a user without capabilities, in a user
//! namespace. Skipped where the system permits that user none, and without iproute2, python3 and curl.
#![cfg(feature = "kernel")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The user `nobody`, of whom a machine has no files.
const NOBODY: u32 = 65534;
const PATH: &str = "rate=20Mbit rtt=10ms queue=1bdp";

/// One path at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A folder that the user may write to, with a copy of the program that it may run.
struct Place {
    dir: PathBuf,
    uid: u32,
    _one: MutexGuard<'static, ()>,
}

impl Place {
    fn new(test: &str) -> Option<Self> {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let skip = |why: &str| println!("skipped: the emulator without root ({why})");
        let dir = std::env::temp_dir().join(format!("slowstart-unprivileged-{}-{test}", std::process::id()));
        fs::create_dir_all(&dir).expect("writable");
        let is_root = fs::metadata(&dir).expect("there").uid() == 0;
        let place = Self {
            uid: if is_root { NOBODY } else { fs::metadata(&dir).expect("there").uid() },
            dir,
            _one: one,
        };
        if is_root {
            chown(&place.dir, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        fs::copy(env!("CARGO_BIN_EXE_slowstart"), place.dir.join("slowstart")).expect("writable");
        fs::set_permissions(place.dir.join("slowstart"), fs::Permissions::from_mode(0o755)).expect("ours");
        for program in ["ip", "python3", "curl", "unshare"] {
            if !place.run(program, &["--help"]).status.success()
                && !place.run(program, &["-V"]).status.success()
            {
                skip(&format!("needs {program}"));
                return None;
            }
        }
        let namespaces = place.run("unshare", &["-Urnm", "mount", "-t", "tmpfs", "none", "/mnt"]);
        if !namespaces.status.success() {
            skip(&format!("no user namespace: {}", String::from_utf8_lossy(&namespaces.stderr).trim()));
            return None;
        }
        if !place.run("sh", &["-c", "test -w /dev/net/tun"]).status.success() {
            skip("/dev/net/tun is not for this user");
            return None;
        }
        Some(place)
    }

    fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> Output {
        let mut command = Command::new(program.as_ref());
        if self.uid == NOBODY {
            command.uid(NOBODY).gid(NOBODY);
        }
        let search = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        command.args(args).env_clear().env("PATH", search).env("TMPDIR", &self.dir).current_dir(&self.dir);
        command
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|e| panic!("{}: {e}", program.as_ref().display()))
    }

    fn slowstart(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let out = self.run(self.dir.join("slowstart"), args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn a_program_runs_over_the_path_and_its_files_are_the_users() {
    let Some(place) = Place::new("emulate") else { return };
    let script = "touch mine; ls /sys/class/net; curl -sSo /dev/null -w '%{http_code}' http://10.77.0.1/";
    let serve = "python3 -m http.server 80";
    let (status, out, err) = place.slowstart(&["emulate", PATH, "--serve", serve, "--", "sh", "-c", script]);
    assert!(err.contains("without root: the program runs in a user namespace"), "{err}");
    assert!(out.contains("path0") && out.ends_with("200"), "{out} {err}");
    // 2: the packets were late, as they may be without real-time priority.
    assert!(matches!(status, Some(0 | 2)), "{err}");
    let forward = err.lines().find(|l| l.contains("forward: ")).expect("statistics");
    assert!(!forward.contains("forward: 0 packets"), "{forward}");
    assert_eq!(fs::metadata(place.dir.join("mine")).expect("written").uid(), place.uid);
    let (status, _, err) = place.slowstart(&["emulate", PATH, "--user", "root", "--", "true"]);
    assert!(status == Some(2) && err.contains("--user root: without root there is no other user"), "{err}");
    let (status, _, err) = place.slowstart(&["emulate", PATH, "--", "sh", "-c", "exit 7"]);
    assert_eq!(status, Some(7), "{err}");
}

#[test]
fn a_stack_is_judged() {
    let Some(place) = Place::new("suite") else { return };
    let serve = "python3 -m http.server 80 -d \"$SLOWSTART_FILES\"";
    let fetch = "curl -sSfo /dev/null \"http://$SLOWSTART_SERVER/$SLOWSTART_SIZE\"";
    let (status, out, err) = place.slowstart(&[
        "suite",
        "run",
        "--scenario",
        "short-1MB",
        "--runs",
        "1",
        "--serve",
        serve,
        "--fetch",
        fetch,
    ]);
    // 2: nothing was observed, because packets were late.
    assert!(matches!(status, Some(0..=2)), "{err}");
    assert!(out.contains("- Both ends ran without root, in a user namespace."), "{out} {err}");
    assert!(out.contains("- Limits are what the kernel's Reno"), "{out}");
}

/// The end of a startup is seen by BPF, so a result without it would say that no startup ended.
#[test]
fn the_engine_kernel_is_refused_with_what_it_lacks() {
    let Some(place) = Place::new("engine") else { return };
    let (status, out, err) = place.slowstart(&[
        "compare",
        PATH,
        "--engine",
        "kernel",
        "--size",
        "100kB",
        "--runs",
        "1",
        "--startup",
        "cubic",
    ]);
    assert!(status == Some(2) && out.is_empty() && err.contains("run it as root"), "{out} {err}");
}

/// Files of others cannot be changed in a user namespace, not even in a copy of their folder.
#[test]
fn a_root_of_somebody_else_is_refused() {
    let Some(place) = Place::new("interop") else { return };
    if place.uid != NOBODY {
        return println!("skipped: a_root_of_somebody_else_is_refused (needs root)");
    }
    let root = place.dir.join("root");
    fs::create_dir_all(&root).expect("writable");
    fs::write(root.join("run_endpoint.sh"), "#!/run_endpoint.sh\n").expect("writable");
    let judge = ["suite", "run", "--scenario", "short-1MB", "--interop", "root"];
    let (status, _, err) = place.slowstart(&judge);
    assert!(status == Some(2) && err.contains("the root of root belongs to another user or group"), "{err}");
    chown(&root, Some(NOBODY), Some(NOBODY)).expect("root may");
    let (_, _, err) = place.slowstart(&judge);
    assert!(!err.contains("belongs to another"), "{err}");
}

#[test]
fn check_says_which_commands_need_root() {
    let Some(place) = Place::new("check") else { return };
    let (_, out, err) = place.slowstart(&["kernel", "check"]);
    let line = |name: &str| {
        out.lines().find_map(|l| l.trim_start().strip_prefix(name)).unwrap_or_else(|| panic!("{out} {err}"))
    };
    assert!(line("emulate").contains("works without root, in a user namespace"), "{out}");
    assert!(line("suite run --serve").contains("works without root"), "{out}");
    assert!(line("suite run --interop").contains("with a root that this user and group own"), "{out}");
    assert!(line("--engine kernel").contains("does not work: it observes the sender as watch does"), "{out}");
    assert!(line("watch").contains("does not work"), "{out}");
}
