//! Standard output and standard error: lines, the progress bar, notes, colour and width.

use crate::printable::{printable_lines, printed};
use anyhow::{Context, Result};
use clap::ColorChoice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use slowstart_study::words::{TIE, tied};
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// Columns of a table where standard output is no terminal. It is fixed so that the output does not depend on
/// the machine.
pub(crate) const WIDTH: usize = 100;
/// The narrowest table.
const LEAST_WIDTH: usize = 40;

/// What the global arguments say about output.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Settings {
    /// Whether bold text is used.
    pub color: ColorChoice,
    /// Whether the progress bar, legends and notes are left out.
    pub quiet: bool,
    /// Whether legends are whole on a terminal too.
    pub verbose: bool,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Stores the settings; the first call counts.
pub(crate) fn configure(settings: Settings) {
    SETTINGS.get_or_init(|| settings);
}

fn settings() -> Settings {
    *SETTINGS.get().unwrap_or(&Settings { color: ColorChoice::Auto, quiet: false, verbose: false })
}

/// True if only results and errors are printed.
pub(crate) fn quiet() -> bool {
    settings().quiet
}

/// True if -v was given.
pub(crate) fn verbose() -> bool {
    settings().verbose
}

/// True if a legend is short: on a terminal, which shows the end of what is printed.
pub(crate) fn brief() -> bool {
    io::stdout().is_terminal() && !settings().verbose
}

/// Prints a verdict, in bold if standard output takes that.
pub(crate) fn print_verdict(text: &str) -> Result<()> {
    let text = wrap(text, 0);
    if !color() {
        return print(&text);
    }
    // Line by line, so that a pager keeps it.
    let bold: Vec<String> = text.lines().map(|l| format!("\x1b[1m{l}\x1b[0m")).collect();
    print(&bold.join("\n"))
}

/// True if standard output takes escape sequences for bold text. `NO_COLOR` counts if it is not empty
/// (no-color.org).
pub(crate) fn color() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    match settings().color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            io::stdout().is_terminal()
                && !set("NO_COLOR")
                && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
        }
    }
}

/// Columns of standard output: those of the terminal or, if it does not know its size, of `COLUMNS`;
/// [`WIDTH`] where it is none.
pub(crate) fn width() -> usize {
    if !io::stdout().is_terminal() {
        return WIDTH;
    }
    let known = terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0));
    let said = || std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    known.or_else(said).unwrap_or(WIDTH).max(LEAST_WIDTH)
}

/// `text` in lines of at most [`width`] columns; lines after the first are indented.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    fill(text, width(), indent)
}

fn fill(text: &str, width: usize, indent: usize) -> String {
    let indent = " ".repeat(indent);
    let options = textwrap::Options::new(width).subsequent_indent(&indent).break_words(false);
    // Names such as linux-6.18 stay whole.
    let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation);
    untied(&textwrap::fill(&tied(text), options))
}

/// `text` without ties.
pub(crate) fn untied(text: &str) -> String {
    text.replace(TIE, " ")
}

/// A progress bar of runs on standard error if that is a terminal.
pub(crate) fn progress(runs: u64) -> ProgressBar {
    progress_of(runs, "runs")
}

/// A progress bar of `what`.
pub(crate) fn progress_of(number: u64, what: &str) -> ProgressBar {
    let shown = io::stderr().is_terminal() && !quiet();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {what}, {{eta}} left"))
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(number), target).with_style(style)
}

/// Prints lines on standard output, without what a terminal would act on but our own bold text and colour.
pub(crate) fn print(lines: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", printed(lines, color())).context("standard output")
}

/// Prints a message on standard error.
pub(crate) fn note(text: &str) {
    if !quiet() {
        tell(text);
    }
}

/// Prints a message on standard error, where that is a terminal in lines of its width.
pub(crate) fn tell(text: &str) {
    let text = format!("slowstart: {}", printable_lines(text));
    let columns = io::stderr().is_terminal().then(|| terminal_size::terminal_size_of(io::stderr())).flatten();
    match columns.map(|(columns, _)| usize::from(columns.0)).filter(|n| *n >= LEAST_WIDTH) {
        Some(columns) => write_error(&fill(&text, columns, 2)),
        None => write_error(&text),
    }
}

/// Writes a line on standard error. If nobody reads it, or its disk is full, that ends nothing.
pub(crate) fn write_error(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// True if the error is that the reader of standard output has closed it.
pub(crate) fn is_closed_pipe(e: &anyhow::Error) -> bool {
    let kind = |c: &(dyn std::error::Error + 'static)| {
        let json = c.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        let csv = c.downcast_ref::<csv::Error>().and_then(|e| match e.kind() {
            csv::ErrorKind::Io(e) => Some(e.kind()),
            _ => None,
        });
        c.downcast_ref::<io::Error>().map(io::Error::kind).or(json).or(csv)
    };
    e.chain().filter_map(kind).any(|k| k == io::ErrorKind::BrokenPipe)
}

/// The command line, as it can be typed again.
pub(crate) fn command() -> String {
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|a| a.to_string_lossy().into_owned())
        .map(|a| if a.contains([' ', '*', '&']) { format!("\"{a}\"") } else { a })
        .collect();
    format!("slowstart {}", args.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::words::UNITS;

    #[test]
    fn a_closed_pipe_is_known_inside_an_error_of_csv() {
        let error = |kind| csv::Error::from(io::Error::from(kind)).into();
        assert!(is_closed_pipe(&error(io::ErrorKind::BrokenPipe)));
        assert!(!is_closed_pipe(&error(io::ErrorKind::StorageFull)));
    }

    /// At each width, whatever stands before and behind.
    #[test]
    fn a_number_and_its_unit_stay_on_one_line() {
        let text = "hystart takes 53 % less time (48 to 58 %), in 10 s; up to 949 ms, at 74.6 Mbit/s over 3.0..28 BDP: a \
                    queue of 5 packets";
        for width in 14..120 {
            let lines = fill(text, width, 2);
            for unit in UNITS {
                assert!(
                    !lines
                        .lines()
                        .any(|l| l.trim_start().split([' ', ',', ';', ')', ':']).next() == Some(unit)),
                    "{lines}"
                );
            }
            assert_eq!(
                lines.split_whitespace().collect::<Vec<_>>().join(" "),
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            );
            assert!(lines.lines().all(|l| l.chars().count() <= width), "{width}: {lines}");
        }
        assert_eq!(tied("10 squares and 4 s\nx"), format!("10 squares and 4{TIE}s\nx"));
    }
}
