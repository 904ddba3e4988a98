//! Results of iperf3 (`--json` or `--json-stream`), made by the side that sends: window and round-trip time
//! of each stream at the end of each interval.

pub mod text;

use crate::error::InputError;
use crate::limits::{BoundedVec, First, Held, Number, Object, Tokens, Word, default_for};
use crate::samples::{MOST, MSS, Sample, Series, transfer, without_windows};
use crate::transfer::{Source, Transfer};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use slowstart::units::{Bytes, Instant, Span};
use slowstart_study::words::{bytes, number};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read};

/// Intervals longer than this show little of slow start.
const LONG: Span = Span::millis(200);
/// A time without a byte from here on is a stall: these tools always have something to write.
const STALL: Span = Span::millis(2000);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stream {
    socket: Number,
    end: Number,
    bytes: Number,
    retransmits: Number,
    snd_cwnd: Number,
    rtt: Number,
    omitted: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Connected {
    socket: Number,
    local_host: Word,
    local_port: Number,
    remote_host: Word,
    remote_port: Number,
}

/// The longest time of a stream without a byte, if that is a stall: from when and until when, and the window at its end.
fn stall(samples: &[Sample]) -> Option<(Instant, Instant, Bytes)> {
    let begin = Sample { delivered: Some(Bytes::ZERO), ..Sample::default() };
    let mut since = begin;
    let mut longest: Option<(Instant, Instant, Bytes)> = None;
    for s in samples {
        if s.delivered != since.delivered {
            since = *s;
        } else if s.at.since(since.at) >= longest.map_or(STALL, |(from, until, _)| until.since(from)) {
            longest = Some((since.at, s.at, s.cwnd));
        }
    }
    longest
}

/// Streams of a test: iperf3 has no more.
const MOST_STREAMS: usize = 128;

/// What was tested.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    protocol: Word,
}

/// The start of a result, or an interval.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    version: Word,
    connected: First<Connected, MOST_STREAMS>,
    tcp_mss_default: Number,
    tcp_mss: Number,
    test_start: Object<Settings>,
    streams: First<Stream, MOST_STREAMS>,
    sender_tcp_congestion: Word,
}

/// The end of a result.
#[derive(Default, Deserialize)]
#[serde(default)]
struct End {
    sender_tcp_congestion: Word,
}

/// The streams of all intervals.
#[derive(Default)]
struct Intervals(BoundedVec<Stream>);

impl<'de> Deserialize<'de> for Intervals {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Array;
        impl<'de> Visitor<'de> for Array {
            type Value = BoundedVec<Stream>;
            default_for!(scalars);
            default_for!(objects);
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of intervals")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<BoundedVec<Stream>, A::Error> {
                let mut all = BoundedVec::default();
                while let Some(interval) = seq.next_element::<Object<Data>>()? {
                    let mut streams = interval.0.streams.0.into_iter();
                    streams.try_for_each(|s| all.push(s, "intervals")).map_err(A::Error::custom)?;
                }
                Ok(all)
            }
        }
        d.deserialize_any(Array).map(Self)
    }
}

/// The result as a whole, or an event of `--json-stream`: of the start, or of an interval.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Text {
    start: Object<Data>,
    end: Object<End>,
    intervals: Intervals,
    data: Object<Data>,
    error: Word,
}

/// A stream while it is read.
#[derive(Default)]
struct Flow {
    samples: Vec<Sample>,
    bytes: u64,
    retransmitted: Option<u64>,
    longest: Span,
    /// True if the newest interval was left out of the sums (`--omit`).
    omitted: bool,
    /// When the times of the intervals began.
    origin: Instant,
    /// True if a window was stated.
    windows: bool,
}

/// A result while it is read.
#[derive(Default)]
struct Streams {
    version: String,
    /// Why iperf3 ended the test, if it failed.
    error: String,
    mss: u64,
    ends: BTreeMap<u64, (String, String)>,
    flows: BTreeMap<u64, Flow>,
    held: Held,
    /// True if the test was not of TCP.
    not_tcp: bool,
    /// The sender's congestion control, if it was stated.
    control: Option<String>,
    /// How long the connection took, if it was stated.
    handshake: Option<Span>,
    /// With nuttcp, true if this side sends: the other side's reports, which wait in the same queue, say what
    /// it received.
    reported: bool,
}

