//! The store of a sweep, or of a replay of many files: a folder that several processes may use, and that
//! survives being killed.
//!
//! | name | holds |
//! |---|---|
//! | `slowstart-store.json` | the version of the format and of the results; written first, once |
//! | `sweeps/ID.json` | each sweep that was started: its text and its numbers of runs and chunks |
//! | `parts/ID-CHUNK.parquet` | the rows of a chunk that is finished |
//! | `journal/ID-CHUNK.jsonl` | the rows of a chunk that is not: a line each, written when a run ends |
//! | `manifest.json` | the parts with their rows and bytes, as of the end of the last `sweep` that added one |
//!
//! A store of captures has `files/ID-CHUNK.jsonl` in place of `sweeps` ([`crate::captures`]).
//!
//! A process that computes a chunk holds a lock on its journal, which ends with the process. A part is
//! written beside the journal under that lock and renamed. So a killed process loses the runs that it was
//! computing, and no reader sees half a part. The rows of a part are read from the lines of the journal,
//! whether this process wrote them or another, so that its bytes do not depend on that.

use crate::part::PartFile;
use crate::plan::{Plan, part_columns, results_version};
use crate::table::{TableBuilder, TableError, properties};
use arrow_array::cast::AsArray;
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use slowstart_files::{Folder, Lock, LockError, WholeFile, create_folder};
use slowstart_replay::limits::LONGEST;
use slowstart_study::columns::{Column, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// The file that marks a store.
const MARKER: &str = slowstart_replay::folder::STORE;
/// The lock under which its small files are written, and how long another process may hold it.
const LOCK: &str = ".lock";
const WAIT: Duration = Duration::from_secs(30);
/// Version of the format.
const FORMAT: u32 = 1;

/// Why a store cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A folder that is no store, or one of another version.
    #[error("{dir}: {why}")]
    Refused {
        /// Which.
        dir: String,
        /// What was found and expected.
        why: String,
    },
    /// A file of the store cannot be read or written.
    #[error("{file}: {why}")]
    File {
        /// Which.
        file: String,
        /// Why.
        why: TableError,
    },
}

impl StoreError {
    /// True if a file cannot be written because its disk is read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        let read_only = io::ErrorKind::ReadOnlyFilesystem;
        matches!(self, Self::File { why: TableError::Io(e), .. } if e.kind() == read_only)
    }
}

/// Adds the name of a file to an error.
pub(crate) fn named<T, E: Into<TableError>>(file: &Path, result: Result<T, E>) -> Result<T, StoreError> {
    result.map_err(|e| StoreError::File { file: file.display().to_string(), why: e.into() })
}

/// The marker.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    /// Version of the format.
    format: u32,
    /// Version of the results.
    results: String,
    /// What the rows are of.
    #[serde(default)]
    holds: Holds,
}

/// What the rows of a store are of.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// Runs of sweeps, one a row.
    #[default]
    Sweeps,
    /// Transfers of captures and logs.
    Captures,
}

impl Holds {
    /// The name in messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Sweeps => "sweeps",
            Self::Captures => "captures",
        }
    }

    /// The folders of such a store.
    const fn folders(self) -> [&'static str; 3] {
        match self {
            Self::Sweeps => ["parts", "journal", "sweeps"],
            Self::Captures => ["parts", "journal", "files"],
        }
    }
}

/// A sweep that was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Started {
    /// The plan as its file has it.
    pub text: String,
    /// Number of its runs, over all startups.
    pub runs: usize,
    /// The number of chunks that its runs are divided into.
    pub chunks: usize,
}

/// A part in the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The name of its file.
    pub name: String,
    /// The number of rows that are stored.
    pub rows: usize,
    /// Size of its files, in bytes.
    pub bytes: u64,
}

/// What a store holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format.
    pub format: u32,
    /// Version of the results.
    pub results: String,
    /// Rows of all parts.
    pub rows: usize,
    /// The parts, in order of their names.
    pub parts: Vec<Part>,
}

/// A store: a folder of rows in Parquet, of one version of results.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    holds: Holds,
    /// The version of its results.
    results: String,
}

/// A chunk that this process computes.
pub struct Chunk {
    journal: PathBuf,
    part: PathBuf,
    file: File,
    len: u64,
    /// The lines that are there, by key.
    pub lines: BTreeMap<u128, String>,
}

/// Whether a chunk can be computed.
pub enum Claim {
    /// This process runs the chunk.
    Ours(Chunk),
    /// Another process computes it.
    Theirs,
    /// The rows of the chunk are stored.
    Done,
}

