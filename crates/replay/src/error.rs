//! Errors of a file: which file, where in it, what was found and what was expected.

use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// A location in a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// The file as a whole.
    File,
    /// A byte offset from 0, in the decompressed data.
    Offset(u64),
    /// A line number, from 1.
    Line(u64),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Offset(o) => write!(f, "offset {o}: "),
            Self::Line(l) => write!(f, "line {l}: "),
        }
    }
}

/// An error of a parser, without the file name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{place}{why}")]
pub struct InputError {
    /// Location of the error.
    pub place: Location,
    /// What was found and what was expected.
    pub why: String,
}

impl InputError {
    /// An error at a byte offset.
    pub fn at(offset: u64, why: impl Into<String>) -> Self {
        Self { place: Location::Offset(offset), why: why.into() }
    }
    /// An error on a line.
    pub fn line(line: u64, why: impl Into<String>) -> Self {
        Self { place: Location::Line(line), why: why.into() }
    }
    /// An error of the whole file.
    pub fn whole(why: impl Into<String>) -> Self {
        Self { place: Location::File, why: why.into() }
    }
}

/// A file that cannot be analysed.
#[derive(Debug, Error)]
#[error("{}: {why}", file.display())]
pub struct ReplayError {
    /// The file that cannot be read.
    pub file: PathBuf,
    /// Why it cannot be read.
    pub why: InputError,
}
