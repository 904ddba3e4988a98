//! The words of a page and a terminal for a study: its title, its path, its caveats, and the run that is
//! drawn.

use super::data::{Curve, Data, First, SAMPLES, samples_of_each};
use super::{Page, Series, link, overlay};
use slowstart::units::Span;
use slowstart_sim::engine::Sampling;
use slowstart_sim::path::PathSpec;
use slowstart_study::decision::{Decision, Terms};
use slowstart_study::record::{Row, Trace};
use slowstart_study::run::Job;
use slowstart_study::scenario::Study;
use slowstart_study::summary::label;
use slowstart_study::verdict::verdict;
use slowstart_study::words;
use std::collections::{BTreeMap, BTreeSet};

/// The first line: what decides on the path (rate, RTT, the queue in BDP, slots of ACKs), transfer, runs and
/// stack. Of an ensemble, from the least to the greatest value that its runs draw.
pub fn title(study: &Study) -> String {
    let what = match study.size {
        Some(bytes) => words::bytes(bytes),
        None => format!("{:.0} s", study.duration.as_secs_f64()),
    };
    let seeds: Vec<u64> = (0..study.runs.min(MOST_DRAWN)).map(|run| study.run_seed(run)).collect();
    let Shown { rate, rtt, bdp, queue } = shown(&study.path, &seeds);
    let queue = queue.map_or("a queue without limit".to_string(), |q| format!("a queue of {q}"));
    let slots = match study.path.ack_slot() {
        Some(slot) => format!(", ACKs in slots of {}", words::delay(slot.as_secs_f64() * 1e3)),
        None => String::new(),
    };
    let runs = match (study.runs, study.path.is_ensemble()) {
        (1, _) => "1 run".to_string(),
        (n, false) => format!("{n} runs"),
        (n, true) => format!("{n} runs, each over a path of its own"),
    };
    format!(
        "{}: {rate}, {rtt}, BDP {bdp}, {queue}{slots}; {what}, {runs}, {}",
        study.path.name, study.profile_label
    )
}

/// What decides on a path, as text with units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The mean rate on the wire.
    pub rate: String,
    /// The least round-trip time.
    pub rtt: String,
    /// Payload that fills the path.
    pub bdp: String,
    /// What the queue holds, in BDP; `None` if it has no limit.
    pub queue: Option<String>,
}

/// What decides on a path. Of an ensemble, from the least to the greatest value that these seeds, at least
/// one, draw.
pub fn shown(path: &PathSpec, seeds: &[u64]) -> Shown {
    let different = if path.is_ensemble() { seeds.len() } else { 1 };
    let drawn: Vec<_> = seeds[..different].iter().map(|seed| path.draw(*seed)).collect();
    let span = |of: &dyn Fn(&PathSpec) -> f64, text: &dyn Fn(f64) -> String| {
        let values: Vec<f64> = drawn.iter().map(|p| of(p)).collect();
        let [low, high] = [f64::min, f64::max].map(|f| text(values.iter().copied().fold(values[0], f)));
        let unit = low.find(' ').map_or("", |at| &low[at..]);
        let short = if high.ends_with(unit) { low.trim_end_matches(unit) } else { &low };
        if low == high { low } else { format!("{short}..{high}") }
    };
    let rate = span(&|p| p.facts().rate.0 as f64, &words::rate);
    let rtt = span(&|p| p.facts().base_rtt.as_secs_f64() * 1e3, &words::delay);
    let bdp = span(&|p| p.facts().bdp.0 as f64, &|b| words::bytes(b as u64));
    let bdps =
        |p: &PathSpec| p.most_held().0.saturating_sub(p.facts().bdp.0) as f64 / p.facts().bdp.0.max(1) as f64;
    let queue = path.facts().buffer.map(|_| span(&bdps, &|x| format!("{} BDP", words::two_digits(x))));
    Shown { rate, rtt, bdp, queue }
}

/// Most runs whose paths are drawn for a title.
const MOST_DRAWN: u32 = 100;

/// The title, the description of the path, and its sources.
pub fn about(study: &Study) -> String {
    let mut text = format!("{}. {}", title(study), study.path.about);
    if !study.path.sources.is_empty() {
        let stop = if text.ends_with('.') { "" } else { "." };
        text = format!("{text}{stop} Sources: {}.", study.path.sources.join("; "));
    }
    text
}

/// A caveat, and the startups that have it, each with its runs.
type Noted<'a> = (&'a str, Vec<(String, BTreeSet<u32>)>);

/// Each caveat of `rows` once, and the number of runs. What more runs have comes first.
fn noted(rows: &[Row]) -> (Vec<Noted<'_>>, usize) {
    let mut all: BTreeMap<&str, Vec<(String, BTreeSet<u32>)>> = BTreeMap::new();
    for r in rows {
        for c in &r.caveats {
            let who = all.entry(c).or_default();
            let name = label(r);
            match who.iter_mut().find(|(l, _)| *l == name) {
                Some((_, runs)) => _ = runs.insert(r.run),
                None => who.push((name, [r.run].into())),
            }
        }
    }
    for who in all.values_mut() {
        who.sort_by_key(|(_, r)| std::cmp::Reverse(r.len()));
    }
    let runs: BTreeSet<u32> = rows.iter().map(|r| r.run).collect();
    (all.into_iter().collect(), runs.len())
}

