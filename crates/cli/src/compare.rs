//! `slowstart compare` and `slowstart run`: the main job.

#[cfg(feature = "kernel")]
#[path = "compare_kernel.rs"]
mod kernel;
#[cfg(not(feature = "kernel"))]
mod kernel {
    /// Says how to get what this was built without.
    pub(super) fn compare(_: super::Compare) -> anyhow::Result<()> {
        anyhow::bail!("--engine kernel: {}", crate::kernel::WITHOUT)
    }
}

use crate::output::{self, Folder, print};
use crate::printable::printable;
use crate::{spark, table};
use anyhow::{Context, Result};
use clap::Args;
use slowstart::units::Span;
use slowstart_lab::engine::Sampling;
use slowstart_lab::record::{Row, Trace};
use slowstart_lab::report::summary::label;
use slowstart_lab::report::{self, Page, Series, words};
use slowstart_lab::run::Job;
use slowstart_lab::scenario::{self, Study, StudyText};
use slowstart_lab::split;
use slowstart_replay::{qlog, wire};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Columns of a sparkline.
const SPARK: usize = 48;
/// Samples of a run that is drawn.
const SAMPLES: f64 = 4000.0;

/// Compares startups over a path.
///
/// PATH is a built-in name (see `slowstart list paths`), a TOML file, or written inline as
/// "rate=100Mbit rtt=40ms queue=1bdp".
///
/// Examples:
///   slowstart compare geo
///   slowstart compare "rate=50Mbit rtt=80ms queue=2bdp" --startup search,hystart:detect=delay
///   slowstart compare lte --against cubic@-10s
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Compare {
    /// The path
    path: String,
    /// Startups, as name or name:key=value,key=value, with commas between [default: all]
    #[arg(long)]
    startup: Vec<String>,
    /// What follows the startup [default: cubic]
    #[arg(long)]
    avoidance: Option<String>,
    /// Bytes to transfer [default: 20 bandwidth-delay products, at least 10MB]
    #[arg(long)]
    size: Option<String>,
    /// Time to observe a transfer without end
    #[arg(long, conflicts_with = "size")]
    duration: Option<String>,
    /// The stack [default: linux-6.18]
    #[arg(long)]
    profile: Option<String>,
    /// Knobs of the stack, as key=value with commas between
    #[arg(long)]
    set: Vec<String>,
    /// What the application does: bulk, web or video [default: bulk]
    #[arg(long)]
    app: Option<String>,
    /// Flows that share the path, as name@start or name@start/up, relative to the flow studied
    #[arg(long, value_delimiter = ',')]
    against: Vec<String>,
    /// `on` (the default) or `off`: whether startups that use what an earlier connection found have had one
    #[arg(long)]
    remember: Option<String>,
    /// Runs, each with a seed of its own [default: 10]
    #[arg(long)]
    runs: Option<u32>,
    /// Seed of the study [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// `sim`, or `kernel`: the running Linux kernel behind the same path on the real clock (root; see docs/kernel.md).
    /// Startups there are those of `slowstart kernel load`, and cubic, reno and bbr as the kernel has them
    #[arg(long, default_value = "sim", value_parser = ["sim", "kernel"])]
    engine: String,
    #[command(flatten)]
    how: How,
}

/// Runs studies from files.
///
/// A study has the keys of `slowstart compare`: path, startups, avoidance, size, duration, profile, set, app, against,
/// runs, seed.
///
/// Example: slowstart run scenarios/geo-beside-cubic.toml
#[derive(Args)]
pub(crate) struct Run {
    /// TOML files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
}

/// How results are shown.
#[derive(Args)]
struct How {
    /// Rows as JSON lines on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// A folder for rows, samples, events and a page
    #[arg(long)]
    out: Option<PathBuf>,
    /// Interval of the samples, such as 10ms, or `ack` for one each acknowledgement [default: 4000 a run]
    #[arg(long)]
    samples: Option<String>,
    /// With --out: the packets of the runs that are drawn, as captures at the server and at the client (pcapng)
    #[arg(long, requires = "out")]
    pcap: bool,
    /// With --out: the windows of the runs that are drawn, as qlog
    #[arg(long, requires = "out")]
    qlog: bool,
    /// Say on standard error what it took
    #[arg(long)]
    timing: bool,
}

/// Startups from a list in which a comma separates startups as well as their parameters: what has the form key=value
/// belongs to the startup before it.
pub(crate) fn startups(written: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for piece in written.iter().flat_map(|w| w.split(',')) {
        let parameter = piece.contains('=') && !piece.contains(':');
        match all.last_mut().filter(|_| parameter) {
            Some(last) => {
                last.push(',');
                last.push_str(piece);
            }
            None => all.push(piece.to_string()),
        }
    }
    all
}

