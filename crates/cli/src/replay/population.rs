//! The table of many transfers.

use crate::table::{Align, Cell, Table};
use slowstart_replay::population::{Exited, Population, Spread, share};
use slowstart_replay::transfer::ExitClass;

/// A line for the observed exits and one for each startup.
pub(super) fn table(population: &Population) -> Table {
    let classes = ExitClass::ALL.map(ExitClass::how);
    let headers: Vec<&str> = std::iter::once("")
        .chain(classes)
        .chain([
            "full before the loss",
            "later than too early",
            "exit (s), median (90 %)",
            "window, median (90 %)",
        ])
        .collect();
    let mut alignments = vec![Align::Right; headers.len()];
    alignments[0] = Align::Left;
    let exits = population.exits();
    let observed = exits[0].classes;
    let line = |e: &Exited| -> Vec<Cell> {
        let all: u64 = e.classes.iter().sum();
        let of = |n: Option<u64>, class: ExitClass| {
            Cell::from(n.map_or("-".to_string(), |n| share(n, observed[class as usize])))
        };
        let mut cells = vec![e.startup.as_deref().unwrap_or("as observed").into()];
        cells.extend(e.classes.iter().map(|n| Cell::from(share(*n, all))));
        cells.push(of(e.full_before_loss, ExitClass::Late));
        cells.push(of(e.later_than_early, ExitClass::Early));
        cells.push(Spread::text_or_dash(e.exit_s, false).into());
        cells.push(Spread::text_or_dash(e.window_segments, true).into());
        cells
    };
    Table {
        headers: headers.into_iter().map(String::from).collect(),
        rows: exits.iter().map(line).collect(),
        alignments,
    }
}
