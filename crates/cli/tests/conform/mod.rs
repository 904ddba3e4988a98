//! Holds what was written to a JSON Schema.

use serde_json::Value;
use std::collections::BTreeSet;

/// Each line conforms; returns the top-level keys that occur.
pub(crate) fn conform(lines: &str, schema: &str) -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(schema).expect("a schema in JSON");
    jsonschema::meta::validate(&schema).expect("a JSON Schema");
    let validator = jsonschema::validator_for(&schema).expect("a JSON Schema");
    let mut keys = BTreeSet::new();
    for line in lines.lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let wrong: Vec<String> =
            validator.iter_errors(&row).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{wrong:#?}\n{line}");
        keys.extend(row.as_object().expect("an object").keys().cloned());
    }
    keys
}
