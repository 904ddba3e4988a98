//! An experiment as its file has it: where it stands in its paper, what is run, and what is claimed.
//!
//! All of it is data, in `scenarios/papers/<paper>/<name>.toml`; a new experiment is a new file and a line in [`ALL`].

use crate::background::Background;
use crate::measure::Measure;
use crate::web::{self, Web};
use serde::Deserialize;
use slowstart_lab::random::Stream;
use slowstart_lab::scenario::{Study, StudyError, StudyText};
use slowstart_lab::tcp::profile::Profile;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use thiserror::Error;

/// What is wrong with an experiment.
#[derive(Debug, Error)]
pub enum Bad {
    /// There is none of that name.
    #[error("experiment: found {0:?}, expected one of {1}")]
    Unknown(String, String),
    /// Its file cannot be read.
    #[error("{0}: {1}")]
    Text(String, String),
    /// A study of it.
    #[error("{0}: study {1}: {2}")]
    Study(String, String, #[source] Box<StudyError>),
}

/// What becomes of a claim.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval lies within the bound.
    Holds,
    /// It lies outside.
    Differs,
    /// It straddles the bound.
    Undecided,
    /// It rests on something that no model of ours has.
    NotCheckable,
}

impl Verdict {
    /// The words of the closing table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
            Self::NotCheckable => "not checkable here",
        }
    }
}

/// What of a set of runs is compared.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The median, with its distribution-free 95 % interval.
    #[default]
    Median,
    /// The mean, with Student's 95 % interval.
    Mean,
    /// The share of runs, in per cent, with Wilson's 95 % interval; for measures that are 0 or 1.
    Share,
    /// The greatest; it has no interval.
    Most,
    /// The share of runs, in per cent, in which the value is at most `within`.
    Within,
}

/// Something a paper says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In our words.
    pub says: String,
    /// The figure it gives, as printed.
    #[serde(default)]
    pub claimed: String,
    /// What is looked at in each run; none only where nothing can be.
    pub measure: Option<Measure>,
    /// In which studies; all of the experiment if none. It must hold in each.
    #[serde(default)]
    pub studies: Vec<String>,
    /// Of which startups. It must hold for each.
    #[serde(default)]
    pub of: Vec<String>,
    /// If given, the measure is divided by this startup's in the same run ...
    pub versus: Option<String>,
    /// ... or, if this is given, by the same startup's in this study.
    pub versus_study: Option<String>,
    /// If given, this startup's value in the same run is taken off.
    pub less: Option<String>,
    /// Of which flow of the run.
    #[serde(default)]
    pub flow: usize,
    /// What of the runs.
    #[serde(default)]
    pub take: Take,
    /// The bound of [`Take::Within`].
    pub within: Option<f64>,
    /// It holds if it is this at least ...
    pub at_least: Option<f64>,
    /// ... and this at most.
    pub at_most: Option<f64>,
    /// What we found.
    pub verdict: Verdict,
    /// Why; what would have to be assumed for it to hold, where that is known.
    pub why: String,
    /// The claim is ours, not the paper's: what the paper leaves to future work, or assumed.
    #[serde(default)]
    pub ours: bool,
}

/// What is drawn of each study.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Draw {
    /// Bytes in flight.
    Inflight,
    /// Bytes delivered.
    Delivered,
    /// The round-trip time.
    Rtt,
    /// The window.
    Window,
    /// The slow-start threshold, once it has been set.
    Threshold,
    /// How long HyStart's train of ACKs is.
    Train,
    /// What waits at the bottleneck.
    Queue,
    /// Packets that the sender's interface refused and that it took for congestion, summed up.
    Stalls,
}

/// A column of a table: what it is called, and what stands in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// What it is called.
    pub name: String,
    /// What is looked at.
    pub measure: Measure,
    /// What of the runs.
    #[serde(default)]
    pub take: Take,
}

/// What somebody else measured of the same, to stand beside ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Who, with what, and what differs.
    pub source: String,
    /// What was looked at.
    pub columns: Vec<Column>,
    /// Study, startup, and a value for each column.
    pub rows: Vec<(String, String, Vec<f64>)>,
}

