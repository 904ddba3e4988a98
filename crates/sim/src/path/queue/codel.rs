//! CoDel (RFC 8289), as Linux has it (`include/net/codel_impl.h`, `net/sched/sch_codel.c`, 6.18).
//!
//! Departs from RFC 8289 where Linux does: time counts in units of 1024 ns and wraps at 32 bits; the inverse
//! square root of the control law is an integer of 16 bits that one Newton step approaches whenever the count
//! changes; a backlog of at most one frame of `mtu` bytes, the packet at hand excluded, is never a standing
//! queue; a marked packet counts as dropped.

use slowstart::units::{Instant, Span};

use super::store::Fifo;
use super::tc_syntax::{Grammar, MTU, Words, Wrong, short_span, wrong};
use super::{Departure, FULL, Kind, Packet, Queueing, Settings};
use crate::path::Cause;
use crate::random::Stream;

/// The parameters of the control law; shared with FQ-CoDel.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Control {
    /// The acceptable standing delay.
    pub(super) target: Span,
    /// How long the delay must exceed it: about the greatest usual round-trip time.
    pub(super) interval: Span,
    /// The delay above which every capable packet is marked, if that is wanted.
    pub(super) ce_threshold: Option<Span>,
    /// True if capable packets are marked in place of being dropped.
    pub(super) ecn: bool,
    /// The frame below which a backlog is no queue.
    pub(super) mtu: u32,
}

impl Control {
    /// Reads its words; `ecn` is the default of that flag.
    pub(super) fn read(w: &Words, ecn: bool) -> Result<Self, Wrong> {
        let target = w.span("target", Span::millis(5))?;
        let interval = w.span("interval", Span::millis(100))?;
        if target > interval {
            let found = w.written("target").unwrap_or("5ms");
            let interval = w.written("interval").unwrap_or("100ms");
            return Err(wrong(
                format!("target {found}"),
                format!("a target of at most the interval, which is {interval}"),
            ));
        }
        Ok(Self {
            target,
            interval,
            ce_threshold: w.get("ce_threshold", short_span, "a length of time such as 1ms")?,
            ecn: w.is_on("ecn").unwrap_or(ecn),
            mtu: MTU,
        })
    }
}

/// Where a [`Law`] takes packets from.
pub(super) trait Feed {
    /// Removes the packet that has waited longest.
    fn take(&mut self) -> Option<Packet>;
    /// Bytes of the frames that wait in the whole discipline.
    fn backlog(&self) -> u32;
}

/// Time as CoDel counts it.
fn ticks(ns: u64) -> u32 {
    (ns >> 10) as u32
}

/// Whether `a` is after `b` on a clock that wraps.
const fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Bits of [`Law::inverse_root`] that are cut off.
const SHIFT: u32 = 16;

/// The state of CoDel for one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Law {
    /// Drops since it began to drop.
    pub(super) count: u32,
    /// `count` when it last began to.
    last_count: u32,
    dropping: bool,
    /// 2^16 / sqrt(count), approximately.
    inverse_root: u16,
    /// When the delay will have been above the target for an interval; 0 if it is not above.
    first_above: u32,
    /// When the next packet is to be dropped.
    drop_next: u32,
    /// How long the last packet waited.
    delay: u32,
}

impl Law {
    /// One step of Newton's method towards 1/sqrt(count): x' = x (3 - count x²) / 2, in fractions of 2^32.
    fn newton(&mut self) {
        let x = u64::from(self.inverse_root) << SHIFT;
        let square = (x * x) >> 32;
        let rest = (3_u64 << 32).wrapping_sub(u64::from(self.count) * square) >> 2;
        self.inverse_root = ((rest.wrapping_mul(x) >> 31) >> SHIFT) as u16;
    }

    /// An interval, divided by the square root of the count, after `from`.
    fn after(&self, from: u32, c: &Control) -> u32 {
        let root = u64::from(self.inverse_root) << SHIFT;
        from.wrapping_add(((u64::from(ticks(c.interval.0)) * root) >> 32) as u32)
    }

