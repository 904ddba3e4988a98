//! Predictions drawn beside recordings of samples: the window over time.

use std::fmt::Write as _;

/// The size of a panel, and its margins.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 40.0;
const BELOW: f64 = 34.0;
const ABOVE: f64 = 24.0;

/// A recording and what was predicted of it.
pub(crate) struct Panel {
    pub(crate) name: String,
    /// Seconds and bytes.
    pub(crate) recorded: Vec<(f64, f64)>,
    /// Seconds, and the 10, 50 and 90 % quantiles of the runs in bytes.
    pub(crate) predicted: Vec<(f64, [f64; 3])>,
    /// The last second that is drawn.
    pub(crate) end: f64,
}

/// A picture of these panels, side by side, as SVG.
pub(crate) fn svg(panels: &[Panel]) -> String {
    let (width, height) = (WIDTH * panels.len() as f64, HEIGHT + ABOVE + BELOW);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <title>Windows of recordings beside what was predicted of them</title>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#fff\"/>\n"
    );
    for (i, p) in panels.iter().enumerate() {
        let left = WIDTH * i as f64 + LEFT;
        let room = WIDTH - LEFT - 12.0;
        let recorded = p.recorded.iter().map(|r| r.1);
        let most = p.predicted.iter().map(|r| r.1[2]).chain(recorded).fold(1e5, f64::max);
        let tick =
            [0.1e6, 0.2e6, 0.5e6, 1e6, 2e6, 5e6, 1e7].into_iter().find(|t| most / t <= 5.0).unwrap_or(2e7);
        let at = |t: f64, y: f64| {
            format!("{:.1},{:.1}", left + t / p.end * room, ABOVE + HEIGHT - y / most * HEIGHT)
        };
        let line = |points: &mut dyn Iterator<Item = (f64, f64)>| -> String {
            points.filter(|q| q.0 <= p.end).map(|(t, y)| at(t, y)).collect::<Vec<_>>().join(" ")
        };
        let upper = line(&mut p.predicted.iter().map(|r| (r.0, r.1[2])));
        let lower = line(&mut p.predicted.iter().rev().map(|r| (r.0, r.1[0])));
        let middle = line(&mut p.predicted.iter().map(|r| (r.0, r.1[1])));
        let seen = line(&mut p.recorded.iter().copied());
        let base = ABOVE + HEIGHT;
        write!(
            out,
            "<text x=\"{left:.1}\" y=\"14\" font-weight=\"bold\">{}</text>\n\
             <polygon points=\"{upper} {lower}\" fill=\"#9ecae1\" fill-opacity=\"0.6\"/>\n\
             <polyline points=\"{middle}\" fill=\"none\" stroke=\"#3182bd\" stroke-dasharray=\"4 3\"/>\n\
             <polyline points=\"{seen}\" fill=\"none\" stroke=\"#a50f15\" stroke-width=\"1.8\"/>\n\
             <line x1=\"{left:.1}\" y1=\"{ABOVE}\" x2=\"{left:.1}\" y2=\"{base}\" stroke=\"#444\"/>\n\
             <line x1=\"{left:.1}\" y1=\"{base}\" x2=\"{:.1}\" y2=\"{base}\" stroke=\"#444\"/>\n",
            p.name,
            left + room
        )
        .expect("a String takes everything");
        for n in 0..=(most / tick) as u32 {
            let y = base - f64::from(n) * tick / most * HEIGHT;
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 5.0,
                y + 4.0,
                f64::from(n) * tick / 1e6
            )
            .expect("a String takes everything");
        }
        for t in (0..=p.end as u32).step_by(2) {
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{t} s</text>",
                left + f64::from(t) / p.end * room,
                base + 15.0
            )
            .expect("a String takes everything");
        }
    }
    write!(
        out,
        "<text x=\"{LEFT}\" y=\"{:.1}\">Window, MB: the recording (red), and of the predicted runs the median (dashed) and 10 to 90 % (blue)</text>\n</svg>\n",
        height - 4.0
    )
    .expect("a String takes everything");
    out
}
