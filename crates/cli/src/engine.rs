//! Which engine runs a study: the simulator, or a QUIC stack at virtual time.

use crate::study_args::StudyArgs;
use anyhow::{Result, bail};
use slowstart_lab::engine::Sampling;
use slowstart_lab::run::{Job, Outcome};
use slowstart_lab::scenario::Study;

/// An engine whose runs are deterministic. The running kernel is not one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The simulator.
    Sim,
    /// A QUIC stack over the simulator's paths.
    Quic(quic::Stack),
}

/// Checks the form of `--engine`. What follows `quic:` is checked with the study.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let known =
        matches!(text, "sim" | "kernel" | "quic") || text.starts_with("quic:") || text.starts_with("quic,");
    known
        .then(|| text.to_string())
        .ok_or_else(|| "expected sim, kernel, quic, quic:noq or quic:quinn".to_string())
}

impl Engine {
    /// The engine that `--engine` names.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let Some(stack) = name.strip_prefix("quic") else { return Ok(Self::Sim) };
        quic::named(stack.trim_start_matches(':')).map(Self::Quic)
    }

    /// Runs one job.
    pub(crate) fn run(self, study: &Study, job: Job, sampling: Sampling, internals: bool) -> Result<Outcome> {
        match self {
            Self::Sim => Ok(study.run(job, sampling, internals)),
            Self::Quic(stack) => quic::run(stack, study, job, sampling, internals),
        }
    }

    /// Repeats a job; returns the qlog of the client and of the server. Only a QUIC stack has both.
    pub(crate) fn logs(self, study: &Study, job: Job) -> Result<[Vec<u8>; 2]> {
        match self {
            Self::Sim => bail!("qlog: the simulator writes that of the sender"),
            Self::Quic(stack) => quic::logs(stack, study, job),
        }
    }

    /// The studies over these paths. Fails if the engine cannot run one of them.
    pub(crate) fn studies(self, args: &StudyArgs, paths: &[String]) -> Result<Vec<Study>> {
        paths
            .iter()
            .map(|path| {
                let mut text = args.text(path)?;
                let Self::Quic(stack) = self else { return Ok(Study::check(&text, None)?) };
                for (key, given) in [("profile", text.profile.is_some()), ("set", !text.set.is_empty())] {
                    if given {
                        bail!("--{key}: a TCP stack has it; --engine quic runs a QUIC stack");
                    }
                }
                if text.startups.is_empty() {
                    text.startups = quic::carried();
                }
                let mut study = Study::check(&text, None)?;
                quic::prepare(stack, &mut study)?;
                Ok(study)
            })
            .collect()
    }
}

#[cfg(feature = "quic")]
mod quic {
    use super::{Job, Outcome, Result, Sampling, Study};
    use slowstart_quic::sim::{self, Knobs, Which};

    /// A stack and its settings.
    pub(crate) type Stack = (Which, Knobs);

    pub(super) fn named(stack: &str) -> Result<Stack> {
        Ok(Knobs::parse(stack)?)
    }

    pub(super) fn run(
        (which, knobs): Stack,
        study: &Study,
        job: Job,
        sampling: Sampling,
        internals: bool,
    ) -> Result<Outcome> {
        Ok(which.run(&knobs, study, job, sampling, internals)?)
    }

    pub(super) fn logs((which, knobs): Stack, study: &Study, job: Job) -> Result<[Vec<u8>; 2]> {
        Ok(which.logs(&knobs, study, job)?)
    }

    /// The startups that run over QUIC.
    pub(super) fn carried() -> Vec<String> {
        let names = slowstart::registry::all().map(|e| e.name);
        names.filter(|name| sim::NOT_CARRIED.iter().all(|(n, _)| n != name)).map(str::to_string).collect()
    }

    pub(super) fn prepare((which, knobs): Stack, study: &mut Study) -> Result<()> {
        sim::check(study)?;
        study.profile_label = format!("{}{}", which.name(), knobs.label());
        Ok(())
    }
}

#[cfg(not(feature = "quic"))]
mod quic {
    use super::{Job, Outcome, Result, Sampling, Study, bail};

    /// None is built.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub(crate) enum Stack {}

    pub(super) fn named(_: &str) -> Result<Stack> {
        bail!(
            "--engine quic: built without QUIC; build with `cargo build --release -p slowstart-cli --features quic`"
        )
    }

    pub(super) fn run(stack: Stack, _: &Study, _: Job, _: Sampling, _: bool) -> Result<Outcome> {
        match stack {}
    }

    pub(super) fn logs(stack: Stack, _: &Study, _: Job) -> Result<[Vec<u8>; 2]> {
        match stack {}
    }

    pub(super) fn carried() -> Vec<String> {
        Vec::new()
    }

    pub(super) fn prepare(stack: Stack, _: &mut Study) -> Result<()> {
        match stack {}
    }
}
