//! Differences from a baseline, run by run: each run is compared with that of the baseline over the same path with
//! the same random numbers.

use crate::query::{QueryError, Values, resolve, scan};
use arrow_schema::Schema;
use hmac_sha256::Hash as Sha256;
use slowstart_study::columns::{Cell, Column, Kind};
use slowstart_study::difference::paired;
use slowstart_study::measures::Measure;
use slowstart_study::record::Param;
use slowstart_study::summary::label_of;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The columns of rows, beside the axes, that say which runs are of one place.
const PLACE: [&str; 7] = ["engine", "path", "profile", "size_bytes", "flow", "run", "seed"];

/// The runs of a baseline.
pub(crate) struct Baseline {
    /// The columns that two runs of one place share. A parameter of a startup is none of them: one run of the
    /// baseline stands beside those with every value of another's.
    pub(crate) columns: Vec<usize>,
    /// By the hash of these columns: the key of the run, and its values.
    runs: BTreeMap<u128, (u128, Vec<Option<f64>>)>,
}

fn place(arrays: &[Values], columns: &[usize], row: usize) -> u128 {
    let mut hash = Sha256::new();
    for at in columns {
        arrays[*at].with_text(row, |text| hash.update(text));
        hash.update([0x1f]);
    }
    u128::from_be_bytes(hash.finalize()[..16].try_into().expect("sixteen bytes"))
}

/// The label of a startup, with its parameters as JSON.
fn label(startup: &str, params: &str) -> String {
    let params: BTreeMap<String, Param> = serde_json::from_str(params).unwrap_or_default();
    label_of(startup, &params, &BTreeMap::new())
}

impl Baseline {
    /// Reads the runs of the startup with this label, or of this name if there is one with that name only, and
    /// their `values`. Filters of a query do not concern them.
    pub(crate) fn read(
        parts: &[(String, PathBuf)],
        schema: &Schema,
        name: &str,
        values: &[usize],
    ) -> Result<Self, QueryError> {
        let fields = schema.fields().iter().enumerate();
        let axes = fields.filter(|(_, f)| f.name().starts_with("axis_") && !f.name().contains(':'));
        let own = |name: &&str| schema.fields().iter().position(|f| f.name() == name);
        let columns: Vec<usize> = axes.map(|(i, _)| i).chain(PLACE.iter().filter_map(own)).collect();
        let mut wanted: Vec<usize> = columns.clone();
        for name in ["startup", "params", "key"] {
            wanted.push(resolve(schema, name)?);
        }
        wanted.extend(values);
        let n = columns.len();
        let of_place: Vec<usize> = (0..n).collect();
        let mut runs: BTreeMap<u128, (u128, Vec<Option<f64>>)> = BTreeMap::new();
        let mut labels: BTreeMap<(String, String), String> = BTreeMap::new();
        let mut twice = None;
        scan(parts, schema, &wanted, |_, arrays, rows| {
            let arrays: Vec<Values> = arrays.into_iter().map(Values).collect();
            for row in 0..rows {
                let text = |at: usize| arrays[at].with_text(row, str::to_string).unwrap_or_default();
                let of = (text(n), text(n + 1));
                let is = of.0 == name;
                let label = labels.entry(of).or_insert_with_key(|(s, p)| label(s, p));
                if !is && label != name {
                    continue;
                }
                let key = u128::from_str_radix(&text(n + 2), 16).unwrap_or_default();
                let values = (n + 3..wanted.len()).map(|at| arrays[at].number(row)).collect();
                match runs.insert(place(&arrays, &of_place, row), (key, values)) {
                    Some((other, _)) if other != key => twice = Some(()),
                    _ => {}
                }
            }
        })?;
        let known: BTreeSet<&str> = labels.values().map(String::as_str).collect();
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        if runs.is_empty() {
            return Err(QueryError::Baseline(format!("found {name:?}, expected one of {known}")));
        }
        if twice.is_some() {
            return Err(QueryError::Baseline(format!(
                "found several runs of {name} over the same path with the same seed, expected one: name its parameters, or \
                 keep sweeps in stores of their own; there are {known}"
            )));
        }
        Ok(Self { columns, runs })
    }

    /// The values of the baseline's run of the same place; `None` if it has none.
    pub(crate) fn of(&self, arrays: &[Values], columns: &[usize], row: usize) -> Option<&[Option<f64>]> {
        self.runs.get(&place(arrays, columns, row)).map(|(_, values)| values.as_slice())
    }
}

/// True if a column is a time that a run without a value never got to.
fn is_time(column: &str) -> bool {
    Measure::of_column(column).is_some_and(Measure::is_time) || column.starts_with("time_to_bytes_s")
}

/// True if differences of a column are in percent: those of measures whose margin is a share, and of other times, rates
/// and bytes.
fn is_relative(column: &str) -> bool {
    match Measure::of_column(column) {
        Some(m) if m.is_judged() => m.is_relative(),
        _ => ["_s", "_bps", "_bytes"].iter().any(|unit| column.ends_with(unit)) || is_time(column),
    }
}

/// The columns of a difference in a column of rows.
pub(crate) fn difference_columns(of: &str) -> [Column; 6] {
    let unit = if is_relative(of) { "_percent" } else { "" };
    let number =
        |name: &str, about: &str| Column::new(&format!("{of}_difference{name}{unit}"), Kind::Number, about);
    let count = |name: &str, about: &str| Column::new(&format!("{of}_{name}"), Kind::Integer, about);
    [
        number(
            "",
            "Median of the differences from the baseline, run by run; null if a run was not observed.",
        ),
        number("_low", "Lower end of its 95 % interval."),
        number("_high", "Upper end of its 95 % interval."),
        count("pairs", "Runs that the baseline has too; fewer than six decide nothing."),
        count("never", "Runs of these in which only this startup never got there."),
        count("never_baseline", "Runs of these in which only the baseline never got there."),
    ]
}

/// The difference of pairs of values of a column.
pub(crate) fn difference(of: &str, pairs: &[(Option<f64>, Option<f64>)]) -> [Cell; 6] {
    let count = |n: usize| Cell::Integer(n as u64);
    let Some((middle, never)) = paired(pairs, is_relative(of), is_time(of)) else {
        return [Cell::Null, Cell::Null, Cell::Null, count(pairs.len()), Cell::Null, Cell::Null];
    };
    let [median, low, high] = [middle.mid, middle.low, middle.high]
        .map(|x| if x.is_finite() { Cell::Number(x) } else { Cell::Null });
    let [never, theirs] = if is_time(of) { never.map(count) } else { [Cell::Null, Cell::Null] };
    [median, low, high, count(pairs.len()), never, theirs]
}
