//! What runs a study: the interface of an engine, and the simulator as one of them.
//!
//! An engine takes a [`Study`] and a [`Job`] and returns the row and the trace of one transfer. The simulator
//! is here; other crates add QUIC stacks and the running kernel. A command that takes `&dyn Engine` takes all
//! of them. What an engine cannot do it refuses by [`Engine::study`], before the first run.

use crate::record::Trace;
use crate::run::{Job, Outcome, in_order};
use crate::scenario::{Contender, Study, StudyError, StudyText, own_settings};
use slowstart_sim::engine::Sampling;
use std::fmt::Debug;
use std::path::Path;
use thiserror::Error;

/// What one engine may carry and another not.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The key `profile`: which TCP stack.
    Profile,
    /// The key `set`: knobs of the TCP stack, but those of the next two.
    Knobs,
    /// The knobs `rmem_first` and `rmem`: the receive buffer (`tcp_rmem`).
    Buffers,
    /// The knob `ecn`: the feedback that both ends use.
    Ecn,
    /// The key `app`: applications other than a bulk download.
    App,
    /// The key `against`: other flows on the path.
    Against,
    /// The key `remember`: what an earlier connection left.
    Remember,
    /// Flows that come, and writes that are made, while a program steps through the run: the cases of the
    /// league with more than one flow, or with an application of its own.
    Driven,
    /// A path with a proxy.
    Proxy,
    /// A path that drops SYNs or SYN-ACKs by their number.
    Handshake,
    /// A path with the interface of the sender: a full queue there holds packets back, and drops none.
    Interface,
    /// An interval of samples that the user chooses.
    Samples,
    /// Captures of the packets at both ends.
    Pcap,
    /// Windows of the sender as qlog.
    Qlog,
}

impl Part {
    /// The part that carries a knob.
    pub fn of_knob(key: &str) -> Self {
        match key {
            "ecn" => Self::Ecn,
            "rmem" | "rmem_first" => Self::Buffers,
            _ => Self::Knobs,
        }
    }

    /// The key of a study file, or the argument, that asks for it.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Knobs | Self::Buffers | Self::Ecn => "set",
            Self::App => "app",
            Self::Against => "against",
            Self::Remember => "remember",
            Self::Driven => "population",
            Self::Proxy | Self::Handshake | Self::Interface => "path",
            Self::Samples => "samples",
            Self::Pcap => "pcap",
            Self::Qlog => "qlog",
        }
    }
}

/// Why an engine cannot carry a part of a study, and which engine can.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What the engine does instead, such as `it runs one connection at a time`.
    pub why: &'static str,
    /// The names of engines that carry it.
    pub instead: &'static str,
}

impl Lack {
    /// What only the simulator carries.
    pub const fn but_sim(why: &'static str) -> Self {
        Self { why, instead: "sim" }
    }
}

/// The answer of an engine that cannot run a study.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: the engine {engine} cannot run this: {why}; expected --engine {instead}")]
pub struct Refusal {
    /// The key of the study that asks for it.
    pub key: &'static str,
    /// The name of the engine that refuses.
    pub engine: String,
    /// What the engine lacks, or does instead.
    pub why: String,
    /// The engines that can.
    pub instead: String,
}

/// Why an engine did not run a study.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The study is wrong, whatever the engine.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// This engine cannot run it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No engine has this name, this program was built without it, or its settings are wrong.
    #[error("engine: {0}")]
    Name(String),
    /// [`Watched::stop`] returned true while it ran.
    #[error("interrupted")]
    Stopped,
    /// The run failed for a reason outside of the study.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// What a run records beside its row, and when it ends early.
#[derive(Copy, Clone)]
pub struct Watched<'a> {
    /// When samples are taken. An engine on the real clock takes those it gets.
    pub sampling: Sampling,
    /// True if samples have the internal values of the startup, where the engine knows them.
    pub internals: bool,
    /// Asked while a run on the real clock lasts: true ends it with [`EngineError::Stopped`]. Runs at virtual
    /// time are short, and finish.
    pub stop: &'a dyn Fn() -> bool,
}

impl Watched<'_> {
    /// A row only, of a run that nothing ends early.
    pub const ROW: Watched<'static> = Watched { sampling: Sampling::Off, internals: false, stop: &|| false };

    /// Samples without internal values.
    pub const fn samples(sampling: Sampling) -> Watched<'static> {
        Watched { sampling, internals: false, stop: &|| false }
    }
}

