//! One picture of the startups that matter over the same path: bytes in flight over time on a logarithmic
//! axis, on which doubling is a straight line, with the capacity and the end of the queue marked. And, as a
//! file of its own, the picture of a README.

use super::Series;
use super::chart::dashes;
use super::look::{COLOURS, looks};
use maud::{Markup, PreEscaped, html};
use slowstart_study::decision::{Change, Decision, role};
use slowstart_study::measures::Measure;
use slowstart_study::price::share;
use slowstart_study::summary::Summary;
use slowstart_study::verdict::recommended;
use slowstart_study::words::{bytes, delay, number, rate, share_of_bdp, signed, spread};
use std::fmt::Write;

/// Most startups in the picture.
const MOST: usize = 4;
/// Width of the picture as a file, in units of the SVG.
const WIDTH: f64 = 1000.0;
/// Points of a curve: one for each so many units.
const STEP: f64 = 1.5;
/// The least share of the BDP on the axis.
const LEAST: f64 = 1.0 / 256.0;
/// From one line of text to the next.
const LINE: f64 = 19.0;

/// The labels of the startups to draw: the baseline, plain slow start, the recommended one, then what is faster,
/// loses nothing more and nothing beats.
pub fn labels<'d>(d: &'d Decision) -> Vec<&'d str> {
    let mut all: Vec<&str> = Vec::new();
    let mut add = |label: Option<&'d str>| {
        if let Some(l) = label.filter(|l| !all.contains(l) && all.len() < MOST) {
            all.push(l);
        }
    };
    let named = |wanted: &str| d.standings.iter().map(|s| s.summary.label.as_str()).find(|l| *l == wanted);
    add(d.baseline().map(|b| b.summary.label.as_str()));
    add(named("standard"));
    add(recommended(d).and_then(named));
    let lossless = |s: &&slowstart_study::decision::Standing| {
        let price = d.price(&s.summary, Measure::StartupLost);
        let gain = d.against(&s.summary, d.by).is_some_and(|x| x.change == Change::Better);
        s.unbeaten && gain && price.is_none_or(|p| p.is_nothing())
    };
    d.standings.iter().filter(lossless).for_each(|s| add(Some(&s.summary.label)));
    d.standings.iter().for_each(|s| add(Some(&s.summary.label)));
    all
}

/// For which screen a picture is drawn; text has the same size in both.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As wide as a page.
    Wide,
    /// For a phone.
    Narrow,
}

impl Shape {
    const fn class(self) -> &'static str {
        match self {
            Self::Wide => "overlay",
            Self::Narrow => "overlay narrow",
        }
    }

    const fn width(self) -> f64 {
        match self {
            Self::Wide => WIDTH,
            Self::Narrow => 360.0,
        }
    }

    /// The columns in which it stands how each startup leaves.
    const fn columns(self) -> usize {
        match self {
            Self::Wide => 2,
            Self::Narrow => 1,
        }
    }

    const fn area(self) -> Area {
        match self {
            Self::Wide => Area { left: 56.0, top: 16.0, right: 984.0, bottom: 384.0 },
            Self::Narrow => Area { left: 50.0, top: 8.0, right: 352.0, bottom: 328.0 },
        }
    }
}

/// The area of the curves.
#[derive(Copy, Clone, Debug)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// The binary logarithm, the same on every platform: the exponent, and of the mantissa the series of the
/// inverse hyperbolic tangent.
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as f64 - 1023.0;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..12).rev().fold(0.0, |sum, k| sum * t * t + 1.0 / f64::from(2 * k + 1));
    exponent + 2.0 * t * series * std::f64::consts::LOG2_E
}

/// The axes of the picture.
struct Axes {
    area: Area,
    until_s: f64,
    /// Powers of two.
    low: f64,
    high: f64,
}

impl Axes {
    fn x(&self, t: f64) -> f64 {
        self.area.left + (t / self.until_s).clamp(0.0, 1.0) * (self.area.right - self.area.left)
    }

    fn y(&self, bdps: f64) -> f64 {
        let at = (log2(bdps.max(1e-9)) - self.low) / (self.high - self.low);
        self.area.bottom - at.clamp(0.0, 1.0) * (self.area.bottom - self.area.top)
    }
}

