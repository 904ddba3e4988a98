//! The link and the queue before it.
//!
//! A packet leaves the queue when its service begins, so one in service does not count. Its departure is
//! computed when it enters: the queue is a list of service times, and each query first removes those that
//! have passed.

use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::HostQueue;
use std::collections::VecDeque;

use super::bucket::Buckets;
use super::rates::{Rates, Spacing};
use super::trace::Opportunities;
use super::{Cause, Dropped, PacketInfo};
use crate::fifo::Fifo;
use crate::random::Stream;

/// The limit of the queue. A packet that would exceed it is dropped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Infinite,
    Packets(u64),
    Bytes(Bytes),
    /// How long a packet may wait.
    Time(Span),
}

/// The active queue management of the SEARCH thesis' GEO gateway (5.1.1): above a backlog, a random share is
/// dropped.
#[derive(Clone, Debug)]
pub(super) struct RandomDrop {
    /// The share, in millionths.
    pub(super) share: u32,
    pub(super) above: Bytes,
    pub(super) stream: Stream,
}

/// When packets are served.
#[derive(Clone, Debug)]
pub(super) enum Service {
    Rates(Rates),
    Opportunities(Opportunities),
    /// One of the others behind token buckets.
    Shaped(Box<(Self, Buckets)>),
}

impl Service {
    /// When the link has sent the packets before.
    #[inline]
    pub(super) fn free(&self, now: Instant) -> Instant {
        match self {
            Self::Rates(r) => r.start(now),
            Self::Opportunities(o) => o.start(now),
            Self::Shaped(s) => s.0.free(now),
        }
    }

    /// When the service of a packet that arrives now begins.
    fn start(&self, now: Instant, bytes: u32) -> Instant {
        match self {
            Self::Rates(r) => r.start(now),
            Self::Opportunities(o) => o.start(now),
            Self::Shaped(s) => s.1.ready(s.0.free(now), bytes),
        }
    }

    /// Sends a packet that arrives now; when its last bit leaves.
    #[inline]
    pub(super) fn send(&mut self, now: Instant, bytes: u32) -> Instant {
        match self {
            Self::Rates(r) => r.send(now, bytes),
            Self::Opportunities(o) => o.send(now, bytes),
            Self::Shaped(s) => Self::send_shaped(s, now, bytes),
        }
    }

    #[inline(never)]
    fn send_shaped((service, buckets): &mut (Self, Buckets), now: Instant, bytes: u32) -> Instant {
        let start = buckets.ready(service.free(now), bytes);
        buckets.take(start, bytes);
        service.send(start, bytes)
    }

    pub(super) fn abandon(&mut self, at: Instant) {
        match self {
            Self::Rates(r) => r.abandon(at),
            Self::Opportunities(o) => o.abandon(at),
            Self::Shaped(s) => s.0.abandon(at),
        }
    }

    pub(super) fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        match self {
            Self::Rates(r) => r.capacity(from, to),
            Self::Opportunities(o) => o.capacity(from, to),
            Self::Shaped(s) => s.0.capacity(from, to).min(s.1.capacity(from, to)),
        }
    }
}

/// A link and its queue.
#[derive(Clone, Debug)]
pub(super) struct Link {
    service: Service,
    queue: Queue,
}

/// A packet that waits, or several that follow each other.
#[derive(Copy, Clone, Debug, Default)]
struct Waiting {
    /// When the service of the first begins, and when that of the last ends; the same time for a single one.
    start: Instant,
    end: Instant,
    packets: u32,
    /// The bytes of each.
    bytes: u32,
}

/// The queue of a link.
#[derive(Clone, Debug)]
struct Queue {
    limit: Limit,
    /// The limit in bytes, the most frequent, or the greatest value.
    most: Bytes,
    random_drop: Option<RandomDrop>,
    /// Packets that wait longer than this are marked, if they can be.
    mark_above: Option<Span>,
    /// True if the last ECN-capable packet was marked.
    marked: bool,
    waiting: Fifo<Waiting>,
    /// How the packets of those that are several follow each other.
    spacings: VecDeque<Spacing>,
    /// Number of packets behind the first of these, and the bytes of all.
    behind: u64,
    backlog: u64,
    /// Bytes of all packets taken so far that were not thrown away later.
    admitted: u64,
}

