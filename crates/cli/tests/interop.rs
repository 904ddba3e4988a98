//! `slowstart suite run --interop`: an endpoint of the QUIC interop runner's container contract, here a root with busybox that
//! speaks HTTP over TCP. Needs root, and is skipped otherwise.
#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
#![cfg(feature = "kernel")]

use slowstart_linux::emulate::possible;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One path at a time: each has a real-time thread.
static ONE: Mutex<()> = Mutex::new(());

/// What an endpoint does, by the test case.
const ENTRY: &str = r#"#!/bin/sh
/setup.sh
show() { env | sort; ls -d /www/* /certs/* /downloads /logs/qlog; cat /etc/hosts; pwd; }
case "$TESTCASE/$ROLE" in
  show/client | show-server/server) show; exit 3 ;;
  no-server/server | no-client/client) exit 127 ;;
  lie/client) exit 0 ;;
  */server) [ "$TESTCASE" != log ] || echo "no qlog" >/logs/qlog/log; exec httpd -f -p 443 -h /www ;;
esac
/wait-for-it.sh sim:57832 -s -t 30 || exit 1
for url in $REQUESTS; do
  wget -q -O "/downloads/${url##*/}" "http://${url#https://}" || exit 1
done
"#;
/// As the setup of the runner's images, it changes what the runner's network has.
const SETUP: &str = "#!/bin/sh\necho setting up\nip link set lo down\nexit 1\n";
/// As that of the runner's images, it waits until something listens.
const WAIT: &str = "#!/bin/sh\nexec nc -w 5 \"${1%:*}\" \"${1#*:}\" -e /bin/true\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A root for this test, with busybox and the libraries that it needs.
fn root(test: &str) -> Option<(MutexGuard<'static, ()>, PathBuf)> {
    let skipped = |why: &str| println!("skipped: {test} ({why})");
    if let Err(why) = possible() {
        skipped(&why.to_string());
        return None;
    }
    let Some(busybox) =
        std::env::split_paths(&std::env::var_os("PATH")?).map(|d| d.join("busybox")).find(|f| f.is_file())
    else {
        skipped("no busybox");
        return None;
    };
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("interop-{test}")).join("root");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("bin")).expect("writable");
    fs::copy(&busybox, root.join("bin/busybox")).expect("writable");
    let libraries =
        Command::new("ldd").arg(&busybox).output().map(|out| text(&out.stdout)).unwrap_or_default();
    for library in libraries.split_whitespace().filter(|w| w.starts_with('/')) {
        let there = root.join(&library[1..]);
        fs::create_dir_all(there.parent().expect("a folder")).expect("writable");
        fs::copy(library, there).expect("writable");
    }
    let applets = ["sh", "env", "sort", "ls", "cat", "httpd", "wget", "nc", "ip", "true"];
    for applet in applets {
        symlink("busybox", root.join("bin").join(applet)).expect("writable");
    }
    for (file, text) in [("run_endpoint.sh", ENTRY), ("setup.sh", SETUP), ("wait-for-it.sh", WAIT)] {
        fs::write(root.join(file), text).expect("writable");
        fs::set_permissions(root.join(file), fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let missing = |a: &&&str| {
        !Command::new(&busybox)
            .arg(a)
            .arg("--help")
            .output()
            .is_ok_and(|o| !text(&o.stderr).contains("applet not found"))
    };
    if let Some(applet) = applets.iter().find(missing) {
        skipped(&format!("busybox has no {applet}"));
        return None;
    }
    Some((ONE.lock().unwrap_or_else(PoisonError::into_inner), root))
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slowstart"))
        .args(["suite", "run", "--scenario", "short-1MB", "--runs", "2"])
        .args(arguments)
        .output()
        .expect("it runs")
}

/// Returns true if a run was late: of that nothing is read, and if all were nothing is judged.
fn late(out: &Output) -> bool {
    text(&out.stdout).contains("packets were released over 1 ms late")
}

/// Returns true if it judged, or could not for a machine that was busy.
fn ran(out: &Output) -> bool {
    matches!(out.status.code(), Some(0 | 1)) || late(out)
}

/// Everything below a folder.
fn below(dir: &Path, all: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a folder").flatten() {
        all.insert(entry.path());
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            below(&entry.path(), all);
        }
    }
}

