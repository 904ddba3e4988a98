//! How late packets were let go.

use slowstart::units::Span;
use std::fmt;

/// What counts as late. A run in which more than one packet in a hundred was is none of this path.
pub const MAX_LATENESS: Span = Span::millis(1);

/// Classes, each twice as wide as the one before: below 1 us, 2 us, 4 us, ...
const CLASSES: usize = 24;

/// A histogram of lateness.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    classes: [u64; CLASSES],
    late: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Lateness {
    pub(crate) fn add(&mut self, by: Span) {
        let class = (u64::BITS - (by.0 / 1000).leading_zeros()) as usize;
        self.classes[class.min(CLASSES - 1)] += 1;
        self.late += u64::from(by > MAX_LATENESS);
        self.sum_ns += by.0;
        self.max_ns = self.max_ns.max(by.0);
    }

    /// Packets let go.
    pub fn packets(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// The mean.
    pub fn mean(&self) -> Span {
        Span(self.sum_ns / self.packets().max(1))
    }

    /// The most.
    pub fn max(&self) -> Span {
        Span(self.max_ns)
    }

    /// What so many in a thousand did not exceed, to within a factor of two.
    pub fn quantile_per_mille(&self, share: u64) -> Span {
        let wanted = (self.packets() * share).div_ceil(1000);
        let mut seen = 0;
        for (class, n) in self.classes.iter().enumerate() {
            seen += n;
            if seen >= wanted {
                return Span::micros(1 << class).min(Span(self.max_ns));
            }
        }
        Span(self.max_ns)
    }

    /// Whether time was kept.
    pub fn valid(&self) -> bool {
        self.late * 100 <= self.packets()
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |s: Span| s.0 as f64 / 1000.0;
        write!(
            f,
            "late by {:.1} us on average, half below {:.0} us, 99 % below {:.0} us, at most {:.0} us",
            us(self.mean()),
            us(self.quantile_per_mille(500)),
            us(self.quantile_per_mille(990)),
            us(self.max())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_may_be_late_and_no_more() {
        let mut l = Lateness::default();
        for _ in 0..99 {
            l.add(Span::micros(3));
        }
        l.add(Span::millis(7));
        assert!(l.valid());
        assert_eq!((l.packets(), l.mean(), l.max()), (100, Span(72_970), Span::millis(7)));
        assert_eq!(
            (l.quantile_per_mille(500), l.quantile_per_mille(990)),
            (Span::micros(4), Span::micros(4))
        );
        assert_eq!(l.quantile_per_mille(1000), Span::millis(7));
        l.add(Span::millis(2));
        assert!(!l.valid());
        assert!(Lateness::default().valid());
    }
}
