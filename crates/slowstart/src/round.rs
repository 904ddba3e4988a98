//! Measuring parts that two algorithms share.

use crate::units::{Instant, Mark, Rate, Span};
use crate::view::Ack;

/// Counts round trips by marks: a round ends with the first acknowledgement of what was sent after its start, so that
/// every sample of a round is of a packet sent in it (RFC 9406 §4.2: when `windowEnd` itself is acknowledged; Linux:
/// `after(snd_una, end_seq)`).
///
/// Never by time: an idle sender's clock runs on, its rounds do not.
#[derive(Clone, Debug, Default)]
pub struct Round {
    end: Option<Mark>,
}

impl Round {
    /// True if this ACK ended a round, and so began another.
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

/// The least RTT of a round, from at least so many samples.
#[derive(Clone, Debug, Default)]
pub struct RoundMin {
    /// The least so far.
    pub least: Option<Span>,
    /// How many samples it rests on.
    pub samples: u32,
}

impl RoundMin {
    /// Takes a sample.
    pub fn add(&mut self, rtt: Span) {
        self.least = Some(self.least.map_or(rtt, |l| l.min(rtt)));
        self.samples += 1;
    }

    /// Begins a new round; answers the least of the one that ended.
    pub fn restart(&mut self) -> Option<Span> {
        core::mem::take(self).least
    }
}

/// The capacity of a path by the spacing of ACKs: the highest rate that two of them, one after the other, have shown.
///
/// A pair counts if its ACKs come further apart than its packets left: then the path has spread them, not the sender.
#[derive(Clone, Debug, Default)]
pub struct Dispersion {
    /// The highest rate so far.
    pub rate: Option<Rate>,
    /// How many pairs it rests on.
    pub pairs: u32,
    /// When the last ACK came, and when the packet it told of had left.
    last: Option<(Instant, Instant)>,
}

impl Dispersion {
    /// Takes an ACK.
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
