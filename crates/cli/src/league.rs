//! `slowstart league`: scores startups over populations of paths against an oracle.

use crate::engine::{EngineArg, interrupt_of};
use crate::folder::Folder;
use crate::interrupt::{Interrupt, Signal};
use crate::output::{self, command, note, print};
use crate::printable::printable;
use crate::row_output::RowArgs;
use crate::run_args::{check_finished, print_legend};
use crate::study_args::startups;
use crate::table::{Align, Table};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use indicatif::ProgressBar;
use rayon::prelude::*;
use slowstart_league::against::{Baseline, Difference, differences};
use slowstart_league::game::{self, GAME_SCHEMA, GameRow};
use slowstart_league::page::{self, Page};
use slowstart_league::population::{self, Case, Population};
use slowstart_league::rank::{self, Terms};
use slowstart_league::reference;
use slowstart_league::score::{self, Score};
use slowstart_league::sheet::{self, BRIEF, LEGEND, Sheet};
use slowstart_league::verdict::verdict;
use slowstart_study::decision::default_startup;
use slowstart_study::engines::{Engine, Refusal};
use slowstart_study::scenario::StudyText;
use slowstart_study::words::number;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Time between two looks whether a signal came, and how many of them a simulated run has to end after one.
const POLL: Duration = Duration::from_millis(50);
const PATIENCE: u32 = 6;
/// More runs than this are announced.
const MANY: usize = 5_000;

/// Score startups over populations of paths against an oracle that knows each path
///
/// Every startup meets the same cases: the built-in ensembles and fixed paths, random paths, shallow queues,
/// paths shared with other flows, several flows of the same startup, limited applications, and receivers that
/// send few ACKs. The tables show the time to 100 kB, 1 MB and 10 MB divided by the oracle's, where the startup
/// left, what it lost, and what it did to others.
///
/// docs/explain/league.md explains populations, oracle and measures.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart league search,hystart++ --seed 7
  slowstart league --population geo,random --runs 10
  slowstart league --engine quic search,hystart++ --runs 3
  slowstart league standard --json > standard.jsonl
  slowstart league mine --against-baseline standard.jsonl

Exit status: 0, or 2 for bad input. 130 after Ctrl-C.
With --against-baseline: 1 if a startup is worse than that of the same name in the baseline
(or than the only one in it), 2 if it cannot be compared.")]
pub(crate) struct League {
    /// Startups, as name or name:key=value,key=value, separated by commas (see `slowstart list startups`)
    /// [default: all]
    #[arg(value_name = "STARTUPS")]
    startups: Vec<String>,
    /// Seed of all cases [default: 1, or that of the baseline]
    #[arg(long)]
    seed: Option<u64>,
    /// Cases of each population; the random one has five times as many
    /// [default: 40, or those of the baseline]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: Option<u32>,
    /// Only these populations, separated by commas (see --list)
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    population: Vec<String>,
    /// Congestion avoidance after the startup [default: cubic]
    #[arg(long)]
    avoidance: Option<String>,
    /// The startup that others are ranked against
    /// [default: what the engine runs by default, hystart for the simulator; else the first startup]
    #[arg(long, value_name = "STARTUP")]
    baseline: Option<String>,
    /// Ignore differences below this many percent
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = crate::run_args::margin)]
    margin: f64,
    /// Compare case by case with the rows in this file, which `--json` printed before
    #[arg(long, value_name = "FILE")]
    against_baseline: Option<PathBuf>,
    /// Show the tables of each population too
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    by_population: bool,
    #[command(flatten)]
    rows: RowArgs,
    /// Write a page (league.html), the tables (league.md) and the rows (league.jsonl) to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// List the populations with their distributions, and run nothing
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    engine: EngineArg,
}

/// The populations with these names, or all of them.
pub(crate) fn named(names: &[String]) -> Result<Vec<Population>> {
    population::named(names).map_err(|why| anyhow!("--population: {why}"))
}

fn list(populations: &[Population]) -> Result<()> {
    for p in populations {
        print(&output::wrap(&format!("{}: {}", p.name, p.about), 4))?;
        for law in &p.laws {
            print(&output::wrap(&format!("    {law}"), 6))?;
        }
    }
    Ok(())
}

