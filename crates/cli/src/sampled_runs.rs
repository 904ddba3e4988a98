//! The runs of a study that are drawn: repeated with samples, and written to its folder.

use crate::folder::Folder;
use crate::output;
use anyhow::Result;
use slowstart_replay::{qlog, wire};
use slowstart_report::data::{Curve, SAMPLES};
use slowstart_report::link::PLAYGROUND;
use slowstart_report::study::{self as report, middle};
use slowstart_sim::engine::Sampling;
use slowstart_study::decision::Terms;
use slowstart_study::engines::{Capture, Engine, Watched, run_jobs};
use slowstart_study::record::{OfRun, Row, Trace};
use slowstart_study::run::Job;
use slowstart_study::scenario::Study;
use slowstart_study::split;
use slowstart_study::summary::label;
use std::collections::BTreeMap;

/// Traces of runs that cannot be repeated, by the index of the row: of a startup whose runs are all finished,
/// that of the run with the median of the first startup.
#[derive(Default)]
pub(crate) struct Traces(BTreeMap<usize, Trace>);

impl Traces {
    /// Adds the trace of the last of `rows`.
    pub(crate) fn add(&mut self, study: &Study, rows: &[Row], trace: Trace) {
        self.0.insert(rows.len() - 1, trace);
        let runs = study.runs as usize;
        if rows.len().is_multiple_of(runs) {
            let first = rows.len() - runs;
            let chosen = first + middle(&rows[..runs]).run as usize;
            self.0.retain(|index, _| *index < first || *index == chosen);
        }
    }
}

/// In which forms the packets of drawn runs are written.
#[derive(Copy, Clone)]
pub(crate) struct Forms {
    pub(crate) pcap: bool,
    pub(crate) qlog: bool,
}

/// Repeats the drawn run with all of its packets and acknowledgements, and writes them.
pub(crate) fn record(
    engine: &dyn Engine,
    folder: &Folder,
    study: &Study,
    drawn: &Drawn,
    forms: Forms,
) -> Result<()> {
    let name = drawn.label.replace([':', ',', '=', '@', '/', ' '], "-");
    let trace = match engine.capture(study, drawn.job)? {
        Capture::Logs(logs) => {
            return logs
                .iter()
                .try_for_each(|(end, bytes)| folder.bytes(&format!("{name}.{end}.sqlog"), bytes));
        }
        Capture::Trace(trace) => trace,
    };
    if forms.pcap {
        for (end, place) in [(0, "server"), (1, "client")] {
            let mut bytes = Vec::new();
            wire::write(&mut bytes, &trace.packets, end)?;
            folder.bytes(&format!("{name}.{place}.pcapng"), &bytes)?;
        }
    }
    if forms.qlog {
        let mut bytes = Vec::new();
        qlog::write(&mut bytes, &drawn.label, &trace.samples, &trace.events)?;
        folder.bytes(&format!("{name}.sqlog"), &bytes)?;
    }
    Ok(())
}

/// What a page or a picture draws.
pub(crate) fn shown(drawn: &[Drawn]) -> Vec<report::Drawn<'_>> {
    drawn.iter().map(|d| report::Drawn { label: &d.label, row: &d.row, trace: &d.trace }).collect()
}

/// A line of `splits.jsonl`.
#[derive(serde::Serialize)]
pub(crate) struct WhatDecides<'a> {
    pub(crate) startup: &'a str,
    #[serde(flatten)]
    pub(crate) split: &'a split::Split,
}

/// A run that is repeated with samples. Runs are deterministic, so only those that are drawn are sampled.
pub(crate) struct Drawn {
    pub(crate) label: String,
    pub(crate) job: Job,
    pub(crate) row: Row,
    pub(crate) trace: Trace,
}

/// Draws one run of each startup: the same, so that all are over the same path.
pub(crate) fn draw(
    engine: &dyn Engine,
    study: &Study,
    rows: &[Row],
    sampling: Option<Sampling>,
    terms: &Terms,
    traces: &Traces,
) -> Result<Vec<Drawn>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let runs = study.runs as usize;
    let run = if engine.is_real_clock() {
        middle(&rows[..runs.min(rows.len())]).run
    } else {
        report::shown_run(rows, terms)
    };
    rows.chunks(runs)
        .enumerate()
        .filter_map(|(contender, rows)| Some((contender, rows.iter().find(|r| r.run == run)?)))
        .map(|(contender, row)| {
            let job = Job { contender, run };
            let trace = if engine.is_real_clock() {
                traces.0[&(contender * runs + row.run as usize)].clone()
            } else {
                let sampling = sampling.unwrap_or_else(|| report::sampling(row));
                let watched = Watched { internals: true, ..Watched::samples(sampling) };
                engine.run(study, job, &watched)?.trace
            };
            Ok(Drawn { label: label(row), job, row: row.clone(), trace })
        })
        .collect()
}

pub(crate) fn write(
    folder: &Folder,
    study: &Study,
    rows: &[Row],
    drawn: &[Drawn],
    curves: Vec<Curve>,
    terms: &Terms,
) -> Result<()> {
    fn tag<'a, T>(d: &'a Drawn, what: &'a T) -> OfRun<'a, T> {
        OfRun { startup: &d.label, run: d.row.run, what }
    }
    folder
        .lines("samples.jsonl", drawn.iter().flat_map(|d| d.trace.samples.iter().map(move |s| tag(d, s))))?;
    folder.lines("events.jsonl", drawn.iter().flat_map(|d| d.trace.events.iter().map(move |e| tag(d, e))))?;
    folder.text(
        "report.html",
        &report::page(study, rows, &shown(drawn), curves, &output::command(), &playground(), terms),
    )
}

/// The address of the playground to which reports link: the project's, or that of the environment variable
/// `SLOWSTART_PLAYGROUND`.
pub(crate) fn playground() -> String {
    std::env::var("SLOWSTART_PLAYGROUND").unwrap_or_else(|_| PLAYGROUND.to_string())
}

/// The samples of the runs that a page can draw; runs are repeated for them where they can be.
pub(crate) fn curves(
    engine: &dyn Engine,
    study: &Study,
    rows: &[Row],
    sampling: Option<Sampling>,
    terms: &Terms,
    traces: &Traces,
) -> Result<Vec<Curve>> {
    if engine.is_real_clock() {
        let curve = |(n, trace): (&usize, &Trace)| report::curve(study, *n, &rows[*n], trace, SAMPLES);
        return Ok(traces.0.iter().map(curve).collect());
    }
    let jobs = report::sampled(study, rows, terms);
    let mut curves = Vec::new();
    let run = |s: report::Sampled| {
        let row = &rows[s.index];
        let watched = Watched::samples(sampling.unwrap_or_else(|| report::sampling(row)));
        let outcome = engine.run(study, s.job, &watched)?;
        Ok(report::curve(study, s.index, row, &outcome.trace, s.samples))
    };
    run_jobs(engine, &jobs, run, |curve: Result<Curve>| -> Result<()> {
        curves.push(curve?);
        Ok(())
    })?;
    Ok(curves)
}
