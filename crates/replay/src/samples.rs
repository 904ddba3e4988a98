//! Windows seen from time to time: what `ss`, NDT7, flent and metrics of qlog give. Between two samples nothing is
//! known, and no startup can be asked: there are no acknowledgements.

use crate::error::InputError;
use crate::infer::{Evidence, ExitEstimate, NoExit};
use crate::transfer::Transfer;
use serde_json::Value;
use slowstart::units::{Bytes, Instant, Span};
use slowstart_lab::eval::{self, Ended};
use std::collections::BTreeMap;

/// Thresholds above this are none (the kernel's infinity is 2^31 - 1 segments).
const INFINITE: u64 = 0x7fff_ff00;

/// A connection's state at a moment.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold, where one is set.
    pub ssthresh: Option<Bytes>,
    /// The newest or smoothed round trip.
    pub rtt: Option<Span>,
    /// The least.
    pub min_rtt: Option<Span>,
    /// Payload acknowledged.
    pub delivered: Option<Bytes>,
    /// Packets sent again so far.
    pub retransmitted: u64,
}

/// The sampled end of slow start: between which moments, and what told.
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
        // Without a threshold to look at: two round trips, and three samples, without growth.
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

/// The row of a connection's samples.
pub fn transfer(source: &str, number: u64, mss: Bytes, samples: &[Sample]) -> Transfer {
    let mut t = Transfer::new(source, number, mss);
    let found = find(samples);
    t.observe(found.map(|f| f.0));
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
    // Throughput between samples stands for the path's, as in the thesis' second heuristic.
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
        let ended = Ended { at: f.at, by_congestion: f.evidence.is_congestion() };
        t.class = eval::class(Some(ended), reached.then_some(Instant::ZERO), None);
    }
    if let Ok((f, after)) = found {
        t.caveats.push(format!(
            "seen in samples: it left between {:.3} and {:.3} s",
            seconds(after),
            seconds(f.at)
        ));
    }
    t.caveats.push("samples have no acknowledgements: no startup can be asked".to_string());
    t
}

fn segments(n: u64, mss: u64) -> Bytes {
    Bytes(n.saturating_mul(mss))
}

fn threshold(n: u64, mss: u64) -> Option<Bytes> {
    (n > 0 && n < INFINITE).then(|| segments(n, mss))
}

/// NDT7: the server's `TCPInfo`, some three times a second.
pub fn ndt7(text: &str) -> Result<Vec<Transfer>, InputError> {
    let file = json(text)?;
    let number = |v: &Value, key: &str| v.get(key).and_then(Value::as_u64);
    let mut rows = Vec::new();
    for side in ["Download", "Upload"] {
        let Some(all) = file.pointer(&format!("/{side}/ServerMeasurements")).and_then(Value::as_array) else {
            continue;
        };
        let mut samples = Vec::new();
        let mut mss = 1448;
        for m in all {
            let Some(info) = m.get("TCPInfo") else { continue };
            let (Some(at), Some(cwnd)) = (number(info, "ElapsedTime"), number(info, "SndCwnd")) else {
                continue;
            };
            mss = number(info, "SndMSS").filter(|m| *m > 0).unwrap_or(mss);
            let span = |key: &str| number(info, key).map(|us| Span(us.saturating_mul(1000)));
            samples.push(Sample {
                at: Instant(at.saturating_mul(1000)),
                cwnd: segments(cwnd, mss),
                ssthresh: number(info, "SndSsThresh").and_then(|n| threshold(n, mss)),
                rtt: span("RTT"),
                min_rtt: span("MinRTT"),
                delivered: number(info, "BytesAcked").map(Bytes),
                retransmitted: number(info, "TotalRetrans").unwrap_or(0),
            });
        }
        samples.sort_by_key(|s| s.at);
        let mut t = transfer("ndt7", rows.len() as u64 + 1, Bytes(mss), &samples);
        let end = |ip: &str, port: &str| {
            let ip = file.get(ip).and_then(Value::as_str).unwrap_or_default();
            format!("{ip}:{}", file.get(port).and_then(Value::as_u64).unwrap_or(0))
        };
        (t.from, t.to) = (end("ServerIP", "ServerPort"), end("ClientIP", "ClientPort"));
        if all.iter().any(|m| m.get("BBRInfo").is_some()) {
            t.caveats.push("the sender ran BBR: its startup has no slow-start threshold".to_string());
        }
        rows.push(t);
    }
    if rows.is_empty() {
        return Err(InputError::whole("found no Download or Upload with ServerMeasurements, expected one"));
    }
    Ok(rows)
}

