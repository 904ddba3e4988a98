//! The runs of a study, one after another, and their verdict and tables.

use crate::request::Request;
use serde::Serialize;
use slowstart::units::Span;
use slowstart_report::data::{Curve, Data, SAMPLES};
use slowstart_report::{study as about, table};
use slowstart_sim::engine::Sampling;
use slowstart_study::decision::{Decision, Terms};
use slowstart_study::record::Row;
use slowstart_study::run::Job;
use slowstart_study::scenario::Study;
use slowstart_study::split;
use slowstart_study::summary::label;
use slowstart_study::verdict::verdict;
use std::collections::BTreeMap;

/// A study whose runs are made one by one, so that a page can show how far it is, and stop it.
pub struct Task {
    request: Request,
    study: Study,
    jobs: Vec<Job>,
    rows: Vec<Row>,
}

/// Title, verdict and tables of the rows so far.
#[derive(Debug, Serialize)]
struct Summary {
    title: String,
    about: String,
    verdict: String,
    /// What decides between classes, over an ensemble.
    decides: Vec<String>,
    caveats: Vec<String>,
    /// The table of medians as HTML; all text in it is escaped.
    table: String,
    rows: Vec<Row>,
    labels: Vec<String>,
    looks: BTreeMap<String, usize>,
}

impl Task {
    /// Reads a request and checks its study.
    pub fn new(json: &str) -> Result<Self, String> {
        let request = Request::read(json)?;
        let study = request.study()?;
        let jobs = study.jobs();
        Ok(Self { request, study, jobs, rows: Vec::new() })
    }

    /// How many runs there are in all.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Makes the next run. Returns its row as the command line prints it with `--json`, or nothing after the
    /// last.
    pub fn run_next(&mut self) -> Option<String> {
        let job = *self.jobs.get(self.rows.len())?;
        let row = self.study.run(job, Sampling::Off, false).row;
        let line = serde_json::to_string(&row).expect("a row is JSON");
        self.rows.push(row);
        Some(line)
    }

    /// Returns the title, verdict and tables of the rows so far, as JSON.
    pub fn summary(&self) -> String {
        let decision = Decision::new(&self.rows, &Terms::default());
        let Data { labels, looks, .. } = Data::new(&self.rows);
        let summary = Summary {
            title: about::title(&self.study),
            about: about::about(&self.study),
            verdict: verdict(&decision),
            decides: split::sentences(&self.rows),
            caveats: about::caveats(&self.rows),
            table: table::table(&decision).into_string(),
            rows: self.rows.clone(),
            labels,
            looks,
        };
        serde_json::to_string(&summary).expect("a summary is JSON")
    }

    /// The page that `slowstart compare --out` writes, once all runs are made. It links to the playground at
    /// `base`.
    pub fn report(&self, base: &str) -> String {
        let mut curves = Vec::new();
        let mut drawn = Vec::new();
        let terms = Terms::default();
        let shown_run = about::shown_run(&self.rows, &terms);
        for about::Sampled { index, job, samples } in about::sampled(&self.study, &self.rows, &terms) {
            let row = &self.rows[index];
            let trace = self.study.run(job, about::sampling(row), false).trace;
            curves.push(about::curve(&self.study, index, row, &trace, samples));
            if shown_run == job.run {
                drawn.push((label(row), row, trace));
            }
        }
        let shown: Vec<about::Drawn> =
            drawn.iter().map(|(label, row, trace)| about::Drawn { label, row, trace }).collect();
        about::page(&self.study, &self.rows, &shown, curves, &self.request.text.command(), base, &terms)
    }

    /// One run of each startup with about `samples` samples, as the data of a page. The runs are those with
    /// the index `run`.
    pub fn curves(&self, run: u32, samples: u32) -> Result<String, String> {
        if run >= self.study.runs {
            return Err(format!("found run {run}, expected one below {}", self.study.runs));
        }
        let start_s = Span(self.study.start().0).as_secs_f64();
        let mut rows = Vec::new();
        let mut curves = Vec::new();
        for contender in 0..self.study.contenders.len() {
            let outcome = self.study.run(Job { contender, run }, interval(&self.study, samples), true);
            curves.push(Curve::new(rows.len(), outcome.row.flow, &outcome.trace, start_s, SAMPLES));
            rows.push(outcome.row);
        }
        let mut data = Data::new(&rows);
        data.curves = curves;
        let data = serde_json::to_string(&data).expect("rows and numbers are JSON");
        let decision = Decision::new(&rows, &Terms::default());
        let verdict = serde_json::to_string(&verdict(&decision)).expect("text");
        let title = serde_json::to_string(&about::title(&self.study)).expect("text");
        let table = serde_json::to_string(&table::table(&decision).into_string()).expect("text");
        Ok(format!("{{\"title\":{title},\"verdict\":{verdict},\"table\":{table},\"data\":{data}}}"))
    }

    /// Returns the study that the request asked for.
    pub fn study(&self) -> &Study {
        &self.study
    }
}

/// The interval that gives about so many samples while a transfer lasts that fills the path: three times its
/// least time.
fn interval(study: &Study, samples: u32) -> Sampling {
    let least = study.size.map(|bytes| study.path.facts().rate.time_for(slowstart::units::Bytes(bytes)));
    let expected =
        least.map_or(study.duration, |t| t * 2 + study.path.facts().base_rtt * 20).min(study.duration);
    Sampling::Every(Span((expected.0 / u64::from(samples.max(1))).clamp(50_000, 100_000_000)))
}
