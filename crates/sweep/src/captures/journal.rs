//! Journals: the rows of files whose chunk is not finished.

use super::FileRecord;
use crate::store::{Store, StoreError, lock_file, named, next_line};
use crate::table::{TableBuilder, TableError, properties};
use parquet::arrow::ArrowWriter;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slowstart_files::WholeFile;
use slowstart_replay::open;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_replay::transfer::{TRANSFER_SCHEMA, Transfer};
use slowstart_study::columns::{Column, Kind, columns};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Rows that are held before they are encoded, and rows of a row group: both bound memory.
const BATCH: usize = 64;
pub(super) const ROW_GROUP: usize = 16_384;
/// The begin of a line with the record of a file.
const RECORD: &str = "{\"read\":";

/// A line of a journal with the record of a file.
#[derive(Serialize, Deserialize)]
struct RecordLine {
    read: FileRecord,
}

/// A row of a journal.
#[derive(Serialize)]
struct RowLine<'a> {
    key: String,
    #[serde(flatten)]
    row: &'a Transfer,
}

/// The columns of a part.
fn part_columns() -> Vec<Column> {
    let about = "The key of the file and, after a hyphen, the number of the row in it.";
    let mut all = vec![Column::new("key", Kind::Text, about)];
    all.extend(columns(TRANSFER_SCHEMA));
    all
}

/// True if a chunk is finished.
pub(super) fn is_done(store: &Store, name: &str) -> bool {
    store.dir().join("parts").join(format!("{name}.parquet")).exists()
}

/// Whether a chunk can be read.
pub(super) enum Claim {
    /// By this process.
    Ours(Journal),
    /// Another process reads it.
    Theirs,
    /// It is finished.
    Done,
}

/// Takes a chunk, if no other process has it and it is not finished.
pub(super) fn claim(store: &Store, name: &str) -> Result<Claim, StoreError> {
    if is_done(store, name) {
        return Ok(Claim::Done);
    }
    let path = store.dir().join("journal").join(format!("{name}.jsonl"));
    let Some(journal) = Journal::lock(&path)? else { return Ok(Claim::Theirs) };
    // The process that had it may have finished it meanwhile.
    if is_done(store, name) {
        let _ = fs::remove_file(&path);
        return Ok(Claim::Done);
    }
    Ok(Claim::Ours(journal))
}

