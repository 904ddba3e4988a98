//! One summary over several paths: what each startup gains and loses on each, against the baseline.

use crate::columns::{HARM_LEFT_OUT, never, notes, tone, unsure};
use crate::comparison::View;
use crate::printable::printable;
use crate::run_args::could_harm;
use crate::table::{Align, Cell, Table, Tone};
use slowstart_study::decision::{Decision, Difference, Standing, Terms, is_broken, role};
use slowstart_study::measures::Measure;
use slowstart_study::record::Row;
use slowstart_study::summary::Summary;
use slowstart_study::verdict::paths::{labels, verdict};
use slowstart_study::words::{RECONSTRUCTED, marked, number, signed};

/// The paths over which `slowstart compare` without one compares: those that differ in what decides.
pub(crate) const COMMON: [&str; 8] = [
    "geo",
    "geo-recorded",
    "leo",
    "lte",
    "wifi-weak",
    "cable",
    "transatlantic",
    "rate=20Mbit rtt=80ms queue=1bdp",
];

/// The rows of one path.
pub(crate) struct PathResult {
    /// The path's name, as the tables show it.
    pub name: String,
    /// The rows of all startups on this path.
    pub rows: Vec<Row>,
}

/// Widest cell of a path.
const LONGEST: usize = 13;
fn find<'d, 'a>(d: &'d Decision<'a>, label: &str) -> Option<&'d Summary<'a>> {
    d.standings.iter().find(|s| s.summary.label == label).map(|s| &s.summary)
}

fn standing<'d, 'a>(all: &'d [Decision<'a>], label: &str) -> Option<&'d Standing<'a>> {
    all.first()?.standings.iter().find(|s| s.summary.label == label)
}

/// A count of packets in at most five characters: `781`, `5.4k`, `13k`.
fn short_count(n: f64) -> String {
    match n {
        n if n < 999.5 => format!("{n:.0}"),
        n if n < 9950.0 => format!("{:.1}k", n / 1e3),
        n => format!("{:.0}k", n / 1e3),
    }
}

/// The cells of a startup on a path: its time against the baseline (of the baseline, its own), the packets it
/// lost, and what it left another flow, if that was measured.
fn cells(d: &Decision, label: &str) -> Vec<Cell> {
    let mut all = compared(d, label);
    // Nothing that broke a rule is better or worse.
    if find(d, label).is_some_and(is_broken) {
        for cell in &mut all {
            cell.tone = Tone::Plain;
        }
    }
    all
}

fn compared(d: &Decision, label: &str) -> Vec<Cell> {
    let Some(s) = find(d, label) else { return vec![Cell::default(); if d.has_harm() { 3 } else { 2 }] };
    let relative = |x: &Difference, unit: &str| {
        if let Some(text) = never(x) {
            return Cell { text, tone: tone(Some(x)) };
        }
        let mid = x.median.mid;
        let text = if mid.abs() < 0.5 { "0".to_string() } else { signed(mid.round()) };
        Cell { text: format!("{text} {unit}{}", unsure(x)), tone: tone(Some(x)) }
    };
    let time = if let Some(x) = d.against(s, d.by) {
        relative(&x, "%")
    } else {
        let unit = if d.by == Measure::Goodput { "" } else { " s" };
        let text = s.typical(d.by).map_or("-".into(), |(m, _)| format!("{}{unit}", number(m.mid)));
        Cell { text, tone: Tone::Bold }
    };
    let figure = Measure::StartupLost;
    let lost = match d.price(s, figure) {
        Some(p) if p.outweighs() => Tone::Bad,
        Some(p) if p.is_unseen() => Tone::Plain,
        _ => tone(d.against(s, figure).as_ref()),
    };
    let mut all = vec![time, Cell { text: s.lost(|m| short_count(m.mid)), tone: lost }];
    if d.has_harm() {
        all.push(d.against(s, Measure::OthersGot).map_or_else(
            || d.typical(s, Measure::OthersGot).map_or("-".into(), |(m, _)| format!("{:.0} %", m.mid).into()),
            |x| relative(&x, "pt"),
        ));
    }
    all
}

