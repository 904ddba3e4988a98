//! Reads the options of netem as `tc` does (iproute2 `q_netem.c`, tc-netem(8)): a whole command, a line of
//! `tc qdisc show`, or the options alone.

use super::super::queue::{Wrong, wrong};
use super::super::tc;
use super::tables::Distribution;
use crate::suggest::did_you_mean;

/// A probability and how strongly a draw follows the one before, both in 2^-32.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chance {
    pub(super) share: u32,
    pub(super) correlation: u32,
}

/// Which packets are lost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Loss {
    #[default]
    None,
    Random(Chance),
    /// The chances of a chain of four states, in 2^-32.
    States {
        p13: u32,
        p31: u32,
        p32: u32,
        p23: u32,
        p14: u32,
    },
    /// Gilbert and Elliott: p, r, h and 1-k, in 2^-32.
    Gilbert {
        p: u32,
        r: u32,
        h: u32,
        k1: u32,
    },
}

/// The rate at which packets leave.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) bytes_per_s: u64,
    /// Added to each frame.
    pub(super) overhead: i32,
    /// The size of cells; 0 if there are none.
    pub(super) cell: u32,
    pub(super) cell_overhead: i32,
}

/// Times at which packets may leave.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    pub(super) gap: Gap,
    /// The most packets and bytes of a slot.
    pub(super) packets: i32,
    pub(super) bytes: i32,
}

/// The time from one slot to the next, in nanoseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    Uniform { least: u64, most: u64 },
    Drawn { from: Distribution, mean: u64, deviation: i32 },
}

/// The options of one netem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::path) struct Spec {
    /// The most packets that it holds, those on its delay line with them.
    pub(super) limit: usize,
    /// Nanoseconds.
    pub(super) latency: u64,
    pub(super) jitter: i32,
    pub(super) delay_correlation: u32,
    /// Uniform if there is none.
    pub(super) distribution: Option<Distribution>,
    pub(super) loss: Loss,
    /// Losses of ECN-capable packets are marks.
    pub(super) ecn: bool,
    pub(super) duplicate: Chance,
    pub(super) corrupt: Chance,
    pub(super) reorder: Chance,
    /// Only every gap-th packet may overtake; 0 if none does.
    pub(super) gap: u32,
    pub(super) pace: Option<Pace>,
    pub(super) slots: Option<Slots>,
}

/// The first words of options, in the order in which tc looks for the one that an abbreviation means.
const WORDS: [&str; 14] = [
    "limit",
    "latency",
    "delay",
    "loss",
    "drop",
    "ecn",
    "reorder",
    "corrupt",
    "gap",
    "duplicate",
    "distribution",
    "rate",
    "slot",
    "seed",
];
const TIME: &str = "a time such as 100ms";
const SHARE: &str = "a share of at most 100%, such as 0.1%";
const DISTRIBUTION: &str = "normal, pareto or paretonormal (uniform without distribution)";

/// The words of a line.
struct Words<'a> {
    words: std::iter::Peekable<std::str::SplitWhitespace<'a>>,
}

impl<'a> Words<'a> {
    fn needed(&mut self, after: &str, expected: &str) -> Result<&'a str, Wrong> {
        self.words.next().ok_or_else(|| wrong(format!("{after} at the end"), expected))
    }

    fn one<T>(&mut self, after: &str, parse: impl Fn(&str) -> Option<T>, expected: &str) -> Result<T, Wrong> {
        let word = self.needed(after, expected)?;
        parse(word).ok_or_else(|| wrong(format!("{after} {word}"), expected))
    }

    /// The next word, if it begins as a number does.
    fn more<T>(
        &mut self,
        after: &str,
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, Wrong> {
        let digits = |w: &&str| w.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        if self.words.peek().is_some_and(digits) {
            self.one(after, parse, expected).map(Some)
        } else {
            Ok(None)
        }
    }

    /// A value that a word of its own may stand before, as in what tc shows: `p13 1%`.
    fn named(&mut self, name: &str) -> Result<Option<u32>, Wrong> {
        if self.words.next_if_eq(&name).is_some() {
            return self.one(name, tc::share, SHARE).map(Some);
        }
        self.more(name, tc::share, SHARE)
    }

    fn chance(&mut self, name: &str) -> Result<Chance, Wrong> {
        let share = self.one(name, tc::share, SHARE)?;
        let correlation = self.more(name, tc::share, SHARE)?.unwrap_or_default();
        Ok(Chance { share, correlation })
    }
}

