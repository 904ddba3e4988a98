//! `slowstart suite run`: on other engines, and with a whole stack behind the emulator (root).

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

#[cfg(any(feature = "quic", feature = "kernel"))]
use std::path::Path;
use std::process::{Command, Output};

fn slowstart(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slowstart")).args(arguments).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The report of a run as JSON, and what was printed.
#[cfg(any(feature = "quic", feature = "kernel"))]
fn report(name: &str, arguments: &[&str]) -> (serde_json::Value, String) {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("suite-{name}.json"));
    let _ = std::fs::remove_file(&file);
    let json = ["--json", file.to_str().expect("UTF-8")];
    let out = slowstart(&[&["suite", "run"], arguments, &json[..]].concat());
    // On a busy machine all runs may be late, and then nothing was judged.
    let judged = !text(&out.stderr).contains("nothing was judged");
    assert!(
        matches!((out.status.code(), judged), (Some(0 | 1), true) | (Some(2), false)),
        "{}",
        text(&out.stderr)
    );
    let json = std::fs::read_to_string(&file).expect("a report");
    (serde_json::from_str(&json).expect("JSON"), text(&out.stdout))
}

#[test]
#[cfg(feature = "quic")]
fn startups_in_a_quic_stack_are_judged_where_it_can_run_the_scenario() {
    let some = ["--scenario", "short-1MB", "--scenario", "harm-cubic", "--runs", "6"];
    let (r, printed) =
        report("quic", &[&["--engine", "quic:quinn", "--startup", "search"], &some[..]].concat());
    assert_eq!(r["engine"], "quic:quinn");
    let entries = r["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 2, "{entries:?}");
    assert!(entries.iter().all(|e| e["scenario"] == "short-1MB" && e["verdict"] == "meets"), "{entries:?}");
    assert_eq!(r["left_out"][0]["scenario"], "harm-cubic");
    assert!(printed.contains("Not run:\n\n- harm-cubic: it runs one connection at a time"), "{printed}");
}

#[test]
fn commands_of_a_stack_are_checked() {
    let why = |arguments: &[&str]| {
        let out = slowstart(&[&["suite", "run"], arguments].concat());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stdout));
        text(&out.stderr)
    };
    assert!(why(&["--serve", "a"]).contains("--fetch"));
    assert!(why(&["--serve", "a", "--fetch", "b", "--startup", "search"]).contains("--startup"));
    let qlog = why(&["--serve", "a", "--fetch", "b", "--qlog", "/no/such"]);
    assert!(qlog.contains("--qlog: found /no/such, expected a folder"), "{qlog}");
}

/// The step of contrib/suite.yml, with a program in the place of ours that ends with `status`: its status, and what it
/// was called with.
fn step(name: &str, compare: bool, baseline: bool, plugin: &str, status: u8) -> (Option<i32>, String) {
    use std::os::unix::fs::PermissionsExt;
    let workflow = include_str!("../../../contrib/suite.yml");
    let (_, script) = workflow.split_once("        run: |\n          set -- ").expect("the step that judges");
    let lines = script.lines().enumerate().take_while(|(i, l)| *i == 0 || l.starts_with("          "));
    let script = format!("set -- {}", lines.flat_map(|(_, l)| [l.trim_start(), "\n"]).collect::<String>());
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("suite-yml-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("writable");
    let programs = [
        ("slowstart", format!("#!/bin/sh\nprintf '%s|' \"$@\"\nexit {status}\n")),
        ("sudo", "#!/bin/sh\nshift\nexec \"$@\"\n".to_string()),
    ];
    for (program, text) in programs {
        std::fs::write(dir.join(program), text).expect("writable");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.join(program), mode).expect("it is ours");
    }
    if baseline {
        std::fs::write(dir.join("baseline.json"), "{}").expect("writable");
    }
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("set"));
    let out = Command::new("bash")
        .args(["-e", "-c", &script])
        .current_dir(&dir)
        .envs([
            ("PATH", path.as_str()),
            ("PLUGIN", plugin),
            ("NAME", "mine"),
            ("SERVE", "a \"$B\""),
            ("FETCH", "c"),
        ])
        .envs([("RUNS", "12"), ("SCENARIOS", "geo leo"), ("GITHUB_STEP_SUMMARY", "summary")])
        .env("COMPARE", compare.to_string())
        .output()
        .expect("bash runs");
    (out.status.code(), std::fs::read_to_string(dir.join("summary")).unwrap_or_default())
}

