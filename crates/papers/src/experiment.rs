//! An experiment as its file defines it: its place in the paper, the runs, and the claims.
//!
//! Files are `scenarios/papers/<paper>/<name>.toml`; [`catalogue`](crate::catalogue) lists them.

use crate::background::{Background, stated_jitter};
use crate::catalogue::ALL;
use crate::claim::{Cause, Claim, Origin, Verdict};
use crate::measure::Measure;
use crate::result::ChartKind;
use crate::statistic::Statistic;
use crate::web::{self, Arrivals, Web, WebResult};
use serde::Deserialize;
use slowstart_sim::random::Stream;
use slowstart_sim::suggest::did_you_mean;
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::engines::{Engine, EngineError};
use slowstart_study::scenario::{Study, StudyError, StudyText};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use thiserror::Error;

/// An error in an experiment's name or file.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// No experiment has this name.
    #[error(
        "experiment: found {0:?}{1}, expected a paper, an experiment of `slowstart reproduce --list`, or a file such as my.toml"
    )]
    Unknown(String, String),
    /// The file cannot be read.
    #[error("{0}: {1}")]
    Text(String, String),
    /// A study of the experiment has an error.
    #[error("{0}: study {1}: {2}")]
    Study(String, String, #[source] Box<StudyError>),
    /// An engine does not run a study.
    #[error("{0}: study {1}: {2}")]
    Engine(String, String, #[source] Box<EngineError>),
}

/// A column of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The heading of the column.
    pub name: String,
    /// The measure of each run.
    pub measure: Measure,
    /// The statistic over the runs.
    #[serde(default)]
    pub take: Statistic,
}

/// Values measured by another simulator, printed beside ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The source: which program, with which configuration, and the differences from ours.
    pub source: String,
    /// The columns in their order.
    pub columns: Vec<Column>,
    /// Study, startup, and one value for each column.
    pub rows: Vec<(String, String, Vec<f64>)>,
}

/// Runs over one path, or over one path for each entry of `over`. In a file the keys of [`StudyText`] and
/// those below stand side by side.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct StudyRuns {
    /// The study itself. In its path `{key}` is replaced by the value that `over` gives; in `against`,
    /// `{startup}` is replaced by the startup studied.
    pub text: StudyText,
    /// The keys that only experiments have.
    pub more: StudyOptions,
}

/// Keys of a study that only experiments have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyOptions {
    /// The name by which claims refer to the study.
    pub name: String,
    /// One study for each entry, with these values for the keys of the path; `name` is its name.
    #[serde(default)]
    pub over: Vec<BTreeMap<String, String>>,
    /// Startups that are evaluated offline, over the ACKs of the first startup's runs.
    #[serde(default)]
    pub offline: Vec<String>,
    /// Flows that run beside the one studied; `None` for none.
    pub background: Option<Background>,
    /// Number of runs with `--full`.
    pub full: Option<u32>,
    /// The charts that the page draws of it.
    #[serde(default)]
    pub charts: Vec<ChartKind>,
    /// True if a sample is taken at each ACK instead of at the common interval.
    #[serde(default)]
    pub each_ack: bool,
    /// True if the ACKs are kept, for measures over bins. Such a study has no offline startups.
    #[serde(default)]
    pub acks: bool,
}

impl TryFrom<toml::Table> for StudyRuns {
    type Error = toml::de::Error;
    fn try_from(all: toml::Table) -> Result<Self, Self::Error> {
        const OPTIONS: [&str; 8] =
            ["name", "over", "offline", "background", "full", "charts", "each_ack", "acks"];
        let (more, text): (toml::Table, toml::Table) =
            all.into_iter().partition(|(key, _)| OPTIONS.contains(&key.as_str()));
        Ok(Self { text: text.try_into()?, more: more.try_into()? })
    }
}

/// Runs of web clients that share a bottleneck.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cloud {
    /// The name by which claims refer to the study.
    pub name: String,
    /// The startups, each in runs of its own.
    pub startups: Vec<String>,
    /// The stack of both ends.
    pub profile: String,
    /// The number of runs of each startup.
    pub runs: u32,
    /// The clients and the bottleneck.
    pub web: Web,
}

/// The label of a startup that is evaluated offline.
pub fn offline_label(startup: &str) -> String {
    format!("offline {startup}")
}

