//! Differences to the rows of an earlier league, case by case.

use crate::game::GameRow;
use crate::score::{self, Measure};
use slowstart_study::stats::{self, Median};
use std::collections::BTreeMap;
use thiserror::Error;

/// What is wrong with a baseline.
#[derive(Debug, Error)]
pub enum BaselineError {
    /// A line is no row.
    #[error("line {line}: found {found:?}, expected a row as `slowstart league --json` prints it ({why})")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Its first characters.
        found: String,
        /// Why it was refused.
        why: String,
    },
    /// There are no rows.
    #[error("found no rows, expected rows as `slowstart league --json` prints them")]
    Empty,
    /// The rows are of several leagues.
    #[error("found rows of seeds {0} and {1}, expected those of one league")]
    Seeds(u64, u64),
}

/// The rows of an earlier league.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// Its rows, at least one.
    pub rows: Vec<GameRow>,
    /// The seed of that league.
    pub seed: u64,
}

impl Baseline {
    /// Reads rows as JSON lines.
    pub fn read(text: &str) -> Result<Self, BaselineError> {
        let mut rows: Vec<GameRow> = Vec::new();
        for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            rows.push(serde_json::from_str(line).map_err(|e| BaselineError::Line {
                line: i + 1,
                found: line.chars().take(60).collect(),
                why: e.to_string(),
            })?);
        }
        let seed = rows.first().ok_or(BaselineError::Empty)?.drawn_from;
        if let Some(other) = rows.iter().find(|r| r.drawn_from != seed) {
            return Err(BaselineError::Seeds(seed, other.drawn_from));
        }
        Ok(Self { rows, seed })
    }

    /// How many cases it has of a population: one more than the greatest number.
    pub fn cases(&self, population: &str) -> u32 {
        self.rows.iter().filter(|r| r.population == population).map(|r| r.case + 1).max().unwrap_or(0)
    }
}

/// A startup against one of the baseline, over the cases that both have.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The startup as written, with its parameters.
    pub startup: String,
    /// The startup of the baseline.
    pub baseline: String,
    /// The population; `None` for all of them.
    pub population: Option<String>,
    /// Cases that both have.
    pub cases: usize,
    /// For each measure: the mean of the differences, with Student's interval, and the baseline's mean over
    /// the same cases.
    pub measures: Vec<(Measure, Median, f64)>,
}

/// Every startup of `rows` against every startup of `baseline`, over all populations and over each.
pub fn differences(rows: &[GameRow], baseline: &[GameRow]) -> Vec<Difference> {
    let mut all = Vec::new();
    for ours in score::startups(rows) {
        for theirs in score::startups(baseline) {
            let scopes = std::iter::once(None).chain(score::populations(rows).into_iter().map(Some));
            all.extend(scopes.filter_map(|scope| difference(rows, ours, baseline, theirs, scope)));
        }
    }
    all
}

fn difference(
    rows: &[GameRow],
    ours: &str,
    baseline: &[GameRow],
    theirs: &str,
    scope: Option<&str>,
) -> Option<Difference> {
    // The path too: a list of built-in paths may have changed between two versions.
    let key = |r: &GameRow| (r.population.clone(), r.seed, r.path.clone());
    let known: BTreeMap<_, &GameRow> =
        baseline.iter().filter(|r| r.startup == theirs).map(|r| (key(r), r)).collect();
    let pairs: Vec<(&GameRow, &GameRow)> = rows
        .iter()
        .filter(|r| r.startup == ours && scope.is_none_or(|s| r.population == s))
        .filter_map(|r| Some((r, *known.get(&key(r))?)))
        .collect();
    let of = |m: Measure| {
        let both: Vec<(f64, f64)> = pairs.iter().filter_map(|(a, b)| Some((m.of(a)?, m.of(b)?))).collect();
        let differences: Vec<f64> = both.iter().map(|(a, b)| a - b).collect();
        let base: Vec<f64> = both.iter().map(|(_, b)| *b).collect();
        Some((m, stats::mean(&differences)?, stats::mean(&base)?.mid))
    };
    (!pairs.is_empty()).then(|| Difference {
        startup: ours.to_string(),
        baseline: theirs.to_string(),
        population: scope.map(str::to_string),
        cases: pairs.len(),
        measures: Measure::ALL.into_iter().filter_map(of).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::tests::row;

    #[test]
    fn rows_are_read_back_and_bad_ones_are_named() {
        let rows = [row("a", 0, 1.0, 5), row("a", 1, 2.0, 5)];
        let text: String =
            rows.iter().map(|r| serde_json::to_string(r).expect("plain data") + "\n").collect();
        let read = Baseline::read(&text).expect("rows");
        assert_eq!((read.rows.as_slice(), read.seed, read.cases("random")), (&rows[..], 1, 2));
        let bad = Baseline::read(&format!("{text}{{}}\n")).expect_err("no row").to_string();
        assert!(bad.starts_with("line 3: found \"{}\""), "{bad}");
        assert!(Baseline::read("\n").is_err());
    }

    #[test]
    fn differences_are_taken_case_by_case() {
        let base = [row("a", 0, 1.0, 5), row("a", 1, 9.0, 5), row("a", 2, 4.0, 5)];
        // The third case is missing, and the order is another.
        let ours = [row("b", 1, 9.5, 0), row("b", 0, 1.5, 0)];
        let all = differences(&ours, &base);
        let d = all.iter().find(|d| d.population.is_none()).expect("over all");
        assert_eq!((d.cases, d.startup.as_str(), d.baseline.as_str()), (2, "b", "a"));
        let of = |m| d.measures.iter().find(|x| x.0 == m).expect("known").1.mid;
        // Half a second is one of the oracle's times.
        assert!((of(Measure::Regret1MB) - 1.0).abs() < 1e-9 && (of(Measure::Lost) + 5.0).abs() < 1e-9);
    }
}
