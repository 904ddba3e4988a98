//! How the runs of a study are made, shown and kept, by the arguments of `compare` and `run`.

use crate::columns::Column;
use crate::comparison::{Comparison, Order, View};
use crate::folder::{Contents, Folder, ROWS, refuse_existing, write_new};
use crate::interrupt::{Interrupt, Interrupted};
use crate::output::{self, note, print, write_error};
use crate::printable::printable;
use crate::row_output::{RowArgs, RowWriter};
use crate::sampled_runs::{Forms, Traces, WhatDecides, curves, draw, record, shown, write};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use slowstart_report::study::{self as report, caveats, caveats_in_brief, title};
use slowstart_sim::engine::Sampling;
use slowstart_study::decision::{Decision, Terms};
use slowstart_study::engines::{Engine, Part, Watched, run_jobs};
use slowstart_study::harm;
use slowstart_study::record::Row;
use slowstart_study::run::Job;
use slowstart_study::scenario::{self, Study};
use slowstart_study::split;
use slowstart_study::summary::label;
use slowstart_study::verdict::verdict;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How results are shown and kept.
#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) rows: RowArgs,
    /// Keep rows, samples, events and a page (report.html) in this folder. If it holds finished runs of the
    /// same study, the study goes on after them; a folder with anything else in it is refused
    #[arg(long, help_heading = "Output", value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// With --out: replace the result of another study
    #[arg(long, requires = "out", help_heading = "Output")]
    force: bool,
    /// With --out: interval of the samples, such as 10ms, or `ack` for one at each acknowledgement
    /// [default: 4000 per run]
    #[arg(long, help_heading = "Output", value_name = "INTERVAL")]
    samples: Option<String>,
    /// With --out: write the packets of the run in the charts, for each startup, as captures at both ends (pcapng)
    #[arg(long, requires = "out", help_heading = "Output")]
    pcap: bool,
    /// With --out: write the windows of the run in the charts, for each startup, as qlog
    #[arg(long, requires = "out", help_heading = "Output")]
    qlog: bool,
    /// Write a picture (SVG) of the startups that matter on this path to this file, which must not exist
    #[arg(long, help_heading = "Output", value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// Print on standard error how long the runs took, and the number of packets and events
    #[arg(long, help_heading = "Output")]
    timing: bool,
    /// The startup that others are compared with
    /// [default: what the engine runs by default, hystart for the simulator; else the first startup]
    #[arg(long, help_heading = "Table", value_name = "STARTUP")]
    baseline: Option<String>,
    /// Ignore differences below this many percent
    #[arg(long, help_heading = "Table", value_name = "PERCENT", default_value = "3", value_parser = margin)]
    margin: f64,
    /// Measure what each startup does to a CUBIC flow beside it even where that takes long, and write it with rows
    /// (`got_percent`)
    #[arg(long, help_heading = "Table")]
    pub(crate) harm: bool,
    /// Columns of the table, in this order and whatever the width, such as all,exit,lost
    #[arg(long, value_enum, value_delimiter = ',', help_heading = "Table", value_name = "COLUMN")]
    columns: Vec<Column>,
    /// Sort by `startup` or by a column instead of by what each gains
    #[arg(long, value_parser = order, help_heading = "Table", value_name = "COLUMN")]
    sort: Option<Order>,
    /// Show only the first N lines
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Table", value_name = "N")]
    top: Option<u32>,
    /// Show every column with its intervals and a line for each startup, whatever the width
    #[arg(long, help_heading = "Table")]
    wide: bool,
    /// Versions of an algorithm are one line.
    #[arg(skip)]
    pub(crate) fold: bool,
}

/// Reads the argument of `--margin`; returns a share.
pub(crate) fn margin(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
    percent.map(|p| p / 100.0).ok_or_else(|| "expected percent from 0 to 100".to_string())
}

/// Reads the argument of `--sort`.
fn order(text: &str) -> Result<Order, String> {
    match text {
        "gain" => Ok(Order::Gain),
        "startup" => Ok(Order::Startup),
        _ => Column::from_str(text, false).map(Order::Column).map_err(|_| {
            let columns: Vec<String> = Column::value_variants()
                .iter()
                .filter_map(|c| Some(c.to_possible_value()?.get_name().to_string()))
                .collect();
            format!("found {text:?}, expected gain, startup or a column: {}", columns.join(", "))
        }),
    }
}

