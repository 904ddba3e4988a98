//! Ensembles: values of a path that each run draws from its seed.
//!
//! A value may be a distribution in place of a number:
//!
//! | written | drawn |
//! |---|---|
//! | `20..70Mbit` | uniformly between the two; the unit of the second holds for the first if that has none |
//! | `log(1..100ms)` | uniformly in the logarithm |
//! | <code>20Mbit*3\|50Mbit</code> | one of the list, with these weights (1 where none is given); an item may be a range |
//! | `300..900kB~rate` | at the rank that the key `rate` was drawn at: its lowest value with the lowest rate |
//! | `300..900kB~-rate` | at the opposite rank: its highest value with the lowest rate |
//! | <code>a.down\|b.down</code> | one of these traces; as a number it is its place in the list, from 0 |
//!
//! Each value is drawn from a stream of its own, named after its key, so that one more distribution in a path
//! leaves the draws of the others as they were.

use slowstart::units::mul_div;

use super::quantity::{self, AMOUNTS, RATES, SPANS};
use super::queue::Discipline;
use crate::random::Stream;

/// Keys whose values are not numbers.
const FIXED: &[&str] = &[
    "name",
    "about",
    "sources",
    "fixed",
    "trace_start",
    "delay_trace",
    "loss_trace",
    "link",
    "ack_filter",
    "gemodel",
    "netem",
    "ack_netem",
    "ack_gemodel",
    "fade",
    "handover_loss",
    "outage",
    "then",
    "proxy",
    "host_queue",
    "proxy_buffer",
    "proxy_startup",
    "reorder",
    "ack_reorder",
    "second_route",
    "ack_second_route",
];
/// Keys whose values are counts: their plain numbers are whole.
const COUNTS: &[&str] = &["drop", "drop_ack", "drop_syn", "drop_synack"];
/// Keys whose values have several parts, each of which may be drawn.
const COMPOSITE: &[&str] = &["random_drop", "schedule", "drop", "drop_ack"];
/// The key whose items are names of files.
const FILES: &str = "trace";
/// The most items of a list.
const MOST_ITEMS: usize = 100;
/// Above this many of the smallest unit, a value is written in thousands of it: numbers of a path have six
/// decimal places in 64 bits.
const MANY: u64 = 1_000_000_000_000;

/// What a number counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Unit {
    /// A rate, in bits a second.
    Rate,
    /// A time, in nanoseconds.
    Time,
    Bytes,
    Packets,
    /// Millionths of a bandwidth-delay product.
    Bdp,
    /// A share, in millionths of one.
    Share,
    /// A number of things, in ones.
    Count,
    /// The place of a file in the list of files.
    File,
}

impl Unit {
    /// The suffix of a row's field.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Rate => "_bps",
            Self::Time => "_s",
            Self::Bytes => "_bytes",
            Self::Packets => "_packets",
            Self::Bdp => "_bdp",
            Self::Share => "_share",
            Self::Count | Self::File => "",
        }
    }

    /// How many of the smallest unit make one of a row's field.
    const fn scale(self) -> f64 {
        match self {
            Self::Time => 1e9,
            Self::Bdp | Self::Share => 1e6,
            Self::Rate | Self::Bytes | Self::Packets | Self::Count | Self::File => 1.0,
        }
    }

    /// `n` of the smallest unit as a path has it.
    fn text(self, n: u64) -> String {
        let decimal = |n: u64| format!("{}.{:06}", n / 1_000_000, n % 1_000_000);
        let large = |n: u64, small: &str, thousands: &str| {
            if n < MANY { format!("{n}{small}") } else { format!("{}{thousands}", n / 1000) }
        };
        match self {
            Self::Rate => large(n, "bit", "kbit"),
            Self::Time => large(n, "ns", "us"),
            Self::Bytes => large(n, "B", "kB"),
            Self::Packets => format!("{n}packets"),
            Self::Bdp => decimal(n) + "bdp",
            Self::Share => decimal(n),
            Self::Count | Self::File => n.to_string(),
        }
    }
}

