//! `slowstart sweep`: startups over regions of paths, with a store of results.

use crate::engine::{EngineArg, interrupt_of};
use crate::folder::{refuse_existing, write_new};
use crate::interrupt::Interrupted;
use crate::output::{self, note, print};
use crate::printable::printable;
use crate::row_output::{RowArgs, csv_cell};
use crate::table::{Align, Table};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use slowstart_study::columns::Cell;
use slowstart_study::decision::MARGIN;
use slowstart_study::diff;
use slowstart_study::record::Row;
use slowstart_study::stats::FEWEST_PAIRS;
use slowstart_study::words::{RECONSTRUCTED, number};
use slowstart_sweep::map::{self, Place};
use slowstart_sweep::part::{DAMAGED, reading};
use slowstart_sweep::plan::Plan;
use slowstart_sweep::query::{self, Answer, Filter, Query};
use slowstart_sweep::row::{SweepRow, flat};
use slowstart_sweep::run::{self, Shard};
use slowstart_sweep::store::{Holds, Store};
use slowstart_sweep::table::ParquetFile;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Readers of Parquet panic at some damage, which ends this process: such a part is refused as any other.
pub(crate) fn refuse_damage() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match reading() {
        Some(file) => {
            output::tell(&format!("{}: {DAMAGED}", file.display()));
            std::process::exit(2);
        }
        None => usual(panic),
    }));
}

/// Run startups over a region of paths, with a store of results that survives interruptions
///
/// STUDY is a study file with a table `axes`: lists, ranges and logarithmic ranges over any key of path,
/// stack, startup and workload; and perhaps `draws`, points at random. If you run it again, it computes only what
/// the store lacks. docs/guide/sweeps.md explains both.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  slowstart sweep scenarios/sweeps/geo.toml --out store
  slowstart sweep scenarios/sweeps/geo.toml --out store --shard 3/10
  slowstart sweep scenarios/sweeps/geo.toml --out quic --engine quic
  slowstart sweep status store
  slowstart sweep query store --where 'rate>=50Mbit' --group startup,rate --value completion_s
  slowstart sweep query store --group startup --baseline hystart
  slowstart sweep map store --x rate --y rtt

Exit status: 0, or 2 for bad input, or 130 after Ctrl-C (what is finished is kept)."
)]
pub(crate) struct Sweep {
    #[command(subcommand)]
    of_store: Option<OfStore>,
    /// The sweep, in TOML
    #[arg(required = true, value_name = "STUDY")]
    study: Option<PathBuf>,
    /// The folder of the store; an empty or missing folder becomes one. Several processes may use one store
    #[arg(long, required_unless_present = "count", value_name = "STORE")]
    out: Option<PathBuf>,
    /// Compute only part K of N, from 1 on, as a job of an array does
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// Print the number of runs and chunks, and compute nothing
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    engine: EngineArg,
}

#[derive(Subcommand)]
enum OfStore {
    /// Show how much of each sweep in a store is finished
    Status {
        /// The folder of the store
        store: PathBuf,
    },
    Query(QueryArgs),
    Map(MapArgs),
}

/// Filter and group the rows of a store
#[derive(Args)]
struct QueryArgs {
    /// The folder of the store
    store: PathBuf,
    /// Only rows that meet this, such as rate>=50Mbit or startup=search; may be given several times
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<String>,
    /// Columns of the answer, without --group [default: all]
    #[arg(long, value_delimiter = ',', value_name = "COLUMN")]
    columns: Vec<String>,
    /// Summarise rows that have the same values of these columns
    #[arg(long, value_delimiter = ',', value_name = "COLUMN")]
    group: Vec<String>,
    /// With --group: summarise these columns by the median with its 95 % interval (low, high), the mean, the least
    /// and the greatest value, and by how many runs have none
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", default_value = "completion_s")]
    value: Vec<String>,
    /// With --group startup,...: also the median difference from this startup, run by run, with its 95 % interval, in
    /// percent of times, rates and bytes
    #[arg(long, value_name = "STARTUP", requires = "group")]
    baseline: Option<String>,
    #[command(flatten)]
    rows: RowArgs,
}

