//! When a flow fills its path: [`Truth::capacity`](super::Truth::capacity).

use super::{Direction, Engine, Flow, FlowId, FlowSpec};
use slowstart::units::{Bytes, Instant, Span};

impl Engine {
    /// The round-trip time of a flow at `at`, without queues and without the random delay of single packets.
    fn rtt_at(&self, spec: &FlowSpec, at: Instant) -> Span {
        self.net.path.rtt_over(spec.links, at) + spec.extra_delay * 2
    }

    /// The IP bytes that fill a link of a flow at `at`: what it carries in the round-trip time that the flow has
    /// then. Without a link, those of its whole path.
    fn capacity_at(&self, spec: &FlowSpec, link: Option<usize>, at: Instant) -> Bytes {
        let rtt = self.rtt_at(spec, at);
        let path = &self.net.path;
        match (spec.direction, link) {
            (Direction::Download, None) => path.bytes_per_rtt(at, rtt),
            (Direction::Download, Some(link)) => path.bytes_at_link(link, at, rtt),
            (Direction::Upload, _) => path.back.capacity(at, at + rtt),
        }
    }

    /// The links of a flow, if there are several: each may be the one that is full.
    fn links_of(&self, spec: &FlowSpec) -> impl Iterator<Item = Option<usize>> + use<> {
        let links = spec.links;
        let several = match spec.direction {
            Direction::Download => Some(self.net.path.forward.links()).filter(|n| *n > 1),
            // The way back is one link.
            Direction::Upload => None,
        };
        let each = (0..several.unwrap_or(0)).filter(move |link| links.has(*link)).map(Some);
        each.chain(several.is_none().then_some(None))
    }

    /// Bytes in flight of the flows but one that cross a link of it, headers included: as much as that one would
    /// have in flight at their rate.
    fn beside(&self, flow: FlowId, link: Option<usize>, at: Instant) -> Bytes {
        let f = self.flow(flow);
        let others = self.flows.iter().enumerate().filter(|(i, o)| {
            *i != flow.index() && o.sender() == f.sender() && link.is_none_or(|link| o.spec.links.has(link))
        });
        let same = |o: &FlowSpec| o.extra_delay == f.spec.extra_delay && o.links == f.spec.links;
        let seen = |o: &Flow| {
            let bytes = o.inflight_wire();
            if same(&o.spec) || bytes == Bytes::ZERO {
                return bytes;
            }
            bytes.scale(self.rtt_at(&f.spec, at).0, self.rtt_at(&o.spec, at).0.max(1))
        };
        others.map(|(_, o)| seen(o)).sum()
    }

    /// Sets [`Truth::capacity`](super::Truth::capacity) if the bytes in flight of all flows of a direction, headers included, fill the
    /// path, or one of its links.
    pub(super) fn check_capacity(&mut self, flow: FlowId) {
        let now = self.net.now;
        let f = self.flow(flow);
        let fills =
            |link| f.inflight_wire() + self.beside(flow, link, now) >= self.capacity_at(&f.spec, link, now);
        if self.links_of(&f.spec).any(fills) {
            let rtt = self.rtt_at(&f.spec, now);
            let t = &mut self.flows[flow.index()].truth;
            (t.capacity, t.capacity_rtt) = (Some(now), rtt);
        }
    }

    /// Forgets [`Truth::capacity`](super::Truth::capacity) if the delay of the path has risen since, so that the most that was in flight
    /// does not fill the path at `at`.
    #[cold]
    pub(super) fn recheck_capacity(&mut self, flow: FlowId, at: Instant) {
        let f = self.flow(flow);
        let fills = |link| {
            f.most_inflight_wire() + self.beside(flow, link, at) >= self.capacity_at(&f.spec, link, at)
        };
        if self.rtt_at(&f.spec, at) > f.truth.capacity_rtt && !self.links_of(&f.spec).any(fills) {
            self.flows[flow.index()].truth.capacity = None;
        }
    }
}
