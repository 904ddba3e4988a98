//! SEARCH: leave when what is delivered in a window of time no longer keeps pace with what was sent in the same
//! window one round trip earlier. The thesis (Ataei Kachooei 2024) and draft-chung-ccwg-search-09.
//!
//! One structure serves every version: bins hold running totals, so the sum over a window is a difference, and a bin
//! in which nothing happened repeats the one before it. That is the thesis' sum over bins of differences as well.
//!
//! Departs from the draft:
//! - interpolates backwards between bins: the draft's forward step reads a bin that is not yet whole (its authors
//!   have confirmed the mistake to implementers);
//! - starts over after `missed` silent bins, which the draft makes optional.
//!
//! Departs from the thesis' printed Algorithm 1, which cannot run as it stands:
//! - bins are sized at the first RTT sample, not before one exists (line 9);
//! - the bin just completed is not erased (lines 25 to 27), indices wrap (lines 35, 36), a window in which nothing was
//!   delivered is not divided by (line 17), and the look-back stops one bin short of where the ring overwrites itself
//!   (line 13).

use super::Startup;
use crate::param::{choice, params};
use crate::step::{Detected, Exit, Resume, Step};
use crate::units::{Bytes, Fixed, Instant, Span};
use crate::view::{Ack, Congestion, Restart, Sent, View};

choice! {
    /// What delivery is held against.
    pub enum Expected {
        /// Twice what was delivered a round trip earlier (thesis 2.0).
        TwiceDelivered = "twice-delivered",
        /// What was sent a round trip earlier (thesis 1.0, draft-09).
        Sent = "sent",
    }
}

choice! {
    /// Which round trip the look-back spans.
    pub enum LookBack {
        /// The newest sample, as all code has it: it grows with the queue, and the exit comes late.
        Latest = "latest",
        /// The first sample, as the thesis' own closed form supposes.
        Initial = "initial",
    }
}

params! {
    /// Parameters of SEARCH; the defaults are those of draft-09.
    pub struct Params {
        /// The shortfall that ends it, as a share of what was expected.
        threshold: Fixed = Fixed::milli(260), "a share from 0 to 1, such as 0.26", |v| (0..=Fixed::ONE).contains(&v.0);
        /// The window, in first round-trip times.
        window: Fixed = Fixed::milli(3500), "a number of round trips above 0, such as 3.5", |v| v.0 > 0;
        /// What delivery is held against.
        expected: Expected = Expected::Sent, "one of sent, twice-delivered", |_v| true;
        /// Which round trip the look-back spans.
        look_back: LookBack = LookBack::Latest, "one of latest, initial", |_v| true;
        /// Reduce the window to what was delivered in the last first round-trip time before leaving.
        drain: bool = true, "on or off", |_v| true;
        /// Packets acknowledged for each one sent while draining.
        drain_acks: u32 = 3, "a whole number from 1", |v| v > 0;
        /// Silent bins after which it starts over.
        missed: u32 = W as u32, "a number of bins", |_v| true;
    }
}

impl Params {
    /// SEARCH 2.0 as the thesis has it (section 4.4).
    pub fn thesis_2_0() -> Self {
        Self {
            threshold: Fixed::milli(350),
            expected: Expected::TwiceDelivered,
            drain: false,
            missed: u32::MAX,
            ..Self::default()
        }
    }
}

/// Bins in a window.
const W: usize = 10;
/// Bins beyond it, for the look-back.
const EXTRA: usize = 15;
/// The oldest bin read lies a look-back of EXTRA - 1, a window and one bin for the interpolation behind the newest.
const N: usize = W + EXTRA + 1;

/// SEARCH.
#[derive(Clone, Debug)]
pub struct Search {
    pub(crate) params: Params,
    sent: Bytes,
    acked: Bytes,
    bins: Option<Bins>,
    /// The shortfall when it was last computed.
    shortfall: Option<Fixed>,
    drain: Option<Drain>,
}

#[derive(Clone, Debug)]
struct Bins {
    width: Span,
    first_rtt: Span,
    /// When the bin being filled ends.
    end: Instant,
    /// How many have been filled.
    at: usize,
    /// Running totals at the end of each, in a ring.
    acked: [Bytes; N],
    sent: [Bytes; N],
}