/// Runs over a path, or over one path for each entry of `over`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// What to call it.
    pub name: String,
    /// The path; `{key}` stands for what `over` or `draw` gives.
    pub path: String,
    /// One study for each, with these values for keys of the path; `name` is its name.
    #[serde(default)]
    pub over: Vec<BTreeMap<String, String>>,
    /// Drawn for each run, uniform between whole numbers: an ensemble of paths.
    #[serde(default)]
    pub draw: BTreeMap<String, [u64; 2]>,
    /// Startups.
    pub startups: Vec<String>,
    /// Startups that look on: over the runs of the first startup, as the thesis computed SEARCH over logs.
    #[serde(default)]
    pub offline: Vec<String>,
    /// See [`StudyText`].
    pub avoidance: Option<String>,
    /// See [`StudyText`].
    pub size: Option<String>,
    /// See [`StudyText`].
    pub duration: Option<String>,
    /// See [`StudyText`].
    pub profile: Option<String>,
    /// See [`StudyText`].
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// See [`StudyText`].
    pub app: Option<String>,
    /// See [`StudyText`]; `{startup}` stands for the startup studied.
    #[serde(default)]
    pub against: Vec<String>,
    /// Flows that come and go behind these.
    pub background: Option<Background>,
    /// How many runs.
    #[serde(default = "one")]
    pub runs: u32,
    /// How many with `--full`.
    pub full: Option<u32>,
    /// What is drawn, a chart each.
    #[serde(default)]
    pub charts: Vec<Draw>,
    /// Sampled with each ACK, for what is faster than the common interval shows.
    #[serde(default)]
    pub each_ack: bool,
    /// Each ACK is kept, for measures over bins; then no startup looks on.
    #[serde(default)]
    pub acks: bool,
}

/// Runs of web clients, who share a bottleneck.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cloud {
    /// What to call it.
    pub name: String,
    /// Startups, one at a time.
    pub startups: Vec<String>,
    /// Both ends' stack.
    pub profile: String,
    /// How many runs.
    pub runs: u32,
    /// What is run.
    pub web: Web,
}

/// What a startup that looks on is called.
pub fn offline_label(startup: &str) -> String {
    format!("offline {startup}")
}

fn one() -> u32 {
    1
}

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// `paper/name`, or the file's name without its end.
    #[serde(skip)]
    pub id: String,
    /// Where it was read from.
    #[serde(skip)]
    pub file: String,
    /// What it is.
    pub title: String,
    /// Where it stands in the paper.
    pub figure: String,
    /// Rows of the catalogue that it covers.
    pub covers: Vec<String>,
    /// What is done, in a paragraph.
    pub about: String,
    /// What the paper leaves open, and what we take.
    #[serde(default)]
    pub ours: Vec<String>,
    /// Short enough for every test.
    #[serde(default)]
    pub quick: bool,
    /// What the table of runs shows beyond what it always does.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// What others measured of it.
    pub beside: Option<Beside>,
    /// What is run.
    #[serde(default)]
    pub study: Vec<Runs>,
    /// What is run of web clients.
    #[serde(default)]
    pub cloud: Vec<Cloud>,
    /// What is claimed.
    pub claim: Vec<Claim>,
}

/// One startup in one study.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The study's name.
    pub study: String,
    /// The startup as written.
    pub label: String,
    /// How many runs.
    pub runs: u32,
    /// Startups that look on.
    pub offline: Vec<String>,
    /// What is drawn.
    pub charts: Vec<Draw>,
    /// Sampled with each ACK.
    pub each_ack: bool,
    /// Each ACK is kept.
    pub acks: bool,
    /// Flows that come and go.
    pub background: Option<Background>,
    text: StudyText,
    draw: BTreeMap<String, [u64; 2]>,
    cloud: Option<(Web, Profile, bool)>,
}

impl Cell {
    /// A run of web clients, if that is what it is.
    pub fn cloud(&self, run: u32) -> Option<Result<web::Seen, StudyError>> {
        let (web, profile, full) = self.cloud.as_ref()?;
        let mut seeds = Stream::named(self.text.seed.unwrap_or(1), &format!("{}.cloud.{run}", self.study));
        Some(web::run(web, &self.label, profile, seeds.any(), *full))
    }

