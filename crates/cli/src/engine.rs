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
    Quic(Stack),
}

/// The QUIC stacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stack {
    Noq,
    Quinn,
}

impl Engine {
    /// The engine that `--engine` names.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "quic" | "quic:noq" => Self::Quic(Stack::Noq),
            "quic:quinn" => Self::Quic(Stack::Quinn),
            _ => Self::Sim,
        }
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
    use super::{Job, Outcome, Result, Sampling, Stack, Study};
    use slowstart_quic::sim::{self, Which};

    fn which(stack: Stack) -> Which {
        match stack {
            Stack::Noq => Which::Noq,
            Stack::Quinn => Which::Quinn,
        }
    }

    pub(super) fn run(
        stack: Stack,
        study: &Study,
        job: Job,
        sampling: Sampling,
        internals: bool,
    ) -> Result<Outcome> {
        Ok(which(stack).run(study, job, sampling, internals)?)
    }

    pub(super) fn logs(stack: Stack, study: &Study, job: Job) -> Result<[Vec<u8>; 2]> {
        Ok(which(stack).logs(study, job)?)
    }

    /// The startups that run over QUIC.
    pub(super) fn carried() -> Vec<String> {
        let names = slowstart::registry::all().map(|e| e.name);
        names.filter(|name| sim::NOT_CARRIED.iter().all(|(n, _)| n != name)).map(str::to_string).collect()
    }

    pub(super) fn prepare(stack: Stack, study: &mut Study) -> Result<()> {
        sim::check(study)?;
        study.profile_label = which(stack).name().to_string();
        Ok(())
    }
}

#[cfg(not(feature = "quic"))]
mod quic {
    use super::{Job, Outcome, Result, Sampling, Stack, Study, bail};

    const WITHOUT: &str = "--engine quic: built without QUIC; build with `cargo build --release -p slowstart-cli --features quic`";

    pub(super) fn run(_: Stack, _: &Study, _: Job, _: Sampling, _: bool) -> Result<Outcome> {
        bail!(WITHOUT)
    }

    pub(super) fn logs(_: Stack, _: &Study, _: Job) -> Result<[Vec<u8>; 2]> {
        bail!(WITHOUT)
    }

    pub(super) fn carried() -> Vec<String> {
        Vec::new()
    }

    pub(super) fn prepare(_: Stack, _: &mut Study) -> Result<()> {
        bail!(WITHOUT)
    }
}
