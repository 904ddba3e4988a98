//! What limited a sender, where it is known by construction; and why packets were dropped.

use slowstart_sim::engine::Sampling;
use slowstart_study::explain::Told;
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
        // The same, and the window is full: only the FIN waits for it.
        ("last flight", text("rate=1Mbit rtt=20ms queue=20packets", "hystart", "14480B")),
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

/// The queue that overflows is that of the slower link, wherever it lies, and the row says which.
#[test]
fn drops_have_their_link() {
    let of = |path: &str, against: &[&str]| {
        let against = against.iter().map(ToString::to_string).collect();
        let study =
            Study::check(&StudyText { against, ..text(path, "hystart", "10MB") }, None).expect("a study");
        let outcome = study.run(Job { contender: 0, run: 0 }, Sampling::EachAck, false);
        let lost = |n: usize| outcome.row.links[n].lost_by.named().map(|(_, n)| n).sum::<u64>();
        assert_eq!(Some(lost(0) + lost(1)), outcome.row.lost_packets, "{path}");
        let events = outcome.trace.events.iter().filter(|e| e.what == "drop");
        let at: Vec<u64> = events.map(|e| u64::from(e.link.expect("a path of two links"))).collect();
        for n in [0, 1] {
            assert_eq!(at.iter().filter(|at| **at == n + 1).count() as u64, lost(n as usize), "{path}");
        }
        let told = Told::new(&study, &outcome.row, &outcome.trace, 1448).costs().join("\n");
        let lost = [lost(0), lost(1)];
        (outcome.row, lost, told)
    };
    let (fast, slow) = ("rate=100Mbit rtt=20ms queue=2bdp", "rate=50Mbit rtt=20ms queue=20packets");
    let (row, [first, second], told) = of(&format!("{fast} then=\"{slow}\""), &[]);
    assert!(first == 0 && second > 0, "{first} and {second}");
    assert!(row.links[0].peak_queue_delay_s < row.links[1].peak_queue_delay_s, "{:?}", row.links);
    assert_eq!((row.rate_bps, row.base_rtt_s, row.buffer_bytes), (50_000_000, 0.04, Some(30_000)));
    assert!(told.contains("The full queue at link 2 drops"), "{told}");
    assert!(told.contains("Link 1: 100 Mbit/s, 20 ms of the RTT"), "{told}");
    let (_, [first, second], told) = of(&format!("{slow} then=\"{fast}\""), &[]);
    assert!(first > 0 && second == 0 && told.contains("at link 1 drops"), "{first}, {second}: {told}");
    // The first link is slower, but four flows fill the second.
    let path = "rate=40Mbit rtt=20ms queue=2bdp then=\"rate=50Mbit rtt=20ms queue=50packets\"";
    let (row, [_, second], told) = of(path, &["cubic*3@-5s/2"]);
    assert!(second > 0 && told.contains("The full queue at link 2 drops"), "{second}: {told}");
    let alone = of(path, &[]).0.capacity_time_s.expect("it fills the first link");
    assert!(row.capacity_time_s.is_some_and(|t| t < alone), "{:?}, alone {alone}", row.capacity_time_s);
    // What leaves the first link free fills it no sooner.
    let (_, [_, second], _) = of(path, &["web@-5s/2"]);
    let beside = of(path, &["web@-5s/2"]).0.capacity_time_s.expect("as alone");
    assert!(second == 0 && (beside - alone).abs() < 0.001, "{second}: {beside} and {alone}");
}

#[test]
fn flows_beside_say_which_links_they_cross() {
    let two = "rate=20Mbit rtt=20ms then=\"rate=20Mbit rtt=20ms\"";
    let check = |path: &str, flow: &str| {
        let text = StudyText { against: vec![flow.into()], ..text(path, "hystart", "1MB") };
        Study::check(&text, None).map(|s| s.against[0].clone()).map_err(|e| e.to_string())
    };
    for flow in [
        "cubic@-1s/2",
        "cubic@-1s/1-2",
        "web*3@-1s/2",
        "cubic@-1s/2/+30ms",
        "reno@1s/+1ms/1",
        "search@0s/+5ms",
    ] {
        assert!(check(two, flow).is_ok(), "{flow}");
    }
    for flow in [
        "cubic@-1s/0",
        "cubic@-1s/2-1",
        "cubic@-1s/1/2",
        "cubic@-1s/+0ms",
        "cubic@-1s/up/2",
        "cubic@-1s/",
        "cubic@-1s/-5ms",
    ] {
        let why = check(two, flow).expect_err(flow);
        assert!(why.contains(flow) && why.contains("behind the time"), "{why}");
    }
    let why = check(two, "cubic@-1s/2-3").expect_err("two links");
    assert!(why.contains("links of this path, which are 1 to 2"), "{why}");
    let why = check("rate=20Mbit rtt=20ms", "cubic@-1s/2").expect_err("one link");
    assert!(why.contains("then="), "{why}");
}
