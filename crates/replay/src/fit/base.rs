//! The base RTT: how long the path takes without transmission and queues.

use super::Estimate;
use super::flow::Flow;
use super::jitter::Jitter;
use super::waits::{self, ERROR, Wait};

/// Error of a predicted queueing delay that is accepted, seconds.
const TRUST: f64 = 5e-4;

/// The least RTT, less the waits for a link of constant rate, of a packet sent before the first loss: the path may have been
/// shorter while a queue stood. Seconds.
fn shorter(flow: &Flow, rate: f64) -> f64 {
    let waits = waits::find(flow, rate);
    let acks = flow.acks.iter().take_while(|a| a.at < flow.first_loss);
    let alone = acks.filter_map(|a| {
        let rtt = a.rtt?;
        let wait = waits::of(&waits, a.at - rtt, a.delivered)?;
        Some(rtt - (wait.done - wait.at) * (1.0 - ERROR))
    });
    alone.fold(f64::INFINITY, f64::min)
}

/// Estimates the base RTT. `rate` is in bytes per second, `varies` its variation as a share, and `unsure` the
/// error of the waves that were subtracted, seconds.
pub(super) fn find(flow: &Flow, rate: f64, varies: f64, slot: f64, jitter: &Jitter, unsure: f64) -> Estimate {
    let transmission = flow.packet / rate;
    let mut most = (flow.least - transmission).max(1e-6);
    let off = TRUST.min(most / 100.0) + unsure;
    if slot == 0.0 {
        let shorter = shorter(flow, rate);
        let less = if shorter < most - off {
            format!("; {:.1} ms while a queue stood, if the rate was the same", shorter * 1e3)
        } else {
            String::new()
        };
        return Estimate {
            value: most,
            low: (most.min(shorter) - jitter.most / 2.0 - transmission - off).max(0.0),
            high: Some(most + off),
            basis: format!("the least RTT less the time of a packet on the link{less}"),
        };
    }
    let packets = waits::find(flow, rate);
    let trusted = (TRUST / varies.max(ERROR)).max(2.0 * transmission);
    let known = |p: &&Wait| p.done - p.at <= trusted;
    // A packet that an ACK covers had arrived by then: the base RTT is at most this. A packet that it does
    // not cover had not: the base RTT is at least this. One packet may wait for a delayed ACK.
    let mut least = 0.0_f64;
    // By how much more the latest ACK of a packet that had not waited came late.
    let mut latest = most;
    let before = flow.acks.iter().take_while(|a| a.at < flow.first_loss);
    for (i, a) in before.enumerate() {
        let next = packets.partition_point(|p| p.upto <= a.delivered + 1.0);
        if let Some(newest) = next.checked_sub(1).map(|i| &packets[i]).filter(known) {
            most = most.min(a.at - newest.done);
            latest = latest.max(a.at - newest.done);
        }
        let last_of_group = flow.acks.get(i + 1).is_none_or(|n| n.at > a.at);
        if let Some(late) = packets.get(next + 1).filter(|p| known(p) && last_of_group && p.at < a.at) {
            least = least.max(a.at - late.done);
        }
    }
    let most = most.max(1e-6);
    let least = least.max(most - slot).max(0.0).min(most);
    Estimate {
        value: f64::midpoint(least, most),
        // Jitter delays ACKs beyond what slot and path make of them: so far it is not known by how much.
        low: (most - slot.max(latest - most) - off).max(0.0),
        high: Some(most + off),
        basis: "which packets each slot's ACKs covered before the first loss, and which they did not yet"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::flow::{Acked, Send};

    /// A packet every 10 ms, whose ACK comes after 40 ms; the first two are only known by their arrival.
    fn flow(dated: bool) -> Flow {
        let sent = |n: usize| n as f64 * 0.01;
        let ack = |n: usize| {
            let delivered = (n + 1) as f64 * 1500.0;
            Acked { at: sent(n) + 0.04, delivered, rtt: (n >= 2).then_some(0.04) }
        };
        let send = |n: usize| {
            let at = if n < 2 { sent(n) + 0.04 } else { sent(n) };
            Send { at, dated: dated || n >= 2, bytes: 1500.0, lost: 0.0, again: false }
        };
        Flow {
            sends: (0..20).map(send).collect(),
            acks: (0..20).map(ack).collect(),
            packet: 1500.0,
            least: 0.04,
            first_loss: f64::INFINITY,
        }
    }

    #[test]
    fn a_packet_of_unknown_time_tells_no_rtt() {
        let jitter = Jitter { mean: 0.0, most: 0.0, variance: 0.0, lines: 0 };
        let base = |dated| find(&flow(dated), f64::INFINITY, 0.0, 0.01, &jitter, 0.0);
        assert!(base(false).low > 0.025, "{:?}", base(false));
        assert!(base(true).low < 0.005, "by their arrival: {:?}", base(true));
    }
}
