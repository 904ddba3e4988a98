//! What the simulator observed of a flow: exit, class, losses and times.

use crate::engine::{BIN, Direction, Engine, Flow, Truth};
use crate::engines::Simulator;
use crate::measured::{Identity, Measured, MeasuredExit, PacketSize};
use crate::record::{Class, HANDSHAKE_FAILED, Marks, Objects, Others, Row};
use crate::scenario::{Contender, Study};
use crate::stats;
use crate::tcp::ecn::Feedback;
use slowstart::control::Exited;
use slowstart::units::{Instant, Span};

/// Round trips below which the thesis takes the median throughput for capacity (5.2.2) and not the one-way
/// delay (5.2.1). It used the delay on LEO at 30 ms, and the median on `WiFi`; the border is ours.
const LOW_RTT: Span = Span::millis(25);

/// When a startup saw its reason to end, on any clock, and whether that reason was congestion.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Ended<T> {
    /// When the reason was seen.
    pub at: T,
    /// True for a loss, a mark, a timeout or a stall of the host's own queue; false for a rule of the
    /// startup.
    pub by_congestion: bool,
}

impl From<&Exited> for Ended<Instant> {
    fn from(e: &Exited) -> Self {
        Self { at: e.detected_at, by_congestion: e.why.by_congestion() }
    }
}

/// Classifies the end of a startup, given when the path was first full and when the sender first knew of a
/// loss.
///
/// [`Class`] says what each means. Capacity is reached when the data in flight first fills the path.
///
/// All times are on one clock: the simulator passes [`Instant`]s, other users seconds.
pub fn class<T: PartialOrd>(exit: Option<Ended<T>>, capacity: Option<T>, first_loss: Option<T>) -> Class {
    let Some(exit) = exit else { return Class::None };
    if capacity.is_none_or(|c| exit.at < c) {
        Class::Early
    } else if exit.by_congestion || first_loss.is_some_and(|l| exit.at >= l) {
        Class::Late
    } else {
        Class::ChokePoint
    }
}

/// The median throughput over round trips (to the nearest [`BIN`], at least one) between the first and the
/// last byte, bytes a second, and when a round trip first reached it.
fn median_throughput(t: &Truth, start: Instant, base_rtt: Span) -> Option<(f64, Instant)> {
    let width = ((base_rtt + BIN / 2).0 / BIN.0).max(1) as usize;
    let bins = t.bins();
    let first = bins.iter().position(|b| *b > 0)?;
    let seconds = BIN.as_secs_f64() * width as f64;
    let rates: Vec<f64> = bins[first..]
        .chunks_exact(width)
        .map(|c| c.iter().map(|b| f64::from(*b)).sum::<f64>() / seconds)
        .collect();
    let median = stats::quantile(&rates, 0.5)?;
    let reached = rates.iter().position(|r| *r >= median)?;
    Some((median, start + BIN * (first + reached * width) as u64))
}

/// The thesis' two heuristics (5.2.1, 5.2.2): class and capacity time. For paths of high round-trip time the
/// one-way delay tells when; for low ones the throughput tells whether, and the time is that of the first
/// round trip that reached the median (the thesis does not say how it got one).
fn by_heuristic(f: &Flow, base_rtt: Span) -> (Option<Class>, Option<Instant>) {
    let t = &f.truth;
    if base_rtt >= LOW_RTT {
        let capacity = t.capacity_by_delay;
        // Where the delay never showed a full path, this heuristic has no answer.
        return (capacity.map(|_| class(t.exit.as_ref().map(Ended::from), capacity, t.first_loss)), capacity);
    }
    let Some((median, at)) = median_throughput(t, f.spec.start, base_rtt) else { return (None, None) };
    let judged = match (&t.exit, t.exit_rtt) {
        (Some(e), Some(rtt)) => {
            let reached = e.detected_cwnd.0 as f64 / rtt.as_secs_f64().max(1e-9) > median;
            Some(class(Some(e.into()), reached.then_some(Instant::ZERO), t.first_loss))
        }
        (Some(_), None) => None,
        (None, _) => Some(Class::None),
    };
    (judged, Some(at))
}

