//! Charts over time, of the first run of each startup in a study.

use crate::result::{ChartKind, RunResult};
use maud::{Markup, html};
use slowstart_report::chart::{Axis, Chart, Key, Point};
use slowstart_report::data::{self, Curve, Data, Kind, More, Unit};
use slowstart_report::figure::{Figure, Figures};
use slowstart_report::live;
use slowstart_study::record::{Row, Sample};

fn value(draw: ChartKind, s: &Sample) -> Option<f64> {
    match draw {
        ChartKind::Inflight => Some(s.inflight_bytes as f64 / 1000.0),
        ChartKind::Delivered => Some(s.delivered_bytes as f64 / 1e6),
        ChartKind::Rtt => s.rtt_s.map(|r| r * 1000.0),
        ChartKind::Window => Some(s.cwnd_bytes as f64 / 1000.0),
        ChartKind::Threshold => s.ssthresh_bytes.map(|b| b as f64 / 1000.0),
        ChartKind::Train => s.gauges.get("train_s").map(|t| t * 1000.0),
        ChartKind::Queue => s.queue_bytes.map(|q| q as f64 / 1000.0),
        ChartKind::Stalls => None,
    }
}

const fn axis(draw: ChartKind) -> &'static str {
    match draw {
        ChartKind::Inflight => "in flight (kB)",
        ChartKind::Delivered => "delivered (MB)",
        ChartKind::Rtt => "round-trip time (ms)",
        ChartKind::Window => "cwnd (kB)",
        ChartKind::Threshold => "ssthresh (kB)",
        ChartKind::Train => "length of the ACK train (ms)",
        ChartKind::Queue => "queue (kB)",
        ChartKind::Stalls => "stalls taken as congestion",
    }
}

/// Number of stall events up to each sample.
fn stalls(s: &RunResult) -> Vec<Point> {
    let at: Vec<f64> = s.events.iter().filter(|e| e.what == "stall").map(|e| e.time_s).collect();
    let upto = |t: f64| at.partition_point(|x| *x <= t) as f64;
    s.samples.iter().map(|x| (x.time_s - s.start_s, upto(x.time_s))).collect()
}

/// The line of one flow, over the time since the start of the flow studied.
fn line(draw: ChartKind, samples: &[Sample], start_s: f64) -> Vec<Point> {
    // A third of the samples is enough for a chart of this width.
    let thin = samples.iter().step_by(3);
    thin.filter_map(|x| Some((x.time_s - start_s, value(draw, x)?))).collect()
}

fn points(draw: ChartKind, s: &RunResult) -> Vec<Point> {
    if draw == ChartKind::Stalls { stalls(s) } else { line(draw, &s.samples, s.start_s) }
}

/// A chart of one quantity of a study.
fn chart(id: usize, study: &str, draw: ChartKind, runs: &[&RunResult]) -> Markup {
    let lines: Vec<(&str, Vec<Point>)> = runs.iter().map(|s| (s.label.as_str(), points(draw, s))).collect();
    let (x, y) = axes(draw, &lines);
    line_chart(id, study, axis(draw), &x, &y, &lines)
}

/// The names of the flows of a run that is drawn alone.
const FLOWS: [&str; 2] = ["first flow", "second flow"];

/// The charts of a run with several flows, with identifiers from `id`: one for each quantity, with a line for
/// each flow.
fn flows(id: usize, study: &str, s: &RunResult) -> (Vec<Markup>, Vec<Figure>) {
    let each = |(i, draw): (usize, &ChartKind)| {
        let beside = s.beside.iter().map(|other| line(*draw, other, s.start_s));
        let lines: Vec<(&str, Vec<Point>)> =
            FLOWS.into_iter().zip([points(*draw, s)].into_iter().chain(beside)).collect();
        let (x, y) = axes(*draw, &lines);
        let title = format!("{study}: {}", s.label);
        (line_chart(id + i, &title, axis(*draw), &x, &y, &lines), Figure::new(&title, &x, &y, &lines))
    };
    s.charts.iter().enumerate().map(each).unzip()
}

