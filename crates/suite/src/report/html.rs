//! The page.

use super::{after, chart, number, runs_of, sentences, value_and_limit};
use crate::judge::Verdict;
use crate::run::{Entry, Report};
use crate::scenario::{SECTIONS, Scenario, Suite};
use std::fmt::Write;

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = include_str!("style.css");

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
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Suite {0}</title><style>{STYLE}</style>\n\
         <h1>Suite {0}</h1><p class=verdict>{5}</p><p>{2} {3}{1}, seed {4}. A criterion is met if the whole 95 % \
         interval of the median excess over its limit is at most zero, not met if all of it is above, and otherwise undecided. \
         Limits refer to <code>standard</code> (slow start of RFC 5681) and <code>hystart</code> (the default of Linux) in the \
         same run: what is met by such a limit is no worse than slow start, or than today's default.</p>\n<table><tr><th>Startup<th>Criteria<th>Meets<th>Does not meet<th>Undecided</tr>\n",
        escape(&report.suite),
        escape(&after(report)),
        escape(&report.engine),
        escape(&report.version),
        report.seed,
        escape(&sentences(report).join(" "))
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
    for note in &report.notes {
        let _ = writeln!(out, "<p>{}</p>", escape(note));
    }
    failures(&mut out, report);
    grid(&mut out, suite, report);
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

/// What is not met or undecided, and what is worse than today's default: first of all.
fn failures(out: &mut String, report: &Report) {
    let of = |v: Verdict| report.entries.iter().filter(move |e| e.verdict == v);
    let only = report.entries.iter().filter(|e| e.is_worse_than_default());
    let all: Vec<(&Entry, &str)> = of(Verdict::DoesNotMeet)
        .map(|e| (e, e.verdict.word()))
        .chain(of(Verdict::Undecided).map(|e| (e, e.verdict.word())))
        .chain(only.map(|e| (e, "no worse than slow start, but worse than today's default")))
        .collect();
    if all.is_empty() {
        return;
    }
    out.push_str("<h2>Not met, undecided, or worse than today's default</h2><div class=grid><table><tr><th>Startup<th>Scenario<th>Criterion<th>Verdict<th>Value<th>Limit<th>hystart</tr>\n");
    for (e, word) in all {
        let (value, limit) = value_and_limit(e);
        let _ = writeln!(
            out,
            "<tr><td>{}<td><a href=\"#{1}\">{1}</a><td>{2}<td class={3}>{word}<td class=n>{value}<td class=n>{limit}<td class=n>{4}</tr>",
            escape(&e.startup),
            escape(&e.scenario),
            escape(&e.criterion),
            class(e.verdict),
            number(e.default_value)
        );
    }
    out.push_str("</table></div>\n");
}

/// Who meets what: a line a scenario, a column a startup, by the worst verdict on a criterion of it.
fn grid(out: &mut String, suite: &Suite, report: &Report) {
    out.push_str("<h2>Who meets what</h2><div class=grid><table><tr><th>Scenario");
    for s in &report.startups {
        let _ = write!(out, "<th>{}", escape(s));
    }
    out.push_str("</tr>\n");
    for s in &suite.scenarios {
        let _ = write!(out, "<tr><td><a href=\"#{0}\">{0}</a> ({1})", escape(&s.name), s.section);
        for startup in &report.startups {
            let of = |v| {
                report.entries.iter().any(|e| e.scenario == s.name && e.startup == *startup && e.verdict == v)
            };
            let worst = [Verdict::DoesNotMeet, Verdict::Undecided, Verdict::Meets, Verdict::NotObserved];
            match worst.into_iter().find(|v| of(*v)) {
                Some(v) => {
                    let _ = write!(out, "<td class={} title=\"{}\">{}", class(v), v.word(), sign(v));
                }
                None => out.push_str("<td title=\"not run\">-"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div><p class=about>✓ meets every criterion; ✗ does not meet one; ? undecided; - not run or not observed.</p>\n");
}

fn sign(v: Verdict) -> char {
    match v {
        Verdict::Meets => '✓',
        Verdict::DoesNotMeet => '✗',
        Verdict::Undecided => '?',
        Verdict::NotObserved => '-',
    }
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
        "<h3 id=\"{0}\">{0}: {1}</h3><p class=about>{2}; {3}</p><p class=about>From: {4}. Not tested: {5}</p>",
        escape(&s.name),
        escape(&s.question),
        escape(&what),
        runs_of(report, &s.name),
        escape(&s.source),
        escape(&s.not_tested)
    );
    if let Some(l) = report.left_out.iter().find(|l| l.scenario == s.name) {
        let _ = writeln!(out, "<p>Not run: {}</p>", escape(&l.why));
        return;
    }
    out.push_str("<table><tr><th>Startup");
    for c in &s.criteria {
        let _ = write!(out, "<th>{}", escape(&c.says()));
    }
    out.push_str("</tr>\n");
    for startup in &report.startups {
        let _ = write!(out, "<tr><td>{}", escape(startup));
        for c in &s.criteria {
            let mine = |e: &&Entry| e.scenario == s.name && e.criterion == c.text && e.startup == *startup;
            if let Some(e) = report.entries.iter().find(mine) {
                let decide =
                    e.runs_to_decide.map_or(String::new(), |n| format!(", about {n} runs would decide"));
                let (value, limit) = value_and_limit(e);
                let _ = write!(
                    out,
                    "<td class={}>{}: {value} (limit {limit}; hystart {}){decide}",
                    class(e.verdict),
                    e.verdict.word(),
                    number(e.default_value)
                );
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    for c in &s.criteria {
        out.push_str(&chart::chart(s, c, report));
    }
}
