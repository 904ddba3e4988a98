//! Dual-queue coupled PI2, `dualpi2` (RFC 9332), as Linux has it (`net/sched/sch_dualpi2.c`, 6.18).
//!
//! Departs from Linux: the timer of the probability fires exactly each `tupdate`; a packet that was marked
//! before is in the L queue by `any_ect` only, as with every mask of Linux; filters, packets in no class and
//! split aggregates are not there.

use slowstart::units::{Fixed, Instant, Span};

use super::store::Fifo;
use super::tc_syntax::{Grammar, MTU, Words, Wrong, at_least_a_tenth, short_span};
use super::{Departure, FULL, FULL_MEMORY, Kind, Packet, Queueing, Settings};
use crate::path::{Cause, quantity};
use crate::random::Stream;

/// The threshold above which every packet of the L queue is marked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Wait(Span),
    Packets(usize),
}

/// The parameters of `dualpi2`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// The most packets, and the most memory of them.
    pub(super) limit: usize,
    pub(super) memory_limit: u64,
    pub(super) target: Span,
    /// How often the probability is computed.
    pub(super) tupdate: Span,
    /// Gains, in 256ths of 1/s.
    pub(super) alpha: u32,
    pub(super) beta: u32,
    pub(super) step: Step,
    /// Number of packets in the L queue from which on the threshold applies.
    pub(super) min_qlen_step: usize,
    /// The probability of the L queue, in probabilities of the controller.
    pub(super) coupling: u32,
    /// True if overload drops from the L queue too, false if the limit does.
    pub(super) drop_on_overload: bool,
    /// True if packets are dropped when they come, false when they leave.
    pub(super) drop_enqueue: bool,
    /// True if every capable packet is in the L queue.
    pub(super) any_ect: bool,
    /// The share of the C queue where both are full, in hundredths.
    pub(super) classic_protection: i32,
    /// A full frame.
    pub(super) mtu: u32,
}

/// Its words.
pub(super) const GRAMMARS: &[Grammar] = &[Grammar {
    name: "dualpi2",
    values: &[
        "limit",
        "memlimit",
        "target",
        "tupdate",
        "alpha",
        "beta",
        "step_thresh",
        "min_qlen_step",
        "coupling_factor",
        "classic_protection",
    ],
    flags: &["drop_on_overload", "overflow", "drop_enqueue", "drop_dequeue", "l4s_ect", "any_ect"],
    ignored: (&[], &["split_gso", "no_split_gso"]),
    read: |w, _| Ok(Kind::DualPi2(read(w)?)),
}];

/// The parameters, with the defaults of `tc`.
fn read(w: &Words) -> Result<Params, Wrong> {
    let limit = w.packets("limit", 10_000)?;
    let step = |text: &str| {
        let packets = ["packets", "packet", "p"].iter().find_map(|unit| text.strip_suffix(unit));
        match packets {
            Some(n) => quantity::whole(n).map(|n| Step::Packets(n as usize)),
            None => short_span(text).map(Step::Wait),
        }
    };
    let percent = |text: &str| quantity::whole(text.strip_suffix('%').unwrap_or(text)).filter(|n| *n <= 100);
    let gains = "a number from 0.004 to 32767, such as 0.16";
    Ok(Params {
        limit,
        memory_limit: w.size("memlimit")?.map_or(limit as u64 * 2 * u64::from(MTU), u64::from),
        target: w.span("target", Span::millis(15))?,
        tupdate: at_least_a_tenth(w, Span::millis(16))?,
        alpha: w.get("alpha", read_gain, gains)?.unwrap_or(41),
        beta: w.get("beta", read_gain, gains)?.unwrap_or(819),
        step: w
            .get("step_thresh", step, "a length of time or packets, such as 1ms or 5p")?
            .unwrap_or(Step::Wait(Span::millis(1))),
        min_qlen_step: w.number("min_qlen_step", 0..=1 << 24)?.unwrap_or(0) as usize,
        coupling: w.number("coupling_factor", 1..=255)?.unwrap_or(2) as u32,
        drop_on_overload: w.is_on("drop_on_overload").unwrap_or(w.is_on("overflow") != Some(true)),
        drop_enqueue: w.is_on("drop_enqueue").unwrap_or(false) && w.is_on("drop_dequeue") != Some(true),
        any_ect: w.is_on("any_ect").unwrap_or(false),
        classic_protection: w
            .get("classic_protection", percent, "a share in percent, such as 10%")?
            .unwrap_or(10) as i32,
        mtu: MTU,
    })
}

