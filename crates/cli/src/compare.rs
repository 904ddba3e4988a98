//! `slowstart compare` and `slowstart run`: startups over one path or several.

use crate::comparison::{Column, Comparison, Order, View};
use crate::engine::{EngineArg, interrupt_of, interrupt_of_all};
use crate::folder::{Contents, folder_name};
use crate::interrupt::{Interrupt, Interrupted};
use crate::output::{self, Folder, note, print};
use crate::paths_summary::{self, PathResult};
use crate::printable::printable;
use crate::row_output::{RowArgs, RowWriter};
use crate::study_args::StudyArgs;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use slowstart_lab::axis;
use slowstart_lab::engine::Sampling;
use slowstart_lab::engines::{Capture, Engine, Part, Watched, run_jobs};
use slowstart_lab::harm;
use slowstart_lab::record::{ROW_SCHEMA, Row, Trace};
use slowstart_lab::report::data::{Curve, SAMPLES};
use slowstart_lab::report::decision::{CHOSEN, Decision, Harm, Terms};
use slowstart_lab::report::link::PLAYGROUND;
use slowstart_lab::report::study::{self as report, caveats, middle, title};
use slowstart_lab::report::summary::{Measure, label, label_of};
use slowstart_lab::report::verdict;
use slowstart_lab::run::Job;
use slowstart_lab::scenario::{self, Study, StudyText};
use slowstart_lab::split;
use slowstart_replay::{qlog, wire};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Compare startups over one path or several
///
/// The startups that people choose among (--all: every one) transfer the same data over the same path, several times with
/// different random seeds, in a deterministic simulator. The table shows what each gains and costs against a baseline, which is
/// what Linux runs today, run by run. Over several paths a summary shows both for each path; without a path, over seven common
/// ones.
///
/// docs/reference/glossary.md explains the terms, docs/explain/method.md the measures.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart compare
  slowstart compare geo
  slowstart compare \"rate=50Mbit rtt=80ms queue=2bdp\" --startup search,hystart:detect=delay
  slowstart compare \"rate=10,50,200Mbit rtt=20..300ms/4 queue=1bdp\" --startup search,hystart
  slowstart compare lte --against cubic@-10s --top 5
  slowstart compare geo --all --baseline standard
  slowstart compare geo leo scenarios/paths --startup standard,search,bbr --out results

Where standard output is not a terminal, tables are 100 columns wide. If a table is too wide, it drops first the 95 %
interval, then these columns: queue, all, cwnd.

Exit status: 0, or 2 for bad input, or 130 after Ctrl-C (what is finished is shown and kept).")]
pub(crate) struct Compare {
    /// Paths. Each is a built-in name (`geo`, see `slowstart list paths`), a TOML file (`my.toml`), a folder of TOML files,
    /// or written inline as "rate=100Mbit rtt=40ms queue=1bdp" (see `slowstart list path-keys`). An inline path may begin with one
    /// whose keys it replaces ("geo rate=20Mbit"), and have lists and ranges ("rate=10,50Mbit rtt=20..300ms/4")
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    #[command(flatten)]
    study: StudyArgs,
    /// Every startup, not only those that people choose among
    #[arg(long, conflicts_with = "startup")]
    all: bool,
    #[command(flatten)]
    engine: EngineArg,
    #[command(flatten)]
    how: How,
}

