//! The folder of `--out`: rows as they finish, everything else at the end.
//!
//! A folder that slowstart wrote holds [`MARKER`], which says what it is of. Rows are appended to
//! `results.jsonl` one write each. Every other file is written under a temporary name and renamed, so that a
//! reader never sees half of one and a symbolic link is replaced, not followed.

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slowstart_files::{Lock, LockError, MOST_TEXT, WholeFile, read_from};
use slowstart_replay::limits::LONGEST;
use slowstart_study::engines::Engine;
use slowstart_study::record::{Row, Trace};
use slowstart_study::scenario::Study;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a lock may outlive the command that held it: if it was killed as it started a program, the child has its
/// descriptors until that program begins.
const RELEASE: Duration = Duration::from_secs(1);
/// The file that marks a folder as one of slowstart's.
const MARKER: &str = "slowstart.json";
/// The file of the rows.
pub(crate) const ROWS: &str = "results.jsonl";
/// What the names of the files of samples and of events of single runs begin with.
const SAMPLES: &str = "samples";
const EVENTS: &str = "events";
/// The lock of the process that writes there.
const LOCK: &str = ".slowstart-lock";

/// What a folder is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// The version that wrote it.
    pub version: String,
    /// The command line, for people.
    pub command: String,
    /// A digest of the checked study; `None` if the folder is of another command.
    pub study: Option<String>,
}

impl Contents {
    /// The contents that this command line writes.
    pub(crate) fn of_command() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_string(),
            command: crate::output::command(),
            study: None,
        }
    }

    /// The contents of a study that an engine runs: with the same digest, rows of one belong to the other.
    pub(crate) fn of_study(engine: &dyn Engine, study: &Study) -> Self {
        Self::of_studies(std::iter::once((engine, study)))
    }

    /// The contents of several studies.
    pub(crate) fn of_studies<'a>(studies: impl Iterator<Item = (&'a dyn Engine, &'a Study)>) -> Self {
        Self { study: Some(digest(studies)), ..Self::of_command() }
    }

    /// True if rows of one belong to the other.
    fn same(&self, other: &Self) -> bool {
        self.version == other.version
            && match (&self.study, &other.study) {
                (Some(a), Some(b)) => a == b,
                (None, None) => self.command == other.command,
                _ => false,
            }
    }
}

/// FNV-1a over each engine's identity, if it is not the simulator, and the debug text of its study, which shows
/// every field of the checked study.
fn digest<'a>(studies: impl Iterator<Item = (&'a dyn Engine, &'a Study)>) -> String {
    struct Fnv(u64);
    impl std::fmt::Write for Fnv {
        fn write_str(&mut self, s: &str) -> std::fmt::Result {
            for b in s.bytes() {
                self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for (engine, study) in studies {
        let is_simulator = engine.name() == slowstart_study::measured::SIMULATOR;
        let engine = if is_simulator { String::new() } else { engine.identity() };
        write!(hash, "{engine}{study:?}").expect("hashing does not fail");
    }
    format!("{:016x}", hash.0)
}

/// Makes a folder for the results of this command line, and marks it as one of slowstart's. Fails if it holds
/// anything else.
#[cfg(feature = "kernel")]
pub(crate) fn claim(dir: &Path) -> Result<()> {
    let contents = Contents::of_command();
    slowstart_files::Folder::create(dir).with_context(|| format!("--out {}", dir.display()))?;
    if Folder::is_fresh(dir, &contents)? {
        write_whole(dir, MARKER, |out| Ok(serde_json::to_writer(out, &contents)?))?;
    }
    Ok(())
}

/// Takes the lock of a folder that others may write results to; `None` on a file system without locks.
pub(crate) fn lock(dir: &Path) -> Result<Option<Lock>> {
    let files = slowstart_files::Folder::open(dir).with_context(|| format!("--out {}", dir.display()))?;
    match files.lock(LOCK, RELEASE) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held(by)) => {
            let by = by.map_or_else(String::new, |n| format!(", process {n}"));
            bail!("--out {}: another slowstart is writing there{by}", dir.display())
        }
        Err(LockError::Io(_)) => Ok(None),
    }
}

/// A folder of results, locked against other processes.
pub(crate) struct Folder {
    dir: PathBuf,
    /// `results.jsonl`, whose first `len` bytes are whole rows.
    rows: File,
    len: u64,
    _lock: Option<Lock>,
}

