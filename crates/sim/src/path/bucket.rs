//! Token buckets: as the service of a link or a link of its own (a shaper, which delays), and as a policer,
//! which drops.
//!
//! After `sch_tbf` and `act_police` of Linux 7.3, to the nanosecond: a bucket is full at first, gains its
//! rate and never holds more than its burst; a packet needs its length in each bucket. Tokens are
//! nanoseconds, and the cost of a packet is cut to whole ones. The second bucket, of the peak rate, holds one
//! full packet if nothing else is written. Departs from Linux: lengths are those of IP packets, but of frames
//! for a `tbf` that is written as `tc` has it.

use slowstart::units::{Bytes, Instant, NS_PER_S, Rate, Span, mul_div};

/// The packet that the bucket of the peak rate holds.
const PACKET: Bytes = Bytes(1500);

/// The parameters of a shaper or policer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    pub(super) rate: Rate,
    /// The most tokens; at least a full packet, at most 1 GiB.
    pub(super) burst: Bytes,
    pub(super) peak: Option<Rate>,
    /// The most tokens of the peak rate.
    pub(super) peak_burst: Bytes,
    /// Bytes that a packet has beside those of the IP packet, and its least length with them.
    pub(super) header: u32,
    pub(super) least: u32,
}

impl Params {
    /// Buckets that count IP packets.
    pub(super) const fn of_packets(rate: Rate, burst: Bytes, peak: Option<Rate>) -> Self {
        Self { rate, burst, peak, peak_burst: PACKET, header: 0, least: 0 }
    }

    /// The part of a number of tokens that full IP packets are.
    pub(super) fn payload(&self, tokens: u64) -> u64 {
        mul_div(tokens, PACKET.0, PACKET.0 + u64::from(self.header))
    }
}

/// How long a rate needs for a length: a multiplication and a shift (`struct psched_ratecfg`).
#[derive(Copy, Clone, Debug)]
struct Cost {
    bytes_per_s: u64,
    factor: u64,
    shift: u32,
}

impl Cost {
    /// As `psched_ratecfg_precompute__`: the factor has 32 bits, or as many as fit.
    fn new(rate: Rate) -> Self {
        let bytes_per_s = (rate.0 / 8).max(1);
        let shift = (0..34).find(|shift| (NS_PER_S << shift) / bytes_per_s >= 1 << 31).unwrap_or(34);
        Self { bytes_per_s, factor: u64::from(((NS_PER_S << shift) / bytes_per_s) as u32), shift }
    }

    fn of(&self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.factor)) >> self.shift) as u64
    }
}

/// One bucket. Its tokens are nanoseconds at its rate.
#[derive(Copy, Clone, Debug)]
struct Bucket {
    cost: Cost,
    depth: u64,
    tokens: u64,
    at: Instant,
}

impl Bucket {
    fn full(rate: Rate, bytes: u64) -> Self {
        let cost = Cost::new(rate);
        let depth = cost.of(bytes);
        Self { cost, depth, tokens: depth, at: Instant::ZERO }
    }

    fn level(&self, now: Instant) -> u64 {
        self.tokens.saturating_add(now.since(self.at).0).min(self.depth)
    }

    /// When it will hold what a packet needs, from `now` on.
    fn ready(&self, now: Instant, bytes: u32) -> Instant {
        now + Span(self.cost.of(u64::from(bytes)).saturating_sub(self.level(now)))
    }

    fn take(&mut self, now: Instant, bytes: u32) {
        self.tokens = self.level(now).saturating_sub(self.cost.of(u64::from(bytes)));
        self.at = now;
    }
}

/// A bucket, and one of a peak rate.
#[derive(Copy, Clone, Debug)]
pub(super) struct Buckets {
    params: Params,
    main: Bucket,
    peak: Option<Bucket>,
}

impl Buckets {
    pub(super) fn new(p: &Params) -> Self {
        let peak = p.peak.map(|rate| Bucket::full(rate, p.peak_burst.0));
        Self { params: *p, main: Bucket::full(p.rate, p.burst.0), peak }
    }

