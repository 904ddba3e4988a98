//! qlog: event logs of QUIC, as one JSON text or as a sequence (RFC 7464, or one event per line), of all
//! drafts.
//!
//! An endpoint's data is what it sends; acknowledgements are in what it receives. An endpoint that mostly
//! received shows little of the sender that filled the path, and its row says so. A log without packets, such
//! as ours of simulated TCP, gives the exit that it states.

mod read;
mod write;

pub(crate) use self::read::{Acked, Event, Slow, Trace, What};
use self::read::{Metrics, nanos};
use crate::analysis::{Analysis, Findings, Keep, Setup, facts};
use crate::error::InputError;
use crate::infer::{Evidence, ExitEstimate, NoExit};
use crate::observer::Candidate;
use crate::samples::{self, Sample};
use crate::transfer::{Source, Transfer};
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Sent, Signal};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;
pub use write::write;

/// Payload of a QUIC packet if the log does not state it.
const DATAGRAM: u64 = 1200;

/// An endpoint: drives an analysis with its packets.
struct Endpoint {
    f: Facts,
    analysis: Analysis,
    flying: BTreeMap<u64, Sent>,
    total: Bytes,
    acked: bool,
    lost: u64,
    /// True if the log has losses.
    counts_losses: bool,
    packets: u64,
    exit: Option<Result<ExitEstimate, NoExit>>,
    /// The last state that says whether it is in slow start.
    slow: Option<Slow>,
    cwnd: Option<Bytes>,
    samples: Vec<Sample>,
}

impl Endpoint {
    fn sent(&mut self, number: u64, bytes: u64) {
        self.packets += 1;
        self.total += Bytes(bytes);
        self.f.inflight += Bytes(bytes);
        self.f.next = SendOrder::new(number + 1);
        let sent = Sent {
            mark: self.f.next,
            at: self.f.now,
            bytes: Bytes(bytes),
            sent_total: self.total,
            inflight: self.f.inflight,
            delivered: self.f.delivered,
            ..Sent::default()
        };
        self.flying.insert(number, sent);
        let short = bytes * 4 < self.f.mss.0 * 3;
        if let Some(log) = self.analysis.packets() {
            log.sent(&sent, number + 1);
        }
        self.analysis.sent(&self.f, &sent, short);
    }

