//! Properties of every startup on a host like QUIC: packet numbers with gaps, ACK ranges in any order, losses
//! that prove spurious, packets of several sizes, and sizes that change during a connection.
//!
//! A startup has 48 runs, spread over the avoidances; with `SLOWSTART_LONG=1` each pair has 32.
//! `SLOWSTART_CASES` sets another number for each pair.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use slowstart::avoidance::{self, AvoidanceEntry};
use slowstart::control::{Change, Controller, State};
use slowstart::registry::{self, AlgorithmEntry, AnyController};
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, PathMemory, Recovery, Sent, Signal};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

/// Packets acknowledged after one that is missing, before that one counts as lost (RFC 9002 §6.1.1).
const THRESHOLD: usize = 3;
/// Packets sent in a run.
const PACKETS: usize = 3000;

/// A path, and what happens to the packets on it.
#[derive(Clone, Debug)]
struct Plan {
    base: Span,
    /// The time that 1200 bytes take at the bottleneck.
    each: Span,
    /// Capacity of the queue, as a time.
    queue: Span,
    /// Packets that are delayed further, one of so many, by this much.
    late: (u64, Span),
    /// Packets that are lost, one of so many.
    lost: u64,
    /// Packets that are shorter than the others, one of so many.
    short: u64,
    /// Packets per ACK. ACKs overtake each other.
    stretch: usize,
    /// New sizes of packets, after this number of packets.
    sizes: Vec<(usize, u64)>,
    /// Marks by the network and persistent congestion, after this number of ACKs.
    signals: Vec<(usize, Signal)>,
    /// Times at which the application, after this number of ACKs, has no data, and the number of ACKs that it
    /// lasts.
    pauses: Vec<(usize, usize)>,
    handshake: Handshake,
    /// What the application is known to have queued.
    unsent: Option<Bytes>,
    seed: u64,
}

prop_compose! {
    fn plan()(
        base in (1_u64..400).prop_map(Span::millis),
        bdp in 4_u64..300,
        queue_percent in prop_oneof![Just(0_u64), 10_u64..200, Just(1000_u64)],
        late in (prop_oneof![Just(u64::MAX), 3_u64..200], (1_u64..30).prop_map(Span::millis)),
        lost in prop_oneof![Just(u64::MAX), 20_u64..2000],
        short in prop_oneof![Just(u64::MAX), 2_u64..20],
        stretch in 1_usize..12,
        sizes in prop::collection::vec((0_usize..PACKETS, prop_oneof![Just(1200_u64), Just(1452), Just(8952), Just(1)]), 0..3),
        signals in prop::collection::vec((0_usize..300, prop_oneof![Just(Signal::Ecn), Just(Signal::Timeout)]), 0..3),
        pauses in prop::collection::vec((0_usize..300, 1_usize..20), 0..3),
        memory in prop::option::of((0_u64..10_000_000, 1_u64..400, 0_u64..2_000_000_000)),
        rtt in prop::option::weighted(0.8, (1_u64..400).prop_map(Span::millis)),
        unsent in prop::option::of((1_u64..1_000_000).prop_map(Bytes)),
        seed in any::<u64>(),
    ) -> Plan {
        let remembered = memory.map(|(cwnd, rtt, rate)| PathMemory {
            cwnd: Bytes(cwnd),
            rtt: Span::millis(rtt),
            rate: Rate(rate),
        });
        let mut handshake = Handshake::new(rtt);
        handshake.remembered = remembered;
        Plan {
            base, each: base / bdp, queue: base.scale(queue_percent, 100), late, lost, short, stretch, sizes, signals,
            pauses, handshake, unsent, seed,
        }
    }
}

/// How the packets of a run are numbered. Every packet is new in the order of sending, as in QUIC.
#[derive(Copy, Clone, Debug)]
enum Numbering {
    /// QUIC: packet numbers, some of which are skipped.
    Packets,
    /// TCP: the offset after the last byte.
    Stream,
}

struct Packet {
    sent: Sent,
    /// When it reaches the peer; `None` if it is lost on the way.
    arrival: Option<Instant>,
    state: Fate,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Fate {
    InFlight,
    Acked,
    /// In this loss episode.
    Lost(usize),
}

/// A call of the controller.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    state: State,
    change: Change,
    phase: &'static str,
}

