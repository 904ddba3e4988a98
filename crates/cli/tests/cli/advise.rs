//! `slowstart advise` over captures of simulated transfers, whose paths are known.

use crate::common::slowstart;
use crate::conform::conform;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of captures at the server: a transfer over each path.
fn captures(name: &str, startup: &str, size: &str, paths: &[String]) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("writable");
    for (i, path) in paths.iter().enumerate() {
        let out = dir.join("run");
        let to = out.to_str().expect("text");
        let args =
            ["compare", path, "--startup", startup, "--runs", "1", "--size", size, "--pcap", "--out", to];
        let done = slowstart(&args);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        fs::rename(out.join(format!("{startup}.server.pcapng")), dir.join(format!("{i}.pcapng")))
            .expect("written");
        fs::remove_dir_all(&out).expect("there");
    }
    dir
}

fn advice(dir: &Path, more: &[&str]) -> Value {
    let done = slowstart(&[&["advise", dir.to_str().expect("text"), "--json"], more].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).expect("text");
    conform(&text, include_str!("../../../replay/schema/advice.json"));
    serde_json::from_str(&text).expect("JSON")
}

/// Links with a long round trip, which hystart leaves too early, and with a deep queue, which the transfer
/// fills in the end: there is a startup that is faster and costs nothing.
#[test]
fn where_hystart_leaves_too_early_another_is_advised() {
    let paths: Vec<String> = (0..7)
        .map(|i| format!("rate={}Mbit rtt={}ms vary=20ms vary_period=900ms queue=4bdp", 8 + i, 480 + 10 * i))
        .collect();
    let dir = captures("early", "hystart", "25MB", &paths);
    let page = dir.with_extension("html");
    let _ = fs::remove_file(&page);
    let a = advice(&dir, &["--page", page.to_str().expect("text")]);
    assert_eq!(a["recorded"]["transfers"], 7, "{a}");
    let instead = a["use_instead"].as_str().expect("not to stay with it");
    assert_ne!(instead, "hystart");
    assert_eq!(a["time_percent"]["is"], "better", "{a}");
    assert!(a["trial_connections"].as_u64().expect("a trial is proposed") >= 100);
    let commands = a["commands"].to_string();
    assert!(commands.contains(&format!("--arm cubic:50% --arm {instead}:50%")), "{commands}");
    // What is in use is seen in the recordings.
    let agreement = &a["recorded"]["agreement"]["hystart"];
    assert_eq!((agreement["agree"].as_u64(), agreement["of"].as_u64()), (Some(7), Some(7)), "{a}");
    let page = fs::read_to_string(&page).expect("written");
    assert!(page.contains(&format!("Try {instead} in a trial.")));
    // The screen says the same in 80 columns.
    let done = slowstart(&["advise", dir.to_str().expect("text")]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains(&format!("Try {instead} in a trial.")), "{said}");
}

/// The captures that are shipped: `slowstart compare "rate=2200kbit rtt=415ms vary=30ms vary_period=700ms queue=5bdp"
/// --startup hystart --size 4MB --pcap`, and five with 200 kbit/s and 15 ms more each.
#[test]
fn the_samples_end_in_a_verdict_that_names_each_price() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/captures/service");
    let a = advice(&dir, &[]);
    // Every startup that is sooner costs something in a run of six, so none is advised.
    assert!(a["use_instead"].is_null(), "{a}");
    let done = slowstart(&["advise", dir.to_str().expect("text")]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("Stay with hystart.") && said.contains("of 6 runs"), "{said}");
}

/// Where hystart left early and no path was filled, no startup is advised but the trial that would decide.
#[test]
fn where_the_paths_are_unknown_a_trial_decides() {
    let paths = vec![
        "rate=40Mbit rtt=600ms vary=40ms vary_period=900ms queue=4bdp ack_aggregate=40ms"
            .to_string();
        6
    ];
    let a = advice(&captures("trial", "hystart", "6MB", &paths), &[]);
    assert!(a["use_instead"].is_null() && a["none_because"].is_string(), "{a}");
    assert!(a["verdict"].as_str().is_some_and(|v| v.contains("a trial of search would decide")), "{a}");
    assert!(a["commands"].to_string().contains("--arm cubic:50% --arm search:50%"), "{a}");
}

/// Short paths with a short queue, where hystart finds the rate: nothing is gained.
#[test]
fn where_nothing_is_gained_the_advice_is_to_stay() {
    let paths: Vec<String> =
        (0..7).map(|i| format!("rate={}Mbit rtt={}ms queue=2bdp", 20 + 3 * i, 10 + i)).collect();
    let a = advice(&captures("stay", "hystart", "10MB", &paths), &[]);
    assert_eq!(a["use_instead"], Value::Null, "{a}");
    assert_eq!(a["commands"].as_array().map(Vec::len), Some(0));
    assert!(a["none_because"].is_null());
}

/// Transfers that never fill their paths show no rate.
#[test]
fn material_without_full_paths_allows_no_advice() {
    let paths: Vec<String> = (0..7).map(|i| format!("rate=500Mbit rtt={}ms queue=1bdp", 100 + i)).collect();
    let a = advice(&captures("none", "standard", "300kB", &paths), &[]);
    assert_eq!(a["recorded"]["never_full"], 7, "{a}");
    let why = a["none_because"].as_str().expect("a reason");
    assert!(why.contains("not enough data: 0 usable transfers, 6 needed"), "{why}");
    assert!(a["use_instead"].is_null());
}

#[test]
fn what_cannot_be_read_is_named() {
    let done = slowstart(&["advise", "no-such-folder"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("no-such-folder"));
    let done = slowstart(&["advise", "Cargo.toml", "--in-use", "serach"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("did you mean \"search\""));
}

/// Samples that name a congestion control without a startup here: nothing says how it compares.
#[test]
fn recordings_of_a_control_that_is_no_startup_here_allow_no_advice() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("advise-foreign");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("writable");
    let samples = |control: &str| -> String {
        let line = |(n, cwnd): (u64, u64)| {
            let acked = n * 50_000;
            format!(
                "{}.{}\nESTAB 0 0 10.0.0.1:443 10.0.0.2:5000\n\t {control} wscale:7,7 rto:240 rtt:40/2 mss:1448 cwnd:{cwnd} \
                 bytes_acked:{acked} bytes_sent:{acked} minrtt:40\n",
                10 + n / 10,
                n % 10
            )
        };
        (0..12).map(|n| line((n, 10 << n.min(4)))).collect()
    };
    for (control, said) in
        [("dctcp", Some("their senders use dctcp, which is no startup here")), ("cubic", None)]
    {
        fs::write(dir.join("samples"), samples(control)).expect("writable");
        let a = advice(&dir, &[]);
        let why = a["none_because"].as_str().expect("no advice");
        assert_eq!(why.contains("their senders use"), said.is_some(), "{a}");
        assert!(said.is_none_or(|said| why.contains(said)), "{a}");
        assert_eq!(a["recorded"]["in_use"][if said.is_some() { control } else { "hystart" }], 1, "{a}");
        // The user's word counts.
        let told = advice(&dir, &["--in-use", "bbr3"]);
        assert_eq!(told["in_use"], "bbr3", "{told}");
        assert!(!told["none_because"].as_str().expect("no advice").contains("their senders"), "{told}");
    }
}
