//! Browsers, and several other flows that arrive at random.

use slowstart_sim::engine::Sampling;
use slowstart_study::decision::{Decision, Terms};
use slowstart_study::diff::diff;
use slowstart_study::record::{Connection, Row};
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::verdict::verdict;

fn study(app: &str, against: &[&str]) -> Result<Study, String> {
    let text = StudyText {
        path: "rate=20Mbit rtt=40ms ack_rate=5Mbit".into(),
        startups: vec!["hystart".into()],
        app: Some(app.into()),
        duration: Some("20s".into()),
        against: against.iter().map(|a| (*a).into()).collect(),
        runs: Some(2),
        ..StudyText::default()
    };
    Study::check(&text, None).map_err(|e| e.to_string())
}

fn row(study: &Study, run: u32) -> Row {
    study.run(Job { contender: 0, run }, Sampling::Off, false).row
}

#[test]
fn a_browser_is_judged_by_its_objects() {
    let study = study("browser", &[]).expect("a study");
    let row = row(&study, 0);
    let objects = row.objects.expect("a browser loads objects");
    // Pages of 23 to 168 objects, 5 s apart on average, and each object takes a round trip at least.
    assert!((23..=2000).contains(&objects.complete), "{objects:?}");
    let (median, p95) = objects.median_s.zip(objects.p95_s).expect("all came");
    assert!(median >= 0.04 && p95 >= median && p95 < 5.0, "{objects:?}");
}

/// Rows of an application with this setting over the path of a public question.
fn with_setting(app: &str, set: (&str, &str), runs: u32) -> Vec<Row> {
    let text = StudyText {
        path: "rate=50Mbit rtt=80ms queue=1bdp".into(),
        startups: vec!["hystart".into()],
        app: Some(app.into()),
        duration: Some("60s".into()),
        set: [(set.0.to_string(), set.1.to_string())].into(),
        runs: Some(runs),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).expect("a study");
    (0..runs).map(|run| row(&study, run)).collect()
}

/// What does `tcp_slow_start_after_idle` cost a browser? A third of the time of an object; of its transfers nothing,
/// whose time is that of the user's pauses.
#[test]
fn the_cost_of_idle_restart_is_in_the_objects() {
    let [on, off] = ["on", "off"].map(|restart| with_setting("browser", ("idle_restart", restart), 10));
    let line = diff(on.clone(), off, 0.03).remove(0);
    assert_eq!((line.b_is, line.measure, line.pairs), ("better", Some("objects_median_s"), 10), "{line:?}");
    let [percent, low, high] = line.percent.expect("a difference");
    assert!((-45.0..-25.0).contains(&percent) && low < high && high < -15.0, "{line:?}");
    let said = verdict(&Decision::new(&on, &Terms::default()));
    assert!(said.contains(" s for the median object and ") && !said.contains("10 MB"), "{said}");
}

/// Objects under way when a run ends are waited for; what then has not come never comes.
#[test]
fn only_what_never_comes_is_missing() {
    let of = |path: &str, duration: &str| {
        let text = StudyText {
            path: path.into(),
            startups: vec!["hystart".into()],
            app: Some("video".into()),
            duration: Some(duration.into()),
            runs: Some(1),
            ..StudyText::default()
        };
        row(&Study::check(&text, None).expect("a study"), 0).objects.expect("segments")
    };
    // A segment of 20 Mbit takes four seconds and a bit: the second is under way after five.
    let slow = of("rate=5Mbit rtt=40ms queue=1bdp", "5s");
    assert_eq!((slow.asked, slow.complete), (2, 2));
    assert!(slow.times_s.iter().flatten().all(|t| (4.0..6.0).contains(t)), "{slow:?}");
    // The link is gone for ever.
    let gone = of("schedule=0s:5Mbit,6s:0bit,200s:5Mbit rtt=40ms queue=1bdp", "20s");
    assert_eq!((gone.asked, gone.complete, gone.median_s, gone.p95_s), (2, 1, None, None), "{gone:?}");
    let never = of("rate=5Mbit rtt=40ms queue=1bdp drop_syn=50", "5s");
    assert_eq!((never.asked, never.complete), (1, 0), "the first was to come with the connection");
}

#[test]
fn every_application_with_pauses_has_objects() {
    let count = |app: &str| with_setting(app, ("idle_restart", "on"), 1)[0].objects.clone().map(|o| o.asked);
    assert_eq!(count("100kB,1s,200kB,1s,300kB"), Some(3));
    assert_eq!(count("video"), Some(17), "three at once, then one each four seconds");
    assert!(count("web").is_some_and(|n| n > 50));
    assert_eq!((count("writes:100kB,1s,100kB"), count("writes:500kB@1Mbit,1MB")), (Some(2), Some(2)));
    assert_eq!((count("bulk"), count("writes:100kB@10kB/3ms")), (None, None));
}

