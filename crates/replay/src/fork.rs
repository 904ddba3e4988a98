//! A path fitted to a capture, in which every startup can be run: what the observers cannot say, for what is sent after
//! their answer ends was another's.

use crate::analysis::Findings;
use crate::transfer::Transfer;

/// Bytes of IP and TCP headers with timestamps.
const HEADERS: f64 = 52.0;
/// Intervals of a least round trip over which the rate is taken: the busiest so many in a row.
const STRETCH: usize = 25;

/// A path as a capture shows it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Rate on the wire, bits a second: the busiest stretch.
    pub rate_bps: f64,
    /// The least round trip.
    pub base_rtt_s: f64,
    /// What queued at most, bytes on the wire.
    pub queue_bytes: f64,
    /// Whether a loss showed how much it holds; otherwise it holds at least that.
    pub queue_was_full: bool,
}

/// Fits a path; `None` where the capture has no round trips or nothing was delivered.
pub fn fit(t: &Transfer, f: &Findings) -> Option<Fitted> {
    let least = f.min_rtt?.as_secs_f64();
    let stretch = STRETCH.min(f.rates.len());
    let means = f.rates.windows(stretch.max(1)).map(|w| w.iter().map(|r| r.1).sum::<f64>() / w.len() as f64);
    let payload = means.reduce(f64::max).filter(|r| *r > 0.0)?;
    let mss = t.mss_bytes as f64;
    let packet = mss + HEADERS;
    let rate_bps = payload * 8.0 * packet / mss;
    // What is lost first had been refused by a full queue, which the packets before it had waited for.
    let queued = f.rtt_at_loss.or(f.max_rtt)?.as_secs_f64() - least;
    let queue_bytes = (queued * rate_bps / 8.0).max(packet);
    // The least round trip has a packet's own transmission in it.
    let base_rtt_s = (least - packet * 8.0 / rate_bps).max(1e-6);
    Some(Fitted { rate_bps, base_rtt_s, queue_bytes, queue_was_full: f.rtt_at_loss.is_some() })
}

impl Fitted {
    /// As `slowstart compare` reads it.
    pub fn inline(&self) -> String {
        format!(
            "rate={:.0}bit rtt={:.3}ms queue={:.0}B",
            self.rate_bps,
            self.base_rtt_s * 1e3,
            self.queue_bytes
        )
    }
}
