//! Delays that are a function of time: periodic, by hand-over, from a trace. None of them changes the order of
//! packets.

use std::sync::Arc;

use slowstart::units::{Instant, Span};

use super::trace::DelayTrace;
use crate::random;

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
}
