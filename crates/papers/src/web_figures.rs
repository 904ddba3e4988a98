//! Charts and table of runs of web clients: distributions of sizes and response times, one line for each
//! startup over all of its runs.

use crate::figure::line_chart;
use crate::result::RunResult;
use crate::web::{Measure, RetriedConnection, WebResult};
use maud::{Markup, html};
use slowstart_report::chart::{Axis, Point};
use slowstart_report::figure::{Figure, Figures};
use slowstart_report::live;
use slowstart_study::stats::order_statistic;
use slowstart_study::words;

/// Number of points of a distribution.
const POINTS: usize = 240;
/// The smallest share that is drawn.
const LEAST: f64 = 1e-3;
/// Payload of a segment, bytes.
const SEGMENT: f64 = 1460.0;
/// Largest answer drawn, in segments (50 kB, as in the paper).
const SEGMENTS: usize = 34;

/// The share of values above each value; points are closer together towards the tail.
fn above(mut values: Vec<f64>) -> Vec<Point> {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let place = |i: usize| {
        let share = LEAST.powf(i as f64 / POINTS as f64);
        let at = ((1.0 - share) * n) as usize;
        values.get(at).map(|v| (*v, share))
    };
    (0..=POINTS).filter_map(place).collect()
}

/// The share of values up to each value, in per cent.
fn below(mut values: Vec<f64>) -> Vec<Point> {
    values.sort_by(f64::total_cmp);
    let place = |i: usize| {
        let share = i as f64 / POINTS as f64;
        values.get(((values.len() - 1) as f64 * share) as usize).map(|v| (*v, 100.0 * share))
    };
    if values.is_empty() { Vec::new() } else { (0..=POINTS).filter_map(place).collect() }
}

/// The median response time of answers, by their number of segments.
fn steps(retried: &[&RetriedConnection]) -> Vec<Point> {
    let mut by_size = vec![Vec::new(); SEGMENTS];
    for h in retried {
        if let Some(of) = by_size.get_mut((h.bytes.saturating_sub(1) as f64 / SEGMENT) as usize) {
            of.push(h.rtts());
        }
    }
    let mut points = Vec::new();
    for (i, times) in by_size.iter().enumerate() {
        if let Some(middle) = order_statistic(times, 0.5) {
            let kb = |segments: usize| segments as f64 * SEGMENT / 1000.0;
            points.extend([(kb(i), middle), (kb(i + 1), middle)]);
        }
    }
    points
}

/// A chart, and the same for the script.
type Both = (Markup, Figure);

fn both(id: usize, title: &str, what: &str, x: &Axis, y: &Axis, lines: &[(&str, Vec<Point>)]) -> Both {
    (line_chart(id, title, what, x, y, lines), Figure::new(title, x, y, lines))
}

/// The charts of one study, with identifiers from `id`.
fn study(id: usize, name: &str, results: &[RunResult]) -> Vec<Both> {
    let mut labels: Vec<&str> = Vec::new();
    for s in results.iter().filter(|s| s.study == name) {
        if !labels.contains(&s.label.as_str()) {
            labels.push(&s.label);
        }
    }
    let runs = |label: &str| -> Vec<&WebResult> {
        results
            .iter()
            .filter(|s| s.study == name && s.label == label)
            .filter_map(|s| s.web.as_ref())
            .collect()
    };
    let retried = |label: &str| -> Vec<&RetriedConnection> {
        runs(label).into_iter().flat_map(|w| &w.retried).filter(|h| h.studied).collect()
    };
    let lines = |of: &dyn Fn(&str) -> Vec<Point>| -> Vec<(&str, Vec<Point>)> {
        labels.iter().map(|l| (*l, of(l))).collect()
    };
    let share = Axis::decades("share of connections above", LEAST, 1.0);
    let seconds = Axis::decades("share of seconds above", LEAST, 1.0);
    let rtts = Axis::decades("response time (RTTs)", 2.0, 1000.0);
    let time = Axis::decades("response time (s)", 0.1, 1000.0);
    let median = Axis::decades("median response time (RTTs)", 1.0, 100.0);
    let size = Axis::cut("answer (kB)", SEGMENT * SEGMENTS as f64 / 1000.0);
    let lost = lines(&|l| {
        let of = |(sent, dropped): &(u64, u64)| 100.0 * *dropped as f64 / (*sent).max(1) as f64;
        above(runs(l).iter().flat_map(|w| &w.seconds).map(of).collect())
    });
    let worst = lost.iter().flat_map(|(_, p)| p).map(|p| p.0).fold(0.0, f64::max);
    let slower = lines(&|l| above(retried(l).iter().map(|h| h.rtts()).collect()));
    let seconds_of = |l: &str| retried(l).iter().filter(|h| h.rtt_s >= 0.05).map(|h| h.response_s).collect();
    let slower_s = lines(&|l| above(seconds_of(l)));
    let by_size = lines(&|l| steps(&retried(l)));
    let title = |what: &str| format!("{name}: {what}");
    vec![
        both(id, &title("response times"), "distribution", &rtts, &share, &slower),
        both(
            id + 3,
            &title("response times in seconds, RTT of 50 ms or more"),
            "distribution",
            &time,
            &share,
            &slower_s,
        ),
        both(id + 1, &title("response times by size"), "steps", &size, &median, &by_size),
        both(
            id + 2,
            &title("loss rate per second"),
            "distribution",
            &Axis::round("packet loss rate (%)", worst),
            &seconds,
            &lost,
        ),
    ]
}

