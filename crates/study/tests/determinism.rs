//! The same study gives the same bytes: twice, on one thread and on two, in debug and in release, today and
//! after a change that meant no harm.
//!
//! The rows of `data/golden.jsonl` are what the tree gave when it was last looked at; both profiles of the
//! compiler are held against them. A change that is meant writes them anew:
//! `SLOWSTART_BLESS=1 cargo test -p slowstart-study --test determinism`, and the difference is for the reviewer
//! to read.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

#[path = "../../sim/tests/common/mod.rs"]
mod common;

use common::{engine, flow};
use rayon::prelude::*;
use slowstart::units::{Instant, Span};
use slowstart_sim::app::Kind;
use slowstart_sim::engine::{Direction, End, Engine, FlowSpec, Sampling};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Study, StudyText};

fn study(text: &StudyText) -> Study {
    Study::check(text, None).unwrap_or_else(|e| panic!("{e}"))
}

fn small(path: &str, runs: u32) -> StudyText {
    StudyText {
        path: path.into(),
        startups: vec!["hystart".into(), "search".into()],
        size: Some("2MB".into()),
        runs: Some(runs),
        ..StudyText::default()
    }
}

/// One JSON row a line.
fn rows(outcomes: &[Outcome]) -> String {
    let line = |o: &Outcome| serde_json::to_string(&o.row).expect("a row is plain data") + "\n";
    outcomes.iter().map(line).collect()
}

fn all(study: &Study) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    study
        .run_all(|o| {
            outcomes.push(o);
            Ok::<_, ()>(())
        })
        .expect("nothing refuses");
    outcomes
}

/// A path on which everything varies that can.
const RESTLESS: &str = "rate=20Mbit rate_vary=50% rate_vary_period=100ms rtt=40ms queue=1bdp jitter=3ms ack_jitter=1ms \
                        loss=1% ack_loss=1% handover=1s handover_step=20ms aggregate=2ms random_drop=10%@30kB \
                        ack_rate=5Mbit ack_queue=50packets";

#[test]
fn the_same_study_twice_and_on_one_thread_and_on_two() {
    let links = format!(
        "{RESTLESS} then=\"rate=19Mbit rtt=10ms queue=fq_codel loss=0.1%\" then=\"rate=30Mbit rtt=1ms\""
    );
    for (path, more) in [(RESTLESS, "cubic@-1s"), (&links, "cubic@-1s/2-3/+9ms")] {
        let against = vec!["cubic@-1s".into(), "search@200ms/up".into(), more.into()];
        let study = study(&StudyText { against, ..small(path, 3) });
        let first = rows(&all(&study));
        assert_eq!(first.lines().count(), 6);
        assert_eq!(first, rows(&all(&study)));
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let jobs = study.jobs();
            let outcomes: Vec<Outcome> =
                pool.install(|| jobs.par_iter().map(|j| study.run(*j, Sampling::Off, false)).collect());
            assert_eq!(first, rows(&outcomes), "on {threads} threads");
        }
    }
}

/// What is recorded is a view of the run, never a part of it.
#[test]
fn recording_changes_nothing() {
    let study = study(&small(RESTLESS, 1));
    for contender in 0..2 {
        let job = Job { contender, run: 0 };
        let plain = study.run(job, Sampling::Off, false);
        for sampling in [Sampling::Every(Span::millis(7)), Sampling::EachAck] {
            let recorded = study.run(job, sampling, true);
            assert_eq!(rows(std::slice::from_ref(&plain)), rows(std::slice::from_ref(&recorded)));
            assert!(recorded.trace.samples.len() > 50, "{} samples", recorded.trace.samples.len());
            assert_eq!(recorded.trace, study.run(job, sampling, true).trace);
        }
    }
}

/// What an engine did, in words.
fn done(mut e: Engine) -> String {
    let packets = e.take_capture();
    let flows = e.flows.iter().map(|f| {
        let ends = f.ends.iter().map(|end| (end.state(), end.tx.counters, end.tx.next(), end.rx.delivered()));
        format!("{:?} {:?}\n", f.truth, ends.collect::<Vec<_>>())
    });
    flows.collect::<String>() + &format!("{:?} {:?} {:?} {packets:?}", e.now(), e.cost, e.trace)
}

/// One end is ahead of the other while an engine runs, and nothing shows it: not with data both ways,
/// requests and answers, delays of their own, nor where hardly anything takes time.
#[test]
fn the_order_of_time_is_kept_though_one_end_runs_ahead() {
    let flows = |first: Direction| {
        let sized = Kind::Bulk { size: Some(300_000) };
        vec![
            FlowSpec { direction: first, app: sized, ..flow("hystart", Profile::LINUX_6_18) },
            FlowSpec {
                direction: Direction::Upload,
                start: Instant(200_000_000),
                ..flow("search", Profile::LINUX_6_18)
            },
            FlowSpec {
                extra_delay: Span::millis(7),
                start: Instant(1),
                ..flow("standard", Profile::LINUX_6_18)
            },
            FlowSpec { app: Kind::Web, extra_delay: Span::millis(3), ..flow("limited", Profile::LINUX_6_18) },
            FlowSpec { app: Kind::Video { rate_bps: 4_000_000 }, ..flow("hystart", Profile::LINUX_6_18) },
        ]
    };
    let [long, short] = ["rate=20Mbit rtt=40ms queue=1bdp", "rate=20Mbit rtt=1us queue=20packets"]
        .map(|forward| format!("{forward} ack_rate=5Mbit ack_queue=30packets"));
    for path in [RESTLESS, &long, &short] {
        for first in [Direction::Download, Direction::Upload] {
            for sampling in [Sampling::Off, Sampling::Every(Span::millis(7))] {
                let begin = || {
                    let path = PathSpec::load(path, None).expect("a path").build(3);
                    let mut e = Engine::new(path, flows(first), 3, sampling, true);
                    e.start_capture();
                    e
                };
                let (mut ahead, mut strict) = (begin(), begin());
                let end = Instant(8_000_000_000);
                ahead.complete(end);
                strict.run_until(end, |e| e.flows[0].truth.completed.is_some());
                assert!(ahead.flows[0].truth.completed == Some(ahead.now()), "{path}");
                assert!(done(ahead.clone()) == done(strict.clone()), "{path}, {first:?}, {sampling:?}");
                ahead.run(end);
                strict.run_until(end, |_| false);
                assert!(done(ahead) == done(strict), "{path}, {first:?}, {sampling:?}, to the end");
            }
        }
    }
}