/// Reads the file at `path` and writes its lines of a journal: its rows, with `name` as that of the file, and
/// its record.
fn write_lines(
    path: &Path,
    name: &Path,
    key: String,
    options: &Options,
    out: &mut dyn Write,
) -> io::Result<()> {
    let bytes = fs::metadata(path).map_or(0, |m| m.len());
    let file = name.to_string_lossy().into_owned();
    let mut record = FileRecord { key, file, bytes, rows: 0, left_out: 0, error: None, failed: false };
    let mut written: io::Result<()> = Ok(());
    let mut each = |mut t: AnalysedTransfer| {
        if written.is_err() {
            return;
        }
        t.row.file = Some(record.file.clone());
        let line = RowLine { key: format!("{}-{}", record.key, record.rows), row: &t.row };
        record.rows += 1;
        written = serde_json::to_writer(&mut *out, &line)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n"));
    };
    let summary =
        open::open(path).and_then(|(kind, input)| stream(kind, input, options, &mut each, &mut |_| {}));
    match summary {
        Ok(summary) => {
            record.left_out = summary.left_out;
            record.error = summary.incomplete.map(|e| e.to_string());
        }
        Err(e) => (record.error, record.failed) = (Some(e.to_string()), true),
    }
    written?;
    serde_json::to_writer(&mut *out, &RecordLine { read: record })?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The lines of a file for a journal that another process writes: a task for a machine that sees the file at
/// `path`.
///
/// # Errors
/// If its rows cannot be written as text. A file that cannot be read is no error: its record says why.
pub fn lines_of(path: &Path, name: &Path, key: String, options: &Options) -> io::Result<String> {
    let mut out = Vec::new();
    write_lines(path, name, key, options, &mut out)?;
    String::from_utf8(out).map_err(io::Error::other)
}

/// The journal of a chunk that this process holds.
pub(super) struct Journal {
    pub(super) path: PathBuf,
    file: File,
    /// Bytes up to the end of the last file's record.
    len: u64,
    /// The keys of the files that are there.
    pub(super) done: BTreeSet<String>,
}

/// The record of a file in a line of a journal.
fn record(line: &str) -> Option<FileRecord> {
    let record = |l| serde_json::from_str::<RecordLine>(l).ok();
    line.starts_with(RECORD).then(|| record(line)).flatten().map(|l| l.read)
}

impl Journal {
    /// Opens and locks a journal, and drops what a killed process did not finish; `None` if another process
    /// holds it.
    pub(super) fn lock(path: &Path) -> Result<Option<Self>, StoreError> {
        let Some(file) = lock_file(path)? else { return Ok(None) };
        let mut journal = Self { path: path.to_path_buf(), file, len: 0, done: BTreeSet::new() };
        let (mut at, mut len) = (0, 0);
        let mut done = BTreeSet::new();
        journal.each_line(|line| {
            at += line.len() as u64;
            if let Some(record) = record(line) {
                done.insert(record.key);
                len = at;
            }
            Ok(())
        })?;
        (journal.len, journal.done) = (len, done);
        named(path, journal.file.set_len(len))?;
        Ok(Some(journal))
    }

    /// Calls `each` with every whole line, with its line feed, up to one that is cut, too long or no text.
    fn each_line(&self, mut each: impl FnMut(&str) -> Result<(), TableError>) -> Result<(), StoreError> {
        let mut reader = BufReader::new(named(&self.path, slowstart_files::open(&self.path))?);
        let mut line = Vec::new();
        while named(&self.path, next_line(&mut reader, &mut line))?
            && let Ok(line) = str::from_utf8(&line)
        {
            named(&self.path, each(line))?;
        }
        Ok(())
    }

    /// Reads a file. If its rows cannot be written whole, for example because the disk is full, none of them
    /// stays.
    pub(super) fn read(&mut self, path: &Path, key: String, options: &Options) -> Result<(), StoreError> {
        let written = write_lines(path, path, key.clone(), options, &mut BufWriter::new(&self.file));
        self.written(key, written)
    }

    /// Appends the lines of a file that another process has read, with the same promise.
    pub(super) fn append(&mut self, key: String, lines: &str) -> Result<(), StoreError> {
        let written = (&self.file).write_all(lines.as_bytes());
        self.written(key, written)
    }

    fn written(&mut self, key: String, written: io::Result<()>) -> Result<(), StoreError> {
        if written.is_err() {
            let _ = self.file.set_len(self.len);
        }
        named(&self.path, written)?;
        self.len = named(&self.path, self.file.metadata())?.len();
        self.done.insert(key);
        Ok(())
    }

    /// Writes records and part of a chunk, and removes the journal.
    pub(super) fn finish(self, store: &Store, name: &str) -> Result<(), StoreError> {
        let (temporary, part) =
            (self.path.with_extension("part"), store.dir().join("parts").join(format!("{name}.parquet")));
        let (listing, records) =
            (self.path.with_extension("files"), store.dir().join("files").join(format!("{name}.jsonl")));
        let write = || -> Result<(), StoreError> {
            let mut list = BufWriter::new(named(&listing, WholeFile::create(&records, &listing))?);
            let mut table = TableBuilder::new(part_columns());
            let out = named(&temporary, WholeFile::create(&part, &temporary))?;
            let mut writer =
                named(&temporary, ArrowWriter::try_new(out, table.schema(), Some(properties())))?;
            let mut rows = 0;
            self.each_line(|line| {
                if let Some(record) = record(line) {
                    serde_json::to_writer(&mut list, &record).map_err(io::Error::from)?;
                    return Ok(list.write_all(b"\n")?);
                }
                let row: Value = serde_json::from_str(line).map_err(io::Error::from)?;
                table.push(&row);
                rows += 1;
                if table.len() == BATCH {
                    writer.write(&table.batch()?)?;
                }
                if rows % ROW_GROUP == 0 {
                    writer.flush()?;
                }
                Ok(())
            })?;
            named(&temporary, table.batch().and_then(|b| Ok(writer.write(&b)?)))?;
            let out = named(&temporary, writer.into_inner())?;
            let list = named(&listing, list.into_inner().map_err(io::IntoInnerError::into_error))?;
            named(&records, list.finish())?;
            named(&part, out.finish())
        };
        write()?;
        named(&self.path, fs::remove_file(&self.path))
    }
}
