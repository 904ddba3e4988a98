//! CUBIC, RFC 9438, in the arithmetic of Linux `tcp_cubic.c` (whole segments, time in units of 1/1024 s).
//!
//! With `cubic-abe`, a mark in congestion avoidance reduces the window by less (RFC 8511).
//!
//! `HyStart` is a startup and not part of this file.
//!
//! Departs from the RFC, as Linux does:
//! - without a `W_max` (after an exit without loss) the window grows by at least 5 % per round trip;
//! - the curve is evaluated at most once per millisecond, and at least every 1/32 s;
//! - the Reno-friendly estimate uses `8 (1024 + beta) / 3 (1024 - beta)`, rounded, and its growth never
//!   becomes faster.
//!
//! Departs from Linux: the RTT by which the curve looks ahead is the least of the connection, with that of the
//! handshake, whose packets are small. `delay_min` has data only, and is longer by the time of two packets on the link.

use super::{Adjust, Avoidance};
use crate::param::params;
use crate::step::Exit;
use crate::units::{Bytes, Fixed, Instant, Span, cube_root, mul_div};
use crate::view::{Ack, Congestion, Signal, View};

params! {
    /// The parameters of CUBIC, with their defaults.
    pub struct Params {
        /// Factor applied to the window on congestion (RFC 9438 §4.6: 0.7).
        beta: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.7", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// The factor when congestion ends a startup. Linux uses 0.7, quicly 0.5.
        startup_beta: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.7", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// The factor for a mark in congestion avoidance (RFC 8511 §3.1: 0.85; without it as for a loss).
        beta_ecn: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.85", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// Reduce `W_max` further if it is below the previous one (RFC 9438 §4.7).
        fast_convergence: bool = true, "on or off", |_v| true;
    }
}

impl Params {
    /// Those of RFC 8511.
    pub fn abe() -> Self {
        Self { beta_ecn: Fixed::milli(850), ..Self::default() }
    }
}

/// C of RFC 9438 §5, 0.4, in units of 1/1024 as in Linux (41 * 10).
const C_1024: u64 = 410;
/// 2^40 / C: converts segments to cubed 1/1024 s.
const CUBE_FACTOR: u64 = (1 << 40) / C_1024;

/// CUBIC's congestion avoidance, one instance a connection.
#[derive(Clone, Debug)]
pub struct Cubic {
    pub(crate) params: Params,
    /// Acknowledged windows per segment of Reno's growth, in eighths.
    reno_scale: u64,
    /// The startup has not ended yet.
    fresh: bool,
    /// `W_max` in segments; 0 if there is none.
    last_max: u64,
    /// The plateau of the current curve, in segments.
    origin: u64,
    /// K, in units of 1/1024 s.
    k: u64,
    epoch: Option<Instant>,
    last_update: Instant,
    last_cwnd: u64,
    /// Segments to be acknowledged for one segment of growth.
    cnt: u64,
    /// Segments acknowledged since the last increase.
    credit: Bytes,
    /// Reno's window estimate in segments, and the segments acknowledged for it.
    reno_cwnd: u64,
    reno_acks: u64,
    /// Bytes acknowledged that do not make up a segment yet.
    odd: Bytes,
    /// The last window in bytes, and in segments.
    seen: (Bytes, u64),
}

