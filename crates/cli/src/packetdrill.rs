//! `slowstart packetdrill`: packetdrill scripts against the simulated TCP endpoint.

use crate::output::print;
use crate::printable::printable;
use anyhow::{Context, Result, bail};
use clap::Args;
use slowstart::units::Span;
use slowstart_lab::packetdrill::{parse, run};
use std::path::PathBuf;

/// Run packetdrill scripts against the simulated TCP endpoint
///
/// docs/reference/packetdrill.md says which part of the language is supported.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart packetdrill crates/lab/tests/packetdrill/grows.pkt
  slowstart packetdrill --ranges --tolerance-usecs 10000 scripts/*.pkt

Exit status: 0 if every script passes, 1 if one fails, 2 if one cannot be read.")]
pub(crate) struct Packetdrill {
    /// Scripts in packetdrill's language, such as crates/lab/tests/packetdrill/grows.pkt
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compare adjacent packets as ranges of bytes, and ignore the PSH flag
    #[arg(long)]
    ranges: bool,
    /// Greatest difference between the time of an event and the time in the script, in microseconds [default: as the
    /// script says, else 4000]
    #[arg(long, value_name = "N")]
    tolerance_usecs: Option<u32>,
}

impl Packetdrill {
    pub(crate) fn main(&self) -> Result<bool> {
        let mut scripts = Vec::new();
        for file in &self.files {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            match parse::script(&text) {
                Ok(s) => scripts.push((file, s)),
                Err(e) => bail!("{}:{e}", file.display()),
            }
        }
        let mut failed = 0;
        for (file, script) in &scripts {
            let tolerance = self.tolerance_usecs.map(|n| Span::micros(u64::from(n)));
            match run::run(script, self.ranges, tolerance) {
                Ok(()) => print(&format!("pass  {}", printable(&file.display().to_string())))?,
                Err(e) => {
                    failed += 1;
                    print(&format!("FAIL  {}", printable(&format!("{}:{e}", file.display()))))?;
                }
            }
        }
        print(&format!("{} of {} pass", scripts.len() - failed, scripts.len()))?;
        Ok(failed == 0)
    }
}
