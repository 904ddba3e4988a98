//! `advise`: recordings of a service, and which startup to try for it.

use crate::bad;
use crate::replay::read;
use crate::watch::watched;
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use slowstart_replay::advise::{self as advice, Asked, Recorded};
use slowstart_replay::folder::expand;
use slowstart_study::scenario::{self, Contender};
use std::ffi::CString;
use std::path::PathBuf;

/// The advice that `slowstart advise --json` prints.
#[pyfunction]
#[pyo3(signature = (files, *, in_use=None, size=None, min_bytes=100_000, cgroup=None))]
pub(crate) fn advise(
    py: Python<'_>,
    files: Vec<PathBuf>,
    in_use: Option<String>,
    size: Option<&str>,
    min_bytes: u64,
    cgroup: Option<PathBuf>,
) -> PyResult<String> {
    if let Some(name) = &in_use {
        Contender::read("in_use", name, "cubic").map_err(bad)?;
    }
    let size = size.map(|size| scenario::bytes("size", size)).transpose().map_err(bad)?;
    let asked = Asked { in_use, size, cgroup: cgroup.unwrap_or(Asked::default().cgroup) };
    let files = expand(&files).map_err(bad)?;
    let options = advice::options(min_bytes);
    let mut recorded = Recorded::default();
    for file in &files {
        let short = file.file_name().map_or("-".into(), |n| n.to_string_lossy());
        match read(py, &file.to_string_lossy(), &options, |t| recorded.add(&short, &t)) {
            Ok(_) => recorded.files += 1,
            // Not Ctrl-C.
            Err(e) if files.len() > 1 && e.is_instance_of::<PyValueError>(py) => {
                recorded.failed += 1;
                let text = CString::new(format!("{}; skipped", e.value(py))).unwrap_or_default();
                PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)?;
            }
            Err(e) => return Err(e),
        }
    }
    let advised = watched(py, 0, None, |each| advice::advise(recorded, &asked, &|| !each(0, false)))?;
    serde_json::to_string(&advised.advice).map_err(bad)
}