/// The bytes in flight of a series in BDP, by time.
fn points(s: &Series) -> Vec<(f64, f64)> {
    let bdp = s.row.bdp_bytes.max(1) as f64;
    let done = s.row.completion_s.unwrap_or(f64::INFINITY);
    let own = s.samples.iter().filter(|x| x.flow == s.row.flow);
    own.map(|x| (x.time_s - s.start_s, x.inflight_bytes as f64 / bdp)).filter(|(t, _)| *t <= done).collect()
}

/// A startup that is drawn: its look, its run, and its points.
struct Curve<'a> {
    look: usize,
    series: &'a Series<'a>,
    /// Seconds and BDP.
    points: Vec<(f64, f64)>,
}

/// The name of a startup beside the place where it leaves.
struct Label<'a> {
    x: f64,
    y: f64,
    /// Where the text is: to the right of the ring, or to the left near the edge.
    end: bool,
    text: &'a str,
}

/// The curves of `series`, which are over one path. `full_bdps` is what the path and its queue hold before a
/// packet is dropped, in BDP; `None` if there is no limit.
pub fn overlay(d: &Decision, series: &[Series], full_bdps: Option<f64>, shape: Shape) -> Markup {
    let drawn = drawn(d, series);
    let below = shape.area().bottom + 44.0;
    let height = below + drawn.len().div_ceil(shape.columns()) as f64 * LINE;
    html! {
        svg viewBox={ "0 0 " (shape.width()) " " (height) } role="img" class=(shape.class()) aria-label="Bytes in flight over time" {
            (curves(&drawn, full_bdps, shape))
            (exits(&drawn, below, shape))
        }
    }
}

/// How each startup leaves, from `top` on.
fn exits(drawn: &[Curve], top: f64, shape: Shape) -> Markup {
    let wide = (shape.width() - 12.0) / shape.columns() as f64;
    html! {
        @for (i, c) in drawn.iter().enumerate() {
            @let x = 12.0 + wide * (i % shape.columns()) as f64;
            @let y = top + LINE * ((i / shape.columns()) as f64 + 0.5);
            circle class={ "ring s" (c.look % COLOURS) } cx=(px(x)) cy=(px(y - 4.0)) r="6" {}
            text class={ "label f" (c.look % COLOURS) } x=(px(x + 14.0)) y=(px(y)) { (says(c.series)) }
        }
    }
}

