//! Captures of simulated senders whose startup is named, or not.

use crate::common::run;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open::Kind;
use slowstart_replay::replay::{Options, read};
use slowstart_replay::transfer::Transfer;
use slowstart_replay::wire;
use std::io::Cursor;

/// What `replay` says of the capture at the server's end (0) or the client's (1).
fn replay(path: &str, startup: &str, end: u8, options: &Options) -> Transfer {
    let o = run(path, startup, Some("12MB"));
    let mut file = Vec::new();
    wire::write(&mut file, &o.trace.packets, end).expect("a Vec takes everything");
    let report = read(Kind::Capture, Box::new(Cursor::new(file)), options, |_| {}).expect("a capture");
    report.transfers.into_iter().map(|t| t.row).max_by_key(|t| t.bytes).expect("a transfer")
}

/// The name, and the families that fit.
fn named(path: &str, startup: &str) -> (Option<String>, Vec<String>) {
    let t = replay(path, startup, 0, &Options::default());
    (t.sender_startup, t.sender_startup_fits.unwrap_or_else(|| panic!("{startup}: too little to compare")))
}

fn families(all: &[&str]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn an_exit_that_one_family_explains_has_its_name() {
    let deep = "rate=20Mbit rtt=60ms queue=6bdp";
    for (path, startup, name) in [
        (deep, "hystart", "hystart"),
        (deep, "hystart-ns3", "hystart"),
        ("rate=50Mbit rtt=100ms queue=2bdp", "hystart-paper", "hystart"),
        ("rate=30Mbit rtt=80ms queue=6bdp", "search", "search"),
        ("rate=20Mbit rtt=50ms queue=2bdp", "vegas-linux", "vegas"),
        (deep, "bbr", "bbr"),
        (deep, "bbr3", "bbr"),
        // A threshold of its own ends its growth.
        ("rate=50Mbit rtt=100ms queue=3bdp", "smooth", "smooth"),
        // No other grows as it does until a packet is lost.
        ("rate=20Mbit rtt=100ms queue=1bdp", "adaptive", "adaptive"),
    ] {
        assert_eq!(named(path, startup), (Some(name.into()), vec![name.to_string()]), "{startup}, {path}");
    }
}

/// A class holds the startup of the sender and those that would have sent the same: SUSS that does not accelerate is
/// HyStart.
#[test]
fn an_exit_that_few_families_explain_has_their_class() {
    let class =
        |path: &str, startup: &str| replay(path, startup, 0, &Options::default()).sender_startup_class;
    let path = "rate=20Mbit rtt=60ms queue=6bdp";
    for startup in ["hystart", "vegas-linux", "bbr3"] {
        let family = slowstart_replay::naming::family(startup).expect("a family");
        let class = class(path, startup).unwrap_or_else(|| panic!("{startup}: no class"));
        assert!(class.len() <= 3 && class.iter().any(|f| f == family), "{startup}: {class:?}");
    }
    // A loss ends slow start before SEARCH and others have acted.
    let class = class("rate=10Mbit rtt=200ms queue=1bdp", "search").expect("several do the same");
    assert_eq!(class, ["standard", "hystart", "hystart++", "search", "c4", "bbr"]);
}

/// Until a packet is lost, many do what slow start does.
#[test]
fn several_that_fit_are_listed_and_none_is_the_name() {
    for startup in ["standard", "hystart", "search"] {
        let (name, fits) = named("rate=10Mbit rtt=200ms queue=1bdp", startup);
        assert_eq!((name, fits), (None, families(&["standard", "hystart", "hystart++", "search", "c4"])));
    }
    // The rule of HyStart acts on this path, and BBR's flight does not grow so.
    let (name, fits) = named("rate=50Mbit rtt=100ms queue=2bdp", "standard");
    assert_eq!((name, fits), (None, families(&["standard", "search", "c4"])));
    // Only slow start fills so long a queue, but the transfer ends soon after the loss.
    let (name, fits) = named("rate=20Mbit rtt=60ms queue=6bdp", "standard");
    assert_eq!((name, fits), (None, families(&["standard"])));
}

/// Its growth is linear from another window than that of limited slow start, which is tried.
#[test]
fn a_growth_that_none_explains_has_no_name() {
    let t = replay("rate=50Mbit rtt=100ms queue=3bdp", "limited:max_ssthresh=30", 0, &Options::default());
    let none = (None, None, Some(Vec::new()));
    assert_eq!((t.sender_startup, t.sender_startup_class, t.sender_startup_fits), none);
}

/// The order of the sender's events is not exact there.
#[test]
fn a_capture_at_the_receiver_gives_no_name() {
    let t = replay("rate=30Mbit rtt=80ms queue=6bdp", "hystart", 1, &Options::default());
    assert_eq!((t.sender_startup, t.sender_startup_class, t.sender_startup_fits), (None, None, None));
}

/// The startups that a user asks for change nothing, and only they have a line.
#[test]
fn the_name_does_not_depend_on_the_startups_asked_for() {
    let all = ["hystart", "search"].map(|name| Candidate {
        label: name.to_string(),
        startup: (slowstart::startup::REGISTRY.iter().find(|e| e.name == name).expect("a startup").make)(),
    });
    let options = Options { candidates: all.into(), ..Options::default() };
    let t = replay("rate=20Mbit rtt=60ms queue=6bdp", "hystart", 0, &options);
    let lines: Vec<&str> = t.startups.iter().map(|s| s.startup.as_str()).collect();
    assert_eq!((t.sender_startup.as_deref(), lines), (Some("hystart"), vec!["hystart", "search"]));
}
