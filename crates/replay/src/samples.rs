//! Sampled windows: what `ss`, flent, M-Lab, iperf3 and the metrics of qlog contain. Nothing is known between
//! two samples, and without acknowledgements no startup can be predicted.

use crate::clock;
use crate::error::InputError;
use crate::infer::{Evidence, ExitEstimate, FLAT, NoExit, STILL_ROUNDS};
use crate::limits::{BoundedVec, Held, Lines, Number, Tokens, Word};
use crate::transfer::{ExitClass, ExitRecord, Source, Transfer};
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use slowstart::units::{Bytes, Instant, Span};
use slowstart_study::measured::{self, Ended};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, Read};

/// Thresholds from here on mean that none is set (in the kernel, 2^31 - 1 segments).
const INFINITE: u64 = 0x7fff_ff00;
/// Maximum value of a sample that is plausible.
pub(crate) const MOST: u64 = 1 << 50;
/// Payload of a full segment if the file does not state it.
pub(crate) const MSS: u64 = 1448;

/// State of a connection at one moment.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time since the first sample; in a [`Series`] since the transfer began.
    pub at: Instant,
    /// The congestion window, in bytes.
    pub cwnd: Bytes,
    /// Slow-start threshold, if one is set.
    pub ssthresh: Option<Bytes>,
    /// The newest or smoothed RTT.
    pub rtt: Option<Span>,
    /// The least RTT so far; `None` if the file does not state it.
    pub min_rtt: Option<Span>,
    /// Payload bytes acknowledged so far; of iperf3 and nuttcp those that the side that counts has written or
    /// received. `None` if the file does not state them.
    pub delivered: Option<Bytes>,
    /// Packets retransmitted so far.
    pub retransmitted: u64,
}

/// The samples of a transfer from its begin on, as [`crate::fit::sampled`] takes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Payload of a full segment.
    pub mss: Bytes,
    /// The samples in order of time, of which the transfer began at zero. All state what was delivered.
    pub samples: Vec<Sample>,
    /// True if the side that sends counted the bytes: those that were written to the socket. Otherwise the
    /// side that receives counted them.
    pub written: bool,
    /// True if each window is that of the end of its interval.
    pub windows: bool,
    /// How long the connection took to be established; `None` if the file does not state it.
    pub handshake: Option<Span>,
}

impl Series {
    /// The initial window, in bytes: ten segments, or the first window if that is less.
    pub(crate) fn iw(&self) -> u64 {
        self.samples.first().map_or(0, |s| (self.mss.0 * 10).min(s.cwnd.0))
    }

    /// The number of samples that were certainly taken in slow start.
    pub(crate) fn growing(&self) -> usize {
        if !self.windows {
            return 0;
        }
        let most = || {
            let most = self.samples.iter().map(|s| s.cwnd).max().unwrap_or_default();
            self.samples.iter().find(|s| s.cwnd >= most).map_or(Instant::ZERO, |s| s.at)
        };
        let until = find(&self.samples).map_or_else(|_| most(), |found| found.1);
        self.samples.partition_point(|s| s.at <= until)
    }

    /// What the socket held beside what was delivered when slow start ended, in bytes.
    pub(crate) fn buffered(&self) -> u64 {
        let acknowledged = |s: &Sample| s.cwnd.0.saturating_sub(self.iw());
        let held = |s: &Sample| s.delivered.unwrap_or_default().0.saturating_sub(acknowledged(s));
        self.samples[..self.growing()].iter().map(held).max().unwrap_or_default()
    }

    /// What had been delivered at each sample, in bytes: at least and at most.
    ///
    /// The receiver's count is taken as it is. What was written to a socket is more than what was delivered.
    /// In slow start a window grows by what is acknowledged, and so tells what was delivered. From then on
    /// the sender keeps its buffer full, to one write; the buffer held so much when slow start ended, and has
    /// grown at most as the window did.
    pub fn delivered(&self) -> Vec<(u64, u64)> {
        let counted = |s: &Sample| s.delivered.unwrap_or_default().0;
        if !self.written {
            return self.samples.iter().map(|s| (counted(s), counted(s))).collect();
        }
        let (growing, iw, buffer) = (self.growing(), self.iw(), self.buffered());
        let top = self.samples[..growing].iter().map(|s| s.cwnd.0).max().unwrap_or_default().max(1);
        let writes =
            self.samples.windows(2).skip(growing).map(|w| counted(&w[1]).saturating_sub(counted(&w[0])));
        let write = writes.max().unwrap_or_default();
        let (mut least, mut most, mut peak) = (0, 0, top);
        let mut each = |(i, s): (usize, &Sample)| {
            peak = peak.max(s.cwnd.0);
            if i < growing {
                least = least.max(s.cwnd.0.saturating_sub(iw));
                most = least;
            } else {
                let held = slowstart::units::mul_div(buffer, peak, top);
                least = least.max(counted(s).saturating_sub(held.saturating_add(write)));
                most = most
                    .max(counted(s).saturating_sub(buffer).saturating_add(write))
                    .min(counted(s))
                    .max(least);
            }
            (least, most)
        };
        self.samples.iter().enumerate().map(&mut each).collect()
    }
}

