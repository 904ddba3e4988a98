//! The runs of a sweep: a study, axes over its keys, and perhaps points drawn at random.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use slowstart::registry;
use slowstart_sim::path::PATH_KEYS;
use slowstart_sim::random;
use slowstart_sim::suggest::did_you_mean;
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::axis::{self, AxisError, Range};
use slowstart_study::columns::{Column, Kind, columns};
use slowstart_study::engines::{Engine, EngineError, Watched};
use slowstart_study::record::{GOLDEN_ROWS, ROW_SCHEMA};
use slowstart_study::run::{Job, in_order};
use slowstart_study::scenario::{Study, StudyText};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The most runs of a sweep.
const MOST_RUNS: usize = 20_000_000;
/// The most points that are drawn: the sequence of Sobol that is used has no more.
const MOST_POINTS: u32 = 65_536;
/// A sweep is divided into about so many chunks, each of which becomes a part of the store.
const CHUNKS: usize = 256;
/// The least and the most runs of a chunk.
const CHUNK: (usize, usize) = (8, 4096);

/// What is wrong with a sweep.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file cannot be read, or is no TOML.
    #[error("{file}: {why}")]
    File {
        /// Which.
        file: String,
        /// Why.
        why: String,
    },
    /// A list or a range of values is wrong.
    #[error("axis {0}")]
    Axis(#[from] AxisError),
    /// An axis over a key that does not exist.
    #[error("axis {found:?}{hint}: expected a key of a path (slowstart list path-keys), set.KNOB (slowstart list knobs), STARTUP:PARAMETER (slowstart list startups), or one of {}", STUDY_KEYS.join(", "))]
    Key {
        /// The name of the axis.
        found: String,
        /// ` (did you mean "rtt"?)`, or nothing.
        hint: String,
    },
    /// A point of the sweep.
    #[error("at {at}: {why}")]
    Point {
        /// The values of the axes.
        at: String,
        /// Why it is not valid.
        why: Box<EngineError>,
    },
    /// The engine: there is none of this name, or a run failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Anything else, as a sentence.
    #[error("{0}")]
    Other(String),
}

/// The keys of a study that an axis may be over.
const STUDY_KEYS: [&str; 9] =
    ["path", "size", "duration", "profile", "avoidance", "app", "against", "remember", "seed"];

/// What an axis changes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// A key of the path.
    Path(String),
    /// A knob of the stack.
    Set(String),
    /// A parameter of one startup.
    Param { startup: String, key: String },
    /// A key of the study.
    Study(&'static str),
}

impl Target {
    fn of(name: &str) -> Result<Self, PlanError> {
        let unknown = |part: &str, known: &[&str]| PlanError::Key {
            found: name.to_string(),
            hint: did_you_mean(part, known),
        };
        if let Some(key) = STUDY_KEYS.iter().find(|k| **k == name) {
            return Ok(Self::Study(key));
        }
        if let Some(knob) = name.strip_prefix("set.") {
            let known: Vec<&str> = Profile::KNOBS.iter().map(|k| k.name).collect();
            return if known.contains(&knob) {
                Ok(Self::Set(knob.into()))
            } else {
                Err(unknown(knob, &known))
            };
        }
        if let Some((startup, key)) = name.split_once(':') {
            let names: Vec<&str> = registry::all().map(|e| e.name).collect();
            let entry = registry::named(startup).ok_or_else(|| unknown(startup, &names))?;
            let mut keys = Vec::new();
            entry.algorithm.each_param(&mut |k, _| keys.push(k));
            if !keys.contains(&key) {
                return Err(unknown(key, &keys));
            }
            return Ok(Self::Param { startup: startup.into(), key: key.into() });
        }
        let known: Vec<&str> = PATH_KEYS.iter().map(|k| k.name).collect();
        if known.contains(&name) {
            return Ok(Self::Path(name.into()));
        }
        let all: Vec<&str> = known.into_iter().chain(STUDY_KEYS).collect();
        Err(unknown(name, &all))
    }
}

/// An axis of the grid.
#[derive(Clone, Debug)]
struct Axis {
    name: String,
    target: Target,
    values: Vec<String>,
}

