//! What was observed of a transfer.

use super::limit::shares;
use super::{HEADERS, Observed};
use slowstart::registry::AnyController;
use slowstart::units::{Instant, Span};
use slowstart_quic::host::{Host, INITIAL_PACKETS};
use slowstart_sim::path::Path;
use slowstart_study::measured::{Measured, MeasuredExit, PacketSize};
use slowstart_study::record::{Cost, LostBy, Marks};

/// The times of the engine since the flow began, which is at time zero.
fn since(at: Instant) -> Span {
    at.since(Instant::ZERO)
}

/// What a controller in a library did wrong.
fn fault(control: &AnyController) -> Option<String> {
    let mut why = None;
    control.fault(&mut |text| why = Some(text.to_string()));
    why
}

/// The caveat of a sender that the peer's flow-control window stopped, for more than one packet in a hundred.
pub(super) fn peer_limited(o: &Observed) -> Option<String> {
    (o.peer_limited * 100 > o.data_packets)
        .then(|| "the peer's flow-control window held the sender back".to_string())
}

/// What the run observed until it ended at `ended`, with packets of `payload` bytes of UDP.
pub(super) fn measured(
    path: &Path,
    ended: Instant,
    o: &Observed,
    host: &Host<AnyController>,
    payload: u64,
    uses_ecn: bool,
) -> Measured {
    let left = host.exit.map_or(Instant(u64::MAX), |e| e.at);
    Measured {
        packet: PacketSize { payload, wire: payload + HEADERS },
        iw_bytes: Some(payload * INITIAL_PACKETS),
        facts: path.facts,
        base_rtt: path.facts.base_rtt,
        drawn: path.drawn.clone(),
        lasted: since(ended),
        exit: host.exit.map(|e| MeasuredExit::of(&e, Instant::ZERO)),
        exit_unknown: None,
        capacity: o.capacity.map(since),
        class_by_heuristic: None,
        capacity_by_heuristic: None,
        first_drop: o.first_drop.map(since),
        first_loss: host.first_loss.map(since),
        marks: uses_ecn.then(|| Marks {
            first_time_s: host.first_mark.map(|at| since(at).as_secs_f64()),
            packets: o.marked,
            responses: host.counters.ecn_episodes,
        }),
        peak_inflight: Some(host.counters.peak_inflight.0),
        peak_queue_delay: Some(o.peak_queue_delay),
        startup_queue_delay: None,
        startup_lost: Some(o.drops.iter().filter(|(at, _)| *at < left).count() as u64),
        lost: Some(o.drops.len() as u64),
        lost_by: Some(LostBy::count(o.drops.iter().map(|(_, cause)| *cause))),
        links: Vec::new(),
        retransmitted: Some(host.counters.lost_packets),
        timeouts: Some(host.counters.persistent),
        limits: Some(shares(o, ended)),
        delivered: o.received,
        completed: o.completed.map(since),
        milestones: o.milestones.map(|at| at.map(since)),
        objects: None,
        connections: Vec::new(),
        others: None,
        cost: Cost { packets: o.data_packets, events: o.steps },
        closed: None,
        broken: fault(host.control()),
        caveats: Vec::new(),
    }
}
