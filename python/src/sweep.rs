//! Sweeps and their stores.

use crate::bad;
use crate::table::Table;
use pyo3::prelude::*;
use serde_json::json;
use slowstart_lab::columns::{Cell, Kind};
use slowstart_sweep::map;
use slowstart_sweep::plan::{Plan, Run};
use slowstart_sweep::query::{self, Filter, Query};
use slowstart_sweep::run::{self, Shard};
use slowstart_sweep::store::{Claim, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How often Ctrl-C and the progress bar are looked after.
const LOOK: Duration = Duration::from_millis(100);

/// A sweep and its store.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Sweep {
    plan: Plan,
    /// Chunks that this object has taken for a scheduler, with their journals.
    taken: Mutex<BTreeMap<usize, slowstart_sweep::store::Chunk>>,
}

fn store(dir: &str) -> PyResult<Store> {
    Store::open(Path::new(dir)).map_err(bad)
}

#[pymethods]
impl Sweep {
    /// Reads a sweep from a file, or from TOML (a text with a line break) whose files are relative to `root`.
    #[new]
    #[pyo3(signature = (study, root=None))]
    fn new(py: Python<'_>, study: String, root: Option<PathBuf>) -> PyResult<Self> {
        let plan = py.detach(|| {
            if study.contains('\n') {
                Plan::read(&study, root.as_deref())
            } else {
                Plan::load(Path::new(&study))
            }
        });
        Ok(Self { plan: plan.map_err(bad)?, taken: Mutex::default() })
    }

