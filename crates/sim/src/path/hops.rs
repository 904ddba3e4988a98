//! The links after the first. Flows that join or leave between two links see other delays than those that cross
//! all, so that nothing is computed ahead across links: a packet enters each link after its first by an event.

use std::fmt;

use slowstart::units::{Bytes, Instant, Span};

use super::arrivals::ArrivalQueue;
use super::queue::Departure;
use super::{Cause, Direction, Dropped, Ecn, Kind, PacketInfo};

/// Which links of a path a flow crosses: some that follow each other.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Links {
    first: u8,
    last: u8,
}

impl Links {
    /// All links of a path, whatever their number.
    pub const ALL: Self = Self { first: 0, last: u8::MAX };

    /// Reads the number of a link (`2`), or of the first and the last of several (`1-2`). They count from 1.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |t: &str| t.parse::<u8>().ok().filter(|_| t.bytes().all(|b| b.is_ascii_digit()));
        let (first, last) = (number(first)?.checked_sub(1)?, number(last)?.checked_sub(1)?);
        (first <= last && last < u8::MAX - 1).then_some(Self { first, last })
    }

    /// Number of the last link, from 1; `None` if it is the last of the path.
    pub fn last(self) -> Option<usize> {
        (self != Self::ALL).then_some(usize::from(self.last) + 1)
    }

    /// True if it crosses the link of this index, from 0.
    pub fn has(self, link: usize) -> bool {
        (usize::from(self.first)..=usize::from(self.last)).contains(&link)
    }
}

impl fmt::Display for Links {
    /// What [`Self::parse`] reads; nothing for all links.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first + 1, self.last()) {
            (_, None) => Ok(()),
            (first, Some(last)) if usize::from(first) == last => write!(f, "{last}"),
            (first, Some(last)) => write!(f, "{first}-{last}"),
        }
    }
}

impl Default for Links {
    fn default() -> Self {
        Self::ALL
    }
}

/// What one link did to the data of a flow.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct AtLink {
    /// Data packets that it dropped, by [`Cause`], in the order of [`Cause::ALL`].
    pub dropped_by: [u64; Cause::ALL.len()],
    /// The longest wait of one of them in its queue.
    pub peak_queue_delay: Span,
}

/// A link after the first.
#[derive(Clone, Debug)]
struct Hop {
    way: Direction,
    /// What comes from the link before, by its number.
    coming: ArrivalQueue<u32>,
}

/// A flow, and what each link did to its data.
#[derive(Clone, Debug, Default)]
struct Crossing {
    links: Links,
    at: Vec<AtLink>,
}

/// A packet on its way over several links.
#[derive(Copy, Clone, Debug)]
struct Passenger {
    info: PacketInfo,
    /// How long it has waited so far.
    waited: Span,
}

/// The links of a direction after the first.
#[derive(Clone, Debug)]
pub(super) struct Hops {
    later: Vec<Hop>,
    flows: Vec<Crossing>,
    /// By the number that their owner has for each.
    packets: Vec<Passenger>,
    left: Vec<Departure>,
}

/// Sends a packet into one link.
fn send(way: &mut Direction, at: Instant, p: &PacketInfo, id: u32, out: &mut Vec<Departure>) {
    if way.has_queue() {
        return way.enqueue(at, p, id, out);
    }
    let waited = way.queue_delay(at);
    let outcome = way.pass(at, p);
    let ecn = if p.ecn.is_capable() && way.marked() { Ecn::Ce } else { p.ecn };
    let waited = if outcome.is_ok() { waited } else { Span::ZERO };
    out.push(Departure { id, bytes: p.bytes, ecn, waited, outcome, stays: false });
}

impl Hops {
    /// These links behind the first; none if there are none.
    pub(super) fn new(ways: Vec<Direction>) -> Option<Box<Self>> {
        let later: Vec<Hop> = ways.into_iter().map(|way| Hop { way, coming: ArrivalQueue::new() }).collect();
        (!later.is_empty())
            .then(|| Box::new(Self { later, flows: Vec::new(), packets: Vec::new(), left: Vec::new() }))
    }

    /// The links.
    pub(super) fn ways(&self) -> impl Iterator<Item = &Direction> {
        self.later.iter().map(|hop| &hop.way)
    }

    /// [`Self::ways`], to ask them what they hold.
    pub(super) fn ways_mut(&mut self) -> impl Iterator<Item = &mut Direction> {
        self.later.iter_mut().map(|hop| &mut hop.way)
    }

    /// Says which links each flow crosses: all, unless this says otherwise.
    pub(super) fn cross(&mut self, flows: &[Links]) {
        self.flows = flows.iter().map(|links| Crossing { links: *links, at: Vec::new() }).collect();
    }