#[test]
fn runs_differ_and_startups_meet_the_same_path() {
    let study = study(&small(RESTLESS, 3));
    let outcomes = all(&study);
    let seeds = |contender: usize| -> Vec<u64> {
        outcomes.iter().filter(|o| o.job.contender == contender).map(|o| o.row.seed).collect()
    };
    assert_eq!(seeds(0), seeds(1));
    assert!(seeds(0)[0] != seeds(0)[1] && seeds(0)[1] != seeds(0)[2]);
    let times: Vec<Option<f64>> = outcomes.iter().take(3).map(|o| o.row.completion_s).collect();
    assert!(times[0] != times[1] && times[1] != times[2], "{times:?}");
}

#[test]
fn debug_and_release_agree_with_the_golden_rows() {
    let mut got = String::new();
    for path in PathSpec::builtins() {
        got += &rows(&all(&study(&small(path.name, 1))));
    }
    for text in [
        StudyText { against: vec!["cubic@-2s".into()], ..small(RESTLESS, 1) },
        StudyText { profile: Some("ideal".into()), ..small("lte", 1) },
        StudyText { profile: Some("linux-6.18-fq".into()), ..small("fiber", 1) },
        StudyText { app: Some("web".into()), size: None, duration: Some("10s".into()), ..small("dsl", 1) },
        StudyText { app: Some("video".into()), size: None, duration: Some("10s".into()), ..small("leo", 1) },
    ] {
        got += &rows(&all(&study(&text)));
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/golden.jsonl");
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(file, &got).expect("the folder is there");
    }
    let want = std::fs::read_to_string(file).expect("the golden rows");
    for (got, want) in got.lines().zip(want.lines()) {
        assert_eq!(got, want, "if this is meant: SLOWSTART_BLESS=1");
    }
    assert_eq!(got.lines().count(), want.lines().count());
}

/// What the server of the first flow had written each time all of it was acknowledged: the sizes its
/// application drew.
fn sizes(e: &mut Engine) -> Vec<u64> {
    let mut all = Vec::new();
    e.run_until(Instant::ZERO + Span::secs(60), |e| {
        let tx = &e.flows[0].ends[End::Server].tx;
        if tx.idle() && all.last() != Some(&tx.next()) {
            all.push(tx.next());
        }
        false
    });
    all
}

#[test]
fn neither_another_flow_nor_another_jitter_changes_what_a_flow_draws() {
    let web = || FlowSpec { app: Kind::Web, ..flow("hystart", Profile::LINUX_6_18) };
    let alone = sizes(&mut engine("rate=100Mbit rtt=20ms jitter=1ms", vec![web()]));
    assert!(alone.len() > 40, "{} objects", alone.len());
    let other = FlowSpec { start: Instant::ZERO + Span::millis(500), ..web() };
    for (path, flows) in [
        ("rate=100Mbit rtt=20ms jitter=1ms", vec![web(), other]),
        ("rate=100Mbit rtt=20ms jitter=3ms", vec![web()]),
        ("rate=30Mbit rtt=20ms jitter=1ms ack_jitter=2ms loss=1%", vec![web()]),
    ] {
        let got = sizes(&mut engine(path, flows));
        // Times differ, and so does how many objects fit in a minute.
        let n = got.len().min(alone.len());
        assert!(n > 40, "{path}: {n} objects");
        assert_eq!(got[..n], alone[..n], "{path}");
    }
}

/// A run ends at its duration at the latest, and a duration is a day at most.
#[test]
fn no_study_runs_without_an_end() {
    for (path, size) in [
        ("rate=1kbit rtt=40ms", "1GiB"),
        ("rate=1kbit rtt=900000s", "10MB"),
        ("schedule=0s:0bit,80000s:2kbit rtt=40ms", "10MB"),
        ("rate=100000Gbit rtt=1ns", "1GiB"),
    ] {
        let text = StudyText { path: path.into(), size: Some(size.into()), ..StudyText::default() };
        let study = Study::check(&text, None).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert!(study.duration <= Span::secs(86_400), "{path}: {:?}", study.duration);
    }
    let text = StudyText {
        path: "rate=1kbit rtt=1000s".into(),
        startups: vec!["standard".into()],
        size: Some("1GiB".into()),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).expect("a study");
    let row = study.run(study.jobs()[0], Sampling::Off, false).row;
    assert!(row.completion_s.is_none() && row.duration_s <= 86_400.0, "{}", row.duration_s);
}
