//! The row and the trace of a run, from what the guest recorded.

use crate::exits::{RECOVERY, exit};
use crate::order::{Recording, Seen};
use crate::segments::packets;
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::Sampling;
use slowstart_sim::path::Cause;
use slowstart_sim::tcp::ecn::EcnRule;
use slowstart_study::limits::{Chrono, State};
use slowstart_study::measured::{CWR, INVALID, Identity, Measured, PacketSize, first_loss};
use slowstart_study::record::{
    Cost, EventRow, HANDSHAKE_FAILED, Limits, LostBy, Marks, Objects, Row, Sample, Trace,
};
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::Study;
use std::collections::BTreeMap;

/// Bytes of IPv4 and TCP headers, with timestamps.
const HEADERS: u64 = 52;

/// What the path marked, and how often the sender reduced its window for it.
fn marks(r: &Recording) -> Marks {
    let responds = |s: &Seen| (s.state == CWR).then_some(s.ssthresh);
    let pairs = r.seen.iter().zip(r.seen.iter().skip(1));
    // A reduction right after another sets a new threshold.
    let responses = pairs.filter(|(a, b)| responds(b).is_some() && responds(a) != responds(b)).count();
    let first = r.seen.iter().find(|s| s.state == CWR);
    Marks {
        first_time_s: first.map(|s| Span(s.at).as_secs_f64()),
        packets: r.marked,
        responses: responses as u64,
    }
}

/// What limited the sender, as far as its kernel tells.
fn limits(r: &Recording) -> Limits {
    let state =
        |s: &Seen| State { at: Span(s.at), repairs: s.state >= RECOVERY, has_sent_all: s.unsent == 0 };
    let states: Vec<State> = r.seen.iter().map(state).collect();
    let chrono = r.chrono.map(|all| {
        let [busy, rwnd_limited, sndbuf_limited] = all.map(Span::micros);
        Chrono { busy, rwnd_limited, sndbuf_limited }
    });
    Limits::of_kernel(&states, chrono, Span(r.ended))
}

/// Number of times that the state of the sender became that of a timeout.
fn timeouts(r: &Recording) -> u64 {
    let after = |s: &Seen| s.state > RECOVERY;
    r.seen.iter().zip(r.seen.iter().skip(1)).filter(|(a, b)| !after(a) && after(b)).count() as u64
}

fn sample(s: &Seen, mss: u64, left: Option<Span>) -> Sample {
    Sample {
        time_s: Span(s.at).as_secs_f64(),
        flow: 0,
        cwnd_bytes: u64::from(s.cwnd) * mss,
        ssthresh_bytes: (s.ssthresh != u32::MAX).then(|| u64::from(s.ssthresh) * mss),
        inflight_bytes: u64::from(s.inflight) * mss,
        rtt_s: (s.srtt > 0).then(|| f64::from(s.srtt) / 1e6),
        delivered_bytes: s.received,
        queue_bytes: Some(s.queue),
        pacing_bps: Some(s.pacing.saturating_mul(8)),
        phase: Some(
            (if left.is_some_and(|left| s.at >= left.0) { "avoidance" } else { "slow-start" }).into(),
        ),
        limited_by: None,
        gauges: BTreeMap::new(),
    }
}

/// The samples that were asked for: the last state before each of their times, or every state.
fn samples(r: &Recording, sampling: Sampling, mss: u64, left: Option<Span>) -> Vec<Sample> {
    match sampling {
        Sampling::Off => Vec::new(),
        Sampling::EachAck => r.seen.iter().map(|s| sample(s, mss, left)).collect(),
        Sampling::Every(period) => {
            let mut all = Vec::new();
            let mut next = 0;
            for (i, s) in r.seen.iter().enumerate() {
                let until = r.seen.get(i + 1).map_or(s.at + 1, |after| after.at);
                if until > next {
                    let mut sample = sample(s, mss, left);
                    sample.time_s = Span(s.at.max(next)).as_secs_f64();
                    all.push(sample);
                    next = until.div_ceil(period.0.max(1)) * period.0.max(1);
                }
            }
            all
        }
    }
}

/// The longest wait at the bottleneck, of packets that came before the startup left if it did. None waited if none is there.
fn longest(waits: &[(u64, u64)], left: Option<Span>) -> Span {
    let mut before = waits.iter().filter(|(at, _)| left.is_none_or(|left| *at <= left.0));
    before.next_back().map_or(Span::ZERO, |(_, wait)| Span(*wait))
}

