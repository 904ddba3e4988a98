//! Outages: times in which a direction carries nothing. Its queue is kept, or flushed.
//!
//! Where the queue is kept, the clock of the link stands still during an outage, so that whatever the link is
//! (a rate, a schedule or a trace) continues afterwards where it stopped. [`Times`] translates between the
//! two clocks.

use super::link::Link;
use super::{Cause, Dropped, PacketInfo, quantity};
use slowstart::units::{Bytes, Instant, Span};

/// Outages as written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct OutageSpec {
    /// When the first begins; drawn from the period if it is not given.
    pub(super) at: Option<Span>,
    /// True if they begin with the hand-overs of the path, whose period is `every`.
    pub(super) at_handovers: bool,
    lasts: Span,
    /// From the beginning of one to that of the next; only one if it is not given.
    pub(super) every: Option<Span>,
    /// True if what waits at the beginning is lost, and what comes until the end; otherwise it waits.
    flushes: bool,
}

impl OutageSpec {
    /// What a value looks like.
    pub(super) const EXPECTED: &'static str = "when, how long and how often, longer apart than they last, and queue=kept or queue=flushed, such as at=5s,for=300ms,every=15s,queue=kept";

    /// Parses `at=5s,for=300ms,every=15s,queue=kept`. `for` and `queue` are required, and one of `at` and
    /// `every`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mut at, mut lasts, mut every, mut flushes) = (None, None, None, None);
        let mut words = quantity::words(text);
        while let Some(key) = words.next() {
            let value = words.next()?;
            let first = match key {
                "at" => at.replace(quantity::span(value)?).is_none(),
                "for" => lasts.replace(quantity::some_span(value)?).is_none(),
                "every" => every.replace(quantity::some_span(value)?).is_none(),
                "queue" => {
                    flushes.replace(["kept", "flushed"].iter().position(|q| *q == value)? == 1).is_none()
                }
                _ => false,
            };
            if !first {
                return None;
            }
        }
        let (lasts, flushes) = (lasts?, flushes?);
        let valid = every.is_none_or(|e| e > lasts) && (at.is_some() || every.is_some());
        valid.then_some(Self { at, at_handovers: false, lasts, every, flushes })
    }

    /// Stalls of this length at each hand-over of this period; what waits goes on afterwards. None unless they
    /// are shorter than the period.
    pub(super) fn stalls(lasts: Span, every: Span) -> Option<Self> {
        let stalls = Self { at: None, at_handovers: true, lasts, every: Some(every), flushes: false };
        (lasts < every).then_some(stalls)
    }
}

/// When outages are.
#[derive(Copy, Clone, Debug)]
struct Times {
    /// The beginning of the first.
    first: Instant,
    lasts: Span,
    /// From the beginning of one to that of the next; [`Span::MAX`] if there is only one.
    every: Span,
}

impl Times {
    /// The number of outages that began before `t` or at `t`, if there was one, and the time since the last
    /// of them did.
    fn last(&self, t: Instant) -> Option<(u64, Span)> {
        let since = t.0.checked_sub(self.first.0)?;
        Some((since / self.every.0 + 1, Span(since % self.every.0)))
    }

    /// True if `t` lies in an outage. The end of an outage does not.
    fn during(&self, t: Instant) -> bool {
        self.last(t).is_some_and(|(_, since)| since < self.lasts)
    }

    /// The time on the link's clock.
    fn link_time(&self, t: Instant) -> Instant {
        let down = self.last(t).map_or(Span::ZERO, |(n, since)| self.lasts * (n - 1) + since.min(self.lasts));
        t - down
    }

    /// The time at which the link's clock shows `t`: the first if `ends`, before an outage at that time, else
    /// the last.
    fn time(&self, t: Instant, ends: bool) -> Instant {
        let Some(since) = t.0.checked_sub(self.first.0 + u64::from(ends)) else { return t };
        t + self.lasts * (since / (self.every - self.lasts).0 + 1)
    }