/// The legend of a table of these times in two lines of a narrow terminal.
fn brief(what: &str) -> String {
    format!(
        "{what} against the first line, run by run; ?: not shown. lost: packets lost in startup; 0 (10/30): none in most runs, \
         some in 10. -v explains all."
    )
}

/// Returns the table, in as many parts as its paths need in `width`, its legend, short and whole, and the verdict.
pub(crate) fn render(
    results: &[PathResult],
    view: &View,
    terms: &Terms,
    color: bool,
    width: usize,
) -> (String, String, Vec<String>, String) {
    let all: Vec<Decision> = results.iter().map(|r| Decision::new(&r.rows, terms)).collect();
    let labels = labels(&all);
    let (Some(first), Some(row)) = (labels.first(), results.first().and_then(|r| r.rows.first())) else {
        return ("no runs\n".into(), String::new(), Vec::new(), String::new());
    };
    let shown = &labels[..view.top.unwrap_or(labels.len()).min(labels.len())];
    let name = |label: &str| {
        let need = standing(&all, label).and_then(|s| s.need).filter(|n| n.is_rare());
        format!("{}{}", marked(label), if need.is_some() { " +" } else { "" })
    };
    let table = |from: usize, to: usize| {
        let mut headers = vec!["startup".to_string()];
        let mut alignments = vec![Align::Left];
        for (r, d) in results[from..to].iter().zip(&all[from..to]) {
            headers.extend([short(&r.name), "lost".to_string()]);
            headers.extend(d.has_harm().then(|| "CUBIC".to_string()));
            alignments.resize(headers.len(), Align::Right);
        }
        let line = |label: &String| {
            let mut line: Vec<Cell> = vec![name(label).into()];
            for d in &all[from..to] {
                line.extend(cells(d, label));
            }
            line
        };
        Table { headers, rows: shown.iter().map(line).collect(), alignments }
    };
    let fits = |t: &Table| t.render(false, None).lines().all(|l| l.chars().count() <= width);
    let mut parts = Vec::new();
    let mut from = 0;
    while from < results.len() {
        let to = (from + 1..=results.len())
            .rev()
            .find(|to| view.wide || fits(&table(from, *to)))
            .unwrap_or(from + 1);
        parts.push(table(from, to).render(color, None));
        from = to;
    }
    let what = match all[0].by {
        Measure::ObjectMedian => "Median time of an object",
        Measure::Time10MB => "Time to 10 MB",
        Measure::Goodput => "Goodput in Mbit/s",
        _ => "Time to completion",
    };
    let is = role(row, first).map_or(String::new(), |r| format!(" ({r})"));
    let margin = number(100.0 * terms.margin);
    let mut legend = vec![format!(
        "{what} against {first}{is}, run by run: medians; within {margin} %, with the whole interval, counts as none; ?: these runs do not show it. lost: packets \
         lost in startup."
    )];
    if all.iter().any(Decision::has_harm) {
        legend.push(format!(
            "CUBIC: the goodput of a CUBIC flow that was there before, beside {first}, as a share of its goodput alone; beside others, the \
             difference in points."
        ));
    }
    let could = |r: &PathResult| r.rows.iter().all(|r| could_harm(r) && r.got_percent.is_none());
    if results.iter().all(could) {
        legend.push(HARM_LEFT_OUT.to_string());
    }
    let needs = shown.iter().filter_map(|l| standing(&all, l)?.need);
    legend.extend(notes(needs, shown.len(), labels.len()));
    legend.extend(shown.iter().any(|l| marked(l) != **l).then(|| RECONSTRUCTED.to_string()));
    (parts.join("\n"), brief(what), legend, verdict(&all))
}