    fn __len__(&self) -> usize {
        self.plan.runs.len()
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

    /// Computes what is missing in the store; returns how many runs this call computed. `progress(done, of)` is called about
    /// ten times a second.
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
        let (done, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let each = |n: usize, _: bool| {
            done.fetch_add(n, Ordering::Relaxed);
            !stop.load(Ordering::Relaxed)
        };
        let total = self.plan.runs.len();
        py.detach(|| {
            std::thread::scope(|scope| {
                let work = scope.spawn(|| run::run(&self.plan, &store, shard, threads, &each));
                let mut raised = None;
                while !work.is_finished() {
                    std::thread::sleep(LOOK);
                    if raised.is_none() {
                        raised = Python::attach(|py| {
                            py.check_signals()?;
                            let done = done.load(Ordering::Relaxed);
                            progress.as_ref().map_or(Ok(()), |p| p.call1(py, (done, total)).map(drop))
                        })
                        .err();
                        stop.store(raised.is_some(), Ordering::Relaxed);
                    }
                }
                let report = work.join().map_err(|_| bad("a run ended without a result"))?;
                raised.map_or(Ok(()), Err)?;
                Ok(report.map_err(bad)?.computed)
            })
        })
    }

    /// Takes the chunks that are not finished, and returns the indices of the runs that each lacks. A chunk that another
    /// process computes is not among them.
    fn take(&self, out: PathBuf) -> PyResult<Vec<(usize, Vec<usize>)>> {
        let store = Store::create(&out).map_err(bad)?;
        store.start(&self.plan).map_err(bad)?;
        let index: BTreeMap<u128, usize> =
            self.plan.runs.iter().enumerate().map(|(i, r)| (r.key, i)).collect();
        let mut all = Vec::new();
        let mut taken = self.taken.lock().map_err(bad)?;
        for (chunk, runs) in run::missing(&self.plan, &store, Shard::ALL).map_err(bad)? {
            let Claim::Ours(ours) = store.claim(&self.plan, chunk).map_err(bad)? else { continue };
            let lacks =
                runs.iter().filter(|r| !ours.lines.contains_key(&r.key)).map(|r| index[&r.key]).collect();
            taken.insert(chunk, ours);
            all.push((chunk, lacks));
        }
        Ok(all)
    }

    /// Computes the runs of these indices; returns a line of JSON for each. A task for a worker, which needs no store.
    fn compute(&self, py: Python<'_>, runs: Vec<usize>) -> PyResult<Vec<String>> {
        let all = self.plan.runs.len();
        let runs: Vec<Run> = runs
            .into_iter()
            .map(|i| {
                self.plan
                    .runs
                    .get(i)
                    .copied()
                    .ok_or_else(|| bad(format!("run: found {i}, expected less than {all}")))
            })
            .collect::<PyResult<_>>()?;
        py.detach(|| run::compute(&self.plan, &runs)).map_err(bad)
    }

    /// Adds lines to a chunk that was taken. When all of its runs are there, it becomes a part; returns true then.
    fn add(&self, out: PathBuf, chunk: usize, runs: Vec<usize>, lines: Vec<String>) -> PyResult<bool> {
        let store = Store::create(&out).map_err(bad)?;
        let mut taken = self.taken.lock().map_err(bad)?;
        let ours =
            taken.get_mut(&chunk).ok_or_else(|| bad(format!("chunk: found {chunk}, which was not taken")))?;
        for (i, line) in runs.into_iter().zip(lines) {
            let key = self.plan.runs[i].key;
            // A task that ran twice gives the same line.
            if !ours.lines.contains_key(&key) {
                ours.append(key, line).map_err(bad)?;
            }
        }
        let others = store.keys_of_others(&self.plan).map_err(bad)?;
        let wanted: Vec<&Run> =
            self.plan.chunk_runs(chunk).iter().filter(|r| !others.contains(&r.key)).collect();
        if !wanted.iter().all(|r| ours.lines.contains_key(&r.key)) {
            return Ok(false);
        }
        if let Some(ours) = taken.remove(&chunk) {
            run::finish(&self.plan, ours, &wanted).map_err(bad)?;
        }
        Ok(true)
    }

    /// Releases the chunks that are not finished, and writes the manifest.
    fn close(&self, out: PathBuf) -> PyResult<()> {
        self.taken.lock().map_err(bad)?.clear();
        Store::open(&out).and_then(|s| s.write_manifest()).map(drop).map_err(bad)
    }

    fn __repr__(&self) -> String {
        format!("<slowstart.Sweep: {} runs in {} chunks>", self.plan.runs.len(), self.plan.chunks())
    }
}

/// Answers a query of a store.
#[pyfunction]
#[pyo3(signature = (store_dir, *, r#where=None, columns=None, group=None, values=None))]
pub(crate) fn query(
    py: Python<'_>,
    store_dir: &str,
    r#where: Option<Vec<String>>,
    columns: Option<Vec<String>>,
    group: Option<Vec<String>>,
    values: Option<Vec<String>>,
) -> PyResult<Table> {
    let store = store(store_dir)?;
    let filters = filters(r#where)?;
    let q = Query {
        filters,
        columns: columns.unwrap_or_default(),
        group: group.unwrap_or_default(),
        values: values.unwrap_or_else(|| vec!["completion_s".into()]),
    };
    Table::answer(py.detach(|| query::query(&store, &q)).map_err(bad)?)
}

fn filters(written: Option<Vec<String>>) -> PyResult<Vec<Filter>> {
    written.unwrap_or_default().iter().map(|f| Filter::parse(f)).collect::<Result<_, _>>().map_err(bad)
}

/// Which startup is first at each place of two axes: a map as a table.
#[pyfunction]
#[pyo3(signature = (store_dir, x, y, *, value="completion_s", r#where=None))]
pub(crate) fn winners(
    py: Python<'_>,
    store_dir: &str,
    x: &str,
    y: &str,
    value: &str,
    r#where: Option<Vec<String>>,
) -> PyResult<Table> {
    let store = store(store_dir)?;
    let filters = filters(r#where)?;
    let places = py.detach(|| map::map(&store, x, y, value, filters)).map_err(bad)?;
    let cell = |c: &Cell| match c {
        Cell::Number(n) => json!(n),
        Cell::Integer(n) => json!(n),
        other => json!(other.text()),
    };
    let numbers = |pick: fn(&map::Place) -> &Cell| {
        let all = places.iter().all(|p| matches!(pick(p), Cell::Number(_) | Cell::Integer(_)));
        if all { Kind::Number } else { Kind::Text }
    };
    let rows: Vec<_> = places
        .iter()
        .map(|p| json!({"x": cell(&p.x), "y": cell(&p.y), "first": p.first, "value": p.value, "over": p.over, "lost": p.lost}))
        .collect();
    let columns = [
        ("x", numbers(|p| &p.x)),
        ("y", numbers(|p| &p.y)),
        ("first", Kind::Text),
        ("value", Kind::Number),
        ("over", Kind::Number),
        ("lost", Kind::Number),
    ];
    Table::plain(&columns, &rows)
}

/// The rows of a store.
#[pyfunction]
#[pyo3(signature = (store_dir, columns=None))]
pub(crate) fn rows(py: Python<'_>, store_dir: &str, columns: Option<Vec<String>>) -> PyResult<Table> {
    let store = store(store_dir)?;
    let (schema, batches) =
        py.detach(|| query::batches(&store, &columns.unwrap_or_default())).map_err(bad)?;
    Ok(Table::new(schema, batches))
}
