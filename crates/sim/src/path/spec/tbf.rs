//! Reads a token bucket filter as `tc` has it (tc-tbf(8)): a command, a line of `tc qdisc show`, or the
//! options with the name before them.

use slowstart::units::{Bytes, Rate};

use super::super::queue::{Wrong, wrong};
use super::super::{bucket, tc};
use super::PACKET;
use super::chain::BucketSpec;
use crate::suggest::did_you_mean;

/// The header of an Ethernet frame.
const HEADER: i64 = 14;
/// The words with a value.
const WORDS: [&str; 12] = [
    "rate", "burst", "buffer", "maxburst", "limit", "latency", "lat", "peakrate", "mtu", "minburst",
    "overhead", "mpu",
];
const EXPECTED: &str =
    "a rate, a burst and a latency or a limit, such as \"tbf rate 1mbit burst 32kbit latency 400ms\"";

/// True if a value is meant as one.
pub(super) fn is_meant(text: &str) -> bool {
    let words = text.split_whitespace();
    words.take_while(|w| !["rate", "burst"].contains(w)).any(|w| w == "tbf")
}

/// Reads it. Its limit is in full IP packets, where the kernel counts frames.
pub(super) fn read(text: &str) -> Result<BucketSpec, Wrong> {
    let (mut rate, mut burst, mut limit, mut latency) = (None, None, None, None);
    let (mut peak, mut mtu, mut overhead, mut least) = (None, None, 0, 0);
    let mut words = text.split_whitespace().skip_while(|w| *w != "tbf").skip(1);
    while let Some(word) = words.next() {
        if word.ends_with(':') || word == "root" {
            continue;
        }
        let value = words.next().unwrap_or_default();
        let wrong_value = |expected: &str| wrong(format!("{word} {value}").trim_end(), expected);
        let a_rate = || tc::rate(value).ok_or_else(|| wrong_value("a rate such as 1mbit"));
        // What stands behind a slash is the size of a table that no kernel uses any more.
        let size = value.split('/').next().and_then(tc::size);
        let a_size = || size.ok_or_else(|| wrong_value("a size such as 1540, 32kbit or 10kb"));
        match word {
            "refcnt" | "dev" | "parent" | "handle" => {}
            "rate" => rate = Some(a_rate()?),
            "burst" | "buffer" | "maxburst" => burst = Some(a_size()?),
            "limit" => limit = Some(a_size()?),
            "latency" | "lat" => {
                latency = Some(tc::time(value).ok_or_else(|| wrong_value("a time such as 400ms"))?);
            }
            "peakrate" => peak = Some(a_rate()?),
            // tc shows both names of it at once.
            "mtu" | "minburst" | "mtu/minburst" => mtu = Some(a_size()?),
            "overhead" => {
                let few = value.parse().ok().filter(|n: &i64| (-HEADER..=1000).contains(n));
                overhead = few.ok_or_else(|| wrong_value("bytes from -14 to 1000"))?;
            }
            "mpu" => least = a_size()?,
            "linklayer" if value == "ethernet" => {}
            "linklayer" => return Err(wrong_value("linklayer ethernet: cells are not modelled")),
            _ => {
                let hint = did_you_mean(word, &WORDS);
                return Err(wrong(word, format!("an option of tbf: {}{hint}", WORDS.join(", "))));
            }
        }
    }
    let (Some(rate), Some(burst)) = (rate, burst) else { return Err(wrong(text, EXPECTED)) };
    let header = (HEADER + overhead) as u32;
    let frame = PACKET.0 + u64::from(header);
    let holds = |name: &str, bytes: u32| {
        let expected = format!("at least a full frame of {frame} bytes");
        let bytes = u64::from(bytes);
        if bytes >= frame { Ok(Bytes(bytes)) } else { Err(wrong(format!("{name} {bytes}"), expected)) }
    };
    let peak_burst = match (peak, mtu) {
        (Some(peak), _) if peak <= rate => {
            return Err(wrong(format!("peakrate {peak} bytes/s"), "a peak rate above the rate"));
        }
        (Some(_), None) => return Err(wrong("peakrate", "mtu with it, such as mtu 1540")),
        (_, mtu) => mtu.map_or(Ok(PACKET), |mtu| holds("mtu", mtu))?,
    };
    let burst = holds("burst", burst)?;
    let room = match (limit, latency) {
        (Some(limit), None) => u64::from(limit),
        (None, Some(latency)) => {
            let within = |rate: u64, more: Bytes| {
                let bytes = u128::from(rate) * u128::from(latency) / 1_000_000_000;
                bytes.min(1 << 40) as u64 + more.0
            };
            let room = within(rate, burst);
            peak.map_or(room, |peak| room.min(within(peak, peak_burst)))
        }
        _ => return Err(wrong(text, "one of latency and limit")),
    };
    let bits = |bytes: u64| Rate(bytes * 8);
    let params = bucket::Params { rate: bits(rate), burst, peak: peak.map(bits), peak_burst, header, least };
    // The queue of the kernel counts the frames without the overhead.
    let full = slowstart::units::mul_div(room, PACKET.0, PACKET.0 + HEADER as u64);
    Ok(BucketSpec { params, is_after: false, limit: Some(Bytes(full).max(PACKET)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> BucketSpec {
        super::read(text).unwrap_or_else(|e| panic!("{text}: {e:?}"))
    }

    /// Rates, bursts and limits that tc of iproute2 6.1 sends (its limit is in frames).
    #[test]
    fn options_mean_what_they_mean_to_tc() {
        for (text, rate, burst, room) in [
            ("tbf rate 1mbit burst 32kbit latency 400ms", 125_000, 4096, 54_096),
            ("tbf rate 1mbit buffer 1540 limit 3000", 125_000, 1540, 3000),
            ("tbf rate 1mbit burst 32kbit/8 latency 400ms", 125_000, 4096, 54_096),
            ("tbf rate 10mbit minburst 1540 burst 10k latency 50ms", 1_250_000, 10_240, 72_740),
            ("tbf rate 10mbit burst 32kbit latency 50ms peakrate 20mbit mtu 1540", 1_250_000, 4096, 66_596),
            ("tc qdisc add dev ppp0 root tbf rate 220kbit latency 50ms burst 1540", 27_500, 1540, 2915),
            (
                "tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 256kbit buffer 1600 limit 3000",
                32_000,
                1600,
                3000,
            ),
            ("qdisc tbf 8009: dev eth0 root refcnt 2 rate 1Mbit burst 4Kb lat 400ms", 125_000, 4096, 54_096),
            (
                "tc qdisc add dev eth0 handle 10: root tbf rate 0.5mbit burst 5kb latency 70ms peakrate 1mbit minburst \
                 1540",
                62_500,
                5120,
                9495,
            ),
        ] {
            let tbf = read(text);
            assert_eq!((tbf.params.rate.0 / 8, tbf.params.burst.0), (rate, burst), "{text}");
            assert_eq!(tbf.limit, Some(Bytes(room * 1500 / 1514)), "{text}");
            assert_eq!((tbf.params.header, tbf.is_after), (14, false));
        }
        let tbf = read("tbf rate 1mbit burst 10k limit 10k overhead 10 mpu 64 linklayer ethernet");
        assert_eq!((tbf.params.header, tbf.params.least), (24, 64));
        // A full IP packet is a frame of 1524 bytes.
        assert_eq!(tbf.rate().0, 1_000_000 * 1500 / 1524);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("tbf rate 1mbit latency 1ms", "expected a rate, a burst"),
            ("tbf rate 1mbit burst 10k", "one of latency and limit"),
            ("tbf rate 1mbit burst 10k limit 10k latency 1ms", "one of latency and limit"),
            ("tbf rate 1mbit burst 1000 latency 1ms", "burst 1000, expected at least a full frame of 1514"),
            ("tbf rate 1mbit burst 10k latency 1ms peakrate 2mbit", "mtu with it"),
            ("tbf rate 1mbit burst 10k latency 1ms peakrate 1mbit mtu 1540", "a peak rate above the rate"),
            (
                "tbf rate 1mbit burst 10k latency 1ms linklayer atm",
                "linklayer atm, expected linklayer ethernet",
            ),
            ("tbf rate 1mbit burst 10k latenzy 1ms", "latenzy, expected an option of tbf"),
            ("tbf rate", "rate, expected a rate"),
        ] {
            let why = super::read(text).expect_err(text);
            let message = format!("{}, expected {}", why.found, why.expected);
            assert!(message.contains(says), "{text}: {message}");
        }
    }
}
