//! Rows of M-Lab, one or many JSON texts in a file: NDT7 measurements, and snapshots of `tcp-info`; as files
//! of the archive, or as lines exported from its tables, where each is in the field `raw`.
//!
//! A measurement has the server's `TCPInfo` about three times a second, a row of `tcp-info` as often as it
//! changed.

use crate::clock;
use crate::counters::Counters;
use crate::error::InputError;
use crate::limits::{BoundedVec, Number, Object, Tokens, Word};
use crate::samples::{MOST, MSS, Sample, Series, segments, series, threshold, transfer};
use crate::transfer::{Source, Transfer};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use slowstart::units::{Bytes, Instant, Span};
use std::io::{BufReader, Read};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct TcpInfo {
    elapsed_time: Number,
    snd_cwnd: Number,
    snd_ss_thresh: Number,
    #[serde(rename = "SndMSS")]
    snd_mss: Number,
    #[serde(rename = "RTT")]
    rtt: Number,
    #[serde(rename = "MinRTT")]
    min_rtt: Number,
    bytes_acked: Number,
    total_retrans: Number,
    busy_time: Number,
    #[serde(rename = "RWndLimited")]
    receive_window: Number,
    #[serde(rename = "SndBufLimited")]
    send_buffer: Number,
    app_limited: Number,
    delivery_rate: Number,
}

/// A time in ISO 8601, in seconds.
#[derive(Copy, Clone, Default)]
struct Time(Option<f64>);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self(clock::leading(&Word::deserialize(d)?.0).map(|t| t.0)))
    }
}

/// A measurement of NDT7, or a snapshot of `tcp-info`, which has a time of its own.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Measurement {
    #[serde(rename = "Timestamp")]
    at: Time,
    #[serde(rename = "TCPInfo")]
    info: Option<Object<TcpInfo>>,
    #[serde(rename = "BBRInfo")]
    bbr: Option<IgnoredAny>,
    #[serde(rename = "CongestionAlgorithm")]
    control: Word,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Side {
    #[serde(rename = "ServerMeasurements")]
    measurements: BoundedVec<Measurement>,
}

/// One JSON text: a measurement, a row of `tcp-info`, or one of its snapshots.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Text {
    id: Word,
    #[serde(rename = "UUID")]
    uuid: Word,
    #[serde(rename = "Download")]
    download: Option<Object<Side>>,
    #[serde(rename = "Upload")]
    upload: Option<Object<Side>>,
    #[serde(rename = "ServerIP")]
    server_ip: Word,
    #[serde(rename = "ServerPort")]
    server_port: Number,
    #[serde(rename = "ClientIP")]
    client_ip: Word,
    #[serde(rename = "ClientPort")]
    client_port: Number,
    #[serde(rename = "Snapshots")]
    snapshots: BoundedVec<Measurement>,
    #[serde(rename = "Timestamp")]
    at: Time,
    #[serde(rename = "TCPInfo")]
    info: Option<Object<TcpInfo>>,
    /// The row as measured, in an export of a table.
    raw: Option<Box<Object<Text>>>,
}

/// Milliseconds of a count in microseconds.
fn milliseconds(us: Number) -> Option<u32> {
    u32::try_from(us.below(MOST)? / 1000).ok()
}

/// The sample of a measurement `elapsed_us` after the first; `None` if it has no window.
fn sample(info: &TcpInfo, elapsed_us: u64, mss: u64) -> Option<Sample> {
    let span = |us: Number| us.below(MOST).map(Span::micros);
    Some(Sample {
        at: Instant(elapsed_us * 1000),
        cwnd: segments(info.snd_cwnd.below(MOST)?, mss),
        ssthresh: info.snd_ss_thresh.below(MOST).and_then(|n| threshold(n, mss)),
        rtt: span(info.rtt),
        min_rtt: span(info.min_rtt),
        delivered: info.bytes_acked.below(MOST).map(Bytes),
        retransmitted: info.total_retrans.below(MOST),
        counters: Counters {
            busy_ms: milliseconds(info.busy_time),
            receive_window_ms: milliseconds(info.receive_window),
            send_buffer_ms: milliseconds(info.send_buffer),
            // In bytes per second.
            delivery_kbps: info.delivery_rate.below(MOST).and_then(|r| u32::try_from(r / 125).ok()),
            application: info.app_limited.below(2).map(|a| a == 1),
        },
    })
}

