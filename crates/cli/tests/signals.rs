//! Ctrl-C and SIGTERM: a command prints what is finished, ends with status 130 or 143, and loses no more than the runs that were
//! being computed.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The signals, with the status that a shell gives a program which one ended.
const SIGNALS: [(&str, i32); 2] = [("INT", 130), ("TERM", 143)];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("signals-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a folder");
    dir
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

fn send(signal: &str, id: u32) {
    let sent = Command::new("bash").args(["-c", &format!("kill -{signal} {id}")]).status();
    assert!(sent.expect("bash").success());
}

/// Waits until `ready`, or until the program has ended.
fn wait_until(child: &mut Child, mut ready: impl FnMut() -> bool) {
    while !ready() && child.try_wait().expect("a status").is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends it this signal; returns what it printed and said.
fn interrupted(child: Child, (signal, status): (&str, i32)) -> (String, String) {
    send(signal, child.id());
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(out.status.code(), Some(status), "{signal}: {}", text(&out.stderr));
    (text(&out.stdout), text(&out.stderr))
}

/// Processor time that a process has used, seconds.
fn processor_time_s(id: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("a process");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    // User and system time, in hundredths of a second.
    [11, 12].map(|i| fields[i].parse::<f64>().expect("a number")).iter().sum::<f64>() / 100.0
}

#[test]
fn a_comparison_keeps_every_row_that_it_printed() {
    for (signal, status) in SIGNALS {
        let dir = folder(&format!("compare-{signal}"));
        let mut child = start(&[
            "compare",
            "rate=20Mbit rtt=20ms queue=1bdp jitter=1ms",
            "--size",
            "300kB",
            "--startup",
            "standard,search,limited",
            "--runs",
            "33000",
            "--json",
            "--out",
            utf8(&dir),
        ]);
        let mut printed = 0;
        for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
            line.expect("a row");
            printed += 1;
            if printed == 20 {
                send(signal, child.id());
            }
        }
        let out = child.wait_with_output().expect("it ends");
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{said}");
        assert!((20..99_000).contains(&printed), "{printed}");
        assert!(said.contains(&format!("interrupted, {printed} of 99000")), "{printed}: {said}");
        assert_eq!(fs::read_to_string(dir.join("results.jsonl")).expect("rows").lines().count(), printed);
        assert!(dir.join("report.html").is_file(), "what is finished is shown");
    }
}

#[test]
fn a_league_shows_the_cases_that_all_played() {
    for signal in SIGNALS {
        let dir = folder(&format!("league-{}", signal.0));
        let league =
            ["league", "standard,hystart", "--population", "shallow", "--runs", "5000", "--out", utf8(&dir)];
        let mut child = start(&league);
        let id = child.id();
        wait_until(&mut child, || processor_time_s(id) >= 3.0);
        let (shown, said) = interrupted(child, signal);
        let done = shown.split(" cases of ").next().expect("a number").parse::<usize>();
        let done = done.unwrap_or_else(|_| panic!("{shown}{said}"));
        assert!(
            (1..5000).contains(&done) && said.contains(&format!("interrupted, {done} of 5000")),
            "{said}"
        );
        let rows = fs::read_to_string(dir.join("league.jsonl")).expect("rows");
        for startup in ["standard", "hystart"] {
            assert_eq!(rows.matches(&format!("\"startup\":\"{startup}\"")).count(), done, "{startup}");
        }
    }
}

/// The scenarios that are finished are judged, and the others are named as not run; a baseline is not compared with half.
#[test]
fn a_suite_judges_the_scenarios_that_are_finished() {
    for signal in SIGNALS {
        let dir = folder(&format!("suite-{}", signal.0));
        let (file, report, page) = (dir.join("suite.toml"), dir.join("suite.json"), dir.join("suite.html"));
        let scenario = |name: &str, size: &str, runs: u32| {
            format!(
                "[[scenario]]\nname = \"{name}\"\nsection = \"5.1.1\"\nquestion = \"Is it?\"\nsource = \"ours\"\nnot_tested = \"All else.\"\n\
                 study = {{ path = \"rate=20Mbit rtt=20ms queue=1bdp jitter=1ms\", size = \"{size}\", runs = {runs} }}\n\
                 criteria = [\"completion_s <= 1.5 standard\"]\n"
            )
        };
        let suite = format!(
            "name = \"two\"\nruns = 6\n{}{}",
            scenario("first", "100kB", 6),
            scenario("last", "10MB", 9_000)
        );
        fs::write(&file, suite).expect("writable");
        let run = ["suite", "run", "--startup", "search", "--file", utf8(&file)];
        let mut child = start(&[&run[..], &["--json", utf8(&report), "--html", utf8(&page)]].concat());
        let id = child.id();
        wait_until(&mut child, || processor_time_s(id) >= 3.0);
        let (shown, said) = interrupted(child, signal);
        assert!(said.contains("interrupted, 1 of 2 finished"), "{shown}{said}");
        assert!(shown.contains("last: interrupted before it was finished"), "{shown}");
        let json = fs::read_to_string(&report).expect("a report");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let judged = json["entries"].as_array().expect("entries");
        assert!(judged.len() == 1 && judged[0]["scenario"] == "first", "{json}");
        assert_eq!(json["left_out"][0]["scenario"], "last");
        assert!(page.is_file(), "what is finished is on the page");
    }
}