/// What [`Engine::capture`] kept of a run.
#[derive(Clone, Debug)]
pub enum Capture {
    /// Every acknowledgement and every packet.
    Trace(Box<Trace>),
    /// The log of each end, by the name of the end.
    Logs(Vec<(&'static str, Vec<u8>)>),
}

/// An engine: what runs a study and observes its flows.
pub trait Engine: Debug + Send + Sync {
    /// Its name, with its settings: what `--engine` takes.
    fn name(&self) -> &str;

    /// What tells it from others of its name, such as a kernel that was built again. Runs of one do not continue those
    /// of another.
    fn identity(&self) -> String {
        self.name().to_string()
    }

    /// True if a run takes the time that it measures: such runs are made one at a time, and none can be
    /// repeated.
    fn is_real_clock(&self) -> bool {
        false
    }

    /// Why it cannot carry a part of a study; `None` if it can.
    fn lacks(&self, part: Part) -> Option<Lack>;

    /// The startups of a study that names none, with this avoidance after each.
    fn startups(&self, avoidance: &str) -> Vec<String>;

    /// A startup and an avoidance as written.
    ///
    /// # Errors
    /// If it does not know one of them, or cannot run it.
    fn contender(&self, startup: &str, avoidance: &str) -> Result<Contender, EngineError>;

    /// The stack that runs `study`, as rows name it.
    fn stack(&self, study: &Study) -> String;

    /// What a user should know before the first run, such as how long the study takes; a sentence each.
    fn notes(&self, _study: &Study) -> Vec<String> {
        Vec::new()
    }

    /// Runs one job of a study that [`Engine::study`] returned.
    ///
    /// # Errors
    /// If the run fails. What happens to a transfer is no error: its row says it.
    fn run(&self, study: &Study, job: Job, watched: &Watched<'_>) -> Result<Outcome, EngineError>;

    /// Repeats a job and keeps what there is to know of it.
    ///
    /// # Errors
    /// If the engine has no such record ([`Part::Pcap`], [`Part::Qlog`]), or the run fails.
    fn capture(&self, study: &Study, job: Job) -> Result<Capture, EngineError>;

    /// The refusal of a part of a study.
    fn refusal(&self, part: Part) -> Option<Refusal> {
        let Lack { why, instead } = self.lacks(part)?;
        Some(Refusal {
            key: part.key(),
            engine: self.name().to_string(),
            why: why.into(),
            instead: instead.into(),
        })
    }

    /// Fails if it cannot carry one of these parts.
    ///
    /// # Errors
    /// The first that it lacks.
    fn require(&self, parts: &[Part]) -> Result<(), Refusal> {
        parts.iter().find_map(|p| self.refusal(*p)).map_or(Ok(()), Err)
    }

    /// The checked study of what was written. Files that it names are relative to `root`.
    ///
    /// # Errors
    /// What is wrong with the study, or what of it this engine cannot carry.
    fn study(&self, text: &StudyText, root: Option<&Path>) -> Result<Study, EngineError> {
        checked(self, text, root)
    }

    /// Fails if it cannot run a checked study.
    ///
    /// # Errors
    /// The first part that it lacks.
    fn check(&self, study: &Study) -> Result<(), Refusal> {
        let asked = [
            (Part::App, !study.is_one_bulk()),
            (Part::Against, !study.against.is_empty()),
            (Part::Proxy, study.path.proxy().is_some()),
            (Part::Handshake, study.path.drops_syns()),
            (Part::Interface, study.path.has_interface()),
        ];
        asked
            .into_iter()
            .filter(|(_, asked)| *asked)
            .find_map(|(part, _)| self.refusal(part))
            .map_or(Ok(()), Err)
    }
}

/// What [`Engine::study`] returns, unless an engine has its own: one that wraps another calls it with itself.
///
/// # Errors
/// What is wrong with the study, or what of it the engine cannot carry.
pub fn checked<E: Engine + ?Sized>(
    engine: &E,
    text: &StudyText,
    root: Option<&Path>,
) -> Result<Study, EngineError> {
    text.check_lengths()?;
    let sets = |part| text.set.keys().any(|key| Part::of_knob(key) == part);
    let given = [
        (Part::Profile, text.profile.is_some()),
        (Part::Knobs, sets(Part::Knobs) || text.startups.iter().any(|s| own_settings(s).1.is_some())),
        (Part::Buffers, sets(Part::Buffers)),
        (Part::Ecn, sets(Part::Ecn)),
        (Part::Remember, text.remember.is_some()),
    ];
    let given: Vec<Part> = given.into_iter().filter_map(|(part, given)| given.then_some(part)).collect();
    engine.require(&given)?;
    let with = text.avoidance.as_deref().unwrap_or("cubic");
    let names = if text.startups.is_empty() { engine.startups(with) } else { text.startups.clone() };
    let contender = |written: &String| {
        let (startup, settings) = own_settings(written);
        let mut contender = engine.contender(startup, with)?;
        if let Some(settings) = settings {
            contender.label = format!("{}@{settings}", contender.label);
        }
        Ok(contender)
    };
    let contenders = names.iter().map(contender).collect::<Result<Vec<_>, EngineError>>()?;
    let mut study = Study::of(text, contenders, root)?;
    engine.check(&study)?;
    study.profile_label = engine.stack(&study);
    Ok(study)
}

/// Runs jobs: those of an engine at virtual time on all processors, those on the real clock one after the
/// other. `each` gets what `run` returns in the order of the jobs; an error of `each` ends it.
///
/// # Errors
/// Those of `each`.
pub fn run_jobs<J: Copy + Sync, T: Send, E>(
    engine: &dyn Engine,
    jobs: &[J],
    run: impl Fn(J) -> T + Sync,
    mut each: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    if engine.is_real_clock() {
        jobs.iter().try_for_each(|job| each(run(*job)))
    } else {
        in_order(jobs, run, each)
    }
}