/// The axes of lines of a quantity over time.
fn axes(draw: ChartKind, lines: &[(&str, Vec<Point>)]) -> (Axis, Axis) {
    let all = || lines.iter().flat_map(|(_, p)| p);
    let x = Axis::cut("time (s)", all().map(|p| p.0).fold(0.0, f64::max));
    let y = Axis::round(axis(draw), all().map(|p| p.1).filter(|y| y.is_finite()).fold(0.0, f64::max));
    (x, y)
}

/// A figure of named lines. `id` must be unique on the page.
pub fn line_chart(
    id: usize,
    title: &str,
    what: &str,
    x: &Axis,
    y: &Axis,
    lines: &[(&str, Vec<Point>)],
) -> Markup {
    let keys: Vec<Key> = lines.iter().enumerate().map(|(at, (label, _))| Key { at, label }).collect();
    let c = Chart { id, name: format!("{what}: {title}"), x, y, legend: &keys };
    let inside = html! {
        @for (key, (_, points)) in keys.iter().zip(lines) { (c.keyed(key, points.iter().copied())) }
    };
    html! { figure { h3 { (title) } (c.draw(&inside, &html! {})) } }
}

/// Samples of a run for the script.
const SAMPLES: usize = 400;

/// The runs of a study as data for the script, which draws more quantities than the fixed charts.
fn data<'a>(runs: &[&RunResult], rows: &'a [Row]) -> Data<'a> {
    let mut data = Data::of(Kind::Study, rows, runs.iter().map(|s| s.label.clone()).collect());
    let curve = |(i, s): (usize, &&RunResult)| {
        let stalled: Vec<f64> = s.events.iter().filter(|e| e.what == "stall").map(|e| e.time_s).collect();
        let threshold = |x: &Sample| x.ssthresh_bytes.unwrap_or(0) as i64;
        let train = |x: &Sample| x.gauges.get("train_s").map_or(0, |t| data::us(*t));
        let stalls = |x: &Sample| stalled.partition_point(|t| *t <= x.time_s) as i64;
        let all: [(ChartKind, More); 3] = [
            (ChartKind::Threshold, ("slow-start threshold", Unit::Bytes, &threshold)),
            (ChartKind::Train, ("length of the ACK train", Unit::Time, &train)),
            (ChartKind::Stalls, ("stalls taken as congestion", Unit::Count, &stalls)),
        ];
        let more: Vec<More> =
            all.into_iter().filter(|(kind, _)| s.charts.contains(kind)).map(|(_, more)| more).collect();
        Curve::with(i, rows[i].flow, (&s.samples, &s.events), s.start_s, SAMPLES, &more)
    };
    data.curves = runs.iter().enumerate().map(curve).collect();
    data
}

/// All charts of all studies.
pub fn charts(studies: &[&str], results: &[RunResult]) -> Markup {
    let mut id = 0;
    let groups: Vec<(&str, Markup)> = studies
        .iter()
        .filter_map(|study| {
            let first = |s: &&RunResult| s.study == *study && s.run == 0 && !s.charts.is_empty();
            let runs: Vec<&RunResult> = results.iter().filter(first).collect();
            let kinds = &runs.first()?.charts;
            if runs.iter().any(|s| !s.beside.is_empty()) {
                // As the papers draw them: each startup alone, with all of its flows.
                let (charts, figures): (Vec<_>, Vec<_>) =
                    runs.iter().enumerate().map(|(i, s)| flows(id + i * kinds.len(), study, s)).unzip();
                id += runs.len() * kinds.len();
                let fixed = html! { div class="charts" { @for c in charts.iter().flatten() { (c) } } };
                return Some((*study, live(&fixed, &Figures::new(figures.into_iter().flatten().collect()))));
            }
            let charts = html! {
                div class="charts" {
                    @for (i, kind) in kinds.iter().enumerate() { (chart(id + i, study, *kind, &runs)) }
                }
            };
            id += kinds.len();
            let rows: Vec<Row> = runs.iter().map(|s| s.rows[0].clone()).collect();
            Some((*study, live(&charts, &data(&runs, &rows))))
        })
        .collect();
    html! {
        @if !groups.is_empty() {
            h2 { "Charts" }
            @for (study, group) in &groups {
                @if groups.len() > 1 { h3 { (study) } }
                (group)
            }
        }
    }
}
