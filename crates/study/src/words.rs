//! Numbers, units and lists as text, the same on a terminal and on the page.

use crate::stats::Median;
use slowstart::registry;

/// What [`marked`] adds, for below a table.
pub const RECONSTRUCTED: &str = "~: reconstructed without its paper.";

/// The label of a startup in a table: with a tilde if it is reconstructed without its paper.
pub fn marked(label: &str) -> String {
    let name = label.split([':', ' ']).next().unwrap_or(label);
    let mark = if registry::named(name).is_some_and(|e| e.is_reconstructed) { "~" } else { "" };
    format!("{label}{mark}")
}

/// Returns the number of decimals for three significant digits, at most six. By comparison, since logarithms
/// differ between platforms.
fn decimals(x: f64) -> usize {
    let steps = [100.0, 10.0, 1.0, 0.1, 0.01, 0.001];
    steps.iter().position(|&step| x.abs() >= step).unwrap_or(steps.len())
}

/// Formats `x` with a number of decimals and separated thousands.
fn fixed(x: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", x.abs());
    let whole = text.find('.').unwrap_or(text.len());
    let mut out = String::from(if x < 0.0 { "-" } else { "" });
    for (i, c) in text.chars().enumerate() {
        if i > 0 && i < whole && (whole - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Formats a number with three significant digits, or all of a whole number: `0.113`, `7.42`, `31.2`,
/// `14,210`.
pub fn number(x: f64) -> String {
    fixed(x, if x.fract() == 0.0 { 0 } else { decimals(x) })
}

/// A number of things: `1 packet`, `1,003 packets`.
pub fn plural(n: u64, what: &str) -> String {
    format!("{} {what}{}", number(n as f64), if n == 1 { "" } else { "s" })
}

/// A median and its interval as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The text of the middle.
    pub mid: String,
    /// `7.31-7.60`, unless it reads the same as the middle.
    pub range: Option<String>,
}

/// Formats a median and its interval, all with the decimals of the median.
pub fn spread(m: &Median) -> Spread {
    let whole = [m.low, m.mid, m.high].iter().all(|x| x.fract() == 0.0);
    let places = if whole { 0 } else { decimals(m.mid) };
    let [low, mid, high] = [m.low, m.mid, m.high].map(|x| fixed(x, places));
    let range = (low != mid || high != mid).then(|| format!("{low}-{high}"));
    Spread { mid, range }
}

/// Formats `x` in the largest unit of which it is at least one; each unit is a thousand times the one before.
fn scaled(x: f64, units: &[&str]) -> String {
    let mut x = x;
    let mut at = 0;
    // A value that would be rounded to a thousand gets the next unit.
    while x >= 999.5 && at + 1 < units.len() {
        (x, at) = (x / 1000.0, at + 1);
    }
    format!("{} {}", number(x), units[at])
}

/// Formats a size: `216 MB`.
pub fn bytes(n: u64) -> String {
    scaled(n as f64, &["B", "kB", "MB", "GB", "TB"])
}

/// Formats a rate: `34.1 Mbit/s`.
pub fn rate(bps: f64) -> String {
    scaled(bps, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// Formats a delay of `ms` milliseconds: `61 ms`, `3.99 s`.
pub fn delay(ms: f64) -> String {
    if ms >= 999.5 {
        return format!("{} s", number(ms / 1e3));
    }
    format!("{} ms", if ms >= 10.0 { fixed(ms, 0) } else { number(ms) })
}

/// Formats a window in BDP: `2.9 % of the BDP`, `7.8 times the BDP`.
pub fn share_of_bdp(bdps: f64) -> String {
    let two = |x: f64| fixed(x, usize::from(x.abs() < 9.95));
    if bdps < 0.995 {
        format!("{} % of the BDP", two(bdps * 100.0))
    } else {
        format!("{} times the BDP", two(bdps))
    }
}

/// Formats a multiple with two digits: `0.029`, `7.8`, `18`.
pub fn two_digits(x: f64) -> String {
    let steps = [9.95, 0.995, 0.0995, 0.00995];
    fixed(x, steps.iter().position(|&step| x.abs() >= step).unwrap_or(steps.len()))
}

/// Formats a difference of `x` percent or points with its sign: `-41`, `+3`, `0`. Between -1 and 1 it has a
/// decimal.
pub fn signed(x: f64) -> String {
    let text = fixed(x.abs(), usize::from(x.abs() < 0.95));
    match text.as_str() {
        "0.0" => "0".to_string(),
        _ if x < 0.0 => format!("-{text}"),
        _ => format!("+{text}"),
    }
}

/// Joins items: `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// As many of `labels` as fit into `room` columns, at least one, and how many more there are.
pub fn name_group(labels: &[String], room: usize) -> String {
    let name = |shown: usize| {
        let names = labels[..shown].join(", ");
        if shown < labels.len() { format!("{names}, {} more", labels.len() - shown) } else { names }
    };
    let fits = |shown: &usize| name(*shown).chars().count() <= room;
    name((1..=labels.len()).rev().find(fits).unwrap_or(1))
}

/// What stands behind a number and stays on its line.
pub const UNITS: [&str; 22] = [
    "%", "B", "kB", "MB", "GB", "KiB", "MiB", "bytes", "s", "ms", "us", "µs", "ns", "min", "h", "bit/s",
    "kbit/s", "Mbit/s", "Gbit/s", "BDP", "pt", "points",
];
/// A space at which no line breaks.
pub const TIE: char = '\u{a0}';

/// `text` with a number and its unit tied, so that no line breaks between them.
pub fn tied(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end_matches(|c: char| c.is_whitespace() || ",.;:)?!\"".contains(c));
        let number = out.strip_suffix(' ').is_some_and(|o| o.ends_with(|c: char| c.is_ascii_digit()));
        if number && UNITS.contains(&bare) {
            out.pop();
            out.push(TIE);
        }
        out += word;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reconstructed_startup_has_a_mark() {
        let shown = ["hybla", "stopeg", "stopeg:threshold=0.5", "mine"].map(marked);
        assert_eq!(shown, ["hybla", "stopeg~", "stopeg:threshold=0.5~", "mine"]);
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.01234, 0.1131, 7.4219, 31.24, 216.4, 14_210.0, 1_234_567.2].map(number);
        assert_eq!(shown, ["0", "0.0123", "0.113", "7.42", "31.2", "216", "14,210", "1,234,567"]);
        assert_eq!(number(-1234.5), "-1,234");
    }

    #[test]
    fn a_spread_is_shown_if_there_is_one() {
        let of = |low, mid, high| spread(&Median { mid, low, high });
        assert_eq!(of(7.31, 7.42, 7.6), Spread { mid: "7.42".into(), range: Some("7.31-7.60".into()) });
        assert_eq!(of(7.42, 7.42, 7.42).range, None);
        assert_eq!(of(9.0, 10.0, 12.0).range.as_deref(), Some("9-12"));
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(tied("10 squares and 4 s, 3 of 5\nx"), "10 squares and 4\u{a0}s, 3 of 5\nx");
    }

    #[test]
    fn units_fit() {
        assert_eq!(bytes(216_000_000), "216 MB");
        assert_eq!(bytes(1_000_000), "1 MB");
        assert_eq!(rate(34_120_000.0), "34.1 Mbit/s");
    }

    #[test]
    fn items_are_joined() {
        let words = ["a", "b", "c"].map(String::from);
        assert_eq!(
            [&words[..0], &words[..1], &words[..2], &words].map(list),
            ["", "a", "a and b", "a, b and c"]
        );
    }
}
