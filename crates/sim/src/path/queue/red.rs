//! RED, as Linux and `tc` have it (`include/net/red.h`, `net/sched/sch_red.c`, 6.18; iproute2 `tc_red.c`),
//! after Floyd and Jacobson, Random Early Detection Gateways for Congestion Avoidance (1993), and Floyd,
//! Gummadi and Shenker, Adaptive RED (2001).
//!
//! Departs from Linux: `nodrop` is not there.

use slowstart::units::{Instant, Rate, Span};

use super::store::Fifo;
use super::tc_syntax::{Grammar, Words, Wrong, wrong};
use super::{Departure, Kind, Packet, Queueing, Settings};
use crate::path::{Cause, quantity};
use crate::random::Stream;

/// The parameters of `red`, as `tc` takes them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// The most bytes.
    pub(super) limit: u32,
    /// The average above which packets may be dropped, and that above which all are.
    pub(super) min: u32,
    pub(super) max: u32,
    /// The usual packet, and how many of them may come at once.
    pub(super) avpkt: u32,
    pub(super) burst: u32,
    /// The probability at `max`, in millionths.
    pub(super) probability: u32,
    /// The rate at which packets leave, for the decay of the average while nothing waits.
    pub(super) bandwidth: Rate,
    /// True if capable packets are marked in place of being dropped.
    pub(super) ecn: bool,
    /// True if packets above `max` are dropped even so.
    pub(super) harddrop: bool,
    /// True if the probability is adapted.
    pub(super) adaptive: bool,
}

/// Its words.
pub(super) const GRAMMARS: &[Grammar] = &[Grammar {
    name: "red",
    values: &["limit", "min", "max", "avpkt", "burst", "probability", "bandwidth"],
    flags: &["ecn", "harddrop", "adaptive"],
    ignored: (&["ewma", "Scell_log", "Plog"], &[]),
    read: |w, rate| Ok(Kind::Red(read(w, rate)?)),
}];

/// The parameters, with the defaults of `tc`; of the bandwidth, the rate of the link.
fn read(w: &Words, rate: Rate) -> Result<Params, Wrong> {
    let limit = w.size("limit")?.ok_or_else(|| wrong("red", "limit with it, such as limit 400000b"))?;
    let (min, max) = (w.size("min")?, w.size("max")?);
    let max = max.unwrap_or_else(|| min.map_or(limit / 4, |min| min.saturating_mul(3)));
    let min = min.unwrap_or(max / 3);
    if min < 1 || max <= min || limit <= max {
        let found = format!("limit {limit} min {min} max {max}");
        return Err(wrong(found, "a limit above max, which is above min, which is at least 1"));
    }
    let avpkt = w.size("avpkt")?.unwrap_or(1000);
    let default = ((2 * u64::from(min) + u64::from(max)) / (3 * u64::from(avpkt))) as u32;
    let burst = w.number("burst", 1..=1 << 20)?.map_or(default.max(1), |n| n as u32);
    let parse = |text: &str| quantity::decimal(text).filter(|p| (1..=1_000_000).contains(p));
    let probability = w.get("probability", parse, "a probability above 0 and at most 1, such as 0.02")?;
    let bandwidth = w.get("bandwidth", tc_rate, "a rate such as 10Mbit")?.unwrap_or(rate);
    let params = Params {
        limit,
        min,
        max,
        avpkt,
        burst,
        probability: probability.map_or(20_000, |p| p as u32),
        bandwidth,
        ecn: w.is_on("ecn").unwrap_or(false),
        harddrop: w.is_on("harddrop").unwrap_or(false),
        adaptive: w.is_on("adaptive").unwrap_or(false),
    };
    if params.weight_log().is_none() {
        let least = min.div_ceil(avpkt);
        return Err(wrong(
            format!("burst {burst}"),
            format!("a burst of at least min / avpkt, which is {least}"),
        ));
    }
    Ok(params)
}

/// A rate; `tc` writes `Kbit`.
fn tc_rate(text: &str) -> Option<Rate> {
    quantity::rate(&text.replace('K', "k"))
}

impl Params {
    /// The logarithm of the averaging constant (`tc_red_eval_ewma`); none if the burst is too short for
    /// `min`.
    pub(super) fn weight_log(&self) -> Option<u32> {
        let burst = f64::from(self.burst);
        let more = burst + 1.0 - f64::from(self.min) / f64::from(self.avpkt);
        let fits = |log: &u32| {
            let w = libm::exp2(-f64::from(*log));
            more <= (1.0 - libm::pow(1.0 - w, burst)) / w
        };
        if more < 1.0 { None } else { (1..32).find(fits) }
    }
}

/// The probability of a hundredth, of one in 2^32.
const PERCENT: u32 = 42_949_673;
/// How often the probability is adapted.
const ADAPT: Span = Span::millis(500);

/// The decay of the average while nothing waits: by shifts, from a table (`tc_red_eval_idle_damping`).
#[derive(Clone, Debug)]
struct Decay {
    table: Box<[u8; 256]>,
    cell_log: u32,
}

