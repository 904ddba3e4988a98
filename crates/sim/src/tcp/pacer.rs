//! Send time and size of bursts: Linux `tcp_update_pacing_rate`, `tcp_tso_autosize` and
//! `tcp_update_skb_after_send`.
//!
//! The rate is twice cwnd/srtt in slow start and 1.2 times cwnd/srtt after; a burst is what is sent in a
//! millisecond at that rate, and more on paths with a short RTT.

use super::profile::Profile;
use super::rtt::Rtt;
use slowstart::control::State;
use slowstart::step::Pace;
use slowstart::units::{Bytes, Gain, Instant, NS_PER_S, Rate, Span};

/// Pacing gain in slow start (`tcp_pacing_ss_ratio`).
const SLOW_START: Gain = Gain(2048);
/// Pacing gain in congestion avoidance (`tcp_pacing_ca_ratio`).
const AVOIDANCE: Gain = Gain(1229);
/// Minimum number of segments of a burst (`tcp_min_tso_segs`).
const MIN_SEGMENTS: u32 = 2;

/// Returns `bytes` times 8e9 divided by `by`, the value of [`Rate::new`] and [`Rate::time_for`], or `None`
/// outside the range of the fast computation: floating-point division is several times faster than that of
/// 64-bit integers. Its quotient is at most one off here, which the remainder shows. Adding 2^52 puts the
/// integer part in the low bits of the sum.
fn bits_over(bytes: Bytes, by: u64) -> Option<u64> {
    let bits = bytes.0.checked_mul(8 * NS_PER_S).filter(|b| *b < 1 << 62)?.cast_signed();
    let by = Some(by).filter(|by| (1 << 12..1 << 52).contains(by))?.cast_signed();
    let guess = ((bits as f64 / by as f64 + (1_u64 << 52) as f64).to_bits() & ((1 << 52) - 1)).cast_signed();
    let rest = bits - guess * by;
    Some((guess - i64::from(rest < 0) + i64::from(rest >= by)) as u64)
}

/// The pacer of a connection.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: Option<Rate>,
    on: bool,
    /// Maximum size of a burst, bytes; two segments are always allowed.
    burst: u32,
    /// When the last burst will have left at the rate.
    next: Instant,
}

impl Pacer {
    /// A pacer before the first RTT sample.
    pub fn new(p: &Profile) -> Self {
        Self { rate: None, on: false, burst: p.tso.max(p.mss), next: Instant::ZERO }
    }

    /// Updates rate and burst size from the controller's state, `out` bytes sent and not acknowledged, and
    /// the RTT.
    pub fn update(&mut self, p: &Profile, s: &State, out: Bytes, rtt: &Rtt) {
        let window = s.cwnd.max(out);
        let rate = |srtt: Span| bits_over(window, srtt.0).map(Rate).or_else(|| Rate::new(window, srtt));
        let of = |gain: Gain| rtt.srtt().and_then(rate).map(|r| r * gain);
        // Slow-start gain below half the threshold (tcp_update_pacing_rate).
        let slow_start = s.ssthresh.is_none_or(|t| s.cwnd < t / 2);
        (self.on, self.rate) = match s.pace {
            Some(Pace::Off) => (false, of(SLOW_START)),
            Some(Pace::Gain(gain)) => (true, of(gain)),
            Some(Pace::Rate(rate)) => (true, Some(rate.max(Rate(u64::from(p.mss) * 8)))),
            _ => (p.pacing, of(if slow_start { SLOW_START } else { AVOIDANCE })),
        };
        if p.tso == 0 {
            return;
        }
        let max = Bytes(u64::from(p.tso));
        // Bytes in 1/1024 s, by a shift as in Linux.
        let mut bytes = self.rate.map_or(max, |r| Bytes(r.0 >> 13));
        // Larger bursts for short RTTs: their queue drains sooner (tcp_tso_autosize).
        let halvings = rtt.min().map_or(63, |m| m.0 / 512_000);
        if halvings < 32 {
            bytes += Bytes(max.0 >> halvings);
        }
        self.burst = (bytes.min(max).0 as u32).max(MIN_SEGMENTS * p.mss);
    }

    /// Returns the number of segments of `mss` bytes in the next burst, at most `room`.
    pub fn burst(&self, room: u64, mss: u32) -> u32 {
        // Divides only if the window would allow more than a burst.
        let fits = room * u64::from(mss) <= u64::from(self.burst);
        if fits { room as u32 } else { self.burst / mss }
    }

    /// True if a full burst fits into `room` segments of `mss` bytes.
    pub fn fills(&self, room: u64, mss: u32) -> bool {
        (room + 1) * u64::from(mss) > u64::from(self.burst)
    }

    /// The pacing rate, whether pacing is on or not; `None` before the first RTT sample.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// True if bursts are paced.
    pub fn on(&self) -> bool {
        self.on && self.rate.is_some()
    }

    /// When the next burst may leave; `None` for now.
    pub fn wait(&self, now: Instant) -> Option<Instant> {
        (self.on() && self.next > now).then_some(self.next)
    }

    /// Takes a burst that left. A late burst may be compensated by up to half its duration.
    pub fn sent(&mut self, now: Instant, bytes: Bytes) {
        if let (true, Some(rate)) = (self.on, self.rate) {
            let time = bits_over(bytes, rate.0).map_or_else(|| rate.time_for(bytes), Span);
            let late = now.since(self.next).min(time / 2);
            self.next = self.next.max(now) + (time - late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: Bytes, by: u64) -> bool {
        let q = bits_over(bytes, by);
        q.is_none_or(|q| Some(Rate(q)) == Rate::new(bytes, Span(by)) && Span(q) == Rate(by).time_for(bytes))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        #[test]
        fn divides_exactly(bytes in 0_u64..1 << 30, by in 1_u64..1 << 53, small in 0_u32..30, narrow in 0_u32..53) {
            prop_assert!(check(Bytes(bytes >> small), by >> narrow));
        }

        #[test]
        fn divides_exactly_near_whole_quotients(bytes in 1_u64..1 << 29, q in 1_u64..1 << 40, off in 0_u64..3) {
            let by = bytes * 8 * NS_PER_S / q + off;
            prop_assert!(check(Bytes(bytes), by) && (by < 1 << 12 || bits_over(Bytes(bytes), by).is_some()));
        }
    }
}
