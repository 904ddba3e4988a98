//! Compares the simulator with ns-3 over dumbbell topologies.

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

mod cases;
#[cfg(test)]
mod figures;

use anyhow::{Context, bail};
use cases::{Case, Seen};
use clap::Parser;
use comfy_table::{CellAlignment, Table};
use serde::Deserialize;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

/// Compare the simulator with ns-3 over dumbbell topologies.
///
/// ns-3 is the Python package `ns3` (pip install ns3); where it is not installed,
/// this says so and exits with status 0.
///
/// Examples:
///   ns3
///   ns3 --python venv/bin/python --case cubic
#[derive(Parser)]
#[command(verbatim_doc_comment)]
struct Ns3 {
    /// The Python interpreter with the package ns3
    #[arg(long, default_value = "python3")]
    python: String,
    /// Run only the cases whose name contains this text
    #[arg(long)]
    case: Option<String>,
}

/// The program that runs the cases in ns-3.
const SCRIPT: &str = include_str!("dumbbell.py");

/// One line of its output.
#[derive(Deserialize)]
struct Theirs {
    case: String,
    cpu_s: f64,
    #[serde(flatten)]
    seen: Seen,
}

/// The tolerance of a figure: relative, or absolute.
struct Within {
    share: f64,
    least: f64,
}

/// The tolerance of counts, which may differ by the packets at the start and the end.
const COUNT: Within = Within { share: 0.01, least: 2.0 };

impl Within {
    fn agree(&self, ours: f64, theirs: f64) -> bool {
        (ours - theirs).abs() <= (self.share * theirs).max(self.least)
    }
}

impl Ns3 {
    fn run(self) -> anyhow::Result<bool> {
        let there = Command::new(&self.python)
            .args(["-c", "import importlib.util as u, sys; sys.exit(u.find_spec('ns') is None)"])
            .status()
            .with_context(|| format!("--python {}", self.python))?;
        if !there.success() {
            println!("skipped: {} has no ns-3 (pip install ns3)", self.python);
            return Ok(true);
        }
        let wanted = |c: &Case| self.case.as_ref().is_none_or(|name| c.name.contains(name));
        let cases: Vec<Case> = Case::all().into_iter().filter(wanted).collect();
        if cases.is_empty() {
            bail!("--case {}: no such case; the cases are {}", self.case.unwrap_or_default(), names());
        }
        let mut ns3 = Command::new(&self.python)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut input = ns3.stdin.take().context("a pipe to ns-3")?;
        for case in &cases {
            writeln!(input, "{}", serde_json::to_string(case)?)?;
        }
        drop(input);
        let mut rows = Vec::new();
        let mut agreed = true;
        let mut answers = BufReader::new(ns3.stdout.take().context("a pipe from ns-3")?).lines();
        for case in &cases {
            let line = answers.next().context("ns-3 ended early")??;
            let theirs: Theirs = serde_json::from_str(&line)
                .with_context(|| format!("output of ns-3, not a result: {line}"))?;
            if theirs.case != case.name {
                bail!("ns-3 returned case {}, expected {}", theirs.case, case.name);
            }
            let (row, same) = compare(case, &theirs);
            rows.push(row);
            agreed &= same;
        }
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header([
            "case",
            "exit (s)",
            "",
            "cwnd",
            "",
            "drops",
            "",
            "delivered (kB)",
            "",
            "packets/s",
            "",
        ]);
        let both = ["ns-3", "slowstart"].repeat(5);
        table.add_row([""].into_iter().chain(both));
        table.add_rows(rows);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        println!("{table}");
        println!(
            "! a time differs by more than 0.5 % and four packets, or a count by more than 1 % and 2 packets"
        );
        Ok(agreed)
    }
}

fn main() -> anyhow::Result<ExitCode> {
    Ok(if Ns3::parse().run()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn names() -> String {
    Case::all().into_iter().map(|c| c.name).collect::<Vec<_>>().join("; ")
}

/// Returns the table row of a case, and true if its figures agree.
fn compare(case: &Case, theirs: &Theirs) -> (Vec<String>, bool) {
    #[allow(
        clippy::disallowed_methods,
        reason = "the duration of the run is displayed and is no part of a result"
    )]
    let before = std::time::Instant::now();
    let ours = case.ours();
    let took_s = before.elapsed().as_secs_f64();
    let exit = |s: &Seen| s.exit().unwrap_or((f64::NAN, f64::NAN));
    let ((at, cwnd), (their_at, their_cwnd)) = (exit(&ours), exit(&theirs.seen));
    let time = Within { share: 0.005, least: case.train_s() };
    let mut same = true;
    let mut cells = vec![case.name.clone()];
    let kilo = |bytes: u64| bytes as f64 / 1000.0;
    for (ours, theirs, within, places) in [
        (at, their_at, time, 4),
        (cwnd, their_cwnd, COUNT, 0),
        (ours.drops as f64, theirs.seen.drops as f64, COUNT, 0),
        (kilo(ours.delivered_bytes), kilo(theirs.seen.delivered_bytes), COUNT, 0),
    ] {
        let agrees = within.agree(ours, theirs);
        // With several flows, the first are in recovery when the median flow ends its startup: their drops
        // and delivered bytes are shown, not compared.
        same &= agrees || (case.flows > 1 && cells.len() > 4);
        cells.push(format!("{theirs:.places$}"));
        cells.push(format!("{ours:.places$}{}", if agrees { "" } else { " !" }));
    }
    cells.push(format!("{:.0}", theirs.seen.packets as f64 / theirs.cpu_s));
    cells.push(format!("{:.0}", ours.packets as f64 / took_s));
    (cells, same)
}
