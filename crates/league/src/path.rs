//! Random paths. Each is one fixed path, written as `slowstart compare` takes it, so that any of them can be
//! run alone.
//!
//! A property that a simulator does not know yet has no line here; a new one is one more entry of `FEATURES`,
//! with a stream of random numbers of its own, so that the properties drawn before stay as they were.

use slowstart_sim::random::Stream;
use std::fmt::Write;

/// A property that some of the paths have.
struct Feature {
    /// The name of its stream of random numbers.
    name: &'static str,
    /// The share of paths that have it, in millionths.
    share: u32,
    /// Its law, in words.
    law: &'static str,
    /// Appends its keys.
    add: fn(&mut Stream, &Base, &mut String),
}

/// What every random path has.
#[derive(Copy, Clone, Debug)]
pub struct Base {
    /// Mean rate of the link, bit/s.
    pub rate_bps: u64,
    /// Base round-trip time, microseconds.
    pub rtt_us: u64,
    /// The queue, in thousandths of a bandwidth-delay product.
    pub queue_mbdp: u64,
}

/// Ranges from which [`Base`] is drawn, each uniformly in the logarithm.
#[derive(Copy, Clone, Debug)]
pub struct Ranges {
    /// The least and the greatest rate, in bits per second.
    pub rate_bps: (u64, u64),
    /// The least and the greatest base round-trip time, in microseconds.
    pub rtt_us: (u64, u64),
    /// Thousandths of a bandwidth-delay product.
    pub queue_mbdp: (u64, u64),
}

/// The ranges of the random ensemble.
pub const WIDE: Ranges =
    Ranges { rate_bps: (1_000_000, 1_000_000_000), rtt_us: (2_000, 600_000), queue_mbdp: (100, 4_000) };

/// The fewest packets that a drawn queue holds: routers have no smaller ones.
const LEAST_QUEUE_PACKETS: u64 = 8;
/// Bytes of a full packet.
const PACKET: u64 = 1500;

const FEATURES: &[Feature] = &[
    Feature {
        name: "jitter",
        share: 400_000,
        law: "40 % have jitter of each data packet, log-uniform from 0.5 to 20 % of the base RTT",
        add: |r, b, out| put(out, "jitter", r, b.rtt_us / 200, b.rtt_us / 5),
    },
    Feature {
        name: "loss",
        share: 250_000,
        law: "25 % lose packets at random, log-uniform from 0.005 to 1 %",
        add: |r, _, out| {
            let share = log_uniform(r, 50, 10_000);
            write!(out, " loss={}.{:04}%", share / 10_000, share % 10_000)
                .expect("a String takes everything");
        },
    },
    Feature {
        name: "ack-slots",
        share: 250_000,
        law: "25 % return ACKs in slots, log-uniform from 1 ms (or a fiftieth of the RTT) to 50 ms (or a quarter of it)",
        add: |r, b, out| put(out, "ack_aggregate", r, (b.rtt_us / 50).min(1_000), (b.rtt_us / 4).min(50_000)),
    },
    Feature {
        name: "ack-jitter",
        share: 250_000,
        law: "25 % have jitter of each ACK, log-uniform from 0.5 to 30 % of the base RTT",
        add: |r, b, out| put(out, "ack_jitter", r, b.rtt_us / 200, b.rtt_us * 3 / 10),
    },
    Feature {
        name: "aggregate",
        share: 200_000,
        law: "20 % aggregate data packets, log-uniform from 0.5 ms (or a fortieth of the RTT) to 8 ms (or a quarter of it)",
        add: |r, b, out| put(out, "aggregate", r, (b.rtt_us / 40).min(500), (b.rtt_us / 4).min(8_000)),
    },
    Feature {
        name: "wave",
        share: 200_000,
        law: "20 % have a sine wave in the delay: twice its amplitude is 4 to 60 % of the base RTT, its period 0.08 to 2 s, \
              each log-uniform",
        add: |r, b, out| {
            put(out, "vary", r, b.rtt_us / 50, b.rtt_us * 3 / 10);
            put(out, "vary_period", r, 80_000, 2_000_000);
        },
    },
];

/// The share of paths, in millionths, whose rate is a random walk in place of a constant.
const WALKS: u32 = 150_000;
/// The share of the others whose rate is drawn anew each period.
const VARIES: u32 = 150_000;
/// Steps of a random walk of the rate.
const STEPS: u64 = 60;

