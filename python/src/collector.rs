//! A store that one process fills with rows that other processes compute.

use crate::bad;
use crate::sweep::Sweep;
use pyo3::prelude::*;
use slowstart_sweep::plan::{Plan, Run};
use slowstart_sweep::run::{self, Shard};
use slowstart_sweep::store::{Chunk, Claim, Store, key_of};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes chunks of a sweep that are not finished, and writes them when their rows are there.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Collector {
    sweep: Py<Sweep>,
    store: Store,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Chunks to take, each with the indices of its runs that are in no other part.
    todo: VecDeque<(usize, Vec<usize>)>,
    /// Chunks that other processes had when they were to be taken.
    others: VecDeque<(usize, Vec<usize>)>,
    taken: BTreeMap<usize, (Chunk, Vec<usize>)>,
}

impl Collector {
    pub(crate) fn new(py: Python<'_>, sweep: Py<Sweep>, out: PathBuf) -> PyResult<Self> {
        let plan = &sweep.get().plan;
        let opened = py.detach(|| {
            let store = Store::create(&out)?;
            store.start(plan)?;
            let index: BTreeMap<u128, usize> =
                plan.runs.iter().enumerate().map(|(i, r)| (r.key, i)).collect();
            let all = run::missing(plan, &store, Shard::ALL)?.into_iter();
            let todo =
                all.map(|(chunk, runs)| (chunk, runs.iter().map(|r| index[&r.key]).collect())).collect();
            Ok((store, todo))
        });
        let (store, todo) = opened.map_err(|e: slowstart_sweep::store::StoreError| bad(e))?;
        Ok(Self { sweep, store, state: Mutex::new(State { todo, ..State::default() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self) -> &Plan {
        &self.sweep.get().plan
    }
}

/// Writes the part of a chunk all of whose rows are there.
fn finish(plan: &Plan, chunk: Chunk, runs: &[usize]) -> PyResult<()> {
    let runs: Vec<&Run> = runs.iter().map(|i| &plan.runs[*i]).collect();
    run::finish(plan, chunk, &runs).map_err(bad)
}

#[pymethods]
impl Collector {
    /// Takes the next chunk; returns its number and the indices of the runs that it lacks, or None if no
    /// chunk can be taken now. A chunk whose rows are all in its journal is finished at once.
    fn take(&self, py: Python<'_>) -> PyResult<Option<(usize, Vec<usize>)>> {
        let plan = self.plan();
        py.detach(|| {
            let mut state = self.state();
            while let Some((number, runs)) = state.todo.pop_front() {
                match self.store.claim(plan, number).map_err(bad)? {
                    Claim::Done => {}
                    Claim::Theirs => state.others.push_back((number, runs)),
                    Claim::Ours(chunk) => {
                        let lacks = runs.iter().copied();
                        let lacks: Vec<usize> =
                            lacks.filter(|i| !chunk.lines.contains_key(&plan.runs[*i].key)).collect();
                        if lacks.is_empty() {
                            finish(plan, chunk, &runs)?;
                            continue;
                        }
                        state.taken.insert(number, (chunk, runs));
                        return Ok(Some((number, lacks)));
                    }
                }
            }
            Ok(None)
        })
    }

    /// The number of chunks that other processes had when they were to be taken; `take` tries them again.
    fn retry(&self) -> usize {
        let mut state = self.state();
        state.todo = std::mem::take(&mut state.others);
        state.todo.len()
    }

    /// Adds rows, each by the index of its run, to a chunk that was taken. When all are there, the chunk is
    /// finished.
    fn add(&self, py: Python<'_>, chunk: usize, rows: Vec<(usize, String)>) -> PyResult<()> {
        let plan = self.plan();
        py.detach(|| {
            let mut state = self.state();
            let missing = || bad(format!("chunk: found {chunk}, which was not taken"));
            let (journal, runs) = state.taken.get_mut(&chunk).ok_or_else(missing)?;
            for (i, line) in rows {
                let run =
                    plan.runs.get(i).ok_or_else(|| bad(format!("run: found {i}, which there is not")))?;
                if key_of(&line) != Some(run.key) {
                    return Err(bad(
                        "a worker's row has the key of another run; expected a worker with this version",
                    ));
                }
                if !journal.lines.contains_key(&run.key) {
                    journal.append(run.key, line).map_err(bad)?;
                }
            }
            if runs.iter().all(|i| journal.lines.contains_key(&plan.runs[*i].key))
                && let Some((journal, runs)) = state.taken.remove(&chunk)
            {
                finish(plan, journal, &runs)?;
            }
            Ok(())
        })
    }

    /// Releases the chunks that are not finished, and writes the manifest.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            self.state().taken.clear();
            self.store.write_manifest().map(drop).map_err(bad)
        })
    }
}
