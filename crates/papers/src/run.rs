//! An experiment's runs, in parallel and in order, and the startups that look on.

use crate::bins::Ack;
use crate::experiment::{Bad, Cell, Draw, Experiment, offline_label};
use crate::web;
use rayon::prelude::*;
use slowstart::units::Instant;
use slowstart_lab::engine::{Engine, Sampling};
use slowstart_lab::eval;
use slowstart_lab::record::{EventRow, ExitRow, Row, Sample};
use slowstart_lab::run::Job;
use slowstart_lab::scenario;
use slowstart_replay::kernlog;
use slowstart_replay::observer::Candidate;
use std::fmt::Write;

/// Samples of a run.
const SAMPLES: u64 = 800;

/// What is kept of a run.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The study's name.
    pub study: String,
    /// The startup as written.
    pub label: String,
    /// The run.
    pub run: u32,
    /// A row for each flow; the first is the one studied.
    pub rows: Vec<Row>,
    /// Bytes that arrived in each 10 ms since the flow began, for each flow.
    pub bins: Vec<Vec<u32>>,
    /// When each flow began, seconds since the run did.
    pub starts: Vec<f64>,
    /// When the flow studied began.
    pub start_s: f64,
    /// Payload of a segment, bytes.
    pub mss: f64,
    /// A full segment on the wire, bytes.
    pub packet: f64,
    /// Packets that the interface of the flow studied refused.
    pub stalls: u64,
    /// Of the flow studied.
    pub samples: Vec<Sample>,
    /// Of the flow studied.
    pub events: Vec<EventRow>,
    /// ACKs of the flow studied before a loss was known, if they were to be kept.
    pub acks: Vec<Ack>,
    /// What is drawn.
    pub charts: Vec<Draw>,
    /// What was seen of web clients: then there is nothing of the above.
    pub web: Option<web::Seen>,
}

impl Seen {
    /// Payload that all flows delivered between two times of the run, as a share of what the link carries.
    pub fn utilisation(&self, from: f64, to: f64) -> f64 {
        let mut bytes = 0.0;
        for (bins, start) in self.bins.iter().zip(&self.starts) {
            for (i, b) in bins.iter().enumerate() {
                let t = start + i as f64 * 0.01;
                if t >= from && t < to {
                    bytes += f64::from(*b);
                }
            }
        }
        bytes * 8.0 / (self.rows[0].rate_bps as f64 * (to - from))
    }
}

/// A run as a sender sees it: each ACK, and as a log of a kernel with a line for each.
struct Log {
    text: String,
    acks: Vec<Ack>,
    una: u64,
}

impl Log {
    fn new() -> Self {
        let text = "now_us,bytes_acked,mss,rtt_us,snd_nxt,snd_una,sk_pacing_rate\n".into();
        Self { text, acks: Vec::new(), una: 0 }
    }

