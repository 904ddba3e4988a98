//! The rate of the link: what it delivers while a queue stands.

use super::flow::Flow;
use super::rate_over_time::Rates;
use super::{Estimate, Vary};

/// Widths of the intervals that are tried, in least RTTs.
const WIDTHS: [f64; 3] = [4.0, 2.0, 1.0];
/// Busy intervals that are wanted.
const ENOUGH: usize = 3;
/// An interval is busy if its least RTT exceeds the transfer's by this share of the greatest such excess.
const BUSY: f64 = 0.4;
/// Share of retransmissions in what is delivered, up to which losses are not being repaired.
const REPAIRS: f64 = 0.02;
/// Share of the busy time, and difference from the mean rate, at which intervals without repairs are enough. Fewer
/// intervals than are wanted may be off by that difference.
const CLEAN: f64 = 0.3;
const ALIKE: f64 = 0.12;
/// Rates of other intervals differ if they do by more than this share, and by two packets.
const OTHER: f64 = 0.02;
/// Standing delay from which the link counts as full, in least RTTs and in packets.
const FULL: (f64, f64) = (0.02, 4.0);
/// By how much, as a share, the greatest rate of the intervals exceeds that of a link that gives them all.
const GREATEST: f64 = 0.03;
/// Intervals with so much of the least flight of the busy ones in flight, or more, show how the rate answers to the
/// flight, if their flights differ by so much, as a logarithm.
const LARGE: f64 = 0.9;
const SPREAD: f64 = 0.08;
/// A rate that grows with a power of the flight that is off 1 by less than this is that of the sender's window, which is
/// the flight over an RTT that does not depend on it. With a higher power the RTT falls as the flight grows: the link
/// became faster.
const FOLLOWS: f64 = 0.4;
/// The power must be known to this standard error.
const KNOWN: f64 = 0.2;
/// From one interval to the next, the rate of a busy link changes by less than this share of what the flight changes
/// by, and between so many intervals, as a share of all; it may have become faster or slower between the others.
const LESS: f64 = 0.25;
const STEADY: f64 = 0.33;
/// The link was faster at another time if at least `FASTER.0` intervals without retransmissions carried more than
/// `FASTER.1` times the highest rate of the busy intervals.
const FASTER: (usize, f64) = (3, 1.15);
/// Deviation of the rate, as a share, from which it counts as varying.
const VARIES: f64 = 0.04;

/// An interval between two ACKs.
#[derive(Copy, Clone, Debug)]
struct Interval {
    /// Indices of its first and last ACK.
    acks: (usize, usize),
    seconds: f64,
    rate: f64,
    /// What was in flight in the mean of its ACKs, bytes.
    flight: f64,
    /// The least RTT in it above the transfer's least.
    standing: f64,
    /// False if repairs of losses were under way: SACK blocks report some of what arrives then, and the rest
    /// together later.
    clean: bool,
}

/// The busy time of a link.
#[derive(Clone, Debug)]
pub(super) struct Busy {
    /// Runs of ACKs, first and last, in which a queue stood all the time.
    pub(super) runs: Vec<(usize, usize)>,
    /// A rate of intervals in which no queue stood, if the link was faster then, bytes per second.
    pub(super) faster: Option<f64>,
    /// Bytes per second delivered in them.
    pub(super) rate: f64,
    /// Their length, seconds.
    pub(super) seconds: f64,
    /// The standard deviation of the intervals' rates, as a share of the rate, and their number.
    deviation: f64,
    intervals: usize,
    /// True if losses were repaired in some of them.
    repairs: bool,
    /// The least and the greatest of their rates.
    least: f64,
    most: f64,
    /// The least and the greatest rate of single intervals in which a queue stood, if they differ from that of the busy ones.
    others: Option<(f64, f64)>,
    /// False if no queue stood: the rate is the greatest that was delivered.
    pub(super) full: bool,
    /// True if RTTs were longer without a queue.
    pub(super) stretched: bool,
}

/// What was in flight when each ACK came: sent for the first time, and not delivered, bytes.
fn flights(flow: &Flow) -> Vec<f64> {
    let (mut sends, mut sent) = (flow.sends.iter().filter(|s| !s.again).peekable(), 0.0);
    let at = |a: &super::flow::Acked| {
        while let Some(s) = sends.next_if(|s| s.at < a.at) {
            sent += s.bytes;
        }
        sent - a.delivered
    };
    flow.acks.iter().map(at).collect()
}

