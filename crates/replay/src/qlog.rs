//! qlog: event logs of QUIC, as one JSON text or as a sequence (RFC 7464, or one event per line), of all drafts.
//!
//! An endpoint's data is what it sends; acknowledgements are in what it receives. An endpoint that mostly received shows
//! little of the sender that filled the path, and its row says so. A log without packets, such as ours of simulated TCP,
//! gives the exit that it states. A text is read as a stream into compact events, of which at most
//! [`MOST_HELD`] bytes are held.

use crate::analysis::{Analysis, Findings, Setup, facts};
use crate::error::InputError;
use crate::infer::{Evidence, ExitEstimate, NoExit};
use crate::limits::{
    BoundedVec, LONGEST, Lines, MOST_HELD, Number, Object, Tokens, Word, default_for, too_much,
};
use crate::observer::Candidate;
use crate::samples::{self, Sample};
use crate::transfer::Transfer;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};
use slowstart::units::{Bytes, Instant, Mark, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Sent, Signal};
use slowstart_lab::record::{EventRow, Sample as RowSample};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::sync::Arc;

/// Payload of a QUIC packet if the log does not state it.
const DATAGRAM: u64 = 1200;
/// Maximum packet number and size that is plausible.
const MOST: u64 = 1 << 40;

/// What an event says, as far as it is used.
#[derive(Clone, Debug)]
enum What {
    /// A data packet was sent; acknowledgements alone are not in flight.
    Sent {
        number: u64,
        bytes: Option<u64>,
        in_flight: bool,
    },
    /// A packet was received, with the ranges that it acknowledges.
    Received {
        acked: Box<[(u64, u64)]>,
    },
    Lost {
        number: Option<u64>,
    },
    /// Metrics; times in the trace's unit.
    Metrics(Box<Metrics>),
    State {
        old: Slow,
        new: Slow,
        spurious: bool,
    },
}

/// Whether a congestion state is slow start.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Slow {
    Yes,
    No,
}

#[derive(Copy, Clone, Debug, Default)]
struct Metrics {
    cwnd: Option<u64>,
    ssthresh: Option<u64>,
    latest_rtt: Option<f64>,
    min_rtt: Option<f64>,
    delivered: Option<u64>,
}

/// An event; its time is in the trace's unit.
#[derive(Clone, Debug)]
struct Event {
    time: f64,
    what: What,
}

/// One trace of a log.
#[derive(Default)]
struct Trace {
    title: String,
    /// Milliseconds in a unit of time.
    unit: f64,
    /// Times are differences to the event before.
    delta: bool,
    /// Names of the columns of events that are arrays (the first drafts).
    fields: Vec<String>,
    events: Vec<Event>,
    /// The time of the newest event, for differences.
    now: f64,
}

/// The traces of a log while it is read.
#[derive(Default)]
struct Log {
    traces: Vec<Trace>,
    /// Bytes of all events.
    held: usize,
}

fn nanos(ms: f64) -> u64 {
    (ms * 1e6).min(9e18).round() as u64
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    #[serde(rename = "packet_type")]
    kind: Word,
    #[serde(rename = "packet_number")]
    number: Number,
    #[serde(rename = "packet_size")]
    size: Number,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Raw {
    length: Number,
    payload_length: Number,
}

/// The data of an event of any kind: what kind it is may come later in the text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    header: Object<Header>,
    raw: Object<Raw>,
    packet_type: Word,
    packet_number: Number,
    packet_size: Number,
    frames: Frames,
    congestion_window: Number,
    cwnd: Number,
    ssthresh: Number,
    latest_rtt: Number,
    min_rtt: Number,
    delivered: Number,
    old: Word,
    new: Word,
    trigger: Word,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Frame {
    frame_type: Word,
    acked_ranges: Ranges,
}

/// The frames of a packet.
#[derive(Default)]
struct Frames {
    /// True if there is a frame that is neither ACK, PADDING nor `CONNECTION_CLOSE`, or the log has no frames.
    in_flight: Option<bool>,
    acked: Vec<(u64, u64)>,
}

/// Ranges of packet numbers, each as one or two numbers.
#[derive(Default)]
struct Ranges(Vec<(u64, u64)>);

/// Ranges and frames of one event may take this many bytes.
const MOST_RANGES: usize = LONGEST;

impl<'de> Deserialize<'de> for Ranges {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Ranges;
            default_for!(scalars);
            default_for!(objects);
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("ranges of packet numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Ranges, A::Error> {
                let mut all = Vec::new();
                while let Some(Range(range)) = seq.next_element()? {
                    all.extend(range);
                    if all.len() * size_of::<(u64, u64)>() > MOST_RANGES {
                        return Err(A::Error::custom(too_much("ranges")));
                    }
                }
                Ok(Ranges(all))
            }
        }
        d.deserialize_any(All)
    }
}

