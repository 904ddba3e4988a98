//! `slowstart diff`: two results beside each other.

use crate::output::{color, print, quiet, width, wrap};
use crate::printable::printable;
use crate::table::{Align, Cell, Table, Tone};
use anyhow::{Context, Result, bail};
use clap::Args;
use slowstart_replay::limits::LONGEST;
use slowstart_study::decision;
use slowstart_study::record::Row;
use slowstart_study::summary::{Measure, Summary, summarise};
use slowstart_study::words::{number, spread};
use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Compare two results, startup by startup: before and after a change, or the simulator and the kernel
///
/// Results are matched by path and startup. If both have runs with the same random seeds, a startup differs
/// if the 95 % interval of the differences, run by run, excludes 0; otherwise if the 95 % intervals of its
/// medians do not overlap. Differences below the margin are none.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart diff before after
  slowstart diff simulator/results.jsonl kernel/results.jsonl

Exit status: 0 if no startup differs, 1 if one does or is in one result only, 2 for bad input.")]
pub(crate) struct Diff {
    /// A folder that `--out` wrote, or a file of rows that `--json` printed
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The result to compare with A
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Differences of less than so many percent are none
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = crate::how::margin)]
    margin: f64,
}

/// The most rows of a result: they are held, some kilobytes each.
const MOST_ROWS: usize = 200_000;

/// Reads the rows of a folder or of a file.
fn read(from: &Path) -> Result<Vec<Row>> {
    let file = if from.is_dir() { from.join("results.jsonl") } else { from.to_path_buf() };
    let name = file.display().to_string();
    let mut reader = BufReader::new(File::open(&file).with_context(|| name.clone())?);
    let mut rows = Vec::new();
    let mut line = Vec::new();
    for n in 1.. {
        let at = || format!("{name}: line {n}");
        line.clear();
        if reader.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line).with_context(at)? == 0 {
            break;
        }
        let row: Row = serde_json::from_slice(&line)
            .with_context(|| format!("{}: expected a row of slowstart of at most {LONGEST} bytes", at()))?;
        rows.push(row);
        if rows.len() > MOST_ROWS {
            bail!("{name}: found more than {MOST_ROWS} rows; `slowstart sweep` compares that many");
        }
    }
    if rows.is_empty() {
        bail!("{name}: found no rows");
    }
    Ok(rows)
}

/// The rows of each path, in order of first appearance.
fn by_path(rows: &[Row]) -> Vec<(String, Vec<Row>)> {
    let mut all: Vec<(String, Vec<Row>)> = Vec::new();
    for row in rows {
        match all.iter_mut().find(|(path, _)| *path == row.path) {
            Some((_, rows)) => rows.push(row.clone()),
            None => all.push((row.path.clone(), vec![row.clone()])),
        }
    }
    all
}

/// The outcome for one startup.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Change {
    Faster,
    Slower,
    /// The difference is not certain, or within the margin.
    NotCertain,
    /// Every run has the same figures.
    Same,
}

impl Change {
    const fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NotCertain => "no difference",
            Self::Same => "same",
        }
    }
}

/// Compares two summaries of one startup: the measure that both have, and the change from `a` to `b`.
fn change(a: &Summary, b: &Summary, margin: f64) -> (Measure, Change) {
    let both = |m: Measure| a.of_all_runs(m).is_some() && b.of_all_runs(m).is_some();
    let by = if both(Measure::Completion) { Measure::Completion } else { Measure::Goodput };
    let values = |s: &Summary| -> Vec<Vec<Option<f64>>> {
        s.rows.iter().map(|r| Measure::ALL.map(|m| m.of(r)).to_vec()).collect()
    };
    if values(a) == values(b) && a.classes() == b.classes() {
        return (by, Change::Same);
    }
    let seeds = |s: &Summary| s.rows.iter().map(|r| r.seed).collect::<Vec<u64>>();
    let less_is_better = by == Measure::Completion;
    let judged = if seeds(a) == seeds(b) {
        let values = |s: &Summary| s.rows.iter().filter_map(|r| by.of(r)).collect::<Vec<f64>>();
        decision::relative(&values(b), &values(a), margin, less_is_better).map(|d| d.change)
    } else {
        a.of_all_runs(by).zip(b.of_all_runs(by)).map(|(a, b)| {
            let beyond = (b.mid / a.mid - 1.0).abs() >= margin;
            match b.compare(&a).filter(|_| beyond) {
                Some(order) if (order == Ordering::Less) == less_is_better => decision::Change::Better,
                Some(_) => decision::Change::Worse,
                None => decision::Change::Even,
            }
        })
    };
    let change = match judged {
        Some(decision::Change::Better) => Change::Faster,
        Some(decision::Change::Worse) => Change::Slower,
        _ => Change::NotCertain,
    };
    (by, change)
}

fn class(s: &Summary) -> &'static str {
    s.classes().first().map_or("-", |(c, _)| c.name())
}