/// A path's name, cut to fit a column header: an inline path without its keys.
fn short(name: &str) -> String {
    let name = printable(name);
    let words: Vec<&str> = name.split_whitespace().map(|w| w.split_once('=').map_or(w, |(_, v)| v)).collect();
    let name = words.join(" ");
    if name.chars().count() <= LONGEST {
        return name;
    }
    // Two lines in the header.
    match name.char_indices().rfind(|(i, c)| *c == ' ' && *i <= LONGEST) {
        Some((at, _)) => format!("{}\n{}", &name[..at], cut(&name[at + 1..])),
        None => cut(&name),
    }
}

fn cut(name: &str) -> String {
    if name.chars().count() <= LONGEST {
        return name.to_string();
    }
    name.chars().take(LONGEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::row;

    fn path(name: &str, times: &[(&str, f64)]) -> PathResult {
        let rows = times.iter().flat_map(|(s, t)| (0..6).map(move |run| Row { run, ..row(s, Some(*t)) }));
        PathResult { name: name.to_string(), rows: rows.collect() }
    }

    #[test]
    fn startups_are_ordered_by_what_they_gain_everywhere() {
        let results = [
            path("geo", &[("standard", 10.0), ("hystart", 12.0), ("search", 10.0), ("ess", 15.0)]),
            path("lte", &[("standard", 6.0), ("hystart", 9.0), ("search", 9.0), ("ess", 6.0)]),
        ];
        let decisions: Vec<Decision> =
            results.iter().map(|r| Decision::new(&r.rows, &Terms::default())).collect();
        assert_eq!(labels(&decisions), ["hystart", "standard", "search", "ess"]);
        let shown = |width| render(&results, &View::default(), &Terms::default(), false, width);
        for width in [40, 80, 160] {
            let (text, ..) = shown(width);
            assert!(text.lines().all(|l| l.chars().count() <= width), "{width}:\n{text}");
            assert!(text.contains("geo") && text.contains("lte"), "{width}:\n{text}");
        }
        let (_, _, legend, verdict) = shown(100);
        assert!(legend[0].contains("hystart (Linux's default)"), "{legend:?}");
        assert!(
            verdict.starts_with(
                "Compared with hystart, standard does best of 3 others: it is faster on both paths, slower nowhere"
            ),
            "{verdict}"
        );
    }

    /// A startup that takes from another flow is not the answer where one that does not gains as much.
    #[test]
    fn harm_stands_in_the_table_and_decides() {
        let mut results =
            ["leo", "lte"].map(|p| path(p, &[("hystart", 10.0), ("ess", 7.0), ("search", 7.5)]));
        for row in &mut results[0].rows {
            row.got_percent = Some(if row.startup == "ess" { 60.0 } else { 90.0 });
        }
        let (text, _, legend, verdict) = render(&results, &View::default(), &Terms::default(), false, 100);
        let line = |name: &str| {
            let line = text.lines().find(|l| l.starts_with(name)).expect("a line");
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(line("hystart ").contains("90 %") && line("ess ").contains("-30 pt"), "{text}");
        assert!(line("search ").contains("0 pt") && text.matches("CUBIC").count() == 1, "{text}");
        assert!(legend.iter().any(|l| l.starts_with("CUBIC: ")), "{legend:?}");
        assert!(
            verdict.starts_with(
                "Compared with hystart, search does best of 2 others: it is faster on both paths, slower nowhere, loses more packets nowhere and waits \
                 longer in the queue nowhere; what it does to a CUBIC flow is not shown on 1 of 2 paths. ess gains most on average: it is faster on \
                 both paths, slower nowhere, loses more packets nowhere, waits longer in the queue nowhere and slows a CUBIC flow on 1 of 2 paths (not \
                 shown on 1 of 2 paths)."
            ),
            "{verdict}"
        );
    }

    #[test]
    fn names_and_counts_are_short() {
        assert_eq!(short("rate=20Mbit rtt=80ms queue=1bdp"), "20Mbit 80ms\n1bdp");
        assert_eq!([0.0, 781.0, 5360.0, 12501.0].map(short_count), ["0", "781", "5.4k", "13k"]);
    }
}
