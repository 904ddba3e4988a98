//! `slowstart packetdrill`: scripts of packets against the simulated endpoint.

use crate::output::print;
use anyhow::{Context, Result, bail};
use clap::Args;
use slowstart::units::Span;
use slowstart_lab::packetdrill::{parse, run};
use std::path::PathBuf;

/// Runs scripts in packetdrill's language against the simulated endpoint.
///
/// Exit status 1 if one does not hold, 2 if one cannot be read.
///
/// Examples:
///   slowstart packetdrill script.pkt
///   slowstart packetdrill --ranges scripts/*.pkt
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Packetdrill {
    /// Scripts
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Compares adjacent packets as ranges of bytes, and ignores PSH
    #[arg(long)]
    ranges: bool,
    /// How far from its time an event may be, microseconds [default: what the script says, else 4000]
    #[arg(long)]
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
                Ok(()) => print(&format!("pass  {}", file.display()))?,
                Err(e) => {
                    failed += 1;
                    print(&format!("FAIL  {}:{e}", file.display()))?;
                }
            }
        }
        print(&format!("{} of {} pass", scripts.len() - failed, scripts.len()))?;
        Ok(failed == 0)
    }
}
