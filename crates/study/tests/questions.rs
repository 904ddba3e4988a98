//! What `scenarios/questions` asks about happens there.

use slowstart_sim::engine::Sampling;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};

fn question(text: &str) -> Study {
    let text: StudyText = toml::from_str(text).expect("a study");
    Study::check(&text, None).expect("a study")
}

/// The answer about marks rests on marks: slow start and C4 get some.
#[test]
fn packets_are_marked_where_marks_are_asked_about() {
    let study = question(include_str!("../../../scenarios/questions/c4-4-ecn.toml"));
    for contender in 0..study.contenders.len() {
        let row = study.run(Job { contender, run: 0 }, Sampling::Off, false).row;
        let marked = row.marks.expect("the ends use ECN").packets;
        assert!(marked > 0 || !["standard", "c4"].contains(&&*row.startup), "{}: no mark", row.startup);
    }
}

/// The flow beside which Rapid Start begins is in slow start then. Of less than a second before there is no goodput.
#[test]
fn the_other_flow_is_in_slow_start_where_that_is_asked() {
    let study = question(include_str!("../../../scenarios/questions/rapid-start-1-beside-slow-start.toml"));
    let (mut engine, end) = study.prepare(Job { contender: 0, run: 0 }, Sampling::Off, false);
    engine.run(end);
    let [own, other] = &engine.flows[..] else { panic!("two flows") };
    let left = other.truth.exit.expect("it leaves slow start").at;
    assert!(left > own.spec.start, "left at {left:?}, the other began at {:?}", own.spec.start);
    let others =
        study.run(Job { contender: 0, run: 0 }, Sampling::Off, false).row.others.expect("another flow");
    assert_eq!((others.goodput_before_bps, others.goodput_dip), (None, None));
}
