//! The runs of a study, computed in parallel and returned in order.
//!
//! Run `n` of every startup has the same seed, so that all startups meet the same path.

use crate::engine::{Direction, Engine, FlowSpec, Proxied, Sampling};
use crate::engines::Simulator;
use crate::eval;
use crate::measured::{Identity, Measured};
use crate::random::{self, Stream};
use crate::record::{Row, Trace};
use crate::scenario::{Contender, Study};
use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant, Rate, Span};
use slowstart::view::PathMemory;
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

    fn flows(&self, contender: &Contender, seed: u64) -> Vec<FlowSpec> {
        let start = self.start();
        let flow = |c: &Contender, start, direction, app, recorded| FlowSpec {
            start,
            direction,
            app,
            startup: c.startup.clone(),
            avoidance: c.avoidance.clone(),
            profile: self.profile,
            extra_delay: Span::ZERO,
            remembered: None,
            recorded,
            impact_from: None,
        };
        let mut flows = vec![flow(contender, start, Direction::Download, self.app, true)];
        let mut arrivals = Stream::named(seed, "against");
        for b in &self.against {
            let mut begins = start - b.before + b.after;
            if b.drawn {
                begins = begins.min(start) + arrivals.uniform_span(b.before + b.after);
            }
            let mut other = flow(&b.contender, begins, b.direction, b.app, false);
            other.impact_from = (b.direction == Direction::Download && begins <= start).then_some(start);
            flows.push(other);
        }
        flows
    }

    /// Returns the state of an earlier connection, for startups that use it: that of the same transfer over
    /// the same path, alone, with other random numbers.
    pub(crate) fn memory(&self, flow: &FlowSpec, seed: u64) -> Option<PathMemory> {
        if !self.remember || !flow.startup.uses_path_memory() {
            return None;
        }
        let before = random::at(seed, u64::MAX) >> 11;
        let alone = vec![FlowSpec { start: Instant::ZERO, recorded: false, ..flow.clone() }];
        // The same path, if it is drawn: only what varies on it is drawn afresh.
        let path = self.path.draw(seed).build(before);
        let mut engine = Engine::new(path, alone, before, Sampling::Off, false);
        engine.complete(Instant::ZERO + self.duration);
        let flow = &engine.flows[0];
        let tx = &flow.ends[flow.sender()].tx;
        let cwnd = tx.control().state().cwnd.min(Bytes(tx.counters.peak_inflight));
        let rate = Rate::new(cwnd, tx.rtt().srtt()?)?;
        Some(PathMemory { cwnd, rtt: tx.rtt().min()?, rate })
    }

    /// Returns the engine of a job, before its first event, and the time at which the run ends. Not for a
    /// path with a proxy, which takes two engines.
    pub fn prepare(&self, job: Job, sampling: Sampling, gauges: bool) -> (Engine, Instant) {
        self.prepare_among(job, sampling, gauges, Vec::new())
    }

    /// As [`Study::prepare`], with flows of the caller after those of the study.
    pub fn prepare_among(
        &self,
        job: Job,
        sampling: Sampling,
        gauges: bool,
        others: Vec<FlowSpec>,
    ) -> (Engine, Instant) {
        let seed = self.run_seed(job.run);
        let mut flows = self.flows(&self.contenders[job.contender], seed);
        let end = flows[0].start + self.duration;
        flows[0].remembered = self.memory(&flows[0], seed);
        flows.extend(others);
        (Engine::new(self.path.build(seed), flows, seed, sampling, gauges), end)
    }

    /// Runs one job. `gauges` records internal values of the startup with each sample.
    pub fn run(&self, job: Job, sampling: Sampling, gauges: bool) -> Outcome {
        self.execute(job, sampling, gauges, false)
    }

    /// Runs one job and keeps every acknowledgement and every packet.
    pub fn capture(&self, job: Job) -> Outcome {
        self.execute(job, Sampling::EachAck, false, true)
    }

    fn execute(&self, job: Job, sampling: Sampling, gauges: bool, capture: bool) -> Outcome {
        let contender = &self.contenders[job.contender];
        let seed = self.run_seed(job.run);
        let mut engine = if let Some(proxy) = self.path.proxy() {
            let flow = self.flows(contender, seed).swap_remove(0);
            let end = flow.start + self.duration;
            let path = self.path.build(seed);
            Proxied::new(proxy, path, flow, seed, (sampling, gauges), capture).complete(end)
        } else {
            let (mut engine, end) = self.prepare(job, sampling, gauges);
            if capture {
                engine.start_capture();
            }
            engine.complete(end);
            engine
        };
        let measured = eval::measured(self, &engine, 0);
        let row = Row::new(Identity::new(Simulator::NAME, self, contender, job.run, seed), &measured);
        engine.trace.packets = engine.take_capture();
        Outcome { job, row, trace: engine.trace, measured }
    }

    /// Runs every job on all processors. `each` gets the outcomes in the order of [`Study::jobs`], each as
    /// soon as those before it are there. An error of `each` ends the study.
    pub fn run_all<E>(&self, each: impl FnMut(Outcome) -> Result<(), E>) -> Result<(), E> {
        in_order(&self.jobs(), |job| self.run(job, Sampling::Off, false), each)
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
