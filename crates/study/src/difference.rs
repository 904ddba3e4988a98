//! A difference between two startups, from runs over the same paths: its median with an interval, and what that says.
//!
//! It counts if its median is at least the margin and its 95 % interval excludes zero; there is none if the whole interval
//! is within the margin; fewer than [`FEWEST_PAIRS`] runs decide nothing.

use crate::stats::{FEWEST_PAIRS, Median, median};

/// What a difference says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Certainly better, by the margin at least.
    Better,
    /// Certainly worse, by the margin at least.
    Worse,
    /// Within the margin with its whole interval, so no difference.
    Even,
    /// Beyond the margin, but not certain; or within it, but its interval reaches beyond.
    NotShown {
        /// About how many runs would show a median that is beyond the margin, if it is real.
        runs: Option<usize>,
    },
    /// Fewer than [`FEWEST_PAIRS`] runs, which decide nothing.
    TooFew,
}

/// A difference between two startups, from pairs of runs.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Difference {
    /// Median and interval: percent for times and rates; packets, seconds or points for the others. Of
    /// times, over the runs in which both transfers got there; infinite if there are none.
    pub median: Median,
    /// What the runs say of the difference.
    pub change: Change,
    /// Runs that both have.
    pub runs: usize,
    /// Runs in which only the first transfer never got there, and those in which only the second never did.
    pub never: [usize; 2],
}

/// About how many runs would make the interval exclude zero, if the median stays: an interval narrows with
/// the root of the number of runs. In steps of ten.
fn runs_to_show(m: &Median, runs: usize) -> usize {
    let reach = if m.mid < 0.0 { m.high - m.mid } else { m.mid - m.low };
    let times = (reach / m.mid.abs()).powi(2).clamp(1.0, 1e4);
    ((runs as f64 * times * 0.1 - 1e-6).ceil() as usize * 10).max(FEWEST_PAIRS)
}

fn judge(m: &Median, margin: f64, less_is_better: bool, runs: usize) -> Change {
    if runs < FEWEST_PAIRS {
        return Change::TooFew;
    }
    if m.mid.abs() < margin {
        // A median of nothing may hide a mixture.
        let is_within = m.low.abs().max(m.high.abs()) <= margin;
        return if is_within { Change::Even } else { Change::NotShown { runs: None } };
    }
    if m.low <= 0.0 && m.high >= 0.0 {
        return Change::NotShown { runs: Some(runs_to_show(m, runs)) };
    }
    if (m.mid < 0.0) == less_is_better { Change::Better } else { Change::Worse }
}

/// The median difference, with its interval, of the first values of pairs from the second: in percent of the
/// second if it is relative. Of a time, a missing value is later than any other: the second result has the pairs in
/// which only the first never got there, and those in which only the second never did, and the difference is over
/// the pairs in which both did, infinite if there are none. `None` without pairs, and where a value is missing that
/// is no time.
pub fn paired(
    pairs: &[(Option<f64>, Option<f64>)],
    is_relative: bool,
    is_time: bool,
) -> Option<(Median, [usize; 2])> {
    let by = |x: f64, y: f64| if is_relative { 100.0 * (x / y - 1.0) } else { x - y };
    let both: Vec<f64> =
        pairs.iter().filter_map(|(x, y)| Some(by((*x)?, (*y)?))).filter(|d| d.is_finite()).collect();
    let count = |x: bool, y: bool| pairs.iter().filter(|p| (p.0.is_some(), p.1.is_some()) == (x, y)).count();
    let never = [count(false, true), count(true, false)];
    let missing = pairs.len() - count(true, true);
    if missing > 0 && (!is_time || both.is_empty() && never == [0, 0]) {
        return None;
    }
    let away = if never[0] >= never[1] { f64::INFINITY } else { f64::NEG_INFINITY };
    match median(&both) {
        Some(middle) => Some((middle, never)),
        None if missing > 0 => Some((Median { mid: away, low: away, high: away }, never)),
        None => None,
    }
}

/// The difference in percent of the first times of pairs from the second, of which a missing one is later than any.
pub fn times(pairs: &[(Option<f64>, Option<f64>)], margin: f64) -> Option<Difference> {
    let (middle, never) = paired(pairs, true, true)?;
    Some(Difference::of(middle, margin * 100.0, true, pairs.len()).with_never(never))
}

impl Difference {
    /// A difference of which every run has a value.
    pub(crate) fn of(median: Median, margin: f64, less_is_better: bool, runs: usize) -> Self {
        Self { median, change: judge(&median, margin, less_is_better, runs), runs, never: [0, 0] }
    }

    /// Adds in how many runs transfers never got there: that is worse than any time, whatever the
    /// others took.
    #[must_use]
    pub fn with_never(mut self, never: [usize; 2]) -> Self {
        self.never = never;
        self.change = match (self.change, never) {
            (Change::TooFew, _) => Change::TooFew,
            (change, [0, 0]) => change,
            (_, [_, 0]) => Change::Worse,
            (_, [0, _]) => Change::Better,
            _ => Change::NotShown { runs: Some(10 * self.runs) },
        };
        self
    }
}
