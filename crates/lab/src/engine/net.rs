//! What is under way between the ends, and what is due: lines of packets, clocks, and the order of events.
//!
//! Every direction of the path is first in, first out, so the arrival of a packet is known when it enters, and one
//! pending event stands for all that travel one way: the cost of an event does not grow with the window. Timers are
//! lazy: a deadline that moves away, as a retransmission timeout does with each acknowledgement, leaves its event where
//! it is, to be set again when it comes up.

use super::flow::{CLIENT, Control, Flow, SERVER};
use crate::path::{self, ArrivalQueue, Dropped, Kind, PacketInfo, Path};
use crate::random;
use crate::record::CapturedPacket;
use crate::tcp::endpoint::{CLOCKS, Endpoint};
use crate::tcp::segment::{ACK, FIN, SYN, Segment, Wire};
use crate::tcp::sender::milliseconds;
use slowstart::units::{Instant, Span};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What a pending event of a flow stands for: the clocks of each end, then the application.
pub(super) const SOURCES: usize = 2 * CLOCKS + 1;
/// The application's.
pub(super) const APPLICATION: usize = SOURCES - 1;

/// A pending event: time, tie and source, packed so that one comparison orders them. Lines come first in the numbering
/// of sources.
type Pending = u128;

/// Nothing is pending.
const IDLE: Pending = Pending::MAX;

fn kind(s: &Segment) -> Kind {
    if s.len > 0 {
        return Kind::Data;
    }
    match (s.has(SYN), s.has(ACK), s.has(FIN)) {
        (true, false, _) => Kind::Syn,
        (true, true, _) => Kind::SynAck,
        (_, _, true) => Kind::Fin,
        _ => Kind::Ack,
    }
}

/// A packet on its way, in a few words: thousands are, and what most of them say fits.
#[derive(Copy, Clone, Debug, Default)]
struct Packet {
    sent: Instant,
    /// Twice the flow, and the end it goes to.
    to: u32,
    seq: u32,
    ack: u32,
    echo: u32,
    window: u16,
    len: u16,
    flags: u8,
    /// It says more than that: its segment is kept beside the line.
    whole: bool,
}

impl Packet {
    #[allow(
        clippy::inline_always,
        reason = "a segment just made and read back through memory waits for the store"
    )]
    #[inline(always)]
    fn new(sent: Instant, to: u32, s: &Segment) -> Self {
        let Segment { seq, ack, window, flags, .. } = *s;
        let (stamp, echo) = s.timestamp.unwrap_or((0, 0));
        let whole = s.sacks > 0
            || s.has(SYN)
            || s.rate_response > 0
            || s.timestamp.is_none()
            || stamp != milliseconds(sent)
            || s.len > u32::from(u16::MAX);
        Self { sent, to, seq, ack, echo, window, len: s.len as u16, flags, whole }
    }

    /// The segment of one that is not [whole](Packet::whole).
    #[inline]
    fn unpack(&self, s: &mut Segment) {
        let Self { seq, ack, window, flags, .. } = *self;
        let timestamp = Some((milliseconds(self.sent), self.echo));
        *s = Segment { seq, ack, len: u32::from(self.len), window, flags, timestamp, ..Segment::default() };
    }
}

/// One direction's packets on their way.
#[derive(Clone, Debug, Default)]
struct Way {
    line: ArrivalQueue<Packet>,
    /// The segments of those that are [whole](Packet::whole), in order.
    whole: VecDeque<Segment>,
}

impl Way {
    /// Keeps the segment of a packet that is [whole](Packet::whole).
    #[inline(never)]
    fn keep(&mut self, s: &Segment) {
        self.whole.push_back(*s);
    }

    /// Hands the first of those over.
    #[inline(never)]
    fn hand_over(&mut self, s: &mut Segment) {
        *s = self.whole.pop_front().unwrap_or_default();
    }

    /// An ACK takes the place of the one before it if that waits for the same release and says less of the same; whether
    /// it did. What the modem replaces are numbers, so ACKs that also say what is missing stay (US 2004/0213278).
    fn filter(&mut self, at: Instant, p: &Packet) -> bool {
        if let Some((release, old)) = self.line.last()
            && (release, old.to, old.flags, old.len, old.whole) == (at, p.to, p.flags, 0, false)
            && p.ack.wrapping_sub(old.ack) as i32 > 0
        {
            *old = Packet { sent: p.sent, ack: p.ack, window: p.window, echo: p.echo, ..*old };
            return true;
        }
        false
    }
}

