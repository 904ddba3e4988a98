//! The conditions of the corpus: for each, connections drawn from a seed.

use slowstart::units::Span;
use slowstart_sim::path::Files;
use slowstart_sim::random::Stream;
use slowstart_study::scenario::{Study, StudyText};
use std::collections::BTreeMap;

/// The period of a value of a delay trace, seconds.
const TICK: f64 = 0.01;
/// For how long delay traces last before they repeat: longer than any connection of the corpus.
const TRACE_S: f64 = 60.0;
/// Startups, as often as they are drawn: those that servers have come first.
const STARTUPS: [(&str, u64); 9] = [
    ("hystart", 8),
    ("standard", 5),
    ("hystart++", 3),
    ("search", 2),
    ("bbr3", 2),
    ("bbr", 1),
    ("ess", 1),
    ("rapid-start", 1),
    ("hystart:detect=delay", 2),
];

/// What is done to a capture before it is read.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Damage {
    /// Nothing.
    None,
    /// This share of its packets is cut off at the begin.
    Begin(f64),
    /// Only this share of its packets is left, from the begin.
    End(f64),
    /// Each packet is cut to so many bytes.
    Snap(usize),
    /// Of so many packets one was not captured.
    Missed(u64),
    /// Each packet was captured twice.
    Twice,
}

/// How the class of an exit is known.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Capacity {
    /// The link has this rate, bits per second, and the path the delay of the case.
    Constant(f64),
    /// As the simulator measured it: the rate changes, or others share the link.
    Measured,
    /// It is a matter of definition: the tariff and the link differ.
    Open,
}

/// A connection of the corpus.
pub(crate) struct Case {
    pub(crate) study: StudyText,
    /// The forward delay in milliseconds, for each 10 ms; empty if it does not change.
    pub(crate) delay: Vec<u32>,
    /// The base RTT without it, seconds.
    pub(crate) rtt_s: f64,
    /// By how much later most packets come than those that overtake them, seconds.
    pub(crate) late_s: f64,
    /// The rate of the link, or the mean of one that changes, bits per second.
    pub(crate) link_bps: f64,
    pub(crate) capacity: Capacity,
    pub(crate) damage: Damage,
}

impl Case {
    /// The base RTT at a time, seconds.
    pub(crate) fn base_rtt_s(&self, at: f64) -> f64 {
        if self.delay.is_empty() {
            return self.rtt_s;
        }
        let i = (at / TICK) as usize % self.delay.len();
        self.rtt_s / 2.0 + f64::from(self.delay[i]) / 1e3
    }

    /// The mean rate of the link during the first `seconds` of a path built from `seed`, bits per second. Where the rate
    /// changes, a short transfer does not meet the mean of all times.
    pub(crate) fn link_bps(&self, study: &Study, seed: u64, seconds: f64) -> f64 {
        if self.capacity != Capacity::Measured || !study.against.is_empty() {
            return self.link_bps;
        }
        let from = study.start();
        let carried = study.path.build(seed).forward.capacity(from, from + Span((seconds * 1e9) as u64));
        carried.0 as f64 * 8.0 / seconds
    }

    /// The study that runs it.
    pub(crate) fn checked(&self) -> Study {
        let lines: Vec<String> = self.delay.iter().map(|ms| format!("{ms}\n")).collect();
        let files = Files::given([("delay".to_string(), lines.concat().into_bytes())].into());
        Study::check_with(&self.study, &files).expect("a study")
    }
}

/// Draws of one case.
struct Draw(Stream);

impl Draw {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// Evenly in the logarithm.
    fn log(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.0.unit())
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.0.below(all.len() as u64) as usize]
    }

    fn startup(&mut self) -> &'static str {
        let mut n = self.0.below(STARTUPS.iter().map(|s| s.1).sum());
        let found = STARTUPS.iter().find(|s| {
            let here = n < s.1;
            n = n.saturating_sub(s.1);
            here
        });
        found.map_or("hystart", |s| s.0)
    }
}

/// The names of all conditions.
pub(crate) const CONDITIONS: [&str; 27] = [
    "steady",
    "shallow queue",
    "short transfer",
    "delay steps up",
    "delay steps down",
    "hand-overs",
    "waves",
    "jitter",
    "ACK jitter",
    "ACK slots",
    "Wi-Fi",
    "reordering",
    "second route",
    "duplicates",
    "random loss",
    "ACK loss",
    "video",
    "web",
    "receive window",
    "slow reader",
    "send buffer",
    "policer",
    "rate changes",
    "offload",
    "cross traffic",
    "mid-connection",
    "cut packets",
];

