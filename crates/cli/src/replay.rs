//! `slowstart replay`: when connections left slow start, and what each startup would have done.

use crate::compare::command;
use crate::output::{Folder, print};
use crate::printable::printable;
use crate::study_args::startups;
use crate::table::{Align, Cell, Table};
use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use slowstart_lab::report::words::{bytes, number};
use slowstart_lab::scenario;
use slowstart_replay::fork::{self, ForkResult};
use slowstart_replay::observer::{Candidate, TimedEvent};
use slowstart_replay::open::{self, Kind};
use slowstart_replay::replay::{AnalysedTransfer, Options, Summary, stream};
use slowstart_replay::transfer::{self, ExitClass, Fork, StartupRow, Transfer};
use slowstart_replay::{fit, page};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// From this number of transfers on, only a summary is printed.
const LINES: usize = 20;
/// Up to this number of transfers, each has a table of startups; the number of pages with `--out`.
const DETAILED: usize = 3;

/// Find when recorded connections left slow start, and when each startup would have
///
/// FILE is a capture (pcap, pcapng, snoop), a kernel log of ACKs (CSV), a qlog, an NDT7 or flent measurement, the output of
/// `ss -tin`, or rows or kernel events of this program; plain, or compressed by gzip or zstd. `-` is standard input. Of a
/// folder, all files of these kinds are read.
///
/// Examples:
///   slowstart replay scenarios/captures/download.pcapng.gz
///   slowstart replay server.pcapng.zst --min-bytes 1MB --json
///   slowstart replay captures/ --out out
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
    /// Print one JSON line per transfer on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Folder for rows, samples, and a page for each of the largest transfers
    #[arg(long)]
    out: Option<PathBuf>,
    /// Continue the largest transfer in the simulator with each startup, on a path fitted to it
    #[arg(long)]
    fork: bool,
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
            snapshots: self.out.is_some() || self.fork,
            fork_states: self.fork,
            connections: self.connections.clone(),
            min_bytes: min_bytes.unwrap_or(0),
        };
        let files = expand(&self.files)?;
        let mut results = Results::new(&self, files.len() > 1)?;
        let (mut failed, mut read) = (Vec::new(), 0);
        for (file, named) in &files {
            match read_file(file, &options, &mut results) {
                Ok(summary) => {
                    read += 1;
                    if !self.json {
                        print(&title(file, &summary))?;
                    }
                    if let Some(e) = &summary.incomplete {
                        warn(&format!("{}: {e}; the rows are those of the part before it", file.display()));
                    }
                }
                Err(e) if files.len() == 1 => return Err(e),
                Err(e) => {
                    warn(&format!("{e:#}; skipped"));
                    failed.extend(named.then_some(file));
                }
            }
            if let Some(e) = results.error.take() {
                return Err(e);
            }
        }
        results.finish(&options.candidates)?;
        if !self.json {
            results.print()?;
        }
        if read == 0 {
            bail!("no file could be read");
        }
        if !failed.is_empty() {
            bail!("{} of {} files could not be read", failed.len(), files.len());
        }
        Ok(())
    }
}

/// Reads a file into the results.
fn read_file(file: &Path, options: &Options, results: &mut Results<'_>) -> Result<Summary> {
    let name = || file.display().to_string();
    let (kind, input) = open::open(file).with_context(name)?;
    let bar = progress();
    let each = |mut t: AnalysedTransfer| {
        t.row.file = Some(name());
        results.add(t);
    };
    let summary = stream(kind, input, options, each, |read| bar.set_position(read));
    bar.finish_and_clear();
    summary.with_context(name)
}

/// Prints a warning.
fn warn(text: &str) {
    eprintln!("slowstart: {}", printable(text));
}

/// The files to read, folders replaced by the files in them, and whether each was named by the user.
fn expand(named: &[PathBuf]) -> Result<Vec<(PathBuf, bool)>> {
    let mut all = Vec::new();
    for path in named {
        if !path.is_dir() {
            all.push((path.clone(), true));
            continue;
        }
        let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
        let mut files = Vec::new();
        for entry in entries {
            let file = entry.with_context(|| path.display().to_string())?.path();
            let hidden = file.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
            if file.is_file() && !hidden {
                files.push((file, false));
            }
        }
        if files.is_empty() {
            bail!("{}: found no file in the folder, expected captures or logs", path.display());
        }
        files.sort();
        all.extend(files);
    }
    Ok(all)
}

/// A file of JSON lines in the folder of results.
struct JsonLines(BufWriter<File>);

