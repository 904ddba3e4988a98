//! Startups that are bad on purpose fail what they should, and a startup that is as good as a reference fails
//! nothing.

use slowstart::startup::foreign::{Event, Foreign, Host};
use slowstart::step::{Exit, Step};
use slowstart::units::Bytes;
use slowstart::view::View;
use slowstart_study::engines::{Engine, Watched};
use slowstart_study::run::Job;
use slowstart_study::scenario::Contender;
use slowstart_study::simulator::Simulator;
use slowstart_suite::judge::Verdict;
use slowstart_suite::run::{MORE_RUNS, Settings, Tally, judged, study_of};
use slowstart_suite::scenario::Suite;
use std::collections::BTreeSet;
use std::sync::LazyLock;

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

/// The scenarios of which a startup does not meet a criterion, and the measures of those criteria.
type Failed = (BTreeSet<String>, BTreeSet<String>);

/// What each of the three fails, beside the same references.
static FAILED: LazyLock<[Failed; 3]> = LazyLock::new(|| {
    let suite = Suite::built_in();
    let names = ["triples", "leaves", "ignores"];
    let contenders: Vec<Contender> = (0..)
        .zip(names)
        .map(|(class, name)| {
            let mut contender = Contender::read("startups", "standard", "cubic").expect("a startup");
            contender.startup = Foreign::new(&BAD, class).into();
            contender.label = name.into();
            contender
        })
        .collect();
    let settings =
        Settings { startups: names.map(Into::into).to_vec(), avoidance: "cubic".into(), seed: 1, runs: None };
    let mut failed: [Failed; 3] = Default::default();
    for s in &suite.scenarios {
        let study = study_of(s, &contenders, &settings).expect("a study");
        let most = study.runs * MORE_RUNS;
        let entries =
            judged(&Simulator, s, &study, &settings.startups, most, &|| false, &mut Tally::default())
                .expect("it runs");
        for e in entries.iter().filter(|e| e.verdict == Verdict::DoesNotMeet) {
            let class = names.iter().position(|n| *n == e.startup).expect("one of them");
            failed[class].0.insert(s.name.clone());
            failed[class].1.extend(e.criterion.split(' ').next().map(str::to_string));
        }
    }
    failed
});

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

/// It overshoots by twice the BDP where standard slow start overshoots by once: it fails where a queue
/// overflows or others wait in it, and nowhere else. In `overshoot-shallow`, where path and queue hold 648
/// packets, it loses 878 of those sent before it leaves, and slow start 423. In `short-1MB` it does not fail:
/// the receiver's window spares it ([`the_receivers_window_spares_a_short_transfer`]).
#[test]
fn one_that_triples_fails_where_a_queue_overflows() {
    let all = [
        "below-one-packet",
        "bloated-1s",
        "cable",
        "codel",
        "collapse-narrow",
        "dualpi2",
        "eight-starters",
        "fiber",
        "fq-codel",
        "fq-codel-marks",
        "geo",
        "harm-bbr",
        "leo",
        "lte",
        "overshoot-deep",
        "overshoot-long",
        "overshoot-shallow",
        "pie",
        "policer",
        "rate-drop",
        "shaper",
        "split-acks",
        "wifi",
        "wifi-bad",
    ];
    assert_eq!(FAILED[0].0, set(&all));
}

/// Of the 690 packets of 1 MB, 10 + 30 + 90 + 270 are sent in four round trips, and the other 290 three for
/// each of the next 97 that are acknowledged: 270 + 2 * 97 = 464 packets are then in flight, where path and
/// queue hold 416. A receiver whose window begins with 64 kB and grows with what arrives lets 390 be in flight.
#[test]
fn the_receivers_window_spares_a_short_transfer() {
    let suite = Suite::built_in();
    let scenario = suite.scenarios.iter().find(|s| s.name == "short-1MB").expect("it is there");
    let settings = Settings { startups: Vec::new(), avoidance: "cubic".into(), seed: 1, runs: Some(1) };
    let mut triples = Contender::read("startups", "standard", "cubic").expect("a startup");
    triples.startup = Foreign::new(&BAD, 0).into();
    let mut study = study_of(scenario, &[triples], &settings).expect("a study");
    let job = Job { contender: study.contenders.len() - 1, run: 0 };
    let mut of = |first: u64| {
        study.profile.rmem_first = Bytes(first);
        let outcome = Simulator.run(&study, job, &Watched::ROW).expect("it runs");
        let held = outcome.row.caveats.iter().any(|c| c.contains("receive window"));
        (outcome.measured.peak_inflight.map(|b| b / 1448), outcome.row.lost_packets > Some(0), held)
    };
    assert_eq!(of(128 << 10), (Some(390), false, true), "as the profile has it");
    assert_eq!(of(8 << 20), (Some(463), true, false), "open from the start");
}

/// It is late wherever the path holds more than ten segments and the transfer is not short of data, and fails
/// by time alone.
#[test]
fn one_that_leaves_at_once_fails_what_time_decides() {
    let all = [
        "aggregated-acks",
        "bloated-1s",
        "burst-loss",
        "cable",
        "codel",
        "datacenter",
        "dualpi2",
        "eight-starters",
        "fiber",
        "fq-codel",
        "fq-codel-marks",
        "geo",
        "geo-short",
        "harm-bbr",
        "harm-cubic-deep",
        "jitter",
        "late-packets",
        "leo",
        "lte",
        "outage",
        "pie",
        "random-loss",
        "rate-rise",
        "reordering",
        "shaper",
        "short-100kB",
        "short-1MB",
        "tail-drop-short",
        "tail-drop-transatlantic",
    ];
    assert_eq!(FAILED[1], (set(&all), set(&["completion_s"])));
}

/// It doubles on through losses: it fails where they are many, and where others are.
#[test]
fn one_that_ignores_loss_fails_where_there_is_loss() {
    let all = [
        "aggregated-acks",
        "below-one-packet",
        "cable",
        "codel",
        "collapse-narrow",
        "fiber",
        "fq-codel",
        "fq-codel-marks",
        "half-megabit",
        "harm-cubic",
        "harm-cubic-deep",
        "harm-reno",
        "leo",
        "lte",
        "overshoot-deep",
        "overshoot-long",
        "overshoot-shallow",
        "policer",
        "rate-drop",
        "shaper",
        "split-acks",
        "wifi-bad",
    ];
    assert_eq!(FAILED[2].0, set(&all));
}
