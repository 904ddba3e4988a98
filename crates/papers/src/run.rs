//! Runs the studies of an experiment in parallel; results are in the order of the experiment's file.
//!
//! A startup can also be evaluated offline: over the ACKs of another startup's run, as the SEARCH thesis
//! evaluated its algorithm over logs.

use crate::bins::Ack;
use crate::experiment::{Cell, Experiment, ExperimentError, offline_label};
use crate::result::{ChartKind, RunResult};
use crate::web::WebResult;
use slowstart::units::Instant;
use slowstart_replay::analysis::Keep;
use slowstart_replay::kernlog;
use slowstart_replay::observer::Candidate;
use slowstart_sim::engine::{Direction, Engine, Sampling};
use slowstart_study::engines::{EngineError, Watched};
use slowstart_study::measured::{self, Ended};
use slowstart_study::record::{ExitRow, Row, Sample, Trace};
use slowstart_study::run::{Job, in_order};
use slowstart_study::scenario;
use slowstart_study::simulator;
use std::fmt::Write;
use std::sync::Arc;

/// Number of samples of a run.
const SAMPLES: u64 = 800;

/// The ACKs of a run as its sender sees them: as values, or as a kernel log with one line an ACK.
struct AckLog {
    text: String,
    acks: Vec<Ack>,
    una: u64,
}

impl AckLog {
    fn new() -> Self {
        let text = "now_us,bytes_acked,mss,rtt_us,snd_nxt,snd_una,sk_pacing_rate\n".into();
        Self { text, acks: Vec::new(), una: 0 }
    }

    /// Adds an entry if the newest packet acknowledged new data: to `acks`, or else to `text`.
    fn add(&mut self, e: &Engine, acks: bool) {
        let f = &e.flows[0];
        let tx = &f.ends[f.sender()].tx;
        let una = tx.board().una();
        let Some(rtt) = tx.last_rtt().filter(|_| una > self.una) else { return };
        self.una = una;
        let now = e.now().since(f.spec.start);
        if acks {
            self.acks.push((now.as_secs_f64(), una as f64, rtt.as_secs_f64()));
            return;
        }
        let now = now.0 / 1000;
        let pacing = tx.pacer().rate().map_or(0, |r| r.0 / 8);
        // Sequence numbers of a kernel log have 32 bits.
        let _ = writeln!(
            self.text,
            "{now},{una},{},{},{},{},{pacing}",
            f.spec.profile.mss,
            rtt.0 / 1000,
            tx.next() & 0xffff_ffff,
            una & 0xffff_ffff
        );
    }
}

/// The result of a run on another engine than the simulator: what such an engine observes. It has no bins of
/// bytes delivered.
fn run_elsewhere(
    cell: &Cell,
    run: u32,
    engine: &dyn slowstart_study::engines::Engine,
    study: &scenario::Study,
) -> Result<RunResult, EngineError> {
    let watched = Watched::samples(Sampling::Every(study.duration / SAMPLES));
    let outcome = engine.run(study, Job { contender: 0, run }, &watched)?;
    let packet = outcome.measured.packet;
    Ok(RunResult {
        study: cell.study.clone(),
        label: cell.label.clone(),
        run,
        rows: vec![outcome.row],
        bins: vec![Vec::new()],
        starts: vec![0.0],
        start_s: 0.0,
        mss: packet.payload as f64,
        packet: packet.wire as f64,
        stalls: 0,
        samples: Arc::new(outcome.trace.samples),
        beside: Vec::new(),
        events: outcome.trace.events,
        acks: Vec::new(),
        charts: cell.charts.clone(),
        web: None,
    })
}

/// The result of a run of web clients.
fn run_cloud(cell: &Cell, run: u32, web: WebResult) -> RunResult {
    RunResult {
        study: cell.study.clone(),
        label: cell.label.clone(),
        run,
        rows: Vec::new(),
        bins: Vec::new(),
        starts: Vec::new(),
        start_s: 0.0,
        mss: f64::NAN,
        packet: f64::NAN,
        stalls: 0,
        samples: Arc::default(),
        beside: Vec::new(),
        events: Vec::new(),
        acks: Vec::new(),
        charts: Vec::new(),
        web: Some(web),
    }
}

