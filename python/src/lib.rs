//! The native part of the Python package `slowstart`: everything that computes.

#![allow(clippy::needless_pass_by_value, reason = "what Python passes is converted to values")]

mod advise;
mod captures;
mod collector;
mod compare;
mod comparison;
mod connection;
mod hosted;
mod judge;
mod lists;
mod replay;
mod reproduce;
mod startup;
mod sweep;
mod table;
mod transfer;
mod watch;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use slowstart::step::Exit;
use slowstart_sweep::plan::results_version;
use std::fmt::Display;

/// An error of bad input.
fn bad(e: impl Display) -> PyErr {
    PyValueError::new_err(e.to_string())
}

/// Everything that computes. Users import `slowstart`.
#[pymodule]
fn _slowstart(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("results_version", results_version())?;
    m.add_class::<table::Table>()?;
    m.add_class::<comparison::Comparison>()?;
    m.add_class::<judge::Report>()?;
    m.add_class::<startup::View>()?;
    m.add("EXITS", PyTuple::new(m.py(), Exit::ALL.iter().map(|e| e.name()))?)?;
    m.add_class::<startup::Ack>()?;
    m.add_class::<startup::Congestion>()?;
    m.add_class::<startup::SendOrder>()?;
    m.add_class::<startup::Step>()?;
    m.add_class::<transfer::Transfer>()?;
    m.add_class::<sweep::Sweep>()?;
    m.add_class::<collector::Collector>()?;
    m.add_class::<captures::Captures>()?;
    m.add_class::<captures::CaptureCollector>()?;
    m.add_function(wrap_pyfunction!(captures::read_capture, m)?)?;
    m.add_function(wrap_pyfunction!(compare::compare, m)?)?;
    m.add_function(wrap_pyfunction!(compare::run, m)?)?;
    m.add_function(wrap_pyfunction!(judge::league, m)?)?;
    m.add_function(wrap_pyfunction!(judge::suite, m)?)?;
    m.add_function(wrap_pyfunction!(judge::explain, m)?)?;
    m.add_function(wrap_pyfunction!(judge::diff_, m)?)?;
    m.add_function(wrap_pyfunction!(replay::replay, m)?)?;
    m.add_function(wrap_pyfunction!(replay::fit, m)?)?;
    m.add_function(wrap_pyfunction!(advise::advise, m)?)?;
    m.add_function(wrap_pyfunction!(reproduce::reproduce, m)?)?;
    m.add_function(wrap_pyfunction!(lists::startups, m)?)?;
    m.add_function(wrap_pyfunction!(lists::paths, m)?)?;
    m.add_function(wrap_pyfunction!(lists::measures, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::query, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::winners, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::heatmap, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::rows, m)?)
}
