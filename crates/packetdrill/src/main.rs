//! Runs packetdrill scripts: `cargo run -p slowstart-packetdrill -- FILE.pkt ..`.

use anyhow::{Context, Result, bail};
use clap::Parser;
use slowstart::units::Span;
use slowstart_packetdrill::{parse, run};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run packetdrill scripts against the simulated TCP endpoint
///
/// docs/dev/packetdrill.md says which part of the language is supported.
#[derive(Parser)]
#[command(after_help = "Exit status: 0 if every script passes, 1 if one fails, 2 if one cannot be read.")]
struct Args {
    /// Scripts in packetdrill's language, such as crates/packetdrill/tests/scripts/grows.pkt
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compare adjacent packets as ranges of bytes, and ignore the PSH flag
    #[arg(long)]
    ranges: bool,
    /// Greatest difference between the time of an event and the time in the script, in microseconds
    /// [default: as the script says, else 4000]
    #[arg(long, value_name = "N")]
    tolerance_usecs: Option<u32>,
}

fn main() -> ExitCode {
    match checked(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("packetdrill: {e:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs every script; true if all hold.
fn checked(args: &Args) -> Result<bool> {
    let mut scripts = Vec::new();
    for file in &args.files {
        let text = slowstart_files::read_text(file, slowstart_files::MOST_TEXT)
            .with_context(|| file.display().to_string())?;
        match parse::script(&text) {
            Ok(s) => scripts.push((file.display(), s)),
            Err(e) => bail!("{}:{e}", file.display()),
        }
    }
    let tolerance = args.tolerance_usecs.map(|n| Span::micros(u64::from(n)));
    let mut failed = 0;
    for (file, script) in &scripts {
        match run::run(script, args.ranges, tolerance) {
            Ok(()) => println!("pass  {file}"),
            Err(e) => {
                failed += 1;
                println!("FAIL  {file}:{e}");
            }
        }
    }
    println!("{} of {} pass", scripts.len() - failed, scripts.len());
    Ok(failed == 0)
}
