//! The rows of a result: of a folder, of a folder of folders, or of a file.

use anyhow::{Context, Result, bail};
use slowstart_replay::limits::LONGEST;
use slowstart_study::record::Row;
use slowstart_study::summary::label;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The most rows of a result: they are held, some kilobytes each.
const MOST_ROWS: usize = 200_000;
/// The rows of a study in its folder.
const RESULTS: &str = "results.jsonl";

/// The files with the rows of a result: `compare --out` writes a folder in the folder for each of several
/// paths.
fn files(from: &Path) -> Result<Vec<PathBuf>> {
    if !from.is_dir() {
        return Ok(vec![from.to_path_buf()]);
    }
    let own = from.join(RESULTS);
    if own.exists() {
        return Ok(vec![own]);
    }
    let shown = from.display();
    let mut all = Vec::new();
    for entry in std::fs::read_dir(from).with_context(|| shown.to_string())? {
        let file = entry.with_context(|| shown.to_string())?.path().join(RESULTS);
        all.extend(file.exists().then_some(file));
    }
    if all.is_empty() {
        bail!(
            "{shown}: found no {RESULTS} in it or in the folders in it, expected a folder that --out wrote"
        );
    }
    all.sort();
    Ok(all)
}

/// Reads the rows of a result.
pub(super) fn rows(from: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for file in files(from)? {
        let name = file.display().to_string();
        let mut reader = BufReader::new(File::open(&file).with_context(|| name.clone())?);
        let mut line = Vec::new();
        for n in 1.. {
            let at = || format!("{name}: line {n}");
            line.clear();
            if reader.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line).with_context(at)? == 0 {
                break;
            }
            let row: Row = serde_json::from_slice(&line).with_context(|| {
                format!("{}: expected a row of slowstart of at most {LONGEST} bytes", at())
            })?;
            rows.push(row);
            if rows.len() > MOST_ROWS {
                bail!("{name}: found more than {MOST_ROWS} rows; `slowstart sweep` compares that many");
            }
        }
    }
    if rows.is_empty() {
        bail!("{}: found no rows", from.display());
    }
    once(&rows).with_context(|| from.display().to_string())?;
    Ok(rows)
}

/// Fails if a run is there twice: two results are never taken together silently.
fn once(rows: &[Row]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for row in rows {
        let label = label(row);
        if !seen.insert((&row.path, label.clone(), row.run, row.flow)) {
            bail!("found run {} of {label} over {} twice, expected one result", row.run, row.path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::row;

    #[test]
    fn a_run_is_there_once() {
        let (a, b) = (row("search", Some(7.0)), Row { run: 1, ..row("search", Some(7.0)) });
        assert!(once(&[a.clone(), b]).is_ok());
        let why = once(&[a.clone(), a]).expect_err("twice").to_string();
        assert_eq!(why, "found run 0 of search over geo twice, expected one result");
    }
}
