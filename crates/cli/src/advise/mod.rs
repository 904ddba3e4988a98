//! `slowstart advise`: from recordings of a service to what to load for it, or to leave it alone.
//!
//! Nothing is computed here: `replay` says how transfers left slow start, `fit` gives their paths, the
//! simulator runs the startups over these, and the decision is that of `compare`.

mod recorded;

use self::recorded::{Recorded, candidates};
use crate::comparison::{Comparison, View};
use crate::folder::{refuse_existing, write_new};
use crate::output::{color, print, width, wrap};
use crate::printable::printable;
use crate::replay::{passed_over, progress, warn};
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use slowstart_replay::analysis::Keep;
use slowstart_replay::fit::text;
use slowstart_replay::folder::expand;
use slowstart_replay::open;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_report::study::about;
use slowstart_report::{Page, html};
use slowstart_sim::path::Files;
use slowstart_study::chosen;
use slowstart_study::decision::{self, Change, Decision, Difference, Figure, Harm, MARGIN, Terms};
use slowstart_study::harm;
use slowstart_study::measured::SIMULATOR;
use slowstart_study::record::{Class, Param, Row};
use slowstart_study::scenario::{self, Study, StudyText};
use slowstart_study::summary::{Measure, Summary, label, label_of_contender};
use slowstart_study::verdict::{recommended, verdict};
use slowstart_study::words::{bytes, list, number, signed, two_digits};
use slowstart_trial::sequence::{Power, needed};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Fewest paths for an advice: the fewest pairs for which a sign test can exclude chance at 5 %.
const FEWEST_PATHS: usize = slowstart_study::stats::FEWEST_PAIRS;
/// Most transfers that become paths: the largest.
const MOST_PATHS: usize = 100;
/// Initial windows that are tried, in segments; the first is that of RFC 6928.
const INITIAL_WINDOWS: [u32; 5] = [10, 20, 32, 50, 100];
/// Time for which a browser is observed, for what idle restart costs.
const BROWSING: &str = "60s";
/// More startups than this that agree equally often tell nothing.
const TELLING: usize = 3;
/// Shares of early exits that differ by more contradict each other.
const UNLIKE: f64 = 0.25;
/// The share of exits that must be early, and the fewest exits, for a later exit to be worth a trial.
const MOSTLY: f64 = 0.5;
const FEWEST_EXITS: u64 = 4;
/// The startup to try where exits are early and no simulation can say what a later one gains: it waits for a
/// full path, whatever the delay does.
const LATER: &str = "search";
/// What is in use where nothing says it: the startup of Linux's CUBIC.
const DEFAULT: &str = "hystart";
/// Captures packets without their payload. The port is that of the service.
const CAPTURE: &str =
    "tcpdump -i any -s 128 -w server.pcap 'tcp port 443'   # on the server, while users download";
/// Share of intervals of a trial that may be wrong.
const ALPHA: f64 = 0.05;

/// Say which startup would serve the users of recorded connections best
///
/// It also says how sure that is, and what to do next. FILE is anything that
/// `slowstart replay` reads; captures made at the server show most. Of a folder,
/// all files are read. Each transfer that filled its path gives a path; the
/// startups run over these paths, and are compared with the one in use.
///
/// Examples:
///   slowstart advise captures/
///   slowstart advise server.pcapng.zst --cgroup /sys/fs/cgroup/system.slice/nginx.service --page advice.html
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[allow(clippy::doc_markdown, reason = "help is not Markdown")]
pub(crate) struct Advise {
    /// Files or folders to read; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The startup that the service uses now [default: what most recordings name or show; hystart if none does]
    #[arg(long, value_name = "STARTUP")]
    in_use: Option<String>,
    /// Leave out transfers of fewer bytes
    #[arg(long, default_value = "100kB")]
    min_bytes: String,
    /// Bytes of a transfer to decide for [default: those of the transfer in the middle]
    #[arg(long)]
    size: Option<String>,
    /// The cgroup of the service, for the commands that are printed
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup/system.slice/nginx.service")]
    cgroup: PathBuf,
    /// Print the advice as JSON, and nothing else
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write the advice as a page to this file, which must not exist
    #[arg(long, help_heading = "Output", value_name = "FILE")]
    page: Option<PathBuf>,
    /// Write the paths to this file, which must not exist, for `slowstart compare`
    #[arg(long, help_heading = "Output", value_name = "FILE")]
    paths: Option<PathBuf>,
}

