//! Summaries of the rows of one path, one for each startup, and their order.

use crate::record::{Class, Param, Row};
use crate::scenario::params;
use crate::stats::{self, Median, median};
use slowstart::registry;
use std::cmp::Ordering;
use std::fmt::Write;

/// A measure of a run, in the unit in which it is shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Seconds until the receiver had 1 MB.
    Time1MB,
    /// Seconds until it had 10 MB.
    Time10MB,
    /// Seconds until it had everything.
    Completion,
    /// Seconds until the reason of the exit was seen.
    ExitTime,
    /// The window at that moment, in BDP.
    ExitWindow,
    /// Packets lost of those sent before the exit.
    StartupLost,
    /// The longest wait at the bottleneck, in milliseconds.
    QueueDelay,
    /// Megabits a second.
    Goodput,
}

/// The standing of a startup in a column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its median is the best, and it is certainly better than some other.
    Best,
    /// No difference from the best.
    Even,
    /// Certainly worse; or not every run has a value; or the column has no better and worse.
    Other,
}

impl Measure {
    /// All measures, in the order of columns.
    pub const ALL: [Self; 8] = [
        Self::Time1MB,
        Self::Time10MB,
        Self::Completion,
        Self::ExitTime,
        Self::ExitWindow,
        Self::StartupLost,
        Self::QueueDelay,
        Self::Goodput,
    ];

    /// Returns the value of a run, if it has one.
    pub fn of(self, row: &Row) -> Option<f64> {
        let time_to = |bytes: &str| row.time_to_bytes_s.get(bytes).copied().flatten();
        let exit = row.exit.as_ref();
        let value = match self {
            Self::Time1MB => time_to("1000000"),
            Self::Time10MB => time_to("10000000"),
            Self::Completion => row.completion_s,
            Self::ExitTime => exit.map(|e| e.time_s),
            Self::ExitWindow => exit.map(|e| e.detected_cwnd_bytes as f64 / row.bdp_bytes as f64),
            Self::StartupLost => Some(row.startup_lost_packets as f64),
            Self::QueueDelay => Some(row.peak_queue_delay_s * 1e3),
            Self::Goodput => Some(row.goodput_bps as f64 / 1e6),
        };
        value.filter(|v| v.is_finite())
    }

    /// Whether less is better; `None` if neither is.
    pub const fn less_is_better(self) -> Option<bool> {
        match self {
            Self::ExitTime | Self::ExitWindow => None,
            Self::Goodput => Some(false),
            _ => Some(true),
        }
    }

    /// Which of two startups is certainly better, run by run: `Less` is the first, `None` is no difference.
    fn compare(self, a: &Summary, b: &Summary) -> Option<Ordering> {
        let values = |s: &Summary| s.rows.iter().filter_map(|r| self.of(r)).collect::<Vec<f64>>();
        let order = stats::compare(&values(a), &values(b))?;
        Some(if self.less_is_better()? { order } else { order.reverse() })
    }

    /// Which of two middles is better: `Less` is the first.
    fn order(self, a: &Median, b: &Median) -> Ordering {
        let order = a.mid.total_cmp(&b.mid);
        if self.less_is_better() == Some(false) { order.reverse() } else { order }
    }

    /// Returns the standing of each of `summaries`.
    pub fn standings(self, summaries: &[&Summary]) -> Vec<Standing> {
        let typical: Vec<_> = summaries.iter().map(|s| (s, s.of_all_runs(self))).collect();
        let known = typical.iter().filter_map(|(s, m)| Some((s, (*m)?)));
        let best = known.min_by(|a, b| self.order(&a.1, &b.1));
        let Some((best, middle)) = best.filter(|_| self.less_is_better().is_some()) else {
            return vec![Standing::Other; summaries.len()];
        };
        let worse = |s: &Summary| self.compare(best, s) == Some(Ordering::Less);
        let differ = typical.iter().any(|(s, m)| m.is_none() || worse(s));
        let stand = |(s, m): &(&&Summary, Option<Median>)| match m {
            Some(m) if differ && self.order(m, &middle).is_eq() => Standing::Best,
            Some(_) if !worse(s) => Standing::Even,
            _ => Standing::Other,
        };
        typical.iter().map(stand).collect()
    }
}

/// The runs of one startup with the same parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary<'a> {
    /// `search:drain=off,threshold=0.5`.
    pub label: String,
    /// Its runs, at least one, in the order of the rows.
    pub rows: Vec<&'a Row>,
}

/// Returns the label of a startup: its name, and the parameters that differ from those in the registry.
pub fn label(row: &Row) -> String {
    let own = registry::named(&row.startup).map(|e| params(&e.algorithm)).unwrap_or_default();
    let mut out = row.startup.clone();
    let mut sign = ':';
    for (key, value) in row.params.iter().filter(|(k, v)| own.get(*k) != Some(v)) {
        let done = match value {
            Param::Number(x) => write!(out, "{sign}{key}={x}"),
            Param::Word(w) => write!(out, "{sign}{key}={w}"),
        };
        done.expect("a String takes everything");
        sign = ',';
    }
    out
}

/// `rows` by startup and parameters, in order of first appearance.
pub fn summarise(rows: &[Row]) -> Vec<Summary<'_>> {
    let mut out: Vec<Summary> = Vec::new();
    for row in rows {
        match out.iter_mut().find(|s| s.rows[0].startup == row.startup && s.rows[0].params == row.params) {
            Some(s) => s.rows.push(row),
            None => out.push(Summary { label: label(row), rows: vec![row] }),
        }
    }
    out
}