    /// The beginning of the first outage at `t` or later.
    fn next(&self, t: Instant) -> Instant {
        match t.0.checked_sub(self.first.0 + 1) {
            None => self.first,
            Some(_) if self.every == Span::MAX => Instant::NEVER,
            Some(since) => self.first + self.every * (since / self.every.0 + 1),
        }
    }
}

/// The outages of a direction, around its link.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    times: Times,
    flushes: bool,
    /// The beginning of the outage by which the link has packets that will be flushed.
    flush_at: Option<Instant>,
}

impl Outage {
    /// Outages, of which the first begins at `first` unless the value says when.
    pub(super) fn new(spec: &OutageSpec, first: Span) -> Self {
        let times = Times {
            first: Instant::ZERO + spec.at.unwrap_or(first),
            lasts: spec.lasts,
            every: spec.every.unwrap_or(Span::MAX),
        };
        Self { times, flushes: spec.flushes, flush_at: None }
    }

    /// The time on the link's clock.
    pub(super) fn link_time(&self, t: Instant) -> Instant {
        self.times.link_time(t)
    }

    /// True if a packet that comes at `t` is lost.
    pub(super) fn refuses(&self, t: Instant) -> bool {
        self.flushes && self.times.during(t)
    }

    /// The beginning of the first outage at `t` or later that flushes the queue; [`Instant::NEVER`] if none
    /// does.
    pub(super) fn next_flush(&self, t: Instant) -> Instant {
        if self.flushes { self.times.next(t) } else { Instant::NEVER }
    }

    /// When the link is ready, at `now` or later and not in an outage; `ready` computes that on the link's
    /// clock.
    pub(super) fn after(&self, now: Instant, ready: impl FnOnce(Instant) -> Instant) -> Instant {
        self.times.time(ready(self.times.link_time(now)), false).max(now)
    }

    /// When the last bit leaves of what is sent at `now`; `send` computes that on the link's clock.
    pub(super) fn leaves(&self, now: Instant, send: impl FnOnce(Instant) -> Instant) -> Instant {
        self.times.time(send(self.times.link_time(now)), true)
    }

    /// Sends a packet over the link, if there is one. Returns when it leaves, or its drop.
    #[cold]
    #[inline(never)]
    pub(super) fn pass(
        &mut self,
        link: Option<&mut Link>,
        now: Instant,
        p: &PacketInfo,
    ) -> Result<Instant, Dropped> {
        let outage = |at| Dropped::new(at, Cause::Outage);
        if self.flushes && self.times.during(now) {
            return Err(outage(now));
        }
        let Some(link) = link else {
            return Ok(self.times.time(self.times.link_time(now), false).max(now));
        };
        self.flush(link, now);
        let done = link.pass(self.times.link_time(now), p).map_err(|d| Dropped { at: now, ..d })?;
        let left = self.times.time(done, true);
        let next = self.times.next(now);
        if self.flushes && left > next {
            self.flush_at = Some(next);
            return Err(outage(next));
        }
        Ok(left)
    }

    /// Empties the link if an outage has begun since the last packet.
    pub(super) fn flush(&mut self, link: &mut Link, now: Instant) {
        if let Some(at) = self.flush_at.take_if(|at| *at <= now) {
            link.flush(self.times.link_time(at));
        }
    }

    /// Returns the waiting bytes.
    pub(super) fn backlog(&mut self, link: &mut Link, now: Instant) -> Bytes {
        self.flush(link, now);
        link.backlog(self.times.link_time(now))
    }

    /// Returns how long a packet that arrives now would wait for its service to begin.
    pub(super) fn wait(&self, link: &Link, now: Instant) -> Span {
        let t = self.times.link_time(now);
        self.times.time(t + link.wait(t), false).since(now)
    }

