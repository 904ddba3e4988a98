//! Network paths: two directions, each a chain of elements.
//!
//! The output of every element for a packet depends on earlier packets only. The arrival of a packet, or its
//! loss, is therefore computed when it enters, and needs no further event. Only a queue discipline decides
//! later: its direction says when ([`Direction::next`]). All elements but reordering and a second route keep
//! the order of packets. Behind all of these may lie further links (`hops.rs`).
//!
//! The order of a direction is: scripted losses, the sender's own interface or netem, a policer, the link with its
//! queue and its outages, losses at hand-overs and in fades, delays, jitter, random losses (after the link,
//! whose capacity the lost packets use), reordering, aggregation, duplication. A [`PathSpec`] is a path as
//! written; [`PathSpec::build`] makes one to run, with all random values from the seed.

mod arrivals;
mod bottleneck;
mod bucket;
mod carrier;
mod delay;
mod dropped;
mod ecn;
mod element;
mod ensemble;
mod error;
mod fade;
mod files;
mod hops;
mod in_transit;
mod link;
mod loss;
mod netem;
mod outage;
pub mod quantity;
pub mod queue;
pub mod quick_start;
mod rates;
mod spec;
mod table;
mod tc;
mod trace;
pub mod wire;

use std::collections::BTreeMap;

use slowstart::units::{Bytes, Instant, Rate, Span};
use slowstart::view::HostQueue;

pub use arrivals::ArrivalQueue;
pub use dropped::{Cause, Dropped};
pub use ecn::Ecn;
pub use error::PathError;
pub use files::Files;
pub use hops::{AtLink, Links};
pub use in_transit::{Held, Transit};
pub use rates::Spacing;
pub use spec::{Builtin, LinkFacts, PATH_KEYS, PathKey, PathSpec, ProxySpec};

use bottleneck::Bottleneck;
use bucket::Buckets;
use element::{Element, Loss};
use hops::Hops;
use link::Link;
use loss::Script;
use outage::Outage;
use queue::Departure;

/// The state of the sending host's own interface.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// What its queue holds, and may hold.
    pub queue: HostQueue,
    /// Number of full packets for which it has room.
    pub room: u64,
    /// The rate at which it sends.
    pub rate: Rate,
    /// What the connection has in the queue, if the stack is to limit that (TCP small queues).
    pub held: Option<Bytes>,
    /// True if the stack did so during the last call.
    pub throttled: bool,
}

/// The properties of a packet that elements use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PacketInfo {
    /// The length of the IP packet in bytes; below 2^30.
    pub bytes: u32,
    /// The flow it belongs to.
    pub flow: u32,
    /// What the packet is for.
    pub kind: Kind,
    /// Its codepoint of explicit congestion notification.
    pub ecn: Ecn,
}

/// The type of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A SYN, the first packet of a connection.
    Syn,
    /// A SYN-ACK, the answer to it.
    SynAck,
    /// A packet with payload.
    Data,
    /// An acknowledgement without payload.
    Ack,
    /// A FIN without payload.
    Fin,
}

/// One direction of a path.
#[derive(Clone, Debug)]
pub struct Direction {
    /// Scripted losses, in order. Nothing before the link takes time, so the state of the queue is that of
    /// the link now.
    scripts: Vec<Script>,
    /// The netem of the end that sends; packets then leave it before all that follows.
    netem: Option<Box<netem::Stage>>,
    /// Drops before the link.
    policer: Option<Box<Buckets>>,
    /// A link whose queue drops what comes when it is full.
    link: Option<Link>,
    outage: Option<Box<Outage>>,
    /// A link whose queue decides later: in place of `link`, or before it as the sender's own interface.
    bottleneck: Option<Box<Bottleneck>>,
    /// The constant delay.
    propagation: Span,
    beyond: Vec<Element>,
    /// The links behind all that.
    hops: Option<Box<Hops>>,
    /// True if there is a netem or a further link.
    staged: bool,
    /// True if what happens to a packet is known later: it is staged, or has a queue discipline.
    late: bool,
    /// True if it has no scripts, queue discipline, policer, outage or marks, does not disorder, and filters
    /// no ACKs.
    simple: bool,
    /// True if packets may overtake each other or arrive twice.
    disorders: bool,
    /// Draws the packets that arrive twice.
    duplicates: Option<Loss>,
    /// Of the ACKs of a connection that wait for the same release, the newest replaces those before it.
    filters: bool,
    /// The rate of the sender's own interface, if that is the link or lies before it, and the space of its
    /// queue in the second case.
    interface: Option<(Rate, Bytes)>,
    /// True if that is slower than the link behind it: it is the bottleneck then, and the wait there counts.
    slow_interface: bool,
    /// The highest rate that its routers grant to a Quick-Start request.
    grants: Option<Rate>,
}

