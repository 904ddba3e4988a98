//! qlog: QUIC's event logs, as one JSON text or as a sequence (RFC 7464, or a line an event), of any of its drafts.
//!
//! What an endpoint sends is its data; acknowledgements come in what it receives. An endpoint that mostly received says
//! little of the sender that filled the path, and the row says so. A log without packets, as ours of simulated TCP,
//! is read for what it says of its own slow start.

use crate::analysis::{Analysis, Findings, Setup, facts};
use crate::error::InputError;
use crate::infer::{Evidence, ExitEstimate, NoExit};
use crate::observer::Candidate;
use crate::samples::{self, Sample};
use crate::transfer::Transfer;
use serde_json::{Value, json};
use slowstart::units::{Bytes, Instant, Mark, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Sent, Signal};
use slowstart_lab::record::{EventRow, Sample as Recorded};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

/// A QUIC packet's payload where the log has none.
const DATAGRAM: u64 = 1200;
/// Ranges and packets beyond this are not believed.
const MOST: u64 = 1 << 40;

/// An event.
struct Event {
    at: Instant,
    name: String,
    data: Value,
}

/// The events of one trace.
#[derive(Default)]
struct Trace {
    title: String,
    events: Vec<Event>,
}

/// A number, or one written as text, as the first drafts do.
fn number(v: &Value) -> Option<f64> {
    let n = v.as_f64().or_else(|| v.as_str()?.parse().ok())?;
    (n.is_finite() && n >= 0.0).then_some(n)
}

fn integer(v: Option<&Value>) -> Option<u64> {
    number(v?).filter(|n| *n < MOST as f64).map(|n| n as u64)
}

fn millis(ms: f64) -> u64 {
    (ms * 1e6).min(9e18).round() as u64
}

impl Trace {
    fn add(&mut self, time: Option<f64>, unit: f64, name: String, data: Value) {
        if let Some(ms) = time {
            self.events.push(Event { at: Instant(millis(ms * unit)), name, data });
        }
    }

    /// An event, as an object with a name or as a list by fields.
    fn take(&mut self, event: &Value, fields: &[String], unit: f64) {
        let time = |v: &Value| ["time", "relative_time"].iter().find_map(|k| v.get(k)).and_then(number);
        if let Some(list) = event.as_array() {
            let get = |names: &[&str]| {
                fields.iter().position(|f| names.contains(&f.as_str())).and_then(|i| list.get(i))
            };
            let at = get(&["relative_time", "time", "delta_time"]).and_then(number);
            let word = |names: &[&str]| get(names).and_then(Value::as_str).unwrap_or_default().to_lowercase();
            let name = format!("{}:{}", word(&["category"]), word(&["event_type", "event", "type"]));
            let data = get(&["data"]).cloned().unwrap_or_default();
            self.add(at, unit, name, data);
        } else {
            let name = event.get("name").and_then(Value::as_str).unwrap_or_default();
            self.add(time(event), unit, name.to_lowercase(), event.get("data").cloned().unwrap_or_default());
        }
    }

    fn titled(v: &Value) -> Self {
        let word = |p: &str| v.pointer(p).and_then(Value::as_str).unwrap_or_default();
        let title = format!("{} {}", word("/vantage_point/name"), word("/vantage_point/type"));
        Self { title: title.trim().to_string(), events: Vec::new() }
    }
}

fn unit(trace: &Value) -> f64 {
    let us = trace.pointer("/configuration/time_units").and_then(Value::as_str) == Some("us");
    if us { 1e-3 } else { 1.0 }
}

