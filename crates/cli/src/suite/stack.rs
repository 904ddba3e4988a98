//! `slowstart suite run --serve COMMAND --fetch COMMAND`, or `--interop IMAGE`: a whole stack, as it is, over the paths of a
//! suite.

#[cfg(feature = "kernel")]
use super::interop::Endpoint;

use anyhow::{Result, bail};
use clap::{ArgGroup, Args};
#[cfg(not(feature = "kernel"))]
use slowstart_suite::{Report, Suite};
use std::path::{Path, PathBuf};

/// A stack by its commands, or by an image that has both.
#[derive(Args, Clone, Default)]
#[command(group(ArgGroup::new("whole").args(["serve", "interop"])))]
#[allow(clippy::doc_markdown, reason = "help is no markdown")]
pub(super) struct StackArgs {
    /// A shell command that serves the files of $SLOWSTART_FILES at the server's end of the path
    #[arg(long, value_name = "COMMAND", requires = "fetch", conflicts_with_all = ["startup", "avoidance", "engine"])]
    serve: Option<String>,
    /// A shell command that fetches the file $SLOWSTART_SIZE from $SLOWSTART_SERVER at the client's end
    #[arg(long, value_name = "COMMAND", requires = "serve")]
    fetch: Option<String>,
    /// An image by the container contract of the QUIC interop runner, or the folder of its unpacked root: its server and its
    /// client, in place of two commands
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["serve", "startup", "avoidance", "engine"])]
    interop: Option<String>,
    /// The runner's test case that both ends of the image are asked for
    #[arg(long, value_name = "NAME", requires = "interop", default_value = "transfer")]
    testcase: String,
    /// The stack's name in the report [default: the program of --serve, or the image]
    #[arg(long, value_name = "NAME", requires = "whole")]
    name: Option<String>,
    /// Its version, for the report
    #[arg(long, value_name = "VERSION", requires = "whole")]
    stack_version: Option<String>,
    /// Its congestion control, for the report [default: what its qlog states]
    #[arg(long, value_name = "NAME", requires = "whole")]
    congestion_control: Option<String>,
    /// The file or folder of the stack whose SHA-256 the report states [default: the folder of --interop]
    #[arg(long, value_name = "FILE", requires = "whole")]
    entrant: Option<PathBuf>,
    /// Fetch once before each run, at the server's own address and not over the path: so that a server that compiles or
    /// fills caches at first is judged warm
    #[arg(long, requires = "whole")]
    warm_up: bool,
    /// The folder to which the server writes qlog: exit, window and the most in flight come from there; without
    /// it they are not observed
    #[arg(long, value_name = "DIR", requires = "whole")]
    qlog: Option<PathBuf>,
}

/// The commands of a stack.
#[derive(Debug)]
#[cfg_attr(not(feature = "kernel"), expect(dead_code, reason = "only the emulator reads the others"))]
pub(super) struct Commands {
    pub(super) serve: String,
    pub(super) fetch: String,
    pub(super) qlog: Option<PathBuf>,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) control: Option<String>,
    pub(super) warm_up: bool,
    /// The image whose they are.
    #[cfg(feature = "kernel")]
    pub(super) endpoint: Option<Endpoint>,
}

impl StackArgs {
    /// The options that have a value, with it, as they were given.
    pub(super) fn options(&self) -> Vec<(&'static str, String)> {
        let qlog = self.qlog.as_ref().map(|dir| dir.display().to_string());
        let entrant = self.entrant.as_ref().map(|file| file.display().to_string());
        let testcase = self.interop.is_some().then(|| self.testcase.clone());
        let all = [
            ("--serve", &self.serve),
            ("--fetch", &self.fetch),
            ("--interop", &self.interop),
            ("--testcase", &testcase),
            ("--name", &self.name),
            ("--stack-version", &self.stack_version),
            ("--congestion-control", &self.congestion_control),
            ("--entrant", &entrant),
            ("--qlog", &qlog),
        ];
        all.into_iter().filter_map(|(option, value)| Some((option, value.clone()?))).collect()
    }

    /// What is judged, for its hash; the identifier of an image is its version.
    pub(super) fn entrant(&self) -> Option<&Path> {
        let root = self.interop.as_deref().map(Path::new).filter(|root| root.is_dir());
        self.entrant.as_deref().or(root)
    }

    /// True if each run is to follow a fetch outside the path.
    pub(super) const fn warm_up(&self) -> bool {
        self.warm_up
    }

    /// The commands, if they were given.
    pub(super) fn of(&self) -> Result<Option<Commands>> {
        if let Some(dir) = self.qlog.as_ref().filter(|dir| !dir.is_dir()) {
            bail!("--qlog: found {}, expected a folder", dir.display());
        }
        if let Some(image) = &self.interop {
            return self.of_image(image).map(Some);
        }
        let (Some(serve), Some(fetch)) = (&self.serve, &self.fetch) else { return Ok(None) };
        Ok(Some(Commands {
            serve: serve.clone(),
            fetch: fetch.clone(),
            qlog: self.qlog.clone(),
            name: self.name.clone(),
            version: self.stack_version.clone(),
            control: self.congestion_control.clone(),
            warm_up: self.warm_up,
            #[cfg(feature = "kernel")]
            endpoint: None,
        }))
    }

    /// The commands of an image.
    #[cfg(feature = "kernel")]
    fn of_image(&self, image: &str) -> Result<Commands> {
        let endpoint = Endpoint::open(image, &self.testcase, self.qlog.as_deref())?;
        Ok(Commands {
            serve: endpoint.command("server")?,
            fetch: endpoint.command("client")?,
            qlog: Some(endpoint.qlog.clone()),
            name: self.name.clone().or_else(|| Some(endpoint.name.clone())),
            version: self.stack_version.clone().or_else(|| endpoint.id.clone()),
            control: self.congestion_control.clone(),
            warm_up: self.warm_up,
            endpoint: Some(endpoint),
        })
    }

    #[cfg(not(feature = "kernel"))]
    fn of_image(&self, image: &str) -> Result<Commands> {
        bail!(
            "--interop {image} --testcase {}: built without the emulator; `make kernel` builds with it",
            self.testcase
        )
    }
}

#[cfg(not(feature = "kernel"))]
pub(super) fn run(_: &Suite, commands: &Commands, _: u64, _: Option<u32>) -> Result<Report> {
    let Commands { serve, fetch, .. } = commands;
    bail!("--serve {serve:?} --fetch {fetch:?}: built without the emulator; `make kernel` builds with it")
}

#[cfg(feature = "kernel")]
pub(super) use super::live::run;
