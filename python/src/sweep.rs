//! Sweeps and their stores.

use crate::bad;
use crate::collector::Collector;
use crate::compare::{self, Given};
use crate::hosted::Classes;
use crate::table::{Table, json};
use crate::watch::watched;
use pyo3::prelude::*;
use serde_json::json;
use slowstart_study::columns::{Cell, Kind};
use slowstart_study::scenario::StudyText;
use slowstart_sweep::map::{self, Place};
use slowstart_sweep::plan::Plan;
use slowstart_sweep::query::{Filter, Query, batches, query as answer};
use slowstart_sweep::run::{self, Shard};
use slowstart_sweep::store::Store;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A sweep: its runs.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Sweep {
    pub(crate) plan: Plan,
    classes: Arc<Classes>,
}

fn store(dir: &Path) -> PyResult<Store> {
    Store::open(dir).map_err(bad)
}

#[pymethods]
impl Sweep {
    /// Reads a sweep from a file, or from TOML (a text with a line break) whose files are relative to `root`.
    /// `engine` goes before its key `engine`, `startups` and `against` before theirs; of classes among them
    /// `hashes` has what their code is, by name.
    #[new]
    #[pyo3(signature = (study, root=None, engine=None, startups=None, against=None, hashes=None))]
    fn new(
        py: Python<'_>,
        study: String,
        root: Option<PathBuf>,
        engine: Option<&str>,
        startups: Given<'_>,
        against: Given<'_>,
        hashes: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let (classes, startups, against) = Classes::read(startups, against)?;
        let classes = Arc::new(classes.hashed(hashes.unwrap_or_default()));
        let make = |text: &mut StudyText| {
            text.startups = startups.unwrap_or_else(|| std::mem::take(&mut text.startups));
            text.against = against.unwrap_or_else(|| std::mem::take(&mut text.against));
            compare::engine_for(engine, text, &classes)
        };
        let plan = py.detach(|| {
            if study.contains('\n') {
                Plan::read_for(&study, root.as_deref(), make).map_err(bad)
            } else {
                Plan::load_for(Path::new(&study), make).map_err(bad)
            }
        });
        Ok(Self { plan: plan?, classes })
    }

    /// The name of the sweep in a store: the hash of all that decides its rows.
    #[getter]
    fn id(&self) -> &str {
        &self.plan.id
    }

    fn __len__(&self) -> usize {
        self.plan.len()
    }

    /// The number of chunks, each of which becomes a part of the store.
    #[getter]
    fn chunks(&self) -> usize {
        self.plan.chunks()
    }

    /// The sweep as it was written.
    #[getter]
    fn text(&self) -> &str {
        &self.plan.text
    }

    /// Computes what is missing in the store; returns how many runs this call computed. `progress(done, of)`
    /// is called about ten times a second.
    #[pyo3(signature = (out, *, threads=None, progress=None, shard=None))]
    fn run(
        &self,
        py: Python<'_>,
        out: PathBuf,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
        shard: Option<&str>,
    ) -> PyResult<usize> {
        let shard = match shard {
            None => Shard::ALL,
            Some(text) => Shard::parse(text)
                .ok_or_else(|| bad(format!("shard: found {text:?}, expected k/n with k from 1 to n")))?,
        };
        let store = Store::create(&out).map_err(bad)?;
        let threads = threads.unwrap_or_else(rayon::current_num_threads);
        let computed = watched(py, self.plan.len(), progress.as_ref(), |each| {
            run::run(&self.plan, &store, shard, threads, each).map(|report| report.computed)
        });
        self.classes.raised().map_or(computed, Err)
    }

    /// Opens the store `out` for rows that other processes compute.
    fn collect(slf: Bound<'_, Self>, out: PathBuf) -> PyResult<Collector> {
        Collector::new(slf.py(), slf.unbind(), out)
    }

    /// Computes the runs of these indices; returns a line of JSON for each. A task for a worker, which needs
    /// no store.
    fn compute(&self, py: Python<'_>, runs: Vec<usize>) -> PyResult<Vec<String>> {
        let all = self.plan.len();
        if let Some(i) = runs.iter().find(|i| **i >= all) {
            return Err(bad(format!("run: found {i}, expected less than {all}")));
        }
        let lines = py.detach(|| run::compute(&self.plan, &runs));
        self.classes.raised().map_or(lines.map_err(bad), Err)
    }

