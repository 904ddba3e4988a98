//! Rows as Arrow columns and Parquet files.

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::Value;
use slowstart_files::WholeFile;
use slowstart_study::columns::{Cell, Column, Kind};
use std::io;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Rows of a batch of [`ParquetFile`], so that its memory does not grow with the file.
const BATCH: usize = 4096;
/// Level of zstd: the library's default.
const LEVEL: i32 = 3;

/// Why a table could not be written or read.
#[derive(Debug, Error)]
pub enum TableError {
    /// Arrow refuses the columns.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// Parquet cannot be read or written.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// From the file system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The builder of a column.
enum Builder {
    Integer(UInt64Builder),
    Number(Float64Builder),
    Boolean(BooleanBuilder),
    Text(StringBuilder),
}

impl Builder {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integer(UInt64Builder::new()),
            Kind::Number => Self::Number(Float64Builder::new()),
            Kind::Boolean => Self::Boolean(BooleanBuilder::new()),
            Kind::Text | Kind::Json => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends a cell; one of another kind counts as absent.
    fn append(&mut self, cell: &Cell) {
        match (self, cell) {
            (Self::Integer(b), Cell::Integer(n)) => b.append_value(*n),
            (Self::Integer(b), _) => b.append_null(),
            (Self::Number(b), Cell::Number(x)) => b.append_value(*x),
            (Self::Number(b), Cell::Integer(n)) => b.append_value(*n as f64),
            (Self::Number(b), _) => b.append_null(),
            (Self::Boolean(b), Cell::Boolean(x)) => b.append_value(*x),
            (Self::Boolean(b), _) => b.append_null(),
            (Self::Text(b), Cell::Text(t)) => b.append_value(t),
            (Self::Text(b), _) => b.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Integer(b) => Arc::new(b.finish()),
            Self::Number(b) => Arc::new(b.finish()),
            Self::Boolean(b) => Arc::new(b.finish()),
            Self::Text(b) => Arc::new(b.finish()),
        }
    }
}

/// The Arrow type of a column.
pub const fn arrow_type(kind: Kind) -> DataType {
    match kind {
        Kind::Integer => DataType::UInt64,
        Kind::Number => DataType::Float64,
        Kind::Boolean => DataType::Boolean,
        Kind::Text | Kind::Json => DataType::Utf8,
    }
}

/// Builds record batches from rows as JSON values. Each column may be null.
pub struct TableBuilder {
    columns: Vec<Column>,
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
}

impl TableBuilder {
    /// A builder of these columns.
    pub fn new(columns: Vec<Column>) -> Self {
        let fields: Vec<Field> =
            columns.iter().map(|c| Field::new(&c.name, arrow_type(c.kind), true)).collect();
        let builders = columns.iter().map(|c| Builder::of(c.kind)).collect();
        Self { schema: Arc::new(Schema::new(fields)), columns, builders, rows: 0 }
    }

    /// The Arrow schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Rows since the last batch.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// True if there is no row since the last batch.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Appends a row; a value of another kind than its column becomes null.
    pub fn push(&mut self, row: &Value) {
        for (column, builder) in self.columns.iter().zip(&mut self.builders) {
            builder.append(&column.cell(row));
        }
        self.rows += 1;
    }

    /// The rows since the last batch as a batch.
    ///
    /// # Errors
    /// None that is known; Arrow checks the lengths of the columns.
    pub fn batch(&mut self) -> Result<RecordBatch, TableError> {
        self.rows = 0;
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        Ok(RecordBatch::try_new(self.schema(), arrays)?)
    }
}

/// How Parquet files are written: zstd, and nothing in them that depends on the time or the machine.
pub(crate) fn properties() -> WriterProperties {
    let level = ZstdLevel::try_new(LEVEL).unwrap_or_default();
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(format!("slowstart {}", env!("CARGO_PKG_VERSION")))
        .build()
}

/// A Parquet file that is written row by row. It has its name only when it is complete.
pub struct ParquetFile {
    writer: ArrowWriter<WholeFile>,
    builder: TableBuilder,
}

impl ParquetFile {
    /// Creates the file beside its final name.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(file: &Path, columns: Vec<Column>) -> Result<Self, TableError> {
        let builder = TableBuilder::new(columns);
        let out = WholeFile::beside(file)?;
        let writer = ArrowWriter::try_new(out, builder.schema(), Some(properties()))?;
        Ok(Self { writer, builder })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, row: &Value) -> Result<(), TableError> {
        self.builder.push(row);
        if self.builder.len() == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let batch = self.builder.batch()?;
        Ok(self.writer.write(&batch)?)
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<(), TableError> {
        self.flush()?;
        Ok(self.writer.into_inner()?.finish()?)
    }
}
