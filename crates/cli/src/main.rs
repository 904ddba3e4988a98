//! `slowstart`: which startup suits this path, and why.
//!
//! Argument parsing and printing only: what is computed, the laboratory computes.

mod analyse;
mod compare;
#[cfg(feature = "kernel")]
mod emulate;
mod interrupt;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(not(feature = "kernel"))]
#[path = "no_kernel.rs"]
mod kernel;
mod list;
mod output;
mod packetdrill;
mod printable;
#[cfg(feature = "kernel")]
mod prometheus;
mod replay;
mod reproduce;
#[cfg(feature = "kernel")]
mod signals;
mod spark;
mod table;
mod validate;
#[cfg(feature = "kernel")]
mod watch;
#[cfg(feature = "kernel")]
mod watch_json;
#[cfg(feature = "kernel")]
mod watch_state;

use clap::{Parser, Subcommand};
#[cfg(not(feature = "kernel"))]
use kernel as emulate;
use std::process::ExitCode;

/// Which startup suits this path, and why: slow start and its successors, compared on a deterministic simulator.
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare startups over a path
    Compare(Box<compare::Compare>),
    /// Run studies from files
    Run(compare::Run),
    /// Say when a connection of a capture left slow start, and when each startup would have
    Replay(replay::Replay),
    Validate(validate::Validate),
    Kernel(kernel::Kernel),
    Emulate(emulate::Emulate),
    /// Run packetdrill scripts against the simulated endpoint
    Packetdrill(packetdrill::Packetdrill),
    /// Run the experiments of the papers, and say which of their claims hold
    Reproduce(reproduce::Reproduce),
    /// Analyse what was recorded
    Analyse(analyse::Analyse),
    /// What there is, one line each with its source
    List(list::List),
}

fn main() -> ExitCode {
    let done: anyhow::Result<bool> = match Args::parse().command {
        Command::Compare(c) => c.main().map(|()| true),
        Command::Run(r) => r.main().map(|()| true),
        Command::Replay(r) => r.main().map(|()| true),
        Command::Validate(v) => v.main(),
        Command::Reproduce(r) => r.main(),
        Command::Analyse(a) => a.main().map(|()| true),
        Command::Kernel(k) => k.main().map(|()| true),
        Command::Emulate(e) => return end(e.main()),
        Command::List(l) => l.main().map(|()| true),
        Command::Packetdrill(p) => p.main(),
    };
    // A check that failed has status 1.
    end(done.map(|passed| if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}

fn end(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(status) => status,
        // A reader that closed the pipe early (`| head`) is no error.
        Err(e) if output::is_closed_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("slowstart: {}", printable::printable_lines(&format!("{e:#}")));
            ExitCode::from(e.downcast_ref().map_or(2, interrupt::Interrupted::status))
        }
    }
}
