//! Many captures and logs replayed into a store: one row for each transfer, with the name of its file.
//!
//! The files are divided into chunks, in the order of their names. A process locks the journal of a chunk
//! (`journal/ID-CHUNK.jsonl`) and appends the rows of each file, and behind them a line with the file's [`FileRecord`]. So
//! a killed process loses the file that it was reading: rows without that line are dropped. When all files of a chunk are
//! there, their records become `files/ID-CHUNK.jsonl` and the rows `parts/ID-CHUNK.parquet`, and the journal goes. Rows pass
//! through memory one by one, so that it depends neither on the number of files nor on their size.

use crate::plan::hex;
use crate::run::{LOOK_AGAIN, count_run, on_threads};
use crate::store::{Holds, Store, StoreError, lock_file, named};
use crate::table::{TableBuilder, TableError, properties};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use slowstart_lab::columns::{Column, Kind, columns};
use slowstart_replay::open;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_replay::transfer::{TRANSFER_SCHEMA, Transfer};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

/// The files are divided into about so many chunks, each of which becomes a part of the store.
const CHUNKS: usize = 256;
/// The most files of a chunk.
const MOST_FILES: usize = 4096;
/// Rows that are held before they are encoded, and rows of a row group: both bound memory.
const BATCH: usize = 64;
const ROW_GROUP: usize = 16_384;
/// The begin of a line with the record of a file.
const RECORD: &str = "{\"read\":";

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Input {
    path: PathBuf,
    /// Hash of its name, size and time of change, of the options, and of the version of the results.
    key: u128,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its key: that of its rows, up to the hyphen.
    pub key: String,
    /// Its name as given.
    pub file: String,
    /// Its size in bytes, as stored.
    pub bytes: u64,
    /// Its transfers.
    pub rows: u64,
    /// Transfers left out (`--min-bytes`).
    pub left_out: u64,
    /// Why it could not be read, or not to its end.
    pub error: Option<String>,
    /// True if nothing of it could be read.
    pub failed: bool,
}

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

/// What has been done.
#[derive(Copy, Clone, Debug, Default)]
pub struct Report {
    /// Files that this call read.
    pub read: usize,
    /// True if all files are in the store, by this process or others.
    pub finished: bool,
}

/// Files to replay with the same options.
#[derive(Debug)]
pub struct Captures {
    files: Vec<Input>,
    chunk: usize,
    /// The hash of all keys, in hexadecimal.
    id: String,
}

/// The columns of a part.
fn part_columns() -> Vec<Column> {
    let about = "The key of the file and, after a hyphen, the number of the row in it.";
    let mut all = vec![Column::new("key", Kind::Text, about)];
    all.extend(columns(TRANSFER_SCHEMA));
    all
}

/// The first 16 bytes of a hash as a number.
fn number(digest: &[u8]) -> u128 {
    digest.iter().take(16).fold(0, |n, b| n << 8 | u128::from(*b))
}

