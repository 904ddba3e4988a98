//! Where results go: rows to a file as they come, the page at the end.

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use slowstart_lab::record::Row;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// A folder of results.
pub(crate) struct Folder {
    dir: PathBuf,
    rows: File,
}

impl Folder {
    /// Makes the folder, with no rows in it.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("--out {}", dir.display()))?;
        let file = dir.join("results.jsonl");
        let rows = File::create(&file).with_context(|| file.display().to_string())?;
        Ok(Self { dir: dir.to_path_buf(), rows })
    }

    /// Appends a row: what is killed loses at most the run in flight.
    pub(crate) fn row(&mut self, row: &Row) -> Result<()> {
        let mut line = serde_json::to_string(row)?;
        line.push('\n');
        self.rows
            .write_all(line.as_bytes())
            .with_context(|| self.dir.join("results.jsonl").display().to_string())
    }

    /// Writes a file of JSON lines.
    pub(crate) fn lines<T: Serialize>(&self, name: &str, lines: impl Iterator<Item = T>) -> Result<()> {
        let file = self.dir.join(name);
        let write = || -> Result<()> {
            let mut out = BufWriter::new(File::create(&file)?);
            for line in lines {
                serde_json::to_writer(&mut out, &line)?;
                out.write_all(b"\n")?;
            }
            Ok(out.flush()?)
        };
        write().with_context(|| file.display().to_string())
    }

    /// Writes a file of text.
    pub(crate) fn text(&self, name: &str, text: &str) -> Result<()> {
        self.bytes(name, text.as_bytes())
    }

    /// Writes a file.
    pub(crate) fn bytes(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let file = self.dir.join(name);
        fs::write(&file, bytes).with_context(|| file.display().to_string())
    }
}

/// A bar on a terminal, nothing in a pipe.
pub(crate) fn progress(runs: u64) -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(runs), target).with_style(style)
}

/// A line on standard output.
pub(crate) fn print(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(())
}

/// Whether the reader of standard output has gone.
pub(crate) fn is_closed_pipe(e: &anyhow::Error) -> bool {
    e.chain().filter_map(|c| c.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
