//! Charts as SVG: axes, lines and marks.

use crate::look::COLOURS;
use maud::{Markup, html};

/// Size of a chart: about the size at which it is shown, so that text stays readable on a narrow screen.
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 548.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 256.0;
/// Height of a line in the legend.
const LEGEND: f64 = 18.0;
/// Greatest number of points of a line: more than a screen can show.
pub const POINTS: usize = 1500;
/// Number of strips across a chart that show the values below the pointer.
const STRIPS: usize = 48;

/// A time and a value at it.
pub type Point = (f64, f64);

/// The farthest that a line is drawn from a point that it leaves out, in tenths of a pixel.
const TOLERANCE: f64 = 3.0;

/// Formats a coordinate to a tenth of a pixel.
fn px(x: f64) -> String {
    format!("{x:.1}")
}

/// A linear axis from zero, or a logarithmic one.
pub struct Axis {
    /// The label, with its unit.
    name: &'static str,
    max: f64,
    step: f64,
    /// The least value of a logarithmic axis; 0 for a linear one.
    low: f64,
}

impl Axis {
    /// Returns a linear axis from 0 to `max`.
    pub fn cut(name: &'static str, max: f64) -> Self {
        let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
        // The smallest of 1, 2 and 5 times a power of ten that makes few enough lines.
        let mut step = 1e-9;
        let mut factors = [2.0, 2.5, 2.0].into_iter().cycle();
        while max / step > 7.0 {
            step *= factors.next().unwrap_or(2.0);
        }
        Self { name, max, step, low: 0.0 }
    }

    /// Returns a linear axis from 0 to the first tick at or above `max`.
    pub fn round(name: &'static str, max: f64) -> Self {
        let axis = Self::cut(name, max);
        Self { max: (axis.max / axis.step - 1e-6).ceil() * axis.step, ..axis }
    }

    /// Returns a logarithmic axis from `low` (above 0) to `max`.
    pub fn decades(name: &'static str, low: f64, max: f64) -> Self {
        Self { name, max, step: 0.0, low }
    }

    /// Returns the position of a value: 0 at the start of the axis, 1 at its end.
    fn at(&self, v: f64) -> f64 {
        if self.low > 0.0 {
            (v.max(self.low / 10.0) / self.low).ln() / (self.max / self.low).ln()
        } else {
            v / self.max
        }
    }

    /// The label, with its unit.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if the axis is logarithmic.
    pub fn is_log(&self) -> bool {
        self.low > 0.0
    }

    /// Returns the greatest value of the axis.
    pub fn max(&self) -> f64 {
        self.max
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        if self.low > 0.0 {
            let decade = |d: i32| [1.0, 2.0, 5.0].map(|f| f * 10_f64.powi(d));
            let few = self.max / self.low > 1e4;
            let shown = |v: &f64| *v >= self.low * 0.999 && *v <= self.max * 1.001;
            let all =
                (-9..10).flat_map(|d| decade(d).into_iter().take(if few { 1 } else { 3 })).filter(shown);
            return all.map(|v| (v, format!("{}", (v * 1e9).round() / 1e9))).collect();
        }
        let decimals = (0..9).find(|&d| self.step * 10_f64.powi(d) > 0.999).unwrap_or(9) as usize;
        let line = |i: u32| f64::from(i) * self.step;
        let lines = (0..=(self.max / self.step + 1e-6) as u32).map(line);
        lines.map(|v| (v, format!("{v:.decimals$}"))).collect()
    }
}

/// Returns at most [`POINTS`] of `points`: the first, least, greatest and last in each of equal spans of
/// time. A line through them looks like a line through all.
pub fn decimate(points: &[Point]) -> Vec<Point> {
    let (Some(&(from, _)), Some(&(to, _)), true) = (points.first(), points.last(), points.len() > POINTS)
    else {
        return points.to_vec();
    };
    let spans = POINTS / 4;
    let span = |p: &Point| (((p.0 - from) / (to - from) * spans as f64) as usize).min(spans - 1);
    let mut out = Vec::with_capacity(POINTS);
    for chunk in points.chunk_by(|a, b| span(a) == span(b)) {
        let by_value = |a: &usize, b: &usize| chunk[*a].1.total_cmp(&chunk[*b].1);
        let (least, most) = ((0..chunk.len()).min_by(by_value), (0..chunk.len()).max_by(by_value));
        let mut keep = [0, least.unwrap_or(0), most.unwrap_or(0), chunk.len() - 1];
        keep.sort_unstable();
        let mut last = None;
        for i in keep {
            if last.replace(i) != Some(i) {
                out.push(chunk[i]);
            }
        }
    }
    out
}

