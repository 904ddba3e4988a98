//! Many transfers at once, in bounded memory: how they left slow start, and what each startup would have
//! done.

use crate::transfer::{ExitClass, Transfer};
use serde::Serialize;
use slowstart_study::words::{bytes, name_group, number};
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

    fn spread(&self) -> Option<Spread> {
        Some(Spread {
            median: self.nearest_rank(0.5)?,
            low: self.nearest_rank(0.05)?,
            high: self.nearest_rank(0.95)?,
        })
    }
}

/// What most values are, by nearest rank and within 0.1 %.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Half of the values are no greater.
    pub median: f64,
    /// 5 % are no greater.
    pub low: f64,
    /// 95 % are no greater.
    pub high: f64,
}

impl Spread {
    /// `12 (10-15)`, or whole numbers.
    pub fn text(&self, whole: bool) -> String {
        let text = |v: f64| number(if whole { v.round() } else { v });
        format!("{} ({}-{})", text(self.median), text(self.low), text(self.high))
    }

    /// [`Self::text`], or a dash if there are no values.
    pub fn text_or_dash(spread: Option<Self>, whole: bool) -> String {
        spread.map_or("-".to_string(), |s| s.text(whole))
    }
}

/// How many transfers left slow start, or would have with a startup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exited {
    /// The startup; null for the exits that were observed.
    pub startup: Option<String>,
    /// The transfers of each class, in the order of [`ExitClass::ALL`].
    pub classes: [u64; 5],
    /// Of the transfers that left late, those that this startup would have left with the link full; null for what was
    /// observed.
    pub full_before_loss: Option<u64>,
    /// Of the transfers that left early, those in which this startup would have been in slow start for longer; null for what
    /// was observed.
    pub later_than_early: Option<u64>,
    /// When they left, in seconds; null if none did.
    pub exit_s: Option<Spread>,
    /// The window then, in segments.
    pub window_segments: Option<Spread>,
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

    fn exited(&self, startup: Option<&Predictions>) -> Exited {
        Exited {
            startup: startup.map(|p| p.name.clone()),
            classes: self.classes,
            full_before_loss: startup.map(|p| p.better),
            later_than_early: startup.map(|p| p.longer),
            exit_s: self.time_s.spread(),
            window_segments: self.window.spread(),
        }
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
pub struct Population {
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

/// Returns `n` and its share.
pub fn share(n: u64, all: u64) -> String {
    format!("{} ({:.0} %)", number(n as f64), n as f64 * 100.0 / all.max(1) as f64)
}

impl Population {
    /// Adds a transfer.
    pub fn add(&mut self, row: &Transfer) {
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
    pub fn sentences(&self) -> [String; 3] {
        let all = self.transfers;
        let class = |c: &ExitClass| format!("{} {}", c.how(), share(self.observed.of(*c), all));
        let exits = format!(
            "exits: {}; at {} s with {} segments (median, and 90 % of the exits); certain {}",
            ExitClass::ALL.iter().map(class).collect::<Vec<_>>().join(", "),
            Spread::text_or_dash(self.observed.time_s.spread(), false),
            Spread::text_or_dash(self.observed.window.spread(), true),
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

    /// The exits that were observed, then those that each startup would have had.
    pub fn exits(&self) -> Vec<Exited> {
        let startups = self.startups.iter().map(|p| p.exits.exited(Some(p)));
        std::iter::once(self.observed.exited(None)).chain(startups).collect()
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
