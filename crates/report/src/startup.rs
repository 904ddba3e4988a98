//! The charts of the page: the window of each startup, and RTT and progress of all.

use super::chart::{Axis, Chart, Key, Mark, Point};
use super::look::looks;
use maud::{Markup, html};
use serde::Serialize;
use slowstart_study::record::{ExitRow, Row, Sample};
use slowstart_study::words::{bytes, number};

/// What the charts show of one flow besides its samples: of a run, or of a recorded connection with a startup
/// that only observed it. What nothing observed is absent. Times are in seconds since the flow began.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Course {
    /// Payload that fills the path without a queue, in bytes; 0 if the path's rate or round-trip time is not
    /// known.
    pub bdp_bytes: u64,
    /// Least round-trip time; absent if none was measured.
    pub base_rtt_s: Option<f64>,
    /// Bytes that the bottleneck's queue holds; absent if it has no limit or is not known.
    pub buffer_bytes: Option<u64>,
    /// How long the flow was observed.
    pub duration_s: f64,
    /// When the receiver had everything.
    pub completion_s: Option<f64>,
    /// The end of the startup.
    pub exit: Option<Exit>,
    /// When the data in flight first filled the path.
    pub capacity_time_s: Option<f64>,
    /// That time by a heuristic.
    pub capacity_time_by_heuristic_s: Option<f64>,
    /// When the network first dropped a packet.
    pub first_drop_time_s: Option<f64>,
    /// When the sender first knew of a loss.
    pub first_loss_time_s: Option<f64>,
    /// True if packets were lost that were sent before the startup ended.
    #[serde(skip)]
    pub lost_in_startup: bool,
}

/// The end of a startup, as a chart marks it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exit {
    /// The reason, as the startup or the file names it.
    pub reason: String,
    /// When the reason was seen.
    pub time_s: f64,
    /// When it left, if that was later.
    pub left_s: Option<f64>,
    /// The window when the reason was seen, in bytes.
    pub detected_cwnd_bytes: u64,
}

impl From<&ExitRow> for Exit {
    fn from(e: &ExitRow) -> Self {
        Self {
            reason: e.reason.clone(),
            time_s: e.time_s,
            left_s: (e.left_s > e.time_s).then_some(e.left_s),
            detected_cwnd_bytes: e.detected_cwnd_bytes,
        }
    }
}

impl From<&Row> for Course {
    fn from(r: &Row) -> Self {
        Self {
            bdp_bytes: r.bdp_bytes,
            base_rtt_s: Some(r.base_rtt_s),
            buffer_bytes: r.buffer_bytes,
            duration_s: r.duration_s,
            completion_s: r.completion_s,
            exit: r.exit.as_ref().map(Exit::from),
            capacity_time_s: r.capacity_time_s,
            capacity_time_by_heuristic_s: r.capacity_time_by_heuristic_s,
            first_drop_time_s: r.first_drop_time_s,
            first_loss_time_s: r.first_loss_time_s,
            lost_in_startup: r.startup_lost_packets.is_some_and(|n| n > 0),
        }
    }
}

/// A flow to draw in a chart of its own.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The label of the startup, from [`label`](slowstart_study::summary::label).
    pub label: &'a str,
    /// What is drawn besides its samples.
    pub course: Course,
    /// The samples of its run; those of other flows are ignored.
    pub samples: &'a [Sample],
    /// Which flow of them it is.
    pub flow: u32,
    /// Start of the flow on the clock of the samples, in seconds. Times of the course count from it.
    pub start_s: f64,
    /// Payload of a full segment, in bytes.
    pub mss: u64,
}

/// Base RTTs that the time axis shows at least, and that it shows after the last exit.
const LEAST_RTTS: f64 = 10.0;
const MORE_RTTS: f64 = 6.0;
/// Length of the time axis for startups that do not exit, as a multiple of the longest that does.
const FOLLOWED: f64 = 2.0;

/// The samples of a series, with seconds since the start of the flow.
fn samples<'a>(s: &Line<'a>) -> impl Iterator<Item = (f64, &'a Sample)> {
    let (flow, start) = (s.flow, s.start_s);
    s.samples.iter().filter(move |x| x.flow == flow).map(move |x| (x.time_s - start, x))
}

/// The BDP in bytes, at least 1.
fn bdp(s: &Line) -> f64 {
    s.course.bdp_bytes.max(1) as f64
}