/// A time that the kernel holds in 31 bits of nanoseconds: longer ones are cut, as there.
fn short(text: &str) -> Option<i32> {
    tc::time(text).map(|ns| ns.min(i32::MAX as u64) as i32)
}

impl Spec {
    /// What a value looks like.
    pub(in crate::path) const EXPECTED: &'static str = "options of tc's netem, such as \"delay 100ms 10ms distribution normal loss 1% rate 10mbit limit 100\"";

    /// True if a line that begins with this word is one of tc.
    pub(in crate::path) fn begins_line(word: &str) -> bool {
        ["sudo", "tc", "qdisc", "netem", "netem:"].contains(&word)
    }

    /// Reads a line.
    pub(in crate::path) fn read(text: &str) -> Result<Self, Wrong> {
        let mut w = Words { words: text.split_whitespace().peekable() };
        if w.words.peek().is_some_and(|word| Self::begins_line(word)) {
            let named = w.words.any(|word| word.trim_end_matches(':') == "netem");
            if !named {
                return Err(wrong(text, Self::EXPECTED));
            }
        }
        let mut spec = Self {
            limit: 1000,
            latency: 0,
            jitter: 0,
            delay_correlation: 0,
            distribution: None,
            loss: Loss::None,
            ecn: false,
            duplicate: Chance::default(),
            corrupt: Chance::default(),
            reorder: Chance::default(),
            gap: 0,
            pace: None,
            slots: None,
        };
        let mut any = false;
        while let Some(word) = w.words.next() {
            match word {
                _ if word.ends_with(':') => continue,
                "root" => continue,
                "refcnt" | "dev" | "parent" | "handle" => {
                    w.words.next();
                    continue;
                }
                _ => {}
            }
            let Some(option) = WORDS.into_iter().find(|option| option.starts_with(word)) else {
                let hint = did_you_mean(word, &WORDS);
                return Err(wrong(word, format!("an option of netem: {}{hint}", WORDS.join(", "))));
            };
            spec.option(option, &mut w)?;
            any = true;
        }
        if !any {
            return Err(wrong(text, Self::EXPECTED));
        }
        spec.checked()
    }

    fn option(&mut self, option: &'static str, w: &mut Words<'_>) -> Result<(), Wrong> {
        match option {
            "limit" => {
                let packets = |text: &str| tc::size(text).filter(|n| (1..=1 << 24).contains(n));
                self.limit = w.one(option, packets, "a number of packets from 1 to 16777216")? as usize;
            }
            "latency" | "delay" => {
                self.latency = w.one(option, tc::time, TIME)?;
                if let Some(jitter) = w.more(option, short, TIME)? {
                    self.jitter = jitter;
                    self.delay_correlation = w.more(option, tc::share, SHARE)?.unwrap_or_default();
                }
            }
            "loss" | "drop" => self.loss(option, w)?,
            "ecn" => self.ecn = true,
            "reorder" => self.reorder = w.chance(option)?,
            "corrupt" => self.corrupt = w.chance(option)?,
            "duplicate" => self.duplicate = w.chance(option)?,
            "gap" => self.gap = w.one(option, |text| text.parse().ok(), "a whole number such as 5")?,
            "distribution" => {
                let name = w.needed(option, DISTRIBUTION)?;
                let from = Distribution::named(name);
                if from.is_none() && name != "uniform" {
                    return Err(wrong(format!("distribution {name}"), DISTRIBUTION));
                }
                self.distribution = from;
            }
            "rate" => self.pace = Some(Self::pace(w)?),
            "slot" => self.slots = Some(Self::slots(w)?),
            // The kernel's generator; a run draws from its own seed.
            _ => {
                w.one("seed", |text| text.parse::<u64>().ok(), "a whole number")?;
            }
        }
        Ok(())
    }

