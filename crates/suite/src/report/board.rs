//! The board: who meets what, from several stored results of one suite.

use crate::judge::{Verdict, judge};
use crate::run::{Entry, Report};
use crate::scenario::{Criterion, Suite};
use maud::html;
use slowstart_report::{Script, document};
use std::collections::BTreeSet;
use std::fmt::Write;
use thiserror::Error;

/// A stored result.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its file, as the caller named it.
    pub file: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// What it says.
    pub report: Report,
}

/// Why a result is not put on the board: it is of another suite or another version of it, has a criterion that the suite
/// does not have, or a verdict that does not follow from its runs.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{file}: {why}")]
pub struct BoardError {
    /// The result, as the caller named it.
    pub file: String,
    /// What was found, and what was expected.
    pub why: String,
}

/// The verdict that the first `runs` of an entry give; `None` where they do not say all: a value or a limit is missing.
fn by_runs(e: &Entry, c: &Criterion, runs: usize) -> Option<Verdict> {
    let all = runs == e.values.len();
    if e.broken > 0 {
        // Which run broke the rule is not stored.
        return all.then_some(Verdict::DoesNotMeet);
    }
    let (values, limits) = (e.values.get(..runs)?, e.limits.get(..runs)?);
    let pairs: Option<Vec<(f64, f64)>> = values.iter().zip(limits).map(|(v, l)| v.zip(*l)).collect();
    let pairs = pairs.filter(|p| !p.is_empty() && e.never == 0)?;
    let limits: Vec<f64> = pairs.iter().map(|p| p.1).collect();
    Some(judge(&pairs, &limits, c.at_least).verdict)
}

fn check(suite: &Suite, of: &Stored) -> Result<(), BoardError> {
    let (r, refused) = (&of.report, |why: String| Err(BoardError { file: of.file.clone(), why }));
    let whole = |name: &str, hash: &str| format!("{name} with SHA-256 {hash}");
    let (found, expected) = (whole(&r.suite, &r.suite_sha256), whole(&suite.name, &suite.sha256));
    if found != expected {
        return refused(format!("the suite: found {found}, expected {expected}"));
    }
    for e in &r.entries {
        let scenario = suite.scenarios.iter().find(|s| s.name == e.scenario);
        if !scenario.is_some_and(|s| s.criteria.iter().any(|c| c.text == e.criterion)) {
            let why = "expected one that the suite has";
            return refused(format!("{}: found the criterion {:?}, {why}", e.scenario, e.criterion));
        }
    }
    check_verdicts(r).or_else(refused)
}

/// Holds each verdict to its runs, and that of the planned runs to those.
///
/// # Errors
/// If one does not follow from them: which, what was found, and what was expected.
pub fn check_verdicts(report: &Report) -> Result<(), String> {
    for e in &report.entries {
        let planned = e.planned.map(|p| (p.verdict, p.runs as usize));
        for (found, runs) in [Some((e.verdict, e.values.len())), planned].into_iter().flatten() {
            let expected = Criterion::parse(&e.criterion).and_then(|c| by_runs(e, &c, runs));
            if let Some(expected) = expected.filter(|v| *v != found) {
                let (found, expected) = (found.word(), expected.word());
                let first = if runs < e.values.len() { format!("first {runs} ") } else { String::new() };
                return Err(format!(
                    "{}, {}, {:?}: found {found:?}, expected {expected:?} by its {first}runs",
                    e.startup, e.scenario, e.criterion
                ));
            }
        }
    }
    Ok(())
}

/// One startup, or whole stack, of a result.
struct Row<'a> {
    of: &'a Stored,
    startup: &'a str,
}

type Key<'a> = (&'a str, &'a str);

impl<'a> Row<'a> {
    fn entries(&self) -> impl Iterator<Item = &'a Entry> {
        let startup = self.startup;
        self.of.report.entries.iter().filter(move |e| e.startup == startup)
    }

    /// The criteria on which it was observed.
    fn judged(&self) -> BTreeSet<Key<'a>> {
        let seen = self.entries().filter(|e| e.verdict != Verdict::NotObserved);
        seen.map(|e| (&*e.scenario, &*e.criterion)).collect()
    }

    fn count(&self, of: &BTreeSet<Key<'_>>, v: Verdict) -> usize {
        self.entries().filter(|e| e.verdict == v && of.contains(&(&*e.scenario, &*e.criterion))).count()
    }

    /// What ran it: a whole stack is its own engine.
    fn engine(&self) -> String {
        let r = &self.of.report;
        if r.avoidance.is_empty() {
            return [r.stack_version.as_deref(), r.congestion_control.as_deref()]
                .into_iter()
                .flatten()
                .fold("whole stack".into(), |text, more| format!("{text}, {more}"));
        }
        let stack = match &*r.stack {
            "" => r.engine.clone(),
            // The simulator's stack has the name of what it imitates.
            stack if r.engine == "sim" => format!("sim ({stack})"),
            stack => stack.to_string(),
        };
        format!("{stack}, {}", r.avoidance)
    }

    /// The hash of its file, or the commit of the program that it is a part of.
    fn identity(&self) -> String {
        let r = &self.of.report;
        match (r.entrants.get(self.startup), &r.commit) {
            (Some(hash), _) => hash.clone(),
            (None, _) if r.avoidance.is_empty() => "not stated".into(),
            (None, Some(commit)) => format!("in slowstart {commit}"),
            (None, None) => format!("in slowstart {}", r.version),
        }
    }
}