/// flent: the socket statistics of TCP flows, where they were asked for.
pub fn flent(text: &str) -> Result<Vec<Transfer>, InputError> {
    let file = json(text)?;
    let series = file.get("raw_values").and_then(Value::as_object);
    let series = series.ok_or_else(|| InputError::whole("raw_values: found none, expected an object"))?;
    let mut rows = Vec::new();
    for (name, values) in series {
        let Some(values) = values.as_array() else { continue };
        let real =
            |v: &Value, key: &str| v.get(key).and_then(Value::as_f64).filter(|x| *x >= 0.0 && *x < 1e12);
        let begin = values.iter().filter_map(|v| real(v, "t")).reduce(f64::min).unwrap_or(0.0);
        let mss = 1448;
        let mut samples: Vec<Sample> = values
            .iter()
            .filter_map(|v| {
                let rtt = real(v, "tcp_rtt").map(|ms| Span((ms * 1e6) as u64));
                Some(Sample {
                    at: Instant(((real(v, "t")? - begin) * 1e9) as u64),
                    cwnd: segments(real(v, "tcp_cwnd")? as u64, mss),
                    ssthresh: real(v, "tcp_ssthresh").and_then(|n| threshold(n as u64, mss)),
                    rtt,
                    ..Sample::default()
                })
            })
            .collect();
        if samples.is_empty() {
            continue;
        }
        samples.sort_by_key(|s| s.at);
        let mut t = transfer("flent", rows.len() as u64 + 1, Bytes(mss), &samples);
        t.from.clone_from(name);
        t.start_s = begin;
        t.caveats.push("flent does not say how long a segment is: 1448 bytes are taken".to_string());
        rows.push(t);
    }
    if rows.is_empty() {
        return Err(InputError::whole(
            "found no series with tcp_cwnd, expected one made with --socket-stats",
        ));
    }
    Ok(rows)
}

fn json(text: &str) -> Result<Value, InputError> {
    serde_json::from_str(text)
        .map_err(|e| InputError::line(e.line() as u64, format!("found no valid JSON: {e}")))
}

