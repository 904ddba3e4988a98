//! `slowstart replay`: what every startup would have done on a connection that somebody else made.

use crate::compare::{command, startups};
use crate::output::{Folder, print};
use crate::table::{Align, Cell, Table};
use anyhow::{Context, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use slowstart_lab::record::Class;
use slowstart_lab::report::words::{bytes, number};
use slowstart_lab::scenario;
use slowstart_lab::stats::quantile;
use slowstart_replay::fork::{self, ForkResult};
use slowstart_replay::observer::{Candidate, TimedEvent};
use slowstart_replay::open::Kind;
use slowstart_replay::replay::{AnalysedTransfer, Options, Report, replay};
use slowstart_replay::transfer::{self, Fork, StartupRow, Transfer};
use slowstart_replay::{fit, page};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

/// More transfers than this are summarised.
const LINES: usize = 20;
/// Up to so many, each is followed by what every startup would have done.
const DETAILED: usize = 3;

/// Says when a connection left slow start, and when each startup would have.
///
/// FILE is a capture (pcap, pcapng), a kernel's log of ACKs (CSV), a qlog, NDT7 or flent measurement, the output of
/// `ss -tin`, or rows or kernel events of this program; plain, or compressed by gzip or zstd.
///
/// Examples:
///   slowstart replay download.pcap
///   slowstart replay server.pcapng.zst --min-bytes 1MB --json
///   slowstart replay download.pcap --connections 3 --out out
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Replay {
    /// The file
    file: PathBuf,
    /// Startups, as name or name:key=value,key=value, with commas between [default: all]
    #[arg(long)]
    startup: Vec<String>,
    /// Connections to show, by number
    #[arg(long, value_delimiter = ',')]
    connections: Vec<u64>,
    /// Leave out transfers of fewer bytes
    #[arg(long)]
    min_bytes: Option<String>,
    /// Rows as JSON lines on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// A folder for rows, samples, and a page for each of the largest transfers
    #[arg(long)]
    out: Option<PathBuf>,
    /// Goes on with the largest transfer in the simulator, on a path fitted to it, from where each startup's opinion ends
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
        let bar = progress();
        let mut report = replay(&self.file, &options, |read| bar.set_position(read))?;
        bar.finish_and_clear();
        if self.fork {
            Self::go_on(&mut report, &options.candidates)?;
        }
        if let Some(out) = &self.out {
            let folder = Folder::create(out)?;
            folder.lines("results.jsonl", report.transfers.iter().map(|t| &t.row))?;
            let events = |t: &AnalysedTransfer| {
                Some(transfer::samples(&t.row, t.findings.as_ref()?).collect::<Vec<_>>())
            };
            let samples = report.transfers.iter().filter_map(events);
            folder.lines("samples.jsonl", samples.flatten())?;
            pages(&folder, &report)?;
        }
        if self.json {
            for t in &report.transfers {
                print(&serde_json::to_string(&t.row)?)?;
            }
        } else {
            self.tell(&report)?;
        }
        if let Some(cut) = &report.summary.incomplete {
            eprintln!("slowstart: {}: {cut}; this is what stands before", self.file.display());
        }
        Ok(())
    }

    /// Goes on with the largest transfer, over a path like its own.
    fn go_on(report: &mut Report, candidates: &[Candidate]) -> Result<()> {
        let largest = report.transfers.iter_mut().max_by_key(|t| t.row.bytes);
        let fitted = largest.and_then(|t| {
            let path = fit::fit(t.findings.as_ref()?)?;
            Some((t, path))
        });
        let (t, path) = fitted.context("--fork: found no transfer with acknowledgements, expected one")?;
        let findings = t.findings.as_ref().context("--fork: found no events, expected a capture")?;
        let startups = fork::run(findings, &path, candidates)?;
        t.row.fork = Some(Fork { path, startups });
        Ok(())
    }

    fn tell(&self, report: &Report) -> Result<()> {
        print(&title(&self.file.display().to_string(), report))?;
        let rows: Vec<&Transfer> = report.transfers.iter().map(|t| &t.row).collect();
        if rows.is_empty() {
            return print("no transfer of data");
        }
        let width = terminal_size::terminal_size().filter(|_| std::io::stdout().is_terminal()).map(|s| s.0.0);
        if rows.len() > LINES {
            print(&distributions(&rows).render(false, width))?;
            return print(&format!(
                "{} transfers summarised; --connections or --min-bytes choose among them, --json has each",
                rows.len()
            ));
        }
        print(&transfers(&rows).render(false, width))?;
        if rows.len() <= DETAILED {
            for row in rows.iter().filter(|r| !r.startups.is_empty()) {
                if row.startups.iter().all(|w| w.exit.is_none() && w.valid_until_s.is_none()) {
                    let ends = format!("connection {}, {} to {}", row.connection, row.from, row.to);
                    print(&format!("{ends}: no startup would have left, or sent anything else\n"))?;
                    continue;
                }
                if rows.len() > 1 {
                    print(&format!("connection {}, {} to {}", row.connection, row.from, row.to))?;
                }
                print(&opinions(row).render(false, width))?;
            }
        }
        for row in &rows {
            if let Some(fork) = &row.fork {
                print(&continued(row, fork).render(false, width))?;
                print(&forked(row, fork))?;
            }
        }
        for (row, what) in rows.iter().filter_map(|row| Some((row, held(row)?))) {
            print(&format!("connection {}, {} to {}: {what}", row.connection, row.from, row.to))?;
        }
        let mut notes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &rows {
            for caveat in &row.caveats {
                let numbers = notes.entry(caveat).or_default();
                if !numbers.contains(&row.connection.to_string()) {
                    numbers.push(row.connection.to_string());
                }
            }
        }
        for (caveat, numbers) in notes {
            print(&format!("note: {}: {caveat}", numbers.join(", ")))?;
        }
        Ok(())
    }
}

