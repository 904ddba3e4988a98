//! `replay`, `fit`, `reproduce` and the lists of names.

use crate::bad;
use crate::table::Table;
use pyo3::prelude::*;
use serde_json::json;
use slowstart::registry;
use slowstart_lab::columns::{Kind, columns};
use slowstart_lab::path::PathSpec;
use slowstart_lab::scenario;
use slowstart_papers::claim;
use slowstart_papers::experiment::Experiment;
use slowstart_replay::analysis::Keep;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open;
use slowstart_replay::replay::{Options, stream};
use slowstart_replay::transfer::TRANSFER_SCHEMA;
use slowstart_replay::{fit as fitting, transfer::Transfer};
use std::path::Path;

/// The startups to judge: those named, or all of the registry.
fn candidates(names: Option<Vec<String>>) -> PyResult<Vec<Candidate>> {
    let all = || slowstart::startup::REGISTRY.iter().map(|e| e.name.to_string()).collect();
    names
        .unwrap_or_else(all)
        .into_iter()
        .map(|n| {
            let startup = scenario::startup("startup", &n).map_err(bad)?.1;
            Ok(Candidate { label: n, startup })
        })
        .collect()
}

/// Reads a file; returns what `each` makes of its transfers.
fn read<T>(
    file: &str,
    options: &Options,
    each: impl Fn(slowstart_replay::replay::AnalysedTransfer) -> T,
) -> PyResult<Vec<T>> {
    let failed = |e: String| bad(format!("{file}: {e}"));
    let (kind, input) = open::open(Path::new(file)).map_err(|e| failed(e.to_string()))?;
    let mut all = Vec::new();
    stream(kind, input, options, |t| all.push(each(t)), |_| ()).map_err(|e| failed(e.to_string()))?;
    Ok(all)
}

/// When the connections of a capture or log left slow start, and when each startup would have: a row a connection.
#[pyfunction]
#[pyo3(signature = (path, startups=None, *, min_bytes=0))]
pub(crate) fn replay(
    py: Python<'_>,
    path: String,
    startups: Option<Vec<String>>,
    min_bytes: u64,
) -> PyResult<Table> {
    let options = Options { candidates: candidates(startups)?.into(), min_bytes, ..Options::default() };
    let rows: Vec<Transfer> = py.detach(|| {
        read(&path, &options, |mut t| {
            t.row.file = Some(path.clone());
            t.row
        })
    })?;
    Table::of(columns(TRANSFER_SCHEMA), &rows)
}

/// Paths fitted to the transfers of captures: a row a transfer, `path` as `compare` takes it.
#[pyfunction]
#[pyo3(signature = (files, *, min_bytes=1_000_000))]
pub(crate) fn fit(py: Python<'_>, files: Vec<String>, min_bytes: u64) -> PyResult<Table> {
    let options =
        Options { min_bytes, keep: Keep { packets: true, ..Keep::default() }, ..Options::default() };
    let one = |file: &String| {
        read(file, &options, |t| {
            let fitted = match &t.findings {
                Some(findings) => fitting::fit(findings),
                None => Err("found no packets and ACKs".to_string()),
            };
            let (path, why) = match fitted {
                Ok(path) => (Some(path.inline()), None),
                Err(why) => (None, Some(why)),
            };
            json!({"file": file, "connection": t.row.connection, "bytes": t.row.bytes, "path": path, "refused": why})
        })
    };
    let rows: Vec<_> = py.detach(|| files.iter().map(one).collect::<PyResult<Vec<_>>>())?;
    let names = [
        ("file", Kind::Text),
        ("connection", Kind::Integer),
        ("bytes", Kind::Integer),
        ("path", Kind::Text),
        ("refused", Kind::Text),
    ];
    Table::plain(&names, &rows.concat())
}

/// Repeats experiments of papers: a row a claim, with what was claimed and measured. All experiments if none is named.
#[pyfunction]
#[pyo3(signature = (ids, *, seed=1, full=false))]
pub(crate) fn reproduce(py: Python<'_>, ids: Vec<String>, seed: u64, full: bool) -> PyResult<Table> {
    let mut rows = Vec::new();
    for e in Experiment::named(&ids).map_err(bad)?.iter() {
        let judged = py.detach(|| {
            let runs = slowstart_papers::run::all(e, seed, full, || ()).map_err(bad)?;
            Ok::<_, PyErr>(claim::judge(e, &runs))
        })?;
        py.check_signals()?;
        rows.extend(judged.iter().map(|j| {
            json!({
                "experiment": e.id, "title": e.title, "figure": e.figure, "says": j.claim.says,
                "claimed": j.claim.claimed, "measured": j.measured_text(), "verdict": j.verdict.name(),
                "recorded": j.claim.verdict.name(), "reason": j.reason,
            })
        }));
    }
    let names =
        ["experiment", "title", "figure", "says", "claimed", "measured", "verdict", "recorded", "reason"];
    Table::plain(&names.map(|n| (n, Kind::Text)), &rows)
}

/// The startups: name, source, what each does, and its parameters as JSON.
#[pyfunction]
pub(crate) fn startups() -> PyResult<Table> {
    let rows: Vec<_> = registry::all()
        .map(|e| json!({"name": e.name, "source": e.source, "about": e.about, "params": scenario::params(&e.algorithm)}))
        .collect();
    Table::plain(
        &[("name", Kind::Text), ("source", Kind::Text), ("about", Kind::Text), ("params", Kind::Json)],
        &rows,
    )
}

/// The built-in paths: name and what each is.
#[pyfunction]
pub(crate) fn paths() -> PyResult<Table> {
    let rows: Vec<_> = PathSpec::builtins()
        .iter()
        .map(|p| json!({"name": p.name, "about": p.about, "sources": p.sources}))
        .collect();
    Table::plain(&[("name", Kind::Text), ("about", Kind::Text), ("sources", Kind::Json)], &rows)
}
