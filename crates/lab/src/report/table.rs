//! The table of medians.

use super::Opinions;
use super::summary::{Measure, Standing, Summary, summarise};
use super::words::{number, spread};
use crate::record::Row;
use maud::{Markup, html};

/// The name of a column and its unit.
const fn heading(measure: Measure) -> (&'static str, &'static str) {
    match measure {
        Measure::Time1MB => ("1 MB", "s"),
        Measure::Time10MB => ("10 MB", "s"),
        Measure::Completion => ("all", "s"),
        Measure::ExitTime => ("exit", "s"),
        Measure::ExitWindow => ("window at exit", "BDP"),
        Measure::StartupLost => ("lost in startup", "packets"),
        Measure::QueueDelay => ("peak queue", "ms"),
        Measure::Goodput => ("goodput", "Mbit/s"),
    }
}

/// Returns the table of a recorded connection: what each startup would have done.
pub(super) fn opinions(o: &Opinions) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="What each would have done" {
            table {
                thead { tr { @for (i, h) in o.headers.iter().enumerate() { th scope="col" class=[(i == 1).then_some("text")] { (h) } } } }
                tbody {
                    @for line in &o.lines {
                        tr {
                            @for (i, cell) in line.iter().enumerate() {
                                @match i {
                                    0 => th scope="row" { (cell) },
                                    1 => td class="text" { (cell) },
                                    _ => td { (cell) },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the table of medians over runs, with a line for each startup.
pub fn table(rows: &[Row]) -> Markup {
    let summaries = summarise(rows);
    let all: Vec<&Summary> = summaries.iter().collect();
    let shown = |m: &Measure| all.iter().any(|s| s.typical(*m).is_some());
    let columns: Vec<_> = Measure::ALL.into_iter().filter(shown).map(|m| (m, m.standings(&all))).collect();
    let fewest = all.iter().map(|s| s.rows.len()).min();
    html! {
        @if let Some(fewest) = fewest {
            // A scrolling region must be reachable by keyboard.
            div class="scroll" tabindex="0" role="region" aria-label="Medians" {
                table {
                    thead {
                        tr {
                            th scope="col" { "startup" }
                            th scope="col" class="text" { "exit" }
                            @for (m, _) in &columns {
                                @let (name, unit) = heading(*m);
                                th scope="col" { (name) br; small { (unit) } }
                            }
                        }
                    }
                    tbody {
                        @for (i, s) in all.iter().enumerate() {
                            tr {
                                th scope="row" { (s.label) }
                                td class="text" {
                                    @for (class, n) in s.classes() {
                                        span { (class.name()) " " (n) "/" (s.rows.len()) }
                                    }
                                }
                                @for (m, standings) in &columns { (cell(s, *m, standings[i])) }
                            }
                        }
                    }
                }
            }
            p class="note" {
                "Medians over runs, with the interval that holds the true median with 95 % confidence below them"
                @if fewest < 6 { " (the whole range where there are fewer than six runs)" }
                ". " b { "Bold" } " is the best; " span class="even" { "= shaded" }
                " is no difference from it: the interval of the differences, run by run, includes 0. "
                @if fewest == 1 { "A single run has no interval, so it cannot be said whether a difference is chance." }
            }
        } @else {
            p { "There are no runs to show." }
        }
    }
}

/// Returns the cell of a median.
fn cell(s: &Summary, m: Measure, standing: Standing) -> Markup {
    let class = match standing {
        Standing::Best => "best",
        Standing::Even => "even",
        Standing::Other => "",
    };
    html! {
        td class=(class) {
            @if let Some((median, runs)) = s.typical(m) {
                @let shown = spread(&median);
                @if standing == Standing::Even { "= " }
                (shown.mid)
                @if let Some(range) = shown.range { small { (range) } }
                @if runs < s.rows.len() { small { "of " (number(runs as f64)) "/" (s.rows.len()) " runs" } }
            } @else { "-" }
        }
    }
}
