//! `slowstart kernel` and `slowstart emulate` where it was built without: how to get them.

use anyhow::{Result, bail};
use clap::Args;

/// How to get it.
pub(crate) const WITHOUT: &str = "built without the kernel: `make kernel` installs clang, libelf-dev and zlib1g-dev and \
    builds with it, or `cargo build --release -p slowstart-cli --features kernel` where they are installed";

/// Startups in the running Linux kernel; this program was built without them.
///
/// `make kernel` in the project's folder installs clang, libelf-dev and zlib1g-dev, and builds with them.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Kernel {
    /// What would be done
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    _command: Vec<String>,
}

impl Kernel {
    #[allow(clippy::unused_self, reason = "as where it was built with it")]
    pub(crate) fn main(&self) -> Result<()> {
        bail!(WITHOUT)
    }
}

/// Runs any program behind a path, on the real kernel; this program was built without it.
///
/// `make kernel` in the project's folder installs clang, libelf-dev and zlib1g-dev, and builds with it.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Emulate {
    #[command(flatten)]
    all: Kernel,
}

impl Emulate {
    pub(crate) fn main(&self) -> Result<()> {
        self.all.main()
    }
}
