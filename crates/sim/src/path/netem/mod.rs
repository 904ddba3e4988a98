//! Linux's netem: loss, delay, reordering, duplication, corruption, a rate and slots, in one queue ordered by
//! the time to send (`net/sched/sch_netem.c`, the same from Linux 6.12 to 7.3).
//!
//! Departs from the kernel: its random numbers are those of the path's seed. Packets are single ones, where a
//! Linux sender gives its own netem bursts (GSO) that are lost and delayed as one.

mod spec;
mod stage;
mod tables;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use slowstart::units::{Bytes, Instant, NS_PER_S, Rate, Span, mul_div};

use super::queue::Packet;
use super::spec::PACKET;
use super::{Cause, Ecn};
use crate::random::Stream;
use spec::{Chance, Gap, Loss, Slots};
use tables::{Distribution, SCALE};

pub(super) use spec::Spec;
pub(super) use stage::Stage;

impl Spec {
    /// The constant part of its delay: what each packet has without jitter.
    pub(super) fn delay(&self) -> Span {
        Span(self.latency)
    }

    /// True if it sends packets at a rate.
    pub(super) fn has_rate(&self) -> bool {
        self.pace.is_some()
    }

    /// The rate of full IP packets that it lets through, in bits of them: its own rate, or what its limit lets
    /// be on its delay line; none if it has neither.
    pub(super) fn rate(&self) -> Option<Rate> {
        let full = Packet { bytes: PACKET.0 as u32, ..Packet::default() };
        let paced = self.time_of(full.frame()).map(|time| rate_of(1, time));
        paced.into_iter().chain(self.rate_by_limit()).min()
    }

    /// What its limit lets be on its delay line, as a rate; none if it does not delay.
    fn rate_by_limit(&self) -> Option<Rate> {
        (self.latency > 0).then(|| rate_of(self.limit as u64, self.latency))
    }

    /// Its limit in packets, if that is what bounds the rate of a path to this.
    pub(super) fn bounds(&self, rate: Rate) -> Option<usize> {
        (self.rate_by_limit() == Some(rate)).then_some(self.limit)
    }

    /// The bytes of full packets that may wait in it beside those on its delay line.
    pub(super) fn buffer(&self) -> Bytes {
        PACKET * self.limit as u64 - self.rate().map_or(Bytes::ZERO, |rate| rate.over(self.delay()))
    }

    /// True if what it does depends on random values.
    pub(super) fn is_random(&self) -> bool {
        self.jitter > 0
            || self.loss != Loss::None
            || [self.duplicate, self.corrupt, self.reorder].iter().any(|c| c.share > 0)
            || self.slots.is_some_and(|s| !matches!(s.gap, Gap::Uniform { least, most } if least == most))
    }

    /// True if packets may leave it in another order, or twice.
    pub(super) fn disorders(&self) -> bool {
        (self.jitter > 0 && self.pace.is_none()) || self.reorder.share > 0 || self.duplicate.share > 0
    }

    /// True if packets may leave it twice.
    pub(super) fn duplicates(&self) -> bool {
        self.duplicate.share > 0
    }

    /// The time that a frame takes, in nanoseconds; none if there is no rate.
    fn time_of(&self, frame: u32) -> Option<u64> {
        let pace = self.pace?;
        let bytes = (i64::from(frame) + i64::from(pace.overhead)).max(0) as u64;
        let bytes = match u64::from(pace.cell) {
            0 => bytes,
            cell => bytes.div_ceil(cell) * (cell as i64 + i64::from(pace.cell_overhead)) as u64,
        };
        Some((u128::from(bytes) * 1_000_000_000 / u128::from(pace.bytes_per_s)) as u64)
    }
}

/// The rate of a link that sends this number of full IP packets in `time` nanoseconds.
fn rate_of(packets: u64, time: u64) -> Rate {
    Rate(mul_div(packets * PACKET.0 * 8, NS_PER_S, time.max(1)).min(super::spec::UNLIMITED.0))
}

/// A draw that may follow the one before.
#[derive(Clone, Debug)]
struct Correlated {
    correlation: u32,
    last: u32,
}

impl Correlated {
    fn new(correlation: u32, stream: &mut Stream) -> Self {
        Self { correlation, last: if correlation > 0 { draw(stream) } else { 0 } }
    }

    fn draw(&mut self, stream: &mut Stream) -> u32 {
        let fresh = draw(stream);
        if self.correlation == 0 {
            return fresh;
        }
        let (value, rho) = (u64::from(fresh), u64::from(self.correlation) + 1);
        let mixed = value.wrapping_mul((1 << 32) - rho).wrapping_add(u64::from(self.last).wrapping_mul(rho));
        self.last = (mixed >> 32) as u32;
        self.last
    }
}

fn draw(stream: &mut Stream) -> u32 {
    (stream.any() >> 32) as u32
}

/// A random number below `n`.
fn below(stream: &mut Stream, n: u64) -> u64 {
    (u64::from(draw(stream)) * n) >> 32
}

