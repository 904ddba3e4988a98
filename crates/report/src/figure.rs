//! Figures of lines over any axis, as data for a page's script.

use super::chart::{Axis, Point};
use serde::Serialize;

/// An axis.
#[derive(Clone, Debug, Serialize)]
struct Scale {
    name: &'static str,
    log: bool,
}

/// A line; its first coordinates increase.
#[derive(Clone, Debug, Serialize)]
struct Line {
    label: String,
    x: Vec<f64>,
    y: Vec<f64>,
}

/// A figure of named lines.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    title: String,
    x: Scale,
    y: Scale,
    lines: Vec<Line>,
}

/// The figures of a group of a page.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    kind: &'static str,
    figures: Vec<Figure>,
}

impl Figures {
    /// The data of these figures.
    pub fn new(figures: Vec<Figure>) -> Self {
        Self { kind: "figures", figures }
    }
}

impl Figure {
    /// A figure of these lines; points that the axes cannot show are left out.
    pub fn new(title: &str, x: &Axis, y: &Axis, lines: &[(&str, Vec<Point>)]) -> Self {
        let scale = |a: &Axis| Scale { name: a.name(), log: a.is_log() };
        let fits = |a: &Axis, v: f64| v.is_finite() && (!a.is_log() || v > 0.0);
        let line = |(label, points): &(&str, Vec<Point>)| {
            let mut line = Line { label: (*label).to_string(), x: Vec::new(), y: Vec::new() };
            for p in points.iter().filter(|p| fits(x, p.0) && fits(y, p.1)) {
                // A step has two points at one place; the script needs places that increase.
                let last = line.x.last().copied().unwrap_or(f64::NEG_INFINITY);
                line.x.push(if p.0 > last { p.0 } else { last + last.abs().max(1e-9) * 1e-9 });
                line.y.push(p.1);
            }
            line
        };
        let lines = lines.iter().map(line).filter(|l| !l.x.is_empty()).collect();
        Self { title: title.to_string(), x: scale(x), y: scale(y), lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_increase_and_what_an_axis_cannot_show_is_left_out() {
        let (x, y) = (Axis::decades("x", 1.0, 10.0), Axis::cut("y", 5.0));
        let points = vec![(0.0, 1.0), (2.0, 1.0), (2.0, 3.0), (4.0, f64::NAN), (5.0, 2.0)];
        let figure = Figure::new("t", &x, &y, &[("a", points), ("b", vec![(-1.0, 1.0)])]);
        assert_eq!(figure.lines.len(), 1);
        assert_eq!(figure.lines[0].y, [1.0, 3.0, 2.0]);
        assert!(figure.lines[0].x.is_sorted_by(|a, b| a < b) && (figure.lines[0].x[1] - 2.0).abs() < 1e-6);
        assert!(figure.x.log && !figure.y.log);
    }
}
