//! A link whose rate is constant over pieces of time: one piece, a schedule, or drawn afresh every period.

use std::sync::Arc;

use slowstart::units::{Bytes, Instant, NS_PER_S, Rate, Span};

use crate::random;

/// What a byte costs. At `r` bit/s a nanosecond does `r` units of work, so a byte is 8 bits times the
/// nanoseconds in a second: whole numbers at any rate.
const WORK_PER_BYTE: u64 = 8 * NS_PER_S;

/// The rate as a function of time.
#[derive(Clone, Debug)]
pub(super) enum Profile {
    /// From each moment on, a rate; the first moment is zero, the last rate is above zero and holds for ever.
    Steps(Arc<[(Instant, Rate)]>),
    /// Uniform in `mean - spread ..= mean + spread`, drawn anew each period.
    Drawn { mean: Rate, spread: Rate, period: Span, phase: Span, seed: u64 },
}

impl Profile {
    /// The rate at `t` in bit/s, and until when it holds.
    fn piece(&self, t: Instant) -> (u64, Instant) {
        match self {
            Self::Steps(steps) => {
                let next = steps.partition_point(|(from, _)| *from <= t);
                (steps[next - 1].1.0, steps.get(next).map_or(Instant::NEVER, |(from, _)| *from))
            }
            Self::Drawn { mean, spread, period, phase, seed } => {
                let k = (t + *phase).0 / period.0;
                let drawn = random::scale(random::at(*seed, k), 2 * spread.0 + 1);
                (mean.0 - spread.0 + drawn, Instant((k + 1).saturating_mul(period.0)) - *phase)
            }
        }
    }
}

/// How packets of one size leave one after the other.
#[derive(Copy, Clone, Debug, Default)]
pub struct Spacing {
    /// What each takes: whole nanoseconds, and work beyond.
    ns: u64,
    beyond: u64,
    rate: u64,
    /// The last packet ended this much work after `t`, less than a nanosecond's: carried over, or a long run
    /// would gain on the rate.
    carry: u64,
}

impl Spacing {
    /// Returns when the next packet has left, if the one before it has at `t`.
    #[inline]
    pub fn next(&mut self, t: Instant) -> Instant {
        let beyond = self.beyond + self.carry;
        let over = u64::from(beyond >= self.rate);
        self.carry = beyond - over * self.rate;
        t + Span(self.ns + over)
    }
}

/// A server of that rate.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    profile: Profile,
    /// When the piece last used ends: most packets are served within it.
    until: Instant,
    /// When the last packet ends.
    free: Instant,
    /// The bytes of the last packet ([`NONE`] if there was none at this rate), and what more of that size
    /// would take. Packets are mostly of one size, and a division is what a packet costs most here.
    bytes: u32,
    spacing: Spacing,
}

/// More bytes than any packet has.
const NONE: u32 = u32::MAX;

impl Rates {
    pub(super) fn new(profile: Profile) -> Self {
        let (rate, until) = profile.piece(Instant::ZERO);
        let spacing = Spacing { rate, ..Spacing::default() };
        Self { profile, until, free: Instant::ZERO, bytes: NONE, spacing }
    }

    /// When a packet that arrives now would begin to be sent.
    pub(super) fn start(&self, now: Instant) -> Instant {
        self.free.max(now)
    }

    /// Sends a packet that arrives now, after those before it; when its last bit leaves.
    #[inline]
    pub(super) fn send(&mut self, now: Instant, bytes: u32) -> Instant {
        debug_assert!(bytes < 1 << 30, "work is counted in 64 bits");
        let (t, carry) = self.begin(now);
        if bytes == self.bytes {
            let mut spacing = Spacing { carry, ..self.spacing };
            let end = spacing.next(t);
            if end < self.until {
                (self.free, self.spacing.carry) = (end, spacing.carry);
                return end;
            }
        }
        self.integrate(t, carry, bytes)
    }

    /// Where a packet that arrives now begins: the time, and the work carried over.
    #[inline]
    fn begin(&self, now: Instant) -> (Instant, u64) {
        if self.free >= now { (self.free, self.spacing.carry) } else { (now, 0) }
    }

    /// Sends `n` packets that arrive now, if all are of the size of the last one and leave at the same rate;
    /// else does nothing. Returns when the first begins and how they follow each other.
    #[inline]
    pub(super) fn send_run(&mut self, now: Instant, bytes: u32, n: u32) -> Option<(Instant, Spacing)> {
        let (t, carry) = self.begin(now);
        let run = Spacing { carry, ..self.spacing };
        if bytes != self.bytes || run.ns == 0 {
            return None;
        }
        let beyond = carry + u64::from(n) * run.beyond;
        let end = t + Span(u64::from(n) * run.ns + beyond / run.rate);
        if end >= self.until {
            return None;
        }
        (self.free, self.spacing.carry) = (end, beyond % run.rate);
        Some((t, run))
    }

    /// Does not send what has not left by `at`.
    pub(super) fn abandon(&mut self, at: Instant) {
        if self.free > at {
            (self.free, self.bytes, self.spacing.carry) = (at, NONE, 0);
            (self.spacing.rate, self.until) = self.profile.piece(at);
        }
    }

