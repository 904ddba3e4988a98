//! PIE (RFC 8033), as Linux has it (`net/sched/sch_pie.c`, `include/net/pie.h`, 6.18).
//!
//! Departs from RFC 8033 where Linux does: the delay is the wait of the last packet sent, not an estimate by
//! the drain rate (`dq_rate_estimator` is not there); time counts in units of 64 ns. Departs from Linux:
//! `tupdate` is not rounded to jiffies, and the first update comes half a second after the start of the run.

use slowstart::units::{Instant, Span};

use super::store::Fifo;
use super::tc_syntax::{Grammar, MTU, at_least_a_tenth};
use super::{Departure, FULL, Kind, Packet, Queueing, Settings};
use crate::path::Cause;
use crate::random::Stream;

/// The parameters of `pie`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// The most packets.
    pub(super) limit: usize,
    pub(super) target: Span,
    /// How often the probability is computed.
    pub(super) tupdate: Span,
    /// Sixteenths of 1/s.
    pub(super) alpha: u32,
    pub(super) beta: u32,
    /// True if capable packets are marked in place of being dropped, up to a probability of a tenth.
    pub(super) ecn: bool,
    /// True if small packets are dropped less often.
    pub(super) bytemode: bool,
    /// A full frame.
    pub(super) mtu: u32,
}

/// Its words.
pub(super) const GRAMMARS: &[Grammar] = &[Grammar {
    name: "pie",
    values: &["limit", "target", "tupdate", "alpha", "beta"],
    flags: &["ecn", "bytemode"],
    ignored: (&[], &["no_dq_rate_estimator"]),
    read: |w, _| {
        Ok(Kind::Pie(Params {
            limit: w.packets("limit", 1000)?,
            target: w.span("target", Span::millis(15))?,
            tupdate: at_least_a_tenth(w, Span::millis(15))?,
            alpha: w.number("alpha", 0..=32)?.unwrap_or(2) as u32,
            beta: w.number("beta", 0..=32)?.unwrap_or(20) as u32,
            ecn: w.is_on("ecn").unwrap_or(false),
            bytemode: w.is_on("bytemode").unwrap_or(false),
            mtu: MTU,
        }))
    },
}];

/// A probability of one.
const ONE: u64 = u64::MAX >> 8;
/// What a burst may last without drops.
const BURST: u64 = 150_000_000 >> 6;
/// Ticks in a second, as far as the gains are concerned (`PSCHED_TICKS_PER_SEC`).
const TICKS_PER_S: u64 = 1_000_000_000 >> 6;

fn ticks(ns: u64) -> u64 {
    ns >> 6
}

/// One queue under PIE.
#[derive(Clone, Debug)]
pub(super) struct Pie {
    params: Params,
    stream: Stream,
    queue: Fifo,
    /// When the probability is computed next.
    update_at: Instant,
    /// The wait of the last packet sent, and the same at the last update.
    delay: u64,
    old_delay: u64,
    /// What is left of the burst allowance.
    burst: u64,
    /// When the last packet was sent, since the state was reset.
    last_sent: Option<u64>,
    probability: u64,
    /// The sum of probabilities since the last drop.
    accumulated: u64,
}

impl Pie {
    pub(super) fn new(params: Params, stream: Stream) -> Self {
        Self {
            params,
            stream,
            queue: Fifo::default(),
            update_at: Instant::ZERO + Span::millis(500),
            delay: 0,
            old_delay: 0,
            burst: BURST,
            last_sent: None,
            probability: 0,
            accumulated: 0,
        }
    }

    /// Makes the updates that are due before `now`.
    fn advance(&mut self, now: Instant) {
        while self.update_at <= now {
            self.update();
            self.update_at = self.update_at + self.params.tupdate;
        }
    }

    /// Whether an arriving packet is to be dropped or marked (RFC 8033 §4.1, with §5.1's and §5.4's
    /// safeguards).
    fn is_chosen(&mut self, p: &Packet) -> bool {
        let Params { target, mtu, bytemode, .. } = self.params;
        let is_short = self.delay < ticks(target.0) / 2 && self.probability < ONE / 5;
        if self.burst > 0 || is_short || self.queue.bytes() < 2 * mtu {
            return false;
        }
        let chance = if bytemode && p.frame() <= mtu {
            u64::from(p.frame()) * (self.probability / u64::from(mtu))
        } else {
            self.probability
        };
        self.accumulated = if chance == 0 { 0 } else { self.accumulated.wrapping_add(chance) };
        if self.accumulated < ONE / 100 * 85 {
            return false;
        }
        if self.accumulated >= ONE / 2 * 17 {
            return true;
        }
        if self.stream.any() >> 8 < chance {
            self.accumulated = 0;
            return true;
        }
        false
    }

