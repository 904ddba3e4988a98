//! CUBACK, draft-kazuho-ccwg-cuback (August 2026): CUBIC as a function of the data acknowledged since the
//! reduction, and not of time, so that there is no clock to stop while the application limits the sender. The
//! window grows by a segment when D = A(w + 1) - A(w) has been acknowledged, at least two segments, where A
//! is the smaller of
//!
//! | | |
//! |---|---|
//! | cubic | `prior` per RTT, for the time of RFC 9438's curve: cbrt((`W_max` - `epoch`) / C) + cbrt((w - `W_max`) / C) |
//! | Reno | (w - `epoch`) (w + `epoch` - 1) / (2 alpha), with alpha = 1 above `prior` |
//!
//! `prior` is the window before the reduction, `epoch` that after it. After an exit without a reduction all
//! are the window.
//!
//! The draft announces test vectors; at the commit read (059dc9c1) it has none.
//!
//! Departs from the draft:
//! - times are in whole nanoseconds and amounts in whole bytes, rounded down; what exceeds D is carried, as
//!   there;
//! - an undo of a spurious reduction restores the window and not these parameters, as for `cubic`;
//! - where a startup says which window to look for (`rapid-start`), it is `W_max` and `prior`, and the rate
//!   is the window per RTT.

use super::{Adjust, Avoidance};
use crate::param::params;
use crate::step::Exit;
use crate::units::{Bytes, Fixed, Span, cube_root, mul_div};
use crate::view::{Ack, Congestion, Signal, View};

params! {
    /// The parameters of CUBACK, with their defaults.
    pub struct Params {
        /// Factor applied to the window on congestion (RFC 9438 §4.6: 0.7).
        beta: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.7", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// Reduce `W_max` further if it is below the previous one (RFC 9438 §4.7).
        fast_convergence: bool = true, "on or off", |_v| true;
    }
}

/// 1 / C = 1 / 0.4, in cubed nanoseconds per cubed second: a segment takes the cube root of this.
const CUBED_NS: u128 = 2_500_000_000_000_000_000_000_000_000;
/// Segments by which an ACK makes the window grow one by one.
const STEPS: u64 = 64;
/// A round-trip time where there is none.
const NO_RTT: Span = Span::millis(1);

/// What is fixed when an avoidance begins; windows in segments.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Epoch {
    w_max: u64,
    prior: u64,
    begin: u64,
    /// The time from the reduced window to the plateau.
    rises: Span,
    /// The rate of the bottleneck: bytes per time.
    rate: (Bytes, Span),
    mss: Bytes,
}

/// Congestion avoidance by CUBACK: CUBIC that lowers its window as it raised it.
#[derive(Clone, Debug)]
pub struct Cuback {
    pub(crate) params: Params,
    /// The factor for a mark after the startup.
    beta_ecn: Fixed,
    /// The window before a reduction that has not been entered yet, in bytes, and the RTT at that time.
    reduced: Option<(Bytes, Span)>,
    /// `W_max` in segments; 0 if there is none.
    w_max: u64,
    epoch: Epoch,
    /// Bytes acknowledged towards the next segment.
    pending: Bytes,
    /// The window in segments for which `due` is, and the bytes that its next segment takes.
    due: (u64, Bytes),
    /// A of the segment after that.
    next: Bytes,
}

/// Returns the integer cube root of a number below 2^126, rounded down: 20 bits of it by digits, the rest by
/// Newton's method.
fn wide_cube_root(x: u128) -> u64 {
    let excess = (u128::BITS - x.leading_zeros()).saturating_sub(63).div_ceil(3);
    let mut r = u128::from(cube_root((x >> (3 * excess)) as u64)) << excess;
    if excess > 0 {
        for _ in 0..2 {
            r = (2 * r + x / (r * r)) / 3;
        }
        while r * r * r > x {
            r -= 1;
        }
    }
    r as u64
}

/// Returns the time in which CUBIC's curve moves this many segments to or from its plateau.
pub(super) fn curve(segments: u64) -> Span {
    // 2^32 segments are beyond every window.
    Span(wide_cube_root(u128::from(segments.min(1 << 32)) * CUBED_NS))
}

impl Epoch {
    /// A of the draft: bytes to be acknowledged until the window is `w` segments.
    fn acknowledged(&self, w: u64, beta: Fixed) -> Bytes {
        self.cubic(w).min(self.reno(w, beta))
    }

    fn cubic(&self, w: u64) -> Bytes {
        let rises = self.rises;
        let time =
            if w >= self.w_max { rises + curve(w - self.w_max) } else { rises - curve(self.w_max - w) };
        let (bytes, per) = self.rate;
        Bytes(mul_div(bytes.0, time.0, per.0))
    }

    fn reno(&self, w: u64, beta: Fixed) -> Bytes {
        // The sum of the windows from one to the other, in halves of a segment: below 2^128.
        let sum = |from: u64, to: u64| {
            u128::from(to.saturating_sub(from)) * u128::from(to.saturating_add(from).saturating_sub(1))
        };
        let (one, beta) = (Fixed::ONE as u128, beta.0 as u128);
        let turn = w.min(self.prior).max(self.begin);
        // 1 / alpha = (1 + beta) / (3 (1 - beta))
        let slow = sum(self.begin, turn).saturating_mul(one + beta) / (3 * (one - beta));
        let halves = slow.saturating_add(sum(turn, w)).saturating_mul(u128::from(self.mss.0));
        Bytes(u64::try_from(halves / 2).unwrap_or(u64::MAX))
    }
}

