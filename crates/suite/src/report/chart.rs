//! The chart of a criterion: what each startup had in each run, as a share of the limit.

use super::html::escape;
use crate::run::{Entry, Report};
use crate::scenario::{Criterion, Scenario};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Width of the names, of the field, and height of a line, in pixels.
const NAMES: f64 = 150.0;
const FIELD: f64 = 360.0;
const LINE: f64 = 16.0;
/// Shares beyond this are drawn at the edge.
const MOST: f64 = 2.0;

/// Returns the chart of a criterion; nothing if its limit is zero or no run has a value.
pub(super) fn chart(s: &Scenario, c: &Criterion, report: &Report) -> String {
    let lines: Vec<(&Entry, f64)> = report
        .entries
        .iter()
        .filter(|e| e.scenario == s.name && e.criterion == c.text && e.values.iter().any(Option::is_some))
        .filter_map(|e| Some((e, e.limit.filter(|l| *l > 0.0)?)))
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let x = |share: f64| NAMES + FIELD * share.clamp(0.0, MOST) / MOST;
    let height = LINE * lines.len() as f64;
    let limit = x(1.0);
    let (from, to) = if c.at_least { (limit, x(MOST)) } else { (x(0.0), limit) };
    let mut out = format!(
        "<svg role=img viewBox=\"0 0 {0} {1}\" width={0} height={1}><title>{2}: each run as a share of the limit</title>\
         <rect class=within x={from:.1} y=0 width={3:.1} height={height} />",
        NAMES + FIELD + 8.0,
        height + LINE,
        escape(&c.text),
        to - from
    );
    for (i, (e, limit)) in lines.iter().enumerate() {
        let y = LINE * (i as f64 + 0.5);
        let _ = write!(out, "<text x=0 y={:.1}>{}</text>", y + 4.0, escape(&short(&e.startup)));
        // Runs that did the same are one dot. A transfer that never completed is beyond the edge.
        let dots: BTreeSet<(String, bool)> = e
            .values
            .iter()
            .map(|v| v.map_or(f64::INFINITY, |v| v / limit))
            .map(|share| (format!("{:.0}", x(share)), share > MOST))
            .collect();
        for (x, beyond) in dots {
            let kind = if beyond { "dot beyond" } else { "dot" };
            let _ = write!(out, "<circle class=\"{kind}\" cx={x} cy={y:.1} r=3 />");
        }
    }
    let _ = write!(out, "<line x1={limit:.1} x2={limit:.1} y1=0 y2={height} />");
    for (share, label) in [(0.0, "0"), (1.0, "limit"), (MOST, "2 or more")] {
        let anchor = if share >= MOST { "end" } else { "middle" };
        let _ = write!(
            out,
            "<text class=axis x={:.1} y={:.1} text-anchor={anchor}>{label}</text>",
            x(share),
            height + LINE - 3.0
        );
    }
    out.push_str("</svg>\n");
    out
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