/// For how long something else than its window held the sender.
fn held(row: &Transfer) -> Option<String> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for h in &row.limits {
        *sums.entry(&h.what).or_default() += h.until_s - h.from_s;
    }
    let of = |(what, s): (&&str, &f64)| match *what {
        "idle" => format!("idle for {} s", number(*s)),
        what => format!("held by the {what} for {} s", number(*s)),
    };
    (!sums.is_empty()).then(|| sums.iter().map(of).collect::<Vec<_>>().join(", "))
}

/// A page for each of the largest transfers that have something to draw.
fn pages(folder: &Folder, report: &Report) -> Result<()> {
    let mut drawn: Vec<_> = report.transfers.iter().filter(|t| !t.row.startups.is_empty()).collect();
    drawn.sort_by_key(|t| std::cmp::Reverse(t.row.bytes));
    for (i, t) in drawn.iter().take(DETAILED).enumerate() {
        let Some(findings) = &t.findings else { continue };
        let name = if i == 0 { "report.html".to_string() } else { format!("report-{}.html", i + 1) };
        folder.text(&name, &page::html(&t.row, findings, &command()))?;
    }
    Ok(())
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

fn title(file: &str, report: &Report) -> String {
    let kind = match report.summary.kind {
        Kind::Capture => {
            let n = report.summary.connections;
            let connections = if n == 1 { "1 connection".to_string() } else { format!("{n} connections") };
            format!("capture of {} packets, {connections}", number(report.summary.counts.packets as f64))
        }
        Kind::KernelLog => "kernel log".to_string(),
        Kind::Qlog => "qlog".to_string(),
        Kind::Ndt7 => "NDT7 measurement".to_string(),
        Kind::Flent => "flent measurement".to_string(),
        Kind::Ss => "samples of ss".to_string(),
        Kind::Rows => "rows".to_string(),
        Kind::Events => "kernel events".to_string(),
    };
    let left_out = if report.summary.left_out > 0 {
        format!(", {} left out", report.summary.left_out)
    } else {
        String::new()
    };
    let n = report.transfers.len();
    let transfers = if n == 1 { "1 transfer".to_string() } else { format!("{n} transfers") };
    format!("{file}: {kind}, {transfers}{left_out}")
}

fn time(s: Option<f64>) -> Cell {
    s.map_or("-".to_string(), number).into()
}

/// A window in segments.
fn segments(bytes: u64, row: &Transfer) -> String {
    number((bytes as f64 / row.mss_bytes.max(1) as f64).round())
}

/// A line a transfer.
fn transfers(rows: &[&Transfer]) -> Table {
    let headers = [
        "#",
        "sender",
        "receiver",
        "bytes",
        "seen from",
        "RTT (ms)",
        "resent",
        "left (s)",
        "window",
        "class",
        "why",
        "full (s)",
        "loss (s)",
        "cost (s)",
    ];
    let mut alignments = vec![Align::Right; headers.len()];
    for i in [1, 2, 4, 9, 10] {
        alignments[i] = Align::Left;
    }
    let line = |r: &&Transfer| -> Vec<Cell> {
        // Where nothing tells when the path was full there is none either.
        let class = if r.class == Class::None { "-" } else { r.class.name() };
        vec![
            r.connection.to_string().into(),
            r.from.clone().into(),
            r.to.clone().into(),
            bytes(r.bytes).into(),
            r.vantage.clone().into(),
            time(r.min_rtt_s.map(|t| t * 1e3)),
            number(r.retransmitted_packets as f64).into(),
            time(r.exit.as_ref().map(|e| e.time_s)),
            r.exit.as_ref().map_or("-".into(), |e| segments(e.cwnd_bytes, r)).into(),
            class.into(),
            r.exit.as_ref().map(|e| e.evidence.clone()).or(r.unclear.clone()).unwrap_or_default().into(),
            time(r.capacity_time_s),
            time(r.first_loss_time_s),
            time(r.cost_s),
        ]
    };
    Table { headers: headers.map(String::from).to_vec(), rows: rows.iter().map(line).collect(), alignments }
}

/// What each startup would have done, a line each.
fn opinions(row: &Transfer) -> Table {
    let headers =
        ["startup", "exit", "at (s)", "window", "class", "valid until (s)", "its rule alone", "phases"];
    let mut alignments = vec![Align::Right; headers.len()];
    for i in [0, 1, 4, 6, 7] {
        alignments[i] = Align::Left;
    }
    let moment =
        |w: &TimedEvent| format!("{} {} s at {}", w.what, number(w.time_s), segments(w.cwnd_bytes, row));
    let line = |w: &StartupRow| -> Vec<Cell> {
        let exit = |f: &dyn Fn(&TimedEvent) -> String| w.exit.as_ref().map_or("-".to_string(), f);
        let class = match &w.exit {
            Some(_) => w.class.name(),
            None if w.valid_until_s.is_some() => "not known",
            None => Class::None.name(),
        };
        let rule = w.rule.as_ref().filter(|r| w.exit.as_ref() != Some(r)).map(moment);
        let more = if w.phases.len() > 4 { ", .." } else { "" };
        let phases = w.phases.iter().take(4).map(moment).collect::<Vec<_>>().join(", ") + more;
        vec![
            w.startup.clone().into(),
            exit(&|e| e.what.clone()).into(),
            exit(&|e| number(e.time_s)).into(),
            exit(&|e| segments(e.cwnd_bytes, row)).into(),
            class.into(),
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

/// What would have come after, a line each: the quickest first.
fn continued(row: &Transfer, fork: &Fork) -> Table {
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
    let seen: Vec<Cell> = vec![
        "as it was".into(),
        "-".into(),
        row.exit.as_ref().map(|e| e.evidence.clone()).or(row.unclear.clone()).unwrap_or_default().into(),
        time(row.exit.as_ref().map(|e| e.time_s)),
        row.exit.as_ref().map_or("-".into(), |e| segments(e.cwnd_bytes, row)).into(),
        if row.class == Class::None { "-" } else { row.class.name() }.into(),
        number(row.duration_s).into(),
        number(row.retransmitted_packets as f64).into(),
        time(row.peak_delay_s.map(|d| d * 1e3)),
    ];
    Table {
        headers: headers.map(String::from).to_vec(),
        rows: std::iter::once(seen).chain(all.into_iter().map(line)).collect(),
        alignments,
    }
}

/// What that is.
fn forked(row: &Transfer, fork: &Fork) -> String {
    let least = if fork.path.queue_was_full { "" } else { " or more, for nothing was lost" };
    format!(
        "connection {}: from where each would have sent something else, simulated over a path fitted to the capture: {}{least}",
        row.connection,
        fork.path.inline()
    )
}

/// Exit classes over many transfers, of the connections themselves and of each startup.
fn distributions(rows: &[&Transfer]) -> Table {
    let headers = ["", "early", "choke", "late", "none", "exit (s), median (90 %)", "window, median (90 %)"];
    let mut alignments = vec![Align::Right; headers.len()];
    alignments[0] = Align::Left;
    let line = |name: &str, exits: Vec<(Class, Option<(f64, f64)>)>| -> Vec<Cell> {
        let share = |c: Class| {
            let n = exits.iter().filter(|e| e.0 == c).count();
            format!("{n} ({:.0} %)", n as f64 * 100.0 / exits.len().max(1) as f64)
        };
        let spread = |of: &dyn Fn(&(f64, f64)) -> f64| {
            let v: Vec<f64> = exits.iter().filter_map(|e| e.1.as_ref().map(of)).collect();
            match (quantile(&v, 0.5), quantile(&v, 0.05), quantile(&v, 0.95)) {
                (Some(m), Some(l), Some(h)) => format!("{} ({}-{})", number(m), number(l), number(h)),
                _ => "-".to_string(),
            }
        };
        vec![
            name.into(),
            share(Class::Early).into(),
            share(Class::ChokePoint).into(),
            share(Class::Late).into(),
            share(Class::None).into(),
            spread(&|e| e.0).into(),
            spread(&|e| e.1.round()).into(),
        ]
    };
    let window = |b: u64, r: &Transfer| b as f64 / r.mss_bytes.max(1) as f64;
    let seen = rows.iter().map(|r| (r.class, r.exit.as_ref().map(|e| (e.time_s, window(e.cwnd_bytes, r)))));
    let mut lines = vec![line("as it was", seen.collect())];
    let mut names: Vec<&str> = Vec::new();
    for w in rows.iter().flat_map(|r| &r.startups) {
        if !names.contains(&w.startup.as_str()) {
            names.push(&w.startup);
        }
    }
    for name in names {
        let of = |r: &&Transfer| {
            let w = r.startups.iter().find(|w| w.startup == name)?;
            Some((w.class, w.exit.as_ref().map(|e| (e.time_s, window(e.cwnd_bytes, r)))))
        };
        lines.push(line(name, rows.iter().filter_map(of).collect()));
    }
    Table { headers: headers.map(String::from).to_vec(), rows: lines, alignments }
}
