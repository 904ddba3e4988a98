//! Queue disciplines: which packet of a link's queue leaves next, and which are dropped or marked.
//!
//! A [`Discipline`] is one as written; [`Discipline::build`] makes a [`Queue`] to run. Lengths are those of
//! Ethernet frames, as the kernel counts them: 14 bytes more than the IP packet. The memory of a packet is
//! our estimate of the kernel's `truesize`. Time and random values are arguments, so that the kernel's own
//! times can be replayed.

mod flow_lists;
mod store;
mod tc_syntax;

use slowstart::units::{Instant, Span};

use super::{Cause, Dropped, Ecn, PacketInfo};
use crate::random::Stream;
use tc_syntax::Grammar;
pub(super) use tc_syntax::{Wrong, wrong};

/// Bytes of an Ethernet header.
const HEADER: u32 = 14;
/// Bytes of a full IP packet, and what it takes of the kernel's memory.
const FULL: u64 = 1500;
const FULL_MEMORY: u64 = 2304;

/// A packet in a queue.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// By which its owner knows it.
    pub id: u32,
    /// The flow it belongs to.
    pub flow: u32,
    /// The length of the IP packet in bytes; below 2^30.
    pub bytes: u32,
    /// Its codepoint of explicit congestion notification.
    pub ecn: Ecn,
    /// When it came to the queue.
    pub at: Instant,
}

impl Packet {
    /// The length of its Ethernet frame.
    pub(super) const fn frame(&self) -> u32 {
        self.bytes + HEADER
    }

    /// The memory it takes in the kernel: ours, 2304 bytes for a full packet and 1024 for an ACK.
    const fn memory(&self) -> u64 {
        (self.frame() as u64 + 768).next_multiple_of(256)
    }
}

/// A packet that left a queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// By which its owner knows it.
    pub id: u32,
    /// The length of the IP packet in bytes.
    pub bytes: u32,
    /// Its ECN codepoint, with the queue's mark if it was marked.
    pub ecn: Ecn,
    /// How long it was in the queue.
    pub waited: Span,
    /// When it arrives, or its drop.
    pub outcome: Result<Instant, Dropped>,
    /// True if a copy of it, which its owner knows by the same number, leaves later.
    pub stays: bool,
}

impl Departure {
    /// A packet that did not come to the queue.
    pub(super) fn refused(p: &PacketInfo, id: u32, dropped: Dropped) -> Self {
        Self { id, bytes: p.bytes, ecn: p.ecn, waited: Span::ZERO, outcome: Err(dropped), stays: false }
    }

    pub(super) fn dropped(p: &Packet, at: Instant, cause: Cause) -> Self {
        Self {
            id: p.id,
            bytes: p.bytes,
            ecn: p.ecn,
            waited: at.since(p.at),
            outcome: Err(Dropped::new(at, cause)),
            stays: false,
        }
    }
}

/// A discipline that runs.
trait Queueing {
    /// See [`Queue::enqueue`].
    fn enqueue(&mut self, p: Packet, out: &mut Vec<Departure>);
    /// See [`Queue::dequeue`].
    fn dequeue(&mut self, now: Instant, out: &mut Vec<Departure>) -> Option<Packet>;
    /// Number of packets in the queue.
    fn packets(&self) -> usize;
    /// Bytes of their frames.
    fn frame_bytes(&self) -> u32;
    /// See [`Queue::marks`].
    fn marks(&self) -> bool {
        false
    }
    /// See [`Queue::probability`].
    fn probability(&self) -> Option<f64> {
        None
    }
}

/// The parameters of a discipline, checked.
trait Settings {
    /// What runs with them.
    type Queue: Queueing;
    /// True if decisions depend on random values; those of `fq_codel` only say which flows share a queue.
    const IS_RANDOM: bool = false;
    /// An empty queue, with random values from a stream.
    fn build(self, stream: Stream) -> Self::Queue;
    /// The most bytes of IP packets that it holds, packets of 1500 bytes where the limit is in packets.
    fn most_bytes(&self) -> u64;
}

/// Defines [`Discipline`] and [`Queue`] for a list of modules. Each has `Params`, which are [`Settings`], the
/// type of its queue, and `GRAMMARS`, the disciplines of `tc` that are read into them.
macro_rules! disciplines {
    ($($module:ident::$kind:ident;)+) => {
        $(mod $module;)+

        /// Every discipline of `tc` that can be written, in the order of messages.
        const GRAMMARS: &[&[Grammar]] = &[$($module::GRAMMARS),+];

        #[derive(Clone, Debug, PartialEq, Eq)]
        enum Kind { $($kind($module::Params)),+ }

        #[derive(Clone, Debug)]
        enum State { $($kind($module::$kind)),+ }

        impl Discipline {
            /// A queue of its own, with random values from a stream.
            pub fn build(&self, stream: Stream) -> Queue {
                Queue { state: match self.kind.clone() { $(Kind::$kind(p) => State::$kind(p.build(stream))),+ } }
            }

            /// The most bytes of IP packets that it holds, packets of 1500 bytes where the limit is in
            /// packets.
            pub(super) fn most_bytes(&self) -> u64 {
                match &self.kind { $(Kind::$kind(p) => p.most_bytes()),+ }
            }

            /// True if its decisions depend on random values.
            pub(super) const fn is_random(&self) -> bool {
                match self.kind { $(Kind::$kind(_) => <$module::Params as Settings>::IS_RANDOM),+ }
            }
        }

        /// Evaluates an expression for whichever discipline runs.
        macro_rules! each {
            ($state:expr, $q:ident => $value:expr) => { match $state { $(State::$kind($q) => $value),+ } };
        }
    };
}

disciplines! {
    drop_tail::DropTail;
    head_drop::HeadDrop;
    codel::Codel;
    fq_codel::FqCodel;
    pie::Pie;
    red::Red;
    dualpi2::DualPi2;
    fq::Fq;
}

/// A queue discipline as written, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discipline {
    kind: Kind,
}

/// A queue to run.
#[derive(Clone, Debug)]
pub struct Queue {
    state: State,
}

impl Queue {
    /// Puts a packet into the queue at its time, not before that of any call before. Adds what is dropped to
    /// `out`: the packet itself, or others to make room.
    pub fn enqueue(&mut self, p: Packet, out: &mut Vec<Departure>) {
        each!(&mut self.state, q => q.enqueue(p, out));
    }

    /// Takes the next packet to send at `now`, not before the time of any call before. Adds what is dropped
    /// to `out`; may return none although packets waited, if all were dropped.
    pub fn dequeue(&mut self, now: Instant, out: &mut Vec<Departure>) -> Option<Packet> {
        each!(&mut self.state, q => q.dequeue(now, out))
    }

    /// Number of packets in the queue.
    pub fn packets(&self) -> usize {
        each!(&self.state, q => q.packets())
    }

    /// Bytes of the IP packets in the queue.
    pub fn bytes(&self) -> u64 {
        let frames = each!(&self.state, q => q.frame_bytes());
        u64::from(frames) - self.packets() as u64 * u64::from(HEADER)
    }

    /// Returns true if it is meant to mark capable packets. FQ-CoDel, which can by default, is so only with a
    /// threshold.
    pub fn marks(&self) -> bool {
        each!(&self.state, q => q.marks())
    }

    /// Returns the probability with which the controller of `pie` or `dualpi2` drops or marks now, from 0 to
    /// 1.
    pub fn probability(&self) -> Option<f64> {
        each!(&self.state, q => q.probability())
    }
}
