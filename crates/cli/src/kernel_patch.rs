//! `slowstart kernel-patch`: two kernels over the same cases.

use crate::engine::interrupt_of_all;
use crate::folder::{Contents, Folder};
use crate::interrupt::{Interrupt, Signal};
use crate::league::named;
use crate::output::{self, note, print};
use crate::run_args::check_finished;
use anyhow::{Result, bail};
use clap::Args;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use slowstart_league::population::Case;
use slowstart_league::twins::{
    self, ALL_RECEIVED, Compared, MEASURES, Parting, Terms, Twin, agree, compared, reasons,
};
use slowstart_study::engines::{Engine, EngineError};
use slowstart_study::record::Row;
use slowstart_study::scenario::Study;
use slowstart_study::words::plural;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

/// Compare two Linux kernels, such as before and after a patch, over the same paths
///
/// OLD and NEW are kernels that `make uml` built, or any two engines at virtual time (see `slowstart list engines`): `sim` beside
/// a kernel says where the simulator differs from it. Both meet the same paths with the same random numbers. The table is plain
/// text, for a cover letter: medians, the paired difference with its 95 % interval, and on how many paths NEW is better, worse
/// or the same; why slow start ended; and for each path on which windows differ the first acknowledgement after which they do.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart kernel-patch ./linux-before ./linux-after
  slowstart kernel-patch ./linux-before ./linux-after --control reno --population leo,lte --cases 50
  slowstart kernel-patch sim ./linux --cases 77 --out simulator-and-6.12

The same command goes on with the folder of --out after it was ended or killed, unless a kernel was built again.

Exit status: 0 if all paths were run, whatever they say; 2 for bad input; 130 after Ctrl-C, with the paths that were run.")]
pub(crate) struct KernelPatch {
    /// The kernel, or engine, that NEW is compared with
    old: String,
    /// The other one
    new: String,
    /// The congestion control, by its name in Linux
    #[arg(long, default_value = "cubic")]
    control: String,
    /// Only these populations of the league, separated by commas [default: all whose cases have one flow]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    population: Vec<String>,
    /// Cases of each population
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    cases: u32,
    /// The seed of the cases
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Bytes of each transfer
    #[arg(long, default_value = "10MB")]
    size: String,
    /// How many of the paths on which windows differ are listed
    #[arg(long, value_name = "N", default_value = "10")]
    list: usize,
    /// Print the tables as Markdown, as for a pull request, in place of plain text
    #[arg(long)]
    markdown: bool,
    /// Write the pairs of runs as they end (results.jsonl), the table (table.txt, or table.md), and the rows of both (old.jsonl,
    /// new.jsonl) to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// An engine by its name, or by the file of a kernel.
fn engine(name: &str) -> Result<Box<dyn Engine>> {
    let is_file = !name.contains(':') && (name.contains('/') || std::path::Path::new(name).is_file());
    let engine = slowstart_engines::named(&if is_file { format!("linux:{name}") } else { name.to_string() })?;
    if engine.is_real_clock() {
        bail!("{name}: expected an engine at virtual time, such as a kernel that `make uml` built");
    }
    Ok(engine)
}

/// The runs of a case as the folder keeps them.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Which of the command's cases it is.
    case: usize,
    rows: [Row; 2],
    parting: Option<Parting>,
}

/// The folder of `--out`, and the pairs of runs that are done.
struct Pairs {
    folder: Option<Folder>,
    done: BTreeMap<usize, Twin>,
}

impl Pairs {
    /// Opens the folder, if one is asked for, with what an earlier start of this command finished there.
    fn open(dir: Option<&Path>, engines: [&dyn Engine; 2], terms: &Terms, cases: &[Case]) -> Result<Self> {
        let Some(dir) = dir else { return Ok(Self { folder: None, done: BTreeMap::new() }) };
        let studies = cases.iter().flat_map(|c| engines.map(|e| twins::study(e, terms, c).map(|s| (e, s))));
        let studies: Vec<(&dyn Engine, Study)> = studies.collect::<Result<_, _>>()?;
        let contents = Contents::of_studies(studies.iter().map(|(e, s)| (*e, s)));
        let (folder, kept) = Folder::open::<Kept>(dir, &contents, false)?;
        let done: BTreeMap<usize, Twin> = kept
            .into_iter()
            .filter_map(|k| {
                let case = cases.get(k.case)?.clone();
                Some((k.case, Twin { case, rows: k.rows, parting: k.parting }))
            })
            .collect();
        if !done.is_empty() {
            note(&format!("--out {}: {} of {} paths are there", dir.display(), done.len(), cases.len()));
        }
        Ok(Self { folder: Some(folder), done })
    }

    fn add(&mut self, case: usize, twin: Twin) -> Result<()> {
        if let Some(folder) = &mut self.folder {
            folder.row(&Kept { case, rows: twin.rows.clone(), parting: twin.parting.clone() })?;
        }
        self.done.insert(case, twin);
        Ok(())
    }
}

