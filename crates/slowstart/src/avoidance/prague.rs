//! Prague, draft-briscoe-iccrg-prague-congestion-control, as `tcp_prague.c` 0.6 of the L4S project's Linux,
//! with its rate rule of independence from the round trip (`RTT_CONTROL_RATE`).
//!
//! As DCTCP, a mark reduces the window by half the smoothed share of marked bytes. The share is 1 until the
//! first mark, so that the mark which ends a startup halves the window. Bytes that are not marked make the
//! window grow at all times, also in the round trip after a reduction, by a segment a round trip; some rounds
//! after the startup, on round trips below the target, by (RTT / target)^2 of it, and share and reduction are
//! updated once per target.
//!
//! Departs from its source:
//! - the share is of bytes and not of packets, and the window is in bytes;
//! - bursts are those of the host, not limited to a 4096th of a second; the host paces by its own rule;
//! - the share of a round is computed in 2^24ths, as there, without the carried rest.

use super::{Adjust, Avoidance};
use crate::param::params;
use crate::step::Exit;
use crate::units::{Bytes, Instant, SendOrder, Span};
use crate::view::{Ack, Congestion, Signal, View};

params! {
    /// The parameters of Prague, with their defaults.
    pub struct Params {
        /// The round-trip time below which growth slows (`prague_rtt_target`).
        target: Span = Span::millis(25), "a time above 0, such as 25ms", |v| v > Span::ZERO;
        /// Number of rounds after the startup until that rule applies (`prague_rtt_transition`).
        transition: u32 = 500, "a number of rounds", |_v| true;
    }
}

/// A share of 1 (`PRAGUE_MAX_ALPHA`).
const ONE: u64 = 1 << 24;
/// The gain of the smoothing is a 16th (`PRAGUE_SHIFT_G`).
const SHIFT: u32 = 4;
/// Round trips beyond this are never scaled (`MAX_SCALED_RTT`).
const MOST_SCALED: Span = Span::millis(100);

/// Prague's congestion avoidance, one instance a connection.
#[derive(Clone, Debug)]
pub struct Prague {
    pub(crate) params: Params,
    /// The smoothed share of marked bytes, in 2^24ths, times 16.
    alpha: u64,
    /// True once a mark was seen: before, the share is not updated.
    seen: bool,
    /// The round ends when this is acknowledged.
    round: SendOrder,
    /// Bytes delivered, and delivered marked, when it began.
    began: (Bytes, Bytes),
    /// When the share was last updated, and when the window was last reduced for a mark.
    updated: Instant,
    reduced: Option<Instant>,
    /// Rounds since the startup ended; `None` before.
    rounds: Option<u32>,
    /// Marked bytes up to the ACK before this one, and what this one reports.
    marked: (Bytes, Bytes),
    /// Growth that is less than a byte, in 2^20ths.
    rest: u64,
}

impl Prague {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            alpha: ONE << SHIFT,
            seen: false,
            round: SendOrder::default(),
            began: (Bytes::ZERO, Bytes::ZERO),
            updated: Instant::ZERO,
            reduced: None,
            rounds: None,
            marked: (Bytes::ZERO, Bytes::ZERO),
            rest: 0,
        }
    }

    /// True if growth and response no longer depend on the round trip.
    fn is_independent(&self) -> bool {
        self.rounds.is_some_and(|n| n >= self.params.transition)
    }

    /// Growth of a round trip, in 2^20ths of a segment (`prague_rate_scaled_ai_ack_increase`).
    fn increase(&self, v: &View) -> u64 {
        let rtt = v.srtt.filter(|r| *r < self.params.target && *r <= MOST_SCALED && *r > Span::ZERO);
        match rtt.filter(|_| self.is_independent()) {
            Some(rtt) => rtt.scale(1 << 20, self.params.target.0).scale(rtt.0, self.params.target.0).0,
            None => 1 << 20,
        }
    }
}

impl Avoidance for Prague {
    fn enter(&mut self, _: &View, _: Exit) {
        self.rounds.get_or_insert(0);
        self.rest = 0;
    }

    fn observe(&mut self, v: &View, ack: &Ack) {
        // Without a count of marks, the share stays 1: a mark halves the window.
        let total = v.marked.unwrap_or_default();
        self.marked = (total, total - self.marked.0);
        self.seen |= total > Bytes::ZERO;
        let due = !self.is_independent() || v.now.since(self.updated) >= self.params.target;
        if ack.upto < self.round || !due {
            return;
        }
        if self.seen {
            // prague_update_alpha
            let (delivered, marked) = (v.delivered - self.began.0, total - self.began.1);
            let share = marked.min(delivered).scale(ONE, delivered.0.max(1)).0;
            self.alpha = (self.alpha - (self.alpha >> SHIFT) + share).min(ONE << SHIFT);
            self.updated = v.now;
        }
        self.began = (v.delivered, total);
        self.round = v.next;
        if let Some(n) = &mut self.rounds {
            *n = n.saturating_add(1);
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust {
        let bytes = ack.bytes - self.marked.1;
        let grown = u128::from(bytes.0) * u128::from(v.mss.0) * u128::from(self.increase(v))
            / u128::from(v.cwnd.0.max(1))
            + u128::from(self.rest);
        self.rest = (grown & ((1 << 20) - 1)) as u64;
        let grown = u64::try_from(grown >> 20).unwrap_or(u64::MAX);
        if grown == 0 { Adjust::Keep } else { Adjust::Grow(Bytes(grown)) }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        if c.signal != Signal::Ecn {
            return v.cwnd / 2;
        }
        // prague_enter_cwr
        if self.is_independent() && self.reduced.is_some_and(|t| v.now.since(t) < self.params.target) {
            return v.cwnd;
        }
        self.reduced = Some(v.now);
        v.cwnd - v.cwnd.scale(self.alpha >> SHIFT, 2 * ONE)
    }

    fn is_l4s(&self) -> bool {
        true
    }

    fn needs_each_mark(&self) -> bool {
        true
    }

    fn grows_between_marks(&self) -> bool {
        true
    }
}