/// A number with its unit, in the smallest unit of its kind.
fn number(text: &str, unit: &str, counts: bool) -> Option<(Unit, u64)> {
    let millionths = quantity::decimal(text)?;
    let of =
        |units: &[(&str, u64)], unit: &str| units.iter().find(|(name, _)| *name == unit).map(|(_, n)| *n);
    let (kind, scale) = match unit.strip_suffix("/s").filter(|u| !u.ends_with("ps")).unwrap_or(unit) {
        "" if counts => (Unit::Count, 1),
        "" => (Unit::Share, 1_000_000),
        "%" => (Unit::Share, 10_000),
        "bdp" => (Unit::Bdp, 1_000_000),
        "packets" | "packet" => (Unit::Packets, 1),
        u => of(RATES, u)
            .map(|n| (Unit::Rate, n))
            .or_else(|| of(SPANS, unit).map(|n| (Unit::Time, n)))
            .or_else(|| of(AMOUNTS, unit).map(|n| (Unit::Bytes, n)))?,
    };
    let whole = matches!(kind, Unit::Count | Unit::Packets);
    if whole && millionths % 1_000_000 != 0 {
        return None;
    }
    Some((kind, mul_div(millionths, scale, 1_000_000)))
}

/// A number and the unit after it.
fn split_unit(text: &str) -> (&str, &str) {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..at], text[at..].trim())
}

/// One item of a distribution: a number, or a range of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Item {
    low: u64,
    high: u64,
    /// Uniform in the logarithm.
    log: bool,
    /// In millionths.
    weight: u64,
}

impl Item {
    /// The value at a rank, a fraction of 2^64.
    fn at(&self, rank: u64) -> u64 {
        if !self.log {
            let width = u128::from(self.high - self.low) + 1;
            return self.low + ((u128::from(rank) * width) >> 64) as u64;
        }
        let (low, high) = (libm::log(self.low as f64), libm::log(self.high as f64));
        let value = libm::exp(low + (high - low) * (rank as f64 / 2_f64.powi(64)));
        (value as u64).clamp(self.low, self.high)
    }
}

/// One drawn number of a path.
#[derive(Clone, Debug)]
pub(super) struct Law {
    /// The key of the path.
    pub(super) key: String,
    /// The name of the field in a row: the key and its unit.
    pub(super) name: String,
    /// As written.
    pub(super) text: String,
    unit: Unit,
    items: Vec<Item>,
    /// The key whose rank it takes, and whether it takes the opposite one.
    follows: Option<(String, bool)>,
}

impl Law {
    /// The values of an item's ends, item by item: where a check of all values has to look.
    pub(super) fn ends(&self) -> impl Iterator<Item = u64> {
        self.items.iter().flat_map(|i| [i.low, i.high])
    }

    /// The least value and the greatest.
    pub(super) fn bounds(&self) -> (u64, u64) {
        let low = self.items.iter().map(|i| i.low).min().unwrap_or_default();
        (low, self.items.iter().map(|i| i.high).max().unwrap_or_default())
    }

    /// The value at a rank, a fraction of 2^64: items share the ranks by their weights, in the order of the
    /// list.
    fn at(&self, rank: u64) -> u64 {
        let total: u64 = self.items.iter().map(|i| i.weight).sum();
        let mut place = u128::from(rank) * u128::from(total);
        for item in &self.items {
            let width = u128::from(item.weight) << 64;
            if place < width {
                return item.at((place / u128::from(item.weight)) as u64);
            }
            place -= width;
        }
        self.bounds().1
    }

    /// The files of a list of files, in its order.
    pub(super) fn names(&self) -> Vec<&str> {
        let items = self.text.split('~').next().unwrap_or_default();
        items.split('|').map(|item| weighted(item).map_or(item, |i| i.0)).collect()
    }

