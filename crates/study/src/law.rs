//! One law over random rows: no sentence of a verdict and no mark of a table says what a row contradicts.
//!
//! What the rows say is counted here again, from the rows alone.

use crate::decision::{Decision, Figure, Harm, Standing, Terms};
use crate::measured::{BROKEN, INVALID};
use crate::record::{Class, Row};
use crate::sample::rows;
use crate::summary::Measure;
use crate::verdict::{recommended, verdict};
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
}

/// A startup: how often each thing happens is drawn first, so that rare and common mixtures both occur.
fn startup(runs: usize) -> impl Strategy<Value = (Vec<Happens>, bool)> {
    let share = prop_oneof![Just(0.0), Just(0.04), Just(0.1), Just(0.4), Just(1.0)];
    let rare = prop_oneof![6 => Just(0.0), 1 => Just(0.1), 1 => Just(1.0)];
    let odd = (rare.clone(), rare.clone(), rare.clone(), rare);
    (share.clone(), share, odd, 0.5_f64..1.5, prop::bool::weighted(0.05)).prop_flat_map(
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
            );
            let happens = move |(l, lost, w, (queue, observed), completes, ended, valid, noise): (
                bool,
                u64,
                bool,
                (u32, bool),
                bool,
                bool,
                bool,
                f64,
            )| Happens {
                time: 10.0 * speed * noise,
                lost: if l { lost } else { 0 },
                queue_ms: observed.then_some(if w { queue } else { 0 }),
                got: if w { f64::from(queue % 100) } else { 90.0 },
                completes,
                ended,
                valid,
            };
            (prop::collection::vec(run.prop_map(happens), runs), Just(broken))
        },
    )
}

fn study() -> impl Strategy<Value = (Vec<Row>, Vec<Harm>)> {
    let runs = prop_oneof![1 => 1_usize..6, 4 => 6_usize..13, 4 => 20_usize..41];
    let all = runs.prop_flat_map(|runs| (prop::collection::vec(startup(runs), 2..5), any::<bool>()));
    all.prop_map(|(startups, beside)| {
        let (mut all, mut harm) = (Vec::new(), Vec::new());
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
                if !h.ended {
                    (r.exit, r.class) = (None, Class::None);
                }
                r.caveats.extend((!h.valid).then(|| INVALID.to_string()));
                r.caveats.extend((broken && i > 0).then(|| format!("{BROKEN}: it did")));
                if beside && r.run < 10 {
                    harm.push(Harm { label: label.into(), run: r.run, got_percent: h.got });
                }
            }
            all.extend(mine);
        }
        (all, harm)
    })
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

fn check(rows: &[Row], harm: &[Harm]) -> Result<(), TestCaseError> {
    let d = Decision::new(rows, &Terms { harm, ..Terms::default() });
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
    let unfinished = rows.iter().filter(|r| r.startup == *base && r.completion_s.is_none()).count();
    let says = ["does not complete in", "never completes"].iter().any(|says| first.contains(says));
    prop_assert_eq!(unfinished > 0, says, "{}", text);
    prop_assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
    let sentences: Vec<&str> = text.split(['.', ';']).map(str::trim).collect();
    for s in &d.standings {
        let label = &s.summary.label;
        let pairs = pairs(rows, label);
        let broken = s.summary.rows.iter().any(|r| r.caveats.iter().any(|c| c.starts_with(BROKEN)));
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
        let stalls = |a: &Row, b: &Row| a.completion_s.is_none() && b.completion_s.is_some();
        let by_time = d.by != Measure::Goodput;
        // What does not complete where the baseline does is not advised, nor beats it.
        if by_time && share(&pairs, stalls) > 0.0 {
            prop_assert!(chosen != Some(label), "{label} stalls: {text}");
            prop_assert!(!d.is_better(&s.summary, &d.standings[0].summary), "{label} stalls");
            let gains = share(&pairs, |a, b| stalls(b, a)) > 0.0;
            prop_assert!(gains || !s.unbeaten, "{label} stalls: {text}");
        }
        // Every startup that did not complete is named, or counted.
        let unfinished = s.summary.rows.iter().filter(|r| r.completion_s.is_none()).count();
        if unfinished > 0 && !broken {
            prop_assert!(text.contains(&format!("{label} does not complete in ")), "{text}");
        }
        let verbs = [" takes ", ", takes ", " gets ", ", gets "];
        let takes = |s: &&&str| verbs.iter().any(|t| s.contains(&format!("{label}{t}")));
        for sentence in sentences.iter().filter(takes) {
            let gains = pairs.iter().filter(|(a, b)| stalls(b, a)).count();
            if by_time && gains > 0 && sentence.contains(" less") {
                prop_assert!(sentence.contains(&format!("in which {base} does not")), "{label}: {text}");
            }
            if sentence.contains("costs nothing") {
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
                let difference = d.against(&s.summary, Figure::Of(Measure::StartupLost));
                prop_assert!(difference.is_none_or(|x| x.median.high <= 10.0), "the interval: {text}");
                if !harm.is_empty() {
                    let got = |name: &str, run: u32| {
                        harm.iter().find(|h| h.label == name && h.run == run).map(|h| h.got_percent)
                    };
                    let both: Vec<(f64, f64)> =
                        (0..10).filter_map(|run| Some((got(label, run)?, got(base, run)?))).collect();
                    let pays = both.iter().filter(|(a, b)| b - a > 3.0).count();
                    prop_assert!(pays * 20 < both.len(), "{label} harms: {text}");
                }
            }
            let more = sentence.contains("loses more packets in ");
            let lost = if more { "loses more packets in " } else { "loses packets in " };
            if let Some(at) = sentence.find(lost) {
                let n = pairs.iter().filter(|(a, b)| more_lost(a, b) > 10.0).count();
                let of = if n == pairs.len() {
                    "every run".into()
                } else {
                    format!("{n} of {} runs", pairs.len())
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
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_sentence_contradicts_a_row((rows, harm) in study()) {
        check(&rows, &harm)?;
    }
}