impl Folder {
    /// Opens the folder of a command that cannot be continued. Other results of the same command line are
    /// replaced, but not finished runs. Fails if the folder holds anything else.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        let (folder, rows) = Self::open::<Row>(dir, &Contents::of_command(), false)?;
        if !rows.is_empty() {
            bail!(
                "--out {}: the folder holds {} finished runs; choose another folder",
                dir.display(),
                rows.len()
            );
        }
        Ok(folder)
    }

    /// Opens the folder of `contents` and returns it with what is there already of runs, whole lines only.
    /// Fails if the folder holds anything else; with `force`, what slowstart writes there is replaced.
    pub(crate) fn open<T: DeserializeOwned>(
        dir: &Path,
        contents: &Contents,
        force: bool,
    ) -> Result<(Self, Vec<T>)> {
        slowstart_files::Folder::create(dir).with_context(|| format!("--out {}", dir.display()))?;
        let mark = || write_whole(dir, MARKER, |out| Ok(serde_json::to_writer(out, contents)?));
        // The marker comes first, so that a process killed here leaves a folder that is known to be ours.
        if !force && Self::is_fresh(dir, contents)? {
            mark()?;
        }
        let file = dir.join(ROWS);
        let named = || file.display().to_string();
        if fs::symlink_metadata(&file).is_ok_and(|m| !m.is_file()) {
            if !force {
                bail!("{}: not a regular file; --out writes into a folder of its own", file.display());
            }
            fs::remove_file(&file).with_context(named)?;
        }
        let rows = slowstart_files::append(&file).with_context(named)?;
        let lock = lock(dir)?;
        // Not before the lock: another process may be writing there.
        if force {
            rows.set_len(0).with_context(named)?;
            mark()?;
        }
        // Temporary files of a process that was killed.
        for stale in fs::read_dir(dir).with_context(named)?.flatten() {
            if stale.file_name().to_string_lossy().starts_with(TEMPORARY) && stale.file_name() != LOCK {
                let _ = fs::remove_file(stale.path());
            }
        }
        let (read, len) = whole_rows(&rows).with_context(named)?;
        let mut folder = Self { dir: dir.to_path_buf(), rows, len, _lock: lock };
        folder.truncate(len)?;
        Ok((folder, read))
    }

    /// True if nothing of an earlier start is to be kept; an error if the folder holds something else.
    fn is_fresh(dir: &Path, contents: &Contents) -> Result<bool> {
        let marker = dir.join(MARKER);
        let text = match slowstart_files::open(&marker).and_then(|f| read_from(f, MOST_TEXT)) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let empty = fs::read_dir(dir)
                    .with_context(|| format!("--out {}", dir.display()))?
                    .all(|f| f.is_ok_and(|f| f.file_name().to_string_lossy().starts_with(TEMPORARY)));
                if empty {
                    return Ok(true);
                }
                bail!(
                    "--out {}: the folder has files in it and no {MARKER}, so slowstart did not write it; choose \
                     another folder",
                    dir.display()
                );
            }
            Err(e) => return Err(e).with_context(|| marker.display().to_string()),
        };
        let there: Contents =
            serde_json::from_slice(&text).with_context(|| format!("{}: not readable", marker.display()))?;
        if !there.same(contents) {
            bail!(
                "--out {}: the folder holds another result, of slowstart {}: {}; choose another folder{}",
                dir.display(),
                there.version,
                there.command,
                if contents.study.is_some() { ", or replace it with --force" } else { "" }
            );
        }
        Ok(false)
    }

    /// Keeps the first `len` bytes of the rows.
    fn truncate(&mut self, len: u64) -> Result<()> {
        self.len = len;
        self.rows.set_len(len).with_context(|| self.dir.join(ROWS).display().to_string())
    }

    /// Appends a row, or whatever else is of a run. If it cannot be written whole, for example because the disk is full, none of it stays.
    pub(crate) fn row(&mut self, row: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_string(row)?;
        line.push('\n');
        if let Err(e) = self.rows.write_all(line.as_bytes()) {
            let _ = self.rows.set_len(self.len);
            return Err(e).with_context(|| self.dir.join(ROWS).display().to_string());
        }
        self.len += line.len() as u64;
        Ok(())
    }

    /// Keeps samples and events of row `n`, whose run cannot be repeated, before the row is added.
    pub(crate) fn add_trace(&self, n: usize, trace: &Trace) -> Result<()> {
        self.bytes(&trace_file(EVENTS, n), &packed(&trace.events)?)?;
        self.bytes(&trace_file(SAMPLES, n), &packed(&trace.samples)?)
    }

    /// Reads the samples and events of row `n` again.
    pub(crate) fn trace(&self, n: usize) -> Result<Trace> {
        Ok(Trace {
            samples: self.unpacked(&trace_file(SAMPLES, n))?,
            events: self.unpacked(&trace_file(EVENTS, n))?,
            ..Trace::default()
        })
    }

    /// Reads a file of [`packed`] values.
    fn unpacked<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>> {
        let file = self.dir.join(name);
        let packed = slowstart_files::open(&file).with_context(|| file.display().to_string())?;
        let read = || {
            let (mut packed, mut line) = (BufReader::new(GzDecoder::new(packed)), Vec::new());
            let mut all = Vec::new();
            while slowstart_files::line(&mut packed, LONGEST as u64, &mut line)? > 0 {
                all.push(serde_json::from_slice(&line)?);
            }
            anyhow::Ok(all)
        };
        read().with_context(|| format!("{}: not of a run", file.display()))
    }

    /// Writes a file of JSON lines.
    pub(crate) fn lines<T: Serialize>(&self, name: &str, lines: impl Iterator<Item = T>) -> Result<()> {
        write_whole(&self.dir, name, |out| {
            for line in lines {
                serde_json::to_writer(&mut *out, &line)?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })
    }

    /// Writes a file of text.
    pub(crate) fn text(&self, name: &str, text: &str) -> Result<()> {
        self.bytes(name, text.as_bytes())
    }

    /// Writes a file.
    pub(crate) fn bytes(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write_bytes(&self.dir, name, bytes)
    }
}