impl Queue {
    /// Takes a packet whose service begins at `start`.
    #[allow(clippy::inline_always, reason = "each packet passes here, from one place that matters")]
    #[inline(always)]
    fn admit(&mut self, now: Instant, start: Instant, bytes: u32, capable: bool) -> Result<(), Dropped> {
        self.forget_begun(now);
        if let Some(aqm) = &mut self.random_drop
            && Bytes(self.backlog) > aqm.above
            && aqm.stream.chance(aqm.share)
        {
            return Err(Dropped::new(now, Cause::Aqm));
        }
        if capable {
            self.marked = self.mark_above.is_some_and(|most| start.since(now) > most);
        }
        if start > now {
            let late = matches!(self.limit, Limit::Time(most) if start.since(now) > most);
            if late || !self.has_room(bytes, 1) && !self.has_room_now(now, bytes) {
                return Err(Dropped::new(now, Cause::QueueFull));
            }
            self.waiting.push(Waiting { start, end: start, packets: 1, bytes });
            self.backlog += u64::from(bytes);
        }
        self.admitted += u64::from(bytes);
        Ok(())
    }

    /// Number of waiting packets.
    fn packets(&self) -> u64 {
        self.waiting.len() as u64 + self.behind
    }

    /// True if there is room for `n` packets.
    #[inline]
    fn has_room(&self, bytes: u32, n: u32) -> bool {
        self.backlog + u64::from(n) * u64::from(bytes) <= self.most.0
            && !matches!(self.limit, Limit::Packets(most) if self.packets() + u64::from(n) > most)
    }

    #[inline(never)]
    fn has_room_now(&mut self, now: Instant, bytes: u32) -> bool {
        self.backlog(now);
        self.has_room(bytes, 1)
    }

    /// True if of `n` packets that arrive now none can be dropped.
    fn takes_all(&mut self, now: Instant, bytes: u32, n: u32) -> bool {
        self.forget_begun(now);
        self.random_drop.is_none() && !matches!(self.limit, Limit::Time(_)) && self.has_room(bytes, n)
    }

    /// Removes what no longer waits, but for those of several of which the last still does, or is in service.
    #[inline]
    fn forget_begun(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front().filter(|w| w.end <= now) {
            self.backlog -= u64::from(first.packets) * u64::from(first.bytes);
            if first.start < first.end {
                self.behind -= u64::from(first.packets - 1);
                self.spacings.pop_front();
            }
            self.waiting.skip();
        }
    }

    /// The waiting bytes.
    fn backlog(&mut self, now: Instant) -> Bytes {
        self.forget_begun(now);
        while let Some(first) = self.waiting.front_mut().filter(|w| w.start <= now) {
            self.backlog -= u64::from(first.bytes);
            let Some(spacing) = self.spacings.front_mut().filter(|_| first.packets > 1) else {
                self.spacings.pop_front();
                self.waiting.skip();
                continue;
            };
            first.start = spacing.next(first.start);
            first.packets -= 1;
            self.behind -= 1;
        }
        Bytes(self.backlog)
    }
}

impl Link {
    pub(super) fn new(service: Service, limit: Limit, random_drop: Option<RandomDrop>) -> Self {
        let queue = Queue {
            limit,
            most: if let Limit::Bytes(most) = limit { most } else { Bytes::MAX },
            random_drop,
            mark_above: None,
            marked: false,
            waiting: Fifo::default(),
            spacings: VecDeque::new(),
            behind: 0,
            backlog: 0,
            admitted: 0,
        };
        Self { service, queue }
    }

    /// Marks ECN-capable packets that wait longer than `above`: the step of DCTCP (RFC 8257 §3.1) and of the
    /// L4S queue of RFC 9332, in time.
    pub(super) fn with_marks(mut self, above: Option<Span>) -> Self {
        self.queue.mark_above = above;
        self
    }

    /// Returns true if it may mark packets.
    pub(super) fn marks(&self) -> bool {
        self.queue.mark_above.is_some()
    }

    /// Returns true if the last ECN-capable packet was marked.
    pub(super) fn marked(&self) -> bool {
        self.queue.marked
    }

    #[allow(clippy::inline_always, reason = "each packet passes here, from one place that matters")]
    #[inline(always)]
    pub(super) fn pass(&mut self, now: Instant, p: &PacketInfo) -> Result<Instant, Dropped> {
        self.pass_capable(now, p.bytes, p.ecn.is_capable())
    }

    /// [`Self::pass`] by the numbers of a packet that matter, for a caller that knows them.
    #[allow(clippy::inline_always, reason = "each packet passes here, from one place that matters")]
    #[inline(always)]
    pub(super) fn pass_capable(
        &mut self,
        now: Instant,
        bytes: u32,
        capable: bool,
    ) -> Result<Instant, Dropped> {
        let Service::Rates(rates) = &mut self.service else { return self.pass_special(now, bytes, capable) };
        self.queue.admit(now, rates.start(now), bytes, capable)?;
        Ok(rates.send(now, bytes))
    }