    /// A value as a path has it.
    pub(super) fn write(&self, value: u64) -> String {
        if self.unit == Unit::File {
            return self.names().get(value as usize).copied().unwrap_or_default().to_string();
        }
        self.unit.text(value)
    }

    /// A value as a row has it.
    pub(super) fn read(&self, value: u64) -> f64 {
        value as f64 / self.unit.scale()
    }
}

/// True if a value of this key is a distribution, or tries to be one.
pub(super) fn is_distribution(key: &str, value: &str) -> bool {
    if key == FILES {
        return value.contains('|');
    }
    !FIXED.contains(&key) && (value.contains("..") || value.contains(['|', '*', '~', '(']))
}

/// The parts of a value, with what separates them: `25%`, `@`, `18MB`.
pub(super) fn parts<'a>(key: &str, value: &'a str) -> Vec<&'a str> {
    if ["queue", "ack_queue"].contains(&key) && Discipline::is_meant(value) {
        return value
            .split_inclusive([' ', '='])
            .flat_map(|part| {
                let text = part.trim_end_matches([' ', '=']);
                [text, &part[text.len()..]]
            })
            .collect();
    }
    if !COMPOSITE.contains(&key) {
        return vec![value];
    }
    let mut all = Vec::new();
    for part in value.split_inclusive([',', ':', '@']) {
        let text = part.trim_end_matches([',', ':', '@']);
        all.push(text);
        all.push(&part[text.len()..]);
    }
    all
}

/// The distribution that a part of a key's value is.
///
/// # Errors
/// What was expected in place of it.
pub(super) fn law(key: &str, text: &str) -> Result<Law, String> {
    let counts = COUNTS.contains(&key);
    let (items, follows) = match text.split_once('~') {
        None => (text, None),
        Some((items, of)) => {
            let (of, opposite) = of.strip_prefix('-').map_or((of, false), |of| (of, true));
            if of.is_empty() || of == key {
                return Err("the name of another key after ~, such as 300..900kB~rate".into());
            }
            (items, Some((of.to_string(), opposite)))
        }
    };
    let mut unit = None;
    let mut all = Vec::new();
    for (place, item) in items.split('|').enumerate() {
        let (kind, item) = match key {
            FILES => file(item, place as u64)?,
            _ => self::item(item.trim(), counts)?,
        };
        all.push(item);
        // Nothing is nothing in any unit.
        if (item.low, item.high) == (0, 0) && kind == Unit::Share {
            continue;
        }
        if *unit.get_or_insert(kind) != kind {
            return Err("units of one kind in all of the list, such as 20Mbit|50Mbit".into());
        }
    }
    if all.len() > MOST_ITEMS {
        return Err(format!("at most {MOST_ITEMS} items in the list"));
    }
    let unit = unit.unwrap_or(Unit::Share);
    let name = format!("{key}{}", unit.suffix());
    Ok(Law { key: key.into(), name, text: text.into(), unit, items: all, follows })
}

/// An item without its weight, and its weight.
fn weighted(text: &str) -> Result<(&str, u64), String> {
    let Some((text, weight)) = text.rsplit_once('*') else { return Ok((text.trim(), 1_000_000)) };
    let parsed = quantity::decimal(weight.trim()).filter(|w| (1..=1_000_000_000_000).contains(w));
    Ok((text.trim(), parsed.ok_or("a weight above 0 after *, such as 20Mbit*3|50Mbit")?))
}

/// A file of a list.
fn file(text: &str, place: u64) -> Result<(Unit, Item), String> {
    let (name, weight) = weighted(text)?;
    if name.is_empty() {
        return Err("the name of a file at each place of the list, such as a.down|b.down".into());
    }
    Ok((Unit::File, Item { low: place, high: place, log: false, weight }))
}

