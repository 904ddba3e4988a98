//! The delay of a crowded Wi-Fi network.

use slowstart::units::{Instant, Span};

use super::super::quantity;
use super::super::spec::SPAN;
use super::{Dropped, Keyed};
use crate::random::Stream;

/// The delay of a crowded Wi-Fi network, drawn for each packet (C4's tests, draft-huitema-ccwg-c4-test): a
/// number of intervals of a millisecond in which others send, less a part of one, and for a share of the
/// packets a number of retransmissions of 7.5 ms. A packet does not overtake the one before.
#[derive(Clone, Debug)]
pub(in crate::path) struct WifiJitter {
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
}

impl Keyed for WifiJitter {
    type Params = Span;
    const EXPECTS: &'static str = SPAN;
    const ABOUT: &'static str = "Extra delay of each packet from the sender on a crowded Wi-Fi network, by the model of C4's tests, with this target for its mean; packets stay in order.";

    fn read(text: &str) -> Option<Span> {
        quantity::some_span(text)
    }

    /// With this target for the mean delay: the chance of retransmissions is what exceeds a millisecond, by
    /// 90 ms.
    fn build(target: Span, stream: Stream) -> Self {
        let over = (target - Self::DEFERRAL).scale(1_000_000, Span::millis(90).0);
        Self { retransmitted: over.0.min(1_000_000) as u32, stream, last: Instant::ZERO }
    }

    fn pass(&mut self, now: Instant) -> Result<Instant, Dropped> {
        self.last = self.last.max(now + self.draw());
        Ok(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of N1 less half a millisecond where it is not 0 (1 - 1/e of the packets) is 0.684 ms; N2 adds
    /// 90 ms to a share of (target - 1 ms) / 90 ms.
    #[test]
    fn wifi_delays_have_their_means() {
        let draws = 200_000;
        for (target, mean, deviation) in [(1, 0.684, 0.87), (7, 6.684, 23.0), (200, 90.684, 26.5)] {
            let mut jitter = WifiJitter::build(Span::millis(target), Stream::named(1, "wifi"));
            let sum: f64 = (0..draws).map(|_| jitter.draw().as_secs_f64() * 1e3).sum();
            let got = sum / f64::from(draws);
            // Five standard deviations of the mean.
            assert!(
                (got - mean).abs() < 5.0 * deviation / f64::from(draws).sqrt(),
                "{target} ms: {got}, not {mean}"
            );
        }
        let mut jitter = WifiJitter::build(Span::millis(7), Stream::named(1, "wifi"));
        let mut last = Instant::ZERO;
        for i in 0..10_000 {
            let now = Instant(i * 1_000_000);
            let out = jitter.pass(now).expect("it drops nothing");
            assert!(out >= last && out >= now);
            last = out;
        }
    }
}
