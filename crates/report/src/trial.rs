//! The result of a trial as a page, with the skeleton of all reports.

use maud::{Markup, html};
use slowstart_trial::estimate::Effect;
use slowstart_trial::quantile::Quantile;
use slowstart_trial::{Analysis, ArmSummary, Comparison, Gap, Measure, TrialServer};

use crate::{Script, document};
use slowstart_study::words::tied;

/// Returns an effect as a percentage with its interval: `-12.3% (-15.0% to -9.4%)`.
pub fn effect_text(effect: Option<&Effect>) -> String {
    let Some(e) = effect else { return "-".to_string() };
    if e.high.is_infinite() {
        return format!("{:+.1}% (unknown)", e.estimate * 100.0);
    }
    format!("{:+.1}% ({:+.1} to {:+.1})", e.estimate * 100.0, e.low * 100.0, e.high * 100.0)
}

/// Returns the units that an effect is of; `-` if there is none.
pub fn units_text(effect: Option<&Effect>) -> String {
    effect.map_or("-".to_string(), |e| e.units.to_string())
}

/// Returns a value of a measure with three digits, without its unit.
pub fn value_text(measure: Measure, value: Option<f64>) -> String {
    match (measure, value) {
        (_, None) => "-".to_string(),
        (Measure::Retrans, Some(v)) => format!("{:.2}%", v * 100.0),
        (_, Some(v)) if v < 0.001 => format!("{v:.6}"),
        (_, Some(v)) if v < 0.1 => format!("{v:.4}"),
        (_, Some(v)) if v < 10.0 => format!("{v:.3}"),
        (_, Some(v)) => format!("{v:.1}"),
    }
}

/// Returns the unit of a measure for headings, with a space before it; empty if it has none.
pub const fn unit(measure: Measure) -> &'static str {
    match measure {
        Measure::Retrans | Measure::RttMean | Measure::RttPeak => "",
        _ => " (s)",
    }
}

fn quantile_text(measure: Measure, arm: &ArmSummary, q: f64) -> String {
    let found = arm.quantiles.iter().find(|x| (x.q - q).abs() < 1e-9);
    let text = |Quantile { value, low, high, .. }: &Quantile| {
        let of = |v: f64| value_text(measure, Some(v));
        format!("{} ({} to {})", of(*value), of(*low), of(*high))
    };
    found.map_or_else(|| "-".to_string(), text)
}

fn arms(a: &Analysis) -> Markup {
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "arm" } th scope="col" { "share" } th scope="col" { "connections" } th scope="col" { "no " (a.measure) } th scope="col" { (a.measure) (unit(a.measure)) }
                    th scope="col" { "median" } th scope="col" { "95th percentile" } th scope="col" { "retrans" } th scope="col" { "limited by application" } th scope="col" class="text" { "startups ended" }
                } }
                tbody { @for arm in &a.arms { tr {
                    th scope="row" { (arm.name) }
                    td { (format!("{:.4}", arm.share * 100.0).trim_end_matches('0').trim_end_matches('.')) "%" }
                    td { (arm.connections) }
                    td { (arm.without_value) }
                    td { (value_text(a.measure, arm.means.get(a.measure.name()).copied())) }
                    td { (quantile_text(a.measure, arm, 0.5)) }
                    td { (quantile_text(a.measure, arm, 0.95)) }
                    td { (value_text(Measure::Retrans, arm.means.get("retrans").copied())) }
                    td { (arm.app_limited.map_or_else(|| "-".to_string(), |l| format!("{:.0}%", l * 100.0))) }
                    td class="text" { (arm.exits.iter().map(|(w, n)| format!("{w} {n}")).collect::<Vec<_>>().join(", ")) }
                } } }
            }
        }
    }
}

fn comparisons(all: &[&Comparison]) -> Markup {
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "arm" } th scope="col" class="text" { "measure" } th scope="col" { "effect" } th scope="col" { "units" } th scope="col" class="text" { "with" } th scope="col" class="text" { "stratum" }
                } }
                tbody { @for c in all { tr {
                    th scope="row" { (c.arm) }
                    td class="text" { (c.measure) }
                    td { (effect_text(c.effect.as_ref())) }
                    td { (units_text(c.effect.as_ref())) }
                    td class="text" { (c.with) }
                    td class="text" { (c.stratum.as_deref().unwrap_or("all")) }
                } } }
            }
        }
    }
}

/// Where and when a trial ran, as far as it is known.
fn place(s: &TrialServer) -> String {
    let began = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(s.began_unix_s));
    let parts = [
        s.host.clone(),
        s.kernel.as_ref().map(|k| format!("Linux {k}")),
        s.default_control.as_ref().map(|c| format!("connections outside the trial use {c}")),
        began.map(|t| format!("began {}", humantime::format_rfc3339_seconds(t))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Returns a sentence on a time in which the trial did not run. `arms` are the names of the arms.
pub fn gap_text(gap: &Gap, arms: &[&str]) -> String {
    let time = |s: u64| {
        let t = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(s));
        t.map_or_else(|| "?".to_string(), |t| humantime::format_rfc3339_seconds(t).to_string())
    };
    let end = if gap.ended { "was ended" } else { "was last known to run" };
    let open: Vec<String> = gap.open.iter().zip(arms).map(|(n, arm)| format!("{n} of {arm}")).collect();
    let cut = match gap.cut_bytes {
        0 => String::new(),
        n => format!("; {n} bytes of a row that was half written were removed"),
    };
    let kernel =
        gap.kernel_before.as_ref().map_or_else(String::new, |k| format!("; the kernel before it was {k}"));
    format!(
        "gap: the trial {end} at {} and went on at {}; connections then open, which it did not follow further: {}{cut}{kernel}",
        time(gap.from_unix_s),
        time(gap.to_unix_s),
        open.join(", ")
    )
}

/// Returns the page. `command` is the command line of the trial. The same input gives the same bytes.
pub fn html(a: &Analysis, server: &TrialServer, gaps: &[Gap], command: &str) -> String {
    let names: Vec<&str> = a.arms.iter().map(|arm| arm.name.as_str()).collect();
    let (main, rest): (Vec<&Comparison>, Vec<&Comparison>) =
        a.comparisons.iter().partition(|c| c.measure == a.measure);
    let body = html! {
        p class="verdict" { (tied(&a.verdict)) }
        p class="note" { (place(server)) }
        @for gap in gaps { p { (gap_text(gap, &names)) } }
        h2 { "Arms" }
        (arms(a))
        p class="note" {
            "Means of times and RTTs are geometric. Intervals of medians and percentiles are by bootstrap, with 95 % for one look."
        }
        h2 { "Comparisons by " (a.measure) }
        (comparisons(&main))
        p class="note" {
            "Negative: the arm has less. The intervals of this table that are not of strata hold together, with 95 % confidence, \
             however often the trial was looked at and whenever it ended; so do the strata of one comparison."
        }
        @for e in a.arms.iter().filter(|arm| arm.ended.is_some()) {
            @if let Some(ended) = &e.ended {
                p { (e.name) " was ended after " (ended.connections) " connections by " (ended.guard) ": "
                    (effect_text(ended.effect.as_ref())) }
            }
        }
        h2 { "Other measures" }
        (comparisons(&rest))
        p class="note" { "Each measure by itself: these intervals are not corrected for the number of measures." }
        h2 { "Command" }
        pre { code { (command) } }
    };
    document("Trial", &body, Script::Tables)
}
