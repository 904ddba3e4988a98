//! The queue: how much waited before each packet, and which packets were lost.

use super::flow::Flow;
use super::waits::{self, Wait};
use super::{Estimate, RandomDrop};
use slowstart_study::stats::quantile;

/// A packet lost with at least this share of the greatest backlog before it was lost to a full queue.
const FULL: f64 = 0.8;
/// Error of the rate in a backlog by what was sent, as a share.
const RATE: f64 = 0.01;
/// Losses that show a chance of loss, and a chance of a drop above a backlog.
const SOME: f64 = 3.0;
const MANY: f64 = 20.0;
/// A queue that drops at random from a backlog on takes in this many times as much.
const BEYOND: f64 = 1.3;

/// What the losses show.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Bytes on the wire that it holds; without an upper end if it never filled.
    pub(super) bytes: Estimate,
    /// What it holds at least if it is unknown which waits were the queue's: the least backlog before a packet that was
    /// lost, bytes.
    pub(super) least: f64,
    /// A chance of a drop above a backlog.
    pub(super) random_drop: Option<RandomDrop>,
    /// A chance of a loss that does not depend on the queue.
    pub(super) loss: Option<Estimate>,
}

/// What is known of the link.
pub(super) struct Link {
    /// Bytes per second.
    pub(super) rate: f64,
    /// Its variation, as a share; 0 for a constant rate.
    pub(super) varies: f64,
    /// Base RTT, seconds.
    pub(super) base: f64,
    /// The mean delay by jitter, seconds.
    pub(super) late: f64,
    /// The period of ACK slots, seconds; 0 without slots.
    pub(super) slot: f64,
}

/// When a packet was sent; the backlog that it found, bytes; by what was delivered and by its wait the greater one; its bytes;
/// and how many of them were lost.
struct Found {
    at: f64,
    backlog: f64,
    greater: f64,
    bytes: f64,
    lost: f64,
}

/// The backlogs that packets found. A packet with an RTT sample waited for what was delivered between the
/// time at which its own ACK would have come without a queue, and its ACK. At a constant rate that is its
/// wait times the rate, which is exact while losses are repaired, too; SACK blocks report late what was
/// delivered then. A packet without a sample, such as a lost packet, found what the one sent before it found.
fn backlogs(flow: &Flow, link: &Link) -> Vec<Found> {
    let waited = |a: &super::flow::Acked| {
        let rtt = a.rtt?;
        let by_wait = (rtt - link.base - link.late) * link.rate;
        let by_delivery = || {
            // At a moment between groups of ACKs it is half a slot since the last group.
            let alone = a.at - rtt + link.base + link.late + link.slot / 2.0;
            a.delivered - flow.delivered(alone)
        };
        let bytes = if link.varies > 0.0 { by_delivery() } else { by_wait };
        let of = |bytes: f64| (bytes - flow.packet).max(0.0);
        Some((a.at - rtt, of(bytes), of(bytes.max(by_wait))))
    };
    let mut samples: Vec<(f64, f64, f64)> = flow.acks.iter().filter_map(waited).collect();
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    bound(&mut samples, flow, link.rate * (1.0 + link.varies));
    let found = |s: &super::flow::Send| {
        let next = samples.partition_point(|p| p.0 <= s.at + 1e-9);
        let (_, backlog, greater) = next.checked_sub(1).map_or((0.0, 0.0, 0.0), |i| samples[i]);
        Found { at: s.at, backlog, greater, bytes: s.bytes, lost: s.lost }
    };
    flow.sends.iter().filter(|s| !s.again).map(found).collect()
}

