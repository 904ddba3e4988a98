//! `slowstart validate kernel`: compares the simulator with the running kernel over named cells.

use crate::interrupt::{Interrupt, Interrupted};
use crate::kernel_folder::KernelFolder;
use crate::output::{self, print};
use anyhow::{Result, bail};
use clap::Args;
use slowstart_lab::report::words;
use slowstart_lab::run::{Job, Outcome};
use slowstart_lab::scenario::Study;
use slowstart_lab::validate::kernel::{Cell, Figure, compare};
use slowstart_lab::validate::page::{self, Held};
use slowstart_linux::emulate::INVALID;
use slowstart_linux::{KernelError, LoadedControl, run_transfer};
use std::path::PathBuf;

/// Compare the simulator with the running Linux kernel over 71 cells, each a path and a congestion control.
///
/// Each cell runs five times on the running kernel behind an emulated path, and five times in the simulator with the same
/// seeds. Needs root and about an hour. Exit status 1 if a cell differs.
///
/// Examples:
///   slowstart validate kernel --cell "100M-10ms-1 cubic"
///   slowstart validate kernel --traces links --out validation
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Kernel {
    /// Run only the cells whose name contains this text
    #[arg(long)]
    cell: Option<String>,
    /// The folder with lte-verizon-short.down, starlink-leocc-A.bw.gz and starlink-leocc-A.delay. Without it the cells
    /// that need them are skipped
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Write the rows, and a page with the windows of both engines in one chart per cell, to this folder. If it holds
    /// finished runs of the same command, the comparison goes on after them
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Attempts at a run until the emulator released its packets in time.
const ATTEMPTS: u32 = 3;

impl Kernel {
    pub(crate) fn main(self) -> Result<bool> {
        let wanted = |c: &Cell| self.cell.as_ref().is_none_or(|name| c.name.contains(name));
        let mut cells: Vec<Cell> = Cell::all().into_iter().filter(wanted).collect();
        if cells.is_empty() {
            let names: Vec<String> = Cell::all().into_iter().map(|c| c.name).collect();
            bail!(
                "--cell {}: no such cell; the cells are {}",
                self.cell.unwrap_or_default(),
                names.join("; ")
            );
        }
        if self.traces.is_none() {
            for c in cells.iter().filter(|c| c.traced) {
                print(&format!("skipped: {} needs --traces", c.name))?;
            }
            cells.retain(|c| !c.traced);
        }
        let interrupt = Interrupt::record()?;
        let mut folder = self.out.as_deref().map(|dir| KernelFolder::open(dir, false)).transpose()?;
        let studies =
            cells.iter().map(|c| Ok(c.study(self.traces.as_deref())?)).collect::<Result<Vec<Study>>>()?;
        let bar = output::progress(studies.iter().map(|s| u64::from(s.runs)).sum());
        let mut all = Vec::new();
        let total = cells.len();
        'cells: for (cell, study) in cells.into_iter().zip(studies) {
            let control = LoadedControl::load(cell.control.kernel, cell.control.avoidance)?;
            let mut kernel = Vec::new();
            for job in study.jobs() {
                let run = || Ok(run_in_time(&study, &control, job, &interrupt)?);
                let outcome = match &mut folder {
                    Some(folder) => folder.run(job, run),
                    None => run(),
                };
                let outcome = match outcome {
                    Err(_) if interrupt.signal().is_some() => break 'cells,
                    outcome => outcome?,
                };
                kernel.push(outcome);
                bar.inc(1);
            }
            let ours = Cell::ours(&study);
            for o in &ours {
                if let Some(folder) = &mut folder {
                    folder.add_row(&o.row)?;
                }
            }
            let figures = compare(&cell, &ours, &kernel);
            let mut caveats: Vec<String> = kernel.iter().filter_map(late).cloned().collect();
            caveats.dedup();
            let held = Held { cell, figures, ours, kernel, caveats };
            bar.suspend(|| print(&line(&held)))?;
            all.push(held);
        }
        bar.finish_and_clear();
        if !all.is_empty() {
            print(&page::verdict(&all))?;
        }
        if let Some(folder) = folder.as_ref().filter(|_| !all.is_empty()) {
            let release = all.iter().flat_map(|h| &h.kernel).next().map_or("", |o| &o.row.profile);
            let title = format!("The simulator compared with Linux {release}");
            let about = "A figure agrees if it lies within the range of the kernel's five runs, widened by a tenth; the \
                         time of an exit also by a round trip, the times to a number of bytes by a twentieth.";
            folder.folder().text("validation.html", &page::html(&title, about, &all))?;
        }
        if let Some(signal) = interrupt.signal() {
            return Err(Interrupted { signal, finished: Some((all.len(), total)) }.into());
        }
        Ok(all.iter().all(Held::passes))
    }
}

/// Runs a job until the emulator released its packets in time, at most [`ATTEMPTS`] times.
fn run_in_time(
    study: &Study,
    control: &LoadedControl,
    job: Job,
    interrupt: &Interrupt,
) -> Result<Outcome, KernelError> {
    let run = || run_transfer(study, control, job, &|| interrupt.signal().is_some());
    let mut outcome = run()?;
    for _ in 1..ATTEMPTS {
        if late(&outcome).is_none() {
            break;
        }
        outcome = run()?;
    }
    Ok(outcome)
}

/// The caveat of a run in which packets were released too late.
fn late(o: &Outcome) -> Option<&String> {
    o.row.caveats.iter().find(|c| *c == INVALID)
}

/// The result of a cell in one line, with the figures that differ.
fn line(h: &Held) -> String {
    let figure = |f: &Figure| {
        let number = |x: Option<f64>| x.map_or("none".to_string(), words::number);
        let (low, high) = (number(f.kernel.map(|k| k.0)), number(f.kernel.map(|k| k.1)));
        format!("{}: {}, not {low} to {high}", f.name, number(f.ours))
    };
    let differs: Vec<String> = h.figures.iter().filter(|f| !f.agrees).map(figure).collect();
    let verdict = if h.passes() { "passes" } else { "differs" };
    let late = if h.caveats.is_empty() { "" } else { " (late)" };
    format!("{:<36}  {verdict}{late}  {}", h.cell.name, differs.join("; ")).trim_end().to_string()
}
