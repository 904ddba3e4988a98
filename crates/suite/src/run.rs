//! Runs a suite and collects the verdicts.

use crate::judge::{Verdict, judge};
use crate::measure::Observed;
use crate::scenario::{Criterion, Reference, Scenario, Suite, SuiteError};
use serde::{Deserialize, Serialize};
use slowstart_sim::engine::Sampling;
use slowstart_study::engines::{Engine, EngineError, Watched, run_jobs};
use slowstart_study::measured::{BROKEN, INVALID, commit};
use slowstart_study::measures::Measure;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Contender, Study};
use slowstart_study::simulator::Simulator;
use slowstart_study::stats::{FEWEST_PAIRS, median};
use std::collections::BTreeMap;
use std::ops::Range;

/// The version of the report's JSON.
pub const SCHEMA: u32 = 1;

/// A startup with an undecided criterion runs the scenario twice as often, and again, up to this many times
/// the runs that the suite states: with the first alone, a criterion near its limit is decided with one seed
/// and undecided with the next.
pub const MORE_RUNS: u32 = 16;

/// What to run, and how often.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The startups, each `name`, `name:key=value` or `plugin:FILE`.
    pub startups: Vec<String>,
    /// The avoidance that follows each.
    pub avoidance: String,
    /// The seed: the same seed gives the same report at virtual time.
    pub seed: u64,
    /// How many runs, in place of what the suite states and of more where a criterion is undecided.
    pub runs: Option<u32>,
}

/// One criterion of one startup.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The name of the scenario.
    pub scenario: String,
    /// The section of RFC 9743.
    pub section: String,
    /// The criterion, as the suite has it.
    pub criterion: String,
    /// The startup, as it was asked for, or the stack.
    pub startup: String,
    /// Whether the criterion is met.
    pub verdict: Verdict,
    /// The median of the values, in the unit of the measure; null if nothing was observed.
    pub value: Option<f64>,
    /// The median of the limits, in the unit of the measure; where that lies on the other side of the median
    /// value than the runs say, the value less the median excess. Null if nothing was observed.
    pub limit: Option<f64>,
    /// Lower and upper end of the 95 % interval of the median excess over the limit.
    pub excess: Option<[f64; 2]>,
    /// About how many runs would decide, if it is undecided.
    pub runs_to_decide: Option<u32>,
    /// The value of each run; null for a transfer that never completed, and where nothing was observed.
    pub values: Vec<Option<f64>>,
    /// The limit of each run; null where what it refers to never completed or was not observed. Empty in older
    /// reports.
    #[serde(default)]
    pub limits: Vec<Option<f64>>,
    /// Runs in which the transfer never completed and that of slow start did. They show no other value.
    #[serde(default)]
    pub never: u32,
    /// Runs in which the controller broke a rule, which is enough not to meet a criterion. They show no value.
    #[serde(default)]
    pub broken: u32,
    /// What `hystart`, today's default, has: the median; null if nothing was observed.
    #[serde(default)]
    pub default_value: Option<f64>,
    /// Whether it is no worse than today's default, by the same factor and addend; null if the limit does not
    /// refer to slow start.
    #[serde(default)]
    pub against_default: Option<Verdict>,
    /// What the runs that were planned said, before others were added because a criterion of the startup was undecided;
    /// null where none were added, and in older reports.
    #[serde(default)]
    pub planned: Option<Planned>,
}

/// The verdict of the runs that were planned.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// How many they were: the first of all.
    pub runs: u32,
    /// Whether the criterion is met by them alone.
    pub verdict: Verdict,
}

impl Entry {
    /// The verdict of the runs that were planned, whether or not others were added.
    pub fn planned_verdict(&self) -> Verdict {
        self.planned.map_or(self.verdict, |p| p.verdict)
    }

    /// What the runs that were planned said, in words; nothing where no others were added.
    pub fn planned_in_words(&self) -> Option<String> {
        self.planned.map(|p| format!("{} after the first {} runs", p.verdict.word(), p.runs))
    }

    /// True if it meets a limit that refers to slow start, and would not meet the same one of today's default.
    pub fn is_worse_than_default(&self) -> bool {
        self.verdict == Verdict::Meets && self.against_default == Some(Verdict::DoesNotMeet)
    }