/// An experiment of a paper: its studies, and what is claimed of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// `paper/name`, or the file's name without its extension.
    #[serde(skip)]
    pub id: String,
    /// The file that it was read from.
    #[serde(skip)]
    pub file: String,
    /// Title of its page.
    pub title: String,
    /// Figure, table or section of the paper.
    pub figure: String,
    /// Rows of the catalogue that it covers.
    pub covers: Vec<String>,
    /// What it shows, in one paragraph.
    pub about: String,
    /// Values that the paper does not give, and those that we chose.
    #[serde(default)]
    pub ours: Vec<String>,
    /// True if it is short enough to run in every test.
    #[serde(default)]
    pub quick: bool,
    /// Additional columns of the table of runs.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// Values measured by another simulator.
    pub beside: Option<Comparison>,
    /// The studies that it runs.
    #[serde(default)]
    pub study: Vec<StudyRuns>,
    /// Studies of web clients.
    #[serde(default)]
    pub cloud: Vec<Cloud>,
    /// The claims that are judged.
    pub claim: Vec<Claim>,
}

/// An engine, and a study as it reads it.
pub type Elsewhere = (Box<dyn Engine>, Study);

/// One startup in one study.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The name of the study that it is of.
    pub study: String,
    /// The startup as the file writes it.
    pub label: String,
    /// The number of runs of each startup.
    pub runs: u32,
    /// Startups that are evaluated offline.
    pub offline: Vec<String>,
    /// The charts that the page draws of it.
    pub charts: Vec<ChartKind>,
    /// True if a sample is taken at each ACK.
    pub each_ack: bool,
    /// True if the ACKs are kept.
    pub acks: bool,
    /// Flows that run beside the one studied; `None` for none.
    pub background: Option<Background>,
    /// The study as the file writes it, with this startup alone.
    pub text: StudyText,
    /// The web clients, their stack and their number; `None` for an ordinary study.
    pub(crate) cloud: Option<(Web, Profile, u64)>,
}

impl Cell {
    /// The mean number of web clients a second; `None` if the cell is an ordinary study.
    pub(crate) fn connection_rate(&self) -> Option<Result<f64, StudyError>> {
        self.cloud.as_ref().map(|(web, profile, _)| web.connection_rate(profile))
    }

    /// True if both are the same web clients, which arrive at the same times.
    pub(crate) fn shares_arrivals(&self, other: &Self) -> bool {
        let (Some(one), Some(two)) = (&self.cloud, &other.cloud) else { return false };
        self.study == other.study && (&one.0, one.1.mss, one.2) == (&two.0, two.1.mss, two.2)
    }

    /// The seed of a run of web clients.
    fn cloud_seed(&self, run: u32) -> u64 {
        Stream::named(self.text.seed.unwrap_or(1), &format!("{}.cloud.{run}", self.study)).any()
    }

    /// The web clients of a run, at `rate` a second.
    pub(crate) fn arrivals(&self, rate: f64, run: u32) -> Arrivals {
        let counted = self.cloud.as_ref().map_or(0, |(_, _, connections)| *connections);
        Arrivals::new(rate, counted, self.cloud_seed(run))
    }

    /// The result of a run of these web clients; `None` if the cell is an ordinary study.
    pub(crate) fn cloud(&self, arrivals: &Arrivals, run: u32) -> Option<Result<WebResult, StudyError>> {
        let (web, profile, _) = self.cloud.as_ref()?;
        Some(web::run(web, &self.label, profile, arrivals, self.cloud_seed(run)))
    }

    /// The study, in which each run draws its path if the path is an ensemble. For a cell that the simulator
    /// runs. A flow beside the one studied that has its startup has its avoidance too: the figures of the
    /// papers show flows of one kind.
    pub fn study(&self) -> Result<Study, StudyError> {
        let mut study = Study::check(&self.text, None)?;
        let studied = &study.contenders[0];
        for other in study.against.iter_mut().filter(|other| other.contender.label == studied.label) {
            other.contender = studied.clone();
        }
        Ok(study)
    }

    /// The engine that runs it, with the study as that reads it; `None` if it is the simulator.
    pub fn elsewhere(&self) -> Option<Result<Elsewhere, EngineError>> {
        let name = self.text.engine.as_ref()?;
        Some(slowstart_engines::named(name).and_then(|engine| {
            let study = engine.study(&self.text, None)?;
            Ok((engine, study))
        }))
    }

    /// Why this program lacks the engine of the cell; `None` if it has it.
    fn absence(&self) -> Option<&'static str> {
        self.text.engine.as_deref().and_then(slowstart_engines::absence)
    }
}

impl Experiment {
    /// Reads a built-in experiment. The id is `paper/name`.
    pub fn read(id: &str, text: &str) -> Result<Self, ExperimentError> {
        Self::parse(&format!("scenarios/papers/{id}.toml"), id, text)
    }

