//! Measurements that several algorithms share.

use crate::units::{Instant, Mark, Rate, Span};
use crate::view::Ack;

/// Counts round trips by marks. A round ends with the first ACK beyond the mark that was next to be sent when it began,
/// so that every RTT sample of a round is of a packet sent in it. (RFC 9406 §4.2 ends a round when `windowEnd` itself
/// is acknowledged; Linux uses `after(snd_una, end_seq)`, as here.)
///
/// Rounds are independent of time, so an idle period does not end one.
#[derive(Clone, Debug, Default)]
pub struct Round {
    end: Option<Mark>,
}

impl Round {
    /// Updates the count with an ACK up to `upto`, when `next` is the next mark to be sent. Returns true if this ACK
    /// ends a round. The first call begins the first round and returns false.
    pub fn ends_round(&mut self, upto: Mark, next: Mark) -> bool {
        match self.end {
            Some(end) if upto <= end => false,
            ended => {
                self.end = Some(next);
                ended.is_some()
            }
        }
    }
}

/// The minimum RTT of a round, and the number of its samples.
#[derive(Clone, Debug, Default)]
pub struct RoundMin {
    /// The minimum so far.
    pub least: Option<Span>,
    /// Number of samples.
    pub samples: u32,
}

impl RoundMin {
    /// Adds a sample.
    pub fn add(&mut self, rtt: Span) {
        self.least = Some(self.least.map_or(rtt, |l| l.min(rtt)));
        self.samples += 1;
    }

    /// Begins a new round. Returns the minimum of the round that ended.
    pub fn restart(&mut self) -> Option<Span> {
        core::mem::take(self).least
    }
}

/// Estimates the capacity of a path from the spacing of ACKs, as the highest rate between two consecutive ACKs.
///
/// A pair counts only if its ACKs arrive further apart than its packets were sent: then the path, and not the sender,
/// determined their spacing.
#[derive(Clone, Debug, Default)]
pub struct Dispersion {
    /// The highest rate so far.
    pub rate: Option<Rate>,
    /// Number of pairs counted.
    pub pairs: u32,
    /// When the last ACK arrived, and when the packet that it acknowledges had been sent.
    last: Option<(Instant, Instant)>,
}

impl Dispersion {
    /// Adds an ACK.
    pub fn add(&mut self, now: Instant, ack: &Ack) {
        if ack.delivered.0 == 0 {
            return;
        }
        let left = ack.newest.at;
        if let Some((came, before)) = self.last.replace((now, left)) {
            let apart = now.since(came);
            if let Some(rate) = Rate::new(ack.delivered, apart).filter(|_| left.since(before) < apart) {
                self.rate = self.rate.max(Some(rate));
                self.pairs += 1;
            }
        }
    }
}