impl Streams {
    fn start(&mut self, s: Data) -> Result<(), String> {
        if !s.version.0.is_empty() {
            self.version = s.version.0;
        }
        if !s.sender_tcp_congestion.0.is_empty() {
            self.control = Some(s.sender_tcp_congestion.0);
        }
        self.not_tcp |= !matches!(s.test_start.0.protocol.0.as_str(), "" | "TCP");
        let mss =
            [s.tcp_mss, s.tcp_mss_default].into_iter().find_map(|n| n.below(1 << 16).filter(|m| *m > 0));
        self.mss = mss.unwrap_or(self.mss);
        for c in s.connected.0 {
            let end = |host: &Word, port: Number| {
                let mut name = format!("{}:{}", host.0, port.below(1 << 16).unwrap_or(0));
                // It counts with its length.
                name.shrink_to_fit();
                name
            };
            let ends = (end(&c.local_host, c.local_port), end(&c.remote_host, c.remote_port));
            self.held.add(size_of_val(&ends) + ends.0.len() + ends.1.len(), "names of streams")?;
            self.ends.insert(c.socket.below(MOST).unwrap_or(0), ends);
        }
        Ok(())
    }

    fn interval(&mut self, streams: Vec<Stream>) -> Result<(), String> {
        for s in streams {
            let Some(end) = s.end.real().filter(|e| *e < 1e9) else { continue };
            let cwnd = s.snd_cwnd.below(MOST);
            let socket = s.socket.below(MOST).unwrap_or(0);
            let bytes = s.bytes.below(MOST).unwrap_or(0);
            let retransmits = s.retransmits.below(MOST);
            let rtt = s.rtt.below(MOST).filter(|us| *us > 0).map(Span::micros);
            self.sample(socket, end, bytes, retransmits, cwnd, rtt, s.omitted)?;
        }
        Ok(())
    }

    /// Adds an interval of a stream that ends at so many seconds.
    #[allow(clippy::too_many_arguments, reason = "the columns of an interval, from JSON or from text")]
    fn sample(
        &mut self,
        socket: u64,
        end: f64,
        bytes: u64,
        retransmits: Option<u64>,
        cwnd: Option<u64>,
        rtt: Option<Span>,
        omitted: bool,
    ) -> Result<(), String> {
        let new = if self.flows.contains_key(&socket) { 0 } else { size_of::<Flow>() };
        self.held.add(new + size_of::<Sample>(), "samples")?;
        let flow = self.flows.entry(socket).or_default();
        flow.bytes = flow.bytes.saturating_add(bytes);
        flow.retransmitted = retransmits
            .map_or(flow.retransmitted, |n| Some(flow.retransmitted.unwrap_or(0).saturating_add(n)));
        let (before, window) = flow.samples.last().map_or((Instant::ZERO, Bytes::ZERO), |b| (b.at, b.cwnd));
        // Times begin anew after what --omit leaves out of the sums; the connection goes on.
        if flow.omitted && !omitted {
            flow.origin = before;
        }
        flow.omitted = omitted;
        flow.windows |= cwnd.is_some();
        let at = flow.origin + Span((end * 1e9) as u64);
        flow.longest = flow.longest.max(at.max(before).since(before));
        flow.samples.push(Sample {
            at: at.max(before),
            cwnd: cwnd.map_or(window, Bytes),
            rtt,
            delivered: Some(Bytes(flow.bytes)),
            retransmitted: flow.retransmitted,
            ..Sample::default()
        });
        Ok(())
    }

    /// Gives the row of each stream. `source` is the tool, `done` how reading ended.
    fn finish(
        self,
        source: Source,
        done: Result<(), InputError>,
        mut each: impl FnMut(Transfer, Series),
    ) -> Result<(), InputError> {
        let nuttcp = source == Source::Nuttcp;
        let tool = match source {
            Source::Nuttcp => "nuttcp",
            Source::Iperf2 => "iperf 2",
            _ => "iperf3",
        };
        let mss = Bytes(self.mss);
        let flows = self.flows.into_iter().filter(|_| !self.not_tcp);
        let mut rows = 0;
        for (socket, flow) in flows {
            rows += 1;
            let of = if flow.windows { transfer } else { without_windows };
            let mut t = of(source, rows, mss, &flow.samples);
            if let Some((from, to)) = self.ends.get(&socket) {
                (t.from, t.to) = (from.clone(), to.clone());
            }
            t.congestion_control.clone_from(&self.control);
            if !flow.windows {
                let how = if source == Source::Iperf2 { ", with -e" } else { "" };
                t.caveats.push(format!(
                    "{tool} states no window of a receiver, nor on a system other than Linux: the result of the side that sends{how} shows the exit"
                ));
            } else if nuttcp && self.reported {
                t.caveats.push(
                    "nuttcp states the window of the time at which a report of the other side came, which waits in the same \
                     queue: slow start may have ended earlier"
                        .to_string(),
                );
            } else if !nuttcp {
                t.caveats.push(format!(
                    "{tool} counts bytes that were written to the socket, not those acknowledged"
                ));
            }
            if let Some((from, until, cwnd)) = stall(&flow.samples) {
                let seconds = |at: Instant| number(Span(at.0).as_secs_f64());
                let to_the_end = flow.samples.last().is_some_and(|s| s.at == until);
                let when = if to_the_end {
                    format!("after {} s", seconds(from))
                } else {
                    format!("between {} and {} s", seconds(from), seconds(until))
                };
                let (did, window) = if flow.windows {
                    ("written", format!(", with a window of {}", bytes(cwnd.0)))
                } else {
                    ("written or received", String::new())
                };
                let stall = format!("nothing was {did} {when}{window}");
                match t.unclear.as_mut().filter(|_| to_the_end && flow.windows) {
                    Some(why) => *why = stall,
                    None => t.caveats.push(stall),
                }
            }
            if flow.longest > LONG {
                t.caveats.push(format!(
                    "an interval lasts {} ms: run {tool} with -i 0.1, or tcpdump beside it, to see slow start",
                    flow.longest.0 / 1_000_000
                ));
            }
            let series = Series {
                mss,
                written: flow.windows && !nuttcp,
                windows: flow.windows && !self.reported,
                handshake: self.handshake,
                samples: flow.samples,
            };
            each(t, series);
        }
        done?;
        if rows == 0 {
            let version = if self.version.is_empty() { tool } else { &self.version };
            let why = if self.not_tcp {
                "it is not of TCP"
            } else if self.error.is_empty() {
                "it has no interval of a stream: make it with -i 0.1"
            } else {
                return Err(InputError::whole(format!(
                    "this is a result of {version}; it has no intervals, because the test failed: {}",
                    self.error
                )));
            };
            return Err(InputError::whole(format!("this is a result of {version}; {why}")));
        }
        Ok(())
    }
}

