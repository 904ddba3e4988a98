//! `slowstart`: which startup suits a path, and why.
//!
//! The command line: arguments, printing and files. The computations are in the library crates.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod advise;
mod columns;
mod compare;
mod comparison;
mod condensed;
mod diff;
#[cfg(feature = "kernel")]
mod emulate;
mod engine;
mod explain;
mod fit;
mod folder;
mod interrupt;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(not(feature = "kernel"))]
#[path = "no_kernel.rs"]
mod kernel;
#[cfg(feature = "kernel")]
mod kernel_memory;
mod kernel_patch;
mod league;
mod list;
mod output;
mod paths_summary;
mod pool;
mod printable;
#[cfg(feature = "kernel")]
mod prometheus;
mod replay;
mod reproduce;
mod row_output;
mod run_args;
mod sampled_runs;
mod shell;
#[cfg(feature = "kernel")]
mod signals;
mod study_args;
mod suite;
#[cfg(not(feature = "sweep"))]
#[path = "no_sweep.rs"]
mod sweep;
#[cfg(feature = "sweep")]
mod sweep;
mod table;
#[cfg(feature = "kernel")]
mod trial;
#[cfg(feature = "kernel")]
mod trial_folder;
#[cfg(feature = "kernel")]
mod trial_output;
mod usage;
mod validate;
mod vectors;
#[cfg(feature = "kernel")]
mod watch;
#[cfg(feature = "kernel")]
mod watch_json;
#[cfg(feature = "kernel")]
mod watch_state;

use anyhow::Context;
use clap::builder::styling::{Style, Styles};
use clap::{ColorChoice, CommandFactory, Parser, Subcommand};
#[cfg(not(feature = "kernel"))]
use kernel as emulate;
use std::process::ExitCode;

/// Bold and underlined text only: yellow cannot be read on white, nor blue on black.
const STYLES: Styles = Styles::plain()
    .header(Style::new().bold().underline())
    .usage(Style::new().bold().underline())
    .literal(Style::new().bold())
    .error(Style::new().bold())
    .valid(Style::new().bold())
    .invalid(Style::new().bold());

/// Compare slow start and its successors: which startup suits a path, and why
///
/// A startup is what a transport connection does until it has found the capacity of its path. slowstart runs
/// startups in a deterministic simulator, on recorded connections and in the Linux kernel.
#[derive(Parser)]
#[command(
    name = "slowstart",
    version = env!("SLOWSTART_VERSION"),
    max_term_width = 100,
    styles = STYLES,
    after_help = "Examples:
  slowstart compare                     what each startup gains and costs over common paths
  slowstart compare geo                 the same over a satellite path, in detail
  slowstart explain geo hystart         one run, step by step
  slowstart list paths                  the built-in paths

The terms are explained in docs/reference/glossary.md."
)]
struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print bold text: `auto` does if standard output is a terminal and `NO_COLOR` is not set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    color: ColorChoice,
    /// Print results and errors only: no progress bar, legend or notes
    #[arg(long, short, global = true, help_heading = "Global options")]
    quiet: bool,
    /// Explain everything below a table, also on a terminal, where two lines are the default, and show what
    /// limited each sender and what dropped its packets
    #[arg(long, short, global = true, conflicts_with = "quiet", help_heading = "Global options")]
    verbose: bool,
    /// Number of runs at a time [default: one for each processor]. Results do not depend on it
    #[arg(long, short, global = true, value_name = "N", help_heading = "Global options",
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

#[derive(Subcommand)]
enum Command {
    Compare(Box<compare::Compare>),
    Run(compare::Run),
    Sweep(Box<sweep::Sweep>),
    Explain(explain::Explain),
    Diff(diff::Diff),
    League(league::League),
    Replay(replay::Replay),
    Advise(advise::Advise),
    Fit(fit::Fit),
    Validate(validate::Validate),
    Kernel(kernel::Kernel),
    KernelPatch(kernel_patch::KernelPatch),
    Trial(pool::Trials),
    Emulate(emulate::Emulate),
    Reproduce(reproduce::Reproduce),
    List(list::List),
    Suite(suite::SuiteArgs),
    Vectors(vectors::Vectors),
    Completions(shell::Completions),
    Man(shell::Man),
}

fn main() -> ExitCode {
    if let Some(status) = slowstart_engines::guest() {
        return status;
    }
    #[cfg(feature = "sweep")]
    sweep::refuse_damage();
    let args: Args = usage::arguments();
    if let Some(commit) = option_env!("SLOWSTART_COMMIT") {
        slowstart_study::measured::set_commit(commit);
    }
    output::configure(output::Settings { color: args.color, quiet: args.quiet, verbose: args.verbose });
    end(run(args))
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(n) = args.jobs {
        rayon::ThreadPoolBuilder::new().num_threads(n.into()).build_global().context("--jobs")?;
    }
    let passed = match args.command {
        Command::Compare(c) => c.main().map(|()| true),
        Command::Run(r) => r.main().map(|()| true),
        Command::Sweep(s) => s.main().map(|()| true),
        Command::Explain(e) => e.main().map(|()| true),
        Command::Diff(d) => d.main(),
        Command::League(l) => l.main(),
        Command::Replay(r) => r.main().map(|()| true),
        Command::Advise(a) => a.main().map(|()| true),
        Command::Fit(f) => f.main().map(|()| true),
        Command::Validate(v) => v.main(),
        Command::Reproduce(r) => r.main(),
        Command::Kernel(k) => k.main().map(|()| true),
        Command::KernelPatch(p) => p.main().map(|()| true),
        Command::Trial(t) => t.main(),
        Command::Emulate(e) => return e.main(),
        Command::List(l) => l.main().map(|()| true),
        Command::Suite(s) => s.main(),
        Command::Vectors(v) => v.main().map(|()| true),
        Command::Completions(c) => c.main(Args::command()).map(|()| true),
        Command::Man(m) => m.main(Args::command()).map(|()| true),
    }?;
    // A check that failed has status 1.
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn end(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(status) => status,
        // A reader that closed the pipe early (`| head`) is no error.
        Err(e) if output::is_closed_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            let text = format!("{e:#}");
            output::tell(&usage::shown(&text));
            ExitCode::from(e.downcast_ref().map_or(2, interrupt::Interrupted::status))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command, with those within a command.
    fn all(command: &clap::Command, name: &str, found: &mut Vec<(String, clap::Command)>) {
        for sub in command.get_subcommands() {
            let name = format!("{name} {}", sub.get_name());
            found.push((name.clone(), sub.clone()));
            all(sub, &name, found);
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_argument_is_described() {
        let mut found = Vec::new();
        all(&Args::command(), "slowstart", &mut found);
        for (name, command) in found {
            assert!(command.get_about().is_some(), "{name}: no description");
            for arg in command.get_arguments() {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.split_whitespace().count() >= 2, "{name}: {}: {help:?}", arg.get_id());
            }
        }
    }
}