/// Completes the rows, also those of a study that was interrupted.
pub(crate) fn ended(result: Result<()>, mut writer: RowWriter) -> Result<()> {
    match result {
        Err(e) if !e.is::<Interrupted>() => Err(e),
        result => writer.finish().and(result),
    }
}

/// Fails if a signal came before all runs were finished.
pub(crate) fn check_finished(interrupt: &Interrupt, done: usize, of: usize) -> Result<()> {
    match interrupt.signal() {
        Some(signal) if done < of => Err(Interrupted { signal, finished: Some((done, of)) }.into()),
        _ => Ok(()),
    }
}

/// The finished runs of a study.
pub(crate) struct Finished {
    /// How many.
    pub(crate) done: usize,
    /// Their rows, if they are held.
    pub(crate) rows: Vec<Row>,
}

impl RunArgs {
    /// What it asks of an engine.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let asked =
            [(Part::Samples, self.samples.is_some()), (Part::Pcap, self.pcap), (Part::Qlog, self.qlog)];
        asked.into_iter().filter_map(|(part, asked)| asked.then_some(part)).collect()
    }

    /// True if rows are only printed, and need not be held.
    fn streams(&self) -> bool {
        self.rows.printed() && self.out.is_none() && self.picture.is_none() && !self.harm
    }

    /// Fails if rows must be held and are too many.
    pub(crate) fn check_rows<'a>(&self, studies: impl IntoIterator<Item = &'a Study>) -> Result<()> {
        if self.streams() { Ok(()) } else { Ok(scenario::check_rows(studies)?) }
    }

    pub(crate) fn view(&self) -> View {
        View {
            columns: self.columns.clone(),
            order: self.sort.unwrap_or_default(),
            top: self.top.map(|n| n as usize),
            wide: self.wide,
            fold: self.fold,
        }
    }

    /// What differences are judged by.
    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms { baseline: self.baseline.as_deref(), margin: self.margin }
    }

    /// Fails if there is no such baseline, or if the harm that was asked for cannot be measured.
    pub(crate) fn check(&self, engine: &dyn Engine, study: &Study) -> Result<()> {
        if let Some(why) = harm::unable(engine.name(), study).filter(|_| self.harm) {
            bail!("--harm: {}: {why}", study.path.name);
        }
        self.terms().check(study).map_err(|why| anyhow!("--baseline: {why}"))
    }

    /// Measures what each startup does to a CUBIC flow beside it, if that is asked for, or if it takes little and no
    /// program has read `rows` already; nothing for a study that is not finished.
    fn measure_harm(&self, engine: &dyn Engine, study: &Study, rows: &mut [Row]) {
        if harm::unable(engine.name(), study).is_some()
            || study.contenders.len() < 2
            || rows.len() < study.jobs().len()
        {
            return;
        }
        let alone = harm::alone_s(rows, &self.terms());
        let held = !self.rows.written();
        if let Some(alone) = alone.filter(|a| self.harm || held && harm::is_affordable(study, *a)) {
            harm::add(study, alone, rows);
        }
    }

    /// Runs a study and shows it.
    pub(crate) fn study(
        &self,
        engine: &dyn Engine,
        study: &Study,
        out: Option<&Path>,
        interrupt: &Interrupt,
        writer: &mut RowWriter,
    ) -> Result<()> {
        self.check(engine, study)?;
        if let Some(file) = &self.picture {
            refuse_existing(file).context("--picture")?;
        }
        let mut finished = self.run(engine, study, out, interrupt, writer)?;
        if !self.harm && out.is_none() {
            self.measure_harm(engine, study, &mut finished.rows);
        }
        if !finished.rows.is_empty() {
            let missing = self.missing_baseline(engine, study, &finished.rows);
            self.show(&finished.rows, &title(study), missing)?;
        }
        if let Some(file) = &self.picture {
            self.draw_picture(engine, study, &finished.rows, file)?;
        }
        check_finished(interrupt, finished.done, study.jobs().len())
    }

    /// The baseline of an interrupted study, if no run of it is there.
    fn missing_baseline(&self, engine: &dyn Engine, study: &Study, rows: &[Row]) -> Option<String> {
        let wanted = self.terms().baseline_of(study, engine.name())?;
        (!rows.iter().any(|r| label(r) == wanted)).then_some(wanted)
    }

    /// Writes the picture of a study.
    fn draw_picture(&self, engine: &dyn Engine, study: &Study, rows: &[Row], file: &Path) -> Result<()> {
        let terms = self.terms();
        if engine.is_real_clock() {
            bail!("--picture: only for an engine whose runs can be repeated");
        }
        let drawn = draw(engine, study, rows, None, &terms, &Traces::default())?;
        let what = format!("slowstart compare {}", study.path.name);
        let svg = report::picture(study, rows, &shown(&drawn), &terms, &what)
            .context("--picture: found no runs")?;
        write_new(file, &svg).context("--picture")
    }

    /// Runs a study: what is missing in its folder, if it has one. Writes the folder and the rows.
    pub(crate) fn run(
        &self,
        engine: &dyn Engine,
        study: &Study,
        out: Option<&Path>,
        interrupt: &Interrupt,
        writer: &mut RowWriter,
    ) -> Result<Finished> {
        let sampling = match self.samples.as_deref() {
            None => None,
            Some("ack") => Some(Sampling::EachAck),
            Some(t) => Some(Sampling::Every(scenario::time("samples", t)?)),
        };
        let jobs = study.jobs();
        let (mut folder, mut rows) = match out {
            Some(dir) => {
                let (folder, rows) = Folder::open(dir, &Contents::of_study(engine, study), self.force)?;
                resumable(study, &jobs, &rows).with_context(|| format!("--out {}", dir.display()))?;
                if !rows.is_empty() {
                    note(&format!(
                        "--out {}: {} of {} runs are there",
                        dir.display(),
                        rows.len(),
                        jobs.len()
                    ));
                }
                (Some(folder), rows)
            }
            None => (None, Vec::new()),
        };
        // Of another flow nothing is known before the end.
        let written = |writer: &mut RowWriter, row: &Row| if self.harm { Ok(()) } else { writer.write(row) };
        rows.iter().try_for_each(|row| written(writer, row))?;
        engine.notes(study).iter().for_each(|n| note(n));
        let mut traces = Traces::default();
        if let Some(folder) = folder.as_ref().filter(|_| engine.is_real_clock()) {
            for n in 0..rows.len() {
                traces.add(study, &rows[..=n], folder.trace(n)?);
            }
        }
        #[allow(clippy::disallowed_methods, reason = "for --timing only: no result depends on it")]
        let started = Instant::now();
        let before = rows.len();
        let (mut done, mut packets, mut events) = (before, 0, 0);
        // Runs on the real clock are few, and the traces of some are kept.
        let holds = !self.streams() || engine.is_real_clock();
        let bar = output::progress(jobs.len() as u64);
        bar.inc(before as u64);
        let stop = || interrupt.signal().is_some();
        let run = |job| engine.run(study, job, &Watched { stop: &stop, ..Watched::ROW });
        let ran = run_jobs(engine, &jobs[before..], run, |outcome| -> Result<()> {
            if outcome.is_err() {
                // A signal also ends the programs that a run on the real clock started.
                check_finished(interrupt, done, jobs.len())?;
            }
            let outcome = outcome?;
            if let Some(folder) = &mut folder {
                if engine.is_real_clock() {
                    folder.add_trace(done, &outcome.trace)?;
                }
                folder.row(&outcome.row)?;
            }
            written(writer, &outcome.row)?;
            (done, packets, events) =
                (done + 1, packets + outcome.row.cost.packets, events + outcome.row.cost.events);
            if holds {
                rows.push(outcome.row);
            }
            if engine.is_real_clock() {
                traces.add(study, &rows, outcome.trace);
            }
            bar.inc(1);
            check_finished(interrupt, done, jobs.len())
        });
        bar.finish_and_clear();
        interrupt.stopped();
        match ran {
            Err(e) if !e.is::<Interrupted>() => return Err(e),
            _ => {}
        }
        if self.timing {
            timing(done - before, packets, events, started.elapsed().as_secs_f64());
        }
        if self.harm || folder.is_some() {
            self.measure_harm(engine, study, &mut rows);
        }
        if self.harm {
            rows.iter().try_for_each(|row| writer.write(row))?;
        }
        if let Some(folder) = &folder {
            let terms = self.terms();
            let drawn = draw(engine, study, &rows, sampling, &terms, &traces)?;
            let curves = curves(engine, study, &rows, sampling, &terms, &traces)?;
            write(folder, study, &rows, &drawn, curves, &terms)?;
            let splits = split::splits(&rows);
            folder.lines(
                "splits.jsonl",
                splits.iter().map(|(startup, split)| WhatDecides { startup, split }),
            )?;
            if rows.iter().any(|r| r.got_percent.is_some()) {
                folder.lines(ROWS, rows.iter())?;
            }
            for d in drawn.iter().filter(|_| self.pcap || self.qlog) {
                record(engine, folder, study, d, Forms { pcap: self.pcap, qlog: self.qlog })?;
            }
        }
        Ok(Finished { done, rows })
    }

    /// Prints a result: the verdict, the table and its legend, what happened to flows of --against, and
    /// notes.
    fn show(&self, rows: &[Row], title: &str, missing: Option<String>) -> Result<()> {
        if self.rows.printed() {
            return Ok(());
        }
        let (color, width) = (output::color(), output::width());
        let view = self.view();
        let decision = Decision::new(rows, &self.terms());
        let mut comparison = Comparison::new(&decision, &view);
        comparison.harm_left_out = rows.iter().all(could_harm) && !decision.has_harm();
        print(&output::wrap(&printable(title), 2))?;
        print("")?;
        let (text, left_out) = comparison.render(&view, color, width);
        print(text.trim_end())?;
        print_legend(&comparison.brief(), || comparison.legend(&view, &left_out, width))?;
        if let Some(others) = comparison.others(color, width) {
            print("")?;
            print(others.trim_end())?;
        }
        if output::verbose() {
            for table in
                [comparison.limits(color, width), comparison.lost_by(color, width)].into_iter().flatten()
            {
                print("")?;
                print(table.trim_end())?;
            }
        }
        if !output::quiet() {
            for sentence in self.wide.then(|| split::sentences(rows)).into_iter().flatten() {
                print(&output::wrap(&printable(&sentence), 2))?;
            }
            if output::brief() {
                caveats_in_brief(rows).map_or(Ok(()), |notes| print(&output::wrap(&notes, 2)))?;
            } else {
                for caveat in caveats(rows) {
                    print(&output::wrap(&format!("note: {caveat}"), 2))?;
                }
            }
        }
        print("")?;
        let text = match missing {
            Some(baseline) => {
                format!("There is no verdict: no run of the baseline, {baseline}, is finished.")
            }
            None => verdict(&decision),
        };
        output::print_verdict(&printable(&text))
    }
}

