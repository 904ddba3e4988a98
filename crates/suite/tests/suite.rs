//! The report of a few scenarios: it repeats, and a baseline shows what became worse.

#![allow(clippy::disallowed_methods, reason = "a test reads what the repository has")]

use slowstart_study::engines::{Capture, Engine, EngineError, Lack, Part, Refusal, Watched};
use slowstart_study::measured::INVALID;
use slowstart_study::measures::Measure;
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Contender, Study};
use slowstart_study::simulator::Simulator;
use slowstart_suite::judge::Verdict;
use slowstart_suite::measure::Observed;
use slowstart_suite::report::board;
use slowstart_suite::run::{LeftOut, Settings, Stack, run, run_stack};
use slowstart_suite::scenario::{Reference, Scenario, Suite};
use slowstart_suite::{Report, baseline, report};
use std::sync::atomic::{AtomicUsize, Ordering};

fn few() -> Suite {
    let mut suite = Suite::built_in();
    suite.scenarios.retain(|s| ["short-1MB", "overshoot-shallow", "random-loss"].contains(&s.name.as_str()));
    suite
}

fn settings(startups: &[&str]) -> Settings {
    Settings {
        startups: startups.iter().map(ToString::to_string).collect(),
        avoidance: "cubic".into(),
        seed: 1,
        runs: Some(6),
    }
}

fn report_of(startups: &[&str]) -> Report {
    run(&few(), &settings(startups), &Simulator, &|| false, |_, _, _| ()).expect("it runs")
}

#[test]
fn the_same_seed_gives_the_same_report_and_json_keeps_it() {
    let one = report_of(&["standard", "search"]);
    assert_eq!(one, report_of(&["standard", "search"]));
    let text = report::json(&one).expect("JSON");
    assert_eq!(serde_json::from_str::<Report>(&text).expect("a report"), one);
}

/// Whatever `standard` does is within the limits that refer to it.
#[test]
fn standard_meets_what_refers_to_it() {
    let r = report_of(&["standard"]);
    let mut seen = 0;
    for e in r.entries.iter().filter(|e| e.criterion.contains("standard")) {
        assert_eq!(e.verdict, Verdict::Meets, "{e:?}");
        seen += 1;
    }
    assert!(seen >= 4);
}

#[test]
fn the_table_and_the_page_have_every_section_and_every_gap() {
    let (suite, r) = (few(), report_of(&["search"]));
    let (table, page) = (report::markdown(&suite, &r), report::html(&suite, &r));
    for section in ["5.1.3", "5.1.5", "6.4"] {
        assert!(
            table.contains(&format!("| {section} ")) && page.contains(&format!("section {section}:")),
            "{section}"
        );
    }
    for g in &suite.gaps {
        assert!(table.contains(&g.why) && page.contains("Not shown by this suite"), "{}", g.section);
    }
    let loads = [" src=", "href=\"http", "@import", "url("].map(|what| page.contains(what));
    assert_eq!(loads, [false; 4], "the page needs nothing else");
}

/// Against a baseline in which another startup had the name, exactly the worse values are told.
#[test]
fn a_baseline_tells_what_became_worse() {
    let rename = |mut r: Report| {
        for e in &mut r.entries {
            e.startup = "mine".into();
        }
        r.startups = vec!["mine".into()];
        r
    };
    let (good, bad) = (rename(report_of(&["standard"])), rename(report_of(&["limited:max_ssthresh=20"])));
    let same = baseline::worse(&good, &good).expect("comparable");
    assert_eq!((same.worse.len(), same.both, same.unequal), (0, good.entries.len(), None));
    let worse = baseline::worse(&bad, &good).expect("comparable").worse;
    assert!(
        worse.iter().any(|w| w.now.scenario == "short-1MB" && w.by.is_some_and(|b| b[0] > 0.0)),
        "{worse:?}"
    );
    let mut other = good.clone();
    other.seed = 2;
    assert_eq!(
        baseline::worse(&good, &other).expect_err("refused"),
        "seed: found \"2\", expected \"1\" as in this run"
    );
}

/// The simulator, with outcomes that are then changed.
#[derive(Debug)]
struct Changed(fn(&mut Outcome));

