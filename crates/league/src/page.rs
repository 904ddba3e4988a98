//! The scores as one self-contained page.

use crate::against::Difference;
use crate::game::GameRow;
use crate::population::Population;
use crate::rank::{self, Terms};
use crate::reference;
use crate::score;
use crate::sheet::{self, LEGEND, Sheet};
use maud::{Markup, html};
use slowstart_lab::report::{Script, document};

/// What a page shows.
#[derive(Copy, Clone, Debug)]
pub struct Page<'a> {
    /// The command line that makes it.
    pub command: &'a str,
    /// The populations.
    pub populations: &'a [Population],
    /// All rows.
    pub rows: &'a [GameRow],
    /// What startups are ranked by.
    pub terms: Terms<'a>,
    /// Differences to a baseline; none if there is no baseline.
    pub differences: &'a [Difference],
}

fn table(sheet: &Sheet) -> Markup {
    html! {
        h3 { (sheet.title) }
        // A scrolling region must be reachable by keyboard.
        div class="scroll" tabindex="0" role="region" aria-label=(sheet.title) {
            table {
                thead { tr { @for h in &sheet.headers { th scope="col" { (h) } } } }
                tbody {
                    @for line in &sheet.lines {
                        tr {
                            @for (i, cell) in line.iter().enumerate() {
                                @if i == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn tables(page: &Page, population: Option<&str>) -> Markup {
    let rows = page.rows;
    let scores = score::scores(rows, population);
    html! {
        (table(&rank::sheet(rows, population, &page.terms)))
        (table(&sheet::speed(&scores)))
        (table(&sheet::harm(&scores)))
        (table(&reference::distance(rows, population)))
    }
}

/// Returns the page. The same input gives the same bytes.
pub fn html(page: &Page) -> String {
    let body = html! {
        p class="about" {
            "Every startup meets the same cases. docs/explain/league.md explains populations, oracle and measures."
        }
        h2 { "All populations" }
        (tables(page, None))
        p class="note" { (LEGEND) }
        @if !page.differences.is_empty() {
            h2 { "Against the baseline" }
            (table(&sheet::differences(page.differences)))
        }
        @for p in page.populations.iter().filter(|p| page.rows.iter().any(|r| r.population == p.name)) {
            h2 { (p.name) }
            p class="about" { (p.about) }
            @if !p.laws.is_empty() { ul { @for law in &p.laws { li { (law) } } } }
            (tables(page, Some(&p.name)))
        }
        h2 { "Command" }
        pre { code { (page.command) } }
    };
    document("The league of startups", &body, Script::Tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population;
    use crate::score::tests::row;

    #[test]
    fn a_page_has_a_section_for_each_population_with_rows() {
        let rows = [row("a", 0, 1.0, 0), row("<b>", 0, 2.0, 0)];
        let all = population::all();
        let page = html(&Page {
            command: "slowstart league",
            populations: &all,
            rows: &rows,
            terms: Terms { baseline: "standard", margin: 0.03 },
            differences: &[],
        });
        assert!(page.contains("<h2>random</h2>") && !page.contains("<h2>geo</h2>"));
        assert!(!page.contains("<b>") && page.contains("&lt;b&gt;"));
    }
}
