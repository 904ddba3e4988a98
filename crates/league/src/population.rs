//! The populations of the league, and the cases that a seed draws from each.

use crate::path::{self, Ranges};
use slowstart::units::Span;
use slowstart_sim::path::PathSpec;
use slowstart_sim::random::{self, Stream};
use slowstart_sim::suggest::did_you_mean;
use std::collections::BTreeMap;

/// A population of cases.
#[derive(Clone, Debug)]
pub struct Population {
    /// Its name, as the command line takes it.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// The laws of its paths, in words; empty where the path's own file has them.
    pub laws: Vec<String>,
    draw: Draw,
}

/// How cases are drawn.
#[derive(Copy, Clone, Debug)]
enum Draw {
    /// The built-in ensemble of the population's name.
    Ensemble,
    /// Each built-in fixed path in turn.
    Fixed,
    /// [`path::random`].
    Random,
    /// [`path::plain`], in these ranges.
    Plain(Ranges, Situation),
}

/// What is special about the cases of a population.
#[derive(Copy, Clone, Debug)]
enum Situation {
    Alone,
    Beside(&'static str),
    BesideWeb,
    Arriving,
    Starters,
    Limited,
    Thin,
    Managed,
    Policed,
    Bursty,
}

/// A case: all that a startup meets. The same for every startup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The seed of the league.
    pub drawn_from: u64,
    /// The name of its population.
    pub population: String,
    /// Its number in the population, from 0.
    pub number: u32,
    /// The path, as `slowstart compare` takes it.
    pub path: String,
    /// The name of the TCP stack at both ends.
    pub profile: &'static str,
    /// Settings of the stack.
    pub set: BTreeMap<String, String>,
    /// The seed of everything random in the run.
    pub seed: u64,
    /// What shares the path, and what the application does.
    pub load: Load,
}

/// What shares the path with the flow studied, and what its application does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// One transfer with nothing beside it.
    Alone,
    /// One transfer beside flows that the study's key `against` describes.
    Against(Vec<String>),
    /// This many flows of the same startup, each beginning within `within` of the first.
    Starters {
        /// How many, the first included.
        flows: u32,
        /// The latest begin.
        within: Span,
    },
    /// An application that writes a little at a time, and then the rest at once.
    Limited {
        /// Bytes of each write.
        bytes: u64,
        /// Time between writes.
        every: Span,
        /// How many such writes.
        writes: u32,
    },
}

/// Links on which several flows can live: home and office access.
const SHARED: Ranges =
    Ranges { rate_bps: (10_000_000, 200_000_000), rtt_us: (10_000, 150_000), queue_mbdp: (300, 3_000) };
/// Queues of half a bandwidth-delay product and less.
const SHALLOW: Ranges =
    Ranges { rate_bps: (5_000_000, 1_000_000_000), rtt_us: (5_000, 200_000), queue_mbdp: (50, 500) };
/// Links for hosts whose behaviour, not whose path, is in question.
const ORDINARY: Ranges =
    Ranges { rate_bps: (5_000_000, 500_000_000), rtt_us: (5_000, 200_000), queue_mbdp: (500, 3_000) };

/// Flows that start together.
const STARTERS: u32 = 8;
/// Web clients on one link.
const WEB_CLIENTS: usize = 6;
/// How long flows were there before the flow studied.
const PRESENT: &str = "10s";

/// Built-in paths that came later, and those that others replaced: the populations stay as they were, so that
/// versions can be compared.
const LATER: [&str; 6] =
    ["5g", "5g-55", "geo-recorded", "geo-recorded-fixed", "leo-droptail", "leo-100-droptail"];

/// Cases of a population by default.
const CASES: u32 = 40;
/// How many times as many cases the random ensemble has: its paths differ most.
const MORE_RANDOM: u32 = 5;

