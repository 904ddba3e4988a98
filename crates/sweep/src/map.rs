//! Maps: which startup is first where, by how much, and what it loses. `page` draws them.

pub use crate::page::html;
use crate::query::{Filter, Query, QueryError, compare, query};
use crate::store::Store;
use slowstart_study::columns::Cell;
use slowstart_study::decision::MARGIN;
use slowstart_study::words::{self, marked};
use std::collections::{BTreeMap, BTreeSet};

/// A startup at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Its name, marked if it is reconstructed without its paper, with its parameters if there are several
    /// variants of it.
    pub name: String,
    /// The median of the value.
    pub value: f64,
    /// The median number of packets that it lost in startup.
    pub lost: f64,
}

/// One place of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The value on the first axis.
    pub x: Cell,
    /// The value on the second axis.
    pub y: Cell,
    /// The startups at the place all of whose runs have a value, the least median first; at least one.
    pub contenders: Vec<Contender>,
}

impl Place {
    /// The startup with the least median.
    pub fn first(&self) -> &Contender {
        &self.contenders[0]
    }

    /// The startups whose median is within the margin of the least, by which nothing tells them apart: one,
    /// or a tie.
    pub fn tied(&self) -> &[Contender] {
        let within = |c: &Contender| c.value <= self.first().value * (1.0 + MARGIN);
        &self.contenders[..self.contenders.iter().take_while(|c| within(c)).count().max(1)]
    }

    /// The second startup's median over that of the first; `None` if there is no second.
    pub fn over(&self) -> Option<f64> {
        self.contenders.get(1).map(|second| second.value / self.first().value)
    }
}

/// The startups at each place of two axes by their median of `value` (`completion_s`). Startups in
/// alphabetical order if they are equal.
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
        let marked = marked(&startup);
        let name = if variants[&startup].len() > 1 { format!("{marked} {}", params.text()) } else { marked };
        let of = Contender { name, value: *median, lost: *lost };
        match places.last_mut() {
            Some((px, py, all)) if px == x && py == y => all.push(of),
            _ => places.push((x.clone(), y.clone(), vec![of])),
        }
    }
    let place = |(x, y, mut all): (Cell, Cell, Vec<Contender>)| {
        all.sort_by(|a, b| a.value.total_cmp(&b.value).then_with(|| a.name.cmp(&b.name)));
        Place { x, y, contenders: all }
    };
    Ok(places.into_iter().map(place).collect())
}

/// A value of an axis as text, with its unit where the name of the axis tells it.
pub fn heading(axis: &str, value: &Cell) -> String {
    let Cell::Number(x) = value else { return value.text() };
    match axis {
        "rate" => words::rate(*x),
        "rtt" => words::delay(x * 1e3),
        _ if axis.ends_with("_bps") => words::rate(*x),
        _ if axis.ends_with("_s") => words::delay(x * 1e3),
        _ => words::number(*x),
    }
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