impl Captures {
    /// These files, in any order. `settings` is everything of the options that decides the rows.
    pub fn new(files: &[PathBuf], settings: &str) -> Self {
        let version = crate::plan::results_version();
        let of = |path: &PathBuf| {
            let about = fs::metadata(path).ok();
            let changed = about.as_ref().and_then(|m| m.modified().ok()?.duration_since(UNIX_EPOCH).ok());
            let mut hash = Sha256::new();
            for part in [
                path.to_string_lossy().as_ref(),
                &about.map_or(0, |m| m.len()).to_string(),
                &changed.map_or(0, |t| t.as_nanos()).to_string(),
                settings,
                TRANSFER_SCHEMA,
                &version,
            ] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
            Input { path: path.clone(), key: number(&hash.finalize()) }
        };
        let mut files: Vec<Input> = files.iter().map(of).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup();
        let mut hash = Sha256::new();
        for file in &files {
            hash.update(file.key.to_le_bytes());
        }
        let chunk = files.len().div_ceil(CHUNKS).clamp(1, MOST_FILES);
        Self { files, chunk, id: hex(&hash.finalize()[..8]) }
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True if there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Reads what is missing in the store on `threads` threads. Calls `each` for every file that is in the store, or for
    /// several at once, with true if this call read it. If it returns false, no further file begins, and files that have
    /// begun are finished.
    ///
    /// # Errors
    /// If the store cannot be written, or holds something else. A file that cannot be read is no error: its record says why.
    pub fn run(
        &self,
        store: &Store,
        options: &Options,
        threads: usize,
        each: &(dyn Fn(usize, bool) -> bool + Sync),
    ) -> Result<Report, StoreError> {
        let others = self.start(store)?;
        let chunks: Vec<(String, &[Input])> = self
            .files
            .chunks(self.chunk)
            .enumerate()
            .map(|(n, files)| (format!("{}-{n:05}", self.id), files))
            .collect();
        let read = AtomicUsize::new(0);
        let stopped = AtomicBool::new(false);
        let each = |n: usize, ours: bool| {
            read.fetch_add(usize::from(ours), Ordering::Relaxed);
            let go_on = each(n, ours) && !stopped.load(Ordering::Relaxed);
            if !go_on {
                stopped.store(true, Ordering::Relaxed);
            }
            go_on
        };
        let mut todo: Vec<&(String, &[Input])> = chunks.iter().collect();
        while !todo.is_empty() && !stopped.load(Ordering::Relaxed) {
            let theirs = on_threads(&todo, threads, &stopped, &|(name, files): &(String, &[Input])| {
                one(store, name, files, &others, options, &each)
            });
            todo = theirs?;
            if !todo.is_empty() && !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK_AGAIN);
            }
        }
        store.write_manifest()?;
        Ok(Report { read: read.into_inner(), finished: !stopped.into_inner() })
    }

    /// Finishes what others left in journals that no process holds; returns the keys of files in parts of other calls.
    fn start(&self, store: &Store) -> Result<BTreeSet<String>, StoreError> {
        for (name, journal) in store.files("journal", "jsonl")? {
            let cut = format!("{name}-cut");
            let done = is_done(store, &name) || is_done(store, &cut);
            if name.starts_with(&self.id) && !done {
                continue;
            }
            let Some(journal) = Journal::lock(&journal)? else { continue };
            if done || journal.done.is_empty() {
                named(&journal.path, fs::remove_file(&journal.path))?;
            } else {
                journal.finish(store, &cut)?;
            }
        }
        let mut keys = BTreeSet::new();
        for (name, file) in store.files("files", "jsonl")? {
            if !name.starts_with(&self.id) && is_done(store, &name) {
                keys.extend(records_of(&file)?.into_iter().map(|r| r.key));
            }
        }
        Ok(keys)
    }

    fn keys(&self) -> BTreeSet<String> {
        self.files.iter().map(|f| format!("{:032x}", f.key)).collect()
    }

    /// What became of these files, in the order of their names; files that are not in the store are absent.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn records(&self, store: &Store) -> Result<Vec<FileRecord>, StoreError> {
        let (keys, mut all) = (self.keys(), Vec::new());
        for (name, file) in store.files("files", "jsonl")? {
            if is_done(store, &name) {
                all.extend(records_of(&file)?.into_iter().filter(|r| keys.contains(&r.key)));
            }
        }
        all.sort_by(|a, b| a.file.cmp(&b.file));
        all.dedup_by(|a, b| a.key == b.key);
        Ok(all)
    }

    /// Calls `each` with the transfers of these files that are in the store, each once. Of a transfer, only these fields
    /// are set: source, file, connection, duration, bytes, segment size, exit, class, certainty, limits and startups.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn transfers(&self, store: &Store, mut each: impl FnMut(&Transfer)) -> Result<(), StoreError> {
        let (mut keys, mut before) = (self.keys(), String::new());
        for (_, file) in store.parts()? {
            let open = named(&file, File::open(&file))?;
            let reader = named(&file, ParquetRecordBatchReaderBuilder::try_new(open))?;
            let mask = ProjectionMask::columns(reader.parquet_schema(), WANTED);
            let mut of_part = BTreeSet::new();
            for batch in named(&file, reader.with_projection(mask).with_batch_size(ROW_GROUP).build())? {
                let batch = named(&file, batch)?;
                for row in 0..batch.num_rows() {
                    let key = text(&batch, "key", row);
                    let of_file = key.split('-').next().unwrap_or_default();
                    if of_file != before {
                        before = of_file.to_string();
                        of_part.insert(before.clone());
                    }
                    if keys.contains(of_file) {
                        each(&partial(&batch, row));
                    }
                }
            }
            // Two processes without locks may have written a file into two parts.
            keys.retain(|k| !of_part.contains(k));
            before.clear();
        }
        Ok(())
    }
}

/// The columns that [`partial`] reads.
const WANTED: [&str; 13] = [
    "key",
    "source",
    "file",
    "connection",
    "duration_s",
    "bytes",
    "mss_bytes",
    "exit_time_s",
    "exit_cwnd_bytes",
    "certain",
    "class",
    "held",
    "startups",
];

