//! `slowstart explain`: one run as a timeline in sentences.

use crate::condensed;
use crate::engine::{EngineArg, interrupt_of};
use crate::interrupt::Interrupted;
use crate::output::{print, print_verdict, wrap};
use crate::printable::printable;
use crate::study_args::TransferArgs;
use anyhow::{Context, Result, bail};
use clap::Args;
use slowstart_sim::engine::Sampling;
use slowstart_study::engines::Watched;
use slowstart_study::explain::{Told, fixed};
use slowstart_study::run::Job;
use slowstart_study::scenario::{StudyError, StudyText};
use slowstart_study::words::number;

/// Explain one run of one startup: what it saw, what it did, why it exited, and what that cost
///
/// The run is the one that `slowstart compare` with the same arguments makes.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart explain geo hystart
  slowstart explain \"rate=50Mbit rtt=80ms queue=1bdp\" search:drain=off --run 3
  slowstart explain lte rate-bound --trace
  slowstart explain leo search --engine quic:quinn")]
pub(crate) struct Explain {
    /// A built-in path (`geo`, see `slowstart list paths`), a TOML file (`my.toml`), or a path written inline
    /// as "rate=100Mbit rtt=40ms queue=1bdp" (see `slowstart list path-keys`)
    path: String,
    /// A startup, as name or name:key=value,key=value (see `slowstart list startups`)
    startup: String,
    /// Index of the run, from 0; each run has its own random seed
    #[arg(long, default_value_t = 0, value_name = "N")]
    run: u32,
    /// Print numbers: a line for each change of phase, each quarter by which the window changed, each event
    /// and each burst of drops
    #[arg(long)]
    trace: bool,
    #[command(flatten)]
    transfer: TransferArgs,
    #[command(flatten)]
    engine: EngineArg,
}

impl Explain {
    pub(crate) fn main(&self) -> Result<()> {
        let text = StudyText {
            startups: vec![self.startup.clone()],
            runs: Some(self.run.checked_add(1).context("run: too large")?),
            ..self.transfer.text(&self.path)?
        };
        let engine = self.engine.of(&text)?;
        let study = engine.study(&text, None)?;
        if study.connections > 1 {
            return Err(StudyError::Value {
                key: "app".into(),
                found: text.app.unwrap_or_default(),
                hint: String::new(),
                expected: "one connection: this tells of one".into(),
            }
            .into());
        }
        let interrupt = interrupt_of(&*engine)?;
        let stop = || interrupt.signal().is_some();
        let watched = Watched { sampling: Sampling::EachAck, internals: true, stop: &stop };
        let outcome = engine.run(&study, Job { contender: 0, run: self.run }, &watched);
        if let (Err(_), Some(signal)) = (&outcome, interrupt.signal()) {
            return Err(Interrupted { signal, finished: None }.into());
        }
        let outcome = outcome?;
        if outcome.trace.samples.is_empty() {
            bail!("no acknowledgement arrived in {} s: nothing to explain", number(outcome.row.duration_s));
        }
        let told = Told::new(&study, &outcome.row, &outcome.trace, outcome.measured.packet.payload);
        print(&wrap(&printable(&told.heading()), 2))?;
        print_verdict(&printable(&told.headline()))?;
        if self.trace {
            return condensed::lines(&told.samples, &told.events, told.mss).iter().try_for_each(|l| print(l));
        }
        for (at, text) in told.timeline() {
            print(&wrap(&format!("{:>9} s  {text}", fixed(at)), 13))?;
        }
        print("\nWhat that cost")?;
        for text in told.costs() {
            print(&wrap(&format!("  {text}"), 4))?;
        }
        Ok(())
    }
}
