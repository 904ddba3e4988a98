//! One law over random rows: no sentence of a verdict and no mark of a table says what a row contradicts.
//!
//! What the rows say is counted here again, from the rows alone.

use crate::decision::{Change, Decision, Standing, Terms};
use crate::measured::{BROKEN, INVALID};
use crate::measures::Measure;
use crate::record::{Class, Objects, Row};
use crate::sample::rows;
use crate::stats::{median, quantile};
use crate::verdict::{paths, recommended, verdict};
use crate::words::number;
use proptest::prelude::*;

/// What happens in a run.
#[derive(Clone, Debug)]
struct Happens {
    time: f64,
    lost: u64,
    queue_ms: Option<u32>,
    got: f64,
    completes: bool,
    ended: bool,
    valid: bool,
    /// How many objects it asks for, and how much slow ones take longer.
    objects: (usize, f64),
}

/// What one run has at random.
type Drawn = (bool, u64, bool, (u32, bool), bool, bool, bool, f64, (usize, f64));

/// A startup: how often each thing happens is drawn first, so that rare and common mixtures both occur.
fn startup(runs: usize) -> impl Strategy<Value = (Vec<Happens>, bool)> {
    let share = prop_oneof![Just(0.0), Just(0.04), Just(0.1), Just(0.4), Just(1.0)];
    let rare = prop_oneof![6 => Just(0.0), 1 => Just(0.1), 1 => Just(1.0)];
    let odd = (rare.clone(), rare.clone(), rare.clone(), rare);
    let speed = prop_oneof![1 => Just(1.0), 2 => 0.5_f64..1.5];
    (share.clone(), share, odd, speed, prop::bool::weighted(0.05)).prop_flat_map(
        move |(loses, waits, (stalls, unended, late, unobserved), speed, broken)| {
            let run = (
                prop::bool::weighted(loses),
                1_u64..5000,
                prop::bool::weighted(waits),
                (0_u32..900, prop::bool::weighted(1.0 - unobserved / 4.0)),
                prop::bool::weighted(1.0 - stalls),
                prop::bool::weighted(1.0 - unended),
                prop::bool::weighted(1.0 - late / 4.0),
                0.98_f64..1.02,
                (1_usize..40, prop_oneof![3 => Just(1.0), 1 => 1.0_f64..2.0]),
            );
            let happens =
                move |(l, lost, w, (queue, observed), completes, ended, valid, noise, objects): Drawn| {
                    Happens {
                        time: 10.0 * speed * noise,
                        lost: if l { lost } else { 0 },
                        queue_ms: observed.then_some(if w { queue } else { 0 }),
                        got: if w { f64::from(queue % 100) } else { 90.0 },
                        completes,
                        ended,
                        valid,
                        objects,
                    }
                };
            (prop::collection::vec(run.prop_map(happens), runs), Just(broken))
        },
    )
}

fn study() -> impl Strategy<Value = Vec<Row>> {
    let runs = prop_oneof![1 => 1_usize..6, 4 => 6_usize..13, 4 => 20_usize..41];
    let all = runs.prop_flat_map(|runs| {
        (prop::collection::vec(startup(runs), 2..5), any::<bool>(), prop::bool::weighted(0.3))
    });
    all.prop_map(|(startups, beside, objects)| {
        let mut all = Vec::new();
        for (i, (happens, broken)) in startups.into_iter().enumerate() {
            let label = ["hystart", "search", "ess", "standard"][i];
            let mut mine = rows(label, &happens.iter().map(|h| h.time).collect::<Vec<f64>>());
            for (r, h) in mine.iter_mut().zip(&happens) {
                r.startup_lost_packets = Some(h.lost);
                r.peak_queue_delay_s = h.queue_ms.map(|ms| f64::from(ms) / 1e3);
                if !h.completes {
                    r.completion_s = None;
                    r.time_to_bytes_s.values_mut().for_each(|t| *t = None);
                }
                if objects {
                    // What a client has that pauses says nothing of the path.
                    (r.size_bytes, r.completion_s) = (None, None);
                    r.objects = Some(asked(h));
                }
                if !h.ended {
                    (r.exit, r.class) = (None, Class::None);
                }
                r.caveats.extend((!h.valid).then(|| INVALID.to_string()));
                r.caveats.extend(broken.then(|| format!("{BROKEN}: it did")));
                if beside && r.run < 10 {
                    r.got_percent = Some(h.got);
                }
            }
            all.extend(mine);
        }
        all
    })
}

