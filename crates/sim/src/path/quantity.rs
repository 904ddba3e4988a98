//! Parses quantities: `100Mbit`, `40ms`, `36MB`, `1%`. A parser returns `None` for anything else; its caller
//! knows the key and reports what was expected.

use slowstart::units::{Bytes, Fixed, Instant, Rate, Span, mul_div};

/// The units of a rate, in bit/s; `/s` may follow.
pub(super) const RATES: &[(&str, u64)] = &[
    ("Gbit", 1_000_000_000),
    ("Mbit", 1_000_000),
    ("kbit", 1_000),
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("Kbit", 1_000),
    ("bit", 1),
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("kbps", 1_000),
    ("bps", 1),
    ("Gb", 1_000_000_000),
    ("Mb", 1_000_000),
    ("kb", 1_000),
];
/// The units of a length of time, in nanoseconds. The longer names stand first: `s` ends them all.
pub(super) const SPANS: &[(&str, u64)] = &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
/// The units of an amount, in bytes.
pub(super) const AMOUNTS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Below this a single packet takes more than ten seconds.
pub(super) const LEAST_RATE: Rate = Rate(1_000);
/// Far above any link, far below what would overflow.
const MOST_RATE: Rate = Rate(100_000_000_000_000);
/// Eleven days: longer than any run, far below what would overflow.
const MOST_SPAN: Span = Span::secs(1_000_000);

/// A decimal number and one of the units, perhaps with a space between.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, scale) = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))?;
    let number = decimal(number.trim_end())?;
    Some(mul_div(number, scale, Fixed::ONE as u64))
}

/// A decimal number of up to six places and without sign, in millionths.
pub(super) fn decimal(text: &str) -> Option<u64> {
    u64::try_from(Fixed::parse(text).filter(|_| !text.starts_with('-'))?.0).ok()
}

/// A whole number without sign.
pub(super) fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A rate that a link may have: from 1 kbit/s to 100 Tbit/s.
pub fn rate(text: &str) -> Option<Rate> {
    let text = text.trim();
    let bits = text.strip_suffix("/s").filter(|t| !t.ends_with("ps")).unwrap_or(text);
    let rate = Rate(with_unit(bits, RATES)?);
    (LEAST_RATE..=MOST_RATE).contains(&rate).then_some(rate)
}

/// A length of time, from zero to eleven days; zero needs no unit.
pub(super) fn span(text: &str) -> Option<Span> {
    if text.trim() == "0" {
        return Some(Span::ZERO);
    }
    Some(Span(with_unit(text.trim(), SPANS)?)).filter(|s| *s <= MOST_SPAN)
}

/// A length of time above zero.
pub fn some_span(text: &str) -> Option<Span> {
    span(text).filter(|s| *s > Span::ZERO)
}

/// An amount of bytes.
pub fn bytes(text: &str) -> Option<Bytes> {
    with_unit(text.trim(), AMOUNTS).map(Bytes)
}

/// A share from 0 to 1, as `1%` or `0.01`, in millionths.
pub(super) fn share(text: &str) -> Option<u32> {
    let text = text.trim();
    let millionths = match text.strip_suffix('%') {
        Some(percent) => decimal(percent.trim_end())? / 100,
        None => decimal(text)?,
    };
    u32::try_from(millionths).ok().filter(|m| *m <= 1_000_000)
}

/// Positions in a sequence, from 1, as `1,5,10-20`: ranges with both ends in them, sorted and apart.
pub(super) fn places(text: &str) -> Option<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (whole(from.trim())?, whole(to.trim())?);
        if from == 0 || to < from {
            return None;
        }
        ranges.push((from, to));
    }
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let touch = next.0 <= last.1;
        if touch {
            last.1 = last.1.max(next.1);
        }
        touch
    });
    Some(ranges)
}

/// Rates from moments on, as `0s:12Mbit,7s:48Mbit`: from 0 s, in order of time. A rate may be `0bit` (an
/// outage), but not the last, which holds for ever.
pub(super) fn schedule(text: &str) -> Option<Vec<(Instant, Rate)>> {
    let mut steps: Vec<(Instant, Rate)> = Vec::new();
    for part in text.split(',') {
        let (from, speed) = part.split_once(':')?;
        let from = Instant::ZERO + span(from)?;
        let speed = if speed.trim() == "0bit" { Rate(0) } else { rate(speed)? };
        if steps.last().map_or(from > Instant::ZERO, |(last, _)| from <= *last) {
            return None;
        }
        steps.push((from, speed));
    }
    steps.last().is_some_and(|(_, rate)| rate.0 > 0).then_some(steps)
}

