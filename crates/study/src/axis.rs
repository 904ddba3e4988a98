//! Axes: several values of one key, written as a list, a range or a logarithmic range.
//!
//! | written | values |
//! |---|---|
//! | `10,50,200Mbit` | each of the list; a number without a unit has that of the last |
//! | `20..300ms/8` | so many, evenly spaced, both ends included |
//! | `log(1..100Mbit)/5` | so many, evenly spaced in the logarithm, both ends included |
//!
//! Without the number of points, `20..300ms` and `log(1..100Mbit)` are distributions (see [`slowstart_sim::path`]),
//! from which each run draws.

use slowstart_sim::path::{PATH_KEYS, quantity};
use thiserror::Error;

/// The most values of an axis.
pub const MOST_VALUES: usize = 100_000;
/// The most paths that a line may stand for.
const MOST_PATHS: usize = 1000;

/// What is wrong with an axis.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: found {found:?}, expected {expected}")]
pub struct AxisError {
    /// The key whose value is wrong.
    pub key: String,
    /// The value that was found.
    pub found: String,
    /// What was expected in its place.
    pub expected: String,
}

fn bad(key: &str, found: &str, expected: &str) -> AxisError {
    AxisError { key: key.into(), found: found.into(), expected: expected.into() }
}

/// A number and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..at].parse().ok()?, text[at..].trim()))
}

/// A number as a path may have it: at most six decimal places, none that are zero at the end.
fn decimal(x: f64) -> String {
    let text = format!("{x:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The ends of `a..bUNIT` or `log(a..bUNIT)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    low: f64,
    high: f64,
    unit: String,
    log: bool,
}

impl Range {
    /// Reads a range of the key.
    ///
    /// # Errors
    /// If it is none, or its ends do not ascend.
    pub fn parse(key: &str, text: &str) -> Result<Self, AxisError> {
        let expected = "a range such as 20..300ms or log(1..100Mbit), its first number below its second and in log() above zero";
        let refuse = || bad(key, text, expected);
        let (inner, log) = match text.trim().strip_prefix("log(") {
            Some(rest) => (rest.strip_suffix(')').ok_or_else(refuse)?, true),
            None => (text.trim(), false),
        };
        let (low, high) = inner.split_once("..").ok_or_else(refuse)?;
        let ((low, of_low), (high, unit)) = number(low).zip(number(high)).ok_or_else(refuse)?;
        // The ends may have different units only if both are of one kind; the points then have the second's.
        let low = if of_low.is_empty() || of_low == unit {
            low
        } else {
            let scale = |unit: &str| value(&format!("1{unit}"));
            low * scale(of_low).zip(scale(unit)).map(|(a, b)| a / b).ok_or_else(refuse)?
        };
        let valid = low < high && (!log || low > 0.0);
        valid.then(|| Self { low, high, unit: unit.to_string(), log }).ok_or_else(refuse)
    }

    /// The value at a share of the way from its first end to its second, with its unit.
    pub fn at(&self, share: f64) -> String {
        let x = if self.log {
            libm::exp(libm::log(self.low) + (libm::log(self.high) - libm::log(self.low)) * share)
        } else {
            self.low + (self.high - self.low) * share
        };
        let x = if share >= 1.0 { self.high } else { x.clamp(self.low, self.high) };
        format!("{}{}", decimal(x), self.unit)
    }
}

/// The values of an axis as written.
///
/// # Errors
/// If there is no value, or a range has no points, too many, or ends that do not ascend.
pub fn values(key: &str, text: &str) -> Result<Vec<String>, AxisError> {
    if let Some((range, points)) = text.rsplit_once('/').filter(|(range, _)| range.contains("..")) {
        let range = Range::parse(key, range)?;
        let n: usize = points.trim().parse().unwrap_or(0);
        if !(2..=MOST_VALUES).contains(&n) {
            return Err(bad(key, text, "a range with 2 to 100000 points, such as 20..300ms/8"));
        }
        return Ok((0..n).map(|i| range.at(i as f64 / (n - 1) as f64)).collect());
    }
    if text.contains("..") {
        return Err(bad(key, text, "a number of points after the range, such as 20..300ms/8"));
    }
    let pieces: Vec<&str> = text.split(',').map(str::trim).collect();
    if pieces.iter().any(|p| p.is_empty()) {
        return Err(bad(key, text, "values such as 10,50,200Mbit"));
    }
    let unit = pieces.last().and_then(|last| number(last)).map_or("", |(_, unit)| unit);
    let with_unit = |piece: &&str| match number(piece) {
        Some((_, "")) => format!("{piece}{unit}"),
        _ => (*piece).to_string(),
    };
    Ok(pieces.iter().map(with_unit).collect())
}

/// A value as a number in the unit of rows (bit/s, seconds, bytes, shares of one, bandwidth-delay products,
/// packets), if it is one.
pub fn value(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = |text: &str| text.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0);
    let (x, unit) = number(text)?;
    match unit {
        "" | "bdp" | "packets" | "packet" => Some(x),
        "%" => plain(text.strip_suffix('%')?).map(|x| x / 100.0),
        _ => quantity::rate(text)
            .map(|r| r.0 as f64)
            .or_else(|| quantity::some_span(text).map(slowstart::units::Span::as_secs_f64))
            .or_else(|| quantity::bytes(text).map(|b| b.0 as f64)),
    }
}