/// True if the rate grew with what was in flight: then the window limited the sender, and a longer RTT was no
/// queue. Unknown, and false, if the flights hardly differ.
fn follows(all: &[Interval], busy: &[Interval]) -> bool {
    let least = busy.iter().map(|i| i.flight).fold(f64::INFINITY, f64::min);
    let large = all.iter().filter(|i| i.clean && i.flight > 0.0 && i.flight >= least * LARGE);
    let logs: Vec<(f64, f64)> = large.map(|i| (libm::log(i.flight), libm::log(i.rate))).collect();
    let pairs = logs.windows(2).map(|w| ((w[1].0 - w[0].0).abs(), (w[1].1 - w[0].1).abs()));
    let steady = pairs.filter(|(flight, rate)| *rate < LESS * flight).count();
    if steady as f64 > STEADY * logs.len() as f64 {
        return false;
    }
    let n = logs.len() as f64;
    let (x, y) = (logs.iter().map(|l| l.0).sum::<f64>() / n, logs.iter().map(|l| l.1).sum::<f64>() / n);
    let squares: f64 = logs.iter().map(|l| (l.0 - x).powi(2)).sum();
    let power = logs.iter().map(|l| (l.0 - x) * (l.1 - y)).sum::<f64>() / squares;
    let left: f64 = logs.iter().map(|l| (l.1 - y - power * (l.0 - x)).powi(2)).sum();
    let error = (left / (n - 2.0) / squares).sqrt();
    logs.len() >= ENOUGH && (squares / n).sqrt() > SPREAD && (power - 1.0).abs() < FOLLOWS && error < KNOWN
}

fn intervals(flow: &Flow, width: f64) -> Vec<Interval> {
    let (acks, mut all) = (&flow.acks, Vec::new());
    let flights = flights(flow);
    // Time, and bytes retransmitted up to it.
    let mut repairs = vec![(f64::NEG_INFINITY, 0.0)];
    for s in flow.sends.iter().filter(|s| s.again) {
        repairs.push((s.at, repairs[repairs.len() - 1].1 + s.bytes));
    }
    let repaired = |at: f64| repairs[repairs.partition_point(|r| r.0 < at).max(1) - 1].1;
    let mut from = 0;
    while from + 1 < acks.len() {
        let end = acks[from].at + width;
        let to = from + acks[from..].partition_point(|a| a.at < end);
        if to >= acks.len() {
            break;
        }
        let seconds = acks[to].at - acks[from].at;
        let least = acks[from + 1..=to].iter().filter_map(|a| a.rtt).reduce(f64::min);
        let gap = acks[from..=to].windows(2).map(|w| w[1].at - w[0].at).fold(0.0, f64::max);
        if let Some(least) = least.filter(|_| gap < width / 2.0 && to > from + 3) {
            let rate = (acks[to].delivered - acks[from].delivered) / seconds;
            let repairs = repaired(acks[to].at) - repaired(acks[from].at - 1.5 * least);
            let clean = repairs < REPAIRS * rate * seconds;
            let flight = flights[from + 1..=to].iter().sum::<f64>() / (to - from) as f64;
            all.push(Interval {
                acks: (from, to),
                seconds,
                rate,
                flight,
                standing: least - flow.least,
                clean,
            });
        }
        from = to;
    }
    all
}

/// The intervals without repairs, if they are enough to tell the rate: much of the time, or of nearly the
/// same rate. A receiver reports three blocks at a time, so that while losses are repaired ACKs report late
/// what was delivered.
fn clean(busy: &[Interval]) -> Option<Vec<Interval>> {
    let clean: Vec<Interval> = busy.iter().filter(|i| i.clean).copied().collect();
    let time = |of: &[Interval]| of.iter().map(|i| i.seconds).sum::<f64>();
    let mean = clean.iter().map(|i| i.rate).sum::<f64>() / clean.len() as f64;
    let alike = clean.iter().all(|i| (i.rate / mean - 1.0).abs() < ALIKE);
    (clean.len() >= ENOUGH && (alike || time(&clean) > CLEAN * time(busy))).then_some(clean)
}

/// True if each half of the ACKs between these two took half of the time: a link that is full sends at its rate.
fn even(flow: &Flow, (from, to): (usize, usize)) -> bool {
    let (a, b) = (flow.acks[from], flow.acks[to]);
    let middle = f64::midpoint(a.delivered, b.delivered);
    let half = flow.acks[from..=to].partition_point(|c| c.delivered < middle);
    let c = flow.acks[from + half.min(to - from)];
    let line = (c.delivered - a.delivered) / (b.delivered - a.delivered);
    ((c.at - a.at) / (b.at - a.at) - line).abs() < ALIKE / 2.0
}