fn item(text: &str, counts: bool) -> Result<(Unit, Item), String> {
    let (text, weight) = weighted(text)?;
    let (text, log) = match text.strip_prefix("log(").and_then(|t| t.strip_suffix(')')) {
        Some(inner) => (inner.trim(), true),
        None => (text, false),
    };
    let Some((low, high)) = text.split_once("..") else {
        let (digits, suffix) = split_unit(text);
        let (kind, value) =
            number(digits, suffix, counts).ok_or("a number with its unit, or a range such as 20..70Mbit")?;
        if log {
            return Err("a range in log(), such as log(20..70Mbit)".into());
        }
        return Ok((kind, Item { low: value, high: value, log, weight }));
    };
    let range = "a range such as 20..70Mbit: two numbers, the second with its unit";
    let ((low, low_unit), (high, high_unit)) = (split_unit(low.trim()), split_unit(high.trim()));
    let low_unit = if low_unit.is_empty() { high_unit } else { low_unit };
    let (low_kind, low) = number(low, low_unit, counts).ok_or(range)?;
    let (kind, high) = number(high, high_unit, counts).ok_or(range)?;
    if low_kind != kind {
        return Err("units of one kind at both ends of the range, such as 900kbit..2Mbit".into());
    }
    if low >= high {
        return Err("a range whose second number is greater than its first, such as 20..70Mbit".into());
    }
    if log && low == 0 {
        return Err("a range in log() that begins above 0, such as log(1..100ms)".into());
    }
    Ok((kind, Item { low, high, log, weight }))
}

/// Each law's value under a seed.
pub(super) fn draw(laws: &[Law], seed: u64) -> Vec<u64> {
    values(laws, |law| Stream::named(seed, &format!("draw.{}", law.name)).any())
}

/// Each law's median.
pub(super) fn middle(laws: &[Law]) -> Vec<u64> {
    values(laws, |_| 1 << 63)
}

fn values(laws: &[Law], rank: impl Fn(&Law) -> u64) -> Vec<u64> {
    let each = |law: &Law| match &law.follows {
        None => law.at(rank(law)),
        Some((of, opposite)) => {
            let leader = laws.iter().find(|l| l.key == *of).map_or(0, &rank);
            law.at(if *opposite { !leader } else { leader })
        }
    };
    laws.iter().map(each).collect()
}