    /// Whether the delay has been above the target for an interval.
    fn is_standing(&mut self, p: Option<&Packet>, backlog: u32, now: u32, c: &Control) -> bool {
        let Some(p) = p else {
            self.first_above = 0;
            return false;
        };
        self.delay = now.wrapping_sub(ticks(p.at.0));
        if is_after(ticks(c.target.0), self.delay) || backlog <= c.mtu {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now.wrapping_add(ticks(c.interval.0));
            return false;
        }
        is_after(now, self.first_above)
    }

    /// Takes the next packet to send; adds those that it drops to `out`.
    pub(super) fn dequeue(
        &mut self,
        c: &Control,
        at: Instant,
        feed: &mut impl Feed,
        out: &mut Vec<Departure>,
    ) -> Option<Packet> {
        let now = ticks(at.0);
        let Some(first) = feed.take() else {
            (self.first_above, self.dropping) = (0, false);
            return None;
        };
        let standing = self.is_standing(Some(&first), feed.backlog(), now, c);
        let mut p = Some(first);
        if self.dropping {
            self.dropping = standing;
            while self.dropping && !is_after(self.drop_next, now) {
                self.count = self.count.wrapping_add(1);
                self.newton();
                if c.ecn && p.as_mut().is_some_and(|p| p.ecn.mark()) {
                    self.drop_next = self.after(self.drop_next, c);
                    break;
                }
                out.extend(p.map(|p| Departure::dropped(&p, at, Cause::Aqm)));
                p = feed.take();
                self.dropping = self.is_standing(p.as_ref(), feed.backlog(), now, c);
                if self.dropping {
                    self.drop_next = self.after(self.drop_next, c);
                }
            }
        } else if standing {
            if !(c.ecn && p.as_mut().is_some_and(|p| p.ecn.mark())) {
                out.extend(p.map(|p| Departure::dropped(&p, at, Cause::Aqm)));
                p = feed.take();
                self.is_standing(p.as_ref(), feed.backlog(), now, c);
            }
            self.begin(now, c);
        }
        if let (Some(p), Some(most)) = (&mut p, c.ce_threshold)
            && is_after(self.delay, ticks(most.0))
        {
            p.ecn.mark();
        }
        p
    }

    /// Begins to drop: at the frequency of the last time, if that was within 16 intervals.
    fn begin(&mut self, now: u32, c: &Control) {
        self.dropping = true;
        let recent = self.count.wrapping_sub(self.last_count);
        let since = now.wrapping_sub(self.drop_next);
        if recent > 1 && is_after(16_u32.wrapping_mul(ticks(c.interval.0)), since) {
            self.count = recent;
            self.newton();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.after(now, c);
    }
}

/// The parameters of `codel`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    pub(super) control: Control,
    /// The most packets.
    pub(super) limit: usize,
}

/// Its words.
pub(super) const GRAMMARS: &[Grammar] = &[Grammar {
    name: "codel",
    values: &["limit", "target", "interval", "ce_threshold"],
    flags: &["ecn"],
    ignored: (&[], &[]),
    read: |w, _| {
        Ok(Kind::Codel(Params { control: Control::read(w, false)?, limit: w.packets("limit", 1000)? }))
    },
}];

/// One queue under CoDel.
#[derive(Clone, Debug)]
pub(super) struct Codel {
    params: Params,
    law: Law,
    queue: Fifo,
}

impl Feed for Fifo {
    fn take(&mut self) -> Option<Packet> {
        self.pop()
    }

    fn backlog(&self) -> u32 {
        self.bytes()
    }
}

impl Codel {
    pub(super) fn new(params: Params) -> Self {
        Self { params, law: Law::default(), queue: Fifo::default() }
    }
}

impl Settings for Params {
    type Queue = Codel;

    fn build(self, _: Stream) -> Codel {
        Codel::new(self)
    }

    fn most_bytes(&self) -> u64 {
        self.limit as u64 * FULL
    }
}

impl Queueing for Codel {
    fn enqueue(&mut self, p: Packet, out: &mut Vec<Departure>) {
        if self.queue.packets() < self.params.limit {
            self.queue.push(p);
        } else {
            out.push(Departure::dropped(&p, p.at, Cause::QueueFull));
        }
    }

