//! Paths of which each run draws values.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::ensemble::{self, Law};
use super::super::error::PathError;
use super::super::trace::Trace;
use super::PathSpec;
use super::keys::{Keys, Loaded};

/// The values of a path, some of which are drawn.
#[derive(Debug)]
pub(super) struct Ensemble {
    keys: Keys,
    name: String,
    sources: Vec<String>,
    pub(super) laws: Vec<Law>,
    /// Each key with drawn values, as pieces: text, or the index of a law.
    templates: BTreeMap<String, Vec<Piece>>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Law(usize),
}
impl Ensemble {
    /// Reads the distributions, and checks the path at both ends of each.
    ///
    /// Every bound on a value, or between two values, is an interval, so that a path whose ends are valid is
    /// valid within.
    pub(super) fn check(keys: Keys, name: String, sources: Vec<String>) -> Result<PathSpec, PathError> {
        let mut e = Self { keys, name, sources, laws: Vec::new(), templates: BTreeMap::new() };
        let values: Vec<_> = e.keys.values.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        for (key, value) in values {
            if !ensemble::is_distribution(&key, &value) {
                continue;
            }
            let parts = ensemble::parts(&key, &value);
            let mut pieces = Vec::new();
            for (i, part) in parts.iter().enumerate() {
                if !ensemble::is_distribution(&key, part) {
                    pieces.push(Piece::Text((*part).into()));
                    continue;
                }
                // Drawn moments could come out of order.
                if key == "schedule" && parts.get(i + 1) == Some(&":") {
                    return Err(e.keys.wrong(
                        &key,
                        part,
                        "a fixed time: in a schedule only rates can be random",
                    ));
                }
                let mut law = ensemble::law(&key, part).map_err(|why| e.keys.wrong(&key, part, &why))?;
                let same = e.laws.iter().filter(|l| l.key == key).count();
                if same > 0 {
                    law.name = format!("{}_{}", law.name, same + 1);
                }
                pieces.push(Piece::Law(e.laws.len()));
                e.laws.push(law);
            }
            e.templates.insert(key, pieces);
        }
        if let Some((law, why)) = ensemble::refused(&e.laws) {
            return Err(e.keys.wrong(&law.key, &law.text, &why));
        }
        let middle = ensemble::middle(&e.laws);
        e.keys.loaded = Some(Loaded { traces: e.traces()?, ..Loaded::default() });
        let spec = e.checked(&middle)?;
        let loaded = e.keys.loaded.get_or_insert_default();
        loaded.delays.clone_from(&spec.delay_trace);
        loaded.losses.clone_from(&spec.loss_trace);
        let (mut least_rate, mut most_held) = (spec.least_rate, spec.most_held);
        let all = |end: fn((u64, u64)) -> u64| e.laws.iter().map(|l| end(l.bounds())).collect::<Vec<u64>>();
        for others in [all(|b| b.0), all(|b| b.1)] {
            for (i, law) in e.laws.iter().enumerate() {
                for end in law.ends() {
                    let mut values = others.clone();
                    values[i] = end;
                    let checked = e.checked(&values)?;
                    least_rate = least_rate.min(checked.facts.rate);
                    most_held = most_held.max(checked.most_held);
                }
            }
        }
        Ok(PathSpec { ensemble: Some(Arc::new(e)), least_rate, most_held, drawn: BTreeMap::new(), ..spec })
    }

    /// The traces that a run may draw, by name.
    fn traces(&self) -> Result<BTreeMap<String, Arc<Trace>>, PathError> {
        let one = self.keys.values.get("trace").map(String::as_str);
        let drawn = self.laws.iter().find(|l| l.key == "trace");
        let names: Vec<&str> = drawn.map_or_else(|| one.into_iter().collect(), Law::names);
        let load = |name: &str| {
            let trace = Trace::load(&self.keys.files.place(name), &self.keys.files)?;
            Ok((name.to_string(), Arc::new(trace)))
        };
        names.into_iter().map(load).collect()
    }

    /// The path with these values for the laws; an error names the value as it was written.
    fn checked(&self, values: &[u64]) -> Result<PathSpec, PathError> {
        self.with(values).map_err(|why| match why {
            PathError::Value { source_name, key, found, expected } => {
                let written = self.keys.values.get(&key).filter(|_| self.templates.contains_key(&key));
                let found = written.cloned().unwrap_or(found);
                PathError::Value { source_name, key, found, expected }
            }
            other => other,
        })
    }

    pub(super) fn with(&self, values: &[u64]) -> Result<PathSpec, PathError> {
        let mut keys = self.keys.clone();
        for (key, pieces) in &self.templates {
            let piece = |p: &Piece| match p {
                Piece::Text(text) => text.clone(),
                Piece::Law(i) => self.laws[*i].write(values[*i]),
            };
            keys.values.insert(key.clone(), pieces.iter().map(piece).collect());
        }
        let mut spec = PathSpec::without_distributions(keys, self.name.clone(), self.sources.clone())?;
        spec.drawn = self.laws.iter().zip(values).map(|(l, v)| (l.name.clone(), l.read(*v))).collect();
        Ok(spec)
    }
}
