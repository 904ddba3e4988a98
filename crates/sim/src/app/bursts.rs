//! Bursts with pauses between them on one connection: each is requested when the one before has arrived and its
//! pause is over.

use crate::path::quantity;
use slowstart::units::Span;

/// The most bursts of a connection.
const MOST: usize = 8;
/// The longest pause.
const LONGEST: Span = Span::secs(3600);

/// Sizes, with pauses between them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// The pause before each burst, none before the first, and its bytes.
    bursts: [(Span, u64); MOST],
    count: usize,
}

impl Bursts {
    /// What they look like.
    pub const EXPECTED: &'static str =
        "sizes with pauses between them, 2 to 8 sizes and pauses of up to an hour, such as 5MB,2s,5MB";

    /// Parses `5MB,2s,5MB`; `None` if it is not of this form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut all = Self { bursts: [(Span::ZERO, 0); MOST], count: 0 };
        let mut words = text.split(',').map(str::trim);
        let mut pause = Span::ZERO;
        loop {
            let bytes = quantity::bytes(words.next()?).filter(|b| b.0 > 0)?;
            *all.bursts.get_mut(all.count)? = (pause, bytes.0);
            all.count += 1;
            let Some(word) = words.next() else { break };
            pause = quantity::some_span(word).filter(|p| *p <= LONGEST)?;
        }
        (all.count > 1).then_some(all)
    }

    /// Returns the pause before burst `i` and its bytes; `None` if there are fewer.
    pub(super) fn get(&self, i: usize) -> Option<(Span, u64)> {
        self.bursts[..self.count].get(i).copied()
    }

    /// Number of bursts.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The bytes of all.
    pub fn bytes(&self) -> u64 {
        self.bursts.iter().map(|b| b.1).fold(0, u64::saturating_add)
    }

    /// The pauses together.
    pub fn pauses(&self) -> Span {
        self.bursts.iter().fold(Span::ZERO, |sum, b| sum + b.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_pauses_alternate() {
        let b = Bursts::parse("5MB, 2s ,100kB").expect("bursts");
        assert_eq!((b.bytes(), b.pauses(), b.count()), (5_100_000, Span::secs(2), 2));
        assert_eq!((b.get(1), b.get(2)), (Some((Span::secs(2), 100_000)), None));
        for text in ["5MB", "5MB,5MB", "2s,5MB", "5MB,2s", "5MB,2h,5MB", "0B,1s,1MB", ""] {
            assert_eq!(Bursts::parse(text), None, "{text}");
        }
        assert_eq!(Bursts::parse(&["1kB"; 9].join(",1s,")), None);
    }
}