#[derive(Default)]
struct Range(Option<(u64, u64)>);

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Range;
            default_for!(scalars);
            default_for!(objects);
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of one or two packet numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Range, A::Error> {
                let first = seq.next_element::<Number>()?.and_then(|n| n.below(MOST));
                let last = seq.next_element::<Number>()?.and_then(|n| n.below(MOST)).or(first);
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Range(first.zip(last).filter(|(first, last)| first <= last)))
            }
        }
        d.deserialize_any(One)
    }
}

impl<'de> Deserialize<'de> for Frames {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Frames;
            default_for!(scalars);
            default_for!(objects);
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of frames")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Frames, A::Error> {
                let mut all = Frames::default();
                while let Some(frame) = seq.next_element::<Object<Frame>>()? {
                    let Frame { frame_type, acked_ranges } = frame.0;
                    let kind = frame_type.0.to_lowercase();
                    let idle = matches!(kind.as_str(), "ack" | "padding" | "connection_close");
                    all.in_flight = Some(all.in_flight.unwrap_or(false) || !idle);
                    if kind == "ack" {
                        all.acked.extend(acked_ranges.0);
                    }
                    if all.acked.len() * size_of::<(u64, u64)>() > MOST_RANGES {
                        return Err(A::Error::custom(too_much("ranges")));
                    }
                }
                Ok(all)
            }
        }
        d.deserialize_any(All)
    }
}

impl Data {
    /// True for packets with application data: the others have packet numbers of their own.
    fn is_application(&self) -> bool {
        let kind = format!("{}{}", self.header.0.kind.0, self.packet_type.0).to_lowercase();
        kind.is_empty() || ["1rtt", "onertt", "one_rtt", "short"].iter().any(|k| kind.contains(k))
    }

    fn number(&self) -> Option<u64> {
        self.header.0.number.below(MOST).or(self.packet_number.below(MOST))
    }

    fn bytes(&self) -> Option<u64> {
        let (header, raw) = (&self.header.0, &self.raw.0);
        let sizes = [raw.length, header.size, self.packet_size, raw.payload_length];
        sizes.into_iter().find_map(|n| n.below(MOST))
    }

    fn what(self, name: &str) -> Option<What> {
        let slow = |w: &Word| {
            let w = w.0.to_lowercase();
            if w.contains("slow") || w.contains("startup") { Slow::Yes } else { Slow::No }
        };
        match name.rsplit(':').next().unwrap_or_default() {
            "packet_sent" if self.is_application() => Some(What::Sent {
                number: self.number()?,
                bytes: self.bytes(),
                in_flight: self.frames.in_flight.unwrap_or(true),
            }),
            "packet_received" if self.is_application() => {
                Some(What::Received { acked: self.frames.acked.into_boxed_slice() })
            }
            "packet_lost" => Some(What::Lost { number: self.number() }),
            "metrics_updated" | "metric_update" | "recovery_metrics_updated" => {
                Some(What::Metrics(Box::new(Metrics {
                    cwnd: self.congestion_window.below(MOST).or(self.cwnd.below(MOST)),
                    ssthresh: self.ssthresh.below(MOST),
                    latest_rtt: self.latest_rtt.real(),
                    min_rtt: self.min_rtt.real(),
                    delivered: self.delivered.below(MOST),
                })))
            }
            "congestion_state_updated" => Some(What::State {
                old: slow(&self.old),
                new: slow(&self.new),
                spurious: self.trigger.0.eq_ignore_ascii_case("spurious_loss"),
            }),
            _ => None,
        }
    }
}

/// An event that is an object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EventObject {
    time: Option<Number>,
    relative_time: Option<Number>,
    name: Word,
    data: Object<Data>,
}

impl Log {
    /// Adds an event to the newest trace. An error if there are too many.
    fn add(&mut self, time: Option<f64>, name: &str, data: Data) -> Result<(), String> {
        let Some(trace) = self.traces.last_mut() else { return Ok(()) };
        let Some(time) = time else { return Ok(()) };
        trace.now = if trace.delta { trace.now + time } else { time };
        let Some(what) = data.what(&name.to_lowercase()) else { return Ok(()) };
        let more = match &what {
            What::Received { acked } => size_of_val::<[(u64, u64)]>(acked),
            What::Metrics(_) => size_of::<Metrics>(),
            _ => 0,
        };
        self.held += size_of::<Event>() + more;
        if self.held > MOST_HELD {
            return Err(too_much("events"));
        }
        trace.events.push(Event { time: trace.now, what });
        Ok(())
    }

