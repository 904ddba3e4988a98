//! When the next burst may leave, and how large it is.
//!
//! Linux `tcp_update_pacing_rate`, `tcp_tso_autosize` and `tcp_update_skb_after_send`: twice cwnd/srtt in slow start,
//! 1.2 times after; a burst of a millisecond's worth, more on short paths.

use slowstart::control::State;
use slowstart::step::Pace;
use slowstart::units::{Bytes, Gain, Instant, Rate, Span};

/// Pacing in slow start (`tcp_pacing_ss_ratio`).
const SLOW_START: Gain = Gain(2048);
/// Pacing in avoidance (`tcp_pacing_ca_ratio`).
const AVOIDANCE: Gain = Gain(1229);
/// Segments a burst has at least (`tcp_min_tso_segs`).
const MIN_SEGMENTS: u64 = 2;

/// The pacer of a connection.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    rate: Option<Rate>,
    on: bool,
    /// When the last burst will have left at the rate.
    next: Instant,
}

impl Pacer {
    /// Takes the window as it stands.
    pub fn update(&mut self, on: bool, s: &State, mss: Bytes, out: Bytes, srtt: Option<Span>) {
        let window = s.cwnd.max(out);
        let of = |gain: Gain| srtt.and_then(|srtt| Rate::new(window, srtt)).map(|r| r * gain);
        // Below half the threshold the window doubles each round trip (tcp_update_pacing_rate).
        let slow_start = s.ssthresh.is_none_or(|t| s.cwnd < t / 2);
        (self.on, self.rate) = match s.pace {
            None => (on, of(if slow_start { SLOW_START } else { AVOIDANCE })),
            Some(Pace::Off) => (false, of(SLOW_START)),
            Some(Pace::Gain(gain)) => (true, of(gain)),
            Some(Pace::Rate(rate)) => (true, Some(rate.max(Rate(mss.0 * 8)))),
        };
    }

    /// The rate, in force or not.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Whether it is in force.
    pub fn on(&self) -> bool {
        self.on && self.rate.is_some()
    }

    /// When the next burst may leave, if not now.
    pub fn wait(&self, now: Instant) -> Option<Instant> {
        (self.on() && self.next > now).then_some(self.next)
    }

    /// Segments of the next burst, at most.
    pub fn burst(&self, mss: Bytes, max: Bytes, min_rtt: Option<Span>) -> u32 {
        if max.0 == 0 {
            return 1;
        }
        let mut bytes = self.rate.map_or(max, |r| r.over(Span(1_000_000_000 / 1024)));
        // Short paths get larger bursts: the queue they make is gone sooner.
        let halvings = min_rtt.map_or(63, |m| m.0 / (512 * 1000));
        if halvings < 32 {
            bytes += Bytes(max.0 >> halvings);
        }
        bytes.min(max).units(mss).max(MIN_SEGMENTS) as u32
    }

    /// A burst left. Being late is made up for, up to half a burst's time.
    pub fn sent(&mut self, now: Instant, bytes: Bytes) {
        if let (true, Some(rate)) = (self.on, self.rate) {
            let time = rate.time_for(bytes);
            let late = now.since(self.next).min(time / 2);
            self.next = self.next.max(now) + (time - late);
        }
    }
}