/// Reads a result. `each` gets a row and the samples of each stream.
pub fn replay(input: impl Read, each: impl FnMut(Transfer, Series)) -> Result<(), InputError> {
    let texts = serde_json::Deserializer::from_reader(BufReader::new(Tokens::new(input)));
    let mut all = Streams { mss: MSS, ..Streams::default() };
    let mut done = Ok(());
    for text in texts.into_iter::<Text>() {
        let added = match text {
            Ok(text) => {
                if !text.end.0.sender_tcp_congestion.0.is_empty() {
                    all.control = Some(text.end.0.sender_tcp_congestion.0);
                }
                let mut data = text.data.0;
                let streams = std::mem::take(&mut data.streams.0);
                if !text.error.0.is_empty() {
                    all.error = text.error.0;
                }
                all.start(text.start.0)
                    .and_then(|()| all.start(data))
                    .and_then(|()| all.interval(text.intervals.0.0))
                    .and_then(|()| all.interval(streams))
            }
            Err(e) => {
                done = Err(InputError::line(e.line() as u64, format!("found no valid JSON: {e}")));
                break;
            }
        };
        if let Err(why) = added {
            done = Err(InputError::whole(why));
            break;
        }
    }
    all.finish(Source::Iperf3, done, each)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<Transfer>, InputError> {
        let mut all = Vec::new();
        replay(text.as_bytes(), |t, _| all.push(t)).map(|()| all)
    }

    const START: &str = r#"{"version":"iperf 3.12","tcp_mss_default":1448,"connected":[{"socket":5,"local_host":"192.0.2.1","local_port":40000,"remote_host":"198.51.100.7","remote_port":5201}]}"#;

    fn interval(i: u64, step: f64, fields: &str) -> String {
        let (from, to) = (i as f64 * step, (i + 1) as f64 * step);
        format!(
            r#"{{"streams":[{{"socket":5,"start":{from},"end":{to},"bytes":100000,{fields}"omitted":false}}],"sum":{{}}}}"#
        )
    }

    fn intervals(step: f64) -> Vec<String> {
        let windows = [(14_480, 0), (57_920, 0), (231_680, 0), (115_840, 7), (117_288, 0)];
        let one = |(i, (cwnd, lost))| {
            interval(i as u64, step, &format!(r#""retransmits":{lost},"snd_cwnd":{cwnd},"rtt":40000,"#))
        };
        windows.into_iter().enumerate().map(one).collect()
    }

    fn result(step: f64) -> String {
        format!(r#"{{"start":{START},"intervals":[{}],"end":{{}}}}"#, intervals(step).join(","))
    }

    #[test]
    fn results_and_streams_of_events_give_the_same_row() {
        let all = rows(&result(0.1)).expect("valid");
        let [t] = &all[..] else { panic!("{all:?}") };
        let exit = t.exit.as_ref().expect("an exit");
        assert_eq!((exit.cwnd_bytes, exit.evidence.as_str()), (231_680, "loss"));
        assert!((exit.time_s - 0.4).abs() < 1e-6 && !t.certain, "{exit:?}");
        assert_eq!(
            (t.from.as_str(), t.bytes, t.retransmitted_packets),
            ("192.0.2.1:40000", Some(500_000), Some(7))
        );
        let events: String = std::iter::once(format!(r#"{{"event":"start","data":{START}}}"#))
            .chain(intervals(0.1).into_iter().map(|i| format!(r#"{{"event":"interval","data":{i}}}"#)))
            .chain(std::iter::once(r#"{"event":"end","data":{"sum_sent":{}}}"#.to_string()))
            .map(|l| l + "\n")
            .collect();
        assert_eq!(rows(&events).expect("valid"), all);
        let coarse = rows(&result(1.0)).expect("valid").remove(0);
        assert!(
            coarse.caveats.iter().any(|c| c.contains("an interval lasts 1000 ms")),
            "{:?}",
            coarse.caveats
        );
        for (text, kind) in [(result(0.1), "whole"), (events, "stream")] {
            let found =
                crate::open::detect(Box::new(std::io::Cursor::new(text.into_bytes()))).expect("known").0;
            assert_eq!(found, crate::open::Kind::Iperf, "{kind}");
        }
    }

    /// A stall is named: to the end it is why no exit is known, and one in between is told beside the exit. A tool that has
    /// always something to write has none.
    #[test]
    fn a_stall_is_named() {
        let of = |amounts: &[u64], window: &str| {
            let one = |(i, bytes): (usize, &u64)| {
                interval(i as u64, 1.0, window).replace("\"bytes\":100000", &format!("\"bytes\":{bytes}"))
            };
            let all: Vec<String> = amounts.iter().enumerate().map(one).collect();
            let t = rows(&format!(r#"{{"start":{START},"intervals":[{}]}}"#, all.join(",")))
                .expect("valid")
                .remove(0);
            let told = t.caveats.iter().find(|c| c.contains("nothing was"));
            (t.unclear.clone().unwrap_or_default(), told.cloned())
        };
        let window = r#""retransmits":0,"snd_cwnd":34713,"#;
        let end = of(&[34_078_720, 0, 0, 0], window);
        assert_eq!(end, ("nothing was written after 1 s, with a window of 34.7 kB".to_string(), None));
        let between = of(&[9000, 0, 0, 0, 9000], window).1.expect("told");
        assert_eq!(between, "nothing was written between 1 and 4 s, with a window of 34.7 kB");
        let received = of(&[0, 0, 9000, 9000], "").1.expect("told");
        assert_eq!(received, "nothing was written or received between 0 and 2 s");
        assert_eq!(of(&[9000, 0, 9000, 0], window), ("no growth seen".to_string(), None));
    }

    /// `--omit` leaves the first intervals out of the sums, and times begin anew after them, but the
    /// connection's slow start is in them.
    #[test]
    fn slow_start_is_found_in_omitted_intervals() {
        let mut all = intervals(0.1);
        all.extend((0..5).map(|i| interval(i, 0.1, r#""retransmits":0,"snd_cwnd":117288,"rtt":40000,"#)));
        for omitted in &mut all[..5] {
            *omitted = omitted.replace("\"omitted\":false", "\"omitted\":true");
        }
        let t = rows(&format!(r#"{{"start":{START},"intervals":[{}]}}"#, all.join(",")))
            .expect("valid")
            .remove(0);
        let exit = t.exit.as_ref().expect("an exit");
        assert_eq!((exit.cwnd_bytes, exit.evidence.as_str()), (231_680, "loss"));
        assert!((exit.time_s - 0.4).abs() < 1e-6 && (t.duration_s - 1.0).abs() < 1e-6, "{t:?}");
    }

    #[test]
    fn a_result_without_windows_says_what_it_is() {
        let text = format!(r#"{{"start":{START},"intervals":[{}]}}"#, interval(0, 1.0, ""));
        let t = rows(&text).expect("a receiver's").remove(0);
        assert_eq!(
            (t.bytes, t.unclear.as_deref()),
            (Some(100_000), Some("the file does not state the window"))
        );
        assert!(t.caveats.iter().any(|c| c.starts_with("iperf3 states no window of a receiver")), "{t:?}");
        let udp = text.replace(r#""connected""#, r#""test_start":{"protocol":"UDP"},"connected""#);
        let e = rows(&udp).expect_err("refused").to_string();
        assert!(e.contains("this is a result of iperf 3.12; it is not of TCP"), "{e}");
        let failed = format!(r#"{{"start":{START},"intervals":[],"end":{{}},"error":"unable to connect"}}"#);
        let e = rows(&failed).expect_err("refused").to_string();
        assert!(e.contains("iperf 3.12") && e.contains("the test failed: unable to connect"), "{e}");
        assert!(rows("{\"intervals\":[").expect_err("refused").to_string().starts_with("line 1: "));
    }
}