/// The objects of an application that has several. The first is asked for as soon as the connection is there.
fn objects(study: &Study, r: &Recording) -> Option<Objects> {
    let time = |&(asked, came): &(u64, Option<u64>)| came.map(|at| Span(at - asked).as_secs_f64());
    let times: Vec<_> = r.objects.iter().map(time).collect();
    study.app.has_objects().then(|| Objects::new(if times.is_empty() { vec![None] } else { times }))
}

/// Why the path dropped each data packet that it dropped.
fn causes(r: &Recording) -> impl Iterator<Item = Cause> + '_ {
    r.drops.iter().filter_map(|(_, cause)| Cause::ALL.get(usize::from(*cause)).copied())
}

/// What the path dropped, and what became of the packets of the handshake, in order of time.
fn events(r: &Recording) -> Vec<EventRow> {
    let event = |at: u64, what: &'static str, why: String| EventRow {
        time_s: Span(at).as_secs_f64(),
        flow: 0,
        what: what.into(),
        why: Some(why),
        link: None,
    };
    let drops = r.drops.iter().zip(causes(r)).map(|((at, _), cause)| event(*at, "drop", cause.to_string()));
    let mut all: Vec<EventRow> = drops.collect();
    for (i, name) in ["SYN", "SYN-ACK"].into_iter().enumerate() {
        all.extend(r.lost_syns[i].iter().map(|at| event(*at, "handshake", format!("{name} lost"))));
        let again = r.syns[i].iter().skip(1);
        all.extend(again.map(|at| event(*at, "handshake", format!("{name} sent again"))));
    }
    all.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    all
}

/// The outcome of a job.
pub(crate) fn outcome(study: &Study, job: Job, seed: u64, r: &Recording, sampling: Sampling) -> Outcome {
    let path = study.path.build(seed);
    let facts = path.facts;
    let contender = &study.contenders[job.contender];
    // Without a connection there is no segment: what the stack would have sent.
    let mss = u64::from(if r.seen.is_empty() { study.profile.mss } else { r.mss });
    let exit = exit(r);
    let left = exit.map(|x| x.left);
    // The first time that the data in flight fills the path, by the definition of the simulator.
    let fills = |s: &&Seen| {
        u64::from(s.inflight) * (mss + HEADERS) >= path.bytes_per_rtt(Instant(s.at), facts.base_rtt).0
    };
    let mut caveats = Vec::new();
    if let Some(why) = &r.failed {
        caveats.push(if r.received == 0 { HANDSHAKE_FAILED.to_string() } else { why.clone() });
    }
    if r.syns.iter().any(|sent| sent.len() > 1) {
        caveats.push("a packet of the handshake was sent again".to_string());
    }
    if 100 * r.late > r.released {
        caveats.push(INVALID.to_string());
    }
    let measured = Measured {
        packet: PacketSize { payload: mss, wire: mss + HEADERS },
        iw_bytes: r.seen.first().map(|_| u64::from(r.initial_window) * mss),
        facts,
        base_rtt: facts.base_rtt,
        drawn: path.drawn.clone(),
        lasted: Span(r.ended),
        exit,
        exit_unknown: None,
        capacity: r.seen.iter().find(fills).map(|s| Span(s.at)),
        class_by_heuristic: None,
        capacity_by_heuristic: None,
        first_drop: r.drops.first().map(|(at, _)| Span(*at)),
        first_loss: first_loss(&r.seen, |s| (s.state, s.ssthresh, s.retransmitted)).map(|s| Span(s.at)),
        marks: (study.profile.ecn != EcnRule::Off).then(|| marks(r)),
        peak_inflight: r.seen.iter().map(|s| u64::from(s.inflight) * mss).max(),
        peak_queue_delay: Some(longest(&r.waits, None)),
        startup_queue_delay: Some(longest(&r.waits, left)),
        startup_lost: Some(
            r.drops.iter().filter(|(at, _)| left.is_none_or(|left| *at < left.0)).count() as u64
        ),
        lost: Some(r.drops.len() as u64),
        lost_by: Some(LostBy::count(causes(r))),
        links: Vec::new(),
        retransmitted: r.seen.last().map(|s| u64::from(s.retransmitted)),
        timeouts: Some(timeouts(r)),
        limits: Some(limits(r)),
        delivered: r.received,
        completed: r.completed.map(Span),
        milestones: r.milestones.map(|at| at.map(Span)),
        objects: objects(study, r),
        connections: Vec::new(),
        others: None,
        cost: Cost { packets: r.data, events: r.acks + r.arrived },
        closed: None,
        broken: None,
        caveats,
    };
    let row = Row::new(Identity::new("linux", study, contender, job.run, seed), &measured);
    let trace =
        Trace { samples: samples(r, sampling, mss, left), events: events(r), packets: packets(&r.packets) };
    Outcome { job, row, trace, measured }
}
