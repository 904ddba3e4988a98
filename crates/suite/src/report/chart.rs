//! The chart of a criterion: what each startup had in each run, as a share of the limit.

use crate::run::{Entry, Report};
use crate::scenario::{Criterion, Scenario};
use maud::{Markup, html};
use std::collections::BTreeSet;

/// Width of the names, of the field, and height of a line, in pixels.
const NAMES: f64 = 150.0;
const FIELD: f64 = 360.0;
const LINE: f64 = 16.0;
/// Shares beyond this are drawn at the edge.
const MOST: f64 = 2.0;

/// Returns the chart of a criterion; nothing if its limit is zero or no run has a value.
pub(super) fn chart(s: &Scenario, c: &Criterion, report: &Report) -> Markup {
    let lines: Vec<(&Entry, f64)> = report
        .entries
        .iter()
        .filter(|e| e.scenario == s.name && e.criterion == c.text && e.values.iter().any(Option::is_some))
        .filter_map(|e| Some((e, e.limit.filter(|l| *l > 0.0)?)))
        .collect();
    if lines.is_empty() {
        return html! {};
    }
    let x = |share: f64| NAMES + FIELD * share.clamp(0.0, MOST) / MOST;
    let height = LINE * lines.len() as f64;
    let limit = x(1.0);
    let (from, to) = if c.at_least { (limit, x(MOST)) } else { (x(0.0), limit) };
    // Runs that did the same are one dot. A transfer that never completed is beyond the edge.
    let dots = |e: &Entry, limit: f64| -> BTreeSet<(String, bool)> {
        let shares = e.values.iter().map(|v| v.map_or(f64::INFINITY, |v| v / limit));
        shares.map(|share| (format!("{:.0}", x(share)), share > MOST)).collect()
    };
    let width = NAMES + FIELD + 8.0;
    html! {
        svg class="shares" role="img" viewBox={ "0 0 " (width) " " (height + LINE) } style={ "max-width:" (width) "px" } {
            title { (c.text) ": each run as a share of the limit" }
            rect class="within" x=(px(from)) y="0" width=(px(to - from)) height=(height) {}
            @for (i, (e, limit)) in lines.iter().enumerate() {
                @let y = LINE * (i as f64 + 0.5);
                text x="0" y=(px(y + 4.0)) { (short(&e.startup)) }
                @for (x, beyond) in dots(e, *limit) {
                    circle class=(if beyond { "run beyond" } else { "run" }) cx=(x) cy=(px(y)) r="3" {}
                }
            }
            line class="level" x1=(px(limit)) x2=(px(limit)) y1="0" y2=(height) {}
            @for (share, label) in [(0.0, "0"), (1.0, "limit"), (MOST, "2 or more")] {
                @let anchor = if share >= MOST { "end" } else { "middle" };
                text class="axis" x=(px(x(share))) y=(px(height + LINE - 3.0)) text-anchor=(anchor) { (label) }
            }
        }
    }
}

fn px(x: f64) -> String {
    format!("{x:.1}")
}

/// A name that fits: its end, since that tells libraries apart.
fn short(name: &str) -> String {
    const MOST: usize = 22;
    let n = name.chars().count();
    if n <= MOST {
        name.to_string()
    } else {
        format!("…{}", name.chars().skip(n + 1 - MOST).collect::<String>())
    }
}
