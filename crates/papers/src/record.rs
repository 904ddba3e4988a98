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