/// A gain in 256ths of 1/s.
fn read_gain(text: &str) -> Option<u32> {
    let one = Fixed::ONE.unsigned_abs();
    let n = (quantity::decimal(text)?.checked_mul(256)? + one / 2) / one;
    (1..1 << 23).contains(&n).then_some(n as u32)
}

/// A probability of one.
const ONE: u32 = u32::MAX;

/// Where a packet is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Class {
    Classic,
    LowLatency,
}

/// A gain as the controller multiplies by it: for delays in units of 64 ns.
fn gain(per_256: u32) -> u64 {
    ((u64::from(per_256) * u64::from(ONE)) >> 2) / 1_000_000_000
}

/// Two queues under one controller.
#[derive(Clone, Debug)]
pub(super) struct DualPi2 {
    params: Params,
    gains: (i64, i64),
    stream: Stream,
    classic: Fifo,
    low: Fifo,
    memory: u64,
    /// Whether the threshold applies to each packet of the L queue; in their order.
    stepped: std::collections::VecDeque<bool>,
    probability: u32,
    last_delay: u64,
    update_at: Instant,
    /// Above zero, the C queue is served first.
    credit: i64,
}

impl DualPi2 {
    pub(super) fn new(params: Params, stream: Stream) -> Self {
        Self {
            gains: (gain(params.alpha) as i64, gain(params.beta) as i64),
            stream,
            classic: Fifo::default(),
            low: Fifo::default(),
            memory: 0,
            stepped: std::collections::VecDeque::new(),
            probability: 0,
            last_delay: 0,
            update_at: Instant::ZERO + params.tupdate,
            credit: first_credit(&params),
            params,
        }
    }

    fn advance(&mut self, now: Instant) {
        while self.update_at <= now {
            self.update();
            self.update_at = self.update_at + self.params.tupdate;
        }
    }

    /// Computes the probability from the longer of the two waits (RFC 9332 §2.4, appendix A).
    fn update(&mut self) {
        let wait = |q: &Fifo| q.first().map_or(0, |p| self.update_at.since(p.at).0);
        let delay = wait(&self.classic).max(wait(&self.low));
        let (alpha, beta) = self.gains;
        let delta = (delay as i64 - self.params.target.0 as i64).wrapping_mul(alpha)
            + (delay as i64 - self.last_delay as i64).wrapping_mul(beta);
        self.last_delay = delay;
        let change = (delta.unsigned_abs() >> 6) as u32;
        self.probability = if delta > 0 {
            self.probability.saturating_add(change)
        } else {
            self.probability.saturating_sub(change)
        };
        if !self.params.drop_on_overload {
            self.probability = self.probability.min(ONE / self.params.coupling);
        }
    }

    fn rolls(&mut self, probability: u32) -> bool {
        (self.stream.any() >> 32) as u32 <= probability
    }

    fn class(&self, p: &Packet) -> Class {
        let mask = if self.params.any_ect { 0b11 } else { 0b01 };
        if p.ecn as u8 & mask != 0 { Class::LowLatency } else { Class::Classic }
    }

