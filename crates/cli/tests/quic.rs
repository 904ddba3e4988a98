//! `slowstart compare --engine quic`.

#![cfg(feature = "quic")]

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
    for (engine, stack) in
        [("quic", "noq-proto 1.4.0"), ("quic:noq", "noq-proto 1.4.0"), ("quic:quinn", "quinn-proto 0.11.19")]
    {
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
            "restricted cannot run over QUIC: it needs the queue of the sender's interface",
        ),
        ("--profile ideal", "--profile: a TCP stack has it; --engine quic runs a QUIC stack"),
        ("--against cubic@-1s", "against: the engine quic runs one connection at a time"),
        ("--out /nonexistent --pcap", "--pcap: the simulator writes it; --engine quic does not"),
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
    assert!(said.contains("expected sim, kernel, quic, quic:noq or quic:quinn"), "{said}");
}

/// `--qlog` writes the logs of both ends, and `slowstart replay` reads from the server's the exit of the row.
#[test]
fn qlog_is_written_and_read_back() {
    let dir = std::env::temp_dir().join(format!("slowstart-qlog-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let out = dir.to_str().expect("UTF-8");
    let path = "rate=50Mbit rtt=50ms queue=1bdp";
    let args = ["compare", path, "--engine", "quic", "--startup", "search", "--size", "3MB", "--runs", "1"];
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