/// A number around a mean, by a table or uniform; may be negative.
fn around(mean: u64, deviation: i32, random: u32, from: Option<Distribution>) -> i64 {
    let (mean, deviation) = (mean as i64, i64::from(deviation));
    let Some(from) = from else {
        return i64::from(random) % (2 * deviation) + mean - deviation;
    };
    let table = from.table();
    let times = i64::from(table[random as usize % table.len()]);
    let part = (deviation % SCALE) * times;
    let rounded = part + if part >= 0 { SCALE / 2 } else { -SCALE / 2 };
    rounded / SCALE + deviation / SCALE * times + mean
}

/// The state of a model of losses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// Good; or sent in a gap between bursts.
    Gap,
    /// Sent within a burst.
    SentInBurst,
    /// Bad; or lost within a burst.
    Burst,
    /// Lost alone.
    LostInGap,
}

/// A packet that is held.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Held {
    /// Its time to send, in nanoseconds.
    due: u64,
    /// Its place among those that came.
    place: u64,
    packet: Packet,
    /// How long it waits for the packets before it, beyond its delay.
    waited: Span,
    corrupt: bool,
    /// True if it is the second of a packet that arrives twice.
    is_copy: bool,
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.place).cmp(&(other.due, other.place))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The slot in which packets may leave.
#[derive(Copy, Clone, Debug)]
struct Slot {
    config: Slots,
    next: u64,
    packets_left: i32,
    bytes_left: i32,
}

/// A netem that runs.
#[derive(Clone, Debug)]
struct Netem {
    spec: Spec,
    stream: Stream,
    delays: Correlated,
    losses: Correlated,
    duplicates: Correlated,
    reorders: Correlated,
    corruptions: Correlated,
    state: State,
    /// Packets delayed since one overtook.
    counter: u32,
    came: u64,
    /// Packets that overtake all others, the last to come first.
    first: Vec<Held>,
    /// Packets by their time to send: those that came in that order, and the others.
    line: VecDeque<Held>,
    others: BinaryHeap<Reverse<Held>>,
    slot: Option<Slot>,
    /// When it is to be asked for packets.
    due: Instant,
}

impl Netem {
    fn new(spec: Spec, mut stream: Stream) -> Self {
        let mut correlated = |correlation| Correlated::new(correlation, &mut stream);
        let losses = match spec.loss {
            Loss::Random(chance) => chance.correlation,
            _ => 0,
        };
        let delays = correlated(spec.delay_correlation);
        let losses = correlated(losses);
        let duplicates = correlated(spec.duplicate.correlation);
        let reorders = correlated(spec.reorder.correlation);
        let corruptions = correlated(spec.corrupt.correlation);
        let slot = spec.slots.map(|config| Slot {
            config,
            next: 0,
            packets_left: config.packets,
            bytes_left: config.bytes,
        });
        Self {
            delays,
            losses,
            duplicates,
            reorders,
            corruptions,
            state: State::Gap,
            counter: 0,
            came: 0,
            first: Vec::new(),
            line: VecDeque::new(),
            others: BinaryHeap::new(),
            // No gap, no slots: as the kernel has it.
            slot: slot.filter(|s| s.config.gap != Gap::Uniform { least: 0, most: 0 }),
            due: Instant::NEVER,
            spec,
            stream,
        }
    }

    /// When it has something to do.
    fn next(&self) -> Option<Instant> {
        (self.due < Instant::NEVER).then_some(self.due)
    }

    fn len(&self) -> usize {
        self.first.len() + self.line.len() + self.others.len()
    }

    /// Takes in a packet at its time. Returns true if it will leave twice, or why it is dropped. It is to be
    /// asked for packets afterwards, as [`Self::next`] says.
    fn enqueue(&mut self, p: Packet) -> Result<bool, Cause> {
        let result = self.take(p, false);
        self.due = self.due.min(p.at);
        result
    }

    fn take(&mut self, mut p: Packet, is_copy: bool) -> Result<bool, Cause> {
        let mut copies = 1;
        let Chance { share, .. } = self.spec.duplicate;
        if share > 0 && !is_copy && share >= self.duplicates.draw(&mut self.stream) {
            copies += 1;
        }
        if self.loses() {
            if self.spec.ecn && p.ecn.is_capable() {
                p.ecn = Ecn::Ce;
            } else {
                copies -= 1;
            }
        }
        if copies == 0 {
            return Err(if matches!(self.spec.loss, Loss::Random(_)) { Cause::Random } else { Cause::Burst });
        }
        let Chance { share, .. } = self.spec.corrupt;
        let mut corrupt = false;
        if share > 0 && share >= self.corruptions.draw(&mut self.stream) {
            // A receiver sees a changed bit anywhere but in the address of the sender's interface.
            let place = below(&mut self.stream, u64::from(p.frame()));
            below(&mut self.stream, 8);
            corrupt = !(6..12).contains(&place);
        }
        if self.len() >= self.spec.limit {
            return Err(Cause::QueueFull);
        }
        // The copy enters first. If it is lost, none of the packet is.
        let copied = copies > 1 && self.take(p, true).is_ok();
        self.hold(p, corrupt, is_copy);
        Ok(copied)
    }

