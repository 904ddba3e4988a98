//! `slowstart fit`: a path, or an ensemble of paths, out of recorded connections.

use crate::folder::{refuse_existing, write_new};
use crate::output::command;
use crate::output::print;
use crate::printable::printable;
use crate::replay::{passed_over, progress, warn};
use crate::row_output::{RowArgs, RowWriter};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use slowstart_replay::analysis::Keep;
use slowstart_replay::fit::rate_over_time::{Course, course, traces};
use slowstart_replay::fit::text::{self, Fitted};
use slowstart_replay::fit::{FIT_SCHEMA, Row, SCHEMA, fit, sampled};
use slowstart_replay::folder::expand;
use slowstart_replay::open;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_replay::transfer::Source;
use slowstart_study::scenario;
use slowstart_study::words::bytes;
use std::fs;
use std::path::{Path, PathBuf};

/// The most paths of an ensemble: a list in a path file has at most as many items.
const MOST: usize = 100;
/// The most traces of a transfer.
const TRACES: usize = 9;

/// Make a path file out of recorded connections
///
/// Each transfer gives a path: rate and its variation, base RTT, waves of delay,
/// ACK slots, jitter, queue and loss. Each value stands below a comment with its
/// interval and what it rests on; where a transfer shows a lower bound only, the
/// comment says so. Several transfers give an ensemble, of which every run gets
/// one at random. FILE is a capture (pcap, pcapng, snoop), a qlog, a kernel log of
/// ACKs (CSV), or a result of iperf3 or nuttcp with intervals of 0.1 s, as for
/// `slowstart replay`; - is standard input.
///
/// With --trace the rate follows time: Mahimahi traces beside the path file, of
/// which every run gets one. Where no packet waited for the link the rate is not
/// known, and the traces of a transfer differ there. Traces of several transfers
/// are stretched, since the next transfer may differ from them.
///
/// Examples:
///   slowstart fit scenarios/captures/download.pcapng.gz > path.toml && slowstart compare path.toml
///   slowstart fit captures/ --min-bytes 10MB --out measured.toml
///   slowstart fit log.csv.gz --trace --out measured.toml && slowstart compare measured.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Fit {
    /// Files or folders to read; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Numbers of the connections to fit, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    connections: Vec<u64>,
    /// Leave out transfers of fewer bytes
    #[arg(long, default_value = "1MB")]
    min_bytes: String,
    /// One row a transfer, with every estimate as fields, in place of a path file
    #[command(flatten)]
    rows: RowArgs,
    /// Write the path file to this file, which must end in .toml and not exist, and not to standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "csv"])]
    out: Option<PathBuf>,
    /// Give the rate over time, as traces beside the path file
    #[arg(long, requires = "out")]
    trace: bool,
}

/// The transfers of all files.
struct Results {
    rows: RowWriter,
    several_files: bool,
    /// Bytes of each transfer, its path, and with --trace its rate over time.
    fitted: Vec<(u64, Fitted, Option<Course>)>,
    trace: bool,
    /// Why transfers could not be fitted.
    refused: Vec<String>,
    error: Option<anyhow::Error>,
}

