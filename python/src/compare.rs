//! `compare` and `run`.

use crate::bad;
use crate::comparison::{Comparison, Judged};
use crate::hosted::{Classes, Hosted, is_python};
use pyo3::prelude::*;
use slowstart_report::study::{middle, sampling, shown_run};
use slowstart_sim::engine::Sampling;
use slowstart_study::engines::{Engine, EngineError, Watched, run_jobs};
use slowstart_study::harm;
use slowstart_study::record::Row;
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Study, StudyText, check_rows};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What a caller gives in place of names.
pub(crate) type Given<'py> = Option<Vec<Bound<'py, PyAny>>>;

/// An engine by name that runs these classes too.
pub(crate) fn engine_for(
    name: Option<&str>,
    text: &StudyText,
    classes: &Arc<Classes>,
) -> Result<Box<dyn Engine>, EngineError> {
    let engine = slowstart_engines::of(name, text)?;
    Ok(if classes.is_empty() { engine } else { Box::new(Hosted::new(engine, classes)) })
}

/// Compares startups over a path. Each keyword is a key of a study file.
#[pyfunction]
#[pyo3(signature = (path, startups=None, *, runs=None, seed=None, size=None, duration=None, avoidance=None, profile=None, set=None, app=None, against=None, remember=None, engine=None, baseline=None, margin=None, progress=None, samples=true, harm=false))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn compare(
    py: Python<'_>,
    path: String,
    startups: Given<'_>,
    runs: Option<u32>,
    seed: Option<u64>,
    size: Option<String>,
    duration: Option<String>,
    avoidance: Option<String>,
    profile: Option<String>,
    set: Option<BTreeMap<String, String>>,
    app: Option<String>,
    against: Given<'_>,
    remember: Option<String>,
    engine: Option<String>,
    baseline: Option<String>,
    margin: Option<f64>,
    progress: Option<Py<PyAny>>,
    samples: bool,
    harm: bool,
) -> PyResult<Comparison> {
    let (classes, startups, against) = Classes::read(startups, against)?;
    let text = StudyText {
        path,
        engine,
        startups: startups.unwrap_or_default(),
        avoidance,
        size,
        duration,
        profile,
        set: set.unwrap_or_default(),
        app,
        against: against.unwrap_or_default(),
        remember,
        runs,
        seed,
    };
    let classes = Arc::new(classes);
    let engine = engine_for(None, &text, &classes).map_err(bad)?;
    let study = engine.study(&text, None).map_err(bad)?;
    let labels: Vec<&str> = study.contenders.iter().map(|c| c.label.as_str()).collect();
    let call = format!("slowstart.compare({:?}, startups={labels:?}, runs={})", text.path, study.runs);
    let judged = Judged::new(baseline, margin);
    computed(py, &*engine, &classes, study, call, judged, progress.as_ref(), samples, harm)
}

/// Runs a study file, or a study in TOML (a text with a line break). `engine` goes before its key `engine`.
#[pyfunction]
#[pyo3(signature = (study, *, startups=None, against=None, engine=None, baseline=None, margin=None, progress=None, samples=true, harm=false))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn run(
    py: Python<'_>,
    study: &str,
    startups: Given<'_>,
    against: Given<'_>,
    engine: Option<&str>,
    baseline: Option<String>,
    margin: Option<f64>,
    progress: Option<Py<PyAny>>,
    samples: bool,
    harm: bool,
) -> PyResult<Comparison> {
    let (text, root) = if study.contains('\n') {
        (StudyText::read(study), None)
    } else {
        (StudyText::load(Path::new(study)), Path::new(study).parent())
    };
    let mut text = text.map_err(bad)?;
    let (classes, startups, against) = Classes::read(startups, against)?;
    text.startups = startups.unwrap_or(text.startups);
    text.against = against.unwrap_or(text.against);
    let classes = Arc::new(classes);
    let engine = engine_for(engine, &text, &classes).map_err(bad)?;
    let checked = engine.study(&text, root).map_err(bad)?;
    let (judged, call) = (Judged::new(baseline, margin), format!("slowstart.run({study:?})"));
    computed(py, &*engine, &classes, checked, call, judged, progress.as_ref(), samples, harm)
}

