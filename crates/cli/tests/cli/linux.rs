//! A Linux kernel at virtual time: what it runs, what it refuses, and how a guest that fails is told.
//!
//! Needs a kernel that `make uml` built: `SLOWSTART_UML` names it, or the newest of the folder in which `make uml` keeps them is
//! taken. Building one takes minutes, so that no test does; without one the tests are skipped.

use crate::common::{folder, slowstart};
use slowstart_study::record::{Row, Sample};
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

const PATH: &str = "rate=20Mbit rtt=50ms queue=1bdp";

/// Window at the exit in bytes, packets sent again, and nanoseconds to the exit and to the last byte of 2 MB over [`PATH`], twice
/// with CUBIC, slow start and BBR: Linux 6.12.117 of Debian 12 on an Intel Xeon with AVX-512 and AMX, 30 November 2026.
const ELSEWHERE: [(u64, Option<u64>, u64, u64); 6] = [
    (179_552, Some(9), 306_072_347, 1_061_987_972),
    (179_552, Some(9), 305_792_421, 1_061_091_554),
    (487_976, Some(239), 437_758_632, 1_088_841_942),
    (487_976, Some(239), 437_646_700, 1_089_176_458),
    (243_264, Some(184), 755_230_976, 1_057_608_120),
    (240_368, Some(183), 751_926_417, 1_057_456_568),
];

/// The kernel to test with.
fn kernel() -> Option<PathBuf> {
    if let Some(given) = env::var_os("SLOWSTART_UML") {
        return Some(given.into());
    }
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cache"));
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).map(|c| c.join("slowstart"));
    let folder = env::var_os("SLOWSTART_CACHE").map(PathBuf::from).or(cache)?.join("uml");
    let kernels = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path().join("linux"));
    kernels.filter(|k| k.is_file()).max_by_key(|k| fs::metadata(k).and_then(|m| m.modified()).ok())
}

/// The engine of the kernel to test with; says why a test is skipped if there is none.
fn engine(what: &str) -> Option<String> {
    let Some(kernel) = kernel() else {
        println!("skipped: {what} (no kernel: make uml KERNEL=6.12)");
        return None;
    };
    Some(format!("linux:{}", kernel.display()))
}

fn rows(arguments: &[&str]) -> (String, Vec<Row>) {
    let out = slowstart(&[arguments, &["--json", "-q"]].concat());
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let rows = text.lines().map(|l| serde_json::from_str(l).expect("a row")).collect();
    (text, rows)
}

/// The message of a command that fails with status 2.
fn refused(arguments: &[&str]) -> String {
    let out = slowstart(arguments);
    let message = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{message}");
    message
}

#[test]
fn a_kernel_leaves_slow_start_where_the_simulator_does_and_repeats_to_the_byte() {
    let Some(engine) = engine("the kernel beside the simulator") else { return };
    let arguments = [
        "compare",
        PATH,
        "--engine",
        &engine,
        "--startup",
        "cubic,standard,bbr",
        "--size",
        "2MB",
        "--runs",
        "2",
    ];
    let (text, all) = rows(&arguments);
    let (again, _) = rows(&[&arguments[..], &["-j", "1"]].concat());
    assert_eq!(text, again, "the number of threads and what else runs do not matter");
    if all[0].profile.starts_with("Linux 6.12.117 ") {
        let figures = |r: &Row| {
            let exit = r.exit.as_ref().expect("it ends");
            let ns = |s: f64| (s * 1e9).round() as u64;
            (
                exit.detected_cwnd_bytes,
                r.retransmitted_packets,
                ns(exit.time_s),
                ns(r.completion_s.unwrap_or_default()),
            )
        };
        assert_eq!(
            all.iter().map(figures).collect::<Vec<_>>(),
            ELSEWHERE,
            "another machine has other figures"
        );
    } else {
        println!("skipped: figures of another machine (they are of Linux 6.12.117)");
    }
    let (_, simulated) =
        rows(&["compare", PATH, "--startup", "hystart,standard,bbr", "--size", "2MB", "--runs", "2"]);
    assert_eq!((all.len(), simulated.len()), (6, 6));
    for (linux, sim) in all.iter().zip(&simulated) {
        assert_eq!((linux.engine.as_str(), linux.seed), ("linux", sim.seed));
        assert!(linux.profile.starts_with("Linux 6") && linux.caveats.is_empty(), "{linux:?}");
        let (a, b) = (linux.exit.as_ref().expect("it ends"), sim.exit.as_ref().expect("it ends"));
        let name = &linux.startup;
        assert_eq!(a.reason, b.reason, "{name}");
        let ratio = a.detected_cwnd_bytes as f64 / b.detected_cwnd_bytes as f64;
        assert!((0.85..1.15).contains(&ratio), "{name}: {a:?}, the simulator {b:?}");
        let ratio = linux.completion_s.expect("complete") / sim.completion_s.expect("complete");
        assert!((0.9..1.1).contains(&ratio), "{name}: {ratio} of the simulator's time");
        assert_eq!(linux.startup_lost_packets > Some(0), sim.startup_lost_packets > Some(0), "{name}");
    }
}

