//! What is measured of one connection, and the measures that arms are compared by.

use hmac_sha256::Hash as Sha256;
use serde::Serialize;
use std::fmt;

/// The milestones of a connection, in bytes acknowledged.
pub const MILESTONES: [u64; 3] = [100_000, 1_000_000, 10_000_000];

/// How a startup ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Exit {
    /// The reason: that of the startup's own object where it tells, otherwise what the kernel's state shows.
    pub reason: &'static str,
    /// cwnd when it ended, in segments; before the reduction, if congestion ended it.
    pub cwnd: u32,
    /// Active time until then, in seconds.
    pub time_s: f64,
}

/// One connection. Times are active times: from the first data that was sent, without the times at which the
/// connection had nothing to send and nothing to be acknowledged.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The number of its arm in the plan. What is written has its name.
    #[serde(skip)]
    pub arm: usize,
    /// The unit of assignment: the connection, or the client's prefix as [`unit_of_prefix`] returns it. It is
    /// written as text, since many readers of JSON round such numbers.
    #[serde(skip)]
    pub unit: u64,
    /// The client's prefix, as [`unit_of_prefix`] returns it.
    #[serde(skip)]
    pub prefix: u64,
    /// RTT of the handshake, in seconds, which no arm can influence; `None` if it is not known, as of TCP
    /// Fast Open, where a connection is assigned before the handshake is complete.
    pub handshake_rtt_s: Option<f64>,
    /// Time until 100 kB, 1 MB and 10 MB were acknowledged, in seconds; `None` if it delivered less so far.
    pub milestones_s: [Option<f64>; 3],
    /// Time to the last byte, in seconds; `None` while it is open.
    pub last_s: Option<f64>,
    /// Bytes that were acknowledged until the end.
    pub delivered_bytes: u64,
    /// Bytes sent, with those sent again.
    pub sent_bytes: u64,
    /// Payload bytes that were sent again.
    pub retransmitted_bytes: u64,
    /// Mean RTT over the least, at least 1; `None` without RTT samples.
    pub rtt_mean: Option<f64>,
    /// Greatest RTT over the least; `None` without RTT samples.
    pub rtt_peak: Option<f64>,
    /// Share of ACKs at which the application limited the sender, 0 to 1; `None` without ACKs.
    pub app_limited: Option<f64>,
    /// How its startup ended; `None` if it did not.
    pub exit: Option<Exit>,
}

/// Returns an identifier of an address prefix that tells nothing about it to those who do not know the salt:
/// the first eight bytes of SHA-256 over salt and prefix. Two trials with different salts cannot be joined.
pub fn unit_of_prefix(salt: &[u8; 32], prefix: &[u8; 16]) -> u64 {
    let digest = Sha256::hash(&[&salt[..], &prefix[..]].concat());
    digest.iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// A measure by which arms are compared. Of each, less is better.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Time to 100 kB.
    #[serde(rename = "time-100kb")]
    Time100Kb,
    /// Time to 1 MB.
    #[serde(rename = "time-1mb")]
    Time1Mb,
    /// Time to 10 MB.
    #[serde(rename = "time-10mb")]
    Time10Mb,
    /// Time to the last byte.
    TimeLast,
    /// Bytes sent again, as a share of the bytes that the connection sent.
    Retrans,
    /// Mean RTT over the least.
    RttMean,
    /// Greatest RTT over the least.
    RttPeak,
}

impl Measure {
    /// All measures, in the order of tables.
    pub const ALL: [Self; 7] = [
        Self::Time100Kb,
        Self::Time1Mb,
        Self::Time10Mb,
        Self::TimeLast,
        Self::Retrans,
        Self::RttMean,
        Self::RttPeak,
    ];

