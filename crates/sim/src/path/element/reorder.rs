//! netem's reordering.

use slowstart::units::{Instant, Span};

use super::super::quantity;
use super::{Dropped, Keyed};
use crate::random::Stream;

/// Reordering as netem's `delay D reorder P CORR gap N` has it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::path) struct Reordering {
    /// The chance of a candidate to go at once, in millionths.
    share: u32,
    /// The correlation of the draw with the one before it, in millionths.
    correlation: u32,
    /// Every `gap`th packet is a candidate.
    gap: u64,
    /// The delay of all others.
    delay: Span,
}

impl Reordering {
    /// Parses `25%,50%,gap=5,delay=10ms`; correlation and gap may be left out.
    fn parse(text: &str) -> Option<Self> {
        let mut words = quantity::words(text).peekable();
        let mut r =
            Self { share: quantity::share(words.next()?)?, correlation: 0, gap: 1, delay: Span::ZERO };
        if let Some(correlation) = words.peek().and_then(|w| quantity::share(w)) {
            r.correlation = correlation;
            words.next();
        }
        while let Some(word) = words.next() {
            match word {
                "gap" => r.gap = quantity::whole(words.next()?).filter(|n| *n > 0)?,
                "delay" => r.delay = quantity::some_span(words.next()?)?,
                _ => return None,
            }
        }
        (r.delay > Span::ZERO).then_some(r)
    }
}

/// Lets some packets overtake those before them: all packets are delayed but for those drawn (Linux
/// `sch_netem.c`, `netem_enqueue`).
#[derive(Clone, Debug)]
pub(in crate::path) struct Reorder {
    rule: Reordering,
    /// Number of packets delayed since the last that was not.
    delayed: u64,
    /// The last draw, of which a part goes into the next (`get_crandom`).
    last: u32,
    stream: Stream,
}

impl Reorder {
    /// A number below a million: a mean of a fresh one and the last, weighted by the correlation.
    fn draw(&mut self) -> u32 {
        const MILLION: u64 = 1_000_000;
        let (value, rho) = (self.stream.any() as u32, u64::from(self.rule.correlation));
        let mixed = u64::from(value) * (MILLION - rho) + u64::from(self.last) * rho;
        self.last = (mixed / MILLION) as u32;
        ((u64::from(self.last) * MILLION) >> 32) as u32
    }
}

impl Keyed for Reorder {
    type Params = Reordering;
    const EXPECTS: &'static str = "netem's share, correlation and gap, and the delay of the packets that are overtaken, such as 25%,50%,gap=5,delay=10ms";
    const ABOUT: &'static str = "netem's reorder: packets from the sender are delayed, but of every gap-th this share is sent at once.";
    const DISORDERS: bool = true;

    fn read(text: &str) -> Option<Reordering> {
        Reordering::parse(text)
    }

    fn build(rule: Reordering, mut stream: Stream) -> Self {
        let last = stream.any() as u32;
        Self { rule, delayed: 0, last, stream }
    }

    fn pass(&mut self, now: Instant) -> Result<Instant, Dropped> {
        if self.delayed + 1 >= self.rule.gap && self.draw() < self.rule.share {
            self.delayed = 0;
            return Ok(now);
        }
        self.delayed += 1;
        Ok(now + self.rule.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn immediate(text: &str, n: u64) -> Vec<bool> {
        let rule = Reordering::parse(text).expect("valid");
        let mut element = Reorder::build(rule, Stream::named(1, "reorder"));
        (0..n).map(|i| element.pass(Instant(i)) == Ok(Instant(i))).collect()
    }

    #[test]
    fn values() {
        let full = Reordering { share: 250_000, correlation: 500_000, gap: 5, delay: Span::millis(10) };
        assert_eq!(Reordering::parse("25%,50%,gap=5,delay=10ms"), Some(full));
        assert_eq!(Reordering::parse("25% 50% gap 5 delay 10ms"), Some(full));
        let plain = Reordering { correlation: 0, gap: 1, ..full };
        assert_eq!(Reordering::parse("25%,delay=10ms"), Some(plain));
        for bad in ["", "25%", "25%,gap=0,delay=1ms", "25%,delay=0s", "delay=10ms", "25%,by=3ms", "25%,gap"] {
            assert_eq!(Reordering::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_fifth_packet_at_most_goes_at_once() {
        // netem(8): "gap 5" and 100 %: every fifth packet (the fifth, tenth, ...) is sent immediately.
        let at_once = immediate("100%,gap=5,delay=10ms", 100);
        let places: Vec<usize> =
            at_once.iter().enumerate().filter(|(_, x)| **x).map(|(i, _)| i + 1).collect();
        assert!(places.iter().copied().eq((5..=100).step_by(5)), "{places:?}");
    }

    #[test]
    fn the_share_and_the_gap_have_their_closed_forms() {
        let n = 1_000_000;
        // Of each cycle, gap - 1 packets are delayed before the first candidate; the candidates until the
        // first that goes at once are geometric. So the share is 1 / (gap - 1 + 1/p).
        for (text, p, gap) in [("25%,delay=10ms", 0.25, 1.0), ("25%,gap=5,delay=10ms", 0.25, 5.0)] {
            let found = immediate(text, n).iter().filter(|x| **x).count() as f64;
            let (cycle, variance): (f64, f64) = (gap - 1.0 + 1.0 / p, (1.0 - p) / (p * p));
            // The count of renewals in n has variance n * variance / cycle^3.
            let deviation = (n as f64 * variance / cycle.powi(3)).sqrt();
            let want = n as f64 / cycle;
            assert!((found - want).abs() < 5.0 * deviation, "{text}: {found}, not {want} ± {deviation}");
        }
    }

    #[test]
    fn correlated_draws_follow_each_other() {
        // The draws are an autoregressive series: neighbours have the correlation given, and the variance
        // falls to (1 - c) / (1 + c) of that of a uniform draw.
        let rule = Reordering::parse("25%,50%,delay=10ms").expect("valid");
        let mut element = Reorder::build(rule, Stream::named(1, "reorder"));
        let draws: Vec<f64> = (0..400_000).map(|_| f64::from(element.draw()) / 1e6).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let product = |lag: usize| {
            draws.iter().zip(&draws[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>()
                / draws.len() as f64
        };
        assert!((mean - 0.5).abs() < 0.003, "{mean}");
        assert!((product(0) - 1.0 / 36.0).abs() < 0.0005, "{}", product(0));
        // Five standard deviations of a correlation of 400,000 values.
        assert!((product(1) / product(0) - 0.5).abs() < 0.008, "{}", product(1) / product(0));
    }
}
