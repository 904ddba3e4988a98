//! The period of a round-trip time: the Fourier transform of SEARCH thesis 4.5.1.

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;
use slowstart_study::stats::order_statistic;

/// A peak of a spectrum.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Peak {
    /// The frequency, in hertz.
    pub hz: f64,
    /// Amplitude of a sine of this magnitude, in the unit of the values.
    pub amplitude: f64,
}

/// Frequencies and amplitudes of values over time, in increasing order of frequency, without the frequency 0.
///
/// Points are resampled at equal intervals by linear interpolation. The linear trend is subtracted, because a
/// queue that fills would otherwise dominate the spectrum, and the ends are tapered (Hann). Empty for fewer
/// than 16 points or a duration of 0.
pub fn spectrum(points: &[(f64, f64)]) -> Vec<Peak> {
    let points: Vec<(f64, f64)> =
        points.iter().copied().filter(|p| p.0.is_finite() && p.1.is_finite()).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let (from, length) = (first.0, last.0 - first.0);
    let n = points.len().min(1 << 16);
    if n < 16 || length <= 0.0 {
        return Vec::new();
    }
    let step = length / n as f64;
    let mut next = 0;
    let even: Vec<f64> = (0..n)
        .map(|i| {
            let t = from + step * i as f64;
            while next + 2 < points.len() && points[next + 1].0 <= t {
                next += 1;
            }
            let (a, b) = (points[next], points[next + 1]);
            let width = b.0 - a.0;
            if width > 0.0 { a.1 + (b.1 - a.1) * ((t - a.0) / width).clamp(0.0, 1.0) } else { b.1 }
        })
        .collect();
    let mean = even.iter().sum::<f64>() / n as f64;
    let middle = (n - 1) as f64 / 2.0;
    let (mut over, mut under) = (0.0, 0.0);
    for (i, v) in even.iter().enumerate() {
        over += (i as f64 - middle) * (v - mean);
        under += (i as f64 - middle).powi(2);
    }
    let slope = over / under;
    let mut values: Vec<Complex<f64>> = even
        .iter()
        .enumerate()
        .map(|(i, v)| {
            let taper = 0.5 - 0.5 * (std::f64::consts::TAU * i as f64 / n as f64).cos();
            Complex::new((v - mean - slope * (i as f64 - middle)) * taper, 0.0)
        })
        .collect();
    FftPlanner::new().plan_fft_forward(n).process(&mut values);
    // Half of the amplitude is at the negative frequency, and the taper halves the rest.
    values[1..n / 2]
        .iter()
        .enumerate()
        .map(|(i, v)| Peak { hz: (i + 1) as f64 / length, amplitude: v.norm() * 4.0 / n as f64 })
        .collect()
}

/// The greatest peak with at least three cycles in the points; slower components are trends.
pub fn peak(points: &[(f64, f64)]) -> Option<Peak> {
    spectrum(points).into_iter().skip(2).max_by(|a, b| a.amplitude.total_cmp(&b.amplitude))
}

/// The greatest peak of the average of several series, up to the time at which half of them have ended, and
/// that time. The thesis transforms the average of its downloads.
pub fn peak_of_mean(series: &[Vec<(f64, f64)>]) -> Option<(Peak, f64)> {
    const POINTS: usize = 2048;
    let ends: Vec<f64> = series.iter().filter_map(|s| s.last().map(|p| p.0)).collect();
    let end = order_statistic(&ends, 0.5)?;
    let at = |s: &[(f64, f64)], t: f64| {
        let next = s.partition_point(|p| p.0 <= t);
        (next > 0 && next < s.len()).then(|| s[next - 1].1)
    };
    let mean: Vec<(f64, f64)> = (0..POINTS)
        .filter_map(|i| {
            let t = end * i as f64 / POINTS as f64;
            let values: Vec<f64> = series.iter().filter_map(|s| at(s, t)).collect();
            (values.len() * 2 >= series.len()).then(|| (t, values.iter().sum::<f64>() / values.len() as f64))
        })
        .collect();
    let length = mean.last()?.0 - mean.first()?.0;
    Some((peak(&mean)?, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_on_a_slope_is_found() {
        let tau = std::f64::consts::TAU;
        let points: Vec<(f64, f64)> = (0..1000)
            .map(|i| {
                let t = f64::from(i) * 0.01 + f64::from(i % 3) * 0.002;
                (t, 0.6 + 0.05 * t + 0.03 * (tau * 0.5 * t).sin())
            })
            .collect();
        let p = peak(&points).expect("ten seconds are enough");
        assert!((p.hz - 0.5).abs() < 0.06 && (p.amplitude - 0.03).abs() < 0.003, "{p:?}");
        assert_eq!(peak(&points[..5]), None);
        assert_eq!(peak(&[(1.0, 1.0); 100]), None);
    }
}
