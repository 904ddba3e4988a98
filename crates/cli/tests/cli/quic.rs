//! Commands with `--engine quic`.

use std::process::{Command, Output};

fn slowstart(threads: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_slowstart"))
        .args(args)
        .env("RAYON_NUM_THREADS", threads)
        .output()
        .expect("it runs")
}

#[test]
fn rows_are_the_same_on_one_thread_and_two() {
    for (engine, stack) in [
        ("quic", "quinn-proto 0.11.19"),
        ("quic:noq", "noq-proto 1.4.0"),
        ("quic:quinn", "quinn-proto 0.11.19"),
    ] {
        let args = format!(
            "compare lte --engine {engine} --startup search,hystart++,bbr --size 1MB --runs 3 --json"
        );
        let args: Vec<&str> = args.split(' ').collect();
        let (one, two) = (slowstart("1", &args), slowstart("2", &args));
        assert!(one.status.success(), "{}", String::from_utf8_lossy(&one.stderr));
        assert_eq!(one.stdout, two.stdout);
        let text = String::from_utf8(one.stdout).expect("UTF-8");
        assert_eq!(text.lines().count(), 9);
        let profile = format!(r#""profile":"{stack}""#);
        for line in text.lines() {
            assert!(line.contains(r#""engine":"quic""#) && line.contains(&profile), "{line}");
            assert_eq!(line.contains("quinn tells no packet numbers"), stack.starts_with("quinn"), "{line}");
        }
    }
}

#[test]
fn what_the_engine_lacks_is_refused() {
    for (args, message) in [
        (
            "--startup restricted",
            "startup: the engine quic:quinn cannot run this: restricted needs the queue of the sender's interface; expected \
             --engine sim",
        ),
        ("--profile ideal", "profile: the engine quic:quinn cannot run this: a TCP stack has it"),
        ("--set ecn=rfc3168", "set: the engine quic:quinn cannot run this: a TCP stack has it"),
        ("--app web", "app: the engine quic:quinn cannot run this: it has bulk downloads only"),
        (
            "--against cubic@-1s",
            "against: the engine quic:quinn cannot run this: it runs one connection at a time",
        ),
        (
            "--out /nonexistent --pcap",
            "pcap: the engine quic:quinn cannot run this: its packets are encrypted",
        ),
        ("--out /nonexistent --qlog", "expected --engine quic:noq or sim"),
    ] {
        let args: Vec<&str> =
            ["compare", "lte", "--engine", "quic"].into_iter().chain(args.split(' ')).collect();
        let out = slowstart("1", &args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn settings_follow_the_stack() {
    let rows = |engine: &str| {
        let args = format!("compare lte --engine {engine} --startup search --size 1MB --runs 2 --json");
        let args: Vec<&str> = args.split(' ').collect();
        let out = slowstart("1", &args);
        (
            out.status.code(),
            String::from_utf8_lossy(&out.stdout).into_owned(),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    let (_, plain, _) = rows("quic:noq");
    let (status, clear, _) = rows("quic:noq,crypto=null");
    assert_eq!(status, Some(0));
    assert!(clear.contains(r#""profile":"noq-proto 1.4.0,crypto=null""#), "{clear}");
    // A null cipher changes nothing but the name.
    assert_eq!(plain, clear.replace(",crypto=null", ""));
    let (status, _, said) = rows("quic:noq,mtu=9");
    assert_eq!(status, Some(2));
    assert!(said.contains(r#"engine: found "mtu=9", expected crypto=tls or null"#), "{said}");
    let (status, _, said) = rows("quiche");
    assert_eq!(status, Some(2));
    assert!(said.contains("expected one of sim, quic:quinn, quic:noq, linux:KERNEL, kernel"), "{said}");
}

/// `--qlog` writes the logs of both ends, and `slowstart replay` reads from the server's the exit of the row.
#[test]
fn qlog_is_written_and_read_back() {
    let dir = std::env::temp_dir().join(format!("slowstart-qlog-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let out = dir.to_str().expect("UTF-8");
    let path = "rate=50Mbit rtt=50ms queue=1bdp";
    let args =
        ["compare", path, "--engine", "quic:noq", "--startup", "search", "--size", "3MB", "--runs", "1"];
    let done = slowstart("1", &[&args[..], &["--out", out, "--qlog", "--json"]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let row: serde_json::Value = serde_json::from_slice(&done.stdout).expect("one row");
    let find = |end: &str| {
        let mut todo = vec![dir.clone()];
        while let Some(folder) = todo.pop() {
            for entry in std::fs::read_dir(folder).expect("it reads").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    todo.push(path);
                } else if path.to_string_lossy().ends_with(end) {
                    return path;
                }
            }
        }
        panic!("no {end} in {out}");
    };
    let _client = find("search.client.sqlog");
    let server = find("search.server.sqlog");
    let read = slowstart("1", &["replay", server.to_str().expect("UTF-8"), "--json"]);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let transfer = String::from_utf8_lossy(&read.stdout)
        .lines()
        .filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok())
        .find(|v| v["exit"].is_object())
        .expect("a transfer with an exit");
    assert_eq!(transfer["exit"]["cwnd_bytes"], row["exit"]["cwnd_bytes"]);
    let _ = std::fs::remove_dir_all(&dir);
}

/// A folder of this test, empty, and removed when dropped.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("slowstart-engines-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a folder");
        Self(dir)
    }

    /// Writes a file and returns its name.
    fn file(&self, name: &str, text: &str) -> String {
        let file = self.0.join(name);
        std::fs::write(&file, text).expect("it writes");
        file.to_str().expect("UTF-8").to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Standard output of a command that succeeds.
fn printed(args: &[&str]) -> String {
    let out = slowstart("2", args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("UTF-8")
}

const STUDY: &str =
    "path = \"rate=20Mbit rtt=40ms queue=1bdp\"\nstartups = [\"search\"]\nsize = \"1MB\"\nruns = 2\n";

/// The engine is a key of the study; the argument goes before it; `compare` prints the same rows.
#[test]
fn a_study_file_names_its_engine() {
    let scratch = Scratch::new("run");
    let plain = scratch.file("plain.toml", STUDY);
    let quic = scratch.file("quic.toml", &format!("engine = \"quic:quinn\"\n{STUDY}"));
    let by_key = printed(&["run", &quic, "--json"]);
    assert_eq!(by_key, printed(&["run", &plain, "--engine", "quic", "--json"]));
    let path = "rate=20Mbit rtt=40ms queue=1bdp";
    let args = ["--startup", "search", "--size", "1MB", "--runs", "2", "--engine", "quic:quinn", "--json"];
    assert_eq!(by_key, printed(&[&["compare", path][..], &args].concat()));
    let sim = printed(&["run", &quic, "--engine", "sim", "--json"]);
    assert!(sim.lines().all(|l| l.contains(r#""engine":"sim""#)), "{sim}");
    // Two studies of which one engine refuses: nothing runs.
    let refused =
        scratch.file("refused.toml", &format!("engine = \"quic\"\nagainst = [\"cubic@-1s\"]\n{STUDY}"));
    let out = slowstart("1", &["run", &plain, &refused, "--json"]);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("refused.toml: against: the engine quic:quinn cannot run this"), "{said}");
}

#[test]
fn explain_and_league_take_an_engine() {
    let told = printed(&[
        "explain",
        "rate=20Mbit rtt=40ms queue=1bdp",
        "search",
        "--size",
        "2MB",
        "--engine",
        "quic",
    ]);
    assert!(told.contains("quinn-proto") && told.contains("finds its reason to exit"), "{told}");
    let args = ["league", "search", "--engine", "quic", "--population", "shallow", "--runs", "1"];
    let rows = printed(&[&args[..], &["--json"]].concat());
    assert!(rows.contains(r#""profile":"quinn-proto"#) && rows.lines().count() == 1, "{rows}");
    let out =
        slowstart("1", &["league", "search", "--engine", "quic", "--population", "starters", "--runs", "1"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("population: the engine quic:quinn cannot run this"), "{said}");
}

/// Rows of a sweep are those of `run`, and have keys of their own: one store holds both engines.
#[cfg(feature = "sweep")]
#[test]
fn a_sweep_takes_an_engine() {
    let scratch = Scratch::new("sweep");
    let sweep = scratch.file("sweep.toml", &format!("{STUDY}[axes]\nrtt = \"20,40ms\"\n"));
    let store = scratch.0.join("store").to_str().expect("UTF-8").to_string();
    for engine in ["sim", "quic:quinn"] {
        printed(&["sweep", &sweep, "--out", &store, "--engine", engine]);
    }
    let rows = printed(&["sweep", "query", &store, "--csv", "--columns", "engine,rtt,completion_s"]);
    let of = |engine: &str| rows.lines().filter(|l| l.starts_with(engine)).count();
    assert_eq!((of("sim"), of("quic")), (4, 4), "{rows}");
    let refused = scratch.file("refused.toml", &format!("{STUDY}[axes]\napp = [\"bulk\", \"web\"]\n"));
    let out = slowstart("1", &["sweep", &refused, "--out", &store, "--engine", "quic"]);
    assert_eq!(out.status.code(), Some(2), "{}", String::from_utf8_lossy(&out.stderr));
}
