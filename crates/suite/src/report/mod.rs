//! The page, the Markdown table, the KTAP and the JSON of a report.

pub mod board;
mod chart;
mod draft;
mod html;
mod ktap;
mod markdown;

use crate::judge::Verdict;
use crate::run::{Entry, Report};
pub use draft::{Date, DraftError, Front, draft};
pub use html::html;
pub use ktap::ktap;
pub use markdown::{NOT_SHOWN, markdown};
use slowstart_study::words::plural;
use std::collections::BTreeSet;
use std::fmt::Write;

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
        && e.never + e.broken == 0
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
    let mut value = number(e.value);
    for (n, what) in [(e.never, "never completes"), (e.broken, "breaks a rule")] {
        if n > 0 {
            let _ = write!(value, "; {what} in {n} of {} runs", e.values.len());
        }
    }
    (value, number(e.limit))
}

/// The verdict on each startup, a sentence each.
pub fn sentences(report: &Report) -> Vec<String> {
    let of = |s: &String| {
        let own = || report.entries.iter().filter(|e| e.startup == *s);
        let count = |v: Verdict| report.count(s, v);
        let scenarios = |of: fn(&&Entry) -> bool| {
            own().filter(of).map(|e| e.scenario.as_str()).collect::<BTreeSet<_>>().len()
        };
        let (never, broken) = (scenarios(|e| e.never > 0), scenarios(|e| e.broken > 0));
        let worse = own().filter(|e| e.is_worse_than_default()).count();
        let open = own().filter(|e| e.is_open_against_default()).count();
        let mut parts = vec![format!("{s} meets {} of {} criteria", count(Verdict::Meets), own().count())];
        for (n, what) in [
            (count(Verdict::DoesNotMeet), "not met"),
            (count(Verdict::Undecided), "undecided"),
            (count(Verdict::NotObserved), "not observed"),
        ] {
            parts.extend((n > 0).then(|| format!("{n} {what}")));
        }
        // Stopping at a verdict must not choose it: what the planned runs said alone.
        if own().any(|e| e.planned_verdict() != e.verdict) {
            let by = |v: Verdict| own().filter(|e| e.planned_verdict() == v).count();
            parts.push(format!(
                "by the planned runs alone {} met, {} not met, {} undecided",
                by(Verdict::Meets),
                by(Verdict::DoesNotMeet),
                by(Verdict::Undecided)
            ));
        }
        parts.extend((worse > 0).then(|| {
            format!("{worse} met only against slow start, and worse than today's default (hystart)")
        }));
        parts.extend(
            (open > 0)
                .then(|| format!("{open} met against slow start, and undecided against today's default")),
        );
        parts.extend(
            (never > 0)
                .then(|| format!("in {} some transfers never complete", plural(never as u64, "scenario"))),
        );
        parts.extend(
            (broken > 0).then(|| format!("in {} it breaks a rule", plural(broken as u64, "scenario"))),
        );
        parts.join("; ") + "."
    };
    report.startups.iter().map(of).collect()
}

/// What follows the startup, as a clause; of a whole stack its version and congestion control.
fn after(report: &Report) -> String {
    match &report.avoidance[..] {
        "" => {
            let version = report.stack_version.as_deref().unwrap_or("not stated");
            let control = report.congestion_control.as_deref().unwrap_or("not stated");
            format!(", {}: version {version}, congestion control {control}", report.startups.join(", "))
        }
        avoidance => format!(", {avoidance} after the startup"),
    }
}