/// Show which startup is first at each place of two axes, by how much, and what it loses
#[derive(Args)]
struct MapArgs {
    /// The folder of the store
    store: PathBuf,
    /// The axis of the columns
    #[arg(long)]
    x: String,
    /// The axis of the lines
    #[arg(long)]
    y: String,
    /// The column whose median is compared: the least is first, or the greatest where more is better, as of goodput
    #[arg(long, default_value = "completion_s")]
    value: String,
    /// Only rows that meet this; may be given several times
    #[arg(long = "where", value_name = "FILTER")]
    filters: Vec<String>,
    /// Write the map as a page with a heat map
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Sweep {
    pub(crate) fn main(self) -> Result<()> {
        match self.of_store {
            Some(OfStore::Status { store }) => status(&store),
            Some(OfStore::Query(q)) => q.main(),
            Some(OfStore::Map(m)) => m.main(),
            None => {
                let study = self.study.context("sweep: found no study")?;
                let plan = Plan::load(&study, self.engine.engine.as_deref())?;
                if self.count {
                    return print(&format!("{} runs in {} chunks", plan.len(), plan.chunks()));
                }
                let out = self.out.context("sweep: found no --out")?;
                sweep(&plan, &out, self.shard.as_deref())
            }
        }
    }
}

fn sweep(plan: &Plan, out: &Path, shard: Option<&str>) -> Result<()> {
    let shard = match shard {
        None => Shard::ALL,
        Some(text) => Shard::parse(text).with_context(|| {
            format!("--shard: found {text:?}, expected K/N with K from 1 to N, such as 3/10")
        })?,
    };
    let store = Store::create(out)?;
    let interrupt = interrupt_of(&*plan.engine)?;
    let bar = output::progress(run::runs_of(plan, shard) as u64);
    #[allow(clippy::disallowed_methods, reason = "for the note at the end: no result depends on it")]
    let started = Instant::now();
    let each = |n: usize, computed: bool| {
        bar.inc(n as u64);
        if !computed && n > 0 {
            // What was there says nothing about the time that is left.
            bar.reset_eta();
        }
        interrupt.signal().is_none()
    };
    let report = run::run(plan, &store, shard, rayon::current_num_threads(), &each);
    bar.finish_and_clear();
    interrupt.stopped();
    let report = report?;
    let manifest = store.manifest()?;
    note(&format!(
        "{}: {} runs computed in {:.1} s; {} rows in the store",
        out.display(),
        report.computed,
        started.elapsed().as_secs_f64(),
        manifest.rows
    ));
    match interrupt.signal() {
        Some(signal) if !report.finished => Err(Interrupted { signal, finished: None }.into()),
        _ => Ok(()),
    }
}

fn status(dir: &Path) -> Result<()> {
    let store = Store::open(dir)?;
    let (manifest, journalled) = (store.manifest()?, store.journalled()?);
    for (id, started) in store.sweeps()? {
        let parts = manifest.parts.iter().filter(|p| p.name.starts_with(&id)).count();
        let state = if parts >= started.chunks { "finished" } else { "not finished" };
        print(&format!(
            "{id}: {state}, {} runs, {parts} of {} chunks in parts",
            started.runs, started.chunks
        ))?;
    }
    let bytes: u64 = manifest.parts.iter().map(|p| p.bytes).sum();
    print(&format!(
        "{} rows in {} parts of {} kB; {journalled} rows in journals",
        number(manifest.rows as f64),
        manifest.parts.len(),
        number(bytes as f64 / 1e3)
    ))
}

fn filters(written: &[String]) -> Result<Vec<Filter>> {
    Ok(written.iter().map(|f| Filter::parse(f)).collect::<Result<_, _>>()?)
}

/// All rows of a store of one sweep.
pub(crate) fn rows(dir: &Path) -> Result<Vec<Row>> {
    let store = Store::open(dir)?;
    let name = dir.display().to_string();
    if store.holds() != Holds::Sweeps {
        bail!("{name}: found a store of captures, expected one of sweeps");
    }
    let sweeps = store.sweeps()?.len();
    if sweeps != 1 {
        bail!(
            "{name}: found {sweeps} sweeps, expected one; `slowstart sweep query {name} --where ... --json` \
             prints the rows of one"
        );
    }
    let answer = query::query(&store, &Query::default())?;
    let row =
        |cells: &Vec<Cell>| SweepRow::read(&answer.columns, cells).map(|r| diff::of_sweep(r.row, &r.axis));
    let rows = answer.rows.iter().map(row).collect::<Result<_, _>>().context("a row of the store")?;
    Ok(diff::checked(&name, rows)?)
}

impl QueryArgs {
    fn main(self) -> Result<()> {
        if !self.group.is_empty() && !self.columns.is_empty() {
            bail!(
                "--columns: found it with --group, whose columns are those of the groups; expected one of the two"
            );
        }
        self.rows.parquet.as_deref().map_or(Ok(()), refuse_existing).context("--parquet")?;
        let store = Store::open(&self.store)?;
        let filters = filters(&self.filters)?;
        let q = Query {
            filters,
            columns: self.columns,
            group: self.group,
            values: self.value,
            baseline: self.baseline,
        };
        let answer = query::query(&store, &q)?;
        if let Some(file) = &self.rows.parquet {
            let write = || -> Result<()> {
                let mut out = ParquetFile::create(file, answer.columns.clone())?;
                for row in &answer.rows {
                    out.write(&flat(&answer.columns, row).into())?;
                }
                Ok(out.finish()?)
            };
            write().with_context(|| format!("--parquet {}", file.display()))?;
        }
        if self.rows.json {
            let whole = store.holds() == Holds::Sweeps && q.group.is_empty() && q.columns.is_empty();
            return answer.rows.iter().try_for_each(|cells| {
                let line = if whole {
                    serde_json::to_string(
                        &SweepRow::read(&answer.columns, cells).context("a row of the store")?,
                    )
                } else {
                    serde_json::to_string(&flat(&answer.columns, cells))
                };
                print(&line?)
            });
        }
        if self.rows.csv {
            let mut out = csv::Writer::from_writer(io::stdout());
            out.write_record(answer.columns.iter().map(|c| &c.name))?;
            for row in &answer.rows {
                out.write_record(row.iter().map(csv_cell))?;
            }
            return Ok(out.flush()?);
        }
        let whole = q.group.is_empty() && q.columns.is_empty() && io::stdout().is_terminal();
        show(&if whole { that_fit(&answer, output::width()) } else { answer })
    }
}

/// Longest cell that a person reads in a table.
const LONGEST_CELL: usize = 24;

/// The columns of an answer in which its lines differ, as many as fit, in place of a hundred that do not.
fn that_fit(answer: &Answer, width: usize) -> Answer {
    let of = |i: usize| answer.rows.iter().map(move |row| text(&row[i]));
    let widest = |i: usize| {
        let lengths = of(i).map(|t| t.chars().count());
        lengths.chain([answer.columns[i].name.chars().count()]).max().unwrap_or(0)
    };
    let differ = |i: usize| answer.rows.len() < 2 || of(i).any(|t| t != text(&answer.rows[0][i]));
    let mut room = width;
    let all = answer.columns.len();
    let mut kept = Vec::new();
    for i in (0..all).filter(|i| differ(*i) && widest(*i) <= LONGEST_CELL) {
        let takes = widest(i) + 2;
        if takes > room {
            break;
        }
        room -= takes;
        kept.push(i);
    }
    note(&format!("{} of {all} columns; --columns names others, and --json prints all", kept.len()));
    let columns = kept.iter().map(|i| answer.columns[*i].clone()).collect();
    let rows = answer.rows.iter().map(|row| kept.iter().map(|i| row[*i].clone()).collect()).collect();
    Answer { columns, rows, read: answer.read }
}

/// Lines of an answer on the terminal.
const MOST_LINES: usize = 100;

/// A number with three figures, or text.
fn text(cell: &Cell) -> String {
    match cell {
        Cell::Number(x) => number(*x),
        other => printable(&other.text()).into_owned(),
    }
}

/// Prints a table of text, aligned to the right.
fn print_table(headers: Vec<String>, rows: Vec<Vec<String>>) -> Result<()> {
    let table = Table {
        alignments: vec![Align::Right; headers.len()],
        headers,
        rows: rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect(),
    };
    // A pipe gets a line for each row.
    let width = io::stdout().is_terminal().then(|| u16::try_from(output::width()).ok()).flatten();
    print(table.render(output::color(), width).trim_end())
}

fn show(answer: &Answer) -> Result<()> {
    let headers = answer.columns.iter().map(|c| c.name.clone()).collect();
    let rows = answer.rows.iter().take(MOST_LINES).map(|row| row.iter().map(text).collect());
    print_table(headers, rows.collect())?;
    if answer.rows.len() > MOST_LINES {
        note(&format!("{} more lines; --csv, --json and --parquet have all", answer.rows.len() - MOST_LINES));
    }
    Ok(())
}

impl MapArgs {
    fn main(self) -> Result<()> {
        self.html.as_deref().map_or(Ok(()), refuse_existing).context("--html")?;
        let store = Store::open(&self.store)?;
        let places = map::map(&store, &self.x, &self.y, &self.value, filters(&self.filters)?)?;
        if places.is_empty() {
            bail!("map: found no place at which a startup has {}, expected at least one", self.value);
        }
        if let Some(file) = &self.html {
            let page = map::html(&places, &self.x, &self.y, &self.value);
            write_new(file, &page).context("--html")?;
        }
        let (xs, ys) = map::axes(&places);
        let name = |axis: &str, value: &Cell| printable(&map::heading(axis, value)).into_owned();
        let mut headers = vec![format!("{} \\ {}", self.y, self.x)];
        headers.extend(xs.iter().map(|x| name(&self.x, x)));
        let line = |y: &Cell| {
            let place = |x: &Cell| places.iter().find(|p| p.x == *x && p.y == *y);
            let mut line = vec![name(&self.y, y)];
            line.extend(xs.iter().map(|x| place(x).map_or(String::new(), describe)));
            line
        };
        print_table(headers, ys.iter().map(line).collect())?;
        if !output::quiet() {
            let legend = format!(
                "first startup, by the median of {}; how many times as good as the second it is; packets that the first loses in startup. A tie: medians \
                 within {} %. never: the number of runs without a value, which count as the worst. ?: fewer than {FEWEST_PAIRS} runs, \
                 which decide nothing. {RECONSTRUCTED}",
                self.value,
                number(100.0 * MARGIN)
            );
            print(&output::wrap(&legend, 2))?;
        }
        Ok(())
    }
}

/// Names of a tie that a cell has room for.
const TIED: usize = 2;

fn describe(p: &Place) -> String {
    let stalled = printable(&map::stalled(p)).into_owned();
    let Some(first) = p.first() else { return stalled };
    let after = if stalled.is_empty() { stalled } else { format!("; {stalled}") };
    let unsure = if p.is_decided() { "" } else { " ?" };
    let tied = p.tied();
    if tied.len() > 1 {
        let names: Vec<&str> = tied.iter().take(TIED).map(|c| c.name.as_str()).collect();
        let more = tied.len() - names.len();
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        return format!("tie: {}{more}{unsure}{after}", printable(&names.join(", ")));
    }
    let over = p.over().map_or(String::new(), |o| format!(" {o:.2}x"));
    let lost = first.lost.map_or("?".to_string(), number);
    format!("{}{over}, {lost}{unsure}{after}", printable(&first.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::columns::{Column, Kind};

    /// The first column is the same in both lines, and the third may not fit beside the second.
    #[test]
    fn a_terminal_gets_the_columns_that_differ_and_fit() {
        let column = |name: &str, kind| Column::new(name, kind, "");
        let columns =
            vec![column("same", Kind::Integer), column("n", Kind::Integer), column("long", Kind::Text)];
        let row = |n: u64, long: &str| vec![Cell::Integer(1), Cell::Integer(n), Cell::Text(long.into())];
        let answer = Answer { columns, rows: vec![row(1, "abcdefghij"), row(2, "klmnopqrst")], read: 2 };
        let names =
            |width| -> Vec<String> { that_fit(&answer, width).columns.into_iter().map(|c| c.name).collect() };
        assert_eq!(names(15), ["n", "long"]);
        assert_eq!(names(14), ["n"]);
    }
}
