//! ABBA, draft-kazuho-ccwg-abba, the editor's copy of September 2026 with a linear model (the design of
//! quicly's pull request 698): CUBIC that grows faster while the round-trip time is below what a line says for
//! the window.
//!
//! The line goes through two points of the period since the last congestion: the window before the reduction
//! with the least RTT of the recovery (after a mark: of the round trip before it), and the least RTT since
//! with its window. It is flat while these RTTs are less than 5 ms apart. Its slope is at most that of the
//! line through the origin and the second point, and two thirds of it are kept. Once the window exceeds
//! `high` (2 - beta), a new line replaces it: from the origin through that window and an RTT, which is the
//! least of the last two round trips, or what the old line gives for that window if that is more. An ACK
//! outside of recovery adds 2/3 (1 - `w_ref` / w) of what it acknowledges, at most half the window, where
//! `w_ref` is the window that the line gives for its RTT.
//!
//! The draft leaves open, and here is chosen:
//! - which CUBIC: that of `cubic`, or with `over=cuback` that of `cuback`, which the draft names beside it
//!   (quicly's pull request is for both). Growth comes a segment at a time: of each segment, what was added
//!   since the last is subtracted, so that the larger of both applies over that time and not at each ACK;
//! - `rtt_floor`: the least RTT of the round trip that goes on and the one before it;
//! - before the first congestion, and from a timeout to the next congestion, there is no line;
//! - a startup that sets the window of a loss itself (`rapid-start`) does not tell the window before it: it is
//!   that of the last ACK before the episode.
//!
//! Departs from the draft:
//! - an undo of a spurious reduction restores the window and not the line, as for `cubic`.

use super::{Adjust, Avoidance};
use super::cuback::{self, Cuback};
use super::cubic::{self, Cubic};
use crate::param::{choice, params};
use crate::round::{Round, RoundMin};
use crate::step::Exit;
use crate::units::{Bytes, Fixed, Instant, Span, mul_div};
use crate::view::{Ack, Congestion, Signal, View};

choice! {
    /// The congestion avoidance that is made faster.
    pub enum Over {
        /// CUBIC of RFC 9438.
        Cubic = "cubic",
        /// CUBACK, which is driven by ACKs.
        Cuback = "cuback",
    }
}

params! {
    /// The parameters of ABBA, with their defaults.
    pub struct Params {
        /// What is made faster.
        over: Over = Over::Cubic, "cubic or cuback", |_v| true;
        /// Factor applied to the window on congestion (RFC 9438 §4.6: 0.7).
        beta: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.7", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// The factor for a mark in congestion avoidance (RFC 8511 §3.1: 0.85; without it as for a loss).
        beta_ecn: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.85", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// Reduce `W_max` further if it is below the previous one (RFC 9438 §4.7).
        fast_convergence: bool = true, "on or off", |_v| true;
    }
}

/// How far apart the RTTs of both points must be (`RTT_SPAN_THRESH`).
const APART: Span = Span::millis(5);

/// An avoidance with growth that another rule may exceed.
#[derive(Clone, Debug)]
pub(super) struct Faster<A> {
    pub(super) under: A,
    /// Bytes that the other rule added since the avoidance's last segment.
    added: Bytes,
    /// Bytes by which the window grew since the last reduction where the other rule added more.
    gained: Bytes,
}

impl<A: Avoidance> Faster<A> {
    pub(super) fn new(under: A) -> Self {
        Self { under, added: Bytes::ZERO, gained: Bytes::ZERO }
    }

    /// Returns the growth for an ACK: by the avoidance, or by the other rule, which adds `other` bytes, if it
    /// has added more since the avoidance's last segment.
    pub(super) fn on_ack(&mut self, v: &View, ack: &Ack, other: Bytes) -> Adjust {
        let before = self.added;
        self.added += other;
        let mut grown = other;
        if let Adjust::Grow(own) = self.under.on_ack(v, ack) {
            // What was added before this ACK is in the window already.
            grown = other.max(own - before);
            let added = core::mem::take(&mut self.added);
            if added > own {
                self.gained += added;
            }
        }
        if grown > Bytes::ZERO { Adjust::Grow(grown) } else { Adjust::Keep }
    }

