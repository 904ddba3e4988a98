//! `slowstart suite board`: several stored results of one suite side by side.

use super::{stored, suite};
use crate::folder::write_new;
use crate::output::print;
use anyhow::{Context, Result};
use clap::Args;
use slowstart_suite::report::board::{self, Stored};
use slowstart_suite::scenario::sha256;
use std::path::PathBuf;

/// Print several stored results side by side: one row an entrant, with the hash of what ran
///
/// All are of one suite, by its hash. A result whose verdicts do not follow from its
/// runs is refused.
///
/// Examples:
///   slowstart suite run --startup plugin:./mine.so --json mine.json
///   slowstart suite board mine.json theirs.json --html board.html
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Board {
    /// What `slowstart suite run --json FILE` wrote
    #[arg(value_name = "FILE", required = true)]
    results: Vec<PathBuf>,
    /// The file of the suite, if it is not the built-in suite
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write the board as one page to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Board {
    pub(super) fn main(&self) -> Result<()> {
        let suite = suite(self.file.as_ref())?;
        let read = |file: &PathBuf| {
            let (report, text) = stored(file)?;
            Ok(Stored { file: file.display().to_string(), sha256: sha256(text.as_bytes()), report })
        };
        let results = self.results.iter().map(read).collect::<Result<Vec<_>>>()?;
        let text = board::markdown(&suite, &results)?;
        if let Some(file) = &self.html {
            write_new(file, &board::html(&suite, &results)?).context("--html")?;
        }
        print(text.trim_end())
    }
}
