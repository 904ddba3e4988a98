//! `compare` and `run`.

use crate::bad;
use crate::startup::{Python_, end_of_run, forget, register};
use crate::table::Table;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde::Serialize;
use slowstart::registry::Algorithm;
use slowstart::startup::foreign::Foreign;
use slowstart::units::Span;
use slowstart_lab::columns::columns;
use slowstart_lab::engine::Sampling;
use slowstart_lab::record::{EVENT_SCHEMA, ROW_SCHEMA, Row, SAMPLE_SCHEMA, Trace};
use slowstart_lab::report::study::middle;
use slowstart_lab::report::summary::label;
use slowstart_lab::report::{self, Page, Series};
use slowstart_lab::run::{Job, in_order};
use slowstart_lab::scenario::{Contender, Study, StudyText};
use std::collections::BTreeMap;
use std::path::Path;

/// Samples of a run that is drawn.
const SAMPLES: f64 = 4000.0;

static PYTHON: Python_ = Python_;

/// The result of a comparison or a study.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Comparison {
    rows: Vec<Row>,
    drawn: Vec<(String, Row, Trace)>,
    name: String,
    start_s: f64,
    mss: u64,
}

/// A sample or an event with its startup and run.
#[derive(Serialize)]
struct Of<'a, T> {
    startup: &'a str,
    run: u32,
    #[serde(flatten)]
    what: &'a T,
}

#[pymethods]
impl Comparison {
    /// A row for each run: see docs/rows.md.
    #[getter]
    fn rows(&self) -> PyResult<Table> {
        Table::of(columns(ROW_SCHEMA), &self.rows)
    }

    /// The median run of each startup over time.
    #[getter]
    fn samples(&self) -> PyResult<Table> {
        let all = self.drawn.iter().flat_map(|(startup, row, trace)| {
            trace.samples.iter().map(move |what| Of { startup, run: row.run, what })
        });
        Table::of(columns(SAMPLE_SCHEMA), &all.collect::<Vec<_>>())
    }

    /// The events of the median run of each startup.
    #[getter]
    fn events(&self) -> PyResult<Table> {
        let all = self.drawn.iter().flat_map(|(startup, row, trace)| {
            trace.events.iter().map(move |what| Of { startup, run: row.run, what })
        });
        Table::of(columns(EVENT_SCHEMA), &all.collect::<Vec<_>>())
    }

    /// Which startup suits the path, and why, in a sentence.
    #[getter]
    fn verdict(&self) -> String {
        report::verdict(&self.rows)
    }

    /// The page with the table and a chart for each startup, as HTML.
    fn html(&self) -> String {
        let series: Vec<Series<'_>> = self
            .drawn
            .iter()
            .map(|(label, row, trace)| Series {
                label,
                row,
                samples: &trace.samples,
                start_s: self.start_s,
                mss: self.mss,
            })
            .collect();
        report::html(&Page {
            title: &format!("slowstart: {}", self.name),
            about: "",
            verdict: &self.verdict(),
            command: "slowstart.compare",
            rows: &self.rows,
            opinions: None,
            series: &series,
            caveats: &[],
        })
    }

    fn _repr_html_(&self) -> String {
        let page = self.html().replace('&', "&amp;").replace('"', "&quot;");
        format!("<iframe srcdoc=\"{page}\" width=\"100%\" height=\"600\" frameborder=\"0\"></iframe>")
    }

    fn __repr__(&self) -> String {
        format!("<slowstart.Comparison over {}: {} rows. {}>", self.name, self.rows.len(), self.verdict())
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }
}

