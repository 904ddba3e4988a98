//! What connections leave for the next one to their peer: path memory for `careful-resume` and `stateful`.
//!
//! A stack's factory of controllers does not know the peer. A server therefore looks the peer up when a
//! connection arrives, and accepts it with a configuration whose `Factory` is `remembering` what
//! [`Peers::take`] returned.

use slowstart::units::{Instant, Span};
use slowstart::view::PathMemory;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Path memory by peer address, of at most a given number of peers.
#[derive(Clone, Debug)]
pub struct Peers {
    most: usize,
    lifetime: Span,
    known: BTreeMap<IpAddr, (Instant, PathMemory)>,
}

impl Peers {
    /// Memory of at most `most` peers (at least 1). What is older than `lifetime` is not used (RFC 9959
    /// §4.2.1 leaves the lifetime to the endpoint).
    pub fn new(most: usize, lifetime: Span) -> Self {
        Self { most: most.max(1), lifetime, known: BTreeMap::new() }
    }

    /// A connection to `peer` ended and left `memory` (see [`Host::memory`](crate::host::Host::memory)). The
    /// oldest entry makes room if there is none.
    pub fn put(&mut self, peer: IpAddr, now: Instant, memory: PathMemory) {
        if !self.known.contains_key(&peer)
            && self.known.len() >= self.most
            && let Some(oldest) = self.known.iter().min_by_key(|(_, (at, _))| *at).map(|(peer, _)| *peer)
        {
            self.known.remove(&oldest);
        }
        self.known.insert(peer, (now, memory));
    }

    /// Takes what is known of `peer`, so that one connection at a time uses it (RFC 9959 §3.2). `None` if
    /// nothing is known, or what is known has expired.
    pub fn take(&mut self, peer: IpAddr, now: Instant) -> Option<PathMemory> {
        let (at, memory) = self.known.remove(&peer)?;
        (now.since(at) <= self.lifetime).then_some(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::units::{Bytes, Rate};

    const MEMORY: PathMemory =
        PathMemory { cwnd: Bytes(100_000), rtt: Span::millis(50), rate: Rate(16_000_000) };

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn at(s: u64) -> Instant {
        Instant::ZERO + Span::secs(s)
    }

    #[test]
    fn one_connection_uses_it_once_and_within_its_lifetime() {
        let mut peers = Peers::new(10, Span::secs(600));
        peers.put(peer(1), at(0), MEMORY);
        assert_eq!(peers.take(peer(2), at(1)), None);
        assert_eq!(peers.take(peer(1), at(600)), Some(MEMORY));
        assert_eq!(peers.take(peer(1), at(600)), None);
        peers.put(peer(1), at(600), MEMORY);
        assert_eq!(peers.take(peer(1), at(1201)), None);
    }

    #[test]
    fn the_oldest_peer_makes_room() {
        let mut peers = Peers::new(2, Span::secs(600));
        for n in [1, 2] {
            peers.put(peer(n), at(n.into()), MEMORY);
        }
        peers.put(peer(1), at(3), MEMORY);
        peers.put(peer(3), at(4), MEMORY);
        assert_eq!(peers.take(peer(2), at(5)), None);
        assert!(peers.take(peer(1), at(5)).is_some() && peers.take(peer(3), at(5)).is_some());
    }
}
