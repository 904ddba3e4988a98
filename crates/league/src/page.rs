//! The scores as one self-contained page.

use crate::against::Difference;
use crate::game::GameRow;
use crate::population::Population;
use crate::rank::{self, Terms};
use crate::reference;
use crate::score::{self, Measure};
use crate::sheet::{self, LEGEND, Sheet};
use crate::verdict::verdict;
use maud::{Markup, html};
use slowstart_report::chart::{Axis, Chart, Dot};
use slowstart_report::{Script, document};
use slowstart_study::words::{list, tied};

/// What a page shows.
#[derive(Copy, Clone, Debug)]
pub struct Page<'a> {
    /// The command line that makes it.
    pub command: &'a str,
    /// The populations in the order of the page.
    pub populations: &'a [Population],
    /// The rows of all populations and startups.
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
            table class="startups" {
                thead { tr { @for h in &sheet.headers { th scope="col" class=[class(h)] { (heading(h)) } } } }
                tbody {
                    @for line in &sheet.lines {
                        tr {
                            @for (i, cell) in line.iter().enumerate() {
                                @if i == 0 { th scope="row" { (cell) } }
                                @else { td class=[class(sheet.headers[i])] { (value(cell)) } }
                            }
                        }
                    }
                }
            }
        }
        @let hidden: Vec<String> =
            sheet.headers.iter().filter(|h| class(h) == Some("more")).map(ToString::to_string).collect();
        @if !hidden.is_empty() { p class="note phone" { "On a wider screen also: " (list(&hidden)) "." } }
    }
}

/// A value with its interval, if it has one, on a line of its own.
fn value(cell: &str) -> Markup {
    if let Some((value, interval)) = cell.split_once(" (") {
        html! { (value) " " small { "(" (interval) } }
    } else {
        html! { (cell) }
    }
}

/// A heading, which breaks behind a slash and not before a unit.
fn heading(h: &str) -> String {
    tied(h).replace('/', "/\u{200b}")
}

/// `more` is not shown on a phone.
fn class(heading: &str) -> Option<&'static str> {
    let shown = [
        "startup",
        "rank",
        "10 MB",
        "loses more/less",
        "others more/less",
        "early",
        "unfinished",
        "lost",
        "others lost",
        "class",
        "difference",
        "population",
    ];
    (!shown.contains(&heading)).then_some("more")
}

/// Time to 10 MB against packets lost in startup, a point a startup: which losses bought which time.
fn scatter(page: &Page) -> Markup {
    let scores = score::scores(page.rows, None);
    let places = rank::places(page.rows, None, &page.terms);
    let unbeaten = |s: &score::Score| places.iter().any(|p| p.unbeaten && p.startup == s.startup);
    let at = |s: &score::Score| {
        let mean = |m| s.figure(m).map(|f| f.mean.mid);
        // The axis begins at one packet.
        Some((mean(Measure::Regret10MB)?, mean(Measure::Lost)?.max(1.0)))
    };
    let points: Vec<(&score::Score, bool, (f64, f64))> =
        scores.iter().filter_map(|s| Some((s, unbeaten(s), at(s)?))).collect();
    if points.len() < 2 {
        return html! {};
    }
    let most = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(|p| of(&p.2)).fold(1.0, f64::max);
    let x = Axis::round("time to 10 MB over the oracle's, mean", most(&|p| p.0));
    let y = Axis::decades("packets lost in startup, mean", 1.0, 1.5 * most(&|p| p.1));
    let chart = Chart { id: 0, name: "time against losses".into(), x: &x, y: &y, legend: &[] };
    let dots: Vec<Dot> = points
        .iter()
        .map(|(s, unbeaten, at)| {
            let is_base = s.startup == page.terms.baseline;
            let class = match (is_base, unbeaten) {
                (true, _) => "base-dot",
                (_, true) => "front-dot",
                _ => "",
            };
            let shown = is_base || *unbeaten || s.startup == "standard";
            Dot { class, at: *at, name: &s.startup, shown }
        })
        .collect();
    html! {
        figure class="scatter" {
            (chart.draw(&html! {}, &chart.dots(&dots)))
            figcaption {
                "Left and down is better. Orange: a best trade-off, marked * in the table. Blue: the baseline. Point at the others for their names."
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
        p class="verdict" { (tied(&verdict(page.rows, &page.terms))) }
        p class="about" {
            "Every startup meets the same cases: paths drawn from populations, each described below. The oracle is a sender "
            "that knows the path and sends at its rate from the first packet on."
        }
        h2 { "All populations" }
        (scatter(page))
        (tables(page, None))
        p class="note" { (LEGEND) }
        @if !page.differences.is_empty() {
            h2 { "Against the baseline" }
            (table(&sheet::differences(page.differences)))
        }
        @for p in page.populations.iter().filter(|p| page.rows.iter().any(|r| r.population == p.name)) {
            h2 { (p.name) }
            p class="about" { (tied(&p.about)) }
            @if !p.laws.is_empty() { ul { @for law in &p.laws { li { (tied(law)) } } } }
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
        assert_eq!(page.matches("<circle").count(), 2, "a point a startup");
        assert!(!page.contains("<b>") && page.contains("&lt;b&gt;"));
    }
}