impl Direction {
    /// Sends a packet at `now`, not earlier than the packet before it. Returns its arrival time or its drop.
    /// Arrivals are in order unless the direction [disorders](Self::disorders).
    pub fn pass(&mut self, now: Instant, p: &PacketInfo) -> Result<Instant, Dropped> {
        debug_assert!(!self.has_queue(), "what its queue does is known later");
        self.run_scripts(now, p)?;
        self.police(now, p)?;
        let mut t = now;
        if let Some(outage) = &mut self.outage {
            t = outage.pass(self.link.as_mut(), now, p)?;
        } else if let Some(link) = &mut self.link {
            t = link.pass(now, p)?;
        }
        t = t + self.propagation;
        for element in &mut self.beyond {
            t = element.pass(t, p)?;
        }
        Ok(t)
    }

    /// Returns true if packets may be sent by [`Direction::pass_simple`].
    #[inline]
    pub fn is_simple(&self) -> bool {
        self.simple
    }

    /// Does the same as [`Direction::pass`] in a simple direction, which has only the elements that most
    /// paths have, for a packet that is not ECN-capable. Without it the bench's cubic-1g-100ms takes 1,382
    /// instructions a packet in place of 994, and 100-flows 2,016 in place of 1,794.
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    pub fn pass_simple(&mut self, now: Instant, p: &PacketInfo) -> Result<Instant, Dropped> {
        debug_assert!(self.simple, "it has other elements");
        debug_assert!(!p.ecn.is_capable(), "only Direction::pass can mark it");
        let mut t = now;
        if let Some(link) = &mut self.link {
            t = link.pass_capable(now, p.bytes, false)?;
        }
        t = t + self.propagation;
        for element in &mut self.beyond {
            t = element.pass(t, p)?;
        }
        Ok(t)
    }

    /// Does the same for `n` packets at once, if the link takes all of them and nothing but a constant delay
    /// follows; else does nothing. Returns the arrival of the first, and how the others follow. Without it
    /// cubic-1g-100ms takes 1,224 instructions a packet in place of 994.
    #[inline]
    pub fn pass_run(&mut self, now: Instant, bytes: u32, n: u32) -> Option<(Instant, Spacing)> {
        debug_assert!(self.simple, "it has other elements");
        if !self.beyond.is_empty() {
            return None;
        }
        let (first, spacing) = self.link.as_mut()?.pass_run(now, bytes, n)?;
        Some((first + self.propagation, spacing))
    }

    fn has_simple_elements(&self) -> bool {
        let link = self.link.as_ref().is_none_or(|l| !l.marks());
        let before = self.policer.is_none() && self.outage.is_none() && !self.late;
        let shaped = self.beyond.iter().any(|e| matches!(e, Element::Link(_)));
        link && before && !shaped && self.scripts.is_empty() && !self.disorders && !self.filters
    }

    /// Returns true if packets may overtake each other, or [arrive twice](Self::draws_copy).
    #[inline]
    pub fn disorders(&self) -> bool {
        self.disorders
    }

    /// Returns true if the packet that passed last arrives twice, both at the same time. To be called once
    /// for each packet that was not dropped.
    pub fn draws_copy(&mut self) -> bool {
        self.duplicates.as_mut().is_some_and(Loss::drops)
    }

    /// Returns true if the link may mark packets.
    pub fn marks(&self) -> bool {
        self.link.as_ref().is_some_and(Link::marks)
            || self.bottleneck.as_ref().is_some_and(|b| b.marks())
            || self.netem.as_ref().is_some_and(|n| n.marks())
            || self.hops.as_ref().is_some_and(|hops| hops.ways().any(Self::marks))
    }