/// The end of the time axis: [`MORE_RTTS`] after every startup has exited and its losses are known. A startup
/// that does not exit, or whose transfer never completes where another's does, is shown to the end of its
/// transfer, but for at most [`FOLLOWED`] times as long as the others.
fn horizon(series: &[Line]) -> f64 {
    let most = |of: &dyn Fn(&Line) -> Option<f64>| {
        series.iter().filter_map(of).filter(|x| x.is_finite()).reduce(f64::max)
    };
    let some_complete = series.iter().any(|s| s.course.completion_s.is_some());
    let is_whole = |s: &Line| s.course.completion_s.is_some() || !some_complete;
    let ended = most(&|s| {
        let exit = s.course.exit.as_ref().filter(|_| is_whole(s))?;
        let left = exit.left_s.unwrap_or(exit.time_s);
        // A first loss that the startup did not cause does not count.
        let known = s.course.first_loss_time_s.filter(|_| s.course.lost_in_startup);
        Some(left.max(known.unwrap_or(0.0)) + MORE_RTTS * s.course.base_rtt_s.unwrap_or(0.0))
    });
    let endless = most(&|s| {
        let open = s.course.exit.is_none() || !is_whole(s);
        open.then(|| s.course.completion_s.unwrap_or(s.course.duration_s))
    });
    let over = match (ended, endless) {
        (Some(ended), Some(endless)) => ended.max(endless.min(FOLLOWED * ended)),
        (one, other) => one.or(other).unwrap_or(0.0),
    };
    let least = most(&|s| s.course.base_rtt_s.map(|r| LEAST_RTTS * r)).unwrap_or(0.0);
    over.max(least).min(most(&|s| Some(s.course.duration_s)).unwrap_or(f64::INFINITY))
}

/// Returns all charts: one for each series, then two of all. `asked` is for a recorded connection, about
/// which startups were asked when they would have exited: its queue is unknown, and there is one progress.
pub(super) fn charts(series: &[Line], asked: bool) -> Markup {
    let time = Axis::cut("time since the flow began (s)", horizon(series));
    let shown = || series.iter().flat_map(|s| samples(s).map(move |(t, x)| (t, x, s)));
    let peak = |of: &dyn Fn(&Sample, &Line) -> f64| {
        let visible = shown().filter(|(t, ..)| *t <= time.max());
        visible.map(|(_, x, s)| of(x, s)).filter(|v| v.is_finite()).fold(0.0, f64::max)
    };
    let inflight = peak(&|x, s| x.inflight_bytes as f64 / bdp(s)).max(1.1);
    // A window that is not used may be very large: the axis ends at twice the data in flight.
    let window = peak(&|x, s| x.cwnd_bytes as f64 / bdp(s)).clamp(inflight, 2.0 * inflight);
    let windows = Axis::round("window and flight (BDP)", window);
    let rtt = Axis::round("round-trip time (ms)", peak(&|x, _| x.rtt_s.unwrap_or(0.0) * 1e3));
    let delivered = Axis::round("delivered (MB)", peak(&|x, _| x.delivered_bytes as f64 / 1e6));
    let each = &series[..if asked { series.len().min(1) } else { series.len() }];
    let numbers = looks(&each.iter().map(|s| s.label).collect::<Vec<_>>());
    let keys: Vec<Key> = each
        .iter()
        .zip(numbers)
        .map(|(s, at)| if asked { Key { at: 6, label: "recorded" } } else { Key { at, label: s.label } })
        .collect();
    let base = series.iter().filter_map(|s| s.course.base_rtt_s).reduce(f64::min);
    let base = |chart: &Chart| html! { @if let Some(base) = base { (chart.level("level", base * 1e3, "base RTT")) } };
    let id = series.len();
    let all = |id, name: &str, y, of: fn(&Sample) -> Option<f64>, level: &dyn Fn(&Chart) -> Markup| {
        let chart = Chart { id, name: format!("{name} over time"), x: &time, y, legend: &keys };
        let lines = html! {
            @for (s, key) in each.iter().zip(&keys) {
                (chart.keyed(key, samples(s).filter_map(|(t, x)| Some((t, of(x)?)))))
            }
        };
        html! { figure { figcaption { h3 { (name) } } (chart.draw(&lines, &level(&chart))) } }
    };
    html! {
        div class="charts" {
            @for (id, s) in series.iter().enumerate() { (one(id, s, &time, &windows, asked)) }
        }
        h2 { @if asked { "The recorded connection" } @else { "Queue and progress" } }
        div class="charts" {
            (all(id, "Round-trip time", &rtt, |x| x.rtt_s.map(|r| r * 1e3), &base))
            (all(id + 1, "Delivered", &delivered, |x| Some(x.delivered_bytes as f64 / 1e6), &|_| html! {}))
        }
    }
}