/// Thousands of packets are lost of a window of megabytes: the receiver must keep what comes behind them, or it is sent again.
#[test]
fn a_kernel_has_memory_for_what_comes_out_of_order() {
    let Some(engine) = engine("memory of a guest") else { return };
    let startup = ["--startup", "cubic:hystart=0", "--size", "20MB", "--runs", "1"];
    let arguments = [&["compare", "wifi-strong", "--engine", &engine], &startup[..]].concat();
    let (text, all) = rows(&arguments);
    let (lost, again) = (all[0].lost_packets.expect("known"), all[0].retransmitted_packets.expect("known"));
    assert!(lost > 1000 && again * 10 < lost * 11, "{again} sent again, {lost} lost");
    assert_eq!(text, rows(&arguments).0);
}

/// An ACK filter leaves too few ACKs in a round for HyStart's delay rule, which waits for eight; without the filter the kernel
/// leaves 80 ms earlier.
#[test]
fn a_kernel_gets_the_acks_that_a_filter_leaves() {
    let Some(engine) = engine("a path that filters ACKs") else { return };
    let exit = |engine: &[&str], startup: &str| {
        let path = "rate=50Mbit rtt=40ms queue=2bdp ack_aggregate=10ms ack_filter=on";
        let fixed = ["compare", path, "--startup", startup, "--size", "2MB", "--runs", "1"];
        let (_, mut all) = rows(&[&fixed[..], engine].concat());
        let row = all.remove(0);
        (row.exit.expect("it leaves"), row.profile)
    };
    let ((sim, _), (linux, kernel)) = (exit(&[], "hystart"), exit(&["--engine", &engine], "cubic"));
    assert_eq!(sim.reason, linux.reason);
    assert!((sim.time_s - linux.time_s).abs() < 1e-3, "{sim:?}, the kernel {linux:?}");
    let packets = if kernel.starts_with("Linux 6.1.") { 2 } else { 1 };
    assert!(
        sim.detected_cwnd_bytes.abs_diff(linux.detected_cwnd_bytes) <= packets * 1448,
        "{sim:?}, the kernel {linux:?}"
    );
}

/// Every application asks for the same objects as in the simulator, and gets them as soon.
#[test]
fn applications_run_over_a_kernel_as_in_the_simulator() {
    let Some(engine) = engine("applications of a kernel") else { return };
    let jitter = format!("{PATH} ack_jitter=600us");
    let apps: [&[&str]; 5] = [
        &["5MB,2s,5MB"],
        &["writes:500kB@1Mbit,2s,3MB"],
        &["web", "--duration", "5s"],
        &["browser", "--duration", "5s"],
        &["video", "--duration", "6s"],
    ];
    for app in apps {
        let common = ["compare", &jitter, "--startup", "hystart", "--runs", "1", "--app"];
        let of = |engine: &str| rows(&[&common[..], app, &["--engine", engine]].concat()).1.remove(0);
        let (simulated, real) = (of("sim"), of(&engine));
        let (s, r) = (simulated.objects.expect("several"), real.objects.expect("several"));
        assert_eq!((s.asked, s.complete), (r.asked, r.complete), "{app:?}");
        let (s, r) = (s.median_s.expect("all came"), r.median_s.expect("all came"));
        assert!((s / r - 1.0).abs() < 0.05, "{app:?}: {s} s simulated, {r} s in the kernel");
        assert_eq!(simulated.completion_s.is_some(), real.completion_s.is_some(), "{app:?}");
    }
}

/// After two seconds without data Linux sends its initial window, after 0.1 s, less than a timeout, the whole window.
#[test]
fn a_kernel_restarts_after_an_idle_time() {
    let Some(engine) = engine("a kernel after an idle time") else { return };
    for (pause, restarts) in [("2s", true), ("100ms", false)] {
        let out = folder(&format!("linux-idle-{pause}"));
        let folder = out.to_str().expect("UTF-8");
        let app = format!("2MB,{pause},2MB");
        let common =
            ["compare", PATH, "--engine", &engine, "--startup", "reno", "--runs", "1", "--app", &app];
        rows(&[&common[..], &["--samples", "ack", "--out", folder]].concat());
        let text = fs::read_to_string(out.join("samples.jsonl")).expect("samples");
        let samples: Vec<Sample> = text.lines().map(|l| serde_json::from_str(l).expect("a sample")).collect();
        let idle = samples.iter().rposition(|s| s.inflight_bytes == 0 && s.delivered_bytes == 2_000_000);
        let next = &samples[idle.expect("nothing is in flight") + 1];
        assert_eq!(next.cwnd_bytes == 10 * 1448, restarts, "{pause}: {next:?}");
    }
}

