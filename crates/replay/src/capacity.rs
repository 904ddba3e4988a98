//! Estimates when the path was full, by the two heuristics of the SEARCH thesis (5.2).

use slowstart::units::{Bytes, Instant, Span};
use slowstart_study::measured::{self, Ended};
use slowstart_study::record::Class;

/// Minimum RTT below which the throughput heuristic is used and not the delay heuristic, as in
/// `slowstart_study::measured`.
const LOW_RTT: Span = Span::millis(25);
/// Width of a throughput bin, as in `slowstart_study::measured`; doubled for long connections.
const BIN: Span = Span::millis(10);
const BINS: usize = 1 << 13;
/// Ticks of timestamp clocks (RFC 7323 §5.4: 1 ms to 1 s; Linux since 6.7 also 1 us).
const TICKS: [Span; 6] = [
    Span::micros(1),
    Span::millis(1),
    Span::millis(4),
    Span::millis(10),
    Span::millis(100),
    Span::millis(500),
];
/// Ticks that must have passed before the tick's length is estimated.
const SURE: i64 = 8;

/// Bytes that arrived, or were acknowledged, in each bin since the first packet.
#[derive(Clone, Debug)]
pub struct ThroughputBins {
    width: Span,
    bins: Vec<u64>,
}

impl Default for ThroughputBins {
    fn default() -> Self {
        Self { width: BIN, bins: Vec::new() }
    }
}

impl ThroughputBins {
    /// Adds bytes that were delivered at this time, not before the last.
    pub fn add(&mut self, at: Instant, bytes: Bytes) {
        let mut i = (at.0 / self.width.0) as usize;
        while i >= BINS {
            self.bins = self.bins.chunks(2).map(|c| c.iter().sum()).collect();
            self.width = self.width * 2;
            i /= 2;
        }
        if self.bins.len() <= i {
            self.bins.resize(i + 1, 0);
        }
        self.bins[i] += bytes.0;
    }

    /// Throughput in intervals of one minimum RTT, rounded to the nearest bin, from the first byte on: begin
    /// and bytes per second.
    pub fn rates(&self, min_rtt: Span) -> Vec<(Instant, f64)> {
        let width = ((min_rtt + self.width / 2).0 / self.width.0).max(1) as usize;
        let first = self.bins.iter().position(|b| *b > 0).unwrap_or(self.bins.len());
        let seconds = self.width.as_secs_f64() * width as f64;
        self.bins[first..]
            .chunks_exact(width)
            .enumerate()
            .map(|(i, c)| {
                let at = Instant::ZERO + self.width * (first + i * width) as u64;
                (at, c.iter().sum::<u64>() as f64 / seconds)
            })
            .collect()
    }
}

/// The delay heuristic of the thesis (5.2.1): the path was full when the delay above its minimum was last
/// below half of the minimum RTT, before it exceeded twice the minimum RTT.
#[derive(Clone, Debug, Default)]
pub struct DelayHeuristic {
    last_below: Instant,
    /// When the path was full.
    pub capacity: Option<Instant>,
}

impl DelayHeuristic {
    /// Adds a delay `above` its minimum. `least` is the minimum RTT.
    pub fn add(&mut self, now: Instant, above: Span, least: Span) {
        if self.capacity.is_none() {
            if above < least / 2 {
                self.last_below = now;
            } else if above > least * 2 {
                self.capacity = Some(self.last_below);
            }
        }
    }
}

/// The increase of one-way delay above its minimum, as the thesis takes it from a capture at the client: the
/// arrival time of data less the time that its timestamp states. The offset between the clocks cancels out;
/// the tick of the sender's clock is estimated from its SYN.
#[derive(Clone, Debug)]
pub struct OneWayDelay {
    syn: Option<(Instant, u32)>,
    /// Arrival of the first data; ticks since its timestamp; the newest timestamp.
    first: Option<(Instant, i64, u32)>,
    tick: Option<Span>,
    /// The least delay found, in nanoseconds, relative to the first packet's.
    least: i64,
}

impl OneWayDelay {
    /// `syn` is the arrival of the sender's SYN and its timestamp value.
    pub fn new(syn: Option<(Instant, u32)>) -> Self {
        Self { syn, first: None, tick: None, least: 0 }
    }