    fn add_object(&mut self, o: EventObject) -> Result<(), String> {
        let time = [o.time, o.relative_time].into_iter().flatten().find_map(Number::real);
        self.add(time, &o.name.0, o.data.0)
    }
}

/// Reads an event into a log: an object, or an array with the trace's fields.
struct EventSeed<'a>(&'a mut Log);

impl<'de> DeserializeSeed<'de> for EventSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EventSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let o = EventObject::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        self.0.add_object(o).map_err(A::Error::custom)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let fields = self.0.traces.last().map(|t| t.fields.clone()).unwrap_or_default();
        let (mut time, mut category, mut kind, mut data) =
            (None, Word::default(), Word::default(), Object::default());
        for field in &fields {
            let more = match field.as_str() {
                "relative_time" | "time" | "delta_time" => {
                    seq.next_element::<Number>()?.map(|n| time = n.real())
                }
                "category" => seq.next_element()?.map(|w| category = w),
                "event_type" | "event" | "type" | "name" => seq.next_element()?.map(|w| kind = w),
                "data" => seq.next_element()?.map(|d| data = d),
                _ => seq.next_element::<IgnoredAny>()?.map(|_| ()),
            };
            if more.is_none() {
                return Ok(());
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.0.add(time, &format!("{}:{}", category.0, kind.0), data.0).map_err(A::Error::custom)
    }
}

struct EventsSeed<'a>(&'a mut Log);

impl<'de> DeserializeSeed<'de> for EventsSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EventsSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(EventSeed(self.0))?.is_some() {}
        Ok(())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VantagePoint {
    name: Word,
    #[serde(rename = "type")]
    kind: Word,
}

/// `configuration` of the first drafts and `common_fields` of the later ones.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Times {
    time_units: Word,
    time_format: TimeFormat,
}

/// The format of times: a word, or an object in the later drafts.
#[derive(Default)]
struct TimeFormat {
    delta: bool,
}

impl<'de> Deserialize<'de> for TimeFormat {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let word = Word::deserialize(d)?.0;
        Ok(Self { delta: word == "delta" || word == "relative_to_previous_event" })
    }
}

impl Trace {
    fn new() -> Self {
        // The order of the first drafts.
        let fields = ["relative_time", "category", "event", "data"].map(String::from).to_vec();
        Self { unit: 1.0, fields, ..Self::default() }
    }

    fn title(&mut self, v: &VantagePoint) {
        self.title = format!("{} {}", v.name.0, v.kind.0).trim().to_string();
    }

    fn times(&mut self, times: &Times) {
        match times.time_units.0.as_str() {
            "us" => self.unit = 1e-3,
            "ns" => self.unit = 1e-6,
            "s" => self.unit = 1e3,
            _ => {}
        }
        self.delta |= times.time_format.delta;
    }
}

/// Reads a trace into a log; the events of a sequence follow later.
struct TraceSeed<'a>(&'a mut Log);

