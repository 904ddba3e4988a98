//! The built-in paths.

use std::sync::LazyLock;

use super::PathSpec;

/// A path that comes with the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// What to call it.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: String,
    /// Where its numbers come from.
    pub sources: Vec<String>,
    /// The text of its TOML file.
    pub text: &'static str,
}

macro_rules! texts {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../../../paths/", $name, ".toml")))),*]
    };
}
/// The names of the built-in paths, and their files.
pub(super) const TEXTS: &[(&str, &str)] = texts!(
    "geo",
    "leo",
    "lte",
    "wifi-strong",
    "wifi-weak",
    "geo-144",
    "leo-100",
    "lte-75",
    "wifi-strong-200",
    "wifi-weak-80",
    "fiber",
    "dsl",
    "cable",
    "l4s-cable",
    "transatlantic",
    "datacenter",
    "interface",
    "lost-synack",
    "granted",
    "policed",
    "cable-boost",
    "geo-pep",
    "5g",
    "5g-55",
    "geo-recorded",
    "geo-recorded-fixed",
    "leo-droptail",
    "leo-100-droptail"
);

impl PathSpec {
    /// Returns the built-in paths.
    pub fn builtins() -> &'static [Builtin] {
        static LIST: LazyLock<Vec<Builtin>> = LazyLock::new(|| {
            let each = |&(name, text)| {
                let spec = PathSpec::load(name, None).expect("a test loads every built-in path");
                Builtin { name, about: spec.about, sources: spec.sources, text }
            };
            TEXTS.iter().map(each).collect()
        });
        &LIST
    }
}