impl Engine for Changed {
    fn name(&self) -> &'static str {
        "changed"
    }
    fn lacks(&self, part: Part) -> Option<Lack> {
        Simulator.lacks(part)
    }
    fn startups(&self, avoidance: &str) -> Vec<String> {
        Simulator.startups(avoidance)
    }
    fn contender(&self, startup: &str, avoidance: &str) -> Result<Contender, EngineError> {
        Simulator.contender(startup, avoidance)
    }
    fn stack(&self, study: &Study) -> String {
        Simulator.stack(study)
    }
    fn run(&self, study: &Study, job: Job, watched: &Watched<'_>) -> Result<Outcome, EngineError> {
        let mut outcome = Simulator.run(study, job, watched)?;
        (self.0)(&mut outcome);
        Ok(outcome)
    }
    fn capture(&self, study: &Study, job: Job) -> Result<Capture, EngineError> {
        Simulator.capture(study, job)
    }
}

/// Two references and one startup, six runs of each.
#[test]
fn late_runs_are_told() {
    let mut suite = few();
    suite.scenarios.retain(|s| s.name == "short-1MB");
    // A first run of each contender that was released too late.
    let late = Changed(|outcome| outcome.row.caveats.extend((outcome.job.run == 0).then(|| INVALID.into())));
    let r = run(&suite, &settings(&["search"]), &late, &|| false, |_, _, _| ()).expect("it runs");
    assert_eq!(r.notes, [format!("short-1MB, 3 of 18 runs: {INVALID}")]);
    assert!(report_of(&["search"]).notes.is_empty());
    // Five of six runs are left, which decide nothing.
    assert!(r.entries.iter().all(|e| e.verdict == Verdict::Undecided), "{:?}", r.entries);
}

/// Two runs of the startup never complete, and lose nothing.
#[test]
fn a_transfer_that_stalls_meets_nothing() {
    let mut suite = few();
    suite.scenarios.retain(|s| s.name == "short-1MB");
    let stalls = Changed(|outcome| {
        if outcome.job.contender >= Reference::ALL.len() && matches!(outcome.job.run, 1 | 4) {
            outcome.measured.completed = None;
            outcome.row.completion_s = None;
        }
    });
    let settings = Settings { runs: None, ..settings(&["search"]) };
    let r = run(&suite, &settings, &stalls, &|| false, |_, _, _| ()).expect("it runs");
    let said: Vec<(Verdict, u32, usize)> =
        r.entries.iter().map(|e| (e.verdict, e.never, e.values.iter().flatten().count())).collect();
    // More runs would not mend it: they stay as many as the suite states.
    let n = suite.scenarios[0].study.runs.expect("stated") as usize;
    assert_eq!(r.entries[0].values.len(), n);
    assert_eq!(said, [(Verdict::DoesNotMeet, 2, n - 2), (Verdict::Undecided, 2, n - 2)]);
    assert!(r.entries.iter().all(|e| e.runs_to_decide.is_none()), "{:?}", r.entries);
    // What slow start and today's default do does not depend on who stalls.
    let honest = run(
        &suite,
        &Settings { runs: Some(n as u32), ..settings.clone() },
        &Simulator,
        &|| false,
        |_, _, _| (),
    );
    let limits = |r: &Report| r.entries.iter().map(|e| (e.limit, e.default_value)).collect::<Vec<_>>();
    assert_eq!(limits(&r), limits(&honest.expect("it runs")));
    // Nor do ten runs of twelve that lose nothing meet a limit of losses.
    let twelve = Settings { runs: Some(12), ..settings.clone() };
    let of_twelve = run(&suite, &twelve, &stalls, &|| false, |_, _, _| ()).expect("it runs");
    assert_eq!(of_twelve.entries[1].verdict, Verdict::Undecided, "{:?}", of_twelve.entries[1]);
    let table = report::markdown(&suite, &r);
    let never = format!("never completes in 2 of {n} runs");
    assert!(table.contains("in 1 scenario some transfers never complete"), "{table}");
    assert_eq!(table.matches(&never).count(), 2, "{table}");
}

/// What is met only since slow start is no better is named, and is not called more than that.
#[test]
fn relative_criteria_are_called_so() {
    let (suite, mut r) = (few(), report_of(&["search"]));
    let relative = r.entries.iter_mut().find(|e| e.against_default.is_some()).expect("one");
    (relative.verdict, relative.against_default) = (Verdict::Meets, Some(Verdict::DoesNotMeet));
    let n = r.entries.iter().filter(|e| e.is_worse_than_default()).count();
    let table = report::markdown(&suite, &r);
    assert!(
        table.contains(&format!("{n} met only against slow start, and worse than today's default (hystart)")),
        "{table}"
    );
    let (_, only) =
        table.split_once("No worse than slow start, but worse than today's default").expect("a table");
    assert!(only.contains(": no worse than slow start ("), "{table}");
    assert!(table.contains("| 5.1.5 Short flows: no worse than slow start |"), "{table}");
}

