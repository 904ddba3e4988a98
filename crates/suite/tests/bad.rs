//! Startups that are bad on purpose fail what they should, and a startup that is as good as a reference fails nothing.

use slowstart::startup::foreign::{Event, Foreign, Host};
use slowstart::step::{Exit, Step};
use slowstart::view::View;
use slowstart_lab::scenario::Contender;
use slowstart_suite::judge::Verdict;
use slowstart_suite::run::{Settings, judged, study_of};
use slowstart_suite::scenario::Suite;
use std::collections::BTreeSet;

/// Three startups that nobody should use. They keep no state.
struct Bad;

static BAD: Bad = Bad;

impl Host for Bad {
    fn begin(&self, class: u64) -> u64 {
        class
    }

    fn event(&self, class: u64, v: &View, event: Event) -> Step {
        match (class, event) {
            // Triples each round trip, for as long as nothing is lost.
            (0, Event::Ack(a)) => Step::grow(v.slow_start_growth(a) * 2),
            // Leaves at once.
            (1, Event::Established(_)) => Step::exit(Exit::Estimate),
            // Doubles, and ignores losses and marks.
            (2, Event::Congestion(_)) => Step::HOLD,
            (_, Event::Ack(a)) => Step::grow(v.slow_start_growth(a)),
            (_, Event::Congestion(c)) => Step::exit(c.signal.into()),
            _ => Step::HOLD,
        }
    }
}

/// Returns the scenarios of which this startup does not meet a criterion.
fn failed(class: u64, scenarios: &[&str]) -> BTreeSet<String> {
    let suite = Suite::built_in();
    let mut contender = Contender::read("startups", "standard", "cubic").expect("a startup");
    contender.startup = Foreign::new(&BAD, class).into();
    contender.label = "bad".into();
    let settings =
        Settings { startups: vec!["bad".into()], avoidance: "cubic".into(), seed: 1, runs: Some(6) };
    let mut failed = BTreeSet::new();
    for s in suite.scenarios.iter().filter(|s| scenarios.contains(&s.name.as_str())) {
        let study = study_of(s, std::slice::from_ref(&contender), &settings).expect("a study");
        let entries = judged(s, &study, &settings.startups);
        if entries.iter().any(|e| e.verdict == Verdict::DoesNotMeet) {
            failed.insert(s.name.clone());
        }
    }
    failed
}

const SOME: [&str; 8] = [
    "overshoot-shallow",
    "overshoot-deep",
    "overshoot-long",
    "short-100kB",
    "tail-drop-transatlantic",
    "geo-short",
    "small-receive-window",
    "harm-cubic",
];

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

/// It overshoots by twice the BDP where standard slow start overshoots by once, and is as fast where nothing is lost. (In
/// `overshoot-shallow` its last window before the loss, 810 packets, happens to be smaller than the 1280 of slow start.)
#[test]
fn one_that_triples_fails_what_losses_decide() {
    let failed = failed(0, &SOME);
    assert!(failed.is_superset(&set(&["overshoot-deep", "overshoot-long"])), "{failed:?}");
    for fine in ["short-100kB", "geo-short", "small-receive-window"] {
        assert!(!failed.contains(fine), "{failed:?}");
    }
}

/// It is late wherever the path holds more than ten segments, and loses nothing.
#[test]
fn one_that_leaves_at_once_fails_what_time_decides() {
    let failed = failed(1, &SOME);
    assert!(failed.is_superset(&set(&["tail-drop-transatlantic", "geo-short"])), "{failed:?}");
    for fine in
        ["overshoot-shallow", "overshoot-deep", "overshoot-long", "harm-cubic", "small-receive-window"]
    {
        assert!(!failed.contains(fine), "{failed:?}");
    }
}

#[test]
fn one_that_ignores_loss_fails_where_the_queue_overflows() {
    let failed = failed(2, &SOME);
    assert!(failed.is_superset(&set(&["overshoot-shallow", "overshoot-deep", "harm-cubic"])), "{failed:?}");
    for fine in ["short-100kB", "small-receive-window", "geo-short"] {
        assert!(!failed.contains(fine), "{failed:?}");
    }
}
