//! `slowstart replay`: when connections left slow start, and what each startup would have done.

#[cfg(feature = "sweep")]
mod in_store;
#[cfg(not(feature = "sweep"))]
#[path = "no_store.rs"]
mod in_store;
mod population;
mod results;
mod tables;

use self::results::Results;
use crate::output::print;
use crate::printable::printable;
use crate::row_output::RowArgs;
use crate::study_args::startups;
use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use slowstart_replay::analysis::Keep;
use slowstart_replay::folder::expand;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open::{self, Kind};
use slowstart_replay::replay::{AnalysedTransfer, Options, Summary, stream};
use slowstart_study::scenario;
use slowstart_study::words::number;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Find when recorded connections left slow start, and when each startup would have
///
/// FILE is a capture (pcap, pcapng, snoop), a kernel log of ACKs (CSV), a qlog, a
/// measurement of M-Lab (NDT7, tcp-info), iperf3 or flent, the text of iperf3,
/// iperf 2 or nuttcp, the output of `ss -tin`, a trace of `tcp:tcp_probe` (text), a
/// log of Chrome's network stack, or rows or kernel events of this program; plain,
/// or compressed by gzip or zstd. `-` is standard input. Of a folder it reads all
/// files, also those in folders within it. It reports a file that it cannot read
/// and goes on; the exit status is then 2.
///
/// With `--out STORE` it reads several files, or a folder, on all processors into
/// a store: one row a transfer, in Parquet. If you run it again, it reads only
/// files that are new or have changed.
///
/// Examples:
///   slowstart replay scenarios/captures/download.pcapng.gz
///   slowstart replay server.pcapng.zst --min-bytes 1MB --json
///   slowstart replay captures/ --out store && slowstart sweep query store --group class
///   ssh server tcpdump -w - tcp | slowstart replay -
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Replay {
    /// Files or folders to read; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Startups, as name or name:key=value,key=value, separated by commas [default: all]
    #[arg(long)]
    startup: Vec<String>,
    /// Numbers of the connections to report, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    connections: Vec<u64>,
    /// Leave out transfers of fewer bytes
    #[arg(long)]
    min_bytes: Option<String>,
    #[command(flatten)]
    rows: RowArgs,
    /// Of one file: folder for rows, samples, and a page for each of the largest transfers. Of several files
    /// or a folder: the store; an empty or missing folder becomes one
    #[arg(long)]
    out: Option<PathBuf>,
    /// Continue the largest transfer in the simulator with each startup, on a path fitted to it; without this
    /// argument, the same where it is possible, but not in rows
    #[arg(long)]
    fork: bool,
    /// Do not continue any transfer in the simulator
    #[arg(long, conflicts_with = "fork")]
    no_fork: bool,
    /// Print every column, and a line for each startup
    #[arg(long)]
    wide: bool,
}

impl Replay {
    pub(crate) fn main(self) -> Result<()> {
        let mut names = startups(&self.startup);
        if names.is_empty() {
            names = slowstart::startup::REGISTRY.iter().map(|e| e.name.to_string()).collect();
        }
        let candidates = names
            .iter()
            .map(|n| Ok(Candidate { label: n.clone(), startup: scenario::startup("startup", n)?.1 }))
            .collect::<Result<Vec<_>>>()?;
        let min_bytes = self.min_bytes.as_deref().map(|b| scenario::bytes("min-bytes", b)).transpose()?;
        let options = Options {
            candidates: candidates.into(),
            keep: Keep { snapshots: self.out.is_some(), packets: self.fork, fork_states: self.fork },
            connections: self.connections.clone(),
            min_bytes: min_bytes.unwrap_or(0),
        };
        let files = expand(&self.files)?;
        if let Some(store) = self.out.as_ref().filter(|_| self.files.len() > 1 || self.files[0].is_dir()) {
            return in_store::replay(&self, &files, &names, &options, store);
        }
        let mut results = Results::new(&self, files.len() > 1)?;
        let mut failed = 0;
        for file in &files {
            match read_file(file, &options, &mut results) {
                Ok(summary) => {
                    if !self.rows.printed() && files.len() <= results::LINES {
                        print(&title(file, &summary))?;
                    }
                    if summary.counts.cut > 0 && summary.counts.tcp > 0 {
                        let n = number(summary.counts.cut as f64);
                        let name = file.display();
                        warn(&format!(
                            "{name}: {n} TCP packets are cut before the end of their header and left out"
                        ));
                    }
                    if let Some(e) = &summary.incomplete {
                        warn(&format!("{}: {e}; the rows are those of the part before it", file.display()));
                    }
                }
                Err(e) if files.len() == 1 => return Err(e),
                Err(e) => {
                    warn(&format!("{e:#}; skipped"));
                    failed += 1;
                }
            }
            if let Some(e) = results.error.take() {
                return Err(e);
            }
        }
        if failed < files.len() {
            if !self.rows.printed() && !self.fork && !self.no_fork {
                results.continue_largest(&options)?;
            }
            results.finish(&options.candidates)?;
            if !self.rows.printed() {
                results.print()?;
            }
        }
        passed_over(failed, files.len())
    }
}

/// An error if files were passed over.
pub(crate) fn passed_over(failed: usize, of: usize) -> Result<()> {
    if failed > 0 {
        bail!("{failed} of {of} files could not be read");
    }
    Ok(())
}

/// Reads a file into the results.
fn read_file(file: &Path, options: &Options, results: &mut Results<'_>) -> Result<Summary> {
    let name = || file.display().to_string();
    let (kind, input) = open::open(file).with_context(name)?;
    let bar = progress();
    let mut each = |mut t: AnalysedTransfer| {
        t.row.file = Some(name());
        results.add(t);
    };
    let summary = stream(kind, input, options, &mut each, &mut |read| bar.set_position(read));
    bar.finish_and_clear();
    summary.with_context(name)
}

/// Prints a warning, also with `--quiet`.
pub(crate) fn warn(text: &str) {
    crate::output::tell(&printable(text));
}

/// Counts up on a terminal, nothing elsewhere.
pub(crate) fn progress() -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{spinner} {bytes} read, {bytes_per_sec}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::with_draw_target(None, target).with_style(style)
}

fn title(file: &Path, summary: &Summary) -> String {
    let kind = match summary.kind {
        Kind::Capture => {
            let n = summary.connections;
            let connections = if n == 1 { "1 connection".to_string() } else { format!("{n} connections") };
            format!("capture of {} packets, {connections}", number(summary.counts.packets as f64))
        }
        kind => kind.name().to_string(),
    };
    let left_out =
        if summary.left_out > 0 { format!(", {} left out", summary.left_out) } else { String::new() };
    let n = summary.transfers;
    let transfers = if n == 1 { "1 transfer".to_string() } else { format!("{n} transfers") };
    let name = file.display().to_string();
    format!("{}: {kind}, {transfers}{left_out}", printable(&name))
}
