//! `compare` and `run`.

use crate::bad;
use crate::comparison::Comparison;
use crate::connection::{INTERPRETER, Raised, end_of_run, forget, register};
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use slowstart::registry::Algorithm;
use slowstart::startup::foreign::Foreign;
use slowstart_lab::engine::Sampling;
use slowstart_lab::record::Row;
use slowstart_lab::report::study::{middle, sampling};
use slowstart_lab::run::{Job, Outcome, in_order};
use slowstart_lab::scenario::{Contender, Study, StudyText};
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

/// The checked study of these startups, those in Python registered.
fn study(text: &StudyText, given: Vec<Given<'_>>) -> PyResult<Study> {
    let names: Vec<String> = given
        .iter()
        .filter_map(|g| match g {
            Given::Name(name) => Some(name.clone()),
            Given::Class(..) => None,
        })
        .collect();
    let classes = given.len() - names.len();
    if classes == 0 {
        return Study::check(&StudyText { startups: names, ..text.clone() }, None).map_err(bad);
    }
    // A startup in Python takes everything but itself from one of the registry.
    let template = StudyText { startups: vec!["standard".into()], ..text.clone() };
    let mut study = Study::check(&template, None).map_err(bad)?;
    let template = study.contenders.remove(0);
    let named = if names.is_empty() {
        Vec::new()
    } else {
        Study::check(&StudyText { startups: names, ..text.clone() }, None).map_err(bad)?.contenders
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
#[pyo3(signature = (path, startups=None, *, runs=None, seed=None, size=None, duration=None, avoidance=None, profile=None, set=None, app=None, against=None, remember=None, progress=None, samples=true))]
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
    progress: Option<Py<PyAny>>,
    samples: bool,
) -> PyResult<Comparison> {
    let text = StudyText {
        path,
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
    let study = study(&text, given(startups)?);
    let result = study.and_then(|study| {
        let labels: Vec<&str> = study.contenders.iter().map(|c| c.label.as_str()).collect();
        let call = format!("slowstart.compare({:?}, startups={labels:?}, runs={})", text.path, study.runs);
        computed(py, study, call, progress.as_ref(), samples)
    });
    forget();
    result
}

/// Runs a study file, or a study in TOML (a text with a line break).
#[pyfunction]
#[pyo3(signature = (study, *, progress=None, samples=true))]
pub(crate) fn run(
    py: Python<'_>,
    study: &str,
    progress: Option<Py<PyAny>>,
    samples: bool,
) -> PyResult<Comparison> {
    let checked = if study.contains('\n') { Study::read(study, None) } else { Study::load(Path::new(study)) };
    computed(py, checked.map_err(bad)?, format!("slowstart.run({study:?})"), progress.as_ref(), samples)
}

/// Handles Ctrl-C, then calls `progress` with the number of finished runs and that of all.
fn report(py: Python<'_>, progress: Option<&Py<PyAny>>, done: usize, of: usize) -> PyResult<()> {
    py.check_signals()?;
    progress.map_or(Ok(()), |p| p.call1(py, (done, of)).map(drop))
}

/// Runs a study.
fn computed(
    py: Python<'_>,
    study: Study,
    call: String,
    progress: Option<&Py<PyAny>>,
    samples: bool,
) -> PyResult<Comparison> {
    let jobs = study.jobs();
    let mut rows: Vec<Row> = Vec::with_capacity(jobs.len());
    let plain: Vec<(Job, Sampling)> = jobs.iter().map(|job| (*job, Sampling::Off)).collect();
    each(py, &study, &plain, |py, outcome| {
        rows.push(outcome.row);
        report(py, progress, rows.len(), jobs.len())
    })?;
    let mut median = Vec::new();
    if samples {
        // The median run of each startup once more, with samples.
        let runs = study.runs as usize;
        let chosen = rows.chunks(runs).enumerate().map(|(contender, rows)| {
            let row = middle(rows);
            (Job { contender, run: row.run }, sampling(row))
        });
        each(py, &study, &chosen.collect::<Vec<_>>(), |py, outcome| {
            median.push((outcome.job.contender * runs + outcome.job.run as usize, outcome.trace));
            report(py, progress, rows.len(), jobs.len())
        })?;
    }
    Ok(Comparison { study, call, rows, median })
}

/// Runs jobs, those of native startups on all processors without the interpreter, those of startups in Python on this
/// thread. `take` gets the outcomes in order of the jobs.
fn each(
    py: Python<'_>,
    study: &Study,
    jobs: &[(Job, Sampling)],
    mut take: impl FnMut(Python<'_>, Outcome) -> PyResult<()> + Send,
) -> PyResult<()> {
    let run = |(job, sampling): (Job, Sampling)| study.run(job, sampling, sampling != Sampling::Off);
    let is_python =
        |job: &(Job, Sampling)| matches!(study.contenders[job.0.contender].startup, Algorithm::Foreign(_));
    for group in jobs.chunk_by(|a, b| is_python(a) == is_python(b)) {
        if group.first().is_none_or(is_python) {
            for job in group {
                let outcome = run(*job);
                if let Some(raised) = end_of_run() {
                    return Err(in_run(py, study, job.0, raised));
                }
                take(py, outcome)?;
            }
        } else {
            py.detach(|| in_order(group, run, |outcome| Python::attach(|py| take(py, outcome))))?;
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
