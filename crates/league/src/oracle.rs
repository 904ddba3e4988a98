//! The oracle: the time in which a sender that knows the path would have delivered so many bytes.
//!
//! The client connects at time 0. Its SYN, the SYN-ACK and its ACK take 1.5 base round trips; from then on
//! the link carries full packets whenever there is data, at the rate that it has at each moment, and the last
//! packet takes half a base round trip more:
//!
//! ```text
//! time(B) = max over writes w of: max(1.5 RTT, at(w)) + link time of the bytes from w's first to B's last + 0.5 RTT
//! ```
//!
//! The link's time is that of the path's own link (schedules and drawn rates included), for packets with
//! their headers.
//!
//! It is a bound that nobody beats: no packet is lost, delayed beyond propagation, or held back. Real senders
//! cannot reach it, for reasons that are not their startup's: the receive window begins at 64 kB and at most
//! doubles each round trip (right-sizing), so that B bytes take at least about log2(B / 64 kB) round trips;
//! jitter and waves add to the delay; and beside other flows it has the link for itself. What matters is
//! therefore how startups differ in regret, not how far they are from 1.

use slowstart::units::{Bytes, Instant, Span};
use slowstart_sim::path::Path;
use slowstart_study::measured::PacketSize;

/// A write of the application: when, after the flow's begin, and how many bytes.
pub type Write = (Span, u64);

/// Returns the time from the begin of a flow at `start` until its receiver has `bytes`, of what the
/// application writes (in order of time; at least `bytes` in all).
pub fn time(path: &Path, packet: PacketSize, start: Instant, writes: &[Write], bytes: u64) -> Span {
    let rtt = path.facts.base_rtt;
    let established = rtt + rtt / 2;
    let mut before = 0;
    let mut all = Span::ZERO;
    for (at, len) in writes {
        if before >= bytes {
            break;
        }
        let from = established.max(*at);
        all = all.max(from + link_time(path, start + from, on_wire(packet, bytes - before)));
        before += len;
    }
    all + rtt / 2
}

/// Bytes of the IP packets that carry `bytes`.
fn on_wire(packet: PacketSize, bytes: u64) -> u64 {
    bytes + bytes.div_ceil(packet.payload) * (packet.wire - packet.payload)
}

/// The time in which the link carries `bytes` from `from` on.
fn link_time(path: &Path, from: Instant, bytes: u64) -> Span {
    let carried = |span: Span| path.forward.capacity(from, from + span) >= Bytes(bytes);
    let mut high = Span::millis(1);
    while !carried(high) {
        // A link that carries nothing for a day is no link.
        if high > Span::secs(86_400) {
            return high;
        }
        high = high * 2;
    }
    let mut low = Span::ZERO;
    while high - low > Span::micros(1) {
        let mid = (low + high) / 2;
        if carried(mid) { high = mid } else { low = mid }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_sim::path::PathSpec;

    const PACKET: PacketSize = PacketSize { payload: 1448, wire: 1500 };
    const AT_ONCE: &[Write] = &[(Span::ZERO, u64::MAX >> 2)];

    fn path(text: &str) -> Path {
        PathSpec::load(text, None).unwrap_or_else(|e| panic!("{text}: {e}")).build(1)
    }

    #[test]
    fn a_constant_rate_is_two_round_trips_and_the_bytes() {
        // 1448 bytes are a packet of 1500: 1 ms at 12 Mbit/s.
        let p = path("rate=12Mbit rtt=100ms queue=1bdp");
        for packets in [1, 10, 1000] {
            let t = time(&p, PACKET, Instant::ZERO, AT_ONCE, 1448 * packets);
            let want = Span::millis(200 + packets);
            assert!(t >= want && t - want <= Span::micros(2), "{packets}: {t:?}");
        }
    }

    #[test]
    fn a_schedule_counts_from_when_the_flow_begins() {
        let p = path("schedule=0s:12Mbit,1s:120Mbit rtt=100ms queue=1bdp");
        let of = |start| time(&p, PACKET, start, AT_ONCE, 1_448_000);
        // 850 packets until 1 s, and 150 more in 15 ms; or all in 100 ms.
        let (early, late) = (of(Instant::ZERO), of(Instant::ZERO + Span::secs(5)));
        assert!(early.0.abs_diff(Span::millis(1065).0) < 2_000_000, "{early:?}");
        assert!(late.0.abs_diff(Span::millis(300).0) < 2_000_000, "{late:?}");
    }

    #[test]
    fn an_application_that_waits_is_waited_for() {
        let p = path("rate=12Mbit rtt=100ms queue=1bdp");
        let writes: &[Write] = &[(Span::ZERO, 14_480), (Span::secs(1), 14_480)];
        let of = |bytes| time(&p, PACKET, Instant::ZERO, writes, bytes);
        assert!(of(14_480).0.abs_diff(Span::millis(210).0) < 10_000);
        assert!(of(28_960).0.abs_diff(Span::millis(1060).0) < 10_000);
    }
}