impl JsonLines {
    fn create(dir: &Path, name: &str) -> Result<Self> {
        let file = dir.join(name);
        Ok(Self(BufWriter::new(File::create(&file).with_context(|| file.display().to_string())?)))
    }

    fn write<T: Serialize>(&mut self, line: &T) -> Result<()> {
        serde_json::to_writer(&mut self.0, line)?;
        Ok(self.0.write_all(b"\n")?)
    }
}

/// Where `--out` writes.
struct Out {
    folder: Folder,
    rows: JsonLines,
    samples: JsonLines,
}

/// The transfers of all files. Memory does not grow with their number: rows are written when a connection is over, and
/// only the first rows and the largest transfers are kept.
struct Results<'a> {
    args: &'a Replay,
    several_files: bool,
    out: Option<Out>,
    /// The first transfers, in the order in which their connections ended.
    first: Vec<Transfer>,
    /// The largest transfers, with findings, the largest first.
    largest: Vec<AnalysedTransfer>,
    /// With `--fork`, the largest transfer so far, whose row is not written yet.
    pending: Option<AnalysedTransfer>,
    distributions: Distributions,
    transfers: u64,
    error: Option<anyhow::Error>,
}

impl<'a> Results<'a> {
    fn new(args: &'a Replay, several_files: bool) -> Result<Self> {
        let out = match &args.out {
            None => None,
            Some(dir) => Some(Out {
                folder: Folder::create(dir)?,
                rows: JsonLines::create(dir, "results.jsonl")?,
                samples: JsonLines::create(dir, "samples.jsonl")?,
            }),
        };
        Ok(Self {
            args,
            several_files,
            out,
            first: Vec::new(),
            largest: Vec::new(),
            pending: None,
            distributions: Distributions::default(),
            transfers: 0,
            error: None,
        })
    }

    fn add(&mut self, t: AnalysedTransfer) {
        if self.error.is_some() {
            return;
        }
        self.transfers += 1;
        self.distributions.add(&t.row);
        let t = if self.args.fork && t.findings.is_some() {
            match self.pending.take() {
                Some(before) if before.row.bytes >= t.row.bytes => {
                    self.pending = Some(before);
                    Some(t)
                }
                before => {
                    self.pending = Some(t);
                    before
                }
            }
        } else {
            Some(t)
        };
        self.error = t.and_then(|t| self.write(t).err());
    }

    /// Writes the row of a transfer, and keeps what is printed or drawn at the end.
    fn write(&mut self, t: AnalysedTransfer) -> Result<()> {
        if self.args.json {
            print(&serde_json::to_string(&t.row)?)?;
        }
        if let Some(out) = &mut self.out {
            out.rows.write(&t.row)?;
            for s in t.findings.iter().flat_map(|f| transfer::samples(&t.row, f)) {
                out.samples.write(&s)?;
            }
        }
        if self.first.len() <= LINES {
            self.first.push(t.row.clone());
        }
        if self.out.is_some() && !t.row.startups.is_empty() {
            let at = self.largest.partition_point(|l| l.row.bytes >= t.row.bytes);
            self.largest.insert(at, t);
            self.largest.truncate(DETAILED);
        }
        Ok(())
    }

    /// Continues the largest transfer with `--fork`, and writes the pages.
    fn finish(&mut self, candidates: &[Candidate]) -> Result<()> {
        if self.args.fork {
            let mut t = self
                .pending
                .take()
                .context("--fork: found no transfer with acknowledgements, expected a capture or a qlog")?;
            let findings = t.findings.as_ref().context("--fork: found no events, expected a capture")?;
            let path = fit::fit(findings).context("--fork: found no RTT sample, expected one")?;
            let startups = fork::run(findings, &path, candidates)?;
            t.row.fork = Some(Fork { path, startups });
            self.write(t)?;
        }
        // In the order of the file.
        self.first.sort_by(|a, b| (&a.file, a.connection).cmp(&(&b.file, b.connection)));
        let Some(out) = &mut self.out else { return Ok(()) };
        out.rows.0.flush()?;
        out.samples.0.flush()?;
        for (i, t) in self.largest.iter().enumerate() {
            let Some(findings) = &t.findings else { continue };
            let name = if i == 0 { "report.html".to_string() } else { format!("report-{}.html", i + 1) };
            out.folder.text(&name, &page::html(&t.row, findings, &command()))?;
        }
        Ok(())
    }

    fn name(&self, row: &Transfer) -> String {
        let file = row.file.as_deref().filter(|_| self.several_files).map(|f| format!("{f}, "));
        let name = format!("{}connection {}", file.unwrap_or_default(), row.connection);
        printable(&name).into_owned()
    }

