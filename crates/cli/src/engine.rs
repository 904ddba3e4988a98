//! The argument `--engine`: what runs a study.

use crate::interrupt::Interrupt;
use anyhow::Result;
use clap::Args;
use slowstart_study::engines::Engine;
use slowstart_study::scenario::StudyText;
use std::io;

/// Which engine runs a study.
#[derive(Args, Clone, Default)]
pub(crate) struct EngineArg {
    /// What runs the study. `sim` is the simulator; `quic:quinn` and `quic:noq` are QUIC stacks over the
    /// simulator's paths (see docs/guide/quic.md), `quic` is the first, and settings may follow, as in
    /// quic:noq,ecn=on,mtu=1472; `kernel` is the running Linux kernel over the same path in real time, which
    /// needs root (see docs/reference/kernel.md) [default: sim, or the key `engine` of the study]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,
}

impl EngineArg {
    /// Its name, as it was given.
    pub(crate) fn name(&self) -> Option<&str> {
        self.engine.as_deref()
    }

    /// The engine of a study: that of the argument, or else of its key `engine`.
    pub(crate) fn of(&self, text: &StudyText) -> Result<Box<dyn Engine>> {
        Ok(slowstart_engines::of(self.engine.as_deref(), text)?)
    }
}

/// Records signals while these engines run. Runs on the real clock clean up after themselves, so that a
/// second signal does not end them at once.
pub(crate) fn interrupt_of_all<'a>(
    mut engines: impl Iterator<Item = &'a dyn Engine>,
) -> io::Result<Interrupt> {
    if engines.any(Engine::is_real_clock) { Interrupt::record() } else { Interrupt::record_first() }
}

/// Records signals while this engine runs, as [`interrupt_of_all`] does.
pub(crate) fn interrupt_of(engine: &dyn Engine) -> io::Result<Interrupt> {
    interrupt_of_all(std::iter::once(engine))
}
