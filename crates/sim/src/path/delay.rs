//! Delays: constant, periodic, by hand-over, from a trace, and jitter. None of them changes the order of
//! packets.

use std::sync::Arc;

use slowstart::units::{Instant, Span};

use super::trace::DelayTrace;
use crate::random::{self, Stream};

/// A delay that is a function of time.
#[derive(Clone, Debug)]
pub(super) enum Course {
    /// `amplitude * (1 + sin)`: from none to twice the amplitude, so that the least RTT stays what it was.
    /// The turn per nanosecond and at the beginning are in 2^-64 of a turn, so that whole turns drop out by
    /// themselves.
    Wave { amplitude: Span, step: u64, phase: u64 },
    /// Uniform in `0..=most`, drawn anew each period: satellites that come and go.
    Handover { most: Span, period: Span, phase: Span, seed: u64 },
    /// As it was measured, from an offset on.
    Trace { trace: Arc<DelayTrace>, offset: Span },
}

impl Course {
    pub(super) fn wave(amplitude: Span, period: Span, phase: u64) -> Self {
        Self::Wave { amplitude, step: u64::MAX / period.0, phase }
    }

    fn at(&self, t: Instant) -> Span {
        match self {
            Self::Wave { amplitude, step, phase } => {
                let turn = t.0.wrapping_mul(*step).wrapping_add(*phase);
                let lift = ONE + sine((turn >> 32) as u32);
                Span(((u128::from(amplitude.0) * lift as u128) >> 30) as u64)
            }
            Self::Handover { most, period, phase, seed } => {
                let k = (t + *phase).0 / period.0;
                Span(random::scale(random::at(*seed, k), most.0.saturating_add(1)))
            }
            Self::Trace { trace, offset } => trace.at(t.since(Instant::ZERO) + *offset),
        }
    }
}

/// The unit of [`sine`].
const ONE: i64 = 1 << 30;

/// The sine of a turn given in 2^-32 of it, in 2^-30, the same on every machine.
///
/// Over the first quarter, with z from 0 to 1, it is a z - b z^3 + c z^5 with a = pi/2, b = 2a - 5/2, c = a -
/// 3/2: value and slope right at both ends, and nowhere off by more than 0.04 %.
fn sine(turn: u32) -> i64 {
    const A: i64 = 1_686_629_713;
    const B: i64 = 2 * A - 5 * ONE / 2;
    const C: i64 = A - 3 * ONE / 2;
    let (quarter, along) = (turn >> 30, i64::from(turn & ((1 << 30) - 1)));
    let z = if quarter % 2 == 0 { along } else { ONE - along };
    let square = (z * z) >> 30;
    let value = (z * (A - ((square * (B - ((square * C) >> 30))) >> 30))) >> 30;
    // The last bits of the roundings may pass one.
    if quarter < 2 { value.min(ONE) } else { -value.min(ONE) }
}

/// An element that delays.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    course: Course,
    last: Instant,
}

impl Delay {
    pub(super) fn new(course: Course) -> Self {
        Self { course, last: Instant::ZERO }
    }

    pub(super) fn pass(&mut self, now: Instant) -> Instant {
        self.last = self.last.max(now + self.course.at(now));
        self.last
    }

    /// The delay of a packet that comes at `at`, if none before it holds it back.
    pub(super) fn at(&self, at: Instant) -> Span {
        self.course.at(at)
    }
}

/// A delay drawn for each packet, uniform from none to the most; a packet does not overtake the one before.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    most: Span,
    stream: Stream,
    last: Instant,
}

impl Jitter {
    pub(super) fn new(most: Span, stream: Stream) -> Self {
        Self { most, stream, last: Instant::ZERO }
    }

    pub(super) fn pass(&mut self, now: Instant) -> Instant {
        self.last = self.last.max(now + self.stream.uniform_span(self.most));
        self.last
    }
}

/// The delay of a crowded Wi-Fi network, drawn for each packet (C4's tests, draft-huitema-ccwg-c4-test): a
/// number of intervals of a millisecond in which others send, less a part of one, and for a share of the
/// packets a number of retransmissions of 7.5 ms. A packet does not overtake the one before.
#[derive(Clone, Debug)]
pub(super) struct WifiJitter {
    /// The chance of retransmissions, in millionths.
    retransmitted: u32,
    stream: Stream,
    last: Instant,
}

impl WifiJitter {
    const DEFERRAL: Span = Span::millis(1);
    const RETRANSMISSION: Span = Span::micros(7500);
    /// e^-1 and e^-12: the chance that a Poisson number of mean 1 or 12 is 0.
    const NO_DEFERRAL: f64 = 0.367_879_441_171_442_33;
    const NO_RETRANSMISSION: f64 = 6.144_212_353_328_21e-6;

