//! `slowstart validate kernel` and `validate engines`: two engines over the same cells.

use crate::engine::interrupt_of_all;
use crate::folder::{Contents, Folder};
use crate::interrupt::{Interrupt, Interrupted};
use crate::output::{self, note, print};
use anyhow::{Result, bail};
use clap::Args;
use slowstart_report::cells::{self as page, Held};
use slowstart_study::cells::{Cell, Figure, Ran, compare};
use slowstart_study::engines::{Engine, run_jobs};
use slowstart_study::measured::INVALID;
use slowstart_study::record::Row;
use slowstart_study::run::Job;
use slowstart_study::scenario::Study;
use slowstart_study::simulator::Simulator;
use slowstart_study::words;
use std::path::{Path, PathBuf};

/// Compare the simulator with the running Linux kernel over a hundred combinations of path and control
///
/// Each combination of a path and a congestion control, a cell, runs five times on
/// the running kernel behind an emulated path, and five times in the simulator with
/// the same seeds. Needs root and about an hour. Exit status 1 if a cell differs.
///
/// Examples:
///   slowstart validate kernel --cell "100M-10ms-1 cubic"
///   slowstart validate kernel --traces links --out validation
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Kernel {
    #[command(flatten)]
    cells: Cells,
}

/// Compare two engines over the combinations (cells) of `validate kernel`
///
/// It prints each figure of the first with the range of the second's runs, and
/// names the cells that one of them cannot run. Exit status 1 if a cell differs.
///
/// Examples:
///   slowstart validate engines sim quic:quinn --cell "20M-40ms-1"
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Engines {
    /// The first engine, such as sim (see `slowstart compare --help`)
    first: String,
    /// The second engine, such as quic:noq
    second: String,
    #[command(flatten)]
    cells: Cells,
}

#[derive(Args)]
struct Cells {
    /// Run only the cells whose name contains this text
    #[arg(long)]
    cell: Option<String>,
    /// The folder with lte-verizon-short.down, starlink-leocc-A.bw.gz and starlink-leocc-A.delay. Without it
    /// the cells that need them are skipped
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Write the rows, and a page with the windows of both engines in one chart per cell, to this folder. If
    /// it holds finished runs of the same command, the comparison goes on after them
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Attempts at a run until no packet of it was late.
const ATTEMPTS: u32 = 3;

impl Kernel {
    pub(crate) fn main(self) -> Result<bool> {
        self.cells.compare(&Simulator, &*slowstart_engines::named("kernel")?)
    }
}

impl Engines {
    pub(crate) fn main(self) -> Result<bool> {
        let (first, second) =
            (slowstart_engines::named(&self.first)?, slowstart_engines::named(&self.second)?);
        if first.is_real_clock() && second.is_real_clock() {
            bail!("expected two engines of which one at least runs at virtual time");
        }
        self.cells.compare(&*first, &*second)
    }
}

/// A cell with its study on both engines.
type Pair = (Cell, [Study; 2]);

impl Cells {
    /// The cells that both engines can run; the others are named.
    fn both(&self, engines: [&dyn Engine; 2]) -> Result<Vec<Pair>> {
        let wanted = |c: &Cell| self.cell.as_ref().is_none_or(|name| c.name.contains(name));
        let cells: Vec<Cell> = Cell::all().into_iter().filter(wanted).collect();
        if cells.is_empty() {
            let names: Vec<String> = Cell::all().into_iter().map(|c| c.name).collect();
            let wanted = self.cell.as_deref().unwrap_or_default();
            bail!("--cell {wanted}: no such cell; the cells are {}", names.join("; "));
        }
        let mut pairs = Vec::new();
        for cell in cells {
            if cell.traced && self.traces.is_none() {
                print(&format!("skipped: {} needs --traces", cell.name))?;
                continue;
            }
            match engines.map(|e| cell.study(e, self.traces.as_deref())) {
                [Ok(first), Ok(second)] => pairs.push((cell, [first, second])),
                [Err(e), _] | [_, Err(e)] => print(&format!("skipped: {}: {e}", cell.name))?,
            }
        }
        if pairs.is_empty() {
            bail!("no cell that both engines can run");
        }
        Ok(pairs)
    }

