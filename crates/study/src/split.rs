//! Finds which drawn quantity decides how a startup ends.
//!
//! Over an ensemble each run has a class and the values it drew. [`split`] looks for the one quantity and
//! threshold that give the class of the most runs, if each side of the threshold is taken to have one class.
//! It reports one only if fewer than 1 in 100 random orders of the classes have a split as good: over many
//! quantities and thresholds, chance alone always finds some split.

use crate::record::{Class, Row};
use crate::summary::summarise;
use crate::words;
use serde::Serialize;
use slowstart_sim::random::Stream;

/// A quantity and a threshold that give the class of most runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Split {
    /// The field of [`Row::drawn`].
    pub quantity: String,
    /// Between two drawn values, in the unit of that field.
    pub threshold: f64,
    /// The most frequent class of the runs whose value is below the threshold.
    pub below: Class,
    /// The most frequent class of the others.
    pub above: Class,
    /// Number of runs whose class is the one of their side.
    pub explained: usize,
    /// Number of runs of the most frequent class: what one can give without a split.
    pub without: usize,
    /// Number of runs of the startup.
    pub runs: usize,
}

/// Random orders of the classes with which a split is compared ...
const ORDERS: usize = 199;
/// ... and how many of them may have a split as good: with the split itself, 2 of 200.
const AS_GOOD: usize = 1;
/// Fewer runs than this show nothing.
const FEWEST: usize = 10;

/// The best split by one quantity, for classes in the order of its values.
struct Best {
    explained: usize,
    /// Runs below the threshold.
    at: usize,
    below: usize,
    above: usize,
}

/// The most frequent of the classes, the first of several.
fn most(counts: &[usize; 4]) -> usize {
    (0..4).rev().max_by_key(|c| counts[*c]).unwrap_or_default()
}

/// `order` has the runs sorted by value, `cuts` the places between different values.
fn best(classes: &[usize], order: &[usize], cuts: &[usize]) -> Option<Best> {
    let (mut below, mut above) = ([0; 4], [0; 4]);
    for c in classes {
        above[*c] += 1;
    }
    let mut found: Option<Best> = None;
    let mut done = 0;
    for cut in cuts {
        for run in &order[done..*cut] {
            below[classes[*run]] += 1;
            above[classes[*run]] -= 1;
        }
        done = *cut;
        let (b, a) = (most(&below), most(&above));
        let explained = below[b] + above[a];
        if b != a && found.as_ref().is_none_or(|f| explained > f.explained) {
            found = Some(Best { explained, at: *cut, below: b, above: a });
        }
    }
    found
}

