//! Exit classes over many transfers, in bounded memory.

use crate::table::{Align, Cell, Table};
use slowstart_lab::report::words::number;
use slowstart_replay::transfer::{ExitClass, Transfer};
use std::collections::BTreeMap;

/// Values in buckets that are 0.1 % wide, so that their number is bounded.
#[derive(Clone, Debug, Default)]
struct Histogram {
    buckets: BTreeMap<i32, u64>,
    count: u64,
}

/// Logarithm of the width of a bucket.
const WIDTH: f64 = 1e-3;

impl Histogram {
    fn add(&mut self, value: f64) {
        let bucket = (value.clamp(1e-9, 1e12).ln() / WIDTH).round() as i32;
        *self.buckets.entry(bucket).or_default() += 1;
        self.count += 1;
    }

    /// The smallest value that at least this share of the values does not exceed.
    fn quantile(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.buckets.iter().find(|(_, n)| {
            below += **n;
            below >= rank
        });
        found.map(|(bucket, _)| (f64::from(*bucket) * WIDTH).exp())
    }

    /// Median, 5 % and 95 % quantile.
    fn spread(&self, whole: bool) -> String {
        let text = |v: f64| number(if whole { v.round() } else { v });
        match (self.quantile(0.5), self.quantile(0.05), self.quantile(0.95)) {
            (Some(m), Some(l), Some(h)) => format!("{} ({}-{})", text(m), text(l), text(h)),
            _ => "-".to_string(),
        }
    }
}

/// Exits of many transfers.
#[derive(Clone, Debug, Default)]
struct Exits {
    classes: [u64; 5],
    time_s: Histogram,
    window: Histogram,
}

impl Exits {
    fn add(&mut self, class: ExitClass, exit: Option<(f64, u64)>, mss: u64) {
        self.classes[class as usize] += 1;
        if let Some((time_s, cwnd)) = exit {
            self.time_s.add(time_s);
            self.window.add(cwnd as f64 / mss.max(1) as f64);
        }
    }
}

/// Exit classes over many transfers, as observed and of each startup.
#[derive(Clone, Debug, Default)]
pub(super) struct Distributions {
    observed: Exits,
    startups: Vec<(String, Exits)>,
}

impl Distributions {
    pub(super) fn add(&mut self, row: &Transfer) {
        self.observed.add(row.class, row.exit.as_ref().map(|e| (e.time_s, e.cwnd_bytes)), row.mss_bytes);
        for (i, s) in row.startups.iter().enumerate() {
            // All rows have the startups in the same order.
            if self.startups.get(i).is_none_or(|(name, _)| *name != s.startup) {
                self.startups.insert(i, (s.startup.clone(), Exits::default()));
            }
            let exit = s.exit.as_ref().map(|e| (e.time_s, e.cwnd_bytes));
            self.startups[i].1.add(s.class, exit, row.mss_bytes);
        }
    }

    /// The observed exits in one sentence.
    pub(super) fn sentence(&self) -> String {
        let all: u64 = self.observed.classes.iter().sum();
        let share = |c: &ExitClass| {
            let n = self.observed.classes[*c as usize];
            format!("{} {n} ({:.0} %)", c.name(), n as f64 * 100.0 / all.max(1) as f64)
        };
        format!(
            "exits: {}; at {} s with {} segments (median, and 90 % of the exits)",
            ExitClass::ALL.iter().map(share).collect::<Vec<_>>().join(", "),
            self.observed.time_s.spread(false),
            self.observed.window.spread(true)
        )
    }

    /// A line for the observed exits and one for each startup.
    pub(super) fn table(&self) -> Table {
        let classes = ExitClass::ALL.map(ExitClass::name);
        let headers: Vec<&str> = std::iter::once("")
            .chain(classes)
            .chain(["exit (s), median (90 %)", "window, median (90 %)"])
            .collect();
        let mut alignments = vec![Align::Right; headers.len()];
        alignments[0] = Align::Left;
        let line = |name: &str, e: &Exits| -> Vec<Cell> {
            let all: u64 = e.classes.iter().sum();
            let share = |n: &u64| format!("{n} ({:.0} %)", *n as f64 * 100.0 / all.max(1) as f64).into();
            let mut cells = vec![name.into()];
            cells.extend(e.classes.iter().map(share));
            cells.extend([e.time_s.spread(false).into(), e.window.spread(true).into()]);
            cells
        };
        let mut rows = vec![line("as observed", &self.observed)];
        rows.extend(self.startups.iter().map(|(name, e)| line(name, e)));
        Table { headers: headers.into_iter().map(String::from).collect(), rows, alignments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_thousandth_and_memory_does_not_grow() {
        let mut h = Histogram::default();
        for n in 1..=100_000_u32 {
            h.add(f64::from(n) / 1000.0);
        }
        for (share, want) in [(0.05, 5.0), (0.5, 50.0), (0.95, 95.0)] {
            let found = h.quantile(share).expect("values");
            assert!((found / want - 1.0).abs() < 1.1e-3, "{share}: {found}");
        }
        assert!(h.buckets.len() < 12_000, "{}", h.buckets.len());
    }
}
