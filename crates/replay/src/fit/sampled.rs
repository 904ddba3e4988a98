//! A path out of samples: rate over time, base RTT and queue, from what was delivered and how the window grew.
//!
//! Between two samples nothing is known, and without RTT samples a queue shows only by the window: it stood
//! where the window exceeded what the link carries in a base RTT, and in slow start where the window no longer
//! doubled. A queue that began between two samples did not keep the link busy from the first to the second, so
//! that the window must have grown too slowly between the two before already.
//!
//! What an ACK acknowledges left the link a base RTT before it came, and what a receiver counts half of one:
//! the link is next to the sender.

use super::rate_over_time::{Course, LEAST, LONGEST, Step};
use super::{Estimate, FittedPath, Vary};
use crate::samples::{Sample, Series};
use slowstart::units::{Instant, Span};
use slowstart_study::stats::quantile;

/// Least length of a step after slow start, seconds, and the least number of samples with new data in it.
const LENGTH: f64 = 0.5;
const COUNTS: u32 = 3;
/// Least length of any step, in base RTTs, which are not known better.
const SHORTEST: f64 = 0.25;
/// By so much a window, or an RTT, exceeds what needs no queue where one stands.
const STANDING: f64 = 1.25;
/// A window that grew by less than this share of the doublings that the base RTT allows met a queue.
const SLOWER: f64 = 0.8;
/// A queue that never filled holds at least the greatest backlog; it counts as so many times that, since slow
/// start doubles the backlog before a loss is known.
const NEVER_FULL: f64 = 2.0;

fn seconds(at: Instant) -> f64 {
    at.0 as f64 / 1e9
}

/// The base RTT, in seconds: from RTT samples, else from the handshake, else from the growth of the window.
fn base(s: &Series) -> Option<Estimate> {
    let least = s.samples.iter().filter_map(|p| p.min_rtt.or(p.rtt)).min().map(Span::as_secs_f64);
    if let Some(least) = least {
        let basis = "the least RTT sample, which may be a smoothed one".to_string();
        return Some(Estimate { value: least, low: least * 0.8, high: Some(least), basis });
    }
    if let Some(rtt) = s.handshake.map(Span::as_secs_f64).filter(|r| *r > 0.0) {
        let basis = "the time of the handshake".to_string();
        return Some(Estimate { value: rtt, low: rtt * 0.5, high: Some(rtt), basis });
    }
    // After k round trips the window is 2^k initial ones; the next round trip has begun.
    let full = s.mss.0 as f64 * 10.0;
    let grown = s.samples[..s.growing()].iter().filter_map(|p| {
        let doublings = libm::log2(p.cwnd.0 as f64 / full);
        (doublings > 0.5).then(|| (seconds(p.at), doublings))
    });
    let all: Vec<(f64, f64)> = grown.collect();
    let least = |more: f64| all.iter().map(|(t, d)| t / (d + more)).reduce(f64::min);
    let (value, low, high) = (least(0.5)?, least(1.0)?, least(0.0)?);
    let basis = format!("how fast the window doubled in slow start, over {} samples", all.len());
    Some(Estimate { value, low, high: Some(high), basis })
}

/// When the link had carried how much, in bytes of payload, and if a queue stood since the moment before.
struct Moment {
    at: f64,
    delivered: f64,
    window: f64,
    standing: Option<bool>,
    /// True if the moments before and after are far enough apart to be a step of their own.
    alone: bool,
}