fn column<'a>(batch: &'a arrow_array::RecordBatch, name: &str, row: usize) -> Option<&'a dyn Array> {
    batch.column_by_name(name).map(AsRef::as_ref).filter(|c| c.is_valid(row))
}

fn text<'a>(batch: &'a arrow_array::RecordBatch, name: &str, row: usize) -> &'a str {
    column(batch, name, row).and_then(|c| c.as_string_opt::<i32>()).map_or("", |c| c.value(row))
}

/// A transfer from its columns.
fn partial(batch: &arrow_array::RecordBatch, row: usize) -> Transfer {
    use arrow_array::types::{Float64Type, UInt64Type};
    use slowstart::units::Bytes;
    use slowstart_replay::transfer::ExitRecord;
    let of = |name| column(batch, name, row);
    let whole = |name| of(name).and_then(|c| c.as_primitive_opt::<UInt64Type>()).map(|c| c.value(row));
    let real = |name| of(name).and_then(|c| c.as_primitive_opt::<Float64Type>()).map(|c| c.value(row));
    let mss = Bytes(whole("mss_bytes").unwrap_or(0));
    let mut t = Transfer::new(text(batch, "source", row), whole("connection").unwrap_or(0), mss);
    t.file = Some(text(batch, "file", row).to_string());
    t.duration_s = real("duration_s").unwrap_or(0.0);
    t.bytes = whole("bytes").unwrap_or(0);
    let exit = real("exit_time_s").zip(whole("exit_cwnd_bytes"));
    t.exit = exit.map(|(time_s, cwnd_bytes)| ExitRecord { time_s, cwnd_bytes, evidence: String::new() });
    t.certain = of("certain").and_then(|c| c.as_boolean_opt()).is_some_and(|c| c.value(row));
    t.class = serde_json::from_value(text(batch, "class", row).into()).unwrap_or(t.class);
    t.limits = serde_json::from_str(text(batch, "held", row)).unwrap_or_default();
    t.startups = serde_json::from_str(text(batch, "startups", row)).unwrap_or_default();
    t
}

fn is_done(store: &Store, name: &str) -> bool {
    store.dir().join("parts").join(format!("{name}.parquet")).exists()
}

/// The records of a part.
fn records_of(file: &Path) -> Result<Vec<FileRecord>, StoreError> {
    let text = named(file, fs::read_to_string(file))?;
    text.lines().map(|l| named(file, serde_json::from_str(l).map_err(io::Error::from))).collect()
}

/// Reads the files of a chunk that are in no other part. Returns false if another process has it.
fn one(
    store: &Store,
    name: &str,
    files: &[Input],
    others: &BTreeSet<String>,
    options: &Options,
    each: &dyn Fn(usize, bool) -> bool,
) -> Result<bool, StoreError> {
    let wanted: Vec<(&Input, String)> = files
        .iter()
        .map(|f| (f, format!("{:032x}", f.key)))
        .filter(|(_, key)| !others.contains(key))
        .collect();
    if is_done(store, name) || wanted.is_empty() {
        each(files.len(), false);
        return Ok(true);
    }
    let journal = store.dir().join("journal").join(format!("{name}.jsonl"));
    let Some(mut journal) = Journal::lock(&journal)? else { return Ok(false) };
    // The process that had it may have finished it meanwhile.
    if is_done(store, name) {
        let _ = fs::remove_file(&journal.path);
        each(files.len(), false);
        return Ok(true);
    }
    each(files.len() - wanted.len() + journal.done.len(), false);
    for (input, key) in wanted {
        if journal.done.contains(&key) {
            continue;
        }
        if !each(0, false) {
            return Ok(true);
        }
        count_run();
        journal.read(&input.path, key, options)?;
        each(1, true);
    }
    journal.finish(store, name)?;
    Ok(true)
}

/// The journal of a chunk that this process holds.
struct Journal {
    path: PathBuf,
    file: File,
    /// Bytes up to the end of the last file's record.
    len: u64,
    /// The keys of the files that are there.
    done: BTreeSet<String>,
}

/// The record of a file in a line of a journal.
fn record(line: &str) -> Option<FileRecord> {
    let record = |l| serde_json::from_str::<RecordLine>(l).ok();
    line.starts_with(RECORD).then(|| record(line)).flatten().map(|l| l.read)
}

