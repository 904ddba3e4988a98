//! A browser that loads pages over one connection: an object, then all others that the page consists of,
//! requested at once, then a pause (HTTP/2, RFC 9113, without priorities: responses come in the order of the
//! requests).
//!
//! Pages follow the HTTP Archive: number of requests and bytes of mobile pages by percentile (Web Almanac
//! 2022, chapter Page Weight). Only percentiles 10 to 90 are published, so no page is smaller or larger.
//! Ours: a page has the same rank in both; all its objects come from one server, where real pages take theirs
//! from several; their sizes are shares of an exponential distribution; the pause is exponential.

use crate::random::Stream;
use slowstart::units::{Instant, Span};

/// Percentile, requests and kilobytes of a page.
const PAGES: [(u64, u64, u64); 5] =
    [(10, 23, 445), (25, 41, 990), (50, 70, 2019), (75, 102, 4042), (90, 168, 8082)];
/// The least object, bytes: headers alone.
const LEAST: u64 = 100;
/// Bytes of a request, compressed (RFC 7541). Ours.
const REQUEST: u64 = 100;
/// The mean pause between pages. Ours.
const PAUSE: Span = Span::secs(5);

/// The pages of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Browser {
    /// Sizes of the objects of the current page that have not been requested, the first of them last.
    unrequested: Vec<u64>,
    /// Sizes of the objects that the last request asked for, in their order.
    requested: Vec<u64>,
}

impl Browser {
    /// Returns what is requested next, when all before is complete at `now`: when, and the bytes of requests
    /// and responses.
    pub(super) fn next(&mut self, now: Instant, random: &mut Stream) -> (Instant, u64, u64) {
        let at = if self.unrequested.is_empty() {
            let first = self.requested.is_empty();
            self.unrequested = page(random);
            let pause = if first { Span::ZERO } else { random.exponential_span(PAUSE) };
            self.requested = self.unrequested.split_off(self.unrequested.len() - 1);
            now + pause
        } else {
            self.requested = std::mem::take(&mut self.unrequested);
            now
        };
        (at, REQUEST * self.requested.len() as u64, self.requested.iter().sum())
    }

    /// The sizes of the objects that [`Browser::next`] last asked for.
    pub(super) fn requested(&self) -> impl Iterator<Item = u64> {
        self.requested.iter().copied()
    }
}

/// Draws the sizes of a page's objects.
fn page(random: &mut Stream) -> Vec<u64> {
    // A rank in thousandths between the first and the last percentile known.
    let (first, last) = (PAGES[0].0 * 10, PAGES[PAGES.len() - 1].0 * 10);
    let rank = first + random.below(last - first);
    let i = PAGES.partition_point(|p| p.0 * 10 <= rank);
    let ((p0, n0, k0), (p1, n1, k1)) = (PAGES[i - 1], PAGES[i]);
    let between = |a: u64, b: u64| a + (b - a) * (rank - p0 * 10) / ((p1 - p0) * 10);
    let (count, bytes) = (between(n0, n1), between(k0 * 1000, k1 * 1000));
    let shares: Vec<f64> = (0..count).map(|_| random.exponential()).collect();
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|s| ((s / sum * bytes as f64) as u64).max(LEAST)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_percentiles_of_their_table() {
        let mut random = Stream::named(1, "browser");
        let mut pages: Vec<(u64, usize)> = (0..32_001)
            .map(|_| page(&mut random))
            .map(|objects| (objects.iter().sum::<u64>() / 1000, objects.len()))
            .collect();
        pages.sort_unstable();
        // Ranks 10 % to 90 % are drawn evenly, so the median page and the quartile lie where they do in the
        // table.
        let at = |percentile: usize| pages[(percentile - 10) * 400];
        for (percentile, requests, kilobytes) in [(25, 41, 990), (50, 70, 2019), (75, 102, 4042)] {
            let (found, count) = at(percentile);
            assert!(
                found.abs_diff(kilobytes) * 20 < kilobytes,
                "{percentile} %: {found} kB, not {kilobytes}"
            );
            assert!(count.abs_diff(requests) <= 4, "{percentile} %: {count} requests, not {requests}");
        }
        assert!(pages.iter().all(|p| (440..=8100).contains(&p.0) && (23..=168).contains(&p.1)));
    }

    #[test]
    fn a_page_is_an_object_then_the_others_then_a_pause() {
        let mut random = Stream::named(1, "browser");
        let mut browser = Browser::default();
        let at = |ms| Instant::ZERO + Span::millis(ms);
        let (first, request, size) = browser.next(at(7), &mut random);
        assert_eq!((first, request, browser.requested().sum()), (at(7), REQUEST, size));
        let (others, requests, bytes) = browser.next(at(27), &mut random);
        assert_eq!((others, browser.requested().sum()), (at(27), bytes));
        assert_eq!(browser.requested().count() as u64, requests / REQUEST);
        let (later, request, _) = browser.next(at(127), &mut random);
        assert!(later > at(127) && request == REQUEST);
    }
}