    /// When these bytes have left, piece by piece from `t` on.
    #[cold]
    fn integrate(&mut self, mut t: Instant, carry: u64, bytes: u32) -> Instant {
        let whole = u64::from(bytes) * WORK_PER_BYTE;
        let mut work = whole + carry;
        loop {
            if t >= self.until {
                (self.spacing.rate, self.until) = self.profile.piece(t);
                self.bytes = NONE;
            }
            // No rate, no progress: an outage is waited out.
            let rate = self.spacing.rate;
            if let Some(ns) = work.checked_div(rate) {
                let room = self.until.since(t).0;
                if ns < room || self.until == Instant::NEVER {
                    self.free = t + Span(ns);
                    self.bytes = bytes;
                    self.spacing =
                        Spacing { ns: whole / rate, beyond: whole % rate, rate, carry: work - ns * rate };
                    return self.free;
                }
                work -= room * rate;
            }
            t = self.until;
        }
    }

    /// The whole bytes that could be sent in that time. Walks over the pieces in it.
    pub(super) fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        let (mut work, mut t) = (0_u128, from);
        while t < to {
            let (rate, until) = self.profile.piece(t);
            let end = until.min(to);
            work += u128::from(rate) * u128::from(end.since(t).0);
            t = end;
        }
        Bytes(u64::try_from(work / u128::from(WORK_PER_BYTE)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(list: &[(u64, u64)]) -> Rates {
        Rates::new(Profile::Steps(list.iter().map(|(ms, r)| (Instant(ms * 1_000_000), Rate(*r))).collect()))
    }

    #[test]
    fn a_million_packets_take_exactly_their_time() {
        for rate in [1_000, 999_983, 12_000_000, 144_000_000, 999_999_999_989] {
            let mut link = steps(&[(0, rate)]);
            let mut sent = 0_u64;
            let mut last = Instant::ZERO;
            for i in 0..1_000_000_u32 {
                let bytes = 40 + i % 1461;
                sent += u64::from(bytes);
                last = link.send(Instant::ZERO, bytes);
            }
            let exact = u128::from(sent) * 8 * 1_000_000_000 / u128::from(rate);
            assert_eq!(u128::from(last.0), exact, "at {rate} bit/s");
        }
    }

    #[test]
    fn a_run_is_what_its_packets_are_one_by_one() {
        for rate in [999_983, 144_000_000, 999_999_999_989] {
            let mut single = steps(&[(0, rate), (1_000, 2 * rate)]);
            let mut runs = single.clone();
            for i in 0..1_000 {
                let now = Instant(i * 997_001);
                let n = 1 + (i % 7) as u32;
                let ends: Vec<Instant> = (0..n).map(|_| single.send(now, 1500)).collect();
                let begun = runs.send_run(now, 1500, n);
                let got: Vec<Instant> = match begun {
                    Some((mut t, mut run)) => (0..n)
                        .map(|_| {
                            t = run.next(t);
                            t
                        })
                        .collect(),
                    None => (0..n).map(|_| runs.send(now, 1500)).collect(),
                };
                assert_eq!(got, ends, "{n} packets at {now:?}");
                assert_eq!((runs.free, runs.spacing.carry), (single.free, single.spacing.carry));
            }
        }
    }

    #[test]
    fn a_packet_across_a_step_is_integrated() {
        // 1500 bytes: 6 ms at 1 Mbit/s are half of it, the rest takes 3 ms at 2 Mbit/s.
        let mut link = steps(&[(0, 1_000_000), (6, 2_000_000)]);
        assert_eq!(link.send(Instant::ZERO, 1500), Instant(9_000_000));
        assert_eq!(link.start(Instant(1)), Instant(9_000_000));
        assert_eq!(link.capacity(Instant::ZERO, Instant(9_000_000)), Bytes(1500));
    }

    #[test]
    fn an_outage_is_waited_out() {
        let mut link = steps(&[(0, 0), (6, 0), (10, 12_000_000)]);
        assert_eq!(link.send(Instant(5_000_000), 1500), Instant(11_000_000));
        assert_eq!(link.capacity(Instant::ZERO, Instant(10_000_000)), Bytes(0));
    }

    #[test]
    fn an_idle_link_starts_afresh() {
        let mut link = steps(&[(0, 7)]);
        let first = link.send(Instant::ZERO, 1);
        assert_eq!(first, Instant(8_000_000_000 / 7));
        // The fraction of a nanosecond left over is gone by then.
        assert_eq!(link.send(Instant(2_000_000_000), 1), Instant(2_000_000_000 + 8_000_000_000 / 7));
    }

    #[test]
    fn drawn_rates_keep_their_mean_and_their_bounds() {
        let mean = Rate(50_000_000);
        let profile = Profile::Drawn {
            mean,
            spread: Rate(20_000_000),
            period: Span::millis(10),
            phase: Span::millis(3),
            seed: 5,
        };
        for t in (0..10_000).map(|ms| Instant(ms * 1_000_000)) {
            let (rate, until) = profile.piece(t);
            assert!((30_000_000..=70_000_000).contains(&rate) && until > t);
        }
        let long = Span::secs(1000);
        let got = Rates::new(profile).capacity(Instant::ZERO, Instant::ZERO + long);
        // 100000 draws of standard deviation 0.23 of the mean: five of them are 0.37 % of it.
        let want = mean.over(long);
        assert!(got.0.abs_diff(want.0) < want.0 * 37 / 10_000, "{got:?} {want:?}");
    }
}
