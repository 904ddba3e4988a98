//! Reads a store: filters its rows, groups them, and summarises values.

use crate::baseline::{Baseline, difference, difference_columns};
use crate::part::PartFile;
use crate::plan::hex;
use crate::store::{Holds, Store, StoreError, has_keys};
use crate::table::{TableError, arrow_type};
use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use slowstart_sim::suggest::did_you_mean;
use slowstart_study::axis;
use slowstart_study::columns::{Cell, Column, Kind};
use slowstart_study::stats::median;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Rows of a batch that is read.
const BATCH: usize = 65_536;

/// Why a query failed.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A part of the store cannot be read.
    #[error("{file}: {why}")]
    Part {
        /// Which.
        file: String,
        /// Why.
        why: TableError,
    },
    /// A column that no part has.
    #[error("column {found:?}{hint}: expected one of {known}")]
    Column {
        /// Its name.
        found: String,
        /// ` (did you mean "startup"?)`, or nothing.
        hint: String,
        /// The columns there are.
        known: String,
    },
    /// A filter is not of the form that is expected.
    #[error("filter: found {0:?}, expected COLUMN, one of = != < <= > >=, and a value, such as rate>=50Mbit")]
    Filter(String),
    /// Differences from a baseline that has no runs, or more than one at a place.
    #[error("baseline: {0}")]
    Baseline(String),
    /// A group of rows of several sweeps.
    #[error(
        "group {group}: found rows of several sweeps ({sweeps}), expected those of one: name more columns (--group \
         startup,size_bytes), choose some rows (--where size_bytes=2000000), or keep sweeps in stores of their own"
    )]
    Pooled {
        /// The values of its columns.
        group: String,
        /// The sweeps.
        sweeps: String,
    },
    /// A filter of a column of numbers by something else.
    #[error("filter: found {value:?} for column {column}, expected a number, perhaps with a unit")]
    NoNumber {
        /// The column.
        column: String,
        /// The value.
        value: String,
    },
}

fn part<T, E: Into<TableError>>(file: &Path, result: Result<T, E>) -> Result<T, QueryError> {
    result.map_err(|e| QueryError::Part { file: file.display().to_string(), why: e.into() })
}

/// A comparison.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Is {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A condition on a column; a row in which the column is null does not meet it.
#[derive(Clone, Debug)]
pub struct Filter {
    column: String,
    is: Is,
    text: String,
    number: Option<f64>,
}

impl Filter {
    /// Reads `COLUMN OPERATOR VALUE`. A value may have a unit: `rate>=50Mbit`.
    ///
    /// # Errors
    /// If it is not of that form.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let operators = [
            ("!=", Is::NotEqual),
            ("<=", Is::AtMost),
            (">=", Is::AtLeast),
            ("=", Is::Equal),
            ("<", Is::Less),
            (">", Is::Greater),
        ];
        let at = text.find(['!', '<', '>', '=']).ok_or_else(|| QueryError::Filter(text.into()))?;
        let (column, rest) = text.split_at(at);
        let (sign, is) = operators
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(|| QueryError::Filter(text.into()))?;
        let value = rest[sign.len()..].trim();
        if column.trim().is_empty() || value.is_empty() {
            return Err(QueryError::Filter(text.into()));
        }
        Ok(Self { column: column.trim().into(), is, number: axis::value(value), text: value.into() })
    }

    fn meets(&self, values: &Values, row: usize) -> bool {
        let order = match (values.number(row), self.number) {
            (Some(x), Some(y)) => x.partial_cmp(&y),
            _ => values.with_text(row, |t| t.cmp(self.text.as_str())),
        };
        order.is_some_and(|order| match self.is {
            Is::Equal => order.is_eq(),
            Is::NotEqual => order.is_ne(),
            Is::Less => order.is_lt(),
            Is::AtMost => order.is_le(),
            Is::Greater => order.is_gt(),
            Is::AtLeast => order.is_ge(),
        })
    }
}

/// A column of a batch.
pub(crate) struct Values(pub(crate) ArrayRef);