/// The laws of the random paths of these ranges, in words, one a line.
pub fn laws(of: &Ranges) -> Vec<String> {
    let mut all = vec![
        format!("rate log-uniform from {} to {} Mbit/s", of.rate_bps.0 / 1_000_000, of.rate_bps.1 / 1_000_000),
        format!("base RTT log-uniform from {} to {} ms", of.rtt_us.0 / 1000, of.rtt_us.1 / 1000),
        format!(
            "queue (drop-tail) log-uniform from {} to {} BDP, at least {LEAST_QUEUE_PACKETS} packets",
            of.queue_mbdp.0 as f64 / 1e3,
            of.queue_mbdp.1 as f64 / 1e3
        ),
        "15 % have a rate that is a random walk: every 0.1 to 1 s (log-uniform) it is multiplied by 0.6 to 1.6 (log-uniform) \
         and kept within a third and three times the mean"
            .into(),
        "15 % of the others have a rate drawn anew every 10 to 300 ms (log-uniform), uniform within 5 to 50 % (log-uniform) \
         of the mean"
            .into(),
    ];
    all.extend(FEATURES.iter().map(|f| f.law.to_string()));
    all
}

/// Draws a number uniformly in the logarithm. `low` is at least 1.
fn log_uniform(r: &mut Stream, low: u64, high: u64) -> u64 {
    let (low, high) = (low.max(1), high.max(low.max(1)));
    let u = (r.any() >> 11) as f64 / 2_f64.powi(53);
    let (a, b) = (libm::log(low as f64), libm::log(high as f64));
    (libm::exp(a + (b - a) * u) as u64).clamp(low, high)
}

/// Appends a key with a log-uniform time.
fn put(out: &mut String, key: &str, r: &mut Stream, low_us: u64, high_us: u64) {
    write!(out, " {key}={}us", log_uniform(r, low_us, high_us)).expect("a String takes everything");
}

impl Base {
    fn draw(seed: u64, of: &Ranges) -> Self {
        let draw = |name, (low, high)| log_uniform(&mut Stream::named(seed, name), low, high);
        Self {
            // Whole kilobits: short to read, and exact.
            rate_bps: draw("rate", of.rate_bps) / 1000 * 1000,
            rtt_us: draw("rtt", of.rtt_us),
            queue_mbdp: draw("queue", of.queue_mbdp),
        }
    }

    fn bdp_bytes(&self) -> u64 {
        self.rate_bps / 8 * self.rtt_us / 1_000_000
    }

    /// The path as text: rate, RTT and queue.
    fn text(&self, rate: &str) -> String {
        let packets = (self.bdp_bytes() * self.queue_mbdp / 1000 / PACKET).max(LEAST_QUEUE_PACKETS);
        format!("{rate} rtt={}us queue={packets}packets", self.rtt_us)
    }
}

/// A rate that changes by a random walk, as a schedule.
fn walk(r: &mut Stream, mean_bps: u64) -> String {
    let every_us = log_uniform(r, 100_000, 1_000_000);
    let mut rate = mean_bps;
    let mut text = "schedule=".to_string();
    for step in 0..STEPS {
        let comma = if step == 0 { "" } else { "," };
        write!(text, "{comma}{}us:{}kbit", step * every_us, rate / 1000).expect("a String takes everything");
        let factor = log_uniform(r, 600, 1_600);
        rate = (rate * factor / 1000).clamp(mean_bps / 3, mean_bps * 3);
    }
    text
}

/// Draws a path with nothing but rate, RTT and queue.
pub fn plain(seed: u64, of: &Ranges) -> String {
    let base = Base::draw(seed, of);
    base.text(&format!("rate={}kbit", base.rate_bps / 1000))
}

/// Draws a path with any of the properties of [`laws`].
pub fn random(seed: u64, of: &Ranges) -> String {
    let base = Base::draw(seed, of);
    let mut r = Stream::named(seed, "rate-over-time");
    let kbit = base.rate_bps / 1000;
    let rate = if r.chance(WALKS) {
        walk(&mut r, base.rate_bps)
    } else if r.chance(VARIES) {
        let share = log_uniform(&mut r, 5, 50);
        let period = log_uniform(&mut r, 10_000, 300_000);
        format!("rate={kbit}kbit rate_vary={share}% rate_vary_period={period}us")
    } else {
        format!("rate={kbit}kbit")
    };
    let mut text = base.text(&rate);
    for feature in FEATURES {
        let mut r = Stream::named(seed, feature.name);
        if r.chance(feature.share) {
            (feature.add)(&mut r, &base, &mut text);
        }
    }
    text
}

