//! The table of a decision.

use maud::{Markup, html};
use slowstart_study::decision::{Change, Decision, Figure, Standing, role};
use slowstart_study::price::share;
use slowstart_study::record::Class;
use slowstart_study::stats::FEWEST_PAIRS;
use slowstart_study::summary::{Measure, Summary};
use slowstart_study::words::{RECONSTRUCTED, bytes, delay, list, marked, number, signed, spread};

/// A column of the table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Column {
    Of(Measure),
    Exit,
    Harm,
}

/// The name of a column and its unit.
fn heading(column: Column, d: &Decision) -> (String, &'static str) {
    let size = || d.baseline().and_then(|b| b.summary.rows[0].size_bytes).map_or("all".to_string(), bytes);
    match column {
        Column::Of(Measure::ObjectMedian) => ("an object".into(), "median"),
        Column::Of(Measure::ObjectP95) => ("an object".into(), "95th percentile"),
        Column::Of(Measure::Time1MB) => ("1 MB".into(), ""),
        Column::Of(Measure::Time10MB) => ("10 MB".into(), ""),
        Column::Of(Measure::Completion) => (size(), ""),
        Column::Of(Measure::ExitTime) => ("at".into(), "s"),
        Column::Of(Measure::ExitWindow) => ("window".into(), "BDP"),
        Column::Of(Measure::StartupLost) => ("lost".into(), "packets"),
        Column::Of(Measure::QueueDelay) => ("longest queue".into(), ""),
        Column::Of(Measure::Goodput) => ("goodput".into(), ""),
        Column::Exit => ("leaves slow start".into(), ""),
        Column::Harm => ("a CUBIC flow got".into(), ""),
    }
}

/// The columns that have a value and say something of their own; what decides is the first.
fn columns(d: &Decision) -> Vec<Column> {
    let all: Vec<&Summary> = d.standings.iter().map(|s| &s.summary).collect();
    let is_10mb = all.iter().all(|s| s.rows[0].size_bytes == Some(10_000_000));
    let has = |m: Measure| match m {
        Measure::Goodput => d.by == m,
        // They have the pauses of the user in them.
        Measure::Time10MB | Measure::Time1MB | Measure::Completion if d.by == Measure::ObjectMedian => false,
        Measure::Completion if is_10mb && d.by == Measure::Time10MB => false,
        m => all.iter().any(|s| s.typical(m).is_some()),
    };
    let times = [
        Measure::ObjectMedian,
        Measure::ObjectP95,
        Measure::Time10MB,
        Measure::Time1MB,
        Measure::Completion,
        Measure::Goodput,
    ];
    let mut shown: Vec<Column> = times.into_iter().filter(|m| has(*m)).map(Column::Of).collect();
    shown.sort_by_key(|c| *c != Column::Of(d.by));
    shown.push(Column::Exit);
    let rest = [Measure::ExitTime, Measure::ExitWindow, Measure::StartupLost, Measure::QueueDelay];
    shown.extend(rest.into_iter().filter(|m| has(*m)).map(Column::Of));
    shown.extend(d.has_harm().then_some(Column::Harm));
    shown
}

/// The class of a cell of this column; `more` is not shown on a phone.
fn class(column: Column, d: &Decision) -> Option<&'static str> {
    match column {
        Column::Exit => Some("text"),
        Column::Of(m) if m != d.by && !matches!(m, Measure::StartupLost | Measure::ObjectP95) => Some("more"),
        _ => None,
    }
}

/// Returns the table of a decision, with a line for each startup: the baseline's own values, and the
/// differences of the others from it.
pub fn table(d: &Decision) -> Markup {
    let Some(base) = d.baseline() else { return html! { p { "There are no runs to show." } } };
    let columns = columns(d);
    let (label, runs) = (&base.summary.label, d.runs());
    html! {
        // A scrolling region must be reachable by keyboard.
        div class="scroll" tabindex="0" role="region" aria-label="Startups" {
            table class="startups" {
                thead {
                    tr {
                        th scope="col" { "startup" }
                        @for c in &columns {
                            @let (name, unit) = heading(*c, d);
                            th scope="col" class=[class(*c, d)] {
                                (name) @if !unit.is_empty() { br; small { (unit) } }
                            }
                        }
                    }
                }
                tbody {
                    @for (i, s) in d.standings.iter().enumerate() {
                        tr class=[(i == 0).then_some("baseline")] {
                            th scope="row" {
                                (marked(&s.summary.label))
                                @if s.unbeaten { " " b class="front" title="a best trade-off" { "★" } }
                                @if let Some(need) = s.need.filter(|n| n.is_rare()) { small { "needs " (need.name()) } }
                            }
                            @for c in &columns { (cell(d, s, *c)) }
                        }
                    }
                }
            }
        }
        @let hidden: Vec<String> =
            columns.iter().filter(|c| class(**c, d) == Some("more")).map(|c| heading(*c, d).0).collect();
        @if !hidden.is_empty() { p class="note phone" { "On a wider screen also: " (list(&hidden)) "." } }
        p class="note" {
            @if d.standings.len() > 1 {
                "Times are differences from " b { (label) }
                @if let Some(role) = role(base.summary.rows[0], label) { ", " (role) "," }
                " run by run over the same path: the median, and below it the interval that holds it with 95 % confidence"
                @if runs < FEWEST_PAIRS { " (the whole range where there are fewer than six runs, which decide nothing)" }
                ". " span class="good" { "Green" } " is better and " span class="bad" { "red" } " worse, at 95 % confidence, of losses, queue and harm also where more runs are worse than better; below "
                (number(100.0 * d.margin())) " % counts as none; ? is not shown by this many runs. "
                b class="front" { "★" } " no other is better in time, losses"
                @if d.has_harm() { ", delay or harm" } @else { " or delay" } " without being worse in another. "
                @if d.has_harm() { "A CUBIC flow got: its goodput while the new flow transfers 10 MB, as a share of its goodput alone; for others the difference in percentage points. " }
            }
            @if d.by == Measure::ObjectMedian {
                "An object: from its request to its last byte; differences are over the objects that both asked for in a run. "
            }
            "Lost: the median; in parentheses the runs that lose more than that, or after a ? those whose transfer ended before slow start did, so that losses are not shown. "
            @if d.standings.iter().any(|s| marked(&s.summary.label) != s.summary.label) { (RECONSTRUCTED) " " }
            @for class in Class::ALL {
                @if d.standings.iter().any(|s| s.summary.classes().iter().any(|c| c.0 == class)) {
                    b { (class.how()) } ": " (class.brief()) ". "
                }
            }
            @if runs == 1 { "A single run has no interval, so it cannot be said whether a difference is chance." }
        }
    }
}

