//! SEARCH, from the thesis (Ataei Kachooei 2024) and draft-chung-ccwg-search-09: ends slow start when the data
//! delivered in a window of time falls short of what was sent (or delivered) in the same window one round trip earlier.
//!
//! All versions use the same structure. Bins contain running totals, so that the sum over a window is a difference of
//! two bins. A bin without events repeats the one before it.
//!
//! Departs from the draft:
//! - interpolates backwards between bins, because the forward step of the draft reads a bin that is not complete (its
//!   authors have confirmed this error to implementers);
//! - resets after `missed` bins without an ACK, which is optional in the draft.
//!
//! Reconstructed because the thesis contradicts itself (1.0): the shortfall is divided by what was sent (section 4.2),
//! not by what was delivered (section 4.3). 2.0 and the draft keep this scale.
//!
//! 3.0 and 3.1 follow their authors' Linux modules, including the arithmetic (`bins=scaled`):
//! - totals have 16 bits; when one no longer fits, all are shifted right;
//! - there are 25 bins, so that the look-back is one bin shorter; its fraction of a bin is rounded down to whole
//!   percent;
//! - everything before the first bin counts as zero. After a start in the middle of a connection, all data of its past
//!   is in the first bin and may end the startup at once.
//!
//! Departs from them: the roll-back shifts totals back to bytes, which the modules omit; whether the application limits
//! the sender is evaluated for the data acknowledged, not for the time of the ACK.
//!
//! Departs from the thesis' printed Algorithm 1, which cannot be executed as printed:
//! - the width of a bin is set at the first RTT sample, not before one exists (line 9);
//! - the bin just completed is not erased (lines 25 to 27), indices wrap (lines 35, 36), there is no division by zero
//!   delivered bytes (line 17), and the look-back ends one bin before the ring is overwritten (line 13).

use super::Startup;
use crate::param::{choice, params};
use crate::step::{Detected, Exit, Resume, Step};
use crate::units::{Bytes, Fixed, Instant, Span, mul_div};
use crate::view::{Ack, Congestion, Limit, Restart, Sent, View};

choice! {
    /// What delivery is compared with.
    pub enum Expected {
        /// Twice what was delivered one round trip earlier (thesis 2.0).
        TwiceDelivered = "twice-delivered",
        /// What was sent one round trip earlier (thesis 1.0, draft-09).
        Sent = "sent",
    }
}

choice! {
    /// Which RTT the look-back uses.
    pub enum LookBack {
        /// The latest sample, as in all code. It grows with the queue, which delays the exit.
        Latest = "latest",
        /// The first sample, as in the thesis' closed form.
        Initial = "initial",
    }
}

choice! {
    /// How totals are stored.
    pub enum Kept {
        /// In bytes.
        Exact = "exact",
        /// In 16 bits with a common shift, as in the Linux modules of 3.0 and 3.1.
        Scaled = "scaled",
    }
}

params! {
    /// Parameters of SEARCH; the defaults are those of draft-09.
    pub struct Params {
        /// Shortfall that ends the startup, as a share of the expected bytes.
        threshold: Fixed = Fixed::milli(260), "a share from 0 to 1, such as 0.26", |v| (0..=Fixed::ONE).contains(&v.0);
        /// Length of the window, in first RTTs.
        window: Fixed = Fixed::milli(3500), "a number of round trips above 0, such as 3.5", |v| v.0 > 0;
        /// What delivery is compared with.
        expected: Expected = Expected::Sent, "one of sent, twice-delivered", |_v| true;
        /// Which RTT the look-back uses.
        look_back: LookBack = LookBack::Latest, "one of latest, initial", |_v| true;
        /// Before the exit, reduce the window to what was delivered in the last first RTT.
        drain: bool = true, "on or off", |_v| true;
        /// Packets acknowledged per packet sent during that reduction.
        drain_acks: u32 = 3, "a whole number from 1", |v| v > 0;
        /// At an exit without drain, subtract what was delivered in the last two first RTTs from the window
        /// (`cwnd_rollback` of 3.0 and 3.1).
        rollback: bool = false, "on or off", |_v| true;
        /// Bins without an ACK after which the state is reset.
        missed: u32 = W as u32, "a number of bins", |_v| true;
        /// If on, a reset after at most one window without an ACK keeps the width of the bins.
        keep_width: bool = false, "on or off", |_v| true;
        /// Reset at the end of a bin in which the application limited the sender.
        app_limited: bool = false, "on or off", |_v| true;
        /// How totals are stored.
        bins: Kept = Kept::Exact, "one of exact, scaled", |_v| true;
    }
}