/// The file of the samples or events of row `n`, counted from 0.
fn trace_file(what: &str, n: usize) -> String {
    format!("{what}-{n:03}.jsonl.gz")
}

/// JSON lines, compressed.
fn packed<T: Serialize>(all: &[T]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    for one in all {
        serde_json::to_writer(&mut packed, one)?;
        packed.write_all(b"\n")?;
    }
    Ok(packed.finish()?)
}

/// How the names of temporary files begin.
const TEMPORARY: &str = ".slowstart-";

/// Writes a file under a temporary name and renames it. On an error nothing of it stays.
pub(crate) fn write_whole(
    dir: &Path,
    name: &str,
    write: impl FnOnce(&mut BufWriter<WholeFile>) -> Result<()>,
) -> Result<()> {
    let target = dir.join(name);
    let attempt = || -> Result<()> {
        let mut out = BufWriter::new(WholeFile::beside(&target)?);
        write(&mut out)?;
        Ok(out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?)
    };
    attempt().with_context(|| target.display().to_string())
}

/// Writes a file of a folder whole; a symbolic link of that name is replaced.
pub(crate) fn write_bytes(dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    write_whole(dir, name, |out| Ok(out.write_all(bytes)?))
}

/// Writes a file that a person named. One of that name that is there is refused, whatever it is.
pub(crate) fn write_new(file: &Path, text: &str) -> Result<()> {
    refuse_existing(file)?;
    let write = || -> io::Result<()> {
        let mut out = WholeFile::beside(file)?;
        out.write_all(text.as_bytes())?;
        out.finish_new()
    };
    write().with_context(|| file.display().to_string())
}

/// Fails if there is anything of this name, a symbolic link to nothing included: nothing that slowstart
/// writes to a file replaces what a person has.
pub(crate) fn refuse_existing(file: &Path) -> Result<()> {
    if fs::symlink_metadata(file).is_ok() {
        bail!("{}: it exists, and is not replaced; choose another name or remove it", file.display());
    }
    Ok(())
}

/// The rows of a file and the length of the part that holds them: it ends before the first line that is cut,
/// too long or no row.
fn whole_rows<T: DeserializeOwned>(file: &File) -> io::Result<(Vec<T>, u64)> {
    let mut reader = BufReader::new(file);
    let (mut rows, mut len, mut line) = (Vec::new(), 0, Vec::new());
    loop {
        let read = slowstart_files::line(&mut reader, LONGEST as u64, &mut line)?;
        match serde_json::from_slice(&line) {
            Ok(row) if line.ends_with(b"\n") => rows.push(row),
            _ => return Ok((rows, len)),
        }
        len += read as u64;
    }
}

/// A folder's name from a name that a person wrote: one component that is not hidden. `None` if nothing is
/// left.
pub(crate) fn folder_name(text: &str) -> Option<String> {
    let kept = |c: char| if c.is_alphanumeric() || "._+".contains(c) { c } else { '-' };
    let name: String = text.chars().map(kept).take(100).collect();
    let name = name.trim_matches(['.', '-']);
    (!name.is_empty()).then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_stay_inside_their_folder() {
        assert_eq!(folder_name("geo").as_deref(), Some("geo"));
        assert_eq!(folder_name("rate=50Mbit rtt=80ms").as_deref(), Some("rate-50Mbit-rtt-80ms"));
        assert_eq!(folder_name("../../etc").as_deref(), Some("etc"));
        assert_eq!(folder_name(".."), None);
        assert_eq!(folder_name("a/b\x1b").as_deref(), Some("a-b"));
    }
}