/// Prints a legend, unless --quiet was given; on a terminal its short form.
pub(crate) fn print_legend(brief: &str, whole: impl FnOnce() -> Vec<String>) -> Result<()> {
    if output::quiet() {
        return Ok(());
    }
    if output::brief() {
        return print(&output::wrap(brief, 2));
    }
    whole().iter().try_for_each(|line| print(&output::wrap(line, 2)))
}

/// True of a run whose harm --harm can measure: a bulk transfer over one connection, alone.
pub(crate) fn could_harm(r: &Row) -> bool {
    r.engine == "sim" && r.others.is_none() && r.objects.is_none() && r.connections.is_empty()
}

/// Fails if `rows` are not those of the first jobs.
fn resumable(study: &Study, jobs: &[Job], rows: &[Row]) -> Result<()> {
    let fits = |(row, job): (&Row, &Job)| {
        let contender = &study.contenders[job.contender];
        row.startup == contender.startup_name
            && row.params == contender.params
            && row.settings == contender.settings()
            && row.run == job.run
            && row.seed == study.run_seed(job.run)
    };
    if rows.len() > jobs.len() || !rows.iter().zip(jobs).all(fits) {
        bail!("results.jsonl has rows that are not of this study; start again with --force");
    }
    Ok(())
}

/// Prints what the runs took.
fn timing(runs: usize, packets: u64, events: u64, seconds: f64) {
    let rate = |n: u64| n as f64 / seconds.max(1e-9) / 1e6;
    write_error(&format!(
        "{runs} runs in {seconds:.2} s: {packets} data packets ({:.2} million/s), {events} events ({:.2} million/s)",
        rate(packets),
        rate(events)
    ));
}