/// The objects of a run: every tenth is a slow one, and what does not complete lacks its last.
fn asked(h: &Happens) -> Objects {
    let (n, slower) = h.objects;
    let mut times: Vec<Option<f64>> = (0..n)
        .map(|i| Some(h.time * if i % 10 == 9 { 2.0 * slower } else { 1.0 + i as f64 / 100.0 }))
        .collect();
    if !h.completes {
        times[n - 1] = None;
    }
    Objects::new(times)
}

/// True if a run did not get there: its transfer did not complete, or an object never came.
fn never(r: &Row) -> bool {
    r.objects.as_ref().map_or(r.completion_s.is_none(), |o| o.times_s.contains(&None))
}

/// The times of two runs: of their transfers, or the quantiles of the objects that both asked for.
fn times(a: &Row, b: &Row, q: f64) -> Option<(f64, f64)> {
    let (Some(x), Some(y)) = (&a.objects, &b.objects) else { return a.completion_s.zip(b.completion_s) };
    let both = x.times_s.len().min(y.times_s.len());
    let of = |o: &Objects| -> Option<f64> {
        let all: Option<Vec<f64>> = o.times_s.iter().copied().collect();
        quantile(&all?[..both], q)
    };
    of(x).zip(of(y))
}

/// The valid runs of a startup beside those of the baseline with the same number.
fn pairs<'a>(rows: &'a [Row], label: &str) -> Vec<(&'a Row, &'a Row)> {
    let valid = |r: &&Row| !r.caveats.iter().any(|c| c == INVALID);
    let of = |name: &str| rows.iter().filter(valid).filter(|r| r.startup == name).collect::<Vec<_>>();
    let base = of(&rows[0].startup);
    of(label).into_iter().filter_map(|r| Some((r, *base.iter().find(|b| b.run == r.run)?))).collect()
}

/// Of the pairs, those that a test is true of.
fn share(pairs: &[(&Row, &Row)], of: impl Fn(&Row, &Row) -> bool) -> f64 {
    pairs.iter().filter(|(a, b)| of(a, b)).count() as f64 / pairs.len().max(1) as f64
}

fn lost(r: &Row) -> f64 {
    r.startup_lost_packets.map_or(0.0, |n| n as f64)
}

fn more_lost(a: &Row, b: &Row) -> f64 {
    lost(a) - lost(b)
}

fn is_broken(rows: &[&Row]) -> bool {
    rows.iter().any(|r| r.caveats.iter().any(|c| c.starts_with(BROKEN)))
}

/// The share of the valid runs of a startup that show no loss since slow start had not ended.
fn hidden(rows: &[Row], label: &str) -> f64 {
    let own: Vec<&Row> =
        rows.iter().filter(|r| r.startup == label && !r.caveats.iter().any(|c| c == INVALID)).collect();
    let hides = |r: &&&Row| lost(r) <= 10.0 && r.class == Class::None;
    own.iter().filter(hides).count() as f64 / own.len().max(1) as f64
}

/// `3 of 7 runs`, as a sentence says it.
fn of_runs(some: usize, of: usize) -> String {
    if some == of { "every run".into() } else { format!("{some} of {of} runs") }
}

