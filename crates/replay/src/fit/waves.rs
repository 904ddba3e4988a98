//! Waves of delay: a periodic part of the times at which a full link's packets arrive.

use super::flow::Flow;
use super::rate::Busy;
use super::{Estimate, Wave};
use std::f64::consts::TAU;

/// ACKs that are looked at, and periods.
const POINTS: usize = 4000;
const PERIODS: u32 = 2000;
/// Periods that must fit into the time observed.
const CYCLES: f64 = 2.5;
/// Share of the variance that a wave must explain.
const EXPLAINED: f64 = 0.75;

/// Share of the variance of the rate within a cycle that it may leave.
const LEFT: f64 = 0.5;

/// A line and a wave through points: `y = level + slope x + sine sin + cosine cos`, and the sum of squares
/// that is left.
struct Fit {
    slope: f64,
    sine: f64,
    cosine: f64,
    rest: f64,
}

/// Least squares with these columns, by Cholesky's decomposition; `None` if a column depends on the others.
fn solve(points: &[(f64, f64)], frequency: Option<f64>) -> Option<Fit> {
    let n = if frequency.is_some() { 4 } else { 2 };
    let row = |x: f64| {
        let (sin, cos) = frequency.map_or((0.0, 0.0), |f| libm::sincos(TAU * f * x));
        [1.0, x, sin, cos]
    };
    let (mut a, mut b, mut total) = ([[0.0; 4]; 4], [0.0; 4], 0.0);
    for &(x, y) in points {
        let r = row(x);
        for i in 0..n {
            for j in 0..n {
                a[i][j] += r[i] * r[j];
            }
            b[i] += r[i] * y;
        }
        total += y * y;
    }
    let mut l = [[0.0; 4]; 4];
    for i in 0..n {
        for j in 0..=i {
            let sum = a[i][j] - (0..j).map(|k| l[i][k] * l[j][k]).sum::<f64>();
            if i == j {
                if sum <= a[i][i] * 1e-12 {
                    return None;
                }
                l[i][i] = sum.sqrt();
            } else {
                l[i][j] = sum / l[j][j];
            }
        }
    }
    let mut z = [0.0; 4];
    for i in 0..n {
        z[i] = (b[i] - (0..i).map(|k| l[i][k] * z[k]).sum::<f64>()) / l[i][i];
    }
    let explained: f64 = z.iter().map(|z| z * z).sum();
    let mut x = [0.0; 4];
    for i in (0..n).rev() {
        x[i] = (z[i] - (i + 1..n).map(|k| l[k][i] * x[k]).sum::<f64>()) / l[i][i];
    }
    Some(Fit { slope: x[1], sine: x[2], cosine: x[3], rest: (total - explained).max(0.0) })
}

/// A wave, the factor by which the rate changes when it is taken into account, and the flow without it.
pub(super) struct Found {
    pub(super) wave: Wave,
    pub(super) factor: f64,
    pub(super) without: Flow,
}

/// Finds the wave, if there is one. `slot` is the period of ACK slots.
pub(super) fn find(flow: &Flow, busy: &Busy, slot: f64) -> Option<Found> {
    let &(first, last) = busy
        .runs
        .iter()
        .max_by(|a, b| flow.acks[a.1].at.total_cmp(&flow.acks[b.1].at).then(b.0.cmp(&a.0)))?;
    let run = &flow.acks[first..=last];
    let (start, begun) = (run[0].at, run[0].delivered);
    let seconds = run[run.len() - 1].at - start;
    let stride = run.len().div_ceil(POINTS);
    // How late the data of each ACK is against a link of constant rate.
    let points: Vec<(f64, f64)> = run
        .iter()
        .step_by(stride)
        .map(|a| (a.at - start, a.at - start - (a.delivered - begun) / busy.rate))
        .collect();
    let alone = solve(&points, None)?.rest;
    let step = 1.0 / (4.0 * seconds);
    let most =
        (points.len() as f64 / 8.0 / seconds).min(step * f64::from(PERIODS)).min(0.25 / slot.max(1e-9));
    let mut best: Option<(f64, Fit)> = None;
    let mut frequency = CYCLES / seconds;
    while frequency < most {
        if let Some(fit) = solve(&points, Some(frequency))
            && best.as_ref().is_none_or(|b| fit.rest < b.1.rest)
        {
            best = Some((frequency, fit));
        }
        frequency += step;
    }
    let (mut frequency, mut fit) = best?;
    // Finer, about the best.
    for scale in [0.3, 0.1, 0.03] {
        for n in [-3, -2, -1, 1, 2, 3] {
            let near = frequency + step * scale * f64::from(n);
            if let Some(other) = solve(&points, Some(near)).filter(|f| near > 0.0 && f.rest < fit.rest) {
                (frequency, fit) = (near, other);
            }
        }
    }
    let explained = 1.0 - fit.rest / alone;
    if explained < EXPLAINED {
        return None;
    }
    let amplitude = libm::hypot(fit.sine, fit.cosine);
    let delay = |_, at: f64| {
        let (sin, cos) = libm::sincos(TAU * frequency * (at - start));
        amplitude + fit.sine * sin + fit.cosine * cos
    };
    let without = flow.without(delay);
    // The path takes some time besides.
    if without.least <= 1e-6 {
        return None;
    }
    // A rate that varies makes a random walk of the delay, of which a slow wave explains much. But it does
    // not explain how the rate varies within a cycle.
    let width = 0.25 / frequency;
    if busy.variance(&without, width)?.0 > LEFT * busy.variance(flow, width)?.0 {
        return None;
    }
    let left = (fit.rest / points.len() as f64).sqrt();
    let cycles = seconds * frequency;
    // Noise that lasts for a cycle averages over cycles alone.
    let off = (2.0 * left / cycles.sqrt()).max(amplitude * 0.02);
    let period = 1.0 / frequency;
    let drift = period * (left / amplitude) / cycles;
    let basis = format!(
        "{:.0} % of the variation of delay over {cycles:.1} cycles of a full link",
        explained * 100.0
    );
    let wave = Wave {
        amplitude_s: Estimate {
            value: amplitude,
            low: (amplitude - off).max(0.0),
            high: Some(amplitude + off),
            basis: basis.clone(),
        },
        period_s: Estimate { value: period, low: period - drift, high: Some(period + drift), basis },
    };
    Some(Found { wave, factor: 1.0 - fit.slope, without })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_and_a_wave_are_found_again() {
        let points: Vec<(f64, f64)> = (0..400)
            .map(|i| {
                let x = f64::from(i) * 0.01;
                (x, 3.0 + 0.5 * x + 0.2 * libm::sin(TAU * 1.5 * x) - 0.1 * libm::cos(TAU * 1.5 * x))
            })
            .collect();
        let fit = solve(&points, Some(1.5)).expect("columns that differ");
        assert!((fit.slope - 0.5).abs() < 1e-6 && (fit.sine - 0.2).abs() < 1e-6, "{}", fit.slope);
        assert!((fit.cosine + 0.1).abs() < 1e-6 && fit.rest < 1e-9, "{}", fit.rest);
        assert!(solve(&points, None).expect("two columns").rest > 1.0);
    }
}