    /// Computes the probability (RFC 8033 §4.2).
    fn update(&mut self) {
        let (delay, old) = (self.delay, self.old_delay);
        // A delay of zero with a backlog: too few packets to tell.
        let mut may_decay = delay != 0 || self.queue.bytes() == 0;
        let (mut alpha, mut beta) = (
            (u64::from(self.params.alpha) * (ONE / TICKS_PER_S)) >> 4,
            (u64::from(self.params.beta) * (ONE / TICKS_PER_S)) >> 4,
        );
        if self.probability < ONE / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100;
            while self.probability < ONE / power && power <= 1_000_000 {
                (alpha, beta) = (alpha >> 2, beta >> 2);
                power *= 10;
            }
        }
        let target = ticks(self.params.target.0);
        let by_target = alpha.wrapping_mul(delay.wrapping_sub(target));
        let by_trend = beta.wrapping_mul(delay.wrapping_sub(old));
        let mut delta = by_target.wrapping_add(by_trend) as i64;
        if delta > (ONE / 50) as i64 && self.probability >= ONE / 10 {
            delta = (ONE / 100 * 2) as i64;
        }
        if delay > ticks(250_000_000) {
            delta += (ONE / 50) as i64;
        }
        let before = self.probability;
        self.probability = before.wrapping_add(delta as u64);
        if delta > 0 {
            // As in Linux, only an overflow of 64 bits is one: a probability above one drops each packet all
            // the same.
            if self.probability < before {
                self.probability = ONE;
                may_decay = false;
            }
        } else if self.probability > before {
            self.probability = 0;
        }
        if delay == 0 && old == 0 && may_decay {
            self.probability -= self.probability / 64;
        }
        if delay < target / 2 && old < target / 2 && self.probability == 0 {
            (self.burst, self.last_sent, self.accumulated) = (BURST, None, 0);
        }
        self.old_delay = delay;
    }
}

impl Settings for Params {
    type Queue = Pie;
    const IS_RANDOM: bool = true;

    fn build(self, stream: Stream) -> Pie {
        Pie::new(self, stream)
    }

    fn most_bytes(&self) -> u64 {
        self.limit as u64 * FULL
    }
}

impl Queueing for Pie {
    fn enqueue(&mut self, mut p: Packet, out: &mut Vec<Departure>) {
        self.advance(p.at);
        let cause = if self.queue.packets() >= self.params.limit {
            Cause::QueueFull
        } else if !self.is_chosen(&p) || (self.params.ecn && self.probability <= ONE / 10 && p.ecn.mark()) {
            self.queue.push(p);
            return;
        } else {
            Cause::Aqm
        };
        self.accumulated = 0;
        out.push(Departure::dropped(&p, p.at, cause));
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<Departure>) -> Option<Packet> {
        self.advance(now);
        let p = self.queue.pop()?;
        let at = ticks(now.0);
        let since = self.last_sent.map_or(0, |last| at - last);
        self.last_sent = Some(at);
        self.delay = if self.queue.bytes() == 0 { 0 } else { at - ticks(p.at.0) };
        self.burst = self.burst.saturating_sub(since);
        Some(p)
    }

    fn packets(&self) -> usize {
        self.queue.packets()
    }

    fn frame_bytes(&self) -> u32 {
        self.queue.bytes()
    }

    fn marks(&self) -> bool {
        self.params.ecn
    }

    fn probability(&self) -> Option<f64> {
        Some(self.probability as f64 / ONE as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Ecn;

    fn params() -> Params {
        Params {
            limit: 1000,
            target: Span::millis(15),
            tupdate: Span::millis(15),
            alpha: 2,
            beta: 20,
            ecn: false,
            bytemode: false,
            mtu: 1514,
        }
    }

    fn pie(params: Params) -> Pie {
        Pie::new(params, Stream::named(1, "test"))
    }

    /// Sends a packet each `gap` and serves one each millisecond for `ms`; counts of those dropped and
    /// marked.
    fn load(q: &mut Pie, ecn: Ecn, per_ten_ms: u64, ms: u64) -> (usize, usize) {
        let (mut dropped, mut marked, mut out) = (0, 0, Vec::new());
        for t in 0..ms {
            let at = Instant(t * 1_000_000);
            for _ in 0..(t + 1) * per_ten_ms / 10 - t * per_ten_ms / 10 {
                q.enqueue(Packet { bytes: 1500, ecn, at, ..Packet::default() }, &mut out);
            }
            dropped += out.drain(..).count();
            marked += usize::from(q.dequeue(at, &mut out).is_some_and(|p| p.ecn == Ecn::Ce));
        }
        (dropped, marked)
    }

    #[test]
    fn a_first_burst_passes_and_then_the_excess_is_dropped() {
        let mut q = pie(params());
        // 150 ms of burst allowance and the first update after 500 ms.
        assert_eq!(load(&mut q, Ecn::NotEct, 12, 500).0, 0);
        let mut q = pie(params());
        let (dropped, _) = load(&mut q, Ecn::NotEct, 12, 60_000);
        // A fifth of 1.2 packets a millisecond is too much: 12,000 packets.
        assert!(dropped.abs_diff(12_000) < 600, "{dropped}");
        // A drop comes 0.85 / p packets after the last at the earliest, and then by chance (RFC 8033 §5.4).
        let p = q.probability().expect("it has one");
        let between = (0.85 / p).ceil() - 1.0 + 1.0 / p;
        assert!((between - 6.0).abs() < 1.5, "{p}: {between} packets");
        let waits = q.queue.packets();
        assert!((5..40).contains(&waits), "{waits} packets of 1 ms where the target is 15 ms");
    }

    #[test]
    fn capable_packets_are_marked_up_to_a_tenth() {
        for (probability, ecn, marks) in
            [(ONE / 10, true, true), (ONE / 9, true, false), (ONE / 10, false, false)]
        {
            let mut q = pie(Params { ecn, limit: 20_000, ..params() });
            (q.probability, q.burst, q.update_at) = (probability, 0, Instant::NEVER);
            let (dropped, marked) = load(&mut q, Ecn::Ect0, 20, 10_000);
            assert!((dropped == 0) == marks && (marked > 0) == marks, "{marked} marked, {dropped} dropped");
        }
    }

    #[test]
    fn a_short_queue_loses_nothing() {
        assert_eq!(load(&mut pie(params()), Ecn::NotEct, 9, 60_000).0, 0);
    }
}