/// Where a drawn value comes from.
#[derive(Clone, Debug)]
enum Law {
    Range(Range),
    List(Vec<String>),
}

/// How points are drawn.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Method {
    /// Owen-scrambled Sobol points.
    #[default]
    Sobol,
    /// Independent and uniform.
    Random,
}

/// `[draws]` as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DrawsText {
    points: i64,
    #[serde(default)]
    method: Method,
    #[serde(default)]
    seed: u32,
    axes: BTreeMap<String, toml::Value>,
}

#[derive(Clone, Debug)]
struct Draws {
    points: u32,
    method: Method,
    seed: u32,
    axes: Vec<(String, Target, Law)>,
}

/// A run of a sweep.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which point of the region, from 0.
    pub point: u32,
    /// The index of the startup.
    pub contender: u32,
    /// The run of the study at that point.
    pub run: u32,
    /// The hash of everything that decides its row.
    pub key: u128,
}

/// A checked sweep: all of its runs.
#[derive(Debug)]
pub struct Plan {
    /// The plan as its file has it.
    pub text: String,
    /// The engine that runs every study.
    pub engine: Box<dyn Engine>,
    base: StudyText,
    root: Option<PathBuf>,
    axes: Vec<Axis>,
    draws: Option<Draws>,
    /// The runs: point by point, startup by startup. Runs with the same key occur once.
    pub runs: Vec<Run>,
    /// Runs of a chunk.
    pub chunk: usize,
    /// The hash of all keys, in hexadecimal: the name of the sweep in a store.
    pub id: String,
}

