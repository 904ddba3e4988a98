//! Measures: quantities computed from the result of a run.
//!
//! Those of the catalogue have its names. The others are not there, since a row alone does not give them: they need samples,
//! bytes over time, other flows or all runs together, a number (`delivered_mb:5`), or a unit of one paper (packets of the
//! profile, base RTTs, the thesis' heuristic, or bit/s, in which a paper's claim is stated).

use crate::bins;
use crate::formula;
use crate::result::RunResult;
use crate::spectrum;
use crate::web;
use serde::Deserialize;
use slowstart::step::Exit;
use slowstart_study::measured::{self, Ended};
use slowstart_study::measures;
use slowstart_study::record::{Class, ExitRow, Row, Sample};
use std::str::FromStr;

/// A measure: a name, with numbers after a colon if it needs them (`utilisation:10,70`). Times are in seconds
/// since the start of the flow; windows are in BDPs or in packets of the profile's size.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Measure {
    /// A measure of the catalogue.
    Run(measures::Measure),
    /// The window at the exit, in segments.
    ExitPackets,
    /// The distance of that window from the BDP, in BDPs.
    ExitDistanceBdp,
    /// 1 if it left because of this, else 0.
    ExitBy(Exit),
    /// 1 if it left by a rule of its own, and not by loss, timeout or another sign of congestion.
    ExitByRule,
    /// Time at which the path's true capacity was reached.
    CapacityS,
    /// Time of capacity by the thesis' heuristic.
    HeuristicCapacityS,
    /// 1 if the heuristic gives a time of capacity, else 0.
    HeuristicAnswers,
    /// Time at which the sender first detected a loss.
    FirstLossS,
    /// Time from capacity to the first loss.
    LossAfterCapacityS,
    /// 1 if the exit is of this class by the true capacity, else 0.
    Is(Class),
    /// 1 if the exit is of this class by the thesis' heuristic, else 0; absent if the heuristic gives no
    /// capacity.
    HeuristicIs(Class),
    /// 1 if the exit is not early by the true capacity.
    Timely,
    /// 1 if the thesis' heuristic and the true capacity give the same class.
    HeuristicAgrees,
    /// The heuristic's time of capacity minus the true one, seconds.
    HeuristicErrorS,
    /// Peak inflight, in segments.
    PeakInflightPackets,
    /// The greatest sampled window, in segments.
    PeakWindowPackets,
    /// The smallest ratio of the window to its previous maximum, up to this many seconds after the exit.
    WindowKept(f64),
    /// The smallest ssthresh of the run, in BDPs.
    LeastSsthreshBdp,
    /// Number of retransmitted packets.
    RetransmittedPackets,
    /// Time at which the receiver had everything, in base RTTs.
    CompletionRtts,
    /// 1 if it had everything before the end of the run, else 0.
    Completes,
    /// Goodput in bits per second.
    GoodputBps,
    /// Megabytes delivered up to a time.
    DeliveredMb(f64),
    /// Time at which this many megabytes were delivered.
    TimeToMb(f64),
    /// Time at which inflight reached one BDP, or its maximum if that is below one BDP.
    TimeToBdpS,
    /// [`Self::TimeToBdpS`] in base RTTs since the first data.
    TimeToBdpRtts,
    /// The longest RTT divided by the base RTT.
    MaxRttRatio,
    /// Time at which the RTT first reached this many base RTTs.
    RttReachesS(f64),
    /// How long the RTT was above nine tenths of its maximum, seconds.
    NearMaxRttS,
    /// [`Self::NearMaxRttS`] in base RTTs.
    NearMaxRttRtts,
    /// The longest RTT before the exit divided by the first RTT.
    MaxRttOverFirst,
    /// The longest RTT before the exit, seconds.
    MaxRttBeforeExitS,
    /// The first RTT, seconds.
    FirstRttS,
    /// The longest RTT before half of the time to capacity, divided by the shortest.
    RttSpreadBeforeCapacity,
    /// The mean RTT of the last third of the run divided by the base RTT.
    LateRttRatio,
    /// Payload that all flows delivered between two times, divided by what the link can carry.
    Utilisation(f64, f64),
    /// Payload that the flow delivered between two times of the run, in per cent of that of all flows.
    Share(f64, f64),
    /// The longest time without delivery, between the first and the last byte.
    BlackoutS,
    /// Time from the first detected loss to the end of that recovery, or to the end of the run.
    RecoveryS,
    /// Number of packets that the sender's own interface refused.
    Stalls,
    /// Number of refusals that the sender took as congestion: at most one a round trip.
    StallSignals,
    /// Difference between the longest and the shortest bottleneck queue between two times, packets.
    QueueSwingPackets(f64, f64),
    /// The mean queue between two times, packets.
    QueueMeanPackets(f64, f64),
    /// The period of the queue's oscillation: twice the mean time between crossings of its mean.
    QueuePeriodS(f64, f64),
    /// The frequency of the greatest peak in the spectrum of the RTT before the first loss, of the average of
    /// all runs. It has no value in one run.
    MeanRttPeakHz,
    /// 1 if SEARCH 2.0 with this many bins in its window leaves before capacity. For runs that keep their
    /// ACKs.
    BinsEarly(usize),
    /// 1 if it leaves between capacity and the first detected loss.
    BinsChokePoint(usize),
    /// 1 if two numbers of bins give the same class: early, choke point or neither.
    BinsAgree(usize, usize),
    /// Number of bins beyond the window of ten that it needs until it leaves or a loss is detected.
    ExtraBins,
    /// 1 if it leaves at a choke point with ten bins in its window and this many beyond.
    ExtraChokePoint(usize),
    /// 1 if two such numbers give the same class.
    ExtraAgree(usize, usize),
    /// Mean absolute error of its normalised difference against the value from every ACK, before the first
    /// loss.
    BinsError(usize),
    /// A measure of web clients.
    Web(web::Measure),
    /// Standard deviation of SEARCH's normalised difference with this many bins, before capacity.
    DifferenceNoise(usize),
    /// [`Self::DifferenceNoise`] before capacity by the thesis' heuristic.
    HeuristicDifferenceNoise(usize),
    /// Rounds of limited slow start: target window, limit.
    LimitedRounds(f64, f64),
    /// The best window of a path (ESS, equation 6), bytes: Mbit/s, RTT in ms.
    BestWindow(f64, f64),
    /// Rounds of doubling: initial window, target window.
    DoublingRounds(f64, f64),
    /// SEARCH's normalised difference: window, round trips after capacity.
    SearchDifference(f64, f64),
    /// Bins that SEARCH 2.0 saves, in per cent of those of SEARCH 1.0, which keeps a window of delivered bytes and a
    /// window of sent bytes with the bins beyond it: window, bins beyond.
    SearchBinsSaved(f64, f64),
    /// Round trips after capacity at which the difference reaches a threshold: window, threshold.
    SearchCrossing(f64, f64),
}