impl Summary<'_> {
    /// The median over the runs that have a value, and how many have.
    pub fn typical(&self, measure: Measure) -> Option<(Median, usize)> {
        let values: Vec<f64> = self.rows.iter().filter_map(|r| measure.of(r)).collect();
        Some((median(&values)?, values.len()))
    }

    /// The median if every run has a value. Medians of fewer are not compared: the runs left out are the worst.
    pub fn of_all_runs(&self, measure: Measure) -> Option<Median> {
        self.typical(measure).filter(|&(_, runs)| runs == self.rows.len()).map(|(m, _)| m)
    }

    /// The exit classes and in how many runs each, most frequent first.
    pub fn classes(&self) -> Vec<(Class, usize)> {
        let count = |class| self.rows.iter().filter(|r| r.class == class).count();
        let all = [Class::Early, Class::ChokePoint, Class::Late, Class::None];
        let mut shares: Vec<_> = all.map(|c| (c, count(c))).into_iter().filter(|&(_, n)| n > 0).collect();
        shares.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
        shares
    }
}

/// The rank of a startup.
#[derive(Clone, Debug, PartialEq)]
pub struct Place<'a> {
    /// One more than the number of startups of better ranks.
    pub rank: usize,
    /// True if it shares its rank with the startup before it: no difference from the first of that rank.
    pub tied: bool,
    /// The difference to the first of all in the same run, in the unit of the measure of the ranking.
    pub behind: Option<Median>,
    /// The startup.
    pub summary: Summary<'a>,
}

/// Ranks startups, best median first, and returns the measure: the time to completion if every run completed, else
/// goodput. Startups that do not certainly differ, run by run, from the first of a rank share it.
pub fn rank(rows: &[Row]) -> (Measure, Vec<Place<'_>>) {
    let all = rows.iter().all(|r| Measure::Completion.of(r).is_some());
    let by = if all { Measure::Completion } else { Measure::Goodput };
    // Each run has a goodput, so each startup has a median.
    let mut medians: Vec<_> =
        summarise(rows).into_iter().filter_map(|s| s.of_all_runs(by).map(|m| (m, s))).collect();
    medians.sort_by(|a, b| by.order(&a.0, &b.0));
    let values = |s: &Summary| s.rows.iter().filter_map(|r| by.of(r)).collect::<Vec<f64>>();
    let first = medians.first().map(|(_, s)| values(s)).unwrap_or_default();
    let mut places: Vec<Place> = Vec::new();
    let mut leader = 0;
    for (_, summary) in medians {
        let tied = places.get(leader).is_some_and(|l| by.compare(&l.summary, &summary).is_none());
        if !tied {
            leader = places.len();
        }
        let behind = stats::paired(&values(&summary), &first).filter(|_| !places.is_empty());
        places.push(Place { rank: leader + 1, tied, behind, summary });
    }
    (by, places)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{rows, with};
    use super::*;

    #[test]
    fn parameters_make_another_startup() {
        let mut rows = rows("search", &[7.0, 7.1]);
        rows[1].params.insert("threshold".into(), Param::Number(0.5));
        rows[1].params.insert("drain".into(), Param::Word("off".into()));
        let labels: Vec<_> = summarise(&rows).into_iter().map(|s| s.label).collect();
        assert_eq!(labels, ["search", "search:drain=off,threshold=0.5"]);
    }

    #[test]
    fn startups_that_do_not_differ_share_a_rank() {
        let all = [rows("c", &[9.0, 9.1]), rows("b", &[7.1, 7.3]), rows("a", &[7.0, 7.2])].concat();
        let (by, places) = rank(&all);
        assert_eq!(by, Measure::Completion);
        let shown: Vec<_> = places.iter().map(|p| (p.rank, p.tied, p.summary.label.as_str())).collect();
        assert_eq!(shown, [(1, false, "a"), (1, true, "b"), (3, false, "c")]);
    }

    #[test]
    fn without_every_completion_goodput_counts() {
        let mut all = [rows("a", &[7.0]), rows("b", &[8.0])].concat();
        all[0].completion_s = None;
        all[0].goodput_bps = 1;
        let (by, places) = rank(&all);
        assert_eq!((by, places[0].summary.label.as_str()), (Measure::Goodput, "b"));
    }

    #[test]
    fn the_best_is_only_the_best_if_something_is_worse() {
        let of = |rows: &[Row]| {
            let all = summarise(rows);
            Measure::Completion.standings(&all.iter().collect::<Vec<_>>())
        };
        let (a, b, c) = (rows("a", &[7.0, 7.2]), rows("b", &[7.1, 7.3]), rows("c", &[9.0]));
        assert_eq!(of(&[a.clone(), b.clone()].concat()), [Standing::Even, Standing::Even]);
        assert_eq!(of(&[b, c, a].concat()), [Standing::Even, Standing::Other, Standing::Best]);
    }

    #[test]
    fn absent_values_are_left_out() {
        let mut all = rows("a", &[7.0, 8.0]);
        all[0].bdp_bytes = 0;
        all[1].exit = None;
        let s = &summarise(&all)[0];
        assert_eq!(s.typical(Measure::ExitWindow), None);
        assert_eq!(s.typical(Measure::ExitTime).map(|(m, n)| (m.mid, n)), Some((1.5, 1)));
        let early = with(rows("a", &[7.0]), |r| r.class = Class::Early);
        assert_eq!(summarise(&early)[0].classes(), [(Class::Early, 1)]);
    }
}