    /// What each link did to the data of a flow.
    pub(super) fn seen(&self, flow: u32) -> Vec<AtLink> {
        let mut all = self.flows.get(flow as usize).map_or_else(Vec::new, |f| f.at.clone());
        all.resize(self.later.len() + 1, AtLink::default());
        all
    }

    /// When something happens at a link after the first.
    pub(super) fn next(&self) -> Option<Instant> {
        self.later.iter().flat_map(|hop| hop.coming.next().into_iter().chain(hop.way.next())).min()
    }

    /// Sends a packet into the first link that its flow crosses.
    pub(super) fn enqueue(
        &mut self,
        first: &mut Direction,
        now: Instant,
        p: &PacketInfo,
        id: u32,
        out: &mut Vec<Departure>,
    ) {
        self.serve(first, now, out);
        let new = Passenger { info: *p, waited: Span::ZERO };
        if self.packets.len() <= id as usize {
            self.packets.resize(id as usize + 1, new);
        }
        self.packets[id as usize] = new;
        if self.flows.len() <= p.flow as usize {
            self.flows.resize(p.flow as usize + 1, Crossing::default());
        }
        let link = usize::from(self.flows[p.flow as usize].links.first).min(self.later.len());
        let way = match link.checked_sub(1) {
            None => first,
            Some(i) => &mut self.later[i].way,
        };
        send(way, now, p, id, &mut self.left);
        self.hand_on(link, out);
    }

    /// Lets leave all links what may by `now`.
    pub(super) fn serve(&mut self, first: &mut Direction, now: Instant, out: &mut Vec<Departure>) {
        if first.has_queue() {
            first.serve(now, &mut self.left);
            self.hand_on(0, out);
        }
        for i in 0..self.later.len() {
            let hop = &mut self.later[i];
            while let Some(at) = hop.coming.next().filter(|at| *at <= now) {
                let Some(id) = hop.coming.pop(now) else { break };
                let info = self.packets[id as usize].info;
                send(&mut hop.way, at, &info, id, &mut self.left);
            }
            if hop.way.has_queue() {
                hop.way.serve(now, &mut self.left);
            }
            self.hand_on(i + 1, out);
        }
    }

    /// Takes what has left a link to the next one, or out of the path if its flow goes no farther.
    fn hand_on(&mut self, link: usize, out: &mut Vec<Departure>) {
        for d in self.left.drain(..) {
            let packet = &mut self.packets[d.id as usize];
            packet.waited += d.waited;
            packet.info.ecn = d.ecn;
            let flow = &mut self.flows[packet.info.flow as usize];
            if packet.info.kind == Kind::Data {
                if flow.at.len() <= link {
                    flow.at.resize(link + 1, AtLink::default());
                }
                let seen = &mut flow.at[link];
                seen.peak_queue_delay = seen.peak_queue_delay.max(d.waited);
                if let Err(dropped) = d.outcome {
                    seen.dropped_by[dropped.cause as usize] += 1;
                }
            }
            let outcome = match d.outcome {
                Ok(at) if link < usize::from(flow.links.last).min(self.later.len()) => {
                    // Some elements let packets overtake.
                    self.later[link].coming.insert(at, d.id, |_| {});
                    continue;
                }
                Ok(at) => Ok(at),
                Err(dropped) => Err(Dropped { link: link as u8, ..dropped }),
            };
            out.push(Departure { waited: packet.waited, outcome, ..d });
        }
    }

    /// The least delay of any of the links.
    pub(super) fn least_delay(&self) -> Span {
        self.ways().map(Direction::least_delay).min().unwrap_or(Span::ZERO)
    }

    /// Bytes that wait at these links.
    pub(super) fn backlog(&mut self, now: Instant) -> Bytes {
        self.ways_mut().map(|way| way.backlog(now)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_count_from_one() {
        let read = |text: &str| Links::parse(text).map(|l| (l.first, l.last));
        assert_eq!([read("1"), read("2"), read("1-3")], [Some((0, 0)), Some((1, 1)), Some((0, 2))]);
        for wrong in ["", "0", "-1", "1-", "3-2", "0-1", "+1", "1-2-3", "256", "255"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert!(Links::ALL.has(0) && Links::ALL.has(7) && Links::ALL.last().is_none());
        for text in ["1", "2", "1-3"] {
            assert_eq!(Links::parse(text).expect("links").to_string(), text);
        }
        let second = Links::parse("2").expect("a link");
        assert_eq!([0, 1, 2].map(|i| second.has(i)), [false, true, false]);
    }
}