    /// Marks the packet or returns true if it is to be dropped, by the probability of its queue.
    fn drops(&mut self, class: Class, p: &mut Packet, backlog: u32) -> bool {
        if backlog < 2 * self.params.mtu {
            return false;
        }
        let probability = self.probability;
        let coupled = u64::from(probability) * u64::from(self.params.coupling);
        let is_overloaded = coupled > u64::from(ONE);
        let squared = |q: &mut Self| q.rolls(probability) && q.rolls(probability);
        match class {
            Class::Classic => {
                if !squared(self) {
                    return false;
                }
                is_overloaded || !p.ecn.mark()
            }
            Class::LowLatency if is_overloaded => {
                if self.params.drop_on_overload && squared(self) {
                    return true;
                }
                p.ecn.mark();
                false
            }
            Class::LowLatency => self.rolls(coupled as u32) && !p.ecn.mark(),
        }
    }
}

impl Settings for Params {
    type Queue = DualPi2;
    const IS_RANDOM: bool = true;

    fn build(self, stream: Stream) -> DualPi2 {
        DualPi2::new(self, stream)
    }

    fn most_bytes(&self) -> u64 {
        (self.limit as u64).min(self.memory_limit / FULL_MEMORY) * FULL
    }
}

impl Queueing for DualPi2 {
    fn enqueue(&mut self, mut p: Packet, out: &mut Vec<Departure>) {
        self.advance(p.at);
        let class = self.class(&p);
        if self.packets() >= self.params.limit || self.memory + p.memory() > self.params.memory_limit {
            out.push(Departure::dropped(&p, p.at, Cause::QueueFull));
            return;
        }
        if self.params.drop_enqueue && self.drops(class, &mut p, self.frame_bytes()) {
            out.push(Departure::dropped(&p, p.at, Cause::Aqm));
            return;
        }
        self.memory += p.memory();
        if class == Class::LowLatency {
            self.stepped.push_back(self.low.packets() >= self.params.min_qlen_step);
            self.low.push(p);
        } else {
            self.classic.push(p);
        }
    }

    fn dequeue(&mut self, now: Instant, out: &mut Vec<Departure>) -> Option<Packet> {
        self.advance(now);
        loop {
            let both = self.low.packets() > 0 && self.classic.packets() > 0;
            let takes_low = self.low.packets() > 0 && (!both || self.credit <= 0);
            let (class, taken) = if takes_low {
                (Class::LowLatency, self.low.pop())
            } else {
                (Class::Classic, self.classic.pop())
            };
            let Some(mut p) = taken else {
                self.credit = first_credit(&self.params);
                return None;
            };
            self.memory -= p.memory();
            let weight = match class {
                _ if !both => 0,
                Class::LowLatency => self.params.classic_protection,
                Class::Classic => self.params.classic_protection - 100,
            };
            let is_stepped = takes_low && self.stepped.pop_front().unwrap_or(false);
            if !self.params.drop_enqueue && self.drops(class, &mut p, self.frame_bytes()) {
                out.push(Departure::dropped(&p, now, Cause::Aqm));
                continue;
            }
            let is_above = match self.params.step {
                Step::Wait(most) => now.since(p.at) > most,
                Step::Packets(most) => self.low.packets() > most,
            };
            if is_stepped && is_above && !p.ecn.mark() {
                out.push(Departure::dropped(&p, now, Cause::Aqm));
                continue;
            }
            self.credit += i64::from(weight) * i64::from(p.frame());
            return Some(p);
        }
    }

    fn packets(&self) -> usize {
        self.classic.packets() + self.low.packets()
    }

    fn frame_bytes(&self) -> u32 {
        self.classic.bytes() + self.low.bytes()
    }

    fn marks(&self) -> bool {
        true
    }

    fn probability(&self) -> Option<f64> {
        Some(f64::from(self.probability) / f64::from(ONE))
    }
}

