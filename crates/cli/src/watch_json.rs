//! What `slowstart kernel watch --json` writes: an object a line, with the keys that `slowstart replay` reads as events of
//! the kernel.
//!
//! A control of ours tells of its connections itself: when they begin, lose, time out, leave and end, and with `--acks`
//! of each ACK. Of the others the kernel's tracepoints tell: samples, the end of the startup, the end.

use crate::watch::phase;
use serde::Serialize;
use slowstart::units::Span;
use slowstart_linux::{Facts, Flow, Told};
use std::net::IpAddr;

/// A threshold from here on is arbitrarily high.
const INFINITE: u32 = 0x7fff_ffff;

/// A line. Windows are in segments, before the event where it changes them.
#[derive(Serialize)]
struct Line<'a> {
    sk: String,
    now_ns: u64,
    kind: &'a str,
    control: &'a str,
    daddr: IpAddr,
    dport: u16,
    sport: u16,
    mss: u32,
    cwnd: u32,
    ssthresh: Option<u32>,
    cwnd_after: u32,
    inflight: u32,
    acked_bytes: u64,
    next: u64,
    sent_bytes: u64,
    /// Bytes a second.
    pacing_rate: u64,
    srtt_us: u32,
    min_rtt_us: u32,
    retransmitted: u32,
    /// The startup is not over, before.
    asked: bool,
    why: &'a str,
    #[serde(flatten)]
    ack: Option<Acked>,
    #[serde(flatten)]
    seen: Option<Seen<'a>>,
}

/// What only a control of ours tells.
#[derive(Serialize)]
struct Acked {
    iw: u32,
    acked: u32,
    rtt_us: u32,
    limited: bool,
    ssthresh_after: Option<u32>,
}

/// What only the tracepoints tell.
#[derive(Serialize)]
struct Seen<'a> {
    phase: &'a str,
    timeouts: u32,
    /// When the startup ended, in seconds from when the connection was first seen, and its window then.
    exit_s: Option<f64>,
    exit_cwnd: Option<u32>,
}

fn finite(ssthresh: u32) -> Option<u32> {
    (ssthresh < INFINITE).then_some(ssthresh)
}

fn written(line: &Line<'_>) -> String {
    serde_json::to_string(line).unwrap_or_default()
}

/// What a control of ours told.
pub(crate) fn told(control: &str, f: &Facts) -> String {
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
        ack: Some(Acked {
            iw: f.iw,
            acked: f.acked,
            rtt_us: f.rtt_us,
            limited: f.limited,
            ssthresh_after: finite(f.ssthresh_after),
        }),
        seen: None,
    })
}

/// What the tracepoints show; `begins` if it is the first of its connection.
pub(crate) fn shown(f: &Flow, why: &str, begins: bool) -> String {
    let kind = match f.told {
        _ if begins => "begin",
        Told::Sample => "sample",
        Told::Exit => "exit",
        Told::Closed => "end",
    };
    let exits = f.told == Told::Exit && !begins;
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
        asked: exits || f.why == Some(slowstart_linux::Why::No),
        why: if exits { why } else { "none" },
        ack: None,
        seen: Some(Seen {
            phase: phase(f),
            timeouts: f.timeouts,
            exit_s: over.then(|| Span(f.exit_ns.saturating_sub(f.begun_ns)).as_secs_f64()),
            exit_cwnd: over.then_some(f.exit_cwnd),
        }),
    })
}
