//! The output of `slowstart kernel watch --json`: one JSON object per line, with the keys that
//! `slowstart replay` reads as events of the kernel.
//!
//! A control of this project reports the events of its connections itself: begin, loss, timeout, exit, end,
//! and with `--acks` each ACK. For other controls the records come from the kernel's tracepoints: samples,
//! exit, end.

use crate::watch_state::phase;
use serde::Serialize;
use slowstart::units::Span;
use slowstart_linux::{Facts, Flow, RecordKind};
use std::net::IpAddr;

/// An ssthresh of this value or more is infinite.
const INFINITE: u32 = 0x7fff_ffff;

/// One line. Windows are in segments; where the event changes them, before the event.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct Line<'a> {
    /// The connection: its socket, hexadecimal. Another connection may have it later.
    sk: String,
    /// The time, in nanoseconds of the monotonic clock.
    now_ns: u64,
    /// What happened: `begin`, `ack`, `loss`, `timeout`, `exit`, `end` and others, or `sample`.
    kind: &'a str,
    /// The congestion control of the connection.
    control: &'a str,
    /// The address of the peer.
    #[cfg_attr(test, schemars(with = "String"))]
    daddr: IpAddr,
    /// The port of the peer.
    dport: u16,
    /// The local port.
    sport: u16,
    /// Bytes of a segment.
    mss: u32,
    /// cwnd, in segments.
    cwnd: u32,
    /// ssthresh, in segments; null if it is infinite.
    ssthresh: Option<u32>,
    /// cwnd after the event, in segments.
    cwnd_after: u32,
    /// Segments in flight.
    inflight: u32,
    /// Bytes acknowledged since the connection began.
    acked_bytes: u64,
    /// Bytes that were sent once, since the connection began.
    next: u64,
    /// Bytes that were sent, with those sent again.
    sent_bytes: u64,
    /// Bytes per second.
    pacing_rate: u64,
    /// SRTT, in microseconds.
    srtt_us: u32,
    /// The least RTT, in microseconds.
    min_rtt_us: u32,
    /// Segments that were sent again.
    retransmitted: u32,
    /// True if the startup had not ended before the event.
    asked: bool,
    /// The reason of the exit; `none` if the event ends no startup.
    why: &'a str,
    #[serde(flatten)]
    ack: Option<ControlFields>,
    #[serde(flatten)]
    tracepoint: Option<TracepointFields<'a>>,
}

/// Fields that only a control of this project reports.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct ControlFields {
    /// The initial window, in segments.
    iw: u32,
    /// Segments that the event acknowledged.
    acked: u32,
    /// The RTT sample of the event, in microseconds; 0 without one.
    rtt_us: u32,
    /// True if cwnd limited the sender.
    limited: bool,
    /// ssthresh after the event, in segments; null if it is infinite.
    ssthresh_after: Option<u32>,
}

/// Fields that only the tracepoints report.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct TracepointFields<'a> {
    /// The phase that the kernel's state shows.
    phase: &'a str,
    /// Timeouts so far.
    timeouts: u32,
    /// Time of the exit, in seconds since the connection was first seen, and cwnd then, in segments.
    exit_s: Option<f64>,
    exit_cwnd: Option<u32>,
}

fn finite(ssthresh: u32) -> Option<u32> {
    (ssthresh < INFINITE).then_some(ssthresh)
}

fn written(line: &Line<'_>) -> String {
    serde_json::to_string(line).unwrap_or_default()
}

/// Formats an event of a control of this project.
pub(crate) fn control_event(control: &str, f: &Facts) -> String {
    written(&Line {
        sk: format!("{:x}", f.sk),
        now_ns: f.now_ns,
        kind: f.kind.name(),
        control,
        daddr: f.peer,
        dport: f.dport,
        sport: f.sport,
        mss: f.mss,
        cwnd: f.cwnd,
        ssthresh: finite(f.ssthresh),
        cwnd_after: f.cwnd_after,
        inflight: f.inflight,
        acked_bytes: f.acked_bytes,
        next: f.next,
        sent_bytes: f.sent_bytes,
        pacing_rate: f.pacing_rate,
        srtt_us: f.srtt_us,
        min_rtt_us: f.min_rtt_us,
        retransmitted: f.retransmitted,
        asked: f.asked,
        why: f.why.name(),
        ack: Some(ControlFields {
            iw: f.iw,
            acked: f.acked,
            rtt_us: f.rtt_us,
            limited: f.limited,
            ssthresh_after: finite(f.ssthresh_after),
        }),
        tracepoint: None,
    })
}

