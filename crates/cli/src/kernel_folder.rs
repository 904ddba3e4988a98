//! The folder of `--out` for runs on the running kernel: a second start of the same command continues it.
//!
//! A run on the kernel cannot be computed again as the simulator's can. Each is kept whole when it ends: first its samples,
//! in a file of their own, then its row. The rows say which runs are finished.

use crate::folder::{Contents, Folder};
use crate::output::note;
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use slowstart_lab::record::{Row, Sample, Trace};
use slowstart_lab::run::{Job, Outcome};
use slowstart_linux::Check;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;

/// A folder whose rows are asked for and added in one order, that of the command's runs.
pub(crate) struct KernelFolder {
    folder: Folder,
    /// Rows of an earlier start.
    earlier: Vec<Row>,
    /// Rows asked for or added.
    at: usize,
}

impl KernelFolder {
    /// Opens the folder of this command line. Fails if it holds anything else, or runs of another kernel; with `force`,
    /// what slowstart wrote there is replaced.
    pub(crate) fn open(dir: &Path, force: bool) -> Result<Self> {
        let (folder, earlier) = Folder::open(dir, &Contents::of_command(), force)?;
        let release = Check::new().release;
        let on_kernel = || earlier.iter().filter(|r| r.engine == "kernel");
        if let Some(other) = on_kernel().find(|r| r.profile != release) {
            bail!(
                "--out {}: the folder holds runs of Linux {}, and this is Linux {release}; choose another folder",
                dir.display(),
                other.profile
            );
        }
        if !earlier.is_empty() {
            note(&format!("--out {}: {} finished runs are there", dir.display(), on_kernel().count()));
        }
        Ok(Self { folder, earlier, at: 0 })
    }

    /// Returns the next run, that of `job`: as an earlier start finished it, or else from `run`, and adds it.
    pub(crate) fn run(&mut self, job: Job, run: impl FnOnce() -> Result<Outcome>) -> Result<Outcome> {
        if let Some(outcome) = self.finished(job)? {
            return Ok(outcome);
        }
        let outcome = run()?;
        self.add(&outcome)?;
        Ok(outcome)
    }

    /// The next run if an earlier start finished it.
    fn finished(&mut self, job: Job) -> Result<Option<Outcome>> {
        let Some(row) = self.earlier.get(self.at).cloned() else { return Ok(None) };
        let file = samples_file(self.at);
        let packed = self.folder.read(&file)?;
        let lines = BufReader::new(GzDecoder::new(packed.as_slice())).lines();
        let samples: Result<Vec<Sample>> = lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect();
        let samples = samples.with_context(|| format!("{file}: not the samples of a run"))?;
        self.at += 1;
        Ok(Some(Outcome { job, row, trace: Trace { samples, ..Trace::default() } }))
    }

    fn add(&mut self, outcome: &Outcome) -> Result<()> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        for sample in &outcome.trace.samples {
            serde_json::to_writer(&mut packed, sample)?;
            packed.write_all(b"\n")?;
        }
        self.folder.bytes(&samples_file(self.at), &packed.finish()?)?;
        self.add_row(&outcome.row)
    }

    /// Adds a row whose run can be computed again, unless an earlier start did.
    pub(crate) fn add_row(&mut self, row: &Row) -> Result<()> {
        if self.earlier.get(self.at).is_none() {
            self.folder.row(row)?;
        }
        self.at += 1;
        Ok(())
    }

    /// The folder, for the files that are written at the end.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }
}

/// The file of the samples of row `n`, counted from 0.
fn samples_file(n: usize) -> String {
    format!("samples-{n:03}.jsonl.gz")
}