#[derive(Clone, Debug)]
struct Drain {
    seen: Detected,
    target: Bytes,
    /// Bytes acknowledged towards the next packet to send.
    credit: Bytes,
}

impl Bins {
    fn new(p: &Params, now: Instant, rtt: Span, acked: Bytes, sent: Bytes) -> Self {
        let width = rtt.scale(p.window.0 as u64, Fixed::ONE as u64 * W as u64).max(Span(1));
        Self { width, first_rtt: rtt, end: now + width, at: 0, acked: [acked; N], sent: [sent; N] }
    }

    /// Closes the bins whose time has passed; how many.
    fn close(&mut self, now: Instant, acked: Bytes, sent: Bytes) -> u64 {
        if now <= self.end {
            return 0;
        }
        let passed = now.since(self.end).0 / self.width.0 + 1;
        let (a, s) = (self.acked[self.at % N], self.sent[self.at % N]);
        // Past a whole ring, more silent bins look no different.
        for _ in 1..passed.min(2 * N as u64) {
            self.at += 1;
            (self.acked[self.at % N], self.sent[self.at % N]) = (a, s);
        }
        self.at += 1;
        (self.acked[self.at % N], self.sent[self.at % N]) = (acked, sent);
        self.end = self.end + self.width * passed;
        passed
    }

    /// What was delivered in the window that ends now.
    fn delivered(&self) -> Bytes {
        self.acked[self.at % N] - self.acked[(self.at - W) % N]
    }

    /// What was expected of it: the window that ended `rtt` ago, interpolated between bins. `None` while history does
    /// not reach that far, or no longer does.
    fn expected(&self, rtt: Span, of: Expected) -> Option<Bytes> {
        let back = usize::try_from(rtt.0 / self.width.0).ok().filter(|k| *k < EXTRA)?;
        let part = rtt.0 % self.width.0;
        let prev = self.at.checked_sub(back).filter(|p| *p > W)?;
        let ring = if of == Expected::Sent { &self.sent } else { &self.acked };
        let window = |end: usize| ring[end % N] - ring[(end - W) % N];
        let between =
            window(prev).scale(self.width.0 - part, self.width.0) + window(prev - 1).scale(part, self.width.0);
        Some(if of == Expected::Sent { between } else { between * 2 })
    }

    /// What was delivered in the last first round-trip time: the path without its queue.
    fn delivered_in_first_rtt(&self) -> Bytes {
        let n = self.first_rtt.0.div_ceil(self.width.0) as usize;
        self.acked[self.at % N] - self.acked[(self.at - n.min(self.at).min(W)) % N]
    }
}

impl Search {
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, sent: Bytes::ZERO, acked: Bytes::ZERO, bins: None, shortfall: None, drain: None }
    }

    /// One packet out for each `drain_acks` acknowledged, until the window is the target.
    fn drain(&mut self, v: &View, ack: &Ack) -> Option<Step> {
        let d = self.drain.as_mut()?;
        let each = v.mss * u64::from(self.params.drain_acks);
        d.credit += ack.delivered;
        let add = d.credit.units(each);
        d.credit -= each * add;
        let cwnd = (v.inflight + v.mss * add).max(d.target).min(v.cwnd);
        let step = Step::set(cwnd);
        Some(if cwnd > d.target { step } else { step.and_exit(Exit::RateFlat).seen(d.seen) })
    }

    /// The shortfall, at the end of a bin.
    fn shortfall(&mut self, now: Instant, rtt: Span) -> Option<Fixed> {
        let (acked, sent) = (self.acked, self.sent);
        let p = &self.params;
        let bins = self.bins.get_or_insert_with(|| Bins::new(p, now, rtt, acked, sent));
        let passed = bins.close(now, acked, sent);
        if passed == 0 {
            return None;
        }
        if passed > u64::from(p.missed) {
            self.bins = None;
            return None;
        }
        let back = if p.look_back == LookBack::Initial { bins.first_rtt } else { rtt };
        let expected = bins.expected(back, p.expected).filter(|e| e.0 > 0)?;
        Some(Fixed::ratio(expected - bins.delivered(), expected))
    }
}

