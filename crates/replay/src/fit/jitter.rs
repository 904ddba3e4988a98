//! Jitter: how the times of ACKs scatter about the line of a full link.

use super::flow::Flow;
use super::rate::Busy;
use slowstart_study::stats::quantile;

/// Number of consecutive ACKs whose times are fitted by a line.
const LINE: usize = 32;
/// Maximum jitter, in transmission times of a packet, and the number of steps of the numerical integral.
const MOST: f64 = 1000.0;
const STEPS: u32 = 400;
/// Maximum deviation from 1 of the slope of a line that belongs to a full link.
const FULL: f64 = 0.05;

/// A delay of each packet, uniform from none to the most, without reordering.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Jitter {
    /// The most, seconds.
    pub(super) most: f64,
    /// The delay of a packet in the mean, that of waiting for the packets before it included.
    pub(super) mean: f64,
    /// The variance of an ACK's time about the line of a full link, square seconds.
    pub(super) variance: f64,
    /// Lines that were fitted.
    pub(super) lines: usize,
}

/// Estimates the jitter. Of ACKs that wait for slots only the variance is known: it is that of the slots,
/// too.
pub(super) fn find(flow: &Flow, busy: &Busy, slot: f64) -> Jitter {
    let points: Vec<(f64, f64)> = busy
        .runs
        .iter()
        .flat_map(|r| &flow.acks[r.0..=r.1])
        .map(|a| (a.delivered / busy.rate, a.at))
        .collect();
    let rests: Vec<f64> = points.chunks_exact(LINE).filter_map(line).collect();
    let Some(variance) = quantile(&rests, 0.5) else { return Jitter::default() };
    if slot > 0.0 {
        return Jitter { variance, lines: rests.len(), ..Jitter::default() };
    }
    let transmission = flow.packet / busy.rate;
    let wanted = variance / (transmission * transmission);
    // The variance increases with the jitter: bisection.
    let (mut low, mut high) = (0.0, MOST);
    for _ in 0..40 {
        let mid = f64::midpoint(low, high);
        if lateness(mid).1 < wanted { low = mid } else { high = mid }
    }
    let (mean, _) = lateness(low);
    // More than any ACK was late is no jitter, but a rate that varies.
    let most = flow.acks.iter().filter_map(|a| a.rtt).fold(0.0, f64::max) - flow.least;
    if low * transmission > most {
        return Jitter { variance, lines: rests.len(), ..Jitter::default() };
    }
    Jitter { most: low * transmission, mean: mean * transmission, variance, lines: rests.len() }
}

/// Mean and variance of a packet's lateness if each is delayed by up to `jitter` and one is sent per unit of
/// time. Packets stay in order, so a packet waits for all before it: with D the lateness, `P(D <= x)` is the
/// product over `k >= 0` of `min(1, (x + k) / jitter)`.
fn lateness(jitter: f64) -> (f64, f64) {
    if jitter <= 0.0 {
        return (0.0, 0.0);
    }
    let step = jitter / f64::from(STEPS);
    let (mut first, mut second) = (0.0, 0.0);
    for i in 0..STEPS {
        let x = (f64::from(i) + 0.5) * step;
        let mut below = 1.0;
        let mut at = x;
        while at < jitter && below > 1e-9 {
            below *= at / jitter;
            at += 1.0;
        }
        first += (1.0 - below) * step;
        second += 2.0 * x * (1.0 - below) * step;
    }
    (first, second - first * first)
}

/// The variance about the line through these points, if its slope is that of a full link (1: the unit of time
/// is what the link needs for the data).
fn line(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let over = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| of(p.0 - x, p.1 - y)).sum::<f64>();
    let (xx, xy) = (over(&|x, _| x * x), over(&|x, y| x * y));
    let slope = (xx > 0.0).then(|| xy / xx)?;
    let rest = over(&|x, y| (y - slope * x).powi(2));
    ((slope - 1.0).abs() < FULL).then(|| rest / (n - 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jitter below one transmission time causes no waiting: uniform. Above it, packets wait for those before
    /// them (a simulation with 64,000 draws gives variances of 0.655, 1.53 and 3.70).
    #[test]
    fn lateness_is_that_of_packets_that_do_not_overtake() {
        for (jitter, variance) in [(0.5, 0.25 / 12.0), (3.33, 0.655), (6.0, 1.53), (12.0, 3.70)] {
            let found = lateness(jitter).1;
            assert!((found / variance - 1.0).abs() < 0.01, "{jitter}: {found}");
        }
        assert!((lateness(0.5).0 - 0.25).abs() < 1e-3);
    }
}
