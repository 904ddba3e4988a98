//! `slowstart vectors`: events and windows of every startup, to check an implementation in another language
//! with.

use anyhow::Result;
use clap::Args;
use slowstart::registry;
use std::io::{self, BufWriter, Write};

/// Print what startups do, event by event, to check an implementation in another language
///
/// JSON lines. Each startup runs through the same connections, among them deep and
/// shallow queues, RTTs of 5 to 200 ms that rise and fall, losses in each phase,
/// delayed, stretch and compressed ACKs, reordering, application limits, idle times,
/// timeouts, marks, known paths and lost SYNs. The first line of a connection has its
/// name, the startup, the avoidance, the packet size and the initial window. Each
/// further line is one call of the controller: the event, the facts that changed, its
/// arguments, and the window, threshold, pacing, timer and exit after it. Sizes are
/// bytes, times nanoseconds, rates bit/s. docs/reference/vectors.md describes every
/// field.
///
/// Examples:
///   slowstart vectors search > search.jsonl
///   slowstart vectors standard search:window=4 | head -3
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Vectors {
    /// Startups, by name, with parameters if you like [default: all]
    #[arg(value_name = "STARTUP")]
    startups: Vec<String>,
}

impl Vectors {
    pub(crate) fn main(self) -> Result<()> {
        let named =
            |text: &String| Ok((text.clone(), slowstart_study::scenario::algorithm("startup", text)?.1));
        let all = if self.startups.is_empty() {
            registry::all().map(|e| (e.name.to_string(), e.algorithm)).collect()
        } else {
            self.startups.iter().map(named).collect::<Result<Vec<_>>>()?
        };
        let mut out = BufWriter::new(io::stdout().lock());
        slowstart_study::vectors::write(&all, &mut out)?;
        Ok(out.flush()?)
    }
}