impl Startup for Search {
    fn on_sent(&mut self, _: &View, s: &Sent) {
        self.sent += s.bytes;
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        self.acked += ack.delivered;
        if let Some(step) = self.drain(v, ack) {
            return step;
        }
        let grow = Step::grow(v.earned(ack));
        let Some(shortfall) = ack.rtt.and_then(|rtt| self.shortfall(v.now, rtt)) else { return grow };
        self.shortfall = Some(shortfall);
        if shortfall < self.params.threshold {
            return grow;
        }
        match &self.bins {
            Some(bins) if self.params.drain => {
                let target = bins.delivered_in_first_rtt().max(v.iw).min(v.cwnd);
                let seen = Detected { at: v.now, cwnd: v.cwnd };
                self.drain = Some(Drain { seen, target, credit: Bytes::ZERO });
                Step::HOLD
            }
            _ => Step::exit(Exit::RateFlat),
        }
    }

    fn on_congestion(&mut self, _: &View, c: &Congestion) -> Step {
        match &self.drain {
            // It had already decided; the loss is of what it sent before that.
            Some(d) => Step::exit(Exit::RateFlat).seen(d.seen),
            None => Step::exit(c.signal.into()),
        }
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        // Bins that span a silence say nothing of the path.
        Resume::AsBorn
    }

    fn phase(&self) -> &'static str {
        if self.drain.is_some() { "drain" } else { "slow-start" }
    }

    fn gauges(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("shortfall", self.shortfall.map_or(f64::NAN, Fixed::as_f64));
        put("bin", self.bins.as_ref().map_or(f64::NAN, |b| b.at as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Totals that grow by these amounts a bin, one bin a round trip.
    fn bins(each: &[u64]) -> Bins {
        let p = Params { window: Fixed::milli(10_000), ..Params::thesis_2_0() };
        let mut b = Bins::new(&p, Instant::ZERO, Span::millis(1), Bytes::ZERO, Bytes::ZERO);
        let mut total = Bytes::ZERO;
        for (i, n) in each.iter().enumerate() {
            total += Bytes(*n);
            b.close(Instant(1_000_000 * (i as u64 + 1) + 1), total, total);
        }
        b
    }

    #[test]
    fn silent_bins_repeat_the_last() {
        let mut b = bins(&[5; 20]);
        let before = b.at;
        assert_eq!(b.close(Instant(23_500_000), Bytes(130), Bytes(130)), 3);
        assert_eq!(b.at, before + 3);
        assert_eq!(b.acked[(before + 2) % N], Bytes(100));
        assert_eq!(b.acked[b.at % N], Bytes(130));
    }

    #[test]
    fn the_look_back_stops_before_the_ring_overwrites_itself() {
        let b = bins(&[1; 60]);
        let rtt = |bins: u64| Span(1_000_000 * bins);
        assert_eq!(b.expected(rtt(EXTRA as u64 - 1), Expected::Sent), Some(Bytes(10)));
        assert_eq!(b.expected(rtt(EXTRA as u64), Expected::Sent), None);
        assert_eq!(b.expected(Span(rtt(EXTRA as u64 - 1).0 + 999_999), Expected::Sent), Some(Bytes(9)));
    }

    #[test]
    fn history_must_reach_a_window_and_a_bin_back() {
        assert_eq!(bins(&[1; 11]).expected(Span::millis(1), Expected::Sent), None);
        assert_eq!(bins(&[1; 12]).expected(Span::millis(1), Expected::Sent), Some(Bytes(10)));
    }

    /// Section 1.4's neighbours: doubling, nothing is short; flat, half is (the plateau 1 - 1/g with g = 2).
    #[test]
    fn doubling_is_not_short_and_a_plateau_is_half() {
        let doubling: std::vec::Vec<u64> = (0..14).map(|n| 1 << n).collect();
        let b = bins(&doubling);
        assert_eq!(b.expected(Span::millis(1), Expected::TwiceDelivered).unwrap(), b.delivered());
        let flat = bins(&[7; 30]);
        let expected = flat.expected(Span::millis(1), Expected::TwiceDelivered).unwrap();
        assert_eq!(Fixed::ratio(expected - flat.delivered(), expected), Fixed::milli(500));
    }

    #[test]
    fn ratios_hold_beyond_32_bits() {
        assert_eq!(Fixed::ratio(Bytes(43_000_000_000), Bytes(86_000_000_000)), Fixed::milli(500));
    }
}
