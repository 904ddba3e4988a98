//! Whether the arms received the shares that were planned. If they did not, something other than chance
//! decided which connections are in which arm (lost records, for instance), and no comparison is valid.
//!
//! Source: Lindon, Malek: Anytime-valid inference for multinomial count data, `NeurIPS` 2022: a Bayes factor
//! of a Dirichlet mixture against the planned shares. With the planned shares it exceeds 1/alpha at any look
//! with a probability of alpha at most.

/// Weight of the prior, in units. Ours.
const PRIOR: f64 = 100.0;

/// The error over all looks. Much smaller than that of comparisons, because crossing it invalidates the whole
/// trial.
pub const ALPHA: f64 = 0.001;

/// Returns the natural logarithm of the Bayes factor of these counts against the shares, of which at least
/// one is above 0. Shares are taken relative to their sum.
pub fn log_bayes_factor(counts: &[u64], shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let n: u64 = counts.iter().sum();
    let mut log = libm::lgamma(PRIOR) - libm::lgamma(PRIOR + n as f64);
    for (count, share) in counts.iter().zip(shares) {
        let (count, share) = (*count as f64, share / sum);
        log += libm::lgamma(PRIOR * share + count) - libm::lgamma(PRIOR * share);
        log -= count * libm::log(share);
    }
    log
}

/// Returns false if the counts are not those of the shares.
pub fn is_balanced(counts: &[u64], shares: &[f64]) -> bool {
    log_bayes_factor(counts, shares) < -libm::log(ALPHA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_first_unit_the_factor_is_one() {
        assert!(log_bayes_factor(&[0, 0], &[0.5, 0.25]).abs() < 1e-9);
    }

    #[test]
    fn one_unit_has_the_probability_of_its_share_under_both() {
        // The mean of the Dirichlet is the planned share, so one unit tells nothing.
        assert!(log_bayes_factor(&[0, 1], &[0.5, 0.25]).abs() < 1e-9);
    }

    #[test]
    fn counts_of_the_shares_are_balanced_and_others_are_not() {
        assert!(is_balanced(&[5020, 2480, 2500], &[0.5, 0.25, 0.25]));
        assert!(!is_balanced(&[5300, 2350, 2350], &[0.5, 0.25, 0.25]));
        assert!(is_balanced(&[3, 0, 2], &[0.5, 0.25, 0.25]));
    }
}