    /// Returns true if the last ECN-capable packet was marked on its way.
    pub fn marked(&self) -> bool {
        self.link.as_ref().is_some_and(Link::marked)
    }

    fn run_scripts(&mut self, now: Instant, p: &PacketInfo) -> Result<(), Dropped> {
        for script in &mut self.scripts {
            if script.drops(p) {
                return Err(Dropped::new(now, Cause::Scripted));
            }
        }
        Ok(())
    }

    /// What lies before the link: a policer.
    fn police(&mut self, now: Instant, p: &PacketInfo) -> Result<(), Dropped> {
        if let Some(policer) = &mut self.policer
            && !policer.conforms(now, p.bytes)
        {
            return Err(Dropped::new(now, Cause::Policer));
        }
        Ok(())
    }

    /// Returns true if the link has a queue discipline, a netem lies before it, or further links behind. Packets then enter by
    /// [`Direction::enqueue`], not by [`Direction::pass`], and leave when [`Direction::serve`] is called at [`Direction::next`].
    #[inline]
    pub fn has_discipline(&self) -> bool {
        self.late
    }

    /// True if its first link has a queue discipline, or a netem before it.
    fn has_queue(&self) -> bool {
        self.bottleneck.is_some() || self.netem.is_some()
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        1 + self.hops.as_ref().map_or(0, |hops| hops.ways().count())
    }

    /// What each link did to the data of a flow; empty unless there are several.
    pub fn at_links(&self, flow: u32) -> Vec<AtLink> {
        self.hops.as_ref().map_or_else(Vec::new, |hops| hops.seen(flow))
    }

    /// Sends a packet at `now`, not earlier than any call before. What leaves the queue by then is added to
    /// `out`: this packet, or others, with their arrivals or drops. Arrivals are in order, though packets that
    /// a netem delays may be not.
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    pub fn enqueue(&mut self, now: Instant, p: &PacketInfo, id: u32, out: &mut Vec<Departure>) {
        if self.staged {
            return self.enqueue_staged(now, p, id, out);
        }
        let admitted = match self.run_scripts(now, p) {
            Ok(()) if !self.has_host_queue() => self.police(now, p),
            other => other,
        };
        if let Err(dropped) = admitted {
            return out.push(Departure::refused(p, id, dropped));
        }
        let first = out.len();
        if let Some(bottleneck) = &mut self.bottleneck {
            bottleneck.enqueue(now, p, id, out);
        }
        if out.len() > first {
            self.carry(&mut out[first..]);
        }
    }

    /// [`Self::enqueue`] over further links, or with a netem.
    #[cold]
    #[inline(never)]
    fn enqueue_staged(&mut self, now: Instant, p: &PacketInfo, id: u32, out: &mut Vec<Departure>) {
        // Without them this is the first link alone.
        if let Some(mut hops) = self.hops.take() {
            self.staged = self.netem.is_some();
            hops.enqueue(self, now, p, id, out);
            (self.hops, self.staged) = (Some(hops), true);
        } else if let Err(dropped) = self.run_scripts(now, p) {
            out.push(Departure::refused(p, id, dropped));
        } else {
            self.enter_netem(now, p, id, out);
        }
    }

