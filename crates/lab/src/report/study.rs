//! The words of a page and a terminal for a study: its title, its path, its caveats, and the run that is drawn.

use super::data::{Curve, Data, Kind, SAMPLES, samples_of_each};
use super::summary::label;
use super::{Page, Series, link, verdict, words};
use crate::engine::Sampling;
use crate::record::{Row, Trace};
use crate::run::Job;
use crate::scenario::Study;
use crate::split;
use slowstart::units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The first line: path, transfer, runs and stack.
pub fn title(study: &Study) -> String {
    let facts = study.path.facts();
    let what = match study.size {
        Some(bytes) => words::bytes(bytes),
        None => format!("{:.0} s", study.duration.as_secs_f64()),
    };
    let (name, profile) = (&study.path.name, &study.profile_label);
    let runs = if study.runs == 1 { "1 run".to_string() } else { format!("{} runs", study.runs) };
    if study.path.is_ensemble() {
        let laws = study.path.distributions();
        let laws: Vec<String> =
            laws.iter().map(|(field, law)| format!("{} {law}", split::key(field))).collect();
        let fixed = study.path.fixed().map_or(String::new(), |f| format!(" (one fixed path: {f})"));
        // The name of an inline path has them all.
        let drawn = if name.contains('=') { "its path".to_string() } else { laws.join(", ") };
        return format!(
            "{name}: an ensemble, each run draws {drawn}{fixed}; transfers of {what}, {runs}, {profile}"
        );
    }
    let jitter = study.path.default_jitter().map_or(String::new(), |j| {
        format!(", ACK jitter {} us (ack_jitter=0: none)", words::number(j.as_secs_f64() * 1e6))
    });
    format!(
        "{name}: {}, {:.1} ms, BDP {}{jitter}; {what}, {runs}, {profile}",
        words::rate(facts.rate.0 as f64),
        facts.base_rtt.as_secs_f64() * 1e3,
        words::bytes(facts.bdp.0),
    )
}

/// The title, the description of the path, and its sources.
pub fn about(study: &Study) -> String {
    let mut text = format!("{}. {}", title(study), study.path.about);
    if !study.path.sources.is_empty() {
        let stop = if text.ends_with('.') { "" } else { "." };
        text = format!("{text}{stop} Sources: {}.", study.path.sources.join("; "));
    }
    text
}

/// Each caveat once for the startups that have it in the same number of runs.
pub fn caveats(rows: &[Row]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for r in rows {
        for c in &r.caveats {
            *counts.entry((c, label(r))).or_default() += 1;
        }
    }
    let mut all: BTreeMap<(&str, usize), Vec<String>> = BTreeMap::new();
    for ((caveat, startup), n) in counts {
        all.entry((caveat, n)).or_default().push(startup);
    }
    let runs = |n: usize| if n == 1 { "1 run".to_string() } else { format!("{n} runs") };
    all.into_iter().map(|((c, n), who)| format!("{}: {c} (in {} each)", who.join(", "), runs(n))).collect()
}

/// The runs of one startup from the shortest time to completion to the longest; those that did not complete come last,
/// those with more goodput first.
pub fn by_completion(rows: &[Row]) -> Vec<&Row> {
    let mut order: Vec<&Row> = rows.iter().collect();
    order.sort_by(|a, b| {
        let key = |r: &Row| r.completion_s.unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b)).then(b.goodput_bps.cmp(&a.goodput_bps)).then(a.run.cmp(&b.run))
    });
    order
}

/// The run with the median time to completion; of an even number, the faster of the two. `rows` has at least one.
pub fn middle(rows: &[Row]) -> &Row {
    by_completion(rows)[(rows.len() - 1) / 2]
}

/// Samples of a run that is drawn, over the longest time it may take.
const OVER_DURATION: f64 = 4000.0;
/// Runs of a startup with samples: those with the best, the median and the worst completion, and as many of the first.
const SAMPLED: usize = 10;

/// The interval of the samples of a run.
pub fn sampling(row: &Row) -> Sampling {
    Sampling::Every(Span(((row.duration_s / OVER_DURATION * 1e9) as u64).clamp(50_000, 100_000_000)))
}

/// A run of which a page has samples.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// The index of its row.
    pub index: usize,
    /// The run.
    pub job: Job,
    /// The most samples of it: more of the median run, which is drawn first.
    pub samples: usize,
}

/// The runs of which a page has samples: the same seeds for all startups where it can. `rows` are those of
/// [`Study::jobs`] from the first on.
pub fn sampled(study: &Study, rows: &[Row]) -> Vec<Sampled> {
    let runs = study.runs as usize;
    let each = |(contender, rows): (usize, &[Row])| {
        let order = by_completion(rows);
        let ends = [order[0], middle(rows), order[order.len() - 1]].map(|r| r.run);
        let mut wanted: BTreeSet<u32> = ends.into();
        let others = rows.iter().map(|r| r.run).filter(|r| !ends.contains(r)).take(SAMPLED - wanted.len());
        wanted.extend(others.collect::<Vec<u32>>());
        let middle = ends[1];
        wanted
            .into_iter()
            .map(|run| {
                let most = samples_of_each(study.contenders.len() * runs.min(SAMPLED));
                let samples = if run == middle { (3 * most).min(SAMPLES) } else { most };
                Sampled { index: contender * runs + run as usize, job: Job { contender, run }, samples }
            })
            .collect::<Vec<Sampled>>()
    };
    rows.chunks(runs).enumerate().flat_map(each).collect()
}

/// The run of a startup that is drawn without a script.
#[derive(Copy, Clone, Debug)]
pub struct Drawn<'a> {
    /// The label of the startup.
    pub label: &'a str,
    /// Its row.
    pub row: &'a Row,
    /// Its samples and events.
    pub trace: &'a Trace,
}

/// The samples of a run for [`page`], at most `samples`; `index` is that of its row.
pub fn curve(study: &Study, index: usize, row: &Row, trace: &Trace, samples: usize) -> Curve {
    Curve::new(index, row, trace, Span(study.start().0).as_secs_f64(), samples)
}

/// The page of a study. `command` is the command line that makes it, `base` the address of the playground it links to.
pub fn page(
    study: &Study,
    rows: &[Row],
    drawn: &[Drawn],
    curves: Vec<Curve>,
    command: &str,
    base: &str,
) -> String {
    let mss = u64::from(study.profile.mss);
    let start_s = Span(study.start().0).as_secs_f64();
    let series: Vec<Series> = drawn
        .iter()
        .map(|d| Series { label: d.label, row: d.row, samples: &d.trace.samples, start_s, mss })
        .collect();
    let mut data = Data::new(Kind::Study, rows);
    data.curves = curves;
    super::html(&Page {
        title: &format!("slowstart: {}", study.path.name),
        about: &about(study),
        verdict: &verdict(rows),
        command,
        playground: link::playground(base, study).as_deref(),
        rows,
        opinions: None,
        series: &series,
        data: Some(&data),
        caveats: &caveats(rows),
    })
}
