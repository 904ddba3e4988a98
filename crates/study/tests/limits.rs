//! What limited a sender, where it is known by construction; and why packets were dropped.

use slowstart::units::{Bytes, Span};
use slowstart_sim::engine::Sampling;
use slowstart_sim::path::PathSpec;
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

fn busy(l: &Limits) -> f64 {
    l.busy.expect("the simulator knows all")
}

fn sums_to_one(l: &Limits) {
    let sum: f64 = l.named().iter().map(|(_, share)| share.expect("the simulator knows all")).sum();
    assert!((sum - 1.0).abs() < 1e-8, "{sum}: {l:?}");
    assert!((0.0..=1.0).contains(&busy(l)), "{l:?}");
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
        let largest =
            limits.named().into_iter().max_by(|a, b| a.1.partial_cmp(&b.1).expect("numbers")).expect("some");
        assert_eq!(largest.0, expected, "{} of {}: {}", row.startup, row.path, limits.sentence());
    }
}

/// A handshake takes one and a half round trips at the server, and the rest of a transfer is busy.
#[test]
fn a_handshake_has_its_time() {
    let row = run(&text("rate=20Mbit rtt=40ms queue=4bdp", "hystart", "500kB"));
    let limits = row.limits.expect("observed");
    // SYN, SYN-ACK, and the ACK with which the server may begin.
    let handshake = limits.handshake.expect("observed");
    assert!((handshake * row.duration_s - 0.06).abs() < 0.001, "{limits:?}");
    assert!((busy(&limits) - (1.0 - handshake)).abs() < 1e-8, "a transfer is busy until its end");
}