    /// When the queue next has something to do. Law: without a netem and further links, [`Direction::serve`] at
    /// that time adds a departure at least.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        let next = self.bottleneck.as_ref().and_then(|b| b.next());
        if self.staged { self.next_staged(next) } else { next }
    }

    #[cold]
    #[inline(never)]
    fn next_staged(&self, next: Option<Instant>) -> Option<Instant> {
        let netem = self.netem.as_ref().and_then(|netem| netem.next());
        let behind = self.hops.as_ref().and_then(|hops| hops.next());
        [next, netem, behind].into_iter().flatten().min()
    }

    /// Dequeues what may be sent by `now` and appends it to `out`.
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    pub fn serve(&mut self, now: Instant, out: &mut Vec<Departure>) {
        if self.staged {
            return self.serve_staged(now, out);
        }
        let first = out.len();
        if let Some(bottleneck) = &mut self.bottleneck {
            bottleneck.serve(now, out);
        }
        self.carry(&mut out[first..]);
    }

    /// [`Self::serve`] at `now`, and then at each time before `until` at which the queue has something to do, until
    /// something is dropped. Returns the last of these times, and their number.
    pub fn serve_until(&mut self, now: Instant, until: Instant, out: &mut Vec<Departure>) -> (Instant, u64) {
        let (mut at, mut times) = (now, 0);
        loop {
            let first = out.len();
            self.serve(at, out);
            times += 1;
            let next = self.next().unwrap_or(Instant::NEVER);
            if next >= until || out[first..].iter().any(|d| d.outcome.is_err()) {
                return (at, times);
            }
            at = next;
        }
    }

    #[cold]
    #[inline(never)]
    fn serve_staged(&mut self, now: Instant, out: &mut Vec<Departure>) {
        if let Some(mut hops) = self.hops.take() {
            self.staged = self.netem.is_some();
            hops.serve(self, now, out);
            (self.hops, self.staged) = (Some(hops), true);
        } else {
            self.serve_netem(now, out);
        }
    }

    /// Takes what left the link through the rest of the direction.
    #[allow(clippy::inline_always, reason = "mostly one packet leaves, or none")]
    #[inline(always)]
    fn carry(&mut self, out: &mut [Departure]) {
        for d in out {
            let has_link_behind = self.link.is_some();
            if has_link_behind && !self.slow_interface {
                // The wait that counts is that at the link of the path.
                d.waited = Span::ZERO;
            }
            let Ok(mut sent) = d.outcome else { continue };
            let p = PacketInfo { bytes: d.bytes, flow: 0, kind: Kind::Data, ecn: d.ecn };
            if has_link_behind {
                match self.pass_link_behind(sent, &p, d) {
                    Ok(at) => sent = at,
                    Err(dropped) => {
                        d.outcome = Err(dropped);
                        continue;
                    }
                }
            }
            d.outcome = self.beyond.iter_mut().try_fold(sent + self.propagation, |t, e| e.pass(t, &p));
        }
    }

    /// Takes a packet that left the sender's own interface at `now` through policer and link, whose wait is added.
    #[cold]
    fn pass_link_behind(
        &mut self,
        now: Instant,
        p: &PacketInfo,
        d: &mut Departure,
    ) -> Result<Instant, Dropped> {
        self.police(now, p)?;
        let Some(link) = &mut self.link else { return Ok(now) };
        d.waited += link.wait(now);
        let at = link.pass(now, p)?;
        if p.ecn.is_capable() && link.marked() {
            d.ecn = Ecn::Ce;
        }
        Ok(at)
    }

    /// Returns the least time between anything that happens in the direction, such as a packet's entering a
    /// link, and the arrival of a packet.
    pub fn least_delay(&self) -> Span {
        self.hops.as_ref().map_or(self.propagation, |hops| self.propagation.min(hops.least_delay()))
    }

    /// Returns the delay of the direction itself at `at`, without queues and what is drawn for each packet.
    pub fn delay_at(&self, at: Instant) -> Span {
        self.ways().fold(Span::ZERO, |sum, way| sum + way.own_delay_at(at))
    }

    /// The first link with all that surrounds it, and each link behind that.
    fn ways(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.hops.iter().flat_map(|hops| hops.ways()))
    }

    /// The delay of its first link and what surrounds that.
    fn own_delay_at(&self, at: Instant) -> Span {
        let varies = self.beyond.iter().filter_map(|e| match e {
            Element::Delay(delay) => Some(delay.at(at)),
            _ => None,
        });
        let netem = self.netem.as_ref().map_or(Span::ZERO, |n| n.delay());
        self.propagation + netem + varies.fold(Span::ZERO, |sum, d| sum + d)
    }

    /// Returns true if an ACK replaces an older one that waits for the same release (RFC 3449 §5.2.1).
    pub fn filters_acks(&self) -> bool {
        self.filters
    }

    /// Returns true if packets enter the queue of an interface of the sender's own, with the link of the path
    /// behind it.
    pub fn has_host_queue(&self) -> bool {
        self.bottleneck.is_some() && self.link.is_some()
    }

    /// Returns true if the sender sees a queue of its own: the link is its interface, or lies behind it.
    pub fn is_interface(&self) -> bool {
        self.interface.is_some()
    }

    /// Returns the sender's own interface, if there is one, with its free space in packets of `packet` bytes.
    pub fn interface(&mut self, now: Instant, packet: u32) -> Option<Interface> {
        let (rate, limit) = self.interface?;
        let (queue, room, held) = if let Some(own) = &self.bottleneck {
            (HostQueue { used: own.backlog(), limit }, u64::MAX, Some(Bytes::ZERO))
        } else {
            let (queue, room) = self.link.as_mut()?.room(now, packet);
            (queue, room, None)
        };
        Some(Interface { queue, room, rate, held, throttled: false })
    }

    /// Returns what the routers grant of a Quick-Start request: a rate code of RFC 4782 §3.1, zero if they do
    /// not support it.
    pub fn grant(&self, request: u8) -> u8 {
        self.grants.map_or(0, |most| request.min(quick_start::rate_code(most)))
    }

    /// Returns the bytes of IP packets waiting at its links, without those being sent. `now` is not before
    /// the last packet.
    pub fn backlog(&mut self, now: Instant) -> Bytes {
        let netem = self.netem.as_ref().map_or(Bytes::ZERO, |n| n.backlog(now));
        let behind = self.hops.as_mut().map_or(Bytes::ZERO, |hops| hops.backlog(now));
        netem
            + behind
            + match (&mut self.link, &mut self.outage) {
                (Some(link), Some(outage)) => outage.backlog(link, now),
                (Some(link), None) => link.backlog(now),
                (None, _) => self.bottleneck.as_ref().map_or(Bytes::ZERO, |b| b.backlog()),
            }
    }

    /// Returns how long a packet that arrives now would wait before its transmission begins. On a trace that
    /// includes the wait for the next opportunity. With a queue discipline it is what all that waits needs,
    /// although some leave earlier.
    #[inline]
    pub fn queue_delay(&self, now: Instant) -> Span {
        if self.simple {
            return self.link.as_ref().map_or(Span::ZERO, |link| link.wait(now));
        }
        self.special_queue_delay(now)
    }

    #[inline(never)]
    fn special_queue_delay(&self, now: Instant) -> Span {
        let behind = self.hops.iter().flat_map(|hops| hops.ways()).map(|way| way.queue_delay(now));
        let netem = self.netem.as_ref().map_or(Span::ZERO, |n| n.wait(now));
        let shapers = self.beyond.iter().filter_map(|e| match e {
            Element::Link(shaper) => Some(shaper.wait(now)),
            _ => None,
        });
        behind.chain(shapers).fold(netem + self.link_wait(now), |sum, wait| sum + wait)
    }

    fn link_wait(&self, now: Instant) -> Span {
        match (&self.link, &self.outage) {
            (Some(link), Some(outage)) => outage.wait(link, now),
            (Some(link), None) => link.wait(now),
            (None, _) => self.bottleneck.as_ref().map_or(Span::ZERO, |b| b.wait(now)),
        }
    }

    /// Returns the bytes of IP packets that its slowest link could carry later than `from` and up to `to`;
    /// [`Bytes::MAX`] if there is no link.
    pub fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        self.ways().map(|way| way.own_capacity(from, to)).min().unwrap_or(Bytes::MAX)
    }

    /// [`Self::capacity`] of its first link and what surrounds that.
    fn own_capacity(&self, from: Instant, to: Instant) -> Bytes {
        let link = match (&self.link, &self.outage) {
            (Some(link), Some(outage)) => outage.capacity(link, from, to),
            (Some(link), None) => link.capacity(from, to),
            (None, _) => self.bottleneck.as_ref().map_or(Bytes::MAX, |b| b.capacity(from, to)),
        };
        let buckets = self.beyond.iter().filter_map(|e| match e {
            Element::Link(shaper) => Some(shaper.capacity(from, to)),
            Element::Policer(policer) => Some(policer.capacity(from, to)),
            _ => None,
        });
        let policer = self.policer.as_ref().map(|policer| policer.capacity(from, to));
        let netem = self.netem.as_ref().map(|netem| netem.capacity(from, to));
        buckets.chain(policer).chain(netem).fold(link, Bytes::min)
    }

    /// Returns the bytes of IP packets that have left its first link by `now`, not earlier than any packet before;
    /// `None` unless it has a link that is limited by a rate alone and has no queue discipline.
    pub fn carried(&self, now: Instant) -> Option<Bytes> {
        self.link.as_ref()?.carried(now)
    }
}