    fn loss(&mut self, option: &str, w: &mut Words<'_>) -> Result<(), Wrong> {
        if self.loss != Loss::None {
            return Err(wrong(format!("a second {option}"), "one model of losses"));
        }
        let rest = |share: u32| u32::MAX - share;
        self.loss = match w.words.peek().copied() {
            Some("state") => {
                w.words.next();
                let expected = "p13 of a chain of four states, such as 1%";
                let p13 = w.named("p13")?.ok_or_else(|| wrong("loss state", expected))?;
                let p31 = w.named("p31")?.unwrap_or(rest(p13));
                let p32 = w.named("p32")?.unwrap_or(0);
                let p23 = w.named("p23")?.unwrap_or(u32::MAX);
                Loss::States { p13, p31, p32, p23, p14: w.named("p14")?.unwrap_or(0) }
            }
            Some("gemodel") => {
                w.words.next();
                let expected = "p of Gilbert's and Elliott's model, such as 1%";
                let p = w.named("p")?.ok_or_else(|| wrong("loss gemodel", expected))?;
                let r = w.named("r")?.unwrap_or(rest(p));
                let h = rest(w.named("1-h")?.unwrap_or(u32::MAX));
                Loss::Gilbert { p, r, h, k1: w.named("1-k")?.unwrap_or(0) }
            }
            Some("random") => {
                w.words.next();
                Loss::Random(w.chance(option)?)
            }
            _ => Loss::Random(w.chance(option)?),
        };
        Ok(())
    }

    fn pace(w: &mut Words<'_>) -> Result<Pace, Wrong> {
        let bytes_per_s = w.one("rate", tc::rate, "a rate such as 10mbit, from 1 kbit/s to 100 Tbit/s")?;
        let signed = |text: &str| text.parse().ok().filter(|n: &i32| n.unsigned_abs() < 1 << 20);
        let (bytes, size) = ("bytes to add, such as 20 or -14", "the size of a cell, such as 48");
        let mut value = |name: &str, expected: &str| {
            if w.words.next_if_eq(&name).is_some() {
                return w.one(name, signed, expected).map(Some);
            }
            w.more(name, signed, expected)
        };
        let overhead = value("packetoverhead", bytes)?.unwrap_or_default();
        let cell = value("cellsize", size)?.unwrap_or_default();
        let cell_overhead = value("celloverhead", bytes)?.unwrap_or_default();
        let cell = u32::try_from(cell).map_err(|_| wrong(format!("a cell of {cell}"), size))?;
        if i64::from(cell) + i64::from(cell_overhead) < i64::from(cell > 0) {
            return Err(wrong(format!("a cell overhead of {cell_overhead}"), "cells of at least one byte"));
        }
        Ok(Pace { bytes_per_s, overhead, cell, cell_overhead })
    }

    fn slots(w: &mut Words<'_>) -> Result<Slots, Wrong> {
        let gap = if w.words.next_if_eq(&"distribution").is_some() {
            let name = w.needed("slot distribution", DISTRIBUTION)?;
            // What tc shows of one does not have its name.
            let from = Distribution::named(name).ok_or_else(|| {
                wrong(format!("slot distribution {name}"), "normal, pareto or paretonormal")
            })?;
            let mean = w.one("slot distribution", tc::time, TIME)?;
            let some = |text: &str| short(text).filter(|ns| *ns > 0);
            Gap::Drawn { from, mean, deviation: w.one("slot distribution", some, "a jitter above 0")? }
        } else {
            let least = w.one("slot", tc::time, TIME)?;
            let longer = |text: &str| tc::time(text).filter(|most| *most >= least);
            let most = w.more("slot", longer, "a longest delay not below the least")?.unwrap_or(least);
            Gap::Uniform { least, most }
        };
        let mut slots = Slots { gap, packets: i32::MAX, bytes: i32::MAX };
        let most = |n: u32| i32::try_from(n).ok().filter(|n| *n > 0);
        if w.words.next_if_eq(&"packets").is_some() {
            let count = |text: &str| text.parse().ok().and_then(most);
            slots.packets = w.one("packets", count, "a number of packets such as 42")?;
        }
        if w.words.next_if_eq(&"bytes").is_some() {
            slots.bytes = w.one("bytes", |text| tc::size(text).and_then(most), "a size such as 64k")?;
        }
        Ok(slots)
    }

