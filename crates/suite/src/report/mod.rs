//! The page, the Markdown table and the JSON of a report.

mod chart;
mod html;
mod markdown;

use crate::run::Report;
pub use html::html;
pub use markdown::markdown;

/// Returns a number for people.
fn number(v: Option<f64>) -> String {
    match v {
        None => "-".into(),
        Some(v) if v.fract().abs() < 1e-9 && v.abs() < 1e9 => format!("{v:.0}"),
        Some(v) if v.abs() >= 100.0 => format!("{v:.0}"),
        Some(v) => format!("{v:.3}"),
    }
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
