//! Two results beside each other: before and after a change, or two engines.

mod open;
mod outcome;
mod read;

use crate::measures::Measure;
use crate::record::Row;
use crate::stats::Median;
use crate::summary::{Summary, summarise};
pub use outcome::{Is, Outcome, middle};
pub use read::{ReadError, checked, of_sweep, rows};
use serde::Serialize;

/// The rows of a startup over a path in one result.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Their number.
    pub runs: usize,
    /// Runs in which a transfer of a given size did not complete, or an object never came.
    pub unfinished: usize,
    /// The measure: median, lower and upper end of its 95 % interval; null if no run has a value.
    pub median: Option<[f64; 3]>,
}

impl Side {
    fn of(s: &Summary, by: Measure) -> Self {
        let median = middle(s, by).map(|m| [m.mid, m.low, m.high]);
        Self { runs: s.rows.len(), unfinished: s.unfinished(), median }
    }
}

/// JSON Schema of a [`Line`].
pub const LINE_SCHEMA: &str = include_str!("../../schema/diff.json");

/// A startup over a path.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The path.
    pub path: String,
    /// The label of the startup.
    pub startup: String,
    /// What B is: better, worse, no-difference, not-certain, one-sided (only one has a measure), same, too-few-runs,
    /// other-workload, missing (only in A) or new (only in B).
    pub b_is: &'static str,
    /// What is worse, then what is better.
    pub why: Vec<String>,
    /// What is in one result only, and what is not certain.
    pub open: Vec<String>,
    /// What it is by: `objects_median_s`, `time_to_10mb_s`, `completion_s` or `goodput_mbps`; null if it is in one result only.
    pub measure: Option<&'static str>,
    /// Its rows in A.
    pub a: Option<Side>,
    /// Its rows in B.
    pub b: Option<Side>,
    /// Valid runs with the same random seed.
    pub pairs: usize,
    /// The difference of B from A in percent, and its 95 % interval; null where runs do not pair.
    pub percent: Option<[f64; 3]>,
}

/// The rows of each path, in order of first appearance.
pub fn by_path(rows: Vec<Row>) -> Vec<(String, Vec<Row>)> {
    let mut all: Vec<(String, Vec<Row>)> = Vec::new();
    for row in rows {
        match all.iter_mut().find(|(path, _)| *path == row.path) {
            Some((_, rows)) => rows.push(row),
            None => all.push((row.path.clone(), vec![row])),
        }
    }
    all
}

/// The startups of one path, of which one result may have no rows: those that both have, then those of A, then
/// those of B. `margin` is a share.
pub fn lines(path: &str, a: &[Row], b: &[Row], margin: f64) -> Vec<Line> {
    let (a, b) = (summarise(a), summarise(b));
    let find = |all: &[Summary], label: &str| all.iter().position(|s| s.label == label);
    let line = |startup: &str, b_is| Line {
        path: path.to_string(),
        startup: startup.to_string(),
        b_is,
        why: Vec::new(),
        open: Vec::new(),
        measure: None,
        a: None,
        b: None,
        pairs: 0,
        percent: None,
    };
    let mut all = Vec::new();
    for x in &a {
        let Some(y) = find(&b, &x.label).map(|i| &b[i]) else { continue };
        let o = Outcome::new(x, y, margin);
        let percent = |m: Median| [m.mid, m.low, m.high];
        all.push(Line {
            why: o.why.iter().map(|w| w.1.clone()).collect(),
            open: o.open(),
            measure: Some(o.by.name()),
            a: Some(Side::of(x, o.by)),
            b: Some(Side::of(y, o.by)),
            pairs: o.pairs,
            percent: o.percent.map(percent),
            ..line(&x.label, o.is.name())
        });
    }
    let only = |mine: &[Summary], theirs: &[Summary], b_is| -> Vec<Line> {
        let alone = mine.iter().filter(|s| find(theirs, &s.label).is_none());
        alone.map(|s| line(&s.label, b_is)).collect()
    };
    all.extend(only(&a, &b, "missing"));
    all.extend(only(&b, &a, "new"));
    all
}

/// The startups of all paths of two results.
pub fn diff(a: Vec<Row>, b: Vec<Row>, margin: f64) -> Vec<Line> {
    let (a, b) = (by_path(a), by_path(b));
    let rows_of = |all: &[(String, Vec<Row>)], path: &str| -> Vec<Row> {
        all.iter().find(|(p, _)| p == path).map_or_else(Vec::new, |(_, rows)| rows.clone())
    };
    let mut all: Vec<Line> = Vec::new();
    for (path, rows) in &a {
        all.extend(lines(path, rows, &rows_of(&b, path), margin));
    }
    for (path, rows) in b.iter().filter(|(path, _)| !a.iter().any(|(p, _)| p == path)) {
        all.extend(lines(path, &[], rows, margin));
    }
    all
}
