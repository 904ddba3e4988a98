//! Steps of the path's delay: an RTT to which small and large flights came down alike.
//!
//! At a full link the RTT of a packet is what was in flight before it over the rate. A least RTT that stays while the
//! flight grows is the path's, although the path was shorter at another time.

use super::flow::Flow;

/// RTTs are the same if they differ by less than this share.
const SAME: f64 = 0.02;
/// By how many times that, and by how many packets at the mean rate of the transfer, an RTT exceeds the transfer's least
/// where the path was longer: less may be the time of a packet on a slow link, or of the one before it.
const LONGER: (f64, f64) = (3.0, 4.0);
/// How many round trips must have had this least RTT, and by how many times the largest of their flights must exceed the
/// smallest.
const ENOUGH: usize = 3;
const LARGER: f64 = 1.5;

/// A flow without the steps, and what they were.
pub(super) struct Found {
    pub(super) without: Flow,
    /// The greatest, and for how long the path was longer, seconds.
    pub(super) most: f64,
    pub(super) seconds: f64,
}

/// The least RTT of a round trip.
struct Least {
    /// The indices of the round trip's first ACK, of that with the least RTT, and after the last.
    from: usize,
    ack: usize,
    end: usize,
    rtt: f64,
    /// What was in flight before the packet, bytes; `None` if something was sent again in the round trip.
    flight: Option<f64>,
}

/// The least RTT of each round trip that has one.
fn leasts(flow: &Flow) -> Vec<Least> {
    let mut sent = vec![(f64::NEG_INFINITY, 0.0)];
    for s in flow.sends.iter().filter(|s| !s.again) {
        sent.push((s.at, sent[sent.len() - 1].1 + s.bytes));
    }
    let repairs: Vec<f64> = flow.sends.iter().filter(|s| s.again).map(|s| s.at).collect();
    let mut all = Vec::new();
    let mut from = 0;
    while from < flow.acks.len() {
        let until = flow.acks[from].at + flow.least;
        let end = from + flow.acks[from..].partition_point(|a| a.at < until).max(1);
        let samples = (from..end).filter_map(|i| flow.acks[i].rtt.map(|rtt| (i, rtt)));
        if let Some((ack, rtt)) = samples.min_by(|a, b| a.1.total_cmp(&b.1)) {
            let at = flow.acks[ack].at - rtt;
            let flight = sent[sent.partition_point(|s| s.0 < at) - 1].1 - flow.delivered(at);
            let repaired = repairs.partition_point(|r| *r < at - rtt);
            let clean = repairs.get(repaired).is_none_or(|r| *r > flow.acks[ack].at);
            all.push(Least { from, ack, end, rtt, flight: clean.then_some(flight.max(flow.packet)) });
        }
        from = end;
    }
    all
}

/// Finds the times at which the path was longer than at its shortest, if there are such.
pub(super) fn find(flow: &Flow) -> Option<Found> {
    let leasts = leasts(flow);
    let (first, last) = (flow.acks.first()?, flow.acks.last()?);
    let packets = LONGER.1 * flow.packet * (last.at - first.at) / last.delivered;
    // First and last ACK, and by how much the path was longer.
    let mut longer: Vec<(usize, usize, f64)> = Vec::new();
    for (n, l) in leasts.iter().enumerate().filter(|(_, l)| l.flight.is_some()) {
        let near = l.rtt * SAME;
        if l.rtt - flow.least < (LONGER.0 * near).max(packets) || longer.last().is_some_and(|s| l.ack <= s.1)
        {
            continue;
        }
        // From the last ACK before it with a shorter RTT to the first after it.
        let shorter = |i: &usize| flow.acks[*i].rtt.is_some_and(|rtt| rtt < l.rtt - near);
        let has_shorter = |o: &&Least| o.rtt < l.rtt - near;
        let before = leasts[..n].iter().rev().find(has_shorter);
        let first = before.and_then(|o| (o.ack..o.end).rev().find(shorter)).map_or(0, |i| i + 1);
        let first = first.max(longer.last().map_or(0, |s| s.1 + 1));
        let after = leasts[n..].iter().find(has_shorter).and_then(|o| (o.from..=o.ack).find(shorter));
        let last = after.unwrap_or(flow.acks.len()) - 1;
        let down = leasts[n..].iter().take_while(|o| o.ack <= last);
        let down = leasts[..n].iter().rev().take_while(|o| o.ack >= first).chain(down);
        let flights: Vec<f64> = down.filter(|o| o.rtt <= l.rtt + near).filter_map(|o| o.flight).collect();
        let most = flights.iter().copied().fold(0.0, f64::max);
        let least = flights.iter().copied().fold(f64::INFINITY, f64::min);
        if flights.len() >= ENOUGH && most >= LARGER * least {
            let floor = flow.acks[first..=last].iter().filter_map(|a| a.rtt).fold(l.rtt, f64::min);
            longer.push((first, last, floor - flow.least));
        }
    }
    let most = longer.iter().map(|s| s.2).reduce(f64::max)?;
    let seconds = longer.iter().map(|s| flow.acks[s.1].at - flow.acks[s.0].at).sum();
    let delay = |i, _| longer.iter().find(|s| (s.0..=s.1).contains(&i)).map_or(0.0, |s| s.2);
    Some(Found { without: flow.without(delay), most, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::flow::{Acked, Send};

    /// A flow of round trips, each with a number of packets, sent evenly, and their RTT in seconds.
    fn flow(rounds: &[(u32, f64)]) -> Flow {
        let (mut sends, mut acks) = (Vec::new(), Vec::new());
        let (mut at, mut delivered) = (0.0, 0.0);
        for &(packets, rtt) in rounds {
            for _ in 0..packets {
                delivered += 1500.0;
                sends.push(Send { at, dated: true, bytes: 1500.0, again: false, lost: 0.0 });
                acks.push(Acked { at: at + rtt, delivered, rtt: Some(rtt) });
                at += rtt / f64::from(packets);
            }
        }
        let least = acks.iter().filter_map(|a| a.rtt).fold(f64::INFINITY, f64::min);
        Flow { sends, acks, packet: 1500.0, least, first_loss: f64::INFINITY }
    }

    #[test]
    fn an_rtt_to_which_flights_of_all_sizes_come_down_is_the_paths() {
        let found =
            find(&flow(&[(10, 0.04), (20, 0.06), (10, 0.06), (40, 0.06), (10, 0.06)])).expect("a step");
        assert!((found.most - 0.02).abs() < 1e-9, "{}", found.most);
        let least = found.without.acks[10..].iter().filter_map(|a| a.rtt).fold(f64::INFINITY, f64::min);
        assert!((least - 0.04).abs() < 1e-9, "{least}");
    }

    #[test]
    fn an_rtt_that_grows_with_the_flight_is_a_queue() {
        assert!(find(&flow(&[(10, 0.04), (20, 0.04), (40, 0.05), (80, 0.07)])).is_none());
        assert!(
            find(&flow(&[(20, 0.04), (20, 0.06), (20, 0.06), (20, 0.06), (20, 0.06)])).is_none(),
            "the same flights"
        );
    }
}