    /// Takes `n` packets that arrive now and are not ECN-capable, if they leave at one rate and none can be
    /// dropped; else does nothing. Returns when the first has left, and how the others follow.
    #[inline]
    pub(super) fn pass_run(&mut self, now: Instant, bytes: u32, n: u32) -> Option<(Instant, Spacing)> {
        let Service::Rates(rates) = &mut self.service else { return None };
        if !self.queue.takes_all(now, bytes, n) {
            return None;
        }
        let (start, mut spacing) = rates.send_run(now, bytes, n)?;
        let of_all = spacing;
        let (first, end) = (spacing.next(start), rates.start(now));
        // The first does not wait if the link is free.
        let (start, of_waiting, packets) =
            if start > now { (start, of_all, n) } else { (first, spacing, n - 1) };
        let queue = &mut self.queue;
        queue.waiting.push(Waiting { start, end, packets, bytes });
        queue.spacings.push_back(of_waiting);
        queue.behind += u64::from(packets - 1);
        queue.backlog += u64::from(packets) * u64::from(bytes);
        self.queue.admitted += u64::from(n) * u64::from(bytes);
        Some((first, spacing))
    }

    #[inline(never)]
    fn pass_special(&mut self, now: Instant, bytes: u32, capable: bool) -> Result<Instant, Dropped> {
        self.queue.admit(now, self.service.start(now, bytes), bytes, capable)?;
        Ok(self.service.send(now, bytes))
    }

