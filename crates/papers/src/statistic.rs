//! Statistics over runs, with 95 % intervals.

use serde::Deserialize;
use slowstart_study::stats;

/// The statistic of the values of several runs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The median, with its distribution-free 95 % interval.
    #[default]
    Median,
    /// The mean, with Student's 95 % interval.
    Mean,
    /// The standard deviation, with the 95 % interval of normal values.
    Deviation,
    /// The share of runs, in per cent, with Wilson's 95 % interval; for measures that are 0 or 1.
    Share,
    /// The highest value of a sample of the paper's size, `sample`: its median over such samples, with a distribution-free
    /// 95 % interval. The more runs a sample has, the higher it is: the highest of ours alone is no estimate of theirs.
    Highest,
    /// The share of runs, in per cent, in which the value is at most `within`.
    Within,
}

/// The 95 % interval of a standard deviation of `n` values: the quantiles of chi square over its degrees of
/// freedom (Wilson & Hilferty, PNAS 17, 1931).
pub(crate) fn deviation_ends(deviation: f64, n: f64) -> (f64, f64) {
    let c = 2.0 / (9.0 * (n - 1.0));
    let end = |z: f64| (deviation * deviation / (1.0 - c + z * c.sqrt()).max(1e-9).powi(3)).sqrt();
    (end(1.96), end(-1.96))
}

/// The quantile of one value below which the highest of `sample` lies with this probability.
fn quantile_of_highest(sample: f64, probability: f64) -> f64 {
    probability.powf(1.0 / sample)
}

/// The median of the highest of `sample` values, and the ends of its interval: order statistics whose binomial coverage is
/// 95 % (Conover, Practical Nonparametric Statistics, 3.2). Infinite where too few values bound it.
fn highest(sample: f64, values: &[f64]) -> Option<(f64, f64, f64)> {
    let q = quantile_of_highest(sample, 0.5);
    let mid = stats::quantile(values, q)?;
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    let n = v.len();
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    // The probability that k of n values lie below the quantile, and its sum down to k.
    let mut term = q.powf(n as f64);
    if term <= 0.0 {
        // Too many values for this sum: unknown is better than wrong.
        return None;
    }
    let mut tail = term;
    for k in (1..=n).rev() {
        if tail <= 0.025 {
            high = v[k - 1];
        } else if tail >= 0.975 {
            low = v[k - 1];
            break;
        }
        term *= k as f64 / (n - k + 1) as f64 * (1.0 - q) / q;
        tail += term;
    }
    Some((mid, low, high))
}

/// How far the highest of `sample` values lies below its median, and above, in 95 % of the samples.
pub(crate) fn reach_of_highest(sample: f64, values: &[f64]) -> Option<(f64, f64)> {
    let at = |probability| stats::quantile(values, quantile_of_highest(sample, probability));
    let mid = at(0.5)?;
    Some((mid - at(0.025)?, at(0.975)? - mid))
}

/// The statistic of `values`, and the ends of its 95 % interval. `of` is the bound of [`Statistic::Within`], the sample of
/// [`Statistic::Highest`].
pub(crate) fn statistic(how: Statistic, of: f64, values: &[f64]) -> Option<(f64, f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let share = |p: f64| stats::wilson(p, n);
    values.first()?;
    match how {
        Statistic::Median => stats::median(values).map(|m| (m.mid, m.low, m.high)),
        Statistic::Mean => stats::mean(values).map(|m| (m.mid, m.low, m.high)),
        Statistic::Deviation => {
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let (low, high) = deviation_ends(variance.sqrt(), n);
            (n > 1.0).then(|| (variance.sqrt(), low, high))
        }
        Statistic::Share => Some(share(mean)),
        Statistic::Highest => highest(of, values),
        Statistic::Within => Some(share(values.iter().filter(|v| **v <= of).count() as f64 / n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_wilsons_interval() {
        // Ten of ten: the interval begins at 72 %.
        let (value, low, high) = statistic(Statistic::Share, 0.0, &[1.0; 10]).expect("ten");
        assert!((value - 100.0).abs() < 1e-9 && (low - 72.2).abs() < 0.1 && (high - 100.0).abs() < 1e-9);
        let (value, ..) = statistic(Statistic::Within, 2.0, &[1.0, 2.0, 3.0, 4.0]).expect("four");
        assert!((value - 50.0).abs() < 1e-9);
        assert_eq!(statistic(Statistic::Mean, 0.0, &[]), None);
    }

    #[test]
    fn the_highest_of_a_sample_grows_with_the_sample() {
        // Of values that are spread evenly over 0 to 1 the highest of 77 has its median at 0.5^(1/77).
        let values: Vec<f64> = (0..1000).map(|i| (f64::from(i) + 0.5) / 1000.0).collect();
        let (mid, low, high) = statistic(Statistic::Highest, 77.0, &values).expect("values");
        assert!(
            (mid - 0.991).abs() < 1e-3 && (0.983..0.988).contains(&low) && (0.995..0.999).contains(&high)
        );
        let (of_8, ..) = statistic(Statistic::Highest, 8.0, &values).expect("values");
        assert!((of_8 - 0.917).abs() < 1e-3);
        // One sample of eight reaches from 0.631 to 0.997.
        let (below, above) = reach_of_highest(8.0, &values).expect("values");
        assert!((below - 0.286).abs() < 2e-3 && (above - 0.080).abs() < 2e-3, "{below} {above}");
        // Eight values say what the highest of eight is at least, and not what it is at most.
        let (_, low, high) = statistic(Statistic::Highest, 8.0, &values[..8]).expect("values");
        assert!(low.is_finite() && high.is_infinite());
    }

    #[test]
    fn means_of_few_have_students_interval() {
        for (n, t) in [(5, 2.776), (10, 2.262), (11, 2.228), (31, 2.042), (121, 1.980)] {
            assert!((stats::student(n) - t).abs() < 2e-3, "{n}: {}", stats::student(n));
        }
        // The mean of 1 to 5 is 3; the interval is 2.776 times the square root of 0.5 on each side.
        let (mean, low, high) = statistic(Statistic::Mean, 0.0, &[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five");
        assert!((mean - 3.0).abs() < 1e-9 && (low - 1.037).abs() < 1e-3 && (high - 4.963).abs() < 1e-3);
    }

    #[test]
    fn deviations_have_the_interval_of_chi_square() {
        // 21 values with a variance of 1: chi square of 20 degrees is between 9.59 and 34.17 in 95 % of the
        // cases.
        let values: Vec<f64> = (0..21).map(|i| f64::from(i) - 10.0).collect();
        let (sd, low, high) = statistic(Statistic::Deviation, 0.0, &values).expect("21 values");
        assert!((sd - 38.5_f64.sqrt()).abs() < 1e-9, "{sd}");
        assert!((low / sd - (20.0_f64 / 34.17).sqrt()).abs() < 0.01, "{low}");
        assert!((high / sd - (20.0_f64 / 9.591).sqrt()).abs() < 0.01, "{high}");
        assert_eq!(statistic(Statistic::Deviation, 0.0, &[1.0]), None);
    }
}
