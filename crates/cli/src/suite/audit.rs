//! `slowstart suite audit`: whether what a startup does follows from its events alone.

use super::{Report, suite_text};
use crate::output::print;
use crate::study_args;
use anyhow::{Context, Result, bail};
use clap::Args;
use slowstart_files::TemporaryFolder;
use slowstart_suite::Suite;
use slowstart_suite::scenario::alone;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Find startups that read the path: what they do must follow from their events alone
///
/// Each scenario runs twice, in two processes. The first is told which scenario it is
/// and has its path in a file that the command names. The second has neither: the path
/// comes through a pipe under another name, in an empty environment and folder. The
/// values must be the same. What a library finds in the memory of the process, or in a
/// file that it wrote itself, is not seen; nor is one that knows a scenario by its RTT.
///
/// The exit status is 1 if a value differs.
///
/// Examples:
///   slowstart suite audit --startup plugin:./mine.so
///   slowstart suite audit --startup plugin:./mine.so --scenario short-1MB
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Audit {
    /// Startups, separated by commas, as `slowstart suite run` takes them
    #[arg(long, value_name = "STARTUP", required = true)]
    startup: Vec<String>,
    /// Only this scenario; may be repeated
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A suite file in place of the built-in suite
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Runs of each scenario: one shows a difference.
const RUNS: &str = "2";
/// What a process is not told.
const NAMELESS: &str = "a";

impl Audit {
    /// True if no value differs.
    pub(super) fn main(&self) -> Result<bool> {
        let text = suite_text(self.file.as_ref())?;
        let suite = Suite::read(&text)?;
        if let Some(unknown) = self.scenario.iter().find(|n| suite.scenarios.iter().all(|s| s.name != **n)) {
            bail!("--scenario: found {unknown:?}, expected a name that `slowstart suite list` shows");
        }
        let startups =
            study_args::startups(&self.startup).iter().map(|s| absolute(s)).collect::<Result<Vec<_>>>()?;
        let work = TemporaryFolder::create("audit").context("a folder for the runs")?;
        let (mut values, mut differ) = (0, Vec::new());
        for s in
            suite.scenarios.iter().filter(|s| self.scenario.is_empty() || self.scenario.contains(&s.name))
        {
            let told = alone(&text, &s.name, &s.name)?;
            let file = work.path().join(format!("{}.toml", s.name));
            fs::write(&file, &told)?;
            let open = self.run(&startups, &file, None, &work.path().join("told.json"))?;
            let nameless = alone(&text, &s.name, NAMELESS)?;
            let blind =
                self.run(&startups, Path::new("-"), Some(&nameless), &work.path().join("blind.json"))?;
            if open.entries.len() != blind.entries.len() {
                differ.push(format!(
                    "- {}: {} and {} criteria",
                    s.name,
                    open.entries.len(),
                    blind.entries.len()
                ));
            }
            for (a, b) in open.entries.iter().zip(&blind.entries) {
                values += a.values.len();
                if a.values != b.values {
                    differ.push(format!("- {}, {}: {}", a.startup, s.name, a.criterion));
                }
            }
        }
        if values == 0 {
            bail!("found no value to compare, expected a scenario that these startups can run");
        }
        if differ.is_empty() {
            print(&format!(
                "The same {values} values with and without the path in the command and its files."
            ))?;
            return Ok(true);
        }
        print(&format!(
            "What it does depends on more than its events: other values where neither the command nor a file names the path.\n{}",
            differ.join("\n")
        ))?;
        Ok(false)
    }

    /// Runs the one scenario of a file, or of a text on standard input, which the process is told nothing else of.
    fn run(&self, startups: &[String], file: &Path, hidden: Option<&str>, out: &Path) -> Result<Report> {
        let _ = fs::remove_file(out);
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["suite", "run", "--runs", RUNS, "--seed"]).arg(self.seed.to_string());
        command.arg("--file").arg(file).arg("--json").arg(out);
        for s in startups {
            command.arg("--startup").arg(s);
        }
        if hidden.is_some() {
            command.env_clear().current_dir("/");
        }
        let piped = if hidden.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = command.stdin(piped).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), hidden) {
            pipe.write_all(text.as_bytes())?;
        }
        let ended = child.wait_with_output()?;
        // 1 is a criterion that is not met.
        if !matches!(ended.status.code(), Some(0 | 1)) {
            bail!("{}", String::from_utf8_lossy(&ended.stderr).trim());
        }
        Ok(super::stored(out)?.0)
    }
}

/// A startup with the whole path of its library, which another folder does not change.
fn absolute(startup: &str) -> Result<String> {
    let Some(file) = startup.strip_prefix("plugin:") else { return Ok(startup.to_string()) };
    let full = fs::canonicalize(file).with_context(|| startup.to_string())?;
    Ok(format!("plugin:{}", full.display()))
}
