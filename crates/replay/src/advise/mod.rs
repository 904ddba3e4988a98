//! From recordings of a service to what to load for it, or to leave it alone.
//!
//! [`Recorded`] says how transfers left slow start and which paths they show; the simulator runs the startups over
//! these paths ([`advise`]), and the decision is that of [`slowstart_study::decision`].
//!
//! ```no_run
//! use slowstart_replay::advise::{Asked, Recorded, advise, options};
//! use slowstart_replay::{open, replay};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut recorded = Recorded::default();
//! let (kind, input) = open::open("server.pcapng".as_ref())?;
//! replay::stream(kind, input, &options(100_000), &mut |t| recorded.add("server.pcapng", &t), &mut |_| ())?;
//! recorded.files += 1;
//! let advised = advise(recorded, &Asked::default(), &|| false)?;
//! println!("{}", advised.advice.headline());
//! # Ok(())
//! # }
//! ```

mod model;
mod recorded;
mod sentences;

pub use self::recorded::{Agreement, Band, Recorded, options};

use self::model::Model;
use self::sentences::sure;
use serde::Serialize;
use slowstart_report::study::about;
use slowstart_report::{Page, html};
use slowstart_study::chosen;
use slowstart_study::decision::{Change, Decision, Difference, Terms};
use slowstart_study::harm;
use slowstart_study::measured::SIMULATOR;
use slowstart_study::record::{Class, Row};
use slowstart_study::scenario::{Contender, Study, StudyError};
use slowstart_study::stats::sequence::{Power, needed};
use slowstart_study::summary::{Summary, label_of_contender};
use slowstart_study::verdict::{recommended, verdict};
use slowstart_study::words::{list, number};
use std::path::PathBuf;

/// Fewest paths for an advice: the fewest pairs for which a sign test can exclude chance at 5 %.
const FEWEST_PATHS: usize = slowstart_study::stats::FEWEST_PAIRS;
/// Initial windows that are tried, in segments; the first is that of RFC 6928.
const INITIAL_WINDOWS: [u32; 5] = [10, 20, 32, 50, 100];
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

/// Why there is neither an advice nor a reason against one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdviseError {
    /// The startup in use is none, or does not run over the paths.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The caller ended it.
    #[error("interrupted")]
    Stopped,
}

/// What the caller knows about the service.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The startup that the service uses; `None`: what most recordings name or show, else `hystart`.
    pub in_use: Option<String>,
    /// Bytes of a transfer to decide for; `None`: those of the transfer in the middle.
    pub size: Option<u64>,
    /// The cgroup of the service, for the commands.
    pub cgroup: PathBuf,
}

impl Default for Asked {
    fn default() -> Self {
        Self { in_use: None, size: None, cgroup: "/sys/fs/cgroup/system.slice/nginx.service".into() }
    }
}

/// A difference as a program reads it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct Effect {
    /// `better`, `worse`, `none` or `not shown`.
    pub is: &'static str,
    /// The median.
    pub median: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
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

/// What an initial window does, against one of 10 segments.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct InitialWindow {
    /// The initial window.
    pub segments: u32,
    /// The change of the time, percent; null for the window that it is compared with.
    pub time_percent: Option<Effect>,
    /// The change of the packets lost during startup; null likewise.
    pub lost_packets: Option<Effect>,
}

/// The advice.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The version of the schema.
    pub schema: u32,
    /// The version of the program.
    pub version: &'static str,
    /// What was read.
    pub recorded: Recorded,
    /// The startup in use.
    pub in_use: String,
    /// True if nothing shows it: it is assumed, as the default of Linux.
    pub in_use_is_assumed: bool,
    /// What to use instead; null: stay with it.
    pub use_instead: Option<String>,
    /// Why there is no advice; null if there is one.
    pub none_because: Option<String>,
    /// Bytes of the transfer that it is for; null if none was asked for and no recording shows a path.
    pub size_bytes: Option<u64>,
    /// The time of the startup advised against the one in use, percent.
    pub time_percent: Option<Effect>,
    /// Connections of both arms of a trial together that find this difference with a probability of 80 %;
    /// null if none.
    pub trial_connections: Option<u64>,
    /// What initial windows do.
    pub initial_windows: Vec<InitialWindow>,
    /// The largest that is no worse in losses, in segments.
    pub largest_initial_window: Option<u32>,
    /// What `tcp_slow_start_after_idle=0` changes in the median time of a browser's objects, percent.
    pub without_idle_restart_percent: Option<Effect>,
    /// The advice in one sentence.
    pub verdict: String,
    /// How sure it is and what would make it surer, a sentence each.
    pub sure: Vec<String>,
    /// What to run next.
    pub commands: Vec<String>,
}

/// The comparison of startups that an advice rests on.
#[derive(Debug)]
pub struct Compared {
    study: Study,
    rows: Vec<Row>,
    base: String,
}