/// Returns the populations with these names, or all of them.
///
/// # Errors
/// What was found and what was expected.
pub fn named(names: &[String]) -> Result<Vec<Population>, String> {
    let all = all();
    let known: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
    if let Some(name) = names.iter().find(|n| !known.contains(&n.as_str())) {
        let hint = did_you_mean(name, &known);
        return Err(format!("found {name:?}{hint}, expected one of {}", known.join(", ")));
    }
    Ok(all.into_iter().filter(|p| names.is_empty() || names.contains(&p.name)).collect())
}

/// Returns the populations, in the order of tables.
pub fn all() -> Vec<Population> {
    let mut all: Vec<Population> = PathSpec::builtins()
        .iter()
        .filter(|b| is_ensemble(b.name) && !LATER.contains(&b.name))
        .map(|b| Population {
            name: b.name.into(),
            about: format!("built-in: {}", b.about),
            laws: Vec::new(),
            draw: Draw::Ensemble,
        })
        .collect();
    all.push(Population {
        name: "fixed".into(),
        about: format!("the built-in fixed paths in turn: {}", fixed_paths().join(", ")),
        laws: Vec::new(),
        draw: Draw::Fixed,
    });
    all.push(Population {
        name: "random".into(),
        about: "random paths; half of the hosts pace (profile linux-6.18-fq), half do not (linux-6.18)"
            .into(),
        laws: path::laws(&path::WIDE),
        draw: Draw::Random,
    });
    let plain = |name: &str, about: &str, ranges: Ranges, situation| Population {
        name: name.into(),
        about: about.into(),
        laws: path::laws(&ranges).into_iter().take(3).collect(),
        draw: Draw::Plain(ranges, situation),
    };
    all.extend([
        plain("shallow", "queues of half a bandwidth-delay product and less", SHALLOW, Situation::Alone),
        plain("beside-cubic", "a CUBIC flow (HyStart) has been there for 10 s", SHARED, Situation::Beside("cubic")),
        plain("beside-reno", "a Reno flow has been there for 10 s", SHARED, Situation::Beside("reno")),
        plain("beside-bbr", "a BBRv3 flow has been there for 10 s", SHARED, Situation::Beside("bbr3")),
        plain("beside-web", "six web clients have been there for 10 s", SHARED, Situation::BesideWeb),
        plain("arriving", "a CUBIC flow begins 1 to 8 round trips later", SHARED, Situation::Arriving),
        plain("starters", "eight flows of the same startup begin within one round trip", SHARED, Situation::Starters),
        plain(
            "limited",
            "the application writes 3 to 50 kB every 10 to 200 ms, 10 to 60 times, and then 10 MB at once",
            ORDINARY,
            Situation::Limited,
        ),
        plain(
            "thin-acks",
            "one ACK for two packets from the start, or (half of the cases) only the newest ACK of each slot of 1 to 20 ms",
            ORDINARY,
            Situation::Thin,
        ),
    ]);
    let with = |name: &str, about: &str, law: &str, situation| {
        let mut p = plain(name, about, ORDINARY, situation);
        p.laws.push(law.into());
        p
    };
    all.extend([
        with("managed", "active queue management", path::MANAGED, Situation::Managed),
        with("policed", "a policer before the link", path::POLICED, Situation::Policed),
        with("bursty", "losses in bursts, and reordering", path::BURSTY, Situation::Bursty),
    ]);
    all
}

fn is_ensemble(name: &str) -> bool {
    PathSpec::load(name, None).is_ok_and(|p| p.is_ensemble())
}

/// The built-in paths that draw nothing and that one engine can run.
fn fixed_paths() -> Vec<&'static str> {
    let proxied = |name: &str| PathSpec::load(name, None).is_ok_and(|p| p.proxy().is_some());
    let fixed = |name: &&str| !is_ensemble(name) && !proxied(name) && !LATER.contains(name);
    PathSpec::builtins().iter().map(|b| b.name).filter(fixed).collect()
}

/// A number uniform in `low..=high`.
fn between(r: &mut Stream, low: u64, high: u64) -> u64 {
    low + r.below(high - low + 1)
}

impl Population {
    /// How many cases there are of `runs`, or by default.
    pub fn count(&self, runs: Option<u32>) -> u32 {
        runs.unwrap_or(CASES) * if self.name == "random" { MORE_RANDOM } else { 1 }
    }

