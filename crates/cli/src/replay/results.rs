//! The transfers of all files: written as they end, printed at the end.

use super::population;
use super::{Replay, tables};
use crate::folder::Folder;
use crate::output::command;
use crate::output::{note, print, width, wrap};
use crate::printable::printable;
use crate::row_output::RowWriter;
use crate::sampled_runs::playground;
use crate::table::Table;
use anyhow::{Context, Result};
use serde::Serialize;
use slowstart_replay::analysis::Keep;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open;
use slowstart_replay::population::Population;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_replay::transfer::{self, ExitClass, Fork, Source, Transfer};
use slowstart_replay::{answer, fit, fork, page};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// More transfers than this are summarised, and more files than this are not named.
pub(super) const LINES: usize = 20;
/// Width of the names of facts.
const FACT: usize = 18;
/// Up to this number of transfers, each has an answer; the number of pages with `--out`.
const DETAILED: usize = 3;

/// A file of JSON lines in the folder of results.
struct JsonLines {
    file: PathBuf,
    out: BufWriter<File>,
}

impl JsonLines {
    /// Empties the file or creates it. A symbolic link is replaced, not followed.
    fn create(dir: &Path, name: &str) -> Result<Self> {
        let file = dir.join(name);
        let named = || file.display().to_string();
        if fs::symlink_metadata(&file).is_ok() {
            fs::remove_file(&file).with_context(named)?;
        }
        let out = BufWriter::new(slowstart_files::create_new(&file).with_context(named)?);
        Ok(Self { file, out })
    }

    fn write<T: Serialize>(&mut self, line: &T) -> Result<()> {
        let written = serde_json::to_writer(&mut self.out, line).map_err(io::Error::from);
        written.and_then(|()| self.out.write_all(b"\n")).with_context(|| self.file.display().to_string())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().with_context(|| self.file.display().to_string())
    }
}

/// Where `--out` writes.
struct Out {
    folder: Folder,
    rows: JsonLines,
    samples: JsonLines,
}

/// The transfers of all files. Memory does not grow with their number: rows are written when a connection is
/// over, and only the first rows and the largest transfers are kept.
pub(super) struct Results<'a> {
    args: &'a Replay,
    several_files: bool,
    out: Option<Out>,
    rows: RowWriter,
    /// The first transfers, in the order in which their connections ended.
    first: Vec<Transfer>,
    /// The largest transfers, with findings, the largest first.
    largest: Vec<AnalysedTransfer>,
    /// With `--fork`, the largest transfer so far, whose row is not written yet.
    pending: Option<AnalysedTransfer>,
    /// The largest transfer of a capture that did not mostly wait for the application.
    place: Option<Place>,
    /// That transfer with its continuations, without `--fork`.
    continued: Option<Transfer>,
    population: Population,
    /// An error of writing.
    pub(super) error: Option<anyhow::Error>,
}

/// Where a transfer is.
struct Place {
    file: PathBuf,
    connection: u64,
    from: String,
    bytes: Option<u64>,
}

