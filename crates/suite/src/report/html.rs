//! The page.

use super::{after, chart, number, runs_of, sentences, value_and_limit};
use crate::judge::Verdict;
use crate::run::{Entry, Report};
use crate::scenario::{SECTIONS, Scenario, Suite};
use maud::{Markup, html};
use slowstart_report::{Script, document};
use slowstart_study::words::tied;

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
    let body = html! {
        p class="verdict" { (tied(&sentences(report).join(" "))) }
        p {
            (report.engine) " " (report.version) (after(report)) ", seed " (report.seed)
            ". A criterion is met if the whole 95 % interval of the median excess over its limit is at most zero, not met if all of it is above, and otherwise undecided. "
            "Limits refer to " code { "standard" } " (slow start of RFC 5681) and " code { "hystart" }
            " (the default of Linux) in the same run: what is met by such a limit is no worse than slow start, or than today's default."
        }
        (totals(report))
        @for note in &report.notes { p { (tied(note)) } }
        (failures(report))
        (grid(suite, report))
        @for (section, title) in SECTIONS {
            @let of_section: Vec<&Scenario> = suite.scenarios.iter().filter(|s| s.section == *section).collect();
            @let gap = suite.gaps.iter().find(|g| g.section == *section);
            @if !of_section.is_empty() || gap.is_some() {
                h2 { "RFC 9743 section " (section) ": " (title) }
                @if let Some(gap) = gap { p { "Not shown by this suite. " (gap.why) } }
                @for s in of_section { (scenario(s, report)) }
            }
        }
    };
    document(&format!("Suite {}", report.suite), &body, Script::Tables)
}

/// How many criteria each startup meets.
fn totals(report: &Report) -> Markup {
    let bar = |s: &str| {
        let of = |v| report.count(s, v);
        let all = report.entries.iter().filter(|e| e.startup == s).count().max(1);
        let share = |v| format!("width:{:.1}%", of(v) as f64 * 100.0 / all as f64);
        html! {
            div class="bar" {
                @for v in [Verdict::Meets, Verdict::DoesNotMeet, Verdict::Undecided] { i class=(class(v)) style=(share(v)) {} }
            }
        }
    };
    let counted = [Verdict::Meets, Verdict::DoesNotMeet, Verdict::Undecided];
    html! {
        table class="stack" {
            thead { tr { @for h in ["Startup", "Criteria", "Meets", "Does not meet", "Undecided"] { th scope="col" { (h) } } } }
            tbody {
                @for s in &report.startups {
                    tr {
                        th scope="row" { (s) }
                        td { (bar(s)) }
                        @for v in counted { td data-label=(v.word()) { (report.count(s, v)) } }
                    }
                }
            }
        }
    }
}

/// What is not met or undecided, and what is worse than today's default: first of all.
fn failures(report: &Report) -> Markup {
    let of = |v: Verdict| report.entries.iter().filter(move |e| e.verdict == v);
    let only = report.entries.iter().filter(|e| e.is_worse_than_default());
    let all: Vec<(&Entry, &str)> = of(Verdict::DoesNotMeet)
        .map(|e| (e, e.verdict.word()))
        .chain(of(Verdict::Undecided).map(|e| (e, e.verdict.word())))
        .chain(only.map(|e| (e, "no worse than slow start, but worse than today's default")))
        .collect();
    if all.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Not met, undecided, or worse than today's default" }
        table class="stack" {
            thead {
                tr {
                    @for h in ["Startup", "Scenario", "Criterion", "Verdict"] { th scope="col" class="text" { (h) } }
                    @for h in ["Value", "Limit", "hystart"] { th scope="col" { (h) } }
                }
            }
            tbody {
                @for (e, word) in all {
                    @let (value, limit) = value_and_limit(e);
                    tr {
                        th scope="row" { (e.startup) }
                        td class="text" { a href={ "#" (e.scenario) } { (e.scenario) } }
                        td class="text" { (e.criterion) }
                        td class={ "text " (class(e.verdict)) } { (word) }
                        td data-label="value" { (value) }
                        td data-label="limit" { (limit) }
                        td data-label="hystart" { (number(e.default_value)) }
                    }
                }
            }
        }
    }
}

