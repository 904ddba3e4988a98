//! Generated paths, and the run of a startup over one.

use super::Follower;
use super::common::{Host, facts};
use proptest::prelude::*;
use slowstart::control::{Change, Controller, State};
use slowstart::registry;
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Growth, Handshake, HostQueue, Limit, PathMemory, Signal};

/// A path, a host and the events of a run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// RTT without a queue, and the time one segment takes at the bottleneck.
    pub(crate) base: Span,
    pub(crate) each: Span,
    /// Capacity of the queue, in segments.
    pub(crate) queue: usize,
    /// Receive window of the peer, in segments.
    pub(crate) room: u64,
    pub(crate) jitter: u64,
    pub(crate) mss: u64,
    pub(crate) iw: u64,
    pub(crate) growth: Growth,
    /// The least window of the host, in segments.
    pub(crate) floor: u64,
    pub(crate) pacing: Option<Rate>,
    /// The handshake, and what the host reports.
    pub(crate) handshake: Handshake,
    pub(crate) unsent: Option<u64>,
    pub(crate) host_queue: Option<u64>,
    /// Segments per ACK.
    pub(crate) stretch: usize,
    /// ACKs into which the receiver splits each ACK.
    pub(crate) split: u64,
    pub(crate) acks: usize,
    pub(crate) events: Vec<(usize, Event)>,
}

#[derive(Copy, Clone, Debug)]
pub(crate) enum Event {
    Limit(Limit),
    Timeout,
    Mark,
    Stall,
    Spurious,
    Idle(Span, bool),
    Duplicate,
    /// An ACK beyond what was sent: the host counts only what was sent.
    Optimistic,
    /// No ACK for this time.
    Silence(Span),
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let limit = prop_oneof![
        Just(Limit::Window),
        Just(Limit::Window),
        Just(Limit::Pacer),
        Just(Limit::Application),
        Just(Limit::Peer)
    ];
    prop_oneof![
        6 => limit.prop_map(Event::Limit),
        3 => Just(Event::Timeout),
        1 => Just(Event::Mark),
        1 => Just(Event::Stall),
        2 => Just(Event::Spurious),
        2 => (1_u64..5000, any::<bool>()).prop_map(|(ms, r)| Event::Idle(Span::millis(ms), r)),
        4 => Just(Event::Duplicate),
        2 => Just(Event::Optimistic),
        2 => (1_u64..3000).prop_map(|ms| Event::Silence(Span::millis(ms))),
    ]
}

prop_compose! {
    pub(crate) fn handshake()(
        syn_losses in prop_oneof![3 => Just(0_u8), 1 => 1_u8..4],
        spurious in any::<bool>(),
        rtt in prop::option::weighted(0.8, (200_u64..600_000).prop_map(Span::micros)),
        granted in prop::option::of((0_u64..2_000_000_000).prop_map(Rate)),
        remembered in prop::option::of((0_u64..10_000_000, 100_u64..600_000, 0_u64..2_000_000_000)),
    ) -> Handshake {
        let remembered = remembered.map(|(cwnd, rtt, rate)| PathMemory {
            cwnd: Bytes(cwnd),
            rtt: Span::micros(rtt),
            rate: Rate(rate),
        });
        let mut hs = Handshake::new(rtt);
        (hs.syn_losses, hs.spurious) = (syn_losses, spurious && syn_losses > 0);
        (hs.granted, hs.remembered) = (granted, remembered);
        hs
    }
}

prop_compose! {
    pub(crate) fn plan()(
        base_us in prop_oneof![200_u64..300_000, Just(600_000_u64)],
        bdp in 4_u64..400,
        queue_percent in prop_oneof![Just(0_u64), 10_u64..200, Just(5000_u64), Just(50_000_u64)],
        room in prop_oneof![4 => Just(100_000_u64), 1 => 3_u64..300],
        jitter in prop_oneof![Just(0_u64), 0_u64..5_000_000],
        mss in prop_oneof![Just(1_u64), Just(400_u64), Just(1448_u64), Just(8948_u64)],
        iw in prop_oneof![Just(10_u64), 1_u64..64],
        growth in prop_oneof![
            Just(Growth::PerAck), Just(Growth::Segment), Just(Growth::Abc { limit: 2 }), Just(Growth::Bytes), Just(Growth::Bytes)
        ],
        floor in 1_u64..3,
        pacing in prop::option::of((0_u64..10_000_000_000).prop_map(Rate)),
        handshake in handshake(),
        unsent in prop::option::of(prop_oneof![1_u64..400, Just(1_000_000_u64)]),
        host_queue in prop::option::of(1_u64..200),
        stretch in 1_usize..5,
        split in prop_oneof![Just(1_u64), 1_u64..20],
        acks in 50_usize..2500,
        events in prop_oneof![
            Just(Vec::new()),
            prop::collection::vec((0_usize..1500, event()), 0..12),
            prop::collection::vec((0_usize..40, event()), 0..6),
        ],
    ) -> Plan {
        Plan {
            base: Span::micros(base_us),
            each: Span::micros(base_us) / bdp,
            queue: (bdp + bdp * queue_percent / 100) as usize,
            room, jitter, mss, iw, growth, floor, pacing, handshake, unsent, host_queue, stretch, split, acks, events,
        }
    }
}

/// Where time and marks of a run begin.
#[derive(Copy, Clone, Default)]
pub(crate) struct Origin {
    pub(crate) time: u64,
    pub(crate) mark: u64,
}