    fn with_ends(&self, row: &Transfer) -> String {
        format!("{}, {}", self.name(row), printable(&format!("{} to {}", row.from, row.to)))
    }

    fn print(&self) -> Result<()> {
        let rows = &self.first;
        if rows.is_empty() {
            return print("no transfer of data");
        }
        let width = terminal_size::terminal_size().filter(|_| std::io::stdout().is_terminal()).map(|s| s.0.0);
        if rows.len() > LINES {
            print(&self.distributions.table().render(false, width))?;
            return print(&format!(
                "summary of {} transfers; select some with --connections or --min-bytes, or print each with --json",
                self.transfers
            ));
        }
        print(&self.table().render(false, width))?;
        if rows.len() <= DETAILED {
            for row in rows.iter().filter(|r| !r.startups.is_empty()) {
                if row.startups.iter().all(|w| w.class == ExitClass::None) {
                    let ends = self.with_ends(row);
                    print(&format!("{ends}: no startup would have left slow start or sent anything else\n"))?;
                    continue;
                }
                if rows.len() > 1 {
                    print(&self.with_ends(row))?;
                }
                print(&predictions(row).render(false, width))?;
            }
        }
        for row in rows {
            if let Some(fork) = &row.fork {
                print(&continuation(row, fork).render(false, width))?;
                print(&self.fork_note(row, fork))?;
            }
        }
        for (row, text) in rows.iter().filter_map(|row| Some((row, limits(row)?))) {
            print(&format!("{}: {text}", self.with_ends(row)))?;
        }
        let mut notes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in rows {
            for caveat in &row.caveats {
                let names = notes.entry(caveat).or_default();
                let name = self.name(row);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        for (caveat, names) in notes {
            print(&format!("note: {}: {}", names.join("; "), printable(caveat)))?;
        }
        Ok(())
    }

    /// The table of transfers.
    fn table(&self) -> Table {
        let mut headers = vec![
            "#",
            "sender",
            "receiver",
            "direction",
            "bytes",
            "captured at",
            "RTT (ms)",
            "retrans",
            "exit (s)",
            "window",
            "class",
            "evidence",
            "full (s)",
            "loss (s)",
            "cost (s)",
        ];
        let mut left = vec![1, 2, 3, 5, 10, 11];
        if self.several_files {
            headers.insert(0, "file");
            left = left.into_iter().map(|i| i + 1).chain([0]).collect();
        }
        let mut alignments = vec![Align::Right; headers.len()];
        for i in left {
            alignments[i] = Align::Left;
        }
        let line = |r: &Transfer| -> Vec<Cell> {
            let file = Path::new(r.file.as_deref().unwrap_or("-"));
            let file = file.file_name().map_or("-".into(), |n| n.to_string_lossy());
            let cells = [
                r.connection.to_string().into(),
                foreign(&r.from),
                foreign(&r.to),
                r.direction.clone().unwrap_or_else(|| "-".to_string()).into(),
                bytes(r.bytes).into(),
                r.vantage.clone().into(),
                time(r.min_rtt_s.map(|t| t * 1e3)),
                number(r.retransmitted_packets as f64).into(),
                time(r.exit.as_ref().map(|e| e.time_s)),
                r.exit.as_ref().map_or("-".into(), |e| segments(e.cwnd_bytes, r)).into(),
                r.class.name().into(),
                r.exit.as_ref().map(|e| e.evidence.clone()).or(r.unclear.clone()).unwrap_or_default().into(),
                time(r.capacity_time_s),
                time(r.first_loss_time_s),
                time(r.cost_s),
            ];
            self.several_files.then(|| foreign(&file)).into_iter().chain(cells).collect()
        };
        Table {
            headers: headers.into_iter().map(String::from).collect(),
            rows: self.first.iter().map(line).collect(),
            alignments,
        }
    }

    /// What the table of continuations is.
    fn fork_note(&self, row: &Transfer, fork: &Fork) -> String {
        let queue =
            if fork.path.queue_was_full { "" } else { " (queue: at least this, as nothing was lost)" };
        format!(
            "{}: continued in the simulator from where each startup would have sent something else, over a path fitted \
             to the capture: {}{queue}",
            self.name(row),
            fork.path.inline()
        )
    }
}

/// For how long something other than cwnd limited the sender.
fn limits(row: &Transfer) -> Option<String> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for l in &row.limits {
        *sums.entry(&l.what).or_default() += l.until_s - l.from_s;
    }
    let of = |(what, s): (&&str, &f64)| match *what {
        "idle" => format!("idle for {} s", number(*s)),
        what => format!("limited by the {what} for {} s", number(*s)),
    };
    (!sums.is_empty()).then(|| sums.iter().map(of).collect::<Vec<_>>().join(", "))
}

/// Counts up on a terminal, nothing elsewhere.
fn progress() -> ProgressBar {
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
        Kind::KernelLog => "kernel log".to_string(),
        Kind::Qlog => "qlog".to_string(),
        Kind::Ndt7 => "NDT7 measurement".to_string(),
        Kind::Flent => "flent measurement".to_string(),
        Kind::Ss => "samples of ss".to_string(),
        Kind::Rows => "rows".to_string(),
        Kind::Events => "kernel events".to_string(),
    };
    let left_out =
        if summary.left_out > 0 { format!(", {} left out", summary.left_out) } else { String::new() };
    let n = summary.transfers;
    let transfers = if n == 1 { "1 transfer".to_string() } else { format!("{n} transfers") };
    let name = file.display().to_string();
    format!("{}: {kind}, {transfers}{left_out}", printable(&name))
}

