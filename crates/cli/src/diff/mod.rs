//! `slowstart diff`: two results beside each other.

use crate::output::{color, print, print_verdict, quiet, width, wrap};
use crate::printable::printable;
use crate::table::{Align, Cell, Table, Tone};
use anyhow::{Result, bail};
use clap::Args;
use slowstart_study::diff::{self, Is, Outcome, by_path, middle};
use slowstart_study::measures::Measure;
use slowstart_study::record::Row;
use slowstart_study::stats::{FEWEST_PAIRS, Median};
use slowstart_study::summary::{Summary, summarise};
use slowstart_study::words::{number, signed, spread};
use std::path::{Path, PathBuf};

/// Compare two results, startup by startup: before and after a change, or the simulator and the kernel
///
/// Results are matched by path and startup, and their runs by the random seed. B is worse if it takes longer
/// (at 95 % confidence, by the median or in more runs than the other way round), does not complete where A does, or
/// loses more packets or waits longer in the queue in more runs than the other way round. If no runs have the
/// same seeds, the 95 % intervals of the medians are compared, and those of the shares of runs that complete and
/// that lose packets. A time or goodput that differs by less than the margin counts as equal. Fewer than six
/// valid runs decide nothing, and neither do other sizes or applications.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart diff before after
  slowstart diff simulator/results.jsonl kernel/results.jsonl
  slowstart diff main branch --json
  slowstart diff monday/store tuesday/store

Exit status: 0 if nothing is worse, 1 if a startup is worse or is only in A (with --any: if anything
differs), 2 for bad input or if nothing is worse and something cannot be compared.")]
pub(crate) struct Diff {
    /// A folder that `--out` wrote, of one path or several, the store of a sweep, or a file of rows that
    /// `--json` printed
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The result to compare with A
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Ignore differences below this many percent
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = crate::run_args::margin)]
    margin: f64,
    /// Status 1 for any difference: what is better, and what is only in B, too
    #[arg(long)]
    any: bool,
    /// Print a JSON object on a line for each startup of each path, and nothing else
    #[arg(long)]
    json: bool,
}

/// How many startups of all paths are what.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Count {
    compared: usize,
    better: usize,
    worse: usize,
    uncertain: usize,
    one_sided: usize,
    too_few: usize,
    unlike: usize,
    missing: usize,
    new: usize,
}

impl Count {
    fn add(&mut self, is: Is) {
        self.compared += 1;
        self.better += usize::from(is == Is::Better);
        self.worse += usize::from(is == Is::Worse);
        self.uncertain += usize::from(is == Is::Uncertain);
        self.one_sided += usize::from(is == Is::OneSided);
        self.too_few += usize::from(is == Is::TooFew);
        self.unlike += usize::from(is == Is::Unlike);
    }

    fn sentence(&self) -> String {
        let mut parts =
            vec![format!("{} of {} startups and paths are worse in B", self.worse, self.compared)];
        for (n, what) in [
            (self.better, "better"),
            (self.uncertain, "not certain"),
            (self.one_sided, "with a measure that only one has"),
            (self.too_few, "not compared, with too few runs"),
            (self.unlike, "not compared, with another workload"),
            (self.missing, "only in A"),
            (self.new, "only in B"),
        ] {
            parts.extend((n > 0).then(|| format!("{n} {what}")));
        }
        parts.join("; ") + "."
    }
}

fn exit(s: &Summary) -> &'static str {
    s.classes().first().map_or("-", |(c, _)| c.how())
}

fn cells(a: &Summary, b: &Summary, o: &Outcome) -> Vec<Cell> {
    let typical = |s: &Summary| -> String {
        middle(s, o.by).map_or("-".into(), |median| {
            let shown = spread(&median);
            shown.range.map_or(shown.mid.clone(), |r| format!("{} ({r})", shown.mid))
        })
    };
    let arrow = |x: String, y: String| if x == y { x } else { format!("{x} -> {y}") };
    let lost = |s: &Summary| s.lost(|m| spread(m).mid);
    let percent = o.percent.map_or("-".into(), |m: Median| {
        let round = |x: f64| signed((x * 10.0).round() / 10.0);
        if m.low.total_cmp(&m.high).is_eq() {
            round(m.mid)
        } else {
            format!("{} ({} to {})", round(m.mid), round(m.low), round(m.high))
        }
    });
    vec![
        a.label.clone().into(),
        match o.by {
            Measure::ObjectMedian => "s an object",
            by => by.entry().unit.sign(),
        }
        .into(),
        typical(a).into(),
        typical(b).into(),
        percent.into(),
        Cell {
            text: o.words(),
            tone: match o.is {
                Is::Better => Tone::Good,
                Is::Worse => Tone::Bad,
                _ => Tone::Plain,
            },
        },
        arrow(exit(a).into(), exit(b).into()).into(),
        arrow(lost(a), lost(b)).into(),
    ]
}

fn table(rows: Vec<Vec<Cell>>) -> Table {
    let headers = ["startup", "", "A", "B", "%", "B is", "exit", "lost"].map(String::from).to_vec();
    let mut alignments = vec![Align::Left; 8];
    for right in [2, 3, 4, 7] {
        alignments[right] = Align::Right;
    }
    Table { headers, rows, alignments }
}

