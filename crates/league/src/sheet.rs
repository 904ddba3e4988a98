//! Scores and differences as tables of text, the same on a terminal and on the page.

use crate::against::Difference;
use crate::score::{Measure, Score, Statistic, Table};
use slowstart_study::stats::Median;
use slowstart_study::words::{marked, number};

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// What it shows, as a heading.
    pub title: &'static str,
    /// The names of the columns.
    pub headers: Vec<&'static str>,
    /// A line for each startup, with a cell for each column.
    pub lines: Vec<Vec<String>>,
}

/// What the first table's columns mean, in two lines of a terminal.
pub const BRIEF: &str = "loses more/less, others: in % of cases; early to none: where it left.\n\
    * a best trade-off, ~ without its paper, ? not shown; -v explains all.";

/// What the columns mean, for below the tables.
pub const LEGEND: &str = "rank: one more than the number of startups that reach 10 MB faster, case by case, beyond the margin and at 95 % confidence; ?: \
    these cases do not show it; +: needs what a sender may lack. loses more/less, others more/less: cases with over ten packets more or fewer lost than the first \
    line's, by the startup and by flows that were there before. 100 kB, 1 MB, 10 MB in the second table: time over the oracle's, mean and 95 % interval; \
    p95 is the 95th percentile. early: left before the path was full, by a rule of its own or by loss; early loss: the same by loss. full: left by a rule \
    of its own with the link full; deep: the same, of the cases whose queue holds half a BDP or more. late: by loss or after one, past capacity. left: \
    median of the window left with, in BDP. lost: packets lost in startup. queue: the longest wait at the bottleneck of packets sent in startup. others: \
    effect on flows that were there before. *: no other that every sender can use is sooner or costs less, case by case, without being later or costing more; \
    what broke a rule has no figures; m uses what an earlier connection learned; ~ is reconstructed without its paper.";

pub(crate) const ABSENT: &str = "-";

pub(crate) fn mean(m: Median) -> String {
    let half = (m.high - m.low) / 2.0;
    if half > 0.0 { format!("{} ±{}", short(m.mid), short(half)) } else { short(m.mid) }
}

/// Three digits, at most two decimals.
fn short(x: f64) -> String {
    if x.abs() < 10.0 {
        format!("{x:.2}")
    } else {
        number(if x.abs() < 100.0 { (x * 10.0).round() / 10.0 } else { x.round() })
    }
}

/// A percentage of cases.
pub(crate) fn percent(x: f64) -> String {
    if x == 0.0 || x >= 9.95 { format!("{x:.0}") } else { format!("{x:.1}") }
}

/// The columns of a table.
fn columns(table: Table) -> impl Iterator<Item = (Measure, &'static str, Statistic)> {
    let own = Measure::ALL.iter().copied().filter(move |m| m.entry().table == table);
    own.flat_map(|m| m.entry().columns.iter().map(move |(heading, s)| (m, *heading, *s)))
}

fn headings(table: Table) -> impl Iterator<Item = &'static str> {
    columns(table).map(|(_, heading, _)| heading)
}

impl Score {
    fn cells(&self, table: Table) -> impl Iterator<Item = String> {
        columns(table).map(|(m, _, statistic)| {
            let Some(f) = self.figure(m) else { return ABSENT.into() };
            match statistic {
                Statistic::Mean => mean(f.mean),
                Statistic::Median => short(f.median),
                Statistic::P95 => short(f.p95),
            }
        })
    }
}

/// The order of tables: by the mean of the regrets at 1 MB and 10 MB.
fn in_order(scores: &[Score]) -> Vec<&Score> {
    let mut all: Vec<&Score> = scores.iter().collect();
    let of = |s: &Score, m| s.figure(m).map_or(f64::INFINITY, |f| f.mean.mid);
    let key = |s: &Score| of(s, Measure::Regret1MB) + of(s, Measure::Regret10MB);
    all.sort_by(|a, b| key(a).total_cmp(&key(b)));
    all
}

fn name(s: &Score) -> String {
    format!("{}{}", marked(&s.startup), if s.memory { " m" } else { "" })
}