impl<'a> Results<'a> {
    pub(super) fn new(args: &'a Replay, several_files: bool) -> Result<Self> {
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
            rows: args.rows.writer(transfer::TRANSFER_SCHEMA)?,
            first: Vec::new(),
            largest: Vec::new(),
            pending: None,
            place: None,
            continued: None,
            population: Population::default(),
            error: None,
        })
    }

    pub(super) fn add(&mut self, t: AnalysedTransfer) {
        if self.error.is_some() {
            return;
        }
        self.population.add(&t.row);
        let row = &t.row;
        if row.source == Source::Capture
            && !row.startups.is_empty()
            && !answer::mostly_waited_for_data(row)
            && self.place.as_ref().is_none_or(|p| p.bytes < row.bytes)
            && let Some(file) = &row.file
        {
            self.place = Some(Place {
                file: file.into(),
                connection: row.connection,
                from: row.from.clone(),
                bytes: row.bytes,
            });
        }
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
        self.rows.write(&t.row)?;
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

    /// Reads the largest transfer of a capture again and continues it in the simulator. Its events are kept
    /// this time only, so that memory does not grow with the number of connections.
    pub(super) fn continue_largest(&mut self, options: &Options) -> Result<()> {
        let Some(Place { file, connection, from, .. }) =
            self.place.take().filter(|p| p.file != Path::new("-"))
        else {
            return Ok(());
        };
        let options = Options {
            keep: Keep { packets: true, fork_states: true, ..Keep::default() },
            connections: vec![connection],
            candidates: options.candidates.clone(),
            ..*options
        };
        let mut found = None;
        let (kind, input) = open::open(&file)?;
        let mut each = |t: AnalysedTransfer| found = found.take().or((t.row.from == from).then_some(t));
        stream(kind, input, &options, &mut each, &mut |_| {})?;
        let Some(t) = found else { return Ok(()) };
        match continued(&t, &options.candidates) {
            Ok(fork) => {
                let same = |r: &&mut Transfer| {
                    let in_file = r.file.as_deref().is_some_and(|f| Path::new(f) == file);
                    in_file && r.connection == connection && r.from == from
                };
                let pages = self.largest.iter_mut().map(|l| &mut l.row);
                for row in self.first.iter_mut().chain(pages).filter(same) {
                    row.fork = Some(fork.clone());
                }
                self.continued =
                    Some(Transfer { file: Some(file.display().to_string()), fork: Some(fork), ..t.row });
            }
            Err(e) => note(&format!("connection {connection} is not continued in the simulator: {e:#}")),
        }
        Ok(())
    }

    /// Continues the largest transfer with `--fork`, and writes the pages.
    pub(super) fn finish(&mut self, candidates: &[Candidate]) -> Result<()> {
        if self.args.fork {
            let mut t = self
                .pending
                .take()
                .context("--fork: found no transfer with acknowledgements, expected a capture or a qlog")?;
            t.row.fork = Some(continued(&t, candidates).context("--fork")?);
            self.write(t)?;
        }
        self.rows.finish()?;
        // In the order of the file.
        self.first.sort_by(|a, b| (&a.file, a.connection).cmp(&(&b.file, b.connection)));
        let Some(out) = &mut self.out else { return Ok(()) };
        out.rows.flush()?;
        out.samples.flush()?;
        for (i, t) in self.largest.iter().enumerate() {
            let Some(findings) = &t.findings else { continue };
            let name = if i == 0 { "report.html".to_string() } else { format!("report-{}.html", i + 1) };
            out.folder.text(&name, &page::html(&t.row, findings, &command(), &playground()))?;
        }
        Ok(())
    }

    fn name(&self, row: &Transfer) -> String {
        let file = row.file.as_deref().filter(|_| self.several_files).map(|f| format!("{f}, "));
        let name = format!("{}connection {}", file.unwrap_or_default(), row.connection);
        printable(&name).into_owned()
    }

    /// The title of a transfer's answer.
    fn ends(&self, row: &Transfer) -> String {
        let name = self.name(row);
        let ends: Vec<_> = [&row.from, &row.to].into_iter().filter(|e| !e.is_empty()).map(|e| &**e).collect();
        if ends.is_empty() { name } else { format!("{name}, {}", printable(&ends.join(" to "))) }
    }

    /// Prints what was found: answers in sentences, then tables.
    pub(super) fn print(&self) -> Result<()> {
        let rows = &self.first;
        if rows.is_empty() {
            return print("no transfer of data");
        }
        if rows.len() > LINES {
            return self.print_summary();
        }
        let wide = self.args.wide;
        if rows.len() > 1 || wide {
            print(&render(&tables::transfers(rows, self.several_files, wide), wide))?;
        }
        for row in rows.iter().filter(|r| rows.len() <= DETAILED || r.fork.is_some()) {
            self.print_answer(row)?;
        }
        self.print_notes()
    }

    /// Prints the answer for one transfer.
    fn print_answer(&self, row: &Transfer) -> Result<()> {
        let wide = self.args.wide;
        print(&wrap(&format!("{}: {}", self.ends(row), printable(&answer::lead(row))), 2))?;
        for (what, fact) in answer::facts(row) {
            print(&wrap(&format!("  {what:FACT$}  {}", printable(&fact)), FACT + 4))?;
        }
        print("")?;
        if let Some(fork) = &row.fork {
            print(&wrap(&answer::sooner(row, fork), 2))?;
            if wide || answer::is_reproduced(row, fork) {
                print("")?;
                print(&render(&tables::continuations(row, fork, wide), wide))?;
            }
        }
        let compared = row.fork.as_ref().is_some_and(|fork| answer::is_reproduced(row, fork));
        if row.startups.is_empty() || (compared && !wide) {
            return Ok(());
        }
        if row.startups.iter().all(|w| w.class == ExitClass::None) {
            return print("No startup would have left slow start or sent anything else.\n");
        }
        print(&render(&tables::predictions(row, wide), wide))
    }

    /// Prints three lines for many transfers and the answer for the largest, and with `--wide` a line for
    /// each startup.
    fn print_summary(&self) -> Result<()> {
        print_population(&self.population, self.args.wide)?;
        if let Some(row) = &self.continued {
            let text = answer::sentences(row).join(" ");
            print(&wrap(&format!("the largest, {}: {}", self.ends(row), printable(&text)), 2))?;
        }
        note(
            "select transfers with --connections or --min-bytes, print each with --json, or each startup's exits with --wide",
        );
        Ok(())
    }

    /// Prints each caveat once, with the connections to which it applies; with the sender if it applies to one
    /// direction of two.
    fn print_notes(&self) -> Result<()> {
        let mut notes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &self.first {
            for caveat in &row.caveats {
                let names = notes.entry(caveat).or_default();
                let other = |o: &Transfer| {
                    (o.connection, &o.file) == (row.connection, &row.file) && !o.caveats.contains(caveat)
                };
                let mut name = self.name(row);
                if self.first.iter().any(other) {
                    name = format!("{name}, data from {}", printable(&row.from));
                }
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        for (caveat, names) in notes {
            print(&wrap(&format!("note: {}: {}", names.join("; "), printable(caveat)), 2))?;
        }
        Ok(())
    }
}

/// Prints three sentences for many transfers, and perhaps a line for each startup.
pub(super) fn print_population(population: &Population, startups: bool) -> Result<()> {
    for sentence in population.sentences() {
        print(&wrap(&sentence, 2))?;
    }
    if startups {
        print("")?;
        print(&render(&population::table(population), true))?;
    }
    Ok(())
}

/// The text of a table: in the width of the output, or with `wide` as wide as it is.
fn render(table: &Table, wide: bool) -> String {
    let width = if wide { None } else { u16::try_from(width()).ok() };
    table.render(false, width)
}

/// Continues a transfer in the simulator with each startup, on a path fitted to it.
fn continued(t: &AnalysedTransfer, candidates: &[Candidate]) -> Result<Fork> {
    let findings = t.findings.as_ref().context("found no events, expected a capture")?;
    let path = fit::fit(findings).map_err(anyhow::Error::msg)?;
    let startups = fork::run(findings, &path, candidates)?;
    Ok(Fork { path, startups })
}
