//! The rate of the link over time: known where packets waited for it, between bounds where they did not.
//!
//! An ACK whose packet waited says that the link had worked since the packet before it left: what it
//! acknowledges, by that time, is the rate. Where no packet waited, the link carried at least what was
//! delivered, and at most the greatest rate that it showed elsewhere.

use super::flow::Flow;
use super::slots;
use crate::analysis::Findings;
use slowstart::units::{Instant, Span};
use slowstart_study::stats::{NORMAL_80, student_80};
use std::fmt::Write as _;

/// Least length of a step, in least RTTs, and the least number of packets delivered in it.
const LENGTH: f64 = 1.0;
const PACKETS: f64 = 4.0;
/// An RTT above the least one by this share shows that its packet waited; and by twice as much as the first
/// packet's, which met no queue of its own: what it took above the least RTT was delay of another kind.
const WAITED: f64 = 0.05;
const FIRST: f64 = 2.0;
/// Bytes of one opportunity of a trace.
const OPPORTUNITY: f64 = 1500.0;
/// From the client's SYN to the server's first data, in base RTTs.
const HANDSHAKE: f64 = 1.5;
/// The most opportunities of a trace: 3 GB of data.
const MOST: usize = 2_000_000;
/// The longest course, seconds: a clock that jumps makes none that a trace cannot hold.
pub(super) const LONGEST: f64 = 86_400.0;
/// The least rate of a step, and the greatest, bytes per second: what a path file takes.
pub(super) const LEAST: f64 = 125.0;
const GREATEST: f64 = 1.25e13;
/// A rate changes if it varies by this share or more.
const CHANGES: f64 = 0.25;

/// A time in which the rate counts as constant.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Step {
    /// Its end, seconds since the first data.
    pub until: f64,
    /// The least rate on the wire, bytes per second.
    pub low: f64,
    /// The greatest; the same where the rate is known.
    pub high: f64,
}

impl Step {
    /// The rate at a rank: the least one at 0, the greatest at 1, uniform in the logarithm between them.
    fn at(&self, rank: f64) -> f64 {
        self.low * libm::pow(self.high / self.low, rank)
    }
}

/// The rate of a link from the first data on.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Steps, in order of time; at least one is known.
    pub steps: Vec<Step>,
    /// The base RTT, seconds.
    base: f64,
}

/// What a step has seen so far.
#[derive(Copy, Clone, Debug, Default)]
struct Seen {
    bytes: f64,
    busy_bytes: f64,
    busy: f64,
}

/// The rate over time of the path of these findings, whose base RTT in seconds is given.
///
/// # Errors
/// What was found and what is needed, if the link was never seen busy.
pub fn course(f: &Findings, base: f64) -> Result<Course, String> {
    let none =
        || "found no packet that waited for the link, expected some: its rate is not known".to_string();
    let mut flow = Flow::new(f).ok_or_else(none)?;
    let slot = slots::of(f, &flow).map_or(0.0, |s| s.value);
    if slot > 0.0 {
        flow = flow.grouped();
    }
    Course::new(steps(&flow, slot, base), base).ok_or_else(none)
}

/// The rates of a link whose rate changes.
pub(super) struct Rates {
    /// Their mean over the time in which the rate is known, bytes per second, and two standard errors of it.
    pub(super) mean: f64,
    pub(super) error: f64,
    /// By how much they vary, as a share of the mean.
    pub(super) share: f64,
}

/// The rates of a flow, if they change. `slot` is the period of ACK slots.
pub(super) fn changes(flow: &Flow, slot: f64) -> Option<Rates> {
    let course = Course::new(steps(flow, slot, flow.least), flow.least)?;
    let share = course.changes()?;
    let known = course.steps.iter().filter(|s| s.low >= s.high).count();
    let mean = course.known_rates().0;
    Some(Rates { mean, error: mean * share * 2.0 / (3.0 * known as f64).sqrt(), share })
}

