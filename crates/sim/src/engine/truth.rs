//! What the engine itself observes of a flow, beyond what its endpoints know: the basis of the measures in a
//! row.

use crate::path::Cause;
use crate::trace::MILESTONES;
use slowstart::control::Exited;
use slowstart::units::{Instant, Span};
use std::collections::VecDeque;

/// Width of the bins in which delivered bytes are counted.
pub const BIN: Span = Span::millis(10);

/// What the engine observed of a flow. Fields that a packet may change come first (docs/dev/engine.md,
/// "Memory layout").
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Truth {
    /// The longest wait of a packet of this flow at the bottleneck.
    pub peak_queue_delay: Span,
    /// Bytes that arrived in the current [`BIN`], and when that bin ends.
    bin: u32,
    bin_ends: Instant,
    /// When the bytes in flight of all flows of this direction first reached the capacity that the path had
    /// then. If the delay of the path has risen since, so that they no longer did when the startup ended, when
    /// they did after that.
    pub capacity: Option<Instant>,
    /// The round-trip time of the path at `capacity`.
    pub(super) capacity_rtt: Span,
    /// Drops and delays of this flow from [`FlowSpec::impact_from`](super::FlowSpec::impact_from) on, if that
    /// is set.
    pub impact: Option<Box<Impact>>,
    /// Bytes in each bin before the current one.
    pub(super) bins: Vec<u32>,
    /// How and when the first slow start ended.
    pub exit: Option<Exited>,
    /// The avoidance has returned to slow start.
    pub(super) restarted: bool,
    /// The newest RTT sample when the startup ended.
    pub exit_rtt: Option<Span>,
    /// The longest wait at the bottleneck of a packet of this flow that was sent before the startup ended.
    pub exit_queue_delay: Span,
    /// When the path first dropped a data packet of this flow.
    pub first_drop: Option<Instant>,
    /// When the sender first learned of a mark.
    pub first_mark: Option<Instant>,
    /// When the sender first detected a loss, or timed out, other than in vain.
    pub first_loss: Option<Instant>,
    /// The loss episode under way, or the last, began with `first_loss`; and it is over.
    first_episode: bool,
    episode_over: bool,
    /// Number of data packets dropped by the path.
    pub dropped: u64,
    /// These by [`Cause`], in the order of [`Cause::ALL`].
    pub dropped_by: [u64; Cause::ALL.len()],
    /// Number of dropped packets that were sent before the startup ended.
    pub dropped_in_startup: u64,
    /// When the receiver had all data.
    pub completed: Option<Instant>,
    /// When the receiver had the bytes of each of [`MILESTONES`].
    pub milestones: [Option<Instant>; MILESTONES.len()],
    /// The capacity point by the delay heuristic of the SEARCH thesis (5.2.1): when the one-way delay was
    /// last less than half the minimum RTT above its minimum, before it first was more than twice the minimum
    /// RTT above.
    pub capacity_by_delay: Option<Instant>,
    /// True if the client's handshake with a proxy was given up.
    pub(super) proxy_handshake_failed: bool,
}

impl Truth {
    /// Nothing observed yet. [`Impact`] is counted from `impact_from` on, if that is set.
    pub(super) fn new(impact_from: Option<Instant>) -> Self {
        let impact = impact_from.map(|from| Box::new(Impact { from, dropped: 0, counts: [0; 256] }));
        Self { impact, ..Self::default() }
    }

    /// The sender detects a loss, or times out.
    pub(super) fn learn_of_loss(&mut self, now: Instant) {
        if self.first_loss.is_none() {
            self.first_loss = Some(now);
            self.first_episode = true;
        } else if self.episode_over {
            self.first_episode = false;
        }
        self.episode_over = false;
    }

    /// A loss episode is over, or proves to have been none (`undone`), maybe after its end.
    pub(super) fn end_episode(&mut self, undone: bool) {
        self.first_loss = self.first_loss.filter(|_| !(undone && self.first_episode));
        self.episode_over = true;
    }

    /// Counts `bytes` that arrive at `now` at the receiver of a flow that began at `start`.
    #[inline]
    pub(super) fn count_arrival(&mut self, now: Instant, start: Instant, bytes: u32) {
        if now < self.bin_ends {
            self.bin += bytes;
        } else {
            self.begin_bin(now, start, bytes);
        }
    }

    /// Begins the bin that contains `now`, with its first bytes.
    #[cold]
    fn begin_bin(&mut self, now: Instant, start: Instant, bytes: u32) {
        self.bins.extend(self.current_bin());
        let bin = now.since(start).0 / BIN.0;
        self.bins.resize(bin as usize, 0);
        (self.bin, self.bin_ends) = (bytes, start + BIN * (bin + 1));
    }

    /// Bytes of the current bin; `None` before anything has arrived.
    fn current_bin(&self) -> Option<u32> {
        (self.bin_ends > Instant::ZERO).then_some(self.bin)
    }

    /// Bytes that arrived in each [`BIN`] since the flow began, up to the last bin with an arrival.
    pub fn bins(&self) -> Vec<u32> {
        self.bins.iter().copied().chain(self.current_bin()).collect()
    }