impl Params {
    /// Returns the parameters of SEARCH 1.0 (thesis, section 4.3).
    pub fn thesis_1_0() -> Self {
        Self { expected: Expected::Sent, ..Self::thesis_2_0() }
    }

    /// Returns the parameters of SEARCH 2.0 (thesis, section 4.4).
    pub fn thesis_2_0() -> Self {
        Self {
            threshold: Fixed::milli(350),
            expected: Expected::TwiceDelivered,
            drain: false,
            missed: u32::MAX,
            ..Self::default()
        }
    }

    /// Returns the parameters of SEARCH 3.0 (its authors' Linux module).
    pub fn linux_3_0() -> Self {
        Self { missed: 2, bins: Kept::Scaled, ..Self::thesis_2_0() }
    }

    /// Returns the parameters of SEARCH 3.1: twice the number of whole bins in the first RTT may pass without an ACK.
    pub fn linux_3_1() -> Self {
        Self { missed: 4, keep_width: true, app_limited: true, ..Self::linux_3_0() }
    }
}

/// Bins per window.
const W: usize = 10;
/// Additional bins, for the look-back.
const EXTRA: usize = 15;
/// Bins in the ring. The oldest one read is a look-back of EXTRA - 1 bins, a window and one bin for the interpolation
/// before the newest.
const N: usize = W + EXTRA + 1;

/// SEARCH.
#[derive(Clone, Debug)]
pub struct Search {
    pub(crate) params: Params,
    sent: Bytes,
    acked: Bytes,
    bins: Option<Bins>,
    /// The last shortfall computed.
    shortfall: Option<Fixed>,
    drain: Option<Drain>,
}

#[derive(Clone, Debug)]
struct Bins {
    kept: Kept,
    width: Span,
    first_rtt: Span,
    /// When the current bin ends.
    end: Instant,
    /// Number of bins completed.
    at: usize,
    /// Number of bits by which totals are shifted right.
    shift: u32,
    /// Running totals at the end of each bin, in a ring.
    acked: [Bytes; N],
    sent: [Bytes; N],
}

#[derive(Clone, Debug)]
struct Drain {
    seen: Detected,
    target: Bytes,
    /// Bytes acknowledged since the last packet was permitted.
    credit: Bytes,
}

impl Bins {
    fn new(p: &Params, now: Instant, rtt: Span, acked: Bytes, sent: Bytes) -> Self {
        let width = rtt.scale(p.window.0 as u64, Fixed::ONE as u64 * W as u64).max(Span(1));
        let before = |total| if p.bins == Kept::Scaled { Bytes::ZERO } else { total };
        let mut bins = Self {
            kept: p.bins,
            width,
            first_rtt: rtt,
            end: now + width,
            at: 0,
            shift: 0,
            acked: [before(acked); N],
            sent: [before(sent); N],
        };
        bins.put(acked, sent);
        bins
    }

    /// Stores the totals of the newest bin. With 16 bits, shifts all totals until these fit.
    fn put(&mut self, acked: Bytes, sent: Bytes) {
        if self.kept == Kept::Scaled {
            let bits = u64::BITS - (acked.0.max(sent.0) >> self.shift).leading_zeros();
            let more = bits.saturating_sub(16);
            self.shift += more;
            for total in self.acked.iter_mut().chain(&mut self.sent).filter(|_| more > 0) {
                total.0 >>= more;
            }
        }
        self.acked[self.at % N] = Bytes(acked.0 >> self.shift);
        self.sent[self.at % N] = Bytes(sent.0 >> self.shift);
    }

    /// Returns the number of bins that have ended by `now`, including the current one.
    fn passed(&self, now: Instant) -> u64 {
        if now <= self.end { 0 } else { now.since(self.end).0 / self.width.0 + 1 }
    }

    /// Completes `passed` bins, of which all but the last had no events.
    fn close(&mut self, passed: u64, acked: Bytes, sent: Bytes) {
        let (a, s) = (self.acked[self.at % N], self.sent[self.at % N]);
        // More than a whole ring of repeated bins makes no difference.
        for _ in 1..passed.min(2 * N as u64) {
            self.at += 1;
            (self.acked[self.at % N], self.sent[self.at % N]) = (a, s);
        }
        self.at += 1;
        self.put(acked, sent);
        self.end = self.end + self.width * passed;
    }

    /// Returns what was delivered in the window that ends now, in shifted units.
    fn delivered(&self) -> Bytes {
        self.acked[self.at % N] - self.acked[(self.at - W) % N]
    }