impl Cuback {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self::with_beta_ecn(params, params.beta)
    }

    /// An instance with another factor for a mark in congestion avoidance.
    pub(super) fn with_beta_ecn(params: Params, beta_ecn: Fixed) -> Self {
        Self {
            params,
            beta_ecn,
            reduced: None,
            w_max: 0,
            epoch: Epoch::default(),
            pending: Bytes::ZERO,
            due: (0, Bytes::ZERO),
            next: Bytes::ZERO,
        }
    }

    /// The segments that the pending bytes are worth beyond `w`, and how many bytes these take: the sum of D,
    /// where the least of two segments is taken of all together. For an ACK of very many segments, so that
    /// its cost does not grow with them.
    fn leap(&self, w: u64) -> (u64, Bytes) {
        let (two, here) = (self.epoch.mss * 2, self.epoch.acknowledged(w, self.params.beta));
        let cost = |n: u64| {
            let a = self.epoch.acknowledged(w.saturating_add(n), self.params.beta);
            (a - here).max(two * n)
        };
        let (mut low, mut high) = (0, self.pending.units(two));
        while low < high {
            let mid = low + (high - low).div_ceil(2);
            if cost(mid) <= self.pending { low = mid } else { high = mid - 1 }
        }
        (low, cost(low))
    }

    /// D of the draft, for a window of `w` segments.
    fn due(&mut self, w: u64) -> Bytes {
        if self.due.0 != w {
            let a = |w| self.epoch.acknowledged(w, self.params.beta);
            let follows = self.due.0 > 0 && self.due.0.checked_add(1) == Some(w);
            let here = if follows { self.next } else { a(w) };
            self.next = a(w.saturating_add(1));
            self.due = (w, (self.next - here).max(self.epoch.mss * 2));
        }
        self.due.1
    }
}

impl Avoidance for Cuback {
    fn enter(&mut self, v: &View, how: Exit) {
        let begin = v.cwnd.units(v.mss).max(1);
        let rtt = v.srtt.unwrap_or(NO_RTT).max(Span(1));
        let (prior, rtt) = self.reduced.take().filter(|_| how != Exit::Timeout).unwrap_or((v.cwnd, rtt));
        let prior_segments = prior.units(v.mss).max(1);
        // Without a reduction W_max is the window.
        let w_max = if prior > v.cwnd { self.w_max.max(begin) } else { begin };
        self.w_max = w_max;
        self.epoch = Epoch {
            w_max,
            prior: prior_segments.max(begin),
            begin,
            rises: curve(w_max - begin),
            rate: (prior, rtt),
            mss: v.mss,
        };
        self.pending = Bytes::ZERO;
        self.due.0 = 0;
    }

    fn look_for(&mut self, v: &View, window: Bytes) {
        self.w_max = window.units(v.mss).max(self.epoch.begin);
        (self.epoch.w_max, self.epoch.prior) = (self.w_max, self.w_max);
        self.epoch.rises = curve(self.w_max - self.epoch.begin);
        self.due.0 = 0;
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust {
        self.pending += ack.bytes;
        let begin = v.cwnd.units(v.mss).max(1);
        let mut w = begin;
        while w - begin < STEPS && w < u64::MAX {
            let due = self.due(w);
            if self.pending < due {
                break;
            }
            self.pending -= due;
            w += 1;
        }
        if w - begin == STEPS {
            let (grown, cost) = self.leap(w);
            self.pending -= cost;
            w = w.saturating_add(grown);
        }
        if w == begin { Adjust::Keep } else { Adjust::Grow(v.mss * (w - begin)) }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        let avoids = self.epoch.begin > 0;
        let beta = if avoids && c.signal == Signal::Ecn { self.beta_ecn } else { self.params.beta };
        let (one, beta) = (Fixed::ONE as u64, beta.0 as u64);
        let cwnd = v.cwnd.units(v.mss).max(1);
        let converges = self.params.fast_convergence && cwnd < self.w_max;
        self.w_max = if converges { mul_div(cwnd, one + beta, 2 * one) } else { cwnd };
        self.reduced = Some((v.cwnd, v.srtt.unwrap_or(NO_RTT).max(Span(1))));
        v.cwnd.scale(beta, one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host may report any window.
    #[test]
    fn sums_of_windows_do_not_overflow() {
        let epoch = Epoch { prior: u64::MAX, begin: 1, mss: Bytes(1), ..Epoch::default() };
        for w in [u64::MAX / 2, u64::MAX] {
            assert_eq!(epoch.reno(w, Params::default().beta), Bytes(u64::MAX));
        }
    }

    #[test]
    fn wide_cube_roots_are_exact() {
        for r in [1_u128, 2, 99, 2_097_151, 2_097_152, 1 << 30, (1 << 41) + 12_345, (1 << 42) - 1] {
            let cube = r * r * r;
            assert_eq!(u128::from(wide_cube_root(cube)), r);
            assert_eq!(u128::from(wide_cube_root(cube - 1)), r - 1);
            assert_eq!(u128::from(wide_cube_root(cube + 1)), r);
        }
    }
}
