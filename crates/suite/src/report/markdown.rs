//! The table in Markdown.

use super::{after, number, sentences, value_and_limit};
use crate::judge::Verdict;
use crate::run::{Entry, Report};
use crate::scenario::{Criterion, Reference, SECTIONS, Suite, title as title_of};
use std::fmt::Write;

/// Returns the verdicts of a startup in a section: how many criteria it meets, of how many.
fn cell(report: &Report, section: &str, startup: &str) -> String {
    let of = |v: Verdict| {
        report
            .entries
            .iter()
            .filter(|e| e.section == section && e.startup == startup && e.verdict == v)
            .count()
    };
    let (meets, not, open, unseen) =
        (of(Verdict::Meets), of(Verdict::DoesNotMeet), of(Verdict::Undecided), of(Verdict::NotObserved));
    if meets + not + open + unseen == 0 {
        return "not run".into();
    }
    let mut text = format!("{meets}/{}", meets + not + open + unseen);
    if not > 0 {
        let _ = write!(text, ", {not} not");
    }
    if open > 0 {
        let _ = write!(text, ", {open} open");
    }
    if unseen > 0 {
        let _ = write!(text, ", {unseen} not observed");
    }
    text
}

/// The title of what a suite does not show, which ends a report.
pub const NOT_SHOWN: &str = "Not shown by this suite:";

/// More startups than this are the lines of the table, and sections its columns.
const COLUMNS: usize = 8;

/// A line a section.
fn by_section(out: &mut String, sections: &[(&str, &str)], report: &Report, suite: &Suite) {
    out.push_str("| Section |");
    for s in &report.startups {
        let _ = write!(out, " {s} |");
    }
    let _ = write!(out, "\n|---|{}\n", "---|".repeat(report.startups.len()));
    for (section, title) in sections {
        let own = || suite.scenarios.iter().filter(|s| s.section == *section).flat_map(|s| &s.criteria);
        let relative = own().all(|c| c.reference.is_some_and(|(_, r)| r == Reference::Standard));
        let relative = if relative { ": no worse than slow start" } else { "" };
        let _ = write!(out, "| {section} {title}{relative} |");
        for s in &report.startups {
            let _ = write!(out, " {} |", cell(report, section, s));
        }
        out.push('\n');
    }
    out.push_str("| **All** |");
    for s in &report.startups {
        let _ = write!(out, " **{}/{}** |", report.count(s, Verdict::Meets), criteria(report, s));
    }
    out.push('\n');
}

/// A line a startup. A section of which it meets everything is empty; else what it does not meet (2), and
/// what is open (?1).
fn by_startup(out: &mut String, sections: &[(&str, &str)], report: &Report) {
    out.push_str("| Startup | All |");
    for (section, _) in sections {
        let _ = write!(out, " {section} |");
    }
    let _ = write!(out, "\n|---|---|{}\n", "---|".repeat(sections.len()));
    for s in &report.startups {
        let _ = write!(out, "| {s} | {}/{} |", report.count(s, Verdict::Meets), criteria(report, s));
        for (section, _) in sections {
            let of = |v: Verdict| {
                let is = |e: &&Entry| e.section == *section && e.startup == *s && e.verdict == v;
                report.entries.iter().filter(is).count()
            };
            let (not, open) = (of(Verdict::DoesNotMeet), of(Verdict::Undecided));
            let not = if not > 0 { format!(" {not}") } else { String::new() };
            let open = if open > 0 { format!(" ?{open}") } else { String::new() };
            let _ = write!(out, "{not}{open} |");
        }
        out.push('\n');
    }
    out.push_str(
        "\nA number counts the criteria of the section that are not met; ?: undecided; empty: all are met.\n",
    );
}

/// How many criteria a startup was judged by.
fn criteria(report: &Report, startup: &str) -> usize {
    report.entries.iter().filter(|e| e.startup == startup).count()
}