/// One direction as an end sees it that sends: what leaves is on its way at once.
pub(super) struct Road<'a> {
    net: &'a mut Net,
    line: usize,
    /// The flow, and the end that sends.
    flow: usize,
    end: usize,
    /// Whether its packets may be kept, and whether the end is the one whose data is looked at.
    recorded: bool,
    watched: bool,
    /// How much of that has left.
    data: u64,
}

impl Road<'_> {
    /// Its end has been told. Answers how much data left.
    #[inline]
    pub(super) fn told(self, flow: &mut Flow) -> u64 {
        let now = self.net.now;
        if self.watched {
            flow.learn(self.end, now);
        }
        if self.data > 0 {
            // The last of a burst waits longest; what a packet after it would wait is that and its own transmission.
            let wait = leaving(&mut self.net.path, self.end).queue_delay(now);
            flow.truth.peak_queue_delay = flow.truth.peak_queue_delay.max(wait);
        }
        self.data
    }
}

impl Wire for Road<'_> {
    #[allow(
        clippy::inline_always,
        reason = "a segment just made and read back through memory waits for the store"
    )]
    #[inline(always)]
    fn put_train(&mut self, s: &Segment, n: u32) {
        let kind = kind(s);
        let watched = self.watched && kind == Kind::Data;
        self.data += if watched { u64::from(n) } else { 0 };
        let parcel = PacketInfo { bytes: s.wire(), flow: self.flow as u32, kind };
        let now = self.net.now;
        let mut packet = Packet::new(now, (2 * self.flow + 1 - self.end) as u32, s);
        if self.recorded && self.net.capture.is_some() {
            self.net.keep(self.flow, self.end, *s, n);
        }
        let direction = leaving(&mut self.net.path, self.end);
        let way = &mut self.net.lines[self.line];
        let extra = self.net.extra[self.line / 2];
        let idle = way.line.is_empty();
        for _ in 0..n {
            match direction.pass(now, &parcel) {
                Ok(at) => {
                    let at = at + extra;
                    let numbers_only = kind == Kind::Ack && s.sacks == 0;
                    if numbers_only && direction.filters_acks() && way.filter(at, &packet) {
                        continue;
                    }
                    if packet.whole {
                        way.keep(&Segment {
                            seq: packet.seq,
                            rate_request: direction.grant(s.rate_request),
                            ..*s
                        });
                    }
                    way.line.push(at, packet);
                }
                Err(d) => self.net.losses.push((watched, d)),
            }
            packet.seq = packet.seq.wrapping_add(s.len);
        }
        if idle && let Some(at) = way.line.next() {
            self.net.expect(self.line, at);
        }
    }
}

/// The path, and all that is under way or due.
#[derive(Clone, Debug)]
pub(super) struct Net {
    pub(super) path: Path,
    pub(super) now: Instant,
    /// How far each end has come: events of one may run ahead of the other's.
    reached: [Instant; 2],
    seed: u64,
    /// Each direction, each extra delay.
    lines: Vec<Way>,
    extra: Vec<Span>,
    /// When the first packet of each line arrives, where lines are few: a heap would sift with every packet. Of more
    /// than a few, the heap of clocks of the end where they arrive knows.
    heads: Vec<[Instant; 2]>,
    /// Those of either end.
    clocks: [BinaryHeap<Reverse<Pending>>; 2],
    /// What the path dropped of a burst: whether it was data that is being watched, and where it ended.
    pub(super) losses: Vec<(bool, Dropped)>,
    /// Packets of recorded flows at both ends, if they are kept.
    pub(super) capture: Option<Vec<CapturedPacket>>,
}

/// Delays up to which each line is looked at for what is due.
const FEW: usize = 4;

/// A packet has arrived.
pub(super) struct Arrival {
    /// Where: twice the flow, and its end.
    pub(super) to: u32,
    /// When it left its sender.
    pub(super) sent: Instant,
    /// When the packet behind it arrives.
    pub(super) next: Instant,
}

impl Net {
    /// For flows with these delays of their own.
    pub(super) fn new(path: Path, mut extra: Vec<Span>, seed: u64) -> Self {
        extra.sort_unstable();
        extra.dedup();
        Self {
            path,
            now: Instant::ZERO,
            reached: [Instant::ZERO; 2],
            seed,
            lines: vec![Way::default(); 2 * extra.len()],
            heads: if extra.len() <= FEW { vec![[Instant::NEVER; 2]; extra.len()] } else { Vec::new() },
            extra,
            clocks: Default::default(),
            losses: Vec::new(),
            capture: None,
        }
    }