#[test]
fn the_workflow_judges_a_stack_and_fails_without_a_baseline() {
    let (status, called) = step("main", false, false, "", 1);
    assert_eq!(status, Some(0), "a criterion that is not met fails nothing on main: {called}");
    assert_eq!(
        called,
        "suite|run|--html|suite.html|--json|suite.json|--name|mine|--serve|a \"$B\"|--fetch|c|--runs|12|--scenario|geo|--scenario|leo|"
    );
    assert_eq!(step("main-2", false, false, "", 2).0, Some(2));
    let (status, called) = step("pruned", true, false, "", 0);
    assert_eq!((status, called.as_str()), (Some(2), ""), "nothing was compared");
    let (status, called) = step("worse", true, true, "", 1);
    assert_eq!(status, Some(1));
    assert!(called.contains("--against-baseline|baseline.json|"), "{called}");
    let (status, called) = step("plugin", true, true, "./mine.so", 0);
    assert_eq!(status, Some(0));
    assert!(called.contains("--startup|plugin:./mine.so|") && !called.contains("--serve"), "{called}");
}

/// As docs/guide/stack.md has it.
#[cfg(feature = "kernel")]
mod live {
    use super::*;
    use slowstart_linux::emulate::possible;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    const SERVE: &str = "python3 -m http.server 80 -d \"$SLOWSTART_FILES\"";
    const FETCH: &str = "curl -sSfo /dev/null \"http://$SLOWSTART_SERVER/$SLOWSTART_SIZE\"";

    /// How it says that a run was late.
    const LATE: &str = "packets were released over 1 ms late";

    /// One path at a time: each has a real-time thread.
    static ONE: Mutex<()> = Mutex::new(());

    fn able() -> Option<MutexGuard<'static, ()>> {
        let has = |program: &&str| {
            std::env::var_os("PATH")
                .is_some_and(|p| std::env::split_paths(&p).any(|d| d.join(program).exists()))
        };
        if let Err(why) = possible() {
            println!("skipped: a whole stack in the suite ({why})");
            return None;
        }
        if !["python3", "curl"].iter().all(has) {
            println!("skipped: a whole stack in the suite (needs python3 and curl)");
            return None;
        }
        Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[test]
    fn a_whole_stack_is_judged_by_what_the_link_sees() {
        let Some(_one) = able() else { return };
        let some =
            ["--scenario", "short-1MB", "--scenario", "harm-cubic", "--scenario", "web", "--runs", "1"];
        let (r, printed) = report("stack", &[&["--serve", SERVE, "--fetch", FETCH], &some[..]].concat());
        assert_eq!(r["startups"][0], "python3");
        let entries = r["entries"].as_array().expect("entries");
        let value = |scenario: &str, criterion: &str| {
            let is = |e: &&serde_json::Value| {
                e["scenario"] == scenario && e["criterion"].as_str().is_some_and(|c| c.starts_with(criterion))
            };
            entries.iter().find(is).and_then(|e| e["values"][0].as_f64())
        };
        // Of a run that was late nothing is read, and then it says so.
        let late = |scenario: &str| {
            let late = printed.lines().any(|l| l.contains(&format!("{scenario}, ")) && l.contains(LATE));
            if late {
                println!("skipped: what the link sees of {scenario} (the run was late)");
            }
            late
        };
        // A megabyte at 50 Mbit/s takes 0.16 s, and slow start some round trips of 50 ms.
        if !late("short-1MB") {
            let completion = value("short-1MB", "completion_s").expect("observed");
            assert!((0.3..1.0).contains(&completion), "{completion}");
            assert_eq!(value("short-1MB", "lost_packets"), Some(0.0));
        }
        if !late("harm-cubic") {
            let [lost, delay] = ["others_lost", "others_delay_p99_s"].map(|c| value("harm-cubic", c));
            assert!(
                lost.is_some_and(|n| n > 0.0) && delay.is_some_and(|s| (0.005..0.2).contains(&s)),
                "{entries:?}"
            );
        }
        assert!(printed.contains("- web: the stack fetches one file"), "{printed}");
        // A new namespace has the default of the machine's first one, which may not be ours.
        let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
            .expect("every kernel has it");
        let note = "- The server's sockets of TCP that name no congestion control have ";
        let told: Vec<&str> = printed.lines().filter_map(|l| l.strip_prefix(note)).collect();
        let known = |name: &str| available.split_whitespace().any(|a| a == name);
        assert!(matches!(told[..], [one] if known(one.trim_end_matches('.'))), "{available}{printed}");
    }

