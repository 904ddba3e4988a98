//! Web connections as ns-2's PackMime-HTTP generates them (Cao, Cleveland, Gao, Jeffay, Smith & Weigle,
//! INFOCOM 2004): arrival times, sizes of requests and answers, and round-trip times.
//!
//! Arrivals have long-range dependence and a Weibull marginal. Answers alternate between runs of small ones
//! (validations) and runs of downloads. One difference: requests and round-trip times are drawn independently
//! from their marginals. Their correlation between connections is left out, because it affects neither the
//! bottleneck nor a response time.
//!
//! Logarithms and powers are those of `libm`, which gives the same bits on every machine.

use slowstart::units::Span;
use slowstart_sim::app::object_size;
use slowstart_sim::random::Stream;
use std::collections::VecDeque;

/// A table of quantiles: shares, and the values at them. Between two entries the logarithm of the value is
/// linear in `-log10(1 - share)`.
type Quantiles = [(f64, f64)];

/// Answers of validations, in bytes. The minimum is our choice.
const SMALL: &Quantiles = &[(0.0, 40.0), (0.1, 75.0), (0.5, 141.0), (0.9, 249.0), (0.9999, 272.0)];
/// Answers of downloads, in bytes.
const DOWNLOAD: &Quantiles = &[
    (0.0, 273.0),
    (0.1, 386.0),
    (0.25, 691.0),
    (0.5, 2258.0),
    (0.75, 8895.0),
    (0.9, 20.3e3),
    (0.95, 35.9e3),
    (0.99, 93e3),
    (0.999, 604e3),
    (0.9999, 3.9e6),
];
/// Requests, in bytes.
const REQUEST: &Quantiles = &[
    (0.0, 100.0),
    (0.05, 217.0),
    (0.25, 351.0),
    (0.5, 424.0),
    (0.75, 514.0),
    (0.95, 1063.0),
    (0.995, 4885.0),
    (0.9995, 23e3),
];
/// Round-trip times on the client's side of the network, in milliseconds. The minimum is our choice.
const NEAR: &Quantiles =
    &[(0.0, 0.1), (0.5, 1.5), (0.75, 5.7), (0.9, 36.0), (0.95, 84.0), (0.99, 600.0), (0.999, 1507.0)];
/// Round-trip times on the server's side, in milliseconds.
const FAR: &Quantiles = &[
    (0.0, 0.5),
    (0.1, 2.3),
    (0.25, 11.5),
    (0.5, 58.0),
    (0.75, 90.0),
    (0.9, 114.0),
    (0.95, 214.0),
    (0.99, 670.0),
    (0.999, 3121.0),
];

/// Number of terms of the autoregression that approximates the long-range dependence of arrivals.
const MEMORY: usize = 1000;
/// Order d of the fractional ARIMA process.
const ORDER: f64 = 0.33;

/// A connection that will arrive.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Time after the previous connection.
    pub gap: Span,
    /// Size of the request, bytes.
    pub request: u64,
    /// Size of the answer, bytes.
    pub response: u64,
    /// Its round-trip time, the sum of both delay boxes.
    pub rtt: Span,
    /// Number of objects: 1, and more on a persistent connection.
    pub objects: u32,
}

/// Draws connections: when each begins, and what it requests.
pub struct PackMime {
    gaps: Gaps,
    /// Sizes of small answers, of downloads and of requests, and round-trip times on both sides.
    answers: [Distribution; 2],
    requests: Distribution,
    near: Distribution,
    far: Distribution,
    chance: Stream,
    /// Draws the numbers of objects.
    persistent: Stream,
    /// Weibull shapes of the lengths of runs of small answers and of downloads.
    shapes: [f64; 2],
    downloads: bool,
    left: u64,
}

/// The logistic function of a line in the logarithm of the rate.
fn logistic(a: f64, b: f64, rate: f64) -> f64 {
    let x = libm::exp(a + b * libm::log2(rate));
    x / (1.0 + x)
}

