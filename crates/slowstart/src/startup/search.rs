//! SEARCH, from the thesis (Ataei Kachooei 2024) and draft-chung-ccwg-search-09: ends slow start when the
//! data delivered in a window of time falls short of what was sent (or delivered) in the same window one
//! round trip earlier.
//!
//! All versions use the same structure. Bins contain running totals, so that the sum over a window is a
//! difference of two bins. A bin without events repeats the one before it.
//!
//! Departs from the draft:
//! - interpolates backwards between bins, because the forward step of the draft reads a bin that is not
//!   complete (its authors have confirmed this error to implementers);
//! - resets after `missed` bins without an ACK, which is optional in the draft.
//!
//! Reconstructed because the thesis contradicts itself (1.0): the shortfall is divided by what was sent
//! (section 4.2); `share_of=delivered` divides it by what was delivered, as the text of section 4.3 says. A
//! share d of what was delivered is d / (1 + d) of what was sent: 0.35 there is 0.259 here, the draft's 0.26.
//!
//! 3.0, 3.1 and 4.0 follow their authors' Linux code, including the arithmetic (`bins=scaled`):
//! - totals have 16 bits; when one no longer fits, all are shifted right;
//! - the look-back is at most two bins less than the extra bins; its fraction of a bin is rounded down to
//!   whole percent;
//! - everything before the first bin counts as zero. After a start in the middle of a connection, all data of
//!   its past is in the first bin and may end the startup at once.
//!
//! Departs from them: the roll-back shifts totals back to bytes, which the modules of 3.x omit; whether the
//! application limits the sender is evaluated for the data acknowledged, not for the time of the ACK; 4.0
//! computes with unsigned numbers what is negative while more is delivered than was sent one round trip ago,
//! here the shortfall is then zero.
//!
//! 3.2 is 2.0 without interpolation (`interpolation=off`: its code divides before it multiplies, so the
//! fraction is zero) and with a look-back of up to 15 bins. Omitted: its rule that shortens the window when
//! the look-back is longer, because the bin that it reads first has by then been overwritten in its ring of
//! 25.
//!
//! Departs from the thesis' printed Algorithm 1, which cannot be executed as printed:
//! - the width of a bin is set at the first RTT sample, not before one exists (line 9);
//! - the bin just completed is not erased (lines 25 to 27), indices wrap (lines 35, 36), there is no division
//!   by zero delivered bytes (line 17), and the look-back ends one bin before the ring is overwritten (line
//!   13).

use super::Startup;
use super::skip::Skip;
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
    /// What the shortfall is a share of.
    pub enum ShareOf {
        /// Of what was expected.
        Expected = "expected",
        /// Of what was delivered.
        Delivered = "delivered",
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
    /// How the look-back is interpolated between bins.
    pub enum Interpolation {
        /// By the fraction of the RTT that exceeds whole bins.
        On = "on",
        /// Rounded down to whole bins.
        Off = "off",
    }
}

