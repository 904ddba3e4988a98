//! A policer: a token bucket before the link, which drops what finds too few tokens and delays nothing.

use super::flow::{Flow, Send};
use super::{Estimate, Policer};
use slowstart_study::stats::quantile;

/// Losses that a policer must have made, packets.
const LOSSES: f64 = 20.0;
/// What a packet that was sent within so many RTTs of a loss waited at most, of the least RTT: a queue that
/// drops is full.
const NEAR: f64 = 1.0;
const WAIT: f64 = 0.15;
/// Packets between two losses that show the rate of the tokens.
const BETWEEN: f64 = 8.0;
/// The share of the losses that the bucket must explain, and of all packets that it would drop and that
/// arrived, in losses.
const EXPLAINED: f64 = 0.7;
const INVENTED: f64 = 0.4;

/// Finds a policer. `None` if packets waited where they were lost, or if a bucket does not explain the losses.
pub(super) fn find(flow: &Flow) -> Option<Policer> {
    let lost = |s: &Send| s.lost > 0.0;
    let losses: Vec<f64> = flow.sends.iter().filter(|s| lost(s)).map(|s| s.at).collect();
    let all = flow.sends.iter().map(|s| s.lost).sum::<f64>();
    if all < LOSSES * flow.packet || waited(flow, &losses) > WAIT * flow.least {
        return None;
    }
    let passed = passed_between_losses(flow);
    let rates: Vec<f64> = passed.iter().map(|(bytes, seconds)| bytes / seconds).collect();
    let of = |q| quantile(&rates, q);
    // Of the middle half all bytes over all the time: an error of a per cent would empty the bucket within seconds.
    let (low, high) = (of(0.25)?, of(0.75)?);
    let middle = || passed.iter().filter(|(bytes, seconds)| (low..=high).contains(&(bytes / seconds)));
    let rate = middle().map(|p| p.0).sum::<f64>() / middle().map(|p| p.1).sum::<f64>();
    let burst = burst(flow, rate, *losses.first()?);
    let off = (high - low) / (rates.len() as f64).sqrt();
    let (hits, invented) = explained(flow, rate, off, burst);
    if hits < EXPLAINED * all || invented > INVENTED * all {
        return None;
    }
    let basis = format!(
        "a token bucket explains {:.0} of {:.0} lost packets, none of which waited",
        hits / flow.packet,
        all / flow.packet
    );
    Some(Policer {
        rate_bps: Estimate {
            value: rate * 8.0,
            low: (rate - off).max(0.0) * 8.0,
            high: Some((rate + off) * 8.0),
            basis: basis.clone(),
        },
        burst_bytes: Estimate {
            value: burst,
            low: (burst * 0.8 - flow.packet).max(flow.packet),
            high: Some(burst * 1.2 + flow.packet),
            basis,
        },
    })
}

/// What packets near losses waited in the median, seconds.
fn waited(flow: &Flow, losses: &[f64]) -> f64 {
    let near = |at: f64| {
        let next = losses.partition_point(|l| *l < at);
        let close = |i: Option<usize>| {
            i.and_then(|i| losses.get(i)).is_some_and(|l| (l - at).abs() < NEAR * flow.least)
        };
        close(Some(next)) || close(next.checked_sub(1))
    };
    let waits = flow.acks.iter().filter_map(|a| Some((a.at - a.rtt?, a.rtt? - flow.least)));
    let waits: Vec<f64> = waits.filter(|w| near(w.0)).map(|w| w.1).collect();
    quantile(&waits, 0.5).unwrap_or(f64::INFINITY)
}

/// The bytes that passed from one loss to a later one, and the seconds: the bucket was empty at both.
fn passed_between_losses(flow: &Flow) -> Vec<(f64, f64)> {
    let (mut all, mut passed, mut since) = (Vec::new(), 0.0, None::<(f64, f64)>);
    for s in &flow.sends {
        passed += s.bytes - s.lost;
        if s.lost == 0.0 {
            continue;
        }
        let Some((at, before)) = since else {
            since = Some((s.at, passed));
            continue;
        };
        // After a silence the bucket may have been full.
        let (seconds, bytes) = (s.at - at, passed - before);
        if bytes >= BETWEEN * flow.packet && seconds > 0.0 {
            if seconds < 2.0 * flow.least {
                all.push((bytes, seconds));
            }
            since = Some((s.at, passed));
        }
    }
    all
}

/// What the bucket holds: the most that passed before the first loss above what its rate allows.
fn burst(flow: &Flow, rate: f64, first: f64) -> f64 {
    let (mut level, mut most, mut last) = (0.0_f64, flow.packet, None::<f64>);
    for s in flow.sends.iter().take_while(|s| s.at <= first) {
        level = (level - rate * last.map_or(0.0, |l| s.at - l)).max(0.0) + s.bytes - s.lost;
        (most, last) = (most.max(level), Some(s.at));
    }
    most
}

/// The lost bytes that the bucket would have dropped, and those that it would have dropped and that arrived.
/// Near its edge a packet more or less passes, and what the rate may be off adds up since the bucket was last known to
/// be empty or full.
fn explained(flow: &Flow, rate: f64, off: f64, burst: f64) -> (f64, f64) {
    let (mut level, mut last, mut known) = (0.0_f64, None::<f64>, 0.0);
    let (mut hits, mut invented) = (0.0, 0.0);
    for s in &flow.sends {
        level = (level - rate * last.map_or(0.0, |l| s.at - l)).max(0.0);
        last = Some(s.at);
        if level == 0.0 {
            known = s.at;
        }
        let unsure = off * (s.at - known);
        if s.lost > 0.0 && level + s.bytes > burst - flow.packet - unsure {
            hits += s.lost;
            (level, known) = (level.clamp(burst - s.bytes, burst), s.at);
        }
        if level + s.bytes > burst + flow.packet * BETWEEN + unsure {
            invented += s.bytes - s.lost;
        }
        level += s.bytes - s.lost;
    }
    (hits, invented)
}
