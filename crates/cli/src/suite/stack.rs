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
    /// The stack's name in the report [default: the program of --serve]
    #[arg(long, value_name = "NAME", requires = "serve")]
    name: Option<String>,
    /// Its version, for the report
    #[arg(long, value_name = "VERSION", requires = "serve")]
    stack_version: Option<String>,
    /// Its congestion control, for the report [default: what its qlog states]
    #[arg(long, value_name = "NAME", requires = "serve")]
    congestion_control: Option<String>,
    /// Fetch once before each run, at the server's own address and not over the path: so that a server that compiles or
    /// fills caches at first is judged warm
    #[arg(long, requires = "serve")]
    warm_up: bool,
    /// The folder to which the server writes qlog: exit, window and the most in flight come from there, and
    /// are else not observed
    #[arg(long, value_name = "DIR", requires = "serve")]
    qlog: Option<PathBuf>,
}

/// The commands of a stack.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "kernel"), expect(dead_code, reason = "only the emulator reads the others"))]
pub(super) struct Commands {
    pub(super) serve: String,
    pub(super) fetch: String,
    pub(super) qlog: Option<PathBuf>,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) control: Option<String>,
    pub(super) warm_up: bool,
}

impl StackArgs {
    /// The options that have a value, with it, as they were given.
    pub(super) fn options(&self) -> Vec<(&'static str, String)> {
        let qlog = self.qlog.as_ref().map(|dir| dir.display().to_string());
        let all = [
            ("--serve", &self.serve),
            ("--fetch", &self.fetch),
            ("--name", &self.name),
            ("--stack-version", &self.stack_version),
            ("--congestion-control", &self.congestion_control),
            ("--qlog", &qlog),
        ];
        all.into_iter().filter_map(|(option, value)| Some((option, value.clone()?))).collect()
    }

    /// True if each run is to follow a fetch outside the path.
    pub(super) const fn warm_up(&self) -> bool {
        self.warm_up
    }

    /// The commands, if they were given.
    pub(super) fn of(&self) -> Result<Option<Commands>> {
        let (Some(serve), Some(fetch)) = (&self.serve, &self.fetch) else { return Ok(None) };
        if let Some(dir) = self.qlog.as_ref().filter(|dir| !dir.is_dir()) {
            bail!("--qlog: found {}, expected a folder", dir.display());
        }
        Ok(Some(Commands {
            serve: serve.clone(),
            fetch: fetch.clone(),
            qlog: self.qlog.clone(),
            name: self.name.clone(),
            version: self.stack_version.clone(),
            control: self.congestion_control.clone(),
            warm_up: self.warm_up,
        }))
    }
}

#[cfg(not(feature = "kernel"))]
pub(super) fn run(_: &Suite, commands: &Commands, _: u64, _: Option<u32>) -> Result<Report> {
    let Commands { serve, fetch, .. } = commands;
    bail!("--serve {serve:?} --fetch {fetch:?}: built without the emulator; `make kernel` builds with it")
}

#[cfg(feature = "kernel")]
pub(super) use super::live::run;