    /// With this target for the mean delay: the chance of retransmissions is what exceeds a millisecond, by
    /// 90 ms.
    pub(super) fn new(target: Span, stream: Stream) -> Self {
        let over = (target - Self::DEFERRAL).scale(1_000_000, Span::millis(90).0);
        Self { retransmitted: over.0.min(1_000_000) as u32, stream, last: Instant::ZERO }
    }

    /// A Poisson number, by the product of uniform numbers; `none` is the chance of 0.
    fn poisson(&mut self, none: f64) -> u64 {
        let mut n = 0;
        let mut product = 1.0;
        loop {
            // Uniform in (0, 1], in steps of 2^-53.
            product *= ((self.stream.any() >> 11) + 1) as f64 / 9_007_199_254_740_992.0;
            if product < none {
                return n;
            }
            n += 1;
        }
    }

    fn draw(&mut self) -> Span {
        let deferrals = self.poisson(Self::NO_DEFERRAL);
        let mut delay = Self::DEFERRAL * deferrals;
        if deferrals > 0 {
            delay -= self.stream.uniform_span(Self::DEFERRAL);
        }
        if self.stream.chance(self.retransmitted) {
            delay += Self::RETRANSMISSION * self.poisson(Self::NO_RETRANSMISSION);
        }
        delay
    }

    pub(super) fn pass(&mut self, now: Instant) -> Instant {
        self.last = self.last.max(now + self.draw());
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sine_is_one() {
        for turn in (0..u32::MAX).step_by(1 << 20) {
            let want = (f64::from(turn) / 2_f64.powi(32) * std::f64::consts::TAU).sin();
            let got = sine(turn) as f64 / ONE as f64;
            assert!((got - want).abs() < 4e-4, "at {turn}: {got}, not {want}");
        }
        assert_eq!([0, 1 << 30, 1 << 31, 3 << 30].map(sine), [0, ONE, 0, -ONE]);
    }

    #[test]
    fn a_wave_spans_twice_its_amplitude() {
        let (amplitude, period) = (Span::millis(60), Span::secs(2));
        let wave = Course::wave(amplitude, period, 0);
        let delays = (0..2000).map(|ms| wave.at(Instant::ZERO + Span::millis(ms)));
        let (least, most) = delays.fold((Span::MAX, Span::ZERO), |(a, b), d| (a.min(d), b.max(d)));
        assert!(least < Span(100) && Span::millis(120) - most < Span(100), "{least:?} {most:?}");
        let (first, late) = (wave.at(Instant::ZERO), wave.at(Instant::ZERO + period * 10_000));
        assert!(first.0.abs_diff(late.0) < 1000, "no drift: {first:?} {late:?}");
    }

    #[test]
    fn a_handover_holds_for_its_period() {
        let course = Course::Handover {
            most: Span::millis(10),
            period: Span::secs(15),
            phase: Span::secs(5),
            seed: 3,
        };
        let at = |s| course.at(Instant::ZERO + Span::secs(s));
        assert!(at(0) == at(9) && at(9) != at(10) && at(10) == at(24) && at(24) != at(25));
        assert!((0..1000).all(|s| at(s) <= Span::millis(10)));
    }

    #[test]
    fn jitter_stays_in_bounds_and_keeps_the_order() {
        let mut jitter = Jitter::new(Span::millis(3), Stream::named(1, "jitter"));
        let mut last = Instant::ZERO;
        for i in 0..10_000 {
            let now = Instant(i * 100_000);
            let out = jitter.pass(now);
            assert!(out >= last && out >= now && out.since(now) <= Span::millis(3));
            last = out;
        }
    }

    /// The mean of N1 less half a millisecond where it is not 0 (1 - 1/e of the packets) is 0.684 ms; N2 adds
    /// 90 ms to a share of (target - 1 ms) / 90 ms.
    #[test]
    fn wifi_delays_have_their_means() {
        let draws = 200_000;
        for (target, mean, deviation) in [(1, 0.684, 0.87), (7, 6.684, 23.0), (200, 90.684, 26.5)] {
            let mut jitter = WifiJitter::new(Span::millis(target), Stream::named(1, "wifi"));
            let sum: f64 = (0..draws).map(|_| jitter.draw().as_secs_f64() * 1e3).sum();
            let got = sum / f64::from(draws);
            // Five standard deviations of the mean.
            assert!(
                (got - mean).abs() < 5.0 * deviation / f64::from(draws).sqrt(),
                "{target} ms: {got}, not {mean}"
            );
        }
        let mut jitter = WifiJitter::new(Span::millis(7), Stream::named(1, "wifi"));
        let mut last = Instant::ZERO;
        for i in 0..10_000 {
            let now = Instant(i * 1_000_000);
            let out = jitter.pass(now);
            assert!(out >= last && out >= now);
            last = out;
        }
    }
}