    fn look(&mut self, e: &Engine, acks: bool) {
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
        // Sequence numbers of a log are 32 bits wide.
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

/// One run of a cell; then one for each startup that looked on, whose rows differ by the exit only.
fn one(cell: &Cell, run: u32) -> Result<Vec<Seen>, scenario::StudyError> {
    if let Some(seen) = cell.cloud(run) {
        return Ok(vec![Seen {
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
            samples: Vec::new(),
            events: Vec::new(),
            acks: Vec::new(),
            charts: Vec::new(),
            web: Some(seen?),
        }]);
    }
    let study = cell.study(run)?;
    let interval = study.duration / SAMPLES;
    let sampling = if cell.each_ack { Sampling::EachAck } else { Sampling::Every(interval) };
    let seed = study.run_seed(run);
    let others = cell.background.as_ref().map_or(Ok(Vec::new()), |b| b.flows(&study, seed))?;
    let gauges = cell.charts.contains(&Draw::Train);
    let (mut engine, end) = study.prepare_among(Job { contender: 0, run }, sampling, gauges, others);
    let mut log = Log::new();
    let watched = !cell.offline.is_empty() || cell.acks;
    if watched {
        engine.run_until(end, |e| {
            // What comes after the first loss is no slow start.
            if e.flows[0].truth.first_loss.is_none() {
                log.look(e, cell.acks);
            }
            e.flows[0].truth.completed.is_some()
        });
    } else {
        engine.complete(end);
    }
    let contender = |i: usize| if i == 0 { &study.contenders[0] } else { &study.against[i - 1].contender };
    let rows: Vec<Row> =
        (0..=study.against.len()).map(|i| eval::row(&study, contender(i), &engine, i, run, seed)).collect();
    let at = |t: Instant| t.since(Instant::ZERO).as_secs_f64();
    let seen = Seen {
        study: cell.study.clone(),
        label: cell.label.clone(),
        run,
        bins: engine.flows.iter().map(|f| f.truth.bins()).collect(),
        starts: engine.flows.iter().map(|f| at(f.spec.start)).collect(),
        start_s: at(engine.flows[0].spec.start),
        mss: f64::from(study.profile.mss),
        packet: f64::from(study.profile.packet()),
        stalls: engine.flows[0].ends[engine.flows[0].sender()].tx.counters.stalls,
        samples: std::mem::take(&mut engine.trace.samples),
        events: std::mem::take(&mut engine.trace.events),
        acks: log.acks,
        charts: cell.charts.clone(),
        web: None,
        rows,
    };
    let mut all = vec![seen];
    if !cell.offline.is_empty() {
        let truth = &engine.flows[0].truth;
        all.extend(looked_on(&all[0], &cell.offline, &log.text, truth.capacity, truth.first_loss)?);
    }
    Ok(all)
}

/// What startups would have done in the run that they looked at.
fn looked_on(
    base: &Seen,
    labels: &[String],
    log: &str,
    capacity: Option<Instant>,
    first_loss: Option<Instant>,
) -> Result<Vec<Seen>, scenario::StudyError> {
    let read = |label: &String| {
        let (_, startup) = scenario::startup("offline", label)?;
        Ok(Candidate { label: label.clone(), startup })
    };
    let candidates = labels.iter().map(read).collect::<Result<Vec<_>, scenario::StudyError>>()?;
    let found = kernlog::replay(log, &candidates.into(), false);
    let opinions = found.map(|l| l.findings.startups).unwrap_or_default();
    let start = Instant::ZERO + slowstart::units::Span((base.start_s * 1e9) as u64);
    let seen = |label: &String| {
        let rule = opinions.iter().find(|o| o.label == *label).and_then(|o| o.prediction.rule);
        let mut seen = Seen { label: offline_label(label), charts: Vec::new(), ..base.clone() };
        let row = &mut seen.rows[0];
        row.startup.clone_from(label);
        let exit = rule.map(|(why, m)| slowstart::control::Exited {
            why,
            at: start + m.at.since(Instant::ZERO),
            detected_at: start + m.at.since(Instant::ZERO),
            detected: m.cwnd,
            left_with: m.cwnd,
            inflight: m.cwnd,
        });
        // By its own rule or, if a loss came first, as the run itself ended.
        let by_rule = exit.filter(|e| first_loss.is_none_or(|l| e.detected_at < l));
        if let Some(e) = by_rule {
            let time_s = e.detected_at.since(start).as_secs_f64();
            row.exit = Some(ExitRow {
                reason: e.why.name().to_string(),
                time_s,
                left_s: time_s,
                detected_cwnd_bytes: e.detected.0,
                cwnd_bytes: e.left_with.0,
                inflight_bytes: e.inflight.0,
            });
            row.class = eval::class(Some(&e), capacity, first_loss);
            let by_heuristic =
                row.capacity_time_by_heuristic_s.map(|c| start + slowstart::units::Span((c * 1e9) as u64));
            row.class_by_heuristic = by_heuristic.map(|c| eval::class(Some(&e), Some(c), first_loss));
        }
        seen
    };
    Ok(labels.iter().map(seen).collect())
}

/// Every run of an experiment, study by study, startup by startup, run by run. `each` hears of every run that is over,
/// in no order.
pub fn all(e: &Experiment, seed: u64, full: bool, each: impl Fn() + Sync) -> Result<Vec<Seen>, Bad> {
    let cells = e.cells(seed, full)?;
    let jobs: Vec<(&Cell, u32)> = cells.iter().flat_map(|c| (0..c.runs).map(move |r| (c, r))).collect();
    let done: Vec<Result<Vec<Seen>, Bad>> = jobs
        .par_iter()
        .map(|(cell, run)| {
            let seen =
                one(cell, *run).map_err(|why| Bad::Study(e.id.clone(), cell.study.clone(), Box::new(why)));
            each();
            seen
        })
        .collect();
    let mut all = Vec::new();
    for seen in done {
        all.extend(seen?);
    }
    Ok(all)
}

/// How many runs an experiment has.
pub fn count(e: &Experiment, full: bool) -> u64 {
    e.cells(1, full).map_or(0, |cells| cells.iter().map(|c| u64::from(c.runs)).sum())
}
