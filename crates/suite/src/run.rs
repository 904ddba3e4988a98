//! Runs a suite and collects the verdicts.

use crate::judge::{Verdict, judge};
use crate::scenario::{Criterion, Reference, Scenario, Suite, SuiteError};
use serde::{Deserialize, Serialize};
use slowstart_lab::engine::Sampling;
use slowstart_lab::record::Row;
use slowstart_lab::run::Job;
use slowstart_lab::scenario::{Contender, Study};

/// The version of the report's JSON.
pub const SCHEMA: u32 = 1;

/// What to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The startups, each `name` or `name:key=value`.
    pub startups: Vec<String>,
    /// The avoidance that follows each.
    pub avoidance: String,
    /// The seed: the same seed gives the same report.
    pub seed: u64,
    /// How many runs, in place of what the suite states.
    pub runs: Option<u32>,
}

/// One criterion of one startup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The scenario.
    pub scenario: String,
    /// The section of RFC 9743.
    pub section: String,
    /// The criterion, as the suite has it.
    pub criterion: String,
    /// The startup, as it was asked for.
    pub startup: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The median value.
    pub value: Option<f64>,
    /// The median limit.
    pub limit: Option<f64>,
    /// Lower and upper end of the 95 % interval of the median excess over the limit.
    pub excess: Option<[f64; 2]>,
    /// About how many runs would decide, if it is undecided.
    pub runs_to_decide: Option<u32>,
    /// The value of each run; null for a transfer that never completed.
    pub values: Vec<Option<f64>>,
}

/// The report of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version that computed it.
    pub version: String,
    /// The suite.
    pub suite: String,
    /// What ran the transfers.
    pub engine: String,
    /// The avoidance.
    pub avoidance: String,
    /// The seed.
    pub seed: u64,
    /// The startups, in the order that was asked for.
    pub startups: Vec<String>,
    /// The entries: by scenario, criterion and startup.
    pub entries: Vec<Entry>,
}

impl Report {
    /// Returns how many criteria of a startup have this verdict.
    pub fn count(&self, startup: &str, verdict: Verdict) -> usize {
        self.entries.iter().filter(|e| e.startup == startup && e.verdict == verdict).count()
    }

    /// Returns true if no criterion is not met.
    pub fn passed(&self) -> bool {
        self.entries.iter().all(|e| e.verdict != Verdict::DoesNotMeet)
    }
}

/// Runs the suite in the simulator. `progress` is called with the name of each scenario before it runs.
///
/// # Errors
/// If a startup or the avoidance is unknown.
pub fn run(
    suite: &Suite,
    settings: &Settings,
    mut progress: impl FnMut(&Scenario),
) -> Result<Report, SuiteError> {
    let mut studies = Vec::new();
    for s in &suite.scenarios {
        studies.push(s.study(
            &wanted(&settings.startups),
            &settings.avoidance,
            settings.seed,
            settings.runs,
        )?);
    }
    let mut report = Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_string(),
        suite: suite.name.clone(),
        engine: "sim".to_string(),
        avoidance: settings.avoidance.clone(),
        seed: settings.seed,
        startups: settings.startups.clone(),
        entries: Vec::new(),
    };
    for (scenario, study) in suite.scenarios.iter().zip(&studies) {
        progress(scenario);
        report.entries.extend(judged(scenario, study, &settings.startups));
    }
    Ok(report)
}

/// The startups that were asked for, after the references.
fn wanted(startups: &[String]) -> Vec<String> {
    let references = Reference::ALL.map(|r| r.name().to_string());
    references.into_iter().chain(startups.iter().cloned()).collect()
}

/// Runs one scenario, whose study has the references first, and judges `startups`, the contenders after them.
pub fn judged(scenario: &Scenario, study: &Study, startups: &[String]) -> Vec<Entry> {
    let rows = rows(study);
    let mut entries = Vec::new();
    for c in &scenario.criteria {
        for (i, startup) in startups.iter().enumerate() {
            entries.push(entry(scenario, c, startup, &rows, Reference::ALL.len() + i));
        }
    }
    entries
}

/// Returns a study of these contenders: the references, and then those of the caller.
///
/// # Errors
/// If the study cannot run.
pub fn study_of(
    scenario: &Scenario,
    contenders: &[Contender],
    settings: &Settings,
) -> Result<Study, SuiteError> {
    let mut study = scenario.study(&wanted(&[]), &settings.avoidance, settings.seed, settings.runs)?;
    study.contenders.extend_from_slice(contenders);
    Ok(study)
}

/// The rows of each contender, in the order of runs. Two contenders that are written alike run once.
fn rows(study: &Study) -> Vec<Vec<Row>> {
    let same = |i: usize| {
        let label = &study.contenders[i].label;
        study.contenders.iter().position(|c| c.label == *label).unwrap_or(i)
    };
    let jobs: Vec<Job> = study.jobs().into_iter().filter(|j| same(j.contender) == j.contender).collect();
    let mut all = vec![Vec::new(); study.contenders.len()];
    let run = |job: Job| study.run(job, Sampling::Off, false);
    let done: Result<(), std::convert::Infallible> = slowstart_lab::run::in_order(&jobs, run, |o| {
        all[o.job.contender].push(o.row);
        Ok(())
    });
    match done {
        Ok(()) => {}
    }
    (0..all.len()).map(|i| all[same(i)].clone()).collect()
}

fn entry(scenario: &Scenario, c: &Criterion, startup: &str, rows: &[Vec<Row>], at: usize) -> Entry {
    let values: Vec<Option<f64>> = rows[at].iter().map(|r| c.measure.of(r)).collect();
    let limit = |run: usize| match c.reference {
        None => Some(c.plus),
        Some((factor, reference)) => {
            let i = Reference::ALL.iter().position(|r| *r == reference)?;
            Some(factor * c.measure.of(&rows[i][run])? + c.plus)
        }
    };
    let pairs: Vec<(f64, f64)> =
        values.iter().enumerate().filter_map(|(run, v)| Some(((*v)?, limit(run)?))).collect();
    let j = judge(&pairs, c.at_least);
    Entry {
        scenario: scenario.name.clone(),
        section: scenario.section.clone(),
        criterion: c.text.clone(),
        startup: startup.to_string(),
        verdict: j.verdict,
        value: j.value,
        limit: j.limit,
        excess: j.excess.map(|e| [e.1, e.2]),
        runs_to_decide: j.runs_to_decide,
        values: values.into_iter().map(|v| v.filter(|v| v.is_finite())).collect(),
    }
}
