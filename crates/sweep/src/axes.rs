//! The axes of a sweep: what each changes, and its values, of a list or drawn.

use crate::plan::PlanError;
use serde::Deserialize;
use slowstart::registry;
use slowstart_sim::path::PATH_KEYS;
use slowstart_sim::random;
use slowstart_sim::suggest::did_you_mean;
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::axis::{self, AxisError, Range};
use std::collections::{BTreeMap, BTreeSet};

/// The most points that are drawn: the sequence of Sobol that is used has no more.
const MOST_POINTS: u32 = 65_536;

/// The keys of a study that an axis may be over.
pub(crate) const STUDY_KEYS: [&str; 9] =
    ["path", "size", "duration", "profile", "avoidance", "app", "against", "remember", "seed"];

/// What an axis changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A key of the path.
    Path(String),
    /// A knob of the stack.
    Set(String),
    /// A parameter of one startup.
    Param { startup: String, key: String },
    /// A key of the study.
    Study(&'static str),
}

/// The axis that decides, where a study names no startups, which there are.
pub(crate) const AVOIDANCE: Target = Target::Study("avoidance");

impl Target {
    pub(crate) fn of(name: &str) -> Result<Self, PlanError> {
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
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) values: Vec<String>,
}

/// Where a drawn value comes from.
#[derive(Clone, Debug)]
pub(crate) enum Law {
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
pub(crate) struct DrawsText {
    points: i64,
    #[serde(default)]
    method: Method,
    #[serde(default)]
    seed: u32,
    axes: BTreeMap<String, toml::Value>,
}

#[derive(Clone, Debug)]
pub(crate) struct Draws {
    pub(crate) points: u32,
    method: Method,
    seed: u32,
    pub(crate) axes: Vec<(String, Target, Law)>,
}

/// The values of an axis as written: text with a list or a range, a number, or a list of texts and numbers.
pub(crate) fn written(name: &str, value: &toml::Value) -> Result<Vec<String>, PlanError> {
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

/// The values without those that occur before them. Where the label of a stack or a startup does not repeat how a
/// value is written, `1MB` and `1000kB` are one.
pub(crate) fn different(target: &Target, values: Vec<String>) -> Vec<String> {
    let same = |v: &String| match target {
        Target::Study("size" | "duration" | "seed") => axis::value(v).map_or(v.clone(), |x| x.to_string()),
        _ => v.clone(),
    };
    let mut seen = BTreeSet::new();
    values.into_iter().filter(|v| seen.insert(same(v))).collect()
}

impl Law {
    /// The value at a share of the way through the law.
    pub(crate) fn at(&self, share: f64) -> String {
        match self {
            Self::Range(range) => range.at(share),
            Self::List(list) => list[((share * list.len() as f64) as usize).min(list.len() - 1)].clone(),
        }
    }
}

impl Draws {
    /// Reads what was written. No axis may also be one of the grid.
    pub(crate) fn read(d: &DrawsText, axes: &[Axis]) -> Result<Self, PlanError> {
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
        Ok(Self { points, method: d.method, seed: d.seed, axes })
    }

    /// The values of a point, axis by axis.
    pub(crate) fn at(&self, point: u32) -> Vec<String> {
        let axes = self.axes.iter().enumerate();
        axes.map(|(d, (_, _, law))| law.at(self.share(point, d as u32))).collect()
    }

    /// The place of a point along a dimension, from 0 to 1.
    pub(crate) fn share(&self, point: u32, dimension: u32) -> f64 {
        match self.method {
            Method::Sobol => f64::from(sobol_burley::sample(point, dimension, self.seed)),
            Method::Random => {
                let stream = u64::from(self.seed) << 32 | u64::from(dimension);
                (random::at(stream, u64::from(point)) >> 11) as f64 / (1_u64 << 53) as f64
            }
        }
    }
}