    #[inline]
    fn length(&self, bytes: u32) -> u32 {
        (bytes + self.params.header).max(self.params.least)
    }

    /// When a packet that comes now may pass.
    #[inline]
    pub(super) fn ready(&self, now: Instant, bytes: u32) -> Instant {
        let bytes = self.length(bytes);
        let main = self.main.ready(now, bytes);
        self.peak.as_ref().map_or(main, |peak| main.max(peak.ready(now, bytes)))
    }

    /// Takes the tokens of a packet that passes now.
    #[inline]
    pub(super) fn take(&mut self, now: Instant, bytes: u32) {
        let bytes = self.length(bytes);
        self.main.take(now, bytes);
        if let Some(peak) = &mut self.peak {
            peak.take(now, bytes);
        }
    }

    /// As a policer: takes the tokens of a packet and returns true, or returns false if there are too few.
    #[cold]
    #[inline(never)]
    pub(super) fn conforms(&mut self, now: Instant, bytes: u32) -> bool {
        let conforms = self.ready(now, bytes) == now;
        if conforms {
            self.take(now, bytes);
        }
        conforms
    }

    /// The bytes that may pass later than `from` and up to `to`.
    pub(super) fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        let most = |b: &Bucket| {
            let ns = u128::from(b.level(from)) + u128::from(to.since(from).0);
            u64::try_from(ns * u128::from(b.cost.bytes_per_s) / u128::from(NS_PER_S)).unwrap_or(u64::MAX)
        };
        let main = most(&self.main);
        Bytes(self.params.payload(self.peak.as_ref().map_or(main, |peak| main.min(most(peak)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(rate: u64, burst: u64, peak: Option<u64>) -> Buckets {
        Buckets::new(&Params::of_packets(Rate(rate), Bytes(burst), peak.map(Rate)))
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut b = buckets(12_000_000, 15_000, None);
        let passed = (0..20).filter(|_| b.conforms(Instant::ZERO, 1500)).count();
        assert_eq!(passed, 10);
        // 12 Mbit/s: a packet a millisecond.
        let second: Vec<u64> = (0..10_000).filter(|i| b.conforms(Instant(i * 500_000), 1500)).collect();
        assert_eq!(second.len(), 4999);
        // What was not used is kept, up to the burst.
        assert_eq!((0..99).filter(|_| b.conforms(Instant(60_000_000_000), 1500)).count(), 10);
    }

    #[test]
    fn a_shaped_packet_waits_for_its_tokens_and_for_the_peak() {
        let mut b = buckets(12_000_000, 3000, Some(120_000_000));
        let mut at = Instant::ZERO;
        let mut seen = Vec::new();
        for _ in 0..4 {
            at = b.ready(at, 1500);
            b.take(at, 1500);
            seen.push((at.0 + 9) / 1000);
        }
        // The second packet 100 us later by the peak rate (nanoseconds are cut off); the third when 1500
        // bytes have come since the start.
        assert_eq!(seen, [0, 100, 1000, 2000]);
    }

    /// With a header of 14 bytes and 64 bytes at least, an IP packet of 1500 bytes costs 1514, one of 40
    /// costs 64.
    #[test]
    fn frames_cost_more_than_their_packets() {
        let of_frames = Params { header: 14, least: 64, ..buckets(8_000_000, 1514, None).params };
        let mut b = Buckets::new(&of_frames);
        let mut at = Instant::ZERO;
        for (bytes, ready) in [(1500, 0), (40, 64_000), (1500, 1_578_000), (1500, 3_092_000)] {
            at = b.ready(at, bytes);
            b.take(at, bytes);
            assert_eq!(at, Instant(ready));
        }
        assert_eq!(b.params.payload(1514), 1500);
    }

    #[test]
    fn no_time_carries_more_than_burst_and_rate() {
        let b = buckets(8_000_000, 50_000, None);
        assert_eq!(b.capacity(Instant::ZERO, Instant(1_000_000_000)), Bytes(1_050_000));
        let b = buckets(8_000_000, 50_000, Some(80_000_000));
        assert_eq!(b.capacity(Instant::ZERO, Instant(1_000_000)), Bytes(11_500));
    }
}