    /// The study of one run, with what is drawn for it: the same for every startup.
    pub fn study(&self, run: u32) -> Result<Study, StudyError> {
        let mut text = self.text.clone();
        let seed = text.seed.unwrap_or(1);
        for (key, [low, high]) in &self.draw {
            let mut stream = Stream::named(seed, &format!("{}.{key}.{run}", self.study));
            let value = low + stream.below(high.saturating_sub(*low) + 1);
            text.path = text.path.replace(&format!("{{{key}}}"), &value.to_string());
        }
        Study::check(&text, None)
    }
}

impl Experiment {
    /// Reads one that comes with the program. The id is `paper/name`.
    pub fn read(id: &str, text: &str) -> Result<Self, Bad> {
        Self::parse(&format!("scenarios/papers/{id}.toml"), id, text)
    }

    /// Reads one from a file of somebody's own.
    pub fn load(file: &str) -> Result<Self, Bad> {
        let text = std::fs::read_to_string(file).map_err(|e| Bad::Text(file.to_string(), e.to_string()))?;
        let name = Path::new(file).file_stem().map_or("".into(), |n| n.to_string_lossy());
        Self::parse(file, &name, &text)
    }

    fn parse(file: &str, id: &str, text: &str) -> Result<Self, Bad> {
        let bad = |why: String| Bad::Text(file.to_string(), why);
        let mut e: Self = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        (e.id, e.file) = (id.to_string(), file.to_string());
        let cells = e.cells(1, false)?;
        for c in &e.claim {
            if c.measure.is_none() != (c.verdict == Verdict::NotCheckable) {
                return Err(bad(format!("claim {:?}: expected a measure, or that nothing can be", c.says)));
            }
            let Some(measure) = &c.measure else { continue };
            if c.at_least.is_none() && c.at_most.is_none() {
                return Err(bad(format!("claim {:?}: expected at_least or at_most", c.says)));
            }
            if measure.is_formula() {
                continue;
            }
            if c.of.is_empty() {
                return Err(bad(format!("claim {:?}: of: expected a startup of a study", c.says)));
            }
            for study in e.studies_of(c, &cells).iter().chain(&c.versus_study) {
                for of in c.of.iter().chain(&c.versus).chain(&c.less) {
                    let there = |cell: &Cell| {
                        cell.study == *study
                            && (cell.label == *of || cell.offline.iter().any(|o| offline_label(o) == *of))
                    };
                    if !cells.iter().any(there) {
                        let why = format!("claim {:?}: found {of:?} in {study:?}, expected it there", c.says);
                        return Err(bad(why));
                    }
                }
            }
        }
        for (study, startup, values) in e.beside.iter().flat_map(|b| &b.rows) {
            if !cells.iter().any(|c| c.study == *study && c.label == *startup) {
                return Err(bad(format!(
                    "beside: found {startup:?} in {study:?}, expected it to be run there"
                )));
            }
            let expected = e.beside.as_ref().map_or(0, |b| b.columns.len());
            if values.len() != expected {
                let found = values.len();
                return Err(bad(format!(
                    "beside: {study}, {startup}: found {found} values, expected {expected}"
                )));
            }
        }
        for cell in cells.iter().filter(|c| c.cloud.is_none()) {
            cell.study(0).map_err(|why| Bad::Study(e.id.clone(), cell.study.clone(), Box::new(why)))?;
        }
        Ok(e)
    }

    /// The studies in which a claim must hold.
    pub fn studies_of(&self, c: &Claim, cells: &[Cell]) -> Vec<String> {
        if !c.studies.is_empty() {
            return c.studies.clone();
        }
        let mut all: Vec<String> = cells.iter().map(|c| c.study.clone()).collect();
        all.dedup();
        all
    }