/// The rows of a result, or of a store of a sweep.
fn rows(from: &Path) -> Result<Vec<Row>> {
    #[cfg(feature = "sweep")]
    if from.is_dir() && slowstart_sweep::store::is_store(from) {
        return crate::sweep::rows(from);
    }
    Ok(diff::rows(from)?)
}

impl Diff {
    /// True if nothing is worse, or with `--any` if nothing differs.
    pub(crate) fn main(&self) -> Result<bool> {
        let (a, b) = (by_path(rows(&self.a)?), by_path(rows(&self.b)?));
        let mut count = Count::default();
        let title = format!("A: {}, B: {}", self.a.display(), self.b.display());
        self.say(|| wrap(&printable(&title), 2))?;
        for (path, rows) in &a {
            let theirs = b.iter().find(|(p, _)| p == path).map_or(&[][..], |(_, rows)| rows);
            self.path(path, rows, theirs, &mut count)?;
        }
        for (path, rows) in b.iter().filter(|(path, _)| !a.iter().any(|(p, _)| p == path)) {
            self.path(path, &[], rows, &mut count)?;
        }
        if !quiet() {
            self.say(|| {
                let text = format!(
                    "Medians over runs, and 95 % intervals. %: B against A, run by run; within {} %, with the whole interval, is no difference. lost: \
                     packets lost in startup; (2/12): in 2 of 12 runs. same: every run has the same figures.",
                    number(100.0 * self.margin)
                );
                format!("\n{}", wrap(&text, 2))
            })?;
        }
        self.say(String::new)?;
        if !self.json {
            print_verdict(&count.sentence())?;
        }
        if count.compared == 0 {
            bail!("found no startup and path that both have, expected one or more");
        }
        let worse = count.worse + count.missing > 0;
        if worse || self.any && count.better + count.new + count.one_sided > 0 {
            return Ok(false);
        }
        if count.too_few > 0 {
            bail!(
                "{} of {} cannot be compared: expected {FEWEST_PAIRS} valid runs or more",
                count.too_few,
                count.compared
            );
        }
        if count.unlike > 0 {
            bail!(
                "{} of {} cannot be compared: expected transfers of the same size, or the same application",
                count.unlike,
                count.compared
            );
        }
        Ok(true)
    }

    /// Prints text, unless JSON is printed.
    fn say(&self, text: impl FnOnce() -> String) -> Result<()> {
        if self.json { Ok(()) } else { print(&text()) }
    }

    /// One path: `a` or `b` is empty if the path is in one result only.
    fn path(&self, path: &str, a: &[Row], b: &[Row], count: &mut Count) -> Result<()> {
        let (all_a, all_b) = (summarise(a), summarise(b));
        if self.json {
            for line in diff::lines(path, a, b, self.margin) {
                print(&serde_json::to_string(&line)?)?;
            }
        }
        let find = |all: &'_ [Summary], label: &str| all.iter().position(|s| s.label == label);
        let (mut lines, mut notes) = (Vec::new(), Vec::new());
        for x in &all_a {
            let Some(y) = find(&all_b, &x.label).map(|i| &all_b[i]) else { continue };
            let outcome = Outcome::new(x, y, self.margin);
            count.add(outcome.is);
            notes.extend(outcome.note(x, y));
            lines.push(cells(x, y, &outcome));
        }
        for (mine, theirs, name) in [(&all_a, &all_b, "A"), (&all_b, &all_a, "B")] {
            let alone: Vec<&str> =
                mine.iter().map(|s| s.label.as_str()).filter(|l| find(theirs, l).is_none()).collect();
            *(if name == "A" { &mut count.missing } else { &mut count.new }) += alone.len();
            notes.extend((!alone.is_empty()).then(|| format!("only in {name}: {}", alone.join(", "))));
        }
        let stack = |rows: &[Row]| rows.first().map(|r| format!("{}, {}", r.engine, r.profile));
        let stacks = match (stack(a), stack(b)) {
            (Some(x), Some(y)) if x != y => format!("A: {x}; B: {y}"),
            (x, y) => x.or(y).unwrap_or_default(),
        };
        let heading = format!("{} ({})", printable(path), printable(&stacks));
        self.say(|| format!("\n{}", wrap(&heading, 2)))?;
        if !lines.is_empty() {
            self.say(|| table(lines).render(color(), u16::try_from(width()).ok()).trim_end().to_string())?;
        }
        notes.iter().try_for_each(|note| self.say(|| wrap(&printable(note), 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worse_or_missing_is_counted() {
        let mut count = Count::default();
        let all =
            [Is::Same, Is::Open, Is::Better, Is::Worse, Is::Uncertain, Is::OneSided, Is::TooFew, Is::Unlike];
        for is in all {
            count.add(is);
        }
        count.missing = 2;
        assert_eq!(
            count.sentence(),
            "1 of 8 startups and paths are worse in B; 1 better; 1 not certain; 1 with a measure that only one has; 1 not \
             compared, with too few runs; 1 not compared, with another workload; 2 only in A."
        );
    }
}
