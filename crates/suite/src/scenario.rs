//! What a suite file says: scenarios, each with a study and criteria.

use crate::entrant::hex;
use hmac_sha256::Hash as Sha256;
use serde::Deserialize;
use slowstart_study::engines::{Engine, EngineError};
use slowstart_study::measures::Measure;
use slowstart_study::scenario::StudyText;
use slowstart_study::simulator::Simulator;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use thiserror::Error;

/// The text of the suite that is built in, `startup-1`.
pub const STARTUP_1: &str = include_str!("../scenarios/startup-1.toml");

/// The sections of RFC 9743 that a suite may refer to, with their titles.
pub const SECTIONS: &[(&str, &str)] = &[
    ("5.1.1", "Protection against congestion collapse"),
    ("5.1.2", "Protection against bufferbloat"),
    ("5.1.3", "Protection against high packet loss"),
    ("5.1.4", "Fairness within the proposed algorithm"),
    ("5.1.5", "Short flows"),
    ("5.2.1", "Existing general-purpose congestion control"),
    ("5.2.2", "Real-time congestion control"),
    ("5.2.3", "Short and long flows"),
    ("5.3.1", "Differences with congestion control principles"),
    ("5.3.2", "Incremental deployment"),
    ("6.1", "Paths with tail-drop queues"),
    ("6.2", "Tunnel behavior"),
    ("6.3", "Wired paths"),
    ("6.4", "Wireless paths"),
    ("7.1", "Active queue management"),
    ("7.2", "Network circuit breakers"),
    ("7.3", "Paths with varying delay"),
    ("7.4", "Internet of Things and constrained nodes"),
    ("7.5", "Paths with high delay"),
    ("7.6", "Misbehaving nodes"),
    ("7.7", "Extreme packet reordering"),
    ("7.8", "Transient events"),
    ("7.9", "Sudden changes in the path"),
    ("7.10", "Multipath transport"),
    ("7.11", "Data centers"),
];

/// Returns the title of a section of RFC 9743.
pub fn title(section: &str) -> &'static str {
    SECTIONS.iter().find(|s| s.0 == section).map_or("", |s| s.1)
}

/// Returns the SHA-256 of these bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::hash(bytes))
}

/// What is wrong with a suite.
#[derive(Debug, Error)]
pub enum SuiteError {
    /// It is no TOML, or a key is unknown or missing.
    #[error("suite: {0}")]
    Toml(String),
    /// A value: where, what was found and what was expected.
    #[error("{place}: found {found:?}, expected {expected}")]
    Value {
        /// The scenario and the key.
        place: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The study of a scenario.
    #[error("{scenario}: {why}")]
    Study {
        /// The scenario.
        scenario: String,
        /// What is wrong.
        why: Box<EngineError>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteText {
    name: String,
    runs: u32,
    /// Each number of a study has a source.
    #[serde(default)]
    sourced: bool,
    scenario: Vec<ScenarioText>,
    #[serde(default)]
    gap: Vec<Gap>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioText {
    name: String,
    section: String,
    question: String,
    source: String,
    not_tested: String,
    study: StudyText,
    criteria: Vec<String>,
    #[serde(default)]
    numbers: BTreeMap<String, String>,
}

/// The keys of a study that say what is measured: those of its path, where that is written out, and its own.
fn keys(study: &StudyText) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    if study.path.contains('=') {
        // What is quoted belongs to the value before it.
        let unquoted: String = study.path.split('"').step_by(2).collect();
        all.extend(unquoted.split_whitespace().filter_map(|w| Some(w.split_once('=')?.0.to_string())));
    } else {
        all.insert("path".to_string());
    }
    let own = [
        ("size", study.size.is_some()),
        ("duration", study.duration.is_some()),
        ("app", study.app.is_some()),
        ("against", !study.against.is_empty()),
        ("avoidance", study.avoidance.is_some()),
        ("profile", study.profile.is_some()),
        ("remember", study.remember.is_some()),
    ];
    all.extend(own.into_iter().filter(|(_, given)| *given).map(|(key, _)| key.to_string()));
    all.extend(study.set.keys().map(|key| format!("set.{key}")));
    all
}

/// What RFC 9743 asks and a suite does not show.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The section of RFC 9743.
    pub section: String,
    /// Why no scenario tests it.
    pub why: String,
}

/// A suite: scenarios, and the sections that none of them tests.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Its name with its version, such as `startup-1`.
    pub name: String,
    /// The SHA-256 of its file, in hexadecimal.
    pub sha256: String,
    /// Its scenarios, in the order of sections.
    pub scenarios: Vec<Scenario>,
    /// What it does not show.
    pub gaps: Vec<Gap>,
}

/// A scenario of the suite: one study, and the criteria that its results must meet.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, unique in the suite.
    pub name: String,
    /// The section of RFC 9743 that asks for it.
    pub section: String,
    /// What it asks, in one sentence.
    pub question: String,
    /// Where it comes from.
    pub source: String,
    /// What it does not test.
    pub not_tested: String,
    /// Path, workload and other flows; its startups are set when it runs.
    pub study: StudyText,
    /// The criteria that the results of its study must meet.
    pub criteria: Vec<Criterion>,
    /// The sources of the numbers of its study, by its keys; empty where the suite need not state them.
    pub numbers: BTreeMap<String, String>,
}