/// The laws of [`managed`], beyond rate and RTT.
pub const MANAGED: &str = "the queue is managed by CoDel, FQ-CoDel or PIE with the parameters of their RFCs, a third of the paths \
                           each; half of them mark, for hosts that use ECN";

/// Draws a path whose queue is managed, and whether it marks.
pub fn managed(seed: u64, of: &Ranges) -> (String, bool) {
    let base = Base::draw(seed, of);
    let mut r = Stream::named(seed, "managed");
    let discipline = ["codel", "fq_codel", "pie"][r.below(3) as usize];
    let marks = r.chance(500_000);
    let queue = if marks { format!("\"{discipline} ecn\"") } else { discipline.to_string() };
    (format!("rate={}kbit rtt={}us queue={queue}", base.rate_bps / 1000, base.rtt_us), marks)
}

/// The laws of [`policed`], beyond rate, RTT and queue.
pub const POLICED: &str = "before the link is a policer: its rate is log-uniform from 20 to 90 % of the link's, its burst from 30 kB to \
                           2 MB";

/// Draws a path with a policer before its link.
pub fn policed(seed: u64, of: &Ranges) -> String {
    let base = Base::draw(seed, of);
    let mut r = Stream::named(seed, "policed");
    let (share, burst) = (log_uniform(&mut r, 200, 900), log_uniform(&mut r, 30, 2_000));
    let rate = base.rate_bps / 1_000_000 * share;
    format!("{} policer=\"rate={rate}kbit burst={burst}kB\"", plain(seed, of))
}

/// The laws of [`bursty`], beyond rate, RTT and queue.
pub const BURSTY: &str = "losses in bursts (Gilbert-Elliott): a burst begins at 0.002 to 0.1 % of the packets and ends at 5 to 50 % of \
                          them, each log-uniform; a third of the paths also reorder 1 to 10 % of the packets by 1 to 10 % of the RTT";

/// Draws a path that loses packets in bursts and may reorder them.
pub fn bursty(seed: u64, of: &Ranges) -> String {
    let mut r = Stream::named(seed, "bursty");
    let (begins, ends) = (log_uniform(&mut r, 20, 1_000), log_uniform(&mut r, 5, 50));
    // In ten-thousandths of a per cent.
    let mut text = format!("{} gemodel=0.{begins:04}%,{ends}%", plain(seed, of));
    if r.chance(333_000) {
        let rtt = Base::draw(seed, of).rtt_us;
        let (share, delay) = (log_uniform(&mut r, 1, 10), log_uniform(&mut r, rtt / 100, rtt / 10));
        write!(text, " reorder={share}%,delay={delay}us").expect("a String takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_sim::path::PathSpec;

    #[test]
    fn every_random_path_is_one_that_loads() {
        for seed in 0..500 {
            let all = [
                random(seed, &WIDE),
                plain(seed, &WIDE),
                managed(seed, &WIDE).0,
                policed(seed, &WIDE),
                bursty(seed, &WIDE),
            ];
            for text in all {
                let path = PathSpec::load(&text, None).unwrap_or_else(|e| panic!("{text}: {e}"));
                assert!(!path.is_ensemble(), "{text}");
            }
        }
    }

    #[test]
    fn shares_are_those_of_the_laws() {
        let paths: Vec<String> = (0..4000).map(|seed| random(seed, &WIDE)).collect();
        let share = |key: &str| paths.iter().filter(|p| p.contains(key)).count() as f64 / 4000.0;
        // Four standard deviations of a binomial (4000, p) are below 0.032.
        for (key, want) in [
            (" jitter=", 0.4),
            (" loss=", 0.25),
            (" ack_aggregate=", 0.25),
            (" ack_jitter=", 0.25),
            (" aggregate=", 0.2),
            (" vary=", 0.2),
            ("schedule=", 0.15),
            ("rate_vary=", 0.85 * 0.15),
        ] {
            assert!((share(key) - want).abs() < 0.032, "{key}: {}", share(key));
        }
    }

    #[test]
    fn rates_are_uniform_in_the_logarithm() {
        let low = (0..4000).filter(|s| Base::draw(*s, &WIDE).rate_bps < 10_000_000).count() as f64 / 4000.0;
        assert!((low - 1.0 / 3.0).abs() < 0.03, "{low}");
    }
}
