//! Sampled windows: what `ss`, NDT7, flent and the metrics of qlog contain. Nothing is known between two samples, and
//! without acknowledgements no startup can be predicted.

use crate::error::InputError;
use crate::infer::{Evidence, ExitEstimate, NoExit};
use crate::limits::{BoundedVec, Lines, MOST_HELD, Number, Tokens, Word, too_much};
use crate::transfer::{ExitClass, ExitRecord, Transfer};
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use slowstart::units::{Bytes, Instant, Span};
use slowstart_lab::eval::{self, Ended};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read};

/// Thresholds from here on mean that none is set (in the kernel, 2^31 - 1 segments).
const INFINITE: u64 = 0x7fff_ff00;
/// Maximum value of a sample that is plausible.
const MOST: u64 = 1 << 50;
/// Payload of a full segment if the file does not state it.
pub(crate) const MSS: u64 = 1448;

/// State of a connection at one moment.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time since the first sample.
    pub at: Instant,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold, if one is set.
    pub ssthresh: Option<Bytes>,
    /// The newest or smoothed RTT.
    pub rtt: Option<Span>,
    /// Minimum RTT.
    pub min_rtt: Option<Span>,
    /// Payload bytes acknowledged.
    pub delivered: Option<Bytes>,
    /// Packets retransmitted so far.
    pub retransmitted: u64,
}

/// The end of slow start in samples: the exit at the first sample after it, and the time of the sample before.
fn find(samples: &[Sample]) -> Result<(ExitEstimate, Instant), NoExit> {
    let mut best = Bytes::ZERO;
    let mut flat_since: Option<usize> = None;
    let mut grew = false;
    for (i, s) in samples.iter().enumerate() {
        let Some(before) = i.checked_sub(1).map(|b| &samples[b]) else {
            if s.ssthresh.is_some() {
                return Err(NoExit::BeganBefore);
            }
            best = s.cwnd;
            continue;
        };
        let lost = s.retransmitted > before.retransmitted;
        let found =
            |evidence| Ok((ExitEstimate { at: s.at, cwnd: best.max(before.cwnd), evidence }, before.at));
        if s.ssthresh.is_some() && before.ssthresh.is_none() {
            return found(if lost { Evidence::Loss } else { Evidence::Threshold });
        }
        if lost && s.cwnd < before.cwnd {
            return found(Evidence::Loss);
        }
        if s.cwnd > best + best / 10 {
            (grew, best, flat_since) = (true, s.cwnd, None);
            continue;
        }
        // Without a threshold: no growth in two round trips and three samples.
        let since = *flat_since.get_or_insert(i);
        let rtt = s.rtt.or(s.min_rtt).unwrap_or(Span::millis(100));
        if grew && i >= since + 3 && s.at.since(samples[since].at) > rtt * 2 && s.ssthresh.is_none() {
            let at = samples[since - 1].at;
            let earlier = samples[since.saturating_sub(2)].at;
            return Ok((ExitEstimate { at, cwnd: best, evidence: Evidence::GrowthStopped }, earlier));
        }
    }
    Err(if samples.len() < 3 {
        NoExit::TooFew
    } else if grew {
        NoExit::StillGrowing
    } else {
        NoExit::NoGrowth
    })
}