/// A difference as a program reads it.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
struct Effect {
    /// `better`, `worse`, `none` or `not shown`.
    is: &'static str,
    /// The median.
    median: f64,
    /// Lower end of its 95 % interval.
    low: f64,
    /// Upper end of its 95 % interval.
    high: f64,
}

impl From<Difference> for Effect {
    fn from(d: Difference) -> Self {
        let is = match d.change {
            Change::Better => "better",
            Change::Worse => "worse",
            Change::Even => "none",
            Change::NotShown { .. } | Change::TooFew => "not shown",
        };
        Self { is, median: d.median.mid, low: d.median.low, high: d.median.high }
    }
}

/// What an initial window does, against the first of [`INITIAL_WINDOWS`].
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
struct InitialWindow {
    /// The initial window.
    segments: u32,
    /// The change of the time, percent; null for the window that it is compared with.
    time_percent: Option<Effect>,
    /// The change of the packets lost during startup; null likewise.
    lost_packets: Option<Effect>,
}

/// The advice.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
struct Advice {
    /// The version of the schema.
    schema: u32,
    /// The version of the program.
    version: &'static str,
    /// What was read.
    recorded: Recorded,
    /// The startup in use.
    in_use: String,
    /// True if nothing shows it: it is assumed, as the default of Linux.
    in_use_is_assumed: bool,
    /// What to use instead; null: stay with it.
    use_instead: Option<String>,
    /// Why there is no advice; null if there is one.
    none_because: Option<String>,
    /// Bytes of the transfer that it is for.
    size_bytes: u64,
    /// The time of the startup advised against the one in use, percent.
    time_percent: Option<Effect>,
    /// Connections of both arms of a trial together that find this difference with a probability of 80 %;
    /// null if none.
    trial_connections: Option<u64>,
    /// What initial windows do.
    initial_windows: Vec<InitialWindow>,
    /// The largest that is no worse in losses, in segments.
    largest_initial_window: Option<u32>,
    /// What `tcp_slow_start_after_idle=0` changes in the median time of a browser's objects, percent.
    without_idle_restart_percent: Option<Effect>,
    /// The advice in one sentence.
    verdict: String,
    /// How sure it is and what would make it surer, a sentence each.
    sure: Vec<String>,
    /// What to run next.
    commands: Vec<String>,
}

impl Advice {
    /// Of recordings that allow none: why, and the verdict.
    fn without(recorded: Recorded, size_bytes: u64, why: String, verdict: String, sure: Vec<String>) -> Self {
        Self {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            recorded,
            in_use: String::new(),
            in_use_is_assumed: false,
            use_instead: None,
            none_because: Some(why),
            size_bytes,
            time_percent: None,
            trial_connections: None,
            initial_windows: Vec::new(),
            largest_initial_window: None,
            without_idle_restart_percent: None,
            verdict,
            sure,
            commands: Vec::new(),
        }
    }
}

