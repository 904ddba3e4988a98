//! `slowstart kernel` and `slowstart emulate` in a build without the feature `kernel`: both say how to get
//! it.

use anyhow::{Result, bail};
use clap::Args;
use std::process::ExitCode;

/// How to get a build with the feature.
pub(crate) const WITHOUT: &str = "this build has no kernel support: `make kernel` installs clang, libelf-dev, \
    pkg-config and zlib1g-dev and builds with it; where they are installed, `cargo build --release -p slowstart-cli --features kernel`";

/// Load startups into the running Linux kernel. This build has no kernel support.
///
/// `make kernel` in the project's folder installs what it needs, clang and libelf-dev among it, and builds
/// it.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Kernel {
    /// The subcommand and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    _command: Vec<String>,
}

impl Kernel {
    #[allow(clippy::unused_self, reason = "the same call as with kernel support")]
    pub(crate) fn main(&self) -> Result<()> {
        bail!(WITHOUT)
    }
}

/// Run a program over an emulated path. This build has no kernel support.
///
/// `make kernel` in the project's folder installs what it needs, clang and libelf-dev among it, and builds
/// it.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Emulate {
    /// The path, options and the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    _command: Vec<String>,
}

impl Emulate {
    #[allow(clippy::unused_self, reason = "the same call as with kernel support")]
    pub(crate) fn main(&self) -> Result<ExitCode> {
        bail!(WITHOUT)
    }
}