/// A criterion: `MEASURE <= [FACTOR REFERENCE +] NUMBER`, or `>=`.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// The criterion as the suite's file has it.
    pub text: String,
    /// What is measured in each run.
    pub measure: Measure,
    /// True if the value must be at least the limit.
    pub at_least: bool,
    /// A factor, and the startup whose value in the same run it applies to.
    pub reference: Option<(f64, Reference)>,
    /// What is added to that, or the limit itself.
    pub plus: f64,
}

/// Whose value a limit refers to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Slow start of RFC 5681.
    Standard,
    /// The default of Linux.
    HyStart,
}

impl Reference {
    /// Both references, in the order of runs.
    pub const ALL: [Self; 2] = [Self::Standard, Self::HyStart];

    /// What it is.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Standard => "slow start",
            Self::HyStart => "today's default",
        }
    }

    /// Its name in the registry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::HyStart => "hystart",
        }
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Criterion {
    /// Reads a criterion; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (&[name, sign], rest) = words.split_first_chunk::<2>()?;
        let measure = Measure::of_rows().find(|m| m.name() == name)?;
        let at_least = match sign {
            "<=" => false,
            ">=" => true,
            _ => return None,
        };
        let number = |w: &str| w.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        let reference = |w: &str| Reference::ALL.into_iter().find(|r| r.name() == w);
        let (of, plus) = match rest {
            [n] => (None, number(n)?),
            [n, r] => (Some((number(n)?, reference(r)?)), 0.0),
            [n, r, "+", p] => (Some((number(n)?, reference(r)?)), number(p)?),
            _ => return None,
        };
        Some(Self { text: text.to_string(), measure, at_least, reference: of, plus })
    }
}

impl Criterion {
    /// What it says, where a person reads it: a limit that refers to another startup is relative to that.
    pub fn says(&self) -> String {
        match self.reference {
            None => self.text.clone(),
            Some((_, of)) => format!("{}: no worse than {} ({})", self.measure.name(), of.about(), self.text),
        }
    }
}

impl Suite {
    /// Returns the suite that is built in.
    pub fn built_in() -> Self {
        Self::read(STARTUP_1).unwrap_or_else(|e| unreachable!("a test reads it: {e}"))
    }