/// A queue grows by no more than what is sent, and shrinks by no more than what the link carries: a packet that waited
/// for more than the one before it and what was sent since, or for more than the next one and what was carried until
/// then, waited elsewhere. Samples are send time, backlog and greater backlog, in order of time.
fn bound(samples: &mut [(f64, f64, f64)], flow: &Flow, rate: f64) {
    let mut upto = vec![0.0];
    upto.extend(flow.sends.iter().scan(0.0, |sum, s| {
        *sum += s.bytes;
        Some(*sum)
    }));
    let sent = |from: f64, to: f64| {
        let index = |at: f64| flow.sends.partition_point(|s| s.at < at);
        upto[index(to + 1e-9)] - upto[index(from - 1e-9)]
    };
    for i in 1..samples.len() {
        let (before, now) = (samples[i - 1], &mut samples[i]);
        let more = sent(before.0, now.0);
        (now.1, now.2) = (now.1.min(before.1 + more), now.2.min(before.2 + more));
    }
    for i in (1..samples.len()).rev() {
        let (now, before) = (samples[i], &mut samples[i - 1]);
        let less = (now.0 - before.0) * rate + flow.packet;
        (before.1, before.2) = (before.1.min(now.1 + less), before.2.min(now.2 + less));
    }
}

/// The size of a queue also by what was sent until it dropped the first packets, or at most, whatever the path's delay. If
/// the two contradict each other, the interval holds both.
fn also_by_sends(flow: &Flow, link: &Link, by_rtt: Estimate, dropped: &[&Found]) -> Estimate {
    let first: Vec<f64> = dropped.iter().map(|f| f.at).take_while(|at| *at < flow.first_loss).collect();
    let backlog = |rate: f64| {
        let waits = waits::find(flow, rate);
        let bytes = |w: Wait| (w.done - w.at).max(0.0) * rate;
        if by_rtt.high.is_none() {
            return waits.into_iter().map(bytes).reduce(f64::max);
        }
        let dropped = |w: &Wait| w.lost && first.binary_search_by(|at| at.total_cmp(&w.at)).is_ok();
        let found: Vec<f64> = waits.into_iter().filter(dropped).map(bytes).collect();
        quantile(&found, 0.5)
    };
    let [Some(low), Some(high)] = [1.0 + RATE, 1.0 - RATE].map(|share| backlog(link.rate * share)) else {
        return by_rtt;
    };
    let basis = format!("{}; {:.0} to {:.0} kB by what had been sent", by_rtt.basis, low / 1e3, high / 1e3);
    match by_rtt.high {
        _ if high < by_rtt.low => Estimate { low, basis, ..by_rtt },
        Some(most) if low > most => Estimate { high: Some(high), basis, ..by_rtt },
        _ => by_rtt,
    }
}

/// The range of a count of independent events.
fn counted(n: f64) -> (f64, f64) {
    ((n - 2.0 * n.sqrt()).max(0.0), n + 2.0 * n.sqrt() + 2.0)
}

