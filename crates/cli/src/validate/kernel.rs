//! `slowstart validate kernel`: named cells through the running kernel and through us.

use crate::output::{self, Folder, print};
use anyhow::{Result, bail};
use clap::Args;
use slowstart_lab::report::words;
use slowstart_lab::run::Outcome;
use slowstart_lab::scenario::Study;
use slowstart_lab::validate::kernel::{Cell, Figure, compare};
use slowstart_lab::validate::page::{self, Held};
use slowstart_linux::{LoadedControl, run_transfer};
use std::path::PathBuf;

/// Runs 50 cells, each a path and a control, five times through the emulator on the running kernel and five times through
/// the simulator with the same seeds; needs root, and some forty minutes. Exit status 1 if a cell does not pass.
///
/// Example: slowstart validate kernel --traces links --out validation
#[derive(Args)]
pub(crate) struct Kernel {
    /// Only cells whose name holds this
    #[arg(long)]
    cell: Option<String>,
    /// The folder of lte-verizon-short.down, starlink-leocc-A.bw.gz and starlink-leocc-A.delay; without it the cells that
    /// need them are skipped
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// A folder for rows and a page with the windows of both on top of each other
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A run in which the emulator was late is no run: it is repeated, so often.
const ATTEMPTS: u32 = 3;

impl Kernel {
    pub(crate) fn main(self) -> Result<bool> {
        let wanted = |c: &Cell| self.cell.as_ref().is_none_or(|name| c.name.contains(name));
        let mut cells: Vec<Cell> = Cell::all().into_iter().filter(wanted).collect();
        if cells.is_empty() {
            let names: Vec<String> = Cell::all().into_iter().map(|c| c.name).collect();
            bail!("--cell {}: no such cell; there are {}", self.cell.unwrap_or_default(), names.join("; "));
        }
        if self.traces.is_none() {
            for c in cells.iter().filter(|c| c.traced) {
                print(&format!("skipped: {} needs --traces", c.name))?;
            }
            cells.retain(|c| !c.traced);
        }
        let mut folder = self.out.as_deref().map(Folder::create).transpose()?;
        let studies =
            cells.iter().map(|c| Ok(c.study(self.traces.as_deref())?)).collect::<Result<Vec<Study>>>()?;
        let bar = output::progress(studies.iter().map(|s| u64::from(s.runs)).sum());
        let mut all = Vec::new();
        for (cell, study) in cells.into_iter().zip(studies) {
            let contestant = LoadedControl::load(cell.control.kernel, cell.control.avoidance)?;
            let mut kernel = Vec::new();
            for job in study.jobs() {
                let mut outcome = run_transfer(&study, &contestant, job)?;
                for _ in 1..ATTEMPTS {
                    if late(&outcome).is_none() {
                        break;
                    }
                    outcome = run_transfer(&study, &contestant, job)?;
                }
                if let Some(folder) = &mut folder {
                    folder.row(&outcome.row)?;
                }
                kernel.push(outcome);
                bar.inc(1);
            }
            let ours = Cell::ours(&study);
            for o in &ours {
                if let Some(folder) = &mut folder {
                    folder.row(&o.row)?;
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
        print(&page::verdict(&all))?;
        if let Some(folder) = &folder {
            let release = all.iter().flat_map(|h| &h.kernel).next().map_or("", |o| &o.row.profile);
            let title = format!("The simulator beside Linux {release}");
            let about = "A figure agrees that lies within the kernel's own range over five runs, widened by a tenth; the \
                         time of an exit also by a round trip, times to so many bytes by a twentieth.";
            folder.text("validation.html", &page::html(&title, about, &all))?;
        }
        Ok(all.iter().all(Held::passes))
    }
}

/// Why a run is none.
fn late(o: &Outcome) -> Option<&String> {
    o.row.caveats.iter().find(|c| c.starts_with("INVALID"))
}

/// A cell in a line: what differs, if anything does.
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
