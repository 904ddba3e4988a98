//! One transfer over several connections that begin together: what they did as one.

use crate::measured::Measured;
use crate::record::{Connection, ExitRow, LinkRow, LostBy, Marks};
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::{Engine, Flow};
use slowstart_sim::trace::MILESTONES;

/// The caveat of such a transfer.
const SEVERAL: &str =
    "of several connections, exit, class and window are those of the first to leave (--json has each)";

/// Runs until the first `n` flows are complete, at most to `end`. Returns when all of them together had delivered
/// each of [`MILESTONES`].
pub(crate) fn complete(engine: &mut Engine, n: usize, end: Instant) -> [Option<Instant>; MILESTONES.len()] {
    let mut reached = [None; MILESTONES.len()];
    engine.run_until(end, |e| {
        let flows = &e.flows[..n];
        let delivered: u64 = flows.iter().map(Flow::delivered).sum();
        for (at, bytes) in reached.iter_mut().zip(MILESTONES) {
            if at.is_none() && delivered >= bytes {
                *at = Some(e.now());
            }
        }
        flows.iter().all(|f| f.truth.completed.is_some()) || flows.iter().any(|f| f.fault().is_some())
    });
    reached
}

/// The sum, if all are known.
fn sum(all: &[Measured], of: impl Fn(&Measured) -> Option<u64>) -> Option<u64> {
    all.iter().map(of).sum()
}

/// The least of those there are.
fn first(all: &[Measured], of: impl Fn(&Measured) -> Option<Span>) -> Option<Span> {
    all.iter().filter_map(of).min()
}

/// What the links did to all connections.
fn links(all: &[Measured]) -> Vec<LinkRow> {
    let mut links = all.first().map_or_else(Vec::new, |m| m.links.clone());
    for (i, link) in links.iter_mut().enumerate() {
        for other in all[1..].iter().filter_map(|m| m.links.get(i)) {
            link.lost_by = link.lost_by.and(other.lost_by);
            let waits = link.peak_queue_delay_s.zip(other.peak_queue_delay_s);
            link.peak_queue_delay_s = waits.map(|(a, b)| a.max(b));
        }
    }
    links
}

/// What connections did as one transfer, given what each did and when together they reached the milestones. What the
/// sum of them does not tell, such as the most in flight, is not observed.
pub(crate) fn together(all: &[Measured], milestones: [Option<Span>; MILESTONES.len()]) -> Option<Measured> {
    let leader = all.iter().min_by_key(|m| m.exit.map_or(Span::MAX, |e| e.detected))?;
    let connections = all.iter().map(|m| Connection {
        exit: m.exit.map(ExitRow::from),
        class: m.class(),
        goodput_bps: m.goodput(),
        completion_s: m.completed.map(Span::as_secs_f64),
        startup_lost_packets: m.startup_lost,
        lost_packets: m.lost,
    });
    let marks = all.iter().map(|m| m.marks.clone()).collect::<Option<Vec<_>>>();
    let marks = marks.map(|marks| Marks {
        first_time_s: marks.iter().filter_map(|m| m.first_time_s).min_by(f64::total_cmp),
        packets: marks.iter().map(|m| m.packets).sum(),
        responses: marks.iter().map(|m| m.responses).sum(),
    });
    let completed = all.iter().map(|m| m.completed).collect::<Option<Vec<_>>>();
    let lost_by = all.iter().map(|m| m.lost_by).collect::<Option<Vec<_>>>();
    let mut caveats = vec![SEVERAL.to_string()];
    for caveat in all.iter().flat_map(|m| &m.caveats) {
        if !caveats.contains(caveat) {
            caveats.push(caveat.clone());
        }
    }
    Some(Measured {
        class_by_heuristic: None,
        capacity_by_heuristic: None,
        first_drop: first(all, |m| m.first_drop),
        marks,
        peak_inflight: None,
        peak_queue_delay: all.iter().filter_map(|m| m.peak_queue_delay).max(),
        startup_queue_delay: all.iter().filter_map(|m| m.startup_queue_delay).max(),
        startup_lost: sum(all, |m| m.startup_lost),
        lost: sum(all, |m| m.lost),
        lost_by: lost_by.map(|all| all.into_iter().fold(LostBy::default(), LostBy::and)),
        links: links(all),
        retransmitted: sum(all, |m| m.retransmitted),
        timeouts: sum(all, |m| m.timeouts),
        limits: None,
        delivered: all.iter().map(|m| m.delivered).sum(),
        completed: completed.and_then(|all| all.into_iter().max()),
        milestones,
        connections: connections.collect(),
        broken: all.iter().find_map(|m| m.broken.clone()),
        caveats,
        ..leader.clone()
    })
}