fn moments(s: &Series, base: f64) -> Vec<Moment> {
    let (growing, iw, buffer) = (s.growing(), s.iw() as f64, s.buffered() as f64);
    let mut all: Vec<Moment> = Vec::new();
    let mut before: Option<&Sample> = None;
    let late = if s.written { base } else { base / 2.0 };
    let mut slowed = false;
    for (i, p) in s.samples.iter().enumerate() {
        let counted = p.delivered.unwrap_or_default().0 as f64;
        let alone = s.written && i < growing;
        let delivered = match s.written {
            false => counted,
            true if alone => (p.cwnd.0 as f64 - iw).max(0.0),
            true => counted - buffer,
        };
        let last = all.last().map_or(0.0, |m| m.delivered);
        let standing = match (p.rtt, before) {
            (Some(rtt), _) => Some(rtt.as_secs_f64() > base * STANDING),
            (None, Some(b)) if alone => {
                let doublings = libm::log2(p.cwnd.0 as f64 / b.cwnd.0.max(1) as f64);
                let slow = doublings < SLOWER * p.at.since(b.at).as_secs_f64() / base;
                Some(std::mem::replace(&mut slowed, slow) && slow)
            }
            _ if alone => Some(false),
            _ => None,
        };
        before = Some(p);
        // Nothing new: a write, or a buffer of the reader, is not complete yet.
        if delivered > last && seconds(p.at) <= LONGEST {
            let (at, window) = (seconds(p.at) - late, p.cwnd.0 as f64);
            all.push(Moment { at, delivered, window, standing, alone });
        }
    }
    all
}

/// The time by which slow start had ended at a receiver, in seconds, and the bytes that came in each second
/// of the two samples before.
///
/// In slow start what has come, with the initial window, doubles in each base RTT. It is over where that did
/// not happen in two samples, each over a base RTT or more.
fn ended(s: &Series, base: f64) -> Option<(f64, f64)> {
    let iw = (s.mss.0 * 10) as f64;
    let counted = |p: &Sample| p.delivered.unwrap_or_default().0 as f64;
    let all = &s.samples[s.samples.iter().position(|p| counted(p) > 0.0)?..];
    let span = |from: usize, to: usize| all[to].at.since(all[from].at).as_secs_f64();
    let (mut before, mut slowed) = (0, false);
    for i in 1..all.len() {
        while span(before + 1, i) >= base {
            before += 1;
        }
        let round = span(before, i);
        let doublings = libm::log2((counted(&all[i]) + iw) / (counted(&all[before]) + iw));
        let slow = round >= base && doublings < SLOWER * round / base;
        if slow && slowed {
            let came = counted(&all[i]) - counted(&all[i - 2]);
            return Some((seconds(all[i].at), came / span(i - 2, i)));
        }
        slowed = slow;
    }
    None
}

