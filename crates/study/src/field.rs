//! Rows that are read: of one that is not as its schema says, the field, what is there, and what is expected.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The longest text of what was found, in characters.
const SHOWN: usize = 60;

/// Reads a line of JSON as a row that has a JSON Schema.
///
/// # Errors
/// It is no such row. The text names the field, what was found and what was expected.
pub fn read<T: DeserializeOwned>(line: &[u8], schema: &str) -> Result<T, String> {
    let value: Value = serde_json::from_slice(line).map_err(|e| {
        if e.is_eof() {
            return "found the beginning of a row, expected a whole one".to_string();
        }
        format!("found no JSON from column {} on, expected a row of slowstart", e.column())
    })?;
    of_value(&value, schema)
}

/// Reads a row from a value.
///
/// # Errors
/// Those of [`read`].
pub fn of_value<T: DeserializeOwned>(value: &Value, schema: &str) -> Result<T, String> {
    T::deserialize(value).map_err(|e| {
        let schema = serde_json::from_str(schema).unwrap_or_default();
        // A key that a schema asks for may be missing without that being the reason.
        let is_missing = e.to_string().starts_with("missing field");
        let absent = || missing(&schema, value, "").filter(|_| is_missing);
        fault(&schema, value, "").or_else(absent).unwrap_or_else(|| {
            "found a number out of range, expected a row as slowstart writes it".to_string()
        })
    })
}

/// The first value that is not as the schema says.
fn fault(schema: &Value, value: &Value, name: &str) -> Option<String> {
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64() && schema["minimum"].is_null(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let kinds = kinds(schema);
    let listed = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    if !kinds.is_empty() && !kinds.iter().any(|k| is(k)) || !listed {
        let shown: String = value.to_string().chars().take(SHOWN).collect();
        let place = if name.is_empty() { String::new() } else { format!("{name}: ") };
        return Some(format!("{place}found {shown}, expected {}", expected(schema)));
    }
    if let Some(all) = value.as_array() {
        let of = |(i, v): (usize, &Value)| fault(&schema["items"], v, &format!("{name}[{i}]"));
        return all.iter().enumerate().find_map(of);
    }
    value.as_object()?.iter().find_map(|(key, v)| {
        let own = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
        fault(own, v, &within(name, key))
    })
}

/// The first field that is not there; those of the row itself before those of its objects.
fn missing(schema: &Value, value: &Value, name: &str) -> Option<String> {
    let object = value.as_object()?;
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let own = required.find(|key| !object.contains_key(*key)).map(|key| {
        format!("{}: found nothing, expected {}", within(name, key), expected(&schema["properties"][key]))
    });
    own.or_else(|| {
        object.iter().find_map(|(key, v)| missing(&schema["properties"][key], v, &within(name, key)))
    })
}

/// The name of a field of an object.
fn within(object: &str, key: &str) -> String {
    if object.is_empty() { key.to_string() } else { format!("{object}.{key}") }
}

/// The types that a schema allows.
fn kinds(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

/// What a schema allows, in words.
fn expected(schema: &Value) -> String {
    if let Some(all) = schema["enum"].as_array() {
        let words = all.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_string));
        return format!("one of {}", words.collect::<Vec<_>>().join(", "));
    }
    let word = |kind: &str| match kind {
        "integer" if schema["minimum"].is_null() => "a whole number",
        "integer" => "a whole number from 0 on",
        "number" => "a number",
        "string" => "text",
        "boolean" => "true or false",
        "array" => "a list",
        "null" => "null",
        _ => "an object",
    };
    kinds(schema).into_iter().map(word).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ROW_SCHEMA, Row};
    use crate::sample::rows;

    fn said(change: impl Fn(&mut Value)) -> String {
        let mut row = serde_json::to_value(&rows("search", &[7.0])[0]).expect("plain data");
        change(&mut row);
        read::<Row>(row.to_string().as_bytes(), ROW_SCHEMA).expect_err("it is no row")
    }

    #[test]
    fn what_is_wrong_is_named_by_field_with_what_is_found_and_expected() {
        assert_eq!(
            said(|r| r["goodput_bps"] = "fast".into()),
            "goodput_bps: found \"fast\", expected a whole number from 0 on"
        );
        assert_eq!(said(|r| r["run"] = (-1).into()), "run: found -1, expected a whole number from 0 on");
        assert_eq!(said(|r| r["exit"]["time_s"] = Value::Null), "exit.time_s: found null, expected a number");
        assert_eq!(
            said(|r| r["class"] = "soon".into()),
            "class: found \"soon\", expected one of early, link-full, late, none"
        );
        assert_eq!(
            said(|r| r["completion_s"] = true.into()),
            "completion_s: found true, expected a number or null"
        );
        assert_eq!(
            said(|r| r["time_to_bytes_s"]["1000000"] = "late".into()),
            "time_to_bytes_s.1000000: found \"late\", expected a number or null"
        );
        assert_eq!(said(|r| r["caveats"] = vec![1].into()), "caveats[0]: found 1, expected text");
        assert_eq!(
            said(|r| {
                r.as_object_mut().expect("an object").remove("seed");
            }),
            "seed: found nothing, expected a whole number from 0 on"
        );
        assert!(said(|r| r["run"] = u64::MAX.into()).contains("out of range"));
        assert!(said(|r| r["seed"] = "x".repeat(1000).into()).len() < 120);
    }

    #[test]
    fn what_is_no_json_says_where_it_ends_to_be() {
        let of = |text: &str| read::<Row>(text.as_bytes(), ROW_SCHEMA).expect_err("it is no row");
        assert_eq!(of("{\"run\":"), "found the beginning of a row, expected a whole one");
        assert_eq!(of("{\"run\": x}"), "found no JSON from column 9 on, expected a row of slowstart");
        assert_eq!(of("[1]"), "found [1], expected an object");
    }
}
