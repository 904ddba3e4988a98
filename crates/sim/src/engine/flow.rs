//! A flow: its two endpoints, its application, and what the engine observes of it.

use super::id::{FLOW_CLOCKS, FlowId, LineId};
use super::truth::{OneWay, Truth};
use crate::app::{App, Feedback, Kind as AppKind, Object};
use crate::ends::{End, PerEnd};
use crate::path::Links;
use crate::random::{Name, Stream};
use crate::tcp::endpoint::{Endpoint, State};
use crate::tcp::profile::Profile;
use crate::tcp::sender::Phase;
use slowstart::avoidance::AnyAvoidance;
use slowstart::control::Checked;
use slowstart::registry::{Algorithm, AnyController};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::PathMemory;
use std::mem::take;

/// The controller that an endpoint of the laboratory drives.
pub type Control = Checked<AnyController>;

/// The direction of a flow's data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server, which listens, along [`Path::forward`](crate::path::Path::forward).
    Download,
    /// From the client, which connects, along [`Path::back`](crate::path::Path::back).
    Upload,
}

impl Direction {
    /// The end that sends the data.
    pub(super) fn sender(self) -> End {
        match self {
            Self::Download => End::Server,
            Self::Upload => End::Client,
        }
    }
}

/// The specification of a flow.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct FlowSpec {
    /// When its client connects.
    pub start: Instant,
    /// The direction of its data.
    pub direction: Direction,
    /// True if its samples, events and packets are recorded.
    pub recorded: bool,
    /// What its application does.
    pub app: AppKind,
    /// The TCP stack of both ends.
    pub profile: Profile,
    /// Propagation delay of its own, in each direction, on top of the path's.
    pub extra_delay: Span,
    /// Which links of the path its data crosses, if that is downloaded.
    pub links: Links,
    /// What its sender remembers of an earlier connection on this path.
    pub remembered: Option<PathMemory>,
    /// From when on drops and delays of this flow are counted in [`Truth::impact`]; `None` for never.
    pub impact_from: Option<Instant>,
    /// The congestion avoidance that follows the startup.
    pub avoidance: AnyAvoidance,
    /// The startup, or a controller that needs no avoidance.
    pub startup: Algorithm,
}

/// What all packets that an end of a flow sends have in common.
#[derive(Copy, Clone, Debug)]
pub(super) struct Origin {
    /// The line into which it sends.
    pub(super) line: LineId,
    pub(super) flow: FlowId,
    pub(super) end: End,
    /// True at the end that sends the flow's data.
    pub(super) is_sender: bool,
    /// True if its packets, and those that arrive there, are captured.
    pub(super) captured: bool,
}

/// A flow. Fields that every packet needs come first (docs/dev/engine.md, "Memory layout").
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Flow {
    /// What all packets of its server and of its client have in common.
    pub(super) origins: PerEnd<Origin>,
    /// The pending time of each clock; [`Instant::NEVER`] if none.
    pub(super) armed: [Instant; FLOW_CLOCKS],
    /// The bytes that must be delivered to each end before its application has to act.
    pub(super) due: PerEnd<u64>,
    /// True for each end whose application has closed.
    pub(super) closed: PerEnd<bool>,
    /// Copies from `spec` that every packet needs: the end that sends data, the bytes of headers of a full
    /// packet, and whether drops and delays are counted in [`Truth::impact`].
    sender: End,
    headers: u8,
    pub(super) witness: bool,
    pub(super) one_way: OneWay,
    /// What the engine observed of it.
    pub truth: Truth,
    /// What was asked of the flow.
    pub spec: FlowSpec,
    /// Its two endpoints: the server's, which listens, and the client's.
    pub ends: PerEnd<Endpoint<Control>>,
    pub(super) app: App,
}

impl Flow {
    /// A flow to which nothing has happened yet, which sends into these lines. Its random numbers follow from
    /// `seed` and `number`, which differs for each flow of an engine. Its packets are captured if `captures`,
    /// and if it is recorded.
    pub(super) fn new(
        number: usize,
        flow: FlowId,
        spec: FlowSpec,
        lines: PerEnd<LineId>,
        seed: u64,
        captures: bool,
    ) -> Self {
        let p = &spec.profile;
        let iw = Bytes(u64::from(p.iw) * u64::from(p.mss));
        let name = Name::new("flow").number(number);
        let random = |end: &str, what: &str| Stream::of(seed, name.text(end).text(what)).any();
        let origin = |end| Origin {
            line: lines[end],
            flow,
            end,
            is_sender: end == spec.direction.sender(),
            captured: captures && spec.recorded,
        };
        let control =
            |end: &str| Checked::new(spec.startup.controller(&spec.avoidance, iw, random(end, ".control")));
        let isn = |end: &str| random(end, ".isn") as u32;
        let mut server = Endpoint::listening(p, control(".server"), isn(".server"));
        let mut client = Endpoint::connecting(p, control(".client"), isn(".client"));
        server.remembered = spec.remembered;
        client.remembered = spec.remembered;
        Self {
            ends: PerEnd::new(server, client),
            app: App::new(spec.app, Stream::of(seed, name.text(".app"))),
            closed: PerEnd::default(),
            due: PerEnd::default(),
            sender: spec.direction.sender(),
            headers: (p.packet() - p.mss) as u8,
            witness: spec.impact_from.is_some(),
            one_way: OneWay::new(spec.start),
            origins: PerEnd::new(origin(End::Server), origin(End::Client)),
            armed: [Instant::NEVER; FLOW_CLOCKS],
            truth: Truth::new(spec.impact_from),
            spec,
        }
    }