struct Host {
    control: AnyController,
    f: Facts,
    numbering: Numbering,
    /// The last packet number, and the bytes sent.
    number: u64,
    total: Bytes,
    packets: Vec<Packet>,
    /// The newest packet acknowledged.
    newest: Sent,
    largest: Option<usize>,
    /// The episodes so far, and the packet with which the current one ends.
    episodes: usize,
    until: Option<usize>,
    /// When the bottleneck is free.
    free: Instant,
    limit: Limit,
    bits: u64,
    seen: Vec<Seen>,
    /// The startup has ended.
    ended: bool,
    broken: Option<String>,
}

impl Host {
    /// True once in `n` times, if `n` is not the maximum.
    fn once_in(&mut self, n: u64) -> bool {
        self.bits = self.bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        n != u64::MAX && (self.bits >> 33).is_multiple_of(n)
    }

    /// Records a call, after which the window must not be below its floor, unless it was and the call did not
    /// reduce it.
    fn note(&mut self, before: State, change: Change) {
        let (state, floor, phase) = (*self.control.state(), self.f.min_window, self.control.phase());
        if state.cwnd < floor.min(before.cwnd) {
            self.broken = Some(format!("a window of {:?} in {phase}, the floor is {floor:?}", state.cwnd));
        }
        if change.exited.is_some() && std::mem::replace(&mut self.ended, true) {
            self.broken = Some(format!("a second exit: {:?}", change.exited));
        }
        self.ended &= !change.resumed && !change.restarted;
        self.seen.push(Seen { state, change, phase });
    }

    fn call(&mut self, f: impl FnOnce(&mut AnyController, &Facts) -> Change) {
        let before = *self.control.state();
        let change = f(&mut self.control, &self.f);
        self.note(before, change);
    }

    fn send(&mut self, plan: &Plan) {
        let full = self.f.mss;
        let bytes = if self.once_in(plan.short) { (full / 3).max(Bytes(1)) } else { full };
        let skips = u64::from(self.once_in(7));
        self.number += 1 + skips;
        self.total += bytes;
        self.f.next = SendOrder::new(match self.numbering {
            Numbering::Packets => self.number,
            Numbering::Stream => self.total.0,
        });
        self.f.inflight += bytes;
        let sent = Sent {
            mark: self.f.next,
            at: self.f.now,
            bytes,
            sent_total: self.total,
            inflight: self.f.inflight,
            delivered: self.f.delivered,
            delivered_at: self.f.now,
            first_sent_at: self.f.now,
            lost: self.f.lost,
            app_limited: self.limit == Limit::Application,
            cwnd: self.control.state().cwnd,
            ..Sent::default()
        };
        let begins = self.free.max(self.f.now);
        let dropped = self.once_in(plan.lost) || begins.since(self.f.now) > plan.queue;
        if !dropped {
            self.free = begins + plan.each.scale(bytes.0, 1200);
        }
        let delay = if self.once_in(plan.late.0) { plan.late.1 } else { Span::ZERO };
        let arrival = (!dropped).then_some(self.free + delay);
        self.packets.push(Packet { sent, arrival, state: Fate::InFlight });
        if self.control.needs_on_sent() {
            self.control.on_sent(&self.f, &sent);
        }
    }

