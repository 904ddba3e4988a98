//! Bytes in flight over time, and their growth over the bytes that are acknowledged.

use super::rounds::{FLAT, SUDDEN};
use super::{Evidence, ExitEstimate, tolerance};
use slowstart::units::{Bytes, Instant, Span};
use std::collections::VecDeque;

/// Growth over acknowledged bytes is recorded this many times per window, for the last `WINDOWS` windows.
const MARKS: u64 = 16;
const WINDOWS: u64 = 4;
/// Bytes acknowledged over which growth must be measured at least: a sender holds back up to 64 kB for a
/// burst (`tcp_tso_should_defer`, GSO), and bytes in flight do not grow until the burst is sent, in slow
/// start either.
const BURST: Bytes = Bytes(65_536);
/// As many of the largest bursts seen are enough.
const BURSTS: u64 = 2;
/// Growth over acknowledged bytes, in percent, of a window that grows (slow start: 50 or more, by RFC 5681
/// §3.1 with an ACK for every second segment; half of that tells it from congestion avoidance).
const GROWING: u64 = 25;
/// A burst of growth begins after a silence of this many percent of an RTT (`SILENT`). Bursts of a sender
/// that grows in every second round trip (Vegas) are more than `APART` percent of an RTT apart: half way
/// between one and two.
const SILENT: u64 = 90;
const APART: u64 = 150;
/// Maximum growth of one burst, in percent: a doubling, plus what delayed ACKs carry over.
const BURST_GROWTH: u64 = 250;
/// Maximum number of records of a new maximum in flight, each a segment or 1 % above the one before it:
/// enough for a window of 900,000 segments.
const REACHED: usize = 1024;

/// Acknowledged bytes, and the maximum in flight, at a time.
#[derive(Copy, Clone, Debug)]
struct Mark {
    at: Instant,
    acked: Bytes,
    most: Bytes,
}

impl Mark {
    /// Growth per acknowledged byte until a later mark, in percent.
    fn slope(&self, to: &Self) -> u64 {
        (to.most - self.most).scale(100, (to.acked - self.acked).0.max(1)).0
    }
}

/// A new maximum in flight, and the RTT at that time.
#[derive(Copy, Clone, Debug)]
struct Reached {
    at: Instant,
    inflight: Bytes,
    rtt: Span,
}

/// What was in flight, and how it grew with what was acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    /// Maximum in flight so far.
    pub(super) most: Bytes,
    /// When the maximum was last in flight.
    pub(super) full: Instant,
    /// Acknowledged bytes that allowed new data to be sent.
    pub(super) acked: Bytes,
    /// Those when the newest data was sent: what is acknowledged after the last data shows nothing.
    pub(super) acked_at_last: Bytes,
    /// Bytes sent since the newest ACK, and the most between two.
    burst: Bytes,
    largest_burst: Bytes,
    /// Recorded `MARKS` times per window.
    marks: VecDeque<Mark>,
    reached: Vec<Reached>,
}

impl Flight {
    pub(super) fn on_sent(&mut self, at: Instant, inflight: Bytes, bytes: Bytes, mss: Bytes) {
        self.burst += bytes;
        if inflight + tolerance(self.most, mss) >= self.most {
            self.full = at;
        }
        self.most = self.most.max(inflight);
        self.acked_at_last = self.acked;
    }

    /// Records a new maximum in flight.
    pub(super) fn record(&mut self, at: Instant, inflight: Bytes, rtt: Span, mss: Bytes) {
        let most = self.reached.last().map_or(Bytes::ZERO, |r| r.inflight);
        let is_new = inflight >= most + mss.max(most / 100) || (most == Bytes::ZERO && inflight > most);
        if is_new && self.reached.len() < REACHED {
            self.reached.push(Reached { at, inflight, rtt });
        }
    }

    pub(super) fn on_ack(&mut self, at: Instant, bytes: Bytes) {
        let most = self.most;
        if most == Bytes::ZERO {
            return;
        }
        if self.acked > Bytes::ZERO {
            self.largest_burst = self.largest_burst.max(self.burst);
        }
        self.burst = Bytes::ZERO;
        self.acked += bytes;
        if self.marks.back().is_none_or(|m| self.acked >= m.acked + most / MARKS) {
            self.marks.push_back(Mark { at, acked: self.acked, most });
            if self.marks.len() as u64 > MARKS * WINDOWS {
                self.marks.pop_front();
            }
        }
    }

    /// The exit if slow start had ended before a loss at `at`, with `cwnd` in flight: from some mark on, the
    /// bytes in flight no longer grew with what was acknowledged, and before it they had, over half a window.
    pub(super) fn exit_before_loss(&self, at: Instant, cwnd: Bytes) -> Option<ExitEstimate> {
        let now = Mark { at, acked: self.acked, most: cwnd };
        let (_, knot) = self.marks.iter().enumerate().find(|(i, m)| {
            let is_long = now.acked >= m.acked + BURST.max(m.most / MARKS);
            let before = self.marks.iter().take(*i).rev().find(|b| b.acked + m.most / 2 <= m.acked);
            is_long && m.slope(&now) <= FLAT && before.is_some_and(|b| b.slope(m) >= SUDDEN)
        })?;
        Some(ExitEstimate { at: knot.at, cwnd: knot.most, evidence: Evidence::GrowthStopped })
    }

