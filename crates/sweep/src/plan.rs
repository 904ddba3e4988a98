//! The runs of a sweep: a study, axes over its keys, and perhaps points drawn at random.

use crate::axes::{AVOIDANCE, Axis, Draws, DrawsText, Law, STUDY_KEYS, Target, different, written};
use crate::region::{Contender, Region, Seen, Side};
use crate::row::SweepRow;
use hmac_sha256::Hash as Sha256;
use serde_json::json;
use slowstart_study::axis::{self, AxisError};
use slowstart_study::columns::{Column, Kind, columns};
use slowstart_study::engines::{Engine, EngineError, Watched};
use slowstart_study::record::{GOLDEN_ROWS, ROW_SCHEMA, Row};
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText, own_settings};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range as Part;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The most runs of a sweep.
const MOST_RUNS: usize = 20_000_000;
/// A sweep is divided into about so many chunks, each of which becomes a part of the store.
const CHUNKS: usize = 256;
/// The least and the most runs of a chunk.
const CHUNK: (usize, usize) = (8, 4096);
/// The most values of an axis, and the most drawn points, that are checked before the first run.
const CHECKED: usize = 1000;

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

/// A sweep. Its runs are counted, and each has an index; their keys and studies are made when they are asked for,
/// so that a shard of a large sweep costs no more than its own runs.
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
    region: Region,
    /// Runs of a chunk.
    pub chunk: usize,
    /// The hash of all that decides its rows, in hexadecimal: the name of the sweep in a store.
    pub id: String,
}