impl Advise {
    pub(crate) fn main(mut self) -> Result<()> {
        for (key, file) in [("--page", &self.page), ("--paths", &self.paths)] {
            file.as_deref().map_or(Ok(()), refuse_existing).context(key)?;
        }
        if let Some(name) = &self.in_use {
            scenario::Contender::read("in-use", name, "cubic")?;
        }
        let size = self.size.as_deref().map(|s| scenario::bytes("size", s)).transpose()?;
        let recorded = self.read()?;
        let known = |name: &&str| scenario::Contender::read("in-use", name, "cubic").is_ok();
        let shown =
            recorded.in_use.keys().map(String::as_str).filter(known).max_by_key(|n| recorded.in_use[*n]);
        // Only startups that are none of ours: there is nothing to compare with.
        let foreign = self.in_use.is_none() && shown.is_none() && !recorded.in_use.is_empty();
        self.in_use = self.in_use.take().or(shown.map(str::to_string));
        let unlike = if foreign {
            let names: Vec<String> = recorded.in_use.keys().cloned().collect();
            Some(format!(
                "their senders use {}, which is no startup here; --in-use names one to compare with",
                list(&names)
            ))
        } else {
            self.unlike_default(&recorded)
        };
        let in_use = scenario::Contender::read("in-use", self.in_use(), "cubic")?;
        let (failed, files) = (recorded.failed as usize, (recorded.files + recorded.failed) as usize);
        let size = size.or(recorded.middle_bytes()).unwrap_or(0);
        if unlike.is_some() || recorded.paths.len() < FEWEST_PATHS {
            let advice = self.none(recorded, size, unlike);
            self.show(&advice, None)?;
            for (key, _) in
                [("--page", &self.page), ("--paths", &self.paths)].iter().filter(|(_, f)| f.is_some())
            {
                warn(&format!("{key}: not written, since there is no advice"));
            }
            return passed_over(failed, files);
        }
        let mut fitted = recorded.paths.clone();
        fitted.sort_by_key(|f| std::cmp::Reverse(f.0));
        fitted.truncate(MOST_PATHS);
        let fitted: Vec<_> = fitted.into_iter().map(|f| f.1).collect();
        let toml = text::toml(&crate::output::command(), &fitted);
        if let Some(file) = &self.paths {
            write_new(file, &toml).context("--paths")?;
        }
        let mut names = vec![self.in_use().to_string()];
        names.extend(chosen::names().filter(|n| *n != in_use.startup_name).map(String::from));
        let model = Model { toml, size, runs: fitted.len() as u32 };
        let study = model.study(&names, None, &[])?;
        let rows = run(&study);
        let base = label_of_contender(&in_use);
        let alone = {
            let decision = Decision::new(&rows, &Terms { baseline: Some(&base), ..Terms::default() });
            decision.baseline().and_then(|s| s.summary.of_all_runs(decision.by)).map_or(0.0, |m| m.mid)
        };
        let harm =
            if harm::unable(SIMULATOR, &study).is_none() && alone > 0.0 && harm::is_affordable(&study, alone)
            {
                harm::measure(&study, alone)
            } else {
                Vec::new()
            };
        let terms = Terms { baseline: Some(&base), harm: &harm, ..Terms::default() };
        let decision = Decision::new(&rows, &terms);
        let advice = self.advice(recorded, &model, &decision, &base)?;
        self.show(&advice, Some(&decision).filter(|_| advice.none_because.is_none()))?;
        if let Some(file) = &self.page {
            write_new(file, &page(&study, &rows, &harm, &base, &advice)).context("--page")?;
        }
        passed_over(failed, files)
    }

    fn in_use(&self) -> &str {
        self.in_use.as_deref().unwrap_or(DEFAULT)
    }

    /// True if neither the user nor the recordings say what is in use: the default is assumed.
    fn assumes(&self, recorded: &Recorded) -> bool {
        let (alike, agreement) = recorded.most_alike();
        let agrees = alike.len() <= TELLING && 2 * agreement.agree > agreement.of && alike.contains(&DEFAULT);
        self.in_use.is_none() && !agrees
    }

    /// Why the default, which would be assumed, is not in use: it does not explain what most senders sent.
    fn unlike_default(&self, recorded: &Recorded) -> Option<String> {
        let like = recorded.fits.get(DEFAULT).copied().unwrap_or(0);
        (self.in_use.is_none() && 2 * like < recorded.unnamed).then(|| {
            format!(
                "nothing names the startup in use, and {DEFAULT}, the default of Linux, explains what was sent in {} of {} \
                 transfers; --in-use names it",
                number(like as f64),
                number(recorded.unnamed as f64)
            )
        })
    }

    fn read(&self) -> Result<Recorded> {
        let options = Options {
            candidates: candidates().into(),
            keep: Keep { packets: true, ..Keep::default() },
            min_bytes: scenario::bytes("min-bytes", &self.min_bytes)?,
            ..Options::default()
        };
        let files = expand(&self.files)?;
        let mut recorded = Recorded::default();
        for file in &files {
            let name = || file.display().to_string();
            let bar = progress();
            let read = open::open(file).and_then(|(kind, input)| {
                let mut each = |t: AnalysedTransfer| {
                    recorded.add(format!("{}, connection {}", short(file), t.row.connection), &t);
                };
                stream(kind, input, &options, &mut each, &mut |read| bar.set_position(read))
            });
            bar.finish_and_clear();
            match read.with_context(name) {
                Ok(summary) => {
                    recorded.files += 1;
                    if let Some(e) = &summary.incomplete {
                        warn(&format!("{}: {e}; only the part before it counts", file.display()));
                    }
                }
                Err(e) if files.len() == 1 => return Err(e),
                Err(e) => {
                    warn(&format!("{e:#}; skipped"));
                    recorded.failed += 1;
                }
            }
        }
        Ok(recorded)
    }