    /// The checks of tc, and of what would never end here.
    fn checked(mut self) -> Result<Self, Wrong> {
        if self.reorder.share > 0 {
            if self.latency == 0 {
                return Err(wrong("reorder", "a delay with it: without one no packet can overtake"));
            }
            self.gap = self.gap.max(1);
        } else if self.gap > 0 {
            return Err(wrong(format!("gap {}", self.gap), "reorder with it"));
        }
        if self.ecn && self.loss == Loss::None {
            return Err(wrong("ecn", "loss with it, whose packets it marks"));
        }
        if self.distribution.is_some() && (self.latency == 0 || self.jitter == 0) {
            return Err(wrong("distribution", "a delay and a jitter with it, such as delay 100ms 10ms"));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Spec {
        Spec::read(text).unwrap_or_else(|e| panic!("{text}: {e:?}"))
    }

    fn error(text: &str) -> String {
        let why = Spec::read(text).expect_err(text);
        format!("{} / {}", why.found, why.expected)
    }

    const fn chance(share: u32, correlation: u32) -> Chance {
        Chance { share, correlation }
    }

    /// What tc of iproute2 6.1 sends for each line (`ci/qdisc/tc_message.c`).
    #[test]
    fn options_mean_what_they_mean_to_tc() {
        let s = read("delay 100ms 10ms 25% distribution normal");
        assert_eq!((s.latency, s.jitter, s.delay_correlation), (100_000_000, 10_000_000, 1_073_741_824));
        assert_eq!((s.distribution, s.limit), (Some(Distribution::Normal), 1000));
        assert_eq!(read("loss 0.3% 25%").loss, Loss::Random(chance(12_884_902, 1_073_741_824)));
        assert_eq!(read("loss 1").loss, Loss::Random(chance(42_949_673, 0)));
        let state = |p31, p32, p23, p14| Loss::States { p13: 42_949_673, p31, p32, p23, p14 };
        assert_eq!(read("loss state 1%").loss, state(4_252_017_622, 0, u32::MAX, 0));
        let all = state(85_899_346, 128_849_019, 171_798_692, 214_748_365);
        assert_eq!(read("loss state 1% 2% 3% 4% 5%").loss, all);
        let gilbert = |r, h, k1| Loss::Gilbert { p: 42_949_673, r, h, k1 };
        assert_eq!(read("loss gemodel 1%").loss, gilbert(4_252_017_622, 0, 0));
        assert_eq!(read("loss gemodel 1% 10% 70% 0.1%").loss, gilbert(429_496_730, 1_288_490_189, 4_294_967));
        let s = read("delay 10ms reorder 25% 50%");
        assert_eq!((s.reorder, s.gap), (chance(1_073_741_824, 2_147_483_648), 1));
        let pace = |bytes_per_s, overhead, cell, cell_overhead| {
            Some(Pace { bytes_per_s, overhead, cell, cell_overhead })
        };
        assert_eq!(read("rate 5kbit 20 100 5").pace, pace(625, 20, 100, 5));
        assert_eq!(read("rate 1gbit -20").pace, pace(125_000_000, -20, 0, 0));
        let uniform = Gap::Uniform { least: 800_000, most: 1_000_000 };
        let slots = |gap, packets, bytes| Some(Slots { gap, packets, bytes });
        assert_eq!(read("slot 800us 1ms packets 42 bytes 1k").slots, slots(uniform, 42, 1024));
        let one = Gap::Uniform { least: 800_000, most: 800_000 };
        assert_eq!(read("slot 800us").slots, slots(one, i32::MAX, i32::MAX));
        let drawn = Gap::Drawn { from: Distribution::Normal, mean: 1_000_000, deviation: 100_000 };
        assert_eq!(read("slot distribution normal 1ms 100us packets 5").slots, slots(drawn, 5, i32::MAX));
        let s = read("dup 1% 5% corrupt 0.1% 5% lat 10ms lim 10k");
        assert_eq!(
            (s.duplicate, s.corrupt),
            (chance(42_949_673, 214_748_365), chance(4_294_967, 214_748_365))
        );
        assert_eq!((s.latency, s.limit), (10_000_000, 10_240));
        assert_eq!(read("delay 0 3s").jitter, i32::MAX, "as the kernel cuts it");
    }

    /// Commands, and what `tc qdisc show` prints for them.
    #[test]
    fn lines_are_taken_as_they_stand() {
        for (line, options) in [
            ("tc qdisc add dev eth0 root netem delay 100ms", "delay 100ms"),
            ("sudo tc qdisc change dev eth0 root handle 1: netem loss 0.1%", "loss 0.1%"),
            ("tc qdisc add dev eth0 parent 1:1 handle 10: netem rate 5kbit 20 100 5", "rate 5kbit 20 100 5"),
            ("netem: delay 100ms 20ms distribution normal", "delay 100ms 20ms distribution normal"),
            (
                "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 100ms  10ms 25% loss 1% 25% duplicate 1% \
                 reorder 25% 50% corrupt 0.1% rate 10Mbit packetoverhead 20 cellsize 100 celloverhead 5 ecn  gap 5 \
                 seed 12345",
                "limit 1000 delay 100ms 10ms 25% loss 1% 25% duplicate 1% reorder 25% 50% corrupt 0.1% \
                 rate 10mbit 20 100 5 ecn gap 5",
            ),
            (
                "qdisc netem 8002: root refcnt 2 limit 1000 loss state p13 1% p31 99% p32 0% p23 100% p14 0% \
                 slot 800us 1ms packets 42 bytes 4096",
                "loss state 1% 99% slot 800us 1ms packets 42 bytes 4k",
            ),
            (
                "qdisc netem 8003: root refcnt 2 limit 1000 loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%",
                "loss gemodel 1% 10% 70% 0.1%",
            ),
        ] {
            assert_eq!(read(line), read(options), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("", "options of tc's netem"),
            ("tc qdisc add dev eth0 root fq", "options of tc's netem"),
            ("delay", "delay at the end / a time"),
            ("delay 100bananas", "delay 100bananas / a time"),
            ("delay 10ms 5 x", "x / an option of netem"),
            ("delay 10ms jitter 1ms", "jitter / an option of netem: limit, latency"),
            ("los 150%", "loss 150% / a share"),
            ("loss 1% loss 2%", "a second loss / one model"),
            ("loss state", "loss state / p13"),
            ("reorder 25%", "reorder / a delay with it"),
            ("delay 10ms gap 5", "gap 5 / reorder with it"),
            ("ecn", "ecn / loss with it"),
            ("delay 10ms distribution normal", "distribution / a delay and a jitter"),
            ("delay 10ms 1ms distribution experimental", "distribution experimental / normal, pareto"),
            ("rate 50%", "rate 50% / a rate such as"),
            ("rate 1mbit 0 4 -5", "a cell overhead of -5"),
            ("limit 0", "limit 0 / a number of packets"),
            ("slot 20ms 10ms", "slot 10ms / a longest delay"),
            ("slot packets 5", "slot packets / a time"),
            ("slot distribution 1ms 1ms", "slot distribution 1ms / normal"),
            ("delay 1ms tos 0x1", "tos / an option"),
        ] {
            assert!(error(text).contains(says), "{text}: {}", error(text));
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(
            words in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(&WORDS[..]).prop_map(String::from),
                    prop::sample::select(&["state", "gemodel", "packets", "bytes", "normal", "pareto", "p13", "1-h"][..])
                        .prop_map(String::from),
                    "-?[0-9.]{1,22}(ms|us|s|%|mbit|k)?",
                ],
                0..12,
            ),
            text in any::<String>(),
        ) {
            let _ = Spec::read(&text);
            if let Ok(spec) = Spec::read(&words.join(" ")) {
                let _ = (spec.rate(), spec.buffer(), spec.delay(), spec.is_random(), spec.disorders());
            }
        }
    }
}