/// What is finished when a signal comes is kept, and the rest is named.
#[test]
fn a_suite_that_is_stopped_keeps_what_is_finished() {
    let begun = AtomicUsize::new(0);
    let stop = || begun.load(Ordering::Relaxed) > 1;
    let progress = |_: &Scenario, _, _| {
        begun.fetch_add(1, Ordering::Relaxed);
    };
    let whole = report_of(&["search"]);
    let r = run(&few(), &settings(&["search"]), &Simulator, &stop, progress).expect("it runs");
    let first = &few().scenarios[0].name;
    let own: Vec<_> = whole.entries.iter().filter(|e| e.scenario == *first).cloned().collect();
    assert!(!own.is_empty() && r.entries == own, "{:?}", r.entries);
    assert_eq!(r.left_out.len(), few().scenarios.len() - 1);
    assert!(baseline::worse(&whole, &r).is_err(), "it is no baseline of the whole suite");
}

/// Where runs were added, each report has the verdict of the planned runs too: the one that a suite with that number of runs
/// gives.
#[test]
fn what_the_planned_runs_said_is_told() {
    let mut suite = Suite::built_in();
    suite.scenarios.retain(|s| ["harm-reno", "short-1MB"].contains(&s.name.as_str()));
    let of = |runs: Option<u32>| {
        let settings = Settings { runs, ..settings(&["rate-bound"]) };
        run(&suite, &settings, &Simulator, &|| false, |_, _, _| ()).expect("it runs")
    };
    let (more, first) = (of(None), of(Some(6)));
    let mut changed = 0;
    for (e, f) in more.entries.iter().zip(&first.entries) {
        assert_eq!((&e.criterion, e.planned_verdict(), f.planned), (&f.criterion, f.verdict, None));
        assert_eq!(e.planned.map(|p| p.runs), (e.values.len() > 6).then_some(6), "{e:?}");
        changed += usize::from(e.verdict != f.verdict);
    }
    let added = |e: &&slowstart_suite::run::Entry| e.planned.is_some();
    assert!(changed > 0 && more.entries.iter().filter(added).count() > changed);
    let runs = more.entries.iter().find(|e| e.planned_verdict() != e.verdict).expect("one").values.len();
    board::check_verdicts(&more).expect("they follow from their runs");

    let sentence = report::sentences(&more).remove(0);
    let met = first.entries.iter().filter(|e| e.verdict == Verdict::Meets).count();
    assert!(sentence.contains(&format!("; by the planned runs alone {met} met, 0 not met, ")), "{sentence}");
    let markdown = report::markdown(&suite, &more);
    assert!(markdown.contains("\nVerdicts that added runs changed:\n"), "{markdown}");
    let told = format!("| meets after {runs} runs; undecided after the first 6 runs |");
    assert!(markdown.contains(&told), "{markdown}");
    let told = format!(", {runs} runs; undecided after the first 6 runs");
    assert!(report::html(&suite, &more).contains(&told));
    assert!(report::ktap(&more).contains(", undecided after the first 6 runs\nok "));
    assert!(!report::markdown(&suite, &first).contains("after the first"));

    // A verdict of theirs that they do not give is refused.
    let mut edited = more.clone();
    let e = edited.entries.iter_mut().find(|e| e.planned_verdict() != e.verdict).expect("one");
    e.planned.as_mut().expect("added").verdict = e.verdict;
    let why = board::check_verdicts(&edited).expect_err("refused");
    assert!(why.ends_with("found \"meets\", expected \"undecided\" by its first 6 runs"), "{why}");
}

