//! Errors of paths: each message states the place, what was found and what was expected.

use thiserror::Error;

/// Why a path could not be loaded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// A file that cannot be read.
    #[error("{file}: {why}, expected {expected}")]
    File {
        /// The file, as it was looked for.
        file: String,
        /// The error of the system, or what is wrong with the file as a whole.
        why: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A line of a trace, or of a TOML file, that does not parse.
    #[error("{file}: line {line}: found {found:?}, expected {expected}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Its text.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A value that its key does not accept.
    #[error("{source_name}: {key}: found {found:?}, expected {expected}")]
    Value {
        /// The file, or "path" if the path was given in line.
        source_name: String,
        /// The key.
        key: String,
        /// The value.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The path to a proxy that is wrong.
    #[error("{source_name}: proxy: {why}")]
    Proxy {
        /// The file, or "path" if the path was given in line.
        source_name: String,
        /// What is wrong with it.
        why: Box<PathError>,
    },
    /// A missing key that others need.
    #[error("{source_name}: {key}: found nothing, expected {expected}")]
    Missing {
        /// The file, or "path" if the path was given in line.
        source_name: String,
        /// The key.
        key: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// A key that no path has.
    #[error("{source_name}: found unknown key {key:?}{hint}, expected one of {allowed}")]
    UnknownKey {
        /// The file, or "path" if the path was given in line.
        source_name: String,
        /// The key.
        key: String,
        /// ` (did you mean "rate"?)`, or nothing.
        hint: String,
        /// All keys there are.
        allowed: String,
    },
    /// A name that is not that of a built-in path.
    #[error(
        "path: found {found:?}{hint}, expected one of {names}, a file such as my.toml, or a path in line such as \
         \"rate=100Mbit rtt=40ms queue=1bdp\""
    )]
    UnknownName {
        /// The name.
        found: String,
        /// ` (did you mean "geo"?)`, or nothing.
        hint: String,
        /// All names there are.
        names: String,
    },
}