/// Formats a record of the tracepoints; `begins` is true for the first one of a connection.
pub(crate) fn tracepoint_record(f: &Flow, why: &str, begins: bool) -> String {
    let kind = match f.kind {
        _ if begins => "begin",
        RecordKind::Sample => "sample",
        RecordKind::Exit => "exit",
        RecordKind::Closed => "end",
    };
    let exits = f.kind == RecordKind::Exit && !begins;
    let over = f.exit_ns > 0;
    written(&Line {
        sk: format!("{:x}", f.sk),
        now_ns: f.now_ns,
        kind,
        control: &f.control,
        daddr: f.peer,
        dport: f.dport,
        sport: f.sport,
        mss: f.mss,
        cwnd: if exits { f.exit_cwnd } else { f.cwnd },
        ssthresh: finite(f.ssthresh),
        cwnd_after: f.cwnd,
        inflight: f.inflight,
        acked_bytes: f.acked_bytes,
        next: f.next,
        sent_bytes: f.sent_bytes,
        pacing_rate: f.pacing_rate,
        srtt_us: f.srtt_us,
        min_rtt_us: f.min_rtt_us,
        retransmitted: f.retransmitted,
        asked: exits || f.why == Some(slowstart_linux::ExitReason::None),
        why: if exits { why } else { "none" },
        ack: None,
        tracepoint: Some(TracepointFields {
            phase: phase(f),
            timeouts: f.timeouts,
            exit_s: over.then(|| Span(f.exit_ns.saturating_sub(f.begun_ns)).as_secs_f64()),
            exit_cwnd: over.then_some(f.exit_cwnd),
        }),
    })
}