/// Returns the chart of one series.
fn one(id: usize, s: &Line, time: &Axis, y: &Axis, asked: bool) -> Markup {
    let points =
        |of: fn(&Sample) -> u64| samples(s).map(move |(t, x)| -> Point { (t, of(x) as f64 / bdp(s)) });
    let marks = marks(s);
    let buffer = s.course.buffer_bytes.map(|b| 1.0 + b as f64 / bdp(s));
    let name = format!("{}: window and bytes in flight over time", s.label);
    let chart = Chart { id, name, x: time, y, legend: &[] };
    let inside = html! {
        (chart.area("flight", "in flight", points(|x| x.inflight_bytes)))
        // A window of 0 means that it is not known.
        (chart.line("window", "window", points(|x| x.cwnd_bytes).filter(|p| p.1 > 0.0)))
    };
    let known: Vec<_> = samples(s).collect();
    let over = html! {
        (chart.level("level", 1.0, "BDP"))
        @if let Some(full) = buffer { (chart.level("level full", full, "BDP + buffer")) }
        (chart.strips(|t| tell(s, &known, t, asked)))
        (chart.marks(&marks))
    };
    html! {
        figure {
            figcaption {
                h3 { (s.label) }
                ul class="marks" {
                    @for m in &marks {
                        li {
                            b class={ "mark " (m.class) } { (m.letter) } " " (m.text)
                            @if m.time > time.max() { " (beyond the chart)" }
                        }
                    }
                    @if s.course.exit.is_none() { li { "no exit" @if asked { " in the part that can be judged" } } }
                    @if known.is_empty() { li { "no samples were recorded" } }
                    @match buffer {
                        None if asked => {},
                        None => li { "the queue has no limit" },
                        Some(full) if full > y.max() => {
                            li { "BDP + buffer: " (number(full)) " BDP, above the chart" }
                        },
                        Some(_) => {},
                    }
                }
            }
            (chart.draw(&inside, &over))
        }
    }
}

/// Describes a series at a time, from its last sample by then.
fn tell(s: &Line, known: &[(f64, &Sample)], t: f64, asked: bool) -> Option<String> {
    let (at, x) = known[..known.partition_point(|(at, _)| *at <= t)].last()?;
    let amount = |n: u64| {
        format!(
            "{} ({} BDP, {} packets)",
            bytes(n),
            number(n as f64 / bdp(s)),
            number((n / s.mss.max(1)) as f64)
        )
    };
    let rtt =
        x.rtt_s.filter(|r| r.is_finite()).map_or(String::new(), |r| format!("\nRTT {} ms", number(r * 1e3)));
    let (window, flight) = (amount(x.cwnd_bytes), amount(x.inflight_bytes));
    if asked {
        let window = if x.cwnd_bytes > 0 { window } else { "not known".to_string() };
        return Some(format!("{at:.3} s\nwindow {window}\nin flight {flight}{rtt}"));
    }
    let phase = x.phase.as_deref().map_or(String::new(), |p| format!(", {p}"));
    let queue = x.queue_bytes.map_or(String::new(), |q| format!("\nqueue {}", bytes(q)));
    Some(format!("{at:.3} s{phase}\nwindow {window}\nin flight {flight}{rtt}{queue}"))
}

/// Returns the marks of a series.
fn marks(s: &Line) -> Vec<Mark> {
    let row = &s.course;
    let mark = |letter, class, time: Option<f64>, text: &str| {
        let time = time.filter(|t| t.is_finite())?;
        Some(Mark { letter, class, time, text: format!("{text} {} s", number(time)) })
    };
    let exit = row.exit.as_ref().and_then(|e| {
        let m = mark("E", "exit", Some(e.time_s), "exit")?;
        let window = number(e.detected_cwnd_bytes as f64 / bdp(s));
        let left = e.left_s.map_or(String::new(), |s| format!(", left {} s", number(s)));
        Some(Mark { text: format!("{} ({}) at {window} BDP{left}", m.text, e.reason), ..m })
    });
    let all = [
        mark("C", "capacity", row.capacity_time_s, "capacity reached"),
        mark("H", "heuristic", row.capacity_time_by_heuristic_s, "capacity by heuristic"),
        exit,
        mark("D", "drop", row.first_drop_time_s, "first drop"),
        mark("L", "loss", row.first_loss_time_s, "first loss known"),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::sample::{rows, with};

    fn until(rows: &[Row]) -> f64 {
        let series = |row: &Row| Line {
            label: "",
            course: row.into(),
            samples: &[],
            flow: row.flow,
            start_s: 0.0,
            mss: 1448,
        };
        horizon(&rows.iter().map(series).collect::<Vec<_>>())
    }

    #[test]
    fn the_axis_ends_when_startups_are_over() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        // Left at 1.7 s, and six round trips of 0.1 s.
        let ends = rows("a", &[7.0]);
        close(until(&ends), 2.3);
        let late =
            with(ends.clone(), |r| (r.first_loss_time_s, r.startup_lost_packets) = (Some(2.0), Some(1)));
        close(until(&late), 2.6);
        let much_later = with(ends.clone(), |r| r.first_loss_time_s = Some(6.0));
        close(until(&much_later), 2.3);
        let endless = with(ends.clone(), |r| r.exit = None);
        close(until(&endless), 7.0);
        close(until(&[ends.clone(), endless].concat()), 4.6);
        // A transfer that stalls leaves slow start by a timeout, long after the others are done.
        let stalls = with(ends.clone(), |r| {
            r.completion_s = None;
            r.exit.as_mut().expect("an exit").left_s = 29.0;
        });
        close(until(&[ends.clone(), stalls.clone()].concat()), 4.6);
        close(until(&stalls), 29.6);
        close(until(&with(ends, |r| r.duration_s = 2.0)), 2.0);
    }
}
