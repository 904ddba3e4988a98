//! `league`, `suite`, `explain` and `diff`.

use crate::bad;
use crate::compare::{Given, engine_for};
use crate::comparison::Comparison;
use crate::hosted::{Classes, is_python};
use crate::table::Table;
use crate::watch::watched;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde::Serialize;
use slowstart_files::{MOST_TEXT, read_text};
use slowstart_league::game::{self, GAME_SCHEMA};
use slowstart_league::population::{self, Case};
use slowstart_sim::engine::Sampling;
use slowstart_study::columns::{Kind, columns};
use slowstart_study::diff::{self, Line};
use slowstart_study::engines::{EngineError, Watched};
use slowstart_study::explain::{Told, fixed};
use slowstart_study::record::Row;
use slowstart_study::run::{Job, in_order};
use slowstart_study::scenario::StudyText;
use slowstart_suite::run::Settings;
use slowstart_suite::{Suite, report};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Scores startups over populations of paths: a row for each startup in each case, as `slowstart league --json` prints
/// them. Cases that the engine cannot run are left out.
#[pyfunction]
#[pyo3(signature = (startups=None, *, population=None, runs=None, seed=1, avoidance=None, engine=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn league(
    py: Python<'_>,
    startups: Given<'_>,
    population: Option<Vec<String>>,
    runs: Option<u32>,
    seed: u64,
    avoidance: Option<&str>,
    engine: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Table> {
    let (classes, startups, _) = Classes::read(startups, None)?;
    let classes = Arc::new(classes);
    let engine = engine_for(engine, &StudyText::default(), &classes).map_err(bad)?;
    let with = avoidance.unwrap_or("cubic");
    let startups = startups.unwrap_or_else(|| engine.startups(with));
    for startup in &startups {
        engine.contender(startup, with).map_err(bad)?;
    }
    let populations = population::named(&population.unwrap_or_default())
        .map_err(|why| bad(format!("population: {why}")))?;
    let mut cases: Vec<Case> = populations.iter().flat_map(|p| p.cases(seed, p.count(runs))).collect();
    cases.retain(|c| game::check(&*engine, c).is_ok());
    let games: Vec<(&String, &Case)> =
        startups.iter().flat_map(|s| cases.iter().map(move |c| (s, c))).collect();
    let rows = watched(py, games.len(), progress.as_ref(), |each| {
        let play = |(startup, case): &(&String, &Case)| {
            if !each(0, false) {
                return Err(EngineError::Stopped);
            }
            let row = game::play(&*engine, startup, avoidance, case, &|| !each(0, false));
            each(1, true);
            row
        };
        if engine.is_real_clock() {
            games.iter().map(play).collect::<Result<Vec<_>, _>>()
        } else {
            let mut rows = Vec::with_capacity(games.len());
            in_order(&games, |game| play(&game), |row| row.map(|row| rows.push(row)))?;
            Ok(rows)
        }
    });
    if let Some(raised) = classes.raised() {
        return Err(raised);
    }
    Table::of(columns(GAME_SCHEMA), rows?)
}

/// The report of a suite.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Report {
    suite: Suite,
    report: slowstart_suite::Report,
}

/// A criterion of one startup in a table.
#[derive(Serialize)]
struct EntryRow<'a> {
    scenario: &'a str,
    section: &'a str,
    criterion: &'a str,
    startup: &'a str,
    verdict: slowstart_suite::Verdict,
    value: Option<f64>,
    limit: Option<f64>,
    excess_low: Option<f64>,
    excess_high: Option<f64>,
    runs: usize,
    never: u32,
    runs_to_decide: Option<u32>,
}

