//! `slowstart reproduce`: runs the experiments of the papers and compares their claims with measured values.

use crate::folder::write_bytes;
use crate::interrupt::{Interrupt, POLL};
use crate::output::{print, print_verdict, progress, tell, verbose, wrap};
use anyhow::{Context, Result, bail};
use clap::Args;
use slowstart_papers::claim::{Cause, Verdict};
use slowstart_papers::experiment::Experiment;
use slowstart_papers::judge::{self, Judged};
use slowstart_papers::record::{self, Record};
use slowstart_papers::{page, run, screen, summary};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The seed for which verdicts are recorded.
const RECORDED: u64 = 1;
/// The file of the table of all claims.
const TABLE: &str = "README.md";
/// The file of the list of all claims, and that of the page with a search box.
const LIST: &str = "claims.md";
const INDEX: &str = "index.html";
/// The file of the records of all claims, which marks a folder of this command.
const CLAIMS: &str = "claims.jsonl";

/// Run the experiments of the papers and state which of their claims hold
///
/// ID is an experiment of `--list`, a paper (all of its experiments), or a file
/// (`my.toml`). `-v` adds what was measured, the bound and the reason of each
/// verdict.
///
/// The exit status is 1 if a verdict is not the recorded one. Verdicts are
/// recorded for seed 1; with another seed the exit status is 1 only if a verdict
/// is the opposite of the recorded one (holds instead of differs, or differs
/// instead of holds).
///
/// Examples:
///   slowstart reproduce --list
///   slowstart reproduce hystart/fig1 -v
///   slowstart reproduce --all --out results
///   slowstart reproduce --all --seed 2
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Reproduce {
    /// Experiments, papers, or files
    #[arg(required_unless_present_any = ["all", "list"])]
    ids: Vec<String>,
    /// Run all experiments
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// List all experiments
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    list: bool,
    /// Use as many runs as the papers, where the default is fewer
    #[arg(long)]
    full: bool,
    /// Random seed of all studies; verdicts are recorded for 1
    #[arg(long, default_value_t = RECORDED)]
    seed: u64,
    /// Write a page for each experiment to this folder, and the claims with those of other experiments that
    /// it holds
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Reproduce {
    pub(crate) fn main(self) -> Result<bool> {
        if self.list {
            for e in Experiment::all() {
                print(&wrap(&format!("{:<22} {}", e.id, e.title), 23))?;
            }
            return Ok(true);
        }
        let named = if self.all { Vec::new() } else { Experiment::named(&self.ids)? };
        let (chosen, left_out): (Vec<&Experiment>, Vec<&Experiment>) = if self.all {
            Experiment::all().iter().partition(|e| e.absence().is_none())
        } else {
            (named.iter().map(AsRef::as_ref).collect(), Vec::new())
        };
        let total = chosen.iter().map(|e| run::count(e, self.full)).sum();
        let bar = progress(total);
        if let Some(dir) = &self.out {
            slowstart_files::Folder::create(dir).with_context(|| format!("--out {}", dir.display()))?;
            let there = |name: &str| fs::symlink_metadata(dir.join(name)).is_ok();
            // The claims of a folder that this command wrote are merged; another folder's files are not
            // replaced.
            let mut names = chosen.iter().map(|e| page_name(e)).chain([TABLE, LIST, INDEX].map(String::from));
            if !there(CLAIMS)
                && let Some(name) = names.find(|name| there(name))
            {
                bail!("--out {}: found {name} without {CLAIMS}; choose another folder", dir.display());
            }
        }
        if chosen.len() > 1 {
            tell(&format!("{} experiments, {total} runs", chosen.len()));
        }
        let of = chosen.len();
        let interrupt = Interrupt::record_first()?;
        let results: Mutex<Vec<(&Experiment, Vec<Judged>)>> = Mutex::default();
        let over = AtomicBool::new(false);
        // A run cannot be stopped: on a signal the program ends beside it, with what is finished; if nobody reads
        // what it prints, without that.
        let watch = || {
            while !over.load(Ordering::Relaxed) {
                if let Some(signal) = interrupt.signal() {
                    let results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    interrupt.stopped();
                    bar.finish_and_clear();
                    if !results.is_empty() {
                        self.finish(&results, &[]).err().inspect(|e| tell(&format!("{e:#}")));
                    }
                    tell(&format!("interrupted: {} of {of} experiments are finished", results.len()));
                    std::process::exit(128 + i32::from(signal));
                }
                thread::sleep(POLL);
            }
        };
        thread::scope(|s| {
            s.spawn(watch);
            let ran = run::several(
                &chosen,
                self.seed,
                self.full,
                || bar.inc(1),
                |e, runs| {
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push((e, judge::judge(e, &runs)));
                    let judged = &results[results.len() - 1].1;
                    if let Some(dir) = &self.out {
                        // The records first: a folder without them is not this command's, and a killed run keeps
                        // what is finished.
                        write_records(dir, &results)?;
                        write_bytes(dir, &page_name(e), page::html(e, judged, &runs).as_bytes())?;
                    }
                    bar.suspend(|| show(e, judged))?;
                    anyhow::Ok(())
                },
            );
            over.store(true, Ordering::Relaxed);
            ran
        })?;
        bar.finish_and_clear();
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.finish(&results, &left_out)
    }

    /// Writes and prints the summary; false if a verdict is not the recorded one.
    fn finish(&self, results: &[(&Experiment, Vec<Judged>)], left_out: &[&Experiment]) -> Result<bool> {
        if let Some(dir) = &self.out {
            write_texts(dir, &write_records(dir, results)?)?;
        }
        for e in left_out {
            print(&wrap(&format!("{}: not run: {}", e.id, e.absence().unwrap_or_default()), 2))?;
        }
        let all: Vec<&Judged> = results.iter().flat_map(|(_, j)| j).collect();
        if all.is_empty() {
            bail!("no claims");
        }
        let other = all.iter().filter(|j| !j.matches_record()).count();
        let opposite = all.iter().filter(|j| j.contradicts_record()).count();
        let counts: Vec<String> = Verdict::ALL
            .into_iter()
            .map(|verdict| (verdict, all.iter().filter(|j| j.verdict == verdict).count()))
            .filter(|(_, n)| *n > 0)
            .map(|(verdict, n)| format!("{n} {}", verdict.name()))
            .collect();
        let recorded = match (other, opposite) {
            (0, _) => "all as recorded".to_string(),
            (_, 0) => format!("{other} not as recorded"),
            _ => format!("{other} not as recorded, of which {opposite} are the opposite"),
        };
        let claims = if all.len() == 1 { "claim" } else { "claims" };
        print_verdict(&format!("{} {claims}: {}; {recorded}", all.len(), counts.join(", ")))?;
        Ok(if self.seed == RECORDED { other == 0 } else { opposite == 0 })
    }
}

/// Writes the records of all claims, of which those of other experiments stay as they were.
fn write_records(dir: &Path, results: &[(&Experiment, Vec<Judged>)]) -> Result<Vec<Record>> {
    let file = dir.join(CLAIMS);
    let before: Vec<Record> = match slowstart_files::read_text(&file, slowstart_files::MOST_REPORT) {
        Ok(text) => text
            .lines()
            .enumerate()
            .map(|(i, l)| serde_json::from_str(l).with_context(|| format!("{}:{}", file.display(), i + 1)))
            .collect::<Result<_>>()?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(e).with_context(|| file.display().to_string()),
    };
    let records = record::merge(&before, results);
    let mut lines = String::new();
    for r in &records {
        lines.push_str(&serde_json::to_string(r)?);
        lines.push('\n');
    }
    write_bytes(dir, CLAIMS, lines.as_bytes())?;
    Ok(records)
}

/// Writes the overview, the list, the index and a page a paper.
fn write_texts(dir: &Path, records: &[Record]) -> Result<()> {
    let readme = summary::readme(records).map_err(anyhow::Error::msg)?;
    for (name, text) in [(TABLE, readme), (LIST, summary::list(records)), (INDEX, screen::index(records))] {
        write_bytes(dir, name, text.as_bytes())?;
    }
    for (name, page) in screen::papers(records).map_err(anyhow::Error::msg)? {
        write_bytes(dir, &name, page.as_bytes())?;
    }
    Ok(())
}

/// The name of the page of an experiment.
fn page_name(e: &Experiment) -> String {
    format!("{}.html", e.id.replace('/', "-"))
}

fn show(e: &Experiment, judged: &[Judged]) -> Result<()> {
    print(&wrap(&format!("{}: {} ({})", e.id, e.title, e.figure), 2))?;
    for j in judged {
        let changed = if j.matches_record() {
            String::new()
        } else {
            let letter = |c: Option<Cause>| c.map_or(String::new(), |c| format!(" {}", &c.name()[..1]));
            let (now, recorded) = (letter(j.cause), letter(j.claim.cause));
            format!("{now} (recorded: {}{recorded})", j.claim.verdict.name())
        };
        print(&wrap(&format!("  {}{changed}: {}: {}", j.verdict.name(), j.claim.id, j.claim.says), 4))?;
        if !verbose() {
            continue;
        }
        if j.claim.measure.is_some() {
            let claimed = if j.claim.claimed.is_empty() { "-" } else { j.claim.claimed.as_str() };
            let (measured, bound) = (j.measured_text(), j.bound_text());
            print(&wrap(&format!("      claimed {claimed}; measured {measured}; bound {bound}"), 6))?;
        }
        print(&wrap(&format!("      {}", j.reason), 6))?;
    }
    Ok(())
}