/// A cell with text from a file.
fn foreign(text: &str) -> Cell {
    printable(text).into_owned().into()
}

fn time(s: Option<f64>) -> Cell {
    s.map_or("-".to_string(), number).into()
}

/// A window in segments.
fn segments(bytes: u64, row: &Transfer) -> String {
    number((bytes as f64 / row.mss_bytes.max(1) as f64).round())
}

/// The table of what each startup would have done.
fn predictions(row: &Transfer) -> Table {
    let headers =
        ["startup", "exit", "at (s)", "window", "class", "valid until (s)", "exit by its own rule", "phases"];
    let mut alignments = vec![Align::Right; headers.len()];
    for i in [0, 1, 4, 6, 7] {
        alignments[i] = Align::Left;
    }
    let event =
        |w: &TimedEvent| format!("{} {} s at {}", w.what, number(w.time_s), segments(w.cwnd_bytes, row));
    let line = |w: &StartupRow| -> Vec<Cell> {
        let exit = |f: &dyn Fn(&TimedEvent) -> String| w.exit.as_ref().map_or("-".to_string(), f);
        let rule = w.rule.as_ref().filter(|r| w.exit.as_ref() != Some(r)).map(event);
        let more = if w.phases.len() > 4 { ", .." } else { "" };
        let phases = w.phases.iter().take(4).map(event).collect::<Vec<_>>().join(", ") + more;
        vec![
            w.startup.clone().into(),
            exit(&|e| e.what.clone()).into(),
            exit(&|e| number(e.time_s)).into(),
            exit(&|e| segments(e.cwnd_bytes, row)).into(),
            w.class.name().into(),
            w.valid_until_s.map_or("the end".to_string(), number).into(),
            rule.unwrap_or_default().into(),
            phases.into(),
        ]
    };
    Table {
        headers: headers.map(String::from).to_vec(),
        rows: row.startups.iter().map(line).collect(),
        alignments,
    }
}

/// The table of continuations, the quickest first.
fn continuation(row: &Transfer, fork: &Fork) -> Table {
    let headers =
        ["startup", "from (s)", "exit", "at (s)", "window", "class", "done (s)", "lost", "queue (ms)"];
    let mut alignments = vec![Align::Right; headers.len()];
    for i in [0, 2, 5] {
        alignments[i] = Align::Left;
    }
    let mut all: Vec<_> = fork.startups.iter().collect();
    all.sort_by(|a, b| a.done_s.unwrap_or(f64::MAX).total_cmp(&b.done_s.unwrap_or(f64::MAX)));
    let line = |f: &ForkResult| -> Vec<Cell> {
        let exit = |of: &dyn Fn(&TimedEvent) -> String| f.exit.as_ref().map_or("-".to_string(), of);
        vec![
            f.startup.clone().into(),
            number(f.from_s).into(),
            exit(&|e| e.what.clone()).into(),
            exit(&|e| number(e.time_s)).into(),
            exit(&|e| segments(e.cwnd_bytes, row)).into(),
            f.class.name().into(),
            time(f.done_s),
            number(f.lost_packets as f64).into(),
            number(f.peak_queue_delay_s * 1e3).into(),
        ]
    };
    let observed: Vec<Cell> = vec![
        "as observed".into(),
        "-".into(),
        row.exit.as_ref().map(|e| e.evidence.clone()).or(row.unclear.clone()).unwrap_or_default().into(),
        time(row.exit.as_ref().map(|e| e.time_s)),
        row.exit.as_ref().map_or("-".into(), |e| segments(e.cwnd_bytes, row)).into(),
        row.class.name().into(),
        number(row.duration_s).into(),
        number(row.retransmitted_packets as f64).into(),
        time(row.peak_delay_s.map(|d| d * 1e3)),
    ];
    Table {
        headers: headers.map(String::from).to_vec(),
        rows: std::iter::once(observed).chain(all.into_iter().map(line)).collect(),
        alignments,
    }
}

