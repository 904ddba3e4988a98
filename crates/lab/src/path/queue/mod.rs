//! Queue disciplines: which packet of a link's queue leaves next, and which are dropped or marked.
//!
//! A [`Discipline`] is one as written; [`Discipline::build`] makes a [`Queue`] to run. Lengths are those of Ethernet frames,
//! as the kernel counts them: 14 bytes more than the IP packet. The memory of a packet is our estimate of the kernel's
//! `truesize`. Time and random values are arguments, so that the kernel's own times can be replayed.

mod codel;
mod dualpi2;
mod fq;
mod fq_codel;
mod pie;
mod red;
mod store;
mod turns;
mod words;

use slowstart::units::{Instant, Span};

use super::{Cause, Dropped, Ecn};
use crate::random::Stream;

/// Bytes of an Ethernet header.
const HEADER: u32 = 14;

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
    const fn frame(&self) -> u32 {
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
}

impl Departure {
    pub(super) fn dropped(p: &Packet, at: Instant, cause: Cause) -> Self {
        Self {
            id: p.id,
            bytes: p.bytes,
            ecn: p.ecn,
            waited: at.since(p.at),
            outcome: Err(Dropped { at, cause }),
        }
    }
}

/// A queue discipline as written, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discipline {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Fifo { packets: usize, bytes: u32 },
    Codel(codel::Params),
    FqCodel(fq_codel::Params),
    Pie(pie::Params),
    Red(red::Params),
    DualPi2(dualpi2::Params),
    Fq(fq::Params),
}

/// A queue to run.
#[derive(Clone, Debug)]
pub struct Queue {
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Fifo { fifo: store::Fifo, packets: usize, bytes: u32 },
    Codel(codel::Codel),
    FqCodel(fq_codel::FqCodel),
    Pie(pie::Pie),
    Red(Box<red::Red>),
    DualPi2(dualpi2::DualPi2),
    Fq(fq::Fq),
}

impl Discipline {
    /// A queue of its own, with random values from a stream.
    pub fn build(&self, mut stream: Stream) -> Queue {
        let state = match self.kind.clone() {
            Kind::Fifo { packets, bytes } => State::Fifo { fifo: store::Fifo::default(), packets, bytes },
            Kind::Codel(p) => State::Codel(codel::Codel::new(p)),
            Kind::FqCodel(p) => State::FqCodel(fq_codel::FqCodel::new(p, stream.any())),
            Kind::Pie(p) => State::Pie(pie::Pie::new(p, stream)),
            Kind::Red(p) => State::Red(Box::new(red::Red::new(p, stream))),
            Kind::DualPi2(p) => State::DualPi2(dualpi2::DualPi2::new(p, stream)),
            Kind::Fq(p) => State::Fq(fq::Fq::new(p)),
        };
        Queue { state }
    }

    /// The most bytes of IP packets that it holds, packets of 1500 bytes where the limit is in packets.
    pub(super) fn most_bytes(&self) -> u64 {
        let packets = match &self.kind {
            Kind::Fifo { packets, bytes } => {
                return (*packets as u64).saturating_mul(1500).min(u64::from(*bytes));
            }
            Kind::Red(p) => return u64::from(p.limit),
            Kind::FqCodel(p) => (p.limit as u64).min(p.memory_limit / 2304),
            Kind::DualPi2(p) => (p.limit as u64).min(p.memory_limit / 2304),
            Kind::Codel(p) => p.limit as u64,
            Kind::Pie(p) => p.limit as u64,
            Kind::Fq(p) => p.limit as u64,
        };
        packets * 1500
    }

    /// True if its decisions depend on random values. That of FQ-CoDel does: which flows share a queue.
    pub(super) const fn is_random(&self) -> bool {
        matches!(self.kind, Kind::Pie(_) | Kind::Red(_) | Kind::DualPi2(_))
    }
}

impl Queue {
    /// Puts a packet into the queue at its time, not before that of any call before. Adds what is dropped to `out`: the
    /// packet itself, or others to make room.
    pub fn enqueue(&mut self, p: Packet, out: &mut Vec<Departure>) {
        match &mut self.state {
            State::Fifo { fifo, packets, bytes } => {
                if fifo.packets() >= *packets
                    || fifo.bytes() - HEADER * fifo.packets() as u32 + p.bytes > *bytes
                {
                    out.push(Departure::dropped(&p, p.at, Cause::QueueFull));
                } else {
                    fifo.push(p);
                }
            }
            State::Codel(q) => q.enqueue(p, out),
            State::FqCodel(q) => q.enqueue(p, out),
            State::Pie(q) => q.enqueue(p, out),
            State::Red(q) => q.enqueue(p, out),
            State::DualPi2(q) => q.enqueue(p, out),
            State::Fq(q) => q.enqueue(p, out),
        }
    }

    /// Takes the next packet to send at `now`, not before the time of any call before. Adds what is dropped to `out`; may
    /// return none although packets waited, if all were dropped.
    pub fn dequeue(&mut self, now: Instant, out: &mut Vec<Departure>) -> Option<Packet> {
        match &mut self.state {
            State::Fifo { fifo, .. } => fifo.pop(),
            State::Codel(q) => q.dequeue(now, out),
            State::FqCodel(q) => q.dequeue(now, out),
            State::Pie(q) => q.dequeue(now),
            State::Red(q) => q.dequeue(now),
            State::DualPi2(q) => q.dequeue(now, out),
            State::Fq(q) => q.dequeue(now),
        }
    }

    /// Number of packets in the queue.
    pub fn packets(&self) -> usize {
        match &self.state {
            State::Fifo { fifo, .. } => fifo.packets(),
            State::Codel(q) => q.queue().packets(),
            State::FqCodel(q) => q.packets(),
            State::Pie(q) => q.queue().packets(),
            State::Red(q) => q.queue().packets(),
            State::DualPi2(q) => q.packets(),
            State::Fq(q) => q.packets(),
        }
    }

    /// Bytes of the IP packets in the queue.
    pub fn bytes(&self) -> u64 {
        let frames = match &self.state {
            State::Fifo { fifo, .. } => fifo.bytes(),
            State::Codel(q) => q.queue().bytes(),
            State::FqCodel(q) => q.bytes(),
            State::Pie(q) => q.queue().bytes(),
            State::Red(q) => q.queue().bytes(),
            State::DualPi2(q) => q.bytes(),
            State::Fq(q) => q.bytes(),
        };
        u64::from(frames) - self.packets() as u64 * u64::from(HEADER)
    }

    /// Returns true if it is meant to mark capable packets. FQ-CoDel, which can by default, is so only with a threshold.
    pub fn marks(&self) -> bool {
        match &self.state {
            State::Fifo { .. } | State::Fq(_) => false,
            State::Codel(q) => q.marks(),
            State::FqCodel(q) => q.marks(),
            State::Pie(q) => q.marks(),
            State::Red(q) => q.marks(),
            State::DualPi2(_) => true,
        }
    }

    /// The probability of the controller of `pie` and `dualpi2`, from 0 to 1.
    pub fn probability(&self) -> Option<f64> {
        match &self.state {
            State::Pie(q) => Some(q.probability()),
            State::DualPi2(q) => Some(q.probability()),
            _ => None,
        }
    }
}