/// The key at the beginning of a line.
pub fn key_of(line: &str) -> Option<u128> {
    u128::from_str_radix(line.strip_prefix("{\"key\":\"")?.get(..32)?, 16).ok()
}

/// The most bytes of the marker, of a sweep's text and of the manifest.
const MOST_TEXT: u64 = 1 << 26;

/// Reads a small file of a store.
fn read_text(file: &Path) -> io::Result<String> {
    let bytes = slowstart_files::read_from(slowstart_files::open(file)?, MOST_TEXT)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Reads the next line of a journal, with its line feed, and returns true; false at the end, and at a line
/// that a killed process did not finish or that is longer than any row. So memory does not depend on what the
/// file holds.
pub(crate) fn next_line(journal: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    slowstart_files::line(journal, LONGEST as u64, line)?;
    Ok(line.ends_with(b"\n"))
}

/// Fails if there is something else than a folder or a file of this name: what a symbolic link names is not
/// the store's.
fn refuse_link(path: &Path) -> Result<(), StoreError> {
    let link = fs::symlink_metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
    let why = || io::Error::other("found a symbolic link or a special file, which no store has; remove it");
    if link { named(path, Err(why())) } else { Ok(()) }
}

/// Opens and locks a journal; `None` if another process holds it.
pub(crate) fn lock_file(journal: &Path) -> Result<Option<File>, StoreError> {
    refuse_link(journal)?;
    let file = named(journal, slowstart_files::append(journal))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // A file system without locks is not refused: each process would write the same bytes.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// Writes a small file whole, under a temporary name with this ending first.
fn write_json(file: &Path, ending: &str, value: &impl Serialize) -> Result<(), StoreError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut text = serde_json::to_string_pretty(value).expect("plain data");
    text.push('\n');
    let write = || -> io::Result<()> {
        let mut out = WholeFile::create(file, &file.with_file_name(format!(".{name}{ending}")))?;
        out.write_all(text.as_bytes())?;
        out.finish()
    };
    named(file, write())
}

/// True if the folder is a store.
pub fn is_store(dir: &Path) -> bool {
    dir.join(MARKER).exists()
}

impl Store {
    /// Opens a store to write sweeps into it; an empty or missing folder becomes one.
    ///
    /// # Errors
    /// If the folder holds anything else, or a store of another version or of captures; nothing is changed
    /// then.
    pub fn create(dir: &Path) -> Result<Self, StoreError> {
        Self::create_of(dir, Holds::Sweeps)
    }

    /// Opens a store to write into it; an empty or missing folder becomes one.
    ///
    /// # Errors
    /// If the folder holds anything else, or a store of another version or kind; nothing is changed then.
    pub fn create_of(dir: &Path, holds: Holds) -> Result<Self, StoreError> {
        named(dir, create_folder(dir))?;
        let marker = dir.join(MARKER);
        if !marker.exists() {
            // A process that was killed between these steps left nothing but the temporary file of the
            // marker.
            let temporary = format!(".{MARKER}-");
            let mut entries = named(dir, fs::read_dir(dir))?.flatten();
            if let Some(other) = entries.find(|e| !e.file_name().to_string_lossy().starts_with(&temporary)) {
                // Another process may have made it a store meanwhile.
                if !marker.exists() {
                    let why = format!(
                        "found {} and no {MARKER}, so the folder is of another program; expected a store or an empty folder",
                        other.file_name().display()
                    );
                    return Err(StoreError::Refused { dir: dir.display().to_string(), why });
                }
            } else {
                let ending = format!("-{}", std::process::id());
                let written = write_json(
                    &marker,
                    &ending,
                    &Marker { format: FORMAT, results: results_version(), holds },
                );
                // Another process may have written it, and removed what others had begun.
                written.or_else(|e| if marker.exists() { Ok(()) } else { Err(e) })?;
            }
        }
        let store = Self::open(dir)?;
        let refused = |found: &str, expected: &str| {
            let why = format!("found a store of {found}, expected one of {expected}; choose another folder");
            Err(StoreError::Refused { dir: dir.display().to_string(), why })
        };
        if store.holds != holds {
            return refused(store.holds.name(), holds.name());
        }
        if store.results != results_version() {
            return refused(&format!("results {}", store.results), &format!("results {}", results_version()));
        }
        // The marker is there: what a killed process left of another is of no use.
        for entry in named(dir, fs::read_dir(dir))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&format!(".{MARKER}-")) {
                let _ = fs::remove_file(entry.path());
            }
        }
        for sub in holds.folders() {
            named(dir, create_folder(&dir.join(sub)))?;
        }
        Ok(store)
    }

    /// Opens a store to read it, whichever version computed its rows.
    ///
    /// # Errors
    /// If the folder is no store, or one of another format.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let refused = |why: String| StoreError::Refused { dir: dir.display().to_string(), why };
        let text = match read_text(&dir.join(MARKER)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(refused(format!("found no {MARKER}, expected the store of a sweep")));
            }
            text => named(&dir.join(MARKER), text)?,
        };
        let marker: Marker = serde_json::from_str(&text)
            .map_err(|e| refused(format!("{MARKER}: {e}, expected a store's marker")))?;
        if marker.format != FORMAT {
            return Err(refused(format!(
                "found a store of format {}, expected format {FORMAT}; choose another folder",
                marker.format
            )));
        }
        for sub in marker.holds.folders() {
            refuse_link(&dir.join(sub))?;
        }
        Ok(Self { dir: dir.to_path_buf(), holds: marker.holds, results: marker.results })
    }

    /// What its rows are of.
    pub fn holds(&self) -> Holds {
        self.holds
    }

    /// Returns the folder of the store.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Records a sweep, and finishes what others left in journals that no process holds; on a disk that is
    /// read-only it stays.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn start(&self, plan: &Plan) -> Result<(), StoreError> {
        let started = Started { text: plan.text.clone(), runs: plan.len(), chunks: plan.chunks() };
        let sweeps = self.dir.join("sweeps");
        let file = sweeps.join(format!("{}.json", plan.id));
        let cut = |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with('.');
        let mut cut = named(&sweeps, fs::read_dir(&sweeps))?.flatten().filter(cut).peekable();
        if !file.exists() || cut.peek().is_some() {
            let lock = self.lock_marker()?;
            // Processes that were killed left them, if this one alone may write here.
            for entry in cut.filter(|_| lock.is_some()) {
                let _ = fs::remove_file(entry.path());
            }
            // Another process may have written it meanwhile.
            if !file.exists() {
                write_json(&file, "", &started)?;
            }
        }
        for (name, journal) in self.files("journal", "jsonl")? {
            let tidied = if !name.starts_with(&plan.id) {
                self.salvage(&name, &journal)
            } else if self.dir.join("parts").join(format!("{name}.parquet")).exists() {
                // Of a process that was killed when its part was there and its journal too.
                self.lock(&name, &journal).map(|ours| ours.map_or((), |_| drop(fs::remove_file(&journal))))
            } else {
                Ok(())
            };
            match tidied {
                Err(e) if e.is_read_only() => break,
                tidied => tidied?,
            }
        }
        Ok(())
    }

    /// The sweeps that were started, by their names.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn sweeps(&self) -> Result<BTreeMap<String, Started>, StoreError> {
        let mut all = BTreeMap::new();
        for (name, file) in self.files("sweeps", "json")? {
            let text = named(&file, read_text(&file))?;
            let started = named(&file, serde_json::from_str(&text).map_err(io::Error::from))?;
            all.insert(name, started);
        }
        Ok(all)
    }

    /// The files of a folder with this extension: their names without it, and their paths, in order.
    pub(crate) fn files(&self, sub: &str, extension: &str) -> Result<Vec<(String, PathBuf)>, StoreError> {
        let dir = self.dir.join(sub);
        if !dir.exists() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for entry in named(&dir, fs::read_dir(&dir))? {
            let file = named(&dir, entry)?.path();
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if file.extension().is_some_and(|e| e == extension) && !stem.starts_with('.') {
                all.push((stem, file));
            }
        }
        all.sort();
        Ok(all)
    }

    /// The parts: their names without extension, and their files, in order.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn parts(&self) -> Result<Vec<(String, PathBuf)>, StoreError> {
        self.files("parts", "parquet")
    }

    /// Lines in journals: runs that are finished and in no part yet.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn journalled(&self) -> Result<usize, StoreError> {
        let mut n = 0;
        for (_, file) in self.files("journal", "jsonl")? {
            let mut reader = BufReader::new(named(&file, slowstart_files::open(&file))?);
            let mut line = Vec::new();
            while named(&file, next_line(&mut reader, &mut line))? {
                n += 1;
            }
        }
        Ok(n)
    }

    fn part_name(plan: &Plan, chunk: usize) -> String {
        format!("{}-{chunk:05}", plan.id)
    }

    /// True if a chunk of a sweep is finished.
    pub fn is_done(&self, plan: &Plan, chunk: usize) -> bool {
        self.dir.join("parts").join(Self::part_name(plan, chunk)).with_extension("parquet").exists()
    }

    /// The keys in parts of other sweeps.
    ///
    /// # Errors
    /// If a part cannot be read.
    pub fn keys_of_others(&self, plan: &Plan) -> Result<BTreeSet<u128>, StoreError> {
        let own: BTreeSet<String> = (0..plan.chunks()).map(|c| Self::part_name(plan, c)).collect();
        let mut keys = BTreeSet::new();
        for (_, file) in self.parts()?.into_iter().filter(|(name, _)| !own.contains(name)) {
            keys.extend(read_keys(&file)?);
        }
        Ok(keys)
    }

    /// Takes a chunk, if no other process has it and it is not finished.
    ///
    /// # Errors
    /// If its journal cannot be opened.
    pub fn claim(&self, plan: &Plan, chunk: usize) -> Result<Claim, StoreError> {
        if self.is_done(plan, chunk) {
            return Ok(Claim::Done);
        }
        let name = Self::part_name(plan, chunk);
        let journal = self.dir.join("journal").join(format!("{name}.jsonl"));
        let Some(chunk_of) = self.lock(&name, &journal)? else { return Ok(Claim::Theirs) };
        // The process that had it may have finished it meanwhile.
        if self.is_done(plan, chunk) {
            let _ = fs::remove_file(&journal);
            return Ok(Claim::Done);
        }
        Ok(Claim::Ours(chunk_of))
    }

    /// Opens and locks a journal; `None` if another process holds it.
    fn lock(&self, name: &str, journal: &Path) -> Result<Option<Chunk>, StoreError> {
        let Some(file) = lock_file(journal)? else { return Ok(None) };
        let (mut lines, mut len) = (BTreeMap::new(), 0);
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        while named(journal, next_line(&mut reader, &mut line))? {
            let Some((key, text)) = str::from_utf8(&line).ok().and_then(|l| Some((key_of(l)?, l))) else {
                break;
            };
            len += text.len() as u64;
            lines.insert(key, text.trim_end().to_string());
        }
        named(journal, file.set_len(len))?;
        let part = self.dir.join("parts").join(format!("{name}.parquet"));
        Ok(Some(Chunk { journal: journal.to_path_buf(), part, file, len, lines }))
    }

    /// Makes a part of a journal of another sweep that no process holds.
    fn salvage(&self, name: &str, journal: &Path) -> Result<(), StoreError> {
        let Some(mut chunk) = self.lock(name, journal)? else { return Ok(()) };
        chunk.part = self.dir.join("parts").join(format!("{name}-cut.parquet"));
        if chunk.lines.is_empty() {
            let _ = fs::remove_file(journal);
            return Ok(());
        }
        let mut axes: BTreeMap<String, Kind> = BTreeMap::new();
        let values: Vec<Value> = chunk.lines.values().filter_map(|l| serde_json::from_str(l).ok()).collect();
        for (axis, value) in values.iter().filter_map(|v| v["axis"].as_object()).flatten() {
            let kind = if value.is_number() { Kind::Number } else { Kind::Text };
            let known = axes.entry(axis.clone()).or_insert(kind);
            if *known != kind {
                *known = Kind::Text;
            }
        }
        let mut keys: Vec<u128> = chunk.lines.keys().copied().collect();
        keys.sort_unstable();
        chunk.finish(part_columns(axes.into_iter().collect()), &keys)
    }

    /// What the store holds, from its parts.
    ///
    /// # Errors
    /// If a part cannot be read.
    pub fn manifest(&self) -> Result<Manifest, StoreError> {
        let mut parts = Vec::new();
        for (name, file) in self.parts()? {
            let part = named(&file, PartFile::open(&file))?;
            let bytes = named(&file, part.file.metadata())?.len();
            named(&file, has_keys(part.reader.schema()))?;
            let rows = part.reader.metadata().file_metadata().num_rows() as usize;
            parts.push(Part { name: format!("{name}.parquet"), rows, bytes });
        }
        let rows = parts.iter().map(|p| p.rows).sum();
        Ok(Manifest { format: FORMAT, results: results_version(), rows, parts })
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// If a part cannot be read, or the manifest not written.
    pub fn write_manifest(&self) -> Result<Manifest, StoreError> {
        let _lock = self.lock_marker()?;
        // Not before the lock: another process may have written a part, and the manifest of the parts before
        // it comes later.
        let (manifest, file) = (self.manifest()?, self.dir.join("manifest.json"));
        let there = read_text(&file).ok().and_then(|text| serde_json::from_str(&text).ok());
        // So a store that is finished need not be writable.
        if there.as_ref() != Some(&manifest) {
            write_json(&file, "", &manifest)?;
        }
        Ok(manifest)
    }

    /// Waits for the lock under which such files are written.
    fn lock_marker(&self) -> Result<Option<Lock>, StoreError> {
        let folder = named(&self.dir, Folder::open(&self.dir))?;
        match folder.lock(LOCK, WAIT) {
            Ok(lock) => Ok(Some(lock)),
            // A finished store need not be writable, and a file system without locks is not refused.
            Err(LockError::Io(_)) => Ok(None),
            Err(e) => named(
                &self.dir.join(LOCK),
                Err(io::Error::other(format!("{e}, for {} s now", WAIT.as_secs()))),
            ),
        }
    }
}