choice! {
    /// How totals are stored.
    pub enum Kept {
        /// In bytes, in 32 bits with a common shift: exact up to totals of 4 GiB.
        Exact = "exact",
        /// In 16 bits with a common shift, as in the Linux code of 3.0, 3.1 and 4.0.
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
        /// What the shortfall is a share of.
        share_of: ShareOf = ShareOf::Expected, "one of expected, delivered", |_v| true;
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
        /// Which ACKs are not judged.
        skip: Skip = Skip::Off, "one of off, limited, paced", |_v| true;
        /// How totals are stored.
        bins: Kept = Kept::Exact, "one of exact, scaled", |_v| true;
        /// Bins beyond a window, which limit the look-back.
        extra: u32 = 15, "a number of bins from 2 to 40", |v| (2..=MAX_EXTRA as u32).contains(&v);
        /// How the look-back is interpolated between bins.
        interpolation: Interpolation = Interpolation::On, "on or off", |_v| true;
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

    /// Returns the parameters of SEARCH 3.0 with 16-bit bins, which is also the patch "TCP: SEARCH a new slow
    /// start algorithm to replace Hystart in TCP Cubic", posted to netdev in January 2025:
    /// `search_missed_bins_threshold` is 2, and there is no rule for application-limited senders.
    pub fn linux_3_0() -> Self {
        Self { missed: 2, bins: Kept::Scaled, ..Self::thesis_2_0() }
    }

    /// Returns the parameters of SEARCH 3.1 with the reset that its text describes (`search_alpha` = 2):
    /// twice the number of whole bins in the first RTT may pass without an ACK.
    pub fn linux_3_1() -> Self {
        Self { missed: 4, keep_width: true, app_limited: true, ..Self::linux_3_0() }
    }

    /// Returns the parameters of SEARCH 3.1 as its Linux module ships: `search_alpha` is 65,535, so that
    /// missed bins never reset it.
    pub fn linux_3_1_shipped() -> Self {
        Self { missed: u32::MAX, ..Self::linux_3_1() }
    }

    /// Returns the parameters of the Linux module of SEARCH 3.2.
    pub fn linux_3_2() -> Self {
        Self { extra: 16, interpolation: Interpolation::Off, ..Self::thesis_2_0() }
    }

    /// Returns the parameters of its authors' `tcp_cubic_search4.0.c`: the rule of draft-09 with the
    /// threshold of 2.0, 40 extra bins and no resets.
    pub fn linux_4_0() -> Self {
        Self {
            threshold: Fixed::milli(350),
            missed: u32::MAX,
            bins: Kept::Scaled,
            extra: 40,
            ..Self::default()
        }
    }

    /// Returns the parameters of neqo: draft-09 without the drain.
    pub fn neqo() -> Self {
        Self { drain: false, ..Self::default() }
    }
}

/// Bins per window.
const W: usize = 10;
/// The largest number of extra bins.
const MAX_EXTRA: usize = 40;
/// Bins in the ring of the look-back. The oldest one read is a look-back of `MAX_EXTRA` - 1 bins, a window
/// and one bin for the interpolation before the newest.
const N: usize = W + MAX_EXTRA + 1;
/// Bins in the ring of what was delivered: a window has that many ends.
const M: usize = W + 1;

/// The startup SEARCH, one instance a connection.
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
    of: Expected,
    extra: usize,
    interpolates: bool,
    width: Span,
    first_rtt: Span,
    /// When the current bin ends.
    end: Instant,
    /// Number of bins completed.
    at: usize,
    /// Number of bits by which totals are shifted right.
    shift: u32,
    /// Running totals at the end of each bin, shifted, in rings: of bytes delivered, and of those that the
    /// look-back compares with.
    acked: [u32; M],
    expected: [u32; N],
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
        let mut bins = Self {
            kept: p.bins,
            of: p.expected,
            extra: p.extra as usize,
            interpolates: p.interpolation == Interpolation::On,
            width,
            first_rtt: rtt,
            end: now + width,
            at: 0,
            shift: 0,
            acked: [0; M],
            expected: [0; N],
        };
        bins.put(acked, sent);
        if p.bins == Kept::Exact {
            bins.acked = [bins.acked[0]; M];
            bins.expected = [bins.expected[0]; N];
        }
        bins
    }

    /// Stores the totals of the newest bin; shifts all totals until these fit.
    fn put(&mut self, acked: Bytes, sent: Bytes) {
        let expected = if self.of == Expected::Sent { sent } else { acked };
        let most: u32 = if self.kept == Kept::Scaled { 16 } else { 32 };
        let bits = u64::BITS - (acked.0.max(expected.0) >> self.shift).leading_zeros();
        let more = bits.saturating_sub(most);
        if more > 0 {
            self.shift += more;
            for total in self.acked.iter_mut().chain(&mut self.expected) {
                *total = total.checked_shr(more).unwrap_or(0);
            }
        }
        self.acked[self.at % M] = (acked.0 >> self.shift) as u32;
        self.expected[self.at % N] = (expected.0 >> self.shift) as u32;
    }

    /// Returns the number of bins that have ended by `now`, including the current one.
    fn passed(&self, now: Instant) -> u64 {
        if now <= self.end { 0 } else { now.since(self.end).0 / self.width.0 + 1 }
    }

    /// Completes `passed` bins, of which all but the last had no events.
    fn close(&mut self, passed: u64, acked: Bytes, sent: Bytes) {
        let (a, e) = (self.acked[self.at % M], self.expected[self.at % N]);
        // More than a whole ring of repeated bins makes no difference.
        for _ in 1..passed.min(2 * N as u64) {
            self.at += 1;
            (self.acked[self.at % M], self.expected[self.at % N]) = (a, e);
        }
        self.at += 1;
        self.put(acked, sent);
        self.end = self.end + self.width * passed;
    }

    /// Returns what was delivered in the window that ends now, in shifted units.
    fn delivered(&self) -> Bytes {
        Bytes(self.acked[self.at % M].into()) - Bytes(self.acked[(self.at - W) % M].into())
    }

    /// Returns what was expected for it: the window that ended `rtt` ago, interpolated between bins, in
    /// shifted units. `None` if the bins do not reach that far back.
    fn expected(&self, rtt: Span) -> Option<Bytes> {
        // Bins before the window, and bins available for the look-back.
        let (lead, reach) = if self.kept == Kept::Scaled { (0, self.extra - 1) } else { (1, self.extra) };
        let back = usize::try_from(rtt.0 / self.width.0).ok().filter(|k| *k < reach)?;
        let prev = self.at.checked_sub(back).filter(|p| *p >= W + lead)?;
        let part = rtt.0 % self.width.0;
        let (part, whole) = match self.kept {
            _ if !self.interpolates => (0, 1),
            Kept::Exact => (part, self.width.0),
            Kept::Scaled => (mul_div(part, 100, self.width.0), 100),
        };
        let total = |i: usize| Bytes(self.expected[i % N].into());
        // Before the first bin the index wraps to the end of the ring.
        let (old, older) = (total(prev - W), total(prev - W + N - 1));
        let (new, newer) = (total(prev - 1), total(prev));
        let window = new - old + (old - older).scale(part, whole) + (newer - new).scale(whole - part, whole);
        Some(if self.of == Expected::Sent { window } else { window * 2 })
    }

    /// Returns the bytes delivered in the newest `bins` bins, as far back as the ring that holds them
    /// reaches.
    fn delivered_in(&self, bins: u64) -> Bytes {
        let back = |most: usize| self.at - (bins as usize).min(self.at).min(most);
        let (new, old) = if self.of == Expected::Sent {
            (self.acked[self.at % M], self.acked[back(M - 1) % M])
        } else {
            (self.expected[self.at % N], self.expected[back(N - 1) % N])
        };
        Bytes(u64::from(new.saturating_sub(old)) << self.shift)
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
        let expected = bins.expected(back).filter(|e| e.0 > 0)?;
        let delivered = bins.delivered();
        // Nothing delivered is short by any share.
        let whole = if p.share_of == ShareOf::Delivered { delivered.max(Bytes(1)) } else { expected };
        Some(Fixed::ratio(expected - delivered, whole))
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
        if self.params.skip.skips(ack.limit) {
            return Step::HOLD;
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

    const EXTRA: u64 = 15;

    /// Returns bins filled with these amounts, one bin per RTT.
    fn bins(each: &[u64]) -> Bins {
        kept(Kept::Exact, Expected::Sent, each)
    }

    fn kept(bins: Kept, of: Expected, each: &[u64]) -> Bins {
        let p = Params { window: Fixed::milli(10_000), bins, expected: of, ..Params::thesis_2_0() };
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
        assert_eq!(b.acked[(before + 2) % M], 100);
        assert_eq!(b.acked[b.at % M], 130);
    }

    #[test]
    fn the_look_back_stops_before_the_ring_overwrites_itself() {
        let b = bins(&[1; 60]);
        let rtt = |bins: u64| Span(1_000_000 * bins);
        assert_eq!(b.expected(rtt(EXTRA - 1)), Some(Bytes(10)));
        assert_eq!(b.expected(rtt(EXTRA)), None);
        assert_eq!(b.expected(Span(rtt(EXTRA - 1).0 + 999_999)), Some(Bytes(9)));
    }

    #[test]
    fn history_must_reach_a_window_and_a_bin_back() {
        assert_eq!(bins(&[1; 11]).expected(Span::millis(1)), None);
        assert_eq!(bins(&[1; 12]).expected(Span::millis(1)), Some(Bytes(10)));
    }

    /// No shortfall while delivery doubles, half (the plateau 1 - 1/g with g = 2) while it is
    /// constant.
    #[test]
    fn doubling_is_not_short_and_a_plateau_is_half() {
        let doubling: std::vec::Vec<u64> = (0..14).map(|n| 1 << n).collect();
        let b = kept(Kept::Exact, Expected::TwiceDelivered, &doubling);
        assert_eq!(b.expected(Span::millis(1)).unwrap(), b.delivered());
        let flat = kept(Kept::Exact, Expected::TwiceDelivered, &[7; 30]);
        let expected = flat.expected(Span::millis(1)).unwrap();
        assert_eq!(Fixed::ratio(expected - flat.delivered(), expected), Fixed::milli(500));
    }

    /// 16 bits hold at most 65,535: the next byte shifts all totals, and bytes read back are multiplied by
    /// two.
    #[test]
    fn scaled_bins_are_shifted_together() {
        let mut b = kept(Kept::Scaled, Expected::Sent, &[1000; 20]);
        b.close(1, Bytes(65_535), Bytes(65_535));
        assert_eq!((b.shift, b.expected[20], b.expected[21]), (0, 20_000, 65_535));
        b.close(1, Bytes(65_536), Bytes(65_536));
        assert_eq!((b.shift, b.expected[20], b.expected[22]), (1, 10_000, 32_768));
        assert_eq!(b.delivered_in(2), Bytes(45_536));
        b.close(1, Bytes(43_000_000_000), Bytes(43_000_000_000));
        assert_eq!((b.shift, b.expected[20]), (20, 0));
        assert_eq!(b.expected[23], 43_000_000_000_u64.wrapping_shr(20) as u32);
    }

    /// With 25 bins a look-back of 14 bins is too long, and totals before the first bin count as zero.
    #[test]
    fn scaled_bins_reach_one_bin_less_far_back_and_to_the_first() {
        let b = kept(Kept::Scaled, Expected::Sent, &[10; 40]);
        let rtt = |bins: u64| Span(1_000_000 * bins);
        assert_eq!(b.expected(rtt(EXTRA - 2)), Some(Bytes(100)));
        assert_eq!(b.expected(rtt(EXTRA - 1)), None);
        let first = |bins| kept(bins, Expected::Sent, &[10; 11]).expected(Span(1_500_000));
        assert_eq!((first(Kept::Exact), first(Kept::Scaled)), (None, Some(Bytes(95))));
        // Whole percent: 0.999 of a bin becomes 99.
        let each: std::vec::Vec<u64> = (1..=13).map(|n| 100 * n).collect();
        assert_eq!(kept(Kept::Scaled, Expected::Sent, &each).expected(Span(1_999_000)), Some(Bytes(6510)));
    }

    /// Exact totals have 32 bits: beyond 4 GiB they are shifted, and what is read back is right to the bits
    /// lost.
    #[test]
    fn exact_bins_are_shifted_beyond_4_gib() {
        let mut b = bins(&[1000; 20]);
        b.close(1, Bytes(u64::from(u32::MAX)), Bytes(u64::from(u32::MAX)));
        assert_eq!((b.shift, b.acked[b.at % M]), (0, u32::MAX));
        b.close(1, Bytes(43_000_000_000), Bytes(43_000_000_000));
        assert_eq!(b.shift, 4);
        assert!(b.delivered_in(1).0.abs_diff(43_000_000_000 - u64::from(u32::MAX)) <= 16);
    }

    /// 4.0 looks back up to 38 bins, where 3.1 with 15 extra bins looks back 13.
    #[test]
    fn extra_bins_limit_the_look_back() {
        let p = Params { window: Fixed::milli(10_000), ..Params::linux_4_0() };
        let mut b = Bins::new(&p, Instant::ZERO, Span::millis(1), Bytes::ZERO, Bytes::ZERO);
        for i in 1..=90 {
            b.close(1, Bytes(10 * i), Bytes(20 * i));
        }
        let expected = |bins| b.expected(Span::millis(bins));
        assert_eq!((expected(38), expected(39)), (Some(Bytes(200)), None));
        assert_eq!(b.delivered(), Bytes(100));
    }

    /// Without interpolation the look-back is whole bins.
    #[test]
    fn a_look_back_without_interpolation_is_whole_bins() {
        let each: std::vec::Vec<u64> = (1..=30).collect();
        let mut b = bins(&each);
        let whole = b.expected(Span::millis(3));
        assert!(b.expected(Span(3_900_000)) < whole);
        b.interpolates = false;
        assert_eq!(b.expected(Span(3_900_000)), whole);
    }

    #[test]
    fn ratios_hold_beyond_32_bits() {
        assert_eq!(Fixed::ratio(Bytes(43_000_000_000), Bytes(86_000_000_000)), Fixed::milli(500));
    }
}