/// Who meets what: a line a scenario, a column a startup, by the worst verdict on a criterion of it.
fn grid(suite: &Suite, report: &Report) -> Markup {
    let worst = |scenario: &str, startup: &str| {
        let of = |v| {
            report.entries.iter().any(|e| e.scenario == scenario && e.startup == startup && e.verdict == v)
        };
        [Verdict::DoesNotMeet, Verdict::Undecided, Verdict::Meets, Verdict::NotObserved]
            .into_iter()
            .find(|v| of(*v))
    };
    html! {
        h2 { "Who meets what" }
        div class="scroll" tabindex="0" role="region" aria-label="Who meets what" {
            table class="who" {
                thead { tr { th scope="col" { "Scenario" } @for s in &report.startups { th scope="col" { (s) } } } }
                tbody {
                    @for s in &suite.scenarios {
                        tr {
                            th scope="row" { a href={ "#" (s.name) } { (s.name) } " (" (s.section) ")" }
                            @for startup in &report.startups {
                                @match worst(&s.name, startup) {
                                    Some(v) => td class=(class(v)) title=(v.word()) { (sign(v)) },
                                    None => td title="not run" { "-" },
                                }
                            }
                        }
                    }
                }
            }
        }
        p class="about" { "✓ meets every criterion; ✗ does not meet one; ? undecided; - not run or not observed." }
    }
}

fn sign(v: Verdict) -> char {
    match v {
        Verdict::Meets => '✓',
        Verdict::DoesNotMeet => '✗',
        Verdict::Undecided => '?',
        Verdict::NotObserved => '-',
    }
}

/// What a scenario runs.
fn what(s: &Scenario) -> String {
    let mut parts = vec![format!("path {}", s.study.path)];
    let given = [("size", &s.study.size), ("duration", &s.study.duration), ("app", &s.study.app)];
    parts.extend(given.into_iter().filter_map(|(key, value)| Some(format!("{key} {}", value.as_ref()?))));
    if !s.study.against.is_empty() {
        parts.push(format!("against {}", s.study.against.join(", ")));
    }
    parts.extend(s.study.set.iter().map(|(key, value)| format!("{key}={value}")));
    parts.join("; ")
}

fn scenario(s: &Scenario, report: &Report) -> Markup {
    let cell = |startup: &str, criterion: &str| {
        let mine = |e: &&Entry| e.scenario == s.name && e.criterion == criterion && e.startup == startup;
        report.entries.iter().find(mine)
    };
    html! {
        h3 id=(s.name) { (s.name) ": " (s.question) }
        p class="about" { (what(s)) "; " (runs_of(report, &s.name)) }
        p class="about" { "From: " (s.source) ". Not tested: " (s.not_tested) }
        @if let Some(l) = report.left_out.iter().find(|l| l.scenario == s.name) {
            p { "Not run: " (l.why) }
        } @else {
            table class="stack" data-plain="" {
                thead { tr { th scope="col" { "Startup" } @for c in &s.criteria { th scope="col" { (c.says()) } } } }
                tbody {
                    @for startup in &report.startups {
                        tr {
                            th scope="row" { (startup) }
                            @for c in &s.criteria {
                                @if let Some(e) = cell(startup, &c.text) {
                                    @let (value, limit) = value_and_limit(e);
                                    td class={ "text " (class(e.verdict)) } data-label=(c.says()) {
                                        (e.verdict.word()) ": " (value) " (limit " (limit) "; hystart " (number(e.default_value)) ")"
                                        @if let Some(planned) = e.planned_in_words() { ", " (e.values.len()) " runs; " (planned) }
                                        @if let Some(n) = e.runs_to_decide { ", about " (n) " runs would decide" }
                                    }
                                } @else {
                                    td {}
                                }
                            }
                        }
                    }
                }
            }
            @for c in &s.criteria { (chart::chart(s, c, report)) }
        }
    }
}