impl TryFrom<String> for Measure {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Measure {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Vec<f64> = rest
            .split(',')
            .filter(|n| !n.is_empty())
            .map(|n| n.trim().parse().map_err(|_| format!("{text:?}: found {n:?}, expected a number")))
            .collect::<Result<_, String>>()?;
        // The thesis says choke point where results say that the link was full.
        let class = |name: &str| match name {
            "choke-point" => Some(Class::LinkFull),
            _ => [Class::Early, Class::Late, Class::None].into_iter().find(|c| c.name() == name),
        };
        if let Some(m) = measures::Measure::of_rows().find(|m| m.name() == name && numbers.is_empty()) {
            return Ok(Self::Run(m));
        }
        let found = match (name, numbers.as_slice()) {
            ("exit_packets", []) => Self::ExitPackets,
            ("exit_distance_bdp", []) => Self::ExitDistanceBdp,
            ("exit_by_rule", []) => Self::ExitByRule,
            ("capacity_s", []) => Self::CapacityS,
            ("heuristic_capacity_s", []) => Self::HeuristicCapacityS,
            ("heuristic_answers", []) => Self::HeuristicAnswers,
            ("first_loss_s", []) => Self::FirstLossS,
            ("loss_after_capacity_s", []) => Self::LossAfterCapacityS,
            ("timely", []) => Self::Timely,
            ("heuristic_agrees", []) => Self::HeuristicAgrees,
            ("peak_window_packets", []) => Self::PeakWindowPackets,
            ("peak_inflight_packets", []) => Self::PeakInflightPackets,
            ("time_to_bdp_rtts", []) => Self::TimeToBdpRtts,
            ("heuristic_error_s", []) => Self::HeuristicErrorS,
            ("extra_bins", []) => Self::ExtraBins,
            ("least_ssthresh_bdp", []) => Self::LeastSsthreshBdp,
            ("retransmitted_packets", []) => Self::RetransmittedPackets,
            ("completion_rtts", []) => Self::CompletionRtts,
            ("completes", []) => Self::Completes,
            ("share", [from, to]) => Self::Share(*from, *to),
            ("goodput_bps", []) => Self::GoodputBps,
            ("delivered_mb", [at]) => Self::DeliveredMb(*at),
            ("time_to_mb", [mb]) => Self::TimeToMb(*mb),
            ("time_to_bdp_s", []) => Self::TimeToBdpS,
            ("max_rtt_ratio", []) => Self::MaxRttRatio,
            ("rtt_reaches_s", [ratio]) => Self::RttReachesS(*ratio),
            ("near_max_rtt_s", []) => Self::NearMaxRttS,
            ("near_max_rtt_rtts", []) => Self::NearMaxRttRtts,
            ("max_rtt_over_first", []) => Self::MaxRttOverFirst,
            ("late_rtt_ratio", []) => Self::LateRttRatio,
            ("max_rtt_before_exit_s", []) => Self::MaxRttBeforeExitS,
            ("first_rtt_s", []) => Self::FirstRttS,
            ("rtt_spread_before_capacity", []) => Self::RttSpreadBeforeCapacity,
            ("difference_noise", [n]) => Self::DifferenceNoise(*n as usize),
            ("heuristic_difference_noise", [n]) => Self::HeuristicDifferenceNoise(*n as usize),
            ("utilisation", [from, to]) => Self::Utilisation(*from, *to),
            ("blackout_s", []) => Self::BlackoutS,
            ("recovery_s", []) => Self::RecoveryS,
            ("stalls", []) => Self::Stalls,
            ("stall_signals", []) => Self::StallSignals,
            ("queue_swing_packets", [from, to]) => Self::QueueSwingPackets(*from, *to),
            ("queue_mean_packets", [from, to]) => Self::QueueMeanPackets(*from, *to),
            ("queue_period_s", [from, to]) => Self::QueuePeriodS(*from, *to),
            ("mean_rtt_peak_hz", []) => Self::MeanRttPeakHz,
            ("bins_early", [n]) => Self::BinsEarly(*n as usize),
            ("bins_choke-point", [n]) => Self::BinsChokePoint(*n as usize),
            ("bins_agree", [a, b]) => Self::BinsAgree(*a as usize, *b as usize),
            ("bins_error", [n]) => Self::BinsError(*n as usize),
            ("window_kept", [s]) => Self::WindowKept(*s),
            ("extra_choke-point", [n]) => Self::ExtraChokePoint(*n as usize),
            ("extra_agree", [a, b]) => Self::ExtraAgree(*a as usize, *b as usize),
            ("best_window", [mbit, ms]) => Self::BestWindow(*mbit, *ms),
            ("limited_rounds", [target, limit]) => Self::LimitedRounds(*target, *limit),
            ("doubling_rounds", [from, to]) => Self::DoublingRounds(*from, *to),
            ("search_difference", [w, r]) => Self::SearchDifference(*w, *r),
            ("search_bins_saved", [window, beyond]) => Self::SearchBinsSaved(*window, *beyond),
            ("search_crossing", [w, threshold]) => Self::SearchCrossing(*w, *threshold),
            _ if name.starts_with("web_") => Self::Web(
                web::Measure::named(name, &numbers)
                    .ok_or_else(|| format!("found {text:?}, expected a measure"))?,
            ),
            _ if name.starts_with("exit_by_") => {
                let why = name.strip_prefix("exit_by_").and_then(Exit::named);
                Self::ExitBy(why.ok_or_else(|| format!("found {text:?}, expected a measure"))?)
            }
            _ => match name.strip_prefix("heuristic_").and_then(class) {
                Some(c) => Self::HeuristicIs(c),
                None => {
                    class(name).map(Self::Is).ok_or_else(|| format!("found {text:?}, expected a measure"))?
                }
            },
        };
        Ok(found)
    }
}

