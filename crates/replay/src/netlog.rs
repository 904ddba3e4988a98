//! Logs of Chrome's network stack (`chrome://net-export`, `--log-net-log`): the packets of its QUIC sessions.
//!
//! The names of events are numbers whose meaning the file states before them. Chrome mostly receives; an upload
//! shows its own slow start. Times are whole milliseconds. Of TCP it logs no packets.

use crate::analysis::{Findings, Keep};
use crate::error::InputError;
use crate::limits::{First, Held, Number, Object, Tokens, Word};
use crate::observer::Candidate;
use crate::qlog::{self, Acked, Event, Trace, What};
use crate::transfer::{Source, Transfer};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{BufReader, Read};
use std::sync::Arc;

/// What the names of events of QUIC begin with.
const PREFIX: &str = "QUIC_SESSION";
/// Packets that an ACK states as missing, at most.
const MISSING: usize = 4096;
/// The greatest packet number and size that is plausible.
const MOST: u64 = 1 << 40;
/// Longest name of a host or of a congestion control.
const NAME: usize = 256;
/// Types of events that a file may name.
const TYPES: usize = 1 << 14;

#[derive(Default, Deserialize)]
#[serde(default)]
struct EventSource {
    id: Number,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    host: Word,
    port: Number,
    packet_number: Number,
    size: Number,
    encryption_level: Word,
    largest_observed: Number,
    smallest_observed: Number,
    missing_packets: First<Number, MISSING>,
    congestion_control_type: Word,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LogEvent {
    time: Number,
    #[serde(rename = "type")]
    kind: Number,
    source: Object<EventSource>,
    params: Object<Params>,
}

/// A QUIC session while it is read.
#[derive(Default)]
struct Session {
    trace: Trace,
    /// True if frames of sent packets are logged, and if one since the newest packet was not an ACK.
    frames: bool,
    data: bool,
}

/// A log while it is read.
#[derive(Default)]
struct Log {
    /// The names of the events that are read, by their number.
    names: BTreeMap<u64, String>,
    sessions: BTreeMap<u64, Session>,
    held: Held,
}

/// The ranges between the least and the largest number that are not missing.
fn acked(p: &Params) -> Option<Box<[Acked]>> {
    let largest = p.largest_observed.below(MOST)?;
    let mut from = p.smallest_observed.below(MOST).unwrap_or(0);
    let missing: BTreeSet<u64> = p.missing_packets.0.iter().filter_map(|n| n.below(MOST)).collect();
    let mut all = Vec::new();
    for gap in missing.into_iter().filter(|n| *n <= largest) {
        if gap > from {
            all.push((0, from, gap - 1));
        }
        from = from.max(gap + 1);
    }
    if from <= largest {
        all.push((0, from, largest));
    }
    Some(all.into())
}

impl Log {
    fn add(&mut self, e: LogEvent) -> Result<(), String> {
        let name = e.kind.below(MOST).and_then(|kind| self.names.get(&kind));
        let (Some(name), Some(id), Some(time)) = (name, e.source.0.id.below(MOST), e.time.real()) else {
            return Ok(());
        };
        let p = e.params.0;
        if !self.sessions.contains_key(&id) {
            self.held.add(size_of::<Session>() + 2 * NAME, "sessions")?;
        }
        let s =
            self.sessions.entry(id).or_insert_with(|| Session { trace: Trace::new(), ..Session::default() });
        if !p.host.0.is_empty() && p.host.0.len() < NAME {
            let port = p.port.below(1 << 16).map_or(String::new(), |p| format!(":{p}"));
            s.trace.title = format!("client of {}{port}", p.host.0);
        }
        let control = &p.congestion_control_type.0;
        if !control.is_empty() && control.len() < NAME {
            s.trace.control = Some(control.to_lowercase());
        }
        let level = &p.encryption_level.0;
        let application = level.is_empty() || level.contains("FORWARD_SECURE");
        let what = match name.strip_prefix(PREFIX).unwrap_or_default() {
            "_PACKET_SENT" => {
                let in_flight = !s.frames || std::mem::take(&mut s.data);
                p.packet_number.below(MOST).filter(|_| application).map(|number| What::Sent {
                    number,
                    bytes: p.size.below(MOST),
                    in_flight,
                })
            }
            "_PACKET_RECEIVED" => Some(What::Received { acked: Box::new([]) }),
            "_ACK_FRAME_RECEIVED" => acked(&p).map(|acked| What::Received { acked }),
            "_PACKET_LOST" => Some(What::Lost { number: p.packet_number.below(MOST) }),
            frame if frame.ends_with("_FRAME_SENT") => {
                s.frames = true;
                s.data |= !frame.contains("_ACK_") && !frame.contains("_PADDING_");
                None
            }
            _ => None,
        };
        let Some(what) = what else { return Ok(()) };
        let more = match &what {
            What::Received { acked } => size_of_val::<[Acked]>(acked),
            _ => 0,
        };
        self.held.add(size_of::<Event>() + more, "events")?;
        s.trace.events.push(Event { time, path: 0, what });
        Ok(())
    }
}

/// Reads the events into a log.
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
        while let Some(Object(event)) = seq.next_element::<Object<LogEvent>>()? {
            self.0.add(event).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// The numbers of events, of the names that are used.
#[derive(Default)]
struct Types(BTreeMap<u64, String>);

impl<'de> Deserialize<'de> for Types {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Types;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Types, A::Error> {
                let mut all = BTreeMap::new();
                while let Some((name, number)) = map.next_entry::<Word, Number>()? {
                    let number =
                        number.below(MOST).filter(|_| name.0.starts_with(PREFIX) && name.0.len() < NAME);
                    if let Some(number) = number.filter(|_| all.len() < TYPES) {
                        all.insert(number, name.0);
                    }
                }
                Ok(Types(all))
            }
        }
        d.deserialize_map(All)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Constants {
    #[serde(rename = "logEventTypes")]
    types: Types,
}

/// Reads a file into a log.
struct LogSeed<'a>(&'a mut Log);

impl<'de> Visitor<'de> for LogSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a log with constants and events")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Word>()? {
            match key.0.as_str() {
                "constants" => self.0.names = map.next_value::<Constants>()?.types.0,
                "events" => map.next_value_seed(EventsSeed(self.0))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a log: `each` gets a row for each QUIC session that sent a packet. The rows are those of the part before
/// the first error.
pub fn replay(
    input: impl Read,
    candidates: &Arc<[Candidate]>,
    keep: Keep,
    mut each: impl FnMut(Transfer, Option<Findings>),
) -> Result<(), InputError> {
    let mut log = Log::default();
    let mut d = serde_json::Deserializer::from_reader(BufReader::new(Tokens::new(input)));
    let done = d.deserialize_map(LogSeed(&mut log));
    let done = done.map_err(|e| InputError::line(e.line() as u64, format!("found no valid JSON: {e}")));
    let mut number = 0;
    for session in log.sessions.into_values() {
        let sent = |e: &Event| matches!(e.what, What::Sent { .. });
        if session.trace.events.iter().any(sent) {
            let mut with_caveat = |mut t: Transfer, f| {
                t.caveats.push("the log has times of whole milliseconds".to_string());
                each(t, f);
            };
            qlog::rows(Source::Netlog, &mut number, &session.trace, candidates, keep, &mut with_caveat);
        }
    }
    done?;
    if number == 0 {
        return Err(InputError::whole(
            "this is a log of Chrome's network stack; it has no packet of QUIC, and of TCP it never has any: give a capture",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// An upload that doubles from ten packets each 50 ms, and loses one.
    fn log() -> String {
        let mut text = String::from(
            r#"{"constants":{"logEventTypes":{"QUIC_SESSION":1,"QUIC_SESSION_PACKET_SENT":2,"QUIC_SESSION_STREAM_FRAME_SENT":3,
            "QUIC_SESSION_ACK_FRAME_SENT":4,"QUIC_SESSION_ACK_FRAME_RECEIVED":5,"QUIC_SESSION_PACKET_LOST":6,"SOCKET_ALIVE":7}},
            "events":[{"params":{"host":"example.org","port":443},"phase":1,"source":{"id":9,"type":11},"time":"1000","type":1}"#,
        );
        let mut event = |time: u64, kind: u8, params: &str| {
            write!(
                text,
                ",{{\"params\":{{{params}}},\"source\":{{\"id\":9}},\"time\":\"{time}\",\"type\":{kind}}}"
            )
            .expect("a String");
        };
        let mut number = 1;
        for round in 0..5_u64 {
            let (first, at) = (number, 1000 + round * 50);
            for _ in 0..10 << round {
                event(at, 3, "\"length\":1200");
                event(
                    at,
                    2,
                    &format!(
                        "\"packet_number\":{number},\"size\":\"1250\",\"encryption_level\":\"ENCRYPTION_FORWARD_SECURE\""
                    ),
                );
                number += 1;
            }
            // An ACK alone is not in flight.
            event(at, 4, "\"largest_observed\":1");
            event(at, 2, &format!("\"packet_number\":{number},\"size\":40"));
            let missing = if round == 4 { format!("{first}") } else { String::new() };
            event(
                at + 50,
                5,
                &format!(
                    "\"largest_observed\":{},\"smallest_observed\":{first},\"missing_packets\":[{missing}]",
                    number - 1
                ),
            );
            if round == 4 {
                event(at + 50, 6, &format!("\"packet_number\":{first}"));
            }
            number += 1;
        }
        text + "]}"
    }

    #[test]
    fn an_upload_of_quic_is_read() {
        let text = log();
        let none: Arc<[Candidate]> = Arc::new([]);
        let rows = |text: &str| {
            let mut all = Vec::new();
            let done = replay(text.as_bytes(), &none, Keep::default(), |t, _| all.push(t));
            (all, done)
        };
        let (all, done) = rows(&text);
        done.expect("valid");
        let [t] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (t.from.as_str(), t.bytes, t.min_rtt_s),
            ("client of example.org:443", Some(309 * 1250), Some(0.05))
        );
        assert_eq!((t.packets, t.retransmitted_packets), (Some(310), Some(1)));
        assert_eq!(t.exit.as_ref().map(|e| e.evidence.as_str()), Some("loss"));
        let kind =
            crate::open::detect(Box::new(std::io::Cursor::new(text.clone().into_bytes()))).expect("known").0;
        assert_eq!(kind, crate::open::Kind::Netlog);
        // Chrome was ended before the log was complete.
        let (part, done) = rows(&text[..text.len() * 2 / 3]);
        assert!(done.is_err() && part[0].bytes < t.bytes && part[0].bytes > Some(0));
        let none = text.replace("QUIC_SESSION", "TCP_CONNECT");
        assert!(rows(&none).1.is_err_and(|e| e.to_string().contains("Chrome's network stack")));
    }
}
