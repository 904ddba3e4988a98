//! Rows for programs: JSON lines or CSV on standard output, Parquet in a file.

use crate::folder::refuse_existing;
use crate::output::print;
use crate::printable::printed;
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use slowstart_study::columns::{Cell, Column, columns};
use std::io::{self, Stdout};
use std::path::{Path, PathBuf};

/// Which rows a command writes beside its table.
#[derive(Args, Clone, Default)]
pub(crate) struct RowArgs {
    /// Print rows as JSON lines on standard output, and nothing else there
    #[arg(long, help_heading = "Output", conflicts_with = "csv")]
    pub json: bool,
    /// Print rows as CSV on standard output, and nothing else there (docs/reference/rows.md lists the
    /// columns)
    #[arg(long, help_heading = "Output")]
    pub csv: bool,
    /// Write rows to this file, which must not exist, as Parquet, compressed by zstd
    #[arg(long, help_heading = "Output", value_name = "FILE")]
    pub parquet: Option<PathBuf>,
}

/// Where rows go. Rows that are not asked for cost nothing.
pub(crate) struct RowWriter {
    json: bool,
    csv: Option<(Vec<Column>, csv::Writer<Stdout>)>,
    parquet: Option<(PathBuf, parquet::File)>,
}

impl RowArgs {
    /// True if standard output is for rows.
    pub(crate) fn printed(&self) -> bool {
        self.json || self.csv
    }

    /// True if rows are for a program.
    pub(crate) fn written(&self) -> bool {
        self.printed() || self.parquet.is_some()
    }

    /// Opens the outputs for rows of this JSON Schema; CSV and Parquet begin with the names of the columns.
    pub(crate) fn writer(&self, schema: &str) -> Result<RowWriter> {
        let csv = if self.csv {
            let columns = columns(schema);
            let mut out = csv::Writer::from_writer(io::stdout());
            out.write_record(columns.iter().map(|c| &c.name))?;
            Some((columns, out))
        } else {
            None
        };
        let parquet = match &self.parquet {
            Some(file) => {
                refuse_existing(file).context("--parquet")?;
                let out = parquet::create(file, schema).with_context(|| parquet_name(file))?;
                Some((file.clone(), out))
            }
            None => None,
        };
        Ok(RowWriter { json: self.json, csv, parquet })
    }
}

impl RowWriter {
    /// Writes a row to each output.
    pub(crate) fn write(&mut self, row: &impl Serialize) -> Result<()> {
        if self.json {
            print(&serde_json::to_string(row)?)?;
        }
        if self.csv.is_none() && self.parquet.is_none() {
            return Ok(());
        }
        let value = serde_json::to_value(row)?;
        if let Some((columns, out)) = &mut self.csv {
            out.write_record(columns.iter().map(|c| csv_cell(&c.cell(&value))))?;
            // A reader of a pipe sees each row when it is there, as with --json.
            out.flush()?;
        }
        if let Some((name, file)) = &mut self.parquet {
            parquet::write(file, &value).with_context(|| parquet_name(name))?;
        }
        Ok(())
    }

    /// Completes the outputs.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let Some((name, file)) = self.parquet.take() else { return Ok(()) };
        parquet::finish(file).with_context(|| parquet_name(&name))
    }
}

fn parquet_name(file: &Path) -> String {
    format!("--parquet {}", file.display())
}

/// A cell of CSV. Where a spreadsheet would compute a text, an apostrophe before it has it shown.
pub(crate) fn csv_cell(cell: &Cell) -> String {
    let text = printed(&cell.text(), false).into_owned();
    let computed =
        matches!(cell, Cell::Text(t) if t.len() > 1 && t.starts_with(['=', '+', '-', '@', '\t', '\r']));
    if computed { format!("'{text}") } else { text }
}

#[cfg(feature = "sweep")]
mod parquet {
    use anyhow::Result;
    use serde_json::Value;
    use slowstart_study::columns::columns;
    use slowstart_sweep::table::ParquetFile;
    use std::path::Path;

    pub(super) type File = ParquetFile;

    pub(super) fn create(file: &Path, schema: &str) -> Result<File> {
        Ok(ParquetFile::create(file, columns(schema))?)
    }

    pub(super) fn write(file: &mut File, row: &Value) -> Result<()> {
        Ok(file.write(row)?)
    }

    pub(super) fn finish(file: File) -> Result<()> {
        Ok(file.finish()?)
    }
}

#[cfg(not(feature = "sweep"))]
mod parquet {
    use anyhow::{Result, bail};
    use serde_json::Value;
    use std::path::Path;

    pub(super) enum File {}

    pub(super) fn create(_: &Path, _: &str) -> Result<File> {
        bail!(
            "built without Parquet; build with `cargo build --release -p slowstart-cli --features sweep`, or use --csv"
        )
    }

    pub(super) fn write(file: &mut File, _: &Value) -> Result<()> {
        match *file {}
    }

    #[expect(clippy::needless_pass_by_value, reason = "the other module's function takes the file")]
    pub(super) fn finish(file: File) -> Result<()> {
        match file {}
    }
}
