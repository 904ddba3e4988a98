//! The figures of a decision as rows: medians with their intervals, and differences from the baseline.

use crate::columns::{Column, Kind};
use crate::decision::{Change, Decision};
use crate::measures::{Measure, Shown};
use crate::stats::{FEWEST_PAIRS, Median};
use crate::summary::Summary;
use serde::Serialize;

/// The measures that are judged; harm only if it was measured.
fn figures(d: &Decision) -> impl Iterator<Item = Measure> {
    let harm = d.has_harm();
    Measure::ALL.iter().copied().filter(move |m| m.is_judged() && (harm || *m != Measure::OthersGot))
}

/// True if a table of `shown` has a value of a measure that says something of its own.
pub fn tells(d: &Decision, shown: &[&Summary], measure: Measure) -> bool {
    let is_10mb = || d.standings.iter().all(|s| s.summary.rows[0].size_bytes == Some(10_000_000));
    match measure {
        // They have the pauses of the user in them.
        m if d.by == Measure::ObjectMedian && m.is_time() && !m.is_of_objects() => false,
        Measure::Completion if d.by == Measure::Time10MB && is_10mb() => false,
        m if m.entry().shown == Shown::Deciding => d.by == m,
        m if m.entry().shown == Shown::Named => false,
        m => shown.iter().any(|s| d.typical(s, m).is_some()),
    }
}

/// A figure of a startup over the runs of one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The label of the startup.
    pub startup: String,
    /// Which figure, with its unit.
    pub figure: &'static str,
    /// The median of the runs that have a value; null of none.
    pub median: Option<f64>,
    /// Lower end of its 95 % interval; the least value of fewer than six runs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// All runs.
    pub runs: usize,
    /// Runs without a value: of a time, those that never got there.
    pub missing: usize,
}

/// A difference of a startup from the baseline over the runs of one path, run by run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DifferenceRow {
    /// The label of the startup.
    pub startup: String,
    /// That of the baseline.
    pub baseline: String,
    /// Which figure, with its unit.
    pub figure: &'static str,
    /// The unit of the difference.
    pub unit: &'static str,
    /// The median difference over the runs in which both have a value; null if there are none.
    pub median: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Runs that both have.
    pub pairs: usize,
    /// Runs in which only this startup never got there.
    pub never: usize,
    /// Runs in which only the baseline never got there.
    pub never_baseline: usize,
    /// What the difference says: `better`, `worse`, `even` (within the margin), `not-shown` (not certain) or
    /// `too-few` (fewer than six runs).
    pub change: &'static str,
}

/// The columns of [`Interval`].
pub fn interval_columns() -> Vec<Column> {
    let column = |name, kind| Column::new(name, kind, "");
    vec![
        column("startup", Kind::Text),
        column("figure", Kind::Text),
        column("median", Kind::Number),
        column("low", Kind::Number),
        column("high", Kind::Number),
        column("runs", Kind::Integer),
        column("missing", Kind::Integer),
    ]
}

/// The columns of [`DifferenceRow`].
pub fn difference_columns() -> Vec<Column> {
    let column = |name, kind| Column::new(name, kind, "");
    vec![
        column("startup", Kind::Text),
        column("baseline", Kind::Text),
        column("figure", Kind::Text),
        column("unit", Kind::Text),
        column("median", Kind::Number),
        column("low", Kind::Number),
        column("high", Kind::Number),
        column("pairs", Kind::Integer),
        column("never", Kind::Integer),
        column("never_baseline", Kind::Integer),
        column("change", Kind::Text),
    ]
}

/// The figures of each startup, in the order of the decision: those of objects, or those of a transfer.
pub fn intervals(d: &Decision) -> Vec<Interval> {
    let mut all = Vec::new();
    for s in d.standings.iter().map(|s| &s.summary) {
        let has_objects = s.rows.iter().any(|r| r.objects.is_some());
        for measure in figures(d) {
            if measure.is_time() && measure.is_of_objects() != has_objects {
                continue;
            }
            let typical = s.typical(measure);
            let middle = typical.map(|(m, _)| m);
            all.push(Interval {
                startup: s.label.clone(),
                figure: measure.name(),
                median: middle.map(|m| m.mid),
                low: middle.map(|m| m.low),
                high: middle.map(|m| m.high),
                runs: s.rows.len(),
                missing: s.rows.len() - typical.map_or(0, |(_, n)| n),
            });
        }
    }
    all
}

