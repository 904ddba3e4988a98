//! A setting of the stack against another, as startups are compared: paired, in one study.

use slowstart_sim::engine::Sampling;
use slowstart_study::decision::{Change, Decision, Terms};
use slowstart_study::measures::Measure;
use slowstart_study::record::Row;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::summary::summarise;
use slowstart_study::verdict::verdict;

fn text(startups: &[&str]) -> StudyText {
    StudyText {
        path: "rate=50Mbit rtt=80ms queue=1bdp jitter=1ms".into(),
        startups: startups.iter().map(|s| (*s).into()).collect(),
        size: Some("1MB".into()),
        runs: Some(6),
        ..StudyText::default()
    }
}

fn rows(text: &StudyText) -> Vec<Row> {
    let study = Study::check(text, None).expect("a study");
    let run = |job: Job| study.run(job, Sampling::Off, false).row;
    study.jobs().into_iter().map(run).collect()
}

/// What a startup has after an @ is what the whole study would have by `set`, run by run, in nothing else.
#[test]
fn a_setting_of_a_startup_is_that_of_the_stack() {
    let all = rows(&text(&["hystart", "hystart@iw=20,pacing=on", "search:drain=off@iw=4"]));
    let labels: Vec<String> = summarise(&all).into_iter().map(|s| s.label).collect();
    assert_eq!(labels, ["hystart", "hystart@iw=20,pacing=on", "search:drain=off@iw=4"]);
    let mut set = text(&["hystart"]);
    set.set = [("iw".into(), "20".into()), ("pacing".into(), "on".into())].into();
    for (own, whole) in all[6..12].iter().zip(rows(&set)) {
        assert_eq!((own.iw_bytes, own.profile.as_str()), (Some(20 * 1448), "linux-6.18"));
        assert_eq!(own.settings, [("iw".into(), "20".into()), ("pacing".into(), "on".into())].into());
        let same = Row { profile: "linux-6.18".into(), settings: own.settings.clone(), ..whole };
        assert_eq!(*own, same);
    }
    // The others keep the stack of the study.
    assert_eq!(all[..6], rows(&text(&["hystart"])));
}

/// Twice the initial window saves a round trip of the few that 1 MB needs, and the verdict names the setting.
#[test]
fn the_verdict_names_the_setting() {
    let all = rows(&text(&["hystart", "hystart@iw=20", "hystart@iw=2"]));
    let d = Decision::new(&all, &Terms::default());
    let change = |label: &str| {
        let s = d.standings.iter().find(|s| s.summary.label == label).expect("a startup");
        d.against(&s.summary, Measure::Completion).map(|x| x.change)
    };
    assert_eq!(change("hystart@iw=20"), Some(Change::Better));
    assert_eq!(change("hystart@iw=2"), Some(Change::Worse));
    let said = verdict(&d);
    assert!(said.starts_with("hystart, Linux's default, needs"), "{said}");
    assert!(said.contains("hystart@iw=20 takes "), "{said}");
    let terms = Terms { baseline: Some("hystart@iw=2"), ..Terms::default() };
    let study = Study::check(&text(&["hystart", "hystart@iw=2"]), None).expect("a study");
    assert!(terms.check(&study).is_ok());
    assert_eq!(Decision::new(&all, &terms).standings[0].summary.label, "hystart@iw=2");
}

#[test]
fn a_wrong_setting_is_named() {
    for (startup, says) in [
        (
            "hystart@",
            "startup: found \"hystart@\", expected settings of the stack after @, as in hystart@iw=20",
        ),
        ("hystart@iw", "expected settings of the stack after @"),
        ("hystart@iw=0", "startup iw: found \"0\", expected a number of segments from 1 to 1000"),
        (
            "hystart@pacig=on",
            "startup: found \"pacig\" (did you mean \"pacing\"?), expected a knob: one of iw, mss",
        ),
        ("hystrat@iw=4", "found \"hystrat\" (did you mean \"hystart\"?)"),
    ] {
        let why = Study::check(&text(&[startup]), None).map(|_| ()).expect_err(startup).to_string();
        assert!(why.contains(says), "{startup}: {why}");
    }
}
