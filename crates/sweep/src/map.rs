//! Maps: which startup is first where, by how much, and what it loses. `page` draws them. First is who has the least
//! median, or the greatest of a measure of which more is better, such as goodput.

pub use crate::page::{html, stalled};
use crate::query::{Filter, Query, QueryError, compare, query};
use crate::store::Store;
use slowstart_study::columns::Cell;
use slowstart_study::decision::MARGIN;
use slowstart_study::measures::Measure;
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
    /// The startups at the place all of whose runs have a value, the best median first.
    pub contenders: Vec<Contender>,
    /// True if the greatest is best.
    pub more_is_better: bool,
    /// Those that have none in some run.
    pub stalled: Vec<Stalled>,
}

impl Place {
    /// The startup with the best median; `None` if each stalls in some run.
    pub fn first(&self) -> Option<&Contender> {
        self.contenders.first()
    }

    /// True if every startup has enough runs to be compared.
    pub fn is_decided(&self) -> bool {
        self.contenders.iter().all(|c| c.runs >= FEWEST_PAIRS)
    }

    /// The startups whose median is within the margin of the best, which is no difference: one, or a tie.
    pub fn tied(&self) -> &[Contender] {
        let Some(best) = self.first().map(|f| f.value) else { return &[] };
        let within = |c: &Contender| {
            let (less, more) = if self.more_is_better { (best, c.value) } else { (c.value, best) };
            less <= more * (1.0 + MARGIN)
        };
        &self.contenders[..self.contenders.iter().take_while(|c| within(c)).count().max(1)]
    }

    /// How many times as good as the second the first is: the ratio of their medians, 1 or more; `None` if there is no
    /// second.
    pub fn over(&self) -> Option<f64> {
        let (first, second) = (self.first()?.value, self.contenders.get(1)?.value);
        Some(if self.more_is_better { first / second } else { second / first })
    }
}

/// True if the greatest value of a column of rows is best; of a column that is no measure the least is.
pub(crate) fn more_is_better(column: &str) -> bool {
    Measure::of_column(column).is_some_and(Measure::more_is_better)
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
    let more_is_better = more_is_better(value);
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
            let (x, y) = (x.clone(), y.clone());
            places.push(Place { x, y, contenders: Vec::new(), more_is_better, stalled: Vec::new() });
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
        place.contenders.sort_by(|a, b| {
            let by_value = a.value.total_cmp(&b.value);
            let by_value = if more_is_better { by_value.reverse() } else { by_value };
            by_value.then_with(|| a.name.cmp(&b.name))
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn place(more_is_better: bool, values: &[f64]) -> Place {
        let of = |(i, value): (usize, &f64)| Contender {
            name: i.to_string(),
            value: *value,
            lost: None,
            runs: FEWEST_PAIRS,
        };
        let contenders = values.iter().enumerate().map(of).collect();
        Place { x: Cell::Null, y: Cell::Null, contenders, more_is_better, stalled: Vec::new() }
    }

    #[test]
    fn the_greatest_goodput_is_best_and_the_least_time() {
        assert!(more_is_better("goodput_bps") && more_is_better("goodput_mbps"));
        for column in ["completion_s", "startup_lost_packets", "peak_queue_delay_s", "axis_rate", "bdp_bytes"]
        {
            assert!(!more_is_better(column), "{column}");
        }
        let of = |p: Place| (p.over().map(|o| (o * 100.0).round()), p.tied().len());
        assert_eq!(of(place(false, &[1.0, 1.02, 1.5])), (Some(102.0), 2));
        assert_eq!(of(place(true, &[1.5, 1.0])), (Some(150.0), 1));
        assert_eq!(of(place(true, &[1.02, 1.0, 0.5])), (Some(102.0), 2));
        assert_eq!((of(place(true, &[])), of(place(false, &[0.0]))), ((None, 0), (None, 1)));
    }
}
