//! The result of a trial: a table of at most 80 columns, and counters for Prometheus.

use crate::prometheus::{self, label};
use crate::table::{Align, Table};
use slowstart_report::trial::{effect_text, gap_text, unit, value_text};
use slowstart_trial::{Analysis, Gap, Measure, TrialCounts};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// Columns of the table.
const WIDTH: u16 = 80;

fn lines(title: &str, rows: Vec<Vec<crate::table::Cell>>, headers: &[&str], color: bool) -> String {
    let alignments = headers.iter().enumerate();
    let table = Table {
        headers: headers.iter().map(ToString::to_string).collect(),
        rows,
        alignments: alignments.map(|(i, _)| if i == 0 { Align::Left } else { Align::Right }).collect(),
    };
    format!("{title}{}", table.render(color, Some(WIDTH)))
}

/// The table of arms, the strata, and what follows from them.
pub(crate) fn table(a: &Analysis, gaps: &[Gap], counts: &TrialCounts, color: bool) -> String {
    let control = a.arms[0].name.as_str();
    let effect = |arm: &str, measure: Measure| {
        let found = a
            .comparisons
            .iter()
            .find(|c| c.arm == arm && c.with == control && c.measure == measure && c.stratum.is_none());
        found.map_or_else(|| "-".to_string(), |c| effect_text(c.effect.as_ref()))
    };
    let rows = a.arms.iter().map(|arm| {
        let mean = |m: Measure| value_text(m, arm.means.get(m.name()).copied());
        let state = if arm.ended.is_some() { " (ended)" } else { "" };
        vec![
            format!("{}{state}", arm.name).into(),
            arm.connections.to_string().into(),
            mean(a.measure).into(),
            effect(&arm.name, a.measure).into(),
            mean(Measure::Retrans).into(),
        ]
    });
    let measure = format!("{}{}", a.measure, unit(a.measure));
    let against = format!("against {control}");
    let mut text = lines("", rows.collect(), &["arm", "conns", &measure, &against, "retrans"], color);
    let strata: Vec<_> = a.comparisons.iter().filter(|c| c.stratum.is_some()).collect();
    if !strata.is_empty() {
        let rows = strata.iter().map(|c| {
            let stratum = c.stratum.clone().unwrap_or_default();
            let units = c.effect.map_or_else(|| "-".to_string(), |e| e.units.to_string());
            vec![stratum.into(), c.arm.clone().into(), units.into(), effect_text(c.effect.as_ref()).into()]
        });
        text += &lines("\n", rows.collect(), &["stratum", "arm", "units", &against], color);
    }
    let _ = writeln!(text, "\n{}", a.verdict);
    let names: Vec<&str> = a.arms.iter().map(|arm| arm.name.as_str()).collect();
    for gap in gaps {
        let _ = writeln!(text, "{}", gap_text(gap, &names));
    }
    for arm in a.arms.iter().filter(|arm| arm.without_value > 0) {
        let (n, all) = (arm.without_value, arm.connections);
        let _ = writeln!(text, "{}: {n} of {all} connections have no {}", arm.name, a.measure);
    }
    for arm in &a.arms {
        if let Some(ended) = &arm.ended {
            let (effect, n) = (effect_text(ended.effect.as_ref()), ended.connections);
            let _ =
                writeln!(text, "{} was ended by {} after {n} connections: {effect}", arm.name, ended.guard);
        }
    }
    for n in &a.needed {
        let units = n.units.map_or_else(|| "more than a billion".to_string(), |u| u.to_string());
        let more = n.more.map_or_else(String::new, |m| format!(", {m} of them still to come"));
        let _ =
            writeln!(text, "{}: an effect of 5 % is found in 4 of 5 trials of {units} units{more}", n.arm);
    }
    for d in &a.stop_delays {
        let (arm, guard, harm) = (&d.arm, &d.guard, d.harm * 100.0);
        let _ = match (d.units, d.observed) {
            (Some(units), _) => {
                writeln!(text, "{arm}: if it had {harm:+.0}%, {guard} would end it within {units} units")
            }
            (None, 0) => writeln!(
                text,
                "{arm}: {guard} cannot end it: this arm or the control has no connection with that measure"
            ),
            (None, n) => {
                writeln!(text, "{arm}: when {guard} would end it is not known: {n} units have that measure")
            }
        };
    }
    let TrialCounts { outside, own_choice, refused, without_storage, lost_records, .. } = counts;
    let _ = writeln!(
        text,
        "not in the trial: {outside} outside the shares, {own_choice} with a control chosen by the program"
    );
    if refused + without_storage + lost_records + a.not_held > 0 {
        let _ = writeln!(
            text,
            "{refused} refused by the kernel, {without_storage} without memory, {lost_records} records lost, {} not analysed",
            a.not_held
        );
    }
    text
}

