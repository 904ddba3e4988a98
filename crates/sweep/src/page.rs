//! A map as a page: a heat map, which a script lets a reader question, and a table of its places.

use crate::map::{Contender, Place, Stalled, axes, heading, more_is_better};
use maud::{Markup, html};
use serde::Serialize;
use slowstart_report::look::{COLOURS, looks};
use slowstart_report::{Script, document, live};
use slowstart_study::columns::Cell;
use slowstart_study::stats::FEWEST_PAIRS;
use slowstart_study::words::{RECONSTRUCTED, number};

/// A map as data for the script.
#[derive(Serialize)]
struct Data<'a> {
    /// Tells the script what the data is.
    kind: &'static str,
    /// The column that was compared.
    value: &'a str,
    /// True if its greatest value is best.
    more_is_better: bool,
    /// The names of the axes.
    x: &'a str,
    y: &'a str,
    /// The values on the axes, in order.
    xs: Vec<String>,
    ys: Vec<String>,
    /// The startups: those that are first somewhere come first, the one that is so most often at the start.
    names: Vec<&'a str>,
    /// The number that gives each its look.
    looks: Vec<usize>,
    /// Column, line, the startups there, whether they have enough runs, and which do not complete in every run.
    places: Vec<(usize, usize, Vec<Standing>, bool, String)>,
}

/// The index of a startup, its median, and the packets that it lost in startup.
type Standing = (usize, f64, Option<f64>);

/// The startups, those that are most often first before others.
fn names(places: &[Place]) -> Vec<&str> {
    let firsts = |name: &str| places.iter().filter(|p| p.first().is_some_and(|f| f.name == name)).count();
    let mut all: Vec<&str> = places.iter().flat_map(|p| &p.contenders).map(|c| c.name.as_str()).collect();
    all.sort_unstable();
    all.dedup();
    all.sort_by_key(|n| std::cmp::Reverse(firsts(n)));
    all
}

/// The startups that do not complete in every run: `search in 2 of 12`.
pub fn stalled(p: &Place) -> String {
    let of = |s: &Stalled| format!("{} in {} of {}", s.name, s.runs[0], s.runs[1]);
    let all = p.stalled.iter().map(of).collect::<Vec<_>>().join(", ");
    if all.is_empty() { all } else { format!("never: {all}") }
}

/// The packets that a startup loses.
fn lost(c: &Contender) -> String {
    c.lost.map_or("?".to_string(), number)
}

/// How strong a colour is, in per cent: the most where the first is half as good again, or where there is
/// no second.
fn strength(over: Option<f64>) -> u32 {
    let share = over.map_or(1.0, |o| ((o - 1.0) * 2.0).clamp(0.0, 1.0));
    (15.0 + 45.0 * share).round() as u32
}