impl Chunk {
    /// Appends a row. If it cannot be written whole, for example because the disk is full, none of it stays.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&mut self, key: u128, line: String) -> Result<(), StoreError> {
        let whole = format!("{line}\n");
        if let Err(e) = self.file.write_all(whole.as_bytes()) {
            let _ = self.file.set_len(self.len);
            return named(&self.journal, Err(e));
        }
        self.len += whole.len() as u64;
        self.lines.insert(key, line);
        Ok(())
    }

    /// Writes the part with the rows of these keys, in this order, and removes the journal.
    ///
    /// # Errors
    /// If it cannot be written; the journal then stays.
    pub fn finish(self, columns: Vec<Column>, keys: &[u128]) -> Result<(), StoreError> {
        let mut table = TableBuilder::new(columns);
        let mut write = || -> Result<(), TableError> {
            for line in keys.iter().filter_map(|k| self.lines.get(k)) {
                table.push(&serde_json::from_str(line).map_err(io::Error::from)?);
            }
            let out = WholeFile::create(&self.part, &self.journal.with_extension("part"))?;
            let mut writer = ArrowWriter::try_new(out, table.schema(), Some(properties()))?;
            writer.write(&table.batch()?)?;
            Ok(writer.into_inner()?.finish()?)
        };
        named(&self.part, write())?;
        named(&self.journal, fs::remove_file(&self.journal))
    }
}