/// The credit at first and after both queues were empty.
fn first_credit(p: &Params) -> i64 {
    i64::from(p.mtu) * i64::from(2 * p.classic_protection - 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Ecn;

    fn params() -> Params {
        Params {
            limit: 10_000,
            memory_limit: 10_000 * 2 * 1514,
            target: Span::millis(15),
            tupdate: Span::millis(16),
            alpha: 41,
            beta: 819,
            step: Step::Wait(Span::millis(1)),
            min_qlen_step: 0,
            coupling: 2,
            drop_on_overload: true,
            drop_enqueue: false,
            any_ect: false,
            classic_protection: 10,
            mtu: 1514,
        }
    }

    fn dual(params: Params) -> DualPi2 {
        DualPi2::new(params, Stream::named(1, "test"))
    }

    fn packet(ecn: Ecn, us: u64) -> Packet {
        Packet { bytes: 1500, ecn, at: Instant(us * 1000), ..Packet::default() }
    }

    #[test]
    fn ect1_and_marked_packets_are_low_latency_by_default() {
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            let mut q = dual(params());
            q.enqueue(packet(ecn, 0), &mut Vec::new());
            assert_eq!(q.low.packets() == 1, matches!(ecn, Ecn::Ect1 | Ecn::Ce), "{ecn:?}");
            let mut q = dual(Params { any_ect: true, ..params() });
            q.enqueue(packet(ecn, 0), &mut Vec::new());
            assert_eq!(q.low.packets() == 1, ecn.is_capable(), "{ecn:?}");
        }
    }

    #[test]
    fn the_step_marks_what_waited_more_than_a_millisecond() {
        let mut q = dual(params());
        let mut out = Vec::new();
        for (wait, want) in [(1000, Ecn::Ect1), (1001, Ecn::Ce)] {
            q.enqueue(packet(Ecn::Ect1, 10_000), &mut out);
            let sent = q.dequeue(Instant((10_000 + wait) * 1000), &mut out);
            assert_eq!(sent.map(|p| p.ecn), Some(want));
        }
        assert!(out.is_empty());
    }

    #[test]
    fn where_both_wait_the_classic_queue_gets_its_tenth() {
        let mut q = dual(params());
        let mut out = Vec::new();
        for _ in 0..500 {
            q.enqueue(packet(Ecn::Ect1, 0), &mut out);
            q.enqueue(packet(Ecn::NotEct, 0), &mut out);
        }
        let first: Vec<_> = (0..200).filter_map(|_| q.dequeue(Instant(1000), &mut out)).collect();
        let classic = first.iter().filter(|p| p.ecn == Ecn::NotEct).count();
        assert!(classic.abs_diff(20) <= 2, "{classic} of 200");
    }

    #[test]
    fn the_classic_queue_is_kept_at_its_target_by_the_square() {
        let mut q = dual(params());
        let mut out = Vec::new();
        let (mut dropped, mut waiting) = (0, 0);
        for ms in 0..120_000_u64 {
            for _ in 0..(ms + 1) * 12 / 10 - ms * 12 / 10 {
                q.enqueue(packet(Ecn::NotEct, ms * 1000), &mut out);
            }
            q.dequeue(Instant(ms * 1_000_000), &mut out);
            dropped += out.drain(..).count();
            waiting += q.packets();
        }
        // A sixth is too much; its root is 0.41.
        let p = q.probability().expect("it has one");
        assert!((p - 0.41).abs() < 0.06, "{p}");
        let mean = waiting / 120_000;
        assert!(dropped.abs_diff(24_000) < 1000 && (12..25).contains(&mean), "{dropped} dropped, {mean} ms");
    }

    #[test]
    fn the_l_queue_is_marked_with_the_coupled_probability() {
        let mut q = dual(Params { step: Step::Wait(Span::secs(9)), ..params() });
        q.probability = ONE / 10;
        q.update_at = Instant::NEVER;
        let mut out = Vec::new();
        for _ in 0..9000 {
            q.enqueue(packet(Ecn::Ect1, 0), &mut out);
        }
        let marked = (0..8900).filter(|_| q.dequeue(Instant(1), &mut out).unwrap().ecn == Ecn::Ce).count();
        // Five standard deviations of a binomial (8900, 1/5): 189.
        assert!(marked.abs_diff(1780) < 189 && out.is_empty(), "{marked}");
    }
}