impl Journal {
    /// Opens and locks a journal, and drops what a killed process did not finish; `None` if another process holds it.
    fn lock(path: &Path) -> Result<Option<Self>, StoreError> {
        let Some(file) = lock_file(path)? else { return Ok(None) };
        let mut journal = Self { path: path.to_path_buf(), file, len: 0, done: BTreeSet::new() };
        let (mut at, mut len) = (0, 0);
        let mut done = BTreeSet::new();
        journal.each_line(|line, whole| {
            at += line.len() as u64;
            if let Some(record) = record(line).filter(|_| whole) {
                done.insert(record.key);
                len = at;
            }
            Ok(())
        })?;
        (journal.len, journal.done) = (len, done);
        named(path, journal.file.set_len(len))?;
        Ok(Some(journal))
    }

    /// Calls `each` with every line, with its line feed, and whether it has one.
    fn each_line(
        &self,
        mut each: impl FnMut(&str, bool) -> Result<(), TableError>,
    ) -> Result<(), StoreError> {
        let mut reader = BufReader::new(named(&self.path, File::open(&self.path))?);
        let mut line = Vec::new();
        while named(&self.path, reader.read_until(b'\n', &mut line))? > 0 {
            let whole = line.ends_with(b"\n");
            named(&self.path, each(&String::from_utf8_lossy(&line), whole))?;
            line.clear();
        }
        Ok(())
    }

    /// Reads a file. If its rows cannot be written whole, for example because the disk is full, none of them stays.
    fn read(&mut self, path: &Path, key: String, options: &Options) -> Result<(), StoreError> {
        let name = path.to_string_lossy().into_owned();
        let bytes = fs::metadata(path).map_or(0, |m| m.len());
        let mut record =
            FileRecord { key, file: name, bytes, rows: 0, left_out: 0, error: None, failed: false };
        let mut out = BufWriter::new(&self.file);
        let mut written: io::Result<()> = Ok(());
        let each = |mut t: AnalysedTransfer| {
            if written.is_err() {
                return;
            }
            t.row.file = Some(record.file.clone());
            let line = RowLine { key: format!("{}-{}", record.key, record.rows), row: &t.row };
            record.rows += 1;
            written = serde_json::to_writer(&mut out, &line).map_err(io::Error::from);
            written = std::mem::replace(&mut written, Ok(())).and_then(|()| out.write_all(b"\n"));
        };
        let summary = open::open(path).and_then(|(kind, input)| stream(kind, input, options, each, |_| {}));
        match summary {
            Ok(summary) => {
                record.left_out = summary.left_out;
                record.error = summary.incomplete.map(|e| e.to_string());
            }
            Err(e) => (record.error, record.failed) = (Some(e.to_string()), true),
        }
        let key = record.key.clone();
        let end = |mut out: BufWriter<&File>| -> io::Result<()> {
            written?;
            serde_json::to_writer(&mut out, &RecordLine { read: record })?;
            out.write_all(b"\n")?;
            out.flush()
        };
        if let Err(e) = end(out) {
            let _ = self.file.set_len(self.len);
            return named(&self.path, Err(e));
        }
        self.len = named(&self.path, self.file.metadata())?.len();
        self.done.insert(key);
        Ok(())
    }

    /// Writes records and part of a chunk, and removes the journal.
    fn finish(self, store: &Store, name: &str) -> Result<(), StoreError> {
        let (temporary, part) =
            (self.path.with_extension("part"), store.dir().join("parts").join(format!("{name}.parquet")));
        let (listing, records) =
            (self.path.with_extension("files"), store.dir().join("files").join(format!("{name}.jsonl")));
        let write = || -> Result<(), StoreError> {
            let mut list = BufWriter::new(named(&listing, File::create(&listing))?);
            let mut table = TableBuilder::new(part_columns());
            let out = named(&temporary, File::create(&temporary))?;
            let mut writer =
                named(&temporary, ArrowWriter::try_new(out, table.schema(), Some(properties())))?;
            let mut rows = 0;
            self.each_line(|line, _| {
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
            let synced = named(&temporary, writer.into_inner())?.sync_all();
            named(&temporary, synced)?;
            let list = list.into_inner().map_err(io::IntoInnerError::into_error);
            named(&listing, list.and_then(|l| l.sync_all()))?;
            named(&records, fs::rename(&listing, &records))?;
            named(&part, fs::rename(&temporary, &part))
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
            let _ = fs::remove_file(&listing);
        })?;
        named(&self.path, fs::remove_file(&self.path))
    }
}

/// Opens a store of captures to write into it; an empty or missing folder becomes one.
///
/// # Errors
/// If the folder holds anything else, or a store of another version or of sweeps; nothing is changed then.
pub fn create(dir: &Path) -> Result<Store, StoreError> {
    Store::create_of(dir, Holds::Captures)
}