/// Draws the case of a condition and a seed.
pub(crate) fn draw(condition: &str, seed: u64) -> Case {
    let mut d = Draw(Stream::named(seed, condition));
    let rate = d.log(3e6, 150e6);
    let rtt = d.log(0.01, 0.3);
    let queue = d.log(0.3, 4.0);
    let bdp = rate / 8.0 * rtt;
    let size = (bdp * d.log(5.0, 40.0)).clamp(4e5, 1.2e7);
    let startup = d.startup();
    let mut set = BTreeMap::new();
    let (mut keys, mut delay, mut damage) = (Vec::new(), Vec::new(), Damage::None);
    let (mut queue, mut capacity, mut app) = (queue, Capacity::Constant(rate), None);
    let (mut size, mut against, mut profile) = (size, Vec::new(), d.of(&["linux-6.18", "linux-6.18-fq"]));
    let mut late_s = 0.0;
    let ms = |s: f64| format!("{:.2}ms", s * 1e3);
    match condition {
        "steady" => {}
        "shallow queue" => queue = d.log(0.02, 0.3),
        "short transfer" => size = bdp * d.log(0.5, 4.0) + 1e5,
        "delay steps up" | "delay steps down" => {
            // Within slow start, or shortly after it.
            let at = d.between(1.0, 9.0) * rtt;
            let more = rtt * d.log(0.1, 2.0);
            let up = condition == "delay steps up";
            let step = |n: usize| if (n as f64 * TICK >= at) == up { rtt / 2.0 + more } else { rtt / 2.0 };
            delay = (0..(TRACE_S / TICK) as usize).map(|n| (step(n) * 1e3).round() as u32).collect();
        }
        "hand-overs" => {
            let (period, more) = (d.log(0.3, 5.0), rtt * d.log(0.1, 1.5));
            let mut level = rtt / 2.0;
            for n in 0..(TRACE_S / TICK) as usize {
                if n % (period / TICK) as usize == 0 {
                    level = rtt / 2.0 + more * d.0.unit();
                }
                delay.push((level * 1e3).round() as u32);
            }
        }
        "waves" => {
            let (period, high, phase) = (d.log(0.2, 8.0), rtt * d.log(0.05, 0.5), d.0.unit());
            let wave = |n: usize| {
                let turn = (n as f64 * TICK / period + phase) * std::f64::consts::TAU;
                rtt / 2.0 + high * (1.0 + libm::sin(turn))
            };
            delay = (0..(TRACE_S / TICK) as usize).map(|n| (wave(n) * 1e3).round() as u32).collect();
        }
        "jitter" => keys.push(format!("jitter={}", ms(rtt * d.log(0.02, 0.8)))),
        "ACK jitter" => keys.push(format!("ack_jitter={}", ms(rtt * d.log(0.02, 0.8)))),
        "ACK slots" => keys.push(format!("ack_aggregate={}", ms(d.log(0.002, 0.05)))),
        "Wi-Fi" => {
            let own = d.of(&["wifi_jitter", "ack_wifi_jitter"]);
            keys.push(format!("{own}={} aggregate={}", ms(d.log(0.001, 0.03)), ms(d.log(0.001, 0.008))));
        }
        "reordering" => {
            let share = d.log(0.1, 10.0);
            late_s = rtt * d.log(0.02, 0.6);
            keys.push(format!("reorder={share:.2}%,0%,delay={}", ms(late_s)));
        }
        "second route" => {
            keys.push(format!("second_route={:.2}%,{}", d.log(0.1, 50.0), ms(rtt * d.log(0.01, 0.6))));
        }
        "duplicates" => {
            let own = d.of(&["duplicate", "ack_duplicate"]);
            keys.push(format!("{own}={:.2}%", d.log(0.1, 30.0)));
        }
        "random loss" => keys.push(format!("loss={:.3}%", d.log(0.01, 3.0))),
        "ACK loss" => keys.push(format!("ack_loss={:.2}%", d.log(0.1, 30.0))),
        "video" | "web" => app = Some(condition.to_string()),
        "receive window" => {
            set.insert("rmem".into(), format!("{:.0}", (bdp * d.log(0.2, 4.0)).max(30e3)));
        }
        "slow reader" => {
            set.insert("read_rate".into(), format!("{:.0}bit", rate * d.log(0.1, 2.0)));
            set.insert("rmem".into(), format!("{:.0}", (bdp * d.log(0.5, 4.0)).max(60e3)));
        }
        "send buffer" => {
            set.insert("send_buffer".into(), format!("{:.0}", (bdp * d.log(0.2, 4.0)).max(30e3)));
        }
        "policer" => {
            let tariff = rate * d.log(0.1, 0.8);
            let burst = (tariff / 8.0 * rtt * d.log(0.1, 10.0)).max(15e3);
            keys.push(format!("policer=\"rate={tariff:.0}bit burst={burst:.0}B\""));
            capacity = Capacity::Open;
        }
        "rate changes" => {
            keys.push(format!(
                "rate_vary={:.0}% rate_vary_period={}",
                d.between(10.0, 90.0),
                ms(d.log(0.1, 3.0))
            ));
            capacity = Capacity::Measured;
        }
        "offload" => profile = "linux-6.18-gro",
        "cross traffic" => {
            against = vec![d.of(&["cubic@-3s", "web*3@-3s", "video@-5s", "cubic@1s"]).to_string()];
            capacity = Capacity::Measured;
        }
        "mid-connection" => damage = Damage::Begin(d.log(0.002, 0.5)),
        "cut packets" => {
            damage = match d.0.below(4) {
                0 => Damage::Snap(d.between(54.0, 100.0) as usize),
                1 => Damage::End(d.between(0.1, 0.95)),
                2 => Damage::Missed(d.log(20.0, 2000.0) as u64),
                _ => Damage::Twice,
            };
        }
        other => panic!("no condition {other}"),
    }
    let propagation =
        if delay.is_empty() { String::new() } else { " delay_trace=delay trace_start=0".into() };
    let path =
        format!("rate={rate:.0}bit rtt={}{propagation} queue={queue:.3}bdp {}", ms(rtt), keys.join(" "));
    let endless = app.is_some();
    let study = StudyText {
        path: path.trim_end().to_string(),
        startups: vec![startup.to_string()],
        profile: Some(profile.to_string()),
        set,
        size: (!endless).then(|| format!("{size:.0}B")),
        duration: endless.then(|| "20s".to_string()),
        app,
        against,
        runs: Some(1),
        seed: Some(seed),
        ..StudyText::default()
    };
    Case { study, delay, rtt_s: rtt, late_s, link_bps: rate, capacity, damage }
}
