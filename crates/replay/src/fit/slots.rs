//! ACK slots: ACKs that come at multiples of a period, several at once.

use super::{Estimate, flow::Flow};
use crate::analysis::Findings;
use crate::infer::LimitedBy;
use slowstart::units::{Instant, Span};
use slowstart_study::stats::quantile;

/// Periods that are tried, seconds, and the ratio of one to the next.
const LEAST: f64 = 1e-3;
const MOST: f64 = 0.2;
const STEP: f64 = 1.002;
/// Least mean of the cosine of the gaps' phases: 1 if all gaps are multiples of the period.
const SURE: f64 = 0.85;
/// Groups of ACKs that are needed.
const GROUPS: usize = 20;
/// Packets that a group acknowledges in the mean. With fewer, a constant link gives the same gaps by itself.
const PACKETS: f64 = 2.5;

/// A period that differs from the least RTT by less than this share of it is a round trip of the sender.
const ROUND_TRIP: f64 = 0.05;

/// The share of the time for which the receive window may limit the sender.
const LIMITED: f64 = 0.3;

/// The least share of the gap before its group that the first packet of a group waits, if ACKs wait for slots.
const WAITED: f64 = 0.5;

/// For each group but the first, true if its first packet waited for it: what it took more than the least RTT
/// is of the length of the gap before the group. Otherwise the gap is one of the sender, which sends a window
/// and waits for its ACKs. Losses make what was sent and what was delivered differ: it is told of what came
/// before the first.
fn waits(flow: &Flow, groups: &[(f64, f64, usize)]) -> Vec<bool> {
    let mut sends = flow.sends.iter().filter(|s| !s.again).peekable();
    let mut sent = 0.0;
    let mut waited = |w: &[(f64, f64, usize)]| {
        let ((before, delivered, _), (at, ..)) = (w[0], w[1]);
        while let Some(s) = sends.next_if(|s| sent + s.bytes <= delivered + 1.0) {
            sent += s.bytes;
        }
        sends.peek().is_some_and(|s| at - s.at - flow.least >= WAITED * (at - before))
    };
    groups.windows(2).take_while(|w| w[1].0 < flow.first_loss).map(&mut waited).collect()
}

/// The period of the slots, if ACKs come in slots. A sender that waits for the receive window sends a window at once,
/// so that its ACKs come in groups by themselves, a round trip apart. Where the window is not known, the round trip
/// shows it.
pub(super) fn of(f: &Findings, flow: &Flow) -> Option<Estimate> {
    let seconds = |at: Instant| Span(at.0).as_secs_f64();
    let limits = |until: f64| {
        let limited = f.periods.iter().filter(|p| p.0 == LimitedBy::ReceiveWindow);
        let window: f64 = limited.map(|p| seconds(p.2).min(until) - seconds(p.1).min(until)).sum();
        window > LIMITED * until
    };
    // What waits behind a hole takes the window too: that says nothing of the ACKs before.
    let all = seconds(f.last);
    if limits(all) && limits(flow.first_loss.min(all)) { None } else { find(flow) }
}

fn find(flow: &Flow) -> Option<Estimate> {
    let groups = flow.groups();
    let delivered = groups.last()?.1;
    if groups.len() < GROUPS || delivered / flow.packet < PACKETS * groups.len() as f64 {
        return None;
    }
    let waits = waits(flow, &groups);
    if waits.iter().filter(|w| **w).count() * 2 < waits.len() {
        return None;
    }
    let gaps: Vec<f64> = groups.windows(2).map(|w| w[1].0 - w[0].0).collect();
    let smallest = quantile(&gaps, 0.05)?;
    // Gaps of many periods say little about one.
    let near: Vec<f64> = gaps.iter().copied().filter(|g| *g < smallest * 12.0).collect();
    let mean = |period: f64| {
        let cosines = near.iter().map(|g| libm::cos(std::f64::consts::TAU * g / period));
        cosines.sum::<f64>() / near.len() as f64
    };
    // The smallest gaps are of one period: halves and thirds of it fit as well and are not meant.
    let (from, to) = ((smallest * 0.7).max(LEAST), (smallest * 1.5).min(MOST));
    let mut best = (0.0, SURE);
    let mut period = from;
    while period <= to {
        let score = mean(period);
        if score > best.1 {
            best = (period, score);
        }
        period *= STEP;
    }
    let (period, score) = Some(best).filter(|b| b.0 > 0.0)?;
    // Least squares over the gaps, each a whole number of periods.
    let counts = || near.iter().map(|g| (g, (g / period).round())).filter(|(_, n)| *n >= 1.0);
    let (gn, nn) = counts().fold((0.0, 0.0), |(gn, nn), (g, n)| (gn + g * n, nn + n * n));
    let value = gn / nn;
    if (value - flow.least).abs() < ROUND_TRIP * flow.least {
        return None;
    }
    let rest: f64 = counts().map(|(g, n)| (g - n * value).powi(2)).sum();
    let deviation = (rest / near.len() as f64 / nn).sqrt() * 2.0;
    Some(Estimate {
        value,
        low: value - deviation,
        high: Some(value + deviation),
        basis: format!(
            "{} groups of ACKs, {:.1} packets each, a whole number of periods apart ({:.0} % in phase)",
            groups.len(),
            delivered / flow.packet / groups.len() as f64,
            score * 100.0
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::flow::{Acked, Send};

    /// Windows of ten packets, each sent at once and acknowledged a round trip later, `period` apart. Of the first
    /// window no ACK was captured, so that each seems to wait for the next.
    fn bursts(rtt: f64, period: f64) -> Flow {
        let (mut sends, mut acks) = (Vec::new(), Vec::new());
        for n in 0..40 {
            let at = f64::from(n) * period;
            sends.extend([Send { at, dated: true, bytes: 15_000.0, lost: 0.0, again: false }]);
            acks.push(Acked { at: at + rtt, delivered: f64::from(n) * 15_000.0, rtt: Some(rtt) });
        }
        Flow { sends, acks, packet: 1500.0, least: rtt, first_loss: f64::INFINITY }
    }

    #[test]
    fn bursts_a_round_trip_apart_are_no_slots() {
        assert!(find(&bursts(0.02, 0.02)).is_none());
        let slots = find(&bursts(0.02, 0.03)).expect("slots");
        assert!((slots.value - 0.03).abs() < 1e-4, "{slots:?}");
    }
}