/// Runs a case on both engines; `None` if a signal came meanwhile.
fn run(engines: [&dyn Engine; 2], terms: &Terms, case: &Case, signal: &Signal) -> Result<Option<Twin>> {
    let stop = || signal.get().is_some();
    if stop() {
        return Ok(None);
    }
    match twins::twin(engines, terms, case, &stop) {
        Ok(twin) => Ok(Some(twin)),
        Err(_) if stop() => Ok(None),
        Err(e) => Err(e.into()),
    }
}

impl KernelPatch {
    pub(crate) fn main(self) -> Result<()> {
        let engines: [Arc<dyn Engine>; 2] = [engine(&self.old)?.into(), engine(&self.new)?.into()];
        let both = [&*engines[0], &*engines[1]];
        let mut terms =
            Terms { control: self.control.clone(), size: self.size.clone(), set: BTreeMap::new() };
        let (cases, mut stacks) = self.cases(both, &terms)?;
        terms.set = stacks.iter().flat_map(|stack| twins::settings(stack)).collect();
        for (engine, stack) in both.iter().zip(&mut stacks) {
            *stack = twins::study(*engine, &terms, &cases[0])?.profile_label;
        }
        let mut pairs = Pairs::open(self.out.as_deref(), both, &terms, &cases)?;
        let interrupt = interrupt_of_all(both.into_iter())?;
        let of = cases.len();
        run_all(engines, terms, cases, &mut pairs, &interrupt)?;
        let all: Vec<Twin> = pairs.done.into_values().collect();
        if all.is_empty() {
            return check_finished(&interrupt, 0, of);
        }
        let table = self.table(&all, &stacks);
        print(table.trim_end())?;
        if let Some(folder) = pairs.folder {
            folder.text(if self.markdown { "table.md" } else { "table.txt" }, &table)?;
            for (i, name) in ["old.jsonl", "new.jsonl"].iter().enumerate() {
                // Cases may have the same path, and differ in their random numbers.
                let rows = all.iter().zip(0..).map(|(t, run)| Row { run, ..t.rows[i].clone() });
                folder.lines(name, rows)?;
            }
        }
        check_finished(&interrupt, all.len(), of)
    }

    /// The cases that both engines can run, and the stacks of both; says what was left out, and why.
    fn cases(&self, engines: [&dyn Engine; 2], terms: &Terms) -> Result<(Vec<Case>, [String; 2])> {
        let populations = named(&self.population)?;
        let (mut all, mut left_out, mut stacks) = (Vec::new(), BTreeMap::new(), None);
        for case in populations.iter().flat_map(|p| twins::cases(p, self.seed, self.cases)) {
            let [old, new] = engines.map(|e| twins::study(e, terms, &case));
            match (old, new) {
                (Ok(old), Ok(new)) => {
                    stacks.get_or_insert([old.profile_label, new.profile_label]);
                    all.push(case);
                }
                (Err(EngineError::Refused(why)), _) | (_, Err(EngineError::Refused(why))) => {
                    if why.key == "startup" {
                        return Err(EngineError::Refused(why).into());
                    }
                    *left_out.entry((case.population, why.to_string())).or_insert(0) += 1;
                }
                (Err(e), _) | (_, Err(e)) => return Err(e.into()),
            }
        }
        for ((population, why), n) in left_out {
            note(&format!("left out, {n} cases of {population}: {why}"));
        }
        match stacks {
            Some(stacks) => Ok((all, stacks)),
            None => bail!("--population {}: no case that both can run", self.population.join(",")),
        }
    }