impl Compare {
    pub(crate) fn main(self) -> Result<()> {
        if self.engine == "kernel" {
            return kernel::compare(self);
        }
        let mut set = BTreeMap::new();
        for knob in self.set.iter().flat_map(|s| s.split(',')) {
            let (key, value) =
                knob.split_once('=').with_context(|| format!("set: found {knob:?}, expected key=value"))?;
            set.insert(key.to_string(), value.to_string());
        }
        let text = StudyText {
            path: self.path,
            startups: startups(&self.startup),
            avoidance: self.avoidance,
            size: self.size,
            duration: self.duration,
            profile: self.profile,
            set,
            app: self.app,
            against: self.against,
            remember: self.remember,
            runs: self.runs,
            seed: self.seed,
        };
        self.how.study(&Study::check(&text, None)?)
    }
}

impl Run {
    pub(crate) fn main(self) -> Result<()> {
        let several = self.files.len() > 1;
        // All are read before the first is run: a mistake in the last loses nothing.
        let studies = self.files.iter().map(|f| Ok((f, Study::load(f)?))).collect::<Result<Vec<_>>>()?;
        for (file, study) in studies {
            let stem = file.file_stem().unwrap_or_default();
            let out = self.how.out.as_ref().map(|o| if several { o.join(stem) } else { o.clone() });
            How { out, samples: self.how.samples.clone(), ..self.how }.study(&study)?;
        }
        Ok(())
    }
}

impl How {
    fn study(&self, study: &Study) -> Result<()> {
        let sampling = match self.samples.as_deref() {
            None => None,
            Some("ack") => Some(Sampling::EachAck),
            Some(t) => Some(Sampling::Every(scenario::time("samples", t)?)),
        };
        let mut folder = self.out.as_deref().map(Folder::create).transpose()?;
        let bar = output::progress(study.jobs().len() as u64);
        let mut rows = Vec::new();
        study.run_all(|outcome| -> Result<()> {
            if let Some(folder) = &mut folder {
                folder.row(&outcome.row)?;
            }
            if self.json {
                print(&serde_json::to_string(&outcome.row)?)?;
            }
            rows.push(outcome.row);
            bar.inc(1);
            Ok(())
        })?;
        bar.finish_and_clear();
        if self.timing {
            let packets: u64 = rows.iter().map(|r| r.cost.packets).sum();
            let events: u64 = rows.iter().map(|r| r.cost.events).sum();
            eprintln!("{} runs, {packets} data packets, {events} events", rows.len());
        }
        if self.json && folder.is_none() {
            return Ok(());
        }
        let drawn = draw(study, &rows, sampling);
        if let Some(folder) = &folder {
            write(folder, study, &rows, &drawn, &table::verdict(&rows))?;
            let splits = split::splits(&rows);
            folder.lines(
                "splits.jsonl",
                splits.iter().map(|(startup, split)| WhatDecides { startup, split }),
            )?;
            for d in drawn.iter().filter(|_| self.pcap || self.qlog) {
                self.record(folder, study, d)?;
            }
        }
        self.show(study, &rows, &drawn, &title(study))
    }

    /// The result in words.
    fn show(&self, study: &Study, rows: &[Row], drawn: &[Drawn], title: &str) -> Result<()> {
        if self.json {
            return Ok(());
        }
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        print(title)?;
        let width = terminal_size::terminal_size().filter(|_| std::io::stdout().is_terminal()).map(|s| s.0.0);
        print(&table::comparison(rows, colour, width))?;
        if let Some(others) = table::others(rows, colour, width) {
            print(&others)?;
        }
        print(&sparks(study, drawn))?;
        print(&table::verdict(rows))?;
        for sentence in split::sentences(rows) {
            print(&sentence)?;
        }
        for caveat in caveats(rows) {
            print(&format!("note: {caveat}"))?;
        }
        Ok(())
    }
}

impl How {
    /// The run that is drawn, once more, with all of its packets and acknowledgements.
    fn record(&self, folder: &Folder, study: &Study, drawn: &Drawn) -> Result<()> {
        let contender = study.contenders.iter().position(|c| {
            c.startup_name == drawn.row.startup && {
                slowstart_lab::scenario::params(&c.startup) == drawn.row.params
            }
        });
        let Some(contender) = contender else { return Ok(()) };
        let trace = study.capture(Job { contender, run: drawn.row.run }).trace;
        let name = drawn.label.replace([':', ',', '=', '/', ' '], "-");
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

/// A bar on a terminal, nothing elsewhere.
fn title(study: &Study) -> String {
    let facts = study.path.facts();
    let what = match study.size {
        Some(bytes) => words::bytes(bytes),
        None => format!("{:.0} s", study.duration.as_secs_f64()),
    };
    let (name, runs, profile) = (printable(&study.path.name), study.runs, &study.profile_label);
    if study.path.is_ensemble() {
        let laws = study.path.distributions();
        let laws: Vec<String> =
            laws.iter().map(|(field, law)| format!("{} {law}", split::key(field))).collect();
        let fixed = study.path.fixed().map_or(String::new(), |f| format!(" (one fixed path: {f})"));
        let laws = printable(&laws.join(", ")).to_string();
        // The name of an inline path has them all.
        let drawn = if study.path.name.contains('=') { "its path".to_string() } else { laws };
        return format!("{name}: an ensemble, each run draws {drawn}{fixed}; {what}, {runs} runs, {profile}");
    }
    format!(
        "{name}: {}, {:.1} ms, BDP {}; {what}, {runs} runs, {profile}",
        words::rate(facts.rate.0 as f64),
        facts.base_rtt.as_secs_f64() * 1e3,
        words::bytes(facts.bdp.0),
    )
}

/// A line of `splits.jsonl`.
#[derive(serde::Serialize)]
struct WhatDecides<'a> {
    startup: &'a str,
    #[serde(flatten)]
    split: &'a split::Split,
}

/// A run that is drawn, recorded afresh: runs are deterministic, so only those that are drawn need samples.
struct Drawn {
    label: String,
    row: Row,
    trace: Trace,
}

/// The run in the middle.
fn middle(rows: &[Row]) -> &Row {
    let mut order: Vec<&Row> = rows.iter().collect();
    order.sort_by(|a, b| {
        let key = |r: &Row| r.completion_s.unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b)).then(b.goodput_bps.cmp(&a.goodput_bps)).then(a.run.cmp(&b.run))
    });
    order[(order.len() - 1) / 2]
}