/// The row of a connection from its samples.
pub fn transfer(source: &str, number: u64, mss: Bytes, samples: &[Sample]) -> Transfer {
    let mut t = Transfer::new(source, number, mss);
    let found = find(samples);
    t.observe(found.map(|f| f.0), ExitClass::Unknown);
    let seconds = |at: Instant| Span(at.0).as_secs_f64();
    if let (Some(first), Some(last)) = (samples.first(), samples.last()) {
        t.duration_s = seconds(last.at);
        t.iw_bytes = first.cwnd.0;
        t.retransmitted_packets = last.retransmitted;
    }
    let least = samples.iter().filter_map(|s| s.min_rtt.or(s.rtt)).min();
    let most = samples.iter().filter_map(|s| s.rtt).max();
    t.min_rtt_s = least.map(Span::as_secs_f64);
    t.peak_delay_s = least.zip(most).map(|(l, m)| (m - l).as_secs_f64());
    t.bytes = samples.iter().filter_map(|s| s.delivered).max().unwrap_or_default().0;
    let loss = samples.windows(2).find(|w| w[1].retransmitted > w[0].retransmitted);
    t.first_loss_time_s = loss.map(|w| seconds(w[1].at));
    // The throughput between samples, as in the second heuristic of the thesis (5.2.2).
    let rates: Vec<(Instant, f64)> = samples
        .windows(2)
        .filter_map(|w| {
            let bytes = w[1].delivered? - w[0].delivered?;
            let time = w[1].at.since(w[0].at).as_secs_f64();
            (time > 0.0).then(|| (w[1].at, bytes.0 as f64 / time))
        })
        .collect();
    let values: Vec<f64> = rates.iter().map(|r| r.1).collect();
    let median = slowstart_lab::stats::quantile(&values, 0.5).filter(|m| *m > 0.0);
    t.median_bps = median.map(|m| m * 8.0);
    t.capacity_by_throughput_s = median.and_then(|m| rates.iter().find(|r| r.1 >= m)).map(|r| seconds(r.0));
    t.capacity_time_s = t.capacity_by_throughput_s;
    if let (Ok((f, _)), Some(median), Some(rtt)) = (&found, median, least) {
        let reached = f.cwnd.0 as f64 / rtt.as_secs_f64().max(1e-9) > median;
        let ended = Ended { at: Span(f.at.0).as_secs_f64(), by_congestion: f.evidence.is_congestion() };
        t.class = eval::class(Some(ended), reached.then_some(0.0), t.first_loss_time_s).into();
    }
    if let Ok((f, after)) = found {
        t.caveats.push(format!(
            "from samples: slow start ended between {:.3} and {:.3} s",
            seconds(after),
            seconds(f.at)
        ));
    }
    t.caveats.push("samples have no acknowledgements: no startup can be predicted".to_string());
    t
}

/// Bytes of so many segments.
pub(crate) fn segments(n: u64, mss: u64) -> Bytes {
    Bytes(n.saturating_mul(mss))
}

/// A slow-start threshold in segments, if one is set.
pub(crate) fn threshold(n: u64, mss: u64) -> Option<Bytes> {
    (n > 0 && n < INFINITE).then(|| segments(n, mss))
}

fn invalid(e: &serde_json::Error) -> InputError {
    InputError::line(e.line() as u64, format!("found no valid JSON: {e}"))
}

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
}