/// Finds the busy time; `None` if there are too few ACKs for one interval. `slot` is the period of ACK slots.
pub(super) fn busy(flow: &Flow, slot: f64) -> Option<Busy> {
    let mut found = None;
    for width in WIDTHS {
        let all = intervals(flow, (flow.least * width).max(slot * 8.0).max(1e-6));
        let Some(most) = all.iter().map(|i| i.standing).reduce(f64::max) else { continue };
        let mut busy: Vec<Interval> = all.iter().filter(|i| i.standing >= most * BUSY).copied().collect();
        busy = clean(&busy).unwrap_or(busy);
        let enough = busy.len() >= ENOUGH;
        found = Some((all, busy, most));
        if enough {
            break;
        }
    }
    let (all, busy, most) = found?;
    let of = |i: &[Interval]| {
        let seconds: f64 = i.iter().map(|i| i.seconds).sum();
        (i.iter().map(|i| i.rate * i.seconds).sum::<f64>() / seconds, seconds)
    };
    let (rate, seconds) = of(&busy);
    let stands = FULL.0 * flow.least + FULL.1 * flow.packet / rate + slot;
    let longer = most > stands;
    let full = longer && !follows(&all, &busy);
    // A single long RTT may be a wave, if more was delivered without it.
    let highest = all.iter().map(|i| i.rate).fold(0.0, f64::max);
    let full = full && (busy.len() >= ENOUGH || highest < rate * (1.0 + ALIKE));
    let full = full && (busy.len() > 1 || busy.first().is_some_and(|only| even(flow, only.acks)));
    if !full {
        let best = all.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))?;
        return Some(Busy {
            faster: None,
            runs: vec![best.acks],
            rate: best.rate,
            seconds: best.seconds,
            // The ends of the interval are known to a packet each, and the greatest of many rates is too great.
            deviation: (2.0 * flow.packet / (best.rate * best.seconds) + GREATEST).min(1.0),
            intervals: 1,
            repairs: false,
            least: best.rate,
            most: best.rate,
            others: None,
            full,
            stretched: longer || slot > 0.0,
        });
    }
    let variance = busy.iter().map(|i| (i.rate / rate - 1.0).powi(2)).sum::<f64>() / busy.len() as f64;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for i in &busy {
        match runs.last_mut() {
            Some(run) if run.1 == i.acks.0 => run.1 = i.acks.1,
            _ => runs.push(i.acks),
        }
    }
    let others = all.iter().filter(|i| i.clean && i.standing > stands);
    let others =
        others.filter(|i| (i.rate / rate - 1.0).abs() > OTHER + 2.0 * flow.packet / (rate * i.seconds));
    let others = others.fold(None, |range: Option<(f64, f64)>, i| {
        let (low, high) = range.unwrap_or((rate, rate));
        Some((low.min(i.rate), high.max(i.rate)))
    });
    let greatest = busy.iter().map(|i| i.rate).fold(0.0, f64::max);
    let mut more: Vec<f64> =
        all.iter().filter(|i| i.clean && i.rate > greatest * FASTER.1).map(|i| i.rate).collect();
    more.sort_by(f64::total_cmp);
    Some(Busy {
        faster: more.len().checked_sub(FASTER.0).map(|n| more[n]),
        runs,
        rate,
        seconds,
        deviation: variance.sqrt(),
        intervals: busy.len(),
        repairs: busy.iter().any(|i| !i.clean),
        least: busy.iter().map(|i| i.rate).fold(f64::INFINITY, f64::min),
        most: greatest,
        others,
        full,
        stretched: false,
    })
}

impl Busy {
    /// The rate on the wire, bits per second. `share_lost` behind the link was carried by it. Of a rate that `changes`
    /// the interval holds those of all intervals, and the mean.
    pub(super) fn estimate(&self, share_lost: f64, vary: Option<&Vary>, changes: Option<&Rates>) -> Estimate {
        let value = self.rate * 8.0 / (1.0 - share_lost);
        if !self.full {
            return Estimate {
                value,
                low: value * (1.0 - self.deviation),
                high: None,
                basis: "no queue stood: the greatest rate that was delivered over one interval".into(),
            };
        }
        // The mean over n intervals; of a rate that is drawn anew now and then, over as many draws.
        let draws = vary.map_or(self.intervals as f64, |v| (self.seconds / v.period_s.value).max(1.0));
        let deviation = vary.map_or(self.deviation, |v| v.share.value / 3_f64.sqrt());
        let alone = if self.intervals < ENOUGH { ALIKE } else { 0.002 };
        let off = (2.0 * deviation / draws.sqrt()).max(alone);
        let wire = 8.0 / (1.0 - share_lost);
        let least = changes.map_or(value, |c| self.least.min(c.mean - c.error) * wire);
        let most = changes.map(|c| self.most.max(c.mean + c.error) * wire);
        let most = most.or(self.repairs.then_some(self.most * wire)).unwrap_or(value);
        let (least, most) =
            self.others.map_or((least, most), |o| (least.min(o.0 * wire), most.max(o.1 * wire)));
        let repairs =
            if self.repairs { "; in some losses were repaired, and ACKs report late then" } else { "" };
        let others = self.others.map(|(low, high)| {
            let [low, high] = [low, high].map(|rate| rate * wire / 1e6);
            format!("; in single intervals from {low:.3} to {high:.3} Mbit/s")
        });
        Estimate {
            value,
            low: least.min(value) * (1.0 - off),
            high: Some(most.max(value) * (1.0 + off)),
            basis: format!(
                "{:.3} s in which a queue stood, in {} intervals{repairs}{}",
                self.seconds,
                self.intervals,
                others.unwrap_or_default()
            ),
        }
    }

