//! A store that one process fills with rows that other processes compute.

use crate::bad;
use crate::sweep::Sweep;
use pyo3::prelude::*;
use slowstart_sweep::plan::{Plan, Run};
use slowstart_sweep::run::{self, Shard};
use slowstart_sweep::store::{Chunk, Claim, Store, StoreError, key_of};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes chunks of a sweep that are not finished, and writes them when their rows are there.
#[pyclass(module = "slowstart", frozen)]
pub(crate) struct Collector {
    sweep: Py<Sweep>,
    store: Store,
    /// The keys in parts of other sweeps.
    others: BTreeSet<u128>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Chunks to take.
    todo: VecDeque<usize>,
    /// Chunks that other processes had when they were to be taken.
    others: VecDeque<usize>,
    taken: BTreeMap<usize, Taken>,
}

/// A chunk that this process has: its journal, and its runs by index, without those in other parts.
struct Taken {
    journal: Chunk,
    runs: Vec<(usize, Run)>,
}

impl Taken {
    /// The indices of the runs that are not there.
    fn lacks(&self) -> Vec<usize> {
        let lacking = self.runs.iter().filter(|(_, r)| !self.journal.lines.contains_key(&r.key));
        lacking.map(|(i, _)| *i).collect()
    }

    /// Writes the part.
    fn finish(self, plan: &Plan) -> PyResult<()> {
        let keys: Vec<u128> = self.runs.iter().map(|(_, r)| r.key).collect();
        self.journal.finish(plan.columns(), &keys).map_err(bad)
    }
}

impl Collector {
    pub(crate) fn new(py: Python<'_>, sweep: Py<Sweep>, out: PathBuf) -> PyResult<Self> {
        let plan = &sweep.get().plan;
        let opened = py.detach(|| {
            let store = Store::create(&out)?;
            store.start(plan)?;
            let others = store.keys_of_others(plan)?;
            let todo = run::unfinished(plan, &store, Shard::ALL).into();
            Ok((store, others, todo))
        });
        let (store, others, todo) = opened.map_err(|e: StoreError| bad(e))?;
        Ok(Self { sweep, store, others, state: Mutex::new(State { todo, ..State::default() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self) -> &Plan {
        &self.sweep.get().plan
    }
}

#[pymethods]
impl Collector {
    /// Takes the next chunk; returns its number and the indices of the runs that it lacks, or None if no
    /// chunk can be taken now. A chunk whose rows are all in its journal is finished at once.
    fn take(&self, py: Python<'_>) -> PyResult<Option<(usize, Vec<usize>)>> {
        let plan = self.plan();
        py.detach(|| {
            let mut state = self.state();
            while let Some(number) = state.todo.pop_front() {
                if run::is_elsewhere(plan, number, &self.others).map_err(bad)? {
                    continue;
                }
                match self.store.claim(plan, number).map_err(bad)? {
                    Claim::Done => {}
                    Claim::Theirs => state.others.push_back(number),
                    Claim::Ours(journal) => {
                        let part = plan.part(number);
                        let runs = part.clone().zip(plan.runs(part).map_err(bad)?);
                        let runs = runs.filter(|(_, r)| !self.others.contains(&r.key)).collect();
                        let taken = Taken { journal, runs };
                        let lacks = taken.lacks();
                        if lacks.is_empty() {
                            taken.finish(plan)?;
                            continue;
                        }
                        state.taken.insert(number, taken);
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
            let taken = state.taken.get_mut(&chunk).ok_or_else(missing)?;
            for (i, line) in rows {
                let run = taken.runs.binary_search_by_key(&i, |(i, _)| *i).map(|at| taken.runs[at].1);
                let run =
                    run.map_err(|_| bad(format!("run: found {i}, which chunk {chunk} does not have")))?;
                if key_of(&line) != Some(run.key) {
                    return Err(bad(
                        "a worker's row has the key of another run; expected a worker with this version",
                    ));
                }
                if !taken.journal.lines.contains_key(&run.key) {
                    taken.journal.append(run.key, line).map_err(bad)?;
                }
            }
            if taken.lacks().is_empty()
                && let Some(taken) = state.taken.remove(&chunk)
            {
                taken.finish(plan)?;
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