impl Compared {
    /// Returns how the startups differ from the one in use.
    pub fn decision(&self) -> Decision<'_> {
        let terms = Terms { baseline: Some(&self.base), ..Terms::default() };
        Decision::new(&self.rows, &terms)
    }

    /// Returns the advice as an HTML page, made by `command`.
    pub fn page(&self, a: &Advice, command: &str) -> String {
        let mut notes = a.recordings();
        notes.extend(a.sure.iter().cloned());
        notes.extend(a.other_questions());
        notes.extend(a.commands.iter().map(|c| format!("next: {c}")));
        html(&Page {
            title: "slowstart: advice",
            about: &format!("{} paths fitted to recordings, {}", a.recorded.paths.len(), about(&self.study)),
            verdict: &a.headline(),
            decision: &self.decision(),
            command,
            playground: None,
            rows: &self.rows,
            full_bdps: None,
            series: &[],
            data: None,
            caveats: &notes,
        })
    }
}

/// An advice, and what it rests on.
#[derive(Debug)]
pub struct Advised {
    /// The advice.
    pub advice: Advice,
    /// The comparison; `None` if the recordings are too few, or name no startup to compare with.
    pub compared: Option<Compared>,
}

/// Returns the advice that recordings allow, or why they allow none. Simulates every startup over the paths
/// recorded, on all processors; `stop` is asked after each run, and ends it if true.
///
/// # Errors
/// If the startup in use is none, or `stop` was true.
pub fn advise(
    recorded: Recorded,
    asked: &Asked,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Advised, AdviseError> {
    let question = Question::new(&recorded, asked)?;
    let size = asked.size.or(recorded.middle_bytes());
    let usable = recorded.paths.len();
    let why = question.unlike.clone().or_else(|| {
        let s = if usable == 1 { "" } else { "s" };
        (usable < FEWEST_PATHS)
            .then(|| format!("not enough data: {usable} usable transfer{s}, {FEWEST_PATHS} needed"))
    });
    if let Some(why) = why {
        return Ok(Advised { advice: question.without_paths(recorded, size, why), compared: None });
    }
    let size = size.expect("each path has the bytes of its transfer");
    let model = Model::new(&recorded.largest_paths(), size, stop);
    let mut names = vec![question.in_use.clone()];
    names.extend(chosen::names().filter(|n| *n != question.contender.startup_name).map(String::from));
    let study = model.study(&names, None, &[])?;
    let mut rows = model.run(&study)?;
    let base = label_of_contender(&question.contender);
    let alone = {
        let decision = Decision::new(&rows, &Terms { baseline: Some(&base), ..Terms::default() });
        decision.baseline().and_then(|s| s.summary.of_all_runs(decision.by)).map(|m| m.mid)
    };
    let able = harm::unable(SIMULATOR, &study).is_none();
    if let Some(alone) = alone.filter(|a| *a > 0.0 && able && harm::is_affordable(&study, *a)) {
        harm::add(&study, alone, &mut rows);
    }
    let compared = Compared { study, rows, base };
    let advice = question.advice(recorded, &model, &compared.decision(), &compared.base)?;
    Ok(Advised { advice, compared: Some(compared) })
}

/// What the startups are compared with.
struct Question<'a> {
    asked: &'a Asked,
    /// The name of the startup in use.
    in_use: String,
    contender: Contender,
    /// True if nothing shows it.
    assumed: bool,
    /// Why it cannot be the one in use.
    unlike: Option<String>,
}

impl<'a> Question<'a> {
    fn new(recorded: &Recorded, asked: &'a Asked) -> Result<Self, StudyError> {
        let read = |name: &str| Contender::read("in-use", name, "cubic");
        let known = |name: &&String| read(name).is_ok();
        let shown = recorded.in_use.keys().filter(known).max_by_key(|n| recorded.in_use[*n]).cloned();
        // Only startups that are none of ours: there is nothing to compare with.
        let foreign = asked.in_use.is_none() && shown.is_none() && !recorded.in_use.is_empty();
        let named = asked.in_use.clone().or(shown);
        let unlike = if foreign {
            let names: Vec<String> = recorded.in_use.keys().cloned().collect();
            Some(format!(
                "their senders use {}, which is no startup here; name one in use to compare with",
                list(&names)
            ))
        } else if named.is_none() {
            unlike_default(recorded)
        } else {
            None
        };
        let (alike, agreement) = recorded.most_alike();
        let agrees = alike.len() <= TELLING && 2 * agreement.agree > agreement.of && alike.contains(&DEFAULT);
        let assumed = named.is_none() && !agrees;
        let in_use = named.unwrap_or_else(|| DEFAULT.to_string());
        let contender = read(&in_use)?;
        Ok(Self { asked, in_use, contender, assumed, unlike })
    }

    /// An advice that says what was recorded, and nothing else.
    fn blank(&self, recorded: Recorded, size_bytes: Option<u64>) -> Advice {
        Advice {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            sure: sure(&recorded),
            recorded,
            in_use: self.in_use.clone(),
            in_use_is_assumed: self.assumed,
            use_instead: None,
            none_because: None,
            size_bytes,
            time_percent: None,
            trial_connections: None,
            initial_windows: Vec::new(),
            largest_initial_window: None,
            without_idle_restart_percent: None,
            verdict: String::new(),
            commands: Vec::new(),
        }
    }