    /// The folder of temporary files is everybody's, and the program is root: what another user prepared in
    /// it is left alone.
    #[test]
    fn a_link_in_the_place_of_its_folder_is_not_followed() {
        let Some(_one) = able() else { return };
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite-links");
        let _ = std::fs::remove_dir_all(&dir);
        let elsewhere = dir.join("elsewhere");
        std::fs::create_dir_all(&elsewhere).expect("writable");
        std::fs::write(elsewhere.join("1000000"), "mine").expect("writable");
        // The program has the number of the shell that it replaces.
        let script = "for end in '' -0 -1; do ln -s \"$TMPDIR/elsewhere\" \"$TMPDIR/slowstart-suite-$$$end\"; done; \
                      exec \"$0\" suite run --scenario short-1MB --runs 1 --serve \"$SERVE\" --fetch \"$FETCH\"";
        let out = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_slowstart")])
            .envs([("SERVE", SERVE), ("FETCH", FETCH)])
            .env("TMPDIR", &dir)
            .output()
            .expect("it runs");
        let told = text(&out.stderr);
        let late = told.contains("nothing was judged");
        assert!(matches!((out.status.code(), late), (Some(0 | 1), false) | (Some(2), true)), "{told}");
        let left: Vec<_> = std::fs::read_dir(&elsewhere).expect("a folder").flatten().collect();
        assert_eq!(std::fs::read_to_string(elsewhere.join("1000000")).expect("a file"), "mine");
        assert_eq!(left.len(), 1, "{left:?}");
    }