/// True of a caveat that every startup has in the same runs: it is about the path.
fn is_of_path((_, who): &Noted, rows: &[Row]) -> bool {
    let labels: BTreeSet<String> = rows.iter().map(label).collect();
    who.len() == labels.len() && who.iter().all(|(_, r)| *r == who[0].1)
}

/// What to say of runs whose ends use ECN, where they show nothing of marks.
fn unmarked(rows: &[Row]) -> Option<&'static str> {
    let none = |r: &Row| r.marks.as_ref().is_some_and(|m| m.packets == 0);
    (!rows.is_empty() && rows.iter().all(none))
        .then_some("the ends use ECN, and no packet was marked in any run")
}

/// Each caveat once: how many runs of which startups have it. One that is about the path names none.
pub fn caveats(rows: &[Row]) -> Vec<String> {
    const NAMED: usize = 6;
    let (all, runs) = noted(rows);
    let of = |n: usize| if n == runs { "every run".to_string() } else { format!("{n} of {runs} runs") };
    let startups = rows.iter().map(label).collect::<BTreeSet<_>>().len();
    let sentence = |noted: &Noted| {
        let (caveat, who) = noted;
        // The sender sends the first packet of the handshake again after a second, whether it was lost or
        // late.
        let caveat = match *caveat {
            "a packet of the handshake was sent again" => {
                "the handshake was repeated: its round trip took more than a second, or a packet of it was lost"
            }
            other => other.trim_end_matches('.'),
        };
        if is_of_path(noted, rows) {
            return format!("in {}, {caveat}", of(who[0].1.len()));
        }
        if who.len() > NAMED {
            return format!(
                "{caveat}: {} of {startups} startups, at most in {}",
                who.len(),
                of(who[0].1.len())
            );
        }
        let names: Vec<String> = who.iter().map(|(l, r)| format!("{l} in {}", of(r.len()))).collect();
        format!("{caveat}: {}", words::list(&names))
    };
    all.iter().map(sentence).chain(unmarked(rows).map(str::to_string)).collect()
}

/// Returns the caveats in one line of a few words each, for a narrow terminal; `None` if there are none.
pub fn caveats_in_brief(rows: &[Row]) -> Option<String> {
    const NAMED: usize = 2;
    let (all, runs) = noted(rows);
    let words = |noted: &Noted| {
        let (caveat, who) = noted;
        let caveat = match *caveat {
            "a packet of the handshake was sent again" => "handshake repeated",
            "the delay of the path itself had risen when the startup left" => {
                "the path's own delay had risen at the exit"
            }
            "the peer's receive window held the sender back" => "held by the receive window",
            "the send buffer held the sender back" => "held by the send buffer",
            "the transfer ended before the startup did" => "transfer over before the startup",
            other => other.trim_end_matches('.'),
        };
        let most = who[0].1.len();
        if is_of_path(noted, rows) {
            return format!("{caveat}: {most}/{runs} runs");
        }
        if who.len() > NAMED {
            return format!("{caveat}: {} startups, in up to {most}/{runs} runs", who.len());
        }
        let names: Vec<String> = who.iter().map(|(l, r)| format!("{l} {}/{runs}", r.len())).collect();
        format!("{caveat}: {}", names.join(", "))
    };
    let notes: Vec<String> = all.iter().map(words).chain(unmarked(rows).map(str::to_string)).collect();
    (!notes.is_empty()).then(|| format!("Notes: {}.", notes.join("; ")))
}

/// The runs of one startup from the shortest time to completion to the longest; those that did not complete
/// come last, those with more goodput first.
pub fn by_completion(rows: &[Row]) -> Vec<&Row> {
    let mut order: Vec<&Row> = rows.iter().collect();
    order.sort_by(|a, b| {
        let key = |r: &Row| r.completion_s.unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b)).then(b.goodput_bps.cmp(&a.goodput_bps)).then(a.run.cmp(&b.run))
    });
    order
}

/// The run with the median time to completion; of an even number, the faster of the two. `rows` has at least
/// one.
pub fn middle(rows: &[Row]) -> &Row {
    by_completion(rows)[(rows.len() - 1) / 2]
}

/// The run that is drawn of every startup, so that all that is drawn is over the same path: that with the
/// baseline's median time to completion. `rows` has at least one.
pub fn shown_run(rows: &[Row], terms: &Terms) -> u32 {
    let decision = Decision::new(rows, terms);
    let base: Vec<Row> = decision.standings[0].summary.rows.iter().map(|r| (*r).clone()).collect();
    middle(&base).run
}

/// Samples of a run that is drawn, over the longest time it may take.
const OVER_DURATION: f64 = 4000.0;
/// Runs of a startup with samples.
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
    /// The run that is drawn.
    pub job: Job,
    /// The most samples of it: more of the run that is drawn first.
    pub samples: usize,
}