    /// How the rate varies, if it does: a share up and down, drawn anew with a period. `noise` is the
    /// variance of an ACK's time about the line of a full link.
    pub(super) fn vary(&self, flow: &Flow, noise: f64, slot: f64) -> Option<Vary> {
        if !self.full {
            return None;
        }
        let least = (8.0 * flow.packet / self.rate).max(16.0 * noise.sqrt()).max(8.0 * slot);
        let mut scales = Vec::new();
        let mut width = least;
        while width < self.seconds / 8.0 && scales.len() < 12 {
            if let Some((variance, n)) = self.variance(flow, width) {
                let packets = flow.packet / self.rate / width;
                let own = variance - 2.0 * noise / (width * width) - packets * packets / 3.0;
                scales.push((width, own.max(1e-9), n));
            }
            width *= 2.0;
        }
        let first = scales.first()?;
        let own = first.1.min(scales.get(1)?.1 * 1.5);
        if own.sqrt() < VARIES || own < 2.0 * (noise / (first.0 * first.0)) {
            return None;
        }
        // A rate drawn anew each period P has, over a width h, the variance s (1 - h/3P) or, for h above P, s
        // P/h (1 - P/3h).
        let shape = |x: f64| if x <= 1.0 { 1.0 - x / 3.0 } else { (1.0 - 1.0 / (3.0 * x)) / x };
        let mut best = (f64::INFINITY, 0.0, 0.0);
        let mut period = least;
        while period < self.seconds / 4.0 {
            let weight: f64 = scales.iter().map(|s| s.2).sum();
            let log = scales.iter().map(|s| s.2 * libm::log(s.1 / shape(s.0 / period))).sum::<f64>() / weight;
            let off: f64 =
                scales.iter().map(|s| s.2 * (libm::log(s.1 / shape(s.0 / period)) - log).powi(2)).sum();
            if off < best.0 {
                best = (off, period, libm::exp(log));
            }
            period *= 1.05;
        }
        let (_, period, variance) = Some(best).filter(|b| b.1 > 0.0)?;
        let share = (3.0 * variance).sqrt().min(0.95);
        let draws = (self.seconds / period).max(2.0);
        let off = share * 2.0 * (0.2 / draws).sqrt();
        let basis = format!("the rate's variance over {} widths, about {draws:.0} draws", scales.len());
        Some(Vary {
            share: Estimate {
                value: share,
                low: (share - off).max(0.0),
                high: Some((share + off).min(1.0)),
                basis: basis.clone(),
            },
            // The variances at neighbouring widths differ little: the period is known to a factor.
            period_s: Estimate { value: period, low: period / 2.0, high: Some(period * 2.0), basis },
        })
    }

    /// The variance of the rate over intervals of this width, as a share of the squared rate; `None` with few
    /// intervals.
    pub(super) fn variance(&self, flow: &Flow, width: f64) -> Option<(f64, f64)> {
        let rates = self.rates(flow, width);
        let n = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / n;
        let variance = rates.iter().map(|r| (r / mean - 1.0).powi(2)).sum::<f64>() / (n - 1.0);
        (rates.len() >= 8).then_some((variance, n))
    }

    /// Rates over intervals of this width within the runs.
    fn rates(&self, flow: &Flow, width: f64) -> Vec<f64> {
        let mut all = Vec::new();
        for &(first, last) in &self.runs {
            let mut from = first;
            loop {
                let end = flow.acks[from].at + width;
                let to = from + flow.acks[from..=last].partition_point(|a| a.at < end);
                if to > last {
                    break;
                }
                let (a, b) = (flow.acks[from], flow.acks[to]);
                all.push((b.delivered - a.delivered) / (b.at - a.at));
                from = to;
            }
        }
        all
    }
}