    /// What the link does not see comes from the server's log: here twelve packets of 1250 bytes, of which
    /// two are acknowledged before the last two are sent, on a path whose BDP is 312,500 bytes. It has no window, and
    /// so the losses of the startup are not observed.
    #[test]
    fn the_most_in_flight_comes_from_the_log() {
        let Some(_one) = able() else { return };
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite-qlog");
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("writable");
        let sent = |at: u32, number: u32| {
            format!(
                r#"{{"time":{at},"name":"transport:packet_sent","data":{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1250}}}}}}"#
            )
        };
        let ack = r#"{"time":50,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":0},"frames":[{"frame_type":"ack","acked_ranges":[[0,1]]}]}}"#;
        let events: Vec<String> =
            (0..10).map(|n| sent(n, n)).chain([ack.into()]).chain((10..12).map(|n| sent(51, n))).collect();
        let log = format!(
            r#"{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"type":"server"}},"events":[{}]}}]}}"#,
            events.join(",")
        );
        std::fs::write(dir.join("log"), log).expect("writable");
        let suite = "name = 'one-1'\nruns = 1\n[[scenario]]\nname = 'one'\nsection = '6.1'\nquestion = 'q'\nsource = 's'\n\
                     not_tested = 'n'\nstudy = { path = 'rate=50Mbit rtt=50ms queue=1bdp', size = '100kB' }\n\
                     criteria = ['peak_inflight_bdp <= 0.04', 'startup_lost_packets <= 100']\n";
        std::fs::write(dir.join("suite.toml"), suite).expect("writable");
        let (dir, file) = (dir.to_str().expect("UTF-8"), dir.join("suite.toml"));
        // The server's log of a run is written during the run.
        let serve = format!("touch {dir}/log; {SERVE}");
        let own = ["--file", file.to_str().expect("UTF-8")];
        let stack = ["--serve", &serve, "--fetch", FETCH, "--runs", "1"];
        let (r, printed) = report("qlog", &[&stack[..], &own[..], &["--qlog", dir]].concat());
        let (entry, lost) = (&r["entries"][0], &r["entries"][1]);
        assert_eq!(lost["values"][0], serde_json::Value::Null, "{lost}");
        // Of a run that was late nothing is read.
        if printed.contains(LATE) {
            assert_eq!(entry["values"][0], serde_json::Value::Null, "{entry}");
            println!("skipped: the most in flight by a qlog (the run was late)");
        } else {
            let peak = entry["values"][0].as_f64().expect("observed");
            assert!((peak - 12_500.0 / 312_500.0).abs() < 1e-9, "{entry}");
            assert_eq!(lost["verdict"], "not-observed", "{lost}");
            let note =
                "one, 1 of 1 runs: its qlog shows no end of slow start: whether it ended is not observed.";
            assert!(printed.contains(note), "{printed}");
        }
        // One run decides nothing.
        assert_eq!(entry["verdict"], "undecided");
        // Without the log nothing is observed, and that is no success.
        let out = slowstart(&[&["suite", "run"], &stack[..], &own[..]].concat());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stdout));
        assert!(text(&out.stderr).contains("nothing was judged"), "{}", text(&out.stderr));
    }

    #[test]
    fn a_fetch_that_fails_shows_nothing_of_the_stack() {
        let Some(_one) = able() else { return };
        // The first of two fetches fails.
        let marker = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite-failed-once");
        let _ = std::fs::remove_file(&marker);
        let marker = marker.to_str().expect("UTF-8");
        let fetch = format!("[ -e {marker} ] || {{ touch {marker}; echo no certificate; exit 3; }}; {FETCH}");
        let stack = ["--serve", SERVE, "--fetch", &fetch, "--scenario", "short-1MB", "--runs", "2"];
        let about = ["--name", "mine", "--stack-version", "1.2", "--congestion-control", "reno", "--warm-up"];
        // The fetch before a run is a fetch that may fail, and then the run says nothing.
        let out = slowstart(&[&["suite", "run"], &stack[..], &about[..]].concat());
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stdout));
        assert!(text(&out.stderr).contains("--warm-up: "), "{}", text(&out.stderr));
        std::fs::remove_file(marker).expect("the fetch made it");
        let (r, printed) = report("failed", &[&stack[..], &about[..6]].concat());
        let lost = r["entries"]
            .as_array()
            .expect("entries")
            .iter()
            .find(|e| e["criterion"].as_str().is_some_and(|c| c.starts_with("lost")));
        let lost = lost.expect("an entry");
        assert_eq!(
            lost["values"][0],
            serde_json::Value::Null,
            "a fetch that failed lost nothing by merit: {lost}"
        );
        assert_eq!(lost["never"], 0, "{lost}");
        let note = "short-1MB, 1 of 2 runs: the fetch ended with exit status: 3: no certificate";
        assert!(printed.contains(note), "{printed}");
        assert_eq!(
            (&r["startups"][0], &r["stack_version"], &r["congestion_control"]),
            (&"mine".into(), &"1.2".into(), &"reno".into())
        );
        assert!(printed.contains("mine: version 1.2, congestion control reno"), "{printed}");
    }

    #[test]
    fn a_fetch_that_fetches_something_else_is_an_error() {
        let Some(_one) = able() else { return };
        let run = |fetch: &str| {
            let out = slowstart(&[
                "suite",
                "run",
                "--serve",
                SERVE,
                "--fetch",
                fetch,
                "--scenario",
                "short-1MB",
                "--runs",
                "1",
            ]);
            assert_eq!(out.status.code(), Some(2), "{}", text(&out.stdout));
            text(&out.stderr)
        };
        let nothing = run("curl -sSo /dev/null http://$SLOWSTART_SERVER/nothing");
        assert!(nothing.contains("expected at least the 1000000 of the file"), "{nothing}");
        assert!(run("no-such-program").contains("cannot run"), "no program");
    }
}
