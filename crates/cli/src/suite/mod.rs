//! `slowstart suite`: whether startups meet the criteria of RFC 9743.

mod audit;
mod board;
mod draft;
#[cfg(feature = "kernel")]
mod folder;
#[cfg(feature = "kernel")]
mod inside;
#[cfg(feature = "kernel")]
mod interop;
#[cfg(feature = "kernel")]
mod live;
mod screen;
mod stack;

use crate::engine::{EngineArg, interrupt_of};
use crate::folder::{refuse_existing, write_new};
use crate::interrupt::Interrupted;
use crate::output::{print, progress_of, wrap};
use crate::study_args;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use slowstart_study::scenario::StudyText;
use slowstart_study::words;
use slowstart_suite::entrant::sha256_of;
use slowstart_suite::judge::Verdict;
use slowstart_suite::run::{Entry, Settings};
use slowstart_suite::scenario::{STARTUP_1, Scenario};
use slowstart_suite::{Report, Suite, baseline, report};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Judge startups by the sections of RFC 9743
///
/// Examples:
///   slowstart suite list
///   slowstart suite run --startup search,hystart++ --html suite.html
///   slowstart suite run --startup search --against-baseline main.json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SuiteArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    List(List),
    Run(Box<Run>),
    Report(draft::ReportArgs),
    Board(board::Board),
    Audit(audit::Audit),
}

/// List the scenarios of a suite: sections of RFC 9743, questions and criteria
///
/// Examples:
///   slowstart suite list
///   slowstart suite list --file mine.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct List {
    /// A suite file in place of the built-in suite
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Run a suite and print its report: tables on a terminal, else Markdown
///
/// It judges startups, or a whole stack as it is: --serve and --fetch run at the
/// ends of each path on the real clock. Both are shell commands. The file to fetch
/// is $SLOWSTART_FILES/$SLOWSTART_SIZE of the server, whose address is
/// $SLOWSTART_SERVER.
///
/// The exit status is 1 if a criterion is not met (with `--against-baseline`: if
/// something became worse), and 2 if the suite could not run or the baseline cannot
/// be compared. The first Ctrl-C prints what is finished, with status 130. The same seed
/// gives the same report at virtual time.
///
/// Examples:
///   slowstart suite run --startup search,hystart++ --html suite.html
///   slowstart suite run --scenario geo --scenario leo --runs 30
///   slowstart suite run --startup search --json now.json --against-baseline main.json
///   slowstart suite run --startup search --engine quic:quinn
///   slowstart suite run --scenario short-1MB \
///     --serve 'python3 -m http.server 80 -d "$SLOWSTART_FILES"' \
///     --fetch 'curl -sSo /dev/null http://$SLOWSTART_SERVER/$SLOWSTART_SIZE'
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[allow(clippy::doc_markdown, reason = "help is no markdown")]
struct Run {
    /// Startups, separated by commas, each name, name:key=value or plugin:FILE, a library [default: all]
    #[arg(long, value_name = "STARTUP")]
    startup: Vec<String>,
    /// The avoidance that follows each
    #[arg(long, default_value = "cubic")]
    avoidance: String,
    #[command(flatten)]
    engine: EngineArg,
    #[command(flatten)]
    stack: stack::StackArgs,
    /// Only this scenario; may be repeated
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Runs of each scenario, in place of what the suite states
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A suite file in place of the built-in suite; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the report as KTAP, as the kernel's own tests do, in place of Markdown: a test for each criterion; what the
    /// runs leave open is skipped
    #[arg(long, conflicts_with = "against_baseline")]
    ktap: bool,
    /// Write the report as one page to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the report as JSON to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compare with the JSON of an earlier run, and tell what became worse
    #[arg(long, value_name = "FILE")]
    against_baseline: Option<PathBuf>,
}

/// The text of a suite: of a file, of standard input, or of the built-in suite.
fn suite_text(file: Option<&PathBuf>) -> Result<String> {
    let Some(file) = file else { return Ok(STARTUP_1.to_string()) };
    let most = slowstart_files::MOST_TEXT;
    if file.as_os_str() == "-" {
        let text = slowstart_files::read_from(io::stdin(), most).context("standard input")?;
        return String::from_utf8(text).context("standard input");
    }
    slowstart_files::read_text(file, most).with_context(|| file.display().to_string())
}

