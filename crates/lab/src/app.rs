//! What applications send. Most connections are limited by theirs, not by the path.

use crate::random::Stream;
use slowstart::units::{Instant, Span};

/// What a flow's application does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One transfer of so many bytes, or without end.
    Bulk {
        /// Bytes; `None` goes on until the run ends.
        size: Option<u64>,
    },
    /// A transfer of so many bytes, written by whoever drives the engine ([`Engine::write`](crate::engine::Engine::write)).
    Told {
        /// Bytes.
        size: u64,
    },
    /// One request and its answer, after which the server closes (HTTP/1.0).
    Request {
        /// Bytes of the request.
        request: u64,
        /// Bytes of the answer.
        response: u64,
    },
    /// Short objects on one connection, each asked for after a time of thought.
    Web,
    /// Segments of a stream: three at once to begin with, then one each period.
    Video {
        /// Rate of the stream, bit/s.
        rate_bps: u64,
    },
}

/// An exchange: asked for at some time, with so many bytes, and answered with so many.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the request leaves.
    pub at: Instant,
    /// Its bytes.
    pub request: u64,
    /// The bytes of the answer.
    pub response: u64,
}

/// A request, in bytes: the median of `PackMime`'s HTTP requests (Cao et al., INFOCOM 2004).
const REQUEST: u64 = 424;
/// Seconds of video in a segment, as DASH services commonly cut them.
const SEGMENT: Span = Span::secs(4);
/// Segments fetched before play begins.
const AHEAD: u64 = 3;
/// The mean time of thought between objects of the web application.
const THOUGHT: Span = Span::millis(500);
/// Quantiles of response sizes in bytes at 0, 10, 25, 50, 75, 90, 95, 99 and 100 per cent: those of `PackMime`'s
/// downloads (Cao et al., INFOCOM 2004).
const SIZES: [(u64, u64); 9] = [
    (0, 273),
    (100, 386),
    (250, 691),
    (500, 2258),
    (750, 8895),
    (900, 20_300),
    (950, 35_900),
    (990, 93_000),
    (1000, 604_000),
];

/// The application of a flow.
#[derive(Clone, Debug)]
pub struct App {
    kind: Kind,
    chance: Stream,
    began: Instant,
    asked: u64,
}

impl App {
    /// An application, with its own chance.
    pub fn new(kind: Kind, chance: Stream) -> Self {
        Self { kind, chance, began: Instant::ZERO, asked: 0 }
    }

    /// What it does.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The first exchange, when the connection is established; `None` for an application that asks for nothing.
    pub fn begin(&mut self, now: Instant) -> Option<Exchange> {
        self.began = now;
        self.next(now)
    }

    /// The next exchange, when the last was complete at `now`.
    pub fn next(&mut self, now: Instant) -> Option<Exchange> {
        let first = self.asked == 0;
        self.asked += 1;
        match self.kind {
            Kind::Bulk { .. } | Kind::Told { .. } => None,
            Kind::Request { request, response } => first.then_some(Exchange { at: now, request, response }),
            Kind::Web => {
                let wait = if first { Span::ZERO } else { self.chance.uniform_span(THOUGHT * 2) };
                let response = self.size();
                Some(Exchange { at: now + wait, request: REQUEST, response })
            }
            Kind::Video { rate_bps } => {
                let due = self.began + SEGMENT * (self.asked - 1).saturating_sub(AHEAD - 1);
                let response = rate_bps / 8 * (SEGMENT.0 / 1_000_000_000);
                Some(Exchange { at: due.max(now), request: REQUEST, response })
            }
        }
    }

    /// A size from the table, interpolated between its quantiles.
    fn size(&mut self) -> u64 {
        let u = self.chance.below(1000);
        let i = SIZES.partition_point(|s| s.0 <= u).min(SIZES.len() - 1);
        let ((p0, s0), (p1, s1)) = (SIZES[i - 1], SIZES[i]);
        s0 + (s1 - s0) * (u - p0) / (p1 - p0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_objects_have_the_median_of_their_table() {
        let mut app = App::new(Kind::Web, Stream::named(1, "web"));
        let mut sizes: Vec<u64> =
            (0..4001).filter_map(|_| app.next(Instant::ZERO)).map(|e| e.response).collect();
        sizes.sort_unstable();
        assert!((1900..2700).contains(&sizes[2000]), "{}", sizes[2000]);
        assert!(sizes.iter().all(|s| (273..=604_000).contains(s)));
    }

    #[test]
    fn video_fetches_three_segments_and_then_one_each_period() {
        let mut app = App::new(Kind::Video { rate_bps: 5_000_000 }, Stream::named(1, "video"));
        let mut now = Instant::ZERO;
        let mut at = Vec::new();
        let mut next = app.begin(now);
        while let Some(e) = next.filter(|_| at.len() < 5) {
            assert_eq!(e.response, 2_500_000);
            at.push(e.at.0 / 1_000_000_000);
            now = e.at + Span::millis(1);
            next = app.next(now);
        }
        assert_eq!(at, [0, 0, 0, 4, 8]);
    }
}