    /// Returns the bytes by which the window grew since the last reduction where the other rule added more
    /// than the avoidance, whose next segment is of `mss` bytes or more.
    pub(super) fn gained(&self, mss: Bytes) -> Bytes {
        self.gained + if self.added > mss { self.added } else { Bytes::ZERO }
    }

    pub(super) fn enter(&mut self, v: &View, how: Exit) {
        self.under.enter(v, how);
        (self.added, self.gained) = (Bytes::ZERO, Bytes::ZERO);
    }
}

/// CUBIC or CUBACK.
#[derive(Clone, Debug)]
enum Under {
    Cubic(Cubic),
    Cuback(Cuback),
}

impl Under {
    fn new(params: Params) -> Self {
        let Params { over, beta, beta_ecn, fast_convergence } = params;
        match over {
            Over::Cubic => {
                let params = cubic::Params { beta, startup_beta: beta, beta_ecn, fast_convergence };
                Self::Cubic(Cubic::new(params))
            }
            Over::Cuback => {
                let params = cuback::Params { beta, fast_convergence };
                Self::Cuback(Cuback::with_beta_ecn(params, beta_ecn))
            }
        }
    }
}

/// Evaluates an expression for whichever it is.
macro_rules! each {
    ($any:expr, $a:ident => $value:expr) => {
        match $any {
            Under::Cubic($a) => $value,
            Under::Cuback($a) => $value,
        }
    };
}

impl Avoidance for Under {
    fn enter(&mut self, v: &View, how: Exit) {
        each!(self, a => a.enter(v, how));
    }
    fn look_for(&mut self, v: &View, window: Bytes) {
        each!(self, a => a.look_for(v, window));
    }
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust {
        each!(self, a => a.on_ack(v, ack))
    }
    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        each!(self, a => a.on_congestion(v, c))
    }
    fn on_idle(&mut self, now: Instant, idle: Span) {
        each!(self, a => a.on_idle(now, idle));
    }
}

/// The predicted RTT of a window: `rise` / `run` times the window, and `base`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Line {
    rise: u64,
    run: u64,
    base: Span,
}

impl Line {
    /// The line through the origin and a point.
    fn through_origin(rtt: Span, cwnd: Bytes) -> Self {
        Self { rise: rtt.0, run: cwnd.0.max(1), base: Span::ZERO }
    }

    /// What the slope adds at this window.
    fn rises(&self, cwnd: Bytes) -> Span {
        Span(mul_div(cwnd.0, self.rise, self.run))
    }

    fn at(&self, cwnd: Bytes) -> Span {
        self.base + self.rises(cwnd)
    }
}

/// CUBIC, accelerated where the RTT is below a line.
#[derive(Clone, Debug)]
pub struct Abba {
    pub(crate) params: Params,
    faster: Faster<Under>,
    /// The window before the last reduction and the factor of that; `None` before one and after a timeout.
    high: Option<(Bytes, Fixed)>,
    /// The RTT at that window.
    high_rtt: Option<Span>,
    /// A mark was the reason: samples after it do not count.
    marked: bool,
    /// The window at the least RTT since the recovery, and that RTT.
    low: Option<(Bytes, Span)>,
    line: Option<Line>,
    /// [`Avoidance::on_congestion`] was called, and `enter` not yet.
    told: bool,
    /// The window at the last ACK outside of recovery.
    window: Bytes,
    round: Round,
    /// The least RTT of this round trip, and that of the one before.
    this: RoundMin,
    before: Option<Span>,
}