/// The counters in the text format of Prometheus.
pub(crate) fn metrics(a: &Analysis, counts: &TrialCounts) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
        let samples = values.iter().map(|(labels, value)| ("", labels.clone(), *value));
        prometheus::family(&mut text, (name, kind, help), samples);
    };
    let arms = |of: &dyn Fn(usize) -> f64| -> Vec<(String, f64)> {
        let of_arm = |(i, arm): (usize, &slowstart_trial::ArmSummary)| {
            (format!("arm=\"{}\"", label(&arm.name)), of(i))
        };
        a.arms.iter().enumerate().map(of_arm).collect()
    };
    family(
        "slowstart_trial_assigned_total",
        "counter",
        "Connections that the kernel put into an arm.",
        &arms(&|i| counts.assigned[i] as f64),
    );
    family(
        "slowstart_trial_connections",
        "gauge",
        "Connections in the analysis.",
        &arms(&|i| a.arms[i].connections as f64),
    );
    family(
        "slowstart_trial_delivered_bytes",
        "gauge",
        "Bytes that they delivered.",
        &arms(&|i| a.arms[i].delivered_bytes as f64),
    );
    family(
        "slowstart_trial_ended",
        "gauge",
        "1 if a stop rule ended the arm.",
        &arms(&|i| f64::from(u8::from(a.arms[i].ended.is_some()))),
    );
    let means: Vec<(String, f64)> = a
        .arms
        .iter()
        .flat_map(|arm| {
            arm.means.iter().map(|(m, v)| (format!("arm=\"{}\",measure=\"{m}\"", label(&arm.name)), *v))
        })
        .collect();
    family("slowstart_trial_mean", "gauge", "Mean of a measure, in its unit.", &means);
    let whole = a.comparisons.iter().filter(|c| c.stratum.is_none());
    let effects: Vec<(String, f64)> = whole
        .filter_map(|c| Some((c, c.effect?)))
        .flat_map(|(c, e)| {
            [("estimate", e.estimate), ("low", e.low), ("high", e.high)].map(|(bound, v)| {
                let (arm, with) = (label(&c.arm), label(&c.with));
                (format!("arm=\"{arm}\",with=\"{with}\",measure=\"{}\",bound=\"{bound}\"", c.measure), v)
            })
        })
        .filter(|(_, v)| v.is_finite())
        .collect();
    family(
        "slowstart_trial_effect",
        "gauge",
        "Effect of an arm on a measure against another arm, as a share, and its 95 % interval.",
        &effects,
    );
    let other = [
        ("outside", counts.outside),
        ("own_choice", counts.own_choice),
        ("refused", counts.refused),
        ("without_storage", counts.without_storage),
    ];
    let other = other.map(|(why, n)| (format!("why=\"{why}\""), n as f64));
    family("slowstart_trial_not_assigned_total", "counter", "Connections in no arm, by why.", &other);
    let one = |value: f64| [(String::new(), value)];
    let lost = "Records of connections that were lost; the analysis lacks them.";
    family("slowstart_trial_lost_records_total", "counter", lost, &one(counts.lost_records as f64));
    let balanced = "1 if the arms have the shares of the plan.";
    family("slowstart_trial_balanced", "gauge", balanced, &one(f64::from(u8::from(a.balanced))));
    text
}

/// The time, in seconds since 1970.
#[allow(clippy::disallowed_methods, reason = "rows of a trial are joined with other records by it")]
pub(crate) fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_millis() as f64 / 1e3)
}