fn traces(text: &str) -> Result<Vec<Trace>, InputError> {
    let mut all = Vec::new();
    let whole = text.trim_start_matches('\u{feff}').trim();
    if !whole.starts_with('\u{1e}')
        && let Ok(file) = serde_json::from_str::<Value>(whole)
    {
        let empty = Vec::new();
        for t in file.get("traces").and_then(Value::as_array).unwrap_or(&empty) {
            let words = |v: &Value| {
                let names = v.as_array()?.iter().filter_map(Value::as_str);
                Some(names.map(str::to_lowercase).collect::<Vec<_>>())
            };
            let fields = t.get("event_fields").and_then(words).unwrap_or_default();
            let mut trace = Trace::titled(t);
            for e in t.get("events").and_then(Value::as_array).unwrap_or(&empty) {
                trace.take(e, &fields, unit(t));
            }
            all.push(trace);
        }
        if all.iter().all(|t| t.events.is_empty()) {
            return Err(InputError::whole("found no trace with events, expected one"));
        }
        return Ok(all);
    }
    // A sequence: records apart by a separator, or by lines.
    let mut trace: Option<(Trace, f64)> = None;
    let mut line = 1;
    for record in text.split_inclusive(['\u{1e}', '\n']) {
        let here = line;
        line += u64::from(record.ends_with('\n'));
        let record = record.trim_matches(['\u{1e}', '\u{feff}', '\n', '\r', ' ']);
        if record.is_empty() {
            continue;
        }
        let parsed = serde_json::from_str::<Value>(record);
        let value = match (parsed, &trace) {
            (Ok(v), _) => v,
            // What is cut at its end is read as far as it goes.
            (Err(e), Some(_)) if e.is_eof() => break,
            (Err(e), _) => return Err(InputError::line(here, format!("found no valid JSON: {e}"))),
        };
        match &mut trace {
            None => {
                let head = value.get("trace").unwrap_or(&value);
                trace = Some((Trace::titled(head), unit(head)));
            }
            Some((t, unit)) => t.take(&value, &[], *unit),
        }
    }
    let found = trace.filter(|t| !t.0.events.is_empty());
    found.map(|t| vec![t.0]).ok_or_else(|| InputError::whole("found no event, expected one a record"))
}

/// A packet in flight.
struct PacketInFlight {
    sent: Sent,
}

/// An endpoint's packets, driven through an analysis.
struct Endpoint {
    f: Facts,
    analysis: Analysis,
    flying: BTreeMap<u64, PacketInFlight>,
    total: Bytes,
    largest: Bytes,
    acked: bool,
    lost: u64,
    packets: u64,
    told: Option<Result<ExitEstimate, NoExit>>,
    cwnd: Option<Bytes>,
    samples: Vec<Sample>,
}

/// Initial, handshake and retry packets have numbers of their own.
fn space(data: &Value) -> bool {
    let kind = data.pointer("/header/packet_type").or_else(|| data.get("packet_type"));
    let kind = kind.and_then(Value::as_str).unwrap_or("1rtt").to_lowercase();
    kind.contains("1rtt") || kind.contains("onertt") || kind.contains("one_rtt") || kind.contains("short")
}

impl Endpoint {
    fn sent(&mut self, data: &Value) {
        if !space(data) {
            return;
        }
        let Some(n) = integer(data.pointer("/header/packet_number")) else { return };
        let places = ["/raw/length", "/header/packet_size", "/packet_size", "/raw/payload_length"];
        let bytes = places.iter().find_map(|p| integer(data.pointer(p))).unwrap_or(DATAGRAM);
        // A packet of acknowledgements only is not in flight.
        let idle = |f: &Value| {
            let kind = f.get("frame_type").and_then(Value::as_str).unwrap_or_default().to_lowercase();
            kind == "ack" || kind == "padding" || kind == "connection_close"
        };
        if data
            .get("frames")
            .and_then(Value::as_array)
            .is_some_and(|all| !all.is_empty() && all.iter().all(idle))
        {
            return;
        }
        self.packets += 1;
        self.total += Bytes(bytes);
        self.largest = self.largest.max(Bytes(bytes));
        self.f.inflight += Bytes(bytes);
        self.f.next = Mark(n + 1);
        let sent = Sent {
            mark: Mark(n + 1),
            at: self.f.now,
            bytes: Bytes(bytes),
            sent_total: self.total,
            inflight: self.f.inflight,
            delivered: self.f.delivered,
            ..Sent::default()
        };
        self.flying.insert(n, PacketInFlight { sent });
        let short = bytes * 4 < self.f.mss.0 * 3;
        self.analysis.sent(&self.f, &sent, short);
    }

    fn received(&mut self, data: &Value) {
        if !space(data) {
            return;
        }
        let empty = Vec::new();
        for frame in data.get("frames").and_then(Value::as_array).unwrap_or(&empty) {
            if frame.get("frame_type").and_then(Value::as_str).is_some_and(|k| k.eq_ignore_ascii_case("ack"))
            {
                self.ack(frame.get("acked_ranges").and_then(Value::as_array).unwrap_or(&empty));
            }
        }
    }

