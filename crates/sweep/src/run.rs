//! Computes what is missing of a sweep.

use crate::plan::{Plan, PlanError};
use crate::store::{Claim, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use thiserror::Error;

/// How long to wait before looking again at chunks that another process has.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Why a sweep ended early.
#[derive(Debug, Error)]
pub enum RunError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A point of the sweep.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// What is to be computed: chunks `shard.0` of each `shard.1`, from 0.
#[derive(Copy, Clone, Debug)]
pub struct Shard(pub usize, pub usize);

impl Shard {
    /// The whole sweep, not a shard of it.
    pub const ALL: Self = Self(0, 1);

    /// Reads `k/n`, k from 1 to n.
    pub fn parse(text: &str) -> Option<Self> {
        let (k, n) = text.split_once('/')?;
        let (k, n): (usize, usize) = (k.parse().ok()?, n.parse().ok()?);
        (1..=n).contains(&k).then(|| Self(k - 1, n))
    }
}

/// What has been done.
#[derive(Copy, Clone, Debug, Default)]
pub struct Report {
    /// Runs that this call computed.
    pub computed: usize,
    /// True if the shard is finished, by this process or others.
    pub finished: bool,
}

/// The chunks of a shard.
fn chunks(plan: &Plan, shard: Shard) -> impl Iterator<Item = usize> {
    (shard.0..plan.chunks()).step_by(shard.1)
}

/// The number of runs of a shard.
pub fn runs_of(plan: &Plan, shard: Shard) -> usize {
    chunks(plan, shard).map(|c| plan.part(c).len()).sum()
}

/// The chunks of a shard that are not finished.
pub fn unfinished(plan: &Plan, store: &Store, shard: Shard) -> Vec<usize> {
    chunks(plan, shard).filter(|c| !store.is_done(plan, *c)).collect()
}

/// True if the store has all runs of a chunk in parts of other sweeps, whose keys are `others`.
///
/// # Errors
/// If a point has no valid study.
pub fn is_elsewhere(plan: &Plan, chunk: usize, others: &BTreeSet<u128>) -> Result<bool, PlanError> {
    Ok(!others.is_empty() && plan.runs(plan.part(chunk))?.iter().all(|r| others.contains(&r.key)))
}

/// Computes what is missing of a shard on `threads` threads; an engine on the real clock has one. Calls
/// `each` for every run that is in the store, with true if this call computed it. If `each` returns false, no
/// further run begins, and runs that have begun are finished.
///
/// # Errors
/// If the store cannot be written.
pub fn run(
    plan: &Plan,
    store: &Store,
    shard: Shard,
    threads: usize,
    each: &(dyn Fn(usize, bool) -> bool + Sync),
) -> Result<Report, RunError> {
    store.start(plan)?;
    let threads = if plan.engine.is_real_clock() { 1 } else { threads };
    let others = store.keys_of_others(plan)?;
    let todo = unfinished(plan, store, shard);
    let lacking: usize = todo.iter().map(|c| plan.part(*c).len()).sum();
    let mut go_on = each(runs_of(plan, shard) - lacking, false);
    let mut report = Report::default();
    let mut todo: Vec<&usize> = todo.iter().collect();
    while go_on && !todo.is_empty() {
        let computed = AtomicUsize::new(0);
        let stopped = AtomicBool::new(false);
        let theirs = on_threads(&todo, threads, &stopped, &|chunk: &usize| {
            let each = |n: usize, ours: bool| {
                computed.fetch_add(usize::from(ours), Ordering::Relaxed);
                let go_on = each(n, ours) && !stopped.load(Ordering::Relaxed);
                if !go_on {
                    stopped.store(true, Ordering::Relaxed);
                }
                go_on
            };
            one(plan, store, *chunk, &others, &each)
        });
        report.computed += computed.into_inner();
        todo = theirs?;
        go_on = !stopped.into_inner();
        if go_on && !todo.is_empty() {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
    report.finished = go_on;
    store.write_manifest()?;
    Ok(report)
}

/// Works on items on so many threads, until all are done or `stopped` is set, which an error does. `work`
/// returns false for an item that another process has; these are returned.
pub(crate) fn on_threads<'a, T: Sync, E: Send>(
    items: &[&'a T],
    threads: usize,
    stopped: &AtomicBool,
    work: &(dyn Fn(&T) -> Result<bool, E> + Sync),
) -> Result<Vec<&'a T>, E> {
    let next = AtomicUsize::new(0);
    let (theirs, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
    let worker = || {
        while !stopped.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            match work(item) {
                Ok(true) => {}
                Ok(false) => theirs.lock().expect("no thread panics").push(*item),
                Err(e) => {
                    stopped.store(true, Ordering::Relaxed);
                    failed.lock().expect("no thread panics").get_or_insert(e);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(worker);
        }
    });
    match failed.into_inner().expect("no thread panics") {
        Some(e) => Err(e),
        None => Ok(theirs.into_inner().expect("no thread panics")),
    }
}

/// Computes a chunk but for the runs in `others`. Returns false if another process has it.
fn one(
    plan: &Plan,
    store: &Store,
    chunk: usize,
    others: &BTreeSet<u128>,
    each: &dyn Fn(usize, bool) -> bool,
) -> Result<bool, RunError> {
    let part = plan.part(chunk);
    if is_elsewhere(plan, chunk, others)? {
        each(part.len(), false);
        return Ok(true);
    }
    let mut ours = match store.claim(plan, chunk)? {
        Claim::Ours(chunk) => chunk,
        Claim::Theirs => return Ok(false),
        Claim::Done => {
            each(part.len(), false);
            return Ok(true);
        }
    };
    let mut keys = Vec::with_capacity(part.len());
    for point in plan.points(part) {
        let (study, runs) = point?;
        for run in runs {
            if others.contains(&run.key) {
                each(1, false);
                continue;
            }
            keys.push(run.key);
            if ours.lines.contains_key(&run.key) {
                each(1, false);
                continue;
            }
            if !each(0, false) {
                return Ok(true);
            }
            let line = match plan.compute(&study, &run, &|| !each(0, false)) {
                // A signal also ends the programs that a run on the real clock started.
                Err(_) if !each(0, false) => return Ok(true),
                line => line.map_err(PlanError::from)?,
            };
            ours.append(run.key, line)?;
            each(1, true);
        }
    }
    ours.finish(plan.columns(), &keys)?;
    Ok(true)
}

/// The lines of the runs of these indices, computed one after the other: a task for another process.
///
/// # Errors
/// If a point has no valid study, or a run fails.
pub fn compute(plan: &Plan, runs: &[usize]) -> Result<Vec<String>, PlanError> {
    let mut lines = Vec::with_capacity(runs.len());
    for part in runs.chunk_by(|a, b| a + 1 == *b) {
        for point in plan.points(part[0]..part[0] + part.len()) {
            let (study, runs) = point?;
            for run in runs {
                lines.push(plan.compute(&study, &run, &|| false)?);
            }
        }
    }
    Ok(lines)
}