/// A part of a schedule takes from its last write to its arrival: its pauses and its rate are the application's.
#[test]
fn what_is_written_after_a_pause_takes_as_long_as_what_is_requested_after_it() {
    let of = |app: &str| with_setting(app, ("idle_restart", "on"), 1)[0].objects.clone().expect("objects");
    let (written, requested) = (of("writes:1MB,5s,300kB,5s,300kB"), of("1MB,5s,300kB,5s,300kB"));
    assert_eq!((written.asked, written.complete), (3, 3));
    // A request takes half a round trip to the server, and the first one follows the handshake.
    for (w, r) in written.times_s.iter().flatten().zip(requested.times_s.iter().flatten()).skip(1) {
        assert!((r - w - 0.04).abs() < 0.005, "{written:?} {requested:?}");
    }
    let paced = of("writes:500kB@1Mbit,5s,10kB");
    assert!(paced.times_s.iter().flatten().all(|t| *t < 0.1), "{paced:?}");
}

#[test]
fn a_run_of_a_browser_is_its_seed() {
    let study = study("browser", &["web*3@-2s"]).expect("a study");
    assert_eq!(row(&study, 0), row(&study, 0));
    assert_ne!(row(&study, 0).objects, row(&study, 1).objects);
}

#[test]
fn several_flows_begin_at_times_of_their_own() {
    let study =
        study("bulk", &["web*5@-10s", "video*2@-5s", "browser*3@4s", "cubic*2@-10s/up"]).expect("a study");
    let starts = |run| -> Vec<u64> {
        let (engine, _) = study.prepare(Job { contender: 0, run }, Sampling::Off, false);
        engine.flows.iter().map(|f| f.spec.start.0 / 1_000_000).collect()
    };
    let (first, second) = (starts(0), starts(1));
    assert_eq!((first.len(), first[0]), (13, 10_000));
    assert_ne!(first, second);
    assert_eq!(first, starts(0));
    let within = |flows: std::ops::Range<usize>, times: std::ops::RangeInclusive<u64>| {
        first[flows].iter().all(|t| times.contains(t))
    };
    assert!(within(1..6, 0..=10_000) && within(6..8, 5_000..=10_000), "{first:?}");
    assert!(within(8..11, 10_000..=14_000) && within(11..13, 0..=10_000), "{first:?}");
    assert!(row(&study, 0).others.is_some());
}

#[test]
fn mistakes_are_named() {
    let error = |app, against: &[&str]| study(app, against).map(|_| ()).expect_err("a mistake");
    assert_eq!(
        error("browsr", &[]),
        "app: found \"browsr\" (did you mean \"browser\"?), expected one of bulk, connections:10, web, video, browser, writes:500kB@1Mbit,2s,10MB, or sizes with pauses between them, 2 to 8 sizes and pauses of up to an hour, such as 5MB,2s,5MB"
    );
    for flows in ["web*0@-1s", "web*@-1s", "web*+3@-1s", "web*1001@-1s", "web*x@-1s"] {
        let message = format!(
            "against: found {flows:?}, expected a number of flows from 1 to 1000 after *, as in web*5@-10s"
        );
        assert_eq!(error("bulk", &[flows]), message);
    }
    assert!(error("bulk", &["video*2@-1s/up"]).contains("expected a video client without /up"));
    assert!(error("bulk", &["wbe*2@-1s"]).contains("a startup: one of"));
}

fn transfer(app: &str, size: &str) -> Result<Study, String> {
    let text = StudyText {
        path: "rate=20Mbit rtt=40ms queue=1bdp".into(),
        startups: vec!["hystart".into()],
        app: Some(app.into()),
        size: Some(size.into()),
        runs: Some(1),
        ..StudyText::default()
    };
    Study::check(&text, None).map_err(|e| e.to_string())
}

/// Ten connections are one transfer: its figures are those of all, and each has an exit of its own.
#[test]
fn several_connections_are_one_transfer() {
    let several = row(&transfer("connections:10", "10000003B").expect("a study"), 0);
    let each = &several.connections;
    assert_eq!(each.len(), 10);
    let last = each.iter().map(|c| c.completion_s.expect("it completes")).fold(0.0, f64::max);
    assert_eq!(several.completion_s, Some(last));
    let bits = 8.0 * 10_000_003.0;
    assert!((several.goodput_bps as f64 - bits / last).abs() < 1.0);
    let sum = |of: fn(&Connection) -> Option<u64>| each.iter().map(of).sum::<Option<u64>>();
    assert_eq!(several.lost_packets, sum(|c| c.lost_packets));
    assert_eq!(several.startup_lost_packets, sum(|c| c.startup_lost_packets));
    assert_eq!(
        several.lost_by.expect("it is observed").queue_full,
        several.lost_packets.expect("it is observed")
    );
    let exits: Vec<f64> = each.iter().filter_map(|c| Some(c.exit.as_ref()?.time_s)).collect();
    let first = exits.iter().copied().fold(f64::MAX, f64::min);
    assert_eq!(several.exit.as_ref().map(|e| e.time_s), Some(first));
    let leader = each.iter().find(|c| c.exit.as_ref().is_some_and(|e| e.time_s <= first)).expect("one leads");
    assert_eq!(several.class, leader.class);
    // 1 MB of all is there before 1 MB of any would be, and a link of 20 Mbit/s needs 0.4 s for it.
    let megabyte = several.time_to_bytes_s["1000000"].expect("it has that much");
    let one = row(&transfer("bulk", "10000003B").expect("a study"), 0);
    let alone = one.time_to_bytes_s["1000000"].expect("it has that much");
    assert!((0.4..alone).contains(&megabyte), "{megabyte} s, alone {alone} s");
    assert_eq!((several.limits, several.peak_inflight_bytes), (None, None));
    assert_eq!(row(&transfer("connections:1", "10000003B").expect("a study"), 0), one);
    let samples = transfer("connections:3", "3MB").expect("a study");
    let outcome = samples.run(Job { contender: 0, run: 0 }, Sampling::EachAck, false);
    assert!((0..3).all(|flow| outcome.trace.samples.iter().any(|s| s.flow == flow)));
}