    /// For so many flows at a time, which come and go, each with lines of its own.
    pub(super) fn open(path: Path, places: usize, seed: u64) -> Self {
        let mut net = Self::new(path, Vec::new(), seed);
        net.lines.resize(2 * places, Way::default());
        net.extra.resize(places, Span::ZERO);
        net
    }

    /// How many flows there may be at a time, where they come and go.
    pub(super) fn places(&self) -> usize {
        self.extra.len()
    }

    /// The delay of the flow that takes a place.
    pub(super) fn set_extra(&mut self, place: usize, extra: Span) {
        self.extra[place] = extra;
    }

    /// Whether nothing is under way on these lines.
    pub(super) fn is_empty(&self, lines: [u32; 2]) -> bool {
        lines.into_iter().all(|l| self.lines[l as usize].line.is_empty())
    }

    /// The lines that the server and the client of a flow with this delay of its own send into.
    pub(super) fn lines_of(&self, extra: Span) -> [u32; 2] {
        let i = self.extra.partition_point(|e| *e < extra) as u32;
        [2 * i, 2 * i + 1]
    }

    /// When the first event of either end is due, [`Instant::NEVER`] if there is none.
    pub(super) fn first(&self) -> Instant {
        let clocks = self.clocks.iter().map(|c| c.peek().map_or(Instant::NEVER, |p| time(p.0)));
        clocks.chain(self.heads.iter().flatten().copied()).min().unwrap_or(Instant::NEVER)
    }

    /// How long whatever leaves an end takes at least.
    pub(super) fn least_delay(&mut self, end: usize) -> Span {
        leaving(&mut self.path, end).least_delay()
    }

    /// The source of the next event of an end up to `until`, when it is due: now, and before when no other source of that
    /// end is. It is to be taken by [`Net::clock`], or if it is no clock's by [`Net::arrival`].
    pub(super) fn next(&mut self, end: usize, until: Instant) -> Option<(Instant, usize, Instant)> {
        let clock = self.clocks[end].peek().map_or(IDLE, |p| p.0);
        let (mut at, mut source) = (time(clock), clock as u32 as usize);
        let mut other = Instant::NEVER;
        for (i, heads) in self.heads.iter().enumerate() {
            let (head, line) = (heads[1 - end], 2 * i + 1 - end);
            other = other.min(head.max(at));
            (at, source) = if head < at { (head, line) } else { (at, source) };
        }
        if at > until || at == Instant::NEVER {
            return None;
        }
        if other == at {
            source = self.first_of(end, at, clock);
        }
        self.reach(end, at);
        Some((at, source, other))
    }

    /// It is now `at`, for that end.
    fn reach(&mut self, end: usize, at: Instant) {
        debug_assert!(at >= self.reached[end], "an event in the past of {}", self.reached[end].0);
        (self.now, self.reached[end]) = (at, at);
    }

    /// Which of several sources of an end comes first whose events are due at the same time.
    #[inline(never)]
    fn first_of(&self, end: usize, at: Instant, clock: Pending) -> usize {
        let lines = self.heads.iter().enumerate().filter(|(_, heads)| heads[1 - end] == at);
        let first = lines.map(|(i, _)| key(self.seed, at, 2 * i + 1 - end)).fold(clock, Pending::min);
        first as u32 as usize
    }

    /// Takes the event of a clock of an end: its flow and which it is.
    pub(super) fn clock(&mut self, end: usize, source: usize) -> Option<(usize, usize)> {
        let clock = source.checked_sub(self.lines.len());
        if clock.is_some() || self.heads.is_empty() {
            self.clocks[end].pop();
        }
        clock.map(|c| (c / SOURCES, c % SOURCES))
    }

    /// Takes the first packet of a line; its segment goes to `arrived`.
    #[inline]
    pub(super) fn arrival(&mut self, line: usize, arrived: &mut Segment) -> Option<Arrival> {
        let way = &mut self.lines[line];
        let (at, packet) = way.line.first()?;
        debug_assert_eq!(at, self.now, "an arrival that is not due");
        let (to, sent) = (packet.to, packet.sent);
        if packet.whole {
            way.hand_over(arrived);
        } else {
            packet.unpack(arrived);
        }
        way.line.skip();
        let next = way.line.next().unwrap_or(Instant::NEVER);
        Some(Arrival { to, sent, next })
    }

    /// Goes on with a line whose next packet arrives at `at`, if no other source of the end where it does is due by then.
    #[inline]
    pub(super) fn goes_on(&mut self, line: usize, at: Instant, other: Instant) -> bool {
        let end = 1 - line % 2;
        let on = at < self.clocks[end].peek().map_or(other, |p| time(p.0).min(other));
        if on {
            self.reach(end, at);
        }
        on
    }