/// The quantity that decides the class of one startup's runs; `None` if none does more than chance would.
pub fn split(rows: &[&Row]) -> Option<Split> {
    let index = |class| Class::ALL.iter().position(|c| *c == class).unwrap_or_default();
    let mut classes: Vec<usize> = rows.iter().map(|r| index(r.class)).collect();
    let mut counts = [0; 4];
    for c in &classes {
        counts[*c] += 1;
    }
    let without = counts[most(&counts)];
    if rows.len() < FEWEST || without == rows.len() {
        return None;
    }
    let mut quantities = Vec::new();
    for name in rows[0].drawn.keys() {
        let values: Vec<f64> = rows.iter().filter_map(|r| r.drawn.get(name).copied()).collect();
        if values.len() < rows.len() {
            continue;
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let cuts: Vec<usize> =
            (1..order.len()).filter(|i| values[order[i - 1]] < values[order[*i]]).collect();
        quantities.push((name, values, order, cuts));
    }
    let all = |classes: &[usize]| {
        let each = quantities.iter().enumerate();
        let found = each.filter_map(|(i, (_, _, order, cuts))| Some((i, best(classes, order, cuts)?)));
        // The first quantity of several as good.
        found.reduce(|a, b| if b.1.explained > a.1.explained { b } else { a })
    };
    let (which, found) = all(&classes)?;
    if found.explained <= without {
        return None;
    }
    let mut chance = Stream::named(0, "split");
    let mut as_good = 0;
    for _ in 0..ORDERS {
        for i in (1..classes.len()).rev() {
            classes.swap(i, chance.below(i as u64 + 1) as usize);
        }
        as_good += usize::from(all(&classes).is_some_and(|(_, b)| b.explained >= found.explained));
        if as_good > AS_GOOD {
            return None;
        }
    }
    let (name, values, order, _) = &quantities[which];
    Some(Split {
        quantity: (*name).clone(),
        threshold: f64::midpoint(values[order[found.at - 1]], values[order[found.at]]),
        below: Class::ALL[found.below],
        above: Class::ALL[found.above],
        explained: found.explained,
        without,
        runs: rows.len(),
    })
}

/// The splits of all startups of `rows` that have one, with their labels, in the order of the rows.
pub fn splits(rows: &[Row]) -> Vec<(String, Split)> {
    summarise(rows).into_iter().filter_map(|s| Some((s.label.clone(), split(&s.rows)?))).collect()
}

/// The splits of `rows` as sentences; startups with the same split share one.
pub fn sentences(rows: &[Row]) -> Vec<String> {
    let mut groups: Vec<(Split, Vec<String>)> = Vec::new();
    for (label, split) in splits(rows) {
        match groups.iter_mut().find(|(s, _)| *s == split) {
            Some((_, labels)) => labels.push(label),
            None => groups.push((split, vec![label])),
        }
    }
    groups.into_iter().map(|(split, labels)| split.sentence(&labels)).collect()
}

/// The key of a path behind a field of [`Row::drawn`]: the field without its unit.
pub fn key(field: &str) -> &str {
    let units = ["_bps", "_s", "_bytes", "_packets", "_bdp", "_share"];
    units.iter().find_map(|u| field.strip_suffix(u)).unwrap_or(field)
}

impl Split {
    /// `search leaves slow start by loss where rate is above 112 Mbit/s, and leaves slow start too early below it: true of 28 of 30 runs (93 %; without the split: 60 %).`
    fn sentence(&self, labels: &[String]) -> String {
        let several = labels.len() > 1;
        // Where the transfer ended first, a longer one may show how the startup leaves.
        let leaves = |class: Class| match class {
            Class::None => {
                format!("{} still in slow start when the transfer ends", if several { "are" } else { "is" })
            }
            class => class.verb(several),
        };
        let percent = |n: usize| (100.0 * n as f64 / self.runs as f64).round();
        format!(
            "{} {} where {} is above {}, and {} below it: true of {} of {} runs ({} %; the most frequent class alone: {} %).",
            words::list(labels),
            leaves(self.above),
            key(&self.quantity),
            self.value(),
            leaves(self.below),
            self.explained,
            self.runs,
            percent(self.explained),
            percent(self.without),
        )
    }

    /// The threshold with its unit.
    fn value(&self) -> String {
        let t = self.threshold;
        match self.quantity.rsplit('_').next() {
            Some("bps") => words::rate(t),
            Some("s") if t < 1.0 => format!("{} ms", words::number(t * 1e3)),
            Some("s") => format!("{} s", words::number(t)),
            Some("bytes") => words::bytes(t as u64),
            Some("packets") => format!("{} packets", words::number(t)),
            Some("bdp") => format!("{} BDP", words::number(t)),
            Some("share") => format!("{} %", words::number(t * 100.0)),
            _ => words::number(t),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::rows;

    /// Runs that drew a rate of 1 to `n` Mbit/s and something of no effect, each with the class for its rate.
    fn drawn(n: u64, class: impl Fn(u64) -> Class) -> Vec<Row> {
        let mut noise = Stream::named(3, "noise");
        let mut all = rows("search", &vec![7.0; n as usize]);
        for (i, row) in (1..=n).zip(&mut all) {
            row.drawn.insert("rate_bps".into(), i as f64 * 1e6);
            row.drawn.insert("queue_bytes".into(), noise.below(1000) as f64);
            row.class = class(i);
        }
        all
    }

    #[test]
    fn what_decides_is_found_with_its_threshold() {
        let all = drawn(30, |i| match i {
            7 => Class::Late,
            0..=20 => Class::LinkFull,
            _ => Class::Late,
        });
        let found = splits(&all);
        let want = Split {
            quantity: "rate_bps".into(),
            threshold: 20.5e6,
            below: Class::LinkFull,
            above: Class::Late,
            explained: 29,
            without: 19,
            runs: 30,
        };
        assert_eq!(found, [("search".to_string(), want)]);
        assert_eq!(
            sentences(&all),
            [
                "search leaves slow start by loss where rate is above 20.5 Mbit/s, and leaves slow start with the link full below it: true of 29 of 30 \
              runs (97 %; the most frequent class alone: 63 %)."
            ]
        );
    }

    #[test]
    fn chance_gives_no_sentence() {
        // Classes that no drawn value explains: of a hundred such studies one may have a split.
        let mut found = 0;
        for seed in 0..100 {
            let mut chance = Stream::named(seed, "class");
            let classes: Vec<bool> = (0..30).map(|_| chance.chance(400_000)).collect();
            let all = drawn(30, |i| if classes[i as usize - 1] { Class::Late } else { Class::Early });
            found += splits(&all).len();
        }
        assert!(found <= 4, "{found}");
        assert!(splits(&drawn(30, |_| Class::Early)).is_empty(), "one class");
        assert!(splits(&drawn(9, |i| if i < 5 { Class::Early } else { Class::Late })).is_empty(), "few runs");
        let mut fixed = drawn(30, |i| if i < 15 { Class::Early } else { Class::Late });
        for row in &mut fixed {
            row.drawn.clear();
        }
        assert!(splits(&fixed).is_empty(), "nothing drawn");
    }

    #[test]
    fn startups_with_the_same_split_share_a_sentence() {
        let one = drawn(30, |i| if i < 15 { Class::Early } else { Class::Late });
        let mut two = one.clone();
        for row in &mut two {
            row.startup = "standard".into();
        }
        let said = sentences(&[one, two].concat());
        assert_eq!(said.len(), 1);
        assert!(
            said[0]
                .starts_with("search and standard leave slow start by loss where rate is above 14.5 Mbit/s"),
            "{}",
            said[0]
        );
    }
}