/// The effect of the flow on those that were there before it.
fn others(engine: &Engine, flow: usize) -> Option<Others> {
    let start = engine.flows[flow].spec.start;
    let witnesses: Vec<&Flow> = engine.flows.iter().filter(|f| f.truth.impact.is_some()).collect();
    let first = witnesses.first()?;
    let arrived: Vec<(Instant, Vec<u32>)> =
        witnesses.iter().map(|f| (f.spec.start, f.truth.bins())).collect();
    let lost_packets = witnesses.iter().filter_map(|f| f.truth.impact.as_ref()).map(|w| w.dropped).sum();
    // Goodput of all of them together, second by second around the start.
    let per_second = (1_000_000_000 / BIN.0) as usize;
    let second = |from: Instant| -> Option<f64> {
        let mut sum = 0.0;
        for (start, bins) in &arrived {
            let at = (from.0.checked_sub(start.0)? / BIN.0) as usize;
            sum += bins.get(at..at + per_second)?.iter().map(|b| f64::from(*b)).sum::<f64>();
        }
        Some(sum)
    };
    let before: Vec<f64> = (1..=5).filter_map(|s| second(start - Span::secs(s))).collect();
    let mean = before.iter().sum::<f64>() / before.len().max(1) as f64;
    let lasted = engine.now().since(start).0 / 1_000_000_000;
    let lowest = (0..lasted).filter_map(|s| second(start + Span::secs(s))).min_by(f64::total_cmp);
    let delay = first.truth.impact.as_ref().and_then(|w| w.quantile(990));
    Some(Others {
        lost_packets,
        goodput_dip: lowest.filter(|_| mean > 0.0).map(|l| ((mean - l) / mean).max(0.0)),
        delay_p99_s: delay.map(Span::as_secs_f64),
    })
}

/// What a browser waited for.
fn objects(f: &Flow) -> Option<Objects> {
    let times: Vec<f64> = f.object_times().iter().map(|t| t.as_secs_f64()).collect();
    Some(Objects {
        complete: times.len() as u64,
        median_s: stats::quantile(&times, 0.5)?,
        p95_s: stats::quantile(&times, 0.95)?,
    })
}

/// What only the simulator knows to be a caveat.
fn caveats(study: &Study, engine: &Engine, f: &Flow) -> Vec<String> {
    let mut all = Vec::new();
    let tx = &f.ends[f.sender()].tx;
    if f.handshake_failed() {
        all.push(HANDSHAKE_FAILED.to_string());
    }
    if tx.counters.peer_limited * 100 > tx.counters.packets {
        all.push("the peer's receive window held the sender back".to_string());
    }
    if study.path.proxy().is_some() {
        all.push(
            "a proxy splits the connection: rate, RTT, exit and losses are those between server and proxy, times those of \
             the client"
                .to_string(),
        );
    }
    if f.ends[f.sender()].syn_losses() > 0 {
        all.push("a handshake packet was lost".to_string());
    }
    let path = engine.path();
    let marks =
        if f.spec.direction == Direction::Download { path.forward.marks() } else { path.back.marks() };
    if marks && f.ends[f.sender()].feedback() == Feedback::None {
        all.push("the path marks packets, and the ends do not use ECN".to_string());
    }
    all
}

