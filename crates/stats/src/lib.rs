//! Random streams, and statistics that assume nothing about distributions.
//!
//! - [`random`]: named streams of random numbers
//! - [`sequence`]: intervals that hold at every look at the same time

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod random;
pub mod sequence;

use std::cmp::Ordering;

/// A median, or a mean, with its 95 % interval.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Median {
    /// The median, or the mean.
    pub mid: f64,
    /// The interval's lower end; of a median, an order statistic.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
}

/// Returns the `q`-quantile (0 to 1) by linear interpolation between order statistics; `None` if there are no
/// values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut v: Vec<f64> = values.to_vec();
    v.sort_by(f64::total_cmp);
    quantile_of_sorted(&v, q)
}

/// [`quantile`] of values that are in ascending order.
pub fn quantile_of_sorted(values: &[f64], q: f64) -> Option<f64> {
    let at = q * (values.len().checked_sub(1)? as f64);
    let (lo, hi) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Some(lo + (hi - lo) * at.fract())
}

/// Returns the value of rank floor(`n` `q`) from 0 of `n` values, the last for `q` = 1: an order statistic that
/// overestimates by a rank at most. `None` if there are no values.
pub fn order_statistic(values: &[f64], q: f64) -> Option<f64> {
    let mut v: Vec<f64> = values.to_vec();
    v.sort_by(f64::total_cmp);
    v.get(((v.len() as f64 * q) as usize).min(v.len().saturating_sub(1))).copied()
}

/// Returns a share `p` (0 to 1) of `n`, and the ends of Wilson's 95 % interval (JASA 22, 1927), in per cent.
pub fn wilson(p: f64, n: f64) -> (f64, f64, f64) {
    let z = 1.96_f64;
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    // For p = 0 and p = 1 the ends are exactly 0 and 1.
    let low = if p > 0.0 { middle - half } else { 0.0 };
    let high = if p < 1.0 { middle + half } else { 1.0 };
    (100.0 * p, 100.0 * low, 100.0 * high)
}

/// The median with its distribution-free 95 % interval: the narrowest symmetric pair of order statistics
/// whose binomial coverage reaches it (Conover, Practical Nonparametric Statistics, 3.2). With fewer than six
/// values none does, and the interval is the whole range.
pub fn median(values: &[f64]) -> Option<Median> {
    let mid = quantile(values, 0.5)?;
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    let n = v.len();
    // P(fewer than k of n fair coins show heads), summed from the smallest term.
    let mut term = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let (mut tail, mut k) = (term, 0);
    while k + 1 < n / 2 {
        let next = term * (n - k) as f64 / (k + 1) as f64;
        if 2.0 * (tail + next) > 0.05 {
            break;
        }
        (term, k) = (next, k + 1);
        tail += next;
    }
    Some(Median { mid, low: v[k], high: v[n - 1 - k] })
}

impl Median {
    /// Returns which is smaller; `None` ("no difference") if the intervals overlap.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        if self.high < other.low {
            Some(Ordering::Less)
        } else if other.high < self.low {
            Some(Ordering::Greater)
        } else {
            None
        }
    }
}

/// Fewest pairs whose median difference has a 95 % interval.
pub const FEWEST_PAIRS: usize = 6;

/// The mean, with Student's 95 % interval; `None` if there are no values. The interval assumes values that
/// are spread about evenly around their mean.
pub fn mean(values: &[f64]) -> Option<Median> {
    let n = values.len() as f64;
    values.first()?;
    let mid = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mid).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    let half = student(values.len()) * (variance / n).sqrt();
    Some(Median { mid, low: mid - half, high: mid + half })
}

/// Half the width of the 95 % interval of a mean of `n` values, in standard errors. 0 for a single value.
pub fn student(n: usize) -> f64 {
    of_student(n, 1.96, [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262])
}

/// Half the width of the 80 % interval of a normal law, in standard deviations.
pub const NORMAL_80: f64 = 1.281_552;

/// Half the width of the 80 % interval of a mean of `n` values, in standard errors. 0 for a single value.
pub fn student_80(n: usize) -> f64 {
    of_student(n, NORMAL_80, [3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383])
}

/// A quantile of Student's law (Biometrika 6, 1908) for `n` values: that of the normal law is `z`, those of
/// one to nine degrees of freedom are a table. Above, the expansion of Abramowitz & Stegun, 26.7.5, to its
/// third term.
fn of_student(n: usize, z: f64, table: [f64; 9]) -> f64 {
    let freedom = n.saturating_sub(1);
    match freedom {
        0 => 0.0,
        1..=9 => table[freedom - 1],
        _ => {
            let v = freedom as f64;
            z + (z.powi(3) + z) / (4.0 * v)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v.powi(2))
                + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * v.powi(3))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_values_leave_out_one_at_each_end() {
        let v: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(median(&v), Some(Median { mid: 5.5, low: 2.0, high: 9.0 }));
        let v: Vec<f64> = (1..=5).map(f64::from).collect();
        assert_eq!(median(&v), Some(Median { mid: 3.0, low: 1.0, high: 5.0 }));
        assert_eq!(median(&[7.0]), Some(Median { mid: 7.0, low: 7.0, high: 7.0 }));
        assert_eq!(median(&[]), None);
        // 20 values: ranks 6 and 15.
        let v: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(median(&v), Some(Median { mid: 10.5, low: 6.0, high: 15.0 }));
    }

    #[test]
    fn overlap_is_no_difference() {
        let m = |low: f64, high: f64| Median { mid: f64::midpoint(low, high), low, high };
        assert_eq!(m(1.0, 2.0).compare(&m(1.5, 3.0)), None);
        assert_eq!(m(1.0, 2.0).compare(&m(2.5, 3.0)), Some(Ordering::Less));
        assert_eq!(m(3.0, 4.0).compare(&m(1.0, 2.0)), Some(Ordering::Greater));
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.25), Some(1.5));
        assert_eq!(quantile_of_sorted(&[1.0, 2.0, 3.0], 1.0), Some(3.0));
        let ranked = |q| order_statistic(&[3.0, 1.0, 2.0, 4.0], q);
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(ranked), [Some(1.0), Some(2.0), Some(3.0), Some(4.0)]);
        assert_eq!((quantile(&[], 0.5), order_statistic(&[], 0.5)), (None, None));
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 1.0), Some(3.0));
    }
}