/// A browser's pauses are no time in which data was in flight.
#[test]
fn pauses_are_not_busy() {
    let limits = run(&of_app("rate=20Mbit rtt=40ms", "browser")).limits.expect("observed");
    sums_to_one(&limits);
    assert!(limits.application > Some(0.5) && busy(&limits) < 0.5, "{limits:?}");
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

/// A script drops the 60th packet, which ends slow start before the path is full; 40 MB later two seconds pass. Slow
/// start begins again with ten segments and ends by HyStart, below the threshold. The second pause is short: the window
/// of an idle time that a timeout does not exceed stays.
#[test]
fn pauses_and_what_follows_are_told() {
    let bursts =
        |path: &str, app: &str| StudyText { app: Some(app.into()), size: None, ..text(path, "hystart", "") };
    let (_, lines) = told(&bursts("rate=50Mbit rtt=60ms queue=4bdp drop=60", "40MB,2s,6MB"));
    for part in ["After 2.00 s with nothing in flight the window restarts at 10 segments", "by its own rule."]
    {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    let path = "rate=50Mbit rtt=60ms queue=2bdp";
    let (_, lines) = told(&bursts(path, "1MB,3s,5MB"));
    assert!(lines.contains("at the threshold that it had kept."), "{lines}");
    let (_, lines) = told(&with(bursts(path, "1MB,3s,5MB"), "idle_restart", "off"));
    assert!(lines.contains("the window is still") && !lines.contains("leaves slow start again"), "{lines}");
    let (_, lines) = told(&text(path, "hystart", "5MB"));
    assert!(!lines.contains("nothing in flight"), "{lines}");
}

/// All waits for 600 ms: the timer fires, and nothing was lost.
#[test]
fn a_timeout_that_was_spurious_is_told_as_such() {
    let path = "rate=20Mbit rtt=40ms queue=10bdp outage=at=0.3s,for=600ms,queue=kept";
    let (row, lines) = told(&text(path, "hystart", "5MB"));
    assert_eq!((row.lost_packets, row.first_loss_time_s, row.timeouts), (Some(0), None, Some(1)));
    assert!(lines.contains("The retransmission timer fires; that is undone as spurious at"), "{lines}");
}

/// An application that writes 4 MB at 5 Mbit/s needs 6.4 s, whatever the path: that is no cost of the startup.
#[test]
fn the_schedule_of_writes_is_no_cost() {
    let writes = of_app("rate=50Mbit rtt=40ms queue=1bdp", "writes:4MB@5Mbit");
    let (row, lines) = told(&StudyText { duration: None, ..writes });
    assert!(row.completion_s > Some(6.4), "{lines}");
    assert!(lines.contains("as the application writes for 6.39 s: 0.0213 s more"), "{lines}");
}

/// The queue that overflows is that of the slower link, wherever it lies, and the row says which.
#[test]
fn drops_have_their_link() {
    let of_run = |path: &str, against: &[&str], run: u32| {
        let against = against.iter().map(ToString::to_string).collect();
        let text = StudyText { against, runs: Some(5), ..text(path, "hystart", "10MB") };
        let study = Study::check(&text, None).expect("a study");
        let outcome = study.run(Job { contender: 0, run }, Sampling::EachAck, false);
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
    let of = |path: &str, against: &[&str]| of_run(path, against, 0);
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
    let (_, [_, second], told) = of(path, &["cubic*3@-5s/2"]);
    assert!(second > 0 && told.contains("The full queue at link 2 drops"), "{second}: {told}");
    let alone = of(path, &[]).0.capacity_time_s.expect("it fills the first link");
    let sooner =
        |run: &u32| of_run(path, &["cubic*3@-5s/2"], *run).0.capacity_time_s.is_some_and(|t| t < alone);
    let sooner = (0..5).filter(sooner).count();
    assert!(sooner >= 4, "in {sooner} of 5 runs");
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

/// A run in sentences.
fn told(text: &StudyText) -> (Row, String) {
    let study = Study::check(text, None).expect("a study");
    let outcome = study.run(Job { contender: 0, run: 0 }, Sampling::EachAck, false);
    let told = Told::new(&study, &outcome.row, &outcome.trace, u64::from(study.profile.mss));
    let lines = told.timeline().into_iter().map(|(_, text)| text).chain(told.costs());
    let all = [told.heading(), told.headline()].into_iter().chain(lines).collect::<Vec<_>>().join("\n");
    (outcome.row, all)
}

/// What was marked, which share that is, and what the sender did about it.
#[test]
fn marks_are_told() {
    let set = |value: &str| [("ecn".to_string(), value.to_string())].into();
    let path = "rate=20Mbit rtt=50ms queue=\"codel ecn\"";
    let (row, all) = told(&StudyText { set: set("rfc3168"), ..text(path, "standard", "10MB") });
    let marks = row.marks.expect("the ends use ECN");
    assert!(marks.packets > 1 && marks.responses > 1, "{marks:?}");
    assert!(all.contains("The sender learns of a mark (CE) for the first time."), "{all}");
    assert!(all.contains(&format!("Marks: {} packets marked (CE) (", marks.packets)), "{all}");
    assert!(all.contains(&format!("reduced its window for marks {} times", marks.responses)), "{all}");
    // The exit tells of the first itself.
    let told_of = all.matches("The sender reduces its window for marks.").count() as u64;
    assert_eq!(told_of, (marks.responses - 1).min(6), "{all}");
    assert_eq!(row.exit.expect("an exit").reason, "ecn");
    let (_, without) =
        told(&StudyText { set: set("rfc3168"), ..text("rate=20Mbit rtt=50ms", "hystart", "1MB") });
    assert!(!without.contains("ark"), "{without}");
}

/// Where other flows fill the path, nobody knows what of it is this flow's.
#[test]
fn capacity_beside_other_flows_is_not_that_of_the_flow() {
    let path = "rate=20Mbit rtt=40ms queue=1bdp";
    let with =
        |against: &str| told(&StudyText { against: vec![against.into()], ..text(path, "hystart", "10MB") });
    let (row, all) = with("cubic*3@-10s");
    assert!(row.capacity_time_s.is_some_and(|t| t > 0.0));
    assert!(all.contains("Other flows fill the path already."), "{all}");
    assert!(all.contains("is not observed"), "{all}");
    for wrong in ["reaches the capacity", "after the path was full"] {
        assert!(!all.contains(wrong), "{wrong}: {all}");
    }
    let (_, alone) = told(&text(path, "hystart", "10MB"));
    assert!(alone.contains("The data in flight reaches the capacity of the path"), "{alone}");
    assert!(alone.contains("after the path was full"), "{alone}");
}

/// The tokens that a bucket has at first pass at the rate of the link.
#[test]
fn the_least_time_counts_the_burst_of_a_bucket() {
    let least = |bucket: &str| {
        let path = PathSpec::load(&format!("rate=100Mbit rtt=40ms {bucket}"), None).expect("a path");
        path.least_time(Bytes(10_000_000))
    };
    let peak = "shaper=\"rate=20Mbit burst=9MB peak=50Mbit\"";
    assert_eq!((least(""), least(peak)), (Span::millis(800), Span::millis(1600)));
    for kind in ["policer", "shaper"] {
        let of = |burst: &str| least(&format!("{kind}=\"rate=20Mbit burst={burst}\""));
        // 8 MB of 10 at 20 Mbit/s, and all at 100 Mbit/s.
        assert_eq!((of("2MB"), of("9MB")), (Span::millis(3200), Span::millis(800)), "{kind}");
    }
    let (_, all) = told(&text("rate=100Mbit rtt=40ms policer=\"rate=20Mbit burst=20MB\"", "hystart", "10MB"));
    // 10 MB of payload are 10.36 MB on the wire: 0.829 s, and one and a half round trips.
    assert!(all.contains("it would be about 0.889 s"), "{all}");
}

/// One segment is no "segments".
#[test]
fn one_is_singular() {
    let (_, all) = told(&text("rate=512kbit rtt=30ms queue=50kB", "hystart", "100kB"));
    assert!(all.contains("(1 segment)") && !all.contains(" 1 segments"), "{all}");
}
