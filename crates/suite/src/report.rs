//! The page, the Markdown table and the JSON of a report.

use crate::judge::Verdict;
use crate::run::{Entry, Report};
use crate::scenario::{SECTIONS, Scenario, Suite, title};
use std::fmt::Write;

/// Returns a number for people.
fn number(v: Option<f64>) -> String {
    match v {
        None => "-".into(),
        Some(v) if v.fract().abs() < 1e-9 && v.abs() < 1e9 => format!("{v:.0}"),
        Some(v) if v.abs() >= 100.0 => format!("{v:.0}"),
        Some(v) => format!("{v:.3}"),
    }
}

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

/// Returns the table by sections of RFC 9743, in Markdown, for an Internet-Draft or a pull request.
pub fn markdown(suite: &Suite, report: &Report) -> String {
    let mut out = format!(
        "Suite {}, {} {}, {} after the startup, seed {}: criteria met, by section of RFC 9743.\n\n| Section |",
        report.suite, report.engine, report.version, report.avoidance, report.seed
    );
    for s in &report.startups {
        let _ = write!(out, " {s} |");
    }
    let _ = write!(out, "\n|---|{}\n", "---|".repeat(report.startups.len()));
    for (section, title) in SECTIONS {
        if suite.scenarios.iter().any(|s| s.section == *section) {
            let _ = write!(out, "| {section} {title} |");
            for s in &report.startups {
                let _ = write!(out, " {} |", cell(report, section, s));
            }
            out.push('\n');
        }
    }
    let _ = write!(out, "| **All** |");
    for s in &report.startups {
        let all = report.entries.iter().filter(|e| e.startup == *s).count();
        let _ = write!(out, " **{}/{all}** |", report.count(s, Verdict::Meets));
    }
    out.push('\n');
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
    out.push_str("\nNot shown by this suite:\n\n");
    for g in &suite.gaps {
        let _ = writeln!(out, "- RFC 9743 section {} ({}): {}", g.section, title(&g.section), g.why);
    }
    out
}

/// Returns the JSON of a report.
///
/// # Errors
/// If a number has no JSON form, which is a defect.
pub fn json(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string_pretty(report).map(|t| t + "\n")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222;background:#fff}\
table{border-collapse:collapse;margin:.6em 0}td,th{border:1px solid #ccc;padding:.2em .5em;text-align:left;vertical-align:top}\
td.n{text-align:right;font-variant-numeric:tabular-nums}.meets{background:#e3f2e3}.does-not-meet{background:#f7dada;font-weight:600}\
.undecided{background:#fdf3d0}.not-observed{background:#eee}.about{color:#555;margin:.2em 0}h2{margin-top:1.6em}h3{margin:1em 0 .2em}\
.bar{display:flex;height:1.1em;width:20em;border:1px solid #999}.bar i{display:block}";

fn class(v: Verdict) -> &'static str {
    match v {
        Verdict::Meets => "meets",
        Verdict::DoesNotMeet => "does-not-meet",
        Verdict::Undecided => "undecided",
        Verdict::NotObserved => "not-observed",
    }
}

/// Returns one page that needs nothing else, by sections of RFC 9743.
pub fn html(suite: &Suite, report: &Report) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Suite {0}</title><style>{STYLE}</style>\n\
         <h1>Suite {0}</h1><p>Startups with {1} as avoidance, engine {2} {3}, seed {4}. A criterion is met if the whole 95 % \
         interval of the median excess over its limit is at most zero, not met if all of it is above, and otherwise undecided. \
         Limits refer to <code>standard</code> (slow start of RFC 5681) and <code>hystart</code> (the default of Linux) in the \
         same run.</p>\n<table><tr><th>Startup<th>Criteria<th>Meets<th>Does not meet<th>Undecided</tr>\n",
        escape(&report.suite),
        escape(&report.avoidance),
        escape(&report.engine),
        escape(&report.version),
        report.seed
    );
    for s in &report.startups {
        let of = |v| report.count(s, v);
        let all = report.entries.iter().filter(|e| e.startup == *s).count().max(1);
        let share = |v| of(v) as f64 * 100.0 / all as f64;
        let _ = writeln!(
            out,
            "<tr><td>{}<td><div class=bar><i class=meets style=\"width:{:.1}%\"></i><i class=does-not-meet \
             style=\"width:{:.1}%\"></i><i class=undecided style=\"width:{:.1}%\"></i></div><td class=n>{}<td class=n>{}<td class=n>{}</tr>",
            escape(s),
            share(Verdict::Meets),
            share(Verdict::DoesNotMeet),
            share(Verdict::Undecided),
            of(Verdict::Meets),
            of(Verdict::DoesNotMeet),
            of(Verdict::Undecided)
        );
    }
    out.push_str("</table>\n");
    for (section, title) in SECTIONS {
        let of_section: Vec<&Scenario> = suite.scenarios.iter().filter(|s| s.section == *section).collect();
        let gap = suite.gaps.iter().find(|g| g.section == *section);
        if of_section.is_empty() && gap.is_none() {
            continue;
        }
        let _ = writeln!(out, "<h2>RFC 9743 section {section}: {title}</h2>");
        if let Some(g) = gap {
            let _ = writeln!(out, "<p>Not shown by this suite. {}</p>", escape(&g.why));
        }
        for s in of_section {
            scenario(&mut out, s, report);
        }
    }
    out.push_str("</html>\n");
    out
}

fn scenario(out: &mut String, s: &Scenario, report: &Report) {
    let mut what = format!("path {}", s.study.path);
    for (key, value) in [("size", &s.study.size), ("duration", &s.study.duration), ("app", &s.study.app)] {
        if let Some(v) = value {
            let _ = write!(what, "; {key} {v}");
        }
    }
    if !s.study.against.is_empty() {
        let _ = write!(what, "; against {}", s.study.against.join(", "));
    }
    for (key, value) in &s.study.set {
        let _ = write!(what, "; {key}={value}");
    }
    let _ = writeln!(
        out,
        "<h3>{}: {}</h3><p class=about>{}; {} runs</p><p class=about>From: {}. Not tested: {}</p>",
        escape(&s.name),
        escape(&s.question),
        escape(&what),
        s.study.runs.unwrap_or_default(),
        escape(&s.source),
        escape(&s.not_tested)
    );
    out.push_str("<table><tr><th>Startup");
    for c in &s.criteria {
        let _ = write!(out, "<th>{}", escape(&c.text));
    }
    out.push_str("</tr>\n");
    for startup in &report.startups {
        let _ = write!(out, "<tr><td>{}", escape(startup));
        for c in &s.criteria {
            let mine = |e: &&Entry| e.scenario == s.name && e.criterion == c.text && e.startup == *startup;
            if let Some(e) = report.entries.iter().find(mine) {
                let decide =
                    e.runs_to_decide.map_or(String::new(), |n| format!(", about {n} runs would decide"));
                let _ = write!(
                    out,
                    "<td class={}>{}: {} (limit {}){decide}",
                    class(e.verdict),
                    e.verdict.word(),
                    number(e.value),
                    number(e.limit)
                );
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}
