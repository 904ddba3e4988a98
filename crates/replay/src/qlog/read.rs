//! Reads qlog as a stream, into compact events of which at most [`MOST_HELD`](crate::limits::MOST_HELD) bytes
//! are held.

use crate::error::InputError;
use crate::limits::{First, Held, LONGEST, Lines, Number, Object, Tokens, Word, default_for, too_much};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::io::{self, BufReader, Cursor, Read};

/// Maximum packet number and size that is plausible.
const MOST: u64 = 1 << 40;

/// Packets that are acknowledged: the path, the first and the last number.
pub(crate) type Acked = (u32, u64, u64);

/// The content of an event, as far as it is used.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A data packet was sent; acknowledgements alone are not in flight.
    Sent {
        number: u64,
        bytes: Option<u64>,
        in_flight: bool,
    },
    /// A packet was received, with the ranges that it acknowledges.
    Received {
        acked: Box<[Acked]>,
    },
    Lost {
        number: Option<u64>,
    },
    /// Metrics; times in the trace's unit.
    Metrics(Box<Metrics>),
    /// A congestion state; `None` where it says nothing of slow start.
    State {
        old: Option<Slow>,
        new: Option<Slow>,
        spurious: bool,
    },
}

/// Whether a congestion state is slow start.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slow {
    Yes,
    No,
}

#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Metrics {
    pub(super) cwnd: Option<u64>,
    pub(super) ssthresh: Option<u64>,
    pub(super) latest_rtt: Option<f64>,
    pub(super) min_rtt: Option<f64>,
    pub(super) delivered: Option<u64>,
}

/// An event; its time is in the trace's unit.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) time: f64,
    /// The path of a multipath connection, or 0.
    pub(crate) path: u32,
    pub(crate) what: What,
}

/// One trace of a log.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) title: String,
    /// The sender's congestion control, if the log names it.
    pub(crate) control: Option<String>,
    /// Milliseconds in a unit of time.
    pub(crate) unit: f64,
    /// Times are differences to the event before.
    pub(super) delta: bool,
    /// Names of the columns of events that are arrays (the first drafts).
    pub(super) fields: Vec<String>,
    pub(crate) events: Vec<Event>,
    /// The time of the newest event, for differences.
    pub(super) now: f64,
}

/// The traces of a log while it is read.
#[derive(Default)]
pub(super) struct Log {
    pub(super) traces: Vec<Trace>,
    /// Bytes of all events.
    held: Held,
}