/// The row of the samples of a connection; `None` if it has none.
fn row(source: Source, number: u64, all: &[Measurement]) -> Option<(Transfer, Option<Series>)> {
    let mss = |i: &TcpInfo| i.snd_mss.below(1 << 16).filter(|m| *m > 0);
    let size = all.iter().filter_map(|m| mss(&m.info.as_ref()?.0)).next_back().unwrap_or(MSS);
    let begin = all.iter().filter_map(|m| m.at.0).reduce(f64::min);
    let one = |m: &Measurement| {
        let info = &m.info.as_ref()?.0;
        let since = || Some(((m.at.0? - begin?).clamp(0.0, 1e9) * 1e6).round() as u64);
        sample(info, info.elapsed_time.below(MOST).or_else(since)?, size)
    };
    let mut samples: Vec<Sample> = all.iter().filter_map(one).collect();
    samples.sort_by_key(|s| s.at);
    let mut t = (!samples.is_empty()).then(|| transfer(source, number, Bytes(size), &samples))?;
    t.start_s = begin.unwrap_or(0.0);
    let named = all.iter().map(|m| &m.control.0).find(|c| !c.is_empty()).cloned();
    let bbr = all.iter().any(|m| m.bbr.is_some());
    t.congestion_control = named.or_else(|| bbr.then(|| "bbr".to_string()));
    if bbr {
        t.caveats.push("the sender ran BBR: its startup has no slow-start threshold".to_string());
    }
    Some((t, series(Bytes(size), &samples)))
}