    /// True if it meets a limit that refers to slow start, and the runs leave open whether it meets the same one of today's
    /// default.
    pub fn is_open_against_default(&self) -> bool {
        self.verdict == Verdict::Meets && self.against_default == Some(Verdict::Undecided)
    }
}

/// A scenario that did not run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The name of the scenario.
    pub scenario: String,
    /// Why it did not run, in a sentence.
    pub why: String,
}

/// The report of a suite.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of the schema.
    pub schema: u32,
    /// The version that computed it.
    pub version: String,
    /// The commit of the program that computed it, with `modified` after it if the checkout had changes; null if it
    /// was not built in one.
    #[serde(default)]
    pub commit: Option<String>,
    /// The words of the command that computes it, without those that say where results go; empty if another program
    /// than the command line computed it, and in older reports.
    #[serde(default)]
    pub command: Vec<String>,
    /// The name of the suite, with its version.
    pub suite: String,
    /// The SHA-256 of the suite's file, in hexadecimal; empty in older reports.
    #[serde(default)]
    pub suite_sha256: String,
    /// What ran the transfers.
    pub engine: String,
    /// True if they took the time that they measured, so that another run gives other numbers; false in older reports.
    #[serde(default)]
    pub real_clock: bool,
    /// The stack that it ran, with the release of the kernel where that is one: `Linux 6.18.0`; empty in older
    /// reports.
    #[serde(default)]
    pub stack: String,
    /// The version of a whole stack, as the caller states it; null if it does not.
    #[serde(default)]
    pub stack_version: Option<String>,
    /// The congestion control of a whole stack, as the caller or its logs state it; null if they do not.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// The avoidance; empty for a whole stack.
    pub avoidance: String,
    /// The seed from which the runs of all scenarios follow.
    pub seed: u64,
    /// The startups, in the order that was asked for, or the stack.
    pub startups: Vec<String>,
    /// The SHA-256 of what ran under a name of `startups`: the file of a library or a kernel, the folder of a root, or what
    /// the caller names. What is part of the program has none, but `commit`.
    #[serde(default)]
    pub entrants: BTreeMap<String, String>,
    /// Scenarios that the engine cannot run.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// What a reader should know, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
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

    fn new(suite: &Suite, settings: &Settings, engine: &str, real_clock: bool) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_string(),
            commit: commit().map(str::to_string),
            command: Vec::new(),
            suite: suite.name.clone(),
            suite_sha256: suite.sha256.clone(),
            engine: engine.to_string(),
            real_clock,
            stack: String::new(),
            stack_version: None,
            congestion_control: None,
            avoidance: settings.avoidance.clone(),
            seed: settings.seed,
            startups: settings.startups.clone(),
            entrants: BTreeMap::new(),
            left_out: Vec::new(),
            notes: Vec::new(),
            entries: Vec::new(),
        }
    }
}

/// Runs the suite on an engine. Scenarios that it refuses are left out. `progress` is called with each
/// scenario before it runs. When `stop` is true, the scenarios that are not finished are left out.
///
/// # Errors
/// If a startup or the avoidance is unknown, or a run fails.
pub fn run(
    suite: &Suite,
    settings: &Settings,
    engine: &dyn Engine,
    stop: &(dyn Fn() -> bool + Sync),
    mut progress: impl FnMut(&Scenario, usize, usize),
) -> Result<Report, SuiteError> {
    let mut report = Report::new(suite, settings, engine.name(), engine.is_real_clock());
    let mut studies = Vec::new();
    for s in &suite.scenarios {
        // A name that no engine knows is wrong in every scenario.
        for startup in &settings.startups {
            engine.contender(startup, &settings.avoidance).map_err(|why| s.failed(why))?;
        }
        match engine
            .study(&s.text(&settings.startups, &settings.avoidance, settings.seed, settings.runs), None)
        {
            Ok(study) => {
                report.stack = engine.stack(&study);
                studies.push((s, study));
            }
            Err(EngineError::Refused(why)) => {
                report.left_out.push(LeftOut { scenario: s.name.clone(), why: why.why });
            }
            Err(why) => return Err(s.failed(why)),
        }
    }
    for (i, (scenario, study)) in studies.iter().enumerate() {
        progress(scenario, i, studies.len());
        let fixed = settings.runs.is_some() || engine.is_real_clock();
        let most = if fixed { study.runs } else { study.runs * MORE_RUNS };
        let mut tally = Tally::default();
        let entries = match judged(engine, scenario, study, &settings.startups, most, stop, &mut tally) {
            Err(SuiteError::Study { why, .. }) if matches!(*why, EngineError::Stopped) => {
                let rest = studies[i..].iter().map(|(s, _)| s.name.clone());
                let why = "interrupted before it was finished";
                report.left_out.extend(rest.map(|scenario| LeftOut { scenario, why: why.into() }));
                break;
            }
            entries => entries?,
        };
        report.entries.extend(entries);
        let Tally { runs, invalid, broken } = tally;
        if invalid > 0 {
            report.notes.push(format!("{}, {invalid} of {runs} runs: {INVALID}", scenario.name));
        }
        report.notes.extend(broken.map(|why| format!("{}, {why}", scenario.name)));
    }
    Ok(report)
}