/// The table of one path. Returns the number of startups that differ.
fn table(a: &[Row], b: &[Row], margin: f64) -> (Table, usize, Vec<String>) {
    let (all_a, all_b) = (summarise(a), summarise(b));
    let mut differing = 0;
    let mut lines = Vec::new();
    let mut notes = Vec::new();
    for (mine, theirs, name) in [(&all_a, &all_b, "A"), (&all_b, &all_a, "B")] {
        let alone: Vec<&str> = mine
            .iter()
            .filter(|s| !theirs.iter().any(|o| o.label == s.label))
            .map(|s| s.label.as_str())
            .collect();
        if !alone.is_empty() {
            differing += alone.len();
            notes.push(format!("only in {name}: {}", alone.join(", ")));
        }
    }
    for sa in &all_a {
        let Some(sb) = all_b.iter().find(|s| s.label == sa.label) else { continue };
        let (by, change) = change(sa, sb, margin);
        differing += usize::from(matches!(change, Change::Faster | Change::Slower));
        let typical = |s: &Summary, m: Measure| -> Cell {
            s.typical(m).map_or("-".into(), |(median, _)| {
                let shown = spread(&median);
                shown.range.map_or(shown.mid.clone(), |r| format!("{} ({r})", shown.mid)).into()
            })
        };
        let percent = sa.of_all_runs(by).zip(sb.of_all_runs(by)).filter(|(a, _)| a.mid > 0.0);
        let percent = percent.map_or("-".into(), |(a, b)| format!("{:+.1}", (b.mid / a.mid - 1.0) * 100.0));
        let exit = if class(sa) == class(sb) {
            class(sa).to_string()
        } else {
            format!("{} -> {}", class(sa), class(sb))
        };
        let middle =
            |s: &Summary| s.typical(Measure::StartupLost).map_or("-".into(), |(m, _)| spread(&m).mid);
        let lost =
            if middle(sa) == middle(sb) { middle(sa) } else { format!("{} -> {}", middle(sa), middle(sb)) };
        lines.push(vec![
            sa.label.clone().into(),
            if by == Measure::Completion { "s" } else { "Mbit/s" }.into(),
            typical(sa, by),
            typical(sb, by),
            percent.into(),
            Cell {
                text: change.name().into(),
                tone: match change {
                    Change::Faster => Tone::Good,
                    Change::Slower => Tone::Bad,
                    _ => Tone::Plain,
                },
            },
            exit.into(),
            lost.into(),
        ]);
    }
    let headers = ["startup", "", "A", "B", "%", "B is", "exit", "lost"].map(String::from).to_vec();
    let mut alignments = vec![Align::Left; 8];
    for right in [2, 3, 4, 7] {
        alignments[right] = Align::Right;
    }
    (Table { headers, rows: lines, alignments }, differing, notes)
}

impl Diff {
    /// True if nothing differs.
    pub(crate) fn main(&self) -> Result<bool> {
        let (a, b) = (by_path(&read(&self.a)?), by_path(&read(&self.b)?));
        let mut differing = 0;
        print(&wrap(
            &format!(
                "A: {}, B: {}",
                printable(&self.a.display().to_string()),
                printable(&self.b.display().to_string())
            ),
            2,
        ))?;
        for (path, rows) in &a {
            let Some((_, others)) = b.iter().find(|(p, _)| p == path) else {
                print(&format!("{}: only in A", printable(path)))?;
                differing += 1;
                continue;
            };
            let (table, n, notes) = table(rows, others, self.margin);
            differing += n;
            let stacks = if rows[0].profile == others[0].profile && rows[0].engine == others[0].engine {
                format!("{}, {}", rows[0].engine, rows[0].profile)
            } else {
                format!(
                    "A: {}, {}; B: {}, {}",
                    rows[0].engine, rows[0].profile, others[0].engine, others[0].profile
                )
            };
            print(&format!("\n{} ({})", printable(path), printable(&stacks)))?;
            print(table.render(color(), u16::try_from(width()).ok()).trim_end())?;
            for note in notes {
                print(&wrap(&note, 2))?;
            }
        }
        for (path, _) in b.iter().filter(|(path, _)| !a.iter().any(|(p, _)| p == path)) {
            print(&format!("{}: only in B", printable(path)))?;
            differing += 1;
        }
        if !quiet() {
            print(&wrap(
                &format!(
                    "\nMedians over runs with 95 % intervals. B is: faster or slower = certainly, run by run or by intervals that \
                     do not overlap, and by {} % at least; no difference = not that; same = every run has the same figures.",
                    number(100.0 * self.margin)
                ),
                2,
            ))?;
        }
        Ok(differing == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::row;

    #[test]
    fn changes_are_named() {
        // Fewer than six runs decide nothing.
        let of = |times: [f64; 2]| -> Vec<Row> {
            (0..6).map(|run| Row { run, ..row("search", Some(times[run as usize % 2])) }).collect()
        };
        let change = |a: &[Row], b: &[Row]| super::change(&summarise(a)[0], &summarise(b)[0], 0.03).1;
        let (a, b, c) = (of([7.0, 7.2]), of([7.1, 7.3]), of([9.0, 9.2]));
        assert_eq!(change(&a, &a), Change::Same);
        assert_eq!(change(&a, &b), Change::NotCertain);
        assert_eq!(change(&a, &c), Change::Slower);
        assert_eq!(change(&c, &a), Change::Faster);
        assert_eq!(table(&a, &c, 0.03).1, 1);
        assert_eq!(table(&a, &[row("standard", Some(7.0))], 0.03).1, 2);
    }
}
