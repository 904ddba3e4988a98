//! JSON Schemas of what is written, from its types and their doc comments. Tests hold the files of the
//! repository to them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::{Deserializer, Error as _, Visitor, value};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::{PrettyFormatter, Serializer as Json};
use serde_json::{Map, Value};
use std::path::Path;

/// Returns the names of the fields of `T` in their order, as JSON has them; none if it is no structure, or
/// has flattened fields.
pub fn fields<T: for<'de> serde::Deserialize<'de>>() -> &'static [&'static str] {
    struct Asked<'a>(&'a mut &'static [&'static str]);
    impl<'de> Deserializer<'de> for Asked<'_> {
        type Error = value::Error;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(Self::Error::custom("no structure"))
        }
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = fields;
            Err(Self::Error::custom("the names are enough"))
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut names: &'static [&'static str] = &[];
    // It fails in any case.
    let _ = T::deserialize(Asked(&mut names));
    names
}

/// Returns the JSON Schema (draft 2020-12) of what is written for a `T`, as the text of a file. Every type
/// stands where it is used. Properties are in the order of `order`; then those that are always there in the
/// order of their fields; then the others.
///
/// # Panics
/// If a schema has no JSON form, which is a defect.
pub fn text<T: JsonSchema>(title: &str, order: &[&str]) -> String {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema["title"] = title.into();
    let mut out = Vec::new();
    let mut json = Json::with_formatter(&mut out, PrettyFormatter::with_indent(b" "));
    Ordered { schema: &schema, order }.serialize(&mut json).expect("JSON");
    String::from_utf8(out).expect("JSON is text") + "\n"
}

/// Fails if the schema is not the text of its file. With `SLOWSTART_BLESS` set, writes the file.
///
/// # Panics
/// If it differs, or the file cannot be read or written.
pub fn hold(schema: &str, file: &Path) {
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(file, schema).expect("the checkout is writable");
    }
    let there = slowstart_files::read_text(file, slowstart_files::MOST_TEXT).expect("a schema");
    assert!(there == schema, "{} is not what its types say (make bless)", file.display());
}

/// Brings a schema into the form of the files: without formats, defaults and the marks of Markdown; objects
/// are closed; a choice of simple types is one type.
fn tidy(schema: &mut Value) {
    if let Value::Array(all) = schema {
        all.iter_mut().for_each(tidy);
    }
    let Value::Object(o) = schema else { return };
    for key in ["format", "default", "title"] {
        o.remove(key);
    }
    if let Some(Value::Object(properties)) = o.get_mut("properties") {
        properties.values_mut().for_each(tidy);
        o.insert("additionalProperties".into(), false.into());
    }
    for key in ["items", "additionalProperties", "anyOf", "oneOf"] {
        o.get_mut(key).map(tidy);
    }
    if let Some(Value::String(text)) = o.get_mut("description") {
        *text = text.replace('`', "").replace('\n', " ");
    }
    for key in ["anyOf", "oneOf"] {
        let simple = o.get(key).and_then(Value::as_array).and_then(|all| one_of(all));
        if let Some(simple) = simple {
            o.remove(key);
            o.extend(simple);
        }
    }
}

/// One schema for a choice of simple ones; `None` if one of them is not simple.
fn one_of(all: &[Value]) -> Option<Map<String, Value>> {
    let (mut types, mut values) = (Vec::new(), Vec::new());
    for one in all {
        if one.get("properties").is_some() || one.get("items").is_some() {
            return None;
        }
        match one.get("type")? {
            Value::Array(several) => types.extend(several.iter().cloned()),
            one => types.push(one.clone()),
        }
        match (one.get("const"), one.get("enum")) {
            (Some(value), _) => values.push(value.clone()),
            (None, Some(Value::Array(several))) => values.extend(several.iter().cloned()),
            _ if one["type"] == "null" => values.push(Value::Null),
            _ => {}
        }
    }
    types.dedup();
    let mut simple = Map::new();
    simple.insert("type".into(), if types.len() == 1 { types.remove(0) } else { types.into() });
    if values.iter().any(|v| !v.is_null()) {
        simple.insert("enum".into(), values.into());
    }
    Some(simple)
}

/// A schema with its keys in an order for readers.
struct Ordered<'a> {
    schema: &'a Value,
    /// That of the properties.
    order: &'a [&'a str],
}

/// The order of the keys of a schema; others follow.
const KEYS: [&str; 7] =
    ["$schema", "title", "description", "type", "additionalProperties", "required", "properties"];

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Value::Object(o) = self.schema else { return self.schema.serialize(s) };
        let keys = KEYS.into_iter().filter(|k| o.contains_key(*k));
        // Sorted, as the order of a map depends on a feature that another crate may turn on
        // (`preserve_order`).
        let mut others: Vec<&str> = o.keys().map(String::as_str).filter(|k| !KEYS.contains(k)).collect();
        others.sort_unstable();
        let mut map = s.serialize_map(None)?;
        for key in keys.chain(others) {
            let value = &o[key];
            match (key, value) {
                ("properties", Value::Object(all)) => {
                    let required = o.get("required").and_then(Value::as_array).into_iter().flatten();
                    let names = self.order.iter().copied().chain(required.filter_map(Value::as_str));
                    map.serialize_entry(key, &Properties { all, names: names.collect() })?;
                }
                ("required", Value::Array(all)) => {
                    let place = |name: &Value| self.order.iter().position(|n| name == n);
                    let mut all = all.clone();
                    all.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
                    map.serialize_entry(key, &all)?;
                }
                _ => map.serialize_entry(key, &Self { schema: value, order: &[] })?,
            }
        }
        map.end()
    }
}

/// Properties, those of `names` first.
struct Properties<'a> {
    all: &'a Map<String, Value>,
    names: Vec<&'a str>,
}

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut rest: Vec<&str> = self.all.keys().map(String::as_str).collect();
        rest.sort_unstable();
        let mut names: Vec<&str> = Vec::new();
        for name in self.names.iter().copied().chain(rest) {
            if self.all.contains_key(name) && !names.contains(&name) {
                names.push(name);
            }
        }
        s.collect_map(names.into_iter().map(|n| (n, Ordered { schema: &self.all[n], order: &[] })))
    }
}
