//! The page, the Markdown table and the JSON of a report.

mod chart;
mod html;
mod markdown;

use crate::judge::Verdict;
use crate::run::{Entry, Report};
pub use html::html;
pub use markdown::markdown;
use std::collections::BTreeSet;

/// Returns a number for people.
fn number(v: Option<f64>) -> String {
    match v {
        None => "-".into(),
        Some(v) if v.fract().abs() < 1e-9 && v.abs() < 1e9 => format!("{v:.0}"),
        Some(v) if v.abs() >= 100.0 => format!("{v:.0}"),
        Some(v) => format!("{v:.3}"),
    }
}

/// A value and its limit for people: with as many decimals as show on which side of the limit it is.
fn value_and_limit(e: &Entry) -> (String, String) {
    if let (Some(v), Some(l)) = (e.value, e.limit)
        && e.never == 0
    {
        let differ = |places: &usize| {
            let [v, l] = [v, l].map(|x| format!("{x:.places$}"));
            v != l
        };
        let (value, limit) = (number(Some(v)), number(Some(l)));
        let seen = |text: &str| text.parse::<f64>().ok();
        // Rounded they may be equal, or turned round where one is a whole number.
        let turned = seen(&value).zip(seen(&limit)).is_none_or(|(a, b)| a.total_cmp(&b) != v.total_cmp(&l));
        if v.total_cmp(&l).is_eq() || !turned {
            return (value, limit);
        }
        let places = (3..=12).find(differ).unwrap_or(12);
        return (format!("{v:.places$}"), format!("{l:.places$}"));
    }
    let value = match e.never {
        0 => number(e.value),
        n => format!("{}; never completes in {n} of {} runs", number(e.value), e.values.len()),
    };
    (value, number(e.limit))
}

/// The verdict on each startup, a sentence each.
fn sentences(report: &Report) -> Vec<String> {
    let of = |s: &String| {
        let own = || report.entries.iter().filter(|e| e.startup == *s);
        let count = |v: Verdict| report.count(s, v);
        let never = own().filter(|e| e.never > 0).map(|e| e.scenario.as_str()).collect::<BTreeSet<_>>().len();
        let worse = own().filter(|e| e.is_worse_than_default()).count();
        let mut parts = vec![format!("{s} meets {} of {} criteria", count(Verdict::Meets), own().count())];
        for (n, what) in [
            (count(Verdict::DoesNotMeet), "not met"),
            (count(Verdict::Undecided), "undecided"),
            (count(Verdict::NotObserved), "not observed"),
        ] {
            parts.extend((n > 0).then(|| format!("{n} {what}")));
        }
        parts.extend((worse > 0).then(|| {
            format!("{worse} met only against slow start, and worse than today's default (hystart)")
        }));
        parts.extend((never > 0).then(|| format!("in {never} scenarios some transfers never complete")));
        parts.join("; ") + "."
    };
    report.startups.iter().map(of).collect()
}

/// What follows the startup, as a clause.
fn after(report: &Report) -> String {
    match &report.avoidance[..] {
        "" => String::new(),
        avoidance => format!(", {avoidance} after the startup"),
    }
}

/// JSON Schema of a [`Report`], of version [`crate::run::SCHEMA`].
pub const REPORT_SCHEMA: &str = include_str!("../../schema/report.json");

/// Returns the JSON of a report, as [`REPORT_SCHEMA`] has it.
///
/// # Errors
/// If a number has no JSON form, which is a defect.
pub fn json(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string_pretty(report).map(|t| t + "\n")
}