/// An SVG path through points in tenths of a pixel, whose first coordinates do not decrease. Points that lie
/// within [`TOLERANCE`] of the line between their neighbours are left out.
fn svg_path(points: &[(i64, i64)]) -> String {
    let mut kept: Vec<(i64, i64)> = Vec::new();
    // The slopes of lines from the last kept point that pass all points since, and the newest of these.
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut newest: Option<(i64, i64)> = None;
    for &p in points {
        let Some(&from) = kept.last() else {
            kept.push(p);
            continue;
        };
        let slopes = |from: (i64, i64)| {
            let (dx, dy) = ((p.0 - from.0) as f64, (p.1 - from.1) as f64);
            let at = |dy: f64| if dx > 0.0 { dy / dx } else { dy * f64::INFINITY };
            (at(dy - TOLERANCE), at(dy), at(dy + TOLERANCE))
        };
        let (least, slope, most) = slopes(from);
        let passes = p.0 > from.0 && (low..=high).contains(&slope);
        if passes {
            (low, high) = (low.max(least), high.min(most));
        } else if let Some(end) = newest {
            kept.push(end);
            let (least, _, most) = slopes(end);
            (low, high) = if p.0 > end.0 { (least, most) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        } else {
            (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
        }
        newest = Some(p);
    }
    kept.extend(newest);
    let Some(first) = kept.first() else { return String::new() };
    let mut d = format!("M{} {}", tenths(first.0), tenths(first.1));
    for (i, pair) in kept.windows(2).enumerate() {
        let (dx, dy) = (tenths(pair[1].0 - pair[0].0), tenths(pair[1].1 - pair[0].1));
        d.push_str(if i == 0 { "l" } else { " " });
        d.push_str(&dx);
        // A minus sign separates numbers too.
        d.push_str(if dy.starts_with('-') { "" } else { " " });
        d.push_str(&dy);
    }
    d
}

/// Tenths as a decimal number without needless digits.
fn tenths(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    let (whole, rest) = (n.unsigned_abs() / 10, n.unsigned_abs() % 10);
    match (whole, rest) {
        (0, 0) => "0".to_string(),
        (whole, 0) => format!("{sign}{whole}"),
        (0, rest) => format!("{sign}.{rest}"),
        (whole, rest) => format!("{sign}{whole}.{rest}"),
    }
}

/// An entry of the legend.
pub struct Key<'a> {
    /// The [number](super::look) that determines colour and dashes.
    pub at: usize,
    /// The name in the legend.
    pub label: &'a str,
}

/// The dashes of the line with a number, so that lines differ without colour; pairs repeat after 84.
pub(crate) fn dashes(look: usize) -> &'static str {
    DASHES[(look + look / COLOURS) % DASHES.len()]
}

const DASHES: [&str; 7] = ["none", "7 3", "2 2", "9 3 2 3", "4 2", "9 3 2 3 2 3", "1 3"];

impl Key<'_> {
    fn colour(&self) -> String {
        format!("line s{}", self.at % COLOURS)
    }

    fn dashes(&self) -> &'static str {
        dashes(self.at)
    }
}

/// A vertical line at a moment.
pub struct Mark {
    /// The letter above it.
    pub letter: &'static str,
    /// The CSS class that gives its look.
    pub class: &'static str,
    /// Its time, on the axis of the chart.
    pub time: f64,
    /// A description of the moment.
    pub text: String,
}

/// A point of a scatter.
pub struct Dot<'a> {
    /// The CSS class that gives its look.
    pub class: &'static str,
    /// Its place on the axes of the chart.
    pub at: Point,
    /// Its name in the legend.
    pub name: &'a str,
    /// True if its name stands beside it.
    pub shown: bool,
}

