//! `StopEG`, Arghavani et al., LCN 2020: while the bottleneck is not saturated, at most 56.8 % of the data in
//! flight is on the way to the receiver. A larger share ends exponential growth.
//!
//! Reconstructed because only the abstract was available:
//! - the data on the return path is what will be acknowledged within half a minimum RTT. It is known half an
//!   RTT later, and is then compared with the data in flight at that time. Both are averages over the round
//!   that has ended, because a burst is entirely on one of the two ways;
//! - time is divided into twelfths of the minimum RTT, so that the state has a fixed size;
//! - it exits with its current window, as the figures of the ESS paper show.
//!
//! In saturation, with x BDP in flight, the share is 1 - 1/(2x), which exceeds 56.8 % from x = 1.157 on. A
//! sender that doubles each round trip and spaces its packets evenly has 1/(1 + 2^-0.5) = 58.6 % without any
//! queue, more than the abstract permits; 56.8 % corresponds to a growth of 1.73 per round trip. A sender in
//! bursts has 50 %. A host that spreads each window over half an RTT, as Linux does, has 4/7 = 57.1 %.

use super::Startup;
use crate::param::params;
use crate::round::Round;
use crate::step::{Exit, Resume, Step};
use crate::units::{Bytes, Fixed, Instant, Span};
use crate::view::{Ack, Restart, Sent, View};

params! {
    /// The parameters of `StopEG`, with their defaults.
    pub struct Params {
        /// Share on the way to the receiver that ends the startup.
        share: Fixed = Fixed::milli(568), "a share from 0 to 1, such as 0.568", |v| (0..=Fixed::ONE).contains(&v.0);
    }
}

/// Bins per minimum RTT.
const ROUND: usize = 12;
/// Bins per half of it, the return path.
const HALF: usize = ROUND / 2;
/// Bins kept: a round trip, half of one, the first, and ten for the time until the next ACK.
const N: usize = ROUND + HALF + 1 + 10;

/// The startup `StopEG`, one instance a connection.
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
    /// When the current bin ends.
    end: Instant,
    /// Number of bins completed, and the number at which the last round is judged.
    at: usize,
    judge: Option<usize>,
    /// Bytes delivered at the end of each bin, in a ring.
    delivered: [Bytes; N],
    /// Integral of the bytes in flight over microseconds, at the end of each bin.
    area: [u64; N],
    /// At the last event: time, bytes delivered, bytes in flight, integral.
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

    /// Records the state after an event. Returns false after many bins without an event: the comparison is
    /// then impossible.
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

    /// Returns the share on the way to the receiver, over the round trip that ended half an RTT before bin
    /// `end`.
    fn share(&self, end: usize) -> Option<Fixed> {
        let first = end.checked_sub(ROUND + HALF).filter(|f| self.at < f + N)?;
        let back: Bytes =
            (first + 1..=first + ROUND).map(|n| self.delivered[(n + HALF) % N] - self.delivered[n % N]).sum();
        let area = self.area[(first + ROUND) % N] - self.area[first % N];
        // Per bin: the integral divided by the width is ROUND times the average.
        let all = Bytes(area).scale(1000, self.width.0);
        (all.0 > 0).then(|| Fixed::ratio(all - back, all))
    }
}

impl StopEg {
    /// Returns an instance with these parameters.
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
        // Bins that span an idle period do not measure the path.
        Resume::FromStart
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("forward_share", self.share.map_or(f64::NAN, Fixed::as_f64));
    }
}