/// What plays the cases of a league.
struct Player {
    engine: Arc<dyn Engine>,
    contenders: Vec<String>,
    avoidance: Option<String>,
    signal: Signal,
    bar: ProgressBar,
}

impl Player {
    /// Plays a case with every startup; `None` if a signal came meanwhile.
    fn play(&self, case: &Case) -> Result<Option<Vec<GameRow>>> {
        let stop = || self.signal.get().is_some();
        let mut rows = Vec::with_capacity(self.contenders.len());
        for startup in &self.contenders {
            if stop() {
                return Ok(None);
            }
            match game::play(&*self.engine, startup, self.avoidance.as_deref(), case, &stop) {
                Err(_) if stop() => return Ok(None),
                row => rows.push(row?),
            }
            self.bar.inc(1);
        }
        Ok(Some(rows))
    }
}

impl League {
    /// False if a startup is worse than the baseline.
    pub(crate) fn main(self) -> Result<bool> {
        let populations = named(&self.population)?;
        if self.list {
            return list(&populations).map(|()| true);
        }
        let engine: Arc<dyn Engine> = self.engine.of(&StudyText::default())?.into();
        let avoidance = self.avoidance.as_deref().unwrap_or("cubic");
        let contenders =
            if self.startups.is_empty() { engine.startups(avoidance) } else { startups(&self.startups) };
        contenders.iter().try_for_each(|s| engine.contender(s, avoidance).map(|_| ()))?;
        if let Some(b) = self.baseline.as_ref().filter(|b| !contenders.contains(b)) {
            bail!("--baseline: found {b:?}, expected one of the startups: {}", contenders.join(", "));
        }
        let terms = Terms {
            baseline: self
                .baseline
                .as_deref()
                .or_else(|| default_startup(engine.name()))
                .unwrap_or(&contenders[0]),
            margin: self.margin,
        };
        let baseline = self.earlier()?;
        if let Some(b) = &baseline {
            self.check(b, &contenders)?;
        }
        let cases = self.carried(&*engine, &populations, self.cases(&populations, baseline.as_ref()))?;
        if cases.is_empty() {
            bail!("--against-baseline: found no case of these populations; name others, or use --runs");
        }
        let mut writer = self.rows.writer(GAME_SCHEMA)?;
        let interrupt = interrupt_of(&*engine)?;
        let of = cases.len();
        if of * contenders.len() > MANY {
            let (startups, runs) = (contenders.len(), number((of * contenders.len()) as f64));
            note(&format!(
                "{of} cases of {startups} startups are {runs} runs; name startups or populations, or use --runs, for fewer"
            ));
        }
        let rows = self.play(&engine, &contenders, cases, &interrupt)?;
        let done = rows.len() / contenders.len();
        if done == 0 {
            check_finished(&interrupt, done, of)?;
        }
        let differences = baseline.as_ref().map_or(Vec::new(), |b| differences(&rows, &b.rows));
        rows.iter().try_for_each(|row| writer.write(row))?;
        writer.finish()?;
        if !self.rows.printed() {
            self.show(&rows, &terms, &differences)?;
        }
        self.write(&populations, &rows, &terms, &differences)?;
        check_finished(&interrupt, done, of)?;
        let Some(baseline) = baseline else { return Ok(true) };
        self.judge(&baseline, &contenders, &differences)
    }

    /// Fails if the baseline lacks a startup or a case that is asked for.
    fn check(&self, baseline: &Baseline, contenders: &[String]) -> Result<()> {
        for startup in contenders {
            baseline.judge_of(startup).context("--against-baseline")?;
        }
        if let Some(name) = self.population.iter().find(|p| baseline.cases(p) == 0) {
            bail!(
                "--against-baseline: found no case of population {name}, expected those of an earlier league"
            );
        }
        Ok(())
    }