    fn __repr__(&self) -> String {
        format!("<slowstart.Sweep: {} runs in {} chunks>", self.plan.len(), self.plan.chunks())
    }
}

/// Answers a query of a store.
#[pyfunction]
#[pyo3(signature = (store_dir, *, r#where=None, columns=None, group=None, values=None, baseline=None))]
pub(crate) fn query(
    py: Python<'_>,
    store_dir: PathBuf,
    r#where: Option<Vec<String>>,
    columns: Option<Vec<String>>,
    group: Option<Vec<String>>,
    values: Option<Vec<String>>,
    baseline: Option<String>,
) -> PyResult<Table> {
    let store = store(&store_dir)?;
    let filters = filters(r#where)?;
    let q = Query {
        filters,
        columns: columns.unwrap_or_default(),
        group: group.unwrap_or_default(),
        values: values.unwrap_or_else(|| vec!["completion_s".into()]),
        baseline,
    };
    Table::answer(py.detach(|| answer(&store, &q)).map_err(bad)?)
}

fn filters(written: Option<Vec<String>>) -> PyResult<Vec<Filter>> {
    written.unwrap_or_default().iter().map(|f| Filter::parse(f)).collect::<Result<_, _>>().map_err(bad)
}

/// The places of a map.
fn places(
    py: Python<'_>,
    store_dir: &Path,
    (x, y, value): (&str, &str, &str),
    filters: Vec<Filter>,
) -> PyResult<Vec<Place>> {
    let store = store(store_dir)?;
    py.detach(|| map::map(&store, x, y, value, filters)).map_err(bad)
}

/// Which startup is first at each place of two axes, by the median of `value`: a row a place, with how
/// many times as good as the second the first is, and the packets that the first loses in startup.
#[pyfunction]
#[pyo3(signature = (store_dir, x, y, *, value="completion_s", r#where=None))]
pub(crate) fn winners(
    py: Python<'_>,
    store_dir: PathBuf,
    x: &str,
    y: &str,
    value: &str,
    r#where: Option<Vec<String>>,
) -> PyResult<Table> {
    let places = places(py, &store_dir, (x, y, value), filters(r#where)?)?;
    let numbers = |pick: fn(&Place) -> &Cell| {
        let all = places.iter().all(|p| matches!(pick(p), Cell::Number(_) | Cell::Integer(_)));
        if all { Kind::Number } else { Kind::Text }
    };
    let columns = [
        ("x", numbers(|p| &p.x)),
        ("y", numbers(|p| &p.y)),
        ("first", Kind::Text),
        ("value", Kind::Number),
        ("over", Kind::Number),
        ("lost", Kind::Number),
    ];
    let place = |p: &Place| json!({"x": json(&p.x), "y": json(&p.y), "first": p.first().map(|f| &f.name), "value": p.first().map(|f| f.value), "over": p.over(), "lost": p.first().and_then(|f| f.lost)});
    Table::plain(&columns, places.iter().map(place))
}

/// Which startup is first at each place, as a page with a heat map, in HTML.
#[pyfunction]
#[pyo3(signature = (store_dir, x, y, *, value="completion_s", r#where=None))]
pub(crate) fn heatmap(
    py: Python<'_>,
    store_dir: PathBuf,
    x: &str,
    y: &str,
    value: &str,
    r#where: Option<Vec<String>>,
) -> PyResult<String> {
    let places = places(py, &store_dir, (x, y, value), filters(r#where)?)?;
    if places.is_empty() {
        return Err(bad(format!(
            "heatmap: found no place at which a startup has {value}, expected at least one"
        )));
    }
    Ok(map::html(&places, x, y, value))
}

/// The rows of a store.
#[pyfunction]
#[pyo3(signature = (store_dir, columns=None))]
pub(crate) fn rows(py: Python<'_>, store_dir: PathBuf, columns: Option<Vec<String>>) -> PyResult<Table> {
    let store = store(&store_dir)?;
    let (schema, batches) = py.detach(|| batches(&store, &columns.unwrap_or_default())).map_err(bad)?;
    Ok(Table::new(schema, batches))
}
