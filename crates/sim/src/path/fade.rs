//! Losses that come together in time: at each hand-over, or in fades at random moments.

use super::quantity;
use crate::random::Stream;
use slowstart::units::{Instant, Span};

/// How much is lost, and for how long.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    /// The chance that a packet is lost, in millionths.
    pub(super) share: u32,
    /// The time that a burst lasts.
    pub(super) lasts: Span,
}

impl Burst {
    /// What a value of `handover_loss` looks like.
    pub(super) const EXPECTED: &'static str = "a share and a length of time, such as 30%,for=200ms";

    /// Parses `30%,for=200ms`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = quantity::words(text).collect();
        let [share, "for", lasts] = words[..] else { return None };
        Some(Self { share: quantity::share(share)?, lasts: quantity::some_span(lasts)? })
    }
}

/// A burst, and the mean time from its end to the beginning of the next one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Fades {
    pub(super) burst: Burst,
    pub(super) every: Span,
}

impl Fades {
    /// What a value of `fade` looks like.
    pub(super) const EXPECTED: &'static str =
        "a share, how long a fade lasts and the mean time between fades, such as 30%,for=200ms,every=8s";

    /// Parses `30%,for=200ms,every=8s`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (burst, every) = text.rsplit_once("every")?;
        let every = every.trim_start_matches([' ', '=']);
        Some(Self {
            burst: Burst::parse(burst.trim_end_matches([',', ' ']))?,
            every: quantity::some_span(every)?,
        })
    }
}

/// When bursts begin.
#[derive(Clone, Debug)]
enum Begins {
    /// A fade with each hand-over.
    Periodically { period: Span, phase: Span },
    /// At random: from the end of one to the beginning of the next is an exponential time of this mean.
    AtRandom { mean: Span, stream: Stream, from: Instant },
}

/// Drops packets during bursts.
#[derive(Clone, Debug)]
pub(super) struct BurstLoss {
    burst: Burst,
    begins: Begins,
    stream: Stream,
}

impl BurstLoss {
    /// Bursts that begin with the hand-overs of this period and phase, as `delay::Course::Handover` has them.
    pub(super) fn at_handovers(burst: Burst, period: Span, phase: Span, stream: Stream) -> Self {
        Self { burst, begins: Begins::Periodically { period, phase }, stream }
    }

    /// Fades. `times` draws when they begin, `stream` what they lose.
    pub(super) fn fades(fades: Fades, mut times: Stream, stream: Stream) -> Self {
        let from = Instant::ZERO + times.exponential_span(fades.every);
        Self {
            burst: fades.burst,
            begins: Begins::AtRandom { mean: fades.every, stream: times, from },
            stream,
        }
    }

    /// Returns true if a packet that passes at `now`, not before the one before it, is lost.
    pub(super) fn drops(&mut self, now: Instant) -> bool {
        let lasts = self.burst.lasts;
        let during = match &mut self.begins {
            Begins::Periodically { period, phase } => (now + *phase).0 % period.0 < lasts.0,
            Begins::AtRandom { mean, stream, from } => {
                while *from + lasts <= now {
                    *from = *from + lasts + stream.exponential_span(*mean);
                }
                *from <= now
            }
        };
        during && self.stream.chance(self.burst.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::millis(ms)
    }

    #[test]
    fn values() {
        let burst = Burst { share: 300_000, lasts: Span::millis(200) };
        assert_eq!(Burst::parse("30%,for=200ms"), Some(burst));
        assert_eq!(Fades::parse("30% for 200ms every 8s"), Some(Fades { burst, every: Span::secs(8) }));
        assert_eq!(Fades::parse("30%,for=200ms,every=8s"), Some(Fades { burst, every: Span::secs(8) }));
        for bad in ["", "30%", "30%,200ms", "30%,for=0s", "130%,for=1s", "every=8s", "30%,for=1s,every=0s"] {
            assert!(Burst::parse(bad).is_none() && Fades::parse(bad).is_none(), "{bad:?}");
        }
        assert_eq!(Fades::parse("30%,for=200ms"), None);
    }

    #[test]
    fn a_burst_begins_with_each_handover() {
        let burst = Burst { share: 1_000_000, lasts: Span::millis(20) };
        let mut loss =
            BurstLoss::at_handovers(burst, Span::millis(100), Span::millis(30), Stream::named(1, "loss"));
        let lost: Vec<u64> = (0..200).filter(|t| loss.drops(ms(*t))).collect();
        // The phase puts hand-overs at 70 ms, 170 ms and so on.
        assert!(lost.iter().copied().eq((70..90).chain(170..190)), "{lost:?}");
    }

    #[test]
    fn fades_come_as_a_poisson_process_with_pauses() {
        let fades =
            Fades { burst: Burst { share: 1_000_000, lasts: Span::millis(50) }, every: Span::millis(450) };
        let mut loss = BurstLoss::fades(fades, Stream::named(1, "times"), Stream::named(1, "loss"));
        let n = 10_000_000;
        let lost: Vec<bool> = (0..n).map(|t| loss.drops(ms(t))).collect();
        let runs: Vec<usize> = lost.chunk_by(|a, b| a == b).filter(|c| !c[0]).map(<[bool]>::len).collect();
        // A fade of 50 ms after 450 ms on average: 20,000 cycles of mean 500 ms, standard deviation 450 ms.
        let share = lost.iter().filter(|l| **l).count() as f64 / n as f64;
        assert!((share - 0.1).abs() < 5.0 * 0.1 * 0.9 / 20_000_f64.sqrt(), "{share}");
        // Pauses are exponential: the largest distance of the distributions (Kolmogorov and Smirnov) is below
        // 1.95 / sqrt(n) but once in a thousand. Lengths are whole milliseconds, which adds the share of one.
        let mut pauses: Vec<f64> = runs.iter().map(|len| *len as f64).collect();
        pauses.sort_by(f64::total_cmp);
        let count = pauses.len() as f64;
        let distance = pauses.iter().enumerate().map(|(i, len)| {
            let want = 1.0 - (-len / 450.0).exp();
            (want - i as f64 / count).abs().max((want - (i + 1) as f64 / count).abs())
        });
        let most = distance.fold(0.0, f64::max);
        assert!(most < 1.95 / count.sqrt() + 1.0 / 450.0, "{most} over {count}");
    }
}
