//! Maps: which startup is first where, by how much, and what it loses. `page` draws them.

pub use crate::page::{html, stalled};
use crate::query::{Filter, Query, QueryError, compare, query};
use crate::store::Store;
use slowstart_study::columns::Cell;
use slowstart_study::decision::MARGIN;
use slowstart_study::stats::FEWEST_PAIRS;
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
    /// The median number of packets that it lost in startup; `None` if that was not observed.
    pub lost: Option<f64>,
    /// Its runs.
    pub runs: usize,
}

/// A startup that has no value in some runs at a place, as it did not complete: worse than any that has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// Its name, as [`Contender::name`].
    pub name: String,
    /// Runs without a value, and all.
    pub runs: [usize; 2],
}

/// One place of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The value on the first axis.
    pub x: Cell,
    /// The value on the second axis.
    pub y: Cell,
    /// The startups at the place all of whose runs have a value, the least median first.
    pub contenders: Vec<Contender>,
    /// Those that have none in some run.
    pub stalled: Vec<Stalled>,
}

impl Place {
    /// The startup with the least median; `None` if each stalls in some run.
    pub fn first(&self) -> Option<&Contender> {
        self.contenders.first()
    }

    /// True if every startup has enough runs to be compared.
    pub fn is_decided(&self) -> bool {
        self.contenders.iter().all(|c| c.runs >= FEWEST_PAIRS)
    }

    /// The startups whose median is within the margin of the least, by which nothing tells them apart: one,
    /// or a tie.
    pub fn tied(&self) -> &[Contender] {
        let least = self.first().map_or(0.0, |f| f.value);
        let within = |c: &Contender| c.value <= least * (1.0 + MARGIN);
        &self.contenders
            [..self.contenders.iter().take_while(|c| within(c)).count().max(1).min(self.contenders.len())]
    }

    /// The second startup's median over that of the first; `None` if there is no second.
    pub fn over(&self) -> Option<f64> {
        Some(self.contenders.get(1)?.value / self.first()?.value)
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
        baseline: None,
    };
    let answer = query(store, &q)?;
    // Several parameters of one startup are told apart.
    let mut variants: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in &answer.rows {
        variants.entry(row[2].text()).or_default().insert(row[3].text());
    }
    let mut places: Vec<Place> = Vec::new();
    for row in answer.rows {
        let [
            x,
            y,
            startup,
            params,
            Cell::Integer(runs),
            median,
            _,
            _,
            _,
            _,
            _,
            Cell::Integer(missing),
            lost,
            ..,
        ] = &row[..]
        else {
            continue;
        };
        let startup = startup.text();
        let marked = marked(&startup);
        let name = if variants[&startup].len() > 1 { format!("{marked} {}", params.text()) } else { marked };
        if places.last().is_none_or(|p| p.x != *x || p.y != *y) {
            places.push(Place { x: x.clone(), y: y.clone(), contenders: Vec::new(), stalled: Vec::new() });
        }
        let place = places.last_mut().expect("one was added");
        let (runs, missing) = (*runs as usize, *missing as usize);
        match (median, lost) {
            (Cell::Number(value), lost) if missing == 0 => {
                let lost = if let Cell::Number(n) = lost { Some(*n) } else { None };
                place.contenders.push(Contender { name, value: *value, lost, runs });
            }
            _ => place.stalled.push(Stalled { name, runs: [missing, runs] }),
        }
    }
    for place in &mut places {
        place.contenders.sort_by(|a, b| a.value.total_cmp(&b.value).then_with(|| a.name.cmp(&b.name)));
    }
    Ok(places)
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