    /// Reads an experiment from a file.
    pub fn load(file: &str) -> Result<Self, ExperimentError> {
        let text = slowstart_files::read_text(Path::new(file), slowstart_files::MOST_TEXT)
            .map_err(|e| ExperimentError::Text(file.to_string(), e.to_string()))?;
        let name = Path::new(file).file_stem().map_or("".into(), |n| n.to_string_lossy());
        Self::parse(file, &name, &text)
    }

    fn parse(file: &str, id: &str, text: &str) -> Result<Self, ExperimentError> {
        let bad = |why: String| ExperimentError::Text(file.to_string(), why);
        let mut e: Self = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        (e.id, e.file) = (id.to_string(), file.to_string());
        let cells = e.cells(1, false)?;
        let mut seen = std::collections::BTreeSet::new();
        for c in &mut e.claim {
            let bad = |why: &str| bad(format!("claim {:?}: {why}", c.id));
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            if c.id.is_empty() || !c.id.bytes().all(plain) || !seen.insert(c.id.clone()) {
                return Err(bad("id: expected a name of its own, of a to z, 0 to 9 and hyphens"));
            }
            if (c.origin == Origin::Paper && c.verdict != Verdict::Holds) != c.cause.is_some() {
                return Err(bad(
                    "cause: expected for a claim of the paper that does not hold, and only there",
                ));
            }
            if c.verdict == Verdict::NotStated && c.unknown.is_some() && c.cause == Some(Cause::Paper) {
                return Err(bad("cause: expected \"network\" or \"ours\": what is not known decides"));
            }
            if let Some(printed) = &c.printed {
                if c.at_least.is_some() || c.at_most.is_some() {
                    return Err(bad("printed: expected without at_least and at_most"));
                }
                if printed.is_of_runs() && c.take != Statistic::Mean {
                    return Err(bad(
                        "printed: expected `runs` only with the mean; `take = \"highest\"` has a sample of its own",
                    ));
                }
                if printed.loses_digits(&c.claimed) {
                    return Err(bad(&format!("printed: expected the digits of {:?}", c.claimed)));
                }
                let (low, high) = printed.bound(c.take).ok_or_else(|| bad("printed: expected a number"))?;
                (c.at_least, c.at_most) = (Some(low), Some(high));
            }
            if c.permits_none() {
                return Err(bad(&format!(
                    "claimed {:?}: expected a bound that excludes no effect",
                    c.claimed
                )));
            }
            if (c.take == Statistic::Highest) != c.sample.is_some_and(|n| n >= 1.0) {
                return Err(bad("sample: expected 1 or more, and with the take \"highest\" only"));
            }
            let is_share = matches!(c.take, Statistic::Share | Statistic::Within);
            if is_share && (c.at_least.is_some_and(|v| v < 0.0) || c.at_most.is_some_and(|v| v > 100.0)) {
                return Err(bad("expected a bound of a share within 0 and 100"));
            }
        }
        for c in &e.claim {
            let bad = |why: &str| bad(format!("claim {:?}: {why}", c.id));
            if c.measure.is_none() != (c.verdict == Verdict::NotCheckable) {
                return Err(bad("expected a measure, or the verdict not-checkable"));
            }
            if c.why.is_empty() && c.verdict != Verdict::Holds {
                return Err(bad("why: expected a reason for a verdict other than holds"));
            }
            for name in c.cited() {
                if !c.figures.contains_key(name) && !["value", "interval"].contains(&name) {
                    return Err(bad(&format!("why: found {{{name}}}, expected it in figures")));
                }
            }
            for (name, figure) in &c.figures {
                if !c.cited().any(|cited| cited == name) {
                    return Err(bad(&format!("figures: found {name:?}, expected {{{name}}} in why")));
                }
                e.check_quantity(&c.with(figure), &cells).map_err(|why| bad(&why))?;
            }
            if c.measure.is_some() {
                if (c.at_least.is_none() && c.at_most.is_none()) != c.grows {
                    return Err(bad("expected at_least or at_most, or grows"));
                }
                e.check_quantity(c, &cells).map_err(|why| bad(&why))?;
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
        for cell in cells.iter().filter(|c| c.cloud.is_none() && c.absence().is_none()) {
            match cell.elsewhere() {
                Some(read) => {
                    let observes = !cell.acks && cell.offline.is_empty() && cell.background.is_none();
                    if !observes {
                        return Err(bad(format!(
                            "study {}: engine: expected none where ACKs are kept or flows are added",
                            cell.study
                        )));
                    }
                    read.map_err(|why| e.refused(cell, why))?;
                }
                None => {
                    cell.study().map_err(|why| e.wrong(cell, why))?;
                }
            }
        }
        Ok(e)
    }

    /// The error of a study that is wrong.
    pub(crate) fn wrong(&self, cell: &Cell, why: StudyError) -> ExperimentError {
        ExperimentError::Study(self.id.clone(), cell.study.clone(), Box::new(why))
    }

    /// The error of a study that its engine does not run.
    pub(crate) fn refused(&self, cell: &Cell, why: EngineError) -> ExperimentError {
        ExperimentError::Engine(self.id.clone(), cell.study.clone(), Box::new(why))
    }

    /// Why this program cannot run the experiment: it is built without an engine. `None` if it can.
    pub fn absence(&self) -> Option<&'static str> {
        self.cells(1, false).ok()?.iter().find_map(Cell::absence)
    }

    /// Checks that the studies and startups of a claim, or of a figure, are run.
    fn check_quantity(&self, c: &Claim, cells: &[Cell]) -> Result<(), String> {
        if c.measure.is_none_or(|m| m.is_formula()) {
            return Ok(());
        }
        if c.of.is_empty() {
            return Err("of: expected a startup of a study".into());
        }
        let is_run = |study: &str, of: &str| {
            let runs = |cell: &Cell| {
                cell.study == study
                    && (cell.label == of || cell.offline.iter().any(|o| offline_label(o) == of))
            };
            let found = cells.iter().any(runs);
            found.then_some(()).ok_or_else(|| format!("found {of:?} in {study:?}, expected it there"))
        };
        for study in self.studies_of(c, cells) {
            for of in &c.of {
                is_run(&study, of)?;
                let other = c.versus.as_ref().or(c.less.as_ref());
                if other.is_some() || c.versus_study.is_some() {
                    is_run(&c.study_of_other(&study), other.unwrap_or(of))?;
                }
            }
        }
        Ok(())
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

    /// Every startup of every study.
    pub fn cells(&self, seed: u64, full: bool) -> Result<Vec<Cell>, ExperimentError> {
        let mut all = Vec::new();
        for StudyRuns { text, more } in &self.study {
            let none = [BTreeMap::new()];
            let over = if more.over.is_empty() { &none[..] } else { &more.over };
            let runs = text.runs.unwrap_or(1);
            for values in over {
                let mut path = text.path.clone();
                for (key, value) in values {
                    path = path.replace(&format!("{{{key}}}"), value);
                }
                path = stated_jitter(path);
                for (i, startup) in text.startups.iter().enumerate() {
                    let text = StudyText {
                        path: path.clone(),
                        startups: vec![startup.clone()],
                        against: text.against.iter().map(|a| a.replace("{startup}", startup)).collect(),
                        runs: None,
                        seed: Some(seed),
                        ..text.clone()
                    };
                    all.push(Cell {
                        study: values.get("name").unwrap_or(&more.name).clone(),
                        label: startup.clone(),
                        runs: more.full.filter(|_| full).unwrap_or(runs),
                        offline: if i == 0 { more.offline.clone() } else { Vec::new() },
                        charts: more.charts.clone(),
                        each_ack: more.each_ack,
                        acks: more.acks,
                        background: more.background.clone(),
                        text,
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
                ExperimentError::Text(self.file.clone(), why)
            })?;
            let connections = if full { cloud.web.full } else { cloud.web.connections };
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
                    cloud: Some((cloud.web.clone(), profile, connections)),
                });
            }
        }
        Ok(all)
    }

    /// All experiments, in the order of the catalogue.
    pub fn all() -> &'static [Self] {
        static LIST: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
            let read = |(id, text): &(&str, &str)| {
                Experiment::read(id, text).unwrap_or_else(|e| panic!("built-in experiment: {e}"))
            };
            ALL.iter().map(read).collect()
        });
        &LIST
    }

    /// The experiments of these names. A paper's name stands for all of its experiments; a name that ends in
    /// `.toml` is a file.
    pub fn named(ids: &[String]) -> Result<Vec<Cow<'static, Self>>, ExperimentError> {
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
                let ids = Self::all().iter().map(|e| e.id.as_str());
                // The papers too, of which an experiment has the name before the slash.
                let names: Vec<&str> = ids.flat_map(|id| [id, id.split('/').next().unwrap_or(id)]).collect();
                return Err(ExperimentError::Unknown(id.clone(), did_you_mean(id, &names)));
            }
        }
        Ok(found)
    }
}