/// The paths that an inline path stands for: one for each combination of the values of its axes, the first
/// axis slowest. A line without axes stands for itself.
///
/// # Errors
/// If an axis is wrong, or there are too many paths.
pub fn paths(line: &str) -> Result<Vec<String>, AxisError> {
    let mut all = vec![String::new()];
    // A quoted value is never an axis, and its spaces separate nothing.
    let mut quoted = false;
    let words = line.split(|c: char| {
        quoted ^= c == '"';
        !quoted && c.is_ascii_whitespace()
    });
    for word in words.filter(|w| !w.is_empty()) {
        let choices = match word.split_once('=') {
            Some((key, text)) if is_axis(key, text) => {
                values(key, text)?.into_iter().map(|v| format!("{key}={v}")).collect()
            }
            _ => vec![word.to_string()],
        };
        if all.len() * choices.len() > MOST_PATHS {
            return Err(bad("path", line, "at most 1000 paths; `slowstart sweep` runs more"));
        }
        let with = |path: &String, word: &String| {
            if path.is_empty() { word.clone() } else { format!("{path} {word}") }
        };
        all = all.iter().flat_map(|path| choices.iter().map(move |w| with(path, w))).collect();
    }
    Ok(all)
}

/// True if a value of a path's key is written as an axis: a range with a number of points, or a list of a key
/// that takes one quantity.
fn is_axis(key: &str, text: &str) -> bool {
    let quantity = PATH_KEYS.iter().any(|k| k.name == key && k.is_quantity());
    let list = text.contains(',') && text.split(',').all(|p| number(p).is_some());
    let range = text.contains("..")
        && text.rsplit_once('/').is_some_and(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()));
    quantity && (list || range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        values("rate", text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn lists_ranges_and_logarithmic_ranges() {
        assert_eq!(read("10,50,200Mbit"), ["10Mbit", "50Mbit", "200Mbit"]);
        assert_eq!(read("500kbit,2Mbit"), ["500kbit", "2Mbit"]);
        assert_eq!(read("20..300ms/8")[..2], ["20ms", "60ms"]);
        assert_eq!(read("20..300ms/8")[7], "300ms");
        assert_eq!(read("log(1..100Mbit)/3"), ["1Mbit", "10Mbit", "100Mbit"]);
        assert_eq!(read("0.25..1bdp/4"), ["0.25bdp", "0.5bdp", "0.75bdp", "1bdp"]);
        assert_eq!(read("500kbit..2Mbit/4"), ["0.5Mbit", "1Mbit", "1.5Mbit", "2Mbit"]);
        assert_eq!(read("1MB"), ["1MB"]);
    }

    #[test]
    fn bad_axes_are_refused() {
        for (text, expected) in [
            ("20..300ms/0", "2 to 100000 points"),
            ("20..300ms/1", "2 to 100000 points"),
            ("20..300ms/-4", "2 to 100000 points"),
            ("300..20ms/4", "first number below its second"),
            ("20..20ms/4", "first number below its second"),
            ("log(0..20ms)/4", "in log() above zero"),
            ("20ms..3MB/4", ""),
            ("20..300ms", "a number of points"),
            ("", "values such as"),
            ("1,,2", "values such as"),
        ] {
            match values("rtt", text) {
                Err(e) => assert!(e.to_string().contains(expected), "{text}: {e}"),
                Ok(v) => assert!(expected.is_empty(), "{text}: {v:?}"),
            }
        }
    }

    #[test]
    fn values_have_the_units_of_rows() {
        for (text, x) in
            [("50Mbit", 5e7), ("20ms", 0.02), ("1MB", 1e6), ("1%", 0.01), ("4", 4.0), ("0.5bdp", 0.5)]
        {
            assert_eq!(value(text), Some(x), "{text}");
        }
        assert_eq!(value("search"), None);
    }

    #[test]
    fn an_inline_path_with_axes_stands_for_several() {
        let all = paths("rate=10,50Mbit rtt=20..40ms/2 queue=1bdp").expect("axes");
        assert_eq!(all[0], "rate=10Mbit rtt=20ms queue=1bdp");
        assert_eq!(all[3], "rate=50Mbit rtt=40ms queue=1bdp");
        assert_eq!(all.len(), 4);
        // Values with commas and ranges of their own stay as they are.
        let same = "rate=8..80Mbit rtt=40ms gemodel=1%,10% drop=1,5,10-20 queue=\"codel target=5ms\"";
        assert_eq!(paths(same).expect("no axes"), [same]);
        assert!(paths("rate=1..100Mbit/100 rtt=1..100ms/100").is_err());
    }
}