fn check(rows: &[Row]) -> Result<(), TestCaseError> {
    let d = Decision::new(rows, &Terms::default());
    let harmed = rows.iter().any(|r| r.got_percent.is_some());
    let text = verdict(&d);
    let base = &rows[0].startup;
    let chosen = recommended(&d);
    let valid =
        |s: &Standing| s.summary.rows.iter().filter(|r| !r.caveats.iter().any(|c| c == INVALID)).count();
    let fewest = d.standings.iter().map(valid).min().unwrap_or(0);
    // What decides is what most runs of the baseline have.
    let base_rows: Vec<&Row> = rows.iter().filter(|r| r.startup == *base).collect();
    prop_assert!(2 * base_rows.iter().filter(|r| d.by.of(r).is_some()).count() > base_rows.len());
    let first = text.split(": it ").next().unwrap_or_default();
    prop_assert_eq!(fewest < 6, first.contains("may be chance"), "{}", text);
    prop_assert!(d.by == Measure::ObjectMedian || d.by == Measure::Goodput || rows[0].objects.is_none());
    let unfinished = rows.iter().filter(|r| r.startup == *base && never(r)).count();
    let says = ["does not complete", "never completes"].iter().any(|says| first.contains(says));
    prop_assert_eq!(unfinished > 0, says, "{}", text);
    prop_assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
    prop_assert!(!text.contains(" 0 % less") && !text.contains(" 0 % more"), "{text}");
    // Of how many runs the baseline's time is.
    let timed = base_rows.iter().filter(|r| d.by.of(r).is_some()).count();
    let says = first.contains(&format!(" in {timed} of {} runs", base_rows.len()));
    prop_assert!(timed == base_rows.len() || says, "{text}");
    let of = |label: &str| rows.iter().filter(|r| r.startup == label).collect::<Vec<_>>();
    let whole: Vec<&Standing> = d.standings.iter().filter(|s| !is_broken(&of(&s.summary.label))).collect();
    // The front weighs losses only where some startup shows them.
    let shown = whole.iter().any(|s| hidden(rows, &s.summary.label) < 0.05);
    if let Some((_, front)) = text.split_once("trade-off") {
        let what = front.split(['.', ';']).next().unwrap_or_default();
        prop_assert_eq!(what.contains("losses"), shown, "{}", text);
        prop_assert!(whole.len() > 1, "{text}");
    }
    // A point in a number ends no sentence.
    let sentences: Vec<&str> = text.split("; ").flat_map(|part| part.split(". ")).collect();
    for s in &d.standings {
        let label = &s.summary.label;
        let pairs = pairs(rows, label);
        let broken = is_broken(&s.summary.rows);
        // What hides its losses is not better than what shows its own.
        let not_shown = d.price(&s.summary, Measure::StartupLost).is_some_and(|p| p.is_unseen());
        prop_assert!(
            !s.unbeaten || !not_shown && hidden(rows, label) < 0.05,
            "{label} hides its losses: {text}"
        );
        if hidden(rows, label) >= 0.05 && shown {
            for other in whole.iter().filter(|o| hidden(rows, &o.summary.label) < 0.05) {
                prop_assert!(!d.is_better(&s.summary, &other.summary), "{label} hides its losses: {text}");
            }
        }
        // Fewer than six pairs, or a broken rule: no star, no advice.
        if pairs.len() < 6 || broken {
            prop_assert!(!s.unbeaten && chosen != Some(label), "{label}: {text}");
        }
        prop_assert_eq!(s.rank.is_none(), broken);
        if broken && label != base {
            prop_assert!(text.contains(&format!("{label} broke a rule")), "{text}");
        }
        if label == base {
            continue;
        }
        let stalls = |a: &Row, b: &Row| never(a) && !never(b);
        let by_time = d.by != Measure::Goodput;
        // What does not complete where the baseline does is not advised, nor beats it.
        if by_time && share(&pairs, stalls) > 0.0 {
            prop_assert!(chosen != Some(label), "{label} stalls: {text}");
            prop_assert!(!d.is_better(&s.summary, &d.standings[0].summary), "{label} stalls");
            let gains = share(&pairs, |a, b| stalls(b, a)) > 0.0;
            prop_assert!(gains || is_broken(&base_rows) || !s.unbeaten, "{label} stalls: {text}");
        }
        // Every startup that did not complete is named, or counted.
        let unfinished = s.summary.rows.iter().filter(|r| never(r)).count();
        if unfinished > 0 && !broken {
            let says = if rows[0].objects.is_some() { "every object in " } else { "in " };
            prop_assert!(text.contains(&format!("{label} does not complete {says}")), "{text}");
        }
        // What may be beyond the margin is not even.
        for m in d.figures() {
            let margin = match m {
                Measure::StartupLost => 10.0,
                Measure::QueueDelay => 0.1,
                _ => 3.0,
            };
            if let Some(x) = d.against(&s.summary, m).filter(|x| x.change == Change::Even) {
                let reach = x.median.low.abs().max(x.median.high.abs());
                prop_assert!(reach <= margin + 1e-9, "{label}: {m:?} is called even: {x:?}");
            }
        }
        if by_time && text.contains(&format!("{label} takes as long")) {
            let both = pairs.iter().filter_map(|(a, b)| times(a, b, 0.5));
            let all: Vec<f64> = both.map(|(a, b)| 100.0 * (a / b - 1.0)).collect();
            let within = median(&all).is_some_and(|m| m.low >= -3.0 - 1e-9 && m.high <= 3.0 + 1e-9);
            prop_assert!(within, "{label} may take longer or less: {text}");
        }
        let verbs = [" takes ", ", takes ", " gets ", ", gets "];
        let takes = |s: &&&str| verbs.iter().any(|t| s.contains(&format!("{label}{t}")));
        let gains = pairs.iter().filter(|(a, b)| by_time && stalls(b, a)).count();
        // What stalls loses little: such runs of the baseline show no price.
        let pairs: Vec<(&Row, &Row)> = pairs.into_iter().filter(|(a, b)| !by_time || !stalls(b, a)).collect();
        // As quick, and it loses less, at no price: that is an answer.
        let free = |a: &Row, b: &Row| {
            let waits = a.peak_queue_delay_s.zip(b.peak_queue_delay_s).is_some_and(|(a, b)| a <= b);
            let quick = times(a, b, 0.5).is_some_and(|(a, b)| (a / b - 1.0).abs() < 0.03);
            let tail = times(a, b, 0.95).is_some_and(|(a, b)| a <= b);
            quick
                && (tail || a.objects.is_none())
                && waits
                && more_lost(a, b) < -10.0
                && a.class != Class::None
        };
        if pairs.len() >= 6 && gains == 0 && pairs.iter().all(|(a, b)| free(a, b)) && !harmed && !broken {
            prop_assert!(!text.contains("Keep ") && !text.contains("The cheapest"), "{label}: {text}");
        }
        for sentence in sentences.iter().filter(takes) {
            if by_time && gains > 0 && sentence.contains(" less") {
                prop_assert!(sentence.contains(&format!("in which {base} does not")), "{label}: {text}");
            }
            if sentence.contains("within the margins of") {
                let lost = share(&pairs, |a, b| more_lost(a, b) > 10.0);
                let unseen = share(&pairs, |a, b| more_lost(a, b) <= 10.0 && a.class == Class::None);
                prop_assert!(lost + unseen < 0.05, "{label} loses or does not show it: {text}");
                let margin_s = pairs[0].1.base_rtt_s;
                let waits = share(&pairs, |a, b| {
                    // What was not observed may have been a wait.
                    let both = a.peak_queue_delay_s.zip(b.peak_queue_delay_s);
                    both.is_none_or(|(a, b)| a - b > margin_s + 1e-9)
                });
                prop_assert!(waits < 0.05, "{label} waits: {text}");
                if d.by == Measure::ObjectMedian {
                    let both: Vec<(f64, f64)> = pairs.iter().filter_map(|(a, b)| times(a, b, 0.95)).collect();
                    let pays = both.iter().filter(|(a, b)| a - b > margin_s + 1e-9).count();
                    prop_assert!(pays * 20 < both.len(), "{label} has slow objects: {text}");
                }
                let difference = d.against(&s.summary, Measure::StartupLost);
                prop_assert!(difference.is_none_or(|x| x.median.high <= 10.0), "the interval: {text}");
                if harmed {
                    let both: Vec<(f64, f64)> =
                        pairs.iter().filter_map(|(a, b)| a.got_percent.zip(b.got_percent)).collect();
                    let pays = both.iter().filter(|(a, b)| b - a > 3.0).count();
                    prop_assert!(pays * 20 < both.len(), "{label} harms: {text}");
                }
            }
            // Said of the objects that both asked for.
            let slower = "takes longer at the 95th percentile in ";
            if let Some(at) = sentence.find(slower) {
                let both: Vec<(f64, f64)> = pairs.iter().filter_map(|(a, b)| times(a, b, 0.95)).collect();
                let n = both.iter().filter(|(a, b)| a - b > 0.1).count();
                let (all, counts) = (pairs.len() + gains, &sentence[at + slower.len()..]);
                let of = match of_runs(n, both.len()) {
                    of if both.len() == all => of,
                    of if n == both.len() => format!("{of} in which both complete"),
                    _ => format!("{n} of the {} runs in which both complete", both.len()),
                };
                prop_assert!(counts.starts_with(&of), "{label} {of}: {text}");
            }
            let more = sentence.contains("loses more packets in ");
            let lost = if more { "loses more packets in " } else { "loses packets in " };
            if let Some(at) = sentence.find(lost) {
                let n = pairs.iter().filter(|(a, b)| more_lost(a, b) > 10.0).count();
                let of = match of_runs(n, pairs.len()) {
                    of if gains == 0 => of,
                    of if n == pairs.len() => format!("{of} in which both complete"),
                    _ => format!("{n} of the {} runs in which both complete", pairs.len()),
                };
                let most = pairs.iter().map(|(a, b)| more_lost(a, b)).fold(0.0, f64::max);
                let says = format!("{lost}{of}, up to {}", number(most));
                prop_assert!(sentence[at..].starts_with(&says), "{says}: {text}");
                let unseen = |a: &Row, b: &Row| more_lost(a, b) <= 10.0 && a.class == Class::None;
                let unseen = share(&pairs, unseen) > 0.0;
                let rest = sentence[at + says.len()..].trim_start_matches(" more");
                prop_assert_eq!(unseen, rest.starts_with(" (not shown in "), "{}", text);
            }
        }
        // A cell shows what its median hides.
        let cell = s.summary.lost(|m| number(m.mid));
        let lossy = s.summary.rows.iter().filter(|r| lost(r) > 10.0).count();
        let ended = s.summary.rows.iter().filter(|r| r.class != Class::None).count();
        if cell == "0" {
            prop_assert!(
                lossy == 0 && (s.summary.rows.len() - ended) * 20 < s.summary.rows.len(),
                "{label}: {cell}"
            );
        }
    }
    if d.runs() < 6 && rows.iter().all(|r| r.caveats.is_empty()) {
        prop_assert!(text.contains("no verdict") && !text.contains("trade-off"), "{text}");
    }
    if text.contains("valid runs or more") {
        prop_assert!(fewest < 6 && whole.len() > 1, "{text}");
    }
    Ok(())
}