impl Values {
    pub(crate) fn number(&self, row: usize) -> Option<f64> {
        if self.0.is_null(row) {
            return None;
        }
        match self.0.data_type() {
            DataType::Float64 => Some(self.0.as_primitive::<Float64Type>().value(row)),
            DataType::UInt64 => Some(self.0.as_primitive::<UInt64Type>().value(row) as f64),
            _ => None,
        }
    }

    /// Calls `with` with the value as text, unless it is null.
    pub(crate) fn with_text<T>(&self, row: usize, with: impl FnOnce(&str) -> T) -> Option<T> {
        match self.cell(row) {
            Cell::Null => None,
            Cell::Text(t) => Some(with(&t)),
            other => Some(with(&other.text())),
        }
    }

    fn cell(&self, row: usize) -> Cell {
        if self.0.is_null(row) {
            return Cell::Null;
        }
        match self.0.data_type() {
            DataType::Float64 => Cell::Number(self.0.as_primitive::<Float64Type>().value(row)),
            DataType::UInt64 => Cell::Integer(self.0.as_primitive::<UInt64Type>().value(row)),
            DataType::Boolean => Cell::Boolean(self.0.as_boolean().value(row)),
            DataType::Utf8 => Cell::Text(self.0.as_string::<i32>().value(row).to_string()),
            _ => Cell::Null,
        }
    }
}

/// A query of a store: which rows, which columns, and how they are grouped.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Conditions, all of which a row meets.
    pub filters: Vec<Filter>,
    /// The columns of the answer; all if there are none. Not used with a group.
    pub columns: Vec<String>,
    /// Rows with the same values of these columns are summarised.
    pub group: Vec<String>,
    /// The columns that a summary is of.
    pub values: Vec<String>,
    /// With a group: the startup, with the parameters that differ from its own, from which each run of a group
    /// differs by what the summary says.
    pub baseline: Option<String>,
}

/// The answer to a query: columns, and values row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its columns, in the order of the query.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows of the store were read.
    pub read: usize,
}

