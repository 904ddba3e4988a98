//! A controller in a library, wherever startups are named.

use crate::common::{slowstart, text};
use std::path::Path;
use std::process::Command;

/// Builds the example of `crates/ffi` in a folder of the test's own: another test may build it at the same time.
/// `None` without a C compiler.
fn newreno(test: &str) -> Option<String> {
    let ffi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ffi");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("plugin-{test}"));
    std::fs::create_dir_all(&dir).expect("writable");
    let to = dir.join("newreno.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-I"]).arg(ffi.join("include")).arg(ffi.join("examples/newreno.c"));
    let Ok(out) = cc.arg("-o").arg(&to).output() else {
        eprintln!("skipped: no C compiler");
        return None;
    };
    assert!(out.status.success(), "{}", text(&out.stderr));
    Some(format!("plugin:{}", to.display()))
}

#[test]
fn a_plugin_is_a_startup_of_every_command() {
    let Some(plugin) = newreno("1") else { return };
    let both = format!("{plugin},standard");
    let out = slowstart(&["compare", "geo", "--startup", &both, "--avoidance", "reno", "--runs", "2"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("newreno.so"), "{}", text(&out.stdout));

    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let study = dir.join("plugin.toml");
    let toml =
        format!("path = \"geo\"\nstartups = [\"{plugin}\", \"standard\"]\navoidance = \"reno\"\nruns = 2\n");
    std::fs::write(&study, toml).expect("writable");
    let out = slowstart(&["run", study.to_str().expect("UTF-8"), "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let rows = text(&out.stdout).replace(&format!("\"startup\":\"{plugin}\""), "\"startup\":\"standard\"");
    let unnamed = |l: &str| {
        l.replace("\"avoidance\":null", "\"avoidance\":\"reno\"")
            .replace("\"params\":{\"growth\":\"host\"}", "\"params\":{}")
    };
    let rows: Vec<String> = rows.lines().map(unnamed).collect();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[..2], rows[2..], "the same rows but for the name");

    let some = ["--scenario", "overshoot-deep", "--scenario", "short-1MB", "--runs", "6"];
    let out =
        slowstart(&[&["suite", "run", "--startup", &plugin, "--avoidance", "reno"], &some[..]].concat());
    assert!(text(&out.stdout).contains("newreno.so |"), "{}", text(&out.stderr));

    let league = ["league", &both, "--avoidance", "reno", "--population", "random", "--runs", "2", "--json"];
    let out = slowstart(&league);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains(&plugin), "{}", text(&out.stdout));
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let out = slowstart(&["compare", "geo", "--startup", "plugin:./nothing.so"]);
    assert_eq!(out.status.code(), Some(2));
    let why = text(&out.stderr);
    assert!(why.contains("startup: found \"plugin:./nothing.so\", expected a library"), "{why}");
}

/// A call that does not return ends with the process: by a signal soon, without one after a bound of CPU time.
#[cfg(target_os = "linux")]
#[test]
fn a_plugin_that_loops_ends_on_sigterm() {
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;
    if newreno("2").is_none() {
        return;
    }
    let ffi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ffi");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library, mark) = (dir.join("loop.c"), dir.join("loop.so"), dir.join("loop.begun"));
    let example = std::fs::read_to_string(ffi.join("examples/newreno.c")).expect("an example");
    let begin = "\tstruct newreno *nr = c;\n\t/* Only a sender";
    assert_eq!(example.matches(begin).count(), 1);
    let endless = format!(
        "\tif (f->now_ns > 300000000) {{ FILE *m = fopen(\"{}\", \"w\"); if (m) fclose(m); for (;;) {{}} }}\n{begin}",
        mark.display()
    );
    std::fs::write(&source, format!("#include <stdio.h>\n{}", example.replace(begin, &endless)))
        .expect("writable");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-I"]).arg(ffi.join("include")).arg(&source).arg("-o").arg(&library);
    let out = cc.output().expect("it ran before");
    assert!(out.status.success(), "{}", text(&out.stderr));
    let plugin = format!("plugin:{}", library.display());
    let run = |by_signal: bool, stderr: std::process::Stdio| {
        _ = std::fs::remove_file(&mark);
        let child = Command::new(env!("CARGO_BIN_EXE_slowstart"))
            .args(["compare", "geo", "--startup", &plugin, "--runs", "1"])
            .stderr(stderr)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it runs");
        if by_signal {
            while !mark.exists() {
                std::thread::sleep(Duration::from_millis(20));
            }
            let killed = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status();
            assert!(killed.expect("it runs").success());
        }
        let out = child.wait_with_output().expect("it ends");
        assert_eq!(out.status.signal(), None);
        (out.status.code(), text(&out.stderr))
    };
    let (status, told) = run(true, std::process::Stdio::piped());
    assert!(
        status == Some(143) && told.contains("interrupted, before a run or a file was finished"),
        "{status:?} {told}"
    );
    if std::env::var_os("SLOWSTART_LONG").is_some() {
        let (status, told) = run(false, std::process::Stdio::piped());
        assert!(
            status == Some(2) && told.contains("loop.so: a call did not return after"),
            "{status:?} {told}"
        );
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        assert_eq!(run(false, full.into()).0, Some(2), "nobody reads why");
    }
}