    fn dequeue(&mut self, now: Instant, out: &mut Vec<Departure>) -> Option<Packet> {
        self.law.dequeue(&self.params.control, now, &mut self.queue, out)
    }

    fn packets(&self) -> usize {
        self.queue.packets()
    }

    fn frame_bytes(&self) -> u32 {
        self.queue.bytes()
    }

    fn marks(&self) -> bool {
        self.params.control.ecn || self.params.control.ce_threshold.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Ecn;

    fn control() -> Control {
        Control {
            target: Span::millis(5),
            interval: Span::millis(100),
            ce_threshold: None,
            ecn: false,
            mtu: 1514,
        }
    }

    /// Feeds a queue that always has a delay of 20 ms, a packet each millisecond; when packets are dropped,
    /// in milliseconds.
    fn drops(c: Control, ecn: Ecn, until_ms: u64) -> Vec<u64> {
        let mut codel = Codel::new(Params { control: c, limit: 1000 });
        let (mut seen, mut out) = (Vec::new(), Vec::new());
        let at = |ms: u64| Instant(ms * 1_000_000);
        for ms in 0..until_ms {
            codel.enqueue(Packet { bytes: 1500, ecn, at: at(ms), ..Packet::default() }, &mut out);
            if ms >= 20 {
                let waits = codel.queue.first().is_some_and(|p| at(ms).since(p.at) >= Span::millis(20));
                let sent = waits.then(|| codel.dequeue(at(ms), &mut out)).flatten();
                if !out.is_empty() || sent.is_some_and(|p| p.ecn == Ecn::Ce) {
                    seen.push(ms);
                    out.clear();
                }
            }
        }
        seen
    }

    #[test]
    fn it_marks_at_intervals_divided_by_the_root_of_the_count() {
        let c = Control { ecn: true, ..control() };
        let seen = drops(c, Ecn::Ect0, 1000);
        // The first mark an interval after the delay was first seen (at 20 ms), then after 100/sqrt(n) ms
        // each (RFC 8289 §3.3): 100, 71, 58, 50 ms. Linux's root is one Newton step a count: 100, 50, 56, 49
        // ms.
        assert_eq!(seen[0], 121);
        let (mut next, mut root) = (121.0, 1.0);
        for (n, at) in (1..).zip(&seen[1..9]) {
            root = if n > 1 { root * (3.0 - f64::from(n) * root * root) / 2.0 } else { root };
            next += 100.0 * root;
            assert!((*at as f64 - next).abs() <= 1.0, "mark {n} at {at} ms, not {next}");
        }
    }

    #[test]
    fn a_packet_that_is_not_capable_is_dropped() {
        let c = Control { ecn: true, ..control() };
        assert_eq!(drops(c, Ecn::NotEct, 125), [121]);
        assert_eq!(drops(control(), Ecn::Ect0, 125), [121]);
    }

    #[test]
    fn a_delay_below_the_target_or_one_packet_alone_is_no_queue() {
        let c = Control { target: Span::millis(21), ..control() };
        assert_eq!(drops(c, Ecn::NotEct, 1000), [0; 0]);
        let c = Control { mtu: 100 * 1514, ..control() };
        assert_eq!(drops(c, Ecn::NotEct, 1000), [0; 0]);
    }

    #[test]
    fn above_the_threshold_each_capable_packet_is_marked() {
        let c = Control { ce_threshold: Some(Span::millis(19)), ..control() };
        assert_eq!(drops(c, Ecn::Ect1, 100).len(), 80);
        assert_eq!(drops(c, Ecn::NotEct, 100).len(), 0);
    }

    #[test]
    fn the_integer_inverse_root_is_near_the_true_one() {
        let mut law = Law { inverse_root: u16::MAX, count: 1, ..Law::default() };
        for n in 2..2000_u32 {
            law.count = n;
            law.newton();
            let (got, want) = (f64::from(law.inverse_root) / 65536.0, 1.0 / f64::from(n).sqrt());
            // One step a count is coarse at first: Linux accepts it.
            assert!((got / want - 1.0).abs() < if n < 8 { 0.3 } else { 0.02 }, "{n}: {got}, not {want}");
        }
    }
}
