//! `slowstart vectors`: events and windows of every startup, to check an implementation in another language
//! with.

use anyhow::{Context, Result, anyhow};
use clap::Args;
use slowstart::registry;
use std::io::{self, BufWriter, Write};

/// Print what startups do, event by event, to check an implementation in another language
///
/// JSON lines. Each startup runs through the same nine connections over 10 Mbit/s
/// and 50 ms: a deep and a shallow queue, marks, an application that sends
/// little, an idle time, a timeout, a spurious loss, a known path, a lost SYN.
/// The first line of a connection has its name, the startup, the avoidance, the
/// packet size and the initial window. Each further line is one call of the
/// controller: the event, the facts that changed, its arguments, and the window,
/// threshold, pacing, timer and exit after it. Sizes are bytes, times
/// nanoseconds, rates bit/s.
///
/// Examples:
///   slowstart vectors search > search.jsonl
///   slowstart vectors standard hystart++ | head -3
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Vectors {
    /// Startups, by name [default: all]
    #[arg(value_name = "STARTUP")]
    startups: Vec<String>,
}

impl Vectors {
    pub(crate) fn main(self) -> Result<()> {
        let named = |name: &String| {
            registry::named(name).with_context(|| {
                let known: Vec<&str> = registry::all().map(|e| e.name).collect();
                let hint = slowstart_sim::suggest::did_you_mean(name, &known);
                anyhow!("startup: found {name:?}{hint}, expected a name that `slowstart list startups` shows")
            })
        };
        let all = if self.startups.is_empty() {
            registry::all().collect()
        } else {
            self.startups.iter().map(named).collect::<Result<Vec<_>>>()?
        };
        let mut out = BufWriter::new(io::stdout().lock());
        slowstart_study::vectors::write(&all, &mut out)?;
        Ok(out.flush()?)
    }
}