    /// [`Self::pass_capable`] out of line, for a link that is not the first of its direction: few are.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_behind(
        &mut self,
        now: Instant,
        bytes: u32,
        capable: bool,
    ) -> Result<Instant, Dropped> {
        self.pass_capable(now, bytes, capable)
    }

    /// Returns the used and the total space, and for how many packets of `packet` bytes there is space.
    pub(super) fn room(&mut self, now: Instant, packet: u32) -> (HostQueue, u64) {
        let used = self.backlog(now);
        let packet = Bytes(u64::from(packet));
        let (limit, room) = match self.queue.limit {
            Limit::Packets(n) => (packet * n, n.saturating_sub(self.queue.packets())),
            Limit::Bytes(bytes) => (bytes, (bytes - used).units(packet)),
            // A path file is refused that makes an interface of such a queue.
            Limit::Infinite | Limit::Time(_) => (Bytes::MAX, (Bytes::MAX - used).units(packet)),
        };
        (HostQueue { used, limit }, room)
    }

    /// Returns the waiting bytes.
    pub(super) fn backlog(&mut self, now: Instant) -> Bytes {
        self.queue.backlog(now)
    }

    /// Returns the bytes that have left it by `now`, not earlier than any call before; `None` unless it is
    /// limited by a rate alone, for what others leave unused is not known.
    pub(super) fn carried(&self, now: Instant) -> Option<Bytes> {
        let Service::Rates(rates) = &self.service else { return None };
        Some(Bytes(self.queue.admitted) - rates.capacity(now, rates.start(now)))
    }

    /// Empties the queue at `at`: what has not left by then never does. Not before a packet that has passed.
    pub(super) fn flush(&mut self, at: Instant) {
        if let Some(carried) = self.carried(at) {
            self.queue.admitted = carried.0;
        }
        (self.queue.waiting, self.queue.behind, self.queue.backlog) = (Fifo::default(), 0, 0);
        self.queue.spacings.clear();
        self.service.abandon(at);
    }

    /// Returns how long a packet that arrives now would wait for its service to begin.
    #[inline]
    pub(super) fn wait(&self, now: Instant) -> Span {
        self.service.start(now, 1500).since(now)
    }

    pub(super) fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        self.service.capacity(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::rates::Profile;
    use crate::path::{Ecn, Kind};
    use slowstart::units::Rate;

    const PACKET: PacketInfo = PacketInfo { bytes: 1500, flow: 0, kind: Kind::Data, ecn: Ecn::NotEct };

    /// 12 Mbit/s: a packet a millisecond.
    fn link(limit: Limit) -> Link {
        let steady = Profile::Steps([(Instant::ZERO, Rate(12_000_000))].into());
        Link::new(Service::Rates(Rates::new(steady)), limit, None)
    }

    fn accepted(limit: Limit, parcel: &PacketInfo) -> usize {
        let mut link = link(limit);
        (0..1000).take_while(|_| link.pass(Instant::ZERO, parcel).is_ok()).count()
    }

    #[test]
    fn each_limit_is_exact() {
        // One more than may wait: the one in service.
        assert_eq!(accepted(Limit::Packets(7), &PACKET), 8);
        assert_eq!(accepted(Limit::Bytes(Bytes(10_500)), &PACKET), 8);
        assert_eq!(accepted(Limit::Bytes(Bytes(10_499)), &PACKET), 7);
        assert_eq!(accepted(Limit::Time(Span::millis(7)), &PACKET), 8);
        assert_eq!(accepted(Limit::Time(Span(6_999_999)), &PACKET), 7);
        assert_eq!(accepted(Limit::Infinite, &PACKET), 1000);
        let small = PacketInfo { bytes: 100, ..PACKET };
        assert_eq!(accepted(Limit::Packets(7), &small), 8);
        assert_eq!(accepted(Limit::Bytes(Bytes(750)), &small), 8);
    }

    #[test]
    fn the_packet_in_service_does_not_wait() {
        let mut link = link(Limit::Infinite);
        for _ in 0..3 {
            link.pass(Instant::ZERO, &PACKET).expect("no limit");
        }
        let at = |us| Instant::ZERO + Span::micros(us);
        assert_eq!((link.backlog(at(0)), link.wait(at(0))), (Bytes(3000), Span::millis(3)));
        assert_eq!((link.backlog(at(999)), link.wait(at(999))), (Bytes(3000), Span::micros(2001)));
        assert_eq!((link.backlog(at(1000)), link.wait(at(1000))), (Bytes(1500), Span::millis(2)));
        assert_eq!((link.backlog(at(2000)), link.wait(at(3000))), (Bytes(0), Span::ZERO));
    }

    /// What it carried is what it took, less what still waits and what is left of the packet in service.
    #[test]
    fn it_carries_its_rate_while_it_is_full_and_what_it_took_afterwards() {
        let mut link = link(Limit::Packets(7));
        let at = |us| Instant::ZERO + Span::micros(us);
        for _ in 0..20 {
            let _ = link.pass(Instant::ZERO, &PACKET);
        }
        let carried = [0, 500, 1000, 7250, 8000, 9000].map(|us| link.carried(at(us)).expect("a rate").0);
        assert_eq!(carried, [0, 750, 1500, 10_875, 12_000, 12_000]);
        for _ in 0..20 {
            let _ = link.pass(at(9000), &PACKET);
        }
        link.flush(at(10_500));
        assert_eq!(
            (link.carried(at(10_500)), link.carried(at(60_000))),
            (Some(Bytes(14_250)), Some(Bytes(14_250)))
        );
    }

    #[test]
    fn a_full_queue_drops_with_its_cause_and_recovers() {
        let mut link = link(Limit::Packets(1));
        let at = |ms| Instant::ZERO + Span::millis(ms);
        assert_eq!(link.pass(at(0), &PACKET), Ok(at(1)));
        assert_eq!(link.pass(at(0), &PACKET), Ok(at(2)));
        assert_eq!(link.pass(at(0), &PACKET), Err(Dropped::new(at(0), Cause::QueueFull)));
        assert_eq!(link.pass(at(1), &PACKET), Ok(at(3)));
    }

    #[test]
    fn packets_that_wait_longer_than_the_threshold_are_marked() {
        let mut link = link(Limit::Infinite).with_marks(Some(Span::millis(3)));
        let capable = PacketInfo { ecn: Ecn::Ect1, ..PACKET };
        let marked: Vec<bool> = (0..6)
            .map(|_| {
                link.pass(Instant::ZERO, &capable).expect("no limit");
                link.marked()
            })
            .collect();
        // The fourth waits exactly 3 ms.
        assert_eq!(marked, [false, false, false, false, true, true]);
    }

    #[test]
    fn random_drop_sets_in_above_its_backlog() {
        let mut link = link(Limit::Infinite);
        let stream = Stream::named(1, "test");
        link.queue.random_drop = Some(RandomDrop { share: 250_000, above: Bytes(15_000), stream });
        let mut dropped = 0;
        for i in 0..10_000 {
            match link.pass(Instant::ZERO, &PACKET) {
                Ok(_) => {}
                Err(d) => {
                    assert!(i > 11 && d.cause == Cause::Aqm, "ten packets wait, one more may come");
                    dropped += 1;
                }
            }
        }
        // Five standard deviations of a binomial (10000, 1/4): 217.
        assert!(2500_u32.abs_diff(dropped) < 217, "{dropped}");
    }
}