/// Steps of which those that are not known have no upper end.
fn steps(flow: &Flow, slot: f64, base: f64) -> Vec<Step> {
    let own = flow.acks.iter().find_map(|a| a.rtt).map_or(0.0, |r| r - flow.least);
    let waited = flow.least + slot + (flow.least * WAITED).max(own * FIRST);
    let (length, least) = ((flow.least * LENGTH).max(slot * 2.0), PACKETS * flow.packet);
    // An ACK leaves the link by the base RTT before it comes.
    let first = &flow.acks[0];
    let begin = first.at - first.rtt.unwrap_or(base).max(base);
    let mut steps = Vec::new();
    let (mut from, mut last, mut delivered) = (0.0, 0.0, 0.0);
    let mut seen = Seen::default();
    for a in &flow.acks {
        let at = (a.at - begin - base).max(last);
        if at > LONGEST {
            break;
        }
        let bytes = (a.delivered - delivered).max(0.0);
        seen.bytes += bytes;
        if a.rtt.is_some_and(|r| r > waited) {
            seen.busy_bytes += bytes;
            seen.busy += at - last;
        }
        (last, delivered) = (at, a.delivered.max(delivered));
        if at - from < length || seen.bytes < least {
            continue;
        }
        let mean = (seen.bytes / (at - from)).max(LEAST);
        let known = seen.busy_bytes >= least && seen.busy > 0.0;
        // Infinite: not known yet.
        let (low, high) = if known {
            let rate = (seen.busy_bytes / seen.busy).max(mean).min(GREATEST);
            (rate, rate)
        } else {
            (mean, f64::INFINITY)
        };
        steps.push(Step { until: at, low, high });
        (from, seen) = (at, Seen::default());
    }
    steps
}

impl Course {
    /// Steps of which those that are not known have no upper end yet; `None` if that is all of them.
    pub(super) fn new(mut steps: Vec<Step>, base: f64) -> Option<Self> {
        let most = steps.iter().map(|s| s.high).filter(|h| h.is_finite()).reduce(f64::max)?;
        for s in &mut steps {
            if s.high.is_infinite() {
                s.high = most.max(s.low);
            }
        }
        Some(Self { steps, base })
    }

    /// The share of the time in which the rate is known.
    pub fn known(&self) -> f64 {
        let mut from = 0.0;
        let mut known = 0.0;
        for s in &self.steps {
            if s.low >= s.high {
                known += s.until - from;
            }
            from = s.until;
        }
        if from > 0.0 { known / from } else { 0.0 }
    }

    /// The mean of the rates that are known, bytes per second, and the share of it by which they vary: a rate
    /// drawn uniformly from the mean less that share to the mean and that share has their variance.
    fn known_rates(&self) -> (f64, f64) {
        let (mut from, mut time, mut bytes, mut squares) = (0.0, 0.0, 0.0, 0.0);
        for s in &self.steps {
            if s.low >= s.high {
                let length = s.until - from;
                time += length;
                bytes += s.low * length;
                squares += s.low * s.low * length;
            }
            from = s.until;
        }
        let mean = bytes / time;
        (mean, (3.0 * (squares / time / (mean * mean) - 1.0).max(0.0)).sqrt())
    }

    /// By how much the rate varies, as a share, if it changes.
    pub(super) fn changes(&self) -> Option<f64> {
        Some(self.known_rates().1).filter(|share| *share > CHANGES)
    }

    /// Bytes that the link can carry from one time to another, at a rank; the last step goes on.
    fn carried(&self, from: f64, to: f64, rank: f64) -> f64 {
        let (mut start, mut bytes) = (0.0_f64, 0.0);
        for (i, s) in self.steps.iter().enumerate() {
            let end = if i + 1 == self.steps.len() { f64::INFINITY } else { s.until };
            bytes += s.at(rank) * (to.min(end) - from.max(start)).max(0.0);
            start = end;
        }
        bytes
    }

    /// The `schedule` of a path with this rate, on whose clock the first data leaves at `first`: where the
    /// rate is not known, that of the nearest step where it is, and at least what was delivered; after the
    /// last step the mean of what is known.
    pub(crate) fn schedule(&self, first: Instant) -> String {
        let mut out = String::new();
        let mut from = Instant::ZERO;
        for (s, rate) in self.steps.iter().zip(self.nearest()) {
            let until = first + Span((s.until * 1e9) as u64);
            if until > from {
                write!(out, "{}ns:{:.0}bit,", from.0, rate.max(s.low) * 8.0)
                    .expect("a String takes everything");
                from = until;
            }
        }
        write!(out, "{}ns:{:.0}bit", from.0, self.known_rates().0 * 8.0).expect("a String takes everything");
        out
    }

