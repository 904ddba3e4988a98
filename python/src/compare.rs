//! `compare` and `run`.

use crate::bad;
use crate::comparison::{Comparison, Judged};
use crate::connection::{INTERPRETER, Raised, end_of_run, forget, register};
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use slowstart::registry::Algorithm;
use slowstart::startup::foreign::Foreign;
use slowstart_report::study::{middle, sampling, shown_run};
use slowstart_sim::engine::Sampling;
use slowstart_study::engines::{Engine, Watched, run_jobs};
use slowstart_study::record::Row;
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Contender, Study, StudyText, check_rows};
use std::collections::BTreeMap;
use std::path::Path;

/// A startup as a caller gives it.
enum Given<'py> {
    Name(String),
    Class(String, Bound<'py, PyAny>),
}

fn given<'py>(startups: Option<&Bound<'py, PyList>>) -> PyResult<Vec<Given<'py>>> {
    let one = |item: Bound<'py, PyAny>| {
        if let Ok(name) = item.extract::<String>() {
            return Ok(Given::Name(name));
        }
        if !item.is_callable() {
            return Err(PyTypeError::new_err("startups: expected names, or classes with a method on_ack"));
        }
        let name = item.getattr("__name__").and_then(|n| n.extract::<String>());
        Ok(Given::Class(name.unwrap_or_else(|_| "python".into()), item))
    };
    startups.iter().flat_map(|l| l.iter()).map(one).collect()
}

/// The checked study of these startups for an engine, those in Python registered.
fn study(engine: &dyn Engine, text: &StudyText, given: Vec<Given<'_>>) -> PyResult<Study> {
    let names: Vec<String> = given
        .iter()
        .filter_map(|g| match g {
            Given::Name(name) => Some(name.clone()),
            Given::Class(..) => None,
        })
        .collect();
    let classes = given.len() - names.len();
    if classes == 0 {
        return engine.study(&StudyText { startups: names, ..text.clone() }, None).map_err(bad);
    }
    if engine.is_real_clock() {
        return Err(bad(format!("startups: the engine {} runs none that is in Python", engine.name())));
    }
    // A startup in Python takes everything but itself from one of the registry.
    let template = StudyText { startups: vec!["standard".into()], ..text.clone() };
    let mut study = engine.study(&template, None).map_err(bad)?;
    let template = study.contenders.remove(0);
    let named = if names.is_empty() {
        Vec::new()
    } else {
        engine.study(&StudyText { startups: names, ..text.clone() }, None).map_err(bad)?.contenders
    };
    let mut named = named.into_iter();
    for one in given {
        let contender = match one {
            Given::Name(_) => named.next(),
            Given::Class(name, class) => Some(Contender {
                label: name.clone(),
                startup_name: name,
                params: BTreeMap::new(),
                startup: Algorithm::Foreign(Foreign::new(&INTERPRETER, register(&class)?)),
                ..template.clone()
            }),
        };
        study.contenders.extend(contender);
    }
    let mut labels: Vec<&String> = study.contenders.iter().map(|c| &c.label).collect();
    labels.sort();
    if let Some(twice) = labels.array_windows().find_map(|[a, b]| (a == b).then_some(a)) {
        return Err(bad(format!("startups: found two with the name {twice}, expected different names")));
    }
    Ok(study)
}

