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