    /// Reads a suite and checks every study.
    ///
    /// # Errors
    /// If it is no suite, a criterion or section is unknown, two scenarios have one name, or a study cannot
    /// run.
    pub fn read(text: &str) -> Result<Self, SuiteError> {
        let sha256 = sha256(text.as_bytes());
        let text: SuiteText = toml::from_str(text).map_err(|e| SuiteError::Toml(e.to_string()))?;
        let value = |place: String, found: &str, expected: &str| SuiteError::Value {
            place,
            found: found.into(),
            expected: expected.into(),
        };
        if text.runs == 0 || text.runs > 10_000 {
            return Err(value("runs".into(), &text.runs.to_string(), "a number of runs from 1 to 10000"));
        }
        let mut names = BTreeSet::new();
        let mut scenarios = Vec::new();
        for s in text.scenario {
            if !names.insert(s.name.clone()) {
                return Err(value("scenario.name".into(), &s.name, "a name that no other scenario has"));
            }
            if title(&s.section).is_empty() {
                return Err(value(
                    format!("{}: section", s.name),
                    &s.section,
                    "a section of RFC 9743, such as 5.1.2",
                ));
            }
            let criteria = s.criteria.iter().map(|c| {
                Criterion::parse(c).ok_or_else(|| {
                    let known: Vec<&str> = Measure::of_rows().map(Measure::name).collect();
                    let expected = format!(
                        "a criterion such as \"lost_packets <= 1 standard + 10\" or \"timeouts <= 0\", with one of {}",
                        known.join(", ")
                    );
                    value(format!("{}: criteria", s.name), c, &expected)
                })
            });
            let criteria = criteria.collect::<Result<Vec<_>, _>>()?;
            if criteria.is_empty() {
                return Err(value(format!("{}: criteria", s.name), "", "at least one criterion"));
            }
            let (found, expected) = (s.numbers.keys().cloned().collect::<BTreeSet<_>>(), keys(&s.study));
            if found != expected && (text.sourced || !found.is_empty()) {
                let list = |of: &BTreeSet<String>| of.iter().cloned().collect::<Vec<_>>().join(", ");
                let expected = format!("the source of each of {}", list(&expected));
                return Err(value(format!("{}: numbers", s.name), &list(&found), &expected));
            }
            let mut study = s.study;
            study.runs = study.runs.or(Some(text.runs));
            let scenario = Scenario {
                name: s.name,
                section: s.section,
                question: s.question,
                source: s.source,
                not_tested: s.not_tested,
                study,
                criteria,
                numbers: s.numbers,
            };
            Simulator
                .study(&scenario.text(&[], "cubic", 1, None), None)
                .map_err(|why| scenario.failed(why))?;
            scenarios.push(scenario);
        }
        Ok(Self { name: text.name, sha256, scenarios, gaps: text.gap })
    }
}

/// Returns the suite of one scenario of this suite, under another name.
///
/// # Errors
/// If it is no TOML, or has no such scenario.
pub fn alone(text: &str, scenario: &str, name: &str) -> Result<String, SuiteError> {
    let toml = |e: &dyn fmt::Display| SuiteError::Toml(e.to_string());
    let mut table: toml::Table = toml::from_str(text).map_err(|e| toml(&e))?;
    let all = table.get_mut("scenario").and_then(toml::Value::as_array_mut);
    let all = all.ok_or_else(|| toml(&"no scenario"))?;
    all.retain(|s| s.get("name").and_then(toml::Value::as_str) == Some(scenario));
    let one = all.first_mut().and_then(toml::Value::as_table_mut).ok_or_else(|| toml(&"no such scenario"))?;
    one.insert("name".into(), name.into());
    toml::to_string(&table).map_err(|e| toml(&e))
}

impl Scenario {
    /// Returns its study of the references and then these startups, each with this avoidance unless the scenario
    /// has one. `runs` replaces the number of runs that the suite states.
    pub fn text(&self, startups: &[String], avoidance: &str, seed: u64, runs: Option<u32>) -> StudyText {
        let references = Reference::ALL.map(|r| r.name().to_string());
        StudyText {
            startups: references.into_iter().chain(startups.iter().cloned()).collect(),
            avoidance: self.study.avoidance.clone().or_else(|| Some(avoidance.to_string())),
            seed: Some(seed),
            runs: runs.or(self.study.runs),
            ..self.study.clone()
        }
    }