/// What a sweep has computed is in the store: the next one computes the rest, and no run twice.
#[test]
#[cfg(feature = "sweep")]
fn a_sweep_goes_on_where_it_was() {
    for signal in SIGNALS {
        let dir = folder(&format!("sweep-{}", signal.0));
        let (study, store) = (dir.join("sweep.toml"), dir.join("store"));
        let toml = "path = \"rate=5Mbit rtt=20ms queue=1bdp\"\nstartups = [\"standard\", \"hystart\"]\nsize = \"1MB\"\nruns = 1\n\
                    [axes]\nrate = \"5..25Mbit/2000\"\n";
        fs::write(&study, toml).expect("writable");
        let sweep = ["-j", "2", "sweep", utf8(&study), "--out", utf8(&store)];
        let mut child = start(&sweep);
        let begun = || fs::read_dir(store.join("parts")).is_ok_and(|mut d| d.next().is_some());
        wait_until(&mut child, begun);
        let (_, said) = interrupted(child, signal);
        let computed = |said: &str| -> usize {
            let before = said.split(" runs computed in ").next().expect("a count");
            before.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{said}"))
        };
        let first = computed(&said);
        assert!((1..4_000).contains(&first) && said.contains("interrupted"), "{said}");
        let out = start(&sweep).wait_with_output().expect("it ends");
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "{said}");
        assert_eq!(first + computed(&said), 4_000, "{said}");
    }
}

#[test]
fn a_reproduction_counts_the_experiments_that_are_finished() {
    for signal in SIGNALS {
        let dir = folder(&format!("reproduce-{}", signal.0));
        let mut child = start(&["reproduce", "--all", "--out", utf8(&dir)]);
        // The first experiment has its lines once its page is there.
        let is_page = |e: fs::DirEntry| e.path().extension().is_some_and(|e| e == "html");
        wait_until(&mut child, || {
            fs::read_dir(&dir).is_ok_and(|mut d| d.any(|e| is_page(e.expect("an entry"))))
        });
        let (shown, said) = interrupted(child, signal);
        assert!(said.contains("interrupted: ") && said.contains(" experiments are finished"), "{said}");
        assert!(shown.contains(" claims: ") && dir.join("claims.jsonl").exists(), "{shown}");
    }
}

#[test]
fn a_killed_reproduction_keeps_the_claims_that_are_judged() {
    let dir = folder("reproduce-killed");
    let mut child = start(&["reproduce", "--all", "--out", utf8(&dir)]);
    let claims = dir.join("claims.jsonl");
    wait_until(&mut child, || claims.exists());
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let kept = fs::read_to_string(&claims).expect("records");
    assert!(kept.ends_with('\n') && kept.lines().all(|l| l.starts_with("{\"id\":\"")), "{kept}");
    assert!(!kept.is_empty());
}

/// Nobody reads what it prints, as with `| less`: the first signal ends it all the same, and the second at once.
#[test]
fn a_reproduction_that_cannot_print_ends_too() {
    for second in [false, true] {
        let dir = folder(&format!("unread-{second}"));
        let (unread, mut full) = std::io::pipe().expect("a pipe");
        // As much as a pipe holds.
        full.write_all(" ".repeat(64 << 10).as_bytes()).expect("room");
        let mut child = Command::new(env!("CARGO_BIN_EXE_slowstart"))
            .args(["reproduce", "--all", "--out", utf8(&dir)])
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let is_page = |e: fs::DirEntry| e.path().extension().is_some_and(|e| e == "html");
        wait_until(&mut child, || {
            fs::read_dir(&dir).is_ok_and(|mut d| d.any(|e| is_page(e.expect("an entry"))))
        });
        send("INT", child.id());
        if second {
            let pending = || fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a process");
            while !pending().contains("ShdPnd:\t0000000000000000") {
                std::thread::sleep(Duration::from_millis(1));
            }
            // If it has ended meanwhile, it was the first.
            _ = Command::new("bash").args(["-c", &format!("kill -INT {}", child.id())]).output();
        }
        let out = child.wait_with_output().expect("it ends");
        let ended = (out.status.code(), out.status.signal());
        let at_once = second && ended == (None, Some(2));
        assert!(ended == (Some(130), None) || at_once, "{ended:?}: {}", text(&out.stderr));
        drop(unread);
    }
}

#[test]
fn two_engines_go_on_with_the_paths_that_were_run() {
    let lines = |dir: &Path| fs::read_to_string(dir.join("results.jsonl")).unwrap_or_default();
    let arguments = |dir: &Path| {
        let all = "kernel-patch sim sim --population leo --cases 1000 --size 30kB -j 1 --out";
        all.split(' ').map(String::from).chain([utf8(dir).to_string()]).collect::<Vec<_>>()
    };
    let start = |dir: &Path| start(&arguments(dir).iter().map(String::as_str).collect::<Vec<_>>());
    let whole = folder("kernel-patch-whole");
    let at_once = start(&whole).wait_with_output().expect("it ends");
    for signal in SIGNALS {
        let dir = folder(&format!("kernel-patch-{}", signal.0));
        let mut child = start(&dir);
        wait_until(&mut child, || lines(&dir).lines().count() >= 3);
        let (printed, said) = interrupted(child, signal);
        let first = lines(&dir);
        let done = first.lines().count();
        assert!(printed.contains(&format!(" {done} paths of 1 population")), "{printed}");
        assert!(said.contains(&format!("{done} of 1000 finished")), "{said}");
        let out = start(&dir).wait_with_output().expect("it ends");
        assert!(out.status.success(), "{}", text(&out.stderr));
        assert!(
            text(&out.stderr).contains(&format!("{done} of 1000 paths are there")),
            "{}",
            text(&out.stderr)
        );
        assert!(lines(&dir).starts_with(&first) && lines(&dir).lines().count() == 1000);
        assert_eq!(text(&out.stdout), text(&at_once.stdout));
        for file in ["table.txt", "old.jsonl", "new.jsonl"] {
            let [a, b] = [&dir, &whole].map(|d| fs::read(d.join(file)).expect("written"));
            assert!(a == b, "{file} differs");
        }
    }
}
