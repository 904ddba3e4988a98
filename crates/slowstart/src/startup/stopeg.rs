//! `StopEG`, Arghavani et al., LCN 2020: of all that is in flight, the share that is still on the way to the receiver is
//! at most 56.8 % while the bottleneck is not saturated; more, and exponential growth stops.
//!
//! Reconstructed because only the abstract was read:
//! - what is on the way back is what will be acknowledged within half a least round-trip time. It is known half a round
//!   trip later, and is then set against what was in flight: both as means over the round that is over, since a burst is
//!   all on one way or all on the other;
//! - time is cut into twelfths of the least round-trip time, so that a fixed number of figures is kept;
//! - it leaves with the window it has, as the figures of the ESS paper show it.
//!
//! In saturation x BDP in flight are a share of 1 - 1/(2x), which exceeds 56.8 % from x = 1.157 on. A sender that doubles
//! each round trip and spreads its packets evenly has 1/(1 + 2^-0.5) = 58.6 % without any queue, more than the abstract
//! allows: 56.8 % fits a growth of 1.73 a round trip. Senders that send in bursts have 50 %; a host that spreads each
//! window over half a round trip, as Linux does, has 4/7, 57.1 %.

use super::Startup;
use crate::param::params;
use crate::round::Round;
use crate::step::{Exit, Resume, Step};
use crate::units::{Bytes, Fixed, Instant, Span};
use crate::view::{Ack, Restart, Sent, View};

params! {
    /// Parameters of `StopEG`.
    pub struct Params {
        /// The share on the way to the receiver that ends it.
        share: Fixed = Fixed::milli(568), "a share from 0 to 1, such as 0.568", |v| (0..=Fixed::ONE).contains(&v.0);
    }
}

/// Bins in a least round-trip time.
const ROUND: usize = 12;
/// Bins from the receiver back.
const HALF: usize = ROUND / 2;
/// Ends of bins that are kept: a round trip, half of one, the beginning, and the silence until the next ACK.
const N: usize = ROUND + HALF + 1 + 10;

/// `StopEG`.
#[derive(Clone, Debug)]
pub struct StopEg {
    pub(crate) params: Params,
    bins: Option<Bins>,
    round: Round,
    share: Option<Fixed>,
}

#[derive(Clone, Debug)]
struct Bins {
    width: Span,
    /// When the bin being filled ends.
    end: Instant,
    /// How many have been filled, and with which of them the round that is over will have come back.
    at: usize,
    judge: Option<usize>,
    /// Bytes delivered up to the end of each, in a ring.
    delivered: [Bytes; N],
    /// Bytes in flight, summed over microseconds, up to the end of each.
    area: [u64; N],
    /// The event before: when, what had been delivered, what was in flight, the area.
    last: (Instant, Bytes, Bytes, u64),
}

impl Bins {
    fn new(v: &View, rtt: Span) -> Self {
        let width = (rtt / ROUND as u64).max(Span(1));
        Self {
            width,
            end: v.now + width,
            at: 0,
            judge: None,
            delivered: [v.delivered; N],
            area: [0; N],
            last: (v.now, v.delivered, v.inflight, 0),
        }
    }

    /// Takes the state after an event. False after a silence of many bins: there is nothing left to compare with.
    fn advance(&mut self, v: &View) -> bool {
        if v.now.since(self.end) > self.width * N as u64 {
            return false;
        }
        let (then, delivered, inflight, area) = self.last;
        let until = |t: Instant| area.saturating_add(inflight.0.saturating_mul(t.since(then).0 / 1000));
        while self.end <= v.now {
            self.at += 1;
            (self.delivered[self.at % N], self.area[self.at % N]) = (delivered, until(self.end));
            self.end = self.end + self.width;
        }
        self.last = (v.now, v.delivered, v.inflight, until(v.now));
        true
    }

    /// The share on the way to the receiver, over the round trip that had ended half of one before `end`.
    fn share(&self, end: usize) -> Option<Fixed> {
        let first = end.checked_sub(ROUND + HALF).filter(|f| self.at < f + N)?;
        let back: Bytes =
            (first + 1..=first + ROUND).map(|n| self.delivered[(n + HALF) % N] - self.delivered[n % N]).sum();
        let area = self.area[(first + ROUND) % N] - self.area[first % N];
        // Per bin: the area over the width, ROUND times the mean.
        let all = Bytes(area).scale(1000, self.width.0);
        (all.0 > 0).then(|| Fixed::ratio(all - back, all))
    }
}

impl StopEg {
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, bins: None, round: Round::default(), share: None }
    }
}

impl Startup for StopEg {
    fn needs_on_sent(&self) -> bool {
        true
    }

    fn on_sent(&mut self, v: &View, _: &Sent) {
        if self.bins.as_mut().is_some_and(|b| !b.advance(v)) {
            self.bins = None;
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let grow = Step::grow(v.slow_start_growth(ack));
        let Some(rtt) = v.min_rtt else { return grow };
        let Some(bins) = self.bins.as_mut() else {
            self.bins.get_or_insert_with(|| Bins::new(v, rtt));
            return grow;
        };
        if !bins.advance(v) {
            *bins = Bins::new(v, rtt);
            return grow;
        }
        if let Some(end) = bins.judge.filter(|n| bins.at >= *n) {
            bins.judge = None;
            self.share = bins.share(end);
            if self.share.is_some_and(|s| s > self.params.share) {
                return Step::exit(Exit::Estimate);
            }
        }
        if self.round.ends_round(ack.upto, v.next) {
            bins.judge = Some(bins.at + HALF);
        }
        grow
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        // Bins that span a silence say nothing of the path.
        Resume::FromStart
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("forward_share", self.share.map_or(f64::NAN, Fixed::as_f64));
    }
}