#[test]
fn a_capture_of_a_kernel_has_its_packets() {
    let Some(engine) = engine("a capture of a kernel") else { return };
    let folder = folder("linux-capture");
    let at = folder.to_str().expect("UTF-8");
    let arguments =
        ["--startup", "cubic,cubic:hystart=0", "--size", "200kB", "--runs", "1", "--pcap", "--out", at];
    let out = slowstart(&[&["compare", PATH, "--engine", &engine], &arguments[..]].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    for name in ["cubic.server", "cubic-hystart-0.client"] {
        let size = fs::metadata(folder.join(format!("{name}.pcapng"))).expect(name).len();
        // 139 segments, and an ACK for two of them, are over 200 records of at least 90 bytes.
        assert!(size > 18_000, "{name}: {size} bytes");
    }
}

/// A module of a user is a startup by name, with its parameters: the example of `contrib/linux/module`, built against the kernel.
#[test]
fn a_module_is_a_startup_by_its_name() {
    let what = "a module as a startup";
    let Some(engine) = engine(what) else { return };
    let built =
        kernel().and_then(|k| Some(fs::canonicalize(k).ok()?.parent()?.to_path_buf())).expect("a kernel");
    if !built.join("Module.symvers").exists() || Command::new("make").arg("--version").output().is_err() {
        println!("skipped: {what} (modules need make, and the folder in which make uml built the kernel)");
        return;
    }
    let folder = folder("linux-module");
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../contrib/linux/module");
    for name in ["tcp_upto.c", "Makefile"] {
        fs::copy(source.join(name), folder.join(name)).expect(name);
    }
    let mut make = Command::new("make");
    make.args(["-s", "ARCH=um", "modules", "-C"]).arg(&built).arg(format!("M={}", folder.display()));
    let made = make.output().expect("it starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let engine = format!("{engine},module={}", folder.join("tcp_upto.ko").display());
    let with = ["compare", PATH, "--engine", &engine, "--size", "500kB", "--runs", "1", "--startup"];
    let (_, all) = rows(&[&with[..], &["upto:limit=40,upto:limit=20,reno"]].concat());
    let exits: Vec<(&str, u64)> = all
        .iter()
        .map(|r| r.exit.as_ref().map_or(("none", 0), |e| (e.reason.as_str(), e.detected_cwnd_bytes / 1448)))
        .collect();
    assert_eq!(exits[..2], [("ssthresh", 40), ("ssthresh", 20)], "{exits:?}");
    assert_ne!(exits[2].0, "ssthresh", "{exits:?}");
    let unknown = refused(&[&with[..], &["upto:limti=40"]].concat());
    assert!(unknown.contains("did you mean \"limit\"?"), "{unknown}");
}

#[test]
fn what_is_no_such_kernel_is_named() {
    let with = |file: &str| refused(&["compare", "geo", "--engine", &format!("linux:{file}")]);
    assert!(with("").contains("expected a kernel that `make uml` built"), "{}", with(""));
    assert!(with("./absent").contains("absent: No such file"), "{}", with("./absent"));
    assert!(with("/usr").contains("/usr: found a folder"));
    assert!(with("/etc/passwd").contains("no program"));
    for program in [env!("CARGO_BIN_EXE_slowstart"), "/bin/sh"] {
        assert!(with(program).contains("no User-Mode Linux"), "{}", with(program));
    }
    let setting = with("/bin/sh,raed=1ms");
    assert!(setting.contains("did you mean \"read\"?"), "{setting}");
}

#[test]
fn what_a_kernel_lacks_is_refused_by_name() {
    let Some(engine) = engine("what a kernel lacks") else { return };
    let with =
        |more: &[&str]| refused(&[&["compare", PATH, "--engine", &engine, "--size", "1MB"], more].concat());
    let control = with(&["--startup", "cubik"]);
    assert!(
        control.contains("\"cubik\" (did you mean \"cubic\"?)") && control.contains("westwood"),
        "{control}"
    );
    let parameter = with(&["--startup", "cubic:hystrat=0"]);
    assert!(parameter.contains("did you mean \"hystart\"?"), "{parameter}");
    assert!(with(&["--startup", "cubic:beta=x"]).contains("the kernel refused the value"));
    assert!(with(&["--startup", "cubic", "--set", "iw=4"]).contains("set: the engine linux:"));
    assert!(with(&["--startup", "cubic", "--against", "cubic@-1s"]).contains("against: the engine linux:"));
    // A kernel without accurate feedback lacks each case of this population.
    let out = slowstart(&["league", "cubic", "--engine", &engine, "--population", "managed", "--runs", "1"]);
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() || message.contains("--population managed: set: "), "{message}");
    let interface = refused(&["compare", "interface", "--engine", &engine, "--startup", "cubic"]);
    assert!(interface.contains("path: the engine linux:") && interface.contains("link=host"), "{interface}");
    let app = with(&["--startup", "cubic", "--app", "connections:2"]);
    assert!(app.contains("app: the engine linux:"), "{app}");
}

#[test]
fn a_guest_that_fails_says_how() {
    let Some(engine) = engine("guests that fail") else { return };
    let folder = env!("CARGO_TARGET_TMPDIR");
    let program = |name: &str, text: &str| {
        let file = format!("{folder}/{name}");
        fs::write(&file, text).expect(&file);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect(&file);
        file
    };
    let with = |setting: &str| refused(&["compare", PATH, "--engine", &format!("{engine},{setting}")]);
    // The first process ends: the kernel panics, and says so on its console.
    let ends = with(&format!("program={}", program("ends", "#!/bin/sh\nexit 3\n")));
    assert!(ends.contains("ended without an answer") && ends.contains("panic"), "{ends}");
    let spins = with(&format!("cpu=1s,program={}", program("spins", "#!/bin/sh\nwhile :; do :; done\n")));
    assert!(spins.contains("ended without an answer"), "{spins}");
    let module = with("module=/etc/passwd");
    assert!(module.contains("module /etc/passwd"), "{module}");
    let out = Command::new(env!("CARGO_BIN_EXE_slowstart"))
        .args(["compare", PATH, "--engine", &engine])
        .env("TMPDIR", "/proc")
        .output()
        .expect("it starts");
    let message = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && message.contains("make a folder in /proc"), "{message}");
}