/// Values in buckets that are 0.1 % wide, so that their number is bounded.
#[derive(Clone, Debug, Default)]
struct Histogram {
    buckets: BTreeMap<i32, u64>,
    count: u64,
}

/// Logarithm of the width of a bucket.
const WIDTH: f64 = 1e-3;

impl Histogram {
    fn add(&mut self, value: f64) {
        let bucket = (value.clamp(1e-9, 1e12).ln() / WIDTH).round() as i32;
        *self.buckets.entry(bucket).or_default() += 1;
        self.count += 1;
    }

    /// The smallest value that at least this share of the values does not exceed.
    fn quantile(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.buckets.iter().find(|(_, n)| {
            below += **n;
            below >= rank
        });
        found.map(|(bucket, _)| (f64::from(*bucket) * WIDTH).exp())
    }

    /// Median, 5 % and 95 % quantile.
    fn spread(&self, whole: bool) -> String {
        let text = |v: f64| number(if whole { v.round() } else { v });
        match (self.quantile(0.5), self.quantile(0.05), self.quantile(0.95)) {
            (Some(m), Some(l), Some(h)) => format!("{} ({}-{})", text(m), text(l), text(h)),
            _ => "-".to_string(),
        }
    }
}

/// Exits of many transfers.
#[derive(Clone, Debug, Default)]
struct Exits {
    classes: [u64; 5],
    time_s: Histogram,
    window: Histogram,
}

impl Exits {
    fn add(&mut self, class: ExitClass, exit: Option<(f64, u64)>, mss: u64) {
        self.classes[class as usize] += 1;
        if let Some((time_s, cwnd)) = exit {
            self.time_s.add(time_s);
            self.window.add(cwnd as f64 / mss.max(1) as f64);
        }
    }
}

/// Exit classes over many transfers, as observed and of each startup.
#[derive(Clone, Debug, Default)]
struct Distributions {
    observed: Exits,
    startups: Vec<(String, Exits)>,
}

impl Distributions {
    fn add(&mut self, row: &Transfer) {
        self.observed.add(row.class, row.exit.as_ref().map(|e| (e.time_s, e.cwnd_bytes)), row.mss_bytes);
        for (i, s) in row.startups.iter().enumerate() {
            // All rows have the startups in the same order.
            if self.startups.get(i).is_none_or(|(name, _)| *name != s.startup) {
                self.startups.insert(i, (s.startup.clone(), Exits::default()));
            }
            let exit = s.exit.as_ref().map(|e| (e.time_s, e.cwnd_bytes));
            self.startups[i].1.add(s.class, exit, row.mss_bytes);
        }
    }

    fn table(&self) -> Table {
        let classes = ExitClass::ALL.map(ExitClass::name);
        let headers: Vec<&str> = std::iter::once("")
            .chain(classes)
            .chain(["exit (s), median (90 %)", "window, median (90 %)"])
            .collect();
        let mut alignments = vec![Align::Right; headers.len()];
        alignments[0] = Align::Left;
        let line = |name: &str, e: &Exits| -> Vec<Cell> {
            let all: u64 = e.classes.iter().sum();
            let share = |n: &u64| format!("{n} ({:.0} %)", *n as f64 * 100.0 / all.max(1) as f64).into();
            let mut cells = vec![name.into()];
            cells.extend(e.classes.iter().map(share));
            cells.extend([e.time_s.spread(false).into(), e.window.spread(true).into()]);
            cells
        };
        let mut rows = vec![line("as observed", &self.observed)];
        rows.extend(self.startups.iter().map(|(name, e)| line(name, e)));
        Table { headers: headers.into_iter().map(String::from).collect(), rows, alignments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_thousandth_and_memory_does_not_grow() {
        let mut h = Histogram::default();
        for n in 1..=100_000_u32 {
            h.add(f64::from(n) / 1000.0);
        }
        for (share, want) in [(0.05, 5.0), (0.5, 50.0), (0.95, 95.0)] {
            let found = h.quantile(share).expect("values");
            assert!((found / want - 1.0).abs() < 1.1e-3, "{share}: {found}");
        }
        assert!(h.buckets.len() < 12_000, "{}", h.buckets.len());
    }
}
