//! Many captures and logs, replayed into a store.

use crate::bad;
use crate::replay::candidates;
use crate::table::Table;
use crate::watch::watched;
use pyo3::prelude::*;
use serde_json::json;
use slowstart_replay::folder::expand;
use slowstart_replay::population::{Exited, Population};
use slowstart_replay::replay::Options;
use slowstart_replay::transfer::ExitClass;
use slowstart_study::columns::Kind;
use slowstart_sweep::captures::{self, Collector, lines_of};
use slowstart_sweep::plan::results_version;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Captures and logs to replay with the same startups; folders stand for the files in them.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Captures {
    files: captures::Captures,
    startups: Vec<String>,
    options: Options,
}

/// The options of a replay, with the names of its startups.
fn options(startups: Option<Vec<String>>, min_bytes: u64) -> PyResult<(Vec<String>, Options)> {
    let candidates = candidates(startups)?;
    let names = candidates.iter().map(|c| c.label.clone()).collect();
    Ok((names, Options { candidates, min_bytes, ..Options::default() }))
}

#[pymethods]
impl Captures {
    #[new]
    #[pyo3(signature = (files, startups=None, *, min_bytes=0))]
    fn new(
        py: Python<'_>,
        files: Vec<PathBuf>,
        startups: Option<Vec<String>>,
        min_bytes: u64,
    ) -> PyResult<Self> {
        let (startups, options) = options(startups, min_bytes)?;
        let files = py.detach(|| {
            let files = expand(&files)?;
            Ok::<_, std::io::Error>(captures::Captures::new(&files, &startups, &options))
        });
        Ok(Self { files: files.map_err(bad)?, startups, options })
    }

    fn __len__(&self) -> usize {
        self.files.len()
    }

    /// The startups.
    #[getter]
    fn startups(&self) -> Vec<String> {
        self.startups.clone()
    }

    /// Reads what is missing in the store; returns how many files this call read. `progress(done, of)` is
    /// called about ten times a second.
    #[pyo3(signature = (out, *, threads=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        out: PathBuf,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<usize> {
        let store = captures::create(&out).map_err(bad)?;
        let threads = threads.unwrap_or_else(rayon::current_num_threads);
        watched(py, self.files.len(), progress.as_ref(), |each| {
            self.files.run(&store, &self.options, threads, each).map(|report| report.read)
        })
    }

    /// What became of the files, from a store that has them: a row a file.
    fn records(&self, py: Python<'_>, out: PathBuf) -> PyResult<Table> {
        let records = py.detach(|| {
            let store = captures::create(&out)?;
            self.files.records(&store)
        });
        let columns = [
            ("file", Kind::Text),
            ("key", Kind::Text),
            ("bytes", Kind::Integer),
            ("rows", Kind::Integer),
            ("left_out", Kind::Integer),
            ("failed", Kind::Boolean),
            ("error", Kind::Text),
        ];
        Table::plain(&columns, records.map_err(bad)?)
    }

    /// How the transfers of the files left slow start, from a store that has them, and what each startup would have done: a
    /// row for what was observed, and one a startup.
    fn population(&self, py: Python<'_>, out: PathBuf) -> PyResult<Table> {
        let mut all = Population::default();
        py.detach(|| {
            let store = captures::create(&out)?;
            self.files.transfers(&store, |t| all.add(t))
        })
        .map_err(bad)?;
        let row = |e: Exited| {
            let mut row = json!({
                "startup": e.startup,
                "full_before_loss": e.full_before_loss,
                "later_than_early": e.later_than_early,
            });
            for (class, n) in ExitClass::ALL.iter().zip(e.classes) {
                row[class.name()] = n.into();
            }
            for (name, spread) in [("exit_s", e.exit_s), ("window_segments", e.window_segments)] {
                row[format!("{name}_median")] = spread.map(|s| s.median).into();
                row[format!("{name}_low")] = spread.map(|s| s.low).into();
                row[format!("{name}_high")] = spread.map(|s| s.high).into();
            }
            row
        };
        let mut columns = vec![("startup", Kind::Text)];
        columns.extend(ExitClass::ALL.map(|class| (class.name(), Kind::Integer)));
        columns.extend(["full_before_loss", "later_than_early"].map(|name| (name, Kind::Integer)));
        columns.extend(
            [
                "exit_s_median",
                "exit_s_low",
                "exit_s_high",
                "window_segments_median",
                "window_segments_low",
                "window_segments_high",
            ]
            .map(|name| (name, Kind::Number)),
        );
        Table::plain(&columns, all.exits().into_iter().map(row))
    }

    /// Opens the store `out` for files that other processes read.
    fn collect(&self, py: Python<'_>, out: PathBuf) -> PyResult<CaptureCollector> {
        let collector = py.detach(|| Collector::new(self.files.clone(), captures::create(&out)?));
        Ok(CaptureCollector(Mutex::new(collector.map_err(bad)?)))
    }

    /// The names and keys of files by their indices: what [`read_capture`] needs.
    fn tasks(&self, files: Vec<usize>) -> PyResult<Vec<(OsString, String)>> {
        let task = |f: usize| {
            let (name, key) =
                self.files.task(f).ok_or_else(|| bad(format!("file: found {f}, which there is not")))?;
            Ok((name.as_os_str().to_os_string(), key))
        };
        files.into_iter().map(task).collect()
    }

    fn __repr__(&self) -> String {
        format!("<slowstart.Captures: {} files>", self.files.len())
    }
}

/// Reads a file on a worker; returns its lines of a journal. `version` is that of the process that writes.
#[pyfunction]
pub(crate) fn read_capture(
    py: Python<'_>,
    path: PathBuf,
    task: (PathBuf, String),
    startups: Vec<String>,
    min_bytes: u64,
    version: &str,
) -> PyResult<String> {
    let own = results_version();
    if version != own {
        return Err(bad(format!("a worker has slowstart with results {own}, expected results {version}")));
    }
    let (_, options) = options(Some(startups), min_bytes)?;
    let (name, key) = task;
    py.detach(|| lines_of(&path, &name, key, &options)).map_err(bad)
}

/// Takes chunks of files that are not finished, and writes them when their rows are there.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct CaptureCollector(Mutex<Collector>);

impl CaptureCollector {
    fn collector(&self) -> MutexGuard<'_, Collector> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl CaptureCollector {
    /// Takes the next chunk; returns its number and the indices of the files that it lacks, or None if no
    /// chunk can be taken now.
    fn take(&self, py: Python<'_>) -> PyResult<Option<(usize, Vec<usize>)>> {
        py.detach(|| self.collector().take()).map_err(bad)
    }

    /// The number of chunks that other processes had when they were to be taken; `take` tries them again.
    fn retry(&self) -> usize {
        self.collector().retry()
    }

    /// Adds the lines of files, each by its index, to a chunk that was taken. When all are there, the chunk
    /// is finished.
    fn add(&self, py: Python<'_>, chunk: usize, rows: Vec<(usize, String)>) -> PyResult<()> {
        py.detach(|| {
            let mut collector = self.collector();
            rows.into_iter().try_for_each(|(file, lines)| collector.add(chunk, file, lines))
        })
        .map_err(bad)
    }

    /// Releases the chunks that are not finished, and writes the manifest.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.collector().close()).map_err(bad)
    }
}