    /// Returns what the link can carry later than `from` and up to `to`.
    pub(super) fn capacity(&self, link: &Link, from: Instant, to: Instant) -> Bytes {
        link.capacity(self.times.link_time(from), self.times.link_time(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Ecn, Kind, PathSpec};
    use proptest::prelude::*;

    const PACKET: PacketInfo = PacketInfo { bytes: 1500, flow: 0, kind: Kind::Data, ecn: Ecn::NotEct };

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::millis(ms)
    }

    /// When packets arrive that are sent at these milliseconds over 12 Mbit/s, a packet a millisecond; -1 if
    /// lost.
    fn arrivals(outage: &str, sent: &[u64]) -> Vec<i64> {
        let line = format!("rate=12Mbit rtt=2us queue=infinite ack_jitter=0 outage={outage}");
        let mut path = PathSpec::load(&line, None).expect("valid").build(1);
        let at = |t: &u64| path.forward.pass(ms(*t), &PACKET).map_or(-1, |at| (at.0 / 1_000_000) as i64);
        sent.iter().map(at).collect()
    }

    #[test]
    fn values() {
        let spec = |text| OutageSpec::parse(text).map(|s| (s.at, s.lasts, s.every, s.flushes));
        let (at, lasts, every) = (Some(Span::secs(5)), Span::millis(300), Some(Span::secs(15)));
        assert_eq!(spec("at=5s,for=300ms,every=15s,queue=kept"), Some((at, lasts, every, false)));
        assert_eq!(spec("at=5s for=300ms queue=flushed"), Some((at, lasts, None, true)));
        assert_eq!(spec("for=300ms,every=15s,queue=kept"), Some((None, lasts, every, false)));
        for bad in [
            "",
            "at=5s,for=300ms",
            "for=300ms,queue=kept",
            "at=5s,queue=kept",
            "at=5s,for=2s,every=2s,queue=kept",
            "at=5s,for=0s,queue=kept",
            "at=5s,for=1s,queue=lost",
            "at=5s,for=1s,queue=kept,at=6s",
            "at=5s,for=1s,queue=kept,wait",
        ] {
            assert_eq!(spec(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_kept_queue_goes_on_afterwards() {
        let got = arrivals("at=2ms,for=10ms,every=100ms,queue=kept", &[0, 0, 0, 5, 12, 101, 101]);
        // Two leave before the outage at 2 ms; the third and what came meanwhile leave from 12 ms on. The
        // next outage is at 102 ms, when one has left.
        assert_eq!(got, [1, 2, 13, 14, 15, 102, 113]);
    }

    #[test]
    fn a_flushed_queue_is_empty_afterwards() {
        let got = arrivals(
            "at=2ms,for=10ms,every=100ms,queue=flushed",
            &[0, 0, 0, 1, 2, 11, 12, 12, 101, 101, 112],
        );
        assert_eq!(got, [1, 2, -1, -1, -1, -1, 13, 14, 102, -1, 113]);
    }

    #[test]
    fn the_way_back_waits_or_loses_too() {
        let ack = PacketInfo { bytes: 52, flow: 0, kind: Kind::Ack, ecn: Ecn::NotEct };
        for (queue, want) in [("kept", Ok(12)), ("flushed", Err(Cause::Outage))] {
            let line = format!("rate=12Mbit rtt=2us ack_jitter=0 outage=at=2ms,for=10ms,queue={queue}");
            let mut back = PathSpec::load(&line, None).expect("valid").build(1).back;
            let mut at = |t| back.pass(ms(t), &ack).map(|at| at.0 / 1_000_000).map_err(|d| d.cause);
            assert_eq!((at(1), at(2), at(11), at(12)), (Ok(1), want, want, Ok(12)));
        }
    }

    #[test]
    fn a_discipline_is_interrupted_as_a_queue_without_one_is() {
        let sent: Vec<u64> = vec![0, 0, 0, 1, 2, 5, 11, 12, 12, 101, 101, 112];
        for queue in ["kept", "flushed"] {
            let outage = format!("at=2ms,for=10ms,every=100ms,queue={queue}");
            let line = format!("rate=12Mbit rtt=2us queue=codel ack_jitter=0 outage={outage}");
            let mut way = PathSpec::load(&line, None).expect("valid").build(1).forward;
            let (mut out, mut ids) = (Vec::new(), 0..);
            let mut packets = sent.iter().peekable();
            loop {
                match (way.next(), packets.peek().map(|t| ms(**t))) {
                    (Some(at), next) if next.is_none_or(|next| at < next) => way.serve(at, &mut out),
                    (_, Some(next)) => {
                        packets.next();
                        way.enqueue(next, &PACKET, ids.next().expect("endless"), &mut out);
                    }
                    _ => break,
                }
            }
            out.sort_by_key(|d| d.id);
            let got: Vec<i64> =
                out.iter().map(|d| d.outcome.map_or(-1, |at| (at.0 / 1_000_000) as i64)).collect();
            assert_eq!(got, arrivals(&outage, &sent), "{queue}");
        }
    }

    /// The stall begins when the delay changes: at no other time does a packet wait, and those before and
    /// after it have unlike delays.
    #[test]
    fn a_stall_begins_with_its_handover() {
        let line = "rate=12Gbit rtt=2us queue=infinite handover=1s handover_step=5ms handover_stall=40ms";
        for seed in 1..20 {
            let mut path = PathSpec::load(line, None).expect("valid").build(seed);
            let mut delay = |t| path.forward.pass(ms(t), &PACKET).expect("no loss").0 / 1_000 - t * 1_000;
            let delays: Vec<u64> = (0..3_000).map(&mut delay).collect();
            let waits: Vec<usize> = (0..2_999).filter(|t| delays[t + 1] > delays[*t] + 30_000).collect();
            assert!(waits.len() >= 2 && waits.windows(2).all(|w| w[1] - w[0] == 1_000), "{seed}: {waits:?}");
            for at in waits.into_iter().filter(|at| *at > 1 && at + 50 < 3_000) {
                assert_ne!(delays[at - 1], delays[at + 48], "{seed}: {at}");
                assert!(delays[at + 48..(at + 900).min(3_000)].windows(2).all(|w| w[0] == w[1]), "{seed}");
            }
        }
    }

    #[test]
    fn a_queue_that_is_flushed_has_no_backlog() {
        let line = "rate=12Mbit rtt=2us queue=infinite outage=at=5ms,for=10ms,queue=flushed";
        let mut way = PathSpec::load(line, None).expect("valid").build(1).forward;
        for _ in 0..20 {
            let _ = way.pass(ms(0), &PACKET);
        }
        assert_eq!(way.backlog(ms(4)), Bytes(15 * 1500));
        assert_eq!(way.backlog(ms(6)), Bytes::ZERO);
    }

    proptest! {
        #[test]
        fn the_clocks_agree(first in 0_u64..50, lasts in 1_u64..20, up in 1_u64..20, once in any::<bool>(), t in 0_u64..300) {
            let every = if once { Span::MAX } else { Span(lasts + up) };
            let times = Times { first: Instant(first), lasts: Span(lasts), every };
            // By counting the moments at which the link works.
            let counted = (0..t).filter(|s| !times.during(Instant(*s))).count() as u64;
            prop_assert_eq!(times.link_time(Instant(t)), Instant(counted));
            let (first_time, last_time) = (times.time(Instant(counted), true), times.time(Instant(counted), false));
            prop_assert!(first_time.0 <= t && t <= last_time.0, "{first_time:?} {t} {last_time:?}");
            prop_assert_eq!(times.link_time(first_time), Instant(counted));
            prop_assert_eq!(times.link_time(last_time), Instant(counted));
            prop_assert!(!times.during(last_time));
            let next = times.next(Instant(t));
            let want = (t..1000).find(|s| times.during(Instant(*s)) && (*s == 0 || !times.during(Instant(*s - 1))));
            prop_assert_eq!(next, want.map_or(Instant::NEVER, Instant));
        }
    }
}