/// Width of the bins of bytes delivered, seconds.
const BIN_S: f64 = slowstart_sim::engine::BIN.0 as f64 / 1e9;

fn flag(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// The sampled queue of the bottleneck between two times of the flow, in packets.
fn queue(result: &RunResult, from: f64, to: f64) -> Vec<f64> {
    let within = |t: f64| (from..to).contains(&(t - result.start_s));
    let packets = |bytes: u64| bytes as f64 / result.packet;
    result.samples.iter().filter(|s| within(s.time_s)).filter_map(|s| s.queue_bytes.map(packets)).collect()
}

/// Number of bins in the thesis' window.
const TEN: usize = 10;
/// No limit to the bins beyond the window.
const ALL: usize = usize::MAX;

/// The class of SEARCH 2.0's exit with this many bins in its window, and beyond it.
fn by_bins(result: &RunResult, row: &Row, bins: usize, extra: usize) -> Option<Class> {
    let full = row.capacity_time_s?;
    // Only ACKs before the first known loss are kept: without an exit among them, a loss ended slow start.
    let ended = match bins::exit_time(&result.acks, bins, extra) {
        Some(at) => Ended { at, by_congestion: false },
        None => Ended { at: f64::INFINITY, by_congestion: true },
    };
    Some(measured::class(Some(ended), Some(full), None))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Measure {
    /// True if the measure is arithmetic and needs no run.
    pub fn is_formula(&self) -> bool {
        self.formula().is_some()
    }

    /// True if it lies within 0 and 100 %.
    pub fn is_share(&self) -> bool {
        match self {
            Self::Web(measure) => measure.is_share(),
            Self::Share(..) => true,
            _ => false,
        }
    }

    /// The value, if the measure is arithmetic.
    pub fn formula(&self) -> Option<f64> {
        match *self {
            Self::LimitedRounds(target, limit) => Some(formula::limited_rounds(target, limit)),
            // 1 Mbit/s is 125 bytes a millisecond.
            Self::BestWindow(mbit, ms) => Some(125.0 * mbit * ms),
            Self::DoublingRounds(from, to) => Some(formula::doubling_rounds(from, to)),
            Self::SearchDifference(w, r) => Some(formula::search_difference(w, r)),
            Self::SearchBinsSaved(w, beyond) => Some(100.0 * w / (2.0 * w + beyond)),
            Self::SearchCrossing(w, t) => Some(formula::search_crossing(w, t).unwrap_or(f64::INFINITY)),
            _ => None,
        }
    }

    /// The value over all runs of a startup, with the ends of its resolution, if the measure needs them
    /// together.
    pub fn of_all(&self, results: &[&RunResult]) -> Option<(f64, f64, f64)> {
        if *self != Self::MeanRttPeakHz {
            return None;
        }
        let series: Vec<Vec<(f64, f64)>> = results
            .iter()
            .filter_map(|r| {
                let until = r.start_s + r.rows.first()?.first_loss_time_s?;
                let before = r.samples.iter().filter(|s| s.time_s <= until);
                Some(before.filter_map(|s| Some((s.time_s - r.start_s, s.rtt_s?))).collect())
            })
            .collect();
        let (peak, length) = spectrum::peak_of_mean(&series)?;
        let half = 0.5 / length;
        Some((peak.hz, peak.hz - half, peak.hz + half))
    }

    /// The value in a run, if the run has one.
    pub fn of(&self, result: &RunResult, flow: usize) -> Option<f64> {
        if let Some(web) = &result.web {
            let Self::Web(measure) = self else { return None };
            return measure.of(web);
        }
        let (row, delivered) = (result.rows.get(flow)?, result.bins.get(flow)?);
        let exit = row.exit.as_ref();
        let bdp = row.bdp_bytes as f64;
        let samples = || result.samples.iter();
        let start = result.start_s;
        match *self {
            Self::Run(m) => m.of(row),
            Self::ExitPackets => exit.map(|e| e.detected_cwnd_bytes as f64 / result.mss),
            Self::ExitDistanceBdp => exit.map(|e| (e.detected_cwnd_bytes as f64 / bdp - 1.0).abs()),
            Self::ExitBy(why) => Some(flag(exit.is_some_and(|e| e.reason == why.name()))),
            Self::ExitByRule => {
                let forced = |r: &str| Exit::named(r).is_some_and(Exit::by_congestion);
                Some(flag(exit.is_some_and(|e| !forced(&e.reason))))
            }
            Self::CapacityS => row.capacity_time_s,
            Self::HeuristicCapacityS => row.capacity_time_by_heuristic_s,
            Self::HeuristicAnswers => Some(flag(row.capacity_time_by_heuristic_s.is_some())),
            Self::FirstLossS => row.first_loss_time_s,
            Self::LossAfterCapacityS => Some(row.first_loss_time_s? - row.capacity_time_s?),
            Self::Is(class) => Some(flag(row.class == class)),
            Self::HeuristicIs(class) => {
                // Where its heuristic finds no capacity, an exit upon a loss is late by the thesis' words, and another
                // early: so it has HyStart over LEO, where it found capacity in a tenth of the runs.
                let by_loss = |e: &ExitRow| Exit::named(&e.reason).is_some_and(Exit::by_congestion);
                let without = || exit.map(|e| if by_loss(e) { Class::Late } else { Class::Early });
                row.class_by_heuristic.or_else(without).map(|c| flag(c == class))
            }
            Self::Timely => Some(flag(!matches!(row.class, Class::Early | Class::None))),
            Self::HeuristicErrorS => Some(row.capacity_time_by_heuristic_s? - row.capacity_time_s?),
            Self::HeuristicAgrees => row.class_by_heuristic.map(|c| flag(c == row.class)),
            Self::PeakInflightPackets => row.peak_inflight_bytes.map(|n| n as f64 / result.mss),
            Self::WindowKept(s) => {
                let (left, mut most, mut least) = (start + exit?.time_s, 0_u64, 1.0_f64);
                for x in samples().filter(|x| x.time_s <= left + s) {
                    most = most.max(x.cwnd_bytes);
                    if x.time_s >= left {
                        least = least.min(x.cwnd_bytes as f64 / most as f64);
                    }
                }
                Some(least)
            }
            Self::PeakWindowPackets => samples().map(|s| s.cwnd_bytes).max().map(|b| b as f64 / result.mss),
            Self::LeastSsthreshBdp => {
                samples().filter_map(|s| s.ssthresh_bytes).min().map(|b| b as f64 / bdp)
            }
            Self::RetransmittedPackets => row.retransmitted_packets.map(|n| n as f64),
            Self::CompletionRtts => Some(row.completion_s? / row.base_rtt_s),
            Self::Completes => Some(flag(row.completion_s.is_some())),
            Self::GoodputBps => Some(row.goodput_bps as f64),
            Self::DeliveredMb(at) => {
                let upto = (at / BIN_S) as usize;
                Some(delivered.iter().take(upto).map(|b| f64::from(*b)).sum::<f64>() / 1e6)
            }
            Self::TimeToMb(mb) => {
                let mut sum = 0.0;
                let i = delivered.iter().position(|b| {
                    sum += f64::from(*b);
                    sum >= mb * 1e6
                })?;
                Some((i + 1) as f64 * BIN_S)
            }
            Self::TimeToBdpS => {
                let most = samples().map(|s| s.inflight_bytes).max()? as f64;
                let found = samples().find(|s| s.inflight_bytes as f64 >= bdp.min(most))?;
                Some(found.time_s - start)
            }
            Self::TimeToBdpRtts => {
                let first = samples().find(|s| s.inflight_bytes > 0)?.time_s - start;
                Some((Self::TimeToBdpS.of(result, flow)? - first) / row.base_rtt_s)
            }
            Self::MaxRttRatio => {
                let most = samples().filter_map(|s| s.rtt_s).max_by(f64::total_cmp)?;
                Some(most / row.base_rtt_s)
            }
            Self::RttReachesS(ratio) => {
                let reached = |s: &Sample| s.rtt_s.is_some_and(|rtt| rtt >= ratio * row.base_rtt_s);
                Some(samples().find(|s| reached(s))?.time_s - start)
            }
            Self::NearMaxRttS => {
                let most = samples().filter_map(|s| s.rtt_s).max_by(f64::total_cmp)?;
                let near = |s: &&Sample| s.rtt_s.is_some_and(|r| r >= 0.9 * most);
                let interval = row.duration_s / samples().count() as f64;
                Some(samples().filter(near).count() as f64 * interval)
            }
            Self::NearMaxRttRtts => Some(Self::NearMaxRttS.of(result, flow)? / row.base_rtt_s),
            Self::MaxRttOverFirst => {
                let left = start + exit.map_or(f64::INFINITY, |e| e.time_s);
                let before = || samples().filter(move |s| s.time_s <= left).filter_map(|s| s.rtt_s);
                Some(before().max_by(f64::total_cmp)? / before().next()?)
            }
            Self::MaxRttBeforeExitS => {
                let left = start + exit?.time_s;
                samples().filter(|s| s.time_s <= left).filter_map(|s| s.rtt_s).max_by(f64::total_cmp)
            }
            Self::FirstRttS => samples().find_map(|s| s.rtt_s),
            Self::RttSpreadBeforeCapacity => {
                let until = start + row.capacity_time_s? / 2.0;
                let before = || samples().filter(move |s| s.time_s <= until).filter_map(|s| s.rtt_s);
                Some(before().max_by(f64::total_cmp)? / before().min_by(f64::total_cmp)?)
            }
            Self::LateRttRatio => {
                let from = start + row.duration_s * 2.0 / 3.0;
                let late: Vec<f64> = samples().filter(|s| s.time_s >= from).filter_map(|s| s.rtt_s).collect();
                (!late.is_empty()).then(|| late.iter().sum::<f64>() / late.len() as f64 / row.base_rtt_s)
            }
            Self::Utilisation(from, to) => Some(result.utilisation(from, to)),
            Self::Share(from, to) => {
                let all: f64 = (0..result.bins.len()).map(|i| result.delivered(i, from, to)).sum();
                (all > 0.0).then(|| 100.0 * result.delivered(flow, from, to) / all)
            }
            Self::BlackoutS => {
                let full: Vec<usize> =
                    delivered.iter().enumerate().filter(|(_, b)| **b > 0).map(|(i, _)| i).collect();
                let end = (row.duration_s / BIN_S) as usize;
                let ends = full.iter().copied().skip(1).chain(row.completion_s.is_none().then_some(end));
                full.iter()
                    .zip(ends)
                    .map(|(a, b)| b.saturating_sub(a + 1) as f64 * BIN_S)
                    .max_by(f64::total_cmp)
            }
            Self::RecoveryS => {
                let from = result.events.iter().find(|e| e.what == "loss")?.time_s;
                let over = |e: &&slowstart_study::record::EventRow| e.what == "recovered" && e.time_s > from;
                let end = start + row.duration_s;
                Some(result.events.iter().find(over).map_or(end, |e| e.time_s) - from)
            }
            Self::Stalls => Some(result.stalls as f64),
            Self::StallSignals => Some(result.events.iter().filter(|e| e.what == "stall").count() as f64),
            Self::QueueSwingPackets(from, to) => {
                let queue = queue(result, from, to);
                let most = queue.iter().copied().max_by(f64::total_cmp)?;
                Some(most - queue.iter().copied().min_by(f64::total_cmp)?)
            }
            Self::QueueMeanPackets(from, to) => mean(&queue(result, from, to)),
            Self::QueuePeriodS(from, to) => {
                let queue = queue(result, from, to);
                let middle = mean(&queue)?;
                let crossings = queue.windows(2).filter(|w| (w[0] < middle) != (w[1] < middle)).count();
                (crossings > 0).then(|| 2.0 * (to - from) / crossings as f64)
            }
            Self::BinsEarly(n) => Some(flag(by_bins(result, row, n, ALL)? == Class::Early)),
            Self::BinsChokePoint(n) => Some(flag(by_bins(result, row, n, ALL)? == Class::LinkFull)),
            Self::BinsAgree(a, b) => {
                Some(flag(by_bins(result, row, a, ALL)? == by_bins(result, row, b, ALL)?))
            }
            Self::ExtraBins => bins::extra_bins_needed(&result.acks, TEN),
            Self::ExtraChokePoint(n) => Some(flag(by_bins(result, row, TEN, n)? == Class::LinkFull)),
            Self::ExtraAgree(a, b) => {
                Some(flag(by_bins(result, row, TEN, a)? == by_bins(result, row, TEN, b)?))
            }
            Self::BinsError(n) => bins::mean_error(&result.acks, n),
            Self::DifferenceNoise(n) => bins::noise(&result.acks, n, row.capacity_time_s?),
            Self::HeuristicDifferenceNoise(n) => {
                bins::noise(&result.acks, n, row.capacity_time_by_heuristic_s?)
            }
            Self::LimitedRounds(..)
            | Self::BestWindow(..)
            | Self::DoublingRounds(..)
            | Self::SearchDifference(..)
            | Self::SearchBinsSaved(..)
            | Self::SearchCrossing(..) => self.formula(),
            // The run has no web clients, or the measure needs all runs.
            Self::Web(_) | Self::MeanRttPeakHz => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_read() {
        assert_eq!("late".parse(), Ok(Measure::Is(Class::Late)));
        assert_eq!("heuristic_choke-point".parse(), Ok(Measure::HeuristicIs(Class::LinkFull)));
        assert_eq!("utilisation:10,70".parse(), Ok(Measure::Utilisation(10.0, 70.0)));
        for wrong in ["", "exit", "exit_time_s:1", "utilisation:10", "delivered_mb:x", "heuristic_"] {
            assert!(wrong.parse::<Measure>().is_err(), "{wrong}");
        }
    }
}
