//! Reads a queue discipline as `tc` writes it: its name and words with their values, with `=` or a space
//! between, in any order. A command of `tc` or a line of `tc -s qdisc` can be given as it stands.

use std::collections::BTreeMap;
use std::str::FromStr;

use slowstart::units::{Bytes, Fixed, Rate, Span};

use super::super::{quantity, tc};
use super::{Discipline, GRAMMARS, Kind};
use crate::suggest::did_you_mean;

/// A full Ethernet frame.
pub(super) const MTU: u32 = 1514;

/// What is wrong with a discipline: what was found, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::path) struct Wrong {
    pub(in crate::path) found: String,
    pub(in crate::path) expected: String,
}

pub(in crate::path) fn wrong(found: impl Into<String>, expected: impl Into<String>) -> Wrong {
    Wrong { found: found.into(), expected: expected.into() }
}

/// A discipline: its words, and what it makes of them.
pub(super) struct Grammar {
    pub(super) name: &'static str,
    /// Words with a value.
    pub(super) values: &'static [&'static str],
    /// Words without one, which `on` or `off` may follow.
    pub(super) flags: &'static [&'static str],
    /// Words with and without a value that `tc` shows and that change nothing here.
    pub(super) ignored: (&'static [&'static str], &'static [&'static str]),
    /// Reads it for a link of this rate.
    pub(super) read: fn(&Words<'_>, Rate) -> Result<Kind, Wrong>,
}

/// The words of a discipline with their values; `on` and `off` for flags.
pub(super) struct Words<'a> {
    grammar: &'static Grammar,
    values: BTreeMap<&'static str, &'a str>,
}

impl<'a> Words<'a> {
    fn read(text: &'a str) -> Result<Self, Wrong> {
        let mut words =
            text.split(|c: char| c.is_whitespace() || c == '=').filter(|w| !w.is_empty()).peekable();
        // What stands before the name in a command, and in a line that tc shows.
        while let Some(word) = words.next_if(|w| {
            ["sudo", "tc", "qdisc", "add", "change", "replace", "root", "dev", "parent", "handle"].contains(w)
        }) {
            if ["dev", "parent", "handle"].contains(&word) {
                words.next();
            }
        }
        let name = words.next().unwrap_or_default();
        let grammar = GRAMMARS.iter().copied().flatten().find(|g| g.name == name).ok_or_else(|| {
            let names: Vec<_> = Discipline::names().collect();
            if name == "cake" {
                let nearest = "another discipline: CAKE is not modelled. The nearest is queue=fq_codel with \
                               shaper=\"rate=... burst=...\"";
                return wrong(text, nearest);
            }
            let hint = did_you_mean(name, &names);
            let expected = format!("{}, or a discipline: {}", super::super::spec::QUEUE, names.join(", "));
            wrong(text, format!("{expected}{hint}"))
        })?;
        let mut values = BTreeMap::new();
        while let Some(word) = words.next() {
            let known = |list: &'static [&'static str]| list.iter().copied().find(|w| *w == word);
            let known_flag = |word: &str| grammar.flags.iter().copied().find(|w| *w == word);
            let (valued, bare) = grammar.ignored;
            if word.ends_with(':') || word == "root" || known(bare).is_some() {
                continue;
            }
            if ["refcnt", "dev", "parent", "handle"].contains(&word) || known(valued).is_some() {
                words.next();
                // Some have many numbers: priomap, weights.
                while words.next_if(|w| w.bytes().all(|b| b.is_ascii_digit())).is_some() {}
            } else if let Some(word) = known(grammar.flags) {
                let value = words.next_if(|w| ["on", "off"].contains(w)).unwrap_or("on");
                values.insert(word, value);
            } else if let Some(word) = word.strip_prefix("no").and_then(known_flag) {
                values.insert(word, "off");
            } else if let Some(word) = known(grammar.values) {
                let value = words.next().ok_or_else(|| wrong(word, format!("a value after {word}")))?;
                values.insert(word, value);
            } else {
                let all: Vec<_> = grammar.values.iter().chain(grammar.flags).copied().collect();
                let hint = did_you_mean(word, &all);
                return Err(wrong(word, format!("a word of {name}: {}{hint}", all.join(", "))));
            }
        }
        Ok(Self { grammar, values })
    }

    /// The value of a word as it was written.
    pub(super) fn written(&self, word: &str) -> Option<&'a str> {
        self.values.get(word).copied()
    }

    pub(super) fn get<T>(
        &self,
        word: &str,
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, Wrong> {
        let Some(found) = self.written(word) else { return Ok(None) };
        parse(found).map(Some).ok_or_else(|| wrong(format!("{word} {found}"), expected))
    }

    pub(super) fn span(&self, word: &str, default: Span) -> Result<Span, Wrong> {
        Ok(self.get(word, short_span, "a length of time below 1000s, such as 5ms")?.unwrap_or(default))
    }

    pub(super) fn packets(&self, word: &str, default: usize) -> Result<usize, Wrong> {
        let parse = |text: &str| {
            let number = ["packets", "packet", "p"].iter().find_map(|unit| text.strip_suffix(unit));
            let n = quantity::whole(number.unwrap_or(text))?;
            (1..=1 << 24).contains(&n).then_some(n as usize)
        };
        Ok(self.get(word, parse, "a number of packets from 1 to 16777216, such as 1000p")?.unwrap_or(default))
    }

    pub(super) fn size(&self, word: &str) -> Result<Option<u32>, Wrong> {
        self.get(word, size, "a size of at most 1 GiB, such as 30000b, 15Kb or 36MB")
    }

    pub(super) fn number(
        &self,
        word: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Wrong> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        self.get(word, |text| quantity::whole(text).filter(|n| range.contains(n)), &expected)
    }

    pub(super) fn is_on(&self, word: &str) -> Option<bool> {
        self.written(word).map(|v| v == "on")
    }
}

