//! `slowstart suite run --serve COMMAND --fetch COMMAND`: a whole stack, as it is, over the paths of a suite.

use anyhow::{Result, bail};
use clap::Args;
#[cfg(not(feature = "kernel"))]
use slowstart_suite::{Report, Suite};
use std::path::PathBuf;

/// A stack by its commands.
#[derive(Args, Clone, Default)]
#[allow(clippy::doc_markdown, reason = "help is no markdown")]
pub(super) struct StackArgs {
    /// A shell command that serves the files of $SLOWSTART_FILES at the server's end of the path
    #[arg(long, value_name = "COMMAND", requires = "fetch", conflicts_with_all = ["startup", "avoidance", "engine"])]
    serve: Option<String>,
    /// A shell command that fetches the file $SLOWSTART_SIZE from $SLOWSTART_SERVER at the client's end
    #[arg(long, value_name = "COMMAND", requires = "serve")]
    fetch: Option<String>,
    /// The folder to which the server writes qlog: exit, window and the most in flight come from there, and
    /// are else not observed
    #[arg(long, value_name = "DIR", requires = "serve")]
    qlog: Option<PathBuf>,
}

/// The commands of a stack.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    pub(super) serve: String,
    pub(super) fetch: String,
    #[cfg_attr(not(feature = "kernel"), expect(dead_code, reason = "only the emulator reads it"))]
    pub(super) qlog: Option<PathBuf>,
}

impl StackArgs {
    /// The commands, if they were given.
    pub(super) fn of(&self) -> Result<Option<Commands>> {
        let (Some(serve), Some(fetch)) = (&self.serve, &self.fetch) else { return Ok(None) };
        if let Some(dir) = self.qlog.as_ref().filter(|dir| !dir.is_dir()) {
            bail!("--qlog: found {}, expected a folder", dir.display());
        }
        Ok(Some(Commands { serve: serve.clone(), fetch: fetch.clone(), qlog: self.qlog.clone() }))
    }
}

#[cfg(not(feature = "kernel"))]
pub(super) fn run(_: &Suite, commands: &Commands, _: u64, _: Option<u32>) -> Result<Report> {
    let Commands { serve, fetch, qlog: _ } = commands;
    bail!("--serve {serve:?} --fetch {fetch:?}: built without the emulator; `make kernel` builds with it")
}

#[cfg(feature = "kernel")]
pub(super) use super::live::run;