/// The startups to draw, those of which there is a series.
fn drawn<'a>(d: &Decision, series: &'a [Series<'a>]) -> Vec<Curve<'a>> {
    let labels = labels(d);
    labels
        .iter()
        .zip(looks(&labels))
        .filter_map(|(l, look)| Some((look, series.iter().find(|s| s.label == *l)?)))
        .map(|(look, series)| Curve { look, series, points: points(series) })
        .collect()
}

fn curves(drawn: &[Curve], full_bdps: Option<f64>, shape: Shape) -> Markup {
    let area = shape.area();
    let peak = drawn.iter().flat_map(|c| &c.points).map(|p| p.1).fold(2.0, f64::max);
    let ends = drawn.iter().filter_map(|c| c.series.row.completion_s.or(c.points.last().map(|p| p.0)));
    let until_s = ends.fold(0.0, f64::max).max(1e-3);
    let top = peak.max(full_bdps.unwrap_or(0.0).min(4.0 * peak));
    let least = drawn
        .iter()
        .filter_map(|c| Some(c.series.row.iw_bytes? as f64 / c.series.row.bdp_bytes.max(1) as f64));
    let low = log2(least.fold(0.25, f64::min).max(LEAST)).floor();
    let axes = Axes { area, until_s, low, high: log2(top * 1.25).ceil() };
    let full = full_bdps.filter(|f| log2(*f) < axes.high);
    let (one, end) = (axes.y(1.0), full.map_or(area.top, |f| axes.y(f)));
    let most = if shape == Shape::Wide { 8.0 } else { 5.0 };
    let step = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
    let step = step.into_iter().find(|s| until_s / s <= most).unwrap_or(until_s);
    let ticks: Vec<f64> = (0..=9).map(|i| f64::from(i) * step).filter(|t| *t <= until_s).collect();
    let powers = (axes.low as i32..=axes.high as i32).filter(|p| *p >= 0 || p % 2 == axes.low as i32 % 2);
    let wide = area.right - area.left;
    let idle = "the link is partly idle";
    let mut bands = vec![("link full", one - 6.0), ("the queue grows", end + 16.0)];
    bands.extend(full.map(|_| ("packets are dropped", area.top + 15.0)));
    let mut taken: Vec<(f64, f64, f64)> =
        bands.iter().map(|(text, y)| (area.left, area.left + 6.0 + width(text), *y)).collect();
    taken.push((area.right - 6.0 - width(idle), area.right, area.bottom - 8.0));
    html! {
        rect class="idle" x=(area.left) y=(px(one)) width=(wide) height=(px(area.bottom - one)) {}
        rect class="waits" x=(area.left) y=(px(end)) width=(wide) height=(px(one - end)) {}
        @if full.is_some() {
            rect class="drops" x=(area.left) y=(area.top) width=(wide) height=(px(end - area.top)) {}
        }
        @for t in &ticks {
            line class="grid" x1=(px(axes.x(*t))) y1=(area.top) x2=(px(axes.x(*t))) y2=(area.bottom) {}
            text x=(px(axes.x(*t))) y=(area.bottom + 18.0) text-anchor="middle" { ((t * 1e3).round() / 1e3) }
        }
        text x=(f64::midpoint(area.left, area.right)) y=(area.bottom + 38.0) text-anchor="middle" { "seconds since the connection began" }
        @for p in powers {
            @let name = if p < 0 { format!("1/{}", 1_u64 << -p) } else { (1_u64 << p).to_string() };
            text x=(area.left - 8.0) y=(px(axes.y(2_f64.powi(p)) + 4.0)) text-anchor="end" { (name) }
        }
        line class="capacity" x1=(area.left) y1=(px(one)) x2=(area.right) y2=(px(one)) {}
        @for (text, y) in &bands { text class="band" x=(area.left + 6.0) y=(px(*y)) { (text) } }
        text class="band" x=(area.right - 6.0) y=(area.bottom - 8.0) text-anchor="end" { (idle) }
        @for c in drawn { path class={ "curve s" (c.look % COLOURS) } stroke-dasharray=[(c.look >= COLOURS).then(|| dashes(c.look))] d=(path(&axes, &c.points)) {} }
        @for (i, l) in (shape == Shape::Wide).then(|| placed(&axes, drawn, &taken)).into_iter().flatten() {
            @let anchor = if l.end { "end" } else { "start" };
            @let x = if l.end { l.x - 12.0 } else { l.x + 12.0 };
            text class={ "label f" (i % COLOURS) " halo" } x=(px(x)) y=(px(l.y)) text-anchor=(anchor) { (l.text) }
        }
        @for c in drawn {
            @if let Some((x, y)) = ring(&axes, c) { circle class={ "ring s" (c.look % COLOURS) } cx=(px(x)) cy=(px(y)) r="6" {} }
        }
    }
}

/// A coordinate with one decimal.
fn px(x: f64) -> String {
    format!("{x:.1}")
}

/// A line through points, which ends where nothing is in flight and begins again behind: a logarithmic axis has no 0.
fn path(axes: &Axes, points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for part in points.chunk_by(|a, b| (a.1 > 0.0) == (b.1 > 0.0)) {
        for (i, (x, y)) in on_screen(axes, part).into_iter().enumerate() {
            let begin = if i > 0 { "L" } else { "M" };
            write!(text, "{begin}{x:.1} {y:.1}").expect("a String takes everything");
        }
    }
    text
}

/// The places of points, at most one for each [`STEP`].
fn on_screen(axes: &Axes, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut shown: Vec<(f64, f64)> = Vec::new();
    for (i, (t, y)) in points.iter().enumerate() {
        let x = axes.x(*t);
        let is_near = shown.last().is_some_and(|last| x - last.0 < STEP) && i + 1 < points.len();
        if *y > 0.0 && !is_near {
            shown.push((x, axes.y(*y)));
        }
    }
    shown
}

/// Where a startup leaves slow start: the moment it saw the reason, on its curve.
fn ring(axes: &Axes, c: &Curve) -> Option<(f64, f64)> {
    let at = c.series.row.exit.as_ref()?.time_s;
    let (_, y) = c.points.iter().rev().find(|(t, _)| *t <= at)?;
    Some((axes.x(at), axes.y(*y)))
}

/// What is said of a startup in the picture.
fn says(s: &Series) -> String {
    let lost = match s.row.startup_lost_packets {
        None | Some(0) => String::new(),
        Some(n) => format!(", loses {}", number(n as f64)),
    };
    match &s.row.exit {
        None => format!("{}: does not leave{lost}", s.label),
        Some(e) => {
            let at = share_of_bdp(e.detected_cwnd_bytes as f64 / s.row.bdp_bytes.max(1) as f64);
            format!("{}: {}, at {at}{lost}", s.label, s.row.class.how())
        }
    }
}

/// The names, at the places beside their rings that cover the least: never another text, and few points of the curves.
/// `others` are the texts that stand there already: left end, right end and line.
fn placed<'a>(axes: &Axes, drawn: &'a [Curve], others: &[(f64, f64, f64)]) -> Vec<(usize, Label<'a>)> {
    // A name goes one line farther from its ring rather than cover this many points.
    const FAR: usize = 1;
    let area = axes.area;
    let (top, bottom) = (area.top + LINE, area.bottom - 6.0);
    let rings: Vec<(f64, f64)> = drawn.iter().filter_map(|c| ring(axes, c)).collect();
    let points: Vec<(f64, f64)> = drawn.iter().flat_map(|c| dense(&on_screen(axes, &c.points))).collect();
    let span = |l: &Label| {
        let wide = width(l.text);
        if l.end { (l.x - 12.0 - wide, l.x - 12.0) } else { (l.x + 12.0, l.x + 12.0 + wide) }
    };
    let below = |l: &Label, of: &[(f64, f64)]| {
        let (a, b) = span(l);
        of.iter().filter(|(x, y)| (a..b).contains(x) && (l.y - 14.0..l.y + 6.0).contains(y)).count()
    };
    let mut taken = others.to_vec();
    let mut all: Vec<(usize, Label)> = Vec::new();
    for c in drawn {
        let text = c.series.label;
        let (x, y) = ring(axes, c)
            .or_else(|| c.points.last().map(|(t, y)| (axes.x(*t), axes.y(*y))))
            .unwrap_or((area.left, area.top));
        let is_free = |label: &Label| {
            let (a, b) = span(label);
            taken.iter().all(|(c, d, line)| a >= *d || *c >= b || (line - label.y).abs() >= LINE - 2.0)
        };
        // Early exits are labelled below their ring, others above: the curves rise.
        let is_below = y > axes.y(1.0);
        let wanted = (y + if is_below { 22.0 } else { -10.0 }).clamp(top, bottom);
        let towards = if is_below { LINE } else { -LINE };
        let places = (0..12_usize).flat_map(|n| {
            let by = n as f64 * towards;
            [(n, by, false), (n, by, true), (n, -by, false), (n, -by, true)]
        });
        let label_at = |(n, by, end): (usize, f64, bool)| (n, Label { x, y: wanted + by, end, text });
        let label = places
            .map(label_at)
            .filter(|(_, l)| {
                let (a, b) = span(l);
                a >= area.left && b <= area.right && (top..=bottom).contains(&l.y) && is_free(l)
            })
            .min_by_key(|(n, l)| below(l, &points) + 100 * below(l, &rings) + FAR * n)
            .map_or_else(|| label_at((0, 0.0, x > area.right / 2.0)).1, |(_, l)| l);
        let (a, b) = span(&label);
        taken.push((a, b, label.y));
        all.push((c.look, label));
    }
    all
}

