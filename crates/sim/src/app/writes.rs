//! A sender that writes by a schedule of its own, whatever has arrived: at a rate, in pieces, with pauses, also
//! shorter than a round trip. It closes after the last.

use crate::path::quantity;
use slowstart::units::{Bytes, Instant, Span};

/// The most parts of a schedule that write.
const MOST: usize = 6;
/// The longest pause, and the longest time between two pieces.
const LONGEST: Span = Span::secs(3600);
/// The time between two pieces where only a rate is given.
const PERIOD: Span = Span::millis(10);

/// A part of a schedule.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Part {
    /// The pause before it.
    pause: Span,
    /// Its bytes, those of each piece, and the time from one piece to the next.
    bytes: u64,
    piece: u64,
    period: Span,
}

impl Part {
    /// Parses `5MB`, `5MB@2Mbit` or `5MB@100kB/20ms`.
    fn parse(text: &str) -> Option<Self> {
        let (bytes, pieces) =
            text.split_once('@').map_or((text, None), |(bytes, pieces)| (bytes, Some(pieces)));
        let bytes = quantity::bytes(bytes).filter(|b| b.0 > 0)?;
        let (piece, period) = match pieces.map(|p| p.split_once('/').ok_or(p)) {
            None => (bytes, Span::ZERO),
            Some(Ok((piece, period))) => (quantity::bytes(piece)?, quantity::some_span(period)?),
            Some(Err(rate)) => (quantity::rate(rate)?.over(PERIOD), PERIOD),
        };
        let fits = piece > Bytes::ZERO && period <= LONGEST;
        fits.then_some(Self { pause: Span::ZERO, bytes: bytes.0, piece: piece.0, period })
    }

    /// From its first piece to its last.
    fn lasts(&self) -> Span {
        self.period * (self.bytes.div_ceil(self.piece) - 1)
    }
}

/// What is written, and when.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Writes {
    parts: [Part; MOST],
    count: usize,
}

impl Writes {
    /// What they look like.
    pub const EXPECTED: &'static str = "writes: and up to 6 sizes, each at once or at a rate or in pieces, with pauses of up to an hour \
                                        between them, such as writes:500kB@1Mbit,10MB or writes:5MB@100kB/20ms,2s,1MB";

    /// Parses `writes:500kB@1Mbit,2s,10MB`; `None` if it is not of this form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut all = Self { parts: [Part::default(); MOST], count: 0 };
        let mut pause = None;
        for word in text.strip_prefix("writes:")?.split(',').map(str::trim) {
            if let Some(part) = Part::parse(word) {
                *all.parts.get_mut(all.count)? = Part { pause: pause.take().unwrap_or(Span::ZERO), ..part };
                all.count += 1;
            } else if all.count > 0 && pause.is_none() {
                pause = Some(quantity::some_span(word).filter(|p| *p <= LONGEST)?);
            } else {
                return None;
            }
        }
        (all.count > 0 && pause.is_none()).then_some(all)
    }

    /// The bytes of all.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|p| p.bytes).fold(0, u64::saturating_add)
    }

    /// The number of its parts.
    pub const fn parts(&self) -> usize {
        self.count
    }

    /// The bytes of a part and of all before it; `None` behind the last.
    pub(super) fn end(&self, part: usize) -> Option<u64> {
        let parts = self.parts[..self.count].get(..=part)?;
        Some(parts.iter().map(|p| p.bytes).fold(0, u64::saturating_add))
    }

    /// From the first write to the last.
    pub fn lasts(&self) -> Span {
        self.parts[..self.count].iter().fold(Span::ZERO, |sum, p| sum + p.pause + p.lasts())
    }
}

/// How far a schedule has come.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Writer {
    part: usize,
    /// Bytes of the part that are written.
    written: u64,
}

/// A piece of a schedule.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: u64,
    /// The bytes of the part of which it is the last.
    pub(super) completes: Option<u64>,
    /// When the one after it is due; `None` if it is the last of all.
    pub(super) next: Option<Instant>,
}

impl Writer {
    /// Takes the next piece at `now`.
    pub(super) fn next(&mut self, writes: &Writes, now: Instant) -> Piece {
        let part = writes.parts[self.part];
        let bytes = part.piece.min(part.bytes - self.written);
        self.written += bytes;
        if self.written < part.bytes {
            return Piece { bytes, completes: None, next: Some(now + part.period) };
        }
        *self = Self { part: self.part + 1, written: 0 };
        let next = writes.parts[..writes.count].get(self.part);
        // A part without a pause begins when the last piece of the one before has had its time.
        Piece { bytes, completes: Some(part.bytes), next: next.map(|p| now + p.pause.max(part.period)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(text: &str) -> Vec<(u64, u64)> {
        let writes = Writes::parse(text).expect("writes");
        let (mut writer, mut now, mut all) = (Writer::default(), Instant::ZERO, Vec::new());
        let mut ends = Vec::new();
        loop {
            let piece = writer.next(&writes, now);
            all.push((now.0 / 1_000_000, piece.bytes));
            ends.extend(piece.completes);
            let Some(next) = piece.next else { break };
            now = next;
        }
        let sums: Vec<u64> = (0..writes.parts()).filter_map(|n| writes.end(n)).collect();
        let so_far = ends.iter().scan(0, |sum, bytes| {
            *sum += bytes;
            Some(*sum)
        });
        assert_eq!(so_far.collect::<Vec<_>>(), sums);
        assert_eq!(writes.end(writes.parts()), None);
        assert_eq!(all.iter().map(|w| w.1).sum::<u64>(), writes.bytes());
        all
    }

    #[test]
    fn a_schedule_is_what_is_written() {
        // 1 Mbit/s are 1250 bytes in 10 ms.
        assert_eq!(played("writes:3kB@1Mbit,10kB"), [(0, 1250), (10, 1250), (20, 500), (30, 10_000)]);
        assert_eq!(played("writes:5kB, 2s ,2kB@1kB/3ms"), [(0, 5000), (2000, 1000), (2003, 1000)]);
        assert_eq!(Writes::parse("writes:5kB,2s,2kB@1kB/3ms").expect("writes").lasts(), Span::millis(2003));
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in [
            "5MB,2s,5MB",
            "writes:",
            "writes:2s,5MB",
            "writes:5MB,2s",
            "writes:5MB,1s,1s,5MB",
            "writes:0B",
            "writes:5MB@0bit",
            "writes:5MB@1kB",
            "writes:5MB@1kB/0s",
            "writes:5MB,2h,5MB",
            "writes:5MB@",
        ] {
            assert_eq!(Writes::parse(text), None, "{text}");
        }
        assert_eq!(Writes::parse(&format!("writes:{}", ["1kB"; 9].join(","))), None);
    }
}