    /// What is wrong with its study.
    pub(crate) fn failed(&self, why: EngineError) -> SuiteError {
        SuiteError::Study { scenario: self.name.clone(), why: Box::new(why) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_suite_is_one() {
        let suite = Suite::read(STARTUP_1).expect("it is a suite");
        assert_eq!(suite.name, "startup-1");
        // Every section that RFC 9743 has is tested or named as a gap.
        for (section, _) in SECTIONS {
            let tested = suite.scenarios.iter().any(|s| s.section == *section);
            assert!(tested || suite.gaps.iter().any(|g| g.section == *section), "{section}");
        }
    }

    #[test]
    fn criteria_are_read_or_refused() {
        let c = Criterion::parse("lost_packets <= 1.1 standard + 20").expect("a criterion");
        assert_eq!(
            (c.measure, c.at_least, c.reference, c.plus),
            (Measure::Lost, false, Some((1.1, Reference::Standard)), 20.0)
        );
        let c = Criterion::parse("goodput_mbps >= 0.9 hystart").expect("a criterion");
        assert_eq!((c.at_least, c.reference), (true, Some((0.9, Reference::HyStart))));
        assert!(
            Criterion::parse("timeouts <= 0").is_some_and(|c| c.plus.abs() < 1e-12 && c.reference.is_none())
        );
        for bad in [
            "",
            "losses <= 0",
            "timeouts < 0",
            "timeouts <= -1",
            "timeouts <= 1 reno",
            "timeouts <= NaN",
            "timeouts <= 1 standard +",
        ] {
            assert!(Criterion::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let why = |text: &str| Suite::read(text).expect_err("refused").to_string();
        let good = "name='x'\nruns=6\n[[scenario]]\nname='a'\nsection='6.1'\nquestion='q'\nsource='s'\nnot_tested='n'\nstudy={path='geo'}\ncriteria=['timeouts <= 0']\n";
        assert!(Suite::read(good).is_ok());
        assert!(why(&good.replace("6.1", "6.9")).contains("a: section: found \"6.9\""));
        assert!(why(&good.replace("timeouts", "timeout")).contains("a: criteria: found \"timeout <= 0\""));
        assert!(why(&good.replace("geo", "gee")).contains("a: "));
        assert!(why(&good.replace("runs=6", "runs=0")).contains("runs: found \"0\""));
        assert!(why("name=1").contains("suite:"));
    }

    #[test]
    fn a_sourced_suite_has_a_source_for_each_number() {
        let sourced = |numbers: &str| {
            let study = "{path='rate=5Mbit rtt=40ms queue=\"codel target=5ms\"',size='1MB',set={iw='4'}}";
            Suite::read(&format!(
                "name='x'\nruns=6\nsourced=true\n[[scenario]]\nname='a'\nsection='6.1'\nquestion='q'\nsource='s'\nnot_tested='n'\nstudy={study}\ncriteria=['timeouts <= 0']\nnumbers={{{numbers}}}\n"
            ))
        };
        let all = "rate='r',rtt='r',queue='r',size='r','set.iw'='r'";
        assert_eq!(sourced(all).expect("a suite").scenarios[0].numbers.len(), 5);
        for (bad, found) in [
            (all.replace("rtt='r',", ""), "queue, rate, set.iw, size"),
            (format!("{all},loss='r'"), "loss, queue"),
        ] {
            let why = sourced(&bad).expect_err("refused").to_string();
            assert!(why.contains(&format!("a: numbers: found \"{found}")), "{why}");
            assert!(why.contains("the source of each of queue, rate, rtt, set.iw, size"), "{why}");
        }
    }
}
