//! The table in Markdown.

use super::{after, number};
use crate::judge::Verdict;
use crate::run::{Entry, Report};
use crate::scenario::{SECTIONS, Suite, title};
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

/// More startups than this are the lines of the table, and sections its columns.
const COLUMNS: usize = 8;

/// A line a section.
fn by_section(out: &mut String, sections: &[(&str, &str)], report: &Report) {
    out.push_str("| Section |");
    for s in &report.startups {
        let _ = write!(out, " {s} |");
    }
    let _ = write!(out, "\n|---|{}\n", "---|".repeat(report.startups.len()));
    for (section, title) in sections {
        let _ = write!(out, "| {section} {title} |");
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
        "\nA number: so many criteria of the section are not met; ?: undecided; empty: all are met.\n",
    );
}

/// How many criteria a startup was judged by.
fn criteria(report: &Report, startup: &str) -> usize {
    report.entries.iter().filter(|e| e.startup == startup).count()
}

/// Returns the table by sections of RFC 9743, in Markdown, for an Internet-Draft or a pull request.
pub fn markdown(suite: &Suite, report: &Report) -> String {
    let mut out = format!(
        "Suite {}, {} {}{}, seed {}: criteria met, by section of RFC 9743.\n\n",
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
        by_section(&mut out, &sections, report);
    }
    let failed: Vec<&Entry> = report.entries.iter().filter(|e| e.verdict == Verdict::DoesNotMeet).collect();
    if !failed.is_empty() {
        out.push_str(
            "\nNot met:\n\n| Startup | Scenario | Criterion | Value | Limit |\n|---|---|---|---|---|\n",
        );
        for e in failed {
            let (value, limit) = (number(e.value), number(e.limit));
            let _ = writeln!(
                out,
                "| {} | {} ({}) | {} | {value} | {limit} |",
                e.startup, e.scenario, e.section, e.criterion
            );
        }
    }
    let open: Vec<&Entry> = report.entries.iter().filter(|e| e.verdict == Verdict::Undecided).collect();
    if !open.is_empty() {
        out.push_str("\nUndecided:\n\n| Startup | Scenario | Criterion | Value | Limit | Runs that would decide |\n|---|---|---|---|---|---|\n");
        for e in open {
            let runs = e.runs_to_decide.map_or("-".to_string(), |n| format!("about {n}"));
            let (value, limit) = (number(e.value), number(e.limit));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {value} | {limit} | {runs} |",
                e.startup, e.scenario, e.criterion
            );
        }
    }
    for (i, l) in report.left_out.iter().enumerate() {
        out.push_str(if i == 0 { "\nNot run:\n\n" } else { "" });
        let _ = writeln!(out, "- {}: {}", l.scenario, l.why);
    }
    for (i, note) in report.notes.iter().enumerate() {
        out.push_str(if i == 0 { "\nNotes:\n\n" } else { "" });
        let _ = writeln!(out, "- {note}");
    }
    out.push_str("\nNot shown by this suite:\n\n");
    for g in &suite.gaps {
        let _ = writeln!(out, "- RFC 9743 section {} ({}): {}", g.section, title(&g.section), g.why);
    }
    out
}
