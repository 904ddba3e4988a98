//! Long computations: Ctrl-C and progress.

use crate::bad;
use pyo3::prelude::*;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How often Ctrl-C and the progress bar are looked after.
const LOOK: Duration = Duration::from_millis(100);

/// What a computation calls for each item that is in the store: how many, and whether it computed them. It
/// ends if the answer is false.
pub(crate) type Each<'a> = &'a (dyn Fn(usize, bool) -> bool + Sync);

/// Computes on another thread without the interpreter lock. Meanwhile, `progress(done, of)` is called about
/// ten times a second; on Ctrl-C, or if it raises, the computation ends as soon as it can.
pub(crate) fn watched<T: Send, E: Display + Send>(
    py: Python<'_>,
    of: usize,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(Each<'_>) -> Result<T, E> + Send,
) -> PyResult<T> {
    let (done, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let each = |n: usize, _: bool| {
        done.fetch_add(n, Ordering::Relaxed);
        !stop.load(Ordering::Relaxed)
    };
    py.detach(|| {
        thread::scope(|scope| {
            let work = scope.spawn(|| work(&each));
            let mut raised = None;
            while !work.is_finished() {
                thread::sleep(LOOK);
                if raised.is_none() {
                    raised = Python::attach(|py| {
                        py.check_signals()?;
                        let done = done.load(Ordering::Relaxed);
                        progress.map_or(Ok(()), |p| p.call1(py, (done, of)).map(drop))
                    })
                    .err();
                    stop.store(raised.is_some(), Ordering::Relaxed);
                }
            }
            let result = work.join().map_err(|_| bad("a computation ended without a result"))?;
            raised.map_or(Ok(()), Err)?;
            result.map_err(bad)
        })
    })
}
