//! The claims of all experiments as records, one line of JSON each.

use crate::experiment::Experiment;
use crate::judge::Judged;
use serde::{Deserialize, Serialize};

/// A judged claim, as `claims.jsonl` keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The claim as `paper/experiment/claim`.
    pub id: String,
    /// Whose claim it is: `paper`, `arithmetic`, `fitted` or `ours`.
    pub origin: String,
    /// The statement that is judged.
    pub says: String,
    /// The figure that the paper prints.
    pub claimed: String,
    /// The bound that the values have to keep.
    pub bound: String,
    /// The measured values, with their unit.
    pub measured: String,
    /// The verdict on each value alone, in the same order.
    #[serde(default)]
    pub each: Vec<String>,
    /// Number of runs of each value; the smallest.
    pub runs: usize,
    /// The word for the verdict.
    pub verdict: String,
    /// Why a claim of the paper does not hold; empty if it does.
    pub cause: String,
    /// The reason, with figures.
    pub reason: String,
}

/// A measured value of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    /// Study and startup; empty if it is the only one.
    pub(crate) of: String,
    pub(crate) mid: f64,
    /// Its 95 % interval.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Value {
    /// Reads a value as [`Judged::measured_text`] writes it: `study, startup: 1.5 (1.2 to 1.8)`. One that there is none of
    /// is not a number.
    fn read(text: &str) -> Self {
        let (of, figures) = text.rsplit_once(": ").unwrap_or(("", text));
        let number = |text: &str| {
            let digits: String = text.chars().filter(|c| !matches!(c, ',' | ' ' | '%' | ')')).collect();
            digits.parse().unwrap_or(f64::NAN)
        };
        let (mid, ends) =
            figures.split_once('(').map_or((figures, None), |(v, ends)| (v, ends.split_once(" to ")));
        let mid = number(mid);
        let (low, high) = ends.map_or((mid, mid), |(low, high)| (number(low), number(high)));
        Self { of: of.into(), mid, low, high }
    }
}

impl Record {
    /// The record of a judged claim of an experiment.
    pub fn new(e: &Experiment, j: &Judged) -> Self {
        Self {
            id: format!("{}/{}", e.id, j.claim.id),
            origin: j.claim.origin.name().into(),
            says: j.claim.says.clone(),
            claimed: j.claim.claimed.clone(),
            bound: j.bound_text(),
            measured: j.measured_text(),
            each: j.measured.iter().map(|m| m.verdict().name().into()).collect(),
            runs: j.measured.iter().map(|m| m.runs).min().unwrap_or(0),
            verdict: j.verdict.name().into(),
            cause: j.cause.map_or(String::new(), |c| c.name().into()),
            reason: j.reason.clone(),
        }
    }

    pub(crate) fn experiment(&self) -> &str {
        self.id.rsplit_once('/').map_or("", |(e, _)| e)
    }

    pub(crate) fn paper(&self) -> &str {
        self.id.split('/').next().unwrap_or("")
    }

    /// The measured values, in the order of `each`.
    pub(crate) fn values(&self) -> Vec<Value> {
        if self.measured == "-" { Vec::new() } else { self.measured.split("; ").map(Value::read).collect() }
    }
}

/// The record of the claim `paper/experiment/claim`; `None` if its experiment was not run.
///
/// # Errors
/// Says that its experiment has no such claim.
pub(crate) fn find<'a>(records: &'a [Record], id: &str) -> Result<Option<&'a Record>, String> {
    let found = records.iter().find(|r| r.id == id);
    let experiment = id.rsplit_once('/').map_or("", |(e, _)| e);
    if found.is_none() && records.iter().any(|r| r.experiment() == experiment) {
        return Err(format!("papers.toml: found {id:?}, expected the id of a claim"));
    }
    Ok(found)
}

/// The records of the experiments that were run in place of those of the same experiments in `before`, in the
/// order of the experiments.
pub fn merge(before: &[Record], run: &[(&Experiment, Vec<Judged>)]) -> Vec<Record> {
    let mut all = Vec::new();
    for e in Experiment::all() {
        match run.iter().find(|(r, _)| r.id == e.id) {
            Some((_, judged)) => all.extend(judged.iter().map(|j| Record::new(e, j))),
            None => all.extend(before.iter().filter(|r| r.experiment() == e.id).cloned()),
        }
    }
    for (e, judged) in run.iter().filter(|(r, _)| !Experiment::all().iter().any(|e| e.id == r.id)) {
        all.extend(judged.iter().map(|j| Record::new(e, j)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        let of = |measured: &str| Record { measured: measured.into(), ..Record::default() }.values();
        let value = |of: &str, mid, low, high| Value { of: of.into(), mid, low, high };
        assert_eq!(of("93.3 % (87.4 to 96.6)"), [value("", 93.3, 87.4, 96.6)]);
        assert_eq!(
            of("s, hystart:ssthresh=2: -1.5 (-2 to -1); 36,173: 0.5"),
            [value("s, hystart:ssthresh=2", -1.5, -2.0, -1.0), value("36,173", 0.5, 0.5, 0.5)]
        );
        assert!(of("a, b: none")[0].mid.is_nan());
        assert_eq!(of("-"), []);
    }
}