    /// Every startup of every study, with its runs.
    pub fn cells(&self, seed: u64, full: bool) -> Result<Vec<Cell>, Bad> {
        let mut all = Vec::new();
        for runs in &self.study {
            let none = [BTreeMap::new()];
            let over = if runs.over.is_empty() { &none[..] } else { &runs.over };
            for values in over {
                let mut path = runs.path.clone();
                for (key, value) in values {
                    path = path.replace(&format!("{{{key}}}"), value);
                }
                for startup in &runs.startups {
                    let text = StudyText {
                        path: path.clone(),
                        startups: vec![startup.clone()],
                        avoidance: runs.avoidance.clone(),
                        size: runs.size.clone(),
                        duration: runs.duration.clone(),
                        profile: runs.profile.clone(),
                        set: runs.set.clone(),
                        app: runs.app.clone(),
                        against: runs.against.iter().map(|a| a.replace("{startup}", startup)).collect(),
                        runs: None,
                        seed: Some(seed),
                        remember: None,
                    };
                    all.push(Cell {
                        study: values.get("name").unwrap_or(&runs.name).clone(),
                        label: startup.clone(),
                        runs: runs.full.filter(|_| full).unwrap_or(runs.runs),
                        offline: if *startup == runs.startups[0] { runs.offline.clone() } else { Vec::new() },
                        charts: runs.charts.clone(),
                        each_ack: runs.each_ack,
                        acks: runs.acks,
                        background: runs.background.clone(),
                        text,
                        draw: runs.draw.clone(),
                        cloud: None,
                    });
                }
            }
        }
        for cloud in &self.cloud {
            let profile = Profile::named(&cloud.profile).ok_or_else(|| {
                let why = format!(
                    "cloud {}: profile: found {:?}, expected one of `list profiles`",
                    cloud.name, cloud.profile
                );
                Bad::Text(self.file.clone(), why)
            })?;
            for startup in &cloud.startups {
                all.push(Cell {
                    study: cloud.name.clone(),
                    label: startup.clone(),
                    runs: if full { 1 } else { cloud.runs },
                    offline: Vec::new(),
                    charts: Vec::new(),
                    each_ack: false,
                    acks: false,
                    background: None,
                    text: StudyText { seed: Some(seed), ..StudyText::default() },
                    draw: BTreeMap::new(),
                    cloud: Some((cloud.web.clone(), profile, full)),
                });
            }
        }
        Ok(all)
    }

    /// All experiments, in the order of the catalogue.
    pub fn all() -> &'static [Self] {
        static LIST: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
            let read = |(id, text): &(&str, &str)| {
                Experiment::read(id, text).unwrap_or_else(|e| panic!("a test reads every one: {e}"))
            };
            ALL.iter().map(read).collect()
        });
        &LIST
    }

    /// Those of these names; a paper's name is all of its experiments, and what ends in `.toml` a file.
    pub fn named(ids: &[String]) -> Result<Vec<Cow<'static, Self>>, Bad> {
        let mut found = Vec::new();
        for id in ids {
            if Path::new(id).extension().is_some_and(|e| e == "toml") {
                found.push(Cow::Owned(Self::load(id)?));
                continue;
            }
            let before = found.len();
            let paper = format!("{id}/");
            let these = Self::all().iter().filter(|e| e.id == *id || e.id.starts_with(&paper));
            found.extend(these.map(Cow::Borrowed));
            if found.len() == before {
                let names: Vec<&str> = Self::all().iter().map(|e| e.id.as_str()).collect();
                return Err(Bad::Unknown(id.clone(), names.join(", ")));
            }
        }
        Ok(found)
    }
}

macro_rules! texts {
    ($($id:literal),* $(,)?) => {
        &[$(($id, include_str!(concat!("../../../scenarios/papers/", $id, ".toml")))),*]
    };
}

/// The experiments that come with the program, and their files.
pub const ALL: &[(&str, &str)] = texts!(
    "ess/fig2",
    "ess/table1",
    "ess/fig5",
    "ess/fig6",
    "ess/fig7",
    "ess/fig8",
    "ess/buffers",
    "ess/jitter",
    "hystart/fig1",
    "hystart/recovery",
    "hystart/fig2",
    "hystart/fig3",
    "hystart/fig4",
    "hystart/fig5",
    "hystart/limited",
    "rss/r1",
    "rss/ziegler-nichols",
    "rss/modern",
    "rss/queue",
    "search/closed-form",
    "search/bins",
    "search/sensitivity",
    "search/geo",
    "search/leo",
    "search/lte",
    "search/wifi-strong",
    "search/wifi-weak",
    "search/campus",
    "search/application",
    "search/few-bins",
    "search/fast-links",
    "tsl/load-40",
    "tsl/load-90",
    "tsl/load-98",
    "tsl/mix",
    "tsl/feedback",
);
