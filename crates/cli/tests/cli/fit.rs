//! `slowstart fit`: its path file is read by `compare`; several files give an ensemble; bad input has status
//! 2.

use crate::common::{folder, slowstart, text};
use std::fmt::Write as _;

const SAMPLE: &str = "scenarios/captures/download.pcapng.gz";

fn json(args: &[&str]) -> Vec<serde_json::Value> {
    let out = slowstart(args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    text(&out.stdout).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
}

/// The sample is a run over 20 Mbit/s, 60 ms and a queue of 1 BDP (150 kB), which lasts 1.1 s.
#[test]
fn a_path_file_is_made_and_read() {
    let dir = folder("fit-one");
    let file = dir.join("path.toml");
    let out = slowstart(&["fit", SAMPLE, "--out", file.to_str().expect("text")]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let made = std::fs::read_to_string(&file).expect("a file");
    assert!(made.contains("sources = [\"download.pcapng.gz, connection 1\"]"), "{made}");
    assert!(made.contains("s in which a queue stood"), "{made}");
    let file = file.to_str().expect("text");
    let out = slowstart(&["compare", file, "--startup", "hystart", "--runs", "1", "--size", "1MB"]);
    assert!(out.status.success(), "{}", text(&out.stderr));

    let line = &json(&["fit", SAMPLE, "--json"])[0];
    let of = |key: &str| line["path"][key]["value"].as_f64().expect("a number");
    assert!((of("rate_bps") / 20e6 - 1.0).abs() < 0.03, "{line}");
    assert!((of("base_rtt_s") - 0.06).abs() < 1e-3, "{line}");
    assert!((of("queue_bytes") / 150e3 - 1.0).abs() < 0.15, "{line}");
    assert!(line["path"]["queue_bytes"]["high"].is_number(), "the sample lost packets: {line}");
    let inline = line["inline"].as_str().expect("text");
    let out = slowstart(&["compare", inline, "--startup", "hystart", "--runs", "1", "--size", "1MB"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
}

/// Every run of the ensemble draws the path of one capture, all values of it.
#[test]
fn several_captures_make_an_ensemble() {
    let dir = folder("fit-several");
    let mut rates = Vec::new();
    for (i, path) in
        ["rate=10Mbit rtt=30ms queue=100kB", "rate=40Mbit rtt=80ms queue=300kB"].iter().enumerate()
    {
        let run = dir.join(format!("run{i}"));
        let run = run.to_str().expect("text");
        let args = [
            "compare",
            path,
            "--startup",
            "standard",
            "--size",
            "8MB",
            "--runs",
            "1",
            "--out",
            run,
            "--pcap",
        ];
        let out = slowstart(&args);
        assert!(out.status.success(), "{}", text(&out.stderr));
        for entry in std::fs::read_dir(run).expect("a folder") {
            let file = entry.expect("an entry").path();
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            if name.contains("server") && name.contains("pcap") {
                std::fs::copy(&file, dir.join(format!("{i}.pcapng"))).expect("copied");
            }
        }
    }
    let ensemble = dir.join("ensemble.toml");
    let name = |n: &str| dir.join(n).to_str().expect("text").to_string();
    let out =
        slowstart(&["fit", &name("0.pcapng"), &name("1.pcapng"), "--out", ensemble.to_str().expect("text")]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let out = slowstart(&[
        "compare",
        ensemble.to_str().expect("text"),
        "--startup",
        "hystart",
        "--runs",
        "12",
        "--size",
        "1MB",
        "--json",
    ]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    for line in text(&out.stdout).lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("a row");
        let drawn = |key: &str| row["drawn"][key].as_f64().expect("drawn");
        let near = |rate: f64, rtt: f64, queue: f64| {
            (drawn("rate_bps") / rate - 1.0).abs() < 0.03
                && (drawn("rtt_s") - rtt).abs() < 2e-3
                && (drawn("queue_bytes") / queue - 1.0).abs() < 0.15
        };
        assert!(near(10e6, 0.03, 100e3) || near(40e6, 0.08, 300e3), "{line}");
        rates.push(drawn("rate_bps").to_string());
    }
    rates.sort();
    rates.dedup();
    assert_eq!((rates.len(), rates.is_empty()), (2, false), "both are drawn in 12 runs");
}

#[test]
fn bad_input_has_status_2_and_says_what_is_needed() {
    let dir = folder("fit-bad");
    let empty = dir.join("empty.csv");
    std::fs::write(
        &empty,
        "now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate\n0,1448,1448,50000,20000,1\n",
    )
    .expect("written");
    let empty = empty.to_str().expect("text");
    for (args, says) in [
        (vec!["fit"], "required arguments were not provided"),
        (vec!["fit", "absent.pcap"], "absent.pcap: No such file"),
        (vec!["fit", "README.md"], "found an unknown format, expected a capture"),
        (
            vec!["fit", SAMPLE, "--min-bytes", "1GB"],
            "expected one of at least 1 GB (--min-bytes, --connections)",
        ),
        (vec!["fit", SAMPLE, "--connections", "7"], "found 1 transfers, all left out"),
        (vec!["fit", SAMPLE, "--out", "path.txt"], "expected a file that ends in .toml"),
        (
            vec!["fit", empty, "--min-bytes", "1B"],
            "found 1 ACKs of new data and no RTT sample, expected at least two",
        ),
    ] {
        let out = slowstart(&args);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

/// A kernel log of slow start over a link of 2 Mbit/s and 100 ms: one ACK each 6 ms once it is full. `jump`
/// seconds are added to the clock from the middle on.
fn log(rows: u64, jump: u64) -> String {
    let mut text = String::from("now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate\n");
    for i in 0..rows {
        let at = i * 6000 + if i > rows / 2 { jump * 1_000_000 } else { 0 };
        let acked = (i + 1) * 1448;
        let sent = acked + 14_480 + i * 1448;
        writeln!(text, "{at},{acked},1448,{},{},0", 100_000 + i * 3000, 1000 + sent).expect("a String");
    }
    text
}

#[test]
fn an_error_of_writing_leaves_no_trace_without_its_path() {
    let dir = folder("fit-half");
    let (a, b, file) = (dir.join("a.csv"), dir.join("b.csv"), dir.join("path.toml"));
    std::fs::write(&a, log(400, 0)).expect("written");
    std::fs::write(&b, log(300, 0)).expect("written");
    std::fs::write(dir.join("path-1-2.down"), "mine").expect("written");
    let [a, b, path] = [&a, &b, &file].map(|p| p.to_str().expect("text"));
    let out = slowstart(&["fit", a, b, "--min-bytes", "100kB", "--trace", "--out", path]);
    let said = text(&out.stderr);
    assert!(out.status.code() == Some(2) && said.contains("path-1-2.down: it exists"), "{said}");
    assert_eq!(std::fs::read(dir.join("path-1-2.down")).expect("there"), b"mine");
    assert!(!dir.join("path-1-1.down").exists() && !file.exists(), "half a result");
}

#[test]
fn a_rate_over_time_is_written_beside_the_path_file() {
    let dir = folder("fit-trace");
    let (a, b) = (dir.join("a.csv"), dir.join("b.csv"));
    std::fs::write(&a, log(400, 0)).expect("written");
    std::fs::write(&b, log(300, 0)).expect("written");
    let file = dir.join("path.toml");
    let [a, b, path] = [&a, &b, &file].map(|p| p.to_str().expect("text"));
    let out = slowstart(&["fit", a, b, "--min-bytes", "100kB", "--trace", "--out", path]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let made = std::fs::read_to_string(&file).expect("a file");
    assert!(made.contains("trace = \"path-1-1.down|path-1-2.down|"), "{made}");
    assert!(
        made.contains("trace_start = 0") && made.contains("~trace\"") && !made.contains("rate ="),
        "{made}"
    );
    let rows = json(&["compare", path, "--startup", "standard", "--size", "200kB", "--runs", "8", "--json"]);
    assert_eq!(rows.len(), 8);
    let drawn: std::collections::BTreeSet<String> =
        rows.iter().map(|r| r["drawn"]["trace"].to_string()).collect();
    assert!(drawn.len() > 1, "{drawn:?}");
    for r in &rows {
        // 1500 bytes each 6 ms.
        let rate = r["rate_bps"].as_f64().expect("a rate");
        assert!((1.8e6..2.2e6).contains(&rate), "{rate}");
    }
}

#[test]
fn bad_recordings_are_refused_or_cut() {
    let dir = folder("fit-trace-bad");
    let write = |name: &str, text: &str| {
        let file = dir.join(name);
        std::fs::write(&file, text).expect("written");
        file.to_str().expect("text").to_string()
    };
    let path = |name: &str| dir.join(name).to_str().expect("text").to_string();
    let refused = |args: &[&str], why: &str| {
        let out = slowstart(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out.stderr).contains(why), "{args:?}: {}", text(&out.stderr));
    };
    let good = write("good.csv", &log(400, 0));
    refused(&["fit", &good, "--trace"], "--out");
    refused(&["fit", &good, "--trace", "--min-bytes", "1kB", "--out", &path("a|b.toml")], "--out: found |");
    // No packet waits: all RTTs are the same.
    let busy = log(400, 0);
    let idle = busy.lines().map(|l| {
        let mut f: Vec<&str> = l.split(',').collect();
        if f[3] != "rtt_us" {
            f[3] = "100000";
        }
        f.join(",") + "\n"
    });
    let idle = write("idle.csv", &idle.collect::<String>());
    refused(
        &["fit", &idle, "--trace", "--min-bytes", "1kB", "--out", &path("idle.toml")],
        "no packet that waited",
    );
    let empty = write("empty.csv", "now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate\n");
    refused(&["fit", &empty, "--trace", "--out", &path("empty.toml")], "found no row");
    // A clock that jumps by two days: the course is that of the part before.
    let jumped = write("jumped.csv", &log(400, 200_000));
    let out = slowstart(&["fit", &jumped, "--trace", "--min-bytes", "1kB", "--out", &path("jumped.toml")]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let trace = std::fs::read_to_string(dir.join("jumped-1-1.down")).expect("a trace");
    let last: u64 = trace.lines().last().expect("lines").parse().expect("a number");
    assert!(last < 3000, "{last} ms");
    // The same of samples: a window that does not grow, one that doubles to the end, a clock that jumps or
    // goes back, and no interval.
    let head = "iperf 3.7\n[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n";
    let sampled = |name: &str, windows: &[f64], from: f64| {
        let mut all = String::from(head);
        for (i, window) in windows.iter().enumerate() {
            let at = i as f64 / 10.0 + if i > windows.len() / 2 { from } else { 0.0 };
            let (sent, end) = (window.min(97.7), at + 0.1);
            writeln!(all, "[  5] {at:.2}-{end:.2} sec {sent:.1} KBytes 8.00 Mbits/sec 0 {window:.1} KBytes")
                .expect("a String");
        }
        write(name, &all)
    };
    let fit =
        |file: &str, to: &str| slowstart(&["fit", file, "--trace", "--min-bytes", "1kB", "--out", &path(to)]);
    let doubled: Vec<f64> = (0..6).map(|i| 14.1 * f64::powi(2.0, i)).collect();
    let full: Vec<f64> = (0..100).map(|i| doubled.get(i).map_or(226.0, |w| w.min(226.0))).collect();
    for (name, windows, why) in [
        ("still.txt", &[14.1; 100][..], "no growth of the window"),
        ("doubled.txt", &doubled, "no samples in which a queue stood"),
        ("none.txt", &[], "it has no interval of a stream"),
    ] {
        let file = sampled(name, windows, 0.0);
        refused(&["fit", &file, "--trace", "--min-bytes", "1kB", "--out", &path("no.toml")], why);
        assert!(!dir.join("no.toml").exists() && !dir.join("no-1-1.down").exists(), "{name}");
    }
    for (name, from) in [("ahead", 200_000.0), ("back", -3.0)] {
        let out = fit(&sampled(&format!("{name}.txt"), &full, from), &format!("{name}.toml"));
        assert!(out.status.success(), "{name}: {}", text(&out.stderr));
        let trace = std::fs::read_to_string(dir.join(format!("{name}-1-1.down"))).expect("a trace");
        let last: u64 = trace.lines().last().expect("lines").parse().expect("a number");
        assert!((4900..7500).contains(&last), "{name}: {last} ms");
    }
    std::fs::write(dir.join("none.down"), "").expect("written");
    let list = format!("trace={}|{} rtt=10ms", path("jumped-1-1.down"), path("none.down"));
    refused(&["compare", &list, "--runs", "1"], "no lines");
}
