//! A flow: its two ends, what its application is about, and the truth that its row is judged by.

use super::net::SOURCES;
use crate::app::{App, Exchange, Kind as AppKind};
use crate::random::Stream;
use crate::tcp::endpoint::Endpoint;
use crate::tcp::profile::Profile;
use slowstart::avoidance::AnyAvoidance;
use slowstart::control::Exited;
use slowstart::registry::{Algorithm, AnyController};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::PathMemory;
use std::collections::VecDeque;

/// What an endpoint of the laboratory drives.
pub type Control = AnyController;

/// Which way a flow's data goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server, which listens, along [`Path::forward`](crate::path::Path::forward).
    Download,
    /// From the client, which connects, along [`Path::back`](crate::path::Path::back).
    Upload,
}

/// A flow to be.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct FlowSpec {
    /// When its client connects.
    pub start: Instant,
    /// Which way its data goes.
    pub direction: Direction,
    /// Whether its samples are recorded.
    pub recorded: bool,
    /// What its application does.
    pub app: AppKind,
    /// Both ends' stack.
    pub profile: Profile,
    /// Propagation of its own, each way, beyond the path's.
    pub extra_delay: Span,
    /// What an earlier connection on this path left to its sender.
    pub remembered: Option<PathMemory>,
    /// From when on it witnesses what another flow does to it.
    pub witness_from: Option<Instant>,
    /// What follows a startup.
    pub avoidance: AnyAvoidance,
    /// Its startup, or a controller of its own.
    pub startup: Algorithm,
}

/// Bytes at which the time is noted.
pub const MILESTONES: [u64; 3] = [100_000, 1_000_000, 10_000_000];
/// Width of the bins in which throughput is kept for the heuristics.
pub const BIN: Span = Span::millis(10);

/// What the engine knows of a flow beyond its endpoints: the truth that a row is judged by. What each packet may change
/// comes first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Truth {
    /// The longest wait at the bottleneck.
    pub peak_queue_delay: Span,
    /// Bytes that arrived in the present [`BIN`], and when that is over.
    bin: u32,
    bin_ends: Instant,
    /// What the flow suffers from a time on, if it is asked to witness.
    pub witness: Option<Box<Witness>>,
    /// When data in flight first reached what the path then held.
    pub capacity: Option<Instant>,
    /// Those of the bins before the present one.
    bins: Vec<u32>,
    /// The end of the startup.
    pub exit: Option<Exited>,
    /// The newest round-trip sample when the startup ended.
    pub exit_rtt: Option<Span>,
    /// The network's first drop of its data.
    pub first_drop: Option<Instant>,
    /// The sender's first knowledge of a loss.
    pub first_loss: Option<Instant>,
    /// Data packets dropped.
    pub dropped: u64,
    /// Of those sent before the startup ended.
    pub dropped_in_startup: u64,
    /// When the receiver had everything.
    pub completed: Option<Instant>,
    /// When it had each of [`MILESTONES`].
    pub milestones: [Option<Instant>; MILESTONES.len()],
    /// The thesis' capacity point: when the one-way delay last rose above half the least round trip before it exceeded
    /// two.
    pub capacity_by_delay: Option<Instant>,
}

impl Truth {
    /// The first bytes of a bin arrive, of a flow that began at `start`.
    #[cold]
    fn begin_bin(&mut self, now: Instant, start: Instant, bytes: u32) {
        self.bins.extend(self.present());
        let bin = now.since(start).0 / BIN.0;
        self.bins.resize(bin as usize, 0);
        (self.bin, self.bin_ends) = (bytes, start + BIN * (bin + 1));
    }

    /// The present bin, once something has arrived.
    fn present(&self) -> Option<u32> {
        (self.bin_ends > Instant::ZERO).then_some(self.bin)
    }

    /// Bytes that arrived in each [`BIN`] since the flow began.
    pub fn bins(&self) -> Vec<u32> {
        self.bins.iter().copied().chain(self.present()).collect()
    }
}

/// What a flow suffers from a time on: drops, and one-way delays above the least in classes of an eighth of an octave
/// from 1 us.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Nothing before this counts.
    pub from: Instant,
    /// Data packets dropped.
    pub dropped: u64,
    counts: [u64; 256],
}

impl Witness {
    fn new(from: Instant) -> Self {
        Self { from, dropped: 0, counts: [0; 256] }
    }

    fn add(&mut self, delay: Span) {
        let us = (delay.0 / 1000).max(1);
        let octave = us.ilog2();
        let eighth = ((us << 3) >> octave) & 7;
        self.counts[(octave as usize * 8 + eighth as usize).min(255)] += 1;
    }

