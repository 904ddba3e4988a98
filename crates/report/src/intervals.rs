//! Charts of intervals: at each place the values that someone printed as marks, what they may be as a bar, and what was
//! measured as intervals.

use maud::{Markup, html};

const WIDTH: f64 = 560.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 548.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 250.0;
/// Room for the names of places, and below them for those of groups.
const NAMES: f64 = 22.0;
const GROUPS: f64 = 20.0;
/// The angle of names that are too long to stand beside each other, in degrees, and its sine.
const SLANT: (f64, f64) = (60.0, 0.87);
/// Width of a letter, about.
const LETTER: f64 = 6.4;
/// Greatest number of ticks.
const TICKS: f64 = 6.0;

/// A measured value with its interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// The value.
    pub value: f64,
    /// Its upper end.
    pub high: f64,
    /// The CSS class that gives its colour.
    pub class: &'static str,
    /// What it is, for a tooltip.
    pub text: String,
}

/// A place on the horizontal axis.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// The name of the places beside each other to which it belongs; empty for none.
    pub group: String,
    /// The printed value, if there is one.
    pub printed: Option<f64>,
    /// Where the measured value has to lie.
    pub bound: (Option<f64>, Option<f64>),
    /// The measured values, side by side.
    pub measured: Vec<Interval>,
    /// Where the name links to; empty for no link.
    pub link: String,
}

