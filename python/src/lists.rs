//! The names that a caller can use.

use crate::table::Table;
use pyo3::prelude::*;
use serde_json::json;
use slowstart::registry;
use slowstart_sim::path::PathSpec;
use slowstart_study::columns::Kind;
use slowstart_study::measures::Measure;
use slowstart_study::scenario;

/// The startups: name, source, what each does, and its parameters as JSON.
#[pyfunction]
pub(crate) fn startups() -> PyResult<Table> {
    let rows = registry::all().map(|e| {
        json!({"name": e.name, "source": e.source, "about": e.about, "params": scenario::params(&e.algorithm)})
    });
    Table::plain(
        &[("name", Kind::Text), ("source", Kind::Text), ("about", Kind::Text), ("params", Kind::Json)],
        rows,
    )
}

/// The built-in paths: name, what each is, and its sources.
#[pyfunction]
pub(crate) fn paths() -> PyResult<Table> {
    let rows =
        PathSpec::builtins().iter().map(|p| json!({"name": p.name, "about": p.about, "sources": p.sources}));
    Table::plain(&[("name", Kind::Text), ("about", Kind::Text), ("sources", Kind::Json)], rows)
}

/// The measures of a run: the name, what it is in a few words, and the unit of its values.
#[pyfunction]
#[pyo3(name = "_measures")]
pub(crate) fn measures() -> PyResult<Table> {
    let rows = Measure::ALL.iter().map(|m| {
        let e = m.entry();
        json!({"name": e.name, "label": e.label, "unit": e.unit.name()})
    });
    Table::plain(&[("name", Kind::Text), ("label", Kind::Text), ("unit", Kind::Text)], rows)
}