/// Reads measurements and snapshots. `each` gets a row for each connection; snapshots that stand alone are
/// those of one.
pub fn replay(input: impl Read, mut each: impl FnMut(Transfer, Option<Series>)) -> Result<(), InputError> {
    let texts = serde_json::Deserializer::from_reader(BufReader::new(Tokens::new(input)));
    let (mut rows, mut alone) = (0, BoundedVec::default());
    let mut done = Ok(());
    for text in texts.into_iter::<Text>() {
        let mut text = match text {
            Ok(text) => text,
            Err(e) => {
                let why = format!("found no valid JSON: {e}");
                done = Err(InputError::line(e.line() as u64, why));
                break;
            }
        };
        while let Some(raw) = text.raw.take() {
            let name = if raw.0.uuid.0.is_empty() { text.id } else { Word::default() };
            text = Text { id: name, ..raw.0 };
        }
        let end = |ip: &Word, port: Number| match (ip.0.is_empty(), port.below(1 << 16)) {
            (true, _) => String::new(),
            (_, port) => format!("{}:{}", ip.0, port.unwrap_or(0)),
        };
        let name = if text.uuid.0.is_empty() { &text.id.0 } else { &text.uuid.0 };
        let sides = [text.download.as_ref(), text.upload.as_ref()].map(|s| s.map(|s| &s.0.measurements));
        let all =
            [(Source::Ndt7, sides[0]), (Source::Ndt7, sides[1]), (Source::TcpInfo, Some(&text.snapshots))];
        for (source, measurements) in all {
            let Some(measurements) = measurements else { continue };
            let Some((mut t, series)) = row(source, rows + 1, &measurements.0) else { continue };
            rows += 1;
            t.from = end(&text.server_ip, text.server_port);
            t.to = end(&text.client_ip, text.client_port);
            if t.from.is_empty() {
                t.from.clone_from(name);
            }
            each(t, series);
        }
        if let Some(info) = text.info.take().filter(|i| i.0.snd_cwnd.0.is_some()) {
            let pushed = alone
                .push(Measurement { at: text.at, info: Some(info), ..Measurement::default() }, "samples");
            if let Err(why) = pushed {
                done = Err(InputError::whole(why));
                break;
            }
        }
    }
    if let Some((t, series)) = row(Source::TcpInfo, rows + 1, &alone.0) {
        rows += 1;
        each(t, series);
    }
    done?;
    if rows == 0 {
        return Err(InputError::whole(
            "found no TCPInfo with SndCwnd and a time, expected ServerMeasurements of NDT7 or Snapshots of tcp-info",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Transfer> {
        let mut all = Vec::new();
        replay(text.as_bytes(), |t, _| all.push(t)).expect("valid");
        all
    }

    /// A sender that doubles until it loses; in JSON, with numbers as text if `quoted`, as exports write
    /// them.
    fn snapshots(quoted: bool, elapsed: bool) -> Vec<String> {
        let windows = [
            (10, 2_147_483_647_u64, 0),
            (40, 2_147_483_647, 0),
            (160, 2_147_483_647, 0),
            (80, 80, 9),
            (81, 80, 9),
        ];
        let n = |n: u64| if quoted { format!("\"{n}\"") } else { n.to_string() };
        let one = |(i, (cwnd, ssthresh, lost)): (usize, (u64, u64, u64))| {
            let i = i as u64;
            let time = if elapsed { format!("\"ElapsedTime\":{},", n(i * 250_000)) } else { String::new() };
            format!(
                "{{\"Timestamp\":\"2024-05-01T12:00:0{}.{:03}Z\",\"TCPInfo\":{{{time}\"SndCwnd\":{},\"SndSsThresh\":{},\
                 \"SndMSS\":{},\"RTT\":{},\"MinRTT\":{},\"BytesAcked\":{},\"TotalRetrans\":{}}}}}",
                i / 4,
                i % 4 * 250,
                n(cwnd),
                n(ssthresh),
                n(1400),
                n(41_000),
                n(40_000),
                n(i * 300_000),
                n(lost)
            )
        };
        windows.into_iter().enumerate().map(one).collect()
    }

    /// All forms of the same connection give the same answer, and none is certain.
    #[test]
    fn measurements_rows_and_snapshots_give_the_same_answer() {
        let with_ends = |s: String| {
            format!("{{\"ServerIP\":\"192.0.2.1\",\"ServerPort\":443,\"ClientIP\":\"198.51.100.7\",{s}}}")
        };
        let of = |quoted, elapsed| snapshots(quoted, elapsed).join(",");
        let ndt7 = with_ends(format!("\"Download\":{{\"ServerMeasurements\":[{}]}}", of(false, true)));
        let export = format!(
            "{{\"id\":\"a\",\"raw\":{}}}",
            with_ends(format!(
                "\"Download\":{{\"ServerMeasurements\":[{}]}},\"Upload\":null",
                of(true, true)
            ))
        );
        let info = format!("{{\"UUID\":\"b\",\"Snapshots\":[{}]}}", of(false, false));
        let alone = format!("{{\"Metadata\":{{\"UUID\":\"c\"}}}}\n{}\n", snapshots(false, false).join("\n"));
        let first = &rows(&ndt7)[0];
        let exit = first.exit.as_ref().expect("an exit");
        assert_eq!((exit.time_s, exit.cwnd_bytes, exit.evidence.as_str()), (0.75, 160 * 1400, "loss"));
        assert_eq!((first.from.as_str(), first.certain), ("192.0.2.1:443", false));
        assert!(first.caveats.iter().any(|c| c.contains("250 ms apart")), "{:?}", first.caveats);
        for (text, source) in [(&export, Source::Ndt7), (&info, Source::TcpInfo), (&alone, Source::TcpInfo)] {
            let all = rows(text);
            assert_eq!((all.len(), all[0].source), (1, source), "{text}");
            assert_eq!((&all[0].exit, all[0].bytes, all[0].class), (&first.exit, first.bytes, first.class));
        }
        // Lines of an export: one row each.
        let both = rows(&format!("{ndt7}\n{export}\n{info}\n"));
        assert_eq!(both.iter().map(|t| t.connection).collect::<Vec<_>>(), [1, 2, 3]);
        for (text, says) in
            [("{\"Download\":", "line 1: "), ("{\"TCPInfo\":{}}", "found no TCPInfo with SndCwnd")]
        {
            let e = replay(text.as_bytes(), |_, _| {}).expect_err("refused").to_string();
            assert!(e.contains(says), "{e}");
        }
    }
}
