//! The native part of the Python package `slowstart`: everything that computes.

mod env;
mod others;
mod startup;
mod study;
mod sweep;
mod table;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fmt::Display;

/// An error of bad input.
fn bad(e: impl Display) -> PyErr {
    PyValueError::new_err(e.to_string())
}

/// Everything that computes; `slowstart` is its public face.
#[pymodule]
fn _slowstart(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<table::Table>()?;
    m.add_class::<study::Comparison>()?;
    m.add_class::<startup::View>()?;
    m.add_class::<startup::Ack>()?;
    m.add_class::<startup::Congestion>()?;
    m.add_class::<startup::Step>()?;
    m.add_class::<env::Transfer>()?;
    m.add_class::<sweep::Sweep>()?;
    m.add_function(wrap_pyfunction!(study::compare, m)?)?;
    m.add_function(wrap_pyfunction!(study::run, m)?)?;
    m.add_function(wrap_pyfunction!(others::replay, m)?)?;
    m.add_function(wrap_pyfunction!(others::fit, m)?)?;
    m.add_function(wrap_pyfunction!(others::reproduce, m)?)?;
    m.add_function(wrap_pyfunction!(others::startups, m)?)?;
    m.add_function(wrap_pyfunction!(others::paths, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::query, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::winners, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::rows, m)?)
}