    fn hold(&mut self, packet: Packet, corrupt: bool, is_copy: bool) {
        let now = packet.at.0;
        let mut held = Held { due: now, place: self.came, packet, waited: Span::ZERO, corrupt, is_copy };
        self.came += 1;
        let Spec { gap, reorder, latency, jitter, distribution, .. } = self.spec;
        let delayed =
            gap == 0 || self.counter < gap - 1 || reorder.share < self.reorders.draw(&mut self.stream);
        if !delayed {
            self.counter = 0;
            self.first.push(held);
            return;
        }
        self.counter += 1;
        let mut delay = latency as i64;
        if jitter > 0 {
            delay = around(latency, jitter, self.delays.draw(&mut self.stream), distribution);
        }
        let mut from = now;
        if let Some(time) = self.spec.time_of(packet.frame()) {
            let last = [self.line.back(), self.first.first()];
            if let Some(last) = last.into_iter().flatten().map(|held| held.due).max() {
                held.waited = Span((last as i64 - now as i64 - delay).max(0) as u64);
                delay = (delay - (last as i64 - now as i64)).max(0);
                from = last;
            }
            delay += time as i64;
        }
        held.due = from.saturating_add_signed(delay);
        if self.line.back().is_none_or(|last| last.due <= held.due) {
            self.line.push_back(held);
        } else {
            self.others.push(Reverse(held));
        }
    }

    /// True if the next packet is lost.
    fn loses(&mut self) -> bool {
        match self.spec.loss {
            Loss::None => false,
            Loss::Random(Chance { share, .. }) => share > 0 && share >= self.losses.draw(&mut self.stream),
            Loss::Gilbert { p, r, h, k1 } => {
                let (changes, loses) = (draw(&mut self.stream), draw(&mut self.stream));
                if self.state == State::Gap {
                    if changes < p {
                        self.state = State::Burst;
                    }
                    return loses < k1;
                }
                if changes < r {
                    self.state = State::Gap;
                }
                loses > h
            }
            Loss::States { p13, p31, p32, p23, p14 } => {
                let random = draw(&mut self.stream);
                let (next, lost) = match self.state {
                    State::Gap if random < p14 => (State::LostInGap, true),
                    State::Gap if random < p13.wrapping_add(p14) => (State::Burst, true),
                    State::SentInBurst if random < p23 => (State::Burst, true),
                    State::Burst if random < p32 => (State::SentInBurst, false),
                    State::Burst if random < p31.wrapping_add(p32) => (State::Gap, false),
                    State::Burst => (State::Burst, true),
                    State::LostInGap => (State::Gap, false),
                    same => (same, false),
                };
                self.state = next;
                lost
            }
        }
    }

    /// Returns the next packet that leaves at `now`. If there is none, [`Self::next`] says when to ask again.
    fn dequeue(&mut self, now: Instant) -> Option<Held> {
        self.due = Instant::NEVER;
        if let Some(held) = self.first.pop() {
            return Some(held);
        }
        let line = self.line.front().map_or(u64::MAX, |h| h.due);
        let other = self.others.peek().map_or(u64::MAX, |h| h.0.due);
        let due = line.min(other);
        if due == u64::MAX {
            return None;
        }
        if self.slot.is_some_and(|slot| slot.next < due) {
            self.begin_slot(now);
        }
        let may = due.max(self.slot.map_or(0, |slot| slot.next));
        if may > now.0 {
            self.due = Instant(may);
            return None;
        }
        let held =
            if other < line { self.others.pop().map(|Reverse(held)| held) } else { self.line.pop_front() }?;
        if let Some(slot) = &mut self.slot {
            slot.packets_left = slot.packets_left.wrapping_sub(1);
            slot.bytes_left = slot.bytes_left.wrapping_sub(held.packet.frame() as i32);
            if slot.packets_left <= 0 || slot.bytes_left <= 0 {
                self.begin_slot(now);
            }
        }
        Some(held)
    }

    fn begin_slot(&mut self, now: Instant) {
        let Some(slot) = &mut self.slot else { return };
        let gap = match slot.config.gap {
            Gap::Uniform { least, most } => {
                least as i64 + ((u128::from(most - least) * u128::from(draw(&mut self.stream))) >> 32) as i64
            }
            Gap::Drawn { from, mean, deviation } => {
                around(mean, deviation, draw(&mut self.stream), Some(from))
            }
        };
        slot.next = now.0.saturating_add_signed(gap);
        slot.packets_left = slot.config.packets;
        slot.bytes_left = slot.config.bytes;
    }

    /// How long a packet that comes now would wait for those before it, beyond its delay.
    fn wait(&self, now: Instant) -> Span {
        let Some(last) = self.line.back().filter(|_| self.spec.pace.is_some()) else { return Span::ZERO };
        Span(last.due.saturating_sub(now.0 + self.spec.latency))
    }
}
