//! Losses with the same probability for each packet.

use slowstart::units::Instant;

use super::super::quantity;
use super::super::spec::SHARE;
use super::{Cause, Dropped, Keyed};
use crate::random::Stream;

/// Drops each packet with the same probability.
#[derive(Clone, Debug)]
pub(in crate::path) struct Loss {
    /// The probability, in millionths.
    share: u32,
    stream: Stream,
}

impl Loss {
    pub(in crate::path) fn new(share: u32, stream: Stream) -> Self {
        Self { share, stream }
    }

    pub(in crate::path) fn drops(&mut self) -> bool {
        self.stream.chance(self.share)
    }
}

impl Keyed for Loss {
    type Params = u32;
    const EXPECTS: &'static str = SHARE;
    const ABOUT: &'static str = "Probability that a packet from the sender is lost after the link.";

    fn read(text: &str) -> Option<u32> {
        quantity::share(text)
    }

    fn acts(share: &u32) -> bool {
        *share > 0
    }

    fn build(share: u32, stream: Stream) -> Self {
        Self::new(share, stream)
    }

    fn pass(&mut self, now: Instant) -> Result<Instant, Dropped> {
        if self.drops() { Err(Dropped::new(now, Cause::Random)) } else { Ok(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_losses_have_their_share() {
        let mut loss = Loss::new(10_000, Stream::named(1, "loss"));
        let lost = (0..1_000_000).filter(|_| loss.drops()).count();
        // Five standard deviations of a binomial (10^6, 1 %): 497.
        assert!(lost.abs_diff(10_000) < 497, "{lost}");
    }
}
