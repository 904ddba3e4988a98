//! Loss in bursts: the model of Gilbert and Elliott, as netem's `loss gemodel p r 1-h 1-k` (Linux
//! `sch_netem.c`, `loss_gilb_ell`, and `q_netem.c` of iproute2 for the defaults).
//!
//! Departs from netem: probabilities are in millionths, not in 2^-32.

use slowstart::units::Instant;

use super::super::quantity;
use super::{Cause, Dropped, Keyed};
use crate::random::Stream;

/// The four probabilities, in millionths.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::path) struct Probabilities {
    /// `p`: a packet changes the state from good to bad.
    to_bad: u32,
    /// `r`: a packet changes the state from bad to good.
    to_good: u32,
    /// `1-h`: a packet that meets the bad state is lost.
    lost_in_bad: u32,
    /// `1-k`: a packet that meets the good state is lost.
    lost_in_good: u32,
}

/// Certainty, in millionths.
const ONE: u32 = 1_000_000;

impl Probabilities {
    /// Parses `p [r [1-h [1-k]]]`, separated by commas or spaces; by default r is 1-p, 1-h is 100 % and 1-k
    /// is 0.
    fn parse(text: &str) -> Option<Self> {
        let shares = quantity::words(text).map(quantity::share).collect::<Option<Vec<_>>>()?;
        let to_bad = *shares.first()?;
        let part = |i: usize, default| shares.get(i).copied().unwrap_or(default);
        let to_good = part(1, ONE - to_bad);
        (shares.len() <= 4 && to_bad > 0 && to_good > 0).then_some(Self {
            to_bad,
            to_good,
            lost_in_bad: part(2, ONE),
            lost_in_good: part(3, 0),
        })
    }
}

/// Drops packets with a probability that depends on a state, which changes from packet to packet. It begins
/// in the good state, as netem does.
#[derive(Clone, Debug)]
pub(in crate::path) struct GilbertElliott {
    probabilities: Probabilities,
    bad: bool,
    stream: Stream,
}

impl GilbertElliott {
    /// Returns true if this packet is lost. The state changes first, but the packet is judged by the state
    /// that it met.
    fn drops(&mut self) -> bool {
        let Probabilities { to_bad, to_good, lost_in_bad, lost_in_good } = self.probabilities;
        if self.bad {
            self.bad = !self.stream.chance(to_good);
            // netem compares with h: the draws above it are lost.
            !self.stream.chance(ONE - lost_in_bad)
        } else {
            self.bad = self.stream.chance(to_bad);
            self.stream.chance(lost_in_good)
        }
    }
}

impl Keyed for GilbertElliott {
    type Params = Probabilities;
    const EXPECTS: &'static str =
        "up to four shares p,r,1-h,1-k of netem's gemodel, p and r above 0, such as 1%,10%,70%,0.1%";
    const ABOUT: &'static str =
        "Losses in bursts, after the link: netem's loss gemodel p r 1-h 1-k (Gilbert-Elliott).";

    fn read(text: &str) -> Option<Probabilities> {
        Probabilities::parse(text)
    }

    fn build(probabilities: Probabilities, stream: Stream) -> Self {
        Self { probabilities, bad: false, stream }
    }

    fn pass(&mut self, now: Instant) -> Result<Instant, Dropped> {
        if self.drops() { Err(Dropped::new(now, Cause::Burst)) } else { Ok(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(text: &str, n: usize) -> Vec<bool> {
        let probabilities = Probabilities::parse(text).expect("valid");
        let mut model = GilbertElliott::build(probabilities, Stream::named(1, "gemodel"));
        (0..n).map(|_| model.drops()).collect()
    }

    #[test]
    fn defaults_are_those_of_tc() {
        let all =
            |text| Probabilities::parse(text).map(|p| [p.to_bad, p.to_good, p.lost_in_bad, p.lost_in_good]);
        assert_eq!(all("1%"), Some([10_000, 990_000, ONE, 0]));
        assert_eq!(all("1% 10%"), Some([10_000, 100_000, ONE, 0]));
        assert_eq!(all("1%,10%,70%,0.1%"), Some([10_000, 100_000, 700_000, 1000]));
        for bad in ["", "0%", "1%,0%", "100%", "1%,2%,3%,4%,5%", "101%", "1%,x"] {
            assert_eq!(all(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn losses_have_the_share_and_the_succession_of_the_model() {
        let (p, r, bad, good) = (0.02, 0.25, 0.8, 0.01);
        let n = 2_000_000;
        let lost = fates("2%,25%,80%,1%", n);
        let in_bad = p / (p + r);
        let share = (1.0 - in_bad) * good + in_bad * bad;
        // Two losses in a row: by the state that the first met, and the change after it.
        let pair = (1.0 - in_bad) * good * ((1.0 - p) * good + p * bad)
            + in_bad * bad * (r * good + (1.0 - r) * bad);
        let count = |found: usize| found as f64 / n as f64;
        // The states of packets k apart are correlated by (1 - p - r)^k, which widens the variance of a mean
        // by this.
        let widened = (1.0 + (1.0 - p - r)) / (1.0 - (1.0 - p - r));
        for (what, found, want) in [
            ("share", count(lost.iter().filter(|l| **l).count()), share),
            ("pairs", count(lost.windows(2).filter(|w| w[0] && w[1]).count()), pair),
        ] {
            let deviation = (want * (1.0 - want) * widened / n as f64).sqrt();
            assert!((found - want).abs() < 5.0 * deviation, "{what}: {found}, not {want} ± {deviation}");
        }
    }

    #[test]
    fn bursts_and_gaps_are_geometric() {
        // Gilbert's simple model, in which the bad state loses all: runs of losses have mean 1/r, runs
        // between 1/p.
        let lost = fates("5%,25%", 2_000_000);
        for (state, stay) in [(true, 0.75_f64), (false, 0.95)] {
            let runs: Vec<usize> =
                lost.chunk_by(|a, b| a == b).filter(|c| c[0] == state).map(<[bool]>::len).collect();
            // Without the first and the last run, which may be cut.
            let runs = &runs[1..runs.len() - 1];
            let n = runs.len() as f64;
            // Lengths 1 to 10 and the rest: chi-squared with ten degrees of freedom is above 29.59 once in a
            // thousand.
            let mut found = [0.0; 11];
            for len in runs {
                found[(len - 1).min(10)] += 1.0;
            }
            let expected = |k: usize| if k < 10 { stay.powi(k as i32) * (1.0 - stay) } else { stay.powi(10) };
            let chi: f64 = (0..11).map(|k| (found[k] - n * expected(k)).powi(2) / (n * expected(k))).sum();
            assert!(chi < 29.59, "runs of {state}: chi-squared {chi}");
        }
    }
}