/// Fits a path to samples, with its rate over time.
///
/// # Errors
/// What was found and what is needed.
pub fn fit(s: &Series) -> Result<(FittedPath, Course), String> {
    let packet = s.mss.0 as f64 + 52.0;
    let wire = packet / s.mss.0.max(1) as f64;
    let found = base(s)
        .ok_or("found no RTT, no time of a handshake and no growth of the window, expected one of them")?;
    let base = found.value.max(1e-4);
    let all = moments(s, base);
    let mut steps: Vec<Step> = Vec::new();
    let (mut from, mut bytes, mut counts) = (0.0, 0.0, 0);
    let mut lengths = Vec::new();
    for (i, m) in all.iter().enumerate() {
        counts += 1;
        let length = m.at - from;
        let ends = all.get(i + 1).is_some_and(|n| m.alone && !n.alone);
        if length < base * SHORTEST || !(m.alone || ends || (length >= LENGTH && counts >= COUNTS)) {
            continue;
        }
        let rate = ((m.delivered - bytes) * wire / length).max(LEAST);
        let standing = match m.standing {
            Some(standing) => standing,
            None if s.windows => m.window * wire > rate * base * STANDING,
            // A receiver: the greatest rates show a full link, once they are known.
            None => false,
        };
        steps.push(Step { until: m.at, low: rate, high: if standing { rate } else { f64::INFINITY } });
        lengths.push(length);
        (from, bytes, counts) = (m.at, m.delivered, 0);
    }
    // HyStart leaves once ACKs come for half a base RTT. That takes a window of half of what the link carries in
    // one, which grows by as much while they come: the link is full then, and carried what came.
    if let Some((at, rate)) = (!s.windows && !s.written).then(|| ended(s, base)).flatten() {
        let begun = 1 + steps.partition_point(|s| s.until < at - base / 2.0);
        steps.iter_mut().take(begun).for_each(|s| s.high = s.low.max(rate * wire));
    }
    if !s.windows {
        // The link counts as busy from where the rate first reaches its median.
        let middle = quantile(&steps.iter().map(|s| s.low).collect::<Vec<_>>(), 0.5).unwrap_or_default();
        let busy = steps.iter().position(|s| s.low >= middle).unwrap_or(0);
        steps[busy..].iter_mut().for_each(|s| s.high = s.low);
    }
    let none = "found no samples in which a queue stood, expected some: the rate of the link is not known";
    let rates: Vec<(f64, f64)> =
        steps.iter().zip(&lengths).filter(|(s, _)| s.low >= s.high).map(|(s, l)| (s.low, *l)).collect();
    let course = Course::new(steps, base).ok_or(none)?;
    let time: f64 = rates.iter().map(|r| r.1).sum();
    let mean = rates.iter().map(|(r, l)| r * l).sum::<f64>() / time;
    let deviation = (rates.iter().map(|(r, l)| (r - mean) * (r - mean) * l).sum::<f64>() / time).sqrt();
    // What was delivered by a sample is known to a round trip.
    let error = (2.0 * deviation / (rates.len() as f64).sqrt()).max(mean * base / time);
    let share = (3.0_f64.sqrt() * deviation / mean).min(0.95);
    let period = quantile(&lengths, 0.5).unwrap_or(LENGTH);
    let s_of = if rates.len() == 1 { "" } else { "s" };
    let each = format!("{} step{s_of} in which a queue stood", rates.len());
    let rate_vary = (share > 0.05).then(|| Vary {
        share: Estimate {
            value: share,
            low: share * 0.8,
            high: Some((share * 1.2).min(1.0)),
            basis: each.clone(),
        },
        period_s: Estimate {
            value: period,
            low: period / 2.0,
            high: Some(period * 2.0),
            basis: "the length of these steps".to_string(),
        },
    });
    let rate_bps = Estimate {
        value: mean * 8.0,
        low: (mean - error).max(mean / 10.0) * 8.0,
        high: Some((mean + error) * 8.0),
        basis: each,
    };
    let mut notes = vec![
        "from samples: what happens between two of them, jitter, waves and slots are not seen".to_string(),
    ];
    if s.written {
        notes.push("what was delivered follows from the window, and later from what was written".to_string());
    }
    let queue_bytes = queue(s, mean, base, packet, wire);
    let base_rtt_s = Estimate { value: base, ..found };
    let path = FittedPath {
        rate_bps,
        rate_vary,
        rate_changes: course.changes().is_some(),
        base_rtt_s,
        wave: None,
        ack_aggregate_s: None,
        jitter_s: None,
        first_delay_s: None,
        queue_bytes,
        random_drop: None,
        policer: None,
        loss: None,
        notes,
    };
    Ok((path, course))
}

