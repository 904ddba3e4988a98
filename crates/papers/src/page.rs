//! The HTML page of an experiment: its claims with verdicts, its charts and its table of runs.

use crate::claim::{Claim, Origin, Verdict};
use crate::experiment::{Column, Comparison, Experiment};
use crate::figure;
use crate::judge::{Judged, Measured, bound_text};
use crate::result::RunResult;
use crate::statistic::statistic;
use crate::web_figures;
use maud::{Markup, html};
use slowstart_report::{Script, document};
use slowstart_study::measures::Measure::{ExitTime, ExitWindow, Goodput, Lost, PeakInflight};
use slowstart_study::record::Class;
use slowstart_study::stats;
use slowstart_study::words;

/// The runs of each startup in each study, in the order of the runs.
fn groups(results: &[RunResult]) -> Vec<Vec<&RunResult>> {
    let mut groups: Vec<Vec<&RunResult>> = Vec::new();
    for s in results {
        match groups.iter_mut().find(|g| g[0].study == s.study && g[0].label == s.label) {
            Some(g) => g.push(s),
            None => groups.push(vec![s]),
        }
    }
    groups
}

fn median(g: &[&RunResult], f: impl Fn(&RunResult) -> Option<f64>) -> String {
    let values: Vec<f64> = g.iter().filter_map(|s| f(s)).collect();
    stats::median(&values).map_or("-".into(), |m| words::number(m.mid))
}

/// The value of a column.
fn column(g: &[&RunResult], c: &Column) -> String {
    let values: Vec<f64> = g.iter().filter_map(|s| c.measure.of(s, 0)).collect();
    statistic(c.take, f64::NAN, &values).map_or("-".into(), |(value, ..)| words::number(value))
}

/// Shares of runs, in per cent, in which the startup left early, with the link full and late. The rest did not
/// leave.
fn classes(g: &[&RunResult]) -> String {
    let share = |class: Class| {
        let n = g.iter().filter(|s| s.rows[0].class == class).count();
        words::number((100.0 * n as f64 / g.len() as f64).round())
    };
    [Class::Early, Class::LinkFull, Class::Late].map(share).join(" / ")
}

fn medians(results: &[RunResult], more: &[Column]) -> Markup {
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "study" }
                    th scope="col" class="text" { "startup" }
                    @for h in ["runs", "early / choke / late (%)", "exit (s)", "cwnd at exit (BDP)",
                        "capacity (s)", "first loss (s)", "peak inflight (BDP)", "lost packets", "goodput (Mbit/s)"] {
                        th scope="col" { (h) }
                    }
                    @for c in more { th scope="col" { (c.name) } }
                } }
                tbody {
                    @for g in &groups(results) {
                        tr {
                            th scope="row" { (g[0].study) }
                            td class="text" { (g[0].label) }
                            td { (g.len()) }
                            td { (classes(g)) }
                            td { (median(g, |s| ExitTime.of(&s.rows[0]))) }
                            td { (median(g, |s| ExitWindow.of(&s.rows[0]))) }
                            td { (median(g, |s| s.rows[0].capacity_time_s)) }
                            td { (median(g, |s| s.rows[0].first_loss_time_s)) }
                            td { (median(g, |s| PeakInflight.of(&s.rows[0]))) }
                            td { (median(g, |s| Lost.of(&s.rows[0]))) }
                            td { (median(g, |s| Goodput.of(&s.rows[0]))) }
                            @for c in more { td { (column(g, c)) } }
                        }
                    }
                }
            }
        }
        p class="note" {
            "Medians over the runs, for the flow studied; a dash if no run has the value. Early, choke and late are shares of "
            "the runs, by the true capacity of the path; in the remaining runs slow start did not end."
        }
    }
}