/// Of unequal numbers of runs both are judged by those that both have: more runs than before, or fewer, are no change.
#[test]
fn unequal_numbers_of_runs_are_judged_over_the_common_ones() {
    let of = |runs: u32| {
        let settings = Settings { runs: Some(runs), ..settings(&["search"]) };
        run(&few(), &settings, &Simulator, &|| false, |_, _, _| ()).expect("it runs")
    };
    let (mut few, mut many) = (of(6), of(12));
    let both = |now: &Report, before: &Report| baseline::worse(now, before);
    for (now, before) in [(&few, &many), (&many, &few)] {
        let found = both(now, before).expect("comparable");
        assert!(found.worse.is_empty(), "{:?}", found.worse);
        assert_eq!(found.unequal, Some((few.entries.len(), 6)));
    }
    // What the common runs leave open, twelve decide: that was no better.
    let open = |r: &mut Report, runs: usize, verdict| {
        let e = &mut r.entries[0];
        let above = |i: usize| if i.is_multiple_of(2) && i < 6 { 2.0 } else { 1.0 };
        (e.values, e.limits) = (0..runs).map(|i| (Some(above(i)), Some(1.5))).unzip();
        e.verdict = verdict;
    };
    open(&mut few, 6, Verdict::Undecided);
    open(&mut many, 12, Verdict::Meets);
    assert!(both(&few, &many).expect("comparable").worse.is_empty());
    // A change within the common runs is told, and without a difference of nothing.
    few.entries[0].verdict = Verdict::DoesNotMeet;
    let found = both(&few, &many).expect("comparable").worse;
    assert_eq!(
        found.iter().map(|w| (w.verdict, w.before, w.by, w.runs)).collect::<Vec<_>>(),
        [(Verdict::DoesNotMeet, Verdict::Undecided, None, 6)]
    );
    many.entries[0].limits.clear();
    let why = both(&few, &many).expect_err("no limits");
    assert!(
        why.contains("found 6 runs in one report and 12 in the other")
            && why.contains("run the baseline again"),
        "{why}"
    );
}

