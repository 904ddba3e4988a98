//! The report of a comparison of two engines: which cells agree, and the windows of both engines in one
//! chart.

use crate::chart::{Axis, Chart, Key};
use crate::data::{Curve, Data, Kind};
use crate::{Script, document, live};
use maud::{Markup, html};
use slowstart_study::cells::{Cell, Figure, Ran};
use slowstart_study::record::Row;
use slowstart_study::words;

/// A cell that was run.
#[derive(Clone, Debug)]
pub struct Held {
    /// The cell that both engines ran.
    pub cell: Cell,
    /// The figures that are compared.
    pub figures: Vec<Figure>,
    /// The first engine's runs.
    pub ours: Vec<Ran>,
    /// The runs of the second engine.
    pub theirs: Vec<Ran>,
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

fn window(o: &Ran) -> Vec<(f64, f64)> {
    let samples = &o.trace.samples;
    let every = samples.len().div_ceil(MOMENTS).max(1);
    samples.iter().step_by(every).map(|s| (s.time_s, s.cwnd_bytes as f64 / 1000.0)).collect()
}

fn chart(id: usize, held: &Held, names: [&str; 2]) -> Markup {
    let (ours, kernel) = (held.ours.first().map(window), held.theirs.iter().map(window).collect::<Vec<_>>());
    let all = || kernel.iter().chain(&ours).flatten();
    let x = Axis::cut("time (s)", all().map(|p| p.0).fold(0.0, f64::max));
    let y = Axis::round("window (kB)", all().map(|p| p.1).fold(0.0, f64::max));
    let each = format!("{}, each run", names[1]);
    let keys = [Key { at: 0, label: names[0] }, Key { at: 1, label: &each }];
    let name = format!("window over time: {}", held.cell.name);
    let c = Chart { id, name, x: &x, y: &y, legend: &keys };
    let inside = html! {
        @for line in &kernel { (c.keyed(&keys[1], line.iter().copied())) }
        @if let Some(line) = &ours { (c.keyed(&keys[0], line.iter().copied())) }
    };
    c.draw(&inside, &html! {})
}

/// Samples of a run for the script.
const SAMPLES: usize = 250;

/// The chart of a cell, which the script draws anew with flight, round trips, queue and delivery of each run.
fn charts(id: usize, held: &Held, names: [&str; 2]) -> Markup {
    let runs: Vec<&Ran> = held.ours.iter().take(1).chain(&held.theirs).collect();
    let rows: Vec<Row> = runs.iter().map(|o| o.row.clone()).collect();
    let ours = held.ours.len().min(1);
    let others = (1..=held.theirs.len()).map(|n| format!("{}, run {n}", names[1]));
    let labels = std::iter::repeat_n(names[0].to_string(), ours).chain(others).collect();
    let mut data = Data::of(Kind::Study, &rows, labels);
    data.curves =
        runs.iter().enumerate().map(|(i, o)| Curve::new(i, o.row.flow, &o.trace, 0.0, SAMPLES)).collect();
    live(&html! { figure { (chart(id, held, names)) } }, &data)
}

fn figures(held: &Held, names: [&str; 2]) -> Markup {
    let number = |x: Option<f64>| x.map_or("none".to_string(), words::number);
    let least = format!("{}, least", names[1]);
    html! {
        table {
            thead { tr { @for h in ["", names[0], &least, "most", ""] { th scope="col" { (h) } } } }
            tbody {
                @for f in &held.figures {
                    tr {
                        th scope="row" { (f.name) }
                        td { (number(f.ours)) }
                        td { (number(f.theirs.map(|k| k.0))) }
                        td { (number(f.theirs.map(|k| k.1))) }
                        td class=[(!f.agrees).then_some("bad")] { (if f.agrees { "" } else { "differs" }) }
                    }
                }
            }
        }
    }
}

/// All cells at once, each a link to its part of the page.
fn grid(cells: &[Held]) -> Markup {
    html! {
        ul class="cells" {
            @for (id, held) in cells.iter().enumerate() {
                li {
                    a href={ "#cell-" (id) } class=(if held.passes() { "good" } else { "bad" }) {
                        (if held.passes() { "✓ " } else { "✗ " }) (held.cell.name)
                    }
                }
            }
        }
    }
}

/// The page, with the words for the runs of both engines. The same input gives the same bytes.
pub fn html(title: &str, about: &str, names: [&str; 2], cells: &[Held]) -> String {
    let body = html! {
        p class="verdict" { (verdict(cells)) }
        p class="about" { (about) }
        (grid(cells))
        @for (id, held) in cells.iter().enumerate() {
            h2 id={ "cell-" (id) } { (held.cell.name) (if held.passes() { "" } else { ": differs" }) }
            p class="about" { code { (held.cell.path) } }
            @for caveat in &held.caveats { p class="note" { (caveat) } }
            (charts(id, held, names))
            div class="scroll" tabindex="0" { (figures(held, names)) }
        }
    };
    document(title, &body, Script::Charts)
}

/// The number of cells that pass.
pub fn verdict(cells: &[Held]) -> String {
    let passed = cells.iter().filter(|h| h.passes()).count();
    let agree: usize = cells.iter().map(|h| h.figures.iter().filter(|f| f.agrees).count()).sum();
    let figures: usize = cells.iter().map(|h| h.figures.len()).sum();
    format!("{passed} of {} cells pass; {agree} of {figures} figures agree.", cells.len())
}