/// The distributions of requests, answers and round-trip times of all connections of a run.
fn drawn_from(id: usize, w: &WebResult) -> Vec<Both> {
    let of = |f: &dyn Fn(&(u32, u32, f32)) -> f64| below(w.drawn.iter().map(f).collect());
    let share = Axis::cut("share of connections (%)", 100.0);
    let bytes = Axis::decades("bytes", 10.0, 1e6);
    let ms = Axis::decades("round-trip time (ms)", 1.0, 10_000.0);
    let sizes = [("requests", of(&|c| f64::from(c.0))), ("answers", of(&|c| f64::from(c.1)))];
    let rtts = [("round-trip times", of(&|c| 1000.0 * f64::from(c.2)))];
    vec![
        both(id, "Requests and answers", "distribution", &bytes, &share, &sizes),
        both(id + 1, "Round-trip times", "distribution", &ms, &share, &rtts),
    ]
}

/// A table of response times, one row for each run.
fn table(results: &[RunResult]) -> Markup {
    const SHARES: [f64; 6] = [0.1, 0.5, 0.7, 0.9, 0.99, 0.999];
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "study" }
                    th scope="col" class="text" { "startup" }
                    @for h in ["run", "connections", "retransmitted SYNs", "lost packets (%)",
                        "highest in a second (%)", "throughput (%)", "utilisation (%)", "correlation of neighbours"] {
                        th scope="col" { (h) }
                    }
                    @for s in SHARES { th scope="col" { (words::number(100.0 * s)) " % (RTTs)" } }
                } }
                tbody {
                    @for (s, w) in results.iter().filter_map(|s| s.web.as_ref().map(|w| (s, w))) {
                        tr {
                            th scope="row" { (s.study) }
                            td class="text" { (s.label) }
                            td { (s.run) }
                            td { (w.connections) }
                            td { (w.retried.len()) }
                            td { (words::number(100.0 * w.loss_rate())) }
                            td { (words::number(100.0 * w.peak_loss_rate())) }
                            td { (words::number(100.0 * w.throughput())) }
                            td { (w.utilisation().map_or("-".into(), |u| words::number(100.0 * u))) }
                            td { (Measure::Correlation.of(w).map_or("-".into(), words::number)) }
                            @for share in SHARES {
                                td { (Measure::Quantile(share).of(w).map_or("-".into(), words::number)) }
                            }
                        }
                    }
                }
            }
        }
        p class="note" {
            "Quantiles of the response time of connections whose SYN was retransmitted, without the timeouts of the handshake."
        }
    }
}

/// All charts, and the table of runs.
pub fn charts_and_table(studies: &[&str], results: &[RunResult]) -> Markup {
    let mut charts: Vec<Both> = Vec::new();
    for name in studies {
        charts.extend(study(charts.len(), name, results));
    }
    if let Some(w) = results.first().and_then(|s| s.web.as_ref()) {
        charts.extend(drawn_from(charts.len(), w));
    }
    let (charts, figures): (Vec<Markup>, Vec<Figure>) = charts.into_iter().unzip();
    let fixed = html! { div class="charts" { @for c in &charts { (c) } } };
    html! {
        h2 { "Charts" }
        p class="note" {
            "Response times are those of connections whose SYN was retransmitted. The last two charts show all connections of a "
            "run."
        }
        (live(&fixed, &Figures::new(figures)))
        h2 { "Runs" }
        (table(results))
    }
}
