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
    Quic,
}

impl Engine {
    /// Runs one job.
    pub(crate) fn run(self, study: &Study, job: Job, sampling: Sampling, internals: bool) -> Result<Outcome> {
        match self {
            Self::Sim => Ok(study.run(job, sampling, internals)),
            Self::Quic => quic::run(study, job, sampling, internals),
        }
    }

    /// The studies over these paths. Fails if the engine cannot run one of them.
    pub(crate) fn studies(self, args: &StudyArgs, paths: &[String]) -> Result<Vec<Study>> {
        paths
            .iter()
            .map(|path| {
                let mut text = args.text(path)?;
                if self == Self::Sim {
                    return Ok(Study::check(&text, None)?);
                }
                for (key, given) in [("profile", text.profile.is_some()), ("set", !text.set.is_empty())] {
                    if given {
                        bail!("--{key}: a TCP stack has it; --engine quic runs a QUIC stack");
                    }
                }
                if text.startups.is_empty() {
                    text.startups = quic::carried();
                }
                let mut study = Study::check(&text, None)?;
                quic::prepare(&mut study)?;
                Ok(study)
            })
            .collect()
    }
}

#[cfg(feature = "quic")]
mod quic {
    use super::{Job, Outcome, Result, Sampling, Study};
    use slowstart_quic::sim;

    pub(super) fn run(study: &Study, job: Job, sampling: Sampling, internals: bool) -> Result<Outcome> {
        Ok(sim::run(study, job, sampling, internals)?)
    }

    /// The startups that run over QUIC.
    pub(super) fn carried() -> Vec<String> {
        let names = slowstart::registry::all().map(|e| e.name);
        names.filter(|name| sim::NOT_CARRIED.iter().all(|(n, _)| n != name)).map(str::to_string).collect()
    }

    pub(super) fn prepare(study: &mut Study) -> Result<()> {
        sim::check(study)?;
        study.profile_label = sim::STACK.to_string();
        Ok(())
    }
}

#[cfg(not(feature = "quic"))]
mod quic {
    use super::{Job, Outcome, Result, Sampling, Study, bail};

    const WITHOUT: &str = "--engine quic: built without QUIC; build with `cargo build --release -p slowstart-cli --features quic`";

    pub(super) fn run(_: &Study, _: Job, _: Sampling, _: bool) -> Result<Outcome> {
        bail!(WITHOUT)
    }

    pub(super) fn carried() -> Vec<String> {
        Vec::new()
    }

    pub(super) fn prepare(_: &mut Study) -> Result<()> {
        bail!(WITHOUT)
    }
}