/// Compares startups over a path. Each keyword is a key of a study file.
#[pyfunction]
#[pyo3(signature = (path, startups=None, *, runs=None, seed=None, size=None, duration=None, avoidance=None, profile=None, set=None, app=None, against=None, remember=None, engine=None, baseline=None, margin=None, progress=None, samples=true))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn compare(
    py: Python<'_>,
    path: String,
    startups: Option<&Bound<'_, PyList>>,
    runs: Option<u32>,
    seed: Option<u64>,
    size: Option<String>,
    duration: Option<String>,
    avoidance: Option<String>,
    profile: Option<String>,
    set: Option<BTreeMap<String, String>>,
    app: Option<String>,
    against: Option<Vec<String>>,
    remember: Option<String>,
    engine: Option<String>,
    baseline: Option<String>,
    margin: Option<f64>,
    progress: Option<Py<PyAny>>,
    samples: bool,
) -> PyResult<Comparison> {
    let text = StudyText {
        path,
        engine,
        startups: Vec::new(),
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
    let engine = slowstart_engines::of(None, &text).map_err(bad)?;
    let study = study(&*engine, &text, given(startups)?);
    let result = study.and_then(|study| {
        let labels: Vec<&str> = study.contenders.iter().map(|c| c.label.as_str()).collect();
        let call = format!("slowstart.compare({:?}, startups={labels:?}, runs={})", text.path, study.runs);
        computed(py, &*engine, study, call, Judged::new(baseline, margin), progress.as_ref(), samples)
    });
    forget();
    result
}

/// Runs a study file, or a study in TOML (a text with a line break). `engine` goes before its key `engine`.
#[pyfunction]
#[pyo3(signature = (study, *, engine=None, baseline=None, margin=None, progress=None, samples=true))]
pub(crate) fn run(
    py: Python<'_>,
    study: &str,
    engine: Option<&str>,
    baseline: Option<String>,
    margin: Option<f64>,
    progress: Option<Py<PyAny>>,
    samples: bool,
) -> PyResult<Comparison> {
    let (text, root) = if study.contains('\n') {
        (StudyText::read(study), None)
    } else {
        (StudyText::load(Path::new(study)), Path::new(study).parent())
    };
    let text = text.map_err(bad)?;
    let engine = slowstart_engines::of(engine, &text).map_err(bad)?;
    let checked = engine.study(&text, root).map_err(bad)?;
    let judged = Judged::new(baseline, margin);
    computed(py, &*engine, checked, format!("slowstart.run({study:?})"), judged, progress.as_ref(), samples)
}

/// Handles Ctrl-C, then calls `progress` with the number of finished runs and that of all.
fn report(py: Python<'_>, progress: Option<&Py<PyAny>>, done: usize, of: usize) -> PyResult<()> {
    py.check_signals()?;
    progress.map_or(Ok(()), |p| p.call1(py, (done, of)).map(drop))
}

/// Runs a study.
fn computed(
    py: Python<'_>,
    engine: &dyn Engine,
    study: Study,
    call: String,
    judged: Judged,
    progress: Option<&Py<PyAny>>,
    samples: bool,
) -> PyResult<Comparison> {
    check_rows([&study]).map_err(bad)?;
    judged.check(&study).map_err(bad)?;
    let jobs = study.jobs();
    let mut rows: Vec<Row> = Vec::with_capacity(jobs.len());
    // Samples of runs that cannot be repeated.
    let mut kept = Vec::new();
    let plain: Vec<(Job, Sampling)> = jobs.iter().map(|job| (*job, Sampling::Off)).collect();
    each(py, engine, &study, &plain, |py, outcome| {
        if engine.is_real_clock() {
            kept.push(outcome.trace);
        }
        rows.push(outcome.row);
        report(py, progress, rows.len(), jobs.len())
    })?;
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
        each(py, engine, &study, &chosen, |py, outcome| {
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
    study: &Study,
    jobs: &[(Job, Sampling)],
    mut take: impl FnMut(Python<'_>, Outcome) -> PyResult<()> + Send,
) -> PyResult<()> {
    let run = |(job, sampling): (Job, Sampling)| {
        let watched = Watched { internals: sampling != Sampling::Off, ..Watched::samples(sampling) };
        engine.run(study, job, &watched)
    };
    let is_python =
        |job: &(Job, Sampling)| matches!(study.contenders[job.0.contender].startup, Algorithm::Foreign(_));
    for group in jobs.chunk_by(|a, b| is_python(a) == is_python(b)) {
        if group.first().is_none_or(is_python) {
            for job in group {
                let outcome = run(*job);
                if let Some(raised) = end_of_run() {
                    return Err(in_run(py, study, job.0, raised));
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

/// An exception of a startup, with the run and the event. Ctrl-C and requests to exit stay what they are.
fn in_run(py: Python<'_>, study: &Study, job: Job, (e, event): Raised) -> PyErr {
    if !e.is_instance_of::<PyException>(py) {
        return e;
    }
    let startup = &study.contenders[job.contender].label;
    let kind = e.get_type(py).name().map_or_else(|_| "exception".into(), |n| n.to_string());
    let place = format!("startup {startup}, run {}, {event}: {kind}: {}", job.run, e.value(py));
    let outer = PyRuntimeError::new_err(place);
    outer.set_cause(py, Some(e));
    outer
}