/// The differences of each startup from the baseline; none where a run was not observed.
pub fn differences(d: &Decision) -> Vec<DifferenceRow> {
    let Some(base) = d.baseline() else { return Vec::new() };
    let mut all = Vec::new();
    for s in d.standings.iter().skip(1).map(|s| &s.summary) {
        for measure in figures(d) {
            let Some(difference) = d.against(s, measure) else { continue };
            let Median { mid, low, high } = difference.median;
            let finite = |x: f64| x.is_finite().then_some(x);
            let change = match difference.change {
                Change::Better => "better",
                Change::Worse => "worse",
                Change::Even => "even",
                Change::NotShown { .. } => "not-shown",
                Change::TooFew => "too-few",
            };
            debug_assert!(difference.runs >= FEWEST_PAIRS || change == "too-few");
            all.push(DifferenceRow {
                startup: s.label.clone(),
                baseline: base.summary.label.clone(),
                figure: measure.name(),
                unit: measure.unit_of_difference(),
                median: finite(mid),
                low: finite(low),
                high: finite(high),
                pairs: difference.runs,
                never: difference.never[0],
                never_baseline: difference.never[1],
                change,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Terms;
    use crate::record::Row;
    use crate::sample::{beside, rows, with};

    /// Measured in the first runs, it is paired over these; where it was not measured there is no such figure.
    #[test]
    fn harm_is_a_figure_where_it_was_measured() {
        let all = [rows("hystart", &[8.0; 12]), rows("search", &[7.0; 12])].concat();
        let of = |all: &[Row]| {
            let d = Decision::new(all, &Terms::default());
            let intervals: Vec<_> = intervals(&d)
                .into_iter()
                .filter(|i| i.figure == "got_percent" && i.startup == "search")
                .collect();
            let differences: Vec<_> =
                differences(&d).into_iter().filter(|x| x.figure == "got_percent").collect();
            (intervals, differences)
        };
        assert_eq!(of(&all), (Vec::new(), Vec::new()));
        let harm = beside(all, |startup, run| {
            (run < 10).then_some(if startup == "search" { 60.0 + f64::from(run) } else { 90.0 })
        });
        let (intervals, differences) = of(&harm);
        let i = &intervals[0];
        assert_eq!((i.median, i.low, i.high, i.runs, i.missing), (Some(64.5), Some(61.0), Some(68.0), 12, 2));
        let x = &differences[0];
        assert_eq!((x.median, x.low, x.high, x.pairs), (Some(-25.5), Some(-29.0), Some(-22.0), 10));
        assert_eq!((x.change, x.unit), ("worse", "percent"));
    }

    #[test]
    fn intervals_and_differences_of_ten_runs() {
        let times: Vec<f64> = (1..=10).map(f64::from).collect();
        let mut all = rows("hystart", &times);
        let halves: Vec<f64> = times.iter().map(|t| t / 2.0).collect();
        all.extend(rows("search", &halves));
        all.extend(with(rows("standard", &times), |r| r.time_to_bytes_s.clear()));
        let d = Decision::new(&all, &Terms { baseline: Some("hystart"), ..Terms::default() });
        assert!(intervals(&d).iter().all(|i| !i.figure.starts_with("objects_")), "a transfer has none");
        let interval = |startup: &str| {
            let all = intervals(&d);
            let own = all.into_iter().find(|i| i.startup == startup && i.figure == "time_to_10mb_s");
            own.expect("an interval")
        };
        let hystart = interval("hystart");
        assert_eq!((hystart.median, hystart.low, hystart.high), (Some(5.5), Some(2.0), Some(9.0)));
        let standard = interval("standard");
        assert_eq!((standard.median, standard.runs, standard.missing), (None, 10, 10));
        let difference = |startup: &str| {
            let all = differences(&d);
            let own = all.into_iter().find(|i| i.startup == startup && i.figure == "time_to_10mb_s");
            own.expect("a difference")
        };
        let search = difference("search");
        assert_eq!((search.median, search.low, search.high), (Some(-50.0), Some(-50.0), Some(-50.0)));
        assert_eq!((search.change, search.unit, search.pairs), ("better", "percent", 10));
        // What never gets there is worse, and has no median.
        let standard = difference("standard");
        assert_eq!((standard.median, standard.never, standard.change), (None, 10, "worse"));
    }
}
