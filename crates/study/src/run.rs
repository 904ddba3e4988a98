//! The jobs of a study, computed in parallel and returned in order.
//!
//! Run `n` of every startup has the same seed, so that all startups meet the same path.

use crate::measured::Measured;
use crate::record::{Row, Trace};
use crate::scenario::Study;
use slowstart::units::{Instant, Span};
use slowstart_sim::random;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// One run of one contender.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// Its index in [`Study::contenders`].
    pub contender: usize,
    /// The number of the run, from 0.
    pub run: u32,
}

/// The result of a job.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The job that was run.
    pub job: Job,
    /// The row of the flow studied.
    pub row: Row,
    /// Samples and events, if they were asked for.
    pub trace: Trace,
    /// What was observed, from which the row follows.
    pub measured: Measured,
}

impl Study {
    /// Returns all jobs, contender by contender.
    pub fn jobs(&self) -> Vec<Job> {
        (0..self.contenders.len())
            .flat_map(|contender| (0..self.runs).map(move |run| Job { contender, run }))
            .collect()
    }

    /// Returns the seed of a run.
    pub fn run_seed(&self, run: u32) -> u64 {
        // 53 bits: a seed survives every JSON reader.
        random::at(self.seed, u64::from(run)) >> 11
    }

    /// Returns when the flow studied begins: after those of `against` that start before it.
    pub fn start(&self) -> Instant {
        Instant::ZERO + self.against.iter().map(|b| b.before).max().unwrap_or(Span::ZERO)
    }
}

/// Runs jobs on all processors; `each` gets what `run` gives in the order of the jobs, each as soon as those
/// before it are there. An error of `each` ends it.
///
/// The threads are its own and end with it. A process that `fork` makes of a caller has no other threads, so
/// that it would wait for ever for those of a pool.
pub fn in_order<J: Copy + Sync, T: Send, E>(
    jobs: &[J],
    run: impl Fn(J) -> T + Sync,
    mut each: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = rayon::current_num_threads().min(jobs.len());
    // Outcomes do not pile up before a slow `each`.
    let (tx, rx) = mpsc::sync_channel(threads);
    // Jobs start in their order, so that few outcomes wait for an earlier one.
    let first = AtomicUsize::new(0);
    let work = |tx: mpsc::SyncSender<(usize, T)>| {
        while let Some((i, job)) = {
            let i = first.fetch_add(1, Ordering::Relaxed);
            jobs.get(i).map(|job| (i, *job))
        } {
            // A send fails when `each` has.
            if tx.send((i, run(job))).is_err() {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (work, tx) = (&work, tx.clone());
            scope.spawn(move || work(tx));
        }
        drop(tx);
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for (i, outcome) in rx {
            waiting.insert(i, outcome);
            while let Some(outcome) = waiting.remove(&next) {
                each(outcome)?;
                next += 1;
            }
        }
        Ok(())
    })
}