/// About the width of a bold text.
fn width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.4
}

/// The same curve with a point for each [`STEP`] of its length, so that a steep part counts as much as a flat one.
fn dense(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let between = |w: &[(f64, f64)]| {
        let ((x, y), (to_x, to_y)) = (w[0], w[1]);
        let steps = ((to_x - x).abs().max((to_y - y).abs()) / STEP).ceil();
        (0..steps as usize).map(move |i| {
            let share = i as f64 / steps;
            (x + (to_x - x) * share, y + (to_y - y) * share)
        })
    };
    points.windows(2).flat_map(between).chain(points.last().copied()).collect()
}

/// The style of the picture as a file of its own: the colours of Okabe and Ito on white.
const STYLE: &str = "text{font:13px system-ui,'DejaVu Sans',sans-serif;fill:#555}.title{font-size:26px;font-weight:700;fill:#111}\
.sub{font-size:14px}.head{font-weight:700;fill:#222}.figure{fill:#222}.label,.name{font-weight:700}.band{fill:#6b6b6b}\
.halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}.idle{fill:#0072b2;fill-opacity:.06}\
.waits{fill:#f0e442;fill-opacity:.2}.drops{fill:#d55e00;fill-opacity:.13}.grid{stroke:#000;stroke-opacity:.07}\
.capacity{stroke:#333;stroke-width:1.3}.curve{fill:none;stroke-width:3;stroke-linejoin:round;stroke-linecap:round}\
.ring{fill:#fff;stroke-width:3}.s0{stroke:#0072b2}.s1{stroke:#d55e00}.s2{stroke:#008a63}.s3{stroke:#a64d79}\
.s4{stroke:#b57a00}.s5{stroke:#3a94cf}.s6{stroke:#1a1a1a}.f0{fill:#0072b2}.f1{fill:#d55e00}.f2{fill:#008a63}.f3{fill:#a64d79}\
.f4{fill:#9a6700}.f5{fill:#2277a8}.f6{fill:#1a1a1a}.s7{stroke:#825}.s8{stroke:#7a7a14}.s9{stroke:#8a5a2b}.s10{stroke:#328}.s11{stroke:#7a7a7a}\
.f7{fill:#825}.f8{fill:#7a7a14}.f9{fill:#8a5a2b}.f10{fill:#328}.f11{fill:#7a7a7a}";