#[pymethods]
impl Report {
    /// A row for each criterion of each scenario and startup.
    #[getter]
    fn entries(&self) -> PyResult<Table> {
        let columns = [
            ("scenario", Kind::Text),
            ("section", Kind::Text),
            ("criterion", Kind::Text),
            ("startup", Kind::Text),
            ("verdict", Kind::Text),
            ("value", Kind::Number),
            ("limit", Kind::Number),
            ("excess_low", Kind::Number),
            ("excess_high", Kind::Number),
            ("runs", Kind::Integer),
            ("never", Kind::Integer),
            ("runs_to_decide", Kind::Integer),
        ];
        let row = |e: &'_ slowstart_suite::run::Entry| {
            serde_json::to_value(EntryRow {
                scenario: &e.scenario,
                section: &e.section,
                criterion: &e.criterion,
                startup: &e.startup,
                verdict: e.verdict,
                value: e.value,
                limit: e.limit,
                excess_low: e.excess.map(|x| x[0]),
                excess_high: e.excess.map(|x| x[1]),
                runs: e.values.len(),
                never: e.never,
                runs_to_decide: e.runs_to_decide,
            })
        };
        let rows = self.report.entries.iter().map(row).collect::<Result<Vec<_>, _>>().map_err(bad)?;
        Table::plain(&columns, rows)
    }

    /// True if no criterion is not met.
    #[getter]
    fn passed(&self) -> bool {
        self.report.passed()
    }

    /// Scenarios that did not run, each with why.
    #[getter]
    fn left_out(&self) -> Vec<(String, String)> {
        self.report.left_out.iter().map(|l| (l.scenario.clone(), l.why.clone())).collect()
    }

    /// The report in Markdown.
    fn markdown(&self) -> String {
        report::markdown(&self.suite, &self.report)
    }

    /// The report as a page.
    fn html(&self) -> String {
        report::html(&self.suite, &self.report)
    }

    /// The report as JSON, with which `slowstart suite run --against-baseline` compares.
    fn json(&self) -> PyResult<String> {
        report::json(&self.report).map_err(bad)
    }

    fn _repr_markdown_(&self) -> String {
        self.markdown()
    }
}

/// Judges startups by the sections of RFC 9743, or by the suite in `file`.
#[pyfunction]
#[pyo3(signature = (startups=None, *, scenarios=None, runs=None, seed=1, avoidance=None, engine=None, file=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn suite(
    py: Python<'_>,
    startups: Given<'_>,
    scenarios: Option<Vec<String>>,
    runs: Option<u32>,
    seed: u64,
    avoidance: Option<&str>,
    engine: Option<&str>,
    file: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Report> {
    let (classes, startups, _) = Classes::read(startups, None)?;
    let classes = Arc::new(classes);
    let engine = engine_for(engine, &StudyText::default(), &classes).map_err(bad)?;
    let mut suite = match file {
        None => Suite::built_in(),
        Some(file) => {
            let named = |e: &dyn std::fmt::Display| bad(format!("{}: {e}", file.display()));
            Suite::read(&read_text(&file, MOST_TEXT).map_err(|e| named(&e))?).map_err(|e| named(&e))?
        }
    };
    if let Some(wanted) = scenarios {
        if let Some(unknown) = wanted.iter().find(|n| suite.scenarios.iter().all(|s| s.name != **n)) {
            let names: Vec<&str> = suite.scenarios.iter().map(|s| s.name.as_str()).collect();
            return Err(bad(format!("scenarios: found {unknown:?}, expected some of {}", names.join(", "))));
        }
        suite.scenarios.retain(|s| wanted.contains(&s.name));
    }
    let avoidance = avoidance.unwrap_or("cubic").to_string();
    let startups = startups.unwrap_or_else(|| engine.startups(&avoidance));
    let settings = Settings { startups, avoidance, seed, runs };
    let report = watched(py, suite.scenarios.len(), progress.as_ref(), |each| {
        let step = |_: &_, done: usize, _: usize| {
            each(usize::from(done > 0), true);
        };
        slowstart_suite::run::run(&suite, &settings, &*engine, &|| !each(0, false), step)
    });
    if let Some(raised) = classes.raised() {
        return Err(raised);
    }
    Ok(Report { report: report?, suite })
}