/// The queue: the window less what the link carries in a base RTT, where a loss made the window fall; without
/// such a loss the greatest window in slow start.
fn queue(s: &Series, rate: f64, base: f64, packet: f64, wire: f64) -> Estimate {
    let backlog = |window: u64| (window as f64 * wire - rate * base).max(packet);
    let fell = |w: &&[Sample]| w[1].retransmitted > w[0].retransmitted && w[1].cwnd < w[0].cwnd;
    let pairs = if s.windows { &s.samples[..] } else { &[] };
    let full: Vec<f64> = pairs.windows(2).filter(fell).map(|w| backlog(w[0].cwnd.0)).collect();
    let top = pairs[..s.growing()].iter().map(|p| p.cwnd.0).max().unwrap_or_default();
    let most = backlog(top);
    match quantile(&full, 0.5).filter(|middle| *middle * NEVER_FULL > most) {
        Some(middle) => Estimate {
            value: middle,
            low: quantile(&full, 0.05).unwrap_or(middle).min(middle),
            high: Some(quantile(&full, 0.95).unwrap_or(middle).max(middle)),
            basis: format!("the window before {} losses after which it fell", full.len()),
        },
        None if s.windows => Estimate {
            value: most * NEVER_FULL,
            low: most,
            high: None,
            basis: "it never filled: twice the greatest backlog in slow start".into(),
        },
        None => Estimate {
            value: (rate * base * NEVER_FULL).max(packet),
            low: packet,
            high: None,
            basis: "not seen: two bandwidth-delay products".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::units::Bytes;

    /// 40 ms, 40 Mbit/s: slow start doubles each round trip until the link is full, the socket holds 2 MB.
    fn upload() -> Series {
        let mss = 1400_u64;
        let (rate, base, buffer) = (5e6 * 1400.0 / 1452.0, 0.04, 2e6);
        let mut samples = Vec::new();
        let (mut cwnd, mut delivered) = (mss as f64 * 10.0, 0.0);
        for i in 1..=200_u32 {
            for _ in 0..100 {
                // A millisecond: as much is delivered as the window, and the link, allow.
                let bytes = (cwnd / base).min(rate) / 1000.0 * std::f64::consts::LN_2;
                let bytes = if cwnd > rate * base { rate / 1000.0 } else { bytes };
                delivered += bytes;
                if i <= 5 {
                    cwnd += bytes;
                }
            }
            samples.push(Sample {
                at: Instant(u64::from(i) * 100_000_000),
                cwnd: Bytes(cwnd as u64),
                delivered: Some(Bytes((delivered + buffer) as u64)),
                ..Sample::default()
            });
        }
        Series { mss: Bytes(mss), samples, written: true, windows: true, handshake: None }
    }

    #[test]
    fn an_upload_of_sampled_windows_gives_its_path() {
        let s = upload();
        let (path, course) = fit(&s).expect("a path");
        let within = |v: f64, want: f64, share: f64| (v / want - 1.0).abs() < share;
        assert!(within(path.rate_bps.value, 40e6, 0.05), "{:?}", path.rate_bps);
        assert!(within(path.base_rtt_s.value, 0.04, 0.25), "{:?}", path.base_rtt_s);
        assert!(path.base_rtt_s.low <= 0.04 && path.base_rtt_s.high.is_some_and(|h| h >= 0.039));
        assert!(!path.queue_was_full() && course.known() > 0.8, "{course:?}");
        // The bounds hold what was delivered.
        for (p, (low, high)) in s.samples.iter().zip(s.delivered()) {
            let truth = p.delivered.expect("stated").0 - 2_000_000;
            assert!(low <= truth + 15_000 && truth <= high + 200_000, "{p:?}: {low} to {high}, {truth}");
        }
    }

    #[test]
    fn the_rate_is_that_of_the_link_when_it_carried_the_data() {
        // 40 ms, 40 Mbit/s until 8.02 s and 20 Mbit/s from then on: ACKs show it at 8.06 s.
        let mut s = upload();
        let late = |p: &mut Sample| {
            let over = p.at.0.saturating_sub(8_060_000_000) as f64 / 1e9;
            let least = p.delivered.map_or(0, |d| d.0) as f64 - over * 2.5e6 * 1400.0 / 1452.0;
            p.delivered = Some(Bytes(least as u64));
        };
        s.samples.iter_mut().for_each(late);
        let (path, course) = fit(&s).expect("a path");
        let base = path.base_rtt_s.value;
        let sum = |to: f64| {
            let (mut from, mut bytes) = (0.0, 0.0);
            for step in &course.steps {
                bytes += step.low * (step.until.min(to) - from).max(0.0);
                from = step.until;
            }
            bytes
        };
        let (first, second) = ((sum(7.0) - sum(5.0)) / 2.0, (sum(12.0) - sum(10.0)) / 2.0);
        let turn = (sum(12.0) - sum(5.0) - second * 12.0 + first * 5.0) / (first - second);
        assert!((first / 5e6 - 1.0).abs() < 0.02 && (second / 2.5e6 - 1.0).abs() < 0.02, "{first} {second}");
        assert!((turn - (8.06 - base)).abs() < 0.02, "{turn}, base {base}");
    }

    #[test]
    fn a_queue_that_began_between_two_samples_does_not_give_the_rate_there() {
        // 100 ms, 5 MB/s: a queue begins in the seventh sample, in which the window grows by 300 kB.
        let (mut samples, mut cwnd, mut delivered) = (Vec::new(), 14_000_u64, 2_000_000_u64);
        for i in 1..=100_u64 {
            let bytes = match i {
                1..=6 => cwnd,
                7 => 300_000,
                _ => 500_000,
            };
            delivered += bytes;
            cwnd += if i <= 9 { bytes } else { 0 };
            let at = Instant(i * 100_000_000);
            samples.push(Sample {
                at,
                cwnd: Bytes(cwnd),
                delivered: Some(Bytes(delivered)),
                ..Sample::default()
            });
        }
        let handshake = Some(Span::millis(100));
        let s = Series { mss: Bytes(1400), samples, written: true, windows: true, handshake };
        let (_, course) = fit(&s).expect("a path");
        let known: Vec<&Step> = course.steps.iter().filter(|s| s.low >= s.high).collect();
        assert!(known.len() > 5 && known.iter().all(|s| s.low > 4.5e6), "{known:?}");
        assert!(course.steps.iter().any(|s| s.low < 3.5e6 && s.low > 3e6 && s.high > 4.5e6), "{course:?}");
    }

    #[test]
    fn what_a_receiver_counts_gives_the_rate_over_time() {
        let sample = |i: u64| Sample {
            at: Instant(i * 100_000_000),
            delivered: Some(Bytes(if i < 100 { i * 500_000 } else { 50_000_000 + (i - 100) * 125_000 })),
            ..Sample::default()
        };
        let samples: Vec<Sample> = (1..=200).map(sample).collect();
        let handshake = Some(Span::millis(30));
        let s = Series { mss: Bytes(1448), samples, written: false, windows: false, handshake };
        let (path, course) = fit(&s).expect("a path");
        assert!((path.base_rtt_s.value - 0.03).abs() < 1e-9);
        let rates: Vec<f64> = course.steps.iter().map(|s| s.low * 8.0 / 1e6).collect();
        assert!(rates.iter().any(|r| (r - 41.4).abs() < 0.5) && rates.iter().any(|r| (r - 10.4).abs() < 0.2));
        assert!(path.rate_vary.is_some_and(|v| v.share.value > 0.5));
    }

    #[test]
    fn a_receiver_of_a_sender_that_left_early_knows_what_the_link_carried_then() {
        // 40 ms: slow start ends at 80 packets, the window grows by 5 % in each round trip up to 20 times that.
        let (mut samples, mut window, mut delivered) = (Vec::new(), 14_000.0_f64, 0.0);
        for i in 0..250_u64 {
            delivered += window;
            let grown = if window < 112_000.0 { 2.0 } else { 1.05 };
            window = (window * grown).min(2_240_000.0);
            let at = Instant(i * 40_000_000 + 20_000_000);
            samples.push(Sample { at, delivered: Some(Bytes(delivered as u64)), ..Sample::default() });
        }
        let handshake = Some(Span::millis(40));
        let mut s = Series { mss: Bytes(1400), samples, written: false, windows: false, handshake };
        let (path, course) = fit(&s).expect("a path");
        let first = course.steps[0];
        // 112 kB in 40 ms and somewhat more; later the link carries twenty times that.
        assert!(first.high > 2.8e6 && first.high < 4e6, "{first:?}");
        assert!(course.steps.iter().any(|s| s.low > 50e6) && path.rate_bps.value > 300e6, "{course:?}");
        // Who counts what it writes counts its buffer, which tells nothing of slow start.
        s.written = true;
        let (_, course) = fit(&s).expect("a path");
        assert!(course.steps[0].high > 50e6, "{:?}", course.steps[0]);
    }

    #[test]
    fn samples_without_a_base_rtt_or_a_queue_are_refused() {
        let mut s = upload();
        s.windows = false;
        assert!(fit(&s).is_err_and(|e| e.contains("no time of a handshake")));
        s.samples.clear();
        assert!(fit(&s).is_err());
    }
}