/// A path to run, with both directions and its true properties.
#[derive(Clone, Debug)]
pub struct Path {
    /// The direction of the data of a download, and of SYN-ACKs: from server to client.
    pub forward: Direction,
    /// The direction of its ACKs, and of SYNs: from client to server.
    pub back: Direction,
    /// Its true rate, delay and buffer.
    pub facts: PathFacts,
    /// What each link adds to the delay of the way back, if there are several.
    back_delays: Vec<Span>,
    /// Each drawn value by its name with its unit (`rate_bps`, `rtt_s`, `queue_bytes`); empty if the path
    /// draws none.
    pub drawn: BTreeMap<String, f64>,
}

impl Path {
    /// Returns the round-trip time of the path at `at`, without queues and what is drawn for each packet.
    pub fn rtt_at(&self, at: Instant) -> Span {
        self.rtt_over(Links::ALL, at)
    }

    /// Returns the same for a flow that crosses only some of its links.
    pub fn rtt_over(&self, links: Links, at: Instant) -> Span {
        let back = self.back.delay_at(at);
        if self.back_delays.is_empty() {
            return self.forward.own_delay_at(at) + back;
        }
        let ways = self.forward.ways().zip(&self.back_delays).enumerate().filter(|(i, _)| links.has(*i));
        // That of the way back itself is what all flows have of those of the links.
        ways.fold(back - self.back.propagation, |sum, (_, (way, delay))| sum + way.own_delay_at(at) + *delay)
    }