fn suite(file: Option<&PathBuf>) -> Result<Suite> {
    let text = suite_text(file)?;
    Suite::read(&text).with_context(|| file.map_or(String::new(), |f| f.display().to_string()))
}

/// A report as JSON, which an earlier run wrote, and its text.
fn stored(file: &Path) -> Result<(Report, String)> {
    let text = slowstart_files::read_text(file, slowstart_files::MOST_REPORT)
        .with_context(|| file.display().to_string())?;
    let report =
        serde_json::from_str(&text).with_context(|| format!("{}: no report of a suite", file.display()))?;
    Ok((report, text))
}

impl SuiteArgs {
    /// True if every criterion is met or undecided.
    pub(crate) fn main(self) -> Result<bool> {
        match self.what {
            What::List(l) => l.main().map(|()| true),
            What::Run(r) => r.main(),
            What::Report(r) => r.main().map(|()| true),
            What::Board(b) => b.main().map(|()| true),
            What::Audit(a) => a.main(),
        }
    }
}

impl List {
    fn main(&self) -> Result<()> {
        let suite = suite(self.file.as_ref())?;
        let mut text =
            format!("{}, {} scenarios, SHA-256 {}\n", suite.name, suite.scenarios.len(), suite.sha256);
        for s in &suite.scenarios {
            let _ = writeln!(
                text,
                "\n{} (RFC 9743 section {})\n  {}\n  path {}",
                s.name, s.section, s.question, s.study.path
            );
            for c in &s.criteria {
                let _ = writeln!(text, "  {c}");
            }
            let _ = writeln!(text, "  not tested: {}", s.not_tested);
            for (key, source) in &s.numbers {
                let _ = writeln!(text, "  {key}: {source}");
            }
        }
        text.lines().try_for_each(|line| print(&wrap(line, if line.starts_with(' ') { 4 } else { 0 })))
    }
}