#[cfg(test)]
#[path = "../tests/conform/mod.rs"]
mod conform;

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_linux::{ExitReason, Kind};
    use slowstart_replay::analysis::{Findings, Keep};
    use slowstart_replay::events::replay;
    use slowstart_replay::observer::Candidate;
    use slowstart_replay::transfer::Transfer;
    use slowstart_study::schema as schemas;
    use std::path::Path;

    const PEER: &str = "2001:db8::7";

    /// An event of a connection that doubles cwnd each 50 ms and leaves startup at 160 segments.
    fn event(kind: Kind, ms: u64, acked: u32, cwnd: u32, why: ExitReason) -> Facts {
        let acked_bytes = u64::from(acked) * 1000;
        Facts {
            sk: 0xffff_8881_0203_0400,
            now_ns: 7_000_000_000 + ms * 1_000_000,
            acked_bytes,
            sent_bytes: acked_bytes + u64::from(cwnd) * 1000,
            next: acked_bytes + u64::from(cwnd) * 1000,
            pacing_rate: 0,
            queue_used: 0,
            queue_limit: 0,
            unsent: 0,
            newest_us: 0,
            sent_since: 0,
            acked_since: 0,
            memory_cwnd: 0,
            memory_rate: 0,
            memory_rtt_us: 0,
            rwnd: 65_536,
            lost: 0,
            prior: cwnd,
            kind,
            mss: 1000,
            cwnd,
            ssthresh: INFINITE,
            inflight: cwnd,
            acked: cwnd,
            rtt_us: 50_000,
            srtt_us: 50_000,
            min_rtt_us: 50_000,
            iw: 10,
            delivered: acked,
            retransmitted: 0,
            gso_max: 65_536,
            peer: PEER.parse().expect("an address"),
            sport: 443,
            dport: 5000,
            paced: false,
            asked: true,
            limited: true,
            no_data_sent: false,
            undo_marker: false,
            cut: false,
            newest_delivered: 0,
            newest_inflight: 0,
            newest_lost: 0,
            newest_limited: false,
            interval_us: 0,
            why,
            set: 0,
            threshold: 0,
            cwnd_after: cwnd * 2,
            ssthresh_after: INFINITE,
            earned: u64::from(cwnd) * 1000,
            pace: 0,
        }
    }

    fn candidates() -> Vec<Candidate> {
        let all = slowstart::startup::REGISTRY.iter().filter(|e| e.name == "standard");
        all.map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect()
    }

    /// Rows of lines that conform to the schema.
    fn rows(text: &str) -> Vec<(Transfer, Option<Findings>)> {
        conform::conform(text, &schema());
        let mut rows = Vec::new();
        replay(text.as_bytes(), &candidates().into(), Keep::default(), |t, f| rows.push((t, f)))
            .expect("events");
        rows
    }

    /// The schema, which is that of the types.
    fn schema() -> String {
        let schema = schemas::text::<Line<'_>>("watch", &[]);
        schemas::hold(&schema, &Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/watch.json"));
        schema
    }

    #[test]
    fn replay_reads_what_is_written() {
        let mut events = vec![event(Kind::Begin, 0, 0, 10, ExitReason::None)];
        for n in 0..=4_u32 {
            let why = if n == 4 { ExitReason::RateFlat } else { ExitReason::None };
            events.push(event(Kind::Ack, u64::from(n + 1) * 50, 10 * ((2 << n) - 1), 10 << n, why));
        }
        events.push(event(Kind::End, 300, 630, 160, ExitReason::None));
        let text: Vec<String> = events.iter().map(|f| control_event("ss_search", f)).collect();
        assert!(
            text[0].starts_with("{\"sk\":\"ffff888102030400\",\"now_ns\":7000000000,\"kind\":\"begin\",")
        );
        let rows = rows(&text.join("\n"));
        let [(row, Some(findings))] = &rows[..] else { panic!("{} rows", rows.len()) };
        assert_eq!((row.from.as_str(), row.to.as_str()), (":443", "2001:db8::7:5000"));
        let exit = row.exit.as_ref().expect("it left");
        assert_eq!((exit.cwnd_bytes, row.packets), (160_000, Some(5)));
        assert!((exit.time_s - 0.25).abs() < 1e-9, "{}", exit.time_s);
        assert_eq!(findings.startups.len(), 1, "each ACK was reported, so startups can be replayed");
    }

    #[test]
    fn replay_reads_records_of_tracepoints() {
        let flow = |kind, ms: u64, why, cwnd| Flow {
            sk: 7,
            now_ns: 1_000_000_000 + ms * 1_000_000,
            acked_bytes: ms * 1000,
            next: ms * 1000 + 5000,
            sent_bytes: ms * 1000 + 5000,
            pacing_rate: 0,
            kind,
            why: Some(why),
            cwnd,
            ssthresh: if why == ExitReason::None { INFINITE } else { cwnd },
            inflight: 5,
            mss: 1000,
            srtt_us: 50_000,
            min_rtt_us: 50_000,
            retransmitted: 3,
            state: 0,
            timeouts: 0,
            exit_cwnd: if why == ExitReason::None { 0 } else { 90 },
            exit_ns: if why == ExitReason::None { 0 } else { 1_200_000_000 },
            begun_ns: 1_000_000_000,
            sport: 443,
            dport: 5000,
            peer: PEER.parse().expect("an address"),
            control: "cubic".to_string(),
        };
        let first = flow(RecordKind::Sample, 0, ExitReason::None, 10);
        let text = [
            tracepoint_record(&first, "none", true),
            tracepoint_record(&first, "-", false),
            tracepoint_record(&flow(RecordKind::Exit, 200, ExitReason::Loss, 63), "loss", false),
            tracepoint_record(&flow(RecordKind::Closed, 900, ExitReason::Loss, 80), "loss", false),
        ];
        let rows = rows(&text.join("\n"));
        assert_eq!(rows.len(), 1);
        let row = &rows[0].0;
        let exit = row.exit.as_ref().expect("it left");
        assert_eq!((exit.cwnd_bytes, row.retransmitted_packets), (90_000, Some(3)));
        assert!((exit.time_s - 0.2).abs() < 1e-9 && (row.duration_s - 0.9).abs() < 1e-9);
    }
}