    /// Returns what was expected for it: the window that ended `rtt` ago, interpolated between bins, in shifted units.
    /// `None` if the bins do not reach that far back.
    fn expected(&self, rtt: Span, of: Expected) -> Option<Bytes> {
        // Bins before the window, and bins available for the look-back.
        let (lead, reach) = if self.kept == Kept::Scaled { (0, EXTRA - 1) } else { (1, EXTRA) };
        let back = usize::try_from(rtt.0 / self.width.0).ok().filter(|k| *k < reach)?;
        let prev = self.at.checked_sub(back).filter(|p| *p >= W + lead)?;
        let part = rtt.0 % self.width.0;
        let (part, whole) = match self.kept {
            Kept::Exact => (part, self.width.0),
            Kept::Scaled => (mul_div(part, 100, self.width.0), 100),
        };
        let ring = if of == Expected::Sent { &self.sent } else { &self.acked };
        // Before the first bin the index wraps to the end of the ring.
        let (old, older) = (ring[(prev - W) % N], ring[(prev - W + N - 1) % N]);
        let (new, newer) = (ring[(prev - 1) % N], ring[prev % N]);
        let window = new - old + (old - older).scale(part, whole) + (newer - new).scale(whole - part, whole);
        Some(if of == Expected::Sent { window } else { window * 2 })
    }

    /// Returns the bytes delivered in the newest `bins` bins.
    fn delivered_in(&self, bins: u64) -> Bytes {
        let n = (bins as usize).min(self.at).min(N - 1);
        let scaled = self.acked[self.at % N] - self.acked[(self.at - n) % N];
        Bytes(scaled.0 << self.shift)
    }

    /// Returns the bytes delivered in the last first RTT: what the path holds without a queue.
    fn delivered_in_first_rtt(&self) -> Bytes {
        self.delivered_in(self.first_rtt.0.div_ceil(self.width.0).min(W as u64))
    }
}

impl Search {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, sent: Bytes::ZERO, acked: Bytes::ZERO, bins: None, shortfall: None, drain: None }
    }

    /// Permits one packet per `drain_acks` acknowledged, until the window reaches the target.
    fn drain(&mut self, v: &View, ack: &Ack) -> Option<Step> {
        let d = self.drain.as_mut()?;
        let each = v.mss * u64::from(self.params.drain_acks);
        d.credit += ack.delivered;
        let add = d.credit.units(each);
        d.credit -= each * add;
        let cwnd = (v.inflight + v.mss * add).max(d.target).min(v.cwnd);
        let step = Step::set(cwnd);
        Some(if cwnd > d.target { step } else { step.and_exit(Exit::RateFlat).detected(d.seen) })
    }

    /// Returns the shortfall at the end of a bin, as a share of the expected bytes.
    fn shortfall(&mut self, now: Instant, rtt: Span, limit: Limit) -> Option<Fixed> {
        let (acked, sent) = (self.acked, self.sent);
        let p = &self.params;
        let bins = self.bins.get_or_insert_with(|| Bins::new(p, now, rtt, acked, sent));
        let passed = bins.passed(now);
        if passed == 0 {
            return None;
        }
        let held_back = p.app_limited && limit == Limit::Application;
        if held_back || passed > u64::from(p.missed) {
            let keep = held_back || (p.keep_width && passed <= W as u64);
            let first_rtt = if keep { bins.first_rtt } else { rtt };
            *bins = Bins::new(p, now, first_rtt, acked, sent);
            return None;
        }
        bins.close(passed, acked, sent);
        let back = if p.look_back == LookBack::Initial { bins.first_rtt } else { rtt };
        let expected = bins.expected(back, p.expected).filter(|e| e.0 > 0)?;
        Some(Fixed::ratio(expected - bins.delivered(), expected))
    }
}

impl Startup for Search {
    fn needs_on_sent(&self) -> bool {
        true
    }