/// A plot with its axes.
pub struct Chart<'a> {
    /// An id that is unique on the page.
    pub id: usize,
    /// A description for screen readers.
    pub name: String,
    /// The axis of time.
    pub x: &'a Axis,
    /// The axis of values.
    pub y: &'a Axis,
    /// The legend of the lines.
    pub legend: &'a [Key<'a>],
}

impl Chart<'_> {
    fn px(&self, x: f64) -> f64 {
        LEFT + self.x.at(x) * (RIGHT - LEFT)
    }

    fn py(&self, y: f64) -> f64 {
        BOTTOM - self.y.at(y) * (BOTTOM - TOP)
    }

    /// Returns an SVG path through the visible `points`, and the first and last of them. Points that are no
    /// numbers are left out.
    fn path(&self, points: impl Iterator<Item = Point>) -> Option<(String, Point, Point)> {
        let mut shown: Vec<Point> = Vec::new();
        for p in points.filter(|p| p.0.is_finite() && p.1.is_finite()) {
            shown.push(p);
            // One point beyond the edge, so that the line reaches it.
            if p.0 > self.x.max {
                break;
            }
        }
        // Lines far above the plot are clipped, but browsers draw enormous coordinates badly.
        let top = self.y.max * 4.0;
        let shown = decimate(&shown);
        let tenth = |v: f64| (v * 10.0).round() as i64;
        let at = |p: &Point| (tenth(self.px(p.0)), tenth(self.py(p.1.min(top))));
        let d = svg_path(&shown.iter().map(at).collect::<Vec<_>>());
        Some((d, *shown.first()?, *shown.last()?))
    }

    /// Returns a line through these points.
    pub fn line(&self, class: &str, name: &str, points: impl Iterator<Item = Point>) -> Markup {
        html! {
            @if let Some((d, ..)) = self.path(points) {
                path class=(class) d=(d) { title { (name) } }
            }
        }
    }

    /// Draws points, each with its class and its name, which stands beside those that are `shown`.
    pub fn dots(&self, dots: &[Dot]) -> Markup {
        const LINE: f64 = 13.0;
        /// No label is wider.
        const WIDE: f64 = 100.0;
        let mut labels: Vec<(f64, f64)> = Vec::new();
        let mut placed = Vec::new();
        for dot in dots {
            let (x, y) = (self.px(dot.at.0), self.py(dot.at.1));
            let mut text_y = y + 4.0;
            // Where it would cover another, it goes up.
            while dot.shown && labels.iter().any(|l| (l.0 - x).abs() < WIDE && (l.1 - text_y).abs() < LINE) {
                text_y -= LINE;
            }
            labels.extend(dot.shown.then_some((x, text_y)));
            placed.push((dot, x, y, text_y));
        }
        html! {
            @for (dot, x, y, text_y) in placed {
                // Near the right edge the name is on the left.
                @let (text_x, anchor) = if x > RIGHT - WIDE { (x - 8.0, "end") } else { (x + 8.0, "start") };
                circle class={ "dot " (dot.class) } cx=(px(x)) cy=(px(y)) r="4.5" { title { (dot.name) } }
                @if dot.shown { text class="halo" x=(px(text_x)) y=(px(text_y)) text-anchor=(anchor) { (dot.name) } }
            }
        }
    }

    /// Draws a line that has an entry in the legend.
    pub fn keyed(&self, key: &Key, points: impl Iterator<Item = Point>) -> Markup {
        html! {
            @if let Some((d, ..)) = self.path(points) {
                path class=(key.colour()) stroke-dasharray=(key.dashes()) d=(d) { title { (key.label) } }
            }
        }
    }

    /// Draws a line and fills the area below it.
    pub fn area(&self, class: &str, name: &str, points: impl Iterator<Item = Point>) -> Markup {
        html! {
            @if let Some((d, first, last)) = self.path(points) {
                path class=(class) d={ (d) "V" (px(BOTTOM)) "H" (px(self.px(first.0))) "Z" } {
                    title { (name) " until " (px(last.0)) " s" }
                }
            }
        }
    }

    /// Draws a horizontal line with its name, if it lies in the plot.
    pub fn level(&self, class: &str, y: f64, name: &str) -> Markup {
        let at = self.py(y);
        html! {
            @if y.is_finite() && y <= self.y.max {
                path class=(class) d={ "M" (px(LEFT)) "," (px(at)) "H" (px(RIGHT)) } { title { (name) } }
                text class="halo" x=(px(RIGHT - 4.0)) y=(px(at - 4.0)) text-anchor="end" { (name) }
            }
        }
    }

    /// Draws vertical lines with a letter above each. Letters that would touch are moved apart.
    pub fn marks(&self, marks: &[Mark]) -> Markup {
        const APART: f64 = 15.0;
        let mut shown: Vec<(&Mark, f64)> =
            marks.iter().filter(|m| m.time <= self.x.max).map(|m| (m, self.px(m.time))).collect();
        shown.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut letters: Vec<f64> = Vec::new();
        for (_, x) in &shown {
            letters.push(letters.last().map_or(*x, |last| x.max(last + APART)));
        }
        let mut limit = RIGHT;
        for x in letters.iter_mut().rev() {
            *x = x.min(limit);
            limit = *x - APART;
        }
        html! {
            @for ((mark, x), letter) in shown.iter().zip(&letters) {
                g class={ "mark " (mark.class) } {
                    path d={ "M" (px(*letter)) "," (px(TOP - 9.0)) "L" (px(*x)) "," (px(TOP)) "V" (px(BOTTOM)) } {}
                    path class="hit" d={ "M" (px(*x)) "," (px(TOP)) "V" (px(BOTTOM)) } {}
                    text x=(px(*letter)) y=(px(TOP - 12.0)) text-anchor="middle" { (mark.letter) }
                    title { (mark.text) }
                }
            }
        }
    }

    /// Draws invisible strips, each with the text of `tell` for the time at its middle as a tooltip.
    pub fn strips(&self, tell: impl Fn(f64) -> Option<String>) -> Markup {
        let width = (RIGHT - LEFT) / STRIPS as f64;
        html! {
            @for i in 0..STRIPS {
                @let middle = (i as f64 + 0.5) / STRIPS as f64 * self.x.max;
                @if let Some(text) = tell(middle) {
                    rect class="strip" x=(px(LEFT + i as f64 * width)) y=(px(TOP)) width=(px(width))
                        height=(px(BOTTOM - TOP)) { title { (text) } }
                }
            }
        }
    }

    /// Returns the SVG. `inside` is clipped at the edges of the plot, `over` is not.
    pub fn draw(&self, inside: &Markup, over: &Markup) -> Markup {
        let clip = format!("plot-{}", self.id);
        let height = HEIGHT + LEGEND * self.legend.len().div_ceil(2) as f64;
        html! {
            svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(self.name) {
                clipPath id=(clip) {
                    rect x=(px(LEFT)) y=(px(TOP)) width=(px(RIGHT - LEFT)) height=(px(BOTTOM - TOP)) {}
                }
                @for (v, text) in self.y.ticks() {
                    @let y = self.py(v);
                    path class="grid" d={ "M" (px(LEFT)) "," (px(y)) "H" (px(RIGHT)) } {}
                    text x=(px(LEFT - 7.0)) y=(px(y + 4.0)) text-anchor="end" { (text) }
                }
                @for (v, text) in self.x.ticks() {
                    @let x = self.px(v);
                    // A long number at the right edge would be cut off.
                    @let (at, anchor) = if x > RIGHT - 1.0 && text.len() > 3 { (WIDTH, "end") } else { (x, "middle") };
                    path class="grid" d={ "M" (px(x)) "," (px(BOTTOM)) "v5" } {}
                    text x=(px(at)) y=(px(BOTTOM + 18.0)) text-anchor=(anchor) { (text) }
                }
                text x=(px(f64::midpoint(LEFT, RIGHT))) y=(px(BOTTOM + 36.0)) text-anchor="middle" { (self.x.name) }
                text transform={ "translate(14 " (px(f64::midpoint(TOP, BOTTOM))) ") rotate(-90)" }
                    text-anchor="middle" { (self.y.name) }
                g clip-path={ "url(#" (clip) ")" } { (inside) }
                (over)
                @for (i, key) in self.legend.iter().enumerate() { (Self::entry(i, key)) }
            }
        }
    }

    /// Returns an entry of the legend; entries are in two columns.
    fn entry(i: usize, key: &Key) -> Markup {
        /// Greatest length of a label beside the next column.
        const LONGEST: usize = 33;
        let x = if i.is_multiple_of(2) { 10.0 } else { WIDTH / 2.0 + 4.0 };
        let y = HEIGHT + LEGEND * (i / 2) as f64 + 6.0;
        let long = key.label.chars().count() > LONGEST;
        let cut: String = key.label.chars().take(if long { LONGEST - 1 } else { LONGEST }).collect();
        html! {
            g {
                path class=(key.colour()) stroke-dasharray=(key.dashes()) d={ "M" (px(x)) "," (px(y)) "h32" } {}
                text x=(px(x + 40.0)) y=(px(y + 4.0)) { (cut) @if long { "…" } }
                title { (key.label) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimation_keeps_extremes() {
        let mut points: Vec<Point> = (0..100_000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        points[54_321].1 = 1e6;
        points[76_543].1 = -1e6;
        let few = decimate(&points);
        assert!(few.len() <= POINTS && few.len() > POINTS / 3, "{}", few.len());
        assert!(few.contains(&points[54_321]) && few.contains(&points[76_543]));
        assert_eq!((few.first(), few.last()), (points.first(), points.last()));
        assert!(few.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn few_points_are_all_kept() {
        let points = [(0.0, 1.0), (0.0, 2.0), (1.0, 3.0)];
        assert_eq!(decimate(&points), points);
        // All at one moment.
        assert!(decimate(&vec![(1.0, 1.0); 5000]).len() <= POINTS);
    }

    #[test]
    fn a_path_leaves_out_what_cannot_be_seen() {
        assert_eq!(svg_path(&[]), "");
        assert_eq!(svg_path(&[(10, 25)]), "M1 2.5");
        // A straight line, then a step: only its corners remain.
        let step: Vec<_> = (0..50).map(|x| (x, 100)).chain((49..90).map(|x| (x, 40))).collect();
        assert_eq!(svg_path(&step), "M0 10l4.9 0 0-6 4 0");
        // Every point of a curve is within the tolerance of the path, measured along the second axis.
        let curve: Vec<_> =
            (0..5000).map(|x| (x, (1000.0 * (f64::from(x as i32) / 300.0).sin()) as i64)).collect();
        let d = svg_path(&curve);
        let numbers: Vec<f64> = d[1..]
            .replace('l', " ")
            .replace('-', " -")
            .split_whitespace()
            .map(|n| n.parse().expect("a number"))
            .collect();
        let mut kept = vec![(numbers[0], numbers[1])];
        for pair in numbers[2..].chunks(2) {
            let last = kept[kept.len() - 1];
            kept.push((last.0 + pair[0], last.1 + pair[1]));
        }
        assert!(kept.len() < 500, "{} points", kept.len());
        for (x, y) in curve {
            let (x, y) = (x as f64 / 10.0, y as f64 / 10.0);
            let i = kept.partition_point(|k| k.0 < x - 1e-6).max(1);
            let (a, b) = (kept[i - 1], kept[i]);
            let line = a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0);
            assert!((line - y).abs() <= TOLERANCE / 10.0 + 1e-6, "{x}: {line} instead of {y}");
        }
    }

    #[test]
    fn axes_are_round() {
        let shown = |a: &Axis| a.ticks().into_iter().map(|(_, t)| t).collect::<Vec<_>>().join(" ");
        assert_eq!(shown(&Axis::round("", 1.13)), "0.0 0.2 0.4 0.6 0.8 1.0 1.2");
        assert_eq!(shown(&Axis::cut("", 13.0)), "0 2 4 6 8 10 12");
        assert_eq!(shown(&Axis::round("", 0.0)), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(shown(&Axis::cut("", f64::NAN)), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(shown(&Axis::decades("", 0.001, 1.0)), "0.001 0.002 0.005 0.01 0.02 0.05 0.1 0.2 0.5 1");
        assert_eq!(shown(&Axis::decades("", 10.0, 1e6)), "10 100 1000 10000 100000 1000000");
        let axis = Axis::decades("", 0.01, 1.0);
        assert!((axis.at(0.1) - 0.5).abs() < 1e-9 && axis.at(0.0) < 0.0 && (axis.at(1.0) - 1.0).abs() < 1e-9);
    }
}
