//! The result of a fleet as a page, with the skeleton of all reports.

use maud::{Markup, PreEscaped, html};
use slowstart_trial::Measure;
use slowstart_trial::estimate::Effect;
use slowstart_trial::pool::{Heterogeneity, Pooled, PooledComparison, ServerSummary};

use crate::trial::{effect_text, unit, units_text, value_text};
use crate::{Script, document};
use slowstart_study::words::tied;

/// Returns a sentence on how the servers of a comparison differ.
pub fn heterogeneity_text(h: &Heterogeneity) -> String {
    let percent = |v: f64| format!("{:+.1}%", v * 100.0);
    let next = h.next_server.map_or_else(
        || "too few servers to say what one more would have".to_string(),
        |[low, high]| format!("one more server like these: {} to {}", percent(low), percent(high)),
    );
    let p = if h.p < 0.001 { "p < 0.001".to_string() } else { format!("p {:.3}", h.p) };
    format!(
        "{} servers: I² {:.0} %, Q {:.1} ({p}); mean of servers {} ({} to {}); {next}",
        h.servers,
        h.i_squared * 100.0,
        h.q,
        percent(h.mean[0]),
        percent(h.mean[1]),
        percent(h.mean[2]),
    )
}

/// Returns the numbers of [`ServerSummary::without_value`] in the order of the arms, `?` for one that
/// is not known.
pub fn without_value_text(s: &ServerSummary) -> String {
    let text = |n: &Option<u64>| n.map_or_else(|| "?".to_string(), |n| n.to_string());
    s.without_value.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Width of the drawing of an interval, in pixels.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 18.0;
/// Width of the axis within it, so that marks at its ends are whole.
const AXIS: f64 = WIDTH - 12.0;

/// Draws the estimates of a comparison on one axis, a line each: servers, then all of them.
fn forest(c: &PooledComparison) -> Markup {
    let rows: Vec<(String, Option<Effect>)> = c
        .servers
        .iter()
        .map(|s| (s.server.clone(), s.effect))
        .chain(std::iter::once(("all servers".to_string(), c.effect)))
        .collect();
    let finite = |v: f64| v.is_finite().then_some(v);
    let ends = rows.iter().filter_map(|(_, e)| *e).flat_map(|e| [finite(e.low), finite(e.high)]);
    let largest = ends.flatten().fold(0.1_f64, |a, v| a.max(v.abs())).min(2.0);
    let x = |v: f64| v.clamp(-largest, largest) / largest * AXIS / 2.0 + WIDTH / 2.0;
    let line = |e: &Effect, all: bool| {
        let (low, high, at) = (x(e.low), x(e.high), x(e.estimate));
        let (middle, zero, size) = (HEIGHT / 2.0, WIDTH / 2.0, if all { 5.0 } else { 3.5 });
        format!(
            "<svg class=\"interval\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\"><line x1=\"{zero}\" y1=\"0\" \
             x2=\"{zero}\" y2=\"{HEIGHT}\" stroke=\"currentColor\" stroke-opacity=\"0.4\"/><line x1=\"{low:.1}\" y1=\"{middle}\" \
             x2=\"{high:.1}\" y2=\"{middle}\" stroke=\"currentColor\" stroke-width=\"2\"/><circle cx=\"{at:.1}\" cy=\"{middle}\" \
             r=\"{size}\" fill=\"currentColor\"/></svg>",
            effect_text(Some(e))
        )
    };
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "server" } th scope="col" { "units" } th scope="col" { "effect" }
                    th scope="col" class="text" { (format!("{:+.0}% to {:+.0}%, the line is no effect", -largest * 100.0, largest * 100.0)) }
                } }
                tbody { @for (name, effect) in &rows { tr {
                    th scope="row" { (name) @if c.servers.iter().any(|s| s.server == *name && s.disagrees) { " (disagrees)" } }
                    td { (units_text(effect.as_ref())) }
                    td { (effect_text(effect.as_ref())) }
                    td class="text" { @if let Some(e) = effect { (PreEscaped(line(e, name == "all servers"))) } }
                } } }
            }
        }
    }
}

/// Returns the page. `command` is the command line. The same input gives the same bytes.
pub fn pooled_html(p: &Pooled, command: &str) -> String {
    let (main, rest): (Vec<&PooledComparison>, Vec<&PooledComparison>) =
        p.comparisons.iter().partition(|c| c.measure == p.measure);
    let body = html! {
        p class="verdict" { (tied(&p.verdict)) }
        @for note in &p.notes { p { (tied(note)) } }
        h2 { "Arms over all servers" }
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "arm" } th scope="col" { "units" } th scope="col" { "no " (p.measure) } th scope="col" { (p.measure) (unit(p.measure)) }
                    th scope="col" { "retrans" } th scope="col" class="text" { "ended" }
                } }
                tbody { @for arm in &p.arms { tr {
                    th scope="row" { (arm.name) }
                    td { (arm.units) }
                    td { (arm.without_value) }
                    td { (value_text(p.measure, arm.means.get(p.measure.name()).copied())) }
                    td { (value_text(Measure::Retrans, arm.means.get("retrans").copied())) }
                    td class="text" { (arm.ended_on.iter().chain(&arm.crossed).cloned().collect::<Vec<_>>().join(", ")) }
                } } }
            }
        }
        @for c in &main {
            h2 { (c.arm) " against " (c.with) " by " (c.measure) }
            (forest(c))
            @if let Some(h) = &c.heterogeneity { p class="note" { (heterogeneity_text(h)) } }
        }
        p class="note" {
            "Negative: the arm has less. The intervals over all servers hold together, with 95 % confidence, however often the fleet \
             was looked at; so do those of the servers of one comparison. I², Q, the mean of servers and the interval of one more \
             server are for one look."
        }
        h2 { "Other measures" }
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "arm" } th scope="col" class="text" { "measure" } th scope="col" { "effect" }
                    th scope="col" { "units" } th scope="col" class="text" { "with" }
                } }
                tbody { @for c in &rest { tr {
                    th scope="row" { (c.arm) }
                    td class="text" { (c.measure) }
                    td { (effect_text(c.effect.as_ref())) }
                    td { (units_text(c.effect.as_ref())) }
                    td class="text" { (c.with) }
                } } }
            }
        }
        h2 { "Servers" }
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "server" } th scope="col" class="text" { "kernel" } th scope="col" { "seconds" }
                    th scope="col" { "units by arm" } th scope="col" { "no " (p.measure) " by arm" } th scope="col" { "records lost" } th scope="col" class="text" { "shares" }
                } }
                tbody { @for s in &p.servers { tr {
                    th scope="row" { (s.name) }
                    td class="text" { (s.kernel) }
                    td { (format!("{:.0}", s.seconds)) }
                    td { (s.units.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")) }
                    td { (without_value_text(s)) }
                    td { (s.lost_records) }
                    td class="text" { @if s.balanced { "as planned" } @else { "not as planned: left out" } }
                } } }
            }
        }
        h2 { "Command" }
        pre { code { (command) } }
    };
    document("Fleet", &body, Script::Tables)
}