/// Returns the cell of a startup.
fn cell(d: &Decision, s: &Standing, column: Column) -> Markup {
    let figure = match column {
        Column::Exit => {
            let runs = s.summary.rows.len();
            return html! {
                td class="text" { @for (class, n) in s.summary.classes() { span title=(class.meaning()) { (class.how()) @if n < runs { " " (n) "/" (runs) } } } }
            };
        }
        Column::Of(Measure::ExitTime | Measure::ExitWindow) => None,
        Column::Of(m) => Some(Figure::Of(m)),
        Column::Harm => Some(Figure::OthersGot),
    };
    let difference = figure.and_then(|f| d.against(&s.summary, f));
    let (tone, unsure) = match difference.map(|x| x.change) {
        Some(Change::Better) => (Some("good"), ""),
        Some(Change::Worse) => (Some("bad"), ""),
        Some(Change::NotShown { .. } | Change::TooFew) => (None, "\u{a0}?"),
        _ => (None, ""),
    };
    let price = figure.filter(|f| d.costs().any(|c| c == *f)).and_then(|f| d.price(&s.summary, f));
    let tone = match price {
        // Nothing that broke a rule is better or worse.
        _ if s.rank.is_none() => None,
        Some(p) if p.outweighs() => Some("bad"),
        Some(p) if p.is_unseen() => None,
        _ => tone,
    };
    let classes: Vec<&str> = tone.into_iter().chain(class(column, d)).collect();
    let classes = (!classes.is_empty()).then(|| classes.join(" "));
    let relative = match column {
        Column::Of(m) if Figure::Of(m).is_relative() => Some("\u{a0}%"),
        Column::Harm => Some(" points"),
        _ => None,
    };
    if let (Some(unit), Some(x)) = (relative, difference) {
        if x.never[0] > 0 || !x.median.mid.is_finite() {
            return html! {
                td class=[classes] {
                    @if x.never[0] > 0 { "never" small { "in " (share(x.never[0], x.runs)) } } @else { "completes" small { "where " (share(x.never[1], x.runs)) " of the baseline did not" } }
                }
            };
        }
        let [low, high] = [x.median.low, x.median.high].map(signed);
        return html! {
            td class=[classes] { (signed(x.median.mid)) (unit) (unsure) @if low != high { small { (low) " to " (high) } } }
        };
    }
    if column == Column::Of(Measure::StartupLost) {
        let range = s.summary.typical(Measure::StartupLost).and_then(|(m, _)| spread(&m).range);
        return html! {
            td class=[classes] { (s.summary.lost(|m| spread(m).mid)) @if let Some(range) = range { small { (range) } } }
        };
    }
    let of = match column {
        Column::Of(m) => s.summary.typical(m),
        Column::Harm | Column::Exit => d.others_got(&s.summary).map(|m| (m, s.summary.rows.len())),
    };
    let unit = match column {
        Column::Of(m) if m.is_time() => "\u{a0}s",
        Column::Of(Measure::Goodput) => "\u{a0}Mbit/s",
        Column::Harm => "\u{a0}%",
        _ => "",
    };
    html! {
        td class=[classes] {
            @if let Some((median, runs)) = of {
                @if column == Column::Of(Measure::QueueDelay) {
                    (delay(median.mid))
                    @if median.low < median.high { small { (delay(median.low)) " to " (delay(median.high)) } }
                } @else {
                    @let shown = spread(&median);
                    (shown.mid) (unit)
                    @if let Some(range) = shown.range { small { (range) } }
                }
                @if runs < s.summary.rows.len() { small { "of " (number(runs as f64)) "/" (s.summary.rows.len()) " runs" } }
            } @else { "-" }
        }
    }
}