    /// Records the time of each milestone reached with `delivered` bytes.
    pub(super) fn reach_milestones(&mut self, now: Instant, delivered: u64) {
        for (at, bytes) in self.milestones.iter_mut().zip(MILESTONES) {
            if at.is_none() && delivered >= bytes {
                *at = Some(now);
            }
        }
    }

    /// The first milestone above `delivered` bytes; [`u64::MAX`] if there is none.
    pub(super) fn next_milestone(delivered: u64) -> u64 {
        MILESTONES.into_iter().find(|b| *b > delivered).unwrap_or(u64::MAX)
    }
}

/// What another flow does to this one from some time on: drops, and one-way delays above the minimum, counted
/// in classes of an eighth of an octave from 1 us on.
#[derive(Clone, Debug)]
pub struct Impact {
    /// When counting begins, on the clock of the run.
    pub from: Instant,
    /// Number of data packets dropped since then.
    pub dropped: u64,
    counts: [u64; 256],
}

impl Impact {
    fn add(&mut self, delay: Span) {
        let us = (delay.0 / 1000).max(1);
        let octave = us.ilog2();
        let eighth = ((us << 3) >> octave) & 7;
        self.counts[(octave as usize * 8 + eighth as usize).min(255)] += 1;
    }

    /// Returns the upper edge of the class in which the delay of rank floor(`n` `permille` / 1000) from 0 is: at most an
    /// eighth above that order statistic. `None` if nothing arrived.
    pub fn order_statistic_bound(&self, permille: u64) -> Option<Span> {
        let total: u64 = self.counts.iter().sum();
        let rank = total * permille / 1000;
        let mut seen = 0;
        let i = self.counts.iter().position(|c| {
            seen += c;
            seen > rank
        })?;
        let (octave, eighth) = (i as u64 / 8, i as u64 % 8);
        Some(Span::micros(((8 + eighth + 1) << octave) >> 3))
    }
}

/// The one-way delay of a flow's data, and the state of the delay heuristic (SEARCH thesis 5.2.1).
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct OneWay {
    least: Span,
    /// When the delay was last less than half the minimum RTT above its minimum; [`Instant::NEVER`] once it
    /// has been more than twice the minimum RTT above.
    last_below: Instant,
    /// The minimum RTT that the sender knew when the packet left that arrived last; [`Span::MAX`] before its
    /// first sample.
    min_rtt: Span,
    /// Later values of the sender's minimum RTT, and when each became known: packets that left after that
    /// have yet to arrive.
    pub(super) min_rtts: VecDeque<(Instant, Span)>,
}

impl OneWay {
    pub(super) fn new(start: Instant) -> Self {
        Self { least: Span::MAX, min_rtt: Span::MAX, min_rtts: VecDeque::new(), last_below: start }
    }

    /// Takes data that left at `sent` and arrives at `now`. With `witness` the delay is counted in
    /// [`Truth::impact`].
    #[inline]
    pub(super) fn record_arrival(&mut self, now: Instant, sent: Instant, witness: bool, truth: &mut Truth) {
        let delay = now.since(sent);
        self.least = self.least.min(delay);
        let above = delay - self.least;
        while let Some((_, min_rtt)) = self.min_rtts.pop_front_if(|(when, _)| *when <= sent) {
            self.min_rtt = min_rtt;
        }
        if self.last_below < Instant::NEVER && self.min_rtt < Span::MAX {
            if above < self.min_rtt / 2 {
                self.last_below = now;
            } else if above > self.min_rtt * 2 {
                let last = std::mem::replace(&mut self.last_below, Instant::NEVER);
                truth.capacity_by_delay = Some(last);
            }
        }
        if witness && let Some(w) = truth.impact.as_mut().filter(|w| now >= w.from) {
            w.add(above);
        }
    }

    /// Takes the sender's minimum RTT after an event at the sender; [`Span::MAX`] before its first sample.
    #[inline]
    pub(super) fn record_min_rtt(&mut self, now: Instant, min_rtt: Span) {
        if min_rtt != self.min_rtts.back().map_or(self.min_rtt, |last| last.1) {
            self.min_rtts.push_back((now, min_rtt));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_was_none_is_taken_back_and_others_stay() {
        let known = |events: &[(u64, Option<bool>)]| {
            let mut t = Truth::new(None);
            for (at, ends) in events {
                match ends {
                    None => t.learn_of_loss(Instant(*at)),
                    Some(undone) => t.end_episode(*undone),
                }
            }
            t.first_loss.map(|at| at.0)
        };
        let (loss, over, undone) = (None, Some(false), Some(true));
        assert_eq!(known(&[(1, loss), (2, undone)]), None);
        assert_eq!(known(&[(1, loss), (2, undone), (3, loss), (4, over)]), Some(3));
        // A timeout in an episode is part of it.
        assert_eq!(known(&[(1, loss), (2, loss), (3, undone)]), None);
        // Reported by duplicates after its end.
        assert_eq!(known(&[(1, loss), (2, over), (3, undone)]), None);
        assert_eq!(known(&[(1, loss), (2, over), (3, loss), (4, undone)]), Some(1));
    }
}