    /// Says which links each flow crosses, by its number: all, unless this says otherwise. What a flow is longer
    /// on its way back than the shortest is returned, for whoever delays its packets.
    pub fn cross(&mut self, flows: &[Links]) -> Vec<Span> {
        let Some(hops) = &mut self.forward.hops else { return vec![Span::ZERO; flows.len()] };
        hops.cross(flows);
        let back = |links: &Links| {
            let all = self.back_delays.iter().enumerate().filter(|(i, _)| links.has(*i));
            all.fold(Span::ZERO, |sum, (_, delay)| sum + *delay)
        };
        self.back.propagation = flows.iter().map(back).min().unwrap_or(self.back.propagation);
        flows.iter().map(|links| back(links) - self.back.propagation).collect()
    }

    /// Returns the IP bytes that the slowest link of a download carries in `rtt` from `now` on: the data in flight
    /// that fills the path. Where the rate is constant it does not depend on `now`.
    pub fn bytes_per_rtt(&self, now: Instant, rtt: Span) -> Bytes {
        if self.facts.variable { self.forward.capacity(now, now + rtt) } else { self.facts.rate.over(rtt) }
    }

    /// Returns the same for one of several links of a download, by its index.
    pub fn bytes_at_link(&self, link: usize, now: Instant, rtt: Span) -> Bytes {
        self.forward.ways().nth(link).map_or(Bytes::MAX, |way| way.own_capacity(now, now + rtt))
    }
}

/// The true properties of a path, known to the simulator and hidden from the hosts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// The mean rate of the forward link: over a trace's period; over a schedule, whose last step counts as
    /// long as the one before it.
    pub rate: Rate,
    /// The least two-way propagation delay, without transmission.
    pub base_rtt: Span,
    /// Rate times base RTT, in bytes of IP packets.
    pub bdp: Bytes,
    /// The limit of the forward queue, in bytes of IP packets (of 1500 bytes where the limit is in packets,
    /// at the mean rate where it is in time); `None` if there is no limit.
    pub buffer: Option<Bytes>,
    /// True if the rate varies over time.
    pub variable: bool,
}

#[cfg(test)]
mod tests;