/// The version of the results: that of this crate, and a digest of the golden rows, which change with the
/// engine.
pub fn results_version() -> String {
    let digest = Sha256::hash(GOLDEN_ROWS.as_bytes());
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

impl Plan {
    /// Reads a sweep from a file; files that it names are relative to its folder. `engine` goes before the
    /// key `engine`.
    ///
    /// # Errors
    /// What was found and expected, and where.
    pub fn load(file: &Path, engine: Option<&str>) -> Result<Self, PlanError> {
        Self::load_for(file, |base| slowstart_engines::of(engine, base))
    }

    /// [`Self::load`] for the engine that `engine` makes of the study as it is written, which it may change.
    ///
    /// # Errors
    /// What was found and expected, and where.
    pub fn load_for(
        file: &Path,
        engine: impl FnOnce(&mut StudyText) -> Result<Box<dyn Engine>, EngineError>,
    ) -> Result<Self, PlanError> {
        let failed = |why: String| PlanError::File { file: file.display().to_string(), why };
        let text = slowstart_files::read_text(file, slowstart_files::MOST_TEXT)
            .map_err(|e| failed(e.to_string()))?;
        Self::read_for(&text, file.parent(), engine).map_err(|e| match e {
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
        Self::read_for(text, root, |base| slowstart_engines::of(engine, base))
    }

    /// [`Self::read`] for the engine that `engine` makes of the study as it is written, which it may change.
    ///
    /// # Errors
    /// What was found and expected.
    pub fn read_for(
        text: &str,
        root: Option<&Path>,
        engine: impl FnOnce(&mut StudyText) -> Result<Box<dyn Engine>, EngineError>,
    ) -> Result<Self, PlanError> {
        let other = |e: toml::de::Error| PlanError::Other(e.to_string().trim_end().to_string());
        let mut table: toml::Table = text.parse().map_err(other)?;
        let given: BTreeMap<String, toml::Value> =
            table.remove("axes").map(|a| a.try_into().map_err(other)).transpose()?.unwrap_or_default();
        // An axis of paths needs no other path.
        if let Some(paths) = given.get("path").filter(|_| !table.contains_key("path")) {
            table.extend(
                written("path", paths)?.into_iter().next().map(|first| ("path".into(), first.into())),
            );
        }
        let draws = table.remove("draws").map(|d| d.try_into::<DrawsText>().map_err(other)).transpose()?;
        let mut base: StudyText = table.try_into().map_err(other)?;
        if let Some(startup) = base.startups.iter().find(|s| own_settings(s).1.is_some()) {
            return Err(PlanError::Other(format!(
                "startups: found {startup:?}, expected startups without settings of their own: they are an axis, as \"set.iw\" = \"10,20\""
            )));
        }
        let axes = given
            .iter()
            .map(|(name, value)| {
                let target = Target::of(name)?;
                let values = different(&target, written(name, value)?);
                Ok(Axis { name: name.clone(), target, values })
            })
            .collect::<Result<Vec<_>, PlanError>>()?;
        let draws = draws.map(|d| Draws::read(&d, &axes)).transpose()?;
        let mut plan = Self {
            text: text.to_string(),
            engine: engine(&mut base)?,
            base,
            root: root.map(Path::to_path_buf),
            axes,
            draws,
            region: Region::default(),
            chunk: 0,
            id: String::new(),
        };
        plan.count()?;
        plan.id = plan.check()?;
        Ok(plan)
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
        if let Some(draws) = &self.draws {
            for (d, (name, target, law)) in draws.axes.iter().enumerate() {
                all.push((name.as_str(), target, law.at(draws.share(rest as u32, d as u32))));
            }
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
        let avoidance = at.iter().find(|(_, t, _)| **t == AVOIDANCE).map(|(_, _, value)| value.as_str());
        text.startups = self.startups(avoidance);
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

    /// The startups as written, or all that an engine has with this avoidance.
    fn startups(&self, avoidance: Option<&str>) -> Vec<String> {
        if self.base.startups.is_empty() {
            self.engine.startups(avoidance.or(self.base.avoidance.as_deref()).unwrap_or("cubic"))
        } else {
            self.base.startups.clone()
        }
    }

    /// Counts the runs. Those whose startup, and all that it sees, are written in the same way occur once.
    fn count(&mut self) -> Result<(), PlanError> {
        let runs = *self.base.runs.get_or_insert(1);
        let none = self.base.startups.is_empty();
        let sides: Vec<Side> = self
            .axes
            .iter()
            .map(|a| {
                let seen = match &a.target {
                    Target::Param { .. } => Seen::Some,
                    target if none && *target == AVOIDANCE => Seen::Decides,
                    _ => Seen::All,
                };
                Side { values: a.values.len(), seen }
            })
            .collect();
        let decides = self.axes.iter().zip(&sides).find(|(_, s)| s.seen == Seen::Decides).map(|(a, _)| a);
        let drawn_decides = self.draws.iter().flat_map(|d| &d.axes).position(|a| none && a.1 == AVOIDANCE);
        // The drawn values that a startup has had, by what it sees of them.
        let mut had: BTreeMap<Vec<bool>, BTreeSet<Vec<String>>> = BTreeMap::new();
        let points = self.draws.as_ref().map_or(1, |d| d.points as usize);
        let mut drawn_of = usize::MAX;
        let (mut drawn, mut fresh) = (Vec::new(), BTreeMap::new());
        let cast = |point: usize, decided: usize| {
            if point != drawn_of {
                drawn_of = point;
                drawn = self.draws.as_ref().map_or_else(Vec::new, |d| d.at(point as u32));
                fresh.clear();
            }
            let avoidance = drawn_decides
                .map(|i| drawn[i].as_str())
                .or_else(|| decides.map(|a| a.values[decided].as_str()));
            let startups = self.startups(avoidance);
            let first = |i: usize| !startups[..i].contains(&startups[i]);
            let all = (0..startups.len()).filter(|i| first(*i)).filter_map(|i| {
                let name = startups[i].split(':').next().unwrap_or_default();
                let sees = |t: &Target| !matches!(t, Target::Param { startup, .. } if startup != name);
                let seen: Vec<bool> =
                    self.draws.iter().flat_map(|d| &d.axes).map(|(_, t, _)| sees(t)).collect();
                let is_fresh = *fresh.entry(seen).or_insert_with_key(|seen| {
                    let values = drawn.iter().zip(seen).filter(|(_, seen)| **seen);
                    let values = values.map(|(value, _)| value.clone()).collect();
                    had.entry(seen.clone()).or_default().insert(values)
                });
                let axes = self.axes.iter().enumerate();
                let own = axes.filter(|(_, a)| matches!(a.target, Target::Param { .. }) && sees(&a.target));
                is_fresh.then(|| Contender { index: i as u32, own: own.map(|(i, _)| i).collect() })
            });
            all.collect()
        };
        let region = Region::new(sides, points, runs, cast);
        if region.len > MOST_RUNS || u32::try_from(region.points(points)).is_err() {
            return Err(PlanError::Other(format!(
                "found {} runs or more, expected at most {MOST_RUNS}: divide the sweep",
                region.len
            )));
        }
        self.chunk = (region.len / CHUNKS).clamp(CHUNK.0, CHUNK.1);
        self.region = region;
        Ok(())
    }

    /// Checks the first and the last point, each value of each axis with the first values of the others, and the
    /// drawn points; about [`CHECKED`] of each where there are more. Returns the name of the sweep.
    fn check(&self) -> Result<String, PlanError> {
        let mut hash = Sha256::new();
        // What a value names, such as a file, is in the keys.
        let mut add = |point: usize, hashed: bool| {
            let study = self.study(point as u32)?;
            if hashed {
                self.digests(&study).iter().for_each(|d| hash.update(d));
            }
            Ok::<_, PlanError>(())
        };
        let grid: usize = self.axes.iter().map(|a| a.values.len()).product();
        let drawn = self.draws.as_ref().map_or(1, |d| d.points as usize);
        add(0, true)?;
        add(grid * drawn - 1, true)?;
        let mut stride = grid;
        for axis in &self.axes {
            stride /= axis.values.len();
            let every = axis.values.len().div_ceil(CHECKED);
            for (i, value) in axis.values.iter().enumerate() {
                let is_text = axis::value(value).is_none();
                if i % every == 0 || is_text {
                    add(i * stride, is_text)?;
                }
            }
        }
        for i in (0..drawn).step_by(drawn.div_ceil(CHECKED)) {
            add(i * grid, false)?;
        }
        if let Some(draws) = &self.draws {
            for (d, (_, _, law)) in draws.axes.iter().enumerate() {
                // A list may be of files.
                let mut seen = BTreeSet::new();
                for point in 0..draws.points {
                    if let Law::List(list) = law
                        && seen.len() < list.len()
                        && seen.insert(law.at(draws.share(point, d as u32)))
                    {
                        add(point as usize * grid, true)?;
                    }
                }
            }
        }
        // The names of the axes are columns.
        for Axis { name, values, .. } in &self.axes {
            hash.update(format!("\n{name}={values:?}"));
        }
        hash.update(format!("\n{:?} {:?}", self.base.runs, self.draws));
        Ok(hex(&hash.finalize()[..6]))
    }

    /// The hash of everything that decides the rows of each startup of a study, but the number of the run.
    fn digests(&self, study: &Study) -> Vec<[u8; 32]> {
        // The simulator's keys are those of before there were others.
        let engine = Some(self.engine.name()).filter(|name| *name != slowstart_study::measured::SIMULATOR);
        let version = engine.map_or_else(results_version, |name| format!("{}\n{name}", results_version()));
        // The number of runs and the other startups do not decide what a run gives.
        let mut alone = Study { runs: 0, ..study.clone() };
        let digest = |c: &slowstart_study::scenario::Contender| {
            alone.contenders = vec![c.clone()];
            Sha256::hash(format!("{version}\n{alone:?}").as_bytes())
        };
        study.contenders.iter().map(digest).collect()
    }

    /// The number of runs.
    #[allow(clippy::len_without_is_empty, reason = "a sweep has a run at least")]
    pub fn len(&self) -> usize {
        self.region.len
    }

    /// The runs of these indices, with the study of each point.
    pub fn points(&self, part: Part<usize>) -> impl Iterator<Item = Result<(Study, Vec<Run>), PlanError>> {
        self.region.pieces(part).map(|places| {
            let study = self.study(places[0].point as u32)?;
            let digests = self.digests(&study);
            let run = |p: crate::region::Place| {
                let digest = digests[p.contender as usize];
                let mut key = Sha256::new();
                key.update(digest);
                key.update(p.run.to_le_bytes());
                let key = u128::from_be_bytes(key.finalize()[..16].try_into().expect("sixteen bytes"));
                Run { point: p.point as u32, contender: p.contender, run: p.run, key }
            };
            let runs = places.into_iter().map(run).collect();
            Ok((study, runs))
        })
    }

    /// The runs of these indices.
    ///
    /// # Errors
    /// If the values of the axes give no valid study.
    pub fn runs(&self, part: Part<usize>) -> Result<Vec<Run>, PlanError> {
        Ok(self.points(part).map(|p| p.map(|(_, runs)| runs)).collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The names of the axes, those of the grid first.
    pub fn names(&self) -> Vec<String> {
        let drawn = self.draws.iter().flat_map(|d| d.axes.iter().map(|(name, _, _)| name.clone()));
        self.axes.iter().map(|a| a.name.clone()).chain(drawn).collect()
    }

    /// The number of chunks.
    pub fn chunks(&self) -> usize {
        self.len().div_ceil(self.chunk)
    }

    /// The indices of the runs of a chunk.
    pub fn part(&self, chunk: usize) -> Part<usize> {
        let from = chunk * self.chunk;
        from..(from + self.chunk).min(self.len())
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
        // Whichever program computes a row, a store has the same bytes.
        let row = Row { commit: None, ..outcome.row };
        let line = SweepRow { key: format!("{:032x}", run.key), axis: axes, row };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_paths_needs_no_other_path() {
        let text = "startups = [\"search\"]\nsize = \"10kB\"\n";
        let axes = "[axes]\npath = [\"leo\", \"geo\"]\n";
        let runs = |text: &str| Plan::read(text, None, None).map(|p| p.len());
        assert_eq!(runs(&format!("{text}{axes}")).ok(), runs(&format!("path = \"geo\"\n{text}{axes}")).ok());
        assert_eq!(runs(&format!("{text}{axes}")).ok(), Some(2));
        assert!(runs(text).is_err());
    }
}