/// Handles Ctrl-C, then calls `progress` with the number of finished runs and that of all.
fn report(py: Python<'_>, progress: Option<&Py<PyAny>>, done: usize, of: usize) -> PyResult<()> {
    py.check_signals()?;
    progress.map_or(Ok(()), |p| p.call1(py, (done, of)).map(drop))
}

/// Runs a study.
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
fn computed(
    py: Python<'_>,
    engine: &dyn Engine,
    classes: &Classes,
    study: Study,
    call: String,
    judged: Judged,
    progress: Option<&Py<PyAny>>,
    samples: bool,
    harm: bool,
) -> PyResult<Comparison> {
    check_rows([&study]).map_err(bad)?;
    if let Some(why) = harm::unable(engine.name(), &study).filter(|_| harm) {
        return Err(bad(format!("harm: {}: {why}", study.path.name)));
    }
    judged.check(&study).map_err(bad)?;
    let jobs = study.jobs();
    let mut rows: Vec<Row> = Vec::with_capacity(jobs.len());
    // Samples of runs that cannot be repeated.
    let mut kept = Vec::new();
    let plain: Vec<(Job, Sampling)> = jobs.iter().map(|job| (*job, Sampling::Off)).collect();
    each(py, engine, classes, &study, &plain, |py, outcome| {
        if engine.is_real_clock() {
            kept.push(outcome.trace);
        }
        rows.push(outcome.row);
        report(py, progress, rows.len(), jobs.len())
    })?;
    if let Some(alone) = harm::alone_s(&rows, &judged.terms()).filter(|_| harm) {
        py.detach(|| harm::add(&study, alone, &mut rows));
    }
    let mut median = Vec::new();
    if samples {
        // The run with the baseline's median time, of each startup, once more with samples.
        let runs = study.runs as usize;
        let run = if engine.is_real_clock() {
            middle(&rows[..runs.min(rows.len())]).run
        } else {
            shown_run(&rows, &judged.terms())
        };
        let chosen: Vec<_> = rows
            .chunks(runs)
            .enumerate()
            .map(|(contender, rows)| (Job { contender, run }, sampling(&rows[run as usize])))
            .collect();
        if engine.is_real_clock() {
            for (job, _) in &chosen {
                let index = job.contender * runs + job.run as usize;
                median.push((index, std::mem::take(&mut kept[index])));
            }
            return Ok(Comparison { study, call, judged, rows, median });
        }
        each(py, engine, classes, &study, &chosen, |py, outcome| {
            median.push((outcome.job.contender * runs + outcome.job.run as usize, outcome.trace));
            report(py, progress, rows.len(), jobs.len())
        })?;
    }
    Ok(Comparison { study, call, judged, rows, median })
}

/// Runs jobs, those of native startups on all processors without the interpreter, those of startups in Python
/// on this thread. `take` gets the outcomes in order of the jobs.
fn each(
    py: Python<'_>,
    engine: &dyn Engine,
    classes: &Classes,
    study: &Study,
    jobs: &[(Job, Sampling)],
    mut take: impl FnMut(Python<'_>, Outcome) -> PyResult<()> + Send,
) -> PyResult<()> {
    let run = |(job, sampling): (Job, Sampling)| {
        let watched = Watched { internals: sampling != Sampling::Off, ..Watched::samples(sampling) };
        engine.run(study, job, &watched)
    };
    let in_python = |job: &(Job, Sampling)| is_python(study, job.0.contender);
    for group in jobs.chunk_by(|a, b| in_python(a) == in_python(b)) {
        if group.first().is_none_or(in_python) {
            for job in group {
                let outcome = run(*job);
                if let Some(raised) = classes.raised() {
                    return Err(raised);
                }
                take(py, outcome.map_err(bad)?)?;
            }
        } else {
            py.detach(|| {
                run_jobs(engine, group, run, |outcome| Python::attach(|py| take(py, outcome.map_err(bad)?)))
            })?;
        }
    }
    Ok(())
}
