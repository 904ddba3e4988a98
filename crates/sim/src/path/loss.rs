//! Losses of a trace, and scripted ones.

use std::sync::Arc;

use slowstart::units::{Instant, Span};

use super::trace::LossTrace;
use super::{Kind, PacketInfo};
use crate::random::Stream;

/// Drops each packet with the probability that a trace has at its time.
#[derive(Clone, Debug)]
pub(super) struct LossOverTime {
    trace: Arc<LossTrace>,
    /// The position in the trace at which the run starts.
    offset: Span,
    stream: Stream,
}

impl LossOverTime {
    pub(super) fn new(trace: Arc<LossTrace>, offset: Span, stream: Stream) -> Self {
        Self { trace, offset, stream }
    }

    pub(super) fn drops(&mut self, now: Instant) -> bool {
        self.stream.chance(self.trace.at(now.since(Instant::ZERO) + self.offset))
    }
}

/// Drops the packets of one kind whose places, counted from 1 as they enter, are listed.
#[derive(Clone, Debug)]
pub(super) struct Script {
    kind: Kind,
    /// Ranges with both ends in them, sorted and apart, of which those before `next` are past.
    places: Box<[(u64, u64)]>,
    next: usize,
    seen: u64,
}

impl Script {
    pub(super) fn new(kind: Kind, places: &[(u64, u64)]) -> Self {
        Self { kind, places: places.into(), next: 0, seen: 0 }
    }

    pub(super) fn drops(&mut self, p: &PacketInfo) -> bool {
        if p.kind != self.kind {
            return false;
        }
        self.seen += 1;
        let Some((from, to)) = self.places.get(self.next) else { return false };
        if self.seen == *to {
            self.next += 1;
        }
        self.seen >= *from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Ecn;

    #[test]
    fn a_script_counts_its_own_kind() {
        let mut script = Script::new(Kind::Data, &[(1, 1), (4, 6), (7, 7)]);
        let data = PacketInfo { bytes: 1500, flow: 0, kind: Kind::Data, ecn: Ecn::NotEct };
        let fin = PacketInfo { kind: Kind::Fin, ..data };
        let dropped: Vec<u32> = (1..=20)
            .filter(|_| {
                assert!(!script.drops(&fin));
                script.drops(&data)
            })
            .collect();
        assert_eq!(dropped, [1, 4, 5, 6, 7]);
    }
}