#[derive(Deserialize)]
struct Measurement {
    #[serde(default, rename = "TCPInfo")]
    info: Option<TcpInfo>,
    #[serde(default, rename = "BBRInfo")]
    bbr: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Side {
    #[serde(default, rename = "ServerMeasurements")]
    measurements: Option<BoundedVec<Measurement>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Ndt7 {
    #[serde(default)]
    download: Option<Side>,
    #[serde(default)]
    upload: Option<Side>,
    #[serde(default, rename = "ServerIP")]
    server_ip: Word,
    #[serde(default)]
    server_port: Number,
    #[serde(default, rename = "ClientIP")]
    client_ip: Word,
    #[serde(default)]
    client_port: Number,
}

/// Reads an NDT7 measurement: the server's `TCPInfo`, about three times per second.
pub fn ndt7(input: impl Read, mut each: impl FnMut(Transfer)) -> Result<(), InputError> {
    let text = BufReader::new(Tokens::new(input));
    let file: Ndt7 = serde_json::from_reader(text).map_err(|e| invalid(&e))?;
    let mut rows = 0;
    for side in [file.download, file.upload] {
        let Some(BoundedVec(all)) = side.and_then(|s| s.measurements) else { continue };
        let mut samples = Vec::new();
        let mut mss = MSS;
        for info in all.iter().filter_map(|m| m.info.as_ref()) {
            let (Some(at), Some(cwnd)) = (info.elapsed_time.below(MOST), info.snd_cwnd.below(MOST)) else {
                continue;
            };
            mss = info.snd_mss.below(MOST).filter(|m| *m > 0).unwrap_or(mss);
            let span = |us: Number| us.below(MOST).map(Span::micros);
            samples.push(Sample {
                at: Instant(at * 1000),
                cwnd: segments(cwnd, mss),
                ssthresh: info.snd_ss_thresh.below(MOST).and_then(|n| threshold(n, mss)),
                rtt: span(info.rtt),
                min_rtt: span(info.min_rtt),
                delivered: info.bytes_acked.below(MOST).map(Bytes),
                retransmitted: info.total_retrans.below(MOST).unwrap_or(0),
            });
        }
        samples.sort_by_key(|s| s.at);
        rows += 1;
        let mut t = transfer("ndt7", rows, Bytes(mss), &samples);
        let end = |ip: &Word, port: Number| format!("{}:{}", ip.0, port.below(1 << 16).unwrap_or(0));
        t.from = end(&file.server_ip, file.server_port);
        t.to = end(&file.client_ip, file.client_port);
        if all.iter().any(|m| m.bbr.is_some()) {
            t.caveats.push("the sender ran BBR: its startup has no slow-start threshold".to_string());
        }
        each(t);
    }
    if rows == 0 {
        return Err(InputError::whole("found no Download or Upload with ServerMeasurements, expected one"));
    }
    Ok(())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Point {
    t: Number,
    tcp_cwnd: Number,
    tcp_ssthresh: Number,
    tcp_rtt: Number,
}

/// The row of a series of flent; `None` if it has no windows.
fn series(name: &str, number: u64, points: &[Point]) -> Option<Transfer> {
    let begin = points.iter().filter_map(|p| p.t.real()).reduce(f64::min).unwrap_or(0.0);
    let sample = |p: &Point| {
        Some(Sample {
            at: Instant(((p.t.real()?.min(1e12) - begin).max(0.0) * 1e9) as u64),
            cwnd: segments(p.tcp_cwnd.below(MOST)?, MSS),
            ssthresh: p.tcp_ssthresh.below(MOST).and_then(|n| threshold(n, MSS)),
            rtt: p.tcp_rtt.real().filter(|ms| *ms < 1e9).map(|ms| Span((ms * 1e6) as u64)),
            ..Sample::default()
        })
    };
    let mut samples: Vec<Sample> = points.iter().filter_map(sample).collect();
    if samples.is_empty() {
        return None;
    }
    samples.sort_by_key(|s| s.at);
    let mut t = transfer("flent", number, Bytes(MSS), &samples);
    t.from = name.to_string();
    t.start_s = begin;
    t.caveats.push("flent does not state the size of a segment: 1448 bytes are assumed".to_string());
    Some(t)
}

/// Reads a flent data file: the socket statistics of its TCP flows, if it has them.
pub fn flent(input: impl Read, mut each: impl FnMut(Transfer)) -> Result<(), InputError> {
    struct File<'a>(&'a mut dyn FnMut(String, Vec<Point>));
    struct RawValues<'a>(&'a mut dyn FnMut(String, Vec<Point>));
    impl<'de> Visitor<'de> for File<'_> {
        type Value = bool;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let mut found = false;
            while let Some(key) = map.next_key::<Word>()? {
                if key.0 == "raw_values" {
                    map.next_value_seed(RawValues(&mut *self.0))?;
                    found = true;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    impl<'de> serde::de::DeserializeSeed<'de> for RawValues<'_> {
        type Value = ();
        fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
            d.deserialize_map(self)
        }
    }
    impl<'de> Visitor<'de> for RawValues<'_> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("raw_values, an object of series")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<Word>()? {
                let points = map.next_value::<BoundedVec<Point>>()?;
                (self.0)(name.0, points.0);
            }
            Ok(())
        }
    }
    let mut rows = 0;
    let mut add = |name: String, points: Vec<Point>| {
        if let Some(t) = series(&name, rows + 1, &points) {
            rows += 1;
            each(t);
        }
    };
    let mut d = serde_json::Deserializer::from_reader(BufReader::new(Tokens::new(input)));
    let found = d.deserialize_map(File(&mut add)).map_err(|e| invalid(&e))?;
    if !found {
        return Err(InputError::whole("raw_values: found none, expected an object"));
    }
    if rows == 0 {
        return Err(InputError::whole(
            "found no series with tcp_cwnd, expected one made with --socket-stats",
        ));
    }
    Ok(())
}