/// A uniform value in (0, 1).
fn uniform(chance: &mut Stream) -> f64 {
    (chance.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn normal(chance: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(uniform(chance)));
    radius * libm::cos(2.0 * std::f64::consts::PI * uniform(chance))
}

fn weibull(u: f64, shape: f64, scale: f64) -> f64 {
    scale * libm::pow(-libm::log(1.0 - u), 1.0 / shape)
}

/// The distribution of a table of [`Quantiles`].
struct Distribution {
    /// For each entry its share, `-log10(1 - share)`, and the logarithm of the value.
    entries: Vec<(f64, f64, f64)>,
    /// The value of the last entry.
    last: f64,
}

/// What a share becomes so that the logarithm of the value is linear in it.
fn tail(share: f64) -> f64 {
    -libm::log10(1.0 - share)
}

impl Distribution {
    fn new(table: &Quantiles) -> Self {
        let entries = table.iter().map(|&(share, value)| (share, tail(share), libm::log(value))).collect();
        Self { entries, last: table[table.len() - 1].1 }
    }

    /// The value below which this share of all lie.
    fn value_at(&self, u: f64) -> f64 {
        let i = self.entries.partition_point(|(share, ..)| *share <= u).clamp(1, self.entries.len() - 1);
        let ((_, x0, log0), (_, x1, log1)) = (self.entries[i - 1], self.entries[i]);
        let part = ((tail(u) - x0) / (x1 - x0)).min(1.0);
        libm::exp(log0 + (log1 - log0) * part)
    }

    /// The mean, with `overhead(bytes)` added to each value. Above the last share the value is that of the last
    /// entry.
    fn mean(&self, overhead: impl Fn(f64) -> f64) -> f64 {
        // The midpoint rule in x = -log10(1 - share), in which the table is smooth.
        const STEPS: u32 = 100_000;
        let (_, end, _) = self.entries[self.entries.len() - 1];
        let width = end / f64::from(STEPS);
        let total = |bytes: f64| bytes + overhead(bytes);
        let body: f64 = (0..STEPS)
            .map(|i| {
                let rest = libm::pow(10.0, -(f64::from(i) + 0.5) * width);
                total(self.value_at(1.0 - rest)) * rest * std::f64::consts::LN_10 * width
            })
            .sum();
        body + total(self.last) * libm::pow(10.0, -end)
    }
}

/// Gaps between arrivals: a fractional ARIMA process under a Weibull marginal of mean 1/rate.
struct Gaps {
    /// Coefficients of the autoregression.
    weights: Vec<f64>,
    /// Past values of the process, the newest first.
    past: VecDeque<f64>,
    signal: f64,
    noise: f64,
    shape: f64,
    scale: f64,
}

impl Gaps {
    fn new(rate: f64, chance: &mut Stream) -> Self {
        let mut weights = Vec::with_capacity(MEMORY);
        let mut weight = 1.0;
        for k in 1..=MEMORY {
            weight *= (k as f64 - 1.0 - ORDER) / k as f64;
            weights.push(-weight);
        }
        let noise = logistic(0.333, 0.414, rate);
        let shape = logistic(0.352, 0.388, rate);
        // The variance of x(t) + x(t - 1) is one, with that of the noise.
        let gamma = libm::tgamma(1.0 - ORDER);
        let signal = gamma * gamma / libm::tgamma(1.0 - 2.0 * ORDER) / (2.0 + 2.0 * ORDER / (1.0 - ORDER))
            * (1.0 - noise);
        let mut gaps = Self {
            weights,
            past: VecDeque::from(vec![0.0; MEMORY]),
            signal: libm::sqrt(signal),
            noise: libm::sqrt(noise),
            shape,
            scale: 1.0 / (rate * libm::tgamma(1.0 + 1.0 / shape)),
        };
        for _ in 0..MEMORY {
            gaps.next(chance);
        }
        gaps
    }

    /// The next gap, in seconds.
    fn next(&mut self, chance: &mut Stream) -> f64 {
        let before: f64 = self.weights.iter().zip(&self.past).map(|(w, x)| w * x).sum();
        let x = before + self.signal * normal(chance);
        let y = x + self.past[0] + self.noise * normal(chance);
        self.past.pop_back();
        self.past.push_front(x);
        // The normal distribution function, limited so that it is neither 0 nor 1.
        let u = (0.5 * libm::erfc(-y / std::f64::consts::SQRT_2)).clamp(1e-12, 1.0 - 1e-12);
        weibull(u, self.shape, self.scale)
    }
}

/// The mean length of a run of answers: a Weibull length, rounded up.
fn mean_run(shape: f64, scale: f64) -> f64 {
    (0..1000).map(|k| libm::exp(-libm::pow(f64::from(k) / scale, shape))).sum()
}

/// Weibull shapes of the lengths of runs of small answers and of downloads, at `rate` connections a second.
fn shapes(rate: f64) -> [f64; 2] {
    [logistic(0.718, 0.357, rate), logistic(1.293, 0.316, rate)]
}

/// Their scales.
const SCALES: [f64; 2] = [0.775, 3.11];

/// The rate of connections whose answers, with `header` bytes on each packet of up to `mss` bytes of payload
/// and two packets without payload (SYN-ACK and FIN), offer `bytes_per_s`. With `objects` the further objects
/// of persistent connections count, with the sizes that the simulator's application draws.
pub fn connection_rate(bytes_per_s: f64, mss: f64, header: f64, objects: bool) -> f64 {
    let wire = |payload: f64| header * (libm::ceil(payload / mss) + 2.0);
    let means = [SMALL, DOWNLOAD].map(|table| Distribution::new(table).mean(wire));
    let object = |i| object_size(i) as f64;
    let on_wire = |bytes: f64| bytes + wire(bytes) - 2.0 * header;
    let more =
        if objects { mean_more() * (0..1000).map(|i| on_wire(object(i))).sum::<f64>() / 1000.0 } else { 0.0 };
    let mut rate = bytes_per_s / means[1];
    // The share of downloads depends a little on the rate: the iteration converges in a few steps.
    for _ in 0..20 {
        let [small, downloads] = shapes(rate);
        let (small, downloads) = (mean_run(small, SCALES[0]), mean_run(downloads, SCALES[1]));
        let first = (small * means[0] + downloads * means[1]) / (small + downloads);
        rate = bytes_per_s / (first + more);
    }
    rate
}

/// Number of objects of a connection. 9 % are persistent; of those 82 % carry one page, of two objects at
/// least, and the rest two pages or more, of which 69 % are of one object.
fn objects(chance: &mut Stream) -> u32 {
    if uniform(chance) >= 0.09 {
        return 1;
    }
    let drawn = |chance: &mut Stream| libm::ceil(1.0 + weibull(uniform(chance), 1.0, 1.578)).max(2.0);
    if uniform(chance) < 0.82 {
        return drawn(chance) as u32;
    }
    let pages = libm::ceil(1.0 + weibull(uniform(chance), 1.0, 0.417)).max(2.0) as u32;
    (0..pages).map(|_| if uniform(chance) < 0.69 { 1.0 } else { drawn(chance) }).sum::<f64>() as u32
}

/// The mean number of objects beyond the first, from a million draws.
fn mean_more() -> f64 {
    const DRAWS: u32 = 1_000_000;
    let mut chance = Stream::named(1, "packmime.mean");
    (0..DRAWS).map(|_| f64::from(objects(&mut chance) - 1)).sum::<f64>() / f64::from(DRAWS)
}

impl PackMime {
    /// A generator with a mean of `rate` connections a second.
    pub fn new(rate: f64, seed: u64) -> Self {
        let mut chance = Stream::named(seed, "packmime");
        let gaps = Gaps::new(rate, &mut chance);
        let persistent = Stream::named(seed, "packmime.objects");
        Self {
            gaps,
            answers: [SMALL, DOWNLOAD].map(Distribution::new),
            requests: Distribution::new(REQUEST),
            near: Distribution::new(NEAR),
            far: Distribution::new(FAR),
            chance,
            persistent,
            shapes: shapes(rate),
            downloads: false,
            left: 0,
        }
    }

    /// Size of the next answer, bytes. Runs of small answers and of downloads alternate.
    fn response(&mut self) -> u64 {
        if self.left == 0 {
            self.downloads = !self.downloads;
            let i = usize::from(self.downloads);
            self.left =
                libm::ceil(weibull(uniform(&mut self.chance), self.shapes[i], SCALES[i])).max(1.0) as u64;
        }
        self.left -= 1;
        self.answers[usize::from(self.downloads)].value_at(uniform(&mut self.chance)) as u64
    }
}

impl Iterator for PackMime {
    type Item = Connection;
    fn next(&mut self) -> Option<Connection> {
        let gap = self.gaps.next(&mut self.chance);
        let response = self.response();
        let request = self.requests.value_at(uniform(&mut self.chance)) as u64;
        let rtt =
            self.near.value_at(uniform(&mut self.chance)) + self.far.value_at(uniform(&mut self.chance));
        let objects = objects(&mut self.persistent);
        Some(Connection {
            gap: Span((gap * 1e9) as u64),
            request,
            response,
            rtt: Span((rtt * 1e6) as u64),
            objects,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published marginals: a mean answer of 8.1 kB, 72 % downloads with a mean of 11.2 kB, a median RTT
    /// of at most 70 ms, and arrivals at the given rate.
    #[test]
    fn connections_are_as_published() {
        for rate in [60.0, 135.0] {
            let all: Vec<Connection> = PackMime::new(rate, 1).take(200_000).collect();
            let mean = |of: &dyn Fn(&Connection) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
            let response = mean(&|c| c.response as f64);
            let downloads = mean(&|c| f64::from(u8::from(c.response >= 273)));
            let gap = mean(&|c| c.gap.as_secs_f64());
            let mut rtts: Vec<f64> = all.iter().map(|c| c.rtt.as_secs_f64()).collect();
            rtts.sort_by(f64::total_cmp);
            println!("{rate}: {response:.0} bytes, {downloads:.3}, gap {gap:.5}, RTT {:.4}", rtts[100_000]);
            assert!((7000.0..9500.0).contains(&response), "{response}");
            assert!((0.68..0.76).contains(&downloads), "{downloads}");
            assert!((gap * rate - 1.0).abs() < 0.05, "{gap}");
            assert!((0.055..0.075).contains(&rtts[100_000]), "{}", rtts[100_000]);
        }
    }

    /// The mean that converts a load to a rate is that of the answers drawn.
    #[test]
    fn the_offered_load_is_that_of_the_answers() {
        let offered = 1e6;
        let rate = connection_rate(offered, 1460.0, 40.0, false);
        let mut draws = PackMime::new(rate, 7);
        let n = 2_000_000;
        let wire = |b: u64| b + 40 * (b.div_ceil(1460) + 2);
        let sum: u64 = (0..n).map(|_| wire(draws.response())).sum();
        let drawn = rate * sum as f64 / f64::from(n);
        assert!((drawn / offered - 1.0).abs() < 0.03, "{drawn}");
    }

    /// Long-range dependence: counts in windows vary more than those of independent arrivals, and the excess
    /// grows with the length of the window.
    #[test]
    fn arrivals_clump() {
        let mut at = 0.0;
        let mut counts = vec![0.0_f64; 4000];
        for c in PackMime::new(60.0, 3) {
            at += c.gap.as_secs_f64();
            match counts.get_mut(at as usize) {
                Some(n) => *n += 1.0,
                None => break,
            }
        }
        let dispersion = |n: &[f64]| {
            let mean = n.iter().sum::<f64>() / n.len() as f64;
            n.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n.len() as f64 / mean
        };
        let tens: Vec<f64> = counts.chunks(10).map(|c| c.iter().sum()).collect();
        assert!(dispersion(&counts) > 1.2, "{}", dispersion(&counts));
        assert!(dispersion(&tens) > 1.5 * dispersion(&counts), "{}", dispersion(&tens));
    }
}
