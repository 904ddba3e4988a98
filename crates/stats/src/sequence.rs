//! Confidence intervals that hold at every look at the same time: asymptotic confidence sequences.
//!
//! Source: Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas: Time-uniform central limit theory and asymptotic
//! confidence sequences, Annals of Statistics 52(6), 2024, theorem 2.2 and appendix B.2. The boundary is the
//! normal mixture of Robbins (Statistical methods related to the law of the iterated logarithm, 1970), which
//! Johari et al. (Always valid inference, Operations Research 70, 2022) use as a sequential probability ratio
//! test. With probability 1 - alpha all intervals of a trial hold together, however often one looks and
//! whenever one stops.
//!
//! Asymptotic means that means of at least [`FEWEST`] units are taken as normal with the variance that was
//! estimated. `crates/trial/tests/populations.rs` measures what that
//! costs.

/// Fewest units of an arm for which an interval is given. Ours.
pub const FEWEST: u64 = 50;

/// Number of units at which intervals are narrowest for their alpha. Ours: an interval is valid for every
/// value.
const TIGHTEST_AT: f64 = 1000.0;

/// Returns half the width of the interval in standard errors, after `units` units, for an error of `alpha` (0
/// to 1) over all looks.
pub fn radius(units: u64, alpha: f64) -> f64 {
    let log = -2.0 * libm::log(alpha);
    // The inverse of rho squared, optimised for TIGHTEST_AT units (appendix B.2).
    let prior = TIGHTEST_AT / (log + libm::log(log) + 1.0);
    let n = units.max(1) as f64;
    libm::sqrt((1.0 + prior / n) * (libm::log(1.0 + n / prior) + log))
}

/// The probability with which an effect is to be found.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Power {
    /// A power of 80 %.
    Eighty,
    /// A power of 95 %.
    NinetyFive,
}

impl Power {
    /// The quantile of the normal distribution: standard errors by which the effect exceeds half the
    /// interval's width.
    const fn quantile(self) -> f64 {
        match self {
            Self::Eighty => 0.8416,
            Self::NinetyFive => 1.6449,
        }
    }
}

/// The largest number that [`needed`] returns.
pub const MOST: u64 = 1_000_000_000;

/// Returns the number of units of both arms together after which an effect is found with a probability of at
/// least `power`; `None` above [`MOST`]. `effect` and `deviation` have the same unit; `deviation` is the
/// standard error times the square root of the number of units it was estimated from.
pub fn needed(effect: f64, deviation: f64, alpha: f64, power: Power) -> Option<u64> {
    let found =
        |n: u64| effect.abs() * libm::sqrt(n as f64) >= deviation * (radius(n, alpha) + power.quantile());
    let mut high = 2 * FEWEST;
    while !found(high) {
        high *= 2;
        if high > MOST {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let mid = low.midpoint(high);
        if found(mid) { high = mid } else { low = mid }
    }
    Some(high.max(2 * FEWEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula of theorem 2.2 as it is printed: sigma sqrt(2 (t rho^2 + 1) / (t^2 rho^2) log(sqrt(t rho^2
    /// + 1) / alpha)).
    #[test]
    fn the_radius_is_that_of_the_source() {
        for (t, alpha) in [(100_u64, 0.05_f64), (1000, 0.05), (50_000, 0.01)] {
            let log = -2.0 * alpha.ln();
            let rho2 = (log + log.ln() + 1.0) / 1000.0;
            let n = t as f64;
            let printed =
                (2.0 * (n * rho2 + 1.0) / (n * n * rho2) * ((n * rho2 + 1.0).sqrt() / alpha).ln()).sqrt();
            assert!((radius(t, alpha) - printed * n.sqrt()).abs() < 1e-9);
        }
    }

    #[test]
    fn it_is_wider_than_an_interval_for_one_look_and_grows_with_confidence() {
        for n in [50, 1000, 1_000_000] {
            assert!(radius(n, 0.05) > 1.96 && radius(n, 0.01) > radius(n, 0.05));
        }
        // In units of the effect it shrinks.
        assert!(radius(4000, 0.05) / 4000_f64.sqrt() < radius(1000, 0.05) / 1000_f64.sqrt());
    }

    #[test]
    fn half_the_effect_needs_about_four_times_the_units() {
        let needed = |effect| needed(effect, 1.0, 0.05, Power::Eighty);
        let (a, b) = (needed(0.1).unwrap(), needed(0.05).unwrap());
        assert!((4 * a..6 * a).contains(&b), "{a} {b}");
        assert!(needed(0.0).is_none());
        assert_eq!(needed(10.0), Some(2 * FEWEST));
    }
}