/// A length of time far below what wraps in the clocks of the disciplines; microseconds if it has no unit.
pub(super) fn short_span(text: &str) -> Option<Span> {
    let of_tc = || tc::time(text).map(Span).filter(|s| *s > Span::ZERO);
    quantity::some_span(text).or_else(of_tc).filter(|s| *s < Span::secs(1000))
}

/// A size as `tc` writes it, or as paths do. The `Kb` and `Mb` of `tc` are 1024 bytes and their square.
fn size(text: &str) -> Option<u32> {
    let units = [("Kb", 10), ("Mb", 20), ("Gb", 30), ("b", 0)];
    let of_tc = units.iter().find_map(|(unit, shift)| {
        let n = quantity::decimal(text.strip_suffix(unit)?)?;
        n.checked_mul(1 << shift).map(|n| Bytes(n / Fixed::ONE.unsigned_abs()))
    });
    let bare = || quantity::whole(text).map(Bytes);
    let lower_case = || tc::size(text).map(|n| Bytes(n.into()));
    let bytes = of_tc.or_else(bare).or_else(|| quantity::bytes(text)).or_else(lower_case)?;
    (1..=1 << 30).contains(&bytes.0).then_some(bytes.0 as u32)
}

impl Discipline {
    /// The names of all disciplines, as `tc` has them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        GRAMMARS.iter().copied().flatten().map(|g| g.name)
    }

    /// True if a value of `queue` is meant as a discipline rather than as a size.
    pub(in crate::path) fn is_meant(text: &str) -> bool {
        let first = text.trim_start().chars().next();
        first.is_some_and(|c| c.is_ascii_alphabetic()) && text.trim() != "infinite"
    }

    /// Reads a discipline for a link of this rate.
    pub(in crate::path) fn read(text: &str, rate: Rate) -> Result<Self, Wrong> {
        let w = Words::read(text)?;
        let kind = (w.grammar.read)(&w, rate)?;
        Ok(Self { kind })
    }

    /// A queue that drops what exceeds a limit.
    pub(in crate::path) fn drop_tail(packets: usize, bytes: u32) -> Self {
        Self { kind: Kind::DropTail(super::drop_tail::Params { packets, bytes }) }
    }
}

impl FromStr for Discipline {
    type Err = String;

    /// Reads a discipline as the key `queue` does, for a link of 10 Mbit/s where that matters (RED).
    fn from_str(text: &str) -> Result<Self, String> {
        Self::read(text, Rate(10_000_000))
            .map_err(|why| format!("found {:?}, expected {}", why.found, why.expected))
    }
}