    /// Returns the name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time100Kb => "time-100kb",
            Self::Time1Mb => "time-1mb",
            Self::Time10Mb => "time-10mb",
            Self::TimeLast => "time-last",
            Self::Retrans => "retrans",
            Self::RttMean => "rtt-mean",
            Self::RttPeak => "rtt-peak",
        }
    }

    /// Returns the measure of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name)
    }

    /// True if arms are compared by geometric means; otherwise by arithmetic means.
    pub(crate) const fn is_geometric(self) -> bool {
        !matches!(self, Self::Retrans)
    }

    /// Returns what an arm's mean is taken of; `None` if the connection has no value. Of a geometric measure
    /// this is the logarithm.
    pub(crate) fn term(self, o: &Outcome) -> Option<f64> {
        let log = |v: Option<f64>| v.filter(|v| *v > 0.0).map(libm::log);
        match self {
            Self::Time100Kb => log(o.milestones_s[0]),
            Self::Time1Mb => log(o.milestones_s[1]),
            Self::Time10Mb => log(o.milestones_s[2]),
            Self::TimeLast => log(o.last_s),
            Self::RttMean => log(o.rtt_mean),
            Self::RttPeak => log(o.rtt_peak),
            Self::Retrans => (o.sent_bytes > 0).then(|| o.retransmitted_bytes as f64 / o.sent_bytes as f64),
        }
    }

    /// Returns the value of one connection, for quantiles.
    pub(crate) fn value(self, o: &Outcome) -> Option<f64> {
        let term = self.term(o)?;
        Some(if self.is_geometric() { libm::exp(term) } else { term })
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A class of the RTT of the handshake.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RttClass(usize);

impl RttClass {
    /// Upper ends of the classes, in seconds. Two classes follow: open-ended, and RTTs that are not
    /// known.
    const ENDS: [(f64, &str); 4] =
        [(0.02, "below 20 ms"), (0.06, "20 to 60 ms"), (0.2, "60 to 200 ms"), (0.4, "200 to 400 ms")];

    /// Returns the class of an RTT in seconds.
    pub fn of(rtt_s: Option<f64>) -> Self {
        let Some(rtt_s) = rtt_s else { return Self(Self::ENDS.len() + 1) };
        Self(Self::ENDS.iter().position(|(end, _)| rtt_s < *end).unwrap_or(Self::ENDS.len()))
    }

    /// Returns its description, as tables show it.
    pub fn name(self) -> &'static str {
        let other = if self.0 == Self::ENDS.len() { "400 ms and more" } else { "RTT not known" };
        Self::ENDS.get(self.0).map_or(other, |(_, name)| name)
    }
}

/// By what connections are grouped into strata.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Stratify {
    /// By the RTT class of the handshake.
    pub rtt: bool,
    /// By the client's prefix: those with the most connections each, the others together.
    pub prefix: bool,
}

impl Stratify {
    /// Parses `rtt`, `prefix` or `rtt,prefix`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut all = Self::default();
        for word in text.split(',') {
            match word {
                "rtt" if !all.rtt => all.rtt = true,
                "prefix" if !all.prefix => all.prefix = true,
                _ => return None,
            }
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_cannot_be_joined_across_salts() {
        let prefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 0];
        let (a, b) = (unit_of_prefix(&[1; 32], &prefix), unit_of_prefix(&[2; 32], &prefix));
        assert_ne!(a, b);
        assert_eq!(a, unit_of_prefix(&[1; 32], &prefix));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for m in Measure::ALL {
            assert_eq!(Measure::named(m.name()), Some(m));
        }
        assert_eq!(Measure::named("goodput"), None);
        assert_eq!(Stratify::parse("rtt,prefix"), Some(Stratify { rtt: true, prefix: true }));
        assert_eq!((Stratify::parse("rtt,rtt"), Stratify::parse("asn")), (None, None));
    }

    #[test]
    fn an_rtt_belongs_to_the_class_whose_bounds_hold_it() {
        let names: Vec<&str> = [0.0, 0.02, 0.199, 0.2, 0.6].map(|r| RttClass::of(Some(r)).name()).to_vec();
        let expected = ["below 20 ms", "20 to 60 ms", "60 to 200 ms", "200 to 400 ms", "400 ms and more"];
        assert_eq!(names, expected);
        assert_eq!(RttClass::of(None).name(), "RTT not known");
    }
}
