//! The tables of transfers, of predictions and of continuations.

use crate::printable::printable;
use crate::table::{Align, Cell, Table};
use slowstart_replay::continued;
use slowstart_replay::observer::TimedEvent;
use slowstart_replay::transfer::{Fork, StartupRow, Transfer};
use slowstart_study::words::{bytes, name_group, number};
use std::path::Path;

/// Widest cell of names where startups with the same figures are one line.
const NAMES: usize = 28;
/// Phase changes that are printed.
const PHASES: usize = 4;

/// A column: its header, its alignment, and true if only the wide table has it.
type Column = (&'static str, Align, bool);

use Align::{Left, Right};

/// A table of the wide or the narrow columns.
fn table(columns: &[Column], lines: Vec<Vec<Cell>>, wide: bool) -> Table {
    let shown = |i: usize| wide || !columns[i].2;
    let of = |line: Vec<Cell>| {
        line.into_iter().enumerate().filter(|(i, _)| shown(*i)).map(|(_, c)| c).collect::<Vec<_>>()
    };
    let columns: Vec<_> = columns.iter().filter(|c| wide || !c.2).collect();
    Table {
        headers: columns.iter().map(|c| c.0.to_string()).collect(),
        rows: lines.into_iter().map(of).collect(),
        alignments: columns.iter().map(|c| c.1).collect(),
    }
}

/// Joins lines whose cells after the first are the same.
fn grouped(mut table: Table) -> Table {
    let mut groups: Vec<(Vec<String>, Vec<Cell>)> = Vec::new();
    for line in table.rows {
        match groups.iter_mut().find(|(_, g)| g[1..] == line[1..]) {
            Some((names, _)) => names.push(line[0].text.clone()),
            None => groups.push((vec![line[0].text.clone()], line)),
        }
    }
    let joined = |(names, mut line): (Vec<String>, Vec<Cell>)| {
        line[0].text = name_group(&names, NAMES);
        line
    };
    table.rows = groups.into_iter().map(joined).collect();
    table
}

/// A cell with text from a file.
fn foreign(text: &str) -> Cell {
    printable(text).into_owned().into()
}

fn time(s: Option<f64>) -> Cell {
    s.map_or("-".to_string(), number).into()
}

/// A window in segments.
fn segments(bytes: u64, row: &Transfer) -> String {
    number((bytes as f64 / row.mss_bytes.max(1) as f64).round())
}

/// The evidence of the observed exit, or why there is none.
fn evidence(row: &Transfer) -> String {
    row.exit.as_ref().map(|e| e.evidence.clone()).or(row.unclear.clone()).unwrap_or_default()
}

/// The table of transfers.
pub(super) fn transfers(rows: &[Transfer], several_files: bool, wide: bool) -> Table {
    let columns = [
        ("file", Left, !several_files),
        ("#", Right, false),
        ("sender", Left, false),
        ("receiver", Left, true),
        ("direction", Left, true),
        ("bytes", Right, false),
        ("captured at", Left, true),
        ("RTT (ms)", Right, false),
        ("retrans", Right, false),
        ("exit (s)", Right, false),
        ("window", Right, false),
        ("class", Left, false),
        ("certain", Left, true),
        ("evidence", Left, true),
        ("full (s)", Right, true),
        ("loss (s)", Right, true),
        ("cost (s)", Right, true),
    ];
    let line = |r: &Transfer| -> Vec<Cell> {
        let file = Path::new(r.file.as_deref().unwrap_or("-"));
        let file = file.file_name().map_or("-".into(), |n| n.to_string_lossy());
        vec![
            foreign(&file),
            r.connection.to_string().into(),
            foreign(&r.from),
            foreign(&r.to),
            r.direction.clone().unwrap_or_else(|| "-".to_string()).into(),
            r.bytes.map_or("-".to_string(), bytes).into(),
            r.vantage.clone().into(),
            time(r.min_rtt_s.map(|t| t * 1e3)),
            r.retransmitted_packets.map_or("-".to_string(), |n| number(n as f64)).into(),
            time(r.exit.as_ref().map(|e| e.time_s)),
            r.exit.as_ref().map_or("-".into(), |e| segments(e.cwnd_bytes, r)).into(),
            r.class.how().into(),
            if r.certain { "yes" } else { "no" }.into(),
            evidence(r).into(),
            time(r.capacity_time_s),
            time(r.first_loss_time_s),
            time(r.cost_s),
        ]
    };
    table(&columns, rows.iter().map(line).collect(), wide)
}

/// The table of what each startup would have done; startups that would have done the same are one line unless
/// it is wide.
pub(super) fn predictions(row: &Transfer, wide: bool) -> Table {
    let columns = [
        ("startup", Left, false),
        ("exit", Left, false),
        ("at (s)", Right, false),
        ("window", Right, false),
        ("class", Left, false),
        ("valid until (s)", Right, false),
        ("exit by its own rule", Left, true),
        ("phases", Left, true),
    ];
    let event =
        |w: &TimedEvent| format!("{} {} s at {}", w.what, number(w.time_s), segments(w.cwnd_bytes, row));
    let line = |w: &StartupRow| -> Vec<Cell> {
        let exit = |f: &dyn Fn(&TimedEvent) -> String| w.exit.as_ref().map_or("-".to_string(), f);
        let rule = w.rule.as_ref().filter(|r| w.exit.as_ref() != Some(r)).map(event);
        let more = if w.phases.len() > PHASES { ", .." } else { "" };
        let phases = w.phases.iter().take(PHASES).map(event).collect::<Vec<_>>().join(", ") + more;
        vec![
            w.startup.clone().into(),
            exit(&|e| e.what.clone()).into(),
            exit(&|e| number(e.time_s)).into(),
            exit(&|e| segments(e.cwnd_bytes, row)).into(),
            w.class.how().into(),
            w.valid_until_s.map_or("the end".to_string(), number).into(),
            rule.unwrap_or_default().into(),
            phases.into(),
        ]
    };
    let all = table(&columns, row.startups.iter().map(line).collect(), wide);
    if wide { all } else { grouped(all) }
}

/// The table of continuations, below what was observed.
pub(super) fn continuations(row: &Transfer, fork: &Fork, wide: bool) -> Table {
    let columns: Vec<Column> = continued::HEADERS
        .into_iter()
        .map(|h| (h, if matches!(h, "startup" | "exit" | "class") { Left } else { Right }, h == "from (s)"))
        .collect();
    let mut lines: Vec<Vec<Cell>> =
        continued::lines(row, fork).into_iter().map(|line| line.map(Cell::from).to_vec()).collect();
    if wide && let Some(exit) = lines.first_mut().and_then(|observed| observed.get_mut(2)) {
        *exit = evidence(row).into();
    }
    let all = table(&columns, lines, wide);
    if wide { all } else { grouped(all) }
}