    /// The advice of material that allows none. Where the recorded exits were too early, the trial that would
    /// decide.
    fn none(&self, recorded: Recorded, size: u64, unlike: Option<String>) -> Advice {
        let usable = recorded.paths.len();
        let s = if usable == 1 { "" } else { "s" };
        let why = unlike.unwrap_or_else(|| {
            format!("not enough data: {usable} usable transfer{s}, {FEWEST_PATHS} needed")
        });
        let sure = sure(&recorded);
        let (early, exits) = recorded.early();
        let trial = exits >= FEWEST_EXITS && early as f64 > MOSTLY * exits as f64 && self.in_use() != LATER;
        let verdict = if trial {
            format!(
                "These recordings allow no verdict ({why}), but {} of {} exits were too early: a trial of {LATER} would decide.",
                number(early as f64),
                number(exits as f64)
            )
        } else {
            format!("These recordings allow no advice: {why}.")
        };
        Advice {
            in_use: self.in_use().to_string(),
            in_use_is_assumed: self.in_use.is_none(),
            commands: if trial { self.commands(LATER, None) } else { vec![CAPTURE.to_string()] },
            ..Advice::without(recorded, size, why, verdict, sure)
        }
    }

    fn advice(&self, recorded: Recorded, model: &Model, d: &Decision, base: &str) -> Result<Advice> {
        if let Some(why) = d.baseline().and_then(|s| contradiction(recorded.early(), &s.summary)) {
            let sure = sure(&recorded);
            // What the paths say is not believed; what they favour is what a trial is for.
            let instead = recommended(d).filter(|label| *label != base).unwrap_or(LATER).to_string();
            let verdict =
                format!("These recordings allow no verdict: {why}. A trial of {instead} would decide.");
            return Ok(Advice {
                in_use: self.in_use().to_string(),
                in_use_is_assumed: self.assumes(&recorded),
                commands: self.commands(&instead, None),
                ..Advice::without(recorded, model.size, why, verdict, sure)
            });
        }
        // Better in something and certainly worse in nothing; what has a price is in the verdict, for the
        // user to weigh.
        let free = |label: &&str| {
            let of = d.standings.iter().find(|s| s.summary.label == **label);
            of.zip(d.baseline()).is_some_and(|(s, base)| d.is_better(&s.summary, &base.summary))
        };
        let use_instead = recommended(d).filter(|label| *label != base).filter(free).map(str::to_string);
        let chosen = use_instead.as_deref().unwrap_or(base);
        let standing = d.standings.iter().find(|s| s.summary.label == chosen);
        let time = standing.and_then(|s| d.against(&s.summary, Figure::Of(d.by)));
        let trial_connections = time.filter(|_| use_instead.is_some()).and_then(|t| {
            let log: Vec<f64> =
                d.baseline()?.summary.rows.iter().filter_map(|r| Some(d.by.of(r)?.ln())).collect();
            let mean = log.iter().sum::<f64>() / log.len() as f64;
            let variance =
                log.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (log.len() - 1).max(1) as f64;
            // Two arms of half of the connections each: the deviation of the difference, times the root of
            // their number.
            needed((1.0 + t.median.mid / 100.0).ln(), 2.0 * variance.sqrt(), ALPHA, Power::Eighty)
        });
        let (initial_windows, largest) = model.initial_windows(chosen)?;
        let mut sure = sure(&recorded);
        sure.extend(time.and_then(|t| match t.change {
            Change::NotShown { runs } => {
                Some(format!("The difference is not certain: about {runs} transfers would show it."))
            }
            _ => None,
        }));
        Ok(Advice {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            in_use: self.in_use().to_string(),
            in_use_is_assumed: self.assumes(&recorded),
            none_because: None,
            size_bytes: model.size,
            time_percent: time.map(Effect::from),
            trial_connections,
            initial_windows,
            largest_initial_window: largest,
            without_idle_restart_percent: model.without_idle_restart(chosen)?.map(Effect::from),
            verdict: verdict(d),
            commands: use_instead.as_deref().map_or(Vec::new(), |s| self.commands(s, trial_connections)),
            use_instead,
            recorded,
            sure,
        })
    }