/// A vertical axis, linear or logarithmic.
struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// The axis over all that is drawn. A logarithmic one leaves out what is not above 0.
    fn over(places: &[Place], is_log: bool) -> Self {
        let values = places.iter().flat_map(|p| {
            let ends = [p.printed, p.bound.0, p.bound.1].into_iter().flatten();
            ends.chain(p.measured.iter().flat_map(|m| [m.low, m.value, m.high])).collect::<Vec<_>>()
        });
        let drawn: Vec<f64> = values.filter(|v| v.is_finite() && (!is_log || *v > 0.0)).collect();
        let (low, high) =
            drawn.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
        if drawn.is_empty() {
            return Self { low: 0.0, high: 1.0, is_log: false };
        }
        if is_log {
            return Self { low: low / 1.15, high: high * 1.15, is_log };
        }
        // Zero is shown where it is near.
        let (low, high) = if low > 0.0 && low < 0.6 * high { (0.0, high) } else { (low, high) };
        let room = 0.06 * (high - low).max(1e-3 * high.abs()).max(1e-9);
        Self { low: if low.abs() <= 0.0 { low } else { low - room }, high: high + room, is_log }
    }

    fn y(&self, v: f64) -> f64 {
        let share = if self.is_log {
            (v.max(self.low / 10.0) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (v - self.low) / (self.high - self.low)
        };
        BOTTOM - share.clamp(-0.05, 1.05) * (BOTTOM - TOP)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_log {
            let few = self.high / self.low > 300.0;
            let factors: &[f64] = if few { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let all = (-9..10).flat_map(|d| factors.iter().map(move |f| f * 10_f64.powi(d)));
            return all.filter(|v| (self.low..=self.high).contains(v)).collect();
        }
        let mut step = 1e-9;
        let mut factors = [2.0, 2.5, 2.0].into_iter().cycle();
        while (self.high - self.low) / step > TICKS {
            step *= factors.next().unwrap_or(2.0);
        }
        let from = (self.low / step).ceil() as i64;
        (0..=8).map(|i| (from + i) as f64 * step).filter(|v| *v <= self.high).collect()
    }
}

/// A coordinate with one decimal.
fn px(x: f64) -> String {
    format!("{x:.1}")
}

/// A tick as text, without the noise of its last bits.
fn tick(v: f64) -> String {
    format!("{}", (v * 1e9).round() / 1e9)
}

/// Returns a chart of `places` over an axis named `y`, logarithmic if `is_log`. The classes of intervals give their
/// colours by `--mark`.
pub fn intervals(name: &str, y: &str, is_log: bool, places: &[Place]) -> Markup {
    let scale = Scale::over(places, is_log);
    let width = (RIGHT - LEFT) / places.len().max(1) as f64;
    let longest = places.iter().map(|p| p.name.chars().count()).max().unwrap_or(0) as f64;
    let is_slanted = longest * LETTER > width;
    let below = BOTTOM + if is_slanted { 18.0 + longest * LETTER * SLANT.1 } else { NAMES };
    let grouped = places.iter().any(|p| !p.group.is_empty());
    let height = below + if grouped { GROUPS } else { 6.0 };
    let mut groups: Vec<(&str, usize, usize)> = Vec::new();
    for (i, p) in places.iter().enumerate() {
        match groups.last_mut() {
            Some((group, _, end)) if *group == p.group => *end = i + 1,
            _ => groups.push((&p.group, i, i + 1)),
        }
    }
    html! {
        svg class="intervals" viewBox={ "0 0 " (WIDTH) " " (px(height)) } role="img" aria-label=(name) {
            @for v in scale.ticks() {
                path class="grid" d={ "M" (px(LEFT)) "," (px(scale.y(v))) "H" (px(RIGHT)) } {}
                text x=(px(LEFT - 7.0)) y=(px(scale.y(v) + 4.0)) text-anchor="end" { (tick(v)) }
            }
            text transform={ "translate(14 " (px(f64::midpoint(TOP, BOTTOM))) ") rotate(-90)" } text-anchor="middle" { (y) }
            @if grouped {
                @for (group, from, to) in &groups {
                    @let (a, b) = (LEFT + *from as f64 * width, LEFT + *to as f64 * width);
                    @if *from > 0 { path class="grid" d={ "M" (px(a)) "," (px(TOP)) "V" (px(height)) } {} }
                    text x=(px(f64::midpoint(a, b))) y=(px(height - 5.0)) text-anchor="middle" { (group) }
                }
            }
            @for (i, p) in places.iter().enumerate() {
                @let middle = LEFT + (i as f64 + 0.5) * width;
                @let half = (0.42 * width).min(26.0);
                (bound(&scale, p, middle, half))
                @for (j, m) in p.measured.iter().enumerate().filter(|(_, m)| m.low.is_finite() && m.high.is_finite()) {
                    @let x = middle + half * (2.0 * (j as f64 + 0.5) / p.measured.len() as f64 - 1.0);
                    g class={ "measured " (m.class) } {
                        path d={ "M" (px(x)) "," (px(scale.y(m.low))) "V" (px(scale.y(m.high))) } {}
                        circle cx=(px(x)) cy=(px(scale.y(m.value))) r="3" {}
                        title { (m.text) }
                    }
                }
                @let transform = is_slanted.then(|| format!("rotate(-{} {} {})", SLANT.0, px(middle), px(BOTTOM + 14.0)));
                @let text = html! {
                    text x=(px(middle)) y=(px(BOTTOM + 16.0)) text-anchor=(if is_slanted { "end" } else { "middle" })
                        transform=[transform] { (p.name) }
                };
                @if p.link.is_empty() { (text) } @else { a href=(p.link) { (text) } }
            }
        }
    }
}

/// Where the value has to lie, and the printed value as a diamond.
fn bound(scale: &Scale, p: &Place, x: f64, half: f64) -> Markup {
    let is_bound = p.bound.0.is_some() || p.bound.1.is_some();
    let (low, high) = (p.bound.0.map_or(BOTTOM, |v| scale.y(v)), p.bound.1.map_or(TOP, |v| scale.y(v)));
    html! {
        @if is_bound {
            rect class="bound" x=(px(x - half)) y=(px(high)) width=(px(2.0 * half)) height=(px((low - high).max(1.5))) {}
        }
        @if let Some(v) = p.printed {
            path class="claimed" d={ "M" (px(x)) "," (px(scale.y(v) - 6.0)) "l6 6 -6 6 -6 -6z" } {
                title { "printed: " (v) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, group: &str, values: &[f64]) -> Place {
        let interval =
            |v: &f64| Interval { low: v - 0.5, value: *v, high: v + 0.5, class: "meets", text: "m".into() };
        Place {
            name: name.into(),
            group: group.into(),
            printed: Some(1.0),
            bound: (Some(0.5), None),
            measured: values.iter().map(interval).collect(),
            link: String::new(),
        }
    }

    #[test]
    fn each_place_has_its_mark_and_its_intervals() {
        let places = [place("a", "g", &[1.0, 2.0]), place("b", "g", &[-3.0]), place("c", "h", &[f64::NAN])];
        let out = intervals("chart", "unit", false, &places).into_string();
        for (what, n) in [("class=\"measured", 3), ("class=\"bound\"", 3), ("class=\"claimed\"", 3)] {
            assert_eq!(out.matches(what).count(), n, "{what}");
        }
        assert_eq!((out.matches(">g<").count(), out.matches(">h<").count()), (1, 1), "a group is named once");
        assert_eq!(out, intervals("chart", "unit", false, &places).into_string());
    }

    #[test]
    fn ticks_are_round_and_within() {
        for (low, high) in [(0.0, 1.0), (-13.2, 0.4), (0.985, 1.07), (0.0, 37_000.0)] {
            let scale = Scale { low, high, is_log: false };
            let ticks = scale.ticks();
            assert!((3..=8).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
            assert!(ticks.iter().all(|t| (low - 1e-9..=high + 1e-9).contains(t)), "{ticks:?}");
        }
        assert_eq!(Scale { low: 0.05, high: 60.0, is_log: true }.ticks(), [0.1, 1.0, 10.0]);
    }
}