/// A report whose runs are then changed by hand: what a plugin that stalls, or an older night, would leave.
#[test]
fn a_gate_is_never_surer_than_its_runs() {
    let good = report_of(&["search"]);
    let worse = |now: &Report, before: &Report| baseline::worse(now, before);
    // A run that never completes.
    let mut stalls = good.clone();
    let completion = |e: &&mut slowstart_suite::run::Entry| e.criterion.starts_with("completion_s");
    let e = stalls.entries.iter_mut().find(completion).expect("a criterion of time");
    (e.values[1], e.values[4]) = (None, None);
    let found = worse(&stalls, &good).expect("comparable").worse;
    assert_eq!(found.iter().map(|w| (w.lost, w.runs)).collect::<Vec<_>>(), [(2, 6)]);
    // Met before, undecided now.
    let mut open = good.clone();
    open.entries[0].verdict = Verdict::Undecided;
    assert_eq!(worse(&open, &good).expect("comparable").worse.len(), 1);
    // A value by more than a percent, to either side.
    let shifted = |by: f64, criterion: &str| {
        let mut r = good.clone();
        for e in r.entries.iter_mut().filter(|e| e.criterion.contains(criterion)) {
            e.values.iter_mut().flatten().for_each(|v| *v *= by);
        }
        r
    };
    let at_least = |r: &Report| {
        let mut r = r.clone();
        r.entries.retain(|e| e.criterion.starts_with("completion_s"));
        r.entries.iter_mut().for_each(|e| e.criterion = "goodput_mbps >= 0.9 standard".into());
        r
    };
    assert!(!worse(&shifted(1.02, "completion_s"), &good).expect("comparable").worse.is_empty());
    assert!(worse(&shifted(0.9, "completion_s"), &good).expect("comparable").worse.is_empty());
    let (less, more) = (shifted(0.9, "completion_s"), shifted(1.1, "completion_s"));
    assert!(!worse(&at_least(&less), &at_least(&good)).expect("comparable").worse.is_empty());
    assert!(worse(&at_least(&more), &at_least(&good)).expect("comparable").worse.is_empty());
    // What is missing cannot be compared.
    let mut left = good.clone();
    left.left_out = vec![LeftOut { scenario: "short-1MB".into(), why: "no such part".into() }];
    assert!(
        worse(&left, &good)
            .expect_err("refused")
            .starts_with("short-1MB: found results, which this run lacks")
    );
    let mut other = good.clone();
    other.startups = vec!["standard".into()];
    assert!(worse(&good, &other).expect_err("refused").contains("expected search among them"));
    // Releases of one series of the kernel are compared, others are not.
    let on = |stack: &str| Report { stack: stack.into(), ..good.clone() };
    assert!(worse(&on("Linux 6.18.44-cloud"), &on("Linux 6.18.2")).expect("comparable").worse.is_empty());
    assert_eq!(
        worse(&on("Linux 6.18.44"), &on("Linux 6.12.9")).expect_err("refused"),
        "stack: found \"Linux 6.12\", expected \"Linux 6.18\" as in this run"
    );
    let mut less = good.clone();
    less.entries.retain(|e| e.scenario != "short-1MB");
    assert!(worse(&good, &less).expect_err("refused").starts_with("short-1MB: found no results of search"));
    let mut few = good.clone();
    few.entries.iter_mut().for_each(|e| e.values.truncate(5));
    assert!(worse(&good, &few).expect_err("refused").contains("found 5 runs"));
    // More runs now than then: those that both have are compared.
    let twice = |r: &Report| {
        let mut r = r.clone();
        for e in &mut r.entries {
            e.values.extend_from_within(..);
            e.limits.extend_from_within(..);
        }
        r
    };
    let more = twice(&good);
    assert_eq!(worse(&more, &good).expect("comparable").worse.len(), 0);
    // One of them stalls now, or broke a rule.
    let judged = |now: &Report, before: &Report| {
        let all = worse(now, before).expect("comparable").worse;
        all.into_iter().map(|w| (w.now.criterion, w.verdict)).collect::<Vec<_>>()
    };
    let mut stalls = more.clone();
    let e = stalls.entries.iter_mut().find(completion).expect("a criterion of time");
    (e.values[1], e.never) = (None, 1);
    let name = e.criterion.clone();
    assert_eq!(judged(&stalls, &good), [(name.clone(), Verdict::DoesNotMeet)]);
    // Of what is no time of completion, the other runs do not decide then.
    let mut unseen = twice(&more);
    let met = |e: &&mut slowstart_suite::run::Entry| {
        !completion(e) && e.verdict == Verdict::Meets && e.values[1].is_some()
    };
    let e = unseen.entries.iter_mut().find(met).expect("another criterion that is met");
    (e.values[1], e.never) = (None, 1);
    let of = e.criterion.clone();
    assert_eq!(judged(&unseen, &more), [(of, Verdict::Undecided)]);
    let mut broken = more.clone();
    broken.entries.iter_mut().find(completion).expect("a criterion of time").broken = 1;
    assert_eq!(judged(&broken, &good), [(name, Verdict::DoesNotMeet)]);
    // Nothing in common is no comparison, and nor is another suite.
    let none = Report { entries: Vec::new(), ..good.clone() };
    assert_eq!(worse(&none, &good).expect_err("refused"), "found nothing that this run has too");
    let other = || "other".to_string();
    for (key, unlike) in [
        ("suite", Report { suite: other(), ..good.clone() }),
        ("engine", Report { engine: other(), ..good.clone() }),
        ("avoidance", Report { avoidance: other(), ..good.clone() }),
    ] {
        let why = worse(&good, &unlike).expect_err("refused");
        assert!(why.starts_with(&format!("{key}: found \"other\"")), "{why}");
    }
}

/// A stack whose runs are all alike but the first, which are late, and references that complete within a second or are
/// not seen.
struct Alike {
    run: Observed,
    reference: Observed,
    late: u32,
}

impl Stack for Alike {
    fn engine(&self) -> String {
        "alike".into()
    }
    fn unable(&self, _: &Study) -> Option<String> {
        None
    }
    fn run(&mut self, _: &Study, run: u32) -> Result<Observed, EngineError> {
        Ok(if run < self.late { Observed::late() } else { self.run })
    }
    fn reference(&mut self, _: Reference, _: &Study, _: u32) -> Result<Observed, EngineError> {
        Ok(self.reference)
    }
    fn notes(&mut self, runs: u32) -> Vec<String> {
        vec![format!("{runs} of {runs} runs: alike.")]
    }
}