fn json(file: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(file).expect("written")).expect("JSON")
}

/// The values of a report's criterion.
fn values<'a>(report: &'a serde_json::Value, criterion: &str) -> &'a [serde_json::Value] {
    let entries = report["entries"].as_array().expect("entries");
    let of = entries.iter().find(|e| e["criterion"].as_str().is_some_and(|c| c.starts_with(criterion)));
    of.and_then(|e| e["values"].as_array()).expect(criterion)
}

/// The image, and the same programs by two commands, are judged alike.
#[test]
fn an_image_is_judged_as_its_commands_are() {
    let Some((_one, root)) = root("an_image_is_judged_as_its_commands_are") else { return };
    let dir = root.parent().expect("ours");
    let [image, commands, qlog] = ["image.json", "commands.json", "qlog"].map(|f| dir.join(f));
    for old in [&image, &commands] {
        let _ = fs::remove_file(old);
    }
    fs::create_dir_all(&qlog).expect("writable");
    let [image, commands, qlog] = [&image, &commands, &qlog].map(|p| p.to_str().expect("UTF-8"));
    let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
    below(&root, &mut before);
    let own = ["--interop", root.to_str().expect("UTF-8"), "--name", "busybox"];
    let out = run(&[&own[..], &["--json", image, "--warm-up"]].concat());
    assert!(ran(&out), "{}{}", text(&out.stdout), text(&out.stderr));
    below(&root, &mut after);
    assert_eq!(before, after, "the image's root stays as it is");
    let serve = "busybox httpd -f -p 443 -h \"$SLOWSTART_FILES\"";
    let fetch = "busybox wget -q -O /dev/null \"http://$SLOWSTART_SERVER:443/$SLOWSTART_SIZE\"";
    let out =
        run(&["--serve", serve, "--fetch", fetch, "--name", "busybox", "--json", commands, "--warm-up"]);
    assert!(ran(&out), "{}{}", text(&out.stdout), text(&out.stderr));
    let (image, commands) = (json(Path::new(image)), json(Path::new(commands)));
    assert_eq!(image["startups"], commands["startups"]);
    // A run on a busy machine may be late, and then it has no values.
    let seen = |report, criterion| {
        values(report, criterion).iter().filter_map(serde_json::Value::as_f64).collect::<Vec<_>>()
    };
    for report in [&image, &commands] {
        assert!(seen(report, "lost_packets").iter().all(|n| *n == 0.0), "{report}");
        assert!(seen(report, "completion_s").iter().all(|s| (0.2..1.0).contains(s)), "{report}");
        if seen(report, "completion_s").is_empty() {
            println!("skipped: values of an image and its commands (every run was late)");
        }
    }
    let note = image["notes"][0].as_str().expect("a note");
    assert!(
        note.contains(
            "server and client of root, by the contract of the QUIC interop runner, test case transfer"
        ),
        "{note}"
    );
    assert!(image["command"].as_array().is_some_and(|c| c.contains(&"--interop".into())), "{image}");

    // What its server writes to QLOGDIR is read, and kept where the caller asks for it. This is no qlog.
    let logs = [&own[..], &["--testcase", "log"]].concat();
    let out = run(&logs);
    let told = text(&out.stdout).contains("2 of 2 runs: the server wrote a qlog that cannot be read.");
    assert!(told || late(&out), "{}", text(&out.stdout));
    let out = run(&[&logs[..], &["--qlog", qlog]].concat());
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stdout));
    let refused = text(&out.stderr).contains(&format!("--qlog {qlog}/log: "));
    assert!(refused || late(&out), "{}", text(&out.stderr));
    assert_eq!(fs::read_to_string(Path::new(qlog).join("log")).expect("its log"), "no qlog\n");
}