    fn ack(&mut self, ranges: &[Value]) {
        let prior = self.f.inflight;
        let (mut bytes, mut newest) = (Bytes::ZERO, None::<(u64, Sent)>);
        for range in ranges {
            let first = integer(range.get(0));
            let last = integer(range.get(1)).or(first);
            let (Some(first), Some(last)) = (first, last) else { continue };
            if last < first {
                continue;
            }
            let numbers: Vec<u64> = self.flying.range(first..=last).map(|(n, _)| *n).collect();
            for n in numbers {
                let Some(p) = self.flying.remove(&n) else { continue };
                bytes += p.sent.bytes;
                if newest.as_ref().is_none_or(|w| w.0 < n) {
                    newest = Some((n, p.sent));
                }
            }
        }
        let Some((n, sent)) = newest else { return };
        self.acked = true;
        let rtt = Some(self.f.now.since(sent.at)).filter(|r| *r > Span::ZERO);
        if let Some(rtt) = rtt {
            self.f.min_rtt = Some(self.f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            self.f.srtt = Some(self.f.srtt.map_or(rtt, |s| s - s / 8 + rtt / 8));
        }
        self.f.inflight -= bytes;
        self.f.delivered += bytes;
        let ack = Ack {
            upto: Mark(n + 1),
            bytes,
            delivered: bytes,
            newly_lost: Bytes::ZERO,
            prior_inflight: prior,
            rtt,
            newest: sent,
            limit: Limit::Window,
        };
        self.analysis.ack(&self.f, &ack);
    }

    fn lost(&mut self, data: &Value) {
        let n = integer(data.pointer("/header/packet_number").or_else(|| data.get("packet_number")));
        let bytes = n.and_then(|n| self.flying.remove(&n)).map_or(self.f.mss, |p| p.sent.bytes);
        self.f.inflight -= bytes;
        self.f.lost += bytes;
        self.lost += 1;
        let c = Congestion {
            signal: Signal::Loss,
            first: self.lost == 1,
            lost: bytes,
            lost_ranges: 1,
            newest: Sent::default(),
        };
        self.analysis.loss(&self.f, &c);
    }

    fn metrics(&mut self, data: &Value) {
        let bytes = |names: &[&str]| names.iter().find_map(|n| integer(data.get(n))).map(Bytes);
        let span = |name: &str| data.get(name).and_then(number).map(|ms| Span(millis(ms)));
        let last = self.samples.last().copied().unwrap_or_default();
        self.cwnd = bytes(&["congestion_window", "cwnd"]).or(self.cwnd);
        let s = Sample {
            at: self.f.now,
            cwnd: self.cwnd.unwrap_or_default(),
            ssthresh: bytes(&["ssthresh"]).or(last.ssthresh),
            rtt: span("latest_rtt").or(last.rtt),
            min_rtt: span("min_rtt").or(last.min_rtt),
            delivered: bytes(&["delivered"]).or(last.delivered),
            retransmitted: self.lost,
        };
        if s.cwnd > Bytes::ZERO {
            self.samples.push(s);
        }
    }

    fn state(&mut self, data: &Value) {
        let word = |k: &str| data.get(k).and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let (old, new) = (word("old"), word("new"));
        let slow = |w: &str| w.contains("slow") || w.contains("startup");
        let left = self.told.is_some_and(|t| t.is_ok());
        if slow(&old) && !slow(&new) && !left {
            let cwnd = self.cwnd.unwrap_or_default();
            self.told = Some(Ok(ExitEstimate { at: self.f.now, cwnd, evidence: Evidence::Recorded }));
        } else if slow(&new) && (!left || word("trigger") == "spurious_loss") {
            // It is in slow start, and will say when it is not.
            self.told = Some(Err(NoExit::StillGrowing));
        }
    }
}

/// Reads a log: a row for each trace.
pub fn replay(
    text: &str,
    candidates: &Arc<[Candidate]>,
    snapshots: bool,
) -> Result<Vec<(Transfer, Option<Findings>)>, InputError> {
    let mut rows = Vec::new();
    for (i, trace) in traces(text)?.into_iter().enumerate() {
        let name = |e: &Event| e.name.rsplit(':').next().unwrap_or_default().to_string();
        let sizes = trace.events.iter().filter(|e| name(e) == "packet_sent" && space(&e.data));
        let size = |e: &Event| {
            ["/raw/length", "/header/packet_size"].iter().find_map(|p| integer(e.data.pointer(p)))
        };
        let mss = Bytes(sizes.filter_map(size).max().unwrap_or(DATAGRAM).clamp(1, 65_535));
        let setup = Setup {
            mss,
            iw: None,
            gated: true,
            handshake: Handshake::default(),
            snapshots,
            fork_states: false,
        };
        let mut e = Endpoint {
            f: facts(mss),
            analysis: Analysis::new(setup, candidates),
            flying: BTreeMap::new(),
            total: Bytes::ZERO,
            largest: Bytes::ZERO,
            acked: false,
            lost: 0,
            packets: 0,
            told: None,
            cwnd: None,
            samples: Vec::new(),
        };
        // A first time of zero is the log's begin; anything else is taken so.
        let begin = trace.events.iter().map(|e| e.at).min().unwrap_or_default();
        let far = begin.0 > 86_400_000_000_000;
        let begin = if far { begin } else { Instant::ZERO };
        let mut received = 0;
        for event in &trace.events {
            e.f.now = e.f.now.max(Instant(event.at.since(begin).0));
            match name(event).as_str() {
                "packet_sent" => e.sent(&event.data),
                "packet_received" => {
                    received += u64::from(space(&event.data));
                    e.received(&event.data);
                }
                "packet_lost" => e.lost(&event.data),
                "metrics_updated" | "metric_update" => e.metrics(&event.data),
                "congestion_state_updated" => e.state(&event.data),
                _ => {}
            }
        }
        let number = i as u64 + 1;
        let mut row = if e.acked {
            let findings = e.analysis.finish(e.told);
            let mut row = Transfer::new("qlog", number, mss).with(&findings);
            row.packets = e.packets;
            row.retransmitted_packets = e.lost;
            if received > e.packets * 2 {
                row.caveats
                    .push("this end mostly received: its own few packets say little of the path".to_string());
            }
            (row, Some(findings))
        } else {
            let mut row = samples::transfer("qlog", number, mss, &e.samples);
            if let Some(told) = e.told {
                row.observe(told);
            }
            (row, None)
        };
        row.0.from.clone_from(&trace.title);
        rows.push(row);
    }
    Ok(rows)
}

/// Writes a simulated run's window as a sequence of qlog events (main schema draft 0.4): metrics with each sample, and
/// each change of the congestion state. Times are in milliseconds from the run's begin, to the nanosecond.
pub fn write(out: &mut impl Write, title: &str, samples: &[Recorded], events: &[EventRow]) -> io::Result<()> {
    let mut record = |v: &Value| writeln!(out, "\u{1e}{v}");
    record(&json!({
        "qlog_version": "0.4", "qlog_format": "JSON-SEQ", "title": title,
        "trace": {
            "vantage_point": { "name": title, "type": "server" },
            "common_fields": { "time_format": "relative", "reference_time": 0 },
        },
    }))?;
    record(
        &json!({ "time": 0, "name": "recovery:congestion_state_updated", "data": { "new": "slow_start" } }),
    )?;
    let ms = |s: f64| s * 1e3;
    let mut samples = samples.iter().peekable();
    let mut metrics = |until: f64, record: &mut dyn FnMut(&Value) -> io::Result<()>| -> io::Result<()> {
        while let Some(s) = samples.next_if(|s| s.time_s <= until) {
            let mut data = json!({ "congestion_window": s.cwnd_bytes, "bytes_in_flight": s.inflight_bytes });
            if let Some(t) = s.ssthresh_bytes {
                data["ssthresh"] = t.into();
            }
            if let Some(rtt) = s.rtt_s {
                data["latest_rtt"] = ms(rtt).into();
            }
            record(&json!({ "time": ms(s.time_s), "name": "recovery:metrics_updated", "data": data }))?;
        }
        Ok(())
    };
    for e in events {
        let (old, new, trigger) = match e.what {
            "exit" => ("slow_start", "congestion_avoidance", e.why.clone().unwrap_or_default()),
            "resumed" => ("recovery", "slow_start", "spurious_loss".to_string()),
            "loss" => ("congestion_avoidance", "recovery", "loss".to_string()),
            "recovered" | "undone" => ("recovery", "congestion_avoidance", e.what.to_string()),
            _ => continue,
        };
        // The window as it was before.
        metrics(e.time_s.next_down(), &mut record)?;
        let data = json!({ "old": old, "new": new, "trigger": trigger });
        record(&json!({ "time": ms(e.time_s), "name": "recovery:congestion_state_updated", "data": data }))?;
    }
    metrics(f64::INFINITY, &mut record)
}
