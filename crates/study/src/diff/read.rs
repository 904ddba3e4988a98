//! The rows of a result: of a folder, of a folder of folders, or of a file.

use crate::field;
use crate::record::{ROW_SCHEMA, Row};
use crate::summary::label;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The longest line of a file of rows, bytes.
const LONGEST: usize = 1 << 20;
/// The most rows of a result: they are held, some kilobytes each.
const MOST_ROWS: usize = 100_000;
/// The rows of a study in its folder.
const RESULTS: &str = "results.jsonl";

/// Why the rows of a result cannot be read.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ReadError(String);

/// An error at a place.
fn at(place: impl Display, why: impl Display) -> ReadError {
    ReadError(format!("{place}: {why}"))
}

/// The files with the rows of a result: `compare --out` writes a folder in the folder for each of several
/// paths.
fn files(from: &Path) -> Result<Vec<PathBuf>, ReadError> {
    if !from.is_dir() {
        return Ok(vec![from.to_path_buf()]);
    }
    let own = from.join(RESULTS);
    if own.exists() {
        return Ok(vec![own]);
    }
    let shown = from.display().to_string();
    let mut all = Vec::new();
    for entry in std::fs::read_dir(from).map_err(|e| at(&shown, e))? {
        let file = entry.map_err(|e| at(&shown, e))?.path().join(RESULTS);
        all.extend(file.exists().then_some(file));
    }
    if all.is_empty() {
        return Err(at(
            shown,
            format!("found no {RESULTS} in it or in the folders in it, expected a folder that --out wrote"),
        ));
    }
    all.sort();
    Ok(all)
}

/// Reads the rows of a result: of a folder that `compare --out` wrote, or of a file of rows.
///
/// # Errors
/// If a file cannot be read, a line is no row, or a run is there twice.
pub fn rows(from: &Path) -> Result<Vec<Row>, ReadError> {
    let mut all = Vec::new();
    for file in files(from)? {
        let name = file.display().to_string();
        let mut reader = BufReader::new(File::open(&file).map_err(|e| at(&name, e))?);
        let mut line = Vec::new();
        for n in 1.. {
            let place = || format!("{name}: line {n}");
            let read = slowstart_files::line(&mut reader, LONGEST as u64, &mut line);
            if read.map_err(|e| at(place(), e))? == 0 {
                break;
            }
            if line.len() == LONGEST && !line.ends_with(b"\n") {
                return Err(at(place(), format!("found a longer line, expected at most {LONGEST} bytes")));
            }
            all.push(field::read(&line, "{}").and_then(row).map_err(|e| at(place(), e))?);
            if all.len() > MOST_ROWS {
                return Err(at(
                    &name,
                    format!("found more than {MOST_ROWS} rows, expected at most that many"),
                ));
            }
        }
    }
    checked(&from.display().to_string(), all)
}

/// Checks the rows of a result that was read elsewhere, under its name.
///
/// # Errors
/// If there are none, or a run is there twice.
pub fn checked(name: &str, rows: Vec<Row>) -> Result<Vec<Row>, ReadError> {
    if rows.is_empty() {
        return Err(at(name, "found no rows"));
    }
    once(&rows).map_err(|e| at(name, e))?;
    Ok(rows)
}

/// The row of a line; that of a sweep has its axes besides.
fn row(mut line: Value) -> Result<Row, String> {
    let axes = line.get_mut("axis").map(Value::take);
    let row = field::of_value(&line, ROW_SCHEMA)?;
    Ok(match axes {
        Some(Value::Object(axes)) => of_sweep(row, &axes),
        _ => row,
    })
}

/// The row of a run of a sweep with these axes: what they set that its path does not show becomes part of the
/// path's name.
pub fn of_sweep(mut row: Row, axes: &Map<String, Value>) -> Row {
    for (axis, value) in axes {
        let shown = |key: &str| row.path.split(' ').any(|part| part.starts_with(&format!("{key}=")));
        // The label of a startup has its parameters.
        if axis != "path" && !axis.contains(':') && !shown(axis) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            row.path.extend([" ", axis, "=", &value]);
        }
    }
    row
}

/// Fails if a run is there twice: two results are never taken together silently.
fn once(rows: &[Row]) -> Result<(), ReadError> {
    let mut seen = BTreeSet::new();
    for row in rows {
        let label = label(row);
        if !seen.insert((&row.path, label.clone(), row.run, row.flow)) {
            return Err(ReadError(format!(
                "found run {} of {label} over {} twice, expected one result",
                row.run, row.path
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_run_is_there_once() {
        let two = sample::rows("search", &[7.0, 7.0]);
        assert!(once(&two).is_ok());
        let why = once(&[two[0].clone(), two[0].clone()]).expect_err("twice").to_string();
        assert_eq!(why, "found run 0 of search over geo twice, expected one result");
    }
}