    /// The `permille`-th quantile of delay: the upper edge of its class, within an eighth of the value.
    pub fn quantile(&self, permille: u64) -> Option<Span> {
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

/// The least one-way delay and what the delay heuristic has seen (thesis 5.2.1).
#[derive(Clone, Debug)]
#[repr(C)]
struct OneWay {
    least: Span,
    /// When it last was below half the least round trip; never, once it has exceeded two.
    last_below: Instant,
    /// The least round trip that the sender knew of when that packet left which arrived last.
    round_trip: Option<Span>,
    /// What it learned since, and when: packets that left later are on their way.
    learned: VecDeque<(Instant, Option<Span>)>,
}

/// A flow. What each packet needs comes first, so that among many flows it waits for few lines of memory.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Flow {
    /// The lines that its server and its client send into.
    pub(super) lines: [u32; 2],
    /// The pending time of each clock of each end, and of the application.
    pub(super) armed: [Instant; SOURCES],
    /// What must have arrived at each end before it has anything to do about that.
    pub(super) due: [u64; 2],
    pub(super) closed: [bool; 2],
    /// Of `spec`, at hand for each packet: the end that sends data, whether it is recorded, and the bytes of headers.
    sender: u8,
    pub(super) recorded: bool,
    headers: u8,
    one_way: OneWay,
    /// What the engine knows of it.
    pub truth: Truth,
    /// As it was asked for.
    pub spec: FlowSpec,
    /// Server and client.
    pub ends: [Endpoint<Control>; 2],
    pub(super) written: [u64; 2],
    pub(super) app: App,
    /// The exchange under way, and the offsets at which its request and answer are complete.
    pub(super) exchange: Option<(Exchange, Option<u64>, Option<u64>)>,
}

/// The end that listens.
pub(super) const SERVER: usize = 0;
/// The end that connects.
pub(super) const CLIENT: usize = 1;

impl Flow {
    /// The `i`th of an engine; nothing has happened.
    pub(super) fn new(i: usize, spec: FlowSpec, lines: [u32; 2], seed: u64) -> Self {
        let p = &spec.profile;
        let iw = Bytes(u64::from(p.iw) * u64::from(p.mss));
        let chance = |what: &str| Stream::named(seed, &format!("flow{i}.{what}")).any();
        let control =
            |end: &str| spec.startup.controller(&spec.avoidance, iw, chance(&format!("{end}.control")));
        let isn = |end: &str| chance(&format!("{end}.isn")) as u32;
        let mut ends = [
            Endpoint::listening(p, control("server"), isn("server")),
            Endpoint::connecting(p, control("client"), isn("client")),
        ];
        for end in &mut ends {
            end.remembered = spec.remembered;
        }
        Self {
            ends,
            app: App::new(spec.app, Stream::named(seed, &format!("flow{i}.app"))),
            exchange: None,
            written: [0; 2],
            closed: [false; 2],
            due: [0; 2],
            sender: if spec.direction == Direction::Download { SERVER } else { CLIENT } as u8,
            recorded: spec.recorded,
            headers: (p.packet() - p.mss) as u8,
            one_way: OneWay {
                least: Span::MAX,
                round_trip: None,
                learned: VecDeque::new(),
                last_below: spec.start,
            },
            lines,
            armed: [Instant::NEVER; SOURCES],
            truth: Truth {
                witness: spec.witness_from.map(|t| Box::new(Witness::new(t))),
                ..Truth::default()
            },
            spec,
        }
    }

    /// The end that sends data.
    pub fn sender(&self) -> usize {
        usize::from(self.sender)
    }

    /// Bytes the receiving application has.
    pub fn delivered(&self) -> u64 {
        self.ends[1 - self.sender()].rx.delivered()
    }

    /// Whether nothing has happened at an end that the engine would have to do anything about.
    pub(super) fn is_quiet(&self, end: usize) -> bool {
        let Endpoint { tx, rx, .. } = &self.ends[end];
        tx.events.is_empty()
            && rx.delivered() < self.due[end]
            && (self.closed[end] || !rx.finished())
            && (end != self.sender() || self.truth.capacity.is_some())
    }

    /// What the receiver's side shows of the path: data that left at `sent` arrives.
    pub(super) fn observe(&mut self, now: Instant, sent: Instant, len: u32) {
        let delay = now.since(sent);
        self.one_way.least = self.one_way.least.min(delay);
        let above = delay - self.one_way.least;
        while let Some((_, round_trip)) = self.one_way.learned.pop_front_if(|(when, _)| *when <= sent) {
            self.one_way.round_trip = round_trip;
        }
        if self.one_way.last_below < Instant::NEVER
            && let Some(min) = self.one_way.round_trip
        {
            if above < min / 2 {
                self.one_way.last_below = now;
            } else if above > min * 2 {
                let last = std::mem::replace(&mut self.one_way.last_below, Instant::NEVER);
                self.truth.capacity_by_delay = Some(last);
            }
        }
        if let Some(w) = self.truth.witness.as_mut().filter(|w| now >= w.from) {
            w.add(above);
        }
        if now < self.truth.bin_ends {
            self.truth.bin += len;
        } else {
            self.truth.begin_bin(now, self.spec.start, len);
        }
    }

    /// The sender was told something.
    #[inline]
    pub(super) fn learn(&mut self, sender: usize, now: Instant) {
        let least = self.ends[sender].tx.rtt().min();
        if least != self.one_way.learned.back().map_or(self.one_way.round_trip, |last| last.1) {
            self.one_way.learned.push_back((now, least));
        }
    }

    /// Bytes in flight, as packets on the wire.
    pub(super) fn inflight_wire(&self) -> Bytes {
        let board = self.ends[self.sender()].tx.board();
        board.inflight() + Bytes(u64::from(board.packets_inflight()) * u64::from(self.headers))
    }
}