    fn compare(&self, first: &dyn Engine, second: &dyn Engine) -> Result<bool> {
        let engines = [first, second];
        let pairs = self.both(engines)?;
        let interrupt = interrupt_of_all(engines.into_iter())?;
        let mut kept = self.out.as_deref().map(|dir| Kept::open(dir, engines, &pairs)).transpose()?;
        let runs = |e: usize| pairs.iter().map(|p| u64::from(p.1[e].runs)).sum::<u64>();
        let bar = output::progress(runs(0) + runs(1));
        let names = engines
            .map(|e| if e.name() == slowstart_study::measured::SIMULATOR { "simulated" } else { e.name() });
        let title = format!("{} compared with {}", pairs[0].1[0].profile_label, pairs[0].1[1].profile_label);
        let (mut all, total) = (Vec::new(), pairs.len());
        for (cell, studies) in pairs {
            // The runs that cannot be repeated come first.
            let mut ran = [Vec::new(), Vec::new()];
            let order = if first.is_real_clock() { [0, 1] } else { [1, 0] };
            for e in order {
                ran[e] = runs_of(engines[e], &studies[e], kept.as_mut(), &interrupt)?;
                bar.inc(ran[e].len() as u64);
                if ran[e].len() < studies[e].runs as usize {
                    break;
                }
            }
            let [ours, theirs] = ran;
            if ours.is_empty() || theirs.len() < studies[1].runs as usize {
                break;
            }
            let figures = compare(&cell, &ours, &theirs);
            let mut caveats: Vec<String> =
                ours.iter().chain(&theirs).filter_map(|r| late(&r.row)).cloned().collect();
            caveats.dedup();
            let held = Held { cell, figures, ours, theirs, caveats };
            bar.suspend(|| print(&line(&held)))?;
            all.push(held);
        }
        bar.finish_and_clear();
        if !all.is_empty() {
            print(&page::verdict(&all))?;
        }
        if let Some(kept) = kept.as_ref().filter(|_| !all.is_empty()) {
            let about = "A figure agrees if it lies within the range of the second engine's five runs, widened by a tenth; the \
                         time of an exit also by a round trip, the times to a number of bytes by a twentieth.";
            kept.folder.text("validation.html", &page::html(&title, about, names, &all))?;
        }
        if let Some(signal) = interrupt.signal() {
            return Err(Interrupted { signal, finished: Some((all.len(), total)) }.into());
        }
        Ok(all.iter().all(Held::passes))
    }
}

/// The runs of a cell on one engine; fewer if a signal came.
fn runs_of(
    engine: &dyn Engine,
    study: &Study,
    mut kept: Option<&mut Kept>,
    interrupt: &Interrupt,
) -> Result<Vec<Ran>> {
    let stop = || interrupt.signal().is_some();
    let mut all = Vec::new();
    let run = |job: Job| -> Result<Ran> {
        let mut ran = Cell::run(engine, study, job, &stop)?;
        for _ in 1..ATTEMPTS {
            if late(&ran.row).is_none() {
                break;
            }
            ran = Cell::run(engine, study, job, &stop)?;
        }
        Ok(ran)
    };
    if engine.is_real_clock() {
        for job in study.jobs() {
            if let Some(ran) = kept.as_mut().map(|k| k.finished()).transpose()?.flatten() {
                all.push(ran);
                continue;
            }
            match run(job) {
                Err(_) if stop() => break,
                ran => all.push(ran?),
            }
            if let (Some(kept), Some(ran)) = (&mut kept, all.last()) {
                kept.folder.add_trace(kept.at, &ran.trace)?;
                kept.add(&ran.row)?;
            }
        }
        return Ok(all);
    }
    run_jobs(engine, &study.jobs(), run, |ran: Result<Ran>| -> Result<()> {
        let ran = ran?;
        if let Some(kept) = &mut kept {
            kept.add(&ran.row)?;
        }
        all.push(ran);
        Ok(())
    })?;
    Ok(all)
}

/// The folder of `--out`: rows in one order, that of the command's runs. A run that cannot be repeated is
/// kept whole when it ends, first its samples, then its row, so that a second start of the command goes on
/// after it.
struct Kept {
    folder: Folder,
    /// Rows of an earlier start.
    earlier: Vec<Row>,
    /// Rows asked for or added.
    at: usize,
}

impl Kept {
    fn open(dir: &Path, engines: [&dyn Engine; 2], pairs: &[Pair]) -> Result<Self> {
        let studies = pairs.iter().flat_map(|(_, studies)| engines.into_iter().zip(studies));
        let (folder, earlier) = Folder::open(dir, &Contents::of_studies(studies.clone()), false)?;
        let total: usize = studies.map(|(_, study)| study.jobs().len()).sum();
        if !earlier.is_empty() {
            note(&format!("--out {}: {} of {total} runs are there", dir.display(), earlier.len()));
        }
        Ok(Self { folder, earlier, at: 0 })
    }

    /// The next run if an earlier start finished it.
    fn finished(&mut self) -> Result<Option<Ran>> {
        let Some(row) = self.earlier.get(self.at).cloned() else { return Ok(None) };
        let trace = self.folder.trace(self.at)?;
        self.at += 1;
        Ok(Some(Ran { row, trace }))
    }

    /// Adds a row, unless an earlier start did.
    fn add(&mut self, row: &Row) -> Result<()> {
        if self.earlier.get(self.at).is_none() {
            self.folder.row(row)?;
        }
        self.at += 1;
        Ok(())
    }
}

/// The caveat of a run in which packets were released too late.
fn late(row: &Row) -> Option<&String> {
    row.caveats.iter().find(|c| *c == INVALID)
}

/// The result of a cell in one line, with the figures that differ.
fn line(h: &Held) -> String {
    let figure = |f: &Figure| {
        let number = |x: Option<f64>| x.map_or("none".to_string(), words::number);
        let (low, high) = (number(f.theirs.map(|k| k.0)), number(f.theirs.map(|k| k.1)));
        format!("{}: {}, not {low} to {high}", f.name, number(f.ours))
    };
    let differs: Vec<String> = h.figures.iter().filter(|f| !f.agrees).map(figure).collect();
    let verdict = if h.passes() { "passes" } else { "differs" };
    let late = if h.caveats.is_empty() { "" } else { " (late)" };
    format!("{:<36}  {verdict}{late}  {}", h.cell.name, differs.join("; ")).trim_end().to_string()
}