impl Decay {
    fn new(p: &Params, weight_log: u32) -> Self {
        // tc computes in ticks of 64 ns. The kernel looks up microseconds, so the average decays 15.6 times
        // more slowly.
        let ticks = f64::from(p.avpkt) * 8e9 / p.bandwidth.0 as f64 / 64.0;
        let decay = -libm::log(1.0 - libm::exp2(-f64::from(weight_log))) / ticks;
        let cell_log = (0..32).find(|log| 31.0 / decay / libm::exp2(f64::from(*log)) < 512.0).unwrap_or(31);
        let mut table = Box::new([0; 256]);
        for (i, shift) in table.iter_mut().enumerate().skip(1) {
            *shift = (i as f64 * libm::exp2(f64::from(cell_log)) * decay).min(31.0) as u8;
        }
        table[255] = 31;
        Self { table, cell_log }
    }

    /// The average after an idle time in microseconds.
    fn apply(&self, average: u64, idle: u64) -> u64 {
        let idle = idle.min(255 << self.cell_log);
        match self.table[(idle >> self.cell_log) as usize & 255] {
            0 => average - ((average * idle) >> self.cell_log).min(average >> 1),
            shift => average >> shift,
        }
    }
}

/// One queue under RED.
#[derive(Clone, Debug)]
pub(super) struct Red {
    params: Params,
    weight_log: u32,
    decay: Decay,
    stream: Stream,
    queue: Fifo,
    /// The average backlog in bytes, times two to the power of `weight_log`.
    average: u64,
    /// Since when nothing waits.
    idle_since: Option<Instant>,
    /// Packets since the last random number; none below the threshold.
    count: Option<u64>,
    random: u64,
    /// The probability at `max`, of one in 2^32.
    most: u32,
    /// What it grows by for each byte between `min` and `max`.
    step: u32,
    adapt_at: Instant,
}

impl Red {
    pub(super) fn new(params: Params, stream: Stream) -> Self {
        let weight_log = params.weight_log().unwrap_or(1);
        let most = ((u64::from(params.probability) << 32) / 1_000_000).min(u64::from(u32::MAX)) as u32;
        Self {
            weight_log,
            decay: Decay::new(&params, weight_log),
            stream,
            queue: Fifo::default(),
            average: 0,
            idle_since: Some(Instant::ZERO),
            count: None,
            random: 0,
            most,
            step: (most / (params.max - params.min)).max(1),
            adapt_at: if params.adaptive { Instant::ZERO + ADAPT } else { Instant::NEVER },
            params,
        }
    }

    /// The average with the decay of an idle time that lasts until `now`.
    fn average_at(&self, now: Instant) -> u64 {
        match self.idle_since {
            Some(since) => self.decay.apply(self.average, now.since(since).0 / 1000),
            None => self.average,
        }
    }

    /// Keeps the average in the middle fifth between the thresholds (`red_adaptative_algo`).
    fn advance(&mut self, now: Instant) {
        while self.adapt_at <= now {
            let average = (self.average_at(self.adapt_at) >> self.weight_log) as u32;
            let fifth = (self.params.max - self.params.min) / 5;
            if average > self.params.min + 3 * fifth && self.most <= 50 * PERCENT {
                self.most += PERCENT.min(self.most / 4);
            } else if average < self.params.min + 2 * fifth && self.most >= PERCENT {
                self.most = self.most / 10 * 9;
            }
            // Rounded here, and cut where the discipline is set up.
            let delta = u64::from(self.params.max - self.params.min);
            self.step = ((u64::from(self.most) + delta / 2) / delta).max(1) as u32;
            self.adapt_at = self.adapt_at + ADAPT;
        }
    }

    /// Whether a packet below `max` is to be dropped or marked: after a number of packets that is uniform,
    /// with the mean that the average asks for.
    fn is_drawn(&mut self, min: u64) -> bool {
        if self.average < min {
            self.count = None;
            return false;
        }
        let count = self.count.map_or(0, |n| n + 1);
        self.count = Some(count);
        let above = (self.average - min) >> self.weight_log;
        if count > 0 && above * count < self.random {
            return false;
        }
        // Uniform in 0..(max - min) / probability: with `above` bytes a packet, it is exceeded after that
        // many.
        self.random = (self.stream.any() >> 32) / u64::from(self.step);
        if count > 0 {
            self.count = Some(0);
        }
        count > 0
    }
}

impl Settings for Params {
    type Queue = Red;
    const IS_RANDOM: bool = true;

    fn build(self, stream: Stream) -> Red {
        Red::new(self, stream)
    }

    fn most_bytes(&self) -> u64 {
        u64::from(self.limit)
    }
}