#[test]
fn a_kernel_does_not_differ_from_itself_and_its_parameters_show() {
    let Some(engine) = engine("kernel-patch") else { return };
    let cases = ["--population", "leo,wifi-weak", "--cases", "2", "--size", "1MB"];
    let print = |old: &str, new: &str, more: &[&str]| {
        let out = slowstart(&[&["kernel-patch", old, new], &cases[..], more].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("UTF-8")
    };
    let folder = folder("linux-patch");
    let out = folder.to_str().expect("UTF-8");
    let same = print(&engine, &engine, &["--out", out]);
    assert!(same.contains("same windows after every acknowledgement: 4 of 4"), "{same}");
    assert!(same.contains("same in every figure (1 packet, 1 ms): 4 of 4"), "{same}");
    let other = print("sim", &engine, &[]);
    assert!(other.contains("all received (s) by population\nleo "), "{other}");
    // The guide: `diff` reads the rows of both.
    let diff = slowstart(&["diff", &format!("{out}/old.jsonl"), &format!("{out}/new.jsonl")]);
    assert_eq!(diff.status.code(), Some(0), "{}", String::from_utf8_lossy(&diff.stderr));
    assert!(
        other.contains("old: sim: linux-6.18,right_size=6.12\n")
            && other.contains("windows part first after"),
        "{other}"
    );
}

#[test]
fn the_tables_of_two_engines_may_be_markdown() {
    let run = |more: &[&str]| {
        let arguments =
            ["kernel-patch", "sim", "sim", "--population", "lte,leo", "--cases", "1", "--size", "100kB"];
        let out = slowstart(&[&arguments[..], more].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("UTF-8")
    };
    let (text, markdown) = (run(&[]), run(&["--markdown"]));
    let rows: Vec<&str> = markdown.lines().filter(|l| l.starts_with('|')).collect();
    assert!(rows.len() > 6 && rows.iter().all(|r| r.matches('|').count() == 8), "{markdown}");
    assert_eq!(rows.iter().filter(|r| r.starts_with("|---|--:")).count(), 2, "{markdown}");
    assert_eq!(
        markdown.lines().filter(|l| *l == "```").count(),
        2,
        "what has no columns is fenced: {markdown}"
    );
    // Each table is a paragraph of its own, or it is none.
    let lines: Vec<&str> = markdown.lines().collect();
    let begins = lines.windows(2).filter(|w| !w[0].starts_with('|') && w[1].starts_with('|'));
    assert!(begins.clone().count() == 2 && begins.clone().all(|w| w[0].is_empty()), "{markdown}");
    // The figures are those of the plain text.
    for line in rows.iter().filter(|r| !r.starts_with("|---")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).filter(|c| !c.is_empty()).collect();
        let same = |l: &str| cells[1..].iter().all(|c| l.contains(c));
        assert!(
            cells[0] == "population" || text.lines().any(|l| l.starts_with(cells[0]) && same(l)),
            "{line}"
        );
    }
}
