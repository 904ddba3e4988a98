//! `replay` and `fit`: recorded connections.

use crate::bad;
use crate::table::Table;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use serde_json::json;
use slowstart_replay::analysis::Keep;
use slowstart_replay::error::InputError;
use slowstart_replay::fit as fitting;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_replay::transfer::TRANSFER_SCHEMA;
use slowstart_study::columns::{Kind, columns};
use slowstart_study::scenario;
use std::ffi::CString;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The startups to judge: those named, or all of the registry.
pub(crate) fn candidates(names: Option<Vec<String>>) -> PyResult<Arc<[Candidate]>> {
    let all = || slowstart::startup::REGISTRY.iter().map(|e| e.name.to_string()).collect();
    let one = |label: String| {
        let startup = scenario::startup("startup", &label).map_err(bad)?.1;
        Ok(Candidate { label, startup })
    };
    names.unwrap_or_else(all).into_iter().map(one).collect()
}

/// How many reads pass between two looks at Ctrl-C.
const READS: u32 = 16;

/// An input that ends with an error on Ctrl-C.
struct Interruptible {
    input: open::Input,
    reads: u32,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Read for Interruptible {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(READS)
            && let Err(e) = Python::attach(|py| {
                py.check_signals()?;
                Ok::<(), PyErr>(())
            })
        {
            *self.raised.lock().expect("no thread panics while it holds it") = Some(e);
            return Err(io::Error::other("interrupted"));
        }
        self.input.read(buffer)
    }
}

/// Reads a file; returns what `each` makes of its transfers. If the file is damaged, warns, and returns those
/// before the damage.
pub(crate) fn read<T: Send>(
    py: Python<'_>,
    file: &str,
    options: &Options,
    mut each: impl FnMut(AnalysedTransfer) -> T + Send,
) -> PyResult<Vec<T>> {
    let raised = Arc::new(Mutex::new(None));
    let (all, done) = py.detach(|| {
        let mut all = Vec::new();
        let done = open::open(Path::new(file)).and_then(|(kind, input)| {
            let input = Box::new(Interruptible { input, reads: 0, raised: Arc::clone(&raised) });
            stream(kind, input, options, &mut |t| all.push(each(t)), &mut |_| ())
        });
        (all, done)
    });
    if let Some(e) = raised.lock().expect("no thread panics while it holds it").take() {
        return Err(e);
    }
    let named = |e: InputError| format!("{file}: {e}");
    if let Some(e) = done.map_err(|e| bad(named(e)))?.incomplete {
        let text = CString::new(named(e)).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)?;
    }
    Ok(all)
}

/// When the connections of a capture or log left slow start, and when each startup would have: a row a
/// connection.
#[pyfunction]
#[pyo3(signature = (path, startups=None, *, min_bytes=0))]
pub(crate) fn replay(
    py: Python<'_>,
    path: &str,
    startups: Option<Vec<String>>,
    min_bytes: u64,
) -> PyResult<Table> {
    let options = Options { candidates: candidates(startups)?, min_bytes, ..Options::default() };
    let mut rows = read(py, path, &options, |mut t| {
        t.row.file = Some(path.to_string());
        t.row
    })?;
    rows.sort_by_key(|row| row.connection);
    Table::of(columns(TRANSFER_SCHEMA), &rows)
}

/// Paths fitted to the transfers of captures: a row a transfer, `path` as `compare` takes it.
#[pyfunction]
#[pyo3(signature = (files, *, min_bytes=1_000_000))]
pub(crate) fn fit(py: Python<'_>, files: Vec<String>, min_bytes: u64) -> PyResult<Table> {
    let options =
        Options { min_bytes, keep: Keep { packets: true, ..Keep::default() }, ..Options::default() };
    let mut rows = Vec::new();
    for file in &files {
        let mut fitted = read(py, file, &options, |t| {
            let fitted = match &t.findings {
                Some(findings) => fitting::fit(findings),
                None => Err("found no packets and ACKs".to_string()),
            };
            let (path, why) = match fitted {
                Ok(path) => (Some(path.inline()), None),
                Err(why) => (None, Some(why)),
            };
            let n = t.row.connection;
            let bytes = t.row.bytes;
            (n, json!({"file": file, "connection": n, "bytes": bytes, "path": path, "refused": why}))
        })?;
        fitted.sort_by_key(|(connection, _)| *connection);
        rows.extend(fitted.into_iter().map(|(_, row)| row));
    }
    let names = [
        ("file", Kind::Text),
        ("connection", Kind::Integer),
        ("bytes", Kind::Integer),
        ("path", Kind::Text),
        ("refused", Kind::Text),
    ];
    Table::plain(&names, rows)
}
