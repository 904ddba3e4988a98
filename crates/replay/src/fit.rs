//! Fits a path to a capture: rate, base RTT, queue and jitter.

use crate::analysis::Findings;
use serde::{Deserialize, Serialize};
use slowstart_lab::stats::quantile;

/// Bytes of IP and TCP headers with timestamps.
const HEADERS: f64 = 52.0;
/// Number of consecutive intervals of one minimum RTT over which the rate is measured: the busiest ones.
const STRETCH: usize = 25;
/// Number of consecutive ACKs whose times are fitted by a line.
const LINE: usize = 32;
/// Maximum jitter, in transmission times of a packet, and the number of steps of the numerical integral.
const MOST: f64 = 1000.0;
const STEPS: u32 = 400;
/// Maximum deviation from 1 of the slope of a line that belongs to a full link.
const FULL: f64 = 0.05;

/// A path fitted to a capture.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedPath {
    /// Rate on the wire, bits per second: the busiest stretch.
    pub rate_bps: f64,
    /// Minimum RTT without the transmission time of a packet.
    pub base_rtt_s: f64,
    /// Maximum queue, bytes on the wire.
    pub queue_bytes: f64,
    /// True if a loss showed the queue's limit; otherwise the queue holds at least `queue_bytes`.
    pub queue_was_full: bool,
    /// Jitter: the maximum of a uniform delay for each packet, without reordering.
    pub jitter_s: f64,
}

/// Fits a path; `None` if the findings have no RTT sample or nothing was delivered.
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
    // The first packet lost found the queue full; the packets before it had waited for that queue, and the slowest
    // of them had the maximum jitter.
    let queued = f.rtt_before_loss.or(f.max_rtt)?.as_secs_f64() - least - jitter_s;
    let queue_bytes = (queued * rate_bps / 8.0).max(packet);
    // The minimum RTT includes the transmission time of a packet.
    let base_rtt_s = (least - transmission).max(1e-6);
    Some(FittedPath {
        rate_bps,
        base_rtt_s,
        queue_bytes,
        queue_was_full: f.rtt_before_loss.is_some(),
        jitter_s,
    })
}

/// Estimates the maximum of a uniform jitter from how the times of ACKs scatter about the line of a full link,
/// which delivers a packet every `transmission` seconds.
fn jitter(f: &Findings, payload: f64, transmission: f64) -> f64 {
    let points: Vec<(f64, f64)> =
        f.snapshots.iter().map(|s| (s.delivered.0 as f64 / payload, s.at.0 as f64 / 1e9)).collect();
    let rests: Vec<f64> = points.chunks_exact(LINE).filter_map(line).collect();
    let Some(variance) = quantile(&rests, 0.5) else { return 0.0 };
    let wanted = variance / (transmission * transmission);
    // The variance increases with the jitter: bisection.
    let (mut low, mut high) = (0.0, MOST);
    for _ in 0..40 {
        let mid = f64::midpoint(low, high);
        if scatter(mid) < wanted { low = mid } else { high = mid }
    }
    low * transmission
}

/// The variance of a packet's lateness if each is delayed by up to `jitter` and one is sent per unit of time.
/// Packets stay in order, so a packet waits for all before it: with D the lateness, `P(D <= x)` is the product over
/// `k >= 0` of `min(1, (x + k) / jitter)`.
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

/// The variance about the line through these points, if its slope is that of a full link (1: the unit of time is
/// what the link needs for the data).
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
    /// The path as an argument of `slowstart compare`.
    pub fn inline(&self) -> String {
        // Less than 10 us is clock noise.
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

    /// Jitter below one transmission time causes no waiting: uniform. Above it, packets wait for those before them
    /// (a simulation with 64,000 draws gives variances of 0.655, 1.53 and 3.70).
    #[test]
    fn lateness_is_that_of_packets_that_do_not_overtake() {
        for (jitter, variance) in [(0.5, 0.25 / 12.0), (3.33, 0.655), (6.0, 1.53), (12.0, 3.70)] {
            let found = scatter(jitter);
            assert!((found / variance - 1.0).abs() < 0.01, "{jitter}: {found}");
        }
    }
}
