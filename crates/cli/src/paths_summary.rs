//! One summary over several paths: how far each startup is from the best one on each path.

use crate::printable::printable;
use crate::table::{Align, Cell, Table, View};
use slowstart_lab::record::Row;
use slowstart_lab::report::summary::{Measure, rank};
use slowstart_lab::report::words::number;

/// The rows of one path.
pub(crate) struct PathResult {
    /// The path's name.
    pub name: String,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A startup over all paths.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    labels: Vec<String>,
    /// For each path, the median time to completion over the least one there, or the greatest goodput over its own.
    ratios: Vec<f64>,
    /// Number of paths where no startup is certainly better.
    firsts: usize,
}

impl Line {
    fn mean(&self) -> f64 {
        self.ratios.iter().sum::<f64>() / self.ratios.len() as f64
    }

    /// The greatest ratio and the index of its path.
    fn worst(&self) -> (f64, usize) {
        let worst = self.ratios.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        worst.map_or((1.0, 0), |(i, r)| (*r, i))
    }
}

/// The startups that have runs on every path, least mean ratio first; those with equal ratios on every path are one
/// line, unless `wide`.
fn lines(results: &[PathResult], wide: bool) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    for (i, result) in results.iter().enumerate() {
        let (by, places) = rank(&result.rows);
        let median = |p: &slowstart_lab::report::summary::Place| {
            p.summary.of_all_runs(by).map_or(f64::INFINITY, |m| m.mid)
        };
        let best = places.first().map_or(1.0, |first| {
            places
                .iter()
                .map(median)
                .fold(median(first), |a, b| if by == Measure::Completion { a.min(b) } else { a.max(b) })
        });
        for p in &places {
            let ratio = if by == Measure::Completion { median(p) / best } else { best / median(p) };
            let first = usize::from(p.rank == 1);
            match all.iter_mut().find(|l| l.labels[0] == p.summary.label) {
                Some(line) => {
                    line.ratios.push(ratio);
                    line.firsts += first;
                }
                None if i == 0 => all.push(Line {
                    labels: vec![p.summary.label.clone()],
                    ratios: vec![ratio],
                    firsts: first,
                }),
                None => {}
            }
        }
    }
    all.retain(|l| l.ratios.len() == results.len());
    all.sort_by(|a, b| a.mean().total_cmp(&b.mean()));
    let mut grouped: Vec<Line> = Vec::new();
    for line in all {
        match grouped.iter_mut().find(|g| !wide && g.ratios == line.ratios) {
            Some(group) => group.labels.extend(line.labels),
            None => grouped.push(line),
        }
    }
    grouped
}

/// Widest label column.
const NAMES: usize = 30;

/// Returns the table, with as many paths as fit into `width`, and its legend.
pub(crate) fn render(
    results: &[PathResult],
    view: &View,
    color: bool,
    width: usize,
) -> (String, Vec<String>) {
    let all = lines(results, view.wide);
    if all.is_empty() {
        return ("no runs\n".into(), Vec::new());
    }
    let shown = &all[..view.top.unwrap_or(all.len()).min(all.len())];
    let names: Vec<String> = results.iter().map(|r| short(&r.name)).collect();
    let name = |l: &Line| crate::table::name_group(&l.labels, if view.wide { usize::MAX } else { NAMES });
    let table = |paths: usize| {
        let mut headers = ["startup", "mean", "worst", "on path", "first"].map(String::from).to_vec();
        headers.extend(names[..paths].iter().cloned());
        let mut alignments = vec![Align::Right; headers.len()];
        (alignments[0], alignments[3]) = (Align::Left, Align::Left);
        let row = |l: &Line| {
            let (worst, at) = l.worst();
            let mut cells: Vec<Cell> = vec![
                name(l).into(),
                ratio(l.mean()).into(),
                ratio(worst).into(),
                names[at].clone().into(),
                format!("{}/{}", l.firsts, results.len()).into(),
            ];
            cells.extend(l.ratios[..paths].iter().map(|r| Cell { text: ratio(*r), bold: *r <= 1.0 }));
            cells
        };
        Table { headers, rows: shown.iter().map(row).collect(), alignments }
    };
    let fits = |t: &Table| t.render(false, None).lines().all(|l| l.chars().count() <= width);
    let paths = (0..=results.len()).rev().find(|n| view.wide || fits(&table(*n))).unwrap_or(0);
    let mut legend = vec![
        "For each path, the median time to completion as a multiple of the least one there (or the greatest goodput as a \
         multiple of the startup's own, where not every run completes). mean and worst: of these multiples over all \
         paths. first: number of paths where no other startup is certainly better."
            .to_string(),
    ];
    for l in shown.iter().filter(|l| name(l).ends_with(" more")) {
        legend.push(format!("equal on every path: {}", l.labels.join(", ")));
    }
    if shown.len() < all.len() {
        legend.push(format!("{} of {} lines shown (--top)", shown.len(), all.len()));
    }
    if paths < results.len() {
        legend.push(format!(
            "not shown in {width} columns: {}; --wide shows everything",
            names[paths..].join(", ")
        ));
    }
    (table(paths).render(color, None), legend)
}

/// A ratio with two decimals, or fewer digits above 100.
fn ratio(r: f64) -> String {
    if r.is_finite() && r < 100.0 { format!("{r:.2}") } else { number(r) }
}

/// A path's name, cut to fit a column header.
fn short(name: &str) -> String {
    const LONGEST: usize = 16;
    let name = printable(name);
    if name.chars().count() <= LONGEST {
        return name.into_owned();
    }
    name.chars().take(LONGEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::row;

    #[test]
    fn startups_are_ordered_by_their_mean_ratio() {
        let path = |name: &str, times: &[(&str, f64)]| PathResult {
            name: name.to_string(),
            rows: times.iter().map(|(s, t)| row(s, Some(*t))).collect(),
        };
        let results = [
            path("geo", &[("standard", 12.0), ("search", 10.0), ("ess", 15.0), ("tsl", 12.0)]),
            path("lte", &[("standard", 9.0), ("search", 12.0), ("ess", 6.0), ("tsl", 9.0)]),
        ];
        let all = lines(&results, false);
        assert_eq!(all[0].labels, ["ess"]);
        assert!((all[0].mean() - 1.25).abs() < 1e-9 && all[0].worst() == (1.5, 0));
        assert_eq!(all[1].labels, ["standard", "tsl"]);
        assert_eq!(lines(&results, true).len(), 4);
        for width in [50, 80, 160] {
            let (text, legend) = render(&results, &View::default(), false, width);
            assert!(text.lines().all(|l| l.chars().count() <= width), "{width}:\n{text}");
            assert_eq!(text.contains(" lte\n"), !legend.join("").contains("not shown"), "{text}\n{legend:?}");
        }
    }
}