impl Abba {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            faster: Faster::new(Under::new(params)),
            high: None,
            high_rtt: None,
            marked: false,
            low: None,
            line: None,
            told: false,
            window: Bytes::ZERO,
            round: Round::default(),
            this: RoundMin::default(),
            before: None,
        }
    }

    /// `rtt_floor()`: the least RTT of this round trip and the one before.
    fn floor(&self) -> Option<Span> {
        self.this.least.into_iter().chain(self.before).min()
    }

    /// A congestion event reduces this window by this factor; the state begins anew.
    fn begin(&mut self, cwnd: Bytes, signal: Signal) {
        let beta = if signal == Signal::Ecn { self.params.beta_ecn } else { self.params.beta };
        self.marked = signal == Signal::Ecn;
        self.high = (signal != Signal::Timeout).then_some((cwnd, beta));
        self.high_rtt = self.floor().filter(|_| self.marked);
        (self.low, self.line) = (None, None);
    }

    /// `fit()`: draws the line anew, if its points have a slope.
    fn fit(&mut self) {
        let (Some((high, _)), Some(high_rtt), Some((low, rtt))) = (self.high, self.high_rtt, self.low) else {
            return;
        };
        if high <= low {
            return;
        }
        let (rise, run) = (high_rtt - rtt, high - low);
        self.line = Some(if rise < APART {
            Line { rise: 0, run: 1, base: rtt }
        } else {
            let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
            let steep = wide(rise.0, low.0) > wide(rtt.0, run.0);
            let (rise, run) = if steep { (rtt.0, low.0.max(1)) } else { (rise.0, run.0) };
            let (rise, run) = (rise.saturating_mul(2), run.saturating_mul(3));
            let slope = Line { rise, run, base: Span::ZERO };
            Line { base: rtt - slope.rises(low), ..slope }
        });
    }

    /// The bytes that the acceleration adds for this ACK.
    fn accelerates(&mut self, v: &View, ack: &Ack) -> Bytes {
        let (Some(rtt), Some((high, beta))) = (ack.rtt, self.high) else { return Bytes::ZERO };
        if let (None, Some(at_high)) = (self.low, self.high_rtt) {
            // The first ACK after the recovery.
            self.low = Some((v.cwnd, at_high));
            self.fit();
        }
        if self.low.is_some_and(|(_, least)| rtt < least) {
            self.low = Some((v.cwnd, rtt));
            self.fit();
        }
        let one = Fixed::ONE as u64;
        let far = v.cwnd > high.scale(2 * one - beta.0 as u64, one);
        if far && self.line.is_none_or(|l| l.base > Span::ZERO) {
            let target = self.line.map(|l| l.at(v.cwnd)).into_iter().chain(self.floor()).max();
            self.line = target.map(|t| Line::through_origin(t, v.cwnd));
        }
        let Some(line) = self.line.filter(|l| l.rise > 0 && rtt < l.at(v.cwnd)) else { return Bytes::ZERO };
        // 1 - w_ref / w is the shortfall in shares of what the slope adds at w.
        let (shortfall, rises) = (line.at(v.cwnd) - rtt, line.rises(v.cwnd).0.max(1));
        ack.bytes.scale(shortfall.0.saturating_mul(2), rises.saturating_mul(3)).min(v.cwnd / 2)
    }
}

impl Avoidance for Abba {
    fn enter(&mut self, v: &View, how: Exit) {
        self.faster.enter(v, how);
        let told = core::mem::take(&mut self.told);
        if how == Exit::Timeout {
            // Also one that repeats another or interrupts a recovery, of which nothing else tells.
            self.begin(v.cwnd, Signal::Timeout);
        } else if how.by_congestion() && !told {
            // A startup set its own window.
            self.begin(self.window.max(v.cwnd), if how == Exit::Ecn { Signal::Ecn } else { Signal::Loss });
        }
    }

    fn look_for(&mut self, v: &View, window: Bytes) {
        self.faster.under.look_for(v, window);
    }

    fn observe(&mut self, v: &View, ack: &Ack) {
        if self.round.ends_round(ack.upto, v.next) {
            self.before = self.this.restart();
        }
        if let Some(rtt) = ack.rtt {
            self.this.add(rtt);
            if v.in_recovery && !self.marked && self.high.is_some() && self.low.is_none() {
                self.high_rtt = Some(self.high_rtt.map_or(rtt, |least| least.min(rtt)));
            }
        }
        if !v.in_recovery {
            self.window = v.cwnd;
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust {
        let other = self.accelerates(v, ack);
        self.faster.on_ack(v, ack, other)
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        self.begin(v.cwnd, c.signal);
        self.told = true;
        self.faster.under.on_congestion(v, c)
    }

    fn on_idle(&mut self, now: Instant, idle: Span) {
        self.faster.under.on_idle(now, idle);
    }
}