/// The values of another simulator, each beside ours.
fn beside(b: &Comparison, results: &[RunResult]) -> Markup {
    let groups = groups(results);
    html! {
        h2 { "Comparison" }
        p { (b.source) }
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    @for h in ["study", "startup"] { th scope="col" class="text" { (h) } }
                    @for c in &b.columns { th scope="col" { (c.name) } }
                } }
                tbody {
                    @for (study, startup, values) in &b.rows {
                        @if let Some(g) = groups.iter().find(|g| g[0].study == *study && g[0].label == *startup) {
                            tr {
                                th scope="row" { (study) }
                                td class="text" { (startup) }
                                @for (c, theirs) in b.columns.iter().zip(values) {
                                    td { (words::number(*theirs)) " | " b { (column(g, c)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
        p class="note" { "Theirs | " b { "ours" } "." }
    }
}

/// The measured values, a row for each study and startup, with the bound that is applied to it.
fn measured(claim: &Claim, all: &[Measured]) -> Markup {
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead { tr { @for h in ["study and startup", "measured", "95 % interval", "bound", "runs"] { th scope="col" { (h) } } } }
                tbody {
                    @for m in all {
                        tr {
                            th scope="row" { (m.of) }
                            td { (words::number(m.value)) }
                            td { (words::number(m.low)) " to " (words::number(m.high)) }
                            td { (bound_text(claim, m.bound)) }
                            td { (m.runs) }
                        }
                    }
                }
            }
        }
    }
}

/// With more measured values than this they are a table instead of a sentence.
const FEW: usize = 2;

/// The colour of a verdict, in the palette for all kinds of colour vision (Okabe & Ito, 2008).
const fn colour(v: Verdict) -> &'static str {
    match v {
        Verdict::Holds => "#009e73",
        Verdict::Differs => "#d55e00",
        Verdict::Undecided => "#e69f00",
        Verdict::NotStated | Verdict::CannotShow | Verdict::NotCheckable => "#999999",
    }
}

fn judged(j: &Judged) -> Markup {
    let many = j.measured.len() > FEW;
    let varies = j.measured.windows(2).any(|m| m[0].bound != m[1].bound);
    html! {
        p class="verdict" id=(j.claim.id) style={ "border-left-color:" (colour(j.verdict)) } {
            b { (j.verdict.name()) } ": " (j.claim.says)
            @match j.claim.origin {
                Origin::Paper => {},
                Origin::Arithmetic => " (arithmetic, not counted)",
                Origin::Fitted => " (fitted, not counted)",
                Origin::Ours => " (ours, not the paper's)",
            }
        }
        p class="note" {
            @if !j.claim.claimed.is_empty() { "Claimed: " (j.claim.claimed) ". " }
            @if j.claim.measure.is_some() {
                "Bound: " @if many && varies { "a network each, in the table" } @else { (j.bound_text()) } ". "
                @if !many { "Measured: " (j.measured_text()) ". " }
            }
            (j.reason)
        }
        @if many { details { summary { "Measured" } (measured(j.claim, &j.measured)) } }
    }
}

/// The page. Equal input gives equal bytes.
pub fn html(e: &Experiment, claims: &[Judged], results: &[RunResult]) -> String {
    let mut studies: Vec<&str> = results.iter().map(|s| s.study.as_str()).collect();
    studies.dedup();
    let command = format!("slowstart reproduce {}", e.id);
    let body = html! {
        p class="about" { (e.figure) "; catalogue rows " (e.covers.join(", ")) }
        p { (e.about) }
        @let web = results.first().is_some_and(|s| s.web.is_some());
        @if !web && !results.is_empty() { (figure::charts(&studies, results)) }
        h2 { "Claims" }
        @for j in claims { (judged(j)) }
        @if !e.ours.is_empty() {
            h2 { "Values that the paper does not give, and our choices" }
            ul { @for o in &e.ours { li { (o) } } }
        }
        @if web {
            (web_figures::charts_and_table(&studies, results))
            @if let Some(b) = &e.beside { (beside(b, results)) }
        } @else if !results.is_empty() {
            h2 { "Runs" }
            (medians(results, &e.columns))
            @if let Some(b) = &e.beside { (beside(b, results)) }
        }
        h2 { "Command" }
        pre { code { (command) } }
    };
    document(&format!("{}: {}", e.id, e.title), &body, Script::Charts)
}