/// What `ss -tin` prints, again and again, each time after a line with the time in seconds (`date +%s.%N`).
pub fn ss(text: &str) -> Result<Vec<Transfer>, InputError> {
    let mut all: BTreeMap<(String, String), (u64, Vec<Sample>)> = BTreeMap::new();
    let (mut now, mut begin, mut ends) = (None, None, None);
    for (i, line) in text.lines().enumerate() {
        let number = i as u64 + 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [only] = words[..]
            && let Ok(t) = only.parse::<f64>()
        {
            now = Some(t).filter(|t| (0.0..1e11).contains(t));
            begin = begin.or(now);
            continue;
        }
        // State (which is left out where it was asked for), two queues, here, there; more may follow on the same line (-O).
        let address = |w: &str| w.rsplit_once(':').is_some_and(|(_, p)| p == "*" || p.parse::<u16>().is_ok());
        let stated = words.first().is_some_and(|w| w.parse::<u64>().is_err());
        if let [q1, q2, here, there, ..] = words[usize::from(stated)..]
            && q1.parse::<u64>().is_ok()
            && q2.parse::<u64>().is_ok()
            && address(here)
            && address(there)
        {
            ends = Some((here.to_string(), there.to_string()));
        }
        if !line.contains("cwnd:") {
            continue;
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
        let (now, begin) = now.zip(begin).ok_or_else(|| {
            expected("a time, expected a line with seconds before it: date +%s.%N; ss -tin")
        })?;
        let ends =
            ends.clone().ok_or_else(|| expected("its addresses, expected a line with them before it"))?;
        let cwnd = count("cwnd:")
            .ok_or_else(|| InputError::line(number, "cwnd: found no number, expected segments"))?;
        let mss = count("mss:").filter(|m| *m > 0).unwrap_or(1448);
        let total = words.iter().find_map(|w| w.strip_prefix("retrans:")?.split_once('/')?.1.parse().ok());
        let entry = all.entry(ends).or_insert((mss, Vec::new()));
        entry.1.push(Sample {
            at: Instant(((now - begin).max(0.0) * 1e9) as u64),
            cwnd: segments(cwnd, mss),
            ssthresh: count("ssthresh:").and_then(|n| threshold(n, mss)),
            rtt: ms("rtt:"),
            min_rtt: ms("minrtt:"),
            delivered: count("bytes_acked:").map(Bytes),
            retransmitted: total.unwrap_or(0),
        });
    }
    if all.is_empty() {
        return Err(InputError::whole("found no socket with cwnd:, expected the output of ss -tin"));
    }
    Ok(all
        .into_iter()
        .enumerate()
        .map(|(i, ((here, there), (mss, samples)))| {
            let mut t = transfer("ss", i as u64 + 1, Bytes(mss), &samples);
            (t.from, t.to) = (here, there);
            t
        })
        .collect())
}

/// Rows of ours: what they say of the exit, as it was.
pub fn rows(text: &str) -> Result<Vec<Transfer>, InputError> {
    let mut all = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let r: slowstart_lab::record::Row = serde_json::from_str(line)
            .map_err(|e| InputError::line(i as u64 + 1, format!("found no row of schema 1: {e}")))?;
        let mut t = Transfer::new("rows", i as u64 + 1, Bytes(r.iw_bytes / 10));
        t.from = format!("{} on {}", r.startup, r.path);
        t.to = format!("run {}", r.run);
        t.duration_s = r.duration_s;
        t.bytes = r.size_bytes.unwrap_or(0);
        t.iw_bytes = r.iw_bytes;
        t.min_rtt_s = Some(r.base_rtt_s);
        t.peak_delay_s = Some(r.peak_queue_delay_s);
        t.packets = r.cost.packets;
        t.retransmitted_packets = r.retransmitted_packets;
        t.class = r.class;
        t.heuristic = "truth".to_string();
        t.capacity_time_s = r.capacity_time_s;
        t.capacity_by_latency_s = r.capacity_time_by_heuristic_s;
        t.first_loss_time_s = r.first_loss_time_s;
        t.exit = r.exit.as_ref().map(|e| crate::transfer::ExitRecord {
            time_s: e.time_s,
            cwnd_bytes: e.detected_cwnd_bytes,
            evidence: Evidence::Recorded.words().to_string(),
        });
        t.unclear = r.exit.is_none().then(|| NoExit::StillGrowing.words().to_string());
        t.caveats = r.caveats;
        all.push(t);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_lab::record::Class;

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
    fn ss_tells_by_the_threshold() {
        let text = ss_text(&[
            (10, None, 0),
            (40, None, 0),
            (160, None, 0),
            (170, Some(160), 0),
            (175, Some(160), 0),
        ]);
        let rows = ss(&text).expect("samples");
        let exit = rows[0].exit.as_ref().expect("an exit");
        assert_eq!((exit.cwnd_bytes, exit.evidence.as_str()), (160_000, "a threshold was set without loss"));
        assert!((exit.time_s - 0.3).abs() < 1e-6, "{exit:?}");
        // 160 kB in 40 ms is 4 MB/s, the median is 1 MB/s.
        assert_eq!(rows[0].class, Class::ChokePoint);
        assert_eq!(ss(&text.replace("ESTAB ", "")).expect("samples"), rows);
        let lost = ss(&ss_text(&[(10, None, 0), (40, None, 0), (28, Some(28), 3)])).expect("samples");
        assert_eq!(lost[0].exit.as_ref().map(|e| e.evidence.as_str()), Some("loss"));
        let begun = ss(&ss_text(&[(10, Some(9), 0), (11, Some(9), 0)])).expect("samples");
        assert_eq!(begun[0].unclear.as_deref(), Some("began before the capture"));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(ss("ESTAB 0 0 1.2.3.4:5 6.7.8.9:10\n cwnd:10 mss:1448\n").is_err_and(|e| {
            e.to_string().starts_with("line 2: ") && e.to_string().contains("date +%s.%N")
        }));
        assert!(ndt7("{\"Download\":").is_err_and(|e| e.to_string().starts_with("line 1: ")));
        assert!(flent("{\"raw_values\":{}}").is_err_and(|e| e.to_string().contains("--socket-stats")));
        assert!(rows("{}\n").is_err_and(|e| e.to_string().starts_with("line 1: ")));
    }
}