/// What an image finds: the variables, the folders and the names of the contract.
#[test]
fn the_contract_is_honoured() {
    let Some((_one, root)) = root("the_contract_is_honoured") else { return };
    let root = root.to_str().expect("UTF-8");
    let out = run(&["--interop", root, "--testcase", "show"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stdout));
    let client = text(&out.stdout);
    let out = run(&["--interop", root, "--testcase", "show-server"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stdout));
    let server = text(&out.stderr);
    for common in [
        "CERTS=/certs",
        "DOWNLOADS=/downloads",
        "QLOGDIR=/logs/qlog/",
        "SSLKEYLOGFILE=/logs/keys.log",
        "WWW=/www",
        "/certs/ca.pem /certs/cert.pem /certs/priv.key",
        "server server4",
    ] {
        assert!(client.contains(common) && server.contains(common), "{common}: {client}{server}");
    }
    for own in
        ["setting up", "REQUESTS=https://server4:443/1000000 ", "ROLE=client ", "TESTCASE=show ", "status: 3"]
    {
        assert!(client.contains(own), "{own}: {client}");
    }
    for own in ["setting up", "ROLE=server ", "TESTCASE=show-server ", "/www/1000000"] {
        assert!(server.contains(own), "{own}: {server}");
    }
    assert!(!server.contains("REQUESTS=") && !client.contains("/www/1"), "{client}{server}");
}

#[test]
fn status_127_is_unsupported_and_a_file_that_is_missing_is_no_success() {
    let Some((_one, root)) = root("status_127_is_unsupported") else { return };
    let root = root.to_str().expect("UTF-8");
    for end in ["server", "client"] {
        let out = run(&["--interop", root, "--testcase", &format!("no-{end}"), "--name", "mine"]);
        let printed = text(&out.stdout);
        let line = format!(
            "- short-1MB: unsupported: the {end} of root does not have the test case no-{end} (status 127)\n"
        );
        assert!(printed.contains(&line), "{printed}{}", text(&out.stderr));
        assert_eq!(out.status.code(), Some(2), "nothing was judged");
    }
    let out = run(&["--interop", root, "--testcase", "lie"]);
    let printed = text(&out.stdout);
    assert!(printed.contains("the client ended with status 0, but /downloads has no 1000000"), "{printed}");
    assert_eq!(out.status.code(), Some(2), "nothing was judged");
}

/// The image of a container engine starts as its configuration says.
#[test]
fn an_image_of_podman() {
    if !Command::new("podman").arg("info").output().is_ok_and(|out| out.status.success()) {
        println!("skipped: an_image_of_podman (no podman)");
        return;
    }
    let Some((_one, root)) = root("an_image_of_podman") else { return };
    let tar = root.with_file_name("root.tar");
    fs::create_dir_all(root.join("work")).expect("writable");
    fs::rename(root.join("run_endpoint.sh"), root.join("work/other.sh")).expect("writable");
    let packed = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&tar).arg(".").status();
    assert!(packed.is_ok_and(|s| s.success()));
    let image = format!("localhost/slowstart-test-{}:1", std::process::id());
    let made = Command::new("podman")
        .args(["import", "-c", "ENTRYPOINT [\"./other.sh\"]", "-c", "WORKDIR /work", "-c", "ENV OURS=1"])
        .arg(&tar)
        .arg(&image)
        .output()
        .expect("podman");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let shown = run(&["--interop", &image, "--testcase", "show"]);
    let judged = run(&["--interop", &image]);
    let removed = Command::new("podman").args(["image", "rm", &image]).output().expect("podman");
    assert!(removed.status.success(), "a container of it is left: {}", text(&removed.stderr));
    let printed = text(&shown.stdout);
    assert!(printed.contains("OURS=1 ") && printed.contains(" /work"), "{printed}{}", text(&shown.stderr));
    assert!(printed.contains("version image sha256:"), "{printed}");
    assert!(ran(&judged), "{}{}", text(&judged.stdout), text(&judged.stderr));
}

#[test]
fn what_is_no_image_is_named() {
    let why = |arguments: &[&str]| {
        let out = run(arguments);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stdout));
        text(&out.stderr)
    };
    assert!(why(&["--interop", "/no/such"]).contains("--interop: found no folder /no/such"));
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop-empty");
    fs::create_dir_all(&empty).expect("writable");
    let said = why(&["--interop", empty.to_str().expect("UTF-8")]);
    assert!(said.contains("found no run_endpoint.sh in the root"), "{said}");
    assert!(why(&["--interop", "x", "--serve", "a", "--fetch", "b"]).contains("--serve"));
    assert!(why(&["--testcase", "http3"]).contains("--interop"));
}