    fn table(&self, all: &[Twin], [old, new]: &[String; 2]) -> String {
        let mut out = String::new();
        let item = if self.markdown { "- " } else { "" };
        let _ = writeln!(out, "{item}old: {}: {old}\n{item}new: {}: {new}", self.old, self.new);
        if self.markdown {
            out.push('\n');
        }
        let populations: std::collections::BTreeSet<&str> =
            all.iter().map(|t| t.case.population.as_str()).collect();
        let _ = writeln!(
            out,
            "{}, {} of one flow over {} of {} (seed {})\n",
            self.control,
            self.size,
            plural(all.len() as u64, "path"),
            plural(populations.len() as u64, "population"),
            self.seed
        );
        out += &self.headers("median");
        let rows: Vec<Compared> = MEASURES.iter().filter_map(|m| compared(all, *m)).collect();
        for c in &rows {
            out += &self.line(c.measure.name, c);
        }
        if self.markdown {
            out.push('\n');
        }
        for c in rows.iter().filter(|c| c.one_has > 0) {
            let _ = writeln!(out, "{}: on {} paths one of both has none", c.measure.name, c.one_has);
        }
        if populations.len() > 1 {
            let _ = writeln!(out, "\n{} by population", ALL_RECEIVED.name);
            if self.markdown {
                out = out + "\n" + &self.headers("population");
            }
            for population in populations {
                let of: Vec<Twin> = all.iter().filter(|t| t.case.population == population).cloned().collect();
                if let Some(c) = compared(&of, ALL_RECEIVED) {
                    out += &self.line(population, &c);
                }
            }
        }
        // What follows has no columns.
        let fence = if self.markdown { "\n```" } else { "" };
        let _ = writeln!(out, "{fence}\nslow start ended by            old -> new");
        let mut pairs: Vec<_> = reasons(all).into_iter().collect();
        pairs.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        for ((a, b), n) in pairs {
            let _ = writeln!(out, "{n:>7}  {a} -> {b}{}", if a == b { "" } else { "   (changed)" });
        }
        let same = all.iter().filter(|t| agree(t)).count();
        let parted: Vec<(&Twin, &Parting)> =
            all.iter().filter_map(|t| Some((t, t.parting.as_ref()?))).collect();
        let _ = writeln!(out, "\nsame in every figure (1 packet, 1 ms): {same} of {}", all.len());
        let _ = writeln!(
            out,
            "same windows after every acknowledgement: {} of {}",
            all.len() - parted.len(),
            all.len()
        );
        if !parted.is_empty() && self.list > 0 {
            let _ = writeln!(out, "\nwindows part first after (segments; old | new):");
        }
        for (t, p) in parted.iter().take(self.list) {
            let [a, b] = p.states.map(|(time, cwnd, ssthresh)| {
                let ssthresh = ssthresh.map_or("-".to_string(), |s| format!("{s:.0}"));
                format!("{time:.6} s cwnd {cwnd:.0} ssthresh {ssthresh}")
            });
            let _ = writeln!(out, "  {} {}: ACK {}: {a} | {b}", t.case.population, t.case.number, p.ack);
            let _ = writeln!(out, "    {} --seed {}", t.case.path, t.case.seed);
        }
        if parted.len() > self.list {
            let _ = writeln!(out, "  and on {} more paths (--list)", parted.len() - self.list);
        }
        out + fence.trim_start()
    }

    /// The names of the columns.
    fn headers(&self, first: &str) -> String {
        let rest = ["old", "new", "difference (95 %)", "better", "worse", "same"].map(str::to_string);
        let rule = if self.markdown { "|---|--:|--:|--:|--:|--:|--:|\n" } else { "" };
        self.cells(first, &rest) + rule
    }

    /// A line of a table.
    fn cells(&self, first: &str, [old, new, difference, better, worse, same]: &[String; 6]) -> String {
        if self.markdown {
            return format!("| {first} | {old} | {new} | {difference} | {better} | {worse} | {same} |\n");
        }
        format!("{first:<30} {old:>9} {new:>9} {difference:>24} {better:>6} {worse:>6} {same:>6}\n")
    }

    /// A figure in one line.
    fn line(&self, name: &str, c: &Compared) -> String {
        let number = |x: f64| if c.measure.slack < 1.0 { format!("{x:.3}") } else { format!("{x:.0}") };
        let signed = |x: f64| if c.measure.slack < 1.0 { format!("{x:+.3}") } else { format!("{x:+.0}") };
        let d = &c.difference;
        let difference = format!("{} ({} to {})", signed(d.mid), signed(d.low), signed(d.high));
        let (better, worse) = match c.measure.less_is_better() {
            Some(true) => (c.less.to_string(), c.more.to_string()),
            Some(false) => (c.more.to_string(), c.less.to_string()),
            // Neither is better: more and less.
            None => (format!("+{}", c.more), format!("-{}", c.less)),
        };
        let [old, new] = c.medians.map(number);
        self.cells(name, &[old, new, difference, better, worse, c.same.to_string()])
    }
}

/// Runs the cases that are not done, until a signal comes.
fn run_all(
    engines: [Arc<dyn Engine>; 2],
    terms: Terms,
    cases: Vec<Case>,
    pairs: &mut Pairs,
    interrupt: &Interrupt,
) -> Result<()> {
    let left: Vec<(usize, Case)> =
        cases.into_iter().enumerate().filter(|(n, _)| !pairs.done.contains_key(n)).collect();
    let bar = output::progress(left.len() as u64);
    let (ran, results) = mpsc::channel();
    let signal = interrupt.received();
    thread::spawn(move || {
        left.par_iter().with_max_len(1).for_each(|(n, case)| {
            // An error of the receiver: nobody waits any more.
            drop(ran.send((*n, run([&*engines[0], &*engines[1]], &terms, case, &signal))));
        });
    });
    for (n, twin) in results {
        if let Some(twin) = twin? {
            pairs.add(n, twin)?;
            bar.inc(1);
        }
    }
    interrupt.stopped();
    bar.finish_and_clear();
    Ok(())
}