#[test]
fn a_stack_is_judged_by_references_that_ran_in_the_same_place() {
    let mut suite = few();
    suite.scenarios.retain(|s| s.name == "short-1MB");
    let took = |s: f64| {
        let mut o = Observed::default();
        o.set(Measure::Completion, Some(s));
        o
    };
    let of = |run: Observed, reference: Observed, late: u32| {
        let settings = Settings { runs: Some(6 + late), ..settings(&["mine"]) };
        let r = run_stack(&suite, &settings, &mut Alike { run, reference, late }, |_| ()).expect("it runs");
        assert_eq!(r.notes, [format!("short-1MB, {0} of {0} runs: alike.", 6 + late)]);
        r.entries.iter().find(|e| e.criterion.starts_with("completion_s")).expect("a criterion").verdict
    };
    let verdict = |run: Observed, reference: Observed| of(run, reference, 0);
    assert_eq!(verdict(took(0.5), took(0.6)), Verdict::Meets);
    assert_eq!(verdict(took(0.9), took(0.6)), Verdict::DoesNotMeet);
    // A fetch that failed, and a machine that was too late.
    assert_eq!(verdict(Observed::default(), took(0.6)), Verdict::NotObserved);
    assert_eq!(verdict(Observed::late(), took(0.6)), Verdict::Undecided);
    assert_eq!(verdict(took(0.5), Observed::late()), Verdict::Undecided);
    // Late runs say nothing of what six others did not show.
    assert_eq!(of(Observed::default(), took(0.6), 2), Verdict::NotObserved);
    assert_eq!(of(took(0.5), took(0.6), 2), Verdict::Meets);
    // A limit that no machine showed is not that of the simulator.
    assert_eq!(verdict(took(0.5), Observed::default()), Verdict::NotObserved);
    assert_eq!(verdict(took(f64::INFINITY), took(0.6)), Verdict::DoesNotMeet);
}

/// A stack that refuses a scenario says nothing of it, in whatever run it does.
#[test]
fn a_stack_that_refuses_a_scenario_leaves_it_out() {
    struct Refuses;
    impl Stack for Refuses {
        fn engine(&self) -> String {
            "refuses".into()
        }
        fn unable(&self, _: &Study) -> Option<String> {
            None
        }
        fn run(&mut self, study: &Study, run: u32) -> Result<Observed, EngineError> {
            if run < 2 || study.size == Some(1_000_000) {
                return Ok(Observed::default());
            }
            let (engine, why, instead) = ("refuses".into(), "unsupported".to_string(), "sim".into());
            Err(Refusal { key: "testcase", engine, why, instead }.into())
        }
        fn reference(&mut self, _: Reference, _: &Study, _: u32) -> Result<Observed, EngineError> {
            Ok(Observed::default())
        }
        fn notes(&mut self, _: u32) -> Vec<String> {
            Vec::new()
        }
    }
    let r = run_stack(&few(), &settings(&["mine"]), &mut Refuses, |_| ()).expect("it runs");
    assert!(r.entries.iter().all(|e| e.scenario == "short-1MB"));
    let left: Vec<(&str, &str)> = r.left_out.iter().map(|l| (&*l.scenario, &*l.why)).collect();
    assert_eq!(left, [("overshoot-shallow", "unsupported"), ("random-loss", "unsupported")]);
}

/// A suite that anyone cites stays what it is: a change of its file is another suite, with another number.
#[test]
fn a_name_of_a_suite_means_one_file() {
    for (name, sha256) in [
        ("startup-1", "c3779064ecf70bc65f16a9fa6b41465fe45fa369bd2fd434b15a8956927cdaf3"),
        ("sources-3", "bf71eec071f494148d1535cdf5cd603780f813f0ee67258e55b5431046d28e07"),
        ("aqm-2", "ddf6489732f97a198b7743ef76814ac57cb3671be12376553405090e3747103e"),
    ] {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
        let text = std::fs::read_to_string(file.with_extension("toml")).expect("a file");
        assert_eq!(
            Suite::read(&text).expect("a suite").sha256,
            sha256,
            "{name}: give a changed suite the next number"
        );
    }
}

/// The other suites of the repository are read, and one of them states the source of each number.
#[test]
fn the_other_suites_are_suites() {
    let of = |name: &str| {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
        let suite = Suite::read(&std::fs::read_to_string(file).expect("a file")).expect("a suite");
        assert_eq!(format!("{}.toml", suite.name), name);
        suite
    };
    let (sources, aqm) = (of("sources-3.toml"), of("aqm-2.toml"));
    assert!(sources.scenarios.iter().all(|s| !s.numbers.is_empty()));
    assert!(aqm.scenarios.iter().all(|s| s.source.starts_with("RFC 7928 section")));
    // The avoidance of a scenario replaces that of the caller.
    let paced = sources.scenarios.iter().find(|s| s.name == "pacing-on-beta-05-queue-1").expect("a scenario");
    let text = paced.text(&["search".into()], "reno", 1, None);
    assert_eq!(text.avoidance.as_deref(), Some("cubic:startup_beta=0.5"));
}
