//! Many transfers at once, in bounded memory: how they left slow start, and what each startup would have
//! done.

use crate::table::{Align, Cell, Table, name_group};
use slowstart_replay::transfer::{ExitClass, Transfer};
use slowstart_study::words::{bytes, number};
use std::collections::BTreeMap;

/// Values in buckets that are 0.1 % wide, so that their number is bounded.
#[derive(Clone, Debug, Default)]
struct Histogram {
    buckets: BTreeMap<i32, u64>,
    count: u64,
}

/// Widest list of names in a sentence.
const NAMES: usize = 60;
/// Logarithm of the width of a bucket.
const WIDTH: f64 = 1e-3;

impl Histogram {
    fn add(&mut self, value: f64) {
        let bucket = (value.clamp(1e-9, 1e12).ln() / WIDTH).round() as i32;
        *self.buckets.entry(bucket).or_default() += 1;
        self.count += 1;
    }

    /// The smallest value that at least this share of the values does not exceed: the quantile by nearest rank.
    fn nearest_rank(&self, share: f64) -> Option<f64> {
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
        match (self.nearest_rank(0.5), self.nearest_rank(0.05), self.nearest_rank(0.95)) {
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

    fn of(&self, class: ExitClass) -> u64 {
        self.classes[class as usize]
    }
}

/// What a startup would have done.
#[derive(Clone, Debug, Default)]
struct Predictions {
    name: String,
    exits: Exits,
    /// Of the transfers that left late: those that it would have left with the link full.
    better: u64,
    /// Of the transfers that left early: those in which it would have been in slow start for longer.
    longer: u64,
}

/// Many transfers: how they left slow start, what limited them, and what each startup would have done.
#[derive(Clone, Debug, Default)]
pub(super) struct Population {
    transfers: u64,
    bytes: u64,
    /// Transfers of which it is not known what they delivered.
    unknown_bytes: u64,
    certain: u64,
    observed: Exits,
    startups: Vec<Predictions>,
    /// Of the transfers that left late or early, those in which at least one startup would have done better.
    any: [u64; 2],
    /// Transfers that something other than cwnd limited for most of the time, by what it was.
    limited: BTreeMap<String, u64>,
}

/// `n` and its share.
fn share(n: u64, all: u64) -> String {
    format!("{} ({:.0} %)", number(n as f64), n as f64 * 100.0 / all.max(1) as f64)
}

impl Population {
    pub(super) fn add(&mut self, row: &Transfer) {
        self.transfers += 1;
        self.bytes += row.bytes.unwrap_or(0);
        self.unknown_bytes += u64::from(row.bytes.is_none());
        self.certain += u64::from(row.certain);
        self.observed.add(row.class, row.exit.as_ref().map(|e| (e.time_s, e.cwnd_bytes)), row.mss_bytes);
        let mut limited: BTreeMap<&str, f64> = BTreeMap::new();
        for l in row.limits.iter().flatten() {
            // An idle sender has nothing to send.
            let what = if l.what == "idle" { "application" } else { &l.what };
            *limited.entry(what).or_default() += l.until_s - l.from_s;
        }
        for (what, _) in limited.into_iter().filter(|(_, s)| *s > row.duration_s / 2.0) {
            *self.limited.entry(what.to_string()).or_default() += 1;
        }
        let mut any = [false; 2];
        for (i, s) in row.startups.iter().enumerate() {
            // All rows have the startups in the same order.
            if self.startups.get(i).is_none_or(|p| p.name != s.startup) {
                self.startups.insert(i, Predictions { name: s.startup.clone(), ..Predictions::default() });
            }
            let exit = s.exit.as_ref().map(|e| (e.time_s, e.cwnd_bytes));
            let p = &mut self.startups[i];
            p.exits.add(s.class, exit, row.mss_bytes);
            let better = row.class == ExitClass::Late && s.class == ExitClass::LinkFull;
            let until = exit.map_or(s.valid_until_s.unwrap_or(row.duration_s), |e| e.0);
            let longer = row.class == ExitClass::Early && row.exit.as_ref().is_some_and(|e| until > e.time_s);
            p.better += u64::from(better);
            p.longer += u64::from(longer);
            any = [any[0] | better, any[1] | longer];
        }
        self.any = [self.any[0] + u64::from(any[0]), self.any[1] + u64::from(any[1])];
    }

    /// The population in three sentences: its size, its exits, and what would have been better.
    pub(super) fn sentences(&self) -> [String; 3] {
        let all = self.transfers;
        let class = |c: &ExitClass| format!("{} {}", c.how(), share(self.observed.of(*c), all));
        let exits = format!(
            "exits: {}; at {} s with {} segments (median, and 90 % of the exits); certain {}",
            ExitClass::ALL.iter().map(class).collect::<Vec<_>>().join(", "),
            self.observed.time_s.spread(false),
            self.observed.window.spread(true),
            share(self.certain, all)
        );
        let limited = |what: &str| {
            let n = self.limited.get(what).copied().unwrap_or(0);
            format!("by the {what} {}", share(n, all))
        };
        let mut parts = vec![format!(
            "limited for most of the time: {}, {}",
            limited("application"),
            limited("receive window")
        )];
        let most = |of: fn(&Predictions) -> u64| {
            let best = self.startups.iter().map(of).max().filter(|n| *n > 0)?;
            let names: Vec<String> =
                self.startups.iter().filter(|p| of(p) == best).map(|p| p.name.clone()).collect();
            Some(format!("most often by {} ({best})", name_group(&names, NAMES)))
        };
        for (class, any, best, what) in [
            (ExitClass::Late, self.any[0], most(|p| p.better), "would have left with the link full"),
            (ExitClass::Early, self.any[1], most(|p| p.longer), "would have been later"),
        ] {
            let n = self.observed.of(class);
            if n > 0 && !self.startups.is_empty() {
                let best = best.map_or(String::new(), |b| format!(", {b}"));
                parts.push(format!(
                    "of {} exits {}, {} {what} with another startup{best}",
                    number(n as f64),
                    class.how(),
                    number(any as f64)
                ));
            }
        }
        let unknown = match self.unknown_bytes {
            0 => String::new(),
            n => format!(", of {} it is not known", number(n as f64)),
        };
        [
            format!("{} transfers of {}{unknown}", number(all as f64), bytes(self.bytes)),
            exits,
            parts.join("; "),
        ]
    }

    /// A line for the observed exits and one for each startup.
    pub(super) fn table(&self) -> Table {
        let classes = ExitClass::ALL.map(ExitClass::how);
        let headers: Vec<&str> = std::iter::once("")
            .chain(classes)
            .chain([
                "full before the loss",
                "later than too early",
                "exit (s), median (90 %)",
                "window, median (90 %)",
            ])
            .collect();
        let mut alignments = vec![Align::Right; headers.len()];
        alignments[0] = Align::Left;
        let line = |name: &str, e: &Exits, than: [String; 2]| -> Vec<Cell> {
            let all: u64 = e.classes.iter().sum();
            let mut cells = vec![name.into()];
            cells.extend(e.classes.iter().map(|n| Cell::from(share(*n, all))));
            cells.extend(than.map(Cell::from));
            cells.extend([e.time_s.spread(false).into(), e.window.spread(true).into()]);
            cells
        };
        let (late, early) = (self.observed.of(ExitClass::Late), self.observed.of(ExitClass::Early));
        let mut rows = vec![line("as observed", &self.observed, ["-".to_string(), "-".to_string()])];
        rows.extend(
            self.startups
                .iter()
                .map(|p| line(&p.name, &p.exits, [share(p.better, late), share(p.longer, early)])),
        );
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
            let found = h.nearest_rank(share).expect("values");
            assert!((found / want - 1.0).abs() < 1.1e-3, "{share}: {found}");
        }
        assert!(h.buckets.len() < 12_000, "{}", h.buckets.len());
    }
}