/// The schema of all parts of a store: columns in the order of the first part that has them. A column that is
/// a number in one part and text in another is text.
fn schema(parts: &[(String, PathBuf)]) -> Result<SchemaRef, QueryError> {
    let mut fields: Vec<Field> = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, file) in parts {
        // The parts of a sweep have one schema.
        let sweep = name.split('-').next().unwrap_or_default().to_string()
            + if name.ends_with("cut") { "-cut" } else { "" };
        if !name.ends_with("cut") && !seen.insert(sweep) {
            continue;
        }
        let reader = part(file, PartFile::open(file))?.reader;
        part(file, has_keys(reader.schema()))?;
        for field in reader.schema().fields() {
            match fields.iter_mut().find(|f| f.name() == field.name()) {
                None => fields.push(field.as_ref().clone()),
                Some(f) if f.data_type() != field.data_type() => {
                    *f = Field::new(f.name(), DataType::Utf8, true);
                }
                Some(_) => {}
            }
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// The column of an axis of this name, else that of rows: a sweep over `path` has its values in `axis_path`, and the
/// whole path of each row, with the values of all other axes, in `path`.
pub(crate) fn resolve(schema: &Schema, name: &str) -> Result<usize, QueryError> {
    let axis = format!("axis_{name}");
    let find = |name: &str| schema.fields().iter().position(|f| f.name() == name);
    find(&axis).or_else(|| find(name)).ok_or_else(|| {
        let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        QueryError::Column { found: name.into(), hint: did_you_mean(name, &known), known: known.join(", ") }
    })
}

/// An array as the schema has it: text where parts differ.
fn fitted(array: &ArrayRef, to: &DataType) -> ArrayRef {
    if array.data_type() == to {
        return Arc::clone(array);
    }
    let values = Values(Arc::clone(array));
    let mut text = StringBuilder::new();
    for row in 0..array.len() {
        match values.cell(row) {
            Cell::Null => text.append_null(),
            other => text.append_value(other.text()),
        }
    }
    Arc::new(text.finish())
}

/// Calls `each` with the name of each part and its batches, which have the columns `wanted` of `schema` in this order.
pub(crate) fn scan(
    parts: &[(String, PathBuf)],
    schema: &Schema,
    wanted: &[usize],
    mut each: impl FnMut(&str, Vec<ArrayRef>, usize),
) -> Result<(), QueryError> {
    for (name, file) in parts {
        let reader = part(file, PartFile::open(file))?;
        let names: Vec<&str> = wanted.iter().map(|i| schema.field(*i).name().as_str()).collect();
        for batch in part(file, reader.read(&names, BATCH))? {
            let batch = part(file, batch)?;
            let arrays = wanted.iter().map(|i| {
                let field = schema.field(*i);
                match batch.column_by_name(field.name()) {
                    Some(array) => fitted(array, field.data_type()),
                    None => new_null_array(field.data_type(), batch.num_rows()),
                }
            });
            each(name, arrays.collect(), batch.num_rows());
        }
    }
    Ok(())
}

/// The sweep that a part is of.
fn sweep_of(part: &str) -> &str {
    part.split('-').next().unwrap_or(part)
}

/// For each sweep of a store what its runs have in common: its text without what rows tell apart, and without the
/// number and the seed of its runs. Empty if the store has one sweep or none.
fn kinds(store: &Store) -> Result<BTreeMap<String, String>, QueryError> {
    let sweeps = if store.holds() == Holds::Sweeps { store.sweeps()? } else { BTreeMap::new() };
    let kind = |text: &str| {
        let mut table: toml::Table = text.parse().ok()?;
        table.retain(|key, _| !["axes", "draws", "startups", "runs", "seed"].contains(&key));
        Some(table.to_string())
    };
    let several = sweeps.len() > 1;
    let all = sweeps.into_iter().filter(|_| several);
    Ok(all.map(|(id, of)| (id.clone(), kind(&of.text).unwrap_or(id))).collect())
}

/// True if two parts may hold the same key: if they are of several sweeps.
fn may_repeat(parts: &[(String, PathBuf)]) -> bool {
    let mut sweeps: Vec<&str> = parts.iter().map(|(name, _)| sweep_of(name)).collect();
    sweeps.dedup();
    sweeps.len() > 1 || parts.iter().any(|(name, _)| name.ends_with("cut"))
}

/// The rows of a store as Arrow batches: the columns of these names, or all.
///
/// # Errors
/// If the store cannot be read, or has no such column.
pub fn batches(store: &Store, columns: &[String]) -> Result<(SchemaRef, Vec<RecordBatch>), QueryError> {
    let parts = store.parts()?;
    let all = schema(&parts)?;
    let wanted: Vec<usize> = if columns.is_empty() {
        (0..all.fields().len()).collect()
    } else {
        columns.iter().map(|c| resolve(&all, c)).collect::<Result<_, _>>()?
    };
    let narrow: SchemaRef =
        Arc::new(Schema::new(wanted.iter().map(|i| all.field(*i).clone()).collect::<Vec<_>>()));
    let mut out = Vec::new();
    let mut failed = None;
    scan(&parts, &all, &wanted, |_, arrays, _| match RecordBatch::try_new(Arc::clone(&narrow), arrays) {
        Ok(batch) => out.push(batch),
        Err(e) => failed = Some(e),
    })?;
    match failed {
        Some(e) => part(store.dir(), Err(e)),
        None => Ok((narrow, out)),
    }
}

/// The kind of an Arrow column.
fn kind(of: &DataType) -> Kind {
    [Kind::Integer, Kind::Number, Kind::Boolean]
        .into_iter()
        .find(|k| arrow_type(*k) == *of)
        .unwrap_or(Kind::Text)
}

/// What a summary says of a value.
const SUMMARIES: [&str; 7] = ["median", "low", "high", "mean", "min", "max", "missing"];

/// The median of some values with its 95 % interval ([`median`]), their mean, least and greatest, null of none; and
/// how many of `runs` have none, which of a time are those that never got there.
fn summary(values: &[f64], runs: usize) -> [Cell; SUMMARIES.len()] {
    let missing = Cell::Integer((runs - values.len()) as u64);
    let Some(middle) = median(values) else {
        return [Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null, missing];
    };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let [median, low, high, mean, least, most] =
        [middle.mid, middle.low, middle.high, mean, least, most].map(Cell::Number);
    [median, low, high, mean, least, most, missing]
}

/// Rows with the same values of some columns.
struct Group {
    /// Those values.
    cells: Vec<Cell>,
    /// The number of rows.
    rows: usize,
    /// The values to summarise, column by column.
    values: Vec<Vec<f64>>,
    /// These, pair by pair with those of the baseline's run, if it has one.
    pairs: Vec<Vec<(Option<f64>, Option<f64>)>>,
    /// Of what kinds its rows are, and a sweep of each.
    kinds: BTreeMap<String, String>,
}

/// Answers a query. Groups are in order of their values; other rows in the order of the parts. A run that two
/// sweeps computed counts once.
///
/// # Errors
/// If the store cannot be read, or has no such column; if a group has rows of sweeps that differ in more than
/// axes, startups and runs.
pub fn query(store: &Store, q: &Query) -> Result<Answer, QueryError> {
    let parts = store.parts()?;
    let all = schema(&parts)?;
    if all.fields().is_empty() {
        return Ok(Answer { columns: Vec::new(), rows: Vec::new(), read: 0 });
    }
    let find = |names: &[String]| names.iter().map(|n| resolve(&all, n)).collect::<Result<Vec<_>, _>>();
    let filters = find(&q.filters.iter().map(|f| f.column.clone()).collect::<Vec<_>>())?;
    for (filter, at) in q.filters.iter().zip(&filters) {
        if filter.number.is_none()
            && matches!(all.field(*at).data_type(), DataType::Float64 | DataType::UInt64)
        {
            return Err(QueryError::NoNumber { column: filter.column.clone(), value: filter.text.clone() });
        }
    }
    let shown = match (&q.group[..], &q.columns[..]) {
        ([], []) => (0..all.fields().len()).collect(),
        ([], columns) => find(columns)?,
        (group, _) => find(group)?,
    };
    let values = if q.group.is_empty() { Vec::new() } else { find(&q.values)? };
    if q.baseline.is_some() && !q.group.iter().any(|g| g == "startup") {
        return Err(QueryError::Baseline(
            "found it without the group startup, expected --group startup,...".into(),
        ));
    }
    let baseline = q.baseline.as_ref().map(|b| Baseline::read(&parts, &all, b, &values)).transpose()?;
    let key = if may_repeat(&parts) { Some(resolve(&all, "key")?) } else { None };
    let mut wanted: Vec<usize> = [&filters[..], &shown[..], &values[..]].concat();
    let kinds = if q.group.is_empty() { BTreeMap::new() } else { kinds(store)? };
    let engine = if kinds.is_empty() { None } else { resolve(&all, "engine").ok() };
    wanted.extend(key.into_iter().chain(engine));
    wanted.extend(baseline.iter().flat_map(|b| &b.columns));
    wanted.sort_unstable();
    wanted.dedup();
    let place = |i: &usize| wanted.binary_search(i).expect("it is wanted");
    let (filters, shown_at, values_at): (Vec<usize>, Vec<usize>, Vec<usize>) = (
        filters.iter().map(place).collect(),
        shown.iter().map(place).collect(),
        values.iter().map(place).collect(),
    );
    let (key_at, engine_at) = (key.as_ref().map(place), engine.as_ref().map(place));
    let pairs_at: Vec<usize> = baseline.iter().flat_map(|b| &b.columns).map(place).collect();
    let mut seen = BTreeSet::new();
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let (mut rows, mut read) = (Vec::new(), 0);
    let mut name = String::new();
    scan(&parts, &all, &wanted, |part, arrays, n| {
        read += n;
        let arrays: Vec<Values> = arrays.into_iter().map(Values).collect();
        for row in 0..n {
            if !q.filters.iter().zip(&filters).all(|(f, at)| f.meets(&arrays[*at], row)) {
                continue;
            }
            if let Some(at) = key_at
                && !arrays[at].with_text(row, |k| seen.insert(k.to_string())).unwrap_or(true)
            {
                continue;
            }
            if q.group.is_empty() {
                rows.push(shown_at.iter().map(|at| arrays[*at].cell(row)).collect());
                continue;
            }
            name.clear();
            for at in &shown_at {
                append(&mut name, &arrays[*at], row);
            }
            if !groups.contains_key(&name) {
                let cells = shown_at.iter().map(|at| arrays[*at].cell(row)).collect();
                let (values, pairs) = (vec![Vec::new(); values_at.len()], vec![Vec::new(); values_at.len()]);
                groups.insert(name.clone(), Group { cells, rows: 0, values, pairs, kinds: BTreeMap::new() });
            }
            let group = groups.get_mut(&name).expect("it is there");
            if let Some(kind) = kinds.get(sweep_of(part)) {
                let engine = engine_at.and_then(|at| arrays[at].with_text(row, |e| format!("{kind}{e}")));
                let sweep = || sweep_of(part).to_string();
                group.kinds.entry(engine.unwrap_or_default()).or_insert_with(sweep);
            }
            group.rows += 1;
            for (at, list) in values_at.iter().zip(&mut group.values) {
                list.extend(arrays[*at].number(row));
            }
            if let Some(theirs) = baseline.as_ref().and_then(|b| b.of(&arrays, &pairs_at, row)) {
                for ((at, y), pairs) in values_at.iter().zip(theirs).zip(&mut group.pairs) {
                    pairs.push((arrays[*at].number(row), *y));
                }
            }
        }
    })?;
    let mut columns: Vec<Column> = shown
        .iter()
        .map(|i| Column::new(all.field(*i).name(), kind(all.field(*i).data_type()), ""))
        .collect();
    if !q.group.is_empty() {
        columns.push(Column::new("runs", Kind::Integer, "Rows of the group."));
        for i in &values {
            for s in SUMMARIES {
                let kind = if s == "missing" { Kind::Integer } else { Kind::Number };
                columns.push(Column::new(&format!("{}_{s}", all.field(*i).name()), kind, ""));
            }
            if baseline.is_some() {
                columns.extend(difference_columns(all.field(*i).name()));
            }
        }
        let mut sorted: Vec<_> = groups.into_values().collect();
        if let Some(g) = sorted.iter().find(|g| g.kinds.len() > 1) {
            let of: Vec<String> = g.cells.iter().map(Cell::text).collect();
            let sweeps = g.kinds.values().cloned().collect::<Vec<_>>().join(", ");
            return Err(QueryError::Pooled { group: of.join(", "), sweeps });
        }
        sorted.sort_by(|a, b| compare(&a.cells, &b.cells));
        rows = sorted
            .into_iter()
            .map(|Group { mut cells, rows, values: lists, pairs, .. }| {
                cells.push(Cell::Integer(rows as u64));
                for ((list, pairs), i) in lists.iter().zip(&pairs).zip(&values) {
                    cells.extend(summary(list, rows));
                    if baseline.is_some() {
                        cells.extend(difference(all.field(*i).name(), pairs));
                    }
                }
                cells
            })
            .collect();
    }
    Ok(Answer { columns, rows, read })
}

/// Appends a value to the name of a group, so that two groups have different names.
fn append(name: &mut String, values: &Values, row: usize) {
    let array = &values.0;
    match array.data_type() {
        _ if array.is_null(row) => {}
        DataType::Utf8 => name.push_str(array.as_string::<i32>().value(row)),
        DataType::Float64 => {
            name.push_str(&hex(&array.as_primitive::<Float64Type>().value(row).to_be_bytes()));
        }
        DataType::UInt64 => name.push_str(&hex(&array.as_primitive::<UInt64Type>().value(row).to_be_bytes())),
        _ => name.push_str(&values.cell(row).text()),
    }
    name.push('\x1f');
}

/// The order of rows of cells: absent values first, numbers by size.
pub(crate) fn compare(a: &[Cell], b: &[Cell]) -> std::cmp::Ordering {
    let number = |c: &Cell| match c {
        Cell::Integer(n) => Some(*n as f64),
        Cell::Number(x) => Some(*x),
        _ => None,
    };
    let one = |(a, b): (&Cell, &Cell)| match (number(a), number(b)) {
        (Some(x), Some(y)) => x.total_cmp(&y),
        _ => a.text().cmp(&b.text()),
    };
    a.iter().zip(b).map(one).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
}
