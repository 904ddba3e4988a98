//! Browsers, and several other flows that arrive at random.

use slowstart_sim::engine::Sampling;
use slowstart_study::record::Row;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};

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
    assert!(
        objects.median_s >= 0.04 && objects.p95_s >= objects.median_s && objects.p95_s < 5.0,
        "{objects:?}"
    );
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
        "app: found \"browsr\" (did you mean \"browser\"?), expected one of bulk, web, video, browser, writes:500kB@1Mbit,2s,10MB, or sizes with pauses between them, 2 to 8 sizes and pauses of up to an hour, such as 5MB,2s,5MB"
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
