//! Quantities as `tc` reads them. Its units differ from those of a path: a number without one is a time in
//! microseconds, a rate in bit/s, a share in percent or a size in bytes; `mbps` are megabytes a second, and
//! the `k` of a size is 1024.

/// A number without sign, and what follows it.
fn number(text: &str) -> Option<(f64, String)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].to_ascii_lowercase()))
}

/// The factor of a unit.
fn factor(unit: &str, units: &[(&[&str], f64)]) -> Option<f64> {
    units.iter().find(|(names, _)| names.contains(&unit)).map(|(_, factor)| *factor)
}

/// A time in nanoseconds, up to eleven days.
pub(super) fn time(text: &str) -> Option<u64> {
    let (number, unit) = number(text)?;
    let ns = number
        * factor(
            &unit,
            &[
                (&["", "us", "usec", "usecs"], 1e3),
                (&["ms", "msec", "msecs"], 1e6),
                (&["s", "sec", "secs"], 1e9),
                (&["ns", "nsec", "nsecs"], 1.0),
            ],
        )?;
    (ns <= 1e15).then_some((ns + 0.5) as u64)
}

/// A rate in bytes a second, from 1 kbit/s to 100 Tbit/s.
pub(super) fn rate(text: &str) -> Option<u64> {
    let (number, unit) = number(text)?;
    let (unit, byte) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 1.0),
        None if unit.is_empty() => ("", 0.125),
        None => (unit.strip_suffix("bit")?, 0.125),
    };
    let scale = factor(
        unit,
        &[
            (&[""], 1.0),
            (&["k"], 1e3),
            (&["m"], 1e6),
            (&["g"], 1e9),
            (&["t"], 1e12),
            (&["ki"], 1024.0),
            (&["mi"], 1_048_576.0),
            (&["gi"], 1_073_741_824.0),
            (&["ti"], 1_099_511_627_776.0),
        ],
    )?;
    let bytes = (number * scale * byte) as u64;
    (125..=12_500_000_000_000).contains(&bytes).then_some(bytes)
}

/// A size in bytes, at most 1 GiB.
pub(super) fn size(text: &str) -> Option<u32> {
    let (number, unit) = number(text)?;
    let bytes = number
        * factor(
            &unit,
            &[
                (&["", "b"], 1.0),
                (&["k", "kb"], 1024.0),
                (&["m", "mb"], 1_048_576.0),
                (&["g", "gb"], 1_073_741_824.0),
                (&["kbit"], 128.0),
                (&["mbit"], 131_072.0),
                (&["gbit"], 134_217_728.0),
            ],
        )?;
    (bytes <= f64::from(1_u32 << 30)).then_some(bytes as u32)
}

/// A share in 2^-32, as the kernel has it: all is 2^32 - 1.
pub(super) fn share(text: &str) -> Option<u32> {
    let (percent, unit) = number(text)?;
    let good = percent <= 100.0 && ["", "%"].contains(&unit.as_str());
    good.then(|| libm::rint(percent / 100.0 * f64::from(u32::MAX)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What tc of iproute2 6.1 sent for each, apart from its ticks of 64 ns.
    #[test]
    fn quantities_are_those_of_tc() {
        for (text, want) in [
            ("100", Some(100_000)),
            ("100ms", Some(100_000_000)),
            ("100msec", Some(100_000_000)),
            ("1.5S", Some(1_500_000_000)),
            ("10us", Some(10_000)),
            ("0", Some(0)),
            ("ms", None),
            ("-1ms", None),
            ("1m", None),
            ("1e3ms", None),
        ] {
            assert_eq!(time(text), want, "{text}");
        }
        for (text, want) in [
            ("10mbit", Some(1_250_000)),
            ("1Gbit", Some(125_000_000)),
            ("1000", Some(125)),
            ("10Mibit", Some(1_310_720)),
            ("1mbps", Some(1_000_000)),
            ("5kbit", Some(625)),
            ("50%", None),
            ("10mb", None),
            ("0bit", None),
        ] {
            assert_eq!(rate(text), want, "{text}");
        }
        for (text, want) in [
            ("1540", Some(1540)),
            ("32kbit", Some(4096)),
            ("5kb", Some(5120)),
            ("10k", Some(10_240)),
            ("32Mb", Some(32 << 20)),
            ("4Gb", None),
            ("1p", None),
        ] {
            assert_eq!(size(text), want, "{text}");
        }
        for (text, want) in [
            ("1", Some(42_949_673)),
            ("0.3%", Some(12_884_902)),
            ("10%", Some(429_496_730)),
            ("0.1%", Some(4_294_967)),
            ("100%", Some(u32::MAX)),
            ("150%", None),
            ("1ppm", None),
        ] {
            assert_eq!(share(text), want, "{text}");
        }
    }
}
