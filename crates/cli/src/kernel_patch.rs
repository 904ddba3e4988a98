//! `slowstart kernel-patch`: two kernels over the same cases.

use crate::folder::Folder;
use crate::league::named;
use crate::output::{self, note, print};
use anyhow::{Result, bail};
use clap::Args;
use rayon::prelude::*;
use slowstart_league::population::Case;
use slowstart_league::twins::{
    self, ALL_RECEIVED, Compared, MEASURES, Parting, Terms, Twin, agree, compared, reasons,
};
use slowstart_study::engines::{Engine, EngineError};
use slowstart_study::record::Row;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

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

Exit status: 0 if all paths were run, whatever they say; 2 for bad input.")]
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
    /// Write the table (table.txt), and the rows of both (old.jsonl, new.jsonl), to this folder
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

impl KernelPatch {
    pub(crate) fn main(self) -> Result<()> {
        let (old, new) = (engine(&self.old)?, engine(&self.new)?);
        let engines = [&*old, &*new];
        let terms = Terms { control: self.control.clone(), size: self.size.clone() };
        let folder = self.out.as_deref().map(Folder::create).transpose()?;
        let (cases, stacks) = self.cases(engines, &terms)?;
        let bar = output::progress(cases.len() as u64);
        let run = |case: &Case| {
            let twin = twins::twin(engines, &terms, case, &|| false);
            bar.inc(1);
            twin
        };
        let all: Vec<Twin> = cases.par_iter().with_max_len(1).map(run).collect::<Result<_, EngineError>>()?;
        bar.finish_and_clear();
        let table = self.table(&all, &stacks);
        print(table.trim_end())?;
        let Some(folder) = folder else { return Ok(()) };
        folder.text("table.txt", &table)?;
        for (i, name) in ["old.jsonl", "new.jsonl"].iter().enumerate() {
            // Cases may have the same path, and differ in their random numbers.
            let numbered = all.iter().zip(0..).map(|(t, run)| Row { run, ..t.rows[i].clone() });
            let rows = numbered.map(|row| serde_json::to_string(&row));
            let rows = rows.collect::<Result<Vec<_>, _>>()?;
            folder.text(name, &(rows.join("\n") + "\n"))?;
        }
        Ok(())
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
        let _ = writeln!(out, "old: {}: {old}\nnew: {}: {new}", self.old, self.new);
        let populations: std::collections::BTreeSet<&str> =
            all.iter().map(|t| t.case.population.as_str()).collect();
        let _ = writeln!(
            out,
            "{}, {} of one flow over {} paths of {} populations (seed {})\n",
            self.control,
            self.size,
            all.len(),
            populations.len(),
            self.seed
        );
        let _ = writeln!(
            out,
            "{:<30} {:>9} {:>9} {:>24} {:>6} {:>6} {:>6}",
            "median", "old", "new", "difference (95 %)", "better", "worse", "same"
        );
        let rows: Vec<Compared> = MEASURES.iter().filter_map(|m| compared(all, *m)).collect();
        for c in &rows {
            let _ = writeln!(out, "{}", line(c.measure.name, c));
        }
        for c in rows.iter().filter(|c| c.one_has > 0) {
            let _ = writeln!(out, "{}: on {} paths one of both has none", c.measure.name, c.one_has);
        }
        if populations.len() > 1 {
            let _ = writeln!(out, "\n{} by population", ALL_RECEIVED.name);
            for population in populations {
                let of: Vec<Twin> = all.iter().filter(|t| t.case.population == population).cloned().collect();
                if let Some(c) = compared(&of, ALL_RECEIVED) {
                    let _ = writeln!(out, "{}", line(population, &c));
                }
            }
        }
        let _ = writeln!(out, "\nslow start ended by            old -> new");
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
        out
    }
}

/// A figure in one line.
fn line(name: &str, c: &Compared) -> String {
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
    format!("{name:<30} {old:>9} {new:>9} {difference:>24} {better:>6} {worse:>6} {:>6}", c.same)
}
