//! Aggregation: a medium that carries packets in bursts, such as Wi-Fi does with ACKs.

use slowstart::units::{Instant, Span};

use super::super::quantity;
use super::super::spec::SPAN;
use super::{Dropped, Keyed};
use crate::random::Stream;

/// Holds packets until the next multiple of a period, and releases all together.
#[derive(Clone, Debug)]
pub(in crate::path) struct Aggregate {
    period: Span,
    /// Where the first release lies, within the first period.
    phase: Span,
}

impl Keyed for Aggregate {
    type Params = Span;
    const EXPECTS: &'static str = SPAN;
    const ABOUT: &'static str =
        "Packets from the sender wait until the next multiple of this period and arrive together.";

    fn read(text: &str) -> Option<Span> {
        quantity::some_span(text)
    }

    fn build(period: Span, mut stream: Stream) -> Self {
        Self { period, phase: Span(stream.below(period.0)) }
    }

    fn pass(&mut self, now: Instant) -> Result<Instant, Dropped> {
        let first = Instant::ZERO + self.phase;
        Ok(first + self.period * now.since(first).0.div_ceil(self.period.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_at_multiples_only() {
        let mut element = Aggregate { period: Span(4), phase: Span(1) };
        let out: Vec<u64> = (0..11).map(|t| element.pass(Instant(t)).expect("it drops nothing").0).collect();
        assert_eq!(out, [1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13]);
    }
}