/// A criterion where a person reads it.
fn says(e: &Entry) -> String {
    Criterion::parse(&e.criterion).map_or_else(|| e.criterion.clone(), |c| c.says())
}

/// A table of entries, if there are any.
fn entries(out: &mut String, title: &str, of: &[&Entry], last: (&str, &dyn Fn(&Entry) -> String)) {
    if of.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "\n{title}:\n\n| Startup | Scenario | Criterion | Value | Limit | {} |\n|---|---|---|---|---|---|\n",
        last.0
    );
    for e in of {
        let (value, limit) = value_and_limit(e);
        let _ = writeln!(
            out,
            "| {} | {} ({}) | {} | {value} | {limit} | {} |",
            e.startup,
            e.scenario,
            e.section,
            says(e),
            last.1(e)
        );
    }
}

/// Returns the report in Markdown, for an Internet-Draft or a pull request: a sentence on each startup, what
/// is not met and what is open, the table by sections of RFC 9743, and what is met only because slow start is
/// no better.
pub fn markdown(suite: &Suite, report: &Report) -> String {
    let mut out = sentences(report).join("\n\n") + "\n";
    let of = |v: Verdict| -> Vec<&Entry> { report.entries.iter().filter(|e| e.verdict == v).collect() };
    let default = |e: &Entry| number(e.default_value);
    let runs = |e: &Entry| match e.runs_to_decide {
        Some(n) => format!("about {n}"),
        None if e.never > 0 => format!("none: {} never complete", e.never),
        None if e.value.is_none() => "not known: nothing was observed".to_string(),
        None => "not known: the median is at the limit".to_string(),
    };
    entries(&mut out, "Not met", &of(Verdict::DoesNotMeet), ("Today's default", &default));
    entries(&mut out, "Undecided", &of(Verdict::Undecided), ("Runs that would decide", &runs));
    let later: Vec<&Entry> = report.entries.iter().filter(|e| e.planned_verdict() != e.verdict).collect();
    let verdicts = |e: &Entry| {
        let planned = e.planned_in_words().unwrap_or_default();
        format!("{} after {} runs; {planned}", e.verdict.word(), e.values.len())
    };
    entries(&mut out, "Verdicts that added runs changed", &later, ("Verdict", &verdicts));
    let _ = write!(
        out,
        "\nSuite {}, {} {}{}, seed {}: criteria met, by section of RFC 9743. Where a limit refers to `standard`, met is: no worse \
         than slow start (RFC 5681).\n\n",
        report.suite,
        report.engine,
        report.version,
        after(report),
        report.seed
    );
    let used = |s: &&(&str, &str)| suite.scenarios.iter().any(|of| of.section == s.0);
    let sections: Vec<(&str, &str)> = SECTIONS.iter().filter(used).copied().collect();
    if report.startups.len() > COLUMNS {
        by_startup(&mut out, &sections, report);
    } else {
        by_section(&mut out, &sections, report, suite);
    }
    let only: Vec<&Entry> = report.entries.iter().filter(|e| e.is_worse_than_default()).collect();
    let title = "No worse than slow start, but worse than today's default (hystart)";
    entries(&mut out, title, &only, ("Today's default", &default));
    for (i, l) in report.left_out.iter().enumerate() {
        out.push_str(if i == 0 { "\nNot run:\n\n" } else { "" });
        let _ = writeln!(out, "- {}: {}", l.scenario, l.why);
    }
    for (i, note) in report.notes.iter().enumerate() {
        out.push_str(if i == 0 { "\nNotes:\n\n" } else { "" });
        let _ = writeln!(out, "- {note}");
    }
    let _ = write!(out, "\n{NOT_SHOWN}\n\n");
    for g in &suite.gaps {
        let _ =
            writeln!(out, "- RFC 9743 section {} ({}): {}", g.section, title_of(g.section.as_str()), g.why);
    }
    out
}