    /// Lets `new`, to which nothing has happened yet, take the place of this flow, which is over. It uses the memory
    /// that this one had allocated.
    #[inline]
    pub(super) fn replace(&mut self, new: Self) {
        let (mut bins, mut min_rtts) = (take(&mut self.truth.bins), take(&mut self.one_way.min_rtts));
        let senders = [End::Server, End::Client].map(|end| (end, self.ends[end].tx.take_memory()));
        *self = new;
        bins.clear();
        min_rtts.clear();
        (self.truth.bins, self.one_way.min_rtts) = (bins, min_rtts);
        for (end, memory) in senders {
            self.ends[end].tx.use_memory(memory);
        }
    }

    /// The end that sends data.
    #[inline]
    pub fn sender(&self) -> End {
        self.sender
    }

    /// What its sender knows of the path.
    pub(super) fn feedback(&self) -> Feedback {
        let tx = &self.ends[self.sender].tx;
        let waits = tx.rtt().srtt().zip(tx.rtt().min()).map(|(smoothed, least)| smoothed - least);
        let recovers = matches!(tx.phase(), Phase::Recovery | Phase::Loss);
        Feedback { queue_delay: waits.unwrap_or_default(), unsent: tx.unsent(), recovers }
    }

    /// The objects that its application requested ([`App::objects`]).
    pub fn objects(&self) -> &[Object] {
        self.app.objects()
    }

    /// True if the sender's controller, of a host, broke the rules of one.
    pub(super) fn is_broken(&self) -> bool {
        self.ends[self.sender].tx.control().get().is_broken()
    }

    /// What the sender's controller, of a host, did wrong.
    pub fn fault(&self) -> Option<String> {
        let mut why = None;
        self.ends[self.sender].tx.control().get().fault(&mut |text| why = Some(text.to_string()));
        why
    }

    /// Bytes delivered to the receiving application.
    pub fn delivered(&self) -> u64 {
        self.ends[self.sender.other()].rx.delivered()
    }

    /// True if the engine has nothing to do about the last event of an end: no sender's event to record, no
    /// capacity to check, and nothing for the application.
    #[inline]
    pub(super) fn is_quiet(&self, end: End) -> bool {
        self.ends[end].tx.events.is_empty()
            && self.has_nothing_for_application(end)
            && (end != self.sender || self.truth.capacity.is_some())
    }

    /// True if the application of an end has nothing to do about what has been delivered.
    #[inline]
    pub(super) fn has_nothing_for_application(&self, end: End) -> bool {
        let rx = &self.ends[end].rx;
        // Not less than what is delivered.
        rx.next() <= self.due[end] && (self.closed[end] || !rx.finished())
    }

    /// True if an end gave up the handshake, with the peer or with a proxy: no more data can arrive.
    pub fn handshake_failed(&self) -> bool {
        self.truth.proxy_handshake_failed || self.ends.iter().any(|e| e.state() == State::Failed)
    }

    /// The lines into which its server and its client send.
    pub(super) fn lines(&self) -> PerEnd<LineId> {
        PerEnd::new(self.origins[End::Server].line, self.origins[End::Client].line)
    }

    /// Begins or ends capturing its packets.
    pub(super) fn set_captured(&mut self, captured: bool) {
        for end in [End::Server, End::Client] {
            self.origins[end].captured = captured;
        }
    }

    /// Takes `len` bytes of data that left at `sent` and arrive at the receiver at `now`.
    #[inline]
    pub(super) fn record_arrival(&mut self, now: Instant, sent: Instant, len: u32) {
        self.one_way.record_arrival(now, sent, self.witness, &mut self.truth);
        self.truth.count_arrival(now, self.spec.start, len);
    }

    /// The most bytes that were in flight, headers included.
    pub(super) fn most_inflight_wire(&self) -> Bytes {
        let mss = u64::from(self.spec.profile.mss);
        Bytes(self.ends[self.sender].tx.counters.peak_inflight).scale(mss + u64::from(self.headers), mss)
    }

    /// Bytes in flight, headers included.
    pub(super) fn inflight_wire(&self) -> Bytes {
        let board = self.ends[self.sender].tx.board();
        board.inflight() + Bytes(u64::from(board.packets_inflight()) * u64::from(self.headers))
    }
}