    fn on_sent(&mut self, _: &View, s: &Sent) {
        self.sent += s.bytes;
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        self.acked += ack.delivered;
        if let Some(step) = self.drain(v, ack) {
            return step;
        }
        let grow = Step::grow(v.slow_start_growth(ack));
        let Some(shortfall) = ack.rtt.and_then(|rtt| self.shortfall(v.now, rtt, ack.limit)) else {
            return grow;
        };
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
            Some(bins) if self.params.rollback => {
                let overshoot = bins.delivered_in((bins.first_rtt * 2).0 / bins.width.0);
                Step::set((v.cwnd - overshoot).max(v.iw).min(v.cwnd)).and_exit(Exit::RateFlat)
            }
            _ => Step::exit(Exit::RateFlat),
        }
    }

    fn on_congestion(&mut self, _: &View, c: &Congestion) -> Step {
        match &self.drain {
            // The exit was already decided, and the lost packets were sent before that.
            Some(d) => Step::exit(Exit::RateFlat).detected(d.seen),
            None => Step::exit(c.signal.into()),
        }
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        // Bins that span an idle period do not measure the path.
        Resume::FromStart
    }

    fn phase(&self) -> &'static str {
        if self.drain.is_some() { "drain" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("shortfall", self.shortfall.map_or(f64::NAN, Fixed::as_f64));
        put("bin", self.bins.as_ref().map_or(f64::NAN, |b| b.at as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bins filled with these amounts, one bin per RTT.
    fn bins(each: &[u64]) -> Bins {
        kept(Kept::Exact, each)
    }

    fn kept(bins: Kept, each: &[u64]) -> Bins {
        let p = Params { window: Fixed::milli(10_000), bins, ..Params::thesis_2_0() };
        let mut b = Bins::new(&p, Instant::ZERO, Span::millis(1), Bytes::ZERO, Bytes::ZERO);
        let mut total = Bytes::ZERO;
        for (i, n) in each.iter().enumerate() {
            total += Bytes(*n);
            assert_eq!(b.passed(Instant(1_000_000 * (i as u64 + 1) + 1)), 1);
            b.close(1, total, total);
        }
        b
    }

    #[test]
    fn silent_bins_repeat_the_last() {
        let mut b = bins(&[5; 20]);
        let before = b.at;
        assert_eq!(b.passed(Instant(23_500_000)), 3);
        b.close(3, Bytes(130), Bytes(130));
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

    /// Section 1.4: no shortfall while delivery doubles, half (the plateau 1 - 1/g with g = 2) while it is constant.
    #[test]
    fn doubling_is_not_short_and_a_plateau_is_half() {
        let doubling: std::vec::Vec<u64> = (0..14).map(|n| 1 << n).collect();
        let b = bins(&doubling);
        assert_eq!(b.expected(Span::millis(1), Expected::TwiceDelivered).unwrap(), b.delivered());
        let flat = bins(&[7; 30]);
        let expected = flat.expected(Span::millis(1), Expected::TwiceDelivered).unwrap();
        assert_eq!(Fixed::ratio(expected - flat.delivered(), expected), Fixed::milli(500));
    }

    /// 16 bits hold at most 65,535: the next byte shifts all totals, and bytes read back are multiplied by two.
    #[test]
    fn scaled_bins_are_shifted_together() {
        let mut b = kept(Kept::Scaled, &[1000; 20]);
        b.close(1, Bytes(65_535), Bytes(65_535));
        assert_eq!((b.shift, b.acked[20], b.acked[21]), (0, Bytes(20_000), Bytes(65_535)));
        b.close(1, Bytes(65_536), Bytes(65_536));
        assert_eq!((b.shift, b.acked[20], b.acked[22]), (1, Bytes(10_000), Bytes(32_768)));
        assert_eq!(b.delivered_in(2), Bytes(45_536));
        b.close(1, Bytes(43_000_000_000), Bytes(43_000_000_000));
        assert_eq!((b.shift, b.acked[20]), (20, Bytes(0)));
        assert_eq!(b.acked[23], Bytes(43_000_000_000 >> 20));
    }

    /// With 25 bins a look-back of 14 bins is too long, and totals before the first bin count as zero.
    #[test]
    fn scaled_bins_reach_one_bin_less_far_back_and_to_the_first() {
        let b = kept(Kept::Scaled, &[10; 40]);
        let rtt = |bins: u64| Span(1_000_000 * bins);
        assert_eq!(b.expected(rtt(EXTRA as u64 - 2), Expected::Sent), Some(Bytes(100)));
        assert_eq!(b.expected(rtt(EXTRA as u64 - 1), Expected::Sent), None);
        let first = |bins| kept(bins, &[10; 11]).expected(Span(1_500_000), Expected::Sent);
        assert_eq!((first(Kept::Exact), first(Kept::Scaled)), (None, Some(Bytes(95))));
        // Whole percent: 0.999 of a bin becomes 99.
        let each: std::vec::Vec<u64> = (1..=13).map(|n| 100 * n).collect();
        assert_eq!(kept(Kept::Scaled, &each).expected(Span(1_999_000), Expected::Sent), Some(Bytes(6510)));
    }

    #[test]
    fn ratios_hold_beyond_32_bits() {
        assert_eq!(Fixed::ratio(Bytes(43_000_000_000), Bytes(86_000_000_000)), Fixed::milli(500));
    }
}