/// The version of the results: that of this crate, and a digest of the golden rows, which change with the
/// engine.
pub fn results_version() -> String {
    let digest = Sha256::digest(GOLDEN_ROWS.as_bytes());
    format!("{}-{}", env!("CARGO_PKG_VERSION"), hex(&digest[..8]))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

/// The values of an axis as written: text with a list or a range, a number, or a list of texts and numbers.
fn written(name: &str, value: &toml::Value) -> Result<Vec<String>, PlanError> {
    let one = |v: &toml::Value| match v {
        toml::Value::String(s) => Some(s.clone()),
        toml::Value::Integer(n) => Some(n.to_string()),
        toml::Value::Float(x) => Some(x.to_string()),
        _ => None,
    };
    let refused = || {
        let expected = "text, a number, or a list of them, with at least one value".to_string();
        AxisError { key: name.into(), found: value.to_string(), expected }
    };
    match value {
        toml::Value::String(text) => Ok(axis::values(name, text)?),
        toml::Value::Array(list) if !list.is_empty() => {
            Ok(list.iter().map(one).collect::<Option<_>>().ok_or_else(refused)?)
        }
        other => Ok(vec![one(other).ok_or_else(refused)?]),
    }
}

impl Plan {
    /// Reads a sweep from a file; files that it names are relative to its folder. `engine` goes before the
    /// key `engine`.
    ///
    /// # Errors
    /// What was found and expected, and where.
    pub fn load(file: &Path, engine: Option<&str>) -> Result<Self, PlanError> {
        let failed = |why: String| PlanError::File { file: file.display().to_string(), why };
        let text = slowstart_files::read_text(file, slowstart_files::MOST_TEXT)
            .map_err(|e| failed(e.to_string()))?;
        Self::read(&text, file.parent(), engine).map_err(|e| match e {
            PlanError::File { .. } => e,
            other => failed(other.to_string()),
        })
    }

    /// Reads a sweep from its text: a study with the tables `axes` and `draws`. `engine` goes before the key
    /// `engine`.
    ///
    /// # Errors
    /// What was found and expected.
    pub fn read(text: &str, root: Option<&Path>, engine: Option<&str>) -> Result<Self, PlanError> {
        let other = |e: toml::de::Error| PlanError::Other(e.to_string().trim_end().to_string());
        let mut table: toml::Table = text.parse().map_err(other)?;
        let given = table.remove("axes");
        let draws = table.remove("draws").map(|d| d.try_into::<DrawsText>().map_err(other)).transpose()?;
        let base: StudyText = table.try_into().map_err(other)?;
        let given: BTreeMap<String, toml::Value> =
            given.map(|a| a.try_into().map_err(other)).transpose()?.unwrap_or_default();
        let axes = given
            .iter()
            .map(|(name, value)| {
                Ok(Axis { name: name.clone(), target: Target::of(name)?, values: written(name, value)? })
            })
            .collect::<Result<Vec<_>, PlanError>>()?;
        let draws = draws.map(|d| Self::draws(&d, &axes)).transpose()?;
        let mut plan = Self {
            text: text.to_string(),
            engine: slowstart_engines::of(engine, &base)?,
            base,
            root: root.map(Path::to_path_buf),
            axes,
            draws,
            runs: Vec::new(),
            chunk: 0,
            id: String::new(),
        };
        plan.enumerate()?;
        Ok(plan)
    }

    fn draws(d: &DrawsText, axes: &[Axis]) -> Result<Draws, PlanError> {
        let points = u32::try_from(d.points).ok().filter(|n| (1..=MOST_POINTS).contains(n));
        let points = points.ok_or_else(|| {
            let expected = format!("expected a number from 1 to {MOST_POINTS}");
            PlanError::Other(format!("draws.points: found {}, {expected}", d.points))
        })?;
        if d.axes.is_empty() {
            return Err(PlanError::Other("draws.axes: found no axis, expected at least one".into()));
        }
        let axes = d
            .axes
            .iter()
            .map(|(name, value)| {
                if axes.iter().any(|a| a.name == *name) {
                    return Err(PlanError::Other(format!(
                        "{name}: found in axes and in draws.axes, expected one"
                    )));
                }
                let law = match value {
                    toml::Value::String(text) if text.contains("..") && !text.contains('/') => {
                        Law::Range(Range::parse(name, text)?)
                    }
                    other => Law::List(written(name, other)?),
                };
                Ok((name.clone(), Target::of(name)?, law))
            })
            .collect::<Result<Vec<_>, PlanError>>()?;
        Ok(Draws { points, method: d.method, seed: d.seed, axes })
    }

    /// The number of points.
    fn points(&self) -> usize {
        let grid = self.axes.iter().map(|a| a.values.len()).fold(1_usize, usize::saturating_mul);
        grid.saturating_mul(self.draws.as_ref().map_or(1, |d| d.points as usize))
    }

    /// The value of each axis at a point: the grid's last axis changes fastest, the drawn points slowest.
    fn at(&self, point: usize) -> Vec<(&str, &Target, String)> {
        let mut rest = point;
        let mut all: Vec<_> = self
            .axes
            .iter()
            .rev()
            .map(|a| {
                let i = rest % a.values.len();
                rest /= a.values.len();
                (a.name.as_str(), &a.target, a.values[i].clone())
            })
            .collect();
        all.reverse();
        for (d, (name, target, law)) in self.draws.iter().flat_map(|d| d.axes.iter().enumerate()) {
            let share = self.draws.as_ref().map_or(0.0, |draws| draws.share(rest as u32, d as u32));
            let value = match law {
                Law::Range(range) => range.at(share),
                Law::List(list) => list[((share * list.len() as f64) as usize).min(list.len() - 1)].clone(),
            };
            all.push((name.as_str(), target, value));
        }
        all
    }

    /// The checked study of a point.
    ///
    /// # Errors
    /// If the values of the axes give no valid study.
    pub fn study(&self, point: u32) -> Result<Study, PlanError> {
        let at = self.at(point as usize);
        let mut text = self.base.clone();
        if text.startups.is_empty() {
            text.startups = self.engine.startups(text.avoidance.as_deref().unwrap_or("cubic"));
        }
        // The path comes first: the keys replace its own.
        if let Some((_, _, path)) = at.iter().find(|(_, t, _)| **t == Target::Study("path")) {
            text.path.clone_from(path);
        }
        for (_, target, value) in &at {
            match target {
                Target::Path(key) => text.path = with_key(&text.path, key, value),
                Target::Set(knob) => {
                    text.set.insert(knob.clone(), value.clone());
                }
                Target::Param { startup, key } => {
                    for written in &mut text.startups {
                        if written.split(':').next() == Some(startup) {
                            let joint = if written.contains(':') { ',' } else { ':' };
                            *written = format!("{written}{joint}{key}={value}");
                        }
                    }
                }
                Target::Study(key) => match *key {
                    "size" => text.size = Some(value.clone()),
                    "duration" => text.duration = Some(value.clone()),
                    "profile" => text.profile = Some(value.clone()),
                    "avoidance" => text.avoidance = Some(value.clone()),
                    "app" => text.app = Some(value.clone()),
                    "remember" => text.remember = Some(value.clone()),
                    "against" if value == "none" => text.against.clear(),
                    "against" => text.against = vec![value.clone()],
                    "seed" => {
                        let seed = value.parse().map_err(|_| AxisError {
                            key: "seed".into(),
                            found: value.clone(),
                            expected: "whole numbers".into(),
                        })?;
                        text.seed = Some(seed);
                    }
                    _ => {}
                },
            }
        }
        self.engine.study(&text, self.root.as_deref()).map_err(|why| {
            let at: Vec<String> = at.iter().map(|(name, _, value)| format!("{name}={value}")).collect();
            let at = if at.is_empty() { "the study".into() } else { at.join(" ") };
            PlanError::Point { at, why: Box::new(why) }
        })
    }

    /// Fills in the runs.
    fn enumerate(&mut self) -> Result<(), PlanError> {
        let points = self.points();
        let runs = self.base.runs.unwrap_or(1) as usize;
        let too_many = |n: usize| {
            PlanError::Other(format!(
                "found {n} runs or more, expected at most {MOST_RUNS}: divide the sweep"
            ))
        };
        if points.saturating_mul(runs) > MOST_RUNS {
            return Err(too_many(points.saturating_mul(runs)));
        }
        self.base.runs.get_or_insert(1);
        // The simulator's keys are those of before there were others.
        let engine = Some(self.engine.name()).filter(|name| *name != slowstart_study::measured::SIMULATOR);
        let version = engine.map_or_else(results_version, |name| format!("{}\n{name}", results_version()));
        let of = |point: usize| -> Result<Vec<Run>, PlanError> {
            let study = self.study(point as u32)?;
            let mut all = Vec::new();
            for (contender, c) in study.contenders.iter().enumerate() {
                // The number of runs and the other startups do not decide what a run gives.
                let alone = Study { contenders: vec![c.clone()], runs: 0, ..study.clone() };
                let digest = Sha256::digest(format!("{version}\n{alone:?}").as_bytes());
                for run in 0..study.runs {
                    let key = Sha256::new().chain_update(digest).chain_update(run.to_le_bytes()).finalize();
                    let key = u128::from_be_bytes(key[..16].try_into().expect("sixteen bytes"));
                    all.push(Run { point: point as u32, contender: contender as u32, run, key });
                }
            }
            Ok(all)
        };
        let mut all: Vec<Vec<Run>> = Vec::with_capacity(points);
        let numbers: Vec<usize> = (0..points).collect();
        in_order(&numbers, of, |runs| {
            all.push(runs?);
            Ok::<_, PlanError>(())
        })?;
        let total: usize = all.iter().map(Vec::len).sum();
        if total > MOST_RUNS {
            return Err(too_many(total));
        }
        let mut seen = BTreeSet::new();
        self.runs = all.into_iter().flatten().filter(|r| seen.insert(r.key)).collect();
        self.chunk = (self.runs.len() / CHUNKS).clamp(CHUNK.0, CHUNK.1);
        let mut hash = Sha256::new();
        self.runs.iter().for_each(|r| hash.update(r.key.to_be_bytes()));
        // The names of the axes are columns.
        self.names().iter().for_each(|n| hash.update(format!("\n{n}")));
        self.id = hex(&hash.finalize()[..6]);
        Ok(())
    }

    /// The names of the axes, those of the grid first.
    pub fn names(&self) -> Vec<String> {
        let drawn = self.draws.iter().flat_map(|d| d.axes.iter().map(|(name, _, _)| name.clone()));
        self.axes.iter().map(|a| a.name.clone()).chain(drawn).collect()
    }

    /// The number of chunks.
    pub fn chunks(&self) -> usize {
        self.runs.len().div_ceil(self.chunk)
    }

    /// The runs of a chunk.
    pub fn chunk_runs(&self, chunk: usize) -> &[Run] {
        let from = chunk * self.chunk;
        &self.runs[from..(from + self.chunk).min(self.runs.len())]
    }

    /// Computes a run of `study`, which is that of its point. Returns its row as JSON on one line, with its
    /// key and the values of the axes. `stop` ends a run on the real clock.
    ///
    /// # Errors
    /// If the run fails.
    pub fn compute(&self, study: &Study, run: &Run, stop: &dyn Fn() -> bool) -> Result<String, EngineError> {
        let job = Job { contender: run.contender as usize, run: run.run };
        let outcome = self.engine.run(study, job, &Watched { stop, ..Watched::ROW })?;
        let startup = &study.contenders[job.contender].startup_name;
        let mut axes = serde_json::Map::new();
        for (name, target, value) in self.at(run.point as usize) {
            if !matches!(target, Target::Param { startup: s, .. } if s != startup) {
                axes.insert(name.to_string(), axis::value(&value).map_or_else(|| json!(value), |x| json!(x)));
            }
        }
        let line = Line { key: format!("{:032x}", run.key), axis: axes, row: &outcome.row };
        Ok(serde_json::to_string(&line).expect("a row is plain data"))
    }

    /// The columns of the parts: the key, the axes, those of rows.
    pub fn columns(&self) -> Vec<Column> {
        let is_number = |name: &str| {
            let texts = self
                .axes
                .iter()
                .filter(|a| a.name == name)
                .all(|a| a.values.iter().all(|v| axis::value(v).is_some()));
            let lists = self.draws.iter().flat_map(|d| &d.axes).filter(|a| a.0 == name).all(|a| match &a.2 {
                Law::Range(_) => true,
                Law::List(list) => list.iter().all(|v| axis::value(v).is_some()),
            });
            texts && lists
        };
        let axes =
            self.names().into_iter().map(|n| (if is_number(&n) { Kind::Number } else { Kind::Text }, n));
        part_columns(axes.map(|(kind, name)| (name, kind)).collect())
    }
}

impl Draws {
    /// The place of a point along a dimension, from 0 to 1.
    fn share(&self, point: u32, dimension: u32) -> f64 {
        match self.method {
            Method::Sobol => f64::from(sobol_burley::sample(point, dimension, self.seed)),
            Method::Random => {
                let stream = u64::from(self.seed) << 32 | u64::from(dimension);
                (random::at(stream, u64::from(point)) >> 11) as f64 / (1_u64 << 53) as f64
            }
        }
    }
}

/// A line of a journal.
#[derive(Serialize)]
struct Line<'a> {
    key: String,
    axis: serde_json::Map<String, Value>,
    #[serde(flatten)]
    row: &'a slowstart_study::record::Row,
}

/// The columns of a part with these axes.
pub(crate) fn part_columns(axes: Vec<(String, Kind)>) -> Vec<Column> {
    let mut all = vec![Column::new("key", Kind::Text, "Hash of everything that decides the row.")];
    all.extend(axes.into_iter().map(|(name, kind)| {
        let about = format!("The value of the axis {name}, in the unit of rows.");
        Column::within("axis", &name, kind, &about)
    }));
    all.extend(columns(ROW_SCHEMA));
    all
}

/// A path with one key set.
fn with_key(path: &str, key: &str, value: &str) -> String {
    let value = if value.contains(char::is_whitespace) { format!("\"{value}\"") } else { value.to_string() };
    let prefix = format!("{key}=");
    let mut quoted = false;
    let kept: Vec<&str> = path
        .split(|c: char| {
            quoted ^= c == '"';
            !quoted && c.is_ascii_whitespace()
        })
        .filter(|w| !w.is_empty() && !w.starts_with(&prefix))
        .collect();
    format!("{} {prefix}{value}", kept.join(" ")).trim_start().to_string()
}
