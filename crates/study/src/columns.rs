//! Flat columns of rows, for CSV and Parquet, from the JSON Schema of the rows.
//!
//! The schema is the only list of fields: an object with named properties gives a column for each of them,
//! named `object_property`; a list, and an object with free keys, is one column that holds JSON.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// What a column holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers from zero on.
    Integer,
    /// Numbers, with a point or without.
    Number,
    /// True or false, as `true` and `false`.
    Boolean,
    /// Text, as it is in the row.
    Text,
    /// A list or an object with free keys, as JSON.
    Json,
}

impl Kind {
    /// The word in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Text => "text",
            Self::Json => "JSON",
        }
    }
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Absent: null in the row, or not there.
    Null,
    /// A value of [`Kind::Integer`].
    Integer(u64),
    /// A value of [`Kind::Number`].
    Number(f64),
    /// A value of [`Kind::Boolean`].
    Boolean(bool),
    /// Of [`Kind::Text`] or [`Kind::Json`].
    Text(String),
}

impl Cell {
    /// The value as text, as CSV has it; nothing for an absent one. A number has the fewest digits that
    /// identify it.
    pub fn text(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Integer(n) => n.to_string(),
            Self::Number(x) => Value::from(*x).to_string(),
            Self::Boolean(b) => b.to_string(),
            Self::Text(t) => t.clone(),
        }
    }
}

/// A column of CSV and Parquet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: the names of the properties on the way to it, joined by `_`.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// What it means, from the schema.
    pub about: String,
    /// The texts that it can have, if the schema lists them.
    pub values: Vec<String>,
    /// The properties on the way to it.
    path: Vec<String>,
    /// True if the object that it is a property of may be null.
    of_optional: bool,
}

impl Column {
    /// A column of a property of the row itself.
    pub fn new(name: &str, kind: Kind, about: &str) -> Self {
        Self {
            name: name.to_string(),
            kind,
            about: about.to_string(),
            values: Vec::new(),
            path: vec![name.to_string()],
            of_optional: false,
        }
    }

    /// A column of a property of the object `object` of the row.
    pub fn within(object: &str, name: &str, kind: Kind, about: &str) -> Self {
        let path = vec![object.to_string(), name.to_string()];
        let (name, about) = (path.join("_"), about.to_string());
        Self { name, kind, about, values: Vec::new(), path, of_optional: true }
    }

    /// The value of this column in a row; null if it is absent or of another kind.
    pub fn cell(&self, row: &Value) -> Cell {
        let value = self.path.iter().try_fold(row, |v, key| v.get(key)).unwrap_or(&Value::Null);
        match (self.kind, value) {
            (_, Value::Null) => Cell::Null,
            (Kind::Integer, v) => v.as_u64().map_or(Cell::Null, Cell::Integer),
            (Kind::Number, v) => v.as_f64().map_or(Cell::Null, Cell::Number),
            (Kind::Boolean, v) => v.as_bool().map_or(Cell::Null, Cell::Boolean),
            (Kind::Text, Value::String(s)) => Cell::Text(s.clone()),
            (Kind::Text | Kind::Json, v) => {
                // Where another crate turns on `preserve_order` of serde_json, keys would be in the order of
                // the row.
                let mut v = v.clone();
                v.sort_all_objects();
                Cell::Text(v.to_string())
            }
        }
    }
}

/// The row whose columns `flat` has: the opposite of [`Column::cell`]. What is null in the row itself is absent,
/// and so is an object that may be null if none of its columns has a value.
///
/// # Errors
/// If a column of JSON holds none.
pub fn row(columns: &[Column], flat: &Map<String, Value>) -> Result<Value, serde_json::Error> {
    let there = |c: &&Column| flat.get(&c.name).is_some_and(|v| !v.is_null());
    let objects: BTreeSet<&str> = columns.iter().filter(there).map(|c| c.path[0].as_str()).collect();
    let mut row = Value::Object(Map::new());
    for column in columns {
        let value = match flat.get(&column.name) {
            None | Some(Value::Null) if column.path.len() == 1 => continue,
            None | Some(Value::Null) if column.of_optional && !objects.contains(column.path[0].as_str()) => {
                continue;
            }
            None => Value::Null,
            Some(Value::String(text)) if column.kind == Kind::Json => serde_json::from_str(text)?,
            Some(other) => other.clone(),
        };
        // Objects on the way are made where there are none.
        *column.path.iter().fold(&mut row, |at, name| &mut at[name.as_str()]) = value;
    }
    Ok(row)
}

