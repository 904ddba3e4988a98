//! `reproduce`: the experiments of papers.

use crate::bad;
use crate::table::Table;
use pyo3::prelude::*;
use serde_json::json;
use slowstart_papers::experiment::Experiment;
use slowstart_papers::judge;
use slowstart_study::columns::Kind;

/// Repeats experiments of papers: a row a claim, with what was claimed and measured. Ctrl-C ends it after the
/// experiment that is computed.
#[pyfunction]
#[pyo3(signature = (ids, *, seed=1, full=false))]
pub(crate) fn reproduce(py: Python<'_>, ids: Vec<String>, seed: u64, full: bool) -> PyResult<Table> {
    let mut rows = Vec::new();
    for e in &Experiment::named(&ids).map_err(bad)? {
        let judged = py.detach(|| {
            let runs = slowstart_papers::run::all(e, seed, full, || ()).map_err(bad)?;
            Ok::<_, PyErr>(judge::judge(e, &runs))
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
    Table::plain(&names.map(|n| (n, Kind::Text)), rows)
}