/// How many runs the entries of a scenario rest on: `6 runs`, or `6 to 48 runs` where some startups ran more often.
fn runs_of(report: &Report, scenario: &str) -> String {
    let runs = || report.entries.iter().filter(|e| e.scenario == scenario).map(|e| e.values.len());
    match (runs().min(), runs().max()) {
        (Some(1), Some(1)) => "1 run".into(),
        (Some(least), Some(most)) if least == most => format!("{least} runs"),
        (Some(least), Some(most)) => format!("{least} to {most} runs"),
        _ => "no runs".into(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::LeftOut;

    fn entry(value: f64, limit: f64) -> Entry {
        Entry {
            scenario: "geo".into(),
            section: "7.5".into(),
            criterion: "completion_s <= 1 standard".into(),
            startup: "search".into(),
            verdict: Verdict::DoesNotMeet,
            value: Some(value),
            limit: Some(limit),
            excess: None,
            runs_to_decide: None,
            limits: vec![],
            values: vec![Some(value); 6],
            never: 0,
            broken: 0,
            default_value: None,
            against_default: None,
            planned: None,
        }
    }

    fn report(entries: Vec<Entry>) -> Report {
        Report {
            schema: 1,
            version: String::new(),
            commit: None,
            command: Vec::new(),
            suite: String::new(),
            suite_sha256: String::new(),
            engine: "sim".into(),
            real_clock: false,
            stack: String::new(),
            stack_version: None,
            congestion_control: None,
            avoidance: "cubic".into(),
            seed: 1,
            startups: vec!["search".into()],
            entrants: std::collections::BTreeMap::new(),
            left_out: Vec::new(),
            notes: Vec::new(),
            entries,
        }
    }

    #[test]
    fn only_what_is_decided_passes_or_fails() {
        let of = |verdict, runs_to_decide| Entry { verdict, runs_to_decide, ..entry(2.0, 1.5) };
        let report = Report {
            left_out: vec![LeftOut { scenario: "leo".into(), why: "it has # one\nflow".into() }],
            ..report(vec![
                of(Verdict::Meets, None),
                of(Verdict::DoesNotMeet, None),
                of(Verdict::Undecided, Some(40)),
                of(Verdict::NotObserved, None),
            ])
        };
        let text = ktap(&report);
        let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
        let name = "search geo: completion_s <= 1 standard";
        assert_eq!(
            lines,
            [
                "KTAP version 1".to_string(),
                "1..5".into(),
                format!("ok 1 {name}"),
                format!("not ok 2 {name}"),
                format!("ok 3 {name} # SKIP undecided, about 40 runs would decide"),
                format!("ok 4 {name} # SKIP not observed"),
                "ok 5 leo # SKIP it has one flow".into(),
            ]
        );
        assert!(text.contains("# value 2, limit 1.500, 6 runs\nnot ok 2 "), "{text}");
    }

    /// The page says how many runs there were, not how many the suite asks for.
    #[test]
    fn the_number_of_runs_is_that_of_the_entries() {
        let of = |runs| Entry { values: vec![Some(1.0); runs], ..entry(2.0, 1.5) };
        let mut report = report(vec![of(3)]);
        assert_eq!(runs_of(&report, "geo"), "3 runs");
        report.entries.push(of(12));
        assert_eq!(runs_of(&report, "geo"), "3 to 12 runs");
        assert_eq!(runs_of(&report, "leo"), "no runs");
    }

    /// A value above its limit is never printed as equal to it or below it.
    #[test]
    fn rounding_does_not_turn_a_value_and_its_limit() {
        let text = |v: f64, l: f64| value_and_limit(&entry(v, l));
        assert_eq!(text(12.5, 11.0), ("12.500".into(), "11".into()));
        assert_eq!(text(100.4, 100.2), ("100.400".into(), "100.200".into()));
        assert_eq!(text(0.131_64, 0.131_61), ("0.13164".into(), "0.13161".into()));
        assert_eq!(text(100.6, 101.0), ("100.600".into(), "101.000".into()));
        assert_eq!(text(3.0, 3.0), ("3".into(), "3".into()));
        let stalls = Entry { never: 2, ..entry(100.4, 99.6) };
        assert_eq!(value_and_limit(&stalls).0, "100; never completes in 2 of 6 runs");
    }
}