/// One run of a startup in sentences: what it saw, what it did, why it left, and what that cost.
#[pyfunction]
#[pyo3(signature = (path, startup, *, run=0, seed=None, size=None, avoidance=None, profile=None, against=None, engine=None))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn explain(
    py: Python<'_>,
    path: String,
    startup: Bound<'_, PyAny>,
    run: u32,
    seed: Option<u64>,
    size: Option<String>,
    avoidance: Option<String>,
    profile: Option<String>,
    against: Given<'_>,
    engine: Option<&str>,
) -> PyResult<String> {
    let (classes, startups, against) = Classes::read(Some(vec![startup]), against)?;
    let classes = Arc::new(classes);
    let runs = run.checked_add(1).ok_or_else(|| bad("run: too large"))?;
    let text = StudyText {
        path,
        startups: startups.unwrap_or_default(),
        against: against.unwrap_or_default(),
        runs: Some(runs),
        seed,
        size,
        avoidance,
        profile,
        ..StudyText::default()
    };
    let engine = engine_for(engine, &text, &classes).map_err(bad)?;
    let study = engine.study(&text, None).map_err(bad)?;
    let play = || {
        let watched = Watched { internals: true, ..Watched::samples(Sampling::EachAck) };
        engine.run(&study, Job { contender: 0, run }, &watched)
    };
    let outcome = if is_python(&study, 0) { play() } else { py.detach(play) };
    if let Some(raised) = classes.raised() {
        return Err(raised);
    }
    let outcome = outcome.map_err(bad)?;
    if outcome.trace.samples.is_empty() {
        return Err(bad(format!(
            "no acknowledgement arrived in {} s: nothing to explain",
            outcome.row.duration_s
        )));
    }
    let told = Told::new(&study, &outcome.row, &outcome.trace, outcome.measured.packet.payload);
    let mut out = told.heading() + "\n";
    for (at, text) in told.timeline() {
        let _ = writeln!(out, "{:>9} s  {text}", fixed(at));
    }
    out += "\nWhat that cost\n";
    for text in told.costs() {
        let _ = writeln!(out, "  {text}");
    }
    Ok(out)
}

/// The rows of a result: a comparison, several, or what `compare --out` wrote.
fn rows_of(result: &Bound<'_, PyAny>) -> PyResult<Vec<Row>> {
    if let Ok(comparison) = result.cast::<Comparison>() {
        return Ok(comparison.get().rows.clone());
    }
    if let Ok(path) = result.extract::<PathBuf>() {
        return diff::rows(&path).map_err(bad);
    }
    let several = result.try_iter().map_err(|_| {
        PyTypeError::new_err("diff: expected a Comparison, several, or a folder or file of rows")
    })?;
    Ok(several.map(|one| rows_of(&one?)).collect::<PyResult<Vec<_>>>()?.concat())
}

/// Compares two results startup by startup: a row for each startup of each path, as `slowstart diff --json` prints them.
#[pyfunction]
#[pyo3(name = "diff", signature = (a, b, *, margin=3.0))]
pub(crate) fn diff_(
    py: Python<'_>,
    a: Bound<'_, PyAny>,
    b: Bound<'_, PyAny>,
    margin: f64,
) -> PyResult<Table> {
    if !(0.0..=100.0).contains(&margin) {
        return Err(bad(format!("margin: found {margin}, expected 0 to 100 percent")));
    }
    let (a, b) = (rows_of(&a)?, rows_of(&b)?);
    let lines = py.detach(|| diff::diff(a, b, margin / 100.0));
    let columns = [
        ("path", Kind::Text),
        ("startup", Kind::Text),
        ("b_is", Kind::Text),
        ("why", Kind::Text),
        ("open", Kind::Text),
        ("measure", Kind::Text),
        ("a_runs", Kind::Integer),
        ("a_unfinished", Kind::Integer),
        ("a_median", Kind::Number),
        ("a_low", Kind::Number),
        ("a_high", Kind::Number),
        ("b_runs", Kind::Integer),
        ("b_unfinished", Kind::Integer),
        ("b_median", Kind::Number),
        ("b_low", Kind::Number),
        ("b_high", Kind::Number),
        ("pairs", Kind::Integer),
        ("percent", Kind::Number),
        ("percent_low", Kind::Number),
        ("percent_high", Kind::Number),
    ];
    let row = |line: &Line| {
        let mut row = serde_json::json!({
            "path": line.path, "startup": line.startup, "b_is": line.b_is, "why": line.why.join("; "), "open": line.open.join("; "),
            "measure": line.measure, "pairs": line.pairs,
            "percent": line.percent.map(|p| p[0]), "percent_low": line.percent.map(|p| p[1]),
            "percent_high": line.percent.map(|p| p[2]),
        });
        for (name, side) in [("a", &line.a), ("b", &line.b)] {
            let median = |i: usize| side.as_ref().and_then(|s| s.median).map(|m| m[i]);
            row[format!("{name}_runs")] = side.as_ref().map(|s| s.runs).into();
            row[format!("{name}_unfinished")] = side.as_ref().map(|s| s.unfinished).into();
            row[format!("{name}_median")] = median(0).into();
            row[format!("{name}_low")] = median(1).into();
            row[format!("{name}_high")] = median(2).into();
        }
        row
    };
    Table::plain(&columns, lines.iter().map(row))
}