/// The result of one run of a cell, then one for each offline startup, whose row differs in the exit only.
fn run_cell(cell: &Cell, run: u32) -> Result<Vec<RunResult>, scenario::StudyError> {
    let study = cell.study()?;
    let interval = study.duration / SAMPLES;
    let sampling = if cell.each_ack { Sampling::EachAck } else { Sampling::Every(interval) };
    let seed = study.run_seed(run);
    let others = cell.background.as_ref().map_or(Ok(Vec::new()), |b| b.flows(&study, seed))?;
    let gauges = cell.charts.contains(&ChartKind::Train);
    let (mut engine, end) = study.prepare_among(Job { contender: 0, run }, sampling, gauges, others);
    if !cell.charts.is_empty() {
        for (i, b) in study.against.iter().enumerate() {
            engine.flows[i + 1].spec.recorded = b.direction == Direction::Download;
        }
    }
    let mut log = AckLog::new();
    let keeps_acks = !cell.offline.is_empty() || cell.acks;
    if keeps_acks {
        engine.run_until(end, |e| {
            // Slow start ends with the first loss.
            if e.flows[0].truth.first_loss.is_none() {
                log.add(e, cell.acks);
            }
            e.flows[0].truth.completed.is_some()
        });
    } else {
        engine.complete(end);
    }
    let contender = |i: usize| if i == 0 { &study.contenders[0] } else { &study.against[i - 1].contender };
    let rows: Vec<Row> = (0..=study.against.len())
        .map(|i| simulator::row(&study, contender(i), &engine, i, run, seed))
        .collect();
    let at = |t: Instant| t.since(Instant::ZERO).as_secs_f64();
    let mut flows: Vec<Vec<Sample>> = vec![Vec::new(); rows.len()];
    let trace = Trace::from(std::mem::take(&mut engine.trace));
    for s in trace.samples {
        flows[s.flow as usize].push(s);
    }
    let samples = flows.remove(0);
    let result = RunResult {
        study: cell.study.clone(),
        label: cell.label.clone(),
        run,
        bins: engine.flows.iter().map(|f| f.truth.bins()).collect(),
        starts: engine.flows.iter().map(|f| at(f.spec.start)).collect(),
        start_s: at(engine.flows[0].spec.start),
        mss: f64::from(study.profile.mss),
        packet: f64::from(study.profile.packet()),
        stalls: engine.flows[0].ends[engine.flows[0].sender()].tx.counters.stalls,
        samples: Arc::new(samples),
        beside: flows.into_iter().filter(|s| !s.is_empty()).collect(),
        events: trace.events.into_iter().filter(|e| e.flow == 0).collect(),
        acks: log.acks,
        charts: cell.charts.clone(),
        web: None,
        rows,
    };
    let mut all = vec![result];
    if !cell.offline.is_empty() {
        let truth = &engine.flows[0].truth;
        all.extend(offline_results(&all[0], &cell.offline, &log.text, truth.capacity, truth.first_loss)?);
    }
    Ok(all)
}

/// What the startups `labels` would have done at the ACKs of the run `base`.
fn offline_results(
    base: &RunResult,
    labels: &[String],
    log: &str,
    capacity: Option<Instant>,
    first_loss: Option<Instant>,
) -> Result<Vec<RunResult>, scenario::StudyError> {
    let read = |label: &String| {
        let (_, startup) = scenario::startup("offline", label)?;
        Ok(Candidate { label: label.clone(), startup })
    };
    let candidates = labels.iter().map(read).collect::<Result<Vec<_>, scenario::StudyError>>()?;
    let found = kernlog::replay(log.as_bytes(), &candidates.into(), Keep::default());
    let predictions =
        found.ok().filter(|l| l.incomplete.is_none()).map(|l| l.findings.startups).unwrap_or_default();
    let start = Instant::ZERO + slowstart::units::Span((base.start_s * 1e9) as u64);
    let result = |label: &String| {
        let rule = predictions.iter().find(|o| o.label == *label).and_then(|o| o.prediction.rule);
        let mut result = RunResult { label: offline_label(label), charts: Vec::new(), ..base.clone() };
        let row = &mut result.rows[0];
        row.startup.clone_from(label);
        let exit = rule.map(|(why, m)| slowstart::control::Exited {
            why,
            at: start + m.at.since(Instant::ZERO),
            detected_at: start + m.at.since(Instant::ZERO),
            detected_cwnd: m.cwnd,
            exit_cwnd: m.cwnd,
            inflight: m.cwnd,
        });
        // The startup's own rule applies unless a loss came first; then the exit is that of the run.
        let by_rule = exit.filter(|e| first_loss.is_none_or(|l| e.detected_at < l));
        if let Some(e) = by_rule {
            let time_s = e.detected_at.since(start).as_secs_f64();
            row.exit = Some(ExitRow {
                reason: e.why.name().to_string(),
                time_s,
                left_s: time_s,
                detected_cwnd_bytes: e.detected_cwnd.0,
                cwnd_bytes: e.exit_cwnd.0,
                inflight_bytes: e.inflight.0,
            });
            row.class = measured::class(Some(Ended::from(&e)), capacity, first_loss);
            let by_heuristic =
                row.capacity_time_by_heuristic_s.map(|c| start + slowstart::units::Span((c * 1e9) as u64));
            row.class_by_heuristic =
                by_heuristic.map(|c| measured::class(Some(Ended::from(&e)), Some(c), first_loss));
        }
        result
    };
    Ok(labels.iter().map(result).collect())
}

