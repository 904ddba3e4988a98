//! The report of the kernel comparison: which cells agree, and the windows of both engines in one chart.

use super::kernel::{Cell, Figure};
use crate::report::chart::{Axis, Chart, Key};
use crate::report::{document, words};
use crate::run::Outcome;
use maud::{Markup, html};

/// A cell that was run.
#[derive(Clone, Debug)]
pub struct Held {
    /// The cell.
    pub cell: Cell,
    /// The compared figures.
    pub figures: Vec<Figure>,
    /// The simulated runs.
    pub ours: Vec<Outcome>,
    /// The kernel's runs.
    pub kernel: Vec<Outcome>,
    /// Notes that limit what the cell shows.
    pub caveats: Vec<String>,
}

impl Held {
    /// True if every figure agrees.
    pub fn passes(&self) -> bool {
        self.figures.iter().all(|f| f.agrees)
    }
}

/// The points of a line: enough for the width of a chart.
const MOMENTS: usize = 300;

fn window(o: &Outcome) -> Vec<(f64, f64)> {
    let samples = &o.trace.samples;
    let every = samples.len().div_ceil(MOMENTS).max(1);
    samples.iter().step_by(every).map(|s| (s.time_s, s.cwnd_bytes as f64 / 1000.0)).collect()
}

fn chart(id: usize, held: &Held) -> Markup {
    let (ours, kernel) = (held.ours.first().map(window), held.kernel.iter().map(window).collect::<Vec<_>>());
    let all = || kernel.iter().chain(&ours).flatten();
    let x = Axis::cut("time (s)", all().map(|p| p.0).fold(0.0, f64::max));
    let y = Axis::round("window (kB)", all().map(|p| p.1).fold(0.0, f64::max));
    let keys = [Key { at: 0, label: "simulated" }, Key { at: 1, label: "Linux, each run" }];
    let name = format!("window over time: {}", held.cell.name);
    let c = Chart { id, name, x: &x, y: &y, legend: &keys };
    let inside = html! {
        @for line in &kernel { (c.keyed(&keys[1], line.iter().copied())) }
        @if let Some(line) = &ours { (c.keyed(&keys[0], line.iter().copied())) }
    };
    c.draw(&inside, &html! {})
}

fn figures(held: &Held) -> Markup {
    let number = |x: Option<f64>| x.map_or("none".to_string(), words::number);
    html! {
        table {
            thead { tr { @for h in ["", "simulated", "Linux, least", "most", ""] { th scope="col" { (h) } } } }
            tbody {
                @for f in &held.figures {
                    tr {
                        th scope="row" { (f.name) }
                        td { (number(f.ours)) }
                        td { (number(f.kernel.map(|k| k.0))) }
                        td { (number(f.kernel.map(|k| k.1))) }
                        td { (if f.agrees { "" } else { "differs" }) }
                    }
                }
            }
        }
    }
}

/// The page. The same input gives the same bytes.
pub fn html(title: &str, about: &str, cells: &[Held]) -> String {
    let body = html! {
        p class="verdict" { (verdict(cells)) }
        p class="about" { (about) }
        @for (id, held) in cells.iter().enumerate() {
            h2 { (held.cell.name) (if held.passes() { "" } else { ": differs" }) }
            p class="about" { code { (held.cell.path) } }
            @for caveat in &held.caveats { p class="note" { (caveat) } }
            figure { (chart(id, held)) }
            div class="scroll" tabindex="0" { (figures(held)) }
        }
    };
    document(title, &body, None)
}

/// The number of cells that pass.
pub fn verdict(cells: &[Held]) -> String {
    let passed = cells.iter().filter(|h| h.passes()).count();
    let agree: usize = cells.iter().map(|h| h.figures.iter().filter(|f| f.agrees).count()).sum();
    let figures: usize = cells.iter().map(|h| h.figures.len()).sum();
    format!("{passed} of {} cells pass; {agree} of {figures} figures agree.", cells.len())
}