    /// Draws the first `count` cases of a seed. The first cases of a larger count are the same.
    pub fn cases(&self, seed: u64, count: u32) -> Vec<Case> {
        let fixed = if matches!(self.draw, Draw::Fixed) { fixed_paths() } else { Vec::new() };
        (0..count).map(|number| self.case(seed, number, &fixed)).collect()
    }

    fn case(&self, seed: u64, number: u32, fixed: &[&str]) -> Case {
        let own = Stream::named(seed, &format!("league.{}", self.name)).any();
        // 53 bits: a seed survives every JSON reader.
        let drawn_from = seed;
        let seed = random::at(own, u64::from(number)) >> 11;
        let mut r = Stream::named(seed, "case");
        let mut case = Case {
            drawn_from,
            population: self.name.clone(),
            number,
            path: String::new(),
            profile: "linux-6.18",
            set: BTreeMap::new(),
            seed,
            load: Load::Alone,
        };
        match self.draw {
            Draw::Ensemble => case.path.clone_from(&self.name),
            Draw::Fixed => case.path = fixed[number as usize % fixed.len()].into(),
            Draw::Random => {
                case.path = path::random(seed, &path::WIDE);
                if r.chance(500_000) {
                    case.profile = "linux-6.18-fq";
                }
            }
            Draw::Plain(ranges, situation) => {
                case.path = path::plain(seed, &ranges);
                situation.arrange(&mut case, &mut r);
            }
        }
        case
    }
}

impl Situation {
    fn arrange(self, case: &mut Case, r: &mut Stream) {
        let rtt = PathSpec::load(&case.path, None).map_or(Span::ZERO, |p| p.facts().base_rtt);
        match self {
            Self::Alone => {}
            Self::Managed => {
                let (path, marks) = path::managed(case.seed, &ORDINARY);
                case.path = path;
                if marks {
                    case.set.insert("ecn".into(), "accecn".into());
                }
            }
            Self::Policed => case.path = path::policed(case.seed, &ORDINARY),
            Self::Bursty => case.path = path::bursty(case.seed, &ORDINARY),
            Self::Beside(name) => case.load = Load::Against(vec![format!("{name}@-{PRESENT}")]),
            Self::BesideWeb => {
                case.load = Load::Against(vec![format!("web@-{PRESENT}"); WEB_CLIENTS]);
            }
            Self::Arriving => {
                let after = Span(between(r, rtt.0, rtt.0 * 8));
                case.load = Load::Against(vec![format!("cubic@{}us", after.0 / 1000)]);
            }
            Self::Starters => case.load = Load::Starters { flows: STARTERS, within: rtt },
            Self::Limited => {
                case.load = Load::Limited {
                    bytes: between(r, 3_000, 50_000),
                    every: Span::millis(between(r, 10, 200)),
                    writes: between(r, 10, 60) as u32,
                }
            }
            Self::Thin => {
                if r.chance(500_000) {
                    let slot = between(r, 1_000, 20_000);
                    case.path = format!("{} ack_aggregate={slot}us ack_filter=on", case.path);
                } else {
                    case.set = [("ack", "delayed"), ("quick", "0")].map(|(k, v)| (k.into(), v.into())).into();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_set_of_cases() {
        for p in all() {
            let cases = p.cases(7, 6);
            assert_eq!(cases, p.cases(7, 6), "{}", p.name);
            assert_eq!(cases[..3], p.cases(7, 3), "{}", p.name);
            assert!(p.cases(8, 6).iter().zip(&cases).all(|(a, b)| a.seed != b.seed), "{}", p.name);
        }
    }

    #[test]
    fn names_are_unique_and_seeds_differ() {
        let all = all();
        let mut names: Vec<_> = all.iter().map(|p| &p.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        let mut seeds: Vec<u64> = all.iter().flat_map(|p| p.cases(1, 20)).map(|c| c.seed).collect();
        let count = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), count);
    }
}