/// The part of a JSON Schema that columns need.
#[derive(Default, Deserialize)]
struct Schema {
    #[serde(default, rename = "type")]
    types: Value,
    #[serde(default)]
    description: String,
    #[serde(default, rename = "enum")]
    values: Vec<Value>,
    #[serde(default)]
    properties: Properties,
}

/// Properties in the order in which they are written.
#[derive(Default)]
struct Properties(Vec<(String, Schema)>);

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Properties;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of schemas")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Properties(all))
            }
        }
        from.deserialize_map(InOrder)
    }
}

impl Schema {
    /// The kind that `type` names, if it is no object with properties.
    fn kind(&self) -> Kind {
        let types: Vec<&str> = match &self.types {
            Value::String(t) => vec![t],
            Value::Array(all) => all.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect(),
            _ => Vec::new(),
        };
        match types[..] {
            ["integer"] => Kind::Integer,
            ["number"] => Kind::Number,
            ["boolean"] => Kind::Boolean,
            ["string"] => Kind::Text,
            _ => Kind::Json,
        }
    }

    fn may_be_null(&self) -> bool {
        self.types.as_array().is_some_and(|all| all.iter().any(|t| t == "null"))
    }

    fn add(self, path: &[String], all: &mut Vec<Column>) {
        let of_optional = !path.is_empty() && self.may_be_null();
        for (name, schema) in self.properties.0 {
            let path = [path, &[name]].concat();
            if schema.properties.0.is_empty() {
                let (name, kind) = (path.join("_"), schema.kind());
                let values = schema.values.iter().filter_map(Value::as_str).map(str::to_string).collect();
                all.push(Column { name, kind, about: schema.description, values, path, of_optional });
            } else {
                schema.add(&path, all);
            }
        }
    }
}

/// The columns of the rows that `schema` describes: a JSON Schema of an object, in its order.
///
/// # Panics
/// If `schema` is not one; the schemas of this project are tested.
pub fn columns(schema: &str) -> Vec<Column> {
    let schema: Schema = serde_json::from_str(schema).expect("a JSON Schema");
    let mut all = Vec::new();
    schema.add(&[], &mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type": "object", "required": ["name"], "additionalProperties": false, "properties": {
        "name": {"type": "string", "description": "Its name."},
        "exit": {"type": ["object", "null"], "additionalProperties": false, "properties": {
            "time_s": {"type": "number", "minimum": 0}, "reason": {"type": "string", "enum": ["loss", "delay"]}}},
        "params": {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
        "runs": {"type": ["integer", "null"]}}}"#;

    #[test]
    fn objects_become_columns_and_free_keys_become_json() {
        let columns = columns(SCHEMA);
        let kinds: Vec<_> = columns.iter().map(|c| (c.name.as_str(), c.kind)).collect();
        let expected = [
            ("name", Kind::Text),
            ("exit_time_s", Kind::Number),
            ("exit_reason", Kind::Text),
            ("params", Kind::Json),
            ("runs", Kind::Integer),
        ];
        assert_eq!(kinds, expected);
        let row = serde_json::json!({"name": "a", "exit": {"time_s": 0.1, "reason": "loss"}, "params": {"k": 1, "a": {"z": 1, "b": 2}}});
        let cell = |name: &str| columns.iter().find(|c| c.name == name).expect("a column").cell(&row);
        assert_eq!(cell("exit_time_s"), Cell::Number(0.1));
        assert_eq!(cell("params"), Cell::Text(r#"{"a":{"b":2,"z":1},"k":1}"#.into()));
        assert_eq!(cell("runs"), Cell::Null);
        let whole = |flat: Value| super::row(&columns, flat.as_object().expect("an object")).expect("JSON");
        let flat =
            serde_json::json!({"name": "a", "exit_time_s": 0.1, "exit_reason": null, "params": r#"{"k":1}"#});
        let exit = serde_json::json!({"time_s": 0.1, "reason": null});
        let row = serde_json::json!({"name": "a", "exit": exit, "params": {"k": 1}});
        assert_eq!(whole(flat), row);
        let none = serde_json::json!({"name": "a", "params": "{}"});
        assert_eq!(whole(none), serde_json::json!({"name": "a", "params": {}}));
    }
}
