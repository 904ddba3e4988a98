//! How late packets were released.

use slowstart::units::Span;
use std::fmt;

/// Lateness above which a packet counts as late. A run in which more than 1 % of the packets are late is
/// invalid.
pub const MAX_LATENESS: Span = Span::millis(1);

/// Histogram classes, each twice as wide as the one before: below 1 us, 2 us, 4 us, ...
const CLASSES: usize = 24;

/// A histogram of lateness: the time between when a packet was due and when it was released.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    classes: [u64; CLASSES],
    late: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Lateness {
    pub(super) fn add(&mut self, by: Span) {
        let class = (u64::BITS - (by.0 / 1000).leading_zeros()) as usize;
        self.classes[class.min(CLASSES - 1)] += 1;
        self.late += u64::from(by > MAX_LATENESS);
        self.sum_ns += by.0;
        self.max_ns = self.max_ns.max(by.0);
    }

    /// Number of packets released.
    pub fn packets(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// Returns the mean lateness of the packets counted; zero if there are none.
    pub fn mean(&self) -> Span {
        Span(self.sum_ns / self.packets().max(1))
    }

    /// Returns the greatest lateness of the packets counted; zero if there are none.
    pub fn max(&self) -> Span {
        Span(self.max_ns)
    }

    /// Returns an upper bound of the least lateness that `permille` thousandths of the packets do not exceed (500: half of
    /// them); at most twice that lateness.
    pub fn nearest_rank_bound(&self, permille: u64) -> Span {
        let wanted = (self.packets() * permille).div_ceil(1000);
        let mut seen = 0;
        for (class, n) in self.classes.iter().enumerate() {
            seen += n;
            if seen >= wanted {
                return Span::micros(1 << class).min(Span(self.max_ns));
            }
        }
        Span(self.max_ns)
    }

    /// Returns true if at most 1 % of the packets were released more than [`MAX_LATENESS`] late.
    pub fn valid(&self) -> bool {
        self.late * 100 <= self.packets()
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |s: Span| s.0 as f64 / 1000.0;
        write!(
            f,
            "released {:.1} us late on average (half within {:.0} us, 99 % within {:.0} us, at most {:.0} us)",
            us(self.mean()),
            us(self.nearest_rank_bound(500)),
            us(self.nearest_rank_bound(990)),
            us(self.max())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_one_packet_in_a_hundred_may_be_late() {
        let mut l = Lateness::default();
        for _ in 0..99 {
            l.add(Span::micros(3));
        }
        l.add(Span::millis(7));
        assert!(l.valid());
        assert_eq!((l.packets(), l.mean(), l.max()), (100, Span(72_970), Span::millis(7)));
        assert_eq!(
            (l.nearest_rank_bound(500), l.nearest_rank_bound(990)),
            (Span::micros(4), Span::micros(4))
        );
        assert_eq!(l.nearest_rank_bound(1000), Span::millis(7));
        l.add(Span::millis(2));
        assert!(!l.valid());
        assert!(Lateness::default().valid());
    }
}