/// The period of updates. A shorter one has no effect but its cost.
pub(super) fn at_least_a_tenth(w: &Words, default: Span) -> Result<Span, Wrong> {
    let parse = |text: &str| short_span(text).filter(|s| *s >= Span::micros(100));
    Ok(w.get("tupdate", parse, "a length of time not below 100us, such as 15ms")?.unwrap_or(default))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Discipline, Wrong> {
        Discipline::read(text, Rate(50_000_000))
    }

    #[test]
    fn what_tc_shows_is_the_default() {
        for (short, shown) in [
            ("codel", "qdisc codel 8001: root refcnt 2 limit 1000p target 5ms interval 100ms"),
            ("codel", "qdisc codel 8001: dev eth0 parent 1:1 limit 1000p target 5ms interval 100ms noecn"),
            (
                "fq_codel",
                "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms \
                 memory_limit 32Mb ecn drop_batch 64",
            ),
            ("pie", "qdisc pie 8034: root refcnt 2 limit 1000p target 15ms tupdate 15ms alpha 2 beta 20"),
            (
                "red limit=400000b min=30000b max=90000b",
                "qdisc red 8003: root refcnt 2 limit 400000b min 30000b max 90000b ewma 5 probability 0.02 Scell_log 13",
            ),
            (
                "dualpi2",
                "qdisc dualpi2 8001: root refcnt 2 limit 10000p target 15ms tupdate 16ms alpha 0.160156 beta 3.199219 \
                 l4s_ect coupling_factor 2 drop_on_overload step_thresh 1ms drop_dequeue split_gso classic_protection 10%",
            ),
            (
                "fq",
                "qdisc fq 8001: root refcnt 2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b \
                 initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop",
            ),
        ] {
            assert_eq!(read(short), read(shown), "{shown}");
            assert!(read(short).is_ok(), "{short}: {:?}", read(short));
        }
        let with = |text: &str| read(text).expect(text);
        assert_eq!(
            with("codel target=5ms interval=100ms ecn=on limit=1000packets"),
            with("codel ecn limit 1000")
        );
        assert_ne!(with("codel ecn"), with("codel"));
        assert_eq!(with("fq_codel noecn"), with("fq_codel ecn=off"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, found, expected) in [
            ("codl", "codl", "fq (did you mean \"codel\"?)"),
            ("codel tarmac 5ms", "tarmac", "a word of codel: limit, target, interval, ce_threshold, ecn"),
            ("codel targe 5ms", "targe", "(did you mean \"target\"?)"),
            ("codel target 200ms", "target 200ms", "a target of at most the interval, which is 100ms"),
            ("fq_codel target 5m", "target 5m", "a length of time below 1000s, such as 5ms"),
            ("fq_codel limit 0p", "limit 0p", "a number of packets from 1 to 16777216, such as 1000p"),
            ("pie limit", "limit", "a value after limit"),
            ("red", "red", "limit with it, such as limit 400000b"),
            ("red limit 100Kb max 200Kb", "limit 102400 min 68266 max 204800", "a limit above max"),
            ("red limit 400000 min 30000 max 90000 burst 3", "burst 3", "at least min / avpkt, which is 30"),
            ("dualpi2 coupling_factor 0", "coupling_factor 0", "a whole number from 1 to 255"),
        ] {
            let got = read(text).expect_err(text);
            assert!(got.found == found && got.expected.contains(expected), "{text}: {got:?}");
        }
    }

    proptest! {
        #[test]
        fn no_words_are_too_strange(
            name in prop::sample::select(Discipline::names().collect::<Vec<_>>()),
            word in prop::sample::select(&["limit", "target", "alpha", "min", "burst", "quantum", "step_thresh"][..]),
            value in "[0-9.]{0,12}[a-zA-Z%]{0,3}",
            text in any::<String>(),
        ) {
            let _ = read(&text);
            let needed = if name == "red" { "limit=100Kb" } else { "" };
            if let Ok(d) = read(&format!("{name} {needed} {word} {value}")) {
                let mut q = d.build(crate::random::Stream::named(1, "x"));
                let mut out = Vec::new();
                for i in 0..20 {
                    let at = slowstart::units::Instant(i * 100_000_000);
                    q.enqueue(super::super::Packet { bytes: 1500, at, ..Default::default() }, &mut out);
                    q.dequeue(at, &mut out);
                }
            }
        }
    }
}