/// What the verdict over several paths says of each startup, against the rows.
fn check_paths(paths: &[Vec<Row>]) -> Result<(), TestCaseError> {
    let all: Vec<Decision> = paths.iter().map(|rows| Decision::new(rows, &Terms::default())).collect();
    let text = paths::verdict(&all);
    let labels = paths::labels(&all);
    let n = paths.len();
    let on = |k: usize| match k {
        0 => "nowhere".to_string(),
        k if k == n && n == 2 => "on both paths".to_string(),
        k if k == n => format!("on all {n} paths"),
        k => format!("on {k} of {n} paths"),
    };
    let mut behind = 0;
    for label in &labels {
        let own: Vec<Vec<&Row>> =
            paths.iter().map(|rows| rows.iter().filter(|r| r.startup == *label).collect()).collect();
        let broken = own.iter().filter(|rows| is_broken(rows)).count();
        let unfinished: usize = own.iter().flatten().filter(|r| never(r)).count();
        let objects = own.iter().flatten().any(|r| r.objects.is_some());
        let every = if objects { " every object" } else { "" };
        // What broke a rule or did not complete is named, or counted.
        if broken + unfinished > 0 && behind < 4 {
            let of_all = own.iter().map(Vec::len).sum();
            let says = match broken {
                0 if unfinished == of_all => format!("{label} does not complete{every} in any run"),
                0 => format!("{label} does not complete{every} in {}", of_runs(unfinished, of_all)),
                k => format!("{label} broke a rule {}", on(k)),
            };
            prop_assert!(text.contains(&says), "{says}: {text}");
        }
        behind += usize::from(broken + unfinished > 0);
        let heads = [format!("{label} does best"), format!("{label} gains most")];
        let Some(at) = heads.iter().find_map(|h| text.find(h)) else { continue };
        prop_assert!(broken == 0, "{label} is praised: {text}");
        for (rows, d) in paths.iter().zip(&all).filter(|(_, d)| d.by != Measure::Goodput) {
            let of = pairs(rows, label);
            let later = |a: &Row, b: &Row| never(a) && !never(b);
            let stalls = share(&of, later) > 0.0 && share(&of, |a, b| later(b, a)) == 0.0;
            prop_assert!(!stalls, "{label} stalls by {:?}: {text}", d.by);
        }
        let sentence = text[at..].split('.').next().unwrap_or_default();
        for (claim, hidden, pays) in [
            (
                "loses more packets ",
                "its losses are not shown",
                &(|a: &Row, b: &Row| more_lost(a, b) > 10.0) as &dyn Fn(&Row, &Row) -> bool,
            ),
            ("waits longer in the queue ", "its wait in the queue is not shown", &|a: &Row, b: &Row| {
                a.peak_queue_delay_s.zip(b.peak_queue_delay_s).is_some_and(|(a, b)| a - b > 0.1 + 1e-9)
            }),
        ] {
            let unseen = |a: &Row, b: &Row| {
                let losses = claim.starts_with("loses");
                if losses {
                    a.class == Class::None
                } else {
                    a.peak_queue_delay_s.is_none() || b.peak_queue_delay_s.is_none()
                }
            };
            let (mut paid, mut blind) = (0, 0);
            for (rows, d) in paths.iter().zip(&all) {
                let by_time = d.by != Measure::Goodput;
                let both: Vec<_> = pairs(rows, label)
                    .into_iter()
                    .filter(|(a, b)| !by_time || never(a) || !never(b))
                    .collect();
                let is = share(&both, pays) >= 0.05;
                paid += usize::from(is);
                let some = share(&both, |a, b| pays(a, b) || unseen(a, b)) >= 0.05;
                blind += usize::from(!is && (some || both.is_empty()));
            }
            let says = match (paid, blind) {
                (0, 1..) => hidden.to_string(),
                (paid, 0) => format!("{claim}{}", on(paid)),
                (paid, _) => format!("{claim}{} (not shown on ", on(paid)),
            };
            prop_assert!(sentence.contains(&says), "{says}: {text}");
        }
        // What is slower nowhere is certain not to be: no path is left open.
        if sentence.contains("slower nowhere") {
            for d in &all {
                let s = d.standings.iter().find(|s| s.summary.label == *label).expect("a startup");
                let time = d.against(&s.summary, d.by).map(|x| x.change);
                prop_assert!(
                    matches!(time, Some(Change::Better | Change::Even)),
                    "{label}: {time:?}: {text}"
                );
            }
        }
    }
    let base_broken = paths
        .iter()
        .any(|rows| is_broken(&rows.iter().filter(|r| r.startup == rows[0].startup).collect::<Vec<_>>()));
    if labels.len() < 2 || base_broken {
        prop_assert!(!text.contains("Keep ") && !text.contains("does best"), "{text}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_sentence_contradicts_a_row(rows in study()) {
        check(&rows)?;
    }

    #[test]
    fn no_sentence_over_paths_contradicts_a_row(paths in prop::collection::vec(study(), 2..4)) {
        check_paths(&paths)?;
    }
}
