//! Many captures and logs replayed into a store: one row for each transfer, with the name of its file.
//!
//! The files are divided into chunks, in the order of their names. A process locks the journal of a chunk
//! (`journal/ID-CHUNK.jsonl`) and appends the rows of each file, and behind them a line with the file's
//! [`FileRecord`]. So a killed process loses the file that it was reading: rows without that line are
//! dropped. When all files of a chunk are there, their records become `files/ID-CHUNK.jsonl` and the rows
//! `parts/ID-CHUNK.parquet`, and the journal goes. Rows pass through memory one by one, so that it depends
//! neither on the number of files nor on their size.

mod collector;
mod journal;

pub use self::collector::Collector;
pub use self::journal::lines_of;
use self::journal::{Claim, Journal, ROW_GROUP, claim, is_done};
use crate::part::PartFile;
use crate::plan::{hex, results_version};
use crate::run::{LOOK_AGAIN, on_threads};
use crate::store::{Holds, Store, StoreError, named};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use hmac_sha256::Hash as Sha256;
use serde::{Deserialize, Serialize};
use slowstart_replay::replay::Options;
use slowstart_replay::transfer::{TRANSFER_SCHEMA, Transfer};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

/// The files are divided into about so many chunks, each of which becomes a part of the store.
const CHUNKS: usize = 256;
/// The most files of a chunk.
const MOST_FILES: usize = 4096;

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
    /// How many transfers it holds.
    pub rows: u64,
    /// Transfers left out (`--min-bytes`).
    pub left_out: u64,
    /// Why it could not be read, or not to its end.
    pub error: Option<String>,
    /// True if nothing of it could be read.
    pub failed: bool,
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
#[derive(Clone, Debug)]
pub struct Captures {
    files: Vec<Input>,
    chunk: usize,
    /// The hash of all keys, in hexadecimal.
    id: String,
}

/// The first 16 bytes of a hash as a number.
fn number(digest: &[u8]) -> u128 {
    digest.iter().take(16).fold(0, |n, b| n << 8 | u128::from(*b))
}

