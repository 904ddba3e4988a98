//! Data files of flent: the socket statistics of its TCP flows.

use crate::counters::Counters;
use crate::error::InputError;
use crate::limits::{BoundedVec, Number, Tokens, Word};
use crate::samples::{MOST, MSS, Sample, segments, since, threshold, transfer};
use crate::transfer::{Source, Transfer};
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use slowstart::units::{Bytes, Span};
use std::fmt;
use std::io::{BufReader, Read};

fn invalid(e: &serde_json::Error) -> InputError {
    InputError::line(e.line() as u64, format!("found no valid JSON: {e}"))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Point {
    t: Number,
    tcp_cwnd: Number,
    tcp_ssthresh: Number,
    tcp_rtt: Number,
    tcp_delivery_rate: Number,
}

/// The row of a series of flent; `None` if it has no windows.
fn series(name: &str, number: u64, points: &[Point]) -> Option<Transfer> {
    let begin = points.iter().filter_map(|p| p.t.real()).reduce(f64::min).unwrap_or(0.0);
    let sample = |p: &Point| {
        Some(Sample {
            at: since(p.t.real()?.min(1e12), begin),
            cwnd: segments(p.tcp_cwnd.below(MOST)?, MSS),
            ssthresh: p.tcp_ssthresh.below(MOST).and_then(|n| threshold(n, MSS)),
            rtt: p.tcp_rtt.real().filter(|ms| *ms < 1e9).map(|ms| Span((ms * 1e6) as u64)),
            counters: Counters {
                // In megabits per second.
                delivery_kbps: p.tcp_delivery_rate.real().filter(|r| *r < 4e6).map(|r| (r * 1e3) as u32),
                ..Counters::default()
            },
            ..Sample::default()
        })
    };
    let mut samples: Vec<Sample> = points.iter().filter_map(sample).collect();
    if samples.is_empty() {
        return None;
    }
    samples.sort_by_key(|s| s.at);
    let mut t = transfer(Source::Flent, number, Bytes(MSS), &samples);
    t.from = name.to_string();
    t.start_s = begin;
    t.caveats.push("flent does not state the size of a segment: 1448 bytes are assumed".to_string());
    Some(t)
}

/// Reads a flent data file: the socket statistics of its TCP flows, if it has them.
pub fn replay(input: impl Read, mut each: impl FnMut(Transfer)) -> Result<(), InputError> {
    struct File<'a>(&'a mut dyn FnMut(String, Vec<Point>));
    struct RawValues<'a>(&'a mut dyn FnMut(String, Vec<Point>));
    impl<'de> Visitor<'de> for File<'_> {
        type Value = bool;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let mut found = false;
            while let Some(key) = map.next_key::<Word>()? {
                if key.0 == "raw_values" {
                    map.next_value_seed(RawValues(&mut *self.0))?;
                    found = true;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    impl<'de> serde::de::DeserializeSeed<'de> for RawValues<'_> {
        type Value = ();
        fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
            d.deserialize_map(self)
        }
    }
    impl<'de> Visitor<'de> for RawValues<'_> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("raw_values, an object of series")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<Word>()? {
                let points = map.next_value::<BoundedVec<Point>>()?;
                (self.0)(name.0, points.0);
            }
            Ok(())
        }
    }
    let mut rows = 0;
    let mut add = |name: String, points: Vec<Point>| {
        if let Some(t) = series(&name, rows + 1, &points) {
            rows += 1;
            each(t);
        }
    };
    let mut d = serde_json::Deserializer::from_reader(BufReader::new(Tokens::new(input)));
    let found = d.deserialize_map(File(&mut add)).map_err(|e| invalid(&e))?;
    if !found {
        return Err(InputError::whole("raw_values: found none, expected an object"));
    }
    if rows == 0 {
        return Err(InputError::whole(
            "found no series with tcp_cwnd, expected one made with --socket-stats",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// flent states neither what was acknowledged nor what was retransmitted: both are unknown, not zero.
    #[test]
    fn what_flent_does_not_state_is_unknown() {
        let points = [(0.0, 10), (0.1, 40), (0.2, 160), (0.3, 161), (0.4, 162)].map(|(t, cwnd)| {
            format!("{{\"t\":{t},\"tcp_cwnd\":{cwnd},\"tcp_rtt\":20.5,\"tcp_delivery_rate\":{}}}", cwnd / 2)
        });
        let text = format!("{{\"raw_values\":{{\"TCP upload\":[{}]}}}}", points.join(","));
        let mut all = Vec::new();
        replay(text.as_bytes(), |t| all.push(t)).expect("valid");
        let t = &all[0];
        assert_eq!((t.bytes, t.retransmitted_packets, &t.limits), (None, None, &None));
        assert_eq!(t.median_bps, Some(80e6));
        let e = replay("{\"raw_values\":{}}".as_bytes(), |_| {}).expect_err("refused");
        assert!(e.to_string().contains("--socket-stats"), "{e}");
    }
}