pub(super) fn nanos(ms: f64) -> u64 {
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
    path_id: Number,
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
    packet_numbers: Ranges,
    path_id: Number,
    /// Names under which stacks log their congestion control.
    congestion_control: Word,
    congestion_control_type: Word,
    congestion_algorithm: Word,
    cc_algorithm: Word,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Frame {
    #[serde(rename = "frame_type")]
    kind: Word,
    acked_ranges: Ranges,
    path_id: Number,
    path_identifier: Number,
}

/// The frames of a packet.
#[derive(Default)]
struct Frames {
    /// True if there is a frame that is neither ACK, PADDING nor `CONNECTION_CLOSE`, or the log has no
    /// frames.
    in_flight: Option<bool>,
    acked: Vec<Acked>,
}

/// The number of a path; 0 if there is none.
fn path(numbers: [Number; 2]) -> u32 {
    numbers.into_iter().find_map(|n| n.below(1 << 32)).unwrap_or(0) as u32
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
            fn visit_bool<E>(self, _: bool) -> Result<Range, E> {
                Ok(Range(None))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Range, E> {
                Ok(Range(None))
            }
            fn visit_u64<E>(self, n: u64) -> Result<Range, E> {
                Ok(Range((n < MOST).then_some((n, n))))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Range, E> {
                Ok(Range(None))
            }
            fn visit_str<E>(self, _: &str) -> Result<Range, E> {
                Ok(Range(None))
            }
            fn visit_unit<E>(self) -> Result<Range, E> {
                Ok(Range(None))
            }
            default_for!(objects);
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a packet number, or an array of one or two")
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
                    let Frame { kind, acked_ranges, path_id, path_identifier } = frame.0;
                    let kind = kind.0.to_lowercase();
                    // Those of multipath, in the order of the drafts.
                    let acks = matches!(kind.as_str(), "ack" | "ack_mp" | "mp_ack" | "path_ack");
                    let idle = acks || matches!(kind.as_str(), "padding" | "connection_close");
                    all.in_flight = Some(all.in_flight.unwrap_or(false) || !idle);
                    if acks {
                        let path = path([path_id, path_identifier]);
                        all.acked.extend(acked_ranges.0.into_iter().map(|(a, b)| (path, a, b)));
                    }
                    if all.acked.len() * size_of::<Acked>() > MOST_RANGES {
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
        // Logs may leave out the old state, and a sender that the application limits is in slow start or not.
        let slow = |w: &Word| match w.0.to_lowercase() {
            w if w.is_empty() || w.contains("limited") => None,
            w if w.contains("slow") || w.contains("startup") => Some(Slow::Yes),
            _ => Some(Slow::No),
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
            // Some stacks log these in place of the frames.
            "packets_acked" if self.is_application() => {
                let path = path([self.path_id, self.header.0.path_id]);
                let acked = self.packet_numbers.0.into_iter().map(|(a, b)| (path, a, b)).collect();
                Some(What::Received { acked })
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
    /// The name in drafts in which events that are objects have category and type apart.
    #[serde(rename = "type")]
    kind: Word,
    event: Word,
    path_id: Number,
    path: Number,
    data: Object<Data>,
}

/// Longest name of a congestion control.
const NAME: usize = 64;

impl Log {
    /// Adds an event to the newest trace. An error if there are too many.
    fn add(&mut self, time: Option<f64>, of: Number, name: &str, data: Data) -> Result<(), String> {
        let Some(trace) = self.traces.last_mut() else { return Ok(()) };
        let names = [
            &data.congestion_control,
            &data.congestion_control_type,
            &data.congestion_algorithm,
            &data.cc_algorithm,
        ];
        if let Some(name) = names.into_iter().find(|n| !n.0.is_empty() && n.0.len() < NAME) {
            trace.control = Some(name.0.to_lowercase());
        }
        let of = path([if of.0.is_some() { of } else { data.path_id }, data.header.0.path_id]);
        let Some(time) = time else { return Ok(()) };
        trace.now = if trace.delta { trace.now + time } else { time };
        let Some(what) = data.what(&name.to_lowercase()) else { return Ok(()) };
        let more = match &what {
            What::Received { acked } => size_of_val::<[Acked]>(acked),
            What::Metrics(_) => size_of::<Metrics>(),
            _ => 0,
        };
        self.held.add(size_of::<Event>() + more, "events")?;
        trace.events.push(Event { time: trace.now, path: of, what });
        Ok(())
    }

    fn add_object(&mut self, o: EventObject) -> Result<(), String> {
        let time = [o.time, o.relative_time].into_iter().flatten().find_map(Number::real);
        let name = [o.name, o.event, o.kind].into_iter().find(|n| !n.0.is_empty()).unwrap_or_default();
        let of = if o.path_id.0.is_some() { o.path_id } else { o.path };
        self.add(time, of, &name.0, o.data.0)
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
        let mut of = Number::default();
        for field in &fields {
            let more = match field.as_str() {
                "relative_time" | "time" | "delta_time" => {
                    seq.next_element::<Number>()?.map(|n| time = n.real())
                }
                "category" => seq.next_element()?.map(|w| category = w),
                "path_id" | "path" => seq.next_element()?.map(|n| of = n),
                "event_type" | "event" | "type" | "name" => seq.next_element()?.map(|w| kind = w),
                "data" => seq.next_element()?.map(|d| data = d),
                _ => seq.next_element::<IgnoredAny>()?.map(|_| ()),
            };
            if more.is_none() {
                return Ok(());
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.0.add(time, of, &format!("{}:{}", category.0, kind.0), data.0).map_err(A::Error::custom)
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
    pub(crate) fn new() -> Self {
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
        log.held.add(size_of::<Trace>() + 256, "traces").map_err(A::Error::custom)?;
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
                    let names = map.next_value::<First<Word, 64>>()?.0;
                    trace.fields = names.into_iter().map(|w| w.0.to_lowercase()).collect();
                    trace.delta |= trace.fields.iter().any(|f| f == "delta_time");
                }
                "events" => map.next_value_seed(EventsSeed(log))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let trace =
            log.traces.last().map(|t| (t.title.len(), t.fields.iter().map(String::len).sum::<usize>()));
        let (title, fields) = trace.unwrap_or_default();
        log.held.add(title + fields, "traces").map_err(A::Error::custom)
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
pub(super) fn read(input: impl Read) -> (Log, Result<(), InputError>) {
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
    let cannot = |e: io::Error| InputError::at(0, e.to_string());
    let start = slowstart_files::head(&mut input, LONGEST as u64).map_err(cannot)?;
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