    /// The advice of material that allows none. Where the recorded exits were too early, the trial that would
    /// decide.
    fn without_paths(&self, recorded: Recorded, size: Option<u64>, why: String) -> Advice {
        let (early, exits) = recorded.early();
        let trial = exits >= FEWEST_EXITS && early as f64 > MOSTLY * exits as f64 && self.in_use != LATER;
        let (verdict, commands) = if trial {
            let verdict = format!(
                "These recordings allow no verdict ({why}), but {} of {} exits were too early: a trial of {LATER} would decide.",
                number(early as f64),
                number(exits as f64)
            );
            (verdict, self.commands(LATER, None))
        } else {
            (format!("These recordings allow no advice ({why})."), vec![CAPTURE.to_string()])
        };
        Advice { none_because: Some(why), verdict, commands, ..self.blank(recorded, size) }
    }

    fn advice(
        &self,
        recorded: Recorded,
        model: &Model<'_>,
        d: &Decision,
        base: &str,
    ) -> Result<Advice, AdviseError> {
        if let Some(why) = d.baseline().and_then(|s| contradiction(recorded.early(), &s.summary)) {
            // What the paths say is not believed; what they favour is what a trial is for.
            let instead = recommended(d).filter(|label| *label != base).unwrap_or(LATER);
            let verdict =
                format!("These recordings allow no verdict: {why}. A trial of {instead} would decide.");
            let commands = self.commands(instead, None);
            return Ok(Advice {
                none_because: Some(why),
                verdict,
                commands,
                ..self.blank(recorded, Some(model.size))
            });
        }
        // Only a startup that is better in one measure and worse in none; the verdict names those that have a
        // price, and the user weighs it.
        let free = |label: &&str| {
            let of = d.standings.iter().find(|s| s.summary.label == **label);
            of.zip(d.baseline()).is_some_and(|(s, base)| d.is_better(&s.summary, &base.summary))
        };
        let use_instead = recommended(d).filter(|label| *label != base).filter(free).map(str::to_string);
        let chosen = use_instead.as_deref().unwrap_or(base);
        let standing = d.standings.iter().find(|s| s.summary.label == chosen);
        let time = standing.and_then(|s| d.against(&s.summary, d.by));
        let trial_connections =
            time.filter(|_| use_instead.is_some()).and_then(|t| connections(d, t.median.mid));
        let (initial_windows, largest_initial_window) = model.initial_windows(chosen)?;
        let without_idle_restart_percent = model.without_idle_restart(chosen)?.map(Effect::from);
        let mut advice = self.blank(recorded, Some(model.size));
        advice.sure.extend(time.and_then(|t| match t.change {
            Change::NotShown { runs: Some(runs) } => {
                Some(format!("The difference is not certain: about {runs} transfers would show it."))
            }
            Change::NotShown { runs: None } => Some("The difference is not certain.".to_string()),
            _ => None,
        }));
        Ok(Advice {
            time_percent: time.map(Effect::from),
            trial_connections,
            initial_windows,
            largest_initial_window,
            without_idle_restart_percent,
            verdict: verdict(d),
            commands: use_instead.as_deref().map_or(Vec::new(), |s| self.commands(s, trial_connections)),
            use_instead,
            ..advice
        })
    }

    /// What to type next.
    fn commands(&self, startup: &str, connections: Option<u64>) -> Vec<String> {
        let cgroup = self.asked.cgroup.display();
        // The kernel's own CUBIC is hystart.
        let now = if self.in_use == DEFAULT { "cubic" } else { &self.in_use };
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
}

/// Why the default, which would be assumed, is not in use: it does not explain what most senders sent.
fn unlike_default(recorded: &Recorded) -> Option<String> {
    let like = recorded.fits.get(DEFAULT).copied().unwrap_or(0);
    (2 * like < recorded.unnamed).then(|| {
        format!(
            "nothing names the startup in use, and {DEFAULT}, the default of Linux, explains what was sent in {} of {} \
             transfers; name the one in use",
            number(like as f64),
            number(recorded.unnamed as f64)
        )
    })
}

/// Connections of both arms of a trial together that find a change of the time by `percent`, if times deviate
/// as those of the baseline do.
fn connections(d: &Decision, percent: f64) -> Option<u64> {
    let rows = &d.baseline()?.summary.rows;
    let log: Vec<f64> = rows.iter().filter_map(|r| Some(libm::log(d.by.of(r)?))).collect();
    let mean = log.iter().sum::<f64>() / log.len() as f64;
    let variance = log.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (log.len() - 1).max(1) as f64;
    // Two arms of half of the connections each: the deviation of the difference, times the root of their
    // number.
    needed(libm::log(1.0 + percent / 100.0), 2.0 * variance.sqrt(), ALPHA, Power::Eighty)
}

/// A number of connections with two digits.
fn rounded(n: u64) -> f64 {
    let unit = 10_f64.powf((n as f64).log10().floor() - 1.0).max(1.0);
    (n as f64 / unit).ceil() * unit
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