    /// The delay of the data arriving now above the minimum; `None` until the clock's tick is known.
    pub fn above(&mut self, now: Instant, timestamp: u32) -> Option<Span> {
        let since = |before: u32| i64::from(timestamp.wrapping_sub(before).cast_signed());
        let (began, ticks, newest) = self.first.get_or_insert((now, 0, timestamp));
        *ticks = ticks.saturating_add(since(*newest));
        *newest = timestamp;
        let (began, ticks) = (*began, *ticks);
        if self.tick.is_none() {
            let (from, passed) = self.syn.map_or((began, ticks), |(at, stamp)| (at, since(stamp)));
            let elapsed = now.since(from).as_secs_f64();
            if passed < SURE || elapsed <= 0.0 {
                return None;
            }
            let off = |t: &Span| (elapsed / passed as f64 / t.as_secs_f64()).ln().abs();
            self.tick = TICKS.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)));
        }
        let tick = self.tick?;
        let late =
            i64::try_from(now.since(began).0).ok()?.saturating_sub(ticks.saturating_mul(tick.0 as i64));
        self.least = self.least.min(late);
        Some(Span(late.saturating_sub(self.least).unsigned_abs()))
    }
}

/// Results of both heuristics for one connection.
#[derive(Clone, Debug)]
pub struct CapacityEstimate {
    /// When the path was full by delay.
    pub by_latency: Option<Instant>,
    /// When the path was full by throughput: the first interval that reached the median.
    pub by_throughput: Option<Instant>,
    /// Median throughput, bytes per second.
    pub median: Option<f64>,
    /// The least RTT sample so far.
    pub min_rtt: Span,
    /// When the first loss was detected.
    pub first_loss: Option<Instant>,
}

impl CapacityEstimate {
    fn latency(&self) -> bool {
        self.min_rtt >= LOW_RTT && self.by_latency.is_some()
    }

    /// Name of the heuristic that is used.
    pub fn heuristic(&self) -> &'static str {
        if self.latency() { "latency" } else { "throughput" }
    }

    /// When the path was full, by that heuristic. Every transfer reaches its median throughput, so that by throughput
    /// this is only known if packets were seen to wait at a full path.
    pub fn capacity(&self, was_full: bool) -> Option<Instant> {
        if self.latency() { self.by_latency } else { self.by_throughput.filter(|_| was_full) }
    }

    /// The BDP: median throughput times minimum RTT.
    pub fn bdp(&self) -> Option<Bytes> {
        self.median.map(|m| Bytes((m * self.min_rtt.as_secs_f64()) as u64))
    }

    /// Class of an exit. The path was full by then if the delay shows it, or if a BDP was in flight (`full`),
    /// which is the simulator's criterion.
    pub fn class(&self, at: Instant, full: bool, by_loss: bool) -> Class {
        let by_delay = self.latency() && self.by_latency.is_some_and(|c| at >= c);
        self.class_if(at, full || by_delay, by_loss)
    }

    /// Class of an exit if it is known whether the path was full by then.
    pub fn class_if(&self, at: Instant, full: bool, by_loss: bool) -> Class {
        let ended = Ended { at, by_congestion: by_loss };
        measured::class(Some(ended), full.then_some(Instant::ZERO), self.first_loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data sent every 5 ms arrives after 50 ms; from the 20th packet on, each is delayed by 2 ms more.
    /// Clocks of several ticks, with any start value, wrapping.
    #[test]
    fn one_way_delay_is_measured_with_the_senders_clock() {
        for (tick, start) in
            [(1_u64, u32::MAX - 30_000), (1000, 5), (4000, u32::MAX), (10_000, 7), (100_000, 9)]
        {
            let stamp = |us: u64| start.wrapping_add((us / tick) as u32);
            let mut offset = OneWayDelay::new(Some((Instant(50_000_000), stamp(0))));
            let mut found = Vec::new();
            for n in 0..400_u64 {
                let sent = 80_000 + n * 5000;
                let late = n.saturating_sub(20) * 2000;
                let above = offset.above(Instant((sent + 50_000 + late) * 1000), stamp(sent));
                found.extend(above.map(|a| (a.0 / 1000, late)));
            }
            assert!(found.len() > 200, "{tick}: {}", found.len());
            assert!(found.iter().all(|(a, late)| a.abs_diff(*late) <= 2 * tick), "{tick}: {found:?}");
        }
    }

    #[test]
    fn the_path_was_full_when_the_delay_was_last_low() {
        let mut l = DelayHeuristic::default();
        for (ms, above) in [(10, 1), (20, 49), (30, 51), (40, 30), (50, 60), (60, 201), (70, 10), (80, 300)] {
            l.add(Instant(ms * 1_000_000), Span::millis(above), Span::millis(100));
        }
        assert_eq!(l.capacity, Some(Instant(40_000_000)));
    }

    #[test]
    fn throughput_intervals_are_round_trips_to_the_nearest_bin() {
        let mut t = ThroughputBins::default();
        for n in 0..100 {
            t.add(Instant(n * 10_000_000 + 30_000_000), Bytes(1000));
        }
        let of = |ms: u64| t.rates(Span::millis(ms)).len();
        assert_eq!((of(0), of(14), of(16), of(25)), (100, 100, 50, 33));
        assert_eq!(t.rates(Span::millis(10))[0], (Instant(30_000_000), 100_000.0));
    }
}