/// The table of regrets and exits.
pub fn speed(scores: &[Score]) -> Sheet {
    let line = |s: &Score| {
        let e = &s.exits;
        let exits = [
            percent(e.early_by_rule),
            percent(e.early_by_loss),
            percent(e.full),
            e.full_of_deep.map_or(ABSENT.into(), percent),
            percent(e.late),
            percent(e.none),
        ];
        [name(s)].into_iter().chain(s.cells(Table::Times)).chain(exits).chain(s.cells(Table::Exits)).collect()
    };
    let exits = ["early", "early loss", "full", "deep", "late", "none"];
    Sheet {
        title: "Time over the oracle's, and where it left (% of cases)",
        headers: ["startup"]
            .into_iter()
            .chain(headings(Table::Times))
            .chain(exits)
            .chain(headings(Table::Exits))
            .collect(),
        lines: in_order(scores).into_iter().map(line).collect(),
    }
}

/// The table of losses, delay, harm and fairness.
pub fn harm(scores: &[Score]) -> Sheet {
    let line = |s: &Score| {
        let counts = [name(s), s.cases.to_string(), s.unfinished.to_string()];
        counts.into_iter().chain(s.cells(Table::Costs)).collect()
    };
    Sheet {
        title: "Packets lost, delay, and what it does to others",
        headers: ["startup", "cases", "unfinished"].into_iter().chain(headings(Table::Costs)).collect(),
        lines: in_order(scores).into_iter().map(line).collect(),
    }
}

/// The table of differences to a baseline. A difference whose interval contains 0 is in parentheses.
pub fn differences(all: &[Difference]) -> Sheet {
    let shown = || Measure::ALL.iter().copied().filter(|m| m.entry().table != Table::Exits);
    let cell = |d: &Difference, m: Measure| {
        d.measures.iter().find(|x| x.0 == m).map_or(ABSENT.to_string(), |(_, diff, _)| {
            let text = format!("{}{}", if diff.mid > 0.0 { "+" } else { "" }, short(diff.mid));
            if diff.low <= 0.0 && diff.high >= 0.0 { format!("({text})") } else { text }
        })
    };
    let line = |d: &Difference| {
        let mut cells = vec![
            format!("{} - {}", d.startup, d.baseline),
            d.population.clone().unwrap_or_else(|| "all".into()),
            d.cases.to_string(),
        ];
        cells.extend(shown().map(|m| cell(d, m)));
        cells
    };
    let mut headers = vec!["difference", "population", "cases"];
    headers.extend(shown().map(|m| m.entry().heading));
    Sheet {
        title: "Differences to the baseline, case by case (means; in parentheses: the 95 % interval contains 0)",
        headers,
        lines: all.iter().map(line).collect(),
    }
}

/// Returns a sheet as Markdown.
pub fn markdown(sheet: &Sheet) -> String {
    let row = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::from("|");
        for cell in cells {
            text = format!("{text} {cell} |");
        }
        text + "\n"
    };
    let mut out = row(&mut sheet.headers.iter().copied());
    out += &row(&mut sheet.headers.iter().map(|_| "---"));
    for line in &sheet.lines {
        out += &row(&mut line.iter().map(String::as_str));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::GameRow;
    use crate::score::scores;
    use crate::score::tests::row;

    #[test]
    fn lines_are_in_order_of_regret() {
        let slow = (0..6).map(|i| row("slow", i, 2.0 + 0.1 * f64::from(i), 9));
        let rows: Vec<GameRow> = slow.chain((0..6).map(|i| row("fast", i, 1.0, 1))).collect();
        let s = speed(&scores(&rows, None));
        let first: Vec<&str> = s.lines.iter().map(|l| l[0].as_str()).collect();
        assert_eq!(first, ["fast", "slow"]);
        assert_eq!((s.lines[0][1].as_str(), s.lines[0][2].as_str()), ("-", "2.00"));
        let lines = [s, harm(&scores(&rows, None))];
        assert!(lines.iter().all(|s| s.lines.iter().all(|l| l.len() == s.headers.len())));
        assert!(markdown(&lines[1]).starts_with("| startup | cases |"));
    }
}