    /// The packets at these places are acknowledged, in this order.
    fn ack(&mut self, places: &[usize]) {
        let prior = self.f.inflight;
        let (mut delivered, mut newest, mut undone) = (Bytes::ZERO, None::<usize>, None);
        for &i in places {
            let p = &mut self.packets[i];
            match p.state {
                Fate::Acked => continue,
                Fate::InFlight => self.f.inflight -= p.sent.bytes,
                Fate::Lost(episode) => undone = Some(episode),
            }
            p.state = Fate::Acked;
            delivered += p.sent.bytes;
            newest = newest.max(Some(i));
        }
        if let Some(episode) = undone
            && episode == self.episodes
            && !self.packets.iter().any(|p| p.state == Fate::Lost(episode))
        {
            // Every packet of the newest episode has arrived after all.
            self.until = None;
            self.f.in_recovery = false;
            self.call(|c, f| c.on_recovered(f, &Recovery::new(Bytes::ZERO, true)));
        }
        let Some(newest) = newest else { return };
        self.f.delivered += delivered;
        let packet = self.packets[newest].sent;
        let fresh = self.largest.is_none_or(|l| newest > l);
        let rtt = fresh.then(|| self.f.now.since(packet.at));
        if let Some(rtt) = rtt {
            self.f.min_rtt = Some(self.f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            self.f.srtt = Some(self.f.srtt.map_or(rtt, |s| s.scale(7, 8) + rtt / 8));
            (self.newest, self.largest) = (packet, Some(newest));
        }
        if self.until.is_some_and(|end| newest > end) {
            self.until = None;
            self.f.in_recovery = false;
            self.call(|c, f| c.on_recovered(f, &Recovery::default()));
        }
        let mut ack = Ack::new(packet, delivered, prior);
        (ack.upto, ack.rtt, ack.limit) = (self.newest.mark, rtt, self.limit);
        self.call(|c, f| c.on_ack(f, &ack));
        self.detect();
    }

    fn detect(&mut self) {
        let Some(largest) = self.largest else { return };
        let (mut lost, mut begins) = (Bytes::ZERO, false);
        for i in 0..largest.saturating_sub(THRESHOLD) {
            let p = &mut self.packets[i];
            if p.state == Fate::InFlight {
                lost += p.sent.bytes;
                self.f.inflight -= p.sent.bytes;
                begins |= self.until.is_none_or(|end| i > end);
                p.state = Fate::Lost(self.episodes + usize::from(begins));
            }
        }
        if lost.0 > 0 {
            self.f.lost += lost;
            self.congestion(Signal::Loss, begins, lost);
        }
    }

    fn congestion(&mut self, signal: Signal, first: bool, lost: Bytes) {
        if first {
            self.episodes += 1;
            self.until = Some(self.packets.len().saturating_sub(1));
        }
        let c = Congestion::new(signal, first, self.newest).losing(lost, u32::from(lost.0 > 0));
        self.call(|c2, f| c2.on_congestion(f, &c));
        self.f.in_recovery = self.until.is_some() && signal != Signal::Timeout;
    }

    fn timers(&mut self) {
        if self.control.state().wake.is_some_and(|at| at <= self.f.now) {
            self.call(Controller::on_timer);
        }
    }
}

/// Runs a startup and an avoidance over the plan. The error states what was broken.
fn run(plan: &Plan, s: &AlgorithmEntry, a: &AvoidanceEntry, by: Numbering) -> Result<Vec<Seen>, String> {
    let mss = Bytes(1200);
    let mut f = Facts::new(mss, mss * 10);
    (f.min_window, f.supports_pacing, f.pacing_on, f.unsent) = (mss * 2, true, true, plan.unsent);
    // The handshake took three packets of other number spaces.
    (f.next, f.delivered) = (SendOrder::new(3), Bytes(3000));
    let control = s.algorithm.controller(&(a.make)(), f.iw, 1);
    let mut host = Host {
        control,
        f,
        numbering: by,
        number: 3,
        total: Bytes(3000),
        packets: Vec::new(),
        newest: Sent::default(),
        largest: None,
        episodes: 0,
        until: None,
        free: Instant::ZERO,
        limit: Limit::Window,
        bits: plan.seed,
        seen: Vec::new(),
        ended: false,
        broken: None,
    };
    host.call(|c, f| c.on_established(f, &plan.handshake));
    // ACKs on their way, by time of arrival; and packets that have arrived and wait for one.
    let mut acks: BTreeMap<(Instant, usize), Vec<usize>> = BTreeMap::new();
    let mut due: VecDeque<usize> = VecDeque::new();
    let mut count = 0;
    while host.packets.len() < PACKETS && host.broken.is_none() {
        let paused = plan.pauses.iter().any(|(at, n)| (*at..at + n).contains(&count));
        host.limit = if paused { Limit::Application } else { Limit::Window };
        let first = host.packets.len();
        let most = if paused { 1 } else { PACKETS - first };
        for _ in 0..most {
            if host.f.inflight + host.f.mss > host.control.state().cwnd.max(host.f.min_window) {
                break;
            }
            if let Some((_, size)) = plan.sizes.iter().find(|(at, _)| *at == host.packets.len()) {
                host.f.mss = Bytes(*size);
                host.f.min_window = host.f.mss * 2;
            }
            host.send(plan);
        }
        due.extend(first..host.packets.len());
        let mut arrived: Vec<(Instant, usize)> =
            due.drain(..).filter_map(|i| Some((host.packets[i].arrival?, i))).collect();
        arrived.sort_unstable();
        for part in arrived.chunks(plan.stretch) {
            let last = part[part.len() - 1];
            let overtakes = if host.once_in(5) { plan.base / 8 } else { Span::ZERO };
            // The ranges of an ACK list the newest packets first.
            let places = part.iter().rev().map(|(_, i)| *i).collect();
            acks.insert((last.0 + plan.base + overtakes, last.1), places);
        }
        let Some(((at, _), places)) = acks.pop_first() else {
            // Everything in flight was lost, which is persistent congestion.
            host.f.now = host.f.now + plan.base * 6;
            let lost = std::mem::take(&mut host.f.inflight);
            host.f.lost += lost;
            for p in host.packets.iter_mut().filter(|p| p.state == Fate::InFlight) {
                p.state = Fate::Lost(host.episodes + 1);
            }
            host.congestion(Signal::Timeout, true, lost);
            continue;
        };
        host.f.now = host.f.now.max(at);
        host.timers();
        host.ack(&places);
        for (_, signal) in plan.signals.iter().filter(|(at, _)| *at == count) {
            let first = host.until.is_none() || *signal == Signal::Timeout;
            host.congestion(*signal, first, Bytes::ZERO);
        }
        count += 1;
    }
    host.broken.map_or(Ok(host.seen), Err)
}

/// Checks a property of the two runs of every pair. The same seed gives the same plans, which differ between
/// the avoidances and the rounds.
fn law(round: u64, check: impl Fn(&str, Vec<Seen>, Vec<Seen>) -> Result<(), TestCaseError>) {
    let long = std::env::var_os("SLOWSTART_LONG").is_some();
    let chosen: Option<u32> = std::env::var("SLOWSTART_CASES").ok().and_then(|n| n.parse().ok());
    for s in registry::all() {
        // A standalone controller is followed by no avoidance.
        let followers = if s.algorithm.is_standalone() { 1 } else { avoidance::REGISTRY.len() };
        let cases = chosen.unwrap_or(if long { 32 } else { 48 / followers as u32 });
        for (n, a) in avoidance::REGISTRY[..followers].iter().enumerate() {
            let mut config = Config { cases, failure_persistence: None, ..Config::default() };
            if let RngSeed::Fixed(seed) = &mut config.rng_seed {
                *seed = seed.wrapping_add(n as u64).wrapping_add(round << 32);
            }
            let done = TestRunner::new(config).run(&plan(), |plan| {
                let by = |numbering| run(&plan, &s, a, numbering).map_err(TestCaseError::fail);
                check(s.name, by(Numbering::Packets)?, by(Numbering::Stream)?)
            });
            if let Err(e) = done {
                panic!("{} with {}: {e}", s.name, a.name);
            }
        }
    }
}

/// The most rounds of plans in which every kind of exit and phase must be reached.
const ROUNDS: u64 = 8;

/// Windows keep the host's floor of two packets, a startup ends once, and nothing depends on how packets are
/// numbered: packet numbers with gaps give the windows, exits and phases that stream offsets give. The runs
/// reach what depends on the order of sending: exits by a rule, by loss and by timeout, and jumps that need
/// the end of a flight. Which of these the plans of a seed reach depends on the seed: up to [`ROUNDS`] are drawn.
#[test]
fn packet_numbers_and_stream_offsets_give_the_same_windows() {
    let reached = [
        "hystart delay",
        "hystart++ css",
        "search rate-flat",
        "ess estimate",
        "stopeg estimate",
        "vegas delay",
        "suss red",
        "careful-resume unvalidated",
        "careful-resume validating",
        "careful-resume safe-retreat",
        "jump-start jump",
        "jump-start jump-recovery",
        "standard loss",
        "standard timeout",
        "standard ecn",
    ];
    let seen = RefCell::new(BTreeMap::<String, usize>::new());
    let missing = || {
        let rare = |what: &&str| seen.borrow().get(*what).is_none_or(|n| *n < 2);
        reached.into_iter().filter(rare).collect::<Vec<_>>()
    };
    for round in 0..ROUNDS {
        law(round, |name, packets, stream| {
            prop_assert_eq!(packets.len(), stream.len());
            for (i, (p, s)) in packets.iter().zip(&stream).enumerate() {
                prop_assert_eq!(p, s, "call {}", i);
                let why = p.change.exited.map(|e| e.why.name());
                for what in why.into_iter().chain([p.phase]) {
                    *seen.borrow_mut().entry(format!("{name} {what}")).or_default() += 1;
                }
            }
            Ok(())
        });
        if missing().is_empty() {
            return;
        }
    }
    panic!("{:?} are not among {:?}", missing(), seen.borrow().keys());
}
