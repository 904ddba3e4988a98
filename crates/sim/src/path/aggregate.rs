//! Aggregation: a medium that carries packets in bursts, such as Wi-Fi does with ACKs.

use slowstart::units::{Instant, Span};

/// Holds packets until the next multiple of a period, and releases all together.
#[derive(Clone, Debug)]
pub(super) struct Aggregate {
    period: Span,
    /// Where the first release lies, within the first period.
    phase: Span,
}

impl Aggregate {
    pub(super) fn new(period: Span, phase: Span) -> Self {
        Self { period, phase }
    }

    pub(super) fn pass(&self, now: Instant) -> Instant {
        let first = Instant::ZERO + self.phase;
        first + self.period * now.since(first).0.div_ceil(self.period.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_at_multiples_only() {
        let element = Aggregate::new(Span(4), Span(1));
        let out: Vec<u64> = (0..11).map(|t| element.pass(Instant(t)).0).collect();
        assert_eq!(out, [1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13]);
    }
}