/// A panel of bars: its title, and for each startup the length of the bar, if there is one, and the figure as the table
/// has it.
struct Bars {
    title: String,
    of: Vec<(Option<f64>, String)>,
}

/// The picture as a file: curves of one run of each startup over the same path, and the medians of all runs
/// as the table of `slowstart compare` shows them. Nothing if there are no rows.
pub fn picture(d: &Decision, series: &[Series], full_bdps: Option<f64>, command: &str) -> Option<String> {
    const TOP: f64 = 74.0;
    const ROW: f64 = 30.0;
    let base = d.baseline()?;
    let shown = labels(d);
    let looks = looks(&shown);
    let of: Vec<&Summary> =
        shown.iter().filter_map(|l| d.standings.iter().map(|s| &s.summary).find(|s| s.label == *l)).collect();
    let row = series.iter().find(|s| s.label == base.summary.label)?.row;
    let middle = |s: &Summary, m: Measure| s.of_all_runs(m).map(|x| x.mid);
    let time = |s: &Summary| match d.against(s, d.by) {
        Some(x) if x.never[0] > 0 => format!("never in {}", share(x.never[0], x.runs)),
        Some(x) => format!("{} %", signed(x.median.mid)),
        None => s.of_all_runs(d.by).map_or("-".into(), |m| format!("{} s", spread(&m).mid)),
    };
    let title = match d.by {
        Measure::ObjectMedian => "median time of an object".to_string(),
        Measure::Time10MB => "10 MB delivered after".to_string(),
        _ => format!("{} delivered after", row.size_bytes.map_or("all".into(), bytes)),
    };
    let bars = [
        Bars { title, of: of.iter().map(|s| (middle(s, d.by), time(s))).collect() },
        Bars {
            title: Measure::StartupLost.entry().label.into(),
            of: of.iter().map(|s| (middle(s, Measure::StartupLost), s.lost(|m| number(m.mid)))).collect(),
        },
        Bars {
            title: Measure::QueueDelay.entry().label.into(),
            of: of
                .iter()
                .map(|s| middle(s, Measure::QueueDelay))
                .map(|wait| (wait, wait.map_or("-".into(), |s| delay(s * 1e3))))
                .collect(),
        },
    ];
    let titles: Vec<&str> = bars.iter().map(|b| b.title.as_str()).collect();
    let figures: Vec<String> = (0..of.len())
        .map(|i| {
            let texts: Vec<&str> = bars.iter().map(|b| b.of[i].1.as_str()).collect();
            format!("{}: {}", of[i].label, texts.join(", "))
        })
        .collect();
    let about = format!(
        "Bytes in flight of one run on the path {}, and of all runs {}. {}.",
        row.path,
        titles.join(", "),
        figures.join("; ")
    );
    let drawn = drawn(d, series);
    let exits_at = TOP + Shape::Wide.area().bottom + 58.0;
    let below = exits_at + drawn.len().div_ceil(Shape::Wide.columns()) as f64 * LINE + 24.0;
    let height = below + ROW * (of.len() as f64 + 1.0) + 26.0;
    let is = role(row, &base.summary.label).map_or(String::new(), |r| format!(" ({r})"));
    let queue = full_bdps.map_or(String::new(), |f| {
        format!(", drops packets above {} BDP", number((f * 10.0).round() / 10.0))
    });
    let panels = [(260.0, 130.0), (520.0, 130.0), (770.0, 130.0)];
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
            aria-label=(about) {
            style { (PreEscaped(STYLE)) }
            rect width=(WIDTH) height=(height) fill="#fff" {}
            text class="title" x="16" y="34" { "Same path, same transfer. Only the startup differs." }
            text class="sub" x="16" y="60" {
                (row.path) ", run " (row.run) ": " (rate(row.rate_bps as f64)) ", " (delay(row.base_rtt_s * 1e3)) (queue)
                ". Bytes in flight; 1 = what fills the link (the BDP)."
            }
            g transform={ "translate(0 " (TOP) ")" } { (curves(&drawn, full_bdps, Shape::Wide)) }
            (exits(&drawn, exits_at, Shape::Wide))
            @for ((x, width), panel) in panels.into_iter().zip(&bars) {
                @let most = panel.of.iter().filter_map(|o| o.0).fold(0.0, f64::max).max(1e-9);
                text class="head" x=(x) y=(below) { (panel.title) }
                @for (i, (value, figure)) in panel.of.iter().enumerate() {
                    @let y = below + ROW * (i as f64 + 0.5);
                    @let long = value.map_or(0.0, |v| width * v / most);
                    @if value.is_some() {
                        rect class={ "f" (looks[i] % COLOURS) } x=(x) y=(y) width=(px(long.max(1.0))) height="18" {}
                    }
                    text class="figure" data-startup=(shown[i]) x=(px(x + long + 7.0)) y=(y + 14.0) { (figure) }
                }
            }
            @for (i, label) in shown.iter().enumerate() {
                @let y = below + ROW * (i as f64 + 0.5) + 14.0;
                text class={ "name f" (looks[i] % COLOURS) } x="248" y=(y) text-anchor="end" { (label) @if i == 0 { (is) } }
            }
            text x="16" y=(height - 12.0) { "Curves: one run. Bars: medians of " (d.runs()) " runs, % against " (base.summary.label) ". " (command) }
        }
    };
    Some(svg.into_string() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While an application pauses, nothing is in flight and nothing is drawn.
    #[test]
    fn a_line_has_a_gap_where_nothing_is_in_flight() {
        let axes = Axes { area: Shape::Wide.area(), until_s: 10.0, low: -2.0, high: 2.0 };
        let of = |flight: &[f64]| {
            let points: Vec<(f64, f64)> = flight.iter().enumerate().map(|(t, y)| (t as f64, *y)).collect();
            let text = path(&axes, &points);
            (text.matches('M').count(), text.matches('L').count())
        };
        assert_eq!(of(&[0.0, 0.5, 1.0, 2.0, 1.0]), (1, 3));
        assert_eq!(of(&[0.5, 1.0, 0.0, 0.0, 2.0, 1.0, 0.0]), (2, 2));
        assert_eq!(of(&[0.0, 0.0]), (0, 0));
    }

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        for i in 1..2000 {
            let x = f64::from(i) * 0.013;
            assert!((log2(x) - x.log2()).abs() < 1e-9, "{x}: {} {}", log2(x), x.log2());
        }
        for (x, log) in [(0.25, -2.0), (1.0, 0.0), (8.0, 3.0)] {
            assert!((log2(x) - log).abs() < f64::EPSILON, "{x}");
        }
    }
}
