//! Tests of `slowstart kernel memory` as a command. They print `skipped` with the kernel's reason
//! where `load` or `memory` does not work.
#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
#![cfg(feature = "kernel")]

mod works;

use slowstart_linux::Verb;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::SystemTime;
use works::works;

fn slowstart(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    command.args(args).env("NO_COLOR", "1");
    command
}

fn run(args: &[&str]) -> Output {
    slowstart(args).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A program that holds a startup, killed at the end of the test.
struct Holder(Child);

impl Holder {
    fn new(args: &[&str]) -> Self {
        let mut child =
            slowstart(&[&["kernel", "load"], args].concat()).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("text");
        assert!(line.contains("loaded"), "{line}");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asserts that a command ends with status 2 and says this.
fn refused(args: &[&str], says: &str) {
    let done = run(args);
    let said = text(&done.stderr);
    assert!(done.status.code() == Some(2) && said.contains(says), "{args:?}: {:?} {said}", done.status);
}

fn import(file: &Path, lines: &str) -> Output {
    fs::write(file, lines).expect("written");
    run(&["kernel", "memory", "import", &file.display().to_string()])
}

#[test]
fn memory_is_imported_listed_exported_and_cleared() {
    if !works(&[Verb::Load, Verb::Memory]) {
        return;
    }
    refused(&["kernel", "memory", "list", "careful-resume"], "no control of this name");
    let load = |more: &[&'static str]| [&["kernel", "load", "careful-resume"], more].concat();
    refused(&load(&["--memory-prefix", "33,56"]), "such as 24,56");
    refused(&load(&["--memory-by", "user"]), "port, cgroup");
    refused(&load(&["--memory-lifetime", "soon"]), "--memory-lifetime");

    let holder = Holder::new(&["careful-resume", "--memory-prefix", "20,48"]);
    #[allow(clippy::disallowed_methods, reason = "the entry is of this moment")]
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let line = |prefix: &str, saved: u64| {
        format!(
            "{{\"control\":\"ss_resume\",\"prefix\":\"{prefix}\",\"port\":443,\"cwnd_bytes\":900000,\
             \"rtt_us\":600000,\"rate_bps\":12000000,\"saved_unix_s\":{saved}}}\n"
        )
    };
    let file = std::env::temp_dir().join(format!("slowstart-memory-{}", std::process::id()));
    let good = line("192.0.0.0/20", now - 5);
    // One line that is not valid: nothing is added.
    for (bad, says) in [
        (
            line("192.0.2.0/24", now),
            "line 2: ss_resume: memory: prefix of 24 bits, where it keeps prefixes of 20",
        ),
        (line("192.0.2.0/20", now), "bits set beyond its first 20"),
        (line("192.0.0.0/20", now + 3600), "in the future"),
        (line("192.0.0.0/20", now - 7200), "ago"),
        (line("192.0.0.0/20", now).replace("ss_resume", "ss_state"), "is not loaded"),
        (line("192.0.0.0/20", now).replace("port", "cgroup"), "kept by port"),
        (line("192.0.0.0/20", now).replace("900000", "0"), "cwnd_bytes: expected 1 to 1073741824"),
        (line("192.0.0.0/20", now).replace("900000", &u64::MAX.to_string()), "the largest window of TCP"),
        (line("192.0.0.0/20", now).replace("12000000", "99000000"), "rate_bps: expected 1 to 24000000"),
        ("{".to_string(), "line 2"),
        ("\u{fffd}\0".to_string(), "line 2"),
    ] {
        let done = import(&file, &format!("{good}{bad}"));
        let said = text(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(says), "{bad}: {:?} {said}", done.status);
    }
    refused(&["kernel", "memory", "import", "/nowhere"], "/nowhere");
    // It has no end, and no lines.
    refused(&["kernel", "memory", "import", "/dev/zero"], "line 1: longer than 1024 bytes");
    assert_eq!(text(&run(&["kernel", "memory", "export"]).stdout), "");

    let two = format!("{good}\n{}", line("2001:db8::/48", now - 9));
    assert_eq!(text(&import(&file, &two).stdout), "2 entries added\n");
    let shown = text(&run(&["kernel", "memory", "list", "careful-resume"]).stdout);
    assert!(shown.contains("2 entries, by /20 of IPv4, /48 of IPv6 and port, used for 3600 s"), "{shown}");
    assert!(
        shown.contains("192.0.0.0/20") && shown.contains("cwnd 900 kB  RTT 600.0 ms  12.0 Mbit/s"),
        "{shown}"
    );
    let exported = text(&run(&["kernel", "memory", "export", "ss_resume"]).stdout);
    assert_eq!(exported.lines().count(), 2);
    assert!(exported.contains("\"prefix\":\"2001:db8::/48\""), "{exported}");
    assert_eq!(text(&run(&["kernel", "memory", "clear"]).stdout), "ss_resume: 2 entries removed\n");
    assert_eq!(text(&import(&file, &exported).stdout), "2 entries added\n");
    fs::remove_file(&file).expect("it was written");
    drop(holder);
}
