//! A delay drawn for each packet.

use slowstart::units::{Instant, Span};

use super::super::quantity;
use super::super::spec::SPAN;
use super::{Dropped, Keyed};
use crate::random::Stream;

/// Delays each packet by a time uniform from none to the most; a packet does not overtake the one before.
#[derive(Clone, Debug)]
pub(in crate::path) struct Jitter {
    most: Span,
    stream: Stream,
    last: Instant,
}

impl Keyed for Jitter {
    type Params = Span;
    const EXPECTS: &'static str = SPAN;
    const ABOUT: &'static str =
        "Random extra delay of each packet from the sender, uniform from 0 to this; packets stay in order.";

    fn read(text: &str) -> Option<Span> {
        quantity::span(text)
    }

    fn acts(most: &Span) -> bool {
        *most > Span::ZERO
    }

    fn build(most: Span, stream: Stream) -> Self {
        Self { most, stream, last: Instant::ZERO }
    }

    #[inline]
    fn pass(&mut self, now: Instant) -> Result<Instant, Dropped> {
        self.last = self.last.max(now + self.stream.uniform_span(self.most));
        Ok(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_in_bounds_and_keeps_the_order() {
        let mut jitter = Jitter::build(Span::millis(3), Stream::named(1, "jitter"));
        let mut last = Instant::ZERO;
        for i in 0..10_000 {
            let now = Instant(i * 100_000);
            let out = jitter.pass(now).expect("it drops nothing");
            assert!(out >= last && out >= now && out.since(now) <= Span::millis(3));
            last = out;
        }
    }
}