#[test]
fn wrong_numbers_of_connections_are_refused() {
    for (app, size, says) in [
        ("connections:0", "1MB", "expected a transfer over 1 to 100 connections"),
        ("connections:101", "1MB", "expected a transfer over 1 to 100 connections"),
        ("connections:", "1MB", "expected a transfer over"),
        ("connections:+3", "1MB", "expected a transfer over"),
        ("connections:10", "9B", "a byte for each connection"),
        ("connection:10", "1MB", "one of bulk, connections:10,"),
    ] {
        let why = transfer(app, size).expect_err(app);
        assert!(why.contains(says), "{app} {size}: {why}");
    }
}

/// What careful-resume remembers is the path of the earlier connection: one that was slower lets it begin with less,
/// one that was faster makes it overshoot. Means of eight runs: one run of the slower is as fast as any of the same.
#[test]
fn an_earlier_connection_may_have_had_another_path() {
    let text = |remember: &str| StudyText {
        path: "rate=50Mbit rtt=100ms queue=0.5bdp".into(),
        startups: vec!["careful-resume".into()],
        size: Some("5MB".into()),
        remember: Some(remember.into()),
        runs: Some(8),
        ..StudyText::default()
    };
    // Seconds, and packets lost.
    let of = |remember: &str| {
        let study = Study::check(&text(remember), None).expect("a study");
        let rows = (0..8).map(|run| study.run(Job { contender: 0, run }, Sampling::Off, false).row);
        let sum = rows.fold((0.0, 0), |(seconds, lost), row| {
            (seconds + row.completion_s.expect("complete"), lost + row.lost_packets.expect("observed"))
        });
        (sum.0 / 8.0, sum.1 / 8)
    };
    let [off, slower, same, faster] =
        ["off", "rate=5Mbit rtt=100ms queue=1bdp", "on", "rate=500Mbit rtt=100ms queue=1bdp"].map(of);
    assert!(same.0 < slower.0 && slower.0 < off.0, "{same:?}, {slower:?}, {off:?}");
    assert!(faster.1 > same.1, "{faster:?}, {same:?}");
    for wrong in ["maybe", "rate=5Mbit", "rate=5Mbit rtt=1ms proxy=\"rate=5Mbit rtt=1ms\""] {
        let error = Study::check(&text(wrong), None).expect_err(wrong).to_string();
        assert!(error.starts_with("remember: found"), "{error}");
    }
}

/// A call beside a startup: it fills what is free until then, its frames wait behind a startup that fills the queue, and losses halve its
/// rate. One that leaves early costs it nothing.
#[test]
fn a_startup_that_overshoots_costs_a_call_its_rate() {
    let beside = |startup: &str| {
        let text = StudyText {
            path: "rate=20Mbit rtt=40ms queue=2bdp".into(),
            startups: vec![startup.into()],
            against: vec!["media@-20s".into()],
            size: Some("3MB".into()),
            runs: Some(1),
            ..StudyText::default()
        };
        row(&Study::check(&text, None).expect("a study"), 0).others.expect("a call")
    };
    let (loud, soft) = (beside("standard"), beside("vegas"));
    for others in [&loud, &soft] {
        // 0.3 Mbit/s and 0.2 more each second: 4.3 Mbit/s after 20 s, and 3.8 in the mean of the last five.
        assert!(others.goodput_before_bps.is_some_and(|b| (3.6e6..3.9e6).contains(&b)), "{others:?}");
    }
    assert!(loud.goodput_dip > Some(0.3) && loud.lost_packets > 20, "{loud:?}");
    assert!(loud.delay_p99_s > Some(0.07), "the queue holds 80 ms: {loud:?}");
    assert_eq!((soft.goodput_dip, soft.lost_packets), (Some(0.0), 0), "{soft:?}");
    let refused = |flow: &str| {
        let text = StudyText { path: "geo".into(), against: vec![flow.into()], ..StudyText::default() };
        Study::check(&text, None).err().map(|e| e.to_string())
    };
    assert!(refused("media@-1s/up").is_some_and(|why| why.contains("a media client without /up")));
}
