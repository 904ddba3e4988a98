//! What limited a sender, where it is known by construction; and why packets were dropped.

use slowstart_sim::engine::Sampling;
use slowstart_study::record::{Limits, Row};
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};

fn text(path: &str, startup: &str, size: &str) -> StudyText {
    StudyText {
        path: path.into(),
        startups: vec![startup.into()],
        size: Some(size.into()),
        runs: Some(1),
        ..StudyText::default()
    }
}

fn of_app(path: &str, app: &str) -> StudyText {
    let duration = Some("20s".into());
    StudyText { app: Some(app.into()), size: None, duration, ..text(path, "hystart", "1MB") }
}

fn run(text: &StudyText) -> Row {
    let study = Study::check(text, None).expect("a study");
    study.run(Job { contender: 0, run: 0 }, Sampling::Off, false).row
}

fn with(text: StudyText, key: &str, value: &str) -> StudyText {
    StudyText { set: [(key.to_string(), value.into())].into(), ..text }
}

fn sums_to_one(l: &Limits) {
    let sum: f64 = l.named().iter().map(|(_, share)| share).sum();
    assert!((sum - 1.0).abs() < 1e-8, "{sum}: {l:?}");
    assert!((0.0..=1.0).contains(&l.busy), "{l:?}");
}

/// Where one thing limits the sender by construction, it has the largest share; all shares sum to the duration.
#[test]
fn the_largest_share_is_what_limits_the_sender() {
    let plain = "rate=100Mbit rtt=40ms queue=1bdp";
    let cases: Vec<(&str, StudyText)> = vec![
        // A window of 130 kB, of 500 kB that the path holds.
        ("receive window", with(text(plain, "hystart", "10MB"), "rmem", "131072")),
        ("send buffer", with(text(plain, "hystart", "10MB"), "send_buffer", "131072")),
        // 4 s of video take some hundred milliseconds each.
        ("application", of_app(plain, "video")),
        ("application", of_app(plain, "web")),
        // Seven round trips of doubling, and no exit.
        ("startup's window", text("rate=100Mbit rtt=500ms queue=2bdp", "hystart", "1MB")),
        ("avoidance's window", text("rate=20Mbit rtt=40ms queue=1bdp", "hystart", "50MB")),
        // The window of BBR is twice what it has in flight, and its pacing rate that of the path.
        ("pacing", text("rate=20Mbit rtt=40ms queue=4bdp", "bbr", "50MB")),
        // The pacer of Linux spreads the window that limits it.
        (
            "startup's window",
            StudyText {
                profile: Some("linux-6.18-fq".into()),
                ..text("rate=100Mbit rtt=500ms queue=2bdp", "standard", "1MB")
            },
        ),
        // The window outgrows what path and queue of the host hold.
        ("host's queue", text("rate=20Mbit rtt=10ms link=host queue=100packets", "standard", "20MB")),
        // Each flight loses a third of its packets.
        ("recovery", text("rate=20Mbit rtt=40ms queue=4bdp loss=30%", "hystart", "500kB")),
        // Three SYN-ACKs are lost, each sent again after a second or more.
        ("handshake", text("rate=20Mbit rtt=40ms queue=4bdp drop_synack=3", "hystart", "500kB")),
        // Ten segments are one flight, which takes 120 ms to serialize.
        ("last flight", text("rate=1Mbit rtt=20ms queue=20packets", "hystart", "14kB")),
    ];
    for (expected, text) in cases {
        let row = run(&text);
        let limits = row.limits.expect("observed");
        sums_to_one(&limits);
        let noted = row.caveats.iter().any(|c| c.contains("receive window"));
        assert_eq!(noted, expected == "receive window", "{expected}: {:?}", row.caveats);
        let largest = limits.named().into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("some");
        assert_eq!(largest.0, expected, "{} of {}: {}", row.startup, row.path, limits.sentence());
    }
}

/// A handshake takes one and a half round trips at the server, and the rest of a transfer is busy.
#[test]
fn a_handshake_has_its_time() {
    let row = run(&text("rate=20Mbit rtt=40ms queue=4bdp", "hystart", "500kB"));
    let limits = row.limits.expect("observed");
    // SYN, SYN-ACK, and the ACK with which the server may begin.
    assert!((limits.handshake * row.duration_s - 0.06).abs() < 0.001, "{limits:?}");
    assert!((limits.busy - (1.0 - limits.handshake)).abs() < 1e-8, "a transfer is busy until its end");
}

/// A browser's pauses are no time in which data was in flight.
#[test]
fn pauses_are_not_busy() {
    let limits = run(&of_app("rate=20Mbit rtt=40ms", "browser")).limits.expect("observed");
    sums_to_one(&limits);
    assert!(limits.application > 0.5 && limits.busy < 0.5, "{limits:?}");
}

/// Every lost packet has the cause that the path was made of, and reordering drops none.
#[test]
fn drops_have_their_causes() {
    let of = |path: &str| {
        let row = run(&text(path, "hystart", "10MB"));
        let by: Vec<(String, u64)> =
            row.lost_by.expect("observed").named().map(|(c, n)| (c.to_string(), n)).collect();
        assert_eq!(Some(by.iter().map(|b| b.1).sum()), row.lost_packets, "{path}");
        by.into_iter().map(|b| b.0).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(of("rate=50Mbit rtt=40ms queue=20packets"), ["queue-full"]);
    assert_eq!(of("rate=50Mbit rtt=40ms queue=\"pfifo_head_drop limit=20\""), ["queue-full"]);
    assert_eq!(of("rate=50Mbit rtt=40ms queue=codel"), ["aqm"]);
    assert_eq!(of("rate=50Mbit rtt=40ms queue=20bdp loss=0.1%"), ["random"]);
    assert_eq!(of("rate=50Mbit rtt=40ms queue=20bdp gemodel=0.1%,30%"), ["burst"]);
    assert_eq!(of("rate=50Mbit rtt=40ms queue=20bdp drop=100"), ["scripted"]);
    assert_eq!(
        of("rate=50Mbit rtt=40ms queue=20bdp outage=at=500ms,for=100ms,every=60s,queue=flushed"),
        ["outage"]
    );
    assert_eq!(of("rate=1Gbit rtt=40ms queue=20bdp policer=\"rate=50Mbit burst=125kB\""), ["policer"]);
    assert_eq!(of("rate=50Mbit rtt=40ms queue=20bdp second_route=20%,10ms"), none);
}
