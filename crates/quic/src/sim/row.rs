//! The row of a transfer.

use super::{HEADERS, Measured};
use crate::host::{Host, INITIAL_PACKETS};
use slowstart::registry::AnyController;
use slowstart::units::{Bytes, Instant, Rate};
use slowstart_lab::engine::MILESTONES;
use slowstart_lab::eval;
use slowstart_lab::path::Path;
use slowstart_lab::record::{Cost, ExitRow, Row, SCHEMA};
use slowstart_lab::run::Job;
use slowstart_lab::scenario::{Contender, Study};

#[allow(clippy::too_many_arguments, reason = "one call, which takes a finished transfer apart")]
pub(super) fn row(
    study: &Study,
    contender: &Contender,
    job: Job,
    seed: u64,
    path: &Path,
    ended: Instant,
    m: &Measured,
    host: &Host<AnyController>,
    mss: u64,
) -> Row {
    let since = |at: Instant| at.since(Instant::ZERO).as_secs_f64();
    let facts = path.facts;
    let iw = mss * INITIAL_PACKETS;
    let exit_at = host.exit.map_or(Instant(u64::MAX), |e| e.at);
    let mut caveats = Vec::new();
    if study.size.is_some() && m.completed.is_none() {
        caveats.push("the transfer did not complete within the time given".to_string());
    }
    if host.exit.is_none() && m.completed.is_some() {
        caveats.push("the transfer ended before the startup did".to_string());
    }
    let end = m.completed.unwrap_or(ended);
    Row {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_string(),
        engine: "quic".to_string(),
        path: study.path.name.clone(),
        drawn: path.drawn.clone(),
        profile: String::new(),
        startup: contender.startup_name.clone(),
        params: contender.params.clone(),
        avoidance: contender.avoidance_name.clone(),
        flow: 0,
        run: job.run,
        seed,
        iw_bytes: iw,
        size_bytes: study.size,
        duration_s: since(ended),
        rate_bps: facts.rate.0,
        base_rtt_s: facts.base_rtt.as_secs_f64(),
        bdp_bytes: facts.rate.over(facts.base_rtt).scale(mss, mss + HEADERS).0,
        buffer_bytes: facts.buffer.map(|b| b.0),
        exit: host.exit.map(|e| ExitRow {
            reason: e.why.name().to_string(),
            time_s: since(e.detected_at),
            left_s: since(e.at),
            detected_cwnd_bytes: e.detected_cwnd.0,
            cwnd_bytes: e.exit_cwnd.0,
            inflight_bytes: e.inflight.0,
        }),
        class: eval::class(host.exit.as_ref().map(Into::into), m.capacity, host.first_loss),
        class_by_heuristic: None,
        capacity_time_s: m.capacity.map(since),
        capacity_time_by_heuristic_s: None,
        first_drop_time_s: m.first_drop.map(since),
        first_loss_time_s: host.first_loss.map(since),
        marks: None,
        peak_inflight_bytes: host.counters.peak_inflight.0,
        peak_queue_delay_s: m.peak_queue_delay.as_secs_f64(),
        startup_lost_packets: m.drops.iter().filter(|at| **at < exit_at).count() as u64,
        lost_packets: m.drops.len() as u64,
        retransmitted_packets: host.counters.lost_packets,
        timeouts: host.counters.persistent,
        goodput_bps: Rate::new(Bytes(m.received), end.since(Instant::ZERO)).map_or(0, |r| r.0),
        completion_s: m.completed.map(since),
        time_to_bytes_s: MILESTONES
            .iter()
            .zip(m.milestones)
            .map(|(b, at)| (b.to_string(), at.map(since)))
            .collect(),
        objects: None,
        others: None,
        cost: Cost { packets: m.data_packets, events: m.steps },
        caveats,
    }
}