/// What is wrong with the laws together, if anything is: the law and what was expected.
pub(super) fn refused(laws: &[Law]) -> Option<(&Law, String)> {
    laws.iter().find_map(|law| {
        let (of, _) = law.follows.as_ref()?;
        let leads = laws.iter().any(|l| l.key == *of && l.follows.is_none());
        (!leads).then(|| {
            (law, "a key after ~ that has a distribution of its own, such as 300..900kB~rate".to_string())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(key: &str, text: &str, runs: u64) -> Vec<f64> {
        let law = law(key, text).unwrap_or_else(|e| panic!("{text}: {e}"));
        (0..runs).map(|seed| law.read(draw(std::slice::from_ref(&law), seed)[0])).collect()
    }

    fn share(values: &[f64], of: impl Fn(f64) -> bool) -> f64 {
        values.iter().filter(|v| of(**v)).count() as f64 / values.len() as f64
    }

    #[test]
    fn a_range_is_uniform_and_a_logarithm_is_uniform_in_it() {
        let v = drawn("rate", "20..70Mbit", 10_000);
        assert!(v.iter().all(|v| (20e6..=70e6).contains(v)));
        // Five standard deviations of a binomial (10000, 1/5): 0.02.
        for k in 0..5 {
            let low = 20e6 + 10e6 * f64::from(k);
            let part = share(&v, |v| v >= low && v < low + 10e6);
            assert!((part - 0.2).abs() < 0.02, "{low}: {part}");
        }
        let v = drawn("jitter", "log(1..100ms)", 10_000);
        assert!(v.iter().all(|v| (0.001..=0.1).contains(v)));
        let part = share(&v, |v| v < 0.01);
        assert!((part - 0.5).abs() < 0.025, "{part}");
    }

    #[test]
    fn a_list_keeps_its_weights() {
        let v = drawn("queue", "100packets*3|300packets|500..600packets*1", 10_000);
        for (low, high, want) in [(100.0, 100.0, 0.6), (300.0, 300.0, 0.2), (500.0, 600.0, 0.2)] {
            let part = share(&v, |v| v >= low && v <= high);
            assert!((part - want).abs() < 0.025, "{low}: {part}");
        }
    }

    #[test]
    fn ranks_follow() {
        let laws = ["20..70Mbit", "log(300..900kB)~rate", "5ms|10ms|20..30ms~-rate"];
        let keys = ["rate", "queue", "jitter"];
        let laws: Vec<Law> = keys.iter().zip(laws).map(|(k, t)| law(k, t).expect("good")).collect();
        assert!(refused(&laws).is_none());
        let mut all: Vec<Vec<u64>> = (0..500).map(|seed| draw(&laws, seed)).collect();
        all.sort();
        for pair in all.windows(2) {
            assert!(pair[0][1] <= pair[1][1] && pair[0][2] >= pair[1][2], "{pair:?}");
        }
        assert!(refused(&laws[1..]).is_some(), "its leader is not there");
    }

    #[test]
    fn one_more_law_leaves_the_others_alone() {
        let a = law("rate", "20..70Mbit").expect("good");
        let b = law("queue", "1..2bdp").expect("good");
        assert_eq!(draw(&[a.clone(), b], 5)[0], draw(&[a], 5)[0]);
    }

    #[test]
    fn what_is_written_is_what_is_drawn() {
        for (key, text, low, high, name) in [
            ("rate", "900kbit..2Mbit", "900000bit", "2000000bit", "rate_bps"),
            ("rtt", "0.5..1s", "500000000ns", "1000000000ns", "rtt_s"),
            ("rtt", "1000..2000s", "1000000000us", "2000000000us", "rtt_s"),
            ("queue", "0.5..1.25bdp", "0.500000bdp", "1.250000bdp", "queue_bdp"),
            ("queue", "1..2MiB", "1048576B", "2097152B", "queue_bytes"),
            ("loss", "0.1..2%", "0.001000", "0.020000", "loss_share"),
            ("drop_syn", "0..2", "0", "2", "drop_syn"),
        ] {
            let law = law(key, text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let (a, b) = law.bounds();
            assert_eq!((law.write(a).as_str(), law.write(b).as_str()), (low, high), "{text}");
            assert_eq!(law.name, name);
        }
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for (key, text, expected) in [
            ("rate", "70..20Mbit", "a range whose second number is greater"),
            ("rate", "20..20Mbit", "a range whose second number is greater"),
            ("rate", "..Mbit", "a range such as 20..70Mbit"),
            ("rate", "20..", "a range such as 20..70Mbit"),
            ("rate", "20..70Mbits", "a range such as 20..70Mbit"),
            ("rate", "20ms..70Mbit", "units of one kind at both ends"),
            ("rate", "20Mbit|50ms", "units of one kind in all"),
            ("rate", "20Mbit*0|50Mbit", "a weight above 0"),
            ("rate", "20Mbit*|50Mbit", "a weight above 0"),
            ("rate", "20Mbit|", "a number with its unit"),
            ("rate", "log(20Mbit)", "a range in log()"),
            ("jitter", "log(0..5ms)", "a range in log() that begins above 0"),
            ("queue", "1..2.5packets", "a range such as"),
            ("queue", "1..2bdp~", "the name of another key"),
            ("queue", "1..2bdp~queue", "the name of another key"),
        ] {
            let found = law(key, text).expect_err(text);
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[0-9.a-zA-Z%|*~()-]{0,30}", rank in any::<u64>()) {
            for key in ["rate", "drop"] {
                if let Ok(law) = law(key, &text) {
                    let (low, high) = law.bounds();
                    prop_assert!((low..=high).contains(&law.at(rank)));
                    let _ = law.write(law.at(rank));
                }
            }
        }
    }
}