/// A table that is ready to print.
struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The style of a column: numbers stand at its right, text wraps.
    fn class(&self, column: usize) -> &'static str {
        let is_count = |row: &Vec<String>| row[column].parse::<u64>().is_ok();
        if self.rows.iter().all(is_count) { "" } else { "text words" }
    }
}

/// The rank table, and what ran. Fails as [`markdown`] does.
fn tables(suite: &Suite, results: &[Stored]) -> Result<(Table, Table), BoardError> {
    results.iter().try_for_each(|r| check(suite, r))?;
    let mut rows: Vec<Row<'_>> = results
        .iter()
        .flat_map(|of| of.report.startups.iter().map(move |startup| Row { of, startup }))
        .collect();
    let common = rows.iter().map(Row::judged).reduce(|a, b| &a & &b).unwrap_or_default();
    let all: usize = suite.scenarios.iter().map(|s| s.criteria.len()).sum();
    rows.sort_by_key(|r| {
        let count = |v| r.count(&common, v);
        (count(Verdict::DoesNotMeet), usize::MAX - count(Verdict::Meets), r.startup.to_string(), r.engine())
    });
    let ranks = Table {
        headers: vec![
            "Entrant".into(),
            "Runs in".into(),
            format!("Meets, of {} that all have", common.len()),
            "Does not meet".into(),
            "Undecided".into(),
            format!("Meets of all it ran, of {all}"),
        ],
        rows: rows
            .iter()
            .map(|r| {
                let own = r.judged();
                let of = |v| r.count(&common, v).to_string();
                vec![
                    r.startup.to_string(),
                    r.engine(),
                    of(Verdict::Meets),
                    of(Verdict::DoesNotMeet),
                    of(Verdict::Undecided),
                    format!("{} of {}", r.count(&own, Verdict::Meets), own.len()),
                ]
            })
            .collect(),
    };
    let what = Table {
        headers: ["Entrant", "SHA-256 of what ran", "SHA-256 of the result", "Seed", "Clock", "Command"]
            .map(String::from)
            .to_vec(),
        rows: rows
            .iter()
            .map(|r| {
                let report = &r.of.report;
                vec![
                    r.startup.to_string(),
                    r.identity(),
                    r.of.sha256.clone(),
                    report.seed.to_string(),
                    if report.real_clock { "real".into() } else { "virtual".into() },
                    report.command.join(" "),
                ]
            })
            .collect(),
    };
    Ok((ranks, what))
}

fn title(suite: &Suite) -> String {
    format!("{} (SHA-256 {})", suite.name, suite.sha256)
}

const ORDER: &str = "Fewest not met of the criteria on which all were observed come first, then most met. Virtual time gives the same \
                     bytes again; what ran on the real clock gives other numbers.";

/// Returns the board in Markdown: one row an entrant.
///
/// # Errors
/// If a result is not of this suite, has a criterion that the suite does not have, or a verdict that does not follow
/// from its runs.
pub fn markdown(suite: &Suite, results: &[Stored]) -> Result<String, BoardError> {
    let (ranks, what) = tables(suite, results)?;
    let mut out = format!("Suite {}. {ORDER}\n", title(suite));
    for table in [ranks, what] {
        let _ = write!(out, "\n| {} |\n|{}\n", table.headers.join(" | "), "---|".repeat(table.headers.len()));
        for row in table.rows {
            // A command may have a pipe.
            let cells: Vec<String> = row.iter().map(|c| c.replace('|', "\\|")).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    Ok(out)
}

/// Returns the board as one page that needs nothing else.
///
/// # Errors
/// As [`markdown`].
pub fn html(suite: &Suite, results: &[Stored]) -> Result<String, BoardError> {
    let (ranks, what) = tables(suite, results)?;
    let body = html! {
        p { "Suite " (title(suite)) ". " (ORDER) }
        @for (heading, table) in [("Who meets what", &ranks), ("What ran", &what)] {
            h2 { (heading) }
            table class="stack" {
                thead {
                    tr { @for (i, h) in table.headers.iter().enumerate() { th scope="col" class=(table.class(i)) { (h) } } }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            th scope="row" { (row[0]) }
                            @for (i, cell) in row.iter().enumerate().skip(1) {
                                td class=(table.class(i)) data-label=(table.headers[i]) { (cell) }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(document(&format!("Board of {}", suite.name), &body, Script::Tables))
}