/// Cells whose runs are made together: web clients that arrive at the same times, with their rate, or one other cell.
struct Group {
    /// The index of their experiment.
    of: usize,
    /// The cells, with their place in the experiment.
    cells: Vec<(usize, Cell)>,
    rate: Option<f64>,
}

/// The results of some runs of an experiment, each with the place of its cell.
type Results = Vec<(usize, Vec<RunResult>)>;

impl Group {
    /// All groups of an experiment.
    fn all(of: usize, e: &Experiment, seed: u64, full: bool) -> Result<Vec<Self>, ExperimentError> {
        let mut groups: Vec<Self> = Vec::new();
        for (place, cell) in e.cells(seed, full)?.into_iter().enumerate() {
            if let Some(group) = groups.iter_mut().find(|g| g.cells[0].1.shares_arrivals(&cell)) {
                group.cells.push((place, cell));
                continue;
            }
            let rate = cell.connection_rate().transpose().map_err(|why| e.wrong(&cell, why))?;
            groups.push(Self { of, cells: vec![(place, cell)], rate });
        }
        Ok(groups)
    }

    /// The greatest number of runs of a cell.
    fn runs(&self) -> u32 {
        self.cells.iter().map(|(_, cell)| cell.runs).max().unwrap_or(0)
    }

    /// Makes this run of each cell that has it; calls `each` after every one.
    fn run(&self, e: &Experiment, run: u32, each: &impl Fn()) -> Result<Results, ExperimentError> {
        let arrivals = self.rate.map(|rate| self.cells[0].1.arrivals(rate, run));
        let mut all = Vec::new();
        for (place, cell) in self.cells.iter().filter(|(_, cell)| run < cell.runs) {
            let web = arrivals.as_ref().and_then(|arrivals| cell.cloud(arrivals, run));
            let results = match (cell.elsewhere(), web) {
                (Some(read), _) => read
                    .and_then(|(engine, study)| run_elsewhere(cell, run, &*engine, &study))
                    .map(|result| vec![result])
                    .map_err(|why| e.refused(cell, why))?,
                (None, Some(web)) => vec![run_cloud(cell, run, web.map_err(|why| e.wrong(cell, why))?)],
                (None, None) => run_cell(cell, run).map_err(|why| e.wrong(cell, why))?,
            };
            all.push((*place, results));
            each();
        }
        Ok(all)
    }
}

/// Runs experiments on all processors; `done` gets the results of each, ordered by study, startup and run, in the order
/// of the experiments, while those after it run. `each` is called once for every finished run, from any thread and in
/// no particular order.
///
/// # Errors
/// Those of the studies, and the first of `done`, which ends it.
pub fn several<'a, E: From<ExperimentError>>(
    experiments: &[&'a Experiment],
    seed: u64,
    full: bool,
    each: impl Fn() + Sync,
    mut done: impl FnMut(&'a Experiment, Vec<RunResult>) -> Result<(), E>,
) -> Result<(), E> {
    let mut groups = Vec::new();
    for (of, e) in experiments.iter().enumerate() {
        groups.extend(Group::all(of, e, seed, full)?);
    }
    let jobs: Vec<(&Group, u32)> =
        groups.iter().flat_map(|g| (0..g.runs()).map(move |run| (g, run))).collect();
    let mut results = Results::new();
    let mut left = experiments.iter().enumerate().peekable();
    // All experiments before this one are finished.
    let mut finish_before = |of: usize, results: &mut Results| {
        while let Some((_, e)) = left.next_if(|(i, _)| *i < of) {
            // Runs come in order, and those of a cell stay in it.
            results.sort_by_key(|(place, _)| *place);
            done(e, results.drain(..).flat_map(|(_, results)| results).collect())?;
        }
        Ok::<(), E>(())
    };
    let mut at = jobs.iter();
    let run = |(group, run): (&Group, u32)| group.run(experiments[group.of], run, &each);
    in_order(&jobs, run, |found| -> Result<(), E> {
        let of = at.next().map_or(experiments.len(), |(group, _)| group.of);
        finish_before(of, &mut results)?;
        results.extend(found?);
        Ok(())
    })?;
    finish_before(experiments.len(), &mut results)
}

/// The results of all runs of an experiment, as [`several`] has them.
///
/// # Errors
/// Those of its studies.
pub fn all(
    e: &Experiment,
    seed: u64,
    full: bool,
    each: impl Fn() + Sync,
) -> Result<Vec<RunResult>, ExperimentError> {
    let mut all = Vec::new();
    several(&[e], seed, full, each, |_, results| {
        all = results;
        Ok::<(), ExperimentError>(())
    })?;
    Ok(all)
}

/// Number of runs of an experiment.
pub fn count(e: &Experiment, full: bool) -> u64 {
    e.cells(1, full).map_or(0, |cells| cells.iter().map(|c| u64::from(c.runs)).sum())
}
