//! Startups and avoidances by name, with parameters: `hystart:detect=train`.
#![allow(dead_code, reason = "each test takes what it needs")]

use slowstart::avoidance::{self, AnyAvoidance};
use slowstart::registry::{self, Algorithm};

/// The name, and each parameter with its value.
fn parts(text: &str) -> (&str, impl Iterator<Item = (&str, &str)>) {
    let (name, params) = text.split_once(':').unwrap_or((text, ""));
    let params = params.split(',').filter(|p| !p.is_empty());
    (name, params.map(|p| p.split_once('=').unwrap_or((p, ""))))
}

/// A startup, or a controller of its own.
pub(crate) fn startup(text: &str) -> Algorithm {
    let (name, params) = parts(text);
    let mut found = registry::named(name).unwrap_or_else(|| panic!("no startup {name}")).algorithm;
    for (key, value) in params {
        found.set(key, value).unwrap_or_else(|why| panic!("{text}: {why:?}"));
    }
    found
}

/// An avoidance.
pub(crate) fn avoidance(text: &str) -> AnyAvoidance {
    let (name, params) = parts(text);
    let entry = avoidance::REGISTRY.iter().find(|e| e.name == name);
    let mut found = (entry.unwrap_or_else(|| panic!("no avoidance {name}")).make)();
    for (key, value) in params {
        found.set(key, value).unwrap_or_else(|why| panic!("{text}: {why:?}"));
    }
    found
}