/// Estimates the queue. `noise` is the error of a backlog in bytes.
pub(super) fn find(flow: &Flow, link: &Link, noise: f64) -> Queue {
    let all = backlogs(flow, link);
    let packet = flow.packet;
    let lost: Vec<&Found> = all.iter().filter(|f| f.lost > 0.0).collect();
    let most = all.iter().filter(|f| f.lost < f.bytes).map(|f| f.backlog).fold(packet, f64::max);
    let greatest = |basis: &str| Estimate {
        value: most,
        low: (most - noise).max(packet),
        high: None,
        basis: basis.into(),
    };
    let packets = |of: &mut dyn Iterator<Item = &Found>| of.map(|f| f.lost).sum::<f64>() / packet;
    let sent = all.iter().map(|f| f.bytes).sum::<f64>() / packet;

    let least = lost.iter().map(|f| f.backlog).reduce(f64::min).unwrap_or_default().max(packet);
    let depths: Vec<f64> = lost.iter().map(|f| f.backlog).collect();
    let drops = quantile(&depths, 0.05).filter(|d| {
        let drops = packets(&mut lost.iter().copied()) >= MANY;
        drops && *d * BEYOND < most && *d > most / 4.0 && most - *d > BEYOND * 3.0 * noise
    });
    if let Some(above) = drops {
        let reached: f64 = all.iter().filter(|f| f.backlog >= above).map(|f| f.bytes).sum::<f64>() / packet;
        let dropped = packets(&mut lost.iter().copied().filter(|f| f.backlog >= above));
        let (low, high) = counted(dropped);
        let basis = format!(
            "{dropped:.0} of {reached:.0} packets were lost that found {:.0} kB before them, none in order of a full queue",
            above / 1e3
        );
        return Queue {
            bytes: also_by_sends(
                flow,
                link,
                greatest("the greatest backlog in which a packet was taken in"),
                &[],
            ),
            least,
            random_drop: Some(RandomDrop {
                share: Estimate {
                    value: dropped / reached,
                    low: low / reached,
                    high: Some((high / reached).min(1.0)),
                    basis: basis.clone(),
                },
                above_bytes: Estimate {
                    value: above,
                    low: (depths.iter().copied().fold(above, f64::min) - noise).max(0.0),
                    high: Some(above + noise),
                    basis,
                },
            }),
            loss: None,
        };
    }

    let mut deep: Vec<&Found> = lost.iter().copied().filter(|f| f.backlog >= most * FULL).collect();
    // The wait for a full queue is shorter while the rate is above its mean.
    let room = most * FULL * (1.0 - link.varies);
    let shallow = packets(&mut lost.iter().copied().filter(|f| f.greater < room));
    if shallow >= SOME {
        let sum = |of: &dyn Fn(&Found) -> bool| all.iter().filter(|f| of(f)).map(|f| f.bytes).sum::<f64>();
        let by_chance = shallow * sum(&|f| f.backlog >= most * FULL) / sum(&|f| f.greater < room);
        if packets(&mut deep.iter().copied()) <= counted(by_chance).1 {
            deep.clear();
        }
    }
    let depths: Vec<f64> = deep.iter().map(|f| f.backlog).collect();
    let bytes = match quantile(&depths, 0.5) {
        Some(middle) => Estimate {
            value: middle.max(packet),
            low: (quantile(&depths, 0.05).unwrap_or(middle) - noise - packet).max(0.0),
            high: Some(quantile(&depths, 0.95).unwrap_or(middle) + noise + packet),
            basis: format!("the backlog before {} packets that it dropped", deep.len()),
        },
        None if lost.is_empty() => greatest("it never filled: the greatest backlog"),
        None => greatest("the greatest backlog; no more packets were lost at it than by chance"),
    };
    let bytes = also_by_sends(flow, link, bytes, &deep);
    let loss = (shallow >= SOME).then(|| {
        let (low, high) = counted(shallow);
        let basis = format!("{shallow:.0} of {sent:.0} packets were lost while the queue had room");
        Estimate { value: shallow / sent, low: low / sent, high: Some((high / sent).min(1.0)), basis }
    });
    Queue { bytes, least, random_drop: None, loss }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::flow::{Acked, Send};

    /// A queue that grows by 150 bytes a packet, of which these are lost.
    fn found(lost: impl Fn(usize) -> bool) -> Estimate {
        let (mut sends, mut acks, mut delivered) = (Vec::new(), Vec::new(), 0.0);
        for n in 0..400 {
            let (at, rtt) = (n as f64 * 0.009, 0.05 + 0.01 + n as f64 * 0.001);
            if !lost(n) {
                delivered += 1500.0;
                acks.push(Acked { at: at + rtt, delivered, rtt: Some(rtt) });
            }
            let lost = if lost(n) { 1500.0 } else { 0.0 };
            sends.push(Send { at, dated: true, bytes: 1500.0, lost, again: false });
        }
        let flow = Flow { sends, acks, packet: 1500.0, least: 0.06, first_loss: 0.5 };
        find(&flow, &Link { rate: 150_000.0, varies: 0.0, base: 0.05, late: 0.0, slot: 0.0 }, 1500.0).bytes
    }

    #[test]
    fn a_random_loss_at_the_greatest_backlog_shows_no_full_queue() {
        let random = found(|n| n % 57 == 56);
        assert!(random.high.is_none() && random.low <= 60_000.0, "{random:?}");
        let full = found(|n| n % 57 == 56 || n >= 390);
        assert!(full.high.is_some_and(|h| h > 55_000.0), "{full:?}");
    }
}