/// Splits what was given as startups into names and classes.
fn contenders(
    startups: Option<&Bound<'_, PyList>>,
) -> PyResult<(Vec<String>, Vec<(usize, String, Py<PyAny>)>)> {
    let (mut names, mut classes) = (Vec::new(), Vec::new());
    for (i, given) in startups.iter().flat_map(|l| l.iter()).enumerate() {
        if let Ok(name) = given.extract::<String>() {
            names.push(name);
        } else if given.is_callable() {
            let name = given.getattr("__name__").and_then(|n| n.extract::<String>());
            classes.push((i, name.unwrap_or_else(|_| "python".into()), given.unbind()));
            // Its place; the class takes it once the study is checked.
            names.push("standard".into());
        } else {
            return Err(PyTypeError::new_err("startups: expected names, or classes with a method on_ack"));
        }
    }
    Ok((names, classes))
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
    let (names, classes) = contenders(startups)?;
    let text = StudyText {
        path,
        startups: names,
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
    let mut study = Study::check(&text, None).map_err(bad)?;
    if classes.is_empty() {
        return finished(py, &study, progress.as_ref(), samples);
    }
    for (i, name, class) in classes {
        let number = register(class.bind(py))?;
        let contender = &mut study.contenders[i];
        *contender = Contender {
            label: name.clone(),
            startup_name: name,
            startup: Algorithm::Foreign(Foreign::new(&PYTHON, number)),
            ..contender.clone()
        };
    }
    let result = in_python(py, &study, progress.as_ref(), samples);
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
    let study = if study.contains('\n') {
        Study::read(study, None).map_err(bad)?
    } else {
        Study::load(Path::new(study)).map_err(bad)?
    };
    finished(py, &study, progress.as_ref(), samples)
}

fn tell(py: Python<'_>, progress: Option<&Py<PyAny>>, done: usize, of: usize) -> PyResult<()> {
    py.check_signals()?;
    progress.map_or(Ok(()), |p| p.call1(py, (done, of)).map(drop))
}

/// Runs a study on all processors, without the interpreter.
fn finished(
    py: Python<'_>,
    study: &Study,
    progress: Option<&Py<PyAny>>,
    samples: bool,
) -> PyResult<Comparison> {
    let jobs = study.jobs();
    let mut rows = Vec::new();
    py.detach(|| {
        in_order(
            &jobs,
            |job| study.run(job, Sampling::Off, false),
            |outcome| {
                rows.push(outcome.row);
                Python::attach(|py| tell(py, progress, rows.len(), jobs.len()))
            },
        )
    })?;
    let drawn = if samples { py.detach(|| draw(study, &rows)) } else { Vec::new() };
    Ok(comparison(study, rows, drawn))
}

/// Runs a study with startups in Python on this thread.
fn in_python(
    py: Python<'_>,
    study: &Study,
    progress: Option<&Py<PyAny>>,
    samples: bool,
) -> PyResult<Comparison> {
    let jobs = study.jobs();
    let mut rows = Vec::new();
    let one = |job: Job, sampling, internals| {
        let outcome = study.run(job, sampling, internals);
        match end_of_run() {
            None => Ok(outcome),
            Some((e, what)) => {
                if !e.is_instance_of::<pyo3::exceptions::PyException>(py) {
                    return Err(e);
                }
                let startup = &study.contenders[job.contender].label;
                let place = format!("startup {startup}, run {}: {what}: {}", job.run, e.value(py));
                let outer = PyRuntimeError::new_err(place);
                outer.set_cause(py, Some(e));
                Err(outer)
            }
        }
    };
    for job in &jobs {
        rows.push(one(*job, Sampling::Off, false)?.row);
        tell(py, progress, rows.len(), jobs.len())?;
    }
    let mut drawn = Vec::new();
    if samples {
        for (job, sampling, row) in chosen(study, &rows) {
            drawn.push((label(row), row.clone(), one(job, sampling, true)?.trace));
        }
    }
    Ok(comparison(study, rows, drawn))
}

/// The median run of each startup, and how it is sampled.
fn chosen<'a>(study: &Study, rows: &'a [Row]) -> Vec<(Job, Sampling, &'a Row)> {
    let runs = rows.chunks(study.runs as usize).enumerate();
    runs.map(|(contender, rows)| {
        let row = middle(rows);
        let interval = Span(((row.duration_s / SAMPLES * 1e9) as u64).clamp(50_000, 100_000_000));
        (Job { contender, run: row.run }, Sampling::Every(interval), row)
    })
    .collect()
}

fn draw(study: &Study, rows: &[Row]) -> Vec<(String, Row, Trace)> {
    let chosen = chosen(study, rows).into_iter();
    chosen
        .map(|(job, sampling, row)| (label(row), row.clone(), study.run(job, sampling, true).trace))
        .collect()
}

fn comparison(study: &Study, rows: Vec<Row>, drawn: Vec<(String, Row, Trace)>) -> Comparison {
    Comparison {
        rows,
        drawn,
        name: study.path.name.clone(),
        start_s: Span(study.start().0).as_secs_f64(),
        mss: u64::from(study.profile.mss),
    }
}