    /// For each step, the rate of the nearest one where it is known.
    fn nearest(&self) -> Vec<f64> {
        let mut all: Vec<(f64, f64)> = Vec::new();
        let mut start = 0.0;
        let mut last = (f64::INFINITY, LEAST);
        for s in &self.steps {
            last = if s.low >= s.high { (0.0, s.low) } else { (last.0 + s.until - start, last.1) };
            all.push(last);
            start = s.until;
        }
        let mut next = (f64::INFINITY, LEAST);
        for (i, s) in self.steps.iter().enumerate().rev() {
            let start = i.checked_sub(1).map_or(0.0, |b| self.steps[b].until);
            next = if s.low >= s.high { (0.0, s.low) } else { (next.0 + s.until - start, next.1) };
            if next.0 < all[i].0 {
                all[i] = next;
            }
        }
        all.into_iter().map(|(_, rate)| rate).collect()
    }

    /// A Mahimahi trace of it: the rate at a rank, times the factor of its time, the last one of which goes on.
    /// It begins [`HANDSHAKE`] before the first data with the rate of the first step; after [`MOST`]
    /// opportunities it ends.
    fn trace(&self, rank: f64, stretched: &[(f64, f64)]) -> String {
        let mut out = String::new();
        let (mut from, mut credit, mut lines, mut last) = (0.0, 0.0, 0, 0);
        for (i, s) in self.steps.iter().enumerate() {
            let until = s.until + self.base * HANDSHAKE;
            let start = if i == 0 { 0.0 } else { from };
            let middle = f64::midpoint(start, until) - self.base * HANDSHAKE;
            let factor = stretched.iter().find(|f| middle < f.0).or(stretched.last()).map_or(1.0, |f| f.1);
            let rate = s.at(rank) * factor / OPPORTUNITY;
            let all = credit + rate * (until - start);
            while credit + 1.0 <= all && lines < MOST {
                credit += 1.0;
                last = ((until - (all - credit) / rate) * 1e3).ceil().max(1.0) as u64;
                writeln!(out, "{last}").expect("a String takes everything");
                lines += 1;
            }
            (credit, from) = (all - credit, until);
        }
        // The period is that of the recording, to the millisecond.
        let end = (from * 1e3).ceil().max(1.0) as u64;
        if lines == 0 || (lines < MOST && last < end) {
            writeln!(out, "{end}").expect("a String takes everything");
        }
        out
    }
}

/// How far apart the rates of two or more recordings are: in each doubling of the time since the first data,
/// until its end in seconds, half of the width of what [`traces`] stretches by, in the natural logarithm.
///
/// A recording yet to come differs from `n` recordings by more than these differ from their mean. If the
/// logarithms of rates are normal it follows Student's law with `n - 1` degrees of freedom, whose scale is
/// their standard deviation times the root of `1 + 1/n`. One of the recordings, drawn, and stretched by a
/// uniform law of this width, has the variance of the normal law whose 80 % interval is that of Student's.
fn apart(all: &[&Course]) -> Vec<(f64, f64)> {
    let (Some(base), Some(end)) = (
        all.iter().map(|c| c.base).reduce(f64::max),
        all.iter().filter_map(|c| c.steps.last()).map(|s| s.until).reduce(f64::min),
    ) else {
        return Vec::new();
    };
    let n = all.len() as f64;
    let student = student_80(all.len()) / NORMAL_80;
    let more = (1.0 + 1.0 / n) * student * student - (n - 1.0) / n;
    let (mut from, mut each) = (base.max(1e-3), Vec::new());
    while from < end {
        let to = (from * 2.0).min(end);
        let rates = all.iter().map(|c| libm::log(c.carried(from, to, 0.5) / (to - from)));
        let mean = rates.clone().sum::<f64>() / n;
        let variance = rates.map(|r| (r - mean) * (r - mean)).sum::<f64>() / (n - 1.0);
        each.push((to, (3.0 * variance * more).sqrt()));
        from *= 2.0;
    }
    each
}