impl Run {
    /// Judges startups on an engine. A signal leaves out what is not finished.
    fn judged(&self, suite: &Suite) -> Result<(Report, Option<u8>)> {
        let engine = self.engine.of(&StudyText::default())?;
        let startups = if self.startup.is_empty() {
            engine.startups(&self.avoidance)
        } else {
            study_args::startups(&self.startup)
        };
        let settings =
            Settings { startups, avoidance: self.avoidance.clone(), seed: self.seed, runs: self.runs };
        // An unknown startup is no fault of a scenario.
        settings.startups.iter().try_for_each(|s| engine.contender(s, &self.avoidance).map(|_| ()))?;
        let interrupt = interrupt_of(&*engine)?;
        let stop = || interrupt.signal().is_some();
        let bar = progress_of(suite.scenarios.len() as u64, "scenarios");
        let each = |_: &Scenario, done: usize, of: usize| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        };
        let report = slowstart_suite::run::run(suite, &settings, &*engine, &stop, each);
        bar.finish_and_clear();
        interrupt.stopped();
        Ok((report?, interrupt.signal()))
    }

    /// The hashes of the files that are judged: of libraries, and of a kernel or whatever else the caller names.
    fn entrants(&self, startups: &[String]) -> Result<BTreeMap<String, String>> {
        let kernel = self.engine.name().and_then(|e| e.strip_prefix("linux:"));
        let whole = kernel.map(Path::new).or_else(|| self.stack.entrant());
        let mut all = BTreeMap::new();
        for startup in startups {
            // A library may be followed by settings of the stack.
            let library =
                startup.strip_prefix("plugin:").map(|file| file.split_once('@').map_or(file, |(f, _)| f));
            if let Some(file) = library.map(Path::new).or(whole) {
                let hash = sha256_of(file).with_context(|| file.display().to_string())?;
                all.insert(startup.clone(), hash);
            }
        }
        Ok(all)
    }

    /// The words of the command, without those that say where results go and how they are shown.
    fn command(&self) -> Vec<String> {
        let mut words: Vec<String> = ["slowstart", "suite", "run"].map(str::to_string).to_vec();
        let mut add = |option: &str, value: String| words.extend([option.to_string(), value]);
        // One by one, so that a line ends between two.
        for startup in study_args::startups(&self.startup) {
            add("--startup", startup);
        }
        match self.stack.options() {
            options if options.is_empty() => {
                add("--avoidance", self.avoidance.clone());
                self.engine.name().into_iter().for_each(|e| add("--engine", e.into()));
            }
            options => options.into_iter().for_each(|(option, value)| add(option, value)),
        }
        self.scenario.iter().for_each(|s| add("--scenario", s.clone()));
        self.runs.iter().for_each(|n| add("--runs", n.to_string()));
        self.file.iter().for_each(|f| add("--file", f.display().to_string()));
        add("--seed", self.seed.to_string());
        if self.stack.warm_up() {
            words.push("--warm-up".into());
        }
        words
    }

    fn main(self) -> Result<bool> {
        let mut suite = suite(self.file.as_ref())?;
        if let Some(unknown) = self.scenario.iter().find(|n| suite.scenarios.iter().all(|s| s.name != **n)) {
            let names: Vec<&str> = suite.scenarios.iter().map(|s| s.name.as_str()).collect();
            let hint = slowstart_sim::suggest::did_you_mean(unknown, &names);
            bail!("--scenario: found {unknown:?}{hint}, expected a name that `slowstart suite list` shows");
        }
        if !self.scenario.is_empty() {
            suite.scenarios.retain(|s| self.scenario.contains(&s.name));
        }
        let before = self.against_baseline.as_deref().map(stored).transpose()?;
        for file in self.html.iter().chain(&self.json) {
            refuse_existing(file)?;
        }
        let (mut report, signal) = match self.stack.of()? {
            Some(commands) => (stack::run(&suite, &commands, self.seed, self.runs)?, None),
            None => self.judged(&suite)?,
        };
        report.command = self.command();
        report.entrants = self.entrants(&report.startups)?;
        if self.ktap {
            print(report::ktap(&report).trim_end())?;
        } else if io::stdout().is_terminal() {
            screen::show(&suite, &report)?;
        } else {
            print(&report::markdown(&suite, &report))?;
        }
        if let Some(file) = &self.html {
            write_new(file, &report::html(&suite, &report)).context("--html")?;
        }
        if let Some(file) = &self.json {
            write_new(file, &report::json(&report)?).context("--json")?;
        }
        if let Some(signal) = signal {
            let of = suite.scenarios.len();
            let finished = Some((of - report.left_out.len(), of));
            return Err(Interrupted { signal, finished }.into());
        }
        // Where the references were late too, it is undecided.
        let unobserved = |e: &Entry| match e.verdict {
            Verdict::NotObserved => true,
            Verdict::Undecided => e.value.is_none(),
            _ => false,
        };
        if report.entries.iter().all(unobserved) {
            bail!("nothing was judged: no criterion of these scenarios was observed; the report says why");
        }
        let Some((before, _)) = before else { return Ok(report.passed()) };
        let baseline::Compared { worse, both, unequal } =
            baseline::worse(&report, &before).map_err(|why| anyhow!("--against-baseline: {why}"))?;
        let mut text = format!("\nAgainst the baseline: {} of {both} criteria became worse.\n", worse.len());
        if let Some((n, runs)) = unequal {
            let _ = writeln!(
                text,
                "Of {n} criteria the two have different numbers of runs: compared are those that both have, {runs} at least."
            );
        }
        for w in &worse {
            let mut by = w.by.map_or(String::new(), |[low, high]| {
                format!(", by {} to {}", words::number(low), words::number(high))
            });
            if w.lost > 0 {
                let _ = write!(by, ", no value in {} of {} runs that had one", w.lost, w.runs);
            } else if w.runs < w.now.values.len() {
                let _ = write!(by, ", over the {} runs that both have", w.runs);
            }
            let (e, was) = (&w.now, w.before.word());
            let _ = writeln!(
                text,
                "- {}, {}: {}: {} (was: {was}){by}",
                e.startup,
                e.scenario,
                e.criterion,
                w.verdict.word()
            );
        }
        if before.stack != report.stack && !before.stack.is_empty() {
            let _ = writeln!(text, "The baseline ran {}, and this run {}.", before.stack, report.stack);
        }
        print(&text)?;
        Ok(worse.is_empty())
    }
}