    /// Whether the bytes in flight grew with what was acknowledged, until `acked`, over the last half of a
    /// window, and over the last sixth of it or a burst; `None` if less was acknowledged.
    pub(super) fn grows(&self, acked: Bytes) -> Option<bool> {
        let over = |bytes: Bytes| {
            let then = self.marks.iter().rfind(|m| m.acked + bytes <= acked)?;
            Some((self.most - then.most).scale(100, (acked - then.acked).0.max(1)).0 >= GROWING)
        };
        let half = self.most / 2;
        let burst = BURST.min(self.largest_burst * BURSTS);
        Some(over(half)? && over((self.most / 6).max(burst).min(half))?)
    }

    /// When this many bytes were first in flight.
    pub(super) fn first(&self, inflight: Bytes) -> Option<Instant> {
        self.reached.iter().find(|r| r.inflight >= inflight).map(|r| r.at)
    }

    /// When growth to the plateau `level` stopped: when the plateau (within a segment or 2 %) was first in
    /// flight, or where growth changed before that; for a sender that grows in every second round trip, when
    /// the next growth was due.
    pub(super) fn stopped_at(&self, level: Bytes, mss: Bytes) -> Option<Instant> {
        let least = level - tolerance(level, mss);
        let i = self.reached.iter().position(|r| r.inflight >= least)?;
        let reached = self.reached[i].at;
        Some(next_growth(&self.reached[..=i]).or_else(|| self.knot(level, reached)).unwrap_or(reached))
    }

    /// Where growth over acknowledged bytes changed, if that was before the plateau was reached: a window
    /// that still grows in congestion avoidance reaches it late. The knot of the line of two pieces that fits
    /// the newest marks best by least squares, if the first piece is growth and the second is flat.
    fn knot(&self, level: Bytes, reached: Instant) -> Option<Instant> {
        let least = level - level.scale(FLAT, 100);
        let origin = *self.marks.front()?;
        let point = |m: &Mark| ((m.acked - origin.acked).0 as f64, (m.most - origin.most).0 as f64);
        let points: Vec<(f64, f64)> = self.marks.iter().map(point).collect();
        let mut best: Option<(f64, Instant)> = None;
        for (m, (x, _)) in self.marks.iter().zip(&points) {
            if m.most < least || m.at >= reached {
                continue;
            }
            if let Some(error) = hinge(&points, *x)
                && best.is_none_or(|b| error < b.0)
            {
                best = Some((error, m.at));
            }
        }
        best.map(|b| b.1)
    }
}

/// The squared error of a line with a knot at `x`, fitted to these points; `None` if it does not grow before
/// and stop there.
fn hinge(points: &[(f64, f64)], knot: f64) -> Option<f64> {
    // Normal equations of the slopes before and after the knot, and of the height there.
    let mut m = [[0.0; 4]; 3];
    for (x, y) in points {
        let row = [(x - knot).min(0.0), (x - knot).max(0.0), 1.0, *y];
        for i in 0..3 {
            for j in 0..4 {
                m[i][j] += row[i] * row[j];
            }
        }
    }
    let [a, b, c] = m;
    // No point is on both sides.
    let (before, after) = (a[0], b[1]);
    if before == 0.0 || after == 0.0 {
        return None;
    }
    let height = (c[3] - a[2] / before * a[3] - b[2] / after * b[3])
        / (c[2] - a[2] / before * a[2] - b[2] / after * b[2]);
    let (grows, flat) = ((a[3] - a[2] * height) / before, (b[3] - b[2] * height) / after);
    let fits = grows * 100.0 >= GROWING as f64 && flat * 100.0 <= FLAT as f64;
    let of = |x: f64| height + grows * (x - knot).min(0.0) + flat * (x - knot).max(0.0);
    fits.then(|| points.iter().map(|(x, y)| (y - of(*x)).powi(2)).sum())
}

/// When a sender that grows in every second round trip (Vegas) would have grown again.
fn next_growth(reached: &[Reached]) -> Option<Instant> {
    let flows = |a: &Reached, b: &Reached| b.rtt == Span::ZERO || b.at.since(a.at) < b.rtt.scale(SILENT, 100);
    let bursts: Vec<_> = reached.chunk_by(flows).collect();
    let mut at = None;
    for (i, pair) in bursts.windows(2).enumerate() {
        let ([.., before], [first, .., last] | [first @ last]) = (pair[0], pair[1]) else { return None };
        if last.inflight > before.inflight.scale(BURST_GROWTH, 100) {
            return None;
        }
        // The first burst is the initial window, and the second follows its first ACK.
        if i == 0 {
            continue;
        }
        let apart = first.at.since(pair[0][0].at);
        let one = first.rtt.scale(APART, 100);
        if apart < one || before.at.since(pair[0][0].at) > one || last.at.since(first.at) > one {
            return None;
        }
        at = Some(first.at + apart);
    }
    at
}