/// The heat map without a script.
fn heat(data: &Data, places: &[Place]) -> Markup {
    let at = |x: usize, y: usize| data.places.iter().position(|p| (p.0, p.1) == (x, y)).map(|i| &places[i]);
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Heat map" {
            table class="heat" data-plain="" {
                thead { tr {
                    th scope="col" { (data.y) " \\ " (data.x) }
                    @for x in &data.xs { th scope="col" { (x) } }
                } }
                tbody {
                    @for (y, name) in data.ys.iter().enumerate() {
                        tr {
                            th scope="row" { (name) }
                            @for x in 0..data.xs.len() {
                                @match at(x, y).map(|p| (p, p.first())) {
                                    None => td {},
                                    Some((p, None)) => td class="tie" { "none completes" small { (stalled(p)) } },
                                    Some((p, Some(first))) => {
                                        @let i = data.names.iter().position(|n| *n == first.name).unwrap_or(0);
                                        @let tied = p.tied();
                                        @if tied.len() > 1 {
                                            td class="tie" {
                                                "tie of " (tied.len())
                                                small { @for (i, c) in tied.iter().take(3).enumerate() { @if i > 0 { ", " } (c.name) } @if tied.len() > 3 { ", .." } }
                                            }
                                        } @else { td class={ "h" (data.looks[i] % COLOURS) } style={ "--s: " (strength(p.over())) "%" } {
                                            b { (first.name) @if !p.is_decided() { " ?" } }
                                            small {
                                                @if let Some(over) = p.over() { (number(over)) "x, " }
                                                (lost(first)) " lost"
                                                @if !p.stalled.is_empty() { "; " (stalled(p)) }
                                            }
                                        } }
                                    },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The page. Equal input gives equal bytes.
pub fn html(places: &[Place], x: &str, y: &str, value: &str) -> String {
    let (xs, ys) = axes(places);
    // The largest value is in the uppermost line.
    let ys: Vec<Cell> = ys.into_iter().rev().collect();
    let names = names(places);
    let index = |all: &[Cell], c: &Cell| all.iter().position(|v| v == c).unwrap_or(0);
    let name = |n: &str| names.iter().position(|m| *m == n).unwrap_or(0);
    let of = |p: &Place| {
        let all = p.contenders.iter().map(|c| (name(&c.name), c.value, c.lost)).collect();
        (index(&xs, &p.x), index(&ys, &p.y), all, p.is_decided(), stalled(p))
    };
    let data = Data {
        kind: "map",
        value,
        more_is_better: more_is_better(value),
        x,
        y,
        xs: xs.iter().map(|v| heading(x, v)).collect(),
        ys: ys.iter().map(|v| heading(y, v)).collect(),
        looks: looks(&names),
        names: names.clone(),
        places: places.iter().map(of).collect(),
    };
    let best = if data.more_is_better { "greatest" } else { "least" };
    let command = format!("slowstart sweep map STORE --x {x} --y {y} --value {value}");
    let body = html! {
        p class="about" {
            "By the median of " code { (value) } ". Each place has the startup with the " (best) " median, how many times as "
            "good as the second it is, and the median number of packets that the first loses in startup. The stronger the colour, "
            "the further the second is behind. Startups within 3 % of the " (best) " are a tie, in grey. What does not complete in every run is behind "
            "all that do. ?: fewer than " (FEWEST_PAIRS) " runs, which decide nothing. " (RECONSTRUCTED)
        }
        (live(&heat(&data, places), &data))
        h2 { "Places" }
        div class="scroll" tabindex="0" role="region" aria-label="Places" {
            table {
                thead { tr {
                    @for h in [x, y, "first", value, "over the second", "lost in startup", "not complete"] { th scope="col" { (h) } }
                } }
                tbody {
                    @for p in places {
                        tr {
                            th scope="row" { (heading(x, &p.x)) }
                            td { (heading(y, &p.y)) }
                            td { (p.first().map_or("none completes", |f| &f.name)) @if !p.is_decided() { " ?" } }
                            td { (p.first().map_or("-".to_string(), |f| number(f.value))) }
                            td { (p.over().map_or("-".to_string(), number)) }
                            td { (p.first().map_or("-".to_string(), lost)) }
                            td { (stalled(p)) }
                        }
                    }
                }
            }
        }
        h2 { "Command" }
        pre { code { (command) } }
    };
    document("Which startup is first", &body, Script::Charts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_all_startups_and_escapes_their_names() {
        let of = |name: &str, value| Contender { name: name.to_string(), value, lost: Some(3.0), runs: 6 };
        let place = |x: f64, contenders| Place {
            x: Cell::Number(x),
            y: Cell::Text("<y>".into()),
            contenders,
            more_is_better: false,
            stalled: vec![Stalled { name: "d".into(), runs: [2, 12] }],
        };
        let places = [place(10.0, vec![of("<b>", 1.0), of("c", 1.5)]), place(20.0, vec![of("c", 1.0)])];
        let page = html(&places, "rate", "rtt", "completion_s");
        assert!(page.contains("&lt;y&gt;") && page.contains("&lt;b&gt;") && !page.contains("<b></b>"));
        assert!(page.contains("1.50x, 3 lost; never: d in 2 of 12"), "{page}");
        assert_eq!((strength(Some(1.0)), strength(Some(1.25)), strength(Some(9.0))), (15, 38, 60));
        assert_eq!(page, html(&places, "rate", "rtt", "completion_s"));
    }
}