    /// What to type next.
    fn commands(&self, startup: &str, connections: Option<u64>) -> Vec<String> {
        let cgroup = self.cgroup.display();
        // The kernel's own CUBIC is hystart.
        let now = if self.in_use() == DEFAULT { "cubic" } else { self.in_use() };
        let n =
            connections.map_or(String::new(), |n| format!("   # about {} connections", number(rounded(n))));
        vec![
            "sudo slowstart kernel check".to_string(),
            format!(
                "sudo slowstart kernel trial --cgroup {cgroup} --arm {now}:50% --arm {startup}:50% --stratify rtt \
                 --stop-on-harm retrans=+20% --out trial{n}"
            ),
            format!("sudo slowstart kernel load {startup} --pin"),
            format!("sudo slowstart kernel select --pin --cgroup {cgroup} {startup}"),
            "sudo slowstart kernel unload --all   # undoes both".to_string(),
        ]
    }

    fn show(&self, a: &Advice, decision: Option<&Decision>) -> Result<()> {
        if self.json {
            return print(&serde_json::to_string(a)?);
        }
        for line in lines(a) {
            print(&wrap(&printable(&line), 2))?;
        }
        if !a.recorded.bands.is_empty() {
            print("")?;
            print(a.recorded.table().render(color(), Some(width() as u16)).trim_end())?;
        }
        print("")?;
        print(&wrap(&printable(&headline(a)), 0))?;
        if let Some(d) = decision {
            print("")?;
            let view = View::default();
            let comparison = Comparison::new(d, &view);
            let (table, _) = comparison.render(&view, color(), width());
            print(table.trim_end())?;
            print("")?;
        }
        for sentence in a.sure.iter().chain(&others(a)) {
            print(&wrap(&printable(sentence), 2))?;
        }
        if !a.commands.is_empty() {
            print("Next:")?;
            a.commands.iter().try_for_each(|c| print(&format!("  {c}")))?;
        }
        Ok(())
    }
}

/// A number of connections with two digits.
fn rounded(n: u64) -> f64 {
    let unit = 10_f64.powf((n as f64).log10().floor() - 1.0).max(1.0);
    (n as f64 / unit).ceil() * unit
}

/// The name of a file without its folder.
fn short(file: &Path) -> String {
    file.file_name().map_or("-".into(), |n| n.to_string_lossy()).into_owned()
}

/// The advice in a sentence, then the verdict over the paths.
fn headline(a: &Advice) -> String {
    if a.none_because.is_some() {
        return a.verdict.clone();
    }
    let advice = match &a.use_instead {
        Some(startup) if a.in_use_is_assumed => {
            format!("Try {startup} in a trial, if {} is in use; nothing shows which startup is.", a.in_use)
        }
        Some(startup) => format!("Try {startup} in a trial."),
        None if a.in_use_is_assumed => {
            format!("No change, if {} is in use; nothing shows which startup is.", a.in_use)
        }
        None => format!("Stay with {}.", a.in_use),
    };
    format!("{advice} For {} over the paths recorded: {}", bytes(a.size_bytes), a.verdict)
}

