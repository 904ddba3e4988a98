//! Sampled windows: what `ss`, flent, M-Lab, iperf and the metrics of qlog contain. Nothing is known between
//! two samples, and without acknowledgements no startup can be predicted.

use crate::capacity::DelayHeuristic;
use crate::counters::{self, Counters};
use crate::error::InputError;
use crate::infer::{Evidence, ExitEstimate, FLAT, LimitedBy, NoExit, STILL_ROUNDS};
use crate::limits::Lines;
use crate::transfer::{ExitClass, ExitRecord, Source, Transfer};
use slowstart::units::{Bytes, Instant, Span};
use slowstart_study::field;
use slowstart_study::measured::{self, Ended};
use slowstart_study::record::{ROW_SCHEMA, Row};
use std::io::Read;

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
    /// Packets retransmitted so far; `None` if the file does not state them.
    pub retransmitted: Option<u64>,
    /// What the kernel counts beside it.
    pub counters: Counters,
}

impl Sample {
    /// True if more was retransmitted than at the sample before, as far as both state it.
    fn lost_since(&self, before: &Sample) -> bool {
        self.retransmitted.zip(before.retransmitted).is_some_and(|(now, before)| now > before)
    }
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

/// The samples of a kernel's counters as a series; `None` if one does not state what was acknowledged, or if
/// they do not begin with the connection.
pub(crate) fn series(mss: Bytes, samples: &[Sample]) -> Option<Series> {
    let all = samples.iter().all(|s| s.delivered.is_some());
    let begins = samples.first().is_some_and(|s| s.ssthresh.is_none() && s.delivered < Some(s.cwnd));
    (all && begins).then(|| Series {
        mss,
        samples: samples.to_vec(),
        written: false,
        windows: true,
        handshake: None,
    })
}

/// The samples from here on keep their threshold. One that a later sample has not was set for a loss that proved
/// spurious, and Linux has taken it back.
fn settled(samples: &[Sample]) -> usize {
    samples.iter().rposition(|s| s.ssthresh.is_none()).unwrap_or(0)
}

/// The end of slow start in samples: the exit at the first sample after it, and the time of the sample
/// before.
pub(crate) fn find(samples: &[Sample]) -> Result<(ExitEstimate, Instant), NoExit> {
    let (mut best, mut reached) = (Bytes::ZERO, 0);
    let mut flat_since: Option<usize> = None;
    let mut grew = false;
    // What else limited the sender since the window grew last.
    let mut limits: Vec<LimitedBy> = Vec::new();
    let settled = settled(samples);
    for (i, s) in samples.iter().enumerate() {
        let Some(before) = i.checked_sub(1).map(|b| &samples[b]) else {
            if s.ssthresh.is_some() {
                return Err(NoExit::BeganBefore);
            }
            best = s.cwnd;
            continue;
        };
        if s.ssthresh.is_some() && i < settled {
            (best, reached, flat_since) = (best.max(s.cwnd), i, None);
            continue;
        }
        let lost = s.lost_since(before);
        let window = best.max(before.cwnd);
        let found = |evidence, cwnd| Ok((ExitEstimate { at: s.at, cwnd, evidence }, before.at));
        if let (Some(threshold), None) = (s.ssthresh, before.ssthresh) {
            // A rule sets the threshold to the window, which had reached it between the samples.
            return if lost {
                found(Evidence::Loss, window)
            } else {
                found(Evidence::Threshold, window.max(threshold))
            };
        }
        if lost && s.cwnd < before.cwnd {
            return found(Evidence::Loss, window);
        }
        let rtt = s.rtt.or(s.min_rtt).unwrap_or(Span::millis(100)).max(Span(1));
        // As in a capture: the growth that a flat round trip may have, over the round trips since the maximum
        // was reached.
        let rounds = (s.at.since(samples[reached].at).0 / rtt.0).max(1);
        if s.cwnd > best + (best / 10).max(best.scale(FLAT.saturating_mul(rounds), 100)) {
            (grew, best, reached, flat_since) = (true, s.cwnd, i, None);
            limits.clear();
            continue;
        }
        if let Some(by) = counters::limit(before, s) {
            // It could not grow.
            limits.push(by);
            flat_since = None;
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
    let most = |by: LimitedBy| limits.iter().filter(|l| **l == by).count();
    let by = [LimitedBy::Application, LimitedBy::ReceiveWindow, LimitedBy::SendBuffer];
    let by =
        by.into_iter().max_by_key(|by| most(*by)).filter(|_| 2 * limits.len() >= samples.len() - reached);
    Err(if samples.len() < 3 {
        NoExit::TooFew
    } else if let Some(by) = by.filter(|_| !limits.is_empty()) {
        by.no_exit()
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

/// The row of a connection whose file states the exit.
pub(crate) fn with_stated(
    source: Source,
    number: u64,
    mss: Bytes,
    samples: &[Sample],
    exit: ExitEstimate,
) -> Transfer {
    with_exit(source, number, mss, samples, Ok((exit, exit.at)))
}

/// The row of a connection whose samples have no windows.
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
        t.duration_s = seconds(last.at.max(first.at));
        // Counts of the connection before the first sample are not those of this time.
        let before = if first.at == Instant::ZERO { *first } else { Sample::default() };
        t.retransmitted_packets =
            last.retransmitted.map(|n| n.saturating_sub(before.retransmitted.unwrap_or(0)));
        let most = samples.iter().filter_map(|s| s.delivered).max();
        t.bytes = most.map(|b| (b - before.delivered.unwrap_or_default()).0);
    }
    t.limits = counters::periods(samples);
    let least = samples.iter().filter_map(|s| s.min_rtt.or(s.rtt)).min();
    let most = samples.iter().filter_map(|s| s.rtt).max();
    t.min_rtt_s = least.map(Span::as_secs_f64);
    t.peak_delay_s = least.zip(most).map(|(l, m)| (m - l).as_secs_f64());
    let settled = settled(samples);
    let lost = |i: &usize| {
        let undone = samples[*i].ssthresh.is_some() && *i < settled;
        samples[*i].lost_since(&samples[i - 1]) && !undone
    };
    t.first_loss_time_s = (1..samples.len()).find(lost).map(|i| seconds(samples[i].at));
    // The throughput between samples, as in the second heuristic of the thesis (5.2.2), where nothing else
    // limited it.
    let rate = |w: &[Sample]| {
        let counted = || {
            let (bytes, time) = (w[1].delivered? - w[0].delivered?, w[1].at.since(w[0].at).as_secs_f64());
            (time > 0.0).then(|| bytes.0 as f64 / time)
        };
        counted().or(w[1].counters.delivery_kbps.map(|k| f64::from(k) * 125.0))
    };
    let free = |w: &&[Sample]| counters::limit(&w[0], &w[1]).is_none();
    let rates: Vec<(Instant, f64)> =
        samples.windows(2).filter(free).filter_map(|w| Some((w[1].at, rate(w)?))).collect();
    // If something else limits the sender after slow start, its throughput is not that of the path.
    let after = found.map_or(Instant::ZERO, |f| f.0.at);
    let later = || samples.windows(2).filter(|w| w[1].at >= after);
    let shown = 2 * later().filter(free).count() > later().count();
    let rates = if shown { rates } else { Vec::new() };
    let values: Vec<f64> = rates.iter().map(|r| r.1).collect();
    let median = slowstart_study::stats::quantile(&values, 0.5).filter(|m| *m > 0.0);
    t.median_bps = median.map(|m| m * 8.0);
    t.capacity_by_throughput_s = median.and_then(|m| rates.iter().find(|r| r.1 >= m)).map(|r| seconds(r.0));
    // Every transfer reaches its median throughput. A queue shows that the path was full, unless another limit held.
    let mut delay = DelayHeuristic::default();
    for (s, rtt, least) in samples.iter().filter_map(|s| Some((s, s.rtt?, least?))) {
        delay.add(s.at, rtt - least, least);
    }
    t.capacity_by_latency_s = delay.capacity.map(seconds);
    t.capacity_time_s = t.capacity_by_latency_s.filter(|_| !found.is_err_and(NoExit::is_limit));
    if t.capacity_time_s.is_some() {
        t.heuristic = "latency".to_string();
    }
    if let (Ok((f, _)), Some(median), Some(rtt)) = (&found, median, least) {
        let reached = f.cwnd.0 as f64 / rtt.as_secs_f64().max(1e-9) > median;
        let ended = Ended { at: Span(f.at.0).as_secs_f64(), by_congestion: f.evidence.is_congestion() };
        t.class = measured::class(Some(ended), reached.then_some(0.0), t.first_loss_time_s).into();
    }
    if let Some((f, after)) = found.ok().filter(|f| f.0.at > f.1) {
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

/// The time since the first sample, of two times in seconds. In microseconds: a double is no more precise if
/// they count from 1970.
pub(crate) fn since(now: f64, begin: f64) -> Instant {
    Instant((((now - begin).max(0.0) * 1e6).round() as u64).saturating_mul(1000))
}

/// Memory of a socket beside its samples and the names of its ends: its place in a tree, and room for samples
/// to come.
pub(crate) const SOCKET: usize = 512;

/// Reads rows of `slowstart compare`, for the exits that they state.
pub fn rows(input: impl Read, mut each: impl FnMut(Transfer)) -> Result<(), InputError> {
    let mut rows = 0;
    for line in Lines::new(input) {
        let (number, line) = line?;
        if line.trim().is_empty() {
            continue;
        }
        let r: Row = field::read(line.as_bytes(), ROW_SCHEMA).map_err(|e| InputError::line(number, e))?;
        rows += 1;
        let mut t = Transfer::new(Source::Rows, rows, Bytes(r.iw_bytes.map_or(MSS, |iw| iw / 10)));
        t.from = format!("{} on {}", r.startup, r.path);
        t.to = format!("run {}", r.run);
        t.duration_s = r.duration_s;
        t.bytes = r.size_bytes;
        t.iw_bytes = r.iw_bytes;
        t.min_rtt_s = Some(r.base_rtt_s);
        t.peak_delay_s = r.peak_queue_delay_s;
        t.packets = Some(r.cost.packets);
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