    fn ack(&mut self, ranges: impl Iterator<Item = (u64, u64)>) {
        let prior = self.f.inflight;
        let (mut bytes, mut newest) = (Bytes::ZERO, None::<(u64, Sent)>);
        for (first, last) in ranges {
            while let Some((&n, _)) = self.flying.range(first..=last).next() {
                let Some(sent) = self.flying.remove(&n) else { break };
                bytes += sent.bytes;
                if newest.as_ref().is_none_or(|w| w.0 < n) {
                    newest = Some((n, sent));
                }
            }
        }
        let Some((_, sent)) = newest else { return };
        self.acked = true;
        let rtt = Some(self.f.now.since(sent.at)).filter(|r| *r > Span::ZERO);
        if let Some(rtt) = rtt {
            self.f.min_rtt = Some(self.f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            self.f.srtt = Some(self.f.srtt.map_or(rtt, |s| s - s / 8 + rtt / 8));
        }
        self.f.inflight -= bytes;
        self.f.delivered += bytes;
        let mut ack = Ack::new(sent, bytes, prior);
        ack.rtt = rtt;
        self.analysis.ack(&self.f, &ack);
    }

    fn lost(&mut self, number: Option<u64>) {
        let bytes = number.and_then(|n| self.flying.remove(&n)).map_or(self.f.mss, |s| s.bytes);
        if let (Some(n), Some(log)) = (number, self.analysis.packets()) {
            log.lost(n, n + 1);
        }
        self.f.inflight -= bytes;
        self.f.lost += bytes;
        self.lost += 1;
        let c = Congestion::new(Signal::Loss, self.lost == 1, Sent::default()).losing(bytes, 1);
        self.analysis.loss(&self.f, &c);
    }

    /// Metrics were updated; `unit` is the number of milliseconds in their unit of time.
    fn metrics(&mut self, m: &Metrics, unit: f64) {
        let span = |t: Option<f64>| t.map(|t| Span(nanos(t * unit)));
        let last = self.samples.last().copied().unwrap_or_default();
        self.cwnd = m.cwnd.map(Bytes).or(self.cwnd);
        let s = Sample {
            at: self.f.now,
            cwnd: self.cwnd.unwrap_or_default(),
            ssthresh: m.ssthresh.map(Bytes).or(last.ssthresh),
            rtt: span(m.latest_rtt).or(last.rtt),
            min_rtt: span(m.min_rtt).or(last.min_rtt),
            delivered: m.delivered.map(Bytes).or(last.delivered),
            retransmitted: self.counts_losses.then_some(self.lost),
            ..Sample::default()
        };
        if s.cwnd > Bytes::ZERO {
            self.samples.push(s);
        }
    }

    fn state(&mut self, old: Option<Slow>, new: Option<Slow>, spurious: bool) {
        let Some(new) = new else { return };
        let old = old.or(self.slow);
        self.slow = Some(new);
        let left = self.exit.is_some_and(|t| t.is_ok());
        if (old, new, left) == (Some(Slow::Yes), Slow::No, false) {
            let cwnd = self.cwnd.unwrap_or_default();
            self.exit = Some(Ok(ExitEstimate { at: self.f.now, cwnd, evidence: Evidence::Recorded }));
        } else if new == Slow::Yes && (!left || spurious) {
            // It is in slow start, and the log will state its end.
            self.exit = Some(Err(NoExit::StillGrowing));
        }
    }
}

/// Bytes of IPv4 and UDP headers.
const IP_AND_UDP: u32 = 28;

/// Reads a log: `each` gets a row for each trace. The rows are those of the part before the first error.
pub fn replay(
    input: impl Read,
    candidates: &Arc<[Candidate]>,
    keep: Keep,
    mut each: impl FnMut(Transfer, Option<Findings>),
) -> Result<(), InputError> {
    let (log, done) = read::read(input);
    if log.traces.iter().all(|t| t.events.is_empty()) {
        done?;
        return Err(InputError::whole("found no trace with events, expected one"));
    }
    let mut number = 0;
    for trace in log.traces {
        rows(Source::Qlog, &mut number, &trace, candidates, keep, &mut each);
    }
    done
}

/// The most paths of a connection that have rows.
const PATHS: usize = 64;

/// Gives a row for a trace, or one for each path of a multipath connection, which has packet numbers and a
/// window of its own.
pub(crate) fn rows(
    source: Source,
    number: &mut u64,
    trace: &Trace,
    candidates: &Arc<[Candidate]>,
    keep: Keep,
    each: &mut impl FnMut(Transfer, Option<Findings>),
) {
    let mut paths = BTreeSet::new();
    for e in trace.events.iter().filter(|e| matches!(e.what, What::Sent { .. })) {
        if paths.len() < PATHS {
            paths.insert(e.path);
        }
    }
    let all: Vec<Option<u32>> =
        if paths.len() > 1 { paths.into_iter().map(Some).collect() } else { vec![None] };
    for path in all {
        *number += 1;
        let (row, findings) = analyse(source, trace, path, *number, candidates, keep);
        each(row, findings);
    }
}

/// The row of a trace, or of one of its paths.
fn analyse(
    source: Source,
    trace: &Trace,
    path: Option<u32>,
    number: u64,
    candidates: &Arc<[Candidate]>,
    keep: Keep,
) -> (Transfer, Option<Findings>) {
    let is_of = |of: u32| path.is_none_or(|path| path == of);
    let size = |e: &Event| match e.what {
        What::Sent { bytes, .. } if is_of(e.path) => bytes,
        _ => None,
    };
    let mss = Bytes(trace.events.iter().filter_map(size).max().unwrap_or(DATAGRAM).clamp(1, 65_535));
    let setup = Setup { mss, iw: None, gated: true, handshake: Handshake::default(), keep };
    let mut e = Endpoint {
        f: facts(mss),
        analysis: Analysis::new(setup, candidates),
        flying: BTreeMap::new(),
        total: Bytes::ZERO,
        acked: false,
        lost: 0,
        counts_losses: trace.events.iter().any(|e| matches!(e.what, What::Lost { .. })),
        packets: 0,
        exit: None,
        slow: None,
        cwnd: None,
        samples: Vec::new(),
    };
    if let Some(log) = e.analysis.packets() {
        // A packet's size in a qlog is that of its UDP payload.
        log.headers = IP_AND_UDP;
    }
    let at = |time: f64| Instant(nanos(time * trace.unit));
    // Times of more than a day are absolute: they count from the first event.
    let begin = trace.events.iter().map(|e| at(e.time)).min().unwrap_or_default();
    let begin = if begin.0 > 86_400_000_000_000 { begin } else { Instant::ZERO };
    let mut received = 0;
    for event in &trace.events {
        e.f.now = e.f.now.max(Instant(at(event.time).since(begin).0));
        // ACKs of a path may come on another one.
        if !is_of(event.path) && !matches!(event.what, What::Received { .. }) {
            continue;
        }
        match &event.what {
            What::Sent { number, bytes, in_flight: true } => e.sent(*number, bytes.unwrap_or(DATAGRAM)),
            What::Sent { .. } => {}
            What::Received { acked } => {
                received += u64::from(is_of(event.path));
                e.ack(acked.iter().filter(|a| is_of(a.0)).map(|a| (a.1, a.2)));
            }
            What::Lost { number } => e.lost(*number),
            What::Metrics(m) => e.metrics(m, trace.unit),
            What::State { old, new, spurious } => e.state(*old, *new, *spurious),
        }
    }
    let mut row = if e.acked {
        let mut findings = e.analysis.finish(e.exit);
        findings.window_fell = e.samples.windows(2).find(|s| s[1].cwnd < s[0].cwnd).map(|s| s[1].at);
        let mut row = Transfer::new(source, number, mss).with(&findings);
        if let Some(named) = &findings.named {
            row.name(named, true);
        }
        row.packets = Some(e.packets);
        row.retransmitted_packets = Some(e.lost);
        if received > e.packets * 2 {
            row.caveats
                .push("this end mostly received: its own few packets show little of the path".to_string());
        }
        (row, Some(findings))
    } else {
        let mut row = samples::transfer(source, number, mss, &e.samples);
        row.packets = Some(e.packets).filter(|n| *n > 0);
        if row.packets.is_some() {
            row.caveats.push("the log has no ACKs: what was delivered is not known".to_string());
        }
        if let Some(exit) = e.exit {
            row.observe(exit, row.class);
        }
        (row, None)
    };
    row.0.from.clone_from(&trace.title);
    row.0.congestion_control.clone_from(&trace.control);
    if let Some(path) = path {
        row.0.from = format!("{} path {path}", trace.title).trim().to_string();
        row.0.caveats.push("a path of a multipath connection: each has a window of its own".to_string());
    }
    row
}
