//! Why a file could not be read: which, where in it, what was found and what was expected.

use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// A place in a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// The file as a whole.
    File,
    /// A byte, from 0, of what a compressed file contains.
    Offset(u64),
    /// A line, from 1.
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

/// What a parser refuses, before it is known in which file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{place}{why}")]
pub struct InputError {
    /// Where.
    pub place: Location,
    /// What was found and what was expected.
    pub why: String,
}

impl InputError {
    /// At a byte.
    pub fn at(offset: u64, why: impl Into<String>) -> Self {
        Self { place: Location::Offset(offset), why: why.into() }
    }
    /// At a line.
    pub fn line(line: u64, why: impl Into<String>) -> Self {
        Self { place: Location::Line(line), why: why.into() }
    }
    /// Of the whole file.
    pub fn whole(why: impl Into<String>) -> Self {
        Self { place: Location::File, why: why.into() }
    }
}

/// A file that cannot be replayed.
#[derive(Debug, Error)]
#[error("{}: {why}", file.display())]
pub struct ReplayError {
    /// Which.
    pub file: PathBuf,
    /// Why.
    pub why: InputError,
}