/// Refuses a file that is no part of a store: each row has a key.
pub(crate) fn has_keys(schema: &Schema) -> io::Result<()> {
    let found = schema.field_with_name("key").map(|_| ());
    found.map_err(|_| io::Error::other("found no column key, expected a part of a store"))
}

/// The keys of a part.
pub(crate) fn read_keys(file: &Path) -> Result<Vec<u128>, StoreError> {
    let part = named(file, PartFile::open(file))?;
    let mut keys = Vec::new();
    for batch in named(file, part.read(&["key"], 4096))? {
        let batch = named(file, batch)?;
        let column = batch.column_by_name("key").and_then(|c| c.as_string_opt::<i32>());
        let why = || io::Error::other("found no column key of text, expected a part of a store");
        let column = named(file, column.ok_or_else(why))?;
        keys.extend(column.iter().flatten().filter_map(|k| u128::from_str_radix(k, 16).ok()));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Query, query};
    use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
    use std::sync::Arc;

    #[test]
    fn a_part_without_keys_is_refused_by_name() {
        let dir = std::env::temp_dir().join(format!("slowstart-nokey-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let store = Store::create(&dir).expect("a store");
        fs::create_dir_all(dir.join("parts")).expect("a folder");
        let column: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("run", column)]).expect("a batch");
        let file = fs::File::create(dir.join("parts/foreign-00000.parquet")).expect("a file");
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
        writer.write(&batch).expect("rows");
        writer.close().expect("a part");
        let answers = [
            query(&store, &Query::default()).map(|_| ()).expect_err("refused").to_string(),
            store.manifest().map(|_| ()).expect_err("refused").to_string(),
        ];
        for said in answers {
            assert!(said.contains("foreign-00000.parquet") && said.contains("no column key"), "{said}");
        }
        fs::remove_dir_all(&dir).expect("a folder");
    }
}