    /// The next packet of a line arrives at `at`, if there is one.
    #[inline]
    pub(super) fn expect(&mut self, line: usize, at: Instant) {
        match self.heads.get_mut(line / 2) {
            Some(heads) => heads[line % 2] = at,
            None if at == Instant::NEVER => {}
            None => self.clocks[1 - line % 2].push(Reverse(key(self.seed, at, line))),
        }
    }

    /// Keeps what leaves an end of a flow. A segment by value: one that is looked at from elsewhere would lie in memory for all.
    #[cold]
    fn keep(&mut self, flow: usize, end: usize, s: Segment, n: u32) {
        let (at, flow, end) = (self.now, flow as u32, end as u8);
        // rustc 1.95 fails on an update of what a closure owns.
        let s = &s;
        let train = (0..n).map(|i| Segment { seq: s.seq.wrapping_add(i * s.len), ..*s });
        if let Some(packets) = &mut self.capture {
            packets.extend(train.map(|segment| CapturedPacket { at, flow, end, leaves: true, segment }));
        }
    }

    /// Sets a clock of a flow.
    #[inline(never)]
    pub(super) fn arm(&mut self, i: usize, flow: &mut Flow, clock: usize, at: Instant) {
        flow.armed[clock] = at;
        // The application's acts at the client.
        let end = if clock < CLOCKS { SERVER } else { CLIENT };
        self.clocks[end].push(Reverse(key(self.seed, at, self.lines.len() + i * SOURCES + clock)));
    }

    /// Sets the clocks of an end.
    #[inline]
    pub(super) fn arm_end(&mut self, i: usize, flow: &mut Flow, end: usize) {
        let [loss, answer, pacer] = flow.ends[end].deadlines();
        let first = end * CLOCKS;
        for (clock, at) in [(first, loss), (first + 1, answer), (first + 2, pacer)] {
            self.arm_before(i, flow, clock, at);
        }
    }

    /// Sets the clock of the answer that an end owes: where its sending half was not told of anything.
    #[inline]
    pub(super) fn arm_answer(&mut self, i: usize, flow: &mut Flow, end: usize) {
        let at = flow.ends[end].rx.wakes();
        self.arm_before(i, flow, end * CLOCKS + 1, at);
    }

    /// Sets a clock if it is pending for later. What was pending is then stale; if it is for earlier, it will see.
    #[inline]
    fn arm_before(&mut self, i: usize, flow: &mut Flow, clock: usize, at: Instant) {
        if at < flow.armed[clock] {
            self.arm(i, flow, clock, at);
        }
    }

    /// The end sees the interface that it sends into.
    #[cold]
    fn look_at_interface(&mut self, flow: &mut Flow, end: usize) {
        let interface = leaving(&mut self.path, end).interface(self.now, &flow.spec.profile);
        flow.ends[end].tx.interface = interface;
    }

    /// The road of an end that is about to be told something.
    #[inline]
    pub(super) fn road(&mut self, i: usize, flow: &mut Flow, end: usize) -> Road<'_> {
        if leaving(&mut self.path, end).is_interface() {
            self.look_at_interface(flow, end);
        }
        let (line, recorded, watched) = (flow.lines[end] as usize, flow.recorded, end == flow.sender());
        Road { net: self, line, flow: i, end, recorded, watched, data: 0 }
    }

    /// Tells an end something; what it sends goes on its way. Answers how much data that was.
    pub(super) fn tell(
        &mut self,
        i: usize,
        flow: &mut Flow,
        end: usize,
        what: impl FnOnce(&mut Endpoint<Control>, Instant, &mut Road),
    ) -> u64 {
        let mut road = self.road(i, flow, end);
        what(&mut flow.ends[end], road.net.now, &mut road);
        road.told(flow)
    }
}

/// The direction that what leaves an end takes.
fn leaving(path: &mut Path, end: usize) -> &mut path::Direction {
    if end == SERVER { &mut path.forward } else { &mut path.back }
}

/// When that is due.
fn time(p: Pending) -> Instant {
    Instant((p >> 64) as u64)
}

/// Ties are broken by chance of the seed's own, so that no flow is always first (and one line keeps its order).
fn key(seed: u64, at: Instant, source: usize) -> Pending {
    let tie = random::at(seed ^ at.0, source as u64) as u32;
    u128::from(at.0) << 64 | u128::from(tie) << 32 | source as u128
}
