//! Connections without a value of a measure: those that are open or delivered nothing have no time to the last
//! byte, and those that delivered less have no time to 1 MB.
//!
//! A mean is over the connections that have a value. If two arms lack it equally often, their means compare; if one
//! lacks it more often, its mean may look better because its worst connections are missing. What never finishes is worse than any
//! number, so such an arm may be shown to be worse by the values that it has, and never to be better.

use crate::estimate::{Effect, Sums};
use crate::outcome::{Measure, Outcome};
use crate::statistics::Statistics;
use slowstart_stats::sequence::{FEWEST, radius};

/// Fewest connections, of those that lack a value and of the others, that the smaller of two arms has if their shares
/// are alike (Cochran, Biometrics 10, 1954).
const FEWEST_EXPECTED: f64 = 5.0;

/// True if it is shown that more of the connections of `a` than of `b` lack a value, from the sums of
/// [`Sums::lacking`]. The variance is that of like shares (a score test), because an arm where none lacks has
/// none of its own.
pub(crate) fn lacks_more(a: &Sums, b: &Sums, alpha: f64) -> bool {
    if a.units() < FEWEST || b.units() < FEWEST {
        return false;
    }
    // A share of both, or of those that have a value, of which a small arm would have next to none is not normal.
    let both = (a.total() + b.total()) / (a.connections() + b.connections()) as f64;
    if both.min(1.0 - both) * (a.connections().min(b.connections()) as f64) < FEWEST_EXPECTED {
        return false;
    }
    let difference = a.share() - b.share();
    difference > radius(a.units() + b.units(), alpha) * libm::sqrt(a.variance_of_like_shares(b))
}

/// Returns the effect of an arm as far as it is borne out. `lacks` tells whether the arm, and what it is
/// compared with, are shown to lack a value more often than the other.
pub(crate) fn borne_out(effect: Option<Effect>, lacks: [bool; 2]) -> Option<Effect> {
    match lacks {
        [false, false] => effect,
        [true, false] => effect.filter(Effect::is_more),
        [false, true] => effect.filter(Effect::is_less),
        [true, true] => None,
    }
}

/// What the verdict adds where more connections of `more` than of `less` lack a value.
pub(crate) fn verdict_text(measure: Measure, more: &str, less: &str) -> String {
    format!(
        "; {more} lacks a {measure} more often than {less}, so its other values cannot show that it is better"
    )
}

impl Sums {
    /// Returns the sums of an arm's connections that have no value of this measure: each counts 1, the others 0.
    pub(crate) fn lacking<'a>(
        outcomes: impl Iterator<Item = &'a Outcome>,
        measure: Measure,
        arm: usize,
        shared_units: bool,
    ) -> Self {
        let lacks = |o: &Outcome| f64::from(u8::from(measure.term(o).is_none()));
        Self::of_terms(outcomes.filter(|o| o.arm == arm).map(|o| (o.unit, lacks(o))), shared_units)
    }
}

impl Statistics {
    /// Returns the sums of [`Sums::lacking`] of one arm on this server. `None` if they are not known: the first
    /// version of the file has only the numbers of units, and a unit may be in several classes of RTT.
    pub(crate) fn lacking(&self, measure: Measure, arm: usize) -> Option<Sums> {
        if self.version == 1 {
            if self.plan.sticky && self.plan.by_rtt {
                return None;
            }
            let of = |s: &crate::statistics::StratumSums| Some(s.sums.get(measure.name())?.get(arm)?.units());
            let have: u64 = self.strata.iter().filter_map(of).sum();
            let units = *self.units.get(arm)?;
            return Some(Sums::of_count(units, units.saturating_sub(have)));
        }
        let mut all = Sums::default();
        for stratum in &self.strata {
            all.merge(stratum.lacking.get(measure.name())?.get(arm)?);
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_stats::random::Stream;

    #[test]
    fn unlike_shares_are_shown_and_few_or_like_ones_are_not() {
        let lacks = |a: (u64, u64), b: (u64, u64)| {
            lacks_more(&Sums::of_count(a.0, a.1), &Sums::of_count(b.0, b.1), 0.05)
        };
        assert!(lacks((2000, 500), (2000, 0)) && !lacks((2000, 0), (2000, 500)));
        assert!(lacks((2000, 2000), (2000, 0)) && lacks((2000, 2000), (2000, 1900)));
        assert!(
            !lacks((2000, 520), (2000, 500)) && !lacks((2000, 3), (2000, 0)) && !lacks((49, 49), (2000, 0))
        );
        // None of a small arm is no proof while the other lacks few, nor are two of it where none other lacks.
        assert!(!lacks((1900, 95), (100, 0)) && !lacks((100, 2), (2000, 0)));
        // Few units are none, however unlike they are.
        assert!(!lacks((49, 49), (49, 0)) && lacks((50, 50), (50, 0)));
    }

    /// Connections that lack a value as often in each arm, at 20 looks, with shares of a half and of a twentieth.
    #[test]
    fn like_shares_are_called_unlike_in_no_more_than_the_stated_share() {
        for (chance, small) in
            [(5_000, 500_000), (100_000, 500_000), (5_000, 50_000), (100_000, 50_000), (700_000, 50_000)]
        {
            let mut wrong = 0;
            for seed in 0..400 {
                let mut r = Stream::named(seed, "lacking");
                let mut counts = [[0_u64; 2]; 2];
                let mut found = false;
                for n in 1..=4000 {
                    let arm = usize::from(r.chance(small));
                    counts[arm][0] += 1;
                    counts[arm][1] += u64::from(r.chance(chance));
                    if n % 200 == 0 {
                        let [a, b] = counts.map(|[units, lack]| Sums::of_count(units, lack));
                        found |= lacks_more(&a, &b, 0.05) || lacks_more(&b, &a, 0.05);
                    }
                }
                wrong += u32::from(found);
            }
            println!(
                "measured: {wrong} of 400, {chance} per million lack a value, share {small} per million"
            );
            assert!(wrong <= 20, "{chance} {small}: {wrong}");
        }
    }
}