/// What was recorded, a line each.
fn lines(a: &Advice) -> Vec<String> {
    let r = &a.recorded;
    let plural =
        |n: u64, one: &str| if n == 1 { format!("1 {one}") } else { format!("{} {one}s", number(n as f64)) };
    let mut out = vec![format!(
        "{}, {} of {}; in {} the sender mostly waited for its application",
        plural(r.files, "file"),
        plural(r.transfers, "transfer"),
        bytes(r.bytes),
        number(r.waited as f64),
    )];
    if !r.in_use.is_empty() {
        let each: Vec<String> =
            r.in_use.iter().map(|(name, n)| format!("{name} in {}", number(*n as f64))).collect();
        let other = r.in_use.len() > 1 || !r.in_use.contains_key(&a.in_use);
        let judged = if other { format!("; compared with {}", a.in_use) } else { String::new() };
        out.push(format!("startups in use, as far as the recordings show: {}{judged}", list(&each)));
    }
    let (alike, agreement) = r.most_alike();
    if alike.len() > TELLING {
        out.push("recorded exits do not tell which startup is in use".to_string());
    } else if !alike.is_empty() {
        let names: Vec<String> = alike.iter().map(ToString::to_string).collect();
        let mut line = format!(
            "recorded exits agree most often with {}: {} of {}",
            list(&names),
            number(agreement.agree as f64),
            number(agreement.of as f64)
        );
        if !alike.contains(&a.in_use.as_str()) {
            let own = r.agreement.get(&a.in_use).copied().unwrap_or_default();
            let own = number(own.agree as f64);
            line = format!("{line}; with {}: {own} (if it is not in use, say --in-use)", a.in_use);
        }
        out.push(line);
    }
    out
}

/// How sure the advice is, and what would make it surer.
fn sure(r: &Recorded) -> Vec<String> {
    let mut out = vec![format!(
        "It rests on {} of {} transfers: those that filled their paths.",
        number(r.paths.len() as f64),
        number((r.transfers - r.waited) as f64)
    )];
    if r.never_full > 0 {
        out.push(format!(
            "{} did not fill their path, so its rate is not known: only a trial can say what a later exit gains there.",
            number(r.never_full as f64)
        ));
    }
    if r.without_path > 0 {
        out.push(format!(
            "{} show no path: captures at the server, or kernel logs of ACKs, do.",
            number(r.without_path as f64)
        ));
    }
    if r.queue_not_full > 0 {
        out.push(format!(
            "{} of these never overflowed their queue; it is taken as no larger than what was seen, so that losses are upper bounds.",
            number(r.queue_not_full as f64)
        ));
    }
    out
}

/// Why the fitted paths are not those of the recordings: the startup in use leaves them otherwise than it was
/// recorded. `early` is how many of how many recorded exits were too early.
fn contradiction((early, exits): (u64, u64), base: &Summary) -> Option<String> {
    let simulated = base.rows.iter().filter(|row| row.class == Class::Early).count();
    let share = early as f64 / exits.max(1) as f64;
    let differs = (share - simulated as f64 / base.rows.len() as f64).abs() > UNLIKE;
    (exits > 0 && differs).then(|| {
        format!(
            "too early were {} of {} recorded exits, and {} of {} on the paths fitted to them",
            number(early as f64),
            number(exits as f64),
            simulated,
            base.rows.len()
        )
    })
}

/// The two other questions: the initial window and idle restart.
fn others(a: &Advice) -> Vec<String> {
    let percent =
        |e: &Effect| format!("{} % ({} to {})", signed(e.median), two_digits(e.low), two_digits(e.high));
    let mut out = Vec::new();
    if let Some(largest) = a.largest_initial_window {
        let of = |n: u32| a.initial_windows.iter().find(|w| w.segments == n);
        let gain = of(largest).and_then(|w| w.time_percent.as_ref()).map(&percent);
        out.push(match gain {
            Some(gain) => {
                let more = if INITIAL_WINDOWS.last() == Some(&largest) { ", the largest tried," } else { "" };
                format!("Initial window: {largest} segments{more} lose no more than 10 do; time {gain}.")
            }
            None => format!("Initial window: stay with {largest} segments; more lose more."),
        });
    }
    if let Some(e) = &a.without_idle_restart_percent {
        out.push(match e.is {
            "better" => {
                format!("tcp_slow_start_after_idle=0 would shorten a browser's objects: {}.", percent(e))
            }
            "worse" => {
                format!("tcp_slow_start_after_idle=0 would lengthen a browser's objects: {}.", percent(e))
            }
            _ => "tcp_slow_start_after_idle makes no difference that is shown.".to_string(),
        });
    }
    out
}

/// The paths, and the size of a transfer.
struct Model {
    toml: String,
    size: u64,
    /// As many as there are paths, each over one drawn of them: more would count the same paths as new
    /// evidence.
    runs: u32,
}

