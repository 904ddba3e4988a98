//! `slowstart emulate`: any program behind a path of the laboratory.

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use slowstart_lab::path::PathSpec;
use slowstart_linux::emulate::{DirectionStats, Emulation, SERVER};
use std::path::PathBuf;
use std::process::Command;

/// Runs any program behind a path, on the real kernel.
///
/// The program runs at the client's end; the server's is the network namespace named by `SLOWSTART_SERVER_NS`, at the
/// address of `SLOWSTART_SERVER`. The link of the path is on the way from server to client.
///
/// Example: slowstart emulate geo -- sh -c 'ip netns exec $SLOWSTART_SERVER_NS iperf3 -sD; iperf3 -R -c $SLOWSTART_SERVER'
#[derive(Args)]
#[allow(clippy::doc_markdown, reason = "help is no markdown")]
pub(crate) struct Emulate {
    /// A built-in path, a TOML file, or inline as "rate=100Mbit rtt=40ms queue=1bdp"
    path: String,
    /// What the path draws is drawn from this
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where traces are looked for
    #[arg(long)]
    traces: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

fn say(what: &str, way: &DirectionStats) {
    let refused =
        if way.refused > 0 { format!(", {} refused by the device", way.refused) } else { String::new() };
    let line = format!("{what}: {} packets, {} dropped{refused}", way.entered, way.dropped);
    eprintln!("slowstart: {line}; {}", way.lateness);
}

impl Emulate {
    pub(crate) fn main(&self) -> Result<()> {
        let spec = PathSpec::load(&self.path, self.traces.as_deref())?;
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGCHLD].into_iter().collect();
        signals.thread_block()?;
        let emulation = Emulation::start(&spec, self.seed, false)?;
        for caveat in &emulation.caveats {
            eprintln!("slowstart: note: {caveat}");
        }
        let mut child = Command::new("ip")
            .args(["netns", "exec", emulation.client()])
            .args(&self.command)
            .env("SLOWSTART_SERVER", SERVER)
            .env("SLOWSTART_SERVER_NS", emulation.server())
            .spawn()
            .context("ip netns exec")?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if signals.wait()? != Signal::SIGCHLD {
                let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            }
        };
        let report = emulation.stop()?;
        say("forward", &report.forward);
        say("back", &report.back);
        if !report.valid() {
            bail!(
                "INVALID: more than one packet in a hundred was over a millisecond late, so this was not the path"
            );
        }
        if !status.success() {
            bail!("{} ended with {status}", self.command[0]);
        }
        Ok(())
    }
}