/// Run studies from TOML files
///
/// A study file has the keys of the arguments of `slowstart compare`: path, startups, engine, avoidance, size, duration,
/// profile, set, app, against, remember, runs, seed. docs/reference/studies.md explains each.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart run scenarios/lte-beside-cubic.toml
  slowstart run scenarios/*.toml --out results
  slowstart run study.toml --engine quic:quinn

Exit status: 0, or 2 for bad input, or 130 after Ctrl-C (what is finished is shown and kept).")]
pub(crate) struct Run {
    /// Study files in TOML, such as scenarios/lte-beside-cubic.toml. With several and --out, each study gets a folder with
    /// the name of its file
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    engine: EngineArg,
    #[command(flatten)]
    how: How,
}

/// How results are shown and kept.
#[derive(Args)]
struct How {
    #[command(flatten)]
    rows: RowArgs,
    /// Keep rows, samples, events and a page (report.html) in this folder. If it holds finished runs of the same study, the
    /// study goes on after them; a folder with anything else in it is refused
    #[arg(long, help_heading = "Output", value_name = "DIR")]
    out: Option<PathBuf>,
    /// With --out: replace the result of another study
    #[arg(long, requires = "out", help_heading = "Output")]
    force: bool,
    /// With --out: interval of the samples, such as 10ms, or `ack` for one at each acknowledgement [default: 4000 per run]
    #[arg(long, help_heading = "Output", value_name = "INTERVAL")]
    samples: Option<String>,
    /// With --out: write the packets of the drawn run of each startup as captures at both ends (pcapng)
    #[arg(long, requires = "out", help_heading = "Output")]
    pcap: bool,
    /// With --out: write the windows of the drawn run of each startup as qlog
    #[arg(long, requires = "out", help_heading = "Output")]
    qlog: bool,
    /// Write a picture (SVG) of the startups that matter on this path
    #[arg(long, help_heading = "Output", value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print on standard error how long the runs took, and the number of packets and events
    #[arg(long, help_heading = "Output")]
    timing: bool,
    /// The startup that others are compared with [default: what the engine runs by default, hystart for the simulator; else the
    /// first startup]
    #[arg(long, help_heading = "Table", value_name = "STARTUP")]
    baseline: Option<String>,
    /// Differences of less than so many percent are none
    #[arg(long, help_heading = "Table", value_name = "PERCENT", default_value = "3", value_parser = margin)]
    margin: f64,
    /// Measure also what each startup does to a CUBIC flow beside it, where that takes long (elsewhere it is measured anyway)
    #[arg(long, help_heading = "Table")]
    harm: bool,
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
    fold: bool,
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

/// The paths that the arguments name: each folder stands for the TOML files in it, in order of their names, and an inline path
/// with axes for one path at each of their points.
fn expand(paths: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for path in paths {
        if path.contains('=') {
            all.extend(axis::paths(path)?);
            continue;
        }
        if !Path::new(path).is_dir() {
            all.push(path.clone());
            continue;
        }
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).with_context(|| path.clone())? {
            let file = entry.with_context(|| path.clone())?.path();
            if file.extension().is_some_and(|e| e == "toml") {
                files.push(
                    file.to_str().with_context(|| format!("{}: not UTF-8", file.display()))?.to_string(),
                );
            }
        }
        if files.is_empty() {
            bail!("{path}: found no TOML files, expected a folder of paths");
        }
        files.sort();
        all.append(&mut files);
    }
    Ok(all)
}

/// A folder within `out` for each name. Fails if a name gives no folder or two give the same.
fn folders(out: &Path, names: &[String]) -> Result<Vec<PathBuf>> {
    let mut all: BTreeMap<String, &String> = BTreeMap::new();
    let mut dirs = Vec::new();
    for name in names {
        let folder = folder_name(name)
            .with_context(|| format!("--out: {name:?} gives no name for a folder; rename it"))?;
        dirs.push(out.join(&folder));
        if let Some(other) = all.insert(folder, name) {
            bail!(
                "--out: {other:?} and {name:?} would both write to {}; rename one or run them separately",
                dirs[dirs.len() - 1].display()
            );
        }
    }
    Ok(dirs)
}

impl Compare {
    pub(crate) fn main(mut self) -> Result<()> {
        let engine = self.engine.of(&StudyText::default())?;
        if self.paths.is_empty() {
            if engine.is_real_clock() {
                bail!("--engine kernel: found no path, expected one: seven on the real clock take hours");
            }
            self.paths = paths_summary::COMMON.map(String::from).to_vec();
        }
        self.how.fold = self.all;
        let paths = expand(&self.paths)?;
        engine.require(&self.how.parts())?;
        let mut studies = paths
            .iter()
            .map(|path| Ok(engine.study(&self.study.text(path)?, None)?))
            .collect::<Result<Vec<_>>>()?;
        if self.study.startup.is_empty() && !self.all {
            // The kernel's own default besides.
            let chosen = |name: &str| CHOSEN.contains(&name) || name == "cubic";
            for study in &mut studies {
                study.contenders.retain(|c| chosen(&c.startup_name));
            }
        }
        if self.how.picture.is_some() && studies.len() > 1 {
            bail!("--picture: found {} paths, expected one", studies.len());
        }
        self.how.check_rows(&studies)?;
        let interrupt = interrupt_of(&*engine)?;
        let mut writer = self.how.rows.writer(ROW_SCHEMA)?;
        let result = match &studies[..] {
            [study] => self.how.study(&*engine, study, self.how.out.as_deref(), &interrupt, &mut writer),
            _ => self.several(&*engine, &studies, &interrupt, &mut writer),
        };
        ended(result, writer)
    }

    /// Runs the same study over several paths and prints a summary over them.
    fn several(
        &self,
        engine: &dyn Engine,
        studies: &[Study],
        interrupt: &Interrupt,
        writer: &mut RowWriter,
    ) -> Result<()> {
        let names: Vec<String> = studies.iter().map(|s| s.path.name.clone()).collect();
        let dirs = self.how.out.as_deref().map(|out| folders(out, &names)).transpose()?;
        let mut results = Vec::new();
        let (mut done, of) = (0, studies.iter().map(|s| s.jobs().len()).sum());
        for (i, study) in studies.iter().enumerate() {
            self.how.check_baseline(study)?;
            let finished =
                self.how.run(engine, study, dirs.as_ref().map(|d| d[i].as_path()), interrupt, writer)?;
            done += finished.done;
            if !self.how.rows.printed() {
                print(&output::wrap(&printable(&title(study)), 2))?;
            }
            results.push(PathResult { name: study.path.name.clone(), rows: finished.rows });
            if interrupt.signal().is_some() {
                break;
            }
        }
        if !self.how.rows.printed() {
            let view = self.how.view();
            print("")?;
            let terms = self.how.terms(&[]);
            let (text, legend, verdict) =
                paths_summary::render(&results, &view, &terms, output::color(), output::width());
            print(text.trim_end())?;
            print_legend(&legend)?;
            print("")?;
            print(&output::wrap(&printable(&verdict), 0))?;
        }
        check_finished(interrupt, done, of)
    }
}

impl Run {
    pub(crate) fn main(self) -> Result<()> {
        // All files are read before the first study starts, so that a mistake in the last is found at once.
        let studies = self
            .files
            .iter()
            .map(|file| {
                let text = StudyText::load(file)?;
                let named = || file.display().to_string();
                let engine = self.engine.of(&text).with_context(named)?;
                engine.require(&self.how.parts()).with_context(named)?;
                let study = engine.study(&text, file.parent()).with_context(named)?;
                Ok((engine, study))
            })
            .collect::<Result<Vec<_>>>()?;
        self.how.check_rows(studies.iter().map(|(_, study)| study))?;
        let stems: Vec<String> = self
            .files
            .iter()
            .map(|f| f.file_stem().unwrap_or_default().to_string_lossy().into_owned())
            .collect();
        let dirs = match &self.how.out {
            Some(out) if studies.len() > 1 => Some(folders(out, &stems)?),
            Some(out) => Some(vec![out.clone()]),
            None => None,
        };
        let interrupt = interrupt_of_all(studies.iter().map(|(engine, _)| &**engine))?;
        let mut writer = self.how.rows.writer(ROW_SCHEMA)?;
        let result = studies.iter().enumerate().try_for_each(|(i, (engine, study))| {
            if i > 0 && !self.how.rows.printed() {
                print("")?;
            }
            let dir = dirs.as_ref().map(|d| d[i].as_path());
            self.how.study(&**engine, study, dir, &interrupt, &mut writer)
        });
        ended(result, writer)
    }
}

/// Completes the rows, also those of a study that was interrupted.
fn ended(result: Result<()>, mut writer: RowWriter) -> Result<()> {
    match result {
        Err(e) if !e.is::<Interrupted>() => Err(e),
        result => writer.finish().and(result),
    }
}

/// Fails if a signal came before all runs were finished.
fn check_finished(interrupt: &Interrupt, done: usize, of: usize) -> Result<()> {
    match interrupt.signal() {
        Some(signal) if done < of => Err(Interrupted { signal, finished: Some((done, of)) }.into()),
        _ => Ok(()),
    }
}

/// The finished runs of a study.
struct Finished {
    /// How many.
    done: usize,
    /// Their rows, if they are held.
    rows: Vec<Row>,
    /// What each startup did to another flow, if it was measured already, for a page.
    harm: Option<Vec<Harm>>,
}

/// Traces of runs that cannot be repeated, by the index of the row: of a startup whose runs are all finished, that of the
/// run with the median of the first startup.
#[derive(Default)]
struct Traces(BTreeMap<usize, Trace>);

impl Traces {
    /// Adds the trace of the last of `rows`.
    fn add(&mut self, study: &Study, rows: &[Row], trace: Trace) {
        self.0.insert(rows.len() - 1, trace);
        let runs = study.runs as usize;
        if rows.len().is_multiple_of(runs) {
            let first = rows.len() - runs;
            let chosen = first + middle(&rows[..runs]).run as usize;
            self.0.retain(|index, _| *index < first || *index == chosen);
        }
    }
}

impl How {
    /// What it asks of an engine.
    fn parts(&self) -> Vec<Part> {
        let asked =
            [(Part::Samples, self.samples.is_some()), (Part::Pcap, self.pcap), (Part::Qlog, self.qlog)];
        asked.into_iter().filter_map(|(part, asked)| asked.then_some(part)).collect()
    }

    /// True if rows are only printed, and need not be held.
    fn streams(&self) -> bool {
        self.rows.printed() && self.out.is_none() && self.picture.is_none()
    }

    /// Fails if rows must be held and are too many.
    fn check_rows<'a>(&self, studies: impl IntoIterator<Item = &'a Study>) -> Result<()> {
        if self.streams() { Ok(()) } else { Ok(scenario::check_rows(studies)?) }
    }

    fn view(&self) -> View {
        View {
            columns: self.columns.clone(),
            order: self.sort.unwrap_or_default(),
            top: self.top.map(|n| n as usize),
            wide: self.wide,
            fold: self.fold,
        }
    }

    /// What differences are judged by.
    fn terms<'a>(&'a self, harm: &'a [Harm]) -> Terms<'a> {
        Terms { baseline: self.baseline.as_deref(), margin: self.margin, harm }
    }

    /// Fails if there is no such baseline.
    fn check_baseline(&self, study: &Study) -> Result<()> {
        let labels: Vec<String> =
            study.contenders.iter().map(|c| label_of(&c.startup_name, &c.params)).collect();
        match &self.baseline {
            Some(b) if !labels.contains(b) => {
                bail!("--baseline: found {b:?}, expected one of the startups: {}", labels.join(", "))
            }
            _ => Ok(()),
        }
    }

    /// Measures what each startup does to a CUBIC flow beside it, if that is asked for or takes little; nothing for a study
    /// that is not finished.
    fn measure_harm(&self, study: &Study, rows: &[Row]) -> Result<Vec<Harm>> {
        let is_simulated = rows.iter().all(|r| r.engine == "sim");
        let why = if is_simulated { harm::unable(study) } else { Some("only the simulator measures it") };
        if let Some(why) = why.filter(|_| self.harm) {
            bail!("--harm: {why}");
        }
        if why.is_some() || study.contenders.len() < 2 || rows.len() < study.jobs().len() {
            return Ok(Vec::new());
        }
        let decision = Decision::new(rows, &self.terms(&[]));
        let alone = decision.baseline().and_then(|b| {
            b.summary.of_all_runs(Measure::Time10MB).or_else(|| b.summary.of_all_runs(Measure::Completion))
        });
        let Some(alone) = alone.filter(|a| self.harm || harm::is_affordable(study, a.mid)) else {
            return Ok(Vec::new());
        };
        Ok(harm::measure(study, alone.mid))
    }

    /// Runs a study and shows it.
    fn study(
        &self,
        engine: &dyn Engine,
        study: &Study,
        out: Option<&Path>,
        interrupt: &Interrupt,
        writer: &mut RowWriter,
    ) -> Result<()> {
        self.check_baseline(study)?;
        let finished = self.run(engine, study, out, interrupt, writer)?;
        let harm = match finished.harm {
            None if !self.rows.printed() => self.measure_harm(study, &finished.rows)?,
            harm => harm.unwrap_or_default(),
        };
        if !finished.rows.is_empty() {
            self.show(&finished.rows, &harm, &title(study))?;
        }
        if let Some(file) = &self.picture {
            self.draw_picture(engine, study, &finished.rows, &harm, file)?;
        }
        check_finished(interrupt, finished.done, study.jobs().len())
    }

    /// Writes the picture of a study.
    fn draw_picture(
        &self,
        engine: &dyn Engine,
        study: &Study,
        rows: &[Row],
        harm: &[Harm],
        file: &Path,
    ) -> Result<()> {
        let terms = self.terms(harm);
        if engine.is_real_clock() {
            bail!("--picture: only for an engine whose runs can be repeated");
        }
        let drawn = draw(engine, study, rows, None, &terms, &Traces::default())?;
        let shown: Vec<report::Drawn> =
            drawn.iter().map(|d| report::Drawn { label: &d.label, row: &d.row, trace: &d.trace }).collect();
        let what = format!("slowstart compare {}", study.path.name);
        let svg = report::picture(study, rows, &shown, &terms, &what).context("--picture: found no runs")?;
        std::fs::write(file, svg).with_context(|| format!("--picture {}", file.display()))
    }

    /// Runs a study: what is missing in its folder, if it has one. Writes the folder and the rows.
    fn run(
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
        rows.iter().try_for_each(|row| writer.write(row))?;
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
            writer.write(&outcome.row)?;
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
        match ran {
            Err(e) if !e.is::<Interrupted>() => return Err(e),
            _ => {}
        }
        if self.timing {
            timing(done - before, packets, events, started.elapsed().as_secs_f64());
        }
        if folder.is_none() {
            return Ok(Finished { done, rows, harm: None });
        }
        let harm = self.measure_harm(study, &rows)?;
        if let Some(folder) = &folder {
            let terms = self.terms(&harm);
            let drawn = draw(engine, study, &rows, sampling, &terms, &traces)?;
            let curves = curves(engine, study, &rows, sampling, &terms, &traces)?;
            write(folder, study, &rows, &drawn, curves, &terms)?;
            let splits = split::splits(&rows);
            folder.lines(
                "splits.jsonl",
                splits.iter().map(|(startup, split)| WhatDecides { startup, split }),
            )?;
            for d in drawn.iter().filter(|_| self.pcap || self.qlog) {
                self.record(engine, folder, study, d)?;
            }
        }
        Ok(Finished { done, rows, harm: Some(harm) })
    }

    /// Prints a result: the verdict, the table and its legend, what happened to flows of --against, and notes.
    fn show(&self, rows: &[Row], harm: &[Harm], title: &str) -> Result<()> {
        if self.rows.printed() {
            return Ok(());
        }
        let (color, width) = (output::color(), output::width());
        let view = self.view();
        let decision = Decision::new(rows, &self.terms(harm));
        let mut comparison = Comparison::new(&decision, &view);
        comparison.harm_left_out =
            harm.is_empty() && rows.iter().all(|r| r.engine == "sim" && r.others.is_none());
        print(&output::wrap(&printable(title), 2))?;
        print(&output::wrap(&printable(&verdict(&decision)), 0))?;
        print("")?;
        let (text, left_out) = comparison.render(&view, color, width);
        print(text.trim_end())?;
        print_legend(&comparison.legend(&view, &left_out, width))?;
        if let Some(others) = comparison.others(color, width) {
            print("")?;
            print(others.trim_end())?;
        }
        if !output::quiet() {
            for sentence in self.wide.then(|| split::sentences(rows)).into_iter().flatten() {
                print(&output::wrap(&printable(&sentence), 2))?;
            }
            for caveat in caveats(rows) {
                print(&output::wrap(&format!("note: {caveat}"), 2))?;
            }
        }
        Ok(())
    }
}

/// Prints a legend, unless --quiet was given.
fn print_legend(legend: &[String]) -> Result<()> {
    if !output::quiet() {
        legend.iter().try_for_each(|line| print(&output::wrap(line, 2)))?;
    }
    Ok(())
}

/// Fails if `rows` are not those of the first jobs.
fn resumable(study: &Study, jobs: &[Job], rows: &[Row]) -> Result<()> {
    let fits = |(row, job): (&Row, &Job)| {
        let contender = &study.contenders[job.contender];
        row.startup == contender.startup_name
            && row.params == contender.params
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
    eprintln!(
        "{runs} runs in {seconds:.2} s: {packets} data packets ({:.2} million/s), {events} events ({:.2} million/s)",
        rate(packets),
        rate(events)
    );
}

impl How {
    /// Repeats the drawn run with all of its packets and acknowledgements, and writes them.
    fn record(&self, engine: &dyn Engine, folder: &Folder, study: &Study, drawn: &Drawn) -> Result<()> {
        let contender = study.contenders.iter().position(|c| {
            c.startup_name == drawn.row.startup && {
                slowstart_lab::scenario::params(&c.startup) == drawn.row.params
            }
        });
        let Some(contender) = contender else { return Ok(()) };
        let job = Job { contender, run: drawn.row.run };
        let name = drawn.label.replace([':', ',', '=', '/', ' '], "-");
        let trace = match engine.capture(study, job)? {
            Capture::Logs(logs) => {
                return logs
                    .iter()
                    .try_for_each(|(end, bytes)| folder.bytes(&format!("{name}.{end}.sqlog"), bytes));
            }
            Capture::Trace(trace) => trace,
        };
        if self.pcap {
            for (end, place) in [(0, "server"), (1, "client")] {
                let mut bytes = Vec::new();
                wire::write(&mut bytes, &trace.packets, end)?;
                folder.bytes(&format!("{name}.{place}.pcapng"), &bytes)?;
            }
        }
        if self.qlog {
            let mut bytes = Vec::new();
            qlog::write(&mut bytes, &drawn.label, &trace.samples, &trace.events)?;
            folder.bytes(&format!("{name}.sqlog"), &bytes)?;
        }
        Ok(())
    }
}

/// A line of `splits.jsonl`.
#[derive(serde::Serialize)]
struct WhatDecides<'a> {
    startup: &'a str,
    #[serde(flatten)]
    split: &'a split::Split,
}

/// A run that is repeated with samples. Runs are deterministic, so only those that are drawn are sampled.
pub(crate) struct Drawn {
    pub(crate) label: String,
    pub(crate) row: Row,
    pub(crate) trace: Trace,
}

/// Draws one run of each startup: the same, so that all are over the same path.
fn draw(
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
            let trace = if engine.is_real_clock() {
                traces.0[&(contender * runs + row.run as usize)].clone()
            } else {
                let sampling = sampling.unwrap_or_else(|| report::sampling(row));
                let watched = Watched { internals: true, ..Watched::samples(sampling) };
                engine.run(study, Job { contender, run }, &watched)?.trace
            };
            Ok(Drawn { label: label(row), row: row.clone(), trace })
        })
        .collect()
}

fn write(
    folder: &Folder,
    study: &Study,
    rows: &[Row],
    drawn: &[Drawn],
    curves: Vec<Curve>,
    terms: &Terms,
) -> Result<()> {
    #[derive(serde::Serialize)]
    struct Of<'a, T> {
        startup: &'a str,
        run: u32,
        #[serde(flatten)]
        what: &'a T,
    }
    fn tag<'a, T>(d: &'a Drawn, what: &'a T) -> Of<'a, T> {
        Of { startup: &d.label, run: d.row.run, what }
    }
    folder
        .lines("samples.jsonl", drawn.iter().flat_map(|d| d.trace.samples.iter().map(move |s| tag(d, s))))?;
    folder.lines("events.jsonl", drawn.iter().flat_map(|d| d.trace.events.iter().map(move |e| tag(d, e))))?;
    let shown: Vec<report::Drawn> =
        drawn.iter().map(|d| report::Drawn { label: &d.label, row: &d.row, trace: &d.trace }).collect();
    folder.text("report.html", &report::page(study, rows, &shown, curves, &command(), &playground(), terms))
}

/// The address of the playground to which reports link: the project's, or that of the environment variable
/// `SLOWSTART_PLAYGROUND`.
pub(crate) fn playground() -> String {
    std::env::var("SLOWSTART_PLAYGROUND").unwrap_or_else(|_| PLAYGROUND.to_string())
}

/// The samples of the runs that a page can draw; runs are repeated for them where they can be.
fn curves(
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

/// The command line, as it can be typed again.
pub(crate) fn command() -> String {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .map(|a| if a.contains([' ', '*', '&']) { format!("\"{a}\"") } else { a })
        .collect();
    format!("slowstart {}", args.join(" "))
}
