//! Identifiers of the engine: flows, lines, clocks, and what a pending event stands for.
//!
//! Each is a newtype over an integer, so that none can be used in place of another. They cost nothing at run
//! time.

use crate::ends::End;
use crate::tcp::endpoint::CLOCKS;

/// The index of a flow in [`Engine::flows`](super::Engine::flows).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u32);

impl FlowId {
    /// The number as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A line of packets on their way in one direction: twice the index of its route (or, where flows come and go, of
/// its slot), plus one for the direction from the client to the server.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LineId(u32);

impl LineId {
    /// The line of pair `pair` into which `sender` sends.
    #[inline]
    pub(super) const fn new(pair: usize, sender: End) -> Self {
        Self(2 * pair as u32 + sender as u32)
    }

    /// The end of a flow that sends into this line.
    #[inline]
    pub(super) const fn sender(self) -> End {
        if self.0.is_multiple_of(2) { End::Server } else { End::Client }
    }

    /// The pair of lines, one for each direction, to which it belongs.
    #[inline]
    pub(super) const fn pair(self) -> usize {
        self.0 as usize / 2
    }

    /// The number as an index.
    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of clocks of a flow: those of both ends, and the application's.
pub(super) const FLOW_CLOCKS: usize = 2 * CLOCKS + 1;

/// A clock of a flow: the server's [`CLOCKS`] clocks, then the client's, then the application's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct ClockId(u8);

impl ClockId {
    /// The clock of the application. The client's begins the connection.
    pub(super) const APPLICATION: Self = Self(FLOW_CLOCKS as u8 - 1);

    /// The clock for deadline `i` of [`Endpoint::deadlines`](crate::tcp::endpoint::Endpoint::deadlines) of an
    /// end.
    #[inline]
    pub(super) const fn of(end: End, i: usize) -> Self {
        Self((end as usize * CLOCKS + i) as u8)
    }

    /// The end at which it fires, and the index of its deadline there. Not for the application's.
    #[inline]
    pub(super) const fn deadline(self) -> (End, usize) {
        let end = if self.index() < CLOCKS { End::Server } else { End::Client };
        (end, self.index() % CLOCKS)
    }

    /// The end at which it fires; for the application's, unless it says where.
    #[inline]
    pub(super) const fn end(self) -> End {
        if self.index() < CLOCKS { End::Server } else { End::Client }
    }

    /// The number as an index.
    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a pending event stands for, as a number: an arrival over a line (lines are numbered first), a clock
/// of a flow, or a departure from a queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Source(pub(super) u32);

impl Source {
    /// An arrival over a line.
    #[inline]
    pub(super) const fn line(line: LineId) -> Self {
        Self(line.0)
    }

    /// A clock of a flow, where there are this many lines.
    #[inline]
    pub(super) const fn clock(lines: usize, flow: FlowId, clock: ClockId) -> Self {
        Self((lines + flow.index() * FLOW_CLOCKS + clock.index()) as u32)
    }

    /// A departure from the queue that an end sends into; the end is known where the event is taken.
    pub(super) const QUEUE: Self = Self(u32::MAX);

    /// What it stands for, where there are this many lines.
    #[inline]
    pub(super) const fn split(self, lines: usize) -> Due {
        match (self.0 as usize).checked_sub(lines) {
            Some(_) if self.0 == Self::QUEUE.0 => Due::Queue,
            Some(clock) => {
                Due::Clock(FlowId((clock / FLOW_CLOCKS) as u32), ClockId((clock % FLOW_CLOCKS) as u8))
            }
            None => Due::Line(LineId(self.0)),
        }
    }
}

/// What an event is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The first packet of a line arrives.
    Line(LineId),
    /// A clock of a flow fires.
    Clock(FlowId, ClockId),
    /// The queue discipline of the direction that an end sends into lets a packet leave.
    Queue,
}

/// Where a packet goes: twice the flow, plus one for its client.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Destination(u32);

impl Destination {
    /// An end of a flow.
    #[inline]
    pub(super) const fn new(flow: FlowId, end: End) -> Self {
        Self(2 * flow.0 + end as u32)
    }

    /// The flow.
    #[inline]
    pub(super) const fn flow(self) -> FlowId {
        FlowId(self.0 / 2)
    }
}
