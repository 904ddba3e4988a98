//! The report in the form of the kernel's tests (Documentation/dev-tools/ktap.rst).

use super::number;
use crate::judge::Verdict;
use crate::run::{Entry, Report};
use std::fmt::Write;

/// A `#` begins a directive, and a line ends a test.
fn plain(text: &str) -> String {
    text.replace('#', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the runs say, for a line of diagnosis.
fn measured(e: &Entry) -> String {
    let excess = e.excess.map_or(String::new(), |[low, high]| {
        format!(", excess {} to {}", number(Some(low)), number(Some(high)))
    });
    let never = if e.never > 0 { format!(", {} never completed", e.never) } else { String::new() };
    let broken = if e.broken > 0 { format!(", {} broke a rule", e.broken) } else { String::new() };
    let planned = e.planned_in_words().map_or(String::new(), |p| format!(", {p}"));
    format!(
        "value {}, limit {}, {} runs{excess}{never}{broken}{planned}",
        number(e.value),
        number(e.limit),
        e.values.len()
    )
}

/// Returns the report as KTAP: a test for each criterion of each startup. What the runs leave open, what was not
/// observed and what did not run is skipped with the reason: it neither passed nor failed.
pub fn ktap(report: &Report) -> String {
    let mut out = format!("KTAP version 1\n1..{}\n", report.entries.len() + report.left_out.len());
    let mut n = 0;
    for e in &report.entries {
        n += 1;
        let name = plain(&format!("{} {}: {}", e.startup, e.scenario, e.criterion));
        let (ok, skip) = match e.verdict {
            Verdict::Meets => ("ok", String::new()),
            Verdict::DoesNotMeet => ("not ok", String::new()),
            Verdict::Undecided => (
                "ok",
                e.runs_to_decide.map_or(" # SKIP undecided".into(), |runs| {
                    format!(" # SKIP undecided, about {runs} runs would decide")
                }),
            ),
            Verdict::NotObserved => ("ok", " # SKIP not observed".into()),
        };
        let _ = writeln!(out, "# {}\n{ok} {n} {name}{skip}", plain(&measured(e)));
    }
    for l in &report.left_out {
        n += 1;
        let _ = writeln!(out, "ok {n} {} # SKIP {}", plain(&l.scenario), plain(&l.why));
    }
    out
}