/// How many runs there were.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// All runs, those of the references included.
    pub runs: u32,
    /// Those in which the emulator of a path was too late.
    pub invalid: u32,
    /// The startup whose controller broke a rule, the first time, and how.
    pub broken: Option<String>,
}

/// Runs one scenario, whose study has the references first, and judges `startups`, the contenders after them.
/// Those that are undecided run more often, up to `most` runs. Its runs are added to `tally`.
///
/// # Errors
/// If a run fails.
pub fn judged(
    engine: &dyn Engine,
    scenario: &Scenario,
    study: &Study,
    startups: &[String],
    most: u32,
    stop: &(dyn Fn() -> bool + Sync),
    tally: &mut Tally,
) -> Result<Vec<Entry>, SuiteError> {
    let mut all = vec![Vec::new(); study.contenders.len()];
    // Which contenders the next runs are of.
    let mut wanted = vec![true; all.len()];
    let (mut done, mut runs) = (0, study.runs);
    // What the first runs say, by criterion and startup.
    let mut planned: Vec<Vec<Verdict>> = Vec::new();
    loop {
        let more =
            observed(engine, study, &wanted, done..runs, stop, tally).map_err(|why| scenario.failed(why))?;
        all.iter_mut().zip(more).for_each(|(all, more)| all.extend(more));
        done = runs;
        let (references, ours) = all.split_at(Reference::ALL.len());
        let judged = |c: &Criterion| -> Vec<Entry> {
            startups.iter().zip(ours).map(|(s, runs)| entry(scenario, c, s, references, runs)).collect()
        };
        let mut entries: Vec<Vec<Entry>> = scenario.criteria.iter().map(judged).collect();
        if planned.is_empty() {
            planned = entries.iter().map(|of| of.iter().map(|e| e.verdict).collect()).collect();
        }
        for (e, verdict) in entries.iter_mut().flatten().zip(planned.iter().flatten()) {
            let more = e.values.len() > study.runs as usize;
            e.planned = more.then_some(Planned { runs: study.runs, verdict: *verdict });
        }
        // More runs cannot mend a transfer that never completes.
        let open =
            |i: usize| entries.iter().any(|of| of[i].verdict == Verdict::Undecided && of[i].never == 0);
        for i in 0..startups.len() {
            wanted[references.len() + i] &= open(i);
        }
        if done >= most || !wanted[references.len()..].contains(&true) {
            return Ok(entries.concat());
        }
        runs = (done * 2).min(most);
    }
}

/// Returns a study of these contenders in the simulator: the references, and then those of the caller.
///
/// # Errors
/// If the study cannot run.
pub fn study_of(
    scenario: &Scenario,
    contenders: &[Contender],
    settings: &Settings,
) -> Result<Study, SuiteError> {
    let text = scenario.text(&[], &settings.avoidance, settings.seed, settings.runs);
    let mut study = Simulator.study(&text, None).map_err(|why| scenario.failed(why))?;
    study.contenders.extend_from_slice(contenders);
    Ok(study)
}

/// A whole stack, as it is, over the paths of scenarios.
pub trait Stack {
    /// What runs it, for the report.
    fn engine(&self) -> String;

    /// Why it cannot run a scenario; `None` if it can.
    fn unable(&self, study: &Study) -> Option<String>;