/// What the simulator observed of one flow of a run.
pub fn measured(study: &Study, engine: &Engine, flow: usize) -> Measured {
    let f = &engine.flows[flow];
    let (t, p, facts) = (&f.truth, &f.spec.profile, engine.path().facts);
    let tx = &f.ends[f.sender()].tx;
    let since = |at: Instant| at.since(f.spec.start);
    let base_rtt = facts.base_rtt + f.spec.extra_delay * 2;
    let (class_by_heuristic, capacity_by_heuristic) = by_heuristic(f, base_rtt);
    let ecn = f.ends[f.sender()].feedback() != Feedback::None;
    Measured {
        packet: PacketSize { payload: u64::from(p.mss), wire: u64::from(p.packet()) },
        iw_bytes: u64::from(p.iw) * u64::from(p.mss),
        facts,
        base_rtt,
        drawn: engine.path().drawn.clone(),
        lasted: since(engine.now()),
        exit: t.exit.map(|e| MeasuredExit::of(&e, f.spec.start)),
        exit_unknown: None,
        capacity: t.capacity.map(since),
        class_by_heuristic,
        capacity_by_heuristic: capacity_by_heuristic.map(since),
        first_drop: t.first_drop.map(since),
        first_loss: t.first_loss.map(since),
        marks: ecn.then(|| Marks {
            first_time_s: t.first_mark.map(|at| since(at).as_secs_f64()),
            packets: f.ends[f.sender().other()].rx.ecn.marked,
            responses: tx.counters.mark_responses,
        }),
        peak_inflight: Some(tx.counters.peak_inflight),
        peak_queue_delay: Some(t.peak_queue_delay),
        startup_queue_delay: Some(if t.exit.is_some() { t.exit_queue_delay } else { t.peak_queue_delay }),
        startup_lost: Some(t.dropped_in_startup),
        lost: Some(t.dropped),
        retransmitted: Some(tx.counters.retransmitted),
        timeouts: Some(tx.counters.timeouts),
        delivered: f.delivered(),
        completed: t.completed.map(since),
        milestones: t.milestones.map(|at| at.map(since)),
        objects: objects(f),
        others: others(engine, flow),
        cost: engine.cost,
        closed: None,
        broken: f.fault(),
        caveats: caveats(study, engine, f),
    }
}

/// Returns the row of one flow of a run.
pub fn row(study: &Study, contender: &Contender, engine: &Engine, flow: usize, run: u32, seed: u64) -> Row {
    let identity = Identity::new(Simulator::NAME, study, contender, run, seed);
    Row::new(Identity { flow: flow as u32, ..identity }, &measured(study, engine, flow))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::step::Exit;
    use slowstart::units::Bytes;

    #[test]
    fn classes() {
        let at = |s: u64| Instant(s * 1_000_000_000);
        let exit = |why, s| Exited {
            why,
            at: at(s),
            detected_at: at(s),
            detected_cwnd: Bytes(1),
            exit_cwnd: Bytes(1),
            inflight: Bytes(1),
        };
        let rule = exit(Exit::Delay, 5);
        let loss = exit(Exit::Loss, 5);
        assert_eq!(class::<Instant>(None, None, None), Class::None);
        assert_eq!(class(Some(Ended::from(&rule)), None, None), Class::Early);
        assert_eq!(class(Some(Ended::from(&rule)), Some(at(6)), None), Class::Early);
        assert_eq!(class(Some(Ended::from(&loss)), Some(at(6)), Some(at(5))), Class::Early);
        assert_eq!(class(Some(Ended::from(&rule)), Some(at(4)), None), Class::ChokePoint);
        assert_eq!(class(Some(Ended::from(&rule)), Some(at(4)), Some(at(6))), Class::ChokePoint);
        assert_eq!(class(Some(Ended::from(&rule)), Some(at(4)), Some(at(5))), Class::Late);
        assert_eq!(class(Some(Ended::from(&loss)), Some(at(4)), Some(at(5))), Class::Late);
        // Any clock will do, and a class does not depend on it.
        let left = |at, by_congestion| Some(Ended { at, by_congestion });
        assert_eq!(class(left(5.0, false), Some(4.0), Some(6.0)), Class::ChokePoint);
        assert_eq!(class(left(5.0, true), Some(4.0), None), Class::Late);
    }
}