/// Traces of several recordings, so many of each: at ranks between the bounds of what is not known, and with
/// the rate stretched, as a recording yet to come may differ from these. Of one recording nothing is
/// stretched.
pub fn traces(all: &[&Course], each: usize) -> Vec<Vec<String>> {
    let apart = if all.len() > 1 { apart(all) } else { Vec::new() };
    let of = |c: &&Course| {
        let one = |i: usize| {
            let place = 2.0 * (i as f64 + 0.5) / each as f64 - 1.0;
            // Of one pair of ranks neither tells the other: multiples of the golden ratio.
            let rank = if each == 1 { 0.5 } else { (0.5 + i as f64 * 0.618_033_988_749_895).fract() };
            let stretched: Vec<(f64, f64)> = apart.iter().map(|a| (a.0, libm::exp(place * a.1))).collect();
            c.trace(rank, &stretched)
        };
        (0..each).map(one).collect()
    };
    all.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(until: f64, low: f64, high: f64) -> Step {
        Step { until, low, high }
    }

    #[test]
    fn a_trace_carries_what_the_steps_say() {
        let c =
            Course { steps: vec![step(1.0, 15_000.0, 15_000.0), step(3.0, 150_000.0, 150_000.0)], base: 0.1 };
        let times: Vec<f64> = c.trace(0.5, &[]).lines().map(|l| l.parse().expect("a number")).collect();
        assert!(times.is_sorted());
        let before = times.iter().filter(|t| **t <= 1150.0).count();
        assert!((11..=12).contains(&before), "{before}: 10 opportunities a second for 1.15 s");
        assert!((times.len() - before).abs_diff(200) <= 1, "{}", times.len());
        assert!((times[times.len() - 1] - 3150.0).abs() < 1.5);
        assert!((c.carried(0.5, 2.0, 0.5) - 157_500.0).abs() < 1e-6);
    }

    #[test]
    fn a_schedule_takes_what_is_not_known_from_the_nearest_step() {
        let steps = [(1.0, 1e3, 1e6), (2.0, 5e5, 5e5), (3.0, 6e5, 1e6), (5.0, 1e3, 1e6), (6.0, 1e6, 1e6)];
        let c = Course { steps: steps.map(|(u, l, h)| step(u, l, h)).to_vec(), base: 0.1 };
        let first = Instant(10_000_000_000);
        assert_eq!(
            c.schedule(first),
            "0ns:4000000bit,11000000000ns:4000000bit,12000000000ns:4800000bit,13000000000ns:8000000bit,\
             15000000000ns:8000000bit,16000000000ns:6000000bit"
        );
    }

    #[test]
    fn what_is_not_known_lies_between_its_bounds() {
        let s = step(1.0, 1e4, 1e6);
        assert!((s.at(0.0) - 1e4).abs() < 1e-6 && (s.at(1.0) - 1e6).abs() < 1e-3);
        assert!((s.at(0.5) - 1e5).abs() < 1e-3);
    }

    #[test]
    fn recordings_alike_are_not_stretched_and_others_as_students_law_says() {
        let of = |rate: f64| Course { steps: vec![step(10.0, rate, rate)], base: 0.1 };
        let (a, b, c) = (of(1e5), of(1e5), of(4e5));
        let half = |all: &[&Course]| -> Vec<f64> { apart(all).iter().map(|d| d.1).collect() };
        assert!(half(&[&a, &b]).iter().all(|h| *h < 1e-9));
        assert!((apart(&[&a, &c])[6].0 - 10.0).abs() < 1e-9 && apart(&[&a, &c]).len() == 7);
        // The 90 % quantile is 3.078 standard errors of a draw for two values and 1.886 for three.
        for (all, t) in [(vec![&a, &c], 3.078), (vec![&a, &b, &c], 1.886)] {
            let n = all.len() as f64;
            let variance = libm::pow(libm::log(4.0), 2.0) / n;
            let wanted = variance * (1.0 + 1.0 / n) * libm::pow(t / 1.2816, 2.0);
            for h in half(&all) {
                // The variance of the recordings themselves, and that of a uniform law.
                let has = variance * (n - 1.0) / n + h * h / 3.0;
                assert!((has / wanted - 1.0).abs() < 1e-3, "{has} {wanted}");
            }
        }
        assert_eq!(traces(&[&a], 2)[0][0], traces(&[&a], 2)[0][1]);
    }

    #[test]
    fn each_time_is_stretched_by_what_differs_then() {
        // Alike in the first second.
        let of = |rate: f64| Course { steps: vec![step(1.0, 2e5, 2e5), step(16.0, rate, rate)], base: 0.125 };
        let (a, b) = (of(1e5), of(4e5));
        let stretched = traces(&[&a, &b], 3);
        let count = |text: &str, from: f64, to: f64| {
            let times = text.lines().filter_map(|l| l.parse::<f64>().ok());
            times.filter(|t| (from..to).contains(t)).count()
        };
        let (slow, fast) = (&stretched[0][0], &stretched[0][2]);
        assert_eq!(count(slow, 0.0, 1000.0), count(fast, 0.0, 1000.0));
        assert!(count(fast, 2000.0, 16_000.0) > 10 * count(slow, 2000.0, 16_000.0));
        assert_eq!(stretched[0][1], a.trace(0.5, &[]), "the middle one is as recorded");
    }
}
