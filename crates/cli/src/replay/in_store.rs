//! `slowstart replay --out STORE`: many files, on all processors, into a store.

use super::{Replay, passed_over, results, warn};
use crate::interrupt::{Interrupt, Interrupted};
use crate::output::{note, progress_of};
use anyhow::{Result, bail};
use slowstart_replay::population::Population;
use slowstart_replay::replay::Options;
use slowstart_sweep::captures::{self, Captures};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Files whose errors are printed.
const NAMED: usize = 20;

/// Reads what is missing of these files in the store, and reports on all of them.
pub(super) fn replay(
    args: &Replay,
    files: &[PathBuf],
    startups: &[String],
    options: &Options,
    dir: &Path,
) -> Result<()> {
    if args.fork {
        bail!("--fork: found it with --out STORE, expected one file: a transfer is continued for its page");
    }
    if args.rows.printed() || args.rows.parquet.is_some() {
        bail!(
            "--out: found it with --json, --csv or --parquet, expected one of them; `slowstart sweep query` prints the \
             rows of a store"
        );
    }
    if files.iter().any(|f| f == Path::new("-")) {
        bail!("--out: found standard input among several files, expected names of files");
    }
    let all = Captures::new(files, startups, options);
    let store = captures::create(dir)?;
    let interrupt = Interrupt::record_first()?;
    let bar = progress_of(all.len() as u64, "files");
    #[allow(clippy::disallowed_methods, reason = "for the note at the end: no result depends on it")]
    let started = Instant::now();
    let each = |n: usize, read: bool| {
        bar.inc(n as u64);
        if !read && n > 0 {
            // What was there says nothing about the time that is left.
            bar.reset_eta();
        }
        interrupt.signal().is_none()
    };
    let report = all.run(&store, options, rayon::current_num_threads(), &each);
    bar.finish_and_clear();
    interrupt.stopped();
    let report = report?;
    note(&format!(
        "{}: {} of {} files read in {:.1} s, the others were there",
        dir.display(),
        report.read,
        all.len(),
        started.elapsed().as_secs_f64()
    ));
    if let Some(signal) = interrupt.signal().filter(|_| !report.finished) {
        return Err(Interrupted { signal, finished: None }.into());
    }
    let records = all.records(&store)?;
    let errors: Vec<String> =
        records.iter().filter_map(|r| Some(format!("{}: {}", r.file, r.error.as_ref()?))).collect();
    errors.iter().take(NAMED).for_each(|e| warn(e));
    if errors.len() > NAMED {
        warn(&format!("{} more; files/*.jsonl in the store lists all", errors.len() - NAMED));
    }
    let mut population = Population::default();
    all.transfers(&store, |t| population.add(t))?;
    results::print_population(&population, true)?;
    passed_over(records.iter().filter(|r| r.failed).count(), all.len())
}