/// For each startup, the run in the middle.
fn draw(study: &Study, rows: &[Row], sampling: Option<Sampling>) -> Vec<Drawn> {
    rows.chunks(study.runs as usize)
        .enumerate()
        .map(|(contender, rows)| {
            let row = middle(rows);
            let interval = Span(((row.duration_s / SAMPLES * 1e9) as u64).clamp(50_000, 100_000_000));
            let sampling = sampling.unwrap_or(Sampling::Every(interval));
            let outcome = study.run(Job { contender, run: row.run }, sampling, true);
            Drawn { label: label(row), row: row.clone(), trace: outcome.trace }
        })
        .collect()
}

fn write(folder: &Folder, study: &Study, rows: &[Row], drawn: &[Drawn], verdict: &str) -> Result<()> {
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
    let series: Vec<Series> = drawn
        .iter()
        .map(|d| Series {
            label: &d.label,
            row: &d.row,
            samples: &d.trace.samples,
            start_s: Span(study.start().0).as_secs_f64(),
            mss: u64::from(study.profile.mss),
        })
        .collect();
    let page = report::html(&Page {
        title: &format!("slowstart: {}", study.path.name),
        about: &about(study),
        verdict,
        command: &command(),
        rows,
        opinions: None,
        series: &series,
        caveats: &caveats(rows),
    });
    folder.text("report.html", &page)
}

fn about(study: &Study) -> String {
    let mut text = format!("{}. {}", title(study), study.path.about);
    if !study.path.sources.is_empty() {
        let stop = if text.ends_with('.') { "" } else { "." };
        text = format!("{text}{stop} Sources: {}.", study.path.sources.join("; "));
    }
    text
}

/// How to get this again.
pub(crate) fn command() -> String {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .map(|a| if a.contains([' ', '*', '&']) { format!("\"{a}\"") } else { a })
        .collect();
    format!("slowstart {}", args.join(" "))
}

/// Each startup's window over time, on one scale.
fn sparks(study: &Study, drawn: &[Drawn]) -> String {
    let width = drawn.iter().map(|d| d.label.len()).max().unwrap_or(0);
    let until = drawn.iter().map(|d| d.row.duration_s).fold(0.0, f64::max);
    let start = Span(study.start().0).as_secs_f64();
    let window = |d: &Drawn| -> Vec<f64> {
        let mut columns = vec![0.0; SPARK];
        for s in &d.trace.samples {
            let at = (((s.time_s - start) / until) * SPARK as f64) as usize;
            if let Some(c) = columns.get_mut(at) {
                *c = f64::max(*c, s.cwnd_bytes as f64);
            }
        }
        columns
    };
    let windows: Vec<Vec<f64>> = drawn.iter().map(window).collect();
    let max = windows.iter().flatten().copied().fold(1.0, f64::max);
    let bdp = drawn.first().map_or(1.0, |d| d.row.bdp_bytes as f64);
    let mut text = format!("cwnd over {} s, highest {:.1} BDP\n", words::number(until), max / bdp);
    for (d, w) in drawn.iter().zip(&windows) {
        text = format!("{text}{:width$}  {}\n", d.label, spark::spark(w, SPARK, max, false));
    }
    text
}

/// Each caveat once, with how many rows it holds for.
fn caveats(rows: &[Row]) -> Vec<String> {
    let mut all: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for r in rows {
        for c in &r.caveats {
            *all.entry((c, &r.startup)).or_default() += 1;
        }
    }
    all.into_iter().map(|((c, startup), n)| format!("{startup}: {c} ({n} of its runs)")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_separates_startups_and_parameters() {
        let written = ["search:threshold=0.3,drain=off,hystart".to_string(), "standard".to_string()];
        assert_eq!(startups(&written), ["search:threshold=0.3,drain=off", "hystart", "standard"]);
    }
}
