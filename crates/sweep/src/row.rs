//! The row of a run of a sweep, as JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use slowstart_study::columns::{self, Cell, Column};
use slowstart_study::record::{ROW_SCHEMA, Row};
use std::sync::LazyLock;

/// JSON Schema of a [`SweepRow`].
pub const SWEEP_ROW_SCHEMA: &str = include_str!("../schema/row.json");

/// The row of a run, with what tells it from the others of its sweep.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// Hash of everything that decides the row.
    pub key: String,
    /// The value of each axis, in the unit of rows.
    pub axis: Map<String, Value>,
    /// What was measured.
    #[serde(flatten)]
    pub row: Row,
}

impl SweepRow {
    /// The row that a store has in these columns.
    ///
    /// # Errors
    /// If a column that rows have is missing or of another kind.
    pub fn read(columns: &[Column], cells: &[Cell]) -> Result<Self, serde_json::Error> {
        static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| columns::columns(ROW_SCHEMA));
        let flat = flat(columns, cells);
        let named = |(name, value): (&String, &Value)| {
            let axis = name.strip_prefix("axis_").filter(|_| !value.is_null())?;
            Some((axis.to_string(), value.clone()))
        };
        let mut row = columns::row(&COLUMNS, &flat)?;
        row["key"] = flat.get("key").cloned().unwrap_or_default();
        row["axis"] = flat.iter().filter_map(named).collect::<Map<_, _>>().into();
        serde_json::from_value(row)
    }
}

/// Columns and their cells as a flat JSON object.
pub fn flat(columns: &[Column], cells: &[Cell]) -> Map<String, Value> {
    let value = |cell: &Cell| match cell {
        Cell::Null => Value::Null,
        Cell::Integer(n) => (*n).into(),
        Cell::Number(x) => (*x).into(),
        Cell::Boolean(b) => (*b).into(),
        Cell::Text(t) => t.clone().into(),
    };
    columns.iter().map(|c| c.name.clone()).zip(cells.iter().map(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::schema::{fields, hold, text};
    use std::path::Path;

    /// `SLOWSTART_BLESS=1` writes the file.
    #[test]
    fn the_schema_is_that_of_the_type() {
        let order = [&["key", "axis"], fields::<Row>()].concat();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/row.json");
        hold(&text::<SweepRow>("sweep-row", &order), &file);
    }
}