    /// Runs a scenario once.
    ///
    /// # Errors
    /// If the run fails; [`EngineError::Refused`] leaves the scenario out. What happens to a transfer is no error.
    fn run(&mut self, study: &Study, run: u32) -> Result<Observed, EngineError>;

    /// Runs a scenario once with a reference in place of the stack, after [`Self::run`] of the same run: a
    /// reference may have packets of the stack's size. What a link cannot show of it is taken from the simulator.
    ///
    /// # Errors
    /// If the run fails.
    fn reference(&mut self, reference: Reference, study: &Study, run: u32) -> Result<Observed, EngineError>;

    /// Takes what a reader should know of the scenario that ran `runs` times, a sentence each.
    fn notes(&mut self, runs: u32) -> Vec<String>;
}

/// What a link does not show of a transfer.
const INSIDE: [Measure; 3] = [Measure::StartupLost, Measure::Timeouts, Measure::PeakInflight];

/// Runs the suite with a whole stack, the one name in `settings.startups`, and the references in the same
/// way, run by run.
///
/// # Errors
/// If a run fails.
pub fn run_stack(
    suite: &Suite,
    settings: &Settings,
    stack: &mut dyn Stack,
    mut progress: impl FnMut(&Scenario),
) -> Result<Report, SuiteError> {
    let mut report = Report {
        avoidance: String::new(),
        stack: stack.engine(),
        ..Report::new(suite, settings, &stack.engine(), true)
    };
    for scenario in &suite.scenarios {
        let study = study_of(scenario, &[], settings)?;
        if let Some(why) = stack.unable(&study) {
            report.left_out.push(LeftOut { scenario: scenario.name.clone(), why });
            continue;
        }
        progress(scenario);
        let failed = |why| scenario.failed(why);
        let both = [true; Reference::ALL.len()];
        let mut references =
            observed(&Simulator, &study, &both, 0..study.runs, &|| false, &mut Tally::default())
                .map_err(failed)?;
        let mut ours = Vec::new();
        references.iter_mut().flatten().for_each(|o| *o = o.only(&INSIDE));
        let mut refused = None;
        for run in 0..study.runs {
            match stack.run(&study, run) {
                Err(EngineError::Refused(why)) => {
                    refused = Some(why.why);
                    break;
                }
                ran => ours.push(ran.map_err(failed)?),
            }
            for (i, r) in Reference::ALL.into_iter().enumerate() {
                if scenario.criteria.iter().any(|c| c.reference.is_some_and(|(_, of)| of == r)) {
                    let live = stack.reference(r, &study, run).map_err(failed)?;
                    references[i][run as usize] = live.or(references[i][run as usize]);
                }
            }
        }
        if let Some(why) = refused {
            report.left_out.push(LeftOut { scenario: scenario.name.clone(), why });
            continue;
        }
        let notes = stack.notes(study.runs).into_iter().map(|note| format!("{}, {note}", scenario.name));
        report.notes.extend(notes);
        for c in &scenario.criteria {
            report
                .entries
                .extend(settings.startups.iter().map(|name| entry(scenario, c, name, &references, &ours)));
        }
    }
    Ok(report)
}

/// What was observed of each contender that is wanted in these runs. Two contenders that are written alike
/// run once.
fn observed(
    engine: &dyn Engine,
    study: &Study,
    wanted: &[bool],
    runs: Range<u32>,
    stop: &(dyn Fn() -> bool + Sync),
    tally: &mut Tally,
) -> Result<Vec<Vec<Observed>>, EngineError> {
    let same = |i: usize| {
        let label = &study.contenders[i].label;
        study.contenders.iter().position(|c| c.label == *label).unwrap_or(i)
    };
    let of = |contender: usize| runs.clone().map(move |run| Job { contender, run });
    let jobs: Vec<Job> = (0..wanted.len()).filter(|i| wanted[*i] && same(*i) == *i).flat_map(of).collect();
    let mut all = vec![Vec::new(); wanted.len()];
    let run = |job: Job| {
        if stop() {
            return Err(EngineError::Stopped);
        }
        engine.run(study, job, &Watched { stop, ..Watched::samples(Sampling::Off) })
    };
    run_jobs(engine, &jobs, run, |outcome| {
        let outcome = outcome?;
        if let (None, Some(why)) = (&tally.broken, &outcome.measured.broken) {
            tally.broken = Some(format!("{}: {BROKEN}: {why}", outcome.row.startup));
        }
        let invalid = outcome.row.caveats.iter().any(|c| c == INVALID);
        tally.runs += 1;
        tally.invalid += u32::from(invalid);
        let seen = if invalid { Observed::late() } else { Observed::of(&outcome) };
        all[outcome.job.contender].push(seen);
        Ok::<(), EngineError>(())
    })?;
    let none = Vec::new();
    Ok((0..all.len()).map(|i| if wanted[i] { &all[same(i)] } else { &none }.clone()).collect())
}