/// The end of slow start in samples: the exit at the first sample after it, and the time of the sample
/// before.
fn find(samples: &[Sample]) -> Result<(ExitEstimate, Instant), NoExit> {
    let (mut best, mut reached) = (Bytes::ZERO, 0);
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
        let rtt = s.rtt.or(s.min_rtt).unwrap_or(Span::millis(100)).max(Span(1));
        // As in a capture: the growth that a flat round trip may have, over the round trips since the maximum
        // was reached.
        let rounds = (s.at.since(samples[reached].at).0 / rtt.0).max(1);
        if s.cwnd > best + (best / 10).max(best.scale(FLAT.saturating_mul(rounds), 100)) {
            (grew, best, reached, flat_since) = (true, s.cwnd, i, None);
            continue;
        }
        // Without a threshold: no growth in two round trips and three samples.
        let since = *flat_since.get_or_insert(i);
        if grew && i >= since + 3 && s.at.since(samples[since].at) > rtt * 2 && s.ssthresh.is_none() {
            let flat = &samples[since - 1];
            let last = samples[since..].iter().take_while(|s| s.cwnd == flat.cwnd).last().unwrap_or(flat);
            if last.at.since(flat.at) > rtt * u64::from(STILL_ROUNDS) {
                return Err(NoExit::LimitedOtherwise);
            }
            let earlier = samples[since.saturating_sub(2)].at;
            return Ok((
                ExitEstimate { at: flat.at, cwnd: best, evidence: Evidence::GrowthStopped },
                earlier,
            ));
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
pub fn transfer(source: Source, number: u64, mss: Bytes, samples: &[Sample]) -> Transfer {
    with_exit(source, number, mss, samples, find(samples))
}

/// The same of samples without windows.
pub(crate) fn without_windows(source: Source, number: u64, mss: Bytes, samples: &[Sample]) -> Transfer {
    with_exit(source, number, mss, samples, Err(NoExit::NoWindow))
}

fn with_exit(
    source: Source,
    number: u64,
    mss: Bytes,
    samples: &[Sample],
    found: Result<(ExitEstimate, Instant), NoExit>,
) -> Transfer {
    let mut t = Transfer::new(source, number, mss);
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
    let median = slowstart_study::stats::quantile(&values, 0.5).filter(|m| *m > 0.0);
    t.median_bps = median.map(|m| m * 8.0);
    t.capacity_by_throughput_s = median.and_then(|m| rates.iter().find(|r| r.1 >= m)).map(|r| seconds(r.0));
    t.capacity_time_s = t.capacity_by_throughput_s;
    if let (Ok((f, _)), Some(median), Some(rtt)) = (&found, median, least) {
        let reached = f.cwnd.0 as f64 / rtt.as_secs_f64().max(1e-9) > median;
        let ended = Ended { at: Span(f.at.0).as_secs_f64(), by_congestion: f.evidence.is_congestion() };
        t.class = measured::class(Some(ended), reached.then_some(0.0), t.first_loss_time_s).into();
    }
    if let Ok((f, after)) = found {
        t.caveats.push(format!(
            "from samples: slow start ended between {:.3} and {:.3} s",
            seconds(after),
            seconds(f.at)
        ));
    }
    t.caveats.push("samples have no acknowledgements: no startup can be predicted".to_string());
    let gaps: Vec<f64> = samples.windows(2).map(|w| w[1].at.since(w[0].at).as_secs_f64()).collect();
    let rtt = least.map_or(0.0, Span::as_secs_f64);
    if let Some(gap) = slowstart_study::stats::quantile(&gaps, 0.5).filter(|g| *g > 2.0 * rtt) {
        t.caveats.push(format!(
            "coarse: samples are {:.0} ms apart, so that the window may have been larger between two of them",
            gap * 1e3
        ));
    }
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
#[serde(default)]
struct Point {
    t: Number,
    tcp_cwnd: Number,
    tcp_ssthresh: Number,
    tcp_rtt: Number,
}

/// The time since the first sample, of two times in seconds. In microseconds: a double is no more precise if
/// they count from 1970.
fn since(now: f64, begin: f64) -> Instant {
    Instant((((now - begin).max(0.0) * 1e6).round() as u64).saturating_mul(1000))
}

/// The row of a series of flent; `None` if it has no windows.
fn series(name: &str, number: u64, points: &[Point]) -> Option<Transfer> {
    let begin = points.iter().filter_map(|p| p.t.real()).reduce(f64::min).unwrap_or(0.0);
    let sample = |p: &Point| {
        Some(Sample {
            at: since(p.t.real()?.min(1e12), begin),
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
    let mut t = transfer(Source::Flent, number, Bytes(MSS), &samples);
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

/// Memory of a socket beside its samples and the names of its ends: its place in a tree, and room for samples
/// to come.
pub(crate) const SOCKET: usize = 512;

/// The connections of an `ss` file while it is read.
#[derive(Default)]
struct Sockets {
    all: BTreeMap<(String, String), (u64, Vec<Sample>)>,
    held: Held,
    now: Option<f64>,
    begin: Option<f64>,
    ends: Option<(String, String)>,
    /// True if a time has a fraction of a second.
    finer: bool,
}

/// A line without the escape sequences that `watch` writes to a terminal.
fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return line.into();
    }
    let mut parts = line.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = |c: char| c.is_ascii_alphabetic() || c == '~';
        out.push_str(part.find(end).map_or("", |at| &part[at + 1..]));
    }
    out.into()
}

impl Sockets {
    fn on_line(&mut self, number: u64, line: &str) -> Result<(), InputError> {
        let line = &plain(line);
        let mut line = line.as_ref();
        if let Some((t, rest)) = clock::leading(line) {
            if self.now.is_some_and(|before| t + 1.0 < before) {
                let why = format!("found the time {t}, expected no less than in the line before");
                return Err(InputError::line(number, why));
            }
            self.now = Some(t);
            self.begin = self.begin.or(self.now);
            self.finer |= t.fract() != 0.0;
            line = rest;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        // State (absent if `ss` was called with one), two queues, two addresses; with -O, more on the same
        // line.
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
            expected(
                "a time, expected one at the begin of the line or in a line before: date +%s.%N; ss -tin",
            )
        })?;
        let ends = self
            .ends
            .clone()
            .ok_or_else(|| expected("its addresses, expected a line with them before it"))?;
        let cwnd = count("cwnd:")
            .ok_or_else(|| InputError::line(number, "cwnd: found no number, expected segments"))?;
        let mss = count("mss:").filter(|m| *m > 0).unwrap_or(MSS);
        let total = words.iter().find_map(|w| w.strip_prefix("retrans:")?.split_once('/')?.1.parse().ok());
        let new = if self.all.contains_key(&ends) { 0 } else { SOCKET + ends.0.len() + ends.1.len() };
        self.held.add(new + size_of::<Sample>(), "samples").map_err(|e| InputError::line(number, e))?;
        let entry = self.all.entry(ends).or_insert_with(|| (mss, Vec::new()));
        entry.1.push(Sample {
            at: since(now, begin),
            cwnd: segments(cwnd, mss),
            ssthresh: count("ssthresh:").and_then(|n| threshold(n, mss)),
            rtt: ms("rtt:"),
            min_rtt: ms("minrtt:"),
            delivered: count("bytes_acked:").map(Bytes),
            retransmitted: total.unwrap_or(0),
        });
        Ok(())
    }
}

/// Reads repeated output of `ss -tin`. The time stands at the begin of each line, or in a line before, in any
/// form that `date`, `ts` and `watch` write. The rows are those of the lines before the first invalid one.
pub fn ss(input: impl Read, mut each: impl FnMut(Transfer)) -> Result<(), InputError> {
    let mut sockets = Sockets::default();
    let done = Lines::new(input).try_for_each(|line| {
        let (number, line) = line?;
        sockets.on_line(number, &line)
    });
    for (i, ((local, peer), (mss, samples))) in sockets.all.iter().enumerate() {
        let mut t = transfer(Source::Ss, i as u64 + 1, Bytes(*mss), samples);
        (t.from, t.to) = (local.clone(), peer.clone());
        if !sockets.finer && samples.len() > 1 {
            t.caveats.push("times are whole seconds: several samples may have the same".to_string());
        }
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
        let r: slowstart_study::record::Row = serde_json::from_str(&line)
            .map_err(|e| InputError::line(number, format!("found no row of schema 1: {e}")))?;
        rows += 1;
        let mut t = Transfer::new(Source::Rows, rows, Bytes(r.iw_bytes / 10));
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

    /// Samples that are several round trips apart: congestion avoidance adds more than a tenth between two of
    /// them, slow start far more. A window that stays the same to the byte is not used up, so that its end of
    /// growth is no exit.
    #[test]
    fn growth_between_distant_samples_is_judged_per_round_trip() {
        let exit = |windows: &[u64]| {
            let windows: Vec<_> = windows.iter().map(|w| (*w, None, 0)).collect();
            let t =
                read!(ss, ss_text(&windows).replace("rtt:40.5", "rtt:25").replace("minrtt:40", "minrtt:25"));
            let t = t.expect("samples").remove(0);
            t.exit.map(|e| (e.cwnd_bytes, (e.time_s * 10.0).round() as u64)).ok_or(t.unclear)
        };
        // CUBIC: four round trips between two samples.
        assert_eq!(exit(&[40, 320, 2032, 2294, 2565, 2704, 2710]), Ok((2_032_000, 2)));
        let otherwise = Err(Some("limited by something other than cwnd".to_string()));
        assert_eq!(exit(&[40, 240, 3616, 5163, 5163, 5163, 5163, 5163]), otherwise);
    }

    #[test]
    fn errors_name_what_is_missing() {
        assert!(read!(ss, "ESTAB 0 0 1.2.3.4:5 6.7.8.9:10\n cwnd:10 mss:1448\n").is_err_and(|e| {
            e.to_string().starts_with("line 2: ") && e.to_string().contains("date +%s.%N")
        }));
        assert!(read!(flent, "{\"raw_values\":{}}").is_err_and(|e| e.to_string().contains("--socket-stats")));
        assert!(read!(rows, "{}\n").is_err_and(|e| e.to_string().starts_with("line 1: ")));
    }

    /// Every form of a time gives the same row: in a line of its own, at the begin of each line, and as watch
    /// writes it.
    #[test]
    fn every_form_of_a_time_gives_the_same_row() {
        let windows =
            [(10, None, 0), (40, None, 0), (160, None, 0), (170, Some(160), 0), (175, Some(160), 0)];
        let text = ss_text(&windows);
        let want = read!(ss, text).expect("samples");
        // The texts of ss_text are a tenth of a second apart.
        let stamped = |of: &dyn Fn(usize) -> String, every: bool| {
            let (mut out, mut n) = (Vec::new(), 0);
            for line in text.lines() {
                if line.starts_with("17") {
                    n += 1;
                    out.extend((!every).then(|| of(n - 1)));
                } else if every {
                    out.push(format!("{} {line}", of(n - 1)));
                } else {
                    out.push(line.to_string());
                }
            }
            out.join("\n") + "\n"
        };
        for (of, every) in [
            (&(|n| format!("1700000000.{n}")) as &dyn Fn(usize) -> String, true),
            (&|n| format!("0.{n}"), true),
            (&|n| format!("Nov 14 22:13:20.{n}"), true),
            (&|n| format!("[2023-11-14T22:13:20.{n}]"), true),
            (&|n| format!("2023-11-14 22:13:20.{n}"), true),
            (&|n| format!("1700000000{n}00000000"), false),
            (&|n| format!("Tue Nov 14 22:13:20.{n} UTC 2023"), false),
            (&|n| format!("22:13:20.{n}"), false),
            (&|n| format!("\u{1b}[HEvery 0.1s: ss -tin   host: Tue Nov 14 22:13:20.{n} 2023\u{1b}[K"), false),
        ] {
            let found = read!(ss, stamped(of, every)).expect("samples");
            let exit = |t: &Transfer| t.exit.clone().expect("an exit");
            let (a, b) = (exit(&found[0]), exit(&want[0]));
            assert_eq!((found.len(), &a), (1, &b), "{}", of(1));
            assert_eq!(found[0].bytes, want[0].bytes);
            assert_eq!(found[0].capacity_time_s, want[0].capacity_time_s, "{}", of(1));
            assert_eq!((&found[0].caveats, &found[0].from), (&want[0].caveats, &want[0].from), "{}", of(1));
            let kind = crate::open::detect(Box::new(std::io::Cursor::new(stamped(of, every).into_bytes())));
            assert_eq!(kind.expect("known").0, crate::open::Kind::Ss, "{}", of(1));
        }
        let seconds = read!(ss, stamped(&|n| format!("Tue Nov 14 22:13:2{n} 2023"), false)).expect("samples");
        assert!(seconds[0].caveats.iter().any(|c| c.contains("whole seconds")), "{:?}", seconds[0].caveats);
        assert!(seconds[0].caveats.iter().any(|c| c.contains("1000 ms apart")), "{:?}", seconds[0].caveats);
    }
}