impl Cubic {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        let beta = (params.beta.0 as u64 * 1024) / Fixed::ONE as u64;
        Self {
            params,
            reno_scale: 8 * (1024 + beta) / 3 / (1024 - beta),
            fresh: true,
            last_max: 0,
            origin: 0,
            k: 0,
            epoch: None,
            last_update: Instant::ZERO,
            last_cwnd: 0,
            cnt: 1,
            credit: Bytes::ZERO,
            reno_cwnd: 0,
            reno_acks: 0,
            odd: Bytes::ZERO,
            seen: (Bytes::ZERO, 1),
        }
    }

    /// Forgets `W_max`, so that the next curve looks for one.
    pub(super) fn forget(&mut self) {
        self.last_max = 0;
    }

    /// `bictcp_update`: computes how many segments must be acknowledged for one segment of growth.
    fn update(&mut self, v: &View, cwnd: u64, acked: u64) {
        const MS: Span = Span::millis(1);
        self.reno_acks = self.reno_acks.saturating_add(acked);
        let since = v.now.since(self.last_update);
        if self.last_cwnd == cwnd && self.epoch.is_some() && since <= Span(1_000_000_000 / 32) {
            return;
        }
        if self.epoch.is_none() || since >= MS {
            self.last_cwnd = cwnd;
            self.last_update = v.now;
            let epoch = *self.epoch.get_or_insert_with(|| {
                self.reno_acks = acked;
                self.reno_cwnd = cwnd;
                if self.last_max <= cwnd {
                    (self.k, self.origin) = (0, cwnd);
                } else {
                    self.k = cube_root(CUBE_FACTOR.saturating_mul(self.last_max - cwnd));
                    self.origin = self.last_max;
                }
                v.now
            });
            // The window one round trip ahead (RFC 9438 §4.2).
            let ahead = v.now.since(epoch) + v.min_rtt.unwrap_or_default();
            let t = ahead.scale(1024, 1_000_000_000).0;
            // 2^39 of 1/1024 s are 17 years, whose cube fits.
            let off = t.abs_diff(self.k).min(1 << 39);
            let cube = u128::from(C_1024) * u128::from(off) * u128::from(off) * u128::from(off);
            let delta = u64::try_from(cube >> 40).unwrap_or(u64::MAX);
            let target = if t < self.k {
                self.origin.saturating_sub(delta)
            } else {
                self.origin.saturating_add(delta)
            };
            self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
            // Without a W_max: at least 5 % per round trip.
            if self.last_max == 0 {
                self.cnt = self.cnt.min(20);
            }
        }
        // The Reno-friendly region, RFC 9438 §4.3.
        let each = (cwnd.saturating_mul(self.reno_scale) >> 3).max(1);
        if self.reno_acks > each {
            // Linux subtracts in a loop, which takes long when one ACK covers very many segments.
            let grown = (self.reno_acks - 1) / each;
            self.reno_acks -= grown * each;
            self.reno_cwnd = self.reno_cwnd.saturating_add(grown);
        }
        if self.reno_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.reno_cwnd - cwnd));
        }
        // At most one segment for two acknowledged: 1.5 times per round trip (RFC 9438 §4.2).
        self.cnt = self.cnt.max(2);
    }
}

impl Avoidance for Cubic {
    fn enter(&mut self, _: &View, how: Exit) {
        self.fresh = false;
        self.epoch = None;
        self.credit = Bytes::ZERO;
        self.odd = Bytes::ZERO;
        // A timeout discards W_max (bictcp_state, TCP_CA_Loss).
        if how == Exit::Timeout {
            self.last_max = 0;
        }
    }

    fn look_for(&mut self, v: &View, window: Bytes) {
        self.last_max = window.units(v.mss).max(1);
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust {
        let bytes = ack.bytes + self.odd;
        // Mostly two segments: this avoids a division, which takes longer than the rest of the function.
        let acked = if bytes == v.mss * 2 { 2 } else { bytes.units(v.mss) };
        self.odd = bytes - v.mss * acked;
        if acked == 0 {
            return Adjust::Keep;
        }
        if v.cwnd != self.seen.0 {
            self.seen = (v.cwnd, v.cwnd.units(v.mss).max(1));
        }
        let cwnd = self.seen.1;
        self.update(v, cwnd, acked);
        // tcp_cong_avoid_ai
        let mut grown = 0;
        if self.credit.0 >= self.cnt {
            self.credit = Bytes::ZERO;
            grown += 1;
        }
        self.credit += Bytes(acked);
        if self.credit.0 >= self.cnt {
            grown += self.credit.0 / self.cnt;
            self.credit = Bytes(self.credit.0 % self.cnt);
        }
        if grown == 0 { Adjust::Keep } else { Adjust::Grow(v.mss * grown) }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        let cwnd = v.cwnd.units(v.mss).max(1);
        let one = Fixed::ONE as u64;
        let beta = match c.signal {
            _ if self.fresh => self.params.startup_beta,
            Signal::Ecn => self.params.beta_ecn,
            _ => self.params.beta,
        }
        .0 as u64;
        self.epoch = None;
        self.last_max = if self.params.fast_convergence && cwnd < self.last_max {
            mul_div(cwnd, one + beta, 2 * one)
        } else {
            cwnd
        };
        v.mss * mul_div(cwnd, beta, one)
    }

    fn on_idle(&mut self, now: Instant, idle: Span) {
        // cubictcp_cwnd_event, CA_EVENT_TX_START: idle time does not count. The epoch may have begun with an ACK
        // after the last transmission, so that less than `idle` of it was idle.
        if let Some(epoch) = &mut self.epoch {
            *epoch = (*epoch + idle).min(now);
        }
    }
}