impl Captures {
    /// These files, in any order, for startups of these names.
    pub fn new(files: &[PathBuf], startups: &[String], options: &Options) -> Self {
        let version = results_version();
        // Everything of the options that decides the rows.
        let settings = &format!("{startups:?} {:?} {}", options.connections, options.min_bytes);
        let of = |path: &PathBuf| {
            let about = fs::metadata(path).ok();
            let changed = about.as_ref().and_then(|m| m.modified().ok()?.duration_since(UNIX_EPOCH).ok());
            let mut hash = Sha256::new();
            for part in [
                path.as_os_str().as_encoded_bytes(),
                about.map_or(0, |m| m.len()).to_string().as_bytes(),
                changed.map_or(0, |t| t.as_nanos()).to_string().as_bytes(),
                settings.as_bytes(),
                TRANSFER_SCHEMA.as_bytes(),
                version.as_bytes(),
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

    /// Reads what is missing in the store on `threads` threads. Calls `each` for every file that is in the
    /// store, or for several at once, with true if this call read it. If it returns false, no further file
    /// begins, and files that have begun are finished.
    ///
    /// # Errors
    /// If the store cannot be written, or holds something else. A file that cannot be read is no error: its
    /// record says why.
    pub fn run(
        &self,
        store: &Store,
        options: &Options,
        threads: usize,
        each: &(dyn Fn(usize, bool) -> bool + Sync),
    ) -> Result<Report, StoreError> {
        let others = self.start(store)?;
        let chunks: Vec<usize> = (0..self.chunks()).collect();
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
        let mut todo: Vec<&usize> = chunks.iter().collect();
        while !todo.is_empty() && !stopped.load(Ordering::Relaxed) {
            let theirs = on_threads(&todo, threads, &stopped, &|n: &usize| {
                self.one(store, *n, &others, options, &each)
            });
            todo = theirs?;
            if !todo.is_empty() && !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK_AGAIN);
            }
        }
        store.write_manifest()?;
        Ok(Report { read: read.into_inner(), finished: !stopped.into_inner() })
    }

    /// The number of chunks.
    fn chunks(&self) -> usize {
        self.files.len().div_ceil(self.chunk)
    }

    /// The name of a chunk.
    fn name(&self, chunk: usize) -> String {
        format!("{}-{chunk:05}", self.id)
    }

    /// The files of a chunk, by their index.
    fn range(&self, chunk: usize) -> Range<usize> {
        chunk * self.chunk..self.files.len().min((chunk + 1) * self.chunk)
    }

    /// The key of a file, in hexadecimal.
    fn key(&self, file: usize) -> String {
        format!("{:032x}", self.files[file].key)
    }

    /// The name of a file as given, and its key: what [`lines_of`] needs on another machine.
    pub fn task(&self, file: usize) -> Option<(&Path, String)> {
        self.files.get(file).map(|f| (f.path.as_path(), self.key(file)))
    }

    /// Reads the files of a chunk that are in no other part. Returns false if another process has it.
    fn one(
        &self,
        store: &Store,
        chunk: usize,
        others: &BTreeSet<String>,
        options: &Options,
        each: &dyn Fn(usize, bool) -> bool,
    ) -> Result<bool, StoreError> {
        let (name, files) = (self.name(chunk), self.range(chunk));
        let of_chunk = files.len();
        let wanted: Vec<usize> = files.filter(|f| !others.contains(&self.key(*f))).collect();
        let claimed = if wanted.is_empty() { Claim::Done } else { claim(store, &name)? };
        let mut journal = match claimed {
            Claim::Ours(journal) => journal,
            Claim::Theirs => return Ok(false),
            Claim::Done => {
                each(of_chunk, false);
                return Ok(true);
            }
        };
        each(of_chunk - wanted.len() + journal.done.len(), false);
        for file in wanted {
            let key = self.key(file);
            if journal.done.contains(&key) {
                continue;
            }
            if !each(0, false) {
                return Ok(true);
            }
            journal.read(&self.files[file].path, key, options)?;
            each(1, true);
        }
        journal.finish(store, &name)?;
        Ok(true)
    }

    /// Finishes what others left in journals that no process holds; returns the keys of files in parts of
    /// other calls.
    fn start(&self, store: &Store) -> Result<BTreeSet<String>, StoreError> {
        for (name, journal) in store.files("journal", "jsonl")? {
            let cut = format!("{name}-cut");
            let done = is_done(store, &name) || is_done(store, &cut);
            if name.starts_with(&self.id) && !done {
                continue;
            }
            let journal = match Journal::lock(&journal) {
                // What others left stays on a disk that is read-only.
                Err(e) if e.is_read_only() => break,
                journal => journal?,
            };
            let Some(journal) = journal else { continue };
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

    /// Calls `each` with the transfers of these files that are in the store, each once. Of a transfer, only
    /// these fields are set: source, file, connection, duration, bytes, segment size, exit, class, certainty,
    /// limits and startups.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn transfers(&self, store: &Store, mut each: impl FnMut(&Transfer)) -> Result<(), StoreError> {
        let (mut keys, mut before) = (self.keys(), String::new());
        for (_, file) in store.parts()? {
            let part = named(&file, PartFile::open(&file))?;
            let mut of_part = BTreeSet::new();
            for batch in named(&file, part.read(&WANTED, ROW_GROUP))? {
                let batch = named(&file, batch)?;
                for row in 0..batch.num_rows() {
                    let key = text(&batch, "key", row);
                    let of_file = key.split('-').next().unwrap_or_default();
                    if of_file != before {
                        before = of_file.to_string();
                        of_part.insert(before.clone());
                    }
                    if keys.contains(of_file) {
                        each(&named(&file, partial(&batch, row))?);
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

/// A transfer from its columns; an error if no source has the name that it has.
fn partial(batch: &arrow_array::RecordBatch, row: usize) -> io::Result<Transfer> {
    use arrow_array::types::{Float64Type, UInt64Type};
    use slowstart::units::Bytes;
    use slowstart_replay::transfer::ExitRecord;
    let of = |name| column(batch, name, row);
    let whole = |name| of(name).and_then(|c| c.as_primitive_opt::<UInt64Type>()).map(|c| c.value(row));
    let real = |name| of(name).and_then(|c| c.as_primitive_opt::<Float64Type>()).map(|c| c.value(row));
    let mss = Bytes(whole("mss_bytes").unwrap_or(0));
    let mut t = Transfer::new(
        serde_json::from_value(text(batch, "source", row).into())?,
        whole("connection").unwrap_or(0),
        mss,
    );
    t.file = Some(text(batch, "file", row).to_string());
    t.duration_s = real("duration_s").unwrap_or(0.0);
    t.bytes = whole("bytes");
    let exit = real("exit_time_s").zip(whole("exit_cwnd_bytes"));
    t.exit = exit.map(|(time_s, cwnd_bytes)| ExitRecord { time_s, cwnd_bytes, evidence: String::new() });
    t.certain = of("certain").and_then(|c| c.as_boolean_opt()).is_some_and(|c| c.value(row));
    t.class = serde_json::from_value(text(batch, "class", row).into()).unwrap_or(t.class);
    t.limits = serde_json::from_str(text(batch, "held", row)).ok().flatten();
    t.startups = serde_json::from_str(text(batch, "startups", row)).unwrap_or_default();
    Ok(t)
}

/// The most bytes of the records of a part.
const MOST_RECORDS: u64 = 1 << 28;

/// The records of a part.
fn records_of(file: &Path) -> Result<Vec<FileRecord>, StoreError> {
    let text =
        named(file, slowstart_files::open(file).and_then(|f| slowstart_files::read_from(f, MOST_RECORDS)))?;
    let text = named(file, String::from_utf8(text).map_err(io::Error::other))?;
    text.lines().map(|l| named(file, serde_json::from_str(l).map_err(io::Error::from))).collect()
}

/// Opens a store of captures to write into it; an empty or missing folder becomes one.
///
/// # Errors
/// If the folder holds anything else, or a store of another version or of sweeps; nothing is changed then.
pub fn create(dir: &Path) -> Result<Store, StoreError> {
    Store::create_of(dir, Holds::Captures)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn names_that_are_no_text_have_keys_of_their_own() {
        let named = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let files = [named(b"/nonexistent/a\xfe"), named(b"/nonexistent/a\xff")];
        let all = Captures::new(&files, &[], &Options::default());
        assert_ne!(all.files[0].key, all.files[1].key);
    }
}