impl Queueing for Red {
    fn enqueue(&mut self, mut p: Packet, out: &mut Vec<Departure>) {
        self.advance(p.at);
        self.average = if self.idle_since.is_some() {
            self.average_at(p.at)
        } else {
            self.average + u64::from(self.queue.bytes()) - (self.average >> self.weight_log)
        };
        self.idle_since = None;
        let Params { min, max, ecn, harddrop, limit, .. } = self.params;
        let is_forced = self.average >= u64::from(max) << self.weight_log;
        let is_chosen = is_forced || self.is_drawn(u64::from(min) << self.weight_log);
        if is_forced {
            self.count = None;
        }
        let cause = if is_chosen && !(ecn && !(is_forced && harddrop) && p.ecn.mark()) {
            Cause::Aqm
        } else if self.queue.bytes() + p.frame() > limit {
            Cause::QueueFull
        } else {
            self.queue.push(p);
            return;
        };
        out.push(Departure::dropped(&p, p.at, cause));
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<Departure>) -> Option<Packet> {
        self.advance(now);
        let p = self.queue.pop();
        if p.is_none() && self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        p
    }

    fn packets(&self) -> usize {
        self.queue.packets()
    }

    fn frame_bytes(&self) -> u32 {
        self.queue.bytes()
    }

    fn marks(&self) -> bool {
        self.params.ecn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Ecn;

    fn params() -> Params {
        Params {
            limit: 400_000,
            min: 30_000,
            max: 90_000,
            avpkt: 1000,
            burst: 55,
            probability: 20_000,
            bandwidth: Rate(10_000_000),
            ecn: false,
            harddrop: false,
            adaptive: false,
        }
    }

    #[test]
    fn the_weight_is_that_of_tc() {
        // The example of tc-red(8): limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 10Mbit; tc
        // shows "ewma 5".
        assert_eq!(params().weight_log(), Some(5));
        assert_eq!(Params { burst: 29, ..params() }.weight_log(), None);
    }

    /// Keeps a backlog; returns how many of 100,000 packets were dropped, and how many marked.
    fn chosen(params: Params, ecn: Ecn, backlog: u32) -> (u32, u32) {
        let mut q = Red::new(params, Stream::named(1, "red"));
        let (mut dropped, mut marked, mut out) = (0, 0, Vec::new());
        for i in 0..100_000 {
            let at = Instant(i * 1000);
            q.enqueue(Packet { bytes: 986, ecn, at, ..Packet::default() }, &mut out);
            dropped += out.drain(..).count() as u32;
            while q.queue.bytes() > backlog {
                marked += u32::from(q.dequeue(at, &mut out).is_some_and(|p| p.ecn == Ecn::Ce));
            }
        }
        (dropped, marked)
    }

    #[test]
    fn between_the_thresholds_the_share_grows_to_the_probability() {
        assert_eq!(chosen(params(), Ecn::NotEct, 20_000).0, 0);
        // A probability p, made uniform, is a mean of 1/(2p) packets between drops: a share of 2p (Floyd and
        // Jacobson, §7).
        for (backlog, p) in [(60_000, 0.01), (80_000, 0.02 * 50.0 / 60.0)] {
            let want = 2e5 * p;
            let got = f64::from(chosen(params(), Ecn::NotEct, backlog).0);
            assert!((got / want - 1.0).abs() < 0.15, "{backlog}: {got}, not {want}");
        }
        let (dropped, marked) = chosen(Params { ecn: true, ..params() }, Ecn::Ect0, 60_000);
        assert!(dropped == 0 && marked > 1500, "{dropped} {marked}");
    }

    #[test]
    fn above_max_everything_is_dropped_or_marked() {
        let most = Params { limit: 10_000_000, ..params() };
        assert!(chosen(most, Ecn::NotEct, 200_000).0 > 50_000);
        let ecn = Params { ecn: true, ..most };
        assert_eq!(chosen(ecn, Ecn::Ect0, 200_000).0, 0);
        assert!(chosen(Params { harddrop: true, ..ecn }, Ecn::Ect0, 200_000).0 > 50_000);
    }

    #[test]
    fn adaptation_keeps_the_average_between() {
        let mut q = Red::new(Params { adaptive: true, ..params() }, Stream::named(1, "red"));
        let mut out = Vec::new();
        let first = q.most;
        q.average = 85_000 << q.weight_log;
        q.idle_since = None;
        q.enqueue(Packet { bytes: 986, at: Instant(600_000_000), ..Packet::default() }, &mut out);
        assert_eq!(q.most, first + first / 4);
        q.average = 0;
        q.enqueue(Packet { bytes: 986, at: Instant(1_100_000_000), ..Packet::default() }, &mut out);
        assert_eq!(q.most, (first + first / 4) / 10 * 9);
    }

    #[test]
    fn the_average_decays_while_nothing_waits() {
        let p = params();
        let decay = Decay::new(&p, 5);
        // A usual packet takes 0.8 ms, 12500 ticks, in which the average falls by 1/32: its natural logarithm
        // by 0.0317. tc takes that for a number of halvings, cut to a whole one: 50 packets are 1.59 of them,
        // 400 are 12.7. The kernel takes microseconds for the ticks.
        for (packets, halvings) in [(0_u64, 0), (50, 1), (100, 3), (400, 12)] {
            assert_eq!(decay.apply(1 << 30, packets * 12_500), (1 << 30) >> halvings, "{packets}");
        }
    }
}