/// The runs of which a page has samples, the same of every startup: the run that is drawn first, and the
/// first others. `rows` are those of [`Study::jobs`] from the first on.
pub fn sampled(study: &Study, rows: &[Row], terms: &Terms) -> Vec<Sampled> {
    if rows.is_empty() {
        return Vec::new();
    }
    let runs = study.runs as usize;
    let shown = shown_run(rows, terms);
    let others = (0..study.runs).filter(|run| *run != shown).take(SAMPLED - 1);
    let wanted: BTreeSet<u32> = others.chain([shown]).collect();
    let most = samples_of_each(study.contenders.len() * wanted.len());
    rows.iter()
        .enumerate()
        .filter(|(_, row)| wanted.contains(&row.run))
        .map(|(index, row)| Sampled {
            index,
            job: Job { contender: index / runs, run: row.run },
            samples: if row.run == shown { (3 * most).min(SAMPLES) } else { most },
        })
        .collect()
}

/// The run of a startup that is drawn without a script.
#[derive(Copy, Clone, Debug)]
pub struct Drawn<'a> {
    /// The label of the startup.
    pub label: &'a str,
    /// The row of that run.
    pub row: &'a Row,
    /// Its samples and events.
    pub trace: &'a Trace,
}

/// The samples of a run for [`page`], at most `samples`; `index` is that of its row.
pub fn curve(study: &Study, index: usize, row: &Row, trace: &Trace, samples: usize) -> Curve {
    Curve::new(index, row.flow, trace, Span(study.start().0).as_secs_f64(), samples)
}

fn series<'a>(study: &Study, drawn: &[Drawn<'a>]) -> Vec<Series<'a>> {
    let mss = u64::from(study.profile.mss);
    let start_s = Span(study.start().0).as_secs_f64();
    drawn
        .iter()
        .map(|d| {
            let own = d.row.settings.get("mss").and_then(|m| m.parse().ok());
            Series { label: d.label, row: d.row, samples: &d.trace.samples, start_s, mss: own.unwrap_or(mss) }
        })
        .collect()
}

/// The picture of a study as a file ([`super::overlay::picture`]): curves of the run that [`shown_run`]
/// names, and the medians of `rows`.
pub fn picture(study: &Study, rows: &[Row], drawn: &[Drawn], terms: &Terms, command: &str) -> Option<String> {
    let decision = Decision::new(rows, terms);
    let full = drawn.first().and_then(|d| full_bdps(study, d.row));
    overlay::picture(&decision, &series(study, drawn), full, command)
}

/// What the path of a run and its queue hold before a packet is dropped, in BDP; `None` if the queue has no
/// limit.
pub fn full_bdps(study: &Study, row: &Row) -> Option<f64> {
    let path = study.path.draw(row.seed);
    let bdp = path.facts().bdp.0.max(1) as f64;
    path.facts().buffer.map(|_| path.most_held().0 as f64 / bdp)
}

/// The page of a study. `command` is the command line that makes it, `base` the address of the playground it
/// links to.
pub fn page(
    study: &Study,
    rows: &[Row],
    drawn: &[Drawn],
    curves: Vec<Curve>,
    command: &str,
    base: &str,
    terms: &Terms,
) -> String {
    let decision = Decision::new(rows, terms);
    let series = series(study, drawn);
    let mut data = Data::new(rows);
    data.curves = curves;
    data.first = drawn.first().map(|d| First {
        run: Some(d.row.run),
        labels: overlay::labels(&decision).into_iter().map(String::from).collect(),
    });
    super::html(&Page {
        title: &format!("slowstart: {}", study.path.name),
        about: &about(study),
        verdict: &verdict(&decision),
        decision: &decision,
        command,
        playground: link::playground(base, study).as_deref(),
        rows,
        full_bdps: drawn.first().and_then(|d| full_bdps(study, d.row)),
        series: &series,
        data: Some(&data),
        caveats: &caveats(rows),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::scenario::StudyText;

    /// Runs with ECN and no mark say nothing of marks, and the note says so.
    #[test]
    fn no_mark_where_the_ends_use_ecn_is_told() {
        let notes = |queue: &str, ecn: &str| {
            let text = StudyText {
                path: format!("rate=20Mbit rtt=40ms queue=\"{queue}\""),
                startups: vec!["standard".into()],
                size: Some("3MB".into()),
                runs: Some(1),
                set: [("ecn".to_string(), ecn.to_string())].into(),
                ..StudyText::default()
            };
            let study = Study::check(&text, None).expect("a study");
            let row = study.run(Job { contender: 0, run: 0 }, Sampling::Off, false).row;
            let rows = [row];
            (caveats(&rows).join("; "), caveats_in_brief(&rows).unwrap_or_default())
        };
        let none = "the ends use ECN, and no packet was marked in any run";
        let (whole, brief) = notes("red limit 400000b", "rfc3168");
        assert!(whole.contains(none) && brief.contains(none), "{whole}, {brief}");
        for (queue, ecn) in [("red limit 400000b ecn", "rfc3168"), ("red limit 400000b", "off")] {
            let (whole, brief) = notes(queue, ecn);
            assert!(!whole.contains(none) && !brief.contains(none), "{queue}, {ecn}: {whole}");
        }
    }
}