/// Seconds since 1970 of a line that is a time: `date +%s.%N`, or an ISO 8601 date and time (`date -Ins`).
fn time(line: &str) -> Option<f64> {
    let line = line.trim();
    if let Ok(t) = line.parse::<f64>() {
        return Some(t).filter(|t| (0.0..1e11).contains(t));
    }
    let (date, time) = line.split_once(['T', ' '])?;
    let mut ymd = date.splitn(3, '-').map(|n| n.parse::<i64>().ok());
    let (year, month, day) = (ymd.next()??, ymd.next()??, ymd.next()??);
    let time = time.trim_end_matches('Z');
    let (time, zone) = match time.rfind(['+', '-']) {
        Some(at) => (&time[..at], time[at..].replace(':', "")),
        None => (time, "+0000".to_string()),
    };
    let zone: i64 = zone.parse().ok()?;
    let mut hms = time.splitn(3, ':');
    let hour: f64 = hms.next()?.parse().ok()?;
    let minute: f64 = hms.next()?.parse().ok()?;
    let second: f64 = hms.next()?.replace(',', ".").parse().ok()?;
    if !(1970..3000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970 in the proleptic Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    let zone_s = (zone / 100 * 60 + zone % 100) as f64 * 60.0;
    Some(days as f64 * 86_400.0 + hour * 3600.0 + minute * 60.0 + second - zone_s).filter(|t| *t >= 0.0)
}

/// The connections of an `ss` file while it is read.
#[derive(Default)]
struct Sockets {
    all: BTreeMap<(String, String), (u64, Vec<Sample>)>,
    held: usize,
    now: Option<f64>,
    begin: Option<f64>,
    ends: Option<(String, String)>,
}

impl Sockets {
    fn on_line(&mut self, number: u64, line: &str) -> Result<(), InputError> {
        if let Some(t) = time(line) {
            if self.now.is_some_and(|before| t + 1.0 < before) {
                let why = format!("found the time {t}, expected no less than in the line before");
                return Err(InputError::line(number, why));
            }
            self.now = Some(t);
            self.begin = self.begin.or(self.now);
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        // State (absent if `ss` was called with one), two queues, two addresses; with -O, more on the same line.
        let address = |w: &str| w.rsplit_once(':').is_some_and(|(_, p)| p == "*" || p.parse::<u16>().is_ok());
        let stated = words.first().is_some_and(|w| w.parse::<u64>().is_err());
        if let [q1, q2, local, peer, ..] = words[usize::from(stated)..]
            && q1.parse::<u64>().is_ok()
            && q2.parse::<u64>().is_ok()
            && address(local)
            && address(peer)
        {
            self.ends = Some((local.to_string(), peer.to_string()));
        }
        if !line.contains("cwnd:") {
            return Ok(());
        }
        let value = |key: &str| {
            words.iter().find_map(|w| w.strip_prefix(key)).map(|v| v.split(['/', ',']).next().unwrap_or(v))
        };
        let count = |key: &str| value(key).and_then(|v| v.parse::<u64>().ok());
        let ms = |key: &str| {
            let v: f64 = value(key)?.parse().ok()?;
            (0.0..1e9).contains(&v).then_some(Span((v * 1e6) as u64))
        };
        let expected = |what: &str| InputError::line(number, format!("found a socket without {what}"));
        let (now, begin) = self.now.zip(self.begin).ok_or_else(|| {
            expected("a time, expected a line with the time before it: date +%s.%N; ss -tin")
        })?;
        let ends = self
            .ends
            .clone()
            .ok_or_else(|| expected("its addresses, expected a line with them before it"))?;
        let cwnd = count("cwnd:")
            .ok_or_else(|| InputError::line(number, "cwnd: found no number, expected segments"))?;
        let mss = count("mss:").filter(|m| *m > 0).unwrap_or(MSS);
        let total = words.iter().find_map(|w| w.strip_prefix("retrans:")?.split_once('/')?.1.parse().ok());
        self.held += size_of::<Sample>();
        let entry = self.all.entry(ends).or_insert_with(|| {
            self.held += 256;
            (mss, Vec::new())
        });
        entry.1.push(Sample {
            at: Instant(((now - begin).max(0.0) * 1e9) as u64),
            cwnd: segments(cwnd, mss),
            ssthresh: count("ssthresh:").and_then(|n| threshold(n, mss)),
            rtt: ms("rtt:"),
            min_rtt: ms("minrtt:"),
            delivered: count("bytes_acked:").map(Bytes),
            retransmitted: total.unwrap_or(0),
        });
        if self.held > MOST_HELD {
            return Err(InputError::line(number, too_much("samples")));
        }
        Ok(())
    }
}

/// Reads repeated output of `ss -tin`, each after a line with the time: seconds (`date +%s.%N`) or ISO 8601. The rows are
/// those of the lines before the first invalid one.
pub fn ss(input: impl Read, mut each: impl FnMut(Transfer)) -> Result<(), InputError> {
    let mut sockets = Sockets::default();
    let done = Lines::new(input).try_for_each(|line| {
        let (number, line) = line?;
        sockets.on_line(number, &line)
    });
    for (i, ((local, peer), (mss, samples))) in sockets.all.iter().enumerate() {
        let mut t = transfer("ss", i as u64 + 1, Bytes(*mss), samples);
        (t.from, t.to) = (local.clone(), peer.clone());
        each(t);
    }
    done?;
    if sockets.all.is_empty() {
        return Err(InputError::whole("found no socket with cwnd:, expected the output of ss -tin"));
    }
    Ok(())
}

/// Reads rows of `slowstart compare`, for the exits that they state.
pub fn rows(input: impl Read, mut each: impl FnMut(Transfer)) -> Result<(), InputError> {
    let mut rows = 0;
    for line in Lines::new(input) {
        let (number, line) = line?;
        if line.trim().is_empty() {
            continue;
        }
        let r: slowstart_lab::record::Row = serde_json::from_str(&line)
            .map_err(|e| InputError::line(number, format!("found no row of schema 1: {e}")))?;
        rows += 1;
        let mut t = Transfer::new("rows", rows, Bytes(r.iw_bytes / 10));
        t.from = format!("{} on {}", r.startup, r.path);
        t.to = format!("run {}", r.run);
        t.duration_s = r.duration_s;
        t.bytes = r.size_bytes.unwrap_or(0);
        t.iw_bytes = r.iw_bytes;
        t.min_rtt_s = Some(r.base_rtt_s);
        t.peak_delay_s = Some(r.peak_queue_delay_s);
        t.packets = r.cost.packets;
        t.retransmitted_packets = r.retransmitted_packets;
        t.class = r.class.into();
        t.heuristic = "truth".to_string();
        t.capacity_time_s = r.capacity_time_s;
        t.capacity_by_latency_s = r.capacity_time_by_heuristic_s;
        t.first_loss_time_s = r.first_loss_time_s;
        t.exit = r.exit.as_ref().map(|e| ExitRecord {
            time_s: e.time_s,
            cwnd_bytes: e.detected_cwnd_bytes,
            evidence: Evidence::Recorded.words().to_string(),
        });
        t.unclear = r.exit.is_none().then(|| NoExit::StillGrowing.words().to_string());
        t.caveats = r.caveats;
        each(t);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a text by one of the readers, and its error.
    macro_rules! read {
        ($reader:ident, $text:expr) => {{
            let mut all = Vec::new();
            let done = $reader($text.as_bytes(), |t| all.push(t));
            done.map(|()| all)
        }};
    }

    fn ss_text(cwnds: &[(u64, Option<u64>, u64)]) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        for (i, (cwnd, ssthresh, resent)) in cwnds.iter().enumerate() {
            let threshold = ssthresh.map_or(String::new(), |s| format!(" ssthresh:{s}"));
            let _ = write!(
                text,
                "{}.{:03}\nState Recv-Q Send-Q Local Address:Port Peer Address:Port\n\
                 ESTAB 0 9000 192.0.2.1:443 198.51.100.1:50000\n\
                 \t cubic wscale:7,7 rto:204 rtt:40.5/2 mss:1000 cwnd:{cwnd}{threshold} bytes_acked:{} \
                 retrans:0/{resent} minrtt:40\n",
                1_700_000_000 + i / 10,
                i % 10 * 100,
                i * 100_000
            );
        }
        text
    }

    #[test]
    fn ss_samples_show_the_exit_by_the_threshold() {
        let text = ss_text(&[
            (10, None, 0),
            (40, None, 0),
            (160, None, 0),
            (170, Some(160), 0),
            (175, Some(160), 0),
        ]);
        let rows = read!(ss, text).expect("samples");
        let exit = rows[0].exit.as_ref().expect("an exit");
        assert_eq!((exit.cwnd_bytes, exit.evidence.as_str()), (160_000, "a threshold was set without loss"));
        assert!((exit.time_s - 0.3).abs() < 1e-6, "{exit:?}");
        // 160 kB in 40 ms is 4 MB/s, the median is 1 MB/s.
        assert_eq!(rows[0].class, ExitClass::ChokePoint);
        assert_eq!(read!(ss, text.replace("ESTAB ", "")).expect("samples"), rows);
        let lost = read!(ss, ss_text(&[(10, None, 0), (40, None, 0), (28, Some(28), 3)])).expect("samples");
        assert_eq!(lost[0].exit.as_ref().map(|e| e.evidence.as_str()), Some("loss"));
        let began = read!(ss, ss_text(&[(10, Some(9), 0), (11, Some(9), 0)])).expect("samples");
        assert_eq!(began[0].unclear.as_deref(), Some("began before the capture"));
    }

    #[test]
    fn errors_name_what_is_missing() {
        assert!(read!(ss, "ESTAB 0 0 1.2.3.4:5 6.7.8.9:10\n cwnd:10 mss:1448\n").is_err_and(|e| {
            e.to_string().starts_with("line 2: ") && e.to_string().contains("date +%s.%N")
        }));
        assert!(read!(ndt7, "{\"Download\":").is_err_and(|e| e.to_string().starts_with("line 1: ")));
        assert!(read!(flent, "{\"raw_values\":{}}").is_err_and(|e| e.to_string().contains("--socket-stats")));
        assert!(read!(rows, "{}\n").is_err_and(|e| e.to_string().starts_with("line 1: ")));
    }

    #[test]
    fn times_are_seconds_or_iso_dates() {
        assert_eq!(time("1714564800.5\n"), Some(1_714_564_800.5));
        assert_eq!(time("2024-05-01T14:00:00,500000000+02:00"), Some(1_714_564_800.5));
        assert_eq!(time("2024-05-01 12:00:00.5"), Some(1_714_564_800.5));
        assert_eq!(time("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!((time("ESTAB 0 0 a:1 b:2"), time("2024-13-01T00:00:00Z")), (None, None));
    }
}