fn entry(
    scenario: &Scenario,
    c: &Criterion,
    startup: &str,
    references: &[Vec<Observed>],
    ours: &[Observed],
) -> Entry {
    let all_of = |reference: Reference| {
        let i = Reference::ALL.iter().position(|r| *r == reference);
        i.map_or(&[][..], |i| &references[i])
    };
    let of = |reference: Reference, run: usize| all_of(reference).get(run);
    let completes = |o: &Observed| o.get(Measure::Completion).map(f64::is_finite);
    // Slow start completes, and this does not.
    let stalls = |run: usize| {
        completes(&ours[run]) == Some(false) && of(Reference::Standard, run).and_then(completes) == Some(true)
    };
    let never = (0..ours.len()).filter(|run| stalls(*run)).count() as u32;
    let broken = ours.iter().filter(|o| o.broken).count() as u32;
    // A transfer that stalls loses few packets: that is no merit.
    let value =
        |run: usize| ours[run].get(c.measure).filter(|_| c.measure == Measure::Completion || !stalls(run));
    let values: Vec<Option<f64>> = (0..ours.len()).map(value).collect();
    let judged = |reference: Option<(f64, Reference)>| {
        let limit = |run: usize| match reference {
            None => Some(c.plus),
            Some((factor, reference)) => Some(factor * of(reference, run)?.get(c.measure)? + c.plus),
        };
        let limits: Vec<Option<f64>> = (0..ours.len()).map(limit).collect();
        let pairs: Vec<(f64, f64)> = values.iter().zip(&limits).filter_map(|(v, l)| v.zip(*l)).collect();
        let mut j = judge(&pairs, &limits.iter().flatten().copied().collect::<Vec<_>>(), c.at_least);
        let is_late = |run: &usize| {
            ours[*run].is_late() || reference.and_then(|r| of(r.1, *run)).is_some_and(Observed::is_late)
        };
        // Other runs might observe something, unless as many as decide were in time and did not.
        let late = || {
            let runs = (0..ours.len()).filter(is_late).count();
            runs > 0 && ours.len() - runs < FEWEST_PAIRS
        };
        if never > 0 && j.verdict == Verdict::Meets || j.verdict == Verdict::NotObserved && late() {
            j.verdict = Verdict::Undecided;
        }
        if broken > 0 {
            j.verdict = Verdict::DoesNotMeet;
        }
        (j, limits)
    };
    let (j, limits) = judged(c.reference);
    let relative = c.reference.filter(|(_, r)| *r == Reference::Standard);
    let default: Vec<f64> = (0..ours.len())
        .filter_map(|run| of(Reference::HyStart, run)?.get(c.measure))
        .filter(|v| v.is_finite())
        .collect();
    Entry {
        scenario: scenario.name.clone(),
        section: scenario.section.clone(),
        criterion: c.text.clone(),
        startup: startup.to_string(),
        verdict: j.verdict,
        value: j.value,
        limit: j.limit,
        excess: j.excess.map(|e| [e.1, e.2]),
        // More runs cannot mend a transfer that never completes.
        runs_to_decide: j.runs_to_decide.filter(|_| never == 0),
        values: values.iter().map(|v| v.filter(|v| v.is_finite())).collect(),
        limits: limits.iter().map(|v| v.filter(|v| v.is_finite())).collect(),
        never,
        broken,
        default_value: median(&default).map(|m| m.mid),
        against_default: relative.map(|(factor, _)| judged(Some((factor, Reference::HyStart))).0.verdict),
        planned: None,
    }
}