    /// Says what is worse than in the baseline; false if anything is.
    fn judge(&self, baseline: &Baseline, contenders: &[String], differences: &[Difference]) -> Result<bool> {
        let mut told = Vec::new();
        let (mut worse, mut fewest) = (0, usize::MAX);
        for startup in contenders {
            let theirs = baseline.judge_of(startup).context("--against-baseline")?;
            let is =
                |d: &&Difference| d.population.is_none() && d.startup == *startup && d.baseline == theirs;
            let Some(d) = differences.iter().find(is) else {
                bail!(
                    "--against-baseline: found no case that {startup} and the baseline both have (--seed, --runs)"
                );
            };
            d.check().context("--against-baseline")?;
            fewest = fewest.min(d.cases);
            let found = d.worse(self.margin);
            worse += usize::from(!found.is_empty());
            told.extend(found.into_iter().map(|what| format!("- {startup}: {what}")));
        }
        let of = contenders.len();
        told.insert(
            0,
            format!("Against the baseline: {worse} of {of} startups became worse, over the {fewest} cases that both have."),
        );
        let text = told.join("\n");
        if self.rows.printed() {
            note(&text);
        } else {
            print(&format!("\n{text}"))?;
        }
        Ok(worse == 0)
    }

    fn earlier(&self) -> Result<Option<Baseline>> {
        let Some(file) = &self.against_baseline else { return Ok(None) };
        let named = || format!("--against-baseline {}", file.display());
        let text = slowstart_files::read_text(file, slowstart_files::MOST_REPORT).with_context(named)?;
        Ok(Some(Baseline::read(&text).with_context(named)?))
    }

    /// The cases to run: those of the baseline if there is one, unless the arguments say otherwise.
    fn cases(&self, populations: &[Population], baseline: Option<&Baseline>) -> Vec<Case> {
        let seed = self.seed.or(baseline.map(|b| b.seed)).unwrap_or(1);
        let count = |p: &Population| match (self.runs, baseline) {
            (None, Some(b)) => b.cases(&p.name),
            (runs, _) => p.count(runs),
        };
        populations.iter().flat_map(|p| p.cases(seed, count(p))).collect()
    }

    /// The cases that an engine can run; says of which populations some were left out, and why. Fails if a
    /// population that the user named has none left.
    fn carried(
        &self,
        engine: &dyn Engine,
        populations: &[Population],
        cases: Vec<Case>,
    ) -> Result<Vec<Case>> {
        let mut left_out: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let refused: Vec<Option<Refusal>> = cases.iter().map(|c| game::check(engine, c).err()).collect();
        for population in populations.iter().map(|p| p.name.as_str()) {
            let own = || cases.iter().zip(&refused).filter(|(c, _)| c.population == population);
            let out = own().filter(|(_, r)| r.is_some()).count();
            let Some(why) = own().find_map(|(_, r)| r.clone()) else { continue };
            if out == own().count() && self.population.iter().any(|p| p == population) {
                return Err(why).with_context(|| format!("--population {population}"));
            }
            left_out.entry(why.to_string()).or_default().push(population);
        }
        for (why, populations) in left_out {
            note(&format!("left out, all or some cases of {}: {why}", populations.join(", ")));
        }
        Ok(cases.into_iter().zip(refused).filter_map(|(c, r)| r.is_none().then_some(c)).collect())
    }

    /// Plays the cases until a signal comes. Returns the rows of those that every startup played, in the order
    /// of startups, then cases.
    fn play(
        &self,
        engine: &Arc<dyn Engine>,
        contenders: &[String],
        cases: Vec<Case>,
        interrupt: &Interrupt,
    ) -> Result<Vec<GameRow>> {
        let bar = output::progress((contenders.len() * cases.len()) as u64);
        let (played, results) = mpsc::channel();
        let player = Player {
            engine: Arc::clone(engine),
            contenders: contenders.to_vec(),
            avoidance: self.avoidance.clone(),
            signal: interrupt.received(),
            bar: bar.clone(),
        };
        thread::spawn(move || {
            // An error of the receiver: nobody waits any more.
            let play = |number, case| drop(played.send((number, player.play(case))));
            if player.engine.is_real_clock() {
                cases.iter().enumerate().for_each(|(n, c)| play(n, c));
            } else {
                cases.par_iter().with_max_len(1).enumerate().for_each(|(n, c)| play(n, c));
            }
        });
        let mut by_case = BTreeMap::new();
        let mut patience = PATIENCE;
        while patience > 0 {
            match results.recv_timeout(POLL) {
                Ok((number, rows)) => drop(rows?.map(|rows| by_case.insert(number, rows.into_iter()))),
                Err(RecvTimeoutError::Disconnected) => break,
                // A run on the real clock ends by itself, and undoes what it set up.
                Err(RecvTimeoutError::Timeout) if engine.is_real_clock() => {}
                Err(RecvTimeoutError::Timeout) => patience -= u32::from(interrupt.signal().is_some()),
            }
        }
        interrupt.stopped();
        bar.finish_and_clear();
        let in_turn = |_| by_case.values_mut().filter_map(Iterator::next).collect::<Vec<_>>();
        Ok(contenders.iter().flat_map(in_turn).collect())
    }

