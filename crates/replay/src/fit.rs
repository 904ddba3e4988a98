//! A path fitted to a capture: rate, base round trip, queue and jitter.

use crate::analysis::Findings;
use serde::{Deserialize, Serialize};
use slowstart_lab::stats::quantile;

/// Bytes of IP and TCP headers with timestamps.
const HEADERS: f64 = 52.0;
/// Intervals of a least round trip over which the rate is taken: the busiest so many in a row.
const STRETCH: usize = 25;
/// Acknowledgements in a row whose times are held against a line.
const LINE: usize = 32;
/// The most jitter that is looked for, in packets' transmissions, and the steps in which its effect is summed.
const MOST: f64 = 1000.0;
const STEPS: u32 = 400;
/// A line whose slope is within this share of the rate is that of a full link.
const FULL: f64 = 0.05;

/// A path as a capture shows it.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedPath {
    /// Rate on the wire, bits a second: the busiest stretch.
    pub rate_bps: f64,
    /// The least round trip, without a packet's own transmission.
    pub base_rtt_s: f64,
    /// What queued at most, bytes on the wire.
    pub queue_bytes: f64,
    /// Whether a loss showed how much it holds; otherwise it holds at least that.
    pub queue_was_full: bool,
    /// What delays varied by beside the queue: each packet by up to so much, none overtaking another.
    pub jitter_s: f64,
}

/// Fits a path; `None` where the capture has no round trips or nothing was delivered.
pub fn fit(f: &Findings) -> Option<FittedPath> {
    let least = f.min_rtt?.as_secs_f64();
    let stretch = STRETCH.min(f.rates.len());
    let means = f.rates.windows(stretch.max(1)).map(|w| w.iter().map(|r| r.1).sum::<f64>() / w.len() as f64);
    let payload = means.reduce(f64::max).filter(|r| *r > 0.0)?;
    let mss = f.mss.0 as f64;
    let packet = mss + HEADERS;
    let rate_bps = payload * 8.0 * packet / mss;
    let transmission = packet * 8.0 / rate_bps;
    let jitter_s = jitter(f, payload, transmission);
    // What is lost first had been refused by a full queue, which the packets before it had waited for. The latest of
    // those met all of the jitter.
    let queued = f.rtt_before_loss.or(f.max_rtt)?.as_secs_f64() - least - jitter_s;
    let queue_bytes = (queued * rate_bps / 8.0).max(packet);
    // The least round trip has a packet's own transmission in it.
    let base_rtt_s = (least - transmission).max(1e-6);
    Some(FittedPath {
        rate_bps,
        base_rtt_s,
        queue_bytes,
        queue_was_full: f.rtt_before_loss.is_some(),
        jitter_s,
    })
}

/// The greatest of delays that are uniform from none, from how the times of acknowledgements scatter about the line of a
/// full link, which hands over a packet each `transmission` s.
fn jitter(f: &Findings, payload: f64, transmission: f64) -> f64 {
    let points: Vec<(f64, f64)> =
        f.snapshots.iter().map(|s| (s.delivered.0 as f64 / payload, s.at.0 as f64 / 1e9)).collect();
    let rests: Vec<f64> = points.chunks_exact(LINE).filter_map(line).collect();
    let Some(variance) = quantile(&rests, 0.5) else { return 0.0 };
    let wanted = variance / (transmission * transmission);
    // The variance grows with the jitter.
    let (mut low, mut high) = (0.0, MOST);
    for _ in 0..40 {
        let mid = f64::midpoint(low, high);
        if scatter(mid) < wanted { low = mid } else { high = mid }
    }
    low * transmission
}

/// The variance of how late a packet is, where each is delayed by up to `jitter` and one leaves each unit of time.
/// None overtakes another, so a packet waits for all before it: with D its lateness,
/// `P(D <= x)` is the product over `k >= 0` of `min(1, (x + k) / jitter)`.
fn scatter(jitter: f64) -> f64 {
    if jitter <= 0.0 {
        return 0.0;
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
    second - first * first
}

/// The variance about the line through these points, if its slope is that of a full link (one: time is measured in what
/// the link should have delivered).
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

impl FittedPath {
    /// As `slowstart compare` reads it.
    pub fn inline(&self) -> String {
        // Less than ten microseconds is the clock's.
        let jitter = if self.jitter_s >= 1e-5 {
            format!(" jitter={:.3}ms", self.jitter_s * 1e3)
        } else {
            String::new()
        };
        format!(
            "rate={:.0}bit rtt={:.3}ms queue={:.0}B{jitter}",
            self.rate_bps,
            self.base_rtt_s * 1e3,
            self.queue_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A jitter below a transmission overtakes nothing: uniform. Above, packets wait for those before: the greater, the
    /// nearer to the most (simulated with 64,000 draws: variances 0.655, 1.53 and 3.70).
    #[test]
    fn lateness_is_that_of_packets_that_do_not_overtake() {
        for (jitter, variance) in [(0.5, 0.25 / 12.0), (3.33, 0.655), (6.0, 1.53), (12.0, 3.70)] {
            let found = scatter(jitter);
            assert!((found / variance - 1.0).abs() < 0.01, "{jitter}: {found}");
        }
    }
}