impl Fit {
    pub(crate) fn main(self) -> Result<()> {
        if let Some(out) = &self.out
            && out.extension().is_none_or(|e| e != "toml")
        {
            bail!("--out: found {}, expected a file that ends in .toml", out.display());
        }
        self.out.as_deref().map_or(Ok(()), refuse_existing).context("--out")?;
        let min_bytes = scenario::bytes("min-bytes", &self.min_bytes)?;
        let options = Options {
            connections: self.connections.clone(),
            min_bytes,
            keep: Keep { packets: true, ..Keep::default() },
            ..Options::default()
        };
        let files = expand(&self.files)?;
        let mut results = Results {
            rows: self.rows.writer(FIT_SCHEMA)?,
            several_files: files.len() > 1,
            fitted: Vec::new(),
            trace: self.trace,
            refused: Vec::new(),
            error: None,
        };
        let (mut left_out, mut failed) = (0, 0);
        for file in &files {
            match read(file, &options, &mut results) {
                Ok(n) => left_out += n,
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
        if results.fitted.is_empty() {
            let least = bytes(min_bytes);
            return Err(match results.refused.first() {
                Some(why) => anyhow!("{why}"),
                None if left_out > 0 => anyhow!(
                    "found {left_out} transfers, all left out, expected one of at least {least} (--min-bytes, --connections)"
                ),
                None => anyhow!("found no transfer of data, expected one of at least {least}"),
            });
        }
        for why in &results.refused {
            warn(&format!("{why}; skipped"));
        }
        results.rows.finish()?;
        if !self.rows.printed() {
            self.write(results.fitted)?;
        }
        passed_over(failed, files.len())
    }

    /// Writes the path file.
    fn write(&self, mut fitted: Vec<(u64, Fitted, Option<Course>)>) -> Result<()> {
        if fitted.len() > MOST {
            warn(&format!("the {MOST} largest of {} transfers are taken", fitted.len()));
            fitted.sort_by_key(|f| std::cmp::Reverse(f.0));
            fitted.truncate(MOST);
        }
        let courses: Vec<Course> = fitted.iter().filter_map(|f| f.2.clone()).collect();
        let fitted: Vec<Fitted> = fitted.into_iter().map(|f| f.1).collect();
        if let Some(out) = self.out.as_ref().filter(|_| self.trace) {
            return write_traces(out, &fitted, &courses);
        }
        let text = text::toml(&command(), &fitted);
        match &self.out {
            Some(out) => write_new(out, &text).context("--out"),
            None => print(text.trim_end()),
        }
    }
}

/// Writes the path file and its traces: `measured.toml` has `measured-1-1.down` and so on beside it.
fn write_traces(out: &Path, fitted: &[Fitted], courses: &[Course]) -> Result<()> {
    let all: Vec<&Course> = courses.iter().collect();
    // One transfer whose rate is known all the time has one trace.
    let one = matches!(courses, [only] if only.known() >= 1.0);
    let each = if one { 1 } else { (MOST / courses.len()).clamp(1, TRACES) };
    let stem = out.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    if let Some(c) = stem.chars().find(|c| "|*~".contains(*c)) {
        bail!("--out: found {c} in {stem:?}, expected a name without |, * and ~, which separate traces");
    }
    let traces = traces(&all, each);
    let name = |i: usize, v: usize| format!("{stem}-{}-{}.down", i + 1, v + 1);
    let names: Vec<Vec<String>> =
        traces.iter().enumerate().map(|(i, t)| (0..t.len()).map(|v| name(i, v)).collect()).collect();
    let mut written = Vec::new();
    let mut write = || {
        for (name, text) in names.iter().flatten().zip(traces.iter().flatten()) {
            let file = out.with_file_name(name);
            write_new(&file, text).context("--trace")?;
            written.push(file);
        }
        write_new(out, &text::with_traces(&command(), fitted, &names)).context("--out")
    };
    let done = write();
    if done.is_err() {
        // Traces without the path that names them are of no use.
        for file in written {
            let _ = fs::remove_file(file);
        }
    }
    done
}

/// Reads a file into the results; returns the number of transfers that were left out.
fn read(file: &Path, options: &Options, results: &mut Results) -> Result<u64> {
    let name = || file.display().to_string();
    let (kind, input) = open::open(file).with_context(name)?;
    let bar = progress();
    let mut each = |t: AnalysedTransfer| results.add(file, &t);
    let summary = stream(kind, input, options, &mut each, &mut |read| bar.set_position(read));
    bar.finish_and_clear();
    let summary = summary.with_context(name)?;
    if let Some(e) = &summary.incomplete {
        warn(&format!("{}: {e}; the path is that of the part before it", file.display()));
    }
    Ok(summary.left_out)
}

impl Results {
    fn add(&mut self, file: &Path, t: &AnalysedTransfer) {
        let name = file.file_name().map_or("-".into(), |n| n.to_string_lossy());
        let name = printable(&name).into_owned();
        let row = &t.row;
        let source = match (row.source, self.several_files) {
            (Source::KernelLog, _) => name.clone(),
            _ => format!("{name}, connection {}", row.connection),
        };
        let fitted = match (&t.findings, &t.samples) {
            (Some(findings), _) => fit(findings).and_then(|path| {
                let course = self.trace.then(|| course(findings, path.base_rtt_s.value)).transpose()?;
                Ok((path, course))
            }),
            (None, Some(samples)) => {
                sampled::fit(samples).map(|(path, course)| (path, self.trace.then_some(course)))
            }
            (None, None) => Err("found no packets and ACKs and no samples from the begin of the transfer on that state what was \
                                 delivered, expected a capture, a qlog with packets, a kernel log, or such samples of ss, NDT7, \
                                 tcp-info, iperf or nuttcp"
                .to_string()),
        };
        let (path, course) = match fitted {
            Ok(found) => found,
            Err(why) => return self.refused.push(format!("{source}: {why}")),
        };
        let line = Row {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            file: &name,
            connection: row.connection,
            // A path is fitted to what was delivered.
            bytes: row.bytes.unwrap_or(0),
            vantage: &row.vantage,
            path: &path,
            inline: path.inline(),
        };
        let written = self.rows.write(&line);
        self.error = self.error.take().or(written.err());
        self.fitted.push((row.bytes.unwrap_or(0), Fitted { source, path }, course));
    }
}