    fn show(&self, rows: &[GameRow], terms: &Terms, differences: &[Difference]) -> Result<()> {
        let scores = score::scores(rows, None);
        let seed = rows.first().map_or(0, |r| r.drawn_from);
        let cases = scores.first().map_or(0, |s| s.cases);
        let populations = score::populations(rows).len();
        print(&format!("{cases} cases of {populations} populations, seed {seed}"))?;
        show_tables(rows, None, terms, &scores)?;
        if self.by_population {
            for name in score::populations(rows) {
                print(&format!("\n== {name}"))?;
                show_tables(rows, Some(name), terms, &score::scores(rows, Some(name)))?;
            }
        }
        if !differences.is_empty() {
            print_sheet(&sheet::differences(differences))?;
        }
        if !output::quiet() {
            print("")?;
        }
        print_legend(BRIEF, || vec![LEGEND.to_string()])?;
        print("")?;
        output::print_verdict(&printable(&verdict(rows, terms)))
    }

    fn write(
        &self,
        populations: &[Population],
        rows: &[GameRow],
        terms: &Terms,
        differences: &[Difference],
    ) -> Result<()> {
        let Some(dir) = &self.out else { return Ok(()) };
        let folder = Folder::create(dir)?;
        folder.lines("league.jsonl", rows.iter())?;
        let mut text = format!("{}\n\n", verdict(rows, terms));
        let mut add = |title: &str, population: Option<&str>| {
            let scores = score::scores(rows, population);
            text = format!("{text}## {title}\n\n");
            let distance = reference::distance(rows, population);
            for s in
                [rank::sheet(rows, population, terms), sheet::speed(&scores), sheet::harm(&scores), distance]
            {
                text = format!("{text}{}:\n\n{}\n", s.title, sheet::markdown(&s));
            }
        };
        add("All populations", None);
        for name in score::populations(rows) {
            add(name, Some(name));
        }
        folder.text("league.md", &text)?;
        let page = Page { command: &command(), populations, rows, terms: *terms, differences };
        folder.text("league.html", &page::html(&page))?;
        note(&format!("wrote {}", dir.display()));
        Ok(())
    }
}

/// Prints the tables of all cases or of a population; on a terminal the first, unless --verbose was given.
fn show_tables(rows: &[GameRow], population: Option<&str>, terms: &Terms, scores: &[Score]) -> Result<()> {
    print_sheet(&rank::sheet(rows, population, terms))?;
    if output::brief() {
        return Ok(());
    }
    print_sheet(&sheet::speed(scores))?;
    print_sheet(&sheet::harm(scores))?;
    print_sheet(&reference::distance(rows, population))
}

fn print_sheet(sheet: &Sheet) -> Result<()> {
    let words = if sheet.headers.get(1) == Some(&"population") { 2 } else { 1 };
    let alignments =
        (0..sheet.headers.len()).map(|i| if i < words { Align::Left } else { Align::Right }).collect();
    let table = Table {
        headers: sheet.headers.iter().map(ToString::to_string).collect(),
        rows: sheet
            .lines
            .iter()
            .map(|l| l.iter().map(|c| printable(c).to_string().into()).collect())
            .collect(),
        alignments,
    };
    print("")?;
    print(&output::wrap(sheet.title, 2))?;
    // A pipe gets a line for each row.
    let width = io::stdout().is_terminal().then(|| u16::try_from(output::width()).ok()).flatten();
    print(table.render_with(output::color(), width, 1).trim_end())
}