impl<'de> DeserializeSeed<'de> for TraceSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TraceSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let log = self.0;
        log.held += size_of::<Trace>() + 256;
        if log.held > MOST_HELD {
            return Err(A::Error::custom(too_much("traces")));
        }
        log.traces.push(Trace::new());
        while let Some(key) = map.next_key::<Word>()? {
            let at = log.traces.len() - 1;
            let trace = &mut log.traces[at];
            match key.0.as_str() {
                "vantage_point" => trace.title(&map.next_value::<Object<VantagePoint>>()?.0),
                "configuration" | "common_fields" => {
                    trace.times(&map.next_value::<Object<Times>>()?.0);
                }
                "event_fields" => {
                    let names = map.next_value::<BoundedVec<Word>>()?.0;
                    trace.fields = names.into_iter().take(64).map(|w| w.0.to_lowercase()).collect();
                }
                "events" => map.next_value_seed(EventsSeed(log))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a log with its traces, or the header of a sequence with its one trace.
struct LogSeed<'a>(&'a mut Log);

impl<'de> DeserializeSeed<'de> for LogSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LogSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a log")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        struct Traces<'a>(&'a mut Log);
        impl<'de> DeserializeSeed<'de> for Traces<'_> {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
                d.deserialize_seq(self)
            }
        }
        impl<'de> Visitor<'de> for Traces<'_> {
            type Value = ();
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of traces")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
                while seq.next_element_seed(TraceSeed(self.0))?.is_some() {}
                Ok(())
            }
        }
        while let Some(key) = map.next_key::<Word>()? {
            match key.0.as_str() {
                "traces" => map.next_value_seed(Traces(self.0))?,
                "trace" => map.next_value_seed(TraceSeed(self.0))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

fn invalid(line: u64, e: &serde_json::Error) -> InputError {
    InputError::line(line, format!("found no valid JSON: {e}"))
}

/// Reads a log, as far as it is valid.
fn read(input: impl Read) -> (Log, Result<(), InputError>) {
    let mut log = Log::default();
    let done = read_into(input, &mut log);
    (log, done)
}

fn read_into(mut input: impl Read, log: &mut Log) -> Result<(), InputError> {
    #[derive(Deserialize)]
    struct First {
        traces: Option<IgnoredAny>,
    }
    // A sequence begins with a record separator, or with a line that is a JSON text without traces.
    let mut start = Vec::new();
    let cannot = |e: io::Error| InputError::at(0, e.to_string());
    input.by_ref().take(LONGEST as u64).read_to_end(&mut start).map_err(cannot)?;
    let skip = start.iter().take_while(|b| b"\xef\xbb\xbf \t\r\n".contains(b)).count();
    let line = start[skip..].split(|b| *b == b'\n').next().unwrap_or_default();
    let sequence = line.first() == Some(&0x1e)
        || serde_json::from_slice::<First>(line).is_ok_and(|f| f.traces.is_none());
    let input = Cursor::new(&start[skip..]).chain(input);
    if sequence {
        return read_sequence(input, log);
    }
    let mut d = serde_json::Deserializer::from_reader(BufReader::new(Tokens::new(input)));
    LogSeed(log).deserialize(&mut d).map_err(|e| invalid(e.line() as u64, &e))
}

fn read_sequence(input: impl Read, log: &mut Log) -> Result<(), InputError> {
    for record in Lines::records(input) {
        let (number, record) = record?;
        let record = record.trim_matches(['\u{1e}', '\u{feff}', '\n', '\r', ' ']);
        if record.is_empty() {
            continue;
        }
        let mut d = serde_json::Deserializer::from_str(record);
        if log.traces.is_empty() {
            // The header; in the first drafts its one trace is the header itself.
            LogSeed(log).deserialize(&mut d).map_err(|e| invalid(number, &e))?;
            if log.traces.is_empty() {
                let mut d = serde_json::Deserializer::from_str(record);
                TraceSeed(log).deserialize(&mut d).map_err(|e| invalid(number, &e))?;
            }
            continue;
        }
        match EventSeed(log).deserialize(&mut d) {
            Err(e) if e.is_eof() => {
                return Err(InputError::line(number, "the file ends in the middle of an event"));
            }
            done => done.map_err(|e| invalid(number, &e))?,
        }
    }
    Ok(())
}

/// An endpoint: drives an analysis with its packets.
struct Endpoint {
    f: Facts,
    analysis: Analysis,
    flying: BTreeMap<u64, Sent>,
    total: Bytes,
    acked: bool,
    lost: u64,
    packets: u64,
    exit: Option<Result<ExitEstimate, NoExit>>,
    cwnd: Option<Bytes>,
    samples: Vec<Sample>,
}

impl Endpoint {
    fn sent(&mut self, number: u64, bytes: u64) {
        self.packets += 1;
        self.total += Bytes(bytes);
        self.f.inflight += Bytes(bytes);
        self.f.next = Mark(number + 1);
        let sent = Sent {
            mark: Mark(number + 1),
            at: self.f.now,
            bytes: Bytes(bytes),
            sent_total: self.total,
            inflight: self.f.inflight,
            delivered: self.f.delivered,
            ..Sent::default()
        };
        self.flying.insert(number, sent);
        let short = bytes * 4 < self.f.mss.0 * 3;
        self.analysis.sent(&self.f, &sent, short);
    }

    fn ack(&mut self, ranges: &[(u64, u64)]) {
        let prior = self.f.inflight;
        let (mut bytes, mut newest) = (Bytes::ZERO, None::<(u64, Sent)>);
        for &(first, last) in ranges {
            while let Some((&n, _)) = self.flying.range(first..=last).next() {
                let Some(sent) = self.flying.remove(&n) else { break };
                bytes += sent.bytes;
                if newest.as_ref().is_none_or(|w| w.0 < n) {
                    newest = Some((n, sent));
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

    fn lost(&mut self, number: Option<u64>) {
        let bytes = number.and_then(|n| self.flying.remove(&n)).map_or(self.f.mss, |s| s.bytes);
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
            retransmitted: self.lost,
        };
        if s.cwnd > Bytes::ZERO {
            self.samples.push(s);
        }
    }

    fn state(&mut self, old: Slow, new: Slow, spurious: bool) {
        let left = self.exit.is_some_and(|t| t.is_ok());
        if (old, new, left) == (Slow::Yes, Slow::No, false) {
            let cwnd = self.cwnd.unwrap_or_default();
            self.exit = Some(Ok(ExitEstimate { at: self.f.now, cwnd, evidence: Evidence::Recorded }));
        } else if new == Slow::Yes && (!left || spurious) {
            // It is in slow start, and the log will state its end.
            self.exit = Some(Err(NoExit::StillGrowing));
        }
    }
}

/// Reads a log: `each` gets a row for each trace. The rows are those of the part before the first error.
pub fn replay(
    input: impl Read,
    candidates: &Arc<[Candidate]>,
    snapshots: bool,
    mut each: impl FnMut(Transfer, Option<Findings>),
) -> Result<(), InputError> {
    let (log, done) = read(input);
    if log.traces.iter().all(|t| t.events.is_empty()) {
        done?;
        return Err(InputError::whole("found no trace with events, expected one"));
    }
    for (i, trace) in log.traces.into_iter().enumerate() {
        let (row, findings) = analyse(trace, i as u64 + 1, candidates, snapshots);
        each(row, findings);
    }
    done
}

fn analyse(
    trace: Trace,
    number: u64,
    candidates: &Arc<[Candidate]>,
    snapshots: bool,
) -> (Transfer, Option<Findings>) {
    let size = |e: &Event| match e.what {
        What::Sent { bytes, .. } => bytes,
        _ => None,
    };
    let mss = Bytes(trace.events.iter().filter_map(size).max().unwrap_or(DATAGRAM).clamp(1, 65_535));
    let setup =
        Setup { mss, iw: None, gated: true, handshake: Handshake::default(), snapshots, fork_states: false };
    let mut e = Endpoint {
        f: facts(mss),
        analysis: Analysis::new(setup, candidates),
        flying: BTreeMap::new(),
        total: Bytes::ZERO,
        acked: false,
        lost: 0,
        packets: 0,
        exit: None,
        cwnd: None,
        samples: Vec::new(),
    };
    let at = |time: f64| Instant(nanos(time * trace.unit));
    // Times of more than a day are absolute: they count from the first event.
    let begin = trace.events.iter().map(|e| at(e.time)).min().unwrap_or_default();
    let begin = if begin.0 > 86_400_000_000_000 { begin } else { Instant::ZERO };
    let mut received = 0;
    for event in &trace.events {
        e.f.now = e.f.now.max(Instant(at(event.time).since(begin).0));
        match &event.what {
            What::Sent { number, bytes, in_flight: true } => e.sent(*number, bytes.unwrap_or(DATAGRAM)),
            What::Sent { .. } => {}
            What::Received { acked } => {
                received += 1;
                e.ack(acked);
            }
            What::Lost { number } => e.lost(*number),
            What::Metrics(m) => e.metrics(m, trace.unit),
            What::State { old, new, spurious } => e.state(*old, *new, *spurious),
        }
    }
    let mut row = if e.acked {
        let findings = e.analysis.finish(e.exit);
        let mut row = Transfer::new("qlog", number, mss).with(&findings);
        row.packets = e.packets;
        row.retransmitted_packets = e.lost;
        if received > e.packets * 2 {
            row.caveats
                .push("this end mostly received: its own few packets show little of the path".to_string());
        }
        (row, Some(findings))
    } else {
        let mut row = samples::transfer("qlog", number, mss, &e.samples);
        if let Some(exit) = e.exit {
            row.observe(exit, row.class);
        }
        (row, None)
    };
    row.0.from = trace.title;
    row
}

/// Writes the window of a simulated run as a sequence of qlog events (main schema draft 0.4): metrics for each sample, and
/// each change of the congestion state. Times are milliseconds since the begin of the run, to the nanosecond.
pub fn write(
    out: &mut impl Write,
    title: &str,
    samples: &[RowSample],
    events: &[EventRow],
) -> io::Result<()> {
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
        // The window before the event.
        metrics(e.time_s.next_down(), &mut record)?;
        let data = json!({ "old": old, "new": new, "trigger": trigger });
        record(&json!({ "time": ms(e.time_s), "name": "recovery:congestion_state_updated", "data": data }))?;
    }
    metrics(f64::INFINITY, &mut record)
}