impl Model {
    /// A study of these startups; of the application, if one is named, or of the transfer.
    fn study(&self, startups: &[String], app: Option<&str>, set: &[(&str, String)]) -> Result<Study> {
        const NAME: &str = "recorded.toml";
        let files = Files::given([(NAME.to_string(), self.toml.clone().into_bytes())].into());
        let text = StudyText {
            path: NAME.to_string(),
            startups: startups.to_vec(),
            size: app.is_none().then(|| format!("{}B", self.size)),
            duration: app.map(|_| BROWSING.to_string()),
            app: app.map(str::to_string),
            set: set.iter().map(|(k, v)| ((*k).to_string(), v.clone())).collect::<BTreeMap<_, _>>(),
            runs: Some(self.runs),
            ..StudyText::default()
        };
        Ok(Study::check_with(&text, &files)?)
    }

    /// What each initial window does, and the largest that loses no more than the first.
    fn initial_windows(&self, startup: &str) -> Result<(Vec<InitialWindow>, Option<u32>)> {
        let mut rows = Vec::new();
        for iw in INITIAL_WINDOWS {
            let study = self.study(&[startup.to_string()], None, &[("iw", iw.to_string())])?;
            rows.extend(run(&study).into_iter().map(|mut r| {
                r.params.insert("iw".to_string(), Param::Number(iw.into()));
                r
            }));
        }
        let segments = |s: &Summary| match s.rows[0].params.get("iw") {
            Some(Param::Number(iw)) => *iw as u32,
            _ => 0,
        };
        let first = label(&rows[0]);
        let d = Decision::new(&rows, &Terms { baseline: Some(&first), margin: MARGIN, ..Terms::default() });
        let mut all: Vec<InitialWindow> = d
            .standings
            .iter()
            .map(|s| InitialWindow {
                segments: segments(&s.summary),
                time_percent: d.against(&s.summary, Figure::Of(d.by)).map(Effect::from),
                lost_packets: d.against(&s.summary, Figure::Of(Measure::StartupLost)).map(Effect::from),
            })
            .collect();
        all.sort_by_key(|w| w.segments);
        let safe = |w: &&InitialWindow| {
            let fine = |e: &Option<Effect>| e.as_ref().is_none_or(|e| e.is != "worse");
            fine(&w.time_percent) && fine(&w.lost_packets)
        };
        let largest = all.iter().take_while(safe).last().map(|w| w.segments);
        Ok((all, largest))
    }

    /// The change of a browser's median time of an object without idle restart.
    fn without_idle_restart(&self, startup: &str) -> Result<Option<Difference>> {
        let rows = |restart: &str| -> Result<Vec<Row>> {
            let set = [("idle_restart", restart.to_string())];
            let study = self.study(&[startup.to_string()], Some("browser"), &set)?;
            Ok(run(&study))
        };
        let (off, on) = (rows("off")?, rows("on")?);
        let pairs = off.iter().zip(&on).map(|(off, on)| Measure::ObjectMedian.of_pair(off, on));
        Ok(decision::times(&pairs.collect::<Vec<_>>(), MARGIN))
    }
}

fn run(study: &Study) -> Vec<Row> {
    let mut rows = Vec::new();
    let Ok(()) = study.run_all(|outcome| -> Result<(), std::convert::Infallible> {
        rows.push(outcome.row);
        Ok(())
    });
    rows
}

fn page(study: &Study, rows: &[Row], harm: &[Harm], base: &str, a: &Advice) -> String {
    let terms = Terms { baseline: Some(base), harm, ..Terms::default() };
    let decision = Decision::new(rows, &terms);
    let mut notes = lines(a);
    notes.extend(a.sure.iter().cloned());
    notes.extend(others(a));
    notes.extend(a.commands.iter().map(|c| format!("next: {c}")));
    html(&Page {
        title: "slowstart: advice",
        about: &format!("{} paths fitted to recordings, {}", a.recorded.paths.len(), about(study)),
        verdict: &headline(a),
        decision: &decision,
        command: &crate::output::command(),
        playground: None,
        rows,
        full_bdps: None,
        series: &[],
        data: None,
        caveats: &notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::schema::{hold, text};

    #[test]
    fn the_schema_is_that_of_the_types() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/advice.json");
        hold(&text::<Advice>("advice", &[]), &file);
    }
}