/// The record of each call: change, states, phase, whether the ACK permitted growth, and its bytes.
pub(crate) struct Seen {
    pub(crate) change: Change,
    pub(crate) before: State,
    pub(crate) state: State,
    pub(crate) phase: &'static str,
    pub(crate) earns: bool,
    pub(crate) ack: Option<Bytes>,
}

pub(crate) struct Run {
    pub(crate) host: Host,
    pub(crate) seen: Vec<Seen>,
    /// The end of the loss episode: everything sent before it is acknowledged.
    pub(crate) recover: Option<u64>,
    /// The state of a generator for jitter.
    pub(crate) bits: u64,
}

impl Run {
    pub(crate) fn note(&mut self, ack: Option<Bytes>, before: State, change: Change) {
        let host = &self.host;
        let earns = host.limit.allows_growth() && !host.facts.in_recovery;
        self.seen.push(Seen { change, before, state: host.state(), phase: host.control.phase(), earns, ack });
    }

    pub(crate) fn event(&mut self, e: Event) {
        let host = &mut self.host;
        let before = host.state();
        let change = match e {
            Event::Limit(limit) => {
                host.limit = limit;
                return;
            }
            Event::Silence(time) => {
                host.wait(time);
                return;
            }
            Event::Timeout => {
                self.recover = None;
                host.timeout()
            }
            Event::Mark | Event::Stall => {
                self.recover = Some(host.next);
                host.signal(if matches!(e, Event::Mark) { Signal::Ecn } else { Signal::LocalStall })
            }
            Event::Spurious => {
                let change = host.lose(1);
                self.note(None, before, change);
                self.recover = None;
                let before = self.host.state();
                let change = self.host.recovered(true);
                self.note(None, before, change);
                return;
            }
            Event::Idle(time, restart) => {
                self.recover = None;
                host.facts.in_recovery = false;
                // A startup may end at the last ACK before the pause.
                let change = host.drain();
                self.note(None, before, change);
                let before = self.host.state();
                let change = self.host.pause(time, restart.then_some(Span::millis(300)));
                self.note(None, before, change);
                return;
            }
            Event::Duplicate => host.ack(0, None),
            Event::Optimistic => {
                let bytes = host.facts.mss.0.min(host.facts.inflight.0);
                let mut ack = host.acknowledge(bytes, None);
                ack.upto = SendOrder::new(u64::MAX);
                host.control.on_ack(&host.facts, &ack)
            }
        };
        let ack = match e {
            Event::Duplicate => Some(Bytes::ZERO),
            Event::Optimistic => Some(self.host.facts.mss),
            _ => None,
        };
        self.note(ack, before, change);
    }

    /// The next ACK of the path, for `stretch` packets.
    pub(crate) fn arrive(&mut self, plan: &Plan) {
        let host = &mut self.host;
        if let Some(q) = &mut host.facts.host_queue {
            // Data in flight fills the host's own queue first.
            q.used = host.facts.inflight.min(q.limit);
        }
        let n = plan.stretch.min(host.out()).max(1) as u64;
        let left = host.oldest().at;
        self.bits = self.bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let jitter = if plan.jitter == 0 { 0 } else { (self.bits >> 33) % plan.jitter };
        host.facts.now = (left + plan.base).max(host.facts.now + plan.each * n) + Span(jitter);
        let rtt = host.facts.now.since(left);
        let mut todo = n * plan.mss;
        let part = (todo / plan.split).max(1);
        while todo > 0 {
            let bytes = part.min(todo);
            todo -= bytes;
            let before = self.host.state();
            let change = self.host.ack(bytes, Some(rtt));
            self.note(Some(Bytes(bytes)), before, change);
        }
        if self.recover.is_some_and(|r| self.host.una >= r) {
            self.recover = None;
            let before = self.host.state();
            let change = self.host.recovered(false);
            self.note(None, before, change);
        }
    }
}

/// Runs a startup and an avoidance over the plan.
pub(crate) fn run(plan: &Plan, s: &registry::AlgorithmEntry, a: &Follower, from: Origin) -> Vec<Seen> {
    let mut f = facts(plan.mss, plan.iw);
    f.now = Instant(from.time);
    f.next = SendOrder::new(from.mark);
    f.growth = plan.growth;
    f.min_window = f.mss * plan.floor;
    f.gso_max = Bytes(65_536);
    f.pacing_rate = plan.pacing;
    f.pacing_on = plan.pacing.is_some();
    f.unsent = plan.unsent.map(|n| Bytes(plan.mss * n));
    f.host_queue = plan.host_queue.map(|n| HostQueue { used: Bytes::ZERO, limit: Bytes(plan.mss * n) });
    let before = State { cwnd: f.iw, ssthresh: None, pace: None, wake: None };
    let control = s.algorithm.controller(&a.avoidance, f.iw, 1);
    let (host, change) = Host::of(control, f, &plan.handshake);
    let mut run = Run { host, seen: Vec::new(), recover: None, bits: 1 };
    run.host.origin = from.mark;
    run.note(None, before, change);
    for i in 0..plan.acks {
        for (_, e) in plan.events.iter().filter(|(at, _)| *at == i) {
            run.event(*e);
        }
        run.host.fill_up_to(Bytes(plan.mss * plan.room));
        let over = run.host.out().saturating_sub(plan.queue);
        if over > 0 && run.recover.is_none() {
            run.recover = Some(run.host.next);
            let before = run.host.state();
            let change = run.host.lose(over);
            run.note(None, before, change);
        }
        if run.host.out() > 0 {
            run.arrive(plan);
        }
    }
    run.seen
}
