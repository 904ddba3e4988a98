//! The table of a decision.

use maud::{Markup, html};
use slowstart_study::decision::{Change, Decision, Standing, role};
use slowstart_study::figures::tells;
use slowstart_study::measures::{Measure, Unit};
use slowstart_study::price::share;
use slowstart_study::record::Class;
use slowstart_study::stats::FEWEST_PAIRS;
use slowstart_study::summary::Summary;
use slowstart_study::words::{RECONSTRUCTED, bytes, delay, list, marked, number, signed, spread};

/// A column of the table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Column {
    Of(Measure),
    Exit,
}

/// The name of a column and its unit.
fn heading(column: Column, d: &Decision) -> (String, &'static str) {
    let size = || d.baseline().and_then(|b| b.summary.rows[0].size_bytes);
    match column {
        Column::Of(m) => {
            let [name, unit] = m.entry().title;
            let size = size().filter(|_| m == Measure::Completion);
            let name = size.map_or(name.to_string(), bytes);
            let is_size = name.starts_with(|c: char| c.is_ascii_digit());
            // A number keeps its unit.
            (if is_size { name.replace(' ', "\u{a0}") } else { name }, unit)
        }
        Column::Exit => ("leaves slow start".into(), ""),
    }
}

/// The columns that have a value and say something of their own; what decides is the first.
fn columns(d: &Decision) -> Vec<Column> {
    let all: Vec<&Summary> = d.standings.iter().map(|s| &s.summary).collect();
    let tell = Measure::ALL.iter().filter(|m| tells(d, &all, **m));
    let (mut times, rest): (Vec<Measure>, Vec<Measure>) = tell.partition(|m| m.is_relative());
    times.sort_by_key(|m| *m != d.by);
    let of = |all: Vec<Measure>| all.into_iter().map(Column::Of);
    of(times).chain([Column::Exit]).chain(of(rest)).collect()
}

/// The class of a cell of this column; `more` is not shown on a phone.
fn class(column: Column, d: &Decision) -> Option<&'static str> {
    match column {
        Column::Exit => Some("text"),
        Column::Of(m) if m == d.by => None,
        Column::Of(Measure::StartupLost | Measure::ObjectP95 | Measure::OthersGot) => None,
        Column::Of(_) => Some("more"),
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
                ". " span class="good" { "Green" } " is better and " span class="bad" { "red" } " worse, at 95 % confidence, of losses, queue and harm also where more runs are worse than better; within "
                (number(100.0 * d.margin())) " %, with the whole interval, counts as none; ? is not shown by this many runs. "
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
    let Column::Of(measure) = column else {
        let runs = s.summary.rows.len();
        return html! {
            td class="text" { @for (class, n) in s.summary.classes() { span title=(class.meaning()) { (class.how()) @if n < runs { " " (n) "/" (runs) } } } }
        };
    };
    let (unit, difference) = (measure.entry().unit, d.against(&s.summary, measure));
    let (tone, unsure) = match difference.map(|x| x.change) {
        Some(Change::Better) => (Some("good"), ""),
        Some(Change::Worse) => (Some("bad"), ""),
        Some(Change::NotShown { .. } | Change::TooFew) => (None, "\u{a0}?"),
        _ => (None, ""),
    };
    let price = d.costs().find(|c| *c == measure).and_then(|m| d.price(&s.summary, m));
    let tone = match price {
        // Nothing that broke a rule is better or worse.
        _ if s.rank.is_none() => None,
        Some(p) if p.outweighs() => Some("bad"),
        Some(p) if p.is_unseen() => None,
        _ => tone,
    };
    let classes: Vec<&str> = tone.into_iter().chain(class(column, d)).collect();
    let classes = (!classes.is_empty()).then(|| classes.join(" "));
    if let Some(x) = difference.filter(|_| measure.is_shown_as_difference()) {
        let points = if measure.is_relative() { "\u{a0}%" } else { " points" };
        if x.never[0] > 0 || !x.median.mid.is_finite() {
            return html! {
                td class=[classes] {
                    @if x.never[0] > 0 { "never" small { "in " (share(x.never[0], x.runs)) } } @else { "completes" small { "where " (share(x.never[1], x.runs)) " of the baseline did not" } }
                }
            };
        }
        let [low, high] = [x.median.low, x.median.high].map(signed);
        return html! {
            td class=[classes] { (signed(x.median.mid)) (points) (unsure) @if low != high { small { (low) " to " (high) } } }
        };
    }
    if measure == Measure::StartupLost {
        let range = s.summary.typical(Measure::StartupLost).and_then(|(m, _)| spread(&m).range);
        return html! {
            // Not broken behind its question mark.
            td class=[classes] { (s.summary.lost(|m| spread(m).mid).replace('?', "?\u{2060}")) @if let Some(range) = range { small { (range) } } }
        };
    }
    let sign = match unit.sign() {
        "" => String::new(),
        sign if sign == measure.entry().title[1] => String::new(),
        sign => format!("\u{a0}{sign}"),
    };
    html! {
        td class=[classes] {
            @if let Some((median, runs)) = d.typical(&s.summary, measure) {
                @if unit == Unit::Delay {
                    @let [low, mid, high] = [median.low, median.mid, median.high].map(|s| delay(s * 1e3));
                    (mid)
                    @if median.low < median.high { small { (low) " to " (high) } }
                } @else {
                    @let shown = spread(&median);
                    (shown.mid) (sign)
                    @if let Some(range) = shown.range { small { (range) } }
                }
                @if runs < s.summary.rows.len() { small { "of " (number(runs as f64)) "/" (s.summary.rows.len()) " runs" } }
            } @else { "-" }
        }
    }
}
