//! Maps: which startup is first where, by how much, and what it loses.

use crate::query::{Filter, Query, QueryError, compare, query};
use crate::store::Store;
use slowstart_lab::columns::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// One place of a map: which startup is first there.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The value on the first axis.
    pub x: Cell,
    /// The value on the second axis.
    pub y: Cell,
    /// The startup with the least median of `value`, of those all of whose runs have one.
    pub first: String,
    /// That median.
    pub value: f64,
    /// The second startup's median over it; `None` if there is no second.
    pub over: Option<f64>,
    /// The median number of packets that the first lost in startup.
    pub lost: f64,
}

/// A startup at a place: its median, its name, and the packets that it loses in startup.
type Contender = (f64, String, f64);

/// Which startup has the least median of `value` (`completion_s`) at each place of two axes. Startups in alphabetical order
/// if they are equal.
///
/// # Errors
/// If the store cannot be read, or has no such column.
pub fn map(
    store: &Store,
    x: &str,
    y: &str,
    value: &str,
    filters: Vec<Filter>,
) -> Result<Vec<Place>, QueryError> {
    let names = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    let q = Query {
        filters,
        columns: Vec::new(),
        group: names(&[x, y, "startup", "params"]),
        values: names(&[value, "startup_lost_packets"]),
    };
    let answer = query(store, &q)?;
    // Several parameters of one startup are told apart.
    let mut variants: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in &answer.rows {
        variants.entry(row[2].text()).or_default().insert(row[3].text());
    }
    let mut places: Vec<(Cell, Cell, Vec<Contender>)> = Vec::new();
    for row in answer.rows {
        let [x, y, startup, params, _, median, _, _, _, lost, ..] = &row[..] else { continue };
        let (Cell::Number(median), Cell::Number(lost)) = (median, lost) else { continue };
        let startup = startup.text();
        let name =
            if variants[&startup].len() > 1 { format!("{startup} {}", params.text()) } else { startup };
        let of = (*median, name, *lost);
        match places.last_mut() {
            Some((px, py, all)) if px == x && py == y => all.push(of),
            _ => places.push((x.clone(), y.clone(), vec![of])),
        }
    }
    let place = |(x, y, mut all): (Cell, Cell, Vec<Contender>)| {
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        let over = all.get(1).map(|second| second.0 / all[0].0);
        let (value, first, lost) = all.swap_remove(0);
        Place { x, y, first, value, over, lost }
    };
    Ok(places.into_iter().map(place).collect())
}

/// The values on the two axes, in order.
pub fn axes(places: &[Place]) -> (Vec<Cell>, Vec<Cell>) {
    let values = |pick: fn(&Place) -> &Cell| {
        let mut all: Vec<Cell> = places.iter().map(|p| pick(p).clone()).collect();
        all.sort_by(|a, b| compare(std::slice::from_ref(a), std::slice::from_ref(b)));
        all.dedup();
        all
    };
    (values(|p| &p.x), values(|p| &p.y))
}

/// Colours that differ for people with any colour vision (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#56B4E9", "#E69F00", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#BBBBBB"];

/// A text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// A heat map as a page: each place has the colour of its first startup, the stronger the further the second is behind.
pub fn html(places: &[Place], x: &str, y: &str, value: &str) -> String {
    const SIZE: (usize, usize) = (90, 44);
    const LEFT: usize = 110;
    let (xs, ys) = axes(places);
    let mut names: Vec<&str> = places.iter().map(|p| p.first.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let colour = |name: &str| COLOURS[names.iter().position(|n| *n == name).unwrap_or(0) % COLOURS.len()];
    let mut svg = String::new();
    for p in places {
        let at = |all: &[Cell], c: &Cell| all.iter().position(|v| v == c).unwrap_or(0);
        let (column, line) = (at(&xs, &p.x), at(&ys, &p.y));
        let (left, top) = (LEFT + column * SIZE.0, (ys.len() - 1 - line) * SIZE.1);
        // A second that needs half as long again has the full colour.
        let strength = 0.2 + 0.8 * (p.over.map_or(1.0, |o| (o - 1.0) * 2.0)).clamp(0.0, 1.0);
        let over = p.over.map_or(String::new(), |o| format!("{o:.2}x, "));
        let _ = write!(
            svg,
            "<g><title>{}: {value} {:.4}</title><rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"{}\" \
             fill-opacity=\"{strength:.2}\" stroke=\"white\"/><text x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" \
             y=\"{}\" class=\"small\">{over}{} lost</text></g>",
            escaped(&p.first),
            p.value,
            SIZE.0,
            SIZE.1,
            colour(&p.first),
            left + 4,
            top + 18,
            escaped(&p.first),
            left + 4,
            top + 35,
            p.lost,
        );
    }
    for (i, c) in ys.iter().rev().enumerate() {
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LEFT - 6,
            i * SIZE.1 + 26,
            escaped(&c.text())
        );
    }
    for (i, c) in xs.iter().enumerate() {
        let (left, top) = (LEFT + i * SIZE.0 + SIZE.0 / 2, ys.len() * SIZE.1 + 18);
        let _ = write!(
            svg,
            "<text x=\"{left}\" y=\"{top}\" text-anchor=\"middle\">{}</text>",
            escaped(&c.text())
        );
    }
    let (width, height) = (LEFT + xs.len() * SIZE.0 + 10, ys.len() * SIZE.1 + 44);
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Which startup is first</title><style>body,\
         text{{font:13px sans-serif}}.small{{font-size:11px}}</style></head><body><h1>Which startup is first</h1><p>By the \
         median of {value}. Columns: {x}. Lines: {y}. Each place: the first startup, the second's median over the first's, and \
         the median number of packets that the first loses in startup. The stronger the colour, the further the second is \
         behind.</p><svg width=\"{width}\" height=\"{height}\" role=\"img\">{svg}</svg></body></html>\n",
        value = escaped(value),
        x = escaped(x),
        y = escaped(y)
    )
}