/// The words of a value with several parts: separated by commas, equals signs or spaces.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '=', ' ']).map(str::trim).filter(|w| !w.is_empty())
}

/// A chance and the backlog above which it applies, as `25%@18MB`.
pub(super) fn share_above(text: &str) -> Option<(u32, Bytes)> {
    let (chance, above) = text.split_once('@')?;
    Some((share(chance)?, bytes(above)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates() {
        for (text, want) in [
            ("100Mbit", Some(100_000_000)),
            ("1Gbit", Some(1_000_000_000)),
            ("2.5Mbit", Some(2_500_000)),
            ("64kbit", Some(64_000)),
            ("10mbit", Some(10_000_000)),
            ("50 Mbit/s", Some(50_000_000)),
            ("8Mb/s", Some(8_000_000)),
            ("8Mbps", Some(8_000_000)),
            ("9600bit/s", Some(9600)),
            ("8Mbps/s", None),
            ("-5Mbit", None),
            ("-0Mbit", None),
            ("0Mbit", None),
            ("5", None),
            ("5MB", None),
            ("Mbit", None),
            ("5e3kbit", None),
            ("99999999Gbit", None),
        ] {
            assert_eq!(rate(text), want.map(Rate), "{text:?}");
        }
    }

    #[test]
    fn spans_amounts_and_shares() {
        assert_eq!(span("40ms"), Some(Span::millis(40)));
        assert_eq!(span("0.5s"), Some(Span::millis(500)));
        assert_eq!(span("100us"), Some(Span::micros(100)));
        assert_eq!(span("7ns"), Some(Span(7)));
        assert_eq!(span("0s"), Some(Span::ZERO));
        assert_eq!((span("0"), some_span("0s"), some_span("0")), (Some(Span::ZERO), None, None));
        assert_eq!(span("40"), None);
        assert_eq!(span("2000000s"), None);
        assert_eq!(bytes("36MB"), Some(Bytes(36_000_000)));
        assert_eq!(bytes("64kB"), Some(Bytes(64_000)));
        assert_eq!(bytes("18MiB"), Some(Bytes(18 << 20)));
        assert_eq!(bytes("1500B"), Some(Bytes(1500)));
        assert_eq!(bytes("1500"), None);
        assert_eq!(share("1%"), Some(10_000));
        assert_eq!(share("0.01"), Some(10_000));
        assert_eq!(share("100%"), Some(1_000_000));
        assert_eq!(share("1.1"), None);
        assert_eq!(share_above("25%@18MB"), Some((250_000, Bytes(18_000_000))));
    }

    #[test]
    fn lists() {
        assert_eq!(places("1,5,10-20"), Some(vec![(1, 1), (5, 5), (10, 20)]));
        assert_eq!(places("10-20,1,15-30"), Some(vec![(1, 1), (10, 30)]));
        assert_eq!(places("1-9,2,5"), Some(vec![(1, 9)]));
        for bad in ["", "0", "5-3", "a", "1,,2", "+1", "1-2-3"] {
            assert_eq!(places(bad), None, "{bad:?}");
        }
        let (a, b) = (Rate(12_000_000), Rate(48_000_000));
        assert_eq!(
            schedule("0s:12Mbit,7s:48Mbit"),
            Some(vec![(Instant::ZERO, a), (Instant::ZERO + Span::secs(7), b)])
        );
        assert!(schedule("0s:12Mbit,1s:0bit,2s:12Mbit").is_some());
        for bad in ["", "1s:12Mbit", "0s:0bit", "0s:12Mbit,0s:48Mbit", "0s:12Mbit,7s", "0s:12Mbit,7s:0bit"] {
            assert_eq!(schedule(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in any::<String>(), number in "[0-9.+-]{0,25}", unit in "[a-zA-Z/%]{0,5}") {
            for text in [text, format!("{number}{unit}")] {
                let _ = (rate(&text), span(&text), bytes(&text), share(&text), share_above(&text));
                let _ = (places(&text), schedule(&text), whole(&text), decimal(&text));
            }
        }
    }
}
